"""Gibbs sampling, compiled: several chains over Markov blankets, with errors, effective sizes and R-hat."""

from __future__ import annotations

import warnings
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.budget import check_memory
from gramgraph.compile.lower import lower
from gramgraph.compile.question import Question
from gramgraph.engines.approximate import ApproximatePlan, Cases, check_options, parse_budget, whole
from gramgraph.engines.importance import Wants, sampled_answer, sampler
from gramgraph.engines.mean_field import Sliced, slice_case
from gramgraph.exceptions import ModelError, listing
from gramgraph.typing import Array, FloatArray, IntArray, RandomState

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["Gibbs", "MixingWarning"]

OPTIONS = ("n_chains", "burn_in")
DRAWS, BATCH_DRAWS, CHAINS = 40_000, 4_000, 4
#: Each chain is cut into this many pieces, whose means give the standard error.
BATCHES = 24
#: Uniform numbers that are drawn at a time.
NUMBERS = 1 << 16
FIRST_SWEEPS, FIRST_ROUNDS = 50, 20
FIRST_DRAWS = 200
#: Cells of the conditional table of one variable given its blanket, and of all of them together, at most.
ROW_CELLS, ROWS_CELLS = 512, 1 << 23
#: R-hat above this is reported by a warning.
HIGH_R_HAT = 1.1


class MixingWarning(UserWarning):
    """Chains that did not, or may not, reach all of the distribution."""


class Compiled(NamedTuple):
    """One case ready for sweeps."""

    variables: IntArray  # the free ones, in the order of a sweep
    var_ptr: IntArray
    base: IntArray
    own: IntArray
    other_ptr: IntArray
    other_idx: IntArray
    other_stride: IntArray
    values: FloatArray
    sizes: IntArray
    unary: FloatArray
    unary_ptr: IntArray


class Rows(NamedTuple):
    """Conditional tables of the free variables given their Markov blankets, equal ones written once."""

    ptr: IntArray  # (free + 1,) into the two next
    idx: IntArray  # members of the blankets
    stride: IntArray  # of each member among the rows
    at: IntArray  # (free,) where the rows of a variable begin, -1 for a blanket that is too wide
    table: FloatArray  # p(v ≤ x | blanket) for all states x but the last


class Gibbs:
    """Each variable in turn is drawn given its Markov blanket, in `n_chains` chains after `burn_in` sweeps.

    Works on directed and undirected models. `budget` is the number of sweeps that are kept, over all chains, or a time
    ("5s"); `burn_in` is a fifth of a chain by default. Cost of a sweep: O(Σ_v factors of v × variables of each). The
    standard errors come from the means of pieces of the chains, `r_hat` from halves of chains (1 is mixed; above 1.1
    there is a `MixingWarning`), `effective_draws` from both. log p(e) is not estimated: it is NaN.

    Zeros in the tables can lock a chain into a part of the states for ever; there is a warning when there are zeros
    among the unobserved variables, and chains start from different draws, so that R-hat can tell.

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(2, 2, coupling=0.3, field=0.1)
    >>> answer = net.query("x0_0", engine="gibbs", random_state=0)
    >>> error = answer.details["standard_error"]["x0_0"]
    >>> exact = net.query("x0_0")
    >>> bool((abs(answer["x0_0"].probabilities - exact["x0_0"].probabilities) < 4 * error).all())
    True
    >>> answer.details["max_r_hat"] < 1.01
    True
    """

    name = "gibbs"
    exact = False

    def plan(self, model: GraphicalModel, question: Question) -> ApproximatePlan:
        """The tables that are read."""
        return ApproximatePlan.of(self.name, lower(model, structured=False))

    def answer(
        self,
        model: GraphicalModel,
        question: Question,
        *,
        memory: float | None = None,
        random_state: RandomState = None,
        budget: Any = None,
        **options: Any,
    ) -> Answer:
        """Estimates for every case, with errors and diagnostics in `details`."""
        check_memory(memory)
        check_options(self.name, list(options), OPTIONS)
        chains = whole("n_chains", options.get("n_chains", CHAINS), 2)
        burn_in = options.get("burn_in")
        burn_in = burn_in if burn_in is None else whole("burn_in", burn_in, 0)
        draws, seconds = parse_budget(budget, BATCH_DRAWS if question.batched else DRAWS)
        rng = np.random.default_rng(random_state)
        cases = Cases.of(model, question, structured=False)
        wants = Wants.of(cases.low.sizes, (*((v,) for v in question.targets), *question.joints))
        n = question.n_cases
        found = {key: np.full((n, wants.cells), np.nan) for key in ("p", "error", "r_hat", "effective")}
        log_z, made = np.full(n, -np.inf), np.zeros(n, np.int64)
        zeros: dict[str, None] = {}
        for case in range(n):
            part = slice_case(cases, case)
            if part.constant == -np.inf:
                continue
            zeros.update(_zeros(cases, part))
            seconds_left = None if seconds is None else seconds / n
            counts, length = _chains(model, cases, part, case, wants, chains, draws, burn_in, seconds_left, rng)
            made[case], log_z[case] = counts.shape[0] * counts.shape[1] * length, np.nan
            p, error, r_hat, effective = diagnose(counts, length)
            for key, value in zip(found, (p, error, r_hat, effective), strict=True):
                found[key][case] = value
        worst = _worst(found["r_hat"])
        _warn(zeros, worst)
        details = {"draws": made, "n_chains": chains, "max_r_hat": worst, "min_effective_draws": _least(found)}
        answer = sampled_answer(
            model, question, wants, found["p"], found["error"], log_z, engine=self.name, details=details
        )
        for key in ("r_hat", "effective"):
            tables = {name: wants.table(t, found[key]) for t, name in enumerate(answer.details["standard_error"])}
            shaped = tables if question.batched else {name: table[0] for name, table in tables.items()}
            answer.details = {**answer.details, "effective_draws" if key == "effective" else key: shaped}
        return answer


def _worst(r_hat: FloatArray) -> FloatArray:
    """The largest R-hat of each case; 1 where nothing was drawn."""
    return np.asarray(np.fmax.reduce(r_hat, axis=1, initial=1.0))


def _least(found: dict[str, FloatArray]) -> FloatArray:
    return np.asarray(np.fmin.reduce(found["effective"], axis=1, initial=np.inf))


def _warn(zeros: dict[str, None], worst: FloatArray) -> None:
    """Say so when chains did not mix, or when zeros may have kept them from it."""
    if len(worst) and worst.max() > HIGH_R_HAT:
        warnings.warn(
            f"the chains disagree (R-hat {worst.max():.3g}, should be near 1): the probabilities are not to be trusted."
            + " More sweeps (budget=…) may help; with zeros in the tables they may not, and an exact engine or "
            + 'engine="bp" is better.',
            MixingWarning,
            stacklevel=5,
        )
    elif zeros:
        warnings.warn(
            f"the tables of {listing(zeros, 5)} have zeros: a chain may be locked into a part of the states, which "
            + "R-hat shows only when other chains are elsewhere",
            MixingWarning,
            stacklevel=5,
        )


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


def diagnose(
    counts: FloatArray,  # (chains, pieces, cells)
    length: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(p, standard error, R-hat, effective draws) of every cell, from its counts in pieces of `length` sweeps.

    >>> counts = np.array([[[5.0], [5.0]], [[5.0], [5.0]]])
    >>> [float(x[0].round(2)) for x in diagnose(counts, 10)]
    [0.5, 0.0, 0.95, 40.0]
    """
    chains, pieces, _ = counts.shape
    means = counts / length
    p = means.mean(axis=(0, 1))
    error = np.sqrt(means.var(axis=(0, 1), ddof=1) / (chains * pieces)) if chains * pieces > 1 else np.ones_like(p)
    half = max(pieces // 2, 1)
    halves = np.concatenate([means[:, :half].mean(axis=1), means[:, -half:].mean(axis=1)])
    n = half * length
    within = (halves * (1 - halves)).mean(axis=0) * n / max(n - 1, 1)
    between = halves.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((n - 1) / n + between / within)
        r_hat = np.where(within > 0, r_hat, np.where(between > 1e-24, np.inf, 1.0))
        # chains that disagree: their means are the only independent numbers
        apart = means.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(chains)
        error = np.where(r_hat > HIGH_R_HAT, np.maximum(error, apart), error)
        total = chains * pieces * length
        effective = np.where(error > 0, p * (1 - p) / error**2, total)
    effective = np.clip(np.where(p * (1 - p) > 0, effective, total), 1.0, total)
    unseen = np.where(np.abs(p - 0.5) < 0.5, 0.0, 1 / (total + 2))
    return p, np.maximum(error, unseen), r_hat, effective


def compile_case(cases: Cases, part: Sliced) -> Compiled:
    """Markov blankets of the free variables as places in the tables."""
    from gramgraph._numerics.sampling import blankets

    sizes = cases.low.sizes
    base, own, other_ptr, other_idx, other_stride = blankets(
        part.scope_ptr, part.scope_idx, part.value_ptr, sizes, part.var_ptr, part.var_edge, part.edge_factor
    )
    free = np.flatnonzero(part.active & (sizes > 1))
    return Compiled(
        free,
        part.var_ptr,
        base,
        own,
        other_ptr,
        other_idx,
        other_stride,
        part.values,
        sizes,
        part.unary,
        cases.unary_ptr,
    )


def compile_rows(compiled: Compiled) -> Rows:
    """The conditional tables: a draw then reads one row. Cost: their cells times the factors around a variable."""
    from gramgraph._numerics.sampling import conditionals, neighbors, same_rows

    c = compiled
    ptr, idx, stride, rows = neighbors(c.variables, c.var_ptr, c.other_ptr, c.other_idx, c.sizes, ROW_CELLS)
    lengths = rows * (c.sizes[c.variables] - 1)
    ends = np.cumsum(lengths)
    lengths[ends > ROWS_CELLS] = 0
    rows[lengths == 0] = 0
    at = np.cumsum(lengths) - lengths
    table, hashes = np.empty(int(lengths.sum())), np.zeros(len(at))
    conditionals(*c, ptr, idx, stride, rows, at, np.zeros(len(c.sizes), np.int32), table, hashes)
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    kept = np.where(same_rows(at, lengths, table, first[which]), first[which], np.arange(len(at)))
    own = np.zeros(len(at), np.bool_)
    own[kept] = True
    size = np.where(own, lengths, 0)
    new = np.cumsum(size) - size
    table = table[np.repeat(own, lengths)]
    return Rows(ptr, idx, stride, np.where(lengths > 0, new[kept], -1), table)


def _chains(
    model: GraphicalModel,
    cases: Cases,
    part: Sliced,
    case: int,
    wants: Wants,
    n_chains: int,
    draws: int,
    burn_in: int | None,
    seconds: float | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, int]:
    """Counts (chains, pieces, cells) and the sweeps in each piece."""
    start = monotonic()
    compiled = compile_case(cases, part)
    rows = compile_rows(compiled)
    per_chain = max(-(-draws // n_chains), 2)
    pieces = min(BATCHES, per_chain)
    length = -(-per_chain // pieces)
    streams = rng.spawn(n_chains)
    states = [_first(model, cases, part, compiled, case, stream) for stream in streams]
    skip = per_chain // 5 if burn_in is None else burn_in
    if seconds is not None:
        skip = 20 if burn_in is None else burn_in
    nothing = np.zeros(wants.cells)
    for state, stream in zip(states, streams, strict=True):
        _sweep(compiled, rows, wants, state, skip, stream, nothing)
    if seconds is not None:  # as many sweeps as the time allows, judged by a first few
        begun = monotonic()
        for state, stream in zip(states, streams, strict=True):
            _sweep(compiled, rows, wants, state, 20, stream, nothing)
        each = max(monotonic() - begun, 1e-6) / (20 * n_chains)
        left = max(seconds - (monotonic() - start), 0.0)
        length = max(int(0.9 * left / each / (n_chains * pieces)), 1)
    counts = np.zeros((n_chains, pieces, wants.cells))
    done = 0
    try:
        for piece in range(pieces):
            for chain, (state, stream) in enumerate(zip(states, streams, strict=True)):
                _sweep(compiled, rows, wants, state, length, stream, counts[chain, piece])
            done = piece + 1
    except KeyboardInterrupt:
        if done < 2:
            raise
    return counts[:, :done], length


def _first(
    model: GraphicalModel, cases: Cases, part: Sliced, compiled: Compiled, case: int, rng: np.random.Generator
) -> IntArray:
    """A state of positive probability: a weighted forward draw of a network, else sweeps that may cross zeros."""
    from gramgraph._numerics.sampling import forward

    seen, sizes = cases.states[case], cases.low.sizes
    state = np.where(seen >= 0, seen, (rng.random(len(sizes)) * sizes)).astype(np.int32)
    if cases.low.parents is not None:
        ready = sampler(model)
        order = ready.order[cases.active[ready.order]]
        drawn, log_w = np.zeros((FIRST_DRAWS, len(sizes)), np.int32), np.empty(FIRST_DRAWS)
        weighted = np.ones(len(sizes), np.bool_)
        uniforms = rng.random((FIRST_DRAWS, len(order)))
        forward(
            order, *ready[1:], sizes, seen, part.unary, cases.unary_ptr, weighted, uniforms, drawn, log_w
        )  # fmt: skip
        top = log_w.max()
        if top > -np.inf:
            w = np.exp(log_w - top)
            return drawn[rng.choice(FIRST_DRAWS, p=w / w.sum())]
    if part.values.min(initial=1.0) > 0 and part.unary.min(initial=1.0) > 0:
        return state
    soft = compiled._replace(
        values=np.where(part.values > 0, part.values, 1e-9), unary=np.where(part.unary > 0, part.unary, 1e-9)
    )
    none, rows = Wants.of(sizes, ()), compile_rows(soft)
    for _ in range(FIRST_ROUNDS):
        _sweep(soft, rows, none, state, FIRST_SWEEPS, rng, np.zeros(0))
        if _possible(part, compiled, state):
            return state
    raise ModelError(
        "gibbs found no state that the zeros of the tables allow together with the evidence; use an exact engine or "
        'engine="bp"'
    )


def _possible(part: Sliced, compiled: Compiled, state: IntArray) -> bool:
    """Whether every factor and every likelihood is positive at the state."""
    free = compiled.variables
    if (part.unary[compiled.unary_ptr[free] + state[free]] <= 0).any():
        return False
    for v in free:
        for i in range(compiled.var_ptr[v], compiled.var_ptr[v + 1]):
            others = slice(int(compiled.other_ptr[i]), int(compiled.other_ptr[i + 1]))
            at = compiled.base[i] + state[v] * compiled.own[i]
            at += int(state[compiled.other_idx[others]] @ compiled.other_stride[others])
            if part.values[at] <= 0:
                return False
    return True


def _sweep(
    compiled: Compiled,
    rows: Rows,
    wants: Wants,
    state: IntArray,
    sweeps: int,
    rng: np.random.Generator,
    counts: FloatArray,
) -> None:
    """Make sweeps and add to the counts; targets that are one free variable are counted as they are drawn."""
    from gramgraph._numerics.sampling import gibbs

    column = np.full(len(compiled.sizes), -1, np.int64)
    alone = np.diff(wants.ptr) == 1
    free = np.zeros(len(compiled.sizes), np.bool_)
    free[compiled.variables] = True
    quick: Array = alone.copy()
    for t in np.flatnonzero(alone):
        v = wants.idx[wants.ptr[t]]
        if free[v] and column[v] < 0:
            column[v] = wants.at[t]
        else:
            quick[t] = False
    rest = Wants.of(compiled.sizes, tuple(_members(wants, int(t)) for t in np.flatnonzero(~quick)))
    places = wants.at[~quick]
    weights = np.empty(int(compiled.sizes.max(initial=1)))
    n = len(compiled.variables)
    block = max(NUMBERS // max(n, 1), 1)
    for first in range(0, sweeps, block):
        numbers = rng.random((min(block, sweeps - first), n))
        gibbs(*compiled, *rows, numbers, state, weights, column, counts, rest.ptr, rest.idx, rest.stride, places)


def _members(wants: Wants, t: int) -> tuple[int, ...]:
    return tuple(int(v) for v in wants.idx[wants.ptr[t] : wants.ptr[t + 1]])
