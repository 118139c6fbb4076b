"""A discrete child of real-valued parents: a logistic curve, or a softmax of linear scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.continuous import (
    Draws,
    RealConditional,
    as_parents,
    draw_states,
    n_features,
    stack_features,
)
from gramgraph.exceptions import ModelError, listing
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var


@dataclass(frozen=True, eq=False, repr=False)
class Softmax(RealConditional):
    """p(child = s | x, d) ∝ exp(bias_d[s] + weights_d[s] · x): real parents x; discrete parents d choose the numbers.

    `weights` has shape (*discrete sizes, states, components of x), `bias` (*discrete sizes, states); what lacks the
    discrete axes is the same for all of them. An angle has two components, its cosine and its sine. For two states, see
    `Softmax.logistic`.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    weights : (*discrete sizes, states, components of the real parents).
    bias : (*discrete sizes, states).

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> pain = Softmax.logistic(binary("pain"), ("dose",), weights=[-2.0], bias=1.0)
    >>> pain.probabilities({pain.parents[0]: np.array([[0.5], [2.0]])}, 2)[:, 1].round(3).tolist()
    [0.5, 0.047]
    """

    kind: ClassVar[str] = "softmax"
    child: Var
    parents: tuple[Var, ...]
    weights: Any
    bias: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", as_parents(self.parents))
        if not self.child.is_discrete:
            raise ModelError(f"a softmax is a conditional of a discrete variable; {self.child.name} is {self.child!r}")
        k, m = self.child.size, sum(n_features(var) for var in self.real_parents)
        sizes = tuple(var.size for var in self.discrete_parents)
        for name, shape in (("weights", (*sizes, k, m)), ("bias", (*sizes, k))):
            try:
                values = np.array(np.broadcast_to(np.asarray(getattr(self, name), dtype=np.float64), shape))
            except (TypeError, ValueError):
                given = np.shape(getattr(self, name))
                names = listing(map(repr, self.parents))
                raise ModelError(
                    f"the {name} of {self.child.name} must have shape {shape} (parents {names}), not {given}"
                ) from None
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    @classmethod
    def logistic(cls, child: Var, parents: Sequence[Var | str] | Var | str, weights: Any, bias: Any = 0.0) -> Self:
        """p(last of two states | x) = 1 / (1 + exp(−bias − weights · x))."""
        if not child.is_discrete or child.size != 2:
            raise ModelError(f"a logistic curve is one of a child with two states, not of {child!r}")
        w, b = np.asarray(weights, dtype=np.float64), np.asarray(bias, dtype=np.float64)
        return cls(child, as_parents(parents), np.stack([0.0 * w, w], axis=-2), np.stack([0.0 * b, b], axis=-1))

    def probabilities(self, values: Draws, n: int) -> FloatArray:
        """p(state) of every case, (n, states)."""
        return np.exp(self._log_probabilities(values, n))

    def _log_probabilities(self, values: Draws, n: int) -> FloatArray:
        """log p(state), also where p is smaller than any number."""
        at = self._rows(values)
        x = stack_features(self.real_parents, values, n)
        W, b = self.weights[at], self.bias[at]
        scores = b + (np.einsum("nkm,nm->nk", W, x) if at else x @ W.T)
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))

    def log_density(self, values: Draws, /) -> FloatArray:
        """log p(state) of every case."""
        states = np.asarray(values[self.child])
        return self._log_probabilities(values, len(states))[np.arange(len(states)), states]

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> IntArray:
        """A state code for each of n cases."""
        return draw_states(self.probabilities(values, n), rng)

    @property
    def n_parameters(self) -> int:
        """Weights and biases, less those of one state, which are not free."""
        return prod(var.size for var in self.discrete_parents) * (self.child.size - 1) * (self.weights.shape[-1] + 1)

    def faults(self) -> list[str]:
        """Numbers that are not finite."""
        names = [name for name in ("weights", "bias") if not np.isfinite(getattr(self, name)).all()]
        return [f"the {name} of {self.child.name} has entries that are not finite numbers" for name in names]

    def to_fields(self) -> dict[str, Any]:
        """`weights` and `bias` as nested lists."""
        return {**self._head(), "weights": self.weights.tolist(), "bias": self.bias.tolist()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, fields["weights"], fields["bias"])

    def _equal_numbers(self, other: Any) -> bool:
        return bool(np.array_equal(self.weights, other.weights) and np.array_equal(self.bias, other.bias))
