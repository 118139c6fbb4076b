"""Pictures of what a detector finds, and of the features that it looks at."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.plot.axes import axes


def plot_detections(image: Any, boxes: Any, *, ax: Any = None, color: str = "#e45756") -> Any:
    """The image with a frame for each box (x, y, w, h, …), as `Cascade.detect` gives them. The axes are returned.

    Parameters
    ----------
    image : an array (h, w), or (h, w, 3).
    boxes : rows x, y, w, h, …
    ax : axes to draw on; None makes new ones.
    color : of the frames.

    Examples
    --------
    >>> ax = plot_detections(np.zeros((40, 40)), [[5, 5, 20, 20, 1.0]])  # doctest: +SKIP
    """
    from matplotlib.patches import Rectangle

    ax = axes(ax, size=(5.5, 5.5))
    shown = np.asarray(image)
    ax.imshow(shown, cmap="gray" if shown.ndim == 2 else None)
    for x, y, w, h, *_ in np.asarray(boxes, dtype=np.float64).reshape(len(boxes), -1) if len(boxes) else ():
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), w, h, fill=False, edgecolor=color, linewidth=1.5))
    ax.set_axis_off()
    return ax


def plot_features(stages: Any, n: int = 2, *, background: Any = None) -> Any:
    """The first n features of a cascade's stages, white and black over the window. The axes are returned.

    Parameters
    ----------
    stages : of a cascade.
    n : how many features.
    background : an image behind them, or None.

    Examples
    --------
    >>> from gramgraph.vision import HaarFeatures
    >>> len(plot_features(HaarFeatures((8, 8), "A"), 2))
    2
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Polygon

    n = min(n, len(stages.rects))
    _, places = plt.subplots(1, max(n, 1), figsize=(2.4 * max(n, 1), 2.6), squeeze=False, layout="constrained")
    w, h = stages.window
    for k, ax in enumerate(places[0][:n]):
        ax.imshow(np.full((h, w), 128) if background is None else background, cmap="gray", vmin=0, vmax=255)
        for (x, y, rw, rh), weight in zip(stages.rects[k].tolist(), stages.weights[k].tolist(), strict=True):
            if weight:
                corners = [(x, y), (x + rw, y), (x + rw, y + rh), (x, y + rh)]
                if stages.tilted[k]:
                    corners = [(x, y), (x + rw, y + rw), (x + rw - rh, y + rw + rh), (x - rh, y + rh)]
                ax.add_patch(Polygon(np.array(corners) - 0.5, color="white" if weight > 0 else "black", alpha=0.75))
        ax.set_axis_off()
    return places[0]
