"""What learning does to its data first: sequences in an order of their own, and a look at how much they can tell."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelWarning
from gramgraph.sequences.baum_welch import Chain, Emission
from gramgraph.typing import IntArray


def in_own_order(data: Any, offsets: IntArray, *beside: IntArray) -> tuple[Any, IntArray, IntArray | None]:
    """(data, offsets, rows): sequences sorted by length and content, and the rows that this took (None: all in place).

    First guesses draw rows and sums round, so that both depend on the order of the rows. Sequences are a set: learning
    sees them in an order that is theirs, and not the one in which they came. `beside` has more of every row, such as
    inputs. O(N).
    """
    if len(offsets) <= 2:
        return data, offsets, None
    columns = (*_columns(data), *beside)
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
    keys = [(b - a, *(part[a:b].tobytes() for part in columns)) for a, b in bounds]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if order == list(range(len(keys))):
        return data, offsets, None
    rows = np.concatenate([np.arange(*bounds[s]) for s in order])
    sizes = np.diff(offsets)[order]
    return data[rows], np.concatenate(([0], np.cumsum(sizes))).astype(np.int64), rows


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
