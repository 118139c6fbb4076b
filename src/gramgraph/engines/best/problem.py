"""The search for a best assignment in arrays: logarithms of the tables of one case, and what an assignment is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.engines.approximate import Cases
from gramgraph.engines.slices import Sliced, slice_case
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: What a zero counts in logarithms at most. It is above minus infinity, so that bounds hold; `MapProblem.forbidden` is
#: below what all tables together can regain.
FORBIDDEN = -1e4


class Found(NamedTuple):
    """An assignment of one case: states of all variables, its logarithm, and a bound that no assignment exceeds."""

    state: IntArray
    log_prob: float
    bound: float
    stopped: bool = False  # by Ctrl-C


@dataclass(frozen=True, eq=False)
class MapProblem:
    """max_x Σ_v θ_v(x_v) + Σ_f θ_f(x_f), the factors of one case after those inside others were added to them."""

    cases: Cases
    part: Sliced
    observed: IntArray  # (variables,) states, -1 = not observed
    constant: float
    logs: FloatArray  # of all tables, zeros at `forbidden`
    log_unary: FloatArray  # of what stands on single variables, likewise
    forbidden: float  # what a zero counts

    @classmethod
    def of(cls, cases: Cases, case: int) -> MapProblem | None:
        """The problem of one case; None when its evidence is impossible."""
        part = slice_case(cases, case)
        return None if part.constant == -np.inf else cls.of_part(cases, part, cases.states[case])

    @classmethod
    def of_part(cls, cases: Cases, part: Sliced, observed: IntArray) -> MapProblem | None:
        """The problem of the factors of one case; None when their zeros leave some variable no state."""
        from gramgraph.engines.propagation.tree_reweighted import merged

        # Products of small numbers would be zeros: tables are multiplied as logarithms.
        with np.errstate(divide="ignore"):
            in_logs = part._replace(values=np.log(part.values), unary=np.log(part.unary))
        in_logs = merged(cases, in_logs, logarithms=True)
        part = in_logs._replace(values=values_of(in_logs.values), unary=values_of(in_logs.unary))
        unary = possible_states_of(cases, part)
        if unary is None:
            return None
        part = part._replace(unary=unary)
        log_unary = np.where(unary > 0, in_logs.unary, -np.inf)
        return cls.of_logs(cases, part, observed, part.constant + cases.low.log_scale, in_logs.values, log_unary)

    @classmethod
    def of_logs(
        cls, cases: Cases, part: Sliced, observed: IntArray, constant: float, logs: FloatArray, log_unary: FloatArray
    ) -> MapProblem:
        """The problem with these logarithms of the tables."""
        forbidden = FORBIDDEN
        if np.isneginf(logs).any() or np.isneginf(log_unary).any():
            spread = _spread(logs, part.value_ptr) + _spread(log_unary, cases.unary_ptr)
            forbidden = min(forbidden, -1.0 - spread)
        found = np.maximum(logs, forbidden), np.maximum(log_unary, forbidden)
        return cls(cases, part, observed, constant, *found, forbidden)

    @property
    def start(self) -> IntArray:
        """Observed states, 0 elsewhere."""
        return np.maximum(self.observed, 0)

    @property
    def sizes(self) -> IntArray:
        """Number of states of every variable."""
        return self.cases.low.sizes

    @cached_property
    def free(self) -> IntArray:
        """Variables that are to be chosen."""
        return np.flatnonzero(self.part.active & (self.sizes > 1))

    @cached_property
    def tables(self) -> tuple[Any, ...]:
        """scope_ptr, scope_idx, value_ptr, logs, sizes, log_unary, unary_ptr."""
        part = self.part
        return (
            part.scope_ptr, part.scope_idx, part.value_ptr, self.logs, self.sizes, self.log_unary, self.cases.unary_ptr,
        )  # fmt: skip

    @cached_property
    def graph(self) -> tuple[Any, ...]:
        """var_ptr, var_edge, edge_factor, msg_ptr."""
        part = self.part
        return part.var_ptr, part.var_edge, part.edge_factor, part.msg_ptr

    @cached_property
    def blankets(self) -> tuple[Any, ...]:
        """What single changes read: variables, var_ptr, base, own, other_ptr, other_idx, other_stride."""
        from gramgraph.engines.sampling.blankets import compile_case

        return tuple(compile_case(self.cases, self.part))[:7]

    def value(self, state: Array) -> float:
        """The sum of all terms, a zero as `forbidden`."""
        from gramgraph._numerics.best.moves import value_of

        return float(value_of(*self.tables, self.part.active, state))

    def log_prob(self, state: Array) -> float:
        """log of the product of all factors at the state; -inf when one of them is zero."""
        from gramgraph._numerics.best.loopy_best import log_value

        part = self.part
        worth = log_value(
            part.scope_ptr, part.scope_idx, part.value_ptr, part.values, self.sizes, part.unary, self.cases.unary_ptr,
            part.active, state,
        )  # fmt: skip
        # The values tell zeros from the rest, but the smallest are raised to be no zeros: the logarithms are exact.
        return -np.inf if worth == -np.inf else self.value(state) + self.constant

    def found(self, state: Array, bound: float = np.inf) -> Found:
        """The assignment with its logarithm; `bound` is on the sum of terms."""
        worth = self.log_prob(state)
        return Found(state, worth, max(bound + self.constant, worth))


def possible_states_of(cases: Cases, part: Sliced) -> FloatArray | None:
    """Unaries with zeros for states that the zeros of the tables rule out; None when some variable has none left."""
    from gramgraph.engines.slices import possible_messages

    if part.values.min(initial=1.0) > 0 and part.unary.min(initial=1.0) > 0:
        return part.unary
    to_var = possible_messages(cases, part)
    if to_var is None:
        return None
    unary = part.unary.copy()
    for e, v in enumerate(part.scope_idx):
        at = cases.unary_ptr[v]
        unary[at : at + cases.low.sizes[v]][to_var[part.msg_ptr[e] : part.msg_ptr[e + 1]] == 0] = 0.0
    return unary


def values_of(logs: FloatArray) -> FloatArray:
    """exp, zero only where the logarithm is minus infinity."""
    return np.where(np.isneginf(logs), 0.0, np.exp(np.clip(logs, -600.0, 600.0)))


def lost_weight(question: Question, case: int, state: Array) -> float:
    """What the likelihoods at the state are below the least number that stands for them in `likelihoods`, in logs."""
    if not question.log_likelihoods:
        return 0.0
    logs, weights = question.soft_logs(case), question.soft_weights(case)
    return sum(float(logs[v][state[v]] - np.log(weights[v][state[v]])) for v, _ in question.log_likelihoods)


def _spread(logs: FloatArray, ptr: IntArray) -> float:
    """Σ over the tables of largest less smallest entry, zeros left out."""
    if len(ptr) < 2 or not len(logs):
        return 0.0
    top, low = (
        np.maximum.reduceat(logs, ptr[:-1]),
        np.minimum.reduceat(np.where(np.isneginf(logs), np.inf, logs), ptr[:-1]),
    )
    return float((top - low)[np.isfinite(top)].sum())


def cases_of(model: GraphicalModel, question: Question) -> Cases:
    """All variables of the model, none barren: a maximum needs them all."""
    everything = replace(question, targets=tuple(range(len(model))), joints=())
    return Cases.of(model, everything, maximum=True)


def all_cases(model: GraphicalModel, question: Question, solve: Any) -> tuple[IntArray, FloatArray, FloatArray]:
    """(states, log p, bounds) of every case by `solve(problem)`; codes -1 and -inf where the evidence is impossible."""
    cases = cases_of(model, question)
    n = question.n_cases
    codes, best, bound = np.full((n, len(model)), -1, np.int64), np.full(n, -np.inf), np.full(n, -np.inf)
    for case in range(n):
        problem = MapProblem.of(cases, case)
        if problem is not None:
            found = solve(problem)
            if found.bound == -np.inf:  # proved to be impossible
                continue
            value = found.log_prob
            if value > -np.inf:
                value += lost_weight(question, case, found.state)
            codes[case], best[case], bound[case] = found.state[: len(model)], value, found.bound
    return codes, best, bound
