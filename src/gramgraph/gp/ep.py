"""Expectation propagation for a Gaussian process seen through a log-concave likelihood.

Every likelihood term is replaced by a Gaussian site with precision τ and shift ν, such that the marginals of the
approximation have the mean and variance that they have when one site is exchanged for its true term. All sites are
updated at once, n³ operations of LAPACK a round, from Laplace's approximation on, and rounds are mixed by Anderson's
method. With the probit link the evidence is far more exact than Laplace's. Source: Rasmussen and Williams,
"Gaussian Processes for Machine Learning" (2006), section 3.6 and 5.5.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.laplace import check_gram_finite, cotangent_from_inverse, factor_b, find_mode
from gramgraph.gp.latent import ApproximateEvidence, LatentPosterior
from gramgraph.linalg.dense import DenseFactor
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.gp.likelihoods import Likelihood
    from gramgraph.kernels.base import Kernel

_WEAK = 1e-5  # sites with τ k(x, x) below this: the diagonal of B⁻¹ no longer tells their variance


class Sites(NamedTuple):
    """Gaussian stand-ins exp(ν f − ½ τ f²) of the likelihood terms."""

    tau: FloatArray  # (n,) precisions, never negative
    nu: FloatArray  # (n,) shifts


@dataclass(frozen=True, eq=False)
class SiteFit:
    """Sites where the moments match, the factor of B = I + τ½ K τ½, and how they were found."""

    sites: Sites
    alpha: FloatArray  # (n,) weights of the posterior mean, K α
    root: FloatArray  # (n,) τ½
    factor: DenseFactor
    log_evidence: float
    rounds: int
    residual: float  # largest change of a site, relative to 1 + its size
    converged: bool


def _marginals(K: FloatArray, sites: Sites, work: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Mean, variance of every latent value under the approximation, and ½ log |B|. `work` is overwritten."""
    root = np.sqrt(sites.tau)
    factor = factor_b(K, root, work)
    half_logdet = 0.5 * factor.logdet
    mean = K @ (sites.nu - root * factor.solve(root * (K @ sites.nu)))
    prior = K.diagonal()
    weak = np.flatnonzero(sites.tau * prior < _WEAK)
    var = np.empty_like(prior)
    if len(weak):
        V = factor.half_solve(np.asfortranarray(root[:, None] * K[:, weak]), overwrite=True)
        var[weak] = prior[weak] - np.einsum("ij,ij->j", V, V)
    strong = np.ones(len(var), dtype=bool)
    strong[weak] = False
    if strong.any():  # B⁻¹ = I − τ½ Σ τ½
        inverse = factor.inverse(triangle="lower", overwrite=True)
        var[strong] = (1.0 - inverse.diagonal()[strong]) / sites.tau[strong]
    # a value that the prior fixes (a linear kernel at the origin) has a variance of 0, and a precision is asked for
    least = 1e-14 * np.maximum(prior, 1e-8 * max(float(prior.max()), 1e-100))
    return mean, np.maximum(np.minimum(var, prior), least), half_logdet


class _Round(NamedTuple):
    new: Sites  # sites that match the moments given the cavities
    log_evidence: float
    residual: float


def _one_round(
    K: FloatArray, y: FloatArray, likelihood: Likelihood, sites: Sites, offset: FloatArray, work: Any
) -> _Round:
    """Cavities, matched moments and the evidence at the present sites."""
    with np.errstate(over="ignore", invalid="ignore"):  # an iteration that runs away is seen by its residual
        return _round_from(y, likelihood, sites, offset, *_marginals(K, sites, work))


def _round_from(
    y: FloatArray,
    likelihood: Likelihood,
    sites: Sites,
    offset: FloatArray,
    mean: FloatArray,
    var: FloatArray,
    half_logdet: float,
) -> _Round:
    # Cavity precision 1/Σᵢᵢ − τᵢ, positive for exact numbers
    t = np.maximum(1.0 / var - sites.tau, 1e-12 / var)
    center = (mean / var - sites.nu) / t
    v = 1.0 / t
    log_z, slope, c = likelihood.moments(y, offset + center, v)
    c = np.clip(c, 0.0, (1.0 - 1e-10) * t)
    shrink = 1.0 - v * c
    new = Sites(c / shrink, (slope + center * c) / shrink)
    # log Z_EP in a form without differences of large numbers (their equations 3.73 and 3.74)
    s, nu = sites
    fit = 0.5 * float(nu @ (mean - nu / (s + t))) + 0.5 * float((center * t / (s + t)) @ (s * center - 2.0 * nu))
    value = float(log_z.sum()) + 0.5 * float(np.log1p(s * v).sum()) + fit - half_logdet
    change = np.maximum(np.abs(new.tau - s) / (1.0 + s), np.abs(new.nu - nu) / (1.0 + np.abs(nu)))
    return _Round(new, value, float(change.max()))


def find_sites(
    K: FloatArray,  # (n, n), left as it is
    y: FloatArray,  # (n,)
    likelihood: Likelihood,
    *,
    offset: FloatArray | float = 0.0,
    start: Sites | None = None,
    max_iter: int = 200,
    tol: float = 1e-8,
) -> SiteFit:
    """Sites whose moments match, by rounds over all of them at once; n³ operations a round, 10 to 25 rounds.

    >>> import numpy as np
    >>> from gramgraph.gp.likelihoods import Probit
    >>> fit = find_sites(np.array([[3.0]]), np.array([1.0]), Probit())
    >>> fit.converged, round(float(np.exp(fit.log_evidence)), 6)  # one point: exact, Φ(0) = ½
    (True, 0.5)
    """
    check_gram_finite(K)
    if not likelihood.exact_moments:
        raise ModelError(
            f"expectation propagation needs exact moments of the likelihood; {type(likelihood).__name__} has none. "
            f"Try: Probit or Logistic, or Laplace's approximation."
        )
    n = len(y)
    offset = np.broadcast_to(np.asarray(offset, dtype=np.float64), (n,))
    sites = start if start is not None and len(start.tau) == n else _laplace_sites(K, y, likelihood, offset)
    work = np.empty_like(K, order="C")
    path = _Accelerated()
    rounds, given = 0, start is not None
    while True:
        rounds += 1
        found = _one_round(K, y, likelihood, sites, offset, work)
        if found.residual <= tol or rounds >= max_iter:
            break
        lost = not np.isfinite(found.residual + found.log_evidence)
        if given and (lost or found.residual > 1e3 or rounds == max_iter // 2):  # a start that leads nowhere
            sites, path, given = _laplace_sites(K, y, likelihood, offset), _Accelerated(), False
        elif lost:  # a kernel so large that rounding has the word: stay with Laplace, and say that it did not settle
            sites = _laplace_sites(K, y, likelihood, offset)
            found = _one_round(K, y, likelihood, sites, offset, work)
            break
        else:
            sites = path.next(sites, found)
    root = np.sqrt(sites.tau)
    factor = factor_b(K, root, work)
    alpha = sites.nu - root * factor.solve(root * (K @ sites.nu))
    return SiteFit(sites, alpha, root, factor, found.log_evidence, rounds, found.residual, found.residual <= tol)


def _laplace_sites(K: FloatArray, y: FloatArray, likelihood: Likelihood, offset: FloatArray) -> Sites:
    """The second-order expansion of the likelihood at the mode: near, and safe for every kernel."""
    mode = find_mode(K, y, likelihood, offset=offset, tol=1e-3)
    tau = mode.root**2
    return Sites(tau, tau * (mode.f - offset) + mode.slopes.first)


class _Accelerated:
    """Rounds of a fixed-point iteration, mixed by Anderson's method from the last few; plain damped steps in need."""

    depth = 4

    def __init__(self) -> None:
        self.points: list[FloatArray] = []
        self.moves: list[FloatArray] = []
        self.damping, self.best = 1.0, np.inf

    def next(self, sites: Sites, found: _Round) -> Sites:
        """The sites to try in the next round."""
        x = np.concatenate(sites)
        move = np.concatenate(found.new) - x
        if found.residual > 3.0 * self.best:  # away from where we have been: forget, and go shorter
            self.points, self.moves = [], []
            self.damping, self.best = max(0.6 * self.damping, 0.1), found.residual
        self.best = min(self.best, found.residual)
        self.points = [*self.points[-self.depth :], x]
        self.moves = [*self.moves[-self.depth :], move]
        step = self.damping * move
        if len(self.points) > 1 and found.residual < 0.1:
            D = np.diff(np.array(self.moves), axis=0).T
            weights = np.linalg.lstsq(D, move, rcond=1e-10)[0]
            mixed = step - (np.diff(np.array(self.points), axis=0).T + self.damping * D) @ weights
            if np.abs(mixed / (1.0 + np.abs(x))).max() <= 1e3 * found.residual:  # else it has lost its footing
                step = mixed
        moved = x + step
        n = len(sites.tau)
        return Sites(np.maximum(moved[:n], 0.0), moved[n:])


def ep_evidence(
    kernel: Kernel,
    X: Any,
    y: FloatArray,
    likelihood: Likelihood,
    *,
    gradient: bool = False,
    offset: FloatArray | float = 0.0,
    start: Sites | None = None,
    max_iter: int = 200,
) -> ApproximateEvidence:
    """log Z_EP and its gradient by theta: at matched sites only the explicit part is left, bar_K = ½ (α αᵀ − R).

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    y : observations, one per point.
    likelihood : p(y | f).
    gradient : whether the derivatives by theta are computed as well.
    offset : known part of the latent function at the training points.
    start : where the iteration begins, or None.
    max_iter : most steps that are taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.gp.likelihoods import Probit
    >>> from gramgraph.kernels import RBF
    >>> found = ep_evidence(2 * RBF(), [[0.0], [1.0]], np.array([1.0, -1.0]), Probit(), gradient=True)
    >>> round(found.value, 4), found.theta.round(4)
    (-1.6938, array([-0.1273, -0.3819]))
    """
    if not gradient:
        fit = find_sites(kernel.gram(X), y, likelihood, offset=offset, start=start, max_iter=max_iter)
        return ApproximateEvidence(fit.log_evidence, None, fit.sites, fit.rounds, fit.converged)
    K, pull = kernel.pullback(X)
    fit = find_sites(K, y, likelihood, offset=offset, start=start, max_iter=max_iter)
    V = fit.factor.inverse(overwrite=True)
    bar_K = cotangent_from_inverse(V, fit.root, 0.5 * fit.alpha, fit.alpha)
    return ApproximateEvidence(fit.log_evidence, pull(bar_K).theta, fit.sites, fit.rounds, fit.converged)


def ep_posterior(
    kernel: Kernel,
    X: Any,
    y: FloatArray,
    likelihood: Likelihood,
    *,
    prior_mean: float = 0.0,
    offset: FloatArray | float = 0.0,
    start: Sites | None = None,
    max_iter: int = 200,
) -> LatentPosterior:
    """The approximate posterior of the latent function.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    y : observations, one per point.
    likelihood : p(y | f).
    prior_mean : mean of the latent function before the data.
    offset : known part of the latent function at the training points.
    start : where the iteration begins, or None.
    max_iter : most steps that are taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.gp.likelihoods import Probit
    >>> from gramgraph.kernels import RBF
    >>> process = ep_posterior(RBF(), [[0.0], [1.0]], np.array([1.0, -1.0]), Probit())
    >>> mean, var = process.latent([[0.5]])
    >>> bool(abs(mean[0]) < 1e-9)
    True
    """
    fit = find_sites(kernel.gram(X), y, likelihood, offset=offset + prior_mean, start=start, max_iter=max_iter)
    return LatentPosterior.of(kernel, X, likelihood, fit, prior_mean, "ep", fit.rounds)
