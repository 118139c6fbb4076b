"""Factors without a direction in flat arrays, all at once: no Python a factor beyond reading its fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gramgraph.factors import SharedTables, TableFactor
from gramgraph.typing import FloatArray, IntArray

#: Tables whose largest entry lies between these are taken as they are.
SMALL, LARGE = 1e-3, 1e3
#: Entries smaller than this part of the largest one would be lost by a division.
LEAST = 1e-290


class Flattened(NamedTuple):
    """Scopes and values of factors, as in `Lowered`; factors that are one number have gone into the scale."""

    scope_ptr: IntArray
    scope_idx: IntArray
    value_ptr: IntArray
    values: FloatArray
    log_scale: float


def flatten(factors: Sequence[TableFactor], index: dict[str, int], sizes: IntArray) -> Flattened:
    """Factors as values; a `KeyError` for a variable that is not in the index. Factors that share an array share it."""
    scopes = [factor.scope for factor in factors]
    lengths = np.fromiter(map(len, scopes), np.int64, len(scopes))
    idx = np.fromiter((index[var.name] for scope in scopes for var in scope), np.int64, int(lengths.sum()))
    place: dict[int, int] = {}
    level = np.fromiter((place.setdefault(id(f.values), len(place)) for f in factors), np.int64, len(factors))
    first = np.full(len(place), len(factors))
    np.minimum.at(first, level, np.arange(len(factors)))
    tables = [factors[i].values.reshape(-1) for i in first.tolist()]
    pool = np.concatenate(tables) if tables else np.zeros(0)
    cells = np.fromiter(map(len, tables), np.int64, len(tables))
    scale = float(np.fromiter((f.log_scale for f in factors), np.float64, len(factors)).sum())
    return _together([Piece(lengths, idx, pool, cells, level, scale)], sizes)


def flatten_shared(parts: Iterable[SharedTables], sizes: IntArray) -> Flattened:
    """Factors that are arrays already."""
    pieces = []
    for part in parts:
        n, k = part.scopes.shape
        levels, pool = len(part.tables), part.tables.reshape(-1)
        cells = np.full(levels, len(pool) // max(levels, 1))
        scale = float(part.log_scales[part.level].sum())
        pieces.append(Piece(np.full(n, k), part.scopes.reshape(-1), pool, cells, part.level, scale))
    return _together(pieces, sizes)


class Piece(NamedTuple):
    """Factors whose tables stand one after the other in a pool."""

    lengths: IntArray  # (factors,) of their scopes
    idx: IntArray
    pool: FloatArray
    cells: IntArray  # (tables,)
    level: IntArray  # (factors,) which table
    scale: float


def _together(pieces: list[Piece], sizes: IntArray) -> Flattened:
    """One after the other; large and small tables scaled, variables with one state left out of the scopes."""
    starts = np.cumsum([0, *(len(piece.cells) for piece in pieces)])
    level = np.concatenate([piece.level + start for piece, start in zip(pieces, starts, strict=False)])
    lengths, idx, pool, cells = (np.concatenate([piece[i] for piece in pieces]) for i in range(4))
    at, scale = _pointers(cells), sum(piece.scale for piece in pieces)
    if len(cells):
        tops = np.maximum.reduceat(pool, at[:-1])
        odd = (tops > 0) & ~((tops > SMALL) & (tops < LARGE))
        if odd.any():  # division must not lose the smallest entries: tables of such range are answered in logarithms
            least = np.minimum.reduceat(np.where(pool > 0, pool, np.inf), at[:-1])
            with np.errstate(over="ignore", invalid="ignore"):
                odd &= least > LEAST * tops
        if odd.any():
            divisor = np.where(odd, tops, 1.0)
            pool /= np.repeat(divisor, cells)
            scale += float(np.log(divisor)[level].sum())
    return _gathered(lengths, idx, pool, at, level, scale, sizes)


def _gathered(
    lengths: IntArray, idx: IntArray, pool: FloatArray, at: IntArray, level: IntArray, scale: float, sizes: IntArray
) -> Flattened:
    """Values of every factor from the pool of tables."""
    wide = sizes[idx] > 1
    if not wide.all():
        owner = np.repeat(np.arange(len(lengths)), lengths)
        lengths, idx = np.bincount(owner[wide], minlength=len(lengths)), idx[wide]
    if not lengths.all():  # numbers
        alone = pool[at[level[lengths == 0]]]
        with np.errstate(divide="ignore"):
            scale += float(np.log(np.maximum(alone, 0.0)).sum())
        level, lengths = level[lengths > 0], lengths[lengths > 0]
    value_ptr = _pointers(np.diff(at)[level])
    source = np.repeat(at[level] - value_ptr[:-1], np.diff(value_ptr)) + np.arange(value_ptr[-1])
    values = pool[source] if len(source) else np.zeros(1)
    return Flattened(_pointers(lengths), idx, value_ptr, values, scale)


def _pointers(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
