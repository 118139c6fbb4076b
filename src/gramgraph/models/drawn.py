"""Models draw themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramgraph._show import html_table

__all__ = ["Drawn"]

#: Larger graphs are listed in a notebook, not drawn.
DRAWN_VARIABLES = 60


class Drawn:
    """`plot`, `to_dot`, and a notebook view that is the drawing of the graph."""

    __slots__ = ()

    def _picture(self) -> Any:
        """The model whose graph is drawn."""
        return self

    def plot(self, answer: Any = None, *, evidence: Mapping[str, Any] | None = None, ax: Any = None) -> Any:
        """The graph, with bars for the beliefs of `answer` and marks for `evidence`; the axes are returned."""
        from gramgraph.plot import plot_network

        return plot_network(self._picture(), answer, evidence=evidence, ax=ax)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz.

        >>> import gramgraph as gg
        >>> print(gg.BayesianNetwork("rain -> wet").to_dot())
        digraph {
          "rain";
          "wet";
          "rain" -> "wet";
        }
        """
        from gramgraph.plot import network_dot

        return network_dot(self._picture())

    def _repr_html_(self) -> str:
        from gramgraph.plot import network_svg

        model = self._picture()
        if len(model.variables) > DRAWN_VARIABLES:
            names = [(name,) for name in model.variables[:DRAWN_VARIABLES]]
            more = [(f"… {len(model.variables) - DRAWN_VARIABLES} more",)]
            return html_table(("variable",), names + more, caption=repr(self))
        return html_table((), (), caption=repr(self)) + network_svg(model)
