"""Pictures of how an approximate answer came about: residuals of messages, bounds of mean field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.exceptions import OptionError
from gramgraph.plot.axes import axes, plain

_COLORS = ("#4c78a8", "#dd9a27", "#54a24b", "#b279a2", "#e45756", "#7b8794")


def plot_convergence(answers: Answer | Mapping[str, Answer], *, ax: Any = None) -> Any:
    """Largest change of a message in each sweep, on a logarithmic axis (mean field: the bound); the axes are returned.

    Several answers, as name → answer, are drawn together, such as those of different schedules. A dot marks the end of
    a run that did not settle.

    Parameters
    ----------
    answers : one answer, or several by name.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> runs = {s: net.query(None, {"xray": "yes"}, engine="bp", schedule=s) for s in ("flooding", "sequential")}
    >>> ax = plot_convergence(runs)  # doctest: +SKIP
    """
    # an answer is itself a mapping, of beliefs
    several: dict[str, Any] = {answers.engine: answers} if isinstance(answers, Answer) else dict(answers)
    traces = {name: _trace(name, answer) for name, answer in several.items()}
    kinds = {kind for kind, _ in traces.values()}
    if len(kinds) > 1:
        raise OptionError("residuals and bounds have different axes: draw answers of one engine at a time")
    ax = axes(ax)
    bound = kinds == {"bounds"}
    for number, (name, (_, values)) in enumerate(traces.items()):
        color = _COLORS[number % len(_COLORS)]
        shown = values if bound else np.maximum(values, 1e-17)
        sweeps = np.arange(1, len(shown) + 1)
        ax.plot(sweeps, shown, color=color, label=plain(name))
        if not several[name].details.get("converged", True) and len(shown):
            ax.plot(sweeps[-1:], shown[-1:], "o", color=color)
    if not bound:
        ax.set_yscale("log")
    ax.set_xlabel("sweep")
    ax.set_ylabel("lower bound of log p(evidence)" if bound else "largest change of a message")
    if len(several) > 1:
        ax.legend(frameon=False)
    return ax


def _trace(name: str, answer: Any) -> tuple[str, Any]:
    if isinstance(answer, Answer):
        for kind in ("residuals", "bounds"):
            if kind in answer.details:
                return kind, np.asarray(answer.details[kind], dtype=np.float64)
    raise OptionError(f'{name!r} has no record of sweeps: ask about one case with engine="bp", "trw" or "mean_field"')
