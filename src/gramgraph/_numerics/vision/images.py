"""Integral images, and images made smaller; grey levels are bytes."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True)
def corner(x, y, stride, step):
    """The place of column x, row y in a table with rows of `stride` numbers, sorted by the rest of x modulo `step`."""
    return y * stride + (x % step) * (stride // step) + x // step


@njit(cache=True, nogil=True)
def integral(image, step, out, squares):
    """Σ of the pixels above row Y and to the left of column X, Y ≤ h and X ≤ w; squares likewise of their squares.

    Where (X, Y) stands in a row of `out` is what `corner` says; rows may be longer than w + 1.
    """
    h, w = image.shape
    each = out.shape[1] // step
    for x in range(w + 1):
        at = (x % step) * each + x // step
        out[0, at] = 0
        squares[0, at] = 0
    for y in range(h):
        row = 0
        row2 = 0
        out[y + 1, 0] = 0
        squares[y + 1, 0] = 0
        rest = 0
        place = 0
        for x in range(w):
            p = int(image[y, x])
            row += p
            row2 += p * p
            rest += 1
            if rest == step:
                rest = 0
                place += 1
            at = rest * each + place
            out[y + 1, at] = out[y, at] + row
            squares[y + 1, at] = squares[y, at] + row2


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
