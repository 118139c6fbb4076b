"""Undirected models as log-linear ones: tables of logarithms that are linear in a few weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.compile.lower import Lowered
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.factors import TableFactor
from gramgraph.models import LogLinear
from gramgraph.models.undirected import FactorModel
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.data.counts import Counts

#: A table with more cells than this has too many effects to be learned by gradients.
MAX_CELLS = 4096


class Blankets(NamedTuple):
    """What surrounds each variable, as places in the tables: see `_numerics.sampling.draws.blankets`."""

    var_ptr: IntArray
    base: IntArray
    own: IntArray
    other_ptr: IntArray
    other_idx: IntArray
    other_stride: IntArray


@dataclass(frozen=True, eq=False)
class Design:
    """log ψ_c(x_c) = offset + Σ_k θ_k basis[cell, k]: all cells of all tables in one vector, scope after scope.

    An offset of -inf is a cell that cannot occur, whatever the weights. Every scope has a variable with two states.
    """

    variables: tuple[Var, ...]
    scopes: tuple[tuple[int, ...], ...]  # positions of the variables of each table
    offset: FloatArray  # (cells,)
    basis: Any  # (cells, weights), a scipy CSR matrix
    names: tuple[str, ...]  # of the weights
    order: IntArray  # (weights,) how many variables the weight's feature depends on

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return len(self.names)

    @cached_property
    def sizes(self) -> IntArray:
        """Numbers of states."""
        return np.array([var.size for var in self.variables], np.int64)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each table."""
        return tuple(tuple(self.variables[v].size for v in scope) for scope in self.scopes)

    @cached_property
    def value_ptr(self) -> IntArray:
        """Where each table begins among the cells."""
        return np.concatenate([[0], np.cumsum([prod(shape) for shape in self.shapes])]).astype(np.int64)

    @cached_property
    def transposed(self) -> Any:
        """The basis with a row for each weight."""
        return self.basis.T.tocsr()

    def log_values(self, weights: FloatArray) -> FloatArray:
        """Logarithms of all cells."""
        return np.asarray(self.offset + self.basis @ weights)

    def pull(self, cells: FloatArray) -> FloatArray:
        """Gradient for the weights from a gradient for the cells."""
        return np.asarray(self.transposed @ cells)

    def tables(self, cells: Array) -> list[Array]:
        """The vector of cells as one array per scope."""
        return [
            cells[a:b].reshape(shape)
            for a, b, shape in zip(self.value_ptr[:-1], self.value_ptr[1:], self.shapes, strict=True)
        ]

    def factors(self, weights: FloatArray) -> tuple[TableFactor, ...]:
        """The factors that these weights make."""
        logs = self.tables(self.log_values(weights))
        return tuple(
            TableFactor.from_log(tuple(self.variables[v] for v in scope), table)
            for scope, table in zip(self.scopes, logs, strict=True)
        )

    def shares(self, counts: Counts, equivalent_sample_size: float = 0.0) -> FloatArray:
        """Relative frequencies of all cells; with an equivalent sample, mixed with the uniform distribution."""
        parts = []
        for scope, shape in zip(self.scopes, self.shapes, strict=True):
            found = np.asarray(counts.table(scope), np.float64).reshape(-1)
            parts.append(found + equivalent_sample_size / prod(shape))
        joined = np.concatenate(parts) if parts else np.zeros(0)
        return np.asarray(joined / (counts.total + equivalent_sample_size))

    @cached_property
    def lowered(self) -> Lowered:
        """The structure in flat arrays, with ones as values."""
        kept = [[v for v in scope if self.sizes[v] > 1] for scope in self.scopes]
        ptr = np.concatenate([[0], np.cumsum([len(scope) for scope in kept])]).astype(np.int64)
        return Lowered(
            variables=self.variables,
            n_visible=len(self.variables),
            sizes=self.sizes,
            scope_ptr=ptr,
            scope_idx=np.array([v for scope in kept for v in scope], np.int64),
            value_ptr=self.value_ptr,
            values=np.ones(max(int(self.value_ptr[-1]), 1)),
            owner=np.full(len(self.scopes), -1, np.int64),
            log_scale=0.0,
            parents=None,
        )

    @cached_property
    def blankets(self) -> Blankets:
        """The tables around each variable."""
        from gramgraph._numerics.messages.loopy import edges_of, factor_of_edges
        from gramgraph._numerics.sampling.draws import blankets

        low = self.lowered
        var_ptr, var_edge = edges_of(low.scope_idx, len(self.variables))
        edge_factor = factor_of_edges(low.scope_ptr)
        found = blankets(low.scope_ptr, low.scope_idx, low.value_ptr, low.sizes, var_ptr, var_edge, edge_factor)
        return Blankets(var_ptr, *found)

    def blanket(self, v: int) -> tuple[int, ...]:
        """The variables that share a table with v, in order."""
        b = self.blankets
        places = slice(int(b.other_ptr[b.var_ptr[v]]), int(b.other_ptr[b.var_ptr[v + 1]]))
        return tuple(np.unique(b.other_idx[places]).tolist())


def contrasts(size: int) -> FloatArray:
    """Columns that sum to zero and are orthogonal, (size, size - 1), each of length √size: -1 and +1 for two states.

    >>> contrasts(2).tolist()
    [[-1.0], [1.0]]
    >>> (contrasts(3).T @ contrasts(3)).round(12).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    out = np.zeros((size, size - 1))
    for j in range(1, size):
        a = np.sqrt(size / (j * (j + 1)))
        out[:j, j - 1] = -a
        out[j, j - 1] = j * a
    return out


def scopes_of_network(net: FactorModel) -> list[tuple[int, ...]]:
    """Scopes of the factors, each set once in first-seen order, then edges and variables that no factor covers."""
    scopes: dict[frozenset[int], tuple[int, ...]] = {}
    for factor in net.stored_factors:
        scope = tuple(net.positions[var.name] for var in factor.scope)
        if scope:
            scopes.setdefault(frozenset(scope), scope)
    covered = {pair for scope in scopes.values() for pair in combinations(sorted(scope), 2)}
    for a, b in net.bare_links:
        if (min(a, b), max(a, b)) not in covered:
            scopes.setdefault(frozenset((a, b)), (a, b))
    used = {v for scope in scopes.values() for v in scope}
    return [*scopes.values(), *((v,) for v in range(len(net)) if v not in used)]


def design_of_network(net: FactorModel, variables: Sequence[Var]) -> Design:
    """Full tables over the scopes of a network: a weight for each effect of each set of variables inside a scope.

    An effect of a set is a product of one contrast per variable; a set that lies in several scopes belongs to the
    first. For two-state variables coded -1 and +1 the weights are the fields and couplings of an Ising model. Zeros
    of the network's tables stay zeros. `variables` may have other states than the network where these come from data.
    """
    sizes = [var.size for var in variables]
    scopes = [scope for scope in scopes_of_network(net) if any(sizes[v] > 1 for v in scope)]
    for scope in scopes:
        if prod(sizes[v] for v in scope) > MAX_CELLS:
            names = ", ".join(variables[v].name for v in scope)
            raise OptionError(
                f"the table over {names} has more than {MAX_CELLS:,} cells, too many to be learned by gradients: "
                "use smaller factors, or features (gg.models.LogLinear)"
            )
    seen: dict[tuple[int, ...], None] = {}
    columns: list[tuple[int, FloatArray]] = []  # (scope number, (cells, effects))
    names_out: list[str] = []
    order: list[int] = []
    for number, scope in enumerate(scopes):
        for members in _subsets(scope):
            key = tuple(sorted(members))
            if key in seen:
                continue
            seen[key] = None
            block = _effects(tuple(sizes[v] for v in scope), tuple(v in members for v in scope))
            if not block.shape[1]:
                continue
            columns.append((number, block))
            names_out += _effect_names(members, variables, sizes)
            order += [len(members)] * block.shape[1]
    shapes = [tuple(sizes[v] for v in scope) for scope in scopes]
    basis = _stack(columns, [prod(shape) for shape in shapes], len(order))
    return Design(
        tuple(variables), tuple(scopes), _zeros_of(net, scopes, shapes), basis, tuple(names_out), np.array(order, int)
    )


def _subsets(scope: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    for k in range(1, len(scope) + 1):
        yield from combinations(scope, k)


@lru_cache(maxsize=64)
def _effects(sizes: tuple[int, ...], inside: tuple[bool, ...]) -> FloatArray:
    """(cells of a table of these sizes, effects of the variables that are inside)."""
    out: FloatArray = np.ones((1, 1))
    for size, chosen in zip(sizes, inside, strict=True):
        out = np.asarray(np.kron(out, contrasts(size) if chosen else np.ones((size, 1))), np.float64)
    out.flags.writeable = False
    return out


def _effect_names(members: tuple[int, ...], variables: Sequence[Var], sizes: Sequence[int]) -> list[str]:
    label = "·".join(variables[v].name for v in members)
    if all(sizes[v] == 2 for v in members):
        return [label]
    places = product(*(range(1, sizes[v]) for v in members))
    return [f"{label}[{','.join(map(str, place))}]" for place in places]


def _stack(columns: list[tuple[int, FloatArray]], cells: list[int], n_weights: int) -> Any:
    """Blocks (scope, dense columns) as one sparse matrix."""
    from scipy.sparse import csr_matrix

    begin = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
    rows, cols, values, at = [], [], [], 0
    for number, block in columns:
        r, c = np.nonzero(block)
        rows.append(r + begin[number])
        cols.append(c + at)
        values.append(block[r, c])
        at += block.shape[1]
    if not rows:
        return csr_matrix((int(begin[-1]), n_weights))
    return csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(int(begin[-1]), n_weights)
    )


def _zeros_of(net: FactorModel, scopes: Sequence[tuple[int, ...]], shapes: Sequence[tuple[int, ...]]) -> FloatArray:
    """0, or -inf where a factor over these variables is zero."""
    tables = {frozenset(scope): np.zeros(shape) for scope, shape in zip(scopes, shapes, strict=True)}
    place = {frozenset(scope): scope for scope in scopes}
    for factor in net.stored_factors:
        at = [net.positions[var.name] for var in factor.scope]
        if frozenset(at) not in tables or factor.values.all():
            continue
        table = tables[frozenset(at)]
        aligned = factor.values.transpose([at.index(v) for v in place[frozenset(at)]])
        if aligned.shape == table.shape:
            table[aligned == 0] = -np.inf
    return np.concatenate([tables[frozenset(scope)].reshape(-1) for scope in scopes]) if scopes else np.zeros(0)


def design_of_features(model: LogLinear, tie: Any = None) -> Design:
    """One weight for each feature of a log-linear model; features that are tied share one.

    `tie` is None, "name" (features of the same name share a weight) or one label for each feature.
    """
    groups = groups_of(model, tie)
    first = {label: k for k, label in enumerate(dict.fromkeys(groups))}
    where: dict[frozenset[str], int] = {}
    scopes: list[tuple[int, ...]] = []
    entries: list[tuple[int, int, FloatArray]] = []
    sizes = [var.size for var in model.vars]
    for feature, label in zip(model.features, groups, strict=True):
        if feature.values.size < 2:  # a constant
            continue
        key = frozenset(var.name for var in feature.scope)
        number = where.setdefault(key, len(scopes))
        at = tuple(model.positions[var.name] for var in feature.scope)
        if number == len(scopes):
            scopes.append(at)
        aligned = feature.values.transpose([at.index(v) for v in scopes[number]])
        entries.append((number, first[label], aligned.reshape(-1)))
    used = {v for scope in scopes for v in scope}
    scopes += [(v,) for v in range(len(model)) if v not in used and sizes[v] > 1]
    basis = _place(entries, [prod(sizes[v] for v in scope) for scope in scopes], len(first))
    names = [""] * len(first)
    order = np.zeros(len(first), np.int64)
    for k, (feature, label) in enumerate(zip(model.features, groups, strict=True)):
        column = first[label]
        names[column] = names[column] or feature.name or f"{'·'.join(v.name for v in feature.scope)}#{k}"
        order[column] = max(order[column], len(feature.scope))
    return Design(
        model.vars, tuple(scopes), np.zeros(basis.shape[0]), basis, tuple(names), order
    )  # fmt: skip


def _place(entries: list[tuple[int, int, FloatArray]], cells: list[int], n_weights: int) -> Any:
    from scipy.sparse import coo_matrix

    begin = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
    rows: list[Array] = []
    cols: list[Array] = []
    values: list[Array] = []
    for number, column, table in entries:
        used = np.flatnonzero(table)
        rows.append(used + begin[number])
        cols.append(np.full(len(used), column))
        values.append(table[used])
    joined = [np.concatenate(part) if part else np.zeros(0) for part in (values, rows, cols)]
    return coo_matrix((joined[0], (joined[1].astype(int), joined[2].astype(int))),
                      shape=(int(begin[-1]), n_weights)).tocsr()  # fmt: skip


def groups_of(model: LogLinear, tie: Any) -> list[Hashable]:
    """The label of each feature; features with equal labels share a weight."""
    n = len(model.features)
    if tie is None:
        return list(range(n))
    if isinstance(tie, str):
        if tie != "name":
            raise OptionError(f'tie is None, "name" or one label for each feature, not {tie!r}')
        return [feature.name or k for k, feature in enumerate(model.features)]
    labels = list(tie)
    if len(labels) != n:
        raise ModelError(f"tie needs one label for each of {n} features, not {len(labels)}")
    return labels
