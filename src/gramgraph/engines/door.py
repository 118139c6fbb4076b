"""The door: names, labels and frames become a `Question` of integers, and mistakes become readable errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.compile.question import Question
from gramgraph.data.columns import encode
from gramgraph.evidence import Likelihood, Soft, _States, allowed_weights, weights_of
from gramgraph.exceptions import StateError, VariableError
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["parse_evidence", "parse_targets"]

#: Weights smaller than this part of the largest one are kept as logarithms.
LEAST = 1e-290


class Parsed(NamedTuple):
    """Evidence in integers."""

    observed: tuple[int, ...]
    codes: IntArray
    weights: dict[int, FloatArray]  # likelihoods, the largest weight one
    soft: dict[int, FloatArray]
    batched: bool
    index: Any  # of the cases
    log_weights: dict[int, FloatArray]  # of likelihoods that reach over more than doubles hold
    scales: dict[int, float]  # log of what the weights were divided by


NO_CODES = np.zeros((1, 0), np.int64)


def parse_targets(model: GraphicalModel, targets: Any) -> tuple[tuple[int, ...] | None, tuple[tuple[int, ...], ...]]:
    """(variables wanted alone — None for all that are not observed —, sets wanted jointly)."""
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


def parse_evidence(model: GraphicalModel, evidence: Any, virtual: Any = None, soft: Any = None) -> Parsed:
    """The evidence after its names, labels and numbers were looked at."""
    given: dict[int, list[FloatArray]] = {}
    jeffrey: dict[int, FloatArray] = {}
    observed: tuple[int, ...] = ()
    codes, index = NO_CODES, None
    batched = False
    if type(evidence).__name__ == "Series":  # a row of a frame is one case
        evidence = evidence.to_dict()
    if isinstance(evidence, Mapping):
        observed, codes = _one_case(model, evidence, given, jeffrey)
    elif evidence is not None:
        observed, codes, index = _many_cases(model, evidence)
        batched = True
    for more, what in ((virtual, "virtual_evidence"), (soft, "soft_evidence")):
        if more is not None and not isinstance(more, Mapping):
            raise VariableError(f"{what} is a dict from names to numbers, not {type(more).__name__}")
    for name, value in (virtual or {}).items():
        given.setdefault(model.index(name), []).append(weights_of(model.var(name), value))
    for name, value in (soft or {}).items():
        jeffrey[model.index(name)] = _distribution(model, name, value)
    for v in jeffrey:
        if v in observed:
            raise StateError(f"{model.vars[v].name} has both an observed state and soft evidence: give one of them")
    parsed = Parsed(observed, codes, {}, jeffrey, batched, index, {}, {})
    return _scaled(parsed, given) if given else parsed


def _scaled(parsed: Parsed, given: dict[int, list[FloatArray]]) -> Parsed:
    """The evidence with the product of all likelihoods of a variable, which are defined up to a factor.

    The largest weight becomes one. Where the smallest would be lost, the logarithms are kept beside the weights.
    """
    for v, parts in given.items():
        product, scale = np.ones(len(parts[0])), 0.0
        for weights in parts:
            product = product * (weights / weights.max())
            scale += float(np.log(weights.max()))
            top = product.max()
            if top > 0.0:
                product, scale = product / top, scale + float(np.log(top))
        allowed = np.logical_and.reduce([weights > 0.0 for weights in parts])
        if (product[allowed] < LEAST).any():
            with np.errstate(divide="ignore"):
                logs = np.sum([np.log(weights) for weights in parts], axis=0)
            scale = float(logs.max())
            parsed.log_weights[v] = logs - scale
            product = np.where(allowed, np.maximum(np.exp(logs - scale), LEAST), 0.0)
        parsed.weights[v], parsed.scales[v] = product, scale
    return parsed


def _distribution(model: GraphicalModel, name: str, value: Any) -> FloatArray:
    q = weights_of(model.var(name), value, what="soft evidence")
    if abs(q.sum() - 1.0) > 1e-6:
        raise StateError(f"soft evidence of {name} must sum to one, got {q.sum():.6g}; for weights use Likelihood(…)")
    return q / q.sum()


def _one_case(
    model: GraphicalModel,
    evidence: Mapping[str, Any],
    given: dict[int, list[FloatArray]],
    jeffrey: dict[int, FloatArray],
) -> tuple[tuple[int, ...], IntArray]:
    positions, variables = model.positions, model.vars
    observed, codes = [], []
    for name, value in evidence.items():
        v = positions.get(name)
        if v is None:
            raise VariableError.unknown(name, model.variables)
        if isinstance(value, str):
            code = variables[v].domain.find(value)  # type: ignore[attr-defined]
            if code < 0:
                raise StateError.unknown(value, name, variables[v].states)
        elif value is None or (isinstance(value, (float, np.floating)) and value != value):
            continue
        elif isinstance(value, Likelihood):
            given.setdefault(v, []).append(weights_of(variables[v], value))
            continue
        elif isinstance(value, Soft):
            jeffrey[v] = _distribution(model, name, value)
            continue
        elif isinstance(value, (_States, set, frozenset, list, tuple)):
            given.setdefault(v, []).append(allowed_weights(variables[v], value))
            continue
        elif isinstance(value, (Mapping, np.ndarray)):
            raise StateError(
                f"the evidence of {name} is a state, not {value!r}. "
                "Weights are written gg.Likelihood(…), probabilities that the belief shall become gg.Soft(…)"
            )
        elif _is_missing(value):
            continue
        else:
            code = variables[v].index(value)
        observed.append(v)
        codes.append(code)
    return tuple(observed), np.array([codes], np.int64)


def _is_missing(value: Any) -> bool:
    """pandas' NA and NaT, without pandas."""
    return type(value).__name__ in ("NAType", "NaTType")


def _many_cases(model: GraphicalModel, cases: Any) -> tuple[tuple[int, ...], IntArray, Any]:
    """A frame (pandas, polars, Arrow) or a list of dicts; missing cells are not observed."""
    import pandas as pd

    if isinstance(cases, Sequence) and not isinstance(cases, (str, bytes)):
        for row, case in enumerate(cases):
            if not isinstance(case, Mapping):
                raise VariableError(
                    f"evidence must be a dict, a data frame or a list of dicts; item {row} of the list is {case!r}"
                )
        rows = [dict(case) for case in cases]
        index = range(len(rows))
        # Rows in which nothing is observed have no column that pandas 2 could begin with.
        cases = pd.DataFrame.from_records(rows, index=index) if any(rows) else pd.DataFrame(index=index)
    if not isinstance(cases, pd.DataFrame):
        import narwhals as nw

        try:
            frame = nw.from_native(cases, eager_only=True)
        except TypeError:
            raise VariableError(
                f"evidence must be a dict, a data frame or a list of dicts, not {type(cases).__name__}"
            ) from None
        cases = pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})  # asks for no further package
    observed = tuple(model.index(name) for name in cases.columns)
    if len(set(observed)) != len(observed):
        twice = cases.columns[cases.columns.duplicated()][0]
        raise VariableError(f"the table of cases has more than one column {twice!r}")
    codes = np.full((len(cases), len(observed)), -1, np.int64)
    for j, (_, column) in enumerate(cases.items()):
        found = _encode(column, model, observed[j])
        if found is not None:
            codes[:, j] = found
    return observed, codes, cases.index


def _encode(column: Any, model: GraphicalModel, v: int) -> IntArray | None:
    """State indices of a column, -1 where it is missing; None for a column of gaps."""
    found = encode(column, model.vars[v], hint="; ask about such a case alone, with evidence as a dict")
    return found.astype(np.int64) if (found >= 0).any() else None


def refuse_soft(model: GraphicalModel, parsed: Parsed) -> None:
    """`StateError` for soft evidence where only `query` can honor it."""
    if parsed[3]:
        names = ", ".join(model.vars[v].name for v in parsed[3])
        raise StateError(f"soft evidence ({names}) is answered by query alone; here give Likelihood(…) or a state")


def build_question(
    model: GraphicalModel,
    singles: tuple[int, ...] | None,
    joints: tuple[tuple[int, ...], ...],
    parsed: Parsed,
) -> Question:
    """The question in integers; without named targets, all variables (of which the answer lists the unobserved)."""
    wanted: Sequence[int] = range(len(model.vars)) if singles is None else singles
    if not parsed.weights:
        return Question(wanted, joints, parsed.observed, parsed.codes, (), parsed.batched)
    return Question(
        wanted, joints, parsed.observed, parsed.codes, tuple(parsed.weights.items()), parsed.batched,
        tuple(parsed.log_weights.items()), sum(parsed.scales.values()),
    )  # fmt: skip
