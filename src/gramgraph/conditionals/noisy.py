"""Noisy-or and noisy-max: each parent acts on the child by itself, and the strongest effect wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.base import ROW_TOLERANCE, Conditional
from gramgraph.exceptions import ModelError
from gramgraph.factors import TableFactor
from gramgraph.typing import FloatArray
from gramgraph.variables import Var


def _frozen(values: Any) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMax(Conditional):
    """The child is the largest of independent effects: y = max(Z_0, Z_1, …, Z_m), Z_i ~ p_i(z | x_i).

    States of the child are ordered from no effect (first) to the strongest (last). `links[i]` has shape
    (parent size, child size): row a is the distribution of the effect Z_i while parent i is in state a, and a
    state without effect has all its mass on the first entry. `leak` is the distribution of Z_0, for causes that
    are not in the model (by default none). With cumulative sums C_i:

        P(y ≤ k | x) = C_0(k) · Π_i C_i(k | x_i)

    (k − 1)(1 + Σ (size_i − 1)) free parameters instead of (k − 1) Π size_i. `factors` divorces the parents:
    hidden M_i = max(M_{i−1}, Z_i) give one factor p(M_i | M_{i−1}, x_i) per parent, the last M being the child.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    links : for each parent a matrix (parent size, child size).
    leak : distribution of the effect that needs no parent.

    Examples
    --------
    >>> from gramgraph.variables import binary, discrete
    >>> pain = discrete("pain", ["none", "mild", "strong"])
    >>> cut, burn = [[1, 0, 0], [0.2, 0.5, 0.3]], [[1, 0, 0], [0.1, 0.3, 0.6]]
    >>> c = NoisyMax(pain, (binary("cut"), binary("burn")), [cut, burn])
    >>> c.table()[1, 1].round(3).tolist(), c.n_parameters
    ([0.02, 0.26, 0.72], 6)
    """

    kind: ClassVar[str] = "noisy_max"
    child: Var
    parents: tuple[Var, ...]
    links: Sequence[Any]  # per parent: (parent size, child size)
    leak: Any = None  # (child size,)

    def __post_init__(self) -> None:
        k = self.child.size
        leak = np.eye(1, k)[0] if self.leak is None else self.leak
        object.__setattr__(self, "leak", _frozen(leak))
        object.__setattr__(self, "links", tuple(_frozen(link) for link in self.links))
        wrong = self._shape_faults()
        if wrong:
            raise ModelError(wrong)

    def _shape_faults(self) -> list[str]:
        name, k = self.child.name, self.child.size
        if len(self.links) != len(self.parents):
            given = len(self.links)
            return [f"the noisy-max of {name} needs {len(self.parents)} links, one a parent, not {given}"]
        found = []
        if self.leak.shape != (k,):
            found.append(f"the leak of {name} must have shape ({k},), not {self.leak.shape}")
        for var, link in zip(self.parents, self.links, strict=True):
            if link.shape != (var.size, k):
                found.append(f"the link {var.name} -> {name} must have shape ({var.size}, {k}), not {link.shape}")
        return found

    def table(self) -> FloatArray:
        """The dense table, in O(its size) for each parent: the parents' effects are taken in one after the other."""
        self._check_size()
        n = len(self.parents)
        at, below = self.leak, _below(self.leak)
        for i, link in enumerate(self.links):
            shape = [1] * n + [self.child.size]
            shape[i] = link.shape[0]
            at, below = _stronger(at, below, link.reshape(shape))
        return np.array(at)

    def prob_at(self, states: Sequence[int], /) -> float:
        """p at one cell in O(parents), without the table."""
        *rows, k = states
        at, below = self.leak, _below(self.leak)
        for link, row in zip(self.links, rows, strict=True):
            at, below = _stronger(at, below, link[row])
        return float(at[k])

    @property
    def n_parameters(self) -> int:
        """(k − 1)(1 + Σ (size_i − 1)): the leak, and each parent's states relative to one of them."""
        return (self.child.size - 1) * (1 + sum(var.size - 1 for var in self.parents))

    @property
    def is_structured(self) -> bool:
        """Whether the small factors hold fewer numbers than the table."""
        k = self.child.size
        small = sum(var.size * (k if i == 0 else k * k) for i, var in enumerate(self.parents))
        return len(self.parents) > 1 and small < k * prod(var.size for var in self.parents)

    def factors(self) -> tuple[TableFactor, ...]:
        """p(M_i | M_{i−1}, x_i) for each parent where that is smaller than the table, else the table."""
        if not self.is_structured:
            return super().factors()
        out, before = [], self.child
        for i, (var, link) in enumerate(zip(self.parents, self.links, strict=True)):
            last = i + 1 == len(self.parents)
            after = self.child if last else Var(f"{self.child.name}·{i + 1}", self.child.domain)
            if i == 0:
                out.append(TableFactor((var, after), _stronger(self.leak, _below(self.leak), link)[0]))
            else:
                out.append(TableFactor((before, var, after), _running_maximum(link)))
            before = after
        return tuple(out)

    def faults(self) -> list[str]:
        """Links and leaks that are not distributions, each row named."""
        name = self.child.name
        found = _row_faults(f"the leak of {name}", self.leak)
        for var, link in zip(self.parents, self.links, strict=True):
            for state, row in zip(var.states, link, strict=True):
                found += _row_faults(f"the link {var.name}={state} -> {name}", row)
        return found

    def to_fields(self) -> dict[str, Any]:
        """`links` as nested lists and `leak` as a list."""
        return {**self._head(), "links": [link.tolist() for link in self.links], "leak": self.leak.tolist()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, fields["links"], fields.get("leak"))


class NoisyOr(NoisyMax):
    """A two-state child that each active parent turns on by itself: p(last | x) = 1 − (1 − leak) Π_i (1 − q_i(x_i)).

    `probabilities` holds for each parent either one number, the probability q_i that its last state turns the
    child on (the other states then do nothing), or one number per state of the parent.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    probabilities : for each parent the probability that it turns the child on, or one per state.
    leak : the probability that the child is on by itself.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> alarm = NoisyOr(binary("A"), (binary("B"), binary("E")), [0.99, 0.01], leak=0.001)
    >>> alarm.table()[..., 1].round(7).tolist(), alarm.n_parameters
    ([[0.001, 0.01099], [0.99001, 0.9901099]], 3)
    """

    kind: ClassVar[str] = "noisy_or"

    def __init__(self, child: Var, parents: Sequence[Var], probabilities: Sequence[Any], *, leak: float = 0.0) -> None:
        parents = tuple(parents)
        if child.size != 2:
            raise ModelError(f"noisy-or needs a child with two states; {child.name} has {child.size}: use NoisyMax")
        if len(probabilities) != len(parents):
            wanted, given = len(parents), len(probabilities)
            raise ModelError(f"the noisy-or of {child.name} needs {wanted} probabilities, one a parent, not {given}")
        q = [_per_state(child, var, given) for var, given in zip(parents, probabilities, strict=True)]
        super().__init__(child, parents, [np.column_stack([1.0 - p, p]) for p in q], [1.0 - leak, leak])

    @property
    def probabilities(self) -> tuple[FloatArray, ...]:
        """For each parent: the probability, per state, that it turns the child on."""
        return tuple(link[:, 1] for link in self.links)

    def faults(self) -> list[str]:
        """Probabilities outside [0, 1]."""
        name, found = self.child.name, []
        if not 0.0 <= self.leak[1] <= 1.0:
            found.append(f"the leak of {name} is {self.leak[1]:g}, outside [0, 1]")
        for var, q in zip(self.parents, self.probabilities, strict=True):
            for state, p in zip(var.states, q, strict=True):
                if not 0.0 <= p <= 1.0:
                    found.append(f"the link {var.name}={state} -> {name} is {p:g}, outside [0, 1]")
        return found

    def to_fields(self) -> dict[str, Any]:
        """`probabilities` per parent and state, and `leak`."""
        q = [p.tolist() for p in self.probabilities]
        return {**self._head(), "probabilities": q, "leak": float(self.leak[1])}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, fields["probabilities"], leak=float(fields.get("leak", 0.0)))


def _per_state(child: Var, parent: Var, given: Any) -> FloatArray:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim == 0:
        full = np.zeros(parent.size)
        full[-1] = values
        return full
    if values.shape != (parent.size,):
        raise ModelError(
            f"the link {parent.name} -> {child.name} takes one number, or one for each of the states "
            f"{', '.join(parent.states)}; got shape {values.shape}"
        )
    return values


def _below(p: FloatArray) -> FloatArray:
    """P(Z < k) from P(Z = k), along the last axis."""
    out = np.zeros_like(p)
    np.cumsum(p[..., :-1], axis=-1, out=out[..., 1:])
    return out


def _stronger(at: FloatArray, below: FloatArray, link: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P(max(M, Z) = k) and P(max(M, Z) < k) from those of M and from P(Z = k), without a difference.

    Differences of P(y ≤ k) would lose an effect of 1e-17, and make what it alone explains impossible.
    """
    under = _below(link)
    return at * (under + link) + below * link, below * under


def _running_maximum(link: FloatArray) -> FloatArray:
    """p(max(m, Z) = y) for all (m, parent state, y): nothing below m, all mass up to m at m, Z's own above m."""
    k = link.shape[1]
    at_most = np.cumsum(link, axis=1)
    out = np.zeros((k, link.shape[0], k))
    for m in range(k):
        out[m, :, m] = at_most[:, m]
        out[m, :, m + 1 :] = link[:, m + 1 :]
    return out


def _row_faults(what: str, row: FloatArray) -> list[str]:
    if not np.isfinite(row).all():
        return [f"{what} has entries that are not finite numbers"]
    found = []
    if (row < 0).any():
        found.append(f"{what} has negative entries (smallest {row.min():g})")
    if abs(row.sum() - 1.0) > ROW_TOLERANCE:
        found.append(f"{what} sums to {row.sum():.6g}, not 1")
    return found
