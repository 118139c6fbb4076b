"""How an answer about a model with real-valued variables depends on its parameters, by differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.conditionals import Conditional, ConditionalLinearGaussian, LinearGaussian, Table
from gramgraph.exceptions import ModelError, StateError

if TYPE_CHECKING:
    import pandas as pd

    from gramgraph.models.base import GraphicalModel

#: Step of the central differences, as a part of the parameter's size (of one, where it is smaller).
STEP = 1e-4


def real_sensitivity(
    model: GraphicalModel, target: str, state: Any, evidence: Any, parameters: Sequence[str] | None
) -> pd.DataFrame:
    """Derivative of p(target = state | e), or of the posterior mean of a real-valued target (`state` None), by every
    parameter of tables and linear Gaussians, the strongest first. Cost: two queries for each parameter.
    """
    import pandas as pd

    if getattr(model, "conditionals", None) is None:
        raise ModelError("sensitivity() is about the parameters of a Bayesian network; this model has none")
    var = model.var(target)
    if not var.is_discrete and state is not None:
        raise StateError(f"{target} is real-valued: sensitivity is that of its mean. Use state=None instead")
    names = model.variables if parameters is None else model.names_of(model.positions_of(parameters))

    def ask(changed: Conditional) -> float:
        parts = [changed if c.child is changed.child else c for c in model.conditionals]  # type: ignore[attr-defined]
        other = type(model).from_parts(model.vars, parts, check=False)  # type: ignore[attr-defined]
        belief = other.query(target, evidence, random_state=0)[target]
        return float(belief.prob(state) if var.is_discrete else belief.mean())

    rows = []
    for name in names:
        for what, given, value, up, down, width in _moves(model.conditional(name)):  # type: ignore[attr-defined]
            rows.append((name, what, given, value, (ask(up) - ask(down)) / width))
    frame = pd.DataFrame(rows, columns=["variable", "state", "given", "value", "derivative"])
    strongest = np.argsort(-np.abs(frame["derivative"].to_numpy(np.float64)), kind="stable")
    return frame.iloc[strongest].reset_index(drop=True)


Move = tuple[str, str, float, Conditional, Conditional, float]


def _moves(c: Conditional) -> Iterator[Move]:
    """(parameter, given, value, conditional with a little more of it, with a little less, the difference)."""
    if c.tabular:
        yield from _table_moves(c)
        return
    if not isinstance(c, (LinearGaussian, ConditionalLinearGaussian)):
        raise ModelError(
            f"sensitivity() has no parameters of {type(c).__name__} ({c.child.name}) to change. "
            "Try: parameters=[…] with variables that have tables or linear Gaussians"
        )
    labelled = getattr(c, "discrete_parents", ())
    sizes = tuple(var.size for var in labelled)
    for field in ("intercept", "coefficients", "covariance"):
        values = np.asarray(getattr(c, field), dtype=np.float64)
        for at in np.ndindex(*values.shape):
            if field == "covariance" and at[-1] != at[-2]:
                continue  # variances
            given = ", ".join(f"{v.name}={v.states[i]}" for v, i in zip(labelled, at[: len(sizes)], strict=True))
            where = at[len(sizes) :]
            yield (f"{field}{list(where)}", given, float(values[at]), *_changed(c, field, values, at))


def _changed(c: Any, field: str, values: Any, at: tuple[int, ...]) -> tuple[Conditional, Conditional, float]:
    step = STEP * max(abs(float(values[at])), 1.0 if field != "covariance" else 0.0)
    made = []
    for sign in (1.0, -1.0):
        moved = values.copy()
        moved[at] += sign * step
        made.append(replace(c, **{field: moved}))
    return made[0], made[1], 2.0 * step


def _table_moves(c: Conditional) -> Iterator[Move]:
    """Entries of a table, while the rest of their row keeps its proportions."""
    table = c.table()
    for at in np.ndindex(*table.shape):
        row, theta = table[at[:-1]], float(table[at])
        step = min(STEP, theta / 2, (1.0 - theta) / 2)
        if step <= 0.0:
            continue  # a certain entry has no room on both sides
        made = []
        for sign in (1.0, -1.0):
            moved = table.copy()
            moved[at[:-1]] = row * (1.0 - theta - sign * step) / (1.0 - theta)
            moved[at] = theta + sign * step
            made.append(Table(c.child, c.parents, moved))
        given = ", ".join(f"{v.name}={v.states[i]}" for v, i in zip(c.parents, at, strict=False))
        yield c.child.states[at[-1]], given, theta, made[0], made[1], 2.0 * step
