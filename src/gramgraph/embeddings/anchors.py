"""Anchors: the few points on which a variable of any kind becomes a discrete one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import check_choice, check_count
from gramgraph.kernels.domains import DOMAINS, domain_of, sample_of
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Anchors:
    """m points that stand for cells of a sample, the probability of each cell, and the cell of every row.

    Parameters
    ----------
    points : m points.
    weights : (m,), they sum to one.
    cells : (n,) cell of every row of the sample.

    Examples
    --------
    >>> found = anchor_points(["b", "a", "b", "b"])
    >>> list(map(str, found.points)), found.weights, found.cells.tolist()
    (['b', 'a'], array([0.75, 0.25]), [0, 1, 0, 0])
    """

    points: Any  # m points
    weights: FloatArray  # (m,), they sum to one
    cells: IntArray  # (n,) cell of every row of the sample

    def __len__(self) -> int:
        return len(self.weights)

    def cell_means(self, values: Any) -> FloatArray:
        """Mean of f over the rows of each cell, from f at the sample: (m,) or (m, t). Then E f = Σ weights · means."""
        values = np.asarray(values, dtype=np.float64)
        sums = np.zeros((len(self), *values.shape[1:]))
        np.add.at(sums, self.cells, values)
        counts = np.bincount(self.cells, minlength=len(self)).astype(np.float64)
        return (sums.T / np.maximum(counts, 1.0)).T


def anchor_points(X: Any, m: int = 64, *, domain: str | None = None) -> Anchors:
    """At most m anchors of a sample.

    Numbers on the line: medians of m cells with equally many rows (fewer where values repeat). Circle: m equal arcs,
    empty ones left out, each with the mean direction of its rows. Categories: every distinct value. Vectors and
    directions: centers of k-means clusters. Every cell has at least one row, so that no weight is zero. O(n log n).

    Parameters
    ----------
    X : the sample.
    m : most anchors.
    domain : what its values are; None guesses.

    Examples
    --------
    >>> found = anchor_points([3.0, 1.0, 2.0, 4.0], 2)
    >>> found.points, found.weights
    (array([[1.5], [3.5]]), array([0.5, 0.5]))
    """
    check_count("m", m)
    domain = domain_of(X) if domain is None else domain
    _, points, n = sample_of(X, None, domain, least=1)
    if domain in ("category", "set", "string"):
        return _distinct(points)
    if domain == "circle" and points.shape[1] == 1:
        return _arcs(points[:, 0], int(m))
    if domain in ("real", "positive") and points.shape[1] == 1:
        return _quantiles(points[:, 0], int(m))
    check_choice("domain", domain, DOMAINS)
    return _clusters(points, min(int(m), n))


def _made(points: Any, cells: IntArray, m: int) -> Anchors:
    return Anchors(points, np.bincount(cells, minlength=m) / len(cells), cells)


def _quantiles(x: FloatArray, m: int) -> Anchors:
    order = np.argsort(x, kind="stable")
    bins = np.empty(len(x), dtype=np.int64)
    bins[order] = np.arange(len(x)) * m // len(x)
    first, inverse = np.unique(x, return_inverse=True)
    lowest = np.full(len(first), m)
    np.minimum.at(lowest, inverse, bins)  # equal values share a cell
    _, cells = np.unique(lowest[inverse], return_inverse=True)
    number = int(cells.max()) + 1
    middle = np.array([np.median(x[cells == c]) for c in range(number)])
    return _made(middle[:, None], cells, number)


def _arcs(x: FloatArray, m: int) -> Anchors:
    turn = 2.0 * np.pi
    arc = np.minimum((np.mod(x, turn) * m / turn).astype(np.int64), m - 1)
    _, cells = np.unique(arc, return_inverse=True)
    number = int(cells.max()) + 1
    s, c = np.bincount(cells, np.sin(x), number), np.bincount(cells, np.cos(x), number)
    return _made(np.arctan2(s, c)[:, None], cells, number)


def _distinct(points: Any) -> Anchors:
    items = [tuple(p.tolist()) if isinstance(p, np.ndarray) else p for p in points]
    known: dict[Any, int] = {}
    cells = np.array([known.setdefault(v, len(known)) for v in items], dtype=np.int64)
    first = [int(np.argmax(cells == c)) for c in range(len(known))]
    chosen = points[np.array(first)] if isinstance(points, np.ndarray) else [points[i] for i in first]
    return _made(chosen, cells, len(known))


def _clusters(X: FloatArray, m: int) -> Anchors:
    from sklearn.cluster import KMeans

    m = min(m, len(np.unique(X, axis=0)))
    labels = KMeans(m, n_init=1, random_state=0).fit(X).labels_
    _, cells = np.unique(labels, return_inverse=True)
    number = int(cells.max()) + 1
    centers = np.array([X[cells == c].mean(axis=0) for c in range(number)])
    assert count(centers) == number
    return _made(centers, cells, number)
