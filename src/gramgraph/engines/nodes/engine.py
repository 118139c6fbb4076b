"""Any network of scalars by quadrature: nodes that follow the posterior, and an error that is part of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._validation import check_count
from gramgraph.answers import Key, RealAnswer
from gramgraph.answers.boxes import Boxes
from gramgraph.answers.density_belief import DensityBelief
from gramgraph.compile.plan import Plan, plan_of
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.mixed.silent import silent_parts
from gramgraph.engines.mixed.weighting import CaseByCase, LikelihoodWeighting
from gramgraph.engines.nodes.cases import (
    answer_of,
    fixed_values,
    known_values,
    refuse_functions_of_hidden,
    solve_cases,
    state_belief,
    state_table,
)
from gramgraph.engines.nodes.forms import form_of
from gramgraph.engines.nodes.grids import Grid, refined
from gramgraph.engines.nodes.messages import Tree, clique_entries, marginal, tree_of
from gramgraph.engines.nodes.messages import run as run_tree
from gramgraph.engines.prepare import relevant_question
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.questions.question import Group, Question
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Circle, Real, Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: Nodes of each variable, and how few there may be where cliques are large.
NODES, FEWEST = 64, 24
#: Entries of the largest clique, at most.
LARGEST = 1_200_000
#: Forward draws that say where to begin.
FIRST_DRAWS = 2000
PASSES = 12
#: The stated error is so many times the difference to the answer with half the nodes.
SAFETY = 4.0
#: There are more nodes while the stated error is above this, up to so many of a variable and entries of a clique.
GOAL, MOST, MOST_ENTRIES = 0.02, 256, 2_500_000
#: Passes at points that cut away what averages over boxes smeared beyond the posterior, where both agree on log p(e).
TRIMS, ALIKE = 3, 0.1


class Nodes(Engine):
    """Quadrature: a real variable stands on nodes with weights, each conditional is evaluated there by its own density,
    observed values enter as they are, and a junction tree sums over all nodes.

    One panel of nodes over draws from the prior comes first, with averages over boxes; panels then move to where the
    posterior has its mass, until they change no more. The last pass takes values at the nodes wherever the noise is
    wider than their distance, and converges faster than any power of their number; it cuts off what averages smeared,
    and there are more nodes while the stated error is above 0.02 and cliques stay small. `details` tell `node_error`:
    four times the difference to the answer with half the nodes, for log p(e) (`log_evidence_error`), means and
    probabilities (`standard_error`). Cost: nodes to the power of the largest clique, each pass.

    >>> import gramgraph as gg
    >>> from gramgraph.variables import binary, real
    >>> x, s = real("x"), binary("s")
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.conditionals.Softmax.logistic(s, (x,), [2.0])])
    >>> answer = net.query("x", {"s": "yes"}, engine="nodes")
    >>> round(answer.log_evidence, 6), bool(answer.details["log_evidence_error"] < 1e-4)
    (-0.693147, True)
    """

    name = "nodes"
    kinds = ("gaussian", "mixed", "general")
    options = ("n_nodes",)

    def __init__(self, *, n_nodes: int = NODES) -> None:
        check_count("n_nodes", n_nodes, least=8)
        self.n_nodes = int(n_nodes)

    def plan(self, model: GraphicalModel, question: Question) -> Plan:
        """The largest clique on nodes; a `BudgetError` where it is too large."""
        model, question = _asked(model, question)
        known = {*question.always, *(model.positions[var.name] for var in fixed_values(model))}
        tree, sizes, n = _planned(model, question, known, self.n_nodes)
        largest = max((len(clique) for clique in tree.cliques), default=0)
        return plan_of(self, len(model.vars), int(clique_entries(tree, sizes)), largest)

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Beliefs of all cases, one after the other."""
        model, question = _asked(model, question)
        scopes = CaseByCase.scopes(model, question)
        seed = run.random_state
        cases = solve_cases(
            question, run, lambda group: _Case(model, question, group, self.n_nodes, seed).solved(scopes)
        )
        one = not question.batched

        def told(values: list[Any]) -> Any:
            return values[0] if one and values else np.array(values)

        details: dict[str, Any] = {
            "index": question.index,
            "standard_error": {key: told([case.errors[key] for case in cases]) for key in scopes},
            "log_evidence_error": told([float(case.log_error) for case in cases]),
            "node_error": told([float(case.worst) for case in cases]),
            "passes": told([case.passes for case in cases]),
            "n_nodes": self.n_nodes,
        }

        def belief(key: Key) -> Any:
            return _belief(key, scopes[key], cases, question, details)

        return answer_of(self, model, question, [case.log_p for case in cases], belief, details)


def fits(model: GraphicalModel, question: Question) -> bool:
    """Whether nodes can answer this well: scalars with noise, and cliques that are not too large.

    A hidden variable that stands at points is known only as well as its boxes are narrow: draws serve it better.
    """
    try:
        Nodes().plan(model, question)
    except (BudgetError, ModelError):
        return False
    part, asked = relevant_question(model, question)
    for group in asked.groups():
        known = known_values(part, group) | fixed_values(part)
        if any(silent.child not in known for silent in silent_parts(part, known)):
            return False
    return True


def _asked(model: GraphicalModel, question: Question) -> tuple[GraphicalModel, Question]:
    """What is relevant of a network that nodes can answer about; a `ModelError` for others."""
    if getattr(model, "parent_positions", None) is None:
        raise ModelError("engine 'nodes' takes Bayesian networks; ask an undirected model with an exact engine")
    model, question = relevant_question(model, question)
    for group in question.groups():
        refuse_functions_of_hidden(model, group)
    return model, question


def _planned(model: Any, question: Question, known: Any, n: int) -> tuple[Tree, list[int], int]:
    """The junction tree of what is free, the sizes of its variables, and how many nodes fit."""
    free = [v for v in range(len(model.vars)) if v not in known]
    for v in free:
        var = model.vars[v]
        if not var.is_discrete and (not isinstance(var.domain, Real) or var.dimension != 1):
            raise ModelError(f"engine 'nodes' takes scalars; {var!r} is not observed. Use likelihood_weighting instead")
    place = {v: i for i, v in enumerate(free)}
    scopes = [[place[u] for u in (*row, v) if u in place] for v, row in enumerate(model.parent_positions)]
    scopes += [[place[v] for v in members if v in place] for members in question.joints]
    while True:
        sizes = [model.vars[v].size if model.vars[v].is_discrete else n for v in free]
        tree = tree_of(len(free), scopes, sizes)
        entries = clique_entries(tree, sizes)
        if entries <= LARGEST:
            return tree, sizes, n
        if n <= FEWEST:
            largest = max(tree.cliques, key=len)
            raise BudgetError(
                f"quadrature with {n} nodes needs a table of {entries:.3g} entries",
                clique=tuple(model.vars[free[i]].name for i in largest),
                bytes=8.0 * entries,
                remedies=('draws: engine="likelihood_weighting" or "gibbs"',),
            )
        n = max(int(n * 0.75) // 2 * 2, FEWEST)


class _Case:
    """One case: its grids, passes and results."""

    def __init__(self, model: Any, question: Question, group: Group, n: int, seed: Any) -> None:
        self.model, self.group = model, group
        observed = known_values(model, group)
        self.fixed = {var: x for var, x in fixed_values(model).items() if var not in observed}
        self.known = observed | self.fixed
        seen = {model.positions[var.name] for var in self.known}
        self.free = [v for v in range(len(model.vars)) if v not in seen]
        self.tree, _, self.n = _planned(model, question, seen, n)
        self.place = {model.vars[v]: i for i, v in enumerate(self.free)}
        self.seed = seed
        self.passes = 0
        self.log_p = self.log_error = 0.0
        self.errors: dict[Key, Any] = {}
        self.worst = 0.0
        self.result: _Result | None = None

    @property
    def lines(self) -> list[Var]:
        """Free real variables."""
        return [var for var in self.place if not var.is_discrete]

    def solved(self, scopes: Mapping[Key, tuple[Var, ...]]) -> _Case:
        """All passes, and the difference to half the nodes."""
        grids = self._first() if self.lines else {}
        result = self._pass(grids, rough=bool(grids))
        for self.passes in range(1, PASSES + 1):
            if not grids or result.log_p == -np.inf:
                break
            moved = {var: refined(grid, result.of((var,)), self.n) for var, grid in grids.items()}
            if not any(again for _, again in moved.values()):
                break
            grids = {var: grid for var, (grid, _) in moved.items()}
            result = self._pass(grids, rough=True)
        half: _Result | None = None
        if grids and result.log_p > -np.inf:
            grids, result = self._trimmed(grids, result.log_p)
            half = self._pass({var: grid.times(0.5) for var, grid in grids.items()}, rough=False)
            self._judge(result, half, scopes)
            while max(self.worst, self.log_error) > GOAL and (more := self._growth(grids)) is not None:
                grids = {var: grid.times(more) for var, grid in grids.items()}
                half, result = result, self._pass(grids, rough=False)
                self._judge(result, half, scopes)
        else:
            self._judge(result, None, scopes)
        self.log_p, self.result = result.log_p, result
        return self

    def _trimmed(self, grids: dict[Var, Grid], rough: float) -> tuple[dict[Var, Grid], _Result]:
        """Panels cut to where values at points have mass, and the last pass."""
        result = self._pass(grids, rough=False)
        for _ in range(TRIMS):
            if not abs(result.log_p - rough) < ALIKE:
                break
            moved = {var: refined(grid, result.of((var,)), self.n) for var, grid in grids.items()}
            if not any(again for _, again in moved.values()):
                break
            grids = {var: grid for var, (grid, _) in moved.items()}
            result = self._pass(grids, rough=False)
            self.passes += 1
        return grids, result

    def _growth(self, grids: dict[Var, Grid]) -> float | None:
        """How many times as many nodes the next pass has: two where cliques stay small, or what still fits."""
        if max(grid.size for grid in grids.values()) >= MOST:
            return None
        for more in (2.0, 1.5, 1.25):
            sizes = [var.size if var.is_discrete else grids[var].times(more).size for var in self.place]
            if clique_entries(self.tree, sizes) <= MOST_ENTRIES:
                return more
        return None

    def _first(self) -> dict[Var, Grid]:
        """Panels over draws from the prior."""
        model = self.model
        rng = np.random.default_rng(0 if self.seed is None else self.seed)
        nothing = Group(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((1, 0)), {})
        draws, _ = LikelihoodWeighting().weigh(model, nothing, FIRST_DRAWS, rng)
        return {var: Grid.around(var, np.asarray(draws[var])[:, 0], self.n) for var in self.lines}

    def _pass(self, grids: dict[Var, Grid], *, rough: bool) -> _Result:
        sizes = [var.size if var.is_discrete else grids[var].size for var in self.place]
        factors: list[tuple[Sequence[int], FloatArray]] = []
        constant = 0.0
        for c in self.model.conditionals:
            if c.child in self.fixed:
                continue
            form = form_of(c, grids, self.known, rough=rough)
            if form.scope:
                factors.append(([self.place[var] for var in form.scope], form.logs))
            else:
                constant += float(form.logs.reshape(()))
        beliefs, total = run_tree(self.tree, factors, sizes)
        return _Result(self.tree, beliefs, constant + total, grids, self.place)

    def _judge(self, result: _Result, half: _Result | None, scopes: Mapping[Key, tuple[Var, ...]]) -> None:
        """Errors stated: four times the difference to half the nodes."""
        self.worst = self.log_error = 0.0
        if half is not None:
            self.log_error = SAFETY * abs(half.log_p - result.log_p) if np.isfinite(half.log_p) else np.inf
        for key, scope in scopes.items():
            self.errors[key], relative = self._error(scope, result, half)
            self.worst = max(self.worst, relative)

    def _error(self, scope: tuple[Var, ...], result: _Result, half: _Result | None) -> tuple[Any, float]:
        """(error of mean or probabilities, its size in standard deviations or as it is)."""
        labelled = all(var.is_discrete for var in scope)
        shape = tuple(v.size for v in scope) if labelled else (sum(v.dimension for v in scope if not v.is_discrete),)
        if result.log_p == -np.inf:
            return np.full(shape, np.nan), 0.0
        free = tuple(var for var in scope if var in self.place)
        if half is None or not free:
            return np.zeros(shape), 0.0
        if not np.isfinite(half.log_p):
            return np.full(shape, np.inf), np.inf
        if labelled:
            error = np.zeros(shape)
            at = tuple(slice(None) if var in self.place else int(self.known[var][0]) for var in scope)
            error[at] = SAFETY * np.abs(half.of(free) - result.of(free))
            return error, float(error.max())
        errors, worst = [], 0.0
        for var in scope:
            if var.is_discrete or var not in self.place:
                errors += [0.0] * (0 if var.is_discrete else var.dimension)
                continue
            (mean, sd), (other, spread) = result.moments(var), half.moments(var)
            off = abs(np.angle(np.exp(1j * (mean - other)))) if result.grids[var].circle else abs(mean - other)
            errors.append(SAFETY * off)
            worst = max(worst, errors[-1] / max(sd, 1e-300), SAFETY * abs(sd - spread) / max(sd, 1e-300))
        return np.array(errors), worst


class _Result:
    """Beliefs of all cliques after one pass."""

    def __init__(
        self, tree: Tree, beliefs: list[FloatArray], log_p: float, grids: dict[Var, Grid], place: dict[Var, int]
    ) -> None:
        self.tree, self.beliefs, self.log_p, self.grids, self.place = tree, beliefs, log_p, grids, place
        self._kept: dict[tuple[Var, ...], FloatArray] = {}

    def of(self, scope: tuple[Var, ...]) -> FloatArray:
        """Joint masses of free variables."""
        if scope not in self._kept:
            self._kept[scope] = marginal(self.tree, self.beliefs, [self.place[var] for var in scope])
        return self._kept[scope]

    def moments(self, var: Var) -> tuple[float, float]:
        """Mean and standard deviation."""
        p, x = self.of((var,)), self.grids[var].x
        if self.grids[var].circle:
            z = complex(p @ np.exp(1j * x))
            return float(np.angle(z)), float(np.sqrt(-2.0 * np.log(min(max(abs(z), 1e-12), 1.0))))
        mean = float(p @ x)
        return mean, float(np.sqrt(p @ (x - mean) ** 2))


def _belief(key: Key, scope: tuple[Var, ...], cases: list[_Case], question: Question, details: dict[str, Any]) -> Any:
    """A table, a density on nodes, or weighted nodes of several variables."""
    if all(var.is_discrete for var in scope):
        return state_belief(scope, [_states(case, scope) for case in cases], question)
    if len(scope) == 1:
        return _on_nodes(scope[0], key, cases, question, details)
    if question.batched:
        raise ModelError("joint beliefs with real-valued variables are for one case at a time. Use a dict as evidence")
    values, w = _product(cases[0], scope)
    return CaseByCase.belief(key, scope, values, w, {**details, "standard_error": dict(details["standard_error"])})


def _states(case: _Case, scope: tuple[Var, ...]) -> FloatArray:
    assert case.result is not None
    return state_table(scope, case.known, case.log_p, case.result.of)


def _on_nodes(var: Var, key: Key, cases: list[_Case], question: Question, details: dict[str, Any]) -> DensityBelief:
    found = [_boxes(var, case) for case in cases]
    error = np.array([np.max(np.atleast_1d(case.errors[key]), initial=0.0) for case in cases])
    return DensityBelief(var, found, batched=question.batched, error=error, diagnostics=details)


def _boxes(var: Var, case: _Case) -> Boxes:
    circle = isinstance(var.domain, Circle)
    if var not in case.place:  # observed in this case
        x = np.array([float(case.known[var].reshape(-1)[0])])
        return Boxes(x, x, x, np.ones(1), circle)
    assert case.result is not None
    grid = case.result.grids[var]
    p = np.full(grid.size, np.nan) if case.log_p == -np.inf else case.result.of((var,))
    return Boxes(grid.x, grid.low, grid.high, p, circle)


def _product(case: _Case, scope: tuple[Var, ...]) -> tuple[dict[Var, Array], FloatArray]:
    """All combinations of nodes and states of several variables, with their masses."""
    assert case.result is not None
    free = tuple(var for var in scope if var in case.place)
    axes = [np.arange(var.size) if var.is_discrete else case.result.grids[var].x for var in free]
    shape = [len(axis) for axis in axes]
    n = int(np.prod(shape)) if shape else 1
    index = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)
    w = np.ones(1) if not free else case.result.of(free).ravel()
    if case.log_p == -np.inf:
        w = np.full(n, np.nan)
    values: dict[Var, Array] = {}
    for var in scope:
        if var in case.place:
            k = free.index(var)
            found = axes[k][index[k]]
            values[var] = found if var.is_discrete else found[:, None]
        else:
            values[var] = np.repeat(case.known[var], n, axis=0)
    return values, w
