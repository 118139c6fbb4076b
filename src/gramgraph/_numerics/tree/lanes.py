"""Numba: the loops of a tree program over tables that hold W cases side by side, the case innermost.

With eight lanes one vector instruction serves eight cases. These loops do nearly all the work (init, multiply, project,
sum, scale), so they are written for one lane and for eight. Their indices are unsigned, which spares a test for
negative ones at every access.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.vector8 import add8, fill8, load8, max8, mul8, store8

U = np.uint64
U0, U1, U8 = np.uint64(0), np.uint64(1), np.uint64(8)
#: Sums may be reordered; infinities and NaN keep their meaning.
LOOSE = {"reassoc", "contract", "arcp", "nsz"}
_LOOPS: dict[str, Any] = {"cache": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}
jit = njit(fastmath=LOOSE, **_LOOPS)
#: For calls of microseconds: threads that let go of the interpreter so shortly wait for it longer than they ran.
holding = njit(fastmath=LOOSE, **{**_LOOPS, "nogil": False})
#: For helpers of compiled code: the way in from Python is left out, which costs as long to compile as a short loop.
helper = njit(fastmath=LOOSE, no_cpython_wrapper=True, **_LOOPS)
#: For parts of a step that must not cost a call.
part = njit(fastmath=LOOSE, no_cpython_wrapper=True, forceinline=True, **_LOOPS)
_helper_max = njit(fastmath={"nnan", "nsz"}, no_cpython_wrapper=True, **_LOOPS)


# --- one lane ---------------------------------------------------------------------------------------------------


@helper
def _init1(out, o, base, z, table, s0, maps, hi, n_hi, lo, n_lo, inner, shared):
    for h in range(n_hi):
        sh = s0 + maps[hi + h]
        for k in range(n_lo):
            s = sh + maps[lo + k]
            if shared:
                for r in range(inner):
                    out[o + r] = base[z + r] * table[s + r]
            else:
                x = table[s]
                for r in range(inner):
                    out[o + r] = base[z + r] * x
            o += inner
            z += inner


@helper
def multiply1(out, o, table, s0, maps, hi, n_hi, lo, n_lo, inner, shared):
    for h in range(n_hi):
        sh = s0 + maps[hi + h]
        for k in range(n_lo):
            s = sh + maps[lo + k]
            if shared:
                for r in range(inner):
                    out[o + r] *= table[s + r]
            else:
                x = table[s]
                for r in range(inner):
                    out[o + r] *= x
            o += inner


@helper
def _project1(table, o, out, s0, maps, hi, n_hi, lo, n_lo, inner, shared):
    for h in range(n_hi):
        sh = s0 + maps[hi + h]
        for k in range(n_lo):
            s = sh + maps[lo + k]
            if shared:
                for r in range(inner):
                    out[s + r] += table[o + r]
            else:
                x = 0.0
                for r in range(inner):
                    x += table[o + r]
                out[s] += x
            o += inner


@helper
def _sum1(table, o, blocks, run, out, s):
    for b in range(blocks):
        x = 0.0
        for r in range(run):
            x += table[o + r]
        out[s + b] = x
        o += run


@_helper_max
def _max1(table, o, blocks, run, out, s):
    for b in range(blocks):
        x = 0.0
        for r in range(run):
            x = max(x, table[o + r])
        out[s + b] = x
        o += run


@helper
def _scale1(out, o, blocks, run, table, s):
    for b in range(blocks):
        x = table[s + b]
        for r in range(run):
            out[o + r] *= x
        o += run


@helper
def _copy1(out, o, base, z, count):
    for r in range(count):
        out[o + r] = base[z + r]


# --- eight lanes ------------------------------------------------------------------------------------------------


@helper
def _init8(out, o, base, z, table, s0, maps, hi, n_hi, lo, n_lo, inner, shared):
    for h in range(n_hi):
        sh = s0 + maps[hi + h] * U8
        for k in range(n_lo):
            s = sh + maps[lo + k] * U8
            if shared:
                for r in range(inner):
                    store8(out, o, mul8(fill8(base[z + r]), load8(table, s)))
                    o += U8
                    s += U8
            else:
                x = load8(table, s)
                for r in range(inner):
                    store8(out, o, mul8(fill8(base[z + r]), x))
                    o += U8
            z += inner


@helper
def _multiply8(out, o, table, s0, maps, hi, n_hi, lo, n_lo, inner, shared):
    for h in range(n_hi):
        sh = s0 + maps[hi + h] * U8
        for k in range(n_lo):
            s = sh + maps[lo + k] * U8
            if shared:
                for _ in range(inner):
                    store8(out, o, mul8(load8(out, o), load8(table, s)))
                    o += U8
                    s += U8
            else:
                x = load8(table, s)
                for _ in range(inner):
                    store8(out, o, mul8(load8(out, o), x))
                    o += U8


@helper
def _project8(table, o, out, s0, maps, hi, n_hi, lo, n_lo, inner, shared):
    for h in range(n_hi):
        sh = s0 + maps[hi + h] * U8
        for k in range(n_lo):
            s = sh + maps[lo + k] * U8
            if shared:
                for _ in range(inner):
                    store8(out, s, add8(load8(out, s), load8(table, o)))
                    o += U8
                    s += U8
            else:
                x = load8(out, s)
                for _ in range(inner):
                    x = add8(x, load8(table, o))
                    o += U8
                store8(out, s, x)


@helper
def _sum8(table, o, blocks, run, out, s):
    for _ in range(blocks):
        x = load8(table, o)
        o += U8
        for _ in range(run - U1):
            x = add8(x, load8(table, o))
            o += U8
        store8(out, s, x)
        s += U8


@helper
def _max8(table, o, blocks, run, out, s):
    for _ in range(blocks):
        x = load8(table, o)
        o += U8
        for _ in range(run - U1):
            x = max8(x, load8(table, o))
            o += U8
        store8(out, s, x)
        s += U8


@helper
def _scale8(out, o, blocks, run, table, s):
    for _ in range(blocks):
        x = load8(table, s)
        for _ in range(run):
            store8(out, o, mul8(load8(out, o), x))
            o += U8
        s += U8


@helper
def _copy8(out, o, base, z, count):
    for r in range(count):
        store8(out, o, fill8(base[z + r]))
        o += U8


# --- the same for both widths ------------------------------------------------------------------------------------


@helper
def init(W, out, o, base, z, table, s, maps, hi, n_hi, lo, n_lo, inner, shared):
    if W == 1:
        _init1(out, o, base, z, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
    else:
        _init8(out, o, base, z, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)


@helper
def multiply(W, out, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared):
    if W == 1:
        multiply1(out, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
    else:
        _multiply8(out, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)


@helper
def project(W, table, o, out, s, maps, hi, n_hi, lo, n_lo, inner, shared):
    if W == 1:
        _project1(table, o, out, s, maps, hi, n_hi, lo, n_lo, inner, shared)
    else:
        _project8(table, o, out, s, maps, hi, n_hi, lo, n_lo, inner, shared)


@helper
def total(W, table, o, blocks, run, out, s):
    if W == 1:
        _sum1(table, o, blocks, run, out, s)
    else:
        _sum8(table, o, blocks, run, out, s)


@helper
def maximum(W, table, o, blocks, run, out, s):
    if W == 1:
        _max1(table, o, blocks, run, out, s)
    else:
        _max8(table, o, blocks, run, out, s)


@helper
def scale(W, out, o, blocks, run, table, s):
    if W == 1:
        _scale1(out, o, blocks, run, table, s)
    else:
        _scale8(out, o, blocks, run, table, s)


@helper
def copy(W, out, o, base, z, count):
    if W == 1:
        _copy1(out, o, base, z, count)
    else:
        _copy8(out, o, base, z, count)
