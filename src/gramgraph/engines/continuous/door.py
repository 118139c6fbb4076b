"""The door for models with real-valued variables: names and values become arrays, mistakes become readable errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Key
from gramgraph.compile.cache import remember
from gramgraph.engines.continuous.case_loop import ONE_BY_ONE, Work
from gramgraph.engines.door import _encode, _is_missing, parse_targets
from gramgraph.evidence import Likelihood, Soft, _States, allowed_weights, weights_of
from gramgraph.exceptions import StateError, VariableError
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Real, Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

_WORTH_KEEPING = 8  # targets from which on a list of names is kept in numbers

__all__ = ["Group", "Layout", "RealQuestion", "layout_of", "read_question"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the components of the real variables stand in one long vector."""

    variables: tuple[Var, ...]
    first: IntArray  # (variables,) first component; -1 for a discrete variable
    owner: IntArray  # (components,) position of the variable
    scalar: bool  # whether every real variable has one component

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(var.name for var in self.variables)

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.owner)

    def components(self, v: int) -> IntArray:
        """Components of the variable at position v."""
        return np.arange(self.first[v], self.first[v] + self.variables[v].dimension)

    def of(self, positions: Sequence[int]) -> IntArray:
        """Components of several variables, one after the other."""
        if self.scalar:
            return self.first[list(positions)] if len(positions) else np.zeros(0, np.int64)
        parts = [self.components(v) for v in positions]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def layout_of(model: GraphicalModel) -> Layout:
    """The model's layout, made once."""
    found: Layout | None = model.plans.get(("lowered", "layout"))
    if found is None:
        first = np.full(len(model.vars), -1, np.int64)
        owner: list[int] = []
        for v, var in enumerate(model.vars):
            if isinstance(var.domain, Real):
                first[v] = len(owner)
                owner += [v] * var.domain.dimension
        found = model.plans[("lowered", "layout")] = Layout(
            model.vars, first, np.array(owner, np.int64), len(owner) == int((first >= 0).sum())
        )
    return found


@dataclass(frozen=True, eq=False)
class Group:
    """Cases with the same observed variables, and the same observed states of the discrete ones."""

    rows: IntArray  # numbers of the cases
    seen: IntArray  # observed components
    X: FloatArray  # (cases, observed components)
    states: dict[int, int]  # discrete variable → state


@dataclass(frozen=True, eq=False)
class RealQuestion:
    """What is asked, and what was observed, by positions and components."""

    layout: Layout
    targets: tuple[int, ...]
    joints: tuple[tuple[int, ...], ...]
    everything: bool  # all variables that are not observed
    columns: IntArray  # observed components
    X: FloatArray  # (cases, columns); NaN = not observed in this case
    labelled: tuple[int, ...]  # observed discrete variables
    codes: IntArray  # (cases, labelled); -1 = not observed in this case
    batched: bool = False
    complete: bool = False  # known to have no gaps (False: not looked at)
    index: Any = None
    weights: dict[int, FloatArray] = field(default_factory=dict)  # likelihoods of discrete variables
    noisy: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)  # real: (value, noise covariance)
    work: Work = ONE_BY_ONE  # how to go through many cases

    @property
    def n_cases(self) -> int:
        """Number of cases."""
        return len(self.X)

    @cached_property
    def always(self) -> frozenset[int]:
        """Variables that are observed in every case."""
        if not self.n_cases:
            return frozenset()
        if self.complete:
            return frozenset((*self.layout.owner[self.columns].tolist(), *self.labelled))
        real = np.asarray(~self.gaps.any(axis=0))
        found = {int(self.layout.owner[c]) for c, ok in zip(self.columns, real, strict=True) if ok}
        known = np.asarray((self.codes >= 0).all(axis=0))
        return frozenset(found | {v for v, ok in zip(self.labelled, known, strict=True) if ok})

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """Variables whose own beliefs are wanted."""
        if not self.everything:
            return self.targets
        always = self.always
        return tuple([v for v in self.targets if v not in always])

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """What the answer lists."""
        names = self.layout.names
        found: list[Key] = [names[v] for v in self.wanted]
        return (*found, *(tuple(names[v] for v in members) for members in self.joints))

    @property
    def observed(self) -> tuple[int, ...]:
        """All variables that are observed in some case."""
        return tuple(dict.fromkeys([*self.layout.owner[self.columns].tolist(), *self.labelled]))

    @cached_property
    def gaps(self) -> Any:
        """Which cells were not observed."""
        return np.isnan(self.X)

    def groups(self) -> Iterator[Group]:
        """Cases by pattern; one group where nothing is missing and no discrete variable is observed."""
        if self.complete and self.n_cases:
            yield Group(np.arange(self.n_cases), self.columns, self.X, {})
            return
        gaps = self.gaps
        if self.n_cases == 1 or (not gaps.any() and not self.labelled):
            if self.n_cases:
                yield self._group(np.arange(self.n_cases), gaps[0])
            return
        keys = np.ascontiguousarray(np.hstack([gaps.astype(np.int64), self.codes]))
        flat = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).reshape(-1)
        _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(first) + 1))
        for g in np.argsort(first, kind="stable"):
            rows = order[starts[g] : starts[g + 1]]
            yield self._group(rows, gaps[rows[0]])

    def _group(self, rows: IntArray, gaps: Any) -> Group:
        codes = self.codes[rows[0]]
        states = {v: int(code) for v, code in zip(self.labelled, codes, strict=True) if code >= 0}
        if len(rows) == self.n_cases and not gaps.any():
            return Group(rows, self.columns, self.X, states)
        return Group(rows, self.columns[~gaps], self.X[np.ix_(rows, ~gaps)], states)


def read_question(
    model: GraphicalModel, targets: Any, evidence: Any, virtual: Any = None, soft: Any = None
) -> RealQuestion:
    """The question in numbers; `targets=None` asks for everything that is not observed."""
    layout = layout_of(model)
    singles, joints = _targets(model, targets)
    made: dict[str, Any] = {"weights": {}, "noisy": {}}
    if soft:
        raise StateError(
            "soft evidence is answered for models of discrete variables alone; give a value or a likelihood"
        )
    if type(evidence).__name__ == "Series":  # a row of a frame: its gaps were not observed
        evidence = {k: v for k, v in evidence.to_dict().items() if not _gap(v)}
    if evidence is None or isinstance(evidence, Mapping):
        _one_case(model, layout, evidence or {}, made)
    else:
        _many_cases(model, layout, evidence, made)
    if virtual is not None and not isinstance(virtual, Mapping):
        raise VariableError(f"virtual_evidence is a dict from names to numbers, not {type(virtual).__name__}")
    for name, value in (virtual or {}).items():
        _virtual(model, name, value, made)
    return RealQuestion(
        layout, tuple(range(len(model.vars))) if singles is None else singles, joints, singles is None, **made
    )


def _targets(model: GraphicalModel, targets: Any) -> tuple[tuple[int, ...] | None, tuple[tuple[int, ...], ...]]:
    """`parse_targets`, read once where the same list of names is asked for again and again."""
    if type(targets) is not list or len(targets) < _WORTH_KEEPING:
        return parse_targets(model, targets)
    try:
        key = ("targets", *targets)
        found = model.plans.get(key)
    except TypeError:  # some target is a list, or something that is no name
        return parse_targets(model, targets)
    return found or remember(model, key, parse_targets(model, targets))  # type: ignore[no-any-return]


def _gap(value: Any) -> bool:
    return value is None or _is_missing(value) or (isinstance(value, (float, np.floating)) and value != value)


def _one_case(model: GraphicalModel, layout: Layout, evidence: Mapping[str, Any], made: dict[str, Any]) -> None:
    columns, values, labelled, codes = [], [], [], []
    for name, value in evidence.items():
        v = model.index(name)
        var = model.vars[v]
        if value is None or _is_missing(value):
            continue
        if isinstance(var.domain, Real):
            if isinstance(value, (Likelihood, Soft, _States, Mapping, set)):
                raise StateError(
                    f"{name} is real-valued: its evidence is a number; a noisy reading is written "
                    f"virtual_evidence={{{name!r}: (value, sd)}}, not {value!r}"
                )
            columns.append(layout.components(v))
            values.append(var.domain.read(value, name))
        elif isinstance(value, Likelihood):
            _times(made["weights"], v, weights_of(var, value))
        elif isinstance(value, Soft):
            raise StateError(f"soft evidence ({name}) is answered for models of discrete variables alone")
        elif isinstance(value, (_States, set, frozenset, list, tuple)):
            _times(made["weights"], v, allowed_weights(var, value))
        elif isinstance(value, float) and value != value:
            continue
        else:
            labelled.append(v)
            codes.append(var.index(value))
    made["columns"] = np.concatenate(columns) if columns else np.zeros(0, np.int64)
    made["X"] = np.concatenate(values)[None] if values else np.zeros((1, 0))
    made["labelled"], made["codes"] = tuple(labelled), np.array([codes], np.int64).reshape(1, -1)


def _times(weights: dict[int, FloatArray], v: int, more: FloatArray) -> None:
    weights[v] = weights[v] * more if v in weights else more


def _virtual(model: GraphicalModel, name: str, value: Any, made: dict[str, Any]) -> None:
    v = model.index(name)
    var = model.vars[v]
    if not isinstance(var.domain, Real):
        _times(made["weights"], v, weights_of(var, value))
        return
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise StateError(f"virtual evidence of the real-valued {name} is (value, sd), not {value!r}")
    noise = np.asarray(value[1], dtype=np.float64)
    k = var.domain.dimension
    S = noise if noise.shape == (k, k) and k > 1 else np.broadcast_to(noise.reshape(-1) ** 2, (k,)) * np.eye(k)
    if not np.isfinite(S).all() or np.linalg.eigvalsh(S)[0] <= 0:
        raise StateError(f"the noise of the virtual evidence of {name} must be positive, got {value[1]!r}")
    made["noisy"][v] = (var.domain.read(value[0], name), S)


def _many_cases(model: GraphicalModel, layout: Layout, cases: Any, made: dict[str, Any]) -> None:
    import pandas as pd

    frame = _as_frame(cases)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise VariableError(f"the table of cases has more than one column {twice!r}")
    if _plain_numbers(model, layout, frame, made):
        return
    components, labelled, codes = [], [], []
    blocks: list[FloatArray | None] = []
    plain: list[str] = []
    for name in frame.columns:
        v, part = _column(model, name)
        var = model.vars[v]
        if not isinstance(var.domain, Real):
            found = _encode(frame[name], model, v)
            labelled.append(v)
            codes.append(np.full(len(frame), -1) if found is None else found)
        elif part is None and var.domain.dimension > 1:
            components.append(layout.components(v))
            blocks.append(_vectors(frame[name], var))
        else:
            components.append(layout.components(v)[part or 0 : (part or 0) + 1])
            blocks.append(None)
            plain.append(name)
    made["columns"] = np.concatenate(components) if components else np.zeros(0, np.int64)
    table = _numbers(frame[plain], plain) if plain else np.zeros((len(frame), 0))
    if any(block is not None for block in blocks):
        columns = iter(table.T)
        table = np.hstack([next(columns)[:, None] if block is None else block for block in blocks])
    made["X"] = np.ascontiguousarray(table)
    _check_vectors(model, layout, made["columns"], made["X"])
    made["labelled"] = tuple(labelled)
    made["codes"] = np.stack(codes, axis=1) if codes else np.zeros((len(frame), 0), np.int64)
    made["batched"], made["index"] = True, frame.index if isinstance(frame, pd.DataFrame) else None


def _plain_numbers(model: GraphicalModel, layout: Layout, frame: Any, made: dict[str, Any]) -> bool:
    """The quick way for a frame that holds nothing but numbers of scalar variables."""
    index, owner_count = model.positions, len(layout.owner)
    if owner_count != len(model.vars):  # discrete variables, or vectors
        return False
    X = frame.to_numpy()
    if X.dtype != np.float64:
        return False
    last: tuple[Any, IntArray] | None = model.plans.get(("lowered", "last columns"))
    if last is not None and last[0] is frame.columns:  # the same labels as before (they cannot have changed)
        columns = last[1]
    else:
        positions = [index.get(name, -1) for name in frame.columns.tolist()]
        if -1 in positions:
            return False
        columns = layout.first[positions] if positions else np.zeros(0, np.int64)
        model.plans[("lowered", "last columns")] = frame.columns, columns
    made["columns"] = columns
    made["complete"] = bool(np.isfinite(X.sum()))
    # A copy, because answers are found when they are asked for, and the frame may have changed by then.
    # Gaps, or something infinite: look closer.
    made["X"] = X.copy(order="K") if made["complete"] else _numbers(frame, frame.columns.tolist())
    made["labelled"], made["codes"] = (), np.zeros((len(frame), 0), np.int64)
    made["batched"], made["index"] = True, frame.index
    return True


def _as_frame(cases: Any) -> Any:
    import pandas as pd

    if isinstance(cases, pd.DataFrame):
        return cases
    if isinstance(cases, Sequence) and not isinstance(cases, (str, bytes)):
        for row, case in enumerate(cases):
            if not isinstance(case, Mapping):
                raise VariableError(
                    f"evidence must be a dict, a data frame or a list of dicts; item {row} of the list is {case!r}"
                )
        return pd.DataFrame.from_records([dict(case) for case in cases], index=range(len(cases)))
    import narwhals as nw

    try:
        return nw.from_native(cases, eager_only=True).to_pandas()
    except TypeError:
        raise VariableError(
            f"evidence must be a dict, a data frame or a list of dicts, not {type(cases).__name__}"
        ) from None


def _column(model: GraphicalModel, name: Any) -> tuple[int, int | None]:
    """The variable of a column, and which component it is where the column is called `x[1]`."""
    if name not in model.positions and isinstance(name, str) and name.endswith("]"):
        stem, _, number = name[:-1].rpartition("[")
        if stem in model.positions and number.isdecimal():
            v = model.positions[stem]
            var = model.vars[v]
            if isinstance(var.domain, Real) and int(number) < var.domain.dimension:
                return v, int(number)
    return model.index(name), None


def _numbers(frame: Any, names: Sequence[str]) -> FloatArray:
    """Columns of numbers as one array; what is no number is named with its row."""
    import pandas as pd

    try:
        table = frame.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    except (TypeError, ValueError):
        for name in names:
            numbers = pd.to_numeric(frame[name], errors="coerce")
            wrong = numbers.isna().to_numpy() & frame[name].notna().to_numpy()
            if wrong.any():
                row = int(np.argmax(wrong))
                text = f"row {row}: {name} is real-valued: a number expected, not {frame[name].iloc[row]!r}"
                raise StateError(text) from None
        table = frame.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    if np.isinf(table).any():
        row, j = np.argwhere(np.isinf(table))[0]
        raise StateError(f"row {row}: {names[j]} takes finite numbers, got {table[row, j]}")
    return np.asarray(table)


def _vectors(column: Any, var: Var) -> FloatArray:
    """A column of vectors; missing cells become NaN."""
    out = np.full((len(column), var.dimension), np.nan)
    for row, value in enumerate(column):
        if not (np.ndim(value) == 0 and _gap(value)):
            out[row] = var.domain.read(value, var.name)  # type: ignore[attr-defined]
    return out


def _check_vectors(model: GraphicalModel, layout: Layout, columns: IntArray, X: FloatArray) -> None:
    """A vector is observed as a whole."""
    owners = layout.owner[columns]
    for v in dict.fromkeys(owners.tolist()):
        k = model.vars[v].dimension
        if k == 1:
            continue
        gaps = np.isnan(X[:, owners == v])
        if gaps.shape[1] != k or (gaps.any(axis=1) != gaps.all(axis=1)).any():
            row = int(np.argmax(gaps.any(axis=1))) if gaps.shape[1] == k else 0
            raise StateError(f"row {row}: the vector {model.vars[v].name} is observed as a whole or not at all")
