"""Numba: mean field over blocks of variables, each a forest.

A factor meets each block in a *piece*: its variables of that block, over which the block holds a table `marginal`.
piece_ptr gives the cells of the pieces; the variables of a factor belong to pieces edge_piece[e] with the strides
edge_stride[e].
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.joining import root_of
from gramgraph._numerics.messages.loopy import MANY, keep_sums, variable_message

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def forest_blocks(scope_ptr, scope_idx, var_ptr, var_edge, edge_factor, order, block):
    """Fill block[v] (-1 at first, or left out: -2), so that what the factors join inside a block is a forest.

    Block after block takes the variables in this order that close no loop inside it. Number of blocks.
    """
    n_vars, n = var_ptr.shape[0] - 1, scope_ptr.shape[0] - 1
    root, member = np.arange(n_vars), np.empty(n, np.int64)
    parts = np.empty(max(n, 1), np.int64)
    open_left, b = 0, 0
    for v in order:
        open_left += 1 if block[v] == -1 else 0
    while open_left > 0:
        member[:] = -1  # some variable of each factor in this block
        for v in order:
            if block[v] != -1:
                continue
            k, fits = 0, True
            for i in range(var_ptr[v], var_ptr[v + 1]):
                u = member[edge_factor[var_edge[i]]]
                if u < 0:
                    continue
                top = root_of(root, u)
                for j in range(k):
                    if parts[j] == top:
                        fits = False
                if not fits:
                    break
                parts[k] = top
                k += 1
            if not fits:
                continue
            block[v] = b
            open_left -= 1
            for j in range(k):
                root[parts[j]] = v
            for i in range(var_ptr[v], var_ptr[v + 1]):
                member[edge_factor[var_edge[i]]] = v
        b += 1
    return b


@_jit
def is_forest(scope_ptr, scope_idx, n_vars):
    """Whether the factors join no two variables twice."""
    root = np.arange(n_vars)
    for f in range(scope_ptr.shape[0] - 1):
        a = scope_ptr[f]
        for e in range(a + 1, scope_ptr[f + 1]):
            u, v = root_of(root, scope_idx[a]), root_of(root, scope_idx[e])
            if u == v:
                return False
            root[v] = u
    return True


@_jit
def first_marginals(scope_ptr, scope_idx, sizes, unary_ptr, edge_piece, edge_stride, piece_ptr, q, marginal):
    """Tables of the pieces under independent beliefs q."""
    marginal[:] = 1.0
    for e in range(scope_idx.shape[0]):
        p, u0, size = edge_piece[e], unary_ptr[scope_idx[e]], sizes[scope_idx[e]]
        for c in range(piece_ptr[p + 1] - piece_ptr[p]):
            marginal[piece_ptr[p] + c] *= q[u0 + (c // edge_stride[e]) % size]


@_jit(no_cpython_wrapper=True)
def _walk(f, scope_ptr, scope_idx, value_ptr, sizes, edge_piece, edge_stride, first_piece, cell, at):
    """at[j] = the cell of piece first_piece[f] + j at this cell of factor f."""
    for j in range(first_piece[f + 1] - first_piece[f]):
        at[j] = 0
    rest = cell
    for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
        size = sizes[scope_idx[e]]
        at[edge_piece[e] - first_piece[f]] += (rest % size) * edge_stride[e]
        rest //= size


@_jit(no_cpython_wrapper=True)
def expected_piece(
    f, piece, scope_ptr, scope_idx, value_ptr, values, sizes, edge_piece, edge_stride, first_piece, piece_ptr, marginal,
    out, o0,
):  # fmt: skip
    """out[x] ∝ exp E[log ψ_f | x] over the cells x of a piece, the other pieces as believed; largest value one.

    A cell from which the other pieces may meet a zero of the table is zero.
    """
    k, n = first_piece[f + 1] - first_piece[f], piece_ptr[piece + 1] - piece_ptr[piece]
    mine, at = piece - first_piece[f], np.empty(k, np.int64)
    for x in range(n):
        out[o0 + x] = 0.0
    for cell in range(value_ptr[f + 1] - value_ptr[f]):
        _walk(f, scope_ptr, scope_idx, value_ptr, sizes, edge_piece, edge_stride, first_piece, cell, at)
        weight = 1.0
        for j in range(k):
            if j != mine:
                weight *= marginal[piece_ptr[first_piece[f] + j] + at[j]]
        if weight > 0:
            value = values[value_ptr[f] + cell]
            out[o0 + at[mine]] += weight * np.log(value) if value > 0 else -np.inf
    top = -np.inf
    for x in range(n):
        top = max(top, out[o0 + x])
    for x in range(n):
        out[o0 + x] = np.exp(out[o0 + x] - top) if top > -np.inf else 0.0


@_jit
def expected_pieces(
    pieces, piece_factor, scope_ptr, scope_idx, value_ptr, values, sizes, edge_piece, edge_stride, first_piece,
    piece_ptr, marginal, out,
):  # fmt: skip
    """`expected_piece` for the pieces of a block, one after the other in `out`."""
    o0 = 0
    for i in range(pieces.shape[0]):
        p = pieces[i]
        expected_piece(
            piece_factor[p], p, scope_ptr, scope_idx, value_ptr, values, sizes, edge_piece, edge_stride, first_piece,
            piece_ptr, marginal, out, o0,
        )  # fmt: skip
        o0 += piece_ptr[p + 1] - piece_ptr[p]


@_jit
def block_marginals(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, var_ptr, var_edge, msg_ptr, to_var, to_factor,
    marginal,
):  # fmt: skip
    """Beliefs of the block's own factors, in their order, from its messages. False when one has nothing left."""
    log_sum, n_zero = np.zeros(unary.shape[0]), np.zeros(unary.shape[0], np.int64)
    for v in range(sizes.shape[0]):
        if var_ptr[v + 1] - var_ptr[v] > MANY:
            keep_sums(v, sizes[v], unary, unary_ptr[v], var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero)
    for f in range(scope_ptr.shape[0] - 1):
        total = 0.0
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            v = scope_idx[e]
            variable_message(
                v, e, sizes[v], unary, unary_ptr[v], var_ptr, var_edge, msg_ptr, to_var, log_sum, n_zero, to_factor
            )
        for cell in range(value_ptr[f + 1] - value_ptr[f]):
            p, rest = values[value_ptr[f] + cell], cell
            for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
                size = sizes[scope_idx[e]]
                p *= to_factor[msg_ptr[e] + rest % size]
                rest //= size
            marginal[value_ptr[f] + cell] = p
            total += p
        if not total > 0:
            return False
        for cell in range(value_ptr[f], value_ptr[f + 1]):
            marginal[cell] /= total
    return True


@_jit
def structured_bound(
    scope_ptr, scope_idx, value_ptr, values, sizes, unary, unary_ptr, active, edge_piece, edge_stride, first_piece,
    piece_ptr, marginal, q,
):  # fmt: skip
    """Σ_f E log ψ_f + Σ_v E log φ_v + Σ_pieces H - Σ_v (pieces of v - 1) H(q_v): below log Z, blocks being forests."""
    widest = 1
    for f in range(scope_ptr.shape[0] - 1):
        widest = max(widest, first_piece[f + 1] - first_piece[f])
    at, total = np.empty(widest, np.int64), 0.0
    for f in range(scope_ptr.shape[0] - 1):
        for cell in range(value_ptr[f + 1] - value_ptr[f]):
            _walk(f, scope_ptr, scope_idx, value_ptr, sizes, edge_piece, edge_stride, first_piece, cell, at)
            weight = 1.0
            for j in range(first_piece[f + 1] - first_piece[f]):
                weight *= marginal[piece_ptr[first_piece[f] + j] + at[j]]
            if weight > 0:
                value = values[value_ptr[f] + cell]
                total += weight * np.log(value) if value > 0 else -np.inf
    for c in range(marginal.shape[0]):
        if marginal[c] > 0:
            total -= marginal[c] * np.log(marginal[c])
    degree = np.zeros(sizes.shape[0], np.int64)
    for e in range(scope_idx.shape[0]):
        degree[scope_idx[e]] += 1
    for v in range(sizes.shape[0]):
        if active[v]:
            for i in range(unary_ptr[v], unary_ptr[v] + sizes[v]):
                if q[i] > 0:
                    total += q[i] * np.log(unary[i]) if unary[i] > 0 else -np.inf
                    total += (degree[v] - 1) * q[i] * np.log(q[i])
    return total
