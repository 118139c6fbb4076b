"""Incomplete Cholesky, Nyström, blocks and streams against the Gram matrix itself."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Kernel, Pull
from gramgraph.linalg import (
    FeatureSums,
    LowRank,
    PositiveDefiniteError,
    accumulate,
    kernel_matvec,
    leverage_scores,
    nystrom,
    pivoted_cholesky,
    pivoted_cholesky_matrix,
    select_landmarks,
)
from tests.portions import examples


@dataclass(frozen=True, eq=False, repr=False)
class Gauss(Kernel):
    """exp(−‖x − x′‖² / 2), with noise on the diagonal: the smallest kernel that shows all cases."""

    noise: float = 0.0

    def _diag(self, X: Any) -> np.ndarray:
        return np.full(len(X), 1.0 + self.noise)

    def _pullback(self, X: Any, Y: Any, inputs: bool) -> tuple[np.ndarray, Pull]:
        raise NotImplementedError

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        Z = X if Y is None else Y
        K = np.exp(-0.5 * ((X[:, None] - Z) ** 2).sum(-1))
        return K + self.noise * np.eye(len(X)) if Y is None else K


@dataclass(frozen=True, eq=False, repr=False)
class Words(Kernel):
    """Number of letters that two words share: inputs that are no vectors."""

    def prepare(self, X: Any) -> Any:
        return list(X)

    def _diag(self, X: Any) -> np.ndarray:
        return np.array([float(len(set(x))) for x in X])

    def _pullback(self, X: Any, Y: Any, inputs: bool) -> tuple[np.ndarray, Pull]:
        raise NotImplementedError

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return np.array([[float(len(set(x) & set(y))) for y in (X if Y is None else Y)] for x in X])


WORDS = ["tree", "root", "bark", "leaf", "tree", "kernel", "gram"]


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 3), noise=st.sampled_from([0.0, 0.1]))
def test_pivoted_cholesky_laws(seed: int, n: int, d: int, noise: float) -> None:
    X = np.random.default_rng(seed).standard_normal((n, d))
    X[n // 2 :] = X[: n - n // 2]  # duplicates
    kernel = Gauss(noise)
    K = kernel.gram(X)
    whole = pivoted_cholesky(kernel, X, tol=0.0)
    np.testing.assert_allclose(whole.L @ whole.L.T, K, atol=1e-7)
    assert len(set(whole.pivots.tolist())) == whole.rank
    if noise == 0.0:
        assert whole.rank <= (n + 1) // 2 + 1
    part = pivoted_cholesky(kernel, X, tol=1e-2, max_rank=5)
    E = K - part.L @ part.L.T
    assert part.rank <= 5
    assert part.residual_trace <= 1e-2 * np.trace(K) or part.rank == min(5, n)
    np.testing.assert_allclose(part.residual, E.diagonal(), atol=1e-10)
    np.testing.assert_allclose(E[part.pivots], 0.0, atol=1e-10)
    assert np.linalg.eigvalsh(E).min() > -1e-10
    again = pivoted_cholesky_matrix(K, tol=1e-2, max_rank=5)
    np.testing.assert_array_equal(again.pivots, part.pivots)
    np.testing.assert_allclose(again.L, part.L, atol=1e-12)


def test_pivoted_cholesky_reads_only_the_columns_it_needs(rng: np.random.Generator) -> None:
    widths: list[int] = []

    class Spy(Gauss):
        def _gram(self, X: Any, Y: Any) -> np.ndarray:
            widths.append(len(X) if Y is None else len(Y))
            return super()._gram(X, Y)

    found = pivoted_cholesky(Spy(), rng.standard_normal((400, 1)), tol=1e-8)
    assert widths == [1] * found.rank and found.rank < 30


def test_pivoted_cholesky_on_words_and_bad_input() -> None:
    found = pivoted_cholesky(Words(), WORDS, tol=0.0)
    np.testing.assert_allclose(found.L @ found.L.T, Words().gram(WORDS), atol=1e-10)
    assert found.rank == np.linalg.matrix_rank(Words().gram(WORDS))
    with pytest.raises(ModelError, match="max_rank"):
        pivoted_cholesky(Words(), WORDS, max_rank=0)
    with pytest.raises(PositiveDefiniteError, match="negative diagonal"):
        pivoted_cholesky_matrix(-np.eye(2))
    with pytest.raises(ModelError, match="NaN"):
        pivoted_cholesky_matrix(np.diag([1.0, np.nan]))


@pytest.mark.parametrize("method", ["uniform", "leverage", "kmeans", "pivots"])
def test_nystrom_approximates_from_below(method: Any, rng: np.random.Generator) -> None:
    X = rng.standard_normal((150, 2))
    features = nystrom(Gauss(), X, 60, method=method, random_state=1)
    Phi = features.transform(X)
    E = Gauss().gram(X) - Phi @ Phi.T
    assert np.linalg.eigvalsh(E).min() > -1e-8
    assert np.trace(E) < 0.02 * len(X)
    Z = features.landmarks
    at = features.transform(Z)
    np.testing.assert_allclose(at @ at.T, Gauss().gram(Z), atol=1e-6)
    again = nystrom(Gauss(), X, 60, method=method, random_state=1)
    np.testing.assert_array_equal(again.landmarks, Z)


def test_nystrom_is_exact_with_all_points_and_survives_duplicates(caplog: pytest.LogCaptureFixture) -> None:
    X = np.repeat(np.linspace(0.0, 20.0, 8), 2)[:, None]
    with caplog.at_level(logging.INFO, logger="gramgraph.linalg"):
        features = nystrom(Gauss(), X, 16)
    assert features.rank == 8 and "redundant" in caplog.text
    Phi = features.transform(X)
    np.testing.assert_allclose(Phi @ Phi.T, Gauss().gram(X), atol=1e-12)
    assert len(select_landmarks(Gauss(), X, 100, method="kmeans")) == 8
    assert len(select_landmarks(Gauss(), X, 100, method="pivots")) == 8


def test_leverage_scores_bound_the_exact_ones(rng: np.random.Generator) -> None:
    X = rng.standard_normal((40, 2))
    K = Gauss().gram(X)
    exact = np.diag(K @ np.linalg.inv(K + 0.3 * np.eye(40)))
    np.testing.assert_allclose(leverage_scores(Gauss(), X, 40, reg=0.3, random_state=0), exact, atol=1e-10)
    for seed in range(5):
        bound = leverage_scores(Gauss(), X, 8, reg=0.3, random_state=seed)
        assert np.all(bound >= exact - 1e-10)
    X[0] = 30.0  # a point far from all others needs a landmark of its own, sampled or not
    for seed in range(5):
        scores = leverage_scores(Gauss(), X, 12, random_state=seed)
        assert scores[0] >= 0.6 > np.median(scores)


def test_landmarks_of_words_and_errors() -> None:
    assert all(word in WORDS for word in select_landmarks(Words(), WORDS, 3, method="leverage", random_state=0))
    features = nystrom(Words(), WORDS, 7, method="pivots")
    np.testing.assert_allclose(features.transform(WORDS) @ features.transform(WORDS).T, Words().gram(WORDS), atol=1e-9)
    with pytest.raises(ModelError, match="vectors"):
        select_landmarks(Words(), WORDS, 3, method="kmeans")
    with pytest.raises(ModelError, match="Did you mean 'leverage'"):
        select_landmarks(Words(), WORDS, 3, method="leverag")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="m ≥ 1"):
        select_landmarks(Words(), WORDS, 0)


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), m=st.integers(1, 20), block=st.integers(1, 25))
def test_blocked_product_agrees(seed: int, n: int, m: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, 2)), rng.standard_normal((m, 2))
    kernel = Gauss(0.2)
    v, V = rng.standard_normal(m), rng.standard_normal((n, 2))
    np.testing.assert_allclose(kernel_matvec(kernel, X, Y, v, block=block), kernel.gram(X, Y) @ v, atol=1e-12)
    np.testing.assert_allclose(kernel_matvec(kernel, X, None, V, block=block), kernel.gram(X) @ V, atol=1e-12)


def test_stream_of_blocks_equals_the_whole(rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((100, 2)), rng.standard_normal((100, 3))
    features = nystrom(Gauss(), X, 10, random_state=0)
    stream = ((X[i : i + 17], y[i : i + 17]) for i in range(0, 100, 17))
    sums = accumulate(stream, features.transform)
    Phi = features.transform(X)
    np.testing.assert_allclose(sums.G, Phi.T @ Phi, atol=1e-10)
    np.testing.assert_allclose(sums.c, Phi.T @ y, atol=1e-10)
    np.testing.assert_allclose(sums.yy, (y**2).sum(axis=0))
    assert sums.n == 100
    # weights in feature space and the dual solution of the low-rank matrix predict the same
    dual = Phi @ (Phi.T @ LowRank(Phi, 0.1).factor().solve(y))
    np.testing.assert_allclose(Phi @ sums.weights(0.1), dual, atol=1e-8)
    with pytest.raises(ModelError, match="no blocks"):
        accumulate([])


def test_weighted_sums_equal_repeated_rows(rng: np.random.Generator) -> None:
    Phi, y, w = rng.standard_normal((6, 2)), rng.standard_normal(6), np.array([1, 2, 0, 3, 1, 1])
    weighted = FeatureSums.of(Phi, y, w)
    repeated = FeatureSums.of(np.repeat(Phi, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.weights(0.5), repeated.weights(0.5))
    np.testing.assert_allclose(weighted.yy, repeated.yy)


def test_sums_of_a_single_feature_and_empty_block() -> None:
    empty = FeatureSums.of(np.empty((0, 1)), np.empty(0))
    one = FeatureSums.of(np.ones((2, 1)), np.array([1.0, 3.0]))
    assert (empty + one).weights(0.0) == pytest.approx(2.0)
