"""Exact inference on the positive rows of tables: junction trees that are too large often have few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log, prod

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.budget import budget_of, check_memory, readable
from gramgraph.compile.lower import Lowered, lower
from gramgraph.compile.relations import ROW_SECONDS, RelationPlan, plan_relations
from gramgraph.engines.base import PLAIN, Best, Run
from gramgraph.engines.exact.factor_tree import FactorTree
from gramgraph.engines.exact.junction_tree import rough_cells
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.relations import Relation, Tape, consistent, given_state, totals
from gramgraph.engines.exact.shrinking import Shrinking, for_each, listed
from gramgraph.engines.exact.smaller import may_shrink, rough_tree, smaller_case, smaller_cases
from gramgraph.exceptions import BudgetError
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray

#: Bytes of a row of a join, with what is remembered of it; runs are begun that are expected to take so many times the
#: room, for estimates are high.
BYTES_PER_ROW, TRUST = 40.0, 8.0
#: Plans with more rows than this are not made smaller by choosing states.
HOPELESS = 1e12
#: Rows that "auto" makes for one case before it takes an approximate answer: some seconds of work.
MOST_ROWS = 3e7
#: Runs are not begun that are expected to make more than so many times the rows that are allowed.
HIGH = 2.0
#: The part of a time budget that it may take.
SHARE = 0.5
#: Trees with fewer cells than this, or tables with a smaller share of zeros, are not compared with rows, which are
#: to be at most this part of the cells.
LARGE_CELLS, MANY_ZEROS, GAIN = 3e7, 0.2, 0.05
#: Models with more variables than this are not planned as a whole to find that out.
FEW_VARIABLES = 200


def rows_that_pay(model: GraphicalModel, question: Question, *, best: bool = False) -> float:
    """How many positive rows of the tables are expected to answer one case, where the tree is large, zeros are many,
    and rows are far fewer than what they leave of the tree has cells; else infinitely many."""
    if question.n_cases != 1 or question.log_likelihoods:
        return np.inf
    low = lower(model, maximum=best)
    if low.zeros < MANY_ZEROS or low.log_states < log(LARGE_CELLS) or not may_shrink(low, question):
        return np.inf
    if _most_cells(model, best) < LARGE_CELLS or rough_cells(model, low, question, best)[1] < LARGE_CELLS:
        return np.inf
    small = smaller_case(low, question, complete=best)
    if small is None:
        return np.inf
    inner = lower(small.model, maximum=best)
    rough = rough_tree(small.model, maximum=best)
    cells = np.inf if rough is None else rough.cells
    if not LARGE_CELLS < cells < HOPELESS:  # beyond that the tree is refused, and orders of rows take long
        return np.inf
    rows = _plan(_relations(inner), inner.log_sizes.tolist()).rows
    return rows if rows < GAIN * cells else np.inf


def _most_cells(model: GraphicalModel, best: bool) -> float:
    """How many cells a tree has when nothing is observed, which no observation makes more; of small models alone: of
    large ones a question often needs but a part."""
    rough = rough_tree(model, maximum=best) if len(model.vars) <= FEW_VARIABLES else None
    return np.inf if rough is None else rough.cells


class SparseTables(Shrinking):
    """Exact inference by elimination on tables of which only the positive rows are kept.

    Zeros of the tables are followed first (`smaller_model`). Tables are then joined row by row, so that time and memory
    go with the number of consistent rows, not of cells; the order is chosen by how many rows are expected. Where those
    do not fit, the sum goes over the states of a variable that stands in the largest joins, again and again: each state
    rules out others. Cost: a sort of each join.

    Parameters
    ----------
    **given : it takes no options.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork(
    ...     "a -> c; b -> c", cpds={"a": [0.5, 0.5], "b": [0.9, 0.1], "c": [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]}
    ... )
    >>> ans = net.query("a", {"c": "yes"}, engine="sparse")
    >>> ans["a"].probabilities.round(3).tolist(), round(ans.log_evidence, 4)
    ([0.1, 0.9], -0.6931)
    """

    name = "sparse"

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """The most probable states of all variables."""
        if question.log_likelihoods:
            return FactorTree().best(model, question, run)
        low = lower(model, maximum=True)
        run = for_each(run, question.n_cases)
        states = np.zeros((question.n_cases, low.n_visible), np.int64)
        log_p = np.full(question.n_cases, -np.inf)
        for case, small in enumerate(smaller_cases(low, question, complete=True)):
            if small is None:
                continue
            inner = lower(small.model, maximum=True)
            found = self._solver(inner, run, best=True).solve(_relations(inner))
            if found is not None:
                told = np.array([[found.states.get(v, 0) for v in range(len(inner.sizes))]], np.int64)
                states[case] = small.states(told)[0, : low.n_visible]
                log_p[case] = found.log_z + inner.log_scale + small.log_scale
        return Best(states, log_p, log_p)

    def _solver(self, low: Lowered, run: Run, *, best: bool = False, keep: bool = True) -> _Solver:
        """Within the run's limits; who leaves the choice to "auto" does not wait for minutes."""
        check_memory(run.memory)
        room, own = budget_of(run.memory), BYTES_PER_ROW * np.count_nonzero(low.values)
        if self.strict and own > room:
            raise BudgetError(f"the positive rows of the tables alone need {readable(own)}", bytes=own)
        work = np.inf
        if run.seconds is not None:
            work = SHARE * run.seconds / ROW_SECONDS
        elif self.strict and run.memory is None:
            work = MOST_ROWS
        return _Solver(low.sizes.tolist(), room, work, best, keep)

    def about_smaller(self, model: GraphicalModel, question: Question, run: Run) -> Answer:
        """The answer to a question in which nothing is observed."""
        low = lower(model)
        outputs = Outputs.of(model, question.targets, question.joints, ())
        solver = self._solver(low, run, keep=bool(question.targets or question.joints))
        shapes = [tuple(int(low.sizes[v]) for v in members) for members in question.joints]
        ones = [_ones(members, shape, tag, solver.room) for tag, (members, shape) in
                enumerate(zip(question.joints, shapes, strict=True))]  # fmt: skip
        found = solver.solve([*_relations(low), *ones])
        out, log_z, blocks = np.full((1, outputs.width), np.nan), np.full(1, -np.inf), {}
        if found is not None:
            log_z[0] = found.log_z + low.log_scale
            out[0, : outputs.n_marginals] = listed([found.beliefs.get(v) for v in question.targets], low, question)
            blocks = {tag: found.tagged[tag].reshape(1, *shape) for tag, shape in enumerate(shapes)}
        return outputs.answer(model, question, out, log_z, blocks, engine=self.name)


def _relations(low: Lowered) -> list[Relation]:
    """The positive rows of all tables; variables in none of them have a table of ones."""
    kind = np.uint8 if low.sizes.max(initial=1) <= 256 else np.int32
    found = []
    for f in range(low.n_factors):
        scope = tuple(low.scope_idx[low.scope_ptr[f] : low.scope_ptr[f + 1]].tolist())
        values = low.values[low.value_ptr[f] : low.value_ptr[f + 1]]
        rows = np.flatnonzero(values)
        columns = np.unravel_index(rows, tuple(int(low.sizes[v]) for v in scope))
        found.append(Relation(scope, tuple(c.astype(kind) for c in columns), np.log(values[rows])))
    free = set(np.flatnonzero(low.sizes > 1).tolist()).difference(*(r.scope for r in found))
    for v in sorted(free):
        found.append(Relation((v,), (np.arange(low.sizes[v]).astype(kind),), np.zeros(low.sizes[v])))
    return found


def _ones(members: tuple[int, ...], shape: tuple[int, ...], tag: int, room: float) -> Relation:
    """A table of ones over variables whose joint belief is wanted."""
    n = prod(shape)
    if n * BYTES_PER_ROW > room:
        raise BudgetError(f"the joint table alone needs {readable(8.0 * n)}", bytes=8.0 * n)
    columns = tuple(c.reshape(-1).astype(np.int32) for c in np.indices(shape))
    return Relation(members, columns, np.zeros(n), tag, np.arange(n))


@dataclass
class _Solved:
    """log Z with what was wanted beside it: beliefs of variables and of tagged relations, or best states."""

    log_z: float = 0.0
    beliefs: dict[int, FloatArray] = field(default_factory=dict)
    tagged: dict[int, FloatArray] = field(default_factory=dict)
    states: dict[int, int] = field(default_factory=dict)


@dataclass
class _Solver:
    """Sums (or maxima) of products of relations, within a room in bytes and about so many rows."""

    sizes: list[int]
    room: float
    work: float
    best: bool
    keep: bool
    done: float = 0.0  # rows so far
    finished: float = 0.0  # the part of all choices of states that they were for

    def __post_init__(self) -> None:
        self.logs = [log(max(size, 1)) for size in self.sizes]
        self.tags: dict[int, int] = {}

    def solve(self, relations: Sequence[Relation], share: float = 1.0) -> _Solved | None:
        """The product of all relations; None where nothing is possible."""
        self.tags |= {r.tag: len(r.logs) for r in relations if r.tag >= 0 and r.tag not in self.tags}
        left = consistent(relations, self.sizes)
        if left is None:
            self.finished += share
            return None
        found = _Solved(states=dict(left[1]))
        for v, state in left[1].items():
            found.beliefs[v] = np.arange(self.sizes[v]) == state
        parts = _parts(left[0])
        for at, part in enumerate(parts):
            own = self._part(part, share / len(parts))
            if own is None:
                self.finished += share * (len(parts) - at - 1) / len(parts)
                return None
            found.log_z += own.log_z
            for mine, other in ((found.beliefs, own.beliefs), (found.tagged, own.tagged), (found.states, own.states)):
                mine.update(other)  # type: ignore[arg-type]
        return found

    def _part(self, relations: list[Relation], share: float) -> _Solved | None:
        """A connected part: in one run, or state by state of a variable that stands in the largest joins."""
        plan = _plan(relations, self.logs)
        if plan.rows > HOPELESS or plan.rows > HIGH * self.work * share:
            raise self._over(plan.rows / share)
        if not plan.order or (plan.rows * BYTES_PER_ROW <= TRUST * self.room and plan.rows <= self.work):
            try:
                return self._run(relations, plan, share)
            except BudgetError:
                if self.done > self.work:
                    raise
        return self._state_by_state(relations, plan.crowded[0], share)

    def _run(self, relations: list[Relation], plan: RelationPlan, share: float) -> _Solved | None:
        tape = Tape(self.sizes, self.room, self.work - self.done, best=self.best, keep=self.keep)
        try:
            possible = tape.run(relations, plan.order)
        finally:
            self.done += tape.rows
        self._finish(share)
        if not possible:
            return None
        found = _Solved(tape.log_z)
        if self.best:
            found.states = tape.states()
        elif self.keep:
            found.beliefs, tagged = tape.beliefs()
            for tag, (origin, p) in tagged.items():
                found.tagged[tag] = totals(origin, p, self.tags[tag])
        return found

    def _state_by_state(self, relations: list[Relation], v: int, share: float) -> _Solved | None:
        kinds = [np.unique(r.columns[r.scope.index(v)]) for r in relations if v in r.scope]
        states = min(kinds, key=len).tolist()
        each: list[tuple[int, _Solved]] = []
        for state in states:
            found = self.solve(given_state(relations, v, state), share / len(states))
            if found is not None:
                found.states[v] = state
                found.beliefs[v] = np.arange(self.sizes[v]) == state
                each.append((state, found))
        if not each:
            return None
        top = max((found for _, found in each), key=lambda found: found.log_z)
        if self.best:
            return top
        weights = np.array([exp(found.log_z - top.log_z) for _, found in each])
        total = float(weights.sum())
        out = _Solved(top.log_z + log(total))
        for w, (_, found) in zip((weights / total).tolist(), each, strict=True):
            for mine, other in ((out.beliefs, found.beliefs), (out.tagged, found.tagged)):
                for key, p in other.items():
                    mine[key] = mine[key] + w * p if key in mine else w * p
        return out

    def _finish(self, share: float) -> None:
        """Count what is done; `BudgetError` where the rest would take too long."""
        self.finished += share
        if self.done / self.finished > self.work:
            raise self._over(self.done / self.finished)

    def _over(self, rows: float) -> BudgetError:
        return BudgetError(
            f"exact inference on the positive rows of the tables takes about {rows:.3g} rows, "
            f"{readable(rows * BYTES_PER_ROW)} at once",
            bytes=rows * BYTES_PER_ROW,
            remedies=("raise the budget: memory=… (bytes)", "take an approximate answer: engine='bp'"),
        )


def _plan(relations: Sequence[Relation], log_sizes: Sequence[float]) -> RelationPlan:
    rows = [log(max(len(r.logs), 1)) for r in relations]
    return plan_relations([r.scope for r in relations], rows, log_sizes, HOPELESS)


def _parts(relations: Sequence[Relation]) -> list[list[Relation]]:
    """Relations that share no variable, directly or through others, apart."""
    root = list(range(len(relations)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    first: dict[int, int] = {}
    for i, r in enumerate(relations):
        for v in r.scope:
            a, b = find(first.setdefault(v, i)), find(i)
            root[max(a, b)] = min(a, b)
    groups: dict[int, list[Relation]] = {}
    for i, r in enumerate(relations):
        groups.setdefault(find(i), []).append(r)
    return list(groups.values())
