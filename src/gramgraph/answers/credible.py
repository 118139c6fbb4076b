"""Answers with their uncertainty: how well the probabilities themselves are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gramgraph._validation import check_fraction
from gramgraph.answers.answer import Answer, Key
from gramgraph.answers.belief import Belief
from gramgraph.answers.frozen import Frozen
from gramgraph.answers.quality import Quality
from gramgraph.typing import FloatArray


def tail_of(level: float) -> float:
    """The probability of each tail."""
    return (1.0 - check_fraction("level", level)) / 2.0


class CredibleProbabilities(Frozen):
    """How well p(X | evidence) is known: `samples` has one table per draw, (draws, *states) or (draws, cases, *states).

    `predictive` is the belief under the mean tables, p(X | evidence, data) where the evidence tells about this case
    only; `mean` the average of the draws.
    """

    predictive: Belief
    samples: FloatArray
    level: float

    def __init__(self, predictive: Belief, samples: FloatArray, level: float) -> None:
        self._hold(predictive=predictive, samples=samples, level=level)

    @property
    def mean(self) -> FloatArray:
        """Average of the draws."""
        return np.asarray(self.samples.mean(axis=0))

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of the draws."""
        return np.asarray(self.samples.std(axis=0))

    def interval(self, level: float | None = None) -> tuple[FloatArray, FloatArray]:
        """Quantiles of the draws between which each probability lies with this probability."""
        tail = tail_of(self.level if level is None else level)
        low, high = np.quantile(self.samples, [tail, 1.0 - tail], axis=0)
        return low, high

    def prob(self, *states: Any) -> tuple[Any, Any, Any]:
        """(mean, low, high) for a state (for one state per variable, of a joint)."""
        belief, (low, high) = self.predictive, self.interval()
        parts = (Belief(belief.scope, x, batched=belief.batched).prob(*states) for x in (self.mean, low, high))
        mean, below, above = parts
        return mean, below, above

    def to_frame(self) -> Any:
        """One row per state (per case and state): predictive, mean, sd, low, high."""
        import pandas as pd

        low, high = self.interval()
        belief = self.predictive
        labels = belief._labels()
        names = [var.name for var in belief.scope]
        if belief.batched:
            index = range(len(self.mean)) if belief.index is None else belief.index
            keys = [(case, *(label if isinstance(label, tuple) else (label,))) for case in index for label in labels]
            frame = pd.DataFrame(keys, columns=["case", *names])
        else:
            frame = pd.DataFrame(labels, columns=names)
        numbers = {"predictive": belief.probabilities, "mean": self.mean, "sd": self.sd, "low": low, "high": high}
        return frame.assign(**{name: value.ravel() for name, value in numbers.items()})

    def __repr__(self) -> str:
        return (
            f"{100 * self.level:g} % intervals from {len(self.samples)} draws\n{self.to_frame().to_string(index=False)}"
        )

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


class CredibleAnswer(Frozen, Mapping[Key, CredibleProbabilities]):
    """Answers with their uncertainty, by variable; `predictive` is the answer of the mean network.

    Parameters
    ----------
    predictive : the answer of the mean network.
    samples : for each key, its probabilities in networks drawn from the posterior.
    level : share of the draws that an interval holds.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(200, random_state=0)
    >>> posterior = gg.datasets.asia().fit_posterior(frame, prior="bdeu")
    >>> answer = posterior.query("lung", {"smoke": "yes"}, draws=50, random_state=0)
    >>> mean, low, high = answer["lung"].prob("yes")
    >>> bool(low < mean < high)
    True
    """

    predictive: Answer
    level: float
    _samples: dict[Key, FloatArray]

    def __init__(self, predictive: Answer, samples: Mapping[Key, FloatArray], level: float) -> None:
        self._hold(predictive=predictive, level=level, _samples=dict(samples))

    @property
    def quality(self) -> Quality:
        """That of the answers to the single draws."""
        return self.predictive.quality

    def __getitem__(self, key: Key) -> CredibleProbabilities:
        belief = self.predictive[key]
        return CredibleProbabilities(belief, self._samples[tuple(key) if isinstance(key, list) else key], self.level)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def to_frame(self) -> Any:
        """All beliefs below each other, with a column for the variable."""
        import pandas as pd

        parts = []
        for key, belief in self.items():
            names = list(key) if isinstance(key, tuple) else [key]
            frame = belief.to_frame()
            states = frame[names].astype(str).agg(", ".join, axis=1)
            frame = frame.drop(columns=names)
            frame.insert(0, "variable", ", ".join(names))
            frame.insert(1, "state", states)
            parts.append(frame)
        return pd.concat(parts, ignore_index=True)

    def __repr__(self) -> str:
        return "\n\n".join(f"{key}: {belief!r}" for key, belief in self.items())

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())
