"""Graphs of resampled rows: what bootstraps and their calibration count."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.data.columns import CodedTable
from gramgraph.learn.methods import method_name
from gramgraph.learn.mixed_table import MixedTable
from gramgraph.learn.structure import LearnedNetwork, learn_structure
from gramgraph.typing import FloatArray


def one_graph(
    seed: np.random.SeedSequence, table: CodedTable | MixedTable, options: dict[str, Any]
) -> FloatArray | None:
    """The edges that one sample shows; None where Ctrl-C came in between."""
    net = learn_structure(resampled(np.random.default_rng(seed), table, options), **options)
    if net.report.interrupted:
        return None
    bound = any(options.get(name) for name in ("required", "forbidden", "tiers"))
    bound = bound or (isinstance(table, MixedTable) and not all(table.real))  # no edge from real to discrete
    return _arrows(net, table.names, as_drawn=bound)


def resampled(
    rng: np.random.Generator, table: CodedTable | MixedTable, options: dict[str, Any]
) -> CodedTable | MixedTable:
    """As many rows, drawn with replacement, without those that learning would leave out."""
    found = table.take(rng.integers(0, len(table), len(table)))
    return found.complete() if drops_rows(options) else found


def drops_rows(options: dict[str, Any]) -> bool:
    """Whether learning leaves out rows with gaps."""
    return options.get("missing", "rows") == "rows" and method_name(options.get("method")) != "structural_em"


def _arrows(net: LearnedNetwork, names: tuple[str, ...], *, as_drawn: bool) -> FloatArray:
    """The edges of the class, or, where constraints decide about directions, of the graph itself."""
    at = {name: i for i, name in enumerate(names)}
    out = np.zeros((len(names), len(names)))
    if as_drawn:
        for a, b in net.edges:
            out[at[a], at[b]] = 1.0
        return out
    found = net.cpdag()
    for a, b in found.arrows:
        out[at[a], at[b]] = 1.0
    for a, b in found.links:
        out[at[a], at[b]] = out[at[b], at[a]] = 0.5
    return out
