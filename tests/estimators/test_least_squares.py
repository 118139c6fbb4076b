"""Row E1: least squares by the pseudo-inverse and the lasso on the eleven bases."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso as Peer

import gramgraph as gg

NAMES = (
    "polynomial", "gaussian", "sigmoid", "fourier", "pixel", "switch", "v", "legendre", "laguerre", "laplace", "bell",
)  # fmt: skip


def line(n: int = 10) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0.0, 1.0, n)
    return x[:, None], np.sin(2.0 * np.pi * x) + 0.1 * np.random.default_rng(0).normal(size=n)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [9, 25])
def test_row_e1_equals_the_pseudo_inverse(name: str, m: int) -> None:
    """M = N = 10, and M > N: fitted values and, where the rows leave weights open, minimum norm."""
    X, y = line()
    for model in (
        gg.estimators.LeastSquares(name, n_basis=m),
        gg.BayesianLinearRegression(name, n_basis=m, alpha=0, learn=None),
    ):
        model.fit(X, y)
        Phi = model.basis_.transform(X)
        w = np.linalg.pinv(Phi) @ y
        np.testing.assert_allclose(model.predict(X), Phi @ w, atol=1e-6)
        assert np.linalg.norm(model.coef_) <= np.linalg.norm(w) * (1.0 + 1e-6)


def test_without_a_prior_the_posterior_is_the_usual_one() -> None:
    X, y = line(40)
    model = gg.BayesianLinearRegression("polynomial", n_basis=3, alpha=0, beta=4.0, learn=None).fit(X, y)
    near = gg.BayesianLinearRegression("polynomial", n_basis=3, alpha=1e-9, beta=4.0, learn=None).fit(X, y)
    np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.sigma_, near.sigma_, rtol=1e-5)
    # a flat density 1 instead of N(0, I/α): the evidence differs by ½ M log(α/2π)
    assert model.log_evidence_ == pytest.approx(near.log_evidence_ - 2.0 * np.log(1e-9 / (2.0 * np.pi)), rel=1e-6)
    with pytest.raises(gg.ModelError, match="needs a prior"):
        model.partial_fit(X, y)
    with pytest.raises(gg.GramGraphError, match="alpha"):
        gg.BayesianLinearRegression(alpha=0).fit(X, y)


@pytest.mark.parametrize("name", NAMES)
def test_row_e1_the_lasso_equals_scikit_learn(name: str) -> None:
    X, y = line(30)
    model = gg.estimators.Lasso(name, n_basis=8, alpha=0.01).fit(X, y)
    Phi = model.basis_.transform(X)
    flat = np.ptp(Phi, axis=0) == 0.0
    constant = bool((flat & (Phi[0] != 0.0)).any())
    peer = Peer(0.01, fit_intercept=constant, tol=1e-8, max_iter=10000).fit(Phi[:, ~flat], y)
    np.testing.assert_allclose(model.coef_[~flat], peer.coef_, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), peer.predict(Phi[:, ~flat]), atol=1e-9)


def test_densities_of_classes_from_neighbors() -> None:
    """p(x | c) = K_c/(N_c V), p(x) = K/(NV): Bayes' rule gives back the shares K_c/K."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 1], 20)
    model = gg.estimators.KernelNeighborsClassifier(7).fit(X, y)
    at = rng.normal(size=(5, 2))
    density = model.class_density(at)
    share = density * np.bincount(y) / 60
    np.testing.assert_allclose(share / share.sum(axis=1, keepdims=True), model.predict_proba(at))
    radius = np.sort(np.linalg.norm(X - at[0], axis=1))[6]
    assert share[0].sum() == pytest.approx(7 / (60 * np.pi * radius**2))
