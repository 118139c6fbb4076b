"""What beliefs about real-valued variables have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph import _show
from gramgraph._pictures import pictures
from gramgraph.answers.configurations import configuration_frame, configuration_text, is_mixed
from gramgraph.answers.frozen import Frozen
from gramgraph.answers.words import need_one_case, need_scalar, tails, unit
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var


class RealBelief(Frozen, ABC):
    """p(X | evidence) of a real-valued variable, or of several jointly; of one case, or of many (first axis).

    `mean()` and `var()` are numbers for a scalar variable, arrays with one entry per component for vectors and joints;
    for a table of cases they have the cases in front.

    Examples
    --------
    >>> import gramgraph as gg
    >>> belief = gg.BayesianNetwork("x{real}", cpds={"x": (1.0, 2.0)}).query("x")["x"]
    >>> isinstance(belief, RealBelief), belief.mean(), belief.sd(), round(belief.quantile(0.975), 2)
    (True, 1.0, 2.0, 4.92)
    """

    scope: tuple[Var, ...]
    batched: bool
    diagnostics: Mapping[str, Any]

    # ------------------------------------------------------------------------------------------ what kinds give

    @abstractmethod
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Means (cases, d) and covariances (cases, d, d)."""

    @abstractmethod
    def cdf(self, x: Any) -> Any:
        """P(X ≤ x) of a scalar variable; x is a number or an array (for many cases: one entry per case)."""

    @abstractmethod
    def density(self, x: Any) -> Any:
        """The density at x: numbers for a scalar variable, rows of components for several."""

    @abstractmethod
    def quantile(self, q: Any) -> Any:
        """The value below which a share q lies, of a scalar variable; an array of q gives an array (last axis)."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws: (n,) of a scalar variable, else (n, d); of one case."""

    @abstractmethod
    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """E[f(X)] of one case; f takes an array of values (n,), or (n, d), and returns n numbers."""

    @abstractmethod
    def mode(self) -> Any:
        """Where the density is largest."""

    @abstractmethod
    def _entropies(self) -> FloatArray:
        """−∫ p log p of every case, in nats."""

    # ------------------------------------------------------------------------------------------ derived

    @property
    def dimension(self) -> int:
        """Number of real components."""
        return sum(var.dimension for var in self.scope if not var.is_discrete)

    @cached_property
    def is_scalar(self) -> bool:
        """Whether this is about one number."""
        reals = [var for var in self.scope if not var.is_discrete]
        return len(reals) == 1 and reals[0].dimension == 1

    def _shaped(self, values: FloatArray) -> Any:
        """(cases, d) as the user sees it."""
        if self.is_scalar:
            values = values[:, 0]
        if self.batched:
            return values
        return float(values[0]) if self.is_scalar else values[0]

    def mean(self) -> Any:
        """E[X]."""
        return self._shaped(self._moments()[0])

    def var(self) -> Any:
        """Variance of each component."""
        return self._shaped(np.diagonal(self._moments()[1], axis1=1, axis2=2).copy())

    def sd(self) -> Any:
        """Standard deviation of each component."""
        return self._shaped(np.sqrt(np.diagonal(self._moments()[1], axis1=1, axis2=2)))

    def cov(self) -> FloatArray:
        """Covariance of the components, (d, d) or (cases, d, d)."""
        found = self._moments()[1]
        return found if self.batched else found[0]

    def prob(self, low: Any = -np.inf, high: Any = np.inf) -> Any:
        """P(low < X ≤ high) of a scalar variable; `prob(high=x)` is the distribution function.

        >>> import gramgraph as gg
        >>> belief = gg.BayesianNetwork("x{real}", cpds={"x": (0.0, 1.0)}).query("x")["x"]
        >>> round(belief.prob(-1.0, 1.0), 4), belief.prob(0.0)
        (0.6827, 0.5)
        """
        self._need_scalar("prob()")
        return self._below(high) - self._below(low)

    def _below(self, x: Any) -> Any:
        """P(X ≤ x), also at ±inf."""
        at = np.asarray(x, dtype=np.float64)
        if at.ndim == 0 and np.isinf(at):
            return float(at > 0)
        return self.cdf(x)

    def entropy(self, *, base: float | None = None) -> Any:
        """−∫ p log p, in nats (`base=2`: bits): below 0 for a narrow density, −inf where a value is certain.

        >>> import gramgraph as gg
        >>> belief = gg.BayesianNetwork("x{real}", cpds={"x": (0.0, 1.0)}).query("x")["x"]
        >>> round(belief.entropy(), 4)
        1.4189
        """
        found = self._entropies() / unit(base)
        return found if self.batched else float(found[0])

    def interval(self, level: float = 0.9) -> Any:
        """(lower, upper) of a scalar variable, with equal tails outside; for many cases an array (cases, 2)."""
        self._need_scalar("interval()")
        found = self.quantile(tails(level))
        return found if self.batched else (float(found[0]), float(found[1]))

    def _need_scalar(self, what: str) -> None:
        need_scalar(what, self.scope, self.is_scalar)

    def _need_one_case(self, what: str) -> None:
        need_one_case(what, self.batched)

    def _components(self) -> list[str]:
        """Names of the components: x, or x[0], x[1], … of a vector."""
        out = []
        for var in self.scope:
            if not var.is_discrete:
                k = var.dimension
                out += [var.name] if k == 1 else [f"{var.name}[{i}]" for i in range(k)]
        return out

    def to_frame(self) -> Any:
        """A DataFrame: one row per component with mean and sd; for a table of cases pairs of columns.

        A joint with discrete variables has a row for each of their configurations too, with state and probability.
        """
        import pandas as pd

        if is_mixed(self) and not self.batched:
            return configuration_frame(self)  # type: ignore[arg-type]
        names = self._components()
        mean, cov = self._moments()
        sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
        if not self.batched:
            return pd.DataFrame({"variable": names, "mean": mean[0], "sd": sd[0]})
        columns = pd.MultiIndex.from_product([names, ["mean", "sd"]], names=["variable", "value"])
        table = np.stack([mean, np.broadcast_to(sd, mean.shape)], axis=2).reshape(len(mean), 2 * len(names))
        return pd.DataFrame(table, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """`mean` and `sd` as plain numbers, or as lists with one entry per component (or a case)."""
        mean, sd = self.mean(), self.sd()
        return {"mean": np.asarray(mean).tolist(), "sd": np.asarray(sd).tolist()}

    def plot(self, ax: Any = None) -> Any:
        """The density of a scalar variable, or ellipses of two components; the axes are returned."""
        return pictures().plot_density(self, ax=ax)

    def _lines(self) -> list[tuple[str, ...]]:
        """Rows of text: component, mean, sd, 90 % interval."""
        mean, cov = self._moments()
        rows: list[tuple[str, ...]] = []
        for i, name in enumerate(self._components()):
            low, high = self.interval(0.9) if self.is_scalar else (np.nan, np.nan)
            ends = f"[{low:.5g}, {high:.5g}]" if self.is_scalar else ""
            rows.append((_show.clean(name), f"{mean[0, i]:.6g}", f"{np.sqrt(max(cov[0, i, i], 0.0)):.4g}", ends))
        return rows

    def __repr__(self) -> str:
        if self.batched:
            name = _show.clean(", ".join(var.name for var in self.scope))
            return f"Belief of {name} in {len(self._moments()[0])} cases: .to_frame() shows them"
        if is_mixed(self):
            return configuration_text(self)  # type: ignore[arg-type]
        return _show.text_table(("", "mean", "sd", "90 %"), self._lines(), right=range(1, 3))

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())
