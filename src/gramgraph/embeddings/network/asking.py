"""From names and frames to cells, and back to beliefs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Belief, RealAnswer
from gramgraph.embeddings.network.axes import LineAxis, Placed, StateAxis
from gramgraph.embeddings.network.base import CellModel
from gramgraph.embeddings.network.beliefs import LineBelief, effective_size
from gramgraph.embeddings.network.joint import JointBelief, joint_masses, likelihoods, with_likelihoods
from gramgraph.embeddings.network.messages import propagate, upward
from gramgraph.embeddings.network.points import PointAxis
from gramgraph.exceptions import BudgetError, ImpossibleEvidenceError, ModelError, OptionError, listing
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.embeddings.network.tree import KernelTree

__all__ = ["Cases", "answer_on_cells", "columns_of", "log_evidence", "query", "read_cases"]

_BLOCK = 24_000_000  # numbers that the messages of a block of cases may take
_MEMORY = 2e9


@dataclass(frozen=True, eq=False)
class Cases:
    """Columns of observations, one row a case; `batched` is False for a single case."""

    columns: dict[str, Any]
    number: int
    batched: bool
    index: Any = None


def columns_of(frame: Any) -> dict[str, Any]:
    """Columns by name, of a frame or a mapping."""
    if isinstance(frame, Mapping):
        return {str(name): values for name, values in frame.items()}
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        names = [str(name) for name in frame.columns]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ModelError(f"every column needs a name of its own; these occur twice: {listing(twice)}.")
        return {name: _plain_column(frame[key]) for name, key in zip(names, frame.columns, strict=True)}
    raise ModelError(f"expected a data frame or a mapping from names to columns; got {type(frame).__name__}.")


def _plain_column(column: Any) -> Any:
    """An array; integers with gaps stay integers."""
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(column, "null_count"):
        gaps = dtype.is_integer() and column.null_count() > 0
        return np.array(column.to_list(), dtype=object) if gaps else column.to_numpy()
    if getattr(dtype, "kind", "") in "iu" and getattr(column, "hasnans", False):
        return column.astype(object).to_numpy()
    return column.to_numpy()


def read_cases(net: CellModel, frame: Any) -> Cases:
    """A table of cases: a frame, a dict of columns, or a list of dicts."""
    if isinstance(frame, Cases):
        return frame
    if isinstance(frame, (list, tuple)) and all(isinstance(row, Mapping) for row in frame):
        names = dict.fromkeys(name for row in frame for name in row)
        columns: dict[str, Any] = {name: [row.get(name) for row in frame] for name in names}
        number = len(frame)
    else:
        columns = columns_of(frame)
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ModelError(f"columns must have equally many rows; they have {lengths}.")
        number = next(iter(lengths.values()), 0) if lengths or isinstance(frame, Mapping) else len(frame)
    for name in columns:
        net.index(name)
    return Cases(columns, number, True, getattr(frame, "index", None) if hasattr(frame, "columns") else None)


def _read(net: CellModel, evidence: Any) -> Cases:
    if isinstance(evidence, Cases):
        return evidence
    if evidence is None:
        return Cases({}, 1, False)
    if isinstance(evidence, Mapping):
        columns: dict[str, Any] = {}
        for name, value in evidence.items():
            axis = net.axis(name)
            column: Array = np.empty(1, dtype=object)
            column[0] = value
            if isinstance(value, (list, tuple, np.ndarray)) and isinstance(axis, LineAxis):
                raise OptionError(
                    f"the evidence of {name!r} is a {type(value).__name__}: a dict is one case with one value a "
                    "variable. For many cases pass a data frame or a list of dicts."
                )
            columns[name] = column
        return Cases(columns, 1, False)
    return read_cases(net, evidence)


def _targets(net: CellModel, targets: Any, placed: Mapping[int, Placed]) -> tuple[list[int], list[tuple[int, ...]]]:
    """Single variables, and groups that are asked for jointly."""
    if targets is None:
        return [i for i in range(len(net)) if i not in placed or not placed[i].known.all()], []
    names = [targets] if isinstance(targets, (str, tuple)) else list(targets)
    groups = [tuple(name) for name in names if isinstance(name, (tuple, list))]
    for group in groups:
        if not 2 <= len(group) <= 3 or len(set(group)) < len(group):
            raise OptionError(f"a joint has two or three different variables; it was asked for {group!r}.")
        for name in group:
            at = placed.get(net.index(name))
            if at is not None and at.known.any():
                raise OptionError(f"{name!r} is observed, so that {group!r} has no joint; ask for the others alone.")
    single = [net.index(name) for name in names if not isinstance(name, (tuple, list))]
    return single, [tuple(net.index(name) for name in group) for group in groups]


def _blocks(net: CellModel, cases: int) -> list[slice]:
    size = max(64, _BLOCK // max(2 * sum(axis.m for axis in net.axes), 1))
    return [slice(i, min(i + size, cases)) for i in range(0, cases, size)] or [slice(0, 0)]


def _part(placed: Mapping[int, Placed], block: slice) -> dict[int, Placed]:
    return {v: p.take(block) for v, p in placed.items()}


def _log_base(net: CellModel, columns: Mapping[str, Any], cases: int) -> FloatArray:
    total = np.zeros(cases)
    for name, values in columns.items():
        total += net.axis(name).log_base(values)
    return total


def query(
    net: KernelTree, targets: Any, evidence: Any, *, virtual_evidence: Any = None, memory: float | None = None
) -> RealAnswer:
    """All beliefs of all cases, in blocks."""
    cases = _read(net, evidence)
    placed = net._placed(cases.columns)
    wanted, groups = _targets(net, targets, placed)
    tree, heard, log_virtual = with_likelihoods(net, likelihoods(net, virtual_evidence), placed, cases.number)
    _check_memory(net, wanted, cases.number, tree.dtype, memory)
    masses = {v: np.empty((cases.number, net.axes[v].m), dtype=tree.dtype) for v in wanted}
    log_p = np.zeros(cases.number)
    for block in _blocks(net, cases.number):
        found, log_p[block] = propagate(tree, _part(heard, block), block.stop - block.start, wanted)
        for v, values in found.items():
            masses[v][block] = values
    log_p += _log_base(net, cases.columns, cases.number) + log_virtual
    _check_possible(cases, log_p)
    joint = {group: joint_masses(net, tree, heard, cases.number, group) for group in groups}
    return _answer(net, cases, placed, wanted, masses, log_p, joint=joint)


def _check_possible(cases: Cases, log_p: FloatArray) -> None:
    if not cases.batched and log_p[0] == -np.inf:
        raise ImpossibleEvidenceError(
            "the evidence has probability 0: states that never occur together in tables without a floor. "
            "Use floor=1e-3 when learning."
        )


def answer_on_cells(
    cells: Any, question: Question, engine: str = "auto", options: Mapping[str, Any] | None = None
) -> Any:
    """The answer of an engine for discrete models; "auto" approximates where the exact one does not fit."""
    from gramgraph.engines.base import Run, parse_budget
    from gramgraph.questions.ask import answer

    how = dict(options or {})
    draws, seconds = parse_budget(how.pop("budget", None))
    run = Run(how.pop("memory", None), seconds, draws, how.pop("random_state", None), how.pop("n_jobs", 1))
    return answer(cells, question, engine, run, how)


def query_cells(
    net: CellModel,
    cells: Any,
    targets: Any,
    evidence: Any,
    engine: str,
    options: Mapping[str, Any],
    name: str,
    virtual_evidence: Any = None,
) -> RealAnswer:
    """Beliefs by an engine for discrete models, on the network of cells: one question about all cases."""
    cases = _read(net, evidence)
    placed = net._placed(cases.columns)
    wanted, groups = _targets(net, targets, placed)
    heard = likelihoods(net, virtual_evidence)
    weights = {v: likelihood.values for v, likelihood in heard.items()}
    joint = {group: np.empty((cases.number, *(net.axes[v].m for v in group))) for group in groups}
    masses = {v: np.empty((cases.number, net.axes[v].m)) for v in wanted}
    log_p = np.full(cases.number, float(sum(likelihood.log_scale for likelihood in heard.values())))
    for block in _blocks(net, cases.number):
        question = net._cell_question(
            _part(placed, block), block.stop - block.start, tuple(wanted), tuple(groups), weights
        )
        found = answer_on_cells(cells, question, engine, options)
        log_p[block] += np.asarray(found.log_evidence)
        for v in wanted:
            masses[v][block] = found[net.axes[v].name].probabilities
        for group in groups:
            joint[group][block] = found[tuple(net.axes[v].name for v in group)].probabilities
    _check_possible(cases, log_p)
    log_p += _log_base(net, cases.columns, cases.number)
    return _answer(net, cases, placed, wanted, masses, log_p, engine=name, joint=joint)


def _check_memory(net: CellModel, wanted: list[int], cases: int, dtype: Any, memory: float | None) -> None:
    need = float(cases) * sum(net.axes[v].m for v in wanted) * np.dtype(dtype).itemsize
    limit = _MEMORY if memory is None else float(memory)
    if need > limit:
        raise BudgetError(
            f"the beliefs of {len(wanted)} variables in {cases} cases take {need / 1e9:.3g} GB; "
            f"allowed are {limit / 1e9:.3g}.",
            bytes=need,
            remedies=["ask for fewer targets or fewer cases at a time", "memory=… (bytes)"],
        )


def _answer(
    net: CellModel,
    cases: Cases,
    placed: Mapping[int, Placed],
    wanted: list[int],
    masses: Mapping[int, Array],
    log_p: FloatArray,
    engine: str = "kernel_tree",
    joint: Mapping[tuple[int, ...], FloatArray] | None = None,
) -> RealAnswer:
    details = {"index": cases.index, "support": {net.axes[v].name: p.near for v, p in placed.items()}}

    def tell(belief: Any) -> dict[str, Any]:
        return _diagnostics(net, belief, placed, log_p)

    def believe(key: str, found: Array) -> Any:
        axis = net.axis(key)
        if isinstance(axis, LineAxis):
            seen = axis.read(cases.columns[key]) if key in cases.columns else None
            return LineBelief(axis, found, batched=cases.batched, observed=seen, diagnostics=tell)
        probabilities = np.asarray(found, dtype=np.float64)
        probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)  # single precision before
        shown = probabilities if cases.batched else probabilities[0]
        how: dict[str, Any] = {"batched": cases.batched, "index": cases.index, "diagnostics": tell}
        if isinstance(axis, PointAxis):
            how |= {"points": axis.points, "directions": axis.domain == "sphere"}
        return Belief((axis.var,), shown, **how)

    def observed(key: Any) -> Any:
        """What every case observed can be asked for too."""
        p = placed.get(net._index.get(key, -1))
        if p is None or not p.known.all():
            return None
        shares = np.zeros((len(p.a), net.axis(key).m))
        rows = np.arange(len(p.a))
        shares[rows, p.a] += 1.0 - p.f
        shares[rows, p.b] += p.f
        return believe(key, shares)

    groups = {tuple(net.axes[v].name for v in group): P for group, P in (joint or {}).items()}

    def jointly(key: tuple[str, ...]) -> Any:
        axes, P = [net.axis(name) for name in key], groups[key]
        if all(isinstance(axis, StateAxis) for axis in axes):
            scope = tuple(axis.var for axis in axes)
            shown = P if cases.batched else P[0]
            return Belief(scope, shown, batched=cases.batched, index=cases.index, diagnostics=tell)
        return JointBelief(axes, P, batched=cases.batched, diagnostics=tell)

    return RealAnswer(
        [*(net.axes[v].name for v in wanted), *groups],
        lambda key: jointly(key) if isinstance(key, tuple) else believe(key, masses[net.index(key)]),
        log_p if cases.batched else float(log_p[0]),
        engine=engine,
        exact=True,
        batched=cases.batched,
        details=details,
        observed=observed,
    )


def _diagnostics(net: CellModel, belief: Any, placed: Mapping[int, Placed], log_p: FloatArray) -> dict[str, Any]:
    support = {net.axes[v].name: np.where(p.known, p.near, np.nan) for v, p in placed.items()}
    weights = belief._table if isinstance(belief, Belief) else belief.weights
    size = effective_size([net.axis(var.name) for var in belief.scope], weights, net.rows)
    negative = net.negative_mass
    if belief.batched:
        outside: Any = [tuple(k for k, s in support.items() if s[i] < 0.5) for i in range(len(log_p))]
        return {
            "effective_sample_size": size,
            "support": support,
            "outside": outside,
            "negative_mass": negative,
            "log_evidence": log_p,
        }
    return {
        "effective_sample_size": float(size[0]),
        "support": {k: float(s[0]) for k, s in support.items()},
        "outside": tuple(k for k, s in support.items() if s[0] < 0.5),
        "negative_mass": negative,
        "log_evidence": float(log_p[0]),
    }


def log_evidence(net: KernelTree, evidence: Any) -> float | FloatArray:
    """log p(e); rows without gaps, among the data, need no messages."""
    cases = _read(net, evidence)
    placed = net._placed(cases.columns)
    out = _log_base(net, cases.columns, cases.number)
    full = np.full(cases.number, len(placed) == len(net))
    for p in placed.values():
        full &= p.known & (p.near >= 1.0)
    if full.any():
        out[full] += _full(net, {v: p.take(full) for v, p in placed.items()})
    rest = np.flatnonzero(~full)
    for block in _blocks(net, len(rest)):
        rows = rest[block]
        if len(rows):
            out[rows] += upward(net._branches, {v: p.take(rows) for v, p in placed.items()}, len(rows)).log_z
    return out if cases.batched else float(out[0])


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
