"""Numba: from a junction tree to a flat program of table operations.

The tables are laid out by `tree_structure`, index maps between them are those of `index_maps`, and the columns of what
is made here are named in `tree_columns`; `tree_runner` runs it.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.tree.columns import (
    C_COLUMNS,
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
    LIKELIHOOD,
    M_COLUMNS,
    MAP_COLUMNS,
    N_BUFFERS,
    N_SECTIONS,
    O_CLIQUE,
    O_COLUMN,
    O_COLUMNS,
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
    P_MASK_HOME,
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
    S_COLUMNS,
    S_KEY,
    S_KEY_END,
    S_LENGTH,
    S_OFFSETS,
    SEPARATOR,
    SLICE,
    T_COLUMNS,
    T_KIND,
    T_MAP,
    T_MEMBER,
    T_MEMBER_END,
    T_SIZE,
    T_SOURCE,
)
from gramgraph._numerics.tree.index_maps import add_map, expand, grown


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
    n_wants = 0
    for q in range(n_all):
        for j in range(all_want_ptr[q], all_want_ptr[q + 1]):
            if keep[all_want_idx[j]] == 0:
                n_wants += 1
                break
    onehot = np.zeros((n_wants, 3), np.int64)
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
    n_slices = 0
    n_keys = 0
    for f in range(n_factors):
        if use[f] and not is_static[f]:
            n_slices += 1
            n_keys += scope_ptr[f + 1] - scope_ptr[f]
    maps_table = np.zeros((n_slices + n_slots + n_cliques + n_wants + 1, MAP_COLUMNS), np.int64)
    n_rows = 0
    width = 1
    for c in range(n_cliques):
        width = max(width, clique_ptr[c + 1] - clique_ptr[c])
    members = np.zeros(width, np.uint8)
    strides = np.zeros(width, np.int64)
    dims = np.zeros(width, np.int64)
    position = np.zeros(n, np.int64)

    # slices: factors that enter anew for each case; static ones are multiplied into the clique beforehand
    slices = np.zeros((n_slices, S_COLUMNS), np.int64)
    slice_home = np.full(n_slices, -1, np.int64)
    slice_factor = np.full(n_slices, -1, np.int64)
    keys = np.zeros((max(n_keys, 1), 2), np.int64)
    n_slices = 0
    n_keys = 0
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
        maps = grown(maps, n_maps + length)
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
    # sets wanted jointly: looked for among the cliques of the member that stands in fewest
    where_ptr = np.zeros(n + 1, np.int64)
    for w in range(n_wants):
        if want_ptr[w + 1] - want_ptr[w] > 1:
            for j in range(want_ptr[w], want_ptr[w + 1]):
                stamp[want_idx[j]] = -2
    for j in range(clique_ptr[n_cliques]):
        if stamp[ordered[j]] == -2:
            where_ptr[ordered[j] + 1] += 1
    for v in range(n):
        where_ptr[v + 1] += where_ptr[v]
    where = np.empty(where_ptr[n], np.int64)
    for c in range(n_cliques - 1, -1, -1):  # backwards: afterwards the cliques of v begin at where_ptr[v + 1]
        for j in range(clique_ptr[c], clique_ptr[c + 1]):
            v = ordered[j]
            if stamp[v] == -2:
                where_ptr[v + 1] -= 1
                where[where_ptr[v + 1]] = c
    for w in range(n_wants):
        lo, hi = want_ptr[w], want_ptr[w + 1]
        if hi - lo > 1:
            rare = -1
            fewest = n_cliques + 1
            for j in range(lo, hi):
                v = want_idx[j]
                end = where_ptr[v + 2] if v + 2 <= n else where.shape[0]
                if end - where_ptr[v + 1] < fewest:
                    fewest = end - where_ptr[v + 1]
                    rare = v
            for q in range(where_ptr[rare + 1], where_ptr[rare + 1] + fewest):
                c = where[q]
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
