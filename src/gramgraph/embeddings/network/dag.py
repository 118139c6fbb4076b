"""Directed networks of numbers, angles and categories with a few parents each, compiled to tables on cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gramgraph._validation import check_choice
from gramgraph.embeddings.network.asking import _blocks, _log_base, _read, answer_on_cells, columns_of, read_cases
from gramgraph.embeddings.network.axes import Axis, LineAxis, Placed
from gramgraph.embeddings.network.base import CellModel
from gramgraph.embeddings.network.candidates import Pair
from gramgraph.embeddings.network.conditional import Conditioned, fit_conditional
from gramgraph.embeddings.network.ends import End
from gramgraph.embeddings.network.learn import EDGES, _axis, _check_numbers, _checked, _kinds, _orders
from gramgraph.embeddings.network.stack import fit_edge
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.typing import FloatArray, RandomState

__all__ = ["KernelNetwork", "learn_dag"]

_LARGEST = 120_000  # numbers in the table of a conditional
_CELLS = 64
_MOST = 4  # parents


class KernelNetwork(CellModel):
    """A directed graph with p(x_v | parents) on cells for every variable; `learn_dag` makes it from samples.

    `cells` is the same network as a discrete `BayesianNetwork`, on which the library's engines answer.

    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 2000))
    >>> net = gg.learn_dag({"a": a, "b": b, "c": a * b + 0.1 * rng.normal(size=2000)}, "a -> c <- b")
    >>> round(net.query("c", {"a": 1.0, "b": 1.0})["c"].mean(), 1), net.parents("c")
    (1.0, ('a', 'b'))
    """

    def __init__(
        self,
        axes: list[Axis],
        parents: Mapping[str, tuple[str, ...]],
        conditionals: Mapping[str, Conditioned],
        *,
        rows: int,
    ) -> None:
        super().__init__(axes)
        self._parents = dict(parents)
        self.conditionals = dict(conditionals)
        self.rows = rows

    def __repr__(self) -> str:
        number = sum(len(p) for p in self._parents.values())
        return f"KernelNetwork({self._kinds()}; {number} edges, {self.rows} rows)"

    def parents(self, name: str) -> tuple[str, ...]:
        """Parents of a variable."""
        self.index(name)
        return self._parents[name]

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs (parent, child)."""
        return tuple((p, child) for child in self.variables for p in self._parents[child])

    @cached_property
    def cells(self) -> Any:
        """The network on cells, a discrete `BayesianNetwork`."""
        from gramgraph.conditionals import Table
        from gramgraph.models import BayesianNetwork

        variables = self._cell_variables()
        by = dict(zip(self.variables, variables, strict=True))
        tables = [
            Table(by[v], tuple(by[p] for p in self._parents[v]), self.conditionals[v].table) for v in self.variables
        ]
        return BayesianNetwork.from_parts(variables, tables, check=False)

    def query(
        self,
        targets: Any = None,
        evidence: Any = None,
        *,
        virtual_evidence: Any = None,
        engine: str = "auto",
        **options: Any,
    ) -> Any:
        """p(x_v | evidence) of each target; arguments as those of `KernelTree.query`, engines those of discrete models.

        Observations enter as likelihoods of the two cells around them; far from all data they count for nothing.
        """
        from gramgraph.embeddings.network.asking import query_cells

        return query_cells(self, self.cells, targets, evidence, engine, options, "kernel_network", virtual_evidence)

    def log_evidence(self, evidence: Any = None) -> float | FloatArray:
        """log p(evidence), the density of what was observed: a number, or one per case.

        >>> import gramgraph as gg
        >>> net = gg.learn_dag({"a": list("xxyy") * 20, "b": list("uvuv") * 20, "c": list("mnnm") * 20}, "a -> c <- b")
        >>> round(net.log_evidence({"a": "x", "b": "u"}), 2)
        -1.39
        """
        cases = _read(self, evidence)
        found = self.log_likelihood(cases)
        return found if cases.batched else float(found[0])

    def log_likelihood(self, frame: Any) -> FloatArray:
        """log p(row) of every row, in nats; gaps are integrated out. Rows without gaps need no engine.

        >>> import gramgraph as gg
        >>> net = gg.learn_dag({"a": list("xxyy") * 20, "b": list("uvuv") * 20, "c": list("mnnm") * 20}, "a -> c <- b")
        >>> net.log_likelihood([{"a": "x", "b": "u", "c": "m"}]).round(2)
        array([-1.39])
        """
        cases = read_cases(self, frame)
        placed = self._placed(cases.columns)
        out = _log_base(self, cases.columns, cases.number)
        full = np.ones(cases.number, dtype=bool)
        for v in range(len(self)):
            full &= placed[v].known & (placed[v].near >= 0.5) if v in placed else False
        for v, name in enumerate(self.variables):
            if full.any():
                family = [placed[self.index(p)] for p in self._parents[name]] + [placed[v]]
                out[full] += np.log(
                    _between(self.conditionals[name].table, self.axes[v].q, [p.take(full) for p in family])
                )
        rest = np.flatnonzero(~full)
        for block in _blocks(self, len(rest)):
            rows = rest[block]
            question = self._cell_question({v: p.take(rows) for v, p in placed.items()}, len(rows))
            if question.likelihoods:
                out[rows] += answer_on_cells(self.cells, question).log_evidence
        return out

    def map_query(self, evidence: Any = None) -> Any:
        """The anchors (states) of all unobserved variables with the largest joint density, with its logarithm.

        By the discrete engines on the cells; a table of cases gives a data frame.

        >>> import gramgraph as gg
        >>> x = np.random.default_rng(0).normal(size=1000)
        >>> net = gg.learn_dag({"x": x, "y": x**2}, "x -> y")
        >>> abs(net.map_query({"x": 1.5}).assignment["y"] - 2.25) < 0.2
        True
        """
        from gramgraph.answers import Assignment

        cases = _read(self, evidence)
        placed = self._placed(cases.columns)
        rows = self._best(placed, cases.number)
        given = [
            {name: column[i] for name, column in cases.columns.items() if placed[self.index(name)].known[i]}
            for i in range(cases.number)
        ]
        scores = self.log_likelihood([{**best, **seen} for best, seen in zip(rows, given, strict=True)])
        if not cases.batched:
            free = {name: value for name, value in rows[0].items() if name not in given[0]}
            return Assignment(free, float(scores[0]), exact=False)
        import pandas as pd

        full = [{**best, **seen} for best, seen in zip(rows, given, strict=True)]
        return pd.DataFrame(full, columns=list(self.variables), index=cases.index).assign(log_prob=scores)

    def _best(self, placed: Mapping[int, Placed], cases: int) -> list[dict[str, Any]]:
        """Values at the best combination of cells, one dict per case; cells of numbers count by their density."""
        from gramgraph.engines.registry import get_engine

        heights = {
            v: np.where(placed[v].known[:, None], 1.0, height) if v in placed else height
            for v, height in enumerate(self._heights)
            if height is not None
        }
        question = self._cell_question(placed, cases, weights=heights)
        states = get_engine("junction_tree").best(self.cells, question).states
        values = [_cell_values(axis) for axis in self.axes]
        return [
            {axis.name: values[v][row[v]] for v, axis in enumerate(self.axes)} for row in np.asarray(states).tolist()
        ]

    @cached_property
    def _heights(self) -> list[FloatArray | None]:
        """p(anchor) / q of the cells of numbers, by which a best combination counts their density, not their mass."""
        return [
            np.exp(axis.log_base(axis.grid_values[axis.anchors])) / axis.q if isinstance(axis, LineAxis) else None
            for axis in self.axes
        ]

    def sample(self, n: int = 1, evidence: Any = None, *, random_state: RandomState = None) -> Any:
        """n independent draws of all variables given the evidence (a dict), as a data frame."""
        import pandas as pd

        from gramgraph.embeddings.network.drawing import _inside
        from gramgraph.engines import Run, get_engine

        cases = _read(self, evidence)
        if cases.batched:
            raise OptionError("draws are made for one case: give the evidence as a dict.")
        placed = self._placed(cases.columns)
        rng = np.random.default_rng(random_state)
        question = replace(self._cell_question(placed, 1), batched=False)
        drawn = get_engine("junction_tree").draw(self.cells, question, n, Run(random_state=rng)).states
        columns: dict[str, Any] = {}
        for v, axis in enumerate(self.axes):
            if v in placed and placed[v].known[0]:
                columns[axis.name] = [cases.columns[axis.name][0]] * n
            else:
                columns[axis.name] = _inside(axis, drawn[:, v], rng)[0]
        return pd.DataFrame(columns)

    def save(self, path: Any) -> None:
        """Write a container with a checksum, as `gg.write(model, "model.gg")` does.

        >>> import os, tempfile
        >>> import gramgraph as gg
        >>> model = gg.learn_dag({"a": list("xxyy") * 20, "b": list("uvuv") * 20}, "a -> b")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.gg"))
        ...     type(gg.embeddings.KernelNetwork.load(os.path.join(folder, "model.gg"))).__name__
        'KernelNetwork'
        """
        from gramgraph.embeddings.network.files import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> KernelNetwork:
        """The network in a file that `save` wrote, or in an .npz of version 0.1.0; a `ParseError` for anything else."""
        from gramgraph.embeddings.network.files import load

        return load(path, "kernel_network")  # type: ignore[no-any-return]


def _cell_values(axis: Axis) -> list[Any]:
    """The anchor, the state or the point that each cell stands for."""
    if isinstance(axis, LineAxis):
        return axis.grid_values[axis.anchors].tolist()
    return [axis.value(cell) for cell in range(axis.m)]


def _between(table: FloatArray, q: FloatArray, family: list[Placed]) -> FloatArray:
    """p(child | parents) / p(child) at rows, linear between the cells of all of them."""
    total = np.zeros(len(family[0].a))
    near = np.ones(len(total))
    for p in family:
        near = near * p.near
    for corner in product((0, 1), repeat=len(family)):
        index, weight = [], np.ones(len(total))
        for p, side in zip(family, corner, strict=True):
            index.append(p.b if side else p.a)
            weight = weight * (p.f if side else 1.0 - p.f)
        total += weight * table[tuple(index)] / np.maximum(q[index[-1]], 1e-300)
    return np.maximum(1.0 + near * (total - 1.0), 1e-300)


def learn_dag(
    frame: Any,
    structure: Any,
    *,
    domains: Mapping[str, str] | None = None,
    edge: str = "auto",
    cells: int | None = None,
    floor: float = 1e-3,
    random_state: RandomState = 0,
) -> KernelNetwork:
    """Learn p(x_v | parents) for a directed graph over numbers, angles and categories, with up to four parents each.

    Parameters
    ----------
    frame : a data frame or a dict of columns; cells may be missing (a conditional uses the rows that know its family).
    structure : "a -> c <- b; c -> d", pairs (parent, child), or a dict {child: [parents]}.
    domains : as in `learn_tree`.
    edge : kind of the conditionals with one parent, as in `learn_tree`.
    cells : at most so many cells a variable; by default 64, or as many as keep the largest table at 120,000 numbers
        (49 with two real parents, 18 with three, 10 with four).

    Conditionals with one parent are edges of `learn_tree`; with more, mixtures of conditional embeddings and
    regressions on the parents' product kernel. Categories among categories become plain, smoothed tables.
    """
    from gramgraph.models.notation import read_structure

    check_choice("edge", edge, EDGES)
    _check_numbers(_CELLS if cells is None else cells, floor, 1)
    orders = _orders(frame)
    columns = _checked(columns_of(frame))
    graph = read_structure(structure)
    for name in graph.names:
        if name not in columns:
            raise VariableError.unknown(name, tuple(columns))
    used = {name: columns[name] for name in columns if name in graph.names}
    parents = {name: tuple(graph.parents.get(name, ())) for name in used}
    _check_acyclic(parents)
    most = max(len(p) for p in parents.values())
    if most > _MOST:
        raise ModelError(f"conditionals on cells take at most {_MOST} parents; one variable has {most}.")
    kinds = _kinds(columns, domains)
    size = _fitting(used, kinds, parents) if cells is None else int(cells)
    axes = [_axis(name, used[name], kinds[name], size, edge, None, orders.get(name)) for name in used]
    ends = {axis.name: End(axis, used[axis.name]) for axis in axes}
    made = {}
    seed = int(np.random.default_rng(random_state).integers(2**31))
    for name, above in parents.items():
        axis = ends[name].axis
        if not above:
            made[name] = Conditioned(np.asarray(axis.q), 0.0, {})
        elif len(above) == 1:
            found = fit_edge(Pair(ends[above[0]], ends[name]), edge, floor=floor)
            table = np.asarray(found.R, dtype=np.float64) * axis.q
            made[name] = Conditioned(table / table.sum(axis=1, keepdims=True), found.gain, dict(found.parts))
        else:
            made[name] = fit_conditional([ends[p] for p in above], ends[name], floor=floor, seed=seed)
    return KernelNetwork(axes, parents, made, rows=len(next(iter(used.values()))))


def _fitting(columns: Mapping[str, Any], kinds: Mapping[str, str], parents: Mapping[str, tuple[str, ...]]) -> int:
    """Cells of the numbers so that no table is too large; at least 4."""
    size = _CELLS
    for child, above in parents.items():
        family = (child, *above)
        lines = sum(kinds[name] != "category" for name in family)
        states = prod(len(set(columns[name].tolist())) for name in family if kinds[name] == "category")
        if lines:
            size = min(size, int((_LARGEST / max(states, 1)) ** (1.0 / lines)))
    return max(size, 4)


def _check_acyclic(parents: Mapping[str, tuple[str, ...]]) -> None:
    done: dict[str, bool] = {}

    def visit(name: str) -> None:
        if done.get(name) is False:
            raise ModelError(f"the arrows form a cycle through {name!r}.")
        if name not in done:
            done[name] = False
            for above in parents[name]:
                visit(above)
            done[name] = True

    for name in parents:
        visit(name)
