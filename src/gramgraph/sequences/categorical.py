"""Hidden Markov models that emit symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gramgraph._numerics.hmm import emissions as _loops
from gramgraph.exceptions import ModelError, StateError
from gramgraph.sequences._reading import check_rows, joined, offsets_of
from gramgraph.sequences._unrolled import table_node
from gramgraph.sequences.baum_welch import dirichlet_log_prior, normalized_rows
from gramgraph.sequences.hmm import HiddenMarkovModel, concentrations
from gramgraph.sequences.recursions import run_symbol_viterbi
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.variables import Var

_MOST = 1 << 20  # symbols that are counted up from 0


@dataclass(frozen=True)
class CategoricalEmission:
    """p(symbol | state), (K, M); data are positions of symbols, −1 where nothing was observed."""

    conjugate: ClassVar[bool] = True  # the prior is Dirichlet's: variational learning keeps its posterior
    table: FloatArray
    prior: FloatArray
    symbols: Array

    @property
    def n_parameters(self) -> int:
        """K (M − 1)."""
        return self.table.shape[0] * (self.table.shape[1] - 1)

    def likelihoods(self, data: IntArray, /) -> tuple[FloatArray, None]:
        """p(x_t | state): columns of the table; ones where nothing was observed."""
        columns = np.concatenate((self.table.T, np.ones((1, len(self.table)))))
        return columns[data], None  # −1 is the last row

    def logs(self, data: IntArray, /) -> FloatArray:
        """log p(x_t | state)."""
        return self.log_columns()[data]

    def log_columns(self) -> FloatArray:
        """log p(symbol | state) by symbol, (M + 1, K); the last row, of zeros, is that of a gap."""
        with np.errstate(divide="ignore"):
            return np.log(np.concatenate((self.table.T, np.ones((1, len(self.table))))))

    def finder(self) -> Callable[[Any], FloatArray | None]:
        """z → log p(z | state), (1, K), looked up in a table; None where z is not one of its symbols."""
        columns = self.log_columns()
        rows = {symbol: columns[i : i + 1] for i, symbol in enumerate(self.symbols.tolist()) if symbol != -1}

        def find(z: Any) -> FloatArray | None:
            try:
                return rows.get(z)
            except TypeError:  # an array or a list of one symbol
                return None

        return find

    def update(self, data: IntArray, gamma: FloatArray, /) -> Self:
        """Relative frequencies, weighted by gamma."""
        return self.from_moments(self.moments(data, gamma))

    def moments(self, data: IntArray, gamma: FloatArray, /) -> tuple[FloatArray]:
        """Expected counts of the symbols, (K, M)."""
        counts = np.zeros(self.table.shape[::-1])
        _loops.symbol_counts(data, gamma, counts)
        return (np.ascontiguousarray(counts.T),)

    def from_moments(self, moments: tuple[FloatArray, ...], /) -> Self:
        """Relative frequencies; with the prior, the mode."""
        return replace(self, table=normalized_rows(moments[0], self.prior, self.table))

    def take(self, states: IntArray, /) -> Self:
        """Rows of the table."""
        return replace(self, table=self.table[states], prior=self.prior[states])

    def nodes(self, z: Var, name: str) -> list[tuple[Var, Conditional]]:
        """The symbol as a variable of a network."""
        return [table_node(z, name, self.table, self.symbols.tolist())]

    def log_prior(self) -> float:
        """Dirichlet's."""
        return dirichlet_log_prior(self.table, self.prior)

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> Array:
        """Symbols as a column."""
        sums = np.cumsum(self.table, axis=1)
        sums /= sums[:, -1:]
        u = rng.random(len(states))
        found = np.empty(len(states), dtype=np.int64)
        for k in range(len(sums)):
            mine = states == k
            found[mine] = np.searchsorted(sums[k], u[mine], side="right")
        return self.symbols[found][:, None]


@dataclass(eq=False, repr=False)
class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov model whose states emit symbols.

    Parameters
    ----------
    n_states : hidden states.
    symbols : labels that can be observed; None: 0 … largest number seen, or the sorted labels seen (so are numbers
        beyond a million). −1, NaN and None
        mark observations that are missing: they are summed out.
    start_prior, transition_prior, emission_prior : Dirichlet concentrations, numbers or arrays of the parameters'
        shapes; 1 is flat (maximum likelihood), 1 + c adds c pseudo-counts a cell.
    transition_mask : None, "left-right" (stay or go to the next; the first state starts), or a boolean matrix.
    transition_ties : None, or a matrix of whole numbers: transitions with the same number are equal.
    emission_ties : None, or a label a state: states with the same label share their emission.
    learning : "baum_welch", "viterbi" (hard EM: the most probable path is taken for the truth; faster, biased), or
        "variational" (variational Bayes: the priors' concentrations count as they are, the parameters are posterior
        means, `startprob_posterior_`, `transmat_posterior_`, `emissionprob_posterior_` the weights of the Dirichlet
        posteriors, and `history_` is a lower bound of log p(X)).
    init : "random", or a fitted model to start from (its zeros stay zeros).
    fixed : names out of "startprob", "transmat", "emissions" that are not learned.
    n_init : runs from different starts; the best is kept.
    max_iter, tol : a run ends when a step gains less than tol.
    n_jobs : threads that share the sequences.
    random_state : seed of the starts.

    Attributes
    ----------
    startprob_ (K,), transmat_ (K, K), emissionprob_ (K, M), symbols_ (M,), history_ (log posterior before every update:
    it never falls), n_iter_, converged_, log_likelihood_.

    Examples
    --------
    >>> import numpy as np
    >>> casino = CategoricalHMM.from_parameters(
    ...     [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[1 / 6] * 6, [0.1] * 5 + [0.5]], symbols=[1, 2, 3, 4, 5, 6]
    ... )
    >>> casino.predict([[1], [2], [6], [6], [6], [6], [6]]).tolist()
    [1, 1, 1, 1, 1, 1, 1]
    >>> rolls, dice = casino.sample(300, random_state=0)
    >>> model = CategoricalHMM(2, n_init=3, random_state=0).fit(rolls)
    >>> bool((np.diff(model.history_) >= -1e-9).all())
    True
    """

    _inits = ("random",)

    _: KW_ONLY
    symbols: Sequence[Any] | None = None
    emission_prior: Any = 1.0
    init: Any = "random"

    @classmethod
    def from_parameters(
        cls, startprob: Any, transmat: Any, emissionprob: Any, *, symbols: Sequence[Any] | None = None, **options: Any
    ) -> Self:
        """A model with known numbers, ready for questions.

        >>> round(CategoricalHMM.from_parameters([1.0], [[1.0]], [[0.5, 0.5]]).score([[0], [1]]), 6)
        -1.386294
        """
        model = cls(len(startprob), symbols=symbols, **options)
        model._set_chain(startprob, transmat)
        model.emissionprob_ = check_rows("emissionprob", emissionprob, 2)
        K, M = model.emissionprob_.shape
        if model.n_states != K:
            raise ModelError(f"emissionprob must have {model.n_states} rows, one per state; its shape is {(K, M)}.")
        model.symbols_ = np.arange(M) if symbols is None else np.array(symbols)
        if len(model.symbols_) != M:
            raise ModelError(f"symbols has {len(model.symbols_)} labels, but emissionprob {M} columns.")
        return model

    # ------------------------------------------------------------------------------------------ the door

    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[IntArray, IntArray]:
        X, lengths = joined(X, lengths)
        try:
            values = np.asarray(list(X) if isinstance(X, str) else X)
        except ValueError:
            raise ModelError(
                "X must be a column of symbols, or a list of such columns; it is a list of unequal parts."
            ) from None
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ModelError(
                f"X must be a column of symbols, shape (rows,) or (rows, 1); its shape is {values.shape}. Try: "
                f"MultiCategoricalHMM for several symbols at a time; a list of arrays for several sequences."
            )
        offsets = offsets_of(len(values), lengths)
        values, missing = labels_of(values)
        if reset:
            if missing.all():
                raise ModelError("X has no observed symbol: every row is missing.")
            self.symbols_ = self._find_symbols(values[~missing])
            if self.n_states > int((~missing).sum()):
                raise ModelError(
                    f"n_states is {self.n_states}, but only {int((~missing).sum())} symbols were observed."
                )
            self.n_features_in_ = 1
        return positions_of(values, missing, self.symbols_), offsets

    def _stream_logs(self) -> Callable[[Any], FloatArray]:
        strict, find = super()._stream_logs(), self._emission().finder()

        def logs(z: Any) -> FloatArray:
            found = find(z)
            return strict(z) if found is None else found

        return logs

    def _find_symbols(self, seen: Array) -> Array:
        if self.symbols is not None:
            return np.array(self.symbols)
        return symbols_in(seen)

    def _best_path(self, X: Any, lengths: Any) -> tuple[IntArray, FloatArray]:
        start, A, emission, data, offsets = self._ready(X, lengths)
        columns = emission.log_columns()  # type: ignore[attr-defined]
        return run_symbol_viterbi(start, A, columns, data, offsets, n_jobs=self.n_jobs)

    # -------------------------------------------------------------------------------------- the emissions

    def _begin(self, data: IntArray, offsets: IntArray, rng: np.random.Generator) -> tuple[CategoricalEmission, None]:
        M = len(self.symbols_)
        share = (np.bincount(data[data >= 0], minlength=M) + 1.0) / ((data >= 0).sum() + M)
        noise = rng.dirichlet(np.ones(M), self.n_states)  # around what is seen, each state in its own way
        return self._made(0.5 * share + 0.5 * noise), None

    def _made(self, table: FloatArray) -> CategoricalEmission:
        prior = concentrations("emission_prior", self.emission_prior, table.shape, self.learning)
        return CategoricalEmission(table, prior, self.symbols_)

    def _emission(self) -> CategoricalEmission:
        return self._made(check_rows("emissionprob_", self.emissionprob_, 2))

    def _store(self, emission: CategoricalEmission) -> None:
        self.emissionprob_ = emission.table


def symbols_in(seen: Array) -> Array:
    """0 … the largest number, or the sorted labels; also of numbers that are too large to be counted up to."""
    if seen.dtype.kind == "i" and int(seen.max()) < _MOST:
        return np.arange(max(int(seen.max()), 0) + 1)
    return np.unique(seen)


def labels_of(values: Array) -> tuple[Array, Array]:
    """Labels as whole numbers where they are numbers, else as they are; and which are missing."""
    if values.dtype.kind in "iub":
        values = values.astype(np.int64, copy=False)
        return values, values == -1
    if values.dtype.kind == "f":
        missing = np.isnan(values) | (values == -1)
        whole = np.where(missing, 0.0, values)
        wrong = ~(np.abs(whole) <= 2.0**53) | (whole != np.round(whole))
        if wrong.any():
            odd = whole[wrong][0]
            raise ModelError(f"symbols must be whole numbers or labels, but X holds {odd:g} (no inf; NaN is missing).")
        return whole.astype(np.int64), missing
    if values.dtype.kind in "US":
        return values.astype(str), np.zeros(len(values), dtype=bool)
    missing = np.array([v is None or v != v for v in values.tolist()], dtype=bool)
    kept = [v for v, gone in zip(values.tolist(), missing.tolist(), strict=True) if not gone]
    filled = np.asarray(kept if kept else [0])
    if filled.dtype.kind not in "iubUS":
        raise ModelError(f"symbols must be whole numbers or texts, not {filled.dtype}.")
    out = np.empty(len(values), dtype=np.int64 if filled.dtype.kind in "iub" else filled.dtype)
    out[missing] = filled[0]
    out[~missing] = filled[: len(kept)]
    return out, missing


def positions_of(values: Array, missing: Array, symbols: Array) -> IntArray:
    """Position of every label in `symbols`; −1 where missing."""
    if values.dtype.kind == "i" and symbols.dtype.kind in "iu" and (symbols == np.arange(len(symbols))).all():
        if len(values) and values.min() >= -1 and values.max() < len(symbols):
            return np.where(missing, -1, values) if missing.any() else np.ascontiguousarray(values)
        found, known = values.copy(), (values >= 0) & (values < len(symbols))
    else:
        if values.dtype.kind != symbols.dtype.kind:
            values, symbols = values.astype(str), symbols.astype(str)
        order = np.argsort(symbols, kind="stable")
        place = np.minimum(np.searchsorted(symbols[order], values), len(symbols) - 1)
        found = order[place].astype(np.int64)
        known = symbols[found] == values
    wrong = ~known & ~missing
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        error = StateError.unknown(values[row].item(), "the symbols", [str(s) for s in symbols.tolist()])
        raise StateError(f"row {row}: {error}")
    found[missing] = -1
    return found
