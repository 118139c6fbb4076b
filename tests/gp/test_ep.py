from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from gramgraph import kernels
from gramgraph.exceptions import ModelError
from gramgraph.gp.ep import ep_evidence, ep_posterior, find_sites
from gramgraph.gp.laplace import laplace_evidence, laplace_posterior
from gramgraph.gp.likelihoods import GaussianNoise, Logistic, Poisson, Probit
from tests.gp.brute_force import by_quadrature
from tests.gp.test_laplace import problem


def sequential_ep(K, y, sweeps=200):
    """The textbook's algorithm: one site after the other, the covariance by plain inverses."""
    n = len(y)
    tau, nu = np.zeros(n), np.zeros(n)
    P = np.linalg.inv(K)
    for _ in range(sweeps):
        old = np.concatenate([tau, nu])
        for i in range(n):
            S = np.linalg.inv(P + np.diag(tau))
            mu = S @ nu
            t = 1 / S[i, i] - tau[i]
            m, v = (mu[i] / S[i, i] - nu[i]) / t, 1 / t
            z = y[i] * m / np.sqrt(1 + v)
            ratio = norm.pdf(z) / norm.cdf(z)
            mean = m + y[i] * v * ratio / np.sqrt(1 + v)
            var = v - v**2 * ratio / (1 + v) * (z + ratio)
            tau[i], nu[i] = 1 / var - t, mean / var - t * m
        if np.abs(np.concatenate([tau, nu]) - old).max() < 1e-12:
            break
    S = np.linalg.inv(P + np.diag(tau))
    mu = S @ nu
    # log Z = Σ log ∫ p(y_i | f) cavity_i − Σ log ∫ site_i cavity_i + log ∫ Π site N(0, K)
    t = 1 / np.diag(S) - tau
    m, v = (mu / np.diag(S) - nu) / t, 1 / t
    whole = 0.5 * nu @ S @ nu - 0.5 * np.linalg.slogdet(np.eye(n) + K * tau)[1]
    single = 0.5 * (nu + m / v) ** 2 / (tau + 1 / v) - 0.5 * m**2 / v - 0.5 * np.log(1 + tau * v)
    return norm.logcdf(y * m / np.sqrt(1 + v)).sum() - single.sum() + whole, mu, np.diag(S)


@pytest.mark.parametrize("kernel", [2.0 * kernels.RBF(1.0), 30.0 * kernels.RBF([1.0, 2.0, 0.5])], ids=str)
def test_fixed_point_of_the_sequential_algorithm(kernel):
    X, y = problem(0, 14)
    log_z, mean, var = sequential_ep(kernel.gram(X) + 1e-9 * np.eye(14), y)
    process = ep_posterior(kernel, X, y, Probit())
    got_mean, got_var = process.latent(X)
    assert process.converged
    assert process.log_evidence == pytest.approx(log_z, abs=1e-6)
    assert got_mean == pytest.approx(mean, abs=1e-5)
    assert got_var == pytest.approx(var, abs=1e-5)


@pytest.mark.parametrize("likelihood", [Probit(), Logistic()], ids=["Probit", "Logistic"])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("variance", [0.3, 3.0])
def test_near_the_truth_and_nearer_than_laplace(likelihood, n, variance):
    X, y = np.array([[0.0], [0.8], [2.0]])[:n], np.array([1.0, -1.0, 1.0])[:n]
    kernel = variance * kernels.RBF(1.0)
    order = 60 if n == 3 else 200
    log_z, mean, cov = by_quadrature(kernel.gram(X), lambda f: likelihood.log_density(y, f).sum(axis=1), order)
    process = ep_posterior(kernel, X, y, likelihood)
    error = abs(process.log_evidence - log_z)
    assert error < (1e-9 if n == 1 else 5e-3)
    assert error < 0.3 * abs(laplace_posterior(kernel, X, y, likelihood).log_evidence - log_z) + 1e-9
    got_mean, got_var = process.latent(X)
    assert np.abs(got_mean - mean).max() < 0.03
    assert np.abs(got_var / np.diag(cov) - 1.0).max() < 0.03


@pytest.mark.parametrize("likelihood", [Probit(), Logistic()], ids=["Probit", "Logistic"])
@pytest.mark.parametrize("kernel", [3.0 * kernels.RBF([1.0, 2.0, 0.7]), 1e4 * kernels.Matern(1.0, nu=2.5)], ids=str)
def test_gradient_against_differences(likelihood, kernel):
    X, y = problem(1, 40)
    found = ep_evidence(kernel, X, y, likelihood, gradient=True)
    h = 1e-4
    differences = []
    for step in h * np.eye(len(kernel.theta)):
        up, down = (ep_evidence(kernel.with_theta(kernel.theta + s), X, y, likelihood).value for s in (step, -step))
        differences.append((up - down) / (2 * h))
    assert np.abs(found.theta - differences).max() < 1e-6 * (1.0 + np.abs(differences).max())


def test_gaussian_sites_are_exact():
    X, _ = problem(2, 30)
    y = np.sin(X[:, 0])
    kernel = 1.5 * kernels.RBF(1.3)
    exact = laplace_evidence(kernel, X, y, GaussianNoise(0.2), gradient=True)
    found = ep_evidence(kernel, X, y, GaussianNoise(0.2), gradient=True)
    assert found.value == pytest.approx(exact.value, abs=1e-9)
    assert found.theta == pytest.approx(exact.theta, abs=1e-9)


def test_start_saves_rounds_and_keeps_the_answer():
    X, y = problem(3, 60)
    kernel = 4.0 * kernels.RBF(1.0)
    cold = ep_evidence(kernel, X, y, Probit())
    again = ep_evidence(kernel, X, y, Probit(), start=cold.start)
    near = ep_evidence(kernel.with_theta(kernel.theta + 0.01), X, y, Probit(), start=cold.start)
    assert again.steps == 1 and near.steps <= cold.steps
    assert again.value == pytest.approx(cold.value, abs=1e-9)


@pytest.mark.parametrize("likelihood", [Probit(), Logistic()], ids=["Probit", "Logistic"])
@pytest.mark.parametrize(
    "kernel",
    [
        1e5 * kernels.RBF(1e5),
        1e5 * kernels.RBF(1e-5),
        1e-5 * kernels.RBF(1.0),
        1e5 * kernels.RBF(1.0),
        1e5 * kernels.Linear(),
    ],
    ids=str,
)
def test_never_nan_at_the_bounds_and_on_duplicates(kernel, likelihood):
    X = np.repeat(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]), 4, axis=0)
    for y in (np.where(np.arange(12) % 5 < 3, 1.0, -1.0), np.where(X[:, 0] > 0.5, 1.0, -1.0)):
        found = ep_evidence(kernel, X, y, likelihood, gradient=True)
        assert np.isfinite(found.value) and np.isfinite(found.theta).all()
        assert found.converged
        mean, var = ep_posterior(kernel, X, y, likelihood).latent(np.array([[0.0, 1.0], [50.0, -3.0]]))
        assert np.isfinite(mean).all() and (var >= 0.0).all()


@pytest.mark.parametrize("likelihood", [Probit(), Logistic()], ids=["Probit", "Logistic"])
def test_a_point_that_the_prior_fixes(likelihood):
    X = np.array([[0.0], [1.0], [2.0], [0.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    found = ep_evidence(1.0 * kernels.Linear(), X, y, likelihood, gradient=True)
    alone = ep_evidence(1.0 * kernels.Linear(), X[1:3], y[1:3], likelihood, gradient=True)
    assert found.converged
    assert found.value == pytest.approx(alone.value + 2.0 * np.log(0.5), abs=1e-9)
    assert found.theta == pytest.approx(alone.theta, abs=1e-8)
    mean, var = ep_posterior(1.0 * kernels.Linear(), X, y, likelihood).latent(X)
    assert mean[0] == 0.0 and var[0] == 0.0


def test_report_and_refusal():
    X, y = problem(4, 30)
    K = (9.0 * kernels.RBF(1.0)).gram(X)
    fit = find_sites(K, y, Probit(), max_iter=2)
    assert fit.rounds == 2 and not fit.converged and fit.residual > 1e-8
    done = find_sites(K, y, Probit())
    assert done.converged and done.residual <= 1e-8 and (done.sites.tau >= 0.0).all()
    with pytest.raises(ModelError, match="exact moments"):
        find_sites(K, np.abs(y), Poisson())
