"""Scores of families with real-valued variables: linear Gaussian, conditional Gaussian, and BGe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.exceptions import OptionError, did_you_mean
from gramgraph.learn.linear import FEW, FLOOR, GROUP_FLOOR, common_spread
from gramgraph.learn.mixed_table import MixedTable
from gramgraph.learn.ties import largest_terms
from gramgraph.typing import FloatArray, IntArray

#: Scores for tables with real columns; "bge" when all columns are real.
REAL_SCORES = ("bic", "aic", "log_likelihood", "bge")
#: A family with more parameters is not considered.
MAX_PARAMETERS = 100_000
LOG_2PI = math.log(2.0 * math.pi)


class MixedScores:
    """Scores of families with real-valued variables, each computed once.

    A real child is Gaussian with a mean that is linear in its real parents, with its own coefficients and variance in
    every combination of its discrete parents; a discrete child has discrete parents only. The likelihood is that of the
    conditional that `BayesianNetwork.fit` returns: the largest one, but for groups of few rows or without spread, of
    which `gramgraph.learn.linear` tells. bic takes off ½ log n, aic 1, for each parameter. "bge" is the log marginal
    likelihood under a normal–Wishart prior with mean at the sample mean (weight 1), d + 2 degrees of freedom for d
    columns, and parameter matrix I / 2; Markov equivalent graphs have equal scores. Sources: D. Geiger, D. Heckerman,
    Ann. Statist. 2002; J. Kuipers, G. Moffa, D. Heckerman, Ann. Statist. 2014.
    Cost of a family: O(m³) for m parents when all columns are real, else one pass over the rows.

    >>> import numpy as np, pandas as pd
    >>> from gramgraph.learn.mixed_table import read_table
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> scores = MixedScores(read_table(pd.DataFrame({"x": x, "y": 2 * x + 1.5, "z": x[::-1]})), "bge")
    >>> scores.family(1, (0,)) > scores.family(1, ()) > scores.family(1, (2,))
    True
    """

    def __init__(self, table: MixedTable, score: str = "bic") -> None:
        if score not in REAL_SCORES:
            raise OptionError(
                f"no such score for real-valued columns: {score!r}. There are {', '.join(REAL_SCORES)}."
                f"{did_you_mean(score, REAL_SCORES)}"
            )
        if score == "bge" and not all(table.real):
            name = table.names[table.real.index(False)]
            raise OptionError(f"score 'bge' is for real columns, and {name} is discrete: use 'bic' or 'aic'")
        self.table, self.name = table, score
        self._real = np.array(table.real)
        self._w = np.ones(len(table)) if table.weights is None else table.weights
        self._n = float(self._w.sum())
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}
        self._fits: dict[tuple[int, tuple[int, ...]], tuple[float, int]] = {}

    @cached_property
    def _columns(self) -> list[FloatArray]:
        """Columns in units of their standard deviation around their mean (codes as they are)."""
        out = []
        for v, column in enumerate(self.table.columns):
            out.append((column - self._center[v]) / self._scale[v] if self._real[v] else column)
        return out

    @cached_property
    def _center(self) -> FloatArray:
        return np.array(
            [self._w @ c / self._n if real else 0.0 for c, real in zip(self.table.columns, self._real, strict=True)]
        )

    @cached_property
    def _scale(self) -> FloatArray:
        out = np.ones(len(self._real))
        for v in np.flatnonzero(self._real):
            spread = math.sqrt(float(self._w @ (self.table.columns[v] - self._center[v]) ** 2) / self._n)
            out[v] = spread if spread > 1e-12 * abs(self._center[v]) else abs(self._center[v]) or 1.0
        return out

    @cached_property
    def moments(self) -> FloatArray:
        """Σ w x xᵀ of the standardized real columns, (variables, variables); zero where a column is discrete."""
        at = np.flatnonzero(self._real)
        X = np.array([self._columns[v] for v in at])
        out = np.zeros((len(self._real), len(self._real)))
        out[np.ix_(at, at)] = (X * self._w) @ X.T
        return out

    @cached_property
    def size(self) -> float:
        """Of the largest terms of a score: n logarithms of counts and of units, of all columns in a determinant."""
        terms = largest_terms(self._n) + self._n * float(np.abs(np.log(self._scale)).max(initial=0.0))
        return terms * len(self._real) if self.name == "bge" else terms

    def family(self, child: int, parents: Sequence[int]) -> float:
        """The score of a child with these parents, -inf where the family is none of its kind."""
        key = (child, tuple(sorted(parents)))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compute(*key)
        return found

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a graph: the sum over its families."""
        return math.fsum(self.family(child, found) for child, found in enumerate(parents))

    def closed(self, child: int, parents: Sequence[int], best: float) -> bool:
        """Whether no set with more parents can beat `best`: none fits better than all real columns together do."""
        if self.name not in ("bic", "aic") or not self._real.all():
            return False
        others = tuple(v for v in range(len(self._real)) if v != child)
        return best >= self.fit(child, others)[0] - self._step * (len(parents) + 3)

    def _compute(self, child: int, parents: tuple[int, ...]) -> float:
        if not self._real[child] and self._real[list(parents)].any():
            return -math.inf
        if self.name == "bge":
            return self._bge((*parents, child)) - self._bge(parents)
        fit, parameters = self.fit(child, parents)
        return fit - self._step * parameters

    @property
    def _step(self) -> float:
        return {"bic": 0.5 * math.log(max(self._n, 1.0)), "aic": 1.0}.get(self.name, 0.0)

    def fit(self, child: int, parents: tuple[int, ...]) -> tuple[float, int]:
        """(largest log-likelihood, number of parameters) of a family; (-inf, 0) where it would be too large."""
        found = self._fits.get((child, parents))
        if found is None:
            found = self._fits[child, parents] = self._fit(child, parents)
        return found

    def _fit(self, child: int, parents: tuple[int, ...]) -> tuple[float, int]:
        labelled = [p for p in parents if not self._real[p]]
        real = [p for p in parents if self._real[p]]
        q = math.prod(self.table.variables[p].size for p in labelled)
        if not self._real[child]:
            r = self.table.variables[child].size
            if q * r > MAX_PARAMETERS:
                return -math.inf, 0
            from gramgraph._numerics.counts.scores import log_likelihood

            which, cells = self.table.configurations([*labelled, child])
            counts = np.bincount(which, self._w, cells).reshape(q, r)
            return float(log_likelihood(counts)), q * (r - 1)
        if q * (len(real) + 2) > MAX_PARAMETERS:
            return -math.inf, 0
        levels = self._n * math.log(self._scale[child])
        if not labelled:
            at = [*real, child]
            spread = _residual(self.moments[np.ix_(at, at)])
            return _log_density(self._n, spread) - levels, len(real) + 2
        return self._conditional(child, labelled, real) - levels, q * (len(real) + 2)

    def _conditional(self, child: int, labelled: list[int], real: list[int]) -> float:
        """Log-likelihood with own coefficients in every combination of the discrete parents."""
        which, q = self.table.configurations(labelled)
        n: FloatArray = np.bincount(which, self._w, q).astype(np.float64)
        Z = np.array([self._columns[v] for v in (*real, child)])
        d = len(Z)
        mean = np.array([np.bincount(which, self._w * z, q) for z in Z]) / np.where(n > 0, n, 1.0)
        Z = Z - mean[:, which]
        S = np.empty((q, d, d))
        for i in range(d):
            for j in range(i + 1):
                S[:, i, j] = S[:, j, i] = np.bincount(which, self._w * Z[i] * Z[j], q)
        counted = self._w > 0
        rows = np.bincount(which if counted.all() else which[counted], minlength=q)
        common = self._common_spread([*real, child], S.sum(axis=0), rows)
        floor = GROUP_FLOOR * max(_residual(common), FLOOR) + FLOOR
        enough = rows >= d + FEW
        few = (rows > 0) & ~enough
        squares = _residuals(S[enough])
        total = _log_likelihood(n[enough], squares, np.maximum(squares / n[enough], floor))
        if few.any():
            more = (d + FEW - rows[few]) * (self._n / rows.sum())
            total += _filled(n[few], S[few], more, common, floor)
        return total

    def _common_spread(self, at: list[int], within: FloatArray, rows: IntArray) -> FloatArray:
        """Spread around the means of groups, as `Reference.of` takes it, in units of the columns."""
        n = int(rows.sum())
        C = self.moments[np.ix_(at, at)] / self._n
        if n <= len(at):
            C = np.diag(np.diag(C))
        return common_spread(C, n, within * (n / self._n), n - int(np.count_nonzero(rows)) * len(at))

    @cached_property
    def _bge_matrix(self) -> FloatArray:
        """T + S_N in the units of the data (the prior's mean is the sample mean, so that no further term is left)."""
        d = len(self._real)
        S = self.moments * np.outer(self._scale, self._scale)
        return S + 0.5 * np.eye(d)  # α_μ (α_w − d − 1) / (α_μ + 1) with α_μ = 1, α_w = d + 2

    def _bge(self, at: tuple[int, ...]) -> float:
        """log p of the columns `at` together."""
        from scipy.special import multigammaln

        k, d = len(at), len(self._real)
        if not k:
            return 0.0
        prior = 2.0 + k  # α_w − d + k
        after = prior + self._n
        sign, log_det = np.linalg.slogdet(self._bge_matrix[np.ix_(at, at)])
        if sign <= 0 or d < k:
            return -math.inf
        return float(
            -0.5 * k * self._n * math.log(math.pi)
            - 0.5 * k * math.log(self._n + 1.0)
            + multigammaln(0.5 * after, k)
            - multigammaln(0.5 * prior, k)
            + 0.5 * prior * k * math.log(0.5)
            - 0.5 * after * log_det
        )


def _filled(n: FloatArray, S: FloatArray, more: FloatArray, common: FloatArray, floor: float) -> float:
    """Log-likelihood of groups whose coefficients and variances are those of their rows and of `more` common ones."""
    T = S + more[:, None, None] * common
    V = np.array([np.append(-_slopes(one), 1.0) if len(one) > 1 else np.ones(1) for one in T])
    spread = np.maximum(np.einsum("qi,qij,qj->q", V, T, V) / (n + more), floor)
    return _log_likelihood(n, _clean(np.einsum("qi,qij,qj->q", V, S, V), S[:, -1, -1]), spread)


def _slopes(S: FloatArray) -> FloatArray:
    """Coefficients of the last variable on the others, from second moments (collinear ones share by a faint ridge)."""
    A = S[:-1, :-1]
    try:
        L = np.linalg.cholesky(A)
        sound = bool((np.diag(L) ** 2 > FLOOR * np.diag(A)).all())
    except np.linalg.LinAlgError:
        sound = False
    if not sound:
        A = A + FLOOR * max(float(np.trace(A)), 1e-300) * np.eye(len(A))
    return np.asarray(np.linalg.solve(A, S[:-1, -1]), np.float64)


def _residual(S: FloatArray) -> float:
    """Σ of squares that the others leave of the last variable."""
    if len(S) == 1:
        return float(S[0, 0])
    return float(_clean(S[-1, -1] - S[:-1, -1] @ _slopes(S), S[-1, -1]))


def _residuals(S: FloatArray) -> FloatArray:
    """`_residual` of many matrices."""
    if S.shape[1] == 1:
        return S[:, 0, 0]
    try:
        L = np.linalg.cholesky(S[:, :-1, :-1])
        own = np.diagonal(S, axis1=1, axis2=2)[:, :-1]
        if (np.diagonal(L, axis1=1, axis2=2) ** 2 > FLOOR * own).all():
            x = np.linalg.solve(L, S[:, :-1, -1:])[..., 0]
            return _clean(S[:, -1, -1] - (x**2).sum(axis=1), S[:, -1, -1])
    except np.linalg.LinAlgError:
        pass
    return np.array([_residual(one) for one in S])


def _clean(left: Any, whole: Any) -> FloatArray:
    """What is left of sums of squares, without what rounding may have left."""
    return np.where(left > 1e-14 * whole, left, 0.0)


def _log_likelihood(n: FloatArray, squares: FloatArray, spread: FloatArray) -> float:
    """Of groups of n residuals with these sums of squares under these variances."""
    return float(-0.5 * (n * (LOG_2PI + np.log(spread)) + squares / spread).sum())


def _log_density(n: float, squares: float) -> float:
    """Largest log-likelihood of n Gaussian residuals with this sum of squares, in units of their column."""
    spread = max(squares / n, FLOOR)
    return -0.5 * (n * (LOG_2PI + math.log(spread)) + squares / spread)
