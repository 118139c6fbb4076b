"""Effects of actions, estimated from observations by the formula that the graph permits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gramgraph._show import Listing, Shown, probability_text
from gramgraph.data.columns import code_table
from gramgraph.data.counts import Counts
from gramgraph.data.stream import is_stream, stream_counts
from gramgraph.exceptions import ModelError, listing
from gramgraph.factors.table import aligned
from gramgraph.graphs.do_calculus import (
    Formula,
    Probability,
    Product,
    Quotient,
    Sum,
    all_variables,
    free_variables,
)
from gramgraph.models.base import GraphicalModel
from gramgraph.models.directed import DirectedModel
from gramgraph.models.identification import Identification, identify
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, discrete

__all__ = ["Effect", "Identification", "average_effect", "evaluate_effect", "identify"]


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Shown):
    """p(outcome | do(treatment)) for every treatment: `probabilities` (treatments, outcomes).

    Parameters
    ----------
    identification : which formula.
    treatments : values that are set.
    outcomes : states of the outcome.
    probabilities : (treatments, outcomes).

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> found = average_effect(net, net.sample(500, random_state=0), "rain", "wet", pseudo_count=1.0)
    >>> found.probabilities.shape
    (2, 2)
    """

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

    Parameters
    ----------
    net : the network.
    data : a frame, a dict of columns, a path or a stream.
    treatment : what is set.
    outcome : what is asked about.
    hidden : names of variables that are not observed.
    confounded : pairs with an unobserved common cause.
    pseudo_count : added to every count.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> effect = gg.learn.average_effect(net, net.sample(50_000, random_state=0), "smoke", "lung")
    >>> round(effect.difference("yes", "yes", "no"), 2)
    0.09
    """
    found = identify(net, treatment, outcome, hidden=hidden, confounded=confounded)
    return found.evaluate(data, pseudo_count=pseudo_count)


def evaluate_effect(found: Identification, source: Any, *, pseudo_count: float = 0.0) -> Effect:
    """The effect by the formula that was found; see `Identification.evaluate`."""
    if found.expression is None:
        raise ModelError(found.formula)
    used = sorted(all_variables(found.expression) | {found.names.index(n) for n in (found.treatment, found.outcome)})
    variables, joint = _joint(source, [found.names[v] for v in used], pseudo_count)
    x, y = found.names.index(found.treatment), found.names.index(found.outcome)
    scope, values = _value(_without_idle(found.expression, x, y), tuple(used), joint)
    wanted = np.broadcast_to(aligned(values, scope, (x, y)), [variables[used.index(v)].size for v in (x, y)])
    if np.isnan(wanted).any():
        raise ModelError(
            f"some values of {found.treatment} never occur together with some values of {listing(found.through)}, so "
            "that the data say nothing about them: use pseudo_count=1 or coarser states"
        )
    return Effect(found, variables[used.index(x)].states, variables[used.index(y)].states, np.array(wanted))


def _joint(source: Any, names: list[str], pseudo_count: float) -> tuple[list[Var], FloatArray]:
    """The variables of a formula, and their joint probabilities from a network or from data."""
    if isinstance(source, GraphicalModel):
        if not all(source.var(name).is_discrete for name in names):
            raise ModelError("an effect is evaluated on variables with states; use net.do(…) for real-valued ones")
        belief = source.query([tuple(names)] if len(names) > 1 else names)
        shape = [source.var(name).size for name in names]
        return [source.var(name) for name in names], next(iter(belief.values())).probabilities.reshape(shape)
    counts = stream_counts(source, columns=names) if is_stream(source) else Counts(code_table(source, needed=names))
    variables = [counts.variables[counts.position(name)] for name in names]
    table = np.asarray(counts.table(names), dtype=np.float64).reshape([var.size for var in variables]) + pseudo_count
    return variables, table / table.sum()


def _without_idle(formula: Formula, x: int, y: int) -> Formula:
    """A formula of x and y alone: it is the same for all values of what else is left in it, so any average serves."""
    idle = tuple(sorted(free_variables(formula) - {x, y}))
    return Sum(idle, Product((Probability(idle), formula))) if idle else formula


Valued: TypeAlias = tuple[tuple[int, ...], FloatArray]


def _value(formula: Formula, names: tuple[int, ...], joint: FloatArray) -> Valued:
    """(scope, numbers) of a formula; NaN where it asks about a stratum that never occurs."""
    if isinstance(formula, Probability):
        scope = tuple(sorted((*formula.what, *formula.given)))
        together = joint.sum(axis=tuple(i for i, v in enumerate(names) if v not in scope))
        alone = together.sum(axis=tuple(i for i, v in enumerate(scope) if v in formula.what), keepdims=True)
        return scope, np.divide(together, alone, out=np.full_like(together, np.nan), where=alone > 0.0)
    if isinstance(formula, Sum):
        scope, values = _value(formula.inner, names, joint)
        axes = tuple(i for i, v in enumerate(scope) if v in formula.over)
        more = [joint.shape[names.index(v)] for v in formula.over if v not in scope]
        return tuple(v for v in scope if v not in formula.over), values.sum(axis=axes) * np.prod(more, initial=1.0)
    if isinstance(formula, Quotient):
        return _combined([_value(part, names, joint) for part in (formula.above, formula.below)], _divide)
    return _combined([_value(part, names, joint) for part in formula.parts], _times)


def _times(a: FloatArray, b: FloatArray) -> FloatArray:
    """The product; what never occurs weighs nothing, whatever it would be multiplied with."""
    return np.where((a == 0.0) | (b == 0.0), 0.0, a * b)


def _divide(a: FloatArray, b: FloatArray) -> FloatArray:
    whole = np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape))
    return np.divide(whole, b, out=np.full(whole.shape, np.nan), where=b != 0.0)


def _combined(parts: Sequence[Valued], how: Callable[[FloatArray, FloatArray], FloatArray]) -> Valued:
    scope, values = ((), np.ones(())) if not parts else parts[0]
    for other, numbers in parts[1:]:
        whole = tuple(sorted({*scope, *other}))
        values = how(aligned(values, scope, whole), aligned(numbers, other, whole))
        scope = whole
    return scope, values
