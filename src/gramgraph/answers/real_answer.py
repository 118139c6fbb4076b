"""Answers about models with real-valued variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph import _show
from gramgraph._pictures import pictures
from gramgraph._show import counted
from gramgraph.answers.answer import Answer, Key, unsettled
from gramgraph.answers.belief import Belief
from gramgraph.answers.configurations import is_mixed
from gramgraph.answers.real_belief import RealBelief
from gramgraph.answers.rows import with_kept
from gramgraph.exceptions import VariableError, did_you_mean, listing
from gramgraph.typing import FloatArray

#: Names of components, means (cases, components), variances (cases or 1, components).
Table = tuple[Any, FloatArray, FloatArray]


class RealAnswer(Answer):
    """The beliefs that a query asked for, about real-valued and discrete variables, with `log_evidence`,
    `exact`, `engine`.

    `log_evidence` is the logarithm of a density where real-valued variables were observed.

    Parameters
    ----------
    keys : what was asked for: names, or tuples of them.
    maker : gives the belief of a key when it is read.
    log_evidence : log p(evidence), a number, one per case, or a function that gives it.
    engine : name of the engine.
    exact : whether nothing was approximated.
    batched : whether the first axis is that of cases.
    details : what the engine tells about its run, by name.
    table : gives all beliefs as a table.
    observed : gives the value of a key that was observed.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> answer = net.query(None, {"y": 2.0})
    >>> list(answer), answer.exact, round(answer.log_evidence, 4)
    (['x'], True, -2.1237)
    """

    __slots__ = ("_keys", "_made", "_maker", "_observed", "_table")

    def __init__(
        self,
        keys: Sequence[Key],
        maker: Callable[[Key], Belief | RealBelief],
        log_evidence: float | FloatArray | Callable[[], float | FloatArray],
        *,
        engine: str,
        exact: bool = True,
        batched: bool = False,
        details: Mapping[str, Any] | None = None,
        table: Callable[[], Table] | None = None,  # all single beliefs side by side, where an engine has them so
        observed: Callable[[Key], Any] | None = None,  # what was observed can be asked for, but is not listed
    ) -> None:
        nothing = np.zeros((0, 0)) if batched else np.zeros(0)
        super().__init__({}, nothing, log_evidence, engine=engine, exact=exact, details=details)  # type: ignore[arg-type]
        self._keys = tuple(keys)
        self._maker = maker
        self._made: dict[Key, Any] = {}
        self._table = table
        self._observed = observed

    @property
    def log_evidence(self) -> Any:
        """log p(evidence), a number or one per case; found when it is first asked for."""
        if callable(self._log_evidence):
            self._log_evidence = self._log_evidence()
        return self._log_evidence

    def __getitem__(self, key: Key) -> Any:
        if isinstance(key, list):
            key = tuple(key)
        found = self._made.get(key)
        if found is None:
            if key not in self._keys:
                seen = self._observed(key) if self._observed is not None else None
                if seen is not None:
                    return seen
                names = [k for k in self._keys if isinstance(k, str)]
                asked = listing(map(repr, self._keys)) or "none"
                raise VariableError(f"{key!r} was not asked for. Answers: {asked}.{did_you_mean(key, names)}")
            found = self._made[key] = self._maker(key)
        return found

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def means(self) -> Any:
        """Posterior means of the real variables as a DataFrame: one row per case, one column per component.

        For a table of cases this is the quick way to all of them; the rows keep the labels of the table.

        >>> import gramgraph as gg
        >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0, 1), "y": {"coefficients": 2.0, "sd": 1.0}})
        >>> net.query("x", [{"y": 2.0}, {"y": -1.0}]).means().round(6).to_dict("list")
        {'x': [0.8, -0.4]}
        """
        return self._frame(0)

    def sds(self) -> Any:
        """Posterior standard deviations of the real variables, in the same form as `means`."""
        return self._frame(1)

    def _frame(self, which: int) -> Any:
        import pandas as pd

        names, mean, var = self._moment_table()
        values = mean if which == 0 else np.broadcast_to(np.sqrt(var), mean.shape).copy()
        return pd.DataFrame(values, columns=names, index=self.details.get("index"), copy=False)

    def _moment_table(self) -> Table:
        """Names of all components of single real variables, means (cases, components), variances (cases or 1, …)."""
        if self._table is not None:
            return self._table()
        found = [self[key] for key in self if isinstance(key, str)]
        real = [belief for belief in found if isinstance(belief, RealBelief)]
        names = [name for belief in real for name in belief._components()]
        moments = [belief._moments() for belief in real]
        n = len(np.atleast_1d(self.log_evidence))
        mean = np.hstack([m for m, _ in moments]) if moments else np.zeros((n, 0))
        var = [np.diagonal(S, axis1=1, axis2=2) for _, S in moments]
        return names, mean, np.hstack(var) if var else mean

    def _quick_frame(self) -> Any:
        """`to_frame` of many cases from the table of moments."""
        import pandas as pd

        names, mean, var = self._moment_table()
        both = np.empty((2 * mean.shape[1], len(mean)))
        both[::2], both[1::2] = mean.T, np.sqrt(var).T
        columns = pd.MultiIndex.from_product([names, ["mean", "sd"]], names=["variable", "value"])
        return pd.DataFrame(both.T, columns=columns, index=self.details.get("index"), copy=False)

    def to_frame(self) -> Any:
        """A DataFrame: columns variable, mean, sd (and state, probability where there are discrete variables).

        For a table of cases one row per case; the columns are pairs (variable, mean or sd or state).
        """
        import pandas as pd

        if self.batched and self._table is not None and all(isinstance(key, str) for key in self):
            return with_kept(self._quick_frame(), self.details.get("keep"))
        parts = []
        for key in self:
            belief = self[key]
            frame = belief.to_frame()
            if isinstance(belief, Belief):
                labels = [_show.joined(label) for label in belief._labels()]
                if self.batched:
                    frame.columns = pd.MultiIndex.from_product([[_show.joined(key)], labels])
                else:
                    p = belief.probabilities.ravel()
                    frame = pd.DataFrame({"variable": _show.joined(key), "state": labels, "probability": p})
            elif isinstance(key, tuple) and self.batched:
                frame.columns = pd.MultiIndex.from_tuples(
                    [(f"{_show.joined(key)}: {name}", value) for name, value in frame.columns]
                )
            parts.append(frame)
        if self.batched:
            out = pd.concat(parts, axis=1) if parts else pd.DataFrame(index=range(len(self.log_evidence)))
            if parts:
                out.columns.names = ["variable", "value"]
            if self.details.get("index") is not None:
                out.index = self.details["index"]
            return with_kept(out, self.details.get("keep"))
        if not parts:
            return pd.DataFrame({"variable": [], "mean": [], "sd": []})
        order = [c for c in ("variable", "state", "probability", "mean", "sd") if any(c in part for part in parts)]
        return pd.concat(parts, ignore_index=True)[order]

    def plot(self, ax: Any = None) -> Any:
        """A small picture for every belief; the axes are returned."""
        return pictures().real.plot_answer(self, ax=ax)

    def _title(self) -> str:
        how = f"{self.engine}, {'exact' if self.exact else 'approximate'}{unsettled(self)}"
        draws = self.details.get("min_effective_draws", self.details.get("effective_draws"))
        if draws is not None and not self.batched:
            how += f", {float(np.atleast_1d(draws)[0]):,.0f} effective draws"
        stated = self.details.get("node_error")
        if stated is not None:
            how += f", stated error {float(np.max(stated, initial=0.0)):.2g} standard deviations"
        if self.batched:
            return f"{counted(case=len(np.atleast_1d(self.log_evidence)), belief=len(self))} each ({how})"
        log_p = float(self.log_evidence)
        return f"log p(evidence) = {0.0 if abs(log_p) < 1e-12 else log_p:.6g} ({how})"

    def __repr__(self) -> str:
        if self.batched:
            shown = [_show.shorten(_show.joined(key), 24) for _, key in zip(range(8), self, strict=False)]
            more = f", … {len(self) - len(shown)} more" if len(self) > len(shown) else ""
            hint = "ans[name].mean() has one row per case; ans.to_frame() shows them"
            return f"{self._title()}: {', '.join(shown)}{more}\n{hint}"
        keys = list(self)[:40]
        mixed = [key for key in keys if is_mixed(self[key])]
        plain = [key for key in keys if isinstance(self[key], RealBelief) and key not in mixed]
        real = [line for key in plain for line in self[key]._lines()]
        rows = [self[key]._rows() for key in keys if isinstance(self[key], Belief)]
        out = [self._title()]
        if real:
            out.append(_show.text_table(("", "mean", "sd", "90 %"), real, right=range(1, 3)))
        if rows:
            out.append(_show.text_beliefs(rows, total=len(rows)))
        out += [repr(self[key]) for key in mixed]
        if len(self) > len(keys):
            out.append(f"… and {len(self) - len(keys)} more")
        return "\n".join(out)

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())
