"""Sparse Bayesian classification: Laplace's evidence for the logistic likelihood, and the mode of a joint softmax.

Around each mode the log likelihood is a weighted quadratic, to which the steps of `sparse_bayes` apply. All designs
come transposed, (M, N): one row a basis. `weights` multiply the log likelihoods: two is the case written twice.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm

from gramgraph._numerics.rvm.posterior import Posterior, result
from gramgraph._numerics.rvm.rounds import cholesky, inverse_root

__all__ = ["logistic", "softmax_mode"]

ROWS = 256  # rows squared at a time
BATCH = 8  # changes between two modes, at most


def _sigmoid(a):
    e = np.exp(-np.abs(a))
    return np.where(a >= 0, 1.0, e) / (1.0 + e)


def _log_posterior(a, t, weights, mu, alpha):
    """Σ w log σ(±a) − ½ μᵀ diag(α) μ for t in {0, 1}."""
    signed = np.where(t > 0, a, -a)
    return float(-weights @ np.logaddexp(0.0, -signed) - 0.5 * alpha @ mu**2)


def _mode(P, t, weights, alpha, mu):
    """Most probable weights by Newton steps that are halved until they climb; P is (m, N)."""
    a = mu @ P
    value = _log_posterior(a, t, weights, mu, alpha)
    for _ in range(50):
        y = _sigmoid(a)
        gradient = P @ (weights * (t - y)) - alpha * mu
        H = (P * (weights * y * (1.0 - y))) @ P.T
        H[np.diag_indices_from(H)] += alpha
        L = cholesky(H)
        d = dtrsm(1.0, L, gradient[:, None], lower=1)
        step = dtrsm(1.0, L, d, lower=1, trans_a=1)[:, 0]
        slope, size = float(gradient @ step), 1.0
        if slope < 1e-10:
            break
        while size > 1e-6:
            trial = mu + size * step
            b = trial @ P
            new = _log_posterior(b, t, weights, trial, alpha)
            if new >= value:
                break
            size *= 0.5
        else:
            break
        mu, a, value = trial, b, new
    return mu


def _laplace(T, t, weights, active, alpha, mu):
    """Posterior around the mode as a weighted regression, and Laplace's log evidence: O(N M m)."""
    P = T[active]
    mu = _mode(P, t, weights, alpha, mu) if active else mu
    a = mu @ P if active else np.zeros(len(t))
    y = _sigmoid(a)
    b = weights * np.maximum(y * (1.0 - y), 1e-10)
    diag = np.concatenate([(T[i : i + ROWS] ** 2) @ b for i in range(0, len(T), ROWS)])
    model = Posterior(T, diag, T @ (weights * (t - y)), 1.0, b)
    if active:
        rows = (P * b) @ T.T
        model.proj = model.proj + mu @ rows
        model.active, model.alpha = list(active), alpha.copy()
        model.G = np.concatenate([rows, np.empty((8, len(T)))])
        model.refresh()
    value = _log_posterior(a, t, weights, mu, alpha)
    if active:
        value += 0.5 * float(np.log(alpha).sum()) - float(np.log(np.diag(model.L)).sum())
    return model, value


def logistic(T, t, *, tol, max_iter, weights=None):
    """Laplace's evidence maximized over α for targets in {0, 1}.

    Around each mode the quadratic approximation is kept for a few changes of α; a batch of changes that lowers the
    evidence at the new mode is taken back and tried with half as many; the next has twice as many
    again. Returns what `sparse_bayes.regression` returns.
    """
    weights = np.ones(len(t)) if weights is None else weights
    found = _climb(T, t, weights, [], np.empty(0), tol, max_iter)
    if 0 not in found[0] and len(T) and (T[0] == 1.0).all():
        # no column helps alone, but with the constant it may: positive columns cannot part classes around a middle
        other = _climb(T, t, weights, [0], np.full(1, 1e-2), tol, max_iter)
        found = max(found, other, key=lambda one: one[5][-1])  # the last evidence of the trace
    return found


def _climb(T, t, weights, active, alpha, tol, max_iter):
    """The search from a first set of columns."""
    model, value = _laplace(T, t, weights, active, alpha, np.zeros(len(active)))
    trace, batch, step, converged = [value], BATCH, 0, False
    while step < max_iter:
        before = (list(model.active), model.alpha.copy(), model.mu.copy())
        done = 0
        while done < batch:
            gain, j, alpha = model.best()
            if gain < tol:
                break
            model.apply(j, alpha)
            done += 1
        if done == 0:
            converged = True
            break
        trial, new = _laplace(T, t, weights, model.active, model.alpha, model.mu)
        if new < value:
            model, _ = _laplace(T, t, weights, *before)
            if batch == 1:  # the approximation promises more than there is: nothing is left to gain
                converged = True
                break
            batch //= 2
            continue
        step += done
        converged = new - value < tol and batch == 1
        batch = min(2 * batch, BATCH) if new - value >= tol else 1
        model, value = trial, new
        trace.append(value)
        if converged:
            break
    return result(model, 1.0, trace, step, converged)


def softmax_mode(designs, Y, alphas, starts, *, weights=None, max_iter=50):
    """Most probable weights of a softmax of K latent functions, each with its own columns and prior precisions.

    `designs[k]` is (m_k, N), `Y` (K, N) in {0, 1}. Newton steps on all Σ m_k weights together, halved until they climb.
    Returns (weights, a root of the covariance of all weights stacked, log posterior).
    """
    K = len(designs)
    weights = np.ones(Y.shape[1]) if weights is None else weights
    alpha, w = np.concatenate(alphas), np.concatenate(starts)
    ends = np.cumsum([len(a) for a in alphas])[:-1]

    def look(w):
        parts = np.split(w, ends)
        A = np.stack([part @ P for part, P in zip(parts, designs, strict=True)])
        top = A.max(axis=0)
        lse = top + np.log(np.exp(A - top).sum(axis=0))
        return np.exp(A - lse), float((((A - lse) * Y) @ weights).sum() - 0.5 * alpha @ w**2)

    p, value = look(w)
    for _ in range(max_iter + 1):
        gradient = np.concatenate([P @ (weights * (Y[k] - p[k])) for k, P in enumerate(designs)]) - alpha * w
        curve = [[weights * p[k] * ((k == l) - p[l]) for l in range(K)] for k in range(K)]
        blocks = [[(designs[k] * curve[k][l]) @ designs[l].T for l in range(K)] for k in range(K)]
        H = np.block(blocks) + np.diag(alpha)
        L = cholesky(H)
        step = dtrsm(1.0, L, dtrsm(1.0, L, gradient[:, None], lower=1), lower=1, trans_a=1)[:, 0]
        size = 1.0
        if float(gradient @ step) < 1e-8:
            break
        while size > 1e-6:
            q, new = look(w + size * step)
            if new >= value:
                break
            size *= 0.5
        else:
            break
        w, p, value = w + size * step, q, new
    return np.split(w, ends), inverse_root(L), value
