"""Answers: frozen results that say how they were found and show themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from gramgraph import _show
from gramgraph.exceptions import StateError, VariableError, did_you_mean, listing
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

__all__ = ["Answer", "Assignment", "Belief"]

Key = str | tuple[str, ...]
#: States of an assignment that are printed, and targets whose standard errors are looked through for the title.
SHOWN_STATES, MANY_TARGETS = 200, 2000


class Belief:
    """p(X | evidence) for one variable, or for several jointly; of one case, or of many (first axis).

    `probabilities` has shape (*states,) for one case and (cases, *states) for a table of cases.

    >>> import gramgraph as gg
    >>> belief = gg.datasets.asia().query("lung", {"smoke": "yes"})["lung"]
    >>> belief.to_dict()
    {'no': 0.9, 'yes': 0.1}
    >>> belief.prob("yes"), belief.mode()
    (0.1, 'no')
    """

    __slots__ = ("batched", "index", "probabilities", "scope")

    def __init__(
        self, scope: tuple[Var, ...], probabilities: FloatArray, *, batched: bool = False, index: Any = None
    ) -> None:
        self.scope = scope
        self.probabilities = probabilities
        self.batched = batched
        self.index = index  # of the table of cases, for to_frame

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


class Answer(Mapping[Key, Belief]):
    """The beliefs that a query asked for, with `log_evidence`, `exact`, `engine`.

    A mapping from what was asked for (a name, or a tuple of names for a joint) to its `Belief`.

    >>> import gramgraph as gg
    >>> answer = gg.datasets.asia().query(["lung", "bronc"], {"smoke": "yes"})
    >>> list(answer), answer.exact, answer.engine, round(answer.log_evidence, 4)
    (['lung', 'bronc'], True, 'enumeration', -0.6931)
    >>> print(answer.to_frame())
      variable state  probability
    0     lung    no          0.9
    1     lung   yes          0.1
    2    bronc    no          0.4
    3    bronc   yes          0.6
    """

    __slots__ = (
        "_columns",
        "_joints",
        "_marginals",
        "batched",
        "details",
        "engine",
        "exact",
        "hidden",
        "log_evidence",
    )

    def __init__(
        self,
        columns: Mapping[str, tuple[Var, int, int]],  # name → (variable, first column, last column + 1)
        marginals: FloatArray,  # (columns,) or (cases, columns)
        log_evidence: float | FloatArray,
        *,
        engine: str,
        exact: bool = True,
        joints: Mapping[tuple[str, ...], Belief] | None = None,
        details: Mapping[str, Any] | None = None,
        hidden: frozenset[str] = frozenset(),  # observed variables: they can be asked for, but are not listed
    ) -> None:
        self._columns = columns
        self._marginals = marginals
        self._joints = joints
        self.batched = marginals.ndim == 2
        self.log_evidence = log_evidence
        self.engine = engine
        self.exact = exact
        self.details = details or {}
        self.hidden = hidden

    def __getitem__(self, key: Key) -> Belief:
        if isinstance(key, list):
            key = tuple(key)
        column = self._columns.get(key)  # type: ignore[arg-type]
        if column is not None:
            var, start, stop = column
            if self.batched:
                return Belief((var,), self._marginals[:, start:stop], batched=True, index=self.details.get("index"))
            return Belief((var,), self._marginals[start:stop])
        if self._joints and key in self._joints:
            return self._joints[key]  # type: ignore[index]
        names = [k for k in self if isinstance(k, str)]
        asked = listing(map(repr, self)) or "none"
        raise VariableError(f"{key!r} was not asked for. Answers: {asked}.{did_you_mean(key, names)}")

    def __iter__(self) -> Iterator[Key]:
        for name in self._columns:
            if name not in self.hidden:
                yield name
        yield from self._joints or ()

    def __len__(self) -> int:
        return len(self._columns) - len(self.hidden) + len(self._joints or ())

    def to_frame(self) -> Any:
        """A DataFrame: columns variable, state, probability; for a table of cases one row a case.

        The columns of a table of cases are pairs (variable, state). A joint and its states read `A, B`.
        """
        import pandas as pd

        beliefs = [self[key] for key in self]
        names = [_show.joined(key) for key in self for _ in self[key]._labels()]
        states = [_show.joined(label) for belief in beliefs for label in belief._labels()]
        if not self.batched:
            values = np.concatenate([np.zeros(0), *(belief.probabilities.ravel() for belief in beliefs)])
            return pd.DataFrame({"variable": names, "state": states, "probability": values})
        n_cases = len(self._marginals)
        columns = pd.MultiIndex.from_arrays([names, states], names=["variable", "state"])
        parts = [belief.probabilities.reshape(n_cases, len(belief._labels())) for belief in beliefs]
        table = np.concatenate([np.zeros((n_cases, 0)), *parts], axis=1)
        return pd.DataFrame(table, columns=columns, index=self.details.get("index"))

    def plot(self, ax: Any = None) -> Any:
        """Bars of every belief; the axes are returned."""
        from gramgraph.plot import plot_beliefs

        return plot_beliefs(self, ax=ax)

    def _title(self) -> str:
        how = f"{self.engine}, {'exact' if self.exact else 'approximate'}{unsettled(self)}"
        if self.batched:
            return f"{len(self._marginals)} cases, {len(self)} beliefs each ({how})"
        log_p, trust = float(self.log_evidence), _trust(self)
        if trust and np.isnan(log_p):  # chains do not estimate it
            return f"{how}: {trust}"
        told = f"log p(evidence) = {0.0 if abs(log_p) < 1e-12 else log_p:.6g} ({how})"
        return f"{told}: {trust}" if trust else told

    def __repr__(self) -> str:
        if self.batched:
            shown = [_show.shorten(_show.joined(key), 24) for _, key in zip(range(8), self, strict=False)]
            more = f", … {len(self) - len(shown)} more" if len(self) > len(shown) else ""
            hint = "ans[name].probabilities has one row a case; ans.to_frame() shows them"
            return f"{self._title()}: {', '.join(shown)}{more}\n{hint}"
        return f"{self._title()}\n{_show.text_beliefs((self[key]._rows() for key in self), total=len(self))}"

    def _repr_html_(self) -> str:
        if self.batched:
            return str(self.to_frame()._repr_html_())
        return _show.html_beliefs((self[key]._rows() for key in self), caption=self._title(), total=len(self))


def unsettled(answer: Answer) -> str:
    """That messages or a fit did not come to rest, in words; nothing where they did, or where there are none."""
    settled = answer.details.get("converged")
    if settled is None or np.all(settled):
        return ""
    return f", NOT converged in {int(np.sum(~np.asarray(settled)))} cases" if answer.batched else ", NOT converged"


def _trust(answer: Answer) -> str:
    """How far a sampled answer can be trusted, in words; nothing for other answers."""
    errors = answer.details.get("standard_error")
    if not isinstance(errors, Mapping) or not 0 < len(errors) <= MANY_TARGETS:
        return ""
    worst = max(float(np.max(error, initial=0.0)) for error in errors.values())
    if not np.isfinite(worst):
        return ""
    r_hat = answer.details.get("max_r_hat")
    return f"standard errors up to {worst:.2g}" + ("" if r_hat is None else f", R-hat up to {r_hat:.3g}")


class Assignment:
    """One assignment of states with the logarithm of its probability.

    >>> import gramgraph as gg
    >>> best = gg.datasets.sprinkler().map_query({"wet": "yes"})
    >>> sorted(best.assignment) == sorted(set(gg.datasets.sprinkler().variables) - {"wet"})
    True
    """

    __slots__ = ("assignment", "bound", "exact", "log_prob")

    def __init__(
        self, assignment: Mapping[str, str], log_prob: float, *, exact: bool = True, bound: float | None = None
    ) -> None:
        self.assignment = dict(assignment)
        self.log_prob = log_prob
        self.exact = exact
        self.bound = log_prob if bound is None else bound

    @property
    def gap(self) -> float:
        """How much larger the log_prob of any other assignment can be: `bound` less `log_prob`, 0 when proved best."""
        return max(self.bound - self.log_prob, 0.0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Assignment):
            return NotImplemented
        return self.assignment == other.assignment and self.log_prob == other.log_prob

    __hash__ = None  # type: ignore[assignment]

    def to_frame(self) -> Any:
        """A DataFrame with the columns variable and state."""
        import pandas as pd

        return pd.DataFrame({"variable": list(self.assignment), "state": list(self.assignment.values())})

    def _title(self) -> str:
        return f"log p = {self.log_prob:.6g}" + ("" if self.exact else f" (not proved best; bound {self.bound:.6g})")

    def __repr__(self) -> str:
        shown, left = self._shown()
        inside = ", ".join([*(_show.clean(f"{name}={state}") for name, state in shown), *left])
        return f"Assignment({inside or 'nothing unobserved'}; {self._title()})"

    def __str__(self) -> str:
        shown, left = self._shown()
        return "\n".join([self._title(), _show.text_table(("", ""), shown), *left])

    def _repr_html_(self) -> str:
        shown, left = self._shown()
        return _show.html_table(("variable", "state"), [*shown, *((text, "") for text in left)], caption=self._title())

    def _shown(self) -> tuple[list[tuple[str, str]], list[str]]:
        """The first states, and in words how many there are beyond."""
        more = len(self.assignment) - SHOWN_STATES
        return list(islice(self.assignment.items(), SHOWN_STATES)), [f"… {more:,} more"] if more > 0 else []
