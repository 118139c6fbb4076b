"""Cholesky factors and inverses that let other threads run."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.linalg import unlocked
from gramgraph.linalg.unlocked import triangle


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n", [1, 5, 130])
def test_factor_and_inverse(rng, monkeypatch, n, known, dtype) -> None:
    if not known:  # a SciPy whose routines take other arguments
        monkeypatch.setattr(unlocked, "_routine", lambda name: None)
    A = rng.normal(size=(n, n))
    A = (A @ A.T + n * np.eye(n)).astype(dtype)
    L = A.copy()
    assert triangle("potrf", L) == 0
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), atol=tolerance * n)
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))
    assert triangle("potri", L) == 0
    np.testing.assert_allclose(np.tril(L), np.tril(np.linalg.inv(A)), atol=tolerance)


def test_the_pivot_that_broke_is_told() -> None:
    assert triangle("potrf", np.diag([1.0, 2.0, -1.0, 1.0])) == 3


@pytest.mark.parametrize("name", ["dpotrf", "spotrf", "dpotri", "spotri"])
def test_routines_of_this_scipy_are_known(name: str) -> None:
    assert unlocked._routine(name) is not None
