"""Structural series in coordinates that stand still: the effects of a season keep their places, and nothing is shifted.

The states of a season are its last p − 1 effects, which move one place a step. Here each of its p effects has a place
for ever, the observation looks at another one every step, and the noise of a step is added to its own effect and taken
from the next one's: the same likelihood, without the O(s²) of moving covariances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Standing:
    """The arrays that `_numerics.state_space.structural` takes, in its order."""

    changed: IntArray  # rows of A that are not those of the identity: their places …
    starts: IntArray
    cols: IntArray
    values: FloatArray  # … and entries
    at: IntArray  # (k,) first state that each noise drives
    periods: IntArray  # (k,) 0 where it drives no other
    hc: IntArray  # (T, w) states that an observation reads
    hv: FloatArray  # (T, w)
    start: FloatArray  # (s', s) the first state is these columns times the first state as the user knows it

    @classmethod
    def of(cls, A: FloatArray, H: FloatArray, driven: tuple[int, ...], seasons: tuple[slice, ...], T: int) -> Standing:
        """From A (s, s), H (1, s) or (T, s), the state that each noise drives, and which states are seasons."""
        s = len(A)
        opens = {place.start: place.stop - place.start + 1 for place in seasons}  # first state → period
        inside = np.zeros(s, dtype=bool)
        for place in seasons:
            inside[place] = True
        width = np.where(inside, 0, 1)
        width[list(opens)] = list(opens.values())
        first = np.concatenate([[0], np.cumsum(width)])  # where each state, or the first effect of a season, stands
        size = int(first[-1])
        B = np.zeros((size, s))
        B[first[:-1][~inside], np.flatnonzero(~inside)] = 1.0
        for begin, period in opens.items():
            for j in range(period - 1):  # the effect of j steps before the first; that of the second is what is left
                B[first[begin] + (-j) % period, begin + j] = 1.0
                B[first[begin] + 1, begin + j] -= 1.0
        others = np.flatnonzero(~inside)
        rows = [i for i in others if (A[i] != np.eye(s)[i]).any()]
        entries = [(np.flatnonzero(A[i]), A[i][A[i] != 0.0]) for i in rows]
        read = [i for i in others if (H[:, i] != 0.0).any()]
        steps = np.arange(T)[:, None]
        turning = [first[begin] + steps % period for begin, period in opens.items()]
        hc = np.concatenate([np.broadcast_to(first[read], (T, len(read))), *turning], axis=1)
        hv = np.concatenate([np.broadcast_to(H[:, read], (T, len(read))), np.ones((T, len(opens)))], axis=1)
        return cls(
            changed=_whole(first[rows]),
            starts=_whole(np.cumsum([0, *(len(c) for c, _ in entries)])),
            cols=_whole(np.concatenate([first[c] for c, _ in entries]) if entries else []),
            values=np.concatenate([v for _, v in entries]) if entries else np.zeros(0),
            at=_whole(first[list(driven)]),
            periods=_whole([opens.get(state, 0) for state in driven]),
            hc=_whole(hc),
            hv=np.ascontiguousarray(hv, dtype=np.float64),
            start=B,
        )

    def arrays(self) -> tuple[FloatArray | IntArray, ...]:
        """All but the start."""
        return (
            self.changed, self.starts, self.cols, self.values, self.at, self.periods, self.hc, self.hv
        )  # fmt: skip


def _whole(values: object) -> IntArray:
    return np.ascontiguousarray(values, dtype=np.int64)
