"""Hidden Markov models that emit several symbols at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gramgraph.exceptions import ModelError, StateError
from gramgraph.sequences._reading import check_rows, joined, offsets_of
from gramgraph.sequences.categorical import CategoricalEmission, labels_of, positions_of, symbols_in
from gramgraph.sequences.hmm import HiddenMarkovModel, concentrations
from gramgraph.sequences.recursions import likelihoods
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.variables import Var


@dataclass(frozen=True)
class MultiCategoricalEmission:
    """Symbols that are independent given the state, one table per column; data (N, C) are positions, −1 for a gap."""

    parts: tuple[CategoricalEmission, ...]

    @property
    def n_parameters(self) -> int:
        """Those of all tables."""
        return sum(part.n_parameters for part in self.parts)

    def likelihoods(self, data: IntArray, /) -> tuple[FloatArray, FloatArray]:
        """Probabilities divided by the largest of the row, and its logarithm."""
        return likelihoods(self.logs(data))

    def logs(self, data: IntArray, /) -> FloatArray:
        """Σ over columns of log p(symbol | state)."""
        return np.sum([part.logs(data[:, c]) for c, part in enumerate(self.parts)], axis=0)

    def update(self, data: IntArray, gamma: FloatArray, /) -> Self:
        """Relative frequencies of every column."""
        return self.from_moments(self.moments(data, gamma))

    def moments(self, data: IntArray, gamma: FloatArray, /) -> tuple[FloatArray, ...]:
        """Expected counts, (K, M) a column."""
        return tuple(part.moments(np.ascontiguousarray(data[:, c]), gamma)[0] for c, part in enumerate(self.parts))

    def from_moments(self, moments: tuple[FloatArray, ...], /) -> Self:
        """Relative frequencies of every column."""
        return replace(self, parts=tuple(p.from_moments((m,)) for p, m in zip(self.parts, moments, strict=True)))

    def take(self, states: IntArray, /) -> Self:
        """Rows of the tables."""
        return replace(self, parts=tuple(part.take(states) for part in self.parts))

    def log_prior(self) -> float:
        """Dirichlet's."""
        return sum(part.log_prior() for part in self.parts)

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> Array:
        """Symbols, (N, C)."""
        columns = [part.draw(states, rng) for part in self.parts]
        kinds = {column.dtype.kind for column in columns}
        return np.concatenate(columns if len(kinds) == 1 else [c.astype(object) for c in columns], axis=1)

    def nodes(self, z: Var, name: str) -> list[tuple[Var, Conditional]]:
        """A variable a column."""
        return [part.nodes(z, f"{name}_{c}")[0] for c, part in enumerate(self.parts)]


@dataclass(eq=False, repr=False)
class MultiCategoricalHMM(HiddenMarkovModel):
    """A hidden Markov model whose states emit several symbols at a time, independent given the state.

    Parameters
    ----------
    n_states : hidden states.
    symbols : None, or a list with the labels of every column (None: those seen).
    start_prior : Dirichlet concentrations of the first state; 1 is flat.
    transition_prior : Dirichlet concentrations of the transitions; 1 is flat.
    transition_mask : None, "left-right", or a boolean matrix of possible transitions.
    transition_ties : None, or a matrix of whole numbers: transitions with the same number are equal.
    emission_ties : None, or a label for each state: states with the same label share their emission.
    learning : "baum_welch", "viterbi" or "variational", as in `CategoricalHMM`.
    init : how the parameters begin, or a fitted model to start from.
    fixed : names out of "startprob", "transmat", "emissions" that are not learned.
    n_init : runs from different starts; the best is kept.
    max_iter : most steps that are taken.
    tol : below which a change counts as none.
    n_jobs : number of threads; -1 for one per processor.
    random_state : seed, or a generator.
    emission_prior : Dirichlet concentrations of the emissions; 1 is flat.

    Notes
    -----
    All others are those of `CategoricalHMM`. X has a row a time and a column a symbol; −1, NaN and None are gaps.

    Attributes
    ----------
    startprob_ (K,), transmat_ (K, K), emissionprob_ (a table (K, M) a column), symbols_ (labels of every column),
    history_, n_iter_, converged_, log_likelihood_.

    Examples
    --------
    >>> tables = [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]
    >>> model = MultiCategoricalHMM.from_parameters([0.5, 0.5], np.eye(2), tables)
    >>> model.predict_proba([[0, 0], [1, -1]])[0].round(4).tolist()
    [0.7377, 0.2623]
    """

    _inits = ("random",)
    n_features_in_: int = field(init=False)

    _: KW_ONLY
    symbols: Sequence[Any] | None = None
    emission_prior: float = 1.0
    init: Any = "random"

    @classmethod
    def from_parameters(
        cls, startprob: Any, transmat: Any, emissionprob: Sequence[Any], *, symbols: Any = None, **options: Any
    ) -> Self:
        """A model with known numbers; `emissionprob` has a table (K, M) a column.

        >>> one = MultiCategoricalHMM.from_parameters([1.0], [[1.0]], [[[0.5, 0.5]], [[0.25, 0.75]]])
        >>> round(float(np.exp(one.score([[0, 0]]))), 6)
        0.125
        """
        model = cls(len(startprob), symbols=symbols, **options)
        model._set_chain(startprob, transmat)
        model.emissionprob_ = tuple(check_rows("emissionprob", table, 2) for table in emissionprob)
        given = [None] * len(model.emissionprob_) if symbols is None else list(symbols)
        model.symbols_ = tuple(
            np.arange(table.shape[1]) if labels is None else np.array(labels)
            for table, labels in zip(model.emissionprob_, given, strict=True)
        )
        model.n_features_in_ = len(model.emissionprob_)
        model._emission()
        return model

    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[IntArray, IntArray]:
        columns, lengths = _columns_of(*joined(X, lengths))
        offsets = offsets_of(len(columns[0]) if columns else 0, lengths)
        if not reset and len(columns) != self.n_features_in_:
            raise ModelError(f"X has {len(columns)} columns, but the model {self.n_features_in_}.")
        read = [labels_of(column) for column in columns]
        if reset:
            self.symbols_ = self._find(read)
            self.n_features_in_ = len(columns)
            if len(columns[0]) < self.n_states:
                raise ModelError(f"n_states is {self.n_states}, but there are only {len(columns[0])} rows.")
        found = []
        for c, (values, missing) in enumerate(read):
            try:
                found.append(positions_of(values, missing, self.symbols_[c]))
            except StateError as error:
                raise StateError(f"column {c}, {error}") from None
        return np.stack(found, axis=1), offsets

    def _stream_logs(self) -> Callable[[Any], FloatArray]:
        strict, finders = super()._stream_logs(), [part.finder() for part in self._emission().parts]

        def logs(z: Any) -> FloatArray:
            if isinstance(z, (list, tuple)) and len(z) == len(finders):
                found = [find(symbol) for find, symbol in zip(finders, z, strict=True)]
                rows = [row for row in found if row is not None]
                if len(rows) == len(finders):
                    return np.asarray(np.add.reduce(rows))
            return strict(z)

        return logs

    def _find(self, read: list[tuple[Array, Array]]) -> tuple[Array, ...]:
        given = [None] * len(read) if self.symbols is None else list(self.symbols)
        if len(given) != len(read):
            raise ModelError(f"symbols has {len(given)} lists of labels, but X {len(read)} columns.")
        out = []
        for c, ((values, missing), labels) in enumerate(zip(read, given, strict=True)):
            if labels is None and missing.all():
                raise ModelError(f"column {c} of X has no observed symbol.")
            out.append(symbols_in(values[~missing]) if labels is None else np.array(labels))
        return tuple(out)

    def _begin(
        self, data: IntArray, offsets: IntArray, rng: np.random.Generator
    ) -> tuple[MultiCategoricalEmission, None]:
        tables = []
        for c, labels in enumerate(self.symbols_):
            seen = data[:, c][data[:, c] >= 0]
            share = (np.bincount(seen, minlength=len(labels)) + 1.0) / (len(seen) + len(labels))
            tables.append(0.5 * share + 0.5 * rng.dirichlet(np.ones(len(labels)), self.n_states))
        return self._made(tables), None

    def _made(self, tables: Sequence[FloatArray]) -> MultiCategoricalEmission:
        return MultiCategoricalEmission(
            tuple(
                CategoricalEmission(table, concentrations("emission_prior", self.emission_prior, table.shape), labels)
                for table, labels in zip(tables, self.symbols_, strict=True)
            )
        )

    def _emission(self) -> MultiCategoricalEmission:
        tables = [check_rows("emissionprob_", table, 2) for table in self.emissionprob_]
        for table, labels in zip(tables, self.symbols_, strict=True):
            if table.shape != (self.n_states, len(labels)):
                raise ModelError(
                    f"a table of emissionprob must have shape {(self.n_states, len(labels))}; it has {table.shape}."
                )
        return self._made(tables)

    def _store(self, emission: MultiCategoricalEmission) -> None:
        self.emissionprob_ = tuple(part.table for part in emission.parts)


def _columns_of(X: Any, lengths: Any) -> tuple[list[Array], Any]:
    """Columns of a frame or of rows, each with a type of its own."""
    if hasattr(X, "iloc"):
        return [X.iloc[:, c].to_numpy() for c in range(X.shape[1])], lengths
    try:
        rows = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    except ValueError:
        rows = np.empty(0)
    if rows.ndim == 1 and len(rows):
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ModelError(
            f"X must have a row a time and a column a symbol; its shape is {rows.shape}. Rows must have equal lengths."
        )
    if rows.dtype.kind != "O":
        return [np.ascontiguousarray(rows[:, c]) for c in range(rows.shape[1])], lengths
    return [np.asarray(rows[:, c].tolist()) for c in range(rows.shape[1])], lengths
