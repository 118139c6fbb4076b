"""Mixtures of wrapped normal densities: laws of the densities, of leaving out, and of the weights that mix them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.cells.density import line_density
from gramgraph.cells.mixture_weights import mixture_weights
from gramgraph.cells.torus import TorusMixture, binned, crossed
from tests.portions import examples

RNG = np.random.default_rng
GRID = -np.pi + 2.0 * np.pi / 240 * np.arange(240)
STEP = 2.0 * np.pi / 240


def turned(x: np.ndarray) -> np.ndarray:
    return np.angle(np.exp(1j * x))


def tilted(n: int, seed: int) -> np.ndarray:
    """Two peaks, one of them across the seam; in both of them the angles move together."""
    rng = RNG(seed)
    z = rng.normal(size=(n, 2)) @ np.array([[0.3, 0.25], [0.0, 0.1]])
    return turned(np.where(rng.random((n, 1)) < 0.6, [3.0, -0.7], [-1.1, 2.3]) + z)


def log_truth(X: np.ndarray) -> np.ndarray:
    A = np.array([[0.3, 0.25], [0.0, 0.1]])
    form, det = np.linalg.inv(A.T @ A), abs(np.linalg.det(A))
    parts = []
    for w, center in ((0.6, [3.0, -0.7]), (0.4, [-1.1, 2.3])):
        d = turned(X - center)
        parts.append(w * np.exp(-0.5 * np.einsum("ij,jk,ik->i", d, form, d)) / (2.0 * np.pi * det))
    return np.log(parts[0] + parts[1])


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([1, 2]))
def test_densities_are_densities(seed, size, angles):
    rng = RNG(seed)
    X = turned(rng.normal(rng.uniform(-3, 3, angles), 0.2, size=(int(rng.integers(2, 60)), angles)))
    found = TorusMixture.of(X, np.ones(len(X)), size=size, spread=0.1, seed=seed)
    assert found.weights.sum() + found.uniform == pytest.approx(1.0, abs=1e-6) and (found.weights >= 0.0).all()
    assert 1 <= len(found.weights) <= size
    if angles == 1:
        p = found.density(GRID[:, None])
    else:
        p = found.density(np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(240, 240)
        for which in (0, 1):
            margin = found.margin(which).density(GRID[:, None])
            assert np.allclose(p.sum(axis=1 - which) * STEP, margin, atol=1e-3 * margin.max())
    assert (p > 0.0).all()
    assert p.sum() * STEP**angles == pytest.approx(1.0, abs=2e-3)  # wide components are cut off at their antipodes


def test_turning_the_circle_turns_the_answer():
    X = tilted(500, 0)
    Y = turned(np.add(X, (2.0, -1.3)))
    found, other = (TorusMixture.of(Z, np.ones(500), size=4, spread=0.1) for Z in (X, Y))
    assert np.allclose(other.density(Y), found.density(X), rtol=1e-6)


def test_sweeps_gain_and_counts_are_copies():
    X = tilted(300, 1)
    few = TorusMixture.of(X, np.ones(300), size=3, spread=0.1)
    scores = [np.log(few.after(X, np.ones(300), sweeps).density(X)).sum() for sweeps in (1, 4, 16)]
    assert scores == sorted(scores)
    counts = RNG(0).integers(1, 4, size=300)
    twice = few.after(np.repeat(X, counts, axis=0), np.ones(counts.sum()), 5)
    once = few.after(X, counts.astype(float), 5)
    assert np.allclose(once.density(X), twice.density(X), rtol=1e-9)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 300))
def test_a_sweep_and_densities_as_by_the_definition(seed, n):
    """Narrow components, which are left out far from their centers, and blocks that are not full."""
    rng = RNG(seed)
    X, counts = rng.uniform(-np.pi, np.pi, size=(n, 2)), rng.integers(0, 4, n) + 0.5
    k, spread = 5, 0.1
    sd, r = rng.uniform(0.05, 1.0, (k, 2)), rng.uniform(-0.95, 0.95, k)
    cov = np.stack([sd[:, 0] ** 2, r * sd[:, 0] * sd[:, 1], sd[:, 1] ** 2], axis=1)
    start = TorusMixture(np.full(k, 0.18), rng.uniform(-np.pi, np.pi, (k, 2)), cov, 0.1, 2, spread)
    d = turned(X[:, None] - start.centers)
    full = np.stack([cov[:, [0, 1]], cov[:, [1, 2]]], axis=1)
    e = np.einsum("nki,kij,nkj->nk", d, np.linalg.inv(full), d)
    parts = 0.18 * np.exp(-0.5 * e) / (2.0 * np.pi * np.sqrt(np.linalg.det(full)))
    total = parts.sum(axis=1) + 0.1 / (2.0 * np.pi) ** 2
    assert np.allclose(start.density(X), total, rtol=1e-5)  # e⁻²⁰ of a narrow peak, beside little background
    share = parts * (counts / total)[:, None]
    mass = share.sum(axis=0)
    mean = np.einsum("nk,nki->ki", share, d) / np.maximum(mass, 1e-300)[:, None]
    second = np.einsum("nk,nki,nkj->kij", share, d, d) - mass[:, None, None] * np.einsum("ki,kj->kij", mean, mean)
    second = (second + 3.0 * spread**2 * np.eye(2)) / (mass + 3.0)[:, None, None]
    once = start.after(X, counts, 1)
    assert np.allclose(once.weights, mass / (counts.sum() + 0.5), rtol=1e-4, atol=1e-7)
    seen = mass > 1e-3
    assert np.allclose(turned(once.centers - start.centers - mean)[seen], 0.0, atol=1e-4)
    assert np.allclose(once.covariances, second[:, [0, 0, 1], [0, 1, 1]], atol=1e-5)


def test_ratio_is_the_joint_over_both_margins():
    X = tilted(400, 2)
    found = TorusMixture.of(X, np.ones(400), size=4, spread=0.1)
    margins = found.margin(0).density(X[:5, :1]) * found.margin(1).density(X[:5, 1:])
    assert np.allclose(found.ratio(X[:5]), found.density(X[:5]) / margins)
    assert np.allclose(np.diag(found.table(X[:5, 0], X[:5, 1])), found.ratio(X[:5]))


def test_every_point_is_left_out_once_and_then_predicted_less_well():
    X = tilted(400, 3)
    found = TorusMixture.of(X, np.ones(400), size=16, spread=0.05)
    left, times = np.zeros(400), np.zeros(400, dtype=int)
    for out, without in crossed(found, X, np.ones(400)):
        left[out] = without.density(X[out])
        times += out
    fresh = np.log(found.density(tilted(4000, 4))).mean()
    inside = np.log(found.density(X)).mean()
    assert (times == 1).all() and np.log(left).mean() < inside - 0.05
    assert np.log(left).mean() == pytest.approx(fresh, abs=0.25) and inside > fresh  # as far below as on new points


def test_points_of_pairs_keep_their_rows():
    X = np.vstack([tilted(300, 5), tilted(300, 5)[:50], [[np.pi, -np.pi], [-np.pi, np.pi]]])
    points, counts, of_row = binned(X)
    assert counts.sum() == len(X) and (np.bincount(of_row) == counts).all()
    assert np.abs(turned(points[of_row] - X)).max() <= np.pi / 256 + 1e-12
    assert of_row[-1] == of_row[-2]


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(2, 40))
def test_weights_lie_on_the_simplex_and_beat_every_single_part(seed, parts, n):
    L = RNG(seed).lognormal(0.0, 1.5, size=(parts, n))
    w = mixture_weights(L, tol=1e-9, sweeps=1000)
    assert (w >= 0.0).all() and w.sum() == pytest.approx(1.0)
    assert np.log(w @ L).mean() >= np.log(L).mean(axis=1).max() - 1e-6


def test_angles_that_move_together_are_learned_nearly_as_well_as_if_their_family_were_known():
    fit, test = tilted(1500, 6), tilted(5000, 7)
    tree = gg.learn_tree(pd.DataFrame(fit, columns=["x", "y"]), "kernel", domains={"x": "circle", "y": "circle"})
    assert tree.edge("x", "y").kinds["torus"] > 0.5
    gap = log_truth(test) - tree.log_likelihood(pd.DataFrame(test, columns=["x", "y"]))
    assert gap.mean() < 0.03  # 0.056 with kernels alone
    at = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1).reshape(-1, 2)
    total = np.exp(tree.log_likelihood(pd.DataFrame(at, columns=["x", "y"]))).sum() * STEP**2
    assert total == pytest.approx(1.0, abs=5e-3)


def test_density_of_an_angle_near_the_truth():
    rng = RNG(0)
    draw = lambda n: turned(np.where(rng.random(n) < 0.3, 3.1, 0.5) + rng.normal(0.0, 0.2, n))  # noqa: E731
    found, fresh = line_density(draw(1500), "circle"), draw(5000)
    bump = lambda c: np.exp(-0.5 * (turned(fresh - c) / 0.2) ** 2) / (0.2 * np.sqrt(2.0 * np.pi))  # noqa: E731
    gap = np.log(0.3 * bump(3.1) + 0.7 * bump(0.5)) - found.log_density(fresh)
    assert gap.mean() < 0.01  # 0.012 with kernels alone
    assert found.masses.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((40, 2)),
        np.tile([[np.pi, 1.0], [-np.pi, 1.0]], (20, 1)),
        np.repeat(tilted(4, 8), 30, axis=0),
        tilted(6, 9),
    ],
    ids=["constant", "seam", "repeated", "few"],
)
def test_never_nan(X):
    tree = gg.learn_tree(
        {"x": X[:, 0], "y": X[:, 1]}, "kernel", domains={"x": "circle", "y": "circle"}, edges=[("x", "y")]
    )
    at = np.stack(np.meshgrid(GRID[::8], GRID[::8], indexing="ij"), axis=-1).reshape(-1, 2)
    assert np.isfinite(tree.log_likelihood({"x": at[:, 0], "y": at[:, 1]})).all()


def test_saved_trees_answer_the_same(tmp_path):
    X = tilted(600, 10)
    tree = gg.learn_tree(
        {"x": X[:, 0], "y": X[:, 1]}, "kernel", domains={"x": "circle", "y": "circle"}, edges=[("x", "y")]
    )
    tree.save(tmp_path / "tree.npz")
    again = gg.embeddings.KernelTree.load(tmp_path / "tree.npz")
    frame = {"x": X[:50, 0], "y": X[:50, 1]}
    assert np.array_equal(tree.log_likelihood(frame), again.log_likelihood(frame))
    assert again.edge("x", "y").kinds.keys() == tree.edge("x", "y").kinds.keys()


def test_same_numbers_without_compilation():
    code = (
        "import json, numpy as np\n"
        "from gramgraph.cells.torus import TorusMixture\n"
        "X = np.random.default_rng(0).vonmises([3.0, 0.5], 4.0, size=(80, 2))\n"
        "print(json.dumps(TorusMixture.of(X, np.ones(80), size=3, spread=0.1).density(X[:9]).tolist()))\n"
    )
    found = []
    for flag in ("0", "1"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": flag, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        found.append(json.loads(run.stdout))
    assert found[0] == pytest.approx(found[1], rel=1e-9)
