"""Boxes that say the same are merged into one."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._validation import check_count, check_fraction
from gramgraph.typing import Array, FloatArray, IntArray


def overlap(a: Any, b: Any) -> FloatArray:
    """Intersection over union of every box of a with every box of b, (n, m); a box starts with x, y, w, h.

    Parameters
    ----------
    a : (n, 4 or more) boxes.
    b : (m, 4 or more) boxes.

    Examples
    --------
    >>> overlap([[0, 0, 2, 2]], [[1, 0, 2, 2], [5, 5, 1, 1]]).round(3).tolist()
    [[0.333, 0.0]]
    """
    a, b = (np.asarray(x, dtype=np.float64).reshape(len(x), -1)[:, :4].reshape(-1, 4) for x in (a, b))
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, :2] + a[:, None, 2:], b[None, :, :2] + b[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0.0), axis=2)
    areas = np.prod(a[:, 2:], axis=1)[:, None] + np.prod(b[:, 2:], axis=1)[None, :]
    return common / np.maximum(areas - common, 1e-300)


def merge_boxes(boxes: Any, *, min_neighbors: int = 3, eps: float = 0.2) -> FloatArray:
    """One box for each group of similar ones with more than `min_neighbors` members: their mean, and the best score.

    Boxes are (x, y, w, h, score). Two are similar when each side is off by at most eps · (smaller width + smaller
    height) / 2; groups are chains of similar boxes. A small group inside a larger one is dropped. The rules are those
    of OpenCV's `groupRectangles`; with min_neighbors=0 boxes come back as they are.

    Parameters
    ----------
    boxes : (n, 5): x, y, w, h, score.
    min_neighbors : groups with more members than this are kept.
    eps : how different similar boxes may be.

    Examples
    --------
    >>> merge_boxes([[0, 0, 10, 10, 1.0], [1, 0, 10, 10, 2.0], [50, 50, 10, 10, 9.0]], min_neighbors=1).tolist()
    [[0.0, 0.0, 10.0, 10.0, 2.0]]
    """
    check_count("min_neighbors", min_neighbors, 0)
    check_fraction("eps", eps, ends=True)
    found = np.asarray(boxes, dtype=np.float64).reshape(-1, 5)
    if min_neighbors == 0 or not len(found):
        return found
    group = _groups(found, eps)
    n_groups = int(group.max()) + 1
    sizes = np.bincount(group, minlength=n_groups)
    sums = np.stack([np.bincount(group, found[:, k], n_groups) for k in range(4)], axis=1)
    means: FloatArray = np.asarray(
        np.rint(sums * (np.float32(1.0) / sizes.astype(np.float32)[:, None])), dtype=np.float64
    )
    best = np.full(n_groups, -np.inf)
    np.maximum.at(best, group, found[:, 4])
    kept = [
        i for i in range(n_groups) if sizes[i] > min_neighbors and not _is_inside(i, means, sizes, min_neighbors, eps)
    ]
    return np.concatenate([means, best[:, None]], axis=1)[kept]


def _groups(boxes: FloatArray, eps: float) -> IntArray:
    """The group of every box: chains of similar ones, numbered by their first member."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(boxes)
    x, y, w, h = boxes[:, :4].T
    rows: list[Array] = []
    columns: list[Array] = []
    for start in range(0, n, 1024):
        part = slice(start, start + 1024)
        delta = eps * (np.minimum(w[part, None], w) + np.minimum(h[part, None], h)) * 0.5
        near = (np.abs(x[part, None] - x) <= delta) & (np.abs(y[part, None] - y) <= delta)
        near &= np.abs((x + w)[part, None] - (x + w)) <= delta
        near &= np.abs((y + h)[part, None] - (y + h)) <= delta
        i, j = np.nonzero(near)
        rows.append(i + start)
        columns.append(j)
    i, j = np.concatenate(rows), np.concatenate(columns)
    _, labels = connected_components(coo_matrix((np.ones(len(i), dtype=bool), (i, j)), shape=(n, n)), directed=False)
    _, first = np.unique(labels, return_index=True)
    return np.argsort(np.argsort(first))[labels]


def _is_inside(i: int, boxes: FloatArray, sizes: IntArray, least: int, eps: float) -> bool:
    """Whether group i lies within a larger group that is surer."""
    x, y, w, h = boxes[:, :4].T
    dx, dy = np.rint(w * eps), np.rint(h * eps)
    holds = (x[i] >= x - dx) & (y[i] >= y - dy) & (x[i] + w[i] <= x + w + dx) & (y[i] + h[i] <= y + h + dy)
    surer = (sizes > max(3, int(sizes[i]))) | (sizes[i] < 3)
    holds &= surer & (sizes > least)
    holds[i] = False
    return bool(holds.any())
