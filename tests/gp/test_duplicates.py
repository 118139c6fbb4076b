"""Points that coincide, with and without noise: accurate means, and the jitter that made them so."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from gramgraph import GaussianProcessRegressor
from gramgraph import kernels as k
from gramgraph.gp import exact_evidence, fit_exact

X = np.linspace(0.0, 5.0, 12)[:, None]
Y = 100.0 + 5.0 * np.sin(X[:, 0])
KERNEL = 2.0 * k.RBF(1.0)


def fitted(points: np.ndarray, y: np.ndarray, **options: object) -> GaussianProcessRegressor:
    return GaussianProcessRegressor(KERNEL, alpha=0.0, optimizer=None, **options).fit(points, y)  # type: ignore[arg-type]


def test_equal_targets_are_met_with_next_to_no_jitter() -> None:
    model = fitted(np.concatenate([X, X]), np.concatenate([Y, Y]))
    assert 0.0 < model.jitter_ < 1e-12
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-8)


@pytest.mark.parametrize("copies", [2, 5, 60])
def test_targets_that_disagree_give_their_mean(copies: int) -> None:
    noise = np.random.default_rng(0).normal(size=(12, copies))
    model = fitted(np.repeat(X, copies, axis=0), (Y[:, None] + 4.0 * noise).ravel())
    wanted = Y + 4.0 * noise.mean(1)
    np.testing.assert_allclose(model.predict(X), wanted, rtol=5e-5)  # as near as the jitter lets any BLAS come
    assert 1e-10 < model.jitter_ < 1e-5
    assert model.predict(X, return_std=True)[1].max() < 1e-3


def test_one_place() -> None:
    model = fitted(np.zeros((50, 1)), np.arange(50.0))
    np.testing.assert_allclose(model.predict([[0.0]]), 24.5, rtol=1e-6)


@pytest.mark.parametrize("apart", [1e-8, 1e-7])
def test_points_that_are_one_point_for_the_kernel(apart: float) -> None:
    model = fitted(np.concatenate([X, X + apart]), np.concatenate([Y, Y + 4.0]))
    np.testing.assert_allclose(model.predict(X), Y + 2.0, rtol=1e-6)
    assert model.jitter_ > 0.0


def test_points_that_the_kernel_tells_apart_need_nothing() -> None:
    x = np.linspace(0.0, 5.0, 6)[:, None]
    model = fitted(np.concatenate([x, x + 0.01]), np.concatenate([np.sin(x[:, 0]), np.sin(x[:, 0] + 0.01)]))
    assert model.jitter_ == 0.0
    np.testing.assert_allclose(model.predict(x), np.sin(x[:, 0]), atol=1e-7)


def test_noise_on_the_diagonal_is_not_touched() -> None:
    points, y = np.concatenate([X, X]), np.concatenate([Y, Y + 4.0])
    model = GaussianProcessRegressor(KERNEL, alpha=1e-4, optimizer=None).fit(points, y)
    assert model.jitter_ == 0.0
    K = KERNEL.gram(points) + 1e-4 * np.eye(24)
    np.testing.assert_allclose(model.predict(X), KERNEL.gram(X, points) @ np.linalg.solve(K, y), rtol=1e-8)


@pytest.mark.parametrize("approx", ["state_space", "titsias", "fitc", "sor", "cg"])
def test_other_ways_agree(approx: str) -> None:
    kernel = 2.0 * k.Matern(1.0, nu=2.5)
    points, y = np.concatenate([X, X]), np.concatenate([Y, Y + 4.0])
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None, approx=approx, n_inducing=24).fit(points, y)
    np.testing.assert_allclose(model.predict(X), Y + 2.0, rtol=1e-5)
    assert model.jitter_ > 0.0


def test_points_that_come_later() -> None:
    model = fitted(X, Y)
    model.partial_fit(X[:3], Y[:3] + 4.0)
    np.testing.assert_allclose(model.predict(X[:3]), Y[:3] + 2.0, rtol=1e-6)
    assert model.jitter_ > 0.0


def test_the_evidence_and_the_posterior_take_the_same_jitter(caplog: pytest.LogCaptureFixture) -> None:
    points, y = np.repeat(X, 5, axis=0), np.repeat(Y, 5) + np.tile(np.arange(5.0), 12)
    with caplog.at_level(logging.INFO, logger="gramgraph.linalg"):
        found, process = exact_evidence(KERNEL, points, y, gradient=True), fit_exact(KERNEL, points, y)
    assert found.jitter == process.jitter > 0.0
    assert found.value == pytest.approx(process.log_evidence, rel=1e-9)
    assert "added" in caplog.text
    assert found.theta is not None and np.isfinite(found.theta).all()
