"""Kernel ridge regression against brute force and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import kernel_ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramgraph import kernels
from gramgraph.estimators import KernelRidge
from gramgraph.exceptions import GramGraphError, ModelError


def draw(rng: np.random.Generator, n: int = 40, d: int = 3, t: int = 2) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d))
    return X, np.sin(X @ rng.normal(size=(d, t))) + 0.1 * rng.normal(size=(n, t))


@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_agrees_with_scikit_learn(rng: np.random.Generator, name: str) -> None:
    X, Y = draw(rng)
    options = {"kernel": name, "gamma": 0.3, "degree": 2, "coef0": 1.5}
    ours = KernelRidge(0.7, **options).fit(X[:30], Y[:30])
    theirs = kernel_ridge.KernelRidge(alpha=0.7, **options).fit(X[:30], Y[:30])
    np.testing.assert_allclose(ours.predict(X[30:]), theirs.predict(X[30:]), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-8, atol=1e-10)


def test_weights_and_one_penalty_a_target_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    X, Y = draw(rng)
    w = rng.uniform(0.1, 3.0, size=len(X))
    alpha = np.array([0.1, 2.0])
    ours = KernelRidge(alpha, gamma=0.3).fit(X, Y, sample_weight=w)
    theirs = kernel_ridge.KernelRidge(alpha=alpha, kernel="rbf", gamma=0.3).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-8, atol=1e-10)


@given(seed=st.integers(0, 10_000), alpha=st.floats(1e-3, 1e2), weighted=st.booleans())
def test_leave_one_out_is_what_refits_give(seed: int, alpha: float, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X, Y = draw(rng, n=12, t=1)
    w = rng.uniform(0.2, 2.0, size=12) if weighted else np.ones(12)
    w[3] = 0.0 if weighted else 1.0
    model = KernelRidge(alpha, gamma=0.4).fit(X, Y[:, 0], sample_weight=w)
    expected = []
    for i in range(12):
        rest = np.arange(12) != i
        left = KernelRidge(alpha, gamma=0.4).fit(X[rest], Y[rest, 0], sample_weight=w[rest])
        expected.append(Y[i, 0] - left.predict(X[i : i + 1])[0])
    np.testing.assert_allclose(model.loo_residuals_, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.loo_errors_, np.square(expected), rtol=1e-6, atol=1e-9)
    path = model.path([alpha])
    used = w > 0
    np.testing.assert_allclose(path.loo_residuals[used, 0, 0], np.array(expected)[used], rtol=1e-6, atol=1e-8)


def test_the_path_is_what_refits_give_and_loo_chooses_along_it(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=50)
    alphas = np.logspace(-4, 2, 13)
    path = KernelRidge(gamma=0.3).fit(X, Y).path(alphas)
    assert path.dual_coefs.shape == (50, 2, 13)
    refits = [KernelRidge(a, gamma=0.3).fit(X, Y) for a in alphas]
    for j, refit in enumerate(refits):
        np.testing.assert_allclose(path.dual_coefs[:, :, j], refit.dual_coef_, rtol=1e-7, atol=1e-9)
        assert path.loo_errors[j] == pytest.approx(refit.loo_errors_.mean(), rel=1e-7)
    chosen = KernelRidge("loo", gamma=0.3, alphas=alphas).fit(X, Y)
    assert chosen.alpha_ == alphas[np.argmin([refit.loo_errors_.mean() for refit in refits])]
    assert 1e-4 < chosen.alpha_ < 1e2
    assert (np.diff(path.degrees_of_freedom) < 0).all()


def test_nystrom_with_all_landmarks_is_the_exact_answer_and_blocks_change_nothing(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=300)
    w = rng.integers(0, 3, size=300).astype(float)
    exact = KernelRidge(0.5, gamma=0.3).fit(X, Y, sample_weight=w)
    full = KernelRidge(0.5, gamma=0.3, approx="nystrom", n_components=300).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(full.predict(X), exact.predict(X), atol=1e-6)
    blocks = KernelRidge(0.5, gamma=0.3, approx="nystrom", n_components=150, random_state=0)
    blocks.partial_fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    rough = np.abs(blocks.predict(X) - KernelRidge(0.5, gamma=0.3).fit(X, Y).predict(X)).mean()
    assert rough < 0.01
    one = KernelRidge(0.5, gamma=0.3, approx="nystrom", n_components=300, random_state=0).partial_fit(X, Y)
    np.testing.assert_allclose(one.predict(X), KernelRidge(0.5, gamma=0.3).fit(X, Y).predict(X), atol=1e-6)
    again = KernelRidge(0.5, gamma=0.3, approx="nystrom", n_components=150, random_state=0).fit(X, Y)
    again.partial_fit(X, Y)  # the same rows twice: half the penalty
    half = KernelRidge(0.25, gamma=0.3, approx="nystrom", n_components=150, random_state=0).fit(X, Y)
    np.testing.assert_allclose(again.predict(X), half.predict(X), atol=1e-8)


def test_sums_of_kernel_columns_are_taken_where_they_keep_their_digits(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=400, d=6)
    w = rng.uniform(0.5, 2.0, size=400)
    kinds = []
    for gamma in (0.5, 0.003, 3e-4):
        model = KernelRidge(0.5, gamma=gamma, approx="nystrom", n_components=50, random_state=0).fit(X, Y, w)
        kinds.append((model._model.plain_error(400, 0.5) < 1e-3, model._model.rough))
        Phi = model.features_.transform(X)
        primal = np.linalg.solve(Phi.T @ (w[:, None] * Phi) + 0.5 * np.eye(Phi.shape[1]), Phi.T @ (w[:, None] * Y))
        np.testing.assert_allclose(model.predict(X), Phi @ primal, atol=1e-9)
    assert kinds == [(True, False), (True, True), (False, False)]  # sums as they are, refined, of the features


def weights_for(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 3, size=n).astype(float)


@pytest.mark.parametrize("approx", ["nystrom", "features"])
def test_leave_one_out_of_features_is_what_refits_give(rng: np.random.Generator, approx: str) -> None:
    X, Y = draw(rng, n=30)
    w = rng.uniform(0.3, 2.0, size=30)
    options = {"gamma": 0.3, "approx": approx, "n_components": 12, "landmarks": X[::3], "random_state": 0}
    alphas = np.array([0.05, 0.5, 5.0])
    model = KernelRidge("loo", alphas=alphas, **options).fit(X, Y, sample_weight=w)
    expected = []
    for alpha in alphas:
        errors = []
        for i in range(30):
            rest = np.arange(30) != i
            left = KernelRidge(alpha, **options).fit(X[rest], Y[rest], sample_weight=w[rest])
            errors.append(((Y[i] - left.predict(X[i : i + 1])[0]) ** 2).mean())
        expected.append(np.average(errors, weights=w))
    np.testing.assert_allclose(model.alpha_scores_, expected, rtol=1e-7)
    assert model.alpha_ == alphas[np.argmin(expected)]
    same = KernelRidge(model.alpha_, **options).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-9)


def test_generalized_cross_validation_by_its_formula_in_all_modes(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=60)
    alphas = np.logspace(-3, 1, 5)
    exact = KernelRidge("gcv", gamma=0.3, alphas=alphas).fit(X, Y)
    K = kernels.RBF(length_scale=1.0 / np.sqrt(0.6)).gram(X)
    expected = []
    for alpha in alphas:
        H = K @ np.linalg.inv(K + alpha * np.eye(60))
        expected.append(60 * ((Y - H @ Y) ** 2).sum(axis=0).mean() / (60 - np.trace(H)) ** 2)
    np.testing.assert_allclose(exact.alpha_scores_, expected, rtol=1e-7)
    full = KernelRidge("gcv", gamma=0.3, alphas=alphas, approx="nystrom", n_components=60).fit(X, Y)
    np.testing.assert_allclose(full.alpha_scores_, expected, rtol=1e-5)
    assert full.alpha_ == exact.alpha_ == alphas[np.argmin(expected)]
    # blocks in turn, and weights as repetitions, change nothing
    w = weights_for(rng, 60)
    stream = KernelRidge("gcv", gamma=0.3, alphas=alphas, approx="nystrom", landmarks=X[:20])
    stream.partial_fit(X[:25], Y[:25], w[:25]).partial_fit(X[25:], Y[25:], w[25:])
    again = np.repeat(np.arange(60), w.astype(int))
    whole = KernelRidge("gcv", gamma=0.3, alphas=alphas, approx="nystrom", landmarks=X[:20]).fit(X[again], Y[again])
    np.testing.assert_allclose(stream.alpha_scores_, whole.alpha_scores_, rtol=1e-7)
    np.testing.assert_allclose(stream.predict(X), whole.predict(X), atol=1e-8)


def test_threads_and_memory_maps_give_the_same_model(rng: np.random.Generator, tmp_path: Any) -> None:
    X, Y = draw(rng, n=3000)
    stored = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=X.shape)
    stored[:] = X
    options = {"gamma": 0.3, "approx": "nystrom", "n_components": 60, "random_state": 0}
    one = KernelRidge(0.5, **options).fit(X, Y)
    two = KernelRidge(0.5, n_jobs=2, **options).fit(stored, Y)
    np.testing.assert_allclose(two.predict(stored), one.predict(X), atol=1e-8)
    blocks = KernelRidge(0.5, **{**options, "landmarks": one.features_.landmarks})
    for i in range(0, 3000, 700):
        blocks.partial_fit(stored[i : i + 700], Y[i : i + 700])
    np.testing.assert_allclose(blocks.predict(X), one.predict(X), atol=1e-7)


def test_predictions_through_landmarks_are_those_of_the_features(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=400)
    for gamma, direct in ((0.3, True), (1e-5, False)):  # almost flat: weights of landmarks would cancel
        model = KernelRidge(1e-6, gamma=gamma, approx="nystrom", n_components=80, random_state=0).fit(X, Y)
        assert (model._expansion is not None) == direct
        np.testing.assert_allclose(model.predict(X), model.features_.transform(X) @ model.coef_, atol=1e-7)


def test_redundant_landmarks_are_left_out(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=500, d=1)
    model = KernelRidge(1e-3, gamma=0.05, approx="nystrom", n_components=300, random_state=0).fit(X, Y)
    assert model.features_.rank == len(model.features_.landmarks) < 40
    exact = KernelRidge(1e-3, gamma=0.05).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-6)


def test_random_features_come_near(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=300)
    exact = KernelRidge(1.0, gamma=0.3).fit(X, Y)
    near = KernelRidge(1.0, gamma=0.3, approx="features", n_components=2000, random_state=0).fit(X, Y)
    assert np.abs(near.predict(X) - exact.predict(X)).max() < 0.15
    assert near.coef_.shape[1] == 2


def test_grid_search_over_kernel_parameters_by_name(rng: np.random.Generator) -> None:
    X, Y = draw(rng, n=60, t=1)
    model = KernelRidge(0.1, kernel=2.0 * kernels.RBF(length_scale=1.0) + kernels.White(0.1))
    names = [name for name in model.get_params() if name.endswith("length_scale")]
    assert len(names) == 1
    search = GridSearchCV(model, {names[0]: [0.01, 1.5, 100.0], "alpha": [1e-3, 0.1]}, cv=3).fit(X, Y[:, 0])
    assert search.best_params_[names[0]] == 1.5
    assert model.get_params()[names[0]] == 1.0
    plain = KernelRidge(kernel=kernels.RBF(length_scale=1.0)).set_params(kernel__length_scale=3.0)
    assert plain.kernel.length_scale == 3.0
    with pytest.raises(ModelError, match="Did you mean 'length_scale'"):
        plain.set_params(kernel__lenght_scale=3.0)
    with pytest.raises(ValueError, match="names a field of a kernel value"):
        KernelRidge().set_params(kernel__length_scale=3.0)


def test_kernel_values_functions_and_matrices_say_the_same(rng: np.random.Generator) -> None:
    X, Y = draw(rng)
    k = kernels.RBF(length_scale=1.3)
    expected = KernelRidge(0.5, kernel=k).fit(X, Y).predict(X[:7])
    by_function = KernelRidge(0.5, kernel=lambda A, B: k.gram(A, B)).fit(X, Y).predict(X[:7])
    matrix = k.gram(X)
    kept = matrix.copy()
    by_matrix = KernelRidge(0.5, kernel="precomputed").fit(matrix, Y).predict(k.gram(X[:7], X))
    np.testing.assert_allclose(by_function, expected, rtol=1e-10)
    np.testing.assert_allclose(by_matrix, expected, rtol=1e-10)
    KernelRidge("loo", kernel="precomputed").fit(matrix, Y)
    assert np.array_equal(matrix, kept)


def test_points_that_are_words() -> None:
    words = ["abab", "abba", "cdcd", "dcdc", "abcd"]
    model = KernelRidge(0.1, kernel=kernels.Spectrum(2)).fit(words, [0.0, 0.0, 1.0, 1.0, 0.5])
    low, high = model.predict(["ababab", "cdcdcd"])
    assert low < 0.3 and high > 0.7


def test_frames_and_pipelines(rng: np.random.Generator) -> None:
    X, Y = draw(rng, t=1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), KernelRidge(0.1)).fit(frame, Y[:, 0])
    assert list(model[-1].feature_names_in_) == ["a", "b", "c"]
    assert model.predict(frame).shape == (40,)


def test_bad_input_is_named(rng: np.random.Generator) -> None:
    X, Y = draw(rng)
    with pytest.raises(ValueError, match="NaN"):
        KernelRidge().fit(np.where(X > 1, np.nan, X), Y)
    with pytest.raises(ModelError, match="alpha must be a positive number"):
        KernelRidge(-1.0).fit(X, Y)
    with pytest.raises(ModelError, match="Did you mean 'rbf'"):
        KernelRidge(kernel="rbff").fit(X, Y)
    with pytest.raises(ModelError, match="must be square"):
        KernelRidge(kernel="precomputed").fit(X, Y)
    with pytest.raises(ModelError, match="must be symmetric"):
        KernelRidge(kernel="precomputed").fit(rng.normal(size=(40, 40)), Y)
    with pytest.raises(AttributeError, match="partial_fit"):
        KernelRidge().partial_fit(X, Y)
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        KernelRidge("loo", approx="nystrom").partial_fit(X, Y)
    assert "Try: alpha='gcv'" in str(caught.value.__cause__)
    with pytest.raises(GramGraphError, match="two matrices"):
        KernelRidge(kernel=lambda a, b: 1.0).fit(X, Y)
    indefinite = -np.eye(40)
    for alpha in (0.5, "loo"):
        with pytest.raises(ModelError, match="not positive"):
            KernelRidge(alpha, kernel="precomputed").fit(indefinite, Y)


def test_one_point_constant_columns_and_duplicates_are_answered() -> None:
    one = KernelRidge(1.0).fit([[2.0, 3.0]], [4.0])
    assert one.predict([[2.0, 3.0]])[0] == pytest.approx(2.0)
    assert one.loo_residuals_[0] == pytest.approx(4.0)
    constant = KernelRidge("loo").fit(np.ones((6, 2)), np.arange(6.0))
    assert constant.predict([[1.0, 1.0]])[0] == pytest.approx(2.5, rel=0.3)
    twice = KernelRidge(0.1, gamma=1.0).fit([[0.0], [0.0], [1.0]], [1.0, 1.0, 0.0])
    weighted = KernelRidge(0.1, gamma=1.0).fit([[0.0], [1.0]], [1.0, 0.0], sample_weight=[2.0, 1.0])
    np.testing.assert_allclose(twice.predict([[0.3]]), weighted.predict([[0.3]]), rtol=1e-10)
