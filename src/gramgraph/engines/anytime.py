"""Long work that a time budget or Ctrl-C ends early, with what it has so far."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.answers import Answer
from gramgraph.compile.budget import check_memory
from gramgraph.compile.lower import lower
from gramgraph.engines.approximate import ApproximatePlan, Cases, joint_by_conditioning, make_answer
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

T = TypeVar("T")
#: What a run of messages gives: the cases in arrays, beliefs of all variables, log p(e), details.
Found = tuple[Cases, FloatArray, FloatArray, dict[str, Any]]
#: Work below this many table cells (times cases, times sweeps) is done before anybody could interrupt it.
SHORT_WORK = 1_000_000
#: Seconds after which Ctrl-C is looked for at the latest.
POLL = 0.1


def never() -> Array:
    """A flag that nobody sets."""
    return np.zeros(1, np.uint8)


@interruptible()
def anytime(work: Callable[[Array], T], seconds: float | None, cells: int) -> tuple[T, dict[str, str]]:
    """work(stop) in a thread of its own, and what ended it early: {} or {"stopped": "budget" | "interrupt"}.

    The compiled loops look at stop[0] after every sweep and return what they have once it is set: when the
    `seconds` are over, or at Ctrl-C, which would otherwise wait for their end.

    >>> def count(stop):
    ...     n = 1
    ...     while not stop[0]:
    ...         n += 1
    ...     return n
    >>> made, early = anytime(count, 0.01, 10**6)
    >>> made > 0, early
    (True, {'stopped': 'budget'})
    """
    stop = never()
    if seconds is None and cells < SHORT_WORK:
        return work(stop), {}
    with ThreadPoolExecutor(1) as pool:
        running: Future[T] = pool.submit(work, stop)
        end, why = np.inf if seconds is None else monotonic() + seconds, "budget"
        try:
            while not running.done() and monotonic() < end:
                check_interrupt()
                wait([running], timeout=min(end - monotonic(), POLL))
            if running.done():
                return running.result(), {}
        except KeyboardInterrupt:
            why = "interrupt"
        stop[0] = 1
        return running.result(), {"stopped": why}


class How(NamedTuple):
    """What a run of sweeps is given besides the question."""

    settings: Any
    rng: np.random.Generator
    stop: Array  # [0] is set where the sweeps shall end
    memory: float | None


class SweepEngine(Engine):
    """An engine that works in sweeps over the factors: the classes that inherit it read options and run."""

    def plan(self, model: GraphicalModel, question: Question) -> ApproximatePlan:
        """The factors and their cells: nothing larger is ever made."""
        return ApproximatePlan.of(self.name, Cases.of(model, question).low)

    def settings(self, model: GraphicalModel) -> tuple[Any, int]:
        """The options after a check, and how many sweeps there are at most."""
        raise NotImplementedError

    def run(self, model: GraphicalModel, question: Question, how: How) -> Found:
        """Beliefs and log p(evidence), or a bound of it, for every case."""
        raise NotImplementedError

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """What `run` finds, as an answer; joint targets take runs of their own, and the time of the run (or Ctrl-C)
        ends the sweeps early."""
        check_memory(run.memory)
        settings, sweeps = self.settings(model)
        seed = 0 if run.random_state is None else run.random_state

        def work(stop: Array) -> Answer:
            def found_of(asked: Question) -> Found:
                return self.run(model, asked, How(settings, np.random.default_rng(seed), stop, run.memory))

            def solve(asked: Question) -> tuple[FloatArray, FloatArray]:
                part, p, log_p, _ = found_of(asked)
                (v,) = asked.targets
                return p[:, part.unary_ptr[v] : part.unary_ptr[v + 1]], np.nan_to_num(log_p, nan=0.0, neginf=-np.inf)

            cases, beliefs, log_z, details = found_of(question)
            joints = [joint_by_conditioning(model, question, solve, members) for members in question.joints]
            return make_answer(
                model, question, beliefs, log_z, cases.unary_ptr, joints, engine=self.name, details=details
            )

        found, early = anytime(work, run.seconds, len(lower(model).values) * question.n_cases * sweeps)
        return found.replace(details={**found.details, **early}) if early else found
