"""Soft evidence: the asked margins hold, or an error names what contradicts what."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import gramgraph as gg
from gramgraph.engines.exact import jeffrey
from gramgraph.engines.exact.margins import MarginConflict, fit_margins
from gramgraph.testing import random_bayesian_network
from tests.portions import examples

LOCKED = gg.BayesianNetwork("a -> b", cpds={"a": [0.5, 0.5], "b": [[1, 0], [0, 1]]})


def possible(net: Any, wanted: dict[str, list[float]]) -> bool:
    """Whether some distribution on the model's possible assignments has these margins: a linear program."""
    table = net.query(tuple(net.variables))[tuple(net.variables)].probabilities
    cells = np.argwhere(table > 0)
    rows = [(cells[:, net.index(v)] == s).astype(float) for v in wanted for s in range(len(wanted[v]))]
    goal = [q for margin in wanted.values() for q in margin]
    return bool(linprog(np.zeros(len(cells)), A_eq=np.array(rows), b_eq=goal, bounds=(0, None)).status == 0)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40))
def test_margins_are_as_asked_or_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, int(rng.integers(2, 6)), zeros=float(rng.choice([0.0, 0.4, 0.7])))
    chosen = [v for v in net.variables if rng.random() < 0.6] or ["v0"]
    if rng.random() < 0.5:  # margins of some rows that the model can make
        rows = net.sample(int(rng.integers(1, 15)), random_state=seed % 1000)
        wanted = {v: [float((rows[v] == s).mean()) for s in net.states(v)] for v in chosen}
    else:
        wanted = {v: rng.dirichlet(np.full(len(net.states(v)), 0.5)).tolist() for v in chosen}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = net.query(None, soft_evidence=wanted)
    except gg.ImpossibleEvidenceError as error:
        assert not possible(net, wanted)
        assert error.conflict
        assert {text.partition("=")[0] for text in error.conflict} <= set(wanted)
        return
    for v in chosen:
        np.testing.assert_allclose(answer[v].probabilities, wanted[v], atol=1e-8)
    assert answer.exact
    assert all(np.isfinite(answer[v].probabilities).all() for v in net.variables)


@pytest.mark.parametrize("asked", [{"a": [0.9, 0.1], "b": [0.3, 0.7]}, {"a": [0.55, 0.45], "b": [0.5, 0.5]}])
@pytest.mark.parametrize("cells", [20_000, 0])
def test_a_contradiction_is_named(asked: Any, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jeffrey, "JOINT_CELLS", cells)
    with pytest.raises(gg.ImpossibleEvidenceError, match=r"a=\(no: .*b=\(no: .* cannot hold together") as caught:
        LOCKED.query(None, soft_evidence=asked)
    assert len(caught.value.conflict) == 2
    fine = LOCKED.query(None, soft_evidence={"a": [0.55, 0.45], "b": [0.55, 0.45]})
    assert fine["b"].probabilities.tolist() == pytest.approx([0.55, 0.45], abs=1e-12)
    with pytest.raises(gg.ImpossibleEvidenceError, match=r"b=\(no: 0.5, yes: 0.5\) gives weight to a state"):
        LOCKED.query(None, {"a": "no"}, soft_evidence={"b": [0.5, 0.5]})


def test_the_smallest_conflict_leaves_out_what_can_hold() -> None:
    net = gg.BayesianNetwork(
        "a -> b; c -> d", cpds={"a": 0.5, "b": [[1, 0], [0, 1]], "c": 0.3, "d": [[0.8, 0.2], [0.3, 0.7]]}
    )
    with pytest.raises(gg.ImpossibleEvidenceError) as caught:
        net.query("d", soft_evidence={"c": [0.1, 0.9], "a": [0.2, 0.8], "d": [0.5, 0.5], "b": [0.3, 0.7]})
    assert [text[0] for text in caught.value.conflict] == ["a", "b"]


def test_margins_that_only_a_limit_has() -> None:
    """a = no with b = yes is possible, and must become impossible: weights of single variables only come near."""
    table = np.array([[0.5, 0.25], [0.0, 0.25]])
    fit = fit_margins(table, [np.array([0.5, 0.5]), np.array([0.5, 0.5])])
    assert fit.gap <= 1e-12
    np.testing.assert_allclose(fit.table, [[0.5, 0.0], [0.0, 0.5]], atol=1e-11)
    cpds = {"a": [0.75, 0.25], "b": [[2 / 3, 1 / 3], [0, 1]], "c": [[0.9, 0.1], [0.2, 0.8]]}
    net = gg.BayesianNetwork("a -> b -> c", cpds=cpds)
    half = {"a": [0.5, 0.5], "b": [0.5, 0.5]}
    np.testing.assert_allclose(net.query("c", soft_evidence=half)["c"].probabilities, [0.55, 0.45], atol=1e-10)
    batch = net.query(["c", ("a", "b")], [{}, {"c": "yes"}], soft_evidence=half)
    np.testing.assert_allclose(batch[("a", "b")].probabilities[1], [[0.5, 0.0], [0.0, 0.5]], atol=1e-10)


def test_mixtures_where_no_weights_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    """The road that sums over the joint states of the soft variables gives what weights give."""
    real = fit_margins

    def without_weights(table: Any, wanted: Any) -> Any:
        found = real(table, wanted)
        return type(found)(found.table, found.theta, found.steps, found.gap, False)

    net, asked = gg.datasets.asia(), {"smoke": [0.2, 0.8], "lung": [0.3, 0.7]}
    targets = ["bronc", "smoke", ("lung", "dysp")]
    expected = [net.query(targets, {"xray": "yes"}, soft_evidence=asked)]
    expected.append(net.query(targets, [{"xray": "yes"}, {}], soft_evidence=asked))
    monkeypatch.setattr(jeffrey, "fit_margins", without_weights)
    found = [net.query(targets, {"xray": "yes"}, soft_evidence=asked)]
    found.append(net.query(targets, [{"xray": "yes"}, {}], soft_evidence=asked))
    for mine, theirs in zip(found, expected, strict=True):
        for key in theirs:
            np.testing.assert_allclose(mine[key].probabilities, theirs[key].probabilities, atol=1e-10)


def test_a_fit_that_stands_still_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jeffrey, "JOINT_CELLS", 0)
    monkeypatch.setattr(jeffrey, "MAX_SWEEPS", 2)
    monkeypatch.setattr(jeffrey, "ALLOWED", 1.0)
    asked = {"smoke": [0.2, 0.8], "lung": [0.3, 0.7]}
    with pytest.warns(gg.ConvergenceWarning, match="smoke, lung was met up to"):
        answer = gg.datasets.asia().query("bronc", soft_evidence=asked)
    assert not answer.exact
    assert answer.details["soft_evidence_gap"] > 1e-12
    monkeypatch.setattr(jeffrey, "ALLOWED", 1e-12)
    with pytest.raises(gg.ImpossibleEvidenceError, match="smoke="):
        gg.datasets.asia().query("bronc", soft_evidence=asked)


def test_tables_without_the_margins() -> None:
    with pytest.raises(MarginConflict) as caught:
        fit_margins(np.eye(3) / 3, [np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.3, 0.4])])
    assert caught.value.members == (0, 1)
