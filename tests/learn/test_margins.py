"""Proportional fitting: closed forms, raking, the laws of the projection, and margins that cannot be."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.data import code_table
from gramgraph.data.counts import Counts
from gramgraph.learn.proportional_fitting import is_decomposable
from gramgraph.models import ising_grid
from tests.portions import examples


def full(net: gg.MarkovNetwork, names: str | tuple[str, ...]) -> np.ndarray:
    return net.query(tuple(names))[tuple(names)].probabilities


# ------------------------------------------------------------------------------------------------- closed form


def test_the_closed_form_by_hand() -> None:
    frame = pd.DataFrame({"a": list("xxyy"), "b": list("pqqq"), "c": list("mmnm")})
    net = gg.MarkovNetwork(edges="a - b - c").fit(frame, method="closed_form")
    # p(a, b) p(b, c) / p(b): p(x, q, m) = 1/4 · 2/4 / (3/4)
    assert full(net, "abc")[0, 1, 0] == pytest.approx(1 / 6)
    assert full(net, "abc")[0, 0, 1] == 0
    assert net.fit_report.converged and net.log_evidence({}) == pytest.approx(0)
    expected = np.log([1 / 4, 1 / 6, 1 / 6, 1 / 3]).sum()
    assert net.fit_report.value == pytest.approx(expected)


@st.composite
def chordal(draw):
    """A random decomposable model: each new variable joins a part of an earlier clique."""
    n = draw(st.integers(2, 6))
    sizes = {f"v{i}": draw(st.integers(1, 3)) for i in range(n)}
    cliques: list[tuple[str, ...]] = [("v0",)]
    for i in range(1, n):
        base = draw(st.sampled_from(cliques))
        part = tuple(v for v in base if draw(st.booleans()))[:2]
        cliques.append((*part, f"v{i}"))
    return sizes, tuple(dict.fromkeys(cliques)), draw(st.integers(0, 1000))


@settings(max_examples=examples(25))
@given(chordal())
def test_on_decomposable_models_all_ways_are_one(problem) -> None:
    sizes, cliques, seed = problem
    rng = np.random.default_rng(seed)
    net = gg.MarkovNetwork({c: np.ones([sizes[v] for v in c]) for c in cliques}, states=sizes)
    frame = {v: rng.integers(0, k, 60).astype(str) for v, k in sizes.items()}
    assert is_decomposable(net)
    closed = net.fit(frame, method="closed_form")
    fitted = net.fit(frame, method="ipf")
    assert fitted.fit_report.n_iter <= 2, "one round does it, the second sees that"
    names = net.variables
    np.testing.assert_allclose(full(closed, names), full(fitted, names), atol=1e-9)
    counts = Counts(code_table(frame, net.vars))
    for clique in cliques:
        np.testing.assert_allclose(full(closed, clique), np.asarray(counts.table(clique)) / 60, atol=1e-12)
    assert closed.fit_report.value == pytest.approx(fitted.fit_report.value, rel=1e-9)
    if all(np.asarray(counts.table(c)).min() > 0 for c in cliques):
        exact = net.fit(frame, method="exact")
        np.testing.assert_allclose(full(exact, names), full(closed, names), atol=1e-5)


def test_what_is_decomposable() -> None:
    ones = np.ones((2, 2))
    triangle = {("a", "b"): ones, ("b", "c"): ones, ("a", "c"): ones}
    assert not is_decomposable(gg.MarkovNetwork(triangle)), "pairs alone do not fill a triangle"
    assert is_decomposable(gg.MarkovNetwork({**triangle, ("a", "b", "c"): np.ones((2, 2, 2))}))
    assert not is_decomposable(ising_grid(2, 2)) and is_decomposable(ising_grid(1, 4))
    with pytest.raises(gg.OptionError, match="not decomposable"):
        ising_grid(2, 2).fit({v: [-1, 1] for v in ising_grid(2, 2).variables}, method="closed_form")
    held = gg.MarkovNetwork({("a", "b"): [[1, 0], [1, 1]]})
    for method in ("closed_form", "ipf"):
        with pytest.raises(gg.OptionError, match="zeros"):
            held.fit({"a": ["no", "yes"], "b": ["no", "yes"]}, method=method)


# ------------------------------------------------------------------------------------------------- given margins


def test_raking_a_table_keeps_its_odds_ratio() -> None:
    seed = np.array([[4.0, 1.0], [2.0, 3.0]])
    start = gg.MarkovNetwork({("a", "b"): seed})
    net = gg.learn.fit_margins(start, {"a": [0.3, 0.7], "b": [60, 40]})
    p = full(net, "ab")
    np.testing.assert_allclose(p.sum(axis=1), [0.3, 0.7], atol=1e-9)
    np.testing.assert_allclose(p.sum(axis=0), [0.6, 0.4], atol=1e-9)
    assert p[0, 0] * p[1, 1] / (p[0, 1] * p[1, 0]) == pytest.approx(6.0, rel=1e-6)
    assert start.query("a")["a"].prob("no") == pytest.approx(0.5), "the start is a value and stays"


def rake(seed: np.ndarray, margins: list[tuple[tuple[int, ...], np.ndarray]], rounds: int) -> np.ndarray:
    """The same on the full joint table."""
    p = seed / seed.sum()
    for _ in range(rounds):
        for axes, target in margins:
            out = tuple(i for i in range(p.ndim) if i not in axes)
            now = p.sum(axis=out, keepdims=True)
            p = p * np.divide(target.reshape(now.shape), now, out=np.zeros_like(now), where=now > 0)
    return p


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_the_joint_table(seed) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(36)).reshape(3, 2, 3, 2)
    base = np.exp(rng.normal(size=(2, 3)))
    scopes = [(0, 1), (1, 2), (2, 3), (0, 3)]
    targets = [truth.sum(axis=tuple(i for i in range(4) if i not in s)) for s in scopes]
    start = gg.MarkovNetwork({("v1", "v2"): base}, states={"v0": 3, "v1": 2, "v2": 3, "v3": 2})
    names = [f"v{i}" for i in range(4)]
    margins = {tuple(names[v] for v in s): t for s, t in zip(scopes, targets, strict=True)}
    net = gg.learn.fit_margins(start, margins, tol=1e-11)
    expected = rake(
        np.broadcast_to(base[None, :, :, None], (3, 2, 3, 2)), list(zip(scopes, targets, strict=True)), 3000
    )
    np.testing.assert_allclose(full(net, tuple(names)), expected, atol=1e-8)
    trace = np.array(net.fit_report.trace)
    assert (np.diff(trace) <= 0).all() and trace[-1] == 0
    uniform_to_answer = float((expected * np.log(expected / rake(start_joint(base), [], 0))).sum())
    assert trace[0] == pytest.approx(uniform_to_answer, abs=1e-6), "what the rounds gain is the divergence"


def start_joint(base: np.ndarray) -> np.ndarray:
    return np.broadcast_to(base[None, :, :, None], (3, 2, 3, 2)).copy()


def test_without_a_start_the_answer_has_the_largest_entropy() -> None:
    net = gg.learn.fit_margins(None, {"a": [0.2, 0.8], "b": [1, 2, 3]})
    np.testing.assert_allclose(full(net, "ab"), np.outer([0.2, 0.8], [1 / 6, 2 / 6, 3 / 6]), atol=1e-12)
    assert net.states("a") == ("no", "yes") and net.states("b") == ("0", "1", "2")
    named = gg.learn.fit_margins(None, {"a": [0.2, 0.8]}, states={"a": ["low", "high"], "free": ["x", "y"]})
    assert named.query("a")["a"].prob("high") == pytest.approx(0.8)
    assert named.query("free")["free"].prob("x") == pytest.approx(0.5)


def test_zeros_of_margins_become_zeros() -> None:
    net = gg.learn.fit_margins(None, {("a", "b"): [[0.5, 0.0], [0.2, 0.3]], ("b", "c"): [[0.3, 0.4], [0.3, 0.0]]})
    p = full(net, "abc")
    assert (p[0, 1] == 0).all() and (p[:, 1, 1] == 0).all()
    assert net.fit_report.converged


def test_margins_that_cannot_be_are_told() -> None:
    with pytest.raises(
        gg.ModelError, match=r"\(a, b\) and \(b, c\) do not agree: what they say of \(b\) differs by up to 0.1"
    ):
        gg.learn.fit_margins(None, {("a", "b"): [[0.25, 0.25], [0.25, 0.25]], ("b", "c"): [[0.3, 0.3], [0.2, 0.2]]})
    start = gg.MarkovNetwork({("a", "b"): [[1, 0], [0, 1]]})
    with pytest.raises(gg.ModelError, match="holds impossible"):
        gg.learn.fit_margins(start, {("a", "b"): [[0.4, 0.1], [0.1, 0.4]]})
    with pytest.raises(gg.VariableError, match="'A' is not a variable"):
        gg.learn.fit_margins(start, {"A": [0.5, 0.5]})
    with pytest.raises(gg.ModelError, match="must have shape"):
        gg.learn.fit_margins(start, {"a": [0.5, 0.2, 0.3]})
    with pytest.raises(gg.ModelError, match="positive sum"):
        gg.learn.fit_margins(None, {"a": [0, 0]})
    with pytest.raises(gg.ModelError, match="positive sum"):
        gg.learn.fit_margins(None, {"a": [0.5, np.nan]})
    with pytest.raises(gg.ModelError, match="twice"):
        gg.learn.fit_margins(None, {("a", "a"): np.ones((2, 2))})
    with pytest.raises(gg.OptionError, match="no margins"):
        gg.learn.fit_margins(start, {})
    with pytest.raises(gg.OptionError, match="takes a MarkovNetwork"):
        gg.learn.fit_margins(gg.datasets.asia(), {"smoke": [0.5, 0.5]})
    with pytest.raises(gg.OptionError, match="max_iter"):
        gg.learn.fit_margins(start, {"a": [0.5, 0.5]}, max_iter=0)


def test_pairs_that_no_distribution_joins_do_not_converge_in_silence() -> None:
    same, other = [[0.5, 0.0], [0.0, 0.5]], [[0.1, 0.4], [0.4, 0.1]]
    mostly = [[0.45, 0.05], [0.05, 0.45]]
    with pytest.warns(gg.ModelWarning, match="the margins are missed by up to"):
        gg.learn.fit_margins(None, {("a", "b"): mostly, ("b", "c"): mostly, ("a", "c"): other}, max_iter=30)
    with pytest.raises(gg.ModelError, match="no distribution with these margins"):
        gg.learn.fit_margins(None, {("a", "b"): same, ("b", "c"): same, ("a", "c"): [[0.0, 0.5], [0.5, 0.0]]})


def test_progress_is_told_by_rounds() -> None:
    told: list[int] = []
    scopes = [*itertools.pairwise("abcd"), ("d", "a")]
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    margins = {
        s: p.sum(axis=tuple(i for i, v in enumerate("abcd") if v not in s)).transpose(np.argsort(np.argsort(s)))
        for s in scopes
    }
    net = gg.learn.fit_margins(None, margins, progress=lambda done, total: told.append(done))
    assert told == list(range(1, net.fit_report.n_iter + 1))
