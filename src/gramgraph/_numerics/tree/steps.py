"""Numba: the steps of a tree program: evidence in, clique tables, messages up and down, answers out.

Each is written once for any number W of cases side by side, on the loops of `tree_lanes`.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.tree.columns import (
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
    O_CLIQUE,
    O_COLUMN,
    O_FROM,
    O_MAP,
    O_WIDTH,
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
)
from gramgraph._numerics.tree.lanes import U0, U1, U, copy, helper, init, maximum, multiply, part, project, scale, total

SMALL = 2.0**-400
BIG = 2.0**400
LOG_BIG = 400.0 * math.log(2.0)
TINY = 1e-250
#: A clique whose cells sum to less than this share of what flows in has lost cells to underflow.
CONFLICT = 1e-100


@helper
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


@helper
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


@helper
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
            multiply(W, tables, o, table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
        else:
            init(W, tables, o, static, U(cliques[c, C_STATIC]), table, s, maps, hi, n_hi, lo, n_lo, inner, shared)
            started = True
    if not started:
        copy(W, tables, o, static, U(cliques[c, C_STATIC]), size)


@helper
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
        maximum(W, tables, o, n_sep, run, separators, s)
        maximum(W, separators, s, U1, n_sep, totals, at)
    else:
        total(W, tables, o, n_sep, run, separators, s)
        total(W, separators, s, U1, n_sep, totals, at)
    for w in range(WU):
        x = totals[at + w]
        scratch[w] = 1.0 / x if x > 0.0 else 0.0
    scale(W, separators, s, U1, n_sep, scratch, U0)


@part
def hand_down(W, c, cliques, maps_table, maps, work):
    """The belief in the clique's separator, from the table of the parent."""
    WU = U(W)
    tables, beliefs = work[0], work[2]
    p = cliques[c, C_PARENT]
    s = U(cliques[c, C_SEP]) * WU
    row = cliques[c, C_MAP]
    hi, n_hi, lo = U(maps_table[row, 0]), U(maps_table[row, 1]), U(maps_table[row, 2])
    n_lo, inner, shared = U(maps_table[row, 3]), U(maps_table[row, 4]), maps_table[row, 5] == 1
    for i in range(U(cliques[c, C_SEP_SIZE]) * WU):
        beliefs[s + i] = 0.0
    project(W, tables, U(cliques[p, C_OFF]) * WU, beliefs, s, maps, hi, n_hi, lo, n_lo, inner, shared)


@part
def take_over(W, c, cliques, work):
    """The clique's belief from that in its separator."""
    WU = U(W)
    tables, separators, beliefs, totals, scratch = work[0], work[1], work[2], work[9], work[10]
    n_sep = U(cliques[c, C_SEP_SIZE])
    s = U(cliques[c, C_SEP]) * WU
    for i in range(n_sep * WU):
        old = separators[s + i]
        scratch[WU + i] = beliefs[s + i] / old if old > 0.0 else 0.0
    for w in range(WU):
        x = totals[U(c) * WU + w]
        scratch[w] = 1.0 / x if x > 0.0 else 0.0
    scale(W, scratch, WU, U1, n_sep, scratch, U0)
    run = U(cliques[c, C_SIZE] // cliques[c, C_SEP_SIZE])
    scale(W, tables, U(cliques[c, C_OFF]) * WU, n_sep, run, scratch, WU)


@helper
def send_down(W, c, cliques, maps_table, maps, keep_belief, work):
    """From the parent's belief to the clique's: multiply by (new separator) / (old separator)."""
    hand_down(W, c, cliques, maps_table, maps, work)
    if not keep_belief:
        take_over(W, c, cliques, work)


@helper
def normalize_root(W, c, cliques, work):
    WU = U(W)
    tables, totals, scratch = work[0], work[9], work[10]
    for w in range(W):
        x = totals[c * W + w]
        scratch[w] = 1.0 / x if x > 0.0 else 0.0
    scale(W, tables, U(cliques[c, C_OFF]) * WU, U1, U(cliques[c, C_SIZE]), scratch, U0)


@helper
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


@helper
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


@part
def read_one(W, case, last, q, cliques, outputs, maps_table, maps, work, out):
    """Output number q."""
    WU = U(W)
    tables, beliefs, scratch = work[0], work[2], work[10]
    width = outputs[q, O_WIDTH]
    c = outputs[q, O_CLIQUE]
    row = outputs[q, O_MAP]
    hi, n_hi, lo = U(maps_table[row, 0]), U(maps_table[row, 1]), U(maps_table[row, 2])
    n_lo, inner, shared = U(maps_table[row, 3]), U(maps_table[row, 4]), maps_table[row, 5] == 1
    for i in range(width * W):
        scratch[i] = 0.0
    if outputs[q, O_FROM] == 1:
        project(W, beliefs, U(cliques[c, C_SEP]) * WU, scratch, U0, maps, hi, n_hi, lo, n_lo, inner, shared)
    else:
        project(W, tables, U(cliques[c, C_OFF]) * WU, scratch, U0, maps, hi, n_hi, lo, n_lo, inner, shared)
    col = outputs[q, O_COLUMN]
    for w in range(min(W, last + 1 - case)):
        x = 0.0
        for i in range(width):
            x += scratch[i * W + w]
        x = 1.0 / x if x > 0.0 else np.nan
        for i in range(width):
            out[case + w, col + i] = scratch[i * W + w] * x


@helper
def read_out(W, case, last, cliques, outputs, maps_table, maps, work, out):
    """Project each wanted set from its table and normalize it."""
    for q in range(outputs.shape[0]):
        read_one(W, case, last, q, cliques, outputs, maps_table, maps, work, out)
