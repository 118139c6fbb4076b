"""Rows for undirected models: complete, coded by the states of the model, with clear words about what is missing."""

from __future__ import annotations

import warnings
from typing import Any

from gramgraph.data.columns import DEFAULT_STATES, CodedTable, code_table, with_states_of
from gramgraph.data.frames import read_frame
from gramgraph.data.stream import is_stream, read_labels
from gramgraph.exceptions import ModelError, ModelWarning, OptionError, VariableError, listing
from gramgraph.models.undirected import FactorModel
from gramgraph.variables import Var

MISSING = ("rows", "error")


def read_rows(model: FactorModel, data: Any, *, weights: Any = None, missing: str = "rows") -> tuple[CodedTable, int]:
    """(the complete rows as codes of the model's variables, how many rows were left out).

    A variable without a table that still has the states no and yes takes the states that its column shows.
    """
    if missing not in MISSING:
        raise OptionError(f'missing is "rows" (leave out rows with missing cells) or "error", not {missing!r}')
    if not model.is_discrete:
        raise ModelError(
            "tables are for discrete variables, and this network has real-valued ones: gg.GraphicalLasso learns a "
            "Gaussian network"
        )
    if is_stream(data):
        if weights is not None and not isinstance(weights, str):
            raise OptionError("weights of a file are the name of one of its columns")
        data = read_labels(data)
    frame = read_frame(data).table
    table = code_table(frame, _variables(model, frame), weights=weights)
    if not len(table) or table.total <= 0:
        raise VariableError("there are no rows to learn from")
    if not table.has_missing:
        return table, 0
    whole = table.complete()
    gone = len(table) - len(whole)
    empty = [var.name for var, column in zip(table.variables, table.columns, strict=True) if not (column >= 0).any()]
    if empty:
        raise VariableError(
            f"nothing but missing cells in {listing(empty)}: an undirected model is not learned with hidden variables. "
            "Give a column with values, take the variable out, or write a gg.BayesianNetwork, whose fit has EM"
        )
    if missing == "error" or not len(whole) or whole.total <= 0:
        raise VariableError(
            f"{gone} of {len(table)} rows have missing cells, and an undirected model is learned from complete rows "
            '(there is no EM for it): fill the cells, or leave such rows out with missing="rows"'
            if len(whole)
            else f"each of the {len(table)} rows has a missing cell, and an undirected model is learned from complete "
            "rows"
        )
    warnings.warn(
        f"{gone} of {len(table)} rows have missing cells and are left out; what is learned is right when cells are "
        "missing by chance alone",
        ModelWarning,
        stacklevel=6,
    )
    return whole, gone


def _variables(model: FactorModel, frame: Any) -> tuple[Var, ...]:
    if getattr(model, "features", None) is not None:
        return model.vars
    named = {var.name for factor in model.stored_factors for var in factor.scope}
    return tuple(var if var.name in named else _from_column(var, frame) for var in model.vars)


def _from_column(var: Var, frame: Any) -> Var:
    return with_states_of(var, frame) if var.is_discrete and var.states == DEFAULT_STATES else var
