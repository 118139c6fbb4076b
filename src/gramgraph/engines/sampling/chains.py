"""What all chain samplers share: several chains, burn-in by rule, standard errors, R-hat, effective draws, budgets."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.budget import check_memory
from gramgraph.compile.lower import lower
from gramgraph.engines.approximate import ApproximatePlan, Cases, parse_error, whole
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.sampling.blankets import Compiled, compile_case, first_state, log_weight
from gramgraph.engines.sampling.chain_run import HIGH_R_HAT, Chains, Effort, diagnose, run_chains
from gramgraph.engines.sampling.sampled import ByTarget, Wants, sampled_answer, target_keys
from gramgraph.engines.slices import Sliced, slice_case
from gramgraph.exceptions import ModelError, OptionError, listing
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["HIGH_R_HAT", "ChainEngine", "Chains", "MixingWarning", "Moves", "Setting", "diagnose", "impossible_case"]

OPTIONS = ("n_chains", "burn_in", "start", "error", "keep")
DRAWS, BATCH_DRAWS, CHAINS = 40_000, 4_000, 4


class MixingWarning(UserWarning):
    """Chains that did not, or may not, reach all of the distribution."""


class Setting(NamedTuple):
    """One case of a question, compiled, with what is wanted of it."""

    model: GraphicalModel
    cases: Cases
    part: Sliced
    case: int
    wants: Wants
    compiled: Compiled


class Tally(NamedTuple):
    """How states are counted: free single targets by column, fixed ones once for all, the rest table by table."""

    column: IntArray  # (variables,) first cell of the target, -1 where it is none
    fixed: IntArray  # cells of targets whose variable does not move
    ptr: IntArray
    idx: IntArray
    stride: IntArray
    at: IntArray

    @classmethod
    def of(cls, setting: Setting) -> Tally:
        """The layout for one case."""
        wants, sizes = setting.wants, setting.compiled.sizes
        column, free = np.full(len(sizes), -1, np.int64), np.zeros(len(sizes), np.bool_)
        free[setting.compiled.variables] = True
        alone = np.flatnonzero(np.diff(wants.ptr) == 1)
        members = wants.idx[wants.ptr[alone]]
        moving = free[members]
        column[members[moving][::-1]] = wants.at[alone[moving]][::-1]
        first = moving & (column[members] == wants.at[alone])
        still = alone[~moving]
        fixed = wants.at[still] + np.maximum(setting.cases.states[setting.case][members[~moving]], 0)
        other = np.setdiff1d(np.arange(len(wants.at)), np.concatenate([alone[first], still]))
        tables = tuple(tuple(int(v) for v in wants.idx[wants.ptr[t] : wants.ptr[t + 1]]) for t in other)
        rest = Wants.of(sizes, tables)
        return cls(column, fixed, rest.ptr, rest.idx, rest.stride, wants.at[other])


class Moves:
    """One way to move a chain. A state is an array of its own kind; `current` gives that of the variables."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.tally = Tally.of(setting)

    def begin(self, rng: np.random.Generator, given: tuple[Array, Array] | None) -> Array:
        """The first state of a chain, with (variables, states) that the user gave."""
        state = self.start(rng)
        if given is not None:
            state[..., given[0]] = given[1]
            if log_weight(self.setting.compiled, self.setting.part, self.current(state)) == -np.inf:
                raise OptionError("start is a state of probability zero: zeros of the tables do not allow it")
        return state

    def start(self, rng: np.random.Generator) -> Array:
        """A first state of positive probability."""
        s = self.setting
        return first_state(s.model, s.cases, s.part, s.compiled, s.case, rng)

    def current(self, state: Array) -> Array:
        """(variables,) state indices."""
        return state

    def expect(self, runs: int) -> None:
        """So many calls of `run` lie ahead: what it calls may be compiled for all of them."""

    def run(self, state: Array, sweeps: int, rng: np.random.Generator, counts: FloatArray) -> None:
        """Move the state `sweeps` times and count every state it takes."""
        for _ in range(sweeps):
            self.move(state, rng)
            self.count(state, counts)
        counts[self.tally.fixed] += sweeps

    def move(self, state: Array, rng: np.random.Generator) -> None:
        """One sweep."""
        raise NotImplementedError

    def count(self, state: Array, counts: FloatArray) -> None:
        """Add one to the cells of the state, fixed ones excepted."""
        from gramgraph._numerics.sampling.chains import count_state

        t = self.tally
        count_state(
            self.current(state), self.setting.compiled.variables, t.column, counts, t.ptr, t.idx, t.stride, t.at
        )

    def report(self) -> dict[str, float]:
        """What is worth telling beside the diagnostics, such as the share of accepted proposals."""
        return {}


class ChainEngine(Engine):
    """The engine of one kind of moves; see the classes that inherit it for what they do."""

    options: ClassVar[tuple[str, ...]] = OPTIONS
    #: Whether zeros in tables can lock these moves into a part of the states.
    locks = True

    def plan(self, model: GraphicalModel, question: Question) -> ApproximatePlan:
        """The tables that are read."""
        return ApproximatePlan.of(self.name, lower(model, structured=False))

    def moves(self, setting: Setting, options: dict[str, Any]) -> Moves:
        """The moves for one case."""
        raise NotImplementedError

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Estimates for every case, with errors and diagnostics in `details`."""
        check_memory(run.memory)
        effort = _effort(model, self.given, question, run)
        rng = run.generator
        cases = Cases.of(model, question, structured=False)
        wants = Wants.of(cases.low.sizes, (*((v,) for v in question.targets), *question.joints))
        gathered = _Gathered(question, wants)
        if effort.seconds is not None:
            effort = effort._replace(seconds=effort.seconds / max(question.n_cases, 1))
        for case in range(question.n_cases):
            part = slice_case(cases, case)
            if impossible_case(cases, part):
                continue
            gathered.zeros.update(_zeros(cases, part) if self.locks else {})
            setting = Setting(model, cases, part, case, wants, compile_case(cases, part))
            moves = self.moves(setting, self.given)  # an error where they do not suit the model, also for many cases
            try:
                chains = run_chains(moves, wants.cells, effort, rng)
            except ModelError:  # no state to begin with was found
                if not question.batched:
                    raise
                gathered.log_z[case] = np.nan
                continue
            gathered.add(case, chains, moves)
        gathered.warn(effort)
        return gathered.answer(model, self.name, effort)


def _effort(model: GraphicalModel, options: dict[str, Any], question: Question, run: Run) -> Effort:
    """The common options after a check."""
    burn_in = options.get("burn_in")
    keep = options.get("keep", False)
    if not isinstance(keep, bool):
        raise OptionError(f"keep is True or False, not {keep!r}")
    if keep and question.batched:
        raise OptionError("keep=True keeps the draws of one case; ask about the cases one by one")
    start = options.get("start") or {}
    if not isinstance(start, Mapping):
        raise OptionError(f"start is a dict from names to states, not {start!r}")
    return Effort(
        whole("n_chains", options.get("n_chains", CHAINS), 2),
        None if burn_in is None else whole("burn_in", burn_in, 0),
        parse_error(options.get("error")),
        keep,
        run.n_jobs,
        {model.index(name): model.var(name).index(state) for name, state in start.items()},
        run.draws or (BATCH_DRAWS if question.batched else DRAWS),
        run.seconds,
    )


class _Gathered:
    """Results of the cases while they come in."""

    def __init__(self, question: Question, wants: Wants) -> None:
        n = question.n_cases
        self.question, self.wants = question, wants
        self.cells = {key: np.full((n, wants.cells), np.nan) for key in ("p", "error", "r_hat", "effective")}
        self.log_z, self.draws, self.burn_in = np.full(n, -np.inf), np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.zeros: dict[str, None] = {}
        self.reports: list[dict[str, float]] = [{} for _ in range(n)]
        self.kept: Array | None = None

    def add(self, case: int, chains: Chains, moves: Moves) -> None:
        counts = chains.counts
        self.draws[case], self.log_z[case] = counts.shape[0] * counts.shape[1] * chains.length, np.nan
        self.burn_in[case] = chains.dropped
        for key, value in zip(self.cells, diagnose(counts, chains.length), strict=True):
            self.cells[key][case] = value
        self.kept = chains.kept
        self.reports[case] = moves.report()

    def worst(self) -> FloatArray:
        """The largest R-hat of each case; 1 where nothing was drawn."""
        return np.asarray(np.fmax.reduce(self.cells["r_hat"], axis=1, initial=1.0))

    def warn(self, effort: Effort) -> None:
        """Say so when chains did not mix, or when zeros may have kept them from it."""
        worst, text = self.worst().max(initial=1.0), ""
        if worst > HIGH_R_HAT:
            text = (
                f"the chains disagree (R-hat {worst:.3g}, should be near 1): the probabilities are not to be trusted."
                " More sweeps (budget=…) may help; with zeros in the tables they may not, and an exact engine, "
                'engine="tempering" or engine="bp" is better.'
            )
        elif self.zeros:
            text = (
                f"the tables of {listing(self.zeros, 5)} have zeros: a chain may be locked into a part of the states, "
                "which R-hat shows only when other chains are elsewhere"
            )
        elif effort.error is not None and (reached := np.nanmax(self.cells["error"], initial=0.0)) > effort.error:
            text = f"the largest standard error is {reached:.2g}, not {effort.error:.2g}: a larger budget is needed"
        if text:
            warnings.warn(text, MixingWarning, stacklevel=5)

    def answer(self, model: GraphicalModel, engine: str, effort: Effort) -> Answer:
        question = self.question
        least = np.asarray(np.fmin.reduce(self.cells["effective"], axis=1, initial=np.inf))
        details = {
            "draws": self.draws,
            "n_chains": effort.n_chains,
            "burn_in": self.burn_in,
            "max_r_hat": self.worst(),
            "min_effective_draws": least,
        }
        for key in dict.fromkeys(key for report in self.reports for key in report):
            details[key] = np.array([report.get(key, np.nan) for report in self.reports])
        answer = sampled_answer(
            model, question, self.wants, self.cells["p"], self.cells["error"], self.log_z, engine=engine,
            details=details,
        )  # fmt: skip
        keys = target_keys(model, question)
        more: dict[str, Any] = {
            "r_hat": ByTarget(keys, self.wants, self.cells["r_hat"], question.batched),
            "effective_draws": ByTarget(keys, self.wants, self.cells["effective"], question.batched),
        }
        if self.kept is not None:
            names = [var.name for var in model.vars]
            more["chains"] = {names[v]: self.kept[:, :, j] for j, v in enumerate(_recorded(question))}
        return answer.replace(details={**answer.details, **more})


def _recorded(question: Question) -> list[int]:
    """Variables whose draws are kept: the targets, members of joints included."""
    return list(dict.fromkeys((*question.targets, *(v for members in question.joints for v in members))))


def impossible_case(cases: Cases, part: Sliced) -> bool:
    """Whether a factor, or the likelihoods of a free variable, allow no state at all."""
    if part.constant == -np.inf:
        return True
    if part.unary.min(initial=1.0) > 0:
        return False
    top = np.maximum.reduceat(part.unary, cases.unary_ptr[:-1])
    return bool((top[part.active] <= 0).any())


def _zeros(cases: Cases, part: Sliced) -> dict[str, None]:
    """Variables (first-seen order) of tables with zeros and more than one variable."""
    found: dict[str, None] = {}
    if not len(part.values) or part.values.min() > 0:
        return found
    has = np.add.reduceat(part.values == 0, part.value_ptr[:-1]) > 0
    for f in np.flatnonzero(has & (np.diff(part.scope_ptr) > 1)):
        scope = part.scope_idx[part.scope_ptr[f] : part.scope_ptr[f + 1]]
        found.update({cases.low.variables[v].name: None for v in scope})
    return found
