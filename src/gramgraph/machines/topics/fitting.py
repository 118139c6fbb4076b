"""Fits of topics from start to end: rounds, what is kept, when they stop, and where they go on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gramgraph._interrupt import check_interrupt
from gramgraph._numerics.compiling import expect_calls
from gramgraph._numerics.topics import draws
from gramgraph.machines.topics.collapsed import CollapsedFit
from gramgraph.machines.topics.collection import Documents
from gramgraph.machines.topics.gibbs import ROUND, Chain, GibbsFit
from gramgraph.machines.topics.variational import OnlineFit, VariationalFit
from gramgraph.typing import FloatArray

#: Words and sweeps that the start of a variational fit takes.
_START_TOKENS, _START_SWEEPS = 1 << 20, 50


class Notes(Protocol):
    """Where a fit notes how far it is, and finds how far it was."""

    def begin(self) -> dict[str, Any] | None:
        """The state of an earlier run, or None."""

    def save(self, state: Callable[[], Mapping[str, Any]], *, now: bool = False) -> None:
        """Note the state, from time to time or now."""

    def damaged(self) -> Exception:
        """The error for a state that no run has written."""


class Silent:
    """No notes at all."""

    def begin(self) -> dict[str, Any] | None:
        """Nothing."""
        return None

    def save(self, state: Callable[[], Mapping[str, Any]], *, now: bool = False) -> None:
        """Nothing."""

    def damaged(self) -> Exception:
        """Never called."""
        return ValueError("nothing was read")


@dataclass(frozen=True)
class Prior:
    """α (T,), β (T, W) or the counts of earlier documents on top of it, and what is learned of them.

    `learn`: "", "doc_topic", "topic_word" or "both"; with `asymmetric` every word has a β of its own.
    """

    alpha: FloatArray
    beta: FloatArray
    learn: str = ""
    asymmetric: bool = False

    @property
    def learned(self) -> tuple[str, bool]:
        """As the fits take it."""
        return self.learn, self.asymmetric


@dataclass(frozen=True)
class Topics:
    """What a fit found."""

    components: FloatArray  # (T, W) counts with the prior on top
    alpha: FloatArray  # (T,)
    beta: FloatArray  # (T, W)
    trace: FloatArray
    n_iter: int
    converged: bool = True
    interrupted: bool = False


def first_topics(documents: Documents, prior: Prior, seed: int) -> FloatArray:
    """Where the variational fit begins, (T, W): fifty Gibbs sweeps over at most a million words, scaled to all.

    A start at random is nearly flat, and the bound then often climbs to where two topics are one.
    """
    rng = np.random.default_rng(seed)
    lengths = np.add.reduceat(np.append(documents.count, 0.0), documents.ptr[:-1]) * (np.diff(documents.ptr) > 0)
    order = rng.permutation(documents.n_documents)
    order = order[lengths[order] <= _START_TOKENS]
    chosen = np.sort(order[np.cumsum(lengths[order]) <= _START_TOKENS])
    some = documents.some(chosen)
    if not some.n_tokens:
        return random_topics(prior.beta.shape, seed)
    chain = Chain(some.tokens(), prior.alpha, prior.beta, seed)
    for _ in range(_START_SWEEPS):
        chain.sweep()
    counts = chain.by_topic(chain.rows) - prior.beta
    return np.asarray(prior.beta + np.maximum(counts, 0.0) * (documents.n_tokens / some.n_tokens))


def random_topics(shape: tuple[int, ...], seed: int) -> FloatArray:
    """A nearly flat start, for steps that see few documents at first: Gamma(100, 1/100), (T, W)."""
    return np.random.default_rng(seed).gamma(100.0, 0.01, shape)


def fit_gibbs(
    documents: Documents,
    prior: Prior,
    seed: int,
    *,
    sweeps: int,
    burn_in: int,
    notes: Notes,
    tell: Callable[[int], object],
) -> Topics:
    """Sweeps in rounds of ten; the states after `burn_in` sweeps are averaged."""
    fit = GibbsFit(documents.tokens(), prior.alpha, prior.beta, seed, burn_in=burn_in, learn=prior.learned)
    _go_on(fit, notes)
    expect_calls(draws.sweep, sweeps - fit.done)

    def advance() -> bool:
        fit.advance(min(ROUND, sweeps - fit.done))
        tell(min(fit.done, sweeps))
        return fit.done >= sweeps

    interrupted = fit.done < sweeps and _run(advance, fit, notes)
    return Topics(fit.components, fit.chain.alpha, fit.chain.prior, np.array(fit.trace), fit.done, True, interrupted)


def fit_rounds(
    fit: VariationalFit | CollapsedFit,
    *,
    max_iter: int,
    tol: float,
    notes: Notes,
    tell: Callable[[int], object],
) -> Topics:
    """Rounds until `trace` moves by less than `tol` times its size."""
    _go_on(fit, notes)

    def settled() -> bool:
        return len(fit.trace) > 1 and abs(fit.trace[-1] - fit.trace[-2]) <= tol * abs(fit.trace[-1])

    def advance() -> bool:
        fit.advance()
        tell(fit.done)
        return settled() or fit.done >= max_iter

    interrupted = not settled() and fit.done < max_iter and _run(advance, fit, notes)
    return Topics(fit.components, fit.alpha, fit.prior, np.array(fit.trace), fit.done, settled(), interrupted)


def fit_online(
    documents: Documents,
    fit: OnlineFit,
    seed: int,
    *,
    epochs: int,
    batch_size: int,
    n_documents: int,
    notes: Notes,
    tell: Callable[[int], object],
) -> Topics:
    """Steps over batches, in an order drawn anew for every pass; `trace` is the documents' bound for each token."""
    _go_on(fit, notes)
    n = documents.n_documents
    batches = [(first, min(first + batch_size, n)) for first in range(0, n, batch_size)]

    def advance() -> bool:
        order = np.random.default_rng([seed, len(fit.trace)]).permutation(len(batches))
        found = [fit.step(documents.part(*batches[b]), n_documents) for b in order]
        fit.trace.append(float(np.mean(found)))
        tell(len(fit.trace))
        return len(fit.trace) >= epochs

    interrupted = len(fit.trace) < epochs and _run(advance, fit, notes)
    return Topics(fit.components, fit.alpha, fit.prior, np.array(fit.trace), len(fit.trace), True, interrupted)


def _go_on(fit: Any, notes: Notes) -> None:
    state = notes.begin()
    if state is None:
        return
    try:
        fit.resume(state)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise notes.damaged() from None


def _run(advance: Callable[[], bool], fit: Any, notes: Notes) -> bool:
    """Advance to the end; whether Ctrl-C came before, with something to keep."""
    interrupted = False
    try:
        while not advance():
            notes.save(fit.state)
            check_interrupt()
    except KeyboardInterrupt:
        if not fit.trace:
            raise
        interrupted = True
    notes.save(fit.state, now=True)
    return interrupted
