"""Answers to sparse Bayesian regression that err differently, averaged and carried by few columns.

The evidence with a precision α_j of its own for every column is at its maximum where few columns are left, and these
few are fitted as if they had been known before: which of them are left, and how strongly, hangs on the noise. A dense
model w ~ N(0, K^(p−2)/α), with K the kernel matrix of the columns' points, leaves nothing to choose but α, and nothing
to gain where the function is made of few columns; p = 1 is the Gaussian process with this kernel, p = 2 gives every
weight the same precision, and the larger p, the smoother the functions. Their curves err differently, so that the
average of the posteriors errs less than each.

The average is then projected on few columns: their weights are fitted to its curve, not to the targets, and the
columns are chosen (one enters, one leaves, one takes another's place) as few as carry the curve up to a small share of
what is uncertain about it. Designs come as in `sparse_bayes`: `T` of shape (M, N), one row a column of the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd
from scipy.linalg.lapack import dtrtri
from scipy.special import expit, logsumexp, softmax

from gramgraph._numerics.rvm.regression import NOISE_FLOOR, distinct, spread
from gramgraph._numerics.rvm.rounds import largest, orthonormal

__all__ = ["Curve", "averaged", "carriers", "dense", "independent", "shared"]

#: Logarithms (base 10) of the ratio ασ² by the largest eigenvalue among which the shared α is chosen.
RATIOS = np.linspace(-9.0, 3.0, 121)
#: Powers p of the dense models, and the eigenvalues of K that count, by the largest.
POWERS, RANK = (1.0, 1.5, 2.0, 3.0), 1e-10
#: Share of the targets' square below which what a dense model leaves over has lost its digits, and the share of the
#: evidence and the number of cases by which that may be wrong.
FEW_DIGITS, FLAT = 1e-6, 1e-6
#: Mean square by which the carried curve may miss the averaged one, as a share of its mean posterior variance.
MISS = 0.02
#: The average may take this part more columns than the evidence keeps (and three at least).
MORE = 5
#: A column is held when this share of its squared norm is outside the span of the others: with less the weights grow
#: large and cancel, and the variances that are computed from them drown in rounding.
OUTSIDE = 1e-6
#: An exchange of columns must take off this share of the miss, which is nothing below that share of the curve's square.
WORTH, NOTHING = 1e-3, 1e-20


@dataclass(frozen=True)
class Curve:
    """A posterior of functions: weights N(mean, root rootᵀ) on some rows of T."""

    rows: np.ndarray  # (m, N)
    mean: np.ndarray  # (m,)
    root: np.ndarray  # (m, r)
    noise: float
    evidence: float
    unsure: float  # sum of the variances of the function over the cases


def shared(P, t, R, *, noise, n, floor):
    """The model with weights R v on the rows P, where all of v have one precision α: a `Curve`.

    α, and the noise variance where `noise` is None, at the maximum of the evidence: one eigendecomposition, O(m³).
    Where t is nearly a function of the model, little is left of the digits of what the model leaves over: there the
    same by singular values, which keep them.
    """
    D = P if R is None else R.T @ P
    values, U = eigh(D @ D.T, check_finite=False, overwrite_a=True, driver="evd" if len(D) > 1 else "ev")
    values, power = np.maximum(values, 0.0), float(t @ t)
    z = U.T @ (D @ t)
    ratios, inside = _ratios(values)
    quadratic = np.maximum(power - (z**2 / inside).sum(axis=1), 0.0)
    variance, evidence = _evidence(values, ratios, quadratic, noise, n, floor)
    if quadratic[evidence >= evidence.max() - FLAT * (n + abs(evidence.max()))].min() < FEW_DIGITS * power:
        U, s, V = svd(D, full_matrices=False, check_finite=False)
        values, a = s**2, V @ t
        z, off = s * a, t - a @ V
        ratios, inside = _ratios(values)
        quadratic = float(off @ off) + ratios * (a**2 / inside).sum(axis=1)
        variance, evidence = _evidence(values, ratios, quadratic, noise, n, floor)
    i = largest(evidence)
    scale = variance[i] / inside[i]
    U = U if R is None else R @ U
    unsure = float(values @ scale)
    return Curve(P, U @ (z / inside[i]), U * np.sqrt(scale), float(variance[i]), float(evidence[i]), unsure)


def _ratios(values):
    """ασ², and what is added to each of the eigenvalues: (ratios,), (ratios, m)."""
    ratios = values.max() * 10.0**RATIOS
    return ratios, values + ratios[:, None]


def _evidence(values, ratios, quadratic, noise, n, floor):
    """Noise variance and log evidence for each ratio, where tᵀ(I + D Dᵀ/ασ²)⁻¹t is `quadratic`."""
    logdet = np.log1p(values / ratios[:, None]).sum(axis=1)
    variance = np.maximum(quadratic / n, floor) if noise is None else np.full(len(ratios), noise)
    return variance, -0.5 * (n * np.log(2 * np.pi * variance) + logdet + quadratic / variance)


def dense(T, t, start, K, *, noise, n):
    """The dense models on the columns `start`, whose points have the kernel matrix K: one `Curve` for each power."""
    P = T[start]
    keep = distinct(P @ P.T)
    P, K = P[keep], K[np.ix_(keep, keep)]
    # SciPy 1.13 asks for too little room for a single number.
    values, V = eigh(K, check_finite=False, driver="evd" if len(K) > 1 else "ev")
    inner = values > RANK * values[-1]  # none where K is negative
    values, V = values[inner], V[:, inner]
    floor = NOISE_FLOOR * (float(t @ t) / n or 1.0)
    roots = [None if p == 2.0 else V * values ** (0.5 * p - 1.0) for p in POWERS if p == 2.0 or len(values)]
    return [shared(P, t, R, noise=noise, n=n, floor=floor) for R in roots]


class _Carriers:
    """Least-squares fit of a curve by some rows of T, and what every single change of them would do."""

    def __init__(self, T, curve, active):
        self.T, self.norm, self.curve, self.proj = T, np.einsum("ij,ij->i", T, T), curve, T @ curve
        self.rows: dict[int, np.ndarray] = {}
        self.hold(active)

    def hold(self, active):
        """Take these rows: O((M + N) k²), and O(N M) for each that was never held before.

        By an orthonormal basis Q of them: their products among themselves would lose what two near rows differ in.
        """
        self.active = list(active)
        for j in self.active:
            if j not in self.rows:
                self.rows[j] = self.T @ self.T[j]
        G = np.array([self.rows[j] for j in self.active]).reshape(len(self.active), len(self.T))
        Q, R = orthonormal(self.T[self.active])
        root, _ = dtrtri(R)
        V, part = root.T @ G, self.curve @ Q  # products of Q with all rows, and with the curve
        self.W, self.weights, self.spread = root @ V, root @ part, np.einsum("ij,ij->i", root, root)
        rest = self.curve - Q @ part
        self.miss = float(rest @ rest)
        self.left = self.proj - part @ V  # products of all rows with what is not fitted
        self.outside = self.norm - np.einsum("ij,ij->j", V, V)

    def entering(self):
        """What each row would take off the miss."""
        free = self.outside > OUTSIDE * self.norm
        free[self.active] = False
        return np.where(free, self.left**2 / np.where(free, self.outside, 1.0), 0.0)

    def leaving(self):
        """What the miss would grow by without each of the active rows."""
        return self.weights**2 / self.spread

    def exchange(self):
        """The best exchange while one is worth it: row j for the active row i, all pairs at once in O(M k)."""
        for _ in range(20 * len(self.active)):
            if self.miss <= NOTHING * float(self.curve @ self.curve):
                return
            share = self.W / self.spread[:, None]
            outside = self.outside + share * self.W
            free = outside > OUTSIDE * self.norm
            free[:, self.active] = False
            gain = (self.left + self.weights[:, None] * share) ** 2 / np.where(free, outside, 1.0)
            gain = np.where(free, gain - self.leaving()[:, None], 0.0)
            i, j = divmod(largest(gain.ravel()), gain.shape[1])
            before, miss = self.active, self.miss
            if gain[i, j] <= WORTH * miss:
                return
            self.hold([*before[:i], j, *before[i + 1 :]])
            if self.miss >= miss:  # rounding
                self.hold(before)
                return


def independent(rows):
    """Of these rows, largest part outside the span of those before first, as many as differ enough: O(N k²)."""
    size = np.einsum("ij,ij->i", rows, rows)
    unit = rows / np.sqrt(size)[:, None]
    return np.sort(spread(unit @ unit.T, largest(size), most=len(rows), rest=OUTSIDE))


def carriers(T, curve, active, *, miss, most):
    """Rows of T, few and at most `most`, whose span comes as near to `curve` as `miss` (a squared distance).

    From those of the rows `active` on that are `independent`: the best row enters, and exchanges follow, until the span
    is near enough; then the row that is missed least leaves, and exchanges follow, as long as it stays so.
    """
    fit = _Carriers(T, curve, active[independent(T[active])])
    while fit.miss > miss and len(fit.active) < most:
        gains = fit.entering()
        j = largest(gains)
        if gains[j] <= 0.0:
            break
        fit.hold([*fit.active, j])
        fit.exchange()
    miss = max(miss, fit.miss)
    while len(fit.active) > 1:
        before = fit.active
        i = largest(-fit.leaving())
        fit.hold([*before[:i], *before[i + 1 :]])
        fit.exchange()
        if fit.miss > miss:
            return np.sort(before)
    return np.sort(fit.active)


def _shares(sparse, others, m, n):
    """Shares in the average: the dense models by their evidence, and the sparse one half, or more.

    More where its evidence, a maximum over m precisions where theirs is one over one, is higher with ½ log n taken off
    for each of the m: then the function is made of few columns, and the dense models only blur it.
    """
    evidence = np.array([one.evidence for one in others])
    odds = sparse.evidence - 0.5 * m * np.log(max(n, 1.0)) - logsumexp(evidence) + np.log(len(others))
    half = max(0.5, float(expit(odds)))
    return np.concatenate([[half], (1.0 - half) * softmax(evidence)])


def averaged(T, t, start, K, found, *, noise, n):
    """`found` of `sparse_bayes.regression`, averaged with the dense models and carried by few columns.

    K is the kernel matrix of the columns `start`. Of the average the mean and the covariance are kept, both projected;
    the precision given for a weight is 1 / E[w²]. `found` itself comes back where the evidence keeps no column (nothing
    to average), and where its curve is nearer to the average than the projection is.
    """
    active, _, mu, root, variance, trace, steps, converged = found
    m = len(active)
    if m == 0:
        return found
    P = T[active]
    unsure = float(np.sum((root.T @ P) ** 2))
    curves = [Curve(P, mu, root, float(variance), float(trace[-1]), unsure)]
    curves += dense(T, t, start, K, noise=noise, n=n)
    shares = _shares(curves[0], curves[1:], m, n)
    means = np.array([one.mean @ one.rows for one in curves])
    mean = shares @ means
    miss = MISS * float(shares @ [one.unsure for one in curves])
    chosen = carriers(T, mean, active, miss=miss, most=m + max(m // MORE, 3))
    Q, L = np.linalg.qr(T[chosen].T)

    def project(rows):
        """Weights on the chosen columns of each of the curves, one a column: least squares."""
        return solve_triangular(L, Q.T @ rows.T, check_finite=False)

    roots = [np.sqrt(a) * (project(one.rows) @ one.root) for a, one in zip(shares, curves, strict=True) if a > 1e-4]
    parts = np.column_stack([*roots, project(np.sqrt(shares)[:, None] * (means - mean))])
    mu = project(mean[None])[:, 0]
    rest = mean - mu @ T[chosen]
    if rest @ rest > np.sum((mean - means[0]) ** 2):
        return found
    if noise is None:
        variance = float(shares @ [one.noise for one in curves] + rest @ rest / n)
    root = np.linalg.qr(parts.T, mode="r").T
    return chosen, 1.0 / (mu**2 + np.sum(root**2, axis=1)), mu, root, variance, trace, steps, converged
