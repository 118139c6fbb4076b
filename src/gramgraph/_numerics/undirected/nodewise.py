"""Numba: sparse logistic regressions of spins on spins, one for each variable of an Ising model.

Spins are -1 and +1 in rows of a byte matrix (variables, cases). A regression reads a few columns only, so that cases
with equal columns are counted together first.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put

_jit = njit(cache=True, nogil=True, boundscheck=False)
#: Up to this many columns patterns are counted in a table of 2^columns cells.
BITS = 14
NEWTON, SWEEPS, TOL = 60, 200, 1e-7


@_jit(no_cpython_wrapper=True)
def patterns(spins, v, columns, weights):
    """(Z, counts): Z (patterns, 1 + columns) with a leading one, counts (patterns, 2) of v = -1 and v = +1."""
    n, s = spins.shape[1], columns.shape[0]
    shared = weights.shape[0] == 1
    if s <= BITS:
        code = np.zeros(n, np.int64)
        for j in range(s):
            line = spins[columns[j]]
            for i in range(n):
                code[i] |= np.int64(line[i] > 0) << j
        table = np.zeros((1 << s, 2))
        own = spins[v]
        for i in range(n):
            table[code[i], 1 if own[i] > 0 else 0] += weights[0] if shared else weights[i]
        kept = 0
        for c in range(1 << s):
            if table[c, 0] + table[c, 1] > 0:
                kept += 1
        Z, counts = np.ones((kept, s + 1)), np.empty((kept, 2))
        k = 0
        for c in range(1 << s):
            if table[c, 0] + table[c, 1] > 0:
                for j in range(s):
                    Z[k, j + 1] = 1.0 if (c >> j) & 1 else -1.0
                counts[k, 0], counts[k, 1] = table[c, 0], table[c, 1]
                k += 1
        return Z, counts
    Z, counts = np.ones((n, s + 1)), np.zeros((n, 2))
    for j in range(s):
        line = spins[columns[j]]
        for i in range(n):
            Z[i, j + 1] = np.float64(line[i])
    for i in range(n):
        counts[i, 1 if spins[v, i] > 0 else 0] = weights[0] if shared else weights[i]
    return Z, counts


@_jit(no_cpython_wrapper=True)
def loss(Z, counts, beta, total):
    """-(log-likelihood) / total of the logistic regression."""
    value = 0.0
    for i in range(Z.shape[0]):
        eta = 0.0
        for j in range(beta.shape[0]):
            eta += Z[i, j] * beta[j]
        # log(1 + exp(eta)) without overflow
        soft = max(eta, 0.0) + np.log1p(np.exp(-abs(eta)))
        value += (counts[i, 0] + counts[i, 1]) * soft - counts[i, 1] * eta
    return value / total


@_jit(no_cpython_wrapper=True)
def regress(Z, counts, penalty, ridge, beta):
    """argmin loss + penalty · Σ_{j≥1} |β_j| + ½ ridge Σ_{j≥1} β_j², in place from `beta`; the loss without penalties.

    Newton steps on the smooth part, each with coordinate descent for the penalized quadratic, and halved until they
    descend.
    """
    m, d = Z.shape
    total = counts.sum()
    gradient, H, delta = np.empty(d), np.empty((d, d)), np.empty(d)
    trial = np.empty(d)
    value = loss(Z, counts, beta, total)
    whole = value
    for j in range(1, d):
        whole += penalty * abs(beta[j]) + 0.5 * ridge * beta[j] ** 2
    for _ in range(NEWTON):
        gradient[:] = 0.0
        H[:] = 0.0
        for i in range(m):
            eta = 0.0
            for j in range(d):
                eta += Z[i, j] * beta[j]
            p = 1.0 / (1.0 + np.exp(-eta))
            weight = counts[i, 0] + counts[i, 1]
            r = (weight * p - counts[i, 1]) / total
            w = weight * max(p * (1.0 - p), 1e-6) / total
            for j in range(d):
                gradient[j] += r * Z[i, j]
                wz = w * Z[i, j]
                for k in range(j + 1):
                    H[j, k] += wz * Z[i, k]
        for j in range(d):
            if j > 0:
                gradient[j] += ridge * beta[j]
                H[j, j] += ridge
            H[j, j] += 1e-10
            for k in range(j):
                H[k, j] = H[j, k]
        delta[:] = 0.0
        for _s in range(SWEEPS):
            moved = 0.0
            for j in range(d):
                slope = gradient[j]
                for k in range(d):
                    slope += H[j, k] * delta[k]
                at = beta[j] + delta[j]
                new = at - slope / H[j, j]
                if j > 0 and penalty > 0:
                    shrink = penalty / H[j, j]
                    new = np.sign(new) * max(abs(new) - shrink, 0.0)
                moved = max(moved, abs(new - at))
                delta[j] += new - at
            if moved < 0.1 * TOL:
                break
        largest = np.abs(delta).max()
        if largest < TOL:
            break
        size = 1.0
        better = False
        for _h in range(30):
            for j in range(d):
                trial[j] = beta[j] + size * delta[j]
            next_value = loss(Z, counts, trial, total)
            next_whole = next_value
            for j in range(1, d):
                next_whole += penalty * abs(trial[j]) + 0.5 * ridge * trial[j] ** 2
            if next_whole <= whole:
                better = next_whole < whole
                break
            size *= 0.5
        else:
            break
        put(trial, beta)
        gain = whole - next_whole
        value, whole = next_value, next_whole
        if not better or gain < 1e-13:
            break
    return value


@_jit
def node_fit(spins, v, columns, weights, penalty, ridge, beta):
    """Regress spin v on the columns, in place from `beta` (1 + columns); the loss a case, without penalties."""
    Z, counts = patterns(spins, v, columns, weights)
    return regress(Z, counts, penalty, ridge, beta)


@_jit
def residuals(spins, begin, stop, nodes, ptr, idx, intercept, beta, weights, out):
    """out[j, i] = weight · ([spin of node j > 0] - p) for the cases begin … stop - 1 (single precision)."""
    shared = weights.shape[0] == 1
    eta = np.empty(stop - begin)
    for j in range(nodes.shape[0]):
        v = nodes[j]
        eta[:] = intercept[j]
        for k in range(ptr[j], ptr[j + 1]):
            b = beta[k]
            line = spins[idx[k], begin:stop]
            for i in range(stop - begin):
                eta[i] += b * line[i]
        own = spins[v, begin:stop]
        for i in range(stop - begin):
            r = (1.0 if own[i] > 0 else 0.0) - 1.0 / (1.0 + np.exp(-eta[i]))
            out[j, i] = r * (weights[0] if shared else weights[begin + i])
