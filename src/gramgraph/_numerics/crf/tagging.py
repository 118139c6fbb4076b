"""The best labels of one sequence in one call: lookups of its features, scores and the best path.

Whoever tags sentence by sentence pays for every array that Python hands over, so this is the only call for a sentence.
The interpreter's lock is held (no `nogil`), because its objects are read.
"""

from __future__ import annotations

import math

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.crf.feature_dicts import (
    dict_size,
    floats_at,
    ints_at,
    list_size,
    list_tokens,
    longs_at,
    look_up,
    look_up_words,
    put_objects,
)
from gramgraph._numerics.crf.recursions import best_path, part_features, token_scores

#: Where things stand in what `tag` takes for a model, behind the five kinds of `look_up`.
TYPE, WORDS, DENSE, LABELS, WIDTH, ARRAYS = 5, 6, 7, 8, 9, 10


def as_numbers(token_type, words, n_dense, width, kinds, arrays, labels):
    """A model as one array: sizes, addresses and lengths of its arrays, and of its labels; all must stay alive."""
    places = [number for array in arrays for number in (array.ctypes.data, array.shape[0])]
    sizes = [id(token_type), int(words), n_dense, len(labels), width]
    return np.array([*kinds, *sizes, *places, *map(id, labels)], np.int64)


@njit(cache=True, boundscheck=False)
def tag(items, model):
    """The items of a list become the labels of the best path, whose score is returned.

    NaN, and nothing is changed, where Python code has to look at the tokens; −inf where no path is allowed. `items` is
    the address of a list of dicts (or of lists of strings), `model` is of `as_numbers`: the table of `look_up` (places,
    numbers), weights and transitions as `viterbi` takes them, and the labels. One array costs less than ten, and labels
    less than their numbers: most of the time for a short sentence is the way into compiled code and back.
    """
    T, K, n_dense, width = list_size(items), model[LABELS], model[DENSE], model[WIDTH]
    work = np.empty(3 * T + 1, np.int64)
    tokens, mid, ptr = work[:T], work[T : 2 * T], work[2 * T :]
    ptr[0] = 0
    if not list_tokens(items, model[TYPE], tokens):
        return math.nan
    words = model[WORDS] == 1
    for t in range(T):
        ptr[t + 1] = ptr[t] + (list_size(tokens[t]) if words else dict_size(tokens[t]))
    ids, data = np.empty(ptr[T], np.int32), np.empty(0 if words else ptr[T])
    places = longs_at(model[ARRAYS], model[ARRAYS + 1]).view(np.uint64)
    numbers = ints_at(model[ARRAYS + 2], model[ARRAYS + 3])
    if words:
        done, ones = look_up_words(tokens, model[:TYPE], places, numbers, ids, data)
    else:
        done, ones = look_up(tokens, model[:TYPE], places, numbers, ids, data)
    if done < 0:
        return math.nan
    weights = (
        floats_at(model[ARRAYS + 4], model[ARRAYS + 5]),
        longs_at(model[ARRAYS + 6], model[ARRAYS + 7]),
        ints_at(model[ARRAYS + 8], model[ARRAYS + 9]),
        floats_at(model[ARRAYS + 10], model[ARRAYS + 11]),
    )
    A = floats_at(model[ARRAYS + 12], model[ARRAYS + 13])
    AT = floats_at(model[ARRAYS + 14], model[ARRAYS + 15])
    start = floats_at(model[ARRAYS + 16], model[ARRAYS + 17])
    labels = np.empty(T, np.int32)
    best = _best(ptr, mid, ids, data[:0] if ones else data, weights, n_dense, A, AT, start, K, width, labels)
    if best > -math.inf:
        put_objects(items, labels, model[model.shape[0] - K :])
    return best


@njit(cache=True, boundscheck=False)
def _best(ptr, mid, ids, data, weights, n_dense, A, AT, start, K, width, labels):
    """What `viterbi` does for one sequence, in the same order."""
    T = labels.shape[0]
    part_features(ptr, ids, data, np.empty(0, np.int32), n_dense, mid)
    work = np.empty(2 * T * width)
    E, delta = work[: T * width], work[T * width :]
    token_scores(
        ptr, mid, ids, data, weights[0], weights[1], weights[2], weights[3], n_dense, width, 0, T, E
    )  # fmt: skip
    return best_path(E, A, AT, start, T, K, width, delta, labels, 0)
