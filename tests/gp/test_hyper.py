"""Search, priors, slice sampling and quadrature over hyper-parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramgraph import GaussianProcessRegressor as GP
from gramgraph._numerics.compiling import tier
from gramgraph.exceptions import ModelError
from gramgraph.gp import Gamma, InverseGamma, LogNormal, quadrature, slice_sample
from gramgraph.gp.hyper import ascend, curvature_inverse, quasi_newton, search
from gramgraph.gp.priors import prior_density
from gramgraph.kernels import RBF, White

BOX = np.array([[-5.0, 5.0], [-5.0, 5.0]])


def bowl(theta, gradient):
    A = np.array([[3.0, 1.0], [1.0, 2.0]])
    gap = theta - np.array([1.0, -2.0])
    return -0.5 * float(gap @ A @ gap), -A @ gap


def banana(theta, gradient):
    x, y = theta
    value = -((1 - x) ** 2) - 20 * (y - x * x) ** 2
    return value, np.array([2 * (1 - x) + 80 * x * (y - x * x), -40 * (y - x * x)])


def test_both_climbers_reach_the_top():
    for f, top in ((bowl, [1.0, -2.0]), (banana, [1.0, 1.0])):
        for found in (ascend(f, np.zeros(2), BOX), quasi_newton(f, np.zeros(2), BOX, np.eye(2))):
            np.testing.assert_allclose(found.theta, top, atol=1e-3)
            assert found.converged and found.value == pytest.approx(0.0, abs=1e-5)
    guess = curvature_inverse(bowl, np.zeros(2), BOX, 1.0)
    assert quasi_newton(bowl, np.zeros(2), BOX, guess).evaluations <= 4


def test_bounds_hold_and_failures_are_survived():
    box = np.array([[-5.0, 0.5], [-5.0, 5.0]])
    for found in (ascend(bowl, np.zeros(2), box), quasi_newton(bowl, np.zeros(2), box, np.eye(2))):
        np.testing.assert_allclose(found.theta, [0.5, -1.75], atol=1e-4)

    def cliff(theta, gradient):
        return (-np.inf, np.zeros(2)) if theta[0] > 0.7 else bowl(theta, gradient)

    assert np.isfinite(ascend(cliff, np.zeros(2), BOX).value)
    assert np.isfinite(quasi_newton(cliff, np.zeros(2), BOX, np.eye(2)).value)


def test_an_entry_that_matters_little_goes_to_its_end_at_once():
    """A tail e^(−2x) takes many steps of about one; a weak hill in between must not be left for it."""
    calls = []

    def tail(theta, _):
        calls.append(theta)
        fade = np.exp(-2.0 * theta[1])
        return -0.5 * theta[0] ** 2 - 0.1 * fade, np.array([-theta[0], 0.2 * fade])

    bounds = np.array([[-9.0, 9.0], [-2.0, 11.0]])
    found = quasi_newton(tail, np.array([1.0, 0.0]), bounds, np.diag([1.0, 2.0]))
    assert found.theta == pytest.approx([0.0, 11.0], abs=1e-3) and len(calls) < 8

    def hill(theta, _):
        value = -0.5 * theta[0] ** 2 - 0.1 * (theta[1] - 1.0) ** 2
        return value, np.array([-theta[0], -0.2 * (theta[1] - 1.0)])

    found = quasi_newton(hill, np.array([1.0, 0.0]), bounds, np.diag([1.0, 5.0]))
    assert found.theta == pytest.approx([0.0, 1.0], abs=1e-3)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_third_of_the_points_first_reaches_the_same_evidence(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(500, 3))
    y = np.sin(X[:, 0]) + 0.5 * np.cos(2.0 * X[:, 1]) + 0.1 * rng.normal(size=500)
    kernel = 1.0 * RBF([1.0, 1.0, 1.0]) + White(0.1)
    usual = GP(kernel, n_restarts_optimizer=2, random_state=0).fit(X, y)
    monkeypatch.setattr("gramgraph.estimators._gp_search._MANY", 450)
    found = GP(kernel, n_restarts_optimizer=2, random_state=0).fit(X, y)
    assert found.log_marginal_likelihood_value_ > usual.log_marginal_likelihood_value_ - 2e-3


def test_restarts_find_the_higher_hill():
    def hills(theta, gradient):
        a, b = np.exp(-0.5 * ((theta[0] + 3) / 0.7) ** 2), 3 * np.exp(-0.5 * ((theta[0] - 3) / 0.7) ** 2)
        return float(a + b), np.array([-a * (theta[0] + 3) / 0.49 - b * (theta[0] - 3) / 0.49])

    box = np.array([[-5.0, 5.0]])
    assert search(hills, np.array([-3.0]), box).value == pytest.approx(1.0, abs=1e-3)
    assert search(hills, np.array([-3.0]), box, restarts=8, random_state=0).value == pytest.approx(3.0, abs=1e-3)
    found = search(hills, np.array([-3.0]), box, restarts=8, small=hills, random_state=0)
    assert found.value == pytest.approx(3.0, abs=1e-3)


@pytest.mark.parametrize("prior", [LogNormal(2.0, 0.5), Gamma(2.0, 3.0), InverseGamma(3.0, 2.0)])
def test_slopes_of_priors(prior):
    t, h = np.array([0.3]), 1e-6
    numeric = (prior.log_density(t + h) - prior.log_density(t - h)) / (2 * h)
    np.testing.assert_allclose(prior.slope(t), numeric, rtol=1e-6)


def test_names_of_priors():
    names = ("terms[0].variance", "terms[0].base.length_scale[0]", "terms[0].base.length_scale[1]", "terms[1].variance")
    density = prior_density({"length_scale": LogNormal(1.0), "terms[1].variance": LogNormal(1.0)}, names)
    assert density(np.array([9.0, 1.0, 2.0, 3.0]))[0] == pytest.approx(-0.5 * (1 + 4 + 9))
    with pytest.raises(ModelError, match="not a free parameter"):
        prior_density({"width": LogNormal(1.0)}, names)


def wave(n=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=n)


def test_map_moves_toward_the_prior():
    X, y = wave()
    kernel = 1.0 * RBF() + White(0.1)
    free = GP(kernel).fit(X, y)
    pulled = GP(kernel, hyper_prior={"length_scale": LogNormal(0.2, 0.05)}).fit(X, y)
    assert abs(np.log(pulled.kernel_.terms[0].base.length_scale / 0.2)) < 0.3
    assert pulled.log_marginal_likelihood_value_ < free.log_marginal_likelihood_value_
    # the gradient vanishes at the mode of evidence × prior
    theta = pulled.kernel_.theta
    slope = pulled.log_marginal_likelihood(theta, eval_gradient=True)[1]
    slope[1] += LogNormal(0.2, 0.05).slope(theta[1])
    assert np.abs(slope).max() < 0.05


def test_quadrature_is_exact_for_gaussians_and_fair_for_gammas():
    S = np.array([[0.5, 0.2], [0.2, 0.3]])
    P = np.linalg.inv(S)
    nodes, weights, log_z = quadrature(lambda t: -0.5 * float(t @ P @ t), np.zeros(2), np.array([[-9.0, 9.0]] * 2))
    assert log_z == pytest.approx(0.5 * np.linalg.slogdet(2 * np.pi * S)[1], abs=1e-3)
    np.testing.assert_allclose((weights * nodes.T) @ nodes, S, rtol=1e-2)
    # θ = log of a Gamma(20, 20): E e^θ = 1, log Z = log Γ(20) − 20 log 20
    prior = Gamma(20.0, 20.0)
    nodes, weights, log_z = quadrature(
        lambda t: float(prior.log_density(t)[0]), np.zeros(1), np.array([[-9.0, 9.0]]), order=7
    )
    from scipy.special import gammaln

    assert weights @ np.exp(nodes[:, 0]) == pytest.approx(1.0, abs=1e-3)
    assert log_z == pytest.approx(gammaln(20) - 20 * np.log(20), abs=1e-3)
    with pytest.raises(ModelError, match="more than 1000"):
        quadrature(lambda t: 0.0, np.zeros(12), np.array([[-1.0, 1.0]] * 12))


def test_slice_samples_have_the_moments_of_the_density():
    # 4,000 sweeps of a correlated Gaussian; tolerances of about 5 standard errors with their correlation
    S = np.array([[1.0, 0.6], [0.6, 1.0]])
    P = np.linalg.inv(S)
    draws = slice_sample(
        lambda t: -0.5 * float(t @ P @ t), np.zeros(2), np.array([[-9.0, 9.0]] * 2), 4000, random_state=0
    )
    np.testing.assert_allclose(draws.mean(0), 0.0, atol=0.15)
    np.testing.assert_allclose(np.cov(draws.T), S, atol=0.2)
    box = slice_sample(lambda t: 0.0, np.zeros(1), np.array([[-1.0, 2.0]]), 3000, random_state=0)
    assert box.min() >= -1 and box.max() <= 2 and box.mean() == pytest.approx(0.5, abs=0.1)


def test_averages_over_hyper_parameters():
    X, y = wave(12)
    kernel = RBF() + White(0.1)
    priors = {"length_scale": LogNormal(1.0, 0.7), "variance": LogNormal(0.1, 1.0)}
    point = GP(kernel, hyper_prior=priors).fit(X, y)
    slices = GP(kernel, hyper_prior=priors, integrate="slice", n_hyper=150, random_state=0).fit(X, y)
    nodes = GP(kernel, hyper_prior=priors, integrate="quadrature", n_hyper=7, random_state=0).fit(X, y)
    Z = np.linspace(0, 9, 10)[:, None]
    (m0, s0), (m1, s1), (m2, s2) = (gp.predict(Z, return_std=True) for gp in (point, slices, nodes))
    np.testing.assert_allclose(m1, m2, atol=0.1)
    np.testing.assert_allclose(s1, s2, rtol=0.15)
    assert s2.mean() > s0.mean()  # not knowing the parameters is a source of doubt
    assert nodes.sample_y(Z, 5).shape == (10, 5)
    np.testing.assert_allclose(np.sqrt(nodes.predict(Z, return_cov=True)[1].diagonal()), s2)
    # the evidence without hyper-parameters, against a fine grid
    density = prior_density(priors, kernel.parameter_names)
    grid = np.linspace(-4, 3, 30)
    values = [
        [point.log_marginal_likelihood(np.array([a, b])) + density(np.array([a, b]))[0] for b in grid - 2] for a in grid
    ]
    log_z = np.log(np.sum(np.exp(np.array(values) - np.max(values)))) + np.max(values) + 2 * np.log(grid[1] - grid[0])
    assert nodes.mixture_.log_evidence == pytest.approx(log_z, abs=0.05)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: LogNormal(0.0, 1.0), "median of the value itself"),
        (lambda: LogNormal(-1.0), "median"),
        (lambda: LogNormal(1.0, 0.0), "sigma"),
        (lambda: LogNormal(np.nan), "median"),
        (lambda: Gamma(0.0, 1.0), "shape"),
        (lambda: Gamma(1.0, -1.0), "rate"),
        (lambda: InverseGamma(1.0, np.inf), "scale"),
    ],
)
def test_priors_that_are_none(make: Any, word: str) -> None:
    with pytest.raises(ModelError, match=word):
        make()


@pytest.mark.parametrize("case", ["line", "plane"])
def test_a_search_that_stops_on_a_slope_goes_on(case: str) -> None:
    """Smooth values without noise: one step into a cliff ended the search of one tier, 30 and 60 nats below the top."""
    if case == "line":
        X = np.linspace(0.0, 50.0, 30)[:, None]
        y = np.sin(X[:, 0] / 10.0)
    else:
        X = np.random.default_rng(9).uniform(-3.0, 3.0, size=(55, 1))
        y = np.sin(X).sum(1)
    found = []
    for kind in ("plain", "compiled"):
        with tier(kind):
            found.append(GP().fit(X, y).log_marginal_likelihood_value_)
    assert found[0] == pytest.approx(found[1], abs=1e-2) and found[0] > {"line": 231.7, "plane": 486.9}[case]
