"""Factors and inverses by halves against LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph._threads import one_thread, spare_threads
from gramgraph.linalg import Dense
from gramgraph.linalg.blocked import BLOCKED, blocked_cholesky, blocked_inverse


def matrix(n: int, ridge: float = 0.5) -> np.ndarray:
    A = np.random.default_rng(n).normal(size=(n, n))
    return A @ A.T / n + ridge * np.eye(n)


@pytest.mark.parametrize("n", [600, 640, 641, 767, 900, 1025])
@pytest.mark.parametrize("easy", [False, True])
def test_factor_and_inverse(n: int, easy: bool) -> None:
    A = matrix(n)
    L = A.copy()
    assert blocked_cholesky(L, well_conditioned=easy) == 0
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), atol=1e-12)
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))
    assert blocked_inverse(L)
    np.testing.assert_allclose(np.tril(L), np.tril(np.linalg.inv(A)), atol=1e-12)
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))


@pytest.mark.parametrize("n", [700, 1025])
@pytest.mark.parametrize("easy", [False, True])
def test_numbers_do_not_depend_on_threads(n: int, easy: bool) -> None:
    found = []
    for threads in (1, 2, 3):
        L = matrix(n)
        with one_thread(), spare_threads(threads):
            blocked_cholesky(L, well_conditioned=easy)
            factor = L.copy()
            blocked_inverse(L)
        found.append((factor, L))
    for factor, inverse in found[1:]:
        np.testing.assert_array_equal(factor, found[0][0])
        np.testing.assert_array_equal(inverse, found[0][1])


@pytest.mark.parametrize("bad", [1, 127, 128, 129, 400, 640])
@pytest.mark.parametrize("easy", [False, True])
def test_the_pivot_that_is_not_positive_is_named(bad: int, easy: bool) -> None:
    A = np.eye(640)
    A[bad - 1, bad - 1] = -1.0
    assert blocked_cholesky(A, well_conditioned=easy) == bad


def test_small_and_odd_matrices_are_left_to_lapack() -> None:
    assert blocked_cholesky(matrix(BLOCKED - 1)) is None
    assert blocked_cholesky(np.asfortranarray(matrix(BLOCKED))) is None
    assert blocked_cholesky(matrix(BLOCKED).astype(np.float32)) is None
    assert not blocked_inverse(matrix(10))


def test_ill_conditioned_matrices_keep_their_accuracy() -> None:
    x = np.linspace(0.0, 1.0, 700)
    A = np.exp(-0.5 * ((x[:, None] - x) / 0.3) ** 2) + 1e-9 * np.eye(700)
    L = A.copy()
    assert blocked_cholesky(L) == 0
    L = np.tril(L)
    assert np.abs(L @ L.T - A).max() < 1e-14 * 700


def test_one_column_and_many_give_the_same() -> None:
    factor = Dense(matrix(50)).factor()
    B = np.random.default_rng(0).normal(size=(50, 3))
    many = factor.solve(B)
    np.testing.assert_allclose(factor.solve(B[:, 0]), many[:, 0], rtol=1e-12)
    np.testing.assert_allclose(factor.solve(B[:, :1]), many[:, :1], rtol=1e-12)
    assert factor.solve(B[:, :1]).shape == (50, 1)
