"""Images as bytes: reading what users have, integral images, making them smaller."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, OptionError
from gramgraph.typing import Array, IntArray

#: Weights of red, green and blue in 32768ths, as OpenCV rounds them.
_RED, _GREEN, _BLUE = 9798, 19235, 3735
#: Sums of bytes must stay below 2³¹.
_MOST_PIXELS = (1 << 31) // 256


def grey_image(image: Any, what: str = "the image") -> Array:
    """Grey levels as bytes, (h, w), of an image that is grey or RGB (an alpha channel is left out).

    Bytes stay as they are; 16-bit levels are divided by 257; truth values and floats up to 1 are multiplied by 255,
    larger floats are rounded.

    Parameters
    ----------
    image : an array (h, w), or (h, w, 3).
    what : how errors call the image.

    Examples
    --------
    >>> grey_image(np.array([[0.0, 0.5], [1.0, 0.25]])).tolist()
    [[0, 128], [255, 64]]
    """
    found = np.asarray(image)
    if found.ndim == 3 and found.shape[2] == 1:
        found = found[:, :, 0]
    if found.ndim not in (2, 3) or found.size == 0 or (found.ndim == 3 and found.shape[2] not in (3, 4)):
        raise ModelError(f"{what} must be grey (h, w) or RGB (h, w, 3) and not empty; it has the shape {found.shape}")
    if found.dtype.kind not in "buif":
        raise ModelError(f"{what} must hold numbers, not {found.dtype}")
    levels = _bytes(found[..., :3] if found.ndim == 3 else found, what)
    if levels.ndim == 2:
        return np.ascontiguousarray(levels)
    wide = levels.astype(np.int64)
    mixed = (wide[..., 0] * _RED + wide[..., 1] * _GREEN + wide[..., 2] * _BLUE + 16384) >> 15
    return mixed.astype(np.uint8)


def _bytes(found: Array, what: str) -> Array:
    if found.dtype == np.uint8:
        return found
    if found.dtype.kind == "b":
        return found.astype(np.uint8) * np.uint8(255)
    if found.dtype == np.uint16:
        return ((found.astype(np.int64) + 128) // 257).astype(np.uint8)
    if not np.isfinite(found).all():
        raise ModelError(f"{what} holds NaN or infinity: every pixel needs a grey level")
    low, high = float(found.min()), float(found.max())
    if found.dtype.kind == "f" and low >= 0.0 and high <= 1.0:
        return np.floor(found * 255.0 + 0.5).astype(np.uint8)
    if low < 0.0 or high > (65535.0 if found.dtype.kind in "iu" else 255.0):
        raise ModelError(f"{what} has levels from {low:g} to {high:g}: 0 … 255, 0 … 1 or 16 bits (uint16) are known")
    if high > 255.0:
        return ((found.astype(np.int64) + 128) // 257).astype(np.uint8)
    return np.floor(found + 0.5).astype(np.uint8)


def integral_image(image: Any, *, squared: bool = False, tilted: bool = False) -> Array:
    """I(Y, X) = Σ of all pixels above row Y and to the left of column X, (h + 1, w + 1): any box in four look-ups.

    Of whole numbers exactly, of floats in double precision. With `squared` of the squares; with `tilted` over the
    triangle that opens upward from (X, Y), for boxes turned by 45°.

    Parameters
    ----------
    image : an array (h, w), or (h, w, 3).
    squared : of the squares of the pixels.
    tilted : over triangles, for boxes that are turned by 45°.

    Examples
    --------
    >>> I = integral_image([[1, 2], [3, 4]])
    >>> int(I[2, 2] - I[0, 2] - I[2, 0] + I[0, 0])
    10
    """
    found = np.asarray(image)
    if found.ndim != 2 or found.size == 0 or found.dtype.kind not in "buif":
        raise ModelError(f"an integral image needs a grey image (h, w) that is not empty; shape {found.shape}")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ModelError("the image holds NaN or infinity: every pixel needs a grey level")
    if squared and tilted:
        raise OptionError("squared and tilted exclude each other")
    values: Array = found.astype(np.float64 if found.dtype.kind == "f" else np.int64)
    if tilted:
        return _tilted(values)
    values = values * values if squared else values
    out = np.zeros((values.shape[0] + 1, values.shape[1] + 1), dtype=values.dtype)
    np.cumsum(values, axis=0, out=out[1:, 1:])
    np.cumsum(out[1:, 1:], axis=1, out=out[1:, 1:])
    return out


def _tilted(values: Array) -> Array:
    """Row by row: the triangle of a point is that above it to the left, that to the right, less what is in both."""
    h, w = values.shape
    pad = h + 1  # wide enough that no triangle leaves the frame
    wide = np.zeros((h + 1, w + 1 + 2 * pad), dtype=values.dtype)
    framed = np.zeros((h + 1, w + 1 + 2 * pad), dtype=values.dtype)
    framed[1:, pad + 1 : pad + 1 + w] = values  # framed[y + 1, pad + 1 + x] = pixel
    for y in range(1, h + 1):
        row = np.zeros(wide.shape[1], dtype=values.dtype)
        row[1:-1] = wide[y - 1, :-2] + wide[y - 1, 2:]
        row += framed[y]
        if y > 1:
            row -= wide[y - 2]
            row += framed[y - 1]
        wide[y] = row
    return np.ascontiguousarray(wide[:, pad : pad + w + 1])


def integrals(
    image: Array, *, tilted: bool = False, step: int = 1, out: tuple[Array, Array] | None = None
) -> tuple[Array, Array, Array]:
    """(sums, sums of squares, tilted sums or nothing) of bytes as whole numbers, (h + 1, w + 1) each.

    For windows `step` pixels apart, columns are sorted by their rest modulo `step`, in rows a multiple of `step` long.
    `out` holds tables for sums and squares that may be larger.
    """
    from gramgraph._numerics.vision.images import integral

    if image.size > _MOST_PIXELS:
        raise ModelError(
            f"the image has {image.size:.3g} pixels, more than the {_MOST_PIXELS:.3g} that can be summed up"
        )
    sums, squares = (table[: image.shape[0] + 1] for table in out or integral_tables(image.shape, step))
    integral(image, step, sums, squares)
    return sums, squares, integral_image(image, tilted=True).astype(np.int32) if tilted else sums


def integral_tables(shape: tuple[int, int], step: int) -> tuple[Array, Array]:
    """Room for the sums and squares of an image (h, w), and of smaller ones, with columns sorted for steps."""
    room = (shape[0] + 1, -(-(shape[1] + 1) // step) * step)
    return np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int64)


def resize_image(image: Array, width: int, height: int) -> Array:
    """Bytes at another size, bilinear with weights in 256ths and one rounding: OpenCV's INTER_LINEAR_EXACT.

    Parameters
    ----------
    image : an array (h, w), or (h, w, 3).
    width : in pixels.
    height : in pixels.

    Examples
    --------
    >>> resize_image(np.array([[0, 100], [100, 200]], dtype=np.uint8), 1, 1).tolist()
    [[100]]
    """
    from gramgraph._numerics.vision.images import shrink

    if image.shape == (height, width):
        return image
    out = np.empty((height, width), dtype=np.uint8)
    shrink(image, *_weights(width, image.shape[1]), *_weights(height, image.shape[0]), out)
    return out


def _weights(n: int, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """For n pixels out of `size`: the two neighbors of each, and the weight of the second in 256ths."""
    at = (np.arange(n) + 0.5) * (size / n) - 0.5
    low = np.floor(at).astype(np.int64)
    weight = np.rint((at - low) * 256.0).astype(np.int64)
    weight[(low < 0) | (low >= size - 1)] = 0
    low = np.clip(low, 0, size - 1)
    return low, np.minimum(low + 1, size - 1), weight
