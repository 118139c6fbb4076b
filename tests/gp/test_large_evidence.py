"""From 600 points on the gradient is taken by rows in the memory of one matrix: same numbers as the whole matrix."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from gramgraph import kernels as k
from gramgraph._numerics.gram.packed_rbf_pull import rbf_half_pull
from gramgraph._threads import one_thread, spare_threads
from gramgraph.gp import ConstantMean, LinearMean, exact_evidence, reverse

N = 640
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 3))
TARGETS = np.column_stack([np.sin(POINTS[:, 0]), POINTS[:, 1] ** 2]) + 0.1 * RNG.normal(size=(N, 2))
KERNELS: dict[str, Any] = {
    "ard": 1.5 * k.RBF([1.0, 2.0, 3.0]) + k.White(0.1),
    "one scale": k.RBF(1.7) + k.White(0.1),
    "fixed scale": 1.5 * k.RBF([1.0, 2.0, 3.0]).fix() + k.White(0.1),
    "fixed variance": (1.5 * k.RBF(1.2)).fix("variance") + k.White(0.1),
    "matern": 0.7 * k.Matern([1.0, 2.0, 3.0], nu=2.5) + 0.5 * k.White(0.1),
    "rational": 0.7 * k.RationalQuadratic(1.2, 0.6) + k.White(0.1),
    "sum": 1.5 * k.RBF([1.0, 2.0, 3.0]) + 0.3 * k.Matern(1.0, nu=1.5) + k.Linear() + 2.0 + k.White(0.1),
    "product": 1.1 * (k.RBF(1.3).on([0]) * k.RationalQuadratic(1.0, 0.7)) + k.White(0.1),
    "noise inside": 1.5 * (k.RBF(1.0) + k.White(0.3)) + k.White(0.1),
    "noise only": k.White(0.4),
}


def both(kernel: Any, Y: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Any]:
    rows = exact_evidence(kernel, POINTS, Y, gradient=True, **options)
    monkeypatch.setattr(reverse, "_MANY", 10**9)
    return rows, exact_evidence(kernel, POINTS, Y, gradient=True, **options)


@pytest.mark.parametrize("name", KERNELS)
def test_rows_and_the_whole_matrix_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, whole = both(KERNELS[name], TARGETS, monkeypatch, noise=np.linspace(0.01, 0.1, N))
    assert rows.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(rows.theta, whole.theta, rtol=1e-9, atol=1e-9 * np.abs(whole.theta).max())
    np.testing.assert_allclose(rows.noise, whole.noise, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("mean", [ConstantMean(), LinearMean(), LinearMean(prior=(0.0, 4.0)), LinearMean(prior="ml")])
@pytest.mark.parametrize("name", ["ard", "matern"])
def test_with_a_mean(name: str, mean: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, whole = both(KERNELS[name], TARGETS, monkeypatch, mean=mean)
    np.testing.assert_allclose(rows.theta, whole.theta, rtol=1e-8)
    np.testing.assert_allclose(rows.noise, whole.noise, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["ard", "sum", "product"])
def test_gradient_by_differences(name: str) -> None:
    kernel = KERNELS[name]
    found = exact_evidence(kernel, POINTS, TARGETS, gradient=True)
    assert found.theta is not None
    for i, step in enumerate(1e-5 * np.eye(len(kernel.theta))):
        up, down = (exact_evidence(kernel.with_theta(kernel.theta + s * step), POINTS, TARGETS).value for s in (1, -1))
        assert found.theta[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-4)


def test_far_from_the_origin_no_digits_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    near = exact_evidence(KERNELS["ard"], POINTS, TARGETS, gradient=True)
    far = exact_evidence(KERNELS["ard"], POINTS + 1e4, TARGETS, gradient=True)
    np.testing.assert_allclose(far.theta, near.theta, rtol=1e-7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kernel", "most"),
    [
        (1.5 * k.RBF([1.0, 2.0]) + k.White(0.1), 2.0),
        (1.5 * k.RBF([1.0, 2.0]) + 0.3 * k.Matern(1.0) + 2 * k.RationalQuadratic() + k.Linear() + 1, 4.5),
        (1.5 * (k.RBF(1.0) * k.Matern(1.0) * k.RationalQuadratic()), 4.5),
    ],
)
def test_memory_in_matrices(kernel: Any, most: float) -> None:
    n = 1200
    X = RNG.normal(size=(n, 2))
    exact_evidence(kernel, X[:700], X[:700, 0], noise=0.1, gradient=True)  # compiled, imported
    tracemalloc.start()
    exact_evidence(kernel, X, X[:, 0], noise=0.1, gradient=True)
    peak = tracemalloc.get_traced_memory()[1] / 8 / n**2
    tracemalloc.stop()
    assert 1.0 <= peak < most


@pytest.mark.parametrize("n", [1, 7, 8, 64, 97, 200])
def test_the_compiled_pass(n: int) -> None:
    rng = np.random.default_rng(n)
    A, U, w, At = rng.normal(size=(n, n)), rng.normal(size=(2, n)), np.array([0.5, 1.5]), rng.normal(size=(3, n))
    sums, products = np.zeros(n), np.zeros(3)
    for first, last in [(0, n // 3), (n // 3, n)]:
        rbf_half_pull(A, U, w, 2.0, At, first, last, sums, products)
    W = np.tril(A.T * (U.T * w @ U - A), -1)
    np.testing.assert_allclose(sums, W.sum(0) + W.sum(1), atol=1e-10)
    np.testing.assert_allclose(products, np.einsum("ci,ij,cj->c", At, W, At), atol=1e-9)


def test_threads_change_no_number() -> None:
    X = np.random.default_rng(0).normal(size=(1100, 2))
    kernel = 1.5 * k.RBF([1.0, 2.0]) + k.White(0.1)
    found = []
    for threads in (1, 2, 3):
        with one_thread(), spare_threads(threads):
            found.append(exact_evidence(kernel, X, np.sin(X[:, 0]), gradient=True))
    for other in found[1:]:
        assert other.value == found[0].value
        np.testing.assert_array_equal(other.theta, found[0].theta)
        np.testing.assert_array_equal(other.noise, found[0].noise)
