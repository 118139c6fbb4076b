"""Every representation agrees with plain dense algebra; laws that all of them share."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import GramGraphError, ModelError
from gramgraph.linalg import (
    Dense,
    DenseFactor,
    Factored,
    Features,
    GramMatrix,
    Kronecker,
    LowRank,
    PositiveDefiniteError,
    SingleFactor,
    Toeplitz,
    sample,
)
from tests.portions import examples


def _spd(rng: np.random.Generator, n: int) -> np.ndarray:
    B = rng.standard_normal((n, n))
    return B @ B.T + 0.5 * np.eye(n)


def _toeplitz(rng: np.random.Generator, n: int) -> Toeplitz:
    return Toeplitz(np.exp(-np.arange(n) * rng.uniform(0.1, 2.0)) + 0.3 * np.eye(1, n)[0])


KINDS: dict[str, Any] = {
    "dense": lambda rng, n: Dense(_spd(rng, n)),
    "low rank": lambda rng, n: LowRank(rng.standard_normal((n, 1 + n // 2)), rng.uniform(0.2, 2.0, n)),
    "many features": lambda rng, n: Features(rng.standard_normal((n, n + 3)), 0.7),
    "features": lambda rng, n: Features(rng.standard_normal((n, 2)), 0.3),
    "kronecker": lambda rng, n: Kronecker((_spd(rng, n), _spd(rng, 3)), 0.2),
    "kronecker of three": lambda rng, n: Kronecker((_spd(rng, 2), _spd(rng, n), _spd(rng, 2))),
    "toeplitz": _toeplitz,
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9))
def test_representation_agrees_with_dense_algebra(kind: str, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    gram = KINDS[kind](rng, n)
    A = gram.to_dense()
    factor = gram.factor()
    assert isinstance(gram, GramMatrix) and isinstance(factor, Factored)
    assert gram.n == factor.n == len(A)
    assert factor.jitter == 0.0
    np.testing.assert_allclose(A, A.T, rtol=1e-13)
    np.testing.assert_allclose(gram.diag(), A.diagonal(), rtol=1e-12)
    inverse = np.linalg.inv(A)
    for B in (rng.standard_normal(len(A)), rng.standard_normal((len(A), 3))):
        np.testing.assert_allclose(gram.matvec(B), A @ B, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(factor.solve(B), inverse @ B, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(factor.logdet, np.linalg.slogdet(A)[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.inverse_diag(), inverse.diagonal(), rtol=1e-7)
    H = factor.half(np.eye(factor.half_width))
    np.testing.assert_allclose(H @ H.T, A, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.half(np.eye(factor.half_width)[0]), H[:, 0], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_shapes_are_named(kind: str, rng: np.random.Generator) -> None:
    gram = KINDS[kind](rng, 4)
    with pytest.raises(ModelError, match="right-hand side"):
        gram.factor().solve(np.ones(gram.n + 1))
    with pytest.raises(ModelError, match=r"shape"):
        gram.matvec(np.ones((1, gram.n, 1)))


def test_sample_has_the_covariance(rng: np.random.Generator) -> None:
    gram = LowRank(np.array([[1.0], [-1.0], [2.0]]), 0.5)
    draws = sample(gram.factor(), 40_000, random_state=3)
    assert draws.shape == (40_000, 3)
    # standard error of a variance of 4.5 is 4.5 √(2 / 40000) = 0.03; seeded, no false alarms
    np.testing.assert_allclose(draws.T @ draws / len(draws), gram.to_dense(), atol=0.12)
    np.testing.assert_array_equal(draws[:5], sample(gram.factor(), 40_000, random_state=3)[:5])


# ------------------------------------------------------------------------------------------------------ jitter


def test_duplicate_points_get_jitter_that_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    x = np.array([0.0, 0.0, 1.0, 1.0, 2.0])
    K = np.exp(-0.5 * (x[:, None] - x) ** 2)
    with caplog.at_level(logging.INFO, logger="gramgraph.linalg"):
        factor = Dense(K).factor()
    assert 0.0 < factor.jitter <= 1e-12
    assert "added" in caplog.text and f"{factor.jitter:.1e}" in caplog.text
    y = K @ np.arange(5.0)
    np.testing.assert_allclose(K @ factor.solve(y), y, atol=1e-6)
    np.testing.assert_allclose(factor.lower() @ factor.lower().T, K + factor.jitter * np.eye(5), atol=1e-14)


def test_ill_conditioned_gram_is_factored_in_place_after_failures() -> None:
    x = np.linspace(0.0, 1.0, 300)  # more than one block of the restoring loop
    K = np.exp(-0.5 * (x[:, None] - x) ** 2)
    A = K.copy()
    factor = Dense(A).factor(overwrite=True)
    assert isinstance(factor, DenseFactor) and factor.L is A
    assert factor.jitter > 0.0
    L = factor.lower()
    np.testing.assert_allclose(L @ L.T, K + factor.jitter * np.eye(300), atol=1e-12)
    np.testing.assert_array_equal(np.triu(A, 1), np.triu(K, 1))


def test_matrix_is_not_touched_without_overwrite(rng: np.random.Generator) -> None:
    A = _spd(rng, 5)
    kept = A.copy()
    Dense(A).factor()
    Dense(np.asfortranarray(A)).factor(overwrite=True)
    np.testing.assert_array_equal(A, kept)
    frozen = A.copy()
    frozen.setflags(write=False)
    np.testing.assert_allclose(Dense(frozen).factor(overwrite=True).solve(A), np.eye(5), atol=1e-12)


@pytest.mark.parametrize(
    "gram",
    [
        Dense(np.array([[1.0, 2.0], [2.0, 1.0]])),
        Dense(-np.eye(3)),
        Dense(np.zeros((2, 2))),
        Kronecker((np.array([[1.0, 2.0], [2.0, 1.0]]), np.eye(2))),
        Toeplitz(np.array([1.0, 2.0, 0.0])),
        Toeplitz(np.zeros(3)),
        LowRank(np.zeros((3, 1)), 0.0),
    ],
)
def test_indefinite_matrix_is_refused_with_help(gram: Any) -> None:
    with pytest.raises(PositiveDefiniteError, match="Try:") as caught:
        gram.factor()
    assert isinstance(caught.value, np.linalg.LinAlgError) and isinstance(caught.value, GramGraphError)


def test_jitter_limit_is_obeyed() -> None:
    K = np.ones((3, 3))
    with pytest.raises(PositiveDefiniteError):
        Dense(K).factor(max_jitter=0.0)
    nearly = K - 1e-5 * np.array([[0.0, 1, 1], [1, 0, -1], [1, -1, 0]])
    with pytest.raises(PositiveDefiniteError):
        Dense(nearly).factor()
    assert 1e-6 < Dense(nearly).factor(max_jitter=1e-3).jitter <= 1e-3


@pytest.mark.parametrize("gram", [Toeplitz(np.ones(4)), Kronecker((np.ones((2, 2)), np.eye(2)))])
def test_singular_structures_get_jitter(gram: Any, rng: np.random.Generator) -> None:
    factor = gram.factor()
    assert 0.0 < factor.jitter < 1e-10
    y = gram.matvec(rng.standard_normal(gram.n))
    np.testing.assert_allclose(gram.matvec(factor.solve(y)), y, atol=1e-4)


def test_low_rank_without_noise_reports_jitter() -> None:
    factor = LowRank(np.array([[1.0], [2.0]]), np.array([0.0, 1.0])).factor()
    assert 0.0 < factor.jitter < 1e-13
    with pytest.raises(PositiveDefiniteError, match="negative"):
        LowRank(np.ones((2, 1)), -1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(1, 0), (2, 2)])
def test_nan_is_named_with_its_place(bad: float, place: tuple[int, int]) -> None:
    A = np.eye(3)
    A[place] = A[place[::-1]] = bad
    with pytest.raises(ModelError, match="NaN or infinite"):
        Dense(A).factor()
    with pytest.raises(ModelError, match="NaN"):
        Toeplitz(np.array([1.0, bad]))


# ---------------------------------------------------------------------------------------------- dense extras


@pytest.mark.parametrize("n", [1, 7, 270])
def test_inverse_by_potri(n: int, rng: np.random.Generator) -> None:
    A = _spd(rng, n) + n * np.eye(n)
    factor = Dense(A).factor()
    assert isinstance(factor, DenseFactor)
    expected = np.linalg.inv(A)
    np.testing.assert_allclose(factor.inverse(), expected, atol=1e-12)
    np.testing.assert_allclose(np.tril(factor.inverse(triangle="lower")), np.tril(expected), atol=1e-12)
    np.testing.assert_allclose(factor.solve(A), np.eye(n), atol=1e-9)  # the factor was not destroyed
    b = rng.standard_normal(n)
    np.testing.assert_allclose(np.sum(factor.half_solve(b) ** 2), b @ expected @ b)
    np.testing.assert_allclose(factor.inverse(overwrite=True), expected, atol=1e-12)


def test_single_precision_solves_to_double_accuracy(rng: np.random.Generator) -> None:
    x = rng.standard_normal((200, 3))
    K = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(-1)) + 0.1 * np.eye(200)
    factor = Dense(K).factor(precision="single")
    assert isinstance(factor, SingleFactor) and isinstance(factor, Factored)
    assert factor.factor.L.dtype == np.float32
    for B in (rng.standard_normal(200), 1e30 * rng.standard_normal((200, 2)), np.zeros(200)):
        expected = np.linalg.solve(K, B)
        np.testing.assert_allclose(factor.solve(B), expected, atol=1e-11 * np.abs(expected).max(initial=1.0))
    double = Dense(K).factor()
    assert abs(factor.logdet - double.logdet) < 1e-4 * abs(double.logdet)
    np.testing.assert_allclose(factor.inverse_diag(), double.inverse_diag(), rtol=1e-4)
    Z = rng.standard_normal(200)
    np.testing.assert_allclose(factor.half(Z), double.half(Z), atol=1e-4)


def test_single_precision_is_left_where_it_is_not_safe(caplog: pytest.LogCaptureFixture) -> None:
    x = np.linspace(0.0, 1.0, 40)
    K = np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-8 * np.eye(40)
    with caplog.at_level(logging.INFO, logger="gramgraph.linalg"):
        factor = Dense(K).factor(precision="single")
    assert isinstance(factor, DenseFactor) and factor.L.dtype == np.float64
    assert "double precision" in caplog.text
    with pytest.raises(ModelError, match="Did you mean 'single'"):
        Dense(K).factor(precision="singel")  # type: ignore[arg-type]


def test_float32_matrix_stays_float32(rng: np.random.Generator) -> None:
    A = _spd(rng, 20).astype(np.float32)
    factor = Dense(A).factor()
    assert isinstance(factor, DenseFactor) and factor.L.dtype == np.float32
    b = rng.standard_normal(20).astype(np.float32)
    np.testing.assert_allclose(A @ factor.solve(b), b, atol=1e-3)


def test_shapes_at_the_door() -> None:
    for bad in (np.ones((2, 3)), np.ones(3), np.empty((0, 0))):
        with pytest.raises(ModelError, match="square"):
            Dense(bad)
    with pytest.raises(ModelError, match="at least one factor"):
        Kronecker(())
    with pytest.raises(ModelError, match="first column"):
        Toeplitz(np.eye(2))
    with pytest.raises(ModelError, match="d must be"):
        LowRank(np.ones((3, 1)), np.ones(2))


def test_feature_weights_are_ridge_weights(rng: np.random.Generator) -> None:
    Phi, y = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    gram = Features(Phi, 0.4)
    np.testing.assert_allclose(gram.weights(y), Phi.T @ gram.factor().solve(y))
    np.testing.assert_allclose(gram.weights(y), np.linalg.solve(Phi.T @ Phi + 0.4 * np.eye(3), Phi.T @ y))
