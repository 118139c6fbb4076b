"""Running chains: pieces that are counted apart, burn-in by rule, budgets, and what the pieces tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.engines.sampling.sampled import with_tails
from gramgraph.exceptions import OptionError
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.engines.sampling.chains import Moves, Setting

#: Each chain is cut into this many pieces that are kept, whose means give the standard error; fewer (not below the
#: second number) where the counts of all pieces together would pass the third.
PIECES, FEW_PIECES, COUNTS = 25, 8, 1 << 24
#: Updates of a variable that threads make before they wait for each other: one piece is often too short to be worth
#: the wait.
STRETCH = 1 << 22
#: A requested error is pursued up to this many times the draws of the budget.
PATIENCE = 64
#: R-hat above this is reported by a warning, and makes burn-in longer.
HIGH_R_HAT = 1.1
#: Cells of kept draws, at most.
KEPT_CELLS = 1 << 28


class Effort(NamedTuple):
    """How much is to be done."""

    n_chains: int
    burn_in: int | None
    error: float | None
    keep: bool
    n_jobs: int
    start: dict[int, int]
    draws: int
    seconds: float | None

    def given(self, setting: Setting) -> tuple[Array, Array] | None:
        """(variables, states) of the start, observed variables left out."""
        free = np.zeros(len(setting.compiled.sizes), np.bool_)
        free[setting.compiled.variables] = True
        pairs = [(v, code) for v, code in self.start.items() if free[v]]
        return (np.array([v for v, _ in pairs]), np.array([code for _, code in pairs])) if pairs else None


class Chains(NamedTuple):
    """What the chains gave for one case, after burn-in."""

    counts: FloatArray  # (chains, pieces, cells)
    length: int  # sweeps in each piece
    kept: Array | None  # (chains, draws, variables) states, on request
    dropped: int  # sweeps of burn-in of each chain


@contextmanager
def _mapping(n_jobs: int, n_chains: int) -> Iterator[Callable[..., Any]]:
    """`map` over the chains, in threads where asked for: each has a state and numbers of its own."""
    if n_jobs in (0, 1):
        yield lambda f, *args: [f(*arg) for arg in zip(*args, strict=True)]
        return
    with ThreadPoolExecutor(n_chains if n_jobs < 0 else min(n_jobs, n_chains)) as pool:
        yield lambda f, *args: list(pool.map(f, *args))


@interruptible()
def run_chains(moves: Moves, cells: int, effort: Effort, rng: np.random.Generator) -> Chains:
    """Run the chains until the draws are made, the error is reached, the time is over, or Ctrl-C comes.

    Pieces of equal length are counted apart. When there are enough of them and more is to be done, neighbors are added
    and the length doubles. Burn-in by rule: a sixth of the pieces, more (to a half) while the chains disagree.
    """
    end = None if effort.seconds is None else monotonic() + effort.seconds
    n_chains, per_chain = effort.n_chains, max(-(-effort.draws // effort.n_chains), 2)
    streams = rng.spawn(n_chains)
    given = effort.given(moves.setting)
    states = [moves.begin(stream, given) for stream in streams]
    most = int(np.clip(COUNTS // max(n_chains * cells, 1), FEW_PIECES, PIECES))
    wanted = min(most, per_chain)
    length = 1 if end is not None else -(-per_chain // wanted)
    total = wanted + (0 if effort.burn_in is not None else -(-wanted // 5))
    total = max(total, FEW_PIECES) if end is not None else total
    moves.expect(total * n_chains)
    pieces: list[FloatArray] = []
    drawn: list[Array] = []
    with _mapping(effort.n_jobs, n_chains) as each:
        for _ in range(effort.burn_in or 0):
            each(lambda state, stream: moves.run(state, 1, stream, np.zeros(cells)), states, streams)
        try:
            while True:
                check_interrupt()
                count = 1
                if end is None and effort.n_jobs not in (0, 1):
                    sweeps = STRETCH // max(len(moves.setting.compiled.variables), 1)
                    count = min(max(sweeps // length, 1), total - len(pieces))
                found, rows = _pieces(moves, effort, each, states, streams, (count, length, cells))
                pieces.extend(found)
                drawn += [rows] if effort.keep else []
                if sum(part.size for part in drawn) > KEPT_CELLS:
                    raise OptionError(
                        "keep=True would keep too many draws: ask for fewer targets, or give a smaller budget"
                    )
                if end is not None and monotonic() >= end and len(pieces) >= 2:
                    break
                if len(pieces) == total:
                    if _enough(pieces, length, effort, per_chain):
                        break
                    pieces = [pieces[i - 1] + pieces[i] for i in range(len(pieces) - 1, 0, -2)][::-1]
                    length *= 2
        except KeyboardInterrupt:
            if len(pieces) < 2:
                raise
    return _settled(pieces, length, effort, drawn)


def _pieces(
    moves: Moves,
    effort: Effort,
    each: Callable[..., Any],
    states: list[Array],
    streams: list[np.random.Generator],
    sizes: tuple[int, int, int],
) -> tuple[FloatArray, Array]:
    """(counts, draws that are kept) of some more pieces of every chain, sizes = (pieces, sweeps of one, cells)."""
    pieces, length, cells = sizes
    counts = np.zeros((effort.n_chains, pieces, cells))
    targets = np.array(list(dict.fromkeys(moves.setting.wants.idx.tolist())), np.int64) if effort.keep else None
    rows = np.zeros((effort.n_chains, pieces * length, 0 if targets is None else len(targets)), np.int16)

    def run(state: Array, stream: np.random.Generator, into: FloatArray, row: Array) -> None:
        for k in range(pieces):
            if targets is None:
                moves.run(state, length, stream, into[k])
                continue
            for i in range(k * length, (k + 1) * length):
                moves.run(state, 1, stream, into[k])
                row[i] = moves.current(state)[targets]

    each(run, states, streams, counts, rows)
    return counts.swapaxes(0, 1), rows


def _enough(pieces: list[FloatArray], length: int, effort: Effort, per_chain: int) -> bool:
    """Whether no more pieces are needed, time apart."""
    if effort.error is None:
        return effort.seconds is None
    chains = _settled(pieces, length, effort, [])
    if diagnose(chains.counts, length)[1].max(initial=0.0) <= effort.error:
        return True
    return effort.seconds is None and length * len(pieces) >= PATIENCE * per_chain


def _settled(pieces: list[FloatArray], length: int, effort: Effort, drawn: list[Array]) -> Chains:
    """The pieces after burn-in."""
    counts = np.stack(pieces, axis=1)
    first, n = 0, len(pieces)
    if effort.burn_in is None:
        choices = [n // 6, n // 3, n // 2] if n >= FEW_PIECES else [n // 6]
        first = choices[0]
        if _disagreement(counts[:, first:], length) > HIGH_R_HAT:
            better = [d for d in choices[1:] if _disagreement(counts[:, d:], length) <= HIGH_R_HAT]
            first = better[0] if better else first
    kept = np.concatenate(drawn, axis=1)[:, -(n - first) * length :] if drawn else None
    return Chains(counts[:, first:], length, kept, first * length if effort.burn_in is None else effort.burn_in)


def _disagreement(counts: FloatArray, length: int) -> float:
    return float(_r_hat(counts, length).max(initial=1.0))


def _r_hat(counts: FloatArray, length: int) -> FloatArray:
    """R-hat of every cell from the halves of the chains: √((n − 1)/n + between/within)."""
    half = max(counts.shape[1] // 2, 1)
    size = half * length
    halves = np.concatenate([counts[:, :half].sum(axis=1), counts[:, -half:].sum(axis=1)]) / size
    within = (halves * (1 - halves)).mean(axis=0) * size / max(size - 1, 1)
    between = halves.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((size - 1) / size + between / within)
    return np.where(within > 0, r_hat, np.where(between > 1e-24, np.inf, 1.0))


def diagnose(
    counts: FloatArray,  # (chains, pieces, cells)
    length: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(p, standard error, R-hat, effective draws) of every cell, from its counts in pieces of `length` sweeps.

    The error is that of the mean of the pieces, times √((1 + ρ)/(1 − ρ)) where neighbors among them are correlated by
    ρ > 0; where the chains disagree, at least what their means say; with more near 0 and 1 (`with_tails`). A state that
    never came up counts on as many effective draws as others have.

    >>> counts = np.array([[[5.0], [5.0]], [[5.0], [5.0]]])
    >>> [float(x[0].round(2)) for x in diagnose(counts, 10)]
    [0.5, 0.0, 0.95, 40.0]
    """
    chains, pieces, _ = counts.shape
    means = counts / length
    p = means.mean(axis=(0, 1))
    r_hat, n = _r_hat(counts, length), chains * pieces
    apart = means.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(chains)
    means -= p
    spread = np.einsum("cpk,cpk->k", means, means) / max(n - 1, 1)
    lag = np.einsum("cpk,cpk->k", means[:, 1:], means[:, :-1]) / max(n - chains, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = np.where(lag > 0, np.minimum(lag / spread, 0.9), 0.0)
        error = np.sqrt(spread / n * (1 + rho) / (1 - rho)) if n > 1 else np.ones_like(p)
        # chains that disagree: their means are the only independent numbers
        error = np.where(r_hat > HIGH_R_HAT, np.maximum(error, apart), error)
        total = n * length
        effective = np.where(error > 0, p * (1 - p) / error**2, total)
    moving = p * (1 - p) > 0
    effective = np.clip(np.where(moving, effective, total), 1.0, total)
    typical = float(np.median(effective[moving])) if moving.any() else float(total)
    return p, with_tails(p, error**2, np.where(moving, total, typical)), r_hat, effective
