"""Undirected networks and factor graphs with kernel potentials: numbers, angles, directions and categories on cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from gramgraph._asking import learners
from gramgraph._show import counted
from gramgraph.cells.axes import Axis, Placed, StateAxis
from gramgraph.conditionals.base import Kind
from gramgraph.conditionals.potential import KernelPotential, same_axis
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.factors import TableFactor
from gramgraph.models.factor_graph import FactorGraph
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.notation import read_structure
from gramgraph.models.on_cells import CellModel
from gramgraph.models.potentials import tabulate
from gramgraph.models.writing import as_var
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var


class PotentialModel(CellModel):
    """p(x) ∝ Π p̂(xᵢ) Π exp(potentials) Π tables, p̂ the kernel density of each variable by itself, on cells."""

    log_z: float | None = None  # log of the normalizer that was taken out; None where it is not known
    report: Mapping[str, Any] = {}
    potentials: tuple[KernelPotential, ...] = ()

    def _fill(
        self,
        given: Iterable[Any],
        axes: Iterable[Axis],
        *,
        rows: int = 0,
        log_z: float | None = None,
        report: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> None:
        pieces = list(given)
        known = {axis.name: axis for axis in axes}
        for piece in pieces:
            for axis in piece.axes if isinstance(piece, KernelPotential) else ():
                if not same_axis(known.setdefault(axis.name, axis), axis):
                    raise ModelError(f"potentials of {axis.name} were learned on different cells: learn them together")
        for piece in pieces:
            for var in piece.scope if isinstance(piece, TableFactor) else ():
                if not var.is_discrete:
                    raise ModelError(f"a table over {var!r}: tables are over categories, potentials over numbers")
                even = np.full(var.size, 1.0 / var.size)
                known.setdefault(var.name, StateAxis(var.name, var.states, even))
        self.cell_axes = tuple(known.values())
        self._set_variables(axis.var for axis in self.cell_axes)
        self.is_discrete = False  # beliefs are on cells, also where all variables are categories
        self.stored_factors = tuple(pieces)
        self.potentials = tuple(piece for piece in pieces if isinstance(piece, KernelPotential))
        self.tables = tuple(piece for piece in pieces if isinstance(piece, TableFactor))
        self.rows, self.log_z, self.report = rows, log_z, dict(report or {})
        self.name, self.metadata = name, {}

    def potential(self, *names: str) -> KernelPotential:
        """The potential of one or two variables."""
        for name in names:
            self.index(name)
        for f in self.potentials:
            if set(f.names) == set(names):
                return f
        raise VariableError(f"there is no kernel potential of {' and '.join(names)}")

    @property
    def kind(self) -> str:
        """Variables stand on cells; a `ModelError` before the network was fitted."""
        if not self.cell_axes:
            raise ModelError("the kernel potentials of this network are not fitted yet: call fit(frame) first")
        return "cells"

    @cached_property
    def _normalizer(self) -> float:
        return self.log_z or 0.0

    @cached_property
    def ratios(self) -> tuple[tuple[tuple[int, ...], Array], ...]:  # type: ignore[override]
        """Variables and tables on cells of all factors, beside the densities of the variables by themselves."""
        at = self.positions
        out: list[tuple[tuple[int, ...], Array]] = []
        for f in self.potentials:
            out.append((tuple(at[name] for name in f.names), np.exp(f.log_table)))
        for t in self.tables:
            scope = tuple(at[var.name] for var in t.scope)
            out.append((scope, np.asarray(t.values * np.exp(t.log_scale))))
        return tuple(out)

    def log_ratio(self, placed: Mapping[int, Placed]) -> FloatArray:
        """log of the product of all factors at rows that know everything."""
        total = np.full(len(next(iter(placed.values())).a), -self._normalizer)
        for f in self.potentials:
            total += f.log_at(*(placed[self.positions[name]] for name in f.names))
        for t in self.tables:
            at = tuple(placed[self.positions[var.name]].a for var in t.scope)
            with np.errstate(divide="ignore"):
                total += np.log(t.values[at]) + t.log_scale
        return total

    @cached_property
    def cells(self) -> MarkovNetwork:  # type: ignore[override]
        """The same model on its cells, a discrete `MarkovNetwork`; states of numbers are anchors as text."""
        variables = [axis.cell_var for axis in self.cell_axes]
        factors = [TableFactor((var,), np.asarray(axis.q)) for var, axis in zip(variables, self.cell_axes, strict=True)]
        factors[0] = TableFactor.from_log(factors[0].scope, np.log(factors[0].values) - self._normalizer)
        for f in self.potentials:
            scope = tuple(variables[self.positions[name]] for name in f.names)
            factors.append(TableFactor.from_log(scope, f.log_table))
        for t in self.tables:
            scope = tuple(variables[self.positions[var.name]] for var in t.scope)
            factors.append(TableFactor(scope, np.asarray(t.values), t.log_scale))
        return MarkovNetwork.from_parts(variables, factors, name=self.name)

    def given(self, evidence: Mapping[str, Any] | None = None) -> tuple[MarkovNetwork, dict[str, float]]:
        """(the discrete network of what is free on cells, how near each observation lies to the data).

        An observed value enters at its place between cells, and its variable leaves the graph with its edges.
        """
        from gramgraph.cells.columns import single

        seen: dict[str, Placed] = {}
        for name, value in (evidence or {}).items():
            placed = self.axis(name).place(single(value))
            if placed.known[0]:
                seen[name] = placed
        free = [axis for axis in self.cell_axes if axis.name not in seen]
        logs = {axis.name: np.log(np.maximum(axis.q, 1e-300)) for axis in free}
        variables = {axis.name: axis.cell_var for axis in free}
        factors = []
        for f in self.potentials:
            hidden = [name for name in f.names if name not in seen]
            if len(hidden) == len(f.names):
                factors.append(TableFactor.from_log(tuple(variables[name] for name in hidden), f.log_table))
            elif hidden:
                other = next(name for name in f.names if name in seen)
                logs[hidden[0]] = logs[hidden[0]] + f.along(other, seen[other])[0]
        for t in self.tables:
            at = tuple(int(seen[var.name].a[0]) if var.name in seen else slice(None) for var in t.scope)
            scope = tuple(variables[var.name] for var in t.scope if var.name not in seen)
            if scope:
                factors.append(TableFactor(scope, np.asarray(t.values[at]), t.log_scale))
        factors += [TableFactor.from_log((variables[name],), own) for name, own in logs.items()]
        return MarkovNetwork.from_parts(variables.values(), factors), {n: float(p.near[0]) for n, p in seen.items()}

    def faults(self) -> list[str]:
        """Everything that is wrong with the tables on cells."""
        return self.cells.faults() if self.cell_axes else []

    def _equal_factors(self, other: Any) -> bool:
        """The same cells, potentials and tables."""
        pairs = list(zip(self.stored_factors, other.stored_factors, strict=False))
        same = self.variables == other.variables and len(self.stored_factors) == len(other.stored_factors)
        axes = zip(self.cell_axes, other.cell_axes, strict=False)
        return same and all(same_axis(a, b) for a, b in axes) and all(_same(a, b) for a, b in pairs)

    def pseudo_log_likelihood(self, frame: Any) -> float:
        """Mean over rows of Σ log p(xᵢ | all others), in nats; rows have no gaps."""
        from gramgraph.data.frames import read_frame

        table = read_frame(frame).table
        placed = {axis.name: axis.place(table[axis.name]) for axis in self.cell_axes}
        total = 0.0
        for axis in self.cell_axes:
            at, ratio = placed[axis.name], np.zeros((len(table), axis.m))
            for f in self.potentials:
                if f.names == (axis.name,):
                    ratio = ratio + f.log_table
                elif axis.name in f.names:
                    other = f.names[1 - f.names.index(axis.name)]
                    ratio = ratio + f.along(other, placed[other])
            logs = ratio + np.log(np.maximum(axis.q, 1e-300))
            top = logs.max(axis=1, keepdims=True)
            norm = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
            rows = np.arange(len(table))
            own = ratio[rows, at.a] * (1.0 - at.f) + ratio[rows, at.b] * at.f
            total += float((own + axis.log_base(table[axis.name]) - norm).mean())
        return total


class KernelMarkovNetwork(PotentialModel, MarkovNetwork):
    """p(x) ∝ Π p̂(xᵢ) exp(bᵢ·u(xᵢ)) Π exp(u(xᵢ)ᵀ Aᵢⱼ u(xⱼ)), with p̂ the kernel density of each variable by itself.

    `learn_markov` makes it, or `gg.MarkovNetwork` from values of `KernelPotential`. Without edges it is the kernel
    density estimate. Evidence enters at its value; what is free stands on cells, and any engine of discrete networks
    answers: approximate ones where the junction tree does not fit.

    Parameters
    ----------
    factors : the kernel potentials and tables.
    edges : pairs of names.
    potentials : in place of factors, by scope.
    states : labels by name, or their number.
    axes : cells of the variables that have no states.
    rows : number of rows.
    log_z : logarithm of the normalization; None computes it.
    report : how it was learned.
    name : a title.
    check : whether faults are an error at once; `faults()` lists them later.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=1000)
    >>> data = {"x": x, "y": x + 0.5 * rng.normal(size=1000), "z": -x + 0.5 * rng.normal(size=1000)}
    >>> net = gg.learn_markov(data, "x - y - z - x", rank=4, penalty=0.001)
    >>> answer = net.query("x", {"y": 1.0, "z": -1.0})
    >>> bool(0.6 < answer["x"].mean() < 1.3), sorted(map(sorted, net.edges))
    (True, [['x', 'y'], ['x', 'z'], ['y', 'z']])
    """

    kinds: Mapping[Any, Kind] = {}

    def __init__(
        self,
        factors: Any = None,
        *,
        edges: Any = None,
        potentials: Any = None,
        states: Mapping[str, Any] | None = None,
        axes: Sequence[Axis] = (),
        rows: int = 0,
        log_z: float | None = None,
        report: Mapping[str, Any] | None = None,
        name: str = "",
        check: bool = True,
    ) -> None:
        written = read_structure(edges, directed=False)
        pieces = [*_pieces(factors), *_pieces(potentials)]
        self.kinds = {names: made for names, made in pieces if isinstance(made, Kind)}
        if self.kinds:
            self._wait(written, states or {}, pieces, name)
            return
        self._fill([_as_piece(*item) for item in pieces], axes, rows=rows, log_z=log_z, report=report, name=name)
        self.bare_links = tuple((self.positions[a], self.positions[b]) for a, b in written.links)
        if check:
            self.check_model()

    def _wait(self, written: Any, states: Mapping[str, Any], pieces: list[Any], name: str) -> None:
        """A graph whose potentials are to be learned."""
        given = {**written.states, **states}
        order = dict.fromkeys([*written.names, *(n for names, _ in pieces for n in names)])
        self._set_variables(as_var(n, given.get(n, ("real",))) for n in order)
        links = dict.fromkeys([*written.links, *(names for names, _ in pieces if len(names) == 2)])
        self.bare_links = tuple((self.positions[a], self.positions[b]) for a, b in links)
        self.is_discrete, self.stored_factors, self.cell_axes = False, (), ()
        self.name, self.metadata = name, {}

    @classmethod
    def from_parts(cls, variables: Iterable[Var], factors: Sequence[Any], **options: Any) -> Any:  # type: ignore[override]
        """A discrete network is a `MarkovNetwork`; potentials make one of this kind."""
        if any(isinstance(f, KernelPotential) for f in factors):
            return cls(factors, **options)
        return MarkovNetwork.from_parts(variables, factors, **options)

    def fit(self, data: Any, **options: Any) -> KernelMarkovNetwork:  # type: ignore[override]
        """The same graph learned from rows; options are those of `learn_markov`."""
        for kind in self.kinds.values():
            options = {**kind.options, **options}
        domains = {var.name: "category" if var.is_discrete else _domain_word(var) for var in self.vars}
        structure = {"links": self.edges, "names": self.variables}
        return learners().fit_potentials(data, structure, domains=domains, **options)  # type: ignore[no-any-return]

    def to_factor_graph(self) -> Any:
        """Variables and factors as the two kinds of nodes."""
        return KernelFactorGraph(self.stored_factors, axes=self.cell_axes, rows=self.rows, log_z=self.log_z)

    def to_markov_network(self) -> Self:
        """Itself."""
        return self

    def __repr__(self) -> str:
        if self.kinds:
            return f"KernelMarkovNetwork({counted(variable=len(self), edge=len(self.bare_links))}, not fitted yet)"
        return f"KernelMarkovNetwork({self._kinds()}; {counted(edge=len(self.edges), row=self.rows)})"


class KernelFactorGraph(PotentialModel, FactorGraph):
    """A factor graph with kernel potentials among its factors; asked as `KernelMarkovNetwork` is.

    Parameters
    ----------
    factors : the kernel potentials and tables.
    names : of the variables.
    axes : cells of the variables that have no states.
    rows : number of rows.
    log_z : logarithm of the normalization; None computes it.
    name : a title.
    check : whether faults are an error at once; `faults()` lists them later.
    states : labels by name, or their number.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> net = gg.learn_markov({"x": x, "y": x + 0.5 * rng.normal(size=500)}, "x - y", rank=2, penalty=0.01)
    >>> graph = gg.FactorGraph([net.potential("x", "y"), net.potential("y")], names=["pair", "own"])
    >>> graph.neighbors("y"), bool(graph.query("y", {"x": 1.0})["y"].mean() > 0.0)
    (('pair', 'own'), True)
    """

    def __init__(
        self,
        factors: Any = None,
        *,
        names: Sequence[str] | None = None,
        axes: Sequence[Axis] = (),
        rows: int = 0,
        log_z: float | None = None,
        name: str = "",
        check: bool = True,
        states: Any = None,
    ) -> None:
        pieces = [_as_piece(*item) for item in _pieces(factors)]
        self._fill(pieces, axes, rows=rows, log_z=log_z, name=name)
        self._set_factor_names(names)
        if check:
            self.check_model()

    def to_factor_graph(self) -> Self:
        """Itself."""
        return self

    def to_markov_network(self) -> Any:
        """The same product, with variables linked that share a factor."""
        return KernelMarkovNetwork(self.stored_factors, axes=self.cell_axes, rows=self.rows, log_z=self.log_z)


def _pieces(given: Any) -> list[tuple[tuple[str, ...], Any]]:
    """(names, potential, table, numbers or kind) of all factors."""
    if given is None:
        return []
    out: list[tuple[tuple[str, ...], Any]] = []
    for item in given.items() if isinstance(given, Mapping) else given:
        if isinstance(item, KernelPotential):
            out.append((item.names, item))
        elif isinstance(item, TableFactor):
            out.append((tuple(var.name for var in item.scope), item))
        elif isinstance(item, (tuple, list)) and len(item) == 2:
            names = (item[0],) if isinstance(item[0], str) else tuple(map(str, item[0]))
            out.append((names, item[1]))
        else:
            raise ModelError(f"factors are KernelPotentials, TableFactors or pairs (names, factor); got {item!r:.80}")
    return out


def _as_piece(names: tuple[str, ...], content: Any) -> Any:
    """A potential or a table over these names."""
    if isinstance(content, KernelPotential):
        if content.names != names:
            raise ModelError(f"the potential of {content.names} was given under the names {names}")
        return content
    if isinstance(content, TableFactor):
        return content
    from gramgraph.variables import binary, discrete

    scope = tuple(
        discrete(n, size) if size != 2 else binary(n) for n, size in zip(names, np.shape(content), strict=False)
    )
    return TableFactor(scope, tabulate(content, scope, f"the factor over ({', '.join(names)})"))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, KernelPotential) or isinstance(b, KernelPotential):
        return isinstance(a, KernelPotential) and isinstance(b, KernelPotential) and a.equals(b)
    return bool(a.scope == b.scope and a.log_scale == b.log_scale and np.array_equal(a.values, b.values))


def _domain_word(var: Var) -> str:
    word = repr(var.domain)
    return "vector" if word.startswith("real^") else word.partition("^")[0]
