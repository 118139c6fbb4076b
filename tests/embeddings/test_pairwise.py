"""Undirected kernel networks with loops: potentials by pseudo-likelihood against sums over a fine grid."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelError, VariableError

GRID = np.linspace(-2.6, 2.6, 53)


def triangle_joint(J):
    """p(a, b, c) ∝ exp(Σ (x² − x⁴) + J (ab + bc + ca)) on a grid."""
    own = GRID**2 - GRID**4
    pair = J * np.multiply.outer(GRID, GRID)
    logs = own[:, None, None] + own[None, :, None] + own + pair[:, :, None] + pair[:, None, :] + pair[None]
    p = np.exp(logs - logs.max())
    return p / p.sum()


@pytest.fixture(scope="module")
def learned():
    p, rng = triangle_joint(0.9), np.random.default_rng(0)
    at = np.unravel_index(rng.choice(p.size, size=2000, p=p.ravel()), p.shape)
    step = GRID[1] - GRID[0]
    data = {name: GRID[i] + step * (rng.random(2000) - 0.5) for name, i in zip("abc", at, strict=True)}
    return gg.learn_markov(data, "a - b - c - a", cells=32, rank=6, penalty=1e-2), data, p


def test_posterior_means_on_a_loop(learned):
    net, _, p = learned
    off = []
    for i in range(14, 40, 4):
        given = p[i].sum(axis=1) / p[i].sum()
        found = net.query("b", {"a": GRID[i]})
        assert found.engine == "junction_tree"
        both = p[i, :, 30] / p[i, :, 30].sum()
        pair = net.query("b", {"a": GRID[i], "c": GRID[30]})["b"].mean()
        off += [found["b"].mean() - given @ GRID, pair - both @ GRID]
    assert np.sqrt(np.mean(np.square(off))) < 0.1, off


def test_densities_draws_and_best_values(learned):
    net, data, p = learned
    x = np.linspace(-8.0, 8.0, 160_001)
    assert net.query("a", {"b": 1.0})["a"].density(x).sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-4)
    best = net.map_query({"a": 0.9})
    assert best["b"] > 0.4 and best["c"] > 0.4
    drawn = net.sample(500, {"a": 0.9}, random_state=0)
    assert list(drawn.columns) == ["b", "c"] and drawn["b"].mean() > 0.2
    other = gg.learn_markov(data, "a - b; c", cells=32, rank=4, penalty=1e-3)
    assert net.pseudo_log_likelihood(data) > other.pseudo_log_likelihood(data) + 0.05
    far = net.query("b", {"a": 50.0})
    assert far.quality == "unreliable" and np.isfinite(far["b"].mean())


def test_without_edges_it_is_the_kernel_density(learned):
    _, data, _ = learned
    alone = gg.learn_markov(data, "a; b; c", cells=32, rank=2, penalty=1e-2)
    x = np.linspace(-2.0, 2.0, 41)
    axis = alone.axes[0]
    assert np.allclose(alone.query("a")["a"].density(x), np.exp(axis.log_base(x)), rtol=1e-3)


def test_rank_and_penalty_are_chosen_and_errors_speak(learned):
    _, data, _ = learned
    few = {name: values[:300] for name, values in data.items()}
    net = gg.learn_markov(few, "a - b - c - a", cells=16, shared=True)
    assert net.report["rank"] in (2, 4, 6) and net.report["penalty"] > 0.0
    with pytest.raises(VariableError):
        gg.learn_markov(data, "a - d")
    with pytest.raises(ModelError, match="at least 20 rows"):
        gg.learn_markov({name: values[:5] for name, values in data.items()}, "a - b")
    with pytest.raises(VariableError, match="was observed"):
        net.query("a", {"a": 0.0})


def test_best_values_are_where_the_density_is_largest():
    """Two peaks each: 60 % of the rows are in both first ones; the ratio p(x, y) / p(x) p(y) is larger in the last."""
    rng = np.random.default_rng(0)
    peak = rng.choice(4, size=2000, p=[0.6, 0.1, 0.1, 0.2])
    x, y = (np.where(at, 1.0, -1.0) + 0.15 * rng.normal(size=2000) for at in (peak // 2, peak % 2))
    net = gg.learn_markov({"x": x, "y": y}, "x - y", cells=32, rank=4, penalty=1e-3)
    assert net.map_query() == pytest.approx({"x": -1.0, "y": -1.0}, abs=0.25)
