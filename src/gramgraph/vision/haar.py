"""Haar-like features: weighted sums of two or three rectangles in a window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramgraph._validation import check_count
from gramgraph.exceptions import ModelError, OptionError, listing
from gramgraph.typing import Array, FloatArray
from gramgraph.vision.images import grey_image, integrals

#: Kind → cells across, cells down, and the cells that are white as (x, y, w, h, weight) over the whole with weight −1.
_KINDS: dict[str, tuple[int, int, tuple[tuple[int, int, int, int, float], ...]]] = {
    "A": (2, 1, ((1, 0, 1, 1, 2.0),)),  # left | right
    "B": (1, 2, ((0, 1, 1, 1, 2.0),)),  # top over bottom
    "C": (3, 1, ((1, 0, 1, 1, 3.0),)),  # three side by side
    "D": (2, 2, ((0, 0, 1, 1, 2.0), (1, 1, 1, 1, 2.0))),  # checkerboard
    "E": (1, 3, ((0, 1, 1, 1, 3.0),)),  # three on top of each other
}
#: The same turned by 45°: cells along the two diagonals.
_TILTED: dict[str, tuple[int, int, tuple[tuple[int, int, int, int, float], ...]]] = {
    f"{kind}45": _KINDS[kind] for kind in "ABCE"
}


@dataclass(frozen=True, eq=False)
class HaarFeatures:
    """All Haar-like features of some kinds in a window of width × height pixels.

    Kinds "A" (left, right), "B" (top, bottom), "C" (three side by side), "D" (checkerboard), "E" (three on top of each
    other), and "A45", "B45", "C45", "E45", turned by 45°. `rects` (m, 3, 4) holds x, y, w, h of up to three rectangles
    (the first is the whole), `weights` (m, 3) theirs, `tilted` (m,) says which are turned. A value is the weighted sum
    of grey levels, divided by area · standard deviation of the window inside its border, so that light does not matter.

    Parameters
    ----------
    window : (width, height) in pixels.
    kinds : letters of the kinds, such as ("A", "B").

    Examples
    --------
    >>> len(HaarFeatures(24))
    162336
    """

    window: Any = 24
    kinds: tuple[str, ...] = ("A", "B", "C", "D", "E")
    rects: Array = field(init=False, repr=False)
    weights: Array = field(init=False, repr=False)
    tilted: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        size = (self.window, self.window) if np.ndim(self.window) == 0 else tuple(self.window)
        if len(size) != 2:
            raise OptionError(f"window must be a number of pixels or (width, height), not {self.window!r}")
        width, height = (check_count("window", side, 4, 512) for side in size)
        object.__setattr__(self, "window", (width, height))
        odd = [kind for kind in self.kinds if kind not in _KINDS and kind not in _TILTED]
        if odd or not self.kinds:
            raise OptionError(f"kinds are {listing([*_KINDS, *_TILTED])}; {odd[0] if odd else 'none'} is not one")
        object.__setattr__(self, "kinds", tuple(self.kinds))
        parts = [_straight(k, width, height) if k in _KINDS else _turned(k, width, height) for k in self.kinds]
        rects = np.concatenate([rects for rects, _ in parts]).astype(np.int32)
        weights = np.concatenate([np.tile(w, (len(r), 1)) for r, w in parts]).astype(np.float32)
        tilted = np.concatenate([np.full(len(r), k in _TILTED) for k, (r, _) in zip(self.kinds, parts, strict=True)])
        for name, array in (("rects", rects), ("weights", weights), ("tilted", tilted)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.rects)

    def values(self, patches: Any, which: Any = None) -> FloatArray:
        """Values (m, n) of the features (all, or `which` of them) in n patches of the size of the window."""
        from gramgraph._numerics.vision.windows import patch_values, place_corners

        bank = PatchBank(patches, self.window, tilted=bool(self.tilted.any()))
        chosen = slice(None) if which is None else np.asarray(which)
        rects = np.ascontiguousarray(self.rects[chosen]).reshape(-1, 3, 4)
        corners = np.empty((len(rects), 12), dtype=np.uint32)
        tilted = np.ascontiguousarray(self.tilted[chosen]).reshape(-1)
        place_corners(rects, tilted, self.window[0] + 1, 1, corners)
        out = np.empty((len(rects), bank.n), dtype=np.float32)
        weights = np.ascontiguousarray(self.weights[chosen]).reshape(-1, 3)
        patch_values(*bank.arrays(), corners, weights, tilted, bank.inner, bank.area, 0, len(rects), out)
        return out.astype(np.float64)


class PatchBank:
    """Integral images of many patches, one after another."""

    def __init__(self, patches: Any, window: tuple[int, int], *, tilted: bool) -> None:
        width, height = window
        images = [grey_image(patch, f"patch {i}") for i, patch in enumerate(patches)]
        for i, image in enumerate(images):
            if image.shape != (height, width):
                raise ModelError(
                    f"patch {i} is {image.shape[1]} × {image.shape[0]} pixels, the window {width} × {height}"
                )
        self.n, self.size = len(images), (width + 1) * (height + 1)
        found = [integrals(image, tilted=tilted) for image in images]
        shape = (self.n, self.size)
        self.flat, self.squares, self.tilt = (
            np.array([part[k].ravel() for part in found], dtype=np.int32).reshape(shape).ravel() for k in range(3)
        )
        self.inner, self.area = inner_corners(window, width + 1), float((width - 2) * (height - 2))

    def arrays(self) -> tuple[Array, Array, Array, int]:
        """What the compiled loops take."""
        return self.flat, self.squares, self.tilt, self.size


def inner_corners(window: tuple[int, int], stride: int, step: int = 1) -> Array:
    """Offsets of the corners of the window inside its border of one pixel, as `place_corners` counts them."""
    from gramgraph._numerics.vision.images import corner

    right, low = window[0] - 1, window[1] - 1
    places = [(1, 1), (right, 1), (1, low), (right, low)]
    return np.array([corner(x, y, stride, step) for x, y in places], dtype=np.uint32)


def _straight(kind: str, width: int, height: int) -> tuple[Array, Array]:
    across, down, white = _KINDS[kind]
    made = []
    for w in range(1, width // across + 1):
        for h in range(1, height // down + 1):
            x, y = np.meshgrid(np.arange(width - across * w + 1), np.arange(height - down * h + 1))
            made.append(_placed(x.ravel(), y.ravel(), w, h, across, down, white, turned=False))
    return np.concatenate(made), _weights(white)


def _turned(kind: str, width: int, height: int) -> tuple[Array, Array]:
    """Rectangles along the diagonals: w steps right and down, h steps left and down from their top corner."""
    across, down, white = _TILTED[kind]
    made = []
    for w in range(1, width // across + 1):
        for h in range(1, height // down + 1):
            whole_w, whole_h = across * w, down * h
            if whole_w + whole_h > min(width, height):
                continue
            x, y = np.meshgrid(np.arange(whole_h, width - whole_w + 1), np.arange(height - whole_w - whole_h + 1))
            made.append(_placed(x.ravel(), y.ravel(), w, h, across, down, white, turned=True))
    return (np.concatenate(made) if made else np.zeros((0, 3, 4), dtype=np.int32)), _weights(white)


def _placed(x: Array, y: Array, w: int, h: int, across: int, down: int, white: Any, *, turned: bool) -> Array:
    out = np.zeros((len(x), 3, 4), dtype=np.int32)
    out[:, 0] = np.stack([x, y, np.full_like(x, across * w), np.full_like(x, down * h)], axis=1)
    for k, (i, j, cw, ch, _) in enumerate(white, 1):
        right, below = i * w, j * h
        dx, dy = (right - below, right + below) if turned else (right, below)
        out[:, k] = np.stack([x + dx, y + dy, np.full_like(x, cw * w), np.full_like(x, ch * h)], axis=1)
    return out


def _weights(white: Any) -> Array:
    return np.array([-1.0, *(cell[4] for cell in white), *[0.0] * (2 - len(white))])
