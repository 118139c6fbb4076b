"""Rank-one changes of a Cholesky factor against factoring again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.linalg import Dense, DenseFactor, PositiveDefiniteError, append, delete, downdate, update
from tests.portions import examples


def _factor(A: np.ndarray) -> DenseFactor:
    factor = Dense(A).factor()
    assert isinstance(factor, DenseFactor)
    return factor


def _spd(rng: np.random.Generator, n: int) -> np.ndarray:
    B = rng.standard_normal((n, n))
    return B @ B.T + 0.3 * np.eye(n)


cases = given(seed=st.integers(0, 10**6), n=st.integers(2, 12))


@settings(max_examples=examples(40))
@cases
def test_update_and_downdate(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    A, x = _spd(rng, n), rng.standard_normal(n)
    factor = _factor(A)
    up = update(factor, x)
    np.testing.assert_allclose(up.lower(), np.linalg.cholesky(A + np.outer(x, x)), atol=1e-10)
    back = downdate(up, x)
    np.testing.assert_allclose(back.lower(), np.linalg.cholesky(A), atol=1e-8)
    np.testing.assert_allclose(factor.lower(), np.linalg.cholesky(A), atol=1e-12)  # values are not changed


@settings(max_examples=examples(40))
@cases
def test_append_and_delete(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    q = int(rng.integers(1, n))
    A = _spd(rng, n)
    k = n - q
    factor = append(_factor(A[:k, :k]), A[:k, k:], A[k:, k:])
    np.testing.assert_allclose(factor.lower(), np.linalg.cholesky(A), atol=1e-10)
    i = int(rng.integers(n))
    keep = [j for j in range(n) if j != i]
    smaller = delete(factor, i)
    np.testing.assert_allclose(smaller.lower(), np.linalg.cholesky(A[np.ix_(keep, keep)]), atol=1e-9)
    np.testing.assert_allclose(delete(factor, i - n).lower(), smaller.lower())


def test_long_sequence_stays_accurate(rng: np.random.Generator) -> None:
    x = rng.standard_normal((60, 2))
    K = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(-1)) + 1e-3 * np.eye(60)
    members = list(range(20))
    factor = _factor(K[:20, :20])
    for step in range(20, 60):
        factor = factor.append(K[members, step], K[step, step])
        members.append(step)
        gone = int(rng.integers(len(members)))
        factor = factor.delete(gone)
        del members[gone]
    np.testing.assert_allclose(factor.lower(), np.linalg.cholesky(K[np.ix_(members, members)]), atol=1e-9)


def test_append_of_a_duplicate_reports_jitter() -> None:
    factor = _factor(np.array([[1.0, 0.5], [0.5, 1.0]]))
    larger = factor.append(np.array([1.0, 0.5]), 1.0)
    assert 0.0 < larger.jitter <= 1e-12
    expected = np.array([[1.0, 0.5, 1.0], [0.5, 1.0, 0.5], [1.0, 0.5, 1.0 + larger.jitter]])
    np.testing.assert_allclose(larger.lower() @ larger.lower().T, expected, atol=1e-15)
    with pytest.raises(PositiveDefiniteError):
        factor.append(np.array([1.0, 0.5]), 0.9)
    with pytest.raises(PositiveDefiniteError):
        factor.append(np.array([1.0, 0.5]), 1.0, max_jitter=0.0)


def test_downdate_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(PositiveDefiniteError, match="below 1"):
        downdate(_factor(np.eye(2)), np.array([1.0, 0.0]))


def test_errors_of_shape_and_index() -> None:
    factor = _factor(np.eye(3))
    with pytest.raises(ModelError, match="rows 0 to 2"):
        delete(factor, 3)
    with pytest.raises(ModelError, match="only row"):
        delete(_factor(np.eye(1)), 0)
    with pytest.raises(ModelError, match="new columns"):
        append(factor, np.ones((3, 2)), 1.0)
    with pytest.raises(ModelError, match="x must"):
        update(factor, np.ones(2))
