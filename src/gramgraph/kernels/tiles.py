"""A Gram matrix in bands of rows: into memory of the caller, in single precision, over several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.kernels.inputs import KernelError, take

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

#: Numbers of a band, about: 4 MB of doubles, so that it stays in the cache between kernel and copy.
_BAND = 1 << 19
#: Numbers of a matrix from which a second thread works longer than it takes to begin.
WORTH_THREADS = 1 << 15


def check_out(out: Any, shape: tuple[int, int], dtype: Any) -> Any:
    """The matrix to write into: `out` when it fits, else a new one."""
    wanted = np.dtype(getattr(out, "dtype", np.float64) if dtype is None else dtype)
    if wanted not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise KernelError(f"dtype: expected float64 or float32, got {wanted}.")
    if out is None:
        return np.empty(shape, dtype=wanted)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != wanted or not out.flags.writeable:
        found = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise KernelError(f"out: expected a writable {wanted} matrix of shape {shape}, got {found}.")
    return out


def fill(kernel: Kernel, X: Any, Y: Any | None, out: Any, n_jobs: int) -> None:
    """Write k(X, Y) into `out` band by band; values are computed in double precision whatever `out` holds.

    Without Y only blocks on the diagonal and right of it are computed; the others are their mirror images.
    """
    n, m = out.shape
    rows = max(1, min(-(-n // n_jobs), _BAND // max(m, 1)))

    def band(start: int) -> None:
        here = slice(start, min(n, start + rows))
        if Y is not None:
            out[here] = kernel._gram(take(X, here), Y)
            return
        out[here, here] = kernel._gram(take(X, here), None)
        if here.stop < n:
            rest = slice(here.stop, n)
            block = kernel._gram(take(X, here), take(X, rest))
            out[here, rest] = block
            out[rest, here] = block.T

    starts = range(0, n, rows)
    if n_jobs == 1 or len(starts) == 1:
        for start in starts:
            band(start)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(band, starts))
