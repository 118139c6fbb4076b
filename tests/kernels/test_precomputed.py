"""Kernels from a matrix or a function."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.kernels import RBF, FunctionKernel, KernelError, Precomputed
from gramgraph.testing.kernels import check_kernel

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(6, 2))
MATRIX = RBF(length_scale=0.8).gram(POINTS)


def rational(x, y, scale, power):
    return (1.0 + np.square(np.subtract(x, y)).sum() / scale) ** -np.exp(power)


def vectorized(X, Y, scale):
    return np.exp(-np.abs(np.subtract.outer(np.ravel(X), np.ravel(Y))) / scale)


def test_contract():
    check_kernel(Precomputed(MATRIX), np.arange(6), np.array([3, 1]))
    check_kernel(Precomputed(MATRIX), np.arange(6)[:, None], np.array([[3], [1]]))
    check_kernel(FunctionKernel(lambda s, t: float(len(s & t))), [{1, 2}, {2, 3}, {5}], [{1, 5}], inputs=False)


@pytest.mark.parametrize(
    "kernel",
    [
        FunctionKernel(rational, parameters={"scale": 1.5, "power": -0.3}, positive=["scale"]),
        FunctionKernel(vectorized, parameters={"scale": 1.5}, positive="scale", vectorized=True),
    ],
    ids=["pairs", "vectorized"],
)
def test_contract_of_functions_of_numbers(kernel):
    check_kernel(kernel, [0.0, 0.4, 1.5, 3.0], [0.2, 1.0], inputs=False)


def test_precomputed_picks_rows_and_columns():
    k = Precomputed(MATRIX)
    np.testing.assert_array_equal(k.gram([4, 0], [1, 1, 5]), MATRIX[np.ix_([4, 0], [1, 1, 5])])
    assert (2.0 * k).gram([0])[0, 0] == pytest.approx(2.0)
    assert len(k.theta) == 0


def test_function_kernel_is_the_kernel_that_it_writes():
    k = FunctionKernel(
        lambda x, y, scale: np.exp(-np.square(x - y).sum() / (2 * scale**2)),
        parameters={"scale": 0.8},
        positive=["scale"],
    )
    np.testing.assert_allclose(k.gram(POINTS), MATRIX, rtol=1e-12)
    bar = RNG.normal(size=(6, 6))
    exact = RBF(length_scale=0.8).pullback(POINTS)[1](bar).theta
    np.testing.assert_allclose(k.pullback(POINTS)[1](bar).theta, exact, rtol=1e-7)
    assert k.values == {"scale": 0.8}
    assert "parameters=(scale=0.8,)" in str(k)
    assert k.with_theta([0.0]).values == {"scale": 1.0}
    assert len(k.fix().theta) == 0


def test_pairs_are_asked_once_a_half():
    calls = []
    k = FunctionKernel(lambda x, y: calls.append((x, y)) or 1.0)
    k.gram([1, 2, 3])
    assert len(calls) == 6


def test_faults_are_named():
    with pytest.raises(KernelError, match="smallest eigenvalue is -1"):
        Precomputed([[0.0, 1.0], [1.0, 0.0]])
    assert Precomputed([[0.0, 1.0], [1.0, 0.0]], check=False).gram([0, 1])[0, 1] == 1.0
    with pytest.raises(KernelError, match="symmetric"):
        Precomputed([[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(KernelError, match="square"):
        Precomputed(np.ones((2, 3)))
    with pytest.raises(KernelError, match="NaN"):
        Precomputed([[np.nan]])
    with pytest.raises(KernelError, match="0 to 5"):
        Precomputed(MATRIX).gram([6])
    with pytest.raises(KernelError, match="indices"):
        Precomputed(MATRIX).gram([0.5])
    with pytest.raises(KernelError, match="Did you mean 'scale'"):
        FunctionKernel(rational, parameters={"scale": 1.0}, positive=["scael"])
    with pytest.raises(KernelError, match="vectorized function"):
        FunctionKernel(lambda X, Y: np.ones(3), vectorized=True).gram([1.0, 2.0])


def test_the_function_has_a_gradient_by_points_that_are_numbers():
    kernel = FunctionKernel(rational, parameters={"scale": 1.3, "power": 0.2}, positive=["scale"])
    check_kernel(kernel, POINTS, POINTS[:2] + 0.3)
    check_kernel(kernel, list(POINTS[:, 0]), list(POINTS[:2, 1]))
    with pytest.raises(KernelError, match="rows of real numbers"):
        FunctionKernel(lambda s, t: float(len(s & t))).pullback([{1, 2}, {2}], inputs=True)


def test_a_matrix_of_words_is_refused():
    with pytest.raises(KernelError, match="matrix of numbers"):
        Precomputed([["a"]])
