"""Kernels of the difference x − x′."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramgraph._validation import generator
from gramgraph.kernels.base import Cotangent, Kernel, Pull, parameter
from gramgraph.kernels.inputs import KernelError, count, same_columns
from gramgraph.kernels.parameters import show_number
from gramgraph.typing import FloatArray, RandomState

#: Rows that are few, and the largest half square of columns whose distances are taken from products.
_FEW, _LARGE = 8, 1e4
#: Points in units of the length scale whose sums of squares have lost the digits that a gradient needs.
FAR = 1e6


def squared_distances(A: FloatArray, B: FloatArray | None) -> FloatArray:
    """‖a − b‖², never negative, exact zeros on the diagonal without B."""
    from gramgraph._numerics.gram.grams import squared_distances as run

    return run(A, B)


def scaled(X: FloatArray, scale: float | FloatArray, name: str) -> FloatArray:
    """X / scale, with the number of scales checked against the columns."""
    if np.ndim(scale) == 1 and np.shape(scale)[0] != X.shape[1]:
        raise KernelError(
            f"{name}: expected one number or {X.shape[1]}, one per column of X {X.shape}; got {np.shape(scale)[0]}."
        )
    return X / scale


def pull_squared(
    W: FloatArray, A: FloatArray, B: FloatArray | None, by_column: bool, inputs: bool
) -> tuple[Any, FloatArray | None, FloatArray | None]:
    """Reverse of S = ‖a − b‖² for a weight W = ∂loss/∂S: Σ W (a_c − b_c)² by column or in all, and ∂loss/∂A, ∂loss/∂B.

    Products with W only: no (n, m, d) array. Points far from 0 are subtracted from each other column by column, since
    their squares have no digits left for small distances.
    """
    right = A if B is None else B
    r, c = W.sum(1), W.sum(0)
    WB = W @ right
    if max(np.abs(A).max(initial=0.0), np.abs(right).max(initial=0.0)) > FAR:
        gaps = (np.subtract.outer(A[:, j], right[:, j]) for j in range(A.shape[1]))
        moments = np.array([float((W * gap * gap).sum()) for gap in gaps])
    else:
        moments = r @ (A * A) + c @ (right * right) - 2.0 * (A * WB).sum(0)
    total = moments if by_column else float(moments.sum())
    if not inputs:
        return total, None, None
    A_bar = 2.0 * (r[:, None] * A - WB)
    B_bar = 2.0 * (c[:, None] * right - W.T @ A)
    return (total, A_bar + B_bar, None) if B is None else (total, A_bar, B_bar)


class _DistanceKernel(Kernel):
    """A function of s = Σ_c (x_c − x′_c)² / ℓ_c², with `length_scale` one number or one per column."""

    length_scale: float | FloatArray

    def _profile(self, A: FloatArray, B: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """K, and s where the slope needs it, for points that are divided by ℓ."""
        raise NotImplementedError

    def _slope(self, K: FloatArray, S: FloatArray | None) -> FloatArray:
        """∂K/∂s, a new matrix."""
        raise NotImplementedError

    def _more(self, bar_K: FloatArray, K: FloatArray, S: FloatArray | None) -> dict[str, float]:
        """Gradients by the other parameters."""
        return {}

    def _diag(self, X: Any) -> FloatArray:
        return np.ones(len(X))

    def _divided(self, X: Any, Y: Any | None) -> tuple[FloatArray, FloatArray | None]:
        """Both in units of the length scale; around the first point where that is far from 0, to keep their digits."""
        origin = self._origin(X)
        return self._scaled(X, origin), None if Y is None else self._scaled(Y, origin)

    def _origin(self, X: FloatArray) -> FloatArray | None:
        """The first point, where it is far from 0."""
        return X[0] if len(X) and np.abs(self._scaled(X[:1])).max(initial=0.0) > FAR else None

    def _scaled(self, X: FloatArray, origin: FloatArray | None = None) -> FloatArray:
        around = X if origin is None else X - origin
        return scaled(around, self.length_scale, f"{type(self).__name__}.length_scale")

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        return self._profile(*self._divided(X, Y))[0]

    def prepare_columns(self, Y: Any, /) -> Any:
        """An origin where they are far from 0, and the points around it, divided by the length scale."""
        Y = self.prepare(Y)
        origin = self._origin(Y)
        return origin, self._scaled(Y, origin)

    def gram_columns(self, X: Any, columns: Any, /) -> FloatArray:
        """gram(X, Y) with columns = `prepare_columns(Y)`."""
        X, (origin, B) = self.prepare(X), columns
        same_columns(X, B)
        return self._profile(self._scaled(X, origin), B)[0]

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        ls = self.length_scale
        A, B = self._divided(X, Y)
        K, S = self._profile(A, B)

        def pull(bar_K: FloatArray) -> Cotangent:
            W = self._slope(K, S)
            W *= bar_K
            moments, A_bar, B_bar = pull_squared(W, A, B, np.ndim(ls) == 1, inputs)
            del W
            gradients = {"length_scale": -2.0 * moments / ls, **self._more(bar_K, K, S)}
            return self.cotangent(
                gradients, None if A_bar is None else A_bar / ls, None if B_bar is None else B_bar / ls
            )

        return K, pull

    def _mixed_frequencies(self, n_features: int, d: int, random_state: RandomState, draw: Any) -> Any:
        """Gaussian frequencies of random size: √draw(rng) z / ℓ."""
        from gramgraph.kernels.spectral import fourier_features

        rng = generator(random_state)
        if np.ndim(self.length_scale) == 1 and np.size(self.length_scale) != d:
            raise KernelError(f"spectral_sample: d = {d}, but there are {np.size(self.length_scale)} length scales.")
        omega = rng.standard_normal((n_features, d)) / self.length_scale
        return fourier_features(np.sqrt(draw(rng))[:, None] * omega, rng)


@dataclass(frozen=True, eq=False, repr=False)
class RBF(_DistanceKernel):
    """exp(−Σ_c (x_c − x′_c)² / (2 ℓ_c²)), one length scale or one per column.

    Parameters
    ----------
    length_scale : distance over which values are alike; one number, or one a column.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> RBF(length_scale=[1.0, 2.0]).gram([[0.0, 0.0], [0.0, 2.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    length_scale: float | FloatArray = parameter(1.0, max_ndim=1)

    def _profile(self, A: FloatArray, B: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        from gramgraph._numerics.gram.grams import rbf_gram

        return rbf_gram(A, B), None

    def _gram_into(self, X: Any, Y: Any | None, out: FloatArray, n_jobs: int) -> None:
        from gramgraph._numerics.gram.grams import rbf_gram

        rbf_gram(*self._divided(X, Y), out=out, n_jobs=n_jobs)

    def prepare_columns(self, Y: Any, /) -> Any:
        """(origin, center, points around both, −½ of their squares where they are not large), divided by ℓ."""
        origin, B = super().prepare_columns(Y)
        center = B.mean(axis=0) if len(B) else np.zeros(B.shape[1])
        B -= center
        halves = -0.5 * np.einsum("ij,ij->i", B, B)
        return origin, center, B, halves if len(B) and halves.min() > -_LARGE else None

    def gram_columns(self, X: Any, columns: Any, /) -> FloatArray:
        """gram(X, Y) with columns = `prepare_columns(Y)`; a few rows by one product, unless it would lose digits."""
        origin, center, B, halves = columns
        X = self.prepare(X)
        same_columns(X, B)
        A = self._scaled(X, origin)
        A -= center
        if halves is None or len(A) > _FEW:
            return self._profile(A, B)[0]
        from gramgraph._numerics.gram.grams import rbf_by_products

        return rbf_by_products(A, B, halves)

    def _slope(self, K: FloatArray, S: FloatArray | None) -> FloatArray:
        return -0.5 * K

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> Any:
        """Frequencies ~ N(0, diag(1/ℓ²))."""
        return self._mixed_frequencies(n_features, d, random_state, lambda rng: np.ones(n_features))


@dataclass(frozen=True, eq=False, repr=False)
class Matern(_DistanceKernel):
    """2^(1−ν)/Γ(ν) t^ν K_ν(t), t = √(2ν) r with r the scaled distance. ν = 1/2: exp(−r); ν → ∞: RBF.

    ν = 1/2, 3/2, 5/2 have closed forms; any other ν goes through Bessel functions, with exact gradients by length scale
    and inputs. ν is fixed unless freed (`Matern(nu=1.5).free("nu")`); the derivative by ν is then a numeric one.

    Parameters
    ----------
    length_scale : distance over which values are alike; one number, or one a column.
    nu : smoothness: draws have derivatives of order below ν.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Matern(nu=0.5).gram([0.0, 1.0]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    length_scale: float | FloatArray = parameter(1.0, max_ndim=1)
    nu: float = parameter(1.5, bounds=(0.1, 30.0))
    fixed: tuple[str, ...] = field(default=("nu",), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu > 50.0:
            raise KernelError(f"Matern.nu: expected at most 50, got {self.nu:g}. Try: RBF, its limit.")

    def _profile(self, A: FloatArray, B: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        from gramgraph._numerics.gram import grams
        from gramgraph.kernels._matern import matern

        closed = self._closed()
        S = grams.squared_distances(A, B)
        return (matern(S, self.nu) if closed is None else grams.distance_gram(A, B, closed)), S

    def _closed(self) -> int | None:
        """Number of the fused routine of a closed form."""
        from gramgraph._numerics.gram import grams

        return {0.5: grams.MATERN12, 1.5: grams.MATERN32, 2.5: grams.MATERN52}.get(self.nu)

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        from gramgraph._numerics.gram.grams import distance_gram

        closed = self._closed()
        return super()._gram(X, Y) if closed is None else distance_gram(*self._divided(X, Y), closed)

    def _gram_into(self, X: Any, Y: Any | None, out: FloatArray, n_jobs: int) -> None:
        from gramgraph._numerics.gram.grams import distance_gram

        closed = self._closed()
        if closed is None:
            super()._gram_into(X, Y, out, n_jobs)
        else:
            distance_gram(*self._divided(X, Y), closed, out=out, n_jobs=n_jobs)

    def _slope(self, K: FloatArray, S: FloatArray | None) -> FloatArray:
        from gramgraph.kernels._matern import matern_slope

        assert S is not None
        if self.nu == 0.5:  # a kink at 0, where 0 stands
            return np.divide(-0.5 * K, np.sqrt(S), out=np.zeros_like(K), where=S > 0)
        if self.nu == 1.5:
            W = 3.0 * S  # in place: whole matrices are what memory is short of
            np.sqrt(W, out=W)
            np.negative(W, out=W)
            np.exp(W, out=W)
            W *= -1.5
            return W
        if self.nu == 2.5:
            t = 5.0 * S
            np.sqrt(t, out=t)
            W = np.negative(t)
            np.exp(W, out=W)
            t += 1.0
            W *= t
            W *= -5.0 / 6.0
            return W
        return matern_slope(S, self.nu)

    def _more(self, bar_K: FloatArray, K: FloatArray, S: FloatArray | None) -> dict[str, float]:
        from gramgraph.kernels._matern import matern_by_nu

        if not self.is_free("nu"):
            return {}
        assert S is not None
        return {"nu": float(np.vdot(bar_K, matern_by_nu(S, self.nu)))}

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> Any:
        """Frequencies follow Student's t with 2ν degrees of freedom."""
        size = 2.0 * self.nu
        return self._mixed_frequencies(n_features, d, random_state, lambda rng: size / rng.chisquare(size, n_features))

    def state_space(self) -> Any:
        """Companion form with 1, 2 or 3 states."""
        from gramgraph.kernels.state_space import matern_model

        if np.size(self.length_scale) != 1:
            raise KernelError("Matern.state_space: expected one length scale, for points on the line.")
        return matern_model(self.nu, float(np.ravel(self.length_scale)[0]))


@dataclass(frozen=True, eq=False, repr=False)
class RationalQuadratic(_DistanceKernel):
    """(1 + s/(2α))^(−α): RBF kernels of all length scales, mixed; α → ∞: RBF.

    Parameters
    ----------
    length_scale : distance over which values are alike; one number, or one a column.
    alpha : mixture of length scales: small for many, large for one.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> RationalQuadratic(alpha=1.0).gram([0.0], [2.0]).round(4)
    array([[0.3333]])
    """

    length_scale: float | FloatArray = parameter(1.0, max_ndim=1)
    alpha: float = parameter(1.0)

    def _profile(self, A: FloatArray, B: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        S = squared_distances(A, B)
        return np.exp(-self.alpha * np.log1p(S / (2.0 * self.alpha))), S

    def _slope(self, K: FloatArray, S: FloatArray | None) -> FloatArray:
        assert S is not None
        W = S / -self.alpha
        W -= 2.0
        return np.divide(K, W, out=W)  # −½ K / (1 + s / 2α)

    def _more(self, bar_K: FloatArray, K: FloatArray, S: FloatArray | None) -> dict[str, float]:
        assert S is not None
        v = S / (2.0 * self.alpha)
        return {"alpha": float(np.vdot(bar_K, K * (v / (1.0 + v) - np.log1p(v))))}

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> Any:
        """Gaussian frequencies whose precision is Gamma(α, α)."""
        a = self.alpha
        return self._mixed_frequencies(n_features, d, random_state, lambda rng: rng.gamma(a, 1.0 / a, n_features))


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Kernel):
    """k(x, x′) = value, for points of any kind.

    Parameters
    ----------
    value : the number.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Constant(2.0).gram([0.0, 1.0])
    array([[2., 2.],
           [2., 2.]])
    """

    value: float = parameter(1.0)

    def prepare(self, X: Any) -> Any:
        """Any sequence."""
        return X

    def _diag(self, X: Any) -> FloatArray:
        return np.full(count(X), self.value)

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        def pull(bar_K: FloatArray) -> Cotangent:
            X_bar, Y_bar = (_zeros_like_points(Z) if inputs else None for Z in (X, Y))
            return self.cotangent({"value": float(bar_K.sum())}, X_bar, Y_bar)

        return np.full((count(X), count(X if Y is None else Y)), self.value), pull

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> Any:
        """All frequencies zero."""
        from gramgraph.kernels.spectral import FourierFeatures

        return FourierFeatures(np.zeros((1, d)), np.full(1, np.pi / 4), np.array([self.value]))

    def state_space(self) -> Any:
        """A state that never moves."""
        from gramgraph.kernels.state_space import constant_model

        return constant_model(self.value)

    def formula(self, digits: int | None = None) -> str:
        """Constant(2)."""
        return (
            Kernel.formula(self, digits)
            if self.fixed and digits is None
            else f"Constant({show_number(self.value, digits)})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class White(Kernel):
    """Noise: `variance` where a point meets itself, that is on the diagonal of gram(X), and 0 elsewhere.

    Between X and another Y it is 0 even where the points are equal: two measurements at one place have two noises.

    Parameters
    ----------
    variance : of the noise.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> White(0.1).gram([0.0, 0.0])
    array([[0.1, 0. ],
           [0. , 0.1]])
    """

    variance: float = parameter(1.0)

    def prepare(self, X: Any) -> Any:
        """Any sequence."""
        return X

    def _diag(self, X: Any) -> FloatArray:
        return np.full(count(X), self.variance)

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        def pull(bar_K: FloatArray) -> Cotangent:
            X_bar, Y_bar = (_zeros_like_points(Z) if inputs else None for Z in (X, Y))
            return self.cotangent({"variance": float(np.trace(bar_K)) if Y is None else 0.0}, X_bar, Y_bar)

        n = count(X)
        K = np.zeros((n, n if Y is None else count(Y)))
        if Y is None:
            np.fill_diagonal(K, self.variance)
        return K, pull

    def formula(self, digits: int | None = None) -> str:
        """White(0.1)."""
        return (
            Kernel.formula(self, digits)
            if self.fixed and digits is None
            else f"White({show_number(self.variance, digits)})"
        )


def _zeros_like_points(X: Any) -> FloatArray | None:
    from gramgraph.kernels.inputs import as_points

    return None if X is None else np.zeros_like(as_points(X))
