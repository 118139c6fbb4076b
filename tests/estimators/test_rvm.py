"""Relevance vector machines: formulas against brute force, worked sets, scikit-learn's contract, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1
from sklearn.linear_model import ARDRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramgraph._numerics.compiling import tier
from gramgraph.estimators.rvm import RVC, RVR
from gramgraph.exceptions import ModelError
from gramgraph.kernels import RBF


def sinc(n: int, *, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.linspace(-10, 10, n)[:, None]
    clean = np.sinc(x[:, 0] / np.pi)
    return x, clean + noise * np.random.default_rng(seed).standard_normal(n), clean


def ripley(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, each a mixture of two Gaussians of variance 0.03 (Bayes error about 8 %)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    centers = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centers[y, rng.integers(0, 2, n)] + np.sqrt(0.03) * rng.standard_normal((n, 2)), y


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
    assert rmse < 58.5  # the standard deviation of y is 77; the comparison with ARDRegression stands in benchmarks/


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


def test_evidence_is_the_density_of_the_data_with_a_free_intercept():
    x, t, _ = sinc(60)
    rvr = RVR(kernel=RBF(length_scale=2.0), average=False).fit(x, t)
    K = rbf_kernel(x, gamma=1 / 8)[:, rvr.relevance_]
    assert rvr.alpha_[0] == 0.0 and rvr.fits_[0].bias
    wide = 1e4  # a normal prior of this variance, its own density at 0 divided out
    C = rvr.noise_ * np.eye(60) + K / rvr.alpha_[1:] @ K.T + wide
    value = multivariate_normal(np.zeros(60), C).logpdf(t) + 0.5 * np.log(2 * np.pi * wide)
    assert rvr.evidence_[-1] == pytest.approx(value, rel=1e-4)
    Phi = np.column_stack([np.ones(60), K])
    H = np.diag(rvr.alpha_) + Phi.T @ Phi / rvr.noise_
    np.testing.assert_allclose(rvr.sigma_, np.linalg.inv(H), rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(rvr.mu_, rvr.sigma_ @ Phi.T @ t / rvr.noise_, rtol=1e-6, atol=1e-8)


def test_shift_of_y_moves_the_intercept_only():
    x, t, _ = sinc(80)
    a, b = RVR().fit(x, t), RVR().fit(x, t + 1000.0)
    np.testing.assert_array_equal(a.relevance_, b.relevance_)
    np.testing.assert_allclose(a.predict(x) + 1000.0, b.predict(x), rtol=1e-9)
    through_zero = RVR(bias=False).fit(x, t)
    assert not through_zero.fits_[0].bias and len(through_zero.mu_) == len(through_zero.relevance_)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_interpreted_and_compiled_loops_choose_the_same_columns(seed: int, average: bool) -> None:
    """Nearly equal columns, random and equidistant: last digits of the kernel must not decide which of them stay."""
    n = (60, 80, 200)[seed % 3]
    rng = np.random.default_rng(seed)
    x = np.linspace(-10, 10, n)[:, None] if seed < 3 else rng.uniform(-10, 10, (n, 1))
    t = np.sinc(x[:, 0] / np.pi) + 0.1 * rng.standard_normal(n)
    with tier("plain"):
        plain = RVR(average=average).fit(x, t)
    with tier("compiled"):
        compiled = RVR(average=average).fit(x, t)
    assert plain.relevance_.tolist() == compiled.relevance_.tolist()
    np.testing.assert_allclose(plain.predict(x), compiled.predict(x), atol=1e-6)
    assert plain.evidence_[-1] == pytest.approx(compiled.evidence_[-1], abs=1e-6)


@pytest.mark.slow
def test_many_seeds_against_ard():
    # Twelve sets: the mean error is not above ARDRegression's, with a tenth of the columns.
    ours, theirs, vectors, columns = [], [], [], []
    for seed in range(12):
        x, t, clean = sinc(100, seed=seed)
        rvr = RVR(gamma=1 / 8).fit(x, t)
        K = rbf_kernel(x, gamma=1 / 8)
        ard = ARDRegression().fit(K, t)
        ours.append(np.sqrt(np.mean((rvr.predict(x) - clean) ** 2)))
        theirs.append(np.sqrt(np.mean((ard.predict(K) - clean) ** 2)))
        vectors.append(len(rvr.relevance_))
        columns.append((ard.coef_ != 0).sum())
    assert np.mean(ours) <= np.mean(theirs)
    assert 10 * np.mean(vectors) <= 1.2 * np.mean(columns)


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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("make", [lambda **k: RVR(kernel=RBF(1.5), **k), lambda **k: RVC(kernel=RBF(1.5), **k)])
def test_weights_are_repetitions(make, bias):
    rng = np.random.default_rng(1)
    x = rng.uniform(-4, 4, size=(50, 1))
    y = np.sin(x[:, 0]) + 0.2 * rng.standard_normal(50)
    model = make(bias=bias)
    y = (y > 0.1).astype(int) if isinstance(model, RVC) else y
    times = rng.integers(0, 4, 50)
    weighted = make(bias=bias).fit(x, y, sample_weight=times)
    repeated = make(bias=bias).fit(np.repeat(x, times, axis=0), np.repeat(y, times))
    assert (times[weighted.relevance_] > 0).all()
    new = np.linspace(-4, 4, 21)[:, None]
    look = (lambda m: m.decision_function(new)) if isinstance(model, RVC) else (lambda m: m.predict(new))
    np.testing.assert_allclose(look(weighted), look(repeated), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.evidence_[-1], repeated.evidence_[-1], rtol=1e-8)
    K = RBF(1.5).gram(x)
    given = type(model)(kernel="precomputed", bias=bias).fit(K, y, sample_weight=times)
    np.testing.assert_array_equal(given.relevance_, weighted.relevance_)
    given_new = given.predict(RBF(1.5).gram(new, x))
    np.testing.assert_allclose(given_new, weighted.predict(new), rtol=1e-6, atol=1e-7)


def test_weights_three_classes_and_scale_of_the_kernel():
    X, y = load_iris(return_X_y=True)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    a = RVC().fit(X, y, sample_weight=times)
    b = RVC().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert a.kernel_.value.length_scale == pytest.approx(b.kernel_.value.length_scale, rel=1e-12)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    x, t, _ = sinc(60)
    table = {"x": x[:, 0], "z": np.cos(x[:, 0])}
    frame, matrix = frames.DataFrame(table), np.column_stack(list(table.values()))
    for y, model in ((t, RVR), (np.where(t > 0.1, "yes", "no"), RVC)):
        named = model(kernel=RBF(2.0)).fit(frame, frames.Series("y", y) if library == "polars" else frames.Series(y))
        plain = model(kernel=RBF(2.0)).fit(matrix, y)
        assert named.feature_names_in_.tolist() == ["x", "z"]
        np.testing.assert_array_equal(named.relevance_, plain.relevance_)
        np.testing.assert_array_equal(named.predict(frame), plain.predict(matrix))
    mixed = RVR(kernel=RBF(2.0).on(0) + RBF(1.0).on(1)).fit(frame, t)
    assert np.sqrt(np.mean((mixed.predict(frame) - t) ** 2)) < 0.15


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
    with pytest.warns(UserWarning, match="max_iter=1"):
        RVR(max_iter=1).fit(*make_friedman1(60, random_state=0))
    with pytest.warns(UserWarning, match="max_iter=2"):
        RVC(max_iter=2).fit(*ripley(60, 0))


@pytest.mark.parametrize("model", [RVR(), RVC()], ids=["RVR", "RVC"])
class TestBadInput:
    """NaN, one class, constant features, one point, copies, matrices that are not positive definite."""

    @staticmethod
    def targets(model, n, seed=0):
        t = np.random.default_rng(seed).standard_normal(n)
        return (t > 0).astype(int) if isinstance(model, RVC) else t

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_a_number(self, model, value):
        X = np.random.default_rng(0).normal(size=(12, 2))
        y = self.targets(model, 12)
        X[3, 1] = value
        with pytest.raises(ValueError, match="NaN|infinity"):
            clone(model).fit(X, y)
        with pytest.raises(ValueError, match="NaN|infinity"):
            clone(model).fit(np.nan_to_num(X, posinf=0.0), np.where(np.arange(12) == 3, value, y))
        fitted = clone(model).fit(np.nan_to_num(X, posinf=0.0), y)
        with pytest.raises(ValueError, match="NaN|infinity"):
            fitted.predict(X)
        with pytest.raises(ValueError, match="NaN|infinity|non-negative|sample_weight"):
            clone(model).fit(np.nan_to_num(X, posinf=0.0), y, sample_weight=np.where(np.arange(12) == 3, value, 1.0))

    def test_one_value_of_y(self, model):
        X = np.random.default_rng(0).normal(size=(12, 2))
        if isinstance(model, RVC):
            with pytest.raises(ModelError, match="one class"):
                clone(model).fit(X, np.zeros(12))
            with pytest.raises(ModelError, match="one class"):
                clone(model).fit(X, np.arange(12) == 3, sample_weight=np.arange(12) != 3)
        else:
            fitted = clone(model).fit(X, np.full(12, 2.5))
            np.testing.assert_allclose(fitted.predict(X), 2.5)
            assert len(fitted.relevance_) == 0

    def test_constant_features(self, model):
        X, y = np.ones((14, 3)), self.targets(model, 14)
        fitted = clone(model).fit(X, y)
        if isinstance(model, RVC):
            p = fitted.predict_proba(np.ones((1, 3)))[0, 1]
            assert p == pytest.approx(y.mean(), abs=0.12)
        else:
            mean, std = fitted.predict(np.ones((1, 3)), return_std=True)
            assert mean[0] == pytest.approx(y.mean()) and std[0] == pytest.approx(y.std(ddof=1), rel=0.1)
        half = np.column_stack([np.linspace(-1, 1, 14), np.ones(14)])  # one constant column beside a real one
        assert np.isfinite(clone(model).fit(half, self.targets(model, 14)).predict(half)).all()

    def test_one_point(self, model):
        with pytest.raises(ValueError, match="1 sample|n_samples = 1|one class"):
            clone(model).fit([[1.0]], [1])
        with pytest.raises(ValueError, match="n_samples = 1"):
            clone(model).fit([[1.0], [2.0]], [0, 1], sample_weight=[1.0, 0.0])
        two = clone(model).fit([[0.0], [1.0]], [0, 1])
        assert np.isfinite(two.predict([[0.5]])).all()

    def test_copies_of_points(self, model):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(20, 2))
        y = (X[:, 0] > 0).astype(int) if isinstance(model, RVC) else X[:, 0] + 0.1 * rng.standard_normal(20)
        fitted = clone(model).fit(np.vstack([X] * 4), np.tile(y, 4))
        assert len(np.unique(fitted.relevance_ % 20)) == len(fitted.relevance_) <= 20
        assert np.isfinite(fitted.predict(X)).all() and fitted.score(X, y) > 0.8
        clash = clone(model).fit(np.zeros((10, 1)), self.targets(model, 10))  # equal points, different targets
        assert np.isfinite(clash.predict(np.zeros((1, 1)))).all()

    def test_a_matrix_that_is_not_positive_definite(self, model):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 2))
        y = (X[:, 0] > 0).astype(int) if isinstance(model, RVC) else X[:, 0]
        K = np.tanh(X @ X.T - 1.0)  # columns are only features: the model does not need them to be positive definite
        assert np.linalg.eigvalsh(K)[0] < -0.1
        fitted = clone(model).set_params(kernel="precomputed").fit(K, y)
        assert np.isfinite(fitted.predict(K)).all() and fitted.score(K, y) > 0.7
        clone(model).set_params(kernel="precomputed").fit(-np.eye(30), y)
        with pytest.raises(ModelError, match="square"):
            clone(model).set_params(kernel="precomputed").fit(K[:, :20], y)
        with pytest.raises(ModelError, match="symmetric"):
            clone(model).set_params(kernel="precomputed").fit(np.triu(K), y)

    def test_values_of_the_kernel_that_are_not_finite(self, model):
        with pytest.raises(ModelError, match="not finite"):
            clone(model).set_params(kernel=lambda A, B: np.full((len(A), len(B)), np.inf)).fit(
                np.arange(6.0)[:, None], self.targets(model, 6)
            )

    def test_weights(self, model):
        X, y = np.arange(6.0)[:, None], self.targets(model, 6)
        with pytest.raises(ValueError, match="zero"):
            clone(model).fit(X, y, sample_weight=np.zeros(6))
        with pytest.raises(ValueError, match="[Nn]egative|non-negative"):
            clone(model).fit(X, y, sample_weight=-np.ones(6))


CONTRACT = [RVR(), RVC()]


@parametrize_with_checks(CONTRACT)
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


@pytest.mark.parametrize("seed", range(6))
def test_classes_away_from_the_origin_are_parted_by_a_line(seed) -> None:
    """No column of a linear kernel helps without the constant there."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(3, 0.4, 10), rng.normal(5, 0.4, 10)])[:, None]
    labels = np.repeat([0, 1], 10)
    model = RVC("linear").fit(x, labels)
    assert model.score(x, labels) >= 0.95


def test_standard_deviations_keep_their_digits_where_weights_cancel():
    x = np.linspace(-3, 3, 40)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.01 * np.random.default_rng(0).normal(size=40)
    rvr = RVR(gamma=0.02, noise=1e-4, average=False).fit(x, y)
    assert np.abs(rvr.sigma_).max() > 1e12  # products with it would be off by more than the noise
    K = rbf_kernel(x, x[rvr.relevance_], gamma=0.02)
    F = (K - K.mean(axis=0)) / 0.01
    R = np.linalg.qr(np.vstack([F, np.diag(np.sqrt(rvr.alpha_[1:]))]), mode="r")
    spread = np.sum(np.linalg.solve(R.T, (K - K.mean(axis=0)).T) ** 2, axis=0)
    np.testing.assert_allclose(rvr.predict(x, return_std=True)[1], np.sqrt(1e-4 + 1e-4 / 40 + spread), rtol=1e-5)


@pytest.mark.parametrize("make", [RVR, RVC])
def test_of_equal_columns_the_first_is_taken(make):
    rng = np.random.default_rng(3)
    x = np.tile(rng.normal(size=(15, 2)), (3, 1))
    y = np.tile(x[:15, 0], 3) + 0.1 * rng.normal(size=45)
    model = make(kernel="precomputed").fit(RBF().gram(x), y if make is RVR else y > 0)
    assert len(model.relevance_) > 1 and model.relevance_.max() < 15


@pytest.mark.parametrize("gamma", [0.5, 0.04])
def test_last_digits_of_a_kernel_decide_nothing_where_all_points_are_far(gamma):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(10, 25))
        y, K = X[:, :3].sum(axis=1), rbf_kernel(X, gamma=gamma)
        near = K * (1.0 + 2e-16 * rng.integers(-1, 2, K.shape))
        one, other = (RVR(kernel="precomputed").fit((G + G.T) / 2, y) for G in (K, near))
        np.testing.assert_array_equal(one.relevance_, other.relevance_)
        np.testing.assert_allclose(one.predict(K), other.predict(K), rtol=1e-6, atol=1e-7)
        assert one.noise_ == pytest.approx(other.noise_, rel=1e-5)


def test_a_file_of_an_earlier_version_holds_no_root():
    from gramgraph.io.values import from_parts, to_parts

    x, t, _ = sinc(50)
    rvr = RVR(gamma=1 / 8).fit(x, t)
    tree, arrays = to_parts(rvr)
    for fit in tree["fields"]["fits_"]:
        del fit["fields"]["root"]
    old = from_parts(tree, arrays)
    for mine, other in zip(rvr.predict(x, return_std=True), old.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


@pytest.mark.parametrize("average", [True, False])
def test_landmarks_are_drawn_once_also_where_digits_were_lost(average):
    x = np.linspace(0, 1, 200)[:, None]
    y = np.sin(2 * np.pi * x[:, 0])
    state = np.random.RandomState(0)
    drawn = RVR(gamma=20.0, basis=30, average=average, random_state=state).fit(x, y)
    np.testing.assert_allclose(drawn.predict(x), y, atol=1e-3)
    again = RVR(gamma=20.0, basis=30, average=average, random_state=0).fit(x, y)
    np.testing.assert_array_equal(drawn.relevance_, again.relevance_)
