"""What fitted topics say of documents: their shares, their probability, and how well top words go together."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.topics.expectations import topic_shares
from gramgraph._numerics.topics.left_to_right import left_to_right
from gramgraph.machines.topics.collection import Documents, Tokens, blocks, padded
from gramgraph.typing import FloatArray, IntArray

_ROUNDS, _STILL = 100, 1e-4
_AT_ONCE = 1 << 21


def mean_shares(documents: Documents, phi: FloatArray, alpha: FloatArray) -> FloatArray:
    """E θ_d under known topics φ (T, W), (D, T); the mean of the prior for a document without words."""
    out = np.empty((documents.n_documents, len(alpha)))
    topic_shares(
        documents.ptr, documents.index, documents.count, padded(phi.T).ravel(), padded(alpha), len(alpha), out,
        _ROUNDS, _STILL,
    )  # fmt: skip
    return out


def log_probabilities(
    tokens: Tokens,
    begin: IntArray,
    phi: FloatArray,
    alpha: FloatArray,
    rng: np.random.Generator,
    *,
    n_particles: int,
) -> FloatArray:
    """Left-to-right estimates of log p(tokens from `begin` on | those before, φ, α), (D,)."""
    ptr = tokens.ptr
    out = np.zeros(len(ptr) - 1)
    rows, prior = padded(phi.T).ravel(), padded(alpha)
    each = 3 * n_particles + 1
    for first, last in blocks(ptr, max(1, _AT_ONCE // each)):
        own = ptr[first : last + 1] - ptr[first]
        words = tokens.words[ptr[first] : ptr[last]]
        u = rng.random(each * len(words))
        found = np.zeros(last - first)
        left_to_right(own, words, begin[first:last], rows, prior, len(alpha), n_particles, u, each * own, found)
        out[first:last] = found
    return out


def split(tokens: Tokens, share: float) -> IntArray:
    """How many tokens of each document are given: this share of them, rounded, (D,)."""
    return np.rint(share * np.diff(tokens.ptr)).astype(np.int64)


def together(first: Tokens, second: Tokens) -> Tokens:
    """Documents whose tokens are those of the first collection, then those of the second."""
    a, b = np.diff(first.ptr), np.diff(second.ptr)
    ptr = np.concatenate([[0], np.cumsum(a + b)])
    words = np.empty(int(ptr[-1]), first.words.dtype)
    own = np.arange(len(words)) - np.repeat(ptr[:-1], a + b)
    given = own < np.repeat(a, a + b)
    words[given], words[~given] = first.words, second.words
    return Tokens(ptr, words, first.n_words)


def coherence(counts: Any, top: IntArray, measure: str) -> FloatArray:
    """How often the top words (topics, n) of a topic stand in the same documents (sparse counts), (topics,).

    "umass": mean over pairs of log (D(v, w) + 1)/D(w), w the more probable word of the topic. "npmi": mean of
    log(p(v, w)/p(v)p(w)) / −log p(v, w), from −1 (never together) to 1 (always).
    """
    n, size = counts.shape[0], top.shape[1]
    words, at = np.unique(top, return_inverse=True)
    there = counts.tocsc()[:, words].astype(bool).astype(np.float64)
    both = (there.T @ there).toarray()
    later, earlier = np.tril_indices(size, -1)
    out = np.zeros(len(top))
    for t, own in enumerate(at.reshape(top.shape)):
        v, w = own[later], own[earlier]
        shared, alone_v, alone_w = both[v, w], both[v, v], both[w, w]
        if measure == "umass":
            out[t] = np.log((shared + 1.0) / np.maximum(alone_w, 1.0)).mean()
        else:
            out[t] = _npmi(shared / n, alone_v / n, alone_w / n).mean()
    return out


def _npmi(both: FloatArray, v: FloatArray, w: FloatArray) -> FloatArray:
    found = np.full(len(both), -1.0)
    met, always = both > 0.0, both >= 1.0
    some = met & ~always
    found[some] = np.log(both[some] / (v[some] * w[some])) / -np.log(both[some])
    found[always] = 1.0
    return found
