"""Laws of series with an unknown start, against the Gaussian of everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.sequences import KalmanFilter, Level, Season, StructuralModel, Trend
from tests.portions import examples

FORMS = ("covariance", "square_root", "information")


def dense(model: KalmanFilter, y: np.ndarray, unknown: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """log p(y) and smoothed moments by generalized least squares: unknown parts of x_0 are coefficients.

    With y = X a + e, e ~ N(0, S): −½ (n log 2π + log |S| + log |Xᵀ S⁻¹ X| + residual squares).
    """
    T, s = len(y), len(model.A)
    P0 = np.where(np.isfinite(model.P0), model.P0, 0.0)
    states = np.zeros((T, s, T * s))  # x_t in terms of x_0's finite part and the noises, stacked
    starts = np.zeros((T, s, int(unknown.sum())))
    states[0, :, :s], starts[0] = np.eye(s), np.eye(s)[:, unknown]
    for t in range(1, T):
        states[t], starts[t] = model.A @ states[t - 1], model.A @ starts[t - 1]
        states[t, :, t * s : (t + 1) * s] += np.eye(s)
    noise = np.kron(np.eye(T), model.Q)
    noise[:s, :s] = P0
    flat, X0 = states.reshape(T * s, T * s), starts.reshape(T * s, -1)
    mean = flat[:, :s] @ np.where(unknown, 0.0, model.m0)
    C = flat @ noise @ flat.T
    seen = ~np.isnan(y.ravel())
    G = np.kron(np.eye(T), model.H)[seen]
    S = G @ C @ G.T + np.kron(np.eye(T), model.R)[np.ix_(seen, seen)]
    X, v = G @ X0, y.ravel()[seen] - G @ mean
    inner = X.T @ np.linalg.solve(S, X)
    a = np.linalg.solve(inner, X.T @ np.linalg.solve(S, v))
    e = v - X @ a
    log = -0.5 * (len(v) * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + np.linalg.slogdet(inner)[1])
    log -= 0.5 * float(e @ np.linalg.solve(S, e))
    gain = np.linalg.solve(S, G @ C).T
    left = X0 - gain @ X
    cov = C - gain @ G @ C + left @ np.linalg.solve(inner, left.T)
    return float(log), mean + X0 @ a + gain @ e, cov


@settings(max_examples=examples(20))
@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 10_000), st.sampled_from(FORMS), st.booleans())
def test_an_unknown_start_is_least_squares(s: int, o: int, seed: int, form: str, part: bool) -> None:
    rng = np.random.default_rng(seed)
    T = s + 4

    def cov(n: int) -> np.ndarray:
        M = rng.normal(size=(n, n))
        return M @ M.T + 0.1 * np.eye(n)

    unknown = np.ones(s, dtype=bool)
    P0 = np.zeros((s, s))
    if part and s > 1:
        unknown[rng.integers(s)] = False
        P0[np.ix_(~unknown, ~unknown)] = cov(int((~unknown).sum()))
    P0[unknown, unknown] = np.inf
    A = np.eye(s) + 0.4 * rng.normal(size=(s, s))
    model = KalmanFilter(A, cov(s), rng.normal(size=(o, s)), cov(o), rng.normal(size=s), P0, form=form)
    y = rng.normal(size=(T, o))
    y[rng.random(y.shape) < 0.2] = np.nan
    y[-s:] = rng.normal(size=(s, o))  # enough to tell where it started
    log, means, C = dense(model, y, unknown)
    found, seen = model.smooth(y), model.filter(y)
    size = 1.0 + np.abs(C).max()  # some draws hardly tell where they started
    for value in (model.log_likelihood(y), found.log_likelihood, seen.log_likelihood):
        assert value == pytest.approx(log, abs=1e-7 * size)
    np.testing.assert_allclose(found.means.ravel(), means, atol=1e-7 * size)
    for t in range(T):
        here = slice(t * s, (t + 1) * s)
        np.testing.assert_allclose(found.covariances[t], C[here, here], atol=1e-7 * size)
        if t:
            back = slice((t - 1) * s, t * s)
            np.testing.assert_allclose(found.cross_covariances[t - 1], C[back, here], atol=1e-7 * size)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_determined_has_infinite_variance(form: str) -> None:
    """A trend of which one level is seen: smoothed backward, all levels but that one are open."""
    A, Q = np.array([[1.0, 1.0], [0.0, 1.0]]), np.diag([0.1, 0.2])
    model = KalmanFilter(A, Q, [[1.0, 0.0]], 0.5, P0="diffuse", form=form)
    y = np.array([np.nan, np.nan, 3.0, np.nan])
    found, seen = model.smooth(y), model.filter(y)
    assert np.isinf(np.diagonal(found.covariances, axis1=1, axis2=2)).tolist() == [
        [True] * 2,
        [True] * 2,
        [False, True],
        [True] * 2,
    ]
    assert found.means[2, 0] == pytest.approx(3.0) and found.covariances[2, 0, 0] == pytest.approx(0.5)
    assert seen.log_likelihood == pytest.approx(-0.5 * np.log(2 * np.pi * 5.0))  # level 2 steps on: 1 + 2² of slope


def series(seed: int, T: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.normal(size=T)) * rng.uniform(0.0, 1.0) + np.tile([2.0, -1.0, -1.0], T)[:T]
    y += rng.uniform(0.1, 1.0) * rng.normal(size=T)
    y[rng.random(T) < 0.1] = np.nan
    y[:2] = [0.5, np.nan]
    return y


MODELS: dict[str, Any] = {
    "level": lambda: StructuralModel((Level(),)),
    "trend": lambda: StructuralModel((Trend(),)),
    "both": lambda: Level() + Season(3),
    "smooth": lambda: Trend(smooth=True) + Season(3),
}


@settings(max_examples=8)
@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10_000), st.sampled_from([-1e5, 1e3, 1e5]), st.floats(1e-4, 1e4))
def test_shifts_and_scales_of_a_series(kind: str, seed: int, shift: float, factor: float) -> None:
    y = series(seed, 60)
    plain, moved, scaled = (MODELS[kind]().fit(z) for z in (y, y + shift, factor * y))
    closed = len(plain.filter_.A)
    counted = np.count_nonzero(~np.isnan(y)) - closed
    assert moved.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-6)
    assert scaled.log_likelihood_ == pytest.approx(plain.log_likelihood_ - counted * np.log(factor), abs=1e-6)
    for name, value in plain.variances_.items():
        assert moved.variances_[name] == pytest.approx(value, rel=1e-4)
        assert scaled.variances_[name] == pytest.approx(factor**2 * value, rel=1e-4)
    assert plain.filter_.log_likelihood(y) == pytest.approx(plain.log_likelihood_, abs=1e-7)


@settings(max_examples=8)
@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10_000))
def test_no_variances_near_or_far_are_better(kind: str, seed: int) -> None:
    y = series(seed, 60)
    model = MODELS[kind]().fit(y)
    best, rng = np.array(list(model.variances_.values())), np.random.default_rng(seed)
    assert model.converged_
    for spread in (1e-3, 0.3, 3.0):
        near = best * np.exp(spread * rng.normal(size=len(best))) + rng.choice([0.0, 1e-6, 1e-3], len(best))
        assert model._filter(near, model._rows(len(y), None)).log_likelihood(y) <= model.log_likelihood_ + 1e-7
