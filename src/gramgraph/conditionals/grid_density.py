"""A density on the line by its values at points: linear between them, exponential tails outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gramgraph.cells.density import line_density
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class GridDensity:
    """f at increasing points x, linear between them; beyond the ends it falls as exp(−distance / tail).

    The values are divided by their integral. `GridDensity.of` estimates it from a sample by a mixture of kernel
    densities, whose widths are not below the usual gap between values that repeat.

    Parameters
    ----------
    x : the grid, rising.
    f : the density there, up to its scale.
    tail : length over which the density falls by a factor e beyond the ends.

    Examples
    --------
    >>> d = GridDensity(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 0.5)
    >>> d.cdf(np.array([0.0, 0.5, 1.0])).tolist(), d.quantile(np.array([0.25, 0.5])).tolist()
    ([0.25, 0.5, 0.75], [0.0, 0.5])
    """

    x: Any  # (G,) increasing
    f: Any  # (G,) positive
    tail: float

    def __post_init__(self) -> None:
        x, f = (np.array(part, dtype=np.float64).reshape(-1) for part in (self.x, self.f))
        sound = len(x) == len(f) >= 2 and np.isfinite(x).all() and np.isfinite(f).all()
        if not sound or not (np.diff(x) > 0.0).all() or not (f > 0.0).all() or not 0.0 < self.tail < np.inf:
            raise ModelError(
                "a density on a grid needs increasing points, positive values at them, and a positive tail"
            )
        total = float(((f[1:] + f[:-1]) * np.diff(x)).sum()) / 2.0 + self.tail * float(f[0] + f[-1])
        for name, part in (("x", x), ("f", f / total)):
            part.flags.writeable = False
            object.__setattr__(self, name, part)
        object.__setattr__(self, "tail", float(self.tail))

    @classmethod
    def of(cls, values: Any, domain: str = "real") -> GridDensity:
        """The density of observed numbers."""
        found = line_density(np.asarray(values, dtype=np.float64), domain)
        x = found.coordinate.backward(found.grid)
        keep = np.concatenate([[True], np.diff(x) > 1e-12 * max(float(np.abs(x).max()), 1e-300)])
        x = x[keep]
        f = np.maximum(np.exp(found.log_density(x)), 1e-290)
        return cls(x, f, max(2.0 * float(x[-1] - x[0]) / len(x), 1e-280))

    @cached_property
    def _below(self) -> FloatArray:
        """F at the points."""
        steps = 0.5 * (self.f[1:] + self.f[:-1]) * np.diff(self.x)
        return np.concatenate([[0.0], np.cumsum(steps)]) + self.tail * self.f[0]

    @cached_property
    def sd(self) -> float:
        """Standard deviation, the tails left out."""
        w = self.f * np.gradient(self.x)
        mean = float(w @ self.x / w.sum())
        return float(np.sqrt(w @ (self.x - mean) ** 2 / w.sum()))

    def _at(self, x: FloatArray) -> Any:
        return np.clip(np.searchsorted(self.x, x, side="right") - 1, 0, len(self.x) - 2)

    def log_density(self, x: FloatArray, /) -> FloatArray:
        """log f(x)."""
        inside = np.log(np.interp(x, self.x, self.f))
        off = np.maximum(np.maximum(self.x[0] - x, x - self.x[-1]), 0.0)
        return np.asarray(inside - off / self.tail)

    def cdf(self, x: FloatArray, /) -> FloatArray:
        """F(x)."""
        x = np.asarray(x, dtype=np.float64)
        k = self._at(x)
        u = np.clip(x, self.x[0], self.x[-1]) - self.x[k]
        slope = (self.f[k + 1] - self.f[k]) / (self.x[k + 1] - self.x[k])
        inside = self._below[k] + self.f[k] * u + 0.5 * slope * u**2
        low = self.tail * self.f[0] * np.exp(np.minimum(x - self.x[0], 0.0) / self.tail)
        high = 1.0 - self.tail * self.f[-1] * np.exp(-np.maximum(x - self.x[-1], 0.0) / self.tail)
        return np.where(x < self.x[0], low, np.where(x > self.x[-1], high, inside))

    def quantile(self, u: FloatArray, /) -> FloatArray:
        """F⁻¹(u)."""
        u = np.asarray(u, dtype=np.float64)
        k = np.clip(np.searchsorted(self._below, u, side="right") - 1, 0, len(self.x) - 2)
        rest = np.clip(u - self._below[k], 0.0, None)
        slope = (self.f[k + 1] - self.f[k]) / (self.x[k + 1] - self.x[k])
        root = np.sqrt(np.maximum(self.f[k] ** 2 + 2.0 * slope * rest, 0.0))
        inside = np.minimum(self.x[k] + 2.0 * rest / (self.f[k] + root), self.x[k + 1])
        with np.errstate(divide="ignore"):
            low = self.x[0] + self.tail * np.log(np.minimum(u / (self.tail * self.f[0]), 1.0))
            high = self.x[-1] - self.tail * np.log(np.minimum((1.0 - u) / (self.tail * self.f[-1]), 1.0))
        return np.where(u < self._below[0], low, np.where(u > self._below[-1], high, inside))

    def to_fields(self) -> dict[str, Any]:
        """As a dict that JSON can hold."""
        return {"x": self.x.tolist(), "f": self.f.tolist(), "tail": self.tail}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """What `to_fields` wrote, to the last bit: values that already integrate to one are not divided again."""
        made = cls(fields["x"], fields["f"], fields["tail"])
        f = np.array(fields["f"], dtype=np.float64)
        if np.allclose(f, made.f, rtol=1e-9, atol=0.0):
            f.flags.writeable = False
            object.__setattr__(made, "f", f)
        return made
