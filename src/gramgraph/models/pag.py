"""Partial ancestral graphs: what data can say about causes when some of them may be hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gramgraph._pictures import pictures
from gramgraph._show import counted
from gramgraph.exceptions import ModelError, VariableError

MARKS = ("o", ">", "-")


@dataclass(frozen=True)
class PAG:
    """Edges with a mark at both ends: an arrowhead `>` (this end is not a cause of the other one), a tail `-` (it is a
    cause), or a circle `o` (the data do not tell). `edges` are (a, mark at a, mark at b, b).

    `a --> b`: a is a cause of b; `a <-> b`: a hidden common cause; `a o-> b`: either or both; `a o-o b`: anything.

    Parameters
    ----------
    nodes : the names.
    edges : (a, mark at a, mark at b, b).

    Examples
    --------
    >>> graph = PAG(("a", "b", "c"), (("a", "o", ">", "b"), ("b", ">", ">", "c")))
    >>> print(graph)
    a o-> b
    b <-> c
    >>> graph.mark("b", "c"), graph.neighbors("b")
    ('>', ('a', 'c'))
    """

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str, str, str], ...] = ()

    def __post_init__(self) -> None:
        known = set(self.nodes)
        for a, mark_a, mark_b, b in self.edges:
            for name in (a, b):
                if name not in known:
                    raise VariableError.unknown(name, self.nodes)
            if mark_a not in MARKS or mark_b not in MARKS or a == b:
                raise ModelError(
                    f"an edge is (a, mark at a, mark at b, b) with marks o, > or - and two nodes, not "
                    f"{(a, mark_a, mark_b, b)!r}"
                )

    def _find(self, a: str, b: str) -> tuple[str, str] | None:
        for x, mark_x, mark_y, y in self.edges:
            if (x, y) == (a, b):
                return mark_x, mark_y
            if (x, y) == (b, a):
                return mark_y, mark_x
        return None

    def mark(self, a: str, b: str) -> str | None:
        """The mark at `b` on the edge between a and b; None when there is no edge."""
        for name in (a, b):
            if name not in self.nodes:
                raise VariableError.unknown(name, self.nodes)
        found = self._find(a, b)
        return None if found is None else found[1]

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Nodes that an edge joins to `name`, in the order of `nodes`."""
        if name not in self.nodes:
            raise VariableError.unknown(name, self.nodes)
        return tuple(other for other in self.nodes if other != name and self._find(name, other) is not None)

    @property
    def arrows(self) -> tuple[tuple[str, str], ...]:
        """(cause, effect) for every edge `-->`."""
        forward = [(a, b) for a, mark_a, mark_b, b in self.edges if (mark_a, mark_b) == ("-", ">")]
        return (*forward, *((b, a) for a, mark_a, mark_b, b in self.edges if (mark_a, mark_b) == (">", "-")))

    @property
    def confounded(self) -> tuple[tuple[str, str], ...]:
        """Pairs with a hidden common cause, `<->`."""
        return tuple((a, b) for a, mark_a, mark_b, b in self.edges if (mark_a, mark_b) == (">", ">"))

    def to_frame(self) -> Any:
        """One row per edge: from, to, the edge as text."""
        import pandas as pd

        rows = [(a, b, _text(mark_a, mark_b)) for a, mark_a, mark_b, b in self.edges]
        return pd.DataFrame(rows, columns=["from", "to", "edge"])

    def plot(self, ax: Any = None) -> Any:
        """The graph with its marks, by matplotlib; the axes are returned."""
        return pictures().plot_pag(self, ax=ax)

    def __str__(self) -> str:
        touched = {name for a, _, _, b in self.edges for name in (a, b)}
        lines = [f"{a} {_text(mark_a, mark_b)} {b}" for a, mark_a, mark_b, b in self.edges]
        return "\n".join(lines + [name for name in self.nodes if name not in touched])

    def __repr__(self) -> str:
        return f"PAG({counted(node=len(self.nodes), edge=len(self.edges))})"


def _text(mark_a: str, mark_b: str) -> str:
    return ("<" if mark_a == ">" else mark_a) + "-" + mark_b
