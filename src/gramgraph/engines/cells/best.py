"""The values with the largest joint density, every unobserved variable at an anchor of its cells.

At anchors all ratios are entries of their tables, and at observed values they are interpolated between cells, so that
the joint density is a product of tables over the cells of the unobserved variables. Its maximum is found exactly, and
so are the second best and so on; all are told with that density.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from gramgraph.answers import Assignment
from gramgraph.answers.joint_belief import outer
from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.cells.columns import column_of, single
from gramgraph.compile.cache import remember
from gramgraph.engines.base import Best, Run
from gramgraph.engines.best.k_best import k_best_codes
from gramgraph.engines.best.marginal_map import marginal_map
from gramgraph.engines.cells.evidence import Seen
from gramgraph.engines.cells.log_p import log_p
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.fallback import automatic_best
from gramgraph.exceptions import BudgetError
from gramgraph.factors import TableFactor
from gramgraph.models.layout import layout_of
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.on_cells import CellModel
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import discrete

_ENTRIES = 2_000_000  # of a table that has one slice for each case
_CASES = 256


def best_cells(model: CellModel, question: Question, run: Run) -> Best:
    """The best values of every case."""
    seen = Seen.of(model, question)
    n = seen.n_cases
    states, log_prob = np.zeros((n, len(model)), np.int64), np.empty(n)
    for rows, free in _patterns(model, seen):
        part = _AtAnchors.of(model, seen, rows, free)
        found = _best_at_anchors(part, run) if free else None
        states[rows[:, None], free] = 0 if found is None else found.states[:, : len(free)]
        log_prob[rows] = part.constant + (0.0 if found is None else found.log_prob)
    filled, X = rows_of(model, seen, np.arange(n), dict(enumerate(states.T)), anchors=True)
    return Best(filled, log_prob, np.full(n, np.inf), X)


def _best_at_anchors(part: _AtAnchors, run: Run) -> Best:
    """Exactly where a junction tree fits; else by whatever "auto" finds best: max-product, moves, search."""
    try:
        return JunctionTree().best(part.net, part.question, run)
    except BudgetError:
        return automatic_best(part.net, part.question, run)


def best_few(model: CellModel, question: Question, k: int) -> Best:
    """The k best values of one case, best first."""
    seen = Seen.of(model, question)
    free = [v for v in range(len(model)) if not seen.known(v)[0]]
    part = _AtAnchors.of(model, seen, np.zeros(1, np.int64), free)
    found = list(islice(k_best_codes(part.net, part.question), k)) if free else [(np.zeros(0, np.int64), 0.0)]
    codes = np.array([row[: len(free)] for row, _ in found], np.int64).reshape(len(found), len(free))
    filled, X = rows_of(
        model, seen, np.zeros(len(found), np.int64), dict(zip(free, codes.T, strict=True)), anchors=True
    )
    return Best(filled, part.constant[0] + np.array([value for _, value in found]), np.full(len(found), np.inf), X)


def best_of_some(model: CellModel, question: Question, wanted: tuple[int, ...], run: Run) -> Assignment:
    """The best cells of some variables when the others are integrated out; log_prob is the density at their anchors."""
    seen = Seen.of(model, question)
    free = [v for v in wanted if not seen.known(v).any()]
    heights = [(v, _height(model.cell_axes[v])) for v in free]
    asked = replace(seen.on_tables(more=heights), batched=False)
    found = marginal_map(
        model.cells, model.names_of(free), asked, memory=run.memory, gap=run.gap, time_limit=run.seconds
    )
    cells = {v: model.cells.vars[v].index(found.assignment[model.vars[v].name]) for v in free}
    chosen = {v: single(model.cell_axes[v].value(cell)) for v, cell in cells.items()}
    value = log_p(model, replace(seen, values={**seen.values, **chosen}), run)
    values = {model.vars[v].name: model.cell_axes[v].value(cell) for v, cell in cells.items()}
    return Assignment(values, float(value[0]) + question.log_scale, exact=False, bound=np.inf)


def _height(axis: Axis) -> FloatArray:
    """The density at the anchors by the mass of their cells, the largest one; ones where there is no density."""
    if not isinstance(axis, LineAxis) or axis.fixed is not None:
        return np.ones(axis.m)
    height = np.exp(_anchors(axis)[0]) / axis.q
    return np.asarray(height / height.max())


def _anchors(axis: Axis) -> tuple[FloatArray, FloatArray]:
    """log p at the anchors by themselves, and how near they are to the data."""
    values = column_of([axis.value(cell) for cell in range(axis.m)])
    return axis.log_base(values), axis.place(values).near


def _patterns(model: CellModel, seen: Seen) -> Iterator[tuple[IntArray, list[int]]]:
    """Cases that observe the same variables, not too many at a time, and the variables that they do not observe."""
    known = np.stack([seen.known(v) for v in range(len(model))], axis=1)
    for pattern in np.unique(known, axis=0):
        rows = np.flatnonzero((known == pattern).all(axis=1))
        free = np.flatnonzero(~pattern).tolist()
        most = max((_free_entries(model, positions, set(free)) for positions, _ in model.ratios), default=1.0)
        size = int(np.clip(_ENTRIES // most, 1, _CASES))
        for start in range(0, len(rows), size):
            yield rows[start : start + size], free


def _free_entries(model: CellModel, positions: tuple[int, ...], free: set[int]) -> float:
    if free.issuperset(positions):
        return 1.0  # the same for all cases
    return float(np.prod([model.cell_axes[v].m for v in positions if v in free]))


@dataclass(frozen=True, eq=False)
class _AtAnchors:
    """The joint density of some cases as tables over the cells of their unobserved variables; where there are several,
    the last variable is the number of the case."""

    net: MarkovNetwork
    question: Question
    constant: FloatArray  # (cases,) log of what does not depend on the cells

    @classmethod
    def of(cls, model: CellModel, seen: Seen, rows: IntArray, free: list[int]) -> _AtAnchors:
        """The tables of these cases, all of which observe the same variables."""
        tops = _all_anchors(model)
        variables = [model.cell_axes[v].cell_var for v in free]
        at = {v: j for j, v in enumerate(free)}
        many = len(rows) > 1
        if many:
            variables.append(discrete("·case", len(rows)))
        factors = [TableFactor((variables[j],), np.exp(tops[v][0] - tops[v][0].max())) for v, j in at.items()]
        constant = seen.log_base[rows] + sum(float(tops[v][0].max()) for v in free)
        for positions, table in model.ratios:
            values = _interpolated(table, positions, at, seen, rows, tops)
            scope = tuple(variables[at[v]] for v in positions if v in at)
            if not scope:
                with np.errstate(divide="ignore"):
                    constant = constant + np.log(values)
            elif many and len(scope) < len(positions):
                factors.append(TableFactor((variables[-1], *scope), values))
            else:
                factors.append(TableFactor(scope, values.reshape(values.shape[-len(scope) :])))
        heard = []
        for v, weights in seen.weights.items():
            own = weights if weights.ndim == 1 else weights[rows]
            if v in at:
                heard.append((at[v], own))
            else:
                with np.errstate(divide="ignore"):
                    constant = constant + np.log((seen.placed[v].take(rows).shares(own.shape[-1]) * own).sum(axis=1))
        case = (len(free),) if many else ()
        codes = np.arange(len(rows))[:, None] if many else np.zeros((1, 0), np.int64)
        question = Question((), (), case, codes, tuple(heard), batched=many)
        return cls(MarkovNetwork.from_parts(variables, factors), question, constant)


def _all_anchors(model: CellModel) -> list[tuple[FloatArray, FloatArray]]:
    found: Any = model.plans.get(("lowered", "anchors"))
    if found is None:
        found = remember(model, ("lowered", "anchors"), [_anchors(axis) for axis in model.cell_axes])
    return found  # type: ignore[no-any-return]


def _interpolated(
    table: Array,
    positions: tuple[int, ...],
    free: Mapping[int, int],
    seen: Seen,
    rows: IntArray,
    tops: list[tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """A ratio at observed values and at the anchors of free variables: (cases or 1, cells of the free ones)."""
    values = np.asarray(table, dtype=np.float64)[None]
    near = np.ones(1)
    for v in positions:
        if v in free:
            values = np.moveaxis(values, 1, -1)  # in the end the free ones stand in their order
        else:
            p = seen.placed[v].take(rows)
            values, near = _between(values, p), near * p.near
    away = [tops[v][1] for v in positions if v in free]
    share = near.reshape(-1, *[1] * len(away)) * outer(away)
    return np.maximum(1.0 + share * (values - 1.0), 0.0)


def _between(values: FloatArray, p: Placed) -> FloatArray:
    """Entries of the second axis at rows between two cells; the first axis has one slice for each row, or for all."""
    row = np.zeros(len(p.a), np.int64) if len(values) == 1 else np.arange(len(p.a))
    f = p.f.reshape(-1, *[1] * (values.ndim - 2))
    return np.asarray(values[row, p.a] * (1.0 - f) + values[row, p.b] * f)


def rows_of(
    model: CellModel, seen: Seen, rows: IntArray, found: Mapping[int, Array], *, anchors: bool = False
) -> tuple[IntArray, FloatArray]:
    """Full assignments of these cases: states (of points: cells), and values of numbers.

    `found` has the cells of what was not observed, of numbers their values (with `anchors` their cells too).
    """
    layout = layout_of(model)
    states, X = np.full((len(rows), len(model)), -1, np.int64), np.zeros((len(rows), layout.size))
    for v, axis in enumerate(model.cell_axes):
        known = seen.known(v)[rows]
        own = np.asarray(found[v] if v in found else np.zeros(len(rows), np.int64))
        if isinstance(axis, LineAxis):
            if anchors:
                own = np.array([axis.value(cell) for cell in range(axis.m)])[own]
            x = np.where(known, axis.read(seen.values[v])[rows], own) if known.any() else own
            X[:, layout.components(v)[0]] = x
        else:
            states[:, v] = np.where(known, seen.placed[v].a[rows], own) if known.any() else own
    return states, X
