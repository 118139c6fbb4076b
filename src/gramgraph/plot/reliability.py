"""Pictures of how far probabilities and strengths of edges can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.learn.calibration import reliability
from gramgraph.plot.axes import axes


def plot_reliability(
    strengths: Any, truth: Any, *, bins: int = 10, label: str | None = None, color: str = "#4c78a8", ax: Any = None
) -> Any:
    """The share that came true against what was said, with 95 % intervals: of probabilities, or of edges.

    Points on the diagonal are calibrated; above it, what was said came true more often. For a classifier `strengths`
    are probabilities of one class and `truth` says which rows have it: `plot_reliability(model.predict_proba(X)[:, 1],
    y == 1)`. For edges they are as in `gg.learn.reliability`, whose frame is drawn. With `ax` of an earlier call,
    `label` and `color`, several are compared. The axes are returned.

    Parameters
    ----------
    strengths : probabilities that were said, or strengths of edges.
    truth : which came true, or the true network.
    bins : number of intervals, or their ends.
    label : in the legend.
    color : of the points.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> strengths = gg.learn.bootstrap_edges(net.sample(500, random_state=0), 20, random_state=0)
    >>> ax = plot_reliability(strengths, net)  # doctest: +SKIP
    """
    said = _numbers(strengths)
    table = reliability(strengths, truth, bins=bins) if said is None else _of_probabilities(said, truth, bins)
    ax = axes(ax)
    if not ax.lines:  # the diagonal, once
        ax.plot([0, 1], [0, 1], color="#9aa5b1", linewidth=1)
    below, above = table["share"] - table["low"], table["high"] - table["share"]
    ax.errorbar(
        table["strength"], table["share"], yerr=[below.clip(0), above.clip(0)], fmt="o", color=color, label=label
    )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("strength" if said is None else "said")
    ax.set_ylabel("share of true edges" if said is None else "came true")
    if label is not None:
        ax.legend(frameon=False, fontsize="small")
    return ax


def _numbers(given: Any) -> Any:
    """Probabilities as an array; None for anything else."""
    if hasattr(given, "columns") or isinstance(given, (str, dict)):
        return None
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 and len(found) else None


def _of_probabilities(p: Any, truth: Any, bins: int) -> Any:
    """Mean of what was said, share that came true and Wilson's interval, in bins of equal counts."""
    import pandas as pd

    y = np.asarray(truth)
    if y.shape != p.shape or not np.isin(y, (0, 1)).all():
        raise ModelError(f"truth must hold True or False for each of the {len(p)} probabilities")
    if not ((p >= 0.0) & (p <= 1.0)).all():
        raise ModelError("probabilities lie between 0 and 1")
    rows = []
    for part in np.array_split(np.argsort(p, kind="stable"), min(max(int(bins), 1), len(p))):
        n, share = len(part), float(y[part].mean())
        z = 1.96
        center = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        rows.append((float(p[part].mean()), share, center - half, center + half))
    return pd.DataFrame(rows, columns=["strength", "share", "low", "high"])
