"""Random evidence and random targets: what is given to the library, and what it means for the joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from fuzz.trials import Wrong, close
from fuzz.truth import Joint, log
from fuzz.worlds import World
from gramgraph.evidence import Likelihood, Not, OneOf
from gramgraph.exceptions import ImpossibleEvidenceError

__all__ = ["Given", "Limits", "best_engines", "draw_cases", "draw_given", "draw_targets", "exact_engines", "possible"]


@dataclass(frozen=True)
class Limits:
    """How far an answer may be from the truth."""

    p: float = 1e-9
    p_relative: float = 0.0
    log: float = 1e-8
    log_relative: float = 0.0
    best: float = 1e-9

    def belief(self, found: Any, truth: Any, what: str) -> None:
        """Compare probabilities."""
        close(found, truth, what, atol=self.p, rtol=self.p_relative)

    def evidence(self, found: Any, truth: Any, what: str) -> None:
        """Compare log p(e)."""
        close(found, truth, what, atol=self.log, rtol=self.log_relative)

    def value(self, found: Any, truth: Any, what: str) -> None:
        """Compare log probabilities of best assignments."""
        close(found, truth, what, atol=self.best, rtol=max(self.log_relative, 1e-12))


@dataclass
class Given:
    """Evidence of one case as it is handed over, and its log weights for the joint."""

    evidence: dict[str, Any] = field(default_factory=dict)
    virtual: dict[str, Any] = field(default_factory=dict)
    hard: dict[int, int] = field(default_factory=dict)
    weights: dict[int, np.ndarray] = field(default_factory=dict)  # hard evidence included
    _truth: Joint | None = None

    def __str__(self) -> str:
        return f"{self.evidence}, virtual_evidence={self.virtual}" if self.virtual else f"{self.evidence}"

    @property
    def options(self) -> dict[str, Any]:
        """`virtual_evidence` where there is some."""
        return {"virtual_evidence": self.virtual} if self.virtual else {}

    def truth(self, world: World) -> Joint:
        """The joint with this evidence; made once, when all of it is there."""
        if self._truth is None:
            self._truth = world.joint.weighed(self.weights)
        return self._truth

    def add(self, i: int, logs: np.ndarray) -> None:
        """Multiply weights onto variable `i`."""
        self.weights[i] = self.weights[i] + logs if i in self.weights else logs


def draw_given(
    rng: np.random.Generator, world: World, *, observe: float = 0.35, plain: float = 0.6, reach: float = 0.0
) -> Given:
    """Evidence of all sorts; a share `plain` of it observed states; likelihoods of 10^±reach (0: ordinary numbers)."""
    given = Given()
    n = len(world.variables)
    seen = _states(rng, world)
    for i in np.flatnonzero(rng.random(n) < observe).tolist():
        var = world.variables[i]
        label, states = var.states[seen[i]], np.flatnonzero(rng.random(var.size) < 0.6).tolist()
        sort = "state" if rng.random() < plain else str(rng.choice(["not", "one of", "weights", "virtual", "nothing"]))
        if sort == "state":
            given.evidence[var.name] = label
            given.hard[i] = seen[i]
            given.add(i, log(np.arange(var.size) == seen[i]))
            if plain < 1.0 and rng.random() < 0.05:
                _virtual(rng, given, i, var, reach)
        elif sort == "nothing":
            given.evidence[var.name] = rng.choice(np.array([None, float("nan")], dtype=object))
        elif sort == "virtual":
            _virtual(rng, given, i, var, reach)
        elif sort == "weights":
            w = _weights(rng, var.size, reach)
            by_name = rng.random() < 0.3
            given.evidence[var.name] = Likelihood(dict(zip(var.states, w.tolist(), strict=True)) if by_name else w)
            given.add(i, log(w))
        elif 0 < len(states) < var.size:
            labels = [var.states[s] for s in states]
            inside = np.isin(np.arange(var.size), states)
            if sort == "not":
                given.evidence[var.name], inside = Not(labels), ~inside
            else:
                given.evidence[var.name] = OneOf(*labels) if rng.random() < 0.5 else set(labels)
            given.add(i, log(inside))
    return given


def _virtual(rng: np.random.Generator, given: Given, i: int, var: Any, reach: float) -> None:
    w = _weights(rng, var.size, reach)
    given.virtual[var.name] = w.tolist()
    given.add(i, log(w))


def _weights(rng: np.random.Generator, size: int, reach: float) -> np.ndarray:
    w = rng.gamma(1.0, size=size) + 1e-3
    if reach:
        w = 10.0 ** rng.uniform(-reach, reach, size)
    drop = rng.random(size) < 0.2
    drop[int(rng.integers(size))] = False
    return np.where(drop, 0.0, w)


def _states(rng: np.random.Generator, world: World) -> list[int]:
    """A state for every variable; mostly one that the model allows."""
    if rng.random() < 0.75:
        allowed = np.flatnonzero(world.joint.logs.reshape(-1) > -np.inf)
        if len(allowed):
            at = int(allowed[int(rng.integers(len(allowed)))])
            return [int(s) for s in np.unravel_index(at, world.joint.sizes)]
    return [int(rng.integers(var.size)) for var in world.variables]


def draw_cases(rng: np.random.Generator, world: World, rows: int, *, gaps: float = 0.3) -> tuple[Any, list[Given]]:
    """A frame of cases with gaps (or a list of dicts), and the meaning of every row."""
    import pandas as pd

    n = len(world.variables)
    columns = [i for i in rng.permutation(n).tolist() if rng.random() < 0.5]
    meant: list[Given] = []
    for row in range(rows):
        if row and rng.random() < 0.2:
            meant.append(meant[int(rng.integers(row))])
            continue
        given, seen = Given(), _states(rng, world)
        for i in columns:
            if rng.random() >= gaps:
                var = world.variables[i]
                given.evidence[var.name] = var.states[seen[i]]
                given.hard[i] = seen[i]
                given.add(i, log(np.arange(var.size) == seen[i]))
        meant.append(given)
    if rng.random() < 0.15:
        return [given.evidence for given in meant], meant
    names = [world.variables[i].name for i in columns]
    data = {name: [given.evidence.get(name) for given in meant] for name in names}
    frame = pd.DataFrame(data, index=range(rows), columns=names, dtype=object)
    return _dressed(rng, frame, world), meant


def _dressed(rng: np.random.Generator, frame: Any, world: World) -> Any:
    """The same cases as plain objects, as categories in an order of their own, or as a polars frame."""
    sort = rng.random()
    if sort < 0.6 or not len(frame.columns):
        return frame
    if sort < 0.85:
        import pandas as pd

        for name in frame.columns:
            labels = rng.permutation(list(world.model.states(name))).tolist()
            frame[name] = pd.Categorical(frame[name], categories=labels)
        return frame
    import polars as pl

    return pl.DataFrame({name: pl.Series(name, frame[name].tolist(), dtype=pl.String) for name in frame.columns})


def draw_targets(rng: np.random.Generator, world: World) -> tuple[Any, list[tuple[int, ...]]]:
    """Targets as they are written, and the scopes that the answer must hold (None: all that are not observed)."""
    n = len(world.variables)
    names = [var.name for var in world.variables]
    sort = rng.random()
    if sort < 0.25:
        return None, []
    if sort < 0.5:
        i = int(rng.integers(n))
        return names[i], [(i,)]
    several = rng.permutation(n)[: int(rng.integers(1, n + 1))].tolist()
    if sort < 0.7:
        return [names[i] for i in several], [(i,) for i in several]
    small = tuple(several[:3])
    if sort < 0.85:
        return tuple(names[i] for i in small), [small]
    return [*(names[i] for i in several), tuple(names[i] for i in small)], [*((i,) for i in several), small]


@cache
def exact_engines() -> tuple[str, ...]:
    """ "auto" and every engine of the registry that calls itself exact."""
    from gramgraph.engines.registry import engine_names

    return ("auto", *engine_names("tables", "answer", exact=True))


@cache
def best_engines() -> tuple[str, ...]:
    """Engines that look for best assignments, exact ones and searches."""
    from gramgraph.engines.registry import engine_names

    return ("auto", *engine_names("tables", "best"))


def possible(world: World, given: Given, joint: Joint, ask: Any) -> Any:
    """What `ask()` returns; None where the evidence is impossible and the library says so, with a true conflict."""
    if joint.best > -np.inf:
        return ask()
    try:
        found = ask()
    except ImpossibleEvidenceError as error:
        _check_conflict(world, given, error.conflict)
        return None
    raise Wrong(f"impossible evidence was answered: {found!r:.300}")


def _check_conflict(world: World, given: Given, conflict: Sequence[str]) -> None:
    """The observations that the error names must be impossible by themselves."""
    if not conflict or not all("=" in text for text in conflict):
        return
    named = [text.partition("=")[0] for text in conflict]
    weights = {i: w for i, w in given.weights.items() if world.variables[i].name in named}
    if len(weights) == len(named) and world.joint.weighed(weights).best > -np.inf:
        raise Wrong(f"the conflict named is none: {tuple(conflict)} can hold together")
