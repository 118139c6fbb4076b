"""Kernels of scikit-learn: the same theta in the same order, the same evidence and gradient, the same bounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor as Reference
from sklearn.gaussian_process import kernels as sk

from gramgraph import GaussianProcessClassifier, GaussianProcessRegressor
from gramgraph.estimators._gp_kernels import from_scikit_learn
from gramgraph.exceptions import ModelError

RQ, Dot = sk.RationalQuadratic(1.2, 0.7), sk.DotProduct(1.4)
KERNELS = [
    sk.ConstantKernel(2.0),
    sk.RBF(0.9),
    sk.RBF([0.8, 1.3]),
    sk.Matern(1.3, nu=0.5),
    sk.Matern([0.8, 1.3], nu=1.5),
    sk.Matern(0.7, nu=2.5),
    sk.Matern(0.7, nu=np.inf),
    RQ,
    Dot,
    sk.ExpSineSquared(1.1, 30.0),
    RQ + Dot,
    2.0 * RQ,
    RQ * sk.ConstantKernel(2.0) + Dot**2,
    sk.RBF(1.0) * sk.RBF(2.0) * sk.ConstantKernel(3.0),
    (sk.RBF(1.0) + Dot) * (RQ + sk.Matern(1.0, nu=1.5)),
    sk.RBF(1.0, length_scale_bounds="fixed") * Dot,
    sk.RationalQuadratic(1.2, 0.7, alpha_bounds="fixed") + sk.ConstantKernel(0.3),
    sk.ConstantKernel(1.0) * sk.ConstantKernel(2.0) * sk.RBF(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("n", [30, 610])
def test_evidence_and_gradient_by_the_same_theta(kernel: sk.Kernel, n: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    whole = kernel + sk.WhiteKernel(0.05)
    theirs = Reference(whole, optimizer=None, alpha=1e-6).fit(X, y)
    ours = GaussianProcessRegressor(whole, optimizer=None, alpha=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, rtol=1e-14)
    theta = whole.theta + 0.2 * rng.normal(size=len(whole.theta))
    value, slope = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    mine, my_slope = ours.log_marginal_likelihood(theta, eval_gradient=True)
    assert mine == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(my_slope, slope, rtol=1e-7, atol=1e-8 * np.abs(slope).max())
    np.testing.assert_allclose(ours.predict(X[:5]), theirs.predict(X[:5]), atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_bounds_and_values(kernel: sk.Kernel) -> None:
    X = np.random.default_rng(1).normal(size=(6, 2))
    ours, bounds = from_scikit_learn(kernel, 2)
    np.testing.assert_array_equal(bounds, kernel.bounds.reshape(-1, 2))
    np.testing.assert_allclose(ours.gram(X), kernel(X), atol=1e-13)
    np.testing.assert_allclose(ours.gram(X, X[:2]), kernel(X, X[:2]), atol=1e-13)
    np.testing.assert_allclose(ours.diag(X), kernel.diag(X), atol=1e-13)


def test_on_the_line_a_period_has_all_that_periodic_kernels_have() -> None:
    x = np.linspace(0.0, 3.0, 9)[:, None]
    kernel = sk.ExpSineSquared(1.1, 2.3) + sk.WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(x, np.sin(x[:, 0]))
    theirs = Reference(kernel, optimizer=None).fit(x, np.sin(x[:, 0]))
    value, slope = theirs.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    mine, my_slope = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    assert mine == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(my_slope, slope, rtol=1e-8)
    assert model.predict_gradient(x).shape == (9, 1)


def test_derivatives_of_a_dot_product() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = GaussianProcessRegressor(sk.DotProduct(0.5), optimizer=None, alpha=1e-3).fit(X, X @ [2.0, -1.0])
    slope, std = model.predict_gradient(X[:3], return_std=True)
    np.testing.assert_allclose(slope, np.tile([2.0, -1.0], (3, 1)), atol=0.01)
    assert (std < 0.1).all()


def test_classification_takes_them_too() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = GaussianProcessClassifier(1.0 * RQ).fit(X, X[:, 0] > 0)
    value, slope = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)  # type: ignore[misc]
    assert np.isfinite(value) and slope.shape == (3,)


def test_what_is_unknown_is_named() -> None:
    with pytest.raises(ModelError, match="PairwiseKernel"):
        from_scikit_learn(sk.PairwiseKernel())
    with pytest.raises(ModelError, match="whole number"):
        from_scikit_learn(sk.RBF() ** 1.5)
