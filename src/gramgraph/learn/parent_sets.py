"""Sets of parents that a best graph may use: all others are ruled out by a subset that is as good, or by a bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.learn.search import Constraints, Scores
from gramgraph.learn.ties import least_gain, to_ten_digits

#: Sets of parents of one variable that are scored before the work is called off.
MAX_SETS = 600_000


@dataclass(frozen=True, eq=False)
class ParentSets:
    """The sets of parents of one child, as bit masks, with their scores, the best first."""

    masks: tuple[int, ...]
    values: tuple[float, ...]

    def best_within(self, allowed: int) -> tuple[float, int]:
        """(score, mask) of the best set among the allowed variables; (-inf, 0) if there is none."""
        for mask, value in zip(self.masks, self.values, strict=True):
            if not mask & ~allowed:
                return value, mask
        return -math.inf, 0


def parent_sets(
    scores: Scores, child: int, candidates: list[int], constraints: Constraints, *, name: str = ""
) -> ParentSets:
    """Sets of up to `max_parents` candidates that are better than all their subsets.

    Sets are scored by size. `scores.closed(child, parents, best)`, where there is such a method, says that no larger
    set can beat the best one within `parents`; then none is tried. Cost: one score for each set that is left.
    """
    must = tuple(np.flatnonzero(constraints.required[:, child]).tolist())
    base = sum(1 << p for p in must)
    least = least_gain(scores)
    free = [p for p in sorted(candidates) if p not in must and p != child and not constraints.forbidden[p, child]]
    closed = getattr(scores, "closed", None)
    kept: dict[int, float] = {}
    level: dict[int, float] = {base: scores.family(child, must)}
    kept[base] = level[base]
    scored = 1
    for _ in range(min(len(free), constraints.max_parents - len(must))):
        open_sets = {
            mask: best for mask, best in level.items() if closed is None or not closed(child, members(mask), best)
        }
        level = {}
        for before, more in _larger(open_sets, base, free):
            mask = before | 1 << more
            below = [open_sets.get(mask ^ (1 << p)) for p in members(mask ^ base)]
            if None in below:
                continue
            scored += 1
            if scored > MAX_SETS:
                raise OptionError(
                    f"{name or 'a variable'} has more than {MAX_SETS:,} possible sets of parents: give max_parents=…, "
                    "or use method='tabu' or 'order'"
                )
            value = scores.family(child, members(mask))
            best = max(each for each in below if each is not None)
            level[mask] = max(value, best)
            if value > best + least:
                kept[mask] = value
        if not level:
            break
    found = {mask: to_ten_digits(value, least) for mask, value in kept.items() if value > -math.inf}
    order = sorted(found, key=lambda mask: (-found[mask], mask.bit_count(), mask))
    return ParentSets(tuple(order), tuple(found[mask] for mask in order))


def _larger(sets: dict[int, float], base: int, free: list[int]) -> Iterator[tuple[int, int]]:
    """(set, one more candidate), each union once: the new one stands behind all others."""
    for mask in sets:
        last = (mask ^ base).bit_length() - 1
        for p in free:
            if p > last:
                yield mask, p


def members(mask: int) -> tuple[int, ...]:
    """Positions of the bits, ascending."""
    out = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return tuple(out)
