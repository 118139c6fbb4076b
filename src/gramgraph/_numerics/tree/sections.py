"""Numba: the sections of a packed tree program, and the buffers of who runs it."""

from __future__ import annotations

from gramgraph._numerics.tree.columns import (
    P_WORK,
    W_ACTIVE,
    W_BELIEFS,
    W_COMBINED,
    W_EXPONENTS,
    W_LIKELIHOOD,
    W_SCRATCH,
    W_SEPARATORS,
    W_SLICES,
    W_SPILL,
    W_TABLES,
    W_TOTALS,
)
from gramgraph._numerics.tree.lanes import helper


@helper
def section(ints, k):
    """Section k of the packed program, flat."""
    return ints[ints[k] : ints[k + 1]]


@helper
def rows(ints, k, columns):
    """Section k of the packed program as rows."""
    return ints[ints[k] : ints[k + 1]].reshape((ints[k + 1] - ints[k]) // columns, columns)


@helper
def _next(memory, end, count):
    """`count` numbers from `end` on, and where they end."""
    return memory[end : end + count], end + count


@helper
def buffers(W, ints, memory):
    """The runner's buffers, cut from one array."""
    size = section(ints, P_WORK)
    end = size[W_TABLES] * W
    tables = memory[:end]
    separators, end = _next(memory, end, size[W_SEPARATORS] * W)
    beliefs, end = _next(memory, end, size[W_BELIEFS] * W)
    slices, end = _next(memory, end, size[W_SLICES] * W)
    likelihood, end = _next(memory, end, size[W_LIKELIHOOD] * W)
    combined, end = _next(memory, end, size[W_COMBINED] * W)
    exponents, end = _next(memory, end, size[W_EXPONENTS] * W)
    active, end = _next(memory, end, size[W_ACTIVE] * W)
    spill, end = _next(memory, end, size[W_SPILL] * W)
    totals, end = _next(memory, end, size[W_TOTALS] * W)
    scratch, end = _next(memory, end, size[W_SCRATCH] * W)
    return tables, separators, beliefs, slices, likelihood, combined, exponents, active, spill, totals, scratch
