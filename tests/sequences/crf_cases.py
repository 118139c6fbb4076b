"""Random chains and data for the tests of conditional random fields, and all labelings as the reference."""

from __future__ import annotations

import itertools

import numpy as np

from gramgraph.sequences.crf import packing
from gramgraph.sequences.crf.decoding import Chain, Rules
from gramgraph.sequences.crf.encoding import FeatureTable, Tokens
from gramgraph.sequences.crf.objective import ChainObjective, ChainWeights, lay_out, padded

LABELS = ["B-NP", "I-NP", "O"]


def choose_way(way, monkeypatch):
    """Forward–backward by matrix products over many sequences, or one after the other in a compiled loop."""
    if way == "loop":
        monkeypatch.setattr(packing, "_FEW_STEPS", 0)
        monkeypatch.setattr(packing, "_CALLS", 10**9)


def drawn(rng, *, S=12, K=3, longest=5, values=False, n_words=9):
    """Random sequences of dicts with labels that depend on them."""
    X, y = [], []
    for _ in range(S):
        T = int(rng.integers(0, longest + 1))
        words = rng.integers(0, n_words, T)
        X.append(
            [
                {"w": f"w{w}", "even": bool(w % 2 == 0), "bias": 1.0, **({"x": float(rng.normal())} if values else {})}
                for w in words
            ]
        )
        y.append([LABELS[(int(w) + int(rng.integers(0, 2))) % K] for w in words])
    return X, y


def objective_of(X, y, *, c2=0.0, n_jobs=1, **options):
    table = FeatureTable()
    tokens = table.encode(X, grow=True)
    codes = np.array([LABELS.index(label) for labels in y for label in labels], dtype=np.int32)
    options = {"min_freq": 0, "all_states": False, "all_transitions": False, **options}
    layout = lay_out(tokens, codes, len(LABELS), table.size, **options)
    return ChainObjective(tokens, layout, c2=c2, n_jobs=n_jobs)


def brute(scores, A, start):
    """(log Z, marginals, all paths with their scores, best first) by going through all labelings."""
    T, K = scores.shape
    paths = list(itertools.product(range(K), repeat=T))
    total = np.array(
        [
            start[p[0]] + sum(scores[t, p[t]] for t in range(T)) + sum(A[p[t - 1], p[t]] for t in range(1, T))
            for p in paths
        ]
    )
    top = total.max()
    log_z = top + np.log(np.exp(total - top).sum())
    marginals = np.zeros((T, K))
    for p, value in zip(paths, np.exp(total - log_z), strict=True):
        marginals[np.arange(T), p] += value
    order = np.argsort(-total, kind="stable")
    return log_z, marginals, [paths[i] for i in order], total[order]


def random_chain(rng, K, scale=1.0):
    """A chain with one dense attribute a label: position scores are the values of its features."""
    width = padded(K)
    dense = np.zeros((K, width))
    dense[:, :K] = np.eye(K)
    weights = ChainWeights(
        dense.ravel(), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0), scale * rng.normal(size=(K, K)), width
    )
    return Chain(weights, Rules.free(K))


def tokens_of(scores, lengths):
    """Positions with the features 0 … K − 1, whose values are the scores."""
    N, K = scores.shape
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return Tokens(
        offsets, np.arange(0, N * K + 1, K, dtype=np.int64), np.tile(np.arange(K, dtype=np.int32), N), scores.ravel()
    )
