"""The distributions of a scalar child for many values of its parents at once: densities at points, masses of boxes.

Quadrature asks a conditional for these instead of for single cases: what depends on the parents is computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.conditionals.continuous import Draws, RealConditional


class Laws(Protocol):
    """n distributions on the line."""

    def log_density(self, y: FloatArray, /) -> FloatArray:
        """log p(y) of each, (n, m)."""
        ...

    def log_masses(self, low: FloatArray, high: FloatArray, /) -> FloatArray | None:
        """log P(low < Y < high) of each, (n, m); None where it is not known."""
        ...

    def sharpness(self) -> tuple[FloatArray, FloatArray] | None:
        """Centers and widths, (n,) each, by which it is seen whether nodes are close enough; None where unknown."""
        ...


@dataclass(frozen=True, eq=False)
class NormalLaws:
    """N(mean, sd²).

    >>> np.exp(NormalLaws(np.zeros(1), np.ones(1)).log_masses(np.array([-1.0]), np.array([1.0]))).round(4).tolist()
    [[0.6827]]
    """

    mean: FloatArray  # (n,)
    sd: FloatArray  # (n,)

    def log_density(self, y: FloatArray, /) -> FloatArray:
        """log N(y; mean, sd²)."""
        sd = np.maximum(self.sd, 1e-300)[:, None]
        with np.errstate(over="ignore"):
            return np.asarray(-0.5 * ((y - self.mean[:, None]) / sd) ** 2 - np.log(sd) - 0.5 * LOG_2PI)

    def log_masses(self, low: FloatArray, high: FloatArray, /) -> FloatArray:
        """log (Φ(b) − Φ(a)); of boxes above the mean by their mirror images, where no digits are lost."""
        from scipy.special import log_ndtr

        sd = np.maximum(self.sd, 1e-300)[:, None]
        with np.errstate(over="ignore"):
            a, b = (low - self.mean[:, None]) / sd, (high - self.mean[:, None]) / sd
        flip = a > 0.0
        top, bottom = log_ndtr(np.where(flip, -a, b)), log_ndtr(np.where(flip, -b, a))
        with np.errstate(divide="ignore", invalid="ignore"):
            out = top + np.log1p(-np.exp(bottom - top))
        return np.where(np.isnan(out), -np.inf, out)

    def sharpness(self) -> tuple[FloatArray, FloatArray] | None:
        """Means and standard deviations."""
        return self.mean, self.sd


@dataclass(frozen=True, eq=False)
class CenteredLaws:
    """y = mean + scale · noise, the noise with a given log density."""

    mean: FloatArray  # (n,)
    scale: FloatArray  # (n,)
    noise: Callable[[FloatArray], FloatArray]
    width: float  # of the noise
    cdf: Callable[[FloatArray], FloatArray]  # of the noise

    def log_density(self, y: FloatArray, /) -> FloatArray:
        """log p(noise) − log scale."""
        z = (y - self.mean[:, None]) / self.scale[:, None]
        return np.asarray(self.noise(z.ravel()).reshape(z.shape) - np.log(self.scale)[:, None])

    def log_masses(self, low: FloatArray, high: FloatArray, /) -> FloatArray | None:
        """Differences of the distribution function; where they vanish, the density in the middle of the box."""
        ends = [(self.cdf((end - self.mean[:, None]) / self.scale[:, None])) for end in (low, high)]
        found = ends[1] - ends[0]
        tiny = found < 1e-9  # digits were lost
        with np.errstate(divide="ignore"):
            out = np.log(found)
        if tiny.any():
            middle = self.log_density(0.5 * (low + high)) + np.log(high - low)
            out = np.where(tiny, middle, out)
        return np.asarray(out)

    def sharpness(self) -> tuple[FloatArray, FloatArray] | None:
        """Means and widths."""
        return self.mean, self.scale * self.width


@dataclass(frozen=True, eq=False)
class MixedLaws:
    """A mixture with fixed weights."""

    parts: tuple[Any, ...]
    weights: FloatArray

    @property
    def kinked(self) -> bool:
        """Whether a part has kinks, so that values at nodes are to be compared with masses."""
        return any(getattr(part, "kinked", False) for part in self.parts)

    def log_density(self, y: FloatArray, /) -> FloatArray:
        """log Σ wᵢ pᵢ(y)."""
        return self._mixed([part.log_density(y) for part in self.parts])

    def log_masses(self, low: FloatArray, high: FloatArray, /) -> FloatArray | None:
        """Those of the parts together, where all know them."""
        found = [part.log_masses(low, high) for part in self.parts]
        return None if any(part is None for part in found) else self._mixed(found)

    def _mixed(self, parts: list[FloatArray]) -> FloatArray:
        logs = np.stack(parts) + np.log(self.weights)[:, None, None]
        top = logs.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))

    def sharpness(self) -> tuple[FloatArray, FloatArray] | None:
        """Those of the part whose centers jump most against their widths."""
        known = [found for part in self.parts if (found := part.sharpness()) is not None]
        if not known:
            return None
        return min(known, key=lambda found: float(np.min(found[1])))


@dataclass(frozen=True, eq=False)
class CaseLaws:
    """Any conditional, asked case by case."""

    conditional: RealConditional
    values: Draws
    n: int

    def log_density(self, y: FloatArray, /) -> FloatArray:
        """log p of all pairs of parents and y."""
        c, m = self.conditional, len(y)
        values = {var: np.repeat(np.asarray(self.values[var]), m, axis=0) for var in c.parents}
        values[c.child] = np.tile(y, self.n)[:, None]
        return np.asarray(c.log_density(values)).reshape(self.n, m)

    def log_masses(self, low: FloatArray, high: FloatArray, /) -> FloatArray | None:
        """Not known."""
        return None

    def sharpness(self) -> tuple[FloatArray, FloatArray] | None:
        """Not known."""
        return None
