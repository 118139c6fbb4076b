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
from gramgraph.embeddings.network.node_problem import features_of, penalty_of, solve_node
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.models.notation import read_structure
from gramgraph.models.of_potentials import KernelMarkovNetwork
from gramgraph.questions.planning import plan
from gramgraph.typing import FloatArray, RandomState

_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
_RANKS = (2, 4, 6)
_TRIED = 6  # nodes whose left-out rows choose rank and penalty
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
    rank, penalty : number of eigenfunctions of every axis, and of the ridge on the potentials (times the number of
        rows); None chooses both by the pseudo-likelihood of a fifth of the rows.
    shared : one potential (and one field) for all edges, for variables of one kind on a lattice.
    cells : of each variable.
    width : of the kernels, in units of the middle width of each axis.
    random_state : seed of the fifth that is held out.

    Notes
    -----
    The objective of each node is convex; the two estimates of a potential are averaged. O(rows × cells × rank) a step.

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
    chosen = {"rank": rank, "penalty": penalty}
    if rank is None or penalty is None:
        chosen = _choose(ends, links, rows, rank, penalty, width, shared, rng)
    r, lam = int(chosen["rank"] or 4), float(chosen["penalty"] or 0.0)
    F, S = zip(*[features_of(end, r, width) for end in ends], strict=True)
    fields, A = _fit(ends, F, S, links, rows, lam, shared)
    return _network(axes, F, fields, links, A, len(rows), {"rank": r, "penalty": lam, **told})


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


def _rows_of(end: End, F: FloatArray, rows: Any) -> FloatArray:
    return between(F, end.placed.take(rows))


def _fit(
    ends: Sequence[End],
    F: Sequence[FloatArray],
    S: Sequence[FloatArray],
    links: Sequence[tuple[int, int]],
    rows: Any,
    lam: float,
    shared: bool,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Fields (r,) of all nodes and matrices (r, r) of all edges."""
    U = [_rows_of(end, f, rows) for end, f in zip(ends, F, strict=True)]
    near: list[list[tuple[int, int]]] = [[] for _ in ends]
    for e, (i, j) in enumerate(links):
        near[i].append((e, j))
        near[j].append((e, i))
    if shared:
        return _fit_shared(ends, F, U, S[0], near, links, lam)
    sums = [np.zeros((F[i].shape[1], F[j].shape[1])) for i, j in links]
    fields = []
    for i, end in enumerate(ends):
        if not near[i]:  # the kernel density by itself
            fields.append(np.zeros(F[i].shape[1]))
            continue
        X = np.hstack([np.ones((len(rows), 1)), *(U[j] for _, j in near[i])])
        B = solve_node([(X, U[i], F[i], end.axis.q)], penalty_of(lam, [S[j] for _, j in near[i]], S[i]))
        fields.append(B[0])
        start = 1
        for e, j in near[i]:
            block = B[start : start + F[j].shape[1]]  # (r_j, r_i)
            start += F[j].shape[1]
            sums[e] += 0.5 * (block.T if links[e][0] == i else block)
    return fields, sums


def _fit_shared(
    ends: Sequence[End],
    F: Sequence[FloatArray],
    U: Sequence[FloatArray],
    s: FloatArray,
    near: Sequence[Sequence[tuple[int, int]]],
    links: Sequence[tuple[int, int]],
    lam: float,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """One symmetric matrix for all edges: the features of a node are the sum over its neighbors."""
    parts = []
    for i, end in enumerate(ends):
        total = np.sum([U[j] for _, j in near[i]], axis=0) if near[i] else np.zeros_like(U[i])
        parts.append((np.hstack([np.ones((len(total), 1)), total]), U[i], F[i], end.axis.q))
    B = solve_node(parts, penalty_of(lam, [s], s))
    A = 0.5 * (B[1:] + B[1:].T)
    return [B[0]] * len(ends), [A] * len(links)


def _choose(
    ends: Sequence[End],
    links: Sequence[tuple[int, int]],
    rows: Any,
    rank: int | None,
    penalty: float | None,
    width: float,
    shared: bool,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Rank and penalty with the best pseudo-likelihood on a fifth of the rows, over some of the nodes."""
    mixed = rng.permutation(rows)
    held, used = mixed[: len(mixed) // 5], mixed[len(mixed) // 5 :]
    near: list[list[int]] = [[] for _ in ends]
    for i, j in links:
        near[i].append(j)
        near[j].append(i)
    nodes = [i for i in range(len(ends)) if near[i]]
    nodes = sorted(rng.choice(nodes, min(_TRIED, len(nodes)), replace=False).tolist()) if nodes else []
    best: tuple[float, int, float] = (-np.inf, rank or 4, 1e-3 if penalty is None else penalty)
    for r in _RANKS if rank is None else (rank,):
        F, S = zip(*[features_of(end, r, width) for end in ends], strict=True)
        for lam in _PENALTIES if penalty is None else (penalty,):
            score = 0.0
            learned = [_design(ends, F, i, near[i], used, shared) for i in nodes]
            judged = [_design(ends, F, i, near[i], held, shared) for i in nodes]
            one = solve_node(learned, penalty_of(lam, [S[0]], S[0])) if shared and learned else None
            for i, part, test in zip(nodes, learned, judged, strict=True):
                own = penalty_of(lam, [S[j] for j in near[i]], S[i])
                score += _score(test, solve_node([part], own) if one is None else one)
            if score > best[0]:
                best = (score, r, float(lam))
    return {"rank": best[1], "penalty": best[2]}


def _design(ends: Sequence[End], F: Sequence[FloatArray], i: int, near: Sequence[int], rows: Any, shared: bool) -> Any:
    others = [_rows_of(ends[j], F[j], rows) for j in near]
    X = [np.sum(others, axis=0)] if shared else others
    return np.hstack([np.ones((len(rows), 1)), *X]), _rows_of(ends[i], F[i], rows), F[i], ends[i].axis.q


def _score(part: Any, B: FloatArray) -> float:
    X, U, F, q = part
    theta = X @ B
    logs = theta @ F.T + np.log(np.maximum(q, 1e-300))
    top = logs.max(axis=1)
    return float((np.einsum("nr,nr->n", theta, U) - top - np.log(np.exp(logs - top[:, None]).sum(axis=1))).mean())
