"""Loopy belief propagation, compiled: exact on trees, an approximation with a convergence report elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.compile.budget import check_memory
from gramgraph.engines.anytime import Found, How, SweepEngine, never
from gramgraph.engines.approximate import Cases, between, one_of, whole
from gramgraph.engines.base import PLAIN, Best, Run
from gramgraph.engines.slices import RESIDUAL, SCHEDULES, SEQUENTIAL
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

OPTIONS = ("schedule", "damping", "max_iter", "tol", "temperature", "domain")
DOMAINS = ("scaled", "log")
MAX_ITER = 200
TOL = 1e-9
#: Temperatures are below this.
HOT = 1e6
#: A run that settled within so many sweeps found a tree, or as good as one.
SURE_SWEEPS = 2
#: Beyond this many table cells a converged run is not followed by another schedule, however long it took.
SECOND_CELLS = 200_000


class Settings(NamedTuple):
    """Options, the first five in the order of the compiled function."""

    schedule: int
    damping: float
    max_iter: int
    tol: float
    in_logs: bool
    temperature: float


class Propagated(NamedTuple):
    """What propagation gave, one row per case; `residuals` are those of the last case."""

    beliefs: FloatArray
    log_z: FloatArray
    sweeps: IntArray
    converged: Array
    last: FloatArray
    residuals: FloatArray
    schedule: IntArray


class BeliefPropagation(SweepEngine):
    """Sum-product messages on the factor graph until they stand still; log p(e) is that of Bethe.

    Each factor sends all its messages in time proportional to its table. Cost of a sweep: O(cells of all tables).

    Options of `query(engine="bp", …)`: `schedule` — "sequential" (backward and forward through the graph; one sweep
    is exact on a tree), "tree" (spanning forest after spanning forest, each to its roots and back; exact on a tree),
    "flooding" (all at once), "residual" (what moved most first), or "auto": sequential, and unless two sweeps were
    enough residual as well, of which the one that converged, or has the larger log p(e), is the answer —, `damping`
    from 0 to below 1 (None: none at first, half where the first half of the sweeps did not settle), `max_iter` sweeps,
    `tol` of the largest change of a message; `temperature` T for beliefs of p^(1/T): 1 is sum-product, 0 max-product
    (beliefs are then normalized max-marginals), log_evidence T log Σ p^(1/T), the largest log p at 0; `domain` "scaled"
    or "log": messages as probabilities, or as logarithms, which is several times slower and has no smallest number.

    `details` tell `schedule`, `converged`, `sweeps`, `residual`, for one case `residuals`, the largest change in each
    sweep, and `stopped` ("budget" or "interrupt") where a time as `budget`, such as "5s", or Ctrl-C ended the sweeps.
    Zeros of the tables that leave some variable no state prove the evidence impossible.

    >>> import gramgraph as gg
    >>> answer = gg.datasets.asia().query("lung", {"xray": "yes"}, engine="bp")
    >>> answer.exact, answer.details["converged"]
    (False, True)
    >>> exact = gg.datasets.asia().query("lung", {"xray": "yes"})
    >>> abs(answer["lung"].prob("yes") - exact["lung"].prob("yes")) < 0.02
    True
    """

    name = "bp"
    options = OPTIONS

    def settings(self, model: GraphicalModel) -> tuple[Any, int]:
        """The options after a check, and how many sweeps there are at most."""
        made = _settings(self.given)
        return made, made.max_iter

    def run(self, model: GraphicalModel, question: Question, how: How) -> Found:
        """Beliefs and log p(evidence), or a bound of it, for every case."""
        return _run(model, question, how.settings, how.stop)

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """A good assignment of every case by max-product messages, the best one on a tree, and its log probability."""
        from gramgraph.engines.best.max_product import max_product

        check_memory(run.memory)
        states, log_p = max_product(model, question)
        return Best(states, log_p, np.full(len(log_p), np.inf))


def _settings(options: dict[str, Any]) -> Settings:
    """The options after a check."""
    schedule = SCHEDULES.index(one_of("schedule", options.get("schedule", "auto"), SCHEDULES))
    damping = options.get("damping")
    damping = -1.0 if damping is None else between("damping", damping, 0.0, 1.0)
    max_iter = whole("max_iter", options.get("max_iter", MAX_ITER))
    tol = between("tol", options.get("tol", TOL), 0.0, 1.0)
    in_logs = one_of("domain", options.get("domain", "scaled"), DOMAINS) == "log"
    temperature = between("temperature", options.get("temperature", 1.0), 0.0, HOT)
    return Settings(schedule, damping, max_iter, tol, in_logs, temperature)


def beliefs_of_all(model: GraphicalModel, question: Question, **options: Any) -> tuple[FloatArray, FloatArray]:
    """Beliefs of all variables side by side, (cases, columns), hidden ones last, and log p(e); NaN for barren ones."""
    _, beliefs, log_z, _ = _run(model, question, _settings(options), never())
    return beliefs, log_z


def _run(model: GraphicalModel, question: Question, settings: Settings, stop: Array) -> Found:
    """(the cases in arrays, beliefs of all variables, log p(e), details)."""
    cases = _cases(model, question, settings.temperature)
    every = np.arange(question.n_cases)
    if SCHEDULES[settings.schedule] == "auto":
        run = _propagate(cases, every, settings._replace(schedule=SEQUENTIAL), stop)
        unsure = ~run.converged if len(cases.low.values) > SECOND_CELLS else run.sweeps > SURE_SWEEPS
        open_rows = np.flatnonzero(unsure & np.isfinite(run.log_z))
        if len(open_rows) and not stop[0]:
            run = _better(run, _propagate(cases, open_rows, settings._replace(schedule=RESIDUAL), stop), open_rows)
    else:
        run = _propagate(cases, every, settings, stop)
    log_z = run.log_z * (settings.temperature or 1.0) + cases.low.log_scale
    names = np.array(SCHEDULES)[run.schedule]
    details: dict[str, Any] = {"damping": "late" if settings.damping < 0 else settings.damping}
    if question.batched:
        details |= {"schedule": names, "converged": run.converged, "sweeps": run.sweeps, "residual": run.last}
        return cases, run.beliefs, log_z, details
    made = int(run.sweeps[0])
    details |= {"schedule": str(names[0]), "converged": bool(run.converged[0]), "sweeps": made}
    return cases, run.beliefs, log_z, {**details, "residual": float(run.last[0]), "residuals": run.residuals[:made]}


def _cases(model: GraphicalModel, question: Question, temperature: float) -> Cases:
    """The cases in arrays. Off temperature one, what is barren for sums is not, and tables must be whole."""
    if temperature == 1.0:
        return Cases.of(model, question)
    from gramgraph.engines.best.problem import cases_of

    return cases_of(model, question)


def _propagate(cases: Cases, rows: Array, settings: Settings, stop: Array) -> Propagated:
    """One schedule for these cases."""
    from gramgraph._numerics.messages.loopy_run import run_cases

    n = len(rows)
    beliefs, log_z = np.full((n, int(cases.unary_ptr[-1])), np.nan), np.full(n, -np.inf)
    sweeps, converged, last = np.zeros(n, np.int64), np.zeros(n, np.bool_), np.zeros(n)
    residuals = np.zeros(settings.max_iter)
    unaries = cases.unaries if len(cases.unaries) == 1 else cases.unaries[rows]
    scope_ptr, scope_idx, value_ptr, values, sizes = cases.arrays
    T = settings.temperature
    if T not in (0.0, 1.0):
        values, unaries = values ** (1.0 / T), unaries ** (1.0 / T)
    run_cases(
        scope_ptr, scope_idx, value_ptr, values, sizes, cases.unary_ptr, cases.keep, cases.active, cases.states[rows],
        unaries, *settings[:5], T == 0.0, beliefs, log_z, sweeps, converged, last, residuals, stop,
    )  # fmt: skip
    return Propagated(beliefs, log_z, sweeps, converged, last, residuals, np.full(n, settings.schedule))


def _better(first: Propagated, second: Propagated, rows: Array) -> Propagated:
    """`first` with those of its `rows` replaced in which `second` is to be preferred.

    A converged run is; of two fixed points, that with the larger log Z, which is the lower Bethe free energy; of two
    that wander, the residual schedule.
    """
    settled = first.converged[rows]
    wins = np.isfinite(second.log_z) & np.where(
        second.converged & settled, second.log_z > first.log_z[rows] + 1e-9, ~settled
    )
    if not wins.any():
        return first
    for mine, theirs in zip(first[:5], second[:5], strict=True):
        mine[rows[wins]] = theirs[wins]
    first.schedule[rows[wins]] = second.schedule[wins]
    return first._replace(residuals=second.residuals)
