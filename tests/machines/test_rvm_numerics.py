"""Sparse Bayesian learning below the estimators: updates against definitions, stationary points, starts, weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics.pairwise import rbf_kernel

import gramgraph
from gramgraph._numerics.compiling import tier
from gramgraph._numerics.rvm import rounds
from gramgraph._numerics.rvm.classification import logistic, softmax_mode
from gramgraph._numerics.rvm.few_changes import few_changes
from gramgraph._numerics.rvm.posterior import Posterior
from gramgraph._numerics.rvm.regression import distinct, regression, spread, starters


def sinc(n: int, *, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.linspace(-10, 10, n)[:, None]
    clean = np.sinc(x[:, 0] / np.pi)
    return x, clean + noise * np.random.default_rng(seed).standard_normal(n), clean


def design(x: np.ndarray, gamma: float = 0.2) -> np.ndarray:
    return np.vstack([np.ones(len(x)), rbf_kernel(x, gamma=gamma)])


def ripley(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, each a mixture of two Gaussians of variance 0.03 (Bayes error about 8 %)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    centers = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centers[y, rng.integers(0, 2, n)] + np.sqrt(0.03) * rng.standard_normal((n, 2)), y


# --- rounds of re-estimation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [2.0, 0.01])
@pytest.mark.parametrize("learned", [True, False])
def test_rounds_of_few_columns_are_the_same_in_both_tiers(learned, gamma):
    x, t, _ = sinc(30)
    P = design(x, gamma=gamma)[1:]
    space, alpha = rounds.space_of(P, t, P @ P.T), np.full(30, 0.1)
    known = (*space, alpha, 50.0, 30.0, 1e-9, learned, 400, 1e12, 0)
    with tier("plain"):
        plain = rounds.few_rounds(*known)
    with tier("compiled"):
        compiled = rounds.few_rounds(*known)
    assert 0 < len(plain[0]) < 30
    assert compiled[0].tolist() == plain[0].tolist() and compiled[3:] == plain[3:]
    np.testing.assert_allclose(compiled[1], plain[1], rtol=1e-8)
    assert compiled[2] == pytest.approx(plain[2], rel=1e-9)
    assert (alpha == 0.1).all() and (space.F == rounds.space_of(P, t, P @ P.T).F).all()


@pytest.mark.parametrize("m", [40, 80])
def test_rounds_in_the_space_of_the_columns_are_those_of_the_columns(m, monkeypatch):
    x, t, _ = sinc(m)
    P = design(x, gamma=5.0 if m > rounds.FEW else 50.0)[1:]
    monkeypatch.setattr(rounds, "SPANNED", 1e-14)
    monkeypatch.setattr(rounds, "TILT", 0.0)
    monkeypatch.setattr(rounds, "WIDER", 1.0)
    space = rounds.space_of(P, t, P @ P.T)
    kept = np.arange(3, m, 2)
    alpha, power, P = np.linspace(0.1, 9.0, len(kept)), float(t @ t), P[kept]
    wanted = rounds._direct(P @ P.T, P @ t, power, alpha, 20.0)
    spaces = [space._replace(F=space.F[kept])]
    spaces.append(rounds.narrowed(spaces[0]))
    assert spaces[1].F.shape == (len(kept), min(len(kept), space.F.shape[1]))
    for one in spaces:
        for a, b in zip(rounds._inside(*one, alpha, 20.0), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_a_space_of_nearly_all_dimensions_is_not_made_for_many_columns():
    x, t, _ = sinc(80)
    wide = design(x, gamma=100.0)[1:]
    assert rounds.space_of(wide, t, wide @ wide.T) is None
    narrow = design(x, gamma=0.02)[1:]
    space = rounds.space_of(narrow, t, narrow @ narrow.T)
    assert space.F.shape[1] < 20
    np.testing.assert_allclose(space.F @ space.F.T, narrow @ narrow.T, atol=1e-4)
    few = rounds.space_of(wide[:20], t, wide[:20] @ wide[:20].T)
    np.testing.assert_allclose(few.F @ few.F.T, wide[:20] @ wide[:20].T, atol=1e-12)
    assert float(few.z @ few.z) + few.rest == pytest.approx(float(t @ t))


# --- the sequential updates ---------------------------------------------------------------------------------------


def test_updates_agree_with_definitions():
    x, t, _ = sinc(40)
    T = design(x)
    model = Posterior(T, (T**2).sum(1), T @ t, 25.0)
    for j, alpha in [(3, 0.7), (20, 2.0), (0, 0.1), (20, 5.0), (33, 1.0), (3, np.inf), (7, 0.4), (0, np.inf)]:
        model.apply(j, alpha)
        A, beta = model.active, 25.0
        C = np.eye(40) / beta + (T[A].T / model.alpha) @ T[A]
        np.testing.assert_allclose(model.S, np.einsum("ij,ij->i", T @ np.linalg.inv(C), T), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(model.Q, T @ np.linalg.solve(C, t), rtol=1e-8, atol=1e-8)
        sigma = np.linalg.inv(np.diag(model.alpha) + beta * T[A] @ T[A].T)
        np.testing.assert_allclose(model.sigma, sigma, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(model.mu, beta * sigma @ T[A] @ t, rtol=1e-7, atol=1e-10)
    assert model.active == [20, 33, 7]


def test_gain_is_the_change_of_the_evidence_and_the_best_one():
    x, t, _ = sinc(30)
    T = design(x)
    noise = 0.02

    def evidence(alphas: dict[int, float]) -> float:
        A = list(alphas)
        C = noise * np.eye(30) + (T[A].T / np.array([alphas[a] for a in A])) @ T[A]
        return float(multivariate_normal(np.zeros(30), C).logpdf(t))

    model = Posterior(T, (T**2).sum(1), T @ t, 1 / noise)
    alphas: dict[int, float] = {}
    kinds = set()
    for step in range(25):
        gain, j, alpha = model.best()
        before = evidence(alphas)
        kinds.add("leave" if np.isinf(alpha) else "change" if j in alphas else "enter")
        new = {k: v for k, v in alphas.items() if k != j} if np.isinf(alpha) else {**alphas, j: alpha}
        assert evidence(new) - before == pytest.approx(gain, rel=1e-5, abs=1e-7)
        if step < 6:  # no other single change on a grid does better
            grid = 10.0 ** np.arange(-3.0, 6.0, 0.5)
            others = [evidence({**alphas, k: a}) - before for k in range(0, 31, 3) for a in grid]
            assert max(others) <= gain + 1e-8
        alphas = new
        model.apply(j, alpha)
        model.refresh()
    assert {"enter", "change"} <= kinds


@pytest.mark.parametrize("noise", [None, 0.01])
def test_evidence_rises_and_equals_the_density_of_the_data(noise):
    x, t, _ = sinc(80)
    T = design(x)
    active, alpha, mu, root, found, trace, _, converged = regression(T, t, noise=noise, tol=1e-4, max_iter=2000)
    sigma = root @ root.T
    assert converged
    assert np.diff(trace).min() >= -1e-9
    C = found * np.eye(80) + (T[active].T / alpha) @ T[active]
    assert trace[-1] == pytest.approx(multivariate_normal(np.zeros(80), C).logpdf(t), rel=1e-8)
    np.testing.assert_allclose(sigma, np.linalg.inv(np.diag(alpha) + T[active] @ T[active].T / found), rtol=1e-6)
    np.testing.assert_allclose(mu, sigma @ T[active] @ t / found, rtol=1e-6)


def test_stationary_point_of_alpha_and_noise():
    x, t, _ = sinc(100)
    T = design(x)
    active, alpha, mu, root, noise, _, _, _ = regression(T, t, noise=None, tol=1e-9, max_iter=5000)
    gamma = 1 - alpha * (root**2).sum(axis=1)
    np.testing.assert_allclose(alpha, gamma / mu**2, rtol=1e-2)  # MacKay's fixed point
    rss = ((t - mu @ T[active]) ** 2).sum()
    assert noise == pytest.approx(rss / (100 - gamma.sum()), rel=1e-3)


def test_logistic_mode_evidence_and_softmax_of_two_classes():
    X, y = ripley(120, 1)
    T, t = design(X, 2.0), y.astype(float)
    active, alpha, mu, root, _, trace, _, converged = logistic(T, t, tol=1e-3, max_iter=500)
    assert converged and np.diff(trace).min() >= 0
    P = T[active]
    p = 1 / (1 + np.exp(-(mu @ P)))
    np.testing.assert_allclose(P @ (t - p), alpha * mu, atol=1e-4)
    H = np.diag(alpha) + (P * (p * (1 - p))) @ P.T
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(H), rtol=1e-5, atol=1e-9)
    value = (t * np.log(p) + (1 - t) * np.log(1 - p)).sum() - 0.5 * alpha @ mu**2
    value += 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(H)[1]
    assert trace[-1] == pytest.approx(value, rel=1e-8)
    # softmax with (−w/2, w/2) and doubled precisions has the same mode as the logistic model
    (low, high), _, _ = softmax_mode([P, P], np.stack([1 - t, t]), [2 * alpha] * 2, [0 * mu] * 2)
    np.testing.assert_allclose(high - low, mu, rtol=1e-4, atol=1e-4)


def climbed(T: np.ndarray, t: np.ndarray, start: list[int], *, learned: bool, whole: bool, **limits: int) -> tuple:
    """What `few_changes` finds from some columns on, with the products of all columns at hand or not."""
    gram = T @ T.T
    known = (np.diagonal(gram).copy(), T @ t, gram[start], np.array(start, dtype=np.intp), np.full(len(start), 0.5))
    rest = (30.0, learned, float(len(t)), 1e-9, 1e-6, limits.get("steps", 2000), limits.get("most", 40))
    return few_changes(T, gram if whole else np.empty((0, 0)), t, *known, *rest)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("start", [[], [3, 17, 18, 40]])
def test_single_changes_are_the_same_in_both_tiers(start, learned, whole):
    x, t, _ = sinc(50)
    T = np.vstack([design(x, gamma=1.0), np.zeros(50), np.ones(50)])  # nothing, and a copy of the constant
    with tier("plain"):
        plain = climbed(T, t, start, learned=learned, whole=whole)
    with tier("compiled"):
        compiled = climbed(T, t, start, learned=learned, whole=whole)
    assert plain[5] and compiled[5]
    assert compiled[0].tolist() == plain[0].tolist() and compiled[4] == plain[4] > 10
    for i in (1, 2, 3):
        np.testing.assert_allclose(compiled[i], plain[i], rtol=1e-6)
    assert set(start) - set(plain[0].tolist()) or not start  # some of the first columns have left
    assert not {0, 52} <= set(plain[0].tolist()) and 51 not in plain[0]


def test_compiled_changes_stop_before_they_need_more_room_and_others_go_on(monkeypatch):
    x, t, _ = sinc(50)
    T = design(x, gamma=4.0)
    with tier("compiled"):
        few = climbed(T, t, [], learned=True, whole=True, most=4)
        whole = climbed(T, t, [], learned=True, whole=True)
        short = climbed(T, t, [], learned=True, whole=True, steps=7)
        assert len(few[0]) == 4 and not few[5] and len(few[3]) == few[4] + 1
        assert short[4] == 7 and not short[5] and len(whole[0]) > 4 and whole[5]
        np.testing.assert_allclose(short[3][:7], whole[3][:7], rtol=1e-9)
        wanted = regression(T, t, noise=None, tol=1e-6, max_iter=2000, n=50)
        monkeypatch.setattr(gramgraph._numerics.rvm.regression, "FEW_ACTIVE", 4)
        found = regression(T, t, noise=None, tol=1e-6, max_iter=2000, n=50)
    assert found[7] and (np.diff(found[5]) > -1e-9).all()
    assert found[0].tolist() == wanted[0].tolist()
    np.testing.assert_allclose(found[1], wanted[1], rtol=0.1)  # the evidence is flat there
    assert found[5][-1] == pytest.approx(wanted[5][-1], rel=1e-6)
    assert regression(T, t, noise=None, tol=1e-6, max_iter=9, n=50)[6] == 9


def test_copies_and_zeros_are_not_distinct():
    rng = np.random.default_rng(0)
    P = rng.normal(size=(150, 160))
    assert distinct(P @ P.T).tolist() == list(range(150))
    P[70], P[140], P[149], P[5] = 3.0 * P[2], -P[130], P[70], 0.0
    assert distinct(P @ P.T).tolist() == [i for i in range(150) if i not in (5, 70, 140, 149)]


# --- where the steps begin ----------------------------------------------------------------------------------------


def test_spread_columns_span_the_matrix_and_leave_copies_out():
    x = np.linspace(-10, 10, 60)[:, None]
    K = rbf_kernel(np.vstack([x, x[::-1]]), gamma=0.125)
    taken = spread(K, 7, rest=1e-8)
    assert taken[0] == 7 and len(np.unique(taken)) == len(taken) < 40
    assert len(np.unique(np.where(taken >= 60, 119 - taken, taken))) == len(taken)
    C = K[np.ix_(taken, taken)]
    rest = K - K[:, taken] @ np.linalg.solve(C, K[taken])
    assert np.abs(np.diag(rest)).max() < 1e-7
    assert len(spread(K, 0, most=5)) == 5
    assert len(spread(-np.eye(3), 0)) == 0  # not positive: nothing to span
    np.testing.assert_array_equal(starters(K, 7), np.arange(120))
    some = starters(K, 7, most=50)
    assert len(np.unique(some)) == 50 and set(taken[:20].tolist()) <= set(some.tolist())


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("noise", [None, 0.01])
def test_a_start_ends_at_a_maximum_too(noise, few):
    x, t, _ = sinc(120, seed=3)
    T = design(x)[1:]
    T -= T.mean(axis=1, keepdims=True)
    t = t - t.mean()
    start = spread(rbf_kernel(x, gamma=0.2), 60) if few else np.arange(120)
    found = regression(T, t, noise=noise, tol=1e-8, max_iter=20_000, start=start, n=119)
    active, alpha, _, _, s2, trace, _, converged = found
    assert converged and (np.diff(trace) >= -1e-9).all()
    # no single change of an α, in or out, raises the evidence of the centered data
    U = np.linalg.svd(np.ones((120, 1)))[0][:, 1:]  # a basis of all contrasts

    def evidence(columns, alphas):
        C = s2 * np.eye(119) + (U.T @ T[columns].T / alphas) @ (T[columns] @ U)
        return float(multivariate_normal(np.zeros(119), C).logpdf(U.T @ t))

    top = evidence(active, alpha)
    assert trace[-1] == pytest.approx(top, rel=1e-9)
    for i in range(len(active)):
        for factor in (0.5, 2.0):
            assert evidence(active, np.where(np.arange(len(active)) == i, factor * alpha, alpha)) < top + 1e-6
        keep = np.arange(len(active)) != i
        assert evidence(active[keep], alpha[keep]) < top + 1e-6
    for j in set(range(0, 120, 7)) - set(active.tolist()):
        for a in 10.0 ** np.arange(-3.0, 4.0):
            assert evidence(np.append(active, j), np.append(alpha, a)) < top + 1e-6


def test_weights_are_repetitions():
    X, y = ripley(60, 2)
    t, times = y.astype(float), np.random.default_rng(0).integers(1, 4, 60)
    T = design(X, 2.0)
    weighted = logistic(T, t, tol=1e-8, max_iter=2000, weights=times.astype(float))
    repeated = logistic(np.repeat(T, times, axis=1), np.repeat(t, times), tol=1e-8, max_iter=2000)
    np.testing.assert_array_equal(weighted[0], repeated[0])
    for i in (1, 2, 3, 5):
        np.testing.assert_allclose(weighted[i], repeated[i], rtol=1e-6, atol=1e-9)
    P, Y = T[weighted[0]], np.stack([1 - t, t])
    parts = [weighted[1]] * 2, [0 * weighted[2]] * 2
    a, root, value = softmax_mode([P, P], Y, *parts, weights=times.astype(float))
    Q = np.repeat(P, times, axis=1)
    b, tau, other = softmax_mode([Q, Q], np.repeat(Y, times, axis=1), *parts)
    np.testing.assert_allclose(np.concatenate(a), np.concatenate(b), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(root, tau, rtol=1e-7, atol=1e-10)
    assert value == pytest.approx(other)
