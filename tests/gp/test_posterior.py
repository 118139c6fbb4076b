"""The posterior as a value: condition again, leave one out, sample, differentiate."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph import GaussianProcessRegressor as GP
from gramgraph.exceptions import ModelError
from gramgraph.gp import FixedMean, LinearMean, Mean, fit_exact
from gramgraph.gp.coregional import Coregional, coregional_evidence
from gramgraph.gp.derivatives import WithDerivatives, gradient_cov, jet, stack_derivatives
from gramgraph.kernels import RBF, Constant, Linear, Matern, Periodic, Polynomial, RationalQuadratic, White

KERNEL = 1.5 * RBF([1.0, 2.0]) + White(0.1)


def problem(n=25, d=2, q=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, :1]) + 0.1 * rng.normal(size=(n, q)), rng.uniform(0.01, 0.2, size=n)


@pytest.mark.parametrize("mean", [Mean(), LinearMean()])
def test_conditioning_again_is_conditioning_once(mean):
    X, Y, noise = problem()
    Z = np.random.default_rng(1).normal(size=(6, 2))
    whole = fit_exact(KERNEL, X, Y, noise=noise, mean=mean)
    parts = fit_exact(KERNEL, X[:15], Y[:15], noise=noise[:15], mean=mean)
    parts = parts.condition(X[15:16], Y[15:16], noise=noise[15:16]).condition(X[16:], Y[16:], noise=noise[16:])
    np.testing.assert_allclose(parts.mean(Z), whole.mean(Z), atol=1e-10)
    np.testing.assert_allclose(parts.cov(Z), whole.cov(Z), atol=1e-10)
    assert parts.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)


def test_duplicate_points_can_be_appended():
    process = fit_exact(RBF(), [[0.0], [1.0]], [1.0, 2.0])
    again = process.condition([[1.0]], [2.0])
    assert again.jitter > 0
    assert np.isfinite(again.mean([[0.5]])).all()
    assert again.mean([[1.0]])[0, 0] == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("mean", [Mean(), LinearMean(), LinearMean(prior=(0.0, 1.0))])
def test_leave_one_out_is_leaving_one_out(mean):
    X, Y, noise = problem(n=12)
    found = fit_exact(KERNEL, X, Y, noise=noise, mean=mean).loo()
    for i in range(len(X)):
        keep = np.arange(len(X)) != i
        rest = fit_exact(KERNEL, X[keep], Y[keep], noise=noise[keep], mean=mean)
        np.testing.assert_allclose(found.mean[i], rest.mean(X[i : i + 1])[0], atol=1e-9)
        var = rest.var(X[i : i + 1])[0] + noise[i]
        assert found.var[i] == pytest.approx(var, rel=1e-9)
        gap = Y[i] - found.mean[i]
        assert found.log_density[i] == pytest.approx(-0.5 * np.sum(np.log(2 * np.pi * var) + gap**2 / var))


@pytest.mark.parametrize("method", ["cholesky", "pathwise"])
@pytest.mark.parametrize("mean", [Mean(), LinearMean()])
def test_draws_have_the_posterior_moments(method, mean):
    # 4,000 draws: each of the compared numbers is off by 5 standard errors with probability below 1e-6
    X, Y, noise = problem(n=8, q=1)
    Z = np.random.default_rng(3).normal(size=(3, 2))
    process = fit_exact(KERNEL, X, Y, noise=noise, mean=mean)
    draws = process.sample(Z, 4000, random_state=0, method=method, n_features=4000, latent=True)[:, 0]
    C = process.cov(Z, latent=True)
    slack = 5 * np.sqrt(np.diag(C) / 4000)
    assert np.all(np.abs(draws.mean(1) - process.mean(Z)[:, 0]) < slack + 0.02)
    np.testing.assert_allclose(np.cov(draws), C, atol=6 * C.max() / np.sqrt(4000) + 0.05)


def test_latent_leaves_out_the_noise():
    X, Y, noise = problem(q=1)
    process = fit_exact(KERNEL, X, Y, noise=noise)
    np.testing.assert_allclose(process.var(X) - process.var(X, latent=True), 0.1, atol=1e-12)


JETS = [
    RBF([0.7, 1.3]),
    Matern(1.2, nu=1.5),
    Matern([0.9, 2.0], nu=2.5),
    RationalQuadratic(0.8, alpha=1.7),
    Periodic(0.9, 3.0),
    Linear(),
    Polynomial(degree=3, offset=0.5),
    2.0 * RBF() * Linear() + Constant(3.0),
]


@pytest.mark.parametrize("kernel", JETS, ids=str)
def test_jets_are_derivatives(kernel):
    rng = np.random.default_rng(0)
    X, Y, h = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), 1e-5
    found = jet(kernel, X, Y)
    np.testing.assert_allclose(found.K, kernel.gram(X, Y), atol=1e-12)
    for c in range(2):
        e = np.eye(2)[c] * h
        np.testing.assert_allclose(
            found.x[:, :, c], (kernel.gram(X + e, Y) - kernel.gram(X - e, Y)) / (2 * h), atol=1e-7
        )
        np.testing.assert_allclose(
            found.y[:, :, c], (kernel.gram(X, Y + e) - kernel.gram(X, Y - e)) / (2 * h), atol=1e-7
        )
        slope = (jet(kernel, X, Y + e).x - jet(kernel, X, Y - e).x) / (2 * h)
        np.testing.assert_allclose(found.xy[:, :, :, c], slope, atol=1e-7)
    K = WithDerivatives(kernel).gram(np.c_[np.repeat(X, 3, axis=0), np.tile([0, 1, 2], 3)])
    assert np.linalg.eigvalsh(K).min() > -1e-9


@pytest.mark.parametrize("mean", [Mean(), LinearMean(), FixedMean(function=lambda X: X[:, 0] ** 2)])
def test_predicted_gradients(mean):
    X, Y, noise = problem(q=1)
    process = fit_exact(KERNEL, X, Y, noise=noise, mean=mean)
    Z, h = np.random.default_rng(3).normal(size=(4, 2)), 1e-5
    for c in range(2):
        e = np.eye(2)[c] * h
        np.testing.assert_allclose(
            process.gradient(Z)[:, c], (process.mean(Z + e) - process.mean(Z - e)) / (2 * h), atol=1e-7
        )
        # Var f′ from the covariance of f at two near points
        step = 1e-3 * np.eye(2)[c]
        for i in range(4):
            C = process.cov(np.stack([Z[i] + step, Z[i] - step]), latent=True)
            assert gradient_cov(process, Z)[i, c, c] == pytest.approx(
                (C[0, 0] + C[1, 1] - 2 * C[0, 1]) / 4e-6, abs=1e-3
            )
    gp = GP(KERNEL, alpha=0.01, optimizer=None, normalize_y=True).fit(X, Y[:, 0])
    slope, std = gp.predict_gradient(Z, return_std=True)
    assert slope.shape == std.shape == (4, 2) and (std > 0).all()


def test_observed_slopes_help():
    x = np.array([[0.0], [3.0]])
    Z, t = stack_derivatives(x, np.sin(x[:, 0]), x, np.cos(x))
    gp = GP(WithDerivatives(1.0 * RBF(1.5)), alpha=1e-8, optimizer=None).fit(Z, t)
    plain = GP(1.0 * RBF(1.5), alpha=1e-8, optimizer=None).fit(x, np.sin(x[:, 0]))
    asked = np.linspace(0, 3, 7)
    error = np.abs(gp.predict(np.c_[asked, np.zeros(7)]) - np.sin(asked)).max()
    assert error < 0.1 < np.abs(plain.predict(asked[:, None]) - np.sin(asked)).max()
    np.testing.assert_allclose(gp.predict(np.c_[x, np.ones(2)]), np.cos(x[:, 0]), atol=1e-4)
    theta = gp.kernel_.theta
    slope = gp.log_marginal_likelihood(theta, eval_gradient=True)[1]
    h = 1e-5
    numeric = [
        (gp.log_marginal_likelihood(theta + h * e) - gp.log_marginal_likelihood(theta - h * e)) / (2 * h)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-3)


def test_kernels_without_second_derivatives_say_so():
    with pytest.raises(ValueError, match="no second derivatives"):
        WithDerivatives(Matern(nu=0.5)).gram([[0.0, 0]])


def test_coregionalization_is_the_kronecker_gaussian():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(15, 2)), rng.normal(size=(15, 3))
    W = rng.normal(size=(3, 1))
    B, noise, kernel = W @ W.T + np.diag([0.5, 0.6, 0.7]), np.array([0.1, 0.2, 0.3]), RBF([1.0, 2.0])
    S = np.kron(B, kernel.gram(X)) + np.kron(np.diag(noise), np.eye(15))
    y = Y.T.ravel()
    value, slope, bar_B, bar_noise = coregional_evidence(kernel, X, Y, B, noise)
    expected = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + 45 * np.log(2 * np.pi))
    assert value == pytest.approx(expected, rel=1e-10)
    h = 1e-6
    for i in range(2):
        e = np.eye(2)[i] * h
        up, down = (coregional_evidence(kernel.with_theta(kernel.theta + s * e), X, Y, B, noise)[0] for s in (1, -1))
        assert slope[i] == pytest.approx((up - down) / (2 * h), rel=1e-5)
    E = np.zeros((3, 3))
    E[0, 1] = E[1, 0] = h
    up, down = (coregional_evidence(kernel, X, Y, B + s * E, noise)[0] for s in (1, -1))
    assert bar_B[0, 1] + bar_B[1, 0] == pytest.approx((up - down) / (2 * h), rel=1e-5)
    e = np.eye(3)[1] * h
    up, down = (coregional_evidence(kernel, X, Y, B, noise + s * e)[0] for s in (1, -1))
    assert bar_noise[1] == pytest.approx((up - down) / (2 * h), rel=1e-5)

    from gramgraph.gp.methods import Data

    method = Coregional(Data(X, Y, np.zeros(15), Mean()), 1)
    method.kernel, method.B, method.noise = kernel, B, noise
    process = method.posterior(kernel)
    Z = rng.normal(size=(4, 2))
    cross = np.kron(B, kernel.gram(Z, X))
    mean = (cross @ np.linalg.solve(S, y)).reshape(3, 4).T
    cov = np.kron(B, kernel.gram(Z)) - cross @ np.linalg.solve(S, cross.T)
    np.testing.assert_allclose(process.mean(Z), mean, atol=1e-9)
    np.testing.assert_allclose(process.var(Z, latent=True), np.diag(cov).reshape(3, 4).T, atol=1e-9)
    joint = process.joint(Z).reshape(4, 3, 4, 3).transpose(1, 0, 3, 2).reshape(12, 12)
    np.testing.assert_allclose(joint, cov, atol=1e-9)
    for j in range(3):
        np.testing.assert_allclose(
            process.cov(Z, latent=True)[:, :, j], cov[4 * j : 4 * j + 4, 4 * j : 4 * j + 4], atol=1e-9
        )


def test_outputs_learn_from_each_other():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 50))[:, None]
    truth = np.sin(x[:, 0])
    Y = np.c_[truth, 2 * truth + 1.0] + np.c_[0.02 * rng.normal(size=50), 1.0 * rng.normal(size=50)]
    both = GP(RBF(1.0), coregionalization=1, normalize_y=True, random_state=0).fit(x, Y)
    alone = GP(1.0 * RBF(1.0) + White(0.1), normalize_y=True).fit(x, Y[:, 1])
    error = np.sqrt(np.mean((both.predict(x)[:, 1] - 2 * truth - 1) ** 2))
    assert error < 0.8 * np.sqrt(np.mean((alone.predict(x) - 2 * truth - 1) ** 2))
    assert both.predict(x, return_cov=True)[1].shape == (50, 50, 2)
    assert both.sample_y(x[:3], 5).shape == (3, 2, 5)
    with pytest.raises(ModelError, match="no mean functions"):
        GP(RBF(), coregionalization=1, mean="linear").fit(x, Y)
