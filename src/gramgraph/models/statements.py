"""What the graph of a model states, by name: independencies, maps of distributions, the width of an order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph import graphs
from gramgraph.exceptions import ModelError, VariableError, listing
from gramgraph.models.base import GraphicalModel

LARGEST_TABLE = 1 << 24  # entries of a joint table that is made to compare with a graph


class Independencies(tuple["graphs.Independence[str]", ...]):
    """Statements "x and y are independent given Z"; printed one on a line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        shown = "; ".join(map(str, self[:8])) + ("; …" if len(self) > 8 else "")
        return f"Independencies({shown!r})"


@dataclass(frozen=True)
class Separation:
    """What a variable still tells about the others: those `reached` by active trails, the `edges` these take, and
    where other trails stop: at `observed` variables, or at `closed` common effects."""

    source: str
    reached: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    observed: tuple[str, ...]
    closed: tuple[str, ...]


class GraphStatements(GraphicalModel):
    """A model with a graph, directed or not."""

    @property
    @abstractmethod
    def graph(self) -> graphs.Digraph | graphs.UndirectedGraph:
        """The graph on positions in `variables`, for the functions of `gramgraph.graphs`."""

    def active_trails(
        self, a: str, b: str, given: str | Iterable[str] = (), *, limit: int = 1000
    ) -> tuple[tuple[str, ...], ...]:
        """All active trails from `a` to `b` when `given` is observed, shorter ones first, at most `limit`.

        A trail is a path without repetition in which every common effect is observed or has an observed descendant,
        and nothing else is observed; in an undirected model, a path around `given`.

        >>> import gramgraph as gg
        >>> gg.datasets.asia().active_trails("tub", "smoke", given="dysp")
        (('tub', 'either', 'lung', 'smoke'), ('tub', 'either', 'dysp', 'bronc', 'smoke'))
        """
        from gramgraph.graphs import active_trails

        at = self.positions_of(given)
        found = active_trails(self.graph, self.index(a), self.index(b), at, limit=limit)
        return tuple(map(self.names_of, found))

    def separation(self, source: str, given: str | Iterable[str] = ()) -> Separation:
        """What `source` still tells about the other variables when `given` is observed, and where its trails stop.

        >>> import gramgraph as gg
        >>> found = gg.datasets.asia().separation("tub", given="either")
        >>> found.reached, found.observed
        (('asia', 'smoke', 'lung', 'bronc', 'dysp'), ('either',))
        """
        from gramgraph.graphs import openness

        found = openness(self.graph, self.index(source), self.positions_of(given))
        names = self.variables
        return Separation(
            source,
            self.names_of(found.reached),
            tuple((names[a], names[b]) for a, b in found.edges),
            self.names_of(found.observed),
            self.names_of(found.closed),
        )

    def independencies(self, *, max_given: int | None = None) -> Independencies:
        """Every "x and y are independent given Z" that the graph states, by pairs and then by size of Z.

        The number of sets Z doubles with every variable: bound their size by `max_given` where there are many.

        >>> import gramgraph as gg
        >>> print(gg.BayesianNetwork("cloudy -> rain -> wet; cloudy -> sprinkler -> wet").independencies())
        cloudy ⊥ wet | rain, sprinkler
        rain ⊥ sprinkler | cloudy
        """
        names = self.variables
        return Independencies(
            graphs.Independence(names[s.x], names[s.y], self.names_of(s.given))
            for s in graphs.independencies(self.graph, max_given=max_given)
        )

    def is_i_map(self, joint: Any, *, tol: float = 1e-8) -> bool:
        """Whether every independence that the graph states holds in `joint`.

        `joint` is a model over the same variables (its distribution, or its graph where it has no numbers), a table
        with one axis per variable in the order of `variables`, a `TableFactor`, or a `Gaussian`.

        >>> import gramgraph as gg
        >>> chain = gg.BayesianNetwork("a -> b -> c").random_tables(0)
        >>> full = gg.BayesianNetwork("a -> b -> c; a -> c")
        >>> full.is_i_map(chain), full.is_d_map(chain), chain.is_perfect_map(chain)
        (True, False, True)
        """
        return graphs.is_i_map(self.graph, _matched(self, joint), tol=tol)

    def is_d_map(self, joint: Any, *, tol: float = 1e-8) -> bool:
        """Whether the graph states every independence that holds in `joint` (as in `is_i_map`)."""
        return graphs.is_d_map(self.graph, _matched(self, joint), tol=tol)

    def is_perfect_map(self, joint: Any, *, tol: float = 1e-8) -> bool:
        """Whether graph and `joint` (as in `is_i_map`) agree on every independence."""
        return graphs.is_perfect_map(self.graph, _matched(self, joint), tol=tol)

    def induced_width(self, order: Sequence[str]) -> int:
        """The most neighbors that a variable has when its turn comes, if variables are eliminated in this order.

        The largest table on the way has one variable more. A network is moralized first.

        >>> import gramgraph as gg
        >>> star = gg.BayesianNetwork("hub -> a; hub -> b; hub -> c")
        >>> star.induced_width(["a", "b", "c", "hub"]), star.induced_width(["hub", "a", "b", "c"])
        (1, 3)
        """
        graph = graphs.moralize(self.graph) if isinstance(self.graph, graphs.Digraph) else self.graph
        return graphs.induced_width(graph, self.positions_of(order))


def _matched(model: GraphStatements, joint: Any) -> Any:
    """What a graph is compared with, its axes or nodes in the order of the model's variables."""
    if hasattr(joint, "scope") and hasattr(joint, "values"):
        _check_names(model, [var.name for var in joint.scope])
        return joint.values.transpose([[v.name for v in joint.scope].index(name) for name in model.variables])
    if not isinstance(joint, GraphicalModel):
        return joint
    _check_names(model, joint.variables)
    if not joint.has_tables:  # type: ignore[attr-defined]
        return _reordered(model, joint)
    if joint.is_discrete:
        entries = float(np.prod([float(var.size) for var in joint.vars]))
        if entries > LARGEST_TABLE:
            raise ModelError(
                f"the joint table of {len(joint)} variables has {entries:.3g} entries, too many for this comparison. "
                "Use fewer variables, or a network without tables for what its graph states"
            )
        scope = model.variables
        return joint.query(scope)[scope].probabilities.reshape([joint.var(name).size for name in scope])
    if any(var.is_discrete or var.dimension != 1 for var in joint.vars):
        raise ModelError("maps are checked for discrete models, and for Gaussian ones of scalar variables")
    return joint.to_gaussian().marginal([joint.index(name) for name in model.variables])


def _reordered(model: GraphStatements, other: Any) -> Any:
    """The graph of the other model on the positions of this one."""
    edges = [model.positions_of(edge) for edge in other.edges]
    return type(other.graph).from_edges(len(model), edges)


def _check_names(model: GraphicalModel, names: Iterable[str]) -> None:
    for name in names:
        model.index(name)
    missing = [name for name in model.variables if name not in set(names)]
    if missing:
        raise VariableError(f"both sides need the same variables; one has no {listing(missing)}")
