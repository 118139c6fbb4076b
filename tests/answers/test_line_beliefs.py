"""Densities of beliefs on cells: they integrate to one, whatever the masses of the cells are."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.answers.joint_belief import JointBelief
from gramgraph.answers.line_belief import LineBelief
from gramgraph.cells.axes import LineAxis, StateAxis

DOMAINS = ("real", "positive", "circle")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


def axis_of(domain: str, m: int, seed: int = 0) -> LineAxis:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(size=150), rng.normal(2.0, 0.1, size=50)])
    return LineAxis.of("x", np.exp(x) if domain == "positive" else x, domain, m)


def masses_of(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Masses of cells with large steps and zeros between neighbors, as sharp evidence makes them."""
    rng = np.random.default_rng(seed)
    p = rng.gamma(0.3, size=shape) * (rng.random(shape) < 0.7)
    p[..., 0] += 1e-3
    return p / p.reshape(len(p), -1).sum(axis=1).reshape(-1, *[1] * (p.ndim - 1))


def quadrature(axis: LineAxis) -> tuple[np.ndarray, np.ndarray]:
    """(points, weights) of integrals over x: exact between the points of the grid, fine panels for the tails."""
    d = axis.density
    ends = d.grid
    if axis.circle:
        ends = np.append(ends, ends[-1] + d.step)
    else:
        out = d.tail * np.linspace(0.25, 45.0, 180)
        ends = np.concatenate([ends[0] - out[::-1], ends, ends[-1] + out])
    half = 0.5 * np.diff(ends)
    t = (ends[:-1] + half)[:, None] + half[:, None] * _NODES
    x = d.coordinate.backward(t.ravel())
    return x, (half[:, None] * _WEIGHTS).ravel() / np.exp(d.coordinate.log_slope(x))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("m", [2, 7, 48])
def test_densities_integrate_to_one(domain: str, m: int) -> None:
    axis = axis_of(domain, m)
    belief = LineBelief(axis, masses_of((5, axis.m), m), batched=True)
    x, weights = quadrature(axis)
    assert belief.density(x) @ weights == pytest.approx(np.ones(5), abs=1e-9)


@pytest.mark.parametrize("domain", DOMAINS)
def test_scores_are_logarithms_of_the_density(domain: str) -> None:
    axis = axis_of(domain, 12)
    belief = LineBelief(axis, masses_of((4, axis.m), 3), batched=True)
    x = np.array([0.3, 1.0, 2.0, 2.5])
    assert np.exp(belief.log_score(x)) == pytest.approx(np.diag(belief.density(x)), rel=1e-12)


@pytest.mark.parametrize("domain", DOMAINS)
def test_joints_with_states_integrate_to_one(domain: str) -> None:
    axis, states = axis_of(domain, 16), StateAxis.of("s", ["a", "b", "b", "c"])
    joint = JointBelief((states, axis), masses_of((1, states.m, axis.m), 5), batched=False)
    x, weights = quadrature(axis)
    total = sum(joint.density([(s, float(v)) for v in x]) @ weights for s in states.states)
    assert total == pytest.approx(1.0, abs=1e-9)


def test_beliefs_of_a_loop_integrate_to_one() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    b = np.sin(a) + 0.3 * rng.normal(size=200)
    data = {"a": a, "b": b, "c": a * b + 0.3 * rng.normal(size=200)}
    net = gg.learn_markov(data, "a - b - c - a", cells=24, rank=3, penalty=1e-2)
    for evidence in ({}, {"b": 0.3}, {"b": 0.3, "c": 2.0}, {"c": 40.0}):
        belief = net.query("a", evidence)["a"]
        x, weights = quadrature(belief.axis)
        assert belief.density(x) @ weights == pytest.approx(1.0, abs=1e-9), evidence
