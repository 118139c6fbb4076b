"""Integral images, and images made smaller; grey levels are bytes."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True)
def integral(image, out, squares):
    """out[Y, X] = Σ of the pixels above and to the left, (h + 1, w + 1); squares likewise of their squares."""
    h, w = image.shape
    for x in range(w + 1):
        out[0, x] = 0
        squares[0, x] = 0
    for y in range(h):
        row = 0
        row2 = 0
        out[y + 1, 0] = 0
        squares[y + 1, 0] = 0
        for x in range(w):
            p = int(image[y, x])
            row += p
            row2 += p * p
            out[y + 1, x + 1] = out[y, x + 1] + row
            squares[y + 1, x + 1] = squares[y, x + 1] + row2


@njit(cache=True, nogil=True)
def shrink(image, x0, x1, cx, y0, y1, cy, out):
    """Bilinear values by weights in 256ths, rounded once at the end."""
    h, w = out.shape
    for y in range(h):
        a = int(y0[y])
        b = int(y1[y])
        v = int(cy[y])
        for x in range(w):
            i = x0[x]
            j = x1[x]
            u = int(cx[x])
            top = int(image[a, i]) * (256 - u) + int(image[a, j]) * u
            low = int(image[b, i]) * (256 - u) + int(image[b, j]) * u
            out[y, x] = (top * (256 - v) + low * v + 32768) >> 16
