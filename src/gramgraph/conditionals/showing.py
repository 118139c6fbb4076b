"""Tables of conditionals as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramgraph._show import html_table, probability_text, text_table
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

_SHOWN_ROWS = 40


def context_rows(parents: Sequence[Var], child: Var, values: FloatArray) -> tuple[list[str], list[list[str]], int]:
    """Header, shown rows as text, and how many rows are left out."""
    flat = values.reshape(-1, child.size)
    shape = tuple(var.size for var in parents)
    shown = range(min(len(flat), _SHOWN_ROWS))
    rows = []
    for i in shown:
        at = np.unravel_index(i, shape) if shape else ()
        labels = [var.states[k] for var, k in zip(parents, at, strict=True)]
        rows.append([*labels, *("?" if np.isnan(p) else probability_text(float(p)) for p in flat[i])])
    header = [*(var.name for var in parents), *(f"{child.name}={state}" for state in child.states)]
    return header, rows, len(flat) - len(rows)


def text_rows(parents: Sequence[Var], child: Var, values: FloatArray) -> str:
    """A table as text, one line per context; cells without a number show as ?."""
    header, rows, left = context_rows(parents, child, values)
    table = text_table(header, rows, right=range(len(parents), len(header)))
    return table + (f"\n… and {left} more rows" if left else "")


def html_rows(parents: Sequence[Var], child: Var, values: FloatArray) -> str:
    """A table as HTML, one row per context."""
    header, rows, left = context_rows(parents, child, values)
    given = f" | {', '.join(var.name for var in parents)}" if parents else ""
    caption = f"p({child.name}{given})" + (f", first {len(rows)} rows of {len(rows) + left}" if left else "")
    return html_table(header, rows, caption=caption, right=range(len(parents), len(header)))


def value_text(value: object) -> str:
    """A parameter on one line: numbers with six digits, long arrays cut in the middle."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        text = np.array2string(value, precision=6, threshold=24, edgeitems=3, separator=", ", max_line_width=10**6)
        return " ".join(text.split())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
