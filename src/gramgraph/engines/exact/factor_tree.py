"""The junction tree over the factor algebra: readable, not fast. The reference of the compiled one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.engines.base import PLAIN, Best, Drawn, Engine, Run
from gramgraph.engines.exact.contraction import elimination_cliques, table_size
from gramgraph.engines.exact.elimination import Sources
from gramgraph.engines.exact.sheet import Observed, Sheet, check_tables, model_factors, solved_in_range
from gramgraph.factors import Factor, TableFactor
from gramgraph.factors.log_table import LogTable
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var

F = TypeVar("F", bound=Factor)


@dataclass(frozen=True)
class CliqueTree:
    """Cliques of a triangulated graph in a tree; parents stand before their children, the root is clique 0.

    A variable's cliques are connected (running intersection): what a clique shares with its parent, the separator,
    is all that it shares with the rest. Parts of the graph that are not connected hang together by empty separators.
    """

    cliques: tuple[tuple[Var, ...], ...]
    parents: tuple[int, ...]  # -1 for the root
    separators: tuple[tuple[Var, ...], ...]
    homes: tuple[int, ...]  # clique of each scope

    @classmethod
    def build(cls, scopes: Sequence[tuple[Var, ...]], stages: Sequence[Collection[Var]] | None = None) -> CliqueTree:
        """Eliminate greedily; then, from the last variable to the first, its neighbors either fill the clique they
        stand in, which the variable joins, or it starts a new clique there. With `stages`, the variables of earlier
        stages go first: of real variables before discrete ones a strong tree results."""
        order = elimination_cliques(scopes, stages)
        rank = {var: i for i, (var, _) in enumerate(order)}
        home: dict[Var, int] = {}
        cliques: list[list[Var]] = []
        parents: list[int] = []
        separators: list[tuple[Var, ...]] = []
        for var, near in reversed(order):
            parent = home[min(near, key=rank.__getitem__)] if near else -1
            if near and len(cliques[parent]) == len(near):
                cliques[parent].append(var)
                home[var] = parent
                continue
            home[var] = len(cliques)
            parents.append(parent if near or not cliques else 0)
            separators.append(near)
            cliques.append([*near, var])
        if not cliques:
            cliques, parents, separators = [[]], [-1], [()]
        homes = tuple(home[min(scope, key=rank.__getitem__)] if scope else 0 for scope in scopes)
        return cls(tuple(map(tuple, cliques)), tuple(parents), tuple(separators), homes)

    @property
    def largest_clique(self) -> tuple[str, ...]:
        """Names of the variables of the largest clique."""
        return tuple(var.name for var in max(self.cliques, key=table_size))

    @property
    def width(self) -> int:
        """Number of variables of the widest clique, less one."""
        return max(len(clique) for clique in self.cliques) - 1

    @property
    def bytes(self) -> int:
        """Potentials and both directions of messages, and the clique that is being worked on."""
        cells = sum(map(table_size, self.cliques)) + 2 * sum(map(table_size, self.separators))
        return 8 * (cells + 2 * max(map(table_size, self.cliques)))

    @property
    def flops(self) -> int:
        """Multiplications and additions of one case."""
        degree = [1] * len(self.cliques)
        for child, parent in enumerate(self.parents):
            degree[child] += 1
            if parent >= 0:
                degree[parent] += 1
        return sum(2 * d * table_size(clique) for d, clique in zip(degree, self.cliques, strict=True))

    def __str__(self) -> str:
        return (
            f"factor tree: {len(self.cliques)} cliques, width {self.width}, {self.flops:,} operations, "
            f"{self.bytes:,} bytes\nlargest clique: {', '.join(self.largest_clique)}"
        )


Project = Callable[[F, tuple[Var, ...]], F]


class Calibrated(Generic[F]):
    """A clique tree with the messages of one case (Shafer and Shenoy: messages are kept, nothing is divided).

    `project(factor, out)` takes variables out of a factor: a sum for beliefs, a maximum for max-marginals.
    """

    def __init__(self, tree: CliqueTree, factors: Sequence[F], unit: F, project: Project[F]) -> None:
        self.tree = tree
        self.unit = unit
        self._project = project
        potentials = [unit] * len(tree.cliques)
        for home, factor in zip(tree.homes, factors, strict=True):
            potentials[home] = _times(potentials[home], factor, unit)
        self.potentials = potentials
        self._children: list[list[int]] = [[] for _ in tree.cliques]
        for child, parent in enumerate(tree.parents):
            if parent >= 0:
                self._children[parent].append(child)
        self.up: list[F] = self.collect(())
        self._down: list[F] | None = None

    def collect(self, keep: Sequence[Var]) -> list[F]:
        """The messages toward the root, in which the variables `keep` are carried along; entry 0 is what the root
        itself would send to a parent: the joint of `keep`."""
        messages = [self.unit] * len(self.tree.cliques)
        for i in reversed(range(len(messages))):
            made = self.potentials[i]
            for child in self._children[i]:
                made = _times(made, messages[child], self.unit)
            messages[i] = self._toward(made, (*self.tree.separators[i], *keep))
        return messages

    @property
    def down(self) -> list[F]:
        """The messages away from the root; products over all siblings but one are made from both ends."""
        if self._down is None:
            down = [self.unit] * len(self.tree.cliques)
            for i, children in enumerate(self._children):
                after = [self.unit]
                for child in reversed(children):
                    after.append(_times(after[-1], self.up[child], self.unit))
                before = _times(self.potentials[i], down[i], self.unit)
                for position, child in enumerate(children):
                    rest = after[len(children) - 1 - position]
                    down[child] = self._toward(_times(before, rest, self.unit), self.tree.separators[child])
                    before = _times(before, self.up[child], self.unit)
            self._down = down
        return self._down

    def belief(self, i: int) -> F:
        """Potential times all messages into clique i: the (max-)marginal of its variables, not normalized."""
        made = _times(self.potentials[i], self.down[i], self.unit)
        for child in self._children[i]:
            made = _times(made, self.up[child], self.unit)
        return made

    def marginal(self, scope: tuple[Var, ...]) -> F:
        """The (max-)marginal of any set of variables: from one clique where it fits, else by a collection that
        carries the set along."""
        inside = [i for i, clique in enumerate(self.tree.cliques) if all(var in clique for var in scope)]
        if not inside:
            return self.collect(scope)[0]
        made = self.belief(min(inside, key=lambda i: (table_size(self.tree.cliques[i]), i)))
        return self._toward(made, scope)

    def _toward(self, factor: F, keep: Sequence[Var]) -> F:
        out = tuple(var for var in factor.scope if var not in keep)
        return self._project(factor, out) if out else factor


def _sum_out(table: Any, out: tuple[Var, ...]) -> Any:
    return table.marginalize(out)


def max_out(table: LogTable, out: tuple[Var, ...]) -> LogTable:
    """max over `out`, the projection of max-sum."""
    return table.maximize(out)


def _times(a: F, b: F, unit: F) -> F:
    if a is unit:
        return b
    return a if b is unit else a.product(b)


class FactorTree(Engine):
    """Exact answers by messages on a tree of cliques, through nothing but the factor algebra.

    One tree serves all cases: observed variables leave the factors, hence the messages. Cost: two passes of
    clique-sized tables a case, all marginals from one of them. With `log_space`, and where small numbers may be lost
    otherwise, the tables hold logarithms: slower, and right for any ratio of numbers.

    >>> from gramgraph.conditionals import Table
    >>> from gramgraph.models import BayesianNetwork
    >>> from gramgraph.variables import binary
    >>> rain, wet = binary("rain"), binary("wet")
    >>> cpds = [Table(rain, (), np.array([0.8, 0.2])), Table(wet, (rain,), np.array([[0.9, 0.1], [0.2, 0.8]]))]
    >>> net = BayesianNetwork.from_parts([rain, wet], cpds)
    >>> ans = FactorTree().answer(net, Question((0, 1), (), (), np.zeros((1, 0), int)))
    >>> ans["wet"].probabilities.round(3).tolist()
    [0.76, 0.24]
    """

    name = "factor_tree"
    exact = True

    def __init__(self, *, log_space: bool = False) -> None:
        self.log_space = log_space

    def plan(self, model: GraphicalModel, question: Question) -> CliqueTree:
        """The tree, which does not depend on the evidence."""
        return CliqueTree.build([factor.scope for factor in model_factors(model)])

    def answer(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Answer:
        """Beliefs and log p(evidence) of every case."""
        factors = model_factors(model)
        tree = CliqueTree.build([factor.scope for factor in factors])
        check_tables(tree.bytes, run.memory, max(tree.cliques, key=table_size))
        sheet = Sheet(model, question)
        logs = self.log_space or needs_logs(lower(model), question)
        for case in range(question.n_cases):
            observed = Observed.of(model, question, case)
            _, logs = solved_in_range(partial(_solve, tree, factors, observed, sheet, case), logs)
        return sheet.answer(engine=self.name)

    def best(self, model: GraphicalModel, question: Question, run: Run = PLAIN) -> Best:
        """Most probable full assignment of every case, (cases, variables), and its log probability with the evidence.

        Max-sum toward the root in log space, then each clique picks its best states given those of its parent. A
        case of probability zero has codes -1 and -inf.
        """
        factors = Sources.of(model, maximum=True).factors
        tree = CliqueTree.build([factor.scope for factor in factors])
        check_tables(tree.bytes, run.memory, max(tree.cliques, key=table_size))
        codes = np.full((question.n_cases, len(model)), -1, dtype=np.int64)
        best = np.full(question.n_cases, -np.inf)
        for case in range(question.n_cases):
            observed = Observed.of(model, question, case)
            calibrated = Calibrated(tree, _reduced_logs(factors, observed), LogTable.unit(), max_out)
            best[case] = float(calibrated.up[0].logs)
            if best[case] > -np.inf:
                at = observed.hard | best_states(calibrated)
                codes[case] = [at[var] for var in model.vars]
        return Best(codes, best, best)

    def draw(self, model: GraphicalModel, question: Question, n: int, run: Run = PLAIN) -> Drawn:
        """n exact draws of all variables given one case of evidence; in logarithms."""
        factors = model_factors(model)
        tree = CliqueTree.build([factor.scope for factor in factors])
        check_tables(tree.bytes, run.memory, max(tree.cliques, key=table_size))
        observed = Observed.of(model, question, 0)
        calibrated = Calibrated(tree, _reduced_logs(factors, observed), LogTable.unit(), _sum_out)
        log_z = calibrated.up[0].normalize()[1]
        if log_z == -np.inf:
            return Drawn(np.zeros((n, len(model)), np.int64), log_z)
        at = {var: np.full(n, code) for var, code in observed.hard.items()} | _drawn(calibrated, n, run.generator)
        return Drawn(np.stack([at[var] for var in model.vars], axis=1), log_z)


def _solve(
    tree: CliqueTree, factors: Sequence[TableFactor], observed: Observed, sheet: Sheet, case: int, logs: bool
) -> None:
    """Answer one case."""
    calibrated: Calibrated[Any]
    if logs:
        calibrated = Calibrated(tree, _reduced_logs(factors, observed), LogTable.unit(), _sum_out)
    else:
        calibrated = Calibrated(tree, _reduced(factors, observed), TableFactor.unit(), _sum_out)
    _, log_z = calibrated.up[0].normalize()
    if log_z == -np.inf:
        return

    def belief(scope: tuple[Var, ...]) -> FloatArray:
        made = calibrated.marginal(scope).normalize()[0]
        table = made.to_table() if isinstance(made, LogTable) else made
        return table.reorder(scope).normalize()[0].values

    sheet.fill(case, log_z, observed.hard, belief)


def _drawn(calibrated: Calibrated[LogTable], n: int, rng: np.random.Generator) -> dict[Var, IntArray]:
    """n states of every unobserved variable: from the root on, each clique given what its parent drew."""
    at: dict[Var, IntArray] = {}
    for i in range(len(calibrated.tree.cliques)):
        made = calibrated.potentials[i]
        for child in calibrated._children[i]:
            made = made.product(calibrated.up[child])
        known = [var for var in made.scope if var in at]
        new = [var for var in made.scope if var not in at]
        if not new:
            continue
        logs = made.logs.transpose([made.scope.index(var) for var in (*known, *new)]).reshape(table_size(known), -1)
        tops = logs.max(axis=1, keepdims=True)
        sums = np.exp(logs - np.where(np.isfinite(tops), tops, 0.0)).cumsum(axis=1)
        row = np.zeros(n, np.int64)
        for var in known:
            row = row * var.size + at[var]
        goal = rng.random(n) * sums[row, -1]
        chosen = (sums[row] <= goal[:, None]).sum(axis=1)
        drawn = np.unravel_index(chosen, [var.size for var in new])
        at |= {var: np.asarray(states, np.int64) for var, states in zip(new, drawn, strict=True)}
    return at


def _reduced_logs(factors: Sequence[TableFactor], observed: Observed) -> list[LogTable]:
    """`_reduced` in logarithms, which no likelihood is too small for."""
    out = [LogTable.from_table(factor).condition(observed.hard) for factor in factors]
    for weights in observed.soft_logs:
        k = next(k for k, factor in enumerate(factors) if weights.scope[0] in factor.scope)
        out[k] = out[k].product(weights.condition(observed.hard))
    return out


def _reduced(factors: Sequence[TableFactor], observed: Observed) -> list[TableFactor]:
    """The conditioned factors, each likelihood multiplied into the first factor that holds its variable."""
    out = [factor.condition(observed.hard) for factor in factors]
    for weights in observed.soft:
        k = next(k for k, factor in enumerate(factors) if weights.scope[0] in factor.scope)
        out[k] = out[k].product(weights.condition(observed.hard))
    return out


def best_states(calibrated: Calibrated[LogTable]) -> dict[Var, int]:
    """States of all unobserved variables in a tree of maxima: from the root on, each clique given its parent."""
    at: dict[Var, int] = {}
    for i in range(len(calibrated.tree.cliques)):
        made = calibrated.potentials[i].condition(at)
        for child in calibrated._children[i]:
            made = made.product(calibrated.up[child].condition(at))
        at |= made.argmax()
    return at
