"""Markov blankets of one case, compiled: conditional tables for quick draws, and states to start chains from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gramgraph._numerics.sampling.draws import blankets, conditionals, forward, gibbs, neighbors, same_rows
from gramgraph.engines.approximate import Cases
from gramgraph.engines.sampling.importance import sampler
from gramgraph.engines.slices import Sliced
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Cells of the conditional table of one variable given its blanket, and of all of them together, at most.
ROW_CELLS, ROWS_CELLS = 512, 1 << 23
FIRST_SWEEPS, FIRST_ROUNDS, FIRST_DRAWS = 50, 20, 200
#: Uniform numbers that are drawn at a time.
NUMBERS = 1 << 16
#: What stands for a zero while a start is looked for.
SOFT_ZERO = 1e-9


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


def compile_case(cases: Cases, part: Sliced) -> Compiled:
    """Markov blankets of the free variables as places in the tables."""
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
        other_ptr=other_ptr,
        other_idx=other_idx,
        other_stride=other_stride,
        values=part.values,
        sizes=sizes,
        unary=part.unary,
        unary_ptr=cases.unary_ptr,
    )


def compile_rows(compiled: Compiled) -> Rows:
    """The conditional tables: a draw then reads one row. Cost: their cells times the factors around a variable."""
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


def softened(compiled: Compiled, zero: float = SOFT_ZERO, power: float = 1.0) -> Compiled:
    """The same blankets with tables and likelihoods at least `zero`, and raised to a power (an inverse temperature)."""
    return compiled._replace(
        values=np.maximum(compiled.values, zero) ** power, unary=np.maximum(compiled.unary, zero) ** power
    )


def log_weight(compiled: Compiled, part: Sliced, state: Array) -> float:
    """log of the product of all factors and likelihoods at the state, -inf where one is zero."""
    from gramgraph._numerics.sampling.chains import total_log

    return float(
        total_log(
            part.scope_ptr, part.scope_idx, part.value_ptr, compiled.values, compiled.sizes, compiled.variables,
            compiled.unary, compiled.unary_ptr, state,
        )
    )  # fmt: skip


def first_state(
    model: GraphicalModel, cases: Cases, part: Sliced, compiled: Compiled, case: int, rng: np.random.Generator
) -> Array:
    """A state of positive probability: a weighted forward draw of a network, else sweeps that may cross zeros."""
    seen, sizes = cases.states[case], cases.low.sizes
    state = np.where(seen >= 0, seen, (rng.random(len(sizes)) * sizes)).astype(np.int32)
    if cases.low.parents is not None:
        ready = sampler(model)
        order = ready.order[cases.active[ready.order]]
        n = max(min(FIRST_DRAWS, NUMBERS * 16 // max(len(order), 1)), 1)
        drawn, log_w = np.zeros((n, len(sizes)), np.int32), np.empty(n)
        weighted = np.ones(len(sizes), np.bool_)
        forward(
            order, *ready[1:], sizes, seen, part.unary, cases.unary_ptr, weighted, rng.random((n, len(order))),
            drawn, log_w,
        )  # fmt: skip
        top = log_w.max()
        if top > -np.inf:
            w = np.exp(log_w - top)
            return np.asarray(drawn[rng.choice(n, p=w / w.sum())])
    if part.values.min(initial=1.0) > 0 and part.unary.min(initial=1.0) > 0:
        return state
    soft = softened(compiled)
    rows, nothing, none = compile_rows(soft), np.zeros(0), np.zeros(0, np.int64)
    column, weights = np.full(len(sizes), -1, np.int64), np.empty(int(sizes.max(initial=1)))
    for _ in range(FIRST_ROUNDS):
        for _ in range(FIRST_SWEEPS):
            numbers = rng.random((1, len(soft.variables)))
            gibbs(*soft, *rows, numbers, state, weights, column, nothing, np.zeros(1, np.int64), none, none, none)
        if log_weight(compiled, part, state) > -np.inf:
            return state
    raise ModelError(
        "gibbs found no state that the zeros of the tables allow together with the evidence; use an exact engine or "
        'engine="bp"'
    )
