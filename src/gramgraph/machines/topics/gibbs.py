"""Collapsed Gibbs sampling of topics: a chain over the topics of all tokens, and its averages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph._numerics.topics import draws
from gramgraph.machines.topics.collection import Tokens, blocks, padded
from gramgraph.machines.topics.priors import CountTable, from_counts
from gramgraph.typing import FloatArray, IntArray

#: Uniform numbers that are drawn at a time.
_AT_ONCE = 1 << 20
#: Sweeps between two looks at the chain: its averages, its priors, its file.
ROUND = 10


class Chain:
    """The topics z of all tokens, drawn anew sweep after sweep from P(z_i | z_−i, w); θ and φ are integrated out.

    P(z_i = t | rest) ∝ (n_wt + β_w)/(n_t + Σβ) · (n_dt + α_t), counts without token i. The first state draws token
    after token given those before it. Numbers of sweep s come from the generator (seed, s), so that a chain goes on
    from its topics alone. `prior` (T, W) holds β, or counts of earlier documents on top of it; `rows` is n_wt + β, one
    word after the other, topics padded to a multiple of eight.
    """

    def __init__(self, tokens: Tokens, alpha: FloatArray, prior: FloatArray, seed: int) -> None:
        self.tokens, self.seed, self.sweeps = tokens, seed, 0
        self.n_topics = len(alpha)
        self.z = np.zeros(len(tokens.words), np.uint16)
        self._own, self._share = np.zeros(len(padded(alpha))), np.zeros(len(padded(alpha)))
        self.set_priors(alpha, prior)
        self._pass(draws.fill, self._generator())

    def set_priors(self, alpha: FloatArray, prior: FloatArray) -> None:
        """Go on with other priors."""
        self.alpha, self.prior = np.asarray(alpha, dtype=np.float64), prior
        self._alpha = padded(self.alpha)
        self._tabulate(counted=self.sweeps > 0)

    def _tabulate(self, *, counted: bool) -> None:
        """Tables of counts with the priors in them, made anew from the topics."""
        self.rows = padded(np.ascontiguousarray(self.prior.T)).ravel()
        stride = len(self._alpha)
        if counted:
            draws.count_words(self.tokens.words, self.z, stride, self.rows)
        total = self.rows.reshape(-1, stride).sum(axis=0)
        self._total = np.where(np.arange(stride) < self.n_topics, total, 1.0)

    def _generator(self) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64([self.seed, self.sweeps]))

    def _pass(self, loop: Any, rng: np.random.Generator) -> None:
        ptr, words = self.tokens.ptr, self.tokens.words
        tables = (self.rows, self._total, self._own, self._share, self._alpha)
        for first, last in blocks(ptr, _AT_ONCE):
            u = rng.random(int(ptr[last] - ptr[first]))
            loop(ptr, words, self.z, u, *tables, self.n_topics, first, last)
        self.sweeps += 1

    def sweep(self) -> None:
        """Draw every topic once."""
        self._pass(draws.sweep, self._generator())

    def states(self, n: int) -> IntArray:
        """The topics after each of the next n sweeps, (n, tokens); one generator serves them all."""
        rng, out = self._generator(), np.empty((n, len(self.z)), np.int64)
        for state in out:
            self._pass(draws.sweep, rng)
            state[:] = self.z
        return out

    def settle(self) -> None:
        """Take rounding out of the tables: what a chain does next depends on its topics alone."""
        self._tabulate(counted=True)

    def by_topic(self, rows: FloatArray) -> FloatArray:
        """A table like `rows` as (T, W)."""
        return np.ascontiguousarray(rows.reshape(-1, len(self._alpha))[:, : self.n_topics].T)

    def document_counts(self) -> IntArray:
        """n_dt, (D, T)."""
        out = np.zeros((len(self.tokens.ptr) - 1, self.n_topics), np.int64)
        draws.count_documents(self.tokens.ptr, self.z, out)
        return out


class GibbsFit:
    """A chain with its averages: `components` is the mean of n_tw + β over the states after `burn_in` sweeps."""

    def __init__(
        self,
        tokens: Tokens,
        alpha: FloatArray,
        prior: FloatArray,
        seed: int,
        *,
        burn_in: int = 0,
        learn: tuple[str, bool] = ("", False),
    ) -> None:
        self.chain = Chain(tokens, alpha, prior, seed)
        self.burn_in = burn_in
        self.trace: list[float] = []
        self._learn, self._asymmetric = learn
        self._sum: FloatArray = np.zeros_like(self.chain.rows)
        self._kept = 0
        self._lengths = CountTable(np.diff(tokens.ptr)[:, None])

    @property
    def done(self) -> int:
        """Sweeps so far, the first state not counted."""
        return self.chain.sweeps - 1

    def advance(self, sweeps: int) -> None:
        """So many sweeps; then note log p(w, z), and learn the priors if that is wanted."""
        chain = self.chain
        for _ in range(sweeps):
            chain.sweep()
            if self.done > self.burn_in:
                self._sum += chain.rows
                self._kept += 1
        chain.settle()
        table = CountTable(chain.document_counts())
        if self._learn:
            self._learn_priors(table)
        self.trace.append(self._log_joint(table))

    @property
    def components(self) -> FloatArray:
        """The mean over kept states, or the last state where none was kept."""
        chain = self.chain
        return chain.by_topic(self._sum / self._kept) if self._kept else chain.by_topic(chain.rows)

    def _learn_priors(self, documents: CountTable) -> None:
        chain = self.chain
        alpha, beta = chain.alpha, chain.prior
        if self._learn in ("both", "doc_topic"):
            alpha = from_counts(documents, self._lengths, alpha)
        if self._learn in ("both", "topic_word"):
            counts = np.rint(chain.by_topic(chain.rows) - beta).astype(np.int64)
            totals = CountTable(counts.sum(axis=1)[:, None])
            if self._asymmetric:
                found = from_counts(CountTable(counts), totals, beta[0])
            else:
                found = from_counts(CountTable(counts.reshape(-1, 1)), totals, beta[0, :1], times=beta.shape[1])
            beta = np.broadcast_to(found, beta.shape)
        chain.set_priors(alpha, beta)

    def _log_joint(self, documents: CountTable) -> float:
        """log p(w, z | α, β)."""
        from scipy.special import gammaln

        chain = self.chain
        log_z = documents.log_ratios(chain.alpha) - self._lengths.log_ratios(np.array([chain.alpha.sum()]))
        words, prior = chain.by_topic(chain.rows), chain.prior
        t, w = np.nonzero(words != prior)
        log_w = float((gammaln(words[t, w]) - gammaln(prior[t, w])).sum())
        log_w -= float((gammaln(words.sum(axis=1)) - gammaln(prior.sum(axis=1))).sum())
        return log_z + log_w

    # ------------------------------------------------------------------------------------------ files

    def state(self) -> dict[str, Any]:
        """All that `resume` needs."""
        chain = self.chain
        beta = np.array(chain.prior[0]) if (chain.prior == chain.prior[0]).all() else chain.prior
        return {
            "sweeps": chain.sweeps, "kept": self._kept, "seed": chain.seed, "z": chain.z, "sum": self._sum,
            "alpha": chain.alpha, "beta": beta, "trace": np.array(self.trace),
        }  # fmt: skip

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        chain = self.chain
        z, alpha, beta = state["z"], state["alpha"], state["beta"]
        if z.shape != chain.z.shape or z.max(initial=0) >= chain.n_topics or state["sum"].shape != self._sum.shape:
            raise ValueError("the state is one of other documents")
        if alpha.shape != chain.alpha.shape or not (alpha > 0.0).all() or not (beta > 0.0).all():
            raise ValueError("the state has no sound priors")
        chain.z, chain.sweeps, chain.seed = z.astype(np.uint16), int(state["sweeps"]), int(state["seed"])
        chain.set_priors(alpha, np.broadcast_to(beta, chain.prior.shape))
        self._sum, self._kept, self.trace = np.array(state["sum"]), int(state["kept"]), state["trace"].tolist()
