"""Densities under a change of variables, and the Gaussian that fits a density at its mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.distributions._check import array, vector
from gramgraph.distributions._root import psd_root, symmetric
from gramgraph.distributions.base import count_of_draws
from gramgraph.distributions.gaussian import Gaussian
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, RandomState


@dataclass(frozen=True, eq=False)
class Transformed:
    """The distribution of y = u(x); made by `change_of_variables`.

    p_y(y) = p_x(v(y)) |det ∂v/∂y| with v the inverse of u.

    Parameters
    ----------
    source : the distribution before the map.
    forward : the map.
    inverse : its inverse.
    log_jacobian : log |det| of the derivative of the inverse or of the map, as `change_of_variables` has it.

    Examples
    --------
    >>> from gramgraph.distributions import Exponential
    >>> halved = change_of_variables(Exponential(1.0), lambda x: x / 2, lambda y: 2 * y)
    >>> round(halved.density(0.0), 8)
    2.0
    """

    source: Any
    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    log_jacobian: Callable[[Any], Any] | None = None

    def log_density(self, y: Any, /) -> Any:
        """log p_x(v(y)) + log |det ∂v/∂y|; −inf where v(y) is not a finite point."""
        y = array("y", y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x = np.asarray(self.inverse(y), dtype=np.float64)
            stretch = self._log_stretch(y)
        fine = np.isfinite(x)
        k = getattr(self.source, "event_ndim", 0)
        good = fine.all(axis=tuple(range(-k, 0))) if k else fine
        safe = np.where(fine, x, 1.0)
        good = good & ~np.isnan(stretch)
        out = np.where(good, np.asarray(self.source.log_density(safe)) + np.where(good, stretch, 0.0), -np.inf)
        return float(out) if out.ndim == 0 else out

    def density(self, y: Any, /) -> Any:
        """p_y(y)."""
        value = np.exp(self.log_density(y))
        return float(value) if np.ndim(value) == 0 else value

    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n draws: u of draws of x."""
        return np.asarray(self.forward(self.source.sample(count_of_draws(n), random_state=random_state)))

    def _log_stretch(self, y: FloatArray) -> Any:
        """log |det ∂v/∂y| at every point."""
        if self.log_jacobian is not None:
            return np.asarray(self.log_jacobian(y), dtype=np.float64)
        if not getattr(self.source, "event_ndim", 0):
            h = _STEP * np.maximum(1.0, np.abs(y))
            return np.log(np.abs(_slope(self.inverse, y, h)))
        d = y.shape[-1]
        J = np.empty((*y.shape[:-1], d, d))
        for i in range(d):
            h = _STEP * np.maximum(1.0, np.abs(y[..., i : i + 1]))
            J[..., i] = _slope(self.inverse, y, h, np.eye(d)[i])
        return np.linalg.slogdet(J)[1]


def change_of_variables(
    distribution: Any,
    forward: Callable[[Any], Any],
    inverse: Callable[[Any], Any],
    *,
    log_jacobian: Callable[[Any], Any] | None = None,
) -> Transformed:
    """The distribution of y = u(x) for an invertible, differentiable u.

    Parameters
    ----------
    distribution : of x; anything with `log_density` and `sample`
    forward, inverse : u and its inverse v, on whole arrays of points (vectors on the last axis)
    log_jacobian : y ↦ log |det ∂v/∂y|, one number per point; without it derivatives are taken by differences of order
        four, good to about ten digits

    Examples
    --------
    >>> from gramgraph.distributions import Normal
    >>> log_normal = change_of_variables(Normal(0.0, 1.0), np.exp, np.log, log_jacobian=lambda y: -np.log(y))
    >>> round(log_normal.density(1.0), 4), log_normal.density(-1.0)
    (0.3989, 0.0)
    """
    for name, function in (("forward", forward), ("inverse", inverse)):
        if not callable(function):
            raise ModelError(f"{name} must be a function of points; it is {function!r}.")
    if log_jacobian is not None and not callable(log_jacobian):
        raise ModelError(f"log_jacobian must be a function of points or None; it is {log_jacobian!r}.")
    if not hasattr(distribution, "log_density"):
        raise ModelError(f"distribution must have log_density; {type(distribution).__name__} has none.")
    return Transformed(distribution, forward, inverse, log_jacobian)


@dataclass(frozen=True, eq=False)
class LaplaceApproximation:
    """The Gaussian at a mode of a density: `gaussian`, and `log_normalizer`, the approximate log ∫ exp(log_density).

    `mode` (d,), `log_density_at_mode`, `hessian` of the log density there (d, d), and `n_iter` of the search.

    Parameters
    ----------
    gaussian : at the mode.
    log_normalizer : estimate of log ∫ exp(log density).
    log_density_at_mode : not normalized.
    hessian : of the log density at the mode.
    n_iter : steps that were taken.

    Examples
    --------
    >>> found = laplace_approximation(lambda x: 3 * np.log(x[0]) - 2 * x[0], 1.0)  # Gamma(4, 2), not normalized
    >>> found.mode.round(6).tolist(), found.hessian.round(4).tolist()
    ([1.5], [[-1.3333]])
    """

    gaussian: Gaussian
    log_normalizer: float
    log_density_at_mode: float
    hessian: FloatArray
    n_iter: int

    @property
    def mode(self) -> FloatArray:
        """Where the density is largest."""
        return self.gaussian.mean


def laplace_approximation(
    log_density: Callable[[FloatArray], float],
    x0: Any,
    *,
    gradient: Callable[[FloatArray], Any] | None = None,
    hessian: Callable[[FloatArray], Any] | None = None,
    tol: float = 1e-8,
    max_iter: int = 500,
) -> LaplaceApproximation:
    """N(x*, −H⁻¹) with x* a mode of a density and H the Hessian of its logarithm there.

    The density need not be normalized: log ∫ p ≈ log p(x*) + (d/2) log 2π − ½ log |−H|, exact for Gaussians. The
    mode is found by BFGS from x0, then polished by Newton's steps; what is not given is taken by differences. Costs
    about d (d with gradient: 1) evaluations a step and d² (d) for the Hessian.

    Parameters
    ----------
    log_density : x (d,) ↦ log p(x); −inf outside the support
    x0 : where to begin, (d,) or a number
    gradient, hessian : of the log density, where known
    tol : step at which the search for the mode ends.
    max_iter : most steps.

    Examples
    --------
    >>> found = laplace_approximation(lambda x: -0.5 * (x[0] - 3.0) ** 2 / 4.0, 0.0)
    >>> found.gaussian.mean.round(6).tolist(), found.gaussian.cov.round(6).tolist()
    ([3.0], [[4.0]])
    """
    from scipy.optimize import minimize

    x = vector("x0", x0)
    value = _finite_value(log_density, x)
    slope = (
        (lambda z: _read_vector(gradient(z), len(z), "gradient")) if gradient else (lambda z: _gradient(log_density, z))
    )

    def loss(z: FloatArray) -> float:
        out = float(log_density(z))
        return -out if np.isfinite(out) else 1e300

    found = minimize(loss, x, jac=lambda z: -slope(z), method="BFGS", options={"maxiter": max_iter, "gtol": tol})
    mode, steps = np.asarray(found.x), int(found.nit)
    H = _hessian_at(log_density, slope, hessian, mode, gradient is not None)
    last = np.inf
    for _ in range(20):  # BFGS by differences ends a little early
        move = _newton(H, slope(mode))
        if move is None or not float(log_density(mode + move)) >= float(log_density(mode)) - 1e-12:
            break
        far = float(np.abs(move).max())
        if far > 0.5 * last:  # what is left is rounding
            break
        mode, last = mode + move, far
        steps += 1
        if far <= 1e-9 * (1.0 + float(np.abs(mode).max())):  # the next step would be far below rounding
            break
        H = _hessian_at(log_density, slope, hessian, mode, gradient is not None)
    H = _hessian_at(log_density, slope, hessian, mode, gradient is not None)
    return _at_mode(float(log_density(mode)), value, mode, slope(mode), H, steps)


def _at_mode(
    top: float, start: float, mode: FloatArray, slope: FloatArray, H: FloatArray, steps: int
) -> LaplaceApproximation:
    """The approximation, once it is sure that this is a mode."""
    P = symmetric(-H)
    try:
        root = psd_root(P, "the negative Hessian")
    except ModelError:
        root = None
    if root is None or not root.full or not np.isfinite(P).all():
        raise ModelError(
            f"No mode was found: at {np.array2string(mode, precision=4, threshold=6)} the log density does not curve "
            f"down in every direction. Try: another x0, or parameters in which the density has an inner maximum."
        )
    rest = float(np.sqrt(max(0.0, float(slope @ np.linalg.solve(P, slope)))))  # in standard deviations
    if rest > 1e-2 or top < start:
        raise ModelError(
            f"The search for the mode did not converge: {rest:.2g} standard deviations are left. Try: a better "
            f"x0, the gradient, or a larger max_iter."
        )
    normalizer = top + 0.5 * len(mode) * float(np.log(2.0 * np.pi)) - 0.5 * root.log_det
    return LaplaceApproximation(Gaussian.from_precision(P @ mode, P), normalizer, top, -P, steps)


# --- differences ------------------------------------------------------------------------------------------------------

_STEP = 1e-3  # of a difference of order four: its error is about step⁴ + eps/step, both near 1e-12


def _slope(f: Callable[[Any], Any], y: FloatArray, h: FloatArray, direction: Any = 1.0) -> FloatArray:
    """The derivative of f at all points at once, by the five-point rule."""
    with np.errstate(invalid="ignore"):  # differences across the edge of a support
        near = np.asarray(f(y + h * direction)) - np.asarray(f(y - h * direction))
        far = np.asarray(f(y + 2.0 * h * direction)) - np.asarray(f(y - 2.0 * h * direction))
        return (8.0 * near - far) / (12.0 * h)


def _gradient(f: Callable[[FloatArray], float], x: FloatArray) -> FloatArray:
    h = _STEP * np.maximum(0.1, np.abs(x))
    out = np.empty_like(x)
    for i, e in enumerate(np.eye(len(x))):
        out[i] = float(_slope(f, x, h[i : i + 1], e)[0])
    return np.where(np.isfinite(out), out, 0.0)


def _hessian_at(
    f: Callable[[FloatArray], float],
    slope: Callable[[FloatArray], FloatArray],
    hessian: Callable[[FloatArray], Any] | None,
    x: FloatArray,
    exact_slope: bool,
) -> FloatArray:
    d = len(x)
    if hessian is not None:
        H = array("hessian", hessian(x))
        if H.shape != (d, d):
            raise ModelError(f"hessian must return shape ({d}, {d}); it returned {H.shape}.")
        return symmetric(H)
    # second differences of values lose half the digits: a wider step is better there
    h = (_STEP if exact_slope else 5.0 * _STEP) * np.maximum(0.1, np.abs(x))
    H = np.empty((d, d))
    for i, e in enumerate(np.eye(d)):
        H[i] = _slope(slope, x, h[i : i + 1], e)
    return symmetric(H)


def _newton(H: FloatArray, g: FloatArray) -> FloatArray | None:
    """−H⁻¹ g where H is negative definite."""
    try:
        np.linalg.cholesky(-H)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(np.linalg.solve(-H, g))


def _finite_value(log_density: Callable[[FloatArray], float], x: FloatArray) -> float:
    if not callable(log_density):
        raise ModelError(f"log_density must be a function of a point (d,); it is {log_density!r}.")
    value = np.asarray(log_density(x), dtype=np.float64)
    if value.size != 1:
        raise ModelError(f"log_density must return one number; at x0 it returned shape {value.shape}.")
    if not np.isfinite(value).all():
        raise ModelError(f"log_density must be finite at x0; there it is {float(value.reshape(())):g}.")
    return float(value.reshape(()))


def _read_vector(value: Any, d: int, what: str) -> FloatArray:
    out = np.asarray(value, dtype=np.float64).reshape(-1)
    if len(out) != d:
        raise ModelError(f"{what} must return {d} numbers; it returned {len(out)}.")
    return out
