"""One observation at a time, in constant memory: the discrete Bayes filter, and the filters of hidden Markov models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.hmm import streams as _loops
from gramgraph._validation import check_count
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences._reading import TOLERANCE, check_rows, numbers, saved_numbers
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.sequences.hmm import HiddenMarkovModel

_NO_INPUTS: IntArray = np.empty(0, dtype=np.int64)


class BayesFilter:
    """The belief of an agent that senses and acts: bel(x) ∝ p(z | x) bel(x), and bel(x) = Σ p(x | u, x′) bel(x′).

    `sense` and `act` each return the new belief, (K,), in O(K) and O(K²). `log_likelihood` sums log p(z | z before, u).

    A robot before a door, states (open, closed), that looks twice and then pushes it shut:

    Parameters
    ----------
    start : (K,) p(first state).
    log_likelihood : log p of what was sensed so far.
    steps : how many were taken so far.

    Examples
    --------
    >>> door = BayesFilter([0.5, 0.5])
    >>> [round(float(door.sense(z)[0]), 4) for z in ([0.6, 0.3], [0.5, 0.6])]
    [0.6667, 0.625]
    >>> round(float(door.act([[0.1, 0.9], [0.0, 1.0]])[0]), 4)
    0.0625

    The state of the filter is a dict of plain numbers (JSON keeps them bit by bit), from which another goes on:

    >>> again = BayesFilter.from_state(door.state)
    >>> bool((again.sense([0.6, 0.3]) == door.sense([0.6, 0.3])).all())
    True
    """

    def __init__(self, start: Any, *, log_likelihood: float = 0.0, steps: int = 0) -> None:
        self._belief = check_rows("start", start, 1)
        self._work = np.empty_like(self._belief)
        self.log_likelihood = float(log_likelihood)
        self.steps = int(steps)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BayesFilter:
        """The filter that `state` was taken from."""
        belief, total, steps = saved_numbers(state, "belief")
        new = cls(belief, log_likelihood=total, steps=steps)
        new._belief = belief  # as it is: checking would round it
        return new

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the filter remembers, as plain numbers."""
        return {"belief": self._belief.tolist(), "log_likelihood": self.log_likelihood, "steps": self.steps}

    @property
    def belief(self) -> FloatArray:
        """p(state | everything so far), (K,)."""
        return self._belief.copy()

    def sense(self, likelihood: Any) -> FloatArray:
        """An observation z, given as p(z | state), (K,)."""
        p = numbers("likelihood", likelihood)
        found = _loops.sense_row(self._belief, p, self._work) if p.shape == self._belief.shape else np.nan
        if found != found:
            raise ModelError(
                f"likelihood must be {len(self._belief)} numbers of at least 0, one per state; got {likelihood!r}."
            )
        if found == -np.inf:
            raise _impossible(self.steps)
        self.log_likelihood += found
        self.steps += 1
        return self._belief.copy()

    def act(self, transition: Any) -> FloatArray:
        """An action, given as p(next | now), (K, K), rows by the state now."""
        A = numbers("transition", transition)
        if A.ndim == 2 and A.shape != (len(self._belief),) * 2:
            raise ModelError(f"transition must have shape {(len(self._belief),) * 2}; it has {A.shape}.")
        if A.ndim != 2 or not _loops.act_row(self._belief, A, TOLERANCE, self._work):
            check_rows("transition", A, 2)  # says what is wrong
        self._belief, self._work = self._work, self._belief
        return self._belief.copy()


class HMMFilter:
    """Filters a stream with a hidden Markov model: p(state | x so far) after every observation.

    `update` takes one observation, `update_many` an array of them, with the same results and much faster. The state of
    the filter is a dict of plain numbers (JSON keeps them bit by bit): `model.filter(state=saved)` goes on exactly
    where it was.

    Parameters
    ----------
    model : a fitted hidden Markov model.
    transitions : (K, K), or those of each step.
    state : a saved state to go on from, or None.

    Examples
    --------
    >>> from gramgraph.sequences import CategoricalHMM
    >>> model = CategoricalHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.3, 0.7]])
    >>> stream = model.filter()
    >>> [stream.update(z).round(3).tolist() for z in (1, 1)]
    [[0.125, 0.875], [0.055, 0.945]]
    >>> stream.update_many([0, 0, 1]).round(3).tolist()
    [[0.484, 0.516], [0.778, 0.222], [0.294, 0.706]]
    >>> bool(abs(stream.log_likelihood - model.score([1, 1, 0, 0, 1])) < 1e-12)
    True
    """

    def __init__(
        self, model: HiddenMarkovModel, *, transitions: FloatArray | None = None, state: dict[str, Any] | None = None
    ) -> None:
        self._model = model
        self._logs: Callable[[Any], FloatArray] = model._stream_logs()
        self._A = np.ascontiguousarray(model.transmat_[None] if transitions is None else transitions)
        self._belief = self._start()
        self._row = np.empty((1, len(model.startprob_)))
        self.log_likelihood, self.steps = 0.0, 0  #: log p(x so far); observations so far
        if state is not None:
            belief, self.log_likelihood, self.steps = saved_numbers(state, "belief")
            if belief.shape != self._belief.shape:
                old, new = (" × ".join(map(str, part.shape)) for part in (belief, self._belief))
                raise ModelError(f"state belongs to a model with {old} states, not {new}.")
            if self.steps and not (belief.min() >= 0.0 and abs(belief.sum() - 1.0) < TOLERANCE):
                raise ModelError("state must hold probabilities as its belief, which sum to one.")
            self._belief = belief

    def _start(self) -> FloatArray:
        return check_rows("startprob", self._model.startprob_, 1)

    @property
    def belief(self) -> FloatArray:
        """p(state | x so far), (K,); the start probabilities before the first observation."""
        return self._belief.copy()

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the filter remembers, as plain numbers."""
        return {"belief": self._belief.tolist(), "log_likelihood": self.log_likelihood, "steps": self.steps}

    def update(self, z: Any) -> FloatArray:
        """Take the next observation (NaN, None or −1 where there is none) and return p(state | x so far), (K,)."""
        done, total = self._taken(self._logs(z), self._row)
        if not done:
            self._model._read_one(z)  # an observation that is none says so
            raise _impossible(self.steps)
        self.log_likelihood = total
        self.steps += 1
        return self._row[0].copy()

    def update_many(self, Z: Any) -> FloatArray:
        """Take observations in a row, as `predict` takes one sequence; p(state | x so far) after each, (n, K).

        If one is impossible, none is taken.
        """
        logs = self._model._emission().logs(self._model._read(Z, None, reset=False)[0])
        out = np.empty_like(logs)
        done, total = self._taken(logs, out)
        if done < len(logs):
            raise _impossible(self.steps + done)
        self.log_likelihood = total
        self.steps += len(logs)
        return out

    def _taken(self, logs: FloatArray, out: FloatArray) -> tuple[int, float]:
        """(rows done, log p(x so far)); the belief changes only when all are done."""
        done, total = _loops.filter_rows(
            self._belief, self._A, _NO_INPUTS, logs, self.steps == 0, self.log_likelihood, out
        )
        return done, total

    def predict(self, steps: int = 1) -> FloatArray:
        """p(state `steps` observations from now | x so far), (K,)."""
        belief = self._belief.copy()
        for _ in range(check_count("steps", steps) - (0 if self.steps else 1)):
            belief = belief @ self._A[0]
            belief /= belief.sum()
        return belief


def _impossible(step: int) -> ImpossibleEvidenceError:
    return ImpossibleEvidenceError(
        f"observation {step} has probability zero: no state that can hold now gives it. The belief stays as it was."
    )
