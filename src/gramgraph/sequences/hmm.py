"""What hidden Markov models of all kinds of emissions share: scikit-learn's contract over the recursions."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gramgraph._numerics import hmm as _loops
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.sequences import recursions
from gramgraph.sequences._reading import check_chain, check_count
from gramgraph.sequences.baum_welch import Chain, Emission, Learned, baum_welch
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.sequences.filtering import HMMFilter

__all__ = ["HiddenMarkovModel", "concentrations", "first_labels", "generator"]

_FIXED = ("emissions", "startprob", "transmat")


def generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a generator, None, or scikit-learn's `RandomState`."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


class HiddenMarkovModel(BaseEstimator):
    """Base of the hidden Markov models: z_1 ~ start, z_t | z_{t−1} ~ transition, x_t | z_t ~ emission.

    A subclass reads X into its data (`_read`), makes a first emission (`_begin`), and goes between the emission and
    its public attributes (`_emission`, `_store`).
    """

    _inits: ClassVar[tuple[str, ...]] = ("kmeans", "random")
    n_states: int
    start_prior: Any
    transition_prior: Any
    transition_mask: Any
    init: Any
    fixed: Any
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None
    random_state: Any
    startprob_: FloatArray
    transmat_: FloatArray

    @abstractmethod
    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[Any, IntArray]:
        """(data, offsets)."""

    @abstractmethod
    def _begin(self, data: Any, offsets: IntArray, rng: np.random.Generator) -> tuple[Emission, IntArray | None]:
        """A first emission, and first labels of the rows where it found some."""

    @abstractmethod
    def _emission(self) -> Emission:
        """The emission that the public attributes describe."""

    @abstractmethod
    def _store(self, emission: Any) -> None:
        """Set the public attributes."""

    # ------------------------------------------------------------------------------------------ learning

    def fit(self, X: Any, lengths: Any = None) -> Self:
        """Learn by Baum–Welch from one sequence, many one after the other (`lengths`), or a list of arrays."""
        self._check_parameters()
        data, offsets = self._read(X, lengths, reset=True)
        rng = generator(self.random_state)
        best: Learned | None = None
        for _ in range(1 if isinstance(self.init, HiddenMarkovModel) else self.n_init):
            chain, emission = self._first(data, offsets, rng)
            found = baum_welch(
                chain, emission, data, offsets,
                fixed=tuple(self.fixed), max_iter=self.max_iter, tol=self.tol, n_jobs=self.n_jobs,
            )  # fmt: skip
            if best is None or found.history[-1] > best.history[-1]:
                best = found
        assert best is not None
        self.startprob_, self.transmat_ = best.chain.start, best.chain.transition
        self._store(best.emission)
        self.history_ = np.array(best.history)
        self.n_iter_, self.converged_ = len(best.history), best.converged
        self.log_likelihood_ = best.log_likelihood
        return self

    def _check_parameters(self) -> None:
        check_count("n_states", self.n_states)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        if not isinstance(self.tol, (int, float, np.number)) or not self.tol >= 0:
            raise ModelError(f"tol must be a number of at least 0; it is {self.tol!r}.")
        unknown = [name for name in tuple(self.fixed) if name not in _FIXED]
        if isinstance(self.fixed, str) or unknown:
            raise ModelError(f"fixed must be a list of names out of {listing(_FIXED)}; it is {self.fixed!r}.")
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

    def _first(self, data: Any, offsets: IntArray, rng: np.random.Generator) -> tuple[Chain, Emission]:
        """Start values: those of `init`, or the emission's first guess with the steps between its labels."""
        if isinstance(self.init, HiddenMarkovModel):
            return self._chain(self.init.startprob_, self.init.transmat_), self.init._emission()
        emission, labels = self._begin(data, offsets, rng)
        K = self.n_states
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
        start_mask, mask = self._masks()
        start, transition = start * start_mask, transition * mask
        if not start.sum() > 0 or not (transition.sum(axis=1) > 0).all():
            raise ModelError("transition_mask forbids every step out of a state that the start values allow.")
        return Chain(
            start / start.sum(),
            np.ascontiguousarray(transition / transition.sum(axis=1, keepdims=True)),
            concentrations("start_prior", self.start_prior, (K,)),
            concentrations("transition_prior", self.transition_prior, (K, K)),
            start_mask,
            mask,
        )

    def _masks(self) -> tuple[Array, Array]:
        K = self.n_states
        start = np.ones(K, dtype=bool)
        if self.transition_mask is None:
            return start, np.ones((K, K), dtype=bool)
        if isinstance(self.transition_mask, str):
            if self.transition_mask != "left-right":
                raise ModelError(
                    f"transition_mask must be None, 'left-right' or a matrix of {K} × {K} booleans; it is "
                    f"{self.transition_mask!r}."
                )
            start[1:] = False
            return start, np.eye(K, dtype=bool) | np.eye(K, k=1, dtype=bool)
        mask = np.asarray(self.transition_mask)
        if mask.shape != (K, K) or not np.isin(mask, (0, 1)).all():
            raise ModelError(f"transition_mask must be a matrix of {K} × {K} booleans; its shape is {mask.shape}.")
        if not mask.any(axis=1).all():
            raise ModelError(f"transition_mask lets no step leave state {int(np.flatnonzero(~mask.any(axis=1))[0])}.")
        return start, mask.astype(bool)

    def _set_chain(self, startprob: Any, transmat: Any) -> None:
        self.startprob_, self.transmat_ = check_chain(startprob, transmat)
        self.n_states = len(self.startprob_)

    # ----------------------------------------------------------------------------------------- questions

    def _ready(self, X: Any, lengths: Any) -> tuple[FloatArray, FloatArray, Emission, Any, IntArray]:
        check_is_fitted(self, "transmat_")
        data, offsets = self._read(X, lengths, reset=False)
        start, transition = check_chain(self.startprob_, self.transmat_)
        return start, transition, self._emission(), data, offsets

    def _forward(self, X: Any, lengths: Any) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        start, A, emission, data, offsets = self._ready(X, lengths)
        b, shift = emission.likelihoods(data)
        alpha, found, bad = recursions.run_forward(
            start, A, b, shift, offsets, lambda rows: emission.logs(data[rows]), n_jobs=self.n_jobs
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
        b, shift = emission.likelihoods(data)
        return recursions.run_posteriors(
            start, A, b, shift, offsets, lambda rows: emission.logs(data[rows]), n_jobs=self.n_jobs, pairs=pairs
        )

    def predict_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """p(state at t | the whole sequence), (N, K)."""
        return self._posteriors(X, lengths, pairs=False).probabilities

    def decode(self, X: Any, lengths: Any = None, *, algorithm: str = "viterbi") -> tuple[float, IntArray]:
        """(value, states (N,)).

        "viterbi": the most probable path, value = log p(path, x). "posterior": the most probable state at every time,
        value = Σ log p(state_t | x), the expected number of right states being the largest.
        """
        if algorithm == "viterbi":
            start, A, emission, data, offsets = self._ready(X, lengths)
            states, best = recursions.run_viterbi(start, A, emission.logs(data), offsets, n_jobs=self.n_jobs)
            return float(best.sum()), states
        if algorithm == "posterior":
            found = self.predict_proba(X, lengths)
            states = found.argmax(axis=1)
            return float(np.log(found[np.arange(len(found)), states]).sum()), states
        hint = did_you_mean(algorithm, ("viterbi", "posterior"))
        raise ModelError(f"algorithm must be 'viterbi' or 'posterior'; it is {algorithm!r}.{hint}")

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

    def filter(self, *, state: dict[str, Any] | None = None) -> HMMFilter:
        """A filter that takes one observation at a time; `state` continues one that was saved."""
        from gramgraph.sequences.filtering import HMMFilter

        check_is_fitted(self, "transmat_")
        return HMMFilter(self, state=state)

    # ------------------------------------------------------------------------------------- how many states

    @property
    def n_parameters_(self) -> int:
        """Free numbers of the model: those of the chain and of the emissions."""
        check_is_fitted(self, "transmat_")
        return self._chain(self.startprob_, self.transmat_).n_parameters + self._emission().n_parameters

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


def concentrations(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """Dirichlet concentrations of this shape: numbers of at least 1 (1 is flat, 2 adds one count a cell)."""
    try:
        prior = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be a number or an array of shape {shape}; it is {value!r}.") from None
    if not np.isfinite(prior).all() or (prior < 1.0).any():
        raise ModelError(
            f"{name} must be at least 1 everywhere (1 is flat, 1 + c adds c counts a cell); it is {value!r}."
        )
    return prior


def first_labels(
    points: FloatArray, offsets: IntArray, n_states: int, mask: Any, rng: np.random.Generator, most: int = 20_000
) -> IntArray:
    """A first guess of the states: k-means of the points (of `most` of them, if there are more), NaN at the mean.

    For left-right models equal stretches of time.
    """
    n = len(points)
    if isinstance(mask, str):
        sizes = np.diff(offsets)
        place = np.arange(n) - np.repeat(offsets[:-1], sizes)
        return (place * n_states) // np.repeat(sizes, sizes)
    from warnings import catch_warnings, simplefilter

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    filled = points
    if np.isnan(points).any():
        seen = ~np.isnan(points)
        middle = np.where(seen, points, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        filled = np.where(seen, points, middle)
    spread = filled.std(axis=0)
    filled = (filled - filled.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    some = filled if n <= most else filled[rng.choice(n, most, replace=False)]
    with threadpool_limits(1), catch_warnings():  # few points: threads would wait for each other
        simplefilter("ignore", ConvergenceWarning)  # fewer different points than states: the others begin empty
        found = KMeans(min(n_states, len(some)), n_init=1, random_state=int(rng.integers(2**31 - 1))).fit(some)
    return found.predict(filled).astype(np.int64)
