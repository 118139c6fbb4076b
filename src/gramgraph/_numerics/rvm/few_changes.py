"""The sequence of single changes as one compiled loop, for models of few columns; see `posterior.changes`.

Each step updates Σ, μ, S and Q of the columns in place, in O(M m); they are made anew, in O(M m²), where the noise
precision moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.rvm.posterior import DEPENDENT, LONG, NEAR, PARALLEL, SETTLED, WORST, changes
from gramgraph._numerics.rvm.rounds import LOOSE, TIED

__all__ = ["few_changes"]

_helper = njit(cache=True, nogil=True, no_cpython_wrapper=True, fastmath=LOOSE)


class _Model(NamedTuple):
    """Arrays with room for the most active columns; the first m entries are in use."""

    T: np.ndarray  # (M, N)
    gram: np.ndarray  # (M, M), or without an entry
    t: np.ndarray  # (N,)
    diag: np.ndarray  # (M,)
    proj: np.ndarray  # (M,)
    active: np.ndarray
    alpha: np.ndarray
    mu: np.ndarray
    sigma: np.ndarray
    rows: np.ndarray  # (most, M) products of the active columns with all
    cross: np.ndarray  # (most, most) and with each other
    A: np.ndarray  # (most, most) a factor; above the diagonal its inverse
    trial: np.ndarray  # (most,) μ at another noise precision, or a column of Σ
    target: np.ndarray  # (most,) products of the active columns with t
    S: np.ndarray  # (M,)
    Q: np.ndarray  # (M,)
    twins: np.ndarray  # (M,) number of active columns with the direction of each column; active ones have their own
    line: np.ndarray  # (M,)
    rest: np.ndarray  # (N,)


@_helper
def _factor(G, alpha, beta, m, A):
    """Lower Cholesky factor of β G + diag(α) into A; where rounding made it indefinite, with a small shift."""
    if _factored(G, alpha, beta, m, 0.0, A):
        return
    trace = 0.0
    for i in range(m):
        trace += beta * G[i, i] + alpha[i]
    _factored(G, alpha, beta, m, 1e-10 * trace, A)


@_helper
def _factored(G, alpha, beta, m, shift, A):
    """Lower Cholesky factor of β G + diag(α + shift) into A; whether there is one."""
    for i in range(m):
        for j in range(i + 1):
            s = beta * G[i, j]
            if i == j:
                s += alpha[i] + shift
            for t in range(j):
                s -= A[i, t] * A[j, t]
            if i > j:
                A[i, j] = s / A[j, j]
            elif s > 0.0:
                A[i, i] = np.sqrt(s)
            else:
                return False
    return True


@_helper
def _solve(A, right, beta, m, x):
    """x = β (L Lᵀ)⁻¹ right with L in the lower triangle of A."""
    for i in range(m):
        s = beta * right[i]
        for j in range(i):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]
    for i in range(m - 1, -1, -1):
        x[i] /= A[i, i]
        for j in range(i):
            x[j] -= A[i, j] * x[i]


@_helper
def _invert(A, m):
    """L⁻¹, transposed, into the upper triangle of A, whose lower one holds L but for its diagonal."""
    for j in range(m):
        A[j, j] = 1.0 / A[j, j]
    for j in range(m):
        for i in range(j + 1, m):
            s = A[i, j] * A[j, j]
            for t in range(j + 1, i):
                s += A[i, t] * A[j, t]
            A[j, i] = -s * A[i, i]


@_helper
def _gaussian(s, m, beta, n):
    """As `Posterior.look`: (log evidence, squared residual, well-determined number, `worst`)."""
    A, alpha, mu, T, t, rest = s.A, s.alpha, s.trial, s.T, s.t, s.rest
    _factor(s.cross, alpha, beta, m, A)
    _solve(A, s.target, beta, m, mu)
    _invert(A, m)
    logdet, penalty, gamma, rss, worst = 0.0, 0.0, float(m), 0.0, 1.0
    for k in range(len(t)):
        rest[k] = t[k]
    for i in range(m):
        logdet -= 2.0 * np.log(A[i, i]) + np.log(alpha[i])
        penalty += alpha[i] * mu[i] * mu[i]
        variance = 0.0
        for k in range(i, m):
            variance += A[i, k] * A[i, k]
        gamma -= alpha[i] * variance
        worst = max(worst, (beta * s.cross[i, i] + alpha[i]) * variance)
        j = s.active[i]
        for k in range(len(t)):
            rest[k] -= mu[i] * T[j, k]
    for k in range(len(t)):
        rss += rest[k] * rest[k]
    return -0.5 * (n * np.log(2.0 * np.pi / beta) + logdet + beta * rss + penalty), rss, gamma, worst


@_helper
def _improve_noise(s, m, beta, n, floor, repeats):
    """As `posterior.improve_noise`: (log evidence, noise precision, the log evidence before, `worst`)."""
    value, rss, gamma, worst, before = 0.0, 0.0, 0.0, 0.0, 0.0
    trial, cautious, repeat = beta, False, -1
    while True:
        found = _gaussian(s, m, trial, n)
        if repeat < 0 or found[0] >= value:
            moved = abs(np.log(trial / beta))
            beta, cautious = trial, False
            value, rss, gamma, worst = found
            if repeat < 0:
                before = value
            repeat += 1
            if repeat == repeats or (repeat > 0 and moved < 1e-4):
                return value, beta, before, worst
        elif cautious:
            return value, beta, before, worst
        else:
            cautious = True
        noise = (rss + gamma / beta) / n if cautious else rss / max(n - gamma, 1e-3 * n)
        trial = 1.0 / max(noise, floor)


@_helper
def _combine(rows, parts, m, line):
    """The sum of the first m rows, each times its part, into `line`."""
    for j in range(len(line)):
        line[j] = 0.0
    for i in range(m):
        for j in range(len(line)):
            line[j] += parts[i] * rows[i, j]


@_helper
def _refresh(s, m, beta):
    """Σ, μ, S, Q from scratch."""
    A, sigma, mu, rows, line, S, Q, parts = s.A, s.sigma, s.mu, s.rows, s.line, s.S, s.Q, s.trial
    _factor(s.cross, s.alpha, beta, m, A)
    _solve(A, s.target, beta, m, mu)
    _invert(A, m)
    for i in range(m):
        for j in range(i + 1):
            sum_ = 0.0
            for k in range(i, m):
                sum_ += A[i, k] * A[j, k]
            sigma[i, j] = sigma[j, i] = sum_
    _combine(rows, mu, m, line)
    for j in range(len(S)):
        S[j] = beta * s.diag[j]
        Q[j] = beta * (s.proj[j] - line[j])
    for k in range(m):
        for i in range(k + 1):
            parts[i] = beta * A[i, k]
        _combine(rows, parts, k + 1, line)  # row k of β L⁻¹ (rows)
        for j in range(len(S)):
            S[j] -= line[j] * line[j]


@_helper
def _best(s, m, beta):
    """As `Posterior.best`: (gain, column, its place among the active ones or −1, its new α)."""
    S, Q, twins, diag = s.S, s.Q, s.twins, s.diag
    top, column = 1.0, 0
    for j in range(len(S)):
        if twins[j] == 0 and S[j] > DEPENDENT * beta * diag[j]:
            ratio = Q[j] * Q[j] / S[j]
            if ratio > top:
                top, column = ratio, j
    for j in range(column):  # the first of those that are as large up to rounding
        if twins[j] == 0 and S[j] > DEPENDENT * beta * diag[j]:
            if Q[j] * Q[j] / S[j] - 1.0 >= (1.0 - TIED) * (top - 1.0):
                column = j
                break
    gain, place, new, most = 0.5 * (top - 1.0 - np.log(top)), -1, np.inf, 0.0
    if top > 1.0:
        new = S[column] * S[column] / (Q[column] * Q[column] - S[column])
    for i in range(m):
        variance, alpha = s.sigma[i, i], s.alpha[i]
        outside, q = max(1.0 / variance - alpha, 0.0), s.mu[i] / variance
        theta = q * q - outside
        change, better = 0.5 * (np.log1p(outside / alpha) - q * q / (alpha + outside)), np.inf
        if theta > 0.0 and outside > 0.0:
            better = outside * outside / theta
            change += 0.5 * (q * q / (better + outside) - np.log1p(outside / better))
        if change >= gain if place < 0 else change > most + TIED * abs(most):
            most, column, place, new = change, s.active[i], i, better
    return (gain if place < 0 else most), column, place, new


@_helper
def _change(s, m, i, kappa, beta):
    """Σ, μ, S, Q after a change of the α in place i."""
    sigma, mu, column, line, S, Q = s.sigma, s.mu, s.trial, s.line, s.S, s.Q
    mean = kappa * mu[i]
    for k in range(m):
        column[k] = sigma[k, i]
    _combine(s.rows, column, m, line)
    for k in range(m):
        mu[k] -= mean * column[k]
        for l in range(m):
            sigma[k, l] -= kappa * column[k] * column[l]
    for j in range(len(line)):
        c = beta * line[j]
        S[j] += kappa * c * c
        Q[j] += mean * c


@_helper
def _twin(s, i, one):
    """Count the columns that have the direction of the active column i, or no longer."""
    rows, diag, twins = s.rows, s.diag, s.twins
    norm = PARALLEL * diag[s.active[i]]
    for j in range(len(diag)):
        if rows[i, j] * rows[i, j] >= norm * diag[j]:
            twins[j] += one


@_helper
def _hold(s, m, j, alpha):
    """Column j, whose products are in row m, stands in place m."""
    rows, cross, active = s.rows, s.cross, s.active
    active[m], s.alpha[m], s.target[m] = j, alpha, s.proj[j]
    for i in range(m + 1):
        cross[i, m] = cross[m, i] = rows[m, active[i]]
    _twin(s, m, 1)


@_helper
def _products(s, j, m):
    """Products of column j with all columns, into row m."""
    T, gram, rows = s.T, s.gram, s.rows
    for k in range(len(s.S)):
        if gram.shape[0] > 0:
            rows[m, k] = gram[j, k]
        else:
            sum_ = 0.0
            for l in range(T.shape[1]):
                sum_ += T[j, l] * T[k, l]
            rows[m, k] = sum_


@_helper
def _enter(s, m, j, alpha, beta):
    """Σ, μ, S, Q with column j in place m."""
    sigma, mu, parts, line, rows, S, Q = s.sigma, s.mu, s.trial, s.line, s.rows, s.S, s.Q
    _products(s, j, m)
    _hold(s, m, j, alpha)
    variance = 1.0 / (alpha + S[j])
    mean = variance * Q[j]
    for i in range(m):
        sum_ = 0.0
        for k in range(m):
            sum_ += sigma[i, k] * rows[k, j]
        parts[i] = beta * sum_
    _combine(rows, parts, m, line)
    for i in range(m):
        mu[i] -= mean * parts[i]
        for k in range(m):
            sigma[i, k] += variance * parts[i] * parts[k]
        sigma[i, m] = sigma[m, i] = -variance * parts[i]
    sigma[m, m], mu[m] = variance, mean
    for k in range(len(line)):
        c = beta * (rows[m, k] - line[k])
        S[k] -= variance * c * c
        Q[k] -= mean * c


@_helper
def _leave(s, m, i):
    """What is after place i goes up by one place."""
    sigma, cross, rows = s.sigma, s.cross, s.rows
    active, alpha, mu, target = s.active, s.alpha, s.mu, s.target
    _twin(s, i, -1)
    for k in range(i, m - 1):
        active[k], alpha[k], mu[k], target[k] = active[k + 1], alpha[k + 1], mu[k + 1], target[k + 1]
        for j in range(rows.shape[1]):
            rows[k, j] = rows[k + 1, j]
        for l in range(m):
            cross[k, l], sigma[k, l] = cross[k + 1, l], sigma[k + 1, l]
    for k in range(m - 1):
        for l in range(i, m - 1):
            cross[k, l], sigma[k, l] = cross[k, l + 1], sigma[k, l + 1]


@_helper
def _apply(s, m, j, place, alpha, beta):
    """Set the α of column j; the number of active columns after it."""
    if place < 0:
        _enter(s, m, j, alpha, beta)
        return m + 1
    leaves, kappa = np.isinf(alpha), s.sigma[place, place]
    if not leaves:
        kappa += 1.0 / (alpha - s.alpha[place])
    _change(s, m, place, 1.0 / kappa, beta)
    if leaves:
        _leave(s, m, place)
        return m - 1
    s.alpha[place] = alpha
    return m


@_helper
def _begin(T, gram, t, diag, proj, rows, active, alpha, most):
    """The model that holds these columns."""
    M, N = T.shape
    s = _Model(
        T, gram, t, diag, proj, np.empty(most, np.intp), np.empty(most), np.empty(most), np.empty((most, most)),
        np.empty((most, M)), np.empty((most, most)), np.empty((most, most)), np.empty(most), np.empty(most),
        np.empty(M), np.empty(M), np.zeros(M, np.intp), np.empty(M), np.empty(N),
    )  # fmt: skip
    for i in range(len(active)):
        for j in range(M):
            s.rows[i, j] = rows[i, j]
        _hold(s, i, active[i], alpha[i])
    return s


@_helper
def _longer(values):
    """The same values with as much room again."""
    longer = np.empty(2 * len(values))
    for i in range(len(values)):
        longer[i] = values[i]
    return longer


def _work(T, *rest):
    return 100.0 * len(T)


@njit(cache=True, nogil=True, fastmath=LOOSE, plain=changes, work=_work)
def few_changes(T, gram, t, diag, proj, rows, active, alpha, beta, learned, n, floor, tol, steps, most):
    """`posterior.changes` for so few active columns that calls cost more than their work."""
    s = _begin(T, gram, t, diag, proj, rows, active, alpha, most)
    m, last, step, repeats = len(active), 0, 0, 0
    converged, settled, fresh, lost = False, False, False, False
    trace = np.empty(64)
    trace[0] = -np.inf
    while True:
        if repeats >= 0:
            value, better, before, worst = _improve_noise(s, m, beta, n, floor, repeats if learned else 0)
            moved, beta = abs(np.log(better / beta)), better
            near = NEAR * (n + abs(value))
            lost = not worst <= WORST or (last > 0 and not abs(before - trace[last]) <= near)
            if lost:
                if last == 0:
                    trace[last] = value
                break
            trace[last] = max(value, trace[last]) if abs(value - trace[last]) < near else value
            if not fresh or moved > 0.0:
                _refresh(s, m, beta)
            if repeats == LONG:
                settled = moved < SETTLED
                if settled and fresh:
                    converged = True
                    break
                step += not settled
            fresh = True
        if step >= steps:
            break
        gain, j, place, new = _best(s, m, beta)
        if gain < tol:
            if settled:
                converged = True
                break
            repeats = LONG
            continue
        if place < 0 and m == most:
            break
        m = _apply(s, m, j, place, new, beta)
        step += 1
        last += 1
        if last == len(trace):
            trace = _longer(trace)
        trace[last] = trace[last - 1] + gain
        fresh = settled = False
        repeats = 1 if step <= 10 or step % 5 == 0 or step == steps else -1
    return s.active[:m], s.alpha[:m], beta, trace[: last + 1], step, converged, lost
