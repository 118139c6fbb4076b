"""Rows that coincide under next to no noise: the same fit in both tiers, near their means, and one warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import GaussianProcessRegressor
from gramgraph import kernels as k
from gramgraph._numerics.compiling import tier
from gramgraph.exceptions import ModelWarning
from gramgraph.gp import exact_evidence, fit_exact
from gramgraph.gp.means import as_mean
from gramgraph.gp.methods import Data, Exact
from gramgraph.gp.repeats import Together, exact_method
from tests.portions import seeds


def triplicates(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(6, 2))] * 3)
    return X, np.tile(X[:6, 0], 3) + 0.1 * rng.normal(size=18)


def quiet(X: Any, y: Any, **options: Any) -> GaussianProcessRegressor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GaussianProcessRegressor(**options).fit(X, y)


@pytest.mark.parametrize("seed", seeds(10, 20))
@pytest.mark.parametrize("alpha", [1e-10, 0.0])
def test_a_fit_does_not_hang_on_the_tier(seed: int, alpha: float) -> None:
    X, y = triplicates(seed)
    found = []
    for kind in ("plain", "compiled"):
        with tier(kind):
            model = quiet(X, y, alpha=alpha)
            found.append((model.log_marginal_likelihood_value_, model.predict(X + 0.3), model.predict(X[:6])))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-3, rel=1e-10)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[0][2], y.reshape(3, 6).mean(0), atol=1e-5)
    assert np.abs(found[0][1] - X[:, 0] - 0.3).max() < 1.0 and 0.1 < model.kernel_.base.length_scale < 1e3


def test_what_disagrees_is_told_once() -> None:
    X, y = triplicates(0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        GaussianProcessRegressor().fit(X, y)
    assert len(told) == 1 and told[0].category is ModelWarning and told[0].filename == __file__
    assert "Rows 0 and 12 of X" in str(told[0].message) and "alpha=" in str(told[0].message)
    for options in ({"alpha": 0.01}, {"kernel": 1.0 * k.RBF() + k.White(0.1)}):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ModelWarning)
            GaussianProcessRegressor(**options, optimizer=None).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        GaussianProcessRegressor(optimizer=None).fit(X, np.tile(y[:6], 3))  # rows that agree


def setting(mean: Any = None) -> tuple[Any, Data]:
    rng = np.random.default_rng(4)
    at = np.array([0, 3, 1, 1, 2, 4, 0, 1, 5])
    X = rng.normal(size=(6, 2))[at]
    Y = rng.normal(size=(9, 2)) * 10.0
    return 1.7 * k.RBF(0.8), Data(X, Y, 1e-5 * (1.0 + np.arange(9.0)), as_mean(mean))


@pytest.mark.parametrize("mean", [None, "constant"])
def test_all_answers_are_those_of_all_rows(mean: Any) -> None:
    kernel, data = setting(mean)
    method = exact_method(kernel, data)
    assert isinstance(method, Together)
    plain = exact_evidence(kernel, data.X, data.Y, noise=data.noise, mean=data.mean, gradient=True)
    value, slope = method.evidence(kernel, True)
    assert value == pytest.approx(plain.value, rel=1e-9)
    np.testing.assert_allclose(slope, plain.theta, rtol=1e-4)
    ours = method.posterior(kernel)
    theirs = fit_exact(kernel, data.X, data.Y, noise=data.noise, mean=data.mean)
    assert ours.log_evidence == pytest.approx(value)
    new = data.X + 0.1
    np.testing.assert_allclose(ours.mean(new), theirs.mean(new), rtol=1e-6)
    np.testing.assert_allclose(ours.cov(new), theirs.cov(new), atol=1e-9)
    for name in ("mean", "var", "log_density"):
        np.testing.assert_allclose(getattr(ours.loo(), name), getattr(theirs.loo(), name), rtol=1e-5)
    np.testing.assert_allclose(ours.row_factor.lower(), theirs.factor.lower(), atol=1e-12)
    np.testing.assert_allclose(
        kernel.gram(new, data.X) @ ours.row_alpha, kernel.gram(new, ours.X) @ ours.alpha, rtol=1e-9
    )
    more = ours.condition(data.X[:2] + 0.5, data.Y[:2], noise=0.1)
    np.testing.assert_allclose(
        more.mean(new), theirs.condition(data.X[:2] + 0.5, data.Y[:2], noise=0.1).mean(new), rtol=1e-6
    )


def test_all_else_goes_the_old_way() -> None:
    kernel, data = setting()
    apart = np.arange(18.0).reshape(9, 2)
    for one, rows, noise in (
        (kernel, apart, data.noise),
        (kernel, data.X, np.full(9, 0.1)),
        (kernel + k.White(1e-9), data.X, data.noise),
        (2.0 * (kernel + k.White(1e-9)), data.X, data.noise),
    ):
        assert isinstance(exact_method(one, Data(rows, data.Y, noise, data.mean)), Exact)


def test_what_is_stored_has_one_entry_a_row(tmp_path: Any) -> None:
    X, y = triplicates(1)
    model = quiet(X, y)
    assert model.alpha_.shape == (18,) and model.L_.shape == (18, 18) and model.loo_.mean.shape == (18,)
    assert model.X_train_.shape == (18, 2)
    assert model.log_marginal_likelihood(model.kernel_.theta) == pytest.approx(model.log_marginal_likelihood_value_)
    assert model.search_.value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-12)
    gg.write(model, tmp_path / "model.gg")
    again = gg.read(tmp_path / "model.gg")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model.partial_fit(X[:3] + 2.0, y[:3])
    assert model.alpha_.shape == (21,)
    np.testing.assert_allclose(model.predict(X[:3] + 2.0), y[:3], atol=1e-3)


@pytest.mark.parametrize("approx", ["titsias", "fitc", "sor", "rff", "cg"])
@pytest.mark.parametrize("seed", seeds(3, 8))
def test_approximations_learn_from_the_means_too(approx: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(8, 2))] * 3)
    y = np.tile(X[:8, 0], 3) + 0.1 * rng.normal(size=24)
    found = []
    for kind in ("plain", "compiled"):
        with tier(kind):
            model = quiet(X, y, approx=approx, n_inducing=20, random_state=0)
            found.append((model.predict(X + 0.1), model.predict(X[:8]), model.log_marginal_likelihood_value_))
    assert len(model._method.data.Y) == 24 and found[0][2] == pytest.approx(found[1][2], rel=1e-2)
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-3)
    np.testing.assert_allclose(found[0][1], y.reshape(3, 8).mean(0), atol=1e-3)
    with pytest.warns(ModelWarning, match="of X are equal"):
        GaussianProcessRegressor(approx=approx, n_inducing=20, optimizer=None).fit(X, y)
