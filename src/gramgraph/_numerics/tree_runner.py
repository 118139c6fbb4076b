"""Numba: run a tree program (`tree_program`) on cases of evidence.

Tables hold `W` cases side by side, the case innermost: with eight lanes one vector instruction serves eight cases.
The loops that do nearly all the work (init, multiply, project, sum, scale) are written for one lane and for eight; the
rest is written once for any `W`. Their indices are unsigned, which spares a test for negative ones at every access.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gramgraph._numerics.tree_program import (
    C_MAP,
    C_OFF,
    C_PARENT,
    C_SEP,
    C_SEP_SIZE,
    C_SIZE,
    C_STATIC,
    C_TERM,
    C_TERM_END,
    COMBINED,
    N_BUFFERS,
    O_CLIQUE,
    O_COLUMN,
    O_FROM,
    O_MAP,
    O_WIDTH,
    P_CLIQUE_PTR,
    P_CLIQUES,
    P_COLLECT,
    P_CONSTANTS,
    P_DISTRIBUTE,
    P_KEYS,
    P_MAPS,
    P_MAPS_TABLE,
    P_MASK_OFFSET,
    P_MEMBERS,
    P_N_SEP,
    P_NEEDED,
    P_ONEHOT,
    P_ORDERED,
    P_OUTPUTS,
    P_ROOTS,
    P_SIZES,
    P_SLICES,
    P_TERMS,
    P_TOPO,
    P_WORK,
    S_BASE,
    S_BUFFER,
    S_KEY,
    S_KEY_END,
    S_LENGTH,
    S_OFFSETS,
    SEPARATOR,
    SLICE,
    T_KIND,
    T_MAP,
    T_MEMBER,
    T_MEMBER_END,
    T_SIZE,
    T_SOURCE,
    add_map,
)
from gramgraph._numerics.vector8 import add8, fill8, load8, max8, mul8, store8

U = np.uint64
U0, U1, U8 = np.uint64(0), np.uint64(1), np.uint64(8)
SMALL = 2.0**-400
BIG = 2.0**400
LOG_BIG = 400.0 * math.log(2.0)
TINY = 1e-250
#: A clique whose cells sum to less than this share of what flows in has lost cells to underflow.
CONFLICT = 1e-100
#: Sums may be reordered; infinities and NaN keep their meaning.
LOOSE = {"reassoc", "contract", "arcp", "nsz"}
_jit = njit(cache=True, nogil=True, fastmath=LOOSE, boundscheck=False, error_model="numpy")
_jit_max = njit(cache=True, nogil=True, fastmath={"nnan", "nsz"}, boundscheck=False, error_model="numpy")


# --- one lane ---------------------------------------------------------------------------------------------------


@_jit
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


@_jit
def _multiply1(out, o, table, s0, maps, hi, n_hi, lo, n_lo, inner, shared):
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


@_jit
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


@_jit
def _sum1(table, o, blocks, run, out, s):
    for b in range(blocks):
        x = 0.0
        for r in range(run):
            x += table[o + r]
        out[s + b] = x
        o += run


@_jit_max
def _max1(table, o, blocks, run, out, s):
    for b in range(blocks):
        x = 0.0
        for r in range(run):
            x = max(x, table[o + r])
        out[s + b] = x
        o += run


@_jit
def _scale1(out, o, blocks, run, table, s):
    for b in range(blocks):
        x = table[s + b]
        for r in range(run):
            out[o + r] *= x
        o += run


@_jit
def _copy1(out, o, base, z, count):
    for r in range(count):
        out[o + r] = base[z + r]


# --- eight lanes ------------------------------------------------------------------------------------------------


@_jit
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


@_jit
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


@_jit
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


@_jit
def _sum8(table, o, blocks, run, out, s):
    for _ in range(blocks):
        x = load8(table, o)
        o += U8
        for _ in range(run - U1):
            x = add8(x, load8(table, o))
            o += U8
        store8(out, s, x)
        s += U8


@_jit
def _max8(table, o, blocks, run, out, s):
    for _ in range(blocks):
        x = load8(table, o)
        o += U8
        for _ in range(run - U1):
            x = max8(x, load8(table, o))
            o += U8
        store8(out, s, x)
        s += U8


@_jit
def _scale8(out, o, blocks, run, table, s):
    for _ in range(blocks):
        x = load8(table, s)
        for _ in range(run):
            store8(out, o, mul8(load8(out, o), x))
            o += U8
        s += U8


@_jit
def _copy8(out, o, base, z, count):
    for r in range(count):
        store8(out, o, fill8(base[z + r]))
        o += U8


# --- the same for both widths ------------------------------------------------------------------------------------


@_jit
def _init(W, out, o, base, z, table, s, maps, hi, n_hi, lo, n_lo, inner, shared):
    if W == 1:
        _init1(out, o, base, z, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
    else:
        _init8(out, o, base, z, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)


@_jit
def _multiply(W, out, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared):
    if W == 1:
        _multiply1(out, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
    else:
        _multiply8(out, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)


@_jit
def _project(W, table, o, out, s, maps, hi, n_hi, lo, n_lo, inner, shared):
    if W == 1:
        _project1(table, o, out, s, maps, hi, n_hi, lo, n_lo, inner, shared)
    else:
        _project8(table, o, out, s, maps, hi, n_hi, lo, n_lo, inner, shared)


@_jit
def _total(W, table, o, blocks, run, out, s):
    if W == 1:
        _sum1(table, o, blocks, run, out, s)
    else:
        _sum8(table, o, blocks, run, out, s)


@_jit
def _maximum(W, table, o, blocks, run, out, s):
    if W == 1:
        _max1(table, o, blocks, run, out, s)
    else:
        _max8(table, o, blocks, run, out, s)


@_jit
def _scale(W, out, o, blocks, run, table, s):
    if W == 1:
        _scale1(out, o, blocks, run, table, s)
    else:
        _scale8(out, o, blocks, run, table, s)


@_jit
def _copy(W, out, o, base, z, count):
    if W == 1:
        _copy1(out, o, base, z, count)
    else:
        _copy8(out, o, base, z, count)


@_jit
def enter(W, case, last, slices, keys, maps, values, codes, mask_columns, mask_offset, weights, weight_column, work):
    """Copy the evidence of `lanes` cases, from row `case` on, into the slice and likelihood buffers."""
    U(W)
    buffer, likelihood, active = work[3], work[4], work[7]
    for s in range(slices.shape[0]):
        start = slices[s, S_OFFSETS]
        at = slices[s, S_BUFFER] * W
        for w in range(W):
            row = min(case + w, last)
            base = slices[s, S_BASE]
            for k in range(slices[s, S_KEY], slices[s, S_KEY_END]):
                base += keys[k, 1] * codes[row, keys[k, 0]]
            for i in range(slices[s, S_LENGTH]):
                buffer[at + i * W + w] = values[base + np.int64(maps[start + i])]
    for m in range(mask_columns.shape[0]):
        col = mask_columns[m]
        wcol = weight_column[m]
        used = wcol >= 0
        if col >= 0 and not used:
            for w in range(W):
                if codes[min(case + w, last), col] >= 0:
                    used = True
        active[m] = 1.0 if used else 0.0
        if not used:
            continue
        lo = mask_offset[m]
        size = mask_offset[m + 1] - lo
        for w in range(W):
            row = min(case + w, last)
            code = -1
            if col >= 0:
                code = codes[row, col]
            for i in range(size):
                x = 1.0
                if code >= 0 and i != code:
                    x = 0.0
                elif wcol >= 0:
                    x = weights[min(row, weights.shape[0] - 1), wcol + i]
                likelihood[(lo + i) * W + w] = x


@_jit
def combine(W, t, c, cliques, terms, members, slices, mask_offset, work):
    """The product of terms over the same variables, each cell with its own exponent; False when none is active."""
    U(W)
    separators, buffer, likelihood, combined, exponents, active, spill = (
        work[1],
        work[3],
        work[4],
        work[5],
        work[6],
        work[7],
        work[8],
    )
    out = terms[t, T_SOURCE] * W
    count = terms[t, T_SIZE] * W
    n_done = 0
    many = terms[t, T_MEMBER_END] - terms[t, T_MEMBER] > 3
    for m in range(terms[t, T_MEMBER], terms[t, T_MEMBER_END]):
        kind, source = members[m, 0], members[m, 1]
        if kind == SEPARATOR:
            table = separators
            at = cliques[source, C_SEP] * W
        elif kind == SLICE:
            table = buffer
            at = slices[source, S_BUFFER] * W
        else:
            if active[source] == 0.0:
                continue
            table = likelihood
            at = mask_offset[source] * W
        if n_done == 0:
            for j in range(count):
                combined[out + j] = table[at + j]
            if many:
                for j in range(count):
                    exponents[j] = 0.0
        elif not many:
            for j in range(count):
                combined[out + j] *= table[at + j]
        else:
            for j in range(count):
                x = combined[out + j] * table[at + j]
                if x < SMALL:
                    x *= BIG
                    exponents[j] -= 1.0
                combined[out + j] = x
        n_done += 1
    if many and n_done > 0:
        for w in range(W):
            top = -1e300
            for j in range(w, count, W):
                if combined[out + j] > 0.0 and exponents[j] > top:
                    top = exponents[j]
            if top > -1e300:
                for j in range(w, count, W):
                    down = exponents[j] - top
                    if down < 0.0:
                        combined[out + j] *= SMALL if down == -1.0 else 0.0
                spill[c * W + w] += top * LOG_BIG
    return n_done > 0


@_jit
def build(W, c, cliques, terms, members, maps_table, maps, slices, mask_offset, static, work):
    """The clique's table: its own factors times everything that flows in."""
    WU = U(W)
    tables, separators, buffer, likelihood, combined, active, spill = (
        work[0],
        work[1],
        work[3],
        work[4],
        work[5],
        work[7],
        work[8],
    )
    o = U(cliques[c, C_OFF]) * WU
    size = U(cliques[c, C_SIZE])
    for w in range(W):
        spill[c * W + w] = 0.0
    started = False
    if cliques[c, C_STATIC] < 0:
        for i in range(size * WU):
            tables[o + i] = 1.0
        started = True
    for t in range(cliques[c, C_TERM], cliques[c, C_TERM_END]):
        kind, source = terms[t, T_KIND], terms[t, T_SOURCE]
        if kind == SEPARATOR:
            table = separators
            s = U(cliques[source, C_SEP]) * WU
        elif kind == SLICE:
            table = buffer
            s = U(slices[source, S_BUFFER]) * WU
        elif kind == COMBINED:
            if not combine(W, t, c, cliques, terms, members, slices, mask_offset, work):
                continue
            table = combined
            s = U(source) * WU
        else:
            if active[source] == 0.0:
                continue
            table = likelihood
            s = U(mask_offset[source]) * WU
        row = terms[t, T_MAP]
        hi, n_hi, lo = U(maps_table[row, 0]), U(maps_table[row, 1]), U(maps_table[row, 2])
        n_lo, inner, shared = U(maps_table[row, 3]), U(maps_table[row, 4]), maps_table[row, 5] == 1
        if started:
            _multiply(W, tables, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
        else:
            _init(W, tables, o, static, U(cliques[c, C_STATIC]), table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
            started = True
    if not started:
        _copy(W, tables, o, static, U(cliques[c, C_STATIC]), size)


@_jit
def send_up(W, c, cliques, maximize, work):
    """Message to the parent: Σ (or max) over the clique's own variables, scaled to sum (or maximum) one."""
    WU = U(W)
    tables, separators, totals, scratch = work[0], work[1], work[9], work[10]
    o = U(cliques[c, C_OFF]) * WU
    s = U(cliques[c, C_SEP]) * WU
    n_sep = U(cliques[c, C_SEP_SIZE])
    run = U(cliques[c, C_SIZE] // cliques[c, C_SEP_SIZE])
    at = U(c) * WU
    if maximize:
        _maximum(W, tables, o, n_sep, run, separators, s)
        _maximum(W, separators, s, U1, n_sep, totals, at)
    else:
        _total(W, tables, o, n_sep, run, separators, s)
        _total(W, separators, s, U1, n_sep, totals, at)
    for w in range(WU):
        x = totals[at + w]
        scratch[w] = 1.0 / x if x > 0.0 else 0.0
    _scale(W, separators, s, U1, n_sep, scratch, U0)


@_jit
def send_down(W, c, cliques, maps_table, maps, keep_belief, work):
    """From the parent's belief to the clique's: multiply by (new separator) / (old separator)."""
    WU = U(W)
    tables, separators, beliefs, totals, scratch = work[0], work[1], work[2], work[9], work[10]
    p = cliques[c, C_PARENT]
    n_sep = U(cliques[c, C_SEP_SIZE])
    s = U(cliques[c, C_SEP]) * WU
    row = cliques[c, C_MAP]
    hi, n_hi, lo = U(maps_table[row, 0]), U(maps_table[row, 1]), U(maps_table[row, 2])
    n_lo, inner, shared = U(maps_table[row, 3]), U(maps_table[row, 4]), maps_table[row, 5] == 1
    for i in range(n_sep * WU):
        beliefs[s + i] = 0.0
    _project(W, tables, U(cliques[p, C_OFF]) * WU, beliefs, s, maps, hi, n_hi, lo, n_lo, inner, shared)
    if keep_belief:
        return
    for i in range(n_sep * WU):
        old = separators[s + i]
        scratch[WU + i] = beliefs[s + i] / old if old > 0.0 else 0.0
    for w in range(WU):
        x = totals[U(c) * WU + w]
        scratch[w] = 1.0 / x if x > 0.0 else 0.0
    _scale(W, scratch, WU, U1, n_sep, scratch, U0)
    run = U(cliques[c, C_SIZE] // cliques[c, C_SEP_SIZE])
    _scale(W, tables, U(cliques[c, C_OFF]) * WU, n_sep, run, scratch, WU)


@_jit
def normalize_root(W, c, cliques, work):
    WU = U(W)
    tables, totals, scratch = work[0], work[9], work[10]
    for w in range(W):
        x = totals[c * W + w]
        scratch[w] = 1.0 / x if x > 0.0 else 0.0
    _scale(W, tables, U(cliques[c, C_OFF]) * WU, U1, U(cliques[c, C_SIZE]), scratch, U0)


@_jit
def out_of_range(W, w, c, cliques, terms, slices, mask_offset, work):
    """Whether the clique's sum is so small beside what flows in that cells which matter may have become zero."""
    buffer, likelihood, combined, active, totals = work[3], work[4], work[5], work[7], work[9]
    left = totals[c * W + w]
    for t in range(cliques[c, C_TERM], cliques[c, C_TERM_END]):
        kind, source = terms[t, T_KIND], terms[t, T_SOURCE]
        if kind == SEPARATOR:
            continue
        if kind == SLICE:
            table, at = buffer, slices[source, S_BUFFER]
        elif kind == COMBINED:
            table, at = combined, source
        else:
            if active[source] == 0.0:
                continue
            table, at = likelihood, mask_offset[source]
        top = 0.0
        for i in range(terms[t, T_SIZE]):
            top = max(top, table[(at + i) * W + w])
        if top > 0.0:
            left /= top
    return left < CONFLICT


@_jit
def log_total(W, case, last, cliques, terms, collect, slices, constants, mask_offset, log_scale, work, log_z):
    """log of the product of all scales: few logarithms, because the product is kept linear while it can.

    NaN where numbers ran out of range: the case must be answered in logarithms.
    """
    U(W)
    buffer, spill, totals = work[3], work[8], work[9]
    for w in range(W):
        if case + w > last:
            return
        product = 1.0
        logs = log_scale
        for q in range(constants.shape[0]):
            product *= buffer[slices[constants[q], S_BUFFER] * W + w]
            if product < TINY:
                logs += math.log(product) if product > 0.0 else -np.inf
                product = 1.0
        for q in range(collect.shape[0]):
            c = collect[q]
            x = totals[c * W + w]
            if x > 1e100 or x < 1e-50:
                logs += math.log(x) if x > 0.0 else -np.inf
                if 0.0 < x < CONFLICT and out_of_range(W, w, c, cliques, terms, slices, mask_offset, work):
                    logs = np.nan
            else:
                product *= x
                if product < TINY or product > 1e150:
                    logs += math.log(product)
                    product = 1.0
            logs += spill[c * W + w]
        log_z[case + w] = logs + math.log(product)


@_jit
def read_out(W, case, last, cliques, outputs, maps_table, maps, work, out):
    """Project each wanted set from its table and normalize it."""
    WU = U(W)
    tables, beliefs, scratch = work[0], work[2], work[10]
    for q in range(outputs.shape[0]):
        width = outputs[q, O_WIDTH]
        c = outputs[q, O_CLIQUE]
        row = outputs[q, O_MAP]
        hi, n_hi, lo = U(maps_table[row, 0]), U(maps_table[row, 1]), U(maps_table[row, 2])
        n_lo, inner, shared = U(maps_table[row, 3]), U(maps_table[row, 4]), maps_table[row, 5] == 1
        for i in range(width * W):
            scratch[i] = 0.0
        if outputs[q, O_FROM] == 1:
            _project(W, beliefs, U(cliques[c, C_SEP]) * WU, scratch, U0, maps, hi, n_hi, lo, n_lo, inner, shared)
        else:
            _project(W, tables, U(cliques[c, C_OFF]) * WU, scratch, U0, maps, hi, n_hi, lo, n_lo, inner, shared)
        col = outputs[q, O_COLUMN]
        for w in range(min(W, last + 1 - case)):
            x = 0.0
            for i in range(width):
                x += scratch[i * W + w]
            x = 1.0 / x if x > 0.0 else np.nan
            for i in range(width):
                out[case + w, col + i] = scratch[i * W + w] * x


@_jit
def section(ints, k):
    """Section k of the packed program, flat."""
    return ints[ints[k] : ints[k + 1]]


@_jit
def rows(ints, k, columns):
    """Section k of the packed program as rows."""
    return ints[ints[k] : ints[k + 1]].reshape((ints[k + 1] - ints[k]) // columns, columns)


@_jit
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


@_jit
def evidence_up(
    W, case, last, which, maximize, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, work,
    log_z,
):  # fmt: skip
    """Enter the evidence of the cases, send messages up from the cliques `which`, and sum up log p(e)."""
    cliques, terms, members = rows(ints, P_CLIQUES, 9), rows(ints, P_TERMS, 6), rows(ints, P_MEMBERS, 2)
    maps_table, slices, keys = rows(ints, P_MAPS_TABLE, 6), rows(ints, P_SLICES, 6), rows(ints, P_KEYS, 2)
    maps = section(ints, P_MAPS).view(np.uint64)
    mask_offset, constants = section(ints, P_MASK_OFFSET), section(ints, P_CONSTANTS)
    enter(W, case, last, slices, keys, maps, values, codes, mask_columns, mask_offset, weights, weight_column, work)
    for q in range(which.shape[0]):
        build(W, which[q], cliques, terms, members, maps_table, maps, slices, mask_offset, static, work)
        send_up(W, which[q], cliques, maximize, work)
    every = section(ints, P_COLLECT)
    log_total(W, case, last, cliques, terms, every, slices, constants, mask_offset, log_scale, work, log_z)


@_jit
def sums(
    W, first, stop, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, out, log_z
):  # fmt: skip
    """Marginals and log p(e) for cases first … stop-1."""
    last = stop - 1
    work = buffers(W, ints, memory)
    cliques, maps_table, outputs = rows(ints, P_CLIQUES, 9), rows(ints, P_MAPS_TABLE, 6), rows(ints, P_OUTPUTS, 5)
    maps = section(ints, P_MAPS).view(np.uint64)
    collect, distribute, roots = section(ints, P_COLLECT), section(ints, P_DISTRIBUTE), section(ints, P_ROOTS)
    needed, onehot = section(ints, P_NEEDED), rows(ints, P_ONEHOT, 3)
    for case in range(first, stop, W):
        evidence_up(
            W, case, last, collect, False, ints, static, values, codes, mask_columns, weight_column, weights, log_scale,
            work, log_z,
        )  # fmt: skip
        for q in range(roots.shape[0]):
            if needed[roots[q]] & 1:
                normalize_root(W, roots[q], cliques, work)
        for q in range(distribute.shape[0]):
            c = distribute[q]
            send_down(W, c, cliques, maps_table, maps, (needed[c] & 1) == 0, work)
        read_out(W, case, last, cliques, outputs, maps_table, maps, work, out)
        for q in range(onehot.shape[0]):
            for w in range(min(W, stop - case)):
                for i in range(onehot[q, 2]):
                    out[case + w, onehot[q, 1] + i] = 0.0
                state = codes[case + w, onehot[q, 0]] if onehot[q, 0] >= 0 else 0
                out[case + w, onehot[q, 1] + state] = 1.0


@_jit
def best(
    W, first, stop, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, states, log_z
):  # fmt: skip
    """The most probable assignment of each case: max messages up, then the best states down."""
    last = stop - 1
    work = buffers(W, ints, memory)
    tables = work[0]
    cliques, collect, topo = rows(ints, P_CLIQUES, 9), section(ints, P_COLLECT), section(ints, P_TOPO)
    clique_ptr, ordered = section(ints, P_CLIQUE_PTR), section(ints, P_ORDERED)
    n_sep, sizes = section(ints, P_N_SEP), section(ints, P_SIZES)
    for case in range(first, stop, W):
        evidence_up(
            W, case, last, collect, True, ints, static, values, codes, mask_columns, weight_column, weights, log_scale,
            work, log_z,
        )  # fmt: skip
        for q in range(topo.shape[0]):
            c = topo[q]
            lo, hi = clique_ptr[c], clique_ptr[c + 1]
            run = cliques[c, C_SIZE] // cliques[c, C_SEP_SIZE]
            for w in range(min(W, stop - case)):
                block = 0
                for i in range(lo, lo + n_sep[c]):
                    block = block * sizes[ordered[i]] + states[case + w, ordered[i]]
                at = (cliques[c, C_OFF] + block * run) * W + w
                top = -1.0
                chosen = 0
                for r in range(run):
                    if tables[at + r * W] > top:
                        top = tables[at + r * W]
                        chosen = r
                for i in range(hi - 1, lo + n_sep[c] - 1, -1):
                    v = ordered[i]
                    states[case + w, v] = chosen % sizes[v]
                    chosen //= sizes[v]


@_jit
def again(
    collect, rebuild, distribute, outputs,
    ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, out, log_z,
):  # fmt: skip
    """One case again after some evidence changed: messages up for `collect` only, down for `distribute` only.

    `rebuild` marks cliques whose table is not the product of what flows in (it holds an older belief).
    """
    work = buffers(1, ints, memory)
    cliques, terms, members = rows(ints, P_CLIQUES, 9), rows(ints, P_TERMS, 6), rows(ints, P_MEMBERS, 2)
    maps_table, slices = rows(ints, P_MAPS_TABLE, 6), rows(ints, P_SLICES, 6)
    maps = section(ints, P_MAPS).view(np.uint64)
    mask_offset = section(ints, P_MASK_OFFSET)
    evidence_up(
        1, 0, 0, collect, False, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, work,
        log_z,
    )  # fmt: skip
    for q in range(collect.shape[0]):
        rebuild[collect[q]] = 0
    for q in range(distribute.shape[0]):
        c = distribute[q]
        if rebuild[c]:
            build(1, c, cliques, terms, members, maps_table, maps, slices, mask_offset, static, work)
        if cliques[c, C_PARENT] < 0:
            normalize_root(1, c, cliques, work)
        else:
            send_down(1, c, cliques, maps_table, maps, False, work)
        rebuild[c] = 1
    read_out(1, 0, 0, cliques, outputs, maps_table, maps, work, out)


@_jit
def draw(
    n, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, uniforms, states, log_z
):  # fmt: skip
    """Samples for one case: messages up, then each clique's own variables given its separator.

    The tables become running sums in place; uniforms has one number per clique and sample.
    """
    work = buffers(1, ints, memory)
    tables = work[0]
    every = section(ints, P_COLLECT)
    evidence_up(
        1, 0, 0, every, False, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, work, log_z
    )  # fmt: skip
    if log_z[0] == -np.inf:
        return
    cliques, topo = rows(ints, P_CLIQUES, 9), section(ints, P_TOPO)
    clique_ptr, ordered = section(ints, P_CLIQUE_PTR), section(ints, P_ORDERED)
    n_sep, sizes = section(ints, P_N_SEP), section(ints, P_SIZES)
    for q in range(topo.shape[0]):
        c = topo[q]
        lo, hi = clique_ptr[c], clique_ptr[c + 1]
        run = cliques[c, C_SIZE] // cliques[c, C_SEP_SIZE]
        for b in range(cliques[c, C_SEP_SIZE]):
            at = cliques[c, C_OFF] + b * run
            for r in range(1, run):
                tables[at + r] += tables[at + r - 1]
        for k in range(n):
            block = 0
            for i in range(lo, lo + n_sep[c]):
                block = block * sizes[ordered[i]] + states[k, ordered[i]]
            at = cliques[c, C_OFF] + block * run
            goal = uniforms[q, k] * tables[at + run - 1]
            left, right = 0, run - 1
            while left < right:
                middle = (left + right) // 2
                if tables[at + middle] > goal:
                    right = middle
                else:
                    left = middle + 1
            chosen = left
            for i in range(hi - 1, lo + n_sep[c] - 1, -1):
                v = ordered[i]
                states[k, v] = chosen % sizes[v]
                chosen //= sizes[v]


@_jit
def permuted_copy(out, values, start, size, k, strides, dims, digits):
    """out[i] = the value at the i-th combination of k digits, the last one fastest, with the given strides."""
    index = start
    for d in range(k):
        digits[d] = 0
    for i in range(size):
        out[i] = values[index]
        d = k - 1
        while d >= 0:
            digits[d] += 1
            index += strides[d]
            if digits[d] < dims[d]:
                break
            index -= strides[d] * dims[d]
            digits[d] = 0
            d -= 1


@_jit
def fill_static(static, ints, home, is_static, scope_ptr, scope_idx, value_ptr, values):
    """Multiply each static factor into its clique's table.

    A factor whose variables are in another order than the clique's is copied first; then it enters like any term.
    Tables of very small or large numbers are scaled; the logarithm of all scales is returned.
    """
    cliques, clique_ptr = rows(ints, P_CLIQUES, 9), section(ints, P_CLIQUE_PTR)
    ordered, sizes = section(ints, P_ORDERED), section(ints, P_SIZES)
    n_cliques = cliques.shape[0]
    seen = np.zeros(n_cliques, np.uint8)
    stride_of = np.zeros(sizes.shape[0], np.int64)
    member_of = np.full(sizes.shape[0], -1, np.int64)
    members = np.zeros(64, np.uint8)
    strides = np.zeros(64, np.int64)
    dims = np.zeros(64, np.int64)
    small_dims = np.zeros(64, np.int64)
    small_strides = np.zeros(64, np.int64)
    digits = np.zeros(64, np.int64)
    small = np.zeros(64)
    row = np.zeros((1, 6), np.int64)
    for f in range(home.shape[0]):
        if is_static[f] == 0:
            continue
        c = home[f]
        step = 1
        for j in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
            stride_of[scope_idx[j]] = step
            member_of[scope_idx[j]] = f
            step *= sizes[scope_idx[j]]
        lo = clique_ptr[c]
        k = clique_ptr[c + 1] - lo
        k_small = 0
        for i in range(k):
            v = ordered[lo + i]
            dims[i] = sizes[v]
            members[i] = 1 if member_of[v] == f else 0
            if members[i]:
                small_dims[k_small] = sizes[v]
                small_strides[k_small] = stride_of[v]
                k_small += 1
        in_order = True
        for i in range(k_small - 1):
            if small_strides[i] < small_strides[i + 1]:
                in_order = False
        if in_order:
            source, begin = values, U(value_ptr[f])
        else:
            if small.shape[0] < step:
                small = np.zeros(step)
            source, begin = small, U0
            permuted_copy(small, values, value_ptr[f], step, k_small, small_strides, small_dims, digits)
        size = 1
        for i in range(k - 1, -1, -1):
            strides[i] = size
            if members[i]:
                size *= dims[i]
        maps, n_maps = add_map(np.zeros(1024, np.int64), 0, row, 0, k, members, strides, dims)
        index = maps.astype(np.uint64)
        hi, n_hi, lo_map = U(row[0, 0]), U(row[0, 1]), U(row[0, 2])
        n_lo, inner, shared = U(row[0, 3]), U(row[0, 4]), row[0, 5] == 1
        at = U(cliques[c, C_STATIC])
        if seen[c] == 0:
            seen[c] = 1
            for i in range(U(cliques[c, C_SIZE])):
                static[at + i] = 1.0
        _multiply1(static, at, source, begin, index, hi, n_hi, lo_map, n_lo, inner, shared)
    logs = 0.0
    for c in range(n_cliques):
        if seen[c]:
            at = U(cliques[c, C_STATIC])
            size = U(cliques[c, C_SIZE])
            top = 0.0
            for i in range(size):
                top = max(top, static[at + i])
            if 0.0 < top < 1e-10 or top > 1e10:
                logs += math.log(top)
                for i in range(size):
                    static[at + i] /= top
    return logs
