"""Kernels of directions and angles: contract, periodicity, agreement with each other."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.kernels import Angular, Directional, GreatCircle, KernelError
from gramgraph.testing.kernels import check_kernel

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))
LAT_LON = np.stack([RNG.uniform(-1.2, 1.2, 6), RNG.uniform(-3, 3, 6)], axis=1)


@pytest.mark.parametrize(
    "kernel", [Directional(kappa=2.0), Angular(kappa=0.7), Angular(kappa=[0.5, 1.0, 2.0])], ids=str
)
def test_contract(kernel):
    check_kernel(kernel, X, Y)


def by_differences(kernel, A, B, bar):
    out = np.zeros_like(A)
    for i in np.ndindex(A.shape):
        step = np.zeros_like(A)
        step[i] = 1e-6
        out[i] = np.vdot(bar, kernel.gram(A + step, B) - kernel.gram(A - step, B)) / 2e-6
    return out


@pytest.mark.parametrize(
    "kernel, A, B",
    [(GreatCircle(0.8), X, Y), (GreatCircle(1.5, coordinates="latlon"), LAT_LON, LAT_LON[::-1] * 0.9)],
    ids=["vector", "latlon"],
)
def test_great_circle_gradients(kernel, A, B):
    # the kink at equal points rules finite differences out for gram(X) alone
    bar = RNG.normal(size=(len(A), len(B)))
    found = kernel.pullback(A, B, inputs=True)[1](bar)
    np.testing.assert_allclose(found.X, by_differences(kernel, A, B, bar), atol=1e-7)
    np.testing.assert_allclose(found.Y, by_differences(kernel, B, A, bar.T), atol=1e-7)
    t = kernel.theta
    numeric = np.vdot(bar, kernel.with_theta(t + 1e-6).gram(A, B) - kernel.with_theta(t - 1e-6).gram(A, B)) / 2e-6
    assert found.theta[0] == pytest.approx(numeric, rel=1e-6)
    K = kernel.gram(A)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(K), 1.0)
    np.testing.assert_allclose(np.concatenate([b for _, b in kernel.blocks(A, rows=4)]), K)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_great_circle_is_positive_definite_on_spheres(d):
    P = np.random.default_rng(d).normal(size=(60, d))
    for scale in (0.1, 1.0, 10.0):
        assert np.linalg.eigvalsh(GreatCircle(scale).gram(P))[0] > -1e-12


def test_great_circle_distances():
    angle = lambda a, b: -float(np.log(GreatCircle().gram([a], [b])[0, 0]))  # noqa: E731
    assert angle([1.0, 0, 0], [0, 3.0, 0]) == pytest.approx(np.pi / 2)
    assert angle([1.0, 0, 0], [-1.0, 0, 0]) == pytest.approx(np.pi)
    assert angle([1.0, 0, 0], [1.0, 1e-9, 0]) == pytest.approx(1e-9, rel=1e-6)  # small angles keep their digits
    lat, lon = LAT_LON.T
    P = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    np.testing.assert_allclose(GreatCircle(coordinates="latlon").gram(LAT_LON), GreatCircle().gram(P), rtol=1e-12)


def test_directional_is_the_exponential_of_the_inner_product():
    P = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(Directional(kappa=1.7).gram(P), np.exp(1.7 * P @ P.T), rtol=1e-12)
    np.testing.assert_allclose(Directional(kappa=1.7).gram(5 * X, P), np.exp(1.7 * P @ P.T), rtol=1e-12)


def test_an_angle_is_a_direction_in_the_plane():
    a = RNG.uniform(-10, 10, 7)
    P = np.stack([np.cos(a), np.sin(a)], axis=1)
    np.testing.assert_allclose(Angular(kappa=1.3).gram(a), Directional(kappa=1.3).gram(P), rtol=1e-12)
    np.testing.assert_allclose(Angular(kappa=1.3).gram(a + 2 * np.pi), Angular(kappa=1.3).gram(a), rtol=1e-12)


def test_several_angles_are_a_product():
    k = Angular(kappa=[0.5, 1.0, 2.0])
    parts = [Angular(kappa=c).gram(X[:, j], Y[:, j]) for j, c in enumerate([0.5, 1.0, 2.0])]
    np.testing.assert_allclose(k.gram(X, Y), np.prod(parts, axis=0), rtol=1e-12)


def test_faults_are_named():
    with pytest.raises(KernelError, match="row 1"):
        Directional().gram([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(KernelError, match=r"np.radians"):
        GreatCircle(coordinates="latlon").gram([[48.9, 2.4]])
    with pytest.raises(KernelError, match="'vector' or 'latlon'"):
        GreatCircle(coordinates="degrees")
    with pytest.raises(KernelError, match="2 numbers"):
        Angular(kappa=[1.0, 2.0]).gram(X)
