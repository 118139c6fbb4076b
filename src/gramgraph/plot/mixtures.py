"""Mixtures over two columns: rows colored by their responsibilities, components as ellipses."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, VariableError
from gramgraph.plot.decision import _COLORS


def plot_mixture(
    model: Any, X: Any = None, *, columns: Any = (0, 1), ax: Any = None, deviations: tuple[float, ...] = (1.0, 2.0)
) -> Any:
    """Draw the components of a Gaussian mixture (or the classes of a `GaussianClassifier`); gives back the axes.

    Each component is an ellipse at every number of `deviations`. The color of a row of X is the average of the
    components' colors, weighted by its responsibilities; rows with a gap in the two columns are left out.

    Parameters
    ----------
    model : the fitted model.
    X : rows to draw, or None.
    columns : which two.
    ax : axes to draw on; None makes new ones.
    deviations : how many standard deviations from the mean the ellipses are.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.3], [5.0, 5.1], [5.2, 5.0], [4.9, 5.2]])
    >>> ax = gg.plot.plot_mixture(gg.GaussianMixture(2, random_state=0).fit(X), X)
    >>> len(ax.patches)
    4
    """
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Ellipse

    if not hasattr(model, "means_") or not hasattr(model, "covariances_"):
        raise ModelError(f"ellipses are drawn of fitted Gaussian components; {type(model).__name__} has none")
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    d = model.means_.shape[1]
    names = names or [f"x{j}" for j in range(d)]
    at = [_place(column, names) for column in columns]
    if d < 2 or len(at) != 2:
        raise ModelError(f"a mixture is drawn over two columns; the model has {d}, and {len(at)} were named")
    ax = plt.subplots()[1] if ax is None else ax
    colors = np.array([to_rgb(_COLORS[k % len(_COLORS)]) for k in range(len(model.means_))])
    if X is not None:
        points = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=np.float64)[:, at]
        shares = model.predict_proba(X) @ colors
        ax.scatter(points[:, 0], points[:, 1], c=np.clip(shares, 0.0, 1.0), s=12, alpha=0.7, linewidths=0)
    for mean, C, color in zip(model.means_[:, at], _covariances(model)[:, at][:, :, at], colors, strict=True):
        values, vectors = np.linalg.eigh(C)
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        width, height = 2.0 * np.sqrt(np.maximum(values[::-1], 0.0))
        for size in deviations:
            ax.add_patch(Ellipse(mean, size * width, size * height, angle=angle, fill=False, edgecolor=color, lw=1.5))
        ax.plot(*mean, "+", color=color, markersize=10)
    ax.autoscale_view()
    ax.set_xlabel(names[at[0]])
    ax.set_ylabel(names[at[1]])
    ax.set_title(f"{type(model).__name__}: {len(model.means_)} components")
    return ax


def _place(column: Any, names: list[str]) -> int:
    if isinstance(column, str):
        if column not in names:
            raise VariableError.unknown(column, tuple(names))
        return names.index(column)
    if not 0 <= int(column) < len(names):
        raise ModelError(f"column {column!r} is not one of 0 to {len(names) - 1}")
    return int(column)


def _covariances(model: Any) -> Any:
    if hasattr(model, "full_covariances"):
        return model.full_covariances()
    k, d = model.means_.shape
    C = np.asarray(model.covariances_)
    if C.shape == (d, d) and model.covariance == "shared":
        return np.repeat(C[None], k, axis=0)
    return C if C.ndim == 3 else C[:, :, None] * np.eye(d)
