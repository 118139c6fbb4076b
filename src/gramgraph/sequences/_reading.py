"""The door for sequences: one array with lengths, or a list of arrays; and for chains of probabilities."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray

#: How far from one a row of probabilities may sum; and the largest number of a series, whose square is a number.
TOLERANCE, LARGEST = 1e-6, 1e150


def offsets_of(n: int, lengths: Any) -> IntArray:
    """Where sequences start, and the end, (S + 1,): from lengths that must add up to n rows."""
    if lengths is None:
        if n == 0:
            raise ModelError("a sequence needs at least one observation; 0 rows came (minimum of 1 is required).")
        return np.array([0, n], dtype=np.int64)
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or len(sizes) == 0:
        raise ModelError(
            f"lengths must be a list of whole numbers, one a sequence; got an array of {sizes.dtype} with shape "
            f"{sizes.shape}."
        )
    if (sizes < 1).any():
        where = int(np.flatnonzero(sizes < 1)[0])
        raise ModelError(f"sequence {where} has length {int(sizes[where])}; every sequence needs at least 1 row.")
    if int(sizes.sum()) != n:
        raise ModelError(f"lengths add up to {int(sizes.sum())}, but X has {n} rows.")
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def is_list_of_sequences(X: Any) -> bool:
    """Whether X is a list or tuple of arrays (or of lists of rows) rather than one matrix."""
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    if all(isinstance(part, str) for part in X):
        return False
    if any(isinstance(part, np.ndarray) and part.ndim >= 2 for part in X) or any(hasattr(part, "iloc") for part in X):
        return True
    if all(isinstance(part, np.ndarray) and part.ndim == 1 for part in X):
        return True
    if all(isinstance(part, (list, tuple)) for part in X) and len({len(part) for part in X}) > 1:
        return True  # unequal lists cannot be the rows of a matrix
    first = next((part for part in X if isinstance(part, (list, tuple)) and len(part)), None)
    return first is not None and isinstance(first[0], (list, tuple, np.ndarray))


def is_ready(model: Any, X: Any) -> bool:
    """Whether X is a matrix of finite floats, as wide as what the model was fitted to: nothing is left to check."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) > 0
        and X.flags.c_contiguous
        and X.shape[1] == vars(model).get("n_features_in_")
        and "feature_names_in_" not in vars(model)
        and math.isfinite(np.add.reduce(X, axis=None))  # one that overflows goes the long way, which tells apart
    )


def joined(X: Any, lengths: Any) -> tuple[Any, Any]:
    """(one array, lengths): a list of arrays is concatenated, everything else is returned unchanged."""
    if not is_list_of_sequences(X):
        return X, lengths
    if lengths is not None:
        raise ModelError("X is a list of sequences, which have their own lengths: leave lengths out.")
    try:
        parts = [np.asarray(part) for part in X]
    except ValueError:
        raise ModelError("every sequence must be an array: one of them has rows of unequal lengths.") from None
    empty = [i for i, part in enumerate(parts) if len(part) == 0]
    if empty:
        raise ModelError(f"sequence {empty[0]} is empty; every sequence needs at least 1 row: leave it out.")
    parts = [part[:, None] if part.ndim == 1 else part for part in parts]
    widths = [part.shape[1:] for part in parts]
    odd = next((i for i, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        raise ModelError(f"sequence {odd} has rows of shape {widths[odd]}, but sequence 0 of {widths[0]}.")
    return np.concatenate(parts), np.array([len(part) for part in parts])


def check_chain(start: Any, transition: Any) -> tuple[FloatArray, FloatArray]:
    """start (K,) and transition (K, K) as floats: no negative numbers, rows that sum to one."""
    start = check_rows("startprob", start, 1)
    transition = check_rows("transmat", transition, 2)
    if transition.shape != (len(start), len(start)):
        raise ModelError(f"transmat must have shape {(len(start),) * 2}, states by states; it has {transition.shape}.")
    return start, transition


def check_rows(name: str, values: Any, axes: int) -> FloatArray:
    """Probabilities with rows that sum to one; what rounding took is put back."""
    p = numbers(name, values)
    if p.ndim != axes or p.size == 0:
        raise ModelError(f"{name} must have {axes} axes and at least one entry; its shape is {p.shape}.")
    if not np.isfinite(p).all() or (p < 0.0).any():
        raise ModelError(f"{name} must hold probabilities, but an entry is negative, infinite or NaN.")
    sums = p.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1.0).ravel()
    if off.max() > TOLERANCE:
        where = f"row {int(off.argmax())} of {name}" if axes > 1 else name
        raise ModelError(f"{where} sums to {sums.ravel()[off.argmax()]:.6g}, not 1.")
    return p if off.max() < 1e-14 * p.shape[-1] else p / sums  # what sums to one stays bit by bit


def numbers(name: str, values: Any) -> FloatArray:
    """A new array of floats."""
    try:
        found = np.asarray(values)
        if found.dtype.kind == "c":
            raise TypeError
        return np.array(found, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ModelError(f"{name} must hold numbers, rows of equal lengths; got {reprlib.repr(values)}.") from None


def one_row(z: Any, width: int) -> FloatArray:
    """One observation of a stream as a row of `width` numbers, (1, width); None is a gap."""
    try:
        row = np.full((1, width), np.nan) if z is None else np.array(z, dtype=np.float64).reshape(1, -1)
    except (TypeError, ValueError):
        row = np.empty((1, 0))
    if row.shape[1] != width or (not abs(row.sum()) < LARGEST and (np.abs(row) > LARGEST).any()):
        raise ModelError(
            f"an observation has {width} finite numbers, NaN where one is missing, none beyond {LARGEST:g}; got {z!r}."
        )
    return row


def saved_numbers(state: Any, *names: str, optional: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """The arrays of these names out of the saved state of a stream, its log-likelihood and steps.

    Those that are `optional` may be None; everything else is finite.
    """
    wanted = (*names, "log_likelihood", "steps")
    missing = [name for name in wanted if not isinstance(state, dict) or name not in state]
    if missing:
        raise ModelError(f"state must be the `state` of such a stream, a dict with {', '.join(wanted)}; got {state!r}.")
    here = [name for name in wanted if not (name in optional and state[name] is None)]
    try:
        found = {name: np.array(state[name], dtype=np.float64) for name in here}
        total, steps = float(state["log_likelihood"]), int(state["steps"])
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"state must hold numbers under {', '.join(wanted)}; got {state!r}.") from None
    if steps < 0 or not all(np.isfinite(part).all() for part in found.values()):
        raise ModelError(f"state must hold finite numbers, and steps of at least 0; got {state!r}.")
    return *(found.get(name) for name in names), total, steps


def plain_generator(rng: np.random.Generator) -> dict[str, Any]:
    """Where a generator is, as plain numbers."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value

    found: dict[str, Any] = plain(rng.bit_generator.state)
    return found


def restored_generator(state: Any) -> np.random.Generator:
    """The generator that `plain_generator` described."""

    def arrays(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: arrays(part) for key, part in value.items()}
        return np.array(value, dtype=np.uint64) if isinstance(value, list) else value

    name = state.get("bit_generator") if isinstance(state, dict) else None
    if name not in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
        raise ModelError(f"state must tell where a generator of NumPy is; it says {state!r}.")
    bits = getattr(np.random, name)()
    try:
        bits.state = arrays(state)
    except (TypeError, ValueError, KeyError):
        raise ModelError(f"state does not tell where a {name} generator is: {state!r}.") from None
    return np.random.Generator(bits)
