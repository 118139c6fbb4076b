"""Gaussian process regression behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array

from gramgraph._drawn import Explored
from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._threads import spare_threads
from gramgraph._validation import check_choice, check_count, generator
from gramgraph.conditionals import LinearGaussian, Predictor
from gramgraph.estimators._gp_kernels import (
    as_process_kernel,
    check_restarts,
    warn_at_bounds,
    warn_of_noise,
    warn_of_repeats,
)
from gramgraph.estimators._gp_points import ProcessPoints
from gramgraph.exceptions import ModelError
from gramgraph.gp.choose import APPROXIMATIONS, choose
from gramgraph.gp.means import as_mean
from gramgraph.gp.methods import Data
from gramgraph.gp.mixture import PriorProcess, integrate_over
from gramgraph.gp.posterior import LeaveOneOut, gaussian
from gramgraph.gp.repeats import repeats_of
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray

_MANY = 1000  # points from which on the last factorization is shared out among threads


@dataclass(eq=False, repr=False)
class GaussianProcessRegressor(Explored, RegressorMixin, MultiOutputMixin, ProcessPoints):
    """y = m(x) + f(x) + ε with f a Gaussian process of the given kernel; hyper-parameters by evidence.

    Takes the parameters and answers the methods of scikit-learn's class of this name, and its kernels too.

    Parameters
    ----------
    kernel : a kernel value; `White` terms are noise that is learned, and part of predicted deviations. None:
        `1.0 * RBF(1.0)`, learned. Kernels of scikit-learn are translated.
    alpha : variance of the noise at training points: one number, (n,) for noise that differs, or its whole covariance Λ
        (n, n) where the noise of points is correlated (exact way only). Rows that coincide and have next to none are
        fitted through their mean, with a warning where they disagree.
    optimizer : "fmin_l_bfgs_b", None (parameters stay), or a function (objective, theta, bounds) ↦ (theta, value).
    n_restarts_optimizer : further starts; with many points they are followed on a subset first.
    normalize_y : center and scale y before learning.
    mean : None, "constant", "linear", a `gramgraph.gp.Mean`, or a fixed function of X.
    approx : "auto", "exact", "state_space", "kronecker", "toeplitz", "titsias", "fitc", "sor", "rff", "cg"; "auto"
        takes an exact way as long as n allows one, and says why in `explanation_`.
    n_inducing : inducing points, features of "rff", or rank of the preconditioner of "cg".
    hyper_prior : dict from parameter names to priors (`gramgraph.gp.LogNormal` …): the mode of the posterior is taken.
    integrate : None, "slice" or "quadrature": average over hyper-parameters instead of taking the best ones.
    n_hyper : draws of "slice", or nodes a dimension of "quadrature" (default 20 and 3).
    coregionalization : rank r of B = W Wᵀ + diag(κ) for several outputs with covariance B ⊗ k + diag(noise) ⊗ I, all
        learned; None: outputs are independent and share the kernel.
    optimize_inducing : whether the places of inducing points are learned too, together with the kernel's parameters.
    noise : None, "learned", or a kernel: the variance of the noise is a function of x whose logarithm is a second
        process (with that kernel), learned with the first (`gramgraph.gp.hetero`) and added to `alpha`. Predicted
        deviations then contain it, `predict_noise(X)` gives it alone. Exact way only.
    random_state : seed of restarts, draws and features.
    copy_X_train : whether the points are copied; else they must not be changed.
    n_targets : columns of y; None: as many as come, and one in draws before a fit.
    n_jobs : threads over the restarts; None for one, -1 for one a processor. The numbers do not depend on it.

    Attributes
    ----------
    kernel_, log_marginal_likelihood_value_, alpha_, L_ (dense ways), X_train_, y_train_, jitter_ (what had to be added
    to the diagonal), approx_, exact_, explanation_, posterior_ (the process as a value: condition, sample, gradient),
    search_ (how the parameters were found), loo_ (leave-one-out moments, exact way).

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph import GaussianProcessRegressor, kernels
    >>> X = np.linspace(0, 6, 25)[:, None]
    >>> gp = GaussianProcessRegressor(kernels.RBF() + kernels.White(0.1)).fit(X, np.sin(X[:, 0]))
    >>> mean, std = gp.predict([[1.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 1e-3), gp.approx_, gp.jitter_
    (True, 'exact', 0.0)
    """

    kernel: Any = None
    _: KW_ONLY
    alpha: float | FloatArray = 1e-10
    optimizer: str | Callable[..., Any] | None = "fmin_l_bfgs_b"
    n_restarts_optimizer: int = 0
    normalize_y: bool = False
    copy_X_train: bool = True
    n_targets: int | None = None
    random_state: Any = None
    mean: Any = None
    approx: str = "auto"
    n_inducing: int = 500
    hyper_prior: Any = None
    integrate: str | None = None
    n_hyper: int | None = None
    coregionalization: int | None = None
    optimize_inducing: bool = False
    noise: Any = None
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Learn hyper-parameters and condition the process on the data."""
        from gramgraph.estimators._gp_search import KernelSearch

        self._check_options()
        data, kernel = self._read(X, y)
        rng = generator(self.random_state)
        self.X_train_, self.y_train_ = data.X, data.Y[:, 0] if self._flat else data.Y
        method, self.explanation_ = choose(
            self.approx,
            kernel,
            data,
            n_inducing=self.n_inducing,
            rank=self.coregionalization,
            noise=self.noise,
            rng=rng,
        )
        self.approx_, self.exact_ = method.name, method.exact
        repeats = getattr(method, "repeats", None) if method.exact else repeats_of(kernel, data)
        told = warn_of_repeats(repeats, self.alpha)
        search = KernelSearch(self, method, self._bounds, rng, repeats)
        check_restarts(self._bounds, int(self.n_restarts_optimizer) if self.optimizer is not None else 0)
        self.kernel_ = search.run(kernel)
        self._method, self.search_ = search.method, search.found
        if self.optimizer is not None and len(self.kernel_.theta):
            warn_at_bounds([self.kernel_], self.kernel)
            if self.noise is None and not told:
                warn_of_noise(self.kernel_, data.X, data.noise)
        with spare_threads(search.n_jobs if len(data.Y) >= _MANY else 1):
            self._condition(self._method.posterior(self.kernel_))
        if self.integrate is not None:
            self._integrate(search, rng)
        return self

    def _check_options(self) -> None:
        check_choice("approx", self.approx, APPROXIMATIONS)
        check_choice("integrate", self.integrate, (None, "slice", "quadrature"))
        check_choice("optimize_inducing", self.optimize_inducing, (True, False))
        if isinstance(self.noise, str):
            check_choice("noise", self.noise, ("learned",))
        if isinstance(self.optimizer, str):
            check_choice("optimizer", self.optimizer, ("fmin_l_bfgs_b",))
        check_count("n_restarts_optimizer", self.n_restarts_optimizer, 0)
        check_count("n_inducing", self.n_inducing)

    def _read(self, X: Any, y: Any) -> tuple[Any, Any]:
        X = self._points(X, reset=True, keep=bool(self.copy_X_train))
        n = count(X)
        y = self._targets(y, n)
        Y = y.reshape(n, -1).copy()
        self._flat = Y.shape[1] == 1  # a column counts as a vector, as scikit-learn has it
        if self.n_targets is not None and Y.shape[1] != self.n_targets:
            raise ModelError(f"n_targets is {self.n_targets}, but y has {Y.shape[1]} columns.")
        if self.normalize_y:
            self._y_mean, spread = Y.mean(0), Y.std(0)
            self._y_scale = np.where(spread > 10 * np.finfo(float).eps * np.abs(self._y_mean), spread, 1.0)
            Y = (Y - self._y_mean) / self._y_scale
        else:
            self._y_mean, self._y_scale = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        kernel, self._bounds = as_process_kernel(self.kernel, X, fixed=False)
        noise, cross = self._noise(self.alpha, n)
        return Data(X, Y, noise, as_mean(self.mean), cross), kernel

    def _noise(self, alpha: Any, n: int) -> tuple[FloatArray, FloatArray | None]:
        """Variances (n,), and covariances between points where there are some."""
        noise = np.asarray(alpha, dtype=float)
        if noise.shape == (n, n) and noise.ndim == 2:
            return _covariance(noise)
        if noise.ndim > 1 or (noise.ndim == 1 and noise.shape != (n,) and noise.size != 1):
            raise ModelError(
                f"alpha must be a scalar or an array with same number of entries as y, one entry per "
                f"point, {n}; its shape is {noise.shape}."
            )
        if not np.isfinite(noise).all() or (noise < 0).any():
            raise ModelError(f"alpha must not be negative; it is {alpha!r}.")
        return np.broadcast_to(noise, (n,)).copy(), None

    def _condition(self, posterior: Any) -> None:
        self.posterior_ = posterior
        self.jitter_ = float(posterior.jitter)
        self.log_marginal_likelihood_value_ = float(posterior.log_evidence)
        if np.isnan(self.log_marginal_likelihood_value_):
            raise ModelError(
                f"approx_={self.approx_!r}: the evidence overflows, y up to {np.abs(self.y_train_).max():.3g} under "
                f"{posterior.kernel!r}. Try: normalize_y=True, or a kernel with a larger variance."
            )
        for name in ("alpha_", "L_", "mixture_"):
            self.__dict__.pop(name, None)
        if hasattr(posterior, "alpha"):
            alpha = getattr(posterior, "row_alpha", posterior.alpha)
            self.alpha_ = alpha[:, 0] if self._flat else alpha

    @property
    def L_(self) -> FloatArray:
        """Lower Cholesky factor of K + alpha·I (exact way only)."""
        factor = getattr(self.posterior_, "row_factor", getattr(self.posterior_, "factor", None))
        if factor is None or not hasattr(factor, "lower"):
            raise AttributeError(f"approx_={self.approx_!r} has no dense Cholesky factor.")
        return factor.lower()

    def _integrate(self, search: Any, rng: np.random.Generator) -> None:
        kernel = self.kernel_
        objective = search.objective(self._method, kernel)
        self.mixture_ = integrate_over(
            lambda theta: objective(theta, False)[0],
            lambda theta: self._method.posterior(kernel.with_theta(theta)),
            kernel.theta,
            self._bounds,
            how=str(self.integrate),
            size=self.n_hyper,
            rng=rng,
        )

    def partial_fit(self, X: Any, y: Any, alpha: Any = None) -> GaussianProcessRegressor:
        """More points under the hyper-parameters of the first call, which is a `fit`; exact way: O(n²) a point."""
        if not hasattr(self, "posterior_"):
            if alpha is not None:
                raise ModelError("the first call is a fit: its noise is the parameter alpha.")
            return self.fit(X, y)
        X = self._points(X, reset=False)
        n = count(X)
        Y = (self._targets(y, n).reshape(n, -1) - self._y_mean) / self._y_scale
        noise, cross = self._noise(self.alpha if alpha is None else alpha, n)
        old = self._method.data
        self._method = self._method.with_data(old.joined(Data(X, Y, noise, old.mean, cross)))
        if hasattr(self.posterior_, "condition") and self._method.data.cross is None:
            self._condition(self.posterior_.condition(X, Y, noise=noise))
        else:
            self._condition(self._method.posterior(self.kernel_))
        data = self._method.data
        self.X_train_, self.y_train_ = data.X, data.Y[:, 0] if self._flat else data.Y
        return self

    # -- answers ------------------------------------------------------------------------------------------------

    @property
    def target_scale(self) -> tuple[FloatArray, FloatArray]:
        """(center, scale) of every output: y = center + scale · the process (0 and 1 without `normalize_y`)."""
        self._process()
        return self._y_mean, self._y_scale

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean at X, with standard deviations or the covariance; before `fit`, those of the prior."""
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        process = self._process()
        X = self._test_points(X)
        mean = process.mean(X) * self._y_scale + self._y_mean
        mean = mean[:, 0] if self._flat else mean
        if return_std:
            var = process.var(X)
            std = np.sqrt(var if var.ndim == 2 else var[:, None]) * self._y_scale
            return mean, std[:, 0] if self._flat else std
        if return_cov:
            return mean, self._scaled(process.cov(X))
        return mean

    def _scaled(self, C: FloatArray) -> FloatArray:
        if self._flat:
            return C.reshape(C.shape[:2]) * self._y_scale[0] ** 2
        return (C if C.ndim == 3 else C[:, :, None]) * self._y_scale**2

    def _process(self) -> Any:
        if hasattr(self, "mixture_"):
            return self.mixture_
        if hasattr(self, "posterior_"):
            return self.posterior_
        q = self.n_targets or 1
        self._flat, self._y_mean, self._y_scale = self.n_targets in (None, 1), np.zeros(q), np.ones(q)
        return PriorProcess(as_process_kernel(self.kernel, fixed=False)[0], as_mean(self.mean), q)

    def _test_points(self, X: Any) -> Any:
        if hasattr(self, "posterior_"):
            return self._points(X, reset=False, least=0)
        return check_array(X, dtype=np.float64, ensure_min_samples=0)

    def posterior(self, X: Any, *, latent: bool = False) -> Any:
        """The values at X as a `Gaussian` of m numbers, which can be a factor of a network; one output."""
        process = self._process()
        X = self._test_points(X)
        if not self._flat:
            raise ModelError("posterior(X) is for one output; y had several columns.")
        mean = process.mean(X)[:, 0] * self._y_scale[0] + self._y_mean[0]
        return gaussian(mean, self._scaled(process.cov(X, latent=latent)))

    def node(self, child: Any, X: Any, *, latent: bool = False) -> Any:
        """The values at X as a node without parents of a network: a `LinearGaussian` of a vector of m numbers.

        >>> import gramgraph as gg
        >>> gp = GaussianProcessRegressor(alpha=0.01, optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> f = gp.node("f", [[0.2], [0.8]])
        >>> total = gg.LinearGaussian("total", f.child, [[1.0, 1.0]], sd=0.1)
        >>> net = gg.BayesianNetwork(cpds=[f, total])
        >>> gp.predict([[0.2], [0.8]]).round(2), net.query("f", {"total": 2.0}).means().to_numpy().round(2)
        (array([0.21, 0.84]), array([[0.62, 1.25]]))
        """
        from gramgraph.variables import Real, Var

        found = self.posterior(X, latent=latent)
        root = symmetric_root(np.asarray(found.cov, dtype=np.float64))  # rounding may have left it slightly indefinite
        var = child if isinstance(child, Var) else Var(str(child), Real(len(root)))
        return LinearGaussian(var, intercept=found.mean, covariance=root @ root.T)

    def conditional(self, child: Any, parents: Any) -> Any:
        """p(child | parents) for networks: N(mean(x), std(x)²) at the values x of the parents, a `Predictor`."""
        return Predictor(child, parents, self, noise="predictive")

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, method: str = "auto") -> FloatArray:
        """Draws of the process at X, (m, n_samples), or (m, q, n_samples) for several outputs.

        "cholesky" is exact, O(m³); "pathwise" takes random Fourier features, O(m) a draw; "auto": pathwise from 3,000
        points on where the kernel has features.
        """
        check_choice("method", method, ("auto", "cholesky", "pathwise"))
        process = self._process()
        X = self._test_points(X)
        state = random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state
        if method == "auto":
            from gramgraph.gp.pathwise import has_features

            large = len(X) > 3000 and hasattr(process, "factor") and has_features(process.kernel, X)
            method = "pathwise" if large else "cholesky"
        options = {"method": method} if hasattr(process, "factor") else {}
        draws = process.sample(X, n_samples, random_state=state, **options)
        draws = draws * self._y_scale[:, None] + self._y_mean[:, None]
        return draws[:, 0] if self._flat else draws

    def predict_noise(self, X: Any) -> FloatArray:
        """Standard deviation of the learned noise at X, (m,), or (m, q); only with `noise=`."""
        process = self._process()
        if not hasattr(process, "noise_variance"):
            raise ModelError("this model has no noise that depends on x. Try: noise='learned', and a fit.")
        std = np.sqrt(process.noise_variance(self._test_points(X)))[:, None] * self._y_scale
        return std[:, 0] if self._flat else std

    def predict_gradient(self, X: Any, return_std: bool = False) -> Any:
        """∂f/∂x at X, (m, d), or (m, d, q); with standard deviations (m, d) where the kernel has second derivatives."""
        process = self._process()
        X = self._test_points(X)
        if not hasattr(process, "gradient"):
            raise ModelError(f"approx_={self.approx_!r} gives no derivatives. Try: approx='exact'.")
        slope = process.gradient(X) * self._y_scale
        slope = slope[:, :, 0] if self._flat else slope
        if not return_std:
            return slope
        from gramgraph.gp.derivatives import gradient_var

        std = np.sqrt(gradient_var(process, X))[:, :, None] * self._y_scale
        return slope, std[:, :, 0] if self._flat else std

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """log p(y | X, theta), without priors; with its gradient by theta when asked. y as normalized."""
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        from gramgraph.linalg.base import PositiveDefiniteError

        theta = np.asarray(theta, dtype=float)
        try:
            value, slope = self._method.evidence(self.kernel_.with_theta(theta), eval_gradient)
        except PositiveDefiniteError:
            value, slope = -np.inf, np.zeros_like(theta)
        return (value, slope) if eval_gradient else value

    @property
    def loo_(self) -> Any:
        """Leave-one-out means, variances and log densities, closed form, in the units of y; exact way only."""
        if not hasattr(self.posterior_, "loo"):
            raise AttributeError(f"approx_={self.approx_!r} has no closed form for leaving one point out.")
        found = self.posterior_.loo()
        mean = found.mean * self._y_scale + self._y_mean
        var = found.var[:, None] * self._y_scale**2
        logs = found.log_density - np.log(self._y_scale).sum()
        return LeaveOneOut(mean[:, 0], var[:, 0], logs) if self._flat else LeaveOneOut(mean, var, logs)


def _covariance(noise: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Variances and covariances of Λ; a diagonal one is its vector."""
    if not np.isfinite(noise).all() or not np.allclose(noise, noise.T, rtol=1e-10, atol=0.0):
        raise ModelError("alpha as a matrix is the covariance of the noise: finite and symmetric.")
    noise = 0.5 * (noise + noise.T)
    least = float(np.linalg.eigvalsh(noise)[0])
    if least < -1e-10 * max(float(np.trace(noise)), 1e-300):
        raise ModelError(f"alpha as a matrix is a covariance; its smallest eigenvalue is {least:.3g}.")
    variances = np.diag(noise).copy()
    cross = noise - np.diag(variances)
    return variances, cross if cross.any() else None
