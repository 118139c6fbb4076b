"""All-Gaussian models through their joint covariance, or its inverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph.compile.budget import check_budget
from gramgraph.compile.plan import Plan, plan_of
from gramgraph.engines.base import PLAIN, Drawn, IllConditioned, Run
from gramgraph.engines.gaussian.engine import GaussianEngine, Posterior
from gramgraph.engines.gaussian.lower import joint_moments
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.answers import RealAnswer
    from gramgraph.models.base import GraphicalModel

#: Of a covariance scaled to a unit diagonal, directions with less than this share of variance count as fixed.
SINGULAR = 1e-13
#: Below this the covariance of what was observed has lost half its digits: a strong tree is then more accurate.
ILL_CONDITIONED = 1e-8
_WORTH_KEEPING = 8  # cases of one pattern from which on its solution is kept with the model


class Observed:
    """Σ_EE of the observed components, ready to be solved with; singular matrices are handled by their eigenvectors."""

    def __init__(self, S: FloatArray) -> None:
        k = len(S)
        scale = np.sqrt(np.maximum(np.diagonal(S), 0.0))
        self.scale = np.where(scale > 0, scale, 1.0)
        R = S / np.outer(self.scale, self.scale)
        self.fixed: FloatArray | None = None  # directions without variance
        self.pivot = 0.0  # share of the variance of some component that the others leave open, at least
        try:
            L = np.linalg.cholesky(R) if k else np.zeros((0, 0))
            self.pivot = float(np.diagonal(L).min()) ** 2 if k else 1.0
            if self.pivot < SINGULAR:
                raise np.linalg.LinAlgError
            from scipy.linalg import solve_triangular

            self.half = solve_triangular(L, np.eye(k), lower=True, check_finite=False) if k else L
            self.log_det = 2.0 * float(np.log(np.diagonal(L)).sum() + np.log(self.scale).sum())
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(R)
            live = values > SINGULAR * max(float(values.max()), SINGULAR)
            self.half = (vectors[:, live] / np.sqrt(values[live])).T
            self.fixed = vectors[:, ~live].T
            self.log_det = float(np.log(values[live]).sum()) + 2.0 * float(np.log(self.scale).sum())

    def whiten(self, off: FloatArray) -> FloatArray:
        """(cases, k) deviations as independent unit normals."""
        return np.asarray((off / self.scale) @ self.half.T)

    def whiten_columns(self, C: FloatArray) -> FloatArray:
        """The same for a matrix with a row an observed component."""
        return np.asarray(self.half @ (C / self.scale[:, None]))

    def log_density(self, off: FloatArray, z: FloatArray) -> FloatArray:
        """log N(off; 0, Σ_EE); on the support where Σ_EE is singular, −inf off it."""
        out = -0.5 * ((z**2).sum(axis=1) + self.log_det + z.shape[1] * LOG_2PI)
        if self.fixed is not None and len(self.fixed):
            astray = np.abs((off / self.scale) @ self.fixed.T).max(axis=1)
            size = np.abs(off / self.scale).max(axis=1, initial=0.0)
            out = np.where(astray <= 1e-8 * (1.0 + size), out, -np.inf)
        return np.asarray(out)


#: A gain with at least so many cells is applied block by block, where that takes at most this share of the work.
BLOCK_CELLS = 256
BLOCK_SHARE = 0.7

#: Ends of the blocks' rows, wanted components; ends of their columns, observed components; numbers.
Blocks = tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]


@dataclass(frozen=True, eq=False)
class _Solved:
    """What all cases with the same observed components share: means are `mu + deviations @ gain`."""

    gain: FloatArray  # (observed, wanted)
    var: FloatArray  # (wanted,)
    blocks: list[FloatArray]
    log_density: Callable[[FloatArray], FloatArray]
    sure: bool  # whether no evidence can be impossible
    #: What cases add to, where the prior means of the observed are so small (a thousand standard deviations) that
    #: nothing is lost without centering each case.
    start: FloatArray | None = None
    parts: Blocks | None = None  # the gain, where much of it is zero

    @cached_property
    def gain_across(self) -> FloatArray:
        """The gain with a row a wanted component: means then lie together, case by case."""
        return np.ascontiguousarray(self.gain.T)

    @cached_property
    def with_start(self) -> FloatArray:
        """The gain, and the start as its last column."""
        assert self.start is not None
        return np.column_stack([self.gain_across, self.start])

    @property
    def cells(self) -> float:
        """Numbers that it holds, roughly."""
        return float(2 * self.gain.size + sum(block.size for block in self.blocks) + len(self.gain) ** 2)


def _blocks_of(gain: FloatArray, variance: FloatArray, seen: IntArray, want: IntArray) -> Blocks | None:
    """The gain as dense blocks, where the graph separates many pairs: hidden variables that hang together see the same
    observed ones. None where one dense product is as quick. Left out is what rounding would lose."""
    if gain.size < BLOCK_CELLS:
        return None
    kept = np.abs(gain.T) * np.sqrt(variance[seen]) > 1e-15 * np.sqrt(variance[want])[:, None]
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(np.packbits(kept, axis=1)):
        groups.setdefault(key.tobytes(), []).append(row)
    members = list(groups.values())
    sources = [np.flatnonzero(kept[rows[0]]) for rows in members]
    work = sum(len(rows) * len(at) * (1 if len(rows) >= 4 else 3) for rows, at in zip(members, sources, strict=True))
    if work > BLOCK_SHARE * gain.size:
        return None
    pairs = zip(members, sources, strict=True)
    return (
        np.cumsum([0, *map(len, members)]),
        np.concatenate(members),
        np.cumsum([0, *map(len, sources)]),
        np.concatenate(sources),
        np.concatenate([gain.T[np.asarray(rows)[:, None], at].ravel() for rows, at in pairs]),
    )


class DenseGaussian(GaussianEngine):
    """Posterior means and variances from the joint covariance or its inverse, whichever has the smaller block to
    factorize: Σ_EE of the observed components, or P_UU of the others.

    O(n²) memory, made once per model; O(min(|E|, |U|)³ + n min²) for each set of observed variables, and a matrix
    product for all its cases. Works for degenerate distributions too (through Σ_EE).

    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> answer = net.query("x", {"y": 2.0}, engine="dense")
    >>> round(answer["x"].mean(), 6), answer.exact
    (0.8, True)
    """

    name = "dense"
    exact = True

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict  # whether to refuse (`IllConditioned`) what the strong tree does more accurately

    def plan(self, model: GraphicalModel, question: Question) -> Plan:
        """One covariance matrix of all components."""
        size = layout_of(model).size
        return plan_of(self, size, size * size, size)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs of all cases, if the joint covariance fits into the memory that the run may take."""
        n = layout_of(model).size
        check_budget(24.0 * n * n, run.memory, model.variables, float(n) * n)
        return super().answer(model, question, run)

    def posterior(
        self, model: GraphicalModel, seen: IntArray, X: FloatArray, want: IntArray, blocks: list[IntArray]
    ) -> Posterior:
        """Moments of the components `want`, covariances of the sets `blocks`, log p(e) of every case."""
        mu = joint_moments(model)[0]
        key = ("solved", self.strict, seen.tobytes(), want.tobytes(), tuple(at.tobytes() for at in blocks))
        found: _Solved | None = model.plans.get(key)
        if found is None:
            found = self._solve(model, seen, want, blocks)
            mu, S, _ = joint_moments(model)
            if (mu[seen] ** 2 <= 1e6 * np.diagonal(S)[seen]).all():
                start = mu[want] - mu[seen] @ found.gain
                found = replace(found, start=start, parts=_blocks_of(found.gain, np.diagonal(S), seen, want))
            if len(X) >= _WORTH_KEEPING:
                from gramgraph.compile.cache import remember

                remember(model, key, found, cells=found.cells)
        made, center = found, mu[seen]
        return Posterior(
            lambda: _means(made, mu, seen, want, X),
            made.var,
            made.blocks,
            lambda: made.log_density(X - center),
            sure=made.sure,
            again=True,
        )

    def _solve(self, model: GraphicalModel, seen: IntArray, want: IntArray, blocks: list[IntArray]) -> _Solved:
        from gramgraph.engines.gaussian.lower import has_noise, joint_precision

        mu, S, log_z = joint_moments(model)
        inverse = joint_precision(model) if len(mu) // 2 < len(seen) < len(mu) else None
        if inverse is not None:
            return _through_precision(*inverse, log_z, seen, want, blocks)
        found, pivot = _through_covariance(S, log_z, seen, want, blocks)
        if self.strict and pivot < ILL_CONDITIONED and hasattr(model, "conditionals") and has_noise(model):
            raise IllConditioned
        return found

    def rows(self, model: GraphicalModel, columns: IntArray, X: FloatArray) -> Any:
        """(means, variances, log p(e)) of all components, row by row in compiled code: for tables in which nearly
        every row has gaps of its own, and not many. None where the model has no precision matrix."""
        from gramgraph.engines.gaussian.lower import joint_precision

        inverse = joint_precision(model)
        if inverse is None:
            return None
        from gramgraph._numerics.gaussian.rows import condition_rows

        mu, _, log_z = joint_moments(model)
        full = np.full((len(X), len(mu)), np.nan)
        full[:, columns] = X - mu[columns]
        mean, var, log_p = np.empty_like(full), np.empty_like(full), np.empty(len(X))
        condition_rows(*inverse, full, mean, var, log_p)
        mean += mu
        mean[:, columns] = np.where(np.isnan(X), mean[:, columns], X)
        return mean, var, log_p + log_z

    def draw(self, model: GraphicalModel, question: Question, n: int, run: Run) -> Drawn:
        """n draws of all components given one case."""
        seen, x = question.columns, question.X[0]
        size = len(joint_moments(model)[0])
        hidden = np.ones(size, bool)
        hidden[seen] = False
        free = np.flatnonzero(hidden)
        found = self.posterior(model, seen, x[None], free, [free])
        out = np.empty((n, size))
        out[:, seen] = x
        out[:, free] = found.mean[0] + run.generator.standard_normal((n, len(free))) @ symmetric_root(found.blocks[0])
        return Drawn(np.zeros((n, 0), np.int64), float(found.log_p[0]), out)


def _means(made: _Solved, mu: FloatArray, seen: IntArray, want: IntArray, X: FloatArray) -> FloatArray:
    """(cases, wanted) posterior means, of which those of a component lie together."""
    if made.start is None:
        mean = made.gain_across @ (X - mu[seen]).T
        mean += mu[want][:, None]
    elif made.parts is not None and len(X) >= _WORTH_KEEPING:
        from gramgraph._numerics.gaussian.rows import block_affine

        flat = np.empty(len(want) * len(X))
        block_affine(*made.parts, made.start, np.ascontiguousarray(X.T).reshape(-1), flat)
        mean = flat.reshape(len(want), len(X))
    elif len(seen) >= len(want):
        mean = made.gain_across @ X.T
        mean += made.start[:, None]
    else:  # the start rides along as one more column: the cases are the smaller thing to write
        longer = np.empty((len(seen) + 1, len(X)))
        longer[:-1], longer[-1] = X.T, 1.0
        mean = made.with_start @ longer
    return np.asarray(mean.T)


def _through_covariance(
    S: FloatArray, log_z: float, seen: IntArray, want: IntArray, blocks: list[IntArray]
) -> tuple[_Solved, float]:
    """x_Q | x_E by a Cholesky factor of Σ_EE, and its smallest pivot."""
    observed = Observed(S[np.ix_(seen, seen)])
    A = observed.whiten_columns(S[np.ix_(seen, want)])
    gain = (observed.half.T @ A) / observed.scale[:, None]
    diagonal = np.diagonal(S)[want]
    var = np.maximum(diagonal - np.einsum("ij,ij->j", A, A), 0.0)
    var[var <= 1e-15 * diagonal] = 0.0
    made = []
    for at in blocks:
        B = observed.whiten_columns(S[np.ix_(seen, at)])
        cov = S[np.ix_(at, at)] - B.T @ B
        known = np.isin(at, seen)
        cov[known], cov[:, known] = 0.0, 0.0
        made.append(cov)

    def log_density(off: FloatArray) -> FloatArray:
        return log_z + observed.log_density(off, observed.whiten(off))

    return _Solved(gain, var, made, log_density, observed.fixed is None), observed.pivot


def _through_precision(
    P: FloatArray, log_det: float, log_z: float, seen: IntArray, want: IntArray, blocks: list[IntArray]
) -> _Solved:
    """x_U | x_E by a Cholesky factor of P_UU: cheaper where few components are not observed."""
    from scipy.linalg.lapack import dpotrf, dpotri

    hidden = np.ones(len(P), bool)
    hidden[seen] = False
    free = np.flatnonzero(hidden)
    place = np.full(len(P), -1, np.int64)
    place[free] = np.arange(len(free))
    L, _ = dpotrf(P[free[:, None], free], lower=1)
    lower, _ = dpotri(L, lower=1)
    C = lower + lower.T  # the upper triangle holds zeros
    C[np.diag_indices(len(C))] *= 0.5
    P_eu = P[seen[:, None], free]
    gain = -P_eu @ C[:, place[want]]
    rest = log_det - 2.0 * float(np.log(np.diagonal(L)).sum())  # log |P| − log |P_UU| = −log |Σ_EE|
    made = []
    for at in blocks:
        cov = np.zeros((len(at), len(at)))
        inside = np.flatnonzero(place[at] >= 0)
        where = place[at[inside]]
        cov[np.ix_(inside, inside)] = C[np.ix_(where, where)]
        made.append(cov)

    def log_density(off: FloatArray) -> FloatArray:
        inner = off @ P_eu
        quadratic = np.einsum("ij,ij->i", off @ P[np.ix_(seen, seen)], off) - np.einsum("ij,ij->i", inner @ C, inner)
        return np.asarray(log_z - 0.5 * (quadratic - rest + len(seen) * LOG_2PI))

    return _Solved(gain, np.diagonal(C)[place[want]], made, log_density, True)
