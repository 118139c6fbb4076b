"""Mean field for Gaussian and conditional-Gaussian networks: a factor for each variable, a bound of log p(evidence)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gramgraph.answers import Key, RealAnswer
from gramgraph.conditionals import ConditionalLinearGaussian, LinearGaussian
from gramgraph.engines.approximate import between, whole
from gramgraph.engines.base import PLAIN, Run
from gramgraph.engines.mixed.cells import CellEngine, Cells, Found
from gramgraph.exceptions import ModelError
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var

#: The logarithm that stands for that of zero.
IMPOSSIBLE = -1000.0


@dataclass(frozen=True, eq=False)
class _Term:
    """log of one conditional or factor: for each configuration k of `states` c_k + h_kᵀx − ½ xᵀJ_k x over `ids`."""

    states: tuple[int, ...]  # positions of discrete variables
    ids: IntArray  # components of real ones
    J: FloatArray  # (*sizes, m, m)
    h: FloatArray  # (*sizes, m)
    c: FloatArray  # (*sizes,)


class RealMeanField(CellEngine):
    """q = Π q(variable) nearest to the posterior: Gaussians for real variables, probabilities for discrete ones.

    Coordinate ascent on E log p − E log q ≤ log p(evidence), which never falls (`details["bounds"]`, of one case).
    In a Gaussian model the means come out exact and the variances are 1 / precision, too small; with discrete variables
    q stays with one explanation where the posterior has several. `n_starts` starts (the prior's means, then random
    ones). Every variable needs noise. Cost of a sweep: O(Σ configurations · components² of each conditional).

    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> answer = net.query("x", {"y": 2.0}, engine="mean_field")
    >>> round(answer["x"].mean(), 6), round(answer.log_evidence - net.log_evidence({"y": 2.0}), 9)
    (0.8, 0.0)
    """

    name = "mean_field"
    exact = False
    kinds = ("gaussian", "mixed")
    options = ("max_iter", "tol", "n_starts")

    def __init__(self, *, max_iter: int = 1000, tol: float = 1e-10, n_starts: int = 3) -> None:
        super().__init__(max_iter=max_iter, tol=tol, n_starts=n_starts)
        self.max_iter, self.n_starts = whole("max_iter", max_iter), whole("n_starts", n_starts)
        self.tol = between("tol", tol, 0.0, 1.0)

    def answer(self, model: Any, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs under q, and the bounds."""
        found = super().answer(model, question, run)
        details = dict(found.details)
        if "converged" in details:
            settled = np.asarray(details["converged"]) > 0.0
            details["converged"] = settled if question.batched else bool(settled[0])
            bounds = np.array(details.pop("bounds"))
            details |= {} if question.batched else {"bounds": bounds, "sweeps": len(bounds)}
        return found.replace(details=details)

    def beliefs(self, model: Any, group: Group, scopes: dict[Key, tuple[Var, ...]], run: Run) -> Found:
        """Cells of every scope, the bound of every case."""
        terms = _terms(model)
        rng = run.generator
        states = [v for v, var in enumerate(model.vars) if var.is_discrete and v not in group.states]
        cases = []
        for x in group.X if len(group.seen) else np.zeros((len(group.rows), 0)):
            best: _Mean | None = None
            for start in range(self.n_starts if states else 1):
                made = _Mean(model, terms, group, x, None if start == 0 else rng)
                made.climb(self.max_iter, self.tol)
                if best is None or made.bounds[-1] > best.bounds[-1]:
                    best = made
            cases.append(best)
        found = [case for case in cases if case is not None]
        logs = np.array([case.bounds[-1] if case.is_possible() else np.nan for case in found])
        settled = np.array([float(case.converged) for case in found])
        details: dict[str, Any] = {"converged": settled, "lower_bound": logs, "bounds": tuple(found[-1].bounds)}
        return {key: _cells(model, scope, found) for key, scope in scopes.items()}, logs, details


class _Mean:
    """One case: probabilities of discrete variables, means and covariances of real ones."""

    def __init__(self, model: Any, terms: list[_Term], group: Group, x: FloatArray, rng: Any) -> None:
        self.model, self.terms, layout = model, terms, layout_of(model)
        self.mean, self.cov = np.zeros(layout.size), np.zeros((layout.size, layout.size))
        self.mean[group.seen] = x
        seen = set(group.seen.tolist())
        self.real = [
            layout.components(v)
            for v, var in enumerate(model.vars)
            if not var.is_discrete and int(layout.first[v]) not in seen
        ]
        self.p: dict[int, FloatArray] = {}
        self.states: list[int] = []
        for v, var in enumerate(model.vars):
            if not var.is_discrete:
                continue
            if v in group.states:
                self.p[v] = np.eye(var.size)[group.states[v]]
            else:
                self.states.append(v)
                self.p[v] = np.full(var.size, 1.0 / var.size) if rng is None else rng.dirichlet(np.full(var.size, 0.5))
        for ids in self.real:
            self.cov[np.ix_(ids, ids)] = np.eye(len(ids))
        self.bounds: list[float] = []
        self.converged = False

    def climb(self, max_iter: int, tol: float) -> None:
        """Sweeps until one gains next to nothing."""
        for _ in range(max_iter):
            for ids in self.real:
                self._update_real(ids)
            for v in self.states:
                self._update_states(v)
            self.bounds.append(self.bound())
            if len(self.bounds) > 1 and self.bounds[-1] - self.bounds[-2] <= tol * (1.0 + abs(self.bounds[-1])):
                self.converged = True
                return

    def _weights(self, term: _Term, but: int | None = None) -> FloatArray:
        """q of the configurations of a term's discrete variables, one of them left out."""
        out = np.ones(())
        for v in term.states:
            out = np.multiply.outer(out, np.ones_like(self.p[v]) if v == but else self.p[v])
        return np.asarray(out)

    def _logs(self, term: _Term) -> FloatArray:
        """E log of a term for each configuration."""
        if not len(term.ids):
            return term.c
        m = self.mean[term.ids]
        square = self.cov[np.ix_(term.ids, term.ids)] + np.outer(m, m)
        return np.asarray(term.c + term.h @ m - 0.5 * np.einsum("...ij,ij->...", term.J, square))

    def _update_real(self, ids: IntArray) -> None:
        """The best Gaussian of one variable, given all others."""
        d = len(ids)
        P, h = np.zeros((d, d)), np.zeros(d)
        for term in self.terms:
            at = np.flatnonzero(np.isin(term.ids, ids))
            if not len(at):
                continue
            w = self._weights(term)
            axes = tuple(range(w.ndim))
            J, own = np.tensordot(w, term.J, (axes, axes)), np.tensordot(w, term.h, (axes, axes))
            rest = np.setdiff1d(np.arange(len(term.ids)), at)
            P += J[np.ix_(at, at)]
            h += own[at] - J[np.ix_(at, rest)] @ self.mean[term.ids[rest]]
        S = np.linalg.inv(P)
        self.mean[ids] = S @ h
        self.cov[np.ix_(ids, ids)] = S

    def _update_states(self, v: int) -> None:
        """The best probabilities of one discrete variable."""
        logs = np.zeros_like(self.p[v])
        for term in self.terms:
            if v in term.states:
                axis = term.states.index(v)
                part = self._logs(term) * self._weights(term, but=v)
                logs += part.sum(axis=tuple(i for i in range(part.ndim) if i != axis))
        p = np.exp(logs - logs.max())
        self.p[v] = p / p.sum()

    def bound(self) -> float:
        """E log p − E log q."""
        from scipy.special import entr

        total = sum(float((self._weights(term) * self._logs(term)).sum()) for term in self.terms)
        total += sum(float(entr(self.p[v]).sum()) for v in self.states)
        for ids in self.real:
            log_det = float(np.linalg.slogdet(self.cov[np.ix_(ids, ids)])[1])
            total += 0.5 * (len(ids) * (1.0 + LOG_2PI) + log_det)
        return total

    def is_possible(self) -> bool:
        """Whether q has no mass where a table is zero."""
        return all(
            not (self._weights(term)[term.c <= IMPOSSIBLE] > 1e-12).any() for term in self.terms if not len(term.ids)
        )


def _terms(model: Any) -> list[_Term]:
    """The terms of log p, kept with the model's plans."""
    found: list[_Term] | None = model.plans.get(("lowered", "mean_field"))
    if found is None:
        parts = getattr(model, "conditionals", None)
        found = [_of_factor(model, f) for f in model.factors()] if parts is None else [_of(model, c) for c in parts]
        model.plans[("lowered", "mean_field")] = found
    return found


def _of(model: Any, c: Any) -> _Term:
    if c.tabular:
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(c.table()), IMPOSSIBLE)
        nothing = np.zeros((*logs.shape, 0))
        states = tuple(model.positions[var.name] for var in c.scope)
        return _Term(states, np.zeros(0, np.int64), np.zeros((*logs.shape, 0, 0)), nothing, logs)
    assert isinstance(c, (LinearGaussian, ConditionalLinearGaussian))
    layout = layout_of(model)
    k = c.child.dimension
    ids = layout.of([model.positions[var.name] for var in (c.child, *c.real_parents)])
    S = np.asarray(c.covariance)
    low = np.linalg.eigvalsh(S)[..., 0].min()
    if not low > 1e-12 * max(float(np.abs(S).max()), 1e-300):
        raise ModelError(
            f"{c.child.name} has no noise, so that a factor of its own has no bound. Use an exact engine instead"
        )
    P = np.linalg.inv(S)
    C = np.concatenate([np.broadcast_to(np.eye(k), S.shape), -np.asarray(c.coefficients)], axis=-1)
    b = np.asarray(c.intercept)
    PC = P @ C
    J = np.swapaxes(C, -1, -2) @ PC
    h = np.einsum("...ij,...i->...j", PC, b)
    constant = 0.5 * np.linalg.slogdet(P)[1] - 0.5 * k * LOG_2PI - 0.5 * np.einsum("...i,...ij,...j->...", b, P, b)
    states = tuple(model.positions[var.name] for var in c.discrete_parents)
    return _Term(states, ids, J, h, np.asarray(constant))


def _of_factor(model: Any, f: Any) -> _Term:
    """A factor exp(log_scale + shiftᵀx − ½ xᵀPx) of a Gaussian Markov network."""
    if f.pinned:
        raise ModelError("variables that a factor knows exactly have no factor of their own: use an exact engine")
    ids = layout_of(model).of([model.positions[var.name] for var in f.scope])
    return _Term((), ids, f.precision, f.shift, np.asarray(float(f.log_scale)))


def _cells(model: Any, scope: tuple[Var, ...], cases: list[_Mean]) -> Cells:
    """The belief of several variables: the product of their factors."""
    layout = layout_of(model)
    positions = [model.positions[var.name] for var in scope]
    states = [v for v in positions if model.vars[v].is_discrete]
    ids = layout.of([v for v in positions if not model.vars[v].is_discrete])
    sizes = tuple(model.vars[v].size for v in states)
    n = prod(sizes)
    codes = np.indices(sizes).reshape(len(sizes), n).T if sizes else np.zeros((1, 0), np.int64)
    weights = np.ones((len(cases), n))
    for i, v in enumerate(states):
        weights = weights * np.stack([case.p[v] for case in cases])[:, codes[:, i]]
    if not len(ids):
        return Cells(scope, weights, codes, None, None)
    mean = np.stack([case.mean[ids] for case in cases])[:, None]
    cov = np.stack([case.cov[np.ix_(ids, ids)] for case in cases])[:, None]
    return Cells(scope, weights, codes, np.repeat(mean, n, axis=1), np.repeat(cov, n, axis=1))
