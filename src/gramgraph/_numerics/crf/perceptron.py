"""A pass of the perceptron over the sequences of a linear chain; arrays as in `crf`. Nothing is checked."""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.crf.recursions import best_path, token_scores


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def _shift_weights(ptr, mid, ids, data, sp_ptr, sp_label, n_dense, width, t, label, by, count, active, w, s, wl, sl):
    """Add `by` times the values to the weights of the features of position t with one label; sums for averages too."""
    weighted = data.shape[0] > 0
    for e in range(ptr[t], mid[t]):
        k = ids[e] * width + label
        if active[k]:
            x = by * (data[e] if weighted else 1.0)
            w[k] += x
            s[k] += count * x
    for e in range(mid[t], ptr[t + 1]):
        row = ids[e] - n_dense
        for p in range(sp_ptr[row], sp_ptr[row + 1]):
            if sp_label[p] == label:
                x = by * (data[e] if weighted else 1.0)
                wl[p] += x
                sl[p] += count * x


@njit(cache=True, nogil=True, boundscheck=False)
def perceptron_epoch(
    order, offsets, ptr, mid, ids, data, y, sp_ptr, sp_label, n_dense, K, width, active, active_steps, count,
    w, s, wl, sl, A, AT, sA,
):  # fmt: skip
    """One pass of the perceptron over the sequences in `order`; (share of wrong labels a sequence, steps counted).

    Weights w (dense), wl (sparse), A (transitions, AT its transpose); s, sl, sA add up count · change, so that the
    average over all steps is weight − sum / count.
    """
    longest = 1
    for n in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[n + 1] - offsets[n])
    E, delta = np.empty(longest * width), np.empty(longest * width)
    path = np.empty(longest, np.int32)
    start = np.full(width, -math.inf)
    start[:K] = 0.0
    loss = 0.0
    for n in order:
        lo, hi = offsets[n], offsets[n + 1]
        T = hi - lo
        if T == 0:
            continue
        token_scores(ptr, mid, ids, data, w, sp_ptr, sp_label, wl, n_dense, width, lo, hi, E)
        best_path(E, A, AT, start, T, K, width, delta, path, 0)
        wrong = 0
        for t in range(T):
            if path[t] != y[lo + t]:
                wrong += 1
                for right in (True, False):
                    _shift_weights(
                        ptr, mid, ids, data, sp_ptr, sp_label, n_dense, width, lo + t, y[lo + t] if right else path[t],
                        1.0 if right else -1.0, count, active, w, s, wl, sl,
                    )  # fmt: skip
            if t > 0 and (path[t] != y[lo + t] or path[t - 1] != y[lo + t - 1]):
                for right in (True, False):
                    i, j = (y[lo + t - 1], y[lo + t]) if right else (path[t - 1], path[t])
                    if active_steps[i, j]:
                        by = 1.0 if right else -1.0
                        A[i * width + j] += by
                        AT[j * width + i] += by
                        sA[i, j] += count * by
        loss += wrong / T
        count += 1
    return loss, count
