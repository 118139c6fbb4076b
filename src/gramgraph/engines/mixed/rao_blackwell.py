"""Conditional-Gaussian networks beyond the budget: draw the discrete variables, integrate the real ones exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.answers import Key
from gramgraph.compile.plan import Plan, plan_of
from gramgraph.engines.base import Run
from gramgraph.engines.mixed.cells import CellEngine, Cells, Found
from gramgraph.engines.mixed.configurations import choosers, gaussians_given
from gramgraph.engines.mixed.mixture import _impossible, _labels, discrete_part
from gramgraph.exceptions import ImpossibleEvidenceError
from gramgraph.factors.log_table import log_sum_exp
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Group, Question
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

DRAWS = 10_000


class RaoBlackwell(CellEngine):
    """Draws d ~ p(discrete | discrete evidence) by the exact discrete engine, weighted by p(real evidence | d).

    Given d everything is one Gaussian, so that only the discrete variables carry a Monte Carlo error. Equal
    configurations are worked on once. `details` tell draws, distinct configurations, the effective number of draws
    and standard errors of all means and probabilities.

    >>> import gramgraph as gg
    >>> rows = {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 1.0}}
    >>> net = gg.BayesianNetwork("d -> x{real}", cpds={"d": 0.5, "x": rows})
    >>> answer = net.query("d", {"x": 2.0}, engine="rao_blackwell", random_state=0)
    >>> round(answer["d"].prob("yes"), 1), answer.exact
    (0.9, False)
    """

    name = "rao_blackwell"
    exact = False

    def plan(self, model: Any, question: Question) -> Plan:
        """Draws of the discrete variables, with a Gaussian for each."""
        return plan_of(self, layout_of(model).size, DRAWS * len(model.vars), layout_of(model).size)

    def beliefs(self, model: Any, group: Group, scopes: dict[Key, tuple[Var, ...]], run: Run) -> Found:
        """Cells of every scope, log p(e) of every case."""
        layout, net = layout_of(model), discrete_part(model)
        n = run.draws or DRAWS
        evidence = _labels(model, group.states)
        try:
            drawn = net.sample(n, evidence, random_state=run.random_state, memory=run.memory)
            log_d = float(net.log_evidence(evidence))
        except ImpossibleEvidenceError:
            return _impossible(scopes, len(group.rows)), np.full(len(group.rows), -np.inf), {}
        asked = {model.positions[v.name] for scope in scopes.values() for v in scope if v.is_discrete}
        keep = sorted(asked | set(choosers(model)))
        table = np.stack([drawn[model.vars[v].name].cat.codes.to_numpy(np.int64) for v in keep], axis=1)
        codes, counts = (
            np.unique(table, axis=0, return_counts=True) if keep else (np.zeros((1, 0), np.int64), np.array([n]))
        )
        states = {v: codes[:, i] for i, v in enumerate(keep)}
        real = {key: layout.of([model.positions[v.name] for v in s if not v.is_discrete]) for key, s in scopes.items()}
        given = gaussians_given(model, states, len(codes), group.seen, group.X, list(real.values()))
        logs = given.log_p + np.log(counts / n)
        total = log_sum_exp(logs, (1,))
        weights = np.exp(logs - np.where(np.isneginf(total), 0.0, total)[:, None])
        out: dict[Key, Cells] = {}
        errors: dict[Key, Any] = {}
        start = 0
        for j, (key, scope) in enumerate(scopes.items()):
            k = len(real[key])
            mean = given.mean[:, :, start : start + k] if k else None
            start += k
            at = (
                np.stack([states[model.positions[v.name]] for v in scope if v.is_discrete], axis=1)
                if any(v.is_discrete for v in scope)
                else np.zeros((len(codes), 0), np.int64)
            )
            out[key] = Cells(scope, weights, at, mean, None if mean is None else given.blocks[j][None])
            errors[key] = _standard_error(weights, counts, mean, at, scope)
        effective = 1.0 / ((weights**2) / counts).sum(axis=1)
        more = {"draws": n, "configurations": len(codes), "effective_draws": effective, "standard_error": errors}
        return out, total + log_d, more


def _standard_error(weights: FloatArray, counts: Any, mean: Any, at: Any, scope: tuple[Var, ...]) -> FloatArray:
    """√Σ w_i² (f_i − E f)² over draws i, of means or of probabilities; (cases, components) or (cases, *states)."""
    share = weights**2 / counts
    if mean is not None:
        off = mean - np.einsum("bk,bkd->bd", weights, mean)[:, None]
        return np.sqrt(np.einsum("bk,bkd->bd", share, off**2))
    shape = tuple(var.size for var in scope)
    out = np.zeros((len(weights), *shape))
    for state in np.ndindex(*shape):
        hit = (at == np.array(state)).all(axis=1).astype(float)
        off = hit[None] - (weights @ hit)[:, None]
        out[(slice(None), *state)] = np.sqrt((share * off**2).sum(axis=1))
    return out
