"""How `GaussianProcessRegressor` finds the parameters of its kernel."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph._threads import one_thread
from gramgraph._validation import check_jobs
from gramgraph.gp.hyper import Objective, Search, random_starts, search
from gramgraph.gp.methods import Exact, subset
from gramgraph.gp.priors import prior_density
from gramgraph.linalg.base import PositiveDefiniteError
from gramgraph.typing import FloatArray

_SMALL = 256  # points of the subset on which restarts are followed first
_LARGE = 2000  # points of the subset where the method has no gradient
_WORTH = 400  # below this number of points a subset saves nothing
_MANY = 1500  # from this number on a third of the points saves most steps on all of them


class KernelSearch:
    """One search: `run` gives the kernel; `method` is the way it is best for, `found` how it was found."""

    def __init__(
        self, estimator: Any, method: Any, bounds: FloatArray, rng: np.random.Generator, repeats: Any = None
    ) -> None:
        self.optimizer, self.restarts = estimator.optimizer, int(estimator.n_restarts_optimizer)
        self.n_inducing, self.hyper_prior = estimator.n_inducing, estimator.hyper_prior
        self.moves = bool(estimator.optimize_inducing)
        self.n_jobs = check_jobs(1 if estimator.n_jobs is None else estimator.n_jobs)
        self.method, self.bounds, self.rng = method, bounds, rng
        self.repeats = repeats  # `Repeats`, of rows that are taken together while parameters are learned
        self.found: Search | None = None

    def objective(self, method: Any, kernel: Any) -> Objective:
        """log p(Y) and the log prior of theta, with gradients."""
        density = prior_density(self.hyper_prior, kernel.parameter_names)

        def objective(theta: FloatArray, gradient: bool) -> tuple[float, FloatArray | None]:
            try:
                value, slope = method.evidence(kernel.with_theta(theta), gradient)
            except PositiveDefiniteError:
                return -np.inf, np.zeros_like(theta)
            if density is not None:
                more, more_slope = density(theta)
                value, slope = value + more, None if slope is None else slope + more_slope
            return value, slope

        return objective

    def run(self, kernel: Any) -> Any:
        """The kernel with its learned parameters."""
        method = self.method
        if hasattr(method, "start"):  # the method has parameters beside those of the kernel
            method.start(kernel, self.optimizer is not None, self.bounds, self.rng, self.restarts)
            self.found = method.search
            return method.kernel
        if self.optimizer is not None and len(kernel.theta):
            by_caller = callable(self.optimizer)
            kernel = kernel.with_theta(self._by_caller(kernel) if by_caller else self._ascended(kernel))
        return self._moved(kernel) if self.moves and hasattr(method, "evidence_by_points") else kernel

    def _target(self) -> Any:
        """The method for the distinct points: its evidence, without a constant that would drown it."""
        return self.method if self.repeats is None else self.method.with_data(self.repeats.points)

    def _ascended(self, kernel: Any) -> FloatArray:
        target = self._target()
        if target.name in ("rff", "cg"):  # no gradient of their own: learn from the exact evidence of a subset
            target = Exact(subset(target.data, _LARGE, self.rng))
        theta, restarts, small, share, middle = kernel.theta, self.restarts, None, 1.0, None
        if target.data.n > _WORTH and (restarts or not target.exact):
            size = _SMALL if target.exact else _LARGE // 2
            share = min(1.0, size / target.data.n)
            small = self.objective(Exact(subset(target.data, size, self.rng)), kernel)
            if hasattr(target, "reselected"):  # inducing points go where the kernel of the subset wants them
                theta, restarts = search(small, theta, self.bounds, restarts=restarts, random_state=self.rng).theta, 0
                target = target.reselected(kernel.with_theta(theta), self.n_inducing, self.rng)
                self.method = target.with_data(self.method.data)
                if self.moves:  # parameters that suit these places may not suit better ones: both move together
                    return theta
            elif target.exact and target.data.n >= _MANY:
                third = target.data.n // 3
                middle = self.objective(Exact(subset(target.data, third, self.rng)), kernel), third / target.data.n
        with one_thread() if target.data.n <= _WORTH else nullcontext():
            self.found = search(
                self.objective(target, kernel),
                theta,
                self.bounds,
                restarts=restarts,
                small=small,
                share=share,
                middle=middle,
                tol=1e-9 if target.exact else 1e-6,
                random_state=self.rng,
                n_jobs=self.n_jobs,
            )
        if self.repeats is not None:
            rest = self.repeats.log_rest
            optima = tuple((value + rest, theta) for value, theta in self.found.optima)
            self.found = replace(self.found, value=self.found.value + rest, optima=optima)
        return self.found.theta

    def _moved(self, kernel: Any) -> Any:
        from gramgraph.gp.inducing import move_inducing

        self.method, kernel, found = move_inducing(
            self.method,
            kernel,
            self.bounds,
            learn=self.optimizer is not None,
            density=prior_density(self.hyper_prior, kernel.parameter_names),
        )
        earlier = 0 if self.found is None else self.found.evaluations
        self.found = replace(found, evaluations=earlier + found.evaluations)
        return kernel

    def _by_caller(self, kernel: Any) -> FloatArray:
        """An optimizer of the caller, as scikit-learn calls it: it minimizes, and gives back (theta, value)."""
        objective = self.objective(self._target(), kernel)

        def negative(theta: FloatArray, eval_gradient: bool = True) -> Any:
            value, slope = objective(np.asarray(theta, dtype=float), eval_gradient)
            return (-value, -slope) if eval_gradient and slope is not None else -value

        starts = [kernel.theta, *random_starts(kernel.theta, self.bounds, self.restarts, self.rng)]
        ends = [self.optimizer(negative, start, bounds=self.bounds) for start in starts]
        return np.asarray(min(ends, key=lambda pair: float(pair[1]))[0])
