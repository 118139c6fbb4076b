"""Derivatives of a Gaussian process: a process too, whose covariances are derivatives of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.posterior import slopes_of
from gramgraph.kernels.algebra import Product, Scale, Sum
from gramgraph.kernels.base import Cotangent, Kernel, Pull
from gramgraph.kernels.dot_product import Linear, Polynomial
from gramgraph.kernels.inputs import KernelError, as_points
from gramgraph.kernels.periodic import Periodic
from gramgraph.kernels.stationary import RBF, Constant, Matern, RationalQuadratic, White, squared_distances
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.gp.posterior import ExactPosterior


class Jet(NamedTuple):
    """k(x, y), ∂k/∂x_c, ∂k/∂y_e and ∂²k/∂x_c∂y_e for all pairs of points."""

    K: FloatArray  # (n, m)
    x: FloatArray  # (n, m, d)
    y: FloatArray  # (n, m, d)
    xy: FloatArray  # (n, m, d, d)


def _profile(kernel: Kernel, S: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """φ(s), φ′(s) and φ″(s) of a kernel φ(s) of the scaled squared distance; φ″ is 0 where it multiplies 0."""
    if isinstance(kernel, RBF):
        K = np.exp(-0.5 * S)
        return K, -0.5 * K, 0.25 * K
    if isinstance(kernel, RationalQuadratic):
        a = kernel.alpha
        u = 1.0 + S / (2.0 * a)
        K = u**-a
        return K, -0.5 * K / u, 0.25 * (a + 1.0) / a * K / u**2
    assert isinstance(kernel, Matern)
    if kernel.nu == 1.5:
        t = np.sqrt(3.0 * S)
        e = np.exp(-t)
        return (1.0 + t) * e, -1.5 * e, np.divide(2.25 * e, t, out=np.zeros_like(t), where=t > 0)
    if kernel.nu == 2.5:
        t = np.sqrt(5.0 * S)
        e = np.exp(-t)
        return (1.0 + t + t * t / 3.0) * e, (-5.0 / 6.0) * (1.0 + t) * e, (25.0 / 12.0) * e
    raise KernelError(f"Matern with nu = {kernel.nu:g} has no second derivatives here: expected nu 3/2 or 5/2, or RBF.")


def _distance_jet(kernel: Any, X: FloatArray, Y: FloatArray) -> Jet:
    scale = np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (X.shape[1],))
    A, B = X / scale, Y / scale
    f, f1, f2 = _profile(kernel, squared_distances(np.ascontiguousarray(A), np.ascontiguousarray(B)))
    delta = (A[:, None, :] - B[None, :, :]) / scale  # (x − y) / ℓ²
    first = 2.0 * f1[:, :, None] * delta
    second = -4.0 * f2[:, :, None, None] * delta[:, :, :, None] * delta[:, :, None, :]
    second -= 2.0 * f1[:, :, None, None] * np.diag(1.0 / scale**2)
    return Jet(f, first, -first, second)


def _dot_jet(X: FloatArray, Y: FloatArray, f: FloatArray, f1: FloatArray, f2: FloatArray) -> Jet:
    """φ(xᵀy)."""
    x, y = f1[:, :, None] * Y[None, :, :], f1[:, :, None] * X[:, None, :]
    xy = f2[:, :, None, None] * Y[None, :, :, None] * X[:, None, None, :]
    return Jet(f, x, y, xy + f1[:, :, None, None] * np.eye(X.shape[1]))


def _periodic_jet(kernel: Periodic, X: FloatArray, Y: FloatArray) -> Jet:
    """exp of −2 Σ sin²(π δ / period) / ℓ², whose logarithm has the slope g."""
    K = kernel.gram(X, Y)
    rate, size = 2.0 * np.pi / kernel.period, 1.0 / kernel.length_scale**2
    angle = rate * (X[:, None, :] - Y[None, :, :])
    g = -size * rate * np.sin(angle)
    bend = -size * rate * rate * np.cos(angle)
    second = -g[:, :, :, None] * g[:, :, None, :] - bend[:, :, :, None] * np.eye(X.shape[1])
    return Jet(K, K[:, :, None] * g, -K[:, :, None] * g, K[:, :, None, None] * second)


def jet(kernel: Kernel, X: FloatArray, Y: FloatArray) -> Jet:
    """The kernel and its derivatives by both points, O(n m d²); noise is left out.

    For RBF, Matern 3/2 and 5/2, RationalQuadratic, Periodic, Linear, Polynomial, Constant, their scaled sums and
    products.

    >>> jet(RBF(), np.zeros((1, 1)), np.ones((1, 1))).x.round(4)
    array([[[0.6065]]])
    """
    n, m, d = len(X), len(Y), X.shape[1]
    if isinstance(kernel, (RBF, Matern, RationalQuadratic)):
        return _distance_jet(kernel, X, Y)
    if isinstance(kernel, Periodic):
        return _periodic_jet(kernel, X, Y)
    if isinstance(kernel, (Constant, White)):
        value = kernel.value if isinstance(kernel, Constant) else 0.0
        zero = np.zeros((n, m, d))
        return Jet(np.full((n, m), value), zero, zero, np.zeros((n, m, d, d)))
    if isinstance(kernel, Linear):
        S = X @ Y.T
        return _dot_jet(X, Y, S, np.ones_like(S), np.zeros_like(S))
    if isinstance(kernel, Polynomial):
        p, a = kernel.degree, kernel.scale
        u = a * (X @ Y.T) + kernel.offset
        return _dot_jet(X, Y, u**p, p * a * u ** (p - 1), p * (p - 1) * a * a * u ** max(p - 2, 0))
    if isinstance(kernel, Scale):
        return Jet(*(kernel.variance * part for part in jet(kernel.base, X, Y)))
    if isinstance(kernel, Sum):
        return Jet(*(sum(parts) for parts in zip(*[jet(term, X, Y) for term in kernel.terms], strict=True)))  # type: ignore[arg-type]
    if isinstance(kernel, Product):
        found = jet(kernel.factors[0], X, Y)
        for factor in kernel.factors[1:]:
            found = _product(found, jet(factor, X, Y))
        return found
    plain = getattr(kernel, "plain", None)
    if plain is not None:  # a kernel with parameters of its own kind that is one of the others
        return jet(plain(), X, Y)
    raise KernelError(
        f"{type(kernel).__name__} has no second derivatives here. They exist for RBF, Matern (nu 3/2, 5/2), "
        "RationalQuadratic, Periodic, Linear, Polynomial, Constant, their scaled sums and products."
    )


def _product(a: Jet, b: Jet) -> Jet:
    A, B = a.K[:, :, None], b.K[:, :, None]
    xy = a.xy * B[..., None] + b.xy * A[..., None]
    xy = xy + a.x[:, :, :, None] * b.y[:, :, None, :] + b.x[:, :, :, None] * a.y[:, :, None, :]
    return Jet(a.K * b.K, a.x * B + b.x * A, a.y * B + b.y * A, xy)


# --- observations of derivatives ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class WithDerivatives(Kernel):
    """A kernel on values and derivatives: the last column of a point says what is seen there.

    0 is the value f(x), c = 1 … d the derivative ∂f/∂x_c. Evidence, posterior, draws and predictions then hold for both
    alike. Gradients by theta are central differences (relative error about 1e-9).

    Parameters
    ----------
    base : the kernel of the values.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> k = WithDerivatives(RBF())
    >>> k.gram([[0.0, 0]], [[1.0, 0], [1.0, 1]]).round(4)  # f(0) with f(1) and with f′(1)
    array([[ 0.6065, -0.6065]])
    """

    base: Kernel

    def _split(self, X: Any) -> tuple[FloatArray, Any]:
        X = as_points(X)
        if X.shape[1] < 2:
            raise KernelError("WithDerivatives: expected the coordinates and a last column 0, 1 … d; got one column.")
        kind = X[:, -1].astype(np.int64)
        if not np.all((kind == X[:, -1]) & (kind >= 0) & (kind < X.shape[1])):
            raise KernelError(
                f"WithDerivatives: the last column must hold 0 (value) or 1 … {X.shape[1] - 1} (which derivative)."
            )
        return np.ascontiguousarray(X[:, :-1]), kind

    def _diag(self, X: Any) -> FloatArray:
        return np.array([self._gram(X[i : i + 1], None)[0, 0] for i in range(len(X))])

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        A, a = self._split(X)
        B, b = (A, a) if Y is None else self._split(Y)
        found = jet(self.base, A, B)
        n, m, d = found.x.shape
        table = np.empty((n, m, d + 1, d + 1))
        table[:, :, 0, 0], table[:, :, 1:, 0], table[:, :, 0, 1:], table[:, :, 1:, 1:] = found
        K = table[np.arange(n)[:, None], np.arange(m)[None, :], a[:, None], b[None, :]]
        if Y is None:
            values = a == 0
            own = self.base.diag(A) - np.array([found.K[i, i] for i in range(n)])
            K[np.flatnonzero(values), np.flatnonzero(values)] += own[values]
        return K

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        if inputs:
            raise KernelError("WithDerivatives gives no gradient by its inputs.")

        def pull(bar_K: FloatArray) -> Cotangent:
            theta, h = self.theta, 1e-5
            slopes = np.empty(len(theta))
            for i in range(len(theta)):
                up, down = theta.copy(), theta.copy()
                up[i] += h
                down[i] -= h
                change = self.with_theta(up)._gram(X, Y) - self.with_theta(down)._gram(X, Y)
                slopes[i] = np.vdot(bar_K, change) / (2.0 * h)
            return Cotangent(slopes)

        return self._gram(X, Y), pull


def stack_derivatives(X: Any, y: Any, X_slopes: Any, slopes: Any) -> tuple[FloatArray, FloatArray]:
    """Values y at X (n, d) and gradients (r, d) at X_slopes (r, d) as data for `WithDerivatives`; NaN: not seen.

    Parameters
    ----------
    X : (n, d) places of the values.
    y : (n,) values.
    X_slopes : (r, d) places of the gradients.
    slopes : (r, d) gradients, NaN where one is not seen.

    Examples
    --------
    >>> Z, t = stack_derivatives([[0.0]], [1.0], [[2.0]], [[-1.0]])
    >>> Z, t
    (array([[0., 0.],
           [2., 1.]]), array([ 1., -1.]))
    """
    X, X_slopes = as_points(X), as_points(X_slopes)
    slopes = np.asarray(slopes, dtype=float).reshape(X_slopes.shape)
    rows = [np.column_stack([X, np.zeros(len(X))])]
    targets = [np.asarray(y, dtype=float)]
    for c in range(X.shape[1]):
        seen = ~np.isnan(slopes[:, c])
        rows.append(np.column_stack([X_slopes[seen], np.full(seen.sum(), c + 1.0)]))
        targets.append(slopes[seen, c])
    return np.concatenate(rows), np.concatenate(targets)


def gradient_cov(process: ExactPosterior, X: Any) -> FloatArray:
    """Posterior covariance of the gradient at every point, (m, d, d)."""
    X, own = as_points(X), process.X
    if not isinstance(own, np.ndarray):
        raise ModelError("derivatives need points that are vectors.")
    trend = process.trend
    by_point = None if trend is None or trend.A is None else slopes_of(process.trend_of.basis, X)  # (m, k, d)
    out = np.empty((len(X), X.shape[1], X.shape[1]))
    for i in range(len(X)):
        point = X[i : i + 1]
        cross = np.ascontiguousarray(jet(process.kernel, own, point).y[:, 0, :])
        half = process.factor.half_solve(cross)
        out[i] = jet(process.kernel, point, point).xy[0, 0] - half.T @ half
        if by_point is not None and trend is not None and trend.A is not None:
            more = trend.A.half_solve(by_point[i] - trend.KinvH.T @ cross)
            out[i] += more.T @ more
    return out


def gradient_var(process: ExactPosterior, X: Any) -> FloatArray:
    """Posterior variances of the gradient, (m, d), not negative."""
    return np.maximum(np.einsum("icc->ic", gradient_cov(process, X)), 0.0)
