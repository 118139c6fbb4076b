"""Where the tables that a question asks for stand in the runner's output, and how they become an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Answer, Belief
from gramgraph.questions.question import Question, Singles
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.compile.tree import TreePlan
    from gramgraph.models.base import GraphicalModel


class Columns(Mapping[str, tuple[Var, int, int]]):
    """Name of a target → (variable, first column, last column + 1), looked up when asked for the first time."""

    __slots__ = ("_at", "_known", "_model", "_place", "_targets")

    def __init__(self, model: GraphicalModel, targets: Sequence[int], at: IntArray) -> None:
        self._model, self._at, self._targets = model, at, targets
        self._known: dict[str, tuple[Var, int, int]] = {}
        every = targets == range(len(model.vars))
        self._place = model.positions if every else {model.vars[v].name: t for t, v in enumerate(targets)}

    def __getitem__(self, name: str) -> tuple[Var, int, int]:
        found = self._known.get(name)
        if found is None:
            t = self._place[name]
            var, at = self._model.vars[self._targets[t]], int(self._at[t])
            found = self._known[name] = var, at, at + var.size
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._place

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)


#: From this many variables on, an answer about all of them looks up where each stands when it is asked for.
MANY_TARGETS = 500


@dataclass(frozen=True, eq=False)
class Outputs:
    """Columns of the marginals, and behind them one block per joint table (over the variables left in the tree)."""

    wants: Sequence[tuple[int, ...]]
    columns: Sequence[int] | IntArray
    width: int
    marginals: Mapping[str, tuple[Var, int, int]]
    joints: tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...]  # members, those in the tree, first column
    n_marginals: int

    @classmethod
    def of(
        cls,
        model: GraphicalModel,
        targets: Sequence[int],
        joints: tuple[tuple[int, ...], ...],
        sliced: tuple[int, ...],
    ) -> Outputs:
        """Lay out the wanted tables; joints lose the variables that are sliced or have one state."""
        if len(targets) >= MANY_TARGETS and not joints and targets == range(len(model.vars)):
            return cls._of_all(model)
        variables = model.vars
        at = 0
        place: dict[tuple[int, ...], int] = {}
        marginals = {}
        for v in targets:
            var = variables[v]
            place[(v,)] = at
            stop = at + var.size
            marginals[var.name] = (var, at, stop)
            at = stop
        n_marginals = at
        if not joints:
            return cls(tuple(place), tuple(place.values()), at, marginals, (), n_marginals)
        gone = set(sliced)
        recipes = []
        for members in joints:
            free = tuple(sorted(v for v in members if v not in gone and variables[v].size > 1))
            if free not in place:
                place[free] = at
                at += int(np.prod([variables[v].size for v in free], dtype=np.int64))
            recipes.append((members, free, place[free]))
        wants = tuple(want for want in place if want)
        columns = tuple(place[want] for want in wants)
        return cls(wants, columns, at, marginals, tuple(recipes), n_marginals)

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells these tables from others, for caches."""
        return (self.wants,) if isinstance(self.wants, Singles) else (self.wants, self.columns)

    @classmethod
    def _of_all(cls, model: GraphicalModel) -> Outputs:
        """The marginals of all variables, in their order."""
        n = len(model.vars)
        stops = np.cumsum(np.fromiter((var.size for var in model.vars), np.int64, n))
        at = np.concatenate([[0], stops[:-1]])
        width = int(stops[-1])
        return cls(Singles(n), at, width, Columns(model, range(n), at), (), width)

    def answer(
        self,
        model: GraphicalModel,
        question: Question,
        out: FloatArray,  # (cases, width)
        log_z: FloatArray,
        blocks: dict[int, FloatArray],  # joint number → (cases, *sizes)
        *,
        engine: str,
    ) -> Answer:
        """The beliefs as views into the output, which the answer owns."""
        joints, batched = None, question.batched
        if self.joints:
            joints = {}
            for number, (members, _, _) in enumerate(self.joints):
                scope = tuple(model.vars[v] for v in members)
                table = blocks[number] if batched else blocks[number][0]
                joints[tuple(var.name for var in scope)] = Belief(scope, table, batched=batched)
        return Answer(
            self.marginals,
            out if batched else out[0],
            log_z if batched else float(log_z[0]),
            engine=engine,
            joints=joints,
            hidden=question.hidden(model),
            details=question.details,
        )

    def joint_table(
        self, plan: TreePlan, number: int, out: FloatArray, sizes: IntArray, seen: dict[int, IntArray]
    ) -> FloatArray:
        """Joint `number` as (cases, *sizes): axes in the asked order, observed variables on their state.

        `seen` gives the state codes of members that are not in the tree.
        """
        members, free, column = self.joints[number]
        cases = len(out)
        if free:
            order = self._table_order(plan, free)
            shape = [int(sizes[v]) for v in order]
            block = out[:, column : column + int(np.prod(shape))].reshape(cases, *shape)
        else:
            order, block = (), np.ones((cases,))
        wanted = [v for v in members if v in free]
        block = block.transpose(0, *[1 + order.index(v) for v in wanted])
        if len(wanted) == len(members):
            return np.ascontiguousarray(block)
        full = np.zeros((cases, *[int(sizes[v]) for v in members]))
        # with every observed axis indexed by an array, the free axes follow the case axis in numpy's order
        index: list[Any] = [np.arange(cases)]
        for v in members:
            index.append(slice(None) if v in free else seen.get(v, np.zeros(cases, np.int64)))
        moved = [i for i, v in enumerate(members) if v in free]
        target = np.moveaxis(full, [1 + i for i in moved], range(full.ndim - len(moved), full.ndim))
        target[tuple(index[:1] + [index[1 + i] for i, v in enumerate(members) if v not in free])] = block
        return full

    def joint_totals(
        self, plan: TreePlan, out: FloatArray, weights: FloatArray, sizes: IntArray, seen: dict[int, IntArray]
    ) -> list[FloatArray]:
        """Σ over cases of weight · joint table, of every joint, without the tables of the single cases."""
        sums: FloatArray = weights @ out
        found: list[FloatArray] = []
        for number, (members, free, column) in enumerate(self.joints):
            shape = tuple(int(sizes[v]) for v in members)
            if not free:  # every case has its weight in one entry
                states = [seen.get(v, np.zeros(len(out), np.int64)) for v in members]
                entry = np.ravel_multi_index(states, shape)
                found.append(np.asarray(np.bincount(entry, weights, prod(shape)), np.float64).reshape(shape))
            elif len(free) == len(members):
                order = self._table_order(plan, free)
                block = sums[column : column + prod(shape)].reshape([int(sizes[v]) for v in order])
                found.append(block.transpose([order.index(v) for v in members]))
            else:
                found.append(np.tensordot(weights, self.joint_table(plan, number, out, sizes, seen), axes=1))
        return found

    @staticmethod
    def _table_order(plan: TreePlan, free: tuple[int, ...]) -> tuple[int, ...]:
        """The order of the variables in the clique (or separator) that the table is read from."""
        from gramgraph._numerics.tree.columns import O_CLIQUE, O_COLUMNS, P_OUTPUTS

        tree = plan.tree
        row = plan.in_tree.index(free)
        clique = int(plan.program.section(P_OUTPUTS, O_COLUMNS)[row, O_CLIQUE])
        members = tree.ordered[tree.clique_ptr[clique] : tree.clique_ptr[clique + 1]]
        return tuple(int(v) for v in members if int(v) in free)
