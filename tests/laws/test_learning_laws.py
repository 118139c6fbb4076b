"""Learning from awkward columns: groups without spread, rare labels, a label for every row, gaps."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.learn.gaussian_scores import MixedScores
from gramgraph.learn.mixed_table import read_table
from tests.portions import examples


def awkward(seed: int, rows: int, labels: int, digits: int) -> pd.DataFrame:
    """Labels from common to unique; readings that are constant in some groups, rounded, or an exact function."""
    rng = np.random.default_rng(seed)
    g = np.minimum(rng.geometric(0.5, rows) - 1, labels - 1)
    g[: min(labels, rows)] = np.arange(min(labels, rows))
    x = rng.normal(size=rows).round(digits) + 0.125
    x[g == rng.integers(labels)] = 3.5
    y = 2.0 * x if rng.random() < 0.3 else rng.normal(size=rows) + np.where(g == 0, x, -x)
    y[g == rng.integers(labels)] = -1.25
    return pd.DataFrame({"g": pd.Categorical([f"g{i}" for i in g]), "x": x, "y": y})


def graph(frame: pd.DataFrame, edges: str) -> gg.BayesianNetwork:
    table = read_table(frame)
    parents = [tuple(table.position(e[0]) for e in edges.split() if e[1] == name) for name in table.names]
    return gg.BayesianNetwork.from_parts(table.variables, [None] * 3, parents=parents)


@settings(max_examples=examples(25))
@given(
    seed=st.integers(0, 9999),
    rows=st.integers(8, 60),
    labels=st.integers(1, 40),
    digits=st.integers(0, 6),
    edges=st.sampled_from(["gx", "gy xy", "gx gy xy", "xy", "gy yx gx", ""]),
    weighted=st.booleans(),
)
def test_a_score_is_the_likelihood_of_the_fitted_network_less_its_penalty(seed, rows, labels, digits, edges, weighted):
    frame = awkward(seed, rows, labels, digits)
    weights = np.random.default_rng(seed).integers(0, 3, rows) + 0.25 if weighted else None
    net = graph(frame, edges)
    fitted = net.fit(frame, weights=weights)
    w = np.ones(rows) if weights is None else weights
    expected = w @ fitted.log_likelihood(frame) - 0.5 * np.log(w.sum()) * fitted.n_parameters
    scores = MixedScores(read_table(frame, weights), "bic")
    assert scores.total(net.parent_positions) == pytest.approx(expected, rel=1e-6, abs=1e-5)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 9999),
    hidden=st.booleans(),
    prior=st.sampled_from(
        [None, "k2", gg.learn.LinearGaussianPrior(scale=0.1), gg.learn.LinearGaussianPrior(shape=3.0)]
    ),
)
def test_em_never_falls(seed, hidden, prior):
    frame = awkward(seed, 25, 4, 1)
    rng = np.random.default_rng(seed)
    net = graph(frame, "gx gy xy")
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    if hidden:
        frame = frame.drop(columns="g")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.ModelWarning)  # a step that would fall is not taken, and said
        report = net.fit(frame, prior=prior, random_state=seed, max_iter=8).fit_report
    assert (np.diff(report.trace) >= 0).all()
    if prior == "k2":
        assert report.objective == "log-likelihood + log prior"


def test_a_class_of_equal_readings_has_no_spread_and_em_climbs_to_it():
    rng = np.random.default_rng(0)
    x = np.r_[np.zeros(200), rng.normal(5, 1, 300)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = gg.BayesianNetwork("z{1|2} -> x{real}").fit(pd.DataFrame({"x": x}), random_state=0)
    assert (np.diff(net.fit_report.trace) >= 0).all() and net.fit_report.converged
    assert net.fit_report.objective == "log-likelihood"
    assert net.fit_report.log_likelihood == pytest.approx(net.log_likelihood(pd.DataFrame({"x": x})).sum(), abs=1e-6)
    found = sorted(net.conditional("x").noise_sd.ravel())
    assert found[0] < 1e-3 and found[1] == pytest.approx(x[200:].std(), rel=1e-6)
    seen = gg.BayesianNetwork("z -> x").fit(pd.DataFrame({"z": np.repeat(["a", "b"], [200, 300]), "x": x}))
    assert seen.conditional("x").noise_sd.ravel() == pytest.approx([0.0, x[200:].std()], abs=1e-3)
    np.testing.assert_allclose(seen.conditional("x").intercept.ravel(), [0.0, x[200:].mean()], atol=1e-9)


@pytest.mark.parametrize("reading", [3.0, 0.0])
def test_a_few_equal_readings_of_a_rare_label_are_no_edge(reading):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        g = rng.choice(["a", "b"], 1000).astype(object)
        g[:2] = "rare"
        x = np.r_[reading, reading, rng.normal(size=998).round(1)]
        assert not gg.learn_structure(pd.DataFrame({"g": pd.Categorical(g), "x": x})).edges


def test_small_groups_that_differ_are_found():
    """Three replicates of each of 20 conditions: levels of their own, a spread that they share."""
    rng = np.random.default_rng(0)
    level = rng.normal(0, 10, 20)
    frame = pd.DataFrame({"c": pd.Categorical(np.repeat(np.arange(20), 3)), "x": np.repeat(level, 3)})
    frame["x"] += rng.normal(0, 0.1, 60)
    net = gg.learn_structure(frame)
    assert net.edges == (("c", "x"),)
    means = frame.groupby("c", observed=True)["x"].mean()
    np.testing.assert_allclose(net.conditional("x").intercept.ravel(), means, atol=1e-9)
    assert 0.05 < net.conditional("x").noise_sd.mean() < 0.2


def test_a_label_for_every_row_explains_nothing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    frame["name"] = pd.Categorical([f"n{i}" for i in range(200)])
    for score in ("bic", "aic"):
        scores = MixedScores(read_table(frame), score)
        assert scores.family(0, (2,)) < scores.family(0, ())
    fitted = gg.BayesianNetwork("name -> x").fit(frame[["x", "name"]])
    assert fitted.conditional("x").noise_sd.min() > 0.5
