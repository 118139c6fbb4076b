"""Beliefs about variables with states: probabilities of one variable, or of several jointly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from gramgraph import _show
from gramgraph._pictures import pictures
from gramgraph._validation import generator
from gramgraph.answers.frozen import Frozen
from gramgraph.answers.words import need_one_case, need_scalar, shares, tails, unit
from gramgraph.exceptions import StateError, VariableError, listing
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var


class Belief(Frozen):
    """p(X | evidence) for one variable, or for several jointly; of one case, or of many (first axis).

    `probabilities` has shape (*states,) for one case and (cases, *states) for a table of cases.

    Parameters
    ----------
    scope : the variables.
    probabilities : (*states,), or (cases, *states).
    batched : whether the first axis is that of cases.
    index : labels of the cases, as the frame had them.
    points : what the states stand for: vectors, directions, sets, strings.
    directions : whether the points have length one, and so has their mean.
    diagnostics : what makes `diagnostics` when it is asked for.
    axis : the cells that the states stand for, where they are parts of a line or a circle.

    Examples
    --------
    >>> import gramgraph as gg
    >>> belief = gg.datasets.asia().query("lung", {"smoke": "yes"})["lung"]
    >>> belief.to_dict()
    {'no': 0.9, 'yes': 0.1}
    >>> belief.prob("yes"), belief.mode()
    (0.1, 'no')
    """

    scope: tuple[Var, ...]
    probabilities: FloatArray
    batched: bool = False
    index: Any = None  # of the table of cases, for to_frame
    points: tuple[Any, ...] | None = None  # what the states stand for: vectors, directions, sets, strings
    directions: bool = False  # the points have length one, and so has their mean
    _axis: Any = None  # cells that have a density

    def __init__(
        self,
        scope: tuple[Var, ...],
        probabilities: FloatArray,
        *,
        batched: bool = False,
        index: Any = None,
        points: tuple[Any, ...] | None = None,
        directions: bool = False,
        axis: Any = None,
        diagnostics: Callable[[Belief], Mapping[str, Any]] | None = None,
    ) -> None:
        self._hold(scope=scope, probabilities=probabilities, batched=batched, index=index)
        self._hold(points=points, directions=directions, _axis=axis, _tell=diagnostics)

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """How far this belief can be trusted, where a model knows; else empty."""
        tell = self.__dict__.get("_tell")
        return {} if tell is None else dict(tell(self))

    @property
    def states(self) -> tuple[str, ...]:
        """Labels of the variable's states (of a single variable)."""
        if len(self.scope) != 1:
            raise VariableError("a joint belief has the states of each variable: use .scope")
        return self.scope[0].states

    def prob(self, *states: Any) -> float | FloatArray:
        """Probability of one state (of one state per variable, for a joint)."""
        if len(states) != len(self.scope):
            raise StateError(f"one state for each of {', '.join(v.name for v in self.scope)} is needed")
        index = tuple(var.index(state) for var, state in zip(self.scope, states, strict=True))
        at: tuple[Any, ...] = (..., *index)
        value = self.probabilities[at]
        return value if self.batched else float(value)

    def to_dict(self) -> dict[Any, Any]:
        """State → probability (tuple of states → probability, for a joint)."""
        if len(self.scope) == 1:
            values = self.probabilities.T.tolist() if not self.batched else list(self.probabilities.T)
            return dict(zip(self.states, values, strict=True))
        return {
            tuple(var.states[i] for var, i in zip(self.scope, index, strict=True)): (
                self.probabilities[(..., *index)] if self.batched else float(self.probabilities[index])
            )
            for index in np.ndindex(*(var.size for var in self.scope))
        }

    # ------------------------------------------------------------------------------------------ numbers

    @cached_property
    def _values(self) -> list[Any]:
        """What stands for the states of each variable: an array of numbers (of vectors), or a list of labels."""
        out: list[Any] = []
        for var in self.scope:
            try:
                found = np.array(var.states if self.points is None else self.points, dtype=np.float64)
            except (TypeError, ValueError):  # texts, or sets
                found = np.array([np.nan])
            labels = list(var.states if self.points is None else self.points)
            out.append(found if np.isfinite(found).all() else labels)
        return out

    def _numbers(self, what: str) -> list[FloatArray]:
        for var, values in zip(self.scope, self._values, strict=True):
            if isinstance(values, list):
                shown = listing(map(str, values), 4)
                raise VariableError(
                    f"{what} needs numbers; the states of {var.name} are {shown}. Use mode() or expect(f) instead"
                )
        return self._values

    def _one_scale(self, what: str) -> FloatArray:
        """The numbers of the only variable."""
        need_scalar(what, self.scope, len(self.scope) == 1)
        (values,) = self._numbers(what)
        need_scalar(what, self.scope, values.ndim == 1)
        return np.asarray(values)

    @property
    def _table(self) -> FloatArray:
        """(cases, *states)."""
        return self.probabilities if self.batched else self.probabilities[None]

    def _shaped(self, values: FloatArray) -> Any:
        """(cases, …) as the user sees it."""
        if self.batched:
            return values
        return float(values[0]) if values.ndim == 1 else values[0]

    def _moments(self, what: str) -> tuple[FloatArray, FloatArray]:
        """Means and variances, (cases,) of a number, (cases, d) of several."""
        means, variances = [], []
        for i, values in enumerate(self._numbers(what)):
            p = self._table.sum(axis=tuple(j + 1 for j in range(len(self.scope)) if j != i))
            x = values.reshape(len(values), -1)
            mean = p @ x
            means.append(mean)
            variances.append(np.einsum("cs,csd->cd", p, (x[None] - mean[:, None]) ** 2))
        mean, var = np.concatenate(means, axis=1), np.concatenate(variances, axis=1)
        single = len(self.scope) == 1 and self._values[0].ndim == 1
        return (mean[:, 0], var[:, 0]) if single else (mean, var)

    def mean(self) -> Any:
        """E[X], where the states are numbers: of a joint one entry per variable; of directions the mean direction.

        >>> import gramgraph as gg
        >>> dice = gg.BayesianNetwork("die{1|2|3|4|5|6}", cpds={"die": [1 / 6] * 6}).query("die")["die"]
        >>> round(dice.mean(), 2), round(dice.var(), 2), dice.quantile(0.9), dice.interval(0.5)
        (3.5, 2.92, 6.0, (2.0, 5.0))
        """
        mean = self._moments("mean()")[0]
        if self.directions:
            mean = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        return self._shaped(mean)

    def var(self) -> Any:
        """Variance, where the states are numbers: of a joint one entry per variable."""
        if self.directions:
            raise VariableError("var() needs numbers; these are directions. Use expect(f) instead")
        return self._shaped(self._moments("var()")[1])

    def sd(self) -> Any:
        """Standard deviation, √var."""
        found = np.sqrt(self.var())
        return found if np.ndim(found) else float(found)

    def quantile(self, q: Any) -> Any:
        """The smallest state at or below which a share q lies, of a variable whose states are numbers."""
        values = self._one_scale("quantile()")
        share = shares(q)
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self._table[:, order], axis=1)[:, None, :] < share.reshape(1, -1, 1) * (1 - 1e-15)
        at = np.minimum(below.sum(axis=2), len(values) - 1)
        found = values[order][at]
        return self._shaped(found[:, 0] if share.ndim == 0 else found)

    def interval(self, level: float = 0.9) -> Any:
        """(lower, upper) with equal tails outside, where the states are numbers; for many cases an array (cases, 2)."""
        self._one_scale("interval()")
        found = self.quantile(tails(level))
        return found if self.batched else (float(found[0]), float(found[1]))

    def expect(self, f: Callable[..., Any] | Mapping[Any, float]) -> Any:
        """E[f(X)], f a function of the state, or a dict from states to numbers; of a joint of one state per variable.

        A state is a number where all states of the variable are, else its label.

        >>> import gramgraph as gg
        >>> belief = gg.datasets.asia().query("lung", {"smoke": "yes"})["lung"]
        >>> round(belief.expect({"no": 0.0, "yes": 50.0}), 6), round(belief.expect(lambda s: s == "yes"), 6)
        (5.0, 0.1)
        """
        if isinstance(f, Mapping):
            states = self._labels() if self.points is None else list(self.points)
            values = np.array([float(f[state]) for state in states])
        else:
            axes = [v.tolist() if not isinstance(v, list) and v.ndim == 1 else list(v) for v in self._values]
            values = np.array([float(f(*state)) for state in product(*axes)])
        return self._shaped(self._table.reshape(len(self._table), -1) @ values)

    def density(self, x: Any) -> Any:
        """The density at points, of vectors and directions with a kernel density; states have probabilities, no
        density: an error that says so."""
        if self._axis is not None:
            X = np.atleast_2d(np.asarray(x, dtype=np.float64))
            base, shares = self._axis.cell_densities(X)
            found = np.exp(base) * (shares @ (self.probabilities / np.maximum(self._axis.q, 1e-300)).T).T
            return float(found[0]) if np.ndim(x) == 1 and not self.batched else found
        names = ", ".join(var.name for var in self.scope)
        raise VariableError(f"density() needs a real-valued variable; {names} has states. Use prob(state) instead")

    def sample(self, n: int = 1, random_state: RandomState = None) -> Any:
        """n independent draws of one case: an array of labels, a list of points, a DataFrame for a joint."""
        need_one_case("sample()", self.batched)
        p = self.probabilities.ravel()
        drawn = generator(random_state).choice(len(p), size=n, p=p / p.sum())
        if self.points is not None:
            return [self.points[int(i)] for i in drawn]
        if len(self.scope) == 1:
            return np.array(self.states, dtype=object)[drawn]
        import pandas as pd

        at = np.unravel_index(drawn, self.probabilities.shape)
        return pd.DataFrame({v.name: np.array(v.states, dtype=object)[i] for v, i in zip(self.scope, at, strict=True)})

    def entropy(self, *, base: float | None = None) -> Any:
        """−Σ p log p, in nats (`base=2`: bits).

        >>> import gramgraph as gg
        >>> gg.BayesianNetwork("coin{heads|tails}", cpds={"coin": [0.5, 0.5]}).query("coin")["coin"].entropy(base=2)
        1.0
        """
        p = self._table.reshape(len(self._table), -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(p == 0.0, 0.0, p * np.log(p))
        return self._shaped((0.0 - terms.sum(axis=1)) / unit(base))

    # ------------------------------------------------------------------------------------------ the whole

    def mode(self) -> Any:
        """The most probable state (tuple of states for a joint; a list for a table of cases).

        A case whose evidence is impossible has no belief, and None stands in its place.
        """
        shape = tuple(var.size for var in self.scope)
        flat = self.probabilities.reshape(len(self.probabilities) if self.batched else 1, math.prod(shape))
        best = [np.unravel_index(int(i), shape) for i in flat.argmax(axis=1)]
        labels = [tuple(var.states[i] for var, i in zip(self.scope, index, strict=True)) for index in best]
        known = [bool(np.isfinite(row).all()) for row in flat]
        found = [label[0] if len(label) == 1 else label for label in labels]
        if self.points is not None:
            found = [self.points[int(i)] for (i,) in best]
        out = [label if ok else None for label, ok in zip(found, known, strict=True)]
        return out if self.batched else out[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Belief):
            return NotImplemented
        same = self.scope == other.scope and self.batched == other.batched
        return same and np.array_equal(self.probabilities, other.probabilities, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.probabilities, dtype=dtype) if copy else np.asarray(self.probabilities, dtype=dtype)

    def _labels(self) -> list[Any]:
        """The states (tuples of states for a joint), in the order of the flattened table."""
        if len(self.scope) == 1:
            return list(self.states)
        shape = tuple(var.size for var in self.scope)
        return [tuple(var.states[i] for var, i in zip(self.scope, at, strict=True)) for at in np.ndindex(*shape)]

    def _rows(self) -> _show.BeliefRows:
        """What is shown of a single case."""
        name = ", ".join(var.name for var in self.scope)
        return _show.BeliefRows(
            name, [_show.joined(label) for label in self._labels()], self.probabilities.ravel().tolist()
        )

    def to_frame(self) -> Any:
        """A DataFrame: one row per state, with its probability; for a table of cases one row per case."""
        import pandas as pd

        names = [var.name for var in self.scope]
        labels = self._labels()
        if self.batched:
            columns = (
                pd.Index(labels, name=names[0]) if len(names) == 1 else pd.MultiIndex.from_tuples(labels, names=names)
            )
            table = self.probabilities.reshape(len(self.probabilities), len(labels))
            return pd.DataFrame(table, columns=columns, index=self.index)
        states = pd.DataFrame(labels, columns=names)
        return states.assign(probability=self.probabilities.ravel())

    def plot(self, ax: Any = None) -> Any:
        """Bars of the probabilities; the axes are returned."""
        return pictures().plot_beliefs(self, ax=ax)

    def __repr__(self) -> str:
        if self.batched:
            name = _show.clean(", ".join(var.name for var in self.scope))
            return f"Belief of {name} in {len(self.probabilities)} cases: .to_frame() shows them"
        return _show.text_beliefs([self._rows()])

    def _repr_html_(self) -> str:
        if self.batched:
            return str(self.to_frame()._repr_html_())
        return _show.html_beliefs([self._rows()])
