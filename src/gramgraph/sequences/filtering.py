"""One observation at a time, in constant memory: the discrete Bayes filter, and the filter of a hidden Markov model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences._reading import check_rows
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.sequences.hmm import HiddenMarkovModel

__all__ = ["BayesFilter", "HMMFilter"]


class BayesFilter:
    """The belief of an agent that senses and acts: bel(x) ∝ p(z | x) bel(x), and bel(x) = Σ p(x | u, x′) bel(x′).

    `sense` and `act` each return the new belief, (K,), in O(K) and O(K²). `log_likelihood` sums log p(z | z before, u).

    A robot before a door, states (open, closed), that looks twice and then pushes it shut:

    >>> door = BayesFilter([0.5, 0.5])
    >>> [round(float(door.sense(z)[0]), 4) for z in ([0.6, 0.3], [0.5, 0.6])]
    [0.6667, 0.625]
    >>> round(float(door.act([[0.1, 0.9], [0.0, 1.0]])[0]), 4)
    0.0625
    """

    def __init__(self, start: Any, *, log_likelihood: float = 0.0, steps: int = 0) -> None:
        self._belief = check_rows("start", start, 1)
        self.log_likelihood = float(log_likelihood)
        self.steps = int(steps)

    @property
    def belief(self) -> FloatArray:
        """p(state | everything so far), (K,)."""
        return self._belief.copy()

    def sense(self, likelihood: Any) -> FloatArray:
        """An observation z, given as p(z | state), (K,)."""
        p = np.asarray(likelihood, dtype=np.float64)
        if p.shape != self._belief.shape or not (p >= 0.0).all() or not np.isfinite(p).all():
            raise ModelError(
                f"likelihood must be {len(self._belief)} numbers of at least 0, one a state; got {likelihood!r}."
            )
        with np.errstate(divide="ignore"):
            return self._sense(np.log(p))

    def _sense(self, logs: FloatArray) -> FloatArray:
        """The same from log p(z | state): large differences do not underflow."""
        with np.errstate(divide="ignore"):
            joint = np.log(self._belief) + logs
        top = float(joint.max())
        if top == -math.inf:
            raise ImpossibleEvidenceError(
                f"observation {self.steps} has probability zero: no state that can hold now gives it. The belief stays "
                f"as it was."
            )
        new = np.exp(joint - top)
        total = float(new.sum())
        self._belief = new / total
        self.log_likelihood += top + math.log(total)
        self.steps += 1
        return self.belief

    def act(self, transition: Any) -> FloatArray:
        """An action, given as p(next | now), (K, K), rows by the state now."""
        A = check_rows("transition", transition, 2)
        if A.shape != (len(self._belief),) * 2:
            raise ModelError(f"transition must have shape {(len(self._belief),) * 2}; it has {A.shape}.")
        self._belief = _stepped(self._belief, A)
        return self.belief


class HMMFilter:
    """Filters a stream with a hidden Markov model: p(state | x so far) after every observation.

    The state of the filter is a dict of plain numbers (JSON keeps them bit by bit): `model.filter(state=saved)` goes on
    exactly where it was.

    >>> from gramgraph.sequences import CategoricalHMM
    >>> model = CategoricalHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.3, 0.7]])
    >>> stream = model.filter()
    >>> [stream.update(z).round(3).tolist() for z in (1, 1)]
    [[0.125, 0.875], [0.055, 0.945]]
    >>> abs(stream.log_likelihood - model.score([1, 1])) < 1e-12
    True
    """

    def __init__(self, model: HiddenMarkovModel, *, state: dict[str, Any] | None = None) -> None:
        self._model = model
        self._emission = model._emission()
        self._A = np.ascontiguousarray(model.transmat_)
        self._inner = BayesFilter(model.startprob_)
        if state is not None:
            belief = np.array(state["belief"], dtype=np.float64)
            if belief.shape != model.startprob_.shape:
                raise ModelError(f"state belongs to a model with {belief.size} states, not {len(model.startprob_)}.")
            self._inner.log_likelihood, self._inner.steps = float(state["log_likelihood"]), int(state["steps"])
            self._inner._belief = belief  # as it is: checking would round it

    @property
    def belief(self) -> FloatArray:
        """p(state | x so far), (K,); the start probabilities before the first observation."""
        return self._inner.belief

    @property
    def log_likelihood(self) -> float:
        """log p(x so far)."""
        return self._inner.log_likelihood

    @property
    def steps(self) -> int:
        """Observations so far."""
        return self._inner.steps

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the filter remembers, as plain numbers."""
        return {"belief": self._inner.belief.tolist(), "log_likelihood": self.log_likelihood, "steps": self.steps}

    def update(self, z: Any) -> FloatArray:
        """Take the next observation (NaN, None or −1 where there is none) and return the belief, (K,)."""
        logs = self._emission.logs(self._model._read_one(z))[0]
        before = self._inner._belief
        if self._inner.steps:
            self._inner._belief = _stepped(before, self._A)
        try:
            return self._inner._sense(logs)
        except ImpossibleEvidenceError:
            self._inner._belief = before
            raise

    def predict(self, steps: int = 1) -> FloatArray:
        """p(state `steps` observations from now | x so far), (K,)."""
        belief = self._inner.belief
        for _ in range(steps if self.steps else steps - 1):
            belief = _stepped(belief, self._A)
        return belief


def _stepped(belief: FloatArray, A: FloatArray) -> FloatArray:
    new: FloatArray = belief @ A
    return new / new.sum()
