"""Models on cells for the analyses of tables: the discrete network on cells, and the evidence as likelihoods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gramgraph.analysis.real_information import free_names
from gramgraph.cells.columns import single
from gramgraph.engines.cells.evidence import Seen
from gramgraph.engines.exact.one_case import one_case
from gramgraph.models.base import GraphicalModel
from gramgraph.models.on_cells import CellModel
from gramgraph.questions.question import Question


def on_tables(model: CellModel, evidence: Any, names: str | Sequence[str] = ()) -> tuple[GraphicalModel, Question]:
    """The tables on cells and one case of evidence about them; `names` must not be observed."""
    question = one_case(model, evidence)
    free_names(model, names, evidence)
    asked = replace(Seen.of(model, question).on_tables(), log_scale=question.log_scale)
    return model.cells, one_case(model.cells, asked)


def cell_of(model: CellModel, name: str, value: Any) -> str:
    """The cell in which a value lies, as a state of the tables on cells."""
    axis = model.axis(name)
    return axis.cell_var.states[int(axis.place(single(value)).shares(axis.m)[0].argmax())]
