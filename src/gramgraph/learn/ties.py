"""Which candidate is the best where the last digits of scores are rounding: the first one among equals.

Scores of equivalent graphs, of copied columns and of columns that say nothing are equal by rights, and differ by the
order in which they were added up. That order changes with the tier and the machine; the answer must not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gramgraph.typing import FloatArray

T = TypeVar("T")

#: Gains up to this are rounding, however small the terms of a score are: some 1e-9.
LEAST_GAIN = 2.0**-30
#: Rounding of a gain as a share of the largest terms of a score. Interpreted and compiled loops differ by up to 7e-16
#: of them in one family; a gain is a difference of up to four.
ROUNDING = 1e-13
#: Gains that agree to nine digits are equal.
SHARE = 2.0**-30
#: Binary digits of a score that count: ten decimal ones.
DIGITS = 36


def least_gain(scores: Any) -> float:
    """Gains up to this are rounding: a share of `scores.size`, the largest terms that a score sums up. A power of two,
    so that scores which are rounded to multiples of it add up without any error."""
    size = ROUNDING * float(getattr(scores, "size", 0.0))
    return LEAST_GAIN if size <= LEAST_GAIN else 2.0 ** math.floor(math.log2(size))


def largest_terms(n: float) -> float:
    """Of the log likelihood of counts that sum to n: n log n."""
    return n * math.log(n) if n > 1.0 else 0.0


def slack(top: float, least: float) -> float:
    """How far below (or above) a gain another one is its equal."""
    return max(least, abs(top) * SHARE)


def first_best(gains: FloatArray, least: float) -> int:
    """The first position whose gain is as good as the largest."""
    top = float(gains.max())
    return int((gains >= top - slack(top, least)).argmax()) if math.isfinite(top) else int(gains.argmax())


def best_first(items: Sequence[T], gain: Callable[[T], float], place: Callable[[T], Any], least: float) -> list[T]:
    """Items by falling gain, those with equal ones by `place`. Cost: two sorts."""
    out: list[T] = []
    equal: list[T] = []
    last = math.inf
    for item in sorted(items, key=gain, reverse=True):
        now = gain(item)
        if last - now > slack(last, least):
            out += sorted(equal, key=place)
            equal = []
        equal.append(item)
        last = now
    return out + sorted(equal, key=place)


def to_ten_digits(score: float, least: float = LEAST_GAIN) -> float:
    """A score without its rounding, which depends on how the data were added up: so that it does not decide between
    graphs that are equally good. A multiple of `least`."""
    if not math.isfinite(score):
        return score
    grain = max(math.ldexp(1.0, math.frexp(score)[1] - DIGITS), least)
    return round(score / grain) * grain
