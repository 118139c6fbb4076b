"""The interface algorithm: a two-slice network asked slice by slice, its past and future as weights on one variable.

The variables that the next slice depends on are the interface, with K joint states. Two static networks are compiled
once: that of the first slice and that of a later one, in which one variable of K states stands for the interface of
the slice before and one for that of the slice itself. Every question is then a table of cases for the batched engine:
p(interface after, evidence | interface before) for all rows, and marginals with the messages as likelihoods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, Table
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.models import BayesianNetwork
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var, discrete

#: States of the interface, and cells of the step matrices that are held at a time, at most.
MOST_STATES, CELLS = 2048, 1 << 23


@dataclass(frozen=True)
class Slice:
    """One of the two static networks: where its variables are."""

    net: BayesianNetwork
    before: int  # the interface of the slice before; -1 in the first slice
    after: int
    own: tuple[int, ...]  # the variables of the slice

    def ask(
        self,
        codes: IntArray,  # (rows, slice variables), -1 = not observed
        *,
        targets: Sequence[int] = (),
        joints: Sequence[tuple[int, ...]] = (),
        before: FloatArray | None = None,  # (rows, K)
        after: FloatArray | None = None,
    ) -> Any:
        """An answer for every row."""
        weights = [(self.before, before), (self.after, after)]
        given = tuple((v, w) for v, w in weights if w is not None and v >= 0)
        seen = np.flatnonzero((codes >= 0).any(axis=0))
        observed = tuple(self.own[i] for i in seen)
        question = Question(tuple(targets), tuple(joints), observed, codes[:, seen], given, batched=True)
        return JunctionTree().answer(self.net, question)

    def marginals(self, codes: IntArray, before: FloatArray | None, after: FloatArray | None) -> list[FloatArray]:
        """p(v | row) of every variable of the slice, (rows, states) each."""
        answer = self.ask(codes, targets=self.own, before=before, after=after)
        return [np.asarray(answer[self.net.variables[v]].probabilities) for v in self.own]


@dataclass(frozen=True)
class Messages:
    """What the past and the future of every row say of the interface, and log p(row | rows before)."""

    past: FloatArray  # (T, K) p(interface_t | rows up to t)
    future: FloatArray | None  # (T, K) ∝ p(rows after t | interface_t)
    logs: FloatArray  # (T,)


class Chain:
    """A two-slice network made ready for questions about rows."""

    def __init__(self, first: BayesianNetwork, step: BayesianNetwork, interface: Sequence[str]) -> None:
        self.names = first.variables
        self.interface = tuple(interface)
        sizes = [first.var(name).size for name in self.interface]
        self.n_states = prod(sizes)
        if self.n_states > MOST_STATES:
            raise ModelError(
                f"the variables {', '.join(self.interface)} that the next slice depends on have {self.n_states:,} "
                f"joint states, more than {MOST_STATES:,}: the exact interface is too large. Try: unroll(T) and "
                f'query(engine="bp").'
            )
        self.first = self._slice(first, None)
        self.step = self._slice(first, step)

    def _slice(self, first: BayesianNetwork, step: BayesianNetwork | None) -> Slice:
        """The static network with one variable for each side of the interface."""
        net = first if step is None else step
        names = [name for name in net.variables if not name.endswith("'")]
        variables: dict[str, Var] = {name: net.var(name) for name in names}
        tables: dict[str, Conditional] = {name: net.conditional(name) for name in names}
        single = len(self.interface) == 1
        before = ""
        if step is not None and single:
            before = self.interface[0] + "'"
            variables[before] = net.var(before)
            tables[before] = Table(variables[before], (), np.full(self.n_states, 1.0 / self.n_states))
        elif step is not None:
            before = "·before"
            variables[before] = discrete(before, self.n_states)
            tables[before] = Table(variables[before], (), np.full(self.n_states, 1.0 / self.n_states))
            for i, name in enumerate(self.interface):
                child = variables[name + "'"] = net.var(name + "'")
                tables[child.name] = Table(child, (variables[before],), self._digit(net, i))
        after = self.interface[0] if single else "·after"
        if not single:
            variables[after] = discrete(after, self.n_states)
            parents = tuple(variables[name] for name in self.interface)
            shape = (*[var.size for var in parents], self.n_states)
            tables[after] = Table(variables[after], parents, np.eye(self.n_states).reshape(shape))
        order = [*([before] if before else []), *(name for name in variables if name != before)]
        made = BayesianNetwork.from_parts([variables[name] for name in order], [tables[name] for name in order])
        place = made.index
        own = tuple(place(name) for name in self.names)
        return Slice(made, place(before) if before else -1, place(after), own)

    def _digit(self, net: BayesianNetwork, i: int) -> FloatArray:
        """(K, size): the state of the i-th interface variable in each joint state."""
        sizes = [net.var(name).size for name in self.interface]
        digit = np.unravel_index(np.arange(self.n_states), sizes)[i]
        return np.eye(sizes[i])[digit]

    # ------------------------------------------------------------------------------------------- rows and messages

    def codes(self, rows: Any) -> IntArray:
        """State indices (T, variables) of a frame or a list of dicts, -1 where nothing was observed."""
        question = read(self.first.net, [], rows)
        observed, codes = question.observed, question.codes
        position = {v: i for i, v in enumerate(self.first.own)}
        if question.likelihoods or question.soft or any(v not in position for v in observed):
            raise ModelError("rows hold states of the variables of a slice; nothing else can be evidence here.")
        out = np.full((len(codes), len(self.names)), -1, np.int64)
        for j, v in enumerate(observed):
            out[:, position[v]] = codes[:, j]
        return out

    def begin(self, codes: IntArray) -> tuple[FloatArray, float]:
        """p(interface_0 | row 0) and log p(row 0)."""
        answer = self.first.ask(codes[:1], targets=(self.first.after,))
        log = float(np.asarray(answer.log_evidence)[0])
        if log == -np.inf:
            raise ImpossibleEvidenceError("row 0 has probability zero.")
        return np.asarray(answer[self.first.net.variables[self.first.after]].probabilities)[0], log

    def matrices(self, codes: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """(steps (U, K, K), which (rows,), log scales (U,)): p(after, row | before) = steps · exp(scale)."""
        rows, which = np.unique(codes, axis=0, return_inverse=True)
        pair = (self.step.before, self.step.after)
        answer = self.step.ask(rows, joints=(pair,))
        names = self.step.net.variables
        joint = np.nan_to_num(np.asarray(answer[(names[pair[0]], names[pair[1]])].probabilities))
        scales = np.asarray(answer.log_evidence, dtype=np.float64) + np.log(self.n_states)
        return np.ascontiguousarray(joint), which.ravel(), np.where(np.isfinite(scales), scales, 0.0)

    def messages(self, codes: IntArray, *, backward: bool = True, start: FloatArray | None = None) -> Messages:
        """Forward, and backward, through all rows: O(T K²), and O(K²) for every kind of row at a time.

        `start` is what is known of the interface before the rows; without it they begin with the first slice.
        """
        from gramgraph._numerics.messages.interface import backward_steps, forward_steps

        T, K = len(codes), self.n_states
        past, logs = np.empty((T, K)), np.empty(T)
        if start is None:
            past[0], logs[0] = self.begin(codes)
        block = max(CELLS // (K * K), 1)
        for a in range(1 if start is None else 0, T, block):
            b = min(a + block, T)
            steps, which, scales = self.matrices(codes[a:b])
            done = forward_steps(past[a - 1] if a else start, steps, which, past[a:b], logs[a:b])
            if done < b - a:
                raise ImpossibleEvidenceError(
                    f"row {a + done} has probability zero, given the rows before it: "
                    f"{self._shown(codes[a + done])} cannot follow."
                )
            logs[a:b] = np.log(logs[a:b]) + scales[which]
        if not backward:
            return Messages(past, None, logs)
        future = np.ones((T, K))
        for b in range(T, 1, -block):
            a = max(b - block, 1)
            steps, which, _ = self.matrices(codes[a:b])
            backward_steps(future[b - 1], steps, which, future[a - 1 : b - 1])
        return Messages(past, future, logs)

    def row_matrix(self, codes: IntArray) -> tuple[FloatArray, float]:
        """One row (1, variables): (M (K, K + states of all variables), log scale).

        Times a belief about the interface before, M · exp(scale) gives p(row, interface after) and p(row, variable).
        """
        K = self.n_states
        part, names = self.step, self.step.net.variables
        answer = part.ask(np.repeat(codes, K, axis=0), targets=(part.after, *part.own), before=np.eye(K))
        logs = np.asarray(answer.log_evidence, dtype=np.float64) + np.log(K)  # the variable before is uniform by itself
        top = float(logs.max())
        weights = np.exp(logs - top) if top > -np.inf else np.zeros(K)
        tables = [np.asarray(answer[names[v]].probabilities) for v in (part.after, *part.own)]
        return np.nan_to_num(np.concatenate(tables, axis=1)) * weights[:, None], top

    def _shown(self, row: IntArray) -> str:
        seen = [(name, code) for name, code in zip(self.names, row.tolist(), strict=True) if code >= 0]
        return ", ".join(f"{name} = {self.first.net.states(name)[code]}" for name, code in seen) or "nothing observed"

    def marginals(self, codes: IntArray, messages: Messages, *, start: FloatArray | None = None) -> list[FloatArray]:
        """p(v_t | rows) of every variable, (T, states) each; given the rows up to t where there is no backward part."""
        future = messages.future
        if start is not None:
            return self.step.marginals(codes, np.concatenate([start[None], messages.past[:-1]]), future)
        head = self.first.marginals(codes[:1], None, None if future is None else future[:1])
        if len(codes) == 1:
            return head
        tail = self.step.marginals(codes[1:], messages.past[:-1], None if future is None else future[1:])
        return [np.concatenate(pair) for pair in zip(head, tail, strict=True)]
