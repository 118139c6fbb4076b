"""Discrete models: every exact engine on every question, against the brute-force joint."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fuzz.trials import Trial, close
from fuzz.worlds import draw_world

__all__ = ["extreme", "tables"]


def tables(rng: np.random.Generator) -> Iterator[Trial]:
    """Ordinary numbers: |Δp| ≤ 1e-9, |Δ log p(e)| ≤ 1e-8."""
    world = draw_world(rng)
    yield Trial("log Z", lambda: close(world.model.log_evidence(), world.joint.log_z, "log Z", atol=1e-8), world.about)


def extreme(rng: np.random.Generator) -> Iterator[Trial]:
    """Entries down to 1e-300."""
    world = draw_world(rng, smallest=-300.0)
    yield Trial(
        "log Z",
        lambda: close(world.model.log_evidence(), world.joint.log_z, "log Z", atol=1e-12, rtol=1e-9),
        world.about,
    )
