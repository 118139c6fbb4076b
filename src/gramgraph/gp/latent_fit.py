"""Hyper-parameters of latent Gaussian processes: evidence, posterior and search behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp._likelihood import Weighted
from gramgraph.gp.ascent import curvature_at, quasi_newton
from gramgraph.gp.ep import ep_evidence, ep_posterior
from gramgraph.gp.hyper import Objective, Search, ascend, random_starts
from gramgraph.gp.laplace import laplace_evidence, laplace_posterior
from gramgraph.gp.latent import ApproximateEvidence, LatentPosterior
from gramgraph.gp.mixture import Mixture, integrate_over
from gramgraph.gp.softmax import SoftmaxPosterior, softmax_evidence, softmax_posterior
from gramgraph.linalg.base import PositiveDefiniteError
from gramgraph.linalg.blocks import select
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.gp.likelihoods import Likelihood
    from gramgraph.kernels.base import Kernel

_WORTH = 600  # from so many points on, the search begins on a part of them
_SHARE = 4  # one point in so many
_MOST = 1000  # points of that part
_WIDE = 40  # parameters up to which the curvature is worth its differences


class Problem(Protocol):
    """Targets that were seen through a likelihood, for any kernel."""

    @property
    def n(self) -> int:
        """Number of points."""
        ...

    def evidence(self, kernel: Kernel, gradient: bool, start: Any) -> ApproximateEvidence:
        """log q(y) and its gradient."""
        ...

    def posterior(self, kernel: Kernel, start: Any) -> Any:
        """The latent process given the targets."""
        ...

    def part(self, size: int, rng: np.random.Generator) -> Problem:
        """About so many of the points, at random."""
        ...


@dataclass(frozen=True, eq=False)
class LatentProblem:
    """One latent function.

    Parameters
    ----------
    X : points, one per row.
    y : observations, one per point.
    likelihood : p(y | f).
    inference : "laplace" or "ep".
    prior_mean : mean of the latent function before the data.
    offset : known part of the latent function at the training points.
    max_iter : most steps that are taken.
    weights : (n,) of the points, for Laplace's approximation only; None for equal ones.
    shift : a known mean that is added to the prior mean, or None.

    Examples
    --------
    >>> from gramgraph.gp import Probit
    >>> problem = LatentProblem(np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), Probit())
    >>> problem.inference
    'laplace'
    """

    X: Any
    y: FloatArray
    likelihood: Likelihood
    inference: str = "laplace"
    prior_mean: float = 0.0
    offset: FloatArray | float = 0.0
    max_iter: int = 100
    weights: FloatArray | None = None  # (n,) of the points; Laplace's approximation only
    shift: Any = None  # a `KnownMean` that is added to the prior mean, everywhere

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.y)

    @property
    def _seen(self) -> Likelihood:
        return self.likelihood if self.weights is None else Weighted(self.likelihood, self.weights)

    @property
    def _known(self) -> FloatArray | float:
        """What is known of the latent function at the points, beside its constant."""
        return self.offset if self.shift is None else self.offset + self.shift.at(self.X)

    def evidence(self, kernel: Kernel, gradient: bool, start: Any) -> ApproximateEvidence:
        """log q(y) and its gradient."""
        run = ep_evidence if self.inference == "ep" else laplace_evidence
        found: ApproximateEvidence = run(
            kernel,
            self.X,
            self.y,
            self._seen,
            gradient=gradient,
            offset=self._known + self.prior_mean,
            start=start,
            max_iter=self.max_iter,
        )
        return found

    def posterior(self, kernel: Kernel, start: Any) -> LatentPosterior:
        """The latent process given the targets."""
        run = ep_posterior if self.inference == "ep" else laplace_posterior
        found: LatentPosterior = run(
            kernel,
            self.X,
            self.y,
            self._seen,
            prior_mean=self.prior_mean,
            offset=self._known,
            start=start,
            max_iter=self.max_iter,
        )
        return replace(found, likelihood=self.likelihood, shift=self.shift)  # new points have the weight 1

    def part(self, size: int, rng: np.random.Generator) -> LatentProblem:
        """Some of the points."""
        rows = _spread_rows(self.y, size, rng)
        offset = self.offset if np.ndim(self.offset) == 0 else np.asarray(self.offset)[rows]
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=select(self.X, rows), y=self.y[rows], offset=offset, weights=weights)


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    """One latent function per class.

    Parameters
    ----------
    X : points, one per row.
    codes : (n,) class numbers from 0.
    n_classes : number of classes.
    max_iter : most steps that are taken.

    Examples
    --------
    >>> problem = SoftmaxProblem(np.array([[-1.0], [0.0], [1.0]]), np.array([0, 1, 2]), 3)
    >>> problem.n_classes
    3
    """

    X: Any
    codes: IntArray
    n_classes: int
    max_iter: int = 100

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.codes)

    def evidence(self, kernel: Kernel, gradient: bool, start: Any) -> ApproximateEvidence:
        """log q(y) and its gradient."""
        return softmax_evidence(
            kernel, self.X, self.codes, self.n_classes, gradient=gradient, start=start, max_iter=self.max_iter
        )

    def posterior(self, kernel: Kernel, start: Any) -> SoftmaxPosterior:
        """The latent processes given the classes."""
        return softmax_posterior(kernel, self.X, self.codes, self.n_classes, start=start, max_iter=self.max_iter)

    def part(self, size: int, rng: np.random.Generator) -> SoftmaxProblem:
        """Some of the points."""
        rows = _spread_rows(self.codes, size, rng)
        return replace(self, X=select(self.X, rows), codes=self.codes[rows])


def _spread_rows(y: Any, size: int, rng: np.random.Generator) -> IntArray:
    """Random rows, in their order, evenly over the sorted targets: every class and every size of y is there."""
    order = rng.permutation(len(y))
    order = order[np.argsort(np.asarray(y)[order], kind="stable")]
    at = np.linspace(0, len(y) - 1, min(size, len(y))).round().astype(np.int64)
    return np.sort(order[np.unique(at)])


@dataclass(frozen=True, eq=False)
class LatentFit:
    """A kernel with its parameters, the posterior, and what a similar fit may start from."""

    kernel: Kernel
    posterior: Any
    start: Any
    search: Search | None  # None: parameters were given, or chosen by an optimizer of the caller
    mixture: Mixture | None = None  # posteriors at several parameters, see `spread_latent`

    @property
    def log_evidence(self) -> float:
        """log q(y)."""
        return float(self.posterior.log_evidence)

    @property
    def parts(self) -> list[tuple[float, Any]]:
        """Weights and posteriors: one of each, or those of the mixture."""
        if self.mixture is None:
            return [(1.0, self.posterior)]
        return list(zip(self.mixture.weights.tolist(), self.mixture.parts, strict=True))


class _Warm:
    """The evidence as a function of theta; every call starts from the mode (or the sites) of the last one."""

    def __init__(self, problem: Problem, kernel: Kernel, start: Any = None) -> None:
        self.problem, self.kernel, self.start = problem, kernel, start

    def __call__(self, theta: FloatArray, gradient: bool) -> tuple[float, FloatArray | None]:
        try:
            found = self.problem.evidence(self.kernel.with_theta(theta), gradient, self.start)
        except (PositiveDefiniteError, ModelError):  # parameters beyond reason: a bad place, not an error
            return -np.inf, np.zeros_like(theta)
        self.start = found.start
        return found.value, found.theta


def fit_latent(
    problem: Problem,
    kernel: Kernel,
    bounds: FloatArray,
    *,
    optimizer: str | Callable[..., Any] | None = "fmin_l_bfgs_b",
    restarts: int = 0,
    rng: np.random.Generator | None = None,
    start: Any = None,
) -> LatentFit:
    """The parameters with the largest evidence inside the bounds, and the posterior there.

    With many points the ascents begin on every fourth of them, where a step costs 1/64; the ends (also of a start
    with larger amplitudes) are compared on all points, and the best one is followed further, with the curvature that
    the part of the points has told.

    Parameters
    ----------
    problem : the points and the likelihood.
    kernel : where the search begins.
    bounds : (p, 2) of theta.
    optimizer : "fmin_l_bfgs_b", a function, or None to keep the kernel.
    restarts : further starts, drawn inside the bounds.
    rng : generator of random numbers.
    start : posterior to begin at, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.gp.likelihoods import Logistic
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(-3.0, 3.0, 40)[:, None]
    >>> kernel = 1.0 * RBF()
    >>> fit = fit_latent(LatentProblem(X, np.sign(np.sin(2 * X[:, 0])), Logistic()), kernel, kernel.bounds)
    >>> fit.log_evidence > LatentProblem(X, np.sign(np.sin(2 * X[:, 0])), Logistic()).evidence(
    ...     kernel, False, None
    ... ).value
    True
    """
    rng = np.random.default_rng() if rng is None else rng
    warm = _Warm(problem, kernel, start)
    found: Search | None = None
    if optimizer is not None and len(kernel.theta):
        if callable(optimizer):
            kernel = kernel.with_theta(_by_callable(optimizer, warm, kernel.theta, bounds, restarts, rng))
        else:
            found = _search(problem, warm, kernel, bounds, restarts, rng)
            kernel = kernel.with_theta(found.theta)
    return LatentFit(kernel, problem.posterior(kernel, warm.start), warm.start, found)


def spread_latent(
    problem: Problem,
    fit: LatentFit,
    bounds: FloatArray,
    *,
    how: str,
    size: int | None = None,
    rng: np.random.Generator | None = None,
) -> LatentFit:
    """The same fit with posteriors at several parameters, weighted by their evidence; the prior is flat in theta.

    `how` is "quadrature" (size^p nodes around the best parameters, default 3) or "slice" (size draws, default 20).

    Parameters
    ----------
    problem : the points and the likelihood.
    fit : the best parameters with their posterior.
    bounds : (p, 2) of theta.
    how : "quadrature" or "slice".
    size : nodes along an axis, or number of draws.
    rng : generator of random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.gp.likelihoods import Logistic
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(-3.0, 3.0, 30)[:, None]
    >>> problem, kernel = LatentProblem(X, np.sign(np.sin(2 * X[:, 0])), Logistic()), 1.0 * RBF()
    >>> fit = spread_latent(problem, fit_latent(problem, kernel, kernel.bounds), kernel.bounds, how="quadrature")
    >>> len(fit.parts), round(sum(weight for weight, _ in fit.parts), 6)
    (9, 1.0)
    """
    if len(fit.kernel.theta) == 0:
        return fit
    warm = _Warm(problem, fit.kernel, fit.start)
    mixture = integrate_over(
        lambda theta: warm(theta, False)[0],
        lambda theta: problem.posterior(fit.kernel.with_theta(theta), fit.start),
        fit.kernel.theta,
        bounds,
        how=how,
        size=size,
        rng=np.random.default_rng() if rng is None else rng,
    )
    return replace(fit, mixture=mixture)


def _search(
    problem: Problem, warm: _Warm, kernel: Kernel, bounds: FloatArray, restarts: int, rng: np.random.Generator
) -> Search:
    theta = np.clip(kernel.theta, bounds[:, 0], bounds[:, 1])
    starts = [theta, *random_starts(theta, bounds, restarts, rng)]
    if problem.n < _WORTH:
        return _best([ascend(warm, start, bounds) for start in starts])
    small, other = (problem.part(min(problem.n // _SHARE, _MOST), rng) for _ in range(2))
    loud = np.clip(_louder(kernel, theta), bounds[:, 0], bounds[:, 1])
    tries = [(small, start) for start in (starts[0], loud, *starts[1:])]
    if len(theta) > 2:  # many parameters, many hills
        tries.append((other, loud))
    ends = [ascend(_Warm(part, kernel), start, bounds, tol=1e-6, steps=100) for part, start in tries]
    ranked = sorted(_apart(ends), key=lambda t: -warm(t, False)[0])
    # with restarts the two best ends are followed, as they may lie on different hills
    found = []
    for start in ranked[: 2 if restarts else 1]:
        if len(theta) > _WIDE:
            found.append(ascend(warm, start, bounds))
        else:
            bend = curvature_at(_Warm(small, kernel), start, bounds)
            found.append(quasi_newton(warm, start, bounds, bend * (problem.n / small.n)))
    return replace(_best(found), evaluations=sum(s.evaluations for s in found) + len(ranked))


def _louder(kernel: Kernel, theta: FloatArray) -> FloatArray:
    """Larger amplitudes, by e³: a few points find a smooth and quiet function good enough where many do not."""
    loud = [name.rsplit(".", 1)[-1] in ("variance", "value") for name in kernel.parameter_names]
    return theta + 3.0 * np.array(loud, dtype=np.float64)


def _apart(ends: list[Search]) -> list[FloatArray]:
    """The ends that differ, best first, at most four."""
    kept: list[Search] = []
    for end in sorted(ends, key=lambda e: -e.value):
        if all(abs(end.value - other.value) > 1e-2 for other in kept):
            kept.append(end)
    return [end.theta for end in kept[:4]]


def _best(found: list[Search]) -> Search:
    best = max(found, key=lambda s: s.value)
    return replace(
        best, evaluations=sum(s.evaluations for s in found), optima=tuple(o for s in found for o in s.optima)
    )


def _by_callable(
    optimizer: Callable[..., Any],
    objective: Objective,
    theta: FloatArray,
    bounds: FloatArray,
    restarts: int,
    rng: np.random.Generator,
) -> FloatArray:
    """An optimizer of the caller, as scikit-learn calls it: it minimizes, and gives back (theta, value)."""

    def negative(t: FloatArray, eval_gradient: bool = True) -> Any:
        value, slope = objective(np.asarray(t, dtype=np.float64), eval_gradient)
        return (-value, -slope) if eval_gradient and slope is not None else -value

    starts = [theta, *random_starts(theta, bounds, restarts, rng)]
    ends = [optimizer(negative, start, bounds=bounds) for start in starts]
    return np.asarray(min(ends, key=lambda end: float(end[1]))[0], dtype=np.float64)
