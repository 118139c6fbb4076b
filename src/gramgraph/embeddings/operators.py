"""Covariance operators: how two variables vary together, as one operator between function spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.embeddings.composition import Composable, Operator, Side
from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import check_pairs, sample_of
from gramgraph.rkhs import RKHSFunction, SpaceError
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False, init=False)
class CovarianceOperator(Composable):
    """C_XY = Σ wᵢ φ(xᵢ) ⊗ ψ(yᵢ), less the product of the means when `centered`; C(x, y) = ⟨φ(x), C ψ(y)⟩.

    With delta kernels the uncentered operator is the joint table. Without Y it is the auto-covariance operator C_XX.
    `.T` and `@` compose it with conditional operators; `names` ("A", "B") are checked where operators meet, as kernels
    are. `apply` is the adjoint: ⟨g, C_YX f⟩ = E[f(X) g(Y)], or the covariance.

    Parameters
    ----------
    X : sample of the first variable.
    Y : sample of the second variable, paired with X.
    kernel_x : kernel of X; None for the default one of its domain.
    kernel_y : kernel of Y; None for the default one of its domain.
    domain_x : what the values of X are: "real", "circle", "category", …; None guesses.
    domain_y : what the values of Y are, likewise.
    weights : of the rows; None for equal ones.
    centered : whether means are taken off.
    names : of the variables, for printing.

    Examples
    --------
    >>> C = CovarianceOperator(["a", "a", "b"], ["u", "v", "v"])
    >>> C(["a", "b"], ["u", "v"]).round(4)
    array([[0.3333, 0.3333],
           [0.    , 0.3333]])
    """

    kernel_x: Kernel
    kernel_y: Kernel
    X: Any  # n points
    Y: Any  # n points
    weights: FloatArray  # (n,)
    centered: bool
    names: tuple[str, str]

    def __init__(
        self,
        X: Any,
        Y: Any = None,
        *,
        kernel_x: Kernel | None = None,
        kernel_y: Kernel | None = None,
        domain_x: str | None = None,
        domain_y: str | None = None,
        weights: Any = None,
        centered: bool = False,
        names: tuple[str, str] = ("", ""),
    ) -> None:
        kernel_x, X, n = sample_of(X, kernel_x, domain_x, name="X", least=1)
        if Y is None:
            if domain_y is not None or kernel_y not in (None, kernel_x):
                raise ModelError("the auto-covariance of X has one kernel: leave out kernel_y and domain_y.")
            kernel_y, Y, names = kernel_x, X, (names[0], names[1] or names[0])
        else:
            kernel_y, Y, m = sample_of(Y, kernel_y, domain_y, name="Y", least=1)
            check_pairs(n, m)
        w = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=np.float64)
        if w.shape != (n,):
            raise ModelError(f"weights must have shape ({n},), one per pair; they have {w.shape}.")
        found = {"kernel_x": kernel_x, "kernel_y": kernel_y, "X": X, "Y": Y, "weights": w}
        for key, value in {**found, "centered": centered, "names": tuple(names)}.items():
            object.__setattr__(self, key, value)

    @classmethod
    def of(cls, X: Any, Y: Any = None, **options: Any) -> CovarianceOperator:
        """The same as the constructor."""
        return cls(X, Y, **options)

    @property
    def operator(self) -> Operator:
        """Φ(X) W Φ(Y)ᵀ with W = diag(w), or diag(w) − w wᵀ / Σw when centered."""
        W = np.diag(self.weights)
        if self.centered:
            W = W - np.outer(self.weights, self.weights) / self.weights.sum()
        return Operator(
            Side(self.kernel_x, self.X, name=self.names[0]), W, Side(self.kernel_y, self.Y, name=self.names[1])
        )

    def __repr__(self) -> str:
        kind = "centered, " if self.centered else ""
        return f"CovarianceOperator({kind}{len(self.weights)} pairs, {self.kernel_x!r} -> {self.kernel_y!r})"

    @property
    def adjoint(self) -> CovarianceOperator:
        """C_XY, with ⟨f, C_XY g⟩ = ⟨g, C_YX f⟩."""
        return CovarianceOperator(
            self.Y,
            self.X,
            kernel_x=self.kernel_y,
            kernel_y=self.kernel_x,
            weights=self.weights,
            centered=self.centered,
            names=self.names[::-1],
        )

    def _spread(self, values: FloatArray) -> FloatArray:
        """wᵢ vᵢ, or wᵢ (vᵢ − mean) when centered: weights of the image."""
        if self.centered:
            values = values - self.weights @ values / self.weights.sum()
        return (self.weights * values.T).T

    def apply(self, f: RKHSFunction, /) -> RKHSFunction:
        """C_YX f = Σ wᵢ f(xᵢ) ψ(yᵢ), a function of y."""
        if f.kernel != self.kernel_x:
            raise SpaceError(
                f"f lives in the space of {f.kernel!r}, the operator takes functions of {self.kernel_x!r}."
            )
        return RKHSFunction(self.kernel_y, self.Y, self._spread(f(self.X)))

    def inner(self, f: RKHSFunction, g: RKHSFunction, /) -> float:
        """⟨g, C_YX f⟩ = E[f(X) g(Y)], or Cov(f(X), g(Y)) when centered."""
        return self.apply(f).inner(g)

    def table(self, X: Any, Y: Any, /) -> FloatArray:
        """⟨ψ(y), C_YX φ(x)⟩ for all x and y, (m, p): the joint density smoothed by both kernels. O(n m p)."""
        return self.kernel_x.gram(X, self.X) @ self._spread(self.kernel_y.gram(self.Y, Y))

    def hs_norm(self) -> float:
        """Hilbert–Schmidt norm; squared and centered it is HSIC, Σ wᵢwⱼ K̃ᵢⱼ L̃ᵢⱼ. O(n²)."""
        K = self._centered(self.kernel_x.gram(self.X, self.X))
        L = self._centered(self.kernel_y.gram(self.Y, self.Y))
        return float(np.sqrt(max(float(self.weights @ ((K * L) @ self.weights)), 0.0)))

    def _centered(self, K: FloatArray) -> FloatArray:
        if not self.centered:
            return K
        w = self.weights / self.weights.sum()
        row = w @ K
        return K - row - row[:, None] + float(row @ w)
