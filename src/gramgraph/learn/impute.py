"""Gaps of a table filled from a network: by the most probable states, or by draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.counts.rows import distinct_rows
from gramgraph._validation import generator
from gramgraph.data.columns import code_table
from gramgraph.data.frames import read_frame
from gramgraph.engines.base import Run
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.exceptions import ImpossibleEvidenceError, OptionError
from gramgraph.models import BayesianNetwork
from gramgraph.questions.question import Question
from gramgraph.typing import IntArray, RandomState


def impute(net: BayesianNetwork, data: Any, *, method: str = "mpe", random_state: RandomState = None) -> Any:
    """The frame with every missing cell of the network's variables filled; see `BayesianNetwork.impute`."""
    if method not in ("mpe", "draw"):
        raise OptionError(f"method is 'mpe' or 'draw', not {method!r}")
    frame = read_frame(data).table
    seen = [name for name in net.variables if name in frame.columns]
    table = code_table(frame, net.vars, needed=seen)
    codes = np.ascontiguousarray(table.matrix.T, dtype=np.int64)
    wanted = [net.index(name) for name in seen]
    gaps = np.flatnonzero((codes[:, wanted] < 0).any(axis=1))
    if len(gaps):
        filled = _most_probable(net, codes[gaps]) if method == "mpe" else _draws(net, codes[gaps], random_state)
        lost = np.flatnonzero((filled < 0).any(axis=1))
        if len(lost):
            row = frame.index[gaps[lost[0]]]
            raise ImpossibleEvidenceError(f"row {row}: what is known of it is impossible under the network")
        codes[gaps] = filled
    out = frame.copy()
    for name in seen:
        v = net.index(name)
        missing = table.columns[v] < 0
        if missing.any():
            labels = [net.vars[v].states[code] for code in codes[missing, v]]
            out[name] = _filled(frame[name], missing, labels)
    return out


def _filled(column: Any, missing: Any, labels: list[str]) -> Any:
    """The column with labels in its gaps, written as the other cells are: truth values, numbers or labels."""
    import pandas as pd

    known = column[~missing]
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = column.cat.categories
        more = [label for label in dict.fromkeys(labels) if label not in categories]
        out = column.cat.add_categories(more) if more else column.copy()
        out[missing] = labels
        return out
    if len(known) and all(isinstance(value, (bool, np.bool_)) for value in known):
        values: list[Any] = [label.lower() in ("yes", "true", "1") for label in labels]
    elif len(known) and all(isinstance(value, (int, float, np.number)) for value in known):
        values = [float(label) for label in labels]
    else:
        values = labels
    out = column.astype(object)
    out[missing] = values
    return out.infer_objects()


def _most_probable(net: BayesianNetwork, codes: IntArray) -> IntArray:
    question = Question((), (), tuple(range(codes.shape[1])), codes, (), True)
    states, log_p, *_ = JunctionTree().best(net, question)
    return np.where(np.isfinite(log_p)[:, np.newaxis], states, -1)


def _draws(net: BayesianNetwork, codes: IntArray, random_state: RandomState) -> IntArray:
    """One draw of p(gaps | rest) for each row; rows with the same cells are drawn together."""
    rng = generator(random_state)
    engine = JunctionTree()
    first, kind = distinct_rows(codes, len(codes))
    members = np.split(np.argsort(kind, kind="stable"), np.bincount(kind).cumsum()[:-1])
    out = codes.copy()
    every = tuple(range(codes.shape[1]))
    for at, rows in zip(first, members, strict=True):
        question = Question((), (), every, codes[at : at + 1], (), False)
        states, log_z, *_ = engine.draw(net, question, len(rows), Run(random_state=rng))
        out[rows] = states if np.isfinite(log_z) else -1
    return out
