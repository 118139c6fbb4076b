"""Numba: run a tree program (`tree_program`) on cases of evidence: sums, best states, draws; and its static tables."""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.tree.columns import (
    C_OFF,
    C_PARENT,
    C_SEP_SIZE,
    C_SIZE,
    C_STATIC,
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
)
from gramgraph._numerics.tree.in_turn import beliefs_in_turn, make_again, make_part_again, share_room
from gramgraph._numerics.tree.index_maps import add_map
from gramgraph._numerics.tree.lanes import U0, U, helper, holding, jit, multiply1
from gramgraph._numerics.tree.sections import buffers, rows, section
from gramgraph._numerics.tree.steps import build, enter, log_total, normalize_root, read_out, send_down, send_up

#: Entries that are compared at a time where all samples are drawn at once.
_AT_ONCE = 1 << 20


def _case_steps(
    W, first, stop, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, *results
):  # fmt: skip
    """What `sums` and `best` do: the program and all tables (W wide in `memory`), once for every W cases."""
    return static.size + (stop - first) * (ints.size + static.size + memory.size / W) / W


@jit
def evidence_up(
    W, case, last, which, maximize, ints, static, values, codes, mask_columns, weight_column, weights, log_scale,
    memory, log_z,
):  # fmt: skip
    """Enter the evidence of the cases, send messages up from the cliques `which`, and sum up log p(e)."""
    work = buffers(W, ints, memory)
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


@jit(work=_case_steps)
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
    in_turn = share_room(cliques)
    for case in range(first, stop, W):
        evidence_up(
            W, case, last, collect, False, ints, static, values, codes, mask_columns, weight_column, weights, log_scale,
            memory, log_z,
        )  # fmt: skip
        if in_turn:
            beliefs_in_turn(W, case, last, ints, static, memory, out)
        else:
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


@holding(work=_case_steps)
def short_sums(
    W, first, stop, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, out, log_z
):  # fmt: skip
    """`sums` of a case or two of a small tree."""
    sums(
        W, first, stop, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, out, log_z
    )  # fmt: skip


#: One entry by itself takes as long as so many that are made one after the other, for all cases at once.
SMALL_PART = 32


@jit(work=_case_steps)
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
    in_turn, blocks = share_room(cliques), np.zeros(W, np.int64)
    for case in range(first, stop, W):
        evidence_up(
            W, case, last, collect, True, ints, static, values, codes, mask_columns, weight_column, weights, log_scale,
            memory, log_z,
        )  # fmt: skip
        for q in range(topo.shape[0]):
            c = topo[q]
            lo, hi = clique_ptr[c], clique_ptr[c + 1]
            run = cliques[c, C_SIZE] // cliques[c, C_SEP_SIZE]
            for w in range(min(W, stop - case)):
                blocks[w] = 0
                for i in range(lo, lo + n_sep[c]):
                    blocks[w] = blocks[w] * sizes[ordered[i]] + states[case + w, ordered[i]]
            anew = in_turn and cliques[c, C_OFF] == 0
            made = anew and cliques[c, C_SEP_SIZE] >= SMALL_PART
            if made:
                make_part_again(W, c, blocks, ints, static, memory)
            elif anew:
                make_again(W, c, ints, static, memory)
            for w in range(min(W, stop - case)):
                at = (cliques[c, C_OFF] + (0 if made else blocks[w] * run)) * W + w
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


def again(
    collect, rebuild, distribute, outputs,
    ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, out, log_z,
):  # fmt: skip
    """One case again after some evidence changed: messages up for `collect` only, down for `distribute` only.

    `rebuild` marks cliques whose table is not the product of what flows in (it holds an older belief).
    """
    evidence_up(
        1, 0, 0, collect, False, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory,
        log_z,
    )  # fmt: skip
    evidence_down(collect, rebuild, distribute, outputs, ints, static, memory, out)


@jit
def evidence_down(collect, rebuild, distribute, outputs, ints, static, memory, out):
    """The second half of `again`."""
    work = buffers(1, ints, memory)
    cliques, terms, members = rows(ints, P_CLIQUES, 9), rows(ints, P_TERMS, 6), rows(ints, P_MEMBERS, 2)
    maps_table, slices = rows(ints, P_MAPS_TABLE, 6), rows(ints, P_SLICES, 6)
    maps = section(ints, P_MAPS).view(np.uint64)
    mask_offset = section(ints, P_MASK_OFFSET)
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


def draw(
    n, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory, uniforms, states, log_z
):  # fmt: skip
    """Samples for one case: messages up, then each clique's own variables given its separator.

    The tables become running sums in place; uniforms has one number per clique and sample.
    """
    every = ints[ints[P_COLLECT] : ints[P_COLLECT + 1]]
    evidence_up(
        1, 0, 0, every, False, ints, static, values, codes, mask_columns, weight_column, weights, log_scale, memory,
        log_z,
    )  # fmt: skip
    if log_z[0] != -np.inf:
        draw_down(n, ints, memory, uniforms, states)


def _draw_at_once(n, ints, memory, uniforms, states):
    """`draw_down` of all samples at once: as many running sums are passed as the state has to be."""
    cliques, topo, clique_ptr, ordered, n_sep, sizes = (
        ints[ints[k] : ints[k + 1]] for k in (P_CLIQUES, P_TOPO, P_CLIQUE_PTR, P_ORDERED, P_N_SEP, P_SIZES)
    )
    cliques = cliques.reshape(-1, 9)
    for q, c in enumerate(topo.tolist()):
        off, size, sep_size = (int(cliques[c, k]) for k in (C_OFF, C_SIZE, C_SEP_SIZE))
        tables = memory[off : off + size].reshape(sep_size, -1)
        np.cumsum(tables, axis=1, out=tables)
        members = ordered[clique_ptr[c] : clique_ptr[c + 1]].tolist()
        own, block = members[n_sep[c] :], np.zeros(n, np.int64)
        for v in members[: n_sep[c]]:
            block = block * sizes[v] + states[:n, v]
        chosen, goal = np.empty(n, np.int64), uniforms[q, :n] * tables[block, -1]
        step = max(_AT_ONCE // tables.shape[1], 1)
        for first in range(0, n, step):
            part = slice(first, first + step)
            chosen[part] = (tables[block[part], :-1] <= goal[part, None]).sum(axis=1)
        for v in reversed(own):
            states[:n, v] = chosen % sizes[v]
            chosen //= sizes[v]


@jit(plain=_draw_at_once)
def draw_down(n, ints, memory, uniforms, states):
    """The second half of `draw`."""
    tables = buffers(1, ints, memory)[0]
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


@helper
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


@jit
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
    small = np.zeros(64, np.float64)
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
                small = np.zeros(step, np.float64)
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
        multiply1(static, at, source, begin, index, hi, n_hi, lo_map, n_lo, inner, shared)
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
