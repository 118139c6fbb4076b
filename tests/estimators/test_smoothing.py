"""Kernel regression, densities and neighbors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn import neighbors

from gramgraph import kernels
from gramgraph._numerics.compiling import tier
from gramgraph.estimators import KernelDensity, KernelNeighborsClassifier, KernelNeighborsRegressor, NadarayaWatson
from gramgraph.exceptions import ModelError


def draw(rng: np.random.Generator, n: int = 60, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_nadaraya_watson_is_its_formula_for_names_values_and_matrices(rng: np.random.Generator) -> None:
    X, y = draw(rng)
    new = rng.normal(size=(5, 2))
    K = np.exp(-0.5 * cdist(new, X, "sqeuclidean") / 0.3**2)
    expected = K @ y / K.sum(axis=1)
    np.testing.assert_allclose(NadarayaWatson(0.3).fit(X, y).predict(new), expected, rtol=1e-10)
    by_value = NadarayaWatson(0.3, kernel=kernels.RBF(1.0)).fit(X, y)
    np.testing.assert_allclose(by_value.predict(new), expected, rtol=1e-8)
    own = np.exp(-0.5 * cdist(X, X, "sqeuclidean") / 0.3**2)
    np.testing.assert_allclose(NadarayaWatson(kernel="precomputed").fit(own, y).predict(K), expected, rtol=1e-10)


def test_local_lines_are_weighted_least_squares(rng: np.random.Generator) -> None:
    X, y = draw(rng)
    Y = np.stack([y, X[:, 1] ** 2], axis=1)
    w = rng.uniform(0.5, 2.0, size=60)
    new = rng.normal(size=(5, 2))
    found = NadarayaWatson(0.6, degree=1).fit(X, Y, sample_weight=w).predict(new)
    for x, row in zip(new, found, strict=True):
        root = np.sqrt(w * np.exp(-0.5 * ((X - x) ** 2).sum(axis=1) / 0.6**2))[:, None]
        beta = np.linalg.lstsq(root * np.hstack([np.ones((60, 1)), X - x]), root * Y, rcond=None)[0]
        np.testing.assert_allclose(row, beta[0], atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1])
def test_leave_one_out_is_what_refits_give_and_the_choice_is_its_minimum(rng: np.random.Generator, degree: int) -> None:
    X, y = draw(rng, n=40)
    model = NadarayaWatson(degree=degree).fit(X, y)

    def refits(h: float) -> float:
        errors = []
        for i in range(40):
            rest = np.arange(40) != i
            errors.append(y[i] - NadarayaWatson(h, degree=degree).fit(X[rest], y[rest]).predict(X[i : i + 1])[0])
        return float(np.mean(np.square(errors)))

    assert model.loo_error_ == pytest.approx(refits(model.bandwidth_), rel=1e-8)
    assert model.loo_error_ < refits(model.bandwidth_ * 1.5)
    assert model.loo_error_ < refits(model.bandwidth_ / 1.5)


def test_far_away_and_degenerate_points_are_answered(rng: np.random.Generator) -> None:
    X, y = draw(rng)
    far = NadarayaWatson(0.01).fit(X, y).predict([[1e4, 0.0]])
    assert far[0] == pytest.approx(y[X[:, 0].argmax()], rel=1e-6)
    assert NadarayaWatson(0.01, kernel=kernels.RBF(1.0)).fit(X, y).predict([[1e4, 0.0]])[0] == pytest.approx(y.mean())
    for degree in (0, 1):
        same = NadarayaWatson(degree=degree).fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0])
        assert same.predict([[1.0, 1.0]])[0] == pytest.approx(3.0)
        assert NadarayaWatson(degree=degree).fit([[1.0]], [5.0]).predict([[7.0]])[0] == pytest.approx(5.0)
    with pytest.raises(ModelError, match="k ≥ 0"):
        NadarayaWatson(1.0, kernel="linear").fit([[1.0], [-1.0]], [0.0, 1.0]).predict([[1.0]])
    with pytest.raises(ModelError, match="degree must be one of"):
        NadarayaWatson(degree=2).fit(X, y)
    with pytest.raises(ModelError, match="bandwidth must be a positive number"):
        NadarayaWatson(0.0).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        NadarayaWatson().fit([[np.nan], [1.0]], [0.0, 1.0])


SHAPES = ["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"]


@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_density_agrees_with_scikit_learn(rng: np.random.Generator, kernel: str, d: int) -> None:
    X, new = rng.normal(size=(80, d)), 1.5 * rng.normal(size=(60, d))
    w = rng.uniform(0.1, 2.0, size=80)
    ours = KernelDensity(0.8, kernel=kernel).fit(X, sample_weight=w)
    theirs = neighbors.KernelDensity(bandwidth=0.8, kernel=kernel, rtol=1e-12).fit(X, sample_weight=w)
    a, b = ours.score_samples(new), theirs.score_samples(new)
    if kernel == "cosine" and d == 2:  # theirs integrates to 2/π / (2/π − 4/π²) there
        b += np.log(1.0 / (1.0 - 2.0 / np.pi))
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_bandwidth_rules_agree_with_scikit_learn(rng: np.random.Generator, rule: str) -> None:
    X = 7.0 * rng.normal(size=(100, 2))
    assert KernelDensity(rule).fit(X).bandwidth_ == pytest.approx(
        neighbors.KernelDensity(bandwidth=rule).fit(X).bandwidth_, rel=1e-12
    )


def test_the_reference_rule_follows_the_unit(rng: np.random.Generator) -> None:
    X = rng.normal(size=(100, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    h = KernelDensity("silverman").fit(X).bandwidth_
    assert KernelDensity("normal_reference").fit(1000.0 * X).bandwidth_ == pytest.approx(1000.0 * h, rel=1e-9)


@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_densities_of_other_distances_integrate_to_one(kernel: str, metric: str) -> None:
    model = KernelDensity(0.7, kernel=kernel, metric=metric).fit([[0.0, 0.0], [0.5, 1.0]])
    axis = np.linspace(-12.0, 12.0, 481)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert np.exp(model.score_samples(grid)).sum() * 0.05**2 == pytest.approx(1.0, abs=0.02)
    draws = np.abs(model.sample(20_000, random_state=0) - [0.25, 0.5])
    weights = np.exp(model.score_samples(grid))
    assert draws.sum(axis=1).mean() == pytest.approx(
        weights @ np.abs(grid - [0.25, 0.5]).sum(axis=1) / weights.sum(), rel=0.03
    )


@pytest.mark.parametrize("tolerance", [{"rtol": 1e-4}, {"atol": 1e-3}, {"rtol": 1e-9}, {}])
def test_a_tolerance_is_kept_in_the_tails_too(rng: np.random.Generator, tolerance: dict[str, float]) -> None:
    X = rng.normal(size=(500, 2))
    new = np.concatenate([rng.normal(size=(300, 2)), 10.0 * rng.normal(size=(50, 2)), [[300.0, 0.0]]])
    found = KernelDensity(0.3, **tolerance).fit(X).score_samples(new)
    squares = ((new[:, None] - X) ** 2).sum(axis=-1) / 0.3**2
    exact = logsumexp(-0.5 * squares, axis=1) - np.log(500 * 2 * np.pi * 0.3**2)
    error = np.abs(np.expm1(found - exact))
    assert np.all((error <= tolerance.get("rtol", 1e-9)) | (error * np.exp(exact) <= tolerance.get("atol", 0.0)))


def test_points_far_apart_and_cells_without_number(rng: np.random.Generator) -> None:
    X = np.concatenate([rng.normal(size=(50, 3)), 1e12 + rng.normal(size=(50, 3))])
    found = KernelDensity(1.0, kernel="linear").fit(X).score_samples(X)
    exact = neighbors.KernelDensity(bandwidth=1.0, kernel="linear").fit(X).score_samples(X)
    np.testing.assert_allclose(found, exact, rtol=1e-3)


def test_density_integrates_to_one_and_loo_likelihood_is_at_its_top(rng: np.random.Generator) -> None:
    X = np.concatenate([rng.normal(-2, 0.3, size=60), rng.normal(2, 0.6, size=40)])[:, None]
    grid = np.linspace(-8, 8, 4001)[:, None]
    for kernel in SHAPES:
        model = KernelDensity(kernel=kernel).fit(X)
        mass = np.exp(model.score_samples(grid)).sum() * (grid[1, 0] - grid[0, 0])
        assert mass == pytest.approx(1.0, abs=5e-3)
    model = KernelDensity().fit(X)

    def refits(h: float) -> float:
        rest = [np.arange(100) != i for i in range(100)]
        return float(np.mean([KernelDensity(h).fit(X[r]).score_samples(X[~r])[0] for r in rest]))

    assert model.loo_score_ == pytest.approx(refits(model.bandwidth_), rel=1e-9)
    assert model.loo_score_ > max(refits(model.bandwidth_ * 1.3), refits(model.bandwidth_ / 1.3))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "tophat"])
def test_samples_follow_the_density(kernel: str) -> None:
    """Mean and variance of 40,000 draws, each within five standard errors (false alarms below 1e-5 a test)."""
    model = KernelDensity(0.5, kernel=kernel).fit([[0.0, 0.0], [4.0, 0.0]], sample_weight=[3.0, 1.0])
    draws = model.sample(40_000, random_state=0)
    own = {"gaussian": 1.0, "epanechnikov": 1 / 6, "tophat": 1 / 4}[kernel] * 0.25  # variance of one axis in 2-D
    assert draws[:, 0].mean() == pytest.approx(1.0, abs=5 * np.sqrt((3.0 + own) / 40_000))
    assert draws[:, 1].var() == pytest.approx(own, abs=5 * own * np.sqrt(3.0 / 40_000))


def test_density_of_degenerate_data() -> None:
    assert np.isfinite(KernelDensity().fit([[3.0]]).score_samples([[3.0]])).all()
    assert np.isfinite(KernelDensity().fit(np.ones((5, 2))).score_samples([[1.0, 1.0]])).all()
    assert KernelDensity(0.1, kernel="tophat").fit([[0.0]]).score_samples([[5.0]])[0] == -np.inf
    with pytest.raises(ModelError, match="Did you mean 'gaussian'"):
        KernelDensity(kernel="gausian").fit([[0.0]])
    with pytest.raises(ValueError, match="NaN"):
        KernelDensity().fit([[np.nan]])


# --- neighbors ----------------------------------------------------------------------------------------------------


def test_the_order_that_a_density_keeps_follows_points_bandwidth_and_shape(rng: np.random.Generator) -> None:
    X, other, new = rng.normal(size=(300, 3)), rng.normal(size=(200, 3)) + 1.0, rng.normal(size=(40, 3))

    def brute(points: np.ndarray, h: float, kernel: str) -> np.ndarray:
        with np.errstate(divide="ignore"):  # one point at a time, and by distances to all points
            return np.concatenate([KernelDensity(h, kernel=kernel).fit(points).score_samples(x[None]) for x in new])

    model = KernelDensity(0.8, kernel="cosine").fit(X)
    first, few = model.score_samples(new), model.score_samples(new[:3])
    np.testing.assert_allclose(first, brute(X, 0.8, "cosine"), rtol=1e-9)
    np.testing.assert_allclose(few, first[:3], rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) < 2 * X.nbytes  # the order is not kept in files
    np.testing.assert_array_equal(again.score_samples(new), first)
    model.set_params(kernel="linear")
    np.testing.assert_allclose(model.score_samples(new), brute(X, 0.8, "linear"), rtol=1e-9)
    model.set_params(bandwidth=1.3).fit(X)
    np.testing.assert_allclose(model.score_samples(new), brute(X, 1.3, "linear"), rtol=1e-9)
    np.testing.assert_allclose(model.fit(other).score_samples(new), brute(other, 1.3, "linear"), rtol=1e-9)


def test_linear_kernel_neighbors_are_euclidean_neighbors(rng: np.random.Generator) -> None:
    X, y = draw(rng)
    new = rng.normal(size=(20, 2))
    for weights in ("uniform", "distance"):
        ours = KernelNeighborsRegressor(4, kernel="linear", weights=weights).fit(X, y)
        theirs = neighbors.KNeighborsRegressor(4, weights=weights).fit(X, y)
        np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-6)
        np.testing.assert_allclose(ours.kneighbors(new)[0], theirs.kneighbors(new)[0], rtol=1e-6)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)  # distance zero: the point itself
        labels = np.where(y > 0, "up", "down")
        some = KernelNeighborsClassifier(4, kernel="linear", weights=weights).fit(X, labels)
        other = neighbors.KNeighborsClassifier(4, weights=weights).fit(X, labels)
        np.testing.assert_allclose(some.predict_proba(new), other.predict_proba(new), atol=1e-6)
        assert (some.predict(new) == other.predict(new)).all()


def test_kernel_distance_is_the_distance_of_features() -> None:
    """(xᵀx′)² on the plane has features (a², b², √2 ab)."""
    X, new = np.array([[1.0, 0.0], [0.5, 0.5], [-1.0, 0.1]]), np.array([[-0.9, 0.0]])

    def phi(P: np.ndarray) -> np.ndarray:
        return np.stack([P[:, 0] ** 2, P[:, 1] ** 2, 2**0.5 * P[:, 0] * P[:, 1]], axis=1)

    model = KernelNeighborsRegressor(3, kernel="poly", gamma=1.0, degree=2, coef0=0.0).fit(X, [0.0, 1.0, 2.0])
    distances, numbers = model.kneighbors(new)
    full = cdist(phi(new), phi(X))[0]
    np.testing.assert_allclose(distances[0], np.sort(full), atol=1e-12)
    assert numbers[0].tolist() == np.argsort(full).tolist()


def test_the_bandwidth_does_not_hang_on_how_weights_underflow() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.standard_t(1, size=(150, 2)), rng.normal(size=150)
    found = []
    for name in ("plain", "compiled"):
        with tier(name):
            found.append(NadarayaWatson(kernel=kernels.Matern(nu=1.5)).fit(X, y).bandwidth_)
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    for distance in (400.0, 406.0, 412.0, 1e6):  # all below 1e-290
        model = NadarayaWatson(1.0, kernel=kernels.Matern(nu=1.5)).fit([[0.0], [1.0]], [0.0, 1.0])
        assert model.predict([[-distance]])[0] == 0.5


def test_of_neighbors_at_equal_distances_the_earlier_comes_first() -> None:
    """Also where rounding tells distances of points on a grid apart."""
    rng = np.random.default_rng(3)
    X, Z = rng.integers(0, 5, size=(80, 3)).astype(float), rng.integers(0, 5, size=(30, 3)).astype(float)
    y = rng.normal(size=80)
    expected = np.argsort(cdist(Z, X, "sqeuclidean"), axis=1, kind="stable")
    for k in (1, 5, 80):
        for name in ("plain", "compiled"):
            with tier(name):
                model = KernelNeighborsRegressor(k, kernel="rbf").fit(X, y)
                distances, numbers = model.kneighbors(Z)
                np.testing.assert_array_equal(numbers, expected[:, :k])
                assert (np.diff(distances**2, axis=1) > -1e-12).all()
                np.testing.assert_allclose(model.predict(Z), y[expected[:, :k]].mean(axis=1), atol=1e-12)


def test_neighbors_of_words_and_of_matrices(rng: np.random.Generator) -> None:
    words = ["abab", "abba", "cdcd", "dcdc"]
    model = KernelNeighborsClassifier(1, kernel=kernels.Spectrum(2).normalized()).fit(words, [0, 0, 1, 1])
    assert model.predict(["ababab", "dcdcd"]).tolist() == [0, 1]
    X, y = draw(rng)
    k = kernels.Matern(nu=1.5)
    expected = KernelNeighborsRegressor(3, kernel=k).fit(X[:50], y[:50]).predict(X[50:])
    by_matrix = KernelNeighborsRegressor(3, kernel="precomputed").fit(k.gram(X[:50]), y[:50])
    np.testing.assert_allclose(by_matrix.predict(k.gram(X[50:], X[:50])), expected, rtol=1e-12)
    with pytest.raises(ModelError, match="n_neighbors"):
        KernelNeighborsRegressor(0).fit(X, y)
    assert KernelNeighborsClassifier(5).fit([[0.0]], ["only"]).predict([[3.0]])[0] == "only"


@pytest.mark.parametrize("kernel", ["tophat", "epanechnikov", "linear", "cosine"])
@pytest.mark.parametrize("h", [1e-16, 1e-20, 1e-100])
def test_every_point_is_near_itself_however_small_the_bandwidth(kernel: str, h: float) -> None:
    """Also where the next number is more than a bandwidth away, and however many points are asked at once."""
    X = np.random.default_rng(0).normal(size=(100, 1))
    model = KernelDensity(h, kernel=kernel).fit(X)
    found = model.score_samples(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:5], model.score_samples(X[:5]))
