"""Gram matrices of sparse rows: kernels of inner products and distances read the sparse product X Yᵀ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def dense(X: Any) -> Any:
    """A sparse matrix as an array; other points as they are."""
    return X.toarray() if is_sparse(X) else X


def sparse_gram(kernel: Kernel, X: Any, Y: Any | None) -> FloatArray:
    """K(X, Y) where at least one of them is sparse.

    Linear, polynomial, sigmoid and RBF kernels cost one sparse product and one (n, m) matrix; for others the rows are
    made dense, 8 (n + m) d bytes.
    """
    from gramgraph.kernels import RBF, Linear, Polynomial, Sigmoid

    if type(kernel) not in (RBF, Linear, Polynomial, Sigmoid):
        return kernel.gram(dense(X), None if Y is None else dense(Y))
    if isinstance(kernel, RBF):
        scale = 1.0 / np.asarray(kernel.length_scale, dtype=np.float64)
        X, Y = _scaled(X, scale), None if Y is None else _scaled(Y, scale)
    K = products(X, X if Y is None else Y)
    if isinstance(kernel, RBF):
        x = squares(X)
        K *= -2.0
        K += x[:, None]
        K += x if Y is None else squares(Y)
        np.maximum(K, 0.0, out=K)
        if Y is None:
            np.fill_diagonal(K, 0.0)
        K *= -0.5
        return np.exp(K, out=K)
    return _of_products(kernel, K)


def sparse_diag(kernel: Kernel, X: Any, rows: int = 1024) -> FloatArray:
    """k(x, x) of sparse rows."""
    from gramgraph.kernels import RBF, Linear, Polynomial, Sigmoid

    if isinstance(kernel, RBF):
        return np.ones(X.shape[0])
    if type(kernel) in (Linear, Polynomial, Sigmoid):
        return _of_products(kernel, squares(X))
    parts = [kernel.diag(X[i : i + rows].toarray()) for i in range(0, X.shape[0], rows)]
    return np.concatenate(parts) if parts else np.zeros(0)


def sparse_variance(X: Any, weight: FloatArray | None = None) -> tuple[float, float]:
    """Mean and variance of all entries, rows weighted; in O(nnz)."""
    n, d = X.shape
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    total = float(w.sum()) * d
    mean = float(w @ np.asarray(X.sum(axis=1)).ravel()) / total
    second = float(w @ squares(X)) / total
    return mean, max(second - mean**2, 0.0)


def _of_products(kernel: Any, S: FloatArray) -> FloatArray:
    from gramgraph.kernels import Polynomial, Sigmoid

    if isinstance(kernel, Polynomial):
        return np.asarray((kernel.scale * S + kernel.offset) ** kernel.degree)
    return np.tanh(kernel.scale * S + kernel.offset) if isinstance(kernel, Sigmoid) else S


def products(X: Any, Y: Any) -> FloatArray:
    """X Yᵀ as an array, where at least one of them is sparse."""
    found = X @ Y.T if is_sparse(X) else (Y @ X.T).T
    return np.array(dense(found), dtype=np.float64, order="C")


def squares(X: Any) -> FloatArray:
    """|x|² of every row."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def _scaled(X: Any, scale: FloatArray) -> Any:
    return X.multiply(scale).tocsr() if is_sparse(X) and scale.ndim else X * scale
