"""When to stop: losses on rows that were held out, round by round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray


class Watch:
    """Follows the loss on held-out rows and says when it has not fallen for `patience` rounds.

    `loss` turns scores (n, outputs) into one number. Without held-out rows nothing ever stops. `report` is called with
    the number of rounds done.
    """

    def __init__(
        self,
        X: Any = None,
        loss: Callable[[FloatArray], float] | None = None,
        *,
        patience: int | None = None,
        tol: float = 1e-7,
        report: Callable[[int], object] | None = None,
    ) -> None:
        self.X, self.loss, self.patience, self.tol, self.report = X, loss, patience, tol, report
        self.history: list[float] = []
        self.best_round = 0
        self._best = np.inf
        self._scores: FloatArray | None = None

    @property
    def watching(self) -> bool:
        """Whether there are rows to watch."""
        return self.patience is not None and self.X is not None

    def done(self, rounds: int, part: Callable[[], Any], base: Any) -> bool:
        """Whether to stop after `rounds` rounds; `part` gives the sum that the last round added, with base 0."""
        if self.report is not None:
            self.report(rounds)
        if not self.watching:
            return False
        if self._scores is None:
            self._scores = np.tile(np.atleast_1d(base).astype(np.float64), (len(self.X), 1))
        self._scores += part().scores(self.X)
        assert self.loss is not None and self.patience is not None
        now = self.loss(self._scores)
        self.history.append(now)
        if now < self._best - self.tol:
            self._best, self.best_round = now, rounds
        return rounds - self.best_round >= self.patience
