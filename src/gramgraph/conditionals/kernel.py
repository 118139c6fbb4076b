"""A kernel on any arrow: p(child | parents) learned from samples, on cells with hat functions between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from gramgraph._asking import learners
from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.cells.drawing import inside
from gramgraph.cells.points import AXES, PointAxis
from gramgraph.conditionals.continuous import Draws, RealConditional, draw_states
from gramgraph.conditionals.laws import Laws
from gramgraph.typing import Array, FloatArray, RandomState
from gramgraph.variables import Var


@dataclass(frozen=True, eq=False)
class KernelConditional(RealConditional):
    """p(child | parents) learned from samples: the child's own density times a ratio on cells, linear between them.

    `gain` is in nats, of rows that were left out; `parts` says which estimates were mixed, with their weights.

    Parameters
    ----------
    axes : cells of the parents in order, then of the child.
    on_cells : p(child in cell | parents in cells), the child's axis last.
    gain : nats that the parents are worth on rows that were left out.
    parts : which estimates were mixed, with their weights.
    hats : whether densities are divided by integrals of the hat functions, so that they integrate to one.

    Examples
    --------
    >>> from gramgraph.cells.axes import StateAxis
    >>> a, b = StateAxis.of("a", list("xxyy")), StateAxis.of("b", list("uvvv"))
    >>> p = KernelConditional((a, b), np.array([[0.5, 0.5], [0.0, 1.0]]))
    >>> p.faults(), np.exp(p.log_density({a.var: np.array([0, 1]), b.var: np.array([0, 1])})).round(2)
    ([], array([0.5, 1. ]))
    """

    kind: ClassVar[str] = "kernel"
    needs: ClassVar[str] = "axes"
    axes: tuple[Axis, ...]  # of the parents in order, then of the child
    on_cells: FloatArray  # (m_1, …, m_k, m_child): p(child in cell | parents in cells)
    gain: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    hats: bool = False  # divide by integrals of the hats, so that densities integrate to one; else by what cells hold

    @property
    def child(self) -> Var:  # type: ignore[override]
        """The variable."""
        return self.axes[-1].var

    @property
    def parents(self) -> tuple[Var, ...]:  # type: ignore[override]
        """Its parents."""
        return tuple(axis.var for axis in self.axes[:-1])

    @property
    def n_parameters(self) -> int:
        """Free numbers of the table on cells."""
        return self.on_cells.size // self.on_cells.shape[-1] * (self.on_cells.shape[-1] - 1)

    @classmethod
    def fit(
        cls,
        child: Var,
        parents: Sequence[Var],
        data: Any,
        *,
        cells: int | None = None,
        edge: str = "auto",
        floor: float = 1e-3,
        random_state: RandomState = 0,
    ) -> KernelConditional:
        """Learn it from the columns of a data frame (or a dict of columns), rows with gaps left out.

        With one parent this is an edge of `learn_tree`, with more (at most four) a mixture of conditional embeddings
        and regressions on the parents' product kernel; weights maximize the likelihood of left-out rows. `cells` is how
        many cells a variable has: by default 64, or as many as keep the table at 120,000 numbers.

        >>> from gramgraph.variables import Circle, Real, Var
        >>> rng = np.random.default_rng(0)
        >>> wind = rng.uniform(-np.pi, np.pi, 1000)
        >>> data = {"wind": wind, "power": np.cos(wind) + 0.1 * rng.normal(size=1000)}
        >>> w, p = Var("wind", Circle()), Var("power", Real())
        >>> power = KernelConditional.fit(p, (w,), data)
        >>> at = {w: np.array([[0.0], [0.0]]), p: np.array([[1.0], [-1.0]])}
        >>> bool(np.diff(power.log_density(at))[0] < -3.0)
        True
        """
        fit = learners().fit_kernel
        return fit(child, tuple(parents), data, cells=cells, edge=edge, floor=floor, random_state=random_state)  # type: ignore[no-any-return]

    @property
    def _masses(self) -> FloatArray:
        """Mass of the child's cells. Kernel networks, whose messages run on cells, take what samples put there."""
        return np.asarray(self.axes[-1].hat_masses if self.hats else self.axes[-1].q, dtype=np.float64)

    def ratio(self, family: Sequence[Placed]) -> FloatArray:
        """p(child | parents) / p(child) at rows, linear between the cells of all of them."""
        total = np.zeros(len(family[0].a))
        # Of the parents alone where densities integrate to one: the child's own would not.
        near = _nearness(family[:-1] if self.hats else family, len(total))
        q = self._masses
        for corner in product((0, 1), repeat=len(family)):
            index, weight = [], np.ones(len(total))
            for p, side in zip(family, corner, strict=True):
                index.append(p.b if side else p.a)
                weight = weight * (p.f if side else 1.0 - p.f)
            total += weight * self.on_cells[tuple(index)] / np.maximum(q[index[-1]], 1e-300)
        return np.maximum(1.0 + near * (total - 1.0), 1e-300)

    def log_density(self, values: Draws, /) -> FloatArray:
        """log p(child | parents) of every case."""
        child = self.axes[-1]
        if isinstance(child, PointAxis) and child.density is not None:
            base, shares = child.cell_densities(_given(child, values[child.var]))
            ratios = self._ratios(values, len(base))
            return np.asarray(base + np.log(np.maximum((ratios * shares).sum(axis=1), 1e-300)))
        columns = [_given(axis, values[axis.var]) for axis in self.axes]
        placed = [axis.place(column) for axis, column in zip(self.axes, columns, strict=True)]
        if isinstance(child, PointAxis):  # probabilities of points sum to one
            at = placed[-1] = child.exactly(columns[-1], placed[-1])
            base = np.log(child.q[at.a] * (1.0 - at.f) + child.q[at.b] * at.f)
            return np.asarray(np.log(self.ratio(placed)) + base)
        return np.log(self.ratio(placed)) + child.log_base(columns[-1])

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """A corner of every parent by its share, a cell of the child by its row, a value inside the cell."""
        at = []
        above = [axis.place(_given(axis, values[axis.var])) for axis in self.axes[:-1]]
        for p in above:
            at.append(np.where(rng.random(n) < p.f, p.b, p.a))
        rows = np.broadcast_to(self.on_cells[tuple(at)], (n, self.axes[-1].m))
        far = rng.random(n) >= _nearness(above, n)
        if far.any():
            rows = np.where(far[:, None], self.axes[-1].q, rows)
        cells = draw_states(rows, rng)
        if self.child.is_discrete:
            return cells
        child = self.axes[-1]
        if isinstance(child, PointAxis) and child.density is not None:
            return child.draw(cells, rng)
        drawn = inside(child, cells, rng)[0]
        return drawn[:, None] if isinstance(child, LineAxis) else drawn

    def laws(self, values: Draws, n: int, /) -> Laws:
        """Rows of the table for each case of the parents, then the child's cells and density at any points."""
        return KernelLaws(self.axes[-1], self._ratios(values, n))

    def _ratios(self, values: Draws, n: int) -> FloatArray:
        """p(cell | parents) by the mass of the cell for n cases of the parents, (n, m)."""
        return self.ratios_at([axis.place(_given(axis, values[axis.var])) for axis in self.axes[:-1]], n)

    def ratios_at(self, above: Sequence[Placed], n: int) -> FloatArray:
        """The same for parents on their cells."""
        rows = np.zeros((n, self.axes[-1].m))
        for corner in product((0, 1), repeat=len(above)):
            index, weight = [], np.ones(n)
            for p, side in zip(above, corner, strict=True):
                index.append(p.b if side else p.a)
                weight = weight * (p.f if side else 1.0 - p.f)
            rows += weight[:, None] * self.on_cells[tuple(index)]
        near = _nearness(above, n)[:, None]
        return np.asarray(near * rows / np.maximum(self._masses, 1e-300) + (1.0 - near))

    def support(self, values: Draws, /) -> dict[str, FloatArray]:
        """How near the values of every variable lie to its sample."""
        here = [axis for axis in self.axes if axis.var in values]
        return {axis.name: axis.place(_given(axis, values[axis.var])).near for axis in here}

    def faults(self) -> list[str]:
        """Tables that do not fit their cells, or whose rows are not distributions."""
        shape, name = tuple(axis.m for axis in self.axes), self.axes[-1].name
        if self.on_cells.shape != shape:
            return [f"the table of {name} does not fit its family: shape {self.on_cells.shape}, expected {shape}"]
        if not np.isfinite(self.on_cells).all() or (self.on_cells < 0.0).any():
            return [f"the table of {name} on cells has negative entries, or entries that are not finite"]
        off = float(np.abs(self.on_cells.sum(axis=-1) - 1.0).max())
        return [f"a row of the table of {name} on cells does not sum to one: it is off by {off:.3g}"] * (off > 1e-6)

    def fixed(self, axis: Axis, share: FloatArray) -> KernelConditional:
        """With one parent set to a value, which `share` spreads over the cells that it had."""
        k = [own.name for own in self.axes[:-1]].index(axis.name)
        if axis is self.axes[k]:
            return self
        table = np.expand_dims(np.tensordot(share, self.on_cells, axes=(0, k)), k)
        return replace(self, axes=(*self.axes[:k], axis, *self.axes[k + 1 :]), on_cells=table)

    def to_fields(self) -> dict[str, Any]:
        """Axes and table as plain lists."""
        axes = [axis.to_fields() for axis in self.axes]
        plain = [{**own, "arrays": {key: a.tolist() for key, a in arrays.items()}} for own, arrays in axes]
        numbers = {"table": self.on_cells.tolist(), "gain": self.gain, "parts": dict(self.parts), "hats": self.hats}
        return {**self._head(), "axes": plain, **numbers}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> KernelConditional:
        """The conditional that `to_fields` wrote."""
        axes = tuple(
            AXES[own["kind"]].from_fields(own, {key: np.asarray(a) for key, a in own["arrays"].items()})
            for own in fields["axes"]
        )
        table = np.asarray(fields["table"], dtype=np.float64)
        axes = tuple(axis.of_variable(variables.get(axis.name, axis.var)) for axis in axes)
        parts = {str(k): float(v) for k, v in fields["parts"].items()}
        return cls(axes, table, float(fields["gain"]), parts, bool(fields.get("hats", False)))


def _nearness(above: Sequence[Placed], n: int) -> FloatArray:
    """1 where all parents lie among the data, 0 where one is far away."""
    out = np.ones(n)
    for p in above:
        out = out * p.near
    return out


@dataclass(frozen=True, eq=False)
class KernelLaws:
    """p(y) times a ratio on the cells of y, one row for each case of the parents."""

    axis: Axis
    ratios: FloatArray  # (n, m)
    kinked: ClassVar[bool] = True  # values at nodes are to be compared with masses

    def log_density(self, y: FloatArray, /) -> FloatArray:
        """log p(y) + log of the ratio between the cells."""
        at = self.axis.place(y)
        ratio = self.ratios[:, at.a] * (1.0 - at.f) + self.ratios[:, at.b] * at.f
        return np.log(np.maximum(ratio, 1e-300)) + self.axis.log_base(y)

    def log_masses(self, low: FloatArray, high: FloatArray, /) -> FloatArray | None:
        """Integrals of p(y) times the ratio over boxes; where digits are lost, the density in the middle."""
        if not isinstance(self.axis, LineAxis) or self.axis.fixed is not None:
            return None
        ends = self.axis.mass_before(np.concatenate([low, high]))
        if self.axis.circle:  # a box may end where the circle closes, at the first point a turn later
            turn = np.asarray(high) > np.pi - 1e-9
            ends[len(low) :][turn] = self.axis.hat_masses
        hats = ends[len(low) :] - ends[: len(low)]
        found = self.ratios @ np.maximum(hats, 0.0).T
        with np.errstate(divide="ignore"):
            out = np.log(found)
        lost = hats.sum(axis=1) < 1e-9
        if lost.any():
            middle = 0.5 * (low[lost] + high[lost])
            out[:, lost] = self.log_density(middle) + np.log(high[lost] - low[lost])
        return np.asarray(out)

    def sharpness(self) -> tuple[FloatArray, FloatArray] | None:
        """Not known."""
        return None


def _given(axis: Axis, values: Any) -> Any:
    """A column as the axis reads it: codes of states become labels, a column of numbers has one axis."""
    array = np.asarray(values)
    if axis.var.is_discrete:
        return np.array(axis.var.states, dtype=object)[array]
    return array.reshape(len(array)) if array.ndim == 1 or array.shape[1] == 1 else list(array)
