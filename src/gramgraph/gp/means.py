"""Mean functions of Gaussian processes: fixed, or linear in weights whose prior is vague, Gaussian or absent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.kernels.inputs import as_points, count
from gramgraph.kernels.maps import Map
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.gp.bases import Basis
    from gramgraph.kernels.base import Kernel

#: "vague": weights integrated out under a flat prior; "ml": weights at their best point; (b, B): a Gaussian prior.
WeightPrior: TypeAlias = "Literal['vague', 'ml'] | tuple[Any, Any]"
MEAN_NAMES = ("zero", "constant", "linear")


@dataclass(frozen=True)
class Mean:
    """m(x) = 0, and the base of the other means: m(x) = fixed(x) + h(x)ᵀβ.

    `prior` says what is known of β before the data: "vague" (a flat prior, integrated out: the restricted
    likelihood), "ml" (no prior: the best point, without uncertainty), or (b, B), the mean and covariance of a
    Gaussian.

    Parameters
    ----------
    prior : what is known of β before the data: "vague", "ml", or (mean, covariance).

    Examples
    --------
    >>> Mean().basis([[1.0], [2.0]]).shape
    (2, 0)
    """

    prior: WeightPrior = "vague"

    def __post_init__(self) -> None:
        if isinstance(self.prior, str):
            if self.prior not in ("vague", "ml"):
                hint = did_you_mean(self.prior, ("vague", "ml"))
                raise ModelError(f"prior must be 'vague', 'ml' or a pair (b, B); it is {self.prior!r}.{hint}")
        elif not isinstance(self.prior, tuple) or len(self.prior) != 2:
            raise ModelError(f"prior must be 'vague', 'ml' or a pair (b, B); it is {self.prior!r}.")

    def fixed(self, X: Any) -> FloatArray | None:
        """The part without weights, (n,) or (n, q); None is zero."""
        return None

    def basis(self, X: Any) -> FloatArray:
        """H with one row h(x) a point, (n, k)."""
        return np.zeros((count(X), 0))

    def weight_prior(self, k: int) -> tuple[FloatArray, FloatArray] | None:
        """b (k,) and B (k, k) of a Gaussian prior; None for "vague" and "ml"."""
        if isinstance(self.prior, str):
            return None
        b = np.broadcast_to(np.asarray(self.prior[0], dtype=float), (k,)).copy()
        given = np.asarray(self.prior[1], dtype=float)
        B = given if given.ndim == 2 else np.diag(np.broadcast_to(given, (k,)))
        if B.shape != (k, k):
            raise ModelError(f"prior: B must be ({k}, {k}) for {k} weights; its shape is {B.shape}.")
        try:
            np.linalg.cholesky(B)
        except np.linalg.LinAlgError:
            raise ModelError("prior: the covariance B of the weights must be positive definite.") from None
        return b, B


@dataclass(frozen=True)
class ConstantMean(Mean):
    """m(x) = β, one number, learned.

    Parameters
    ----------
    prior : what is known of β before the data: "vague", "ml", or (mean, covariance).

    Examples
    --------
    >>> ConstantMean().basis([[1.0], [2.0]])
    array([[1.],
           [1.]])
    """

    def basis(self, X: Any) -> FloatArray:
        """A column of ones."""
        return np.ones((count(X), 1))


@dataclass(frozen=True)
class LinearMean(Mean):
    """m(x) = β₀ + βᵀx, learned.

    Parameters
    ----------
    prior : what is known of β before the data: "vague", "ml", or (mean, covariance).

    Examples
    --------
    >>> LinearMean().basis([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    def basis(self, X: Any) -> FloatArray:
        """1 and the columns of X."""
        X = as_points(X)
        return np.concatenate([np.ones((len(X), 1)), X], axis=1)


@dataclass(frozen=True)
class BasisMean(Mean):
    """m(x) = h(x)ᵀβ for any basis: a `Basis` of gramgraph.gp.bases or a function X ↦ (n, k).

    Parameters
    ----------
    prior : what is known of β before the data: "vague", "ml", or (mean, covariance).
    features : a `Basis`, or a function from X to (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> BasisMean(features=lambda X: np.hstack([X, X**2])).basis(np.array([[2.0]]))
    array([[2., 4.]])
    """

    features: Basis | Callable[[Any], Any] | None = None

    def basis(self, X: Any) -> FloatArray:
        """Features of the points."""
        if self.features is None:
            raise ModelError("BasisMean needs features=: a basis or a function of X that gives (n, k).")
        transform: Any = getattr(self.features, "transform", self.features)
        H = np.asarray(transform(X), dtype=np.float64)
        if H.ndim != 2 or len(H) != count(X):
            raise ModelError(f"the features of a mean must have shape ({count(X)}, k); they have {H.shape}.")
        return H


@dataclass(frozen=True)
class FixedMean(Mean):
    """m(x) = function(X), known beforehand.

    Parameters
    ----------
    prior : what is known of β before the data: "vague", "ml", or (mean, covariance).
    function : X to (n,).

    Examples
    --------
    >>> FixedMean(function=lambda X: X[:, 0]).fixed([[1.0], [2.0]])
    array([1., 2.])
    """

    function: Callable[[Any], Any] | None = None

    def fixed(self, X: Any) -> FloatArray | None:
        """Values of the function."""
        if self.function is None:
            raise ModelError("FixedMean needs function=: a function of X that gives (n,) or (n, q).")
        found = np.asarray(self.function(as_points(X) if not isinstance(X, (tuple, list)) or _numbers(X) else X))
        if found.ndim not in (1, 2) or len(found) != count(X):
            raise ModelError(f"a fixed mean must give ({count(X)},) or ({count(X)}, q); it gave {found.shape}.")
        return found.astype(float)


def _numbers(X: Any) -> bool:
    return not isinstance(X, tuple) and np.asarray(X).dtype.kind in "fiub"


def as_mean(spec: Any) -> Mean:
    """The mean of an estimator's `mean=`: None, a name, a `Mean`, or a fixed function of X.

    >>> as_mean("linear")
    LinearMean(prior='vague')
    """
    if spec is None or (isinstance(spec, str) and spec == "zero"):
        return Mean()
    if isinstance(spec, Mean):
        return spec
    if isinstance(spec, str):
        if spec not in MEAN_NAMES:
            raise ModelError(
                f"{spec!r} is not a mean. Names: {', '.join(MEAN_NAMES)}.{did_you_mean(spec, MEAN_NAMES)} "
                f"Others are values: gg.gp.BasisMean(features=…)."
            )
        return ConstantMean() if spec == "constant" else LinearMean()
    if callable(spec):
        return FixedMean(function=spec)
    raise ModelError(f"mean must be None, a name, a Mean or a function of X; it is {spec!r}.")


# ------------------------------------------------------------------------------ behind a likelihood

#: Deviation, in logits, of a flat prior's stand-in where weights are integrated out behind a likelihood.
_WIDE = 10.0


@dataclass(frozen=True, eq=False)
class KnownMean:
    """The part of a mean that is known: fixed(x) + h(x)ᵀb; of fixed means with several columns, one of them, or the
    difference of two."""

    mean: Mean
    weights: FloatArray  # (k,)
    column: int | None = None
    minus: int | None = None

    def at(self, X: Any) -> FloatArray:
        """Its values, (n,)."""
        out = np.zeros(count(X))
        found = self.mean.fixed(X)
        if found is not None and found.ndim == 2:
            if self.column is None or self.column >= found.shape[1]:
                raise ModelError(f"the mean gives {found.shape[1]} columns: one, or one for each class is needed")
            out += found[:, self.column] - (0.0 if self.minus is None else found[:, self.minus])
        elif found is not None and self.minus is None:
            out += found
        return out if not len(self.weights) else out + self.mean.basis(X) @ self.weights


@dataclass(frozen=True, eq=False, repr=False)
class MeanFeatures(Map):
    """x ↦ Lᵀh(x), whose inner products are the covariance of h(x)ᵀβ for β of covariance L Lᵀ."""

    mean: Mean
    root: FloatArray  # (k, k)

    def __call__(self, X: Any) -> FloatArray:
        """H L, (n, k)."""
        return np.asarray(self.mean.basis(X) @ self.root)

    def pull(self, X: Any, bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By differences, as of a plain function."""
        from gramgraph.kernels.maps import FunctionMap

        return FunctionMap(self).pull(X, bar)

    def formula(self, digits: int | None = None) -> str:
        """The name of the mean."""
        return type(self.mean).__name__


def kernel_of_weights(mean: Mean, X: Any) -> tuple[Kernel | None, FloatArray]:
    """(covariance of h(x)ᵀβ as a kernel without parameters, the weights' prior mean b); (None, empty) without weights.

    Weights behind a likelihood are integrated out as a part of the process. A flat prior has no evidence there:
    "vague" is a Gaussian of ten logits for a feature in units of its spread.

    >>> import numpy as np
    >>> kernel, b = kernel_of_weights(LinearMean(prior=(0.0, 2.0)), np.zeros((3, 1)))
    >>> kernel.gram(np.array([[1.0], [3.0]])).tolist(), b.tolist()
    ([[4.0, 8.0], [8.0, 20.0]], [0.0, 0.0])
    """
    from gramgraph.kernels.dot_product import Linear

    H = mean.basis(X)
    k = H.shape[1]
    if not k:
        return None, np.zeros(0)
    if mean.prior == "ml":
        raise ModelError(
            "prior='ml': weights of a mean behind a likelihood are integrated out; give prior='vague' or (b, B)."
        )
    given = mean.weight_prior(k)
    if given is None:
        spread = H.std(axis=0)
        size = np.where(spread > 1e-12 * np.abs(H).max(axis=0), spread, np.abs(H).max(axis=0))
        given = np.zeros(k), np.diag((_WIDE / np.where(size > 0.0, size, 1.0)) ** 2)
    root: FloatArray = np.asarray(np.linalg.cholesky(given[1]), dtype=np.float64)
    return Linear().warp(MeanFeatures(mean, root)), given[0]
