"""Nonlinear filters: controls that reach both functions, angles, and functions that are called in the wrong way."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import GramGraphError, ModelError
from gramgraph.sequences import (
    CubatureKalmanFilter,
    ExtendedKalmanFilter,
    KalmanFilter,
    ParticleFilter,
    UnscentedKalmanFilter,
)
from gramgraph.sequences._circle import mean_of, turned

KINDS = [ExtendedKalmanFilter, UnscentedKalmanFilter, CubatureKalmanFilter]
A, B, H, D = np.array([[0.9, 0.2], [0.0, 0.8]]), np.array([[0.5], [1.0]]), np.array([[1.0, 0.3]]), np.array([[2.0]])
Q, R, M0, P0 = np.diag([0.2, 0.1]), np.array([[0.3]]), np.array([0.5, -0.5]), np.eye(2)


def wrapped(x: Any) -> np.ndarray:
    return np.pi - np.mod(np.pi - np.asarray(x), 2 * np.pi)


@pytest.mark.parametrize("kind", KINDS)
def test_controls_reach_both_functions_as_in_the_linear_filter(kind) -> None:
    rng = np.random.default_rng(0)
    y, u = rng.normal(size=(12, 1)), rng.normal(size=(12, 1))
    y[4] = np.nan
    linear = KalmanFilter(A, Q, H, R, M0, P0, B=B, D=D)
    model = kind(lambda x, u: A @ x + B @ u, lambda x, u: H @ x + D @ u, Q, R, M0, P0)
    for name in ("filter", "smooth"):
        want, found = getattr(linear, name)(y, controls=u), getattr(model, name)(y, controls=u)
        np.testing.assert_allclose(found.means, want.means, atol=1e-8)
        assert found.log_likelihood == pytest.approx(want.log_likelihood, abs=1e-8)
    stream, want = model.stream(), linear.filter(y, controls=u)
    for t in range(12):
        mean = stream.update(y[t], control=None if t == 0 else u[t - 1], now=u[t])
        np.testing.assert_allclose(mean, want.means[t], atol=1e-8)
    with pytest.raises(ModelError, match="for each of the 12 observations; it has 11"):
        model.filter(y, controls=u[:11])
    with pytest.raises(ModelError, match="as `now`"):
        stream.update(y[0], control=u[0])
    plain = kind(lambda x, u: A @ x + B @ u, lambda x, scale=1.0: scale * (H @ x), Q, R, M0, P0)
    assert plain.filter(y, controls=u[:11]).log_likelihood == pytest.approx(
        KalmanFilter(A, Q, H, R, M0, P0, B=B).log_likelihood(y, controls=u[:11]), abs=1e-8
    )


def test_jacobians_take_the_control_that_their_function_takes() -> None:
    rng = np.random.default_rng(0)
    y, u = rng.normal(size=(9, 1)), rng.normal(size=(9, 1))
    options: dict[str, Any] = {"f_jacobian": lambda x, u: A, "h_jacobian": lambda x: H}
    found = ExtendedKalmanFilter(lambda x, u: A @ x + B @ u, lambda x: H @ x, Q, R, M0, P0, **options)
    linear = KalmanFilter(A, Q, H, R, M0, P0, B=B)
    assert found.log_likelihood(y, controls=u) == pytest.approx(linear.log_likelihood(y, controls=u), abs=1e-8)
    with pytest.raises(ModelError, match=r"h_jacobian is called as h_jacobian\(x\), but the function given takes"):
        found.set_params(h_jacobian=lambda x, u: H).filter(y, controls=u)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(st.integers(0, 1000), st.floats(-3.1, 3.1))
def test_a_turn_of_the_compass_turns_the_answer(kind, seed: int, turn: float) -> None:
    """Heading and speed of turning from a compass: the linear filter of the angle that is not wrapped, wrapped."""
    rng = np.random.default_rng(seed)
    F, G = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    noise, start = np.diag([0.01, 0.01]), np.array([turn, 0.5])
    free = KalmanFilter(F, noise, G, 0.05, start, 0.05 * np.eye(2))
    y, _ = free.sample(20, random_state=int(rng.integers(1000)))
    y[7] = np.nan
    model = kind(
        lambda x: wrapped_first(F @ x), lambda x: wrapped(G @ x), noise, 0.05, start, 0.05 * np.eye(2),
        angles=[0], y_angles=[0],
    )  # fmt: skip
    for name in ("filter", "smooth"):
        want, found = getattr(free, name)(y), getattr(model, name)(wrapped(y))
        np.testing.assert_allclose(wrapped(found.means[:, 0] - want.means[:, 0]), 0.0, atol=1e-6)
        np.testing.assert_allclose(found.means[:, 1], want.means[:, 1], atol=1e-6)
        np.testing.assert_allclose(found.covariances, want.covariances, atol=1e-6)
        assert (np.abs(found.means[:, 0]) <= np.pi).all()
        assert found.log_likelihood == pytest.approx(want.log_likelihood, abs=1e-5)


def wrapped_first(x: np.ndarray) -> np.ndarray:
    return np.array([float(wrapped(x[0])), x[1]])


@given(st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=6), st.floats(-20.0, 20.0))
def test_means_on_the_circle_turn_with_their_rows(offsets: list[float], turn: float) -> None:
    weights = np.full(len(offsets), 1.0 / len(offsets))
    weights[0] -= 2.0
    weights[1] += 2.0  # as sigma points may have them
    values = np.array(offsets)[:, None]
    found = mean_of(turned(values + turn, np.array([0])), weights, np.array([0]))
    gap = float(wrapped(found[0] - turn - weights @ values[:, 0]))
    if np.abs(weights @ values[:, 0] - values).max() < 3.0:
        assert gap == pytest.approx(0.0, abs=1e-9)


def test_particles_see_controls_time_and_angles() -> None:
    times: list[int] = []
    seen: list[Any] = []

    def weigh(y: Any, x: np.ndarray, u: Any, t: int) -> np.ndarray:
        times.append(t)
        seen.append(u)
        return -0.5 * (y - x[:, 0] - 3.0 * u) ** 2

    def start(n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=n)

    def move(x: np.ndarray, rng: np.random.Generator, u: Any) -> np.ndarray:
        return 0.5 * x + u + rng.normal(size=x.shape)

    pf = ParticleFilter(start, move, weigh, n_particles=20_000, random_state=0)
    y, u = np.array([1.0, -1.0, 2.0, 0.5]), np.array([0.3, -0.2, 0.5, 0.1])
    found = pf.filter(y, controls=u)
    exact = KalmanFilter(0.5, 1.0, 1.0, 1.0, 0.0, 1.0, B=1.0, D=3.0).filter(y, controls=u)
    np.testing.assert_allclose(found.means, exact.means, atol=0.05)
    assert times == [0, 1, 2, 3] and seen == u.tolist()
    late: list[int] = []
    ParticleFilter(start, lambda x, rng: x, lambda y, x, t: late.append(t) or np.zeros(len(x))).filter([0.0, 1.0])
    assert late == [0, 1]
    spin = {"Q": 0.01, "R": 0.01, "m0": 3.1, "P0": 0.01, "angles": [0], "y_angles": [0], "random_state": 0}
    compass = ParticleFilter.gaussian(lambda x, u: x + u, lambda x: x, **spin, n_particles=5000, auxiliary=True)
    readings, turns = np.array([3.1, -3.0, -2.8]), np.array([0.2, 0.2])
    means = compass.filter(readings, controls=turns).means[:, 0]
    want = ExtendedKalmanFilter(lambda x, u: x + u, lambda x: x, 0.01, 0.01, 3.1, 0.01, angles=[0], y_angles=[0])
    np.testing.assert_allclose(wrapped(means - want.filter(readings, controls=turns).means[:, 0]), 0.0, atol=0.02)
    paths = compass.smooth(readings, 20, controls=turns)
    assert np.abs(wrapped(paths[:, -1, 0] + 2.85)).mean() < 0.3


def same(x: Any, *_: Any) -> Any:
    return x


UNIT = (1.0, 1.0, 0.0, 1.0)  # Q, R, m0, P0


@pytest.mark.parametrize(
    "kind, functions, options, text",
    [
        (ExtendedKalmanFilter, (lambda: 0, same), {}, r"f is called as f\(x\), but the function given takes \(\)"),
        (CubatureKalmanFilter, (lambda x, u: x, same), {}, "Try: controls"),
        (UnscentedKalmanFilter, (lambda x: x, same), {"controls": [1.0]}, r"f is called as f\(x, u\)"),
        (UnscentedKalmanFilter, (np.sin, same), {"controls": [1.0]}, "takes 1 argument"),
        (UnscentedKalmanFilter, (np.sin, lambda x, y, z: x), {}, r"h is called as h\(x\)"),
        (ParticleFilter.gaussian, (lambda x, u: x, np.sin), {}, "Try: controls"),
        (ParticleFilter.gaussian, (np.sin, lambda x, u: x), {}, r"h is called as h\(x\).*Try: controls"),
    ],
)
def test_a_wrong_signature_is_said_in_words(kind, functions, options: dict[str, Any], text: str) -> None:
    with pytest.raises(GramGraphError, match=text):
        kind(*functions, *UNIT).filter([1.0, 2.0], **options)


def test_wrong_signatures_of_particles_and_wrong_places() -> None:
    with pytest.raises(ModelError, match="from 0 to 0"):
        UnscentedKalmanFilter(np.sin, np.sin, *UNIT, angles=[1]).filter([1.0])
    with pytest.raises(ModelError, match=r"start is called as start\(n, rng\)"):
        ParticleFilter(lambda n: 0, same, lambda y, x: x)
    with pytest.raises(ModelError, match=r"weigh is called as weigh\(y, x\)"):
        ParticleFilter(lambda n, rng: 0, same, lambda y: y)
    pf = ParticleFilter(lambda n, rng: np.zeros(n), lambda x: x, lambda y, x: x[:, 0])
    with pytest.raises(ModelError, match=r"move is called as move\(x, rng\)"):
        pf.filter([0.0, 0.0])
