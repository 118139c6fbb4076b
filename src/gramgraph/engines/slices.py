"""The factors of one case, cut by its evidence, with their graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramgraph.engines.approximate import Cases
from gramgraph.typing import Array, FloatArray, IntArray


class Sliced(NamedTuple):
    """The factors of one case with their graph."""

    scope_ptr: IntArray
    scope_idx: IntArray
    value_ptr: IntArray
    values: FloatArray
    constant: float
    unary: FloatArray
    active: Array  # variables that are neither observed nor barren
    var_ptr: IntArray
    var_edge: IntArray
    edge_factor: IntArray
    msg_ptr: IntArray


def slice_case(cases: Cases, case: int) -> Sliced:
    """The factors of case number `case`; constant -inf when the evidence is plainly impossible."""
    from gramgraph._numerics.messages.loopy import edges_of, factor_of_edges, slice_factors
    from gramgraph._numerics.messages.loopy_run import message_places

    state = cases.states[case]
    unary = cases.unaries[min(case, len(cases.unaries) - 1)]
    ptr, idx, value_ptr, values, constant = slice_factors(*cases.arrays, cases.keep, state)
    seen = np.flatnonzero(state >= 0)
    with np.errstate(divide="ignore"):
        constant += float(np.log(unary[cases.unary_ptr[seen] + state[seen]]).sum())
    sizes = cases.low.sizes
    var_ptr, var_edge = edges_of(idx, len(sizes))
    active = cases.active & (state < 0)
    places = message_places(idx, sizes)
    return Sliced(
        ptr,
        idx,
        value_ptr,
        values,
        constant=constant,
        unary=unary,
        active=active,
        var_ptr=var_ptr,
        var_edge=var_edge,
        edge_factor=factor_of_edges(ptr),
        msg_ptr=places,
    )


def show_observed(cases: Cases, case: int, beliefs: FloatArray) -> None:
    """Put the belief of each observed variable of the case on its state."""
    at, state = cases.unary_ptr, cases.states[case]
    for v in np.flatnonzero(state >= 0):
        beliefs[case, at[v] : at[v + 1]] = 0.0
        beliefs[case, at[v] + state[v]] = 1.0


def possible_messages(cases: Cases, part: Sliced) -> FloatArray | None:
    """Messages that are zero exactly where zeros of the tables rule a state out; None when nothing is left."""
    from gramgraph._numerics.messages.loopy_run import first_messages, possible_states

    sizes = cases.low.sizes
    to_var: FloatArray = first_messages(part.scope_idx, sizes, part.msg_ptr)
    if part.values.min(initial=1.0) > 0 and part.unary.min(initial=1.0) > 0:
        return to_var
    possible = possible_states(
        part.scope_ptr, part.scope_idx, part.value_ptr, part.values, sizes, part.unary, cases.unary_ptr,
        part.var_ptr, part.var_edge, part.edge_factor, part.msg_ptr, to_var, to_var.copy(),
    )  # fmt: skip
    return to_var if possible else None


SCHEDULES = ("flooding", "sequential", "residual", "tree", "auto")

SEQUENTIAL, RESIDUAL = SCHEDULES.index("sequential"), SCHEDULES.index("residual")
