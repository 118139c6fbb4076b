"""Functions Σ αᵢ k(xᵢ, ·): laws of a Hilbert space, eigenfunctions, draws, and fits against other solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Cotangent, Kernel, Pull, parameter
from gramgraph.rkhs import RKHSFunction, SpaceError, fit_representer, karhunen_loeve, mercer
from tests.portions import examples


@dataclass(frozen=True, eq=False, repr=False)
class Gauss(Kernel):
    """exp(−‖x − x′‖² / (2 ℓ²)), written out."""

    scale: float = parameter(1.0)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(len(X))

    def _pullback(self, X: Any, Y: Any, inputs: bool) -> tuple[np.ndarray, Pull]:
        assert Y is not None
        D = X[:, None] - Y
        K = np.exp(-0.5 * (D**2).sum(-1) / self.scale**2)

        def pull(bar: np.ndarray) -> Cotangent:
            G = -(bar * K)[:, :, None] * D / self.scale**2
            return Cotangent(np.zeros(1), G.sum(axis=1), -G.sum(axis=0))

        return K, pull

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return self._pullback(X, X if Y is None else Y, False)[0]


@dataclass(frozen=True, eq=False, repr=False)
class Words(Kernel):
    """Number of letters that two words share."""

    def prepare(self, X: Any) -> Any:
        return list(X)

    def _diag(self, X: Any) -> np.ndarray:
        return np.array([float(len(set(x))) for x in X])

    def _pullback(self, X: Any, Y: Any, inputs: bool) -> tuple[np.ndarray, Pull]:
        K = np.array([[float(len(set(x) & set(y))) for y in (X if Y is None else Y)] for x in X])
        return K, lambda bar: Cotangent(np.zeros(0))


def _function(rng: np.random.Generator, n: int, kernel: Kernel | None = None) -> RKHSFunction:
    return RKHSFunction(kernel or Gauss(), rng.standard_normal((n, 2)), rng.standard_normal(n))


sizes = given(seed=st.integers(0, 10**6), n=st.integers(1, 8), m=st.integers(1, 8))


@settings(max_examples=examples(40))
@sizes
def test_hilbert_space_laws(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    f, g = _function(rng, n), _function(rng, m)
    a = float(rng.standard_normal())
    X = rng.standard_normal((5, 2))
    np.testing.assert_allclose((f + g)(X), f(X) + g(X), atol=1e-12)
    np.testing.assert_allclose((f - g)(X), f(X) - g(X), atol=1e-12)
    np.testing.assert_allclose((a * f)(X), a * f(X), atol=1e-12)
    np.testing.assert_allclose((-(f / 2.0))(X), -0.5 * f(X), atol=1e-12)
    assert f.inner(g) == pytest.approx(g.inner(f), abs=1e-10)
    assert (f + a * g).inner(g) == pytest.approx(f.inner(g) + a * g.inner(g), abs=1e-9)
    assert abs(f.inner(g)) <= f.norm() * g.norm() * (1 + 1e-10) + 1e-12
    assert (f - f).norm() < 1e-6
    # reproducing property: ⟨f, k(x, ·)⟩ = f(x)
    section = RKHSFunction(Gauss(), X[:1], [1.0])
    assert f.inner(section) == pytest.approx(float(f(X[:1])[0]), abs=1e-12)


@settings(max_examples=examples(20))
@sizes
def test_gradient_agrees_with_differences(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    f, X = _function(rng, n, Gauss(0.7)), rng.standard_normal((m, 2))
    h = 1e-5
    expected = np.stack([(f(X + h * e) - f(X - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    np.testing.assert_allclose(f.gradient(X), expected, atol=1e-6)


def test_simplify_merges_equal_points(rng: np.random.Generator) -> None:
    points = np.array([[0.0], [1.0], [0.0], [2.0], [-0.0], [1.0]])
    f = RKHSFunction(Gauss(), points, [1.0, 2.0, 3.0, 4.0, 5.0, -2.0])
    g = f.simplify()
    np.testing.assert_array_equal(g.points, [[0.0], [2.0]])
    np.testing.assert_array_equal(g.weights, [9.0, 4.0])
    X = rng.standard_normal((4, 1))
    np.testing.assert_allclose(g(X), f(X), atol=1e-12)
    zero = (f - f).simplify()
    assert len(zero) == 1 and zero.norm() == 0.0
    words = RKHSFunction(Words(), ["tree", "root", "tree"], [1.0, 1.0, 1.0]).simplify()
    assert words.points == ["tree", "root"] and words.weights.tolist() == [2.0, 1.0]
    assert (words + words).points == ["tree", "root", "tree", "root"]


def test_errors(rng: np.random.Generator) -> None:
    f = _function(rng, 3)
    with pytest.raises(SpaceError, match="different spaces"):
        f + _function(rng, 3, Gauss(2.0))
    assert (f + _function(rng, 3, Gauss(1.0))).norm() >= 0.0  # equal kernels need not be the same object
    with pytest.raises(ModelError, match="one per point"):
        RKHSFunction(Gauss(), [[0.0]], [1.0, 2.0])
    with pytest.raises(TypeError):
        f + 1.0  # type: ignore[operator]
    with pytest.raises(ModelError, match="gradient"):
        RKHSFunction(Words(), ["a"], [1.0]).gradient(["b"])


# ------------------------------------------------------------------------------------------------- eigenfunctions


@pytest.mark.parametrize("n, k", [(30, 6), (30, None), (600, 5), (1, 1)])
def test_mercer_pairs(n: int, k: int | None, rng: np.random.Generator) -> None:
    X = rng.uniform(-2.0, 2.0, (n, 1))
    pairs = mercer(Gauss(), X, k)
    K = Gauss().gram(X)
    r = len(pairs.values)
    assert r == k or (k is None and 5 < r < 30)  # numerically the rank of 30 close points is smaller
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(K)[::-1][:r] / n, rtol=1e-6, atol=1e-12)
    Phi = pairs(X)
    # a function of eigenvalue λ carries errors of rounding / λ
    np.testing.assert_allclose(Phi.T @ Phi / n, np.eye(r), atol=1e-14 / pairs.values[-1] + 1e-9)
    assert np.all(np.diff(pairs.values) <= 0.0)
    for i in range(min(r, 3)):
        assert pairs.function(i).norm() * np.sqrt(pairs.values[i]) == pytest.approx(1.0)
    if k is None:
        np.testing.assert_allclose((Phi * pairs.values) @ Phi.T, K, atol=1e-10)


def test_mercer_with_duplicates_keeps_the_true_rank() -> None:
    X = np.repeat(np.array([[0.0], [5.0], [10.0]]), 4, axis=0)
    pairs = mercer(Gauss(), X)
    assert len(pairs.values) == 3
    assert pairs.values.sum() == pytest.approx(1.0)  # trace of K / n


def test_karhunen_loeve_draws_have_the_covariance() -> None:
    X = np.linspace(0.0, 2.0, 6)[:, None]
    draws = karhunen_loeve(Gauss(), X, n_draws=4000, random_state=5)
    F = np.stack([f(X) for f in draws[:1000]])
    # standard error of a variance of 1 from 1000 draws is 0.045; seeded
    np.testing.assert_allclose(F.T @ F / len(F), Gauss().gram(X), atol=0.15)
    (one,) = karhunen_loeve(Gauss(), X, 2, random_state=5)
    (two,) = karhunen_loeve(Gauss(), X, 2, random_state=5)
    np.testing.assert_array_equal(one.weights, two.weights)
    pairs = mercer(Gauss(), X, 2)  # two terms: nothing outside the first two eigenfunctions
    rest = one(X) - pairs(X) @ (pairs(X).T @ one(X)) / 6
    np.testing.assert_allclose(rest, 0.0, atol=1e-10)


# ---------------------------------------------------------------------------------------------- representer fits


def _objective(f: RKHSFunction, X: np.ndarray, y: np.ndarray, loss: str, reg: float, epsilon: float = 0.1) -> float:
    v = f(X)
    losses = {
        "squared": (y - v) ** 2,
        "hinge": np.maximum(0.0, 1.0 - y * v),
        "epsilon": np.maximum(0.0, np.abs(y - v) - epsilon),
        "logistic": np.logaddexp(0.0, -y * v),
    }[loss]
    return float(losses.sum() + reg * f.norm() ** 2)


LOSSES = ["squared", "hinge", "epsilon", "logistic"]


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=examples(12))
@given(seed=st.integers(0, 10**6), n=st.integers(1, 25), log_reg=st.floats(-2.0, 1.0))
def test_fit_is_a_minimum(loss: Any, seed: int, n: int, log_reg: float) -> None:
    rng = np.random.default_rng(seed)
    X, reg = rng.standard_normal((n, 2)), float(10.0**log_reg)
    X[n // 2 :] = X[: n - n // 2]  # duplicate points, whose labels may differ
    y = rng.standard_normal(n) if loss in ("squared", "epsilon") else rng.choice([-1.0, 1.0], n)
    f = fit_representer(Gauss(), X, y, loss=loss, reg=reg)
    best = _objective(f, X, y, loss, reg)
    for size in (1e-3, 1e-1):
        for _ in range(5):
            g = f + size * RKHSFunction(Gauss(), X, rng.standard_normal(n))
            assert _objective(g, X, y, loss, reg) >= best - 1e-6 * max(1.0, best)
    zero = RKHSFunction(Gauss(), X, np.zeros(n))
    assert best <= _objective(zero, X, y, loss, reg) + 1e-9


def test_hinge_and_epsilon_agree_with_scikit_learn_up_to_the_offset(rng: np.random.Generator) -> None:
    """A constant added to the kernel is a penalized offset: large, it leaves the offset nearly free."""
    svm = pytest.importorskip("sklearn.svm")
    X = rng.standard_normal((30, 2))
    y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, 1.0, -1.0)

    @dataclass(frozen=True, eq=False, repr=False)
    class WithOffset(Gauss):
        def _pullback(self, X: Any, Y: Any, inputs: bool) -> tuple[np.ndarray, Pull]:
            K, pull = super()._pullback(X, Y, inputs)
            return K + 30.0, pull

        def _diag(self, X: Any) -> np.ndarray:
            return super()._diag(X) + 30.0

    reg = 0.5
    f = fit_representer(WithOffset(), X, y, loss="hinge", reg=reg, tol=1e-4)
    peer = svm.SVC(kernel="rbf", gamma=0.5, C=0.5 / reg, tol=1e-8).fit(X, y)
    assert np.mean(np.sign(f(X)) == peer.predict(X)) >= 0.98
    np.testing.assert_allclose(f(X), peer.decision_function(X), atol=0.05)
    t = np.sin(2.0 * X[:, 0])
    g = fit_representer(WithOffset(), X, t, loss="epsilon", reg=0.05, tol=1e-4)
    peer = svm.SVR(kernel="rbf", gamma=0.5, C=10.0, epsilon=0.1, tol=1e-8).fit(X, t)
    np.testing.assert_allclose(g(X), peer.predict(X), atol=0.02)


def test_squared_fit_is_kernel_ridge(rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    f = fit_representer(Gauss(), X, y, reg=0.3)
    np.testing.assert_allclose(f.weights, np.linalg.solve(Gauss().gram(X) + 0.3 * np.eye(30), y))


def test_logistic_fit_solves_its_gradient_equation(rng: np.random.Generator) -> None:
    X = rng.standard_normal((40, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    for reg in (1e-4, 0.1, 10.0):  # separable data: small reg needs damping
        f = fit_representer(Gauss(), X, y, loss="logistic", reg=reg)
        v = f(X)
        np.testing.assert_allclose(2.0 * reg * f.weights, y / (1.0 + np.exp(y * v)), atol=1e-7)


def test_bad_fits_are_refused() -> None:
    X, y = np.zeros((2, 1)), np.array([0.0, 1.0])
    with pytest.raises(ModelError, match="labels −1 and \\+1"):
        fit_representer(Gauss(), X, y, loss="hinge")
    with pytest.raises(ModelError, match="Did you mean 'logistic'"):
        fit_representer(Gauss(), X, y, loss="logistc")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="reg"):
        fit_representer(Gauss(), X, y, reg=0.0)
    with pytest.raises(ModelError, match="NaN"):
        fit_representer(Gauss(), X, np.array([np.nan, 1.0]))
    with pytest.raises(ModelError, match="one target per point"):
        fit_representer(Gauss(), X, np.ones(3))
