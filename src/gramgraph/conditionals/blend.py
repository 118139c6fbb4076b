"""A mixture of conditionals of one family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.base import Conditional
from gramgraph.conditionals.continuous import Draws, RealConditional, draw, log_density
from gramgraph.conditionals.laws import Laws, MixedLaws
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var


@dataclass(frozen=True, eq=False, repr=False)
class Blend(RealConditional):
    """p(child | parents) = Σ wᵢ pᵢ(child | parents), the parts of any kinds with the same child and parents.

    What `fit(conditional="auto")` makes of several kinds, with the weights that predict left-out rows best.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    parts : conditionals with the same child and parents.
    weights : of the parts; they sum to one.

    Examples
    --------
    >>> from gramgraph.conditionals import LinearGaussian
    >>> wide, narrow = LinearGaussian("y", (), (), 0.0, sd=3.0), LinearGaussian("y", (), (), 0.0, sd=1.0)
    >>> y = Blend("y", (), (wide, narrow), [0.5, 0.5])
    >>> np.exp(y.log_density({y.child: np.array([[0.0]])})).round(4).tolist()
    [0.266]
    """

    kind: ClassVar[str] = "blend"
    child: Var
    parents: tuple[Var, ...]
    parts: Any
    weights: Any

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        w = np.array(self.weights, dtype=np.float64).reshape(-1)
        if not parts or len(w) != len(parts):
            raise ModelError(f"a blend has a weight for each of its parts; {len(parts)} parts, {len(w)} weights")
        own = self.child if isinstance(self.child, str) else self.child.name
        wrong = [part for part in parts if not isinstance(part, Conditional) or part.scope != parts[0].scope]
        if wrong or parts[0].child.name != own:
            raise ModelError(f"the parts of the blend of {own} must be conditionals of {own} with the same parents")
        w.flags.writeable = False
        for name, value in (("child", parts[0].child), ("parents", parts[0].parents), ("parts", parts), ("weights", w)):
            object.__setattr__(self, name, value)

    @property
    def kinds(self) -> dict[str, float]:
        """Weight of each kind."""
        return {part.kind: float(w) for part, w in zip(self.parts, self.weights, strict=True)}

    def log_density(self, values: Draws, /) -> FloatArray:
        """log Σ wᵢ pᵢ of every case."""
        with np.errstate(divide="ignore"):
            logs = np.stack([log_density(part, values) for part in self.parts]) + np.log(self.weights)[:, None]
            top = logs.max(axis=0)
            top = np.where(np.isfinite(top), top, 0.0)
            return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """A part for each case by its weight, and a value of it."""
        which = rng.choice(len(self.parts), size=n, p=self.weights / self.weights.sum())
        out: Array | None = None
        for i, part in enumerate(self.parts):
            rows = np.flatnonzero(which == i)
            if len(rows):
                here = {var: np.asarray(values[var])[rows] for var in self.parents}
                found = np.asarray(draw(part, here, len(rows), rng))
                out = np.empty((n, *found.shape[1:]), found.dtype) if out is None else out
                out[rows] = found
        return np.zeros(0) if out is None else out

    def laws(self, values: Draws, n: int, /) -> Laws:
        """Mixtures of the laws of the parts."""
        return MixedLaws(tuple(part.laws(values, n) for part in self.parts), self.weights)

    def support(self, values: Draws, /) -> dict[str, FloatArray]:
        """How near the values lie to what the parts were learned from; the heaviest part that knows it speaks."""
        out: dict[str, FloatArray] = {}
        for i in np.argsort(self.weights, kind="stable"):
            if isinstance(self.parts[i], RealConditional):
                out |= self.parts[i].support(values)
        return out

    @property
    def n_parameters(self) -> int:
        """Those of the parts, and the weights."""
        return sum(part.n_parameters for part in self.parts) + len(self.parts) - 1

    def faults(self) -> list[str]:
        """Weights that are none, and the faults of the parts."""
        found = [fault for part in self.parts for fault in part.faults()]
        if not np.isfinite(self.weights).all() or (self.weights < 0).any() or abs(self.weights.sum() - 1.0) > 1e-6:
            found.append(f"the weights of the blend of {self.child.name} must not be negative and sum to 1")
        return found

    def to_fields(self) -> dict[str, Any]:
        """Parts and weights."""
        return {**self._head(), "parts": [part.to_fields() for part in self.parts], "weights": self.weights.tolist()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        from gramgraph.conditionals import from_fields

        child, parents = cls._family(fields, variables)
        return cls(child, parents, [from_fields(part, variables) for part in fields["parts"]], fields["weights"])

    def _equal_numbers(self, other: Any) -> bool:
        same = len(self.parts) == len(other.parts) and np.array_equal(self.weights, other.weights)
        return bool(same and all(a.equals(b) for a, b in zip(self.parts, other.parts, strict=True)))
