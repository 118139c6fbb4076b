"""Gram matrices that are only multiplied with vectors, and the ends of their spectra by Lanczos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gramgraph._numerics.gram.packed_gram import product, put_rows
from gramgraph._threads import in_threads
from gramgraph.machines.kernels import ResolvedKernel
from gramgraph.typing import FloatArray

_MANY = 1000  # points from which threads are worth their start


@dataclass(frozen=True, eq=False)
class HalfGram:
    """A symmetric Gram matrix as its lower triangle, row after row, in six bytes an entry: 3 n² bytes.

    Entries keep 11 digits (relative error at most 7e-12). Half the traffic a product, and less than half the memory.
    """

    high: Any  # (n (n + 1) / 2,) uint32, the upper bits of the entries
    low: Any  # (n (n + 1) / 2,) uint16, the next ones
    diag: FloatArray  # (n,)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.diag)

    @classmethod
    def of(cls, kernel: ResolvedKernel, X: Any, block: int = 64, n_jobs: int = 1) -> HalfGram:
        """The matrix of these points, computed in blocks of rows."""
        from gramgraph.kernels.inputs import count, take

        n = count(X)
        size = n * (n + 1) // 2
        high, low, diag = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint16), kernel.diag(X)

        def work(start: int) -> None:
            stop = min(n, start + block)
            rows = np.ascontiguousarray(kernel.gram(take(X, slice(start, stop)), take(X, slice(0, stop))))
            put_rows(rows, diag, start, high, low)  # noise belongs to a point itself: a block of rows cannot know it

        in_threads(work, range(0, n, block), n_jobs if n > _MANY else 1)
        return cls(high, low, diag)

    def matvec(self, v: FloatArray) -> FloatArray:
        """K v."""
        out = np.empty(self.n)
        product(self.high, self.low, np.ascontiguousarray(v), out)
        return out

    def trace(self) -> float:
        """The sum of the eigenvalues."""
        return float(self.diag.sum())


@dataclass(frozen=True, eq=False)
class WholeGram:
    """A Gram matrix in memory, read in one triangle only."""

    K: FloatArray  # (n, n), C order

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.K)

    def matvec(self, v: FloatArray) -> FloatArray:
        """K v."""
        from scipy.linalg.blas import dsymv

        return dsymv(1.0, self.K.T, v, lower=1)

    def trace(self) -> float:
        """The sum of the eigenvalues."""
        return float(np.trace(self.K))


def top_eigenpairs(
    matvec: Callable[[FloatArray], FloatArray],
    n: int,
    k: int,  # < n
    *,
    tol: float = 0.0,
    random_state: Any = None,
) -> tuple[FloatArray, FloatArray] | None:
    """The k largest eigenpairs of a symmetric operator by Lanczos, decreasing; None where they have not converged."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    start = check_random_state(random_state).uniform(-1.0, 1.0, size=n)
    try:
        values, vectors = eigsh(
            LinearOperator((n, n), matvec=matvec, dtype=np.float64), k, v0=start, which="LA", tol=tol
        )
    except ArpackError:  # also when the matrix is zero, which leaves no start vector
        return None
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def smallest_ritz_value(
    matvec: Callable[[FloatArray], FloatArray], n: int, *, steps: int = 30, random_state: Any = None
) -> float:
    """An upper bound of the smallest eigenvalue of a symmetric operator: Lanczos steps with full orthogonalization.

    A negative bound proves that there is a negative eigenvalue; a far one is found in few steps.
    """
    from scipy.linalg import eigvalsh_tridiagonal

    v = check_random_state(random_state).uniform(-1.0, 1.0, size=n)
    basis = np.empty((min(steps, n), n))
    diagonal: list[float] = []
    side: list[float] = []
    norm = float(np.linalg.norm(v))
    for k in range(len(basis)):
        basis[k] = v / norm
        v = matvec(basis[k])
        diagonal.append(float(v @ basis[k]))
        for _ in range(2):  # twice is enough
            v = v - basis[: k + 1].T @ (basis[: k + 1] @ v)
        norm = float(np.linalg.norm(v))
        if norm <= 1e-12 * max(map(abs, diagonal)) or norm == 0.0:
            break
        side.append(norm)
    return float(eigvalsh_tridiagonal(diagonal, side[: len(diagonal) - 1])[0])
