"""Beliefs about variables with states: probabilities of one variable, or of several jointly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gramgraph import _show
from gramgraph.answers.frozen import Frozen
from gramgraph.exceptions import StateError, VariableError
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

__all__ = ["Belief"]


class Belief(Frozen):
    """p(X | evidence) for one variable, or for several jointly; of one case, or of many (first axis).

    `probabilities` has shape (*states,) for one case and (cases, *states) for a table of cases.

    >>> import gramgraph as gg
    >>> belief = gg.datasets.asia().query("lung", {"smoke": "yes"})["lung"]
    >>> belief.to_dict()
    {'no': 0.9, 'yes': 0.1}
    >>> belief.prob("yes"), belief.mode()
    (0.1, 'no')
    """

    scope: tuple[Var, ...]
    probabilities: FloatArray
    batched: bool
    index: Any  # of the table of cases, for to_frame

    def __init__(
        self, scope: tuple[Var, ...], probabilities: FloatArray, *, batched: bool = False, index: Any = None
    ) -> None:
        self._hold(scope=scope, probabilities=probabilities, batched=batched, index=index)

    @property
    def states(self) -> tuple[str, ...]:
        """Labels of the variable's states (of a single variable)."""
        if len(self.scope) != 1:
            raise VariableError("a joint belief has the states of each variable: use .scope")
        return self.scope[0].states

    def prob(self, *states: Any) -> float | FloatArray:
        """Probability of one state (of one state per variable, for a joint)."""
        if len(states) != len(self.scope):
            raise StateError(f"one state for each of {', '.join(v.name for v in self.scope)} is needed")
        index = tuple(var.index(state) for var, state in zip(self.scope, states, strict=True))
        at: tuple[Any, ...] = (..., *index)
        value = self.probabilities[at]
        return value if self.batched else float(value)

    def to_dict(self) -> dict[Any, Any]:
        """State → probability (tuple of states → probability, for a joint)."""
        if len(self.scope) == 1:
            values = self.probabilities.T.tolist() if not self.batched else list(self.probabilities.T)
            return dict(zip(self.states, values, strict=True))
        return {
            tuple(var.states[i] for var, i in zip(self.scope, index, strict=True)): (
                self.probabilities[(..., *index)] if self.batched else float(self.probabilities[index])
            )
            for index in np.ndindex(*(var.size for var in self.scope))
        }

    def mode(self) -> Any:
        """The most probable state (tuple of states for a joint; a list for a table of cases).

        A case whose evidence is impossible has no belief, and None stands in its place.
        """
        shape = tuple(var.size for var in self.scope)
        flat = self.probabilities.reshape(len(self.probabilities) if self.batched else 1, math.prod(shape))
        best = [np.unravel_index(int(i), shape) for i in flat.argmax(axis=1)]
        labels = [tuple(var.states[i] for var, i in zip(self.scope, index, strict=True)) for index in best]
        known = [bool(np.isfinite(row).all()) for row in flat]
        found = [label[0] if len(label) == 1 else label for label in labels]
        out = [label if ok else None for label, ok in zip(found, known, strict=True)]
        return out if self.batched else out[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Belief):
            return NotImplemented
        same = self.scope == other.scope and self.batched == other.batched
        return same and np.array_equal(self.probabilities, other.probabilities, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.probabilities, dtype=dtype) if copy else np.asarray(self.probabilities, dtype=dtype)

    def _labels(self) -> list[Any]:
        """The states (tuples of states for a joint), in the order of the flattened table."""
        if len(self.scope) == 1:
            return list(self.states)
        shape = tuple(var.size for var in self.scope)
        return [tuple(var.states[i] for var, i in zip(self.scope, at, strict=True)) for at in np.ndindex(*shape)]

    def _rows(self) -> _show.BeliefRows:
        """What is shown of a single case."""
        name = ", ".join(var.name for var in self.scope)
        return _show.BeliefRows(
            name, [_show.joined(label) for label in self._labels()], self.probabilities.ravel().tolist()
        )

    def to_frame(self) -> Any:
        """A DataFrame: one row a state, with its probability; for a table of cases one row a case."""
        import pandas as pd

        names = [var.name for var in self.scope]
        labels = self._labels()
        if self.batched:
            columns = (
                pd.Index(labels, name=names[0]) if len(names) == 1 else pd.MultiIndex.from_tuples(labels, names=names)
            )
            table = self.probabilities.reshape(len(self.probabilities), len(labels))
            return pd.DataFrame(table, columns=columns, index=self.index)
        states = pd.DataFrame(labels, columns=names)
        return states.assign(probability=self.probabilities.ravel())

    def plot(self, ax: Any = None) -> Any:
        """Bars of the probabilities; the axes are returned."""
        from gramgraph.plot import plot_beliefs

        return plot_beliefs(self, ax=ax)

    def __repr__(self) -> str:
        if self.batched:
            name = _show.clean(", ".join(var.name for var in self.scope))
            return f"Belief of {name} in {len(self.probabilities)} cases: .to_frame() shows them"
        return _show.text_beliefs([self._rows()])

    def _repr_html_(self) -> str:
        if self.batched:
            return str(self.to_frame()._repr_html_())
        return _show.html_beliefs([self._rows()])
