"""The numbers of a cascade: features, trees of tests, stages; and how it slides over an image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray
from gramgraph.vision.haar import inner_corners
from gramgraph.vision.images import integral_tables, integrals

_TYPES: dict[str, Any] = {
    "rects": np.int32, "weights": np.float32, "tilted": np.bool_, "stage_start": np.int64,
    "stage_threshold": np.float64, "root": np.int64, "feature": np.int64, "threshold": np.float32, "left": np.int64,
    "right": np.int64, "leaf": np.float64,
}  # fmt: skip
_MOST_WINDOWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Stages:
    """A cascade as arrays: a window passes a stage when the leaves of its trees add up to `stage_threshold` or more.

    Trees k of stage s are stage_start[s] … stage_start[s + 1] − 1 and start at node root[k]. A node compares the value
    of a feature with `threshold`: smaller goes `left`, else `right`; a negative number −1 − i is leaf i.
    """

    window: tuple[int, int]
    rects: Array
    weights: Array
    tilted: Array
    stage_start: Array
    stage_threshold: FloatArray
    root: Array
    feature: Array
    threshold: Array
    left: Array
    right: Array
    leaf: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", tuple(int(side) for side in self.window))
        for name, kind in _TYPES.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=kind))
        wrong = self._faults()
        if wrong:
            raise ModelError(f"not a cascade: {wrong}")

    def _faults(self) -> str:
        m, nodes = len(self.rects), len(self.feature)
        if len(self.window) != 2 or not all(3 <= side <= 4096 for side in self.window):
            return f"the window is {self.window}"
        if self.rects.shape != (m, 3, 4) or self.weights.shape != (m, 3) or self.tilted.shape != (m,):
            return "features, weights and kinds differ in number"
        if any(a.shape != (nodes,) for a in (self.threshold, self.left, self.right)):
            return "arrays of nodes differ in length"
        if not all(np.isfinite(a).all() for a in (self.weights, self.stage_threshold, self.threshold, self.leaf)):
            return "a number is not finite"
        starts = self.stage_start
        if starts.shape != (len(self.stage_threshold) + 1,) or starts[0] != 0 or (np.diff(starts) < 0).any():
            return "stages do not follow each other"
        if starts[-1] != len(self.root) or (nodes and not ((self.feature >= 0) & (self.feature < m)).all()):
            return "a tree or a feature is missing"
        if len(self.root) and not ((self.root >= -len(self.leaf)) & (self.root < nodes)).all():
            return "a tree starts nowhere"
        for side in (self.left, self.right):
            inner = side >= 0
            if (side[inner] <= np.flatnonzero(inner)).any() or (side >= nodes).any() or (side < -len(self.leaf)).any():
                return "a branch leads nowhere"
        return self._outside()

    def _outside(self) -> str:
        """Rectangles must lie in the window: their corners are looked up without a check."""
        w, h = self.window
        x, y, rw, rh = np.moveaxis(self.rects.astype(np.int64), -1, 0)
        used = self.weights != 0
        turned = self.tilted[:, None]
        low_x, high_x = np.where(turned, x - rh, x), x + rw
        high_y = np.where(turned, y + rw + rh, y + rh)
        inside = (low_x >= 0) & (y >= 0) & (rw >= 0) & (rh >= 0) & (high_x <= w) & (high_y <= h)
        return "a rectangle leaves the window" if (used & ~inside).any() else ""

    @cached_property
    def is_stumps(self) -> bool:
        """Whether every tree is one test of a straight feature, in order."""
        n = len(self.root)
        at = np.arange(n)
        return bool(
            len(self.feature) >= n > 0 and not self.tilted.any() and (self.root == at).all() and len(self.leaf) >= 2 * n
            and (self.left[:n] == -1 - 2 * at).all() and (self.right[:n] == -2 - 2 * at).all()
        )  # fmt: skip

    @property
    def n_stages(self) -> int:
        """The number of stages."""
        return len(self.stage_threshold)

    def arrays(self) -> tuple[Array, ...]:
        """What the compiled loops take, up to the kinds of the features."""
        return (
            self.stage_start, self.stage_threshold, self.root, self.feature, self.threshold, self.left, self.right,
            self.leaf, self.tilted,
        )  # fmt: skip

    def first(self, n: int) -> Stages:
        """The first stages alone."""
        return replace(
            self, stage_start=self.stage_start[: n + 1], stage_threshold=self.stage_threshold[:n],
            root=self.root[: self.stage_start[n]],
        )  # fmt: skip

    def with_stage(self, rects: Array, weights: Array, tilted: Array, stumps: Any, threshold: float) -> Stages:
        """One stage more: stumps (feature among the new ones, threshold, left value, right value)."""
        m, nodes, leaves = len(self.rects), len(self.feature), len(self.leaf)
        f, cut, a, b = (np.array(column) for column in zip(*stumps, strict=True))
        n = len(f)
        places = leaves + 2 * np.arange(n)
        return replace(
            self,
            rects=np.concatenate([self.rects, rects]),
            weights=np.concatenate([self.weights, weights]),
            tilted=np.concatenate([self.tilted, tilted]),
            stage_start=np.append(self.stage_start, self.stage_start[-1] + n),
            stage_threshold=np.append(self.stage_threshold, threshold),
            root=np.concatenate([self.root, nodes + np.arange(n)]),
            feature=np.concatenate([self.feature, m + f]),
            threshold=np.concatenate([self.threshold, cut]),
            left=np.concatenate([self.left, -1 - places]),
            right=np.concatenate([self.right, -2 - places]),
            leaf=np.concatenate([self.leaf, np.stack([a, b], axis=1).ravel()]),
        )

    @classmethod
    def empty(cls, window: tuple[int, int]) -> Self:
        """A cascade without a stage: every window passes that is not flat."""
        none: dict[str, Any] = {name: np.zeros(0) for name in _TYPES}
        none.update(rects=np.zeros((0, 3, 4)), weights=np.zeros((0, 3)), stage_start=np.zeros(1))
        return cls(window, **none)

    def slide(
        self,
        image: Array,
        *,
        step: int,
        skip: bool,
        scale: float | None = None,
        tables: tuple[Array, Array] | None = None,
    ) -> tuple[Array, FloatArray]:
        """(places (n, 2), margins) of windows in bytes (h, w) that pass; with `scale` features grow, not the image.

        Images of different sizes may share the room of `tables`, and with it the places of corners.
        """
        from gramgraph._numerics.vision.windows import slide, slide_stumps

        sorting = step if self.is_stumps else 1
        tables = tables or integral_tables(image.shape, sorting)
        stride = tables[0].shape[1]
        layout = _layout(self, scale, stride, sorting)
        width, height = image.shape[1] + 1 - layout.window[0], image.shape[0] + 1 - layout.window[1]
        if width <= 0 or height <= 0:
            return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
        made = integrals(image, tilted=bool(self.tilted.any()), step=sorting, out=tables)
        flat, squares, tilt = (table.ravel() for table in made)
        room = min(_MOST_WINDOWS, 1024 if self.n_stages else width * height)
        where = (stride, width, height, step, skip, layout.inner, layout.area)
        while True:
            found, margins = np.empty((room, 2), dtype=np.int64), np.empty(room)
            if self.is_stumps:
                n = slide_stumps(
                    flat, squares, *where, self.stage_start, self.stage_threshold, self.threshold,
                    self.leaf.reshape(-1, 2), layout.corners, layout.weights, found, margins,
                )  # fmt: skip
            else:
                n = slide(
                    flat, squares, tilt, *where, *self.arrays(), layout.corners, layout.weights, found, margins
                )  # fmt: skip
            if n <= room:
                return found[:n], margins[:n]
            room = n

    def _scaled(self, scale: float | None) -> tuple[tuple[int, int], Array, Array]:
        """Window, rectangles and weights at another scale; the first weight makes up for what rounding changes."""
        if scale is None or scale == 1.0:
            return self.window, self.rects, self.weights
        window = (round(self.window[0] * scale), round(self.window[1] * scale))
        low = np.rint(self.rects[..., :2] * scale)
        rects = np.concatenate([low, np.maximum(np.rint(self.rects[..., 2:] * scale), 1)], axis=-1)
        rects[..., 2] = np.minimum(rects[..., 2], np.where(self.tilted[:, None], 1 << 20, window[0] - rects[..., 0]))
        rects[..., 3] = np.minimum(rects[..., 3], np.where(self.tilted[:, None], 1 << 20, window[1] - rects[..., 1]))
        before, after = (np.prod(r[..., 2:].astype(np.float64), axis=-1) for r in (self.rects, rects))
        weights = self.weights.astype(np.float64)
        weights[:, 1:] *= before[:, 1:] * scale * scale / np.maximum(after[:, 1:], 1.0)
        weights[:, 0] = -(weights[:, 1:] * after[:, 1:]).sum(axis=1) / np.maximum(after[:, 0], 1.0)
        balanced = np.abs((self.weights * before).sum(axis=1)) < 1e-3 * np.maximum(before[:, 0], 1.0)
        own = self.weights[:, 0] * before[:, 0] * scale * scale / np.maximum(after[:, 0], 1.0)
        weights[:, 0] = np.where(balanced, weights[:, 0], own)
        keeps = self.tilted & (_reach(rects, window) != 0)
        rects[keeps] = np.floor(self.rects[keeps] * scale)  # turned ones must stay inside
        return window, np.ascontiguousarray(rects, dtype=np.int32), np.ascontiguousarray(weights, dtype=np.float32)

    def pages(self, shape: tuple[int, int], factor: float) -> Iterator[tuple[float, tuple[int, int]]]:
        """(scale, (width, height) of the image there): as long as the window fits."""
        scale = 1.0
        while round(self.window[0] * scale) <= shape[1] and round(self.window[1] * scale) <= shape[0]:
            single = np.float32(scale)
            size = (int(np.rint(np.float32(shape[1]) / single)), int(np.rint(np.float32(shape[0]) / single)))
            yield float(single), size
            scale *= factor

    def cut(self, image: Array, places: Array) -> Array:
        """Patches (n, h, w) of an image at places (n, 2)."""
        w, h = self.window
        return np.array([image[y : y + h, x : x + w] for x, y in places.tolist()], dtype=np.uint8).reshape(-1, h, w)

    def passes(self, patches: Array) -> Array:
        """The number of stages that each patch (n, h, w) passes; flat ones pass none."""
        from gramgraph._numerics.vision.windows import place_corners, run_stages, spread_at

        stride = self.window[0] + 1
        corners = np.empty((len(self.rects), 12), dtype=np.uint32)
        place_corners(self.rects, self.tilted, stride, 1, corners)
        inner, area = inner_corners(self.window, stride), float((self.window[0] - 2) * (self.window[1] - 2))
        out = np.zeros(len(patches), dtype=np.int64)
        for i, patch in enumerate(patches):
            sums, squares, tilt = (t.ravel() for t in integrals(patch, tilted=bool(self.tilted.any())))
            norm = spread_at(sums, squares, np.uint64(0), inner, area)
            if norm > 0:
                out[i] = run_stages(sums, tilt, np.uint64(0), norm, *self.arrays(), corners, self.weights)[0]
        return out

    def to_fields(self) -> dict[str, Any]:
        """Plain lists of numbers."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: v.tolist() if isinstance(v, np.ndarray) else list(v) for name, v in found.items()}

    @classmethod
    def from_fields(cls, given: Mapping[str, Any]) -> Self:
        """What `to_fields` wrote."""
        try:
            arrays = {name: np.array(given[name], dtype=kind) for name, kind in _TYPES.items()}
            arrays["rects"], arrays["weights"] = arrays["rects"].reshape(-1, 3, 4), arrays["weights"].reshape(-1, 3)
            return cls(tuple(given["window"]), **arrays)
        except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
            raise ModelError(f"not a cascade: {error}") from None


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where the corners of features and of the inner window are, for tables of one shape."""

    window: tuple[int, int]
    corners: Array
    weights: Array
    inner: Array
    area: float


@lru_cache(maxsize=8)
def _layout(stages: Stages, scale: float | None, stride: int, sorting: int) -> _Layout:
    """For features enlarged by `scale`; those of stumps stand in the order of the stumps."""
    from gramgraph._numerics.vision.windows import place_corners

    window, rects, weights = stages._scaled(scale)
    tilted = stages.tilted
    if stages.is_stumps:
        rects, weights, tilted = rects[stages.feature], weights[stages.feature], tilted[stages.feature]
    corners = np.empty((len(rects), 12), dtype=np.uint32)
    place_corners(rects, tilted, stride, sorting, corners)
    area = float((window[0] - 2) * (window[1] - 2))
    return _Layout(window, corners, weights, inner_corners(window, stride, sorting), area)


def _reach(rects: FloatArray, window: tuple[int, int]) -> Array:
    """Which turned features would leave the window."""
    x, y, w, h = np.moveaxis(rects, -1, 0)
    out = (x - h < 0) | (x + w > window[0]) | (y + w + h > window[1])
    return out.any(axis=1)
