"""Pictures of relevance vector machines; every function takes `ax=` and returns the axes it drew on."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.plot.axes import axes

_BLUE, _AMBER, _GRAY = "#4c78a8", "#dd9a27", "#7b8794"


def plot_rvr(model: Any, X: Any, y: Any, *, deviations: float = 2.0, n_grid: int = 400, ax: Any = None) -> Any:
    """A fitted `RVR` on one input column: data, mean, a band of ± `deviations` predictive standard deviations.

    The relevance vectors are ringed.

    Parameters
    ----------
    model : a fitted `RVR`.
    X : the points, (n, 1).
    y : their values.
    deviations : width of the band in standard deviations, or several.
    n_grid : number of grid points.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> X = np.linspace(0.0, 3.0, 20)[:, None]
    >>> len(plot_rvr(gg.RVR().fit(X, np.sin(X[:, 0])), X, np.sin(X[:, 0])).lines) > 0
    True
    """
    x, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or x.shape[1] != 1 or y.ndim != 1:
        raise ModelError(f"plot_rvr draws one column against one output; X is {x.shape}, y is {y.shape}.")
    margin = 0.03 * float(np.ptp(x))
    grid = np.linspace(x.min() - margin, x.max() + margin, n_grid)
    mean, std = model.predict(grid[:, None], return_std=True)
    ax = axes(ax)
    band = f"± {deviations:g} standard deviations"
    ax.fill_between(grid, mean - deviations * std, mean + deviations * std, color=_BLUE, alpha=0.18, lw=0, label=band)
    ax.plot(grid, mean, color=_BLUE, label="mean")
    ax.scatter(x[:, 0], y, s=9, color=_GRAY, label="data")
    _rings(ax, x[model.relevance_, 0], y[model.relevance_])
    ax.legend(fontsize=8, frameon=False)
    return ax


def plot_rvc(model: Any, X: Any, y: Any, *, n_grid: int = 150, ax: Any = None) -> Any:
    """A fitted `RVC` on two input columns: regions of the classes, shaded by probability; relevance vectors ringed.

    Parameters
    ----------
    model : a fitted `RVC`.
    X : the points, (n, 2).
    y : their classes.
    n_grid : number of grid points along an axis.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> y = (X[:, 0] > 0.0).astype(int)
    >>> bool(plot_rvc(gg.RVC().fit(X, y), X, y, n_grid=10).collections)
    True
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ModelError(f"plot_rvc draws two columns; X is {X.shape}.")
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.08 * (high - low)
    sides = [np.linspace(a, b, n_grid) for a, b in zip(low - margin, high + margin, strict=True)]
    mesh = np.stack(np.meshgrid(*sides), axis=-1)
    p = model.predict_proba(mesh.reshape(-1, 2)).reshape(n_grid, n_grid, -1)
    ax = axes(ax)
    if p.shape[2] == 2:
        ax.contourf(*sides, p[..., 1], levels=np.linspace(0, 1, 11), cmap="BrBG", alpha=0.45)
        ax.contour(*sides, p[..., 1], levels=[0.5], colors="#333333")
    else:
        levels = np.arange(p.shape[2] + 1) - 0.5
        ax.contourf(*sides, p.argmax(axis=2), levels=levels, cmap="tab10", alpha=0.25)
    for label in model.classes_:
        ax.scatter(*X[y == label].T, s=9, label=str(label))
    _rings(ax, *X[model.relevance_].T)
    ax.legend(fontsize=8, frameon=False)
    return ax


def _rings(ax: Any, x: Any, y: Any) -> None:
    label = f"{len(x)} relevance vectors"
    ax.scatter(x, y, s=70, facecolors="none", edgecolors=_AMBER, linewidths=1.6, label=label, zorder=3)
