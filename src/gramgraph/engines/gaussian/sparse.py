"""All-Gaussian models by a sparse Cholesky factor: time and memory follow the fill-in, not n²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.engines.base import Drawn, Run
from gramgraph.engines.gaussian.engine import GaussianEngine, Posterior
from gramgraph.engines.gaussian.lower import sparse_precision
from gramgraph.exceptions import ModelError
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["Factorized", "SparseGaussian"]


@dataclass(frozen=True, eq=False)
class Factorized:
    """P = L D Lᵀ of a sparse positive definite matrix, in an order with little fill-in.

    >>> from scipy.sparse import csc_array
    >>> P = csc_array(np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]))
    >>> made = Factorized.of(P)
    >>> made.solve(np.ones((3, 1))).ravel().round(6).tolist(), made.variances().round(6).tolist()
    ([1.5, 2.0, 1.5], [0.75, 1.0, 0.75])
    """

    order: IntArray
    l_ptr: IntArray
    l_idx: IntArray
    l_val: FloatArray
    D: FloatArray

    @classmethod
    def of(cls, P: Any) -> Factorized:
        """The factor; a `ModelError` for a matrix that is not positive definite."""
        from scipy.sparse import csc_array, triu

        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        n = P.shape[0]
        if not n:
            none = np.zeros(0, np.int64)
            return cls(none, np.zeros(1, np.int64), none, np.zeros(0), np.zeros(0))
        pattern = csc_array(P, copy=True)
        columns = np.repeat(np.arange(n), np.diff(pattern.indptr))
        off = pattern.indices != columns
        ptr = np.concatenate([[0], np.cumsum(np.bincount(columns[off], minlength=n))]).astype(np.int64)
        order = kernels.minimum_degree(n, ptr, pattern.indices[off].astype(np.int64))
        upper = csc_array(triu(pattern[order][:, order], format="csc"))
        u_ptr, u_idx = upper.indptr.astype(np.int64), upper.indices.astype(np.int64)
        parent, l_ptr = kernels.symbolic(n, u_ptr, u_idx)
        l_idx, l_val, D, bad = kernels.factorize(n, u_ptr, u_idx, upper.data.astype(np.float64), parent, l_ptr)
        if bad >= 0:
            raise ModelError(
                f"the precision matrix is not positive definite: pivot {D[bad]:.3g} at component {int(order[bad])}"
            )
        return cls(order, l_ptr, l_idx, l_val, D)

    @property
    def log_det(self) -> float:
        """log |P|."""
        return float(np.log(self.D).sum())

    def solve(self, B: FloatArray) -> FloatArray:
        """P⁻¹ B for (n, m) right-hand sides."""
        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        out = np.empty_like(B)
        moved = np.ascontiguousarray(B[self.order])
        kernels.solve_in_place(len(self.D), self.l_ptr, self.l_idx, self.l_val, self.D, moved)
        out[self.order] = moved
        return out

    def variances(self) -> FloatArray:
        """The diagonal of P⁻¹, by the recursion for entries on the pattern of L."""
        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        diagonal, _ = kernels.selected_inverse(len(self.D), self.l_ptr, self.l_idx, self.l_val, self.D)
        out = np.empty_like(diagonal)
        out[self.order] = diagonal
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n draws from N(0, P⁻¹), one per row."""
        from gramgraph._numerics.gaussian import sparse_cholesky as kernels

        z = rng.standard_normal((len(self.D), n))
        kernels.solve_upper_in_place(len(self.D), self.l_ptr, self.l_idx, self.l_val, self.D, z)
        out = np.empty_like(z)
        out[self.order] = z
        return out.T

    @property
    def bytes(self) -> int:
        """Memory of the factor."""
        return self.l_idx.nbytes + self.l_val.nbytes + self.D.nbytes


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
