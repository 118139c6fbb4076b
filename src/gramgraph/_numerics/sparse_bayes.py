"""Sparse Bayesian learning: one basis at a time enters, is re-estimated, or leaves (Tipping and Faul, 2003).

The prior is w ~ N(0, diag(α)⁻¹), and α_j = ∞ keeps basis j out of the model. With the active columns Φ_A and the
weights B of the cases (β I for regression, y(1−y) for the logistic likelihood at its mode),

    Σ = (diag(α) + Φ_Aᵀ B Φ_A)⁻¹,   S_j = φ_jᵀBφ_j − φ_jᵀBΦ_A Σ Φ_AᵀBφ_j,   Q_j = φ_jᵀB(t̂ − Φ_A μ),

the log evidence depends on one α_j only through s_j and q_j (S and Q without basis j), with its maximum at
α_j = s_j² / (q_j² − s_j) when q_j² > s_j and at ∞ otherwise. One step costs O(M m) for M candidates and m active
ones, plus O(N M) when a column enters: products Φᵀφ_j are kept for active columns only, never the whole ΦᵀΦ.

All designs come transposed, `T` of shape (M, N): one row a basis.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri

__all__ = ["Posterior", "logistic", "regression", "softmax_mode"]

#: A column whose part outside the span of the active ones is below this share of its norm cannot enter.
DEPENDENT = 1e-10
#: Columns with a squared cosine above this are one column: duplicate points.
PARALLEL = 1.0 - 1e-10
#: The noise variance stays above this share of the mean square of the targets.
NOISE_FLOOR = 1e-9
ROWS = 256  # rows squared at a time


class Posterior:
    """Weights of the active columns for a quadratic log likelihood, and S, Q of all columns.

    `G` holds, one row for each active column, its products with all columns (without the factor `beta`).
    """

    def __init__(self, T, diag, proj, beta, case_weights=None):
        self.T, self.diag, self.proj, self.beta, self.case_weights = T, diag, proj, beta, case_weights
        self.active: list[int] = []
        self.alpha = np.empty(0)
        self.G = np.empty((8, len(T)))
        self.refresh()

    @property
    def rows(self):
        return self.G[: len(self.active)]

    def products(self, j):
        """Products of column j with all columns: O(N M)."""
        row = self.T[j] if self.case_weights is None else self.T[j] * self.case_weights
        return self.T @ row

    def parallel(self, i):
        """Columns with the direction of active column i: its α does all that theirs could, so they stay out."""
        return self.G[i] ** 2 >= PARALLEL * self.diag[self.active[i]] * self.diag

    def solve(self, beta):
        """Posterior for another noise precision: (L, μ); O(m³)."""
        A = beta * self.rows[:, self.active]
        A[np.diag_indices_from(A)] += self.alpha
        L, info = dpotrf(A, lower=1, clean=1)
        if info:  # rounding made it indefinite: the smallest shift that helps
            A[np.diag_indices_from(A)] += 1e-10 * np.trace(A)
            L, _ = dpotrf(A, lower=1, clean=1)
        y = dtrsm(beta, L, self.proj[self.active][:, None], lower=1)
        return L, dtrsm(1.0, L, y, lower=1, trans_a=1)[:, 0]

    def refresh(self):
        """Σ, μ, S, Q from scratch: O(M m²). The incremental updates drift, this does not."""
        m = len(self.active)
        self.twins = np.zeros(len(self.diag), dtype=np.intp)
        for i in range(m):
            self.twins += self.parallel(i)
        if m == 0:
            self.L, self.sigma, self.mu = np.empty((0, 0)), np.empty((0, 0)), np.empty(0)
            self.S, self.Q = self.beta * self.diag, self.beta * self.proj
            return
        self.L, self.mu = self.solve(self.beta)
        lower, _ = dpotri(self.L, lower=1)
        self.sigma = np.tril(lower) + np.tril(lower, -1).T
        V = dtrsm(self.beta, self.L, self.rows.T, side=1, lower=1, trans_a=1)  # (M, m)
        self.S = self.beta * self.diag - np.einsum("ij,ij->i", V, V)
        self.Q = self.beta * (self.proj - self.mu @ self.rows)

    def best(self):
        """(gain of the log evidence, column, its new α): the best single change. A new α of ∞ means: leave."""
        floor = DEPENDENT * self.beta * self.diag
        open_ = (floor < self.S) & (self.twins == 0)
        open_[self.active] = False
        ratio = np.where(open_, self.Q**2 / np.where(open_, self.S, 1.0), 0.0)
        ratio = np.maximum(ratio, 1.0)
        gains = 0.5 * (ratio - 1.0 - np.log(ratio))
        j = int(np.argmax(gains))
        found = (gains[j], j, self.S[j] ** 2 / (self.Q[j] ** 2 - self.S[j]) if gains[j] > 0.0 else np.inf)
        if not self.active:
            return found
        # for active columns S = α − α²Σ_jj and Q = α μ_j, so that s = 1/Σ_jj − α and q = μ_j/Σ_jj
        variance = np.diag(self.sigma)
        s, q = np.maximum(1.0 / variance - self.alpha, 0.0), self.mu / variance
        theta = q**2 - s
        stays = (theta > 0.0) & (s > 0.0)
        new = np.where(stays, s**2 / np.where(stays, theta, 1.0), np.inf)
        # ℓ(α) = ½ (log α − log(α + s) + q² / (α + s)), the part of the log evidence that depends on α_j
        now = 0.5 * (-np.log1p(s / self.alpha) + q**2 / (self.alpha + s))
        then = np.where(stays, 0.5 * (-np.log1p(s / new) + q**2 / (new + s)), 0.0)
        i = int(np.argmax(then - now))
        if then[i] - now[i] >= found[0]:
            return then[i] - now[i], self.active[i], new[i]
        return found

    def apply(self, j, alpha):
        """Set α_j and update Σ, μ, S, Q in O(M m)."""
        if j not in self.active:
            self.enter(j, alpha)
        elif np.isinf(alpha):
            self.leave(self.active.index(j))
        else:
            i = self.active.index(j)
            column = self.sigma[:, i].copy()
            self.change(i, column, 1.0 / (column[i] + 1.0 / (alpha - self.alpha[i])))
            self.alpha[i] = alpha

    def change(self, i, column, kappa):
        c = self.beta * (column @ self.rows)
        self.S += kappa * c**2
        self.Q += kappa * self.mu[i] * c
        self.mu = self.mu - kappa * self.mu[i] * column
        self.sigma -= kappa * np.outer(column, column)

    def enter(self, j, alpha):
        m = len(self.active)
        if m == len(self.G):
            self.G = np.concatenate([self.G, np.empty_like(self.G)])
        row = self.products(j)
        variance = 1.0 / (alpha + self.S[j])
        mean = variance * self.Q[j]
        a = self.beta * (self.sigma @ row[self.active])  # βΣΦ_Aᵀφ_j
        c = self.beta * (row - a @ self.rows)
        sigma = np.empty((m + 1, m + 1))
        sigma[:m, :m] = self.sigma + variance * np.outer(a, a)
        sigma[m, :m] = sigma[:m, m] = -variance * a
        sigma[m, m] = variance
        self.sigma, self.mu = sigma, np.append(self.mu - mean * a, mean)
        self.S = self.S - variance * c**2
        self.Q = self.Q - mean * c
        self.G[m] = row
        self.active.append(j)
        self.alpha = np.append(self.alpha, alpha)
        self.twins = self.twins + self.parallel(m)

    def leave(self, i):
        column = self.sigma[:, i].copy()
        self.change(i, column, 1.0 / column[i])
        self.twins = self.twins - self.parallel(i)
        keep = np.arange(len(self.active)) != i
        self.G[: len(self.active) - 1] = self.rows[keep]
        self.sigma, self.mu, self.alpha = self.sigma[np.ix_(keep, keep)], self.mu[keep], self.alpha[keep]
        del self.active[i]


# --- regression ---------------------------------------------------------------------------------------------------


def _gaussian(model, t, beta):
    """(log evidence, squared residual, well-determined number Σγ) at noise precision beta: O(N m + m³)."""
    n, m = len(t), len(model.active)
    residual, logdet, penalty, gamma = t, 0.0, 0.0, 0.0
    if m:
        L, mu = model.solve(beta)
        inverse = dtrsm(1.0, L, np.eye(m), lower=1)
        residual = t - mu @ model.T[model.active]
        logdet = 2.0 * np.log(np.diag(L)).sum() - np.log(model.alpha).sum()
        penalty = float(model.alpha @ mu**2)
        gamma = m - float(model.alpha @ np.einsum("ij,ij->j", inverse, inverse))
    rss = float(residual @ residual)
    value = -0.5 * (n * np.log(2 * np.pi / beta) + logdet + beta * rss + penalty)
    return value, rss, gamma


def _improve_noise(model, t, floor, repeats):
    """Fixed-point updates σ² = ‖t − Φμ‖² / (N − Σγ); where one would lower the evidence, the EM update instead."""
    n, start = len(t), model.beta
    value, rss, gamma = _gaussian(model, t, model.beta)
    for _ in range(repeats):
        accepted = False
        for noise in (rss / max(n - gamma, 1e-3 * n), (rss + gamma / model.beta) / n):
            beta = 1.0 / max(noise, floor)
            new = _gaussian(model, t, beta)
            if new[0] >= value:
                accepted = True
                break
        if not accepted:
            break
        moved = abs(np.log(beta / model.beta))
        model.beta, (value, rss, gamma) = beta, new
        if moved < 1e-4:
            break
    return value, abs(np.log(model.beta / start))


def regression(T, t, *, noise, tol, max_iter):
    """Evidence maximum over α, and over the noise variance where `noise` is None.

    Returns (active, alpha, mu, sigma, noise, trace of the log evidence, steps, converged).
    """
    scale = float(t @ t) / len(t) or 1.0
    floor = NOISE_FLOOR * scale
    first = max(0.1 * float(np.var(t)), floor) if noise is None else noise
    model = Posterior(T, np.einsum("ij,ij->i", T, T), T @ t, 1.0 / first)
    trace = [_gaussian(model, t, model.beta)[0]]
    converged, fresh, step = False, True, 0
    while step < max_iter:
        gain, j, alpha = model.best()
        if gain < tol:
            if noise is None:
                value, moved = _improve_noise(model, t, floor, 20)
                trace[-1] = max(value, trace[-1]) if abs(value - trace[-1]) < 1e-9 * abs(value) else value
            else:
                moved = 0.0
            if not fresh or moved:
                model.refresh()
            if (fresh or model.best()[0] < tol) and moved < 1e-3:
                converged = True
                break
            fresh = True
            step += 1
            continue
        model.apply(j, alpha)
        step += 1
        fresh = False
        trace.append(trace[-1] + gain)
        if step <= 10 or step % 5 == 0:
            trace[-1] = _improve_noise(model, t, floor, 1)[0] if noise is None else _gaussian(model, t, model.beta)[0]
            model.refresh()
            fresh = True
    model.refresh()
    trace[-1] = _gaussian(model, t, model.beta)[0]
    return _result(model, 1.0 / model.beta, trace, step, converged)


def _result(model, noise, trace, step, converged):
    order = np.argsort(np.asarray(model.active, dtype=np.intp), kind="stable")
    active = np.asarray(model.active, dtype=np.intp)[order]
    sigma = model.sigma[np.ix_(order, order)]
    return active, model.alpha[order], model.mu[order], sigma, noise, np.asarray(trace), step, converged


# --- classification -----------------------------------------------------------------------------------------------


def _sigmoid(a):
    e = np.exp(-np.abs(a))
    return np.where(a >= 0, 1.0, e) / (1.0 + e)


def _log_posterior(a, t, mu, alpha):
    """Σ log σ(±a) − ½ μᵀ diag(α) μ for t in {0, 1}."""
    signed = np.where(t > 0, a, -a)
    return float(-np.logaddexp(0.0, -signed).sum() - 0.5 * alpha @ mu**2)


def _mode(P, t, alpha, mu):
    """Most probable weights by Newton steps that are halved until they climb; P is (m, N)."""
    a = mu @ P
    value = _log_posterior(a, t, mu, alpha)
    for _ in range(50):
        y = _sigmoid(a)
        gradient = P @ (t - y) - alpha * mu
        H = (P * (y * (1.0 - y))) @ P.T
        H[np.diag_indices_from(H)] += alpha
        L, info = dpotrf(H, lower=1, clean=1)
        if info:
            H[np.diag_indices_from(H)] += 1e-10 * np.trace(H)
            L, _ = dpotrf(H, lower=1, clean=1)
        d = dtrsm(1.0, L, gradient[:, None], lower=1)
        step = dtrsm(1.0, L, d, lower=1, trans_a=1)[:, 0]
        slope, size = float(gradient @ step), 1.0
        if slope < 1e-10:
            break
        while size > 1e-6:
            trial = mu + size * step
            b = trial @ P
            new = _log_posterior(b, t, trial, alpha)
            if new >= value:
                break
            size *= 0.5
        else:
            break
        mu, a, value = trial, b, new
    return mu


def _laplace(T, t, active, alpha, mu):
    """Posterior around the mode as a weighted regression, and Laplace's log evidence: O(N M m)."""
    P = T[active]
    mu = _mode(P, t, alpha, mu) if active else mu
    a = mu @ P if active else np.zeros(len(t))
    y = _sigmoid(a)
    b = np.maximum(y * (1.0 - y), 1e-10)
    diag = np.concatenate([(T[i : i + ROWS] ** 2) @ b for i in range(0, len(T), ROWS)])
    model = Posterior(T, diag, np.zeros(len(T)), 1.0, b)
    rows = (P * b) @ T.T if active else np.empty((0, len(T)))
    model.proj = T @ (t - y) + (mu @ rows if active else 0.0)
    model.active, model.alpha = list(active), alpha.copy()
    model.G = np.concatenate([rows, np.empty((8, len(T)))])
    model.refresh()
    value = _log_posterior(a, t, mu, alpha)
    if active:
        value += 0.5 * float(np.log(alpha).sum()) - float(np.log(np.diag(model.L)).sum())
    return model, value


def logistic(T, t, *, tol, max_iter):
    """Laplace's evidence maximized over α for targets in {0, 1}.

    Around each mode the quadratic approximation is kept for a few changes of α; a batch of changes that lowers the
    evidence at the new mode is taken back and tried with half as many. Returns what `regression` returns.
    """
    model, value = _laplace(T, t, [], np.empty(0), np.empty(0))
    trace, batch, step, converged = [value], 8, 0, False
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
        trial, new = _laplace(T, t, model.active, model.alpha, model.mu)
        if new < value:
            model, _ = _laplace(T, t, *before)
            if batch == 1:  # the approximation promises more than there is: nothing is left to gain
                converged = True
                break
            batch //= 2
            continue
        step += done
        converged = new - value < tol and batch == 1
        if new - value < tol:
            batch = 1
        model, value = trial, new
        trace.append(value)
        if converged:
            break
    return _result(model, 1.0, trace, step, converged)


def softmax_mode(designs, Y, alphas, starts, *, max_iter=50):
    """Most probable weights of a softmax of K latent functions, each with its own columns and prior precisions.

    `designs[k]` is (m_k, N), `Y` (K, N) in {0, 1}. Newton steps on all Σ m_k weights together, halved until they climb.
    Returns (weights, covariance of all weights stacked, log posterior).
    """
    K = len(designs)
    alpha, w = np.concatenate(alphas), np.concatenate(starts)
    ends = np.cumsum([len(a) for a in alphas])[:-1]

    def look(w):
        parts = np.split(w, ends)
        A = np.stack([part @ P for part, P in zip(parts, designs, strict=True)])
        top = A.max(axis=0)
        lse = top + np.log(np.exp(A - top).sum(axis=0))
        return np.exp(A - lse), float(((A - lse) * Y).sum() - 0.5 * alpha @ w**2)

    p, value = look(w)
    for _ in range(max_iter + 1):
        gradient = np.concatenate([P @ (Y[k] - p[k]) for k, P in enumerate(designs)]) - alpha * w
        blocks = [[(designs[k] * (p[k] * ((k == l) - p[l]))) @ designs[l].T for l in range(K)] for k in range(K)]
        H = np.block(blocks) + np.diag(alpha)
        L, info = dpotrf(H, lower=1, clean=1)
        if info:
            H[np.diag_indices_from(H)] += 1e-10 * np.trace(H)
            L, _ = dpotrf(H, lower=1, clean=1)
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
    lower, _ = dpotri(L, lower=1)
    return np.split(w, ends), np.tril(lower) + np.tril(lower, -1).T, value
