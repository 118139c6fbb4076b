"""The axes that a picture is drawn on."""

from __future__ import annotations

from typing import Any

from gramgraph.exceptions import GramGraphError


def axes(ax: Any, *, size: tuple[float, float] = (5.5, 3.6), instead: str = "") -> Any:
    """`ax` itself, or the axes of a new figure of this size in inches; `instead` says what works without matplotlib."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise GramGraphError(
            f"matplotlib is needed for this picture: pip install 'gramgraph[plot]'{instead}"
        ) from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def plain(text: str, length: int = 60) -> str:
    """Text without the dollar signs that matplotlib would read as formulas, and not too long."""
    text = text if len(text) <= length else text[: length - 1] + "…"
    return text.replace("$", r"\$")
