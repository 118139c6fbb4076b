"""What the kernel machines share: one reading of `kernel=`, of points, and of kernel parameters by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from gramgraph.estimators._reading import read_points
from gramgraph.estimators._sound import LARGEST, SoundNumbers, read_matrix, scale_the_columns
from gramgraph.estimators._sparse import dense, is_sparse, sparse_diag, sparse_gram, sparse_variance
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.kernels.fields import with_kernel_parameters
from gramgraph.kernels.inputs import count
from gramgraph.kernels.tables import own_copy
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

__all__ = [
    "KERNEL_NAMES",
    "KernelEstimator",
    "KernelSpec",
    "ResolvedKernel",
    "check_gram",
    "check_option",
    "check_positive",
    "gamma_value",
    "is_kernel",
    "resolve_kernel",
]

#: A kernel value, a name of `KERNEL_NAMES`, or a function (X, Y) ↦ (n, m) matrix.
KernelSpec: TypeAlias = "Kernel | str | Callable[[Array, Array], Array]"
KERNEL_NAMES = ("linear", "poly", "precomputed", "rbf", "sigmoid")
_ROWS = 1024  # rows of a block where a whole matrix would not fit


@dataclass(frozen=True)
class ResolvedKernel:
    """A kernel ready to be evaluated, whatever form it was given in.

    `value` is the kernel as a value (with gradients, `theta`, spectral samples); None for functions and for
    precomputed matrices, where "points" are rows of the matrix and `gram(X)` is X itself, not a copy.
    """

    value: Kernel | None = None
    function: Callable[[Array, Array], Array] | None = None

    @property
    def precomputed(self) -> bool:
        """Whether points are rows of a Gram matrix."""
        return self.value is None and self.function is None

    def gram(self, X: Any, Y: Any | None = None) -> FloatArray:
        """K(X, Y), (n, m); without Y the symmetric K(X, X). A new matrix unless precomputed."""
        if self.value is not None:
            return sparse_gram(self.value, X, Y) if is_sparse(X) or is_sparse(Y) else self.value.gram(X, Y)
        if self.function is None:
            return np.asarray(dense(X), dtype=np.float64)
        X, Y = dense(X), dense(Y)
        other = X if Y is None else Y
        K = np.array(self.function(X, other), dtype=np.float64)
        if K.shape != (len(X), len(other)):
            raise ModelError(
                f"kernel: a function is called with two matrices and returns their Gram matrix, here of shape "
                f"{(len(X), len(other))}; it returned shape {K.shape}. What helps: gg.kernels.FunctionKernel takes a "
                f"function of two points."
            )
        return K

    def diag(self, X: Any) -> FloatArray:
        """k(x, x) of every point; for a precomputed matrix its diagonal."""
        if self.value is not None:
            return sparse_diag(self.value, X) if is_sparse(X) else self.value.diag(X)
        if self.function is None:
            return np.diagonal(np.asarray(dense(X), dtype=np.float64)).copy()
        X = dense(X)
        return np.array([self.gram(X[i : i + 1])[0, 0] for i in range(len(X))])


def is_kernel(kernel: object) -> bool:
    """Whether this is a kernel value of `gg.kernels`."""
    from gramgraph.kernels.base import Kernel

    return isinstance(kernel, Kernel)


def resolve_kernel(
    kernel: KernelSpec,
    X: Any = None,
    *,
    gamma: float | str | None = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    sample_weight: FloatArray | None = None,
) -> ResolvedKernel:
    """The kernel of an estimator's `kernel=`: a value, one of `KERNEL_NAMES`, or a function.

    rbf: exp(−γ |x − x′|²); poly: (γ xᵀx′ + coef0)^degree; sigmoid: tanh(γ xᵀx′ + coef0), not always positive
    definite. X, the training points, serves gamma="scale" and "auto"
    (with sample weights, as if points were repeated).
    """
    if callable(kernel) and not is_kernel(kernel):
        return ResolvedKernel(function=kernel)
    if not isinstance(kernel, str):
        if not is_kernel(kernel):
            raise ModelError(
                f"kernel must be a kernel value such as gg.kernels.RBF(0.5), a name ({listing(KERNEL_NAMES)}) or a "
                f"function of two matrices; it is {kernel!r}."
            )
        return ResolvedKernel(value=kernel)  # type: ignore[arg-type]
    if kernel == "precomputed":
        return ResolvedKernel()
    if kernel not in KERNEL_NAMES:
        raise ModelError(
            f"{kernel!r} is not a kernel. Names: {listing(KERNEL_NAMES)}.{did_you_mean(kernel, KERNEL_NAMES)} "
            f"Others are values: gg.kernels.Matern(nu=1.5)."
        )
    from gramgraph import kernels

    if kernel == "linear":
        return ResolvedKernel(value=kernels.Linear())
    g = gamma_value(gamma, X, sample_weight)
    if kernel == "rbf":
        return ResolvedKernel(value=kernels.RBF(length_scale=float(1.0 / np.sqrt(2.0 * g))))
    if kernel == "sigmoid":
        return ResolvedKernel(value=kernels.Sigmoid(scale=g, offset=float(coef0)))
    if not isinstance(degree, (int, np.integer)) or degree < 1:
        raise ModelError(f"degree must be an integer of at least 1; it is {degree!r}.")
    return ResolvedKernel(value=kernels.Polynomial(degree=int(degree), offset=float(coef0), scale=g))


def gamma_value(gamma: float | str | None, X: Any, sample_weight: FloatArray | None = None) -> float:
    """γ as a number: "scale" is 1 / (d · Var X), "auto" and None are 1 / d; 1 for constant data."""
    if isinstance(gamma, str) and gamma not in ("scale", "auto"):
        raise ModelError(f"gamma must be a positive number, 'scale', 'auto' or None; it is {gamma!r}.")
    if gamma is None or isinstance(gamma, str):
        points = X if is_sparse(X) else np.asarray(X, dtype=np.float64)
        spread = _spread(points, sample_weight) if gamma == "scale" else 1.0
        found = 1.0 / (points.shape[1] * spread) if spread > 0.0 else 1.0
        if not 0.0 < found < np.inf:
            raise scale_the_columns("gamma='scale': the variance of X is beyond the range of floating point.", points)
        return found
    check_positive("gamma", gamma)
    return float(gamma)


def _spread(points: Any, sample_weight: FloatArray | None) -> float:
    """Variance of all entries; 0 for those that are constant up to rounding, tiny where it underflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(points):
            mean, spread = sparse_variance(points, sample_weight)
        elif sample_weight is None:
            mean, spread = float(points.mean()), float(points.var())
        else:
            mean = float(np.average(points, axis=0, weights=sample_weight).mean())
            spread = float(np.average((points - mean) ** 2, axis=0, weights=sample_weight).mean())
    if not np.isfinite(mean) or not np.isfinite(spread):
        return np.inf
    if spread < 1e-300 and not is_sparse(points) and points.size:  # squares that underflow are no constant columns
        reach = float(np.abs(points).max())
        return 5e-324 if 0.0 < reach < 1e-140 and _spread(points / reach, sample_weight) > 0.0 else spread
    return spread if abs(mean) < 1e-150 or spread > 1e-20 * mean**2 else 0.0  # constant up to rounding


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """`value` as a float, which must be positive (or zero where that is allowed) and finite."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ModelError(f"{name} must be a {'non-negative' if zero else 'positive'} number; it is {value!r}.")
    return float(value)


def check_option(name: str, value: object, options: tuple[object, ...]) -> None:
    """`value` must be one of the options."""
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        hint = did_you_mean(value, [str(option) for option in options])
        raise ModelError(f"{name} must be one of {listing([repr(o) for o in options])}; it is {value!r}.{hint}")


def check_gram(K: FloatArray) -> None:
    """A precomputed training matrix must be square and symmetric; O(n²), in blocks of rows."""
    if K.shape[0] != K.shape[1]:
        raise ModelError(
            f"kernel='precomputed': the training matrix must be square, points by points; its shape is {K.shape}."
        )
    scale = max(float(np.abs(np.diagonal(K)).max(initial=0.0)), 1e-300)
    for start in range(0, len(K), _ROWS):
        rows = slice(start, start + _ROWS)
        off = np.abs(K[rows] - K[:, rows].T).max()
        if off > 1e-8 * scale:
            raise ModelError(
                f"kernel='precomputed': the training matrix must be symmetric; entries differ from their mirror images "
                f"by up to {off:.3g}. What helps: pass k(X, X) of the training points, or (K + K.T) / 2."
            )


class KernelEstimator(SoundNumbers, BaseEstimator):
    """Base of estimators with a `kernel` parameter: points are checked here, the kernel is resolved here.

    With a kernel value, its fields are parameters of the estimator too: `kernel__length_scale` in a grid search.
    """

    kernel: Any
    #: What becomes of sparse matrices: None refuses them, "dense" makes them dense, "keep" hands them on as they are.
    _sparse_rows: str | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also the fields of a kernel value, as `kernel__…`."""
        found: dict[str, Any] = super().get_params(deep=deep)
        return found

    def set_params(self, **params: Any) -> KernelEstimator:
        """Set parameters; `kernel__…` replaces a field of the kernel (a new value: kernels do not change)."""
        own = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**own)
        inner: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if rest:
                inner.setdefault(head, {})[rest] = value
        for head, changes in inner.items():
            value = getattr(self, head, None)
            if hasattr(value, "set_params") and not is_kernel(value):  # of scikit-learn, which changes in place
                super().set_params(**{f"{head}__{name}": new for name, new in changes.items()})
                continue
            if not is_kernel(value):
                raise ValueError(
                    f"Invalid parameter {head!r} for estimator {type(self).__name__}: {head}__… names a field of a "
                    f"kernel value, but {head} is {value!r}."
                )
            setattr(self, head, with_kernel_parameters(value, changes))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse_rows is not None
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _resolve(self, X: Any, sample_weight: FloatArray | None = None) -> ResolvedKernel:
        return resolve_kernel(
            self.kernel,
            X,
            gamma=getattr(self, "gamma", "scale"),
            degree=getattr(self, "degree", 3),
            coef0=getattr(self, "coef0", 1.0),
            sample_weight=sample_weight,
        )

    def _points(self, X: Any, *, reset: bool, least: int = 1, keep: bool = False) -> Any:
        """X as a float matrix; points of other kinds (words, sets, graphs, mixed columns) as their kernel reads them.

        With `keep` they are the estimator's own: whatever becomes of the caller's array does not change the model. A
        frame whose columns a kernel asks for by name, or that holds more than numbers, becomes a `Table`: its columns
        are found by name, whatever their order. Sparse matrices stay so or are made dense, as the class says.
        """
        value = self.kernel if not isinstance(self.kernel, str) and is_kernel(self.kernel) else None
        if value is not None and (found := read_points(self, value, X, reset=reset)) is not None:
            if count(found) < least:
                raise ValueError(
                    f"Found {count(found)} point(s) while a minimum of {least} is required by {type(self).__name__}."
                )
            return own_copy(found, X) if keep else found
        sparse: Any = False if self._sparse_rows is None else "csr"
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        X = read_matrix(
            self,
            X,
            limit=self._limit(),
            reset=reset,
            dtype=np.float64,
            order="C",
            accept_sparse=sparse,
            ensure_min_samples=least,
            copy=keep,  # only where reading has not made a copy already
        )
        if self._sparse_rows == "dense" or precomputed:
            X = dense(X)
        if reset and precomputed:
            check_gram(X)
        return X

    def _limit(self) -> float:
        """The largest number a matrix may hold: kernel values divide by their own scales, matrices are kernels."""
        named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        return LARGEST if named or self.kernel is None else np.inf

    def _targets(self, y: Any, n: int, *, keep: bool = False) -> FloatArray:
        """y as floats with one or two axes and n rows; with `keep`, in memory of the estimator's own."""
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} learns from targets."
            )
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self, copy=keep)
        if y.ndim > 2 or len(y) != n:
            raise ValueError(
                f"y must have shape ({n},) or ({n}, t), as X has {n} points; its shape is {y.shape}: inconsistent "
                f"numbers of samples."
            )
        return y
