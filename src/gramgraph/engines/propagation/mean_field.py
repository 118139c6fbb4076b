"""Mean field: the best belief without dependence, and a lower bound on log p(evidence)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.engines.anytime import Found, How, SweepEngine
from gramgraph.engines.approximate import Cases, between, whole
from gramgraph.engines.slices import Sliced, show_observed, slice_case
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

OPTIONS = ("max_iter", "tol", "n_starts")
MAX_ITER, TOL, STARTS = 500, 1e-10, 3
#: Time for an assignment that zeros allow, where no other start avoids them.
SEARCH_SECONDS = 2.0
#: What mass on impossible cells costs while a start that avoids them is being sought.
PENALTY = 50.0


class MeanField(SweepEngine):
    """q(x) = Π q_v(x_v) nearest to the posterior, by coordinate ascent on a lower bound of log p(e).

    The bound of every sweep is in `details["bounds"]`; it never falls. `log_evidence` is the best bound of `n_starts`
    starts (uniform, belief propagation's beliefs, random ones from `random_state`). Cost of a sweep: O(Σ_f cells times
    variables of the factor). Where zeros of the tables leave no start that avoids them, the bound is -inf,
    `details["feasible"]` is False and log_evidence is NaN.

    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> found = net.query("lung", {"xray": "yes"}, engine="mean_field", random_state=0)
    >>> found.log_evidence <= net.log_evidence({"xray": "yes"})
    True
    """

    name = "mean_field"
    options = OPTIONS

    def settings(self, model: GraphicalModel) -> tuple[Any, int]:
        """The options after a check, and how many sweeps there are at most."""
        made = _settings(self.given)
        return made, made[0]

    def run(self, model: GraphicalModel, question: Question, how: How) -> Found:
        """Beliefs and log p(evidence), or a bound of it, for every case."""
        return _run(model, question, how.settings, how.rng, how.stop)


def _settings(options: dict[str, Any]) -> tuple[int, float, int]:
    return (
        whole("max_iter", options.get("max_iter", MAX_ITER)),
        between("tol", options.get("tol", TOL), 0.0, 1.0),
        whole("n_starts", options.get("n_starts", STARTS)),
    )


def _run(
    model: GraphicalModel, question: Question, settings: tuple[int, float, int], rng: np.random.Generator, stop: Array
) -> Found:
    cases = Cases.of(model, question)
    n = question.n_cases
    beliefs, log_z = np.full((n, int(cases.unary_ptr[-1])), np.nan), np.full(n, -np.inf)
    feasible, converged = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    bounds = np.zeros(0)
    for case in range(n):
        part = slice_case(cases, case)
        if part.constant == -np.inf:
            continue
        q, bound, bounds, converged[case] = best_start(cases, part, settings, rng, stop)
        feasible[case] = bound > -np.inf
        if not feasible[case] and proved_impossible(cases, part):
            continue
        shift = part.constant + cases.low.log_scale
        log_z[case], bounds = (bound + shift if feasible[case] else np.nan), bounds + shift
        beliefs[case] = q
        show_observed(cases, case, beliefs)
    details: dict[str, Any] = {"lower_bound": log_z, "converged": converged, "feasible": feasible}
    if not question.batched:
        details = {key: value[0].item() for key, value in details.items()} | {"bounds": bounds, "sweeps": len(bounds)}
    return cases, beliefs, log_z, details


def proved_impossible(cases: Cases, part: Sliced) -> bool:
    """Whether the zeros of the tables, passed on from variable to variable, leave some variable without a state."""
    from gramgraph.engines.slices import possible_messages

    return possible_messages(cases, part) is None


def best_start(
    cases: Cases, part: Sliced, settings: tuple[int, float, int], rng: np.random.Generator, stop: Array
) -> tuple[FloatArray, float, FloatArray, bool]:
    """(beliefs, bound, bounds of all sweeps, converged) of the best start; once `stop` is set no other is made."""
    best: tuple[FloatArray, float, FloatArray, bool] | None = None
    zero = (part.values == 0).astype(np.float64)
    logs = np.log(np.where(part.values > 0, part.values, 1.0))
    has_zero = np.add.reduceat(zero, part.value_ptr[:-1]) > 0 if len(part.value_ptr) > 1 else np.zeros(0, np.bool_)
    for number in range(settings[2]):
        q = _start(cases, part, number, rng)
        found = _ascend(cases, part, logs, zero, has_zero, q, settings, stop)
        if best is None or found[1] > best[1]:
            best = found
        if stop[0]:
            break
    assert best is not None
    if best[1] == -np.inf and not stop[0]:  # one assignment that the zeros allow is a start as well
        point = _allowed(cases, part)
        if point is not None:
            best = _ascend(cases, part, logs, zero, has_zero, point, settings, stop)
    return best


def _allowed(cases: Cases, part: Sliced) -> FloatArray | None:
    """All mass on an assignment without zeros, found by a short search; None when none was found."""
    from gramgraph.engines.best.problem import MapProblem
    from gramgraph.engines.best.search import search

    problem = MapProblem.of_part(cases, part, np.full(len(cases.low.sizes), -1, np.int64))
    if problem is None:
        return None
    found = search(problem, time_limit=SEARCH_SECONDS, gap=0.0, rng=np.random.default_rng(0), feasible=True)
    if found.log_prob == -np.inf:
        return None
    q = np.zeros(int(cases.unary_ptr[-1]))
    q[cases.unary_ptr[:-1] + found.state] = 1.0
    return q


def _start(cases: Cases, part: Sliced, number: int, rng: np.random.Generator) -> FloatArray:
    """Uniform (a little uneven, off the saddle of symmetric models), beliefs of propagation, then random."""
    from gramgraph._numerics.messages.loopy_run import conclude, first_messages, propagate

    sizes, at = cases.low.sizes, cases.unary_ptr
    uneven = rng.uniform(0.9, 1.1, size=int(at[-1]))
    q = uneven if number != 1 else uneven**0
    if number == 1:
        to_var = first_messages(part.scope_idx, sizes, part.msg_ptr)
        graph = (part.var_ptr, part.var_edge)
        back, residuals = to_var.copy(), np.zeros(100)
        tables = (part.scope_ptr, part.scope_idx, part.value_ptr, part.values, sizes, part.unary, at)
        _, _, possible = propagate(
            *tables, *graph, part.edge_factor, part.msg_ptr, to_var, back, 1, -1.0, 0.0, 100, 1e-6, False, residuals
        )
        if possible:
            conclude(*tables, part.active, *graph, part.msg_ptr, to_var, back, False, 0.0, q)
            q = q * uneven + 1e-12
    elif number > 1:
        q = rng.gamma(0.5, size=len(q)) + 1e-12
    q = np.where(part.unary > 0, q, 0.0)
    totals = np.add.reduceat(q, at[:-1]) if len(sizes) else np.zeros(0)
    return np.asarray(q / np.repeat(np.where(totals > 0, totals, 1.0), sizes))


def _ascend(
    cases: Cases,
    part: Sliced,
    logs: FloatArray,
    zero: FloatArray,
    has_zero: Array,
    q: FloatArray,
    settings: tuple[int, float, int],
    stop: Array,
) -> tuple[FloatArray, float, FloatArray, bool]:
    """Ascent from q. With zeros: first at a price for them, then from what that chose with zeros forbidden."""
    from gramgraph._numerics.messages.mean_field import ascend

    max_iter, tol, _ = settings
    sizes, at = cases.low.sizes, cases.unary_ptr
    bounds = np.empty(max_iter)
    tables = (part.scope_ptr, part.scope_idx, part.value_ptr, logs, zero, has_zero, sizes, part.unary, at, part.active)
    graph = (part.var_ptr, part.var_edge, part.edge_factor, part.msg_ptr)
    if not has_zero.any():
        n, done = ascend(*tables, *graph, q, np.inf, max_iter, tol, bounds, stop)
        return q, float(bounds[n - 1]), bounds[:n].copy(), bool(done)
    if q.max(initial=0.0) < 1.0 or np.count_nonzero(q) > len(sizes):  # a point is a choice already
        ascend(*tables, *graph, q, PENALTY, max_iter, tol, bounds, stop)
    for sharp in (1e-6, 0.5):
        kept = np.where(q >= sharp, q, 0.0) if sharp < 0.5 else _one_state(q, sizes, at)
        total = np.add.reduceat(kept, at[:-1])
        kept /= np.repeat(np.where(total > 0, total, 1.0), sizes)
        n, done = ascend(*tables, *graph, kept, np.inf, max_iter, tol, bounds, stop)
        if bounds[n - 1] > -np.inf:
            known = np.isfinite(bounds[:n])
            return kept, float(bounds[n - 1]), bounds[:n][known].copy(), bool(done)
    return q, -np.inf, np.zeros(0), False


def _one_state(q: FloatArray, sizes: IntArray, at: IntArray) -> FloatArray:
    """All mass of each variable on its most probable state."""
    out = np.zeros(len(q))
    for v in range(len(sizes)):
        out[at[v] + int(q[at[v] : at[v + 1]].argmax())] = 1.0
    return out
