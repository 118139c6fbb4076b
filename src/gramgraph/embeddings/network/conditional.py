"""p(child | several parents) on cells, by kernels on all parents together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.cells.density import line_density
from gramgraph.cells.mixture_weights import mixture_weights
from gramgraph.conditionals.kernel import KernelConditional
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.typing import FloatArray

_LANDMARKS = 150
_WIDTHS = (0.4, 0.8, 1.6)
_REGS = (1e-4, 1e-3, 1e-2)
_FLOOR = 1e-3
_LEAST = 0.01


def fit_conditional(parents: Sequence[End], child: End, *, floor: float = 1e-3, seed: int = 0) -> KernelConditional:
    """Mix conditional embeddings and regressions on the parents' product kernel by the likelihood of left-out rows.

    Conditional embedding: ridge regression of the child's hats on features of the parents, centered, so that far from
    all data it is the child's marginal; rows are floored and normalized. Regression: the child's value, with a kernel
    density of the noise. Features are those of 150 landmarks; the penalty's leave-one-out is in closed form.
    """
    known = child.placed.known.copy()
    for end in parents:
        known &= end.placed.known
    rows = np.flatnonzero(known)
    q = child.axis.q
    shape = tuple(end.axis.m for end in parents)
    plain = np.broadcast_to(q, (int(np.prod(shape)), child.axis.m))
    found: list[tuple[str, FloatArray, FloatArray]] = [("independent", plain, np.ones(len(rows)))]
    if len(rows) >= 10 and child.axis.m > 1:
        X = np.hstack([_points(end.axis, end.placed.take(rows)) for end in parents])
        grid = _cell_points([end.axis for end in parents])
        at = child.placed.take(rows)
        for width in _WIDTHS:
            features = _Features.of(X, width * np.sqrt(len(parents)), seed)
            Z, G = features(X), features(grid)
            found += _embeddings(Z, G, at, child.axis, width)
            if isinstance(child.axis, LineAxis) and not child.axis.circle:
                found.append(_regression(Z, G, child, rows, width))
    L = np.stack([left for _, _, left in found])
    w = np.ones(1) if len(found) == 1 else mixture_weights(np.maximum(L, 1e-30).astype(np.float32))
    w[(w < _LEAST) & (np.arange(len(w)) > 0)] = 0.0
    w /= w.sum()
    if w[0] < floor and len(w) > 1:
        w[1:] *= (1.0 - floor) / w[1:].sum()
        w[0] = floor
    table = sum(weight * T for weight, (_, T, _) in zip(w, found, strict=True) if weight > 0.0)
    table = np.asarray(table) / np.sum(table, axis=1, keepdims=True)
    gain = float(np.log(np.maximum(w @ L, 1e-300)).mean()) if L.size else 0.0
    parts = {name: float(weight) for weight, (name, _, _) in zip(w, found, strict=True) if weight > 0.0}
    axes = (*(end.axis for end in parents), child.axis)
    return KernelConditional(axes, table.reshape(*shape, child.axis.m), gain, parts)


# ------------------------------------------------------------------------------------------ points of the parents


def _coordinates(axis: Axis) -> FloatArray:
    """A point for every cell: t in units of its spread, the two of an angle, or a corner for every state."""
    if not isinstance(axis, LineAxis):
        return 1.5 * np.eye(axis.m)
    t = axis.density.grid[axis.anchors]
    if axis.circle:
        return np.stack([np.cos(t), np.sin(t)], axis=1) * 1.5
    spread = float(np.sqrt(max(float(axis.q @ t**2 - (axis.q @ t) ** 2), 1e-12)))
    return np.asarray(t / spread)[:, None]


def _points(axis: Axis, at: Placed) -> FloatArray:
    cells = _coordinates(axis)
    return np.asarray(cells[at.a] * (1.0 - at.f)[:, None] + cells[at.b] * at.f[:, None])


def _cell_points(axes: Sequence[Axis]) -> FloatArray:
    """One row for every combination of cells, the last parent fastest."""
    index = np.indices([axis.m for axis in axes]).reshape(len(axes), -1)
    return np.hstack([_coordinates(axis)[i] for axis, i in zip(axes, index, strict=True)])


@dataclass(frozen=True, eq=False)
class _Features:
    """Centered, rotated kernel features of points; `values` are their variances."""

    landmarks: FloatArray
    width: float
    maps: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, X: FloatArray, width: float, seed: int) -> _Features:
        chosen = np.random.default_rng(seed).choice(len(X), min(_LANDMARKS, len(X)), replace=False)
        centers = np.unique(X[np.sort(chosen)], axis=0)
        s, V = np.linalg.eigh(_kernel(centers, centers, width))
        keep = s > 1e-6 * s[-1]
        plain = cls(centers, width, V[:, keep] / np.sqrt(s[keep]), np.zeros(int(keep.sum())))
        Phi = plain(X)
        mean = Phi.mean(axis=0)
        Phi -= mean
        _, Q = np.linalg.eigh(Phi.T @ Phi / len(Phi))
        return cls(centers, width, plain.maps @ Q, mean @ Q)

    def __call__(self, X: FloatArray) -> FloatArray:
        return _kernel(X, self.landmarks, self.width) @ self.maps - self.mean


def _kernel(X: FloatArray, Y: FloatArray, width: float) -> FloatArray:
    d = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2.0 * X @ Y.T
    return np.asarray(np.exp(-0.5 * np.maximum(d, 0.0) / width**2))


# ------------------------------------------------------------------------------------------ candidates


def _embeddings(
    Z: FloatArray, G: FloatArray, at: Placed, axis: Axis, width: float
) -> list[tuple[str, FloatArray, FloatArray]]:
    """Conditional embeddings for each penalty: (name, table (combinations, m), left-out ratio at the rows)."""
    n = len(Z)
    row = np.arange(n)
    hats = np.zeros((n, axis.m))
    hats[row, at.a] += 1.0 - at.f
    hats[row, at.b] += at.f
    if isinstance(axis, LineAxis):  # a little smoothing over neighboring cells
        K = axis.q[:, None] * axis.gram(0.03, by_cell=True)
        hats_fit = hats @ (K / K.sum(axis=0)).T
    else:
        hats_fit = hats
    variances = np.einsum("ij,ij->j", Z, Z) / n
    mean = hats_fit.mean(axis=0)
    C = Z.T @ hats_fit / n
    out = []
    for reg in _REGS:
        scale = 1.0 / (variances + reg)
        fitted = mean + (Z * scale) @ C
        own = np.einsum("ij,j->i", Z**2, scale) / n + 1.0 / n
        left = hats_fit - (hats_fit - fitted) / np.maximum(1.0 - own, 0.05)[:, None]
        ratio = left / axis.q
        value = ratio[row, at.a] * (1.0 - at.f) + ratio[row, at.b] * at.f
        table = np.maximum(mean + (G * scale) @ C, _FLOOR * axis.q)
        total = np.maximum(left, _FLOOR * axis.q).sum(axis=1)  # the rows of the table are normalized as well
        out.append(
            (
                f"embedding {width:g} {reg:g}",
                table / table.sum(axis=1, keepdims=True),
                np.maximum(value, _FLOOR) / total,
            )
        )
    return out


def _regression(
    Z: FloatArray, G: FloatArray, child: End, rows: Any, width: float
) -> tuple[str, FloatArray, FloatArray]:
    """y = f(parents) + noise: (name, table, left-out ratio)."""
    from gramgraph._numerics.cells.shares import spread_masses

    axis = child.axis
    assert isinstance(axis, LineAxis)
    y, n = child.linear[rows], len(Z)
    variances = np.einsum("ij,ij->j", Z, Z) / n
    c = Z.T @ (y - y.mean()) / n
    best: tuple[float, float, FloatArray] | None = None
    for reg in np.geomspace(1e-6, 1e-1, 6):
        scale = 1.0 / (variances + reg)
        own = np.einsum("ij,j->i", Z**2, scale) / n + 1.0 / n
        left = (y - y.mean() - Z @ (scale * c)) / np.maximum(1.0 - own, 0.05)
        error = float(left @ left)
        if best is None or error < best[0]:
            best = error, float(reg), left
    assert best is not None
    center = y.mean() + G @ (c / (variances + best[1]))
    noise = line_density(best[2])
    end = 1.5 * max(float(np.abs(best[2]).max()), 1e-300)
    z = np.linspace(-end, end, 2048)
    points = axis.density.coordinate.linear(axis.grid_values)
    low, high, share = axis.hats
    table = np.zeros((len(G), axis.m))
    ones = np.ones(len(G))
    values = np.exp(noise.log_density(z))
    spread_masses(values, z[0], z[1] - z[0], center, ones, low, high, share, points, np.gradient(points), table)
    table = np.maximum(table, 1e-5 * axis.q)
    x = axis.read(child.values)[rows]
    log_p = axis.density.log_density(x) - (np.log(x) * -1.0 if axis.domain == "positive" else 0.0)
    left_out = np.exp(np.minimum(noise.log_density(best[2], left_out=True) - log_p, 20.0))
    return f"regress {width:g}", table / table.sum(axis=1, keepdims=True), left_out
