"""A smaller problem with the same best: states without hope left out, variables with few neighbors maximized away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from gramgraph.engines.best.problem import MapProblem, possible_states_of, values_of
from gramgraph.engines.slices import Sliced
from gramgraph.typing import Array, FloatArray, IntArray

#: A variable is maximized away when the table that this leaves has at most this many cells.
CELLS = 64
#: Zeros are followed and variables maximized away this many times at most.
ROUNDS = 4

Table = tuple[tuple[int, ...], FloatArray]  # variables, and logarithms with an axis for each
Gone = tuple[int, tuple[int, ...], Array]  # a variable, those it depends on, its best state for each of theirs


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is left of a problem, and the way back."""

    problem: MapProblem  # what is left; its `constant` holds what is settled
    variables: tuple[int, ...]  # those left, in the order of the smaller problem
    states: tuple[IntArray, ...]  # of those with a choice, by variable: the states that are left
    fixed: IntArray  # (variables,) states of those that had no choice
    gone: tuple[Gone, ...]

    def lift(self, state: IntArray) -> IntArray:
        """The best assignment of the whole problem that holds this one."""
        out, local = self.fixed.copy(), np.zeros(len(self.fixed), np.int64)
        local[list(self.variables)] = state
        for v, rest, best in reversed(self.gone):
            local[v] = best[tuple(local[u] for u in rest)]
        for v, states in enumerate(self.states):
            if len(states):
                out[v] = states[local[v]]
        return out


def reduced(problem: MapProblem) -> tuple[MapProblem, list[Reduction]] | None:
    """The smaller problem and the ways back, the last one first to be taken; None when zeros leave no assignment."""
    steps: list[Reduction] = []
    for _ in range(ROUNDS):
        step = _once(problem)
        if step is None:
            return None
        steps.append(step)
        before, problem = len(problem.free), step.problem
        if len(problem.free) == before:
            break
    return problem, steps


def _once(problem: MapProblem) -> Reduction | None:
    states, fixed = _states(problem)
    tables, unary, constant = _tables(problem, states, fixed)
    left, tables, gone, constant = _eliminate(tables, unary, constant)
    small = _problem(problem, left, tables, unary, constant)
    return None if small is None else Reduction(small, tuple(left), states, fixed, tuple(gone))


def _states(problem: MapProblem) -> tuple[tuple[IntArray, ...], IntArray]:
    """The possible states of the variables that have a choice (none for the others), and the states of the others."""
    at, fixed = problem.cases.unary_ptr, problem.start.copy()
    none = np.zeros(0, np.int64)
    states = [none] * len(fixed)
    possible = problem.part.unary > 0
    for v in problem.free.tolist():
        alive = np.flatnonzero(possible[at[v] : at[v + 1]])
        if len(alive) > 1:
            states[v] = alive
        else:
            fixed[v] = int(alive[0])
    return tuple(states), fixed


def _tables(
    problem: MapProblem, states: tuple[IntArray, ...], fixed: IntArray
) -> tuple[list[Table], dict[int, FloatArray], float]:
    """Tables and single terms over the states that are left; and what is settled."""
    part, at, sizes = problem.part, problem.cases.unary_ptr, problem.sizes.tolist()
    unary: dict[int, FloatArray] = {}
    constant = problem.constant
    for v in np.flatnonzero(part.active).tolist():
        own = problem.log_unary[at[v] : at[v + 1]]
        if len(states[v]):
            unary[v] = own[states[v]].copy()
        else:
            constant += float(own[fixed[v]])
    zero, tables = part.values == 0, []
    ptr, idx, value_ptr = part.scope_ptr.tolist(), part.scope_idx.tolist(), part.value_ptr.tolist()
    for f in range(len(ptr) - 1):
        members, cells = idx[ptr[f] : ptr[f + 1]], slice(value_ptr[f], value_ptr[f + 1])
        table = np.where(zero[cells], -np.inf, problem.logs[cells]).reshape([sizes[v] for v in members])
        scope = tuple(v for v in members if len(states[v]))
        if len(scope) < len(members):
            table = table[tuple(slice(None) if len(states[v]) else fixed[v] for v in members)]
        for axis, v in enumerate(scope):
            if len(states[v]) < sizes[v]:
                table = table.take(states[v], axis=axis)
        if scope:
            tables.append((scope, table))
        else:
            constant += float(table)
    return tables, unary, constant


def _eliminate(
    tables: list[Table], unary: dict[int, FloatArray], constant: float
) -> tuple[list[int], list[Table], list[Gone], float]:
    """Maximize over variables as long as that leaves small tables; `unary` is changed in place."""
    pool = dict(enumerate(tables))
    homes: dict[int, dict[int, None]] = {v: {} for v in unary}
    for number, (scope, _) in pool.items():
        for v in scope:
            homes[v][number] = None
    size = {v: len(terms) for v, terms in unary.items()}

    def around(v: int) -> tuple[int, ...]:
        return tuple(dict.fromkeys(u for t in homes[v] for u in pool[t][0] if u != v))

    def cost(v: int) -> float:
        cells = 1.0
        for u in around(v):
            cells *= size[u]
        return cells

    current = {v: cost(v) for v in unary}
    heap = [(c, v) for v, c in current.items() if c <= CELLS]
    heapify(heap)
    gone: list[Gone] = []
    while heap:
        c, v = heappop(heap)
        if current.get(v) != c:
            continue
        rest = around(v)
        total = unary.pop(v).reshape([1] * len(rest) + [-1])
        for t in list(homes.pop(v)):
            scope, table = pool.pop(t)
            total = total + _spread(scope, table, (*rest, v), size)
            for u in scope:
                if u != v:
                    del homes[u][t]
        del current[v]
        gone.append((v, rest, total.argmax(axis=-1)))
        best = total.max(axis=-1)
        if not rest:
            constant += float(best)
        elif len(rest) == 1:
            unary[rest[0]] = unary[rest[0]] + best
        else:
            t = len(tables) + len(gone)
            pool[t] = (rest, best)
            for u in rest:
                homes[u][t] = None
        for u in rest:
            changed = cost(u)
            if changed != current[u]:
                current[u] = changed
                if changed <= CELLS:
                    heappush(heap, (changed, u))
    return sorted(unary), _merged(list(pool.values()), unary, size), gone, constant


def _spread(scope: tuple[int, ...], table: FloatArray, over: tuple[int, ...], size: dict[int, int]) -> FloatArray:
    """The table with the axes of `over`, of length one where it does not depend on them."""
    place = {v: axis for axis, v in enumerate(scope)}
    turned = table.transpose([place[v] for v in over if v in place])
    return turned.reshape([size[v] if v in place else 1 for v in over])


def _merged(tables: list[Table], unary: dict[int, FloatArray], size: dict[int, int]) -> list[Table]:
    """Tables inside others added to them, single ones to `unary`."""
    out: list[Table] = []
    homes: dict[int, list[int]] = {}
    for scope, table in sorted(tables, key=lambda item: -len(item[0])):
        if len(scope) == 1:
            unary[scope[0]] = unary[scope[0]] + table
            continue
        rarest = min(scope, key=lambda v: len(homes.get(v, ())))
        host = next((h for h in homes.get(rarest, ()) if set(scope) <= set(out[h][0])), None)
        if host is None:
            for v in scope:
                homes.setdefault(v, []).append(len(out))
            out.append((scope, table))
        else:
            out[host] = (out[host][0], out[host][1] + _spread(scope, table, out[host][0], size))
    return out


def _problem(
    problem: MapProblem, left: list[int], tables: list[Table], unary: dict[int, FloatArray], constant: float
) -> MapProblem | None:
    """What is left as a problem of its own; None when zeros leave some variable no state."""
    from gramgraph._numerics.messages.loopy import edges_of, factor_of_edges
    from gramgraph._numerics.messages.loopy_run import message_places

    number = {v: i for i, v in enumerate(left)}
    sizes = np.array([len(unary[v]) for v in left], np.int64)
    scopes = [[number[v] for v in scope] for scope, _ in tables]
    ptr = np.concatenate([[0], np.cumsum([len(s) for s in scopes])]).astype(np.int64)
    idx = np.array([v for scope in scopes for v in scope], np.int64)
    value_ptr = np.concatenate([[0], np.cumsum([t.size for _, t in tables])]).astype(np.int64)
    tops = [float(table.max()) for _, table in tables]
    if constant == -np.inf or any(top == -np.inf for top in tops):
        return None
    logs = _joined([table.reshape(-1) - top for (_, table), top in zip(tables, tops, strict=True)])
    log_unary = _joined([unary[v] for v in left])
    var_ptr, var_edge = edges_of(idx, len(sizes))
    active = np.ones(len(sizes), np.bool_)
    low = replace(problem.cases.low, sizes=sizes)
    at = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cases = replace(problem.cases, low=low, unary_ptr=at)
    part = Sliced(
        ptr,
        idx,
        value_ptr,
        values_of(logs),
        constant=0.0,
        unary=values_of(log_unary),
        active=active,
        var_ptr=var_ptr,
        var_edge=var_edge,
        edge_factor=factor_of_edges(ptr),
        msg_ptr=message_places(idx, sizes),
    )
    possible = possible_states_of(cases, part)
    if possible is None:
        return None
    part = part._replace(unary=possible)
    log_unary = np.where(possible > 0, log_unary, -np.inf)
    return MapProblem.of_logs(cases, part, np.full(len(sizes), -1, np.int64), constant + sum(tops), logs, log_unary)


def _joined(parts: list[Any]) -> FloatArray:
    return np.concatenate(parts) if parts else np.zeros(0)
