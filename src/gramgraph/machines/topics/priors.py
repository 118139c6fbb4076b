"""Concentrations of the Dirichlet priors, learned by Minka's fixed points."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray

#: No concentration falls below this; a topic that no document uses would go to 0.
LEAST = 1e-6
_ROUNDS = 20
_STILL = 1e-6


class CountTable:
    """The different counts of each column, and how often they stand there: all that the fixed point asks for.

    Gains Σ_rows ψ(n + a) − ψ(a) and log ratios Σ_rows log Γ(n + a) − log Γ(a) then cost as much as there are
    different counts. Expected counts, which are not whole, hardly ever coincide and are kept one by one.
    """

    def __init__(self, counts: IntArray | FloatArray) -> None:
        row, column = np.nonzero(counts)
        if counts.dtype.kind == "f":
            self.n_columns, self.column, self.values = counts.shape[1], column, counts[row, column]
            self.times = np.ones(len(row))
            return
        values = counts[row, column].astype(np.int64)
        base = int(values.max(initial=0)) + 1
        keys, times = np.unique(column * base + values, return_counts=True)
        self.n_columns = counts.shape[1]
        self.column, self.values = keys // base, (keys % base).astype(np.float64)
        self.times = times.astype(np.float64)

    def gains(self, a: FloatArray) -> FloatArray:
        """Σ_rows ψ(n_j + a_j) − ψ(a_j), (columns,)."""
        from scipy.special import psi

        at = a[self.column]
        gains = self.times * (psi(self.values + at) - psi(at))
        return np.asarray(np.bincount(self.column, gains, self.n_columns), dtype=np.float64)

    def log_ratios(self, a: FloatArray) -> float:
        """Σ log Γ(n_j + a_j) − log Γ(a_j) over rows and columns."""
        from scipy.special import gammaln

        at = a[self.column]
        return float(self.times @ (gammaln(self.values + at) - gammaln(at)))


def from_counts(counts: CountTable, totals: CountTable, a: FloatArray, *, times: int = 1) -> FloatArray:
    """Concentrations (K,) that explain counts of draws best, from `a` on.

    a_k ← a_k Σ_rows [ψ(n_k + a_k) − ψ(a_k)] / Σ_rows [ψ(n + Σa) − ψ(Σa)]. Every round raises the likelihood
    Π_rows Γ(Σa)/Γ(n + Σa) Π_k Γ(n_k + a_k)/Γ(a_k). Where each a_k stands for as many columns, `times` says how many.
    """
    a = np.array(a, dtype=np.float64)
    for _ in range(_ROUNDS):
        down = float(totals.gains(np.array([times * a.sum()]))[0])
        if not down > 0.0:
            return a
        new = np.maximum(a * counts.gains(a) / (times * down), LEAST)
        a, before = new, a
        if np.abs(new - before).max() < _STILL * before.max():
            break
    return a


def from_mean_logs(mean: FloatArray, a: FloatArray, *, times: int = 1) -> FloatArray:
    """Concentrations (K,) under which E log x has this mean, from `a` on: ψ(a_k) ← ψ(Σa) + mean_k.

    Every round raises Σ_k (a_k − 1) mean_k + log Γ(Σa) − Σ log Γ(a_k). `times` as in `from_counts`.
    """
    from scipy.special import psi

    a = np.array(a, dtype=np.float64)
    for _ in range(_ROUNDS):
        new = np.maximum(_inverse_digamma(psi(times * a.sum()) + mean), LEAST)
        a, before = new, a
        if np.abs(new - before).max() < _STILL * before.max():
            break
    return a


def _inverse_digamma(y: Any) -> FloatArray:
    """x with ψ(x) = y: five steps of Newton's method from Minka's start are exact to rounding."""
    from scipy.special import polygamma, psi

    y = np.asarray(y, dtype=np.float64)
    x = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / np.minimum(y - psi(1.0), -1e-3))
    for _ in range(5):
        x = np.maximum(x - (psi(x) - y) / polygamma(1, x), 1e-12)
    return np.asarray(x)
