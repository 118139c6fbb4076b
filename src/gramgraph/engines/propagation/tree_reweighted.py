"""Tree-reweighted belief propagation: an upper bound on log p(evidence) that holds whether or not it converged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.messages.loopy_run import message_places
from gramgraph.engines.anytime import Found, How, SweepEngine, never
from gramgraph.engines.approximate import Cases, between, whole
from gramgraph.engines.slices import Sliced, possible_messages, show_observed, slice_case
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, RandomState

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

OPTIONS = ("damping", "max_iter", "tol", "n_trees")
DAMPING, MAX_ITER, TOL, TREES = 0.3, 200, 1e-7, 16
#: Entries of ψ^(1/ρ) that are possible are not let below this; raising them can only raise the bound.
FLOOR = 1e-100
#: Powers of the messages with which the bound is evaluated: any messages give one, milder ones where doubles run out.
MILDER = (1.0, 0.5, 0.2, 0.05, 0.0)


class TreeReweighted(SweepEngine):
    """log p(e) is below the mean of log Z over forests whose parameters average to those of the model.

    Forests of whole factors are drawn until each factor is in some; ρ_f is the share of forests that hold factor f.
    Messages (m(f→v) of ψ^(1/ρ), weighted by ρ at the variables) then lower the bound, which is evaluated exactly on
    every forest: any messages give a true bound, converged ones the best of these forests. `log_evidence` is the bound.
    Cost: O(cells) a sweep, and O(cells) for each of `n_trees` forests at the end.

    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> bound = net.query("lung", {"xray": "yes"}, engine="trw").log_evidence
    >>> bound >= net.log_evidence({"xray": "yes"}) - 1e-12  # but for rounding
    True
    """

    name = "trw"
    options = OPTIONS

    def settings(self, model: GraphicalModel) -> tuple[Any, int]:
        """The options after a check, and how many sweeps there are at most."""
        made = _settings(self.given)
        return made, made[1]

    def run(self, model: GraphicalModel, question: Question, how: How) -> Found:
        """Beliefs and log p(evidence), or a bound of it, for every case."""
        return _run(model, question, how.settings, how.rng, how.stop)


def upper_bound(
    model: GraphicalModel, question: Question, random_state: RandomState = 0, stop: Array | None = None
) -> FloatArray:
    """A number above log p(evidence) for every case."""
    rng, flag = np.random.default_rng(random_state), never() if stop is None else stop
    return _run(model, question, (DAMPING, MAX_ITER, TOL, TREES), rng, flag)[2]


def _settings(options: dict[str, Any]) -> tuple[float, int, float, int]:
    return (
        between("damping", options.get("damping", DAMPING), 0.0, 1.0),
        whole("max_iter", options.get("max_iter", MAX_ITER)),
        between("tol", options.get("tol", TOL), 0.0, 1.0),
        whole("n_trees", options.get("n_trees", TREES)),
    )


def _run(
    model: GraphicalModel,
    question: Question,
    settings: tuple[float, int, float, int],
    rng: np.random.Generator,
    stop: Array,
) -> Found:
    cases = Cases.of(model, question)
    n = question.n_cases
    beliefs, log_z = np.full((n, int(cases.unary_ptr[-1])), np.nan), np.full(n, -np.inf)
    converged, trees = np.ones(n, np.bool_), np.zeros(n, np.int64)
    residuals = np.zeros(0)
    for case in range(n):
        part = slice_case(cases, case)
        if part.constant == -np.inf:
            continue
        part = merged(cases, part)
        inside = _forests(cases, part, settings[3], rng)
        trees[case] = len(inside)
        found = _bound(cases, part, inside, settings, stop)
        if found is None:
            continue
        beliefs[case], bound, residuals, converged[case] = found
        log_z[case] = bound + part.constant + cases.low.log_scale
        show_observed(cases, case, beliefs)
    details: dict[str, Any] = {"upper_bound": log_z, "converged": converged, "n_trees": trees}
    if not question.batched:
        details = {key: value[0].item() for key, value in details.items()}
        details |= {"residuals": residuals, "sweeps": len(residuals)}
    return cases, beliefs, log_z, details


def merged(cases: Cases, part: Sliced, *, logarithms: bool = False) -> Sliced:
    """The same product with each factor inside a larger one multiplied into it, and single variables into unaries.

    Fewer factors in the way of each other make heavier forests, hence a lower bound. With `logarithms`, values and
    unaries are logarithms, which are added.
    """
    from gramgraph._numerics.messages.loopy import edges_of, factor_of_edges

    sizes, combine = cases.low.sizes, np.add if logarithms else np.multiply
    unary = part.unary.copy()
    count = np.diff(part.scope_ptr)
    scopes: list[tuple[int, ...]] = []
    tables: list[FloatArray] = []
    homes: dict[int, list[int]] = {}  # variable → kept factors that hold it
    for f in np.argsort(-count, kind="stable"):
        scope = tuple(int(v) for v in part.scope_idx[part.scope_ptr[f] : part.scope_ptr[f + 1]])
        table = part.values[part.value_ptr[f] : part.value_ptr[f + 1]].reshape([int(sizes[v]) for v in scope])
        if len(scope) == 1:
            at = cases.unary_ptr[scope[0]]
            own = unary[at : at + len(table)]
            combine(own, table, out=own)
            continue
        members = set(scope)
        rarest = min(scope, key=lambda v: len(homes.get(v, ())))
        host = next((h for h in homes.get(rarest, ()) if members.issubset(scopes[h])), None)
        if host is None:
            for v in scope:
                homes.setdefault(v, []).append(len(scopes))
            scopes.append(scope)
            tables.append(table)
        else:
            order = [scope.index(v) for v in scopes[host] if v in members]
            shape = [int(sizes[v]) if v in members else 1 for v in scopes[host]]
            tables[host] = combine(tables[host], table.transpose(order).reshape(shape))
    ptr = np.concatenate([[0], np.cumsum([len(s) for s in scopes])]).astype(np.int64)
    idx = np.array([v for scope in scopes for v in scope], np.int64)
    value_ptr = np.concatenate([[0], np.cumsum([t.size for t in tables])]).astype(np.int64)
    values = np.concatenate([t.reshape(-1) for t in tables]) if tables else np.zeros(0)
    var_ptr, var_edge = edges_of(idx, len(sizes))
    return part._replace(
        scope_ptr=ptr,
        scope_idx=idx,
        value_ptr=value_ptr,
        values=values,
        unary=unary,
        var_ptr=var_ptr,
        var_edge=var_edge,
        edge_factor=factor_of_edges(ptr),
        msg_ptr=message_places(idx, sizes),
    )


def _forests(cases: Cases, part: Sliced, at_least: int, rng: np.random.Generator) -> Array:
    """(forests, factors) which factors each forest holds; the least used ones come first, and none is left out."""
    from gramgraph._numerics.messages.forests import grow_forest

    n = len(part.scope_ptr) - 1
    used = np.zeros(n, np.int64)
    found: list[Array] = []
    while len(found) < at_least or (n and used.min() == 0):
        inside = np.zeros(n, np.bool_)
        grow_forest(part.scope_ptr, part.scope_idx, np.lexsort((rng.random(n), used)), len(cases.low.sizes), inside)
        found.append(inside)
        used += inside
        if inside.all():  # the model is a forest: one is enough
            return inside[None]
    return np.array(found).reshape(len(found), n)


def _bound(
    cases: Cases, part: Sliced, inside: Array, settings: tuple[float, int, float, int], stop: Array
) -> tuple[FloatArray, float, FloatArray, bool] | None:
    """(beliefs, bound, residuals, converged); None when the zeros of the tables leave no state to some variable."""
    from gramgraph._numerics.messages.mean_field import forest_log_z, reweighted, weighted_logs

    # zeros that leave every variable a state leave every forest one: a forest without any is out of range, not empty
    damping, max_iter, tol, _ = settings
    sizes, at = cases.low.sizes, cases.unary_ptr
    rho = np.asarray(inside.mean(axis=0))
    to_var = possible_messages(cases, part)
    if to_var is None:
        return None
    power = np.repeat(1.0 / np.where(rho > 0, rho, 1.0), np.diff(part.value_ptr))
    values = np.where(part.values > 0, np.maximum(part.values**power, FLOOR), 0.0)
    residuals = np.zeros(max_iter)
    graph = (part.var_ptr, part.var_edge, part.edge_factor, part.msg_ptr)
    tables = (part.scope_ptr, part.scope_idx, part.value_ptr, values, sizes)
    messages = (rho, to_var, to_var.copy())
    n, done = reweighted(*tables, part.unary, at, *graph, *messages, damping, max_iter, tol, residuals, stop)
    logs = np.empty(int(at[-1]))
    bound: float = np.inf
    for milder in MILDER:
        sent = np.where(to_var > 0, to_var**milder, 0.0)
        for v in range(len(sizes)):
            weighted_logs(v, sizes[v], part.unary, at[v], *graph, rho, sent, logs, at[v])
        values_of = [forest_log_z(*tables, at, part.active, row, logs, sent, part.msg_ptr) for row in inside]
        if np.isfinite(values_of).all():
            bound = float(np.mean(values_of)) if len(values_of) else 0.0
            break
    top = np.maximum.reduceat(logs, at[:-1]) if len(sizes) else logs
    beliefs = np.exp(logs - np.repeat(np.where(np.isfinite(top), top, 0.0), sizes))
    beliefs /= np.repeat(np.maximum(np.add.reduceat(beliefs, at[:-1]), 1e-300), sizes) if len(sizes) else 1.0
    return beliefs, bound, residuals[:n].copy(), bool(done)
