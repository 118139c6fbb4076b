"""Change of variables against known transforms, Laplace approximations against known posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gramgraph import distributions as D
from gramgraph.distributions import change_of_variables, laplace_approximation
from gramgraph.exceptions import ModelError
from tests.portions import examples

# --- change of variables ----------------------------------------------------------------------------------------------

Y = np.array([0.2, 1.0, 3.0])


@pytest.mark.parametrize(
    ("source", "forward", "inverse", "wanted"),
    [
        (D.Normal(0.5, 2.0), np.exp, np.log, stats.lognorm(s=np.sqrt(2.0), scale=np.exp(0.5)).logpdf),
        (D.Gamma(2.0, 3.0), lambda x: 1 / x, lambda y: 1 / y, D.InverseGamma(2.0, 3.0).log_density),
        (D.Exponential(1.0), lambda x: 2 * x, lambda y: y / 2, D.Exponential(0.5).log_density),
        (D.Normal(0.0, 1.0), lambda x: -x + 1, lambda y: 1 - y, D.Normal(1.0, 1.0).log_density),
        (D.ChiSquared(3.0), np.sqrt, lambda y: y**2, stats.chi(3.0).logpdf),
    ],
)
def test_known_transforms(source: Any, forward: Any, inverse: Any, wanted: Any) -> None:
    y = change_of_variables(source, forward, inverse)
    assert np.allclose(y.log_density(Y), wanted(Y), rtol=1e-8, atol=1e-8)
    assert y.log_density(float(Y[1])) == pytest.approx(float(wanted(Y[1])), abs=1e-8)
    assert np.array_equal(y.sample(3, random_state=0), forward(source.sample(3, random_state=0)))


def test_the_jacobian_may_be_given() -> None:
    y = change_of_variables(D.Normal(0.0, 1.0), np.exp, np.log, log_jacobian=lambda y: -np.log(y))
    assert np.allclose(y.log_density(Y), stats.lognorm(s=1.0).logpdf(Y), rtol=1e-13)
    assert y.log_density([-1.0, 0.0]).tolist() == [-np.inf, -np.inf]
    assert y.density(1.0) == pytest.approx(stats.norm.pdf(0.0))


@given(st.integers(0, 200), st.integers(2, 4))
def test_linear_maps_of_vectors_are_affine(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((d, d)) + 2 * np.eye(d), rng.standard_normal(d)
    g = D.Gaussian(rng.standard_normal(d), np.eye(d) + 0.3)
    A = A if abs(np.linalg.det(A)) > 0.1 else A + 3 * np.eye(d)
    y = change_of_variables(g, lambda x: x @ A.T + b, lambda v: np.linalg.solve(A, (v - b).T).T)
    points = rng.standard_normal((3, d))
    assert np.allclose(y.log_density(points), g.affine(A, b).log_density(points), rtol=1e-6, atol=1e-6)


def test_polar_coordinates() -> None:
    # x = r (cos a, sin a): p(r, a) = p(x) r.
    g = D.Gaussian([0.3, -0.2], 0.7)

    def inverse(y: Any) -> Any:
        return np.stack([y[..., 0] * np.cos(y[..., 1]), y[..., 0] * np.sin(y[..., 1])], axis=-1)

    def forward(x: Any) -> Any:
        return np.stack([np.hypot(x[..., 0], x[..., 1]), np.arctan2(x[..., 1], x[..., 0])], axis=-1)

    y = np.array([[1.0, 0.5], [2.0, -2.0]])
    polar = change_of_variables(g, forward, inverse)
    assert np.allclose(polar.log_density(y), g.log_density(inverse(y)) + np.log(y[:, 0]), atol=1e-9)


# --- Laplace ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 200), st.integers(1, 5))
@settings(max_examples=examples(15))
def test_gaussians_are_found_exactly(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((d, d + 1))
    g = D.Gaussian(2 * rng.standard_normal(d), B @ B.T + 0.2 * np.eye(d))
    scale = rng.normal()

    def log_density(x: Any) -> float:
        return float(g.log_density(x[None])[0]) + scale

    with_slope = laplace_approximation(log_density, np.zeros(d), gradient=lambda x: g.precision @ (g.mean - x))
    assert with_slope.gaussian.allclose(g, rtol=1e-6, atol=1e-6)
    assert with_slope.log_normalizer == pytest.approx(scale, abs=1e-6)
    alone = laplace_approximation(log_density, np.zeros(d))
    assert alone.gaussian.allclose(g, rtol=1e-4, atol=1e-5)
    assert alone.log_normalizer == pytest.approx(scale, abs=1e-4)


def test_a_gamma_density_at_its_mode() -> None:
    # log p = (a − 1) log x − b x: mode (a − 1)/b, curvature (a − 1)/mode².
    a, b = 7.0, 2.0
    p = D.Gamma(a, b)
    found = laplace_approximation(lambda x: p.log_density(x[0]), [1.0])
    mode = (a - 1) / b
    assert found.mode[0] == pytest.approx(mode, abs=1e-8)
    assert found.gaussian.cov[0, 0] == pytest.approx(mode**2 / (a - 1), rel=1e-6)
    assert found.hessian[0, 0] == pytest.approx(-(a - 1) / mode**2, rel=1e-6)
    assert abs(found.log_normalizer) < 0.02  # log 1, by Stirling's error 1/(12 (a − 1))


def test_bayesian_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(80), rng.standard_normal(80)])
    t = (rng.random(80) < 1 / (1 + np.exp(-X @ [0.5, 1.5]))).astype(float)

    def log_density(w: Any) -> float:
        z = X @ w
        return float(t @ z - np.logaddexp(0, z).sum() - 0.5 * w @ w / 4.0)

    def gradient(w: Any) -> Any:
        return X.T @ (t - 1 / (1 + np.exp(-X @ w))) - w / 4.0

    def hessian(w: Any) -> Any:
        s = 1 / (1 + np.exp(-X @ w))
        return -(X.T * (s * (1 - s))) @ X - np.eye(2) / 4.0

    full = laplace_approximation(log_density, np.zeros(2), gradient=gradient, hessian=hessian)
    assert np.abs(gradient(full.mode)).max() < 1e-9
    assert np.allclose(full.gaussian.precision, -hessian(full.mode))
    for found in (
        laplace_approximation(log_density, np.zeros(2)),
        laplace_approximation(log_density, [0, 0], gradient=gradient),
    ):
        assert np.allclose(found.mode, full.mode, atol=1e-6)
        assert np.allclose(found.gaussian.cov, full.gaussian.cov, rtol=1e-4)
    grid = np.stack(np.meshgrid(np.linspace(-3, 4, 141), np.linspace(-2, 6, 161), indexing="ij"), axis=-1)
    weights = np.array([[log_density(w) for w in row] for row in grid])
    exact = np.log(np.exp(weights - weights.max()).sum() * (7 / 140) * (8 / 160)) + weights.max()
    assert full.log_normalizer == pytest.approx(exact, abs=0.1)


def test_densities_with_a_bounded_support() -> None:
    p = D.Beta(4.0, 9.0)
    found = laplace_approximation(lambda x: p.log_density(x[0]) if 0 < x[0] < 1 else -np.inf, 0.5)
    assert found.mode[0] == pytest.approx(3.0 / 11.0, abs=1e-7)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: change_of_variables(D.Normal(0, 1), 3.0, np.log), "forward must be a function"),
        (lambda: change_of_variables(D.Normal(0, 1), np.exp, None), "inverse must be a function"),
        (lambda: change_of_variables(D.Normal(0, 1), np.exp, np.log, log_jacobian=1), "log_jacobian must be"),
        (lambda: change_of_variables("normal", np.exp, np.log), "must have log_density"),
        (lambda: change_of_variables(D.Normal(0, 1), np.exp, np.log).log_density(np.nan), "y holds NaN"),
        (lambda: laplace_approximation(3.0, 0.0), "log_density must be a function"),
        (lambda: laplace_approximation(lambda x: x, [0.0, 1.0]), "must return one number"),
        (lambda: laplace_approximation(lambda x: -np.inf, 0.0), "must be finite at x0"),
        (lambda: laplace_approximation(lambda x: 0.0, np.nan), "x0 holds NaN"),
        (lambda: laplace_approximation(lambda x: float(x[0]), 0.0, max_iter=5), "No mode was found"),
        (
            lambda: laplace_approximation(lambda x: -float(x[0] ** 2), 1.0, gradient=lambda x: [1, 2]),
            "return 1 numbers",
        ),
        (lambda: laplace_approximation(lambda x: -float(x[0] ** 2), 1.0, hessian=lambda x: [1, 2]), r"shape \(1, 1\)"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        call()
