"""Kernels made of the values of kernels: sums, products, scales, powers, exponentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._validation import generator
from gramgraph.kernels.base import Cotangent, Kernel, Pull
from gramgraph.kernels.inputs import KernelError
from gramgraph.kernels.parameters import is_whole, parameter, show_number
from gramgraph.typing import FloatArray, RandomState

if TYPE_CHECKING:
    from gramgraph.kernels.spectral import FourierFeatures
    from gramgraph.kernels.state_space import StateSpace


def add(left: Kernel | float, right: Kernel | float) -> Kernel:
    """k + l; a number is a constant kernel, 0 is left out (so that sum([k, l]) works)."""
    from gramgraph.kernels.stationary import Constant

    terms: list[Kernel] = []
    for item in (left, right):
        if isinstance(item, Kernel):
            terms.extend(item.terms if isinstance(item, Sum) else (item,))
        elif _number(item, "added to") != 0.0:
            terms.append(Constant(float(item)))
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def multiply(left: Kernel, right: Kernel | float) -> Kernel:
    """k l, or a positive number times k."""
    if isinstance(right, Kernel):
        factors = [f for item in (left, right) for f in (item.factors if isinstance(item, Product) else (item,))]
        return Product(tuple(factors))
    number = _number(right, "multiplied with")
    if number == 0.0:
        raise KernelError("0 * kernel is not a kernel with parameters: expected a positive number.")
    if isinstance(left, Scale) and not left.fixed and not left.limits:
        return Scale(number * left.variance, left.base)
    return Scale(number, left)


def divide(left: Kernel, right: float) -> Kernel:
    """k / number."""
    return multiply(left, 1.0 / _number(right, "divided by")) if right else multiply(left, 0.0)


def power(base: Kernel, exponent: int) -> Kernel:
    """k ** p for a whole p ≥ 1."""
    if not is_whole(exponent) or exponent < 1:
        raise KernelError(
            f"kernel ** {exponent!r}: expected a whole exponent ≥ 1; other powers are in general not positive definite."
        )
    return base if exponent == 1 else Power(base, int(exponent))


def _number(value: Any, doing: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"a kernel can be {doing} a kernel or a number, not {type(value).__name__}.")
    if not (np.isfinite(value) and value >= 0):
        raise KernelError(f"a kernel {doing} {value!r} is not positive definite: expected a number ≥ 0.")
    return float(value)


def _merge(found: Sequence[Cotangent]) -> tuple[FloatArray | None, FloatArray | None]:
    """Input gradients of several pulls, added."""

    def total(parts: list[FloatArray | None]) -> FloatArray | None:
        kept = [part for part in parts if part is not None]
        return reduce(np.add, kept) if kept else None

    return total([c.X for c in found]), total([c.Y for c in found])


class _Composite(Kernel):
    """Parts look at the inputs themselves: they may want different things of them."""

    def prepare(self, X: Any) -> Any:
        """Left to the parts."""
        return X


@dataclass(frozen=True, eq=False, repr=False)
class Sum(_Composite):
    """k₁ + k₂ + …, the kernel of a sum of independent functions.

    Parameters
    ----------
    terms : the kernels.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF, Constant
    >>> RBF() + 1
    RBF(length_scale=1) + Constant(1)
    """

    terms: tuple[Kernel, ...]

    def _diag(self, X: Any) -> FloatArray:
        return reduce(np.add, [term.diag(X) for term in self.terms])

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        K = self.terms[0].gram(X, Y)
        for term in self.terms[1:]:
            K += term.gram(X, Y)
        return K

    def prepare_columns(self, Y: Any, /) -> Any:
        """What every term needs."""
        return [term.prepare_columns(Y) for term in self.terms]

    def gram_columns(self, X: Any, columns: Any, /) -> FloatArray:
        """gram(X, Y) with columns = `prepare_columns(Y)`."""
        K = self.terms[0].gram_columns(X, columns[0])
        for term, own in zip(self.terms[1:], columns[1:], strict=True):
            K += term.gram_columns(X, own)
        return K

    def _gram_into(self, X: Any, Y: Any | None, out: FloatArray, n_jobs: int) -> None:
        self.terms[0].gram(X, Y, out=out, n_jobs=n_jobs)
        for term in self.terms[1:]:
            out += term.gram(X, Y, n_jobs=n_jobs)

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        K, first = self.terms[0].pullback(X, Y, inputs=inputs)
        K, pulls = K.copy(), [first]
        for term in self.terms[1:]:
            more, pull_term = term.pullback(X, Y, inputs=inputs)
            K += more
            pulls.append(pull_term)

        def pull(bar_K: FloatArray) -> Cotangent:
            found = [p(bar_K) for p in pulls]
            return self.cotangent({f"terms[{i}]": c.theta for i, c in enumerate(found)}, *_merge(found))

        return K, pull

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> FourierFeatures:
        """Features of the terms side by side, n_features each."""
        from gramgraph.kernels.spectral import side_by_side

        rng = generator(random_state)
        return side_by_side([term.spectral_sample(n_features, d, rng) for term in self.terms])

    def state_space(self) -> StateSpace:
        """Independent processes, stacked."""
        from gramgraph.kernels.state_space import add_models

        return reduce(add_models, [term.state_space() for term in self.terms])

    def formula(self, digits: int | None = None) -> str:
        """k + l."""
        return " + ".join(term.formula(digits) for term in self.terms)


@dataclass(frozen=True, eq=False, repr=False)
class Product(_Composite):
    """k₁ · k₂ · …, the kernel of all products of features.

    Parameters
    ----------
    factors : the kernels.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> (RBF(1.0) * RBF(1.0)).gram([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    factors: tuple[Kernel, ...]

    def _diag(self, X: Any) -> FloatArray:
        return reduce(np.multiply, [factor.diag(X) for factor in self.factors])

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        K = self.factors[0].gram(X, Y)
        for factor in self.factors[1:]:
            K *= factor.gram(X, Y)
        return K

    def _gram_into(self, X: Any, Y: Any | None, out: FloatArray, n_jobs: int) -> None:
        self.factors[0].gram(X, Y, out=out, n_jobs=n_jobs)
        for factor in self.factors[1:]:
            out *= factor.gram(X, Y, n_jobs=n_jobs)

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        done = [factor.pullback(X, Y, inputs=inputs) for factor in self.factors]

        def pull(bar_K: FloatArray) -> Cotangent:
            found = [part(weight) for (_, part), weight in zip(done, product_weights(bar_K, done), strict=True)]
            return self.cotangent({f"factors[{i}]": c.theta for i, c in enumerate(found)}, *_merge(found))

        return reduce(np.multiply, [K for K, _ in done]) if len(done) > 1 else done[0][0].copy(), pull

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> FourierFeatures:
        """Frequencies of a product are sums of the factors' frequencies."""
        from gramgraph.kernels.spectral import frequency_sum

        rng = generator(random_state)
        return frequency_sum([factor.spectral_sample(n_features, d, rng) for factor in self.factors], rng)

    def state_space(self) -> StateSpace:
        """Kronecker sum of the factors' models."""
        from gramgraph.kernels.state_space import multiply_models

        return reduce(multiply_models, [factor.state_space() for factor in self.factors])

    def formula(self, digits: int | None = None) -> str:
        """k * l."""
        return " * ".join(bracket(factor, (Sum, Scale), digits) for factor in self.factors)


def product_weights(bar_K: FloatArray, done: Sequence[tuple[FloatArray, Pull]]) -> Iterator[FloatArray]:
    """∂loss/∂K_i of every factor of a product, one after the other: bar_K times all other factors."""
    for i in range(len(done)):
        weight = bar_K.copy()
        for j, (other, _) in enumerate(done):
            if j != i:
                weight *= other
        yield weight


@dataclass(frozen=True, eq=False, repr=False)
class Scale(_Composite):
    """variance · k.

    Parameters
    ----------
    variance : the factor before the kernel.
    base : parameter() gives no default.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> (3 * RBF()).diag([0.0, 1.0])
    array([3., 3.])
    """

    variance: float = parameter()
    base: Kernel  # type: ignore[misc]  # parameter() gives no default

    def _diag(self, X: Any) -> FloatArray:
        return self.variance * self.base.diag(X)

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        K = self.base.gram(X, Y)
        K *= self.variance
        return K

    def prepare_columns(self, Y: Any, /) -> Any:
        """What the kernel behind the factor needs."""
        return self.base.prepare_columns(Y)

    def gram_columns(self, X: Any, columns: Any, /) -> FloatArray:
        """gram(X, Y) with columns = `prepare_columns(Y)`."""
        K = self.base.gram_columns(X, columns)
        K *= self.variance
        return K

    def _gram_into(self, X: Any, Y: Any | None, out: FloatArray, n_jobs: int) -> None:
        self.base.gram(X, Y, out=out, n_jobs=n_jobs)
        out *= self.variance

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        K, pull_base = self.base.pullback(X, Y, inputs=inputs)
        v = self.variance

        def pull(bar_K: FloatArray) -> Cotangent:
            c = pull_base(bar_K)  # linear in bar_K: scaling afterwards saves a matrix
            mine = float(np.vdot(bar_K, K)) if self.is_free("variance") else 0.0
            X_bar, Y_bar = (None if g is None else v * g for g in (c.X, c.Y))
            return self.cotangent({"variance": mine, "base": v * c.theta}, X_bar, Y_bar)

        return v * K, pull

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> FourierFeatures:
        """Features times the root of the variance."""
        return self.base.spectral_sample(n_features, d, random_state).scaled(self.variance)

    def state_space(self) -> StateSpace:
        """The same dynamics, louder."""
        return self.base.state_space().scaled(self.variance)

    def formula(self, digits: int | None = None) -> str:
        """2 * k."""
        if self.fixed and digits is None:
            return Kernel.formula(self, digits)
        return f"{show_number(self.variance, digits)} * {bracket(self.base, (Sum,), digits)}"


@dataclass(frozen=True, eq=False, repr=False)
class Power(_Composite):
    """k ** exponent, a whole exponent ≥ 1: all products of so many features.

    Parameters
    ----------
    base : the kernel k inside.
    exponent : a whole number.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import Linear
    >>> Power(Linear(), 2).gram([[1.0], [2.0]]).tolist()
    [[1.0, 4.0], [4.0, 16.0]]
    """

    base: Kernel
    exponent: int

    def _diag(self, X: Any) -> FloatArray:
        return self.base.diag(X) ** self.exponent

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        return self.base.gram(X, Y) ** self.exponent

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        K, pull_base = self.base.pullback(X, Y, inputs=inputs)
        p = self.exponent

        def pull(bar_K: FloatArray) -> Cotangent:
            c = pull_base(p * bar_K * K ** (p - 1))
            return self.cotangent({"base": c.theta}, c.X, c.Y)

        return K**p, pull

    def formula(self, digits: int | None = None) -> str:
        """k ** 2."""
        return f"{bracket(self.base, (Sum, Product, Scale, Power), digits)} ** {self.exponent}"


@dataclass(frozen=True, eq=False, repr=False)
class Exponential(_Composite):
    """exp(k(x, x′)) = Σ kⁿ/n!, positive definite term by term.

    Parameters
    ----------
    base : the kernel k inside.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> Exponential(RBF()).gram([[0.0], [1.0]]).round(4).tolist()
    [[2.7183, 1.8341], [1.8341, 2.7183]]
    """

    base: Kernel

    def _diag(self, X: Any) -> FloatArray:
        return np.exp(self.base.diag(X))

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        K = self.base.gram(X, Y)
        return np.exp(K, out=K)

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        base, pull_base = self.base.pullback(X, Y, inputs=inputs)
        K = np.exp(base)

        def pull(bar_K: FloatArray) -> Cotangent:
            c = pull_base(bar_K * K)
            return self.cotangent({"base": c.theta}, c.X, c.Y)

        return K, pull

    def formula(self, digits: int | None = None) -> str:
        """exp(k)."""
        return f"exp({self.base.formula(digits)})"


def bracket(kernel: Kernel, kinds: tuple[type[Kernel], ...], digits: int | None) -> str:
    """The formula, in brackets around these kinds of kernel."""
    text = kernel.formula(digits)
    return f"({text})" if isinstance(kernel, kinds) else text
