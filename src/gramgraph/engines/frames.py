"""Data frames of states: a column of categories for each variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramgraph.compile.cache import remember

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["state_frame"]


def state_frame(model: GraphicalModel, states: Any, index: Any = None) -> Any:
    """(rows, variables) of state numbers as a DataFrame of categories; a negative number is a missing state.

    Making the categories takes longer than drawing thousands of rows, so they are kept with the model.
    """
    import pandas as pd

    kinds = model._plans.get(("lowered", "categories"))
    if kinds is None:
        made = {var.states: pd.CategoricalDtype(list(var.states)) for var in model._vars}
        kinds = remember(model, ("lowered", "categories"), tuple(made[var.states] for var in model._vars))
    columns = {
        var.name: pd.Categorical.from_codes(states[:, v], dtype=kind)
        for v, (var, kind) in enumerate(zip(model._vars, kinds, strict=True))
    }
    return pd.DataFrame(columns, index=index, copy=False)
