"""The averaged posterior of relevance vector regression: its parts against brute force, and what it is good for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics.pairwise import rbf_kernel

from gramgraph._numerics.compiling import tier
from gramgraph._numerics.rvm import average as sparse_average
from gramgraph._numerics.rvm.average import averaged, carriers, dense
from gramgraph._numerics.rvm.regression import distinct, regression
from gramgraph.estimators.rvm import RVR
from gramgraph.exceptions import ModelError


def sinc(n: int, seed: int, *, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-10, 10, n))[:, None]
    clean = np.sinc(x[:, 0] / np.pi)
    return x, clean + noise * rng.standard_normal(n), clean


def rmse(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.mark.parametrize("noise", [None, 0.02])
def test_dense_models_are_the_posteriors_of_their_priors(noise: float | None) -> None:
    x, t, _ = sinc(40, 0)
    K = rbf_kernel(x, gamma=0.5)
    values, V = np.linalg.eigh(K)
    inner = values > 1e-10 * values[-1]
    for p, one in zip(sparse_average.POWERS, dense(K, t, np.arange(40), K, noise=noise, n=40.0), strict=True):
        prior = (V[:, inner] * values[inner] ** p) @ V[:, inner].T  # covariance of K w for w ~ N(0, K^(p−2))
        grid = values[-1] ** p * 10.0**sparse_average.RATIOS
        density = []
        for ratio in grid:
            C = prior / ratio + np.eye(40)
            s = float(t @ np.linalg.solve(C, t)) / 40 if noise is None else noise
            density.append(multivariate_normal(np.zeros(40), s * C).logpdf(t))
        assert one.evidence == pytest.approx(max(density), rel=1e-6)
        cover = one.rows.T @ one.root
        shrunk = cover @ cover.T / one.noise  # the smoothing matrix of a Gaussian model is cov f / σ²
        np.testing.assert_allclose(shrunk @ t, one.mean @ one.rows, atol=1e-6)
        assert one.unsure == pytest.approx(np.trace(cover @ cover.T), rel=1e-6)


def test_carriers_come_near_and_no_exchange_is_worth_it() -> None:
    x, _, clean = sinc(60, 1)
    T = rbf_kernel(x, gamma=1 / 8)

    def missed(rows: list[int]) -> float:
        left = clean - T[rows].T @ np.linalg.lstsq(T[rows].T, clean, rcond=None)[0]
        return float(left @ left)

    goal = 1e-3 * float(clean @ clean)
    chosen = carriers(T, clean, np.array([0, 1]), miss=goal, most=20).tolist()
    assert missed(chosen) <= goal and chosen == sorted(set(chosen))
    for i in range(len(chosen)):
        rest = chosen[:i] + chosen[i + 1 :]
        assert missed(rest) > goal  # none is needless
        for j in set(range(60)) - set(chosen):
            assert missed([*rest, j]) > 0.99 * missed(chosen)
    assert len(carriers(T, clean, np.array([0, 1]), miss=0.0, most=4)) <= 4


def test_moments_are_those_of_the_mixture_on_the_chosen_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    x, t, _ = sinc(50, 2)
    T = rbf_kernel(x, gamma=1 / 8)
    shares = np.array([0.4, 0.1, 0.2, 0.0, 0.3])
    monkeypatch.setattr(sparse_average, "_shares", lambda *_: shares)
    found = regression(T, t, noise=None, tol=1e-4, max_iter=500, start=np.arange(50))
    chosen, alpha, mu, root, *_ = averaged(T, t, np.arange(50), T, found, noise=None, n=50.0)
    sigma = root @ root.T
    active, _, mu_0, root_0, *_ = found
    B = np.linalg.pinv(T[chosen].T)
    parts = [(mu_0 @ T[active], T[active].T @ root_0 @ root_0.T @ T[active])]
    for one in dense(T, t, np.arange(50), T, noise=None, n=50.0):
        cover = one.rows.T @ one.root
        parts.append((one.mean @ one.rows, cover @ cover.T))
    mean = sum(a * m for a, (m, _) in zip(shares, parts, strict=True))
    second = sum(a * (C + np.outer(m, m)) for a, (m, C) in zip(shares, parts, strict=True))
    np.testing.assert_allclose(mu, B @ mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(sigma, B @ (second - np.outer(mean, mean)) @ B.T, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(alpha, 1.0 / (mu**2 + np.diag(sigma)))


def test_functions_of_few_columns_are_left_to_the_evidence() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-10, 10, 200))[:, None]
    clean = 3.0 * rbf_kernel(x, x[[20, 90, 160]], gamma=20.0).sum(axis=1)
    y = clean + 0.2 * rng.standard_normal(200)
    sparse, both = (RVR(gamma=20.0, average=average).fit(x, y) for average in (False, True))
    assert rmse(both.predict(x), clean) < 1.02 * rmse(sparse.predict(x), clean)
    assert len(both.relevance_) <= len(sparse.relevance_)


def test_error_vectors_and_intervals_over_seeds() -> None:
    errors, vectors, inside = [], [], []
    for seed in range(25):
        x, t, clean = sinc(100, seed)
        sparse, both = (RVR(gamma=1 / 8, average=average).fit(x, t) for average in (False, True))
        mean, std = both.predict(x, return_std=True)
        errors.append([rmse(mean, clean), rmse(sparse.predict(x), clean)])
        vectors.append(len(both.relevance_))
        fresh = clean + 0.1 * np.random.default_rng(1000 + seed).standard_normal(100)
        inside.append(np.mean(np.abs(fresh - mean) < 1.645 * std))
    ours, sparse_only = np.mean(errors, axis=0)
    assert ours < 0.99 * sparse_only
    assert np.mean(vectors) < 8.0
    assert 0.86 < np.mean(inside) < 0.94


def test_columns_that_are_nearly_copies_are_not_carried_together() -> None:
    """Their weights would be of the size 1e6 and cancel, and the standard deviations drown in rounding."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-10, 10, (600, 1))
    y = np.sinc(x[:, 0] / np.pi) + 0.1 * rng.standard_normal(600)
    for order in (np.arange(600), rng.permutation(600)):
        rvr = RVR(gamma=1 / 8).fit(x[order], y[order])
        _, std = rvr.predict(x, return_std=True)
        assert np.abs(rvr.mu_).max() < 100.0
        assert std.min() > 0.1 and std.max() < 0.11
    T = rbf_kernel(np.array([[0.0], [1e-4], [3.0]]), np.linspace(-5, 5, 40)[:, None], gamma=0.5)
    assert len(sparse_average.independent(T)) == 2 and 2 in sparse_average.independent(T)


@pytest.mark.parametrize("n", [120, 600])
def test_order_of_the_points_does_not_matter(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.uniform(-10, 10, (n, 1))
    y = np.sinc(x[:, 0] / np.pi) + 0.1 * rng.standard_normal(n)
    order = rng.permutation(n)
    a, b = RVR(gamma=1 / 8).fit(x, y), RVR(gamma=1 / 8).fit(x[order], y[order])
    np.testing.assert_array_equal(np.sort(order[b.relevance_]), a.relevance_)
    for mine, other in zip(a.predict(x, return_std=True), b.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e9, 1e150])
@pytest.mark.parametrize("average", [True, False])
def test_units_of_y_do_not_matter(scale: float, average: bool) -> None:
    x, y, _ = sinc(60, 5)
    one, other = (RVR(gamma=1 / 8, average=average).fit(x, factor * y) for factor in (1.0, scale))
    np.testing.assert_array_equal(one.relevance_, other.relevance_)
    for a, b in zip(one.predict(x, return_std=True), other.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(a, b / scale, rtol=1e-8, atol=1e-8)  # rounding counts against the size of y
    shift = 59.0 * np.log(scale)  # a density in other units; the intercept takes one of the sixty
    assert other.evidence_[-1] == pytest.approx(one.evidence_[-1] - shift, rel=1e-8)
    one, other = (RVR(gamma=1 / 8, average=average, noise=0.01 * f**2).fit(x, f * y) for f in (1.0, scale))
    np.testing.assert_allclose(one.predict(x), other.predict(x) / scale, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("scale", [2.0**-330, 2.0**330])
def test_units_of_the_kernel_do_not_matter(scale: float) -> None:
    x, y, _ = sinc(60, 6)
    K = rbf_kernel(x, gamma=1 / 8)
    one, other = (RVR(kernel="precomputed").fit(factor * K, y) for factor in (1.0, scale))
    for a, b in zip(one.predict(K, return_std=True), other.predict(scale * K, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    assert other.evidence_[-1] == pytest.approx(one.evidence_[-1], rel=1e-8)


def test_values_whose_squares_leave_the_floats_are_refused() -> None:
    x, y, _ = sinc(20, 7)
    with pytest.raises(ModelError, match="targets.*range of floats"):
        RVR().fit(x, 1e200 * y)
    with pytest.raises(ModelError, match="kernel's values.*range of floats"):
        RVR(kernel="precomputed").fit(1e200 * rbf_kernel(x), y)


@pytest.mark.parametrize("gamma", [0.02, 0.125, 0.5])
def test_without_noise_the_average_is_not_worse_than_the_evidence(gamma: float) -> None:
    x = np.linspace(-10, 10, 100)[:, None]
    for clean in (np.sinc(x[:, 0] / np.pi), (x[:, 0] / 10) ** 3):
        with tier("plain"):  # without noise rounding is what is left: it must not change between the two
            sparse, both = (RVR(gamma=gamma, average=average).fit(x, clean) for average in (False, True))
        assert rmse(both.predict(x), clean) <= 1.05 * rmse(sparse.predict(x), clean)


def test_a_point_whose_column_is_zero_does_not_shut_out_the_others() -> None:
    rng = np.random.default_rng(8)
    x = np.vstack([np.zeros(2), rng.normal(size=(40, 2))])  # the linear kernel's column of the first point is zero
    y = x @ [1.0, -2.0] + 0.1 * rng.standard_normal(41)
    np.testing.assert_array_equal(distinct(np.diag([0.0, 1.0, 2.0])), [1, 2])
    rvr = RVR(kernel="linear").fit(x, y)
    assert 0 not in rvr.relevance_ and len(rvr.relevance_) == 2
    np.testing.assert_allclose(rvr.predict(np.eye(2)), [1.0, -2.0], atol=0.1)


def test_weights_are_repeats_and_zeros_are_left_out() -> None:
    x, y, _ = sinc(80, 9)
    weights = np.random.default_rng(9).integers(0, 4, 80)
    repeated = np.repeat(np.arange(80), weights)
    heavy = RVR(gamma=1 / 8).fit(x, y, sample_weight=weights).predict(x, return_std=True)
    for other in (
        RVR(gamma=1 / 8).fit(x[repeated], y[repeated]),
        RVR(gamma=1 / 8).fit(x[weights > 0], y[weights > 0], sample_weight=weights[weights > 0]),
    ):
        for a, b in zip(heavy, other.predict(x, return_std=True), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-8)


def test_average_is_a_choice() -> None:
    with pytest.raises(ValueError, match="average"):
        RVR(average="no").fit(np.arange(6.0)[:, None], np.arange(6.0))  # type: ignore[arg-type]
