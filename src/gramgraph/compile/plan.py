"""What a question would cost: one value, whichever engine would answer it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from gramgraph._show import clean
from gramgraph.compile.budget import check_budget, readable


@dataclass(frozen=True, repr=False)
class Plan:
    """The engine that would answer, why, and what it would take; nothing is allocated.

    >>> import gramgraph as gg
    >>> plan = gg.plan(gg.datasets.asia(), given=["smoke"])
    >>> plan.engine, plan.exact, plan.width
    ('enumeration', True, 2)
    """

    engine: str
    exact: bool
    reason: str  # why this engine
    width: int  # variables (components) that depend on each other at once, less one
    largest_clique: tuple[str, ...]
    bytes: float
    flops: float
    parts: int  # cliques, factors, components: what the work is divided into
    structure: Any = None  # what the engine itself plans with
    compile_seconds: float = 0.0  # about what compiling its loops would take first, once on this machine

    @classmethod
    def of(cls, engine: str, exact: bool, reason: str, made: Any) -> Plan:
        """From what an engine plans with."""
        largest: Any = getattr(made, "largest_clique", None) or getattr(made, "largest", ())
        flops = getattr(made, "flops", None)
        parts = next(
            (getattr(made, name) for name in ("n_cliques", "n_factors", "components") if hasattr(made, name)), 1
        )
        return cls(
            engine,
            exact,
            reason,
            made.width,
            largest_clique=tuple(largest),
            bytes=made.bytes,
            flops=flops or 0.0,
            parts=int(parts),
            structure=made,
        )

    def check_budget(self, memory: float | None = None) -> None:
        """`BudgetError` when this does not fit into `memory` bytes (default: 60 % of what is free)."""
        own = getattr(self.structure, "check_budget", None)
        if own is not None:
            own(memory)
        else:
            check_budget(self.bytes, memory, self.largest_clique, self.bytes / 8)

    def __getattr__(self, name: str) -> Any:
        """What else the engine's own plan tells, such as `cells`, `n_cliques` or `seconds` of a junction tree."""
        if name.startswith("_") or name == "structure":
            raise AttributeError(name)
        return getattr(self.structure, name)

    def __str__(self) -> str:
        how = "exact" if self.exact else "approximate"
        shown = "" if self.structure is None else f"\n{self.structure}"
        wait = f"\nfirst compiles loops, about {self.compile_seconds:.0f} s, once on this machine"
        shown += wait if self.compile_seconds else ""
        return f"{self.engine} ({how}, {readable(self.bytes)}): {self.reason}{shown}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same text, as it stands."""
        lines = "\n".join(map(clean, str(self).splitlines()))
        return f"<pre>{escape(lines)}</pre>"


def plan_of(engine: Any, components: int, entries: int, width: int) -> Plan:
    """The plan of an engine that works on so many components, with so many numbers in its factor (or draws)."""
    needed = 16.0 * entries + 64.0 * components
    return Plan(engine.name, engine.exact, "", width, (), needed, float(entries) * (width + 1), components)
