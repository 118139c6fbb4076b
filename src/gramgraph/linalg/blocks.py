"""Gram matrices and features in blocks, for n beyond memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._validation import check_count
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count, take
from gramgraph.linalg.base import MAX_JITTER, check_finite, check_rows
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_BLOCKED = 48  # features from which on blocks in registers are faster than BLAS


def select(X: Any, rows: Sequence[int] | Array) -> Any:
    """The points with the given numbers, of a matrix, a frame, a list, or a tuple of parts."""
    if isinstance(X, tuple):
        return tuple(select(part, rows) for part in X)
    if hasattr(X, "iloc"):
        return X.iloc[np.asarray(rows)]
    return X[np.asarray(rows)] if isinstance(X, np.ndarray) else [X[int(i)] for i in rows]


def kernel_matvec(
    kernel: Kernel,
    X: Any,
    Y: Any | None,
    v: Array,  # (m,) or (m, q)
    *,
    block: int = 2048,
) -> FloatArray:
    """k(X, Y) v without the Gram matrix: tiles of at most block × block entries, always in the same order.

    Y = None means the points X themselves, and noise on the diagonal counts only then, as in `Kernel.gram`.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    Y : the second points, one per row; None for those of X.
    v : (m,) or (m, q) to multiply with.
    block : rows and columns of a tile, at most.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> v = kernel_matvec(RBF(), X, None, np.ones(50), block=16)
    >>> bool(np.allclose(v, RBF().gram(X).sum(axis=1)))
    True
    """
    check_count("block", block)
    X = kernel.prepare(X)
    same = Y is None
    Y = X if same else kernel.prepare(Y)
    n, m = count(X), count(Y)
    v = np.asarray(check_rows(v, m, "v"), dtype=float)
    out = np.zeros((n, *v.shape[1:]))
    for i in range(0, n, block):
        rows = slice(i, min(n, i + block))
        points = take(X, rows)
        for j in range(0, m, block):
            columns = slice(j, min(m, j + block))
            K = kernel.gram(points) if same and i == j else kernel.gram(points, take(Y, columns))
            out[rows] += K @ v[columns]
    return out


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sufficient statistics of linear regression on features: G = ΦᵀΦ, c = Φᵀy, yᵀy and n. Sums add up.

    Parameters
    ----------
    G : (r, r) ΦᵀΦ.
    c : (r,) or (r, q) Φᵀy.
    yy : Σ y² of each target.
    n : number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> Phi, y = np.array([[1.0], [2.0], [3.0]]), np.array([2.0, 4.0, 6.0])
    >>> whole = FeatureSums.of(Phi[:2], y[:2]) + FeatureSums.of(Phi[2:], y[2:])
    >>> whole.weights(0.5), whole.n
    (array([1.93103448]), 3)
    """

    G: FloatArray  # (r, r)
    c: FloatArray  # (r,) or (r, q)
    yy: FloatArray | float  # Σ y² a target
    n: int

    @classmethod
    def of(cls, Phi: Array, y: Array, weights: Array | None = None) -> FeatureSums:
        """The sums of one block, n r² operations; with weights wᵢ, Φᵀ diag(w) Φ and Φᵀ diag(w) y."""
        total = RunningSums()
        total.add(Phi, y, weights)
        return total.finish()

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return FeatureSums(self.G + other.G, self.c + other.c, self.yy + other.yy, self.n + other.n)

    def factor(self, reg: float, *, max_jitter: float = MAX_JITTER) -> DenseFactor:
        """The Cholesky factor of ΦᵀΦ + reg·I, r³/3 operations."""
        if not 0.0 <= reg < np.inf:
            raise ModelError(f"reg must be a finite number that is not negative; it is {reg}.")
        check_finite(self.G, "ΦᵀΦ")
        A = self.G.copy()
        A[np.diag_indices_from(A)] += reg
        L, jitter = factor_lower(A, max_jitter=max_jitter, what="ΦᵀΦ + reg·I")
        return DenseFactor(L, jitter)

    def weights(self, reg: float) -> FloatArray:
        """(ΦᵀΦ + reg·I)⁻¹ Φᵀy."""
        return self.factor(reg).solve(self.c)


class RunningSums:
    """`FeatureSums` in the making: blocks are added in place, in one triangle, and mirrored once at the end."""

    def __init__(self) -> None:
        self._half: FloatArray | None = None  # of [Φ y]ᵀ[Φ y]
        self._flat = True
        self._n = self._r = self._t = 0

    def add(self, Phi: Array, y: Array, weights: Array | None = None) -> None:
        """Add one block of rows."""
        Phi = np.ascontiguousarray(Phi, dtype=float)
        y = np.asarray(check_rows(y, Phi.shape[0], "y"), dtype=float)
        root = np.empty(0) if weights is None else np.sqrt(np.asarray(weights, dtype=float))
        Y = np.ascontiguousarray(y.reshape(len(y), -1) if y.size else y.reshape(len(y), *y.shape[1:] or (1,)))
        shape = (Phi.shape[1], Y.shape[1])
        if self._half is None:
            self._r, self._t = shape
            self._flat = y.ndim == 1
        elif shape != (self._r, self._t):
            raise ModelError(
                f"A block has {shape[0]} features and {shape[1]} targets; those before it have {self._r} and {self._t}."
            )
        self._add_products(Phi, Y, root)
        self._n += Phi.shape[0]

    def _add_products(self, Phi: FloatArray, Y: FloatArray, root: FloatArray) -> None:
        if self._r >= _BLOCKED:
            from gramgraph._numerics.gram.products import add_products, lower_blocks

            self._half = lower_blocks(self._r + self._t) if self._half is None else self._half
            add_products(Phi.reshape(-1), self._r, Y.reshape(-1), self._t, root, self._half)
            return
        from scipy.linalg.blas import dsyrk

        size = self._r + self._t
        self._half = np.zeros((size, size), order="F") if self._half is None else self._half
        if len(Phi) and size:  # the transpose of a C-ordered block is Fortran-ordered: no copy
            rows = np.concatenate([Phi, Y], axis=1)
            rows = rows * root[:, None] if root.size else rows
            dsyrk(1.0, rows.T, beta=1.0, c=self._half, lower=1, overwrite_c=1)

    def finish(self) -> FeatureSums:
        """The sums so far."""
        if self._half is None:
            raise ModelError("The stream has no blocks: at least one pair (X, y) is needed.")
        r = self._r
        whole = np.empty((r + self._t, r + self._t))
        if r >= _BLOCKED:
            from gramgraph._numerics.gram.products import unfold

            unfold(self._half, whole)
        else:
            whole[:] = self._half + np.tril(self._half, -1).T
        c, yy = whole[:r, r:].copy(), whole.diagonal()[r:].copy()
        return FeatureSums(whole[:r, :r].copy(), c[:, 0] if self._flat else c, yy[0] if self._flat else yy, self._n)


def accumulate(
    blocks: Iterable[tuple[Any, Array]],
    transform: Callable[[Any], Array] | None = None,
) -> FeatureSums:
    """The sums over a stream of blocks (X, y), with Φ = transform(X) made one block at a time.

    Memory: one block of features and two (r, r) matrices, whatever the number of rows; blocks are added in their order.

    Parameters
    ----------
    blocks : pairs (X, y), read once.
    transform : X to its features Φ.

    Examples
    --------
    >>> import numpy as np
    >>> stream = ((np.full((2, 1), float(i)), np.ones(2)) for i in range(3))
    >>> accumulate(stream).G
    array([[10.]])
    """
    total = RunningSums()
    for X, y in blocks:
        total.add(X if transform is None else transform(X), y)
    return total.finish()
