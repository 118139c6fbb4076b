"""Likelihood weighting on discrete networks: compiled forward draws, with a standard error for every probability."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.budget import check_memory
from gramgraph.compile.lower import Lowered, lower
from gramgraph.compile.question import Question
from gramgraph.engines.approximate import ApproximatePlan, Cases, check_options, make_answer, parse_budget
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.graphs import Digraph, topological_order
from gramgraph.typing import Array, FloatArray, IntArray, RandomState

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["DiscreteWeighting", "Wants"]

DRAWS, BATCH_DRAWS = 100_000, 10_000  # for one case, and for each of a table of cases
BLOCK = 4096


class Wants(NamedTuple):
    """Cells of all wanted tables: table t begins at `at[t]`; its variables and strides stand at ptr[t]:ptr[t+1]."""

    ptr: IntArray
    idx: IntArray
    stride: IntArray
    at: IntArray
    shapes: tuple[tuple[int, ...], ...]
    cells: int

    @classmethod
    def of(cls, sizes: IntArray, tables: tuple[tuple[int, ...], ...]) -> Wants:
        """The layout of these tables, axes in the order of their variables."""
        ptr, at, idx, stride = [0], [0], list[int](), list[int]()
        shapes: list[tuple[int, ...]] = []
        for members in tables:
            shape = tuple(int(sizes[v]) for v in members)
            steps = [int(np.prod(shape[j + 1 :], dtype=np.int64)) for j in range(len(shape))]
            idx.extend(members)
            stride.extend(steps)
            ptr.append(len(idx))
            at.append(at[-1] + int(np.prod(shape, dtype=np.int64)))
            shapes.append(shape)
        as_array = [np.array(part, np.int64) for part in (ptr, idx, stride, at[:-1])]
        return cls(as_array[0], as_array[1], as_array[2], as_array[3], tuple(shapes), at[-1])

    def table(self, t: int, cells: FloatArray) -> FloatArray:
        """Table t of (cases, cells) as (cases, *shape)."""
        first = int(self.at[t])
        size = int(np.prod(self.shapes[t], dtype=np.int64))
        return cells[:, first : first + size].reshape(len(cells), *self.shapes[t])


class Sampler(NamedTuple):
    """A network ready for forward draws."""

    order: IntArray
    table: IntArray
    parent_ptr: IntArray
    parent_idx: IntArray
    stride: IntArray
    values: FloatArray
    cdf: FloatArray


def sampler(model: GraphicalModel) -> Sampler:
    """Cumulative tables in topological order; made once per model."""
    found = model._plans.get("forward")
    if found is None:
        found = model._plans["forward"] = _sampler(lower(model, structured=False))
    return found  # type: ignore[no-any-return]


def _sampler(low: Lowered) -> Sampler:
    from gramgraph._numerics.sampling import cumulate

    assert low.parents is not None
    n = low.n_visible
    table, ptr = np.full(n, -1, np.int64), np.zeros(n + 1, np.int64)
    cdf, scopes = np.empty(len(low.values)), {}
    for f, child in enumerate(low.owner):
        scope = low.scope_idx[low.scope_ptr[f] : low.scope_ptr[f + 1]]
        if scope[-1] == child:  # else the child has one state, which needs no draw
            part = slice(int(low.value_ptr[f]), int(low.value_ptr[f + 1]))
            cumulate(low.values[part], int(low.sizes[child]), cdf[part])
            table[child], scopes[int(child)] = part.start, scope
    idx: list[int] = []
    stride: list[int] = []
    for v in range(n):
        step = int(low.sizes[v])
        for u in scopes.get(v, np.zeros(1, np.int64))[-2::-1]:
            idx.append(int(u))
            stride.append(step)
            step *= int(low.sizes[u])
        ptr[v + 1] = len(idx)
    order = np.array(topological_order(Digraph(low.parents)), np.int64)
    return Sampler(order, table, ptr, np.array(idx, np.int64), np.array(stride, np.int64), low.values, cdf)


class DiscreteWeighting:
    """Draws from the network, parents first; each observation multiplies a draw's weight by its probability.

    Cost: O(draws × variables above targets and evidence). `budget` is the number of draws, or a time ("5s"); Ctrl-C
    ends early with what was drawn. `details` tell `draws`, `effective_draws` = (Σw)²/Σw², `standard_error` (by target,
    shaped as its probabilities) and `log_evidence_error`. Where no draw agrees with the evidence nothing is known:
    one case is an error, in a table of cases its beliefs and log evidence are NaN.

    >>> import gramgraph as gg
    >>> answer = gg.datasets.asia().query("lung", {"xray": "yes"}, engine="likelihood_weighting", random_state=0)
    >>> error = answer.details["standard_error"]["lung"]
    >>> exact = gg.datasets.asia().query("lung", {"xray": "yes"})
    >>> bool((abs(answer["lung"].probabilities - exact["lung"].probabilities) < 4 * error).all())
    True
    """

    name = "likelihood_weighting"
    exact = False

    def plan(self, model: GraphicalModel, question: Question) -> ApproximatePlan:
        """The tables that are drawn from."""
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
        """Estimates for every case, with their errors in `details`."""
        check_memory(memory)
        check_options(self.name, list(options), ())
        if getattr(model, "_parents", None) is None:
            raise ModelError('likelihood weighting needs directed edges; ask an undirected model with engine="gibbs"')
        draws, seconds = parse_budget(budget, BATCH_DRAWS if question.batched else DRAWS)
        rng = np.random.default_rng(random_state)
        cases = Cases.of(model, question, structured=False)
        wants = Wants.of(cases.low.sizes, (*((v,) for v in question.targets), *question.joints))
        n = question.n_cases
        p, error = np.full((n, wants.cells), np.nan), np.full((n, wants.cells), np.nan)
        log_z, log_error, effective, made = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n), np.zeros(n, np.int64)
        end = None if seconds is None else monotonic() + seconds
        for case in range(n):
            share = None if end is None else monotonic() + (end - monotonic()) / (n - case)
            total = _weigh(model, cases, case, wants, draws, share, rng)
            made[case] = total.draws
            if total.weight > 0:
                p[case], error[case], effective[case] = total.estimates()
                log_z[case], log_error[case] = total.log_mean()
        if not question.batched and not effective[0]:
            raise OptionError(
                f"none of {made[0]:,} draws agrees with the evidence: it is impossible or very improbable. Raise "
                'budget=…, or use engine="bp" or an exact engine, which do not guess'
            )
        return _answer(model, question, wants, p, error, log_z, log_error, effective, made)


class _Total:
    """Sums of weights while blocks of draws come in, scaled by the largest weight so far."""

    def __init__(self, cells: int) -> None:
        self.sums, self.squares = np.zeros(cells), np.zeros(cells)
        self.weight = self.weight2 = 0.0
        self.top = -np.inf
        self.draws = 0

    def add(self, log_w: FloatArray) -> FloatArray | None:
        """The block's weights in the common scale; None when all are zero."""
        self.draws += len(log_w)
        top = float(log_w.max())
        if top == -np.inf:
            return None
        if top > self.top:
            scale = float(np.exp(self.top - top)) if self.top > -np.inf else 0.0
            self.sums *= scale
            self.squares *= scale**2
            self.weight, self.weight2, self.top = self.weight * scale, self.weight2 * scale**2, top
        w = np.exp(log_w - self.top)
        self.weight += float(w.sum())
        self.weight2 += float(w @ w)
        return np.asarray(w)

    def estimates(self) -> tuple[FloatArray, FloatArray, float]:
        """(probabilities, standard errors, effective draws); no error is below that of a state not seen once.

        Var p̂ ≈ Σ w² (1[x] - p̂)² / (Σ w)², the delta method for a ratio.
        """
        p = self.sums / self.weight
        spread = self.squares * (1 - 2 * p) + p**2 * self.weight2
        effective = self.weight**2 / self.weight2
        error = np.sqrt(np.maximum(spread, 0.0)) / self.weight
        return p, np.maximum(error, np.where(np.abs(p - 0.5) < 0.5, 0.0, 1 / (effective + 2))), effective

    def log_mean(self) -> tuple[float, float]:
        """log of the mean weight, and its standard error."""
        n = self.draws
        mean = self.weight / n
        variance = max(self.weight2 / n - mean**2, 0.0)
        return self.top + float(np.log(mean)), float(np.sqrt(variance / n)) / mean


def _weigh(
    model: GraphicalModel,
    cases: Cases,
    case: int,
    wants: Wants,
    draws: int,
    end: float | None,
    rng: np.random.Generator,
) -> _Total:
    """Draw block after block for one case, until there are enough, or the time is over, or Ctrl-C comes."""
    from gramgraph._numerics.sampling import forward, tally

    total = _Total(wants.cells)
    ready, low = sampler(model), cases.low
    order = ready.order[cases.active[ready.order]]
    seen, unary = cases.states[case], cases.unaries[min(case, len(cases.unaries) - 1)]
    weighted = ~(np.add.reduceat(unary != 1.0, cases.unary_ptr[:-1]) == 0) if len(low.sizes) else np.zeros(0, np.bool_)
    plain = not weighted.any() and not (seen[order] >= 0).any()
    uniforms = np.empty((BLOCK, len(order)))
    states, log_w = np.zeros((BLOCK, len(low.sizes)), np.int32), np.empty(BLOCK)
    try:
        while total.draws < draws or end is not None:
            size = BLOCK if end is not None else min(BLOCK, draws - total.draws)
            rng.random(out=uniforms)
            forward(
                order, *ready[1:], low.sizes, seen, unary, cases.unary_ptr, weighted, uniforms,
                states[:size], log_w[:size],
            )  # fmt: skip
            w = total.add(log_w[:size])
            if w is not None:
                tally(states[:size], w, *wants[:4], plain, total.sums, total.squares)
            if end is not None and monotonic() >= end:
                break
    except KeyboardInterrupt:
        if not total.draws:
            raise
    if plain:
        total.squares[:] = total.sums
    return total


def _answer(
    model: GraphicalModel,
    question: Question,
    wants: Wants,
    p: FloatArray,
    error: FloatArray,
    log_z: FloatArray,
    log_error: FloatArray,
    effective: FloatArray,
    made: Array,
) -> Answer:
    return sampled_answer(
        model,
        question,
        wants,
        p,
        error,
        log_z,
        engine=DiscreteWeighting.name,
        details={"draws": made, "effective_draws": effective, "log_evidence_error": log_error},
    )


def sampled_answer(
    model: GraphicalModel,
    question: Question,
    wants: Wants,
    p: FloatArray,  # (cases, cells of all wanted tables)
    error: FloatArray,
    log_z: FloatArray,
    *,
    engine: str,
    details: dict[str, Any],
) -> Answer:
    """The answer of a sampler: estimates, and in `details` the standard errors by target."""
    names = [model._vars[v].name for v in question.targets]
    keys: list[Any] = [*names, *(tuple(model._vars[v].name for v in members) for members in question.joints)]
    errors = {key: wants.table(t, error) for t, key in enumerate(keys)}
    if not question.batched:
        errors = {key: table[0] for key, table in errors.items()}
        details = {key: value[0].item() if isinstance(value, np.ndarray) else value for key, value in details.items()}
    columns = np.full((question.n_cases, int(sum(var.size for var in model._vars))), np.nan)
    at = np.concatenate([[0], np.cumsum([var.size for var in model._vars])]).astype(np.int64)
    for t, v in enumerate(question.targets):
        columns[:, at[v] : at[v + 1]] = wants.table(t, p)
    joints = [wants.table(len(names) + t, p) for t in range(len(question.joints))]
    return make_answer(
        model, question, columns, log_z, at, joints, engine=engine, details={**details, "standard_error": errors}
    )
