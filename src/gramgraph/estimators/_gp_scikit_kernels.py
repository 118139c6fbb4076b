"""Kernels of sklearn.gaussian_process.kernels as values of this library, with the same theta in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.kernels import RBF, Constant, Kernel, Linear, Matern, Periodic, Power, RationalQuadratic, Scale, White
from gramgraph.kernels.algebra import Product, Sum
from gramgraph.kernels.base import Cotangent, Pull, parameter
from gramgraph.kernels.parameters import Part
from gramgraph.kernels.stationary import squared_distances
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class AlphaRationalQuadratic(RationalQuadratic):
    """`RationalQuadratic` with alpha before the length scale in theta: scikit-learn sorts its parameters by name.

    >>> AlphaRationalQuadratic(length_scale=1.0, alpha=np.e).theta
    array([1., 0.])
    """

    def _parts(self) -> Iterator[Part]:
        return iter(sorted(super()._parts(), key=lambda part: part.name))


@dataclass(frozen=True, eq=False, repr=False)
class DotProduct(Kernel):
    """sigma_0² + xᵀx′, with log sigma_0 in theta (the variance of a `Constant` would be its square).

    >>> DotProduct(2.0).gram([[1.0], [3.0]])
    array([[ 5.,  7.],
           [ 7., 13.]])
    """

    sigma_0: float = parameter(1.0)

    def plain(self) -> Kernel:
        """The same as a sum."""
        return Linear() + Constant(self.sigma_0**2)

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.einsum("ij,ij->i", X, X) + self.sigma_0**2

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        K = X @ (X if Y is None else Y).T
        K += self.sigma_0**2

        def pull(bar: FloatArray) -> Cotangent:
            gradients = {"sigma_0": 2.0 * self.sigma_0 * float(bar.sum())}
            if not inputs:
                return self.cotangent(gradients)
            if Y is None:
                return self.cotangent(gradients, bar @ X + bar.T @ X)
            return self.cotangent(gradients, bar @ Y, bar.T @ X)

        return K, pull


@dataclass(frozen=True, eq=False, repr=False)
class ExpSineSquared(Kernel):
    """exp(−2 sin²(π r / period) / ℓ²) of the Euclidean distance r: on the line it is `Periodic`.

    In more than one dimension it need not be positive definite; scikit-learn has it all the same.

    >>> ExpSineSquared(period=2.0).gram([[0.0], [2.0]]).round(4)
    array([[1., 1.],
           [1., 1.]])
    """

    length_scale: float = parameter(1.0)
    period: float = parameter(1.0)
    positive_definite = False

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        angle = np.sqrt(squared_distances(X, Y)) * (np.pi / self.period)
        sine = np.sin(angle)
        K = np.exp(-2.0 * (sine / self.length_scale) ** 2)

        def pull(bar: FloatArray) -> Cotangent:
            if inputs:
                raise ModelError("ExpSineSquared of several columns gives no gradient by its inputs. Known: Periodic.")
            weight = (4.0 / self.length_scale**2) * bar * K * sine
            gradients = {
                "length_scale": float(np.vdot(weight, sine)) / self.length_scale,
                "period": float(np.vdot(weight, np.cos(angle) * angle)) / self.period,
            }
            return self.cotangent(gradients)

        return K, pull


def from_scikit_learn(kernel: Any, columns: int | None = None) -> tuple[Kernel, FloatArray]:
    """Our value of a kernel of sklearn.gaussian_process.kernels, with the bounds of its theta.

    Constant, White, RBF, Matern, RationalQuadratic, ExpSineSquared, DotProduct, sums, products, powers. theta has the
    same entries in the same order. `columns` is the number of columns of X, when it is known.

    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> print(from_scikit_learn(2.0 * RBF(0.5) + WhiteKernel(0.1))[0])
    2 * RBF(length_scale=0.5) + White(0.1)
    """
    found = _translated(kernel, columns)
    return found, found.bounds


def _translated(kernel: Any, columns: int | None) -> Kernel:
    from sklearn.gaussian_process import kernels as sk

    if isinstance(kernel, sk.Exponentiation):
        if kernel.exponent < 1 or float(kernel.exponent) != int(kernel.exponent):
            raise ModelError(
                f"A power of a kernel is positive definite for sure only if the exponent is a whole number from 1; "
                f"it is {kernel.exponent!r} in {kernel!r}. Try: RBF(ℓ) ** p is RBF(ℓ / √p)."
            )
        return Power(_translated(kernel.kernel, columns), int(kernel.exponent))
    if isinstance(kernel, (sk.Sum, sk.Product)):
        a, b = _translated(kernel.k1, columns), _translated(kernel.k2, columns)
        if isinstance(kernel, sk.Sum):  # built by hand: the operators may sort and merge, and theta with it
            return Sum((*(a.terms if isinstance(a, Sum) else (a,)), *(b.terms if isinstance(b, Sum) else (b,))))
        if isinstance(a, Constant) and not isinstance(b, Constant):
            limits = tuple(("variance", low, high) for _, low, high in a.limits)
            return Scale(a.value, b, fixed=("variance",) if a.fixed else (), limits=limits)
        return Product(
            (*(a.factors if isinstance(a, Product) else (a,)), *(b.factors if isinstance(b, Product) else (b,)))
        )
    return _leaf(kernel, sk, columns)


def _leaf(kernel: Any, sk: Any, columns: int | None) -> Kernel:
    names: dict[Any, tuple[Any, dict[str, str]]] = {
        sk.ConstantKernel: (Constant, {"value": "constant_value"}),
        sk.WhiteKernel: (White, {"variance": "noise_level"}),
        sk.RBF: (RBF, {"length_scale": "length_scale"}),
        sk.Matern: (Matern, {"length_scale": "length_scale"}),
        sk.RationalQuadratic: (AlphaRationalQuadratic, {"length_scale": "length_scale", "alpha": "alpha"}),
        sk.ExpSineSquared: (
            Periodic if columns == 1 else ExpSineSquared,
            {"length_scale": "length_scale", "period": "periodicity"},
        ),
        sk.DotProduct: (DotProduct, {"sigma_0": "sigma_0"}),
    }
    if isinstance(kernel, sk.CompoundKernel):
        raise ModelError("kernel cannot be a CompoundKernel, which is a list of kernels: fit one model for each.")
    if type(kernel) not in names:
        raise ModelError(
            f"{type(kernel).__name__} of scikit-learn has no counterpart here. Known: ConstantKernel, WhiteKernel, "
            f"RBF, Matern, RationalQuadratic, ExpSineSquared, DotProduct, sums, products and powers of them."
        )
    ours, fields = names[type(kernel)]
    values: dict[str, Any] = {mine: getattr(kernel, theirs) for mine, theirs in fields.items()}
    kept = tuple(mine for mine, theirs in fields.items() if getattr(kernel, f"hyperparameter_{theirs}").fixed)
    if ours is Matern:
        if np.isinf(kernel.nu):
            ours = RBF
        else:
            values["nu"], kept = float(kernel.nu), (*kept, "nu")
    limits = tuple(
        (mine, *_ends(getattr(kernel, f"hyperparameter_{theirs}")))
        for mine, theirs in fields.items()
        if mine not in kept
    )
    made: Kernel = ours(**values, fixed=kept, limits=limits)
    return made


def _ends(hyperparameter: Any) -> tuple[Any, Any]:
    """The bounds of a parameter of scikit-learn: two numbers, or two an entry of a vector."""
    ends = np.asarray(hyperparameter.bounds, dtype=np.float64).reshape(-1, 2)
    if not (ends[:, 0] <= ends[:, 1]).all() or (ends < 0.0).any():
        raise ModelError(
            f"{hyperparameter.name}: bounds must be two numbers, 0 < low ≤ high; they are {ends.tolist()}. A search "
            "requires that all bounds are finite and positive."
        )
    if len(ends) == 1:
        return float(ends[0, 0]), float(ends[0, 1])
    return tuple(ends[:, 0].tolist()), tuple(ends[:, 1].tolist())
