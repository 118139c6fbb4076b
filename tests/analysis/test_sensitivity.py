"""Derivatives of an answer by the numbers of the network, against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gramgraph.analysis.sensitivity import sensitivity, sensitivity_function
from gramgraph.conditionals import Table
from gramgraph.exceptions import ImpossibleEvidenceError, VariableError
from gramgraph.models import BayesianNetwork
from gramgraph.testing import random_bayesian_network, random_markov_network
from gramgraph.typing import FloatArray
from gramgraph.variables import binary


def moved(net: BayesianNetwork, name: str, at: tuple[int, ...], theta: float) -> BayesianNetwork:
    """The network with one parameter at `theta` and the rest of its row in proportion (equal, when it was zero)."""
    i = net.index(name)
    conditional = net.conditional(name)
    table = np.array(conditional.table())
    row = table[at[:-1]]
    rest = np.delete(row, at[-1])
    share = rest / rest.sum() if rest.sum() > 0 else np.full(len(rest), 1.0 / len(rest))
    table[at[:-1]] = np.insert(share * (1.0 - theta), at[-1], theta)
    conditionals = list(net.conditionals)
    conditionals[i] = Table(conditional.child, conditional.parents, table)
    return BayesianNetwork.from_parts(net.vars, conditionals, check=False)


def answer(net: BayesianNetwork, target: str, state: str, evidence: dict[str, str]) -> float:
    return float(net.query(target, evidence, engine="elimination")[target].prob(state))


def finite_difference(
    net: BayesianNetwork, name: str, at: tuple[int, ...], ask: tuple[str, str, dict[str, str]]
) -> float:
    theta = float(net.conditional(name).table()[at])
    step = 1e-5
    low, high = max(theta - step, 0.0), min(theta + step, 1.0)
    if low in (0.0,) or high in (1.0,):  # one-sided at the ends: three points keep the order of the error
        sign = 1.0 if low == 0.0 else -1.0
        f = [answer(moved(net, name, at, theta + sign * k * step), *ask) for k in range(3)]
        return sign * (-3 * f[0] + 4 * f[1] - f[2]) / (2 * step)
    return (answer(moved(net, name, at, high), *ask) - answer(moved(net, name, at, low), *ask)) / (high - low)


def check_all(net: BayesianNetwork, target: str, state: str, evidence: dict[str, str]) -> FloatArray:
    frame = sensitivity(net, target, state, evidence)
    assert len(frame) == sum(c.size for c in net.conditionals if c is not None)
    assert (np.diff(np.abs(frame["derivative"])) <= 1e-12).all()
    for row in frame.itertuples():
        conditional = net.conditional(row.variable)
        given = dict(part.split("=") for part in row.given.split(", ")) if row.given else {}
        at = (*(var.index(given[var.name]) for var in conditional.parents), conditional.child.index(row.state))
        assert row.value == conditional.table()[at]
        if conditional.child.size == 1:
            assert row.derivative == 0.0
            continue
        expected = finite_difference(net, row.variable, at, (target, state, evidence))
        assert row.derivative == pytest.approx(expected, abs=2e-6), (row.variable, row.given, row.state)
    return frame["derivative"].to_numpy()


@pytest.mark.parametrize("seed", range(3))
def test_all_derivatives(seed: int) -> None:
    net = random_bayesian_network(np.random.default_rng(seed), 5, max_states=3, max_parents=2, density=0.8)
    evidence = {"v1": net.states("v1")[0], "v4": net.states("v4")[-1]}
    derivatives = check_all(net, "v0", net.states("v0")[0], evidence)
    assert np.abs(derivatives).max() > 1e-3


def test_parameters_at_zero_and_one() -> None:
    a, b, c = binary("a"), binary("b"), binary("c")
    net = BayesianNetwork.from_parts(
        [a, b, c],
        [
            Table(a, (), np.array([0.3, 0.7])),
            Table(b, (a,), np.array([[1.0, 0.0], [0.4, 0.6]])),
            Table(c, (a, b), np.array([[[0.2, 0.8], [0.5, 0.5]], [[1.0, 0.0], [0.1, 0.9]]])),
        ],
    )
    check_all(net, "a", "yes", {"c": "yes"})
    frame = sensitivity(net, "a", "no", {"c": "no"}, parameters=["b"])
    assert set(frame["variable"]) == {"b"}


def test_a_target_that_is_impossible_now_can_become_possible() -> None:
    a, b = binary("a"), binary("b")
    net = BayesianNetwork.from_parts(
        [a, b], [Table(a, (), np.array([1.0, 0.0])), Table(b, (a,), np.array([[0.5, 0.5], [0.25, 0.75]]))]
    )
    f = sensitivity_function(net, "a", "yes", {"b": "yes"}, variable="a", value="yes")
    assert f(0.0) == 0.0
    assert f(0.5) == pytest.approx(0.75 / (0.5 + 0.75))
    assert f.derivative() == pytest.approx(0.75 / 0.5)


@pytest.mark.parametrize("seed", range(4))
def test_the_function_is_the_answer_at_every_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 5, max_states=3, max_parents=2, density=0.9, zeros=0.2 * (seed % 2))
    target, state = "v2", net.states("v2")[0]
    evidence = {"v0": net.states("v0")[int(np.argmax(net.query("v0")["v0"].probabilities))]}
    for name in net.variables:
        conditional = net.conditional(name)
        if conditional.child.size == 1:
            continue
        at = tuple(int(rng.integers(0, var.size)) for var in conditional.scope)
        given = {var.name: var.states[i] for var, i in zip(conditional.parents, at, strict=False)}
        f = sensitivity_function(
            net, target, state, evidence, variable=name, value=conditional.child.states[at[-1]], given=given
        )
        assert f(f.value) == pytest.approx(answer(net, target, state, evidence))
        for theta in (0.05, 0.5, 0.9):
            expected = answer(moved(net, name, at, theta), target, state, evidence)
            assert f(theta) == pytest.approx(expected, abs=1e-9), (name, str(f))
            found = f.solve(expected)
            assert abs(f.derivative(theta)) < 1e-9 or found == pytest.approx(theta, abs=1e-6)


def test_barren_and_separated_parameters_have_no_influence() -> None:
    net = random_bayesian_network(np.random.default_rng(6), 7, max_parents=2)
    frame = sensitivity(net, "v0", net.states("v0")[0])
    below = set(net.variables) - {"v0"} - _ancestors(net, "v0")
    assert below
    assert (frame.loc[frame["variable"].isin(below), "derivative"] == 0.0).all()


def _ancestors(net: BayesianNetwork, name: str) -> set[str]:
    found: set[str] = set()
    todo = [name]
    while todo:
        for parent in net.parents(todo.pop()):
            if parent not in found:
                found.add(parent)
                todo.append(parent)
    return found


def test_errors() -> None:
    net = random_bayesian_network(np.random.default_rng(0), 4, density=0.9)
    first = net.states("v0")[0]
    child = next(name for name in net.variables if net.parents(name))
    with pytest.raises(VariableError, match="observed"):
        sensitivity(net, "v0", first, {"v0": first})
    with pytest.raises(VariableError, match="a state for each parent"):
        sensitivity_function(net, "v0", first, variable=child, value=net.states(child)[0])
    with pytest.raises(VariableError, match="not a parent"):
        sensitivity_function(net, "v0", first, variable=child, value=net.states(child)[0], given={child: "0"})
    with pytest.raises(VariableError, match="Bayesian network"):
        sensitivity(random_markov_network(np.random.default_rng(0)), "v0", "0")
    a, b = binary("a"), binary("b")
    tables = [Table(a, (), np.array([1.0, 0.0])), Table(b, (), np.array([0.5, 0.5]))]
    certain = BayesianNetwork.from_parts([a, b], [replace(tables[0]), tables[1]])
    with pytest.raises(ImpossibleEvidenceError):
        sensitivity(certain, "b", "yes", {"a": "yes"})
