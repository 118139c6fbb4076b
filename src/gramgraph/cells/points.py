"""Vectors, directions, sets and strings on cells: a few points of the sample, and a kernel that says what is near."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.cells.axes import Axis, LineAxis, Placed, StateAxis
from gramgraph.cells.columns import is_absent
from gramgraph.cells.point_density import PointDensity
from gramgraph.exceptions import ModelError, StateError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import default_kernel, median_distance
from gramgraph.kernels.inputs import KernelError
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Points, Var, discrete

#: Domains whose values are points of a space with a kernel.
POINT_KINDS = ("set", "sphere", "string", "vector")
_ROWS = 2000  # rows among which the points are chosen
_SHARP = 4.0  # power of the kernel that shares a row between its two nearest points


@dataclass(frozen=True, eq=False)
class PointAxis(Axis):
    """Points of a kernel's space: cells stand around pivots of an incomplete Cholesky factorization of the sample.

    A row is shared between the two points that are most similar to it. The mass of a cell is its share of the rows.
    Without a `density` likelihoods count the cells; with one (of vectors and directions) the cell j has the density
    Σᵢ shareᵢⱼ k(x, xᵢ) / n, so that all together are the kernel density estimate.
    """

    name: str
    domain: str
    points: tuple[Any, ...]  # m of them
    q: FloatArray
    scale: float  # of the kernel: a length, or a concentration on the sphere
    reach: float  # similarity to the nearest point below which an observation stops to count
    density: PointDensity | None = None

    @classmethod
    def of(cls, name: str, values: Any, domain: str, m: int) -> PointAxis:
        """From a column of points."""
        from gramgraph.linalg.pivoted import pivoted_cholesky

        known = [v for v in list(values) if not _absent(v)]
        if len(known) < 2:
            raise ModelError(f"column {name!r} has {len(known)} observed values; at least 2 are needed.")
        chosen = known[:: max(len(known) // _ROWS, 1)]
        scale = _scale(chosen, domain, name)
        draft = cls(name, domain, (), np.ones(1), scale, 0.0)
        sample = draft._prepared(chosen)
        pivots = pivoted_cholesky(draft._kernel(1.0), sample, tol=1e-6, max_rank=min(m, len(chosen))).pivots
        points = tuple(plain_point(chosen[int(i)]) for i in pivots)
        draft = cls(name, domain, points, np.full(len(points), 1.0 / len(points)), scale, 0.0)
        K = draft._similarity(known)
        a, b, f = _shares(K)
        q = np.bincount(a, 1.0 - f, len(points)) + np.bincount(b, f, len(points))
        reach = float(np.quantile(K.max(axis=1), 0.01))
        return cls(name, domain, points, np.maximum(q, 1e-9) / np.maximum(q, 1e-9).sum(), scale, reach)

    def with_density(self, values: Any) -> PointAxis:
        """The axis with the kernel density of a sample of vectors or directions; masses are those of that sample."""
        known = [v for v in list(values) if not _absent(v)]
        density = PointDensity.of(np.array([np.asarray(v, dtype=np.float64).ravel() for v in known]), self.domain)
        a, b, f = _shares(self._similarity(density.sample))
        q = (np.bincount(a, 1.0 - f, self.m) + np.bincount(b, f, self.m)) / len(a)
        own = replace(self, q=q, density=density)
        own.__dict__.update({key: self.__dict__[key] for key in ("var", "cell_var") if key in self.__dict__})
        return own

    def sharpened(self, ratios: FloatArray) -> PointAxis:
        """The axis with the kernel width that predicts the sample best where each of its points has its own `ratios` of
        cells, (n, m): given parents, points lie closer together than by themselves."""
        assert self.density is not None
        own = replace(self, density=self.density.sharpened(ratios, self._sample_shares.T))
        own.__dict__.update({key: self.__dict__[key] for key in ("var", "cell_var") if key in self.__dict__})
        return own

    @cached_property
    def _sample_shares(self) -> FloatArray:
        """Shares of the sample's points among the cells, (n, m)."""
        assert self.density is not None
        a, b, f = _shares(self._similarity(self.density.sample))
        out = np.zeros((len(a), self.m))
        rows = np.arange(len(a))
        out[rows, a] += 1.0 - f
        out[rows, b] += f
        return out

    def cell_densities(self, values: Any) -> tuple[FloatArray, FloatArray]:
        """(log p of every value by itself, share of every cell in it), (n,) and (n, m)."""
        assert self.density is not None
        X = np.array([np.asarray(v, dtype=np.float64).ravel() for v in list(values)]).reshape(len(values), -1)
        L = self.density.log_kernels(X)
        top = L.max(axis=1, keepdims=True)
        parts = np.exp(L - top) @ self._sample_shares
        total = parts.sum(axis=1, keepdims=True)
        return np.asarray(top[:, 0] + np.log(total[:, 0] / L.shape[1])), np.asarray(parts / total)

    def draw(self, cells: IntArray, rng: np.random.Generator) -> FloatArray:
        """A value in each of the cells, by their densities, (n, d)."""
        assert self.density is not None
        W = np.cumsum(self._sample_shares, axis=0)  # (n, m)
        u = rng.random(len(cells)) * W[-1, cells]
        at = np.array([np.searchsorted(W[:, c], x, side="right") for c, x in zip(cells, u, strict=True)], np.int64)
        return self.density.draw(np.minimum(at, len(W) - 1), rng)

    @cached_property
    def var(self) -> Var:  # type: ignore[override]
        """A variable whose values are points."""
        return Var(self.name, Points(self.domain))

    @cached_property
    def cell_var(self) -> Var:  # type: ignore[override]
        """States are the points as text."""
        return discrete(self.name, [f"{i}: {text_of(p)}" for i, p in enumerate(self.points)])

    @property
    def widths(self) -> tuple[float, ...]:  # type: ignore[override]
        """Multiples of the kernel's length."""
        return (0.5, 1.0, 2.0) if self.domain in ("vector", "sphere") else (1.0,)

    def _kernel(self, width: float) -> Kernel:
        from gramgraph import kernels

        if self.domain == "vector":
            return kernels.RBF(self.scale * width)
        if self.domain == "sphere":
            return kernels.Directional(self.scale / width**2).normalized()
        return default_kernel([["a"]] if self.domain == "set" else ["a"], self.domain)

    def _prepared(self, values: Any) -> Any:
        try:
            given = np.asarray(values, dtype=np.float64) if self.domain in ("vector", "sphere") else list(values)
            return self._kernel(1.0).prepare(given)
        except (KernelError, TypeError, ValueError) as error:
            raise StateError(f"{self.name} takes values of the domain {self.domain!r}: {error}") from None

    @cached_property
    def _anchors(self) -> Any:
        return self._prepared(list(self.points))

    def _similarity(self, values: Any) -> FloatArray:
        return np.asarray(self._kernel(1.0).gram(self._prepared(values), self._anchors))

    def between(self, X: Any, Y: Any) -> FloatArray:
        """The kernel between two columns of points."""
        return np.asarray(self._kernel(1.0).gram(self._prepared(list(X)), self._prepared(list(Y))))

    def place(self, values: Any) -> Placed:
        """The two most similar points of every value."""
        given = list(values)
        known = np.array([not _absent(v) for v in given], dtype=bool)
        n = len(given)
        a, b, f, near = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), np.ones(n)
        if known.any():
            K = self._similarity([v for v, ok in zip(given, known, strict=True) if ok])
            a[known], b[known], f[known] = _shares(K)
            near[known] = np.minimum(np.maximum(K.max(axis=1), 0.0) / max(self.reach, 1e-12), 1.0) ** 2
        return Placed(a, b, f, near, known)

    def exactly(self, values: Any, at: Placed) -> Placed:
        """Values that are one of the points stand there alone."""
        code = {p: i for i, p in enumerate(self.points)}
        found = np.array([code.get(plain_point(v), -1) for v in values], dtype=np.int64)
        hit = found >= 0
        return at._replace(a=np.where(hit, found, at.a), b=np.where(hit, found, at.b), f=np.where(hit, 0.0, at.f))

    def log_base(self, values: Any) -> FloatArray:
        """log of the mass of the cells around each value, or its kernel density."""
        at = self.place(values)
        if self.density is not None:
            out = np.zeros(len(at.known))
            if at.known.any():
                out[at.known] = self.cell_densities([v for v, ok in zip(values, at.known, strict=True) if ok])[0]
            return out
        return np.where(at.known, np.log(self.q[at.a] * (1.0 - at.f) + self.q[at.b] * at.f), 0.0)

    def gram(self, width: float, *, by_cell: bool = False) -> FloatArray:
        """The kernel between the points."""
        return np.asarray(self._kernel(1.0 if by_cell else width).gram(self._anchors, self._anchors))

    def value(self, cell: int) -> Any:
        """The point of a cell."""
        return self.points[cell]

    def to_fields(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Points as lists or texts."""
        points = [sorted(map(str, p)) if self.domain == "set" else list(p) if self.domain != "string" else p
                  for p in self.points]  # fmt: skip
        fields: dict[str, Any] = {"kind": "point", "name": self.name, "domain": self.domain, "points": points}
        fields |= {"scale": self.scale, "reach": self.reach}
        if self.density is None:
            return fields, {"q": self.q}
        return {**fields, "width": self.density.width}, {"q": self.q, "sample": self.density.sample}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> PointAxis:
        """The axis that `to_fields` wrote."""
        domain = str(fields["domain"])
        if domain not in POINT_KINDS:
            raise ValueError(f"domain {domain!r}")
        points = tuple(frozenset(p) if domain == "set" else p if domain == "string" else tuple(map(float, p))
                       for p in fields["points"])  # fmt: skip
        q = np.asarray(arrays["q"], dtype=np.float64)
        density = None
        if "sample" in arrays:
            sample, width = np.asarray(arrays["sample"], dtype=np.float64), float(fields["width"])
            sound = sample.ndim == 2 and len(sample) > 0 and np.isfinite(sample).all() and 0.0 < width < np.inf
            if not sound or any(len(point) != sample.shape[1] for point in points):
                raise ValueError("the sample does not fit the points")
            density = PointDensity(domain, sample, width)
        return cls(str(fields["name"]), domain, points, q, float(fields["scale"]), float(fields["reach"]), density)


#: Kinds of axes as files name them.
AXES: dict[str, Any] = {"line": LineAxis, "point": PointAxis, "state": StateAxis}


def _absent(value: Any) -> bool:
    return is_absent(value) if np.ndim(value) == 0 and not isinstance(value, (set, frozenset)) else False


def plain_point(value: Any) -> Any:
    """A point that cannot change."""
    if isinstance(value, (set, frozenset)):
        return frozenset(value)
    return value if isinstance(value, str) else tuple(np.asarray(value, dtype=np.float64).ravel().tolist())


def text_of(point: Any) -> str:
    """A point as text."""
    if isinstance(point, frozenset):
        return "{" + ", ".join(sorted(map(str, point))) + "}"
    return point if isinstance(point, str) else "(" + ", ".join(f"{x:.3g}" for x in point) + ")"


def _scale(values: Any, domain: str, name: str) -> float:
    if domain not in ("vector", "sphere"):
        return 1.0
    try:
        X = np.array([np.asarray(v, dtype=np.float64).ravel() for v in values])
    except (TypeError, ValueError):
        raise StateError(f"{name} takes vectors of one length (domain {domain!r}).") from None
    if X.ndim != 2 or not np.isfinite(X).all():
        raise StateError(f"{name} takes vectors of one length with finite numbers (domain {domain!r}).")
    if domain == "sphere":
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
        return float(np.clip(1.0 / (0.5 * float(median_distance(X))) ** 2, 1e-2, 200.0))
    return 0.5 * float(median_distance(X))


def _shares(K: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Nearest and second point of every row, and the share of the second."""
    rows = np.arange(len(K))
    a = K.argmax(axis=1)
    if K.shape[1] == 1:
        return a, a, np.zeros(len(K))
    rest = K.copy()
    rest[rows, a] = -np.inf
    b = rest.argmax(axis=1)
    first, second = np.maximum(K[rows, a], 1e-12) ** _SHARP, np.maximum(K[rows, b], 0.0) ** _SHARP
    return a, b, second / (first + second)
