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

#: Where things stand in what `tag` takes for a model, behind the five kinds of `look_up`; the labels come last.
TYPE, WORDS, DENSE, LABELS, WIDTH, ARRAYS, OBJECTS = 5, 6, 7, 8, 9, 10, 28


def as_numbers(token_type, words, n_dense, width, kinds, arrays, labels):
    """A model as one array: sizes, addresses and lengths of its arrays, and of its labels; all must stay alive."""
    places = [number for array in arrays for number in (array.ctypes.data, array.shape[0])]
    sizes = [id(token_type), int(words), n_dense, len(labels), width]
    return np.array([*kinds, *sizes, *places, *map(id, labels)], np.int64)


@njit(cache=True, boundscheck=False)
def tag(items, address):
    """The items of a list become the labels of the best path, whose score is returned.

    NaN, and nothing is changed, where Python code has to look at the tokens; −inf where no path is allowed. `items` is
    the address of a list of dicts (or of lists of strings), `address` that of what `as_numbers` made: the table of
    `look_up` (places, numbers), weights and transitions as `viterbi` takes them, and the labels. Two numbers cost less
    than ten arrays, and labels less than their numbers: most of the time for a short sentence is the way into compiled
    code and back. For the same reason memory is asked for twice only: for what tokens need, and for their features.
    """
    model = longs_at(address, OBJECTS)
    T, K, n_dense, width = list_size(items), model[LABELS], model[DENSE], model[WIDTH]
    work = np.empty((4 + 2 * width) * T + 1, np.int64)
    tokens, mid, ptr = work[:T], work[T : 2 * T], work[2 * T : 3 * T + 1]
    labels, scores = work[3 * T + 1 : 4 * T + 1].view(np.int32), work[4 * T + 1 :].view(np.float64)
    ptr[0] = 0
    if not list_tokens(items, model[TYPE], tokens):
        return math.nan
    words = model[WORDS] == 1
    for t in range(T):
        ptr[t + 1] = ptr[t] + (list_size(tokens[t]) if words else dict_size(tokens[t]))
    n = ptr[T]
    found = np.empty(2 * n, np.int64)
    ids, data = found[:n].view(np.int32)[:n], found[n:].view(np.float64)
    places = longs_at(model[ARRAYS], model[ARRAYS + 1]).view(np.uint64)
    numbers = ints_at(model[ARRAYS + 2], model[ARRAYS + 3])
    if words:
        done, ones = look_up_words(tokens, model[:TYPE], places, numbers, ids, data)
    else:
        done, ones = look_up(tokens, model[:TYPE], places, numbers, ids, data)
    if done < 0:
        return math.nan
    if ones:
        data = data[:0]
    part_features(ptr, ids, data, ids[:0], n_dense, mid)
    E, delta = scores[: T * width], scores[T * width :]
    token_scores(
        ptr, mid, ids, data,
        floats_at(model[ARRAYS + 4], model[ARRAYS + 5]), longs_at(model[ARRAYS + 6], model[ARRAYS + 7]),
        ints_at(model[ARRAYS + 8], model[ARRAYS + 9]), floats_at(model[ARRAYS + 10], model[ARRAYS + 11]),
        n_dense, width, 0, T, E,
    )  # fmt: skip
    A = floats_at(model[ARRAYS + 12], model[ARRAYS + 13])
    AT = floats_at(model[ARRAYS + 14], model[ARRAYS + 15])
    start = floats_at(model[ARRAYS + 16], model[ARRAYS + 17])
    best = best_path(E, A, AT, start, T, K, width, delta, labels, 0)
    if best > -math.inf:
        put_objects(items, labels[:T], longs_at(address + 8 * OBJECTS, K))
    return best
