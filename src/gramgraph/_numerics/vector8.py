"""Eight doubles as one value inside compiled loops.

`load8(a, i)` reads a[i:i+8], `store8(a, i, v)` writes it, also where a holds single precision; `add8`, `sub8`, `mul8`,
`div8`, `fma8`, `max8`, `sqrt8`, `fill8` compute. A matrix counts as one row after the other. Compiled, a value is a
vector register (two on processors with half as wide ones), whatever the compiler's own vectorizer thinks of the loop.
Uncompiled (NUMBA_DISABLE_JIT=1) it is a small array. Indices are uint64; nothing is checked. `stream8` and
`stream_columns8` write past the caches, to addresses that are multiples of 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.compiling import when_compiled

when_compiled("gramgraph._numerics.vector8_compiled")

LANES = 8
_ALIGN = 8  # arrays promise no more than the alignment of a double


def load8(a: Any, i: Any) -> Any:
    """a[i:i+8]."""
    return _flat(a)[int(i) : int(i) + LANES].astype(np.float64)


def store8(a: Any, i: Any, v: Any) -> None:
    """a[i:i+8] = v."""
    _flat(a)[int(i) : int(i) + LANES] = v


def _flat(a: Any) -> Any:
    return a if a.ndim == 1 else a.reshape(-1)


def fill8(x: Any) -> Any:
    """The number x eight times."""
    return np.full(LANES, x)


def add8(u: Any, v: Any) -> Any:
    """u + v."""
    return u + v


def mul8(u: Any, v: Any) -> Any:
    """u · v."""
    return u * v


def div8(u: Any, v: Any) -> Any:
    """u / v."""
    return u / v


def max8(u: Any, v: Any) -> Any:
    """The larger of u and v, lane by lane."""
    return np.maximum(u, v)


def sub8(u: Any, v: Any) -> Any:
    """u − v."""
    return u - v


def fma8(u: Any, v: Any, w: Any) -> Any:
    """u · v + w, rounded once where the processor can."""
    return u * v + w


def sqrt8(u: Any) -> Any:
    """√u."""
    return np.sqrt(u)


def times_power8(p: Any, z: Any) -> Any:
    """p · 2ᵏ, with z = k + 1023 + 1.5 · 2⁵² for k from −1023, where it is 0, to 1023."""
    k = (z - 6755399441056767.0).astype(np.int64)
    return np.where(k < -1022, 0.0, np.ldexp(p, k))


def stream8(a: Any, i: Any, v: Any) -> None:
    """a[i:i+8] = v past the caches; a[i] stands at a multiple of 64 bytes."""
    store8(a, i, v)


def store_columns8(a: Any, i: Any, step: Any, v: Any) -> None:
    """For a tuple v of eight values: a[i + step·r + c] = v[c][r], an 8 × 8 block transposed."""
    for r, row in enumerate(np.stack(v, axis=1)):
        store8(a, int(i) + int(step) * r, row)


def stream_columns8(a: Any, i: Any, step: Any, v: Any) -> None:
    """`store_columns8` past the caches, where every row starts at a multiple of 64 bytes."""
    store_columns8(a, i, step, v)
