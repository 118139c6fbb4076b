"""Approximate engines: sound numbers everywhere, exact where theory says so, and bounds on the right side."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from fuzz.asked import Given, draw_given
from fuzz.trials import Trial, Wrong, close
from fuzz.truth import Joint
from fuzz.worlds import World, draw_world
from gramgraph.exceptions import BudgetError, ImpossibleEvidenceError, ModelError, OptionError

__all__ = ["trials"]

#: log_evidence of these is a bound: −1 from below, 1 from above.
BOUNDS = {"mean_field": -1, "structured_mean_field": -1, "trw": 1}
#: Sampled shares may be this many of their standard errors away, and this much more.
DEVIATIONS, SLACK = 8.0, 0.05


@cache
def _engines() -> tuple[str, ...]:
    from gramgraph.engines.registry import engine_names

    return engine_names("tables", "answer", exact=False)


def trials(rng: np.random.Generator) -> Iterator[Trial]:
    """One question to every approximate engine; samplers, which are slow, in one of four worlds.

    One world in five has tiny numbers, which samplers miss and which others may lose, but not without a word.
    """
    tiny = rng.random() < 0.2
    world = draw_world(rng, smallest=float(rng.choice([-20.0, -150.0, -300.0])) if tiny else 0.0, cells=800)
    given = draw_given(rng, world, observe=0.3, reach=float(rng.choice([0.0, 20.0, 300.0])) if tiny else 0.0)
    draw, seed = rng.random() < 0.25, int(rng.integers(1 << 30))
    for engine in _engines():
        options: dict[str, Any] = {"random_state": seed}
        if _samples(engine):
            if not draw:
                continue
            options["budget"] = 1500
        check = partial(_check, world, given, engine, options, tiny)
        yield Trial(f"query(None, {given}, engine={engine!r}, **{options})", check, world.about)


@cache
def _samples(engine: str) -> bool:
    """Whether the engine draws: all others answer by messages or by coordinate ascent."""
    return engine not in {"bp", "join_graph", *BOUNDS}


def _check(world: World, given: Given, engine: str, options: dict[str, Any], tiny: bool) -> None:
    joint = given.truth(world)
    try:
        answer = world.model.query(None, given.evidence, engine=engine, **options, **given.options)
    except ImpossibleEvidenceError:
        if joint.best > -np.inf:
            raise
        return
    except (ModelError, OptionError, BudgetError):
        return  # it says which models it takes, or that it found no start
    if joint.best == -np.inf:
        return  # an approximation need not see it
    if answer.exact:
        raise Wrong("an approximate engine calls its answer exact")
    log_z = float(answer.log_evidence)
    if answer.details.get("feasible") is False:
        return  # it said so: zeros left no start
    if engine not in ("gibbs", "colored_gibbs", "block_gibbs", "metropolis", "swendsen_wang", "tempering"):
        if np.isnan(log_z):
            raise Wrong(f"log p(e) of {engine} is NaN")
    _check_sums(world, answer, joint, engine, tiny)
    if "raised_likelihoods" in answer.details:
        return  # it said that these numbers are beyond it
    side = BOUNDS.get(engine, 0)
    if side and side * (log_z - joint.log_z) < -1e-8 * max(1.0, abs(joint.log_z)):
        raise Wrong(f"log p(e) of {engine}: {log_z} is on the wrong side of {joint.log_z}")
    if engine == "bp" and _is_forest(world):
        close(log_z, joint.log_z, "log p(e) of bp on a tree", atol=1e-8)
        for key in answer:
            truth = joint.belief((world.model.index(key),))
            close(answer[key].probabilities, truth, f"p({key} | e) of bp on a tree", atol=1e-8)


def _check_sums(world: World, answer: Any, joint: Joint, engine: str, tiny: bool) -> None:
    for key in answer:
        p = answer[key].probabilities
        if not np.isfinite(p).all() or (p < 0.0).any() or abs(p.sum() - 1.0) > 1e-9:
            raise Wrong(f"p({key} | e) of {engine} is no distribution: {p.tolist()}")
        if engine in ("rejection", "likelihood_weighting", "importance") and not tiny:
            truth = joint.belief((world.model.index(key),))
            error = np.sqrt(np.maximum(truth * (1.0 - truth), 0.0) / max(_effective(answer), 1.0))
            if (np.abs(p - truth) > DEVIATIONS * error + SLACK).any():
                raise Wrong(f"p({key} | e) of {engine}: {p.tolist()}, truth {truth.tolist()}")


def _effective(answer: Any) -> float:
    found = answer.details.get("effective_draws", answer.details.get("draws", 1.0))
    return float(np.min(found)) / 4.0


def _is_forest(world: World) -> bool:
    """Whether variables and the model's factors (the small ones of structured conditionals too) form no loop."""
    home: dict[str, str] = {}

    def find(node: str) -> str:
        while home.setdefault(node, node) != node:
            node = home[node]
        return node

    for at, factor in enumerate(world.model.factors()):
        for var in factor.scope:
            a, b = find(f"factor {at}"), find(var.name)
            if a == b:
                return False
            home[a] = b
    return True
