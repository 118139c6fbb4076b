"""The posterior of active columns, and the sequence of single changes that raises the evidence.

The prior is w ~ N(0, diag(α)⁻¹), and α_j = ∞ keeps basis j out of the model. With the active columns Φ_A and the
weights B of the cases (β I for regression, y(1−y) for the logistic likelihood at its mode),

    Σ = (diag(α) + Φ_Aᵀ B Φ_A)⁻¹,   S_j = φ_jᵀBφ_j − φ_jᵀBΦ_A Σ Φ_AᵀBφ_j,   Q_j = φ_jᵀB(t̂ − Φ_A μ),

the log evidence depends on one α_j only through s_j and q_j (S and Q without basis j), with its maximum at
α_j = s_j² / (q_j² − s_j) when q_j² > s_j and at ∞ otherwise. One step costs O(M m) for M candidates and m active
ones, plus O(N M) when a column enters whose products with the others are not at hand.

All designs come transposed, `T` of shape (M, N): one row a basis.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm

from gramgraph._numerics.rvm.rounds import cholesky, inverse, inverse_root, largest

__all__ = [
    "DEPENDENT", "LONG", "NEAR", "PARALLEL", "SETTLED", "WORST", "Posterior", "changes", "improve_noise", "result",
]  # fmt: skip

#: A column whose part outside the span of the active ones is below this share of its norm cannot enter.
DEPENDENT = 1e-10
#: Columns with a squared cosine above this are one column: duplicate points.
PARALLEL = 1.0 - 1e-10
#: Updates of the noise, at most, where no change of a column is left, and how far its logarithm may still move.
LONG, SETTLED = 20, 1e-3
#: The noise and all that follows are computed anew every fifth change, of more columns after as many as this share of
#: them: it costs O(M m²), a change O(M m).
SELDOM = 16
#: Signs of lost digits: rounding that weighs this many times more, and an evidence that is not the one foretold, by
#: this share of its size and the number of cases. Updates and products of columns lose them where weights cancel. The
#: first limit is low enough for changes not to hang on the last digits of a kernel.
WORST, NEAR = 1e6, 1e-7


class Posterior:
    """Weights of the active columns for a quadratic log likelihood, and S, Q of all columns.

    `G` holds, one row for each active column, its products with all columns (without the factor `beta`).
    """

    def __init__(self, T, diag, proj, beta, case_weights=None, gram=None):
        self.T, self.diag, self.proj, self.beta, self.case_weights = T, diag, proj, beta, case_weights
        self.gram = gram  # products of all columns, where they are at hand
        self.active: list[int] = []
        self.alpha = np.empty(0)
        self.G = np.empty((8, len(T)))
        self.refresh()

    @property
    def rows(self):
        return self.G[: len(self.active)]

    def products(self, j):
        """Products of column j with all columns: O(N M), if they are not at hand."""
        if self.gram is not None:
            return self.gram[j]
        row = self.T[j] if self.case_weights is None else self.T[j] * self.case_weights
        return self.T @ row

    def parallel(self, i):
        """Columns with the direction of active column i: its α does all that theirs could, so they stay out."""
        return self.G[i] ** 2 >= PARALLEL * self.diag[self.active[i]] * self.diag

    def solve(self, beta):
        """Posterior for another noise precision: (L, μ); O(m³)."""
        A = beta * self.rows[:, self.active]
        A[np.diag_indices_from(A)] += self.alpha
        L = cholesky(A)
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
        self.sigma = inverse(self.L)
        V = dtrsm(self.beta, self.L, self.rows.T, side=1, lower=1, trans_a=1)  # (M, m)
        self.S = self.beta * self.diag - np.einsum("ij,ij->i", V, V)
        self.Q = self.beta * (self.proj - self.mu @ self.rows)

    def root(self):
        """A root of Σ as `refresh` made it, one row a weight."""
        return inverse_root(self.L)

    def hold(self, rows, active, alpha):
        """These columns, whose products with all are `rows`, with these α instead of the present ones: O(M m²)."""
        self.active, self.alpha = [int(j) for j in active], np.array(alpha)
        self.G = np.concatenate([rows, self.G[:8]])
        self.refresh()

    def best(self, closed=()):
        """(gain of the log evidence, column, its new α): the best single change. A new α of ∞ means: leave.

        The columns that are `closed` stay as they are.
        """
        floor = DEPENDENT * self.beta * self.diag
        open_ = (floor < self.S) & (self.twins == 0)
        open_[self.active] = False
        open_[list(closed)] = False
        ratio = np.where(open_, self.Q**2 / np.where(open_, self.S, 1.0), 0.0)
        ratio = np.maximum(ratio, 1.0)
        gains = 0.5 * (ratio - 1.0 - np.log(ratio))
        j = largest(gains)
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
        gains = then - now
        gains[[i for i, j in enumerate(self.active) if j in closed]] = -np.inf
        i = largest(gains)
        if gains[i] >= found[0]:
            return gains[i], self.active[i], new[i]
        return found

    def look(self, t, beta, n):
        """(log evidence, squared residual, well-determined number Σγ, `worst`) at noise precision beta: O(N m + m³).

        For regression. `n` is the number of cases that speak of the noise: the sum of the weights, less one for an
        intercept. `worst` is the largest variance of a weight by the one that it would have if the other weights were
        known: as many times larger are errors of rounding.
        """
        m = len(self.active)
        residual, logdet, penalty, gamma, worst = t, 0.0, 0.0, 0.0, 1.0
        if m:
            L, mu = self.solve(beta)
            half = dtrsm(1.0, L, np.eye(m), lower=1)
            variance = np.einsum("ij,ij->j", half, half)
            residual = t - mu @ self.T[self.active]
            logdet = 2.0 * np.log(np.diag(L)).sum() - np.log(self.alpha).sum()
            penalty = float(self.alpha @ mu**2)
            gamma = m - float(self.alpha @ variance)
            worst = float(((beta * self.diag[self.active] + self.alpha) * variance).max())
        rss = float(residual @ residual)
        value = -0.5 * (n * np.log(2 * np.pi / beta) + logdet + beta * rss + penalty)
        return value, rss, gamma, worst

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


def improve_noise(model, t, floor, repeats, n):
    """Fixed-point updates σ² = ‖t − Φμ‖² / (n − Σγ); where one would lower the evidence, the EM update instead.

    Returns (log evidence, how far log β moved, the log evidence before, `worst` of `Posterior.look`).
    """
    start = model.beta
    value, rss, gamma, worst = model.look(t, model.beta, n)
    before = value
    for _ in range(repeats):
        accepted = False
        for noise in (rss / max(n - gamma, 1e-3 * n), (rss + gamma / model.beta) / n):
            beta = 1.0 / max(noise, floor)
            new = model.look(t, beta, n)
            if new[0] >= value:
                accepted = True
                break
        if not accepted:
            break
        moved = abs(np.log(beta / model.beta))
        model.beta, (value, rss, gamma, worst) = beta, new
        if moved < 1e-4:
            break
    return value, abs(np.log(model.beta / start)), before, worst


def changes(T, gram, t, diag, proj, rows, active, alpha, beta, learned, n, floor, tol, steps, most):
    """Single changes from these columns on until none raises the log evidence by `tol`, at most `steps` of them.

    `rows` are the products of the active columns with all columns; `gram` holds those of all, or has no entry. `diag`
    and `proj` are products of each column with itself and with the targets t. `learned` says whether the noise
    precision β is improved as well, and `n` is that of `Posterior.look`. `most` is a limit of the compiled loop alone.
    Returns (columns, their α, β, log evidence at the beginning and after each change, steps, whether none is left,
    whether digits were lost): then nothing of it is to be trusted.
    """
    model = Posterior(T, diag, proj, beta, gram=gram if gram.size else None)
    if len(active):
        model.hold(rows, active, alpha)
    trace, step, repeats = [-np.inf], 0, 0  # at first, the evidence as it is
    converged, settled, fresh, lost = False, False, True, False
    while True:
        if repeats >= 0:
            value, moved, before, worst = improve_noise(model, t, floor, repeats if learned else 0, n)
            near = NEAR * (n + abs(value))
            lost = not worst <= WORST or (len(trace) > 1 and not abs(before - trace[-1]) <= near)
            if lost:
                if len(trace) == 1:
                    trace[-1] = value
                break
            trace[-1] = max(value, trace[-1]) if abs(value - trace[-1]) < near else value
            if not fresh or moved:
                model.refresh()
            if repeats == LONG:
                settled = moved < SETTLED
                if settled and fresh:
                    converged = True
                    break
                step += not settled
            fresh = True
        if step >= steps:
            break
        gain, j, alpha = model.best()
        if gain < tol:
            if settled:
                converged = True
                break
            repeats = LONG
            continue
        if len(model.active) == most and j not in model.active:
            break
        model.apply(j, alpha)
        step += 1
        trace.append(trace[-1] + gain)
        fresh = settled = False
        often = max(5, len(model.active) // SELDOM)
        repeats = 1 if step <= 10 or step % often == 0 or step == steps else -1
    return np.array(model.active, dtype=np.intp), model.alpha, model.beta, np.array(trace), step, converged, lost


def result(model, noise, trace, step, converged):
    """What a fit returns (see `regression.regression`), columns in ascending order, just after a `refresh`."""
    order = np.argsort(np.asarray(model.active, dtype=np.intp), kind="stable")
    active = np.asarray(model.active, dtype=np.intp)[order]
    return active, model.alpha[order], model.mu[order], model.root()[order], noise, np.asarray(trace), step, converged
