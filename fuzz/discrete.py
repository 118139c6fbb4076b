"""Discrete models: every exact engine on every question, against the brute-force joint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from fuzz import further
from fuzz.asked import (
    Given,
    Limits,
    best_engines,
    draw_cases,
    draw_given,
    draw_targets,
    exact_engines,
    possible,
)
from fuzz.trials import Trial, Wrong
from fuzz.truth import Joint
from fuzz.worlds import World, draw_world

__all__ = ["extreme", "tables"]

#: With entries of 1e-300 the issue is relative: a posterior of 1e-280 is a number, not zero.
EXTREME = Limits(p=1e-290, p_relative=1e-6, log=1e-12, log_relative=1e-9, best=1e-12)


def tables(rng: np.random.Generator) -> Iterator[Trial]:
    """Ordinary numbers: |Δp| ≤ 1e-9, |Δ log p(e)| ≤ 1e-8, values of best assignments to 1e-9."""
    world = draw_world(rng)
    yield from _shuffled(rng, world, Limits(), reach=0.0)


def extreme(rng: np.random.Generator) -> Iterator[Trial]:
    """Entries down to 1e-300, likelihoods of 1e-300 to 1e300: relative accuracy, and never a false "impossible"."""
    world = draw_world(rng, smallest=float(rng.choice([-20.0, -150.0, -300.0])))
    yield from _shuffled(rng, world, EXTREME, reach=float(rng.choice([0.0, 20.0, 300.0])))


def _shuffled(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Questions of all sorts in random order, some twice: what one leaves in a cache must not spoil the next."""
    drawers: list[Callable[..., Iterator[Trial]]] = [_query, _query, _log_evidence, _best]
    drawers += [further.session, further.k_best, further.marginal_map, further.single_cell]
    drawers += [_batch] if rng.random() < 0.5 else []
    drawers += [part for part in further.RARE if rng.random() < 0.15]
    trials: list[Trial] = []
    for at in rng.permutation(len(drawers)).tolist():
        trials += drawers[at](rng, world, limits, reach)
    order = rng.permutation(len(trials)).tolist()
    again = [order[int(rng.integers(len(order)))] for _ in range(2)]
    for at in order + again:
        yield trials[at]


def _query(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    given = draw_given(rng, world, observe=float(rng.choice([0.0, 0.3, 0.6])), reach=reach)
    targets, scopes = draw_targets(rng, world)
    for engine in exact_engines():
        check = partial(_check_query, world, given, targets, scopes, limits, engine)
        yield Trial(f"query({targets!r}, {given}, engine={engine!r})", check, world.about)


def _check_query(
    world: World, given: Given, targets: Any, scopes: list[tuple[int, ...]], limits: Limits, engine: str
) -> None:
    joint = given.truth(world)
    ask = partial(world.model.query, targets, given.evidence, engine=engine, **given.options)
    answer = possible(world, given, joint, ask)
    if answer is None:
        return
    if not answer.exact:
        raise Wrong("exact is False")
    limits.evidence(answer.log_evidence, joint.log_z, "log p(e)")
    if targets is None:
        scopes = [(i,) for i in range(len(world.variables)) if i not in given.hard]
    names = [world.variables[scope[0]].name for scope in scopes if len(scope) == 1]
    if targets is None and list(answer) != names:
        raise Wrong(f"unobserved variables: {list(answer)}, expected {names}")
    check_beliefs(world, answer, scopes, targets, joint, limits)


def check_beliefs(
    world: World, answer: Any, scopes: list[tuple[int, ...]], targets: Any, joint: Joint, limits: Limits, row: Any = ...
) -> None:
    """Every belief that was asked for; `row` picks a case of many."""
    for scope in scopes:
        key: Any = tuple(world.variables[i].name for i in scope)
        if len(scope) == 1 and not isinstance(targets, tuple):
            key = key[0]
        limits.belief(answer[key].probabilities[row], joint.belief(scope), f"p({key} | e)")


def _log_evidence(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    given = draw_given(rng, world, observe=float(rng.choice([0.0, 0.5, 1.0])), reach=reach)

    def check() -> None:
        found = world.model.log_evidence(given.evidence, **given.options)
        limits.evidence(found, given.truth(world).log_z, "log_evidence")

    yield Trial(f"log_evidence({given})", check, world.about)


def _batch(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    rows = int(rng.choice([0, 1, 2, 5, 9, 40], p=[0.02, 0.13, 0.3, 0.4, 0.12, 0.03]))
    frame, meant = draw_cases(rng, world, rows)
    extra = draw_given(rng, world, observe=0.3, plain=0.0, reach=reach) if rng.random() < 0.3 else Given()
    extra = Given(virtual=extra.virtual, weights={i: extra.weights[i] for i in _virtual(world, extra)})
    targets, scopes = draw_targets(rng, world)
    for engine in exact_engines():
        check = partial(_check_batch, world, frame, meant, extra, targets, scopes, limits, engine)
        shown = f"{[given.evidence for given in meant]}, virtual_evidence={extra.virtual}"
        yield Trial(f"query({targets!r}, frame {shown}, engine={engine!r})", check, world.about, max(rows, 1))
    yield Trial(f"map_query(frame {shown})", partial(_check_best_rows, world, frame, meant, extra, limits), world.about)


def _virtual(world: World, given: Given) -> list[int]:
    return [i for i, var in enumerate(world.variables) if var.name in given.virtual]


def _rows(world: World, meant: list[Given], extra: Given) -> Iterator[tuple[int, Joint]]:
    """The joint of every case of a table."""
    for row, given in enumerate(meant):
        yield row, given.truth(world).weighed(extra.weights) if extra.weights else given.truth(world)


def _check_batch(
    world: World,
    frame: Any,
    meant: list[Given],
    extra: Given,
    targets: Any,
    scopes: list[tuple[int, ...]],
    limits: Limits,
    engine: str,
) -> None:
    answer = world.model.query(targets, frame, engine=engine, **extra.options)
    if np.shape(answer.log_evidence) != (len(meant),):
        raise Wrong(f"log p(e) of {len(meant)} cases has shape {np.shape(answer.log_evidence)}")
    if targets is None:
        always = [i for i in range(len(world.variables)) if meant and all(i in given.hard for given in meant)]
        scopes = [(i,) for i in range(len(world.variables)) if i not in always]
    for row, joint in _rows(world, meant, extra):
        limits.evidence(answer.log_evidence[row], joint.log_z, f"log p(e) of case {row}")
        if joint.best > -np.inf:
            check_beliefs(world, answer, scopes, targets, joint, limits, row)
        elif any(not np.isnan(answer[key].probabilities[row]).all() for key in answer):
            raise Wrong(f"beliefs of the impossible case {row} are not NaN")


def _check_best_rows(world: World, frame: Any, meant: list[Given], extra: Given, limits: Limits) -> None:
    found = world.model.map_query(frame, **extra.options)
    for row, joint in _rows(world, meant, extra):
        limits.value(found["log_prob"].iloc[row], joint.best, f"best value of case {row}")
        if joint.best == -np.inf:
            continue
        states = [var.index(found[var.name].iloc[row]) for var in world.variables]
        limits.value(joint.logs[tuple(states)], joint.best, f"value at the best assignment of case {row}")


def _best(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    given = draw_given(rng, world, observe=float(rng.choice([0.0, 0.3])), reach=reach)
    for engine in best_engines():
        check = partial(_check_best, world, given, limits, engine)
        yield Trial(f"map_query({given}, engine={engine!r})", check, world.about)


def _check_best(world: World, given: Given, limits: Limits, engine: str) -> None:
    from gramgraph.engines.registry import engine_names

    joint = given.truth(world)
    answers = ("auto", *engine_names("tables", "answer"))
    options = dict(given.options) | ({} if engine in answers else {"time_limit": 5.0})
    exact = engine in ("auto", *engine_names("tables", "answer", exact=True))
    try:
        found = possible(world, given, joint, partial(world.model.map_query, given.evidence, engine=engine, **options))
    except Exception as error:
        if exact or not further.may_refuse(engine, error):
            raise
        return
    if found is None:
        return
    value = joint.logs[further.full_states(world, given, found.assignment)]
    if value == -np.inf and not exact:
        return  # a search that finds nothing possible says -inf
    limits.value(found.log_prob, value, "log_prob of the assignment")
    if exact and not found.exact:
        raise Wrong("exact is False")
    if found.exact:
        limits.value(found.log_prob, joint.best, "best value")
    slack = limits.best + 1e-8 * abs(joint.best)
    if found.log_prob > joint.best + slack or (found.bound is not None and found.bound < joint.best - slack):
        raise Wrong(f"best value {joint.best} is not between {found.log_prob} and the bound {found.bound}")
