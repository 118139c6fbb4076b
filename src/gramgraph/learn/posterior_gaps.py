"""Posteriors of tables from rows with gaps: variational, or by Gibbs sampling of what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph.conditionals import Table
from gramgraph.data.columns import CodedTable
from gramgraph.exceptions import OptionError
from gramgraph.learn.em import Rows, expected_counts, first_tables
from gramgraph.learn.monte_carlo_em import Completions
from gramgraph.learn.normalized import draw_rows, tables_from
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, RandomState

METHODS = ("variational", "gibbs")


def variational_posterior(
    net: BayesianNetwork,
    table: CodedTable,
    prior: list[FloatArray],
    *,
    max_iter: int,
    tol: float,
    random_state: RandomState,
) -> tuple[list[FloatArray], dict[str, Any]]:
    """Expected counts under q(tables) q(gaps): Dirichlet(prior + counts) is the best q(tables), row by row of the data.

    The gaps of one row stay dependent; tables and gaps are taken for independent. Tables enter as exp E log θ, whose
    rows sum to less than one. The bound Σ log Z(row) − KL(q(θ) ‖ prior) ≤ log p(data) never falls. Cost of a step: one
    batched run of the junction tree over the distinct rows.
    """
    _check(max_iter, tol)
    rows = Rows.of(table)
    rng = np.random.default_rng(random_state)
    start = first_tables(net, table, prior, rng, shake=False)
    counts, _ = expected_counts(start, rows.codes, rows.weights)
    bounds: list[float] = []
    converged = False
    least = tol * float(rows.weights.sum())
    for _ in range(max_iter):
        check_interrupt()
        alpha = [c + a for c, a in zip(counts, prior, strict=True)]
        logs = [_mean_logs(a) for a in alpha]
        fresh, log_z = expected_counts(_as_network(start, logs), rows.codes, rows.weights)
        bounds.append(log_z - sum(_divergence(a, b, m) for a, b, m in zip(alpha, prior, logs, strict=True)))
        counts = fresh
        if len(bounds) > 1 and bounds[-1] - bounds[-2] <= least:
            converged = True
            break
    return counts, {"method": "variational", "bounds": np.array(bounds), "bound": bounds[-1], "converged": converged}


def gibbs_posterior(
    net: BayesianNetwork, table: CodedTable, prior: list[FloatArray], *, draws: int, random_state: RandomState
) -> tuple[list[FloatArray], dict[str, Any]]:
    """Counts of Dirichlet distributions with the moments of the exact posterior, which is a mixture of Dirichlets.

    In turn: tables are drawn given the completed rows, and gaps given the tables. Of each row of a table the mean over
    the kept sweeps, and the sum of the variances, are matched (Rao–Blackwell: those of the Dirichlet given the
    completed rows are averaged, not the draws). A fifth of the sweeps is dropped at the start.
    """
    if not isinstance(draws, (int, np.integer)) or isinstance(draws, bool) or draws < 10:
        raise OptionError(f"draws is a count from 10, not {draws!r}")
    rows = Rows.of(table)
    rng = np.random.default_rng(random_state)
    found = first_tables(net, table, prior, rng, shake=False)
    ways = Completions(found, rows.codes, rows.weights)
    mean = [np.zeros_like(a) for a in prior]
    square = [np.zeros_like(a) for a in prior]
    kept = 0
    for sweep in range(int(draws) + int(draws) // 4):
        check_interrupt()
        counts, _ = ways.drawn_counts(found, None, rng)
        alpha = [c + a for c, a in zip(counts, prior, strict=True)]
        found = tables_from(found, found.vars, [draw_rows(a, rng) for a in alpha])
        if sweep < draws // 4:
            continue
        kept += 1
        for a, m, s in zip(alpha, mean, square, strict=True):
            total = a.sum(axis=-1, keepdims=True)
            m += a / total
            s += a * (a + 1.0) / (total * (total + 1.0))
    matched = [_matched(m / kept, s / kept) for m, s in zip(mean, square, strict=True)]
    return [a - b for a, b in zip(matched, prior, strict=True)], {"method": "gibbs", "sweeps": kept}


def _check(max_iter: int, tol: float) -> None:
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1 or not tol >= 0:
        raise OptionError(f"max_iter is a count from 1 and tol a number from 0, not {max_iter!r} and {tol!r}")


def _mean_logs(alpha: FloatArray) -> FloatArray:
    """E log θ; minus infinity for states that the prior rules out."""
    from scipy.special import digamma

    with np.errstate(divide="ignore", invalid="ignore"):
        found = digamma(alpha) - digamma(alpha.sum(axis=-1, keepdims=True))
    return np.where(alpha > 0.0, found, -np.inf)


def _divergence(alpha: FloatArray, prior: FloatArray, logs: FloatArray) -> float:
    """KL(Dirichlet(alpha) ‖ Dirichlet(prior)), summed over all rows of a table."""
    from scipy.special import gammaln

    used = prior > 0.0

    def logs_of(a: FloatArray) -> float:
        return float(gammaln(a.sum(axis=-1)).sum() - gammaln(a[used]).sum())

    return logs_of(alpha) - logs_of(prior) + float(((alpha - prior)[used] * logs[used]).sum())


def _as_network(net: BayesianNetwork, logs: list[FloatArray]) -> BayesianNetwork:
    """A network with exp E log θ for its tables: its rows do not sum to one."""
    made = [
        Table(var, tuple(net.vars[p] for p in row), np.exp(m))
        for var, row, m in zip(net.vars, net.parent_positions, logs, strict=True)
    ]
    return BayesianNetwork.from_parts(net.vars, made, parents=net.parent_positions, check=False)


def _matched(mean: FloatArray, square: FloatArray) -> FloatArray:
    """Dirichlet parameters with these means, and the same sum of variances, row by row."""
    spread = (square - mean**2).sum(axis=-1, keepdims=True)
    total = (mean * (1.0 - mean)).sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(spread > 0.0, total / spread - 1.0, 1e12)
    return np.asarray(mean * np.maximum(weight, 1e-6))
