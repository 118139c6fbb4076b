"""Tables from margins: in closed form where the graph is decomposable, by iterative proportional fitting elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._progress import Progress, reporting
from gramgraph.data.counts import Counts
from gramgraph.exceptions import ModelError, ModelWarning, OptionError, VariableError, listing
from gramgraph.factors import TableFactor
from gramgraph.learn.ascent import UndirectedReport
from gramgraph.learn.expectations import ExactExpectations
from gramgraph.learn.log_linear_design import Design, scopes_of_network
from gramgraph.learn.undirected_data import read_rows
from gramgraph.models import MarkovNetwork
from gramgraph.models.potentials import make_scopes, scoped, tabulate
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

#: Margins may differ in what they say of shared variables by this much, of a total of one.
AGREE = 1e-6
Scope = tuple[int, ...]


def is_decomposable(net: MarkovNetwork) -> bool:
    """Whether maximum likelihood has a closed form: the graph is chordal and every clique of it has a table.

    >>> triangle = {("a", "b"): np.ones((2, 2)), ("b", "c"): np.ones((2, 2)), ("a", "c"): np.ones((2, 2))}
    >>> is_decomposable(MarkovNetwork(edges="a - b - c")), is_decomposable(MarkovNetwork(triangle))
    (True, False)
    """
    return _cliques(len(net), scopes_of_network(net)) is not None


def _cliques(n: int, scopes: Sequence[Scope]) -> Any:
    """The junction tree of the scopes when its cliques are scopes, else None."""
    from gramgraph.graphs import UndirectedGraph, is_chordal, junction_tree

    graph = UndirectedGraph.from_scopes(n, scopes)
    if not is_chordal(graph):
        return None
    tree = junction_tree(graph)
    known = {frozenset(scope) for scope in scopes}
    return tree if all(frozenset(clique) in known for clique in tree.cliques) else None


# ------------------------------------------------------------------------------------------------------ from data


def fit_tables(
    net: MarkovNetwork,
    data: Any,
    *,
    method: str,
    weights: Any = None,
    missing: str = "rows",
    max_iter: int | None = None,
    tol: float = 1e-6,
    equivalent_sample_size: float = 0.0,
    progress: Progress = False,
) -> tuple[MarkovNetwork, UndirectedReport]:
    """Maximum likelihood for full tables, method "closed_form" or "ipf"; see `MarkovNetwork.fit`."""
    table, dropped = read_rows(net, data, weights=weights, missing=missing)
    counts, scopes = Counts(table), scopes_of_network(net)
    total = table.total + equivalent_sample_size
    shares: list[FloatArray] = []
    for scope in scopes:
        found = np.asarray(counts.table(scope), np.float64)
        shares.append((found + equivalent_sample_size / found.size) / total)
    zeros = any((factor.values == 0).any() for factor in net.stored_factors)
    tree = _cliques(len(net), scopes)
    if method == "closed_form":
        if tree is None or zeros:
            why = "its factors have zeros" if tree is not None else "its graph is not decomposable"
            raise OptionError(f'there is no closed form for this network: {why}. Use method="ipf" or "exact"')
        factors = _conditionals(table.variables, tree, scopes, shares)
        value = _log_likelihood(counts, factors)
        report = UndirectedReport(
            "closed_form", "log-likelihood", value, (value / table.total,), True, 0.0, table.total, dropped
        )
        return _network(net, table.variables, factors), report
    if zeros:
        raise OptionError('method "ipf" starts from ones and would lose the zeros of the factors: use method="exact"')
    steps = 1000 if max_iter is None else max_iter
    fitted = _fit(table.variables, (), scopes, shares, steps, tol, progress)
    value = _log_likelihood(counts, fitted.factors) - table.total * fitted.log_z
    # what a step takes from KL(answer || model) it adds to the likelihood
    trace = tuple(value / table.total - left for left in fitted.trace)
    report = UndirectedReport(
        "ipf", "log-likelihood", value, trace, fitted.converged, fitted.rest, table.total, dropped
    )  # fmt: skip
    return _network(net, table.variables, fitted.factors), report


def _log_likelihood(counts: Counts, factors: Sequence[TableFactor]) -> float:
    """Σ over the rows of the logarithm of the product of the factors."""
    value = 0.0
    for factor in factors:
        found = np.asarray(counts.table([var.name for var in factor.scope]), np.float64)
        used = found > 0
        value += float(found[used] @ factor.log_values()[used])
    return value


def _network(net: MarkovNetwork, variables: tuple[Var, ...], factors: Sequence[TableFactor]) -> MarkovNetwork:
    return MarkovNetwork.from_parts(variables, factors, name=net.name, metadata=dict(net.metadata))


def _margin(scopes: Sequence[Scope], shares: Sequence[FloatArray], wanted: Scope) -> FloatArray:
    """The table over `wanted`, in this order, from the first scope that holds it."""
    for scope, table in zip(scopes, shares, strict=True):
        if set(wanted) <= set(scope):
            out = tuple(i for i, v in enumerate(scope) if v not in wanted)
            left = [v for v in scope if v in wanted]
            return np.asarray(table.sum(axis=out).transpose([left.index(v) for v in wanted]))
    raise AssertionError("a clique of a decomposable model is a scope")


def _conditionals(
    variables: tuple[Var, ...], tree: Any, scopes: Sequence[Scope], shares: Sequence[FloatArray]
) -> list[TableFactor]:
    """p̂(clique) / p̂(separator) for every clique: their product is the distribution of maximum likelihood."""
    factors = []
    for clique, separator in zip(tree.cliques, tree.separators, strict=True):
        rest = tuple(v for v in clique if v not in separator)
        scope = (*separator, *rest)
        table = _margin(scopes, shares, scope)
        below = table.sum(axis=tuple(range(len(separator), len(scope))), keepdims=True)
        values = np.divide(table, below, out=np.zeros_like(table), where=below > 0)
        factors.append(TableFactor(tuple(variables[v] for v in scope), values))
    return factors


# -------------------------------------------------------------------------------------------------- given margins


def fit_margins(
    net: MarkovNetwork | None,
    margins: Any,
    *,
    states: Mapping[str, Any] | None = None,
    max_iter: int = 1000,
    tol: float = 1e-9,
    progress: Progress = False,
) -> MarkovNetwork:
    """The network nearest to `net` that has the given marginal tables: argmin KL(p || net) over all such p.

    Parameters
    ----------
    net : where to start, whose interactions that no margin speaks of are kept; None is the uniform distribution, and
        the answer is then the distribution of largest entropy.
    margins : a dict {names: numbers} or pairs (names, numbers), as `MarkovNetwork` takes factors. Numbers are
        probabilities or counts (each table is divided by its sum); where margins share variables they must agree.
    states : labels of variables that `net` does not have; without it as in `MarkovNetwork`.
    max_iter, tol : rounds over all margins, until none is missed by more than `tol` in any cell.
    progress : True shows how far it is, or a function of (done, total).

    Notes
    -----
    Iterative proportional fitting: each step multiplies one table into the model so that one margin is exact, and never
    moves away from the answer: `fit_report.trace` is KL(answer || model) after every round. Margins that form a
    decomposable model over a uniform start need one round. Cost of a step: one run of the junction tree.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.learn.fit_margins(None, {("a", "b"): [[30, 10], [20, 40]], ("b", "c"): [[0.1, 0.4], [0.2, 0.3]]})
    >>> net.query(("a", "b"))[("a", "b")].probabilities.round(6).tolist()
    [[0.3, 0.1], [0.2, 0.4]]
    >>> net.fit_report.converged
    True
    """
    if net is not None and not isinstance(net, MarkovNetwork):
        raise OptionError(f"fit_margins takes a MarkovNetwork, or None to start from uniform, not {type(net).__name__}")
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1 or not tol > 0:
        raise OptionError(f"max_iter is a count from 1 and tol a positive number, not {max_iter!r} and {tol!r}")
    variables, scopes, targets = _read_margins(net, margins, states)
    _check_agreement(variables, scopes, targets)
    base = () if net is None else net.stored_factors
    factors, trace, converged, rest, _ = _fit(variables, base, scopes, targets, max_iter, tol, progress)
    if not converged:
        warnings.warn(
            f"the margins are missed by up to {rest:.2g} after {len(trace) - 1} rounds: raise max_iter. Where zeros of "
            "the start or of other margins forbid what a margin asks for, there is no answer",
            ModelWarning,
            stacklevel=2,
        )
    made = MarkovNetwork.from_parts(
        variables, [*base, *factors], name="" if net is None else net.name, metadata={} if net is None else net.metadata
    )
    made.fit_report = UndirectedReport("ipf", "KL divergence", trace[-1], trace, converged, rest, 1.0)
    return made


def _read_margins(
    net: MarkovNetwork | None, margins: Any, states: Mapping[str, Any] | None
) -> tuple[tuple[Var, ...], list[Scope], list[FloatArray]]:
    pieces = scoped(margins, "margins")
    if not pieces:
        raise OptionError("no margins are given: a dict {names: numbers} is expected")
    faults: list[str] = []
    if net is None:
        variables = tuple(make_scopes(pieces, states, faults=faults).values())
    else:
        if not net.is_discrete:
            raise ModelError("margins are tables: a network with real-valued variables cannot be fitted to them")
        variables = net.vars
    index = {var.name: i for i, var in enumerate(variables)}
    scopes, targets = list[Scope](), list[FloatArray]()
    for names, content in pieces:
        what = f"the margin of ({', '.join(names)})"
        unknown = [name for name in names if name not in index]
        if unknown:
            raise VariableError.unknown(unknown[0], tuple(index))
        if len(set(names)) != len(names):
            faults.append(f"{what} names a variable twice")
            continue
        scope = tuple(index[name] for name in names)
        table = tabulate(content, tuple(variables[v] for v in scope), what)
        if not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
            faults.append(f"{what} needs finite numbers from 0 on with a positive sum")
            continue
        scopes.append(scope)
        targets.append(table / table.sum())
    if faults:
        raise ModelError(faults)
    return variables, scopes, targets


def _check_agreement(variables: tuple[Var, ...], scopes: list[Scope], targets: list[FloatArray]) -> None:
    """`ModelError` when two margins say different things of the variables they share."""
    for (a, p), (b, q) in combinations(list(zip(scopes, targets, strict=True)), 2):
        shared = tuple(v for v in a if v in b)
        if not shared:
            continue
        off = float(np.abs(_margin([a], [p], shared) - _margin([b], [q], shared)).max())
        if off > AGREE:
            names = ["(" + ", ".join(variables[v].name for v in scope) + ")" for scope in (a, b, shared)]
            raise ModelError(
                f"the margins of {names[0]} and {names[1]} do not agree: what they say of {names[2]} differs by up to "
                f"{off:.2g} of a total of one. No distribution has both"
            )


# ------------------------------------------------------------------------------------------------------ the steps


class _Fitted(NamedTuple):
    factors: list[TableFactor]  # one for each margin
    trace: tuple[float, ...]  # KL(answer || model) before the first round and after every one
    converged: bool
    rest: float  # the largest error of a margin
    log_z: float


@interruptible()
def _fit(
    variables: tuple[Var, ...],
    base: Sequence[TableFactor],
    scopes: Sequence[Scope],
    targets: Sequence[FloatArray],
    max_iter: int,
    tol: float,
    progress: Progress,
) -> _Fitted:
    """Rounds over the margins until all are met."""
    position = {var.name: i for i, var in enumerate(variables)}
    some = [i for i, table in enumerate(targets) if table.size > 1]  # others have one cell, and nothing to meet
    scopes, targets = [scopes[i] for i in some], [targets[i] for i in some]
    kept = [factor for factor in base if factor.values.size > 1]
    every = (*scopes, *(tuple(position[var.name] for var in factor.scope) for factor in kept))
    used = {v for scope in every for v in scope}
    loose = tuple((v,) for v in range(len(variables)) if v not in used and variables[v].size > 1)
    design = Design(variables, (*every, *loose), np.zeros(0), None, (), np.zeros(0, np.int64))
    logs = np.zeros(int(design.value_ptr[-1]))
    with np.errstate(divide="ignore"):
        for number, factor in enumerate(kept, start=len(scopes)):
            a, b = design.value_ptr[number], design.value_ptr[number + 1]
            logs[a:b] = factor.log_values().reshape(-1)
    expectations = ExactExpectations(design)
    order = _order(len(variables), scopes)
    gains: list[float] = []
    converged, rest = False, np.inf
    with reporting(progress, max_iter) as report:
        try:
            for step in range(max_iter):
                check_interrupt()
                gain, rest = _round(design, expectations, logs, scopes, targets, order)
                gains.append(gain)
                if report is not None:
                    report(step + 1)
                if rest <= tol:
                    converged = True
                    break
        except KeyboardInterrupt:
            if not gains:
                raise
    left = _left(gains)
    factors = []
    for scope, a, b, table in zip(scopes, design.value_ptr[:-1], design.value_ptr[1:], targets, strict=False):
        factors.append(TableFactor.from_log(tuple(variables[v] for v in scope), logs[a:b].reshape(table.shape)))
    return _Fitted(factors, tuple(left.tolist()), converged, rest, expectations.run(logs)[0])


def _left(gains: list[float]) -> FloatArray:
    """KL(answer || model) before the first round and after every one: what the later rounds still gain."""
    later = np.cumsum(gains[::-1])[::-1]
    return np.append(later, 0.0)


def _order(n: int, scopes: Sequence[Scope]) -> list[int]:
    """Margins in the order of a junction tree where there is one, cliques before what lies inside them: one round is
    then enough from a uniform start.
    """
    tree = _cliques(n, scopes)
    if tree is None:
        return list(range(len(scopes)))
    place = {frozenset(tree.cliques[k]): i for i, k in enumerate(tree.order)}
    return sorted(range(len(scopes)), key=lambda i: (place.get(frozenset(scopes[i]), len(place)), i))


def _round(
    design: Design,
    expectations: ExactExpectations,
    logs: FloatArray,
    scopes: Sequence[Scope],
    targets: Sequence[FloatArray],
    order: Sequence[int],
) -> tuple[float, float]:
    """Make each margin exact in turn: (what KL fell by, the largest error met)."""
    gain, worst = 0.0, 0.0
    for number in order:
        a, b = int(design.value_ptr[number]), int(design.value_ptr[number + 1])
        log_z, cells = expectations.run(logs)
        now, wanted = cells[a:b], targets[number].reshape(-1)
        lost = (now <= 0) & (wanted > 0)
        if not np.isfinite(log_z) or lost.any():
            names = listing(design.variables[v].name for v in scopes[number])
            raise ModelError(
                f"the margin of ({names}) asks for cells that the start, or another margin, holds impossible: there is "
                "no distribution with these margins"
            )
        used = wanted > 0
        worst = max(worst, float(np.abs(now - wanted).max(initial=0.0)))
        change = np.full(len(now), -np.inf)
        change[used] = np.log(wanted[used]) - np.log(now[used])
        gain += max(float(wanted[used] @ change[used]), 0.0)
        logs[a:b] = np.where(used, logs[a:b] + change, -np.inf)
        logs[a:b] -= logs[a:b].max()
    return gain, worst
