"""Online EM: expected statistics as running averages over batches of rows."""

from __future__ import annotations

from typing import Any

from gramgraph.machines.mixtures.sweeps import Moments, merge
from gramgraph.typing import FloatArray


def step_size(t: int) -> float:
    """t^-0.6: forgets the start, and still settles."""
    return float(t**-0.6)


def blend(running: Any, statistics: Any, total: float, share: float) -> tuple[FloatArray, Moments]:
    """(1 − share) of the running statistics and `share` of a batch's, each for a total weight of 1."""
    n, mean, scatter = running
    batch_n, batch = statistics
    old = Moments((1.0 - share) * n, mean, (1.0 - share) * scatter)
    new = Moments(share * batch_n / total, batch.mean, (share / total) * batch.scatter)
    both = merge(old, new)
    return both.n, both
