"""Bayesian logistic regression: scikit-learn's optimum, Laplace's posterior, averaged probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression

import gramgraph as gg

CONTRACT = [
    gg.BayesianLogisticRegression(),
    gg.BayesianLogisticRegression("softmax"),
]


def two(rng: np.random.Generator, n: int = 300, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 1.0][:d] + 3.0
    f = (X - 3.0) @ (rng.normal(size=d) / np.array([1.0, 10.0, 0.1, 1.0])[:d])
    return X, (rng.random(n) < expit(f)).astype(int)


@pytest.mark.parametrize("solver", ["irls", "gradient"])
def test_row_e3_equals_scikit_learn(solver: str) -> None:
    X, y = two(np.random.default_rng(0))
    ours = gg.BayesianLogisticRegression(solver=solver, prior=0.5).fit(X, y)
    peer = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-5 if solver == "irls" else 1e-3)
    np.testing.assert_allclose(ours.predict_proba(X, average=False), peer.predict_proba(X), atol=1e-6)


def test_row_e3_softmax_equals_scikit_learn() -> None:
    X, y = load_iris(return_X_y=True)
    ours = gg.BayesianLogisticRegression("softmax").fit(X, y)
    peer = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X, average=False), peer.predict_proba(X), atol=1e-6)
    assert (ours.predict(X) == peer.predict(X)).all()


@pytest.mark.parametrize("link", ["logistic", "probit", "softmax"])
def test_the_mode_is_one_and_the_curvature_is_the_second_derivative(link: str) -> None:
    """A by differences of the objective, written down independently."""
    from scipy.special import log_ndtr

    rng = np.random.default_rng(1)
    X, y = two(rng, 80, 2)
    if link == "softmax":
        y = rng.integers(3, size=80)
    model = gg.BayesianLogisticRegression(link, prior=2.0, tol=1e-8).fit(X, y)
    q = len(model.coef_)

    def objective(flat: np.ndarray) -> float:
        V = flat.reshape(q, 3)
        F = X @ V[:, :2].T + V[:, 2]
        penalty = 1.0 * (V[:, :2] ** 2).sum()
        if link == "softmax":
            return float(-(F[np.arange(80), y] - np.log(np.exp(F).sum(axis=1))).sum() + penalty)
        s = (2 * y - 1) * F[:, 0]
        return float(-(log_ndtr(s) if link == "probit" else -np.log1p(np.exp(-s))).sum() + penalty)

    mode = model.weights().mean
    size, h = len(mode), 1e-4
    e = h * np.eye(size)
    slope = [(objective(mode + e[i]) - objective(mode - e[i])) / (2 * h) for i in range(size)]
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)
    H = np.array([[
        (objective(mode + e[i] + e[j]) - objective(mode + e[i] - e[j]) - objective(mode - e[i] + e[j])
         + objective(mode - e[i] - e[j])) / (4 * h * h) for j in range(size)] for i in range(size)])  # fmt: skip
    A = np.linalg.inv(model.sigma_)
    if q > 1:  # a sum of 0 fixes the intercepts: compare what differences between classes see
        D = np.kron(np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]), np.eye(3))
        A, H = D.T @ A @ D, D.T @ H @ D
    np.testing.assert_allclose(A, H, rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_averaged_probabilities_are_integrals(link: str) -> None:
    from scipy.stats import norm

    X, y = two(np.random.default_rng(2), 40, 2)
    model = gg.BayesianLogisticRegression(link).fit(X, y)
    at = X[:3] * 4.0
    mean, var = model.latent(at)
    squash = expit if link == "logistic" else norm.cdf
    for i in range(3):
        s = np.sqrt(var[i])
        true = quad(lambda t, i=i, s=s: squash(mean[i] + s * t) * norm.pdf(t), -12, 12)[0]
        assert model.predict_proba(at)[i, 1] == pytest.approx(true, abs=1e-8)
    w = model.weights()
    full = np.column_stack([at, np.ones(3)])
    np.testing.assert_allclose(mean, full @ w.mean)
    np.testing.assert_allclose(var, np.einsum("ni,ij,nj->n", full, w.cov, full), rtol=1e-8)


def test_the_evidence_has_its_top_where_it_was_found() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = gg.BayesianLogisticRegression(prior="evidence").fit(X, y)
    for factor in (0.7, 1.0, 1.4):
        other = gg.BayesianLogisticRegression(prior=factor * model.alpha_).fit(X, y)
        assert other.log_evidence_ <= model.log_evidence_ + 1e-6


def test_blocks_come_near_the_whole() -> None:
    X, y = two(np.random.default_rng(3), 2000)
    whole = gg.BayesianLogisticRegression().fit(X, y)
    blocks = gg.BayesianLogisticRegression()
    for part in np.array_split(np.arange(2000), 10):
        blocks.partial_fit(X[part], y[part], classes=[0, 1])
    off = np.linalg.solve(np.linalg.cholesky(whole.sigma_), (blocks.weights().mean - whole.weights().mean))
    assert np.abs(off).max() < 1.0  # posterior deviations
    with pytest.raises(gg.StateError, match="not one of the classes"):
        blocks.partial_fit(X[:2], [0, 7])


def test_a_given_prior_is_the_one_of_the_users_units() -> None:
    X, y = two(np.random.default_rng(4), 100, 2)
    a = gg.BayesianLogisticRegression(prior=2.0).fit(X, y)
    b = gg.BayesianLogisticRegression(prior=(np.zeros(3), [0.5, 0.5, 1e8])).fit(X, y)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-5)
    np.testing.assert_allclose(a.sigma_, b.sigma_, rtol=1e-4, atol=1e-6)


def test_without_a_prior() -> None:
    X, y = two(np.random.default_rng(5))
    ours = gg.BayesianLogisticRegression(prior=None).fit(X, y)
    peer = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-5)
    for link, labels in (
        ("logistic", X[:, 0] > 3.0),
        ("probit", X[:, 0] > 3.0),
        ("softmax", np.digitize(X[:, 0], [2.5, 3.5])),
    ):
        with pytest.raises(gg.ModelError, match=r"no finite weights are best. Give a prior"):
            gg.BayesianLogisticRegression(link, prior=None).fit(X, labels)
    quasi = np.array([[0.0], [0.0], [1.0], [2.0], [0.0], [3.0]])
    with pytest.raises(gg.ModelError, match="no finite weights"):
        gg.BayesianLogisticRegression(prior=None).fit(quasi, [0, 1, 1, 1, 0, 1])
    with pytest.raises(gg.ModelError, match="linearly dependent"):
        gg.BayesianLogisticRegression(prior=None).fit(np.column_stack([X, X[:, 0]]), y)


def test_weights_count_rows_several_times() -> None:
    rng = np.random.default_rng(6)
    X, y = two(rng, 120)
    w = rng.integers(0, 4, size=120)
    for link in ("logistic", "probit", "softmax"):
        a = gg.BayesianLogisticRegression(link).fit(X, y, sample_weight=w)
        b = gg.BayesianLogisticRegression(link).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)
        np.testing.assert_allclose(a.sigma_, b.sigma_, rtol=1e-5, atol=1e-9)


def test_bad_input_is_named() -> None:
    X, y = two(np.random.default_rng(7), 30)
    with pytest.raises(gg.ModelError, match="one class only"):
        gg.BayesianLogisticRegression().fit(X, np.zeros(30))
    with pytest.raises(gg.ModelError, match="probit link is one of two classes"):
        gg.BayesianLogisticRegression("probit").fit(X, np.arange(30) % 3)
    with pytest.raises(gg.OptionError, match="prior"):
        gg.BayesianLogisticRegression(prior="evidenc").fit(X, y)
    with pytest.raises(gg.OptionError, match="positive definite covariance"):
        gg.BayesianLogisticRegression(prior=([0.0], [[1.0]])).fit(X, y)
    constant = gg.BayesianLogisticRegression().fit(np.column_stack([X, np.full(30, 7.0)]), y)
    assert constant.coef_[0, -1] == pytest.approx(0.0, abs=1e-9)
