"""Numbers whose squares leave the range of floating point: one error that says what helps, for every estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

from fuzz.estimators import found_estimators
from gramgraph import estimators, kernels
from gramgraph.exceptions import ModelError

DISCRETE = ("BayesianNetworkClassifier", "NaiveBayesClassifier", "TANClassifier")  # they read columns as states
LABELS = ("BernoulliMixture", "CategoricalMixture")  # so do mixtures of labels
COUNTS = ("LatentDirichletAllocation",)  # whole numbers have another limit
#: Trees look at the order of the numbers alone.
ORDERED = (
    "AdaBoostClassifier",
    "GentleBoostClassifier",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "LogitBoostClassifier",
)


def points(scale: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.uniform(0.1, 1.0, size=(12, 2))
    return X * scale, X[:, 0] - X[:, 1]


def target(machine: Any, y: Any) -> Any:
    if type(machine).__name__ == "GaussianProcessCounts":
        return np.round(np.abs(3.0 * y))
    return (y > 0).astype(np.int64) if is_classifier(machine) else y


@pytest.mark.parametrize("kind", found_estimators(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("scale", [1e160, 1e300, np.finfo(float).max])
def test_every_estimator_says_scale_the_columns(kind: type, scale: float) -> None:
    machine = kind()
    X, y = points(scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if kind.__name__ in DISCRETE:
            assert np.isfinite(machine.fit(X, target(machine, y)).predict_proba(X)).all()
            return
        if kind.__name__ in LABELS:
            assert np.isfinite(machine.fit(X).score_samples(X)).all()
            return
        if kind.__name__ in COUNTS:
            with pytest.raises(ModelError, match="beyond what is counted exactly"):
                machine.fit(X)
            return
        if kind.__name__ in ORDERED:
            small, _ = points(1.0)
            t = target(machine, y)
            np.testing.assert_allclose(kind().fit(X, t).predict(X), kind().fit(small, t).predict(small))
            return
        with pytest.raises(ModelError, match="scale the columns"):
            machine.fit(X, target(machine, y))
        small, _ = points(1.0)
        model = kind().fit(small, target(machine, y))
        for name in ("predict", "transform", "score_samples", "decision_function"):
            if hasattr(model, name):
                with pytest.raises(ModelError, match="scale the columns"):
                    getattr(model, name)(X)


@pytest.mark.parametrize("name", ["SVC", "SVR", "KernelPCA", "KernelRidge", "KernelKMeans", "RVC"])
def test_kernels_that_overflow(name: str) -> None:
    """Kernel values divide by scales of their own, so they are not refused at the door but by what comes out."""
    machine = getattr(estimators, name)(kernel=kernels.Linear() + kernels.Constant(1.0))
    X, y = points(1e200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="scale the columns|not finite|NaN or infinite"):
            machine.fit(X, target(machine, y)).predict(X)


@pytest.mark.parametrize("name", ["SVC", "KernelRidge", "KernelNeighborsClassifier", "KernelNeighborsRegressor", "RVC"])
def test_a_kernel_with_a_scale_of_its_own_copes(name: str) -> None:
    kind = getattr(estimators, name)
    X, y = points(1.0)
    unit = 2.0**530  # about 1e160: a power of two changes no digit
    t = target(kind(), y)
    small = kind(kernel=kernels.RBF(0.5)).fit(X, t).predict(X)
    large = kind(kernel=kernels.RBF(0.5 * unit)).fit(X * unit, t).predict(X * unit)
    np.testing.assert_array_equal(large, small)


def test_numbers_whose_squares_vanish_are_no_constants() -> None:
    X, y = points(1e-170)
    with pytest.raises(ModelError, match="scale the columns"):
        estimators.KernelRidge().fit(X, y)
    same = estimators.KernelRidge().fit(np.full((5, 2), 1e-170), np.ones(5))  # these are constants
    assert np.isfinite(same.predict(X)).all()


def test_a_search_below_the_rounding_of_the_kernel_ends() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 1)) + 1e14
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = estimators.SVC(kernel="poly").fit(X, np.arange(12) % 3).decision_function(X)
        except ModelError:
            return
    assert np.isfinite(found).all()


@pytest.mark.parametrize("scale", [1e160, 1.7e308])
def test_kernel_trees_and_tests_say_so_too(scale: float) -> None:
    from gramgraph.embeddings import hsic_test, learn_tree, mmd_test

    X, y = points(scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for work in (
            lambda: learn_tree({"a": X[:, 0] * (1.7e308 / scale), "b": y}),  # axes follow the unit up to 1e300
            lambda: mmd_test(X, X[:5], n_permutations=10),
            lambda: hsic_test(X, y, n_permutations=10),
        ):
            with pytest.raises(ModelError, match="scale the columns"):
                work()


def test_kernel_trees_of_numbers_that_hardly_differ() -> None:
    from gramgraph.embeddings import learn_tree

    X, y = points(1e-280)
    with pytest.raises(ModelError, match="scale the columns"):
        learn_tree({"a": X[:, 0], "b": y})
