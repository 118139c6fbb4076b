"""A fitted model is its own: whatever becomes of the caller's arrays, its answers stay. For every estimator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from gramgraph import estimators, kernels

QUESTIONS = ("transform", "decision_function", "predict_proba", "predict", "score_samples", "loo_residuals_")
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"kernel": "precomputed"},
    {"kernel": kernels.RBF(np.array([1.0, 2.0]))},
    {"approx": "nystrom", "n_components": 6},
    {"approx": "titsias", "n_inducing": 6},
    {"pre_image": "ridge"},
)


def machines() -> Iterator[Any]:
    """Every estimator, as it comes and with the options that decide what it keeps."""
    for name in estimators.__all__:
        kind = getattr(estimators, name)
        if not isinstance(kind, type) or not hasattr(kind, "fit"):
            continue
        plain = kind()
        known = plain.get_params()
        seed = {"random_state": 0} if "random_state" in known else {}
        for change in CHANGES:
            if name == "KernelDensity" and "kernel" in change:
                continue
            if name.startswith("GaussianProcess") and change.get("kernel") == "precomputed":
                continue
            if name.endswith("Features") and change.get("kernel") == "precomputed":
                continue  # a map is evaluated at new points
            if set(change) <= set(known) and not ("n_inducing" not in known and change.get("approx") == "titsias"):
                yield clone(plain).set_params(**change, **seed)


def data(machine: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=20)
    if is_classifier(machine):
        y = (y > np.median(y)).astype(np.int64)
    if type(machine).__name__ == "GaussianProcessCounts":
        y = np.round(np.exp(y))
    if type(machine).__name__ == "LatentDirichletAllocation":
        return np.round(np.exp(X)), np.round(np.exp(new)), y
    if isinstance(getattr(machine, "kernel", None), str) and machine.kernel == "precomputed":
        gram = kernels.RBF().gram
        return gram(X), gram(new, X), y
    return X, new, y


def answers(machine: Any, new: Any) -> dict[str, Any]:
    found = {}
    for name in QUESTIONS:
        if hasattr(machine, name):
            value = getattr(machine, name)
            found[name] = np.array(value(new) if callable(value) else value)
    return found


@pytest.mark.parametrize("machine", list(machines()), ids=repr)
def test_later_changes_of_the_callers_arrays(machine: Any) -> None:
    X, new, y = data(machine)
    weight = 1.0 + np.arange(20.0) % 3
    given = [X, y] + ([weight] if "sample_weight" in inspect.signature(machine.fit).parameters else [])
    before = [array.copy() for array in given]
    machine.fit(*given)
    for array, was in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, was, err_msg="fit wrote into an array of the caller")
    first = answers(clone(machine).fit(*before), new)  # what is asked for is computed when asked: nothing is asked yet
    for array in given:
        array[:] = 666 if array is X else 1
    second = answers(machine, new)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_allclose(second[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
    for array in given:
        array[:] = 667
    for name, value in answers(machine, new).items():
        np.testing.assert_allclose(value, first[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_points_of_other_kinds() -> None:
    words = ["rain", "train", "grain", "sun", "fun", "run"]
    y = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    model = estimators.KernelRidge(0.1, kernel=kernels.Spectrum(2)).fit(words, y)
    before = model.predict(["brain", "bun"])
    words[:] = ["x"] * 6
    np.testing.assert_array_equal(model.predict(["brain", "bun"]), before)


def test_landmarks_and_length_scales_given_as_arrays() -> None:
    X, _, y = data(estimators.KernelRidge())
    scales, places = np.array([1.0, 2.0]), X[:5].copy()
    model = estimators.KernelRidge(0.1, kernel=kernels.RBF(scales), approx="nystrom", landmarks=places).fit(X, y)
    before = model.predict(X)
    scales[:] = 9.0
    places[:] = 9.0
    np.testing.assert_array_equal(model.predict(X), before)
