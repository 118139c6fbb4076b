"""Numbers that leave the range of floating point: one rule for every estimator.

Squares of numbers beyond 1e150 overflow. A matrix with such numbers is refused where it is read; what overflows later,
in a kernel or a decomposition, is refused before it becomes a model or an answer. NumPy's warnings on the way there say
nothing that these errors do not say better, so they are not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import validate_data

from gramgraph.exceptions import GramGraphError
from gramgraph.machines.checks import LARGEST, scale_the_columns

_ANSWERS = (
    "decision_function",
    "fit_predict",
    "fit_transform",
    "inverse_transform",
    "kneighbors",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score_samples",
    "transform",
)
_MAY_BE_MINUS_INFINITY = ("predict_log_proba", "score_samples")
#: What a fit leaves behind; where one of these is not finite there is no model.
_LEARNED = (
    "bandwidth_",
    "cluster_centers_",
    "coef_",
    "components_",
    "covariance_",
    "dual_coef_",
    "eigenvalues_",
    "inertia_",
    "intercept_",
    "log_evidence_",
    "mean_",
    "mu_",
    "precision_",
)
Method = TypeVar("Method", bound=Callable[..., Any])


def read_matrix(estimator: Any, X: Any, *, limit: float = LARGEST, **options: Any) -> Any:
    """X as scikit-learn reads and checks it, with no number beyond `limit`; called inside `sound` methods."""
    if _is_plain(estimator, X, options):
        return X
    found = validate_data(estimator, X, **options)
    if limit == np.inf:
        return found
    values = found.data if hasattr(found, "tocsr") else found
    if values.dtype.kind == "f" and not squares_are_finite(values) and np.abs(values).max(initial=0.0) > limit:
        meaning = getattr(estimator, "_overflow_means", "")
        raise scale_the_columns(
            f"{type(estimator).__name__}: squares of numbers beyond {limit:.0e} overflow.", found, meaning
        )
    return found


def _is_plain(estimator: Any, X: Any, options: dict[str, Any]) -> bool:
    """Whether X is what reading would give back as it is, and no warning is due: the way of most questions.

    An array of doubles with as many columns as in `fit`, of finite numbers far from the limit, for a model that knows
    no names of columns. What it costs is one pass over the numbers; scikit-learn's reading takes ten times as long for
    a single row.
    """
    return (
        options.get("reset") is False
        and type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and options.get("dtype") is np.float64
        and X.flags.c_contiguous
        and not options.get("copy")
        and X.shape[0] >= max(options.get("ensure_min_samples", 1), 1)
        and X.shape[1] == vars(estimator).get("n_features_in_")
        and "feature_names_in_" not in vars(estimator)
        and squares_are_finite(X)
    )


def sound(method: Method) -> Method:
    """The method with one promise: a finite result or model, or an error of ours, and no warning of NumPy's."""
    name = method.__name__
    learns = name in ("fit", "partial_fit")

    @wraps(method)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                found = method(self, *args, **options)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            if isinstance(error, GramGraphError):
                raise
            where = f"{type(self).__name__}.{name}: a number left the range of floating point ({error})."
            raise scale_the_columns(where, args[0] if args else None) from error
        broken = _broken_model(self) if learns else _broken_answer(name, found)
        if broken:
            meaning = getattr(self, "_overflow_means", "")
            raise scale_the_columns(f"{type(self).__name__}.{name}: {broken}.", args[0] if args else None, meaning)
        return found

    guarded.is_sound = True  # type: ignore[attr-defined]
    return guarded  # type: ignore[return-value]


def _broken_model(model: Any) -> str:
    held = vars(model)
    for name in _LEARNED:
        value = held.get(name)
        if isinstance(value, (float, np.ndarray)) and not _finite(value):
            del held[name]  # what is left is not a fitted model
            return f"{name} is not finite"
    return ""


def _broken_answer(name: str, found: Any) -> str:
    for part in found if isinstance(found, tuple) else (found,):
        if isinstance(part, np.ndarray) and part.dtype.kind == "f":
            if np.isnan(part).any() if name in _MAY_BE_MINUS_INFINITY else not _finite(part):
                return "the answer is not finite"
    return ""


def _finite(value: Any) -> bool:
    return squares_are_finite(value) or bool(np.isfinite(value).all())


def squares_are_finite(values: Any) -> bool:
    """Whether all numbers are finite and far from the limit, by one product: most often the only look at them."""
    return bool(np.vdot(values, values) < LARGEST**2)


class SoundNumbers:
    """Base of estimators: every `fit`, `predict`, … of a subclass is `sound`."""

    #: What an overflow would lead to, for the error message.
    _overflow_means = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("fit", "partial_fit", *_ANSWERS):
            method = vars(cls).get(name)
            if isinstance(method, FunctionType) and not hasattr(method, "is_sound"):
                setattr(cls, name, sound(method))
