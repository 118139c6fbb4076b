"""Basis functions φ(x) of linear models, as values with parameters that can be learned.

Functions of one number act on every column of X by itself; `bias` adds a first feature 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.kernels.inputs import as_points
from gramgraph.kernels.parameters import Parametrized, parameter
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Basis(Parametrized):
    """x ↦ φ(x). A kind of basis writes `_features`, (n, d) ↦ (n, k), without the bias."""

    bias: bool = field(default=True, kw_only=True)

    @abstractmethod
    def _features(self, X: FloatArray) -> FloatArray:
        """Features of a matrix of points."""

    def transform(self, X: Any) -> FloatArray:
        """Φ, one row φ(x) a point."""
        X = as_points(X)
        Phi = self._features(X)
        return np.concatenate([np.ones((len(X), 1)), Phi], axis=1) if self.bias else Phi

    def pullback(self, X: Any) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Φ, and the function that takes ∂loss/∂Φ to ∂loss/∂theta; here by central differences."""
        Phi = self.transform(X)

        def pull(bar: FloatArray) -> FloatArray:
            theta, h = self.theta, 1e-6
            change = [
                self.with_theta(theta + h * e).transform(X) - self.with_theta(theta - h * e).transform(X)
                for e in np.eye(len(theta))
            ]
            return np.array([float(np.vdot(bar, c)) / (2.0 * h) for c in change])

        return Phi, pull


def _columns(X: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """A function (n,) ↦ (n, k) of every column, side by side."""
    return np.concatenate([function(X[:, c]) for c in range(X.shape[1])], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class IdentityBasis(Basis):
    """1 and x itself.

    Parameters
    ----------
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> IdentityBasis().transform([[2.0]])
    array([[1., 2.]])
    """

    def _features(self, X: FloatArray) -> FloatArray:
        return X


@dataclass(frozen=True, eq=False, repr=False)
class PolynomialBasis(Basis):
    """x, x², …, x^degree.

    Parameters
    ----------
    degree : highest degree.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> PolynomialBasis(3).transform([[2.0]])
    array([[1., 2., 4., 8.]])
    """

    degree: int = 3

    def _features(self, X: FloatArray) -> FloatArray:
        return _columns(X, lambda x: x[:, None] ** np.arange(1, self.degree + 1))


@dataclass(frozen=True, eq=False, repr=False)
class FourierBasis(Basis):
    """cos(2πkx/period) and sin(2πkx/period), k = 1 … n; the period can be learned.

    Parameters
    ----------
    n : how many frequencies.
    period : of the lowest one.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> FourierBasis(1, period=4.0).transform([[1.0]]).round(6)
    array([[1., 0., 1.]])
    """

    n: int = 3
    period: float = parameter(2.0 * np.pi)

    def _features(self, X: FloatArray) -> FloatArray:
        def both(x: FloatArray) -> FloatArray:
            angle = 2.0 * np.pi / self.period * x[:, None] * np.arange(1, self.n + 1)
            return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)

        return _columns(X, both)


@dataclass(frozen=True, eq=False, repr=False)
class LegendreBasis(Basis):
    """decay^k P_k(x), k = 1 … degree, with [low, high] carried to [−1, 1], where the P_k are orthogonal.

    Parameters
    ----------
    degree : highest degree.
    low : left end of the stretch.
    high : right end of the stretch.
    decay : factor between a degree and the next.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> LegendreBasis(2).transform([[0.5]])
    array([[ 1.   ,  0.5  , -0.125]])
    """

    degree: int = 3
    low: float = -1.0
    high: float = 1.0
    decay: float = parameter(1.0, bounds=(1e-3, 1e3))
    fixed: tuple[str, ...] = field(default=("decay",), kw_only=True)

    def _features(self, X: FloatArray) -> FloatArray:
        from scipy.special import eval_legendre

        k = np.arange(1, self.degree + 1)
        U = (2.0 * X - (self.low + self.high)) / (self.high - self.low)
        return _columns(U, lambda x: self.decay**k * eval_legendre(k, x[:, None]))


@dataclass(frozen=True, eq=False, repr=False)
class LaguerreBasis(Basis):
    """Laguerre polynomials L_k(x), k = 1 … degree, orthogonal under e^−x.

    Parameters
    ----------
    degree : highest degree.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> LaguerreBasis(2).transform([[1.0]])
    array([[ 1. ,  0. , -0.5]])
    """

    degree: int = 3

    def _features(self, X: FloatArray) -> FloatArray:
        from scipy.special import eval_laguerre

        k = np.arange(1, self.degree + 1)
        return _columns(X, lambda x: eval_laguerre(k, x[:, None]))


@dataclass(frozen=True, eq=False, repr=False)
class _Located(Basis):
    """g((x − location) / width) for several locations, with one width or one for each; both can be learned where g is
    smooth."""

    locations: FloatArray = parameter((0.0,), bounds=(-1e6, 1e6), transform="identity", max_ndim=1)  # type: ignore[assignment]
    width: float | FloatArray = parameter(1.0, max_ndim=1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "locations", np.atleast_1d(np.asarray(self.locations, dtype=float)))
        super().__post_init__()
        if np.ndim(self.width) and np.shape(self.width) != self.locations.shape:
            raise ModelError(
                f"width: one number, or one for each of the {len(self.locations)} locations; got {np.size(self.width)}."
            )

    @classmethod
    def spread(cls, low: float, high: float, n: int, width: float | None = None, **options: Any) -> Self:
        """n locations at even distances from low to high; the width is their distance unless given."""
        if n < 1 or not high > low:
            raise ModelError(f"spread needs n ≥ 1 and low < high; got {n}, {low}, {high}.")
        gap = (high - low) / max(n - 1, 1)
        return cls(np.linspace(low, high, n), gap if width is None else width, **options)

    def _g(self, u: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _slope(self, u: FloatArray) -> FloatArray | None:
        """g′(u); None where there is none."""
        return None

    def _scaled(self, x: FloatArray) -> FloatArray:
        return (x[:, None] - self.locations) / self.width

    def _features(self, X: FloatArray) -> FloatArray:
        return _columns(X, lambda x: self._g(self._scaled(x)))

    def pullback(self, X: Any) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Φ and its reverse, in closed form where g has a slope."""
        X = as_points(X)
        if self._slope(np.zeros(1)) is None:
            return super().pullback(X)

        def pull(bar: FloatArray) -> FloatArray:
            rest = bar[:, 1:] if self.bias else bar
            by_location, by_width = np.zeros_like(self.locations), np.zeros_like(self.locations)
            m = len(self.locations)
            for c in range(X.shape[1]):
                u = self._scaled(X[:, c])
                slope = self._slope(u)
                assert slope is not None
                weight = rest[:, c * m : (c + 1) * m] * slope
                by_location -= weight.sum(0) / self.width
                by_width -= (weight * u).sum(0) / self.width
            own = by_width if np.ndim(self.width) else float(by_width.sum())
            return self.chain({"locations": by_location, "width": own})

        return self.transform(X), pull


@dataclass(frozen=True, eq=False, repr=False)
class GaussianBasis(_Located):
    """exp(−u²/2), u = (x − location) / width.

    Parameters
    ----------
    locations : centers, one per function.
    width : of every function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> GaussianBasis([0.0, 1.0]).transform([[0.0]]).round(4)
    array([[1.    , 1.    , 0.6065]])
    """

    def _g(self, u: FloatArray) -> FloatArray:
        return np.exp(-0.5 * u * u)

    def _slope(self, u: FloatArray) -> FloatArray | None:
        return -u * np.exp(-0.5 * u * u)


@dataclass(frozen=True, eq=False, repr=False)
class BellBasis(_Located):
    """exp(−u²).

    Parameters
    ----------
    locations : centers, one per function.
    width : of every function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> BellBasis([0.0]).transform([[1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    def _g(self, u: FloatArray) -> FloatArray:
        return np.exp(-u * u)

    def _slope(self, u: FloatArray) -> FloatArray | None:
        return -2.0 * u * np.exp(-u * u)


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceBasis(_Located):
    """exp(−|u|), the "Eiffel tower".

    Parameters
    ----------
    locations : centers, one per function.
    width : of every function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> LaplaceBasis([0.0]).transform([[-1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    def _g(self, u: FloatArray) -> FloatArray:
        return np.exp(-np.abs(u))

    def _slope(self, u: FloatArray) -> FloatArray | None:
        return -np.sign(u) * np.exp(-np.abs(u))


@dataclass(frozen=True, eq=False, repr=False)
class SigmoidBasis(_Located):
    """1 / (1 + e^−u).

    Parameters
    ----------
    locations : centers, one per function.
    width : of every function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> SigmoidBasis([0.0]).transform([[0.0]])
    array([[1. , 0.5]])
    >>> SigmoidBasis([0.0, 1.0], width=[1.0, 2.0]).transform([[3.0]]).round(3)  # a width for each position
    array([[1.   , 0.953, 0.731]])
    """

    def _g(self, u: FloatArray) -> FloatArray:
        from scipy.special import expit

        return expit(u)

    def _slope(self, u: FloatArray) -> FloatArray | None:
        s = self._g(u)
        return s * (1.0 - s)


@dataclass(frozen=True, eq=False, repr=False)
class PixelBasis(_Located):
    """1 on [location, location + width), −1 elsewhere.

    Parameters
    ----------
    locations : centers, one per function.
    width : of every function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> PixelBasis([0.0]).transform([[0.5], [1.5]])
    array([[ 1.,  1.],
           [ 1., -1.]])
    """

    fixed: tuple[str, ...] = field(default=("locations", "width"), kw_only=True)

    def _g(self, u: FloatArray) -> FloatArray:
        return np.where((u >= 0.0) & (u < 1.0), 1.0, -1.0)


@dataclass(frozen=True, eq=False, repr=False)
class SwitchBasis(_Located):
    """1 left of the location, 0 from it on.

    Parameters
    ----------
    locations : centers, one per function.
    width : of every function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> SwitchBasis([0.0]).transform([[-1.0], [1.0]])
    array([[1., 1.],
           [1., 0.]])
    """

    fixed: tuple[str, ...] = field(default=("locations", "width"), kw_only=True)

    def _g(self, u: FloatArray) -> FloatArray:
        return (u < 0.0).astype(float)


@dataclass(frozen=True, eq=False, repr=False)
class VBasis(_Located):
    """|x − location| − location; the width has no meaning.

    Parameters
    ----------
    locations : centers, one per function.
    width : of every function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.
    bias : whether a constant comes first.

    Examples
    --------
    >>> VBasis([1.0]).transform([[3.0]])
    array([[1., 1.]])
    """

    fixed: tuple[str, ...] = field(default=("width",), kw_only=True)

    def _features(self, X: FloatArray) -> FloatArray:
        return _columns(X, lambda x: np.abs(x[:, None] - self.locations) - self.locations)


BASES: dict[str, type[Basis]] = {
    "bell": BellBasis,
    "fourier": FourierBasis,
    "gaussian": GaussianBasis,
    "identity": IdentityBasis,
    "laguerre": LaguerreBasis,
    "laplace": LaplaceBasis,
    "legendre": LegendreBasis,
    "pixel": PixelBasis,
    "polynomial": PolynomialBasis,
    "sigmoid": SigmoidBasis,
    "switch": SwitchBasis,
    "v": VBasis,
}


@dataclass(frozen=True, eq=False, repr=False)
class _FunctionBasis(Basis):
    """Features by a function of the caller's, which makes its own bias."""

    function: Callable[[Any], Any] = field(default=np.asarray)
    bias: bool = field(default=False, kw_only=True)

    def _features(self, X: FloatArray) -> FloatArray:
        Phi = np.asarray(self.function(X), dtype=float)
        if Phi.ndim != 2 or len(Phi) != len(X):
            raise ModelError(f"basis: a function of X must give ({len(X)}, k); it gave {Phi.shape}.")
        return Phi


def as_basis(spec: Any, X: FloatArray | None = None, n: int = 10) -> Basis:
    """The basis of an estimator's `basis=`: None is 1 and x, a name takes n functions spread over the range of X.

    >>> as_basis("gaussian", np.array([[0.0], [9.0]]), 4).locations
    array([0., 3., 6., 9.])
    """
    if spec is None:
        return IdentityBasis()
    if isinstance(spec, Basis):
        return spec
    if callable(spec):
        return _FunctionBasis(spec)
    if spec not in BASES:
        raise ModelError(f"{spec!r} is not a basis. Names: {listing(BASES)}.{did_you_mean(spec, BASES)}")
    kind = BASES[spec]
    low, high = (0.0, 1.0) if X is None or not len(X) else (float(X.min()), float(X.max()))
    high = high if high > low else low + 1.0
    if issubclass(kind, _Located):
        return kind.spread(low, high, n)
    if kind is FourierBasis:
        return FourierBasis(max(n // 2, 1), period=2.0 * (high - low))
    if kind is LegendreBasis:
        return LegendreBasis(n, low, high)
    return kind() if kind is IdentityBasis else kind(degree=n)  # type: ignore[call-arg]
