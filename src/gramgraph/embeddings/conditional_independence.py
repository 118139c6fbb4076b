"""Are two variables independent given a third one? Products of kernel regression residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._validation import check_choice, check_count, generator
from gramgraph.embeddings.features import RidgeSpectrum, principal_features
from gramgraph.embeddings.permutation import KernelTest, gamma_tail, permutation_p_value
from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import default_kernel, domain_of, sample_of
from gramgraph.typing import FloatArray, RandomState

_REGS = np.logspace(-6, 0, 13)
_FACTORS = (1.0, 0.5, 0.25)  # of the median distance, where the bandwidth of Z is free
_SIDE, _WEIGHTS, _GIVEN = 8, 3, 100  # components of X and of Y, weight functions of Z, features of Z
_ROWS = 4096  # rows whose products are in memory at once


def kci_test(
    X: Any,
    Y: Any,
    Z: Any,
    *,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    kernel_z: Kernel | None = None,
    domain_x: str | None = None,
    domain_y: str | None = None,
    domain_z: str | None = None,
    method: str = "multiplier",
    n_permutations: int = 1000,
    random_state: RandomState = None,
) -> KernelTest:
    """Whether X and Y are independent given Z, row by row, from products of residuals.

    The leading 8 kernel components of X and of Y are regressed on Z by kernel ridge regression (penalty and, for the
    default kernel, bandwidth by leave-one-out in closed form). With residuals a, b and weight functions w₀ = 1, w₁ … w₃
    (components of Z), the statistic is T = Σ_k ‖Σᵢ w_k(zᵢ) aᵢ bᵢᵀ‖² / n: under the null hypothesis every term has mean
    zero. Its null distribution comes from random signs in front of the products, `n_permutations` times in one matrix
    product ("multiplier"), or from a gamma distribution with the moments of the limit ("gamma"); either is corrected
    for the degrees of freedom that the regressions have used. Cost O(n · 256 · (B + 100)).

    The level is right where the regressions on Z are good: strong, rough dependence on Z with few rows is found guilty.

    Parameters
    ----------
    X : sample of the first variable.
    Y : sample of the second variable, paired with X.
    Z : sample of what is given, paired with X.
    kernel_x : kernel of X; None for the default one of its domain.
    kernel_y : kernel of Y; None for the default one of its domain.
    kernel_z : kernel of Z; None for the default one of its domain.
    domain_x : what the values of X are: "real", "circle", "category", …; None guesses.
    domain_y : what the values of Y are, likewise.
    domain_z : what the values of Z are, likewise.
    method : how the null distribution is found: "permutation" or "gamma".
    n_permutations : number of permutations.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=400)
    >>> x, y = np.sin(z) + 0.5 * rng.normal(size=400), z**2 + rng.normal(size=400)
    >>> kci_test(x, y, z, random_state=0).p_value > 0.05
    True
    >>> kci_test(x, y + x, z, random_state=0).p_value < 0.01
    True
    """
    check_choice("method", method, ("multiplier", "gamma"))
    B = check_count("n_permutations", n_permutations)
    kernel_x, X, n = sample_of(X, kernel_x, domain_x, name="X", least=10)
    kernel_y, Y, ny = sample_of(Y, kernel_y, domain_y, name="Y", least=10)
    candidates = _given_kernels(Z, kernel_z, domain_z)
    Z, nz = sample_of(Z, candidates[0], None, name="Z", least=10)[1:]
    if not n == ny == nz:
        raise ModelError(f"X, Y and Z belong together row by row: expected equally many points, got {n}, {ny}, {nz}.")
    spectra = [RidgeSpectrum.of(principal_features(k, Z, _GIVEN)) for k in candidates]
    a, keep_a, at_a = _residuals(principal_features(kernel_x, X, _SIDE), spectra)
    b, keep_b, at_b = _residuals(principal_features(kernel_y, Y, _SIDE), spectra)
    factor = _used_freedom(spectra[at_a], keep_a, spectra[at_b], keep_b)
    weights = principal_features(candidates[0], Z, _WEIGHTS)
    spread = weights.std(axis=0)
    weights = np.hstack([np.ones((n, 1)), weights / np.where(spread > 0.0, spread, 1.0)])
    products = _Products(a, b, weights)
    statistic = float((products.combined(np.ones((1, n))) ** 2).sum()) / n
    if method == "gamma":
        mean, variance = products.moments()
        p = gamma_tail(statistic, factor * mean, factor**2 * variance)
        return KernelTest(statistic, p, method, np.zeros(0))
    signs = generator(random_state).integers(0, 2, size=(B, n), dtype=np.int8)
    null = factor * (products.combined(signs, signed=True) ** 2).sum(axis=1) / n
    return KernelTest(statistic, permutation_p_value(statistic, null), method, null)


def _given_kernels(Z: Any, kernel: Kernel | None, domain: str | None) -> list[Kernel]:
    """Kernels of Z to choose from: the given one, or the default with several bandwidths."""
    if kernel is not None or domain not in (None, "real", "vector") or (domain is None and domain_of(Z) == "category"):
        return [sample_of(Z, kernel, domain, name="Z")[0]]
    sample_of(Z, None, domain, name="Z")
    return [default_kernel(Z, domain, factor=f, scale_columns=True) for f in _FACTORS]


def _residuals(F: FloatArray, spectra: list[RidgeSpectrum]) -> tuple[FloatArray, FloatArray, int]:
    """What is left of the components F, what the best regression keeps of each direction, and which one it is."""
    if not F.size:  # a constant has no components, and no dependence
        return np.zeros((len(F), 1)), np.zeros(len(spectra[0].values)), 0
    errors = np.array([s.loo_errors(F, _REGS) for s in spectra])
    at, penalty = np.unravel_index(int(errors.argmin()), errors.shape)
    best = spectra[at]
    keep = best.shrinkage(float(_REGS[penalty]))
    return F - F.mean(axis=0) - best.U @ (keep[:, None] * (best.U.T @ F)), keep, int(at)


def _used_freedom(s: RidgeSpectrum, keep_s: FloatArray, t: RidgeSpectrum, keep_t: FloatArray) -> float:
    """tr(P²Q²) / Σᵢ (P²)ᵢᵢ (Q²)ᵢᵢ for the residual projections P, Q: how much products vary beyond single ones."""
    n = len(s.U)
    cs, ct = 2.0 * keep_s - keep_s**2, 2.0 * keep_t - keep_t**2  # P² = H − U diag(c) Uᵀ
    cross = (s.U * cs).T @ (t.U * ct)
    overlap = s.U.T @ t.U
    trace = n - 1.0 - cs.sum() - ct.sum() + float(np.vdot(cross, overlap))
    diag_s, diag_t = 1.0 - 1.0 / n - s.U**2 @ cs, 1.0 - 1.0 / n - t.U**2 @ ct
    return float(max(trace, 1.0) / max(float(diag_s @ diag_t), 1e-300))


class _Products:
    """w_k(zᵢ) aᵢ bᵢᵀ as rows of q numbers, made in blocks of rows."""

    def __init__(self, a: FloatArray, b: FloatArray, w: FloatArray) -> None:
        self.a, self.b, self.w = a, b, w
        self.q = a.shape[1] * b.shape[1] * w.shape[1]

    def _rows(self, here: slice) -> FloatArray:
        found = self.a[here, :, None, None] * self.b[here, None, :, None] * self.w[here, None, None, :]
        return found.reshape(len(found), self.q)

    def combined(self, E: Any, *, signed: bool = False) -> FloatArray:
        """Σᵢ E_bi rowᵢ for every row of E, (B, q); with `signed` E holds 0 and 1 for −1 and +1."""
        out = np.zeros((len(E), self.q))
        for start in range(0, len(self.a), _ROWS):
            here = slice(start, start + _ROWS)
            some = E[:, here].astype(np.float64)
            out += (2.0 * some - 1.0 if signed else some) @ self._rows(here)
        return out

    def moments(self) -> tuple[float, float]:
        """Mean and variance of ‖N(0, S)‖² with S the mean of rowᵢ rowᵢᵀ: tr S and 2 tr S²."""
        S = np.zeros((self.q, self.q))
        for start in range(0, len(self.a), _ROWS):
            rows = self._rows(slice(start, start + _ROWS))
            S += rows.T @ rows
        S /= len(self.a)
        return float(np.trace(S)), 2.0 * float(np.vdot(S, S))
