"""Wiener and spline kernels: contract, limits of features, smoothness of draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from gramgraph.kernels import Constant, CubicSpline, IntegratedWiener, KernelError, Linear, Matern, Wiener
from gramgraph.testing.kernels import check_kernel

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "kernel", [IntegratedWiener(), IntegratedWiener(order=2), CubicSpline(), CubicSpline(origin=-1.0)], ids=str
)
@pytest.mark.parametrize("d", [1, 2])
def test_contract(kernel, d):
    check_kernel(kernel, RNG.uniform(0.2, 2.0, size=(6, d)), RNG.uniform(0.2, 2.0, size=(4, d)))


def test_contract_of_the_wiener_kernel():
    # on a common grid min(x, x′) has kinks, so that Y stands between the points of X
    check_kernel(Wiener(), np.array([[0.1], [0.5], [0.9], [1.4]]), np.array([[0.3], [0.7], [2.0]]))
    check_kernel(Wiener(origin=-1.0), RNG.uniform(0, 2, size=(5, 2)), RNG.uniform(0, 2, size=(4, 2)))


def test_step_features_become_the_wiener_kernel():
    x = np.array([0.25, 0.7, 1.3, 1.9])
    c = (np.arange(20_000) + 0.5) * 2.0 / 20_000 - 0.0
    phi = (x[:, None] >= c).astype(float)
    np.testing.assert_allclose(phi @ phi.T * 2.0 / 20_000, Wiener().gram(x), atol=2e-4)


def test_ramp_features_become_the_cubic_spline_kernel():
    x, origin = np.array([-0.5, 0.7, 1.3, 1.9]), -1.0
    width = 3.0 / 20_000
    c = origin + (np.arange(20_000) + 0.5) * width
    phi = np.maximum(0.0, x[:, None] - c)
    np.testing.assert_allclose(phi @ phi.T * width, CubicSpline(origin=origin).gram(x), rtol=1e-6)
    s = np.minimum.outer(x, x) - origin
    expected = s**3 / 3 + np.abs(np.subtract.outer(x, x)) * s**2 / 2
    np.testing.assert_allclose(CubicSpline(origin=origin).gram(x), expected, rtol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_integrated_wiener_is_its_integral(order):
    k = IntegratedWiener(order=order)
    for x, y in [(0.5, 1.5), (2.0, 0.7), (1.0, 1.0)]:
        expected = quad(lambda u: (x - u) ** order * (y - u) ** order, 0, min(x, y))[0]  # noqa: B023
        factorial = float(np.prod(np.arange(1, order + 1)))
        assert k.gram([x], [y])[0, 0] == pytest.approx(expected / factorial**2, rel=1e-10)


def test_spline_regression_through_points_is_the_natural_kind_of_smooth_curve():
    # with a free line the interpolant of points on a line is the line itself
    x = np.array([0.5, 1.0, 2.0, 3.0])
    k = CubicSpline() + 1e6 * Linear() + 1e6
    K = k.gram(x)
    values = k.gram([1.5, 2.5], x) @ np.linalg.solve(K, 3.0 * x - 1.0)
    np.testing.assert_allclose(values, [3.5, 6.5], atol=1e-3)


@pytest.mark.parametrize(
    "kernel",
    [
        Wiener(),
        Wiener(origin=-1.0),
        3 * IntegratedWiener(order=2),
        CubicSpline(origin=-0.5) + 0.5 * Matern(0.7, nu=1.5) + 1,
        2 * Wiener() * Constant(1.5),
        (CubicSpline() + Matern(nu=0.5)) * Constant(2.0),
    ],
    ids=str,
)
def test_state_space_has_the_kernel_as_covariance(kernel):
    model = kernel.state_space()
    times = np.array([0.4, 0.0, 1.3, 1.3, 20.0])
    np.testing.assert_allclose(model.gram(times), kernel.gram(times), rtol=1e-9, atol=1e-12)
    # a filter's steps add up: P(t + dt) = A P(t) Aᵀ + Q
    A, Q = model.step(0.7)
    np.testing.assert_allclose(model.covariance(2.0), A @ model.covariance(1.3) @ A.T + Q, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(Q)[0] > -1e-12 * np.abs(Q).max()


def test_state_spaces_that_cannot_be_are_refused():
    with pytest.raises(KernelError, match="one origin"):
        (Wiener() + Wiener(origin=1.0)).state_space()
    with pytest.raises(KernelError, match="changes with time"):
        (Wiener() * Matern(nu=0.5)).state_space()
    with pytest.raises(KernelError, match="time ≥ origin"):
        Wiener(origin=1.0).state_space().covariance(0.0)


def test_points_before_the_origin_are_refused():
    with pytest.raises(KernelError, match=r"X\[1, 0\] is -0.5"):
        Wiener().gram([0.5, -0.5])
    with pytest.raises(KernelError, match="order is 1"):
        CubicSpline(order=2)
