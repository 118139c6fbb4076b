"""Beliefs about all members of a variable of a plate model."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph import _show
from gramgraph.answers.answer import unsettled
from gramgraph.answers.belief import Belief
from gramgraph.answers.frozen import Frozen
from gramgraph.answers.real_answer import RealAnswer
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.typing import FloatArray
from gramgraph.variables import Var


class PlateBeliefs(Frozen):
    """What is believed of every member of a variable: probabilities of states, or means and deviations of numbers.

    Results are arrays with an axis for each plate, or nested lists where lengths differ; `belief[0, 2]` is one member.

    Parameters
    ----------
    var : the variable.
    layout : how its members are arranged along the plates.
    probabilities : of the states of each member, or None for numbers.
    mean : of each member, where it is a number.
    variance : of each member, where it is a number.

    Examples
    --------
    >>> import gramgraph as gg
    >>> coin = gg.BayesianNetwork("bias -> heads; plate tosses: heads", cpds={"bias": gg.distributions.Beta(1.0, 1.0)})
    >>> belief = coin.query("heads", {"heads": ["yes", "yes", None]})["heads"]
    >>> belief.prob("yes").round(3).tolist()
    [1.0, 1.0, 0.75]
    """

    var: Var
    layout: Any
    _p: Any
    _mean: Any
    _variance: Any

    def __init__(
        self,
        var: Var,
        layout: Any,
        *,
        probabilities: FloatArray | None = None,  # (members, states)
        mean: FloatArray | None = None,  # (members, dimension)
        variance: FloatArray | None = None,
    ) -> None:
        self._hold(var=var, layout=layout, _p=probabilities, _mean=mean, _variance=variance)

    @property
    def labels(self) -> list[str]:
        """Names of the members, in order."""
        return self.layout.labels(self.var.name)  # type: ignore[no-any-return]

    def _nested(self, values: Any) -> Any:
        return self.layout.nested(self.var.name, values)

    @property
    def probabilities(self) -> Any:
        """p(state) of each member; the last axis are the states."""
        if self._p is None:
            raise VariableError(f"{self.var.name} is {self.var!r}: ask for its mean() and sd()")
        return self._nested(self._p)

    def prob(self, state: Any) -> Any:
        """The probability of one state, of each member."""
        if self._p is None:
            raise VariableError(f"{self.var.name} has no states")
        return self._nested(self._p[:, self.var.index(state)])

    def mode(self) -> Any:
        """The most probable state of each member."""
        if self._p is None:
            raise VariableError(f"{self.var.name} has no states")
        states = np.array(self.var.states, dtype=object)
        return self._nested(states[self._p.argmax(axis=1)])

    def mean(self) -> Any:
        """E[x] of each member; vectors on the last axis."""
        return self._moment(self._mean, "mean")

    def variance(self) -> Any:
        """The variance of each number of each member."""
        return self._moment(self._variance, "variance")

    def sd(self) -> Any:
        """The standard deviation of each number of each member."""
        found = self._variance
        return self._moment(None if found is None else np.sqrt(np.maximum(found, 0.0)), "deviation")

    def _moment(self, values: FloatArray | None, what: str) -> Any:
        if values is None:
            raise ModelError(f"no {what} of {self.var.name}: it has states")
        return self._nested(values[:, 0] if values.shape[1] == 1 else values)

    def __getitem__(self, at: Any) -> Any:
        key = (at,) if isinstance(at, (int, np.integer)) else tuple(at)
        label = f"{self.var.name}[{','.join(map(str, key))}]" if key else self.var.name
        labels = self.labels
        if label not in labels:
            raise VariableError(f"{label} is not a member. The first are {', '.join(labels[:5])}")
        i = labels.index(label)
        if self._p is not None:
            return Belief((Var(label, self.var.domain),), self._p[i])
        return self._mean[i]

    def to_frame(self) -> Any:
        """One row per member: its states' probabilities, or mean and sd of each number."""
        import pandas as pd

        if self._p is not None:
            return pd.DataFrame(self._p, columns=list(self.var.states), index=self.labels)
        d = self.var.dimension
        names = [""] if d == 1 else [f"[{k}]" for k in range(d)]
        columns = [f"mean{n}" for n in names] + [f"sd{n}" for n in names]
        both = np.hstack([self._mean, np.sqrt(np.maximum(self._variance, 0.0))])
        return pd.DataFrame(both, columns=columns, index=self.labels)

    def __repr__(self) -> str:
        frame = self.to_frame()
        shown = frame.head(12).to_string(float_format=lambda x: f"{x:.4f}")
        more = f"\n… {len(frame) - 12} more" if len(frame) > 12 else ""
        return f"{self.var.name}, {len(frame)} members\n{shown}{more}"


class PlateAnswer(RealAnswer):
    """What a question about a plate model gives: beliefs by variable, by member, or joint ones of several members.

    Parameters
    ----------
    keys : what was asked for: names, members, or tuples of them.
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
    >>> coin = gg.BayesianNetwork("bias -> heads; plate tosses: heads", cpds={"bias": gg.distributions.Beta(1.0, 1.0)})
    >>> answer = coin.query("bias", {"heads": ["yes", "yes", "no"]})
    >>> type(answer).__name__, round(float(answer["bias"].mean()), 3), round(answer.log_evidence, 4)
    ('PlateAnswer', 0.6, -2.4849)
    """

    __slots__ = ()

    def to_frame(self) -> Any:
        """One row per member and state (or number): variable, member, state, probability, mean, sd."""
        import pandas as pd

        parts = []
        for key in self:
            belief = self[key]
            if isinstance(belief, PlateBeliefs):
                part = belief.to_frame().reset_index(names="member")
            else:
                labels = [_show.joined(label) for label in belief._labels()]
                part = pd.DataFrame([belief.probabilities.ravel()], columns=labels)
                part.insert(0, "member", _show.joined(key))
            part.insert(0, "variable", _show.joined(key))
            parts.append(part)
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"variable": [], "member": []})

    def _title(self) -> str:
        how = f"{self.engine}, {'exact' if self.exact else 'approximate'}{unsettled(self)}"
        log_p = float(self.log_evidence)
        bound = " >=" if "bound" in self.details else " ="
        return f"log p(evidence){bound} {log_p:.6g} ({how})"

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(repr(self[key]) for key in list(self)[:10])])
