"""Undirected networks with loops: pairwise kernel potentials, learned by pseudo-likelihood.

Products of density ratios count what goes round a loop twice; potentials that are learned together do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph._validation import check_count, check_positive
from gramgraph.cells.axes import Axis
from gramgraph.conditionals.potential import KernelPotential, between
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.learn import _axis, _checked, _kinds, columns_of
from gramgraph.embeddings.network.neighborhoods import find_neighbors
from gramgraph.embeddings.network.node_problem import Part, features_of, penalty_of, solve_node
from gramgraph.embeddings.network.shrinkage import Penalties, learn_penalties
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.models.notation import read_structure
from gramgraph.models.of_potentials import KernelMarkovNetwork
from gramgraph.questions.planning import plan
from gramgraph.typing import FloatArray, RandomState

_RANK = 6
_NORMALIZED = 64e6  # bytes of a junction tree that tells the normalizer


def learn_markov(
    frame: Any,
    structure: Any = None,
    *,
    domains: Mapping[str, str] | None = None,
    rank: int | None = None,
    penalty: float | None = None,
    shared: bool = False,
    cells: int = 64,
    width: float = 1.0,
    random_state: RandomState = 0,
) -> KernelMarkovNetwork:
    """Learn an undirected network of any graph, loops included, by pseudo-likelihood with kernel features.

    p(x) ∝ Π p̂(xᵢ) exp(bᵢ·u(xᵢ)) Π exp(u(xᵢ)ᵀ Aᵢⱼ u(xⱼ)): p̂ is the kernel density of a variable by itself, u are the
    leading eigenfunctions of its kernel.

    Parameters
    ----------
    frame : a data frame or a dict of columns of numbers, angles or categories; rows with gaps are left out.
    structure : "a - b - c - a", or pairs of names; None finds the neighbors of every variable by a group lasso on the
        matrices Aᵢⱼ, its penalty by left-out rows, and keeps the edges that both ends choose.
    domains : as in `learn_tree`.
    rank : number of eigenfunctions of every axis; None takes six.
    penalty : of the ridge on the potentials (times the number of rows), over the eigenvalues of both ends; None learns
        one penalty for every pair of orders from all edges together, by their marginal likelihood.
    shared : one potential (and one field) for all edges, for variables of one kind on a lattice.
    cells : of each variable.
    width : of the kernels, in units of the middle width of each axis.
    random_state : seed of the rows that judge neighbors.

    Notes
    -----
    The objective of each node is convex; the two estimates of a potential are averaged. A column of one value has no
    neighbors, and its potentials are 1 where `structure` names some. O(rows × cells × rank) a step.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> net = learn_markov({"x": x, "y": x + 0.5 * rng.normal(size=300)}, "x - y", rank=2, penalty=0.01)
    >>> bool(net.query("y", {"x": 1.0})["y"].mean() > 0.3)
    True
    """
    columns = _checked(columns_of(frame))
    graph = None if structure is None else read_structure(structure, directed=False)
    names = tuple(columns) if graph is None else tuple(graph.names)
    links = None if graph is None else list(graph.links)
    return fit_potentials(
        frame, {"names": names, "links": links}, domains=domains, rank=rank, penalty=penalty, shared=shared,
        cells=cells, width=width, random_state=random_state,
    )  # fmt: skip


def fit_potentials(
    frame: Any,
    structure: Mapping[str, Any],  # names, and links between them or None
    *,
    domains: Mapping[str, str] | None = None,
    rank: int | None = None,
    penalty: float | None = None,
    shared: bool = False,
    cells: int = 64,
    width: float = 1.0,
    random_state: RandomState = 0,
) -> KernelMarkovNetwork:
    """See `learn_markov`."""
    columns = _checked(columns_of(frame))
    for name in structure["names"]:
        if name not in columns:
            raise VariableError.unknown(name, tuple(columns))
    columns = {name: columns[name] for name in columns if name in structure["names"]}
    kinds = _kinds(columns, {n: d for n, d in (domains or {}).items() if n in columns or n not in structure["names"]})
    check_count("cells", cells, least=4, most=512)
    if rank is not None:
        check_count("rank", rank)
    if penalty is not None:
        check_positive("penalty", penalty, zero=True)
    axes = [_axis(name, columns[name], kinds[name], cells, "kernel", None) for name in columns]
    axes = [a.with_density(columns[a.name]) if kinds[a.name] in ("vector", "sphere") else a for a in axes]  # type: ignore[attr-defined]
    ends = [End(axis, columns[axis.name]) for axis in axes]
    rows = np.flatnonzero(np.all([end.placed.known for end in ends], axis=0))
    if len(rows) < 20:
        raise ModelError(f"a network with loops is learned from at least 20 rows without gaps; there are {len(rows)}.")
    if shared and len({axis.domain for axis in axes}) > 1:
        raise OptionError("shared=True needs variables of one domain.")
    if shared:
        ends = _one_axis(axes, columns)
        axes = [end.axis for end in ends]
    rng = np.random.default_rng(random_state)
    at = {axis.name: i for i, axis in enumerate(axes)}
    told: dict[str, Any] = {}
    if structure["links"] is None:
        links, told["lasso"] = find_neighbors(ends, rows, rank or 4, width, rng)
    else:
        links = [(at[a], at[b]) for a, b in structure["links"]]
    F, S = zip(*[features_of(end, rank or _RANK, width) for end in ends], strict=True)
    designs = _designs(ends, F, links, rows, shared)
    sizes = [f.shape[1] for f in F]
    if penalty is None:
        told_by = [design for size, design in zip(sizes, designs, strict=False) if size and design[1]]
        penalties = learn_penalties(told_by, Penalties.first(S))
        told["penalty"] = penalties.pairs.tolist()
        ridges = [penalties.of(size, others) for size, (_, others) in zip(sizes, designs, strict=False)]
    else:
        told["penalty"] = float(penalty)
        near = _neighbors(len(ends), links)
        ridges = [penalty_of(penalty, [S[0]] if shared else [S[j] for _, j in near[i]], S[i]) for i in range(len(ends))]
    fields, A = (_fit_shared if shared else _fit)(designs, sizes, links, ridges)
    told["rank"] = rank or _RANK
    return _network(axes, F, fields, links, A, len(rows), told)


def _network(
    axes: Sequence[Axis],
    F: Sequence[FloatArray],
    fields: Sequence[FloatArray],
    links: Sequence[tuple[int, int]],
    A: Sequence[FloatArray],
    rows: int,
    report: Mapping[str, Any],
) -> KernelMarkovNetwork:
    """The model, normalized where a small junction tree tells by what."""
    pieces = [KernelPotential((axes[i],), (F[i],), b) for i, b in enumerate(fields) if b.any()]
    for (i, j), M in zip(links, A, strict=True):
        pieces.append(KernelPotential((axes[i], axes[j]), (F[i], F[j]), M))
    made = KernelMarkovNetwork(pieces, axes=axes, rows=rows, report=report)
    if not links:
        return KernelMarkovNetwork(pieces, axes=axes, rows=rows, log_z=0.0, report=report)
    if (plan(made.cells).bytes or np.inf) > _NORMALIZED:
        return made
    log_z = float(made.cells.log_evidence())
    return KernelMarkovNetwork(pieces, axes=axes, rows=rows, log_z=log_z, report=report)


def _one_axis(axes: Sequence[Axis], columns: Mapping[str, Any]) -> list[End]:
    """All variables on the axis of the pooled sample."""
    pooled = np.concatenate([np.asarray(columns[axis.name]) for axis in axes])
    first = axes[0]
    common = _axis(first.name, pooled, first.domain, first.m, "kernel", None)
    return [End(common.renamed(axis.name), columns[axis.name]) for axis in axes]


def _designs(
    ends: Sequence[End], F: Sequence[FloatArray], links: Sequence[tuple[int, int]], rows: Any, shared: bool
) -> list[tuple[list[Part], list[int]]]:
    """The problem of every node, and the numbers of orders of its neighbors; with `shared`, one problem of all nodes,
    in which the features of a node are the sum over its neighbors."""
    U = [between(f, end.placed.take(rows)) for end, f in zip(ends, F, strict=True)]
    out: list[tuple[list[Part], list[int]]] = []
    for i, near in enumerate(_neighbors(len(ends), links)):
        others = [U[j] for _, j in near]
        if shared:
            others = [np.sum(others, axis=0) if near else np.zeros_like(U[i])]
        X = np.hstack([np.ones((len(rows), 1)), *others])
        out.append(([(X, U[i], F[i], ends[i].axis.q)], [V.shape[1] for V in others]))
    return [([part for parts, _ in out for part in parts], out[0][1])] if shared else out


def _neighbors(n: int, links: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """(edge, node at its other end) of every node."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (i, j) in enumerate(links):
        near[i].append((e, j))
        near[j].append((e, i))
    return near


def _fit(
    designs: Sequence[tuple[list[Part], list[int]]],
    sizes: Sequence[int],
    links: Sequence[tuple[int, int]],
    ridges: Sequence[FloatArray],
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Fields (r,) of all nodes and matrices (r, r) of all edges."""
    sums = [np.zeros((sizes[i], sizes[j])) for i, j in links]
    fields = []
    for i, near in enumerate(_neighbors(len(sizes), links)):
        if not near:  # the kernel density by itself
            fields.append(np.zeros(sizes[i]))
            continue
        parts, others = designs[i]
        B = solve_node(parts, ridges[i])
        fields.append(B[0])
        for (e, _), block in zip(near, np.split(B[1:], np.cumsum(others)[:-1]), strict=True):  # (r_j, r_i)
            sums[e] += 0.5 * (block.T if links[e][0] == i else block)
    return fields, sums


def _fit_shared(
    designs: Sequence[tuple[list[Part], list[int]]],
    sizes: Sequence[int],
    links: Sequence[tuple[int, int]],
    ridges: Sequence[FloatArray],
) -> tuple[list[FloatArray], list[FloatArray]]:
    """One symmetric matrix for all edges, and one field."""
    B = solve_node(designs[0][0], ridges[0])
    A = 0.5 * (B[1:] + B[1:].T)
    return [B[0]] * len(sizes), [A] * len(links)
