"""Contractions: in which order a product of factors is summed (or maximized) down to a few variables.

Structure only, on scopes; `contract` then runs a plan on factors of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, prod
from typing import Any, TypeVar

from gramgraph.factors import Factor
from gramgraph.variables import Var, join

F = TypeVar("F", bound=Factor)
Adjacency = list[set[int]]


def table_size(scope: Iterable[Var]) -> int:
    """Number of cells of a table over the variables; a real variable counts its components and one."""
    return prod(map(_cells, scope))


def _cells(var: Var) -> int:
    return var.size if var.is_discrete else 1 + var.dimension


@dataclass(frozen=True)
class Step:
    """Multiply the operands `inputs`, then take the variables `out` away; the result is the next operand."""

    inputs: tuple[int, ...]
    scope: tuple[Var, ...]  # of the product
    out: tuple[Var, ...]


@dataclass(frozen=True)
class Contraction:
    """How operands with the given scopes become one factor over `keep`.

    Operands are numbered: first the given ones, then one for the result of every step.
    """

    scopes: tuple[tuple[Var, ...], ...]
    keep: tuple[Var, ...]
    steps: tuple[Step, ...]

    @classmethod
    def plan(
        cls, scopes: Sequence[tuple[Var, ...]], keep: tuple[Var, ...], stages: Sequence[Collection[Var]]
    ) -> Contraction:
        """Greedy plan that takes the variables of the first stage away, then those of the second, …"""
        live = dict(enumerate(scopes))
        holders: dict[Var, list[int]] = {}
        for i, scope in live.items():
            for var in scope:
                holders.setdefault(var, []).append(i)
        steps: list[Step] = []
        for var in elimination_order(scopes, stages):
            inputs = tuple(i for i in holders.pop(var, ()) if i in live)
            if not inputs:
                continue
            scope = join(*(live.pop(i) for i in inputs))
            made = len(scopes) + len(steps)
            live[made] = tuple(v for v in scope if v != var)
            for v in live[made]:
                holders[v].append(made)
            steps.append(Step(inputs, scope, (var,)))
        rest = tuple(live)
        if len(rest) != 1 or not steps:
            steps.append(Step(rest, join(*live.values()), ()))
        return cls(tuple(scopes), keep, tuple(steps))

    @property
    def largest(self) -> tuple[Var, ...]:
        """Scope of the largest table that is made."""
        return max((step.scope for step in self.steps), key=table_size, default=())

    @property
    def width(self) -> int:
        """Number of variables of the widest table that is made, less one."""
        return max((len(step.scope) for step in self.steps), default=1) - 1

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return sum(table_size(step.scope) * max(len(step.inputs), 1) for step in self.steps)

    @property
    def bytes(self) -> int:
        """Peak of what is held at once: the operands, the product that is being made, and its scaled copy."""
        sizes = [table_size(scope) for scope in self.scopes]
        held = peak = sum(sizes)
        for step in self.steps:
            product = table_size(step.scope)
            made = product // table_size(step.out)
            peak = max(peak, held + 2 * product + made)
            held += made - sum(sizes[i] for i in step.inputs)
            sizes.append(made)
        return 8 * peak


def contract(plan: Contraction, operands: Sequence[F], unit: F, take_out: Callable[[F, tuple[Var, ...]], F]) -> F:
    """Run the plan. `take_out(product, variables)` sums or maximizes; `unit` stands for an empty product."""
    slots: list[Any] = list(operands)
    for step in plan.steps:
        made = unit
        for i in sorted(step.inputs, key=lambda i: (len(slots[i].scope), i)):
            made = slots[i] if made is unit else made.product(slots[i])
            slots[i] = None  # each operand is used once: what is done may be freed
        slots.append(take_out(made, step.out) if step.out else made)
    result: F = slots[-1]
    return result


def components(scopes: Sequence[tuple[Var, ...]]) -> list[list[int]]:
    """Positions of the scopes, grouped so that groups share no variable; scopes without variables are left out."""
    owner: dict[Var, int] = {}
    parent = list(range(len(scopes)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, scope in enumerate(scopes):
        for var in scope:
            a, b = find(owner.setdefault(var, i)), find(i)
            parent[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for i, scope in enumerate(scopes):
        if scope:
            groups.setdefault(find(i), []).append(i)
    return list(groups.values())


def elimination_order(scopes: Sequence[tuple[Var, ...]], stages: Sequence[Collection[Var]]) -> list[Var]:
    """Greedy order of the stages' variables, stage after stage: the cheaper one of min-weight and min-fill."""
    found = [_greedy(scopes, stages, by_fill=by_fill) for by_fill in (False, True)]
    best = min(found, key=lambda pair: pair[1])
    return [var for var, _ in best[0]]


def elimination_cliques(
    scopes: Sequence[tuple[Var, ...]], stages: Sequence[Collection[Var]] | None = None
) -> list[tuple[Var, tuple[Var, ...]]]:
    """All variables in elimination order, each with its neighbors at the time when it goes (in the order of the
    variables' first appearance); with `stages`, those of the first stage before those of the second, …"""
    every = stages if stages is not None else (join(*scopes),)
    found = [_greedy(scopes, every, by_fill=by_fill) for by_fill in (False, True)]
    return min(found, key=lambda pair: pair[1])[0]


def _adjacency(scopes: Sequence[tuple[Var, ...]], index: dict[Var, int]) -> Adjacency:
    near: Adjacency = [set() for _ in index]
    for scope in scopes:
        ids = [index[var] for var in scope]
        for i in ids:
            near[i].update(ids)
    for i, row in enumerate(near):
        row.discard(i)
    return near


def _greedy(
    scopes: Sequence[tuple[Var, ...]], stages: Sequence[Collection[Var]], *, by_fill: bool
) -> tuple[list[tuple[Var, tuple[Var, ...]]], float]:
    """Order with the neighbors of each variable, and the summed size of the cliques.

    After a variable went, only its neighbors (and, for the fill, their neighbors) are looked at again.
    """
    variables = join(*scopes)
    index = {var: i for i, var in enumerate(variables)}
    near = _adjacency(scopes, index)
    weight = [log(max(_cells(var), 1)) for var in variables]

    def cost(i: int) -> tuple[float, float, int]:
        heavy = round(weight[i] + sum(sorted(weight[j] for j in near[i])), 9)
        fill = float(_missing(near, i)) if by_fill else 0.0
        return (fill, heavy, i) if by_fill else (heavy, fill, i)

    order: list[tuple[Var, tuple[Var, ...]]] = []
    total = 0.0
    for stage in stages:
        todo = {index[var]: cost(index[var]) for var in stage if var in index}
        while todo:
            i = min(todo, key=todo.__getitem__)
            del todo[i]
            around = sorted(near[i])
            order.append((variables[i], tuple(variables[j] for j in around)))
            total += exp(min(weight[i] + sum(weight[j] for j in around), 600.0))
            for j in around:
                near[j].update(around)
                near[j] -= {i, j}
            near[i] = set()
            again = set(around).union(*(near[j] for j in around)) if by_fill else set(around)
            for j in again:
                if j in todo:
                    todo[j] = cost(j)
    return order, total


def _missing(near: Adjacency, i: int) -> int:
    """Number of pairs of neighbors of i that are not neighbors of each other."""
    around = near[i]
    return sum(len(around) - 1 - len(around & near[j]) for j in around) // 2
