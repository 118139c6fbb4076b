"""Posteriors of tables from rows with gaps, against the sum over all ways to fill them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import gramgraph as gg
from tests.portions import seeds

STRUCTURE = "a -> b"
LABELS = {"no": 0, "yes": 1}


def table_of(rows: list[tuple[Any, Any]]) -> Any:
    return pd.DataFrame(rows, columns=["a", "b"], dtype=object)


def filled(rows: list[tuple[Any, Any]]) -> tuple[float, np.ndarray, np.ndarray]:
    """log p(data), E p(a = yes) and E p(b | a), by the sum over all fillings, with one of each as prior."""
    gaps = [(i, j) for i, row in enumerate(rows) for j in range(2) if row[j] is None]
    logs, a_means, b_means = [], [], []
    for states in product(range(2), repeat=len(gaps)):
        full = np.array([[-1 if cell is None else LABELS[cell] for cell in row] for row in rows])
        for (i, j), state in zip(gaps, states, strict=True):
            full[i, j] = state
        a = 1.0 + np.bincount(full[:, 0], minlength=2)
        b = np.ones((2, 2))
        np.add.at(b, (full[:, 0], full[:, 1]), 1.0)
        logs.append(sum(float(gammaln(row).sum() - gammaln(row.sum()) + gammaln(2.0)) for row in (a, *b)))
        a_means.append(a / a.sum())
        b_means.append(b / b.sum(axis=1, keepdims=True))
    p = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    return float(np.logaddexp.reduce(logs)), np.tensordot(p, a_means, 1), np.tensordot(p, b_means, 1)


def random_rows(seed: int, n: int = 9, gaps: int = 5) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=n)
    b = np.where(rng.random(n) < 0.85, a, 1 - a)
    cells: list[list[Any]] = [["no" if x == 0 else "yes", "no" if y == 0 else "yes"] for x, y in zip(a, b, strict=True)]
    for i in rng.choice(n, size=gaps, replace=False):
        cells[i][int(rng.integers(2))] = None
    return [tuple(row) for row in cells]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_rises_below_the_evidence(seed: int) -> None:
    rows = random_rows(seed)
    log_p, a, b = filled(rows)
    posterior = gg.BayesianNetwork(STRUCTURE).fit_posterior(table_of(rows), prior="k2", random_state=0)
    assert posterior.report is not None and posterior.report["converged"]
    bounds = posterior.report["bounds"]
    assert bounds[-1] <= log_p + 1e-9 and bounds[-1] > log_p - 1.0
    assert np.all(np.diff(bounds) >= -1e-9 * (1.0 + np.abs(bounds[1:])))
    mean = posterior.mean()
    assert np.allclose(mean.conditional("a").table(), a, atol=0.05)
    assert np.allclose(mean.conditional("b").table(), b, atol=0.1)
    assert sum(c.sum() for c in posterior.counts) == pytest.approx(2 * len(rows))  # a family's counts are all rows


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_gibbs_has_the_moments_of_the_mixture(seed: int) -> None:
    rows = random_rows(seed)
    _, a, b = filled(rows)
    net = gg.BayesianNetwork(STRUCTURE)
    posterior = net.fit_posterior(table_of(rows), prior="k2", method="gibbs", draws=1500, random_state=seed)
    mean = posterior.mean()
    assert np.allclose(mean.conditional("a").table(), a, atol=0.01)
    assert np.allclose(mean.conditional("b").table(), b, atol=0.015)
    vb = net.fit_posterior(table_of(rows), prior="k2")
    assert posterior.alpha("b").sum() < vb.alpha("b").sum()  # the product of factors is surer than the mixture


def test_complete_rows_are_as_before_and_intervals_widen_with_gaps() -> None:
    net = gg.BayesianNetwork(STRUCTURE)
    whole = [("no", "no"), ("yes", "yes"), ("yes", "no"), ("no", "no")] * 5
    exact = net.fit_posterior(table_of(whole), prior="k2")
    assert exact.report is None and exact.alpha("a").tolist() == [11.0, 11.0]
    gaps = [(row if i % 2 else (None, row[1])) for i, row in enumerate(whole)]
    wide = net.fit_posterior(table_of(gaps), prior="k2", method="gibbs", draws=400, random_state=0)
    low, high = (np.asarray(end) for end in wide.interval("a"))
    low0, high0 = (np.asarray(end) for end in exact.interval("a"))
    assert ((high - low) > (high0 - low0)).all()
    assert wide.query("b", {"a": "yes"}, draws=20, random_state=0)["b"].prob("yes")[1] > 0.0


def test_bad_input() -> None:
    net, rows = gg.BayesianNetwork(STRUCTURE), table_of([("no", None), ("yes", "yes")])
    with pytest.raises(gg.OptionError, match="'variational' or 'gibbs'"):
        net.fit_posterior(rows, method="em")
    with pytest.raises(gg.OptionError, match="draws"):
        net.fit_posterior(rows, method="gibbs", draws=1)
    with pytest.raises(gg.VariableError, match="all at once"):
        net.fit_posterior(rows, prior="k2").update(rows)
