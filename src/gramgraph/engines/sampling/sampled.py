"""What all samplers share: cells of wanted tables, sums of weights, tables by target, the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.answers import Answer, Belief
from gramgraph.engines.exact.outputs import Columns
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Draws that the count of a rare state may be off by, squared, beside its own spread.
TAIL = 2.0


class Wants(NamedTuple):
    """Cells of all wanted tables: table t begins at `at[t]`; its variables and strides stand at ptr[t]:ptr[t+1]."""

    ptr: IntArray
    idx: IntArray
    stride: IntArray
    at: IntArray
    shapes: tuple[tuple[int, ...], ...]
    cells: int

    @classmethod
    def of(cls, sizes: IntArray, tables: tuple[tuple[int, ...], ...]) -> Wants:
        """The layout of these tables, axes in the order of their variables."""
        lengths = sizes.tolist()
        alone = 0  # single variables, of which there may be many, come first
        while alone < len(tables) and len(tables[alone]) == 1:
            alone += 1
        idx = [members[0] for members in tables[:alone]]
        shapes = [(lengths[v],) for v in idx]
        ptr, stride = list(range(alone + 1)), [1] * alone
        at = [0, *np.cumsum(sizes[idx]).tolist()] if alone else [0]
        for members in tables[alone:]:
            shape = tuple([lengths[v] for v in members])
            step, steps = 1, []
            for size in reversed(shape):
                steps.append(step)
                step *= size
            idx.extend(members)
            stride.extend(reversed(steps))
            ptr.append(len(idx))
            at.append(at[-1] + step)
            shapes.append(shape)
        as_array = [np.array(part, np.int64) for part in (ptr, idx, stride, at[:-1])]
        return cls(as_array[0], as_array[1], as_array[2], as_array[3], tuple(shapes), at[-1])

    def table(self, t: int, cells: FloatArray) -> FloatArray:
        """Table t of (cases, cells) as (cases, *shape)."""
        first = int(self.at[t])
        size = int(np.prod(self.shapes[t], dtype=np.int64))
        return cells[:, first : first + size].reshape(len(cells), *self.shapes[t])


class ByTarget(Mapping[Any, FloatArray]):
    """One table for each target, cut from a common array when it is asked for."""

    def __init__(self, keys: Mapping[Any, int], wants: Wants, cells: FloatArray, batched: bool) -> None:
        self._keys, self._wants, self._cells, self._batched = keys, wants, cells, batched

    def __getitem__(self, key: Any) -> FloatArray:
        table = self._wants.table(self._keys[key], self._cells)
        return table if self._batched else np.asarray(table[0])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return repr(dict(self)) if len(self) <= 8 else f"<tables of {len(self)} targets, by name>"


def target_keys(model: GraphicalModel, question: Question) -> Mapping[Any, int]:
    """Names of the targets (tuples of names for joints) with their numbers."""
    variables = model.vars
    if not question.joints and question.targets == range(len(variables)):
        return model.positions
    keys: list[Any] = [variables[v].name for v in question.targets]
    keys += [tuple(variables[v].name for v in members) for members in question.joints]
    return {key: t for t, key in enumerate(keys)}


def with_tails(p: FloatArray, variance: FloatArray, draws: FloatArray | float) -> FloatArray:
    """Standard errors of probabilities near 0 and 1 as well: √(variance + 2 (1 − 2p)² / m²), m = p (1 − p) / variance.

    m is how many independent draws would give this variance. Where a state came up k = mp times only, its number varies
    by √k, of which few draws say little: p ± 2 √k / m would leave out the truth too often, and always where k = 0
    (m is then `draws`). With √(k + 2) it is held in about 95 of 100 cases, few draws or many.
    """
    inner = p * (1 - p)
    with np.errstate(divide="ignore", invalid="ignore"):
        m = np.where((inner > 0) & (variance > 0), inner / variance, draws)
    return np.asarray(np.sqrt(variance + TAIL * ((1 - 2 * p) / np.minimum(np.maximum(m, 1.0), draws)) ** 2))


class Total:
    """Sums of weights while blocks of draws come in, scaled by the largest weight so far."""

    def __init__(self, cells: int) -> None:
        self.sums, self.squares = np.zeros(cells), np.zeros(cells)
        self.weight = self.weight2 = 0.0
        self.top = -np.inf
        self.draws = 0

    def add(self, log_w: FloatArray) -> FloatArray | None:
        """The block's weights in the common scale; None when all are zero."""
        self.draws += len(log_w)
        top = float(log_w.max())
        if top == -np.inf:
            return None
        if top > self.top:
            scale = float(np.exp(self.top - top)) if self.top > -np.inf else 0.0
            self.sums *= scale
            self.squares *= scale**2
            self.weight, self.weight2, self.top = self.weight * scale, self.weight2 * scale**2, top
        w = np.exp(log_w - self.top)
        self.weight += float(w.sum())
        self.weight2 += float(w @ w)
        return np.asarray(w)

    def estimates(self) -> tuple[FloatArray, FloatArray, float]:
        """(probabilities, standard errors, effective draws).

        Var p̂ ≈ Σ w² (1[x] - p̂)² / (Σ w)², the delta method for a ratio, and what `with_tails` adds.
        """
        p = np.minimum(self.sums / self.weight, 1.0)
        spread = self.squares * (1 - 2 * p) + p**2 * self.weight2
        effective = self.weight**2 / self.weight2
        return p, with_tails(p, np.maximum(spread, 0.0) / self.weight**2, effective), effective

    def log_mean(self) -> tuple[float, float]:
        """log of the mean weight, and its standard error."""
        n = self.draws
        mean = self.weight / n
        variance = max(self.weight2 / n - mean**2, 0.0)
        return self.top + float(np.log(mean)), float(np.sqrt(variance / n)) / mean


def sampled_answer(
    model: GraphicalModel,
    question: Question,
    wants: Wants,
    p: FloatArray,  # (cases, cells of all wanted tables)
    error: FloatArray,
    log_z: FloatArray,
    *,
    engine: str,
    details: dict[str, Any],
) -> Answer:
    """The answer of a sampler: estimates, and in `details` the standard errors by target."""
    keys = target_keys(model, question)
    if not question.batched:
        details = {key: value[0].item() if isinstance(value, np.ndarray) else value for key, value in details.items()}
    variables, n = model.vars, len(question.targets)
    p[np.isneginf(log_z)] = np.nan
    columns = Columns(model, question.targets, wants.at)
    joints = {}
    for t, members in enumerate(question.joints):
        scope, table = tuple(variables[v] for v in members), wants.table(n + t, p)
        joints[tuple(var.name for var in scope)] = Belief(
            scope, table if question.batched else table[0], batched=question.batched
        )
    width = int(wants.at[n]) if n < len(wants.at) else wants.cells
    return Answer(
        columns,
        p[:, :width] if question.batched else p[0, :width],
        log_z if question.batched else float(log_z[0]),
        engine=engine,
        exact=False,
        joints=joints,
        hidden=question.hidden(model),
        details={**question.details, **details, "standard_error": ByTarget(keys, wants, error, question.batched)},
    )
