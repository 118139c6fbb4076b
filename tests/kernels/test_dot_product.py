"""Kernels of the inner product: contract, feature maps, closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.kernels import ArcCosine, KernelError, Linear, Polynomial, QuadraticForm, Sigmoid
from gramgraph.testing.kernels import check_kernel

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))

KERNELS = [
    Linear(),
    Polynomial(degree=3, offset=0.7, scale=0.5),
    Polynomial(degree=2, offset=0.0),
    Polynomial(degree=1),
    QuadraticForm(RNG.normal(size=(3, 2))),
    QuadraticForm([0.5, -1.0, 2.0]),
    Sigmoid(scale=0.3, offset=-0.2),
    ArcCosine(order=0, bias=0.4),
    ArcCosine(order=1),
    ArcCosine(order=1, bias=0.5),
    ArcCosine(order=2, bias=0.3),
]


@pytest.mark.parametrize("kernel", [k for k in KERNELS if not (isinstance(k, ArcCosine) and k.order == 0)], ids=str)
def test_contract(kernel):
    check_kernel(kernel, X, Y)


def test_contract_of_the_step_units_without_the_kink_at_equal_points():
    k = ArcCosine(order=0, bias=0.4)
    K = k.gram(X)
    np.testing.assert_allclose(np.diag(K), k.diag(X), rtol=0, atol=1e-15)
    assert np.linalg.eigvalsh(K)[0] > 0
    bar = RNG.normal(size=(6, 4))
    found = k.pullback(X, Y, inputs=True)[1](bar)
    for i in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[i] = 1e-6
        numeric = np.vdot(bar, k.gram(X + step, Y) - k.gram(X - step, Y)) / 2e-6
        assert found.X[i] == pytest.approx(numeric, rel=1e-6, abs=1e-7)
    numeric = np.vdot(bar, ArcCosine(0, 0.4 + 1e-6).gram(X, Y) - ArcCosine(0, 0.4 - 1e-6).gram(X, Y)) / 2e-6
    assert found.theta[0] == pytest.approx(numeric, rel=1e-6)


def test_three_points_are_separated_by_the_square_of_one_plus_the_product():
    # −1 (+), 0 (−), 1 (+): no threshold on the line separates them, φ(x) = (1, √2 x, x²) does
    x = np.array([-1.0, 0.0, 1.0])
    K = Polynomial(degree=2, offset=1.0).gram(x)
    phi = np.stack([np.ones(3), np.sqrt(2) * x, x**2], axis=1)
    np.testing.assert_allclose(K, phi @ phi.T, atol=1e-15)
    np.testing.assert_array_equal(K, [[4, 1, 0], [1, 1, 1], [0, 1, 4]])
    w = np.array([-1.0, 0.0, 2.0])  # margin plane in feature space: 2x² − 1
    np.testing.assert_allclose(phi @ w, [1.0, -1.0, 1.0])
    alpha = np.linalg.solve(K, [1.0, -1.0, 1.0])  # the same plane through the kernel alone
    np.testing.assert_allclose(K @ alpha, [1.0, -1.0, 1.0])


def test_square_of_the_inner_product_is_a_feature_map():
    phi = np.einsum("ni,nj->nij", X, X).reshape(6, -1)
    np.testing.assert_allclose(Polynomial(degree=2, offset=0).gram(X), phi @ phi.T)
    np.testing.assert_allclose((Linear() ** 2).gram(X), phi @ phi.T)


def test_quadratic_form_from_a_matrix():
    L = RNG.normal(size=(3, 2))
    k = QuadraticForm.from_matrix(L @ L.T)
    assert k.factor.shape == (3, 2)
    np.testing.assert_allclose(k.gram(X, Y), X @ L @ L.T @ Y.T, atol=1e-12)
    with pytest.raises(KernelError, match="smallest eigenvalue is -1"):
        QuadraticForm.from_matrix(np.diag([1.0, -1.0]))
    with pytest.raises(KernelError, match="symmetric"):
        QuadraticForm.from_matrix([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(KernelError, match="3 columns"):
        k.gram(X[:, :2])


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_the_average_over_random_units(order):
    w = np.random.default_rng(1).standard_normal((400_000, 3))
    units = np.maximum(0.0, X @ w.T) ** order if order else (X @ w.T > 0).astype(float)
    average = 2 * units @ units.T / len(w)
    K = ArcCosine(order=order).gram(X)
    # standard errors are below 0.01 of the largest entry: five of them
    np.testing.assert_allclose(K, average, atol=0.05 * K.max())


def test_arc_cosine_at_zero_and_at_equal_and_opposite_points():
    Z = np.array([[0.0, 0.0], [1.0, 2.0], [-1.0, -2.0], [2.0, 4.0]])
    for order in (0, 1, 2):
        k = ArcCosine(order=order)
        K = k.gram(Z)
        np.testing.assert_allclose(np.diag(K), k.diag(Z), rtol=1e-14)
        assert K[1, 2] == pytest.approx(0.0, abs=1e-12 if order else 1e-8)
        assert np.linalg.eigvalsh(K)[0] > -1e-10
        assert np.isfinite(k.pullback(Z, inputs=True)[1](np.ones((4, 4))).X).all()
    assert ArcCosine(order=0).gram(Z)[1, 3] == 1.0


def test_the_sigmoid_says_that_it_need_not_be_positive_definite():
    assert not Sigmoid().positive_definite
    assert np.linalg.eigvalsh(Sigmoid(scale=1.0, offset=-1.0).gram([0.0, 1.0]))[0] < 0


def test_faults_are_named():
    with pytest.raises(KernelError, match="degree"):
        Polynomial(degree=1.5)
    with pytest.raises(KernelError, match="≥ 0, got -1"):
        Polynomial(offset=-1)
    with pytest.raises(KernelError, match="0, 1 or 2"):
        ArcCosine(order=3)
    assert Polynomial(offset=0).parameter_names == ("scale",)
    assert Polynomial(offset=1).parameter_names == ("offset", "scale")
