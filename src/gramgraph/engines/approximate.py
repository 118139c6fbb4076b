"""What the approximate engines share: the evidence of all cases in arrays, options, joints by conditioning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer, Belief
from gramgraph.compile.lower import Lowered, lower
from gramgraph.exceptions import BudgetError, OptionError, did_you_mean
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Most runs that the joint table of one target may take.
MAX_RUNS = 10_000
Solve = Callable[[Question], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, repr=False)
class ApproximatePlan:
    """What an approximate engine works on: factors, their cells, and the memory for them."""

    engine: str
    n_factors: int
    cells: int
    largest: tuple[str, ...]

    @property
    def width(self) -> int:
        """Variables in the largest factor, less one: nothing larger is ever made."""
        return max(len(self.largest) - 1, 0)

    @property
    def bytes(self) -> int:
        """Tables and messages, about."""
        return 32 * self.cells

    def check_budget(self, memory: float | None = None) -> None:
        """`BudgetError` when the tables do not fit into `memory` bytes."""
        from gramgraph.compile.budget import check_budget

        check_budget(self.bytes, memory, self.largest, self.cells)

    @classmethod
    def of(cls, engine: str, low: Lowered) -> ApproximatePlan:
        """The plan for a lowered model."""
        cells = np.diff(low.value_ptr)
        if not len(cells):
            return cls(engine, 0, 0, ())
        f = int(cells.argmax())
        names = tuple(low.variables[v].name for v in low.scope_idx[low.scope_ptr[f] : low.scope_ptr[f + 1]])
        return cls(engine, low.n_factors, int(cells.sum()), names)

    def __str__(self) -> str:
        return f"{self.engine}: {self.n_factors} factors, {self.cells:,} cells a sweep, {self.bytes:,} bytes"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Cases:
    """The factors that matter for a question, and the evidence of its cases.

    In a Bayesian network the factors of barren variables (neither wanted nor observed, nor above such) are left out:
    they sum to one, and would only loosen bounds.
    """

    low: Lowered
    keep: Array  # (factors,) which of them matter
    active: Array  # (variables,) which variables are in the sum
    unary_ptr: IntArray  # (variables + 1,) columns of each variable
    states: IntArray  # (cases, variables), -1 = not observed
    unaries: FloatArray  # (cases or 1, columns) likelihood weights, one where there are none

    @classmethod
    def of(cls, model: GraphicalModel, question: Question, *, structured: bool = True, maximum: bool = False) -> Cases:
        """Lower the model and the question."""
        low = lower(model, structured=structured, maximum=maximum)
        n = len(low.sizes)
        keep, active = np.ones(low.n_factors, np.bool_), np.ones(n, np.bool_)
        if low.parents is not None:
            wanted = {*question.targets, *question.observed, *(v for v, _ in question.likelihoods)}
            wanted.update(v for members in question.joints for v in members)
            seen = _ancestors(low, wanted)
            keep = seen[low.owner]
            held = np.zeros(n, np.bool_)
            for f in np.flatnonzero(keep):
                held[low.scope_idx[low.scope_ptr[f] : low.scope_ptr[f + 1]]] = True
            active = held
            active[: low.n_visible] |= seen
        unary_ptr = np.concatenate([[0], np.cumsum(low.sizes)]).astype(np.int64)
        states = np.full((question.n_cases, n), -1, np.int64)
        if question.observed:
            states[:, list(question.observed)] = question.codes
        per_case = any(w.ndim == 2 for _, w in question.likelihoods)
        unaries = np.ones((question.n_cases if per_case else 1, int(unary_ptr[-1])))
        for v, w in question.likelihoods:
            unaries[:, unary_ptr[v] : unary_ptr[v + 1]] *= w
        return cls(low, keep, active, unary_ptr, states, unaries)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Arguments of `slice_factors` up to the sizes."""
        low = self.low
        return low.scope_ptr, low.scope_idx, low.value_ptr, low.values, low.sizes


def _ancestors(low: Lowered, wanted: set[int]) -> Array:
    """Mask over the visible variables: the wanted ones and all above them."""
    assert low.parents is not None
    seen = np.zeros(low.n_visible, np.bool_)
    stack = sorted(wanted)
    while stack:
        node = stack.pop()
        if not seen[node]:
            seen[node] = True
            stack.extend(low.parents[node])
    return seen


def joint_by_conditioning(
    model: GraphicalModel, question: Question, solve: Solve, members: tuple[int, ...]
) -> FloatArray:
    """p(a, b, …) = p(a) p(b | a) …: the question again with a on each of its states; (cases, *sizes).

    Takes as many runs as all members but the last have joint states.
    """
    sizes = tuple(model.vars[v].size for v in members)
    runs = prod(sizes[:-1])
    if runs > MAX_RUNS:
        names = tuple(model.vars[v].name for v in members)
        raise BudgetError(
            f"the joint of {len(members)} variables takes {runs:,} runs of an approximate engine, more than "
            f"{MAX_RUNS:,}",
            clique=names,
            bytes=8.0 * prod(sizes),
            remedies=("ask for the joint of fewer variables", 'use a sampling engine: engine="gibbs"'),
        )
    return _conditioned(question, solve, members, sizes)


def _conditioned(question: Question, solve: Solve, members: tuple[int, ...], sizes: tuple[int, ...]) -> FloatArray:
    first = members[0]
    beliefs, log_z = solve(replace(question, targets=(first,), joints=()))
    p = np.where(np.isfinite(log_z)[:, None], beliefs, np.nan)
    if len(members) == 1:
        return p
    out = np.zeros((question.n_cases, *sizes))
    out[~np.isfinite(log_z)] = np.nan
    for state in range(sizes[0]):
        rows = np.flatnonzero(p[:, state] > 0)
        if len(rows):
            part = _observing(question, rows, first, state)
            rest = np.nan_to_num(_conditioned(part, solve, members[1:], sizes[1:]))
            out[rows, state] = p[rows, state].reshape(-1, *[1] * (len(sizes) - 1)) * rest
    total = out.reshape(len(out), -1).sum(axis=1)
    return np.asarray(out / np.where(total > 0, total, 1.0).reshape(-1, *[1] * len(sizes)))


def _observing(question: Question, rows: Array, v: int, state: int) -> Question:
    """The cases `rows` with one more observation."""
    codes, observed = question.codes[rows], question.observed
    if v in observed:
        codes = codes.copy()
        codes[:, observed.index(v)] = state
    else:
        observed = (*observed, v)
        codes = np.column_stack([codes, np.full(len(rows), state, np.int64)])
    return replace(question.of_rows(rows), observed=observed, codes=codes)


def make_answer(
    model: GraphicalModel,
    question: Question,
    beliefs: FloatArray,  # (cases, columns of all variables)
    log_z: FloatArray,
    unary_ptr: IntArray,
    joints: Sequence[FloatArray],  # (cases, *sizes) each
    *,
    engine: str,
    details: dict[str, Any],
) -> Answer:
    """The answer of an approximate engine: NaN where the evidence is impossible."""
    pieces, columns, at = [np.zeros((question.n_cases, 0))], {}, 0
    for v in question.targets:
        var = model.vars[v]
        pieces.append(beliefs[:, unary_ptr[v] : unary_ptr[v + 1]])
        columns[var.name] = (var, at, at + var.size)
        at += var.size
    marginals = np.concatenate(pieces, axis=1)
    marginals[np.isneginf(log_z)] = np.nan
    tables = {}
    for members, table in zip(question.joints, joints, strict=True):
        scope = tuple(model.vars[v] for v in members)
        tables[tuple(var.name for var in scope)] = Belief(
            scope, table if question.batched else table[0], batched=question.batched
        )
    return Answer(
        columns,
        marginals if question.batched else marginals[0],
        log_z if question.batched else float(log_z[0]),
        engine=engine,
        exact=False,
        joints=tables,
        details={**question.details, **details},
        hidden=question.hidden(model),
    )


# ------------------------------------------------------------------------------------------------------- options


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise OptionError(f"{name} is a whole number from {least}, not {value!r}")
    return int(value)


def between(name: str, value: Any, low: float, high: float) -> float:
    """A number with low <= value < high."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) < high:
        raise OptionError(f"{name} is a number from {low:g} to below {high:g}, not {value!r}")
    return float(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise OptionError(f"{name} is one of {', '.join(choices)}, not {value!r}.{did_you_mean(value, choices)}")
    return value


def parse_error(error: Any) -> float | None:
    """A standard error that is asked for, between 0 and 1; None for none."""
    if error is None:
        return None
    if isinstance(error, bool) or not isinstance(error, Real) or not 0.0 < float(error) < 1.0:
        raise OptionError(f"error is a standard error between 0 and 1, not {error!r}")
    return float(error)
