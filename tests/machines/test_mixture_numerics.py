"""Loops of mixtures, interpreted and compiled, against formulas."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph._numerics.compiling import tier
from gramgraph._numerics.mixtures import statistics


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
