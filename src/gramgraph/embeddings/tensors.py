"""Operators of third and higher order: Σ φ(sᵢ) ⊗ φ(sᵢ) ⊗ …, their contractions, and messages on trees made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gramgraph.embeddings.composition import Operator, Side, check_space, one_point
from gramgraph.embeddings.conditional import ConditionalOperator
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import sample_of
from gramgraph.kernels.inputs import count
from gramgraph.rkhs import RKHSFunction
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class TensorOperator:
    """C = Σᵢⱼ Wᵢⱼ φ₁(xᵢ) ⊗ φ₂(yᵢ) ⊗ … ⊗ φ(zⱼ): an operator with any number of modes, written on samples.

    `of` gives the moments E[φ(X) ⊗ φ(Y) ⊗ φ(Z)] of one sample, `given` those of copies under a condition,
    C_{ss|p} of an inner node of a tree. Contraction with a function on mode k (×̄ₖ, modes count from 1) multiplies the
    weights by its values at the sample, O(n q); with one function for every mode a number is left.

    Parameters
    ----------
    modes : kernels and points of the modes but the last, all on one sample.
    W : weights of the pairs of points.
    last : kernel and points of the last mode.

    Examples
    --------
    >>> C = TensorOperator.given(["u", "v", "v"], ["a", "a", "b"], reg=0.0)  # C_{ss|p}
    >>> f = one_point(C.modes[0].kernel, "v")
    >>> C.contract(f, 1).contract(f, 1)(["a", "b"]).round(6)  # p(s = v | p)
    array([0.5, 1. ])
    """

    modes: tuple[Side, ...]  # all on one sample of n points
    W: FloatArray  # (n, q)
    last: Side

    def __post_init__(self) -> None:
        sizes = [count(mode.points) for mode in self.modes]
        if not sizes or any(size != len(self.W) for size in sizes) or self.W.shape[1] != self.last.size:
            raise ModelError(f"the modes have {sizes} points and {self.last.size}; W has shape {self.W.shape}.")

    @classmethod
    def of(cls, *samples: Any, kernels: Sequence[Kernel | None] | None = None) -> TensorOperator:
        """E[φ₁(X₁) ⊗ φ₂(X₂) ⊗ …] of samples that are paired row by row; at least two."""
        if len(samples) < 2:
            raise ModelError(f"a tensor operator has at least two modes; got {len(samples)} samples.")
        kernels = [None] * len(samples) if kernels is None else list(kernels)
        if len(kernels) != len(samples):
            raise ModelError(f"{len(samples)} samples need as many kernels (or none), got {len(kernels)}.")
        sides = []
        for i, (X, kernel) in enumerate(zip(samples, kernels, strict=True)):
            used, points, n = sample_of(X, kernel, None, name=f"sample {i + 1}", least=1)
            sides.append(Side(used, points))
        if len({side.size for side in sides}) > 1:
            raise ModelError(f"samples are paired row by row; they have {[side.size for side in sides]} points.")
        return cls(tuple(sides[:-1]), np.eye(n) / n, sides[-1])

    @classmethod
    def given(
        cls,
        S: Any,
        P: Any,
        *,
        kernel_s: Kernel | None = None,
        kernel_p: Kernel | None = None,
        reg: float = 1e-3,
        copies: int = 2,
    ) -> TensorOperator:
        """C_{s…s|p}: `copies` of the child for the children below it, one mode for the parent p."""
        made = ConditionalOperator(P, S, kernel_x=kernel_p, kernel_y=kernel_s, reg=reg).operator
        return cls((made.left,) * copies, made.W, made.right)

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.modes) + 1

    def __repr__(self) -> str:
        return f"TensorOperator(order {self.order}, {' x '.join(map(repr, (*self.modes, self.last)))})"

    def contract(self, f: Any, mode: int = 1) -> Any:
        """C ×̄ₘ f for a function f of that mode's space: an order less (an `Operator` of order 2, then a function)."""
        if not 1 <= mode <= self.order:
            raise ModelError(f"mode counts from 1 to {self.order}, it is {mode!r}.")
        side = self.last if mode == self.order else self.modes[mode - 1]
        check_space(side, Side(f.kernel, f.points))
        values = np.asarray(f(side.points), dtype=np.float64)
        if mode < self.order:
            rest = self.modes[: mode - 1] + self.modes[mode:]
            W = values[:, None] * self.W
            if not rest:
                return RKHSFunction(self.last.kernel, self.last.points, W.sum(axis=0))
            return TensorOperator(rest, W, self.last)
        weights = self.W @ values
        if len(self.modes) == 1:
            return RKHSFunction(self.modes[0].kernel, self.modes[0].points, weights)
        return TensorOperator(self.modes[:-1], np.diag(weights), self.modes[-1])

    @property
    def operator(self) -> Operator:
        """The operator between the two modes of a tensor of order 2."""
        if self.order != 2:
            raise ModelError(f"an operator has two modes, this tensor {self.order}. Contract it first.")
        return Operator(self.modes[0], self.W, self.last)

    def __call__(self, *points: Any) -> float:
        """⟨φ(x₁) ⊗ φ(x₂) ⊗ …, C⟩ at one point of each mode."""
        if len(points) != self.order:
            raise ModelError(f"expected one point for each of {self.order} modes, got {len(points)}.")
        sides = (*self.modes, self.last)
        at = [one_point(side.kernel, x)(side.points) for side, x in zip(sides, points, strict=True)]
        return float(np.prod(at[:-1], axis=0) @ self.W @ at[-1])


@dataclass(frozen=True, eq=False)
class OperatorTree:
    """A rooted tree whose nodes hold operators: C_ss at the root, C_{s…s|p} inside, C_{s|p} at the leaves.

    `parents` maps every variable but the root to its parent; `samples` maps each pair (parent, child) to its paired
    sample, and the root to its own: every pair may come from another sample. Messages go from the leaves to the root;
    with delta kernels and reg=0 they are those of the tables.

    Parameters
    ----------
    parents : of every variable but the root.
    samples : paired samples by (parent, child), and that of the root.
    kernels : by variable; None for the default ones.
    reg : the penalty λ of the regression.

    Examples
    --------
    >>> from gramgraph.kernels import Delta
    >>> tree = OperatorTree(
    ...     {"u": "s", "v": "s"},
    ...     {"s": [0, 1, 1], ("s", "u"): ([0, 1, 1], [0, 1, 0]), ("s", "v"): ([0, 0, 1], [0, 1, 1])},
    ...     kernels={name: Delta() for name in "suv"},
    ...     reg=0.0,
    ... )
    >>> round(tree.evidence({"u": 0, "v": 1}), 6)  # 1/3 · 1 · 1/2 + 2/3 · 1/2 · 1
    0.5
    """

    parents: Mapping[str, str]
    samples: Mapping[Any, Any]
    kernels: Mapping[str, Kernel]
    reg: float = 1e-3

    @property
    def root(self) -> str:
        """The one variable without a parent."""
        tops = [name for name in dict.fromkeys(self.parents.values()) if name not in self.parents]
        if len(tops) != 1:
            raise ModelError(f"a tree has one root; variables without a parent: {', '.join(tops) or 'none'}.")
        return tops[0]

    def children(self, name: str) -> list[str]:
        """Variables below one, in the order given."""
        return [child for child, parent in self.parents.items() if parent == name]

    def message(self, child: str, evidence: Mapping[str, Any]) -> RKHSFunction | None:
        """m_s(x_π(s)), a function of the parent; None where nothing below was observed."""
        parent = self.parents[child]
        below = self._below(child, evidence)
        if not below:
            return None
        P, S = self.samples[(parent, child)]
        tensor = TensorOperator.given(
            S, P, kernel_s=self.kernels[child], kernel_p=self.kernels[parent], reg=self.reg, copies=len(below)
        )
        found: Any = tensor
        for message in below:
            found = found.contract(message, 1)
        return found if isinstance(found, RKHSFunction) else None

    def _below(self, name: str, evidence: Mapping[str, Any]) -> list[RKHSFunction]:
        """What is known below a variable, itself included, as functions of it."""
        found = [one_point(self.kernels[name], evidence[name])] if name in evidence else []
        messages = [self.message(child, evidence) for child in self.children(name)]
        return [*found, *(message for message in messages if message is not None)]

    def evidence(self, evidence: Mapping[str, Any]) -> float:
        """p(evidence) at the root, smoothed by the kernels (the probability itself for delta kernels)."""
        known = set(self.parents) | {self.root}
        for name in evidence:
            if name not in known:
                raise VariableError.unknown(name, sorted(known))
        kernel = self.kernels[self.root]
        _, points, n = sample_of(self.samples[self.root], kernel, None, name=self.root, least=1)
        values = [message(points) for message in self._below(self.root, evidence)]
        return float(np.prod(values, axis=0).mean()) if values else 1.0


def diagonal_tensor(p: Any, order: int = 2) -> FloatArray:
    """P[∅X]: the probabilities of one variable on the diagonal of a tensor of `order` modes, zero elsewhere.

    P[B|A] P[∅A] P[C|A]ᵀ is P[B, C] where B and C are independent given A, and only there.

    Parameters
    ----------
    p : the probabilities.
    order : number of modes.

    Examples
    --------
    >>> diagonal_tensor([0.25, 0.75]).tolist()
    [[0.25, 0.0], [0.0, 0.75]]
    """
    p = np.asarray(p, dtype=np.float64)
    out = np.zeros((len(p),) * order)
    out[(np.arange(len(p)),) * order] = p
    return out


def partly_diagonal_tensor(table: Any, copies: int = 2) -> FloatArray:
    """P[∅X | Y]: a table with rows x and columns y, its rows spread over the diagonal of `copies` modes of x.

    Parameters
    ----------
    table : p(x | y), rows x and columns y.
    copies : number of modes of x.

    Examples
    --------
    >>> partly_diagonal_tensor([[0.25, 0.5], [0.75, 0.5]])[:, :, 0].tolist()
    [[0.25, 0.0], [0.0, 0.75]]
    """
    table = np.asarray(table, dtype=np.float64)
    n, rest = len(table), table.shape[1:]
    out = np.zeros((n,) * copies + (max(prod(rest), 1),))
    out[(np.arange(n),) * copies] = table.reshape(n, -1)
    return out.reshape((n,) * copies + rest)
