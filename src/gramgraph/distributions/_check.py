"""The door of the distributions: numbers, vectors, matrices and draws are looked at here, once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray


def array(name: str, value: Any) -> FloatArray:
    """`value` as a float array without NaN; infinities pass (densities know what they mean)."""
    try:
        out = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must hold numbers; got {_short(value)}.") from error
    if np.isnan(out).any():
        raise ModelError(f"{name} holds NaN at {_where(np.isnan(out))}. Try: leave out what was not observed.")
    return out


def number(
    name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, closed: bool = False, whole: bool = False
) -> float:
    """`value` as a finite float in the open interval (low, high), or the closed one."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    ok = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    ok = ok and bool(np.isfinite(value)) and (low <= value <= high if closed else low < value < high)
    if not ok or (whole and float(value) != int(value)):
        kind = "a whole number" if whole else "a number"
        if np.isfinite(low) and np.isfinite(high):
            kind += f" from {low:g} to {high:g}" if closed else f" between {low:g} and {high:g}"
        elif np.isfinite(low):
            kind += f" of at least {low:g}" if closed else f" above {low:g}"
        raise ModelError(f"{name} must be {kind}, not {_short(value)}")
    return float(value)


def vector(name: str, value: Any, size: int | None = None) -> FloatArray:
    """`value` as a finite (d,) array; a single number is a vector of one."""
    out = array(name, value)
    if out.ndim == 0:
        out = out[None]
    if out.ndim != 1 or not out.size or (size is not None and len(out) != size):
        wanted = "(d,) with d of at least 1" if size is None else f"({size},)"
        raise ModelError(f"{name} must have shape {wanted}; its shape is {out.shape}.")
    return _finite(name, out)


def matrix(name: str, value: Any, shape: tuple[int | None, int | None] = (None, None)) -> FloatArray:
    """`value` as a finite matrix; None in `shape` leaves that side free."""
    out = array(name, value)
    if out.ndim != 2 or any(want is not None and want != got for want, got in zip(shape, out.shape, strict=True)):
        wanted = ", ".join("any" if side is None else str(side) for side in shape)
        raise ModelError(f"{name} must have shape ({wanted}); its shape is {out.shape}.")
    return _finite(name, out)


def covariance_like(name: str, value: Any, d: int) -> FloatArray:
    """A symmetric (d, d) matrix, given whole, as d variances or as one variance for all; definite or not."""
    out = array(name, value)
    if out.ndim == 0:
        out = np.eye(d) * out
    elif out.ndim == 1 and out.shape == (d,):
        out = np.diag(out)
    if out.shape != (d, d):
        raise ModelError(
            f"{name} must be a ({d}, {d}) matrix, {d} variances or one variance, as the vector has {d} entries; its "
            f"shape is {out.shape}."
        )
    _finite(name, out)
    gap = np.abs(out - out.T)
    scale = float(np.abs(out).max(initial=0.0))
    if gap.max(initial=0.0) > 1e-6 * scale:
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ModelError(
            f"{name} must be symmetric; its entries [{i}, {j}] and [{j}, {i}] are {out[i, j]:g} and {out[j, i]:g}. "
            f"Try: (C + C.T) / 2."
        )
    return 0.5 * (out + out.T)


def single(name: str, value: Any) -> float:
    """The only entry of a vector of one, which may be infinite."""
    out = array(name, value)
    if out.size != 1:
        raise ModelError(f"{name} must have shape (1,); its shape is {out.shape}.")
    return float(out.reshape(()))


def weights_of(weights: Any, n: int) -> FloatArray:
    """Weights of n data points: non-negative, with a positive sum."""
    if weights is None:
        return np.ones(n)
    out = array("weights", weights)
    if out.shape != (n,):
        raise ModelError(f"weights must have one entry a data point, shape ({n},); their shape is {out.shape}.")
    _finite("weights", out)
    if (out < 0).any() or not out.sum() > 0:
        raise ModelError("weights must not be negative, and some must be positive.")
    return out


def frozen(values: FloatArray) -> FloatArray:
    """A contiguous copy that cannot be written to."""
    out = np.array(values, dtype=np.float64, order="C")
    out.flags.writeable = False
    return out


def _finite(name: str, out: FloatArray) -> FloatArray:
    if not np.isfinite(out).all():
        raise ModelError(f"{name} must be finite; it holds an infinity at {_where(~np.isfinite(out))}.")
    return out


def _where(bad: Any) -> str:
    at = np.argwhere(bad)[0]
    return f"[{', '.join(str(int(i)) for i in at)}]" if len(at) else "its only entry"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
