"""The model: a forest whose edges are density ratios on cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph._show import counted
from gramgraph.cells.axes import Axis, Placed
from gramgraph.embeddings.network.edge_mixture import Edge
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.factors import TableFactor
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.on_cells import CellModel
from gramgraph.typing import Array, FloatArray


class KernelTree(CellModel, MarkovNetwork):
    """p(x) = Π_v p(x_v) Π_(s,t) r_st(x_s, x_t): marginals and pairwise density ratios along the edges of a forest.

    Variables are numbers, positive numbers, angles or categories, as `domains` says. `learn_tree` makes it from
    samples. Every conditional density is normalized exactly. A query costs 2 m² operations an edge with evidence behind
    it, m the cells of a variable (at most 128 by default), whatever the number of rows it was learned from.

    Parameters
    ----------
    axes : cells of the variables.
    edges : the ratio of each pair that is joined.
    rows : number of rows that it was learned from.
    name : a title.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> a = rng.uniform(-3, 3, size=2000)
    >>> b = np.sin(a) + 0.1 * rng.normal(size=2000)
    >>> net = gg.learn_tree({"a": a, "b": b, "late": np.where(b > 0, "yes", "no")})
    >>> net.edges
    (('a', 'b'), ('b', 'late'))
    >>> belief = net.query("a", {"b": 0.9})["a"]
    >>> abs(belief.mean() - 1.57) < 0.1, net.query("late", {"a": 1.5})["late"].prob("yes") > 0.98
    (True, True)
    """

    is_balanced_forest = True
    kept_rows: Mapping[str, Any] | None = None  # a small sample, for engine="gram"; files leave it out

    def __init__(self, axes: Sequence[Axis], edges: Sequence[Edge], *, rows: int = 0, name: str = "") -> None:
        self.cell_axes, self.edge_list = tuple(axes), tuple(edges)
        self._set_variables(axis.var for axis in axes)
        self.is_discrete = False  # beliefs are on cells, also where all variables are categories
        self.rows, self.name, self.metadata = rows, name, {}
        check_forest(self.edges, self.variables)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of names."""
        return tuple((edge.x, edge.y) for edge in self.edge_list)

    @property
    def negative_mass(self) -> float:
        """The largest mass of an edge that had to be lifted from below zero."""
        return max((edge.negative_mass for edge in self.edge_list), default=0.0)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the model holds."""
        tables = sum(edge.R.nbytes for edge in self.edge_list)
        return tables + sum(a.nbytes for axis in self.cell_axes for a in axis.to_fields()[1].values())

    def __repr__(self) -> str:
        size = f"{self.nbytes / 1e6:.2g} MB"
        return f"KernelTree({self._kinds()}; {counted(edge=len(self.edge_list), row=self.rows)}, {size})"

    def edge(self, a: str, b: str) -> Edge:
        """What was learned about an edge: its table, its gain in nats, and the estimates that it mixes."""
        self.index(a)
        self.index(b)
        for edge in self.edge_list:
            if {edge.x, edge.y} == {a, b}:
                return edge
        raise VariableError(f"there is no edge between {a!r} and {b!r}. Neighbors of {a!r}: {self.neighbors(a)}.")

    @cached_property
    def ratios(self) -> tuple[tuple[tuple[int, ...], Array], ...]:  # type: ignore[override]
        """The ends of every edge, and its table."""
        return tuple(((self.positions[e.x], self.positions[e.y]), e.R) for e in self.edge_list)

    def log_ratio(self, placed: Mapping[int, Placed]) -> FloatArray:
        """Σ log r over the edges, of rows that know everything and lie among the data."""
        from gramgraph._numerics.cells.shares import pair_values

        total = np.zeros(len(next(iter(placed.values())).a))
        value = np.empty(len(total))
        for (a, b), R in self.ratios:
            pair_values(R, *placed[a][:3], *placed[b][:3], value)
            with np.errstate(divide="ignore"):
                total += np.log(np.maximum(value, 0.0))
        return total

    @cached_property
    def cells(self) -> MarkovNetwork:  # type: ignore[override]
        """The same model on its cells, a discrete `MarkovNetwork`; states of numbers are anchors as text."""
        variables = [axis.cell_var for axis in self.cell_axes]
        factors = [TableFactor((var,), np.asarray(axis.q)) for var, axis in zip(variables, self.cell_axes, strict=True)]
        for edge in self.edge_list:
            scope = (variables[self.positions[edge.x]], variables[self.positions[edge.y]])
            factors.append(TableFactor(scope, np.asarray(edge.R, dtype=np.float64)))
        return MarkovNetwork.from_parts(variables, factors, name=self.name)

    @cached_property
    def stored_factors(self) -> Any:  # type: ignore[override]
        """The tables on cells: the masses of every variable, and the ratio of every edge."""
        return self.cells.stored_factors

    def faults(self) -> list[str]:
        """Everything that is wrong with the tables on cells."""
        return self.cells.faults()

    def to_markov_network(self) -> Any:
        """The same model on its cells, a discrete `MarkovNetwork` for which every engine works.

        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> cells = net.to_markov_network()
        >>> round(cells.query("b", {"a": "x"}, engine="bp")["b"].prob("u"), 2), round(cells.log_evidence(), 9) + 0.0
        (1.0, 0.0)
        """
        return self.cells

    def fit(self, data: Any, **options: Any) -> KernelTree:  # type: ignore[override]
        """The same edges learned from other rows; options are those of `learn_tree`."""
        from gramgraph.embeddings.network.learn import learn_tree

        return learn_tree(data, edges=self.edges, domains=self.domains, **options)

    def save(self, path: Any) -> None:
        """Write a container with a checksum, as `gg.write(net, "tree.gg")` does.

        >>> import os, tempfile
        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     net.save(os.path.join(folder, "tree.gg"))
        ...     gg.embeddings.KernelTree.load(os.path.join(folder, "tree.gg"))
        KernelTree(2 category; 1 edge, 80 rows, 6.4e-05 MB)
        """
        from gramgraph.embeddings.network.files import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> KernelTree:
        """The tree in a file that `save` wrote, or in an .npz of version 0.1.0; a `ParseError` for anything else."""
        from gramgraph.embeddings.network.files import load

        return load(path, "kernel_tree")  # type: ignore[no-any-return]


def check_forest(edges: Sequence[tuple[str, str]], names: Sequence[str]) -> None:
    """A `ModelError` for unknown ends and for edges that close a cycle."""
    group = {name: name for name in names}

    def find(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    for a, b in edges:
        for name in (a, b):
            if name not in group:
                raise VariableError.unknown(name, tuple(names))
        if find(a) == find(b):
            raise ModelError(f"edges of a tree close no cycle: {a!r} - {b!r} joins what is already joined.")
        group[find(a)] = find(b)
