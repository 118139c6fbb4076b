"""One step of Gibbs sampling: a variable is drawn given all others, in many chains at once.

Discrete variables and linear-Gaussian ones are drawn from their full conditional; any other real variable makes a
slice-sampling move that leaves its full conditional unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, ConditionalLinearGaussian, LinearGaussian
from gramgraph.conditionals.continuous import draw_states, log_density
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Circle, Var

#: Values of every variable in all chains; a step replaces those of its own.
States = dict[Var, Array]
Linear = (LinearGaussian, ConditionalLinearGaussian)
_MOST_STEPS = 8  # widths by which a slice is stepped out, at most
_MOST_SHRINKS = 100


class Step:
    """A move of one variable that leaves p(variable | the others) unchanged."""

    exact = True  # whether it is an independent draw from the full conditional

    def __init__(self, var: Var, parts: list[Conditional]) -> None:
        self.var, self.parts = var, parts

    def move(self, values: States, n: int, rng: np.random.Generator) -> None:
        """Replace `values[var]` of all n chains."""
        raise NotImplementedError

    def adapt(self, values: States) -> None:
        """Look at the chains once, at the end of the burn-in."""


class DiscreteStep(Step):
    """p(state | others) ∝ the product of the conditionals around the variable, for each of its states."""

    def move(self, values: States, n: int, rng: np.random.Generator) -> None:
        """A draw from the full conditional. O(states × parts)."""
        k = self.var.size
        scope = dict.fromkeys(var for part in self.parts for var in part.scope)
        every: States = {var: np.repeat(values[var], k, axis=0) for var in scope}
        every[self.var] = np.tile(np.arange(k), n)
        logs = np.zeros((n, k))
        for part in self.parts:
            logs += log_density(part, every).reshape(n, k)
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        values[self.var] = draw_states(p, rng)


class GaussianStep(Step):
    """x | others of a linear-Gaussian variable with linear-Gaussian children: N(Λ⁻¹ h, Λ⁻¹) with
    Λ = S⁻¹ + Σ Wᵀ S_c⁻¹ W and h = S⁻¹ m + Σ Wᵀ S_c⁻¹ (y_c − the rest of its mean)."""

    def __init__(self, var: Var, parts: list[Conditional]) -> None:
        super().__init__(var, parts)
        self.inverse: list[FloatArray] = []
        self.columns: list[slice] = []
        for part in parts:
            linear: Any = part
            low = np.linalg.eigvalsh(linear.covariance)[..., 0]
            if not (low > 0.0).all():
                raise without_noise(part)
            self.inverse.append(np.linalg.inv(linear.covariance))
            start = 0
            for parent in linear.real_parents:
                if parent == var:
                    break
                start += parent.dimension
            self.columns.append(slice(start, start + var.dimension))

    def move(self, values: States, n: int, rng: np.random.Generator) -> None:
        """A draw from the full conditional. O(parts × dimension³)."""
        k = self.var.dimension
        x = np.asarray(values[self.var])
        P, h = np.zeros((n, k, k)), np.zeros((n, k))
        for part, inverse, columns in zip(self.parts, self.inverse, self.columns, strict=True):
            linear: Any = part
            rows = linear._rows(values)
            R = inverse[rows]
            mean = linear.mean(values, n)
            if part.child == self.var:
                P += R
                h += (R @ mean[..., None])[..., 0]
                continue
            W = linear.coefficients[rows][..., columns]
            rest = np.asarray(values[part.child]) - mean + (W @ x[..., None])[..., 0]
            weighted = np.swapaxes(W, -1, -2) @ R
            P += weighted @ W
            h += (weighted @ rest[..., None])[..., 0]
        z = rng.standard_normal((n, k))
        if k == 1:
            p = P[:, 0]
            values[self.var] = h / p + z / np.sqrt(p)
            return
        L = np.linalg.cholesky(P)
        half = np.linalg.solve(L, h[..., None])[..., 0] + z
        values[self.var] = np.linalg.solve(np.swapaxes(L, 1, 2), half[..., None])[..., 0]


class SliceStep(Step):
    """Slice sampling, one component after the other: the height is drawn below the density, an interval is stepped out
    from the point in widths, and shrunk until a point above the height is found (Neal, 2003)."""

    exact = False

    def __init__(self, var: Var, parts: list[Conditional]) -> None:
        super().__init__(var, parts)
        self.width = np.ones(var.dimension)

    def adapt(self, values: States) -> None:
        """Widths of two standard deviations over the chains."""
        spread = np.asarray(values[self.var], dtype=np.float64).std(axis=0)
        self.width = np.where(spread > 0, 2.0 * spread, self.width)

    def move(self, values: States, n: int, rng: np.random.Generator) -> None:
        """One move for each component. About ten evaluations of the parts each."""
        for j in range(self.var.dimension):
            x = np.array(values[self.var], dtype=np.float64)

            def log_f(at: FloatArray, x: FloatArray = x, j: int = j) -> FloatArray:
                moved = x.copy()
                moved[:, j] = at
                around = {**values, self.var: moved}
                with np.errstate(all="ignore"):
                    total = np.sum([log_density(part, around) for part in self.parts], axis=0)
                return np.where(np.isnan(total), -np.inf, total)

            x[:, j] = slice_move(log_f, x[:, j].copy(), float(self.width[j]), rng)
            if isinstance(self.var.domain, Circle):
                x[:, j] = np.mod(x[:, j] + np.pi, 2.0 * np.pi) - np.pi
            values[self.var] = x


def slice_move(
    log_f: Callable[[FloatArray], FloatArray], x: FloatArray, width: float, rng: np.random.Generator
) -> FloatArray:
    """New points of many independent chains on the line, whose log densities `log_f` gives.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(4000)
    >>> for _ in range(5):
    ...     x = slice_move(lambda at: -0.5 * at**2, x, 2.0, rng)
    >>> bool(abs(x.mean()) < 0.06), bool(abs(x.std() - 1.0) < 0.05)
    (True, True)
    """
    n = len(x)
    height = log_f(x) - rng.exponential(size=n)
    low = x - width * rng.random(n)
    high = low + width
    left = np.floor(_MOST_STEPS * rng.random(n))
    right = _MOST_STEPS - 1 - left
    for end, count, sign in ((low, left, -1.0), (high, right, 1.0)):
        out = (count > 0) & (log_f(end) > height)
        while out.any():
            end[out] += sign * width
            count[out] -= 1
            out &= count > 0
            if out.any():
                out &= log_f(end) > height
    new, open_ = x.copy(), np.ones(n, bool)
    for _ in range(_MOST_SHRINKS):
        tried = low + (high - low) * rng.random(n)
        good = open_ & (log_f(np.where(open_, tried, x)) > height)
        new[good] = tried[good]
        open_ &= ~good
        if not open_.any():
            break
        below = tried < x
        low = np.where(open_ & below, tried, low)
        high = np.where(open_ & ~below, tried, high)
    return new


class PrecisionStep(Step):
    """A component of an undirected Gaussian model: x_i | others = N(μ_i − Σ_j P_ij (x_j − μ_j) / P_ii, 1 / P_ii)."""

    def __init__(self, row: int, P: Any, mean: FloatArray) -> None:  # no conditionals take part
        self.row, self.mean = row, mean
        start, stop = P.indptr[row], P.indptr[row + 1]
        at: IntArray = P.indices[start:stop]
        weights = P.data[start:stop]
        self.others, self.weights = at[at != row], weights[at != row]
        self.precision = float(weights[at == row][0])

    def draw(self, X: FloatArray, rng: np.random.Generator) -> None:
        """Replace the component in all chains, X (chains, components)."""
        pull = (X[:, self.others] - self.mean[self.others]) @ self.weights
        noise = rng.standard_normal(len(X)) / np.sqrt(self.precision)
        X[:, self.row] = self.mean[self.row] - pull / self.precision + noise


def without_noise(part: Conditional) -> ModelError:
    """What is said where a variable is a function of its parents."""
    return ModelError(
        f"{part.child.name} is a function of its parents without noise: chains cannot move around it, and it has no "
        "mode. Ask with an exact engine or engine='likelihood_weighting', or give it a small variance"
    )


def steps_of(model: Any, hidden: list[int]) -> list[Step]:
    """The move of each hidden variable: an exact draw where there is a closed form."""
    children: dict[Var, list[Conditional]] = {var: [] for var in model.vars}
    for part in model.conditionals:
        for parent in dict.fromkeys(part.parents):
            children[parent].append(part)
    out: list[Step] = []
    for v in hidden:
        var = model.vars[v]
        parts = [model.conditionals[v], *children[var]]
        if var.is_discrete:
            out.append(DiscreteStep(var, parts))
        elif all(isinstance(part, Linear) for part in parts):
            out.append(GaussianStep(var, parts))
        else:
            for part in parts:
                if isinstance(part, Linear) and not (np.linalg.eigvalsh(part.covariance)[..., 0] > 0).all():
                    raise without_noise(part)
            out.append(SliceStep(var, parts))
    return out
