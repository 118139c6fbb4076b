"""The averaged perceptron: decode, move the weights toward the truth and away from the answer, average all weights."""

from __future__ import annotations

import numpy as np

from gramgraph.sequences.crf.encoding import Tokens
from gramgraph.sequences.crf.objective import Layout
from gramgraph.typing import Array, FloatArray


def averaged_perceptron(
    tokens: Tokens, layout: Layout, y: Array, *, max_iter: int, epsilon: float, rng: np.random.Generator
) -> tuple[FloatArray, tuple[float, ...]]:
    """(weights as the vector of the layout, share of wrong labels in every pass). The tokens are renumbered in place.

    Sequences come in a new order in every pass; it stops after max_iter passes or when the share of wrong labels is
    below epsilon. One pass costs about as much as tagging the data.
    """
    from gramgraph._numerics.crf.perceptron import perceptron_epoch
    from gramgraph._numerics.crf.recursions import part_features

    K, width = layout.K, layout.width
    n, m = len(layout.dense_at), len(layout.sp_label)
    active = np.zeros(layout.n_dense * width, dtype=np.bool_)
    active[layout.dense_at] = True
    active_steps = np.zeros(K * K, dtype=np.bool_)
    active_steps[layout.transition_at] = True
    w, s, wl, sl = np.zeros(len(active)), np.zeros(len(active)), np.zeros(m), np.zeros(m)
    A = np.full(width * width, -np.inf)
    A.reshape(width, width)[:K, :K] = 0.0
    AT, sA = A.copy(), np.zeros((K, K))
    mid = np.empty(len(tokens.ptr) - 1, dtype=np.int64)
    part_features(tokens.ptr, tokens.ids, tokens.data, layout.new_id, layout.n_dense, mid)
    features = (tokens.offsets, tokens.ptr, mid, tokens.ids, tokens.data)
    count, history = 1, []
    S = len(tokens.offsets) - 1
    for _ in range(max_iter):
        loss, count = perceptron_epoch(
            rng.permutation(S), *features, y, layout.sp_ptr, layout.sp_label, layout.n_dense, K, width, active,
            active_steps.reshape(K, K), count, w, s, wl, sl, A, AT, sA,
        )  # fmt: skip
        history.append(float(loss) / max(S, 1))
        if history[-1] < epsilon:
            break
    steps = A.reshape(width, width)[:K, :K] - sA / count
    found = np.concatenate([(w - s / count)[layout.dense_at], wl - sl / count, steps.ravel()[layout.transition_at]])
    assert len(found) == n + m + len(layout.transition_at)
    return found, tuple(history)
