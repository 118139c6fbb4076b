"""Density ratios, anchors, and what they are for: tables on which the discrete engines run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.embeddings import anchor_points, density_ratio
from gramgraph.kernels import RBF, Delta
from tests.portions import examples

RNG = np.random.default_rng


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=3, max_size=40))
def test_delta_kernel_is_the_ratio_of_tables(data):
    x, y = np.array(data).T
    joint = np.zeros((4, 3))
    np.add.at(joint, (x, y), 1.0 / len(x))
    rows, columns = np.flatnonzero(joint.sum(1)), np.flatnonzero(joint.sum(0))
    joint = joint[np.ix_(rows, columns)]
    p, q = joint.sum(1), joint.sum(0)
    edge = density_ratio(x, y, kernel_x=Delta(), kernel_y=Delta(), reg=0.0)
    ratio = joint / (p[:, None] * q)
    assert np.allclose(edge.matrix(rows, columns), ratio, atol=1e-9)
    assert edge.smi == pytest.approx(0.5 * ((joint * ratio).sum() - 1.0), abs=1e-9)
    compiled = edge.compile(rows, columns, p, q, floor=0.0)
    assert np.allclose(compiled.joint, joint, atol=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_gaussian_pair(rho):
    rng = RNG(0)
    x = rng.normal(size=2000)
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=2000)
    edge = density_ratio(x, y)
    truth = -0.5 * np.log(1 - rho**2)
    assert edge.log_score == pytest.approx(truth, abs=0.05)
    assert edge.smi == pytest.approx(0.5 * rho**2 / (1 - rho**2), abs=0.25 * rho**2 + 0.02)
    a, b = np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 0.5, 1.0], indexing="ij")
    log_ratio = truth - (rho**2 * (a**2 + b**2) - 2 * rho * a * b) / (2 * (1 - rho**2))
    assert np.allclose(edge.matrix([-1.0, 0.0, 1.0], [-1.0, 0.5, 1.0]), np.exp(log_ratio), atol=0.3)
    assert np.allclose(edge(a[:, 0], b[0]), edge.matrix(a[:, 0], b[0]).diagonal())


@pytest.mark.parametrize("score", ["log", "squares"])
def test_dependence_without_correlation_and_on_the_circle(score):
    rng = RNG(1)
    x = rng.normal(size=600)
    edge = density_ratio(x, x**2 + 0.3 * rng.normal(size=600), score=score)
    assert edge.smi > 10 * density_ratio(x, rng.normal(size=600), score=score).smi
    angle = rng.uniform(0, 2 * np.pi, 600)
    turned = density_ratio(angle, angle + 0.4 * rng.normal(size=600), domain_x="circle", domain_y="circle", score=score)
    assert np.allclose(turned.matrix([0.1], [0.2]), turned.matrix([0.1 + 2 * np.pi], [0.2 - 2 * np.pi]))
    assert turned([0.0], [6.2])[0] > 2.0 > 0.5 > turned([0.0], [np.pi])[0]


@pytest.mark.parametrize("domain", [None, "circle"])
def test_compiled_tables_are_proper(domain):
    rng = RNG(2)
    x = rng.vonmises(0.0, 1.0, 700)
    y = x + 0.5 * rng.normal(size=700)
    a, b = anchor_points(x, 40, domain=domain), anchor_points(y, 30, domain=domain)
    edge = density_ratio(x, y, domain_x=domain, domain_y=domain)
    table = edge.compile(a.points, b.points, a.weights, b.weights)
    assert table.residual < 1e-8 and table.R.min() > 0.0
    assert np.allclose(table.joint.sum(1), a.weights, atol=1e-9)
    assert np.allclose(table.joint.sum(0), b.weights, atol=1e-9)
    assert 0.0 <= table.negative_mass < 0.2


def test_chain_on_anchors_answers_like_the_truth():
    # x ~ N(0, 1), y = 2 sin(1.5 x) + noise, z = y² / 2 + noise; E[x | z] and E[z | x] from a fine grid
    rng = RNG(3)
    n, m = 3000, 60
    x = rng.normal(size=n)
    y = 2 * np.sin(1.5 * x) + 0.4 * rng.normal(size=n)
    z = y**2 / 2 + 0.4 * rng.normal(size=n)
    cells = {name: anchor_points(v, m) for name, v in {"x": x, "y": y, "z": z}.items()}
    factors = {(name,): a.weights for name, a in cells.items()}
    for (a, u), (b, v) in ((("x", x), ("y", y)), (("y", y), ("z", z))):
        left, right = cells[a], cells[b]
        factors[a, b] = density_ratio(u, v).compile(left.points, right.points, left.weights, right.weights).R
    net = gg.MarkovNetwork(factors)
    free = net.query("y")["y"].probabilities
    assert np.allclose(free, cells["y"].weights, atol=1e-8)  # no evidence: the empirical marginal
    grid = np.linspace(-6, 6, 601)
    step = np.exp(-0.5 * ((grid[None] - 2 * np.sin(1.5 * grid[:, None])) / 0.4) ** 2)
    step /= step.sum(1, keepdims=True)
    mean_z = (grid**2 / 2) @ step.T
    for i in (10, 30, 50):
        at = float(cells["x"].points[i, 0])
        found = net.query("z", evidence={"x": str(i)})["z"].probabilities @ cells["z"].cell_means(z)
        assert found == pytest.approx(np.interp(at, grid, mean_z), abs=0.12)


def test_anchors():
    rng = RNG(4)
    x = rng.normal(size=1000)
    found = anchor_points(x, 50)
    assert len(found) == 50 and np.allclose(found.weights, 0.02)
    assert found.weights @ found.cell_means(x) == pytest.approx(x.mean())
    repeated = anchor_points([1.0, 1.0, 1.0, 2.0], 4)
    assert repeated.points.tolist() == [[1.0], [2.0]] and repeated.weights.tolist() == [0.75, 0.25]
    arcs = anchor_points([0.1, 0.2, 6.2, 3.0], 4, domain="circle")
    assert arcs.weights.tolist() == [0.5, 0.25, 0.25]
    labels = anchor_points(["b", "a", "b"])
    assert list(labels.points) == ["b", "a"] and np.allclose(labels.weights, [2 / 3, 1 / 3])
    sets = anchor_points([frozenset("ab"), frozenset("c")], domain="set")
    assert len(sets) == 2
    cloud = anchor_points(rng.normal(size=(200, 3)), 12)
    assert cloud.points.shape == (12, 3) and cloud.weights.min() > 0 and cloud.cells.shape == (200,)
    assert len(anchor_points(np.ones((9, 2)), 4)) == len(anchor_points(np.ones(9), 4)) == 1


def test_constants_give_ones():
    edge = density_ratio(np.ones(20), np.arange(20.0))
    assert np.allclose(edge.matrix([1.0, 5.0], [3.0]), 1.0) and edge.smi == 0.0
    assert np.allclose(edge.compile([1.0], [3.0, 9.0]).R, 1.0)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: density_ratio([1.0, 2.0], [1.0]), "at least 2"),
        (lambda: density_ratio([1.0, 2.0, 3.0], [1.0, 2.0]), "equally many"),
        (lambda: density_ratio([1.0, np.nan], [1.0, 2.0]), "finite"),
        (lambda: density_ratio(range(9), range(9), reg="loo"), "'cv'"),
        (lambda: density_ratio(range(9), range(9), folds=7), "folds"),
        (lambda: density_ratio(range(9), range(9), score="logg"), "Did you mean 'log'"),
        (lambda: density_ratio(range(9), range(9), domain_y="ring"), "Domains:"),
        (lambda: density_ratio(range(9), range(9), reg=0.1)([1.0], [1.0, 2.0]), "equally many"),
        (lambda: density_ratio(range(9), range(9), reg=0.1, kernel_x=RBF()).compile([1.0], [1.0], [-1.0]), "weights_x"),
        (lambda: density_ratio(range(9), range(9), reg=0.1).compile([1.0], [1.0], floor=2.0), "floor"),
        (lambda: anchor_points([1.0, 2.0], 0), "at least 1"),
        (lambda: anchor_points([1.0, 2.0], domain="ring"), "Domains:"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(gg.GramGraphError, match=words):
        call()
