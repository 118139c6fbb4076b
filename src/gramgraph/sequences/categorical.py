"""Hidden Markov models that emit symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramgraph._numerics import hmm as _loops
from gramgraph.exceptions import ModelError, StateError
from gramgraph.sequences._reading import check_count, check_rows, joined, offsets_of
from gramgraph.sequences.baum_welch import dirichlet_log_prior, normalized_rows
from gramgraph.sequences.hmm import HiddenMarkovModel, concentrations
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.bayesian_network import BayesianNetwork

__all__ = ["CategoricalEmission", "CategoricalHMM"]


@dataclass(frozen=True)
class CategoricalEmission:
    """p(symbol | state), (K, M); data are positions of symbols, −1 where nothing was observed."""

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
        with np.errstate(divide="ignore"):
            columns = np.log(np.concatenate((self.table.T, np.ones((1, len(self.table))))))
        return columns[data]

    def update(self, data: IntArray, gamma: FloatArray, /) -> Self:
        """Relative frequencies, weighted by gamma."""
        counts = np.zeros(self.table.shape[::-1])
        _loops.symbol_counts(data, gamma, counts)
        return replace(self, table=normalized_rows(np.ascontiguousarray(counts.T), self.prior, self.table))

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


class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov model whose states emit symbols.

    Parameters
    ----------
    n_states : hidden states.
    symbols : labels that can be observed; None: 0 … largest number seen, or the sorted labels seen. −1, NaN and None
        mark observations that are missing: they are summed out.
    start_prior, transition_prior, emission_prior : Dirichlet concentrations, numbers or arrays of the parameters'
        shapes; 1 is flat (maximum likelihood), 1 + c adds c pseudo-counts a cell.
    transition_mask : None, "left-right" (stay or go to the next; the first state starts), or a boolean matrix.
    init : "random", or a fitted model to start from (its zeros stay zeros).
    fixed : names out of "startprob", "transmat", "emissions" that are not learned.
    n_init : runs from different starts; the best is kept. max_iter, tol : a run ends when a step gains less than tol.
    n_jobs : threads that share the sequences.

    Attributes
    ----------
    startprob_ (K,), transmat_ (K, K), emissionprob_ (K, M), symbols_ (M,), history_ (log posterior before every update:
    it never falls), n_iter_, converged_, log_likelihood_.

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

    def __init__(
        self,
        n_states: int = 2,
        *,
        symbols: Sequence[Any] | None = None,
        start_prior: Any = 1.0,
        transition_prior: Any = 1.0,
        emission_prior: Any = 1.0,
        transition_mask: Any = None,
        init: Any = "random",
        fixed: Sequence[str] = (),
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-2,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_states = n_states
        self.symbols = symbols
        self.start_prior = start_prior
        self.transition_prior = transition_prior
        self.emission_prior = emission_prior
        self.transition_mask = transition_mask
        self.init = init
        self.fixed = fixed
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

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
            raise ModelError(f"emissionprob must have {model.n_states} rows, one a state; its shape is {(K, M)}.")
        model.symbols_ = np.arange(M) if symbols is None else np.asarray(symbols)
        if len(model.symbols_) != M:
            raise ModelError(f"symbols has {len(model.symbols_)} labels, but emissionprob {M} columns.")
        return model

    # ------------------------------------------------------------------------------------------ the door

    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[IntArray, IntArray]:
        X, lengths = joined(X, lengths)
        values = np.asarray(list(X) if isinstance(X, str) else X)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ModelError(
                f"X must be a column of symbols, shape (rows,) or (rows, 1); its shape is {values.shape}. What helps: "
                f"one model a column, or one symbol for every combination."
            )
        offsets = offsets_of(len(values), lengths)
        values, missing = _labels(values)
        if reset:
            if missing.all():
                raise ModelError("X has no observed symbol: every row is missing.")
            self.symbols_ = self._find_symbols(values[~missing])
            if self.n_states > int((~missing).sum()):
                raise ModelError(
                    f"n_states is {self.n_states}, but only {int((~missing).sum())} symbols were observed."
                )
            self.n_features_in_ = 1
        return _positions(values, missing, self.symbols_), offsets

    def _find_symbols(self, seen: Array) -> Array:
        if self.symbols is not None:
            return np.asarray(self.symbols)
        return np.arange(int(seen.max()) + 1) if seen.dtype.kind == "i" else np.unique(seen)

    # -------------------------------------------------------------------------------------- the emissions

    def _begin(self, data: IntArray, offsets: IntArray, rng: np.random.Generator) -> tuple[CategoricalEmission, None]:
        M = len(self.symbols_)
        share = (np.bincount(data[data >= 0], minlength=M) + 1.0) / ((data >= 0).sum() + M)
        noise = rng.dirichlet(np.ones(M), self.n_states)  # around what is seen, each state in its own way
        return self._made(0.5 * share + 0.5 * noise), None

    def _made(self, table: FloatArray) -> CategoricalEmission:
        return CategoricalEmission(
            table, concentrations("emission_prior", self.emission_prior, table.shape), self.symbols_
        )

    def _emission(self) -> CategoricalEmission:
        return self._made(check_rows("emissionprob_", self.emissionprob_, 2))

    def _store(self, emission: CategoricalEmission) -> None:
        self.emissionprob_ = emission.table

    def to_network(self, length: int, *, prefixes: tuple[str, str] = ("z", "x")) -> BayesianNetwork:
        """The model unrolled for `length` steps: z1 -> z2 -> …, z_t -> x_t; states of z are "0", "1", ….

        >>> casino = CategoricalHMM.from_parameters([0.5, 0.5], np.eye(2), [[0.5, 0.5], [0.1, 0.9]])
        >>> net = casino.to_network(2)
        >>> round(net.query("z2", evidence={"x1": "1"})["z2"].prob("1"), 6)
        0.642857
        """
        from gramgraph.models.builders import hidden_markov_chain

        check_is_fitted(self, "transmat_")
        return hidden_markov_chain(
            check_count("length", length),
            [str(k) for k in range(self.n_states)],
            [str(symbol) for symbol in self.symbols_.tolist()],
            initial=self.startprob_,
            transition=self.transmat_,
            emission=self.emissionprob_,
            prefixes=prefixes,
            name="hidden Markov model",
        )


def _labels(values: Array) -> tuple[Array, Array]:
    """Labels as whole numbers where they are numbers, else as they are; and which are missing."""
    if values.dtype.kind in "iub":
        values = values.astype(np.int64)
        return values, values == -1
    if values.dtype.kind == "f":
        missing = np.isnan(values) | (values == -1)
        whole = np.where(missing, 0.0, values)
        if not np.isfinite(whole).all() or (whole != np.round(whole)).any():
            odd = whole[~np.isfinite(whole) | (whole != np.round(whole))][0]
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


def _positions(values: Array, missing: Array, symbols: Array) -> IntArray:
    """Where every label stands in symbols; −1 where missing."""
    if values.dtype.kind == "i" and symbols.dtype.kind in "iu" and (symbols == np.arange(len(symbols))).all():
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
