"""The same list of bad inputs for every kernel machine: a clear error, or the right answer.

NaN and infinity, one class, constant features, one point, duplicate points, matrices that are no Gram matrix, wrong
shapes, and options that cannot be.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics.pairwise import rbf_kernel

from gramgraph.estimators import (
    PCA,
    RVC,
    RVR,
    SVC,
    SVR,
    KernelDensity,
    KernelKMeans,
    KernelNeighborsClassifier,
    KernelNeighborsRegressor,
    KernelPCA,
    KernelRidge,
    NadarayaWatson,
    OneClassSVM,
)
from gramgraph.exceptions import GramGraphError

MACHINES = [
    KernelRidge(0.1),
    KernelRidge("loo"),
    KernelRidge("gcv", approx="nystrom", n_components=10, random_state=0),
    KernelRidge(0.1, approx="features", n_components=20, random_state=0),
    NadarayaWatson(0.5),
    NadarayaWatson(),
    NadarayaWatson(degree=1),
    KernelDensity(0.5),
    KernelDensity("loo"),
    KernelDensity("scott", kernel="tophat"),
    KernelDensity("silverman", kernel="epanechnikov"),
    KernelNeighborsClassifier(3),
    KernelNeighborsRegressor(3, weights="distance"),
    PCA(2),
    KernelPCA(2),
    KernelPCA(2, solver="lanczos", random_state=0),
    KernelPCA(2, approx="nystrom", n_features=10, random_state=0),
    KernelKMeans(2, random_state=0),
    KernelKMeans(2, approx="nystrom", n_components=12, random_state=0),
    SVC(),
    SVC(nu=0.3),
    SVC(multiclass="ovr", probability=True, random_state=0),
    SVC(approx="nystrom", n_components=10, random_state=0),
    SVR(),
    SVR(nu=0.3),
    OneClassSVM(nu=0.3),
    RVR(),
    RVC(),
]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=repr)
with_kernel = [m for m in MACHINES if hasattr(m, "kernel") and not isinstance(m, KernelDensity)]
with_matrix = [m for m in with_kernel if getattr(m, "approx", None) is None and getattr(m, "degree", 0) != 1]


def points(n: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=n)


def target(machine: Any, y: Any) -> Any:
    return np.where(y > np.median(y), "high", "low") if is_classifier(machine) else y


def answer(machine: Any, X: Any) -> Any:
    for name in ("transform", "decision_function", "predict_proba", "predict", "score_samples"):
        if hasattr(machine, name):
            return np.asarray(getattr(machine, name)(X))
    raise AssertionError(machine)


@every_machine
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_no_numbers(machine: Any, value: float, word: str) -> None:
    X, y = points()
    t = target(machine, y)
    hole = X.copy()
    hole[3, 1] = value
    with pytest.raises(ValueError, match=word):
        clone(machine).fit(hole, t)
    with pytest.raises(ValueError, match=word):
        answer(clone(machine).fit(X, t), hole)
    if is_regressor(machine):
        broken = y.copy()
        broken[5] = value
        with pytest.raises(ValueError, match=word):
            clone(machine).fit(X, broken)
    if hasattr(machine, "fit") and "sample_weight" in inspect.signature(machine.fit).parameters:
        weight = np.ones(40)
        weight[0] = value
        with pytest.raises(ValueError, match=f"{word}|[Nn]egative"):
            clone(machine).fit(X, t, sample_weight=weight)
        with pytest.raises(ValueError, match=r"[Nn]egative"):
            clone(machine).fit(X, t, sample_weight=np.where(np.arange(40) == 2, -1.0, 1.0))


@every_machine
def test_labels_of_one_class_and_constant_targets(machine: Any) -> None:
    X, y = points()
    if is_classifier(machine):
        one = np.full(40, "same")
        try:
            model = clone(machine).fit(X, one)
        except GramGraphError as error:
            assert "class" in str(error)
        else:
            assert set(model.predict(X)) == {"same"}
        with pytest.raises(ValueError, match="continuous|label"):
            clone(machine).fit(X, y)
    elif is_regressor(machine):
        found = clone(machine).fit(X, np.full(40, 2.5)).predict(X)
        assert np.isfinite(found).all() and 1.0 < np.median(found) < 2.7
        exact = isinstance(machine, (NadarayaWatson, KernelNeighborsRegressor, SVR, RVR))
        if exact:  # these average, or have an intercept
            np.testing.assert_allclose(found, 2.5, atol=0.11)


@every_machine
def test_constant_features(machine: Any) -> None:
    """A constant column beside others changes nothing but the scale; nothing but constants has one answer."""
    X, y = points()
    t = target(machine, y)
    padded = np.column_stack([X, np.full(40, 7.1)])
    found = answer(clone(machine).fit(padded, t), padded)
    assert np.isfinite(found).all()
    fixed = {"gamma": 0.4} if hasattr(machine, "gamma") else {}
    if isinstance(machine, (KernelDensity, SVC, SVR, OneClassSVM)) or getattr(machine, "approx", None) == "features":
        fixed = {}  # whose numbers depend on the number of columns, or on a stopping rule: see the tests of each
    elif not isinstance(machine, NadarayaWatson) or machine.bandwidth != "loo":
        a = answer(clone(machine).set_params(**fixed).fit(X, t), X)
        np.testing.assert_allclose(
            np.abs(answer(clone(machine).set_params(**fixed).fit(padded, t), padded)), np.abs(a), rtol=1e-4, atol=1e-5
        )
    same = np.full((12, 2), 0.1)
    y_same = target(machine, np.linspace(-1.0, 1.0, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = answer(clone(machine).fit(same, y_same), same)
    assert np.isfinite(found).all() and np.ptp(found, axis=0).max() < 1e-9  # equal points have equal answers


@every_machine
def test_one_point(machine: Any) -> None:
    X, y = np.array([[1.0, 2.0]]), np.array([3.0])
    t = np.array(["low"]) if is_classifier(machine) else y
    try:
        model = clone(machine).fit(X, t)
    except ValueError as error:  # also ModelError
        text = str(error)
        assert any(word in text for word in ("minimum of 2", "two classes", "two points", "only n_samples=1")), text
        return
    found = answer(model, X)
    assert np.isfinite(found).all()
    if is_regressor(machine) and not isinstance(machine, KernelRidge):
        np.testing.assert_allclose(found, 3.0, atol=0.11)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        answer(model, np.empty((0, 2)))


@every_machine
def test_no_points_and_wrong_shapes(machine: Any) -> None:
    X, y = points()
    t = target(machine, y)
    with pytest.raises(ValueError, match=r"minimum of \d is required"):
        clone(machine).fit(np.empty((0, 3)), t[:0])
    with pytest.raises(ValueError, match="Reshape your data|2D"):
        clone(machine).fit(X[:, 0], t)
    with pytest.raises(ValueError, match="features"):
        answer(clone(machine).fit(X, t), X[:, :2])
    with pytest.raises(ValueError, match="complex|Complex"):
        clone(machine).fit(X * 1j, t)
    if is_classifier(machine) or is_regressor(machine):
        with pytest.raises(ValueError, match="inconsistent numbers"):
            clone(machine).fit(X, t[:-1])
        with pytest.raises(ValueError, match="y to be passed"):
            clone(machine).fit(X, None)


@every_machine
def test_duplicate_points(machine: Any) -> None:
    X, y = points(15)
    X3, t3 = np.repeat(X, 3, axis=0), np.repeat(target(machine, y), 3)
    found = answer(clone(machine).fit(X3, t3), X3)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[::3], found[1::3], atol=1e-9)  # equal points have equal answers
    both = np.vstack([X, X])  # the same points with two targets
    two = np.repeat(["high", "low"], 15) if is_classifier(machine) else np.concatenate([y, -y])
    assert np.isfinite(answer(clone(machine).fit(both, two), X)).all()


@pytest.mark.parametrize("machine", with_matrix, ids=repr)
def test_matrices_that_are_no_gram_matrix(machine: Any) -> None:
    X, y = points()
    t, K = target(machine, y), rbf_kernel(X)
    model = clone(machine).set_params(kernel="precomputed")
    if getattr(machine, "weights", "uniform") == "distance":
        model.set_params(weights="uniform")
    with pytest.raises(ValueError, match="square"):
        clone(model).fit(K[:, :10], t)
    lopsided = K.copy()
    lopsided[0, 1] += 0.1
    with pytest.raises(GramGraphError, match="symmetric"):
        clone(model).fit(lopsided, t)
    with pytest.raises(ValueError, match="features"):
        answer(clone(model).fit(K, t), K[:, :10])
    indefinite = K - 0.5 * np.eye(40)
    if isinstance(machine, (KernelRidge, KernelPCA, SVC, SVR, OneClassSVM)):  # no solution exists, or not only one
        with pytest.raises(GramGraphError, match=r"not positive"):
            clone(model).fit(indefinite, t)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = answer(clone(model).fit(indefinite, t), K)
        except GramGraphError as error:
            assert "positive" in str(error)
        else:  # averages, distances and columns: they need no eigenvalues
            assert np.isfinite(found).all()


@pytest.mark.parametrize("machine", with_kernel, ids=repr)
def test_kernels_that_are_none(machine: Any) -> None:
    X, y = points()
    t = target(machine, y)
    with pytest.raises(GramGraphError, match="Did you mean 'linear'"):
        clone(machine).set_params(kernel="linaer").fit(X, t)
    with pytest.raises(GramGraphError, match="kernel"):
        clone(machine).set_params(kernel=3.5).fit(X, t)
    if getattr(machine, "approx", None) is None:
        with pytest.raises(GramGraphError, match="shape"):
            clone(machine).set_params(kernel=lambda A, B: np.ones(3)).fit(X, t).predict(X)
    if hasattr(machine, "gamma"):
        for gamma in (-1.0, 0.0, np.nan, "wide"):
            with pytest.raises(GramGraphError, match="gamma"):
                clone(machine).set_params(gamma=gamma).fit(X, t)
