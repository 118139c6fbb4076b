"""Numba: tables of a tree program that lie in one place, one after the other, and are made again on the way down.

That takes the memory of the largest of them instead of all; what is made again stays in the processor's cache.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.tree.columns import (
    C_OFF,
    C_PARENT,
    C_SEP,
    C_SEP_SIZE,
    C_SIZE,
    C_STATIC,
    C_TERM,
    C_TERM_END,
    COMBINED,
    O_CLIQUE,
    O_FROM,
    P_CLIQUES,
    P_MAPS,
    P_MAPS_TABLE,
    P_MASK_OFFSET,
    P_MEMBERS,
    P_NEEDED,
    P_OUTPUTS,
    P_SLICES,
    P_TERMS,
    P_TOPO,
    S_BUFFER,
    SEPARATOR,
    SLICE,
    T_KIND,
    T_MAP,
    T_SOURCE,
)
from gramgraph._numerics.tree.lanes import helper, jit
from gramgraph._numerics.tree.sections import buffers, rows, section
from gramgraph._numerics.tree.steps import build, combine, hand_down, normalize_root, read_one, take_over


@helper
def share_room(cliques):
    """Whether several tables lie in the first place, so that each of them is made anew when it is needed again."""
    found = False
    for c in range(1, cliques.shape[0]):
        found |= cliques[c, C_OFF] == 0
    return found


@helper
def lists_of(cliques, outputs, needed):
    """For each clique its children whose separators are needed, and the outputs that are read from its table.

    Both as lists: the first one of each clique, and after each one the next; -1 where there is none.
    """
    n, n_outputs = cliques.shape[0], outputs.shape[0]
    child, output = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    next_child, next_output = np.full(n, -1, np.int64), np.full(n_outputs, -1, np.int64)
    for c in range(n - 1, -1, -1):
        p = cliques[c, C_PARENT]
        if p >= 0 and needed[c] > 0:
            next_child[c] = child[p]
            child[p] = c
    for q in range(n_outputs - 1, -1, -1):
        if outputs[q, O_FROM] == 0:
            next_output[q] = output[outputs[q, O_CLIQUE]]
            output[outputs[q, O_CLIQUE]] = q
    return child, next_child, output, next_output


@jit
def make_again(W, c, ints, static, memory):
    """The table of a clique whose place another one has taken."""
    cliques, terms, members = rows(ints, P_CLIQUES, 9), rows(ints, P_TERMS, 6), rows(ints, P_MEMBERS, 2)
    maps_table, slices = rows(ints, P_MAPS_TABLE, 6), rows(ints, P_SLICES, 6)
    maps, mask_offset = section(ints, P_MAPS).view(np.uint64), section(ints, P_MASK_OFFSET)
    work = buffers(W, ints, memory)
    build(W, c, cliques, terms, members, maps_table, maps, slices, mask_offset, static, work)


@jit
def make_part_again(W, c, blocks, ints, static, memory):
    """Of the table of such a clique the entries that go with one state of its separator, `blocks[w]` in lane w.

    They stand where the table began, in the order in which they stand in it.
    """
    cliques, terms, members = rows(ints, P_CLIQUES, 9), rows(ints, P_TERMS, 6), rows(ints, P_MEMBERS, 2)
    maps_table, slices = rows(ints, P_MAPS_TABLE, 6), rows(ints, P_SLICES, 6)
    maps, mask_offset = section(ints, P_MAPS), section(ints, P_MASK_OFFSET)
    work = buffers(W, ints, memory)
    tables, separators, buffer, likelihood, combined, active, spill = (
        work[0],
        work[1],
        work[3],
        work[4],
        work[5],
        work[7],
        work[8],
    )
    run = cliques[c, C_SIZE] // cliques[c, C_SEP_SIZE]
    o, z = cliques[c, C_OFF] * W, cliques[c, C_STATIC]
    for w in range(W):
        spill[c * W + w] = 0.0
        for r in range(run):
            tables[o + r * W + w] = 1.0 if z < 0 else static[z + blocks[w] * run + r]
    for t in range(cliques[c, C_TERM], cliques[c, C_TERM_END]):
        kind, source = terms[t, T_KIND], terms[t, T_SOURCE]
        if kind == SEPARATOR:
            table, s = separators, cliques[source, C_SEP]
        elif kind == SLICE:
            table, s = buffer, slices[source, S_BUFFER]
        elif kind == COMBINED:
            if not combine(W, t, c, cliques, terms, members, slices, mask_offset, work):
                continue
            table, s = combined, source
        else:
            if active[source] == 0.0:
                continue
            table, s = likelihood, mask_offset[source]
        row = terms[t, T_MAP]
        hi, lo, n_lo = maps_table[row, 0], maps_table[row, 2], maps_table[row, 3]
        inner, step = maps_table[row, 4], 1 if maps_table[row, 5] == 1 else 0
        for w in range(W):
            first = blocks[w] * run
            i, k = first % inner, first // inner
            h, k = k // n_lo, k % n_lo
            at = maps[hi + h] + maps[lo + k]
            for r in range(run):
                tables[o + r * W + w] *= table[(s + at + i * step) * W + w]
                i += 1
                if i == inner and r + 1 < run:
                    i = 0
                    k += 1
                    if k == n_lo:
                        k = 0
                        h += 1
                    at = maps[hi + h] + maps[lo + k]


@jit
def beliefs_in_turn(W, case, last, ints, static, memory, out):
    """Beliefs from the roots down where tables share a place: each is made again, read, and handed to its children."""
    work = buffers(W, ints, memory)
    cliques, maps_table, outputs = rows(ints, P_CLIQUES, 9), rows(ints, P_MAPS_TABLE, 6), rows(ints, P_OUTPUTS, 5)
    maps = section(ints, P_MAPS).view(np.uint64)
    needed, topo = section(ints, P_NEEDED), section(ints, P_TOPO)
    child, next_child, output, next_output = lists_of(cliques, outputs, needed)
    for q in range(topo.shape[0]):
        c = topo[q]
        if (needed[c] & 1) == 0:
            continue
        if cliques[c, C_OFF] == 0:
            make_again(W, c, ints, static, memory)
        if cliques[c, C_PARENT] < 0:
            normalize_root(W, c, cliques, work)
        else:
            take_over(W, c, cliques, work)
        d = child[c]
        while d >= 0:
            hand_down(W, d, cliques, maps_table, maps, work)
            d = next_child[d]
        at = output[c]
        while at >= 0:
            read_one(W, case, last, at, cliques, outputs, maps_table, maps, work, out)
            at = next_output[at]
    for at in range(outputs.shape[0]):
        if outputs[at, O_FROM] == 1:
            read_one(W, case, last, at, cliques, outputs, maps_table, maps, work, out)
