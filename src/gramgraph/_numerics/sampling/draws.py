"""Numba: forward draws of a Bayesian network with weights, and Gibbs sweeps over compiled Markov blankets.

Uniform numbers come in from outside, so that a seed gives the same draws with and without the compiler.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

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


def _forward_by_variables(order, table, parent_ptr, parent_idx, stride, cdf, uniforms, state, out):
    for j, v in enumerate(order):
        x = np.zeros(uniforms.shape[0], np.int64)
        if table[v] >= 0:
            row = np.full(uniforms.shape[0], table[v], np.int64)
            for k in range(parent_ptr[v], parent_ptr[v + 1]):
                row += out[parent_idx[k]].astype(np.int64) * stride[k]
            rising = np.flatnonzero(uniforms[:, j] >= cdf[row])
            while len(rising):
                x[rising] += 1
                rising = rising[uniforms[rising, j] >= cdf[row[rising] + x[rising]]]
        out[v] = x


@_jit(plain=_forward_by_variables)
def forward_columns(order, table, parent_ptr, parent_idx, stride, cdf, uniforms, state, out):
    """Fill out (variables, draws) with draws of the network, parents before children; `state` is a workspace."""
    for i in range(uniforms.shape[0]):
        for j in range(order.shape[0]):
            v = order[j]
            x = 0
            if table[v] >= 0:
                row = table[v]
                for k in range(parent_ptr[v], parent_ptr[v + 1]):
                    row += state[parent_idx[k]] * stride[k]
                u = uniforms[i, j]
                while u >= cdf[row + x]:
                    x += 1
            state[v] = x
            out[v, i] = x


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
def neighbors(variables, var_ptr, other_ptr, other_idx, sizes, most):
    """Markov blankets without repeats: (ptr, idx, stride, rows) with `rows` states of the blanket of variables[j].

    A blanket whose conditional table would have more than `most` cells has rows = 0 and no entries.
    """
    n = variables.shape[0]
    ptr, rows = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    idx, stride = np.empty(other_idx.shape[0], np.int32), np.empty(other_idx.shape[0], np.int32)
    at = 0
    for j in range(n):
        v = variables[j]
        first, count = at, 1
        for k in range(other_ptr[var_ptr[v]], other_ptr[var_ptr[v + 1]]):
            u, known = other_idx[k], False
            for i in range(first, at):
                known = known or idx[i] == u
            if not known:
                idx[at], stride[at] = u, count
                count *= sizes[u]
                at += 1
                if count * sizes[v] > most:
                    break
        if count * sizes[v] > most:
            at = first
        else:
            rows[j] = count
        ptr[j + 1] = at
    return ptr, idx[:at], stride[:at], rows


@_jit
def conditionals(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary, unary_ptr,
                 ptr, idx, stride, rows, at, state, table, hashes):  # fmt: skip
    """Write p(v ≤ x | blanket), x < size − 1, into table[at[j]:], one row a state of the blanket; and hashes of them.

    A blanket that allows no state of v has a uniform row.
    """
    weights = np.empty(max(sizes.max(), 1))
    for j in range(variables.shape[0]):
        v, place = variables[j], at[j]
        size = sizes[v]
        mixed = 0.0
        for row in range(rows[j]):
            for k in range(ptr[j], ptr[j + 1]):
                state[idx[k]] = (row // stride[k]) % sizes[idx[k]]
            for x in range(size):
                weights[x] = unary[unary_ptr[v] + x]
            for i in range(var_ptr[v], var_ptr[v + 1]):
                cell, top = base[i], 0.0
                for k in range(other_ptr[i], other_ptr[i + 1]):
                    cell += state[other_idx[k]] * other_stride[k]
                for x in range(size):
                    weights[x] *= values[cell + x * own[i]]
                    top = max(top, weights[x])
                if top > 0 and not 1e-100 < top < 1e100:
                    for x in range(size):
                        weights[x] /= top
            total = 0.0
            for x in range(size):
                total += weights[x]
            run = 0.0
            for x in range(size - 1):
                run += weights[x] / total if total > 0 else 1.0 / size
                later = total <= 0
                for y in range(x + 1, size):
                    later = later or weights[y] > 0
                table[place] = run if later else 2.0
                mixed = mixed * 0.7390851332151607 + table[place]
                place += 1
        hashes[j] = mixed


@_jit
def same_rows(at, lengths, table, kept):
    """Whether each run table[at[j]:at[j] + lengths[j]] equals that of kept[j], cell by cell."""
    out = np.ones(at.shape[0], np.bool_)
    for j in range(at.shape[0]):
        i = kept[j]
        if lengths[i] != lengths[j]:
            out[j] = False
            continue
        for k in range(lengths[j]):
            out[j] = out[j] and table[at[i] + k] == table[at[j] + k]
    return out


@_jit
def gibbs(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary, unary_ptr,
          ptr, idx, stride, at, table, uniforms, state, weights, column, counts, want_ptr, want_idx, want_stride,
          want_at):  # fmt: skip
    """Sweeps (rows of `uniforms`) over the variables, each drawn given its blanket.

    A variable with at[j] >= 0 reads its row of `table`, the others (wide blankets) multiply their factors. counts[
    column[v] + state] counts the states of v after its update (column < 0: not counted), and the wanted joints are
    counted after each sweep.
    """
    n = variables.shape[0]
    for sweep in range(uniforms.shape[0]):
        for j in range(n):
            v = variables[j]
            u = uniforms[sweep, j]
            x, place = 0, at[j]
            if place < 0:
                x = draw_wide(v, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary,
                              unary_ptr, u, state, weights)  # fmt: skip
            else:
                row = 0
                for k in range(ptr[j], ptr[j + 1]):
                    row += state[idx[k]] * stride[k]
                last = sizes[v] - 1
                place += row * last
                if last == 1:
                    x = 1 if u >= table[place] else 0
                else:
                    while x < last and u >= table[place + x]:
                        x += 1
            state[v] = x
            if column[v] >= 0:
                counts[column[v] + x] += 1
        for t in range(want_at.shape[0]):
            cell = want_at[t]
            for k in range(want_ptr[t], want_ptr[t + 1]):
                cell += state[want_idx[k]] * want_stride[k]
            counts[cell] += 1


@_jit(no_cpython_wrapper=True)
def draw_wide(v, var_ptr, base, own, other_ptr, other_idx, other_stride, values, sizes, unary, unary_ptr, u, state,
              weights):  # fmt: skip
    """A state of v given its blanket, by multiplying its factors; uniformly where the blanket allows none."""
    size, total = sizes[v], 0.0
    for y in range(size):
        weights[y] = unary[unary_ptr[v] + y]
    for i in range(var_ptr[v], var_ptr[v + 1]):
        cell, total = base[i], 0.0
        for k in range(other_ptr[i], other_ptr[i + 1]):
            cell += state[other_idx[k]] * other_stride[k]
        for y in range(size):
            weights[y] *= values[cell + y * own[i]]
            total += weights[y]
        if total < 1e-200 and total > 0:
            for y in range(size):
                weights[y] *= 1e150
    total, last = 0.0, 0
    for y in range(size):
        total += weights[y]
        if weights[y] > 0:
            last = y
    if total <= 0:
        return min(int(u * size), size - 1)
    mark, run, x = u * total, 0.0, 0
    while x < last:
        run += weights[x]
        if mark < run:
            break
        x += 1
    return x


@_jit
def forward_proposal(order, table, parent_ptr, parent_idx, stride, values, proposal, cdf, sizes, seen, unary, unary_ptr,
                     weighted, uniforms, states, log_w):  # fmt: skip
    """As `forward`, with states drawn from `proposal`, a table beside `values`; log_w has their log ratio too."""
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
                    if proposal[row + x] != values[row + x]:
                        w += np.log(values[row + x] / proposal[row + x])
            if weighted[v]:
                weight = unary[unary_ptr[v] + x]
                w += np.log(weight) if weight > 0 else -np.inf
            state[v] = x
        log_w[i] = w


@_jit
def family_counts(order, table, parent_ptr, parent_idx, stride, states, w, out):
    """Add the weight of every draw to the cell of each variable's table that it used."""
    for i in range(states.shape[0]):
        if w[i] == 0:
            continue
        for j in range(order.shape[0]):
            v = order[j]
            if table[v] >= 0:
                cell = table[v] + states[i, v]
                for k in range(parent_ptr[v], parent_ptr[v + 1]):
                    cell += states[i, parent_idx[k]] * stride[k]
                out[cell] += w[i]


@_jit(no_cpython_wrapper=True)
def row_averages(table, parent_ptr, parent_idx, stride, values, sizes, unary_ptr, beliefs, v, digit, out):
    """out[x] = Σ over states of the parents of Π beliefs(parent) · values(x | parents), for variable v."""
    size, n = sizes[v], parent_ptr[v + 1] - parent_ptr[v]
    first = parent_ptr[v]
    rows = 1
    for k in range(n):
        digit[k] = 0
        rows *= sizes[parent_idx[first + k]]
    for x in range(size):
        out[x] = 0.0
    for _ in range(rows):
        cell, weight = table[v], 1.0
        for k in range(n):
            u = parent_idx[first + k]
            cell += digit[k] * stride[first + k]
            weight *= beliefs[unary_ptr[u] + digit[k]]
        if weight > 0:
            for x in range(size):
                out[x] += weight * values[cell + x]
        k = 0
        while k < n:
            digit[k] += 1
            if digit[k] < sizes[parent_idx[first + k]]:
                break
            digit[k] = 0
            k += 1


@_jit
def tilt(order, table, parent_ptr, parent_idx, stride, values, ends, sizes, seen, unary_ptr, beliefs, rounds, floor,
         out):  # fmt: skip
    """out(x | parents) ∝ values(x | parents) λ(x), λ such that with parents from `beliefs` x has its own belief.

    Found by `rounds` of proportional fitting, then mixed with `floor` times the values. Cells of v are
    table[v]:ends[v].
    """
    top = max(sizes.max(), 1)
    average, factor = np.empty(top), np.empty(top)
    digit = np.empty(parent_idx.shape[0] + 1, np.int64)
    for v in order:
        if table[v] < 0 or seen[v] >= 0:
            continue
        size = sizes[v]
        for _ in range(rounds):
            row_averages(table, parent_ptr, parent_idx, stride, out, sizes, unary_ptr, beliefs, v, digit, average)
            for x in range(size):
                factor[x] = beliefs[unary_ptr[v] + x] / average[x] if average[x] > 0 else 1.0
            for row in range(table[v], ends[v], size):
                total = 0.0
                for x in range(size):
                    total += out[row + x] * factor[x]
                if total > 0:
                    for x in range(size):
                        out[row + x] *= factor[x] / total
        for cell in range(table[v], ends[v]):
            out[cell] = (1 - floor) * out[cell] + floor * values[cell]
