"""Observed values in networks of kernel potentials: they enter between cells, and their variables leave the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramgraph.engines.cells.evidence import Seen
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray


def asked_on_tables(
    model: Any, seen: Seen, rows: IntArray, targets: Sequence[int] = (), joints: tuple[tuple[int, ...], ...] = ()
) -> tuple[Question, FloatArray]:
    """(the question about the tables on cells, what is to be added to log p of every case).

    A model of density ratios hears likelihoods of cells. In one of potentials the cell next to the value is observed,
    so that its variable leaves the graph, and neighbors hear the potential at the value by that at the cell.
    """
    if not model.potentials:
        return seen.on_tables(rows, targets, joints), np.zeros(len(rows))
    placed = {v: p.take(rows) for v, p in seen.placed.items()}
    placed = {v: p for v, p in placed.items() if p.known.any()}
    codes = {v: np.where(p.known, np.where(p.f < 0.5, p.a, p.b), -1) for v, p in placed.items()}
    more = np.zeros(len(rows))
    for v, p in placed.items():  # log p of the value by itself is counted already, that of the cell is in its table
        own = np.log(np.maximum(model.cell_axes[v].q, 1e-300))[np.maximum(codes[v], 0)]
        more -= np.where(p.known, own, 0.0)
    logs: dict[int, FloatArray] = {}
    for f in model.potentials:
        _hear(model, f, placed, codes, more, logs)
    heard: dict[int, Array] = {}
    for v, L in logs.items():
        top = L.max(axis=1)
        more += top
        heard[v] = np.exp(L - top[:, None])
    for v, weights in seen.weights.items():
        own = weights if weights.ndim == 1 else weights[rows]
        if v in codes:  # what was said of an observed variable
            value = (placed[v].shares(own.shape[-1]) * own).sum(axis=1)
            with np.errstate(divide="ignore"):
                more += np.where(placed[v].known, np.log(np.maximum(value, 0.0)), 0.0)
            own = np.where(placed[v].known[:, None], 1.0, own)
        heard[v] = heard[v] * own if v in heard else own
    table = np.stack(list(codes.values()), axis=1) if codes else np.zeros((len(rows), 0), np.int64)
    return Question(targets, joints, tuple(codes), table, tuple(heard.items()), batched=True), more


def _hear(model: Any, f: Any, placed: Any, codes: Any, more: FloatArray, logs: dict[int, FloatArray]) -> None:
    """What a potential says of the observed values beyond their cells: to log p, or to the other variable."""
    at = [model.positions[name] for name in f.names]
    seen = [v for v in at if v in placed]
    if not seen:
        return
    T = f.log_table
    known = {v: placed[v].known for v in seen}
    full = np.logical_and.reduce([known[v] for v in seen]) & (len(seen) == len(at))
    if full.any():
        cells = tuple(np.maximum(codes[v], 0) for v in at)
        more += np.where(full, f.log_at(*(placed[v] for v in at)) - T[cells], 0.0)
    if len(at) == 1:
        return
    for here, there in ((0, 1), (1, 0)):
        v, other = at[here], at[there]
        if v not in placed:
            continue
        alone = known[v] & ~full
        if alone.any():
            row = (T if here == 0 else T.T)[np.maximum(codes[v], 0)]
            L = np.where(alone[:, None], f.along(f.names[here], placed[v]) - row, 0.0)
            logs[other] = logs[other] + L if other in logs else L
