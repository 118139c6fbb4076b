"""Numba: the junction tree of a model's factors, and the order of the variables in its tables.

A clique's table lists the separator to its parent first (in the parent's order), then the other variables, those
that no child needs innermost; so every message is a sum over contiguous runs.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.tree.clique_forests import junction_forest, maximal_cliques, total_log_size
from gramgraph._numerics.tree.search import search_order
from gramgraph._numerics.tree.triangulation import build_adjacency

#: Trees with more than exp(40) cells are never laid out.
MAX_LOG_CELLS = 40.0
#: Beyond half a gigabyte, tables of numbers that do not change from case to case are not kept.
MAX_STATIC_CELLS = 60_000_000


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
def scopes_in_use(scope_ptr, scope_idx, use, joint_ptr, joint_idx):
    """The scopes of the factors in use and the sets wanted jointly, in CSR."""
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
    return in_use_ptr[: k + 1], in_use_idx[:at]


@njit(cache=True, nogil=True)
def static_factors(keep, scope_ptr, scope_idx, use):
    """1 for the factors in use whose variables are all in the tree."""
    is_static = np.ones(use.shape[0], np.uint8)
    for f in range(use.shape[0]):
        if use[f] == 0:
            is_static[f] = 0
        for j in range(scope_ptr[f], scope_ptr[f + 1]):
            if keep[scope_idx[j]] == 0:
                is_static[f] = 0
    return is_static


@njit(cache=True, nogil=True)
def count_static(is_static, home, table_size):
    """The cells of all cliques that are home to a static factor."""
    counted = np.zeros(table_size.shape[0], np.uint8)
    cells = 0
    for f in range(is_static.shape[0]):
        if is_static[f] and home[f] >= 0 and counted[home[f]] == 0:
            counted[home[f]] = 1
            cells += table_size[home[f]]
    return cells


@njit(cache=True, nogil=True)
def lay_out(sizes, log_sizes, keep, scope_ptr, scope_idx, use, masked, order, ptr, idx, rule, restarted):
    """The junction tree of an elimination order, with the layout of its tables: see `structure`."""
    n, slots = sizes.shape[0], masked.shape[0]
    clique_ptr, clique_idx = maximal_cliques(order, ptr, idx)
    parent, topo = junction_forest(clique_ptr, clique_idx, n, log_sizes)
    log_cells = total_log_size(clique_ptr, clique_idx, log_sizes)
    is_static = static_factors(keep, scope_ptr, scope_idx, use)
    mask_ptr, mask_offset = np.zeros(slots + 1, np.int64), np.zeros(slots + 1, np.int64)
    every = np.zeros(slots, np.uint8)
    for i in range(slots):
        mask_ptr[i + 1] = i + 1
        mask_offset[i + 1] = mask_offset[i] + sizes[masked[i]]
        every[i] = 1
    if log_cells > MAX_LOG_CELLS:
        none = np.zeros(0, np.int64)
        return (
            clique_ptr, clique_idx, parent, topo, log_cells, rule, restarted, none, none, none, none, none, none, none,
            none, is_static, mask_offset,
        )  # fmt: skip
    ordered, n_sep, table_size, sep_size, child_ptr, children = layout(clique_ptr, clique_idx, parent, topo, sizes)
    home = homes(clique_ptr, clique_idx, table_size, scope_ptr, scope_idx, keep, use, n)
    if count_static(is_static, home, table_size) > MAX_STATIC_CELLS:
        for f in range(is_static.shape[0]):
            is_static[f] = 0  # a second copy of the tables would cost more than entering the factors anew
    mask_home = homes(clique_ptr, clique_idx, table_size, mask_ptr, masked, keep, every, n)
    return (
        clique_ptr, clique_idx, parent, topo, log_cells, rule, restarted, ordered, n_sep, table_size, sep_size,
        child_ptr, children, home, mask_home, is_static, mask_offset,
    )  # fmt: skip


@njit(restarts=True, cache=True, nogil=True)
def structure(
    sizes, log_sizes, keep, scope_ptr, scope_idx, use, joint_ptr, joint_idx, masked, cases, seconds_per_cell
):  # fmt: skip
    """The junction tree of the factors in use and of the sets wanted jointly, with the layout of its tables.

    A tree too large to be laid out has empty tables (`log_cells` tells).
    """
    n = sizes.shape[0]
    nodes = np.empty(n, np.int64)
    for v in range(n):
        nodes[v] = v
    in_use_ptr, in_use_idx = scopes_in_use(scope_ptr, scope_idx, use, joint_ptr, joint_idx)
    adjacency = build_adjacency(n, in_use_ptr, in_use_idx, keep)
    order, ptr, idx, rule, restarted = search_order(
        adjacency, log_sizes, keep, nodes, n, -np.inf, cases, seconds_per_cell
    )
    return lay_out(sizes, log_sizes, keep, scope_ptr, scope_idx, use, masked, order, ptr, idx, rule, restarted)
