"""Relevance vector regression with next to no noise: weights cancel, and the evidence is still the one of the data."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gramgraph._numerics.compiling import tier
from gramgraph._numerics.rvm import careful
from gramgraph._numerics.rvm.few_changes import few_changes
from gramgraph._numerics.rvm.posterior import Posterior
from gramgraph.estimators.rvm import RVR
from gramgraph.kernels import RBF


def data(n: int = 200, *, seed: int = 0, noise: float = 0.1, wave: bool = False) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).uniform(-5, 5, (n, 1))
    clean = np.sin(X[:, 0]) if wave else np.sinc(X[:, 0])
    return X, clean + noise * np.random.default_rng(seed + 1).normal(size=n)


def decimals(values: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda v: Decimal(float(v)), otypes=[object])(values)


def direct(K: np.ndarray, alpha: np.ndarray, noise: float, y: np.ndarray, bias: bool) -> float:
    """log N(y | 0, σ²I + Φ diag(α)⁻¹ Φᵀ), an intercept integrated out, in 60 digits: floats lose all of theirs."""
    with localcontext() as context:
        context.prec = 60
        P, t, a, beta = decimals(K), decimals(y), decimals(alpha), 1 / Decimal(float(noise))
        if bias:
            P, t = P - P.sum(axis=0) / len(t), t - t.sum() / len(t)
        A, h = beta * P.T.dot(P), beta * P.T.dot(t)
        A.ravel()[:: len(a) + 1] += a
        logdet = explained = Decimal(0)
        for k in range(len(a)):  # Gauss
            pivot = A[k, k]
            logdet, explained = logdet + pivot.ln() - a[k].ln(), explained + h[k] ** 2 / pivot
            ratio = A[k + 1 :, k] / pivot
            A[k + 1 :, k + 1 :] -= np.multiply.outer(ratio, A[k, k + 1 :])
            h[k + 1 :] -= ratio * h[k]
        free = len(t) - int(bias)
        density = free * (Decimal(2 * np.pi) / beta).ln() + logdet + beta * t.dot(t) - explained
        return -0.5 * float(density) - (0.5 * np.log(len(t)) if bias else 0.0)


def check(model: RVR, X: np.ndarray, y: np.ndarray) -> None:
    K = model.kernel_.gram(X, X[model.relevance_])
    value = direct(K, model.alpha_[-K.shape[1] :], model.noise_, y, model.bias)
    assert model.fits_[0].converged
    assert (np.diff(model.evidence_) >= 0.0).all()
    rounding = 1e-14 * np.abs(model.mu_).max()  # what the last digits of the kernel's values weigh
    assert rounding < 1e-4
    assert model.evidence_[-1] == pytest.approx(value, rel=max(1e-6, rounding))


def fit(X: np.ndarray, y: np.ndarray, width: float, **options: object) -> RVR:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return RVR(RBF(width), average=False, **options).fit(X, y)


@pytest.mark.parametrize("name", ["plain", "compiled"])
@pytest.mark.parametrize("noise", [1e-4, 1e-3, 1e-2, 0.1, "learn"])
def test_evidence_is_that_of_the_data_and_never_falls(noise: float | str, name: str) -> None:
    with tier(name):
        for width, bias, seed in [(0.5, True, 0), (1.9, True, 0), (2.0, False, 0), (2.05, True, 0), (2.05, False, 3)]:
            X, y = data(seed=seed)
            check(fit(X, y, width, noise=noise, bias=bias), X, y)


@pytest.mark.parametrize("name", ["plain", "compiled"])
@pytest.mark.parametrize("n", [60, 200])
def test_next_to_no_noise(n: int, name: str) -> None:
    with tier(name):
        X, y = data(n, noise=0.01)
        check(fit(X, y, 2.05, noise=1e-4), X, y)
        for noise in (0.0, 1e-5, 1e-3):
            X, y = data(n, noise=noise, wave=True)
            check(fit(X, y, 2.05, bias=False), X, y)


def test_updates_do_not_throw_a_fit_about_where_the_noise_is_learned() -> None:
    rng = np.random.default_rng(500)
    X = rng.uniform(-5, 5, (500, 1))
    y = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=500)
    model = fit(X, y, 2.04)
    check(model, X, y)
    inner = np.linspace(-4.5, 4.5, 100)[:, None]
    assert np.sqrt(np.mean((model.predict(inner) - np.sinc(inner[:, 0])) ** 2)) < 0.05


@pytest.mark.parametrize(("width", "noise"), [(2.05, 1e-3), (1.9, 1e-2), (2.0, 1e-4), (0.5, 1e-4)])
def test_tiers_give_the_same_model(width: float, noise: float) -> None:
    X, y = data()
    models = []
    for name in ("plain", "compiled"):
        with tier(name):
            models.append(fit(X, y, width, noise=noise))
    one, other = models
    np.testing.assert_array_equal(one.relevance_, other.relevance_)
    assert one.evidence_[-1] == pytest.approx(other.evidence_[-1], rel=1e-6)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-4)


def test_no_single_change_of_a_precision_helps() -> None:
    X, y = data()
    model = fit(X, y, 2.05, noise=1e-3)
    K, alpha = RBF(2.05).gram(X, X[model.relevance_]), model.alpha_[1:]
    top = direct(K, alpha, 1e-3, y, True)
    for i in range(len(alpha)):
        for factor in (0.5, 2.0):
            changed = np.where(np.arange(len(alpha)) == i, factor * alpha, alpha)
            assert direct(K, changed, 1e-3, y, True) < top + 2e-4
        keep = np.arange(len(alpha)) != i
        assert direct(K[:, keep], alpha[keep], 1e-3, y, True) < top + 2e-4


@pytest.mark.parametrize("name", ["plain", "compiled"])
def test_loops_tell_of_lost_digits(name: str) -> None:
    X, y = data()
    T = RBF(2.05).gram(X, X)
    active = np.arange(0, 200, 10)
    known = (T, T @ T.T, y, (T**2).sum(axis=1), T @ y, T[active] @ T.T, active)
    with tier(name):
        for noise, lost in [(1.0, False), (1e-9, True)]:
            rest = (np.full(20, 1.0), 1.0 / noise, False, 200.0, 1e-12, 1e-4, 50, 64)
            assert few_changes(*known, *rest)[-1] == lost


def test_exact_numbers_are_those_of_the_updates_on_easy_columns() -> None:
    X, y = data(50)
    T = RBF(0.5).gram(X, X)
    active, alpha, beta = [3, 20, 41], np.array([0.5, 1.0, 2.0]), 20.0
    usual = Posterior(T, (T**2).sum(axis=1), T @ y, beta)
    usual.hold(T[active] @ T.T, active, alpha)
    F, z, rest = careful.coordinates(T, y)
    np.testing.assert_allclose(F @ F.T, T @ T.T, atol=1e-11)
    exact = careful._Exact(F, z, rest, beta, active, alpha)
    for name in ("S", "Q", "mu", "sigma"):
        np.testing.assert_allclose(getattr(exact, name), getattr(usual, name), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(exact.twins, usual.twins)
    np.testing.assert_allclose(exact.look(None, beta, 50.0)[:3], usual.look(y, beta, 50.0)[:3], rtol=1e-10)


def test_many_nearly_equal_columns_without_noise() -> None:
    """Columns span as many dimensions as there are cases, and pairs of them differ in the fourth digit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-5, 5, (80, 3))
    X[40:] = X[:40] + 1e-3 * rng.normal(size=(40, 3))
    y = np.sin(X[:, 0])
    check(fit(X, y, 1.0, noise=1e-8), X, y)


def test_careful_changes_end_where_they_may_take_no_more_steps() -> None:
    X, y = data()
    T = RBF(0.5).gram(X, X)
    start = np.arange(0, 200, 25)
    F, z, rest = careful.coordinates(T, y)
    for steps in (7, 0):
        found = careful.careful_changes(F, z, rest, start, np.ones(8), 1e3, 200.0, 1e-9, True, 1e-7, steps)
        assert found[6] == steps and not found[7] and len(found[5]) <= steps + 1
        assert (np.diff(found[5]) >= 0.0).all()
    found = careful.careful_changes(F, z, rest, start[:0], np.empty(0), 1e3, 200.0, 1e-9, True, 1e-4, 5000)
    assert found[7] and len(found[0]) > 3


def test_too_many_dimensions_end_where_digits_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the fit says so; made with care it would take minutes."""
    monkeypatch.setattr(careful, "MOST", 8)
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="where rounding took over"):
        model = RVR(RBF(2.05), noise=0.001, average=False).fit(X, y)
    trace = np.asarray(model.evidence_)
    assert np.isfinite(trace).all() and np.isfinite(model.predict(X)).all()
    assert (np.diff(trace) >= -1e-6 * (200.0 + np.abs(trace[:-1]))).all()
