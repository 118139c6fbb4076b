from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize

from gramgraph import kernels
from gramgraph.exceptions import ModelError
from gramgraph.gp.laplace import find_mode, laplace_evidence, laplace_posterior
from gramgraph.gp.likelihoods import (
    CLogLog,
    GammaSizes,
    GaussianNoise,
    Logistic,
    NegativeBinomial,
    Poisson,
    Probit,
)
from tests.gp.brute_force import by_quadrature


def problem(seed, n=40, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


def targets(likelihood, X, y):
    if isinstance(likelihood, (Poisson, NegativeBinomial)):
        return np.abs(np.round(3 * X[:, 0]))
    if isinstance(likelihood, GammaSizes):
        return np.abs(X[:, 0]) + 0.1
    return X[:, 0] if isinstance(likelihood, GaussianNoise) else y


ALL = [Logistic(), Probit(), CLogLog(), Poisson(), NegativeBinomial(0.7), GammaSizes(2.0), GaussianNoise(0.3)]
NAMES = [type(likelihood).__name__ for likelihood in ALL]


@pytest.mark.parametrize("likelihood", ALL, ids=NAMES)
def test_mode_and_evidence_of_the_plain_algorithm(likelihood):
    X, y = problem(0, 25)
    y = targets(likelihood, X, y)
    K = (2.0 * kernels.RBF([1.0, 2.0, 0.7]) + kernels.White(0.05)).gram(X)
    P = np.linalg.inv(K)

    def loss(f):
        return 0.5 * f @ P @ f - likelihood.log_density(y, f).sum()

    def slope(f):
        return P @ f - likelihood.derivatives(y, f).first

    best = minimize(loss, np.zeros(25), jac=slope, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    W = -likelihood.derivatives(y, best.x).second
    wanted = -best.fun - 0.5 * np.linalg.slogdet(np.eye(25) + K * W)[1]
    mode = find_mode(K, y, likelihood)
    assert mode.converged
    assert mode.f == pytest.approx(best.x, abs=1e-6)
    assert mode.alpha == pytest.approx(P @ mode.f, abs=1e-8)
    assert mode.log_evidence == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("likelihood", ALL, ids=NAMES)
@pytest.mark.parametrize(
    "kernel", [3.0 * kernels.RBF([1.0, 2.0, 0.7]), 0.5 * kernels.Matern([0.5, 1, 1], nu=1.5) + 0.1]
)
def test_gradient_against_differences(likelihood, kernel):
    X, y = problem(1, 40)
    y = targets(likelihood, X, y)
    found = laplace_evidence(kernel, X, y, likelihood, gradient=True)
    h = 1e-4
    differences = []
    for step in h * np.eye(len(kernel.theta)):
        up, down = (
            laplace_evidence(kernel.with_theta(kernel.theta + s), X, y, likelihood).value for s in (step, -step)
        )
        differences.append((up - down) / (2 * h))
    assert np.abs(found.theta - differences).max() < 1e-6 * (1.0 + np.abs(differences).max())


@pytest.mark.parametrize("seed", range(6))
def test_evidence_and_gradient_equal_scikit_learn(seed):
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    rng = np.random.default_rng(seed)
    X, y = problem(seed, 60, 2 + seed % 3)
    variance, scales = float(np.exp(rng.normal())), np.exp(rng.normal(size=X.shape[1]))
    peer = GaussianProcessClassifier(ConstantKernel(variance) * RBF(scales), optimizer=None).fit(X, y)
    value, slope = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    found = laplace_evidence(variance * kernels.RBF(scales), X, y, Logistic(), gradient=True)
    # the peer stops when a step of Newton's method gains less than 1e-10
    assert found.value == pytest.approx(value, abs=2e-9, rel=1e-9)
    assert found.theta == pytest.approx(slope, abs=1e-7, rel=1e-7)


def test_gaussian_noise_is_exact_regression():
    X, _ = problem(2, 30)
    y = np.sin(X[:, 0])
    kernel = 1.5 * kernels.RBF(1.3)
    process = laplace_posterior(kernel, X, y, GaussianNoise(0.2))
    C = kernel.gram(X) + 0.2 * np.eye(30)
    wanted = -0.5 * y @ np.linalg.solve(C, y) - 0.5 * np.linalg.slogdet(C)[1] - 15 * np.log(2 * np.pi)
    assert process.log_evidence == pytest.approx(wanted, abs=1e-10)
    new = np.random.default_rng(0).normal(size=(7, 3))
    Ks = kernel.gram(new, X)
    mean, cov = process.latent_cov(new)
    assert mean == pytest.approx(Ks @ np.linalg.solve(C, y), abs=1e-10)
    assert cov == pytest.approx(kernel.gram(new) - Ks @ np.linalg.solve(C, Ks.T), abs=1e-10)
    assert process.latent(new)[1] == pytest.approx(np.diag(cov), abs=1e-12)


@pytest.mark.parametrize("likelihood", [Logistic(), Probit(), Poisson()], ids=["Logistic", "Probit", "Poisson"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_near_the_truth_and_nearer_as_the_prior_narrows(likelihood, n):
    X = np.array([[0.0], [0.8], [2.0]])[:n]
    y = np.array([1.0, -1.0, 1.0] if not isinstance(likelihood, Poisson) else [2.0, 0.0, 5.0])[:n]
    errors = []
    for variance in (1.0, 0.1, 0.01):
        kernel = variance * kernels.RBF(1.0)
        log_z, mean, cov = by_quadrature(
            kernel.gram(X), lambda f: likelihood.log_density(y, f).sum(axis=1), order=40 if n == 3 else 80
        )
        process = laplace_posterior(kernel, X, y, likelihood)
        errors.append(abs(process.log_evidence - log_z))
        got_mean, got_var = process.latent(X)
        assert np.abs(got_mean - mean).max() < 0.25 * np.sqrt(np.diag(cov)).max()
        assert np.abs(got_var / np.diag(cov) - 1.0).max() < 0.25
    # Laplace's error is of the order of the third and fourth cumulants: variance² here
    assert errors[0] < 0.06 and errors[1] < 4e-3 and errors[2] < 1e-4


def test_start_changes_the_work_and_not_the_answer():
    X, y = problem(3, 80)
    kernel = 4.0 * kernels.RBF(1.0)
    cold = laplace_evidence(kernel, X, y, Logistic(), gradient=True)
    near = laplace_evidence(kernel.with_theta(kernel.theta + 0.02), X, y, Logistic())
    warm = laplace_evidence(kernel, X, y, Logistic(), gradient=True, start=near.start)
    again = laplace_evidence(kernel, X, y, Logistic(), start=cold.start)
    assert warm.steps == 2 and again.steps == 1 and cold.steps > 2
    assert warm.value == pytest.approx(cold.value, abs=1e-10)
    assert warm.theta == pytest.approx(cold.theta, abs=1e-8)
    nonsense = laplace_evidence(kernel, X, y, Logistic(), start=np.full(80, 1e6) * y[::-1])
    assert nonsense.value == pytest.approx(cold.value, abs=1e-10)


def test_offset_shifts_the_latent_function():
    X, _ = problem(4, 30)
    size = np.exp(np.random.default_rng(0).normal(size=30))
    y = np.random.default_rng(1).poisson(3.0 * size).astype(float)
    kernel = 0.5 * kernels.RBF(1.0)
    process = laplace_posterior(kernel, X, y, Poisson(), prior_mean=1.1, offset=np.log(size))
    f = process.latent_mean(X) + np.log(size)
    assert y - np.exp(f) == pytest.approx(process.alpha, abs=1e-9)  # the mode's equation


@pytest.mark.parametrize(
    "kernel",
    [
        1e5 * kernels.RBF(1e5),
        1e5 * kernels.RBF(1e-5),
        1e-5 * kernels.RBF(1.0),
        1e5 * kernels.RBF(1.0),
        kernels.Constant(1.0),
        1e5 * kernels.Linear(),
    ],
    ids=str,
)
@pytest.mark.parametrize("likelihood", ALL, ids=NAMES)
def test_never_nan_at_the_bounds_and_on_duplicates(kernel, likelihood):
    X = np.repeat(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]), 4, axis=0)  # duplicates, and a constant column
    y = np.where(np.arange(12) % 5 < 3, 1.0, -1.0)  # contradicting labels at one place
    if not isinstance(likelihood, (Logistic, Probit, CLogLog, GaussianNoise)):
        y = np.arange(12.0) + 0.5
    found = laplace_evidence(kernel, X, y, likelihood, gradient=True)
    assert np.isfinite(found.value) and np.isfinite(found.theta).all() and found.converged
    process = laplace_posterior(kernel, X, y, likelihood)
    mean, var = process.latent(np.array([[0.0, 1.0], [50.0, -3.0]]))
    assert np.isfinite(mean).all() and (var >= 0.0).all() and process.jitter == 0.0


def test_separable_classes_and_two_points():
    for X in (np.array([[-1.0], [1.0]]), np.linspace(-3, 3, 20)[:, None]):
        y = np.sign(X[:, 0])
        for likelihood in (Logistic(), Probit()):
            found = laplace_evidence(1e5 * kernels.RBF(2.0), X, y, likelihood, gradient=True)
            assert np.isfinite(found.value) and np.isfinite(found.theta).all() and found.converged


def test_memory_does_not_grow_with_the_number_of_parameters():
    n, d = 300, 40
    X, y = problem(5, n, d)
    kernel = 1.0 * kernels.RBF(np.full(d, 5.0))
    laplace_evidence(kernel, X[:20], y[:20], Logistic(), gradient=True)
    tracemalloc.start()
    laplace_evidence(kernel, X, y, Logistic(), gradient=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n * 8  # an (n, n, p) array alone would be 41 n² doubles


def test_draws_have_the_posterior_moments():
    X, y = problem(6, 30)
    process = laplace_posterior(2.0 * kernels.RBF(1.0), X, y, Logistic())
    new = np.vstack([X[:3], X[:1]])  # a point twice: its two values agree
    mean, cov = process.latent_cov(new)
    draws = process.sample(new, 40_000, random_state=0)
    assert draws.shape == (40_000, 4)
    assert np.abs(draws[:, 0] - draws[:, 3]).max() < 1e-2
    assert np.abs(draws.mean(axis=0) - mean).max() < 5 * np.sqrt(np.diag(cov).max() / 40_000)
    assert np.cov(draws.T) == pytest.approx(cov, abs=0.06)


@pytest.mark.filterwarnings("ignore:overflow")
def test_overflowing_kernels_are_named():
    with pytest.raises(ModelError, match="not finite"):
        laplace_evidence(1e300 * kernels.Linear(), [[1e10], [2e10]], np.array([1.0, -1.0]), Logistic())


def test_few_iterations_are_reported():
    X, y = problem(7, 40)
    assert not laplace_evidence(50.0 * kernels.RBF(1.0), X, y, Logistic(), max_iter=1).converged
