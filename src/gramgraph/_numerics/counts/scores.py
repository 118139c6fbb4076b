"""Numba: scores of one family from its counts (parent configurations, child states)."""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)


@_jit
def log_likelihood(counts):
    """Σ_jk N_jk log(N_jk / N_j), the largest log-likelihood of the child given its parents."""
    total = 0.0
    for j in range(counts.shape[0]):
        row = 0.0
        for k in range(counts.shape[1]):
            x = float(counts[j, k])
            row += x
            if x > 0.0:
                total += x * math.log(x)
        if row > 0.0:
            total -= row * math.log(row)
    return total


@_jit
def dirichlet(counts, alpha):
    """log of the marginal likelihood when each row has a Dirichlet prior with `alpha` in every cell."""
    total = 0.0
    row_alpha = alpha * counts.shape[1]
    fixed = math.lgamma(alpha)
    row_fixed = math.lgamma(row_alpha)
    for j in range(counts.shape[0]):
        row = 0.0
        for k in range(counts.shape[1]):
            x = float(counts[j, k])
            row += x
            if x > 0.0:
                total += math.lgamma(alpha + x) - fixed
        if row > 0.0:
            total += row_fixed - math.lgamma(row_alpha + row)
    return total


@_jit
def log_binomial_regret(n):
    """log Σ_h C(n, h) (h/n)^h ((n-h)/n)^(n-h): the regret of a coin that is thrown n times."""
    if n == 0:
        return 0.0
    total = 0.0
    peak = math.lgamma(n + 1.0)
    for h in range(n + 1):
        x = peak - math.lgamma(h + 1.0) - math.lgamma(n - h + 1.0)
        if h > 0:
            x += h * math.log(h / n)
        if h < n:
            x += (n - h) * math.log((n - h) / n)
        total += math.exp(x)
    return math.log(total)


@_jit
def log_regret(n, states, log_two):
    """log of the multinomial regret C(states, n), from that of two states: C(k+2) = C(k+1) + n/k · C(k)."""
    if n == 0 or states == 1:
        return 0.0
    before, last = 1.0, math.exp(log_two)
    shift = 0.0
    for k in range(1, states - 1):
        before, last = last, last + n / k * before
        if last > 1e200:
            before, last, shift = before * 1e-200, last * 1e-200, shift + 200.0 * math.log(10.0)
    return math.log(last) + shift


@_jit
def mutual_information(counts):
    """Σ p(a, b) log p(a, b) / (p(a) p(b)), in nats."""
    rows = np.zeros(counts.shape[0])
    columns = np.zeros(counts.shape[1])
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            rows[i] += counts[i, j]
            columns[j] += counts[i, j]
    n = rows.sum()
    total = 0.0
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            x = float(counts[i, j])
            if x > 0.0:
                total += x * math.log(x * n / (rows[i] * columns[j]))
    return max(total / n, 0.0) if n > 0.0 else 0.0
