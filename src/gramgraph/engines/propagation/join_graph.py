"""Propagation on a join graph: clusters as large as memory allows, exact where one tree of them holds the model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph._numerics.messages.clusters import LEAST, arc_map, cluster_marginals, cluster_sweep
from gramgraph.compile.budget import check_budget
from gramgraph.engines.anytime import Found, How, SweepEngine
from gramgraph.engines.approximate import ApproximatePlan, Cases, between, whole
from gramgraph.engines.propagation.join_clusters import (
    LADDER,
    Clusters,
    elimination_order,
    join_clusters,
    largest_clusters,
)
from gramgraph.engines.propagation.tree_reweighted import merged
from gramgraph.engines.slices import Sliced, show_observed, slice_case
from gramgraph.exceptions import BudgetError
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

OPTIONS = ("cells", "damping", "max_iter", "n_graphs", "tol")
MAX_ITER, TOL, GRAPHS = 40, 1e-7, 4
#: Sweeps without damping, after which messages that still move are damped (where damping was left to the engine).
UNDAMPED, LATE_DAMPING = 15, 0.5
#: Bytes for a cell of a cluster: its belief, and its places in the separators of about three arcs.
CELL_BYTES = 20


class Settings(NamedTuple):
    """Options; cells 0 and damping -1 leave the choice to the engine."""

    cells: int
    damping: float
    max_iter: int
    tol: float
    n_graphs: int


class JoinGraph(SweepEngine):
    """Messages between clusters of variables that share several of them: loops inside a cluster are summed exactly.

    Factors are gathered along an elimination order into clusters of at most `cells` states (by default as many as keep
    a graph within a million), so that each variable lives on a tree of clusters; with clusters as large as those of the
    junction tree the answer is exact after one sweep. Otherwise it is the mean over `n_graphs` graphs, whose orders
    chance varies (`random_state`): their errors differ. Cost of a sweep: O(cells of all clusters times arcs of each).

    Options: `cells`, `n_graphs`, `damping` from 0 to below 1 (None: half after 15 sweeps), `max_iter` sweeps, `tol` of
    the largest change of a separator. Where the messages do not settle, beliefs are the mean over the second half of
    the sweeps. `details` tell `converged` (all graphs), `sweeps`, `residual` (the most and the largest of them),
    `clusters`, `cells`, `n_graphs`, and for one case `residuals` of the last graph.

    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> answer = net.query("lung", {"xray": "yes"}, engine="join_graph")
    >>> abs(answer["lung"].prob("yes") - net.query("lung", {"xray": "yes"})["lung"].prob("yes")) < 1e-9
    True
    """

    name = "join_graph"
    options = OPTIONS

    def plan(self, model: GraphicalModel, question: Question) -> ApproximatePlan:
        """The clusters and their cells."""
        cases = Cases.of(model, question)
        made = _Graph.of(cases, merged(cases, slice_case(cases, 0)), 0).made
        largest = max(made.scopes, key=lambda scope: float(np.log(cases.low.sizes[list(scope)]).sum()), default=())
        names = tuple(cases.low.variables[v].name for v in largest)
        return ApproximatePlan(self.name, len(made.scopes), made.cells, names)

    def settings(self, model: GraphicalModel) -> tuple[Any, int]:
        """The options after a check, and how many sweeps there are at most."""
        made = _settings(self.given)
        return made, made.max_iter

    def run(self, model: GraphicalModel, question: Question, how: How) -> Found:
        """Beliefs and log p(evidence), or a bound of it, for every case."""
        return _run(model, question, how.settings, how.memory, int(how.rng.integers(1 << 31)), how.stop)


def _settings(options: dict[str, Any]) -> Settings:
    cells, damping = options.get("cells"), options.get("damping")
    return Settings(
        0 if cells is None else whole("cells", cells, 2),
        -1.0 if damping is None else between("damping", damping, 0.0, 1.0),
        whole("max_iter", options.get("max_iter", MAX_ITER)),
        between("tol", options.get("tol", TOL), 0.0, 1.0),
        whole("n_graphs", options.get("n_graphs", GRAPHS)),
    )


def _run(
    model: GraphicalModel, question: Question, settings: Settings, memory: float | None, seed: int, stop: Array
) -> Found:
    cases = Cases.of(model, question)
    n = question.n_cases
    beliefs, log_z = np.full((n, int(cases.unary_ptr[-1])), np.nan), np.full(n, -np.inf)
    details: dict[str, Any] = {"converged": np.ones(n, np.bool_), "residual": np.zeros(n)}
    details |= {key: np.zeros(n, np.int64) for key in ("sweeps", "clusters", "cells", "n_graphs")}
    residuals = np.zeros(0)
    for case in range(n):
        part = slice_case(cases, case)
        if part.constant == -np.inf:
            continue
        part = merged(cases, part)
        p, logs, begin = np.zeros(beliefs.shape[1]), [], LADDER[0]
        for number in range(settings.n_graphs):
            graph = _Graph.of(cases, part, settings.cells, memory, number=number, seed=seed, begin=begin, stop=stop)
            begin = graph.made.most  # orders differ little: larger clusters did not fit
            found, value, residuals, done = graph.propagate(settings, stop)
            if value == -np.inf:
                logs = [value]
                break
            p += found
            logs.append(value)
            details["converged"][case] &= done
            details["residual"][case] = max(details["residual"][case], residuals[-1])
            details["sweeps"][case] = max(details["sweeps"][case], len(residuals))
            details["clusters"][case], details["cells"][case] = len(graph.made.scopes), graph.made.cells
            if stop[0] or graph.made.is_tree:
                break
        details["n_graphs"][case] = len(logs)
        beliefs[case] = p / len(logs)
        log_z[case] = float(np.mean(logs)) + part.constant + cases.low.log_scale
        show_observed(cases, case, beliefs)
    if not question.batched:
        details = {key: value[0].item() for key, value in details.items()} | {"residuals": residuals}
    return cases, beliefs, log_z, details


@dataclass(frozen=True, eq=False)
class _Graph:
    """The join graph of one case in flat arrays."""

    cases: Cases
    part: Sliced
    made: Clusters
    ptr: IntArray  # cells of each cluster
    scope_ptr: IntArray
    scope_idx: IntArray
    source: IntArray
    target: IntArray
    map_ptr: IntArray
    source_map: Array
    target_ptr: IntArray
    target_map: Array
    sep_ptr: IntArray

    @classmethod
    def of(
        cls,
        cases: Cases,
        part: Sliced,
        most: int,
        memory: float | None = None,
        *,
        number: int = 0,
        seed: int = 0,
        begin: int = LADDER[0],
        stop: Array | None = None,
    ) -> _Graph:
        """Clusters for the factors of a case, and where their cells stand in the separators."""
        sizes, bounds, members = cases.low.sizes, part.scope_ptr.tolist(), part.scope_idx.tolist()
        scopes = [tuple(members[a:b]) for a, b in pairwise(bounds)]
        order = elimination_order(part.scope_ptr, part.scope_idx, sizes, part.active, number, seed)
        states = sizes.tolist()
        made = (
            join_clusters(scopes, states, order, most) if most else largest_clusters(scopes, states, order, begin, stop)
        )
        if made is None:
            raise BudgetError(
                "the factors make too many clusters for a join graph",
                remedies=("give a smaller number of `cells` for a cluster", 'engine="bp" takes single factors'),
            )
        check_budget(CELL_BYTES * made.cells, memory, (), made.cells)
        counts = [len(scope) for scope in made.scopes]
        scope_ptr = np.array([0, *np.cumsum(counts)], np.int64)
        scope_idx = np.array([v for scope in made.scopes for v in scope], np.int64)
        cells = np.array([np.prod(sizes[list(scope)]) for scope in made.scopes], np.int64)
        source = np.array([i for i, _, _ in made.arcs], np.int64)
        target = np.array([j for _, j, _ in made.arcs], np.int64)
        ends = [np.concatenate([[0], np.cumsum(cells[end])]).astype(np.int64) for end in (source, target)]
        maps = [np.empty(int(end[-1]), np.int32) for end in ends]
        for a, (i, j, named) in enumerate(made.arcs):
            for end, into, cluster in zip(ends, maps, (i, j), strict=True):
                arc_map(scope_ptr, scope_idx, sizes, cluster, np.array(named, np.int64), into[end[a] : end[a + 1]])
        between_ = np.array([0, *np.cumsum([np.prod(sizes[list(named)]) for _, _, named in made.arcs])], np.int64)
        ptr = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
        return cls(
            cases,
            part,
            made,
            ptr,
            scope_ptr=scope_ptr,
            scope_idx=scope_idx,
            source=source,
            target=target,
            map_ptr=ends[0],
            source_map=maps[0],
            target_ptr=ends[1],
            target_map=maps[1],
            sep_ptr=between_,
        )

    def _start(self) -> tuple[FloatArray, float]:
        """(products of the factors of each cluster, normalized; log of what was divided out)."""
        part, sizes, at = self.part, self.cases.low.sizes, self.cases.unary_ptr
        belief, log_z = np.ones(int(self.ptr[-1])), 0.0
        at_home: dict[int, list[int]] = {}
        for v in np.flatnonzero(part.active).tolist():
            if self.made.home[v] >= 0:
                at_home.setdefault(self.made.home[v], []).append(v)
            else:
                total = float(part.unary[at[v] : at[v + 1]].sum())
                log_z += np.log(total) if total > 0 else -np.inf
        for i, scope in enumerate(self.made.scopes):
            table = belief[self.ptr[i] : self.ptr[i + 1]].reshape(sizes[list(scope)])
            for f in self.made.factors[i]:
                own = part.scope_idx[part.scope_ptr[f] : part.scope_ptr[f + 1]].tolist()
                values = part.values[part.value_ptr[f] : part.value_ptr[f + 1]].reshape(sizes[own])
                _multiply(table, scope, own, values)
            for v in at_home.get(i, ()):
                _multiply(table, scope, [v], part.unary[at[v] : at[v + 1]])
            total = float(table.sum())
            if not total > 0:
                return belief, -np.inf
            table /= total
            log_z += np.log(total)
        return belief, log_z

    def propagate(self, settings: Settings, stop: Array) -> tuple[FloatArray, float, FloatArray, bool]:
        """(beliefs of all variables, log Z, residuals of the sweeps, converged)."""
        belief, log_z = self._start()
        whole_tree = self.made.is_tree
        counts = np.diff(self.sep_ptr)
        sep = np.repeat(1.0 / counts, counts) if len(counts) else np.zeros(0)
        log_z -= float(np.log(counts).sum())
        mean, n_mean, residuals, done = np.zeros(int(self.cases.unary_ptr[-1])), 0, [0.0], not len(counts)
        for sweep in range(0 if done or log_z == -np.inf else settings.max_iter):
            d = settings.damping if settings.damping >= 0 else (0.0 if sweep < UNDAMPED else LATE_DAMPING)
            least = 0.0 if sweep == 0 or whole_tree else LEAST  # the zeros of a first sweep are those of the tables
            change, log_total = cluster_sweep(
                belief, self.ptr, self.source, self.target, self.map_ptr, self.source_map, self.target_ptr,
                self.target_map, self.sep_ptr, sep, d, least, stop,
            )  # fmt: skip
            log_z += log_total
            residuals = [change] if sweep == 0 else [*residuals, change]
            done = change <= settings.tol
            if sweep >= settings.max_iter // 2:
                n_mean += 1
                self._marginals(belief, mean)
            if done or stop[0] or log_z == -np.inf:
                break
        if log_z == -np.inf:
            return mean, -np.inf, np.array(residuals), True
        if done or n_mean == 0:
            mean[:] = 0.0
            self._marginals(belief, mean)
        return self._normalized(mean), float(log_z), np.array(residuals), done

    def _marginals(self, belief: FloatArray, out: FloatArray) -> None:
        home = np.array(self.made.home, np.int64)
        sizes, at = self.cases.low.sizes, self.cases.unary_ptr
        cluster_marginals(belief, self.ptr, self.scope_ptr, self.scope_idx, sizes, at, home, out)

    def _normalized(self, mean: FloatArray) -> FloatArray:
        """Sums to one for each variable; what is in no factor has its own weights."""
        sizes, at = self.cases.low.sizes, self.cases.unary_ptr
        alone = np.repeat(np.array(self.made.home) < 0, sizes)
        p = np.where(alone, self.part.unary, mean)
        total = np.add.reduceat(p, at[:-1]) if len(sizes) else np.zeros(0)
        return np.asarray(p / np.repeat(np.where(total > 0, total, 1.0), sizes))


def _multiply(table: FloatArray, scope: tuple[int, ...], own: list[int], values: FloatArray) -> None:
    """table *= values, whose variables are among those of the table."""
    order = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
    members = set(own)
    table *= values.transpose(order).reshape(
        [n if v in members else 1 for v, n in zip(scope, table.shape, strict=True)]
    )
