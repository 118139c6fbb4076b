"""Beliefs as the page draws them: probabilities, curves with mean and interval, rings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gramgraph.explorer.case import is_circle

#: Points of a curve, and of a ring.
CURVE, RING = 97, 120


class Ranges:
    """The stretch of its axis that each real-valued variable is drawn on: where it lies before evidence."""

    def __init__(self, beliefs: dict[str, Any]) -> None:
        self.ends = {name: _ends(belief) for name, belief in beliefs.items()}

    def points(self, name: str) -> Any:
        """Where the curve is drawn."""
        low, high = self.ends[name]
        return np.linspace(low, high, CURVE)


def _ends(belief: Any) -> tuple[float, float]:
    low, high = (float(x) for x in belief.interval(0.995))
    if not high > low:
        low, high = low - 1.0, high + 1.0
    room = 0.06 * (high - low)
    return rounded_ends(low - room if low < 0.0 or low - room > 0.0 else 0.0, high + room)


def rounded_ends(low: float, high: float) -> tuple[float, float]:
    """The stretch, a little longer, so that its ends and its middle are short numbers.

    >>> rounded_ends(11.13, 50.62)
    (10.0, 52.0)
    """
    unit = 2.0 * 10.0 ** (math.floor(math.log10(high - low)) - 1)
    first, last = math.floor(low / unit), math.ceil(high / unit)
    if not math.isfinite(unit) or unit == 0.0 or first == last:
        return low, high
    return float(f"{first * unit:.12g}"), float(f"{last * unit:.12g}")


def belief_of(var: Any, belief: Any, ranges: Ranges, value: Any = None) -> Any:
    """One belief as plain values; `value` is what the variable is known to be."""
    if hasattr(belief, "probabilities"):
        return [float(p) for p in np.asarray(belief.probabilities).reshape(-1)]
    if var.name not in ranges.ends and not is_circle(var):
        return {"text": _text(belief)}
    if value is not None:
        return {"value": float(value)}
    low, high = belief.interval(0.9)
    if is_circle(var):
        x = np.linspace(-np.pi, np.pi, RING, endpoint=False)
        return {
            "dir": float(belief.mean_direction()) if hasattr(belief, "mean_direction") else float(belief.mean()),
            "R": float(belief.resultant_length()) if hasattr(belief, "resultant_length") else None,
            "lo": float(low),
            "hi": float(high),
            "curve": _finite(belief.density(x)),
        }
    return {
        "mean": float(belief.mean()),
        "sd": float(belief.sd()),
        "lo": float(low),
        "hi": float(high),
        "curve": _finite(belief.density(ranges.points(var.name))),
    }


def _finite(values: Any) -> list[float]:
    return [float(f"{v:.6g}") for v in np.nan_to_num(np.asarray(values, dtype=np.float64), posinf=0.0)]


def _text(belief: Any) -> str:
    try:
        mean = np.atleast_1d(np.asarray(belief.mean(), dtype=np.float64))
        return "(" + ", ".join(f"{m:.3g}" for m in mean[:4]) + (", …)" if len(mean) > 4 else ")")
    except Exception:  # beliefs about strings, sets …: they have no mean
        return str(belief).strip().splitlines()[0][:40]
