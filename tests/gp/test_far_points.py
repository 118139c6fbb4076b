"""Points far from 0, and far from each other: gradients with digits, and fits that do not hang on the tier."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from gramgraph import GaussianProcessRegressor
from gramgraph import kernels as k
from gramgraph._numerics.compiling import tier
from gramgraph.gp import exact_evidence
from tests.portions import seeds


def both(X: np.ndarray, y: np.ndarray) -> list[GaussianProcessRegressor]:
    found = []
    for kind in ("plain", "compiled"):
        with tier(kind), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(GaussianProcessRegressor(noise="learned", random_state=0).fit(X, y))
    return found


@pytest.mark.parametrize("kernel", [k.RBF(), k.RBF([1.0]), k.Matern(nu=2.5), k.RationalQuadratic()], ids=str)
@pytest.mark.parametrize("n", [24, 640])
def test_a_length_scale_far_below_all_distances_has_no_slope(kernel: Any, n: int) -> None:
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(n // 8, 1)) * 1e8, 8, axis=0)
    found = exact_evidence(kernel, X, rng.normal(size=n), noise=0.1, gradient=True)
    assert found.theta is not None and np.abs(found.theta).max() < 1e-3


@pytest.mark.parametrize("kernel", [k.RBF(9.0), k.RBF([9.0, 5.0]), k.Matern(9.0, nu=2.5)], ids=str)
def test_a_shift_changes_nothing(kernel: Any) -> None:
    X = np.round(np.random.default_rng(0).normal(size=(20, 2)), 2)
    far = X + 2.0**27
    X = far - 2.0**27  # what is left of the points there, without error
    np.testing.assert_allclose(kernel.gram(far), kernel.gram(X), atol=1e-14)
    np.testing.assert_allclose(kernel.gram(far, far[5:]), kernel.gram(X, X[5:]), atol=1e-14)
    ours, theirs = (exact_evidence(kernel, at, X[:, 0], noise=0.01, gradient=True) for at in (far, X))
    assert ours.value == pytest.approx(theirs.value, rel=1e-9)
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-8)


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_fits_do_not_hang_on_the_tier(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25 + 3 * seed, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=len(X))
    for points in (X * 1e8, 1e8 + 1e3 * X, 1e8 + X):
        plain, compiled = both(points, y)
        assert plain.log_marginal_likelihood_value_ == pytest.approx(compiled.log_marginal_likelihood_value_, abs=1e-3)
        np.testing.assert_allclose(plain.predict(points), compiled.predict(points), atol=1e-3)
