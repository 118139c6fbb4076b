"""Adjustment by the graph against the truth by `do`."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.graphs import adjustment_set, is_adjustment_set
from gramgraph.graphs.do_calculus import Hedge, identify_effect
from gramgraph.models.identification import causal_question
from gramgraph.testing.random_models import random_bayesian_network
from tests.portions import examples


def adjusted(net: gg.BayesianNetwork, x: str, y: str, z: tuple[str, ...]) -> np.ndarray:
    """Σ_z p(y | x, z) p(z) by exact inference."""
    out = np.zeros((len(net.states(x)), len(net.states(y))))
    for values in itertools.product(*(net.states(v) for v in z)):
        case = dict(zip(z, values, strict=True))
        weight = float(np.exp(net.log_evidence(case))) if case else 1.0
        for i, state in enumerate(net.states(x)):
            out[i] += weight * net.query(y, {**case, x: state})[y].probabilities
    return out


def acted(net: gg.BayesianNetwork, x: str, y: str) -> np.ndarray:
    return np.array([net.do({x: state}).query(y)[y].probabilities for state in net.states(x)])


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_every_adjustment_set_gives_the_effect(seed) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 5, density=0.7)
    x, y = rng.permutation(5)[:2].tolist()
    names = net.variables
    truth = acted(net, names[x], names[y])
    others = [v for v in range(5) if v not in (x, y)]
    for size in range(4):
        for z in itertools.combinations(others, size):
            if is_adjustment_set(net.graph, x, y, z):
                np.testing.assert_allclose(adjusted(net, names[x], names[y], net.names_of(z)), truth, atol=1e-9)
    smallest = adjustment_set(net.graph, x, y)
    if smallest is not None:
        assert is_adjustment_set(net.graph, x, y, smallest)
        for v in smallest:
            assert not is_adjustment_set(net.graph, x, y, [u for u in smallest if u != v])
    elif y in {net.index(v) for v in net.descendants(names[x])}:
        pytest.fail("with everything observed the parents of x always serve")


def test_the_front_door_through_a_hidden_cause() -> None:
    rng = np.random.default_rng(0)
    net = gg.BayesianNetwork("u -> x -> m -> y; u -> y").random_tables(0)
    found = gg.learn.identify(net, "x", "y", hidden="u")
    assert (found.kind, found.through) == ("front door", ("m",))
    frame = net.sample(400_000, random_state=rng).drop(columns="u")
    effect = gg.learn.average_effect(net, frame, "x", "y", hidden="u")
    np.testing.assert_allclose(effect.probabilities, acted(net, "x", "y"), atol=0.01)
    wrong = np.array([net.query("y", {"x": s})["y"].probabilities for s in net.states("x")])
    assert np.abs(wrong - acted(net, "x", "y")).max() > 0.03, "observing is not acting here"


def test_kinds_and_formulas() -> None:
    net = gg.BayesianNetwork("z -> x -> y; z -> y; x -> c; y -> c")
    assert gg.learn.identify(net, "x", "y").through == ("z",)
    assert "Σ_{z} p(y | x, z) p(z)" in gg.learn.identify(net, "x", "y").formula
    assert gg.learn.identify(net, "y", "x").kind == "none"
    assert gg.learn.identify(net, "z", "c").formula.endswith("= p(c | z)")
    refused = gg.learn.identify(net, "x", "y", hidden="z")
    assert (refused.kind, refused.identifiable, refused.hedge) == ("not identifiable", False, (("x", "y"), ("y",)))
    with pytest.raises(gg.ModelError, match="does not follow from what is observed"):
        gg.learn.average_effect(net, pd.DataFrame({"x": ["no"], "y": ["no"]}), "x", "y", hidden="z")
    with pytest.raises(gg.OptionError, match="both 'x'"):
        gg.learn.identify(net, "x", "x")


def test_data_effects_by_hand_and_empty_strata() -> None:
    net = gg.BayesianNetwork("z -> x -> y; z -> y")
    rows = {"z": "aaaabb", "x": "001101", "y": "010111"}
    frame = pd.DataFrame({name: list(text) for name, text in rows.items()})
    effect = gg.learn.average_effect(net, frame, "x", "y")
    assert effect.to_frame().loc["0", "1"] == pytest.approx(4 / 6 * 0.5 + 2 / 6 * 1.0)
    assert effect.to_frame().loc["1", "1"] == pytest.approx(4 / 6 * 0.5 + 2 / 6 * 1.0)
    assert effect.difference("1", "1", "0") == effect.difference(1, 1, 0) == pytest.approx(0.0)
    with pytest.raises(gg.StateError, match="States: 0, 1"):
        effect.difference("2", "1", "0")
    with pytest.raises(gg.ModelError, match="never occur together"):
        gg.learn.average_effect(net, frame.iloc[:5], "x", "y")
    assert np.isfinite(gg.learn.average_effect(net, frame.iloc[:5], "x", "y", pseudo_count=1.0).probabilities).all()


def test_names_of_effects_may_come_in_lists() -> None:
    net = gg.datasets.asia()
    assert gg.learn.identify(net, ["lung"], ("dysp",)) == gg.learn.identify(net, "lung", "dysp")
    for treatment in (["lung", "smoke"], [], 3, None):
        with pytest.raises(gg.GramGraphError):
            gg.learn.identify(net, treatment, "dysp")
    for hidden in (None, 3, [["smoke"]]):
        with pytest.raises(gg.GramGraphError):
            gg.learn.identify(net, "lung", "dysp", hidden=hidden)


def confounded_network(rng: np.random.Generator) -> gg.BayesianNetwork:
    """Five variables in order, with arrows and unobserved common causes at random."""
    pairs = list(itertools.combinations("abcde", 2))
    arrows = [f"{p} -> {q}" for p, q in pairs if rng.random() < 0.5]
    ties = [f"{p} <-> {q}" for p, q in pairs if rng.random() < 0.3]
    return gg.BayesianNetwork("; ".join([*"abcde", *arrows, *ties])).random_tables(rng)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_every_formula_gives_the_effect(seed: int) -> None:
    """What is found agrees with `do` on the whole model: by the simplest way, and by the general rules alone."""
    net = confounded_network(np.random.default_rng(seed))
    for x, y in itertools.combinations("abcde", 2):
        found = net.identify(y, do=x)
        asked = causal_question(net, x, y, (), ())
        general = identify_effect(asked.graph, asked.x, asked.y, hidden=asked.unseen)
        assert isinstance(general, Hedge) != found.identifiable, "the doors are never open where there is no way"
        if not found.identifiable:
            whole, part = found.hedge
            assert set(part) < set(whole)
            continue
        truth = acted(net, x, y)
        for expression in (found.expression, general):
            effect = replace(found, expression=expression).evaluate(net)
            np.testing.assert_allclose(effect.probabilities, truth, atol=1e-8)


def test_formulas_beyond_the_two_doors() -> None:
    """The napkin: w -> z -> x -> y, with w tied to x and to y; neither door is open."""
    net = gg.BayesianNetwork("w -> z -> x -> y; w <-> x; w <-> y").random_tables(3)
    found = net.identify("y", do="x")
    assert found.kind == "formula" and "/" in found.formula
    np.testing.assert_allclose(found.evaluate(net).probabilities, acted(net, "x", "y"), atol=1e-9)
    frame = net.sample(300_000, random_state=0)[["w", "z", "x", "y"]]
    np.testing.assert_allclose(found.evaluate(frame).probabilities, acted(net, "x", "y"), atol=0.03)
    tied = gg.BayesianNetwork("x -> z -> y; x <-> z; x <-> y; z <-> y").identify("y", do="x")
    assert not tied.identifiable and tied.hedge is not None


def test_the_refusal_is_true() -> None:
    """Two models that agree on what is observed and differ in the effect: the bow."""
    same = {"u": [0.5, 0.5], "x": [[1, 0], [0, 1]]}
    follows = gg.BayesianNetwork("u -> x -> y <- u", cpds={**same, "y": [[[1, 0], [1, 0]], [[0, 1], [0, 1]]]})
    causes = gg.BayesianNetwork("u -> x -> y <- u", cpds={**same, "y": [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]})
    a, b = (net.query(("x", "y"))[("x", "y")].probabilities for net in (follows, causes))
    np.testing.assert_allclose(a, b)
    assert np.abs(acted(follows, "x", "y") - acted(causes, "x", "y")).max() > 0.4
    assert not follows.identify("y", do="x", hidden="u").identifiable
