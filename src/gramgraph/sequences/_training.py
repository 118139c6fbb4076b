"""What learning does to its data first: sequences in an order of their own, and a look at how much they can tell."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelWarning
from gramgraph.sequences.baum_welch import Chain, Emission
from gramgraph.typing import Array, IntArray

#: Rows of a sequence that tell it from most others.
_HEAD = 8


def in_own_order(data: Any, offsets: IntArray, *beside: IntArray) -> tuple[Any, IntArray, IntArray | None]:
    """(data, offsets, rows): sequences sorted by length and content, and the rows that this took (None: all in place).

    First guesses draw rows and sums round, so that both depend on the order of the rows. Sequences are a set: learning
    sees them in an order that is theirs, and not the one in which they came. `beside` has more of every row, such as
    inputs. O(N).
    """
    if len(offsets) <= 2:
        return data, offsets, None
    order = _order((*_columns(data), *beside), list(pairwise(offsets.tolist())))
    if order == list(range(len(order))):
        return data, offsets, None
    sizes = np.diff(offsets)[order]
    ends = np.cumsum(sizes)
    rows = np.arange(ends[-1]) + np.repeat(offsets[:-1][order] - (ends - sizes), sizes)
    return data[rows], np.concatenate(([0], ends)).astype(np.int64), rows


def _order(columns: Sequence[Array], bounds: Sequence[tuple[int, int]]) -> list[int]:
    """The sequences by length and content, which is looked at beyond its first rows only where these are the same."""
    heads = [(b - a, columns[0][a : min(a + _HEAD, b)].tobytes()) for a, b in bounds]
    found: list[int] = []
    for _, same in groupby(sorted(range(len(heads)), key=heads.__getitem__), heads.__getitem__):
        alike = list(same)
        if len(alike) > 1:
            alike.sort(key=lambda s: [part[slice(*bounds[s])].tobytes() for part in columns])
        found += alike
    return found


def _columns(data: Any) -> tuple[Any, ...]:
    """The arrays that the data of a model consist of."""
    if isinstance(data, np.ndarray):
        return (np.ascontiguousarray(data),)
    return tuple(np.ascontiguousarray(getattr(data, name)) for name in ("values", "seen"))


def observed_numbers(data: Any) -> int:
    """How many numbers or symbols were observed."""
    if not isinstance(data, np.ndarray):
        return int(data.seen.sum())
    return int(np.count_nonzero(~np.isnan(data) if data.dtype.kind == "f" else data >= 0))


def free_numbers(chain: Chain, emission: Emission, fixed: tuple[str, ...], ties: IntArray | None) -> int:
    """Numbers that are learned: what is fixed, forbidden or tied to another does not count."""
    if ties is not None:
        emission = emission.take(np.unique(ties, return_index=True)[1])
    first = int(chain.start_mask.sum() - 1)
    counts = {"startprob": first, "transmat": chain.n_parameters - first, "emissions": emission.n_parameters}
    return sum(count for name, count in counts.items() if name not in fixed)


def warn_of_few(n_free: int, data: Any) -> None:
    """One warning where a model has more free numbers than were observed."""
    seen = observed_numbers(data)
    if n_free > seen:
        warnings.warn(
            f"the model has {n_free} free numbers, but X only {seen} observed ones: expect a degenerate solution, "
            f"which says more about the start values than about the data. Try: more data, fewer states, a "
            f'simpler emission (such as covariance_type="diag"), or stronger priors.',
            ModelWarning,
            stacklevel=3,
        )
