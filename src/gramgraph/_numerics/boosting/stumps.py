"""The best split of one column, over columns that were sorted once.

`order[j]` holds row numbers by rising value of column j, rows without a value last; `present[j]` says how many have
one, and `last[j, k]` is 1 where position k is the last of its value and another value follows. `u[i]` = (w, s): the
weight of a row, and its weight times what is fitted. Sums to the left of a split decide about it.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

#: Scores closer than this are equal but for rounding: the first one found stays.
TIE = 1.0 + 1e-11


@njit(cache=True, nogil=True)
def best_square_stump(order, last, present, u):
    """(column, position, missing to the left, gain): the largest S²/W left + S²/W right; column −1 where none splits.

    It is weighted least squares with s = w·z, and Gini's impurity of two classes with s = ±w. A position equal to
    present − 1 parts rows with a value from rows without one.
    """
    d, n = order.shape
    total_w = 0.0
    total_s = 0.0
    for i in range(n):
        total_w += u[i, 0]
        total_s += u[i, 1]
    column = np.int64(-1)
    place = np.int64(0)
    to_left = False
    best = -1.0
    for j in range(d):
        gap_w = 0.0
        gap_s = 0.0
        for k in range(present[j], n):
            gap_w += u[order[j, k], 0]
            gap_s += u[order[j, k], 1]
        w = 0.0
        s = 0.0
        for k in range(present[j]):
            i = order[j, k]
            w += u[i, 0]
            s += u[i, 1]
            if last[j, k] == 0:
                continue
            rest_w = total_w - w
            rest_s = total_s - s
            if w > 0.0 and rest_w > 0.0:  # rows without a value to the right
                above = s * s * rest_w + rest_s * rest_s * w
                below = w * rest_w
                if above > best * TIE * below:
                    best = above / below
                    column = j
                    place = k
                    to_left = False
            if gap_w > 0.0 and k + 1 < present[j]:
                both_w = w + gap_w
                rest_w -= gap_w
                if rest_w > 0.0:
                    both_s = s + gap_s
                    rest_s -= gap_s
                    gain = both_s * both_s / both_w + rest_s * rest_s / rest_w
                    if gain > best * TIE:
                        best = gain
                        column = j
                        place = k
                        to_left = True
    return column, place, to_left, best


@njit(cache=True, nogil=True)
def best_error_stump(order, last, present, u):
    """As `best_square_stump`, by the largest |S right − S left| for s = ±w: the smallest error of two classes."""
    d, n = order.shape
    total = 0.0
    for i in range(n):
        total += u[i, 1]
    column = np.int64(-1)
    place = np.int64(0)
    to_left = False
    best = -1.0
    for j in range(d):
        gap = 0.0
        for k in range(present[j], n):
            gap += u[order[j, k], 1]
        s = 0.0
        for k in range(present[j]):
            s += u[order[j, k], 1]
            if last[j, k] == 0:
                continue
            edge = abs(total - 2.0 * s)
            if edge > best * TIE:
                best = edge
                column = j
                place = k
                to_left = False
            if k + 1 < present[j] < n:
                edge = abs(total - 2.0 * (s + gap))
                if edge > best * TIE:
                    best = edge
                    column = j
                    place = k
                    to_left = True
    return column, place, to_left, best


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _split_score(left, total, by_error):
    """Gini's gain, or the weight that is right, of a split of K classes."""
    left_w = 0.0
    right_w = 0.0
    left_best = 0.0
    right_best = 0.0
    left_square = 0.0
    right_square = 0.0
    for c in range(left.shape[0]):
        a = left[c]
        b = total[c] - a
        left_w += a
        right_w += b
        left_best = max(left_best, a)
        right_best = max(right_best, b)
        left_square += a * a
        right_square += b * b
    if by_error:
        return left_best + right_best
    if left_w <= 0.0 or right_w <= 0.0:
        return -1.0
    return left_square / left_w + right_square / right_w


@njit(cache=True, nogil=True)
def best_classes_stump(order, last, present, weights, codes, n_classes, by_error):
    """As above for K classes: `codes` holds the class of every row."""
    d, n = order.shape
    total = np.zeros(n_classes)
    for i in range(n):
        total[codes[i]] += weights[i]
    gap = np.zeros(n_classes)
    left = np.zeros(n_classes)
    column = np.int64(-1)
    place = np.int64(0)
    to_left = False
    best = -1.0
    for j in range(d):
        for c in range(n_classes):
            gap[c] = 0.0
            left[c] = 0.0
        for k in range(present[j], n):
            gap[codes[order[j, k]]] += weights[order[j, k]]
        for k in range(present[j]):
            i = order[j, k]
            left[codes[i]] += weights[i]
            if last[j, k] == 0:
                continue
            score = _split_score(left, total, by_error)
            if score > best * TIE:
                best = score
                column = j
                place = k
                to_left = False
            if k + 1 < present[j] < n:
                for c in range(n_classes):
                    left[c] += gap[c]
                score = _split_score(left, total, by_error)
                for c in range(n_classes):
                    left[c] -= gap[c]
                if score > best * TIE:
                    best = score
                    column = j
                    place = k
                    to_left = True
    return column, place, to_left, best
