"""Statistics of real-valued and mixed networks from rows, and the networks that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.conditionals import (
    Conditional,
    ConditionalLinearGaussian,
    GaussianCopula,
    LinearGaussian,
    Predictor,
    Softmax,
    Table,
)
from gramgraph.conditionals.continuous import stack_features
from gramgraph.exceptions import OptionError
from gramgraph.learn.linear import LinearGaussianPrior, Reference, moments, regress
from gramgraph.learn.matching import owner_of
from gramgraph.linalg.floors import at_least
from gramgraph.models import BayesianNetwork
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var


class Statistics:
    """What the M-step needs of one family: for each configuration of its discrete parents the weight, mean and
    centered second moments of (real parents, child); or counts where the child is discrete."""

    def __init__(self, n: FloatArray, mean: FloatArray, S: FloatArray) -> None:
        self.n, self.mean, self.S = n, mean, S


class Learner:
    """The families of a network, and how each is estimated."""

    def __init__(
        self, net: BayesianNetwork, question: Question, w: FloatArray, prior: Any, ess: float, frame: Any
    ) -> None:
        self.net, self.question, self.w, self.frame = net, question, w, frame
        self.layout = layout_of(net)
        self.place = {v: j for j, v in enumerate(question.observed)}
        self.prior, self.ess = prior, ess
        self._check_prior()
        self.complete = not np.isnan(question.X).any() and not (question.codes < 0).any()
        self._references: dict[int, Reference] = {}

    def _check_prior(self) -> None:
        given = self.prior.values() if isinstance(self.prior, Mapping) else [self.prior]
        if isinstance(self.prior, Mapping):
            for name in self.prior:
                self.net.index(name)
        for one in given:
            number = isinstance(one, (int, float)) and not isinstance(one, bool) and one >= 0
            fine = one is None or number or one in ("bdeu", "k2") if not isinstance(one, LinearGaussianPrior) else True
            if not fine:
                raise OptionError(
                    "prior is None, 'bdeu', 'k2', a pseudo-count, a LinearGaussianPrior, or a dict of these by "
                    f"variable; not {one!r}"
                )

    def _prior_of(self, var: Var) -> Any:
        found = self.prior.get(var.name) if isinstance(self.prior, Mapping) else self.prior
        if not var.is_discrete and found is not None and not isinstance(found, LinearGaussianPrior):
            return LinearGaussianPrior() if isinstance(self.prior, Mapping) else None
        return None if var.is_discrete and isinstance(found, LinearGaussianPrior) else found

    def family(self, v: int) -> tuple[list[int], list[int]]:
        """Discrete and real parents."""
        row = self.net.parent_positions[v]
        return [p for p in row if self.net.vars[p].is_discrete], [p for p in row if not self.net.vars[p].is_discrete]

    # ------------------------------------------------------------------------------------------ complete rows

    def from_complete(self, X: FloatArray, codes: IntArray) -> BayesianNetwork:
        """Every conditional from rows without gaps."""
        return self._network([self.conditional(v, X, codes) for v in range(len(self.net.vars))])

    def conditional(self, v: int, X: FloatArray, codes: IntArray) -> Conditional:
        """One of them."""
        return self._estimate(v, self._statistics(v, X, codes), self.fill(v, codes))

    def fill(self, v: int, codes: IntArray) -> FloatArray | None:
        """For each configuration of the discrete parents by how much weight it is filled up; None
        where that is no question. A row with a gap may belong to every configuration that agrees with the rest."""
        labelled, _ = self.family(v)
        var = self.net.vars[v]
        if not labelled or var.is_discrete or self._special(v) or self._prior_of(var) is not None:
            return None
        seen = codes[self.w > 0][:, [self.place[p] for p in labelled]]
        rows = np.zeros(tuple(self.net.vars[p].size for p in labelled))
        for kind, count in zip(*np.unique(seen, axis=0, return_counts=True), strict=True):
            rows[tuple(slice(None) if code < 0 else code for code in kind)] += count
        return np.maximum(self.reference(v).rows_needed - rows, 0.0) * (float(self.w.sum()) / len(seen))

    def reference(self, v: int) -> Reference:
        """The pooled regression that groups are compared with, from the observed cells; fixed during EM."""
        found = self._references.get(v)
        if found is None:
            found = self._references[v] = self._reference(v)
        return found

    def _reference(self, v: int) -> Reference:
        labelled, real = self.family(v)
        Z = self.question.X[:, self.layout.of([*real, v])]
        d, k = Z.shape[1], self.net.vars[v].dimension
        used = self.w > 0
        whole = ~np.isnan(Z).any(axis=1) & used
        rows = int(whole.sum())
        if rows <= d and rows < used.sum():  # too few rows show all columns: each by itself
            own = [_own_moments(column, self.w) for column in Z.T]
            return Reference.of(np.array([m for m, _ in own]), np.diag([c for _, c in own]), k, rows)
        n, mean, S = moments(Z[whole], self.w[whole])
        if not labelled:
            return Reference.of(mean, S / n, k, rows)
        codes = self.question.codes[:, [self.place[p] for p in labelled]]
        whole &= (codes >= 0).all(axis=1)
        Z, w = Z[whole], self.w[whole]
        _, which = np.unique(codes[whole], axis=0, return_inverse=True)
        which = which.reshape(-1)
        groups = int(which.max()) + 1 if len(which) else 0
        total = np.bincount(which, w, groups)
        centers = np.array([np.bincount(which, w * column, groups) for column in Z.T]) / total
        off = Z - centers.T[which]
        within = off.T @ (w[:, None] * off) * (rows / n)
        return Reference.of(mean, S / n, k, rows, within, len(Z) - groups * (d - k + 1))

    def _network(self, made: list[Conditional]) -> BayesianNetwork:
        net = self.net
        return BayesianNetwork.from_parts(
            net.vars, made, parents=net.parent_positions, name=net.name, metadata=dict(net.metadata), check=False
        )

    def _special(self, v: int) -> bool:
        """Kinds that are fitted from rows, not from moments."""
        c, (_, real) = self.net.conditionals[v], self.family(v)
        return isinstance(c, (Predictor, GaussianCopula, Softmax)) or (self.net.vars[v].is_discrete and bool(real))

    def _statistics(self, v: int, X: FloatArray, codes: IntArray) -> Statistics | None:
        if self._special(v):
            return None
        labelled, real = self.family(v)
        sizes = tuple(self.net.vars[p].size for p in labelled)
        if self.net.vars[v].is_discrete:
            shape = (*sizes, self.net.vars[v].size)
            flat = np.ravel_multi_index(tuple(codes[:, self.place[p]] for p in (*labelled, v)), shape)
            counts = np.asarray(np.bincount(flat, self.w, int(np.prod(shape))), np.float64).reshape(shape)
            return Statistics(counts, np.zeros(0), np.zeros(0))
        Z = X[:, self.layout.of([*real, v])]
        d = Z.shape[1]
        n, mean, S = np.zeros(sizes), np.zeros((*sizes, d)), np.zeros((*sizes, d, d))
        which: Any = None
        if labelled:
            which = np.ravel_multi_index(tuple(codes[:, self.place[p]] for p in labelled), sizes)
        for number, at in enumerate(np.ndindex(sizes)):
            rows: Any = slice(None) if which is None else which == number
            n[at], mean[at], S[at] = moments(Z[rows], self.w[rows])
        return Statistics(n, mean, S)

    # ------------------------------------------------------------------------------------------ estimates

    def _estimate(
        self, v: int, s: Statistics | None, fill: FloatArray | None = None, before: Any = None
    ) -> Conditional:
        var = self.net.vars[v]
        parents = tuple(self.net.vars[p] for p in self.net.parent_positions[v])
        if s is None:
            return self._fit_rows(v, var, parents)
        if var.is_discrete:
            return self._table(var, parents, s.n)
        return self._linear(v, var, parents, s, fill, before)

    def _table(self, var: Var, parents: tuple[Var, ...], counts: FloatArray) -> Table:
        counts = counts + self._pseudo_count(var, counts.size)
        sums = counts.sum(axis=-1, keepdims=True)
        return Table(var, parents, np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), 1.0 / var.size))

    def _pseudo_count(self, var: Var, cells: int) -> float:
        prior = self._prior_of(var)
        if prior == "bdeu":
            return self.ess / cells
        return 1.0 if prior == "k2" else 0.0 if prior is None else float(prior)

    def _linear(
        self, v: int, var: Var, parents: tuple[Var, ...], s: Statistics, fill: FloatArray | None, before: Any
    ) -> Conditional:
        """`before` is the conditional that a step of EM starts from."""
        k, prior = var.dimension, self._prior_of(var)
        d = s.mean.shape[-1]
        W, b = np.zeros((*s.n.shape, k, d - k)), np.zeros((*s.n.shape, k))
        S = np.zeros((*s.n.shape, k, k))
        for at in np.ndindex(s.n.shape):
            n = float(s.n[at])
            if prior is not None:
                W[at], b[at], S[at] = regress(n, s.mean[at], s.S[at], k, prior)
                if before is not None and not prior.has_mean(n):
                    S[at] = before.covariance[at]  # what stands in for the mean need not raise the objective of EM
            elif fill is not None:
                W[at], b[at], S[at] = self.reference(v).group(n, s.mean[at], s.S[at], float(fill[at]))
            else:
                W[at], b[at], S[at] = regress(n, s.mean[at], s.S[at], k)
                S[at] = at_least(S[at], self.reference(v).floor)
        if fill is not None or self.family(v)[0]:
            return ConditionalLinearGaussian(var, parents, W, b, S)
        return LinearGaussian(var, parents, W, b, S)

    def log_prior(self, net: BayesianNetwork, fills: list[FloatArray | None]) -> float:
        """What EM adds to the log-likelihood, up to a constant: pseudo-counts, prior densities, rows filled up."""
        total = 0.0
        for v, (var, c, fill) in enumerate(zip(net.vars, net.conditionals, fills, strict=True)):
            if isinstance(c, Table):
                extra = self._pseudo_count(var, c.table().size)
                total += extra * float(np.log(c.table()).sum()) if extra else 0.0
            elif isinstance(c, (LinearGaussian, ConditionalLinearGaussian)):
                prior = self._prior_of(var)
                for at in np.ndindex(c.covariance.shape[:-2]):
                    one = c.coefficients[at], c.intercept[at], c.covariance[at]
                    if prior is not None:
                        total += prior.penalty(*one)
                    elif fill is not None and fill[at] > 0:
                        total += float(fill[at]) * self.reference(v).log_density(one[0], one[2])
        return total

    def _fit_rows(self, v: int, var: Var, parents: tuple[Var, ...]) -> Conditional:
        own = self.net.conditionals[v]
        names = [c for c in self.frame.columns if owner_of(self.net, c) in self.net]
        frame = self.frame[names]
        if isinstance(own, Predictor):
            return Predictor.fit(var, parents, own.estimator, frame)
        if isinstance(own, GaussianCopula):
            return GaussianCopula.fit(var, parents, frame)
        return self._softmax(v, var, parents)

    def _softmax(self, v: int, var: Var, parents: tuple[Var, ...]) -> Softmax:
        """Logistic regression in every configuration of the discrete parents, with a faint ridge (C = 10⁴)."""
        from sklearn.linear_model import LogisticRegression

        labelled, real = self.family(v)
        codes = self.question.codes
        columns = {self.net.vars[p]: self.question.X[:, self.layout.components(p)] for p in real}
        Z = stack_features(tuple(columns), columns, len(codes))
        sizes = tuple(self.net.vars[p].size for p in labelled)
        W, b = np.zeros((*sizes, var.size, Z.shape[1])), np.zeros((*sizes, var.size))
        scale = np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1.0)
        center = Z.mean(axis=0)
        for at in np.ndindex(sizes):
            rows = np.ones(len(Z), bool)
            for p, code in zip(labelled, at, strict=True):
                rows &= codes[:, self.place[p]] == code
            y = codes[rows, self.place[v]]
            seen = np.unique(y)
            b[at] = -30.0  # states that never occur are all but impossible
            if len(seen) < 2:
                b[at][seen] = 0.0
                b[at] = 0.0 if not len(seen) else b[at]
                continue
            model = LogisticRegression(C=1e4, max_iter=2000).fit((Z[rows] - center) / scale, y, self.w[rows])
            w, c = model.coef_ / scale, model.intercept_
            if len(seen) == 2:
                w, c = np.vstack([0 * w, w]), np.array([0.0, c[0]])
            W[at][seen], b[at][seen] = w, c - w @ center
        return Softmax(var, parents, W, b)


def _own_moments(column: FloatArray, w: FloatArray) -> tuple[float, float]:
    """Mean and variance of the cells that are there; 0 and 1 of a hidden variable."""
    shown = ~np.isnan(column) & (w > 0)
    if not shown.any():
        return 0.0, 1.0
    n, mean, S = moments(column[shown, None], w[shown])
    return float(mean[0]), float(S[0, 0]) / n
