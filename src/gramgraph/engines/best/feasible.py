"""An assignment that no table forbids, by backtracking: for models in which zeros leave few."""

from __future__ import annotations

import time

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph.engines.best.problem import MapProblem
from gramgraph.typing import FloatArray, IntArray

#: Conflicts until the search begins anew, at first, and how they grow.
CONFLICTS, GROWTH = 50.0, 1.3
#: Noise on what is liked, in parts of its spread, in turn: the same choices are not made again.
NOISE = (0.1, 10.0)


def allowed_state(
    problem: MapProblem, liked: FloatArray, seconds: float, rng: np.random.Generator
) -> tuple[IntArray | None, bool]:
    """A state without zeros (None when none was found in time), and whether it is proved that there is none.

    `liked` (columns of all variables) says which states are tried first.
    """
    from gramgraph._numerics.best.backtrack import backtrack

    begun, part, at = time.monotonic(), problem.part, problem.cases.unary_ptr
    state, alive = problem.start.copy(), part.unary > 0
    for v in np.flatnonzero(~part.active).tolist():  # observed: as they stand
        alive[at[v] : at[v + 1]] = np.arange(problem.sizes[v]) == state[v]
    weight, most = np.ones(len(part.scope_ptr) - 1), CONFLICTS
    spread, tries = float(liked[alive].std()) if alive.any() else 0.0, 0
    while True:
        check_interrupt()
        noise = NOISE[tries % len(NOISE)] * spread * rng.random(len(liked))
        tries += 1
        found = backtrack(
            part.scope_ptr, part.scope_idx, part.value_ptr, part.values > 0, problem.sizes, at, part.var_ptr,
            part.var_edge, part.edge_factor, alive, liked + noise, weight, int(most), state,
        )  # fmt: skip
        most *= GROWTH
        if found or time.monotonic() - begun > seconds:
            return (state if found == 1 else None), found == -1
