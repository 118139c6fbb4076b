"""The compiled junction tree: exact answers for one case or a million."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gramgraph._progress import Report
from gramgraph.answers import Answer
from gramgraph.compile.cache import forget_large, memory_pool, remember
from gramgraph.compile.compared import with_later_orders, within_told_bytes
from gramgraph.compile.lower import Lowered, lower
from gramgraph.compile.range import may_underflow, needs_logs
from gramgraph.compile.tree import TreePlan, plan_tree
from gramgraph.compile.width import is_too_wide, wider_than_any
from gramgraph.data.map_reduce import in_order
from gramgraph.engines.base import PLAIN, Best, Drawn, Engine, Run
from gramgraph.engines.exact.factor_tree import FactorTree
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.repeated import BestCase, TableCase, TreeCase
from gramgraph.engines.exact.smaller import (
    Smaller,
    may_shrink,
    rough_key,
    rough_tree,
    smaller_case,
    smaller_cases,
    whole_answer,
)
from gramgraph.engines.exact.tree_runner import NO_WEIGHTS, TreeRunner
from gramgraph.exceptions import BudgetError
from gramgraph.questions.question import Question, over_rows
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

T = TypeVar("T")

#: Up to this many cells one tree serves every set of observed variables; beyond, observed variables are cut out.
GENERAL_CELLS = 20_000
#: Rows with the same observed variables get a tree of their own when there are at least this many of them.
ROWS_PER_PATTERN = 32
#: That share of the rows is looked at first, which often shows too many patterns already.
FIRST_ROWS = 16
#: From this size on a tree of its own pays even for a single row.
LARGE_CELLS = 500_000
#: What the program of a tree holds for each clique, beside its cells.
NUMBERS_PER_CLIQUE = 60
#: Where cliques are smaller than this in the mean, planning a tree takes longer than running a larger one.
NARROW_CELLS = 100
#: From this many cells on zeros are followed before a tree for one case is made, if they leave at most this share of
#: them; beyond the last number no tree fits, and whatever they leave is welcome. Below it the tree, which is made once
#: for all cases, answers in less time than following takes: a look at an entry of a table is as dear as so many cells.
SHRINK_CELLS, SHRINK_GAIN, NEVER_FITS = 20_000_000, 0.7, 1e11
CELLS_AN_ENTRY = 20
#: A table of cases with more patterns than this leaves no trees behind.
KEPT_PATTERNS = 16


class Job(NamedTuple):
    """Cases that run on one tree."""

    runner: TreeRunner
    outputs: Outputs
    rows: Array | None  # which cases; None = all
    codes: IntArray
    mask_columns: IntArray
    weights: FloatArray
    weight_column: IntArray


class Work(NamedTuple):
    """A job that is still to be planned; plans that leave no trace can be made at the same time."""

    make: Callable[[], Job]
    cases: int
    apart: bool = False


class Part(NamedTuple):
    """What one job found."""

    rows: Array | None
    outputs: Outputs
    out: FloatArray
    log_z: FloatArray
    tables: list[FloatArray]  # the joint tables


class Kept:
    """A tree in the model's cache, with its runner once that was needed."""

    __slots__ = ("plan", "runner")

    def __init__(self, plan: TreePlan) -> None:
        self.plan = plan
        self.runner: TreeRunner | None = None

    @property
    def numbers(self) -> float:
        """About how many numbers the tree holds, by which the cache bounds what it keeps."""
        return self.plan.cells + NUMBERS_PER_CLIQUE * self.plan.n_cliques


class JunctionTree(Engine):
    """Exact inference by messages on a junction tree, compiled to flat table operations.

    Cost: proportional to the number of table cells (`plan.cells`) per case; memory likewise.
    """

    name = "junction_tree"
    exact = True
    runs_tree_code = True

    def repeated(self, model: GraphicalModel, question: Question) -> TreeCase | None:
        """The question, ready for any case of plain observations, or for those of the same variables; None where such a
        tree would be too large."""
        found = _ready(model, lower(model), question)
        return None if found is None else TreeCase(model, *found, question.everything)

    def repeated_best(self, model: GraphicalModel, question: Question) -> BestCase | None:
        """The same for the most probable assignment."""
        low = lower(model, maximum=True)
        found = None if needs_logs(low) else _ready(model, low, question, complete=True)
        return None if found is None else BestCase(model, found[0])

    def repeated_table(self, model: GraphicalModel, question: Question, *, best: bool = False) -> TableCase | None:
        """The question, ready for any table of about as many cases with the same variables observed in all of them;
        None where a single tree does not do."""
        low = lower(model, maximum=best)
        if question.joints or question.n_cases < 2 or needs_logs(low):
            return None
        job = next(_jobs(model, low, question, None, complete=best)).make()
        if job.rows is not None or job.runner.plan.cells > LARGE_CELLS:  # large trees are kept in one place alone
            return None
        return TableCase(job, question.observed, question.hidden(model))

    def plan(self, model: GraphicalModel, question: Question, *, maximum: bool = False) -> TreePlan:
        """The tree for the question when all its observed variables are observed in every case: the one that serves
        every set of observed variables where that is small, and answers single cases."""
        low = lower(model, maximum=maximum)
        if _is_few(question.n_cases) and (general := _general_tree(model, low, question, None)) is not None:
            return general[0].plan
        sliced, masked = _split(low, question, question.observed)
        outputs = Outputs.of(model, question.targets, question.joints, sliced)
        return _kept_tree(model, low, outputs, sliced, masked, question.n_cases, told=True).plan

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Marginals, joint tables and log p(e) of every case; NaN and -inf where the evidence is impossible.

        Where the tree is large or does not fit, zeros of the tables are followed first: often they leave a small one.
        """
        low = lower(model)
        if _pays(model, low, question):
            small = smaller_case(low, question)
            if _gains(model, low, question, small):
                return self._from_smaller(model, question, [small], run)
        try:
            return self._answer(model, question, run)
        except BudgetError:
            if not may_shrink(low, question, hopeless=True):
                raise
        return self._from_smaller(model, question, smaller_cases(low, question), run)

    def _from_smaller(
        self, model: GraphicalModel, question: Question, smalls: Iterable[Smaller | None], run: Run
    ) -> Answer:
        """The answer from what zeros leave of the model for each case; None: nothing is possible."""
        each = [None if small is None else (small, self._of_smaller(small, question, run)) for small in smalls]
        return whole_answer(model, question, each, engine=self.name)

    def _of_smaller(self, small: Smaller, question: Question, run: Run) -> Answer:
        if rough_tree(small.model, memory=run.memory) is None:
            raise wider_than_any()
        return self._answer(small.model, small.question(question), run)

    def _answer(self, model: GraphicalModel, question: Question, run: Run) -> Answer:
        low = lower(model)
        if needs_logs(low, question):
            try:
                found = FactorTree(log_space=True).answer(model, question, run)
                return found.replace(engine=self.name, details={**found.details, "in_logarithms": True})
            except BudgetError:  # the tree without the observed variables may fit, and it notices most of what is lost
                pass
        question, constant = _without_constants(low, question)
        cases = question.n_cases
        out: FloatArray | None = None
        log_z = np.empty(cases)
        blocks: dict[int, FloatArray] = {}
        outputs: Outputs | None = None

        def work(job: Job, run: Run) -> Part:
            return _sums(model, low, question, job, run)

        for rows, outputs, part, part_z, tables in _run_jobs(work, _jobs(model, low, question, run.memory), run):
            for number, table in enumerate(tables):
                if rows is None:
                    blocks[number] = table
                else:
                    blocks.setdefault(number, np.empty((cases, *table.shape[1:])))[rows] = table
            if rows is None:
                out, log_z = part, part_z
            else:
                if out is None:
                    out = np.empty((cases, outputs.n_marginals))
                out[rows] = part[:, : outputs.n_marginals]
                log_z[rows] = part_z
        if out is None or outputs is None:  # a table without rows
            outputs = Outputs.of(model, question.targets, question.joints, ())
            out = np.empty((0, outputs.width))
            blocks = {i: np.empty((0, *[low.sizes[v] for v in joint])) for i, joint in enumerate(question.joints)}
        if constant is not None:
            log_z += constant
            for table in (out, *blocks.values()):
                table[constant == -np.inf] = np.nan
        return outputs.answer(model, question, out, log_z, blocks, engine=self.name)

    def totals(
        self, model: GraphicalModel, question: Question, weights: FloatArray
    ) -> tuple[list[FloatArray], FloatArray]:
        """Σ over cases of weight · p(joint | case) for every joint of a question without likelihoods, and log p(e).

        The tables of the single cases, of which there may be many, are not made where that can be avoided.
        """
        low = lower(model)
        log_z, sums = np.empty(question.n_cases), [np.zeros([low.sizes[v] for v in joint]) for joint in question.joints]

        def work(job: Job, run: Run) -> Part:
            return _sums(model, low, question, job, run, weights if job.rows is None else weights[job.rows])

        if not _pays(model, low, question) and not needs_logs(low, question):
            try:
                for rows, _, _, part_z, tables in _run_jobs(work, _jobs(model, low, question, None), PLAIN):
                    log_z[slice(None) if rows is None else rows] = part_z
                    sums = [total + table for total, table in zip(sums, tables, strict=True)]
                return sums, log_z
            except BudgetError:  # `answer` knows what else to try
                pass
        found = self.answer(model, question)
        names = [tuple(model.vars[v].name for v in joint) for joint in question.joints]
        sums = [np.tensordot(weights, found[name].probabilities, axes=1) for name in names]
        return sums, np.asarray(found.log_evidence)

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """The most probable states of all variables; zeros are followed first where the tree is large."""
        low = lower(model, maximum=True)
        if _pays(model, low, question, complete=True):
            small = smaller_case(low, question, complete=True)
            if _gains(model, low, question, small, complete=True):
                return self._best_of_smaller(low, small, run)
        try:
            return self._best(model, question, run)
        except BudgetError:
            if not may_shrink(low, question, hopeless=True):
                raise
        each = [self._best_of_smaller(low, small, run) for small in smaller_cases(low, question, complete=True)]
        return Best(*(np.concatenate(part) for part in zip(*(found[:3] for found in each), strict=True)))

    def _best_of_smaller(self, low: Lowered, small: Smaller | None, run: Run) -> Best:
        """The best states of one case from what zeros leave of the model; None: nothing is possible."""
        if small is None:
            nothing = np.full(1, -np.inf)
            return Best(np.zeros((1, low.n_visible), np.int64), nothing, nothing)
        found = self._best(small.model, small.nothing_seen, run)
        value = found.log_prob + small.log_scale
        return Best(small.states(found.states)[:, : low.n_visible], value, value)

    def _best(self, model: GraphicalModel, question: Question, run: Run) -> Best:
        low = lower(model, maximum=True)
        if needs_logs(low, question):
            try:
                return FactorTree().best(model, question, run)
            except BudgetError:
                pass
        question, constant = _without_constants(low, question)
        wanted = replace(question, targets=(), joints=())
        check = may_underflow(low, question)
        states = np.zeros((question.n_cases, low.n_visible), np.int64)
        log_p = np.empty(question.n_cases)

        def work(job: Job, run: Run) -> tuple[Array | slice, IntArray, FloatArray]:
            found, value = job.runner.best(
                job.codes, job.mask_columns,
                weights=job.weights, weight_column=job.weight_column, n_jobs=run.n_jobs, report=run.report,
            )  # fmt: skip
            if check and not np.isfinite(value).all():
                value[_possible(job, np.flatnonzero(np.isneginf(value)))] = np.nan
            return slice(None) if job.rows is None else job.rows, found[:, : low.n_visible], value

        for rows, found, value in _run_jobs(work, _jobs(model, low, wanted, run.memory, complete=True), run):
            states[rows], log_p[rows] = found, value
        vague = np.flatnonzero(np.isnan(log_p))
        if len(vague):
            states[vague], log_p[vague], *_ = FactorTree().best(model, wanted.of_rows(vague), run)
        log_p = log_p if constant is None else log_p + constant
        return Best(states, log_p, log_p)

    def draw(self, model: GraphicalModel, question: Question, n: int, run: Run = PLAIN) -> Drawn:
        """n exact draws of all variables given one case of evidence."""
        low = lower(model)
        if needs_logs(low, question):
            return FactorTree().draw(model, question, n, run)
        job = next(_jobs(model, low, replace(question, targets=(), joints=()), run.memory, complete=True)).make()
        states, log_z = job.runner.draw(
            n, job.codes, job.mask_columns, run.generator, weights=job.weights, weight_column=job.weight_column
        )
        if np.isnan(log_z) or (log_z == -np.inf and may_underflow(low, question)):  # lost on the way, or impossible
            return FactorTree().draw(model, question, n, run)
        return Drawn(states[:, : low.n_visible], log_z)


def rough_cells(
    model: GraphicalModel, low: Lowered, question: Question, complete: bool
) -> tuple[tuple[object, ...], float]:
    """About how many cells the tree has in which observed variables are cut out, infinitely many where none could fit;
    and where that is remembered."""
    sliced, masked = _split(low, question, tuple(sorted(question.always)))
    key = _rough_key(low, question, complete, sliced, masked)
    cells: float | None = model.plans.get(key)
    if cells is None:
        cells = np.inf
        prune = not complete and low.parents is not None
        if prune or not is_too_wide(low, ~np.isin(np.arange(len(low.sizes)), sliced)):
            outputs = _outputs(model, replace(question, targets=(), joints=()) if complete else question, sliced)
            cells = _kept_tree(model, low, outputs, sliced, masked, 0, complete=complete).plan.cells
        remember(model, key, cells)
    return key, cells


def _rough_key(
    low: Lowered, question: Question, complete: bool, sliced: tuple[int, ...], masked: tuple[int, ...]
) -> tuple[object, ...]:
    prune = not complete and low.parents is not None
    return ("rough", low.form, complete, prune and (question.targets, question.joints), sliced, masked)


def _pays(model: GraphicalModel, low: Lowered, question: Question, complete: bool = False) -> bool:
    """Whether the tree for one case is so large that it is worth following zeros first."""
    if question.n_cases != 1 or not may_shrink(low, question):
        return False
    return rough_cells(model, low, question, complete)[1] > SHRINK_CELLS + CELLS_AN_ENTRY * low.values.size


def _gains(
    model: GraphicalModel, low: Lowered, question: Question, small: Smaller | None, complete: bool = False
) -> bool:
    """Whether what zeros leave has a much smaller tree; where not, that is remembered for these observed variables."""
    if small is None:
        return True
    key, cells = rough_cells(model, low, question, complete)
    if cells > NEVER_FITS:
        return True
    tree = rough_tree(small.model)
    left = np.inf if tree is None else tree.cells
    if left > SHRINK_GAIN * cells:
        remember(model, key, 0.0)
    return left <= SHRINK_GAIN * cells


def _run_jobs(work: Callable[[Job, Run], T], jobs: Iterable[Work], run: Run) -> Iterator[T]:
    """work(job, run) of all jobs in their order: threads share the cases of one job, or jobs that stand apart."""
    done = 0
    waiting = list(jobs)
    if run.n_jobs == 1 or run.memory is not None or len(waiting) == 1 or not all(one.apart for one in waiting):
        for one in waiting:
            yield work(one.make(), replace(run, report=_after(run.report, done)))
            done += one.cases
        return
    alone = replace(run, n_jobs=1, report=None)
    found = in_order(lambda one: work(one.make(), alone), waiting, n_jobs=run.n_jobs)
    for one, part in zip(waiting, found, strict=True):
        yield part
        done += one.cases
        if run.report is not None:
            run.report(done)


def _sums(
    model: GraphicalModel, low: Lowered, question: Question, job: Job, run: Run, weights: FloatArray | None = None
) -> Part:
    """Marginals, joint tables (with weights of the cases: their weighted sums) and log p(e) of the cases of one job."""
    outputs, n = job.outputs, len(job.codes)
    out, log_z = np.empty((n, outputs.width)), np.empty(n)
    job.runner.sums(
        job.codes, job.mask_columns, out, log_z,
        weights=job.weights, weight_column=job.weight_column, n_jobs=run.n_jobs, report=run.report,
    )  # fmt: skip
    rescued = None if np.isfinite(log_z).all() else _rescue(model, question, job, out, log_z)
    seen = {v: job.codes[:, column] for column, v in enumerate(job.runner.plan.sliced)} if outputs.joints else {}
    if weights is not None and rescued is None:
        return Part(job.rows, outputs, out, log_z, outputs.joint_totals(job.runner.plan, out, weights, low.sizes, seen))
    tables = []
    for number in range(len(outputs.joints)):
        table = outputs.joint_table(job.runner.plan, number, out, low.sizes, seen)
        table[~np.isfinite(log_z)] = np.nan
        if rescued is not None:
            names = tuple(model.vars[v].name for v in question.joints[number])
            table[rescued[0]] = rescued[1][names].probabilities
        tables.append(table if weights is None else np.tensordot(weights, table, axes=1))
    return Part(job.rows, outputs, out, log_z, tables)


def _after(report: Report | None, before: int) -> Report | None:
    """The same report, counted from the cases that earlier jobs have done."""
    return None if report is None else lambda done: report(before + done)


def _without_constants(low: Lowered, question: Question) -> tuple[Question, FloatArray | None]:
    """The question without likelihoods of single-state variables, which no table holds, and their logs, (cases,)."""
    single = [w for v, w in question.likelihoods if low.sizes[v] == 1]
    if not single:
        return question, None
    with np.errstate(divide="ignore"):
        constant = sum(np.broadcast_to(np.log(w[..., 0]), question.n_cases) for w in single)
    kept = tuple((v, w) for v, w in question.likelihoods if low.sizes[v] > 1)
    return replace(question, likelihoods=kept), np.array(constant)


def _split(low: Lowered, question: Question, observed: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(variables to slice out, variables that carry a likelihood) when `observed` are observed in every case."""
    weighted = {v for v, _ in question.likelihoods}
    cut = np.array(observed, np.int64)
    cut = np.sort(cut[low.sizes[cut] > 1]).tolist()
    sliced = tuple([v for v in cut if v not in weighted] if weighted else cut)
    masked = tuple(sorted(v for v in weighted if low.sizes[v] > 1))
    return sliced, masked


def _kept_tree(
    model: GraphicalModel,
    low: Lowered,
    outputs: Outputs,
    sliced: tuple[int, ...],
    masked: tuple[int, ...],
    cases: int,
    *,
    complete: bool = False,
    keep: bool = True,
    memory: float | None = None,
    told: bool = False,
) -> Kept:
    """A tree, from the model's cache when the same tables were asked for with the same observed variables.

    Unless the tree must be `complete` (an explanation or a sample wants every variable), barren nodes are left out.
    With `keep` false a new one is not remembered; with no cases none is searched for, and the first one is remembered
    where a single case would not be worth a search. One whose memory will be `told` takes no more of it than those with
    less observed have told.
    """
    prune = not complete and low.parents is not None and len(outputs.wants) < low.n_visible
    key = ("tree", low.form, prune, *outputs.key, sliced, masked, cases >= 100)
    found: Kept | None = model.plans.get(key)
    if found is None:
        if memory is not None:
            forget_large(model)  # what other questions left behind counts too
        plan = plan_tree(
            low, sliced=sliced, masked=masked, wants=outputs.wants, columns=outputs.columns, prune=prune, cases=cases,
            memory=memory, keep_order=keep,
        )  # fmt: skip
        found = Kept(plan)
        if keep and (cases or not plan.is_worth_a_search(1)):
            remember(model, key, found, cells=found.numbers)
    elif (plan := with_later_orders(found.plan)) is not found.plan:
        found = Kept(plan)
        remember(model, key, found, cells=found.numbers)
    if told and (plan := within_told_bytes(found.plan)) is not found.plan:
        found = Kept(plan)
        remember(model, key, found, cells=found.numbers)
    return found


def _runner(model: GraphicalModel, kept: Kept, memory: float | None) -> TreeRunner:
    """The tree's runner, compiled on first use, after a look at the memory it needs."""
    found = kept.runner
    if found is None or memory is not None:
        kept.plan.check_budget(memory)
    if found is None:
        found = kept.runner = TreeRunner(kept.plan, memory_pool(model))
    return found


def _is_few(cases: int) -> bool:
    """Whether so few cases run on one tree for every set of observed variables, where there is one."""
    return cases == 1 or cases * 4 < ROWS_PER_PATTERN


def _general(
    model: GraphicalModel, low: Lowered, question: Question, memory: float | None
) -> tuple[TreeRunner, Outputs] | None:
    """One tree for every set of observed variables, ready to run, when it is small enough; None otherwise."""
    found = _general_tree(model, low, question, memory)
    return None if found is None else (found[0].runner or _runner(model, found[0], memory), found[1])


def _general_tree(
    model: GraphicalModel, low: Lowered, question: Question, memory: float | None
) -> tuple[Kept, Outputs] | None:
    """The same without its runner. Of a model that has no such tree every other one is remembered."""
    key = ("general", low.form, question.targets, question.joints)
    found: tuple[Kept | None, Outputs] | None = model.plans.get(key)
    if found is None:
        # no tree has fewer cells than two for each variable with several states
        if 2 * len(low.sizes) > GENERAL_CELLS and 2 * np.count_nonzero(low.sizes > 1) > GENERAL_CELLS:
            low.seen_orders.every = True
            return None
        rough: TreePlan | None = model.plans.get(rough_key(low))
        cells = model.plans.get(_rough_key(low, question, False, (), ()), 0.0) if rough is None else rough.cells
        if cells > GENERAL_CELLS or is_too_wide(low):
            low.seen_orders.every = True
            return None
        outputs = Outputs.of(model, question.targets, question.joints, ())
        masked = tuple([v for v, size in enumerate(low.sizes[: low.n_visible].tolist()) if size > 1])
        # no case, no search: where a better order would pay, this tree is too large to be used anyway
        plan = plan_tree(low, masked=masked, wants=outputs.wants, columns=outputs.columns, cases=0, memory=memory)
        found = (Kept(plan) if plan.cells <= GENERAL_CELLS else None, outputs)
        remember(model, key, found)
    tree, outputs = found
    if tree is None:
        low.seen_orders.every = True
        return None
    if memory is not None:  # the tree may have been made for a question with more memory
        tree.plan.check_budget(memory)
    return tree, outputs


def _ready(
    model: GraphicalModel, low: Lowered, question: Question, *, complete: bool = False
) -> tuple[TreeRunner, Outputs] | None:
    """A tree for other cases like this one: for all of them, or for those in which the same variables are observed."""
    found = _general(model, low, question, None)
    if found is not None or not question.observed:
        return found
    job = next(_jobs(model, low, question, None, complete=complete)).make()
    return None if job.runner.plan.cells > LARGE_CELLS else (job.runner, job.outputs)


def _jobs(
    model: GraphicalModel, low: Lowered, question: Question, memory: float | None, *, complete: bool = False
) -> Iterator[Work]:
    """Group the cases by the tree that serves them best; `complete` trees keep every variable, wanted or not."""
    cases = question.n_cases
    if cases == 0:
        return
    codes = question.codes
    if _is_few(cases):
        general = _general(model, low, question, memory)
        if general is not None:
            yield Work(partial(_job, *general, question, None), cases)
            return
    seen = codes >= 0
    every = over_rows(np.logical_and, seen)
    make = partial(_sliced_job, model, low, question, memory=memory, complete=complete)
    if cases > 1 and not (every | ~over_rows(np.logical_or, seen)).all():
        found = _patterns(seen[: -(-cases // FIRST_ROWS)])  # of all rows there are no fewer
        if len(found[0]) * ROWS_PER_PATTERN <= cases:
            found = _patterns(seen)
        if len(found[0]) * ROWS_PER_PATTERN <= cases or _masked_cells(model, low, question, memory) > LARGE_CELLS:
            patterns, member = found if len(found[1]) == cases else _patterns(seen)
            many = len(patterns) > KEPT_PATTERNS
            for number, pattern in enumerate(patterns):
                rows = np.flatnonzero(member == number)
                yield Work(partial(make, pattern, rows, keep=not many), len(rows), apart=many)
            return
    yield Work(partial(make, every, None), cases)


def _outputs(model: GraphicalModel, question: Question, sliced: tuple[int, ...]) -> Outputs:
    """Where the wanted tables stand; kept where it does not depend on the observed variables, which may differ much."""
    if question.joints and sliced:
        return Outputs.of(model, question.targets, question.joints, sliced)
    key = ("outputs", question.targets, question.joints)
    found: Outputs | None = model.plans.get(key)
    return found or remember(model, key, Outputs.of(model, question.targets, question.joints, ()))


def _patterns(seen: Array) -> tuple[Array, IntArray]:
    """The distinct rows of a boolean table, and which of them each row is; rows are compared as strings of bits."""
    bits = np.packbits(seen, axis=1)
    if bits.shape[1] <= 8:  # numbers are compared much quicker than strings
        words = np.zeros((len(seen), 8), np.uint8)
        words[:, 8 - bits.shape[1] :] = bits
        keys = words.view(">u8").astype(np.uint64).reshape(-1)
    else:
        keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}").reshape(-1)
    _, first, member = np.unique(keys, return_index=True, return_inverse=True)
    return seen[first], member.reshape(-1)


def _masked_cells(model: GraphicalModel, low: Lowered, question: Question, memory: float | None) -> float:
    """About how large the tree is from which no observed variable is cut out; 0 where cutting saves little."""
    outputs = _outputs(model, question, ())
    plan = plan_tree(low, wants=outputs.wants, columns=outputs.columns, cases=0, memory=memory)
    return plan.cells if plan.cells > NARROW_CELLS * plan.n_cliques else 0.0


def _sliced_job(
    model: GraphicalModel,
    low: Lowered,
    question: Question,
    always: Array,
    rows: Array | None,
    *,
    memory: float | None,
    complete: bool,
    keep: bool = True,
) -> Job:
    """A job whose `always` columns are cut out of the tree; other observed columns of its rows are masked."""
    observed = question.observed
    sliced, masked = _split(low, question, np.array(observed, np.int64)[always])
    if rows is None and not always.all():
        some = over_rows(np.logical_or, question.codes >= 0)
        extra = {v for j, v in enumerate(observed) if some[j] and v not in sliced and low.sizes[v] > 1}
        masked = tuple(sorted(extra.union(masked)))
    outputs = _outputs(model, question, sliced)
    cases = question.n_cases if rows is None else len(rows)
    tree = _kept_tree(model, low, outputs, sliced, masked, cases, complete=complete, keep=keep, memory=memory)
    runner = _runner(model, tree, memory)
    return _job(runner, outputs, question, rows)


def _job(runner: TreeRunner, outputs: Outputs, question: Question, rows: Array | None) -> Job:
    """Put the codes in the order of the plan: sliced variables first, then masked ones."""
    plan = runner.plan
    codes = question.codes if rows is None else question.codes[rows]
    place = np.full(len(plan.lowered.sizes), -1, np.int64)  # variable → column of the question
    place[np.array(question.observed, np.int64)] = np.arange(len(question.observed))
    order = place[np.array(plan.sliced, np.int64)]
    mask_columns = runner.no_weights.copy()
    if plan.masked:
        masked = place[np.array(plan.masked, np.int64)]
        here = np.flatnonzero(masked >= 0)
        mask_columns[here] = len(order) + np.arange(len(here))
        order = np.concatenate([order, masked[here]])
    if not len(order):
        codes = np.zeros((len(codes), 1), np.int64)
    elif len(order) != codes.shape[1] or (order != np.arange(len(order))).any():
        codes = codes[:, order]
    weights, weight_column = NO_WEIGHTS, runner.no_weights
    if question.likelihoods:
        weights, weight_column = _weights(plan, question, rows, len(codes))
    return Job(runner, outputs, rows, np.ascontiguousarray(codes), mask_columns, weights, weight_column)


def _weights(plan: TreePlan, question: Question, rows: Array | None, cases: int) -> tuple[FloatArray, IntArray]:
    column = np.full(len(plan.masked), -1, np.int64)
    parts: list[FloatArray] = []
    at = 0
    per_case = any(w.ndim == 2 for _, w in question.likelihoods)
    for v, w in question.likelihoods:
        if v not in plan.slot_of:  # a variable with one state: its weight is a constant
            continue
        column[plan.slot_of[v]] = at
        at += w.shape[-1]
        if w.ndim == 2 and rows is not None:
            w = w[rows]
        parts.append(np.broadcast_to(w, (cases, w.shape[-1])) if per_case else w.reshape(1, -1))
    weights = np.ascontiguousarray(np.concatenate(parts, axis=1)) if parts else NO_WEIGHTS
    return weights, column


def _possible(job: Job, lost: IntArray) -> IntArray:
    """Those of the `lost` cases of a job, whose sums or maxima are zero, that the zeros of the tables allow."""
    _, value = job.runner.best(
        np.ascontiguousarray(job.codes[lost]),
        job.mask_columns,
        weights=job.weights[lost] if job.weights.shape[0] > 1 else job.weights,
        weight_column=job.weight_column,
        support_only=True,
    )
    return lost[np.isfinite(value)]


def _rescue(
    model: GraphicalModel, question: Question, job: Job, out: FloatArray, log_z: FloatArray
) -> tuple[IntArray, Answer] | None:
    """Cases whose sums came out as zero: really impossible (NaN), or out of the range of doubles (again, in logs)."""
    lost = np.flatnonzero(np.isneginf(log_z))
    vague = np.flatnonzero(np.isnan(log_z))
    out[lost] = np.nan
    possible = np.sort(np.concatenate([vague, _possible(job, lost)]))
    if not len(possible):
        return None
    rows = possible if job.rows is None else job.rows[possible]
    part = replace(question.of_rows(rows), batched=True)
    answer = FactorTree(log_space=True).answer(model, part)
    log_z[possible] = answer.log_evidence
    for name, (_, start, stop) in job.outputs.marginals.items():
        out[possible, start:stop] = answer[name].probabilities
    return possible, answer
