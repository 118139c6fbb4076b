"""Sets and strings in networks of conditionals: engines see a variable with one state for each point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramgraph.cells.points import plain_point
from gramgraph.conditionals.continuous import Draws, RealConditional
from gramgraph.conditionals.laws import Laws
from gramgraph.models.points import labels_of, points_of
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var, discrete

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


@dataclass(frozen=True, eq=False, repr=False)
class OnStates(RealConditional):
    """A conditional of sets or strings that takes codes of points in their place."""

    kind: ClassVar[str] = "on_states"
    inner: RealConditional
    child: Var
    parents: tuple[Var, ...]
    point_states: Mapping[Var, tuple[Var, Array]]  # variable with states → that of points, and its points

    def _points(self, values: Draws) -> dict[Var, Array]:
        out: dict[Var, Array] = {}
        for var, column in values.items():
            own, points = self.point_states.get(var, (var, None))
            out[own] = column if points is None else points[np.asarray(column)]
        return out

    def log_density(self, values: Draws, /) -> FloatArray:
        """That of the points."""
        return self.inner.log_density(self._points({var: values[var] for var in self.scope}))

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """Codes of the points that are drawn."""
        drawn = self.inner.draw(self._points({var: values[var] for var in self.parents}), n, rng)
        if self.child not in self.point_states:
            return drawn
        code = {p: i for i, p in enumerate(self.point_states[self.child][1].tolist())}
        return np.array([code[p] for p in np.asarray(drawn, dtype=object).tolist()], dtype=np.int64)

    def laws(self, values: Draws, n: int, /) -> Laws:
        """Those of the points."""
        return self.inner.laws(self._points({var: values[var] for var in self.parents}), n)

    def support(self, values: Draws, /) -> dict[str, FloatArray]:
        """That of the points."""
        return self.inner.support(self._points(values))

    @property
    def n_parameters(self) -> int:
        """Those of the conditional."""
        return self.inner.n_parameters

    def faults(self) -> list[str]:
        """Those of the conditional."""
        return self.inner.faults()

    def to_fields(self) -> dict[str, Any]:
        """The conditional itself is what is saved."""
        return self.inner.to_fields()

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Any:
        """Not saved."""
        raise NotImplementedError


def with_point_states(model: GraphicalModel, question: Question) -> tuple[GraphicalModel, Question]:
    """The model with states in the place of points, and the question with codes; positions stay.

    A point that was observed and is none of the model's has a state of its own, where it is observed in all cases;
    else the most similar point stands for it.
    """
    known = points_of(model)
    if not known or model.kind in ("tables", "cells"):
        return model, question
    points, codes = dict(known), {}
    for v, column in question.points.items():
        given = [None if x is None else plain_point(x) for x in column]
        if v in question.always:
            points[v] = tuple(dict.fromkeys([*points[v], *given]))
        else:
            given = [None if x is None else _nearest(model, v, x, points[v]) for x in given]
        place = {p: i for i, p in enumerate(points[v])}
        codes[v] = np.array([-1 if x is None else place[x] for x in given], dtype=np.int64)
    key = ("lowered", "point states", tuple(len(points[v]) for v in known))
    larger: Any = model.plans.get(key) if points == known else None
    if larger is None:
        larger = _translated(model, points)
        if points == known:
            model.plans[key] = larger
    asked = replace(
        question,
        points={},
        observed=(*question.observed, *codes),
        codes=np.hstack([question.codes, *(c[:, None] for c in codes.values())]) if codes else question.codes,
    )
    return larger, asked


def _nearest(model: Any, v: int, x: Any, points: tuple[Any, ...]) -> Any:
    if x in points:
        return x
    for c in model.conditionals:
        for axis in getattr(c, "axes", ()):
            if axis.name == model.vars[v].name:
                return axis.points[int(axis.place([x]).a[0])]
    return points[0]


def _translated(model: Any, points: Mapping[int, tuple[Any, ...]]) -> Any:
    states: dict[Var, tuple[Var, Array]] = {}
    new: dict[Var, Var] = {}
    for v, own in points.items():
        column: Array = np.empty(len(own), dtype=object)
        column[:] = list(own)
        made = discrete(model.vars[v].name, labels_of(own))
        states[made], new[model.vars[v]] = (model.vars[v], column), made
    conditionals = []
    for c in model.conditionals:
        known = {new[var]: states[new[var]] for var in c.scope if var in new}
        parents = tuple(new.get(var, var) for var in c.parents)
        conditionals.append(OnStates(c, new.get(c.child, c.child), parents, known) if known else c)
    return type(model).from_parts([new.get(var, var) for var in model.vars], conditionals, check=False)
