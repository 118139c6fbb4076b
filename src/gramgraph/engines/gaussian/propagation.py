"""Belief propagation on Gaussian models: messages between neighboring components, repeated until they rest."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._validation import check_positive
from gramgraph.engines.approximate import between, whole
from gramgraph.engines.base import EngineError
from gramgraph.engines.gaussian.engine import GaussianEngine, Posterior
from gramgraph.engines.gaussian.sparse import SparseGaussian
from gramgraph.exceptions import ConvergenceWarning
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

_AT_REST = 1e-8  # a residual below needs no warning, though it may be above the tolerance asked for
_HOPELESS = 1e100
_DIVERGED = 1e6  # messages this many times larger than the evidence do not come back


class GaussianBP(GaussianEngine):
    """Gaussian belief propagation on the graph of the precision matrix of what is not observed.

    A message from i to j is a precision −P_ij² / α and a shift −P_ij β / α, where α and β are what i knows from all
    its other neighbors. On a tree the result is exact. With loops, means are exact if the messages converge (they do
    for walk-summable models), variances are then approximate, and so is log p(e) (Bethe). The answer's
    `details` report iterations, residual and whether the graph is a tree. Messages that diverge are an error, those
    that do not come to rest a warning.

    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> answer = net.query("x", {"y": 2.0}, engine="bp")
    >>> round(answer["x"].mean(), 6), answer.exact
    (0.8, True)
    """

    name = "bp"
    exact = False
    options = ("max_iter", "tol", "damping")

    def __init__(self, *, max_iter: int = 2000, tol: float = 1e-13, damping: float = 0.0) -> None:
        self.max_iter, self.tol = whole("max_iter", max_iter), check_positive("tol", tol, zero=True)
        self.damping = between("damping", damping, 0.0, 1.0)

    def posterior(
        self, model: GraphicalModel, seen: IntArray, X: FloatArray, want: IntArray, blocks: list[IntArray]
    ) -> Posterior:
        """Moments of the components `want`; joint covariances of more than one component are not available."""
        if any(len(set_) > 1 for set_ in blocks):
            raise EngineError(
                "belief propagation gives beliefs of single scalar variables; ask a joint with engine='sparse'"
            )
        low, free, seen, X, impossible = SparseGaussian._split(model, seen, X)
        P = low.P[free][:, free].tocoo()
        off = X - low.mean[seen]
        shift = -np.asarray(low.P[free][:, seen] @ off.T)  # (free, cases)
        keep = (P.row != P.col) & (P.data != 0.0)
        edges = _Edges(len(free), P.row[keep], P.col[keep], P.data[keep], low.P[free][:, free].diagonal())
        state = edges.run(shift, self.max_iter, self.tol, self.damping)
        alpha, beta, report = state
        _heed(report, alpha, beta)
        place = np.full(len(low.mean), -1, np.int64)
        place[free] = np.arange(len(free))
        at = place[want]
        mean = np.repeat(low.mean[None, want], len(X), axis=0) + (beta / alpha[:, None])[at].T
        E = off @ low.P[seen][:, seen].toarray() if len(seen) else off
        log_p = low.log_norm - 0.5 * np.einsum("ij,ij->i", E, off) + edges.log_z(shift)
        log_p = np.where(impossible, -np.inf, log_p)
        made = [np.array([[1.0 / alpha[place[set_[0]]]]]) for set_ in blocks]
        return Posterior(
            lambda: mean,
            1.0 / alpha[at],
            made,
            lambda: log_p,
            report,
            exact=bool(report["tree"]) and report["residual"] <= _AT_REST,
        )


def _heed(report: dict[str, Any], alpha: FloatArray, beta: FloatArray) -> None:
    """An error where the messages grew without bound, a warning where they did not come to rest."""
    helps = "Try: engine='sparse' (exact), damping=0.5, or a larger max_iter"
    steps, residual = report["iterations"], report["residual"]
    if not np.isfinite(beta).all() or not (alpha > 0).all() or residual > _DIVERGED:
        raise EngineError(
            f"belief propagation diverged (residual {residual:.3g} after {steps} steps): this model is not "
            f"walk-summable. {helps}"
        )
    if not report["converged"] and residual > _AT_REST:
        warnings.warn(
            f"belief propagation did not converge in {steps} steps (residual {residual:.3g}): the numbers are not to "
            f"be trusted. {helps}",
            ConvergenceWarning,
            stacklevel=2,
        )


class _Edges:
    """Directed edges of the graph, sorted by where they start."""

    def __init__(self, n: int, rows: IntArray, columns: IntArray, values: FloatArray, diagonal: FloatArray) -> None:
        order = np.lexsort((columns, rows))
        self.n = n
        self.source, self.target, self.p = rows[order], columns[order], values[order]
        self.diagonal = diagonal
        keys = self.source.astype(np.int64) * n + self.target
        self.back = np.searchsorted(keys, self.target.astype(np.int64) * n + self.source)

    def run(
        self, shift: FloatArray, limit: int, tolerance: float, damping: float
    ) -> tuple[FloatArray, FloatArray, dict]:  # type: ignore[type-arg]
        """(α, β, report): what every node knows in the end."""
        m, cases = len(self.p), shift.shape[1]
        precision, message = np.zeros(m), np.zeros((m, cases))
        scale = np.abs(shift).max(initial=0.0) or 1.0
        residual, steps, converged = 0.0, 0, False
        while steps < limit:
            steps += 1
            alpha = self.diagonal + np.bincount(self.target, precision, self.n)
            beta = shift + self._gather(message)
            a = alpha[self.source] - precision[self.back]
            b = beta[self.source] - message[self.back]
            with np.errstate(divide="ignore", invalid="ignore"):
                new_precision, new_message = -(self.p**2) / a, -(self.p / a)[:, None] * b
            change = np.abs(new_precision - precision) / self.diagonal[self.target]
            moved = np.abs(new_message - message) / scale
            residual = float(max(change.max(initial=0.0), moved.max(initial=0.0)))
            precision = (1 - damping) * new_precision + damping * precision
            message = (1 - damping) * new_message + damping * message
            if not residual < _HOPELESS:  # NaN as well
                break
            if residual <= tolerance:
                converged = True
                break
        self.precision, self.message = precision, message
        alpha = self.diagonal + np.bincount(self.target, precision, self.n)
        beta = shift + self._gather(message)
        self.alpha, self.beta = alpha, beta
        report = {"converged": converged, "iterations": steps, "residual": residual, "tree": self._is_tree()}
        return alpha, beta, report

    def _gather(self, message: FloatArray) -> FloatArray:
        out = np.zeros((self.n, message.shape[1]))
        np.add.at(out, self.target, message)
        return out

    def _is_tree(self) -> bool:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        graph = csr_array((np.ones(len(self.p)), (self.source, self.target)), shape=(self.n, self.n))
        parts = connected_components(graph, directed=False, return_labels=False) if self.n else 0
        return len(self.p) // 2 == self.n - parts

    def log_z(self, shift: FloatArray) -> FloatArray:
        """log ∫ exp(−½ xᵀPx + hᵀx) by Bethe's formula: nodes, and pairs less their two nodes; exact on a tree."""
        node = 0.5 * (self.beta**2 / self.alpha[:, None]).sum(axis=0)
        node = node + 0.5 * (self.n * LOG_2PI - np.log(self.alpha).sum())
        once = self.source < self.target
        i, j, e = self.source[once], self.target[once], np.flatnonzero(once)
        back = self.back[e]
        a_i, a_j = self.alpha[i] - self.precision[back], self.alpha[j] - self.precision[e]
        b_i, b_j = self.beta[i] - self.message[back], self.beta[j] - self.message[e]
        det = a_i * a_j - self.p[e] ** 2
        pair = (a_j[:, None] * b_i**2 + a_i[:, None] * b_j**2 - 2 * (self.p[e])[:, None] * b_i * b_j) / det[:, None]
        pair = 0.5 * pair - 0.5 * np.log(det)[:, None]
        own = 0.5 * self.beta**2 / self.alpha[:, None] - 0.5 * np.log(self.alpha)[:, None]
        return np.asarray(node + (pair - own[i] - own[j]).sum(axis=0))
