"""Undirected models from data: the door, the objectives, and the way to the maximum."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._progress import Progress, Report, reporting
from gramgraph._validation import check_choice, check_positive, generator
from gramgraph.data.columns import CodedTable
from gramgraph.data.counts import Counts
from gramgraph.engines.approximate import between, whole
from gramgraph.engines.base import check_options
from gramgraph.exceptions import ModelError, ModelWarning, OptionError, listing
from gramgraph.learn.ascent import Climb, UndirectedReport, climb
from gramgraph.learn.expectations import ExactExpectations, Expectations, LoopyExpectations
from gramgraph.learn.log_linear_design import Design, design_of_features, design_of_network
from gramgraph.learn.undirected_data import read_rows
from gramgraph.models import LogLinear, MarkovNetwork
from gramgraph.typing import FloatArray, RandomState

#: A tree with more cells than this is left to the pseudo-likelihood when the method is "auto".
AUTO_CELLS = 2_000_000
#: A search for a better elimination order does not make a tree smaller than by this factor.
HOPELESS = 50
METHODS = ("auto", "exact", "bp", "contrastive_divergence", "pseudo_likelihood", "closed_form", "ipf")
OPTIONS: dict[str, tuple[str, ...]] = {
    "bp": ("damping", "sweeps"),
    "contrastive_divergence": ("sweeps", "chains", "persistent", "learning_rate"),
}
NAMES = {
    "exact": "log-likelihood",
    "bp": "Bethe log-likelihood",
    "pseudo_likelihood": "log pseudo-likelihood",
    "contrastive_divergence": "log pseudo-likelihood",
}


class Likelihood:
    """θ · f̂ - log Z(θ), a row's average log-likelihood, and its gradient f̂ - E_θ[f]: what data and model expect.

    With loopy expectations log Z is Bethe's, whose gradient at a fixed point of the messages is the same difference.
    """

    def __init__(self, design: Design, shares: FloatArray, expectations: Expectations) -> None:
        self.design, self.shares, self.expectations = design, shares, expectations
        self._seen = shares > 0

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at these weights."""
        logs = self.design.log_values(weights)
        log_z, cells = self.expectations.run(logs)
        value = float(self.shares[self._seen] @ logs[self._seen]) - log_z
        if not np.isfinite(log_z):
            return -np.inf, np.zeros(len(weights))
        return value, self.design.pull(self.shares - cells)


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that a fit needs: the design, the rows, and the penalties of each weight."""

    design: Design
    table: CodedTable
    counts: Counts
    dropped: int
    l1: FloatArray
    l2: FloatArray
    equivalent_sample_size: float
    method: str
    options: dict[str, Any]
    expectations: Expectations | None = None

    def objective(self) -> Callable[[FloatArray], tuple[float, FloatArray]]:
        """The function to be maximized, per row and without penalties."""
        if self.method == "pseudo_likelihood":
            from gramgraph.learn.pseudo_likelihood import PseudoLikelihood

            return PseudoLikelihood(self.design, self.table, self.counts)
        expectations = self.expectations
        if expectations is None:
            expectations = (
                ExactExpectations(self.design)
                if self.method == "exact"
                else LoopyExpectations(
                    self.design,
                    damping=between("damping", self.options.get("damping", 0.0), 0.0, 1.0),
                    max_iter=whole("sweeps", self.options.get("sweeps", 200)),
                )
            )
        return Likelihood(self.design, self.design.shares(self.counts, self.equivalent_sample_size), expectations)


def make_problem(
    model: MarkovNetwork | LogLinear,
    data: Any,
    *,
    method: str,
    l1: float = 0.0,
    l2: float = 0.0,
    equivalent_sample_size: float = 0.0,
    weights: Any = None,
    missing: str = "rows",
    tie: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Problem:
    """Check the options, read the rows, choose the method."""
    for name, value in (("l1", l1), ("l2", l2), ("equivalent_sample_size", equivalent_sample_size)):
        check_positive(name, value, zero=True)
    check_choice("method", method, METHODS)
    table, dropped = read_rows(model, data, weights=weights, missing=missing)
    design = (
        design_of_features(model, tie) if isinstance(model, LogLinear) else design_of_network(model, table.variables)
    )
    counts = Counts(table)
    _check_possible(design, counts)
    expectations: Expectations | None = None
    if method == "auto":
        method, expectations = _choose(design)
        if method != "exact" and equivalent_sample_size:
            raise OptionError(
                "equivalent_sample_size goes with likelihoods, and this model is too large for an exact one: "
                'use l2 instead, or method="bp"'
            )
    if equivalent_sample_size and method in ("pseudo_likelihood", "contrastive_divergence"):
        raise OptionError(f"equivalent_sample_size goes with likelihoods; {method} takes l2")
    check_options(method, list(options or {}), OPTIONS.get(method, ()))
    interactions = design.order > 1 if not isinstance(model, LogLinear) else np.ones(design.n_weights, bool)
    if not (l1 or l2 or equivalent_sample_size):
        _warn_unseen(counts)
    return Problem(
        design,
        table,
        counts,
        dropped,
        l1=np.where(interactions, float(l1), 0.0),
        l2=np.full(design.n_weights, float(l2)),
        equivalent_sample_size=float(equivalent_sample_size),
        method=method,
        options=dict(options or {}),
        expectations=expectations,
    )


def _choose(design: Design) -> tuple[str, Expectations | None]:
    """Exact while the tree is small; a first look, without a search for a good order, tells when it cannot be."""
    if ExactExpectations(design, search=False).cells <= HOPELESS * AUTO_CELLS:
        exact = ExactExpectations(design)
        if exact.cells <= AUTO_CELLS:
            return "exact", exact
    return "pseudo_likelihood", None


def _check_possible(design: Design, counts: Counts) -> None:
    """`ModelError` when rows fall into cells that the model holds impossible."""
    gone = np.isneginf(design.offset)
    if not gone.any():
        return
    for scope, table in zip(design.scopes, design.tables(gone), strict=True):
        found = np.asarray(counts.table(scope))[table] if table.any() else np.zeros(0)
        if found.sum() > 0:
            names = ", ".join(design.variables[v].name for v in scope)
            raise ModelError(
                f"{found.sum():g} rows fall into cells that the table over ({names}) holds impossible: zeros stay "
                "zeros in learning. Give the factor positive numbers, or take those rows out"
            )


def _warn_unseen(counts: Counts) -> None:
    unseen = [
        f"{var.name}={state}"
        for v, var in enumerate(counts.variables)
        for state, found in zip(var.states, np.asarray(counts.table((v,))), strict=True)
        if found == 0
    ]
    if unseen:
        warnings.warn(
            f"no row has {listing(unseen, 6)}: without a penalty the weights of these states have no finite maximum "
            "and stop at a large number. Give l2=…, or equivalent_sample_size=…",
            ModelWarning,
            stacklevel=6,
        )


def solve(
    problem: Problem, *, max_iter: int, tol: float, random_state: RandomState, start: FloatArray | None, report: Any
) -> tuple[Climb, dict[str, Any], float]:
    """(the climb, details, the objective summed over the rows)."""
    first = np.zeros(problem.design.n_weights) if start is None else start
    if problem.method == "contrastive_divergence":
        from gramgraph.learn.contrastive import contrastive_divergence

        return contrastive_divergence(problem, first, max_iter, tol, generator(random_state), report)
    objective = problem.objective()
    found = climb(objective, first, l1=problem.l1, l2=problem.l2, max_iter=max_iter, tol=tol, report=report)
    details: dict[str, Any] = {}
    if isinstance(objective, Likelihood) and isinstance(objective.expectations, LoopyExpectations):
        details["unsettled_runs"] = objective.expectations.failed
        if objective.expectations.failed:
            warnings.warn(
                f"belief propagation did not settle in {objective.expectations.failed} runs: gradients were rough. "
                "Try damping=0.5, l2=…, or method='pseudo_likelihood'",
                ModelWarning,
                stacklevel=5,
            )
    return found, details, objective(found.weights)[0] * problem.table.total


def _report(problem: Problem, found: Climb, details: dict[str, Any], value: float) -> UndirectedReport:
    if not found.converged and problem.method != "contrastive_divergence":
        warnings.warn(
            f"no convergence after {len(found.trace) - 1} steps: the largest gradient is {found.gradient:.2g}. Raise "
            "max_iter or tol; cells that no row falls into need l2=… or equivalent_sample_size=…",
            ModelWarning,
            stacklevel=5,
        )
    weights = found.weights.copy()
    weights.flags.writeable = False
    return UndirectedReport(
        problem.method, NAMES[problem.method], value, found.trace, converged=found.converged, gradient=found.gradient,
        rows=problem.table.total, dropped=problem.dropped, names=problem.design.names, weights=weights, details=details,
    )  # fmt: skip


def _fit(
    model: MarkovNetwork | LogLinear, data: Any, *, max_iter: int | None, tol: float, random_state: RandomState,
    progress: Progress, start: FloatArray | None = None, **settings: Any,
) -> tuple[Problem, UndirectedReport]:  # fmt: skip
    problem = make_problem(model, data, **settings)
    steps = max_iter if max_iter is not None else 300 if problem.method == "contrastive_divergence" else 1000
    with reporting(progress, steps) as tell:
        tell_: Report | None = tell
        found = solve(problem, max_iter=steps, tol=tol, random_state=random_state, start=start, report=tell_)
    return problem, _report(problem, *found)


def fit_log_linear(
    model: LogLinear, data: Any, *, tie: Any, method: str, max_iter: int | None, tol: float,
    random_state: RandomState, progress: Progress, **settings: Any,
) -> tuple[LogLinear, UndirectedReport]:  # fmt: skip
    """The same features with weights learned from data; see `LogLinear.fit`."""
    if method in ("closed_form", "ipf"):
        raise OptionError(f"method {method!r} is for full tables; features take exact, bp, pseudo_likelihood, …")
    problem, report = _fit(
        model, data, max_iter=max_iter, tol=tol, random_state=random_state, progress=progress, tie=tie, method=method,
        **settings,
    )  # fmt: skip
    return model.with_weights(spread(model, tie, report.weights)), report


def spread(model: LogLinear, tie: Any, weights: FloatArray) -> FloatArray:
    """One weight for each feature from one for each group of tied features."""
    from gramgraph.learn.log_linear_design import groups_of

    groups = groups_of(model, tie)
    first = {label: k for k, label in enumerate(dict.fromkeys(groups))}
    return np.asarray(weights[[first[label] for label in groups]])


def fit_markov_network(
    net: MarkovNetwork, data: Any, *, method: str, max_iter: int | None, tol: float, random_state: RandomState,
    progress: Progress, l1: float, l2: float, equivalent_sample_size: float, weights: Any, missing: str,
    options: Mapping[str, Any],
) -> tuple[MarkovNetwork, UndirectedReport]:  # fmt: skip
    """Tables over the same scopes learned from data; see `MarkovNetwork.fit`."""
    from gramgraph.learn.proportional_fitting import fit_tables, is_decomposable

    whole = not (l1 or l2 or options)
    zeros = any(not factor.values.all() for factor in net.stored_factors if hasattr(factor, "values"))
    if method == "auto" and whole and net.is_discrete and not zeros and is_decomposable(net):
        method = "closed_form"
    if method in ("closed_form", "ipf"):
        if not whole:
            raise OptionError(f"method {method!r} is maximum likelihood: it takes neither l1, l2 nor other options")
        return fit_tables(
            net, data, method=method, weights=weights, missing=missing, max_iter=max_iter, tol=tol,
            equivalent_sample_size=equivalent_sample_size, progress=progress,
        )  # fmt: skip
    problem, report = _fit(
        net, data, max_iter=max_iter, tol=tol, random_state=random_state, progress=progress, method=method, l1=l1,
        l2=l2, equivalent_sample_size=equivalent_sample_size, weights=weights, missing=missing, options=options,
    )  # fmt: skip
    made = MarkovNetwork.from_parts(
        problem.design.variables, problem.design.factors(report.weights), name=net.name, metadata=dict(net.metadata)
    )
    return made, report
