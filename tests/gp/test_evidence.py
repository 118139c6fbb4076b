"""Evidence, means and their gradients, against the joint Gaussian written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gramgraph.exceptions import ModelError
from gramgraph.gp import BasisMean, ConstantMean, FixedMean, LinearMean, Mean, exact_evidence, fit_exact
from gramgraph.kernels import RBF, Constant, Linear, Matern, White

MEANS = {
    "zero": Mean(),
    "constant, vague": ConstantMean(),
    "linear, vague": LinearMean(),
    "linear, Gaussian": LinearMean(prior=(0.5, 2.0)),
    "linear, best": LinearMean(prior="ml"),
    "basis": BasisMean(features=lambda X: np.hstack([np.sin(X), X**2])),
    "fixed": FixedMean(function=lambda X: 2.0 * X[:, 0]),
}


def problem(n=18, q=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    Y = np.sin(X[:, :1]) + 0.3 * rng.normal(size=(n, q)) + 1.0
    return X, Y, rng.uniform(0.05, 0.3, size=n)


KERNEL = 1.5 * RBF([1.0, 2.0]) + 0.5 * Matern(0.7, nu=1.5) + White(0.1)


@pytest.mark.parametrize("name", MEANS)
def test_gradient_is_the_slope(name):
    X, Y, noise = problem()
    found = exact_evidence(KERNEL, X, Y, noise=noise, mean=MEANS[name], gradient=True)
    h = 1e-5

    def at(theta, noise=noise):
        return exact_evidence(KERNEL.with_theta(theta), X, Y, noise=noise, mean=MEANS[name]).value

    slopes = [(at(KERNEL.theta + h * e) - at(KERNEL.theta - h * e)) / (2 * h) for e in np.eye(len(KERNEL.theta))]
    np.testing.assert_allclose(found.theta, slopes, rtol=1e-6, atol=1e-6)
    e = np.eye(len(noise))[3] * h
    slope = (at(KERNEL.theta, noise + e) - at(KERNEL.theta, noise - e)) / (2 * h)
    assert found.noise[3] == pytest.approx(slope, rel=1e-5)


def test_value_is_the_joint_gaussian():
    X, Y, noise = problem()
    K = KERNEL.gram(X) + np.diag(noise)
    expected = sum(multivariate_normal(np.zeros(len(X)), K).logpdf(y) for y in Y.T)
    assert exact_evidence(KERNEL, X, Y, noise=noise).value == pytest.approx(expected, rel=1e-10)
    # a Gaussian prior of the weights is a linear kernel
    H, b = np.c_[np.ones(len(X)), X], np.full(3, 0.5)
    expected = sum(multivariate_normal(H @ b, K + 2.0 * H @ H.T).logpdf(y) for y in Y.T)
    mean = LinearMean(prior=(0.5, 2.0))
    assert exact_evidence(KERNEL, X, Y, noise=noise, mean=mean).value == pytest.approx(expected, rel=1e-10)


def test_vague_prior_is_the_limit_of_wide_ones():
    X, Y, noise = problem(q=1)
    vague = exact_evidence(KERNEL, X, Y, noise=noise, mean=LinearMean()).value
    wide = 1e8
    gaussian = exact_evidence(KERNEL, X, Y, noise=noise, mean=LinearMean(prior=(0.0, wide))).value
    assert gaussian + 1.5 * np.log(2 * np.pi * wide) == pytest.approx(vague, abs=1e-4)
    a = fit_exact(KERNEL, X, Y, noise=noise, mean=LinearMean())
    b = fit_exact(KERNEL, X, Y, noise=noise, mean=LinearMean(prior=(0.0, wide)))
    Z = np.random.default_rng(1).normal(size=(5, 2))
    np.testing.assert_allclose(a.mean(Z), b.mean(Z), atol=1e-5)
    np.testing.assert_allclose(a.cov(Z), b.cov(Z), atol=1e-5)


def test_gaussian_weights_are_a_linear_kernel():
    X, Y, noise = problem()
    Z = np.random.default_rng(1).normal(size=(5, 2))
    a = fit_exact(KERNEL, X, Y, noise=noise, mean=LinearMean(prior=(0.0, 2.0)))
    b = fit_exact(KERNEL + 2.0 * (Linear() + Constant(1.0)), X, Y, noise=noise)
    np.testing.assert_allclose(a.mean(Z), b.mean(Z), atol=1e-9)
    np.testing.assert_allclose(a.cov(Z), b.cov(Z), atol=1e-9)
    assert a.log_evidence == pytest.approx(b.log_evidence, rel=1e-10)


def test_learned_line_is_recovered_far_from_the_data():
    x = np.linspace(0, 10, 60)[:, None]
    y = 3.0 - 0.5 * x[:, 0] + 0.2 * np.sin(3 * x[:, 0])
    process = fit_exact(0.1 * RBF(0.5), x, y, noise=0.01, mean=LinearMean())
    np.testing.assert_allclose(process.trend.coef[:, 0], [3.0, -0.5], atol=0.1)
    assert process.mean([[100.0]])[0, 0] == pytest.approx(-47.0, abs=2.0)
    assert process.var([[100.0]])[0] > process.var([[5.0]])[0]


def test_fewer_points_than_weights_is_an_error():
    with pytest.raises(ModelError, match="needs at least 2 points"):
        fit_exact(RBF(), [[0.0]], [1.0], noise=0.1, mean=LinearMean())
    with pytest.raises(ModelError, match="Did you mean 'vague'"):
        LinearMean(prior="vage")


@pytest.mark.parametrize(
    "kernel", [1.5 * RBF([1.0, 2.0]) + White(0.1), 1.5 * Matern([1.0, 2.0], nu=2.5) + White(0.1)], ids=str
)
def test_memory_of_a_gradient(kernel):
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(500, 2))
    exact_evidence(kernel, X, np.sin(X[:, 0]), gradient=True)
    tracemalloc.start()
    exact_evidence(kernel, X, np.sin(X[:, 0]), gradient=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5.2 * 8 * 500**2
