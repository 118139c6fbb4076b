"""Trees grown on binned columns: histograms of gradients, the best split of each, rows parted in place.

`codes[j]` holds the bin of every row in column j (uint8; MISSING where there is no value). `rows` is a permutation in
which the rows of every node stand side by side; `grad` and `hess` stand in the order of `rows`, so that they are read
straight through, as does `mass`, the weight of rows (empty where each counts once). A histogram is (columns, 256, 3):
sums of gradients, of curvatures, and of mass.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

MISSING = 255
N_BINS = 256
# Columns of `nodes_int` and `nodes_float`.
FEATURE, BIN, LEFT, RIGHT, MISS_LEFT, START, STOP, DEPTH, IS_SET = range(9)
GAIN, G, H, MASS = range(4)


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def fill_histogram(codes, columns, rows, grad, hess, mass, start, stop, hist):
    """The histograms of the rows start … stop − 1 of the permutation, for the columns that are in play."""
    n = codes.shape[1]
    whole = stop - start == n
    counted = mass.shape[0] == 0
    for c in range(columns.shape[0]):
        j = columns[c]
        for b in range(N_BINS):
            hist[j, b, 0] = 0.0
            hist[j, b, 1] = 0.0
            hist[j, b, 2] = 0.0
        if whole and rows[0] == -1:  # the root: rows in their own order
            for i in range(n):
                b = codes[j, i]
                hist[j, b, 0] += grad[i]
                hist[j, b, 1] += hess[i]
                hist[j, b, 2] += 1.0 if counted else mass[i]
        else:
            for i in range(start, stop):
                b = codes[j, rows[i]]
                hist[j, b, 0] += grad[i]
                hist[j, b, 1] += hess[i]
                hist[j, b, 2] += 1.0 if counted else mass[i]


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def subtract_histogram(columns, whole, part, out):
    """out = whole − part; out may be whole."""
    for c in range(columns.shape[0]):
        j = columns[c]
        for b in range(N_BINS):
            for k in range(3):
                out[j, b, k] = whole[j, b, k] - part[j, b, k]


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _order_bins(hist_j, n_bins, smooth, order):
    """Categories by rising −G/(H + smooth), those that are present only; how many there are."""
    m = 0
    for b in range(n_bins):
        if hist_j[b, 2] > 1e-9:
            key = -hist_j[b, 0] / (hist_j[b, 1] + smooth)
            k = m
            while k > 0 and -hist_j[order[k - 1], 0] / (hist_j[order[k - 1], 1] + smooth) > key:
                order[k] = order[k - 1]
                k -= 1
            order[k] = b
            m += 1
    return m


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def best_split(hist, columns, n_bins, is_set, g, h, count, l2, least_rows, least_hess, order, found):
    """(feature, bin or place in the order, missing to the left, gain); found[:] takes the order of a set split."""
    best = 0.0
    feature = np.int64(-1)
    place = np.int64(0)
    to_left = np.int64(0)
    whole = g * g / (h + l2)
    tie = 1e-11 * whole
    for c in range(columns.shape[0]):
        j = columns[c]
        m = n_bins[j]
        used = m
        if is_set[j]:
            used = _order_bins(hist[j], m, 10.0 * l2 + 1e-9 + 0.01 * h / max(m, 1), order)
        miss_g = hist[j, MISSING, 0]
        miss_h = hist[j, MISSING, 1]
        miss_n = hist[j, MISSING, 2]
        gaps = miss_n > 1e-9
        left_g = 0.0
        left_h = 0.0
        left_n = 0.0
        stop = used if gaps else used - 1
        for k in range(stop):
            b = order[k] if is_set[j] else k
            left_g += hist[j, b, 0]
            left_h += hist[j, b, 1]
            left_n += hist[j, b, 2]
            for side in range(2 if gaps and k < used - 1 else 1):  # 0: missing to the right, 1: to the left
                a_g = left_g + miss_g * side
                a_h = left_h + miss_h * side
                a_n = left_n + miss_n * side
                z_h = h - a_h
                if a_n < least_rows or count - a_n < least_rows or a_h < least_hess or z_h < least_hess:
                    continue
                z_g = g - a_g
                gain = a_g * a_g / (a_h + l2) + z_g * z_g / (z_h + l2) - whole
                if gain > best * (1.0 + 1e-9) + tie:  # equal but for rounding: the first one stays
                    best = gain
                    feature = j
                    place = k
                    to_left = side
                    if is_set[j]:
                        for q in range(used):
                            found[q] = order[q]
    return feature, place, to_left, best


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def part_rows(codes_j, rows, grad, hess, mass, start, stop, goes_left, spare_rows, spare_grad, spare_hess, spare_mass):
    """Rows whose bin goes left first, both sides in their old order; where the right side begins."""
    at = start
    kept = 0
    weighted = mass.shape[0] > 0
    for i in range(start, stop):
        row = rows[i]
        if goes_left[codes_j[row]] != 0:
            rows[at] = row
            grad[at] = grad[i]
            hess[at] = hess[i]
            if weighted:
                mass[at] = mass[i]
            at += 1
        else:
            spare_rows[kept] = row
            spare_grad[kept] = grad[i]
            spare_hess[kept] = hess[i]
            if weighted:
                spare_mass[kept] = mass[i]
            kept += 1
    for i in range(kept):
        rows[at + i] = spare_rows[i]
        grad[at + i] = spare_grad[i]
        hess[at + i] = spare_hess[i]
        if weighted:
            mass[at + i] = spare_mass[i]
    return at


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _choose(hist, columns, n_bins, is_set, l2, least_rows, least_hess, node, ints, floats, sets, order, found):
    """Write down the best split of a node: its left bins as flags, feature −1 where none helps."""
    count = floats[node, MASS]
    feature, place, to_left, gain = best_split(
        hist, columns, n_bins, is_set, floats[node, G], floats[node, H], count, l2, least_rows, least_hess, order, found
    )
    ints[node, FEATURE] = feature
    ints[node, BIN] = place
    ints[node, MISS_LEFT] = to_left
    floats[node, GAIN] = gain
    if feature < 0:
        return
    for b in range(N_BINS):
        sets[node, b] = 0
    left = 0.0
    if is_set[feature]:
        ints[node, IS_SET] = 1
        for k in range(place + 1):
            sets[node, found[k]] = 1
            left += hist[feature, found[k], 2]
    else:
        ints[node, IS_SET] = 0
        for b in range(place + 1):
            sets[node, b] = 1
            left += hist[feature, b, 2]
    if hist[feature, MISSING, 2] < 1e-9:  # none was missing here: later ones follow the larger side
        to_left = 1 if 2.0 * left > count else 0
        ints[node, MISS_LEFT] = to_left
    sets[node, MISSING] = to_left


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _open_child(parent, child, start, stop, ints, floats, grad, hess, mass):
    g = 0.0
    h = 0.0
    total = 0.0
    for i in range(start, stop):
        g += grad[i]
        h += hess[i]
        total += 1.0 if mass.shape[0] == 0 else mass[i]
    ints[child, FEATURE] = -1
    ints[child, START] = start
    ints[child, STOP] = stop
    ints[child, DEPTH] = ints[parent, DEPTH] + 1
    floats[child, GAIN] = 0.0
    floats[child, G] = g
    floats[child, H] = h
    floats[child, MASS] = total


@njit(cache=True, nogil=True)
def grow_tree(
    codes,
    columns,
    n_bins,
    is_set,
    rows,
    grad,
    hess,
    mass,
    used,
    max_depth,
    max_leaves,
    l2,
    least_rows,
    least_hess,
    least_gain,
    pool,
    ints,
    floats,
    sets,
    slot,
    spare_rows,
    spare_grad,
    spare_hess,
    spare_mass,
):
    """Grow one tree, the best gain first; the number of nodes. Leaves have feature −1 and know their rows.

    `rows[:used]` are the rows that count (a sample), or rows[0] = −1 for all in their own order. `pool` holds one
    histogram for every open leaf.
    """
    own_order = rows[0] == -1
    order = np.zeros(N_BINS, np.int64)
    found = np.zeros(N_BINS, np.int64)
    ints[0, DEPTH] = -1
    _open_child(0, 0, 0, used, ints, floats, grad, hess, mass)
    fill_histogram(codes, columns, rows, grad, hess, mass, 0, used, pool[0])
    if own_order:
        for i in range(used):
            rows[i] = i
    slot[0] = 0
    _choose(pool[0], columns, n_bins, is_set, l2, least_rows, least_hess, 0, ints, floats, sets, order, found)
    n_nodes = 1
    n_leaves = 1
    ints[0, LEFT] = -1
    while n_leaves < max_leaves:
        node = -1
        best = least_gain
        for k in range(n_nodes):
            if ints[k, LEFT] < 0 and ints[k, FEATURE] >= 0 and ints[k, DEPTH] < max_depth and floats[k, GAIN] > best:
                best = floats[k, GAIN]
                node = k
        if node < 0:
            break
        start = ints[node, START]
        stop = ints[node, STOP]
        middle = part_rows(
            codes[ints[node, FEATURE]], rows, grad, hess, mass, start, stop, sets[node], spare_rows, spare_grad,
            spare_hess, spare_mass,
        )  # fmt: skip
        a = n_nodes
        b = n_nodes + 1
        n_nodes += 2
        n_leaves += 1
        ints[node, LEFT] = a
        ints[node, RIGHT] = b
        ints[a, LEFT] = -1
        ints[b, LEFT] = -1
        _open_child(node, a, start, middle, ints, floats, grad, hess, mass)
        _open_child(node, b, middle, stop, ints, floats, grad, hess, mass)
        if ints[node, DEPTH] + 1 < max_depth and n_leaves < max_leaves:
            small = a if middle - start <= stop - middle else b
            large = b if small == a else a
            slot[small] = n_leaves - 1
            slot[large] = slot[node]
            fill_histogram(
                codes, columns, rows, grad, hess, mass, ints[small, START], ints[small, STOP], pool[slot[small]]
            )
            subtract_histogram(columns, pool[slot[large]], pool[slot[small]], pool[slot[large]])
            for child in (a, b):
                _choose(
                    pool[slot[child]], columns, n_bins, is_set, l2, least_rows, least_hess, child, ints, floats, sets,
                    order, found,
                )  # fmt: skip
    for k in range(n_nodes):  # what was not split is a leaf
        if ints[k, LEFT] < 0:
            ints[k, FEATURE] = -1
    return n_nodes


@njit(cache=True, nogil=True)
def bin_columns(X, edges, edge_start, is_set, out):
    """The bin of every value: how many edges lie below it; categories are their own bins."""
    n, d = X.shape
    for j in range(d):
        first = edge_start[j]
        m = edge_start[j + 1] - first
        for i in range(n):
            x = X[i, j]
            if x != x:
                out[j, i] = MISSING
            elif is_set[j]:
                out[j, i] = np.uint8(x) if 0.0 <= x < m else MISSING
            else:
                low = 0
                high = m
                while low < high:
                    middle = (low + high) // 2
                    if x <= edges[first + middle]:
                        high = middle
                    else:
                        low = middle + 1
                out[j, i] = np.uint8(low)
