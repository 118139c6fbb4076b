"""Densities from kernels: p(x) = Σ wᵢ h⁻ᵈ κ(|x − xᵢ|/h) / Σ wᵢ, for six shapes κ and three distances.

Shapes that end at distance h look at the points nearby alone; Gaussian sums are matrix products and one exponential,
exponential ones distances and one exponential, some rows at a time.
Where a sum is lost below the smallest number, or leaving a point out leaves nothing but rounding, it is made again in
logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray

SHAPES = ("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine")
#: Name → the name by which SciPy knows it; all are distances of a norm, whose unit ball has a known volume.
METRICS = {
    "euclidean": "euclidean",
    "l2": "euclidean",
    "manhattan": "cityblock",
    "cityblock": "cityblock",
    "l1": "cityblock",
    "chebyshev": "chebyshev",
    "infinity": "chebyshev",
}
_COMPACT = ("tophat", "epanechnikov", "linear", "cosine")
_CELLS = 1 << 21  # entries of a block of distances
_BLOCK = 1 << 16  # entries of a block of exponents: it stays in the processor's cache
_FEW = 8  # queries up to which points are not put in order for them
_MOST_CELLS = 1e6  # along one coordinate
_LOST = 1e-290  # sums below have lost digits
_NOTHING = 1e-6  # part of the own term below which the sum of the others has lost digits
_EXACT = 1e-11  # relative error of a Gaussian term that is rounding to everyone


@dataclass(frozen=True, eq=False)
class KernelMixture:
    """p(x) = Σ wᵢ h⁻ᵈ κ(|x − xᵢ|/h) / Σ wᵢ; Gaussian sums may be off by `rtol` p or by `atol`."""

    shape: str  # one of SHAPES
    X: FloatArray  # (n, d)
    weights: FloatArray  # (n,)
    metric: str = "euclidean"
    rtol: float = 0.0
    atol: float = 0.0
    places: Places | None = None  # of these points; with it, their order is found once for many questions

    def log_density(self, X: FloatArray, h: float) -> FloatArray:
        """log p at points, (m,)."""
        sums = self._sums(X, h)
        with np.errstate(divide="ignore"):
            found = np.log(sums) - np.log(self.weights.sum())
        if self.shape not in _COMPACT:
            lost = np.flatnonzero(~(sums > _LOST))
            found[lost] = self._log_sums(X[lost], h) - np.log(self.weights.sum())
        return found - self._log_volume(h)

    def loo_score(self, h: float) -> float:
        """Mean log density of points that are left out."""
        rest = self.weights.sum() - self.weights
        used = np.flatnonzero((self.weights > 0.0) & (rest > 0.0))
        if not len(used):
            return 0.0
        sums = self._sums(self.X, h)
        others = sums - self.weights  # κ(0) = 1 for every shape
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(others) - np.log(rest)
        lost = np.flatnonzero(~(others > _NOTHING * np.maximum(self.weights, 1e-300)) | ~(sums > _LOST))
        with np.errstate(divide="ignore"):
            found[lost] = self._log_sums(self.X[lost], h, own=lost) - np.log(rest[lost])
        found = np.maximum(found - self._log_volume(h), -1e10)
        return float(self.weights[used] @ found[used]) / float(self.weights[used].sum())

    def draw(self, n: int, h: float, rng: Any) -> FloatArray:
        """n draws, (n, d)."""
        d = self.X.shape[1]
        centers = self.X[rng.choice(len(self.X), size=n, p=self.weights / self.weights.sum())]
        return centers + h * self._radii(n, d, rng)[:, None] * self._directions(n, d, rng)

    # -- sums ---------------------------------------------------------------------------------------------------

    def _sums(self, X: FloatArray, h: float) -> FloatArray:
        """Σ w κ at points, (m,)."""
        if self.metric == "euclidean" and self.shape in _COMPACT:
            if len(X) > _FEW or (self.places is not None and self.places.knows(h)):
                return self._near(X, h)
        if self.metric == "euclidean" and self.shape == "gaussian" and len(X) > _FEW:
            found = self._gaussian(X, h)
            if found is not None:
                return found
        if self.shape == "exponential" and len(X) > _FEW:
            return self._exponential(X, h)
        return np.concatenate([self._kappa(X[rows], h) @ self.weights for rows in _blocks(len(X), len(self.X))])

    def _kappa(self, part: FloatArray, h: float) -> FloatArray:
        """κ of all pairs, (rows, n)."""
        r = self._distances(part, h)
        if self.shape == "gaussian":
            return np.exp(-0.5 * r * r)
        if self.shape == "exponential":
            return np.exp(-r)
        if self.shape == "tophat":
            return (r < 1.0).astype(np.float64)
        if self.shape == "epanechnikov":
            return np.maximum(1.0 - r * r, 0.0)
        if self.shape == "linear":
            return np.maximum(1.0 - r, 0.0)
        return np.where(r < 1.0, np.cos(0.5 * np.pi * r), 0.0)  # the cosine of π/2 is not quite 0

    def _distances(self, part: FloatArray, h: float) -> FloatArray:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(part / h, self.X / h, METRICS[self.metric]))

    def _log_sums(self, X: FloatArray, h: float, own: IntArray | None = None) -> FloatArray:
        """log Σ w κ at points, by logarithms; `own` numbers the points that are left out of their own sums."""
        out = np.empty(len(X))
        for rows in _blocks(len(X), len(self.X)):
            r = self._distances(X[rows], h)
            with np.errstate(divide="ignore", invalid="ignore"):
                if self.shape in _COMPACT:
                    log = np.log(self._kappa(X[rows], h))
                else:
                    log = -0.5 * r * r if self.shape == "gaussian" else -r
                log += np.log(self.weights)
            if own is not None:
                log[np.arange(len(log)), own[rows]] = -np.inf
            top = log.max(axis=1, keepdims=True)
            top = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                out[rows] = np.log(np.exp(log - top).sum(axis=1)) + top[:, 0]
        return out

    def _gaussian(self, X: FloatArray, h: float) -> FloatArray | None:
        """exp(−|z − z′|²/2) as products of z, centered, with −|z|²/2 beside; None where rounding would show."""
        from gramgraph._numerics.svm.exponents import exp_times

        center = self.X.mean(axis=0)
        Z, Q = (self.X - center) / h, (X - center) / h
        half, own = (0.5 * np.einsum("ij,ij->i", A, A) for A in (Z, Q))
        rtol = max(self.rtol, self.atol * np.exp(min(self._log_volume(h), 700.0)))  # p is at most 1 / volume
        largest = max(float(half.max()), float(own.max()))
        if not 8.0 * np.finfo(np.float64).eps * largest < max(_EXACT, 0.1 * rtol):
            return None
        kind: Any = np.float32 if 8.0 * np.finfo(np.float32).eps * max(largest, 1.0) < 0.5 * rtol else np.float64
        left = np.column_stack([Q, np.ones(len(Q)), -own]).astype(kind)
        right = np.ascontiguousarray(np.column_stack([Z, -half, np.ones(len(Z))]).T, kind)
        weights, found = self.weights.astype(kind), np.empty(len(Q))
        height = max(1, _BLOCK // len(Z))
        for start in range(0, len(Q), height):
            here = slice(start, start + height)
            exp_times(left[here] @ right, weights, found[here])
        if kind == np.float32:  # terms below 1e-38 are not told from it
            far = np.flatnonzero(found < 1e-36 * float(weights.sum(dtype=np.float64)) / max(rtol, 1e-300))
            found[far] = 0.0  # these are made again in logarithms
        return found

    def _exponential(self, X: FloatArray, h: float) -> FloatArray:
        """exp(−|z − z′|) from distances, as those from products would lose their digits near zero."""
        from scipy.spatial.distance import cdist

        from gramgraph._numerics.svm.exponents import exp_times

        Z, Q, found = self.X / h, X / h, np.empty(len(X))
        height = max(1, _BLOCK // len(Z))
        for start in range(0, len(Q), height):
            here = slice(start, start + height)
            r = cdist(Q[here], Z, METRICS[self.metric])
            exp_times(np.negative(r, out=r), self.weights, found[here])
        return found

    def _near(self, X: FloatArray, h: float) -> FloatArray:
        from gramgraph._numerics import smoothing as loops

        columns = (self.places or Places(self.X, self.weights)).at(h)
        shape = {"tophat": loops.TOPHAT, "epanechnikov": loops.EPANECHNIKOV, "linear": loops.LINEAR}.get(self.shape)
        found = np.empty(len(X))
        Q = np.ascontiguousarray(X / h)
        loops.near_sums(
            loops.COSINE if shape is None else shape,
            Q,
            columns.points,
            columns.weights,
            columns.keys,
            columns.starts,
            columns.along,
            columns.shifts,
            columns.cells(Q),
            found,
        )
        return found

    # -- volumes and draws --------------------------------------------------------------------------------------

    def _log_volume(self, h: float) -> float:
        """log ∫ κ(|x|/h) dx = log (h^d · volume of the unit ball · d ∫ κ(r) r^(d−1) dr)."""
        from scipy.special import gammaln

        d = self.X.shape[1]
        ball = {
            "euclidean": 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0),
            "cityblock": d * np.log(2.0) - gammaln(d + 1.0),
            "chebyshev": d * np.log(2.0),
        }[METRICS[self.metric]]
        radial = {
            "gaussian": (0.5 * d - 1.0) * np.log(2.0) + np.log(d) + gammaln(0.5 * d),
            "exponential": gammaln(d + 1.0),
            "tophat": 0.0,
            "epanechnikov": np.log(2.0 / (d + 2.0)),
            "linear": -np.log(d + 1.0),
            "cosine": np.log(_cosine_share(d)),
        }[self.shape]
        return float(ball + radial + d * np.log(h))

    def _radii(self, n: int, d: int, rng: Any) -> FloatArray:
        """Distances of draws from their centers: their density is κ(r) r^(d−1) up to a factor."""
        if self.shape == "gaussian":
            return np.asarray(np.sqrt(rng.chisquare(d, size=n)))
        if self.shape == "exponential":
            return np.asarray(rng.gamma(d, size=n))
        if self.shape in ("tophat", "epanechnikov"):
            return np.asarray(np.sqrt(rng.beta(0.5 * d, 1.0 if self.shape == "tophat" else 2.0, size=n)))
        r = np.asarray(rng.beta(d, 2.0, size=n))
        waiting = np.arange(n) if self.shape == "cosine" else np.zeros(0, np.int64)
        while len(waiting):  # cos(πr/2) ≤ (π/2)(1 − r): draws below the line are thinned
            line = 0.5 * np.pi * (1.0 - r[waiting])
            waiting = waiting[rng.uniform(size=len(waiting)) * line > np.cos(0.5 * np.pi * r[waiting])]
            r[waiting] = rng.beta(d, 2.0, size=len(waiting))
        return r

    def _directions(self, n: int, d: int, rng: Any) -> FloatArray:
        """Points of the unit sphere of the norm, as the direction of a uniform point of its ball."""
        if METRICS[self.metric] == "euclidean":
            steps = rng.normal(size=(n, d))
            return np.asarray(steps / np.linalg.norm(steps, axis=1, keepdims=True))
        if METRICS[self.metric] == "cityblock":
            steps = rng.laplace(size=(n, d))
            return np.asarray(steps / np.abs(steps).sum(axis=1, keepdims=True))
        steps = rng.uniform(-1.0, 1.0, size=(n, d))
        return np.asarray(steps / np.abs(steps).max(axis=1, keepdims=True))


class Places:
    """Points and their order for the last radius that was asked for; files and pickles keep the points alone."""

    def __init__(self, X: FloatArray, weights: FloatArray) -> None:
        self.X, self.weights = X, weights
        self._last: tuple[float, _Columns] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": None}

    def knows(self, h: float) -> bool:
        """Whether the order for this radius is there."""
        return self._last is not None and self._last[0] == h

    def at(self, h: float) -> _Columns:
        """The points, in units of h, in columns."""
        last = self._last  # read once: another thread may put its own there
        if last is None or last[0] != h:
            last = self._last = h, _Columns(self.X / h, self.weights)
        return last[1]


class _Columns:
    """Points in the order in which `near_sums` reads them: by columns, and by one coordinate inside."""

    def __init__(self, Z: FloatArray, weights: FloatArray) -> None:
        order = np.argsort(-np.ptp(Z, axis=0), kind="stable")
        self.along, self.across = int(order[0]), order[1:3]  # the widest spread sorts, the next two make columns
        self.low = Z[:, self.across].min(axis=0)
        extent = np.ptp(Z[:, self.across], axis=0)
        self.side = np.maximum(1.0, extent / _MOST_CELLS)
        self.number = np.floor(extent / self.side).astype(np.int64) + 3  # a margin on either side
        key = self.cells(Z)
        place = np.lexsort((Z[:, self.along], key))
        self.points = np.ascontiguousarray(Z[place].T)
        self.weights = weights[place]
        self.keys, starts = np.unique(key[place], return_index=True)
        self.starts = np.append(starts, len(Z)).astype(np.int64)

    def cells(self, Z: FloatArray) -> IntArray:
        """The key of the column in which each point stands; those outside stand in the margin."""
        key = np.zeros(len(Z), np.int64)
        for j, at in enumerate(self.across.tolist()):
            cell = np.floor((Z[:, at] - self.low[j]) / self.side[j])
            key = key * self.number[j] + np.clip(cell, -1, self.number[j] - 2).astype(np.int64) + 1
        return key

    @cached_property
    def shifts(self) -> IntArray:
        """Differences of keys between a column and those around it."""
        steps = product((-1, 0, 1), repeat=len(self.across))
        return np.array([s[0] * int(self.number[1]) + s[1] if len(s) == 2 else sum(s) for s in steps], np.int64)


def _cosine_share(d: int) -> float:
    """d ∫ cos(πr/2) r^(d−1) dr over r ≤ 1, by the series of the cosine: its first terms are the largest.

    >>> round(_cosine_share(1) * np.pi / 2.0, 12)
    1.0
    """
    term, total = 1.0, 0.0
    for k in range(14):
        total += term * d / (2 * k + d)
        term *= -((0.5 * np.pi) ** 2) / ((2 * k + 1) * (2 * k + 2))
    return total


def _blocks(n: int, m: int) -> Iterator[slice]:
    step = max(1, _CELLS // max(m, 1))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))
