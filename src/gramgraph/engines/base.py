"""What an engine is: options when it is made, then answers to questions about models, within what a run may take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from gramgraph._progress import Report
from gramgraph.answers import Answer
from gramgraph.data.map_reduce import in_order
from gramgraph.exceptions import GramGraphError, OptionError, did_you_mean
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray, RandomState

T = TypeVar("T")


class EngineError(GramGraphError, ValueError):
    """A name that is not an engine, or an engine that cannot do what it was asked for."""


class IllConditioned(Exception):
    """An engine would lose digits that another one keeps: covariances of the evidence are nearly singular although
    every variable has noise, or sums are nearly too small for doubles."""


class ApproximateWarning(UserWarning):
    """An answer is approximate because an exact one does not fit into memory."""


@dataclass(frozen=True)
class Run:
    """What one run may take, and whom it tells how far it is.

    Parameters
    ----------
    memory : bytes that may be used.
    seconds : time that a search may take.
    draws : number of draws.
    random_state : seed, or a generator.
    n_jobs : number of threads.
    report : is told how far it is.
    gap : how far from the best an answer may be, in log units.

    Examples
    --------
    >>> Run(n_jobs=2).each(lambda item: item**2, [1, 2, 3])
    [1, 4, 9]
    """

    memory: float | None = None  # bytes; None for a share of what is free
    seconds: float | None = None  # None for no end
    draws: int | None = None  # of engines that draw samples; None for their own number
    random_state: RandomState = None
    n_jobs: int = 1
    report: Report | None = None
    gap: float = 0.0  # how far from the best, in log units, a search may stop

    @property
    def generator(self) -> np.random.Generator:
        """A generator of the random state: of a seed the same numbers each time it is asked for."""
        return np.random.default_rng(self.random_state)

    def each(
        self, function: Callable[[Any], T], items: Iterable[Any], size: Callable[[Any], int] = lambda item: 1
    ) -> list[T]:
        """function(item) of every item, on threads where there are several; `size` says how many cases an item is.

        Results come in the order of the items and do not depend on the threads.
        """
        if self.n_jobs == 1 and self.report is None:
            return [function(item) for item in items]
        listed = list(items)
        out: list[T] = []
        done = 0
        for item, found in zip(listed, in_order(function, listed, n_jobs=self.n_jobs), strict=True):
            out.append(found)
            done += size(item)
            if self.report is not None:
                self.report(done)
        return out


#: No limits, one thread, no reports.
PLAIN = Run()


class Best(NamedTuple):
    """Best assignments of all cases: states, values of real components, log p with the evidence, and bounds of it."""

    states: IntArray  # (cases, variables); -1 where there is none
    log_prob: FloatArray  # (cases,)
    bound: FloatArray  # (cases,) no assignment has more
    X: FloatArray | None = None  # (cases, components)


class Drawn(NamedTuple):
    """Draws of all variables given one case: states, values of real components, log p(evidence)."""

    states: IntArray  # (draws, variables)
    log_evidence: float
    X: FloatArray | None = None  # (draws, components)
    exact: bool = True


class Engine:
    """One inference algorithm. What is worth keeping between questions stands in the model's plan cache.

    Where an engine is able it also has `plan(model, question)`, `best(model, question, run)` for the most probable
    assignments (a `Best`) and `draw(model, question, n, run)` for draws given one case (a `Drawn`).

    Parameters
    ----------
    **given : options of the engine, by the names in `options`.

    Examples
    --------
    >>> from gramgraph.engines import get_engine
    >>> engine = get_engine("gibbs", n_chains=2)
    >>> isinstance(engine, Engine), engine.exact
    (True, False)
    """

    name: ClassVar[str] = ""
    exact: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = ("tables",)  # of models that it can answer
    options: ClassVar[tuple[str, ...]] = ()  # names of the keywords of the constructor
    runs_tree_code: ClassVar[bool] = False  # the compiled junction tree: plans then price its compilation
    gives_up: bool = False  # asked second it does not go on for long; then the error of the first holds
    strict: bool = False  # "auto" asks: refuse (`IllConditioned`) what another engine does more accurately

    def __init__(self, **given: Any) -> None:
        self.given = given
        check_options(self.name, list(given), self.options)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Beliefs and log p(evidence). Impossible evidence: log_evidence -inf and NaN beliefs for that case."""
        raise NotImplementedError


def check_options(engine: str, given: Sequence[str], known: Sequence[str]) -> None:
    """`OptionError` for an option that the engine does not take."""
    for name in given:
        if name not in known:
            takes = f"It takes {', '.join(known)}." if known else "It takes no options."
            raise OptionError(f"{name!r} is not an option of engine {engine!r}. {takes}{did_you_mean(name, known)}")


def parse_budget(budget: Any) -> tuple[int | None, float | None]:
    """(number of draws, seconds), None where not given: a number of draws, or a time such as "5s", "200ms", "2min".

    >>> parse_budget(1000), parse_budget("200ms")
    ((1000, None), (None, 0.2))
    """
    if budget is None:
        return None, None
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min)\s*", budget)
        if found:
            return None, float(found[1]) * {"ms": 1e-3, "s": 1.0, "min": 60.0}[found[2]]
    elif isinstance(budget, Real) and not isinstance(budget, bool) and 1 <= float(budget) <= 1e10:
        return int(float(budget)), None
    raise OptionError(f'budget is a number of draws from 1, or a time such as "5s" or "200ms", not {budget!r}')
