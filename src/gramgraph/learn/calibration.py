"""Do the strengths of edges mean what they say? Shares of true edges among pairs of about equal strength."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.learn.bootstrap import EdgeStrengths
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray

__all__ = ["reliability"]


def reliability(
    strengths: EdgeStrengths | Sequence[EdgeStrengths],
    truth: BayesianNetwork | Sequence[BayesianNetwork],
    *,
    bins: int = 10,
) -> Any:
    """How often pairs with a strength in each interval are joined in the true graph, as a frame.

    Columns: `strength` (mean in the interval), `share` (of true edges), `pairs`, and `low`, `high`, a 95 % interval for
    the share (Wilson's). Strengths are calibrated where the interval covers the mean strength. Several bootstraps
    with their true networks are pooled.

    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> strengths = gg.learn.bootstrap_edges(net.sample(500, random_state=0), 20, random_state=0)
    >>> list(gg.learn.reliability(strengths, net).columns)
    ['strength', 'share', 'pairs', 'low', 'high']
    """
    import pandas as pd

    if not isinstance(bins, (int, np.integer)) or isinstance(bins, bool) or bins < 1:
        raise OptionError(f"bins is how many intervals there are, a whole number from 1, not {bins!r}")
    found = [strengths] if isinstance(strengths, EdgeStrengths) else list(strengths)
    nets = [truth] if isinstance(truth, BayesianNetwork) else list(truth)
    if len(found) != len(nets):
        raise OptionError(f"each bootstrap needs its true network: there are {len(found)} and {len(nets)}")
    pairs = np.array([row for s, net in zip(found, nets, strict=True) for row in _pairs(s, net)]).reshape(-1, 2)
    at = np.minimum((pairs[:, 0] * bins).astype(np.int64), bins - 1)
    rows = []
    for b in np.unique(at):
        inside = pairs[at == b]
        rows.append((inside[:, 0].mean(), inside[:, 1].mean(), len(inside), *_wilson(inside[:, 1])))
    return pd.DataFrame(rows, columns=["strength", "share", "pairs", "low", "high"])


def _pairs(strengths: EdgeStrengths, net: BayesianNetwork) -> Iterable[tuple[float, float]]:
    """(strength, 1 where the true graph joins the pair)."""
    true = {frozenset(edge) for edge in net.edges}
    joined = strengths.forward + strengths.forward.T
    for i, a in enumerate(strengths.names):
        net.index(a)
        for j in range(i + 1, len(strengths.names)):
            yield min(float(joined[i, j]), 1.0), float(frozenset((a, strengths.names[j])) in true)


def _wilson(hits: FloatArray, z: float = 1.959964) -> tuple[float, float]:
    n, p = len(hits), float(hits.mean())
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)
