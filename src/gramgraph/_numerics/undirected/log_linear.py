"""Numba: what learning of log-linear models needs beside the engines: beliefs of factors, many short chains."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: Chains that are worked on together.
CHAINS = 256


@_jit
def factor_beliefs(scope_ptr, scope_idx, value_ptr, values, sizes, msg_ptr, to_factor, out):
    """out[cell] = ψ_f(cell) Π of the messages to f, normalized within each factor f."""
    for f in range(scope_ptr.shape[0] - 1):
        a, b = scope_ptr[f], scope_ptr[f + 1]
        lo, hi = value_ptr[f], value_ptr[f + 1]
        for c in range(lo, hi):
            out[c] = values[c]
        step = 1
        for e in range(b - 1, a - 1, -1):
            size, m = sizes[scope_idx[e]], msg_ptr[e]
            for c in range(hi - lo):
                out[lo + c] *= to_factor[m + (c // step) % size]
            step *= size
        total = 0.0
        for c in range(lo, hi):
            total += out[c]
        for c in range(lo, hi):
            out[c] /= total if total > 0 else 1.0


@_jit
def sweep_columns(variables, var_ptr, base, own, other_ptr, other_idx, other_stride, logs, sizes, uniforms, states):
    """Gibbs sweeps over every column of states (variables, chains), in place; uniforms is (sweeps, variables, chains).

    The chains stand side by side, so that the tables are read for many of them at once. Edges as in
    `sampling.blankets`; `logs` are the logarithms of the tables.
    """
    n, largest = states.shape[1], sizes.max()
    scores, total, top = np.empty((largest, CHAINS)), np.empty(CHAINS), np.empty(CHAINS)
    place = np.empty(CHAINS, np.int64)
    for begin in range(0, n, CHAINS):
        length = min(CHAINS, n - begin)
        for sweep in range(uniforms.shape[0]):
            for j in range(variables.shape[0]):
                v = variables[j]
                size = sizes[v]
                own_state, number = states[v, begin : begin + length], uniforms[sweep, j, begin : begin + length]
                scores[:size, :length] = 0.0
                for i in range(var_ptr[v], var_ptr[v + 1]):
                    step = own[i]
                    for r in range(length):
                        place[r] = base[i]
                    for k in range(other_ptr[i], other_ptr[i + 1]):
                        other, stride = states[other_idx[k], begin : begin + length], other_stride[k]
                        for r in range(length):
                            place[r] += stride * np.int64(other[r])
                    for y in range(size):
                        line = scores[y]
                        for r in range(length):
                            line[r] += logs[place[r] + y * step]
                if size == 2:
                    for r in range(length):
                        own_state[r] = 1 if number[r] * (1.0 + np.exp(scores[0, r] - scores[1, r])) < 1.0 else 0
                    continue
                for r in range(length):
                    top[r] = scores[0, r]
                    total[r] = 0.0
                for y in range(1, size):
                    for r in range(length):
                        top[r] = max(top[r], scores[y, r])
                for y in range(size):
                    for r in range(length):
                        scores[y, r] = np.exp(scores[y, r] - top[r])
                        total[r] += scores[y, r]
                for r in range(length):
                    mark, run, x = number[r] * total[r], scores[0, r], 0
                    while mark >= run and x < size - 1:
                        x += 1
                        run += scores[x, r]
                    own_state[r] = x


@_jit
def count_columns(scope_ptr, scope_idx, value_ptr, sizes, states, out):
    """out[cell of each table] += number of the columns of states (variables, chains) that fall into it."""
    n = states.shape[1]
    at = np.empty(n, np.int64)
    for f in range(scope_ptr.shape[0] - 1):
        at[:] = value_ptr[f]
        step = 1
        for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
            line = states[scope_idx[e]]
            for r in range(n):
                at[r] += step * np.int64(line[r])
            step *= sizes[scope_idx[e]]
        for r in range(n):
            out[at[r]] += 1.0
