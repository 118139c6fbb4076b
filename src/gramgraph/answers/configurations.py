"""A joint of discrete and real variables as it is shown: a row for each configuration of the discrete ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph import _show
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.answers.mixture import MixtureBelief

SHOWN = 20


class Configuration(NamedTuple):
    """One configuration: its states, its probability, mean and standard deviation of the real components there."""

    states: tuple[str, ...]
    probability: float
    mean: FloatArray
    sd: FloatArray


def is_mixed(belief: Any) -> bool:
    """Whether a belief has discrete variables beside real ones."""
    return getattr(belief, "codes", None) is not None and any(var.is_discrete for var in belief.scope)


def configurations_of(belief: MixtureBelief, case: int = 0) -> list[Configuration]:
    """The configurations of one case, in the order of the states; those without probability are left out."""
    labelled = [var for var in belief.scope if var.is_discrete]
    w, m, S = belief._case(case)
    codes = np.asarray(belief.codes)
    out = []
    for at in np.unique(codes, axis=0):
        own = np.flatnonzero((codes == at).all(axis=1))
        p = float(w[own].sum())
        if not p > 0.0:
            continue
        share = w[own] / p
        mean = share @ m[own]
        spread = np.diagonal(S[own], axis1=1, axis2=2) + (m[own] - mean) ** 2
        states = tuple(var.states[int(i)] for var, i in zip(labelled, at, strict=True))
        out.append(Configuration(states, p, mean, np.sqrt(np.maximum(share @ spread, 0.0))))
    return out


def configuration_text(belief: MixtureBelief) -> str:
    """A table: states, probability, mean and standard deviation of every component."""
    names = [var.name for var in belief.scope if var.is_discrete]
    parts = belief._components()
    header = [*names, "p", *(title for part in parts for title in (f"{part} mean", "sd"))]
    found = configurations_of(belief)
    rows = []
    for cell in found[:SHOWN]:
        numbers = [f"{x:.6g}" if j == 0 else f"{x:.4g}" for pair in zip(cell.mean, cell.sd, strict=True)
                   for j, x in enumerate(pair)]  # fmt: skip
        rows.append([*cell.states, _show.probability_text(cell.probability), *numbers])
    text = _show.text_table(header, rows, right=range(len(names), len(header)))
    more = len(found) - len(rows)
    return f"{text}\n… and {more} more" if more else text


def configuration_frame(belief: MixtureBelief) -> Any:
    """A DataFrame with a row for every configuration and component: variable, state, probability, mean, sd."""
    import pandas as pd

    rows = [
        (name, _show.joined(cell.states), cell.probability, cell.mean[j], cell.sd[j])
        for cell in configurations_of(belief)
        for j, name in enumerate(belief._components())
    ]
    return pd.DataFrame(rows, columns=["variable", "state", "probability", "mean", "sd"])
