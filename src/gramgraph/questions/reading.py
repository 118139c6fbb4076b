"""The one reader of questions: names, labels, numbers and frames become a `Question`, and mistakes readable errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.cells.columns import column_of
from gramgraph.cells.likelihoods import cell_weights
from gramgraph.compile.cache import remember
from gramgraph.data.columns import encode
from gramgraph.data.frames import is_missing, read_frame
from gramgraph.evidence import Likelihood, Soft, States, allowed_weights, weights_of
from gramgraph.exceptions import GramGraphError, OptionError, StateError, VariableError, did_you_mean, listing
from gramgraph.models.layout import layout_of
from gramgraph.questions.few_cases import FEW_ROWS, codes_of_few
from gramgraph.questions.question import NO_COLUMNS, Question
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Points, Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Weights smaller than this part of the largest one are kept as logarithms.
LEAST = 1e-290
#: Targets from which on a list of names is kept in numbers.
WORTH_KEEPING = 8

Targets = tuple[tuple[int, ...] | None, tuple[tuple[int, ...], ...]]


@dataclass
class Given:
    """Evidence while it is read."""

    observed: list[int] = field(default_factory=list)
    codes: Any = field(default_factory=list)  # states of one case, then (cases, observed)
    columns: Any = field(default_factory=list)
    values: Any = field(default_factory=list)
    likelihoods: dict[int, list[FloatArray]] = field(default_factory=dict)  # all that are said about a variable
    soft: dict[int, FloatArray] = field(default_factory=dict)
    noisy: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    points: dict[int, Any] = field(default_factory=dict)
    batched: bool = False
    complete: bool = False
    index: Any = None
    keep: Any = None


def read(
    model: GraphicalModel,
    targets: Any,
    evidence: Any,
    virtual: Any = None,
    soft: Any = None,
    keep: Sequence[str] | None = None,
) -> Question:
    """The question in numbers, for every kind of model; `targets=None` asks for everything that is not observed.

    None, NaN, `pd.NA` and `NaT` mean *not observed*. A name that is not a variable is an error, unless it is in `keep`.

    >>> import gramgraph as gg
    >>> question = read(gg.datasets.asia(), "lung", {"smoke": "yes", "xray": None})
    >>> question.targets, question.observed, question.codes.tolist()
    ((4,), (3,), [[1]])
    """
    singles, joints = read_targets(model, targets)
    given = Given()
    if type(evidence).__name__ == "Series" and hasattr(evidence, "to_dict"):  # a row of a frame is one case
        evidence = evidence.to_dict()
    kept = _kept_names(keep)
    if evidence is None or isinstance(evidence, Mapping):
        _one_case(model, evidence or {}, given, kept)
    else:
        _many_cases(model, evidence, given, kept)
    for more, what in ((virtual, "virtual_evidence"), (soft, "soft_evidence")):
        if more is not None and not isinstance(more, Mapping):
            raise VariableError(f"{what} is a dict from names to numbers, not {type(more).__name__}")
    for name, value in (virtual or {}).items():
        _likelihood(model, model.index(name), value, given)
    for name, value in (soft or {}).items():
        v = model.index(name)
        given.soft[v] = _distribution(model.vars[v], value)
    for v in given.soft:
        if v in given.observed:
            raise StateError(f"{model.vars[v].name} has both an observed state and soft evidence: give one of them")
    wanted: Sequence[int] = range(len(model.vars)) if singles is None else singles
    return _question(model, wanted, joints, singles is None, given)


def _question(
    model: GraphicalModel, wanted: Sequence[int], joints: tuple[tuple[int, ...], ...], everything: bool, given: Given
) -> Question:
    n = len(given.codes)
    weights, logs, scale = _scaled(given.likelihoods) if given.likelihoods else ((), (), 0.0)
    if model.is_discrete:
        real: dict[str, Any] = {}
    else:
        real = {"columns": given.columns, "owners": layout_of(model).owner[given.columns], "X": given.values}
        real |= {"complete": given.complete, "noisy": given.noisy, "points": given.points}
        n = len(given.values)
    codes = np.asarray(given.codes, np.int64).reshape(n, len(given.observed))
    return Question(
        wanted, joints, tuple(given.observed), codes, likelihoods=weights, batched=given.batched,
        log_likelihoods=logs, log_scale=scale, everything=everything, soft=given.soft,
        index=given.index, keep=given.keep, **real,
    )  # fmt: skip


# -------------------------------------------------------------------------------------------- what is asked for


def read_targets(model: GraphicalModel, targets: Any) -> Targets:
    """(variables wanted alone — None for all that are not observed —, sets wanted jointly).

    A long list of names that is asked for again and again is read once.
    """
    if type(targets) is not list or len(targets) < WORTH_KEEPING:
        return _targets(model, targets)
    try:
        key = ("targets", *targets)
        found = model.plans.get(key)
    except TypeError:  # some target is a list, or something that is not a name
        return _targets(model, targets)
    if found is None:
        found = remember(model, key, _targets(model, targets))
    return found  # type: ignore[no-any-return]


def _targets(model: GraphicalModel, targets: Any) -> Targets:
    if targets is None:
        return None, ()
    if isinstance(targets, str):
        return (model.index(targets),), ()
    if isinstance(targets, tuple):
        targets = [targets]
    if not isinstance(targets, Iterable):
        raise VariableError(f"targets are a name, a list of names, or a tuple for a joint, not {targets!r}")
    singles: list[int] = []
    joints: list[tuple[int, ...]] = []
    for target in targets:
        if isinstance(target, str):
            singles.append(model.index(target))
            continue
        if not isinstance(target, Iterable):
            raise VariableError.unknown(target, model.variables)
        members = tuple(model.index(name) for name in target)
        if len(set(members)) != len(members) or not members:
            raise VariableError(f"a joint target names each variable once and at least one, got {tuple(target)!r}")
        joints.append(members)
    return tuple(dict.fromkeys(singles)), tuple(dict.fromkeys(joints))


def _kept_names(keep: Any) -> tuple[Any, ...]:
    if keep is None:
        return ()
    if not isinstance(keep, Sequence):
        raise OptionError(f"keep is a list of columns that the answer's frame shows as they are, not {keep!r}")
    return (keep,) if isinstance(keep, str) else tuple(keep)


# -------------------------------------------------------------------------------------------- one case


def _one_case(model: GraphicalModel, evidence: Mapping[str, Any], given: Given, keep: tuple[Any, ...]) -> None:
    positions, variables = model.positions, model.vars
    for name, value in evidence.items():
        v = positions.get(name)
        if v is None:
            if name in keep:
                continue
            raise VariableError.unknown(name, model.variables)
        var = variables[v]
        if isinstance(value, str) and var.is_discrete:
            code = var.domain.find(value)  # type: ignore[attr-defined]
            if code < 0:
                raise StateError.unknown(value, name, var.states)
            given.observed.append(v)
            given.codes.append(code)
        elif is_missing(value):
            continue
        elif isinstance(value, Likelihood) and (var.is_discrete or model.cell_axes or isinstance(value.weights, tuple)):
            _likelihood(model, v, value.weights, given)
        elif isinstance(value, Soft):
            given.soft[v] = _distribution(var, value)
        elif var.is_discrete:
            _states_of(model, v, value, given)
        elif isinstance(var.domain, Points):
            given.points[v] = column_of([value])
        else:
            if isinstance(value, (Likelihood, States, Mapping, set, frozenset)):
                raise StateError(
                    f"{name} is real-valued: its evidence is a number, not {value!r}. Write a noisy reading as "
                    "gg.Likelihood((value, sd))"
                )
            given.columns.append(layout_of(model).components(v))
            given.values.append(var.domain.read(value, name))  # type: ignore[attr-defined]
    given.codes = [given.codes]
    given.columns = np.concatenate(given.columns) if given.columns else NO_COLUMNS
    given.values = np.concatenate(given.values)[None] if given.values else np.zeros((1, 0))


def _states_of(model: GraphicalModel, v: int, value: Any, given: Given) -> None:
    """A state, or several of which one is true, of a discrete variable."""
    var = model.vars[v]
    if isinstance(value, (States, set, frozenset, list, tuple)):
        given.likelihoods.setdefault(v, []).append(allowed_weights(var, value))
        return
    if isinstance(value, (Mapping, np.ndarray)):
        raise StateError(
            f"the evidence of {var.name} is a state, not {value!r}. "
            "Weights are written gg.Likelihood(…), probabilities that the belief shall become gg.Soft(…)"
        )
    given.codes.append(var.index(value))
    given.observed.append(v)


def _likelihood(model: GraphicalModel, v: int, value: Any, given: Given) -> None:
    """Weights of states, or a noisy reading (value, sd) of a real-valued variable."""
    var = model.vars[v]
    if var.is_discrete or model.cell_axes:
        weights = cell_weights(model.cell_axes[v], value) if model.cell_axes else weights_of(var, value)
        given.likelihoods.setdefault(v, []).append(weights)
        return
    value = getattr(value, "weights", value)
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise StateError(f"virtual evidence of the real-valued {var.name} is (value, sd), not {value!r}")
    try:
        noise = np.asarray(value[1], dtype=np.float64)
        k = var.dimension
        S = noise if noise.shape == (k, k) and k > 1 else np.broadcast_to(noise.reshape(-1) ** 2, (k,)) * np.eye(k)
    except (TypeError, ValueError):
        raise StateError(f"virtual evidence of the real-valued {var.name} is (value, sd), not {value!r}") from None
    if not np.isfinite(S).all() or np.linalg.eigvalsh(S)[0] <= 0:
        raise StateError(f"the noise of the virtual evidence of {var.name} must be positive, got {value[1]!r}")
    given.noisy[v] = (var.domain.read(value[0], var.name), S)  # type: ignore[attr-defined]


def _distribution(var: Var, value: Any) -> FloatArray:
    if not var.is_discrete:
        raise StateError(
            f"{var.name} is real-valued, and soft evidence gives probabilities of states. "
            "Use a noisy reading instead: gg.Likelihood((value, sd))"
        )
    q = weights_of(var, value, what="soft evidence")
    if abs(q.sum() - 1.0) > 1e-6:
        raise StateError(
            f"soft evidence of {var.name} must sum to one, got {q.sum():.6g}; for weights use Likelihood(…)"
        )
    return q / q.sum()


def _scaled(given: dict[int, list[FloatArray]]) -> tuple[Any, Any, float]:
    """The product of all likelihoods of each variable, which are defined up to a factor: weights, logs, log of scales.

    The largest weight becomes one. Where the smallest would be lost, the logarithms are kept beside the weights.
    """
    products, all_logs, total = {}, {}, 0.0
    for v, parts in given.items():
        product, scale = np.ones(1), 0.0
        for weights in parts:
            product = product * (weights / weights.max())
            scale += float(np.log(weights.max()))
            top = product.max()
            if top > 0.0:
                product, scale = product / top, scale + float(np.log(top))
        allowed = np.logical_and.reduce(np.broadcast_arrays(*[weights > 0.0 for weights in parts]))
        if (product[allowed] < LEAST).any():
            with np.errstate(divide="ignore"):
                logs = np.sum(np.broadcast_arrays(*[np.log(weights) for weights in parts]), axis=0)
            scale = float(logs.max())
            all_logs[v] = logs - scale
            product = np.where(allowed, np.maximum(np.exp(logs - scale), LEAST), 0.0)
        products[v] = product
        total += scale
    return tuple(products.items()), tuple(all_logs.items()), total


def refuse_soft(model: GraphicalModel, question: Question) -> Question:
    """The question; `StateError` for soft evidence where only `query` can honor it."""
    if question.soft:
        names = ", ".join(model.names_of(question.soft))
        raise StateError(f"soft evidence ({names}) is answered by query alone; here give Likelihood(…) or a state")
    return question


# -------------------------------------------------------------------------------------------- a table of cases


def _many_cases(model: GraphicalModel, cases: Any, given: Given, keep: tuple[Any, ...]) -> None:
    """A frame (pandas, polars, Arrow) or a list of dicts; missing cells are not observed."""
    if model.is_discrete and not keep and (few := codes_of_few(model, cases, rows=FEW_ROWS)) is not None:
        given.batched, given.index = True, None if type(cases) is list else cases.index
        given.observed, given.codes = list(few.observed), few.codes
        return
    frame = read_frame(cases, what="evidence").table
    given.batched, given.index = True, frame.index
    if keep:
        for name in keep:
            if name not in frame:
                known = list(map(str, frame.columns))
                raise VariableError(
                    f"the table of cases has no column {name!r} to keep. Columns: {listing(known)}."
                    f"{did_you_mean(name, known)}"
                )
        given.keep = frame[list(keep)].copy()
        frame = frame.drop(columns=[name for name in keep if name not in model.positions])
    if not _plain_numbers(model, frame, given):
        _columns(model, frame, given)


def _columns(model: GraphicalModel, frame: Any, given: Given) -> None:
    """Column by column: labels, numbers, vectors."""
    codes: list[IntArray] = []
    components: list[IntArray] = []
    blocks: list[FloatArray | None] = []
    plain: list[str] = []
    for name in frame.columns:
        v, part = _column(model, name)
        var = model.vars[v]
        if var.is_discrete:
            given.observed.append(v)
            codes.append(_states_column(model, v, frame[name], given))
            continue
        if isinstance(var.domain, Points):
            given.points[v] = column_of([None if np.ndim(x) == 0 and is_missing(x) else x for x in frame[name]])
            continue
        at = layout_of(model).components(v)
        if frame[name].dtype == object and (said := _said(frame[name])):
            frame = frame.assign(**{name: _without(model, v, frame[name], said, given)})
        if part is None and var.dimension > 1:
            blocks.append(_vectors(frame[name], var))
        else:
            at = at[part or 0 : (part or 0) + 1]
            blocks.append(None)
            plain.append(name)
        components.append(at)
    given.codes = np.stack(codes, axis=1) if codes else np.zeros((len(frame), 0), np.int64)
    given.columns = np.concatenate(components) if components else NO_COLUMNS
    table = _numbers(frame[plain], plain) if plain else np.zeros((len(frame), 0))
    if any(block is not None for block in blocks):
        columns = iter(table.T)
        table = np.hstack([next(columns)[:, None] if block is None else block for block in blocks])
    given.values = np.ascontiguousarray(table)
    _check_vectors(model, given)


def _said(column: Any) -> dict[int, Any]:
    """Row → what a cell says beside a plain value: a likelihood, or several states of which one is true."""
    several = (Likelihood, States, set, frozenset)
    return {row: value for row, value in enumerate(column) if isinstance(value, several)}


def _states_column(model: GraphicalModel, v: int, column: Any, given: Given) -> IntArray:
    """Codes of a column of labels, where cells may also be `gg.Likelihood`, `gg.Not`, or a set of labels."""
    var, hint = model.vars[v], "; ask about such a case alone, with evidence as a dict"
    try:
        return encode(column, var, hint=hint)
    except StateError:
        said = _said(column) if column.dtype == object else {}
        if not said:
            raise
    return encode(_without(model, v, column, said, given), var, hint=hint)


def _without(model: GraphicalModel, v: int, column: Any, said: Mapping[int, Any], given: Given) -> Any:
    """The column with gaps in place of what was said about single cases, which become likelihoods of each case."""
    var = model.vars[v]
    if not (model.is_discrete or model.cell_axes):
        row = column.index[next(iter(said))]
        raise StateError(
            f"row {row}: likelihoods in a table of cases are read for models of discrete variables and on cells; ask "
            f"about such a case of {var.name} alone, with evidence as a dict"
        )
    weights = np.ones((len(column), model.cell_axes[v].m if model.cell_axes else var.size))
    for row, value in said.items():
        try:
            if not isinstance(value, Likelihood):
                if not var.is_discrete:
                    raise StateError(f"{var.name} is real-valued: its evidence is a number, not {value!r}")
                weights[row] = allowed_weights(var, value)
            else:
                weights[row] = cell_weights(model.cell_axes[v], value) if model.cell_axes else weights_of(var, value)
        except GramGraphError as error:
            raise StateError(f"row {column.index[row]}: {error}") from None
    given.likelihoods.setdefault(v, []).append(weights)
    rest = column.copy()
    rest.iloc[list(said)] = None
    return rest


def _plain_numbers(model: GraphicalModel, frame: Any, given: Given) -> bool:
    """The quick way for a frame that holds nothing but numbers of scalar variables."""
    if model.is_discrete:
        return False
    layout = layout_of(model)
    if layout.size != len(model.vars):  # discrete variables, or vectors
        return False
    X = frame.to_numpy()
    if X.dtype != np.float64:
        return False
    last: tuple[Any, IntArray] | None = model.plans.get(("lowered", "last columns"))
    if last is not None and last[0] is frame.columns:  # the same labels as before (they cannot have changed)
        columns = last[1]
    else:
        positions = [model.positions.get(name, -1) for name in frame.columns.tolist()]
        if -1 in positions:
            return False
        columns = layout.first[positions] if positions else NO_COLUMNS
        model.plans[("lowered", "last columns")] = frame.columns, columns
    given.columns, given.codes = columns, np.zeros((len(frame), 0), np.int64)
    given.complete = bool(np.isfinite(X.sum()))
    # A copy, because answers are found when they are asked for, and the frame may have changed by then.
    # Gaps, or something infinite: look closer.
    given.values = X.copy(order="K") if given.complete else _numbers(frame, frame.columns.tolist())
    return True


def _column(model: GraphicalModel, name: Any) -> tuple[int, int | None]:
    """The variable of a column, and which component it is where the column is called `x[1]`."""
    if name not in model.positions and isinstance(name, str) and name.endswith("]"):
        stem, _, number = name[:-1].rpartition("[")
        if stem in model.positions and number.isdecimal():
            v = model.positions[stem]
            var = model.vars[v]
            if not var.is_discrete and int(number) < var.dimension:
                return v, int(number)
    return model.index(name), None


def _numbers(frame: Any, names: Sequence[str]) -> FloatArray:
    """Columns of numbers as one array; what is not a number is named with its row."""
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
        if not (np.ndim(value) == 0 and is_missing(value)):
            out[row] = var.domain.read(value, var.name)  # type: ignore[attr-defined]
    return out


def _check_vectors(model: GraphicalModel, given: Given) -> None:
    """A vector is observed as a whole."""
    if not len(given.columns) or layout_of(model).scalar:
        return
    owners = layout_of(model).owner[given.columns]
    for v in dict.fromkeys(owners.tolist()):
        k = model.vars[v].dimension
        if k == 1:
            continue
        gaps = np.isnan(given.values[:, owners == v])
        if gaps.shape[1] != k or (gaps.any(axis=1) != gaps.all(axis=1)).any():
            row = int(np.argmax(gaps.any(axis=1))) if gaps.shape[1] == k else 0
            raise StateError(f"row {row}: the vector {model.vars[v].name} is observed as a whole or not at all")
