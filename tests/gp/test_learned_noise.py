"""Noise that depends on x, inducing points that move, weights of points, processes as nodes of networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gramgraph as gg
from gramgraph import kernels as k
from gramgraph.estimators import GaussianProcessClassifier, GaussianProcessCounts, GaussianProcessRegressor
from gramgraph.exceptions import ModelError
from gramgraph.gp.inducing import move_inducing
from gramgraph.gp.means import as_mean
from gramgraph.gp.methods import Data
from gramgraph.gp.sparse import Sparse

# --- learned noise ------------------------------------------------------------------------------------------------


def growing(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 1.0, n))
    return x[:, None], 10.0 + np.sin(6.0 * x) + np.exp(-3.0 + 3.0 * x) * rng.normal(size=n)


@pytest.fixture(scope="module")
def noisy() -> GaussianProcessRegressor:
    return GaussianProcessRegressor(1.0 * k.RBF(0.3), noise="learned", normalize_y=True, random_state=0).fit(
        *growing(250, 0)
    )


def log_score(model: GaussianProcessRegressor, x: np.ndarray, y: np.ndarray) -> float:
    mean, std = model.predict(x, return_std=True)
    return float(np.mean(-0.5 * ((y - mean) / std) ** 2 - np.log(std)))


def test_noise_is_found(noisy: GaussianProcessRegressor) -> None:
    x = np.linspace(0.05, 0.95, 10)[:, None]
    ratio = noisy.predict_noise(x) / np.exp(-3.0 + 3.0 * x[:, 0])
    assert np.all((ratio > 0.6) & (ratio < 1.6))
    assert "noise process" in noisy.explanation_ and noisy.search_ is not None


def test_it_predicts_better_than_equal_noise(noisy: GaussianProcessRegressor) -> None:
    equal = GaussianProcessRegressor(1.0 * k.RBF(0.3) + k.White(0.1), normalize_y=True).fit(*growing(250, 0))
    x, y = growing(1000, 1)
    assert log_score(noisy, x, y) > log_score(equal, x, y) + 0.3


def test_deviations_hold_the_noise(noisy: GaussianProcessRegressor) -> None:
    x = np.linspace(0.1, 0.9, 4)[:, None]
    total, latent = noisy.posterior(x).cov, noisy.posterior(x, latent=True).cov
    np.testing.assert_allclose(total - latent, np.diag(noisy.predict_noise(x) ** 2), atol=1e-10)
    np.testing.assert_allclose(noisy.predict(x, return_std=True)[1] ** 2, np.diagonal(total), rtol=1e-8)


def test_more_points_keep_the_noise(noisy: GaussianProcessRegressor) -> None:
    x, y = growing(250, 0)
    model = GaussianProcessRegressor(noisy.kernel_, optimizer=None, noise="learned", random_state=0).fit(x[::2], y[::2])
    before = model.predict_noise(x[:5])
    model.partial_fit(x[1::2], y[1::2])
    np.testing.assert_allclose(model.predict_noise(x[:5]), before)
    whole = model._method.posterior(model.kernel_)
    np.testing.assert_allclose(model.predict(x[:5]), whole.mean(x[:5])[:, 0], rtol=1e-8)


def test_a_kernel_of_ones_own_and_refusals() -> None:
    x, y = growing(80, 2)
    model = GaussianProcessRegressor(1.0 * k.RBF(0.3), noise=0.5 * k.RBF(0.2), normalize_y=True).fit(x, y)
    assert np.isfinite(model.predict(x, return_std=True)[1]).all()
    with pytest.raises(ModelError, match="one way"):
        GaussianProcessRegressor(noise="learned", approx="titsias").fit(x, y)
    with pytest.raises(ValueError, match="noise"):
        GaussianProcessRegressor(noise="lerned").fit(x, y)
    with pytest.raises(ModelError, match="predict_noise|depends on x"):
        GaussianProcessRegressor(optimizer=None, alpha=0.1).fit(x, y).predict_noise(x)


@pytest.mark.parametrize("y", [np.full(30, 2.0), np.repeat([1.0, 3.0], 15)])
def test_degenerate_data(y: np.ndarray) -> None:
    x = np.repeat(np.arange(15.0), 2)[:, None]
    mean, std = GaussianProcessRegressor(noise="learned").fit(x, y).predict(x, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


def test_coregionalization_refuses_noise_by_point() -> None:
    x, y = growing(20, 0)
    with pytest.raises(ModelError, match="alpha must be a number"):
        GaussianProcessRegressor(alpha=np.linspace(0.1, 1.0, 20), coregionalization=1).fit(x, np.column_stack([y, y]))


# --- inducing points ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["titsias", "fitc", "sor"])
@pytest.mark.parametrize("mean", [None, "linear"])
def test_gradient_by_the_places(name: str, mean: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    Y = np.sin(2.0 * X[:, :1]) + 0.1 * rng.normal(size=(200, 1))
    kernel = 1.3 * k.RBF([0.8, 1.2]) + 0.3 * k.Matern(1.0, nu=2.5) + k.White(0.02)
    method = Sparse(Data(X, Y, np.full(200, 1e-3), as_mean(mean)), X[:12] + 0.01, name)
    value, theta, places = method.evidence_by_points(kernel)
    same, same_theta = method.evidence(kernel, True)
    assert value == pytest.approx(same) and np.allclose(theta, same_theta)  # type: ignore[arg-type]
    for i, j in ((0, 0), (5, 1), (11, 0)):
        step = np.zeros_like(method.Z)
        step[i, j] = 1e-5
        up, down = (replace(method, Z=method.Z + s * step).evidence(kernel, False)[0] for s in (1, -1))
        assert places[i, j] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-4)


def test_moved_points_raise_the_bound_and_stay_below_the_evidence() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(500, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=500)
    options: dict[str, Any] = {"approx": "titsias", "n_inducing": 8, "random_state": 0}
    kernel = 1.0 * k.RBF(1.0) + k.White(0.1)
    kept = GaussianProcessRegressor(kernel, **options).fit(X, y)
    moved = GaussianProcessRegressor(kernel, optimize_inducing=True, **options).fit(X, y)
    exact = GaussianProcessRegressor(kernel, approx="exact").fit(X, y)
    assert kept.log_marginal_likelihood_value_ + 1.0 < moved.log_marginal_likelihood_value_
    assert moved.log_marginal_likelihood_value_ <= exact.log_marginal_likelihood_value_ + 1e-6
    assert moved._method.Z.min() >= X.min() and moved._method.Z.max() <= X.max()


def test_places_alone() -> None:
    x = np.linspace(0.0, 6.0, 80)[:, None]
    start = Sparse(Data(x, np.sin(x), np.full(80, 0.01), as_mean(None)), x[:4].copy())
    method, kernel, found = move_inducing(start, k.RBF(), k.RBF().bounds, learn=False)
    assert kernel.length_scale == 1.0 and found.theta.shape == (0,)
    assert method.evidence(kernel, False)[0] == pytest.approx(found.value)
    words = Data(["a", "b"], np.zeros((2, 1)), np.ones(2), as_mean(None))
    with pytest.raises(ModelError, match="vectors"):
        move_inducing(Sparse(words, ["a"]), k.RBF(), k.RBF().bounds)


# --- weights of points --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"link": "probit"},
        {"multi_class": "one_vs_one"},
        {"multi_class": "softmax", "optimizer": None},
        {"inference": "ep", "optimizer": None},
    ],
)
def test_a_weight_is_a_number_of_copies(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int) + (X[:, 1] > 1)
    w = rng.integers(0, 4, 60)
    weighted = GaussianProcessClassifier(1.0 * k.RBF(), **options).fit(X, y, sample_weight=w)
    copied = GaussianProcessClassifier(1.0 * k.RBF(), **options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(copied.log_marginal_likelihood_value_, rel=1e-8)


def test_weights_that_cannot_be() -> None:
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 2, 0, 1, 2])
    for options in ({"inference": "ep"}, {"multi_class": "softmax"}):
        with pytest.raises(ModelError, match="whole numbers"):
            GaussianProcessClassifier(**options).fit(X, y, sample_weight=np.full(6, 0.5))  # type: ignore[arg-type]
    for weights in (-np.ones(6), np.zeros(6)):
        with pytest.raises(ValueError, match="not negative|zero"):
            GaussianProcessClassifier().fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("kind", [GaussianProcessRegressor, GaussianProcessClassifier, GaussianProcessCounts])
def test_sparse_matrices_are_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="[Ss]parse"):
        kind().fit(sp.csr_matrix(np.eye(6)), [0, 1, 0, 1, 0, 1])


# --- networks -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def process() -> GaussianProcessRegressor:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(60, 1))
    return GaussianProcessRegressor(1.0 * k.RBF() + k.White(0.01)).fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=60))


def test_values_as_a_node(process: GaussianProcessRegressor) -> None:
    at = np.array([[0.2], [0.8]])
    f = process.node("f", at, latent=True)
    net = gg.BayesianNetwork(cpds=[f, gg.LinearGaussian("total", f.child, [[1.0, 1.0]], sd=0.1)])
    answer = net.query("f", {"total": 2.0})
    found = process.posterior(at, latent=True)  # the same by hand
    gain = found.cov.sum(1) / (found.cov.sum() + 0.01)
    wanted = found.mean + gain * (2.0 - found.mean.sum())
    np.testing.assert_allclose(answer.means().to_numpy()[0], wanted, rtol=1e-8)
    assert answer.exact


def test_a_process_as_a_conditional(process: GaussianProcessRegressor) -> None:
    net = gg.BayesianNetwork(
        cpds=[
            gg.LinearGaussian("x", sd=1.5),
            process.conditional("y", "x"),
            gg.LinearGaussian("z", "y", 2.0, sd=0.3),
        ]
    )
    mean, std = process.predict([[1.0]], return_std=True)
    given = net.query("y", {"x": 1.0})
    np.testing.assert_allclose(given.means().to_numpy()[0], mean, rtol=1e-8)
    np.testing.assert_allclose(given.sds().to_numpy()[0], std, rtol=1e-6)
    x = np.linspace(-9.0, 9.0, 4001)  # p(x | z) on a grid
    m, s = process.predict(x[:, None], return_std=True)
    total = 4.0 * s**2 + 0.09
    p = np.exp(-0.5 * (x / 1.5) ** 2 - 0.5 * (1.6 - 2.0 * m) ** 2 / total) / np.sqrt(total)
    wanted = float((p * x).sum() / p.sum())
    found = net.query("x", {"z": 1.6}, random_state=0)
    assert found.means().to_numpy()[0, 0] == pytest.approx(wanted, abs=0.06)


def test_only_estimators_with_deviations_are_predictive() -> None:
    from sklearn.linear_model import LinearRegression

    with pytest.raises(ModelError, match="return_std"):
        gg.conditionals.Predictor("y", "x", LinearRegression(), noise="predictive")
    with pytest.raises(ModelError, match="predictive"):
        gg.conditionals.Predictor("y", "x", LinearRegression(), noise="predicted")
