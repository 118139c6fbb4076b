"""Best assignments by max-product propagation: the best on a tree, a good one elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.engines.approximate import Cases
from gramgraph.engines.best.problem import lost_weight
from gramgraph.engines.slices import RESIDUAL, SEQUENTIAL, Sliced, slice_case
from gramgraph.exceptions import ModelError
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

MAX_ITER, TOL, ROUNDS = 200, 1e-7, 1000
#: Up to this many table cells both schedules are run.
BOTH_CELLS = 200_000
#: Of messages between spins: how much of the old one stays, and the move (of half log-odds) that counts as none.
SPIN_DAMPING, SPIN_TOL = 0.5, 1e-3
#: What a zero counts in logarithms while assignments are improved.
FORBIDDEN = -1e4


def max_product(model: GraphicalModel, question: Question) -> tuple[IntArray, FloatArray]:
    """States of all variables, (cases, variables), and log p(states, evidence) of every case.

    Sequential and (on small models) residual schedules are run, each decoded and improved by single changes; the better
    one is taken. Large networks of pairs of two-state variables without zeros (Ising grids) take a loop of their own
    with one number a message. A case of probability zero has codes -1 and -inf; where the zeros of the tables were not
    avoided there is an error.

    >>> import gramgraph as gg
    >>> best = gg.models.ising_grid(2, 2, coupling=1.0, field=0.1).map_query(engine="bp")
    >>> sorted(set(best.assignment.values())), best.exact
    (['+1'], False)
    """
    everything = replace(question, targets=tuple(range(len(model))), joints=())  # no variable is barren for a maximum
    cases = Cases.of(model, everything, maximum=True)
    codes, best = np.full((question.n_cases, len(model)), -1, np.int64), np.full(question.n_cases, -np.inf)
    for case in range(question.n_cases):
        part = slice_case(cases, case)
        if part.constant == -np.inf:
            continue
        large = len(part.values) > BOTH_CELLS
        if large and (spins := _as_spins(part, cases.low.sizes)) is not None:
            state, value = _best_spins(cases, part, case, *spins)
            codes[case], best[case] = state[: len(model)], value + part.constant + cases.low.log_scale
            best[case] += lost_weight(question, case, state)
            continue
        schedules = (SEQUENTIAL,) if large else (SEQUENTIAL, RESIDUAL)
        found = [_one(cases, part, case, schedule) for schedule in schedules]
        possible = [run for run in found if run is not None]
        if not possible:
            continue
        state, value = max(possible, key=lambda run: run[1])
        if value == -np.inf:
            raise ModelError(
                "max-product found no assignment that the zeros of the tables allow; use an exact engine"
                + (f" (case {case})" if question.batched else "")
            )
        codes[case], best[case] = state[: len(model)], value + part.constant + cases.low.log_scale
        best[case] += lost_weight(question, case, state)
    return codes, best


def _one(cases: Cases, part: Sliced, case: int, schedule: int) -> tuple[IntArray, float] | None:
    """An assignment and its value by one schedule; None when the evidence is impossible."""
    from gramgraph._numerics.best.loopy_best import improve, log_value
    from gramgraph.engines.sampling.gibbs import compile_case

    sizes, at = cases.low.sizes, cases.unary_ptr
    state = run_once(cases, part, cases.states[case], schedule)
    if state is None:
        return None
    tables = (part.scope_ptr, part.scope_idx, part.value_ptr, part.values, sizes)
    compiled = compile_case(cases, part)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(part.values), FORBIDDEN)
        log_unary = np.maximum(np.log(part.unary), FORBIDDEN)
    improve(*compiled[:7], logs, sizes, log_unary, at, state, ROUNDS)
    return state, float(log_value(*tables, part.unary, at, part.active, state))


def _as_spins(part: Sliced, sizes: IntArray) -> tuple[FloatArray, IntArray, FloatArray] | None:
    """Fields of all variables, pairs and their couplings, where factors are over at most two variables with two states.

    log ψ(x, y) = J x y + h_x x + h_y y + constant for x, y = ±1; None where there are zeros or larger factors.
    """
    arity = np.diff(part.scope_ptr)
    free = np.flatnonzero(part.active & (sizes > 1))
    if arity.max(initial=0) > 2 or (sizes[free] != 2).any() or (sizes[part.scope_idx] != 2).any():
        return None
    if not (part.values.min(initial=1.0) > 0 and part.unary.min(initial=1.0) > 0):
        return None
    field, at = np.zeros(len(sizes)), np.concatenate([[0], np.cumsum(sizes)])[free]
    field[free] = 0.5 * np.log(part.unary[at + 1] / part.unary[at])
    ones, twos = np.flatnonzero(arity == 1), np.flatnonzero(arity == 2)
    alone = np.log(part.values[part.value_ptr[ones][:, None] + np.arange(2)])
    np.add.at(field, part.scope_idx[part.scope_ptr[ones]], 0.5 * (alone[:, 1] - alone[:, 0]))
    t = np.log(part.values[part.value_ptr[twos][:, None] + np.arange(4)])
    pairs = part.scope_idx[part.scope_ptr[twos][:, None] + np.arange(2)]
    np.add.at(field, pairs[:, 0], 0.25 * (t[:, 2] + t[:, 3] - t[:, 0] - t[:, 1]))
    np.add.at(field, pairs[:, 1], 0.25 * (t[:, 1] + t[:, 3] - t[:, 0] - t[:, 2]))
    pairs.sort(axis=1)
    keys, same = np.unique(pairs[:, 0] * len(sizes) + pairs[:, 1], return_inverse=True)  # a pair may have two factors
    J = np.asarray(np.bincount(same, 0.25 * (t[:, 0] + t[:, 3] - t[:, 1] - t[:, 2]), len(keys)), np.float64)
    return field, np.stack([keys // len(sizes), keys % len(sizes)]), J


def _best_spins(
    cases: Cases, part: Sliced, case: int, field: FloatArray, pairs: IntArray, J: FloatArray
) -> tuple[IntArray, float]:
    """An assignment and its value."""
    from gramgraph._numerics.best.loopy_best import log_value
    from gramgraph._numerics.messages.spins import best_spins, spin_graph

    low, graph = cases.low, spin_graph(*pairs, J, len(field))
    spins = best_spins(field, *graph, SPIN_DAMPING, MAX_ITER, SPIN_TOL, ROUNDS)
    state = np.where(part.active, (spins > 0) & (low.sizes > 1), cases.states[case]).astype(np.int64)
    tables = (part.scope_ptr, part.scope_idx, part.value_ptr, part.values, low.sizes)
    return state, float(log_value(*tables, part.unary, cases.unary_ptr, part.active, state))


def run_once(
    cases: Cases,
    part: Sliced,
    observed: IntArray,
    schedule: int,
    max_iter: int = MAX_ITER,
    seconds: float | None = None,
) -> IntArray | None:
    """The assignment that the messages of one schedule give, those after about so many seconds if they are given; None
    when the evidence is impossible."""
    from gramgraph._numerics.best.loopy_best import decode
    from gramgraph._numerics.messages.loopy import FLOOR, LATE, LATE_DAMPING, breadth_first
    from gramgraph._numerics.messages.loopy_run import conclude, first_messages, possible_states, propagate

    sizes, at = cases.low.sizes, cases.unary_ptr
    tables = (part.scope_ptr, part.scope_idx, part.value_ptr, part.values, sizes)
    graph = (part.var_ptr, part.var_edge)
    to_var = first_messages(part.scope_idx, sizes, part.msg_ptr)
    to_factor, residuals, beliefs = to_var.copy(), np.zeros(max_iter), np.ones(int(at[-1]))
    inner = (*graph, part.edge_factor, part.msg_ptr, to_var, to_factor)
    if not possible_states(*tables, part.unary, at, *inner):
        return None
    pieces = [(max_iter, -1.0)] if seconds is None else _pieces(max_iter, int(np.ceil(LATE * max_iter)), LATE_DAMPING)
    begun = time.monotonic()
    for sweeps, damping in pieces:
        arrays = (*tables, part.unary, at, *inner)
        _, converged, possible = propagate(*arrays, schedule, damping, FLOOR, sweeps, TOL, True, residuals)
        if converged or not possible or (seconds is not None and time.monotonic() - begun > seconds):
            break
    conclude(*tables, part.unary, at, part.active, *graph, part.msg_ptr, to_var, to_factor, True, FLOOR, beliefs)
    order = breadth_first(part.scope_ptr, part.scope_idx, *graph, part.edge_factor)
    state = observed.copy()
    decode(*tables, beliefs, at, order, part.msg_ptr, to_factor, state)
    return state


def _pieces(max_iter: int, late: int, damping: float) -> Iterator[tuple[int, float]]:
    """(sweeps, damping) of calls between which the clock is looked at: one sweep, then as many as there were."""
    done = 0
    while done < max_iter:
        end = min(max(2 * done, 1), late if done < late else max_iter)
        yield end - done, damping if done >= late else 0.0
        done = end
