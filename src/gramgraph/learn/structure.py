"""The door of structure learning: frames and names in, a fitted network with a report out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._show import Listing, Shown
from gramgraph._validation import check_jobs
from gramgraph.data.columns import CodedTable, code_table
from gramgraph.data.counts import Counts
from gramgraph.data.frames import read_frame
from gramgraph.data.kinds import is_real
from gramgraph.exceptions import OptionError, VariableError, did_you_mean
from gramgraph.learn.constraints import count, read_constraints, start_graph
from gramgraph.learn.gaussian_scores import MixedScores
from gramgraph.learn.methods import METHODS as FINDERS
from gramgraph.learn.methods import PATIENCE, Problem, find_graph, method_name, refuse_constraints
from gramgraph.learn.mixed_table import MixedTable, read_table
from gramgraph.learn.nonparametric import LeftOutScores, find_families, with_domains
from gramgraph.learn.normalized import tables_from
from gramgraph.learn.parameters import pseudo_counts, states_from
from gramgraph.learn.rows import read_all_rows, read_rows
from gramgraph.learn.scores import FamilyScores
from gramgraph.learn.search import Constraints, Move
from gramgraph.models import BayesianNetwork, NamedGraph
from gramgraph.variables import discrete

METHODS = (*FINDERS, "structural_em")
#: Steps of a search that are printed; `to_frame` has all.
SHOWN_STEPS = 30


@dataclass(frozen=True, repr=False)
class StructureReport(Shown):
    """How a graph was found: its score, and the steps of the search as (kind, parent, child, gain, score after).

    `equivalence_class` are the graphs that the data cannot tell from it (with a score that is equal for equivalent
    graphs): arrows that all of them share, links that they direct differently.
    """

    method: str
    score_name: str
    score: float
    moves: tuple[tuple[str, str, str, float, float], ...]
    interrupted: bool = False  # whether Ctrl-C or the time limit ended the search
    equivalence_class: NamedGraph | None = None
    bound: float | None = None  # a score that no graph exceeds, from exact search

    @property
    def gap(self) -> float | None:
        """How much more than this graph the best of all can score; 0 where this is the best, None if not known."""
        return None if self.bound is None else max(self.bound - self.score, 0.0)

    @property
    def trace(self) -> tuple[float, ...]:
        """The score after every step."""
        return tuple(move[4] for move in self.moves)

    def _shown(self) -> Listing:
        ended = ", interrupted" if self.interrupted else ""
        best = "" if self.gap is None else f", no graph scores more than {self.gap:.4g} better"
        title = f"{self.method}: {self.score_name} {self.score:.8g} after {len(self.moves)} steps{ended}{best}"
        rows = [(*move[:3], f"{move[3]:.6g}", f"{move[4]:.8g}") for move in self.moves[:SHOWN_STEPS]]
        return Listing(title, ("step", "parent", "child", "gain", "score"), rows, len(self.moves) - len(rows))

    def to_frame(self) -> Any:
        """One row per step."""
        import pandas as pd

        return pd.DataFrame(list(self.moves), columns=["step", "parent", "child", "gain", "score"])

    def plot(self, ax: Any = None) -> Any:
        """The score after every step."""
        if ax is None:
            from matplotlib import pyplot as plt

            ax = plt.subplots()[1]
        ax.plot(range(1, len(self.moves) + 1), self.trace, marker=".")
        ax.set_xlabel("step")
        ax.set_ylabel(self.score_name)
        return ax


class LearnedNetwork(BayesianNetwork):
    """A network that was learned from data; `report` tells how, `cpdag()` which edges the data can orient.

    Parameters
    ----------
    structure : as `BayesianNetwork` takes it.
    edges : pairs (parent, child).
    cpds : conditionals by name.
    states : labels by name, or their number.
    name : a title.
    check : whether faults are an error at once; `faults()` lists them later.

    Examples
    --------
    >>> import gramgraph as gg
    >>> data = gg.datasets.sprinkler().sample(300, random_state=0)
    >>> net = gg.learn_structure(data)
    >>> type(net).__name__, len(net)
    ('LearnedNetwork', 4)
    """

    report: StructureReport


def learn_structure(
    data: Any,
    *,
    method: str = "hill_climb",
    score: str = "bic",
    conditional: Any = None,
    domains: Mapping[str, str] | None = None,
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
    keep: Iterable[str] = (),
    missing: str = "rows",
    target: str | None = None,
    root: str | None = None,
    test: str = "auto",
    alpha: float = 0.05,
    max_given: int = 3,
    hidden: Mapping[str, int | Sequence[str]] | Iterable[str] | None = None,
    restarts: int = 5,
    time_limit: float | None = None,
    random_state: int = 0,
    n_jobs: int = 1,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = False,
) -> LearnedNetwork:
    """A Bayesian network whose graph and conditionals are learned from data.

    Discrete columns give tables; real ones give a linear Gaussian network, both kinds a conditional linear Gaussian one
    (in which real variables are not parents of discrete ones).

    Parameters
    ----------
    data : pandas, polars or Arrow frame, a dict of columns, the path of a CSV or Parquet file of any size, or an Arrow
        stream (a DuckDB relation, say), which is read once; or a Dask frame. Files and Dask frames with real-valued
        columns are read into memory. `gg.describe(data)` shows what each column is taken for.
    keep : columns of dates (taken as numbers of days), identifiers or counters that are learned from all the same;
        others are left out, and one warning names them.
    missing : "rows" (rows with a missing cell are left out, with a warning) or "families" (they count for the families
        that they show, and each family's counts are scaled to all rows: more data, but too many edges).
    method : searches by score: "hill_climb" or "hc" (add, remove or reverse one edge, the best step first, also
        behind arrows that can be turned without a change of the score, until `patience` = 10 steps in a row did not
        help; 0 stops at the first), "tabu" (the same with a patience of 50),
        "ges" (greedy search over equivalence classes), "order" (swaps in an order of the variables, from `restarts`
        random ones), "exact" (the best of all graphs, to about 20 variables, to 30 where few parent sets compete; with
        `time_limit` the best one found in so many seconds, and `report.gap`, how much more any graph can score). By
        tests of conditional independence: "pc" (`test` at level `alpha`, given up to `max_given` others), "mmhc" (tests
        find neighbors, hill climbing the arrows). Trees: "chow_liu" (from `root`), "tan" (tree-augmented naive Bayes
        around `target`), "naive_bayes". Rows with gaps: "structural_em" (graph and tables in turn, from all completions
        of the rows; `hidden` = ["name"] or {"name": number of states or labels} adds variables that no column shows).
    score : "bic", "aic", "bdeu" (with `equivalent_sample_size`), "k2", "fnml" or "log_likelihood"; with real columns
        "bic", "aic", "log_likelihood", or "bge" (all real).
    conditional : "auto" (kinds of conditionals are mixed by the likelihood of left-out rows: tables, softmax curves,
        linear Gaussians, copulas, kernels, predictors) or "choose" (the simplest within one standard error): structure
        without a parametric family, also with arrows from real to discrete variables, by "hill_climb", "tabu" or
        "chow_liu" between variables that share information. Families are scored on a third of up to 1,500 rows, once
        each; `max_parents` is 2 by default. A fraction of a second for every pair, a second or two for two parents.
    domains : name → "positive" or "circle" (angles in radians) for columns of numbers, with `conditional`.
    test : "auto", or one of those of `gg.learn.independence_test`.
    required, forbidden : edges (parent, child) that must or must not be there.
    tiers : groups of variables in order of time; no edge goes from a later to an earlier group.
    prior : for the tables, as in `BayesianNetwork.fit`; None is maximum likelihood.
    n_jobs : threads among which the columns are shared out in a step of "hill_climb" and "tabu", where discrete rows
        or columns are many; the network does not depend on it.
    client : a `distributed.Client` (or its address) whose workers count partitions of a Dask frame or Parquet file.
    checkpoint : a file in which "hill_climb" and "tabu" note every few seconds how far they are; called again with the
        same data and options, they go on from there, to the same network. Remove it to begin anew.
    start : a graph or network from which a search begins.
    restarts : random orders from which "order" begins.
    max_steps : most moves of a search.
    patience : steps in a row without a gain before a search ends.
    max_parents : most parents of a variable.
    alpha, max_given : level of the tests, and most variables that they condition on.
    equivalent_sample_size : of the score "bdeu".
    target : the class, for "tan" and "naive_bayes".
    root : the root of "chow_liu".
    hidden : variables that no column shows, for "structural_em".
    weights : of the rows.
    time_limit : seconds of "exact".
    progress : whether a bar is shown, or a function that is called.
    random_state : seed.

    Notes
    -----
    Ctrl-C ends a search by score with the best graph so far (`report.interrupted`); tests of independence it ends with
    `KeyboardInterrupt`, because a graph before their end means nothing.

    The answer is a network (`query`, `sample`, … work at once) with a `report`: the score, and every step.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.sprinkler().sample(5000, random_state=0)
    >>> net = gg.learn_structure(frame, method="exact")
    >>> net.is_equivalent(gg.datasets.sprinkler())
    True
    """
    method = method_name(method)
    if method not in METHODS:
        raise OptionError(_no_such(method))
    required, forbidden = list(required), list(forbidden)
    if checkpoint is not None and method not in PATIENCE:
        raise OptionError(f"method {method!r} keeps no checkpoint: use 'hill_climb' or 'tabu'")
    edges = (required, forbidden, tiers, max_parents)
    if method == "structural_em":
        rows = read_all_rows(data, weights, keep=keep, client=client, progress=progress, stacklevel=2)
        return _from_gaps(
            rows, hidden, score, edges, start=start, patience=patience, prior=prior, ess=equivalent_sample_size,
            random_state=random_state, progress=progress,
        )  # fmt: skip
    if hidden:
        raise OptionError(f"method {method!r} learns from what is shown: hidden variables need method='structural_em'")
    table = read_rows(data, weights, missing, keep=keep, client=client, progress=progress)
    free = _free_families(table, conditional, domains)
    if free is not None:
        table = free.table
    scores = _scores(table, score, equivalent_sample_size, check_jobs(n_jobs)) if free is None else free
    constraints = _constraints(table, *edges) if free is None else read_constraints(table, *edges)
    refuse_constraints(method, max_parents, given=bool(required or forbidden or tiers))
    problem = Problem(
        table, scores, _without_constants(table, constraints), start_graph(table, start, constraints), method,
        patience=patience, max_steps=max_steps, test=test, alpha=alpha, max_given=max_given, target=target, root=root,
        restarts=restarts, random_state=random_state, checkpoint=checkpoint,
        about=(score, equivalent_sample_size, missing), progress=progress, time_limit=_seconds(time_limit, method),
    )  # fmt: skip
    found = find_graph(problem) if free is None else find_families(problem, free)
    how = {} if free is None else {"conditional": conditional}
    net = _network(table, found.parents, prior, equivalent_sample_size, **how)
    total = scores.total(net.parent_positions)
    net.report = _report(net, method, scores.name, total, found.moves, found.interrupted, found.bound)
    return net


def _free_families(
    table: Counts | MixedTable, conditional: Any, domains: Mapping[str, str] | None
) -> LeftOutScores | None:
    """Scores of families of any kind; None where tables or linear Gaussians are learned."""
    if conditional is None:
        if domains:
            raise OptionError('domains belong to structure without a family: learn_structure(…, conditional="auto")')
        return None
    if conditional not in ("auto", "choose"):
        words = ("auto", "choose")
        raise OptionError(f"conditional is 'auto' or 'choose', not {conditional!r}.{did_you_mean(conditional, words)}")
    if not isinstance(table, MixedTable):
        return None  # all columns are discrete: tables
    if table.weights is not None:
        raise OptionError("conditional=… takes no weights of rows")
    return LeftOutScores(with_domains(table, domains), conditional)


def _seconds(time_limit: float | None, method: str) -> float | None:
    if time_limit is None:
        return None
    if method != "exact":
        raise OptionError(f"time_limit is for method='exact', not {method!r}: Ctrl-C ends the others with their best")
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float, np.number)) or not time_limit > 0:
        raise OptionError(f"time_limit is a positive number of seconds, not {time_limit!r}")
    return float(time_limit)


def _no_such(method: str) -> str:
    if method == "fci":
        return "FCI finds a graph with several kinds of marks, which is not a network: call gg.learn.fci(data)"
    return f"no such method: {method!r}. There are {', '.join(METHODS)}.{did_you_mean(method, METHODS)}"


def _scores(table: Counts | MixedTable, score: str, ess: float, n_jobs: int) -> FamilyScores | MixedScores:
    if isinstance(table, MixedTable):
        return MixedScores(table, score)
    return FamilyScores(table, score, equivalent_sample_size=ess, n_jobs=n_jobs)


def _constraints(
    table: Counts | MixedTable, required: Any, forbidden: Any, tiers: Any, max_parents: Any
) -> Constraints:
    """Constraints from names; real variables are not parents of discrete ones."""
    found = read_constraints(table, required, forbidden, tiers, max_parents)
    if not isinstance(table, MixedTable):
        return found
    real = np.array(table.real)
    never = np.outer(real, ~real)
    if (found.required & never).any():
        a, b = np.argwhere(found.required & never)[0]
        raise OptionError(
            f"the required edge {table.names[a]} -> {table.names[b]} goes from a real to a discrete variable; a "
            "conditional linear Gaussian network has none of these: turn it around, or cut the real column into "
            "intervals (gg.data.Discretizer)"
        )
    return Constraints(found.required, found.forbidden | never, found.max_parents)


def _without_constants(table: Counts | MixedTable, constraints: Constraints) -> Constraints:
    """No edges at columns that never change: they explain nothing, and cost a search its patience."""
    n = len(table.variables)
    if isinstance(table, MixedTable):
        same = np.array([not len(column) or bool((column == column[0]).all()) for column in table.columns])
    else:
        table.prefetch([(v,) for v in range(n)])
        same = np.array([np.count_nonzero(table.table((v,))) < 2 for v in range(n)])
    closed = (same[:, np.newaxis] | same) & ~constraints.required
    return Constraints(constraints.required, constraints.forbidden | closed, constraints.max_parents)


def _report(
    net: BayesianNetwork,
    method: str,
    name: str,
    total: float,
    moves: list[Move],
    interrupted: bool,
    bound: float | None = None,
) -> StructureReport:
    names = (*net.variables, "")  # a step that changes no edge stands with position -1
    told = tuple((m.kind, names[m.parent], names[m.child], m.gain, m.score) for m in moves)
    return StructureReport(method, name, total, told, interrupted, net.cpdag(), bound)


def _network(
    table: Counts | MixedTable, parents: list[tuple[int, ...]], prior: Any, ess: float, **how: Any
) -> LearnedNetwork:
    """The graph with its conditionals."""
    parents = [tuple(sorted(found)) for found in parents]
    bare = LearnedNetwork.from_parts(table.variables, [None] * len(parents), parents=parents)
    fitted: BayesianNetwork
    if how and isinstance(table, MixedTable):
        fitted = bare.fit(table.frame, **how)
        made = LearnedNetwork.from_parts(fitted.vars, fitted.conditionals, check=False)
        made.fit_report = fitted.fit_report
        return made
    if isinstance(table, MixedTable):
        fitted = bare.fit(table.frame, prior=prior, equivalent_sample_size=ess, weights=table.weights)
    else:
        extra = pseudo_counts(bare, table.variables, prior, ess)
        numbers = [table.table((*parents[v], v)) + extra[v] for v in range(len(parents))]
        fitted = tables_from(bare, table.variables, numbers)
    return LearnedNetwork.from_parts(fitted.vars, fitted.conditionals, check=False)


def _from_gaps(
    table: Counts | MixedTable,
    hidden: Mapping[str, int | Sequence[str]] | Iterable[str] | None,
    score: str,
    edges: tuple[Any, ...],
    start: Any,
    patience: int | None,
    prior: Any,
    ess: float,
    random_state: int,
    progress: Progress,
) -> LearnedNetwork:
    """Structural EM on rows as they are."""
    from gramgraph.learn.structural_em import ROUNDS, structural_em

    if isinstance(table, MixedTable):
        raise OptionError(
            "structural EM is for discrete columns: cut the real ones into intervals (gg.data.Discretizer)"
        )
    coded = _with_hidden(table.to_table(), hidden or {})
    constraints = read_constraints(coded, *edges)
    first = start_graph(coded, start, constraints)
    if not list(start.edges if isinstance(start, BayesianNetwork) else start):
        first = _from_hidden(first, constraints, len(table.variables))
    steps = PATIENCE["hill_climb"] if patience is None else count(patience, "patience")
    ended = Event()
    with reporting(progress, ROUNDS, "rounds") as report:
        parents, counts, total, moves = structural_em(
            coded, score, constraints, first, patience=steps, random_state=random_state, tell=report, ended=ended
        )
    bare = LearnedNetwork.from_parts(coded.variables, [None] * len(parents), parents=parents)
    extra = pseudo_counts(bare, coded.variables, prior, ess)
    fitted = tables_from(bare, coded.variables, [c + more for c, more in zip(counts, extra, strict=True)])
    net = LearnedNetwork.from_parts(fitted.vars, fitted.conditionals, check=False)
    net.report = _report(net, "structural_em", score, total, moves, ended.is_set())
    return net


def _with_hidden(table: CodedTable, hidden: Mapping[str, int | Sequence[str]] | Iterable[str]) -> CodedTable:
    """The table with a column of gaps for every hidden variable; names alone are binary ones."""
    if not isinstance(hidden, Mapping):
        hidden = dict.fromkeys([hidden] if isinstance(hidden, str) else hidden, ("no", "yes"))
    variables, columns = list(table.variables), list(table.columns)
    for name, states in hidden.items():
        if name in table.names:
            raise OptionError(f"{name!r} is a column of the data, so it is not hidden")
        labels = [str(i) for i in range(states)] if isinstance(states, (int, np.integer)) else list(states)
        if len(labels) < 2:
            raise OptionError(f"the hidden variable {name!r} needs at least 2 states, not {states!r}")
        variables.append(discrete(name, labels))
        columns.append(np.full(len(table), -1, np.int8))
    return CodedTable(tuple(variables), tuple(columns), table.weights)


def _from_hidden(first: list[tuple[int, ...]], constraints: Constraints, shown: int) -> list[tuple[int, ...]]:
    """Every hidden variable a parent of all that are shown, where allowed: without edges nothing is learned of it."""
    out = []
    for v, found in enumerate(first):
        more = [h for h in range(shown, len(first)) if v < shown and h not in found and not constraints.forbidden[h, v]]
        out.append((*found, *more)[: max(constraints.max_parents, len(found))])
    return out


def score(net: BayesianNetwork, data: Any, score: str = "bic", *, equivalent_sample_size: float = 10.0) -> float:
    """The score of a network's graph on data (its tables do not matter); larger is better.

    Parameters
    ----------
    net : the network.
    data : a frame, a dict of columns, a path or a stream.
    score : its name, such as "bic" or "bdeu".
    equivalent_sample_size : of "bdeu".

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> frame = net.sample(1000, random_state=0)
    >>> gg.learn.score(net, frame, "bic") > gg.learn.score(gg.BayesianNetwork("rain; wet"), frame[["rain", "wet"]])
    False
    """
    if not isinstance(net, BayesianNetwork):
        raise OptionError(
            f"a network is expected, then the data; not {type(net).__name__}. Edges make one: gg.BayesianNetwork(edges)"
        )
    frame = read_frame(data).table
    if any(not var.is_discrete for var in net.vars) or _has_real(net, frame):
        return MixedScores(_columns_of(net, frame).complete(), score).total(net.parent_positions)
    coded = code_table(frame, [states_from(net, v, frame) for v in range(len(net.vars))])
    return FamilyScores(Counts(coded), score, equivalent_sample_size=equivalent_sample_size).total(net.parent_positions)


def _has_real(net: BayesianNetwork, frame: Any) -> bool:
    """Whether a column of a variable without states of its own is real-valued."""
    drawn = [v.name for v, c in zip(net.vars, net.conditionals, strict=True) if c is None and v.name in frame.columns]
    return any(is_real(frame[name]) for name in drawn)


def _columns_of(net: BayesianNetwork, frame: Any) -> MixedTable:
    missing = [name for name in net.variables if name not in frame.columns]
    if missing:
        raise VariableError.unknown(missing[0], tuple(map(str, frame.columns)))
    found = read_table(frame[list(net.variables)])
    if not isinstance(found, MixedTable):
        raise OptionError("the network has real-valued variables, and no column of the data is real-valued")
    return found
