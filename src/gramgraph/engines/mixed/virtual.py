"""Virtual evidence: a noisy reading is a new child of its variable, observed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.conditionals import LinearGaussian, Table
from gramgraph.engines.continuous.door import RealQuestion, layout_of
from gramgraph.exceptions import OptionError
from gramgraph.variables import Var, binary, real

__all__ = ["with_readings"]


def with_readings(model: Any, question: RealQuestion) -> tuple[Any, RealQuestion, float]:
    """(larger network, question with the readings observed, logarithm to be added to log p(e))."""
    conditionals = getattr(model, "conditionals", None)
    if conditionals is None:
        raise OptionError("virtual evidence on real-valued variables needs a Bayesian network")
    variables: list[Var] = list(model.vars)
    made = list(conditionals)
    scale = 0.0
    labelled, codes = list(question.labelled), [question.codes]
    readings: list[np.ndarray[Any, Any]] = []
    for v, weights in question.weights.items():
        var = model.vars[v]
        seen = binary(f"{var.name}·seen")
        p = weights / weights.max()
        scale += float(np.log(weights.max()))
        made.append(Table(seen, (var,), np.stack([1 - p, p], axis=1)))
        labelled.append(len(variables))
        codes.append(np.ones((question.n_cases, 1), np.int64))
        variables.append(seen)
    for v, (value, noise) in question.noisy.items():
        var = model.vars[v]
        reading = real(f"{var.name}·read", var.dimension)
        made.append(LinearGaussian(reading, (var,), np.eye(var.dimension), np.zeros(var.dimension), noise))
        variables.append(reading)
        readings.append(value)
    larger = type(model).from_parts(variables, made, check=False)
    layout = layout_of(larger)
    new = np.arange(question.layout.size, layout.size)
    x = np.concatenate(readings) if readings else np.zeros(0)
    asked = replace(
        question,
        layout=layout,
        targets=question.wanted,
        everything=False,
        complete=False,
        columns=np.concatenate([question.columns, new]),
        X=np.hstack([question.X, np.broadcast_to(x, (question.n_cases, len(x)))]),
        labelled=tuple(labelled),
        codes=np.hstack(codes),
        weights={},
        noisy={},
    )
    return larger, asked, scale
