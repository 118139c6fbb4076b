"""Full assignments as data frames: a column of categories for each discrete variable, of numbers for real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers.state_frames import StateFrames
from gramgraph.compile.cache import remember
from gramgraph.models.layout import layout_of
from gramgraph.models.points import points_of
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: pandas keeps each column of categories apart, at a quarter of a millisecond and a kilobyte each.
MANY_COLUMNS = 20_000


def frame_of(
    model: GraphicalModel,
    states: Any,  # (rows, variables) of state numbers; negative = missing
    X: FloatArray | None = None,  # (rows, components) of real-valued variables
    *,
    index: Any = None,
    log_prob: FloatArray | None = None,
    points: Mapping[int, Any] | None = None,  # observed points, one per row, None where there is none
) -> Any:
    """A data frame with a column for each variable (of a vector: for each component), and one `log_prob` if given.

    Making categories takes longer than drawing thousands of rows, so they are kept with the model. Beyond
    `MANY_COLUMNS` variables the columns hold the labels themselves.
    """
    if X is None:
        if len(model.vars) <= MANY_COLUMNS:
            return _states(model, states, index, log_prob)
        frame = _wide_frame(model, states, index)
        if log_prob is not None:
            frame["log_prob"] = log_prob
        return frame
    import pandas as pd

    layout = layout_of(model)
    if layout.scalar and layout.size == len(model.vars):  # one block of numbers
        names = list(layout.names)
        if log_prob is not None:
            names, X = [*names, "log_prob"], np.vstack([X.T, log_prob]).T
        return pd.DataFrame(X, columns=names, index=index)
    columns: dict[str, Any] = {}
    for v, var in enumerate(model.vars):
        if var.is_discrete:
            columns[var.name] = pd.Categorical.from_codes(np.asarray(states)[:, v].astype(int), list(var.states))
            continue
        if not var.is_real:
            seen = (points or {}).get(v) or [None] * len(states)
            column = [label_of(model, v, c) if x is None else x for x, c in zip(seen, states[:, v], strict=True)]
            columns[var.name] = pd.Series(column, index=index, dtype=object)
            continue
        at = layout.components(v)
        columns |= {var.name if len(at) == 1 else f"{var.name}[{i}]": X[:, c] for i, c in enumerate(at)}
    if log_prob is not None:
        columns["log_prob"] = log_prob
    return pd.DataFrame(columns, index=index)


def label_of(model: GraphicalModel, v: int, state: int) -> Any:
    """The label of a state; of a variable whose values are points, the point of a cell."""
    var = model.vars[v]
    if var.is_discrete:
        return var.states[state]
    if state < 0:
        return None
    return model.cell_axes[v].value(int(state)) if model.cell_axes else points_of(model)[v][int(state)]


def _states(model: GraphicalModel, states: Any, index: Any, log_prob: FloatArray | None) -> Any:
    frames: StateFrames | None = model.plans.get(("lowered", "categories"))
    if frames is None:
        frames = remember(model, ("lowered", "categories"), StateFrames(model.vars))
    return frames.make(states, index, log_prob)


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


def with_kept(frame: Any, keep: Any) -> Any:
    """A frame with one row per case, and in front the columns of the table of cases that were to be kept."""
    if keep is None:
        return frame
    deep = frame.columns.nlevels > 1
    for at, name in enumerate(name for name in keep.columns if deep or name not in frame):
        frame.insert(at, (name, "") if deep else name, keep[name].to_numpy())
    return frame


def split(values: Any, scope: tuple[Var, ...]) -> list[Any]:
    """A long vector as one number or vector for each variable."""
    flat, out, at = np.atleast_1d(values), [], 0
    for var in scope:
        part = flat[at : at + var.dimension]
        out.append(float(part[0]) if var.dimension == 1 else part)
        at += var.dimension
    return out
