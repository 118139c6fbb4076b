"""What a question about a model with real-valued variables would cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.budget import check_budget, readable
from gramgraph.engines.continuous.door import layout_of
from gramgraph.engines.door import parse_targets
from gramgraph.engines.gaussian.lower import DENSE_LIMIT, kind_of, relevant_part

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["RealPlan", "plan"]

_BY_DRAWS = ("likelihood_weighting", "gibbs", "laplace")


@dataclass(frozen=True)
class RealPlan:
    """The engine that would answer, and its size: components, entries of the factor, bytes, operations."""

    engine: str
    exact: bool
    components: int
    entries: int
    width: int  # largest number of components that depend on each other at once
    largest_clique: tuple[str, ...] = ()

    @property
    def bytes(self) -> float:
        """Memory of the numbers."""
        return 16.0 * self.entries + 64.0 * self.components

    @property
    def flops(self) -> float:
        """Operations of one factorization, roughly."""
        return float(self.entries) * (self.width + 1)

    def check_budget(self, memory: float | None = None) -> None:
        """`BudgetError` where the plan does not fit."""
        check_budget(self.bytes, memory, self.largest_clique, float(self.entries))

    def __str__(self) -> str:
        how = "exact" if self.exact else "approximate"
        return (
            f"{self.engine} ({how}): {self.components:,} components, {self.entries:,} entries, width {self.width}, "
            f"{readable(self.bytes)}"
        )


def plan(
    model: GraphicalModel, targets: Any = None, given: Any = (), *, engine: str = "auto", memory: float | None = None
) -> Any:
    """The plan of a question; nothing but structure is looked at."""
    singles, joints = parse_targets(model, targets)
    names = [given] if isinstance(given, str) else list(() if given is None else given)
    observed = [model.index(name) for name in names]
    wanted = list(range(len(model.vars))) if singles is None else [*singles, *(v for m in joints for v in m)]
    kind = kind_of(model)
    part = relevant_part(model, [*wanted, *observed])
    seen = [part.index(model.vars[v].name) for v in observed]
    made: Any
    if kind == "general" or engine in _BY_DRAWS:
        made = _by_draws(part, seen, "likelihood_weighting" if engine == "auto" else engine)
    elif kind == "mixed":
        from gramgraph.engines.mixed.strong_tree import strong_plan

        reals = [v for v in seen if not part.vars[v].is_discrete]
        states = {v: 0 for v in seen if part.vars[v].is_discrete}
        made = strong_plan(part, states, layout_of(part).of(reals))
    else:
        made = _gaussian(part, seen, engine)
    if memory is not None:
        made.check_budget(memory)
    return made


def _by_draws(model: GraphicalModel, seen: list[int], engine: str) -> RealPlan:
    """Draws of all variables; chains that are kept; or one Hessian for each configuration."""
    size = layout_of(model).size
    if engine == "laplace":
        hidden = [var for v, var in enumerate(model.vars) if v not in set(seen)]
        d = sum(var.dimension for var in hidden if not var.is_discrete)
        count = min(prod(float(var.size) for var in hidden if var.is_discrete), 4096.0)
        return RealPlan(engine, False, size, int(count * d * (d + 1)), d)
    draws = 20_000 if engine == "gibbs" else 100_000
    return RealPlan(engine, False, size, draws * len(model.vars), 0)


def _gaussian(model: GraphicalModel, seen: list[int], engine: str) -> RealPlan:
    layout = layout_of(model)
    size = layout.size
    name = engine if engine != "auto" else "dense" if size <= DENSE_LIMIT else "sparse"
    if name == "dense":
        return RealPlan(name, True, size, size * size, size)
    from scipy.sparse import csc_array, triu

    from gramgraph._numerics.gaussian import sparse_cholesky as kernels
    from gramgraph.engines.gaussian.lower import sparse_precision

    hidden = np.ones(size, bool)
    hidden[layout.of(seen)] = False
    free = np.flatnonzero(hidden)
    P = sparse_precision(model).P[free][:, free]
    n = len(free)
    columns = np.repeat(np.arange(n), np.diff(P.indptr))
    off = P.indices != columns
    ptr = np.concatenate([[0], np.cumsum(np.bincount(columns[off], minlength=n))]).astype(np.int64)
    order = kernels.minimum_degree(n, ptr, P.indices[off].astype(np.int64))
    upper = csc_array(triu(P[order][:, order], format="csc"))
    _, l_ptr = kernels.symbolic(n, upper.indptr.astype(np.int64), upper.indices.astype(np.int64))
    return RealPlan(name, name != "bp", n, int(l_ptr[-1]), int(np.diff(l_ptr).max(initial=0)))
