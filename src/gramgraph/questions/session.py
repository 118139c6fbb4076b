"""A case under study, of a model with real-valued variables: each question is answered anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gramgraph.answers import Answer
from gramgraph.exceptions import VariableError, listing
from gramgraph.questions.reading import read, refuse_soft

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


class PlainSession:
    """Beliefs of one case while its evidence changes.

    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> case = net.session()
    >>> case.observe(y=2.0)
    >>> round(case.query("x")["x"].mean(), 6)
    0.8
    """

    def __init__(self, model: GraphicalModel, *, memory: float | None = None) -> None:
        self._model, self._memory = model, memory
        self._given: dict[str, Any] = {}

    @property
    def evidence(self) -> dict[str, Any]:
        """What is observed now, by name, as it was given."""
        return dict(self._given)

    def observe(self, evidence: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Set observations; variables that are not named keep theirs. Values as in `query`, `Soft` excepted.

        None forgets what was observed, as `retract` does.
        """
        if evidence is not None and not isinstance(evidence, Mapping):
            raise VariableError(f"a session observes one case: a dict, or name=value, not {type(evidence).__name__}")
        news = {**(evidence or {}), **named}
        asked = {name: refuse_soft(self._model, read(self._model, [], {name: value})) for name, value in news.items()}
        for name, part in asked.items():
            if part.seen or part.likelihoods or part.noisy:
                self._given[name] = news[name]
            else:
                self._given.pop(name, None)

    def retract(self, *names: str) -> None:
        """Forget observations (all of them, when no name is given)."""
        for name in names or tuple(self._given):
            self._model.index(name)
            self._given.pop(name, None)

    @property
    def log_evidence(self) -> float:
        """log p(observations)."""
        return float(self._model.log_evidence(self._given, memory=self._memory))

    def query(self, targets: Any = None) -> Answer:
        """Beliefs in the targets (default: everything that is not observed) given what is observed now."""
        return self._model.query(targets, self._given, memory=self._memory)

    def __repr__(self) -> str:
        seen = listing((f"{name}={value}" for name, value in self._given.items()), 8)
        return f"Session of {self._model!r}: {seen or 'nothing observed'}"
