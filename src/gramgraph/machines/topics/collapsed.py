"""Collapsed variational topics of order zero: shares of topics by document and word, θ and φ integrated out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph._numerics.topics.collapsed import collapse, spread
from gramgraph.machines.topics.collection import Documents, padded
from gramgraph.machines.topics.gibbs import Chain
from gramgraph.machines.topics.priors import CountTable, from_counts
from gramgraph.typing import FloatArray

#: Words that the sweeps before the first round draw topics for, and how many sweeps there are at least and at most:
#: expected counts do not leave a poor start by themselves, and sweeps over small collections cost nothing.
_START_DRAWS, _FEW, _MANY = 1 << 18, 3, 50


class CollapsedFit:
    """Rounds of r_dwt ∝ (n_wt + β)/(n_t + Σβ) · (n_dt + α), soft counts n = Σ c r without one token of the pair.

    The Gibbs sampler's conditional with expected counts in place of drawn ones: no sampling noise, so a few rounds
    reach what takes many sweeps. It begins with a few of those. `trace` holds Σ log p(word | all other
    words) of every round, which is what held-out words will find; it is no bound and may fall at the end. `prior`
    (T, W) holds β, or counts of earlier documents on top of it. Memory: 4 bytes for each pair and topic.
    """

    def __init__(
        self,
        documents: Documents,
        alpha: FloatArray,
        prior: FloatArray,
        seed: int,
        *,
        learn: tuple[str, bool] = ("", False),
    ) -> None:
        self.documents, self.alpha, self.prior = documents, alpha, prior
        self._learn, self._asymmetric = learn
        first = Chain(documents.tokens(), alpha, prior, seed)
        for _ in range(min(max(_START_DRAWS // max(documents.n_tokens, 1), _FEW), _MANY)):
            first.sweep()
        self._stride = len(padded(alpha))
        self.shares = np.zeros(len(documents.index) * self._stride, np.float32)
        spread(documents.count, first.z, self.shares, self._stride)
        self.rows = first.rows
        self.trace: list[float] = []

    @property
    def done(self) -> int:
        """Rounds so far."""
        return len(self.trace)

    @property
    def components(self) -> FloatArray:
        """Σ_d c r + β, (T, W)."""
        return np.ascontiguousarray(self.rows.reshape(-1, self._stride)[:, : len(self.alpha)].T)

    def advance(self) -> None:
        """One round over all pairs, then the priors if they are learned."""
        alpha, n_topics, words = padded(self.alpha), len(self.alpha), self.documents
        total = self.rows.reshape(-1, self._stride).sum(axis=0)
        total[n_topics:] = 1.0
        own, space = np.zeros(self._stride), np.zeros(self._stride)
        log_p = collapse(words.ptr, words.index, words.count, self.shares, self.rows, total, own, alpha, space)
        if self._learn:
            self._learn_priors()
        self.trace.append(float(log_p))

    def _learn_priors(self) -> None:
        documents, beta = self.documents, self.prior
        if self._learn in ("both", "doc_topic"):
            counts = self._document_counts()
            self.alpha = from_counts(CountTable(counts), CountTable(counts.sum(axis=1)[:, None]), self.alpha)
        if self._learn in ("both", "topic_word"):
            counts = np.maximum(self.components - beta, 0.0)
            totals = CountTable(counts.sum(axis=1)[:, None])
            if self._asymmetric:
                found = from_counts(CountTable(counts), totals, beta[0])
            else:
                found = from_counts(CountTable(counts.reshape(-1, 1)), totals, beta[0, :1], times=documents.n_words)
            self.prior = np.broadcast_to(found, beta.shape)
            self.rows += padded(np.ascontiguousarray((self.prior - beta).T)).ravel()

    def _document_counts(self) -> FloatArray:
        """Σ_w c r, (D, T)."""
        words, n_topics = self.documents, len(self.alpha)
        by_pair = self.shares.reshape(-1, self._stride)[:, :n_topics]
        document = np.repeat(np.arange(words.n_documents), np.diff(words.ptr))
        found = [np.bincount(document, words.count * by_pair[:, t], words.n_documents) for t in range(n_topics)]
        return np.stack(found, axis=1)

    # ------------------------------------------------------------------------------------------ files

    def state(self) -> dict[str, Any]:
        """All that `resume` needs."""
        return {
            "shares": self.shares, "rows": self.rows, "alpha": self.alpha, "prior": np.array(self.prior),
            "trace": np.array(self.trace),
        }  # fmt: skip

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in ("shares", "rows", "alpha", "prior"):
            if state[name].shape != getattr(self, name).shape or not (state[name] >= 0.0).all():
                raise ValueError("the state is one of other documents")
        if not (state["alpha"] > 0.0).all() or not (state["prior"] > 0.0).all():
            raise ValueError("the state has no sound priors")
        self.shares, self.rows = state["shares"].astype(np.float32), np.array(state["rows"])
        self.alpha, self.prior = np.array(state["alpha"]), np.array(state["prior"])
        self.trace = state["trace"].tolist()
