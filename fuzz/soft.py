"""Soft evidence: the asked margins are reached, by the nearest distribution, or an error names the conflict."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np

from fuzz.asked import exact_engines
from fuzz.trials import Trial, Wrong, close
from fuzz.truth import Joint, log
from fuzz.worlds import World, draw_world
from gramgraph.exceptions import GramGraphError, ImpossibleEvidenceError

__all__ = ["trials"]


def trials(rng: np.random.Generator) -> Iterator[Trial]:
    """Margins that can be had, margins taken at random from others that can, and margins that contradict."""
    world = draw_world(rng, cells=600)
    n = len(world.variables)
    if world.joint.best == -np.inf:
        return
    hard = _observed(rng, world)
    base = world.joint.weighed({i: log(np.arange(world.variables[i].size) == s) for i, s in hard.items()})
    wanted = [i for i in rng.permutation(n).tolist() if i not in hard][: int(rng.integers(1, 4))]
    if not wanted or base.best == -np.inf:
        return
    for sort in ("reachable", "arbitrary"):
        margins = (_reachable if sort == "reachable" else _arbitrary)(rng, base, wanted)
        for engine in exact_engines():
            check = partial(_check, world, base, hard, margins, sort == "reachable", engine)
            shown = {world.variables[i].name: q.tolist() for i, q in margins.items()}
            seen = {world.variables[i].name: world.variables[i].states[s] for i, s in hard.items()}
            yield Trial(f"query(None, {seen}, soft_evidence={shown}, engine={engine!r}), {sort}", check, world.about)


def _observed(rng: np.random.Generator, world: World) -> dict[int, int]:
    allowed = np.flatnonzero(world.joint.logs.reshape(-1) > -np.inf)
    cell = np.unravel_index(int(allowed[int(rng.integers(len(allowed)))]), world.joint.sizes)
    return {i: int(cell[i]) for i in range(len(world.variables)) if rng.random() < 0.15}


def _reachable(rng: np.random.Generator, base: Joint, wanted: list[int]) -> dict[int, np.ndarray]:
    """Margins of the joint after random likelihoods: some distribution on its support has them."""
    moved = base.weighed({i: 2.0 * rng.normal(size=base.sizes[i]) for i in wanted})
    return {i: moved.belief((i,)) for i in wanted}


def _arbitrary(rng: np.random.Generator, base: Joint, wanted: list[int]) -> dict[int, np.ndarray]:
    """Margins at random, zeros included; they may contradict the model or each other."""
    out = {}
    for i in wanted:
        q = rng.gamma(1.0, size=base.sizes[i]) + 1e-3
        q[rng.random(len(q)) < 0.15] = 0.0
        if not q.any():
            q[:] = 1.0
        out[i] = q / q.sum()
    return out


def _check(
    world: World, base: Joint, hard: dict[int, int], margins: dict[int, np.ndarray], reachable: bool, engine: str
) -> None:
    names = {i: world.variables[i].name for i in margins}
    seen = {world.variables[i].name: world.variables[i].states[s] for i, s in hard.items()}
    soft = {names[i]: q for i, q in margins.items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            answer = world.model.query(None, seen, soft_evidence=soft, engine=engine)
        except ImpossibleEvidenceError as error:
            if reachable:
                raise
            if not any(name in str(error) for name in soft):
                raise Wrong(f"the error names no variable of the soft evidence: {error}") from None
            _check_refusal(world, base, margins, error)
            return
    off = max(float(np.abs(answer[names[i]].probabilities - q).max()) for i, q in margins.items())
    if not off <= 1e-8 and (answer.exact or not told):
        raise Wrong(f"margins of soft evidence are off by {off} without a flag and a warning")
    if off <= 1e-8:
        nearest = _nearest(base, margins)
        for key in answer if nearest is not None else ():
            truth = nearest.belief((world.model.index(key),))
            close(answer[key].probabilities, truth, f"p({key}) of the nearest distribution", atol=1e-6)
    elif reachable:
        raise Wrong(f"margins that can be had are off by {off}")


def _check_refusal(world: World, base: Joint, margins: dict[int, np.ndarray], error: GramGraphError) -> None:
    """A conflict that is said must be one: no distribution on the support has these margins (a linear program)."""
    from scipy.optimize import linprog

    cells = np.argwhere(base.logs > -np.inf)
    for i, q in margins.items():
        cells = cells[q[cells[:, i]] > 0.0]
    if not len(cells):
        return
    rows = [cells[:, i] == s for i, q in margins.items() for s in np.flatnonzero(q)]
    sides = np.concatenate([q[q > 0.0] for q in margins.values()])
    # A little mass on every cell: what is feasible only with further zeros is a limit that fitting may not reach.
    found = linprog(np.zeros(len(cells)), A_eq=np.array(rows, float), b_eq=sides, bounds=(1e-9, None), method="highs")
    if found.status == 0:
        raise Wrong(f"soft evidence that can hold was refused: {error}")


def _nearest(base: Joint, margins: dict[int, np.ndarray]) -> Joint | None:
    """Proportional fitting in logarithms; None where it does not settle soon (margins that are limits only)."""
    weights = {i: np.zeros(len(q)) for i, q in margins.items()}
    for _ in range(300):
        off = 0.0
        for i, q in margins.items():
            now = base.weighed(weights).log_belief((i,))
            off = max(off, float(np.abs(np.exp(now) - q).max()))
            wanted = q > 0.0
            weights[i] = np.where(wanted, weights[i] + log(q) - np.where(wanted, now, 0.0), -np.inf)
        if off < 1e-11:
            return base.weighed(weights)
    return None
