"""Whether the values of a file fit together: types of fields, shapes of arrays, matrices, indices.

Loops below trust their arguments, so that a model must be sound before it is handed out. Shapes are declared with
letters, as docstrings write them: `"components_": "k d"` has as many columns as the model has features, and as many
rows as every other `k` of the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError

#: What is made anew when it is asked for.
_CACHES = {"_cache", "_lock", "lock", "plans"}

#: (class, field) in which NaN and infinity have a meaning.
_LOOSE = {
    ("GraphicalLasso", "scores_"),
    ("GraphicalLassoPath", "scores"),
    ("GraphicalLassoPath", "dual_gaps"),
    ("SVCPath", "scores"),
    ("StructuralModel", "_y"),
}

#: Class → array → its axes. Letters that occur twice are of one length; `d` is the number of features, `*` any number
#: of axes. Arrays that a model does not have, or that it keeps in another form (sparse, points of words), are skipped.
_SHAPES: dict[str, dict[str, str]] = {
    "BayesianLinearRegression": {"_precision": "k k", "_mean": "k t", "_shift": "k t", "_yy": "t", "sigma_": "k k"},
    "ExactPosterior": {"X": "n *", "Y": "n q", "noise": "n"},
    "GaussianProcessClassifier": {"X_train_": "n d", "y_train_": "n"},
    "GaussianProcessCounts": {"X_train_": "n d", "y_train_": "n"},
    "GaussianProcessRegressor": {"X_train_": "n d", "y_train_": "n *", "_y_mean": "q", "_y_scale": "q",
                                 "alpha_": "n *"},
    "GraphicalLasso": {"precision_": "d d", "covariance_": "d d", "location_": "d", "graph_": "d d",
                       "partial_correlations_": "d d"},
    "KernelDensity": {"X_fit_": "n d", "_weights": "n"},
    "KernelKMeans": {"X_fit_": "n d", "_shares": "n k", "_norms": "k"},
    "KernelNeighborsClassifier": {"X_fit_": "n d", "_diag": "n", "_codes": "n", "classes_": "c"},
    "KernelNeighborsRegressor": {"X_fit_": "n d", "_diag": "n", "_y": "n *"},
    "KernelPCA": {"X_fit_": "n d", "_column_means": "n", "_weights": "n k", "eigenvalues_": "k",
                  "explained_variance_": "k", "explained_variance_ratio_": "k"},
    "KernelRidge": {"X_fit_": "n d", "_Y": "n t", "dual_coef_": "n *"},
    "LatentDirichletAllocation": {"components_": "k d", "doc_topic_prior_": "k", "topic_word_prior_": "d"},
    "LatentPosterior": {"X": "n *", "alpha": "n", "root": "n"},
    "NadarayaWatson": {"X_fit_": "n d", "_Y": "n t", "_weights": "n"},
    "NystromMap": {"W": "m r"},
    "OneClassSVM": {"support_vectors_": "s d", "support_": "s", "_weights": "s m", "intercept_": "m",
                    "dual_coef_": "m s"},
    "PCA": {"mean_": "d", "components_": "k d", "explained_variance_": "k", "explained_variance_ratio_": "k",
            "singular_values_": "k"},
    "RVC": {"relevance_vectors_": "r d", "relevance_": "r"},
    "RVR": {"relevance_vectors_": "r d", "relevance_": "r"},
    "Repeats": {"which": "n", "noise": "n", "share": "n", "gap": "n q"},
    "RidgeSpectrum": {"mean": "r", "V": "r k", "values": "k"},
    "SVC": {"support_vectors_": "s d", "support_": "s", "_weights": "s m", "intercept_": "m", "dual_coef_": "c s"},
    "SVR": {"support_vectors_": "s d", "support_": "s", "_weights": "s m", "intercept_": "m", "dual_coef_": "m s"},
    "SparseFit": {"relevance": "r", "alpha": "k", "mu": "k", "sigma": "k k", "root": "k q"},
    "Trend": {"H": "n k", "coef": "k q", "KinvH": "n k"},
    "Weights": {"alpha": "n q", "log_evidence": "q"},
}  # fmt: skip

#: Class → symmetric matrices without negative eigenvalues.
_COVARIANCES: dict[str, tuple[str, ...]] = {
    "BayesianLinearRegression": ("_precision", "sigma_"),
    "GraphicalLasso": ("precision_", "covariance_"),
    "SparseFit": ("sigma",),
}

#: Class → positions → what they are positions of.
_INDICES: dict[str, dict[str, str]] = {
    "GaussianProcessClassifier": {"y_train_": "classes_"},
    "KernelNeighborsClassifier": {"_codes": "classes_"},
}

_ARRAYS = {"FloatArray": "fiu", "IntArray": "iu", "BoolArray": "b", "Array": "biufUO", "Vector": "f", "Matrix": "f"}
_PLAIN: dict[str, tuple[type, ...]] = {
    "None": (type(None),),
    "bool": (bool, np.bool_),
    "dict": (dict,),
    "float": (int, float, np.integer, np.floating),
    "int": (int, np.integer),
    "list": (list,),
    "str": (str,),
    "tuple": (tuple,),
}


def is_cache(cls: type, name: str) -> bool:
    """Whether a field is left out of files."""
    return name in _CACHES


def is_loose(cls: type, name: str) -> bool:
    """Whether a field may hold NaN or infinity."""
    return any((base.__name__, name) in _LOOSE for base in cls.__mro__)


def fits(annotation: str, value: Any) -> bool:
    """Whether a value is of a declared type, as far as the words of the declaration tell.

    >>> fits("FloatArray | None", None), fits("int", 3), fits("int", "3"), fits("tuple[str, ...]", ("a",))
    (True, True, False, True)
    """
    return any(_fits_one(one.strip(), value) for one in re.split(r"\|(?![^\[]*\])", annotation))


def _fits_one(name: str, value: Any) -> bool:
    head = name.partition("[")[0]
    if head in _ARRAYS:
        return isinstance(value, np.ndarray) and value.dtype.kind in _ARRAYS[head]
    if head in _PLAIN:
        return isinstance(value, _PLAIN[head]) and (head == "bool" or not isinstance(value, bool))
    if head == "Mapping":
        return isinstance(value, Mapping)
    if head in ("Kernel", "Mean", "DenseFactor", "Likelihood", "Weights", "Data"):
        return any(base.__name__ == head for base in type(value).__mro__)
    return True  # Any, protocols, values that check themselves


def check(made: Any) -> None:
    """Raise a `ModelError` for arrays that do not fit together."""
    for base in type(made).__mro__:
        name = base.__name__
        if name in _SHAPES:
            _check_shapes(made, _SHAPES[name])
        for key in _COVARIANCES.get(name, ()):
            if isinstance(getattr(made, key, None), np.ndarray):
                check_covariance(getattr(made, key), key)
        for key, of in _INDICES.get(name, {}).items():
            _check_indices(getattr(made, key, None), getattr(made, of, ()), key)
    own = _CHECKS.get(type(made).__name__)
    if own is not None:
        own(made)


def _check_shapes(made: Any, shapes: Mapping[str, str]) -> None:
    known: dict[str, int] = {}
    features = getattr(made, "n_features_in_", None)
    if isinstance(features, (int, np.integer)) and not isinstance(features, bool):
        known["d"] = int(features)
    for key, axes in shapes.items():
        array = getattr(made, key, None)
        if not isinstance(array, np.ndarray):
            continue
        letters = axes.split()
        rest = letters[-1] == "*"
        letters = letters[:-1] if rest else letters
        if array.ndim < len(letters) or (array.ndim > len(letters) and not rest):
            raise ModelError(f"{key} has shape {array.shape}; it should be ({', '.join(axes.split())})")
        for letter, n in zip(letters, array.shape, strict=False):
            if known.setdefault(letter, n) != n:
                raise ModelError(
                    f"{key} has shape {array.shape}, which does not fit the rest: {letter} = {known[letter]}"
                )


def check_covariance(S: Any, name: str, *, definite: bool = False) -> None:
    """Symmetric, and no eigenvalue below zero but for rounding: a Cholesky factor exists after a tiny shift.

    A `definite` one has a factor as it is.
    """
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise ModelError(f"{name} must be square, not of shape {S.shape}")
    scale = float(np.abs(S).max(initial=0.0))
    if np.abs(S - S.T).max(initial=0.0) > 1e-8 * scale:
        raise ModelError(f"{name} is not symmetric")
    try:
        np.linalg.cholesky(S if definite else S + (1e-8 * scale + 1e-300) * np.eye(len(S)))
    except np.linalg.LinAlgError:
        raise ModelError(f"{name} is not positive definite") from None


def _check_indices(codes: Any, of: Any, name: str) -> None:
    if not isinstance(codes, np.ndarray) or not codes.size:
        return
    if codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= len(of):
        raise ModelError(f"{name} points at something that is not there")


def _check_factor(made: Any) -> None:
    L = made.L
    if L.ndim != 2 or L.shape[0] != L.shape[1] or not (np.diagonal(L) > 0.0).all():
        raise ModelError("a Cholesky factor is square, with a positive diagonal")


def _check_latent(made: Any) -> None:
    if made.factor.L.shape[0] != len(made.alpha):
        raise ModelError("the factor of a posterior does not fit its points")


def _check_exact(made: Any) -> None:
    if made.factor.L.shape[0] != len(made.Y) or len(made.weights.alpha) != len(made.Y):
        raise ModelError("the factor of a posterior does not fit its points")


def _check_repeats(made: Any) -> None:
    _check_indices(made.which, made.points.Y, "which")
    if len(made.which) != len(made.data.Y):
        raise ModelError("the places of rows do not fit the rows")


def _check_together(made: Any) -> None:
    _check_exact(made)
    if len(made.repeats.points.Y) != len(made.Y):
        raise ModelError("the rows of a posterior do not fit its points")


_CHECKS = {
    "DenseFactor": _check_factor,
    "ExactPosterior": _check_exact,
    "LatentPosterior": _check_latent,
    "Repeats": _check_repeats,
    "TogetherPosterior": _check_together,
}
