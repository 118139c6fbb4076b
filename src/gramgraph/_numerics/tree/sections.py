"""Numba: the sections of a packed tree program, and the buffers of who runs it."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.tree.columns import N_BUFFERS, P_WORK
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
def buffers(W, ints, memory):
    """The runner's buffers, cut from one array."""
    size = section(ints, P_WORK)
    ends = np.empty(N_BUFFERS + 1, np.int64)
    ends[0] = 0
    for k in range(N_BUFFERS):
        ends[k + 1] = ends[k] + size[k] * W
    return (
        memory[ends[0] : ends[1]],
        memory[ends[1] : ends[2]],
        memory[ends[2] : ends[3]],
        memory[ends[3] : ends[4]],
        memory[ends[4] : ends[5]],
        memory[ends[5] : ends[6]],
        memory[ends[6] : ends[7]],
        memory[ends[7] : ends[8]],
        memory[ends[8] : ends[9]],
        memory[ends[9] : ends[10]],
        memory[ends[10] : ends[11]],
    )
