"""Beliefs about several variables on cells jointly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from gramgraph.answers import RealBelief
from gramgraph.answers.line_belief import LineBelief
from gramgraph.cells.axes import Axis, LineAxis
from gramgraph.cells.columns import column_of
from gramgraph.cells.drawing import inside
from gramgraph.exceptions import OptionError, VariableError, listing
from gramgraph.typing import Array, FloatArray, RandomState


class JointBelief(RealBelief):
    """p(x_1, …, x_k | e) of numbers, angles and categories in a tree: masses of all combinations of their cells.

    `mean`, `sd` and `cov` are those of the numbers, in the order of the names; angles have a mean direction, and no
    covariance. E[f] uses the mean of each cell.

    Parameters
    ----------
    axes : the cells of each variable.
    weights : masses of all combinations of cells, with the axis of cases first where there are many.
    batched : whether the first axis is that of cases.
    observed : what is known of each case, or None.
    diagnostics : how the numbers were found, by name, or what makes it when it is asked for.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 1500))
    >>> net = gg.learn_tree({"a": a, "c": a + b, "b": a - b}, edges=[("a", "c"), ("a", "b")])
    >>> both = net.query([("c", "b")])["c", "b"]
    >>> both.mean().shape, bool(both.cov()[0, 1] > 0.8), both.density([0.0, 0.0]) > 0.05
    ((2,), True, True)
    """

    axes: tuple[Axis, ...]
    weights: FloatArray
    _observed: dict[int, FloatArray]
    _tell: Callable[[Any], Mapping[str, Any]] | None

    def __init__(
        self,
        axes: Sequence[Axis],
        weights: FloatArray,  # (cases, m_1, …, m_k)
        *,
        batched: bool,
        observed: Mapping[int, FloatArray] | None = None,  # number in the joint → (cases,), NaN where it was not
        diagnostics: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        scope = tuple(axis.var if isinstance(axis, LineAxis) else axis.cell_var for axis in axes)
        self._hold(axes=tuple(axes), scope=scope, weights=weights, batched=batched)
        self._hold(_observed=dict(observed or {}), _tell=diagnostics)

    @cached_property
    def diagnostics(self) -> Mapping[str, Any]:  # type: ignore[override]
        """How far this belief can be trusted."""
        return {} if self._tell is None else self._tell(self)

    def marginal(self, k: int) -> FloatArray:
        """Masses of the cells of the k-th variable, (cases, m_k)."""
        return np.asarray(self.weights.sum(axis=tuple(i + 1 for i in range(len(self.axes)) if i != k)))

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        lines = [(k, axis) for k, axis in enumerate(self.axes) if isinstance(axis, LineAxis)]
        d = len(lines)
        mean, cov = np.zeros((len(self.weights), d)), np.zeros((len(self.weights), d, d))
        for i, (k, axis) in enumerate(lines):
            first, second = axis.moments(self.marginal(k))
            mean[:, i] = np.arctan2(second, first) if axis.circle else first
            length = np.minimum(np.hypot(first, second), 1.0) if axis.circle else np.ones(len(first))
            cov[:, i, i] = -2.0 * np.log(np.maximum(length, 1e-12)) if axis.circle else second**2
            for j, (other, its) in enumerate(lines[:i]):
                if not axis.circle and not its.circle:
                    cov[:, i, j] = cov[:, j, i] = self._product(other, k)
        for i, (k, _) in enumerate(lines):
            if k in self._observed:
                seen = ~np.isnan(self._observed[k])
                mean[seen, i] = self._observed[k][seen]
                cov[seen, i] = cov[seen, :, i] = 0.0
        return mean, cov

    def _product(self, i: int, k: int) -> FloatArray:
        """Covariance of two numbers, from the means of their cells."""
        first, second = self.axes[i], self.axes[k]
        assert isinstance(first, LineAxis) and isinstance(second, LineAxis)
        others = tuple(j + 1 for j in range(len(self.axes)) if j not in (i, k))
        P = self.weights.sum(axis=others)
        u, v = first.cell_moments[:, 0], second.cell_moments[:, 0]
        cross = np.einsum("cij,i,j->c", P, u, v) - (P.sum(axis=2) @ u) * (P.sum(axis=1) @ v)
        return np.asarray(cross * first.unit[1] * second.unit[1])

    def cov(self) -> FloatArray:
        """Covariance of the numbers, (d, d) or (cases, d, d)."""
        turning = [axis.name for axis in self.axes if isinstance(axis, LineAxis) and axis.circle]
        if turning:
            raise VariableError(f"{turning[0]} is an angle and has no covariance. Use expect(f) or sample(n) instead.")
        return super().cov()

    def density(self, x: Any) -> Any:
        """The joint density at a tuple (x_1, …, x_k), states by label; a list of tuples gives an array."""
        single = isinstance(x, tuple) or np.ndim(x[0]) == 0
        points = [tuple(x)] if single else [tuple(point) for point in x]
        if any(len(point) != len(self.axes) for point in points):
            names = listing(axis.name for axis in self.axes)
            raise OptionError(f"a point has one value for each of {names}; it was given {x!r}.")
        columns = [column_of([point[k] for point in points]) for k in range(len(self.axes))]
        placed = [axis.place(column) for axis, column in zip(self.axes, columns, strict=True)]
        total = np.zeros((len(self.weights), len(points)))
        ratio = self.weights / outer([axis.q for axis in self.axes])
        total_mass = ratio.reshape(len(ratio), -1) @ outer([axis.hat_masses for axis in self.axes]).ravel()
        ratio = ratio / total_mass.reshape(-1, *[1] * len(self.axes))
        for corner in product((0, 1), repeat=len(self.axes)):
            share = np.ones(len(points))
            at: list[Any] = [slice(None)]
            for p, side in zip(placed, corner, strict=True):
                share = share * (p.f if side else 1.0 - p.f)
                at.append(p.b if side else p.a)
            total += share * ratio[tuple(at)]
        base = sum(axis.log_base(column) for axis, column in zip(self.axes, columns, strict=True))
        total = total * np.exp(base)
        if single:
            return total[:, 0] if self.batched else float(total[0, 0])
        return total if self.batched else total[0]

    def expect(self, f: Callable[..., Any]) -> Any:
        """E[f(X_1, …, X_k)]; f takes one array a variable (the combinations of cells), with labels for states."""
        values = [_cell_values(axis) for axis in self.axes]
        grids = np.meshgrid(*values, indexing="ij")
        found = np.broadcast_to(np.asarray(f(*grids), dtype=np.float64), self.weights.shape[1:])
        out = self.weights.reshape(len(self.weights), -1) @ found.ravel()
        return out if self.batched else float(out[0])

    def mode(self) -> Any:
        """The values at the anchors with the largest joint density, a tuple (a list of them for many cases)."""
        heights = [_heights(axis) for axis in self.axes]
        ratio = self.weights / outer([axis.q for axis in self.axes]) * outer(heights)
        best = ratio.reshape(len(ratio), -1).argmax(axis=1)
        cells = np.stack(np.unravel_index(best, self.weights.shape[1:]), axis=1)
        found = [tuple(_anchor(axis, int(c)) for axis, c in zip(self.axes, row, strict=True)) for row in cells]
        return found if self.batched else found[0]

    def sample(self, n: int = 1, random_state: RandomState = None) -> Any:
        """n draws of one case, a data frame with one column a variable."""
        import pandas as pd

        self._need_one_case("sample()")
        rng = np.random.default_rng(random_state)
        P = self.weights[0].ravel() / self.weights[0].sum()
        cells = np.unravel_index(rng.choice(len(P), size=n, p=P), self.weights.shape[1:])
        drawn = [inside(axis, at.astype(np.int64), rng)[0] for axis, at in zip(self.axes, cells, strict=True)]
        return pd.DataFrame({axis.name: values for axis, values in zip(self.axes, drawn, strict=True)})

    def cdf(self, x: Any) -> Any:
        """Not defined for several variables."""
        self._need_scalar("cdf()")

    def quantile(self, q: Any) -> Any:
        """Not defined for several variables."""
        self._need_scalar("quantile()")

    def _entropies(self) -> FloatArray:
        P = self.weights / self.weights.reshape(len(self.weights), -1).sum(axis=1).reshape(-1, *[1] * len(self.axes))
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(P > 0.0, P * np.log(P / outer([axis.q for axis in self.axes])), 0.0)
        out = 0.0 - terms.reshape(len(P), -1).sum(axis=1)
        for k, axis in enumerate(self.axes):  # the density is that ratio times the marginals
            if isinstance(axis, LineAxis):
                out -= LineBelief(axis, self.marginal(k), batched=True).expect(axis.log_base)
            else:
                out -= self.marginal(k) @ np.log(axis.q)
        return np.asarray(out)

    @property
    def is_scalar(self) -> bool:  # type: ignore[override]
        """Never: also one number beside a category is shown as a component."""
        return False


def outer(parts: Sequence[FloatArray]) -> FloatArray:
    """The product of vectors, one axis for each."""
    out = np.ones(())
    for part in parts:
        out = np.multiply.outer(out, part)
    return np.asarray(out)


def _cell_values(axis: Axis) -> Array:
    """What stands for each cell: its mean, its middle on the circle, or its state."""
    if isinstance(axis, LineAxis):
        if axis.circle:
            return np.arctan2(axis.cell_moments[:, 1], axis.cell_moments[:, 0])
        center, width = axis.unit
        return np.asarray(center + width * axis.cell_moments[:, 0])
    return column_of([axis.value(i) for i in range(axis.m)])


def _heights(axis: Axis) -> FloatArray:
    return np.exp(axis.log_base(axis.grid_values[axis.anchors])) if isinstance(axis, LineAxis) else axis.q


def _anchor(axis: Axis, cell: int) -> Any:
    return float(axis.grid_values[axis.anchors[cell]]) if isinstance(axis, LineAxis) else axis.value(cell)
