"""Directed networks of numbers, angles and categories with a few parents each, compiled to tables on cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gramgraph._show import counted
from gramgraph._validation import check_choice, generator
from gramgraph.cells.axes import Axis, LineAxis, Placed, StateAxis
from gramgraph.conditionals import Table
from gramgraph.conditionals.kernel import KernelConditional
from gramgraph.data.frames import read_frame
from gramgraph.embeddings.network.candidates import Pair
from gramgraph.embeddings.network.conditional import fit_conditional
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.edge_mixture import fit_edge
from gramgraph.embeddings.network.learn import EDGES, _axis, _check_numbers, _checked, _kinds, _orders, columns_of
from gramgraph.evidence import weights_of
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.checking import cycle_faults
from gramgraph.models.cpt import Cpts
from gramgraph.models.on_cells import CellModel
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

_LARGEST = 120_000  # numbers in the table of a conditional
_CELLS = 64
_MOST = 4  # parents


class KernelNetwork(CellModel, BayesianNetwork):
    """A directed graph with p(x_v | parents) on cells for every variable; `learn_dag` makes it from samples.

    `cells` is the same network as a discrete `BayesianNetwork`, on which the library's engines answer.

    Parameters
    ----------
    conditionals : one for each variable.
    rows : number of rows that it was learned from.
    name : a title.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 2000))
    >>> net = gg.learn_dag({"a": a, "b": b, "c": a * b + 0.1 * rng.normal(size=2000)}, "a -> c <- b")
    >>> round(net.query("c", {"a": 1.0, "b": 1.0})["c"].mean(), 1), net.parents("c")
    (1.0, ('a', 'b'))
    """

    conditionals: tuple[KernelConditional, ...]  # type: ignore[assignment]
    closed_from = 0.5

    def __init__(self, conditionals: Sequence[KernelConditional], *, rows: int = 0, name: str = "") -> None:
        self._fill((), conditionals, None, name, None)
        self.rows = rows
        self._check(missing=False)

    def _fill(
        self,
        variables: Iterable[Var],
        conditionals: Sequence[Any],
        parents: Any,
        name: str,
        metadata: dict[str, Any] | None,
    ) -> None:
        wrong = [c for c in conditionals if not isinstance(c, KernelConditional)]
        if wrong:
            raise ModelError(f"a KernelNetwork holds conditionals that `learn_dag` made, not {wrong[0]!r:.60}")
        self.cell_axes = tuple(c.axes[-1] for c in conditionals)
        super()._fill([axis.var for axis in self.cell_axes], conditionals, parents, name, metadata)
        self.is_discrete = False  # beliefs are on cells, also where all variables are categories

    def __repr__(self) -> str:
        return f"KernelNetwork({self._kinds()}; {counted(edge=len(self.edges), row=self.rows)}{self._after_do()})"

    @cached_property
    def cells(self) -> BayesianNetwork:  # type: ignore[override]
        """The network on cells, a discrete `BayesianNetwork`; states of numbers are anchors as text."""
        variables = [axis.cell_var for axis in self.cell_axes]
        tables = [
            Table(var, tuple(variables[p] for p in row), c.on_cells)
            for var, row, c in zip(variables, self.parent_positions, self.conditionals, strict=True)
        ]
        return BayesianNetwork.from_parts(variables, tables, check=False)

    @property
    def cpt(self) -> Cpts:
        """Tables on cells to read, by name and context."""
        return Cpts(self.cells)

    def to_markov_network(self) -> Any:
        """The tables on cells without directions."""
        return self.cells.to_markov_network()

    def fit(self, data: Any, **options: Any) -> KernelNetwork:  # type: ignore[override]
        """The same graph learned from other rows; options are those of `learn_dag`."""
        parents = {name: list(self.parents(name)) for name in self.variables}
        return learn_dag(data, parents, domains=self.domains, **options)

    def do(self, interventions: Mapping[str, Any] | str, state: Any = None) -> KernelNetwork:  # type: ignore[override]
        """The network after an intervention: edges into the set variables are cut, and they take their new value.

        A category is set to a state or at random (`{state: p}`), a number to a value or at random (mean, sd).

        >>> import gramgraph as gg
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=2000)
        >>> net = gg.learn_dag({"a": a, "b": a + 0.3 * rng.normal(size=2000)}, "a -> b").do("b", 2.0)
        >>> net.query("b")["b"].mean(), abs(net.query("a")["a"].mean()) < 0.1, net.parents("b")
        (2.0, True, ())
        """
        given = {interventions: state} if isinstance(interventions, str) else interventions
        if not isinstance(given, Mapping):
            raise ModelError(f"do takes {{name: state}}, or a name and a state; got {given!r}")
        made = dict(zip(self.variables, self.conditionals, strict=True))
        for name, value in given.items():
            axis = self.axis(name)
            if value is None:
                raise ModelError(f'do needs a value: do({{"{name}": …}})')
            random = _random_masses(axis, value)
            after, share = (axis, random) if random is not None else axis.fixed_at(value)
            made[name] = KernelConditional((after,), share if after is axis else np.ones(1))
            for child in self.children(name):
                if any(own is axis for own in made[child].axes[:-1]):
                    made[child] = made[child].fixed(after, share)
        cut = type(self)(list(made.values()), rows=self.rows, name=self.name)
        cut.interventions = {**self.interventions, **given}
        return cut

    def impute(self, data: Any, *, method: str = "mpe", random_state: RandomState = None) -> Any:
        """A frame with its missing cells filled: by the best values of each row together ("mpe"), or by a draw of what
        is missing given the rest ("draw").

        >>> import gramgraph as gg
        >>> net = gg.learn_dag({"a": list("xxyy") * 20, "b": list("uuvv") * 20}, "a -> b")
        >>> net.impute({"a": ["x", None], "b": [None, "v"]}).values.tolist()
        [['x', 'u'], ['y', 'v']]
        """
        check_choice("method", method, ("mpe", "draw"))
        frame = read_frame(data).table
        seen = [name for name in self.variables if name in frame.columns]
        gaps = frame[seen].isna()
        rows = np.flatnonzero(gaps.any(axis=1))
        out, known = frame.copy(), frame[seen].iloc[rows]
        if method == "mpe":
            found = self.map_query(known).to_dict("records")
        else:
            rng = generator(random_state)
            found = [self.sample(1, row, random_state=rng).iloc[0].to_dict() for row in known.to_dict("records")]
        for name in seen:
            column = frame[name].to_numpy(dtype=object, copy=True)
            for row, values in zip(rows, found, strict=True):
                if gaps[name].iat[row]:
                    column[row] = values[name]
            out[name] = column
            out[name] = out[name].infer_objects()
        return out

    @cached_property
    def ratios(self) -> tuple[tuple[tuple[int, ...], FloatArray], ...]:  # type: ignore[override]
        """Parents and child of every conditional, and its table by the child's masses."""
        return tuple(
            ((*row, v), c.on_cells / np.maximum(c.axes[-1].q, 1e-300))
            for v, (row, c) in enumerate(zip(self.parent_positions, self.conditionals, strict=True))
        )

    def log_ratio(self, placed: Mapping[int, Placed]) -> FloatArray:
        """Σ log p(x_v | parents) / p(x_v), of rows that know everything."""
        total = np.zeros(len(next(iter(placed.values())).a))
        for v, (row, c) in enumerate(zip(self.parent_positions, self.conditionals, strict=True)):
            total += np.log(c.ratio([placed[u] for u in (*row, v)]))
        return total

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


def _random_masses(axis: Axis, value: Any) -> FloatArray | None:
    """Masses of the cells of a random intervention; None for a value."""
    if isinstance(axis, LineAxis):
        if not (isinstance(value, tuple) and len(value) == 2):
            return None
        mean, sd = float(axis.read([value[0]])[0]), float(value[1])
        x = axis.grid_values
        logs = -0.5 * ((x - mean) / sd) ** 2 - axis.log_base(x)
        masses = axis.average(np.exp(logs - logs.max()))[1]
    elif isinstance(value, Mapping) or (isinstance(axis, StateAxis) and isinstance(value, (list, tuple, np.ndarray))):
        masses = weights_of(axis.cell_var, value, what=f"do({axis.name})")
    else:
        return None
    return np.asarray(masses / masses.sum())


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
    floor : share of a flat density that is mixed in.
    random_state : seed of folds and landmarks.

    Notes
    -----
    Conditionals with one parent are edges of `learn_tree`; with more, mixtures of conditional embeddings and
    regressions on the parents' product kernel. Categories among categories become plain, smoothed tables.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 300))
    >>> net = learn_dag({"a": a, "b": b, "c": a + b}, "a -> c <- b")
    >>> bool(net.query("c", {"a": 1.0, "b": 1.0})["c"].mean() > 1.0)
    True
    """
    from gramgraph.models.notation import read_structure

    check_choice("edge", edge, EDGES)
    _check_numbers(_CELLS if cells is None else cells, floor)
    orders = _orders(frame)
    columns = _checked(columns_of(frame))
    graph = read_structure(structure)
    for name in graph.names:
        if name not in columns:
            raise VariableError.unknown(name, tuple(columns))
    used = {name: columns[name] for name in columns if name in graph.names}
    parents = {name: tuple(graph.parents.get(name, ())) for name in used}
    wrong = cycle_faults([[list(used).index(p) for p in above] for above in parents.values()], list(used))
    if wrong:
        raise ModelError(wrong)
    most = max(len(p) for p in parents.values())
    if most > _MOST:
        raise ModelError(f"conditionals on cells take at most {_MOST} parents; one variable has {most}.")
    kinds = _kinds(columns, domains)
    size = _fitting(used, kinds, parents) if cells is None else int(cells)
    axes = [_axis(name, used[name], kinds[name], size, edge, None, orders.get(name)) for name in used]
    ends = {axis.name: End(axis, used[axis.name]) for axis in axes}
    made = []
    seed = int(np.random.default_rng(random_state).integers(2**31))
    for name, above in parents.items():
        axis = ends[name].axis
        if not above:
            made.append(KernelConditional((axis,), np.asarray(axis.q)))
        elif len(above) == 1:
            found = fit_edge(Pair(ends[above[0]], ends[name]), edge, floor=floor)
            table = np.asarray(found.R, dtype=np.float64) * axis.q
            table = table / table.sum(axis=1, keepdims=True)
            made.append(KernelConditional((ends[above[0]].axis, axis), table, found.gain, dict(found.parts)))
        else:
            made.append(fit_conditional([ends[p] for p in above], ends[name], floor=floor, seed=seed))
    return KernelNetwork(made, rows=len(next(iter(used.values()))))


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
