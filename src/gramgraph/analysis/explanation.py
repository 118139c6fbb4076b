"""Why the belief in a target is what it is: what each finding adds, and whether the findings disagree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ImpossibleEvidenceError, VariableError
from gramgraph.variables import Circle

if TYPE_CHECKING:
    import pandas as pd

    from gramgraph.models.base import GraphicalModel


class Conflict(float):
    """How much less likely the findings are together than if they were independent: log Π p(e_i) − log p(e).

    Above 0 they disagree. `pulls` has for each finding log p(e_i) + log p(the others) − log p(e): the largest one
    belongs to the finding that fits the others least.

    Parameters
    ----------
    value : the number itself.
    pulls : for each finding, how far it pulls against the others.

    Examples
    --------
    >>> import gramgraph as gg
    >>> found = gg.datasets.asia().conflict({"smoke": "no", "xray": "yes", "asia": "no"})
    >>> round(float(found), 3), found.against, sorted(found.pulls)
    (0.476, 'xray', ['asia', 'smoke', 'xray'])
    """

    pulls: dict[str, float]

    def __new__(cls, value: float, pulls: Mapping[str, float]) -> Conflict:
        """The number, with what each finding has to do with it."""
        made = super().__new__(cls, value)
        made.pulls = dict(pulls)
        return made

    @property
    def against(self) -> str | None:
        """The finding that pulls most against the others; None where they agree."""
        return max(self.pulls, key=self.pulls.__getitem__) if self > 0.0 and self.pulls else None


def conflict(model: GraphicalModel, evidence: Mapping[str, Any] | None = None) -> Conflict:
    """Whether the findings disagree: log Π p(e_i) − log p(e), see `Conflict`. Cost: 2 n + 1 times log p(e).

    Parameters
    ----------
    model : the network or other graphical model.
    evidence : what is known, as `query` takes it: values by variable, or None.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> found = conflict(net, {"smoke": "no", "xray": "yes", "asia": "no"})
    >>> found > 0.0, found.against
    (True, 'xray')
    """
    given = _findings(evidence)
    if len(given) < 2:
        return Conflict(0.0, dict.fromkeys(given, 0.0))
    single = [{name: value} for name, value in given.items()]
    less = [_without(given, name) for name in given]
    logs = _logs(model, [given, *single, *(less if len(given) > 2 else reversed(single))])
    if logs[0] == -np.inf:
        model.query([], given)  # raises, and names the findings that clash
        raise ImpossibleEvidenceError("the evidence has probability zero", conflict=tuple(given))
    alone, others = logs[1 : len(given) + 1], logs[len(given) + 1 :]
    return Conflict(float(alone.sum() - logs[0]), dict(zip(given, (alone + others - logs[0]).tolist(), strict=True)))


def explain(
    model: GraphicalModel, target: str, evidence: Mapping[str, Any] | None = None, *, state: Any = None
) -> pd.DataFrame:
    """What each finding adds to the belief in the target when it comes last, the strongest one first.

    With states: the change of the log odds of `state` (by default the likeliest one given all findings); of a number
    the change of its mean; of an angle the turn of its mean direction, in radians between −π and π. One row per
    finding: `finding`, `value`, `contribution`, and `without`, the probability (mean) that the others alone give.
    `attrs` has `state`, `measure` ("log odds", "mean" or "direction"), and the belief `before` and `after` all of them.
    Cost: one query with a case for each finding.

    Parameters
    ----------
    model : the network or other graphical model.
    target : the variable that is asked about, or several.
    evidence : what is known, as `query` takes it: values by variable, or None.
    state : the state whose log odds are explained; None for the likeliest one.

    Examples
    --------
    >>> import gramgraph as gg
    >>> found = explain(gg.datasets.asia(), "lung", {"xray": "yes", "smoke": "no"}, state="yes")
    >>> found[["finding", "contribution"]].round(2).values.tolist()
    [['xray', 2.8], ['smoke', -1.75]]
    """
    import pandas as pd

    given = _findings(evidence)
    var = model.var(target)
    if target in given and _is_plain(given[target]):
        raise VariableError(f"{target} is observed; ask about a variable that is not")
    cases = [given, *(_without(given, name) for name in given), {}]
    beliefs = _beliefs(model, target, cases)
    if hasattr(beliefs[0], "probabilities"):
        wanted = beliefs[0].states[int(np.argmax(beliefs[0].probabilities))] if state is None else state
        numbers = np.array([belief.prob(wanted) for belief in beliefs])
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(numbers) - np.log1p(-numbers)
            moved = np.where(numbers[0] == numbers[1:-1], 0.0, odds[0] - odds[1:-1])
        measure = "log odds"
    else:
        wanted = None
        numbers = np.array([_mean(belief) for belief in beliefs])
        moved = numbers[0] - numbers[1:-1]
        measure = "mean"
        if isinstance(var.domain, Circle):
            moved, measure = np.angle(np.exp(1j * moved)), "direction"
    frame = pd.DataFrame(
        {"finding": list(given), "value": list(given.values()), "contribution": moved, "without": numbers[1:-1]}
    )
    frame = frame.sort_values("contribution", key=np.abs, ascending=False, kind="stable", ignore_index=True)
    frame.attrs.update(state=wanted, measure=measure, before=float(numbers[-1]), after=float(numbers[0]))
    return frame


def _findings(evidence: Mapping[str, Any] | None) -> dict[str, Any]:
    if evidence is not None and not isinstance(evidence, Mapping):
        raise VariableError("evidence of one case is needed here: a dict, not a table of cases")
    return {name: value for name, value in (evidence or {}).items() if value is not None}


def _without(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in given.items() if other != name}


def _is_plain(value: Any) -> bool:
    """Whether a value can stand in a table of cases: a label or a number."""
    return isinstance(value, (str, bool, int, float, np.generic))


def _tabled(model: GraphicalModel, cases: list[dict[str, Any]]) -> bool:
    """Whether all cases can be asked at once."""
    return model.kind in ("tables", "gaussian", "mixed") and all(_is_plain(v) for v in cases[0].values())


def _logs(model: GraphicalModel, cases: list[dict[str, Any]]) -> Any:
    """log p of each case, in one pass where they make a table."""
    if _tabled(model, cases):
        return np.asarray(model.log_evidence(cases), dtype=np.float64)
    return np.array([float(model.log_evidence(case)) for case in cases])


def _beliefs(model: GraphicalModel, target: str, cases: list[dict[str, Any]]) -> list[Any]:
    """The belief in the target in each case; the first case must be possible."""
    first = _one(model, target, cases[0])
    if model.kind == "tables" and len(cases) > 2 and _tabled(model, cases):
        from gramgraph.answers import Belief

        rows = model.query([target], cases)[target].probabilities
        return [first, *(Belief((model.var(target),), row) for row in rows[1:])]
    return [first, *(_one(model, target, case) for case in cases[1:])]


def _one(model: GraphicalModel, target: str, case: dict[str, Any]) -> Any:
    seeded: dict[str, Any] = {} if model.kind in ("tables", "gaussian", "mixed", "cells") else {"random_state": 0}
    return model.query([target], case, **seeded)[target]


def _mean(belief: Any) -> float:
    found = np.asarray(belief.mean(), dtype=np.float64).reshape(-1)
    if found.size != 1:
        raise VariableError("the target is a vector: what findings add is told of one number, angle or set of states")
    return float(found[0])
