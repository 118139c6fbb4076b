"""Pictures of grids: images and labellings side by side, and the cost of a labelling above its bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.exceptions import GramGraphError, OptionError
from gramgraph.plot.axes import axes, plain


def plot_images(images: Any, *, cmap: str = "gray", size: float = 3.0) -> Any:
    """Arrays (rows, cols), one or several as name → array, side by side with the same colors; the axes, as an array.

    Parameters
    ----------
    images : one array, or several by name.
    cmap : colors of matplotlib.
    size : (width, height) of one picture in inches.

    Examples
    --------
    >>> import numpy as np
    >>> ax = plot_images({"noisy": np.eye(4), "clean": np.zeros((4, 4))})  # doctest: +SKIP
    """
    several = dict(images) if isinstance(images, Mapping) else {"": images}
    arrays = {name: np.asarray(image, np.float64) for name, image in several.items()}
    for name, image in arrays.items():
        if image.ndim != 2 or not image.size:
            raise OptionError(f"image {name!r} has shape {image.shape}, not (rows, cols)")
    if not arrays:
        raise OptionError("there is no image to draw")
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise GramGraphError("matplotlib is needed for this picture: pip install 'gramgraph[plot]'") from error
    low, high = min(a.min() for a in arrays.values()), max(a.max() for a in arrays.values())
    _, row = plt.subplots(1, len(arrays), figsize=(size * len(arrays), size), layout="constrained", squeeze=False)
    for ax, (name, image) in zip(row[0], arrays.items(), strict=True):
        ax.imshow(image, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
        ax.set_title(plain(name))
        ax.set_axis_off()
    return row[0]


def plot_bound(found: Any, *, ax: Any = None) -> Any:
    """Cost of the labelling and its lower bound after each sweep of `gg.label_grid`; the axes are returned.

    Parameters
    ----------
    found : what `gg.label_grid` gave.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> ax = plot_bound(gg.label_grid(np.ones((2, 2, 2))))  # doctest: +SKIP
    """
    costs, bounds = getattr(found, "costs", None), getattr(found, "bounds", None)
    if costs is None or bounds is None:
        raise OptionError(f"plot_bound draws what gg.label_grid returns, not {type(found).__name__}")
    ax = axes(ax)
    sweeps = np.arange(1, len(costs) + 1)
    ax.plot(sweeps, costs, color="#4c78a8", label="cost")
    ax.plot(sweeps, bounds, color="#dd9a27", label="bound")
    ax.set_xlabel("sweep")
    ax.legend(frameon=False)
    return ax
