"""Pictures of beliefs about real-valued variables: densities, ellipses, contours."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._show import joined, shorten
from gramgraph.answers import Belief, MixtureBelief, RealAnswer, RealBelief, SampledBelief
from gramgraph.exceptions import VariableError
from gramgraph.plot.pictures import _axes, _plain, plot_beliefs
from gramgraph.typing import FloatArray

_BLUE, _AMBER = "#4c78a8", "#dd9a27"


def plot_density(belief: RealBelief, *, ax: Any = None, level: float = 0.9) -> Any:
    """The density of a scalar variable with its mean and interval; for two components ellipses of 50 % and `level`.

    For a table of cases, the mean of every case with its interval.

    Parameters
    ----------
    belief : of one or two real-valued variables.
    ax : axes to draw on; None makes new ones.
    level : share that an interval holds.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real}", cpds={"x": (0.0, 1.0)})
    >>> ax = plot_density(net.query("x")["x"])  # doctest: +SKIP
    """
    name = _plain(shorten(", ".join(var.name for var in belief.scope if not var.is_discrete), 40))
    if belief.batched:
        return _plot_many(belief, name, ax, level)
    if belief.dimension == 2:
        return _plot_pair(belief, ax, level)
    if not belief.is_scalar:
        raise VariableError("a picture is made of one scalar variable or of two components; ask for fewer together")
    ax = _axes(ax, size=(4.5, 2.6))
    sd = float(belief.sd())
    if not sd > 0.0:
        ax.axvline(float(belief.mean()), color=_BLUE, lw=2)
    else:
        low, high = float(belief.quantile(0.001)), float(belief.quantile(0.999))
        x = np.linspace(low - 0.2 * sd, high + 0.2 * sd, 400)
        y = belief.density(x)
        a, b = belief.interval(level)
        inside = (x >= a) & (x <= b)
        ax.plot(x, y, color=_BLUE, lw=1.6)
        ax.fill_between(x[inside], y[inside], color=_BLUE, alpha=0.25, lw=0)
        ax.axvline(float(belief.mean()), color=_AMBER, lw=1.2, ls="--")
        ax.set_ylim(bottom=0.0)
    ax.set_xlabel(name, fontsize=9)
    ax.set_ylabel("density", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _plot_many(belief: RealBelief, name: str, ax: Any, level: float) -> Any:
    if not belief.is_scalar:
        raise VariableError("a picture of many cases is made of one scalar variable")
    ax = _axes(ax, size=(6.0, 3.0))
    mean, ends = belief.mean(), belief.interval(level)
    at = np.arange(len(mean))
    ax.vlines(at, ends[:, 0], ends[:, 1], color=_BLUE, alpha=0.4, lw=2)
    ax.plot(at, mean, ".", color=_BLUE, ms=4)
    ax.set_xlabel("case", fontsize=9)
    ax.set_ylabel(name, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _ellipse(mean: FloatArray, cov: FloatArray, share: float) -> FloatArray:
    """Points of the ellipse that holds a share of a Gaussian in two dimensions."""
    values, vectors = np.linalg.eigh(cov)
    radius = np.sqrt(-2.0 * np.log(1.0 - share))
    t = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.stack([np.cos(t), np.sin(t)])
    return mean[:, None] + radius * (vectors * np.sqrt(np.maximum(values, 0.0))) @ circle


def _contours(ax: Any, belief: MixtureBelief, level: float) -> None:
    """Lines inside which half, and a share `level`, of a mixture lies."""
    mean, sd = np.asarray(belief.mean()), np.asarray(belief.sd())
    x, y = (np.linspace(mean[i] - 3.5 * sd[i], mean[i] + 3.5 * sd[i], 90) for i in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    z = belief.density(grid)
    ranked = np.sort(z.ravel())[::-1]
    mass = np.cumsum(ranked) / ranked.sum()
    lines = sorted({float(ranked[np.searchsorted(mass, share)]) for share in (0.5, level)})
    ax.contour(x, y, z, levels=lines, colors=_BLUE, linewidths=1.4)


def _plot_pair(belief: RealBelief, ax: Any, level: float) -> Any:
    ax = _axes(ax, size=(3.8, 3.6))
    names = belief._components()
    if isinstance(belief, SampledBelief):
        few = belief.sample(2000, 0)
        ax.plot(few[:, 0], few[:, 1], ".", color=_BLUE, ms=2, alpha=0.3)
    elif isinstance(belief, MixtureBelief) and belief.weights.shape[1] > 1:
        _contours(ax, belief, level)
    else:
        for share in (0.5, level):
            ax.plot(*_ellipse(np.asarray(belief.mean()), belief.cov(), share), color=_BLUE, lw=1.4)
    mean = np.asarray(belief.mean())
    ax.plot(*mean, "+", color=_AMBER, ms=9, mew=2)
    ax.set_xlabel(_plain(names[0]), fontsize=9)
    ax.set_ylabel(_plain(names[1]), fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_answer(answer: RealAnswer, *, ax: Any = None) -> Any:
    """A small picture for each belief (the first twelve); an array of axes, or the one that was given."""
    keys = [key for key in answer if isinstance(answer[key], Belief) or answer[key].dimension <= 2][:12]
    if not keys:
        raise VariableError("there is no belief of one or two components to draw")
    if ax is not None or len(keys) == 1:
        return _plot_one(answer, keys[0], ax)
    from matplotlib import pyplot as plt

    columns = min(3, len(keys))
    rows = -(-len(keys) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.6 * columns, 2.4 * rows), layout="constrained", squeeze=False)
    for key, place in zip(keys, grid.ravel(), strict=False):
        _plot_one(answer, key, place)
    for place in grid.ravel()[len(keys) :]:
        place.set_axis_off()
    return grid


def _plot_one(answer: RealAnswer, key: Any, ax: Any) -> Any:
    belief = answer[key]
    if isinstance(belief, Belief):
        return plot_beliefs(belief, ax=ax)
    made = plot_density(belief, ax=ax)
    if isinstance(key, tuple):
        made.set_title(_plain(shorten(joined(key), 40)), fontsize=9)
    return made
