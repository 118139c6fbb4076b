"""Inference engines: one algorithm a file."""

from typing import Any

from gramgraph._lazy import lazy_name
from gramgraph.engines import ask
from gramgraph.engines.ask import warmup
from gramgraph.engines.registry import ENGINES, get_engine

__all__ = ["ENGINES", "get_engine", "gibbs_rows", "plan", "warmup"]


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, {"gibbs_rows": "sampling.gibbs_rows"}, name)


def plan(model: Any, targets: Any = None, given: Any = (), *, engine: str = "auto", memory: float | None = None) -> Any:
    """What a query would cost: induced width, largest clique, bytes, flops, time. Nothing is allocated.

    With `memory` (bytes), a plan that would not fit raises `BudgetError`, as the query would.

    >>> import gramgraph as gg
    >>> gg.plan(gg.datasets.asia(), given=["smoke"]).width
    2
    """
    if getattr(model, "is_discrete", True):  # what is no model is refused there, in words
        return ask.plan(model, targets, given, engine=engine, memory=memory)
    from gramgraph.engines.continuous.plan import plan as plan_real

    return plan_real(model, targets, given, engine=engine, memory=memory)
