"""Numba: from a junction tree to a flat program of table operations.

The tables are laid out by `tree_structure`, index maps between them are those of `index_maps`, and the columns of what
is made here are named in `tree_columns`; `tree_runner` runs it.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.orders import order_of
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
    N_SECTIONS,
    O_CLIQUE,
    O_COLUMN,
    O_COLUMNS,
    O_FROM,
    O_MAP,
    O_WIDTH,
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
    want_ptr, want_idx, want_column, onehot = wanted(keep, column, sizes, all_want_ptr, all_want_idx, all_want_column)
    width = 1
    for c in range(parent.shape[0]):
        width = max(width, clique_ptr[c + 1] - clique_ptr[c])
    cliques = _new_cliques(table_size, sep_size, parent)
    slices, slice_home, slice_factor, keys, maps, static_size = cut(
        width, cliques, sizes, keep, column, scope_ptr, scope_idx, value_ptr, home, is_static, use, clique_ptr, ordered,
        table_size,
    )  # fmt: skip
    most_rows = slices.shape[0] + mask_home.shape[0] + parent.shape[0] + want_column.shape[0] + 1
    maps_table = np.zeros((most_rows, MAP_COLUMNS), np.int64)
    terms, term_members, maps, n_maps, n_rows, combined_size = gather_terms(
        width, cliques, sizes, keep, masked, scope_ptr, scope_idx, mask_home, clique_ptr, ordered, n_sep, parent,
        child_ptr, children, slice_home, slice_factor, maps, maps_table,
    )  # fmt: skip
    outputs, needed, maps, n_maps, n_rows = read_outs(
        width, sizes, clique_ptr, ordered, n_sep, table_size, sep_size, parent, want_ptr, want_idx, want_column, maps,
        n_maps, maps_table, n_rows,
    )  # fmt: skip
    work = _work_sizes(cliques, terms, slices, outputs, mask_offset, combined_size)
    tables = cliques.size + terms.size + term_members.size + n_rows * MAP_COLUMNS + slices.size + keys.size
    lists = n_maps + slice_home.size + mask_offset.size + mask_home.size + clique_ptr.size + ordered.size
    room = tables + lists + outputs.size + onehot.size + 6 * parent.size + sizes.size + work.size
    out = np.zeros(N_SECTIONS + 1 + room, np.int64)
    out[0] = N_SECTIONS + 1
    _put_routes(out, topo, parent, needed)
    put_rows(out, 4, cliques, cliques.shape[0])
    put_rows(out, 5, terms, terms.shape[0])
    put_rows(out, 6, term_members, term_members.shape[0])
    put_rows(out, 7, maps_table, n_rows)
    put_list(out, 8, maps, n_maps)
    put_rows(out, 9, slices, slices.shape[0])
    put_rows(out, 10, keys, keys.shape[0])
    _put_loose(out, 11, slice_home)
    put_rows(out, 12, outputs, outputs.shape[0])
    put_rows(out, 13, onehot, onehot.shape[0])
    put_list(out, 14, mask_offset, mask_offset.shape[0])
    put_list(out, 15, mask_home, mask_home.shape[0])
    put_list(out, 16, clique_ptr, clique_ptr.shape[0])
    put_list(out, 17, ordered, ordered.shape[0])
    put_list(out, 18, n_sep, n_sep.shape[0])
    put_list(out, 19, sizes, sizes.shape[0])
    put_list(out, 20, topo, topo.shape[0])
    put_list(out, 21, work, work.shape[0])
    return out[: out[N_SECTIONS]], static_size


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def put_list(out, section, part, n):
    """The next section of the packed program: it begins at out[section], the following one at out[section + 1]."""
    at = out[section]
    for i in range(n):
        out[at + i] = part[i]
    out[section + 1] = at + n


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def put_rows(out, section, part, n):
    """The same for the first n rows of a table."""
    at = out[section]
    for i in range(n):
        for j in range(part.shape[1]):
            out[at] = part[i, j]
            at += 1
    out[section + 1] = at


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _put_routes(out, topo, parent, needed):
    """The first four sections: the cliques on the way up, those on the way down whose belief is needed, the roots that
    are, and what is needed of each."""
    n = topo.shape[0]
    at = out[0]
    for i in range(n):
        out[at + i] = topo[n - 1 - i]
    at += n
    out[1] = at
    for i in range(n):
        if needed[topo[i]] > 0 and parent[topo[i]] >= 0:
            out[at] = topo[i]
            at += 1
    out[2] = at
    for i in range(n):
        if parent[topo[i]] < 0:
            out[at] = topo[i]
            at += 1
    out[3] = at
    for c in range(n):
        out[at + c] = needed[c]
    out[4] = at + n


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _put_loose(out, section, slice_home):
    """The slices that are numbers: no variable of theirs is in the tree."""
    at = out[section]
    for s in range(slice_home.shape[0]):
        if slice_home[s] < 0:
            out[at] = s
            at += 1
    out[section + 1] = at


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _work_sizes(cliques, terms, slices, outputs, mask_offset, combined_size):
    """Lengths of the working arrays of one case."""
    cells, separators, biggest, buffer, longest = 0, 0, 1, 0, 1
    for c in range(cliques.shape[0]):
        cells += cliques[c, C_SIZE]
        separators += cliques[c, C_SEP_SIZE]
        biggest = max(biggest, cliques[c, C_SEP_SIZE])
    for w in range(outputs.shape[0]):
        biggest = max(biggest, outputs[w, O_WIDTH])
    for s in range(slices.shape[0]):
        buffer += slices[s, S_LENGTH]
    for t in range(terms.shape[0]):
        longest = max(longest, terms[t, T_SIZE])
    slots, n_cliques = mask_offset.shape[0] - 1, cliques.shape[0]
    work = np.empty(11, np.int64)
    work[0] = max(cells, 1)
    work[1] = max(separators, 1)
    work[2] = max(separators, 1)
    work[3] = max(buffer, 1)
    work[4] = max(mask_offset[slots], 1)
    work[5] = max(combined_size, 1)
    work[6] = longest
    work[7] = max(slots, 1)
    work[8] = max(n_cliques, 1)
    work[9] = max(n_cliques, 1)
    work[10] = 1 + biggest
    return work


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _new_cliques(table_size, sep_size, parent):
    """The rows of the cliques, without terms and static tables."""
    cliques = np.zeros((parent.shape[0], C_COLUMNS), np.int64)
    at, sep_at = 0, 0
    for c in range(parent.shape[0]):
        cliques[c, C_OFF] = at
        cliques[c, C_SIZE] = table_size[c]
        cliques[c, C_SEP] = sep_at
        cliques[c, C_SEP_SIZE] = sep_size[c]
        cliques[c, C_PARENT] = parent[c]
        cliques[c, C_STATIC] = -1
        at += table_size[c]
        sep_at += sep_size[c]
    return cliques


@njit(cache=True, nogil=True)
def wanted(keep, column, sizes, ptr, idx, columns):
    """Wanted sets that are in the tree; a wanted variable that is not is observed, or has a single state."""
    n_sets = columns.shape[0]
    want_ptr = np.zeros(n_sets + 1, np.int64)
    want_idx = np.zeros(idx.shape[0], np.int64)
    want_column = np.zeros(n_sets, np.int64)
    n_wants = 0
    for q in range(n_sets):
        for j in range(ptr[q], ptr[q + 1]):
            if keep[idx[j]] == 0:
                n_wants += 1
                break
    onehot = np.zeros((n_wants, 3), np.int64)
    n_wants = 0
    n_onehot = 0
    for q in range(n_sets):
        inside = True
        for j in range(ptr[q], ptr[q + 1]):
            if keep[idx[j]] == 0:
                inside = False
        if inside:
            at = want_ptr[n_wants]
            for j in range(ptr[q], ptr[q + 1]):
                want_idx[at] = idx[j]
                at += 1
            want_column[n_wants] = columns[q]
            n_wants += 1
            want_ptr[n_wants] = at
        else:
            v = idx[ptr[q]]
            onehot[n_onehot, 0] = column[v]
            onehot[n_onehot, 1] = columns[q]
            onehot[n_onehot, 2] = sizes[v]
            n_onehot += 1
    return want_ptr[: n_wants + 1], want_idx, want_column[:n_wants], onehot


@njit(cache=True, nogil=True)
def cut(
    width, cliques, sizes, keep, column, scope_ptr, scope_idx, value_ptr, home, is_static, use, clique_ptr, ordered,
    table_size,
):  # fmt: skip
    """Slices: factors that enter anew for each case; static ones are multiplied into the clique beforehand."""
    n_factors = use.shape[0]
    n_slices = 0
    n_keys = 0
    for f in range(n_factors):
        if use[f] and not is_static[f]:
            n_slices += 1
            n_keys += scope_ptr[f + 1] - scope_ptr[f]
    members = np.zeros(width, np.uint8)
    strides = np.zeros(width, np.int64)
    dims = np.zeros(width, np.int64)
    position = np.zeros(sizes.shape[0], np.int64)
    maps = np.zeros(256, np.int64)
    n_maps = 0
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
    return slices, slice_home, slice_factor, keys[:n_keys], maps[:n_maps], static_size


@njit(cache=True, nogil=True)
def gather_terms(
    width, cliques, sizes, keep, masked, scope_ptr, scope_idx, mask_home, clique_ptr, ordered, n_sep, parent,
    child_ptr, children, slice_home, slice_factor, maps, maps_table,
):  # fmt: skip
    """Terms of each clique: what flows into it over the same variables is one term."""
    n = sizes.shape[0]
    n_cliques = parent.shape[0]
    n_slots = mask_home.shape[0]
    n_slices = slice_home.shape[0]
    n_maps = maps.shape[0]
    n_rows = 0
    members = np.zeros(width, np.uint8)
    strides = np.zeros(width, np.int64)
    dims = np.zeros(width, np.int64)
    position = np.zeros(n, np.int64)
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
        by_scope = order_of(scope_mask)
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
    return terms[:n_terms], term_members[:n_members], maps, n_maps, n_rows, combined_size


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def holders(clique_ptr, ordered, n_sep, table_size, sep_size, n, want_ptr, want_idx):
    """Rows of outputs: each wanted set from the smallest clique or separator that holds it."""
    n_cliques = table_size.shape[0]
    n_wants = want_ptr.shape[0] - 1
    outputs = np.zeros((n_wants, O_COLUMNS), np.int64)
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
    return outputs


@njit(cache=True, nogil=True)
def read_outs(
    width, sizes, clique_ptr, ordered, n_sep, table_size, sep_size, parent, want_ptr, want_idx, want_column, maps,
    n_maps, maps_table, n_rows,
):  # fmt: skip
    """Where and how each wanted set is read, and the cliques whose belief must be computed for it."""
    n_cliques = parent.shape[0]
    n_wants = want_column.shape[0]
    outputs = holders(clique_ptr, ordered, n_sep, table_size, sep_size, sizes.shape[0], want_ptr, want_idx)
    needed = np.zeros(n_cliques, np.uint8)
    stamp = np.full(sizes.shape[0], -1, np.int64)
    members = np.zeros(width, np.uint8)
    strides = np.zeros(width, np.int64)
    dims = np.zeros(width, np.int64)
    for w in range(n_wants):
        lo, hi = want_ptr[w], want_ptr[w + 1]
        c = outputs[w, O_CLIQUE]
        from_sep = outputs[w, O_FROM] == 1
        start = clique_ptr[c]
        k = n_sep[c] if from_sep else clique_ptr[c + 1] - start
        for j in range(lo, hi):
            stamp[want_idx[j]] = w
        size = 1
        for i in range(k - 1, -1, -1):
            v = ordered[start + i]
            dims[i] = sizes[v]
            if stamp[v] == w:
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
    return outputs, needed, maps, n_maps, n_rows
