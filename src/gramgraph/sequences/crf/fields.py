"""Graphs with features: what a conditional random field on any graph is made of, and inference on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import discrete

_SWEEPS, _TOL = 100, 1e-7
_RANGE = 600.0  # products of all messages to a node stay between exp(±_RANGE)
_FEW_NEIGHBORS = 9  # with more, that would cut off what is not negligible
_SEQUENTIAL = 1  # backward and forward through the graph: exact on trees


@dataclass(frozen=True)
class Cliques:
    """Groups of nodes of one kind: members (m, r) and their features (m, f)."""

    members: IntArray
    features: FloatArray


@dataclass(frozen=True)
class Field:
    """A graph whose nodes have features (n, d), and kinds of cliques (pairs or larger groups) with theirs.

    >>> import numpy as np
    >>> field = read_field((np.ones((3, 1)), [(0, 1), (1, 2)]), 0)
    >>> field.cliques[0].features.tolist()
    [[1.0], [1.0]]
    """

    nodes: FloatArray
    cliques: tuple[Cliques, ...]


def read_field(x: Any, s: int) -> Field:
    """A `Field`, or (node features, edges), or (node features, edges, edge features)."""
    if isinstance(x, Field):
        parts = [(c.members, c.features) for c in x.cliques]
        nodes = x.nodes
    elif isinstance(x, (tuple, list)) and len(x) in (2, 3):
        nodes = x[0]
        edges = np.asarray(x[1], dtype=np.int64).reshape(-1, 2)
        parts = [(edges, np.ones((len(edges), 1)) if len(x) == 2 else x[2])]
    else:
        raise ModelError(
            f"X[{s}] must be a Field, (node features, edges) or (node features, edges, edge features); it is a "
            f"{type(x).__name__}."
        )
    nodes = _matrix(nodes, f"node features of X[{s}]")
    made = []
    for kind, (members, features) in enumerate(parts):
        members = np.asarray(members, dtype=np.int64)
        if members.ndim != 2 or members.shape[1] < 2:
            raise ModelError(f"cliques {kind} of X[{s}] must have shape (m, r) with r ≥ 2; it has {members.shape}.")
        if members.size and not (members.min() >= 0 and members.max() < len(nodes)):
            raise ModelError(f"cliques {kind} of X[{s}] name nodes outside 0 … {len(nodes) - 1}.")
        if any((members[:, a] == members[:, b]).any() for a in range(members.shape[1]) for b in range(a)):
            raise ModelError(f"cliques {kind} of X[{s}] name a node twice.")
        features = _matrix(features, f"features of cliques {kind} of X[{s}]")
        if len(features) != len(members):
            raise ModelError(f"cliques {kind} of X[{s}]: {len(members)} groups, but {len(features)} rows of features.")
        made.append(Cliques(members, features))
    return Field(nodes, tuple(made))


def _matrix(values: Any, what: str) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 2 or not np.isfinite(found).all():
        raise ModelError(f"{what} must be a matrix of finite numbers; its shape is {found.shape}.")
    return found


def joined_fields(fields: Sequence[Field]) -> tuple[Field, IntArray]:
    """(all fields side by side as one, where the nodes of each begin): they share no clique, so nothing changes."""
    shapes = [(f.nodes.shape[1], *((c.members.shape[1], c.features.shape[1]) for c in f.cliques)) for f in fields]
    odd = next((s for s, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is not None:
        raise ModelError(
            f"X[{odd}] has other features than X[0]: (node features, (clique size, clique features), …) = "
            f"{shapes[odd]}, not {shapes[0]}."
        )
    starts = np.concatenate(([0], np.cumsum([len(f.nodes) for f in fields]))).astype(np.int64)
    cliques = tuple(
        Cliques(
            np.concatenate([f.cliques[k].members + start for f, start in zip(fields, starts[:-1], strict=True)]),
            np.concatenate([f.cliques[k].features for f in fields]),
        )
        for k in range(len(fields[0].cliques))
    )
    return Field(np.concatenate([f.nodes for f in fields]), cliques), starts


def induced(field: Field, nodes: IntArray) -> Field:
    """The part of a field on some of its nodes, with the cliques that lie within."""
    new = np.full(len(field.nodes), -1)
    new[nodes] = np.arange(len(nodes))
    cliques = []
    for c in field.cliques:
        members = new[c.members]
        inside = (members >= 0).all(axis=1)
        cliques.append(Cliques(members[inside], c.features[inside]))
    return Field(field.nodes[nodes], tuple(cliques))


def network_of(field: Field, local: FloatArray, tables: Sequence[FloatArray], states: Sequence[str]) -> MarkovNetwork:
    """A Markov network over n0, n1, … with log tables `local` (n, K) of nodes and (m, K, …, K) of cliques."""
    variables = [discrete(f"n{i}", states) for i in range(len(field.nodes))]
    factors = [TableFactor.from_log((v,), row) for v, row in zip(variables, local, strict=True)]
    for cliques, logs in zip(field.cliques, tables, strict=True):
        for members, table in zip(cliques.members.tolist(), logs, strict=True):
            factors.append(TableFactor.from_log(tuple(variables[i] for i in members), table))
    return MarkovNetwork.from_parts(variables, factors)


@dataclass(frozen=True)
class Beliefs:
    """What propagation found: log Z of Bethe, beliefs of nodes (n, K) and of each kind of clique (m, K, …, K).

    `settled` says whether messages came to rest; `messages` may begin a run on tables that differ little.
    """

    log_z: float
    nodes: FloatArray
    cliques: list[FloatArray]
    settled: bool
    messages: FloatArray | None = None


def loopy_beliefs(
    field: Field,
    local: FloatArray,
    tables: Sequence[FloatArray],
    *,
    start: FloatArray | None = None,
    sweeps: int = _SWEEPS,
    tol: float = _TOL,
) -> Beliefs:
    """Beliefs by loopy propagation, exact on trees; fields of pairs alone have a loop of their own."""
    if all(c.members.shape[1] == 2 for c in field.cliques) and _most_neighbors(field) <= _FEW_NEIGHBORS:
        return _beliefs_of_pairs(field, local, tables, start, sweeps, tol)
    return _beliefs_of_groups(field, local, tables, sweeps, tol)


def _most_neighbors(field: Field) -> int:
    at = np.concatenate([np.empty(0, dtype=np.int64), *(c.members.ravel() for c in field.cliques)])
    return int(np.bincount(at).max(initial=0))


@dataclass(frozen=True)
class PairTables:
    """What loops over pairs take: edges (m, 2), tables (m, K, K), weights of nodes (n, K) against the last state."""

    edges: IntArray
    psi: FloatArray
    unary: FloatArray
    log_scale: float

    @classmethod
    def of(cls, field: Field, local: FloatArray, tables: Sequence[FloatArray]) -> PairTables:
        """Log tables scaled, and cut off where products of messages would leave the range of doubles."""
        K, least = local.shape[1], -_RANGE / (1 + max(_FEW_NEIGHBORS, _most_neighbors(field)))
        edges = np.concatenate([np.empty((0, 2), dtype=np.int64), *(c.members for c in field.cliques)])
        logs = np.concatenate([np.empty((0, K, K)), *tables])
        peak, top = local[:, -1], logs.max(axis=(1, 2), initial=-np.inf)
        unary = np.exp(np.clip(local - peak[:, None], least, -least))
        psi = np.exp(np.maximum(logs - top[:, None, None], least))
        return cls(edges, psi, unary, float(peak.sum()) + float(top.sum()))


def _beliefs_of_pairs(
    field: Field, local: FloatArray, tables: Sequence[FloatArray], start: FloatArray | None, sweeps: int, tol: float
) -> Beliefs:
    from gramgraph._numerics.messages.pairs import conclude_pairs, propagate_pairs

    given = PairTables.of(field, local, tables)
    messages = np.ones((len(given.edges), 2, local.shape[1])) if start is None else start.copy()
    nodes, pairs = np.empty(local.shape), np.empty(given.psi.shape)
    _, settled = propagate_pairs(given.edges, given.psi, given.unary, messages, nodes, -1.0, sweeps, tol)
    log_z = conclude_pairs(given.edges, given.psi, given.unary, messages, nodes, pairs) + given.log_scale
    ends = np.cumsum([len(c.members) for c in field.cliques])[:-1]
    return Beliefs(float(log_z), nodes, np.split(pairs, ends) if field.cliques else [], bool(settled), messages)


def _beliefs_of_groups(
    field: Field, local: FloatArray, tables: Sequence[FloatArray], sweeps: int, tol: float
) -> Beliefs:
    from gramgraph._numerics.messages import loopy, loopy_run

    n, K = local.shape
    shift = [logs.reshape(len(logs), -1).max(axis=1, initial=-np.inf) for logs in tables]
    flat = [
        np.exp(logs.reshape(len(logs), -1) - top[:, None]) for logs, top in zip(tables, shift, strict=True) if len(logs)
    ]
    sizes = np.full(n, K, dtype=np.int64)
    groups = [c.members for c in field.cliques]
    arity = np.array([m.shape[1] for m in groups for _ in range(len(m))], dtype=np.int64)
    idx = np.concatenate([np.empty(0, dtype=np.int64), *(m.ravel() for m in groups)])
    ptr = np.concatenate(([0], np.cumsum(arity))).astype(np.int64)
    value_ptr = np.concatenate(([0], np.cumsum(K**arity))).astype(np.int64)
    values = np.concatenate([part.ravel() for part in flat]) if flat else np.empty(0)
    peak = local.max(axis=1)
    unary = np.exp(local - peak[:, None]).ravel()
    unary_ptr = np.arange(0, n * K + 1, K, dtype=np.int64)
    var_ptr, var_edge = loopy.edges_of(idx, n)
    edge_factor, msg_ptr = loopy.factor_of_edges(ptr), loopy_run.message_places(idx, sizes)
    to_var = loopy_run.first_messages(idx, sizes, msg_ptr)
    to_factor, residuals, beliefs = to_var.copy(), np.zeros(sweeps), np.empty(n * K)
    graph = (ptr, idx, value_ptr, values, sizes, unary, unary_ptr)
    _, settled, _ = loopy_run.propagate(
        *graph, var_ptr, var_edge, edge_factor, msg_ptr, to_var, to_factor, _SEQUENTIAL, -1.0, 0.0, sweeps, tol, False,
        residuals,
    )  # fmt: skip
    log_z = loopy_run.conclude(
        *graph, np.ones(n, dtype=np.bool_), var_ptr, var_edge, msg_ptr, to_var, to_factor, False, 0.0, beliefs
    )
    log_z += float(peak.sum()) + sum(float(top.sum()) for top in shift)
    found, at = [], 0
    for cliques, logs, top in zip(field.cliques, tables, shift, strict=True):
        m, r = cliques.members.shape
        belief = np.exp(logs - top.reshape((m, *(1,) * r)))
        messages = to_factor[at : at + m * r * K].reshape(m, r, K)
        at += m * r * K
        for slot in range(r):
            belief *= messages[:, slot].reshape((m, *(K if s == slot else 1 for s in range(r))))
        found.append(belief / belief.sum(axis=tuple(range(1, r + 1)), keepdims=True))
    return Beliefs(float(log_z), beliefs.reshape(n, K), found, bool(settled))
