"""Eight points at a time for the loops of `smo`: values, gains and the place of the best, in straight-line code.

As in `vector8`: compiled, a value of eight doubles is a register; uncompiled it is a small array. Arrays may hold
single or double precision. Indices are uint64; nothing is checked. A search for the least value keeps, lane by lane,
the value and the index at which its eight started (as a double), and takes the first of the eight lanes at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.compiling import when_compiled
from gramgraph._numerics.vector8 import LANES

when_compiled("gramgraph._numerics.svm.smo_lanes_compiled")
_TINY = 1e-12
NOWHERE = 1e300


def sum8(f: Any, up: Any, k: Any) -> Any:
    """f + up at k, …, k + 7."""
    k = int(k)
    return f[k : k + LANES] + up[k : k + LANES].astype(np.float64)


def rest8(f: Any, lo: Any, k: Any) -> Any:
    """f − lo at k, …, k + 7."""
    k = int(k)
    return f[k : k + LANES] - lo[k : k + LANES].astype(np.float64)


def move8(f: Any, Ki: Any, Kj: Any, step: Any, k: Any) -> None:
    """f += step · (Ki − Kj) at k, …, k + 7."""
    k = int(k)
    f[k : k + LANES] += step * (Ki[k : k + LANES].astype(np.float64) - Kj[k : k + LANES])


def gain8(f: Any, lo: Any, Ki: Any, diag: Any, fi: Any, di: Any, k: Any) -> Any:
    """max(f − lo − fi, 0)² / max(di + diag − 2 Ki, tiny), the quotient in single precision."""
    k = int(k)
    here = slice(k, k + LANES)
    t = np.maximum((f[here] - lo[here] - fi).astype(np.float32), np.float32(0))
    eta = np.float32(di) + diag[here] - np.float32(2) * Ki[here].astype(np.float32)
    return (t * t / np.maximum(eta, np.float32(_TINY))).astype(np.float64)


def min8(u: Any, v: Any) -> Any:
    """The smaller of u and v, lane by lane."""
    return np.minimum(u, v)


def under8(v: Any, best: Any, at: Any, k: Any) -> Any:
    """k where v < best, else at."""
    return np.where(v < best, float(k), at)


def over8(v: Any, best: Any, at: Any, k: Any) -> Any:
    """k where v > best, else at."""
    return np.where(v > best, float(k), at)


def least8(v: Any) -> Any:
    """The smallest of the eight."""
    return v.min()


def most8(v: Any) -> Any:
    """The largest of the eight."""
    return v.max()


def first8(v: Any, at: Any, value: Any) -> Any:
    """The smallest at + lane among lanes with v = value; NOWHERE when there is none."""
    return np.where(v == value, at + np.arange(LANES), NOWHERE).min()
