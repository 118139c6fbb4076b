"""The reverse pass of exp(−½ ‖a_i − a_j‖²) over a matrix with the cotangent's parts below and K above its diagonal.

Nothing is checked. One pass over n² numbers in tiles, and no further matrix.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.vector8 import load8, store_columns8

_TILE = 96


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _turned(flat, n, first, left, rows, columns, out):
    """out[c · TILE + r] = flat[(first + r) n + left + c]: a part of a matrix of n columns, transposed."""
    r8, c8 = rows // 8 * 8, columns // 8 * 8
    step = np.uint64(n)
    for r in range(0, r8, 8):
        for c in range(0, c8, 8):
            at = np.uint64((first + r) * n + left + c)
            x0, x1 = load8(flat, at), load8(flat, at + step)
            x2, x3 = load8(flat, at + step * np.uint64(2)), load8(flat, at + step * np.uint64(3))
            x4, x5 = load8(flat, at + step * np.uint64(4)), load8(flat, at + step * np.uint64(5))
            x6, x7 = load8(flat, at + step * np.uint64(6)), load8(flat, at + step * np.uint64(7))
            store_columns8(out, np.uint64(c * _TILE + r), np.uint64(_TILE), (x0, x1, x2, x3, x4, x5, x6, x7))
    for r in range(rows):
        for c in range(c8 if r < r8 else 0, columns):
            out[c * _TILE + r] = flat[(first + r) * n + left + c]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz", "reassoc"})
def rbf_half_pull(A, U, weights, q, At, first, last, sums, products):
    """Sums of W_ij = K_ij (Σ_c w_c U_ci U_cj − ½ q P_ij) over i > j, with P below the diagonal of A and K above it.

    `sums` (n,) receives Σ_j W_ij + Σ_j W_ji of every point, `products` (d,) Σ_ij W_ij a_i a_j of every column, the
    points given as At (d, n). Only rows first ≤ i < last are looked at.
    """
    n, d = A.shape[0], At.shape[0]
    flat, half = A.reshape(-1), 0.5 * q
    K, row, moved = np.empty(_TILE * _TILE), np.empty(_TILE), np.empty((d, _TILE))
    for i0 in range(first, last, _TILE):
        i1 = min(last, i0 + _TILE)
        for j0 in range(0, i1, _TILE):
            j1 = min(n, j0 + _TILE)
            _turned(flat, n, j0, i0, j1 - j0, i1 - i0, K)
            moved[:] = 0.0  # Σ_i a_i W_ij of the tile
            for i in range(i0, i1):
                m = min(j1, i) - j0
                if m <= 0:
                    continue
                lower, values, own = A[i, j0 : j0 + m], K[(i - i0) * _TILE : (i - i0) * _TILE + m], sums[j0 : j0 + m]
                u, other = weights[0] * U[0, i], U[0, j0 : j0 + m]
                for j in range(m):
                    row[j] = u * other[j] - half * lower[j]
                for c in range(1, U.shape[0]):
                    u, other = weights[c] * U[c, i], U[c, j0 : j0 + m]
                    for j in range(m):
                        row[j] += u * other[j]
                total = 0.0
                for j in range(m):
                    w = row[j] * values[j]
                    row[j] = w
                    own[j] += w
                    total += w
                sums[i] += total
                for c in range(d):
                    a, to = At[c, i], moved[c]
                    for j in range(m):
                        to[j] += a * row[j]
            for c in range(d):
                s = 0.0
                for j in range(j1 - j0):
                    s += moved[c, j] * At[c, j0 + j]
                products[c] += s
