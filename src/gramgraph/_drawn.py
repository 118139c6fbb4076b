"""Models draw themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gramgraph._pictures import explorer, pictures
from gramgraph._show import html_table

#: Larger graphs are listed in a notebook, not drawn.
DRAWN_VARIABLES = 60


class Explored:
    """`explore`: what can be looked at in the explorer."""

    __slots__ = ()

    def explore(self, port: int = 0, browser: bool = True, static: Any = None, **options: Any) -> Any:
        """See it think: click the evidence, watch the beliefs. A widget in a notebook, else a page of this machine.

        Returns the widget, or the running server (`url`, `token`, `close()`). `port` 0 takes any free port,
        `browser=False` opens none; `static="name.html"` writes one self-contained file instead. Sequence models and
        processes take `data=` to look at.
        """
        return explorer().explore(self, port=port, browser=browser, static=static, **options)


class Drawn(Explored):
    """`plot`, `to_dot`, and a notebook view that is the drawing of the graph."""

    __slots__ = ()

    def _picture(self) -> Any:
        """The model whose graph is drawn."""
        return self

    def plot(self, answer: Any = None, *, evidence: Mapping[str, Any] | None = None, ax: Any = None) -> Any:
        """The graph, with bars for the beliefs of `answer` and marks for `evidence`; the axes are returned."""
        return pictures().plot_network(self._picture(), answer, evidence=evidence, ax=ax)

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
        return pictures().network_dot(self._picture())

    def _repr_html_(self) -> str:
        model = self._picture()
        if len(model.variables) > DRAWN_VARIABLES:
            names = [(name,) for name in model.variables[:DRAWN_VARIABLES]]
            more = [(f"… {len(model.variables) - DRAWN_VARIABLES} more",)]
            return html_table(("variable",), names + more, caption=repr(self))
        return html_table((), (), caption=repr(self)) + pictures().network_svg(model)
