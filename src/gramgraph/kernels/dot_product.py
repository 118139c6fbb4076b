"""Kernels of the inner product xᵀx′: linear, polynomial, quadratic form, sigmoid, arc-cosine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull, parameter
from gramgraph.kernels.parameters import is_whole
from gramgraph.typing import FloatArray


def _inner(X: FloatArray, Y: FloatArray | None) -> FloatArray:
    """XYᵀ, exactly symmetric without Y."""
    return X @ X.T if Y is None else X @ Y.T


def _square_norms(X: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", X, X)


def _inner_pull(
    bar_S: FloatArray, X: FloatArray, Y: FloatArray | None, inputs: bool
) -> tuple[FloatArray | None, FloatArray | None]:
    """Gradients by X and Y from the gradient by S = XYᵀ."""
    if not inputs:
        return None, None
    if Y is None:
        return (bar_S + bar_S.T) @ X, None
    return bar_S @ Y, bar_S.T @ X


def _check_offset(kernel: Kernel, name: str) -> None:
    """A parameter that may be 0 (then it is not part of theta) but not negative."""
    value = getattr(kernel, name)
    if value < 0:
        raise KernelError(
            f"{type(kernel).__name__}.{name}: expected a number ≥ 0, got {value}: it would not be positive definite."
        )
    if value == 0 and name not in kernel.fixed:
        object.__setattr__(kernel, "fixed", (*kernel.fixed, name))


@dataclass(frozen=True, eq=False, repr=False)
class Linear(Kernel):
    """k(x, x′) = xᵀx′. An offset is added by `Linear() + c`. Cost O(n m d).

    Parameters
    ----------
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Linear().gram([[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """

    def _diag(self, X: FloatArray) -> FloatArray:
        return _square_norms(X)

    def _gram(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        return _inner(X, Y)

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        return _inner(X, Y), lambda bar: self.cotangent({}, *_inner_pull(bar, X, Y, inputs))


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial(Kernel):
    """k(x, x′) = (scale · xᵀx′ + offset)^degree: all monomials up to the degree; only those of it with offset 0.

    An offset of 0 is left out of theta. Cost O(n m d).

    Parameters
    ----------
    degree : of the polynomial.
    offset : number added to the inner product.
    scale : factor before the inner product.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Polynomial(degree=2).gram([-1.0, 0.0, 1.0])
    array([[4., 1., 0.],
           [1., 1., 1.],
           [0., 1., 4.]])
    """

    degree: int = 2
    offset: float = parameter(1.0, bounds=(1e-10, 1e5), transform="identity")
    scale: float = parameter(1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.degree) or self.degree < 1:
            raise KernelError(f"Polynomial.degree: expected a whole number ≥ 1, got {self.degree!r}.")
        object.__setattr__(self, "degree", int(self.degree))
        _check_offset(self, "offset")

    def _diag(self, X: FloatArray) -> FloatArray:
        return (self.scale * _square_norms(X) + self.offset) ** self.degree

    def _gram(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        return (self.scale * _inner(X, Y) + self.offset) ** self.degree

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        S = _inner(X, Y)
        base = self.scale * S + self.offset

        def pull(bar: FloatArray) -> Cotangent:
            bar_base = self.degree * bar * base ** (self.degree - 1)
            found = {"offset": bar_base.sum(), "scale": np.vdot(bar_base, S)}
            return self.cotangent(found, *_inner_pull(self.scale * bar_base, X, Y, inputs))

        return base**self.degree, pull


@dataclass(frozen=True, eq=False, repr=False)
class QuadraticForm(Kernel):
    """k(x, x′) = xᵀA x′ with A = L Lᵀ: positive semi-definite whatever the factor L.

    `factor` is L, a matrix (d, r), or a vector (d,) for the diagonal L (one weight per column). For a given A use
    `QuadraticForm.from_matrix(A)`. Cost O((n + m) d r + n m r).

    Parameters
    ----------
    factor : L, a matrix or a vector.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> QuadraticForm([2.0, 1.0]).gram([[1.0, 1.0]], [[1.0, 0.0]])
    array([[4.]])
    """

    factor: FloatArray = parameter(bounds=(-1e5, 1e5), transform="identity", max_ndim=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.factor) == 0:
            raise KernelError("QuadraticForm.factor: expected a vector (d,) or a matrix (d, r), got a single number.")

    @classmethod
    def from_matrix(cls, A: FloatArray) -> QuadraticForm:
        """From a symmetric positive semi-definite A (d, d); its factor has one column a positive eigenvalue."""
        return cls(psd_factor(A, "A"))

    def prepare(self, X: object) -> FloatArray:
        """Points with as many columns as the factor has rows."""
        points = super().prepare(X)
        if points.shape[1] != len(self.factor):
            raise KernelError(
                f"QuadraticForm: expected points with {len(self.factor)} columns, one per row of the factor; "
                f"got shape {points.shape}."
            )
        return points

    def _features(self, X: FloatArray) -> FloatArray:
        return X * self.factor if self.factor.ndim == 1 else X @ self.factor

    def _diag(self, X: FloatArray) -> FloatArray:
        return _square_norms(self._features(X))

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        F = self._features(X)
        G = None if Y is None else self._features(Y)

        def pull(bar: FloatArray) -> Cotangent:
            pairs = [(X, (bar + bar.T) @ F)] if G is None or Y is None else [(X, bar @ G), (Y, bar.T @ F)]
            if self.factor.ndim == 1:
                parts = [np.einsum("ij,ij->j", P, b) for P, b in pairs]
                by_points = [b * self.factor for _, b in pairs]
            else:
                parts = [P.T @ b for P, b in pairs]
                by_points = [b @ self.factor.T for _, b in pairs]
            by_factor = parts[0] + parts[1] if len(parts) == 2 else parts[0]
            return self.cotangent({"factor": by_factor}, *(by_points if inputs else ()))

        return _inner(F, G), pull


@dataclass(frozen=True, eq=False, repr=False)
class Sigmoid(Kernel):
    """k(x, x′) = tanh(scale · xᵀx′ + offset). Not always positive definite: `positive_definite` is False.

    Parameters
    ----------
    scale : factor before the inner product.
    offset : number added to the inner product.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> round(float(Sigmoid(scale=0.5).gram([[1.0, 1.0]])[0, 0]), 6)
    0.761594
    """

    positive_definite = False

    scale: float = parameter(1.0)
    offset: float = parameter(0.0, bounds=(-1e5, 1e5), transform="identity")

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.tanh(self.scale * _square_norms(X) + self.offset)

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        S = _inner(X, Y)
        K = np.tanh(self.scale * S + self.offset)

        def pull(bar: FloatArray) -> Cotangent:
            bar_base = bar * (1.0 - K * K)
            found = {"scale": np.vdot(bar_base, S), "offset": bar_base.sum()}
            return self.cotangent(found, *_inner_pull(self.scale * bar_base, X, Y, inputs))

        return K, pull


def _angle_part(order: int, cosine: FloatArray) -> FloatArray:
    """J_n(θ)/π of the arc-cosine kernel; dJ_n/d cos θ = n² J_{n−1}."""
    rest = 1.0 - np.arccos(cosine) / np.pi
    if order == 0:
        return rest
    sine = np.sqrt(1.0 - cosine * cosine)
    if order == 1:
        return sine / np.pi + rest * cosine
    return 3.0 * sine * cosine / np.pi + rest * (1.0 + 2.0 * cosine * cosine)


@dataclass(frozen=True, eq=False, repr=False)
class ArcCosine(Kernel):
    """k(x, x′) = (1/π) ‖x‖ⁿ ‖x′‖ⁿ J_n(θ), θ the angle between x and x′: a layer of infinitely many random units.

    It is 2 E[h(wᵀx) h(wᵀx′)] for standard normal w and h the step (order 0), the ramp max(0, u) (order 1) or its square
    (order 2). J₀ = π − θ, J₁ = sin θ + (π − θ) cos θ, J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ). `bias` ≥ 0 is the
    square of a constant column put before x; 0 leaves it out of theta. Angles below 1e-7 count as 0, where order 0 has
    a kink: its gradient there is taken as 0. Cost O(n m d).

    Parameters
    ----------
    order : 0, 1 or 2.
    bias : square of a constant column put before x.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> ArcCosine(order=0).gram([[1.0, 0.0]], [[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    array([[1. , 0.5, 0. ]])
    """

    order: int = 1
    bias: float = parameter(0.0, bounds=(1e-10, 1e5), transform="identity")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order not in (0, 1, 2):
            raise KernelError(f"ArcCosine.order: expected 0, 1 or 2, got {self.order!r}.")
        _check_offset(self, "bias")

    def _diag(self, X: FloatArray) -> FloatArray:
        a = _square_norms(X) + self.bias
        if self.order == 0:
            return np.where(a > 0, 1.0, 0.5)  # the step is ½ at 0
        return a if self.order == 1 else 3.0 * a * a

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        n = self.order
        norm = np.sqrt(_square_norms(X) + self.bias)  # (n,)
        other = norm if Y is None else np.sqrt(_square_norms(Y) + self.bias)  # (m,)
        with np.errstate(divide="ignore"):
            by_norm, by_other = np.where(norm > 0, 1.0 / norm, 0.0), np.where(other > 0, 1.0 / other, 0.0)
        cosine = (_inner(X, Y) + self.bias) * np.outer(by_norm, by_other)
        np.clip(cosine, -1.0, 1.0, out=cosine)
        cosine[cosine > 1.0 - 2e-15] = 1.0  # rounding of xᵀx′ would show as an angle of 1e-8
        J = _angle_part(n, cosine)
        K = np.outer(norm**n, other**n) * J

        def pull(bar: FloatArray) -> Cotangent:
            if n == 0:
                sine = np.sqrt(1.0 - cosine * cosine)
                with np.errstate(divide="ignore"):
                    slope = np.where(sine > 0, 1.0 / (np.pi * sine), 0.0)
            else:
                slope = n * n * _angle_part(n - 1, cosine)
            bar_cosine = bar * np.outer(norm**n, other**n) * slope
            bar_S = bar_cosine * np.outer(by_norm, by_other)
            rest = n * bar * K - bar_cosine * cosine  # by log ‖x‖ and by log ‖x′‖
            rows, columns = rest.sum(1) * by_norm**2, rest.sum(0) * by_other**2
            by_bias = bar_S.sum() + 0.5 * (rows.sum() + columns.sum())
            bar_X, bar_Y = _inner_pull(bar_S, X, Y, inputs)
            if bar_X is not None:
                bar_X += (rows + columns if Y is None else rows)[:, None] * X
            if bar_Y is not None and Y is not None:
                bar_Y += columns[:, None] * Y
            return self.cotangent({"bias": by_bias}, bar_X, bar_Y)

        return K, pull


def psd_factor(A: FloatArray, name: str) -> FloatArray:
    """L with L Lᵀ = A for a symmetric positive semi-definite A; a column an eigenvalue above rounding."""
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise KernelError(f"{name}: expected a square matrix, got shape {A.shape}.")
    largest = float(np.abs(A).max())
    if not np.isfinite(largest) or largest == 0 or not np.allclose(A, A.T, rtol=0, atol=1e-10 * largest):
        raise KernelError(f"{name}: expected a finite symmetric matrix that is not 0.")
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    if values[0] < -1e-10 * len(A) * values[-1]:
        raise KernelError(
            f"{name}: expected a positive semi-definite matrix; its smallest eigenvalue is {values[0]:.6g}. "
            "Try: A − (smallest eigenvalue)·I, or a factor L with A = L Lᵀ."
        )
    keep = values > 1e-14 * len(A) * values[-1]
    L: FloatArray = vectors[:, keep] * np.sqrt(values[keep])
    return L
