"""Answers: frozen results that say how they were found and show themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Self

import numpy as np

from gramgraph import _show
from gramgraph._pictures import pictures
from gramgraph._show import counted
from gramgraph.answers.belief import Belief
from gramgraph.answers.quality import Quality, judge
from gramgraph.answers.rows import with_kept
from gramgraph.exceptions import VariableError, did_you_mean, listing
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

Key = str | tuple[str, ...]
#: Targets whose standard errors are looked through for the title.
MANY_TARGETS = 2000


class Answer(Mapping[Key, Belief]):
    """The beliefs that a query asked for, with `log_evidence`, `exact`, `engine`.

    A mapping from what was asked for (a name, or a tuple of names for a joint) to its `Belief`.

    Parameters
    ----------
    columns : name → (variable, first column of `marginals`, last one + 1).
    marginals : (columns,), or (cases, columns) for a table of cases.
    log_evidence : log p(evidence), one number or one a case.
    engine : name of the engine that answered.
    exact : whether it computes without approximation.
    joints : beliefs of several variables together, by tuples of names.
    details : what the engine reports beside.
    hidden : observed variables: they can be asked for, but are not listed.

    Examples
    --------
    >>> import gramgraph as gg
    >>> answer = gg.datasets.asia().query(["lung", "bronc"], {"smoke": "yes"})
    >>> list(answer), answer.exact, answer.engine, round(answer.log_evidence, 4)
    (['lung', 'bronc'], True, 'enumeration', -0.6931)
    >>> print(answer.to_frame())
      variable state  probability
    0     lung    no          0.9
    1     lung   yes          0.1
    2    bronc    no          0.4
    3    bronc   yes          0.6
    """

    __slots__ = (
        "_batched",
        "_columns",
        "_details",
        "_engine",
        "_exact",
        "_hidden",
        "_joints",
        "_log_evidence",
        "_marginals",
    )

    def __init__(
        self,
        columns: Mapping[str, tuple[Var, int, int]],  # name → (variable, first column, last column + 1)
        marginals: FloatArray,  # (columns,) or (cases, columns)
        log_evidence: float | FloatArray,
        *,
        engine: str,
        exact: bool = True,
        joints: Mapping[tuple[str, ...], Belief] | None = None,
        details: Mapping[str, Any] | None = None,
        hidden: frozenset[str] = frozenset(),  # observed variables: they can be asked for, but are not listed
    ) -> None:
        self._columns = columns
        self._marginals = marginals
        self._joints = joints
        self._batched = marginals.ndim == 2
        self._log_evidence: Any = log_evidence
        self._engine = engine
        self._exact = exact
        self._details = details or {}
        self._hidden = hidden

    # ------------------------------------------------------------------------------------------ how it was found

    @property
    def batched(self) -> bool:
        """Whether this answers a table of cases."""
        return self._batched

    @property
    def log_evidence(self) -> Any:
        """log p(evidence): a number, or one per case."""
        return self._log_evidence

    @property
    def engine(self) -> str:
        """Name of the engine that found it."""
        return self._engine

    @property
    def exact(self) -> bool:
        """Whether nothing was approximated."""
        return self._exact

    @property
    def details(self) -> Mapping[str, Any]:
        """What the engine tells about its run."""
        return self._details

    @property
    def hidden(self) -> frozenset[str]:
        """Observed variables: they can be asked for, but are not listed."""
        return self._hidden

    @property
    def quality(self) -> Quality:
        """ "exact", "checked" or "unreliable", with a `reason` in words.

        >>> import gramgraph as gg
        >>> answer = gg.datasets.asia().query("lung", engine="bp", max_iter=1)
        >>> answer.quality == "unreliable", answer.reason
        (True, 'bp: NOT converged')
        """
        return judge(self._engine, self._exact, self._details, self.log_evidence)

    @property
    def reason(self) -> str:
        """Why the `quality` is what it is, in words."""
        return self.quality.reason

    def replace(self, **changes: Any) -> Self:
        """A new answer with other values of these: log_evidence, engine, exact, details, hidden, marginals, joints.

        >>> import gramgraph as gg
        >>> answer = gg.datasets.asia().query("lung")
        >>> answer.replace(engine="mine").engine, answer.engine
        ('mine', 'enumeration')
        """
        made = copy(self)
        for name, value in changes.items():
            setattr(made, f"_{name}", value)
        return made

    def tables(self) -> dict[Key, FloatArray]:
        """The probabilities of everything that can be asked for, by key."""
        return {key: self[key].probabilities for key in (*self._columns, *(self._joints or ()))}

    def with_tables(self, tables: Mapping[Key, FloatArray]) -> Self:
        """A new answer with other probabilities, in the form of `tables()`."""
        marginals = self._marginals.copy()
        for name, (_, start, stop) in self._columns.items():
            marginals[..., start:stop] = tables[name]
        joints = {key: belief.replace(probabilities=tables[key]) for key, belief in (self._joints or {}).items()}
        return self.replace(marginals=marginals, joints=joints)

    def __getitem__(self, key: Key) -> Belief:
        try:
            var, start, stop = self._columns[key]  # type: ignore[index]
        except (KeyError, TypeError):
            return self._joint(key)
        if self._batched:
            return Belief((var,), self._marginals[:, start:stop], batched=True, index=self._details.get("index"))
        made = object.__new__(Belief)  # one for each look at an answer: it holds what differs between such beliefs
        held = made.__dict__
        held["scope"], held["probabilities"] = (var,), self._marginals[start:stop]
        return made

    def _joint(self, key: Key) -> Belief:
        if isinstance(key, list):
            return self[tuple(key)]
        if self._joints and key in self._joints:
            return self._joints[key]  # type: ignore[index]
        names = [k for k in self if isinstance(k, str)]
        asked = listing(map(repr, self)) or "none"
        raise VariableError(f"{key!r} was not asked for. Answers: {asked}.{did_you_mean(key, names)}")

    def __iter__(self) -> Iterator[Key]:
        for name in self._columns:
            if name not in self._hidden:
                yield name
        yield from self._joints or ()

    def __len__(self) -> int:
        return len(self._columns) - len(self._hidden) + len(self._joints or ())

    def to_frame(self) -> Any:
        """A DataFrame: columns variable, state, probability; for a table of cases one row per case.

        The columns of a table of cases are pairs (variable, state). A joint and its states read `A, B`.
        """
        import pandas as pd

        beliefs = [self[key] for key in self]
        names = [_show.joined(key) for key in self for _ in self[key]._labels()]
        states = [_show.joined(label) for belief in beliefs for label in belief._labels()]
        if not self._batched:
            values = np.concatenate([np.zeros(0), *(belief.probabilities.ravel() for belief in beliefs)])
            return pd.DataFrame({"variable": names, "state": states, "probability": values})
        n_cases = len(self._marginals)
        columns = pd.MultiIndex.from_arrays([names, states], names=["variable", "state"])
        parts = [belief.probabilities.reshape(n_cases, len(belief._labels())) for belief in beliefs]
        table = np.concatenate([np.zeros((n_cases, 0)), *parts], axis=1)
        frame = pd.DataFrame(table, columns=columns, index=self._details.get("index"))
        return with_kept(frame, self._details.get("keep"))

    def plot(self, ax: Any = None) -> Any:
        """Bars of every belief; the axes are returned."""
        return pictures().plot_beliefs(self, ax=ax)

    def _title(self) -> str:
        how = f"{self._engine}, {'exact' if self._exact else 'approximate'}{unsettled(self)}"
        if self._batched:
            return f"{counted(case=len(self._marginals), belief=len(self))} each ({how})"
        log_p, trust = float(self.log_evidence), _trust(self)
        if trust and np.isnan(log_p):  # chains do not estimate it
            return f"{how}: {trust}"
        told = f"log p(evidence) = {0.0 if abs(log_p) < 1e-12 else log_p:.6g} ({how})"
        return f"{told}: {trust}" if trust else told

    def __repr__(self) -> str:
        if self._batched:
            shown = [_show.shorten(_show.joined(key), 24) for _, key in zip(range(8), self, strict=False)]
            more = f", … {len(self) - len(shown)} more" if len(self) > len(shown) else ""
            hint = "ans[name].probabilities has one row per case; ans.to_frame() shows them"
            return f"{self._title()}: {', '.join(shown)}{more}\n{hint}"
        return f"{self._title()}\n{_show.text_beliefs((self[key]._rows() for key in self), total=len(self))}"

    def _repr_html_(self) -> str:
        if self._batched:
            return str(self.to_frame()._repr_html_())
        return _show.html_beliefs((self[key]._rows() for key in self), caption=self._title(), total=len(self))


def unsettled(answer: Answer) -> str:
    """That messages or a fit did not come to rest, in words; nothing where they did, or where there are none."""
    settled = answer.details.get("converged")
    if settled is None or np.all(settled):
        return ""
    return f", NOT converged in {int(np.sum(~np.asarray(settled)))} cases" if answer.batched else ", NOT converged"


def _trust(answer: Answer) -> str:
    """How far a sampled answer can be trusted, in words; nothing for other answers."""
    errors = answer.details.get("standard_error")
    if not isinstance(errors, Mapping) or not 0 < len(errors) <= MANY_TARGETS:
        return ""
    worst = max(float(np.max(error, initial=0.0)) for error in errors.values())
    if not np.isfinite(worst):
        return ""
    r_hat = answer.details.get("max_r_hat")
    return f"standard errors up to {worst:.2g}" + ("" if r_hat is None else f", R-hat up to {r_hat:.3g}")
