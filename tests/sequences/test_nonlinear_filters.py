"""Gaussian filters of nonlinear models, particle filters and switching dynamics against exact answers."""

import json
from itertools import product

import numpy as np
import pytest

from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences import (
    CubatureKalmanFilter,
    ExtendedKalmanFilter,
    KalmanFilter,
    ParticleFilter,
    SwitchingKalmanFilter,
    UnscentedKalmanFilter,
)
from gramgraph.sequences.particle import systematic

GAUSSIAN = (ExtendedKalmanFilter, UnscentedKalmanFilter, CubatureKalmanFilter)


def linear(seed: int, s: int, o: int):
    rng = np.random.default_rng(seed)
    A = 0.8 * np.linalg.qr(rng.normal(size=(s, s)))[0]
    H = rng.normal(size=(o, s))
    Q, R, P0 = (M @ M.T + 0.1 * np.eye(len(M)) for M in (rng.normal(size=(k, k)) for k in (s, o, s)))
    return A, Q, H, R, rng.normal(size=s), P0


@pytest.mark.parametrize("kind", GAUSSIAN)
@pytest.mark.parametrize("s, o", [(1, 1), (3, 2), (5, 3)])
def test_linear_models_give_the_kalman_filter(kind, s, o) -> None:
    A, Q, H, R, m0, P0 = linear(s, s, o)
    exact = KalmanFilter(A, Q, H, R, m0, P0)
    y, _ = exact.sample(40, random_state=1)
    y[5], y[9, 0] = np.nan, np.nan
    found = kind(lambda x: A @ x, lambda x: H @ x, Q, R, m0, P0)
    for got, want in ((found.filter(y), exact.filter(y)), (found.smooth(y), exact.smooth(y))):
        np.testing.assert_allclose(got.means, want.means, atol=1e-8)
        np.testing.assert_allclose(got.covariances, want.covariances, atol=1e-8)
        assert got.log_likelihood == pytest.approx(want.log_likelihood, rel=1e-8)
    np.testing.assert_allclose(found.smooth(y).cross_covariances, exact.smooth(y).cross_covariances, atol=1e-8)


@pytest.mark.parametrize("kind", GAUSSIAN)
def test_controls_shift_and_rows_are_the_same(kind) -> None:
    A, Q, H, R, m0, P0 = linear(3, 2, 2)
    y = np.random.default_rng(0).normal(size=(12, 2))
    u = np.random.default_rng(1).normal(size=(12, 2))
    one = kind(lambda x, u: A @ x + u, lambda x: H @ x, Q, R, m0, P0).filter(y, controls=u)
    many = kind(lambda x, u: x @ A.T + u, lambda x: x @ H.T, Q, R, m0, P0, vectorized=True).filter(y, controls=u)
    np.testing.assert_allclose(one.means, many.means, atol=1e-9)
    still = kind(lambda x, u: A @ x + u, lambda x: H @ x, Q, R, m0, P0).filter(y, controls=np.zeros((11, 2)))
    plain = KalmanFilter(A, Q, H, R, m0, P0).filter(y)
    np.testing.assert_allclose(still.means, plain.means, atol=1e-8)
    assert np.abs(one.means - plain.means).max() > 0.1


def test_sigma_points_have_the_moments_of_polynomials() -> None:
    """Third-degree means are exact; the extended filter's are those of the tangent."""
    m, P = np.array([0.3, -0.5]), np.array([[0.5, 0.2], [0.2, 0.4]])

    def cubic(x):
        return np.column_stack([x[:, 0] ** 2 * x[:, 1], x[:, 1] ** 2])

    want = [m[0] ** 2 * m[1] + P[0, 0] * m[1] + 2 * m[0] * P[0, 1], m[1] ** 2 + P[1, 1]]
    for kind in (UnscentedKalmanFilter, CubatureKalmanFilter):
        rule = kind(cubic, cubic, np.eye(2), np.eye(2), m, P, vectorized=True)
        mean, _, _ = rule._moments(rule._checked().move(), m, P, np.zeros(0, np.int64))
        np.testing.assert_allclose(mean, want, atol=1e-12)
    flat = ExtendedKalmanFilter(cubic, cubic, np.eye(2), np.eye(2), m, P, vectorized=True)
    mean, _, _ = flat._moments(flat._checked().move(), m, P, np.zeros(0, np.int64))
    np.testing.assert_allclose(mean, [m[0] ** 2 * m[1], m[1] ** 2], atol=1e-12)


def test_given_jacobians_are_the_differences() -> None:
    y = [0.6, 0.5, np.nan, 0.3]
    arguments = (np.sin, lambda x: x**2 / 2, 0.01, 0.04, 1.0, 0.1)
    plain = ExtendedKalmanFilter(*arguments).smooth(y)
    given = ExtendedKalmanFilter(*arguments, f_jacobian=lambda x: [[np.cos(x[0])]], h_jacobian=lambda x: x).smooth(y)
    np.testing.assert_allclose(plain.means, given.means, atol=1e-7)
    with pytest.raises(ModelError, match="f_jacobian must give shape"):
        ExtendedKalmanFilter(*arguments, f_jacobian=lambda x: [1.0, 2.0]).filter(y)


# --- a model on the line, solved on a fine grid ---------------------------------------------------------------------

GRID = np.linspace(-6.0, 6.0, 1201)
Y = [0.8, 1.9, None, 0.2, 1.2, 2.5]
F, H = (lambda x: 0.8 * x + np.sin(2.0 * x)), (lambda x: x**2 / 2)
Q, R, M0, P0 = 0.3, 0.2, 0.5, 1.0


def normal(x, mean, var):
    return np.exp(-0.5 * (x - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)


def on_grid():
    step = GRID[1] - GRID[0]
    W = normal(GRID[None, :], F(GRID)[:, None], Q) * step
    belief, logs, filtered = normal(GRID, M0, P0) * step, 0.0, []
    for t, z in enumerate(Y):
        belief = belief @ W if t else belief
        if z is not None:
            belief = belief * normal(z, H(GRID), R)
            logs += np.log(belief.sum())
            belief = belief / belief.sum()
        filtered.append(belief)
    back, smoothed = np.ones(len(GRID)), []
    for t in range(len(Y) - 1, -1, -1):
        p = filtered[t] * back
        smoothed.append(p / p.sum())
        if t and Y[t] is not None:
            back = back * normal(Y[t], H(GRID), R)
        back = W @ back
        back = back / back.max()
    return np.array(filtered), np.array(smoothed[::-1]), logs


@pytest.mark.parametrize("auxiliary", [False, True])
def test_particles_agree_with_a_grid(auxiliary) -> None:
    filtered, _, logs = on_grid()
    means = filtered @ GRID
    runs = [
        ParticleFilter.gaussian(
            F, H, Q, R, M0, P0, vectorized=True, auxiliary=auxiliary, n_particles=2000, random_state=seed
        ).filter(Y)
        for seed in range(40)
    ]
    found = np.array([run.means[:, 0] for run in runs])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(found.mean(axis=0) - means) < 5 * error + 0.02).all()
    ratio = np.exp([run.log_likelihood - logs for run in runs])  # unbiased: its mean is one
    assert abs(ratio.mean() - 1.0) < 5 * ratio.std(ddof=1) / np.sqrt(len(runs))
    spread = (filtered * (GRID - means[:, None]) ** 2).sum(axis=1)
    np.testing.assert_allclose(np.mean([run.covariances[:, 0, 0] for run in runs], axis=0), spread, rtol=0.1)


def test_trajectories_agree_with_a_grid() -> None:
    _, smoothed, _ = on_grid()
    pf = ParticleFilter.gaussian(F, H, Q, R, M0, P0, vectorized=True, n_particles=3000, random_state=1)
    paths = pf.smooth(Y, 600)[:, :, 0]
    want = smoothed @ GRID
    spread = np.sqrt((smoothed * (GRID - want[:, None]) ** 2).sum(axis=1))
    assert (np.abs(paths.mean(axis=0) - want) < 5 * spread / np.sqrt(600) + 0.1 * spread).all()


def test_intervals_cover_what_the_grid_says() -> None:
    filtered, _, _ = on_grid()
    pf = ParticleFilter.gaussian(F, H, Q, R, M0, P0, vectorized=True, n_particles=20_000, random_state=0)
    low, high = pf.filter(Y, keep=True).interval(0.9)
    run = np.cumsum(filtered, axis=1)
    inside = [np.interp(b, GRID, c) - np.interp(a, GRID, c) for a, b, c in zip(low[:, 0], high[:, 0], run, strict=True)]
    np.testing.assert_allclose(inside, 0.9, atol=0.02)
    with pytest.raises(ModelError, match="keep=True"):
        pf.filter(Y).interval()


def test_a_saved_stream_goes_on_bit_by_bit() -> None:
    pf = ParticleFilter.gaussian(F, H, Q, R, M0, P0, vectorized=True, n_particles=50, random_state=3)
    whole, first = pf.stream(), pf.stream()
    for z in Y[:3]:
        whole.update(z)
        first.update(z)
    second = pf.stream(state=json.loads(json.dumps(first.state)))
    for z in Y[3:]:
        assert whole.update(z).tolist() == second.update(z).tolist()
    assert whole.log_likelihood == second.log_likelihood and (whole.particles == second.particles).all()


@pytest.mark.parametrize("seed", range(5))
def test_systematic_draws_each_index_its_share_of_times(seed) -> None:
    rng = np.random.default_rng(seed)
    w = rng.dirichlet(np.full(7, 0.3))
    counts = np.bincount(systematic(w, 100, rng.random()), minlength=7)
    assert (np.abs(counts - 100 * w) < 1.0 + 1e-9).all() and counts.sum() == 100


def test_particles_need_possible_observations_and_right_functions() -> None:
    def start(n, rng):
        return rng.random(n)

    def move(x, rng):
        return x

    def weigh(z, x):
        return np.where(x[:, 0] < z, 0.0, -np.inf)

    pf = ParticleFilter(start, move, weigh, n_particles=20, random_state=0)
    stream = pf.stream()
    stream.update(0.9)
    before = stream.particles.copy()
    with pytest.raises(ImpossibleEvidenceError, match="all 20 particles"):
        stream.update(-1.0)
    assert (stream.particles == before).all() and stream.steps == 1
    with pytest.raises(ModelError, match="weigh must give 20 log probabilities"):
        ParticleFilter(start, move, lambda z, x: 0.0, n_particles=20).filter([1.0])
    with pytest.raises(ModelError, match="log_move"):
        pf.smooth([0.9])
    with pytest.raises(ModelError, match="y is empty"):
        pf.filter([])
    with pytest.raises(ModelError, match="start must give 20 rows"):
        ParticleFilter(lambda n, rng: rng.random(3), move, weigh, n_particles=20).filter([1.0])


@pytest.mark.parametrize("kind", GAUSSIAN)
def test_bad_models_are_named(kind) -> None:
    with pytest.raises(ModelError, match="f must be a function"):
        kind(1.0, np.sin, 1.0, 1.0, 0.0, 1.0).filter([1.0])
    with pytest.raises(ModelError, match="must have shapes"):
        kind(np.sin, np.sin, np.eye(2), 1.0, 0.0, 1.0).filter([1.0])
    with pytest.raises(ModelError, match="h must give 1 numbers"):
        kind(np.sin, lambda x: [1.0, 2.0], 1.0, 1.0, 0.0, 1.0).filter([1.0])
    with pytest.raises(ModelError, match=r"f gives \[nan\]"):
        kind(lambda x: x * np.nan, lambda x: x, 1.0, 1.0, 0.0, 1.0).filter([1.0, 2.0])
    with pytest.raises(ModelError, match="controls must have an entry"):
        kind(np.sin, np.sin, 1.0, 1.0, 0.0, 1.0).filter([1.0, 2.0, 3.0], controls=[0.0])


# --- switching ------------------------------------------------------------------------------------------------------


def switching(**options):
    return SwitchingKalmanFilter(
        [[0.9, 0.1], [0.2, 0.8]],
        A=[[[0.9, 0.1], [0.0, 0.9]], [[0.5, 0.0], [0.3, 0.7]]],
        Q=[0.05 * np.eye(2), 0.8 * np.eye(2)],
        H=[[1.0, 0.5]],
        R=[0.1, 0.4],
        m0=[0.0, 1.0],
        P0=np.eye(2),
        start=[0.7, 0.3],
        **options,
    )


def enumerated(model, y):
    """p(last mode | y), moments of the last state, log p(y): every history of modes with its own Kalman filter."""
    z, logs, modes, means = model._stacks(), [], [], []
    for history in product(range(2), repeat=len(y)):
        log, m, P = 0.0, z.m0, z.P0
        for t, c in enumerate(history):
            log += np.log(z.start[c] if t == 0 else z.transition[history[t - 1], c])
            if t:
                m, P = z.A[c] @ m, z.A[c] @ P @ z.A[c].T + z.Q[c]
            S = z.H[c] @ P @ z.H[c].T + z.R[c]
            gain = P @ z.H[c].T @ np.linalg.inv(S)
            v = y[t] - z.H[c] @ m
            log += float(-0.5 * (np.log(2 * np.pi * S[0, 0]) + v[0] ** 2 / S[0, 0]))
            m, P = m + gain @ v, P - gain @ z.H[c] @ P
        logs.append(log)
        modes.append(history[-1])
        means.append(m)
    logs = np.array(logs)
    p = np.exp(logs - logs.max())
    total = logs.max() + np.log(p.sum())
    p /= p.sum()
    return p @ np.array(modes), p @ np.array(means), total


def test_switching_against_all_histories() -> None:
    model = switching()
    y, _, _ = model.sample(7, random_state=5)
    mode, mean, log = enumerated(model, y)
    many = switching(method="particles", n_particles=3000, random_state=0).filter(y)
    assert many.modes[-1, 1] == pytest.approx(mode, abs=0.03)
    np.testing.assert_allclose(many.means[-1], mean, atol=0.05)
    assert many.log_likelihood == pytest.approx(log, abs=0.05)
    mixed = model.filter(y)
    assert mixed.modes[-1, 1] == pytest.approx(mode, abs=0.1)
    assert mixed.log_likelihood == pytest.approx(log, abs=0.3)


@pytest.mark.parametrize("method", ["imm", "particles"])
def test_one_mode_is_a_kalman_filter(method) -> None:
    A, Q, H, R, m0, P0 = linear(7, 3, 2)
    exact = KalmanFilter(A, Q, H, R, m0, P0)
    y, _ = exact.sample(25, random_state=1)
    y[3, 1], y[8] = np.nan, np.nan
    found = SwitchingKalmanFilter([[1.0]], A, Q, H, R, m0, P0, method=method, n_particles=5).filter(y)
    np.testing.assert_allclose(found.means, exact.filter(y).means, atol=1e-9)
    np.testing.assert_allclose(found.covariances, exact.filter(y).covariances, atol=1e-9)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood(y), rel=1e-9)


def test_switching_names_bad_arguments() -> None:
    with pytest.raises(ModelError, match="A must be 2 matrices"):
        SwitchingKalmanFilter([[0.9, 0.1], [0.2, 0.8]], A=np.ones((3, 1, 1))).filter([1.0])
    with pytest.raises(ModelError, match="method is"):
        SwitchingKalmanFilter([[1.0]], method="exact").filter([1.0])
    with pytest.raises(ModelError, match="negative eigenvalue"):
        SwitchingKalmanFilter([[1.0]], Q=-1.0).filter([1.0])
