"""Laplace's approximation of a Gaussian process seen through any log-concave likelihood.

The posterior p(f | y) ∝ p(y | f) N(f; m, K) is replaced by the Gaussian at its mode f̂ with precision K⁻¹ + W,
W = −∂²log p(y | f̂). Everything goes through B = I + W½ K W½, whose eigenvalues are at least 1; K itself is never
factored: duplicate points and length scales at their bounds do no harm.

log q(y) = log p(y | f̂) − ½ (f̂ − m)ᵀα − ½ log |B|, α = K⁻¹(f̂ − m) = ∂log p(y | f̂)/∂f. Source: Rasmussen and Williams,
"Gaussian Processes for Machine Learning" (2006), chapters 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.latent import ApproximateEvidence, LatentPosterior
from gramgraph.linalg.base import MAX_JITTER
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.gp.likelihoods import Derivatives, Likelihood
    from gramgraph.kernels.base import Kernel

_CHORDS = 12  # steps with one and the same factor
_SHRINK = 0.3  # a step with an old factor must be this much smaller than the one before


@dataclass(frozen=True, eq=False)
class Mode:
    """The most probable latent values, and the factor of B there."""

    alpha: FloatArray  # (n,) K⁻¹(f − offset)
    f: FloatArray  # (n,)
    root: FloatArray  # (n,) W½
    slopes: Derivatives  # of the log likelihood at f
    factor: DenseFactor  # of B
    log_joint: float  # log p(y | f) − ½ αᵀ(f − offset)
    steps: int  # factorizations
    converged: bool

    @property
    def log_evidence(self) -> float:
        """log q(y)."""
        return self.log_joint - 0.5 * self.factor.logdet


def factor_b(K: FloatArray, root: FloatArray, work: FloatArray) -> DenseFactor:
    """The factor of I + S½ K S½, in the memory of `work`."""
    np.multiply(K, root, out=work)
    work *= root[:, None]
    work[np.diag_indices_from(work)] += 1.0
    return DenseFactor(*factor_lower(work, max_jitter=MAX_JITTER, what="I + S½ K S½ of the latent process"))


def check_gram_finite(K: FloatArray) -> None:
    """Kernels with parameters beyond all measure overflow."""
    if not np.isfinite(K.sum()):
        raise ModelError(
            "the Gram matrix of the latent process has entries that are not finite. Try: scale the inputs, or "
            "kernel parameters of moderate size."
        )


def find_mode(
    K: FloatArray,  # (n, n), left as it is
    y: FloatArray,  # (n,)
    likelihood: Likelihood,
    *,
    offset: FloatArray | float = 0.0,
    start: FloatArray | None = None,
    max_iter: int = 100,
    tol: float = 1e-10,
) -> Mode:
    """The maximum of log p(y | f) − ½ (f − offset)ᵀK⁻¹(f − offset) by Newton's method with a line search.

    `start` is the f of a similar problem. A factor, n³/3 operations, is used for several steps while these shrink fast
    enough, O(n²) each; the last one is made at the mode, for the evidence. From a good start two are needed.

    >>> import numpy as np
    >>> from gramgraph.gp.likelihoods import Logistic
    >>> mode = find_mode(np.array([[4.0]]), np.array([1.0]), Logistic())
    >>> mode.f.round(4), (4.0 / (1.0 + np.exp(mode.f))).round(4)
    (array([1.0426]), array([1.0426]))
    """
    work = np.empty_like(K, order="C")
    base = np.broadcast_to(np.asarray(offset, dtype=np.float64), y.shape).copy()
    climb = Climb(K, y, likelihood, base)
    found, steps, converged = climb.run(lambda f: _Curved(K, likelihood.derivatives(y, f), work), start, max_iter, tol)
    return Mode(climb.alpha, climb.f, found.root, found.slopes, found.factor, climb.value, steps, converged)


class Linearized(Protocol):
    """The posterior with the likelihood replaced by its second-order expansion somewhere."""

    def weigh(self, f: FloatArray) -> FloatArray:
        """W f."""
        ...

    def solve(self, r: FloatArray) -> FloatArray:
        """(I + W K)⁻¹ r."""
        ...


class _Curved:
    """Diagonal W: one factor of B."""

    def __init__(self, K: FloatArray, slopes: Derivatives, work: FloatArray) -> None:
        self.K, self.slopes = K, slopes
        self.root = np.sqrt(np.maximum(-slopes.second, 0.0))
        self.factor = factor_b(K, self.root, work)

    def weigh(self, f: FloatArray) -> FloatArray:
        """W f."""
        return self.root**2 * f

    def solve(self, r: FloatArray) -> FloatArray:
        """r − W½ B⁻¹ W½ K r."""
        return r - self.root * self.factor.solve(self.root * (self.K @ r))


_L = TypeVar("_L", bound=Linearized)


class Climb:
    """Where Newton's method stands: α, f = offset + K α, and the log joint density; one column or one per class."""

    def __init__(self, K: FloatArray, y: Any, likelihood: Any, offset: FloatArray) -> None:
        check_gram_finite(K)
        self.K, self.y, self.likelihood, self.offset = K, y, likelihood, offset
        self.alpha = np.zeros_like(offset)
        self.f = offset.copy()
        self.size = np.inf  # of the first step with the last factorization
        self.stuck = False  # no step gains anything
        self.value = self._log_likelihood(self.f)
        if not np.isfinite(self.value):
            raise ModelError("the likelihood of the targets is not finite at the start: look at y and the offset.")

    def run(
        self, linearize: Callable[[FloatArray], _L], start: FloatArray | None, max_iter: int, tol: float
    ) -> tuple[_L, int, bool]:
        """Climb to the mode; what `linearize` made there, the number of its calls, and whether the steps became small.

        From the f of another kernel there is no way back to its α under this one, but Newton's step from it needs none:
        α = (I + W K)⁻¹ (W f + ∂log p). It is a far better start than the old α, for targets pin f more than α.
        """
        steps = 0
        if start is not None and start.shape == self.f.shape and max_iter > 1:
            found = linearize(start)
            steps += 1
            self._jump(found.solve(found.weigh(start - self.offset) + self.likelihood.gradient(self.y, start)))
            self.with_factor(found, tol)
            if float(np.abs(self.f - start).max()) <= tol * (1.0 + float(np.abs(start).max())):
                return found, steps, True  # the start was the mode
        last = np.inf
        while True:
            found = linearize(self.f)
            steps += 1
            converged = self.with_factor(found, tol)
            # small steps that no longer shrink, or that no longer gain, are rounding
            near = self.size <= 1e4 * tol * (1.0 + float(np.abs(self.f).max()))
            if converged or self.stuck or (near and self.size >= 0.5 * last) or steps >= max_iter:
                return found, steps, converged or near
            last = self.size

    def _log_likelihood(self, f: FloatArray) -> float:
        return float(self.likelihood.log_density(self.y, f).sum())

    def _jump(self, alpha: FloatArray) -> None:
        """Go to α when it is better there."""
        moved = self.K @ alpha
        value = self._log_likelihood(self.offset + moved) - 0.5 * float(np.vdot(alpha, moved))
        if value > self.value:
            self.alpha, self.f, self.value = alpha, self.offset + moved, value

    def with_factor(self, found: Linearized, tol: float) -> bool:
        """Steps with one factorization; True when the very first is already small: it is that of the mode."""
        last = np.inf
        for turn in range(_CHORDS):
            r = self.likelihood.gradient(self.y, self.f) - self.alpha
            d_alpha = found.solve(r)
            d_f = self.K @ d_alpha
            size, gain = float(np.abs(d_f).max()), float(np.vdot(r, d_f))
            if turn == 0:
                self.size = size
            least = tol if turn == 0 else 0.01 * tol  # steps with an old factor are cheap: go on to the end
            small = size <= least * (1.0 + float(np.abs(self.f).max())) or gain <= 1e-19 * (1.0 + abs(self.value))
            if turn > 0 and not small and size > _SHRINK * last:
                return False
            step = self._step(d_alpha, d_f, gain, small)
            self.stuck = step == 0.0 and not small
            if small:
                return turn == 0
            if step < 1.0:
                return False
            last = size
        return False

    def _step(self, d_alpha: FloatArray, d_f: FloatArray, gain: float, small: bool) -> float:
        """Go along the direction, half as far until the density rises; the length that was gone, 0 when none helps."""
        moved = self.f - self.offset
        linear = float(np.vdot(self.alpha, d_f)) + float(np.vdot(d_alpha, moved))
        here, square = float(np.vdot(self.alpha, moved)), float(np.vdot(d_alpha, d_f))
        slack = 1e-13 * (1.0 + abs(self.value) + abs(here))  # what rounding may hide
        step = 1.0
        while step > 1e-10:
            f = self.f + step * d_f
            value = self._log_likelihood(f) - 0.5 * (here + step * linear + step * step * square)
            if value >= self.value + 1e-4 * step * max(gain, 0.0) - slack:
                self.alpha, self.f, self.value = self.alpha + step * d_alpha, f, value
                return step
            if small:
                return 0.0
            step *= 0.5
        return 0.0


def evidence_cotangent(mode: Mode, K: FloatArray) -> FloatArray:
    """∂ log q(y)/∂K, (n, n), in the memory of the mode's factor, which is destroyed; 2n³/3 operations.

    ½ (α αᵀ − R) + u αᵀ with R = W½ B⁻¹ W½. The last term is the movement of the mode: s = ∂(−½ log |B|)/∂f and
    u = s − R K s. The posterior variances that s needs stand in the diagonal of B⁻¹: Σᵢᵢ Wᵢ = 1 − (B⁻¹)ᵢᵢ.
    """
    V = mode.factor.inverse(overwrite=True)
    w = mode.root**2
    bend = np.divide(mode.slopes.third, w, out=np.zeros_like(w), where=w > 1e-290)
    s = 0.5 * np.maximum(1.0 - V.diagonal(), 0.0) * bend
    u = s - mode.root * (V @ (mode.root * (K @ s)))
    return cotangent_from_inverse(V, mode.root, 0.5 * mode.alpha + u, mode.alpha)


def cotangent_from_inverse(V: FloatArray, root: FloatArray, left: FloatArray, alpha: FloatArray) -> FloatArray:
    """left αᵀ − ½ S½ V S½, in the memory of V = B⁻¹."""
    from scipy.linalg.blas import dger

    V *= root
    V *= (-0.5 * root)[:, None]
    dger(1.0, alpha, left, a=V.T, overwrite_a=1)  # V is C-ordered: its transposed view is what BLAS can write into
    return V


def laplace_evidence(
    kernel: Kernel,
    X: Any,
    y: FloatArray,
    likelihood: Likelihood,
    *,
    gradient: bool = False,
    offset: FloatArray | float = 0.0,
    start: FloatArray | None = None,
    max_iter: int = 100,
) -> ApproximateEvidence:
    """log q(y) and, with `gradient`, its derivatives by theta in closed form: one bar_K, pulled back by the kernel.

    O(n³) once, O(n²) a parameter; four (n, n) arrays and no (n, n, p) one.

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
    >>> from gramgraph.gp.likelihoods import Logistic
    >>> from gramgraph.kernels import RBF
    >>> found = laplace_evidence(2 * RBF(), [[0.0], [1.0]], np.array([1.0, -1.0]), Logistic(), gradient=True)
    >>> round(found.value, 4), found.theta.round(4)
    (-1.5982, array([-0.1485, -0.1922]))
    """
    if not gradient:
        K = kernel.gram(X)
        mode = find_mode(K, y, likelihood, offset=offset, start=start, max_iter=max_iter)
        return ApproximateEvidence(mode.log_evidence, None, mode.f, mode.steps, mode.converged)
    K, pull = kernel.pullback(X)
    mode = find_mode(K, y, likelihood, offset=offset, start=start, max_iter=max_iter)
    value = mode.log_evidence
    theta = pull(evidence_cotangent(mode, K)).theta
    return ApproximateEvidence(value, theta, mode.f, mode.steps, mode.converged)


def laplace_posterior(
    kernel: Kernel,
    X: Any,
    y: FloatArray,
    likelihood: Likelihood,
    *,
    prior_mean: float = 0.0,
    offset: FloatArray | float = 0.0,
    start: FloatArray | None = None,
    max_iter: int = 100,
) -> LatentPosterior:
    """The approximate posterior of the latent function. `offset` is known at the training points, added to the mean.

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
    >>> from gramgraph.gp.likelihoods import Poisson
    >>> from gramgraph.kernels import RBF
    >>> x = np.linspace(0.0, 3.0, 30)
    >>> counts = np.round(np.exp(1.0 + np.sin(2.0 * x)))
    >>> process = laplace_posterior(RBF(), x[:, None], counts, Poisson(), prior_mean=1.0)
    >>> mean, var = process.latent([[0.75]])
    >>> bool(abs(mean[0] - 2.0) < 0.2)
    True
    """
    K = kernel.gram(X)
    mode = find_mode(K, y, likelihood, offset=offset + prior_mean, start=start, max_iter=max_iter)
    return LatentPosterior.of(kernel, X, likelihood, mode, prior_mean, "laplace", mode.steps)
