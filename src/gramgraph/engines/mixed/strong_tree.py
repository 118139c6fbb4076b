"""Conditional-Gaussian networks exactly, by a strong junction tree.

Real variables are eliminated before discrete ones, so that toward the root every sum is over numbers and every
integral over one Gaussian a cell. Away from the root a separator may lose discrete variables while it keeps real
ones: there the mixture is replaced by the Gaussian with the same mean and covariance, which leaves all means,
variances and discrete probabilities exact (Lauritzen 1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.compile.budget import check_budget, readable
from gramgraph.conditionals import Conditional
from gramgraph.conditionals.continuous import draw_states
from gramgraph.engines.base import EngineError
from gramgraph.engines.exact.factor_tree import CliqueTree
from gramgraph.engines.gaussian.potential import Moments, Potential, components, product
from gramgraph.exceptions import ModelError
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.factors.log_table import log_sum_exp
from gramgraph.graphs import Digraph, topological_order
from gramgraph.models.layout import layout_of
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

_FINE = 4096.0  # cells of the mixture as which a real variable's belief is shown, at most


@dataclass(frozen=True, eq=False)
class StrongPlan:
    """The tree and what it costs, for one case."""

    tree: CliqueTree
    cases: int = 1

    @staticmethod
    def _size(clique: Sequence[Var]) -> tuple[float, int]:
        return prod(float(var.size) for var in clique if var.is_discrete), sum(
            var.dimension for var in clique if not var.is_discrete
        )

    @property
    def largest_clique(self) -> tuple[str, ...]:
        """Names of the variables of the clique that takes most memory."""
        return tuple(var.name for var in max(self.tree.cliques, key=lambda c: self._cost(c)[0]))

    def _cost(self, clique: Sequence[Var]) -> tuple[float, float]:
        """(bytes, operations) of a clique's potential."""
        cells, d = self._size(clique)
        return 8.0 * cells * (1 + d + d * d), cells * (1 + d) ** 3

    @property
    def width(self) -> int:
        """Number of variables of the widest clique, less one."""
        return self.tree.width

    @property
    def cells(self) -> float:
        """Cells of the largest table of Gaussians."""
        return max(self._size(clique)[0] for clique in self.tree.cliques)

    @property
    def bytes(self) -> float:
        """Potentials, messages and beliefs."""
        return 4.0 * self.cases * sum(self._cost(clique)[0] for clique in self.tree.cliques)

    @property
    def flops(self) -> float:
        """Operations of both passes, roughly."""
        return 4.0 * self.cases * sum(self._cost(clique)[1] for clique in self.tree.cliques)

    def check_budget(self, memory: float | None = None) -> None:
        """`BudgetError` where the plan does not fit."""
        check_budget(self.bytes, memory, self.largest_clique, self.cells)

    def __str__(self) -> str:
        return (
            f"strong junction tree: {len(self.tree.cliques)} cliques, width {self.width}, {self.cells:,.0f} Gaussians "
            f"in the largest, {self.flops:,.0f} operations, {readable(self.bytes)}\n"
            f"largest clique: {', '.join(self.largest_clique)}"
        )


def reference_point(model: GraphicalModel) -> FloatArray:
    """A point near the mean of every component: canonical numbers are kept relative to it, against cancellation."""
    found: FloatArray | None = model.plans.get(("lowered", "reference"))
    if found is None:
        layout = layout_of(model)
        found = np.zeros(layout.size)
        for v in topological_order(Digraph(model.parent_positions)):  # type: ignore[attr-defined]
            c: Any = model.conditionals[v]  # type: ignore[attr-defined]
            if not c.child.is_discrete:
                pa = layout.of([model.positions[p.name] for p in c.real_parents])
                mean = c.intercept + c.coefficients @ found[pa]
                found[layout.components(v)] = mean.reshape(-1, mean.shape[-1]).mean(axis=0)
        model.plans[("lowered", "reference")] = found
    return found


def potentials_of(
    model: GraphicalModel, states: dict[int, int], seen: IntArray, X: FloatArray
) -> tuple[list[Potential], FloatArray]:
    """One potential for each conditional, with the observations put in; and log factors of single cases.

    Real variables stand for their deviation from `reference_point`.
    """
    layout, origin = layout_of(model), reference_point(model)
    values: dict[Var, FloatArray] = {}
    for v in dict.fromkeys(layout.owner[seen].tolist()):
        order = np.argsort(seen[layout.owner[seen] == v])
        columns = np.flatnonzero(layout.owner[seen] == v)[order]
        values[model.vars[v]] = X[:, columns] - origin[layout.components(v)]
    codes = {model.vars[v]: code for v, code in states.items()}
    scale = np.zeros(len(X))
    conditionals: tuple[Any, ...] = model.conditionals  # type: ignore[attr-defined]
    for c in conditionals:
        if not c.child.is_discrete and not c.parents and not c.covariance.any():  # set by an intervention
            fixed = (c.intercept - origin[layout.components(model.positions[c.child.name])])[None]
            if c.child in values:
                scale = np.where(np.abs(values[c.child] - fixed).max(axis=1) <= 1e-12, scale, -np.inf)
            values[c.child] = np.broadcast_to(fixed, (len(X), fixed.shape[1]))
    made = []
    for c in conditionals:
        if c.child.is_discrete:
            made.append(_from_table(c, codes))
        elif c.parents or c.covariance.any():
            at = {var: origin[layout.components(model.positions[var.name])] for var in (c.child, *c.real_parents)}
            made.append(_from_linear(c, codes, values, at))
    return made, scale


def _from_table(c: Conditional, codes: dict[Var, int]) -> Potential:
    index = tuple(codes.get(var, slice(None)) for var in c.scope)
    left = tuple(var for var in c.scope if var not in codes)
    with np.errstate(divide="ignore"):
        g = np.log(c.table()[index])[None]
    return Potential(left, (), g, np.zeros((*g.shape[1:], 0, 0)), np.zeros((1, *g.shape[1:], 0)))


def _from_linear(
    c: Any, codes: dict[Var, int], values: dict[Var, FloatArray], origin: dict[Var, FloatArray]
) -> Potential:
    index = tuple(codes.get(var, slice(None)) for var in c.discrete_parents)
    labelled = tuple(var for var in c.discrete_parents if var not in codes)
    W, S = c.coefficients[index], c.covariance[index]
    shift = np.concatenate([origin[var] for var in c.real_parents]) if c.real_parents else np.zeros(0)
    b = c.intercept[index] + W @ shift - origin[c.child]
    k = b.shape[-1]
    try:
        L = np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        raise ModelError(
            f"{c.child.name} has no noise in some configuration: the strong tree needs positive variances; ask with "
            "engine='mixture'"
        ) from None
    scope = (*c.real_parents, c.child)
    M = np.concatenate([-W, np.broadcast_to(np.eye(k), (*W.shape[:-1], k))], axis=-1)  # child − W x − b is the noise
    M, r = np.linalg.solve(L, M), np.linalg.solve(L, b[..., None])[..., 0]  # whitened: noise = M x − r
    free = tuple(var for var in scope if var not in values)
    known = [var for var in scope if var in values]
    r = r[None]
    if known:
        x = np.concatenate([values[var] for var in known], axis=1)
        r = r - np.einsum("...ko,bo->b...k", M[..., components(scope, known)], x)
    log_det = np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    g = (-log_det - 0.5 * k * LOG_2PI)[None]
    return Potential(labelled, free, g, M[..., components(scope, free)], r).plain()


def strong_plan(
    model: GraphicalModel, states: dict[int, int], seen: IntArray, joints: Sequence[Sequence[Var]] = (), cases: int = 1
) -> StrongPlan:
    """The tree for these observed variables, without numbers; an `EngineError` for undirected models."""
    if getattr(model, "parent_positions", None) is None:
        raise EngineError(
            "engine 'strong_tree' takes Bayesian networks; ask an undirected model with engine='dense', 'sparse' or "
            "'junction_tree'"
        )
    layout = layout_of(model)
    gone = {model.vars[v] for v in (*states, *layout.owner[seen].tolist())}
    scopes = [tuple(v for v in c.scope if v not in gone) for c in model.conditionals]  # type: ignore[attr-defined]
    scopes += [tuple(v for v in joint if v not in gone) for joint in joints]
    return _plan(scopes, cases)


def _plan(scopes: Sequence[tuple[Var, ...]], cases: int) -> StrongPlan:
    every = tuple(dict.fromkeys(var for scope in scopes for var in scope))
    stages = ([v for v in every if not v.is_discrete], [v for v in every if v.is_discrete])
    return StrongPlan(CliqueTree.build(scopes, stages), cases)


class StrongTree:
    """A strong junction tree with the numbers of cases that share their observed variables and states."""

    def __init__(
        self, parts: Sequence[Potential], scale: FloatArray, joints: Sequence[Sequence[Var]] = (), *, best: bool = False
    ) -> None:
        scopes = [f.scope for f in parts]
        extra = [tuple(joint) for joint in joints if joint]
        self.plan = _plan([*scopes, *extra], len(scale))
        self.best = best
        tree = self.tree = self.plan.tree
        boxes: list[list[Potential]] = [[] for _ in tree.cliques]
        for home, f in zip(tree.homes, parts, strict=False):
            boxes[home].append(f)
        self.regressions: list[Any] = [None] * len(boxes)  # of a clique's own real variables on its separator's
        self.tables: list[Any] = [None] * len(boxes)  # what is left after they are gone
        self.up: list[Any] = [None] * len(boxes)
        for i in reversed(range(len(boxes))):
            labelled = tuple(var for var in tree.cliques[i] if var.is_discrete)
            real = tuple(var for var in tree.cliques[i] if not var.is_discrete)
            whole = product(boxes[i], labelled, real)
            own = [var for var in real if var not in tree.separators[i]]
            rest, self.regressions[i] = whole.eliminate(own, best=best)
            self.tables[i] = rest.plain()
            self.up[i] = self.tables[i].summed(tree.separators[i], best=best)
            if tree.parents[i] >= 0:
                boxes[tree.parents[i]].append(self.up[i])
        self.log_z = np.broadcast_to(self.up[0].g, scale.shape) + scale

    @cached_property
    def beliefs(self) -> list[Moments]:
        """Each clique's joint, with exact moments: a separator's moments, extended by the clique's regression."""
        out: list[Moments] = []
        for i, (parent, keep) in enumerate(zip(self.tree.parents, self.tree.separators, strict=True)):
            table, found = self.tables[i], self.regressions[i]
            if parent >= 0 and any(not var.is_discrete for var in keep):  # no discrete variable is new here
                known = out[parent].only([var for var in keep if not var.is_discrete]).collapse(keep)
                known = known.ordered(table.labelled)
                out.append(known.extended(found, known.w))
                continue
            w = table.g
            if parent >= 0:
                old, new = self.up[i], out[parent].only(()).collapse(keep).ordered(self.up[i].labelled)
                axes = [1 + j for j, var in enumerate(table.labelled) if var not in old.labelled]
                ratio = np.where(np.isneginf(new.w), -np.inf, new.w - np.where(np.isneginf(old.g), 0.0, old.g))
                order = [old.labelled.index(var) for var in table.labelled if var in old.labelled]
                w = w + np.expand_dims(ratio.transpose(0, *(1 + j for j in order)), axes)
            sizes = w.shape[1:]
            nothing = Moments(table.labelled, (), w, np.zeros((1, *sizes, 0)), np.zeros((1, *sizes, 0, 0)))
            out.append(nothing.extended(found, w))
        return out

    def moments(self, scope: Sequence[Var]) -> Moments:
        """Cells of a clique that holds the variables; real variables outside them integrated out.

        Any such clique has the right moments. For discrete variables the smallest is taken, for real ones that with
        most cells (up to some thousand): a finer mixture is nearer to the true density.
        """
        reals = [var for var in scope if not var.is_discrete]

        def rank(i: int) -> tuple[float, int]:
            cells = prod(float(v.size) for v in self.tree.cliques[i] if v.is_discrete)
            return (-cells if reals and cells <= _FINE else cells), i

        i = min((i for i, clique in enumerate(self.tree.cliques) if all(var in clique for var in scope)), key=rank)
        return self.beliefs[i].only(reals)

    def decode(self, rng: np.random.Generator | None, n: int) -> dict[Var, Any]:
        """Values of all variables from the root on: the best ones, or (with `rng`) draws; n cases."""
        at: dict[Var, Any] = {}
        rows = np.arange(n)
        for table, found in zip(self.tables, self.regressions, strict=True):
            free = tuple(var for var in table.labelled if var not in at)
            if free:
                index = tuple(at.get(var, slice(None)) for var in table.labelled)
                case = rows if len(table.g) == n else np.zeros(n, np.int64)
                logs = _pick(table.g, case, index).reshape(n, -1)
                chosen = logs.argmax(axis=1) if rng is None else _draw_logs(logs, rng)
                for var, code in zip(free, np.unravel_index(chosen, tuple(v.size for v in free)), strict=True):
                    at[var] = code
            if found.out:
                cell = tuple(at[var] for var in table.labelled)
                z = found.z[(rows if len(found.z) == n else np.zeros(n, np.int64), *cell)]
                T, U = (np.broadcast_to(a[cell], (n, *a.shape[-2:])) for a in (found.T, found.U))
                if found.given:
                    z = z - np.einsum("nij,nj->ni", U, np.concatenate([at[var] for var in found.given], axis=1))
                if rng is not None:
                    z = z + rng.standard_normal(z.shape)
                x, start = np.linalg.solve(T, z[..., None])[..., 0], 0
                for var in found.out:
                    at[var] = x[:, start : start + var.dimension]
                    start += var.dimension
        return at


def _pick(a: FloatArray, case: IntArray, index: tuple[Any, ...]) -> FloatArray:
    """a[case, index...] with the case axis kept in front whatever numpy does with mixed indices."""
    fancy = [i for i, part in enumerate(index) if not isinstance(part, slice)]
    moved = np.moveaxis(a, [1 + i for i in fancy], range(1, 1 + len(fancy)))
    return np.asarray(moved[(case, *(index[i] for i in fancy))])


def _draw_logs(logs: FloatArray, rng: np.random.Generator) -> IntArray:
    return draw_states(np.exp(logs - log_sum_exp(logs, (1,))[:, None]), rng)
