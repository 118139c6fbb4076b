"""Boosted arrows exactly: between the thresholds of the trees nothing changes, so that cells are states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import Key, RealAnswer
from gramgraph.answers.density_belief import DensityBelief
from gramgraph.answers.pieces import Pieces, log_between
from gramgraph.compile.plan import Plan, plan_of
from gramgraph.conditionals import (
    Boosted,
    Conditional,
    ConditionalLinearGaussian,
    LinearGaussian,
    Predictor,
    Softmax,
)
from gramgraph.conditionals.boosted import log_shares
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.mixed.closing import closed_conditional
from gramgraph.engines.mixed.weighting import CaseByCase
from gramgraph.engines.nodes.cases import answer_of, known_values, solve_cases, state_belief, state_table
from gramgraph.engines.nodes.messages import Tree, clique_entries, marginal, tree_of
from gramgraph.engines.nodes.messages import run as run_tree
from gramgraph.engines.prepare import relevant_question
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.questions.question import Group, Question
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Entries of the largest clique, at most.
LARGEST = 3_000_000


class Steps(Engine):
    """Networks whose real variables speak through boosted trees alone, exactly.

    A tree is constant between its thresholds. Each real variable x that is not observed is cut at the thresholds of its
    children; given the states and cells of its parents it is a Gaussian with a known mean, so that every cell has a
    known mass, P(cell) = Φ(b) − Φ(a). What is left is a discrete network, summed on a junction tree; the belief of x is
    the Gaussians' pieces with the masses of their cells (`Pieces`). Cost: the largest clique of cells and states.

    >>> import gramgraph as gg
    >>> from gramgraph.tree_sum import Node, TreeSum
    >>> from gramgraph.variables import binary, real
    >>> x, s = real("x"), binary("s")
    >>> step = TreeSum.of([[Node(0, 1.0, 1, 2), Node(value=-1.0), Node(value=1.0)]])
    >>> answer = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.Boosted(s, (x,), step)]).query("s")
    >>> round(answer["s"].prob("yes"), 6), answer.engine, answer.exact
    (0.342259, 'steps', True)
    """

    name = "steps"
    exact = True
    kinds = ("general",)

    def plan(self, model: GraphicalModel, question: Question) -> Plan:
        """The largest clique of cells; a `BudgetError` where it is too large, a `ModelError` where steps do not do."""
        model, question = relevant_question(model, question)
        cuts = _cuts(model, question.always)
        _check_joints(model, question)
        tree, sizes, _ = _planned(model, question, question.always, cuts)
        largest = max((len(clique) for clique in tree.cliques), default=0)
        return plan_of(self, len(model.vars), int(clique_entries(tree, sizes)), largest)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """The exact answer of all cases, one after the other."""
        model, question = relevant_question(model, question)
        _check_joints(model, question)
        scopes = CaseByCase.scopes(model, question)
        scores: dict[Any, FloatArray] = {}
        cases = solve_cases(question, run, lambda group: _Case(model, question, group, scores))
        details: dict[str, Any] = {"index": question.index}

        def belief(key: Key) -> Any:
            scope = scopes[key]
            if all(var.is_discrete for var in scope):
                return state_belief(scope, [case.states(scope) for case in cases], question)
            pieces = tuple(case.pieces(scope[0]) for case in cases)
            return DensityBelief(scope[0], pieces, batched=question.batched, diagnostics=details)

        return answer_of(self, model, question, [case.log_p for case in cases], belief, details)


def fits(model: GraphicalModel, question: Question) -> bool:
    """Whether steps can answer this."""
    if not any(isinstance(c, Boosted) for c in getattr(model, "conditionals", ())):
        return False
    try:
        Steps().plan(model, question)
    except (BudgetError, ModelError):
        return False
    return True


def _check_joints(model: Any, question: Question) -> None:
    for members in question.joints:
        if not all(model.vars[v].is_discrete for v in members):
            raise ModelError("engine 'steps' has joint beliefs of discrete variables only. Use engine='nodes'")


def _cuts(model: Any, known: Any) -> dict[Var, FloatArray]:
    """Free real variable → the thresholds of its children; a `ModelError` where something is no step function."""
    found: dict[Var, list[FloatArray]] = {
        var: [] for v, var in enumerate(model.vars) if v not in known and not var.is_discrete
    }
    for c in getattr(model, "conditionals", ()):
        free = [var for var in c.parents if var in found]
        if any(var.dimension > 1 for var in (c.child, *free) if not var.is_discrete):
            raise ModelError(f"engine 'steps' takes scalars; {c.child.name} or a parent of it is a vector")
        if isinstance(c, Boosted):
            for var in free:
                found[var].append(c.breakpoints(var.name))
        elif free or not _is_plain(c):
            raise ModelError(f"engine 'steps' takes boosted trees; {c.child.name} depends on its parents otherwise")
    return {var: np.unique(np.concatenate([np.zeros(0), *cuts])) for var, cuts in found.items()}


def _is_plain(c: Conditional) -> bool:
    """A table, a Gaussian with noise, or what is one of them when its real parents are observed."""
    if isinstance(c, (LinearGaussian, ConditionalLinearGaussian)):
        return bool((np.asarray(c.covariance)[..., 0, 0] > 0.0).all())
    if isinstance(c, (Softmax, Predictor)):
        return getattr(c, "residuals", None) is None
    return c.tabular and all(var.is_discrete for var in c.scope)


def _planned(
    model: Any, question: Question, known: Any, cuts: Mapping[Var, FloatArray]
) -> tuple[Tree, list[int], list[int]]:
    """The junction tree of what is free, the sizes of its variables, and the variables."""
    free = [v for v in range(len(model.vars)) if v not in known]
    place = {v: i for i, v in enumerate(free)}
    sizes = [model.vars[v].size if model.vars[v].is_discrete else len(cuts[model.vars[v]]) + 1 for v in free]
    scopes = [[place[u] for u in (*row, v) if u in place] for v, row in enumerate(model.parent_positions)]
    scopes += [[place[v] for v in members if v in place] for members in question.joints]
    tree = tree_of(len(free), scopes, sizes)
    entries = clique_entries(tree, sizes)
    if entries > LARGEST:
        largest = max(tree.cliques, key=lambda clique: np.prod([float(sizes[i]) for i in clique]))
        raise BudgetError(
            f"the cells of the boosted arrows make a table of {entries:.3g} entries",
            clique=tuple(model.vars[free[i]].name for i in largest),
            bytes=8.0 * entries,
            remedies=('quadrature with a stated error: engine="nodes"', 'draws: engine="likelihood_weighting"'),
        )
    return tree, sizes, free


class _Case:
    """One case, summed."""

    def __init__(self, model: Any, question: Question, group: Group, scores: dict[Any, FloatArray]) -> None:
        self.model, self._scores = model, scores
        self.known = known_values(model, group)
        seen = {model.positions[var.name] for var in self.known}
        self.cuts = _cuts(model, seen)
        self.tree, self.sizes, free = _planned(model, question, seen, self.cuts)
        self.place = {model.vars[v]: i for i, v in enumerate(free)}
        factors: list[tuple[Sequence[int], FloatArray]] = []
        constant = 0.0
        for c in model.conditionals:
            scope, logs = self._family(c)
            if scope:
                factors.append(([self.place[var] for var in scope], logs))
            else:
                constant += float(logs.reshape(()))
        self.beliefs, total = run_tree(self.tree, factors, self.sizes)
        self.log_p = constant + total

    # ------------------------------------------------------------------------------------------- families

    def _family(self, c: Conditional) -> tuple[tuple[Var, ...], FloatArray]:
        """log p(child | parents) on states and cells of what is free."""
        child_free = c.child in self.place
        if c.tabular and not isinstance(c, Boosted):
            at = tuple(int(self.known[var][0]) if var in self.known else slice(None) for var in c.scope)
            with np.errstate(divide="ignore"):
                return tuple(var for var in c.scope if var in self.place), np.log(np.asarray(c.table()[at]))
        parents = tuple(var for var in c.parents if var in self.place)
        shape = tuple(self.sizes[self.place[var]] for var in parents)
        if c.child.is_discrete:
            logs = log_shares(self._values(c, parents)) if isinstance(c, Boosted) else self._closed(c, parents)
            logs = logs.reshape(*shape, c.child.size)
            return ((*parents, c.child), logs) if child_free else (parents, logs[..., int(self.known[c.child][0])])
        mean, sd = (part.reshape(shape) for part in self._gaussians(c, parents))
        if not child_free:
            z = (float(self.known[c.child].reshape(-1)[0]) - mean) / sd
            return parents, np.asarray(-0.5 * (z * z + LOG_2PI) - np.log(sd))
        ends = self._ends(c.child)
        a, b = ((end - mean[..., None]) / sd[..., None] for end in ends)
        return (*parents, c.child), log_between(a, b)

    def _ends(self, var: Var) -> tuple[FloatArray, FloatArray]:
        cuts = self.cuts[var]
        return np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])

    def _values(self, c: Boosted, parents: tuple[Var, ...]) -> FloatArray:
        """Scores at all combinations of states and cells of the free parents; kept for cases that share them."""
        given = tuple((var.name, self.known[var].tobytes()) for var in c.parents if var in self.known)
        key = (c.child.name, given, tuple(var.name for var in parents))
        if key not in self._scores:
            axes = [np.arange(var.size) if var.is_discrete else _inside(self.cuts[var]) for var in parents]
            shape = [len(axis) for axis in axes]
            n = int(np.prod(shape)) if shape else 1
            index = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)
            values: dict[Var, Array] = {}
            for var in c.parents:
                if var in self.known:
                    values[var] = np.repeat(self.known[var], n, axis=0)
                else:
                    k = parents.index(var)
                    values[var] = axes[k][index[k]] if var.is_discrete else axes[k][index[k]][:, None]
            self._scores[key] = c.scores(values, n)
        return self._scores[key]

    def _closed(self, c: Conditional, parents: tuple[Var, ...]) -> FloatArray:
        made = closed_conditional(c, {v: x.reshape(-1) for v, x in self.known.items() if not v.is_discrete})
        if made is None:
            raise ModelError(f"engine 'steps' cannot close {c.child.name}")
        at = tuple(int(self.known[var][0]) if var in self.known else slice(None) for var in made.parents)
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(made.table()[at]))

    def _gaussians(self, c: Conditional, parents: tuple[Var, ...]) -> tuple[FloatArray, FloatArray]:
        """Means and deviations of a real child at all combinations of the free parents."""
        if isinstance(c, Boosted):
            assert c.noise is not None
            mean = self._values(c, parents)[:, 0]
            return mean, np.full(len(mean), c.noise)
        numbers = {v: x.reshape(-1) for v, x in self.known.items() if not v.is_discrete}
        if not isinstance(c, (LinearGaussian, ConditionalLinearGaussian)):
            made = closed_conditional(c, numbers)
            if not isinstance(made, (LinearGaussian, ConditionalLinearGaussian)):
                raise ModelError(f"engine 'steps' cannot close {c.child.name}")
            c = made
        x = np.concatenate([np.zeros(0), *(numbers[var] for var in c.parents if not var.is_discrete)])
        labelled = [var for var in c.parents if var.is_discrete]
        at = tuple(int(self.known[var][0]) if var in self.known else slice(None) for var in labelled)
        mean = (np.asarray(c.intercept) + np.asarray(c.coefficients) @ x)[(*at, ..., 0)]
        sd = np.sqrt(np.asarray(c.covariance)[(*at, ..., 0, 0)])
        return np.asarray(mean).ravel(), np.asarray(sd).ravel()

    # -------------------------------------------------------------------------------------------- beliefs

    def states(self, scope: tuple[Var, ...]) -> FloatArray:
        """Joint probabilities of discrete variables."""

        def joint(free: tuple[Var, ...]) -> FloatArray:
            return marginal(self.tree, self.beliefs, [self.place[var] for var in free])

        return state_table(scope, self.known, self.log_p, joint)

    def pieces(self, var: Var) -> Pieces:
        """The belief of one real variable: pieces of its Gaussians."""
        one = np.ones(1)
        if var in self.known:  # a value that is known: all the mass in a width of nothing
            x = self.known[var].reshape(-1)[:1].astype(np.float64)
            tiny = np.maximum(np.abs(x), 1.0) * 1e-12
            return Pieces(one, x, tiny, np.full(1, -np.inf), np.full(1, np.inf))
        c = self.model.conditionals[self.model.positions[var.name]]
        parents = tuple(p for p in c.parents if p in self.place)
        mean, sd = self._gaussians(c, parents)
        low, high = self._ends(var)
        k = len(low)
        p = np.full((len(mean), k), np.nan)
        if self.log_p > -np.inf:
            members = [self.place[v] for v in (*parents, var)]
            p = marginal(self.tree, self.beliefs, members).reshape(len(mean), k)
        return Pieces(
            p.ravel(), np.repeat(mean, k), np.repeat(sd, k), np.tile(low, len(mean)), np.tile(high, len(mean))
        )


def _inside(cuts: FloatArray) -> FloatArray:
    """A point inside each cell."""
    if not len(cuts):
        return np.zeros(1)
    ends = [cuts[0] - max(1.0, abs(cuts[0])), cuts[-1] + max(1.0, abs(cuts[-1]))]
    return np.concatenate([ends[:1], 0.5 * (cuts[:-1] + cuts[1:]), ends[1:]])
