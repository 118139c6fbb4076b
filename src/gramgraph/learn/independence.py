"""Tests of conditional independence: from counts, from correlations, by likelihood ratios, by kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.data.frames import read_frame
from gramgraph.data.stream import is_stream, stream_counts
from gramgraph.exceptions import OptionError, VariableError, did_you_mean
from gramgraph.learn.mixed_table import MixedTable, read_table
from gramgraph.typing import FloatArray

__all__ = ["TESTS", "IndependenceTest", "IndependenceTester", "choose_tester", "independence_of", "independence_test"]

TESTS = ("g2", "x2", "fisher_z", "cg", "hsic", "kci")


@dataclass(frozen=True)
class IndependenceTest:
    """a ⊥ b | given: the statistic, its degrees of freedom (0: none), and the p-value of independence.

    `informative` is False where the data cannot speak for dependence: what is given fixes a or b, or too few rows are
    left. Then the p-value is 1, and the searches do not take it for independence.
    """

    statistic: float
    dof: int
    p_value: float
    informative: bool = True

    def separates(self, alpha: float, given: tuple[int, ...]) -> bool:
        """Whether independence is accepted at a level; where something is given, by a test that could have failed."""
        return self.p_value > alpha and (self.informative or not given)


class IndependenceTester(Protocol):
    """What algorithms ask: are columns a and b independent given others, all by position?"""

    def __call__(self, a: int, b: int, given: tuple[int, ...]) -> IndependenceTest:
        """The test by position."""
        ...


def independence_test(
    data: Any,
    a: str,
    b: str,
    given: str | Sequence[str] = (),
    *,
    test: str = "auto",
    random_state: int = 0,
) -> IndependenceTest:
    """Whether columns a and b are independent given others.

    `test`: "g2" (likelihood ratio) or "x2" (Pearson's χ²) for discrete columns; "fisher_z" (partial correlation) for
    real ones; "cg" (likelihood ratio of conditional Gaussians) for both kinds together; "hsic" and "kci" (any
    dependence, by kernels: HSIC, or products of kernel regression residuals where something is given; "hsic" by 1,000
    permutations or random signs from `random_state`, "kci" by the gamma approximation; both take tens of milliseconds
    for hundreds of rows, seconds for tens of thousands, where the others take microseconds). "auto" is g2, fisher_z or
    cg by the kinds of the columns.

    For g2 and x2, rows and columns that are empty within a combination of `given` add no degrees of freedom.

    Parameters
    ----------
    data : a frame, a dict of columns, a path or a stream.
    a : a column.
    b : another column.
    given : columns in the condition.
    test : which one, as above.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(2000, random_state=0)
    >>> gg.learn.independence_test(frame, "asia", "smoke").p_value > 0.01
    True
    >>> gg.learn.independence_test(frame, "lung", "smoke").p_value < 1e-6
    True
    """
    named = [a, b, *([given] if isinstance(given, str) else given)]
    if isinstance(data, Counts):
        table: Counts | MixedTable = data
    elif is_stream(data):
        table = stream_counts(data)
    else:
        frame = read_frame(data)
        for name in named:
            frame.column(name)
        found = read_table(frame.table[list(dict.fromkeys(named))])
        table = found.complete() if isinstance(found, MixedTable) else Counts(found)
    at = [table.position(name) for name in named]
    if len(set(at)) < len(at):
        raise VariableError(f"a, b and given name each column once, got {a!r}, {b!r}, {given!r}")
    return choose_tester(table, test, random_state=random_state)(at[0], at[1], tuple(at[2:]))


def choose_tester(table: Counts | MixedTable, kind: str, *, random_state: int = 0) -> IndependenceTester:
    """The test on columns by position; a text that says what to use where it does not fit the columns."""
    if kind not in ("auto", *TESTS):
        raise OptionError(f"no such test: {kind!r}. There are auto, {', '.join(TESTS)}.{did_you_mean(kind, TESTS)}")
    test = kind
    if kind == "auto":
        test = "g2" if isinstance(table, Counts) else "fisher_z" if all(table.real) else "cg"
    if test in ("hsic", "kci"):
        return KernelTester(_points(table), test, random_state)
    if isinstance(table, Counts):
        if test in ("g2", "x2"):
            return lambda a, b, given: independence_of(table, a, b, given, test)
        raise OptionError(f"test {test!r} needs real-valued columns, and all are discrete: use 'g2' or 'x2'")
    if test in ("g2", "x2"):
        real = table.names[table.real.index(True)]
        raise OptionError(f"test {test!r} is for discrete columns, and {real} is real-valued: use 'fisher_z' or 'cg'")
    if test == "fisher_z":
        if not all(table.real):
            name = table.names[table.real.index(False)]
            raise OptionError(f"test 'fisher_z' is for real columns, and {name} is discrete: use 'cg'")
        return FisherTester(table)
    return LikelihoodTester(table)


def independence_of(counts: Counts, a: int, b: int, given: tuple[int, ...], test: str) -> IndependenceTest:
    """G² or χ² on columns by position."""
    table = np.asarray(counts.table((*given, a, b)), dtype=np.float64)
    return _of_table(table.reshape(-1, counts.sizes[a], counts.sizes[b]), test)


def _of_table(table: FloatArray, test: str) -> IndependenceTest:
    from scipy.special import xlogy

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
    return _chi_squared(max(statistic, 0.0), dof)


def _chi_squared(statistic: float, dof: int) -> IndependenceTest:
    from scipy.special import chdtrc

    return IndependenceTest(statistic, dof, float(chdtrc(dof, statistic)) if dof > 0 else 1.0, dof > 0)


class FisherTester:
    """Partial correlations: z = √(n − |given| − 3) artanh r is about standard normal under independence."""

    def __init__(self, table: MixedTable) -> None:
        from gramgraph.learn.gaussian_scores import MixedScores

        S = MixedScores(table).moments
        spread = np.sqrt(np.maximum(np.diag(S), 1e-300))
        self._correlation = S / np.outer(spread, spread)
        self._n = table.total

    def __call__(self, a: int, b: int, given: tuple[int, ...]) -> IndependenceTest:
        from scipy.special import ndtr

        at = [a, b, *given]
        P = np.linalg.pinv(self._correlation[np.ix_(at, at)], hermitian=True)
        r = -P[0, 1] / math.sqrt(max(P[0, 0] * P[1, 1], 1e-300))
        free = self._n - len(given) - 3
        if free <= 0:
            return IndependenceTest(0.0, 0, 1.0, False)
        z = math.sqrt(free) * math.atanh(min(max(r, -1 + 1e-15), 1 - 1e-15))
        return IndependenceTest(z, 0, float(2.0 * ndtr(-abs(z))))


class LikelihoodTester:
    """2 × the gain in log-likelihood from one column for the other, with both kinds of columns: χ² under independence.

    A real column is a linear regression in every combination of the discrete ones (`MixedScores`). Of two discrete
    columns given real ones, the first is a logistic regression on what is given, without and with the other.
    """

    def __init__(self, table: MixedTable) -> None:
        from gramgraph.learn.gaussian_scores import MixedScores

        self._table = table
        self._scores = MixedScores(table, "log_likelihood")

    def __call__(self, a: int, b: int, given: tuple[int, ...]) -> IndependenceTest:
        real = self._table.real
        labelled = tuple(v for v in given if not real[v])
        m = len(given) - len(labelled)
        if not real[a] and not real[b]:
            if not m:
                return self._counts(a, b, labelled)
            gain = self._logistic(a, (*given, b)) - self._logistic(a, given)
            dof = (self._seen((a,)) - 1) * (self._seen((b,)) - 1)
        else:
            a, b = (a, b) if real[a] else (b, a)
            gain = self._scores.fit(a, tuple(sorted((*given, b))))[0] - self._scores.fit(a, tuple(sorted(given)))[0]
            if real[b]:
                dof = self._seen(labelled)
            else:
                dof = (self._seen((b, *labelled)) - self._seen(labelled)) * (m + 2)
        return _chi_squared(max(2.0 * gain, 0.0), dof) if math.isfinite(gain) else IndependenceTest(0.0, 0, 1.0, False)

    def _counts(self, a: int, b: int, given: tuple[int, ...]) -> IndependenceTest:
        which, cells = self._table.configurations([*given, a, b])
        sizes = [self._table.variables[v].size for v in (a, b)]
        return _of_table(np.bincount(which, self._table.weights, cells).astype(np.float64).reshape(-1, *sizes), "g2")

    def _seen(self, at: tuple[int, ...]) -> int:
        which, cells = self._table.configurations(at)
        return int(np.count_nonzero(np.bincount(which, minlength=cells)))

    def _logistic(self, child: int, given: tuple[int, ...]) -> float:
        """Log-likelihood of a discrete column under logistic regression, with a ridge too faint to matter."""
        from sklearn.linear_model import LogisticRegression

        y, w = self._table.columns[child], self._table.weights
        blocks = []
        for v in given:
            x = self._table.columns[v]
            if self._table.real[v]:
                blocks.append(((x - x.mean()) / (x.std() or 1.0))[:, np.newaxis])
            else:
                blocks.append((x[:, np.newaxis] == np.unique(x)[1:]).astype(np.float64))
        X = np.hstack(blocks)
        if not X.shape[1] or len(np.unique(y)) < 2:
            return 0.0
        model = LogisticRegression(C=1e5, max_iter=1000, tol=1e-7).fit(X, y, w)
        log_p = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        return float(log_p.sum() if w is None else w @ log_p)


class KernelTester:
    """HSIC for pairs, products of kernel regression residuals where something is given."""

    def __init__(self, points: Callable[[int], tuple[Any, bool]], test: str, random_state: int) -> None:
        self._points, self._gamma, self._seed = points, test == "kci", random_state

    def __call__(self, a: int, b: int, given: tuple[int, ...]) -> IndependenceTest:
        from gramgraph.embeddings import hsic_test, kci_test

        (x, real_x), (y, real_y) = self._points(a), self._points(b)
        domains = {"domain_x": "real" if real_x else "category", "domain_y": "real" if real_y else "category"}
        if not given:
            found = hsic_test(
                x, y, method="gamma" if self._gamma else "permutation", random_state=self._seed, **domains
            )
        else:
            Z, domain = self._given(given)
            found = kci_test(
                x, y, Z, domain_z=domain, method="gamma" if self._gamma else "multiplier", random_state=self._seed,
                **domains,
            )  # fmt: skip
        return IndependenceTest(float(found.statistic), 0, float(found.p_value))

    def _given(self, given: tuple[int, ...]) -> tuple[Any, str]:
        """One column as it is; several as a vector, with 0 and 1 for each state of the discrete ones."""
        parts = [self._points(v) for v in given]
        if len(parts) == 1:
            return parts[0][0], "real" if parts[0][1] else "category"
        blocks = []
        for x, real in parts:
            if real:
                blocks.append(((x - x.mean()) / (x.std() or 1.0))[:, np.newaxis])
            else:
                blocks.append((x[:, np.newaxis] == np.unique(x)).astype(np.float64))
        return np.hstack(blocks), "vector"


def _points(table: Counts | MixedTable) -> Callable[[int], tuple[Any, bool]]:
    """Values of a column, and whether they are numbers."""
    if isinstance(table, MixedTable):
        return lambda v: (table.columns[v], table.real[v])
    coded: CodedTable | None = table.coded
    if coded is None:
        raise OptionError("kernel tests need rows in memory, not a file or stream: read it into a frame first")
    return lambda v: (coded.columns[v], False)
