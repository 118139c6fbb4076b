"""Effects of actions, estimated from observations by the formula that the graph permits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph._show import Listing, Shown, probability_text
from gramgraph.data.columns import code_table
from gramgraph.data.counts import Counts
from gramgraph.data.stream import is_stream, stream_counts
from gramgraph.exceptions import ModelError
from gramgraph.models.directed import DirectedModel
from gramgraph.models.identification import Identification, identify
from gramgraph.typing import FloatArray
from gramgraph.variables import discrete

__all__ = ["Effect", "Identification", "average_effect", "identify"]


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Shown):
    """p(outcome | do(treatment)) for every treatment: `probabilities` (treatments, outcomes)."""

    identification: Identification
    treatments: tuple[str, ...]
    outcomes: tuple[str, ...]
    probabilities: FloatArray

    def _shown(self) -> Listing:
        told = self.identification
        rows = [
            (done, *map(probability_text, row))
            for done, row in zip(self.treatments, self.probabilities.tolist(), strict=True)
        ]
        title = f"p({told.outcome} | do({told.treatment})), {told.kind}: {told.formula}"
        return Listing(title, (f"do({told.treatment})", *self.outcomes), rows)

    def to_frame(self) -> Any:
        """Rows: what is done; columns: what comes out."""
        import pandas as pd

        index = pd.Index(self.treatments, name=f"do({self.identification.treatment})")
        return pd.DataFrame(self.probabilities, index=index, columns=list(self.outcomes))

    def difference(self, outcome: object, treatment: object, baseline: object) -> float:
        """p(outcome | do(treatment)) − p(outcome | do(baseline)); states by label, number or truth value."""
        done, out = discrete(self.identification.treatment, self.treatments), discrete("outcome", self.outcomes)
        column = self.probabilities[:, replace(out, name=self.identification.outcome).index(outcome)]
        return float(column[done.index(treatment)] - column[done.index(baseline)])


def average_effect(
    net: DirectedModel,
    data: Any,
    treatment: str,
    outcome: str,
    *,
    hidden: str | Iterable[str] = (),
    confounded: Iterable[tuple[str, str]] = (),
    pseudo_count: float = 0.0,
) -> Effect:
    """The effect of an action, estimated from observational data by the formula that the graph permits.

    `hidden` and `confounded` as in `identify`. Strata in which a treatment never occurs have no estimate: with
    `pseudo_count` 0 they are an error that says so.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> effect = gg.learn.average_effect(net, net.sample(50_000, random_state=0), "smoke", "lung")
    >>> round(effect.difference("yes", "yes", "no"), 2)
    0.09
    """
    found = identify(net, treatment, outcome, hidden=hidden, confounded=confounded)
    if found.kind == "unknown":
        raise ModelError(f"{found.formula} exists among the observed variables")
    treatment, outcome = found.treatment, found.outcome
    names = [treatment, outcome, *found.through]
    counts = stream_counts(data, columns=names) if is_stream(data) else Counts(code_table(data, needed=names))
    x, y = counts.variables[counts.position(treatment)], counts.variables[counts.position(outcome)]
    table = np.asarray(counts.table([*found.through, treatment, outcome]), dtype=np.float64)
    table = table.reshape(-1, x.size, y.size) + pseudo_count
    if found.kind == "none":
        p = np.tile(table.sum(axis=(0, 1)) / table.sum(), (x.size, 1))
    elif found.kind == "back door":
        p = np.einsum("zxy,z->xy", _given(table, found), table.sum(axis=(1, 2)) / table.sum())
    else:
        carries = table.sum(axis=2) / table.sum(axis=(0, 2))  # p(m | x)
        share = table.sum(axis=(0, 2)) / table.sum()  # p(x)
        p = np.einsum("mx,my->xy", carries, np.einsum("mwy,w->my", _given(table, found), share))
    return Effect(found, x.states, y.states, p)


def _given(table: FloatArray, found: Identification) -> FloatArray:
    """p(y | z, x); strata that do not occur at all weigh nothing, but an empty treatment within one is an error."""
    rows = table.sum(axis=2, keepdims=True)
    if ((rows[..., 0] == 0) & (table.sum(axis=(1, 2)) > 0)[:, np.newaxis]).any():
        raise ModelError(
            f"some values of {found.treatment} never occur together with some values of {', '.join(found.through)}, so "
            "that the data say nothing about them: use pseudo_count=1 or coarser states"
        )
    return np.divide(table, rows, out=np.zeros_like(table), where=rows > 0)
