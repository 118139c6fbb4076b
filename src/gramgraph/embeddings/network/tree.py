"""The model: a forest whose edges are density ratios on cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.embeddings.network.axes import Axis
from gramgraph.embeddings.network.base import CellModel
from gramgraph.embeddings.network.messages import Branches, branches_of
from gramgraph.embeddings.network.stack import Edge
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.typing import FloatArray, RandomState

__all__ = ["KernelTree"]


class KernelTree(CellModel):
    """p(x) = Π_v p(x_v) Π_(s,t) r_st(x_s, x_t): marginals and pairwise density ratios along the edges of a forest.

    Variables are numbers, positive numbers, angles or categories, as `domains` says. `learn_tree` makes it from
    samples. Every conditional density is normalized exactly. A query costs 2 m² operations an edge with evidence behind
    it, m the cells of a variable (at most 128 by default), whatever the number of rows it was learned from.

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

    def __init__(self, axes: Sequence[Axis], edges: Sequence[Edge], *, rows: int = 0, name: str = "") -> None:
        super().__init__(axes)
        self.edge_list = tuple(edges)
        self.rows, self.name = rows, name
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
        return tables + sum(a.nbytes for axis in self.axes for a in axis.to_fields()[1].values())

    def __repr__(self) -> str:
        size = f"{self.nbytes / 1e6:.2g} MB"
        return f"KernelTree({self._kinds()}; {len(self.edge_list)} edges, {self.rows} rows, {size})"

    def edge(self, a: str, b: str) -> Edge:
        """What was learned about an edge: its table, its gain in nats, and the estimates that it mixes."""
        self.index(a)
        self.index(b)
        for edge in self.edge_list:
            if {edge.x, edge.y} == {a, b}:
                return edge
        raise VariableError(f"there is no edge between {a!r} and {b!r}. Neighbors of {a!r}: {self.neighbors(a)}.")

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Variables that share an edge with this one: its Markov blanket."""
        self.index(name)
        return tuple(edge.y if edge.x == name else edge.x for edge in self.edge_list if name in (edge.x, edge.y))

    markov_blanket = neighbors

    @cached_property
    def _branches(self) -> Branches:
        links = [(self._index[e.x], self._index[e.y], e.R) for e in self.edge_list]
        return branches_of([axis.q for axis in self.axes], links)

    # ------------------------------------------------------------------------------------------ questions

    def query(
        self,
        targets: Any = None,
        evidence: Any = None,
        *,
        virtual_evidence: Any = None,
        engine: str = "auto",
        memory: float | None = None,
        **options: Any,
    ) -> Any:
        """p(x_v | evidence) of each target, as beliefs with `mean`, `density`, `quantile`, `interval`, `mode`, ….

        Parameters
        ----------
        targets : a name, a list of names, or None for every variable that is not observed. A tuple of two or three
            names, alone or inside the list, asks for their joint.
        evidence : a dict for one case; a data frame (or a list of dicts) for many, where missing cells are not observed
            and every row may observe other variables. Numbers need not be near those of the sample: far from all of
            them an observation counts for nothing, and `diagnostics` says so.
        virtual_evidence : name → p(observation | x): a function of x for numbers and angles, weights by label or in the
            order of the states for categories; the same for all cases.
        engine : "auto" (sum-product for all cases at once), or an engine for discrete models with its options, which
            then answers on the cells, one case after the other.
        memory : bytes that the beliefs may take (default 2 GB); a `BudgetError` comes before allocation.

        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> answer = net.query("b", [{"a": "x"}, {"a": None}])
        >>> answer["b"].probabilities.round(2)
        array([[1. , 0. ],
               [0.5, 0.5]])
        >>> round(net.query("b", virtual_evidence={"a": {"x": 0.8, "y": 0.2}})["b"].prob("u"), 2)
        0.8
        >>> net.query([("a", "b")])["a", "b"].probabilities.round(1)
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        from gramgraph.embeddings.network.asking import query, query_cells

        if engine != "auto":
            cells = self.to_markov_network()
            return query_cells(self, cells, targets, evidence, engine, options, engine, virtual_evidence)
        if options:
            raise OptionError(f"options of other engines: {', '.join(options)}. What helps: name one with engine=….")
        return query(self, targets, evidence, virtual_evidence=virtual_evidence, memory=memory)

    def log_evidence(self, evidence: Any = None) -> float | FloatArray:
        """log p(evidence), the density of what was observed: a number, or one per case."""
        from gramgraph.embeddings.network.asking import log_evidence

        return log_evidence(self, evidence)

    def log_likelihood(self, frame: Any) -> FloatArray:
        """log p(row) of every row of a table of cases, in nats; cells that are missing are integrated out.

        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> net.log_likelihood({"a": ["x", "x"], "b": ["u", None]}).round(2)
        array([-0.69, -0.69])
        """
        from gramgraph.embeddings.network.asking import log_evidence, read_cases

        return np.atleast_1d(log_evidence(self, read_cases(self, frame)))

    def map_query(self, evidence: Any = None) -> Any:
        """The values of all unobserved variables with the largest joint density, with its logarithm.

        Max-product on the cells, then every variable in turn moves to the best point of its grid given its neighbors
        until nothing changes. A table of cases gives a data frame.

        >>> import gramgraph as gg
        >>> x = np.random.default_rng(0).normal(size=1000)
        >>> net = gg.learn_tree({"x": x, "y": x**2})
        >>> abs(net.map_query({"x": 1.5}).assignment["y"] - 2.25) < 0.1
        True
        """
        from gramgraph.embeddings.network.best import map_query

        return map_query(self, evidence)

    def sample(self, n: int = 1, evidence: Any = None, *, random_state: RandomState = None) -> Any:
        """n independent draws of all variables given the evidence (a dict), as a data frame.

        >>> import gramgraph as gg
        >>> x = np.random.default_rng(0).normal(size=1000)
        >>> net = gg.learn_tree({"x": x, "y": x**2})
        >>> draws = net.sample(500, {"y": 1.0}, random_state=0)
        >>> bool((np.abs(np.abs(draws["x"]) - 1.0) < 0.2).mean() > 0.9), draws.shape
        (True, (500, 2))
        """
        from gramgraph.embeddings.network.drawing import sample

        return sample(self, n, evidence, random_state)

    def save(self, path: Any) -> None:
        """Write a container with a checksum, as `gg.write(net, "tree.gg")` does.

        >>> import os, tempfile
        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     net.save(os.path.join(folder, "tree.gg"))
        ...     gg.embeddings.KernelTree.load(os.path.join(folder, "tree.gg"))
        KernelTree(2 category; 1 edges, 80 rows, 6.4e-05 MB)
        """
        from gramgraph.embeddings.network.files import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> KernelTree:
        """The tree in a file that `save` wrote, or in an .npz of version 0.1.0; a `ParseError` for anything else."""
        from gramgraph.embeddings.network.files import load

        return load(path, "kernel_tree")  # type: ignore[no-any-return]

    def to_markov_network(self) -> Any:
        """The same model on its cells, a discrete `MarkovNetwork` for which every engine works.

        States of numbers are the cells' anchors as text, in increasing order.

        >>> import gramgraph as gg
        >>> net = gg.learn_tree({"a": list("xxyy") * 20, "b": list("uuvv") * 20})
        >>> cells = net.to_markov_network()
        >>> round(cells.query("b", {"a": "x"}, engine="bp")["b"].prob("u"), 2), round(cells.log_evidence(), 9) + 0.0
        (1.0, 0.0)
        """
        from gramgraph.factors import TableFactor
        from gramgraph.models import MarkovNetwork

        variables = self._cell_variables()
        factors = [TableFactor((var,), np.asarray(axis.q)) for var, axis in zip(variables, self.axes, strict=True)]
        for edge in self.edge_list:
            scope = (variables[self._index[edge.x]], variables[self._index[edge.y]])
            factors.append(TableFactor(scope, np.asarray(edge.R, dtype=np.float64)))
        return MarkovNetwork.from_parts(variables, factors, name=self.name)


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
