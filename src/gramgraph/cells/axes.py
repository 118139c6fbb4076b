"""A variable of any kind on cells: hat functions that sum to one, their masses, and the density inside them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gramgraph.cells.columns import is_absent, label_of, numbers_of, single, states_of
from gramgraph.cells.density import Coordinate, LineDensity, line_density
from gramgraph.exceptions import ModelError, StateError
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Circle, Positive, Real, Var, discrete

_DOMAINS = {"real": Real(), "positive": Positive(), "circle": Circle()}
_REACH = 0.25  # of the spread of the data: how far an observation may lie from them until it stops to count


class Placed(NamedTuple):
    """Rows between cells: share 1 − f in cell `a`, f in cell `b`; `near` is 1 among the data and falls to 0 far away.

    A row that is not known has `known` False and counts for nothing.
    """

    a: IntArray
    b: IntArray
    f: FloatArray
    near: FloatArray
    known: Array

    def take(self, rows: Any) -> Placed:
        """Some of the rows."""
        return Placed(self.a[rows], self.b[rows], self.f[rows], self.near[rows], self.known[rows])

    def shares(self, m: int) -> FloatArray:
        """How each row is shared among m cells, (rows, m)."""
        out = np.zeros((len(self.a), m))
        rows = np.arange(len(self.a))
        out[rows, self.a] += 1.0 - self.f
        out[rows, self.b] += self.f
        return out


class Axis:
    """What the kinds of axes share: a name, a domain, m cells with masses q that sum to one.

    >>> axis = StateAxis.of("city", ["b", "a", "b", "b"])
    >>> axis.q.tolist(), axis.m, axis.domain
    ([0.25, 0.75], 2, 'category')
    """

    name: str
    q: FloatArray
    domain: str
    widths: tuple[float, ...] = (0.0,)  # of the kernels that edges may choose from

    @property
    def m(self) -> int:
        """Number of cells."""
        return len(self.q)

    @property
    def hat_masses(self) -> FloatArray:
        """The integral of every cell's hat under the density of the variable by itself."""
        return self.q

    @property
    def var(self) -> Var:
        """The variable as models name it."""
        raise NotImplementedError

    @property
    def cell_var(self) -> Var:
        """The discrete variable whose states are the cells."""
        return self.var

    def place(self, values: Any) -> Placed:
        """The cells of values; a `StateError` for what cannot be one, missing values are not known."""
        raise NotImplementedError

    def log_base(self, values: Any) -> FloatArray:
        """log of the marginal density (probability of a state) at each value; 0 where it is not known."""
        raise NotImplementedError

    def gram(self, width: float, *, by_cell: bool = False) -> FloatArray:
        """Kernel between cells, (m, m), one on the diagonal; by_cell: distances count cells, not units."""
        raise NotImplementedError

    def value(self, cell: int) -> Any:
        """What a cell stands for: the label of a state, an anchor, or a point."""
        return self.var.states[cell]

    def renamed(self, name: str) -> Self:
        """The axis of another variable on the same cells; what was computed of it is shared."""
        own = copy(self)
        variables = {"var": Var(name, self.var.domain), "cell_var": Var(name, self.cell_var.domain)}
        own.__dict__.update(variables, name=name)
        return own

    def of_variable(self, var: Var) -> Self:
        """The axis of a model's variable, which may call its domain by another name (vectors: real^3)."""
        if var == self.var:
            return self
        own = copy(self)
        own.__dict__.update(var=var, name=var.name)
        return own

    def fixed_at(self, value: Any) -> tuple[Axis, FloatArray]:
        """The axis after an intervention, and how a value is shared among the cells of this one, (m,)."""
        at = self.place(single(value))
        if not at.known[0]:
            raise StateError(f"do({self.name}) needs a value, not {value!r}")
        return self, at.shares(self.m)[0]

    def to_fields(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Plain values and arrays, as a file holds them."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class StateAxis(Axis):
    """Labelled states: every state is a cell, its mass the share of rows."""

    name: str
    states: tuple[str, ...]
    q: FloatArray
    domain: ClassVar[str] = "category"  # type: ignore[misc]

    @classmethod
    def of(cls, name: str, values: Any, states: Any = None) -> StateAxis:
        """From a column; the states are the values that occur: numbers by size, all else by text, unless given."""
        known = [v for v in np.asarray(values, dtype=object).tolist() if not is_absent(v)]
        if not known:
            raise ModelError(f"column {name!r} has no observed value.")
        labels = states_of(known) if states is None else tuple(str(s) for s in states)
        code = {label: i for i, label in enumerate(labels)}
        counts = np.bincount([code[label_of(v)] for v in known], minlength=len(labels))
        return cls(name, labels, counts / counts.sum())

    @cached_property
    def var(self) -> Var:  # type: ignore[override]
        """A discrete variable with these states."""
        return discrete(self.name, self.states)

    def place(self, values: Any) -> Placed:
        """Indices of the states."""
        given = np.asarray(values, dtype=object).tolist()
        found: dict[Any, int] = {}
        codes = np.zeros(len(given), dtype=np.int64)
        known = np.ones(len(given), dtype=bool)
        for i, value in enumerate(given):
            if is_absent(value):
                known[i] = False
            else:
                code = found.get(value)
                if code is None:
                    code = found[value] = self.var.index(value)
                codes[i] = code
        return Placed(codes, codes, np.zeros(len(given)), np.ones(len(given)), known)

    def log_base(self, values: Any) -> FloatArray:
        """log q of each state."""
        at = self.place(values)
        with np.errstate(divide="ignore"):
            return np.where(at.known, np.log(self.q)[at.a], 0.0)

    def gram(self, width: float, *, by_cell: bool = False) -> FloatArray:
        """1 where equal."""
        return np.eye(self.m)

    def to_fields(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """States and their shares."""
        return {"kind": "state", "name": self.name, "states": list(self.states)}, {"q": self.q}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> StateAxis:
        """The axis that `to_fields` wrote."""
        return cls(str(fields["name"]), tuple(map(str, fields["states"])), np.asarray(arrays["q"], dtype=np.float64))


@dataclass(frozen=True, eq=False)
class LineAxis(Axis):
    """Numbers or angles: hats between anchors on the grid of a `LineDensity`.

    Anchors are denser where the data are (half by probability, half by length). The mass of a cell is the integral of
    its hat, so that a table whose rows average to one keeps every density normalized exactly.
    """

    name: str
    density: LineDensity
    anchors: IntArray  # (m,) grid points, increasing
    near: FloatArray  # (G,) 1 among the data, falling to 0 away from them
    reach: float  # in t
    fixed: float | None = None  # the value that an intervention has set

    @classmethod
    def of(cls, name: str, x: FloatArray, domain: str, m: int, *, others: Any = None) -> LineAxis:
        """From finite numbers."""
        return cls.on(name, line_density(x, domain, others=others), x, m)

    @classmethod
    def on(cls, name: str, density: LineDensity, x: FloatArray, m: int) -> LineAxis:
        """Anchors for a density that is given."""
        t = density.coordinate.forward(x)
        spread = 0.7 if density.coordinate.circle else max(float(t.std()), 1e-2)
        size = len(density.values)
        at = np.clip(np.rint(density.position(t)).astype(np.int64), 0, size if density.coordinate.circle else size - 1)
        occupied = np.bincount(at % size, minlength=size) > 0
        near = _closeness(occupied, density, _REACH * spread)
        return cls(name, density, _anchors(density, occupied, m), near, _REACH * spread)

    @property
    def domain(self) -> str:  # type: ignore[override]
        """real, positive or circle."""
        return self.density.coordinate.domain

    @property
    def circle(self) -> bool:
        """Whether the ends meet."""
        return self.density.coordinate.circle

    @cached_property
    def var(self) -> Var:  # type: ignore[override]
        """A real-valued variable."""
        return Var(self.name, _DOMAINS[self.domain])

    @cached_property
    def cell_var(self) -> Var:  # type: ignore[override]
        """States are the anchors as text, in increasing order."""
        return discrete(self.name, _labels(self.grid_values[self.anchors]))

    def value(self, cell: int) -> float:
        """The anchor."""
        return float(self.grid_values[self.anchors[cell]]) if self.fixed is None else self.fixed

    def fixed_at(self, value: Any) -> tuple[Axis, FloatArray]:
        """One cell at the value; the value is shared between two cells of this axis."""
        _, share = super().fixed_at(value)
        x = float(self.read(single(value))[0])
        return replace(self, anchors=self.anchors[[int(share.argmax())]], fixed=x), share

    @cached_property
    def widths(self) -> tuple[float, ...]:  # type: ignore[override]
        """Kernel widths in the coordinate t."""
        if self.circle:
            return (0.2, 0.4, 0.8)
        p, t = self.density.masses, self.density.grid
        spread = float(np.sqrt(max(float(p @ t**2 - (p @ t) ** 2), 1e-4)))
        return (0.19 * spread, 0.38 * spread, 0.75 * spread)

    @cached_property
    def hats(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells and shares of the grid points."""
        return self._between(np.arange(len(self.density.values), dtype=np.float64))

    def _between(self, u: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells and share of positions on the grid."""
        anchors = self.anchors.astype(np.float64)
        m = len(anchors)
        if m == 1:
            zero = np.zeros(len(u), dtype=np.int64)
            return zero, zero, np.zeros(len(u))
        if self.circle:
            size = len(self.density.values)
            ends = np.append(anchors, anchors[0] + size)
            u = np.where(u < anchors[0], u + size, u)
        else:
            ends, u = anchors, np.clip(u, anchors[0], anchors[-1])
        at = np.clip(np.searchsorted(ends, u, side="right") - 1, 0, len(ends) - 2)
        return at, (at + 1) % m, np.clip((u - ends[at]) / (ends[at + 1] - ends[at]), 0.0, 1.0)

    @cached_property
    def q(self) -> FloatArray:  # type: ignore[override]
        """Integral of each hat."""
        return self.average(np.ones(len(self.density.values)))[0]

    @cached_property
    def hat_masses(self) -> FloatArray:  # type: ignore[override]
        """∫ hat p of every cell with p linear between grid points, as `log_base` has it; q sums over grid points."""
        H, before = self._hats_before
        if self.circle:
            return np.asarray(before[-1])
        return np.asarray(before[-1] + self.density.tail * self.density.values[-1] * H[-1])

    @cached_property
    def _hats_before(self) -> tuple[FloatArray, FloatArray]:
        """(hats at the grid points, ∫ hat p from the left end of the line to them), (G, m) each; on the circle the
        first point comes once more, a turn later."""
        low, high, share = self.hats
        f, step = self.density.values, self.density.step
        H = np.zeros((len(f), len(self.anchors)))
        rows = np.arange(len(f))
        H[rows, low] += 1.0 - share
        H[rows, high] += share
        if self.circle:
            H, f = np.vstack([H, H[:1]]), np.append(f, f[0])
        a, b = f[:-1, None] * step, f[1:, None] * step
        steps = a * (H[:-1] / 3.0 + H[1:] / 6.0) + b * (H[:-1] / 6.0 + H[1:] / 3.0)
        start = np.zeros_like(H[:1]) if self.circle else self.density.tail * f[0] * H[:1]
        return H, np.cumsum(np.vstack([start, steps]), axis=0)

    def mass_before(self, x: FloatArray) -> FloatArray:
        """∫ hat p up to each of some values, (n, m): with p and hats linear between grid points, and the tails."""
        H, before = self._hats_before
        f, d = self.density.values, self.density
        u = d.position(d.coordinate.forward(np.asarray(x, dtype=np.float64)))
        if self.circle:
            f = np.append(f, f[0])
        top = len(f) - 1
        at = np.clip(u.astype(np.int64), 0, top - 1)
        s = np.clip(u - at, 0.0, 1.0)[:, None]
        f0, df = f[at][:, None], (f[at + 1] - f[at])[:, None]
        h0, dh = H[at], H[at + 1] - H[at]
        out = before[at] + d.step * (f0 * h0 * s + 0.5 * (f0 * dh + df * h0) * s**2 + df * dh * s**3 / 3.0)
        if not self.circle:
            below, above = np.maximum(-u, 0.0)[:, None], np.maximum(u - top, 0.0)[:, None]
            left = d.tail * f[0] * H[0] * np.expm1(-below * d.step / d.tail)
            right = -d.tail * f[-1] * H[-1] * np.expm1(-above * d.step / d.tail)
            out = out + left + right
        return np.asarray(out)

    def average(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(masses, ∫ hat p f) of every cell for f given on the grid."""
        low, high, share = self.hats
        p, m = self.density.masses, len(self.anchors)
        mass = np.bincount(low, p * (1.0 - share), m) + np.bincount(high, p * share, m)
        w = p * values
        return np.asarray(mass), np.asarray(np.bincount(low, w * (1.0 - share), m) + np.bincount(high, w * share, m))

    @cached_property
    def grid_values(self) -> FloatArray:
        """x at the grid points."""
        return self.density.coordinate.backward(self.density.grid)

    @cached_property
    def unit(self) -> tuple[float, float]:
        """The median and a width of the marginal: moments are taken of (x − median) / width, else digits are lost."""
        x, F = self.grid_values, np.cumsum(self.density.masses)
        low, middle, high = x[np.minimum(np.searchsorted(F, [0.16, 0.5, 0.84]), len(x) - 1)]
        return float(middle), float(high - low) or 1.0

    @cached_property
    def cell_moments(self) -> FloatArray:
        """Means of u and u², u = (x − median) / width, in each cell (cos and sin of x on the circle), (m, 2)."""
        x, (center, width) = self.grid_values, self.unit
        u = (x - center) / width
        both = (np.cos(x), np.sin(x)) if self.circle else (u, u**2)
        return np.stack([self.average(f)[1] / self.q for f in both], axis=1)

    def moments(self, weights: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation under masses of the cells (last axis); on the circle E cos x and E sin x."""
        w = np.asarray(weights, dtype=np.float64)
        both = w @ self.cell_moments / np.maximum(w.sum(axis=-1, keepdims=True), 1e-300)
        first, second = both[..., 0], both[..., 1]
        if self.circle:
            return first, second
        center, width = self.unit
        return center + width * first, width * np.sqrt(np.maximum(second - first**2, 0.0))

    def read(self, values: Any) -> FloatArray:
        """Numbers with NaN for what is missing; a `StateError` names the first that is none."""
        return numbers_of(values, self.name, positive=self.domain == "positive")

    def place(self, values: Any) -> Placed:
        """Two cells a value, by its place between their anchors."""
        x = self.read(values)
        known = ~np.isnan(x)
        if self.fixed is not None:
            zero = np.zeros(len(x), dtype=np.int64)
            return Placed(zero, zero, np.zeros(len(x)), np.ones(len(x)), known)
        u = self.density.position(self.density.coordinate.forward(np.where(known, x, self.grid_values[0])))
        low, high, share = self._between(u)
        top = len(self.density.values) - 1
        at = np.clip(np.rint(u).astype(np.int64), 0, top)
        near = self.near[at]
        if not self.circle:
            off = np.maximum(np.maximum(-u, u - top), 0.0) * self.density.step
            near = near * np.exp(-0.5 * (np.minimum(off / self.reach, 30.0)) ** 2)
        return Placed(low, high, share, near, known)

    def log_base(self, values: Any) -> FloatArray:
        """log p(x) by itself."""
        x = self.read(values)
        known = ~np.isnan(x)
        if self.fixed is not None:
            return np.where(known & (x != self.fixed), -np.inf, 0.0)
        return np.where(known, self.density.log_density(np.where(known, x, self.grid_values[0])), 0.0)

    def gram(self, width: float, *, by_cell: bool = False) -> FloatArray:
        """exp(−½ (d / width)²), d the distance of anchors in t, or in cells as a share of their number."""
        at = np.arange(self.m) / self.m if by_cell else self.density.grid[self.anchors]
        d = np.abs(at[:, None] - at)
        if self.circle:
            d = np.minimum(d, (1.0 if by_cell else 2.0 * np.pi) - d)
        return np.asarray(np.exp(-0.5 * (d / width) ** 2))

    @cached_property
    def scores(self) -> FloatArray:
        """Normal scores Φ⁻¹(F) of the grid points."""
        from scipy.special import ndtri

        p = self.density.masses
        return np.asarray(ndtri(np.clip(np.cumsum(p) - 0.5 * p, 1e-9, 1.0 - 1e-9)))

    def to_fields(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The density, the anchors and where the data are."""
        c, d = self.density.coordinate, self.density
        fields = {
            "kind": "line",
            "name": self.name,
            "domain": c.domain,
            "center": c.center,
            "scale": c.scale,
            "first": d.first,
            "step": d.step,
            "tail": d.tail,
            "reach": self.reach,
        }
        if self.fixed is not None:
            fields["fixed"] = self.fixed
        return fields, {"density": d.values, "anchors": self.anchors, "near": self.near}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> LineAxis:
        """The axis that `to_fields` wrote."""
        c = Coordinate(str(fields["domain"]), float(fields["center"]), float(fields["scale"]))
        values = np.asarray(arrays["density"], dtype=np.float64)
        density = LineDensity(c, float(fields["first"]), float(fields["step"]), values, float(fields["tail"]))
        anchors = np.asarray(arrays["anchors"], dtype=np.int64)
        near = np.asarray(arrays["near"], dtype=np.float64)
        fixed = fields.get("fixed")
        reach = float(fields["reach"])
        return cls(str(fields["name"]), density, anchors, near, reach, None if fixed is None else float(fixed))


def _labels(values: FloatArray) -> list[str]:
    """Different texts for different numbers, as short as that allows."""
    for digits in range(4, 18):
        found = [f"{v:.{digits}g}" for v in values]
        if len(set(found)) == len(found):
            return found
    return [f"{v!r} ({i})" for i, v in enumerate(values)]


def _anchors(density: LineDensity, occupied: Array, m: int) -> IntArray:
    """At most m grid points: those with data where these are few, else by quantiles of probability and length."""
    if occupied.sum() <= max(m // 2, 1):
        return np.flatnonzero(occupied)
    F = np.cumsum(density.masses)
    size = len(F)
    place = np.arange(size)
    if density.coordinate.circle:
        spread = 0.5 * (F + (place + 1.0) / size)
    else:  # a tenth for the tails, where single points may matter
        found = np.flatnonzero(occupied)
        bulk = np.searchsorted(F, [5e-4, 1.0 - 5e-4])
        inner, outer = (np.clip((place - low) / max(high - low, 1), 0.0, 1.0) for low, high in (bulk, found[[0, -1]]))
        spread = 0.45 * F + 0.45 * inner + 0.1 * outer
    at = np.searchsorted(spread, (np.arange(m) + 0.5) / m)
    return np.unique(np.minimum(at, size - 1))


def _closeness(occupied: Array, density: LineDensity, reach: float) -> FloatArray:
    """exp(−½ (d / reach)²) with d the distance of every grid point to the nearest datum."""
    size = len(occupied)
    full = np.tile(occupied, 3) if density.coordinate.circle else occupied
    at = np.arange(len(full))
    left = np.maximum.accumulate(np.where(full, at, -(10**9)))
    right = np.minimum.accumulate(np.where(full, at, 10**9)[::-1])[::-1]
    d = np.minimum(at - left, right - at).astype(np.float64)
    if density.coordinate.circle:
        d = d[size : 2 * size]
    d = np.maximum(d - 1.0, 0.0) * density.step
    return np.asarray(np.exp(-0.5 * np.minimum(d / reach, 30.0) ** 2))
