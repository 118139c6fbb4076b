"""Emissions of hidden Markov models: densities of all rows under all states, and weighted sums over the rows.

Rows stand one after the other, (N, …); states are columns. NaN entries of data were not observed.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.gram.grams import fast_exp


def _work(*arguments):
    """A pass over arrays by NumPy takes a fiftieth of the interpreted steps."""
    return sum(each.size for each in arguments) / 50.0


_fast = njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "nsz"})


def _likelihoods_at_once(logs, shift):
    np.fmax.reduce(logs, axis=1, out=shift)
    shift[~(shift > -math.inf)] = 0.0
    logs -= shift[:, None]
    lost = ~(logs > -708.0)
    np.exp(logs, out=logs)
    logs[lost] = 0.0


@_fast(plain=_likelihoods_at_once, work=_work)
def likelihood_rows(logs, shift):
    """logs becomes exp(logs − shift) with shift the largest of the row (0 for a row of −inf)."""
    n, K = logs.shape
    for t in range(n):
        top = -math.inf
        for k in range(K):
            if logs[t, k] > top:
                top = logs[t, k]
        if not top > -math.inf:
            shift[t] = 0.0
            for k in range(K):
                logs[t, k] = 0.0
            continue
        shift[t] = top
        for k in range(K):
            x = logs[t, k] - top
            y = fast_exp(x)
            logs[t, k] = y if x > -708.0 else 0.0


def _symbols_at_once(symbols, gamma, out):
    seen = symbols >= 0
    if not seen.all():
        symbols, gamma = symbols[seen], gamma[seen]
    for k in range(gamma.shape[1]):
        out[:, k] += np.bincount(symbols, gamma[:, k], minlength=out.shape[0])


@njit(cache=True, nogil=True, boundscheck=False, plain=_symbols_at_once, work=_work)
def symbol_counts(symbols, gamma, out):
    """out (M, K) += Σ_t gamma[t] in the row of its symbol; symbols below zero were not observed."""
    K = gamma.shape[1]
    for t in range(symbols.shape[0]):
        if symbols[t] >= 0:
            row = out[symbols[t]]
            for k in range(K):
                row[k] += gamma[t, k]


@_fast(no_cpython_wrapper=True)
def _diagonal_of_eight(X, means, precisions, constants, out):
    """`diagonal_gaussian_logs` of eight states: loops of known length stay in registers."""
    n, d = X.shape
    total, whole = np.empty(8), np.empty(8)
    for k in range(8):
        whole[k] = 0.0
        for i in range(d):
            whole[k] += constants[i, k]
    for t in range(n):
        check = 0.0
        for k in range(8):
            total[k] = 0.0
        for i in range(d):
            x = X[t, i]
            check += x
            for k in range(8):
                y = x - means[i, k]
                total[k] += (y * y) * precisions[i, k]
        if check == check:
            for k in range(8):
                out[t, k] = whole[k] - 0.5 * total[k]
        else:
            _diagonal_with_gaps(X[t], means, precisions, constants, out[t])


@_fast(no_cpython_wrapper=True)
def _diagonal_with_gaps(x, means, precisions, constants, out):
    """One row of `diagonal_gaussian_logs` some of whose entries were not observed."""
    out[:] = 0.0
    for i in range(x.shape[0]):
        if x[i] == x[i]:
            for k in range(out.shape[0]):
                y = x[i] - means[i, k]
                out[k] += constants[i, k] - 0.5 * (y * y) * precisions[i, k]


def _diagonal_at_once(X, means, precisions, constants, out):
    out[:] = 0.0
    for x, m, p, c in zip(X.T, means, precisions, constants, strict=True):
        part = x[:, None] - m
        part *= part
        part *= p
        part *= -0.5
        part += c
        part[x != x] = 0.0
        out += part


@_fast(plain=_diagonal_at_once, work=_work)
def diagonal_gaussian_logs(X, means, precisions, constants, out):
    """log N(x_t | mean_k, diag) of the observed entries; means, precisions, constants (d, K), out (N, K).

    constants[i, k] = −½ log(2π σ²). NaN entries of X were not observed.
    """
    n, d = X.shape
    K = means.shape[1]
    if K == 8:
        _diagonal_of_eight(X, means, precisions, constants, out)
        return
    whole = np.zeros(K)
    for i in range(d):
        for k in range(K):
            whole[k] += constants[i, k]
    for t in range(n):
        row = out[t]
        check = 0.0
        for k in range(K):
            row[k] = 0.0
        for i in range(d):
            x, m, p = X[t, i], means[i], precisions[i]
            check += x
            for k in range(K):
                y = x - m[k]
                row[k] += (y * y) * p[k]
        if check == check:
            for k in range(K):
                row[k] = whole[k] - 0.5 * row[k]
        else:
            _diagonal_with_gaps(X[t], means, precisions, constants, row)


@_fast(no_cpython_wrapper=True)
def _squares_of_eight(Z, shift, constants, out):
    """`squared_lengths` of eight states."""
    n, width = Z.shape
    total = np.empty(8)
    for t in range(n):
        for k in range(8):
            total[k] = 0.0
        for i in range(0, width, 8):
            for k in range(8):
                y = Z[t, i + k] - shift[i + k]
                total[k] += y * y
        for k in range(8):
            out[t, k] = constants[k] - 0.5 * total[k]


def _lengths_at_once(Z, shift, constants, out):
    y = Z - shift
    y *= y
    np.add.reduce(y.reshape(len(y), -1, len(constants)), axis=1, out=out)
    out *= -0.5
    out += constants


@_fast(plain=_lengths_at_once, work=_work)
def squared_lengths(Z, shift, constants, out):
    """out[t, k] = constants[k] − ½ Σ_i (Z[t, i K + k] − shift[i K + k])²; Z (n, d K), out (n, K)."""
    n, width = Z.shape
    K = constants.shape[0]
    if K == 8:
        _squares_of_eight(Z, shift, constants, out)
        return
    for t in range(n):
        row = out[t]
        for k in range(K):
            row[k] = 0.0
        for i in range(0, width, K):
            z, w = Z[t, i : i + K], shift[i : i + K]
            for k in range(K):
                y = z[k] - w[k]
                row[k] += y * y
        for k in range(K):
            row[k] = constants[k] - 0.5 * row[k]


def _pairs_at_once(X, center, out):
    d = X.shape[1]
    y = np.subtract(X, center, out=out[:, :d])
    at = d
    for i in range(d):
        np.multiply(y[:, i:], y[:, i : i + 1], out=out[:, at : at + d - i])
        at += d - i
    return not np.isnan(y.sum())


@_fast(plain=_pairs_at_once, work=_work)
def pair_products(X, center, out):
    """out[t] = (y, y_i y_j for i ≤ j) with y = X[t] − center; False where an entry of X is NaN."""
    n, d = X.shape
    check = 0.0
    for t in range(n):
        row = out[t]
        for i in range(d):
            row[i] = X[t, i] - center[i]
            check += row[i]
        at = d
        for i in range(d):
            x = row[i]
            for j in range(i, d):
                row[at] = x * row[j]
                at += 1
    return check == check


def _squares_at_once(X, center, out):
    d = X.shape[1]
    y = np.subtract(X, center, out=out[:, :d])
    np.multiply(y, y, out=out[:, d:])
    return not np.isnan(y.sum())


@_fast(plain=_squares_at_once, work=_work)
def squares(X, center, out):
    """out[t] = (y, y²) with y = X[t] − center; False where an entry of X is NaN."""
    n, d = X.shape
    check = 0.0
    for t in range(n):
        row = out[t]
        for i in range(d):
            y = X[t, i] - center[i]
            row[i] = y
            row[d + i] = y * y
            check += y
    return check == check


def _moments_at_once(X, gamma, weights, sums):
    seen = X == X
    weights += seen.T.astype(np.float64) @ gamma
    sums += np.where(seen, X, 0.0).T @ gamma


@_fast(plain=_moments_at_once, work=_work)
def weighted_moments(X, gamma, weights, sums):
    """weights and sums (d, K) += Σ_t gamma[t, k] and Σ_t gamma[t, k] x_t over observed entries."""
    n, d = X.shape
    K = gamma.shape[1]
    done = n - n % 4
    for t in range(0, done, 4):  # four rows at a time: short loops over states cost more to begin than to run
        g0, g1, g2, g3 = gamma[t], gamma[t + 1], gamma[t + 2], gamma[t + 3]
        for i in range(d):
            # a gap weighs nothing
            w0 = 1.0 if X[t, i] == X[t, i] else 0.0
            w1 = 1.0 if X[t + 1, i] == X[t + 1, i] else 0.0
            w2 = 1.0 if X[t + 2, i] == X[t + 2, i] else 0.0
            w3 = 1.0 if X[t + 3, i] == X[t + 3, i] else 0.0
            x0 = X[t, i] if w0 > 0.0 else 0.0
            x1 = X[t + 1, i] if w1 > 0.0 else 0.0
            x2 = X[t + 2, i] if w2 > 0.0 else 0.0
            x3 = X[t + 3, i] if w3 > 0.0 else 0.0
            w, a = weights[i], sums[i]
            for k in range(K):
                w[k] += (g0[k] * w0 + g1[k] * w1) + (g2[k] * w2 + g3[k] * w3)
                a[k] += (g0[k] * x0 + g1[k] * x1) + (g2[k] * x2 + g3[k] * x3)
    for t in range(done, n):
        for i in range(d):
            x = X[t, i]
            if x == x:
                for k in range(K):
                    weights[i, k] += gamma[t, k]
                    sums[i, k] += gamma[t, k] * x


def _weighted_squares_at_once(X, gamma, means, squares):
    for x, m, q in zip(X.T, means, squares, strict=True):
        y = x[:, None] - m
        y *= y
        y[x != x] = 0.0
        q += np.einsum("tk,tk->k", gamma, y)


@_fast(plain=_weighted_squares_at_once, work=_work)
def weighted_squares(X, gamma, means, squares):
    """squares (d, K) += Σ_t gamma[t, k] (x_t − mean_k)² over observed entries; means (d, K)."""
    n, d = X.shape
    K = gamma.shape[1]
    done = n - n % 4
    for t in range(0, n, 4):
        for i in range(d):
            m, q = means[i], squares[i]
            x0 = X[t, i]
            whole = t < done
            if whole:
                x1, x2, x3 = X[t + 1, i], X[t + 2, i], X[t + 3, i]
                total = (x0 + x1) + (x2 + x3)
                whole = total == total
            if whole:
                g0, g1, g2, g3 = gamma[t], gamma[t + 1], gamma[t + 2], gamma[t + 3]
                for k in range(K):
                    y0, y1, y2, y3 = x0 - m[k], x1 - m[k], x2 - m[k], x3 - m[k]
                    q[k] += (g0[k] * (y0 * y0) + g1[k] * (y1 * y1)) + (g2[k] * (y2 * y2) + g3[k] * (y3 * y3))
            else:
                for u in range(t, min(t + 4, n)):
                    x = X[u, i]
                    if x == x:
                        for k in range(K):
                            y = x - m[k]
                            q[k] += gamma[u, k] * (y * y)


def _columns_at_once(X, counts, means, variances):
    seen = X == X
    np.add.reduce(seen, axis=0, out=counts, dtype=np.float64)
    n = np.maximum(counts, 1.0)
    np.divide(np.where(seen, X, 0.0).sum(axis=0), n, out=means)
    np.divide((np.where(seen, X - means, 0.0) ** 2).sum(axis=0), n, out=variances)
    return int(np.count_nonzero(seen.any(axis=1)))


@_fast(plain=_columns_at_once, work=_work)
def column_moments(X, counts, means, variances):
    """Numbers, mean and variance of the observed entries of every column; the number of rows that show something."""
    n, d = X.shape
    counts[:], means[:], variances[:] = 0.0, 0.0, 0.0
    rows = 0
    for t in range(n):
        some = False
        for i in range(d):
            x = X[t, i]
            if x == x:
                counts[i] += 1.0
                means[i] += x
                some = True
        rows += some
    for i in range(d):
        means[i] /= max(counts[i], 1.0)
    for t in range(n):
        for i in range(d):
            x = X[t, i]
            if x == x:
                variances[i] += (x - means[i]) ** 2
    for i in range(d):
        variances[i] /= max(counts[i], 1.0)
    return rows


@njit(cache=True, nogil=True, boundscheck=False)
def poisson_row(x, rates, log_rates, out):
    """out[k] = log p(counts x | rates of k), rates (K, d); False where an entry is no count (NaN is not observed)."""
    out[:] = 0.0
    for i in range(x.shape[0]):
        if math.isnan(x[i]):
            continue
        if not (x[i] >= 0.0 and x[i] == math.floor(x[i])):
            return False
        constant = math.lgamma(x[i] + 1.0)
        for k in range(out.shape[0]):
            y = x[i] * log_rates[k, i] if x[i] > 0.0 else 0.0
            out[k] += y - rates[k, i] - constant
    return True
