"""Numba: Besag's pseudo-likelihood Σ_v log p(x_v | all others) and its gradient for every table cell.

What surrounds variable v is read through its edges: edge i (var_ptr[v] ≤ i < var_ptr[v + 1]) belongs to a table at
base[i], in which v has the stride own[i] and the other variables stand at other_ptr[i] (as `sampling.blankets` gives
them). Three ways: patterns, where rows with equal surroundings of v were counted together beforehand; a scan of all
rows; and, around a product of matrices, `soften`.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: Rows that are worked on together in a scan.
ROWS = 256


@_jit
def pattern_places(codes, column, v, var_ptr, base, other_ptr, other_idx, other_stride, out):
    """out[p, j]: the cell that edge j of v reads in pattern p when v is in state 0.

    codes is (patterns, neighbors of v); neighbor u stands in column[u].
    """
    first = var_ptr[v]
    for p in range(codes.shape[0]):
        for i in range(first, var_ptr[v + 1]):
            at = base[i]
            for k in range(other_ptr[i], other_ptr[i + 1]):
                at += codes[p, column[other_idx[k]]] * other_stride[k]
            out[p, i - first] = at


@_jit(no_cpython_wrapper=True)
def _residuals(scores, counts, size):
    """Σ counts · log softmax(scores); scores become counts - total · softmax(scores)."""
    top = -np.inf
    for y in range(size):
        top = max(top, scores[y])
    if top == -np.inf:
        return -np.inf
    total, weight, value = 0.0, 0.0, 0.0
    for y in range(size):
        weight += counts[y]
        if counts[y] > 0:
            value += counts[y] * (scores[y] - top)
        scores[y] = np.exp(scores[y] - top)
        total += scores[y]
    value -= weight * np.log(total)
    for y in range(size):
        scores[y] = counts[y] - weight * scores[y] / total
    return value


@_jit
def by_patterns(variables, pattern_ptr, place_ptr, places, count_ptr, counts, var_ptr, own, sizes, logs, grad, values):
    """Add the gradient for the cells to `grad`; values[v] is what variable v contributes.

    Variable variables[j] has the patterns pattern_ptr[j] … pattern_ptr[j + 1] - 1; their places and counts stand
    together at place_ptr[j] and count_ptr[j].
    """
    scores = np.empty(sizes.max())
    for j in range(variables.shape[0]):
        v = variables[j]
        size, first, degree = sizes[v], var_ptr[v], var_ptr[v + 1] - var_ptr[v]
        place, count, value = place_ptr[j], count_ptr[j], 0.0
        for _ in range(pattern_ptr[j], pattern_ptr[j + 1]):
            for y in range(size):
                scores[y] = 0.0
            for i in range(degree):
                at, step = places[place + i], own[first + i]
                for y in range(size):
                    scores[y] += logs[at + y * step]
            value += _residuals(scores, counts[count : count + size], size)
            for i in range(degree):
                at, step = places[place + i], own[first + i]
                for y in range(size):
                    grad[at + y * step] += scores[y]
            place += degree
            count += size
        values[v] = value


@_jit
def by_rows(variables, codes, weights, var_ptr, base, own, other_ptr, other_idx, other_stride, sizes, logs, grad,
            values):  # fmt: skip
    """The same from the rows themselves: codes is (variables, rows); weights of length one weigh every row alike."""
    n, largest = codes.shape[1], sizes.max()
    shared = weights.shape[0] == 1
    scores, total, top = np.empty((largest, ROWS)), np.empty(ROWS), np.empty(ROWS)
    widest = 1
    for j in range(variables.shape[0]):
        widest = max(widest, var_ptr[variables[j] + 1] - var_ptr[variables[j]])
    at = np.empty((widest, ROWS), np.int64)
    for j in range(variables.shape[0]):
        values[variables[j]] = 0.0
    for begin in range(0, n, ROWS):
        length = min(ROWS, n - begin)
        for j in range(variables.shape[0]):
            v = variables[j]
            size, first, degree = sizes[v], var_ptr[v], var_ptr[v + 1] - var_ptr[v]
            scores[:size, :length] = 0.0
            for i in range(degree):
                e, step = first + i, own[first + i]
                place = at[i]
                for r in range(length):
                    place[r] = base[e]
                for k in range(other_ptr[e], other_ptr[e + 1]):
                    u, stride = other_idx[k], other_stride[k]
                    for r in range(length):
                        place[r] += stride * np.int64(codes[u, begin + r])
                for y in range(size):
                    for r in range(length):
                        scores[y, r] += logs[place[r] + y * step]
            for r in range(length):
                top[r] = scores[0, r]
                total[r] = 0.0
            for y in range(1, size):
                for r in range(length):
                    top[r] = max(top[r], scores[y, r])
            for r in range(length):
                w = weights[0] if shared else weights[begin + r]
                if w > 0:
                    values[v] += w * (scores[np.int64(codes[v, begin + r]), r] - top[r])
            for y in range(size):
                for r in range(length):
                    scores[y, r] = np.exp(scores[y, r] - top[r])
                    total[r] += scores[y, r]
            for r in range(length):
                w = weights[0] if shared else weights[begin + r]
                values[v] -= w * np.log(total[r])
                total[r] = w / total[r]
                top[r] = w
            for y in range(size):
                for r in range(length):
                    scores[y, r] = -scores[y, r] * total[r]
            for r in range(length):
                scores[np.int64(codes[v, begin + r]), r] += top[r]
            for i in range(degree):
                step = own[first + i]
                place = at[i]
                for y in range(size):
                    for r in range(length):
                        grad[place[r] + y * step] += scores[y, r]


@_jit
def soften(variables, first, sizes, codes, begin, weights, scores, values):
    """Scores (rows, columns), of states 1, 2, … against state 0, become residuals weight · ([x_v = y] - p_y).

    Variable variables[j] has the columns first[j] … ; row r is case begin + r. values[v] += weight · log p(x_v).
    """
    shared = weights.shape[0] == 1
    for r in range(scores.shape[0]):
        line = scores[r]
        w = weights[0] if shared else weights[begin + r]
        for j in range(variables.shape[0]):
            v = variables[j]
            at, others, x = first[j], sizes[v] - 1, np.int64(codes[v, begin + r])
            top = 0.0
            for y in range(others):
                top = max(top, line[at + y])
            own = line[at + x - 1] if x > 0 else 0.0
            total = np.exp(-top)
            for y in range(others):
                line[at + y] = np.exp(line[at + y] - top)
                total += line[at + y]
            values[v] += w * (own - top - np.log(total))
            scale = w / total
            for y in range(others):
                line[at + y] *= -scale
            if x > 0:
                line[at + x - 1] += w
