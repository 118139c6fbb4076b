"""Frames in and out, pipelines, grid searches, and the same list of bad inputs for every estimator of this lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramgraph.estimators import (
    PCA,
    KernelDensity,
    KernelKMeans,
    KernelNeighborsClassifier,
    KernelNeighborsRegressor,
    KernelPCA,
    KernelRidge,
    NadarayaWatson,
)
from gramgraph.exceptions import GramGraphError

REGRESSORS = [
    KernelRidge(0.1),
    KernelRidge("loo"),
    KernelRidge(0.1, approx="nystrom", n_components=15, random_state=0),
    KernelRidge("gcv", approx="features", n_components=30, random_state=0),
    NadarayaWatson(0.5),
    NadarayaWatson(degree=1),
    KernelNeighborsRegressor(3),
]
TRANSFORMERS = [
    PCA(2),
    KernelPCA(2),
    KernelPCA(2, solver="lanczos", random_state=0),
    KernelPCA(2, approx="nystrom", n_features=20, random_state=0),
]
OTHERS = [KernelNeighborsClassifier(3), KernelKMeans(2, random_state=0), KernelDensity("scott"), KernelDensity()]
ALL = [*REGRESSORS, *TRANSFORMERS, *OTHERS]
#: kernel="precomputed" with a matrix that has negative eigenvalues
PRECOMPUTED = [
    KernelRidge(0.1, kernel="precomputed"),
    KernelRidge("loo", kernel="precomputed"),
    KernelPCA(2, kernel="precomputed"),
    KernelPCA(2, kernel="precomputed", solver="lanczos", random_state=0),
    KernelKMeans(2, kernel="precomputed", random_state=0),
    KernelNeighborsRegressor(3, kernel="precomputed"),
]


def data(rng: np.random.Generator, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1]


def target(estimator: Any, y: np.ndarray) -> np.ndarray:
    return (y > 0).astype(int) if isinstance(estimator, KernelNeighborsClassifier) else y


def answer(estimator: Any, X: Any) -> np.ndarray:
    for name in ("transform", "predict", "score_samples"):
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name)(X))
    raise AssertionError(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_say_what_matrices_say(rng: np.random.Generator, estimator: Any, library: Any) -> None:
    X, y = data(rng)
    y = target(estimator, y)
    frame = library.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    expected = answer(clone(estimator).fit(X, y), X)
    model = clone(estimator).fit(frame, library.Series(y))
    np.testing.assert_allclose(answer(model, frame), expected, rtol=1e-9, atol=1e-9)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        answer(model, frame[["b", "a", "c"]])


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=repr)
@pytest.mark.parametrize(("name", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_frames_come_out(rng: np.random.Generator, estimator: Any, name: str, kind: type) -> None:
    X, _ = data(rng)
    model = clone(estimator).set_output(transform=name).fit(X)
    out = model.transform(X)
    prefix = type(estimator).__name__.lower()
    assert isinstance(out, kind) and list(out.columns) == [f"{prefix}0", f"{prefix}1"]
    assert isinstance(clone(estimator).set_output(transform=name).fit_transform(X), kind)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=repr)
def test_pipelines_and_grid_searches(rng: np.random.Generator, estimator: Any) -> None:
    X, y = data(rng, 60)
    grids = {
        KernelRidge: {"gamma": [0.01, 0.3]},
        NadarayaWatson: {"degree": [0, 1]},
        KernelNeighborsRegressor: {"n_neighbors": [1, 5]},
    }
    step = type(estimator).__name__.lower()
    grid = {f"{step}__{name}": values for name, values in grids[type(estimator)].items()}
    search = GridSearchCV(make_pipeline(StandardScaler(), clone(estimator)), grid, cv=3).fit(X, y)
    assert search.score(X, y) > 0.5
    assert search.predict(pd.DataFrame(X).to_numpy()).shape == (60,)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused(rng: np.random.Generator, estimator: Any, bad: float) -> None:
    X, y = data(rng)
    y = target(estimator, y)
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        clone(estimator).fit(broken, y)
    model = clone(estimator).fit(X, y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        answer(model, broken)
    if isinstance(estimator, (KernelRidge, NadarayaWatson, KernelNeighborsRegressor)):
        with pytest.raises(ValueError, match="NaN|infinity"):
            clone(estimator).fit(X, np.where(np.arange(40) == 2, bad, y))


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_constant_features_and_duplicate_points_are_answered(rng: np.random.Generator, estimator: Any) -> None:
    X, y = data(rng)
    y = target(estimator, y)
    constant = np.column_stack([X[:, 0], np.full(40, 7.0)])
    assert np.isfinite(answer(clone(estimator).fit(constant, y), constant)).all()
    twice = np.vstack([X, X])
    assert np.isfinite(answer(clone(estimator).fit(twice, np.concatenate([y, y])), X)).all()
    same = np.ones((8, 2))
    y_same = target(estimator, np.linspace(-1.0, 1.0, 8))
    try:
        found = answer(clone(estimator).fit(same, y_same), same)
    except GramGraphError as error:
        assert "Try:" in str(error) or "must" in str(error)
    else:
        assert np.isfinite(found).all()


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_one_point_is_answered_or_named(estimator: Any) -> None:
    X, y = np.array([[1.0, 2.0]]), np.array([3])
    try:
        found = answer(clone(estimator).fit(X, y), X)
    except ValueError as error:  # also ModelError
        assert any(word in str(error) for word in ("minimum of 2", "must be", "only n_samples=1 points", "neighbors"))
    else:
        assert np.isfinite(found).all()


@pytest.mark.parametrize("estimator", PRECOMPUTED, ids=repr)
def test_a_matrix_with_negative_eigenvalues_is_named_or_harmless(rng: np.random.Generator, estimator: Any) -> None:
    """Where positive eigenvalues are needed the text says so; neighbors and clusters only compare distances."""
    A = rng.normal(size=(20, 20))
    K = A + A.T
    np.fill_diagonal(K, 1.0)
    if isinstance(estimator, (KernelRidge, KernelPCA)):
        with pytest.raises(GramGraphError, match="not positive"):
            clone(estimator).fit(K, rng.normal(size=20))
        return
    try:
        model = clone(estimator).fit(K, rng.normal(size=20))
    except GramGraphError as error:
        assert "positive" in str(error)
    else:
        assert np.isfinite(answer(model, K)).all()


def test_jitter_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Equal points and hardly a penalty: what was added to the diagonal stands in the log."""
    X = np.repeat(np.linspace(0.0, 1.0, 5), 3)[:, None]
    with caplog.at_level("INFO", logger="gramgraph.linalg"):
        found = KernelRidge(1e-18, gamma=1.0).fit(X, X[:, 0]).predict(X)
    assert "added" in caplog.text and "to the diagonal" in caplog.text
    np.testing.assert_allclose(found, X[:, 0], atol=1e-3)
