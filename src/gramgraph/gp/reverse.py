"""From K⁻¹ to the gradient by the kernel's parameters in the memory of one matrix.

After the factorization A = L Lᵀ in place the lower triangle of A holds K⁻¹, the strict upper one still K. The cotangent
bar_K = U diag(w) Uᵀ − ½ q K⁻¹ is symmetric, so that its lower triangle says everything: it is pulled back some rows at
a time, against the columns up to them. No term of a sum, no factor of a product keeps a matrix.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._threads import at_once
from gramgraph.kernels.inputs import count, take
from gramgraph.kernels.stationary import FAR, RBF, White
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_ROWS = 128
_CUT = 1024  # points from which on the pass of `RBF` is cut in two parts
_MANY = 600  # points from which on memory and time are worth the second look at the kernel


def row_wise(kernel: Kernel | None, X: Any) -> bool:
    """Whether rows of the Gram matrix may be made anew: many vectors, and no noise inside of products or maps."""
    return kernel is not None and isinstance(X, np.ndarray) and X.ndim == 2 and len(X) >= _MANY and not _noisy(kernel)


def _noisy(kernel: Any) -> bool:
    if isinstance(kernel, White):
        return True
    return any(_noisy(part.value) for part in kernel._parts() if part.declared is None)


def cotangent_rows(A: FloatArray, U: FloatArray, w: FloatArray, q: int, start: int, stop: int) -> FloatArray:
    """Rows of bar_K up to the diagonal; entries left of it are doubled, as their mirror images are left out."""
    bar = np.multiply(A[start:stop, :stop], -float(q))
    bar += (U[start:stop] * (2.0 * w)) @ U[:stop].T
    corner = bar[:, start:]
    corner[np.triu_indices(stop - start, 1)] = 0.0
    corner[np.diag_indices(stop - start)] *= 0.5
    return bar


def by_rows(kernel: Kernel, X: Any, A: FloatArray, U: FloatArray, w: FloatArray, q: int) -> tuple[FloatArray, float]:
    """∂/∂theta (p,), and Σ bar_K ∘ K. O(n²) a parameter; memory for some rows."""
    theta, total = np.zeros(len(kernel.theta)), 0.0
    n = count(X)
    for start in range(0, n, _ROWS):
        stop = min(n, start + _ROWS)
        bar = cotangent_rows(A, U, w, q, start, stop)
        K, pull = kernel.pullback(take(X, slice(start, stop)), take(X, slice(0, stop)))
        total += float(np.vdot(bar, K))
        theta += pull(bar).theta
    return theta, total


def rbf_moments(
    kernel: RBF, X: FloatArray, A: FloatArray, U: FloatArray, w: FloatArray, q: int
) -> tuple[FloatArray, float]:
    """The same for `RBF` times any number, with K read from the upper triangle: one pass in compiled code."""
    from gramgraph._numerics.gram.packed_rbf_pull import rbf_half_pull

    points = X / kernel.length_scale
    points -= points.mean(0)  # sums of squares that are near each other lose fewer digits
    if np.abs(points).max() > FAR:
        return by_rows(kernel, X, A, U, w, q)
    n, d = X.shape
    half = round(0.5**0.5 * n) if n >= _CUT else n  # as many entries of the triangle above as below
    parts = [(0, half), (half, n)] if half < n else [(0, n)]
    sums, products = np.zeros((len(parts), n)), np.zeros((len(parts), d))
    U, points_t = np.ascontiguousarray(U.T), np.ascontiguousarray(points.T)
    shared = A, U, w, float(q), points_t
    at_once(*(
        partial(rbf_half_pull, *shared, *rows, sums[i], products[i]) for i, rows in enumerate(parts)
    ))  # fmt: skip
    sums, products = sums.sum(axis=0), products.sum(axis=0)
    moments = 2.0 * (sums @ (points * points) - 2.0 * products)
    slope = moments if np.ndim(kernel.length_scale) == 1 else float(moments.sum())
    return kernel.cotangent({"length_scale": slope / kernel.length_scale}).theta, float(sums.sum())
