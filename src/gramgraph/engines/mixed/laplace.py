"""Laplace's approximation of networks with real-valued variables: a Gaussian at the mode, one for each configuration
of the discrete variables."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gramgraph.answers import Key
from gramgraph.compile.plan import Plan, plan_of
from gramgraph.conditionals.continuous import draw, log_density
from gramgraph.engines.approximate import whole
from gramgraph.engines.base import PLAIN, Best, Run
from gramgraph.engines.gaussian.lower import log_joint
from gramgraph.engines.mixed.cells import CellEngine, Cells, Found
from gramgraph.engines.mixed.curvature import Curve, curve_of
from gramgraph.engines.mixed.weighting import LikelihoodWeighting, known_values
from gramgraph.exceptions import ModelError, listing
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.factors.log_table import log_sum_exp
from gramgraph.graphs import Digraph, topological_order
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

STARTS = 32  # draws for each configuration, of which the best is where the search begins
MOST_STEPS = 200
POOL = 10_000  # weighted draws from which configurations are taken where there are too many
CHECK, BATCH_CHECK = 4000, 500
_NUMBERS = 4_000_000  # of Hessians that are worked on at a time


class Modes(NamedTuple):
    """One Gaussian for each configuration: its place, its precision, and the logarithm of its mass."""

    codes: dict[int, IntArray]  # hidden discrete variable → (configurations,)
    hidden: IntArray  # components
    mode: FloatArray  # (configurations, components)
    precision: FloatArray  # (configurations, components, components)
    top: FloatArray  # log joint density at the mode
    log_mass: FloatArray
    steps: int


class Laplace(CellEngine):
    """p(real | discrete, e) as the Gaussian at its mode: precision = −Hessian of the log density there, mass
    p(mode, e) √(2π)ᵈ / √|precision|. All configurations of the unobserved discrete variables are looked at together
    (up to `max_configurations`, then those that weighted draws find most probable).

    Newton's method with slopes and Hessians in closed form for linear Gaussians and softmax, by differences for
    others; O(steps × configurations × d³). Exact where everything is linear and Gaussian; else it is as good as the
    densities are Gaussian around one mode. `details` tell how good: `effective_draws` of `draws` importance draws from
    the approximation, `log_evidence_check` with its `log_evidence_error` from the same draws.

    >>> import gramgraph as gg
    >>> from gramgraph.variables import binary, real
    >>> x, s = real("x"), binary("s")
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.conditionals.Softmax.logistic(s, (x,), [2.0])])
    >>> answer = net.query("x", {"s": "yes"}, engine="laplace", random_state=0)
    >>> round(answer["x"].mean(), 2), round(answer.log_evidence, 2), answer.exact
    (0.52, -0.72, False)
    """

    name = "laplace"
    exact = False
    kinds = ("gaussian", "mixed", "general")
    options = ("max_configurations",)

    def __init__(self, *, max_configurations: int = 4096) -> None:
        self.most = whole("max_configurations", max_configurations)

    def plan(self, model: Any, question: Question) -> Plan:
        """One Hessian for each configuration."""
        hidden = [var for v, var in enumerate(model.vars) if v not in set(question.seen)]
        d = sum(var.dimension for var in hidden if not var.is_discrete)
        count = min(prod(float(var.size) for var in hidden if var.is_discrete), float(self.most))
        return plan_of(self, layout_of(model).size, int(count * d * (d + 1)), d)

    def beliefs(self, model: Any, group: Group, scopes: dict[Key, tuple[Var, ...]], run: Run) -> Found:
        """Cells of every scope, log p(e) of every case."""
        rng, n = run.generator, len(group.rows)
        checks = run.draws or (CHECK if n == 1 else BATCH_CHECK)
        codes = self.configurations(model, group, rng)
        log_p, notes = np.empty(n), []
        each: list[list[Cells]] = [[] for _ in scopes]
        for i, one in enumerate(_singly(group)):
            found = self.modes(model, one, codes, rng)
            log_p[i] = float(log_sum_exp(found.log_mass, (0,)))
            for cells, scope in zip(each, scopes.values(), strict=True):
                cells.append(_cells(model, one, scope, found, log_p[i]))
            notes.append(_check(model, one, found, log_p[i], checks, rng))
        details = notes[0] if n == 1 else {key: np.array([note[key] for note in notes]) for key in notes[0]}
        return {key: _stacked(cells) for key, cells in zip(scopes, each, strict=True)}, log_p, details

    # ------------------------------------------------------------------------------------------ modes

    def modes(self, model: Any, group: Group, codes: IntArray, rng: np.random.Generator) -> Modes:
        """The mode of every configuration of one case; a mass of zero where it does not explain the evidence."""
        layout = layout_of(model)
        labelled, free = hidden_variables(model, group)
        places, d = {}, 0
        for v in free:
            places[model.vars[v]] = np.arange(d, d + model.vars[v].dimension)
            d += model.vars[v].dimension
        values, scale = _starts(model, group, codes, places, rng)
        problem = _Problem([curve_of(part, places, scale) for part in model.conditionals], places, d)
        X = np.concatenate([values[var] for var in places], axis=1) if places else np.zeros((len(codes), 0))
        top, P = np.full(len(X), -np.inf), np.tile(np.eye(d), (len(X), 1, 1))
        alive = np.flatnonzero(np.isfinite(problem.value(values, X)))
        steps = 0
        if len(alive):
            X[alive], top[alive], P[alive], steps = problem.climb(
                {var: x[alive] for var, x in values.items()}, X[alive]
            )
        log_mass = top + 0.5 * d * LOG_2PI
        if d:
            flat = np.linalg.eigvalsh(P)[:, 0] <= 0.0
            log_mass -= np.where(flat, 0.0, 0.5 * np.linalg.slogdet(P)[1])
            if flat.any() and log_mass[flat].max() > log_mass.max() - 20.0:
                names = listing(var.name for var in places)
                raise ModelError(
                    f"the density of ({names}) has no mode that curves down in every direction: Laplace's "
                    "approximation does not fit. Try: engine='gibbs' or 'likelihood_weighting'"
                )
            log_mass[flat], P[flat] = -np.inf, np.eye(d)
        return Modes({v: codes[:, i] for i, v in enumerate(labelled)}, layout.of(free), X, P, top, log_mass, steps)

    def configurations(self, model: Any, group: Group, rng: np.random.Generator) -> IntArray:
        """(configurations, hidden discrete variables): all, or those that weighted draws find most probable."""
        if not hasattr(model, "conditionals"):
            raise ModelError("Laplace's approximation is one of a Bayesian network; a Gaussian model is exact anyway")
        labelled, free = hidden_variables(model, group)
        d = sum(model.vars[v].dimension for v in free)
        sizes = tuple(model.vars[v].size for v in labelled)
        most = max(1, min(self.most, _NUMBERS // max(d * d, 1)))
        if prod(map(float, sizes)) <= most:
            return np.indices(sizes).reshape(len(sizes), -1).T if labelled else np.zeros((1, 0), np.int64)
        rows, weights = [], []
        for one in _singly(group):
            values, logs = LikelihoodWeighting().weigh(model, one, POOL, rng)
            rows.append(np.stack([values[model.vars[v]] for v in labelled], axis=1))
            with np.errstate(invalid="ignore"):
                weights.append(np.nan_to_num(np.exp(logs - logs.max())))
        found, inverse = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
        weight = np.bincount(inverse.reshape(-1), np.concatenate(weights), len(found))
        return np.asarray(found[np.argsort(-weight, kind="stable")[:most]])

    def best(self, model: Any, question: Question, run: Run = PLAIN) -> Best:
        """The joint mode of every case that is found; −inf where there is none."""
        layout, n = layout_of(model), question.n_cases
        X, codes = np.zeros((n, layout.size)), np.zeros((n, len(model.vars)), np.int64)
        logs = np.full(n, -np.inf)

        def work(group: Group) -> None:
            rng = np.random.default_rng(0)
            chosen = self.configurations(model, group, rng)
            for row, one in zip(group.rows.tolist(), _singly(group), strict=True):
                found = self.modes(model, one, chosen, rng)
                k = int(np.argmax(found.top))
                X[row, group.seen], X[row, found.hidden], logs[row] = one.X[0], found.mode[k], found.top[k]
                for v, code in group.states.items():
                    codes[row, v] = code
                for v, states in found.codes.items():
                    codes[row, v] = states[k]

        run.each(work, question.groups(), lambda group: len(group.rows))
        return Best(codes, logs, np.full(n, np.inf), X)


def _singly(group: Group) -> list[Group]:
    """The cases of a group, one by one."""
    return [replace(group, rows=group.rows[i : i + 1], X=group.X[i : i + 1]) for i in range(len(group.rows))]


def hidden_variables(model: Any, group: Group) -> tuple[list[int], list[int]]:
    """Unobserved variables: (discrete, real)."""
    seen = set(layout_of(model).owner[group.seen].tolist()) | set(group.states)
    hidden = [v for v in range(len(model.vars)) if v not in seen]
    return [v for v in hidden if model.vars[v].is_discrete], [v for v in hidden if not model.vars[v].is_discrete]


class _Problem:
    """log p(x, configuration, e) as a function of the hidden real components, for all configurations at once."""

    def __init__(self, curves: list[Curve], places: dict[Var, IntArray], d: int) -> None:
        self.constant = [curve for curve in curves if not len(curve.at)]
        self.curves = [curve for curve in curves if len(curve.at)]
        self.places, self.d = places, d

    def _at(self, values: dict[Var, Array], X: FloatArray) -> dict[Var, Array]:
        return {**values, **{var: X[:, at] for var, at in self.places.items()}}

    def value(self, values: dict[Var, Array], X: FloatArray) -> FloatArray:
        """log joint density of every configuration."""
        here = self._at(values, X)
        total = np.zeros(len(X))
        for curve in (*self.constant, *self.curves):
            total = total + curve.value(here)
        return np.where(np.isnan(total), -np.inf, total)

    def _derivatives(self, values: dict[Var, Array], X: FloatArray) -> tuple[FloatArray, FloatArray]:
        here = self._at(values, X)
        g, P = np.zeros((len(X), self.d)), np.zeros((len(X), self.d, self.d))
        for curve in self.curves:
            _, slope, H = curve.derivatives(here)
            g[:, curve.at] += slope
            P[:, curve.at[:, None], curve.at] -= H
        return g, P

    def climb(self, values: dict[Var, Array], X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """Newton's method with halved steps, until no configuration gains: (modes, values, precisions, steps)."""
        f = self.value(values, X)
        steps = 0
        for _ in range(MOST_STEPS if self.d else 0):
            g, P = self._derivatives(values, X)
            bent, V = np.linalg.eigh(np.nan_to_num(P))
            safe = np.maximum(np.abs(bent), 1e-8 * np.abs(bent).max(axis=1, keepdims=True) + 1e-300)
            along = np.einsum("nji,nj->ni", V, np.nan_to_num(g))
            move = np.einsum("nij,nj->ni", V, along / safe)
            gain = 0.5 * np.einsum("ni,ni->n", along, along / safe)  # what a step would win in log density
            busy = gain > 1e-13 * (1.0 + np.abs(f))
            if not busy.any():
                break
            steps += 1
            t = np.where(busy, 1.0, 0.0)
            todo = busy.copy()
            for _ in range(40):
                tried = X + t[:, None] * move
                new = self.value(values, tried)
                good = todo & (new > f)
                X = np.where(good[:, None], tried, X)
                f = np.where(good, new, f)
                todo &= ~good
                if not todo.any():
                    break
                t = np.where(todo, 0.5 * t, 0.0)
            if (todo == busy).all():  # nothing moved: what is left is rounding
                break
        return X, f, self._derivatives(values, X)[1], steps


def _starts(
    model: Any, group: Group, codes: IntArray, places: dict[Var, IntArray], rng: np.random.Generator
) -> tuple[dict[Var, Array], FloatArray]:
    """For every configuration the best of some forward draws; and the standard deviation of each hidden component."""
    n, m = len(codes), len(codes) * STARTS
    known = known_values(model, group, m)
    labelled = [var for var in model.vars if var.is_discrete and var not in known]
    known |= {var: np.repeat(codes[:, i], STARTS) for i, var in enumerate(labelled)}
    values: dict[Var, Array] = {}
    logs = np.zeros(m)
    for v in topological_order(Digraph(model.parent_positions)):
        var, part = model.vars[v], model.conditionals[v]
        values[var] = known[var] if var in known else draw(part, values, m, rng)
        with np.errstate(all="ignore"):
            logs += np.nan_to_num(log_density(part, values), nan=-np.inf)
    pick = np.arange(n) * STARTS + logs.reshape(n, STARTS).argmax(axis=1)
    spread = [np.asarray(values[var]).std(axis=0) for var in places]
    scale = np.concatenate(spread) if spread else np.zeros(0)
    return {var: np.asarray(x)[pick] for var, x in values.items()}, np.where(scale > 0, scale, 1.0)


def _cells(model: Any, group: Group, scope: tuple[Var, ...], found: Modes, log_p: float) -> Cells:
    """The mixture over configurations, for the variables of a scope."""
    layout = layout_of(model)
    with np.errstate(invalid="ignore"):
        weights = np.exp(found.log_mass - log_p)[None]
    n = len(found.mode)
    columns = []
    for var in scope:
        if var.is_discrete:
            v = model.positions[var.name]
            columns.append(found.codes[v] if v in found.codes else np.full(n, group.states[v]))
    codes = np.stack(columns, axis=1) if columns else np.zeros((n, 0), np.int64)
    want = layout.of([model.positions[var.name] for var in scope if not var.is_discrete])
    if not len(want):
        return Cells(scope, weights, codes, None, None)
    place = {int(c): j for j, c in enumerate(found.hidden)}
    known = {int(c): x for c, x in zip(group.seen, group.X[0], strict=True)}
    mean, cov = np.zeros((1, n, len(want))), np.zeros((1, n, len(want), len(want)))
    inside = [i for i, c in enumerate(want) if int(c) in place]
    at = [place[int(want[i])] for i in inside]
    mean[0][:, inside] = found.mode[:, at]
    for i, c in enumerate(want):
        if int(c) in known:
            mean[0][:, i] = known[int(c)]
    if at:
        C = np.linalg.inv(found.precision)
        cov[0][:, np.array(inside)[:, None], inside] = C[:, np.array(at)[:, None], at]
    return Cells(scope, weights, codes, mean, cov)


def _stacked(parts: list[Cells]) -> Cells:
    """Cells of several cases; they have the same configurations."""
    first = parts[0]
    weights = np.concatenate([part.weights for part in parts])
    if first.mean is None:
        return Cells(first.scope, weights, first.codes, None, None)
    mean = np.concatenate([part.mean for part in parts if part.mean is not None])
    cov = np.concatenate([part.cov for part in parts if part.cov is not None])
    return Cells(first.scope, weights, first.codes, mean, cov)


def _check(model: Any, group: Group, found: Modes, log_p: float, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """How good the approximation is: draws from it, weighted by the true density."""
    nothing = {"configurations": len(found.top), "newton_steps": found.steps, "draws": n, "effective_draws": 0.0}
    nothing |= {"log_evidence_check": -np.inf, "log_evidence_error": np.nan}
    if log_p == -np.inf:
        return nothing
    layout, d = layout_of(model), len(found.hidden)
    weights = np.exp(found.log_mass - log_p)
    pick = rng.choice(len(weights), size=n, p=weights / weights.sum())
    z = rng.standard_normal((n, d))
    X = np.zeros((n, layout.size))
    X[:, group.seen] = group.X[0]
    log_q = found.log_mass[pick] - log_p - 0.5 * ((z**2).sum(axis=1) + d * LOG_2PI)
    if d:
        L = np.linalg.cholesky(found.precision)
        back = np.swapaxes(np.linalg.inv(L), 1, 2)  # x = mode + L⁻ᵀ z has precision L Lᵀ
        X[:, found.hidden] = found.mode[pick] + np.einsum("nij,nj->ni", back[pick], z)
        log_q += np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)[pick]
    states = {v: np.full(n, code) for v, code in group.states.items()} | {v: c[pick] for v, c in found.codes.items()}
    with np.errstate(all="ignore"):
        logs = np.nan_to_num(log_joint(model, X, states) - log_q, nan=-np.inf, posinf=-np.inf)
    top = float(logs.max())
    if top == -np.inf:
        return nothing
    u = np.exp(logs - top)
    return nothing | {
        "effective_draws": float(u.sum()) ** 2 / float((u**2).sum()),
        "log_evidence_check": top + float(np.log(u.mean())),
        "log_evidence_error": float(u.std() / u.mean() / np.sqrt(n)),
    }
