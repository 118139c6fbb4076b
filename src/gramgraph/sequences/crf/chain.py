"""The linear-chain conditional random field with scikit-learn's contract and the words of sklearn-crfsuite."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gramgraph._validation import check_choice, check_count, check_jobs, check_positive, generator
from gramgraph.exceptions import ModelError, ModelWarning
from gramgraph.sequences.crf import inspection
from gramgraph.sequences.crf.contract import Estimator
from gramgraph.sequences.crf.decoding import Chain, Rules, allowed_labels, read_rules
from gramgraph.sequences.crf.encoding import FeatureTable, Tokens, read_sequences
from gramgraph.sequences.crf.objective import ChainObjective, enough_memory, lay_out
from gramgraph.sequences.crf.optimize import minimize
from gramgraph.sequences.crf.perceptron import averaged_perceptron
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from gramgraph.models import MarkovNetwork

_ALGORITHMS = ("lbfgs", "ap")
_MOST_PASSES = 100
#: Values of features above this are told: weights would have very different sizes.
_LARGE = 1e6
_MUCH_TEXT = 20_000  # positions: who learns from as many will tag many


def _warn_of_large(tokens: Tokens, table: FeatureTable) -> None:
    """A `ModelWarning` where a value dwarfs those of other features: steps along it end the search before they move."""
    if not len(tokens.data):
        return
    at = int(np.argmax(np.abs(tokens.data)))
    if (size := abs(float(tokens.data[at]))) > _LARGE:
        name = table.names()[int(tokens.ids[at])]
        warnings.warn(
            f"feature {name!r} reaches {size:.3g}, so that weights of features near 1 hardly move while the objective "
            f"seems to converge. Try: scale it to values near 1, as by {10.0 ** -np.floor(np.log10(size)):.0e}",
            ModelWarning,
            stacklevel=4,
        )


@dataclass(eq=False, repr=False)
class LinearChainCRF(Estimator):
    """p(y | x) = exp(Σ_t Σ_f w[f, y_t] f(x, t) + Σ_t w[y_{t−1}, y_t]) / Z(x): labels of sequences from sparse features.

    X is a list of sequences; a sequence is a list with one dict of features a position ({"word": "the", "title": True,
    "length": 3.0}) or one list of strings. y is a list of lists of labels. Everything means what it means in
    sklearn-crfsuite: a text value makes the attribute `name:value`, a number the attribute `name` with that weight.

    algorithm "lbfgs" minimizes −Σ log p(y | x) + c2 ‖w‖² + c1 ‖w‖₁ (OWL-QN where c1 > 0) and stops when the slope is
    below `epsilon` (relative to ‖w‖), when `period` iterations improve the objective by less than `delta` of it, or
    after `max_iterations`. "ap" is the averaged perceptron (at most `max_iterations` passes, 100 by default).
    State features are those seen in the data at least `min_freq` times, or every attribute with every label
    (`all_possible_states`); transitions likewise (`all_possible_transitions`).

    `constraints` hold for every answer (not for learning): "BIO" (I-x only after B-x or I-x), or pairs
    (label, next label) that may not be, with None as the label before the first. `n_jobs` threads share the sequences
    while learning. One evaluation costs O(features · K + positions · K²).

    Parameters
    ----------
    algorithm : "lbfgs" or "ap".
    c1, c2 : weights of the L1 and of the L2 penalty.
    min_freq : least number of times that a feature is seen.
    all_possible_states, all_possible_transitions : whether pairs that were never seen have a weight.
    max_iterations : most iterations; None: no bound with "lbfgs", 100 with "ap".
    num_memories : steps that "lbfgs" remembers; None: 6, and without c1 up to 40 where looking at them costs little
        beside an evaluation, as more of them make fewer evaluations.
    epsilon, period, delta : when to stop.
    constraints : what no answer may hold: "BIO", or pairs of labels.
    n_jobs : threads.
    random_state : seed of the order of "ap".

    Examples
    --------
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]]
    >>> y = [["DET", "NOUN", "VERB"]] * 3
    >>> crf = LinearChainCRF(c2=0.1).fit([[[word] for word in x] for x in X], y)
    >>> crf.predict([[["a"], ["dog"], ["sleeps"]], [["unknown"]]])
    [['DET', 'NOUN', 'VERB'], ['DET']]
    >>> crf.predict_proba([[["a"], ["dog"]]])[0].shape, crf.score([[["a"]]], [["DET"]])
    ((2, 3), 1.0)
    """

    #: The free chain, constraints, the chain that keeps them.
    _ruled: tuple[Chain, Any, Chain] | None = field(init=False, default=None)
    algorithm: str = "lbfgs"
    _: KW_ONLY
    c1: float = 0.0
    c2: float = 1.0
    min_freq: float = 0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float = 1e-5
    period: int = 10
    delta: float = 1e-5
    constraints: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    # ------------------------------------------------------------------------------------------- learning

    def fit(self, X: Iterable[Any], y: Iterable[Any], *, callback: Any = None) -> Self:
        """Learn the weights; `callback(iteration, objective)` may end it by returning True (not for "ap")."""
        self._check_parameters()
        X, y = _read_both(X, y)
        if not any(len(labels) for labels in y):
            raise ModelError("X holds no position: at least one sequence with one token is needed (minimum of 1).")
        classes, codes = _read_labels(y)
        read_rules(self.constraints, classes)  # a wrong label is told before the work is done
        self._learn(X, classes, codes, callback)
        self.classes_ = np.array(classes)
        self._labels = classes
        if len(codes) >= _MUCH_TEXT:
            _give_back()  # what learning took, before the library of compiled lookups comes
            self._table.prepare(len(codes))
        return self

    def _learn(self, X: list[Any], classes: list[Any], codes: Array, callback: Any) -> None:
        table = FeatureTable()
        tokens = table.encode(X, grow=True)
        layout = lay_out(
            tokens, codes, len(classes), table.size, min_freq=float(self.min_freq),
            all_states=bool(self.all_possible_states), all_transitions=bool(self.all_possible_transitions),
        )  # fmt: skip
        if self.algorithm == "ap":
            passes = _MOST_PASSES if self.max_iterations is None else self.max_iterations
            w, history = averaged_perceptron(
                tokens, layout, codes, max_iter=passes, epsilon=self.epsilon, rng=generator(self.random_state)
            )
            self.converged_, self.n_iter_ = history[-1] < self.epsilon, len(history)
        else:
            _warn_of_large(tokens, table)
            objective = ChainObjective(  # which numbers the features anew, in place
                tokens, layout, c2=float(self.c2), n_jobs=check_jobs(1 if self.n_jobs is None else self.n_jobs)
            )
            memory = enough_memory(layout, tokens, float(self.c1)) if self.num_memories is None else self.num_memories
            del tokens  # the objective has them in a shorter form
            found = minimize(
                objective, np.zeros(layout.size), c1=float(self.c1), memory=memory,
                max_iter=self.max_iterations, epsilon=self.epsilon, period=self.period, delta=self.delta,
                callback=callback,
            )  # fmt: skip
            w, history = found.w, found.history
            self.converged_, self.n_iter_ = found.converged, len(history) - 1
        self.history_ = np.array(history)
        self.objective_ = float(history[-1])
        whole = Chain(layout.weights(w), Rules.free(len(classes)))
        self._chain, final, size = whole.pruned(layout.new_id)
        self._table = table.renumbered(final, size)

    def _check_parameters(self) -> None:
        check_choice("algorithm", self.algorithm, _ALGORITHMS)
        for name in ("c1", "c2", "min_freq", "epsilon", "delta"):
            check_positive(name, getattr(self, name), zero=True)
        if self.num_memories is not None:
            check_count("num_memories", self.num_memories)
        check_count("period", self.period)
        if self.max_iterations is not None:
            check_count("max_iterations", self.max_iterations)

    # ------------------------------------------------------------------------------------------ questions

    def _ready(self, X: Iterable[Any], allowed: Any = None) -> tuple[Chain, Tokens, Array]:
        model = self._model()
        tokens = self._table.encode(read_sequences(X))
        return model, tokens, allowed_labels(allowed, tokens.offsets, self._labels)

    def _model(self) -> Chain:
        """The chain with the constraints as they are now; the last one is kept for those who ask often."""
        self._check_fitted()
        given = self.constraints
        if given is None:
            return self._chain
        now = given  # or a copy: lists can change
        if isinstance(given, Iterable) and not isinstance(given, str):
            now = [tuple(pair) if isinstance(pair, list) else pair for pair in given]
        if self._ruled is None or self._ruled[0] is not self._chain or self._ruled[1] != now:
            self._ruled = self._chain, now, Chain(self._chain.weights, read_rules(now, self._labels))
        return self._ruled[2]

    def predict(self, X: Iterable[Any], *, allowed: Any = None) -> list[list[Any]]:
        """The most probable labeling of every sequence.

        `allowed` limits labels: a list a sequence (or None), with None or a list of labels at every position.
        """
        model, tokens, limits = self._ready(X, allowed)
        codes, _ = model.viterbi(tokens, limits)
        return _split([self._labels[code] for code in codes.tolist()], tokens.offsets)

    def predict_single(self, x: Iterable[Any], *, allowed: Any = None) -> list[Any]:
        """The most probable labeling of one sequence; the same as `predict` gives it."""
        if allowed is None and type(x) is list:
            found = self._model().tagged(self._table, self._labels, x)
            if found is not None:
                return found
        return self.predict([x], allowed=None if allowed is None else [allowed])[0]

    def predict_proba(self, X: Iterable[Any], *, allowed: Any = None) -> list[FloatArray]:
        """p(label at t | x) of every sequence, arrays (T, K) in the order of `classes_`."""
        model, tokens, limits = self._ready(X, allowed)
        found, _ = model.marginals(tokens, limits)
        return _split(found, tokens.offsets)

    def predict_marginals(self, X: Iterable[Any], *, allowed: Any = None) -> list[list[dict[Any, float]]]:
        """p(label at t | x) as dicts {label: probability}."""
        proba = self.predict_proba(X, allowed=allowed)
        return [[dict(zip(self._labels, row, strict=True)) for row in rows.tolist()] for rows in proba]

    def predict_marginals_single(self, x: Iterable[Any]) -> list[dict[Any, float]]:
        """p(label at t | x) of one sequence."""
        return self.predict_marginals([x])[0]

    def predict_nbest(
        self, X: Iterable[Any], n: int = 5, *, allowed: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """The n most probable labelings of every sequence with their probabilities, best first."""
        check_count("n", n)
        model, tokens, limits = self._ready(X, allowed)
        found = model.n_best(tokens, limits, n)
        _, log_z = model.marginals(tokens, limits)
        return [
            [
                ([self._labels[code] for code in path.tolist()], float(np.exp(value - z)))
                for path, value in zip(paths, values, strict=True)
            ]
            for (paths, values), z in zip(found, log_z, strict=True)
        ]

    def log_likelihood(self, X: Iterable[Any], y: Iterable[Any]) -> FloatArray:
        """log p(y | x) of every sequence, (S,); −inf where a label is new to the model or may not stand."""
        X, y = _read_both(X, y)
        model, tokens, limits = self._ready(X)
        index = {label: i for i, label in enumerate(self._labels)}
        codes = np.array([index.get(label, -1) for label in chain.from_iterable(y)], dtype=np.int64)
        scores = model.path_scores(tokens, codes, limits)
        return scores - model.marginals(tokens, limits)[1]

    def score(self, X: Iterable[Any], y: Iterable[Any]) -> float:
        """The share of positions whose label is right."""
        X, y = _read_both(X, y)
        pairs = list(zip(chain.from_iterable(self.predict(X)), chain.from_iterable(y), strict=True))
        return sum(a == b for a, b in pairs) / len(pairs) if pairs else 1.0

    # ----------------------------------------------------------------------------------------- inspection

    @property
    def attributes_(self) -> list[str]:
        """Names of all attributes that have weights."""
        self._check_fitted()
        return self._table.names()

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """{(attribute, label): weight}, without zeros."""
        self._check_fitted()
        return inspection.state_features(self._chain, self._table, self._labels)

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """{(label, next label): weight}, without zeros."""
        self._check_fitted()
        return inspection.transition_features(self._chain, self._labels)

    def top_state_features(self, n: int = 20, *, label: Any = None, largest: bool = True) -> pd.DataFrame:
        """A frame of the n state features of largest (or smallest) weight: attribute, label, weight."""
        return inspection.top_states(self.state_features_, n, label, largest)

    def top_transitions(self, n: int = 20, *, largest: bool = True) -> pd.DataFrame:
        """A frame of the n transitions of largest (or smallest) weight: from, to, weight."""
        return inspection.top_transitions(self.transition_features_, n, largest)

    def to_network(self, x: Iterable[Any]) -> MarkovNetwork:
        """The chain for one sequence as a Markov network over y0, y1, …; log Z is its log evidence."""
        model, tokens, limits = self._ready([x])
        return inspection.to_network(model, tokens, limits, self._labels)

    # ---------------------------------------------------------------------------------------------- files

    def save(self, path: str | Path) -> None:
        """Write the model to one file, a container with a checksum; `gg.write` to .gg writes the same."""
        from gramgraph.sequences.crf.storage import save

        self._check_fitted()
        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> LinearChainCRF:
        """A model from a file of `save` (or an .npz of version 0.1.0); its answers are the same bit by bit."""
        from gramgraph.sequences.crf.storage import load

        return load(Path(path))


def _read_both(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Sequences and their labels as lists of the same lengths."""
    X = read_sequences(X)
    if isinstance(y, (str, bytes, Mapping)) or not isinstance(y, Iterable):
        raise ModelError(f"y is a {type(y).__name__}; expected a list with one list of labels a sequence.")
    y = list(y)
    if len(X) != len(y):
        raise ModelError(f"X has {len(X)} sequences, but y has {len(y)}.")
    for s, (tokens, labels) in enumerate(zip(X, y, strict=True)):
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise ModelError(f"y[{s}] is {labels!r}; expected a list with one label a position.")
        if not hasattr(labels, "__len__"):
            y[s] = labels = list(labels)
        if len(tokens) != len(labels):
            raise ModelError(f"sequence {s} has {len(tokens)} positions, but y[{s}] has {len(labels)} labels.")
    return X, y


def _read_labels(y: list[Any]) -> tuple[list[Any], Array]:
    """(labels sorted, their numbers at all positions)."""
    try:
        seen = dict.fromkeys(chain.from_iterable(y))
    except TypeError:
        raise ModelError("labels must all be strings, or all whole numbers; some are lists, dicts or sets.") from None
    plain = {label: label.item() if isinstance(label, np.generic) else label for label in seen}
    kinds = {type(label) for label in plain.values()}
    if kinds not in ({str}, {int}, {bool}):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ModelError(f"labels must all be strings, or all whole numbers; they are of type {names}.")
    classes = sorted(set(plain.values()))
    index = {label: i for i, label in enumerate(classes)}
    count = sum(map(len, y))
    return classes, np.fromiter(map(index.__getitem__, chain.from_iterable(y)), np.int32, count)


def _split(rows: Any, offsets: IntArray) -> list[Any]:
    return [rows[a:b] for a, b in pairwise(offsets.tolist())]


def _give_back() -> None:
    """Return free pages of the C allocator to the system, where it is glibc's: it keeps many megabytes otherwise."""
    with suppress(OSError, AttributeError, TypeError):  # TypeError: Windows has no library without a name
        ctypes.CDLL(None).malloc_trim(0)
