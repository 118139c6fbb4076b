"""Hidden semi-Markov models: the duration of each state has its own distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramgraph._numerics.hmm import paths as _loops
from gramgraph._numerics.hmm.streams import duration_rows
from gramgraph._validation import check_count, generator
from gramgraph.exceptions import ModelError
from gramgraph.sequences._reading import check_rows
from gramgraph.sequences._training import free_numbers, in_own_order, warn_of_few
from gramgraph.sequences._wrapping import WrappedModel, logs_of
from gramgraph.sequences.baum_welch import Chain, dirichlet_log_prior, normalized_rows
from gramgraph.sequences.filtering import HMMFilter
from gramgraph.sequences.hmm import concentrations
from gramgraph.sequences.recursions import Posteriors
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models import BayesianNetwork


class DurationHMM(WrappedModel):
    """An explicit-duration (semi-Markov) hidden Markov model: a state is entered, stays d ~ p(d | state), and is left.

    Parameters
    ----------
    model : a hidden Markov model, such as `GaussianHMM(3)`: its emissions, priors, `transition_mask`, `fixed`, `tol`
        and `max_iter` are taken. Transitions are those at the ends of stays; to the same state they are forbidden.
    max_duration : the longest stay, D.
    duration_prior : Dirichlet concentration of the durations, at least 1; 1 is flat.
    cut : whether the last stay may go on after the end of a sequence (True), or ends with it.

    Notes
    -----
    Forward–backward, most probable path and a step of EM take O(T K (K + D)) time and O(T K) memory.

    Attributes
    ----------
    model_ (a copy that holds the emissions), startprob_ (K,), transmat_ (K, K), durations_ (K, D): p(1 … D steps),
    history_ (log posterior before every update: it never falls), n_iter_, converged_.

    Examples
    --------
    >>> from gramgraph.sequences import CategoricalHMM
    >>> coin = CategoricalHMM.from_parameters([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]])
    >>> model = DurationHMM.from_parameters(coin, [[0.0, 0.0, 1.0], [0.0, 0.5, 0.5]], transmat=[[0, 1], [1, 0]])
    >>> model.predict([0, 1, 0, 1, 1, 0, 0]).tolist()
    [0, 0, 0, 1, 1, 0, 0]
    """

    def __init__(
        self, model: Any = None, *, max_duration: int = 10, duration_prior: Any = 1.0, cut: bool = True
    ) -> None:
        self.model = model
        self.max_duration = max_duration
        self.duration_prior = duration_prior
        self.cut = cut

    @classmethod
    def from_parameters(cls, model: Any, durations: Any, *, transmat: Any = None, cut: bool = True) -> Self:
        """A model with known numbers: emissions and chain of a fitted `model`, and p(duration | state), (K, D).

        >>> from gramgraph.sequences import CategoricalHMM
        >>> one = CategoricalHMM.from_parameters([1.0], [[1.0]], [[0.5, 0.5]])
        >>> round(DurationHMM.from_parameters(one, [[0.5, 0.5]]).score([0, 1]), 6)
        -1.386294
        """
        table = check_rows("durations", durations, 2)
        new = cls(model, max_duration=table.shape[1], cut=cut)
        new.model_ = new._wrapped()
        new.startprob_ = check_rows("startprob", new.model_.startprob_, 1)
        new.transmat_ = check_rows("transmat", new.model_.transmat_ if transmat is None else transmat, 2)
        K = len(new.startprob_)
        if len(table) != K or new.transmat_.shape != (K, K):
            raise ModelError(
                f"durations and transmat must have {K} rows, one per state; they have {len(table)} and "
                f"{len(new.transmat_)}."
            )
        new.durations_ = table
        return new

    # -------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, lengths: Any = None) -> Self:
        """Learn by EM from one sequence, many one after the other (`lengths`), or a list of arrays."""
        model = self._copy()
        D = check_count("max_duration", self.max_duration)
        data, offsets = model._read(X, lengths, reset=True)
        data, offsets, _ = in_own_order(data, offsets)
        chain, emission = model._first(data, offsets, generator(model.random_state))
        chain = _leaving(chain)
        K = len(chain.start)
        prior = concentrations("duration_prior", self.duration_prior, (K, D))
        durations = np.full((K, D), 1.0 / D)
        fixed, history = tuple(model.fixed), list[float]()
        warn_of_few(free_numbers(chain, emission, fixed, None) + K * (D - 1), data)
        converged = False
        for _ in range(model.max_iter):
            logs = emission.logs(data)
            found, stays = self._expected(chain.start, chain.transition, durations, logs, offsets)
            history.append(
                found.log_likelihood + chain.log_prior() + emission.log_prior() + dirichlet_log_prior(durations, prior)
            )
            if len(history) > 1 and history[-1] - history[-2] < model.tol:
                converged = True
                break
            chain = chain.update(found.start_counts, found.transition_counts, fixed)
            durations = normalized_rows(stays, prior, durations)
            if "emissions" not in fixed:
                emission = emission.update(data, found.probabilities)
        model.startprob_, model.transmat_ = chain.start, chain.transition
        model._store(emission)
        self.model_, self.durations_ = model, durations
        self.startprob_, self.transmat_ = chain.start, chain.transition
        return self._learned(history, converged)

    def _expected(
        self, start: FloatArray, A: FloatArray, durations: FloatArray, logs: FloatArray, offsets: IntArray
    ) -> tuple[Posteriors, FloatArray]:
        """Posteriors with expected moves between stays, and expected durations (K, D)."""
        K, D = durations.shape
        log_A, log_D, tails, log_last = logs_of(A), logs_of(durations), _tails(durations), self._last(durations)
        gamma, pairs, stays = np.empty_like(logs), np.zeros((K, K)), np.zeros((K, D))
        totals = np.empty(len(offsets) - 1)
        for s, (lo, hi) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
            rows = logs[lo:hi]
            begin, end, last = np.empty_like(rows), np.empty_like(rows), np.zeros((K, D))
            totals[s] = _loops.duration_forward(logs_of(start), log_A, log_D, log_last, rows, begin, end)
            if totals[s] == -np.inf:
                self._refuse(s, -1, offsets)
            _loops.duration_backward(
                log_A, log_D, log_last, rows, begin, end, totals[s], gamma[lo:hi], pairs, stays, last
            )
            if self.cut:  # a stay that was cut after d steps lasts d or more
                share = last / np.where(tails > 0.0, tails, 1.0)
                stays += np.cumsum(share, axis=1) * durations
            else:
                stays += last
        return Posteriors(gamma, totals, gamma[offsets[:-1]].sum(axis=0), pairs), stays

    def _last(self, durations: FloatArray) -> FloatArray:
        return logs_of(_tails(durations) if self.cut else durations)

    # ------------------------------------------------------------------------------------------- questions

    def posteriors(self, X: Any, lengths: Any = None) -> Posteriors:
        """State posteriors, log-likelihoods, expected first states and moves between stays."""
        _, offsets, logs = self._read(X, lengths)
        return self._expected(self.startprob_, self.transmat_, self.durations_, logs, offsets)[0]

    def predict_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """p(state at t | the whole sequence), (N, K)."""
        return self.posteriors(X, lengths).probabilities

    def score_sequences(self, X: Any, lengths: Any = None) -> FloatArray:
        """log p(x) of every sequence, (S,); −inf where it cannot be."""
        _, offsets, logs = self._read(X, lengths)
        args = logs_of(self.startprob_), logs_of(self.transmat_), logs_of(self.durations_), self._last(self.durations_)
        out = np.empty(len(offsets) - 1)
        for s in range(len(out)):
            rows = logs[offsets[s] : offsets[s + 1]]
            out[s] = _loops.duration_forward(*args, rows, np.empty_like(rows), np.empty_like(rows))
        return out

    def score(self, X: Any, lengths: Any = None) -> float:
        """log p of all sequences together."""
        return float(self.score_sequences(X, lengths).sum())

    def decode(self, X: Any, lengths: Any = None) -> tuple[float, IntArray]:
        """(log p(states, stays, x), states (N,)): the most probable path with its stays."""
        _, offsets, logs = self._read(X, lengths)
        args = logs_of(self.startprob_), logs_of(self.transmat_), logs_of(self.durations_), self._last(self.durations_)
        path, total = np.empty(len(logs), dtype=np.int64), 0.0
        for s in range(len(offsets) - 1):
            rows = slice(int(offsets[s]), int(offsets[s + 1]))
            best = _loops.duration_viterbi(*args, logs[rows], path[rows])
            if best == -np.inf:
                self._refuse(s, -1, offsets)
            total += best
        return float(total), path

    def predict(self, X: Any, lengths: Any = None) -> IntArray:
        """The most probable path of states, (N,)."""
        return self.decode(X, lengths)[1]

    def filter(self, *, state: dict[str, Any] | None = None) -> DurationFilter:
        """A filter that takes one observation at a time; `state` continues one that was saved.

        Its `log_likelihood` is that of a sequence whose last stay may go on, whatever `cut` says.

        >>> from gramgraph.sequences import CategoricalHMM
        >>> coin = CategoricalHMM.from_parameters([1.0, 0.0], np.eye(2), [[0.9, 0.1], [0.1, 0.9]])
        >>> model = DurationHMM.from_parameters(coin, [[0.0, 1.0], [0.5, 0.5]], transmat=[[0, 1], [1, 0]])
        >>> model.filter().update_many([0, 0, 0, 0])[:, 0].round(3).tolist()
        [1.0, 1.0, 0.0, 0.9]
        """
        check_is_fitted(self, "model_")
        return DurationFilter(self, state)

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[Any, IntArray]:
        """(X, states) of one sequence with `n_samples` rows; its last stay may be cut."""
        check_is_fitted(self, "model_")
        n, rng = check_count("n_samples", n_samples), generator(random_state)
        states: list[int] = []
        state = int(rng.choice(len(self.startprob_), p=self.startprob_))
        while len(states) < n:
            states += [state] * (1 + int(rng.choice(self.durations_.shape[1], p=self.durations_[state])))
            state = int(rng.choice(len(self.startprob_), p=self.transmat_[state]))
        path = np.array(states[:n], dtype=np.int64)
        return self.model_._emission().draw(path, rng), path

    def to_network(self, length: int, *, prefixes: tuple[str, str, str] = ("z", "r", "x")) -> BayesianNetwork:
        """Unrolled: z_t the state, r_t the steps that it still lasts ("1": it ends now), x_t what it emits.

        Without `cut`, the last r is observed to be "1".
        """
        from gramgraph.conditionals import Table
        from gramgraph.sequences._unrolled import unrolled
        from gramgraph.variables import Discrete, Var

        check_is_fitted(self, "model_")
        T = check_count("length", length)
        K, D = self.durations_.shape
        states, left = Discrete(tuple(map(str, range(K)))), Discrete(tuple(map(str, range(1, D + 1))))
        zs = [Var(f"{prefixes[0]}{t}", states) for t in range(1, T + 1)]
        rs = [Var(f"{prefixes[1]}{t}", left) for t in range(1, T + 1)]
        move = np.tile(np.eye(K)[:, None, :], (1, D, 1))  # z before, r before, z: it stays while r is above 1
        move[:, 0] = self.transmat_
        count = np.zeros((D, K, D))  # r before, z, r
        count[0] = self.durations_
        count[np.arange(1, D), :, np.arange(D - 1)] = 1.0
        hidden: list[Any] = [
            (zs[0], Table(zs[0], (), self.startprob_)),
            (rs[0], Table(rs[0], (zs[0],), self.durations_)),
        ]
        for t in range(1, T):
            hidden.append((zs[t], Table(zs[t], (zs[t - 1], rs[t - 1]), move)))
            hidden.append((rs[t], Table(rs[t], (rs[t - 1], zs[t]), count)))
        return unrolled(hidden, zs, self.model_._emission(), prefixes[2], "hidden semi-Markov model")


class DurationFilter(HMMFilter):
    """The filter of a `DurationHMM`: as `HMMFilter`; it remembers p(rest of the stay), O(K D) numbers."""

    def __init__(self, model: DurationHMM, state: dict[str, Any] | None = None) -> None:
        self._durations, self._begin = np.ascontiguousarray(model.durations_), model.startprob_
        super().__init__(model.model_, transitions=model.transmat_[None], state=state)

    def _start(self) -> FloatArray:
        return np.zeros_like(self._durations)

    @property
    def belief(self) -> FloatArray:
        """p(state | x so far), (K,); the start probabilities before the first observation."""
        return self._belief.sum(axis=1) if self.steps else self._begin.copy()

    @property
    def remaining(self) -> FloatArray:
        """p(state, it lasts 0 … D − 1 steps more | x so far), (K, D)."""
        return self._belief.copy() if self.steps else self._begin[:, None] * self._durations

    def _taken(self, logs: FloatArray, out: FloatArray) -> tuple[int, float]:
        done, total = duration_rows(
            self._belief, self._begin, self._A[0], self._durations, logs, self.steps == 0, self.log_likelihood, out
        )
        return done, total

    def predict(self, steps: int = 1) -> FloatArray:
        """p(state `steps` observations from now | x so far), (K,)."""
        n = check_count("steps", steps)
        out, nothing = np.empty((n, len(self._begin))), np.zeros((n, len(self._begin)))
        fresh = self.steps == 0
        duration_rows(self._belief.copy(), self._begin, self._A[0], self._durations, nothing, fresh, 0.0, out)
        return out[-1]


def _tails(durations: FloatArray) -> FloatArray:
    """p(at least d steps), (K, D)."""
    return np.cumsum(durations[:, ::-1], axis=1)[:, ::-1]


def _leaving(chain: Chain) -> Chain:
    """The chain without steps to the same state (a state that can go nowhere else begins itself anew)."""
    from dataclasses import replace

    mask = chain.transition_mask & ~np.eye(len(chain.start), dtype=bool)
    stuck = ~mask.any(axis=1)
    mask[stuck, stuck] = True
    A = np.where(mask, np.maximum(chain.transition, 1e-3), 0.0)
    A[stuck, stuck] = 1.0
    return replace(chain, transition=A / A.sum(axis=1, keepdims=True), transition_mask=mask)
