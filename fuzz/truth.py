"""The brute-force joint in logarithms: slow, short, and with nothing of the library in it.

Everything is a sum or a maximum over one array with an axis for each variable. Logarithms keep numbers such as
1e-300 · 1e-300 apart from zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

__all__ = ["Joint", "log", "log_sum"]


def log(values: object) -> np.ndarray:
    """Logarithms; of zero, −inf without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


def log_sum(logs: np.ndarray, axis: tuple[int, ...] | None = None) -> np.ndarray:
    """log Σ exp(logs) over some axes (default: all)."""
    axis = tuple(range(logs.ndim)) if axis is None else axis
    if not axis:
        return logs
    top = np.max(logs, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return log(np.sum(np.exp(logs - top), axis=axis)) + top.reshape(
        [n for i, n in enumerate(top.shape) if i not in axis]
    )


class Joint:
    """log Π factors over variables 0, …, n − 1; a factor is (variables, logs with an axis for each)."""

    def __init__(self, sizes: Sequence[int], factors: Iterable[tuple[Sequence[int], np.ndarray]]) -> None:
        self.sizes = tuple(sizes)
        logs = np.zeros(self.sizes)
        for scope, table in factors:
            logs = logs + self._spread(scope, table)
        self.logs = logs
        self._beliefs: dict[tuple[int, ...], np.ndarray] = {}  # every engine is asked the same

    def _spread(self, scope: Sequence[int], table: np.ndarray) -> np.ndarray:
        """The table with an axis for every variable, in their order."""
        order = np.argsort(scope)
        shape = [1] * len(self.sizes)
        for i in scope:
            shape[i] = self.sizes[i]
        return np.transpose(table, order).reshape(shape) if len(scope) else np.reshape(table, shape)

    def weighed(self, weights: Mapping[int, np.ndarray]) -> Joint:
        """Log weights of the states of some variables added: evidence, hard (0 and −inf) or likelihoods."""
        made = Joint(self.sizes, ())
        made.logs = self.logs
        for i, w in weights.items():
            made.logs = made.logs + self._spread((i,), w)
        return made

    @cached_property
    def log_z(self) -> float:
        """log of the sum over everything: log p(evidence)."""
        return float(log_sum(self.logs))

    def log_belief(self, scope: Sequence[int]) -> np.ndarray:
        """log p(scope | evidence), axes in the order of the scope."""
        out = tuple(i for i in range(len(self.sizes)) if i not in scope)
        kept = sorted(scope)
        return np.transpose(log_sum(self.logs, out) - self.log_z, [kept.index(i) for i in scope])

    def belief(self, scope: Sequence[int]) -> np.ndarray:
        """p(scope | evidence)."""
        key = tuple(scope)
        if key not in self._beliefs:
            self._beliefs[key] = np.exp(self.log_belief(key))
        return self._beliefs[key]

    @cached_property
    def best(self) -> float:
        """log of the largest entry."""
        return float(self.logs.max())

    def best_values(self, k: int) -> np.ndarray:
        """The k largest entries that are not zero, the largest first."""
        flat = np.sort(self.logs.reshape(-1))[::-1][:k]
        return flat[flat > -np.inf]

    def best_of(self, scope: Sequence[int]) -> tuple[float, np.ndarray]:
        """(largest entry, all entries) of the table over `scope` when the rest is summed out."""
        table = self.log_belief(scope) + self.log_z
        return float(table.max()), table
