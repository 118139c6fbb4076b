"""What the estimators with a latent Gaussian process share: options, points, one fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_choice, check_count, generator
from gramgraph.estimators._gp_kernels import as_process_kernel, check_restarts
from gramgraph.estimators._gp_points import ProcessPoints
from gramgraph.exceptions import ModelError
from gramgraph.gp.latent_fit import LatentFit, Problem, fit_latent, spread_latent
from gramgraph.typing import FloatArray


@dataclass(eq=False, repr=False)
class LatentEstimator(ProcessPoints):
    """Base of classifiers and count models."""

    kernel: Any = None
    _: KW_ONLY
    optimizer: str | Callable[..., Any] | None = "fmin_l_bfgs_b"
    n_restarts_optimizer: int = 0
    max_iter_predict: int = 100
    warm_start: bool = False
    copy_X_train: bool = True
    random_state: Any = None

    def _check_options(self) -> None:
        if isinstance(self.optimizer, str):
            check_choice("optimizer", self.optimizer, ("fmin_l_bfgs_b",))
        elif self.optimizer is not None and not callable(self.optimizer):
            raise ModelError(f"optimizer must be 'fmin_l_bfgs_b', a function, or None; it is {self.optimizer!r}.")
        check_count("n_restarts_optimizer", self.n_restarts_optimizer, 0)
        check_count("max_iter_predict", self.max_iter_predict)
        for name in ("warm_start", "copy_X_train"):
            check_choice(name, getattr(self, name), (True, False))

    def _generator(self) -> np.random.Generator:
        return generator(0 if self.random_state is None else self.random_state)  # two fits without a seed agree

    def _new_points(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._points(X, reset=False, least=0)

    def _fit_one(self, problem: Problem, old: LatentFit | None, seed: int) -> LatentFit:
        """One latent process; with `old`, from its parameters and its mode on."""
        kernel, bounds = as_process_kernel(self.kernel, getattr(problem, "X", None))
        check_restarts(bounds, self.n_restarts_optimizer if self.optimizer is not None else 0)
        kernel = self._whole(kernel)
        if old is not None and old.kernel.theta.shape == kernel.theta.shape:
            kernel = kernel.with_theta(old.kernel.theta)
        fit = fit_latent(
            problem,
            kernel,
            bounds,
            optimizer=self.optimizer,
            restarts=self.n_restarts_optimizer,
            rng=np.random.default_rng(seed),
            start=None if old is None else old.start,
        )
        if getattr(self, "integrate", None) is not None:
            fit = spread_latent(
                problem,
                fit,
                bounds,
                how=str(getattr(self, "integrate", "")),
                size=getattr(self, "n_hyper", None),
                rng=np.random.default_rng(seed + 1),
            )
        if not fit.posterior.converged:
            warnings.warn(
                f"{type(self).__name__}: the approximation had not settled after max_iter_predict="
                f"{self.max_iter_predict} rounds; raise it, or look at the scale of the inputs.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return fit

    def _whole(self, kernel: Any) -> Any:
        """The kernel with what else is random in the latent function."""
        return kernel

    def _theta_of(self, theta: Any, size: int) -> FloatArray:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (size,):
            raise ModelError(
                f"theta must have shape ({size},), one number a free kernel parameter; it is {theta.shape}."
            )
        return theta
