"""Best assignments of binary pair models by a minimum cut: exact where no pair rewards disagreement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gramgraph.engines.base import PLAIN, Best, Engine, Run
from gramgraph.engines.best.problem import Found, MapProblem, all_cases
from gramgraph.exceptions import ModelError
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Capacities are whole numbers up to this; the flow algorithm counts in 32 bits, and back flows add to capacities.
CAPACITY = 2**29


class GraphCut(Engine):
    """E(x) of a binary pair model with θ(0,0) + θ(1,1) ≥ θ(0,1) + θ(1,0) is least at a minimum cut.

    Models in which flipping the labels of some variables makes all pairs attractive are taken as well. Cost: one
    maximum flow. Raises `ModelError` for other models.
    """

    name = "graph_cut"

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """(states, log p, bounds) of every case; the bound is the flow, above the value by rounding only."""

        def solve(problem: MapProblem) -> Found:
            found = minimum_cut(problem)
            if found is None:
                raise ModelError(
                    "a cut finds best assignments of variables with two states and of factors of at most two of them, "
                    "with no loop that rewards disagreement an odd number of times. This model is not of that kind: "
                    'use engine="search" or "trws"'
                )
            state, slack = found
            return problem.found(state, problem.value(state) + slack)

        return Best(*all_cases(model, question, solve))


def minimum_cut(problem: MapProblem) -> tuple[IntArray, float] | None:
    """The best assignment, and what it can lack through rounding of capacities: the cut less the flow.

    None when the model is not binary, not of pairs, or cannot be made attractive.
    """
    part, free = problem.part, problem.free
    if not len(free) or problem.sizes[free].max() > 2 or np.diff(part.scope_ptr).max(initial=2) > 2:
        return None
    if part.values.min(initial=1.0) <= 0 or len(part.values) != 4 * (len(part.scope_ptr) - 1):
        return None
    a, b = part.scope_idx[0::2], part.scope_idx[1::2]
    table = problem.logs.reshape(-1, 2, 2)
    reward = table[:, 0, 0] + table[:, 1, 1] - table[:, 0, 1] - table[:, 1, 0]
    flip = _balanced(len(problem.sizes), a, b, reward)
    if flip is None:
        return None
    field = np.zeros(len(problem.sizes))  # θ(1) - θ(0) of each variable
    at = problem.cases.unary_ptr
    field[free] = problem.log_unary[at[free] + 1] - problem.log_unary[at[free]]
    # θ(x, y) = c + α x + β y + r x y, and x y = (x + y - [x ≠ y]) / 2
    np.add.at(field, a, table[:, 1, 0] - table[:, 0, 0] + reward / 2)
    np.add.at(field, b, table[:, 0, 1] - table[:, 0, 0] + reward / 2)
    field = np.where(flip, -field, field)
    state = problem.start.copy()
    chosen, slack = _cut(free, field, a, b, np.abs(reward) / 2)
    state[free] = chosen[free] ^ flip[free]
    return state, slack


def _balanced(n: int, a: IntArray, b: IntArray, reward: FloatArray) -> Array | None:
    """Which variables to flip so that all pairs reward agreement; None when there is no such choice."""
    if not (reward < -1e-12).any():
        return np.zeros(n, np.bool_)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    tied = np.abs(reward) > 1e-12
    a, b, sign = a[tied], b[tied], reward[tied] < 0
    graph = csr_array((np.ones(len(a)), (a, b)), shape=(n, n))
    _, label = connected_components(graph, directed=False)
    odd = {(int(u), int(v)): bool(s) for u, v, s in zip(a, b, sign, strict=True)}
    flip = np.zeros(n, np.bool_)
    for root in np.unique(label, return_index=True)[1]:
        order, before = breadth_first_order(graph, root, directed=False)
        for v in order[1:]:
            u = int(before[v])
            flip[v] = flip[u] ^ odd.get((u, int(v)), odd.get((int(v), u), False))
    return flip if bool(((flip[a] ^ flip[b]) == sign).all()) else None


def _cut(free: IntArray, field: FloatArray, a: IntArray, b: IntArray, weight: FloatArray) -> tuple[Array, float]:
    """x ∈ {0, 1} with the largest Σ field x - Σ weight [x_a ≠ x_b], weights at least zero; cut less flow.

    Capacities are rounded down, so that the flow is one of the true network, and no cut is below it.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    n = len(field)
    source, sink = n, n + 1
    scale = CAPACITY / max(float(np.abs(field[free]).max(initial=0.0)), float(weight.max(initial=0.0)), 1e-300)
    up, down = free[field[free] > 0], free[field[free] < 0]
    rows = np.concatenate([a, b, np.full(len(up), source), down])
    cols = np.concatenate([b, a, up, np.full(len(down), sink)])
    true = np.concatenate([weight, weight, field[up], -field[down]])
    whole = np.floor(true * scale).astype(np.int32)
    ends = rows.astype(np.int32), cols.astype(np.int32)  # SciPy 1.13 takes no flow through wider indices
    capacity = csr_array((whole, ends), shape=(n + 2, n + 2))
    result = maximum_flow(capacity, source, sink)
    residual = capacity - result.flow
    residual.data = np.maximum(residual.data, 0)
    residual.eliminate_zeros()
    reached = np.zeros(n + 2, np.bool_)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = True
    crossing = reached[rows] & ~reached[cols]
    flow = float(whole[crossing].sum(dtype=np.float64)) / scale
    return reached[:n], max(float(true[crossing].sum()) - flow, 0.0)
