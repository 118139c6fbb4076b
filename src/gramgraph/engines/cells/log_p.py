"""log p(evidence) of models on cells, where nothing else is asked for."""

from __future__ import annotations

from typing import Any

from gramgraph.engines.base import Run
from gramgraph.engines.cells.conditioning import asked_on_tables
from gramgraph.engines.cells.evidence import Seen, blocks, with_complete
from gramgraph.engines.cells.joints import with_likelihoods
from gramgraph.engines.cells.messages import upward
from gramgraph.engines.fallback import automatic
from gramgraph.typing import FloatArray


def log_p(model: Any, seen: Seen, run: Run) -> FloatArray:
    """log p(e) of every case."""
    if model.is_balanced_forest and not seen.differ:
        return log_p_of_forest(model, seen)
    out, rest = with_complete(model, seen)
    for block in blocks(model, len(rest)):
        rows = rest[block]
        asked, more = asked_on_tables(model, seen, rows)
        out[rows] += automatic(model.cells, asked, run, draw=False).log_evidence + more
    return out


def log_p_of_forest(model: Any, seen: Seen) -> FloatArray:
    """The same by messages towards the roots; rows without gaps, among the data, need none."""
    out, rest = with_complete(model, seen)
    tree, heard, log_virtual = with_likelihoods(model, seen)
    for block in blocks(model, len(rest)):
        rows = rest[block]
        part = {v: p.take(rows) for v, p in heard.items()}
        out[rows] += upward(tree, part, len(rows)).log_z + log_virtual
    return out
