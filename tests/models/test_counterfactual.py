"""Counterfactuals against the enumeration of what chance may have done, and against algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.models.counterfactual import OBSERVED, twin_network
from gramgraph.testing.random_models import random_bayesian_network
from tests.portions import examples


@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_each_world_of_the_twin_is_the_network(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 5, density=0.6)
    x = str(rng.choice(net.variables))
    state = net.states(x)[0]
    twin = twin_network(net, {x: state})
    changed = {x, *net.descendants(x)}
    prior, acted, both = net.query(), net.do({x: state}).query(), twin.query()
    for name in net.variables:
        seen = name + OBSERVED if name in changed else name
        np.testing.assert_allclose(both[seen].probabilities, prior[name].probabilities, atol=1e-12)
        np.testing.assert_allclose(both[name].probabilities, acted[name].probabilities, atol=1e-12)


@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_doing_what_was_done_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 4, density=0.7)
    case = net.sample(1, random_state=seed).iloc[0].to_dict()
    x = str(rng.choice(net.variables))
    if not net.descendants(x):
        return
    answer = net.counterfactual(case, do={x: case[x]})
    for name in net.descendants(x):
        assert answer[name].prob(case[name]) == pytest.approx(1.0)


def test_a_linear_model_keeps_its_noise() -> None:
    net = gg.BayesianNetwork(
        "x{real} -> m{real} -> y{real}; x -> y",
        cpds={
            "x": gg.LinearGaussian("x", (), (), 0.0, 1.0),
            "m": gg.LinearGaussian("m", ("x",), [2.0], 1.0, 0.5),
            "y": gg.LinearGaussian("y", ("m", "x"), [1.0, -1.0], 0.0, 0.25),
        },
    )
    answer = net.counterfactual({"x": 1.0, "m": 4.0, "y": 2.0}, do={"x": 0.0})
    assert answer["m"].mean() == pytest.approx(2.0)  # noise 1.0 kept: 1 + 0 + 1
    assert answer["y"].mean() == pytest.approx(1.0)  # noise −1 kept: 2 − 0 − 1
    assert answer["y"].var() == pytest.approx(0.0, abs=1e-9)
    part = net.counterfactual({"x": 1.0, "y": 2.0}, do={"x": 0.0}, targets="y")
    assert part["y"].mean() == pytest.approx(2.0 - 1.0)  # y moves by (2 − 1) · (−1), whatever the noise was


def test_bad_questions() -> None:
    net = gg.BayesianNetwork("dose -> cure", cpds={"dose": 0.5, "cure": {"no": 0.2, "yes": 0.6}})
    with pytest.raises(gg.VariableError, match="dos"):
        net.counterfactual({"dos": "no"}, do={"dose": "yes"})
    with pytest.raises(gg.ModelError, match="two dicts"):
        net.counterfactual({"dose": "no"}, do="dose")
    with pytest.raises(gg.ModelError):
        gg.BayesianNetwork("dose -> cure").counterfactual({"dose": "no"}, do={"dose": "yes"})
