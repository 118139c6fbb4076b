"""Undirected networks of numbers and angles with loops: pairwise kernel potentials, learned by pseudo-likelihood.

Products of density ratios count what goes round a loop twice; potentials that are learned together do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph._validation import check_count, check_positive, generator
from gramgraph.answers.line_belief import LineBelief
from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.learn import _axis, _checked, _kinds, columns_of
from gramgraph.exceptions import ModelError, OptionError, VariableError
from gramgraph.factors import TableFactor
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.notation import read_structure
from gramgraph.typing import FloatArray, RandomState

__all__ = ["KernelMarkovNetwork", "KernelPotential", "learn_markov"]

_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
_RANKS = (2, 4, 6)
_TRIED = 6  # nodes whose left-out rows choose rank and penalty


@dataclass(frozen=True, eq=False)
class KernelPotential:
    """exp(u(x)ᵀ A v(y)) of two variables, u and v the leading eigenfunctions of their kernels on cells.

    Parameters
    ----------
    x, y : the variables.
    axes : their cells.
    features : (cells, m) values of the leading eigenfunctions of each kernel.
    A : (m, m) weights.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> net = gg.learn_markov({"x": x, "y": x + 0.5 * rng.normal(size=500)}, "x - y", rank=2, penalty=0.01)
    >>> f = net.potentials[0]
    >>> bool(f.log_value([1.0], [1.0])[0] > f.log_value([1.0], [-1.0])[0])
    True
    """

    x: str
    y: str
    axes: tuple[Axis, Axis]
    features: tuple[FloatArray, FloatArray]  # (m, r) of both
    A: FloatArray  # (r, r)

    @property
    def log_table(self) -> FloatArray:
        """u(x)ᵀ A v(y) on the cells of both, (m, p)."""
        return np.asarray(self.features[0] @ self.A @ self.features[1].T)

    def log_value(self, x: Any, y: Any) -> FloatArray:
        """u(x)ᵀ A v(y) at pairs of values, linear between cells."""
        u, v = (_between(F, axis.place(z)) for F, axis, z in zip(self.features, self.axes, (x, y), strict=True))
        return np.asarray(np.einsum("nr,rs,ns->n", u, self.A, v))


def _between(F: FloatArray, at: Placed) -> FloatArray:
    return np.asarray(F[at.a] * (1.0 - at.f)[:, None] + F[at.b] * at.f[:, None])


@dataclass(frozen=True, eq=False)
class KernelMarkovNetwork:
    """p(x) ∝ Π p̂(xᵢ) exp(bᵢ·u(xᵢ)) Π exp(u(xᵢ)ᵀ Aᵢⱼ u(xⱼ)), with p̂ the kernel density of each variable by itself.

    `learn_markov` makes it. Without edges it is the kernel density estimate. Evidence enters at its value; what is free
    stands on cells, and any engine of discrete networks answers: loopy propagation by default where the junction tree
    does not fit.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=1000)
    >>> data = {"x": x, "y": x + 0.5 * rng.normal(size=1000), "z": -x + 0.5 * rng.normal(size=1000)}
    >>> net = gg.learn_markov(data, "x - y - z - x", rank=4, penalty=0.001)
    >>> answer = net.query("x", {"y": 1.0, "z": -1.0})
    >>> bool(0.6 < answer["x"].mean() < 1.3), answer.engine
    (True, 'enumeration')
    """

    axes: tuple[Axis, ...]
    fields: tuple[FloatArray, ...]  # log of the unary factor beside p̂, on cells
    potentials: tuple[KernelPotential, ...]
    rows: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(axis.name for axis in self.axes)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs that are joined by a potential."""
        return tuple((f.x, f.y) for f in self.potentials)

    def __repr__(self) -> str:
        return f"KernelMarkovNetwork({len(self.axes)} variables, {len(self.edges)} edges, {self.rows} rows)"

    @cached_property
    def _at(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.variables)}

    def _index(self, name: str) -> int:
        if name not in self._at:
            raise VariableError.unknown(name, self.variables)
        return self._at[name]

    def given(self, evidence: Mapping[str, Any] | None = None) -> tuple[MarkovNetwork, dict[str, float]]:
        """(the discrete network of what is free on cells, how near each observation lies to the data)."""
        seen: dict[str, Placed] = {}
        for name, value in (evidence or {}).items():
            axis = self.axes[self._index(name)]
            column: Any = np.empty(1, dtype=object)
            column[0] = value
            placed = axis.place(column)
            if placed.known[0]:
                seen[name] = placed
        logs = {
            axis.name: np.log(np.maximum(axis.q, 1e-300)) + own
            for axis, own in zip(self.axes, self.fields, strict=True)
        }
        free = [axis for axis in self.axes if axis.name not in seen]
        pairs = []
        for f in self.potentials:
            if f.x in seen and f.y in seen:
                continue
            if f.x in seen or f.y in seen:
                here, there = (0, 1) if f.x in seen else (1, 0)
                name, other = (f.x, f.y) if here == 0 else (f.y, f.x)
                u = _between(f.features[here], seen[name])[0]
                A = f.A if here == 0 else f.A.T
                logs[other] = logs[other] + f.features[there] @ (u @ A)
            else:
                pairs.append(f)
        variables = {axis.name: axis.cell_var for axis in free}
        factors = [TableFactor.from_log((variables[axis.name],), logs[axis.name]) for axis in free]
        factors += [TableFactor.from_log((variables[f.x], variables[f.y]), f.log_table) for f in pairs]
        net = MarkovNetwork.from_parts(variables.values(), factors)
        return net, {name: float(p.near[0]) for name, p in seen.items()}

    def query(self, targets: Any = None, evidence: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """p(targets | evidence): beliefs of numbers and angles have a density; options are those of `MarkovNetwork`.

        `log_evidence` of the answer is the logarithm of a sum over cells without its normalizer, of use for comparisons
        within one pattern of evidence only.
        """
        from gramgraph.answers import RealAnswer

        net, near = self.given(evidence)
        names = [targets] if isinstance(targets, str) else list(net.variables if targets is None else targets)
        for name in names:
            self._index(name)
            if name not in net.variables:
                raise VariableError(f"{name} was observed: ask for what is not")
        found = net.query(names, {}, **options)

        def belief(key: Any) -> Any:
            axis = self.axes[self._index(key)]
            if not isinstance(axis, LineAxis):
                return found[key]
            return LineBelief(axis, found[key].probabilities[None], batched=False)

        details = {**found.details, "support": near}
        return RealAnswer(
            names, belief, found.log_evidence, engine=found.engine, exact=False if near is None else found.exact,
            details=details,
        )  # fmt: skip

    def map_query(self, evidence: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """The most probable cells of all free variables together, as values; engines are those of `map_query`."""
        net, _ = self.given(evidence)
        best = net.map_query({}, **options)
        out = {}
        for name, label in best.assignment.items():
            axis = self.axes[self._index(name)]
            out[name] = axis.value(axis.cell_var.index(label))
        return out

    def sample(self, n: int, evidence: Mapping[str, Any] | None = None, *, random_state: RandomState = None) -> Any:
        """n draws of the free variables by Gibbs sampling on cells, each with a value inside its cell."""
        import pandas as pd

        from gramgraph.cells.drawing import inside

        rng = generator(random_state)
        net, _ = self.given(evidence)
        drawn = net.sample(n, random_state=int(rng.integers(2**31)))
        out = {}
        for name in net.variables:
            axis = self.axes[self._index(name)]
            cells = np.array([axis.cell_var.index(label) for label in drawn[name]], dtype=np.int64)
            out[name] = inside(axis, cells, rng)[0]
        return pd.DataFrame(out)

    def pseudo_log_likelihood(self, frame: Any) -> float:
        """Mean over rows of Σ log p(xᵢ | all others), in nats."""
        columns = columns_of(frame)
        total = 0.0
        placed = {axis.name: axis.place(columns[axis.name]) for axis in self.axes}
        for i, axis in enumerate(self.axes):
            inner = np.log(np.maximum(axis.q, 1e-300)) + self.fields[i]
            logs = np.repeat(inner[None], len(placed[axis.name].a), axis=0)
            for f in self.potentials:
                if axis.name in (f.x, f.y):
                    here = 0 if f.x == axis.name else 1
                    A = f.A if here == 0 else f.A.T
                    v = _between(f.features[1 - here], placed[f.y if here == 0 else f.x])
                    logs = logs + (v @ A.T) @ f.features[here].T
            top = logs.max(axis=1, keepdims=True)
            norm = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
            ratio = logs - np.log(np.maximum(axis.q, 1e-300))
            at = placed[axis.name]
            rows = np.arange(len(at.a))
            own = ratio[rows, at.a] * (1.0 - at.f) + ratio[rows, at.b] * at.f
            total += float((own + axis.log_base(columns[axis.name]) - norm).mean())
        return total


# ------------------------------------------------------------------------------------------------- learning


def learn_markov(
    frame: Any,
    structure: Any,
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

    Parameters
    ----------
    frame : a data frame or a dict of columns of numbers, angles or categories; rows with gaps are left out.
    structure : "a - b - c - a", pairs of names.
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
    """
    columns = _checked(columns_of(frame))
    graph = read_structure(structure, directed=False)
    for name in graph.names:
        if name not in columns:
            raise VariableError.unknown(name, tuple(columns))
    columns = {name: columns[name] for name in columns if name in graph.names}
    kinds = _kinds(columns, dict(domains or {}))
    check_count("cells", cells, least=4, most=512)
    if rank is not None:
        check_count("rank", rank)
    if penalty is not None:
        check_positive("penalty", penalty, zero=True)
    axes = [_axis(name, columns[name], kinds[name], cells, "kernel", None) for name in columns]
    ends = [End(axis, columns[axis.name]) for axis in axes]
    known = np.all([end.placed.known for end in ends], axis=0)
    rows = np.flatnonzero(known)
    if len(rows) < 20:
        raise ModelError(f"a network with loops is learned from at least 20 rows without gaps; there are {len(rows)}.")
    at = {axis.name: i for i, axis in enumerate(axes)}
    links = [(at[a], at[b]) for a, b in graph.links]
    if shared and len({axis.domain for axis in axes}) > 1:
        raise OptionError("shared=True needs variables of one domain.")
    if shared:
        ends = _one_axis(axes, columns)
        axes = [end.axis for end in ends]
    rng = np.random.default_rng(random_state)
    chosen = {"rank": rank, "penalty": penalty}
    if rank is None or penalty is None:
        chosen = _choose(ends, links, rows, rank, penalty, width, shared, rng)
    r, lam = int(chosen["rank"] or 4), float(chosen["penalty"] or 0.0)
    F, S = zip(*[_features(end, r, width) for end in ends], strict=True)
    fields, A = _fit(ends, F, S, links, rows, lam, shared)
    potentials = tuple(
        KernelPotential(axes[i].name, axes[j].name, (axes[i], axes[j]), (F[i], F[j]), M)
        for (i, j), M in zip(links, A, strict=True)
    )
    own = tuple(F[i] @ b for i, b in enumerate(fields))
    return KernelMarkovNetwork(tuple(axes), own, potentials, len(rows), {"rank": r, "penalty": lam})


def _one_axis(axes: Sequence[Axis], columns: Mapping[str, Any]) -> list[End]:
    """All variables on the axis of the pooled sample."""
    pooled = np.concatenate([np.asarray(columns[axis.name]) for axis in axes])
    first = axes[0]
    common = _axis(first.name, pooled, first.domain, first.m, "kernel", None)
    return [End(common.renamed(axis.name), columns[axis.name]) for axis in axes]


def _features(end: End, rank: int, width: float) -> tuple[FloatArray, FloatArray]:
    """The leading eigenfunctions of the kernel on cells, mean 0 and square 1 under q, (m, r); their eigenvalues as
    shares of the largest, (r,)."""
    values, V = end.spectrum(width * end.axis.widths[-1])
    order = np.argsort(-values, kind="stable")[:rank]
    return np.asarray(V[:, order]), np.asarray(values[order] / values[order[0]])


def _rows_of(end: End, F: FloatArray, rows: Any) -> FloatArray:
    return _between(F, end.placed.take(rows))


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
        B = _solve([(X, U[i], F[i], end.axis.q)], _penalty(lam, [S[j] for _, j in near[i]], S[i]))
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
    B = _solve(parts, _penalty(lam, [s], s))
    A = 0.5 * (B[1:] + B[1:].T)
    return [B[0]] * len(ends), [A] * len(links)


def _penalty(lam: float, others: Sequence[FloatArray], own: FloatArray) -> FloatArray:
    """λ over the product of eigenvalues, the norm of the potential in its space; fields only faintly, (features, r)."""
    rows = [np.full(len(own), 1e-6), *(lam / np.outer(s, own) for s in others)]
    return np.vstack(rows)


def _solve(parts: Sequence[tuple[FloatArray, FloatArray, FloatArray, FloatArray]], penalty: FloatArray) -> FloatArray:
    """B (features, r) that maximizes the mean of log p(uᵢ | features) − ½ Σ penalty · B².

    log p = θ·u − log Σ_c q_c exp(θ·u_c) with θ = Bᵀ x: convex, by L-BFGS.
    """
    from scipy.optimize import minimize

    p, r = parts[0][0].shape[1], parts[0][2].shape[1]
    n = sum(len(X) for X, *_ in parts)

    def cost(flat: FloatArray) -> tuple[float, FloatArray]:
        B = flat.reshape(p, r)
        value, slope = 0.0, np.zeros_like(B)
        for X, U, F, q in parts:
            theta = X @ B
            logs = theta @ F.T
            logs += np.log(np.maximum(q, 1e-300))
            top = logs.max(axis=1, keepdims=True)
            np.exp(logs - top, out=logs)
            total = logs.sum(axis=1, keepdims=True)
            value += float((np.log(total) + top).sum() - np.einsum("nr,nr->", theta, U))
            slope += X.T @ ((logs / total) @ F - U)
        return value / n + 0.5 * float((penalty * B**2).sum()), (slope / n + penalty * B).ravel()

    found = minimize(cost, np.zeros(p * r), jac=True, method="L-BFGS-B", options={"maxiter": 300, "gtol": 1e-7})
    return np.asarray(found.x.reshape(p, r))


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
        F, S = zip(*[_features(end, r, width) for end in ends], strict=True)
        for lam in _PENALTIES if penalty is None else (penalty,):
            score = 0.0
            learned = [_design(ends, F, i, near[i], used, shared) for i in nodes]
            judged = [_design(ends, F, i, near[i], held, shared) for i in nodes]
            one = _solve(learned, _penalty(lam, [S[0]], S[0])) if shared and learned else None
            for i, part, test in zip(nodes, learned, judged, strict=True):
                own = _penalty(lam, [S[j] for j in near[i]], S[i])
                score += _score(test, _solve([part], own) if one is None else one)
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
