"""Evidence about a model on cells: observed values, likelihoods of cells, and what beliefs shall become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers.words import values_of
from gramgraph.data.frames import is_missing, read_frame
from gramgraph.embeddings.network.cell_axes import Axis, LineAxis, Placed, StateAxis, _single
from gramgraph.embeddings.network.points import PointAxis
from gramgraph.evidence import Likelihood, Soft, weights_of
from gramgraph.exceptions import OptionError, StateError, VariableError
from gramgraph.questions import reading
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.embeddings.network.base import CellModel

__all__ = ["Given", "cell_weights", "read", "read_targets"]


@dataclass(frozen=True, eq=False)
class Given:
    """What was observed, in one case (`batched` False) or in many; variables are positions."""

    axes: tuple[Axis, ...]
    values: dict[int, Any]  # columns of observed values, one value per case
    n_cases: int = 1
    batched: bool = False
    weights: dict[int, FloatArray] = field(default_factory=dict)  # likelihoods of cells, the largest one
    log_scale: float = 0.0  # log of what they were divided by
    soft: dict[int, FloatArray] = field(default_factory=dict)  # what the beliefs in states shall become
    index: Any = None
    keep: Any = None

    @cached_property
    def placed(self) -> dict[int, Placed]:
        """Observed columns on cells."""
        return {v: self.axes[v].place(column) for v, column in self.values.items()}

    @cached_property
    def log_base(self) -> FloatArray:
        """log p of the observed values by themselves, summed, one number per case."""
        total = np.zeros(self.n_cases)
        for v, column in self.values.items():
            total += self.axes[v].log_base(column)
        return total

    def known(self, v: int) -> Array:
        """In which cases a variable was observed."""
        return self.placed[v].known if v in self.placed else np.zeros(self.n_cases, dtype=bool)

    def refuse_soft(self) -> Given:
        """Itself; `StateError` for soft evidence where only `query` can honor it."""
        if self.soft:
            names = ", ".join(self.axes[v].name for v in self.soft)
            raise StateError(f"soft evidence ({names}) is answered by query alone; here give Likelihood(…) or a state")
        return self

    def one_case(self) -> Given:
        """Itself; `VariableError` for a table of cases."""
        if self.batched:
            raise VariableError("evidence of one case is needed here: a dict, not a table of cases")
        return self


def read(model: CellModel, evidence: Any, virtual: Any = None, soft: Any = None, keep: Any = None) -> Given:
    """Evidence by name, as for every model; beside that, points are values, and likelihoods may be functions."""
    if isinstance(evidence, Given):
        return evidence
    own = {axis.name: axis for axis in model.cell_axes if not isinstance(axis, StateAxis)}
    values: dict[int, Any] = {}
    heard: dict[int, list[FloatArray]] = {}
    if type(evidence).__name__ == "Series" and hasattr(evidence, "to_dict"):  # a row of a frame is one case
        evidence = evidence.to_dict()
    if isinstance(evidence, Mapping):
        evidence = _split(model, evidence, own, heard, values)
    elif evidence is not None and any(isinstance(axis, PointAxis) for axis in own.values()):
        table = read_frame(evidence, what="evidence").table
        points = [name for name in table.columns if isinstance(own.get(name), PointAxis)]
        values = {model.index(name): table[name].to_numpy() for name in points}
        evidence = table.drop(columns=points)
    if isinstance(virtual, Mapping):
        virtual = _split(model, virtual, own, heard, None)
    question = reading.read(model, [], evidence, virtual, soft, keep)
    return _given(model, question, values, heard)


def _split(
    model: CellModel,
    given: Mapping[str, Any],
    own: Mapping[str, Axis],
    heard: dict[int, list[FloatArray]],
    values: dict[int, Any] | None,
) -> dict[str, Any]:
    """What the common reader reads; likelihoods of cells join `heard`, points the values (None: all are weights)."""
    rest = {}
    for name, value in given.items():
        if name not in own or is_missing(value) or isinstance(value, Soft):
            rest[name] = value
        elif values is None or isinstance(value, Likelihood):
            heard.setdefault(model.index(name), []).append(cell_weights(own[name], value))
        elif isinstance(own[name], PointAxis):
            values[model.index(name)] = _single(value)
        else:
            rest[name] = value
    return rest


def _given(model: CellModel, question: Question, values: dict[int, Any], heard: dict[int, list[FloatArray]]) -> Given:
    for v, codes in zip(question.observed, question.codes.T, strict=True):
        labels = np.array([*model.vars[v].states, None], dtype=object)
        values[v] = labels[codes]
    for v, column in zip(question.owners.tolist(), question.X.T, strict=True):
        values[v] = column
    for v, own in question.likelihoods:
        heard.setdefault(v, []).append(own)
    weights, scale = _scaled(model.cell_axes, heard)
    return Given(
        model.cell_axes, values, question.n_cases, question.batched, weights=weights,
        log_scale=scale + question.log_scale, soft=dict(question.soft), index=question.index, keep=question.keep,
    )  # fmt: skip


def cell_weights(axis: Axis, how: Any) -> FloatArray:
    """p(observation | cell) up to a factor, (m,): of numbers a function of x, or a noisy reading (value, sd); of states
    and points weights by label or in order, or a function."""
    how = getattr(how, "weights", how)
    if isinstance(axis, LineAxis):
        values = _line_weights(axis, how)
    elif callable(how):
        values = np.array([float(how(axis.value(i))) for i in range(axis.m)])
    else:
        return weights_of(axis.cell_var, how)
    if values.shape != (axis.m,) or not np.isfinite(values).all() or (values < 0.0).any() or not values.any():
        raise OptionError(f"the likelihood of {axis.name!r} must be finite, not negative, and above 0 somewhere.")
    return values


def _line_weights(axis: LineAxis, how: Any) -> FloatArray:
    if isinstance(how, (tuple, list)) and len(how) == 2:
        center = float(axis.read(_single(how[0]))[0])
        sd = float(how[1]) if isinstance(how[1], (int, float, np.number)) else 0.0
        if not 0.0 < sd < np.inf:
            raise StateError(f"the noise of the virtual evidence of {axis.name} must be positive, got {how[1]!r}")

        def how(x: FloatArray) -> FloatArray:
            away = np.angle(np.exp(1j * (x - center))) if axis.circle else x - center
            return np.asarray(np.exp(-0.5 * (away / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi)))

    if not callable(how):
        raise OptionError(
            f"the likelihood of {axis.name!r}, a number, is a function of x, or a noisy reading (value, sd): "
            f"virtual_evidence={{{axis.name!r}: lambda x: np.exp(-0.5 * (x - 1.0) ** 2)}}."
        )
    return axis.average(values_of(how, axis.grid_values))[1] / axis.q


def _scaled(axes: Sequence[Axis], heard: Mapping[int, list[FloatArray]]) -> tuple[dict[int, FloatArray], float]:
    """The product of all likelihoods of each variable, the largest weight one, and the log of what that took out."""
    weights, scale = {}, 0.0
    for v, parts in heard.items():
        product = np.prod([part / part.max() for part in parts], axis=0)
        if not product.any():
            raise StateError(f"the likelihoods of {axes[v].name} contradict each other: no state is left")
        scale += sum(float(np.log(part.max())) for part in parts) + float(np.log(product.max()))
        weights[v] = product / product.max()
    return weights, scale


def read_targets(model: CellModel, targets: Any, given: Given) -> tuple[list[int], list[tuple[int, ...]]]:
    """Variables wanted alone, and sets wanted jointly; None asks for everything that is not observed in every case."""
    singles, joints = reading.read_targets(model, targets)
    if singles is None:
        singles = tuple(v for v in range(len(model)) if not given.n_cases or not given.known(v).all())
    return list(singles), list(joints)
