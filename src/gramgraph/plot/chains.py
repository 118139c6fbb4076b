"""Pictures of chain samplers: running means of kept draws, which come together where chains mix."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.exceptions import OptionError, VariableError
from gramgraph.plot.axes import axes, plain

_COLORS = ("#4c78a8", "#dd9a27", "#54a24b", "#b279a2", "#e45756", "#7b8794")


def plot_chains(answer: Answer, name: str | None = None, state: Any = None, *, ax: Any = None) -> Any:
    """The share of a state among the draws of each chain so far, and the answer ± 2 standard errors; the axes.

    Lines that end in the band say that the chains tell the same; lines that stay apart belong to chains that are stuck.
    The answer must have been asked for with `keep=True`. `name` is one of its targets (the first one by default),
    `state` one of its states (the last one by default).

    Parameters
    ----------
    answer : what a query gave.
    name : one of the targets; the first one by default.
    state : one of its states; the last one by default.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(3, 3, coupling=0.3)
    >>> answer = net.query("x1_1", engine="gibbs", keep=True, budget=800, random_state=0)
    >>> ax = plot_chains(answer, "x1_1", "+1")  # doctest: +SKIP
    """
    kept = answer.details.get("chains")
    if kept is None:
        raise OptionError(
            'the answer holds no draws: ask a chain sampler to keep them, as in query(…, engine="gibbs", keep=True)'
        )
    singles = [key for key in kept if key in answer]
    name = singles[0] if name is None and singles else name
    if name is None or name not in singles:
        raise VariableError.unknown(name, singles)
    belief = answer[name]
    var = belief.scope[0]
    at = var.size - 1 if state is None else var.index(state)
    ax = axes(ax)
    for number, chain in enumerate(kept[name]):
        share = np.cumsum(chain == at) / np.arange(1, len(chain) + 1)
        ax.plot(np.arange(1, len(chain) + 1), share, color=_COLORS[number % len(_COLORS)], linewidth=1.0)
    p, error = float(belief.probabilities[at]), float(answer.details["standard_error"][name][at])
    ax.axhspan(p - 2 * error, p + 2 * error, color="#7b8794", alpha=0.2, linewidth=0)
    ax.axhline(p, color="#7b8794", linewidth=1.0)
    r_hat = float(answer.details["r_hat"][name][at])
    ax.set_xlabel("draw")
    ax.set_ylabel(plain(f"share of {name} = {var.states[at]}"))
    ax.set_title(f"{len(kept[name])} chains, R-hat {r_hat:.3g}")
    return ax
