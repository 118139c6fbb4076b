"""How sure we are of each edge: the share of resampled data sets in which it is found."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._show import Listing, Shown
from gramgraph._validation import check_count, check_fraction, generator
from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.data.processes import on_processes
from gramgraph.learn.calibration import calibrate as by_worlds
from gramgraph.learn.checkpoint import Checkpoint, digest
from gramgraph.learn.constraints import count
from gramgraph.learn.mixed_table import MixedTable
from gramgraph.learn.normalized import tables_from
from gramgraph.learn.parameters import add_up, family_counts, pseudo_counts
from gramgraph.learn.resampling import drops_rows, one_graph
from gramgraph.learn.rows import read_all_rows, whole_rows
from gramgraph.learn.strength_map import StrengthMap
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, RandomState

#: Pairs that are printed, the surest ones; `to_frame` has all.
SHOWN_PAIRS = 20


@dataclass(frozen=True, eq=False, repr=False)
class EdgeStrengths(Shown):
    """`forward[a, b]`: the share of graphs with a -> b, links without direction counted half each way.

    After `calibrated` the sum of both directions is the probability that the pair is joined; `calibration` is the map.

    Parameters
    ----------
    names : of the variables.
    forward : (d, d): share of the graphs with a -> b.
    n_graphs : how many graphs.
    _table : the rows, for `average_network`.
    _options : those of `learn_structure`.
    calibration : map from shares to probabilities, or None.

    Examples
    --------
    >>> import gramgraph as gg
    >>> data = gg.datasets.sprinkler().sample(200, random_state=0)
    >>> found = bootstrap_edges(data, 3, random_state=0)
    >>> found.n_graphs, found.forward.shape
    (3, (4, 4))
    """

    names: tuple[str, ...]
    forward: FloatArray
    n_graphs: int
    _table: CodedTable | MixedTable
    _options: dict[str, Any] = field(default_factory=dict)
    calibration: StrengthMap | None = None

    def _shown(self) -> Listing:
        joined = self.forward + self.forward.T
        sure = int((np.triu(joined, 1) >= 0.5).sum())
        title = (
            f"EdgeStrengths({len(self.names)} variables, {self.n_graphs} graphs, {sure} edges in half of them or more)"
            if self.calibration is None
            else f"EdgeStrengths({len(self.names)} variables, calibrated, {sure} edges with probability 0.5 or more)"
        )
        found = self._pairs()
        rows = [(a, b, f"{strength:.3g}", f"{way:.3g}") for a, b, strength, way in found[:SHOWN_PAIRS]]
        return Listing(title, ("from", "to", "strength", "direction"), rows, len(found) - len(rows))

    def to_frame(self) -> Any:
        """One row per pair that was ever joined, the surest first: strength (joined) and direction (from → to)."""
        import pandas as pd

        return pd.DataFrame(self._pairs(), columns=["from", "to", "strength", "direction"])

    def _pairs(self) -> list[tuple[str, str, float, float]]:
        rows = []
        for i, a in enumerate(self.names):
            for j in range(i + 1, len(self.names)):
                strength = self.forward[i, j] + self.forward[j, i]
                if strength > 0:
                    ends = (a, self.names[j]) if self.forward[i, j] >= self.forward[j, i] else (self.names[j], a)
                    rows.append((*ends, float(strength), float(max(self.forward[i, j], self.forward[j, i]) / strength)))
        return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))

    def calibrated(
        self,
        worlds: int = 10,
        *,
        random_state: RandomState = None,
        n_jobs: int = 1,
        client: Any = None,
        progress: Progress = False,
    ) -> EdgeStrengths:
        """Strengths as probabilities: what strengths mean is looked up in simulated data whose graph is known.

        For each of the `worlds` a network is learned with BIC (and the same constraints) from a sample of the rows and
        fitted to all of them; as many rows are drawn from it, with the same gaps and weights, and strengths are counted
        on them just as on the data. All pairs together, strong and weak, true and false, give a smooth monotone map
        from strength to the share of true edges, which is applied here. Edges too weak for BIC in any sample are in no
        world: pairs of small strength may be true a little more often than said.

        Cost: `worlds` bootstraps of min(n, 50) graphs each. Pairs that constraints decide stay as they are. Ctrl-C
        takes the worlds so far.

        >>> import gramgraph as gg
        >>> frame = gg.datasets.asia().sample(500, random_state=0)
        >>> strengths = gg.learn.bootstrap_edges(frame, 20, score="aic", random_state=0)
        >>> print(str(strengths.calibrated(3, random_state=0)).splitlines()[0])
        EdgeStrengths(8 variables, calibrated, 6 edges with probability 0.5 or more)
        """
        seed = np.random.SeedSequence(_entropy(random_state))
        return by_worlds(self, worlds, seed, n_jobs=n_jobs, client=client, progress=progress)

    def average_network(self, threshold: float = 0.5, *, prior: Any = None) -> BayesianNetwork:
        """The network of all edges with at least this strength, the surest first; those that close a cycle are left."""
        check_fraction("threshold", threshold, ends=True)
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
        at = {name: i for i, name in enumerate(self.names)}
        rows = [tuple(sorted(at[p] for p in parents[name])) for name in self.names]
        graph = BayesianNetwork.from_parts(self._table.variables, [None] * len(rows), parents=rows)
        if isinstance(self._table, MixedTable):
            return graph.fit(self._table.frame, prior=prior, weights=self._table.weights)
        counts = Counts(self._table)
        extra = pseudo_counts(graph, graph.vars, prior, 10.0)
        return tables_from(graph, graph.vars, add_up(family_counts(graph, counts), extra))


def bootstrap_edges(
    data: Any,
    n: int = 100,
    *,
    calibrate: int = 0,
    random_state: RandomState = None,
    n_jobs: int = 1,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    **options: Any,
) -> EdgeStrengths:
    """Learn a structure from each of `n` samples of the rows, drawn with replacement, and count the edges.

    `options` are those of `learn_structure`. An edge whose direction the class of equivalent graphs leaves open counts
    half in each direction (with constraints, and between real and discrete columns, edges count as they were drawn).

    `n_jobs` processes (begun where the work is long enough to pay for it, and kept for the next call), or the workers
    of a Dask cluster (`client`: a `distributed.Client` or its address), learn at the same time. Every sample has a seed
    of its own: the numbers depend neither on how many there are nor on workers that die on the way. `checkpoint` names
    a file in which the graphs found so far are noted; called again with it, the bootstrap goes on from there, also to a
    larger `n`. Ctrl-C keeps the graphs found so far.

    `calibrate` (10, say) turns the strengths into probabilities by so many simulated data sets, as
    `EdgeStrengths.calibrated` tells; it is not part of the checkpoint, and left out after Ctrl-C.

    Parameters
    ----------
    data : a frame, a dict of columns, a path or a stream.
    n : how many samples.
    calibrate : whether shares are turned into probabilities.
    random_state : seed, or a generator.
    n_jobs : number of processes; -1 for one per processor.
    client : a `distributed.Client` on whose workers the blocks are worked on, or None.
    checkpoint : a file that keeps what is done, to go on from after an interruption.
    progress : True shows how far it is, or a function of (done, total).
    **options : of `learn_structure`.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(1000, random_state=0)
    >>> strengths = gg.learn.bootstrap_edges(frame, 10, random_state=0)
    >>> float(strengths.to_frame()["strength"].iloc[0])
    1.0
    """
    check_count("n", n)
    calibrate = count(calibrate, "calibrate")
    table = _table(data, options.pop("weights", None), options.pop("keep", ()), client, progress)
    for name in ("required", "forbidden", "tiers"):
        if options.get(name) is not None:
            options[name] = [item if isinstance(item, str) else tuple(_in_order(item)) for item in options[name]]
    if drops_rows(options) and table.has_missing:
        whole_rows(table, stacklevel=2)  # says how many rows are left out, once for all samples
    note, entropy, total, done = _begin(checkpoint, table, random_state, options)
    seeds = np.random.SeedSequence(entropy).spawn(n)
    found = on_processes(one_graph, seeds[done:], shared=(table, options), n_jobs=n_jobs, client=client)

    def state(total: FloatArray, done: int) -> Callable[[], dict[str, Any]]:
        return lambda: {"entropy": str(entropy), "done": done, "total": total.tolist()}

    noted = state(total, done)
    with reporting(progress, n, "graphs") as report:
        try:
            for arrows in found:
                if arrows is None:
                    break
                total, done = total + arrows, done + 1
                noted = state(total, done)
                if note is not None:
                    note.save(noted)
                if report is not None:
                    report(done)
        except KeyboardInterrupt:
            pass
        finally:
            found.close()
            if note is not None:
                note.save(noted, now=True)
    out = EdgeStrengths(table.names, total / max(done, 1), done, table, options)
    if not calibrate or done < n:
        return out
    seed = np.random.SeedSequence(entropy, spawn_key=(0, 1))  # no sample of the rows has this one
    return by_worlds(out, calibrate, seed, n_jobs=n_jobs, client=client, progress=progress)


def _table(data: Any, weights: Any, keep: Any, client: Any, progress: Progress) -> CodedTable | MixedTable:
    if isinstance(data, (CodedTable, MixedTable)):
        return data
    table = read_all_rows(data, weights, keep=keep, client=client, progress=progress)
    return table.to_table() if isinstance(table, Counts) else table


def _begin(
    checkpoint: str | os.PathLike[str] | None,
    table: CodedTable | MixedTable,
    random_state: RandomState,
    options: dict[str, Any],
) -> tuple[Checkpoint | None, int, FloatArray, int]:
    """(where to note, the seed of seeds, sum of the graphs so far, their number)."""
    size = len(table.variables)
    total, seed = np.zeros((size, size)), _entropy(random_state)
    entropy = np.random.SeedSequence(seed).entropy
    assert isinstance(entropy, int)
    if checkpoint is None:
        return None, entropy, total, 0
    about = {
        "data": Counts(table).fingerprint() if isinstance(table, CodedTable) else _fingerprint(table),
        "random_state": None if seed is None else str(seed),
        "options": digest(sorted((key, _plain(value)) for key, value in options.items())),
    }
    note = Checkpoint(checkpoint, "bootstrap", about)
    state = note.begin()
    if state is None:
        return note, entropy, total, 0
    try:
        total = np.array(state["total"], dtype=np.float64)
        entropy, done = int(state["entropy"]), int(state["done"])
    except (KeyError, TypeError, ValueError):
        raise note.damaged() from None
    if total.shape != (size, size) or done < 0 or entropy < 0:
        raise note.damaged()
    return note, entropy, total, done


def _fingerprint(table: MixedTable) -> str:
    """A short text that tells tables with real columns apart."""
    return digest((table.names, [digest(column.tobytes()) for column in table.columns], table.total))


def _plain(value: Any) -> Any:
    """An option as something that prints the same in every session."""
    if isinstance(value, BayesianNetwork):
        return value.edges
    if isinstance(value, (str, int, float, type(None))):
        return value
    return [_plain(item) for item in _in_order(value)]


def _in_order(items: Any) -> Any:
    return sorted(items) if isinstance(items, (set, frozenset)) else items


def _entropy(random_state: RandomState) -> Any:
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return random_state if random_state is None else int(random_state)
    return int(generator(random_state).integers(2**63))
