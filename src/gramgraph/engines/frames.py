"""Data frames of states: a column of categories for each variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.cache import remember

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["state_frame"]


#: pandas keeps each column of categories apart, at a quarter of a millisecond and a kilobyte each.
MANY_COLUMNS = 20_000


def state_frame(model: GraphicalModel, states: Any, index: Any = None) -> Any:
    """(rows, variables) of state numbers as a DataFrame of categories; a negative number is a missing state.

    Making the categories takes longer than drawing thousands of rows, so they are kept with the model. Beyond
    `MANY_COLUMNS` variables the columns hold the labels themselves.
    """
    import pandas as pd

    if len(model.vars) > MANY_COLUMNS:
        return _wide_frame(model, states, index)
    kinds = model.plans.get(("lowered", "categories"))
    if kinds is None:
        made = {var.states: pd.CategoricalDtype(list(var.states)) for var in model.vars}
        kinds = remember(model, ("lowered", "categories"), tuple(made[var.states] for var in model.vars))
    columns = {
        var.name: pd.Categorical.from_codes(states[:, v], dtype=kind)
        for v, (var, kind) in enumerate(zip(model.vars, kinds, strict=True))
    }
    return pd.DataFrame(columns, index=index, copy=False)


def _wide_frame(model: GraphicalModel, states: Any, index: Any) -> Any:
    """The same with labels in one block of objects: None where the state is missing."""
    import pandas as pd

    values = np.empty(states.shape, dtype=object)
    shared: dict[tuple[str, ...], list[int]] = {}
    for v, var in enumerate(model.vars):
        shared.setdefault(var.states, []).append(v)
    for labels, members in shared.items():
        words = np.array([*labels, None], dtype=object)  # state -1 is the last one
        values[:, members] = words[states[:, members]]
    return pd.DataFrame(values, columns=list(model.positions), index=index, dtype=object, copy=False)
