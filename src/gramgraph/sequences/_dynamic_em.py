"""Tables of a dynamic network from sequences: expected counts of every family, through the interface algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._validation import check_count, generator
from gramgraph.exceptions import ModelError
from gramgraph.sequences._interface import Chain, Slice
from gramgraph.typing import FloatArray, IntArray, RandomState

if TYPE_CHECKING:
    from gramgraph.sequences.dynamic import DynamicBayesianNetwork

Counts = dict[str, FloatArray]


def fit_tables(
    net: DynamicBayesianNetwork,
    sequences: Sequence[Any],
    prior: float,
    max_iter: int,
    tol: float,
    random_state: RandomState,
) -> DynamicBayesianNetwork:
    """EM, or one pass of counting where nothing is missing."""
    check_count("max_iter", max_iter)
    if not prior >= 0.0 or not sequences:
        raise ModelError(f"prior must be a number of pseudo-counts from 0, and there must be rows; prior is {prior!r}.")
    rng = generator(random_state)
    flat = net if net.step.has_tables and net.first.has_tables else net.with_tables(*_uniform(net))
    codes = [flat._codes(rows) for rows in sequences]
    complete = all((part >= 0).all() for part in codes)
    model = flat if complete or net.step.has_tables else net.with_tables(*_uniform(net, rng))
    history: list[float] = []
    for i in range(1 if complete else max_iter):
        first, step, log = _expected(model._chain, codes)
        history.append(log)
        if i and history[-1] - history[-2] < tol * len(codes):
            break
        model = model.with_tables(*_maximized(model, first, step, prior))
    model.history = np.array(history)
    return model


def _uniform(net: DynamicBayesianNetwork, rng: np.random.Generator | None = None) -> tuple[Counts, Counts]:
    """Tables of equal numbers, or random ones; shared where both slices have the same families."""
    out: tuple[Counts, Counts] = {}, {}
    for part, tables in zip((net.first, net.step), out, strict=True):
        for name in net.variables:
            shape = [part.var(p).size for p in (*part.parents(name), name)]
            values = np.ones(shape) if rng is None else rng.gamma(2.0, size=shape)
            tables[name] = values / values.sum(axis=-1, keepdims=True)
    for name in net.variables:
        if net.first.parents(name) == net.step.parents(name):
            out[0][name] = out[1][name]
    return out


def _expected(chain: Chain, sequences: Sequence[IntArray]) -> tuple[Counts, Counts, float]:
    """Expected counts of the families in the first and in later slices, and log p of all rows."""
    first, step, total = _zeros(chain, chain.first), _zeros(chain, chain.step), 0.0
    for codes in sequences:
        messages = chain.messages(codes)
        total += float(messages.logs.sum())
        assert messages.future is not None
        _count(chain, chain.first, codes[:1], None, messages.future[:1], first)
        if len(codes) > 1:
            _count(chain, chain.step, codes[1:], messages.past[:-1], messages.future[1:], step)
    return first, step, total


def _families(chain: Chain, part: Slice) -> dict[str, tuple[int, ...]]:
    net = part.net
    return {name: tuple(net.index(v) for v in (*net.parents(name), name)) for name in chain.names}


def _zeros(chain: Chain, part: Slice) -> Counts:
    return {
        name: np.zeros([part.net.vars[v].size for v in members]) for name, members in _families(chain, part).items()
    }


def _count(
    chain: Chain, part: Slice, codes: IntArray, before: FloatArray | None, after: FloatArray, counts: Counts
) -> None:
    families = _families(chain, part)
    answer = part.ask(codes, joints=tuple(dict.fromkeys(families.values())), before=before, after=after)
    for name, members in families.items():
        table = np.asarray(answer[tuple(part.net.variables[v] for v in members)].probabilities)
        counts[name] += table.sum(axis=0)


def _maximized(model: DynamicBayesianNetwork, first: Counts, step: Counts, prior: float) -> tuple[Counts, Counts]:
    """Normalized counts; families that both slices have are one."""
    out: tuple[Counts, Counts] = {}, {}
    for name in model.variables:
        shared = model.first.parents(name) == model.step.parents(name)
        both = [first[name] + step[name]] * 2 if shared else [first[name], step[name]]
        for part, counts, tables in zip((model.first, model.step), both, out, strict=True):
            total = (counts + prior).sum(axis=-1, keepdims=True)
            old = part.conditional(name).table()
            tables[name] = np.where(total > 0.0, (counts + prior) / np.where(total > 0.0, total, 1.0), old)
    return out
