"""Ways to find a graph, by name: each takes a problem on integers and gives parents with a record of the search."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from gramgraph._progress import Progress, reporting
from gramgraph._validation import check_fraction
from gramgraph.data.counts import Counts
from gramgraph.exceptions import OptionError
from gramgraph.learn.checkpoint import Checkpoint, digest
from gramgraph.learn.constraints import count
from gramgraph.learn.independence import choose_tester
from gramgraph.learn.mixed_table import MixedTable
from gramgraph.learn.search import Constraints, Move, Scores, Search, hill_climb
from gramgraph.learn.ties import least_gain

#: Steps that do not help which a search may take in a row.
PATIENCE = {"hill_climb": 10, "tabu": 50}

Parents = list[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, scores, constraints and options of a search."""

    table: Counts | MixedTable
    scores: Scores
    constraints: Constraints
    start: Parents
    method: str
    patience: int | None = None
    max_steps: int | None = None
    test: str = "auto"
    alpha: float = 0.05
    max_given: int = 3
    target: str | None = None
    root: str | None = None
    restarts: int = 5
    random_state: int = 0
    checkpoint: str | os.PathLike[str] | None = None
    about: tuple[Any, ...] = ()  # what else a checkpoint must agree in
    progress: Progress = False
    time_limit: float | None = None

    def steps(self, default: int) -> int:
        """The patience."""
        return default if self.patience is None else count(self.patience, "patience")


@dataclass(frozen=True, eq=False)
class Found:
    """Parents of every variable, the steps of the search, whether it ended early, a score that no graph exceeds."""

    parents: Parents
    moves: list[Move] = field(default_factory=list)
    interrupted: bool = False
    bound: float | None = None


def find_graph(problem: Problem) -> Found:
    """The graph that the problem's method finds."""
    return METHODS[problem.method](problem)


def _climb(problem: Problem) -> Found:
    steps = problem.steps(PATIENCE[problem.method])
    search = Search(problem.scores, problem.constraints, problem.start)
    note = None
    if problem.checkpoint is not None:
        if not isinstance(problem.table, Counts):
            raise OptionError("checkpoints are for discrete columns")
        chosen = (problem.method, *problem.about, steps, search.parents, problem.constraints.max_parents)
        about = {
            "data": problem.table.fingerprint(),
            "options": digest(chosen),
            "constraints": problem.constraints.digest(),
        }
        note = Checkpoint(problem.checkpoint, "search", about)
    with _steps(problem) as report:
        parents = hill_climb(search, patience=steps, max_steps=problem.max_steps, tell=report, checkpoint=note)
    return Found(parents, search.moves, search.interrupted)


def _steps(problem: Problem) -> Any:
    return reporting(problem.progress, -1 if problem.max_steps is None else problem.max_steps, "steps")


def _ges(problem: Problem) -> Found:
    """From the start, and from what hill climbing makes of it: the better class."""
    from gramgraph.learn.ges import ges

    ended = Event()
    with _steps(problem) as report:
        first, moves = ges(
            problem.scores, problem.constraints, problem.start, max_steps=problem.max_steps, tell=report, ended=ended
        )
        if problem.max_steps is not None or ended.is_set():
            return Found(first, moves, ended.is_set())
        search = Search(problem.scores, problem.constraints, list(problem.start))
        second, more = hill_climb(search, patience=PATIENCE["hill_climb"]), list[Move]()
        if not search.interrupted:
            second, more = ges(problem.scores, problem.constraints, second, tell=report, ended=ended)
    interrupted = search.interrupted or ended.is_set()
    if _total(problem, second) > _total(problem, first) + least_gain(problem.scores):
        return Found(second, [*search.moves, *more], interrupted)
    return Found(first, moves, interrupted)


def _total(problem: Problem, parents: Parents) -> float:
    return sum(problem.scores.family(v, found) for v, found in enumerate(parents))


def _order(problem: Problem) -> Found:
    from gramgraph.learn.order_search import order_search

    restarts, ended = count(problem.restarts, "restarts"), Event()
    with reporting(problem.progress, restarts + 1, "starts") as report:
        parents, moves = order_search(
            problem.scores,
            problem.constraints,
            problem.start,
            restarts=restarts,
            patience=None if problem.patience is None else count(problem.patience, "patience"),
            random_state=problem.random_state,
            tell=report,
            ended=ended,
        )
    return Found(parents, moves, ended.is_set())


def _exact(problem: Problem) -> Found:
    from gramgraph.learn.exact_search import best_graph

    best = best_graph(
        problem.scores,
        len(problem.start),
        problem.constraints,
        problem.table.names,
        time_limit=problem.time_limit,
    )
    return Found(best.parents, interrupted=best.interrupted, bound=best.bound)


def _pc(problem: Problem) -> Found:
    from gramgraph.learn.constraint_based import pc_stable

    tester = choose_tester(problem.table, problem.test, random_state=problem.random_state)
    alpha, given = check_fraction("alpha", problem.alpha), count(problem.max_given, "max_given")
    return Found(pc_stable(tester, problem.constraints, alpha=alpha, max_given=given)[1])


def _mmhc(problem: Problem) -> Found:
    from gramgraph.learn.hybrid import mmhc

    with _steps(problem) as report:
        parents, search = mmhc(
            problem.scores,
            choose_tester(problem.table, problem.test, random_state=problem.random_state),
            problem.constraints,
            problem.start,
            alpha=check_fraction("alpha", problem.alpha),
            max_given=count(problem.max_given, "max_given"),
            patience=problem.steps(PATIENCE["hill_climb"]),
            max_steps=problem.max_steps,
            tell=report,
        )
    return Found(parents, search.moves, search.interrupted)


def _tree(problem: Problem) -> Found:
    from gramgraph.learn.trees import chow_liu_parents, tan_parents

    table, method = problem.table, problem.method
    if isinstance(table, MixedTable):
        raise OptionError(
            f"method {method!r} is for discrete columns. Cut the real ones into intervals (gg.data.Discretizer), or "
            "use 'hill_climb', 'tabu', 'ges', 'order', 'exact', 'mmhc' or 'pc'"
        )
    if method == "chow_liu":
        return Found(chow_liu_parents(table, 0 if problem.root is None else table.position(problem.root)))
    if problem.target is None:
        raise OptionError(f"method {method!r} needs target=…, the name of the class")
    at = table.position(problem.target)
    if method == "tan":
        return Found(tan_parents(table, at))
    return Found([() if v == at else (at,) for v in range(len(table.variables))])


#: Name → function from a problem to what is found. "structural_em" works on rows with gaps and stands apart.
METHODS: dict[str, Callable[[Problem], Found]] = {
    "hill_climb": _climb,
    "tabu": _climb,
    "ges": _ges,
    "order": _order,
    "exact": _exact,
    "mmhc": _mmhc,
    "pc": _pc,
    "chow_liu": _tree,
    "tan": _tree,
    "naive_bayes": _tree,
}


#: Other words for methods, as other libraries and papers have them.
ALIASES = {
    "hc": "hill_climb",
    "hill_climbing": "hill_climb",
    "hillclimb": "hill_climb",
    "hillclimbing": "hill_climb",
    "greedy": "hill_climb",
    "tabu_search": "tabu",
    "fges": "ges",
    "obs": "order",
    "order_search": "order",
    "exhaustive": "exact",
    "pc_stable": "pc",
    "chowliu": "chow_liu",
    "tree": "chow_liu",
    "nb": "naive_bayes",
    "naive": "naive_bayes",
    "tree_augmented_naive_bayes": "tan",
    "sem": "structural_em",
}


def method_name(given: Any) -> Any:
    """The name of a method: "hc", "hill-climbing" and "HillClimb" are "hill_climb"; others are kept."""
    if not isinstance(given, str):
        return given
    plain = given.strip().lower().replace("-", "_").replace(" ", "_")
    return ALIASES.get(plain, plain if plain in METHODS or plain == "structural_em" else given)


def refuse_constraints(method: str, max_parents: int | None, *, given: bool) -> None:
    """`OptionError` for constraints that a method cannot honor; `given` says whether the user named any edges."""
    others = "use 'hill_climb', 'tabu', 'ges', 'order', 'mmhc' or 'exact'"
    if method in ("chow_liu", "tan", "naive_bayes") and (given or max_parents is not None):
        raise OptionError(f"method {method!r} takes no constraints: {others}")
    if method == "pc" and max_parents is not None:
        raise OptionError(f"method 'pc' does not bound the number of parents: {others}")
