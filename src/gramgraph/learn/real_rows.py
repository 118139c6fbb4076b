"""Rows for networks with real-valued variables: which variables are real, cells as numbers and codes, weights."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from gramgraph.data.frames import read_frame
from gramgraph.data.kinds import is_real
from gramgraph.data.stream import is_stream, read_table, stream_names
from gramgraph.exceptions import OptionError, StateError, VariableError, did_you_mean
from gramgraph.learn.matching import owner_of
from gramgraph.learn.parameters import is_open, states_from
from gramgraph.models import BayesianNetwork
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read
from gramgraph.typing import FloatArray
from gramgraph.variables import Real, Var


def with_real_columns(net: BayesianNetwork, data: Any, *, look: bool = False) -> BayesianNetwork:
    """The same structure, where undeclared variables whose columns `gg.describe` calls real are real-valued; beside
    real ones, other undeclared variables take the labels that their columns show.

    Of a file or stream, which is as a rule read once, columns are only looked at where that is asked for.
    """
    open_ones = [v for v in range(len(net.vars)) if is_open(net, v)]
    if not open_ones or (is_stream(data) and net.is_discrete and not look):
        return net
    frame = as_frame(net, data)
    variables = list(net.vars)
    for v in open_ones:
        name = variables[v].name
        if name in frame and is_real(frame[name]):
            variables[v] = Var(name, Real())
    if variables == list(net.vars) and net.is_discrete:
        return net
    for v in open_ones:
        if variables[v].is_discrete:
            variables[v] = states_from(net, v, frame)
    kept = list(net.conditionals)
    return BayesianNetwork.from_parts(
        variables, kept, parents=net.parent_positions, name=net.name, metadata=dict(net.metadata), check=False
    )


def as_frame(net: BayesianNetwork, data: Any, weights: Any = None) -> Any:
    """The data in memory, texts of real-valued variables as numbers; of a file or a stream only the columns of
    variables and weights."""
    import pandas as pd

    if not is_stream(data):
        frame = read_frame(data).table
        texts = [c for c in frame.columns if c in net and net.var(c).is_real and _are_texts(frame[c])]
        return frame.assign(**{c: _numbers(frame[c], c) for c in texts}) if texts else frame
    names = stream_names(data)
    wanted = [name for name in names if owner_of(net, name) in net or (isinstance(weights, str) and name == weights)]
    if not wanted:
        hint = did_you_mean(names[0], net.variables) if names else ""
        raise VariableError(f"no column of the table is a variable of the network.{hint}")
    frame = read_table(data, wanted)
    for name in wanted:
        owner = owner_of(net, name)
        number = owner not in net or net.var(owner).is_real
        if number and not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = _numbers(frame[name], name)
    return frame


def _are_texts(column: Any) -> bool:
    """Whether cells are texts or decimals, where numbers are needed."""
    if getattr(column.dtype, "kind", "O") in "iufbMm":
        return False
    first = column.first_valid_index()
    return first is not None and isinstance(column[first], (str, Decimal))


def _numbers(column: Any, name: str) -> Any:
    """Labels as numbers; `StateError` for the first that is none."""
    import pandas as pd

    found = pd.to_numeric(column, errors="coerce")
    wrong = (found.isna() & column.notna()).to_numpy()
    if wrong.any():
        row = int(np.argmax(wrong))
        raise StateError(f"row {row}: {name} is real-valued: a number expected, not {column.iloc[row]!r}")
    return found.astype(np.float64)


def take_weights(frame: Any, weights: Any) -> tuple[FloatArray, Any]:
    """A weight for each row, and the frame without their column."""
    if isinstance(weights, str):
        if weights not in frame:
            raise VariableError(
                f"the weights' column {weights!r} is not in the frame.{did_you_mean(weights, frame.columns)}"
            )
        return _sound(np.asarray(frame[weights], dtype=np.float64), len(frame)), frame.drop(columns=weights)
    if weights is None:
        return np.ones(len(frame)), frame
    return _sound(np.asarray(weights, dtype=np.float64), len(frame)), frame


def _sound(w: FloatArray, n: int) -> FloatArray:
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any():
        raise OptionError(f"weights are {n} finite numbers from 0 on, one for each row")
    return w


def read_real(net: BayesianNetwork, frame: Any) -> Question:
    """All variables as columns, those without a column missing in every row; other columns are left alone."""

    known = [c for c in frame.columns if owner_of(net, c) in net]
    if not known:
        names = list(map(str, frame.columns))
        hint = did_you_mean(names[0], net.variables) if names else ""
        raise VariableError(f"no column of the frame is a variable of the network.{hint}")
    found = read(net, [], frame[known])
    layout = layout_of(net)
    X = np.full((len(frame), layout.size), np.nan)
    X[:, found.columns] = found.X
    labelled = tuple(v for v, var in enumerate(net.vars) if var.is_discrete)
    codes = np.full((len(frame), len(labelled)), -1, np.int64)
    for v, column in zip(found.observed, found.codes.T, strict=True):
        codes[:, labelled.index(v)] = column
    every = np.arange(layout.size)
    return Question(
        (), (), labelled, codes, batched=True, columns=every, owners=layout.owner, X=X, index=frame.index,
        points=found.points,
    )  # fmt: skip
