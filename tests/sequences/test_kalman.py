"""The Kalman filter against the joint Gaussian of everything."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gramgraph.exceptions import ModelError
from gramgraph.sequences import KalmanFilter
from gramgraph.sequences._kalman_runs import settled_from
from tests.portions import examples


def random_model(rng: np.random.Generator, s: int, o: int, **options: Any) -> KalmanFilter:
    def cov(n: int) -> np.ndarray:
        B = rng.normal(size=(n, n))
        return B @ B.T + 0.2 * np.eye(n)

    A = rng.normal(size=(s, s))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    return KalmanFilter(A, cov(s), rng.normal(size=(o, s)), cov(o), rng.normal(size=s), cov(s), **options)


def dense(model: KalmanFilter, T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of all states, and the same of all observations' map: y = G x + noise."""
    A, Q, H, R, m0, P0 = (np.asarray(getattr(model, n)) for n in ("A", "Q", "H", "R", "m0", "P0"))
    s = len(A)
    mean, C = np.zeros((T, s)), np.zeros((T, s, T, s))
    m, P = m0, P0
    for t in range(T):
        if t:
            m, P = A @ m, A @ P @ A.T + Q
        mean[t], C[t, :, t] = m, P
        for u in range(t + 1, T):
            C[u, :, t] = A @ (C[u - 1, :, t] if u > t + 1 else P)
            C[t, :, u] = C[u, :, t].T
    return mean.ravel(), C.reshape(T * s, T * s), np.kron(np.eye(T), H), np.kron(np.eye(T), R)


def conditioned(model: KalmanFilter, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    mean, C, G, N = dense(model, len(y))
    flat = y.ravel()
    seen = ~np.isnan(flat)
    G, N, v = G[seen], N[np.ix_(seen, seen)], flat[seen] - (G @ mean)[seen]
    S = G @ C @ G.T + N
    K = np.linalg.solve(S, G @ C).T
    log = -0.5 * (v @ np.linalg.solve(S, v) + np.linalg.slogdet(2 * np.pi * S)[1])
    return mean + K @ v, C - K @ G @ C, float(log)


@settings(max_examples=examples(25))
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 8), st.integers(0, 10_000))
def test_equals_conditioning_of_the_joint(s: int, o: int, T: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, s, o)
    y, _ = model.sample(T, random_state=seed)
    y[rng.random(y.shape) < 0.25] = np.nan
    mean, cov, log = conditioned(model, y)
    blocks = cov.reshape(T, s, T, s)
    smooth, seen = model.smooth(y), model.filter(y)
    np.testing.assert_allclose(smooth.means.ravel(), mean, rtol=0, atol=1e-9)
    for t in range(T):
        np.testing.assert_allclose(smooth.covariances[t], blocks[t, :, t], rtol=0, atol=1e-9)
        if t:
            np.testing.assert_allclose(smooth.cross_covariances[t - 1], blocks[t - 1, :, t], rtol=0, atol=1e-9)
        part = conditioned(model, y[: t + 1])
        np.testing.assert_allclose(seen.means[t], part[0][-s:], rtol=0, atol=1e-9)
        np.testing.assert_allclose(seen.covariances[t], part[1][-s:, -s:], rtol=0, atol=1e-9)
    assert seen.log_likelihood == pytest.approx(log, abs=1e-9)
    assert model.log_likelihood(y) == pytest.approx(log, abs=1e-9)


def test_forecast_is_a_smoother_over_gaps(rng: np.random.Generator) -> None:
    model = random_model(rng, 3, 2)
    y, _ = model.sample(30, random_state=1)
    ahead = model.forecast(y, 4, level=0.8)
    longer = model.smooth(np.concatenate([y, np.full((4, 2), np.nan)]))
    np.testing.assert_allclose(ahead.state_means, longer.means[-4:], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ahead.means, longer.means[-4:] @ model.H.T, rtol=0, atol=1e-10)
    spread = np.sqrt(np.diagonal(ahead.covariances, axis1=1, axis2=2))
    np.testing.assert_allclose(ahead.upper - ahead.lower, 2 * 1.2815515655446004 * spread)


def test_intervals_cover() -> None:
    """80 % intervals of 600 one-step forecasts: within 5 standard errors, 0.8 ± 0.08."""
    model = KalmanFilter(0.9, 1.0, 1.0, 0.5)
    hits = 0
    for seed in range(600):
        y, _ = model.sample(12, random_state=seed)
        ahead = model.forecast(y[:-1], level=0.8)
        hits += int(ahead.lower[0, 0] <= y[-1, 0] <= ahead.upper[0, 0])
    assert abs(hits / 600 - 0.8) < 0.08


@pytest.mark.parametrize(
    "learn", [("Q", "R", "m0", "P0"), ("A", "Q", "H", "R", "m0", "P0"), ("A",), ("Q",), ("H", "R")]
)
@pytest.mark.parametrize("gaps", [False, True])
def test_em_never_falls(rng: np.random.Generator, learn: tuple[str, ...], gaps: bool) -> None:
    truth = random_model(rng, 2, 2)
    series = [truth.sample(n, random_state=n)[0] for n in (60, 1, 40)]
    if gaps:
        for y in series:
            y[rng.random(y.shape) < 0.2] = np.nan
    start = random_model(np.random.default_rng(5), 2, 2, learn=learn, max_iter=25, tol=0.0)
    model = clone(start).fit(series)
    assert (np.diff(model.history_) > -1e-8 * np.abs(model.history_[0])).all()
    assert model.log_likelihood(series) >= model.history_[-1] - 1e-8
    assert model.history_[0] == pytest.approx(start.log_likelihood(series), rel=1e-12)
    for name in ("A", "Q", "H", "R"):
        kept = np.allclose(getattr(model, name + "_"), getattr(start, name), rtol=0, atol=1e-14)
        assert kept == (name not in learn)


def test_noise_is_learned() -> None:
    truth = KalmanFilter(1.0, 0.5, 1.0, 2.0, 0.0, 1.0)
    y, _ = truth.sample(4000, random_state=0)
    model = KalmanFilter(1.0, 2.0, 1.0, 0.5, 0.0, 1.0, max_iter=300, tol=1e-4).fit(y)
    assert model.Q_[0, 0] == pytest.approx(0.5, rel=0.15)
    assert model.R_[0, 0] == pytest.approx(2.0, rel=0.1)
    assert model.log_likelihood(y) > truth.log_likelihood(y) - 1e-6


def test_long_series_and_blocks() -> None:
    model = KalmanFilter([[1.0, 1.0], [0.0, 1.0]], np.diag([0.0, 1e-4]), [[1.0, 0.0]], 1.0, [0, 0], 1e6 * np.eye(2))
    y, _ = model.sample(50_000, random_state=0)
    seen = model.filter(y)
    assert model.log_likelihood(y) == pytest.approx(seen.log_likelihood, rel=1e-12)
    assert np.linalg.eigvalsh(seen.covariances[-1])[0] > 0


def test_stationary_start_and_statsmodels() -> None:
    model = KalmanFilter(0.8, 0.36, 1.0, 0.5)
    seen = model.filter([np.nan])
    assert seen.covariances[0, 0, 0] == pytest.approx(1.0)
    sm = pytest.importorskip("statsmodels.tsa.statespace.mlemodel")
    y, _ = model.sample(200, random_state=0)
    y[50:60] = np.nan
    peer = sm.MLEModel(y, k_states=1)
    peer["design"], peer["transition"], peer["selection"] = [[1.0]], [[0.8]], [[1.0]]
    peer["state_cov"], peer["obs_cov"] = [[0.36]], [[0.5]]
    peer.ssm.initialize_known(np.zeros(1), np.eye(1))
    assert model.log_likelihood(y) == pytest.approx(float(peer.ssm.loglike()), abs=1e-8)
    np.testing.assert_allclose(model.smooth(y).means.T, peer.ssm.smooth().smoothed_state, atol=1e-8)


@pytest.mark.parametrize(
    "options, y, text",
    [
        ({"A": np.eye(2)}, [1.0], "Q must have shape (2, 2)"),
        ({"A": 1.0}, [1.0], "P0 is needed"),
        ({"A": 0.5, "Q": -1.0}, [1.0], "no negative eigenvalue"),
        ({"A": np.nan}, [1.0], "NaN"),
        ({"A": 0.5, "m0": [0.0, 1.0]}, [1.0], "m0 and P0 must have shapes"),
        ({"A": 0.5}, [], "y is empty"),
        ({"A": 0.5}, [np.inf], "infinity at row 0"),
        ({"A": 0.5}, np.zeros((3, 2)), "shape (T, 1)"),
        ({"A": 0.5, "R": 0.0, "Q": 0.0}, [1.0], "not positive definite"),
        ({"A": 0.5, "learn": ("q",)}, [1.0, 2.0], "Did you mean 'Q'"),
        ({"A": 0.5}, [np.nan, np.nan], "no observed value"),
    ],
)  # fmt: skip
def test_bad_input(options: dict[str, Any], y: Any, text: str) -> None:
    with pytest.raises(ModelError, match=re.escape(text)):
        KalmanFilter(**options).fit(y)
    if "learn" not in options and text != "no observed value":
        with pytest.raises(ModelError, match=re.escape(text)):
            KalmanFilter(**options).log_likelihood(y)


@pytest.mark.parametrize("s, o", [(1, 1), (4, 2), (9, 3)])
def test_settled_gains_change_nothing(s: int, o: int) -> None:
    """A gap at the very end turns the shortcut for long series off; all else must be as with it."""
    rng = np.random.default_rng(s)
    model = random_model(rng, s, o)
    y, _ = model.sample(1500, random_state=0)
    assert settled_from(model._model(), y) is not None
    slow = np.concatenate([y, np.full((1, o), np.nan)])
    assert settled_from(model._model(), slow) is None
    quick, plain = model.smooth(y), model.smooth(slow)
    np.testing.assert_allclose(quick.means, plain.means[:-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(quick.covariances, plain.covariances[:-1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(quick.cross_covariances, plain.cross_covariances[:-1], rtol=0, atol=1e-10)
    assert quick.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-11)
    assert model.log_likelihood(y) == pytest.approx(model.filter(y).log_likelihood, rel=1e-11)
