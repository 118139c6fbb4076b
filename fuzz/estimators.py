"""Hostile data for every estimator, for hidden Markov models, kernel trees and kernel tests.

Each world draws one data set (constant or repeated columns, rows written twice, numbers from 1e-308 to 1e308, fewer
rows than columns, one class, …) and some estimators, which are found, not listed. The demand on each of them: a sound
model with finite answers, or one error of the library; the same again with the same seed; arrays of the caller left
alone and not kept; parameters as they were.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.trials import Trial, Wrong

__all__ = ["found_estimators", "hostile", "trials"]

#: Options that lead through other parts of the code, tried where an estimator has all of the names.
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"kernel": "linear"},
    {"kernel": "poly"},
    {"kernel": "precomputed"},
    {"approx": "nystrom", "n_components": 5},
    {"approx": "nystrom", "n_features": 5},
    {"approx": "features", "n_components": 5},
    {"approx": "titsias", "n_inducing": 4},
    {"nu": 0.4},
    {"multi_class": "softmax"},
    {"inference": "ep"},
    {"degree": 1, "bandwidth": "loo"},
    {"weights": "distance"},
    {"noise": "learned"},
    {"learn": None},
    {"average": True},
)
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


@dataclass(frozen=True)
class Data:
    """One data set: training points, new points, targets and labels."""

    name: str
    X: np.ndarray
    new: np.ndarray
    y: np.ndarray
    labels: np.ndarray


def found_estimators() -> list[type]:
    """Every public estimator of `gramgraph.estimators`."""
    from gramgraph import estimators

    public = [getattr(estimators, name) for name in estimators.__all__]
    return [kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")]


# -- data ------------------------------------------------------------------------------------------------------------


def _constant(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 7.1, 1e10])
    return X


def _all_constant(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.full_like(X, rng.choice([0.0, 0.1, -1e6]))


def _repeated(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X[rng.integers(max(1, len(X) // 3), size=len(X))]


def _collinear(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.column_stack([X[:, :1] * rng.normal() for _ in range(X.shape[1])])


def _scaled(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    powers = [-308, -300, -160, -100, -30, 30, 75, 100, 149, 151, 160, 300, 308]
    return X * 10.0 ** rng.choice(powers)


def _one_large(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice([1e12, 1e100, -1e160, 1.7e308])
    return X


def _mixed_scales(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X * 10.0 ** rng.uniform(-12, 12, size=X.shape[1])


def _whole(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.clip(np.round(3.0 * X), -100.0, 100.0).astype(rng.choice(["int64", "int8", "float32"]))


def _shifted(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X + 10.0 ** rng.integers(3, 15)


ACCIDENTS: tuple[Callable[[np.random.Generator, np.ndarray], np.ndarray], ...] = (
    _constant,
    _all_constant,
    _repeated,
    _collinear,
    _scaled,
    _one_large,
    _mixed_scales,
    _whole,
    _shifted,
)


def hostile(rng: np.random.Generator) -> Data:
    """A small data set after one accident or two."""
    n, d = int(rng.choice([2, 3, 5, 12, 20])), int(rng.choice([1, 2, 3, 7]))
    X, y = rng.normal(size=(n + 4, d)), rng.normal(size=n)
    accidents = [ACCIDENTS[i] for i in rng.choice(len(ACCIDENTS), size=rng.integers(1, 3), replace=False)]
    for accident in accidents:
        with np.errstate(all="ignore"):
            X = accident(rng, np.array(X, dtype=np.float64))
        if X.dtype == np.float64:
            X = np.clip(X, -1.7e308, 1.7e308)
    shape = rng.integers(5)
    if shape == 0:
        y = np.full(n, rng.choice([0.0, 2.5, 1e6]))
    elif shape == 1:
        y = y * 10.0 ** rng.choice([-200, -100, -9, 9, 100, 200, 300])
    labels = rng.integers(rng.choice([1, 2, 2, 3]), size=n)
    name = ", ".join(accident.__name__.strip("_").replace("_", " ") for accident in accidents)
    return Data(f"{name} ({n} × {d})", X[:n], X[n:], y, labels)


# -- trials ----------------------------------------------------------------------------------------------------------


def trials(rng: np.random.Generator) -> Iterator[Trial]:
    """Some estimators on one data set; now and then sequences, trees and tests."""
    data = hostile(rng)
    seed = int(rng.integers(2**31))
    kinds = found_estimators()
    for kind in (kinds[i] for i in rng.choice(len(kinds), size=4, replace=False)):
        known = inspect.signature(kind).parameters
        fitting = [change for change in OPTIONS if set(change) <= set(known) and _goes(kind, change)]
        change = fitting[rng.integers(len(fitting))]
        given = {**change, **({"random_state": seed} if "random_state" in known else {})}
        what = f"{kind.__name__}({', '.join(f'{k}={v!r}' for k, v in change.items())}) on {data.name}"
        yield Trial(what, lambda kind=kind, given=given: _estimator(kind, given, data), lambda: _shown(data))
    others = (_mixture_hmm, _kernel_tree, _kernel_tests)
    other = others[rng.integers(len(others))]
    yield Trial(f"{other.__name__.strip('_')} on {data.name}", lambda: other(data, seed), lambda: _shown(data))


def _goes(kind: type, change: dict[str, Any]) -> bool:
    name = kind.__name__
    if name == "KernelDensity":
        return "kernel" not in change and "degree" not in change
    if name.startswith("GaussianProcess"):
        return change.get("kernel") != "precomputed"
    if change.get("approx") == "titsias":
        return False
    return not (name == "RVR" and "noise" in change)


def _shown(data: Data) -> str:
    return "\n".join(f"{name} = {getattr(data, name).tolist()!r}" for name in ("X", "new", "y", "labels"))


def _refused(work: Callable[[], Any]) -> Any:
    """What `work` gives, or None where the library refuses in words of its own, as it or scikit-learn may."""
    from gramgraph.exceptions import GramGraphError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return work()
    except GramGraphError:
        return None
    except ValueError as error:
        if type(error) is ValueError and ("minimum of" in str(error) or "infinity" in str(error)):
            return None  # scikit-learn's own checks of sizes and of infinite numbers
        raise


def _gram(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(-1)), dtype=np.float64)


def _estimator(kind: type, given: dict[str, Any], data: Data) -> None:
    from sklearn.base import clone, is_classifier

    model = kind(**given)
    before = {name: repr(value) for name, value in model.get_params().items()}
    X, new = data.X, data.new
    if given.get("kernel") == "precomputed":
        wide = X.astype(np.float64)
        X, new = _gram(wide, wide), _gram(new.astype(np.float64), wide)
    target = data.labels if is_classifier(model) else data.y
    if kind.__name__ == "GaussianProcessCounts":
        target = data.labels.astype(float)
    X, new, target = X.copy(), new.copy(), target.copy()
    held = X.copy(), new.copy(), target.copy()

    def learn(one: Any) -> Any:
        one.fit(X, target)
        return {name: getattr(one, name)(new) for name in ANSWERS if hasattr(one, name)}

    first = _refused(lambda: learn(model))
    if not all(np.array_equal(a, b) for a, b in zip((X, new, target), held, strict=True)):
        raise Wrong("the caller's array: written into")
    if {name: repr(value) for name, value in model.get_params().items()} != before:
        raise Wrong("parameters: changed by fit")
    if first is None:
        return
    for name, value in first.items():
        _sound(name, value)
    again = _refused(lambda: learn(clone(model)))
    X[...], target[...] = 1, 0
    later = {name: getattr(model, name)(new) for name in first}
    for name, value in first.items():
        if again is None or not np.array_equal(value, again[name]):
            raise Wrong(f"{name}: another answer of a second fit: {again and again[name]}, first {value}")
        if not np.array_equal(value, later[name]):
            raise Wrong(f"{name}: changed with the caller's array")


def _sound(name: str, value: Any) -> None:
    values = np.asarray(value)
    if values.dtype.kind != "f":
        return
    if np.isnan(values).any() or (name != "score_samples" and np.isinf(values).any()):
        raise Wrong(f"{name}: not finite: {values.ravel()[:6]}")
    if name == "predict_proba" and ((values < 0).any() or np.abs(values.sum(axis=-1) - 1.0).max() > 1e-6):
        raise Wrong(f"{name}: no probabilities: {values[:3]}")


def _mixture_hmm(data: Data, seed: int) -> None:
    from gramgraph.sequences import GaussianMixtureHMM

    X = data.X.astype(np.float64)
    model = GaussianMixtureHMM(2, 2, max_iter=5, random_state=seed)
    if _refused(lambda: model.fit(X)) is not None:
        log = _refused(lambda: model.score(X))
        if log is not None and np.isnan(log):
            raise Wrong(f"log likelihood: {log}")


def _kernel_tree(data: Data, seed: int) -> None:
    from gramgraph.embeddings import learn_tree

    columns = {f"x{j}": column for j, column in enumerate(data.X.T[:3].astype(np.float64))}
    columns["label"] = np.array(["a", "b", "c"])[data.labels]
    tree = _refused(lambda: learn_tree(columns, cells=16, random_state=seed))
    if tree is not None:
        p = tree.query("label")["label"].probabilities
        _sound("predict_proba", np.asarray(p)[None])


def _kernel_tests(data: Data, seed: int) -> None:
    from gramgraph.embeddings import hsic_test, kci_test, mmd_test

    X = data.X.astype(np.float64)
    options: dict[str, Any] = {"n_permutations": 20, "random_state": seed}
    half = max(1, len(X) // 2)
    for work in (
        lambda: mmd_test(X[:half], X[half:], **options),
        lambda: hsic_test(X, data.y, **options),
        lambda: kci_test(X[:, 0], data.y, X[:, -1], **options),
    ):
        found = _refused(work)
        if found is not None and not (0.0 <= found.p_value <= 1.0 and np.isfinite(found.statistic)):
            raise Wrong(f"kernel test: p = {found.p_value}, statistic = {found.statistic}")
