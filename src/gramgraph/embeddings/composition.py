"""Operators between function spaces as the text writes them: C = Φ(X) W Φ(Y)ᵀ, with products, adjoints and evaluation.

An operator is a matrix W between two samples. A product inserts the Gram matrix between the two samples that meet, so
that C_AD = C_AA C_{B|A}ᵀ C_{C|B}ᵀ C_{D|C}ᵀ is written as it reads, also where each pair comes from a sample of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, overload

import numpy as np

from gramgraph.embeddings.mean import MeanEmbedding
from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.inputs import count
from gramgraph.rkhs import RKHSFunction, SpaceError
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Side:
    """One end of an operator: a space, the sample it is written on, and whether the constant function joins them."""

    kernel: Kernel
    points: Any
    constant: bool = False  # the last row of the weights then belongs to the function 1
    name: str = ""

    @property
    def size(self) -> int:
        """Number of rows that belong to this end."""
        return count(self.points) + self.constant

    def __repr__(self) -> str:
        return self.name or repr(self.kernel)

    def gram(self, other: Side) -> FloatArray:
        """What stands between two operators that meet; the constant is worth 1 at every point."""
        check_space(self, other)
        if self.constant and other.constant:
            raise SpaceError(
                "two centered operators meet with their constants, whose inner product the space does not fix. "
                "Use centered=False for one of them."
            )
        K = self.kernel.gram(self.points, other.points)
        if self.constant:
            K = np.vstack([K, np.ones((1, K.shape[1]))])
        return np.hstack([K, np.ones((len(K), 1))]) if other.constant else K

    def at(self, points: Any) -> FloatArray:
        """φ(x)ᵀ times this end, one row for each point: (m, size)."""
        K = self.kernel.gram(points, self.points)
        return np.hstack([K, np.ones((len(K), 1))]) if self.constant else K

    def projected(self, anchors: Any) -> tuple[Side, FloatArray]:
        """This end on anchors, and the matrix K⁺ K(anchors, points) that takes the weights there."""
        to = Side(self.kernel, self.kernel.prepare(anchors), self.constant, self.name)
        K = self.kernel.gram(to.points, to.points)
        P = np.linalg.pinv(K, rcond=1e-13, hermitian=True) @ self.kernel.gram(to.points, self.points)
        if self.constant:
            P = np.block([[P, np.zeros((len(P), 1))], [np.zeros((1, P.shape[1])), np.ones((1, 1))]])
        return to, P


def check_space(first: Side, second: Side) -> None:
    """`SpaceError` where two ends do not belong to the same space."""
    if first.kernel != second.kernel:
        raise SpaceError(
            f"these operators do not meet: {first!r} ({first.kernel!r}) is not {second!r} ({second.kernel!r}). "
            f"Try: `.T` of one of them, or the same kernel for both."
        )
    if first.name and second.name and first.name != second.name:
        raise SpaceError(f"these operators do not meet: {first.name} is not {second.name}. Try: `.T` of one of them.")


def one_point(kernel: Kernel, x: Any) -> RKHSFunction:
    """φ(x), the feature of one point, as a function: evidence x enters an operator as `C @ one_point(kernel, x)`.

    Parameters
    ----------
    kernel : the kernel.
    x : the point.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> f = one_point(RBF(), [0.0])
    >>> f([[0.0], [1.0]]).round(4).tolist()
    [1.0, 0.6065]
    """
    single = x if isinstance(x, (list, np.ndarray)) and len(x) == 1 else [x]
    return RKHSFunction(kernel, single, np.ones(1))


class Composable(ABC):
    """What can be multiplied, transposed and evaluated as an operator between function spaces."""

    @property
    @abstractmethod
    def operator(self) -> Operator:
        """Itself as Φ(X) W Φ(Y)ᵀ."""

    @property
    def T(self) -> Operator:
        """The adjoint, Φ(Y) Wᵀ Φ(X)ᵀ."""
        own = self.operator
        return Operator(own.right, own.W.T, own.left)

    @overload
    def __matmul__(self, other: Composable) -> Operator: ...
    @overload
    def __matmul__(self, other: RKHSFunction | MeanEmbedding) -> RKHSFunction: ...
    def __matmul__(self, other: Any) -> Any:
        """Product of operators, or the image of a function; spaces are checked."""
        own = self.operator
        if isinstance(other, Composable):
            right = other.operator
            return Operator(own.left, own.W @ own.right.gram(right.left) @ right.W, right.right)
        if isinstance(other, (RKHSFunction, MeanEmbedding)):
            weights = own.W @ (own.right.gram(Side(other.kernel, other.points)) @ other.weights)
            return own.function(weights)
        return NotImplemented

    def __call__(self, a: Any, b: Any, /) -> Any:
        """⟨φ(a), C φ(b)⟩: a number for two single numbers or labels, else a matrix with a row for each a."""
        own = self.operator
        single = _is_single(a) and _is_single(b)
        rows, columns = ([x] if _is_single(x) else x for x in (a, b))
        found = own.left.at(rows) @ own.W @ own.right.at(columns).T
        return float(found[0, 0]) if single else found

    def project(self, left: Any, right: Any) -> Operator:
        """The operator between anchors: both samples replaced by their projections K(x, anchors)K⁺.

        Its size no longer depends on the samples; where the anchors cover them, its values differ little.
        """
        own = self.operator
        to_left, P = own.left.projected(left)
        to_right, Q = own.right.projected(right)
        return Operator(to_left, P @ own.W @ Q.T, to_right)


def _is_single(x: Any) -> bool:
    return isinstance(x, (str, bytes)) or np.ndim(x) == 0


@dataclass(frozen=True, eq=False)
class Operator(Composable):
    """C = Φ(X) W Φ(Y)ᵀ, from the space of its right end to that of its left end; C(a, b) = ⟨φ(a), C φ(b)⟩.

    Products and adjoints of `CovarianceOperator` and `ConditionalOperator` are of this kind.

    Parameters
    ----------
    left : kernel and points of the left end.
    W : weights of the pairs of points.
    right : kernel and points of the right end.

    Examples
    --------
    >>> from gramgraph.embeddings import ConditionalOperator, CovarianceOperator
    >>> C_BgA = ConditionalOperator(["a", "a", "b"], ["u", "v", "v"], reg=0.0)
    >>> C_AB = CovarianceOperator(["a", "b", "b", "b"]) @ C_BgA.T
    >>> C_AB(["a", "b"], ["u", "v"]).round(6) + 0.0
    array([[0.125, 0.125],
           [0.   , 0.75 ]])
    """

    left: Side
    W: FloatArray  # (left.size, right.size)
    right: Side

    def __post_init__(self) -> None:
        if self.W.shape != (self.left.size, self.right.size):
            raise ModelError(f"W must have shape ({self.left.size}, {self.right.size}); it has {self.W.shape}.")

    def __repr__(self) -> str:
        return f"Operator({self.left!r} <- {self.right!r}, {self.W.shape[0]} x {self.W.shape[1]})"

    @property
    def operator(self) -> Operator:
        """Itself."""
        return self

    def table(self, X: Any, Y: Any, /) -> FloatArray:
        """⟨φ(x), C φ(y)⟩ for all x and y, (m, p)."""
        return self.left.at(X) @ self.W @ self.right.at(Y).T

    def function(self, weights: FloatArray) -> RKHSFunction:
        """Φ(X) weights, an element of the left space."""
        if self.left.constant:
            raise SpaceError(
                "the image holds a constant, which is not a function of the space. Use centered=False, or the operator "
                "itself instead of its adjoint."
            )
        return RKHSFunction(self.left.kernel, self.left.points, weights)


def reparameterize(*operators: Composable) -> tuple[FloatArray, ...]:
    """The finite matrices whose product is that of the operators: C₁ C₂ … = Φ(X) D₁ D₂ … Dₖ Φ(Y)ᵀ.

    Every operator takes the Gram matrix that follows it. For C_AA C_{B|A}ᵀ C_{C|B}ᵀ these are D_A = K_AA / N,
    D_B = (K_AA + λN I)⁻¹ K_BB and D_C = (K_BB + λN I)⁻¹; evidence enters as columns of kernel values at both ends.

    Parameters
    ----------
    *operators : from the left to the right.

    Examples
    --------
    >>> from gramgraph.embeddings import ConditionalOperator, CovarianceOperator
    >>> C_AA, C_BgA = CovarianceOperator(["a", "b"]), ConditionalOperator(["a", "b"], ["u", "u"], reg=0.5)
    >>> [D.tolist() for D in reparameterize(C_AA, C_BgA.T)]
    [[[0.5, 0.0], [0.0, 0.5]], [[0.5, 0.0], [0.0, 0.5]]]
    """
    if not operators:
        raise ModelError("reparameterize takes at least one operator.")
    parts = [each.operator for each in operators]
    joined = [part.W @ part.right.gram(after.left) for part, after in pairwise(parts)]
    return (*joined, parts[-1].W)
