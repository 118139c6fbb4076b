"""Beliefs about a model on cells: masses of the cells by messages or by an engine for discrete models, then answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.answers import Belief, RealAnswer
from gramgraph.embeddings.network.beliefs import LineBelief, effective_size
from gramgraph.embeddings.network.cell_axes import LineAxis, Placed, StateAxis
from gramgraph.embeddings.network.joint import JointBelief, joint_masses, shares, with_likelihoods
from gramgraph.embeddings.network.messages import propagate, upward
from gramgraph.embeddings.network.points import PointAxis
from gramgraph.embeddings.network.reading import Given
from gramgraph.exceptions import BudgetError, ImpossibleEvidenceError
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.embeddings.network.base import CellModel
    from gramgraph.embeddings.network.tree import KernelTree

__all__ = ["Masses", "answer_of", "ask_engine", "blocks", "by_engine", "by_messages", "full_rows", "log_p_by_messages"]

_BLOCK = 24_000_000  # numbers that the messages of a block of cases may take
_MEMORY = 2e9

Joints = list[tuple[int, ...]]


class Masses(NamedTuple):
    """Posterior masses of the cells of what was asked for, (cases, m) or (cases, m_1, …), and log p(evidence)."""

    single: dict[int, Array]
    joint: dict[tuple[int, ...], Array]
    log_p: FloatArray
    engine: str
    exact: bool = True
    details: Mapping[str, Any] = {}


def blocks(net: CellModel, cases: int) -> list[slice]:
    """Portions of the cases whose messages fit into memory."""
    size = max(64, _BLOCK // max(2 * sum(axis.m for axis in net.cell_axes), 1))
    return [slice(i, min(i + size, cases)) for i in range(0, cases, size)]


def _part(placed: Mapping[int, Placed], rows: Any) -> dict[int, Placed]:
    return {v: p.take(rows) for v, p in placed.items()}


def check_memory(net: CellModel, wanted: list[int], cases: int, memory: float | None, size: int = 8) -> None:
    """`BudgetError` before beliefs are allocated that would not fit."""
    need = float(size) * cases * sum(net.cell_axes[v].m for v in wanted)
    limit = _MEMORY if memory is None else float(memory)
    if need > limit:
        raise BudgetError(
            f"the beliefs of {len(wanted)} variables in {cases} cases take {need / 1e9:.3g} GB; "
            f"allowed are {limit / 1e9:.3g}.",
            bytes=need,
            remedies=["ask for fewer targets or fewer cases at a time", "memory=… (bytes)"],
        )


# ------------------------------------------------------------------------------------------ messages on trees


def by_messages(net: KernelTree, given: Given, wanted: list[int], groups: Joints, memory: float | None) -> Masses:
    """Sum-product for all cases at once, in blocks."""
    tree, heard, log_virtual = with_likelihoods(net, given)
    check_memory(net, wanted, given.n_cases, memory, np.dtype(tree.dtype).itemsize)
    masses = {v: np.empty((given.n_cases, net.cell_axes[v].m), dtype=tree.dtype) for v in wanted}
    log_p = np.zeros(given.n_cases)
    for block in blocks(net, given.n_cases):
        found, log_p[block] = propagate(tree, _part(heard, block), block.stop - block.start, wanted)
        for v, values in found.items():
            masses[v][block] = values
    joint = {group: joint_masses(net, tree, heard, given.n_cases, group, memory) for group in groups}
    return Masses(masses, joint, log_p + given.log_base + log_virtual, "cells")


def full_rows(given: Given, nearest: float) -> Array:
    """Which cases know every variable, near to the data, and nothing else: they need no engine."""
    full = np.full(given.n_cases, len(given.placed) == len(given.axes) and not given.weights)
    for p in given.placed.values():
        full &= p.known & (p.near >= nearest)
    return full


def log_p_by_messages(net: KernelTree, given: Given) -> FloatArray:
    """log p(e) of every case; rows without gaps, among the data, need no messages."""
    out = given.log_base.copy()
    full = full_rows(given, 1.0)
    if full.any():
        out[full] += _full(net, _part(given.placed, full))
    rest = np.flatnonzero(~full)
    tree, heard, log_virtual = with_likelihoods(net, given)
    for block in blocks(net, len(rest)):
        rows = rest[block]
        out[rows] += upward(tree, _part(heard, rows), len(rows)).log_z + log_virtual
    return out


def _full(net: KernelTree, placed: Mapping[int, Placed]) -> FloatArray:
    """Σ log r over the edges, of rows that know everything and lie among the data."""
    from gramgraph._numerics.cells.shares import pair_values

    total = np.zeros(len(next(iter(placed.values())).a))
    value = np.empty(len(total))
    for edge in net.edge_list:
        a, b = placed[net.index(edge.x)], placed[net.index(edge.y)]
        pair_values(edge.R, *a[:3], *b[:3], value)
        with np.errstate(divide="ignore"):
            total += np.log(np.maximum(value, 0.0))
    return total


# ------------------------------------------------------------------------------------------ engines of discrete models


def by_engine(
    net: CellModel, given: Given, wanted: list[int], groups: Joints, engine: str = "auto", **options: Any
) -> Masses:
    """One question about the discrete model on cells, with likelihoods of all cases."""
    check_memory(net, wanted, given.n_cases, options.get("memory"))
    masses = {v: np.empty((given.n_cases, net.cell_axes[v].m)) for v in wanted}
    joint = {group: np.empty((given.n_cases, *(net.cell_axes[v].m for v in group))) for group in groups}
    log_p = given.log_base + given.log_scale
    found: Any = None
    for block in blocks(net, given.n_cases):
        question = net.cell_question(given, block, tuple(wanted), tuple(groups))
        found = ask_engine(net.cells, question, engine, soft=given.soft, **options)
        log_p[block] += np.asarray(found.log_evidence)
        for v in wanted:
            masses[v][block] = found[net.cell_axes[v].name].probabilities
        for group in groups:
            joint[group][block] = found[net.names_of(group)].probabilities
    if found is None:
        return Masses(masses, joint, log_p, "junction_tree" if engine == "auto" else engine)
    return Masses(masses, joint, log_p, found.engine, found.exact, found.details)


def ask_engine(
    cells: Any,
    question: Question,
    engine: str = "auto",
    *,
    soft: Mapping[int, FloatArray] | None = None,
    memory: float | None = None,
    n_jobs: int = 1,
    random_state: Any = None,
    budget: Any = None,
    **options: Any,
) -> Any:
    """The answer of an engine for discrete models; "auto" approximates where the exact one does not fit."""
    from gramgraph.engines.base import Run, parse_budget
    from gramgraph.questions.ask import answer

    draws, seconds = parse_budget(budget)
    run = Run(memory, seconds, draws, random_state, n_jobs)
    return answer(cells, replace(question, soft=soft or {}), engine, run, options)


# ------------------------------------------------------------------------------------------ answers


def answer_of(net: CellModel, given: Given, found: Masses) -> RealAnswer:
    """Beliefs, made when they are looked at."""
    if not given.batched and found.log_p[0] == -np.inf:
        raise ImpossibleEvidenceError(
            "the evidence has probability 0: states that never occur together in tables without a floor. "
            "Use floor=1e-3 when learning."
        )
    placed, batched = given.placed, given.batched
    details = {**found.details, "index": given.index, "keep": given.keep}
    details["support"] = {net.cell_axes[v].name: p.near for v, p in placed.items()}

    def tell(belief: Any) -> dict[str, Any]:
        return _diagnostics(net, belief, placed, found.log_p)

    def numbers(v: int) -> FloatArray | None:
        """Observed values of a number, NaN where there is none; None where nothing was observed."""
        axis = net.cell_axes[v]
        if not isinstance(axis, LineAxis):
            return None
        if axis.fixed is not None:
            return np.full(given.n_cases, axis.fixed)
        return axis.read(given.values[v]) if v in given.values else None

    def believe(v: int, masses: Array) -> Any:
        axis = net.cell_axes[v]
        if isinstance(axis, LineAxis):
            return LineBelief(axis, masses, batched=batched, observed=numbers(v), diagnostics=tell)
        p = np.asarray(masses, dtype=np.float64)
        p = p / p.sum(axis=1, keepdims=True)  # single precision before
        how: dict[str, Any] = {"batched": batched, "index": given.index, "diagnostics": tell}
        if isinstance(axis, PointAxis):
            how |= {"points": axis.points, "directions": axis.domain == "sphere"}
        return Belief((axis.cell_var,), p if batched else p[0], **how)

    def observed(key: Any) -> Any:
        """What every case observed can be asked for too."""
        v = net.positions.get(key, -1)
        return believe(v, shares(net.cell_axes[v], placed[v])) if v in placed and placed[v].known.all() else None

    joint = {net.names_of(group): (group, P) for group, P in found.joint.items()}

    def jointly(key: tuple[str, ...]) -> Any:
        group, P = joint[key]
        if len(group) == 1:
            return believe(group[0], P)
        axes = [net.cell_axes[v] for v in group]
        if all(isinstance(axis, StateAxis) for axis in axes):
            scope = tuple(axis.var for axis in axes)
            return Belief(scope, P if batched else P[0], batched=batched, index=given.index, diagnostics=tell)
        seen = {k: x for k, v in enumerate(group) if (x := numbers(v)) is not None}
        return JointBelief(axes, P, batched=batched, observed=seen, diagnostics=tell)

    return RealAnswer(
        [*net.names_of(found.single), *joint],
        lambda key: jointly(key) if isinstance(key, tuple) else believe(net.index(key), found.single[net.index(key)]),
        found.log_p if batched else float(found.log_p[0]),
        engine=found.engine,
        exact=found.exact,
        batched=batched,
        details=details,
        observed=observed,
    )


def _diagnostics(net: CellModel, belief: Any, placed: Mapping[int, Placed], log_p: FloatArray) -> dict[str, Any]:
    support = {net.cell_axes[v].name: np.where(p.known, p.near, np.nan) for v, p in placed.items()}
    weights = belief._table if isinstance(belief, Belief) else belief.weights
    size = effective_size([net.axis(var.name) for var in belief.scope], weights, net.rows)
    outside = [tuple(k for k, s in support.items() if s[i] < 0.5) for i in range(len(log_p))]
    if belief.batched:
        own: tuple[Any, ...] = (size, support, outside, log_p)
    else:
        own = (float(size[0]), {k: float(s[0]) for k, s in support.items()}, outside[0], float(log_p[0]))
    found = dict(zip(("effective_sample_size", "support", "outside", "log_evidence"), own, strict=True))
    return {**found, "negative_mass": net.negative_mass}
