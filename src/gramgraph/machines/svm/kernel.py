"""The kernel of a support vector machine, as the user names it, turned into something that can be evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.machines.kernels import gamma_value
from gramgraph.machines.sparse import dense, is_sparse, products, squares
from gramgraph.machines.svm.products import PowerRows, SparseRows, raised
from gramgraph.machines.svm.rows import GramRows, KernelRows, RBFRows, Source, rbf_block, rbf_columns
from gramgraph.typing import Array, FloatArray

KERNELS = ("linear", "poly", "precomputed", "rbf", "sigmoid")
_CHECKED = 2000  # rows of a precomputed matrix on which positive semi-definiteness is tested
_DIAG = 64


@dataclass(frozen=True)
class ChosenKernel:
    """A kernel with its numbers settled; `kind` is one of KERNELS, "value" (a kernel object) or "callable"."""

    kind: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: Any = None

    def gram(self, X: Any, Y: Any) -> Array:
        """K[i, j] = k(x_i, y_j); where one of them is sparse, kernels with a name need no dense rows."""
        if (is_sparse(X) or is_sparse(Y)) and self.reads_products:
            return self._of_squares(products(X, Y), squares(X), squares(Y))
        X, Y = dense(X), dense(Y)
        if self.kind == "rbf":
            return rbf_block(X, rbf_columns(Y, self.gamma), self.gamma)
        if self.kind == "value":
            return np.asarray(self.function.gram(X, Y))
        if self.kind == "callable":
            K = np.asarray(self.function(X, Y), dtype=np.float64)
            if K.shape != (len(X), len(Y)):
                raise ModelError(f"kernel(X, Y) must give a matrix {(len(X), len(Y))}; it gave shape {K.shape}.")
            return K
        return self._of_products(X @ Y.T)

    def prepare_columns(self, Y: Any) -> Any:
        """What `gram_columns` needs of the points Y: looked at once, where many questions follow."""
        if self.kind == "value":
            return self.function.prepare_columns(Y)
        return rbf_columns(Y, self.gamma) if self.kind == "rbf" and not is_sparse(Y) else Y

    def gram_columns(self, X: Any, columns: Any) -> Array:
        """gram(X, Y) with columns = `prepare_columns(Y)`; X is not sparse."""
        if self.kind == "value":
            return np.asarray(self.function.gram_columns(X, columns))
        if self.kind == "rbf" and not is_sparse(columns):
            return rbf_block(X, columns, self.gamma)
        return self.gram(X, columns)

    def _of_products(self, S: Array) -> Array:
        """The kernel from inner products, in their memory."""
        if self.kind == "linear":
            return S
        S *= self.gamma
        S += self.coef0
        if self.kind == "sigmoid":
            return np.tanh(S, out=S)
        return raised(S, self.degree)

    @property
    def reads_products(self) -> bool:
        """Whether inner products are all it needs: such kernels take sparse points as they are."""
        return self.kind in ("linear", "poly", "rbf", "sigmoid")

    def _of_squares(self, S: Array, left: FloatArray, right: FloatArray) -> Array:
        """The kernel from inner products and the squares of both sides, in the memory of S."""
        if self.kind != "rbf":
            return self._of_products(S)
        S *= 2.0
        S -= left[:, None]
        S -= right
        np.minimum(S, 0.0, out=S)
        S *= self.gamma
        return np.exp(S, out=S)

    def source(self, X: Any, n: int) -> Source:
        """Rows over the n training points."""
        if is_sparse(X):
            norms = squares(X)
            diag = np.ones(n) if self.kind == "rbf" else self._of_products(norms.copy())
            return SparseRows(X, norms, diag, self._of_squares, self.kind == "linear")
        if self.kind == "rbf":
            return RBFRows(X, self.gamma)
        if self.kind == "precomputed":
            return GramRows(X)
        if self.kind == "value":
            scaled = _scaled_points(self.function, X)
            return KernelRows(self.gram, X, self.function.diag(X)) if scaled is None else RBFRows(scaled, 0.5)
        if self.kind == "callable":
            pieces = [np.diagonal(self.gram(X[i : i + _DIAG], X[i : i + _DIAG])) for i in range(0, n, _DIAG)]
            return KernelRows(self.gram, X, np.concatenate(pieces).astype(np.float64))
        if self.kind == "linear":
            return PowerRows(X, 1, 1.0, 0.0)
        if self.kind == "poly" and self.degree > 0:
            return PowerRows(X, self.degree, self.gamma, self.coef0)
        return KernelRows(self.gram, X, self._of_products(np.einsum("ij,ij->i", X, X)))


def _scaled_points(kernel: Any, X: Any) -> FloatArray | None:
    """X / length_scale when the kernel is a plain RBF on vectors, for which rows come from one matrix product."""
    from gramgraph.kernels import RBF

    if type(kernel) is not RBF or getattr(kernel, "base", None) is not None or not isinstance(X, np.ndarray):
        return None
    return X / np.asarray(kernel.length_scale, dtype=np.float64)


def choose_kernel(
    kernel: str | Callable[[Any, Any], Any] | Any | None,
    X: Any,
    *,
    gamma: float | str,
    degree: int,
    coef0: float,
) -> ChosenKernel:
    """Settle the kernel; gamma="scale" becomes 1 / (d · variance of X), whatever the weights, as in scikit-learn."""
    if kernel is None:
        kernel = "rbf"
    if hasattr(kernel, "gram") and hasattr(kernel, "diag"):
        return ChosenKernel("value", function=kernel)
    if callable(kernel):
        return ChosenKernel("callable", function=kernel)
    if kernel not in KERNELS:
        raise ModelError(
            f"kernel={kernel!r} is not known. It may be one of {', '.join(KERNELS)}, a kernel of gramgraph.kernels, or "
            f"a function of (X, Y).{did_you_mean(kernel, KERNELS)}"
        )
    if kernel in ("linear", "precomputed"):
        return ChosenKernel(str(kernel))
    if degree < 0 or degree != int(degree):
        raise ModelError(f"degree={degree!r}: expected a whole number, zero or above.")
    return ChosenKernel(str(kernel), _gamma(gamma, X), int(degree), float(coef0))


def _gamma(gamma: float | str, X: FloatArray) -> float:
    if gamma is None or (not isinstance(gamma, str) and not (np.isfinite(gamma) and gamma > 0)):
        raise ModelError(f"gamma={gamma!r}: expected a number above zero, 'scale' or 'auto'.")
    return gamma_value(gamma, X)


def gram_of_matrix(K: FloatArray) -> FloatArray:
    """A precomputed training matrix after checking: square, symmetric, positive semi-definite.

    The last is tested by a Cholesky factor of K + 1e-7 max k(x, x) I, on an even selection of 2,000 rows when there
    are more.
    """
    from scipy.linalg import cho_factor, eigvalsh

    if K.shape[0] != K.shape[1]:
        raise ModelError(
            f"kernel='precomputed' needs the square Gram matrix of the training points; X has shape {K.shape}. "
            "Should be a square kernel matrix."
        )
    scale = float(np.max(np.abs(K), initial=0.0)) or 1.0
    if not np.allclose(K, K.T, rtol=0, atol=1e-6 * scale):
        i, j = np.unravel_index(np.argmax(np.abs(K - K.T)), K.shape)
        raise ModelError(
            f"The precomputed Gram matrix is not symmetric: K[{i}, {j}] = {K[i, j]:g}, K[{j}, {i}] = {K[j, i]:g}."
        )
    chosen = np.linspace(0, len(K) - 1, min(len(K), _CHECKED)).astype(np.int64)
    part = K if len(chosen) == len(K) else K[np.ix_(chosen, chosen)]
    try:
        cho_factor(part + 1e-7 * scale * np.eye(len(part)), lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        least = float(eigvalsh(part, subset_by_index=[0, 0])[0])
        raise ModelError(
            f"The precomputed Gram matrix is not positive semi-definite: an eigenvalue is {least:.3g} (largest entry "
            f"{scale:.3g}). Try: K + {abs(least) * 1.01:.3g} I, or setting negative eigenvalues to zero."
        ) from None
    return K
