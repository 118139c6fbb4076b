"""A question in integers: what is asked, and what was observed, after the names were looked up once at the door."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.typing import FloatArray, IntArray

__all__ = ["Question"]


@dataclass(frozen=True, eq=False)
class Question:
    """p(targets | evidence) for one case (`batched` false, one row of `codes`) or a table of cases.

    Variables are positions in the model's `variables`.
    """

    targets: tuple[int, ...]  # variables whose marginals are wanted
    joints: tuple[tuple[int, ...], ...]  # sets whose joint tables are wanted, axes in this order
    observed: tuple[int, ...]  # variables that have a column in `codes`
    codes: IntArray  # (cases, len(observed)) state indices; -1 = not observed in this case
    likelihoods: tuple[tuple[int, FloatArray], ...] = ()  # variable → weights, (states,) or (cases, states)
    batched: bool = False

    @property
    def n_cases(self) -> int:
        """Number of cases."""
        return int(self.codes.shape[0])

    def hard_evidence(self, case: int) -> dict[int, int]:
        """Variable → observed state, in one case."""
        return {var: int(code) for var, code in zip(self.observed, self.codes[case], strict=True) if code >= 0}

    def soft_weights(self, case: int) -> dict[int, FloatArray]:
        """Variable → likelihood weights, in one case."""
        return {var: np.asarray(w if w.ndim == 1 else w[case]) for var, w in self.likelihoods}
