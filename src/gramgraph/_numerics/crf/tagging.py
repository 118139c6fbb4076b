"""The best labels of one sequence in one call: lookups of its features, scores and the best path.

Whoever tags sentence by sentence pays for every array that Python hands over, so this is the only call for a sentence.
The interpreter's lock is held (no `nogil`), because its objects are read.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.crf.feature_dicts import dict_size, list_size, look_up, look_up_words
from gramgraph._numerics.crf.recursions import best_path, part_features, token_scores


@njit(cache=True, boundscheck=False)
def tag_dicts(
    dicts, kinds, places, numbers, dense, sp_ptr, sp_label, sp_weight, n_dense, A, AT, start, K, width, labels
):  # fmt: skip
    """labels (T,) = the best path, whose score is returned; NaN where Python code has to look at the dicts.

    dicts are addresses, (kinds, places, numbers) the table of `look_up`; the rest is as `viterbi` takes it.
    """
    T = dicts.shape[0]
    ptr = np.zeros(T + 1, np.int64)
    for t in range(T):
        ptr[t + 1] = ptr[t] + dict_size(dicts[t])
    ids, data = np.empty(ptr[T], np.int32), np.empty(ptr[T])
    done, ones = look_up(dicts, kinds, places, numbers, ids, data)
    if done < 0:
        return math.nan
    weights = (dense, sp_ptr, sp_label, sp_weight)
    return _best(ptr, ids, data[:0] if ones else data, weights, n_dense, A, AT, start, K, width, labels)


@njit(cache=True, boundscheck=False)
def tag_words(
    lists, kinds, places, numbers, dense, sp_ptr, sp_label, sp_weight, n_dense, A, AT, start, K, width, labels
):  # fmt: skip
    """The same for lists of strings."""
    T = lists.shape[0]
    ptr = np.zeros(T + 1, np.int64)
    for t in range(T):
        ptr[t + 1] = ptr[t] + list_size(lists[t])
    ids, data = np.empty(ptr[T], np.int32), np.empty(0)
    if look_up_words(lists, kinds, places, numbers, ids, data)[0] < 0:
        return math.nan
    weights = (dense, sp_ptr, sp_label, sp_weight)
    return _best(ptr, ids, data, weights, n_dense, A, AT, start, K, width, labels)


@njit(cache=True, boundscheck=False)
def _best(ptr, ids, data, weights, n_dense, A, AT, start, K, width, labels):
    """What `viterbi` does for one sequence, in the same order."""
    T = labels.shape[0]
    mid = np.empty(T, np.int64)
    part_features(ptr, ids, data, np.empty(0, np.int32), n_dense, mid)
    E, delta = np.empty(T * width), np.empty(T * width)
    token_scores(
        ptr, mid, ids, data, weights[0], weights[1], weights[2], weights[3], n_dense, width, 0, T, E
    )  # fmt: skip
    return best_path(E, A, AT, start, T, K, width, delta, labels, 0)
