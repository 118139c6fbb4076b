"""The averaged perceptron: decode, move the weights toward the truth and away from the answer, average all weights."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics import crf as _loops
from gramgraph.sequences.crf.objective import ChainObjective
from gramgraph.typing import Array, FloatArray

__all__ = ["averaged_perceptron"]


def averaged_perceptron(
    objective: ChainObjective, y: Array, *, max_iter: int, epsilon: float, rng: np.random.Generator
) -> tuple[FloatArray, tuple[float, ...]]:
    """(weights as the vector of the objective's layout, share of wrong labels in every pass).

    Sequences come in a new order in every pass; it stops after max_iter passes or when the share of wrong labels is
    below epsilon. One pass costs about as much as tagging the data.
    """
    layout = objective.layout
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
    features = (objective.offsets, objective.ptr, objective.mid, objective.ids, objective.data)
    count, history = 1, []
    S = len(objective.offsets) - 1
    for _ in range(max_iter):
        loss, count = _loops.perceptron_epoch(
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
