"""Numba: a bound on the best sum of terms by elimination in which large buckets are split (mini-buckets).

The parts of a bucket are maximized over their variable each on its own, which can only raise the result. What each part
could have at each state of that variable is made equal among them first, which leaves their sum as it is and brings the
bound down (moment matching).
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.best.elimination import _add, _steps
from gramgraph._numerics.compiling import njit
from gramgraph._numerics.orders import falling, order_of

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit(no_cpython_wrapper=True)
def _shifted(f, scope_ptr, scope_idx, value_ptr, logs, sizes, msg_ptr, message):
    """Table f less the messages that it has given away."""
    out = logs[value_ptr[f] : value_ptr[f + 1]].copy()
    step = 1
    for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
        s = sizes[scope_idx[e]]
        for c in range(out.shape[0]):
            out[c] -= message[msg_ptr[e] + (c // step) % s]
        step *= s
    return out


@_jit(no_cpython_wrapper=True)
def _among(p, members, n):
    """Whether p is one of the first n members."""
    for j in range(n):  # noqa: SIM110 (Numba compiles no generators)
        if members[j] == p:
            return True
    return False


@_jit(no_cpython_wrapper=True)
def _put(t, i, dims, bits, limit, members, n_members, used, group_of):
    """Into which group table t of bucket i goes: the first in which the union stays within `limit`, or a new one."""
    for g in range(n_members.shape[0]):
        total = bits[i]
        for j in range(n_members[g]):
            total += bits[members[g, j]]
        fresh = 0.0
        for p in dims:
            if p != i and not _among(p, members[g], n_members[g]):
                fresh += bits[p]
        if g == used or total + fresh <= limit:
            group_of[t] = g
            for p in dims:
                if p != i and not _among(p, members[g], n_members[g]):
                    members[g, n_members[g]] = p
                    n_members[g] += 1
            return max(used, g + 1)
    return used


@_jit
def mini_bucket_bound(
    scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr, var_ptr, var_edge, edge_factor, msg_ptr,
    message, order, limit, room,
):  # fmt: skip
    """No sum of all terms is larger. `order` holds all variables of the factors; tables have up to 2^limit cells.

    A table that is larger by itself stays as it is. Cost: the cells of all tables on the way; infinity when more than
    `room` of them would have to be held at once.
    """
    m = order.shape[0]
    place, head = np.full(sizes.shape[0], -1, np.int64), np.full(m, -1, np.int64)
    bits, column = np.empty(m), np.empty(m, np.int64)
    for i in range(m):
        place[order[i]] = i
        bits[i] = np.log2(sizes[order[i]])
    nothing, no_cells = np.empty(0, np.int64), np.empty(0)
    dims, steps, data, following = [nothing], [nothing], [no_cells], [-1]
    used_factor = np.zeros(scope_ptr.shape[0] - 1, np.bool_)
    bound, held = 0.0, 0
    for i in range(m):
        v = order[i]
        own = sizes[v]
        alone = log_unary[unary_ptr[v] : unary_ptr[v] + own].copy()
        for j in range(var_ptr[v], var_ptr[v + 1]):
            e = var_edge[j]
            f = edge_factor[e]
            for x in range(own):
                alone[x] += message[msg_ptr[e] + x]
            if used_factor[f]:
                continue
            used_factor[f] = True
            k = scope_ptr[f + 1] - scope_ptr[f]
            d, s, step = np.empty(k, np.int64), np.empty(k, np.int64), 1
            for j2 in range(k - 1, -1, -1):
                u = scope_idx[scope_ptr[f] + j2]
                d[j2], s[j2] = place[u], step
                step *= sizes[u]
            dims.append(d)
            steps.append(s)
            data.append(_shifted(f, scope_ptr, scope_idx, value_ptr, logs, sizes, msg_ptr, message))
            held += data[-1].shape[0]
            following.append(head[i])
            head[i] = len(dims) - 1
        n_tables, widest, t = 0, 0, head[i]
        while t > 0:
            n_tables += 1
            widest += dims[t].shape[0]
            t = following[t]
        if n_tables == 0:
            bound += alone.max()
            continue
        tables, sized, t = np.empty(n_tables, np.int64), np.empty(n_tables, np.int64), head[i]
        for j in range(n_tables):
            tables[j], sized[j] = t, -data[t].shape[0]
            t = following[t]
        tables = tables[order_of(sized)]
        members, n_members = np.empty((n_tables, widest), np.int64), np.zeros(n_tables, np.int64)
        group_of, groups = np.empty(n_tables, np.int64), 0
        for j in range(n_tables):
            groups = _put(j, i, dims[tables[j]], bits, limit, members, n_members, groups, group_of)
        totals, rests, tops, mean = [no_cells], [nothing], np.empty((groups, own)), np.zeros(own)
        for g in range(groups):
            rest = falling(members[g, : n_members[g]])
            width, cells = np.empty(rest.shape[0], np.int64), 1
            for j in range(rest.shape[0]):
                width[j] = sizes[order[rest[j]]]
                column[rest[j]] = j
                cells *= width[j]
            held += cells * own
            if held > room:
                return np.inf
            total = np.zeros(cells * own)
            for j in range(n_tables):
                if group_of[j] == g:
                    step_of, own_step = _steps(i, rest.shape[0], dims[tables[j]], steps[tables[j]], column)
                    _add(total, width, step_of, own, own_step, data[tables[j]], 0)
                    held -= data[tables[j]].shape[0]
                    data[tables[j]] = no_cells
            for x in range(own):
                tops[g, x] = -np.inf
            for c in range(cells):
                for x in range(own):
                    tops[g, x] = max(tops[g, x], total[c * own + x])
            for x in range(own):
                mean[x] += tops[g, x] / groups
            totals.append(total)
            rests.append(rest)
        for g in range(groups):
            total, rest = totals[g + 1], rests[g + 1]
            k, cells = rest.shape[0], total.shape[0] // own
            shift = np.empty(own)
            for x in range(own):
                shift[x] = mean[x] - tops[g, x] + alone[x] / groups
            best = np.empty(cells)
            held += cells - total.shape[0]
            for c in range(cells):
                top = -np.inf
                for x in range(own):
                    top = max(top, total[c * own + x] + shift[x])
                best[c] = top
            totals[g + 1] = no_cells
            if k == 0:
                bound += best[0]
                continue
            step_of, step = np.empty(k, np.int64), 1
            for j in range(k - 1, -1, -1):
                step_of[j] = step
                step *= sizes[order[rest[j]]]
            dims.append(rest)
            steps.append(step_of)
            data.append(best)
            following.append(head[rest[k - 1]])
            head[rest[k - 1]] = len(dims) - 1
    return bound
