"""Runs over the sites of a count model for many configurations at once: enumeration, sequential importance draws."""

from __future__ import annotations

import numpy as np

from gramgraph.engines.plates.counts import CountModel
from gramgraph.typing import FloatArray, IntArray

#: Numbers that are held at once.
BLOCK = 2_000_000


class _Urns:
    """Counts of each row for many configurations side by side."""

    def __init__(self, model: CountModel, n: int) -> None:
        self.m, self.n = model, n
        self.cells = np.tile(model.alpha, (n, 1))
        self.totals = np.tile(model.totals, (n, 1))
        self.states = np.empty((n, len(model.sizes)), dtype=np.int64)
        self.at = np.arange(n)

    def row(self, s: int) -> IntArray:
        """The row of a site in each configuration."""
        m = self.m
        code = np.full(self.n, m.table[s])
        for j in range(m.ptr[s], m.ptr[s + 1]):
            code += m.stride[j] * self.states[:, m.idx[j]]
        return m.choice[code]

    def weight(self, s: int, v: IntArray | int) -> FloatArray:
        """p(site s has state v | all that was put before)."""
        r = self.row(s)
        return np.asarray(self.cells[self.at, self.m.offset[r] + v] / self.totals[self.at, r])

    def put(self, s: int, v: IntArray | int, sign: float = 1.0) -> None:
        """Adds the draw of a site to its urn."""
        r = self.row(s)
        step = sign * self.m.step[r]
        self.cells[self.at, self.m.offset[r] + v] += step
        self.totals[self.at, r] += step


def enumerate_all(model: CountModel) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """(probabilities of all configurations of the hidden sites, E[p] and E[p²] of every cell, log p(evidence)).

    Configurations in mixed radix, the last hidden site quickest. O(configurations · sites).
    """
    hidden = model.hidden
    sizes = model.sizes[hidden]
    total = int(np.prod(sizes)) if len(sizes) else 1
    logs = np.empty(total)
    block = max(BLOCK // max(len(model.alpha) + len(model.sizes), 1), 1)
    parts = []
    for first in range(0, total, block):
        n = min(block, total - first)
        urns = _Urns(model, n)
        digits = np.array(np.unravel_index(np.arange(first, first + n), sizes)) if len(sizes) else np.zeros((0, n))
        urns.states[:] = np.where(model.value >= 0, model.value, 0)
        urns.states[:, hidden] = digits.T
        log_p = np.full(n, model.log_constant)
        for s in range(len(model.sizes)):
            with np.errstate(divide="ignore"):
                log_p += np.log(urns.weight(s, urns.states[:, s]))
            urns.put(s, urns.states[:, s])
        logs[first : first + n] = log_p
        parts.append((log_p, *_row_moments(model, urns.cells, urns.totals)))
    top = logs.max(initial=-np.inf)
    if top == -np.inf:
        nothing = np.full(len(model.alpha), np.nan)
        return np.full(total, np.nan), nothing, nothing, -np.inf
    weights = np.exp(logs - top)
    log_z = float(top + np.log(weights.sum()))
    first_moment, second = np.zeros(len(model.alpha)), np.zeros(len(model.alpha))
    for log_p, mean, square in parts:
        w = np.exp(log_p - log_z)
        first_moment += w @ mean
        second += w @ square
    return weights / weights.sum(), first_moment, second, log_z


def _row_moments(model: CountModel, cells: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E[p] and E[p²] of each cell given the counts: a / A and a (a + 1) / A (A + 1)."""
    whole = np.repeat(totals, np.diff(model.offset), axis=1)
    fixed = np.repeat(model.step == 0.0, np.diff(model.offset))
    mean = cells / whole
    square = np.where(fixed, mean**2, mean * (cells + 1.0) / (whole + 1.0))
    return mean, square


def row_moments(model: CountModel, cells: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """As `_row_moments`, of one configuration."""
    mean, square = _row_moments(model, cells[None], totals[None])
    return mean[0], square[0]


def left_to_right(model: CountModel, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """An estimate of log p(evidence) with its standard error, from n sequential importance draws.

    Each hidden site is drawn given what was put before and the observed sites that wait for it alone; the product of
    the normalizers has the mean p(evidence). O(n · sites · states).
    """
    order, waiting = _waiting(model)
    logs = []
    block = max(BLOCK // max(len(model.alpha) + len(model.sizes), 1), 1)
    for first in range(0, n, block):
        logs.append(_run(model, min(block, n - first), order, waiting, rng))
    log_w = np.concatenate(logs)
    top = log_w.max()
    if top == -np.inf:
        return -np.inf, 0.0
    w = np.exp(log_w - top)
    error = float(w.std(ddof=1) / np.sqrt(n) / w.mean()) if n > 1 else np.inf
    return float(top + np.log(w.mean()) + model.log_constant), error


def _waiting(model: CountModel) -> tuple[list[int], dict[int, list[int]]]:
    """Sites in the order of the draws, and the observed sites that are put together with a hidden one."""
    ptr, children = model.children()
    place = np.arange(len(model.sizes))
    waiting: dict[int, list[int]] = {}
    late = np.zeros(len(model.sizes), dtype=bool)
    for s in model.hidden.tolist():
        waiting[s] = []
    for c in range(len(model.sizes)):
        if model.value[c] < 0:
            continue
        parents = [int(p) for p in model.idx[model.ptr[c] : model.ptr[c + 1]] if model.value[p] < 0]
        if parents:
            waiting[max(parents, key=lambda p: int(place[p]))].append(c)
            late[c] = True
    return [s for s in range(len(model.sizes)) if not late[s]], waiting


def _run(
    model: CountModel, n: int, order: list[int], waiting: dict[int, list[int]], rng: np.random.Generator
) -> FloatArray:
    urns = _Urns(model, n)
    urns.states[:] = np.where(model.value >= 0, model.value, 0)
    log_w = np.zeros(n)
    with np.errstate(divide="ignore"):
        for s in order:
            if model.value[s] >= 0:
                log_w += np.log(urns.weight(s, model.value[s]))
                urns.put(s, model.value[s])
                continue
            weights = np.empty((n, model.sizes[s]))
            for v in range(int(model.sizes[s])):
                weights[:, v] = _weight_with(model, urns, s, v, waiting[s])
            total = weights.sum(axis=1)
            log_w += np.log(total)
            share = np.cumsum(weights, axis=1)
            drawn = np.minimum((share <= (rng.random(n) * total)[:, None]).sum(axis=1), model.sizes[s] - 1)
            urns.states[:, s] = drawn
            for site in (s, *waiting[s]):
                urns.put(site, urns.states[:, site])
    return log_w


def _weight_with(model: CountModel, urns: _Urns, s: int, v: int, waiting: list[int]) -> FloatArray:
    """p(site s has state v, and the sites that wait for it theirs); the urns are left as they were."""
    urns.states[:, s] = v
    sites = (s, *waiting)
    out = np.ones(urns.n)
    for site in sites:
        out *= urns.weight(site, urns.states[:, site])
        urns.put(site, urns.states[:, site])
    for site in sites:
        urns.put(site, urns.states[:, site], -1.0)
    return out
