"""Sums of trees: every row walks down every tree, and the values of the leaves are added."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def leaf_of(x, node, feature, threshold, left, right, missing_left, set_start, set_size, sets):
    """The leaf below `node` that a row of values reaches; values that are not there are NaN."""
    while feature[node] >= 0:
        value = x[feature[node]]
        if value != value:
            go_left = missing_left[node] != 0
        elif set_start[node] >= 0:
            code = int(value) if 0.0 <= value < set_size[node] else -1
            go_left = sets[set_start[node] + code] != 0 if code >= 0 else missing_left[node] != 0
        else:
            go_left = value <= threshold[node]
        node = left[node] if go_left else right[node]
    return node


@njit(cache=True, nogil=True)
def add_scores(
    X, feature, threshold, left, right, missing_left, set_start, set_size, sets, value, roots, output, first, stop, out
):
    """Add the trees `first` … `stop` − 1 to out (n, outputs), in their order."""
    m = value.shape[1]
    for t in range(first, stop):
        for i in range(X.shape[0]):
            node = leaf_of(X[i], roots[t], feature, threshold, left, right, missing_left, set_start, set_size, sets)
            for k in range(m):
                out[i, output[t] + k] += value[node, k]


@njit(cache=True, nogil=True)
def find_leaves(X, feature, threshold, left, right, missing_left, set_start, set_size, sets, roots, out):
    """The node number of the leaf of every row in every tree, out (n, trees)."""
    for t in range(roots.shape[0]):
        for i in range(X.shape[0]):
            out[i, t] = leaf_of(
                X[i], roots[t], feature, threshold, left, right, missing_left, set_start, set_size, sets
            )
