"""Hidden Markov models whose transitions depend on an input or action at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramgraph._numerics.hmm import paths as _loops
from gramgraph._numerics.hmm.streams import filter_rows
from gramgraph._validation import check_count, generator
from gramgraph.exceptions import ModelError
from gramgraph.sequences._reading import check_rows
from gramgraph.sequences._training import free_numbers, in_own_order, warn_of_few
from gramgraph.sequences._wrapping import WrappedModel, logs_of
from gramgraph.sequences.baum_welch import Emission, dirichlet_log_prior, normalized_rows
from gramgraph.sequences.filtering import HMMFilter
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models import BayesianNetwork


class InputHMM(WrappedModel):
    """An input-output hidden Markov model: p(z_t | z_{t−1}, u_t) has a matrix for every input u; x_t depends on z_t.

    With actions as inputs it is the Bayes filter that acts and then senses. The input of a sequence's first row is not
    used: the first state follows startprob.

    Parameters
    ----------
    model : a hidden Markov model, such as `GaussianHMM(3)`: its emissions, priors, `transition_mask`, `fixed`, `tol`
        and `max_iter` are taken.
    n_inputs : inputs are 0 … n_inputs − 1; None: as many as are seen.

    Attributes
    ----------
    model_ (a copy that holds the emissions), startprob_ (K,), transmat_ (U, K, K), history_ (log posterior before every
    update: it never falls), n_iter_, converged_.

    A robot before a door, states (open, closed), looks; then it pushes the door shut (input 1) and looks again:

    Examples
    --------
    >>> from gramgraph.sequences import CategoricalHMM
    >>> look = CategoricalHMM.from_parameters([0.5, 0.5], np.eye(2), [[0.6, 0.4], [0.3, 0.7]])
    >>> door = InputHMM.from_parameters(look, [np.eye(2), [[0.1, 0.9], [0.0, 1.0]]])
    >>> door.filter_proba([0, -1], [0, 1])[:, 0].round(4).tolist()
    [0.6667, 0.0667]
    """

    def __init__(self, model: Any = None, *, n_inputs: int | None = None) -> None:
        self.model = model
        self.n_inputs = n_inputs

    @classmethod
    def from_parameters(cls, model: Any, transmat: Any) -> Self:
        """A model with known numbers: emissions and start of a fitted `model`, and p(next | now, u), (U, K, K).

        >>> from gramgraph.sequences import CategoricalHMM
        >>> one = CategoricalHMM.from_parameters([1.0], [[1.0]], [[0.5, 0.5]])
        >>> round(InputHMM.from_parameters(one, [[[1.0]]]).score([0, 1], [0, 0]), 6)
        -1.386294
        """
        stack = check_rows("transmat", transmat, 3)
        new = cls(model, n_inputs=len(stack))
        new.model_ = new._wrapped()
        new.startprob_ = check_rows("startprob", new.model_.startprob_, 1)
        K = len(new.startprob_)
        if stack.shape[1:] != (K, K):
            raise ModelError(f"transmat must have shape (inputs, {K}, {K}); its shape is {stack.shape}.")
        new.transmat_ = stack
        return new

    # -------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, inputs: Any, lengths: Any = None) -> Self:
        """Learn by EM; `inputs`, (N,), has a whole number a row, or a list of such arrays where X is a list."""
        model = self._copy()
        data, offsets = model._read(X, lengths, reset=True)
        if self.n_inputs is not None:
            check_count("n_inputs", self.n_inputs)
        u = _inputs(inputs, int(offsets[-1]), self.n_inputs)
        U = int(u.max()) + 1 if self.n_inputs is None else self.n_inputs
        data, offsets, rows = in_own_order(data, offsets, u)
        u = u if rows is None else u[rows]
        chain, emission = model._first(data, offsets, generator(model.random_state))
        A = np.repeat(chain.transition[None], U, axis=0)
        start, fixed, converged = chain.start, tuple(model.fixed), False
        more = 0 if "transmat" in fixed else (U - 1) * (chain.n_parameters - int(chain.start_mask.sum()) + 1)
        warn_of_few(free_numbers(chain, emission, fixed, None) + more, data)
        history: list[float] = []
        for _ in range(model.max_iter):
            gamma, totals, pairs = self._expected(start, A, u, emission, data, offsets)
            prior = dirichlet_log_prior(A, chain.transition_prior, chain.transition_mask)
            prior += dirichlet_log_prior(start, chain.start_prior, chain.start_mask)
            history.append(float(totals.sum()) + prior + emission.log_prior())
            if len(history) > 1 and history[-1] - history[-2] < model.tol:
                converged = True
                break
            if "startprob" not in fixed:
                start = normalized_rows(gamma[offsets[:-1]].sum(axis=0), chain.start_prior, start, chain.start_mask)
            if "transmat" not in fixed:
                A = normalized_rows(pairs, chain.transition_prior, A, chain.transition_mask)
            if "emissions" not in fixed:
                emission = emission.update(data, gamma)
        model.startprob_, model.transmat_ = start, A.mean(axis=0)
        model._store(emission)
        self.model_, self.startprob_, self.transmat_ = model, start, A
        return self._learned(history, converged)

    def _expected(
        self, start: FloatArray, A: FloatArray, u: IntArray, emission: Emission, data: Any, offsets: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        logs = emission.logs(data)
        log_start, log_A = logs_of(start), logs_of(A)
        gamma, pairs, totals = np.empty_like(logs), np.zeros_like(A), np.empty(len(offsets) - 1)
        for s, (lo, hi) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            alpha = np.empty_like(logs[lo:hi])
            totals[s], bad = _loops.input_forward(log_start, log_A, u[lo:hi], logs[lo:hi], alpha)
            if bad >= 0:
                self._refuse(s, int(bad), offsets)
            _loops.input_backward(log_A, u[lo:hi], logs[lo:hi], alpha, gamma[lo:hi], pairs)
        return gamma, totals, pairs

    # ------------------------------------------------------------------------------------------- questions

    def _ready(self, X: Any, inputs: Any, lengths: Any) -> tuple[Any, IntArray, FloatArray, IntArray]:
        data, offsets, logs = self._read(X, lengths)
        return data, offsets, logs, _inputs(inputs, len(logs), len(self.transmat_))

    def predict_proba(self, X: Any, inputs: Any, lengths: Any = None) -> FloatArray:
        """p(state at t | the whole sequence and its inputs), (N, K)."""
        data, offsets, _, u = self._ready(X, inputs, lengths)
        return self._expected(self.startprob_, self.transmat_, u, self.model_._emission(), data, offsets)[0]

    def filter_proba(self, X: Any, inputs: Any, lengths: Any = None) -> FloatArray:
        """p(state at t | x and inputs up to t), (N, K)."""
        alpha, _, offsets, bad = self._forward(X, inputs, lengths)
        for s in np.flatnonzero(bad >= 0)[:1]:
            self._refuse(int(s), int(bad[s]), offsets)
        return np.exp(alpha)

    def _forward(self, X: Any, inputs: Any, lengths: Any) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        _, offsets, logs, u = self._ready(X, inputs, lengths)
        alpha, totals = np.zeros_like(logs), np.empty(len(offsets) - 1)
        bad = np.full(len(totals), -1)
        for s in range(len(totals)):
            rows = slice(int(offsets[s]), int(offsets[s + 1]))
            totals[s], bad[s] = _loops.input_forward(
                logs_of(self.startprob_), logs_of(self.transmat_), u[rows], logs[rows], alpha[rows]
            )
        return alpha, totals, offsets, bad

    def score_sequences(self, X: Any, inputs: Any, lengths: Any = None) -> FloatArray:
        """log p(x | inputs) of every sequence, (S,); −inf where it cannot be."""
        return self._forward(X, inputs, lengths)[1]

    def score(self, X: Any, inputs: Any, lengths: Any = None) -> float:
        """log p of all sequences together."""
        return float(self.score_sequences(X, inputs, lengths).sum())

    def decode(self, X: Any, inputs: Any, lengths: Any = None) -> tuple[float, IntArray]:
        """(log p(states, x | inputs), states (N,)): the most probable path."""
        _, offsets, logs, u = self._ready(X, inputs, lengths)
        path, total = np.empty(len(logs), dtype=np.int64), 0.0
        for s in range(len(offsets) - 1):
            rows = slice(int(offsets[s]), int(offsets[s + 1]))
            best = _loops.input_viterbi(
                logs_of(self.startprob_), logs_of(self.transmat_), u[rows], logs[rows], path[rows]
            )
            if best == -np.inf:
                self._refuse(s, -1, offsets)
            total += best
        return float(total), path

    def predict(self, X: Any, inputs: Any, lengths: Any = None) -> IntArray:
        """The most probable path of states, (N,)."""
        return self.decode(X, inputs, lengths)[1]

    def filter(self, *, state: dict[str, Any] | None = None) -> InputFilter:
        """A filter that takes one observation and its input at a time; `state` continues one that was saved.

        >>> from gramgraph.sequences import CategoricalHMM
        >>> door = CategoricalHMM.from_parameters([0.5, 0.5], np.eye(2), [[0.6, 0.4], [0.3, 0.7]])
        >>> stream = InputHMM.from_parameters(door, [np.eye(2), [[0.1, 0.9], [0.0, 1.0]]]).filter()
        >>> [round(float(stream.update(z, u)[0]), 4) for z, u in ((0, 0), (-1, 1))]
        [0.6667, 0.0667]
        """
        check_is_fitted(self, "model_")
        return InputFilter(self.model_, transitions=self.transmat_, state=state)

    def sample(self, inputs: Any, *, random_state: Any = None) -> tuple[Any, IntArray]:
        """(X, states) of one sequence under these inputs."""
        check_is_fitted(self, "model_")
        u, rng = _inputs(inputs, None, len(self.transmat_)), generator(random_state)
        states = np.empty(len(u), dtype=np.int64)
        for t, now in enumerate(u.tolist()):
            p = self.startprob_ if t == 0 else self.transmat_[now, states[t - 1]]
            states[t] = rng.choice(len(p), p=p)
        return self.model_._emission().draw(states, rng), states

    def to_network(self, inputs: Any, *, prefixes: tuple[str, str] = ("z", "x")) -> BayesianNetwork:
        """The model unrolled over these inputs: z1 -> z2 -> …, z_t -> x_t."""
        from gramgraph.sequences._unrolled import state_chain, unrolled

        check_is_fitted(self, "model_")
        u = _inputs(inputs, None, len(self.transmat_))
        hidden = state_chain(len(u), prefixes[0], self.startprob_, self.transmat_[u[1:]])
        return unrolled(hidden, [z for z, _ in hidden], self.model_._emission(), prefixes[1], "input-output HMM")


class InputFilter(HMMFilter):
    """The filter of an `InputHMM`: as `HMMFilter`, but every observation comes with the input that moves to it."""

    def update(self, z: Any, u: Any) -> FloatArray:  # type: ignore[override]
        """Take the next observation and its input and return p(state | x and inputs so far), (K,)."""
        self._u = _inputs([u], 1, len(self._A))
        return super().update(z)

    def update_many(self, Z: Any, inputs: Any) -> FloatArray:  # type: ignore[override]
        """Take observations in a row, each with its input; p(state | x and inputs so far) after each, (n, K)."""
        self._u = _inputs(inputs, None, len(self._A))
        return super().update_many(Z)

    def _taken(self, logs: FloatArray, out: FloatArray) -> tuple[int, float]:
        if len(self._u) != len(logs):
            raise ModelError(f"there are {len(logs)} observations, but {len(self._u)} inputs.")
        done, total = filter_rows(self._belief, self._A, self._u, logs, self.steps == 0, self.log_likelihood, out)
        return done, total

    def predict(self, inputs: Any) -> FloatArray:  # type: ignore[override]
        """p(state after moves under these inputs | x so far), (K,); the first observation is not moved to."""
        belief = self._belief.copy()
        for u in _inputs(inputs, None, len(self._A)).tolist()[0 if self.steps else 1 :]:
            belief = belief @ self._A[u]
        return belief


def _inputs(given: Any, n: int | None, most: int | None) -> IntArray:
    """Whole numbers from 0, one per row."""
    if isinstance(given, (list, tuple)) and len(given) and all(np.ndim(part) == 1 for part in given):
        given = np.concatenate([np.asarray(part) for part in given])
    u = np.asarray(given)
    if u.ndim == 2 and u.shape[1] == 1:
        u = u[:, 0]
    if u.ndim != 1 or u.dtype.kind not in "iub" or not len(u):
        raise ModelError(f"inputs must be whole numbers, one per row; got an array of {u.dtype} with shape {u.shape}.")
    if n is not None and len(u) != n:
        raise ModelError(f"inputs has {len(u)} entries, but X has {n} rows.")
    u = u.astype(np.int64)
    if u.min() < 0 or (most is not None and u.max() >= most):
        wrong = int(u[(u < 0) | (u >= (most or u.max() + 1))][0])
        raise ModelError(f"inputs must lie between 0 and {(most or int(u.max()) + 1) - 1}, but one is {wrong}.")
    return u
