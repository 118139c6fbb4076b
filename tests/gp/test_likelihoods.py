from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError
from gramgraph.gp.likelihoods import (
    CLogLog,
    GammaSizes,
    GaussianNoise,
    Logistic,
    NegativeBinomial,
    Poisson,
    Probit,
    Softmax,
)

BINARY = [Logistic(), Probit(), CLogLog()]
CASES = [(likelihood, y) for likelihood in BINARY for y in (-1.0, 1.0)] + [
    (Poisson(), 0.0),
    (Poisson(), 3.0),
    (NegativeBinomial(0.4), 0.0),
    (NegativeBinomial(2.5), 7.0),
    (GammaSizes(2.5), 0.7),
    (GaussianNoise(0.3), 1.2),
]
IDS = [f"{type(likelihood).__name__} y={y:g}" for likelihood, y in CASES]


def dense_log_integral(log_density, mean, var):
    """log ∫ exp(log_density(f)) N(f; mean, var) df by brute force over a wide, fine grid."""
    s = np.sqrt(var)
    f = np.linspace(mean - 14 * s - 2 * var, mean + 14 * s + 2 * var, 400_001)
    terms = log_density(f) - 0.5 * (f - mean) ** 2 / var - 0.5 * np.log(2 * np.pi * var) + np.log(f[1] - f[0])
    return np.logaddexp.reduce(terms)


@pytest.mark.parametrize("likelihood, y", CASES, ids=IDS)
def test_derivatives_are_those_of_the_density(likelihood, y):
    f = np.linspace(-6.0, 6.0, 41)
    h = 1e-5
    found = likelihood.derivatives(y, f)
    by_difference = (likelihood.log_density(y, f + h) - likelihood.log_density(y, f - h)) / (2 * h)
    scale = 1.0 + np.abs(found.first)
    assert np.abs((found.first - by_difference) / scale).max() < 1e-8
    right, left = likelihood.derivatives(y, f + h), likelihood.derivatives(y, f - h)
    assert np.abs((found.second - (right.first - left.first) / (2 * h)) / scale).max() < 1e-8
    assert np.abs((found.third - (right.second - left.second) / (2 * h)) / scale).max() < 1e-8


@given(st.sampled_from(range(len(CASES))), st.floats(-1e6, 1e6))
def test_log_concave_and_finite_everywhere(case, f):
    likelihood, y = CASES[case]
    found = likelihood.derivatives(np.array([y]), np.array([f]))
    assert all(np.isfinite(part).all() for part in found)
    assert found.second[0] <= 0.0
    assert np.isfinite(likelihood.log_density(np.array([y]), np.array([f]))).all()


@pytest.mark.parametrize("x", [1e8, 1e4, 300.0, 60.0, 41.0, 40.0, 39.0, 20.0, 8.0])
def test_probit_tails_against_many_digits(x):
    # φ(−x)/Φ(−x) = x + 1/(x + 2/(x + 3/(x + …))), in 60 digits
    with localcontext() as context:
        context.prec = 60
        z = Decimal(x)
        tail = z
        for k in range(400, 0, -1):
            tail = z + k / tail
        rho = tail
        w, third = rho * (rho - z), rho * ((rho - z) * (2 * rho - z) - 1)
    found = Probit().derivatives(np.ones(1), np.array([-x]))
    assert found.first[0] == pytest.approx(float(rho), rel=1e-12)
    assert -found.second[0] == pytest.approx(float(w), rel=1e-9)
    assert found.third[0] == pytest.approx(float(third), rel=2e-6)


@pytest.mark.parametrize("likelihood, y", CASES, ids=IDS)
def test_integrals_against_brute_force(likelihood, y):
    for mean, var in [(-1.0, 0.3), (0.5, 2.0), (2.0, 0.01)]:
        wanted = dense_log_integral(lambda f: likelihood.log_density(y, f), mean, var)
        m, v = np.array([mean]), np.array([var])
        found = likelihood.moments(np.array([y]), m, v)
        assert found.log_z[0] == pytest.approx(wanted, abs=1e-7)
        assert likelihood.log_predictive(np.array([y]), m, v)[0] == pytest.approx(wanted, abs=1e-7)
        h = 1e-4
        up, down = (likelihood.moments(np.array([y]), m + d, v) for d in (h, -h))
        assert found.slope[0] == pytest.approx((up.log_z[0] - down.log_z[0]) / (2 * h), abs=1e-6)
        assert found.curvature[0] == pytest.approx(-(up.slope[0] - down.slope[0]) / (2 * h), abs=1e-6)


@pytest.mark.parametrize("mean", [-60.0, -7.0, -0.3, 0.0, 2.0, 30.0])
@pytest.mark.parametrize("var", [1e-8, 0.5, 3.99, 4.01, 60.0, 2500.0])
def test_sigmoid_integral_everywhere(mean, var):
    one = np.ones(1)
    found = Logistic().log_predictive(one, np.array([mean]), np.array([var]))[0]
    other = Logistic().log_predictive(-one, np.array([mean]), np.array([var]))[0]
    assert np.logaddexp(found, other) == pytest.approx(0.0, abs=1e-12)
    if var > 1e-3:
        low = dense_log_integral(lambda f: -np.logaddexp(0.0, -f), -abs(mean), var)
        assert min(found, other) == pytest.approx(low, rel=1e-9)
    else:
        assert found == pytest.approx(-np.logaddexp(0.0, -mean), rel=1e-6)


@given(st.floats(-1e4, 1e4), st.floats(0.0, 1e8))
def test_sigmoid_moments_stay_within_their_bounds(mean, var):
    found = Logistic().moments(np.ones(1), np.array([mean]), np.array([var]))
    assert np.isfinite(found.log_z).all() and found.log_z[0] <= 0.0
    assert 0.0 <= found.slope[0] <= 1.0
    assert 0.0 <= found.curvature[0] <= (1.0 / var if var > 0 else np.inf)


@pytest.mark.parametrize("likelihood", BINARY)
def test_averaged_probability_is_less_sure_than_the_plugged_in_one(likelihood):
    mean, var = np.array([2.0, 2.0]), np.array([0.0, 25.0])
    averaged, plugged = likelihood.averaged(mean, var), likelihood.response(mean)
    assert averaged[0] == pytest.approx(plugged[0], abs=1e-12)
    assert averaged[1] < plugged[1] - 0.05
    assert averaged[1] == pytest.approx(np.exp(likelihood.log_predictive(np.ones(2), mean, var))[1], abs=2e-3)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(0.7), GammaSizes(3.0), GaussianNoise(0.4)])
def test_mean_and_variance_of_predictions(likelihood):
    # closed formulas against the quadrature of the base class
    mean, var = np.array([0.3, -1.0]), np.array([0.5, 0.1])
    base = type(likelihood).__mro__[1]
    assert likelihood.averaged(mean, var) == pytest.approx(base.averaged(likelihood, mean, var), rel=1e-9)
    if not isinstance(likelihood, GaussianNoise):
        wanted = base.averaged_spread(likelihood, mean, var)
        assert likelihood.averaged_spread(mean, var) == pytest.approx(wanted, rel=1e-9)


def test_softmax_of_two_classes_is_the_logistic_link():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(20, 2)) * 2
    A = rng.normal(size=(20, 2, 2))
    cov = A @ np.swapaxes(A, 1, 2)
    spread = cov[:, 0, 0] + cov[:, 1, 1] - 2 * cov[:, 0, 1]
    wanted = Logistic().averaged(mean[:, 0] - mean[:, 1], spread)
    assert Softmax(2).averaged(mean, cov)[:, 0] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("n_classes, tolerance", [(3, 2e-3), (4, 3e-3), (7, 3e-3)])
def test_softmax_average_against_draws(n_classes, tolerance):
    # 400,000 draws: the standard error is below 8e-4, so an alarm has a chance of less than 1e-3 even over all entries
    rng = np.random.default_rng(n_classes)
    mean = rng.normal(size=n_classes)
    A = rng.normal(size=(n_classes, n_classes))
    cov = A @ A.T / n_classes
    draws = mean + rng.standard_normal((400_000, n_classes)) @ np.linalg.cholesky(cov).T
    found = Softmax(n_classes).averaged(mean[None], cov[None])[0]
    assert found.sum() == pytest.approx(1.0)
    assert np.abs(found - Softmax(n_classes).response(draws).mean(axis=0)).max() < tolerance


def test_softmax_keeps_extremes():
    f = np.array([[1e4, 0.0, -1e4]])
    assert Softmax(3).log_response(f)[0].tolist() == [0.0, -1e4, -2e4]
    assert Softmax(3).averaged(f, np.zeros((1, 3, 3))).tolist() == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "likelihood, y, text",
    [
        (Logistic(), [0, 1], "labels −1 and \\+1; y\\[0\\] is 0"),
        (Poisson(), [1, -2], "at least 0; y\\[1\\] is -2"),
        (GammaSizes(), [1.0, 0.0], "positive"),
        (GaussianNoise(), [np.nan], "finite"),
        (Poisson(), ["many"], "not numbers"),
    ],
)
def test_targets_that_cannot_be(likelihood, y, text):
    with pytest.raises(ModelError, match=text):
        likelihood.check(y)


@pytest.mark.parametrize("make", [lambda: NegativeBinomial(0.0), lambda: GammaSizes(-1.0), lambda: GaussianNoise("a")])
def test_parameters_are_positive(make):
    with pytest.raises(ModelError, match="must be a positive number"):
        make()
