"""Loops of mixtures, interpreted and compiled, against formulas."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph._numerics.compiling import tier
from gramgraph._numerics.mixtures import statistics
from gramgraph.machines.discriminant import class_moments
from gramgraph.machines.mixtures.gaussian import Scale
from gramgraph.machines.mixtures.sweeps import full_pass


@pytest.mark.parametrize("name", ["plain", "compiled"])
@pytest.mark.parametrize(("d", "b"), [(1, 1), (3, 64), (6, 70), (9, 200)])
def test_whitened_squares_are_mahalanobis_distances(name: str, d: int, b: int) -> None:
    rng = np.random.default_rng(d)
    x, means = rng.normal(size=(d, b)) + 1e6, rng.normal(size=(2, d)) + 1e6
    A = rng.normal(size=(2, d, 2 * d))
    C = A @ A.swapaxes(1, 2)
    whiten = np.linalg.inv(np.linalg.cholesky(C))
    out = np.empty((2, b))
    with tier(name):
        statistics.whitened_squares(x, means, whiten, out)
    for c in range(2):
        off = x - means[c][:, None]
        assert out[c] == pytest.approx(np.einsum("ib,ib->b", off, np.linalg.solve(C[c], off)), rel=1e-8)


@pytest.mark.parametrize("name", ["plain", "compiled"])
def test_normalizing_logs_survives_what_cannot_be_written(name: str) -> None:
    logs = np.array([[-1.0, -1e4, -np.inf, 5.0, -1e300], [-2.0, -2e4, -np.inf, -np.inf, -1e300]])
    joint = np.exp(logs[:, 0])
    with tier(name):
        found = statistics.normalize_logs(logs)
    assert found == pytest.approx([np.log(joint.sum()), -1e4, -np.inf, 5.0, -1e300])
    assert logs[:, 0] == pytest.approx(joint / joint.sum())
    assert logs[:, 1:].tolist() == [[1.0, 0.5, 1.0, 0.5], [0.0, 0.5, 0.0, 0.5]]


@pytest.mark.parametrize(("k", "d", "n"), [(1, 1, 1), (2, 3, 300), (5, 20, 700), (40, 30, 33)])
def test_densities_alone_equal_those_with_moments(k: int, d: int, n: int) -> None:
    rng = np.random.default_rng(d)
    means, A = rng.normal(size=(k, d)), rng.normal(size=(k, d, 2 * d + 3))
    center, unit = 1e6 * rng.normal(size=d), 10.0 ** rng.integers(-3, 4, size=d)
    C, logs = A @ A.swapaxes(1, 2) / d, np.log(rng.dirichlet(np.ones(k)))
    x = np.ascontiguousarray(rng.normal(size=(n, d)).T)
    alone, both = full_pass(logs, means, C, moments=False), full_pass(logs, means, C)
    cuts = range(0, n, both.size)
    assert alone.logs(x) == pytest.approx(np.hstack([both.logs(x[:, at : at + both.size]) for at in cuts]), rel=1e-10)
    rows = x * unit[:, None] + center[:, None]
    assert alone.on_rows(center, unit).logs(rows) == pytest.approx(alone.logs(x), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_classes_survive_a_first_block_far_from_the_rest(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3)) + 1e5
    X[:3000] += 1e7  # the first block of its class, and more
    codes, w = np.repeat([0, 1], [6000, 3000]), rng.integers(1, 4, size=9000).astype(float) if weighted else None
    found = class_moments(X, codes, 3, w, Scale(np.full(3, 1e5), np.full(3, 2.0)))
    for c in (0, 1):
        Z, v = (X[codes == c] - 1e5) / 2.0, np.ones(9000)[codes == c] if w is None else w[codes == c]
        off = Z - v @ Z / v.sum()
        assert found.n[c] == v.sum()
        assert found.mean[c] == pytest.approx(v @ Z / v.sum(), rel=1e-12, abs=1e-9)
        assert found.scatter[c] == pytest.approx(off.T @ (v[:, None] * off), rel=1e-11)
    assert found.n[2] == 0.0
