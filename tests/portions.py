"""How much of a repetition `make test` runs; `make test-all` runs all of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["examples", "first", "seeds"]

#: Whether this is `make test`, and not one of the runs that ask for many examples by a profile of Hypothesis.
QUICK = os.environ.get("HYPOTHESIS_PROFILE", "default") == "default"


def examples(many: int) -> int:
    """How many examples a law is tried on: half of `many` in `make test`."""
    return max(many // 2, 1) if QUICK else many


def seeds(few: int, many: int) -> list[Any]:
    """Seeds 0, 1, … below `many`; those from `few` on are marked slow."""
    return first(few, range(many))


def first(few: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of a test; all but the first `few` are marked slow."""
    return [pytest.param(value, marks=[pytest.mark.slow] * (at >= few)) for at, value in enumerate(values)]
