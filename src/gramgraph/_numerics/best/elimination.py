"""Numba: parts of the variables that are narrow given the rest, and their exact best by elimination."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.orders import falling
from gramgraph._numerics.tree.bits import ONE, ZERO, bit, lowest_bit, members_of
from gramgraph._numerics.tree.heaps import pop, sift_down, sift_up

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def narrow_part(adj, bits, keep, limit, room, noise):
    """An elimination order of part of the nodes with `keep` in which no table has more than `limit` bits.

    Smallest tables first, ties by `noise`; where the smallest is too large, the node in it with most neighbors is left
    out. All tables together have no more than `room` cells. `adj` (n, words) holds bit rows.
    """
    n, words = adj.shape
    allowed = np.zeros(words, np.uint64)
    heap, pos, tie = np.empty(n, np.int64), np.full(n, -1, np.int64), np.empty(n, np.int64)
    size, key, degree = 0, np.zeros(n), np.zeros(n, np.int64)
    for v in range(n):
        if keep[v]:
            allowed[v >> 6] |= bit(v)
            heap[size], pos[v] = v, size
            tie[v] = int(noise[v] * 1e9)
            size += 1
    rows = np.empty((n, words), np.uint64)
    for v in range(n):
        if keep[v]:
            key[v] = bits[v]
            for w in range(words):
                x = adj[v, w] & allowed[w]
                rows[v, w] = x
                while x != ZERO:
                    key[v] += bits[(w << 6) + lowest_bit(x)]
                    degree[v] += 1
                    x &= x - ONE
    for i in range(size // 2 - 1, -1, -1):
        sift_down(heap, pos, size, i, key, tie)
    order, m, cells = np.empty(size, np.int64), 0, 0.0
    around = np.empty(n, np.int64)
    while size > 0:
        v = heap[0]
        if key[v] <= limit and cells + 2.0 ** key[v] > room:
            limit = key[v] - 0.5
        wide = key[v] > limit
        d = members_of(rows[v], around)
        if wide:
            out = v
            for i in range(d):
                if degree[around[i]] + 3.0 * noise[around[i]] > degree[out] + 3.0 * noise[out]:
                    out = around[i]
            if out != v:
                v = out
                d = members_of(rows[v], around)
        else:
            cells += 2.0 ** key[v]
            order[m] = v
            m += 1
        key[v] = -np.inf
        sift_up(heap, pos, pos[v], key, tie)
        pop(heap, pos, size, key, tie)
        size -= 1
        for i in range(d):
            u = around[i]
            if wide:
                rows[u, v >> 6] &= ~bit(v)
                key[u] -= bits[v]
                degree[u] -= 1
            else:
                total, count = bits[u], 0
                for w in range(words):
                    x = rows[u, w] | rows[v, w]
                    if w == v >> 6:
                        x &= ~bit(v)
                    if w == u >> 6:
                        x &= ~bit(u)
                    rows[u, w] = x
                    while x != ZERO:
                        total += bits[(w << 6) + lowest_bit(x)]
                        count += 1
                        x &= x - ONE
                key[u], degree[u] = total, count
            sift_up(heap, pos, pos[u], key, tie)
            sift_down(heap, pos, size, pos[u], key, tie)
    return order[:m].copy()


@_jit(no_cpython_wrapper=True)
def _add(total, sizes, steps, own, own_step, data, base):
    """total[cell, x] += data[base + Σ digit · step + x · own_step] over all cells of the digits (row-major)."""
    k = sizes.shape[0]
    if k == 0:
        for x in range(own):
            total[x] += data[base + x * own_step]
        return
    digit = np.zeros(k, np.int64)
    inner, inner_step = sizes[k - 1], steps[k - 1]
    rows = total.shape[0] // (inner * own)
    at, to = base, 0
    for _ in range(rows):
        here = at
        for _ in range(inner):
            for x in range(own):
                total[to + x] += data[here + x * own_step]
            to += own
            here += inner_step
        j = k - 2
        while j >= 0:
            digit[j] += 1
            at += steps[j]
            if digit[j] < sizes[j]:
                break
            at -= steps[j] * digit[j]
            digit[j] = 0
            j -= 1


@_jit(no_cpython_wrapper=True)
def _union(i, t, without, dims, following, stamp):
    """Places in the tables of bucket i but its own, and but those of table `without`; descending, so that what is
    eliminated next is last."""
    k, first = 0, t
    while t > 0:
        if t != without:
            for p in dims[t]:
                if p != i and stamp[p] != i:
                    stamp[p] = i
                    k += 1
        t = following[t]
    found, k, t = np.empty(k, np.int64), 0, first
    while t > 0:
        if t != without:
            for p in dims[t]:
                if p != i and stamp[p] == i:
                    stamp[p] = -1
                    found[k] = p
                    k += 1
        t = following[t]
    return falling(found)


@_jit(no_cpython_wrapper=True)
def _steps(i, k, dims, steps, column):
    """How far apart the cells of a table are along k columns, and along place i."""
    out, own = np.zeros(k, np.int64), 0
    for j in range(dims.shape[0]):
        if dims[j] == i:
            own = steps[j]
        else:
            out[column[dims[j]]] = steps[j]
    return out, own


@_jit(no_cpython_wrapper=True)
def _maximize(sizes, own, steps, own_step, data, base, side_steps, side, best, arg):
    """best[cell] = max_x data[base + … + x · own_step] + side[… + x], and where; cells row-major over `sizes`."""
    k = sizes.shape[0]
    run, inner_step, outer = 1, 0, k  # the last columns, as far as one step leads through them and `side` stays
    while outer > 0 and side_steps[outer - 1] == 0:
        if outer == k:
            inner_step = steps[k - 1]
        elif steps[outer - 1] != run * inner_step:
            break
        outer -= 1
        run *= sizes[outer]
    digit = np.zeros(k, np.int64)
    at, beside, to = base, 0, 0
    for _ in range(best.shape[0] // run):
        if own == 2:
            a, b = side[beside], side[beside + 1]
            for r in range(run):
                p, q = data[at + r * inner_step] + a, data[at + r * inner_step + own_step] + b
                best[to + r] = max(p, q)
                arg[to + r] = q > p
        else:
            for r in range(run):
                here, top, most = at + r * inner_step, 0, data[at + r * inner_step] + side[beside]
                for x in range(1, own):
                    value = data[here + x * own_step] + side[beside + x]
                    if value > most:
                        top, most = x, value
                best[to + r], arg[to + r] = most, top
        to += run
        j = outer - 1
        while j >= 0:
            digit[j] += 1
            at += steps[j]
            beside += side_steps[j]
            if digit[j] < sizes[j]:
                break
            at -= steps[j] * digit[j]
            beside -= side_steps[j] * digit[j]
            digit[j] = 0
            j -= 1


@_jit(no_cpython_wrapper=True)
def _packed(arg, own):
    """The states in as few bytes as they need."""
    n = arg.shape[0]
    if own == 2:
        out = np.zeros((n + 7) >> 3, np.uint8)
        for c in range(n):
            out[c >> 3] |= np.uint8(arg[c] << (c & 7))
        return out
    if own <= 256:
        return arg.astype(np.uint8)
    out = np.empty(2 * n, np.uint8)
    for c in range(n):
        out[2 * c], out[2 * c + 1] = arg[c] & 255, arg[c] >> 8
    return out


@_jit
def block_best(
    scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, var_ptr, var_edge, edge_factor, order, state
):
    """Put the variables of `order` on their best states given all others; the largest sum of the terms that hold them.

    They are eliminated in this order. Cost: the cells of all tables on the way; memory: a bit or a byte for each.
    """
    m, n = order.shape[0], sizes.shape[0]
    place, used = np.full(n, -1, np.int64), np.zeros(scope_ptr.shape[0] - 1, np.bool_)
    for i in range(m):
        place[order[i]] = i
    head, stamp, column = np.full(m, -1, np.int64), np.full(m, -1, np.int64), np.empty(m, np.int64)
    nothing, no_cells = np.empty(0, np.int64), np.empty(0)
    dims, steps, data, base, following = [nothing], [nothing], [no_cells], [0], [-1]  # of tables; the first is none
    rests, args = [nothing], [np.empty(0, np.uint8)]  # of the variables, the first is none
    value = 0.0
    for i in range(m):
        v = order[i]
        own = sizes[v]
        for j in range(var_ptr[v], var_ptr[v + 1]):
            f = edge_factor[var_edge[j]]
            if used[f]:
                continue
            used[f] = True
            k = 0
            for e in range(scope_ptr[f], scope_ptr[f + 1]):
                k += place[scope_idx[e]] >= 0
            d, s, at, step = np.empty(k, np.int64), np.empty(k, np.int64), value_ptr[f], 1
            for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
                u = scope_idx[e]
                if place[u] >= 0:
                    k -= 1
                    d[k], s[k] = place[u], step
                else:
                    at += state[u] * step
                step *= sizes[u]
            dims.append(d)
            steps.append(s)
            data.append(logs)
            base.append(at)
            following.append(head[i])
            head[i] = len(dims) - 1
        rest = _union(i, head[i], 0, dims, following, stamp)
        k = rest.shape[0]
        width, cells = np.empty(k, np.int64), 1
        for j in range(k):
            width[j] = sizes[order[rest[j]]]
            column[rest[j]] = j
            cells *= width[j]
        large, t = head[i], head[i]  # the largest table; all others, which are often small, are added first
        while t > 0:
            if dims[t].shape[0] > dims[large].shape[0]:
                large = t
            t = following[t]
        side = _union(i, head[i], large, dims, following, stamp)
        side_width, side_cells = np.empty(side.shape[0], np.int64), own
        for j in range(side.shape[0]):
            side_width[j] = sizes[order[side[j]]]
            side_cells *= side_width[j]
        total = np.empty(side_cells)
        for c in range(side_cells):
            total[c] = log_unary[unary_ptr[v] + c % own]
        t = head[i]
        while t > 0:
            if t != large:
                for j in range(side.shape[0]):
                    column[side[j]] = j
                step_of, own_step = _steps(i, side.shape[0], dims[t], steps[t], column)
                _add(total, side_width, step_of, own, own_step, data[t], base[t])
                data[t] = no_cells
            t = following[t]
        for j in range(k):
            column[rest[j]] = j
        side_steps, step = np.zeros(k, np.int64), own
        for j in range(side.shape[0] - 1, -1, -1):
            side_steps[column[side[j]]] = step
            step *= side_width[j]
        best, arg = np.empty(cells), np.empty(cells, np.int16)
        if large > 0:
            step_of, own_step = _steps(i, k, dims[large], steps[large], column)
            _maximize(width, own, step_of, own_step, data[large], base[large], side_steps, total, best, arg)
            data[large] = no_cells
        else:
            _maximize(width, own, side_steps, 0, np.zeros(1), 0, side_steps, total, best, arg)
        rests.append(rest)
        args.append(_packed(arg, own))
        if k == 0:
            value += best[0]
            continue
        step_of, step = np.empty(k, np.int64), 1
        for j in range(k - 1, -1, -1):
            step_of[j] = step
            step *= width[j]
        dims.append(rest)
        steps.append(step_of)
        data.append(best)
        base.append(0)
        following.append(head[rest[k - 1]])
        head[rest[k - 1]] = len(dims) - 1
    for i in range(m - 1, -1, -1):
        at = 0
        for p in rests[i + 1]:
            at = at * sizes[order[p]] + state[order[p]]
        own = sizes[order[i]]
        if own == 2:
            state[order[i]] = (args[i + 1][at >> 3] >> (at & 7)) & 1
        elif own <= 256:
            state[order[i]] = args[i + 1][at]
        else:
            state[order[i]] = int(args[i + 1][2 * at]) + 256 * int(args[i + 1][2 * at + 1])
    return value
