"""Relevance vector machines: formulas against brute force, worked sets, scikit-learn's contract, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import ARDRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramgraph._numerics.sparse_bayes import Posterior, logistic, regression, softmax_mode
from gramgraph.estimators.rvm import RVC, RVR
from gramgraph.exceptions import ModelError
from gramgraph.kernels import RBF


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
    active, alpha, mu, sigma, found, trace, _, converged = regression(T, t, noise=noise, tol=1e-4, max_iter=2000)
    assert converged
    assert np.diff(trace).min() >= -1e-9
    C = found * np.eye(80) + (T[active].T / alpha) @ T[active]
    assert trace[-1] == pytest.approx(multivariate_normal(np.zeros(80), C).logpdf(t), rel=1e-8)
    np.testing.assert_allclose(sigma, np.linalg.inv(np.diag(alpha) + T[active] @ T[active].T / found), rtol=1e-6)
    np.testing.assert_allclose(mu, sigma @ T[active] @ t / found, rtol=1e-6)


def test_stationary_point_of_alpha_and_noise():
    x, t, _ = sinc(100)
    T = design(x)
    active, alpha, mu, sigma, noise, _, _, _ = regression(T, t, noise=None, tol=1e-9, max_iter=5000)
    gamma = 1 - alpha * np.diag(sigma)
    np.testing.assert_allclose(alpha, gamma / mu**2, rtol=1e-2)  # MacKay's fixed point
    rss = ((t - mu @ T[active]) ** 2).sum()
    assert noise == pytest.approx(rss / (100 - gamma.sum()), rel=1e-3)


def test_logistic_mode_evidence_and_softmax_of_two_classes():
    X, y = ripley(120, 1)
    T, t = design(X, 2.0), y.astype(float)
    active, alpha, mu, sigma, _, trace, _, converged = logistic(T, t, tol=1e-3, max_iter=500)
    assert converged and np.diff(trace).min() >= 0
    P = T[active]
    p = 1 / (1 + np.exp(-(mu @ P)))
    np.testing.assert_allclose(P @ (t - p), alpha * mu, atol=1e-4)
    H = np.diag(alpha) + (P * (p * (1 - p))) @ P.T
    np.testing.assert_allclose(sigma, np.linalg.inv(H), rtol=1e-5, atol=1e-9)
    value = (t * np.log(p) + (1 - t) * np.log(1 - p)).sum() - 0.5 * alpha @ mu**2
    value += 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(H)[1]
    assert trace[-1] == pytest.approx(value, rel=1e-8)
    # softmax with (−w/2, w/2) and doubled precisions has the same mode as the logistic model
    (low, high), _, _ = softmax_mode([P, P], np.stack([1 - t, t]), [2 * alpha] * 2, [0 * mu] * 2)
    np.testing.assert_allclose(high - low, mu, rtol=1e-4, atol=1e-4)


# --- worked sets --------------------------------------------------------------------------------------------------


def test_sinc_against_ard_on_the_same_columns():
    x, t, clean = sinc(200)
    rvr = RVR(kernel=RBF(length_scale=2.0)).fit(x, t)
    ours = np.sqrt(np.mean((rvr.predict(x) - clean) ** 2))
    K = rbf_kernel(x, gamma=1 / 8)
    ard = ARDRegression().fit(K, t)
    theirs = np.sqrt(np.mean((ard.predict(K) - clean) ** 2))
    assert ours < 0.03 and ours <= 1.05 * theirs
    assert len(rvr.relevance_) <= min(12, (np.abs(ard.coef_) > 0).sum())
    assert np.sqrt(rvr.noise_) == pytest.approx(0.1, rel=0.15)
    mean, std = rvr.predict(x, return_std=True)
    features = np.column_stack([np.ones(200)] * rvr.fits_[0].bias + [K[:, rvr.relevance_]])
    np.testing.assert_allclose(mean, features @ rvr.mu_, atol=1e-9)
    np.testing.assert_allclose(std**2, rvr.noise_ + np.diag(features @ rvr.sigma_ @ features.T), rtol=1e-8)
    assert 0.9 < np.mean(np.abs(t - mean) < 1.96 * std) <= 1.0


def test_diabetes():
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    kernel = RBF(length_scale=5.0)
    model = make_pipeline(StandardScaler(), RVR(kernel=kernel)).fit(X_train, y_train)
    rmse = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    assert len(model[1].relevance_) < 15
    assert rmse < 58.0  # the standard deviation of y is 77; the comparison with ARDRegression stands in benchmarks/


def test_ripley_like_classes():
    X, y = ripley(250, 0)
    X_test, y_test = ripley(2000, 1)
    rvc = RVC(kernel=RBF(length_scale=0.5)).fit(X, y)
    assert rvc.score(X_test, y_test) > 0.88
    assert len(rvc.relevance_) < 12
    p = rvc.predict_proba(X_test)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-rvc.decision_function(X_test))), rtol=1e-9)
    np.testing.assert_array_equal(rvc.predict(X_test), p.argmax(1))


def test_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = make_pipeline(StandardScaler(), RVC()).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.94
    assert len(model[1].relevance_) < 30


def test_three_classes_by_softmax():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    rvc = RVC().fit(X, names)
    assert rvc.score(X, names) > 0.95
    a, p = rvc.decision_function(X), rvc.predict_proba(X)
    np.testing.assert_allclose(p, np.exp(a) / np.exp(a).sum(1, keepdims=True), rtol=1e-9)
    for k, fit in enumerate(rvc.fits_):  # the joint mode: the gradient of the log posterior vanishes
        features = rvc._features(rvc._columns(X), fit)
        np.testing.assert_allclose(features.T @ ((y == k) - p[:, k]), fit.alpha * fit.mu, atol=1e-3)


# --- options ------------------------------------------------------------------------------------------------------


def test_precomputed_function_and_value_agree():
    x, t, _ = sinc(60)
    kernel = RBF(length_scale=2.0)
    new = np.linspace(-9, 9, 17)[:, None]
    expected = RVR(kernel=kernel).fit(x, t).predict(new)
    K = kernel.gram(x)
    given = RVR(kernel="precomputed").fit(K, t).predict(kernel.gram(new, x))
    by_function = RVR(kernel=lambda A, B: rbf_kernel(A, B, gamma=1 / 8)).fit(x, t).predict(new)
    np.testing.assert_allclose(given, expected, atol=1e-8)
    np.testing.assert_allclose(by_function, expected, atol=1e-6)
    part = RVR(kernel=kernel, basis=20, random_state=3).fit(x, t)
    same = RVR(kernel="precomputed", basis=20, random_state=3).fit(K, t)
    np.testing.assert_array_equal(part.relevance_, same.relevance_)
    np.testing.assert_allclose(part.predict(new), same.predict(kernel.gram(new, x)), atol=1e-7)


def test_landmarks_keep_memory_small_and_fit_well():
    x, t, clean = sinc(2000)
    sizes = []

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        sizes.append(len(A) * len(B))
        return rbf_kernel(A, B, gamma=1 / 8)

    rvr = RVR(kernel=kernel, basis=60, random_state=0).fit(x, t)
    assert max(sizes) == 60 * 2000
    assert np.sqrt(np.mean((rvr.predict(x) - clean) ** 2)) < 0.03


def test_several_outputs_are_separate_fits():
    x, t, clean = sinc(80)
    kernel = RBF(length_scale=2.0)
    both = RVR(kernel=kernel).fit(x, np.column_stack([t, 100 * x[:, 0] + t]))
    for k, y in enumerate((t, 100 * x[:, 0] + t)):
        one = RVR(kernel=kernel).fit(x, y)
        mean, std = one.predict(x, return_std=True)
        means, stds = both.predict(x, return_std=True)
        np.testing.assert_allclose(means[:, k], mean, atol=1e-7 * np.abs(mean).max())
        np.testing.assert_allclose(stds[:, k], std, rtol=1e-6)
        np.testing.assert_array_equal(both.fits_[k].relevance, one.relevance_)


def test_scale_of_y_does_not_matter():
    x, t, _ = sinc(80)
    a, b = RVR().fit(x, t), RVR().fit(x, 1e6 * t)
    np.testing.assert_array_equal(a.relevance_, b.relevance_)
    np.testing.assert_allclose(1e6 * a.predict(x), b.predict(x), rtol=1e-5, atol=1.0)


def test_grid_search_over_the_kernel():
    x, t, _ = sinc(60)
    search = GridSearchCV(RVR(kernel=RBF(1.0)), {"kernel__length_scale": [0.1, 2.0]}, cv=3)
    order = np.random.default_rng(0).permutation(60)
    assert search.fit(x[order], t[order]).best_params_ == {"kernel__length_scale": 2.0}


def test_words():
    from gramgraph.kernels import Spectrum

    words = ["aab", "aaab", "baa", "bbba", "abab", "bbb"] * 3
    y = np.array([w.count("a") / len(w) for w in words])
    rvr = RVR(kernel=Spectrum(1)).fit(words, y)
    assert rvr.relevance_vectors_[0] in words
    np.testing.assert_allclose(rvr.predict(["aab"]), rvr.predict(words)[:1])


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 3.0, -1e5])
def test_constant_y_is_predicted(value):
    x = np.linspace(0, 1, 20)[:, None]
    rvr = RVR().fit(x, np.full(20, value))
    np.testing.assert_allclose(rvr.predict(x), value, rtol=1e-3, atol=1e-12)
    assert np.isfinite(rvr.predict(x, return_std=True)[1]).all()


def test_no_noise_and_duplicates():
    x, _, clean = sinc(50)
    rvr = RVR(kernel=RBF(2.0)).fit(np.vstack([x, x, x]), np.tile(clean, 3))
    assert np.abs(rvr.predict(x) - clean).max() < 1e-2
    assert len(np.unique(rvr.relevance_ % 50)) == len(rvr.relevance_)
    X, y = ripley(60, 0)
    assert RVC(gamma=2.0).fit(np.vstack([X, X]), np.tile(y, 2)).score(X, y) > 0.8
    assert np.isfinite(RVR().fit(np.ones((10, 2)), np.arange(10.0)).predict(np.ones((1, 2)))).all()


def test_separable_classes_stay_finite():
    X = np.r_[np.linspace(-3, -1, 20), np.linspace(1, 3, 20)][:, None]
    rvc = RVC().fit(X, np.repeat([0, 1], 20))
    assert rvc.score(X, np.repeat([0, 1], 20)) == 1.0 and np.isfinite(rvc.mu_).all()


def test_errors_say_what_helps():
    x, t, _ = sinc(20)
    with pytest.raises(ValueError, match="NaN"):
        RVR().fit(np.full((5, 1), np.nan), np.ones(5))
    with pytest.raises(ValueError, match="NaN"):
        RVR().fit(x, np.full(20, np.nan))
    with pytest.raises(ModelError, match="one class"):
        RVC().fit(x, np.zeros(20))
    with pytest.raises(ValueError, match="1 sample"):
        RVR().fit([[1.0]], [1.0])
    for bad in ({"tol": 0.0}, {"max_iter": 0}, {"basis": "some"}, {"noise": -1.0}, {"noise": "lern"}, {"bias": "no"}):
        with pytest.raises(ModelError, match=next(iter(bad))):
            RVR(**bad).fit(x, t)
    with pytest.raises(ModelError, match="symmetric"):
        RVR(kernel="precomputed").fit(np.triu(np.ones((20, 20))), t)
    with pytest.warns(UserWarning, match="max_iter=2"):
        RVR(max_iter=2).fit(x, t)


@parametrize_with_checks([RVR(), RVC()])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_picture():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from gramgraph.plot.rvm import plot_rvc, plot_rvr

    x, t, _ = sinc(50)
    rvr = RVR().fit(x, t)
    ax = plot_rvr(rvr, x, t)
    rings = [c for c in ax.collections if c.get_label() == f"{len(rvr.relevance_)} relevance vectors"]
    np.testing.assert_allclose(np.sort(rings[0].get_offsets()[:, 0]), np.sort(x[rvr.relevance_, 0]))
    X, y = ripley(80, 0)
    rvc = RVC().fit(X, y)
    assert plot_rvc(rvc, X, y).get_legend() is not None
    with pytest.raises(ModelError, match="one column"):
        plot_rvr(RVR().fit(X, y), X, y)
    with pytest.raises(ModelError, match="two columns"):
        plot_rvc(RVC().fit(x, t > 0), x, t > 0)
