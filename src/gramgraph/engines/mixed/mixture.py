"""Conditional-Gaussian networks exactly: by all configurations of the discrete variables, or by a strong tree."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Key
from gramgraph.compile.budget import check_budget
from gramgraph.engines.base import PLAIN, Best, Drawn, Run
from gramgraph.engines.gaussian.lower import log_joint
from gramgraph.engines.mixed.cells import CellEngine, Cells, Found
from gramgraph.engines.mixed.configurations import choosers, gaussians_given
from gramgraph.engines.mixed.strong_tree import StrongPlan, StrongTree, potentials_of, reference_point, strong_plan
from gramgraph.exceptions import ImpossibleEvidenceError
from gramgraph.factors.log_table import log_sum_exp
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: "auto" lists all configurations up to this many numbers of covariances; beyond, the strong tree takes over.
SMALL = 500_000
_CHUNK = 4_000_000


def discrete_part(model: Any) -> Any:
    """The network of the discrete variables alone: in a conditional-Gaussian network they have no real parents."""
    found = model.plans.get(("lowered", "discrete"))
    if found is None:
        keep = [v for v, var in enumerate(model.vars) if var.is_discrete]
        parts = [model.conditionals[v] for v in keep]
        found = type(model).from_parts([model.vars[v] for v in keep], parts, check=False)
        model.plans[("lowered", "discrete")] = found
    return found


def _labels(model: Any, states: dict[int, int]) -> dict[str, str]:
    return {model.vars[v].name: model.vars[v].states[code] for v, code in states.items()}


class MixtureEngine(CellEngine):
    """A Gaussian for every configuration of the discrete variables that real ones depend on.

    The belief of a real variable is the exact mixture, so that its density and quantiles are exact too. Cost: number
    of configurations × n². Variables without noise are fine.

    >>> import gramgraph as gg
    >>> rows = {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 1.0}}
    >>> net = gg.BayesianNetwork("d -> x{real}", cpds={"d": 0.5, "x": rows})
    >>> answer = net.query("d", {"x": 2.0}, engine="mixture")
    >>> round(answer["d"].prob("yes"), 4), answer.exact
    (0.8808, True)
    """

    name = "mixture"
    exact = True

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict  # whether to refuse (`IllConditioned`) what the strong tree does more accurately

    def plan(self, model: GraphicalModel, question: Question) -> StrongPlan:
        """What the strong tree would take; listing all configurations is preferred where they are few."""
        return StrongEngine().plan(model, question)

    def best(self, model: Any, question: Question, run: Run = PLAIN) -> Best:
        """The best assignment of every case, by a strong tree."""
        return StrongEngine().best(model, question, run)

    def is_small(self, model: GraphicalModel, question: Question) -> bool:
        """Whether listing all configurations is cheap."""
        seen = set(question.observed)
        count = prod(float(model.vars[v].size) for v in choosers(model) if v not in seen)
        return count * max(layout_of(model).size, 1) ** 2 <= SMALL and count <= 4096

    def beliefs(self, model: Any, group: Group, scopes: dict[Key, tuple[Var, ...]], run: Run) -> Found:
        """Cells of every scope, log p(e) of every case."""
        layout = layout_of(model)
        which = [v for v in choosers(model) if v not in group.states]
        sizes = tuple(model.vars[v].size for v in which)
        count = prod(map(float, sizes))
        needed = 8.0 * count * (4.0 * layout.size + len(group.rows) * (1 + layout.size))
        check_budget(needed, run.memory, [model.vars[v].name for v in which], count)
        codes = np.indices(sizes).reshape(len(sizes), -1) if which else np.zeros((0, 1), np.int64)
        n = codes.shape[1]
        states = {v: codes[i] for i, v in enumerate(which)}
        states |= {v: np.full(n, code) for v, code in group.states.items()}
        try:
            tables, log_d = self._tables(model, group, which, scopes)
        except ImpossibleEvidenceError:
            return _impossible(scopes, len(group.rows)), np.full(len(group.rows), -np.inf), {}
        real = {key: layout.of([model.positions[v.name] for v in s if not v.is_discrete]) for key, s in scopes.items()}
        given = gaussians_given(model, states, n, group.seen, group.X, list(real.values()), strict=self.strict)
        with np.errstate(divide="ignore"):
            logs = given.log_p + np.log(tables[()].reshape(-1)) + log_d
        total = log_sum_exp(logs, (1,))
        weights = np.exp(logs - np.where(np.isneginf(total), 0.0, total)[:, None])
        out, start = {}, 0
        for j, (key, scope) in enumerate(scopes.items()):
            k = len(real[key])
            mean = given.mean[:, :, start : start + k] if k else None
            start += k
            out[key] = self._cells(
                model, group, scope, which, codes=codes, tables=tables, weights=weights, mean=mean, cov=given.blocks[j]
            )
        return out, total, {}

    @staticmethod
    def _tables(model: Any, group: Group, which: list[int], scopes: dict[Key, tuple[Var, ...]]) -> tuple[Any, float]:
        """p(which | e_d), and p(others, which | e_d) for the discrete variables that are asked for beside them."""
        own = tuple(model.vars[v] for v in which)
        wanted: dict[tuple[str, ...], tuple[Var, ...]] = {(): own}
        for scope in scopes.values():
            extra = tuple(
                v for v in scope if v.is_discrete and v not in own and model.positions[v.name] not in group.states
            )
            if extra:
                wanted[tuple(v.name for v in extra)] = (*extra, *own)
        net = discrete_part(model)
        evidence = _labels(model, group.states)
        if not len(net):
            return {(): np.ones(1)}, 0.0
        joints = [tuple(v.name for v in scope) for scope in wanted.values() if scope]
        found = net.query(joints, evidence) if joints else None
        log_d = float(found.log_evidence) if found is not None else net.log_evidence(evidence)
        if log_d == -np.inf:
            raise ImpossibleEvidenceError("")
        tables = {}
        for key, scope in wanted.items():
            tables[key] = (
                found[tuple(v.name for v in scope)].probabilities if scope and found is not None else np.ones(1)
            )
        return tables, log_d

    @staticmethod
    def _cells(
        model: Any,
        group: Group,
        scope: tuple[Var, ...],
        which: list[int],
        codes: IntArray,
        tables: Any,
        weights: FloatArray,
        mean: FloatArray | None,
        cov: FloatArray,
    ) -> Cells:
        own = tuple(model.vars[v] for v in which)
        labelled = [v for v in scope if v.is_discrete]
        extra = tuple(v for v in labelled if v not in own and model.positions[v.name] not in group.states)
        n = codes.shape[1]
        at = np.zeros((n, len(labelled)), np.int64)
        for i, var in enumerate(labelled):
            if var in own:
                at[:, i] = codes[own.index(var)]
            elif model.positions[var.name] in group.states:
                at[:, i] = group.states[model.positions[var.name]]
        spread = None if mean is None else cov[None]
        if not extra:
            return Cells(scope, weights, at, mean, spread)
        joint = tables[tuple(v.name for v in extra)].reshape(-1, n)  # (states of extra, configurations)
        total = joint.sum(axis=0)
        share = joint / np.where(total > 0, total, 1.0)
        m = len(joint)
        at = np.repeat(at[None], m, axis=0)
        where = np.indices(tuple(v.size for v in extra)).reshape(len(extra), -1)
        for j, var in enumerate(extra):
            at[:, :, labelled.index(var)] = where[j][:, None]
        wide = (weights[:, None, :] * share[None]).reshape(len(weights), -1)
        if mean is None:
            return Cells(scope, wide, at.reshape(m * n, -1), None, None)
        means = np.repeat(mean[:, None], m, axis=1).reshape(len(mean), m * n, -1)
        covs = np.repeat(cov[None], m, axis=0).reshape(1, m * n, *cov.shape[1:])
        return Cells(scope, wide, at.reshape(m * n, -1), means, covs)


def _impossible(scopes: dict[Key, tuple[Var, ...]], cases: int) -> dict[Key, Cells]:
    out = {}
    for key, scope in scopes.items():
        d = sum(v.dimension for v in scope if not v.is_discrete)
        codes = np.zeros((1, sum(v.is_discrete for v in scope)), np.int64)
        mean, cov = (np.full((cases, 1, d), np.nan), np.full((1, 1, d, d), np.nan)) if d else (None, None)
        out[key] = Cells(scope, np.full((cases, 1), np.nan), codes, mean, cov)
    return out


class StrongEngine(CellEngine):
    """Probabilities, means and variances exactly by a strong junction tree; see `strong_tree`.

    The belief of a real variable is a mixture over the discrete variables of its clique: its moments are exact,
    its density is that of the mixture in which other discrete variables are averaged over.

    >>> import gramgraph as gg
    >>> rows = {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 1.0}}
    >>> net = gg.BayesianNetwork("d -> x{real}", cpds={"d": 0.5, "x": rows})
    >>> answer = net.query("d", {"x": 2.0}, engine="strong_tree")
    >>> round(answer["d"].prob("yes"), 4), answer.exact
    (0.8808, True)
    """

    name = "strong_tree"
    exact = True
    kinds = ("gaussian", "mixed")

    def plan(self, model: GraphicalModel, question: Question) -> StrongPlan:
        """The tree and its cost, where all observed variables are observed."""
        joints = [tuple(model.vars[v] for v in members) for members in question.joints]
        return strong_plan(model, dict.fromkeys(question.observed, 0), question.columns, joints, question.n_cases)

    def beliefs(self, model: Any, group: Group, scopes: dict[Key, tuple[Var, ...]], run: Run) -> Found:
        """Cells of every scope, log p(e) of every case; many cases go through the tree in portions."""
        hidden = {model.vars[v] for v in (*group.states, *layout_of(model).owner[group.seen].tolist())}
        joints = [tuple(v for v in scope if v not in hidden) for scope in scopes.values() if len(scope) > 1]
        plan = strong_plan(model, group.states, group.seen, joints)
        plan.check_budget(run.memory)
        step = int(max(1, _CHUNK * 8 // max(plan.bytes, 1)))
        parts = [
            self._portion(model, group, slice(a, a + step), scopes, joints) for a in range(0, len(group.rows), step)
        ]
        log_p = np.concatenate([logs for _, logs in parts])
        out = {}
        for key, scope in scopes.items():
            cells = [part[key] for part, _ in parts]
            first = cells[0]
            if len(cells) == 1:
                out[key] = first
                continue
            mean = None if first.mean is None else np.concatenate([c.mean for c in cells])  # type: ignore[misc]
            cov = None if first.cov is None else np.concatenate([_for_all(c) for c in cells])
            out[key] = Cells(scope, np.concatenate([c.weights for c in cells]), first.codes, mean, cov)
        return out, log_p, {"plan": plan}

    def _portion(self, model: Any, group: Group, rows: slice, scopes: dict[Key, tuple[Var, ...]], joints: Any) -> Any:
        X = group.X[rows]
        parts, scale = potentials_of(model, group.states, group.seen, X)
        tree = StrongTree(parts, scale, joints)
        fixed = _known(model, group, X)
        out = {key: self._cells(model, tree, scope, fixed, group.states, len(X)) for key, scope in scopes.items()}
        return out, tree.log_z

    @staticmethod
    def _cells(
        model: Any,
        tree: StrongTree,
        scope: tuple[Var, ...],
        fixed: dict[Var, FloatArray],
        states: dict[int, int],
        n: int,
    ) -> Cells:
        layout, origin = layout_of(model), reference_point(model)
        in_tree = {var for clique in tree.tree.cliques for var in clique}
        free = [v for v in scope if v in in_tree]
        found = tree.moments(free)
        with np.errstate(invalid="ignore"):
            logs = found.w.reshape(len(found.w), -1)
            total = log_sum_exp(logs, (1,))
            weights = np.exp(logs - np.where(np.isneginf(total), 0.0, total)[:, None])
        weights = np.broadcast_to(weights, (n, weights.shape[1]))
        cells = weights.shape[1]
        labelled = [v for v in scope if v.is_discrete]
        grid = np.indices(tuple(v.size for v in found.labelled)).reshape(len(found.labelled), cells)
        codes = np.zeros((cells, len(labelled)), np.int64)
        for i, var in enumerate(labelled):
            inside = var in found.labelled
            codes[:, i] = grid[found.labelled.index(var)] if inside else states[model.positions[var.name]]
        reals = [v for v in scope if not v.is_discrete]
        if not reals:
            return Cells(scope, weights, codes, None, None)
        d = sum(v.dimension for v in reals)
        B = max(len(found.mean), n)
        mean, cov = np.zeros((B, cells, d)), np.zeros((len(found.cov), cells, d, d))
        place, at = {}, 0
        for var in reals:
            place[var] = np.arange(at, at + var.dimension)
            at += var.dimension
        to = np.concatenate([place[v] for v in found.real]) if found.real else np.zeros(0, np.int64)
        mean[:, :, to] = found.mean.reshape(len(found.mean), cells, -1)
        cov[:, :, to[:, None], to] = found.cov.reshape(len(found.cov), cells, len(to), len(to))
        for var in reals:
            base = origin[layout.components(model.positions[var.name])]
            mean[:, :, place[var]] = fixed[var][:, None] if var in fixed else mean[:, :, place[var]] + base
        return Cells(scope, weights, codes, mean, cov)

    def best(self, model: Any, question: Question, run: Run = PLAIN) -> Best:
        """The best assignment of every case."""
        n = question.n_cases
        X, states = np.zeros((n, layout_of(model).size)), np.zeros((n, len(model.vars)), np.int64)
        possible = np.ones(n, bool)

        def work(group: Group) -> None:
            strong_plan(model, group.states, group.seen).check_budget(run.memory)
            parts, scale = potentials_of(model, group.states, group.seen, group.X)
            tree = StrongTree(parts, scale, best=True)
            X[group.rows], states[group.rows] = self._values(model, group, group.X, tree.decode(None, len(group.X)))
            possible[group.rows] = tree.log_z > -np.inf

        run.each(work, question.groups(), lambda group: len(group.rows))
        codes = {v: states[:, v] for v, var in enumerate(model.vars) if var.is_discrete}
        log_prob = np.where(possible, log_joint(model, X, codes), -np.inf)
        return Best(states, log_prob, log_prob, X)

    def draw(self, model: Any, question: Question, n: int, run: Run = PLAIN) -> Drawn:
        """n draws of all variables given one case."""
        group = next(iter(question.groups()))
        strong_plan(model, group.states, group.seen).check_budget(run.memory)
        parts, scale = potentials_of(model, group.states, group.seen, group.X)
        tree = StrongTree(parts, scale)
        log_p = float(tree.log_z[0])
        if log_p == -np.inf:
            return Drawn(np.zeros((0, 0), np.int64), log_p, np.zeros((0, 0)))
        X, codes = self._values(model, group, np.repeat(group.X, n, axis=0), tree.decode(run.generator, n))
        return Drawn(codes, log_p, X)

    @staticmethod
    def _values(model: Any, group: Group, X: FloatArray, at: dict[Var, Any]) -> tuple[FloatArray, IntArray]:
        layout, origin = layout_of(model), reference_point(model)
        out, codes = np.zeros((len(X), layout.size)), np.zeros((len(X), len(model.vars)), np.int64)
        fixed = _known(model, group, X)
        for v, var in enumerate(model.vars):
            if var.is_discrete:
                codes[:, v] = group.states[v] if v in group.states else at[var]
            else:
                where = layout.components(v)
                out[:, where] = fixed[var] if var in fixed else at[var] + origin[where]
        return out, codes


def _known(model: Any, group: Group, X: FloatArray) -> dict[Var, FloatArray]:
    """Values of real variables that are observed, or set by an intervention."""
    layout = layout_of(model)
    out = {}
    for c in model.conditionals:
        if not c.child.is_discrete and not c.parents and not c.covariance.any():
            out[c.child] = np.broadcast_to(c.intercept[None], (len(X), c.child.dimension))
    owners = layout.owner[group.seen]
    for v in dict.fromkeys(owners.tolist()):
        columns = np.flatnonzero(owners == v)
        out[model.vars[v]] = X[:, columns[np.argsort(group.seen[columns])]]
    return out


def _for_all(cells: Cells) -> FloatArray:
    assert cells.cov is not None and cells.mean is not None
    return np.broadcast_to(cells.cov, (len(cells.mean), *cells.cov.shape[1:]))
