"""Pictures of how far strengths of edges can be trusted."""

from __future__ import annotations

from typing import Any

from gramgraph.learn.calibration import reliability
from gramgraph.plot.axes import axes

__all__ = ["plot_reliability"]


def plot_reliability(
    strengths: Any, truth: Any, *, bins: int = 10, label: str | None = None, color: str = "#4c78a8", ax: Any = None
) -> Any:
    """The share of true edges against the strength that a bootstrap gives them, with 95 % intervals.

    Points on the diagonal are calibrated; above it, edges are surer than their strength says. `strengths` and `truth`
    are as in `gg.learn.reliability`, whose frame is drawn. With `ax` of an earlier call, `label` and `color`, strengths
    are compared with calibrated ones. The axes are returned.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> strengths = gg.learn.bootstrap_edges(net.sample(500, random_state=0), 20, random_state=0)
    >>> ax = plot_reliability(strengths, net)  # doctest: +SKIP
    """
    table = reliability(strengths, truth, bins=bins)
    ax = axes(ax)
    if not ax.lines:  # the diagonal, once
        ax.plot([0, 1], [0, 1], color="#9aa5b1", linewidth=1)
    below, above = table["share"] - table["low"], table["high"] - table["share"]
    ax.errorbar(
        table["strength"], table["share"], yerr=[below.clip(0), above.clip(0)], fmt="o", color=color, label=label
    )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("strength")
    ax.set_ylabel("share of true edges")
    if label is not None:
        ax.legend(frameon=False, fontsize="small")
    return ax
