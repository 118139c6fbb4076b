from __future__ import annotations

import numpy as np
import pytest

from gramgraph import kernels
from gramgraph.gp.laplace import laplace_evidence, laplace_posterior
from gramgraph.gp.likelihoods import Logistic, Softmax
from gramgraph.gp.softmax import softmax_evidence, softmax_posterior
from tests.gp.brute_force import by_quadrature


def problem(seed, n=30, classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    score = X[:, 0] + 0.4 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def dense(kernel, X, A, new):
    """Evidence and covariance at new points through the whole (nC, nC) matrices."""
    n, C = A.shape
    K = kernel.gram(X)
    F = K @ A
    P = Softmax(C).response(F)
    W = np.zeros((C, n, C, n))
    for i in range(n):
        W[:, i, :, i] = np.diag(P[i]) - np.outer(P[i], P[i])
    W = W.reshape(C * n, C * n)
    whole = np.kron(np.eye(C), K)
    half_logdet = 0.5 * np.linalg.slogdet(np.eye(C * n) + whole @ W)[1]
    Q = np.kron(np.eye(C), kernel.gram(new, X))
    cov = np.kron(np.eye(C), kernel.gram(new)) - Q @ W @ np.linalg.solve(np.eye(C * n) + whole @ W, Q.T)
    return F, half_logdet, cov.reshape(C, len(new), C, len(new))


@pytest.mark.parametrize("classes", [3, 5])
def test_evidence_and_covariance_through_the_big_matrices(classes):
    X, y = problem(0, 30, classes)
    kernel = 3.0 * kernels.RBF([1.0, 2.0])
    process = softmax_posterior(kernel, X, y, classes)
    new = np.random.default_rng(1).normal(size=(6, 2))
    F, half_logdet, cov = dense(kernel, X, process.alpha, new)
    link = Softmax(classes)
    assert process.alpha == pytest.approx(link.gradient(y, F), abs=1e-9)  # the mode's equation
    wanted = link.log_density(y, F).sum() - 0.5 * np.vdot(process.alpha, F) - half_logdet
    assert process.log_evidence == pytest.approx(wanted, abs=1e-9)
    mean, got = process.latent(new)
    assert mean == pytest.approx(kernel.gram(new, X) @ process.alpha)
    assert got == pytest.approx(np.einsum("cidi->icd", cov), abs=1e-9)
    draws = process.sample(new[:2], 50_000, random_state=0)
    assert draws.shape == (50_000, 2, classes)
    joint = np.cov(np.swapaxes(draws, 1, 2).reshape(50_000, -1).T)
    assert joint == pytest.approx(cov[:, :2, :, :2].reshape(2 * classes, -1), abs=0.08)


@pytest.mark.parametrize("kernel", [3.0 * kernels.RBF([1.0, 2.0]), 0.2 * kernels.Matern(0.5, nu=1.5) + 0.3], ids=str)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_gradient_against_differences(kernel, classes):
    X, y = problem(2, 30, classes)
    found = softmax_evidence(kernel, X, y, classes, gradient=True)
    h = 1e-4
    differences = []
    for step in h * np.eye(len(kernel.theta)):
        up, down = (softmax_evidence(kernel.with_theta(kernel.theta + s), X, y, classes).value for s in (step, -step))
        differences.append((up - down) / (2 * h))
    assert np.abs(found.theta - differences).max() < 1e-6 * (1.0 + np.abs(differences).max())


def test_two_classes_are_the_logistic_model_of_the_difference():
    X, y = problem(3, 40, 2)
    kernel = 1.7 * kernels.RBF(1.2)
    sign = np.where(y == 1, 1.0, -1.0)
    both = softmax_evidence(kernel, X, y, 2, gradient=True)
    one = laplace_evidence(2.0 * kernel, X, sign, Logistic(), gradient=True)
    assert both.value == pytest.approx(one.value, abs=1e-9)
    assert both.theta == pytest.approx(one.theta, abs=1e-8)
    mean, cov = softmax_posterior(kernel, X, y, 2).latent(X[:5] + 0.1)
    m, v = laplace_posterior(2.0 * kernel, X, sign, Logistic()).latent(X[:5] + 0.1)
    assert mean[:, 1] - mean[:, 0] == pytest.approx(m, abs=1e-9)
    assert cov[:, 0, 0] + cov[:, 1, 1] - 2 * cov[:, 0, 1] == pytest.approx(v, abs=1e-9)


@pytest.mark.parametrize("variance, bound", [(0.1, 1e-3), (1.0, 0.05)])
def test_near_the_truth_for_one_point_of_three_classes(variance, bound):
    K = variance * np.eye(3)
    log_z, mean, cov = by_quadrature(K, lambda f: Softmax(3).log_density(np.full(len(f), 1), f), order=40)
    process = softmax_posterior(variance * kernels.RBF(1.0), np.zeros((1, 1)), np.array([1]), 3)
    assert process.log_evidence == pytest.approx(log_z, abs=bound)
    assert process.latent_mean(np.zeros((1, 1)))[0] == pytest.approx(mean, abs=5 * bound)
    assert process.latent(np.zeros((1, 1)))[1][0] == pytest.approx(cov, abs=5 * bound)


def test_start_keeps_the_answer():
    X, y = problem(4, 50, 3)
    kernel = 2.0 * kernels.RBF(1.0)
    cold = softmax_evidence(kernel, X, y, 3, gradient=True)
    near = softmax_evidence(kernel.with_theta(kernel.theta + 0.05), X, y, 3)
    warm = softmax_evidence(kernel, X, y, 3, gradient=True, start=near.start)
    assert warm.steps <= cold.steps
    assert warm.value == pytest.approx(cold.value, abs=1e-9)
    assert warm.theta == pytest.approx(cold.theta, abs=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [1e5 * kernels.RBF(1e5), 1e5 * kernels.RBF(1e-5), 1e-5 * kernels.RBF(1.0), 1e5 * kernels.RBF(1.0)],
    ids=str,
)
def test_never_nan_at_the_bounds_and_on_duplicates(kernel):
    X = np.repeat(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]), 4, axis=0)
    for y in (np.arange(12) % 3, np.repeat([0, 1, 2], 4)):
        found = softmax_evidence(kernel, X, y, 3, gradient=True)
        assert np.isfinite(found.value) and np.isfinite(found.theta).all()
        process = softmax_posterior(kernel, X, y, 3)
        mean, cov = process.latent(np.array([[0.0, 1.0], [50.0, -3.0]]))
        p = process.likelihood.averaged(mean, cov)
        assert np.isfinite(p).all() and p.sum(axis=1) == pytest.approx(1.0)
