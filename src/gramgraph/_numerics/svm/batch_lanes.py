"""Eight points at a time for the loops of `svm_whole`: as `smo_lanes`, with values of eight singles beside doubles.

A single-precision value searches the best gain: half the register of the doubles, and indices up to 2²⁴ are exact.
Uncompiled, values are small arrays. Indices are uint64; nothing is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.compiling import when_compiled
from gramgraph._numerics.vector8 import LANES

when_compiled("gramgraph._numerics.svm.batch_lanes_compiled")

_TINY = np.float32(1e-12)
NOWHERE32 = np.float32(1e30)


def change8(Ki: Any, Kj: Any, step: Any, k: Any) -> Any:
    """step · (Ki − Kj) at k, …, k + 7; the difference in the precision of the rows."""
    k = int(k)
    return step * (Ki[k : k + LANES] - Kj[k : k + LANES]).astype(np.float64)


def profit8(fall: Any, Ki: Any, diag: Any, fi: Any, di: Any, k: Any) -> Any:
    """max(fall − fi, 0)² / max(di + diag − 2 Ki, tiny) in single precision."""
    here = slice(int(k), int(k) + LANES)
    t = np.maximum((fall[here] - fi).astype(np.float32), np.float32(0))
    eta = np.float32(di) + diag[here] - np.float32(2) * Ki[here].astype(np.float32)
    return t * t / np.maximum(eta, _TINY)


def singles8(x: Any) -> Any:
    """The number x eight times, in single precision."""
    return np.full(LANES, x, np.float32)


def larger8(u: Any, v: Any) -> Any:
    """The larger of u and v, lane by lane."""
    return np.maximum(u, v)


def above8(v: Any, best: Any, at: Any, k: Any) -> Any:
    """k where v > best, else at."""
    return np.where(v > best, np.float32(k), at)


def greatest8(v: Any) -> Any:
    """The largest of the eight."""
    return v.max()


def earliest8(v: Any, at: Any, value: Any) -> Any:
    """The smallest at + lane among lanes with v = value; NOWHERE32 when there is none."""
    return np.where(v == value, at + np.arange(LANES, dtype=np.float32), NOWHERE32).min()
