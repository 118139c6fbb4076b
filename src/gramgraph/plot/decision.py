"""Decision regions of a classifier over two columns, with its support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

_COLORS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974", "#64b5cd")


def plot_decision_regions(
    machine: Any,
    X: Any,
    y: Any = None,
    *,
    ax: Any = None,
    resolution: int = 200,
    margin: float = 0.1,
    support: bool = True,
) -> Any:
    """Draw where a fitted classifier decides for which class, the points, and its support vectors; gives back the axes.

    X has two columns. With two classes the boundary (decision 0) is a line and the margin (±1) is dashed. Support
    vectors on the margin get a thin ring, those at the bound a thick one. `resolution` is the number of grid points
    along an axis, `margin` the share of empty space around the points. Cost: one prediction of resolution² points.

    Parameters
    ----------
    machine : a fitted classifier of two columns.
    X : the points, (n, 2).
    y : their classes.
    ax : axes to draw on; None makes new ones.
    resolution : number of grid points along an axis.
    margin : room around the points, as a share of their range.
    support : whether support vectors are marked.

    Examples
    --------
    >>> from gramgraph.estimators import SVC
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1]
    >>> ax = plot_decision_regions(SVC(gamma=1.0).fit(X, y), X, y, resolution=20)
    >>> ax.get_title()
    'SVC: 4 support vectors'
    """
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap

    names = list(X.columns) if hasattr(X, "columns") else None
    points = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ModelError(f"Decision regions are drawn over two columns; X has shape {points.shape}.")
    if resolution < 2:
        raise ModelError(f"resolution must be 2 or more; it is {resolution!r}.")
    if ax is None:
        ax = plt.subplots()[1]
    first, second, grid = _grid(points, resolution, margin)
    asked: Any = grid if names is None else type(X)(grid, columns=names)
    classes = np.asarray(machine.classes_)
    codes = np.searchsorted(classes, machine.predict(asked)).reshape(first.shape)
    colors = [_COLORS[c % len(_COLORS)] for c in range(len(classes))]
    ax.pcolormesh(
        first,
        second,
        codes,
        cmap=ListedColormap(colors),
        vmin=-0.5,
        vmax=len(classes) - 0.5,
        alpha=0.25,
        shading="auto",
    )
    if len(classes) == 2 and hasattr(machine, "decision_function"):
        level = np.asarray(machine.decision_function(asked)).reshape(first.shape)
        inside = [v for v in (-1.0, 0.0, 1.0) if level.min() < v < level.max()]
        if inside:
            styles = {-1.0: "dashed", 0.0: "solid", 1.0: "dashed"}
            ax.contour(first, second, level, levels=inside, colors="black", linestyles=[styles[v] for v in inside])
    _draw_points(ax, points, y, classes, colors)
    if support and hasattr(machine, "support_"):
        _draw_support(ax, machine, points)
        ax.set_title(f"{type(machine).__name__}: {len(machine.support_)} support vectors")
    if names is not None:
        ax.set_xlabel(str(names[0]))
        ax.set_ylabel(str(names[1]))
    return ax


def _grid(points: FloatArray, resolution: int, margin: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    low, high = points.min(axis=0), points.max(axis=0)
    space = np.where(high > low, (high - low) * margin, 1.0)
    sides = [np.linspace(low[c] - space[c], high[c] + space[c], resolution) for c in (0, 1)]
    first, second = np.meshgrid(*sides)
    return first, second, np.column_stack([first.ravel(), second.ravel()])


def _draw_points(ax: Any, points: FloatArray, y: Any, classes: Any, colors: list[str]) -> None:
    if y is None:
        ax.scatter(points[:, 0], points[:, 1], s=18, c="black")
        return
    labels = np.asarray(y)
    for c, name in enumerate(classes):
        here = labels == name
        ax.scatter(points[here, 0], points[here, 1], s=18, c=colors[c], edgecolors="white", label=str(name))
    ax.legend()


def _draw_support(ax: Any, machine: Any, points: FloatArray) -> None:
    """Rings around the support vectors, which are rows of the training points."""
    bound = np.asarray(getattr(machine, "bound_support_", []), dtype=np.int64)
    on_margin = np.setdiff1d(machine.support_, bound)
    if len(machine.support_) and int(np.max(machine.support_)) >= len(points):
        raise ModelError(
            f"support vector {int(np.max(machine.support_))} is not a row of X, which has {len(points)} rows: pass the "
            "training points, or support=False."
        )
    for rows, width in ((on_margin, 0.8), (bound, 2.0)):
        ax.scatter(points[rows, 0], points[rows, 1], s=80, facecolors="none", edgecolors="black", linewidths=width)
