"""EM for networks with real-valued variables: expected moments and counts where cells are missing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.exceptions import ModelError, ModelWarning, OptionError, listing
from gramgraph.learn.continuous_learner import Learner, Statistics
from gramgraph.learn.em import OBJECTIVES, EMReport
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var

#: Relative error of the objective that rounding explains.
ROUNDING = 1e-7


def fit_em(
    learner: Learner, max_iter: int, tol: float, restarts: int, rng: np.random.Generator, progress: Progress
) -> tuple[BayesianNetwork, EMReport]:
    """EM from a start in which gaps are filled by draws from their columns; the best of `restarts`."""
    special = [var.name for v, var in enumerate(learner.net.vars) if learner._special(v)]
    if special:
        raise ModelError(
            f"cells are missing, and {listing(special)} is neither a table nor linear Gaussian: EM needs these; drop "
            "the incomplete rows (frame.dropna())"
        )
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1 or not tol >= 0:
        raise OptionError(f"max_iter is a count from 1 and tol a number from 0, not {max_iter!r} and {tol!r}")
    if not isinstance(restarts, (int, np.integer)) or restarts < 1:
        raise OptionError(f"restarts is a count from 1, not {restarts!r}")
    best: tuple[BayesianNetwork, EMReport] | None = None
    with reporting(progress, restarts * max_iter) as report:
        for attempt in range(restarts):

            def tell(step: int, attempt: int = attempt) -> None:
                if report is not None:
                    report(attempt * max_iter + step)

            net, made = _climb(learner, _start(learner, rng), max_iter, tol, restarts, tell)
            if best is None or made.trace[-1] > best[1].trace[-1]:
                best = net, made
    assert best is not None
    return best


def _climb(
    learner: Learner, net: BayesianNetwork, max_iter: int, tol: float, restarts: int, tell: Any
) -> tuple[BayesianNetwork, EMReport]:
    """Steps from a network on, each of which raises the objective, until one gains less than `tol` a row."""
    fills = [learner.fill(v, learner.question.codes) for v in range(len(net.vars))]
    priors = [learner._prior_of(var) is not None for var in net.vars]
    what = OBJECTIVES[any(priors) or any(fill is not None and bool(fill.any()) for fill in fills)]
    trace: list[float] = []
    log_likelihood, converged, before = -np.inf, False, net
    for step in range(max_iter):
        statistics, found = expected_statistics(learner, net)
        value = found + learner.log_prior(net, fills)
        gain = value - trace[-1] if trace else np.inf
        if gain < 0:  # rounding at the summit; more than that is not a step of EM, and is not taken
            converged, net = gain > -ROUNDING * max(abs(value), float(learner.w.sum())), before
            if not converged:
                warnings.warn(_fell(gain), ModelWarning, stacklevel=5)
            break
        trace.append(value)
        log_likelihood = found
        if gain < tol * float(learner.w.sum()):
            converged = True
            break
        before = net
        families = zip(statistics, fills, net.conditionals, strict=True)
        net = learner._network([learner._estimate(v, *one) for v, one in enumerate(families)])
        tell(step + 1)
    return net, EMReport(log_likelihood, tuple(trace), converged, restarts, what)


def _fell(gain: float) -> str:
    return (
        f"EM stopped before a step that would lower its objective by {-gain:.3g}: the numbers are too extreme for it. "
        "Bring the columns to similar scales, or give a prior (gg.learn.LinearGaussianPrior)"
    )


def _start(learner: Learner, rng: np.random.Generator) -> BayesianNetwork:
    X, codes = learner.question.X.copy(), learner.question.codes.copy()
    for column in range(X.shape[1]):
        gaps = np.isnan(X[:, column])
        seen = X[~gaps, column]
        X[gaps, column] = rng.choice(seen, gaps.sum()) if len(seen) else rng.standard_normal(gaps.sum())
    for v, j in learner.place.items():
        gaps = codes[:, j] < 0
        if gaps.all():  # hidden: rows near one of as many random rows share a state
            codes[:, j] = _near_random_rows(learner, v, X, rng)
            continue
        seen = codes[~gaps, j]
        size = learner.net.vars[v].size
        codes[gaps, j] = rng.choice(seen, gaps.sum()) if len(seen) else rng.integers(0, size, gaps.sum())
    return learner.from_complete(X, codes)


def _near_random_rows(learner: Learner, v: int, X: FloatArray, rng: np.random.Generator) -> IntArray:
    size = learner.net.vars[v].size
    children = [
        u for u, row in enumerate(learner.net.parent_positions) if v in row and not learner.net.vars[u].is_discrete
    ]
    at = learner.layout.of(children) if children else np.arange(X.shape[1])
    if not len(at) or len(X) <= size:
        return rng.integers(0, size, len(X))
    Z = (X[:, at] - X[:, at].mean(axis=0)) / np.maximum(X[:, at].std(axis=0), 1e-300)
    centers = [int(rng.integers(len(Z)))]
    near = ((Z - Z[centers[0]]) ** 2).sum(axis=1)
    while len(centers) < size and near.sum() > 0:  # the next one likely far from those before
        centers.append(int(rng.choice(len(Z), p=near / near.sum())))
        near = np.minimum(near, ((Z - Z[centers[-1]]) ** 2).sum(axis=1))
    return np.asarray(((Z[:, None] - Z[centers][None]) ** 2).sum(axis=2).argmin(axis=1))


def expected_statistics(learner: Learner, net: BayesianNetwork) -> tuple[list[Statistics], float]:
    """Σ over rows of weight · E[sufficient statistics | what the row shows], and the log-likelihood."""
    if all(not var.is_discrete for var in net.vars):
        return _expected_gaussian(learner, net)
    return _expected_mixed(learner, net)


def _expected_gaussian(learner: Learner, net: BayesianNetwork) -> tuple[list[Statistics], float]:
    """One matrix of second moments serves all families: Σ w (E[x|e] E[x|e]ᵀ + Cov[x|e]), pattern by pattern."""
    from gramgraph.engines.gaussian.dense import Observed
    from gramgraph.engines.gaussian.lower import joint_moments

    mu, S, _ = joint_moments(net)
    size = len(mu)
    total, first, second = 0.0, np.zeros(size), np.zeros((size, size))
    log_likelihood = 0.0
    for group in learner.question.groups():
        w = learner.w[group.rows]
        hidden = np.ones(size, bool)
        hidden[group.seen] = False
        free = np.flatnonzero(hidden)
        observed = Observed(S[np.ix_(group.seen, group.seen)])
        off = group.X - mu[group.seen]
        z = observed.whiten(off)
        A = observed.whiten_columns(S[np.ix_(group.seen, free)])
        log_likelihood += float(w @ observed.log_density(off, z))
        full = np.empty((len(w), size))
        full[:, group.seen], full[:, free] = off, z @ A
        total += float(w.sum())
        first += w @ full
        second += full.T @ (w[:, None] * full)
        second[np.ix_(free, free)] += float(w.sum()) * (S[np.ix_(free, free)] - A.T @ A)
    if not np.isfinite(log_likelihood):
        raise ModelError("a row of the data is impossible under the network: a variance became zero")
    mean = first / total
    spread = second - total * np.outer(mean, mean)
    out = []
    for v in range(len(net.vars)):
        at = learner.layout.of([*net.parent_positions[v], v])
        out.append(Statistics(np.array(total), mu[at] + mean[at], spread[np.ix_(at, at)]))
    return out, log_likelihood


def _expected_mixed(learner: Learner, net: BayesianNetwork) -> tuple[list[Statistics], float]:
    from gramgraph.engines.base import PLAIN
    from gramgraph.engines.mixed.mixture import MixtureEngine, StrongEngine

    engine: Any = MixtureEngine() if MixtureEngine().is_small(net, learner.question) else StrongEngine()
    scopes: dict[Any, tuple[Var, ...]] = {}
    for v in range(len(net.vars)):
        labelled, real = learner.family(v)
        scopes[("family", v)] = tuple(net.vars[p] for p in (*labelled, *real, v))
    sums = [_Sums(net, *learner.family(v), v, learner.layout) for v in range(len(net.vars))]
    log_likelihood = 0.0
    for group in learner.question.groups():
        cells, log_p, _ = engine.beliefs(net, group, scopes, PLAIN)
        w = learner.w[group.rows]
        if not np.isfinite(log_p[w > 0]).all():
            raise ModelError("a row of the data is impossible under the network: give a prior, such as prior='bdeu'")
        log_likelihood += float(w @ log_p)
        for v, one in enumerate(sums):
            one.add(cells[("family", v)], w)
    return [one.statistics() for one in sums], log_likelihood


class _Sums:
    """Expected counts, first and second moments of one family, added up over rows."""

    def __init__(self, net: BayesianNetwork, labelled: list[int], real: list[int], v: int, layout: Any) -> None:
        self.discrete = net.vars[v].is_discrete
        sizes = tuple(net.vars[p].size for p in labelled) + ((net.vars[v].size,) if self.discrete else ())
        self.n = np.zeros(sizes)
        self.origin = np.zeros(0)
        if not self.discrete:
            d = len(layout.of([*real, v]))
            self.first, self.second = np.zeros((*sizes, d)), np.zeros((*sizes, d, d))
            self.origin = _origin(net, [*real, v], layout)

    def add(self, cells: Any, w: FloatArray) -> None:
        """Rows with these beliefs."""
        mass = w[:, None] * cells.weights
        at = tuple(cells.codes.T)
        np.add.at(self.n, at, mass.sum(axis=0)) if at else self.n.__iadd__(mass.sum())
        if self.discrete:
            return
        off = cells.mean - self.origin
        first = np.einsum("ck,ckd->kd", mass, off)
        second = np.einsum("ck,ckd,cke->kde", mass, off, off)
        if len(cells.cov) == 1:
            second = second + mass.sum(axis=0)[:, None, None] * cells.cov[0]
        else:
            second = second + np.einsum("ck,ckde->kde", mass, cells.cov)
        if at:
            np.add.at(self.first, at, first)
            np.add.at(self.second, at, second)
        else:
            self.first, self.second = self.first + first.sum(axis=0), self.second + second.sum(axis=0)

    def statistics(self) -> Statistics:
        """Centered moments."""
        if self.discrete:
            return Statistics(self.n, np.zeros(0), np.zeros(0))
        n = np.maximum(self.n, 1e-300)
        mean = self.first / n[..., None]
        S = self.second - self.n[..., None, None] * mean[..., :, None] * mean[..., None, :]
        return Statistics(self.n, mean + self.origin, S)


def _origin(net: BayesianNetwork, variables: list[int], layout: Any) -> FloatArray:
    """A point near the data, against cancellation in second moments."""
    from gramgraph.engines.mixed.strong_tree import reference_point

    return reference_point(net)[layout.of(variables)]
