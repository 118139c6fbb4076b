"""Numba: forward draws of a Bayesian network with weights, and Gibbs sweeps over compiled Markov blankets.

Uniform numbers come in from outside, so that a seed gives the same draws with and without the compiler.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def cumulate(values, size, out):
    """Cumulative sums of rows of `size` entries that are to sum to one; 2 from the last possible state on."""
    for r in range(values.shape[0] // size):
        total, last = 0.0, 0
        for x in range(size):
            total += values[r * size + x]
            if values[r * size + x] > 0:
                last = x
        run = 0.0
        for x in range(size):
            run += values[r * size + x]
            out[r * size + x] = run / total if x < last else 2.0


@_jit
def forward(order, table, parent_ptr, parent_idx, stride, values, cdf, sizes, seen, unary, unary_ptr, weighted,
            uniforms, states, log_w):  # fmt: skip
    """Fill states (draws, variables), parents before children, and log_w: what the evidence says of each draw.

    table[v] is where the rows of v begin, -1 for a variable with one state; parents of v and the strides of its rows
    are at parent_ptr[v]. Only variables in `order` are touched.
    """
    n = order.shape[0]
    for i in range(states.shape[0]):
        state, w = states[i], 0.0
        for j in range(n):
            v = order[j]
            x = 0
            if table[v] >= 0:
                row = table[v]
                for k in range(parent_ptr[v], parent_ptr[v + 1]):
                    row += state[parent_idx[k]] * stride[k]
                if seen[v] >= 0:
                    x = seen[v]
                    w += np.log(values[row + x]) if values[row + x] > 0 else -np.inf
                else:
                    u = uniforms[i, j]
                    while u >= cdf[row + x]:
                        x += 1
            if weighted[v]:
                weight = unary[unary_ptr[v] + x]
                w += np.log(weight) if weight > 0 else -np.inf
            state[v] = x
        log_w[i] = w


@_jit
def tally(states, w, want_ptr, want_idx, want_stride, want_at, plain, sums, squares):
    """Add the weights w of the draws (and their squares, unless all are one) to the cell each draw falls into."""
    for i in range(states.shape[0]):
        state, weight = states[i], w[i]
        if weight == 0:
            continue
        for t in range(want_at.shape[0]):
            cell = want_at[t]
            for k in range(want_ptr[t], want_ptr[t + 1]):
                cell += state[want_idx[k]] * want_stride[k]
            sums[cell] += weight
            if not plain:
                squares[cell] += weight * weight


@_jit
def blankets(scope_ptr, scope_idx, value_ptr, sizes, var_ptr, var_edge, edge_factor):
    """For each edge, in the order of var_edge: where its table begins, the stride of its own variable, and the other
    variables of the factor with their strides: (base, own, other_ptr, other_idx, other_stride).
    """
    n = var_edge.shape[0]
    base, own, ptr = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    for i in range(n):
        f = edge_factor[var_edge[i]]
        ptr[i + 1] = ptr[i] + scope_ptr[f + 1] - scope_ptr[f] - 1
    idx, stride = np.empty(ptr[n], np.int64), np.empty(ptr[n], np.int64)
    for i in range(n):
        f, at, step = edge_factor[var_edge[i]], ptr[i], 1
        base[i] = value_ptr[f]
        for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
            if e == var_edge[i]:
                own[i] = step
            else:
                idx[at], stride[at] = scope_idx[e], step
                at += 1
            step *= sizes[scope_idx[e]]
    return base, own, ptr, idx, stride


@_jit
def gibbs(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary, unary_ptr,
          uniforms, state, weights, column, counts, want_ptr, want_idx, want_stride, want_at):  # fmt: skip
    """Sweeps (rows of `uniforms`) over the variables, each drawn given its blanket; the number of dead ends.

    counts[column[v] + state] counts the states of v after its update (column < 0: not counted), and the wanted joints
    are counted after each sweep. A dead end is a variable all of whose states are impossible: it is drawn uniformly.
    """
    dead = 0
    for sweep in range(uniforms.shape[0]):
        for j in range(variables.shape[0]):
            v = variables[j]
            size, u0 = sizes[v], unary_ptr[v]
            u = uniforms[sweep, j]
            x = 0
            if size == 2:
                a, b = unary[u0], unary[u0 + 1]
                for i in range(var_ptr[v], var_ptr[v + 1]):
                    at = base[i]
                    for k in range(other_ptr[i], other_ptr[i + 1]):
                        at += state[other_idx[k]] * other_stride[k]
                    a *= values[at]
                    b *= values[at + own[i]]
                    if a + b < 1e-200 and a + b > 0:
                        a, b = a * 1e150, b * 1e150
                if a + b > 0:
                    x = 1 if u * (a + b) >= a else 0
                else:
                    dead += 1
                    x = 1 if u >= 0.5 else 0
            else:
                total = 0.0
                for y in range(size):
                    weights[y] = unary[u0 + y]
                for i in range(var_ptr[v], var_ptr[v + 1]):
                    at, total = base[i], 0.0
                    for k in range(other_ptr[i], other_ptr[i + 1]):
                        at += state[other_idx[k]] * other_stride[k]
                    for y in range(size):
                        weights[y] *= values[at + y * own[i]]
                        total += weights[y]
                    if total < 1e-200 and total > 0:
                        for y in range(size):
                            weights[y] *= 1e150
                total = 0.0
                for y in range(size):
                    total += weights[y]
                if total > 0:
                    mark, run, last = u * total, 0.0, 0
                    for y in range(size):
                        if weights[y] > 0:
                            last = y
                    while x < last:
                        run += weights[x]
                        if mark < run:
                            break
                        x += 1
                else:
                    dead += 1
                    x = min(int(u * size), size - 1)
            state[v] = x
            if column[v] >= 0:
                counts[column[v] + x] += 1
        for t in range(want_at.shape[0]):
            cell = want_at[t]
            for k in range(want_ptr[t], want_ptr[t + 1]):
                cell += state[want_idx[k]] * want_stride[k]
            counts[cell] += 1
    return dead
