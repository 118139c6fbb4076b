"""How the families of a network were chosen, told as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FamilyReport:
    """How the conditionals of a network were chosen: for every variable the weights of kinds, and what each of them
    predicts of left-out rows, in nats per row.

    `to_frame()` has one row per variable and kind.
    """

    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def gain(self, name: str) -> float:
        """Nats per row by which the mixture is ahead of the simplest kind that was looked at."""
        found = self.left_out.get(name, {})
        kinds = [kind for kind in found if kind != "mixture"]
        return float(found.get("mixture", np.nan) - found[kinds[0]]) if kinds else float("nan")

    def to_frame(self) -> Any:
        """A DataFrame: variable, kind, weight, left-out log density per row, rows."""
        import pandas as pd

        rows = []
        for name, weights in self.weights.items():
            scores = self.left_out.get(name, {})
            for kind in dict.fromkeys([*scores, *weights]):
                rows.append((name, kind, weights.get(kind, 0.0), scores.get(kind, np.nan), self.rows.get(name, 0)))
        return pd.DataFrame(rows, columns=["variable", "kind", "weight", "left_out", "rows"])

    def __repr__(self) -> str:
        shown = [f"{name}: {_words(weights)}" for name, weights in self.weights.items()]
        return "FamilyReport(" + "; ".join(shown) + ")"


def _words(weights: Mapping[str, float]) -> str:
    return " + ".join(f"{w:.2f} {kind}" if w < 1.0 else kind for kind, w in weights.items() if w > 0.0)
