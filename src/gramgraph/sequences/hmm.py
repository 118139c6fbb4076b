"""What hidden Markov models of all kinds of emissions share: scikit-learn's contract over the recursions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gramgraph._drawn import Explored
from gramgraph._numerics.hmm import recursions as _loops
from gramgraph._other_words import OtherWords
from gramgraph._pictures import pictures
from gramgraph._validation import check_choice, check_count, generator
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.sequences import recursions
from gramgraph.sequences._checked import checked
from gramgraph.sequences._constraints import emission_labels, masks_of, transition_labels
from gramgraph.sequences._reading import check_chain
from gramgraph.sequences._training import free_numbers, in_own_order, warn_of_few
from gramgraph.sequences.baum_welch import Chain, Emission, Learned, baum_welch, tied
from gramgraph.sequences.variational import Posterior, variational_bayes
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models import BayesianNetwork
    from gramgraph.sequences.filtering import HMMFilter

_FIXED = ("emissions", "startprob", "transmat")
_LEARNING = ("baum_welch", "viterbi", "variational")


@dataclass(eq=False, repr=False)
class HiddenMarkovModel(OtherWords, Explored, BaseEstimator):
    """Base of the hidden Markov models: z_1 ~ start, z_t | z_{t−1} ~ transition, x_t | z_t ~ emission.

    A subclass reads X into its data (`_read`), makes a first emission (`_begin`), and goes between the emission and
    its public attributes (`_emission`, `_store`).
    """

    _inits: ClassVar[tuple[str, ...]] = ("kmeans", "random")
    startprob_: FloatArray = field(init=False)
    transmat_: FloatArray = field(init=False)
    n_states: int = 2
    _: KW_ONLY
    start_prior: Any = 1.0
    transition_prior: Any = 1.0
    transition_mask: Any = None
    transition_ties: Any = None
    emission_ties: Any = None
    learning: str = "baum_welch"
    init: Any = "kmeans"
    fixed: Sequence[str] = ()
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-2
    n_jobs: int | None = None
    random_state: Any = None

    @abstractmethod
    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[Any, IntArray]:
        """(data, offsets)."""

    def _read_one(self, z: Any) -> Any:
        """The data of one observation of a stream."""
        row = np.asarray(z, dtype=object if z is None else None).reshape(1, -1)
        return self._read(row, None, reset=False)[0]

    def _stream_logs(self) -> Callable[[Any], FloatArray]:
        """z → log p(z | state), (1, K), for a stream: whatever does not change is done once."""
        emission = self._emission()
        return lambda z: emission.logs(self._read_one(z))

    @abstractmethod
    def _begin(self, data: Any, offsets: IntArray, rng: np.random.Generator) -> tuple[Emission, IntArray | None]:
        """A first emission, and first labels of the rows where it found some."""

    @abstractmethod
    def _emission(self) -> Emission:
        """The emission that the public attributes describe."""

    def check_emission(self) -> None:
        """`ModelError` where the fitted attributes do not describe an emission."""
        self._emission()

    @abstractmethod
    def _store(self, emission: Any) -> None:
        """Set the public attributes."""

    # ------------------------------------------------------------------------------------------ learning

    def fit(self, X: Any, lengths: Any = None) -> Self:
        """Learn from one sequence, many one after the other (`lengths`), or a list of arrays."""
        self._check_parameters()
        data, offsets = self._read(X, lengths, reset=True)
        data, offsets, _ = in_own_order(data, offsets)
        rng, fixed, ties = generator(self.random_state), tuple(self.fixed), self._ties()
        best: Learned | None = None
        posterior: Posterior | None = None
        for _ in range(1 if isinstance(self.init, HiddenMarkovModel) else self.n_init):
            chain, emission = self._first(data, offsets, rng)
            if best is None:
                warn_of_few(free_numbers(chain, emission, fixed, ties), data)
            how: dict[str, Any] = {"fixed": fixed, "max_iter": self.max_iter, "tol": self.tol, "n_jobs": self.n_jobs}
            weights: Posterior | None = None
            if self.learning == "variational":
                weights = variational_bayes(chain, emission, data, offsets, ties=ties, **how)
                found = weights.learned
            else:
                hard = self.learning == "viterbi"
                found = baum_welch(chain, emission, data, offsets, hard=hard, ties=ties, **how)
            if best is None or found.history[-1] > best.history[-1]:
                best, posterior = found, weights
        assert best is not None
        self.startprob_, self.transmat_ = best.chain.start, best.chain.transition
        self._store(best.emission)
        self.history_ = np.array(best.history)
        self.n_iter_, self.converged_ = len(best.history), best.converged
        self.log_likelihood_ = best.log_likelihood
        if posterior is not None:
            self._store_posterior(posterior)
        return self

    def _store_posterior(self, found: Posterior) -> None:
        """Weights of the Dirichlet posteriors that variational learning finds."""
        self.startprob_posterior_, self.transmat_posterior_ = found.start, found.transition
        if found.emission is not None:
            self.emissionprob_posterior_ = found.emission

    def partial_fit(self, X: Any, lengths: Any = None, *, step: float | None = None) -> Self:
        """Take one batch of sequences of a stream (online EM, stepwise): running averages of expected statistics.

        statistics = (1 − step) statistics + step · (those of the batch), and then the update that belongs to them;
        `step` is (batches so far + 1)^−0.6 by default, 1 for the first. The first batch also makes the start values,
        unless the model is fitted already or `init` is one. Memory does not grow.

        >>> from gramgraph.sequences import PoissonHMM
        >>> truth = PoissonHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[1.0], [9.0]])
        >>> model = PoissonHMM(2, random_state=0)
        >>> for batch in range(50):
        ...     model = model.partial_fit(truth.sample(100, random_state=batch)[0])
        >>> np.sort(model.rates_[:, 0]).round(0).tolist()
        [1.0, 9.0]
        """
        from gramgraph.sequences._online import stepwise

        return stepwise(self, X, lengths, step)

    def _check_parameters(self) -> None:
        check_count("n_states", self.n_states)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        if not isinstance(self.tol, (int, float, np.number)) or not self.tol >= 0:
            raise ModelError(f"tol must be a number of at least 0; it is {self.tol!r}.")
        unknown = [name for name in tuple(self.fixed) if name not in _FIXED]
        if isinstance(self.fixed, str) or unknown:
            raise ModelError(f"fixed must be a list of names out of {listing(_FIXED)}; it is {self.fixed!r}.")
        check_choice("learning", self.learning, _LEARNING)
        if isinstance(self.init, HiddenMarkovModel):
            if type(self.init) is not type(self) or self.init.n_states != self.n_states:
                raise ModelError(
                    f"init must be a fitted {type(self).__name__} with {self.n_states} states to start from."
                )
            check_is_fitted(self.init, "transmat_")
        elif self.init not in self._inits:
            hint = did_you_mean(self.init, self._inits)
            raise ModelError(
                f"init must be one of {listing(self._inits)} or a fitted model; it is {self.init!r}.{hint}"
            )

    def _ties(self) -> IntArray | None:
        return emission_labels(self.emission_ties, self.n_states)

    def _first(self, data: Any, offsets: IntArray, rng: np.random.Generator) -> tuple[Chain, Emission]:
        """Start values: those of `init`, or the emission's first guess with the steps between its labels."""
        ties = self._ties()
        if isinstance(self.init, HiddenMarkovModel):
            own = deepcopy(self.init._emission())  # what is fixed stays, but in arrays of this model
            return self._chain(self.init.startprob_, self.init.transmat_), _equal(own, ties)
        emission, labels = self._begin(data, offsets, rng)
        emission, K = _equal(emission, ties), self.n_states
        if labels is None:  # states that last a while, none like another
            start = rng.dirichlet(np.full(K, 10.0))
            transition = 0.5 * np.eye(K) + 0.5 * rng.dirichlet(np.full(K, 2.0), K)
        else:
            pair = np.ones(len(labels), dtype=bool)
            pair[offsets[:-1]] = False
            after = np.flatnonzero(pair)
            counts = np.bincount(labels[after - 1] * K + labels[after], minlength=K * K).reshape(K, K) + 1.0
            transition = counts / counts.sum(axis=1, keepdims=True)
            start = np.bincount(labels[offsets[:-1]], minlength=K).astype(np.float64) + 1.0
        return self._chain(start / start.sum(), transition), emission

    def _chain(self, start: FloatArray, transition: FloatArray) -> Chain:
        """The chain with priors, and zeros where the mask forbids a step."""
        K = self.n_states
        start_mask, mask = masks_of(self.transition_mask, K)
        ties = transition_labels(self.transition_ties, mask)
        start, transition = start * start_mask, transition * mask
        if ties is not None:
            transition = tied(transition, ties)
        if not start.sum() > 0 or not (transition.sum(axis=1) > 0).all():
            raise ModelError("transition_mask forbids every step out of a state that the start values allow.")
        return Chain(
            start / start.sum(),
            np.ascontiguousarray(transition / transition.sum(axis=1, keepdims=True)),
            concentrations("start_prior", self.start_prior, (K,), self.learning),
            concentrations("transition_prior", self.transition_prior, (K, K), self.learning),
            start_mask,
            mask,
            ties,
        )

    def _set_chain(self, startprob: Any, transmat: Any) -> None:
        self.startprob_, self.transmat_ = check_chain(startprob, transmat)
        self.n_states = len(self.startprob_)

    # ----------------------------------------------------------------------------------------- questions

    def _ready(self, X: Any, lengths: Any) -> tuple[FloatArray, FloatArray, Emission, Any, IntArray]:
        if not hasattr(self, "transmat_"):
            check_is_fitted(self, "transmat_")
        data, offsets = self._read(X, lengths, reset=False)
        return *checked(self), data, offsets

    def _forward(self, X: Any, lengths: Any) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        start, A, emission, data, offsets = self._ready(X, lengths)
        alpha, found, bad = recursions.run_forward(
            start,
            A,
            lambda rows: emission.likelihoods(data[rows]),
            offsets,
            lambda rows: emission.logs(data[rows]),
            n_jobs=self.n_jobs,
        )
        return alpha, found, bad, offsets

    def score_sequences(self, X: Any, lengths: Any = None) -> FloatArray:
        """log p(x) of every sequence, (S,); −inf where it cannot be."""
        return self._forward(X, lengths)[1]

    def score(self, X: Any, lengths: Any = None) -> float:
        """log p of all sequences together."""
        return float(self.score_sequences(X, lengths).sum())

    def filter_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """p(state at t | x up to t), (N, K)."""
        alpha, _, bad, offsets = self._forward(X, lengths)
        recursions.refuse_impossible(bad, offsets)
        return alpha

    def posteriors(self, X: Any, lengths: Any = None) -> recursions.Posteriors:
        """State posteriors, log-likelihoods, expected first states and transitions."""
        return self._posteriors(X, lengths, pairs=True)

    def _posteriors(self, X: Any, lengths: Any, *, pairs: bool) -> recursions.Posteriors:
        start, A, emission, data, offsets = self._ready(X, lengths)
        return recursions.run_posteriors(
            start,
            A,
            lambda rows: emission.likelihoods(data[rows]),
            offsets,
            lambda rows: emission.logs(data[rows]),
            n_jobs=self.n_jobs,
            pairs=pairs,
        )

    def predict_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """p(state at t | the whole sequence), (N, K)."""
        return self._posteriors(X, lengths, pairs=False).probabilities

    def _best_path(self, X: Any, lengths: Any) -> tuple[IntArray, FloatArray]:
        start, A, emission, data, offsets = self._ready(X, lengths)
        logs = recursions.by_rows(lambda rows: emission.logs(data[rows]), int(offsets[-1]), len(A), self.n_jobs)
        return recursions.run_viterbi(start, A, logs, offsets, n_jobs=self.n_jobs)

    @overload
    def decode(
        self, X: Any, lengths: Any = None, *, algorithm: str = "viterbi", k: None = None
    ) -> tuple[float, IntArray]: ...

    @overload
    def decode(
        self, X: Any, lengths: Any = None, *, algorithm: str = "viterbi", k: int
    ) -> tuple[FloatArray, IntArray]: ...

    def decode(
        self, X: Any, lengths: Any = None, *, algorithm: str = "viterbi", k: int | None = None
    ) -> tuple[float | FloatArray, IntArray]:
        """(value, states (N,)).

        "viterbi": the most probable path, value = log p(path, x). "posterior": the most probable state at every time,
        value = Σ log p(state_t | x), the expected number of right states being the largest.

        With `k`, the k most probable paths of every sequence, best first: log p(path, x), (k, S), and states, (k, N);
        −inf and −1 where a sequence has fewer paths. O(N K² k).
        """
        if algorithm not in ("viterbi", "posterior"):
            hint = did_you_mean(algorithm, ("viterbi", "posterior"))
            raise ModelError(f"algorithm must be 'viterbi' or 'posterior'; it is {algorithm!r}.{hint}")
        if k is not None:
            if algorithm != "viterbi":
                raise ModelError("the k best paths are those of algorithm='viterbi'.")
            start, A, emission, data, offsets = self._ready(X, lengths)
            return recursions.run_best_paths(start, A, emission.logs(data), offsets, check_count("k", k))
        if algorithm == "viterbi":
            states, best = self._best_path(X, lengths)
            return float(best.sum()), states
        found = self.predict_proba(X, lengths)
        states = found.argmax(axis=1)
        return float(np.log(found[np.arange(len(found)), states]).sum()), states

    def predict(self, X: Any, lengths: Any = None) -> IntArray:
        """The most probable path of states, (N,)."""
        return self.decode(X, lengths)[1]

    def sample_states(self, X: Any, lengths: Any = None, *, n_samples: int = 1, random_state: Any = None) -> IntArray:
        """Paths of states drawn given the observations, (n_samples, N)."""
        alpha, _, bad, offsets = self._forward(X, lengths)
        recursions.refuse_impossible(bad, offsets)
        rng = generator(random_state)
        AT = np.ascontiguousarray(self.transmat_.T)
        paths = np.empty((check_count("n_samples", n_samples), len(alpha)), dtype=np.int64)
        for path in paths:
            _loops.draw_backward(alpha, AT, offsets, 0, len(offsets) - 1, rng.random(len(alpha)), path)
        return paths

    def sample(self, n_samples: int = 1, *, n_sequences: int = 1, random_state: Any = None) -> tuple[Array, IntArray]:
        """(X, states) of `n_sequences` sequences with `n_samples` rows each, one after the other."""
        check_is_fitted(self, "transmat_")
        n, count = check_count("n_samples", n_samples), check_count("n_sequences", n_sequences)
        rng = generator(self.random_state if random_state is None else random_state)
        start, A = check_chain(self.startprob_, self.transmat_)
        states = np.empty(n * count, dtype=np.int64)
        _loops.draw_chain(start, A, np.arange(0, n * count + 1, n), rng.random(n * count), states)
        return self._emission().draw(states, rng), states

    def to_network(self, length: int, *, prefixes: tuple[str, str] = ("z", "x")) -> BayesianNetwork:
        """The model unrolled for `length` steps: z1 -> z2 -> …, z_t -> x_t; states of z are "0", "1", ….

        Symbols are discrete variables, Gaussian vectors real-valued ones; several columns of symbols or counts are
        x1_0, x1_1, …. Answers are those of the recursions.

        >>> from gramgraph.sequences import CategoricalHMM
        >>> casino = CategoricalHMM.from_parameters([0.5, 0.5], np.eye(2), [[0.5, 0.5], [0.1, 0.9]])
        >>> net = casino.to_network(2)
        >>> round(net.query("z2", evidence={"x1": "1"})["z2"].prob("1"), 6)
        0.642857
        """
        from gramgraph.sequences._unrolled import state_chain, unrolled

        check_is_fitted(self, "transmat_")
        start, A = check_chain(self.startprob_, self.transmat_)
        hidden = state_chain(check_count("length", length), prefixes[0], start, A)
        return unrolled(hidden, [z for z, _ in hidden], self._emission(), prefixes[1], "hidden Markov model")

    def filter(self, *, state: dict[str, Any] | None = None) -> HMMFilter:
        """A filter that takes one observation at a time; `state` continues one that was saved."""
        from gramgraph.sequences.filtering import HMMFilter

        check_is_fitted(self, "transmat_")
        return HMMFilter(self, state=state)

    def plot(self, X: Any, **options: Any) -> Any:
        """The most probable states as ribbons behind one sequence: `gramgraph.plot.plot_states`."""
        check_is_fitted(self, "transmat_")
        return pictures().plot_states(self, X, **options)

    # ------------------------------------------------------------------------------------- how many states

    @property
    def n_parameters_(self) -> int:
        """Free numbers of the model: those of the chain and of the emissions."""
        check_is_fitted(self, "transmat_")
        return free_numbers(self._chain(self.startprob_, self.transmat_), self._emission(), (), self._ties())

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Bayesian information criterion, −2 log p + parameters · log N; lower is better."""
        _, found, _, offsets = self._forward(X, lengths)
        return float(-2.0 * found.sum() + self.n_parameters_ * np.log(offsets[-1]))

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Akaike's information criterion, −2 log p + 2 · parameters; lower is better."""
        return float(-2.0 * self.score(X, lengths) + 2.0 * self.n_parameters_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _equal(emission: Emission, ties: IntArray | None) -> Emission:
    """States that share their emission begin with that of the first of them."""
    return emission if ties is None else emission.take(np.unique(ties, return_index=True)[1][ties])


def concentrations(name: str, value: Any, shape: tuple[int, ...], learning: str = "") -> FloatArray:
    """Dirichlet concentrations of this shape: numbers of at least 1 (1 is flat, 2 adds one count per cell).

    Variational learning has posteriors for all positive ones: it looks for no mode.
    """
    try:
        prior = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be a number or an array of shape {shape}; it is {value!r}.") from None
    if learning == "variational":
        if not np.isfinite(prior).all() or (prior <= 0.0).any():
            raise ModelError(f"{name} must be positive everywhere; it is {value!r}.")
    elif not np.isfinite(prior).all() or (prior < 1.0).any():
        raise ModelError(
            f"{name} must be at least 1 everywhere (1 is flat, 1 + c adds c counts a cell); it is {value!r}."
        )
    return prior
