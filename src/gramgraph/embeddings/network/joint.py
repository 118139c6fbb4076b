"""Beliefs about two or three variables jointly, and observations that are likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers import RealBelief
from gramgraph.answers.words import values_of
from gramgraph.embeddings.network.axes import Axis, LineAxis, Placed, StateAxis
from gramgraph.embeddings.network.base import CellModel
from gramgraph.embeddings.network.beliefs import LineBelief
from gramgraph.embeddings.network.messages import Branches, branches_of, propagate
from gramgraph.exceptions import BudgetError, OptionError, StateError, VariableError, listing
from gramgraph.typing import Array, FloatArray, RandomState

if TYPE_CHECKING:
    from gramgraph.embeddings.network.tree import KernelTree

__all__ = ["JointBelief", "Likelihood", "joint_masses", "likelihoods", "with_likelihoods"]

_MEMORY = 2e9
_CASES = 20_000  # configurations that are propagated at a time


class JointBelief(RealBelief):
    """p(x_1, …, x_k | e) of numbers, angles and categories in a tree: masses of all combinations of their cells.

    `mean`, `sd` and `cov` are those of the numbers, in the order of the names; angles have a mean direction, and no
    covariance. E[f] uses the mean of each cell.

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
    _tell: Callable[[Any], Mapping[str, Any]] | None

    def __init__(
        self,
        axes: Sequence[Axis],
        weights: FloatArray,  # (cases, m_1, …, m_k)
        *,
        batched: bool,
        diagnostics: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        self._hold(axes=tuple(axes), scope=tuple(axis.var for axis in axes), weights=weights)
        self._hold(batched=batched, _tell=diagnostics)

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
        columns = [_column([point[k] for point in points]) for k in range(len(self.axes))]
        placed = [axis.place(column) for axis, column in zip(self.axes, columns, strict=True)]
        total = np.zeros((len(self.weights), len(points)))
        ratio = self.weights / _outer([axis.q for axis in self.axes])
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
        ratio = self.weights / _outer([axis.q for axis in self.axes]) * _outer(heights)
        best = ratio.reshape(len(ratio), -1).argmax(axis=1)
        cells = np.stack(np.unravel_index(best, self.weights.shape[1:]), axis=1)
        found = [tuple(_anchor(axis, int(c)) for axis, c in zip(self.axes, row, strict=True)) for row in cells]
        return found if self.batched else found[0]

    def sample(self, n: int = 1, random_state: RandomState = None) -> Any:
        """n draws of one case, a data frame with one column a variable."""
        import pandas as pd

        from gramgraph.embeddings.network.drawing import _inside

        self._need_one_case("sample()")
        rng = np.random.default_rng(random_state)
        P = self.weights[0].ravel() / self.weights[0].sum()
        cells = np.unravel_index(rng.choice(len(P), size=n, p=P), self.weights.shape[1:])
        drawn = [_inside(axis, at.astype(np.int64), rng)[0] for axis, at in zip(self.axes, cells, strict=True)]
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
            terms = np.where(P > 0.0, P * np.log(P / _outer([axis.q for axis in self.axes])), 0.0)
        out = 0.0 - terms.reshape(len(P), -1).sum(axis=1)
        for k, axis in enumerate(self.axes):  # the density is that ratio times the marginals
            if isinstance(axis, LineAxis):
                out -= LineBelief(axis, self.marginal(k), batched=True).expect(axis.log_base)
            else:
                out -= self.marginal(k) @ np.log(axis.q)
        return np.asarray(out)

    @property
    def _scalar(self) -> bool:  # type: ignore[override]
        return False  # also one number beside a category is shown as a component


def _outer(parts: Sequence[FloatArray]) -> FloatArray:
    out = np.ones(())
    for part in parts:
        out = np.multiply.outer(out, part)
    return np.asarray(out)


def _column(values: Sequence[Any]) -> Array:
    out: Array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # values may be vectors
        out[i] = value
    return out


def _cell_values(axis: Axis) -> Array:
    """What stands for each cell: its mean, its middle on the circle, or its state."""
    if isinstance(axis, LineAxis):
        if axis.circle:
            return np.arctan2(axis.cell_moments[:, 1], axis.cell_moments[:, 0])
        center, width = axis.unit
        return np.asarray(center + width * axis.cell_moments[:, 0])
    return _column([axis.value(i) for i in range(axis.m)])


def _heights(axis: Axis) -> FloatArray:
    return np.exp(axis.log_base(axis.grid_values[axis.anchors])) if isinstance(axis, LineAxis) else axis.q


def _anchor(axis: Axis, cell: int) -> Any:
    return float(axis.grid_values[axis.anchors[cell]]) if isinstance(axis, LineAxis) else axis.value(cell)


def joint_masses(
    net: KernelTree, tree: Branches, placed: Mapping[int, Placed], cases: int, targets: Sequence[int]
) -> FloatArray:
    """p(cells of the targets | e), (cases, m_1, …, m_k): all but the last are set to each of their combinations.

    Cost: one propagation of Π m_i cases, over all targets but the last, for every case.
    """
    sizes = [net.axes[v].m for v in targets]
    given, last = targets[:-1], targets[-1]
    every = np.indices(sizes[:-1]).reshape(len(given), -1)  # (k − 1, combinations)
    need = 8.0 * cases * float(np.prod(sizes, dtype=float))
    if need > _MEMORY:
        raise BudgetError(
            f"the joint of {len(targets)} variables takes {need / 1e9:.3g} GB; allowed are {_MEMORY / 1e9:.3g}.",
            bytes=need,
            remedies=["fewer variables or cases at a time", "learn_tree(…, cells=…)", "net.sample(n, evidence)"],
        )
    out = np.empty((cases, every.shape[1], sizes[-1]))
    prior = _outer([net.axes[v].q for v in given]).ravel()
    for i in range(cases):
        logs = np.empty(every.shape[1])
        for start in range(0, every.shape[1], _CASES):
            block = every[:, start : start + _CASES]
            n = block.shape[1]
            here = {v: p.take(np.full(n, i)) for v, p in placed.items()}
            for v, cells in zip(given, block, strict=True):
                here[v] = Placed(cells, cells, np.zeros(n), np.ones(n), np.ones(n, dtype=bool))
            found, logs[start : start + n] = propagate(tree, here, n, [last])
            out[i, start : start + n] = np.nan_to_num(found[last])
        scale = np.exp(logs - logs.max()) * prior
        out[i] *= scale[:, None]
        out[i] /= max(float(out[i].sum()), 1e-300)
    return out.reshape(cases, *sizes)


# ------------------------------------------------------------------------------------------ likelihoods


class Likelihood:
    """p(observation | x) on the cells of one variable, largest value one, and the logarithm of that value."""

    def __init__(self, values: FloatArray, log_scale: float) -> None:
        self.values, self.log_scale = values, log_scale


def likelihoods(net: CellModel, given: Mapping[str, Any] | None) -> dict[int, Likelihood]:
    """Virtual evidence by position: of numbers a function, of categories weights by label or in order."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OptionError(f"virtual_evidence is a dict, name → likelihood; it is a {type(given).__name__}.")
    out = {}
    for name, how in given.items():
        axis = net.axis(name)
        values = _line_weights(axis, how) if isinstance(axis, LineAxis) else _state_weights(axis, how)
        if values.shape != (axis.m,) or not np.isfinite(values).all() or (values < 0.0).any() or not values.any():
            raise OptionError(f"the likelihood of {name!r} must be finite, not negative, and above 0 somewhere.")
        out[net.index(name)] = Likelihood(values / values.max(), float(np.log(values.max())))
    return out


def _line_weights(axis: LineAxis, how: Any) -> FloatArray:
    if not callable(how):
        raise OptionError(
            f"the likelihood of {axis.name!r}, a number, is a function of x: "
            f"virtual_evidence={{{axis.name!r}: lambda x: np.exp(-0.5 * (x - 1.0) ** 2)}}."
        )
    return axis.average(values_of(how, axis.grid_values))[1] / axis.q


def _state_weights(axis: Axis, how: Any) -> FloatArray:
    if callable(how):
        return np.array([float(how(axis.value(i))) for i in range(axis.m)])
    if isinstance(how, Mapping):
        out = np.zeros(axis.m)
        for state, weight in how.items():
            out[axis.var.index(state)] = float(weight)
        return out
    weights = np.asarray(how, dtype=np.float64)
    if weights.shape != (axis.m,):
        shown = f" States: {listing(axis.states)}." if isinstance(axis, StateAxis) else ""
        raise StateError(f"the likelihood of {axis.name!r} has shape {weights.shape}, expected ({axis.m},).{shown}")
    return weights


def with_likelihoods(
    net: KernelTree, found: Mapping[int, Likelihood], placed: Mapping[int, Placed], cases: int
) -> tuple[Branches, dict[int, Placed], float]:
    """The tree with one observed leaf a likelihood, its evidence, and the log probability of the leaves by themselves.

    A leaf has two cells, heard and not heard; p(heard | x) is the likelihood, so that all messages stay the same.
    """
    if not found:
        return net._branches, dict(placed), 0.0
    q = [np.asarray(axis.q) for axis in net.axes]
    links = [(net._index[e.x], net._index[e.y], e.R) for e in net.edge_list]
    observed, log_p = dict(placed), 0.0
    zero = np.zeros(cases, dtype=np.int64)
    for v, likelihood in found.items():
        p = float(q[v] @ likelihood.values)
        heard = np.stack([likelihood.values / p, np.zeros(len(q[v]))], axis=1)  # the second cell is never asked for
        links.append((v, len(q), heard))
        observed[len(q)] = Placed(zero, zero, np.zeros(cases), np.ones(cases), np.ones(cases, dtype=bool))
        q.append(np.array([p, 1.0 - p]))
        log_p += float(np.log(p)) + likelihood.log_scale
    return branches_of(q, links), observed, log_p
