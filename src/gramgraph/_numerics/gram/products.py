"""C += [Φ Y]ᵀ[Φ Y] for tall matrices, one triangle only, in 8 × 8 blocks whose sums stay in registers.

About the rate at which the processor multiplies; nothing is checked.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.gram.grams import _WIDE
from gramgraph._numerics.vector8 import add8, fill8, fma8, load8, mul8, store8

CHUNK = 128  # rows at a time: two strips of eight columns fit the first cache


def lower_blocks(r):
    """Zeros for the 8 × 8 blocks on and below the diagonal of a matrix (r, r), one after the other, row by row."""
    groups = (r + 7) // 8
    return np.zeros(groups * (groups + 1) // 2 * 64)


@njit(cache=True, nogil=True, boundscheck=False)
def unfold(C, out):
    """The symmetric matrix `out` (r, r) of its lower blocks."""
    for i in range(len(out)):
        g = i >> 3
        for j in range(i + 1):
            v = C[(g * (g + 1) // 2 + (j >> 3)) * 64 + (i & 7) * 8 + (j & 7)]
            out[i, j] = v
            out[j, i] = v


@njit(cache=True, nogil=True, boundscheck=False)
def add_products(Phi, r, Y, t, scale, C):
    """Add [Φ Y]ᵀ diag(scale)² [Φ Y] to C, the blocks of `lower_blocks(r + t)`; n (r + t)² operations.

    Φ (n, r) and Y (n, t) are flat and C-ordered; `scale` has n numbers, or none, which stands for ones.
    """
    n = Phi.size // r
    groups = (r + t + 7) // 8
    whole = r // 8
    strips = np.zeros(groups * CHUNK * 8)
    weighted = scale.size > 0
    for start in range(0, n, CHUNK):
        rows = min(CHUNK, n - start)
        for i in range(rows):  # eight columns side by side, row after row
            w = scale[start + i] if weighted else 1.0
            for g in range(whole):
                v = load8(Phi, np.uint64((start + i) * r + g * 8))
                store8(strips, np.uint64((g * CHUNK + i) * 8), mul8(v, fill8(w)))
            for q in range(whole * 8, r + t):
                x = Phi[(start + i) * r + q] if q < r else Y[(start + i) * t + q - r]
                strips[((q >> 3) * CHUNK + i) * 8 + (q & 7)] = w * x
        for h in range(groups):
            for g in range(h, groups):
                _add_block(strips, C, g, h, rows)


@njit(cache=True, nogil=True, boundscheck=False, forceinline=True, no_cpython_wrapper=True)
def _add_block(strips, C, g, h, rows):
    """Block (g, h); with half as wide registers four of its rows before the other four."""
    eight = np.uint64(8)
    a, b = np.uint64(g * CHUNK * 8), np.uint64(h * CHUNK * 8)
    c, e = a, b
    zero = fill8(0.0)
    x0, x1, x2, x3, x4, x5, x6, x7 = zero, zero, zero, zero, zero, zero, zero, zero
    for _ in range(rows):
        v = load8(strips, b)
        x0 = fma8(fill8(strips[a]), v, x0)
        x1 = fma8(fill8(strips[a + np.uint64(1)]), v, x1)
        x2 = fma8(fill8(strips[a + np.uint64(2)]), v, x2)
        x3 = fma8(fill8(strips[a + np.uint64(3)]), v, x3)
        if _WIDE:
            x4 = fma8(fill8(strips[a + np.uint64(4)]), v, x4)
            x5 = fma8(fill8(strips[a + np.uint64(5)]), v, x5)
            x6 = fma8(fill8(strips[a + np.uint64(6)]), v, x6)
            x7 = fma8(fill8(strips[a + np.uint64(7)]), v, x7)
        a += eight
        b += eight
    for _ in range(0 if _WIDE else rows):
        v = load8(strips, e)
        x4 = fma8(fill8(strips[c + np.uint64(4)]), v, x4)
        x5 = fma8(fill8(strips[c + np.uint64(5)]), v, x5)
        x6 = fma8(fill8(strips[c + np.uint64(6)]), v, x6)
        x7 = fma8(fill8(strips[c + np.uint64(7)]), v, x7)
        c += eight
        e += eight
    at = np.uint64((g * (g + 1) // 2 + h) * 64)
    store8(C, at, add8(load8(C, at), x0))
    at += eight
    store8(C, at, add8(load8(C, at), x1))
    at += eight
    store8(C, at, add8(load8(C, at), x2))
    at += eight
    store8(C, at, add8(load8(C, at), x3))
    at += eight
    store8(C, at, add8(load8(C, at), x4))
    at += eight
    store8(C, at, add8(load8(C, at), x5))
    at += eight
    store8(C, at, add8(load8(C, at), x6))
    at += eight
    store8(C, at, add8(load8(C, at), x7))
