"""Posteriors of a table of cases as plain columns, as files hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._show import joined
from gramgraph.answers.answer import Answer
from gramgraph.answers.belief import Belief


def posterior_columns(answer: Answer, dtype: Any = np.float64) -> dict[str, Any]:
    """Name → column: `log_evidence`, then `variable=state` for each state, or `x mean`, `x sd`, … of a real variable.

    Probabilities have the given type; log p(evidence) is always double.

    >>> import gramgraph as gg
    >>> answer = gg.datasets.asia().query("lung", [{"smoke": "yes"}, {"smoke": "no"}])
    >>> list(posterior_columns(answer))
    ['log_evidence', 'lung=no', 'lung=yes']
    """
    found: dict[str, Any] = {"log_evidence": np.asarray(answer.log_evidence, np.float64)}
    discrete = [key for key in answer if isinstance(answer[key], Belief)]
    if len(discrete) < len(answer):
        labelled = set(map(joined, discrete))
        for name, value in (table := answer.to_frame()).columns:
            column = table[name, value].to_numpy()
            numbers = column.dtype.kind == "f"
            sign = "=" if name in labelled else " "
            found[f"{name}{sign}{value}"] = column.astype(dtype) if numbers else column
        return found
    for key in discrete:
        belief = answer[key]
        labels = [joined(label) for label in belief._labels()]
        p = belief.probabilities.reshape(len(found["log_evidence"]), len(labels))
        found |= {f"{joined(key)}={label}": np.ascontiguousarray(p[:, j], dtype) for j, label in enumerate(labels)}
    return found
