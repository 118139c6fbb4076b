"""Pictures of Gaussians: ellipses, densities of posteriors, the graph of a precision matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.plot.pictures import _axes, _plain
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.distributions.gaussian import Gaussian

_COLORS = ("#4c78a8", "#dd9a27", "#54a24b", "#b279a2", "#e45756", "#7b8794")


def plot_gaussian(
    gaussians: Gaussian | Sequence[Gaussian],
    *,
    coordinates: tuple[int, int] = (0, 1),
    deviations: Sequence[float] = (1.0, 2.0),
    points: Any = None,
    labels: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Ellipses of equal density of two coordinates, one for each number of standard deviations, around the mean.

    In two dimensions 1, 2 and 3 deviations hold 39 %, 86 % and 99 % of the mass. A singular covariance draws a line
    or a dot. `points` (n, 2) are drawn as well.

    Parameters
    ----------
    gaussians : one, a sequence, or a mapping from labels.
    coordinates : which two.
    deviations : how many standard deviations from the mean the ellipses are.
    points : (n, 2) points to draw as well.
    labels : one for each, or None.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> from gramgraph.distributions import Gaussian
    >>> ax = plot_gaussian(Gaussian([0.0, 0.0], [[2.0, 1.0], [1.0, 1.0]]))  # doctest: +SKIP
    """
    several: list[Any] = list(gaussians) if isinstance(gaussians, (list, tuple)) else [gaussians]
    names = _labels(labels, len(several))
    for g in several:
        if g.dim < 2:
            raise ModelError("Ellipses need a Gaussian of at least two coordinates; plot_densities draws one.")
    if not len(deviations) or min(deviations) <= 0.0:
        raise ModelError(f"deviations must be positive numbers; got {list(deviations)}.")
    ax = _axes(ax, size=(5.0, 3.8))
    if points is not None:
        P = np.asarray(points, dtype=np.float64)
        if P.ndim != 2 or P.shape[1] != 2:
            raise ModelError(f"points must have shape (n, 2); their shape is {P.shape}.")
        ax.scatter(P[:, 0], P[:, 1], s=8, color="#7b8794", alpha=0.5, linewidths=0)
    turn = np.linspace(0.0, 2.0 * np.pi, 181)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    for i, g in enumerate(several):
        pair = g.marginal(list(coordinates))
        values, U = np.linalg.eigh(pair.cov)
        shape = U @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle)
        color = _COLORS[i % len(_COLORS)]
        for k, r in enumerate(sorted(deviations)):
            x, y = pair.mean[:, None] + r * shape
            ax.plot(x, y, color=color, linewidth=1.4 if k == 0 else 0.9, label=names[i] if k == 0 else None)
            ax.fill(x, y, color=color, alpha=0.10, linewidth=0)
        ax.plot(*pair.mean, "o", color=color, markersize=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(f"x{coordinates[0]}")
    ax.set_ylabel(f"x{coordinates[1]}")
    return _finish(ax, labels is not None)


def plot_densities(
    distributions: Any, *, span: tuple[float, float] | None = None, labels: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """Densities of distributions on the line or of angles, such as a prior and the posteriors that follow it.

    Takes one distribution, a sequence, or a mapping from labels. Without `span` the interval holds nearly all mass of
    every one, found from draws.

    Parameters
    ----------
    distributions : one, a sequence, or a mapping from labels.
    span : (left, right) end of the axis; None takes that of the data.
    labels : one for each, or None.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> from gramgraph.distributions import BetaBernoulli
    >>> coin = BetaBernoulli(1.0, 1.0)
    >>> ax = plot_densities({"prior": coin.posterior, "after": coin.update([1, 1, 0]).posterior})  # doctest: +SKIP
    """
    if isinstance(distributions, Mapping):
        labels, several = list(map(str, distributions)), list(distributions.values())
    else:
        several = list(distributions) if isinstance(distributions, (list, tuple)) else [distributions]
    names = _labels(labels, len(several))
    draws = []
    for p in several:
        if not hasattr(p, "density") or not hasattr(p, "sample"):
            raise ModelError(f"A distribution with density and sample is needed; got {type(p).__name__}.")
        found = np.asarray(p.sample(2000, random_state=0), dtype=np.float64)
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim != 1:
            raise ModelError(f"{type(p).__name__} is not a distribution of numbers. Try: draw its marginals.")
        draws.append(found)
    low, high = _span(draws) if span is None else span
    if not low < high:
        raise ModelError(f"span must be two rising numbers; got {(low, high)}.")
    ax = _axes(ax, size=(5.0, 3.8))
    for i, p in enumerate(several):
        color = _COLORS[i % len(_COLORS)]
        if getattr(p, "support", "") in ("counts", "positive_integers", "binary", "codes"):
            x = np.arange(np.ceil(low), np.floor(high) + 1.0)
            ax.vlines(x + 0.08 * i, 0.0, p.density(x), color=color, label=names[i])
        else:
            x = np.linspace(low, high, 601)
            y = p.density(x)
            ax.plot(x, y, color=color, label=names[i])
            ax.fill_between(x, 0.0, np.where(np.isfinite(y), y, 0.0), color=color, alpha=0.12, linewidth=0)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("density")
    return _finish(ax, any(names))


def plot_precision_graph(
    precision: Any, *, names: Sequence[str] | None = None, threshold: float = 0.0, ax: Any = None
) -> Any:
    """The graph of a precision matrix: an edge where it is not zero, as wide as its partial correlation is strong.

    Blue edges are positive partial correlations, red ones negative. Variables stand on a circle; isolated ones are
    pale. Takes a matrix, anything with `precision_` (a fitted `GraphicalLasso`) or `precision` (a `Gaussian`), or a
    network whose variables are all real-valued and linear-Gaussian.

    Parameters
    ----------
    precision : the matrix, or what has one.
    names : of the variables.
    threshold : partial correlations up to this are left out.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> ax = plot_precision_graph([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])  # doctest: +SKIP
    """
    if names is None and hasattr(precision, "feature_names_in_"):
        names = [str(name) for name in precision.feature_names_in_]
    if hasattr(precision, "to_gaussian") and hasattr(
        precision, "partial_correlations"
    ):  # a model; its zeros are those of the graph, not of rounding
        names = _component_names(precision) if names is None else names
        R = precision.partial_correlations().to_numpy()
        precision = 2.0 * np.eye(len(R)) - R
    matrix = getattr(precision, "precision_", getattr(precision, "precision", precision))
    P = np.asarray(matrix, dtype=np.float64)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or not (np.diagonal(P) > 0.0).all():
        raise ModelError(f"precision must be a square matrix with a positive diagonal; its shape is {P.shape}.")
    p = len(P)
    texts = [f"x{i}" for i in range(p)] if names is None else [str(name) for name in names]
    if len(texts) != p:
        raise ModelError(f"names must be {p}, one for each variable; there are {len(texts)}.")
    size = np.sqrt(np.diagonal(P))
    rho = P / -size[:, None] / size
    angle = np.pi / 2.0 - 2.0 * np.pi * np.arange(p) / p
    at = np.column_stack([np.cos(angle), np.sin(angle)])
    ax = _axes(ax, size=(5.0, 3.8))
    joined = (np.abs(rho) > threshold) & (P != 0.0) & ~np.eye(p, dtype=bool)
    for i, j in np.argwhere(np.triu(joined)).tolist():
        color = "#4c78a8" if rho[i, j] > 0 else "#e45756"
        ax.plot(*at[[i, j]].T, color=color, linewidth=0.6 + 4.0 * abs(rho[i, j]), alpha=0.8, zorder=1)
    shade = np.where(joined.any(axis=1), "#26323f", "#c3cad1").tolist()
    ax.scatter(at[:, 0], at[:, 1], s=120 if p <= 30 else 20, c=shade, zorder=2)
    if p <= 60:
        for (x, y), text in zip(1.14 * at, texts, strict=True):
            ax.text(x, y, _plain(text), ha="center", va="center", fontsize=8)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _component_names(model: Any) -> list[str]:
    return [str(name) for name in model.partial_correlations().columns]


def _span(draws: list[FloatArray]) -> tuple[float, float]:
    """An interval with nearly all mass of every distribution, and a margin."""
    low = min(float(np.quantile(x, 0.002)) for x in draws)
    high = max(float(np.quantile(x, 0.998)) for x in draws)
    inside = all(float(x.min()) >= 0.0 for x in draws)
    margin = 0.1 * (high - low) if high > low else 1.0
    low, high = low - margin, high + margin
    if inside:
        low = max(low, 0.0)
        high = min(high, 1.0) if all(float(x.max()) <= 1.0 for x in draws) else high
    return low, high


def _labels(labels: Sequence[str] | None, n: int) -> list[str | None]:
    if labels is None:
        return [None] * n
    if len(labels) != n:
        raise ModelError(f"labels must be {n}, one for each distribution; there are {len(labels)}.")
    return [_plain(str(label)) for label in labels]


def _finish(ax: Any, legend: bool) -> Any:
    if legend:
        ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
