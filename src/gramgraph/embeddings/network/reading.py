"""Evidence about a model on cells: observed values, likelihoods of cells, and what beliefs shall become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers.words import values_of
from gramgraph.data.frames import is_missing, read_frame
from gramgraph.embeddings.network.cell_axes import Axis, LineAxis, Placed, StateAxis, _single
from gramgraph.evidence import Likelihood, Soft, _States, allowed_weights, weights_of
from gramgraph.exceptions import OptionError, StateError, VariableError
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
    """Evidence by name: a dict or a row of a frame is one case; a frame, or a list of dicts, is a table of cases."""
    if isinstance(evidence, Given):
        return evidence
    kept = () if keep is None else (keep,) if isinstance(keep, str) else tuple(keep)
    if type(evidence).__name__ == "Series" and hasattr(evidence, "to_dict"):  # a row of a frame is one case
        evidence = evidence.to_dict()
    values: dict[int, Any] = {}
    heard: dict[int, list[FloatArray]] = {}
    jeffrey: dict[int, FloatArray] = {}
    batched = not (evidence is None or isinstance(evidence, Mapping))
    number, index, carried = 1, None, None
    if batched:
        frame = read_frame(evidence, what="evidence")
        number, index = frame.n_rows, frame.index
        carried = frame.table[[frame.column(name).name for name in kept]] if kept else None
        for name in frame.names:
            if name in model.positions or name not in kept:
                values[model.index(name)] = _plain_column(frame.column(name))
    else:
        for name, value in (evidence or {}).items():
            if name in model.positions or name not in kept:
                _one_value(model, model.index(name), value, values, heard, jeffrey)
    for more, what in ((virtual, "virtual_evidence"), (soft, "soft_evidence")):
        if more is not None and not isinstance(more, Mapping):
            raise VariableError(f"{what} is a dict from names to numbers, not {type(more).__name__}")
    for name, how in (virtual or {}).items():
        heard.setdefault(model.index(name), []).append(cell_weights(model.axis(name), how))
    for name, how in (soft or {}).items():
        jeffrey[model.index(name)] = _distribution(model.axis(name), how)
    for v in jeffrey:
        if v in values:
            raise StateError(f"{model.vars[v].name} has both an observed state and soft evidence: give one of them")
    weights, scale = _scaled(model.cell_axes, heard)
    return Given(model.cell_axes, values, number, batched, weights, scale, jeffrey, index, carried)


def _one_value(
    model: CellModel,
    v: int,
    value: Any,
    values: dict[int, Any],
    heard: dict[int, list[FloatArray]],
    jeffrey: dict[int, FloatArray],
) -> None:
    axis = model.cell_axes[v]
    if is_missing(value):
        return
    if isinstance(value, Likelihood):
        heard.setdefault(v, []).append(cell_weights(axis, value.weights))
    elif isinstance(value, Soft):
        jeffrey[v] = _distribution(axis, value.weights)
    elif isinstance(axis, StateAxis) and isinstance(value, (_States, set, frozenset, list, tuple)):
        heard.setdefault(v, []).append(allowed_weights(axis.var, value))
    elif isinstance(axis, StateAxis) and isinstance(value, (Mapping, np.ndarray)):
        raise StateError(
            f"the evidence of {axis.name} is a state, not {value!r}. "
            "Weights are written gg.Likelihood(…), probabilities that the belief shall become gg.Soft(…)"
        )
    elif isinstance(axis, LineAxis) and isinstance(value, (_States, Mapping, set, frozenset)):
        raise StateError(
            f"{axis.name} is real-valued: its evidence is a number, not {value!r}. Write a noisy reading as "
            "gg.Likelihood((value, sd))"
        )
    elif isinstance(axis, LineAxis) and isinstance(value, (list, tuple, np.ndarray)):
        raise OptionError(
            f"the evidence of {axis.name!r} is a {type(value).__name__}: a dict is one case with one value per "
            "variable. For many cases pass a data frame or a list of dicts."
        )
    else:
        values[v] = _single(value)


def _plain_column(column: Any) -> Any:
    """An array; integers with gaps stay integers."""
    if getattr(column.dtype, "kind", "") in "iu" and column.hasnans:
        return column.astype(object).to_numpy()
    return column.to_numpy()


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
        center, sd = float(axis.read(_single(how[0]))[0]), how[1]
        if not (np.isscalar(sd) and np.isfinite(sd) and sd > 0.0):
            raise StateError(f"the noise of the virtual evidence of {axis.name} must be positive, got {sd!r}")

        def how(x: FloatArray) -> FloatArray:
            away = np.angle(np.exp(1j * (x - center))) if axis.circle else x - center
            return np.asarray(np.exp(-0.5 * (away / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi)))

    if not callable(how):
        raise OptionError(
            f"the likelihood of {axis.name!r}, a number, is a function of x, or a noisy reading (value, sd): "
            f"virtual_evidence={{{axis.name!r}: lambda x: np.exp(-0.5 * (x - 1.0) ** 2)}}."
        )
    return axis.average(values_of(how, axis.grid_values))[1] / axis.q


def _distribution(axis: Axis, how: Any) -> FloatArray:
    if isinstance(axis, LineAxis):
        raise StateError(
            f"{axis.name} is real-valued, and soft evidence gives probabilities of states. "
            "Use a noisy reading instead: gg.Likelihood((value, sd))"
        )
    p = weights_of(axis.cell_var, how, what="soft evidence")
    if abs(p.sum() - 1.0) > 1e-6:
        raise StateError(
            f"soft evidence of {axis.name} must sum to one, got {p.sum():.6g}; for weights use Likelihood(…)"
        )
    return p / p.sum()


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
    if targets is None:
        return [v for v in range(len(model)) if not given.n_cases or not given.known(v).all()], []
    if not isinstance(targets, Iterable):
        raise VariableError(f"targets are a name, a list of names, or a tuple for a joint, not {targets!r}")
    names = [targets] if isinstance(targets, (str, tuple)) else list(targets)
    single, joint = [], []
    for name in names:
        if isinstance(name, str) or not isinstance(name, Iterable):
            single.append(model.index(name))
            continue
        members = tuple(model.index(member) for member in name)
        if not members or len(set(members)) < len(members):
            raise VariableError(f"a joint target names each variable once and at least one, got {tuple(name)!r}")
        joint.append(members)
    return list(dict.fromkeys(single)), list(dict.fromkeys(joint))
