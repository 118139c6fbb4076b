"""All-Gaussian models by a sparse Cholesky factor: time and memory follow the fill-in, not n²."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.engines.base import Drawn, Run
from gramgraph.engines.gaussian.engine import GaussianEngine, Posterior
from gramgraph.engines.gaussian.factorized import Factorized
from gramgraph.engines.gaussian.lower import sparse_precision
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


class SparseGaussian(GaussianEngine):
    """Posterior means and variances of all-Gaussian models through P_UU = L D Lᵀ (U: what is not observed).

    Means are solutions with one right-hand side per case, variances come from Takahashi's recursion, and
    log p(e) from the determinant. One factorization serves all cases with the same observed variables.

    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> answer = net.query("x", {"y": 2.0}, engine="sparse")
    >>> round(answer["x"].mean(), 6), answer.exact
    (0.8, True)
    """

    name = "sparse"
    exact = True

    def posterior(
        self, model: GraphicalModel, seen: IntArray, X: FloatArray, want: IntArray, blocks: list[IntArray]
    ) -> Posterior:
        """Moments of the components `want`, covariances of the sets `blocks`, log p(e) of every case."""
        low, free, seen, X, impossible = self._split(model, seen, X)
        made = Factorized.of(low.P[free][:, free])
        off = X - low.mean[seen]
        cross = low.P[free][:, seen]
        shift = -np.asarray(cross @ off.T)  # (free, cases)
        moved = made.solve(shift)
        quadratic = np.einsum("ij,ji->i", off, low.P[seen][:, seen] @ off.T) - np.einsum("ij,ij->j", shift, moved)
        log_p = low.log_norm - 0.5 * quadratic - 0.5 * made.log_det + 0.5 * len(free) * LOG_2PI
        log_p = np.where(impossible, -np.inf, log_p)
        place = np.full(len(low.mean), -1, np.int64)
        place[free] = np.arange(len(free))
        variances = np.zeros(len(low.mean))
        if len(want):
            variances[free] = made.variances()
        full = np.repeat(low.mean[None], len(X), axis=0)
        full[:, free] += moved.T
        mean = full[:, want]
        return Posterior(lambda: mean, variances[want], [_block(made, place[at]) for at in blocks], lambda: log_p)

    @staticmethod
    def _split(model: GraphicalModel, seen: IntArray, X: FloatArray) -> Any:
        """Clamped components count as observed at their value, without a density of their own."""
        low = sparse_precision(model)
        impossible = np.zeros(len(X), bool)
        if len(low.clamped):
            for j in np.flatnonzero(np.isin(seen, low.clamped)):
                impossible |= X[:, j] != low.mean[seen[j]]
            more = np.setdiff1d(low.clamped, seen)
            X = np.hstack([X, np.broadcast_to(low.mean[more], (len(X), len(more)))])
            seen = np.concatenate([seen, more])
        hidden = np.ones(len(low.mean), bool)
        hidden[seen] = False
        return low, np.flatnonzero(hidden), seen, X, impossible

    def draw(self, model: GraphicalModel, question: Question, n: int, run: Run) -> Drawn:
        """n draws of all components given one case."""
        low, free, seen, X, impossible = self._split(model, question.columns, question.X)
        log_p = self.posterior(model, seen, X, np.zeros(0, np.int64), []).log_p[0]
        made = Factorized.of(low.P[free][:, free])
        shift = -np.asarray(low.P[free][:, seen] @ (X[0] - low.mean[seen]))[:, None]
        out = np.empty((n, len(low.mean)))
        out[:, seen] = X
        out[:, free] = low.mean[free] + made.solve(shift)[:, 0] + made.sample(n, run.generator)
        return Drawn(np.zeros((n, 0), np.int64), -np.inf if impossible[0] else float(log_p), out)


def _block(made: Factorized, at: IntArray) -> FloatArray:
    """Covariance of some components, zero for those that are known (-1)."""
    out = np.zeros((len(at), len(at)))
    inside = np.flatnonzero(at >= 0)
    if len(inside):
        E = np.zeros((len(made.D), len(inside)))
        E[at[inside], np.arange(len(inside))] = 1.0
        out[np.ix_(inside, inside)] = made.solve(E)[at[inside]]
    return 0.5 * (out + out.T)
