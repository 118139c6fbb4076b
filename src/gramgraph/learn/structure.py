"""The door of structure learning: frames and names in, a fitted network with a report out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.data.columns import CodedTable, code_table, to_pandas
from gramgraph.data.counts import Counts
from gramgraph.data.stream import is_stream, stream_counts
from gramgraph.exceptions import ModelWarning, OptionError, VariableError, did_you_mean
from gramgraph.learn.parameters import pseudo_counts, states_from, tables_from
from gramgraph.learn.scores import FamilyScores
from gramgraph.learn.search import Constraints, Search, hill_climb
from gramgraph.models import BayesianNetwork

__all__ = ["LearnedNetwork", "StructureReport", "learn_structure", "score"]

#: Steps that do not help which a search may take in a row.
PATIENCE = {"hill_climb": 10, "tabu": 50}
METHODS = ("hill_climb", "tabu", "exact", "pc", "chow_liu", "tan", "naive_bayes")


@dataclass(frozen=True)
class StructureReport:
    """How a graph was found: its score, and the steps of the search as (kind, parent, child, gain, score after)."""

    method: str
    score_name: str
    score: float
    moves: tuple[tuple[str, str, str, float, float], ...]

    def to_frame(self) -> Any:
        """One row a step."""
        import pandas as pd

        return pd.DataFrame(list(self.moves), columns=["step", "parent", "child", "gain", "score"])

    def plot(self, ax: Any = None) -> Any:
        """The score after every step."""
        if ax is None:
            from matplotlib import pyplot as plt

            ax = plt.subplots()[1]
        ax.plot(range(1, len(self.moves) + 1), [move[4] for move in self.moves], marker=".")
        ax.set_xlabel("step")
        ax.set_ylabel(self.score_name)
        return ax


class LearnedNetwork(BayesianNetwork):
    """A network that was learned from data; `report` tells how, `cpdag()` which edges the data can orient."""

    report: StructureReport


def learn_structure(
    data: Any,
    *,
    method: str = "hill_climb",
    score: str = "bic",
    required: Iterable[tuple[str, str]] = (),
    forbidden: Iterable[tuple[str, str]] = (),
    tiers: Sequence[Iterable[str]] | None = None,
    max_parents: int | None = None,
    start: BayesianNetwork | Iterable[tuple[str, str]] = (),
    patience: int | None = None,
    max_steps: int | None = None,
    equivalent_sample_size: float = 10.0,
    prior: Any = None,
    weights: Any = None,
    missing: str = "rows",
    target: str | None = None,
    root: str | None = None,
    test: str = "g2",
    alpha: float = 0.05,
    max_given: int = 3,
    progress: Progress = False,
) -> LearnedNetwork:
    """A Bayesian network whose graph and tables are learned from a frame of discrete columns.

    Parameters
    ----------
    data : pandas, polars or Arrow frame, a dict of columns, the path of a CSV or Parquet file of any size, or an Arrow
        stream (a DuckDB relation, say), which is read once.
    missing : "rows" (rows with a missing cell are left out, with a warning) or "families" (they count for the families
        that they show, and each family's counts are scaled to all rows: more data, but too many edges).
    method : "hill_climb" (add, remove or reverse one edge, the best step first, until `patience` = 10 steps in a row
        did not help; 0 stops at the first), "tabu" (the same with a patience of 50), "exact" (the best of all graphs,
        up to 20 variables), "pc" (tests of conditional independence, `test` = "g2" or "x2" at level `alpha` given up to
        `max_given` others), "chow_liu" (the best tree, from `root`), "tan" (tree-augmented naive Bayes around
        `target`), "naive_bayes".
    score : "bic", "aic", "bdeu" (with `equivalent_sample_size`), "k2", "fnml" or "log_likelihood".
    required, forbidden : edges (parent, child) that must or must not be there.
    tiers : groups of variables in order of time; no edge goes from a later to an earlier group.
    prior : for the tables, as in `BayesianNetwork.fit`; None is maximum likelihood.

    The answer is a network (`query`, `sample`, … work at once) with a `report`: the score, and every step.

    >>> import gramgraph as gg
    >>> frame = gg.datasets.sprinkler().sample(5000, random_state=0)
    >>> net = gg.learn_structure(frame, method="exact")
    >>> net.is_equivalent(gg.datasets.sprinkler())
    True
    """
    if method not in METHODS:
        raise OptionError(f"no such method: {method!r}. There are {', '.join(METHODS)}.{did_you_mean(method, METHODS)}")
    table = _without_gaps(_counted(data, weights, progress), missing)
    scores = FamilyScores(table, score, equivalent_sample_size=equivalent_sample_size)
    constraints = read_constraints(table, required, forbidden, tiers, max_parents)
    _refuse_constraints(method, constraints, max_parents)
    moves: tuple[Any, ...] = ()
    if method in PATIENCE:
        steps = PATIENCE[method] if patience is None else _count(patience, "patience")
        search = Search(scores, constraints, _start(table, start, constraints))
        with reporting(progress, -1 if max_steps is None else max_steps) as report:
            parents = hill_climb(search, patience=steps, max_steps=max_steps, tell=report)
        names = table.names
        moves = tuple((m.kind, names[m.parent], names[m.child], m.gain, m.score) for m in search.moves)
    elif method == "exact":
        from gramgraph.learn.exact_search import best_graph

        parents = best_graph(scores, len(table.variables), constraints)
    elif method == "pc":
        from gramgraph.learn.constraint_based import pc_stable

        if not 0.0 < alpha < 1.0:
            raise OptionError(f"alpha is a level between 0 and 1, not {alpha!r}")
        parents = pc_stable(table, constraints, test=test, alpha=alpha, max_given=_count(max_given, "max_given"))[1]
    else:
        parents = _tree(table, method, target, root)
    return _network(table, scores, parents, method, moves, prior, equivalent_sample_size)


def _counted(data: Any, weights: Any, progress: Progress) -> Counts:
    """The counts of a frame, a file, a stream, or a table that is coded already."""
    if is_stream(data):
        if weights is not None:
            raise OptionError("weights are for frames in memory, not for files and streams")
        table = stream_counts(data, progress=progress)
    else:
        table = Counts(data if isinstance(data, CodedTable) else code_table(data, weights=weights))
    if not table.rows or not table.variables:
        raise VariableError("there are no rows or no columns to learn from")
    return table


def _refuse_constraints(method: str, constraints: Constraints, max_parents: int | None) -> None:
    """`OptionError` for constraints that a method cannot honor."""
    if method in ("chow_liu", "tan", "naive_bayes"):
        given = constraints.required.any() or constraints.forbidden.sum() > len(constraints.forbidden)
        if given or max_parents is not None:
            raise OptionError(f"method {method!r} takes no constraints: use 'hill_climb', 'tabu' or 'exact'")
    if method == "pc" and max_parents is not None:
        raise OptionError("method 'pc' does not bound the number of parents: use 'hill_climb', 'tabu' or 'exact'")


def _count(given: Any, what: str) -> int:
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 0:
        raise OptionError(f"{what} is a count from 0, not {given!r}")
    return int(given)


def _without_gaps(table: Counts, missing: str) -> Counts:
    if missing not in ("rows", "families"):
        raise OptionError(f"missing is 'rows' or 'families', not {missing!r}")
    if missing == "families" or not table.has_missing:
        return table
    whole = table.complete()
    if not whole.rows:
        raise VariableError("every row has a missing cell: leave columns out, impute, or use missing='families'")
    text = f"{table.rows - whole.rows} of {table.rows} rows have missing cells and are left out"
    warnings.warn(text, ModelWarning, stacklevel=3)
    return whole


def _tree(table: Counts, method: str, target: str | None, root: str | None) -> list[tuple[int, ...]]:
    from gramgraph.learn.trees import chow_liu, tan

    if method == "chow_liu":
        return chow_liu(table, 0 if root is None else table.position(root))
    if target is None:
        raise OptionError(f"method {method!r} needs target=…, the name of the class")
    at = table.position(target)
    if method == "tan":
        return tan(table, at)
    return [() if v == at else (at,) for v in range(len(table.variables))]


def _network(
    table: Counts,
    scores: FamilyScores,
    parents: list[tuple[int, ...]],
    method: str,
    moves: tuple[Any, ...],
    prior: Any,
    equivalent_sample_size: float,
) -> LearnedNetwork:
    parents = [tuple(sorted(found)) for found in parents]
    bare = LearnedNetwork.from_parts(table.variables, [None] * len(parents), parents=parents)
    extra = pseudo_counts(bare, table.variables, prior, equivalent_sample_size)
    numbers = [table.table((*parents[v], v)) + extra[v] for v in range(len(parents))]
    fitted = tables_from(bare, table.variables, numbers)
    net = LearnedNetwork.from_parts(table.variables, fitted._conditionals, check=False)
    net.report = StructureReport(method, scores.name, scores.total(parents), moves)
    return net


def read_constraints(
    table: Counts,
    required: Iterable[tuple[str, str]],
    forbidden: Iterable[tuple[str, str]],
    tiers: Sequence[Iterable[str]] | None,
    max_parents: int | None,
) -> Constraints:
    """Constraints from names; contradictions are named."""
    n = len(table.variables)
    must, never = np.zeros((n, n), bool), np.eye(n, dtype=bool)
    for a, b in _edges(required, "required"):
        must[table.position(a), table.position(b)] = True
    for a, b in _edges(forbidden, "forbidden"):
        never[table.position(a), table.position(b)] = True
    if tiers is not None:
        rank = [-1] * n
        for level, names in enumerate(tiers):
            for name in [names] if isinstance(names, str) else names:
                rank[table.position(name)] = level
        levels = np.array(rank)
        never |= (levels[:, np.newaxis] > levels) & (levels >= 0)
    if (must & never).any():
        a, b = np.argwhere(must & never)[0]
        raise OptionError(f"the edge {table.names[a]} -> {table.names[b]} is both required and forbidden")
    _refuse_cycles([tuple(np.flatnonzero(must[:, v]).tolist()) for v in range(n)], table.names)
    limit = n if max_parents is None else _count(max_parents, "max_parents")
    if int(must.sum(axis=0).max(initial=0)) > limit:
        raise OptionError(f"{table.names[int(must.sum(axis=0).argmax())]} has more required parents than max_parents")
    return Constraints(must, never, limit)


def _edges(edges: Iterable[tuple[str, str]], what: str) -> list[tuple[str, str]]:
    found = list(edges)
    for edge in found:
        if isinstance(edge, str) or len(edge) != 2:
            raise OptionError(f"{what} is a list of pairs (parent, child), got {edge!r}")
    return [(a, b) for a, b in found]


def _start(
    table: Counts, start: BayesianNetwork | Iterable[tuple[str, str]], constraints: Constraints
) -> list[tuple[int, ...]]:
    edges = start.edges if isinstance(start, BayesianNetwork) else _edges(start, "start")
    chosen = constraints.required.copy()
    for a, b in edges:
        chosen[table.position(a), table.position(b)] = True
    parents = [tuple(np.flatnonzero(chosen[:, v]).tolist()) for v in range(len(table.variables))]
    if (chosen & constraints.forbidden).any() or max(map(len, parents), default=0) > constraints.max_parents:
        raise OptionError("the start has forbidden edges, or more parents than max_parents")
    _refuse_cycles(parents, table.names)
    return parents


def _refuse_cycles(parents: list[tuple[int, ...]], names: tuple[str, ...]) -> None:
    left = set(range(len(parents)))
    while left:
        free = [v for v in sorted(left) if not left.intersection(parents[v])]
        if not free:
            raise OptionError(
                f"the required edges (with the start) have a cycle among {', '.join(names[v] for v in sorted(left))}"
            )
        left.difference_update(free)


def score(net: BayesianNetwork, data: Any, score: str = "bic", *, equivalent_sample_size: float = 10.0) -> float:
    """The score of a network's graph on data (its tables do not matter); larger is better.

    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> frame = net.sample(1000, random_state=0)
    >>> gg.learn.score(net, frame, "bic") > gg.learn.score(gg.BayesianNetwork("rain; wet"), frame[["rain", "wet"]])
    False
    """
    frame = to_pandas(data)
    table = code_table(frame, [states_from(net, v, frame) for v in range(len(net._vars))])
    return FamilyScores(Counts(table), score, equivalent_sample_size=equivalent_sample_size).total(net._parents)
