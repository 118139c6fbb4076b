"""Forward, backward, Viterbi and sampling of hidden Markov chains: arrays in, arrays out.

All take start (K,), transition (K, K) with transition[i, j] = p(j | i), the log-likelihoods log p(x_t | state) of all
rows, (N, K), and the lengths of the sequences that stand one after the other in them (None: one sequence). A row of
zeros is an observation that is missing. Cost O(N K²) time and O(N K) memory; `n_jobs` threads share the sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gramgraph._numerics.hmm import recursions as _loops
from gramgraph._numerics.hmm import viterbi as _viterbi
from gramgraph._numerics.hmm.emissions import likelihood_rows
from gramgraph._threads import in_threads
from gramgraph._validation import check_jobs, generator
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Posteriors:
    """What forward and backward passes tell of the hidden states.

    Parameters
    ----------
    probabilities : (N, K): p(state at t | all observations of its sequence).
    log_likelihoods : (S,): log p(x) of every sequence.
    start_counts : (K,): Σ over sequences of p(first state | x).
    transition_counts : (K, K): expected numbers of steps from i to j.

    Examples
    --------
    >>> logs = np.log([[0.9, 0.1], [0.8, 0.2]])
    >>> found = posteriors(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]]), logs)
    >>> found.probabilities.round(3).tolist()
    [[0.962, 0.038], [0.948, 0.052]]
    """

    probabilities: FloatArray  # (N, K): p(state at t | all observations of its sequence)
    log_likelihoods: FloatArray  # (S,): log p(x) of every sequence
    start_counts: FloatArray  # (K,): Σ over sequences of p(first state | x)
    transition_counts: FloatArray  # (K, K): expected numbers of steps from i to j

    @property
    def log_likelihood(self) -> float:
        """log p of all sequences together."""
        return float(self.log_likelihoods.sum())


def posteriors(
    start: Any,
    transition: Any,
    logs: Any,  # (N, K)
    lengths: Sequence[int] | None = None,
    *,
    n_jobs: int | None = None,
) -> Posteriors:
    """Forward–backward: state posteriors, expected transitions and log-likelihoods of all sequences.

    Parameters
    ----------
    start : (K,) p(first state).
    transition : (K, K) p(next state | state).
    logs : (N, K) log p(observation | state).
    lengths : of the sequences; None for one.
    n_jobs : number of threads; -1 for one per processor.

    Examples
    --------
    >>> found = posteriors([0.5, 0.5], [[0.25, 0.75], [0.5, 0.5]], np.log([[0.5, 0.25], [0.25, 0.5]]))
    >>> found.probabilities.round(3).tolist()
    [[0.7, 0.3], [0.2, 0.8]]
    >>> round(float(np.exp(found.log_likelihood)), 5)
    0.15625
    """
    start, transition, logs, offsets = _door(start, transition, logs, lengths)
    return run_posteriors(start, transition, *_of_rows(logs, offsets), n_jobs=n_jobs)


def forward(
    start: Any, transition: Any, logs: Any, lengths: Sequence[int] | None = None, *, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Filtered probabilities p(state at t | x up to t), (N, K), and the log-likelihoods of the sequences, (S,).

    Parameters
    ----------
    start : (K,) p(first state).
    transition : (K, K) p(next state | state).
    logs : (N, K) log p(observation | state).
    lengths : of the sequences; None for one.
    n_jobs : number of threads; -1 for one per processor.

    Examples
    --------
    >>> belief, logs = forward([0.5, 0.5], np.eye(2), np.log([[0.6, 0.3], [0.5, 0.6]]))
    >>> belief[:, 0].round(4).tolist()
    [0.6667, 0.625]
    """
    start, transition, logs, offsets = _door(start, transition, logs, lengths)
    alpha, found, bad = run_forward(start, transition, *_of_rows(logs, offsets), n_jobs=n_jobs)
    refuse_impossible(bad, offsets)
    return alpha, found


def log_likelihood(
    start: Any, transition: Any, logs: Any, lengths: Sequence[int] | None = None, *, n_jobs: int | None = None
) -> FloatArray:
    """log p(x) of every sequence, (S,); −inf for one that cannot be.

    Parameters
    ----------
    start : (K,) p(first state).
    transition : (K, K) p(next state | state).
    logs : (N, K) log p(observation | state).
    lengths : of the sequences; None for one.
    n_jobs : number of threads; -1 for one per processor.

    Examples
    --------
    >>> log_likelihood([1.0, 0.0], np.eye(2), np.log([[0.5, 1.0], [0.5, 1.0]])).round(6).tolist()
    [-1.386294]
    """
    start, transition, logs, offsets = _door(start, transition, logs, lengths)
    return run_forward(start, transition, *_of_rows(logs, offsets), n_jobs=n_jobs)[1]


def viterbi(
    start: Any, transition: Any, logs: Any, lengths: Sequence[int] | None = None, *, n_jobs: int | None = None
) -> tuple[IntArray, FloatArray]:
    """The most probable states given each sequence, (N,), and log p(states, x) of each, (S,).

    Parameters
    ----------
    start : (K,) p(first state).
    transition : (K, K) p(next state | state).
    logs : (N, K) log p(observation | state).
    lengths : of the sequences; None for one.
    n_jobs : number of threads; -1 for one per processor.

    Examples
    --------
    >>> states, best = viterbi([0.5, 0.5], [[0.25, 0.75], [0.5, 0.5]], np.log([[0.5, 0.25], [0.25, 0.5]]))
    >>> states.tolist(), float(np.exp(best[0]).round(6))
    ([0, 1], 0.09375)
    """
    start, transition, logs, offsets = _door(start, transition, logs, lengths)
    return run_viterbi(start, transition, logs.copy(), offsets, n_jobs=n_jobs)


def sample_states(
    start: Any,
    transition: Any,
    logs: Any,
    lengths: Sequence[int] | None = None,
    *,
    n_samples: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> IntArray:
    """Paths drawn from p(states | x), (n_samples, N): forward filtering, backward sampling.

    Parameters
    ----------
    start : (K,) p(first state).
    transition : (K, K) p(next state | state).
    logs : (N, K) log p(observation | state).
    lengths : of the sequences; None for one.
    n_samples : how many paths.
    random_state : seed, or a generator.
    n_jobs : number of threads; -1 for one per processor.

    Examples
    --------
    >>> logs = np.log([[0.5, 0.25], [0.25, 0.5]])
    >>> drawn = sample_states([0.5, 0.5], [[0.25, 0.75], [0.5, 0.5]], logs, n_samples=4000, random_state=0)
    >>> bool(abs((drawn[:, 0] == 0).mean() - 0.7) < 0.03)
    True
    """
    start, transition, logs, offsets = _door(start, transition, logs, lengths)
    alpha, _, bad = run_forward(start, transition, *_of_rows(logs, offsets), n_jobs=n_jobs)
    refuse_impossible(bad, offsets)
    rng = generator(random_state)
    AT = np.ascontiguousarray(transition.T)
    paths = np.empty((n_samples, len(alpha)), dtype=np.int64)
    for path in paths:
        u = rng.random(len(alpha))
        _split(offsets, n_jobs, partial(_draw, alpha, AT, offsets, u, path), len(AT))
    return paths


def _draw(
    alpha: FloatArray, AT: FloatArray, offsets: IntArray, u: FloatArray, path: IntArray, lo: int, hi: int
) -> None:
    _loops.draw_backward(alpha, AT, offsets, lo, hi, u, path)


# --- below the door: offsets (S + 1,), everything checked -----------------------------------------------------------

#: Up to so many states expected transitions are summed within the backward pass.
_FEW = 24
#: Steps of a loop that are not worth a thread, and parts into which longer work is cut, at most: a part of few steps is
#: over before the thread that did it has Python's lock again.
_TINY, _PARTS = 1 << 20, 16
#: Rows → their log-likelihoods, asked for only where numbers underflow.
LogRows = Callable[[slice], FloatArray]
#: Rows → their likelihoods (n, K) divided by exp(shift), a new array, and shift (n,); None means zeros.
Rows = Callable[[slice], tuple[FloatArray, FloatArray | None]]


def likelihoods(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """exp(logs − shift), (N, K), and the shift of every row, (N,); overwrites logs."""
    shift = np.empty(len(logs))
    likelihood_rows(logs, shift)
    return logs, shift


def _of_rows(logs: FloatArray, offsets: IntArray) -> tuple[Rows, IntArray, LogRows]:
    return lambda rows: likelihoods(logs[rows].copy()), offsets, lambda rows: logs[rows]


def run_forward(
    start: FloatArray,
    A: FloatArray,
    rows_of: Rows,
    offsets: IntArray,
    log_rows: LogRows,
    *,
    n_jobs: int | None = None,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """(filtered (N, K), log-likelihoods (S,), bad (S,)): bad is the first impossible row of a sequence, or −1."""
    count = len(offsets) - 1
    alpha, found, failed = np.empty((int(offsets[-1]), len(A))), np.empty(count), np.empty(count, dtype=np.int64)

    def work(part: _Part) -> None:
        part.forward(start, A, alpha, found, failed)

    _by_parts(work, rows_of, offsets, len(A), n_jobs)
    bad = np.full(count, -1)
    for s in np.flatnonzero(failed >= 0):
        rows = slice(int(offsets[s]), int(offsets[s + 1]))
        found[s], stop = _log_forward(start, A, log_rows(rows), alpha[rows])
        if stop >= 0:  # nothing is known after the impossible row, whose place in memory nobody wrote to
            bad[s] = stop + rows.start
            alpha[bad[s] : rows.stop] = np.nan
            rows = slice(rows.start, int(bad[s]))
        np.exp(alpha[rows], out=alpha[rows])
    return alpha, found, bad


def run_posteriors(
    start: FloatArray,
    A: FloatArray,
    rows_of: Rows,
    offsets: IntArray,
    log_rows: LogRows,
    *,
    n_jobs: int | None = None,
    pairs: bool = True,
    room: FloatArray | None = None,
) -> Posteriors:
    """`posteriors` of checked arrays; an impossible sequence is an error that names it.

    Without `pairs` the expected transitions are not computed (those of sequences that need logarithms remain). `room`,
    (N, K), becomes the probabilities: those of an earlier call, so that no new memory need be cleared for them.
    """
    AT, count, in_place = np.ascontiguousarray(A.T), len(offsets) - 1, len(A) <= _FEW or not pairs
    found, failed = np.empty(count), np.empty(count, dtype=np.int64)
    gamma = np.empty((int(offsets[-1]), len(A))) if room is None else room
    alpha, sums = gamma if in_place else np.empty_like(gamma), dict[int, FloatArray]()

    def work(part: _Part) -> None:
        part.forward(start, A, alpha, found, failed)
        here, bad = alpha[part.rows], failed[part.sequences]
        seen = AT, part.b, part.scale, part.offsets, 0, len(bad), here, bad
        if in_place:
            total = np.zeros_like(AT)
            _loops.backward_in_place(*seen, total, pairs)
        else:
            _loops.backward(*seen, gamma[part.rows])
            total = here[:-1].T @ part.b[1:]
        sums[part.rows.start] = total

    _by_parts(work, rows_of, offsets, len(A), n_jobs)
    counts = _in_order(sums) * A
    for s in np.flatnonzero(failed >= 0):
        rows = slice(int(offsets[s]), int(offsets[s + 1]))
        logs = log_rows(rows)
        room = np.empty_like(logs)
        found[s], bad = _log_forward(start, A, logs, room)
        if bad >= 0:
            refuse_impossible(np.where(np.arange(len(failed)) == s, bad + rows.start, -1), offsets)
        with np.errstate(divide="ignore"):
            _loops.log_backward(np.log(A), logs, room, gamma[rows], counts)
    return Posteriors(gamma, found, gamma[offsets[:-1]].sum(axis=0), counts)


def _in_order(parts: dict[int, FloatArray]) -> FloatArray:
    total: FloatArray = np.sum([parts[lo] for lo in sorted(parts)], axis=0)
    return total


def run_viterbi(
    start: FloatArray, A: FloatArray, logs: FloatArray, offsets: IntArray, *, n_jobs: int | None = None
) -> tuple[IntArray, FloatArray]:
    """`viterbi` of checked arrays; overwrites logs."""
    return _run_viterbi(start, A, logs, None, offsets, n_jobs)


def run_symbol_viterbi(
    start: FloatArray,
    A: FloatArray,
    columns: FloatArray,
    data: IntArray,
    offsets: IntArray,
    *,
    n_jobs: int | None = None,
) -> tuple[IntArray, FloatArray]:
    """`run_viterbi` where log p(x_t | state) are the rows data of columns, (M, K)."""
    if len(A) != 8:
        return run_viterbi(start, A, columns[data], offsets, n_jobs=n_jobs)
    return _run_viterbi(start, A, columns, np.where(data < 0, len(columns) + data, data), offsets, n_jobs)


def _run_viterbi(
    start: FloatArray, A: FloatArray, logs: FloatArray, data: IntArray | None, offsets: IntArray, n_jobs: int | None
) -> tuple[IntArray, FloatArray]:
    with np.errstate(divide="ignore"):
        log_start, log_A = np.log(start), np.log(A)
    log_AT = np.ascontiguousarray(log_A.T)
    n = int(offsets[-1])
    path, best = np.empty(n, dtype=np.int64), np.empty(len(offsets) - 1)
    if data is None:
        work: Any = partial(_viterbi.viterbi, log_start, log_A, log_AT, logs, offsets)
    else:
        work = partial(_viterbi.viterbi_symbols, log_start, log_A, log_AT, logs, data, np.empty((n, 8)), offsets)
    _split(offsets, n_jobs, lambda lo, hi: work(lo, hi, path, best), len(A) ** 2)
    if not np.isfinite(best).all():
        bad = np.where(np.isfinite(best), -1, offsets[:-1])
        refuse_impossible(bad, offsets, row=False)
    return path, best


def run_best_paths(
    start: FloatArray, A: FloatArray, logs: FloatArray, offsets: IntArray, k: int
) -> tuple[FloatArray, IntArray]:
    """(log p(path, x) (k, S), states (k, N)), best first; −inf and −1 where a sequence has fewer paths."""
    from gramgraph._numerics.hmm.paths import best_paths

    with np.errstate(divide="ignore"):
        log_start, log_AT = np.log(start), np.log(np.ascontiguousarray(A.T))
    values = np.empty((len(offsets) - 1, k))
    paths = np.empty((k, len(logs)), dtype=np.int64)
    for s in range(len(values)):
        rows = slice(int(offsets[s]), int(offsets[s + 1]))
        best_paths(log_start, log_AT, logs[rows], k, paths[:, rows], values[s])
    if not np.isfinite(values[:, 0]).all():
        refuse_impossible(np.where(np.isfinite(values[:, 0]), -1, offsets[:-1]), offsets, row=False)
    return np.ascontiguousarray(values.T), paths


def refuse_impossible(bad: IntArray, offsets: IntArray, *, row: bool = True) -> None:
    """An error for the first sequence with an observation of probability zero."""
    for s in np.flatnonzero(bad >= 0)[:1]:
        place = f" at its row {int(bad[s] - offsets[s])}" if row else ""
        raise ImpossibleEvidenceError(
            f"sequence {int(s)} has probability zero under the model{place}: no state that can be reached there emits "
            f"the observation. Try: pseudo-counts when fitting (emission_prior, transition_prior above 1), or "
            f"mark the observation as missing."
        )


@dataclass(frozen=True)
class _Part:
    """Some of the sequences: which, their rows, where each begins in these, and the likelihoods of the rows."""

    sequences: slice
    rows: slice
    offsets: IntArray
    scale: FloatArray  # what the filtered probabilities of a row are divided by, once `forward` has been there
    b: FloatArray
    shift: FloatArray | None

    def forward(self, start: FloatArray, A: FloatArray, alpha: FloatArray, found: FloatArray, failed: IntArray) -> None:
        """Filtered probabilities, log-likelihoods and the rows of failures go to their places."""
        self.scale[:] = 1.0
        bad = failed[self.sequences]
        _loops.forward(start, A, self.b, self.offsets, 0, len(bad), alpha[self.rows], self.scale, bad)
        logs = np.log(self.scale)
        if self.shift is not None:
            logs += self.shift
        np.add.reduceat(logs, self.offsets[:-1], out=found[self.sequences])


def _by_parts(work: Callable[[_Part], object], rows_of: Rows, offsets: IntArray, K: int, n_jobs: int | None) -> None:
    """`work` on all parts of the sequences, whose likelihoods are asked for just before they are needed.

    Few parts would leave threads without work: there these share the rows first. What is needed beside the result is
    one block of memory: of what is freed, C libraries keep about twice the largest block for the next call, and what
    they give back costs more to be had anew than a pass over it.
    """
    cuts, n = _cuts(offsets, K * K), int(offsets[-1])
    few = len(cuts) - 1 < max(_parts(n * K * K) // 2, 2)
    scale = np.empty(0)
    if few:
        room = np.empty(n * (K + 2))
        scale, (b, shift) = room[:n], by_rows(rows_of, n, K, n_jobs, room[n:])

    def one(lo: int, hi: int) -> None:
        rows = slice(int(offsets[lo]), int(offsets[hi]))
        own = offsets[lo : hi + 1] - rows.start
        if few:
            work(_Part(slice(lo, hi), rows, own, scale[rows], b[rows], None if shift is None else shift[rows]))
        else:
            work(_Part(slice(lo, hi), rows, own, np.empty(int(own[-1])), *rows_of(rows)))

    _in_threads(cuts, n_jobs, one)


def _log_forward(start: FloatArray, A: FloatArray, logs: FloatArray, alpha: FloatArray) -> tuple[float, int]:
    with np.errstate(divide="ignore"):
        log_start, log_AT = np.log(start), np.log(np.ascontiguousarray(A.T))
    return _loops.log_forward(log_start, log_AT, np.ascontiguousarray(logs), alpha)


def _split(offsets: IntArray, n_jobs: int | None, work: Callable[[int, int], object], weight: int = 1) -> None:
    """work(lo, hi) over ranges of sequences of about equal length, `weight` steps of a loop a row."""
    _in_threads(_cuts(offsets, weight), n_jobs, work)


def _cuts(offsets: IntArray, weight: int) -> IntArray:
    """Where the sequences are cut into parts."""
    count, rows = len(offsets) - 1, int(offsets[-1])
    parts = min(_parts(rows * weight), count)
    if parts < 2:
        return np.array([0, count])
    cuts = np.unique(np.searchsorted(offsets, np.linspace(0, rows, parts + 1)))
    cuts[0], cuts[-1] = 0, count
    return cuts


def _parts(steps: int) -> int:
    """How many parts so much work is worth: 1, 4, 8 or 16, whatever the number of threads."""
    return min(_PARTS, 1 << (4 * steps // _TINY).bit_length() - 1) if steps >= _TINY else 1


def by_rows(
    function: Callable[[slice], Any], n: int, K: int, n_jobs: int | None, room: FloatArray | None = None
) -> Any:
    """(n, K) numbers of all rows, or these and a number of every row or None; threads share the rows.

    `room` is memory for both, (n (K + 1),).
    """
    if n * K < _TINY >> 3:
        return function(slice(0, n))
    cuts = np.linspace(0, n, _PARTS + 1).astype(np.int64)
    room = np.empty(n * (K + 1)) if room is None else room
    found, extra = room[n:].reshape(n, K), room[:n]
    pairs = [False, False]  # whether there is more than the numbers, and whether it is None

    def work(lo: int, hi: int) -> None:
        part = function(slice(lo, hi))
        if isinstance(part, tuple):
            part, more = part
            pairs[0] = True
            if more is None:
                pairs[1] = True
            else:
                extra[lo:hi] = more
        found[lo:hi] = part

    _in_threads(cuts, n_jobs, work)
    return (found, None if pairs[1] else extra) if pairs[0] else found


def _in_threads(cuts: IntArray, n_jobs: int | None, work: Callable[[int, int], object]) -> None:
    """work(lo, hi) between the cuts, which do not depend on the number of threads: nor do numbers that are added up."""
    in_threads(lambda ends: work(*ends), list(pairwise(cuts.tolist())), check_jobs(1 if n_jobs is None else n_jobs))


def _door(
    start: Any, transition: Any, logs: Any, lengths: Sequence[int] | None
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    from gramgraph.sequences._reading import check_chain, numbers, offsets_of

    start, transition = check_chain(start, transition)
    logs = numbers("logs", logs)
    if logs.ndim != 2 or logs.shape[1] != len(start):
        raise ModelError(f"logs must have shape (rows, {len(start)}), one column per state; its shape is {logs.shape}.")
    if np.isnan(logs).any() or (logs == np.inf).any():
        raise ModelError("logs must be log-likelihoods: numbers or −inf, not NaN or +inf. A missing row is all zeros.")
    return start, transition, logs, offsets_of(len(logs), lengths)
