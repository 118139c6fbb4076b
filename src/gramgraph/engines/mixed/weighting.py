"""Likelihood weighting: draws from the network, weighted by how well they explain the evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Belief, Key, MixtureBelief, RealAnswer, SampledBelief
from gramgraph.compile.plan import Plan, plan_of
from gramgraph.conditionals.continuous import draw, log_density
from gramgraph.engines.base import PLAIN, Best, Drawn, Engine, Run
from gramgraph.engines.gaussian.lower import log_joint
from gramgraph.engines.mixed.silent import refuse_functions, silent_parts
from gramgraph.engines.prepare import relevant_question
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.graphs import Digraph, topological_order
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

DRAWS = 100_000
BATCH_DRAWS = 10_000  # for each case of a table


def known_values(model: GraphicalModel, group: Group, n: int) -> dict[Var, Array]:
    """The observed values of one case, n times over."""
    layout = layout_of(model)
    known: dict[Var, Array] = {model.vars[v]: np.full(n, code) for v, code in group.states.items()}
    for v in dict.fromkeys(layout.owner[group.seen].tolist()):
        columns = np.flatnonzero(layout.owner[group.seen] == v)
        x = group.X[0, columns[np.argsort(group.seen[columns])]]
        known[model.vars[v]] = np.broadcast_to(x, (n, len(x)))
    return known


class CaseByCase(Engine):
    """What engines have in common that draw for each case of a table anew."""

    kinds = ("gaussian", "mixed", "general")
    default_draws = (DRAWS, BATCH_DRAWS)

    def one_case(
        self, model: GraphicalModel, question: Question, group: Group, n: int, rng: np.random.Generator
    ) -> tuple[dict[Key, Any], float, dict[str, Any]]:
        """Beliefs, log p(e) and details of one case."""
        raise NotImplementedError

    def plan(self, model: GraphicalModel, question: Question) -> Plan:
        """Draws of all variables."""
        return plan_of(self, layout_of(model).size, self.default_draws[question.batched] * len(model.vars), 0)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs from draws; every case of a table has its own."""
        model, question = relevant_question(model, question)
        rng = run.generator
        n = run.draws or self.default_draws[question.batched]
        tasks = []
        for group in question.groups():
            for i, row in enumerate(group.rows.tolist()):
                tasks.append((row, replace(group, rows=group.rows[i : i + 1], X=group.X[i : i + 1])))
        streams = rng.spawn(len(tasks)) if question.batched else [rng]  # a stream a case, whichever thread has it
        jobs = [(*task, stream) for task, stream in zip(tasks, streams, strict=True)]
        done = run.each(lambda job: self.one_case(model, question, job[1], n, job[2]), jobs)
        cases: dict[int, dict[Key, Any]] = {}
        log_p = np.empty(question.n_cases)
        each: dict[int, dict[str, Any]] = {}
        for (row, _), found in zip(tasks, done, strict=True):
            cases[row], log_p[row], each[row] = found
        details = dict(each[0]) if not question.batched and each else self._joined(each)
        details["index"] = question.index
        maker = (lambda key: cases[0][key]) if not question.batched else _Stacked(cases, question.n_cases)
        return RealAnswer(
            question.keys(model),
            maker,
            log_p if question.batched else float(log_p[0]),
            engine=self.name,
            exact=False,
            batched=question.batched,
            details=details,
        )

    @staticmethod
    def _joined(each: dict[int, dict[str, Any]]) -> dict[str, Any]:
        """Details of many cases: numbers become arrays with an entry a case, tables get the cases in front."""
        rows = [each[row] for row in sorted(each)]
        if not rows:
            return {}
        out: dict[str, Any] = {}
        for key, first in rows[0].items():
            parts = [row[key] for row in rows if key in row]
            if isinstance(first, dict) and len(parts) == len(rows) and all(p.keys() == first.keys() for p in parts):
                out[key] = {name: np.stack([part[name] for part in parts]) for name in first}
            elif isinstance(first, (int, float)) and len(parts) == len(rows):
                out[key] = np.array(parts)
        return out

    @staticmethod
    def scopes(model: GraphicalModel, question: Question) -> dict[Key, tuple[Var, ...]]:
        """The variables of every key."""
        return {
            key: tuple(model.var(name) for name in ((key,) if isinstance(key, str) else key))
            for key in question.keys(model)
        }

    @classmethod
    def no_beliefs(cls, scopes: dict[Key, tuple[Var, ...]], details: dict[str, Any]) -> dict[Key, Any]:
        """Beliefs of a case that is impossible: not a number."""
        w = np.full(1, np.nan)
        blank = {
            var: np.zeros(1, np.int64) if var.is_discrete else np.full((1, var.dimension), np.nan)
            for scope in scopes.values()
            for var in scope
        }
        return {key: cls.belief(key, scope, blank, w, details) for key, scope in scopes.items()}

    @staticmethod
    def belief(
        key: Key,
        scope: tuple[Var, ...],
        values: dict[Var, Array],
        w: FloatArray,
        details: dict[str, Any],
        *,
        error: FloatArray | None = None,
    ) -> Any:
        """The belief that weighted draws make; `error` is that of its means where the draws are not independent."""
        if all(not var.is_discrete for var in scope):
            x = np.concatenate([values[var] for var in scope], axis=1)
            belief = SampledBelief(scope, x, w, diagnostics=details, error=error)
            details["standard_error"][key] = np.atleast_1d(belief.standard_error())
            return belief
        labelled = tuple(var for var in scope if var.is_discrete)
        shape = tuple(var.size for var in labelled)
        flat = np.ravel_multi_index(tuple(values[var] for var in labelled), shape)
        if len(labelled) < len(scope):
            x = np.concatenate([values[var] for var in scope if not var.is_discrete], axis=1)
            return _cells(scope, shape, flat, x, w, details)
        size = int(np.prod(shape))
        p: FloatArray = np.asarray(np.bincount(flat, w, size), np.float64)
        if error is None:
            square = np.bincount(flat, w**2, size)
            total = float((w**2).sum())
            # Σ w_i² (1[x_i = s] − p_s)²
            error = np.sqrt(np.maximum(square * (1 - 2 * p) + p**2 * total, 0.0))
        details["standard_error"][key] = error.reshape(shape)
        return Belief(scope, p.reshape(shape))


def _cells(
    scope: tuple[Var, ...], shape: tuple[int, ...], flat: IntArray, x: FloatArray, w: FloatArray, details: Any
) -> MixtureBelief:
    """A joint of discrete and real variables: for each configuration the mean and covariance of its draws."""
    size = int(np.prod(shape))
    weights: FloatArray = np.asarray(np.bincount(flat, w, size), np.float64)
    d = x.shape[1]
    means, covs = np.zeros((size, d)), np.zeros((size, d, d))
    for cell in np.flatnonzero(weights != 0):  # also where it is not a number
        at = flat == cell
        share = w[at] / weights[cell]
        means[cell] = share @ x[at]
        off = x[at] - means[cell]
        covs[cell] = off.T @ (share[:, None] * off)
    codes = np.stack(np.unravel_index(np.arange(size), shape), axis=1)
    note = {**details, "note": "each configuration shows the mean and covariance of its draws as a Gaussian"}
    return MixtureBelief(scope, weights[None], means[None], covs[None], codes=codes, diagnostics=note)


class LikelihoodWeighting(CaseByCase):
    """Any network, approximately: parents before children, each unobserved variable is drawn and each observed one
    multiplies the weight by its density. O(draws × variables); errors fall as 1/√(effective draws).

    Works for every kind of conditional. `details` tell the draws, their effective number, the standard error of
    log p(e), and those of probabilities and means.

    >>> import gramgraph as gg
    >>> rows = {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 1.0}}
    >>> net = gg.BayesianNetwork("d -> x{real}", cpds={"d": 0.5, "x": rows})
    >>> answer = net.query("d", {"x": 2.0}, engine="likelihood_weighting", random_state=0)
    >>> round(answer["d"].prob("yes"), 1), answer.exact
    (0.9, False)
    """

    name = "likelihood_weighting"

    def weigh(
        self, model: GraphicalModel, group: Group, n: int, rng: np.random.Generator
    ) -> tuple[dict[Var, Array], FloatArray]:
        """Values of all variables in n draws, and their log weights, for one case."""
        parents = getattr(model, "parent_positions", None)
        if parents is None:
            raise ModelError("likelihood weighting needs directions; an undirected model is asked with an exact engine")
        known = known_values(model, group, n)
        if len(group.seen):
            refuse_functions(silent_parts(model, known), known)
        values: dict[Var, Array] = {}
        weights = np.zeros(n)
        for v in topological_order(Digraph(parents)):
            var, c = model.vars[v], model.conditionals[v]  # type: ignore[attr-defined]
            if var in known:
                values[var] = known[var]
                weights += log_density(c, values)
            else:
                values[var] = draw(c, values, n, rng)
        return values, weights

    def one_case(
        self, model: GraphicalModel, question: Question, group: Group, n: int, rng: np.random.Generator
    ) -> tuple[dict[Key, Any], float, dict[str, Any]]:
        """Beliefs, log p(e) and details of one case."""
        values, logs = self.weigh(model, group, n, rng)
        top = float(logs.max())
        if top == -np.inf:
            w, log_p, relative = np.full(n, np.nan), -np.inf, np.nan
        else:
            u = np.exp(logs - top)
            w, log_p = u / u.sum(), top + float(np.log(u.mean()))
            relative = float(u.std() / u.mean() / np.sqrt(n))
        effective = 0.0 if top == -np.inf else 1.0 / float((w**2).sum())
        details = {"draws": n, "effective_draws": effective, "log_evidence_error": relative, "standard_error": {}}
        scopes = self.scopes(model, question)
        return {key: self.belief(key, scope, values, w, details) for key, scope in scopes.items()}, log_p, details

    # ------------------------------------------------------------------------------------------ other questions

    def draw(self, model: GraphicalModel, question: Question, n: int, run: Run = PLAIN) -> Drawn:
        """n draws of all variables: exact without evidence, else resampled from weighted ones."""
        group, rng = next(iter(question.groups())), run.generator
        nothing = not len(group.seen) and not group.states
        m = n if nothing else max(DRAWS, 10 * n)
        values, logs = self.weigh(model, group, m, rng)
        log_p = 0.0
        if not nothing:
            top = float(logs.max())
            if top == -np.inf:
                return Drawn(np.zeros((0, 0), np.int64), -np.inf, np.zeros((0, 0)), nothing)
            w = np.exp(logs - top)
            pick = rng.choice(m, size=n, p=w / w.sum())
            values = {var: x[pick] for var, x in values.items()}
            log_p = top + float(np.log(w.mean()))
        layout = layout_of(model)
        X, codes = np.zeros((n, layout.size)), np.zeros((n, len(model.vars)), np.int64)
        for v, var in enumerate(model.vars):
            if var.is_discrete:
                codes[:, v] = values[var]
            else:
                X[:, layout.components(v)] = values[var]
        return Drawn(codes, log_p, X, nothing)

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """The best of many draws."""
        if question.batched:
            raise OptionError("the best of many draws is found for one case (a dict), not for a table of cases")
        drawn = self.draw(model, question, 20_000, replace(run, random_state=0))
        assert drawn.X is not None
        if drawn.log_evidence == -np.inf:
            nobody = np.zeros((1, len(model.vars)), np.int64), np.zeros((1, layout_of(model).size))
            return Best(nobody[0], np.array([-np.inf]), np.array([np.inf]), nobody[1])
        logs = log_joint(model, drawn.X, {v: drawn.states[:, v] for v, var in enumerate(model.vars) if var.is_discrete})
        i = int(np.argmax(logs))
        return Best(drawn.states[i : i + 1], logs[i : i + 1], np.array([np.inf]), drawn.X[i : i + 1])


class _Stacked:
    """Beliefs of many cases side by side: tables, or means and covariances."""

    def __init__(self, cases: dict[int, dict[Key, Any]], n: int) -> None:
        self.cases, self.n = cases, n

    def __call__(self, key: Key) -> Any:
        parts = [self.cases[row][key] for row in range(self.n)]
        if not parts:
            raise OptionError("a table without rows has no beliefs")
        if isinstance(parts[0], Belief):
            return Belief(parts[0].scope, np.stack([p.probabilities for p in parts]), batched=True)
        if getattr(parts[0], "codes", None) is not None:
            w, m, S = (np.concatenate([getattr(p, a) for p in parts]) for a in ("weights", "means", "covariances"))
            shown, codes = parts[0].diagnostics, parts[0].codes
            return MixtureBelief(parts[0].scope, w, m, S, batched=True, codes=codes, diagnostics=shown)
        moments = [p._moments() for p in parts]
        mean, cov = np.concatenate([m for m, _ in moments]), np.concatenate([c for _, c in moments])
        note = {"note": "mean and covariance of weighted draws, shown as a Gaussian"}
        return MixtureBelief(
            parts[0].scope, np.ones((self.n, 1)), mean[:, None], cov[:, None], batched=True, diagnostics=note
        )
