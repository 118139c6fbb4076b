"""A question in integers: what is asked, and what was observed, after the names were looked up once at the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramgraph.typing import FloatArray, IntArray

__all__ = ["Question", "Singles"]


class Singles(Sequence[tuple[int]]):
    """(0,), (1,), … (n - 1,): every variable wanted alone, without an object for each."""

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, at: Any) -> Any:
        return tuple((v,) for v in range(self.n)[at]) if isinstance(at, slice) else (range(self.n)[at],)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Singles) and self.n == other.n

    def __hash__(self) -> int:
        return hash(("singles", self.n))


@dataclass(frozen=True, eq=False)
class Question:
    """p(targets | evidence) for one case (`batched` false, one row of `codes`) or a table of cases.

    Variables are positions in the model's `variables`.
    """

    targets: Sequence[int]  # variables whose marginals are wanted: a tuple, or a range for all of them
    joints: tuple[tuple[int, ...], ...]  # sets whose joint tables are wanted, axes in this order
    observed: tuple[int, ...]  # variables that have a column in `codes`
    codes: IntArray  # (cases, len(observed)) state indices; -1 = not observed in this case
    likelihoods: tuple[tuple[int, FloatArray], ...] = ()  # variable → weights, (states,) or (cases, states)
    batched: bool = False
    #: Logarithms of likelihoods that reach over more than doubles hold; `likelihoods` have a least number for the lost.
    log_likelihoods: tuple[tuple[int, FloatArray], ...] = ()
    #: log of what the likelihoods were divided by when they were read: who tells log p(evidence) adds it.
    log_scale: float = 0.0

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

    def soft_logs(self, case: int) -> dict[int, FloatArray]:
        """Variable → logarithms of the likelihood weights, in one case."""
        with np.errstate(divide="ignore"):
            found = {var: np.log(w) for var, w in self.soft_weights(case).items()}
        return found | {var: np.asarray(w if w.ndim == 1 else w[case]) for var, w in self.log_likelihoods}

    def of_rows(self, rows: IntArray) -> Question:
        """The same question about some of the cases."""
        parts = [
            tuple((v, w if w.ndim == 1 else w[rows]) for v, w in given)
            for given in (self.likelihoods, self.log_likelihoods)
        ]
        return replace(self, codes=self.codes[rows], likelihoods=parts[0], log_likelihoods=parts[1])
