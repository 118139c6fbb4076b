"""Tests of conditional independence from counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.data.columns import code_table
from gramgraph.data.counts import Counts
from gramgraph.data.stream import is_stream, stream_counts
from gramgraph.exceptions import OptionError, VariableError

__all__ = ["TESTS", "IndependenceTest", "independence_test"]

TESTS = ("g2", "x2")


@dataclass(frozen=True)
class IndependenceTest:
    """a ⊥ b | given: the statistic, its degrees of freedom, and the p-value of independence."""

    statistic: float
    dof: int
    p_value: float


def independence_test(
    data: Any, a: str, b: str, given: str | Sequence[str] = (), *, test: str = "g2"
) -> IndependenceTest:
    """Whether discrete columns a and b are independent given others, by G² (likelihood ratio) or Pearson's χ².

    Rows and columns that are empty within a combination of `given` do not count for the degrees of freedom.

    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(2000, random_state=0)
    >>> gg.learn.independence_test(frame, "asia", "smoke").p_value > 0.01
    True
    >>> gg.learn.independence_test(frame, "lung", "smoke").p_value < 1e-6
    True
    """
    if isinstance(data, Counts):
        counts = data
    else:
        counts = stream_counts(data) if is_stream(data) else Counts(code_table(data, needed=_named(a, b, given)))
    at = [counts.position(name) for name in _named(a, b, given)]
    if len(set(at)) < len(at):
        raise VariableError(f"a, b and given name each column once, got {a!r}, {b!r}, {given!r}")
    return independence_of(counts, at[0], at[1], tuple(at[2:]), test)


def _named(a: str, b: str, given: str | Sequence[str]) -> list[str]:
    return [a, b, *([given] if isinstance(given, str) else given)]


def independence_of(counts: Counts, a: int, b: int, given: tuple[int, ...], test: str) -> IndependenceTest:
    """The test on columns by position."""
    from scipy.special import chdtrc, xlogy

    if test not in TESTS:
        raise OptionError(f"test is 'g2' or 'x2', not {test!r}")
    table = np.asarray(counts.table((*given, a, b)), dtype=np.float64).reshape(-1, counts.sizes[a], counts.sizes[b])
    rows, columns = table.sum(axis=2), table.sum(axis=1)
    total = rows.sum(axis=1)
    used = total > 0
    table, rows, columns, total = table[used], rows[used], columns[used], total[used]
    expected = rows[:, :, np.newaxis] * columns[:, np.newaxis, :] / total[:, np.newaxis, np.newaxis]
    if test == "g2":
        ratio = np.divide(table, expected, out=np.ones_like(table), where=table > 0)
        statistic = 2.0 * float(xlogy(table, ratio).sum())
    else:
        squared = np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0)
        statistic = float(squared.sum())
    dof = int(((np.maximum((rows > 0).sum(axis=1), 1) - 1) * (np.maximum((columns > 0).sum(axis=1), 1) - 1)).sum())
    statistic = max(statistic, 0.0)
    return IndependenceTest(statistic, dof, float(chdtrc(dof, statistic)) if dof > 0 else 1.0)
