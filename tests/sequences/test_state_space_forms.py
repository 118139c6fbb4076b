"""Kalman filters that change with time, take controls, start diffusely, stream, and keep roots; structural series."""

import json

import numpy as np
import pytest

import gramgraph as gg
from gramgraph._numerics.compiling import tier
from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.sequences import KalmanFilter, Level, Regression, Season, StructuralModel, Trend
from gramgraph.sequences._variances import ScalarLikelihood


def random_parts(seed: int, s: int, o: int):
    rng = np.random.default_rng(seed)
    A = 0.9 * np.linalg.qr(rng.normal(size=(s, s)))[0]
    Q, R, P0 = (M @ M.T + 0.1 * np.eye(len(M)) for M in (rng.normal(size=(k, k)) for k in (s, o, s)))
    return A, Q, rng.normal(size=(o, s)), R, rng.normal(size=s), P0


@pytest.mark.parametrize("s, o", [(1, 1), (3, 2), (2, 4)])
def test_roots_give_the_covariances(s, o) -> None:
    parts = random_parts(s + o, s, o)
    plain, rooted = KalmanFilter(*parts), KalmanFilter(*parts, form="square_root")
    y, _ = plain.sample(50, random_state=0)
    y[4], y[7, 0] = np.nan, np.nan
    for a, b in ((plain.filter(y), rooted.filter(y)), (plain.smooth(y), rooted.smooth(y))):
        np.testing.assert_allclose(a.means, b.means, atol=1e-10)
        np.testing.assert_allclose(a.covariances, b.covariances, atol=1e-10)
    assert plain.log_likelihood(y) == pytest.approx(rooted.log_likelihood(y), rel=1e-12)


@pytest.mark.parametrize("s, o", [(1, 1), (3, 2), (2, 4)])
def test_precisions_give_the_covariances(s, o) -> None:
    parts = random_parts(s + o, s, o)
    plain, other = KalmanFilter(*parts), KalmanFilter(*parts, form="information")
    y, _ = plain.sample(30, random_state=0)
    y[4], y[7, 0] = np.nan, np.nan
    for a, b in ((plain.filter(y), other.filter(y)), (plain.smooth(y), other.smooth(y))):
        np.testing.assert_allclose(a.means, b.means, atol=1e-9)
        np.testing.assert_allclose(a.covariances, b.covariances, atol=1e-9)
    np.testing.assert_allclose(plain.smooth(y).cross_covariances, other.smooth(y).cross_covariances, atol=1e-9)
    np.testing.assert_allclose(plain.filter(y).log_likelihoods, other.filter(y).log_likelihoods, atol=1e-9)
    assert plain.log_likelihood(y) == pytest.approx(other.log_likelihood(y), rel=1e-10)


def test_precisions_know_nothing_at_first() -> None:
    """A diffuse trend: its slope is open until two levels were seen, and least squares where nothing moves."""
    A, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    still = KalmanFilter(A, np.zeros((2, 2)), H, 1.0, P0="diffuse", form="information")
    y = np.array([1.0, 2.5, 2.0, 4.0])
    found = still.filter(y)
    assert found.covariances[0, 1, 1] == np.inf and np.isfinite(found.covariances[1:]).all()
    slope, level = np.polyfit(np.arange(4), y, 1)
    np.testing.assert_allclose(found.means[-1], [level + 3 * slope, slope], atol=1e-9)
    np.testing.assert_allclose(still.smooth(y).means[:, 0], level + slope * np.arange(4), atol=1e-9)
    walk = np.cumsum(np.random.default_rng(0).normal(size=40)) + 50.0
    exact = KalmanFilter(A, np.diag([0.1, 0.01]), H, 0.5, P0="diffuse", form="information")
    wide = KalmanFilter(A, np.diag([0.1, 0.01]), H, 0.5, P0=1e9 * np.eye(2))
    np.testing.assert_allclose(exact.smooth(walk).means, wide.smooth(walk).means, rtol=1e-6, atol=1e-6)
    assert exact.log_likelihood(walk) == pytest.approx(wide.log_likelihood(walk) + np.log(1e9), rel=1e-6)
    with pytest.raises(ModelError, match="invertible A"):
        KalmanFilter(0.0, 1.0, 1.0, 1.0, form="information").filter([1.0, 2.0])


def test_stacks_are_the_joint_gaussian() -> None:
    rng = np.random.default_rng(5)
    T, s, o = 5, 2, 1
    A, H = rng.normal(size=(T, s, s)), rng.normal(size=(T, o, s))
    Q = np.array([M @ M.T for M in rng.normal(size=(T, s, s))])
    R = rng.uniform(0.1, 1.0, size=(T, o, o))
    B, D, u = rng.normal(size=(s, 2)), rng.normal(size=(o, 2)), rng.normal(size=(T, 2))
    m0, P0 = rng.normal(size=s), np.eye(s)
    y = rng.normal(size=(T, o))
    mean, C = np.zeros((T, s)), np.zeros((T, s, T, s))
    mean[0], C[0, :, 0] = m0, P0
    for t in range(1, T):
        mean[t] = A[t] @ mean[t - 1] + B @ u[t - 1]
        for r in range(t):
            C[t, :, r] = A[t] @ C[t - 1, :, r]
            C[r, :, t] = C[t, :, r].T
        C[t, :, t] = A[t] @ C[t - 1, :, t - 1] @ A[t].T + Q[t]
    C = C.reshape(T * s, T * s)
    G = np.zeros((T * o, T * s))
    for t in range(T):
        G[t : t + 1, t * s : (t + 1) * s] = H[t]
    S = G @ C @ G.T + np.diag(R.ravel())
    gap = y.ravel() - G @ mean.ravel() - (u @ D.T).ravel()
    gain = C @ G.T @ np.linalg.inv(S)
    model = KalmanFilter(A, Q, H, R, m0, P0, B=B, D=D)
    found = model.smooth(y, controls=u)
    other = KalmanFilter(A, Q, H, R, m0, P0, B=B, D=D, form="information").smooth(y, controls=u)
    np.testing.assert_allclose(other.means, found.means, atol=1e-9)
    np.testing.assert_allclose(other.cross_covariances, found.cross_covariances, atol=1e-9)
    np.testing.assert_allclose(found.means.ravel(), mean.ravel() + gain @ gap, atol=1e-10)
    after = C - gain @ G @ C
    for t in range(T):
        np.testing.assert_allclose(found.covariances[t], after[t * s : (t + 1) * s, t * s : (t + 1) * s], atol=1e-10)
    log = -0.5 * (gap @ np.linalg.solve(S, gap) + np.linalg.slogdet(2 * np.pi * S)[1])
    assert model.log_likelihood(y, controls=u) == pytest.approx(log, rel=1e-10)
    with pytest.raises(ModelError, match="needs controls"):
        model.filter(y)
    with pytest.raises(ModelError, match="matrices in a stack"):
        model.filter(np.zeros((9, 1)), controls=np.zeros((9, 2)))
    with pytest.raises(ModelError, match="Try: append NaN"):
        model.forecast(y)
    with pytest.raises(ModelError, match="takes no controls"):
        KalmanFilter(0.5).filter([1.0], controls=[1.0])


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_differences(seed) -> None:
    parts = random_parts(seed, 2, 2)
    names = ("A", "Q", "H", "R", "m0", "P0")
    y, _ = KalmanFilter(*parts).sample(30, random_state=seed)
    y[3, 1], y[8] = np.nan, np.nan
    found = KalmanFilter(*parts).gradient(y)
    rng = np.random.default_rng(seed)
    for i, name in enumerate(names):
        change = rng.normal(size=np.shape(parts[i]))
        change = change + change.T if name in ("Q", "R", "P0") else change
        values = []
        for sign in (1.0, -1.0):
            moved = list(parts)
            moved[i] = parts[i] + sign * 1e-5 * change
            values.append(KalmanFilter(*moved).log_likelihood(y))
        assert (found[name] * change).sum() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-6)
    with pytest.raises(ModelError, match="invertible Q"):
        KalmanFilter(0.5, 0.0, 1.0, 1.0, 0.0, 1.0).gradient([1.0, 2.0])


def test_a_diffuse_start_forgets_its_prior() -> None:
    A, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    Q = np.diag([0.1, 0.01])
    y = np.cumsum(np.random.default_rng(0).normal(size=40)) + 50.0
    unknown = KalmanFilter(A, Q, H, 0.5, P0="diffuse")
    wide = KalmanFilter(A, Q, H, 0.5, P0=1e9 * np.eye(2))
    np.testing.assert_allclose(unknown.smooth(y).means, wide.smooth(y).means, rtol=1e-5, atol=1e-4)
    assert unknown.log_likelihood(y) == pytest.approx(wide.log_likelihood(y) + np.log(1e9), rel=1e-6)
    seen = unknown.filter(y)
    assert np.isinf(seen.covariances[0]).sum() == 1 and np.isfinite(seen.covariances[1:]).all()
    np.testing.assert_allclose(seen.means[1], [y[1], y[1] - y[0]])
    ahead = unknown.forecast(y, 3)
    np.testing.assert_allclose(ahead.means, wide.forecast(y, 3).means, rtol=1e-6)


def test_a_long_series_from_an_unknown_start() -> None:
    """Covariances that settle are not written out; what is asked gives the same as without that."""
    A, H, Q = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.diag([0.1, 0.01])
    y = np.cumsum(np.random.default_rng(1).normal(size=1500))
    quick, slow = (KalmanFilter(A, Q, H, 0.5, P0="diffuse", form=form) for form in ("covariance", "square_root"))
    for a, b in ((quick.filter(y), slow.filter(y)), (quick.smooth(y), slow.smooth(y))):
        np.testing.assert_allclose(a.means, b.means, atol=1e-8)
        assert a.covariances.shape == (1500, 2, 2)
        np.testing.assert_allclose(a.covariances, b.covariances, atol=1e-9)
        assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-11)
    assert quick.log_likelihood(y) == pytest.approx(slow.log_likelihood(y), rel=1e-11)


@pytest.mark.parametrize("form", ["covariance", "square_root"])
def test_a_direction_that_the_move_forgets_stays_open(form) -> None:
    """The second state at the start is lost before anything is seen: what follows does not depend on it."""
    A = np.array([[1.0, 0.0], [0.0, 0.0]])
    model = KalmanFilter(A, np.diag([0.5, 0.3]), [[1.0, 1.0]], 0.2, P0="diffuse", form=form)
    y = np.array([np.nan, 1.0, 2.0, 0.5])
    later = KalmanFilter(A, np.diag([0.5, 0.3]), [[1.0, 1.0]], 0.2, P0=np.diag([np.inf, 0.3]), form=form)
    # known from the first step on: the level is open, and moved once
    assert model.log_likelihood(y) == pytest.approx(later.log_likelihood(y[1:]), abs=1e-9)
    found, want = model.smooth(y), later.smooth(y[1:])
    np.testing.assert_allclose(found.means[1:], want.means, atol=1e-9)
    np.testing.assert_allclose(found.covariances[1:], want.covariances, atol=1e-9)
    assert np.isinf(found.covariances[0, 1, 1]) and np.isfinite(found.covariances[0, 0, 0])


def test_em_and_gradients_from_an_unknown_start() -> None:
    A, H, Q = np.array([[1.0, 0.3], [0.0, 0.9]]), np.array([[1.0, 0.0], [0.5, 1.0]]), np.diag([0.3, 0.2])
    y = np.cumsum(np.random.default_rng(2).normal(size=(60, 2)), axis=0)
    y[0, 0], y[1], y[9, 1] = np.nan, np.nan, np.nan
    start = KalmanFilter(A, Q, H, np.eye(2), P0=np.diag([np.inf, 2.0]), max_iter=15, tol=0.0)
    found = KalmanFilter(A, Q, H, np.eye(2), P0="diffuse").gradient(y)
    assert sorted(found) == ["A", "H", "Q", "R"]
    change = np.array([[0.3, 0.1], [0.1, -0.2]])
    for name in found:
        ends = []
        for sign in (1e-5, -1e-5):
            parts = {"A": A, "Q": Q, "H": H, "R": np.eye(2)}
            parts[name] = parts[name] + sign * change
            ends.append(KalmanFilter(**parts, P0="diffuse").log_likelihood(y))
        assert (found[name] * change).sum() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-5)
    start.fit(y)
    assert (np.diff(start.history_) > -1e-9).all() and start.history_[-1] > start.history_[0] + 1.0
    assert start.P0_.tolist() == [[np.inf, 0.0], [0.0, 2.0]]
    assert start.log_likelihood(y) >= start.history_[-1] - 1e-9
    whole = KalmanFilter(A, Q, H, np.eye(2), P0="diffuse", max_iter=2).fit(y)
    assert whole.P0_ == "diffuse" and np.isfinite(whole.log_likelihood(y))
    with pytest.raises(ModelError, match="covariances in its row and column must be 0"):
        KalmanFilter(A, Q, H, np.eye(2), P0=[[np.inf, 1.0], [1.0, 2.0]]).filter(y)
    with pytest.raises(ModelError, match="does not determine its first state"):
        KalmanFilter(np.eye(2), np.eye(2), [[1.0, 0.0]], 1.0, P0="diffuse").fit(y[:, 1])


def test_a_stream_is_the_filter_and_goes_on_bit_by_bit() -> None:
    A, Q, H, R, m0, P0 = random_parts(3, 2, 2)
    rng = np.random.default_rng(0)
    B, u = rng.normal(size=(2, 1)), rng.normal(size=(20, 1))
    model = KalmanFilter(A, Q, H, R, m0, P0, B=B)
    y = rng.normal(size=(20, 2))
    y[5] = np.nan
    want = model.filter(y, controls=u)
    stream = model.stream()
    for t in range(20):
        mean = stream.update(y[t] if t != 5 else None, control=u[t])
        np.testing.assert_allclose(mean, want.means[t], atol=1e-12)
        np.testing.assert_allclose(stream.covariance, want.covariances[t], atol=1e-12)
        if t == 9:
            resumed = model.stream(state=json.loads(json.dumps(stream.state)))
        if t > 9:
            assert (resumed.update(y[t], control=u[t]) == mean).all()
    assert stream.log_likelihood == resumed.log_likelihood == pytest.approx(want.log_likelihood)
    with pytest.raises(ModelError, match="an observation has 2 finite numbers"):
        stream.update([1.0], control=[0.0])
    with pytest.raises(ModelError, match="needs its control"):
        stream.update([1.0, 2.0])


@pytest.mark.parametrize("steps", [4_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_roots_stay_positive_where_covariances_would_not(steps) -> None:
    """A nearly noiseless sensor of a smooth walk: variances of very different size."""
    A = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    Q = np.diag([0.0, 0.0, 1e-10])
    model = KalmanFilter(A, Q, [[1.0, 0.0, 0.0]], 1e-12, P0=1e8 * np.eye(3), form="square_root")
    y = np.sin(np.arange(steps) / 300.0)
    found = model.filter(y)
    assert np.isfinite(found.means).all() and np.isfinite(found.log_likelihood)
    assert np.linalg.eigvalsh(found.covariances[:: max(steps // 2000, 1)]).min() > -1e-18
    assert (np.diagonal(found.covariances, axis1=1, axis2=2) >= 0.0).all()


@pytest.mark.parametrize("way", ["plain", "compiled"])
def test_roots_refuse_directions_that_are_rounding(way) -> None:
    """A first state without noise, seen exactly: what is left of it is rounding, and smoothed variances were −1e39."""
    rng = np.random.default_rng(3)
    A, H, y = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(20, 3))
    A /= 1.05 * np.abs(np.linalg.eigvals(A)).max()
    Q, start = np.diag([0.0, 1.0, 1.0]), {"m0": np.zeros(3), "P0": np.eye(3), "form": "square_root"}
    with tier(way), np.errstate(all="raise"):
        with pytest.raises(ModelError, match="at step 1 is not positive definite"):
            KalmanFilter(A, Q, H, 1e-30 * np.eye(3), **start).smooth(y)
        found = KalmanFilter(A, Q, H, 1e-10 * np.eye(3), **start).smooth(y)
    assert (np.diagonal(found.covariances, axis1=1, axis2=2) >= 0.0).all()


def test_forms_and_shapes_are_named() -> None:
    with pytest.raises(ModelError, match="form is"):
        KalmanFilter(0.5, form="cube_root").filter([1.0])
    with pytest.raises(ModelError, match="stacks must have one matrix per step"):
        KalmanFilter(np.ones((3, 1, 1)), np.ones((4, 1, 1)), P0=1.0).filter([1.0])
    with pytest.raises(ModelError, match="P0 is needed"):
        KalmanFilter(np.ones((3, 1, 1))).filter([1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match="B must have 1 rows"):
        KalmanFilter(0.5, B=np.ones((2, 1))).filter([1.0], controls=[1.0])
    with pytest.raises(ModelError, match="constant matrices"):
        KalmanFilter(np.ones((3, 1, 1)), P0=1.0).fit([1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match="y must hold numbers"):
        KalmanFilter(0.5).filter(["a", "b"])
    with pytest.raises(ModelError, match="P0 must be a matrix of numbers"):
        KalmanFilter(0.5, P0="wide").filter([1.0])


# --- structural series ----------------------------------------------------------------------------------------------


def made(T: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    level = np.cumsum(0.3 * rng.normal(size=T)) + 10.0
    season = np.tile([2.0, -1.0, 0.5, -1.5], T // 4 + 1)[:T]
    return level + season + 0.5 * rng.normal(size=T)


def test_a_single_piece_learns_like_a_sum():
    y = np.cumsum(np.random.default_rng(0).normal(size=60))
    alone = Trend(smooth=True).fit(y)
    assert alone.variances_ == StructuralModel((Trend(smooth=True),)).fit(y).variances_
    assert alone.forecast(3).means.shape == (3, 1)


def test_variances_are_those_that_made_the_series_and_stationary() -> None:
    y = made(800, 0)
    model = (Level() + Season(4)).fit(y)
    assert model.variances_["noise"] == pytest.approx(0.25, rel=0.3)
    assert model.variances_["level"] == pytest.approx(0.09, rel=0.5)
    assert model.variances_["season"] < 1e-3
    for form in ("covariance", "square_root", "information"):
        again = model.filter_.set_params(form=form)
        assert again.log_likelihood(y) == pytest.approx(model.log_likelihood_, rel=1e-9)


@pytest.mark.parametrize("noise", [0.4, 0.0])
def test_the_gradient_is_that_of_the_likelihood(noise) -> None:
    """At a variance of zero too, where only the slope to one side exists."""
    y = made(60, 1)
    y[[0, 2, 10, 11, 12]] = np.nan
    model = Trend() + Season(4)
    A, row, noises, _ = model._layout()
    likelihood = ScalarLikelihood(A, row[None], tuple(state for _, state in noises), y)
    at = np.array([noise, 0.1, 0.02, 0.01])
    value, found = likelihood.with_gradient(at)
    assert value == pytest.approx(model._filter(at, row[None]).log_likelihood(y), abs=1e-9)
    for i in range(4):
        e = 1e-6 * np.eye(4)[i]
        ends = likelihood.value(at + e), likelihood.value(at - e if at[i] else at), likelihood.value(at + 2 * e)
        slope = (ends[0] - ends[1]) / 2e-6 if at[i] else (4 * ends[0] - 3 * value - ends[2]) / 2e-6
        assert found[i] == pytest.approx(slope, rel=1e-4, abs=1e-3)
    best, scaled = likelihood.at_best_scale(at)
    assert best == pytest.approx(likelihood.value(scaled), abs=1e-9) and best >= likelihood.value(1.1 * scaled)


@pytest.mark.parametrize("kind", ["seasons", "regression"])
def test_slope_and_curvature_of_multiples_are_those_of_the_dense_gaussian(kind) -> None:
    """Average information ½ yᵀ P Vᵢ P Vⱼ P y, P the inverse covariance of what the unknown start leaves of y."""
    rng = np.random.default_rng(4)
    T = 40
    X = rng.normal(size=(T, 2)) if kind == "regression" else None
    pieces = (Trend(), Season(4), Regression(2)) if kind == "regression" else (Season(2), Level(), Season(5, name="b"))
    y = rng.normal(size=T)
    y[[1, 3, 20]] = np.nan
    model = StructuralModel(pieces)
    A, _, noises, places = model._layout()
    H, driven = model._rows(T, X).reshape(-1, len(A)), [state for _, state in noises]
    seasons = tuple(place for piece, place in zip(pieces, places, strict=True) if isinstance(piece, Season))
    at = rng.uniform(0.1, 1.0, 1 + len(driven))
    standing, moving = (ScalarLikelihood(A, H, tuple(driven), y, part).profile(at) for part in (seasons, ()))
    assert standing.log_likelihood == pytest.approx(moving.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(standing.curve, moving.curve, rtol=1e-9)
    powers = [np.eye(len(A))]
    for _ in range(T - 1):
        powers.append(A @ powers[-1])
    rows = np.broadcast_to(H, (T, len(A)))
    seen = ~np.isnan(y)
    parts = [np.eye(T)]
    for state in driven:
        G = np.array([[rows[t] @ powers[t - u][:, state] if 0 < u <= t else 0.0 for u in range(T)] for t in range(T)])
        parts.append(G @ G.T)
    scale = standing.scaled[0] / at[0]
    V = [part[np.ix_(seen, seen)] for part in parts]
    S = sum(variance * part for variance, part in zip(standing.scaled, V, strict=True))
    F = np.array([rows[t] @ powers[t] for t in range(T)])[seen]
    iS = np.linalg.inv(S)
    P = iS - iS @ F @ np.linalg.solve(F.T @ iS @ F, F.T @ iS)
    g = [part @ P @ y[seen] for part in V]
    want = 0.5 * np.array([[a @ P @ b for b in g] for a in g])
    slope = [0.5 * (y[seen] @ P @ a - np.trace(P @ part)) for a, part in zip(g, V, strict=True)]
    np.testing.assert_allclose(standing.curve, want * scale**2, rtol=1e-8)
    np.testing.assert_allclose(standing.slope, np.array(slope) * scale, rtol=1e-7, atol=1e-8)


PIECES = {
    "Level": (lambda: StructuralModel((Level(),)), {"level": "llevel"}),
    "Trend": (lambda: StructuralModel((Trend(),)), {"level": "lltrend"}),
    "smooth": (lambda: StructuralModel((Trend(smooth=True),)), {"level": "strend"}),
    "Level and season": (lambda: Level() + Season(4), {"level": "llevel", "seasonal": 4}),
    "Trend and season": (lambda: Trend() + Season(4), {"level": "lltrend", "seasonal": 4}),
}


@pytest.mark.parametrize("gaps", [[], [0, 2, 7, 40]])
@pytest.mark.parametrize("kind", PIECES)
def test_against_unobserved_components_of_statsmodels(kind, gaps) -> None:
    tsa = pytest.importorskip("statsmodels.tsa.statespace.structural")
    y = made(100, 2)
    y[gaps] = np.nan
    make, options = PIECES[kind]
    ours = make().fit(y)
    peer = tsa.UnobservedComponents(y, **options, use_exact_diffuse=True)
    assert ours.converged_
    assert peer.loglike(np.array(list(ours.variances_.values()))) == pytest.approx(ours.log_likelihood_, abs=1e-7)
    assert ours.log_likelihood_ >= peer.fit(disp=False).llf - 1e-3
    given = np.array([0.3, 0.2, 0.1, 0.05])[: len(ours.variances_)]
    smooth = peer.smooth(given)
    for form in ("covariance", "square_root", "information"):
        model = ours._filter(given, ours._rows(len(y), None)).set_params(form=form)
        found = model.smooth(y)
        assert model.log_likelihood(y) == pytest.approx(peer.loglike(given), abs=1e-7)
        np.testing.assert_allclose(found.means, smooth.smoothed_state.T, atol=1e-8)
        np.testing.assert_allclose(found.covariances, smooth.smoothed_state_cov.transpose(2, 0, 1), atol=1e-8)
        np.testing.assert_allclose(model.filter(y).log_likelihoods, smooth.llf_obs, atol=1e-8)
        np.testing.assert_allclose(model.forecast(y, 5).means.ravel(), smooth.forecast(5), atol=1e-8)


def test_series_of_the_textbooks(shared_data) -> None:
    """The maximum of other programs, with the likelihood of Durbin and Koopman."""
    air = np.log(np.loadtxt(shared_data / "kernel/series/AirPassengers.csv", delimiter=",", skiprows=1, usecols=2))
    nile = np.loadtxt(shared_data / "kernel/series/Nile.csv", delimiter=",", skiprows=1, usecols=2)
    flow = StructuralModel((Level(),)).fit(nile)
    assert [flow.variances_["noise"], flow.variances_["level"]] == pytest.approx([15099, 1469.1], rel=1e-3)
    assert flow.log_likelihood_ == pytest.approx(-633.4646, abs=1e-3)
    models = [(Trend() + Season(12)).fit(air + shift) for shift in (0.0, 1000.0, 1e5)]
    for model in models:
        assert model.log_likelihood_ == pytest.approx(217.4204, abs=1e-3) and model.converged_
        assert model.variances_ == pytest.approx(models[0].variances_, rel=1e-6)


def test_pieces_add_up_and_regressions_are_found() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 2))
    y = made(150, 3) + X @ [1.5, -2.0]
    y[40:44] = np.nan
    model = (Level() + Season(4) + Regression(2)).fit(y, X)
    parts = model.decompose()
    total = sum(mean for mean, _ in parts.values())
    assert np.nanmean((total - y) ** 2) < 0.5
    slope = np.linalg.lstsq(X, parts["regression"][0], rcond=None)[0]
    np.testing.assert_allclose(slope, [1.5, -2.0], atol=0.2)
    ahead = model.forecast(3, X=np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]]))
    gaps = ahead.means.ravel()[1:] - model.forecast(3, X=np.zeros((3, 2))).means.ravel()[1:]
    np.testing.assert_allclose(gaps, [15.0, -20.0], atol=2.0)
    assert (ahead.lower < ahead.means).all() and (ahead.upper > ahead.means).all()


def test_fitted_series_with_gaps_are_saved_and_keep_their_columns(tmp_path) -> None:
    y, X = made(60, 5), np.random.default_rng(5).normal(size=(60, 1))
    y[[1, 30]] = np.nan
    model = (Level() + Regression()).fit(y, X)
    before = model.decompose()["regression"][0].copy()
    X[:] = 666.0  # the model has columns of its own
    np.testing.assert_array_equal(model.decompose()["regression"][0], before)
    gg.write(model, tmp_path / "series.gg")
    again = gg.read(tmp_path / "series.gg")
    assert again.log_likelihood_ == model.log_likelihood_ and again.variances_ == model.variances_
    np.testing.assert_array_equal(again.forecast(2, X=[[1.0], [2.0]]).means, model.forecast(2, X=[[1.0], [2.0]]).means)


def test_structural_mistakes_are_named() -> None:
    with pytest.raises(ModelError, match="one name"):
        (Season(4) + Season(7)).fit(np.arange(30.0))
    with pytest.raises(ModelError, match="period of at least 2"):
        Season(1)
    with pytest.raises(ModelError, match="more than 4 observed values"):
        (Level() + Season(4)).fit([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ModelError, match="needs X"):
        (Level() + Regression()).fit(np.arange(30.0))
    with pytest.raises(ModelError, match="this model has none"):
        StructuralModel((Level(),)).fit(np.arange(30.0), X=np.ones((30, 1)))
    with pytest.raises(ModelError, match="sum of pieces"):
        StructuralModel().fit([1.0, 2.0])
    with pytest.raises(ModelError, match="say the same"):
        (Level() + Regression()).fit(np.arange(30.0), np.ones(30))
    with pytest.warns(ModelWarning, match="follow y exactly"):
        flat = StructuralModel((Level(),)).fit(np.full(20, 3.0))
    assert not flat.converged_
    assert flat.forecast(2).means.ravel().tolist() == pytest.approx([3.0, 3.0], abs=1e-3)
