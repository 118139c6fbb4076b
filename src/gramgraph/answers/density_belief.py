"""Beliefs about one number or angle, with a density for every case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gramgraph._validation import generator
from gramgraph.answers.real_belief import RealBelief
from gramgraph.answers.words import shares, tails
from gramgraph.cells.columns import values_of
from gramgraph.exceptions import VariableError
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Circle, Var


class Density(Protocol):
    """A density on the line or the circle: values on nodes (`Boxes`), or cut Gaussians (`Pieces`)."""

    def moments(self) -> tuple[float, float]:
        """Mean and variance."""

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X ≤ x)."""

    def density(self, x: FloatArray) -> FloatArray:
        """p(x)."""

    def quantile(self, q: FloatArray) -> FloatArray:
        """The value below which a share q lies."""

    def points(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Points, their masses and the density there, for integrals."""

    def mode(self) -> float:
        """Where the density is largest."""

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n values."""


class DensityBelief(RealBelief):
    """p(x | e) of a number or an angle, one density per case.

    `error` is the stated error of the mean, on nodes four times its difference to the answer with half as many.

    Parameters
    ----------
    var : the variable.
    cases : the density of each case.
    batched : whether it is a belief about a table of cases.
    error : stated error of the mean of each case, or None where it is exact.
    diagnostics : how the numbers were found, by name, or what makes it when it is asked for.

    Examples
    --------
    >>> from gramgraph.answers.boxes import Boxes
    >>> from gramgraph.variables import real
    >>> low, high = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    >>> belief = DensityBelief(real("x"), [Boxes(0.5 * (low + high), low, high, np.array([0.5, 0.5]))])
    >>> belief.mean(), belief.cdf(1.0), belief.density(0.75)
    (1.0, 0.5, 0.5)

    What remains of a Gaussian variable when something that is constant between thresholds was observed:

    >>> import gramgraph as gg
    >>> from gramgraph.tree_sum import Node, TreeSum
    >>> from gramgraph.variables import binary
    >>> x, s = real("x"), binary("s")
    >>> step = TreeSum.of([[Node(0, 0.0, 1, 2), Node(value=-40.0), Node(value=40.0)]])
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.Boosted(s, (x,), step)])
    >>> belief = net.query("x", {"s": "yes"})["x"]
    >>> round(belief.mean(), 6), round(belief.quantile(0.5), 6), round(belief.density(1.0), 6)
    (0.797885, 0.67449, 0.483941)
    """

    cases: tuple[Density, ...]
    error: FloatArray

    def __init__(
        self,
        var: Var,
        cases: Sequence[Density],
        *,
        batched: bool = False,
        error: FloatArray | None = None,  # (cases,)
        diagnostics: Mapping[str, Any] | None = None,
    ) -> None:
        self._hold(scope=(var,), cases=tuple(cases), batched=batched, diagnostics=diagnostics or {})
        self._hold(error=np.zeros(len(cases)) if error is None else error)

    @property
    def circle(self) -> bool:
        """Whether it is a belief about an angle."""
        return isinstance(self.scope[0].domain, Circle)

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        found = np.array([case.moments() for case in self.cases]).reshape(-1, 2)
        return found[:, :1], found[:, 1:, None]

    def _told(self, found: Sequence[float] | FloatArray) -> Any:
        """One number for each case, as the user sees it."""
        return np.array(found) if self.batched else float(found[0])

    def standard_error(self) -> Any:
        """The stated error of the mean."""
        return self._shaped(self.error[:, None])

    def mean_direction(self) -> Any:
        """The angle of E[exp(i x)], of a variable on the circle; `mean` is the same there."""
        self._need_circle("mean_direction()")
        return self.mean()

    def resultant_length(self) -> Any:
        """|E[exp(i x)]| in [0, 1], of a variable on the circle: 1 when it is certain, 0 when all angles are alike."""
        self._need_circle("resultant_length()")
        return self._told(np.exp(-0.5 * self._moments()[1][:, 0, 0]))

    def _need_circle(self, what: str) -> None:
        if not self.circle:
            name = self.scope[0].name
            raise VariableError(f"{what} needs an angle; write {name}{{circle}} if {name} is one")

    def density(self, x: Any) -> Any:
        """p(x | e); an array of points gives an array, with the cases in front."""
        at = np.asarray(x, dtype=np.float64)
        found = np.array([case.density(at.ravel()).reshape(at.shape) for case in self.cases])
        return found if self.batched else (float(found[0]) if at.ndim == 0 else found[0])

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x), for a table of cases one x for each; on the circle from −π on."""
        at = np.asarray(x, dtype=np.float64)
        if self.batched:
            points = np.broadcast_to(at, (len(self.cases),))
            return np.array([case.cdf(points[i : i + 1])[0] for i, case in enumerate(self.cases)])
        found = self.cases[0].cdf(at.ravel()).reshape(at.shape)
        return float(found) if at.ndim == 0 else found

    def quantile(self, q: Any) -> Any:
        """The value below which a share q lies; an array of q gives an array (last axis). On the circle from −π on."""
        levels = np.atleast_1d(shares(q))
        out = np.array([case.quantile(levels) for case in self.cases]).reshape(len(self.cases), len(levels))
        if np.ndim(q) == 0:
            return self._told(out[:, 0])
        return out if self.batched else out[0]

    def interval(self, level: float = 0.9) -> Any:
        """(lower, upper) with equal tails outside; of an angle the arc around its mean direction with this mass and
        equal tails, upper above lower (and perhaps above π)."""
        if not self.circle:
            return super().interval(level)
        out = np.array([_arc(case, tails(level)) for case in self.cases]).reshape(-1, 2)
        return out if self.batched else (float(out[0, 0]), float(out[0, 1]))

    def mode(self) -> Any:
        """Where the density is largest."""
        return self._told([case.mode() for case in self.cases])

    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """E[f(X)], by f at the nodes, or by the rule of Gauss and Legendre in each piece of a Gaussian."""
        return self._told([float(p @ values_of(f, x)) for x, p, _ in (case.points() for case in self.cases)])

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws of one case."""
        self._need_one_case("sample()")
        return self.cases[0].draw(n, generator(random_state))

    def _entropies(self) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = [(p, np.log(d)) for _, p, d in (case.points() for case in self.cases)]
            return np.array([-float(np.where(p == 0.0, 0.0, p * log).sum()) for p, log in logs])


def _arc(case: Density, shares: FloatArray) -> FloatArray:
    """Quantiles of angles that are counted from the opposite of their mean direction."""
    x, p, _ = case.points()
    center = case.moments()[0]
    off = np.mod(x - center + np.pi, 2.0 * np.pi) - np.pi
    order = np.argsort(off, kind="stable")
    total = np.cumsum(p[order]) - 0.5 * p[order]
    return np.asarray(center + np.interp(shares, total, off[order]))
