"""Numba: from a junction tree to a flat program of table operations.

A clique's table lists the separator to its parent first (in the parent's order), then the other variables, those
that no child needs innermost; so every message is a sum over contiguous runs. An index map from a clique's
table to a smaller table over some of its variables is a pair of short lists: the offset of cell
(hi · n_lo + lo) · inner + r is map[hi] + map[lo] (+ r when the innermost run is shared). Maps therefore cost
about the square root of the table.

Columns of the tables made here are named by the constants below; `tree_runner` reads them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gramgraph._numerics.triangulation import (
    build_adjacency,
    eliminate,
    junction_forest,
    maximal_cliques,
    total_log_size,
)

# columns of `cliques`
(C_OFF, C_SIZE, C_SEP, C_SEP_SIZE, C_PARENT, C_STATIC, C_TERM, C_TERM_END, C_MAP) = range(9)
C_COLUMNS = 9
# columns of `terms`: where the numbers come from, and the index map at MAP … MAP + 5
(T_KIND, T_SOURCE, T_SIZE, T_MAP, T_MEMBER, T_MEMBER_END) = range(6)
T_COLUMNS = 6
# kinds of term
SEPARATOR, SLICE, LIKELIHOOD, COMBINED = range(4)
# columns of `members` of a combined term: kind, source (and variable slot, for a likelihood)
M_COLUMNS = 2
# columns of `maps_table`: hi_off, n_hi, lo_off, n_lo, inner, shared
MAP_COLUMNS = 6
# columns of `slices`: base, length, buffer offset, offsets in maps, first key, last key + 1
(S_BASE, S_LENGTH, S_BUFFER, S_OFFSETS, S_KEY, S_KEY_END) = range(6)
S_COLUMNS = 6
# columns of `outputs`: 0 = clique / 1 = separator, clique, map row, first column, number of columns
(O_FROM, O_CLIQUE, O_MAP, O_COLUMN, O_WIDTH) = range(5)
O_COLUMNS = 5

#: The program is one array of integers: first where each section begins (and where the last one ends), then the
#: sections. One array crosses from Python into compiled code much faster than twenty.
(
    P_COLLECT, P_DISTRIBUTE, P_ROOTS, P_NEEDED, P_CLIQUES, P_TERMS, P_MEMBERS, P_MAPS_TABLE, P_MAPS, P_SLICES, P_KEYS,
    P_CONSTANTS, P_OUTPUTS, P_ONEHOT, P_MASK_OFFSET, P_MASK_HOME, P_CLIQUE_PTR, P_ORDERED, P_N_SEP, P_SIZES, P_TOPO,
    P_WORK,
) = range(22)  # fmt: skip
N_SECTIONS = 22
#: Buffers of the runner, in order; the section P_WORK holds their lengths for one lane.
(
    W_TABLES, W_SEPARATORS, W_BELIEFS, W_SLICES, W_LIKELIHOOD, W_COMBINED, W_EXPONENTS, W_ACTIVE, W_SPILL, W_TOTALS,
    W_SCRATCH,
) = range(11)  # fmt: skip
N_BUFFERS = 11

LO_LIMIT = 512
#: Trees with more than exp(40) cells are never laid out.
MAX_LOG_CELLS = 40.0
MAX_SEARCH_SECONDS = 0.4
#: Beyond half a gigabyte, tables of numbers that do not change from case to case are not kept.
MAX_STATIC_CELLS = 60_000_000
#: Restarts save a factor of a few hundred at most: beyond this no tree will fit in memory.
HOPELESS_LOG_CELLS = 32.0


@njit(cache=True, nogil=True)
def _grown(array, needed):
    """The array, doubled until it holds `needed` entries."""
    if needed <= array.shape[0]:
        return array
    size = max(array.shape[0], 16)
    while size < needed:
        size *= 2
    bigger = np.zeros(size, array.dtype)
    bigger[: array.shape[0]] = array
    return bigger


@njit(cache=True, nogil=True)
def expand(out, start, first, last, members, strides, sizes):
    """Write the offsets of all combinations of dimensions first … last-1 (innermost last) from `start` on."""
    out[start] = 0
    count = 1
    for d in range(last - 1, first - 1, -1):
        step = strides[d] if members[d] else 0
        for s in range(1, sizes[d]):
            for j in range(count):
                out[start + s * count + j] = out[start + j] + s * step
        count *= sizes[d]
    return count


@njit(cache=True, nogil=True)
def add_map(maps, n_maps, table, row, k, members, strides, sizes):
    """Index map from a table with dimensions `sizes[:k]` to the one over its members; returns (maps, n_maps)."""
    inner = 1
    shared = 0
    outer = k
    if k > 0:
        shared = 1 if members[k - 1] else 0
        while outer > 0 and (1 if members[outer - 1] else 0) == shared:
            inner *= sizes[outer - 1]
            outer -= 1
    split = outer
    n_lo = 1
    while split > 0 and n_lo * sizes[split - 1] <= LO_LIMIT:
        n_lo *= sizes[split - 1]
        split -= 1
    n_hi = 1
    for d in range(split):
        n_hi *= sizes[d]
    maps = _grown(maps, n_maps + n_hi + n_lo)
    table[row, 0] = n_maps
    table[row, 1] = n_hi
    expand(maps, n_maps, 0, split, members, strides, sizes)
    n_maps += n_hi
    table[row, 2] = n_maps
    table[row, 3] = n_lo
    expand(maps, n_maps, split, outer, members, strides, sizes)
    n_maps += n_lo
    table[row, 4] = inner
    table[row, 5] = shared
    return maps, n_maps


@njit(cache=True, nogil=True)
def layout(clique_ptr, clique_idx, parent, topo, sizes):
    """Order the variables of each clique: separator first, in the parent's order, then the rest.

    Returns (variables in table order, with the pointers of `clique_ptr`; separator lengths; table sizes; separator
    sizes; children pointers; children).
    """
    n_cliques = parent.shape[0]
    n = sizes.shape[0]
    child_ptr = np.zeros(n_cliques + 1, np.int64)
    for c in range(n_cliques):
        if parent[c] >= 0:
            child_ptr[parent[c] + 1] += 1
    for c in range(n_cliques):
        child_ptr[c + 1] += child_ptr[c]
    children = np.empty(child_ptr[n_cliques], np.int64)
    cursor = child_ptr[:n_cliques].copy()
    for t in range(n_cliques):  # in topological order, so that the program is the same whatever the numbering
        c = topo[t]
        p = parent[c]
        if p >= 0:
            children[cursor[p]] = c
            cursor[p] += 1
    ordered = np.empty(clique_idx.shape[0], np.int64)
    n_sep = np.zeros(n_cliques, np.int64)
    table_size = np.ones(n_cliques, np.int64)
    sep_size = np.ones(n_cliques, np.int64)
    mark = np.full(n, -1, np.int64)
    uses = np.zeros(n, np.int64)
    for t in range(n_cliques):
        c = topo[t]
        lo, hi = clique_ptr[c], clique_ptr[c + 1]
        for j in range(lo, hi):
            mark[clique_idx[j]] = c
            uses[clique_idx[j]] = 0
        for q in range(child_ptr[c], child_ptr[c + 1]):
            d = children[q]
            for j in range(clique_ptr[d], clique_ptr[d + 1]):
                if mark[clique_idx[j]] == c:
                    uses[clique_idx[j]] += 1
        at = lo
        p = parent[c]
        if p >= 0:
            for j in range(clique_ptr[p], clique_ptr[p + 1]):
                v = ordered[j]
                if mark[v] == c:
                    ordered[at] = v
                    mark[v] = -1
                    at += 1
        n_sep[c] = at - lo
        first = at
        for j in range(lo, hi):
            v = clique_idx[j]
            if mark[v] == c:
                spot = at
                while spot > first and (
                    uses[ordered[spot - 1]] < uses[v]
                    or (uses[ordered[spot - 1]] == uses[v] and sizes[ordered[spot - 1]] > sizes[v])
                ):
                    ordered[spot] = ordered[spot - 1]
                    spot -= 1
                ordered[spot] = v
                at += 1
        for j in range(lo, hi):
            table_size[c] *= sizes[ordered[j]]
            if j - lo < n_sep[c]:
                sep_size[c] *= sizes[ordered[j]]
    return ordered, n_sep, table_size, sep_size, child_ptr, children


@njit(cache=True, nogil=True)
def homes(clique_ptr, clique_idx, table_size, scope_ptr, scope_idx, keep, use, n):
    """The smallest clique that holds each factor's free variables (-1: no free variable, or the factor is not used)."""
    n_cliques = table_size.shape[0]
    n_factors = scope_ptr.shape[0] - 1
    where_ptr = np.zeros(n + 1, np.int64)
    for j in range(clique_idx.shape[0]):
        where_ptr[clique_idx[j] + 1] += 1
    for v in range(n):
        where_ptr[v + 1] += where_ptr[v]
    where = np.empty(clique_idx.shape[0], np.int64)
    cursor = where_ptr[:n].copy()
    for c in range(n_cliques):
        for j in range(clique_ptr[c], clique_ptr[c + 1]):
            v = clique_idx[j]
            where[cursor[v]] = c
            cursor[v] += 1
    home = np.full(n_factors, -1, np.int64)
    for f in range(n_factors):
        if use[f] == 0:
            continue
        rare = -1
        free = 0
        for j in range(scope_ptr[f], scope_ptr[f + 1]):
            v = scope_idx[j]
            if keep[v]:
                free += 1
                if rare < 0 or where_ptr[v + 1] - where_ptr[v] < where_ptr[rare + 1] - where_ptr[rare]:
                    rare = v
        if rare < 0:
            continue
        best = -1
        for q in range(where_ptr[rare], where_ptr[rare + 1]):
            c = where[q]
            if best >= 0 and table_size[c] >= table_size[best]:
                continue
            inside = 0
            for j in range(scope_ptr[f], scope_ptr[f + 1]):
                if keep[scope_idx[j]]:
                    for i in range(clique_ptr[c], clique_ptr[c + 1]):
                        if clique_idx[i] == scope_idx[j]:
                            inside += 1
                            break
            if inside == free:
                best = c
        home[f] = best
    return home


@njit(cache=True, nogil=True)
def build(
    sizes,  # (n,) number of states
    keep,  # (n,) 1: the variable stays in the tree; 0: it is sliced out by its observed state
    column,  # (n,) column of the sliced variable in the codes
    masked,  # (n,) slot of the variable among those that may carry a likelihood, or -1
    mask_offset,  # (slots + 1,) first cell of each slot in the likelihood buffer
    scope_ptr,
    scope_idx,
    value_ptr,
    home,  # (factors,) clique of each factor
    is_static,  # (factors,) 1: the factor is multiplied into its clique beforehand
    use,  # (factors,) 1: the factor belongs to the plan
    mask_home,  # (slots,) clique of each likelihood
    clique_ptr,
    ordered,
    n_sep,
    table_size,
    sep_size,
    parent,
    topo,
    child_ptr,
    children,
    all_want_ptr,  # sets whose joint tables are wanted, in CSR; members in any order
    all_want_idx,
    all_want_column,  # (wants,) first output column
):
    """The program, packed; and the number of cells of the static tables."""
    # wanted sets that are in the tree; a wanted variable that is not is observed, or has a single state
    n_all = all_want_column.shape[0]
    want_ptr = np.zeros(n_all + 1, np.int64)
    want_idx = np.zeros(all_want_idx.shape[0], np.int64)
    want_column = np.zeros(n_all, np.int64)
    onehot = np.zeros((n_all, 3), np.int64)
    n_wants = 0
    n_onehot = 0
    for q in range(n_all):
        inside = True
        for j in range(all_want_ptr[q], all_want_ptr[q + 1]):
            if keep[all_want_idx[j]] == 0:
                inside = False
        if inside:
            at = want_ptr[n_wants]
            for j in range(all_want_ptr[q], all_want_ptr[q + 1]):
                want_idx[at] = all_want_idx[j]
                at += 1
            want_column[n_wants] = all_want_column[q]
            n_wants += 1
            want_ptr[n_wants] = at
        else:
            v = all_want_idx[all_want_ptr[q]]
            onehot[n_onehot, 0] = column[v]
            onehot[n_onehot, 1] = all_want_column[q]
            onehot[n_onehot, 2] = sizes[v]
            n_onehot += 1
    n = sizes.shape[0]
    n_cliques = parent.shape[0]
    n_factors = use.shape[0]
    n_slots = mask_offset.shape[0] - 1
    cliques = np.zeros((n_cliques, C_COLUMNS), np.int64)
    cliques[:, C_STATIC] = -1
    offset = 0
    sep_offset = 0
    for c in range(n_cliques):
        cliques[c, C_OFF] = offset
        cliques[c, C_SIZE] = table_size[c]
        cliques[c, C_SEP] = sep_offset
        cliques[c, C_SEP_SIZE] = sep_size[c]
        cliques[c, C_PARENT] = parent[c]
        offset += table_size[c]
        sep_offset += sep_size[c]

    maps = np.zeros(256, np.int64)
    n_maps = 0
    maps_table = np.zeros((n_factors + n_slots + n_cliques + n_wants + 1, MAP_COLUMNS), np.int64)
    n_rows = 0
    width = 1
    for c in range(n_cliques):
        width = max(width, clique_ptr[c + 1] - clique_ptr[c])
    members = np.zeros(width, np.uint8)
    strides = np.zeros(width, np.int64)
    dims = np.zeros(width, np.int64)
    position = np.zeros(n, np.int64)

    # slices: factors that enter anew for each case; static ones are multiplied into the clique beforehand
    slices = np.zeros((n_factors, S_COLUMNS), np.int64)
    slice_home = np.full(n_factors, -1, np.int64)
    slice_factor = np.full(n_factors, -1, np.int64)
    n_slices = 0
    n_keys = 0
    keys = np.zeros((max(scope_idx.shape[0], 1), 2), np.int64)
    buffer = 0
    static_size = 0
    for f in range(n_factors):
        if use[f] == 0:
            continue
        if is_static[f]:
            if home[f] >= 0 and cliques[home[f], C_STATIC] < 0:
                cliques[home[f], C_STATIC] = static_size
                static_size += table_size[home[f]]
            continue
        s = n_slices
        n_slices += 1
        slice_home[s] = home[f]
        slice_factor[s] = f
        slices[s, S_BASE] = value_ptr[f]
        slices[s, S_BUFFER] = buffer
        slices[s, S_KEY] = n_keys
        stride = 1
        length = 1
        for j in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
            v = scope_idx[j]
            if keep[v] == 0:
                keys[n_keys, 0] = column[v]
                keys[n_keys, 1] = stride
                n_keys += 1
            else:
                length *= sizes[v]
                position[v] = stride  # stride in the factor, for the gather below
            stride *= sizes[v]
        slices[s, S_KEY_END] = n_keys
        slices[s, S_LENGTH] = length
        slices[s, S_OFFSETS] = n_maps
        buffer += length
        maps = _grown(maps, n_maps + length)
        # offsets of the free cells in the factor, in the order of the clique's variables
        k = 0
        if home[f] >= 0:
            for i in range(clique_ptr[home[f]], clique_ptr[home[f] + 1]):
                v = ordered[i]
                for j in range(scope_ptr[f], scope_ptr[f + 1]):
                    if scope_idx[j] == v:
                        members[k] = 1
                        strides[k] = position[v]
                        dims[k] = sizes[v]
                        k += 1
                        break
        expand(maps, n_maps, 0, k, members, strides, dims)
        n_maps += length

    # terms of each clique: (mask of its members in the clique, kind, source)
    count = np.zeros(n_cliques + 1, np.int64)
    for s in range(n_slices):
        if slice_home[s] >= 0:
            count[slice_home[s] + 1] += 1
    for m in range(n_slots):
        if mask_home[m] >= 0:
            count[mask_home[m] + 1] += 1
    for c in range(n_cliques):
        if parent[c] >= 0:
            count[parent[c] + 1] += 1
    for c in range(n_cliques):
        count[c + 1] += count[c]
    n_raw = count[n_cliques]
    raw_kind = np.zeros(n_raw, np.int64)
    raw_source = np.zeros(n_raw, np.int64)
    cursor = count[:n_cliques].copy()
    for c in range(n_cliques):
        for q in range(child_ptr[c], child_ptr[c + 1]):
            raw_kind[cursor[c]] = SEPARATOR
            raw_source[cursor[c]] = children[q]
            cursor[c] += 1
    for s in range(n_slices):
        c = slice_home[s]
        if c >= 0:
            raw_kind[cursor[c]] = SLICE
            raw_source[cursor[c]] = s
            cursor[c] += 1
    for m in range(n_slots):
        c = mask_home[m]
        if c >= 0:
            raw_kind[cursor[c]] = LIKELIHOOD
            raw_source[cursor[c]] = m
            cursor[c] += 1
    slot_variable = np.full(max(n_slots, 1), -1, np.int64)
    for v in range(n):
        if masked[v] >= 0:
            slot_variable[masked[v]] = v

    terms = np.zeros((n_raw, T_COLUMNS), np.int64)
    n_terms = 0
    term_members = np.zeros((n_raw, M_COLUMNS), np.int64)
    n_members = 0
    combined_size = 0
    for c in range(n_cliques):
        lo, hi = clique_ptr[c], clique_ptr[c + 1]
        for i in range(lo, hi):
            position[ordered[i]] = i - lo
            dims[i - lo] = sizes[ordered[i]]
        first, last = count[c], count[c + 1]
        n_here = last - first
        scope_mask = np.zeros(n_here, np.int64)
        for r in range(n_here):
            kind, source = raw_kind[first + r], raw_source[first + r]
            bits = 0
            if kind == SEPARATOR:
                for i in range(clique_ptr[source], clique_ptr[source] + n_sep[source]):
                    bits |= 1 << position[ordered[i]]
            elif kind == SLICE:
                f = slice_factor[source]
                for j in range(scope_ptr[f], scope_ptr[f + 1]):
                    if keep[scope_idx[j]]:
                        bits |= 1 << position[scope_idx[j]]
            else:
                bits = 1 << position[slot_variable[source]]
            scope_mask[r] = bits
        by_scope = np.argsort(scope_mask, kind="mergesort")
        cliques[c, C_TERM] = n_terms
        r = 0
        while r < n_here:
            bits = scope_mask[by_scope[r]]
            end = r + 1
            while end < n_here and scope_mask[by_scope[end]] == bits:
                end += 1
            size = 1
            for i in range(hi - lo - 1, -1, -1):
                if (bits >> i) & 1:
                    members[i] = 1
                    strides[i] = size
                    size *= dims[i]
                else:
                    members[i] = 0
            maps, n_maps = add_map(maps, n_maps, maps_table, n_rows, hi - lo, members, strides, dims)
            for q in range(r, end):  # a child's map is also the way down
                if raw_kind[first + by_scope[q]] == SEPARATOR:
                    cliques[raw_source[first + by_scope[q]], C_MAP] = n_rows
            terms[n_terms, T_SIZE] = size
            terms[n_terms, T_MAP] = n_rows
            n_rows += 1
            if end - r == 1:
                terms[n_terms, T_KIND] = raw_kind[first + by_scope[r]]
                terms[n_terms, T_SOURCE] = raw_source[first + by_scope[r]]
            else:
                terms[n_terms, T_KIND] = COMBINED
                terms[n_terms, T_SOURCE] = combined_size
                combined_size += size
                terms[n_terms, T_MEMBER] = n_members
                for q in range(r, end):
                    term_members[n_members, 0] = raw_kind[first + by_scope[q]]
                    term_members[n_members, 1] = raw_source[first + by_scope[q]]
                    n_members += 1
                terms[n_terms, T_MEMBER_END] = n_members
            n_terms += 1
            r = end
        cliques[c, C_TERM_END] = n_terms

    # outputs: each wanted set from the smallest clique or separator that holds it
    outputs = np.zeros((n_wants, O_COLUMNS), np.int64)
    needed = np.zeros(n_cliques, np.uint8)  # cliques whose belief must be computed
    stamp = np.full(n, -1, np.int64)
    best_size = np.full(n_wants, -1, np.int64)
    single = np.full(n, -1, np.int64)  # variables wanted alone: found in one sweep over all cliques
    for w in range(n_wants):
        if want_ptr[w + 1] - want_ptr[w] == 1:
            single[want_idx[want_ptr[w]]] = w
    for c in range(n_cliques):
        for i in range(clique_ptr[c], clique_ptr[c + 1]):
            w = single[ordered[i]]
            if w >= 0:
                if best_size[w] < 0 or table_size[c] < best_size[w]:
                    best_size[w] = table_size[c]
                    outputs[w, O_FROM] = 0
                    outputs[w, O_CLIQUE] = c
                if i - clique_ptr[c] < n_sep[c] and sep_size[c] < best_size[w]:
                    best_size[w] = sep_size[c]
                    outputs[w, O_FROM] = 1
                    outputs[w, O_CLIQUE] = c
    for w in range(n_wants):
        lo, hi = want_ptr[w], want_ptr[w + 1]
        if hi - lo > 1:
            for c in range(n_cliques):
                inside = 0
                in_sep = 0
                for j in range(lo, hi):
                    stamp[want_idx[j]] = w
                for i in range(clique_ptr[c], clique_ptr[c + 1]):
                    if stamp[ordered[i]] == w:
                        inside += 1
                        if i - clique_ptr[c] < n_sep[c]:
                            in_sep += 1
                if inside == hi - lo and (best_size[w] < 0 or table_size[c] < best_size[w]):
                    best_size[w] = table_size[c]
                    outputs[w, O_FROM] = 0
                    outputs[w, O_CLIQUE] = c
                if in_sep == hi - lo and sep_size[c] < best_size[w]:
                    best_size[w] = sep_size[c]
                    outputs[w, O_FROM] = 1
                    outputs[w, O_CLIQUE] = c
        c = outputs[w, O_CLIQUE]
        from_sep = outputs[w, O_FROM] == 1
        start = clique_ptr[c]
        k = n_sep[c] if from_sep else clique_ptr[c + 1] - start
        for j in range(lo, hi):
            stamp[want_idx[j]] = n_wants + w
        size = 1
        for i in range(k - 1, -1, -1):
            v = ordered[start + i]
            dims[i] = sizes[v]
            if stamp[v] == n_wants + w:
                members[i] = 1
                strides[i] = size
                size *= sizes[v]
            else:
                members[i] = 0
        maps, n_maps = add_map(maps, n_maps, maps_table, n_rows, k, members, strides, dims)
        outputs[w, O_MAP] = n_rows
        outputs[w, O_COLUMN] = want_column[w]
        outputs[w, O_WIDTH] = size
        n_rows += 1
        at = parent[c] if from_sep else c
        if from_sep:
            needed[c] |= 2  # the separator's belief is read
        while at >= 0 and (needed[at] & 1) == 0:
            needed[at] |= 1
            at = parent[at]
    biggest_term = 1
    for t in range(n_terms):
        biggest_term = max(biggest_term, terms[t, T_SIZE])
    biggest = 1
    for c in range(n_cliques):
        biggest = max(biggest, sep_size[c])
    for q in range(n_wants):
        biggest = max(biggest, outputs[q, O_WIDTH])
    n_down = 0
    n_roots = 0
    for c in range(n_cliques):
        if parent[c] < 0:
            n_roots += 1
        elif needed[c] > 0:
            n_down += 1
    n_constants = 0
    for q in range(n_slices):
        if slice_home[q] < 0:
            n_constants += 1
    lengths = np.array(
        [
            n_cliques, n_down, n_roots, n_cliques, n_cliques * C_COLUMNS, n_terms * T_COLUMNS, n_members * M_COLUMNS,
            n_rows * MAP_COLUMNS, n_maps, n_slices * S_COLUMNS, n_keys * 2, n_constants, n_wants * O_COLUMNS,
            n_onehot * 3, n_slots + 1, n_slots, n_cliques + 1, clique_ptr[n_cliques], n_cliques, n, n_cliques,
            N_BUFFERS,
        ]
    )  # fmt: skip
    size = N_SECTIONS + 1
    for k in range(N_SECTIONS):
        size += lengths[k]
    ints = np.zeros(size, np.int64)
    ints[0] = N_SECTIONS + 1
    for k in range(N_SECTIONS):
        ints[k + 1] = ints[k] + lengths[k]
    down = ints[P_DISTRIBUTE]
    root = ints[P_ROOTS]
    for t in range(n_cliques):
        c = topo[t]
        ints[ints[P_COLLECT] + n_cliques - 1 - t] = c
        if parent[c] < 0:
            ints[root] = c
            root += 1
        elif needed[c] > 0:
            ints[down] = c
            down += 1
        ints[ints[P_NEEDED] + t] = needed[t]
    at = ints[P_CONSTANTS]
    for q in range(n_slices):
        if slice_home[q] < 0:
            ints[at] = q
            at += 1
    ints[ints[P_CLIQUES] : ints[P_CLIQUES + 1]] = cliques.reshape(-1)
    ints[ints[P_TERMS] : ints[P_TERMS + 1]] = terms[:n_terms].reshape(-1)
    ints[ints[P_MEMBERS] : ints[P_MEMBERS + 1]] = term_members[:n_members].reshape(-1)
    ints[ints[P_MAPS_TABLE] : ints[P_MAPS_TABLE + 1]] = maps_table[:n_rows].reshape(-1)
    ints[ints[P_MAPS] : ints[P_MAPS + 1]] = maps[:n_maps]
    ints[ints[P_SLICES] : ints[P_SLICES + 1]] = slices[:n_slices].reshape(-1)
    ints[ints[P_KEYS] : ints[P_KEYS + 1]] = keys[:n_keys].reshape(-1)
    ints[ints[P_OUTPUTS] : ints[P_OUTPUTS + 1]] = outputs[:n_wants].reshape(-1)
    ints[ints[P_ONEHOT] : ints[P_ONEHOT + 1]] = onehot[:n_onehot].reshape(-1)
    ints[ints[P_MASK_OFFSET] : ints[P_MASK_OFFSET + 1]] = mask_offset
    ints[ints[P_MASK_HOME] : ints[P_MASK_HOME + 1]] = mask_home
    ints[ints[P_CLIQUE_PTR] : ints[P_CLIQUE_PTR + 1]] = clique_ptr
    ints[ints[P_ORDERED] : ints[P_ORDERED + 1]] = ordered
    ints[ints[P_N_SEP] : ints[P_N_SEP + 1]] = n_sep
    ints[ints[P_SIZES] : ints[P_SIZES + 1]] = sizes
    ints[ints[P_TOPO] : ints[P_TOPO + 1]] = topo
    one = max(n_cliques, 1)
    ints[ints[P_WORK] : ints[P_WORK + 1]] = np.array(
        [
            max(offset, 1), max(sep_offset, 1), max(sep_offset, 1), max(buffer, 1), max(mask_offset[n_slots], 1),
            max(combined_size, 1), biggest_term, max(n_slots, 1), one, one, 1 + biggest,
        ]
    )  # fmt: skip
    return ints, static_size


@njit(cache=True, nogil=True)
def search_order(adjacency, log_sizes, keep, cases, seconds_per_cell):
    """The best of three greedy orders and of randomized restarts: (order, clique_ptr, clique_idx, rule, restarted).

    The number of restarts follows from sizes alone, never from a clock: the same model gives the same tree.
    """
    n = log_sizes.shape[0]
    noise = np.zeros(n)
    order, ptr, idx = eliminate(adjacency, log_sizes, keep, 0, noise)
    best = total_log_size(ptr, idx, log_sizes)
    rule = 0
    for mode in range(1, 3):
        other, other_ptr, other_idx = eliminate(adjacency, log_sizes, keep, mode, noise)
        size = total_log_size(other_ptr, other_idx, log_sizes)
        if size < best - 1e-9:
            order, ptr, idx, best, rule = other, other_ptr, other_idx, size, mode
    run = seconds_per_cell * np.exp(min(best, 50.0)) * min(cases, 1000)
    one_try = 1e-6 * (n + 1) + 3e-10 * n * n
    tries = 0
    if best < HOPELESS_LOG_CELLS:
        tries = int(min(0.2 * run, MAX_SEARCH_SECONDS) / one_try)
    # rules with amounts of noise, each tried a few times; the two that do best on average get all further tries
    rules = np.array([0, 0, 1, 1, 2, 2, 2])
    scales = np.array([0.5, 3.0, 0.7, 3.0, 0.3, 0.7, 1.5])
    n_ways = rules.shape[0]
    sum_of = np.zeros(n_ways)
    restarted = False
    random = np.uint64(88172645463325252)
    first = 0
    second = 1
    for attempt in range(tries):
        if attempt < 4 * n_ways:
            way = attempt % n_ways
        else:
            if attempt == 4 * n_ways:
                by_size = np.argsort(sum_of)
                first, second = by_size[0], by_size[1]
            way = second if attempt % 3 == 0 else first
        for v in range(n):
            random ^= random << np.uint64(13)  # xorshift
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            noise[v] = scales[way] * (np.float64(random >> np.uint64(11)) / 9007199254740992.0)
        other, other_ptr, other_idx = eliminate(adjacency, log_sizes, keep, rules[way], noise)
        size = total_log_size(other_ptr, other_idx, log_sizes)
        sum_of[way] += size
        if size < best - 1e-9:
            order, ptr, idx, best, rule = other, other_ptr, other_idx, size, rules[way]
            restarted = True
    return order, ptr, idx, rule, restarted


@njit(cache=True, nogil=True)
def structure(
    sizes, log_sizes, keep, scope_ptr, scope_idx, use, joint_ptr, joint_idx, masked, cases, seconds_per_cell
):  # fmt: skip
    """The junction tree of the factors in use and of the sets wanted jointly, with the layout of its tables.

    A tree too large to be laid out has empty tables (`log_cells` tells).
    """
    n = sizes.shape[0]
    in_use_ptr = np.zeros(scope_ptr.shape[0] + joint_ptr.shape[0] - 1, np.int64)
    in_use_idx = np.empty(scope_idx.shape[0] + joint_idx.shape[0], np.int64)
    k = 0
    at = 0
    for f in range(use.shape[0]):
        if use[f]:
            for j in range(scope_ptr[f], scope_ptr[f + 1]):
                in_use_idx[at] = scope_idx[j]
                at += 1
            k += 1
            in_use_ptr[k] = at
    for q in range(joint_ptr.shape[0] - 1):
        for j in range(joint_ptr[q], joint_ptr[q + 1]):
            in_use_idx[at] = joint_idx[j]
            at += 1
        k += 1
        in_use_ptr[k] = at
    adjacency = build_adjacency(n, in_use_ptr[: k + 1], in_use_idx[:at], keep)
    order, ptr, idx, rule, restarted = search_order(adjacency, log_sizes, keep, cases, seconds_per_cell)
    clique_ptr, clique_idx = maximal_cliques(order, ptr, idx)
    parent, topo = junction_forest(clique_ptr, clique_idx, n, log_sizes)
    log_cells = total_log_size(clique_ptr, clique_idx, log_sizes)
    none = np.zeros(0, np.int64)
    is_static = np.ones(use.shape[0], np.uint8)
    for f in range(use.shape[0]):
        if use[f] == 0:
            is_static[f] = 0
        for j in range(scope_ptr[f], scope_ptr[f + 1]):
            if keep[scope_idx[j]] == 0:
                is_static[f] = 0
    mask_offset = np.zeros(masked.shape[0] + 1, np.int64)
    mask_ptr = np.arange(masked.shape[0] + 1)
    for m in range(masked.shape[0]):
        mask_offset[m + 1] = mask_offset[m] + sizes[masked[m]]
    if log_cells > MAX_LOG_CELLS:
        return (
            clique_ptr, clique_idx, parent, topo, log_cells, rule, restarted, none, none, none, none, none, none, none,
            none, is_static, mask_offset,
        )  # fmt: skip
    ordered, n_sep, table_size, sep_size, child_ptr, children = layout(clique_ptr, clique_idx, parent, topo, sizes)
    home = homes(clique_ptr, clique_idx, table_size, scope_ptr, scope_idx, keep, use, n)
    counted = np.zeros(table_size.shape[0], np.uint8)
    static_cells = 0
    for f in range(use.shape[0]):
        if is_static[f] and home[f] >= 0 and counted[home[f]] == 0:
            counted[home[f]] = 1
            static_cells += table_size[home[f]]
    if static_cells > MAX_STATIC_CELLS:  # a second copy of the tables would cost more than entering the factors anew
        is_static[:] = 0
    every = np.ones(masked.shape[0], np.uint8)
    mask_home = homes(clique_ptr, clique_idx, table_size, mask_ptr, masked, keep, every, n)
    return (
        clique_ptr, clique_idx, parent, topo, log_cells, rule, restarted, ordered, n_sep, table_size, sep_size,
        child_ptr, children, home, mask_home, is_static, mask_offset,
    )  # fmt: skip
