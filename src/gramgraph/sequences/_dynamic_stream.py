"""A dynamic network one row at a time."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences._reading import saved_numbers
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.sequences.dynamic import DynamicBayesianNetwork

#: Cells of the matrices of rows that a stream remembers, and of one of them, at most.
_CELLS, _MATRIX = 1 << 20, 1 << 18


class DynamicStream:
    """A discrete dynamic network between two rows: its belief about the interface, O(K) numbers.

    `update` takes one row; rows that were seen before cost one product of K numbers with a matrix that is kept (8 MB of
    them at most). `update_many` takes a frame. `state` holds everything as plain numbers (JSON keeps them bit by bit):
    `net.stream(state=saved)` goes on exactly where it was. `DynamicBayesianNetwork.stream` makes one.
    """

    def __init__(self, net: DynamicBayesianNetwork, state: dict[str, Any] | None = None) -> None:
        self._net, self._chain = net, net._chain
        self._past: FloatArray | None = None
        self.log_likelihood, self.steps = 0.0, 0
        self._known: dict[Any, tuple[FloatArray, float]] = {}
        self._width = self._chain.n_states + sum(net.first.var(name).size for name in net.variables)
        if state is not None:
            self._past, self.log_likelihood, self.steps = saved_numbers(state, "past", optional=("past",))
            if self._past is not None and self._past.shape != (self._chain.n_states,):
                raise ModelError(
                    f"state belongs to an interface of {self._past.size} states, not {self._chain.n_states}."
                )

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the stream remembers."""
        past = None if self._past is None else self._past.tolist()
        return {"past": past, "log_likelihood": self.log_likelihood, "steps": self.steps}

    def update(self, row: Mapping[str, Any] | None = None) -> Answer:
        """Take the next row (None or {}: nothing was seen) and return the beliefs of its slice."""
        K = self._chain.n_states
        if row is not None and not isinstance(row, Mapping):
            raise ModelError(f"a row is a dict from names to states, or None; got {row!r}.")
        if self._past is None or K * self._width > _MATRIX:
            return self._asked(self._codes(row))
        M, scale = self._matrix(row)
        both = self._past @ M
        total = float(both[:K].sum())
        if not total > 0.0:  # or the states that hold are far below the likeliest: the other way has their digits
            return self._asked(self._codes(row))
        both /= total
        self._past = both[:K].copy()
        found = log(total) + scale
        self.log_likelihood += found
        self.steps += 1
        return Answer(self._net._columns, both[K:], found, engine="interface")

    def update_many(self, rows: Any) -> Answer:
        """Take rows, a frame or a list of dicts, and return the beliefs after each.

        If one is impossible, none is taken.
        """
        chain, codes = self._chain, self._net._codes(rows)
        messages = chain.messages(codes, backward=False, start=self._past)
        found = self._net._answer(chain.marginals(codes, messages, start=self._past), messages.logs)
        self._past = messages.past[-1].copy()
        self.log_likelihood += float(messages.logs.sum())
        self.steps += len(codes)
        return found

    def _codes(self, row: Mapping[str, Any] | None) -> IntArray:
        return self._chain.codes([dict(row)]) if row else np.full((1, len(self._chain.names)), -1, np.int64)

    def _matrix(self, row: Mapping[str, Any] | None) -> tuple[FloatArray, float]:
        """What a row does to the belief; kept as long as there is room."""
        try:
            key = tuple([(name, type(value), value) for name, value in row.items()]) if row else ()
            found = self._known.get(key)
        except TypeError:  # weights, which are not keys
            return self._chain.row_matrix(self._codes(row))
        if found is None:
            found = self._chain.row_matrix(self._codes(row))
            if (len(self._known) + 1) * found[0].size > _CELLS:
                self._known.clear()
            self._known[key] = found
        return found

    def _asked(self, codes: IntArray) -> Answer:
        """The same by the engine: for the first row, and for interfaces too large for matrices."""
        chain = self._chain
        part, before = (chain.first, None) if self._past is None else (chain.step, self._past[None])
        answer = part.ask(codes, targets=(*part.own, part.after), before=before)
        found = float(np.asarray(answer.log_evidence)[0])
        if found == -inf:
            raise ImpossibleEvidenceError(
                f"row {self.steps} has probability zero, given the rows before it. The belief stays as it was."
            )
        names = part.net.variables
        if before is not None:  # the messages weigh a variable that is uniform by itself
            found += log(chain.n_states)
        self._past = np.array(answer[names[part.after]].probabilities)[0]
        self.log_likelihood += found
        self.steps += 1
        tables = [np.asarray(answer[names[v]].probabilities)[0] for v in part.own]
        return Answer(self._net._columns, np.concatenate(tables), found, engine="interface")
