"""What a log-linear model expects of its cells: exactly, by loopy propagation. Compiled once, run at every step."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from gramgraph.compile.cache import MemoryPool
from gramgraph.compile.tree import TreePlan, plan_tree
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.tree_runner import TreeRunner
from gramgraph.exceptions import BudgetError
from gramgraph.learn.log_linear_design import Design
from gramgraph.models import MarkovNetwork
from gramgraph.typing import FloatArray

#: How often the tree is about to be run: so many runs pay for a search of a better elimination order.
RUNS = 1000
SEQUENTIAL = 1
REMEDIES = (
    'learn by method="pseudo_likelihood", which needs no sum over all states',
    'take approximate gradients: method="bp" or method="contrastive_divergence"',
    "use fewer or smaller factors",
)


class Expectations(Protocol):
    """From the logarithms of all cells to log Z and the probabilities of all cells."""

    def run(self, logs: FloatArray) -> tuple[float, FloatArray]:
        """(log Z, marginals of every scope in the order of the cells)."""
        ...


def scaled(design: Design, logs: FloatArray) -> tuple[FloatArray, float]:
    """exp of the logs with the largest entry of every table at one, and the logarithm of what was taken out."""
    starts = design.value_ptr[:-1]
    if not len(starts):
        return np.ones(1), 0.0
    top = np.maximum.reduceat(logs, starts)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.exp(logs - np.repeat(top, np.diff(design.value_ptr))), float(top.sum())


class ExactExpectations:
    """Marginals by the compiled junction tree; the tree is planned once, a run costs its cells.

    >>> from gramgraph.learn.log_linear_design import design_of_network
    >>> net = MarkovNetwork(edges="a - b - c")
    >>> log_z, cells = ExactExpectations(design_of_network(net, net.vars)).run(np.zeros(8))
    >>> round(float(log_z / np.log(2)), 12), cells.tolist()
    (3.0, [0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, design: Design, *, memory: float | None = None, search: bool = True) -> None:
        self.design = design
        low = design.lowered
        self._joints = tuple(dict.fromkeys(tuple(sorted(scope)) for scope in design.scopes))
        holder = MarkovNetwork.from_parts(design.variables, ())
        self._outputs = Outputs.of(holder, (), self._joints, ())
        self.plan: TreePlan = plan_tree(
            low, wants=self._outputs.wants, columns=self._outputs.columns, cases=RUNS * search
        )
        self._memory = memory
        self._pool = MemoryPool()
        self._at: FloatArray | None = None

    @property
    def cells(self) -> float:
        """Cells of all cliques."""
        return self.plan.cells

    def _compile(self) -> None:
        """Where the runner writes each cell: found by reading the numbers of the columns as if they were answers."""
        try:
            self.plan.check_budget(self._memory)
        except BudgetError as error:
            what = str(error).partition("\nTry:")[0]
            raise BudgetError(what, clique=error.clique, bytes=error.bytes, remedies=REMEDIES) from None
        numbers = np.arange(self._outputs.width, dtype=np.float64)[None]
        sizes, parts = self.design.sizes, []
        number_of = {members: i for i, members in enumerate(self._joints)}
        for scope in self.design.scopes:
            members = tuple(sorted(scope))
            table = self._outputs.joint_table(self.plan, number_of[members], numbers, sizes, {})[0]
            parts.append(table.transpose([members.index(v) for v in scope]).reshape(-1))
        self._at = np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)

    def run(self, logs: FloatArray) -> tuple[float, FloatArray]:
        """(log Z, marginals of the cells); (-inf, zeros) where the numbers leave the range of doubles."""
        if self._at is None:
            self._compile()
        values, scale = scaled(self.design, logs)
        low = replace(self.plan.lowered, values=values, log_scale=scale)
        plan = replace(self.plan, lowered=low, _made={"integers": self.plan.integers})
        runner = TreeRunner(plan, self._pool)
        out, log_z = np.empty((1, max(self._outputs.width, 1))), np.empty(1)
        runner.sums(np.zeros((1, 1), np.int64), runner.no_weights, out, log_z)
        if not np.isfinite(log_z[0]):
            return -np.inf, np.zeros(len(logs))
        return float(log_z[0]), out[0][self._at]


class LoopyExpectations:
    """Beliefs of the factors by sum-product messages, which start where the last run ended; log Z is Bethe's."""

    def __init__(self, design: Design, *, damping: float = 0.0, max_iter: int = 200, tol: float = 1e-9) -> None:
        from gramgraph._numerics.messages.loopy import edges_of, factor_of_edges
        from gramgraph._numerics.messages.loopy_run import first_messages, message_places

        self.design = design
        low = design.lowered
        self._graph = (*edges_of(low.scope_idx, len(low.sizes)), factor_of_edges(low.scope_ptr))
        self._msg_ptr = message_places(low.scope_idx, low.sizes)
        self._unary_ptr = np.concatenate([[0], np.cumsum(low.sizes)]).astype(np.int64)
        self._unary = np.ones(int(self._unary_ptr[-1]))
        self._fresh = first_messages(low.scope_idx, low.sizes, self._msg_ptr)
        self._messages = self._fresh.copy()
        self._settings = (damping, max_iter, tol)
        self.failed = 0  # runs that did not settle

    def run(self, logs: FloatArray) -> tuple[float, FloatArray]:
        """(Bethe's log Z, beliefs of the factors)."""
        damping, max_iter, tol = self._settings
        values, scale = scaled(self.design, logs)
        log_z, cells, settled = self._once(values, self._messages, damping, max_iter, tol)
        if not settled:  # from the beginning, and with less haste
            self._messages[:] = self._fresh
            log_z, cells, settled = self._once(values, self._messages, max(damping, 0.5), 2 * max_iter, tol)
        self.failed += not settled
        return log_z + scale, cells

    def _once(
        self, values: FloatArray, messages: FloatArray, damping: float, max_iter: int, tol: float
    ) -> tuple[float, FloatArray, bool]:
        from gramgraph._numerics.messages.loopy_run import conclude, propagate
        from gramgraph._numerics.undirected.log_linear import factor_beliefs

        low, (var_ptr, var_edge, edge_factor) = self.design.lowered, self._graph
        arrays = (low.scope_ptr, low.scope_idx, low.value_ptr, values, low.sizes, self._unary, self._unary_ptr)
        to_factor = self._fresh.copy()
        _, settled, possible = propagate(
            *arrays, var_ptr, var_edge, edge_factor, self._msg_ptr, messages, to_factor, SEQUENTIAL, damping, 0.0,
            max_iter, tol, False, np.zeros(max_iter),
        )  # fmt: skip
        cells = np.zeros(len(values))
        if not possible:
            messages[:] = self._fresh
            return -np.inf, cells, False
        active = np.ones(len(low.sizes), np.bool_)
        log_z = conclude(
            *arrays, active, var_ptr, var_edge, self._msg_ptr, messages, to_factor, False, 0.0,
            np.empty(len(self._unary)),
        )  # fmt: skip
        factor_beliefs(*arrays[:5], self._msg_ptr, to_factor, cells)
        return log_z, cells, bool(settled)
