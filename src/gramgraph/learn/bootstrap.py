"""How sure we are of each edge: the share of resampled data sets in which it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.data.columns import CodedTable, code_table
from gramgraph.exceptions import OptionError
from gramgraph.learn.structure import LearnedNetwork, learn_structure
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, RandomState

__all__ = ["EdgeStrengths", "bootstrap_edges"]


@dataclass(frozen=True, eq=False)
class EdgeStrengths:
    """`forward[a, b]`: the share of graphs with a -> b, links without direction counted half each way."""

    names: tuple[str, ...]
    forward: FloatArray
    n_graphs: int
    _coded: CodedTable

    def to_frame(self) -> Any:
        """One row per pair that was ever joined, the surest first: strength (joined) and direction (from → to)."""
        import pandas as pd

        rows = []
        for i, a in enumerate(self.names):
            for j in range(i + 1, len(self.names)):
                strength = self.forward[i, j] + self.forward[j, i]
                if strength > 0:
                    ends = (a, self.names[j]) if self.forward[i, j] >= self.forward[j, i] else (self.names[j], a)
                    rows.append((*ends, float(strength), float(max(self.forward[i, j], self.forward[j, i]) / strength)))
        rows.sort(key=lambda row: (-row[2], row[0], row[1]))
        return pd.DataFrame(rows, columns=["from", "to", "strength", "direction"])

    def average_network(self, threshold: float = 0.5, *, prior: Any = None) -> BayesianNetwork:
        """The network of all edges with at least this strength, the surest first; those that close a cycle are left."""
        if not 0.0 <= threshold <= 1.0:
            raise OptionError(f"threshold is a share between 0 and 1, not {threshold!r}")
        parents: dict[str, list[str]] = {name: [] for name in self.names}

        def above(v: str) -> set[str]:
            found: set[str] = set()
            stack = [v]
            while stack:
                for p in parents[stack.pop()]:
                    if p not in found:
                        found.add(p)
                        stack.append(p)
            return found

        for row in self.to_frame().itertuples(index=False):
            if row.strength >= threshold and row[1] not in above(row[0]):
                parents[row[1]].append(row[0])
        graph = BayesianNetwork(parents, states={var.name: var.states for var in self._coded.variables})
        from gramgraph.data.counts import Counts
        from gramgraph.learn.parameters import pseudo_counts, tables_from

        counts = Counts(self._coded)
        at = [counts.position(name) for name in graph.variables]
        extra = pseudo_counts(graph, graph._vars, prior, 10.0)
        numbers = [
            counts.table([*(at[p] for p in graph._parents[v]), at[v]]) + extra[v] for v in range(len(graph.variables))
        ]
        return tables_from(graph, graph._vars, numbers)


def bootstrap_edges(
    data: Any,
    n: int = 100,
    *,
    random_state: RandomState = None,
    n_jobs: int = 1,
    progress: Progress = False,
    **options: Any,
) -> EdgeStrengths:
    """Learn a structure from each of `n` samples of the rows, drawn with replacement, and count the edges.

    `options` are those of `learn_structure`. An edge whose direction the class of equivalent graphs leaves open counts
    half in each direction (with constraints, every edge counts as it was drawn). The numbers do not depend on `n_jobs`.
    Ctrl-C keeps the graphs found so far.

    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(1000, random_state=0)
    >>> strengths = gg.learn.bootstrap_edges(frame, 10, random_state=0)
    >>> float(strengths.to_frame()["strength"].iloc[0])
    1.0
    """
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise OptionError(f"n is how many samples are drawn, a whole number from 1, not {n!r}")
    weights = options.pop("weights", None)
    table = code_table(data, weights=weights)
    seeds = np.random.SeedSequence(_entropy(random_state)).spawn(n)
    total = np.zeros((len(table.variables), len(table.variables)))
    bound = any(options.get(name) for name in ("required", "forbidden", "tiers"))
    done = 0

    def one(seed: np.random.SeedSequence) -> FloatArray:
        rows = np.random.default_rng(seed).integers(0, len(table), len(table))
        return _arrows(learn_structure(table.take(rows), **options), table.names, as_drawn=bound)

    with reporting(progress, n) as report:
        for found in _in_order(one, seeds, n_jobs):
            if found is None:
                break
            total += found
            done += 1
            if report is not None:
                report(done)
    return EdgeStrengths(table.names, total / max(done, 1), done, table)


def _entropy(random_state: RandomState) -> Any:
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return random_state
    return int(np.random.default_rng(random_state).integers(2**63))


def _arrows(net: LearnedNetwork, names: tuple[str, ...], *, as_drawn: bool) -> FloatArray:
    """The edges of the class, or, where constraints decide about directions, of the graph itself."""
    at = {name: i for i, name in enumerate(names)}
    out = np.zeros((len(names), len(names)))
    if as_drawn:
        for a, b in net.edges:
            out[at[a], at[b]] = 1.0
        return out
    found = net.cpdag()
    for a, b in found.arrows:
        out[at[a], at[b]] = 1.0
    for a, b in found.links:
        out[at[a], at[b]] = out[at[b], at[a]] = 0.5
    return out


def _in_order(one: Callable[[Any], FloatArray], seeds: list[Any], n_jobs: int) -> Any:
    """Results in the order of the seeds; None after Ctrl-C."""
    try:
        if n_jobs == 1:
            for seed in seeds:
                yield one(seed)
            return
        from joblib import Parallel, delayed

        yield from Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(delayed(one)(s) for s in seeds)
    except KeyboardInterrupt:
        yield None
