"""Kernels made in the feature space of another: normalized, centered, Gaussian of the feature distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.kernels.base import Cotangent, Kernel, Pull, parameter
from gramgraph.kernels.inputs import KernelError, count, same_columns
from gramgraph.kernels.tables import own_copy
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Normalized(Kernel):
    """k(x, x′) / √(k(x, x) k(x′, x′)): the cosine between features.

    Parameters
    ----------
    base : the kernel k inside.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> Normalized(5 * RBF()).diag([0.0, 1.0])
    array([1., 1.])
    """

    base: Kernel

    def prepare(self, X: Any) -> Any:
        """As the kernel below wants them."""
        return self.base.prepare(X)

    def _diag(self, X: Any) -> FloatArray:
        return np.ones(count(X))

    def _roots(self, diag: FloatArray) -> FloatArray:
        if not (diag > 0).all():
            i = int(np.argmin(diag))
            raise KernelError(
                f"Normalized: expected k(x, x) > 0 for every point; point {i} has {diag[i]:g}. "
                "Try: leave such points out, or add a constant to the kernel."
            )
        return np.sqrt(diag)

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        K = self.base.gram(X, Y)
        a = self._roots(self.base.diag(X))
        K /= a[:, None]
        K /= a if Y is None else self._roots(self.base.diag(Y))
        if Y is None:
            np.fill_diagonal(K, 1.0)
        return K

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        inner, pull_inner = self.base.pullback(X, Y, inputs=inputs)
        left, pull_left = self.base.diag_pullback(X, inputs=inputs)
        right, pull_right = (left, pull_left) if Y is None else self.base.diag_pullback(Y, inputs=inputs)
        a, b = self._roots(left), self._roots(right)
        K = inner / a[:, None] / b
        if Y is None:
            np.fill_diagonal(K, 1.0)

        def pull(bar_K: FloatArray) -> Cotangent:
            W = bar_K / a[:, None] / b
            P = bar_K * K
            if Y is None:  # the diagonal is 1 whatever the parameters are
                np.fill_diagonal(W, 0.0)
                np.fill_diagonal(P, 0.0)
            c = pull_inner(W)
            u, v = pull_left(-0.5 * P.sum(1) / left), pull_right(-0.5 * P.sum(0) / right)
            return _join(self, c, u, v, Y is None, inputs, {})

        return K, pull

    def formula(self, digits: int | None = None) -> str:
        """k.normalized()."""
        return f"({self.base.formula(digits)}).normalized()"


def _join(
    whole: Kernel, c: Cotangent, u: Cotangent, v: Cotangent, same: bool, inputs: bool, gradients: dict[str, Any]
) -> Cotangent:
    """Gradients of k(x, x′), k(x, x) and k(x′, x′) as one."""
    gradients = {**gradients, "base": c.theta + u.theta + v.theta}
    if not inputs:
        return whole.cotangent(gradients)
    if same:
        return whole.cotangent(gradients, c.X + u.X + v.X)  # type: ignore[operator]
    return whole.cotangent(gradients, c.X + u.X, c.Y + v.X)  # type: ignore[operator]


@dataclass(frozen=True, eq=False, repr=False)
class Centered(Kernel):
    """⟨φ(x) − μ, φ(x′) − μ⟩ with μ the mean feature of r reference points: O((n + m + r) r) more than k itself.

    The reference points are constants: gradients by inputs are those of x and x′ alone. Noise (`White` in k) belongs to
    a point, not to a place: reference points have noises of their own, so that `Centered(k + White(s), X).gram(X)` is
    the centered matrix of k plus s on the diagonal and s/r everywhere (the noise of the mean), which is not the matrix
    of k + White(s) with its rows and columns centered. What centers a matrix itself: k alone, or `KernelPCA`.

    Parameters
    ----------
    base : the kernel k inside.
    reference : the points whose mean is taken off.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> X = [0.0, 1.0, 3.0]
    >>> bool(abs(Centered(RBF(), X).gram(X).sum()) < 1e-12)
    True
    """

    base: Kernel
    reference: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "reference", own_copy(self.base.prepare(self.reference), self.reference))
        if count(self.reference) == 0:
            raise KernelError("Centered: expected at least one reference point, got none.")

    def prepare(self, X: Any) -> Any:
        """As the kernel below wants them."""
        X = self.base.prepare(X)
        same_columns(X, self.reference)
        return X

    def _mean_to(self, X: Any) -> FloatArray:
        return self.base.gram(X, self.reference).mean(1)

    def _mean_all(self) -> float:
        return float(self.base.gram(self.reference).mean())

    def _diag(self, X: Any) -> FloatArray:
        return self.base.diag(X) - 2.0 * self._mean_to(X) + self._mean_all()

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        K = self.base.gram(X, Y)
        left = self._mean_to(X)
        K -= left[:, None]
        K -= left if Y is None else self._mean_to(Y)
        K += self._mean_all()
        return K

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        R = self.reference
        r = count(R)
        K, pull_inner = self.base.pullback(X, Y, inputs=inputs)
        KX, pull_left = self.base.pullback(X, R, inputs=inputs)
        KY, pull_right = (KX, pull_left) if Y is None else self.base.pullback(Y, R, inputs=inputs)
        KR, pull_mean = self.base.pullback(R)

        def pull(bar_K: FloatArray) -> Cotangent:
            c = pull_inner(bar_K)
            u = pull_left(np.repeat(-bar_K.sum(1)[:, None] / r, r, axis=1))
            v = pull_right(np.repeat(-bar_K.sum(0)[:, None] / r, r, axis=1))
            m = pull_mean(np.full((r, r), bar_K.sum() / r**2))
            return _join(self, c._replace(theta=c.theta + m.theta), u, v, Y is None, inputs, {})

        return K - KX.mean(1)[:, None] - KY.mean(1) + KR.mean(), pull

    def formula(self, digits: int | None = None) -> str:
        """k.centered(reference)."""
        return f"({self.base.formula(digits)}).centered({count(self.reference)} points)"


@dataclass(frozen=True, eq=False, repr=False)
class RBFOver(Kernel):
    """The Gaussian kernel of another kernel's feature distance: exp(−(k(x,x) + k(x′,x′) − 2 k(x,x′)) / (2 σ²)).

    Parameters
    ----------
    base : the kernel k inside.
    sigma : width, in the distance of the inner kernel.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> RBFOver(RBF()).diag([0.0, 1.0])
    array([1., 1.])
    """

    base: Kernel
    sigma: float = parameter(1.0)

    def prepare(self, X: Any) -> Any:
        """As the kernel below wants them."""
        return self.base.prepare(X)

    def _diag(self, X: Any) -> FloatArray:
        return np.ones(count(X))

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        inner, pull_inner = self.base.pullback(X, Y, inputs=inputs)
        left, pull_left = self.base.diag_pullback(X, inputs=inputs)
        right, pull_right = (left, pull_left) if Y is None else self.base.diag_pullback(Y, inputs=inputs)
        S = np.maximum(left[:, None] + right - 2.0 * inner, 0.0)
        if Y is None:
            np.fill_diagonal(S, 0.0)
        K = np.exp(S / (-2.0 * self.sigma**2))

        def pull(bar_K: FloatArray) -> Cotangent:
            W = bar_K * K / (-2.0 * self.sigma**2)  # ∂loss/∂S
            if Y is None:
                np.fill_diagonal(W, 0.0)  # a point's distance to itself does not move
            c, a, b = pull_inner(-2.0 * W), pull_left(W.sum(1)), pull_right(W.sum(0))
            by_sigma = -2.0 * float(np.vdot(W, S)) / self.sigma
            return _join(self, c, a, b, Y is None, inputs, {"sigma": by_sigma})

        return K, pull
