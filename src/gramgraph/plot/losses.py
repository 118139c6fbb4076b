"""Pictures of losses against the margin or the difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.losses import Loss
from gramgraph.plot.axes import axes


def plot_losses(losses: Mapping[str, Loss], *, ax: Any = None) -> Any:
    """One line per loss: against t·y for losses of classes, against t − y for losses of numbers.

    Parameters
    ----------
    losses : one, or several.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> from gramgraph.losses import Hinge, Log
    >>> plot_losses({"hinge": Hinge(), "log": Log()})  # doctest: +SKIP
    """
    kinds = {loss.of_margin for loss in losses.values()}
    if len(kinds) != 1:
        raise ModelError("losses of classes and losses of numbers do not fit into one picture")
    ax = axes(ax)
    x = np.linspace(-2.0, 2.0, 801)
    for name, loss in losses.items():
        ax.plot(x, loss(1.0, x) if loss.of_margin else loss(x, 0.0), label=name)
    ax.set_xlabel("margin t·y" if kinds == {True} else "difference t − y")
    ax.set_ylabel("loss")
    ax.legend()
    return ax
