"""Numba: moves of Markov chains over compiled Markov blankets: trees of variables at once, clusters, proposals.

Uniform numbers come in from outside, so that a seed gives the same draws with and without the compiler.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.joining import root_of
from gramgraph._numerics.sampling.draws import gibbs

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def total_log(scope_ptr, scope_idx, value_ptr, values, sizes, variables, unary, unary_ptr, state):
    """Σ log f(state) over the factors and the likelihoods of the free variables; -inf where one is zero."""
    out = 0.0
    for f in range(scope_ptr.shape[0] - 1):
        at = 0
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            at = at * sizes[scope_idx[e]] + state[scope_idx[e]]
        value = values[value_ptr[f] + at]
        if value <= 0:
            return -np.inf
        out += np.log(value)
    for j in range(variables.shape[0]):
        weight = unary[unary_ptr[variables[j]] + state[variables[j]]]
        if weight <= 0:
            return -np.inf
        out += np.log(weight)
    return out


@_jit
def count_state(state, variables, column, counts, want_ptr, want_idx, want_stride, want_at):
    """Add one to the cells that the state falls into: single variables by column, the other tables by stride."""
    for j in range(variables.shape[0]):
        v = variables[j]
        if column[v] >= 0:
            counts[column[v] + state[v]] += 1
    for t in range(want_at.shape[0]):
        cell = want_at[t]
        for k in range(want_ptr[t], want_ptr[t + 1]):
            cell += state[want_idx[k]] * want_stride[k]
        counts[cell] += 1


@_jit
def color_greedily(variables, var_ptr, other_ptr, other_idx, n_vars):
    """A color for each variable such that no two of one factor share it, the smallest that is free; -1: not free."""
    color, last = np.full(n_vars, -1, np.int64), np.full(variables.shape[0] + 1, -1, np.int64)
    for j in range(variables.shape[0]):
        v = variables[j]
        for k in range(other_ptr[var_ptr[v]], other_ptr[var_ptr[v + 1]]):
            if color[other_idx[k]] >= 0:
                last[color[other_idx[k]]] = j
        c = 0
        while last[c] == j:
            c += 1
        color[v] = c
    return color


@_jit
def gibbs_many(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary, unary_ptr,
               ptr, idx, stride, at, table, uniforms, states, weights):  # fmt: skip
    """One sweep of each row of `states` (particles, variables) with its row of `uniforms`; nothing is counted."""
    column, counts = np.full(sizes.shape[0], -1, np.int64), np.zeros(0)
    no_ptr, none = np.zeros(1, np.int64), np.zeros(0, np.int64)
    for i in range(states.shape[0]):
        gibbs(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary, unary_ptr,
              ptr, idx, stride, at, table, uniforms[i : i + 1], states[i], weights, column, counts, no_ptr, none, none,
              none)  # fmt: skip


# ------------------------------------------------------------------------------------------------- trees at once


@_jit
def tree_blocks(variables, scope_ptr, scope_idx, var_ptr, var_edge, edge_factor, n_vars):
    """Number the variables by blocks: given the rest, each block is a forest of factors over at most two of it.

    Greedy: a variable joins the first block in which it closes no loop. Cost: O(Σ_v factors of v × their variables)
    for each block.
    """
    block = np.full(n_vars, -1, np.int64)
    link, mark = np.arange(n_vars), np.full(n_vars, -1, np.int64)
    left, number = variables.shape[0], 0
    while left:
        for v in variables:
            if block[v] >= 0:
                continue
            fits = True
            for i in range(var_ptr[v], var_ptr[v + 1]):
                f = edge_factor[var_edge[i]]
                met = -1
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    u = scope_idx[e]
                    if u != v and block[u] == number:
                        if met >= 0 and met != u:
                            fits = False
                        met = u
                if met >= 0 and fits:
                    # a second factor to the same neighbor is no loop; another member of its tree is
                    root = root_of(link, met)
                    if mark[root] >= 0 and mark[root] != met:
                        fits = False
                    else:
                        mark[root] = met
                if not fits:
                    break
            for i in range(var_ptr[v], var_ptr[v + 1]):
                f = edge_factor[var_edge[i]]
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    if block[scope_idx[e]] == number:
                        root = root_of(link, scope_idx[e])
                        mark[root] = -1
                        if fits:
                            link[root] = v
            if fits:
                block[v] = number
                left -= 1
        number += 1
    return block, number


@_jit
def forest_order(members, block, number, scope_ptr, scope_idx, var_ptr, var_edge, edge_factor):
    """Members of a block from roots to leaves, and for each edge of the graph the parent it leads to (-1: none)."""
    n = members.shape[0]
    order, above = np.empty(n, np.int64), np.full(block.shape[0], -2, np.int64)
    done, head = 0, 0
    for root in members:
        if above[root] != -2:
            continue
        above[root] = -1
        order[done] = root
        done += 1
        while head < done:
            v = order[head]
            head += 1
            for i in range(var_ptr[v], var_ptr[v + 1]):
                f = edge_factor[var_edge[i]]
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    u = scope_idx[e]
                    if block[u] == number and above[u] == -2:
                        above[u] = v
                        order[done] = u
                        done += 1
    return order, above


@_jit
def block_sweep(order, above, block, number, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes,
                unary, unary_ptr, uniforms, state, weights, pairs):  # fmt: skip
    """Draw a forest given the rest: weights go up (forward filter), states come down (backward sample).

    A factor that leads from v to its parent enters the message of v; one with no other member of the block, or a
    child, does not count twice: it enters at the lower of its two ends. Returns False where nothing is possible (the
    state then stays).
    """
    n = order.shape[0]
    for j in range(n):
        v = order[j]
        for x in range(sizes[v]):
            weights[unary_ptr[v] + x] = unary[unary_ptr[v] + x]
    for j in range(n - 1, -1, -1):
        v, p = order[j], above[order[j]]
        size = sizes[v]
        for i in range(var_ptr[v], var_ptr[v + 1]):
            cell, member = base[i], False
            for k in range(other_ptr[i], other_ptr[i + 1]):
                if block[other_idx[k]] == number:
                    member = True
                cell += state[other_idx[k]] * other_stride[k]
            if not member:
                top = 0.0
                for x in range(size):
                    weights[unary_ptr[v] + x] *= values[cell + x * own[i]]
                    top = max(top, weights[unary_ptr[v] + x])
                if top < 1e-100 and top > 0:
                    for x in range(size):
                        weights[unary_ptr[v] + x] /= top
        top = 0.0
        for x in range(size):
            top = max(top, weights[unary_ptr[v] + x])
        if top <= 0:
            return False
        for x in range(size):
            weights[unary_ptr[v] + x] /= top
        if p >= 0:
            pair_table(v, p, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, state, pairs)
            for y in range(sizes[p]):
                total = 0.0
                for x in range(size):
                    total += weights[unary_ptr[v] + x] * pairs[y * size + x]
                weights[unary_ptr[p] + y] *= total
            top = 0.0
            for y in range(sizes[p]):
                top = max(top, weights[unary_ptr[p] + y])
            if top < 1e-100 and top > 0:
                for y in range(sizes[p]):
                    weights[unary_ptr[p] + y] /= top
    for j in range(n):
        v, p = order[j], above[order[j]]
        size, total = sizes[v], 0.0
        if p >= 0:
            pair_table(v, p, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, state, pairs)
            for x in range(size):
                weights[unary_ptr[v] + x] *= pairs[state[p] * size + x]
        last = 0
        for x in range(size):
            total += weights[unary_ptr[v] + x]
            if weights[unary_ptr[v] + x] > 0:
                last = x
        mark, run, x = uniforms[j] * total, 0.0, 0
        while x < last:
            run += weights[unary_ptr[v] + x]
            if mark < run:
                break
            x += 1
        state[v] = x
    return True


@_jit(no_cpython_wrapper=True)
def pair_table(v, p, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, state, pairs):
    """pairs[y · size + x]: the product of all factors that hold v and its parent p, the others at their states."""
    size = sizes[v]
    for c in range(size * sizes[p]):
        pairs[c] = 1.0
    for i in range(var_ptr[v], var_ptr[v + 1]):
        cell, step = base[i], 0
        for k in range(other_ptr[i], other_ptr[i + 1]):
            if other_idx[k] == p:
                step = other_stride[k]
            else:
                cell += state[other_idx[k]] * other_stride[k]
        if step:
            for y in range(sizes[p]):
                for x in range(size):
                    pairs[y * size + x] *= values[cell + y * step + x * own[i]]


# ------------------------------------------------------------------------------------------------- clusters


@_jit
def cluster_sweep(left, right, bond, variables, sizes, logs, unary_ptr, edge_uniforms, uniforms, state, link, sums):
    """Swendsen–Wang: join equal neighbors with probability `bond`, then draw one state for each cluster.

    `logs` are log weights of the states of every variable, `sums` a workspace of the same length.
    """
    for v in variables:
        link[v] = v
        for x in range(sizes[v]):
            sums[unary_ptr[v] + x] = 0.0
    for e in range(left.shape[0]):
        a, b = left[e], right[e]
        if state[a] == state[b] and edge_uniforms[e] < bond[e]:
            a, b = root_of(link, a), root_of(link, b)
            if a != b:
                link[a] = b
    for v in variables:
        root = root_of(link, v)
        for x in range(sizes[v]):
            sums[unary_ptr[root] + x] += logs[unary_ptr[v] + x]
    for j in range(variables.shape[0]):
        v = variables[j]
        if link[v] != v:
            continue
        top, total = -np.inf, 0.0
        for x in range(sizes[v]):
            top = max(top, sums[unary_ptr[v] + x])
        for x in range(sizes[v]):
            total += np.exp(sums[unary_ptr[v] + x] - top)
        mark, run, x = uniforms[j] * total, 0.0, 0
        while x < sizes[v] - 1:
            run += np.exp(sums[unary_ptr[v] + x] - top)
            if mark < run:
                break
            x += 1
        state[v] = x
    for v in variables:
        state[v] = state[root_of(link, v)]


# ------------------------------------------------------------------------------------------------- proposals


@_jit
def metropolis_sweep(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary, unary_ptr,
                     uniforms, state):  # fmt: skip
    """Propose another state for a variable chosen at random, once for each row of `uniforms` (·, 3); accepted ones."""
    n, accepted = variables.shape[0], 0
    for j in range(uniforms.shape[0]):
        v = variables[min(int(uniforms[j, 0] * n), n - 1)]
        old = state[v]
        new = min(int(uniforms[j, 1] * (sizes[v] - 1)), sizes[v] - 2)
        if new >= old:
            new += 1
        now, then = unary[unary_ptr[v] + old], unary[unary_ptr[v] + new]
        for i in range(var_ptr[v], var_ptr[v + 1]):
            cell = base[i]
            for k in range(other_ptr[i], other_ptr[i + 1]):
                cell += state[other_idx[k]] * other_stride[k]
            now *= values[cell + old * own[i]]
            then *= values[cell + new * own[i]]
            top = max(now, then)
            if top > 0:
                now, then = now / top, then / top
        if uniforms[j, 2] * now < then:
            state[v] = new
            accepted += 1
    return accepted


@_jit
def total_logs(scope_ptr, scope_idx, value_ptr, values, sizes, variables, unary, unary_ptr, states, out):
    """`total_log` of each row of `states`."""
    for i in range(states.shape[0]):
        out[i] = total_log(scope_ptr, scope_idx, value_ptr, values, sizes, variables, unary, unary_ptr, states[i])
