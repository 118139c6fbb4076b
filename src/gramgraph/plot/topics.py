"""Topics as bars: the most probable words of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gramgraph._validation import check_count
from gramgraph.exceptions import ModelError
from gramgraph.plot.axes import axes, plain

_COLORS = ("#4c78a8", "#dd9a27", "#54a24b", "#b279a2", "#e45756", "#7b8794")
_ACROSS = 5


def plot_topics(model: Any, *, n_words: int = 10, topics: Iterable[int] | None = None, ax: Any = None) -> Any:
    """Draw the most probable words of topics, one picture each, bars as long as E φ; an array of axes is given back.

    `topics` are numbers from 0 on, all by default; with `ax` one topic is drawn there.

    Parameters
    ----------
    model : the fitted model.
    n_words : how many words of a topic.
    topics : which ones; None for all.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> texts = [["river", "water", "fish"], ["bank", "money", "loan"]] * 5
    >>> model = gg.LatentDirichletAllocation(2, random_state=0).fit(texts)
    >>> grid = gg.plot.plot_topics(model, n_words=3)
    >>> [len(ax.patches) for ax in grid]
    [3, 3]
    """
    if not hasattr(model, "topic_word_") or not hasattr(model, "top_words"):
        raise ModelError(f"topics are drawn of a fitted gg.LatentDirichletAllocation, not of a {type(model).__name__}")
    check_count("n_words", n_words)
    phi, words = model.topic_word_, model.top_words(n_words)
    chosen = [check_count("topics", t, 0, len(phi) - 1) for t in (range(len(phi)) if topics is None else topics)]
    if not chosen or (ax is not None and len(chosen) != 1):
        raise ModelError(f"{len(chosen)} topics were named: name one for `ax`, or at least one without it")
    grid = _grid(len(chosen), n_words) if ax is None else [ax]
    for own, t in zip(grid, chosen, strict=True):
        _bars(own, words[t], np.sort(phi[t])[::-1], _COLORS[t % len(_COLORS)])
        own.set_title(f"topic {t}")
    return np.array(grid, dtype=object)


def _grid(count: int, n_words: int) -> list[Any]:
    """That many axes of one figure."""
    across = min(count, _ACROSS)
    down = -(-count // across)
    size = (2.6 * across, down * (0.8 + 0.2 * n_words))
    first = axes(None, size=size)
    figure = first.figure
    figure.clear()
    return [figure.add_subplot(down, across, number + 1) for number in range(count)]


def _bars(ax: Any, words: list[str], phi: Any, color: str) -> None:
    at = np.arange(len(words))
    ax.barh(at, phi[: len(words)], color=color)
    ax.set_yticks(at, [plain(word, 24) for word in words])
    ax.invert_yaxis()
    ax.tick_params(axis="x", labelsize="small")
    ax.set_xlabel("E φ", fontsize="small")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
