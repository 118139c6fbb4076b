"""(scale · xᵀx′ + offset)^power of points with many zeros, in either precision.

Points on the left are lists: place and value of what is not zero, idx[ptr[i]:ptr[i + 1]] and val. Those on the right
stand side by side, P (d, m). An entry costs as many products as the left point has nonzero values. Nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.svm.exponents import mirror

_WIDE = 1024  # columns of a piece of a row, which stays in the nearest cache


def _with_products(ptr, idx, val, rows, P, start, stop, scale, offset, power, out, first, whole):
    left = np.zeros((len(rows), len(P)), P.dtype)
    sizes = ptr[rows + 1] - ptr[rows]
    at = np.repeat(ptr[rows] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    left[np.repeat(np.arange(len(rows)), sizes), idx[at]] = val[at]
    last = first + len(rows)
    base = (left @ P[:, start:stop]) * scale + offset
    found = base.copy() if power > 1 else base
    for _ in range(1, power):  # the general power is far dearer than a few products
        found *= base
    out[first:last, : stop - start] = found
    if whole:
        out[:first, first:last] = out[first:last, :first].T
        own = out[first:last, first:last]
        np.copyto(own, own.T, where=np.arange(len(own))[:, None] < np.arange(len(own)))  # products may be uneven


def _work(ptr, idx, val, rows, P, start, stop, *rest):
    return 4e-3 * rows.size * (stop - start)  # uncompiled it is a product of matrices: some nanoseconds an entry


@njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"}, plain=_with_products, work=_work,
)  # fmt: skip
def sparse_power_rows(ptr, idx, val, rows, P, start, stop, scale, offset, power, out, first, whole):
    """out[first + r, :stop − start] = (scale · x · P[:, start:stop] + offset)^power for the points x of rows[r].

    scale and offset have the type of `out`, power ≥ 1. With `whole` the same is put in its mirror image: rows are those
    of a symmetric matrix from `first` on, which is a multiple of the tile, and stop = first + len(rows).
    """
    for c in range(start, stop, _WIDE):
        size = min(_WIDE, stop - c)
        for r in range(rows.shape[0]):
            row = out[first + r, c - start : c - start + size]
            for j in range(size):
                row[j] = 0.0
            k, end = ptr[rows[r]], ptr[rows[r] + 1]
            while k + 4 <= end:  # four at a time: the row is read and written less often
                p0, p1 = P[idx[k], c : c + size], P[idx[k + 1], c : c + size]
                p2, p3 = P[idx[k + 2], c : c + size], P[idx[k + 3], c : c + size]
                v0, v1, v2, v3 = val[k], val[k + 1], val[k + 2], val[k + 3]
                for j in range(size):
                    row[j] += (v0 * p0[j] + v1 * p1[j]) + (v2 * p2[j] + v3 * p3[j])
                k += 4
            while k < end:
                p0, v0 = P[idx[k], c : c + size], val[k]
                for j in range(size):
                    row[j] += v0 * p0[j]
                k += 1
            if power == 1:
                for j in range(size):
                    row[j] = scale * row[j] + offset
            elif power == 2:
                for j in range(size):
                    x = scale * row[j] + offset
                    row[j] = x * x
            elif power == 3:
                for j in range(size):
                    x = scale * row[j] + offset
                    row[j] = x * x * x
            else:
                for j in range(size):
                    x = scale * row[j] + offset
                    y = x
                    for _ in range(1, power):
                        y = y * x
                    row[j] = y
    if whole:
        mirror(out, first, first + rows.shape[0])
