"""Topic models of large collections as estimators."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramgraph._interrupt import interruptible
from gramgraph._progress import reporting
from gramgraph._validation import check_choice, check_count, check_fraction, check_positive
from gramgraph.estimators._documents import read_documents
from gramgraph.estimators._sound import SoundNumbers
from gramgraph.exceptions import ConvergenceWarning, ModelError, ModelWarning, OptionError
from gramgraph.learn.checkpoint import ArrayCheckpoint
from gramgraph.machines.topics import held_out
from gramgraph.machines.topics.collapsed import CollapsedFit
from gramgraph.machines.topics.collection import Documents
from gramgraph.machines.topics.fitting import (
    Notes,
    Prior,
    Silent,
    Topics,
    first_topics,
    fit_gibbs,
    fit_online,
    fit_rounds,
    random_topics,
)
from gramgraph.machines.topics.variational import OnlineFit, VariationalFit, variational_shares
from gramgraph.typing import FloatArray

METHODS = ("gibbs", "collapsed", "variational", "online")
_ROUNDS = {"gibbs": 200, "collapsed": 100, "variational": 100, "online": 10}
#: tol of methods that stop by themselves, with priors that are given or learned, which settle later than topics.
_TOL = {"collapsed": (1e-3, 1e-4), "variational": (1e-4, 1e-4)}
_LEARN: dict[Any, tuple[str, bool]] = {
    False: ("", False),
    True: ("both", False),
    "doc_topic": ("doc_topic", False),
    "topic_word": ("topic_word", False),
    "asymmetric": ("both", True),
}
#: β where none is given: φ of rare words is then neither spiky nor flat in collections of news.
_BETA = 0.1
_MOST_TOKENS = 2**29


@dataclass(eq=False, repr=False)
class LatentDirichletAllocation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SoundNumbers, BaseEstimator):  # type: ignore[misc]
    """Topics of documents: φ_t ~ Dir(β), θ_d ~ Dir(α), z ~ θ_d, w ~ φ_z, learned from counts of words.

    X holds a document in each row: an array, a sparse matrix or a frame of counts (documents, words), or a list of
    lists of tokens (words, or their numbers from 0 on).

    Parameters
    ----------
    n_components : how many topics, T.
    method : "gibbs": collapsed Gibbs sampling from the exact conditionals P(z_i | z_−i, w), θ and φ integrated out;
        "collapsed": the same conditionals with expected counts in place of drawn ones, until words are foretold no
        better by all others: the quickest way to good topics; "variational": coordinate ascent, after fifty sweeps, on
        a bound of log p(w) that never falls; "online": stochastic steps on `batch_size` documents at a time, for
        collections too large to visit often.
    doc_topic_prior : α, a number or one for each topic; 1/T by default.
    topic_word_prior : β, a number or one for each word; 0.1 by default.
    learn_priors : True learns α for each topic and one β by Minka's fixed points; "doc_topic" or "topic_word" only
        one of them; "asymmetric" also a β for each word.
    max_iter : sweeps (200), rounds at most (100), or passes over the documents (10) of "online".
    burn_in : sweeps whose states are not averaged; half of them by default.
    tol : "variational" stops when a round gains less than `tol` times the bound (1e-4), "collapsed" when it gains less
        than `tol` times the log probability of words given all others (1e-3; 1e-4 when priors are learned).
    batch_size, learning_offset, learning_decay : of "online": λ moves by a step (offset + t)^−decay.
    total_samples : documents of the whole stream, for `partial_fit` with "online"; those seen so far by default.
    n_particles : of the left-to-right estimate in `perplexity` and `score`.
    random_state : seed, or a generator.
    progress : True shows how far it is, or a function of (done, total).

    Notes
    -----
    Words that were not there in `fit` are left out wherever documents are lists of tokens, and do not count; a
    document without words has the mean of the prior. An array must have the columns of `fit`.

    Attributes
    ----------
    components_ (T, W): counts of words by topic with β on top ("gibbs": their mean over kept states; else the
    parameters λ of q(φ)), topic_word_ (T, W): E φ; doc_topic_prior_ (T,), topic_word_prior_ (W,), trace_ (log p(w, z)
    after every tenth sweep; Σ log p(word | all others) in every round of "collapsed"; the bound after every round; for
    each token, of the documents in a pass), n_iter_,
    n_documents_.

    Cost: O(tokens · T) for a sweep, O(pairs of document and word · T) for each round of a document; memory 14 bytes for
    a token and 8 for a cell of components_; "collapsed" 4 more for each pair and topic.

    Examples
    --------
    >>> import gramgraph as gg
    >>> texts = [["river", "water", "fish"], ["bank", "money", "loan"], ["water", "fish"], ["money", "loan"]] * 5
    >>> model = gg.LatentDirichletAllocation(2, random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(2))
    [['fish', 'water'], ['loan', 'money']]
    >>> model.transform([["river", "fish"], []]).round(1).max(axis=1).tolist()
    [0.8, 0.5]
    """

    n_components: int = 10
    _: KW_ONLY
    method: str = "gibbs"
    doc_topic_prior: Any = None
    topic_word_prior: Any = None
    learn_priors: Any = False
    max_iter: int | None = None
    burn_in: int | None = None
    tol: float | None = None
    batch_size: int = 128
    learning_offset: float = 10.0
    learning_decay: float = 0.7
    total_samples: int | None = None
    n_particles: int = 20
    random_state: Any = None
    progress: Any = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True  # whole numbers
        return tags

    # ------------------------------------------------------------------------------------------ learning

    @interruptible()
    def fit(self, X: Any, y: Any = None, *, checkpoint: Any = None) -> Self:
        """Learn the topics.

        `checkpoint` names a file that is written every few seconds; called again with it, the fit goes on from there
        and ends as if it had not been stopped. Ctrl-C keeps what was found by then.
        """
        self._check_options()
        documents = self._documents(X, reset=True)
        if not documents.n_tokens:
            raise ModelError("there is nothing to learn from: no document holds a word")
        self.n_documents_ = 0
        self.__dict__.pop("n_batch_iter_", None)
        self._learn(documents, self._first_prior(documents.n_words), None, checkpoint)
        return self

    @interruptible()
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from further documents; the first call fixes the vocabulary.

        "online" makes one step for every `batch_size` of them; the other methods take the topics so far as the prior of
        the new documents, which are visited as `fit` does it.
        """
        self._check_options()
        if not hasattr(self, "components_"):
            if self.method != "online":
                return self.fit(X)
            documents = self._documents(X, reset=True)
            self.n_documents_ = 0
            self._learn(documents, self._first_prior(documents.n_words), None, None, epochs=1)
            return self
        documents = self._documents(X, reset=False)
        if not documents.n_tokens:
            self.n_documents_ += documents.n_documents
            return self
        learn, asymmetric = _LEARN[self.learn_priors]
        prior = np.broadcast_to(self.topic_word_prior_, self.components_.shape)
        if self.method != "online":  # what was learned is the prior now; β is in it
            prior, learn = self.components_, "doc_topic" if learn in ("both", "doc_topic") else ""
        given = Prior(self.doc_topic_prior_, prior, learn, asymmetric)
        self._learn(documents, given, self.components_, None, epochs=1)
        return self

    def _learn(
        self, documents: Documents, prior: Prior, start: FloatArray | None, checkpoint: Any, epochs: int | None = None
    ) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rounds = epochs if self.method == "online" and epochs else self.max_iter or _ROUNDS[self.method]
        notes = self._notes(checkpoint, documents)
        fresh = start is None
        with reporting(self.progress, rounds, "sweeps" if self.method == "gibbs" else "rounds") as report:
            found = self._solve(documents, prior, start, seed, rounds, notes, report or (lambda done: None))
        self.components_, self.doc_topic_prior_ = found.components, found.alpha
        if fresh or self.method == "online":
            self.topic_word_prior_ = np.array(found.beta[0])
        self.trace_, self.n_iter_ = found.trace, found.n_iter
        self.n_documents_ += documents.n_documents
        if found.interrupted:
            warnings.warn(
                f"interrupted after {found.n_iter} of {rounds}: the topics are what was found by then",
                ModelWarning,
                stacklevel=4,
            )
        elif not found.converged and self._tol > 0.0:
            warnings.warn(
                f"the fit still gains more than tol={self._tol:g} of its value after {rounds} rounds: raise max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _solve(
        self,
        documents: Documents,
        prior: Prior,
        start: FloatArray | None,
        seed: int,
        rounds: int,
        notes: Notes,
        tell: Any,
    ) -> Topics:
        if self.method in ("gibbs", "collapsed") and documents.n_tokens > _MOST_TOKENS:
            raise ModelError(
                f"{documents.n_tokens:.3g} words are too many to draw a topic for each: use method='variational'"
            )
        if self.method == "gibbs":
            burn_in = rounds // 2 if self.burn_in is None else self.burn_in
            return fit_gibbs(documents, prior, seed, sweeps=rounds, burn_in=burn_in, notes=notes, tell=tell)
        if self.method == "collapsed":
            collapsed = CollapsedFit(documents, prior.alpha, prior.beta, seed, learn=prior.learned)
            return fit_rounds(collapsed, max_iter=rounds, tol=self._tol, notes=notes, tell=tell)
        if self.method == "variational":
            start = first_topics(documents, prior, seed) if start is None else start
            ascent = VariationalFit(documents, prior.alpha, prior.beta, start, learn=prior.learned)
            return fit_rounds(ascent, max_iter=rounds, tol=self._tol, notes=notes, tell=tell)
        start = random_topics(prior.beta.shape, seed) if start is None else start.copy()
        fit = OnlineFit(
            prior.alpha, prior.beta, start, offset=self.learning_offset, decay=self.learning_decay,
            steps=getattr(self, "n_batch_iter_", 0), learn=prior.learned,
        )  # fmt: skip
        n = self.total_samples or self.n_documents_ + documents.n_documents
        found = fit_online(
            documents, fit, seed, epochs=rounds, batch_size=self.batch_size, n_documents=n, notes=notes, tell=tell
        )
        self.n_batch_iter_ = fit.steps
        return found

    # ------------------------------------------------------------------------------------------ asking

    def transform(self, X: Any) -> FloatArray:
        """E θ_d, the shares of topics in each document, (D, T), given the topics.

        "gibbs", "collapsed": by collapsed variational shares under E φ; else by the E step of the variational fit. The
        same document has the same shares whatever stands beside it.
        """
        check_is_fitted(self, "components_")
        documents = self._documents(X, reset=False)
        if self.method in ("gibbs", "collapsed"):
            return held_out.mean_shares(documents, self.topic_word_, self.doc_topic_prior_)
        return variational_shares(documents, self.components_, self.doc_topic_prior_)

    def score(self, X: Any, y: Any = None) -> float:
        """Σ_d log p(w_d | E φ, α): θ is integrated out by the left-to-right estimate of `perplexity`."""
        return self._score(X, None)[0]

    def perplexity(self, X: Any, *, given: Any = None) -> float:
        """exp(−log p/tokens) of documents; lower is better, W for words drawn evenly.

        p(w_d | E φ, α) is estimated from left to right: `n_particles` particles hold topics of the words so far, each
        gives the chance of the next word, and particles are weighted, drawn anew and moved by Gibbs sweeps. The
        estimate of each p has no bias, so that of the perplexity is slightly pessimistic. The order of words in a
        document is drawn by `random_state`. With `given`, as many documents, p(w_d | words of given_d) instead.
        """
        log_p, tokens = self._score(X, given)
        return float(np.exp(-log_p / tokens))

    def completion(self, X: Any, *, share: float = 0.5) -> float:
        """The perplexity of the rest of each document, when this share of its words, drawn at random, is given."""
        check_is_fitted(self, "components_")
        check_fraction("share", share)
        rng = self._generator()
        tokens = self._documents(X, reset=False).tokens().shuffled(rng)
        begin = held_out.split(tokens, share)
        rest = len(tokens.words) - int(begin.sum())
        return float(np.exp(-self._log_p(tokens, begin, rng).sum() / _some(rest)))

    def coherence(self, X: Any, *, n_words: int = 10, measure: str = "umass") -> FloatArray:
        """How often the top words of each topic stand in the same documents of X, (T,); higher is better.

        "umass": mean over pairs of log (D(v, w) + 1)/D(w), w the more probable one and D the number of documents;
        "npmi": mean of log(p(v, w)/p(v)p(w)) / −log p(v, w), between −1 and 1.
        """
        check_is_fitted(self, "components_")
        check_choice("measure", measure, ("umass", "npmi"))
        check_count("n_words", n_words, 2)
        counts = read_documents(self, X, reset=False)
        if self.n_features_in_ < 2:
            raise ModelError("the coherence of words needs two of them at least")
        return held_out.coherence(counts, self._top(n_words), measure)

    def top_words(self, n_words: int = 10) -> list[list[str]]:
        """The most probable words of each topic, by name or by number of the column."""
        check_is_fitted(self, "components_")
        check_count("n_words", n_words)
        names = getattr(self, "feature_names_in_", None)
        return [[str(j if names is None else names[j]) for j in own] for own in self._top(n_words)]

    @property
    def topic_word_(self) -> FloatArray:
        """E φ, (T, W)."""
        return np.asarray(self.components_ / self.components_.sum(axis=1, keepdims=True))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    # ------------------------------------------------------------------------------------------ below

    @property
    def _tol(self) -> float:
        usual = _TOL.get(self.method, (0.0, 0.0))[bool(self.learn_priors)]
        return usual if self.tol is None else self.tol

    def _top(self, n_words: int) -> Any:
        return np.argsort(-self.topic_word_, axis=1, kind="stable")[:, :n_words]

    def _score(self, X: Any, given: Any) -> tuple[float, int]:
        check_is_fitted(self, "components_")
        rng = self._generator()
        tokens = self._documents(X, reset=False).tokens().shuffled(rng)
        n, begin = len(tokens.words), np.zeros(len(tokens.ptr) - 1, np.int64)
        if given is not None:
            first = self._documents(given, reset=False).tokens().shuffled(rng)
            if len(first.ptr) != len(tokens.ptr):
                raise ModelError(f"given has {len(first.ptr) - 1} documents, X has {len(tokens.ptr) - 1}")
            begin, tokens = np.diff(first.ptr), held_out.together(first, tokens)
        return float(self._log_p(tokens, begin, rng).sum()), _some(n)

    def _log_p(self, tokens: Any, begin: Any, rng: np.random.Generator) -> FloatArray:
        count = check_count("n_particles", self.n_particles)
        phi, alpha = self.topic_word_, self.doc_topic_prior_
        return held_out.log_probabilities(tokens, begin, phi, alpha, rng, n_particles=count)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _documents(self, X: Any, *, reset: bool) -> Documents:
        return Documents.of(read_documents(self, X, reset=reset))

    def _notes(self, checkpoint: Any, documents: Documents) -> Notes:
        if checkpoint is None:
            return Silent()
        seen = sha256()
        for part in (documents.ptr, documents.index, documents.count):
            seen.update(part.tobytes())
        own = {name: repr(value) for name, value in self.get_params().items() if name not in _FREE}
        return ArrayCheckpoint(checkpoint, "topics", {"documents": seen.hexdigest()[:32], **own})

    def _check_options(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("learn_priors", self.learn_priors, tuple(_LEARN))
        for name in ("n_components", "batch_size", "n_particles"):
            check_count(name, getattr(self, name))
        check_count("n_components", self.n_components, 1, 2**16 - 1)
        for name in ("max_iter", "total_samples"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.burn_in is not None:
            check_count("burn_in", self.burn_in, 0)
        check_positive("tol", self._tol, zero=True)
        check_positive("learning_offset", self.learning_offset)
        if not 0.5 < check_positive("learning_decay", self.learning_decay) <= 1.0:
            raise OptionError(f"learning_decay must be above 0.5 and at most 1, not {self.learning_decay!r}")

    def _first_prior(self, n_words: int) -> Prior:
        T = self.n_components
        alpha = _concentrations("doc_topic_prior", self.doc_topic_prior, T, 1.0 / T, "topics")
        beta = _concentrations("topic_word_prior", self.topic_word_prior, n_words, _BETA, "words")
        return Prior(alpha, np.broadcast_to(beta, (T, n_words)), *_LEARN[self.learn_priors])


#: Parameters that may differ between a fit and the one that goes on from its checkpoint.
_FREE = ("max_iter", "burn_in", "tol", "n_particles", "progress", "total_samples")


def _concentrations(name: str, value: Any, size: int, usual: float, what: str) -> FloatArray:
    """One positive number for each, from a number, several, or None."""
    if value is None:
        return np.full(size, usual)
    if np.ndim(value) == 0:
        return np.full(size, check_positive(name, value))
    found = np.asarray(value, dtype=np.float64)
    if found.shape != (size,) or not (np.isfinite(found).all() and (found > 0.0).all()):
        raise OptionError(f"{name} must be a positive number, or {size} of them, one for each of the {what}")
    return found


def _some(tokens: int) -> int:
    if not tokens:
        raise ModelError("there is no word to tell the probability of: the documents hold none that the model knows")
    return tokens
