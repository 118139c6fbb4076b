"""One reading of `kernel=` for every machine: a value, a name or a function, ready to be evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gramgraph._validation import check_count, check_positive
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.kernels.inputs import count
from gramgraph.machines.checks import scale_the_columns
from gramgraph.machines.sparse import dense, is_sparse, sparse_diag, sparse_gram, sparse_variance
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

#: A kernel value, a name of `KERNEL_NAMES`, or a function (X, Y) ↦ (n, m) matrix.
KernelSpec: TypeAlias = "Kernel | str | Callable[[Array, Array], Array]"
KERNEL_NAMES = ("cosine", "linear", "poly", "precomputed", "rbf", "sigmoid")
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

    def gram(self, X: Any, Y: Any | None = None, *, n_jobs: int = 1) -> FloatArray:
        """K(X, Y), (n, m); without Y the symmetric K(X, X). A new matrix unless precomputed.

        `n_jobs`: threads, for kernel values on dense points.
        """
        if self.value is not None:
            if is_sparse(X) or is_sparse(Y):
                return sparse_gram(self.value, X, Y)
            return self.value.gram(X, Y, n_jobs=n_jobs if count(X) > _ROWS else 1)
        if self.function is None:
            return np.asarray(dense(X), dtype=np.float64)
        X, Y = dense(X), dense(Y)
        other = X if Y is None else Y
        K = np.array(self.function(X, other), dtype=np.float64)
        if K.shape != (len(X), len(other)):
            raise ModelError(
                f"kernel: a function is called with two matrices and returns their Gram matrix, here of shape "
                f"{(len(X), len(other))}; it returned shape {K.shape}. Try: gg.kernels.FunctionKernel takes a "
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

    rbf: exp(−γ |x − x′|²); cosine: xᵀx′ / (|x| |x′|); poly: (γ xᵀx′ + coef0)^degree; sigmoid: tanh(γ xᵀx′ + coef0), not
    always positive definite. X, the training points, serves gamma="scale" and "auto" (with sample weights, as if points
    were repeated).
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
    if kernel == "cosine":
        return ResolvedKernel(value=kernels.Linear().normalized())
    g = gamma_value(gamma, X, sample_weight)
    if kernel == "rbf":
        return ResolvedKernel(value=kernels.RBF(length_scale=float(1.0 / np.sqrt(2.0 * g))))
    if kernel == "sigmoid":
        return ResolvedKernel(value=kernels.Sigmoid(scale=g, offset=float(coef0)))
    check_count("degree", degree)
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
    if spread < 1e-300 and not is_sparse(points) and points.size:  # squares that underflow are not constant columns
        reach = float(np.abs(points).max())
        return 5e-324 if 0.0 < reach < 1e-140 and _spread(points / reach, sample_weight) > 0.0 else spread
    return spread if abs(mean) < 1e-150 or spread > 1e-20 * mean**2 else 0.0  # constant up to rounding


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
                f"by up to {off:.3g}. Try: pass k(X, X) of the training points, or (K + K.T) / 2."
            )
