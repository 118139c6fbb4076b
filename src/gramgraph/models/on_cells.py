"""What models on cells share: variables of any kind, each on the cells of its axis, and density ratios between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramgraph.cells.axes import Axis, Placed
from gramgraph.models.base import GraphicalModel
from gramgraph.typing import Array, FloatArray


class CellModel(GraphicalModel):
    """A graphical model whose variables are numbers, angles, categories or points, each on the cells of its axis.

    p(x) = Π_v p(x_v) Π_f r_f(x_f): the density of every variable by itself, and `ratios` of a few variables each.
    `cells` is the same model as a discrete network, on which all engines for tables answer.
    """

    cell_axes: tuple[Axis, ...]
    rows: int = 0  # how many samples it was learned from
    #: Whether the ratios are balanced tables along a forest, so that a branch without evidence says nothing.
    is_balanced_forest: bool = False
    #: From this nearness to the data on the density of a complete row is `log_ratio` (above 1: never).
    closed_from: float = 1.0
    #: Kernel potentials, whose features are known at observed values themselves.
    potentials: tuple[Any, ...] = ()

    @property
    def kind(self) -> str:
        """What engines ask: the variables stand on cells."""
        return "cells"

    @property
    def cells(self) -> Any:
        """The same model on its cells: a discrete network."""
        raise NotImplementedError

    @property
    def ratios(self) -> tuple[tuple[tuple[int, ...], Array], ...]:
        """Positions of variables, and the table of their density ratio on cells, one axis for each."""
        raise NotImplementedError

    def log_ratio(self, placed: Mapping[int, Placed]) -> FloatArray:
        """log of the product of all ratios, of rows that know every variable."""
        raise NotImplementedError

    @property
    def domains(self) -> dict[str, str]:
        """Name → kind of its values."""
        return {axis.name: axis.domain for axis in self.cell_axes}

    @property
    def negative_mass(self) -> float:
        """The largest mass of an estimate that had to be lifted from below zero."""
        return 0.0

    def axis(self, name: str) -> Axis:
        """The cells of a variable."""
        return self.cell_axes[self.index(name)]

    def factors(self, *, structured: bool = True) -> Any:
        """The tables on cells."""
        return self.cells.factors(structured=structured)

    def to_factor_graph(self) -> Any:
        """The factor graph of the tables on cells."""
        return self.cells.to_factor_graph()

    def to_networkx(self) -> Any:
        """A networkx graph; nodes carry the attribute `domain`."""
        import networkx as nx

        out = self.cells.to_networkx()
        nx.set_node_attributes(out, self.domains, "domain")
        return out

    def joint_log_prob(self, assignment: Mapping[str, Any]) -> float:
        """log p(x), a density, at a full assignment."""
        self._check_full(assignment)
        return float(self.log_likelihood([dict(assignment)])[0])

    def _sizes(self) -> list[int]:
        return [axis.m for axis in self.cell_axes]

    def _kinds(self) -> str:
        kinds: dict[str, int] = {}
        for axis in self.cell_axes:
            kinds[axis.domain] = kinds.get(axis.domain, 0) + 1
        return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
