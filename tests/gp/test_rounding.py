"""Processes at the edge of what doubles can hold: answers that fit their own equations, and errors instead of NaN."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import kernels as k
from gramgraph._numerics.compiling import tier
from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph.linalg import Kronecker
from gramgraph.linalg import sample as draws
from gramgraph.variables import Real, Var


@pytest.mark.parametrize("length", [20.0, 1e5, 1e300])
@pytest.mark.parametrize("make", [k.RBF, k.Matern])
def test_toeplitz_factor_solves_its_equations(length: float, make: type) -> None:
    x = np.arange(60.0)[:, None]
    gp = gg.GaussianProcessRegressor(make(length), alpha=0.0, optimizer=None, approx="toeplitz")
    gp.fit(x, np.ones(60))
    assert np.abs(gp.predict(x) - 1.0).max() < 0.01  # a constant lies in the reach of all of them
    assert gp.jitter_ > 0.0 or length < 1e5


@pytest.mark.parametrize("approx", ["exact", "titsias", "fitc", "sor", "rff", "cg"])
def test_huge_targets(approx: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    gp = gg.GaussianProcessRegressor(1.0 * k.RBF(), optimizer=None, approx=approx, n_inducing=10, random_state=0)
    try:
        huge = gp.fit(X, y * 1e150).predict(X)
    except gg.ModelError as error:
        assert "normalize_y" in str(error)
    else:
        assert not np.isnan(gp.log_marginal_likelihood_value_)
        np.testing.assert_allclose(huge / 1e150, gp.fit(X, y).predict(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "approx", ["exact", "state_space", "toeplitz", "titsias", "fitc", "sor", "rff", "cg", "coregional", "mixture"]
)
def test_a_posterior_prints_one_line(approx: str) -> None:
    x = np.linspace(0.0, 5.0, 40)[:, None]
    Y = np.sin(x) if approx != "coregional" else np.hstack([np.sin(x), np.cos(x)])
    gp = gg.GaussianProcessRegressor(
        k.Matern(nu=1.5) + k.White(0.1),
        optimizer=None,
        approx=approx if approx not in ("coregional", "mixture") else "exact",
        n_inducing=10,
        coregionalization=1 if approx == "coregional" else None,
        integrate="quadrature" if approx == "mixture" else None,
    ).fit(x, Y)
    text = repr(gp.mixture_ if approx == "mixture" else gp.posterior_)
    assert len(text) < 200 and "\n" not in text
    assert approx == "mixture" or ("n=40" in text and "log_evidence=" in text)


def test_latent_posteriors_print_one_line() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    two = gg.GaussianProcessClassifier(optimizer=None).fit(X, X[:, 0] > 0)
    three = gg.GaussianProcessClassifier(multi_class="softmax", optimizer=None).fit(
        X, np.digitize(X[:, 0], [-0.5, 0.5])
    )
    for gp in (two, three):
        assert len(repr(gp.posterior_)) < 200


def test_draws_do_not_depend_on_the_tier_where_eigenvalues_repeat() -> None:
    grid = np.array([(i, j) for i in range(6) for j in range(4)], float)
    y = np.random.default_rng(0).normal(size=24)
    found = []
    for name in ("plain", "compiled"):
        with tier(name):
            gp = gg.GaussianProcessRegressor(k.RBF(1e-5), alpha=0.05, optimizer=None).fit(grid, y)
            found.append(gp.sample_y(grid[:4], 3, random_state=0))
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_draws_move_as_little_as_their_covariance() -> None:
    rng = np.random.default_rng(0)
    d = 4
    noise = rng.normal(size=(d, d))
    noise = 1e-15 * (noise + noise.T)
    C = np.diag([1.0, 1.0, 1.0, 0.0])  # three directions of one variance, and one without any
    singular = np.diag([1.0, 1.0, 0.0, 0.0])
    x = Var("x", Real(d))
    for draw in (
        symmetric_root,
        lambda S: gg.Gaussian(np.zeros(d), S).sample(5, random_state=0, method="eigen"),
        lambda S: gg.Gaussian(np.zeros(d), S - C + singular).sample(5, random_state=0),
        lambda S: gg.LinearGaussian(x, intercept=np.zeros(d), covariance=S).draw({}, 5, np.random.default_rng(0)),
        lambda S: draws(Kronecker((S, S), 0.1).factor(), 2, random_state=0),
    ):
        np.testing.assert_allclose(draw(C + noise), draw(C), atol=1e-6)
    B = rng.normal(size=(5, d, 2))
    S = B @ np.swapaxes(B, 1, 2)
    R = symmetric_root(S)
    np.testing.assert_allclose(R @ R, S, atol=1e-12)
