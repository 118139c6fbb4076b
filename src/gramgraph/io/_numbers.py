"""Numbers as files spell them: single tokens, long texts, counts, and products of sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gramgraph.typing import FloatArray

#: A variable with more states than this is taken for a fault of the file.
MAX_STATES = 10_000_000

#: Products of sizes are not followed beyond this number of cells.
MAX_CELLS = 10**15

#: A number with more characters than this is taken for a fault of the file (exact decimals of floats may have 1,100).
_LONGEST = 2000

#: Texts are converted in pieces of this many characters.
_PIECE = 1 << 18

_BLANK = re.compile(r"\s")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)


def count_of(token: str, largest: int = MAX_STATES) -> int:
    """A count written in decimal digits; -1 when the token is none or exceeds `largest`."""
    if not token.isascii() or not token.isdigit() or len(token) > 18:
        return -1
    value = int(token)
    return value if value <= largest else -1


def cells_of(sizes: Iterable[int]) -> int:
    """Product of sizes, not followed beyond `MAX_CELLS` (a file may declare one of ten thousand digits)."""
    total = 1
    for size in sizes:
        total *= size
        if total > MAX_CELLS:
            return MAX_CELLS
    return total


def sizes_shown(sizes: Sequence[int]) -> str:
    """`2 · 3 = 6`, for messages."""
    total = cells_of(sizes)
    if total == MAX_CELLS:
        return f"more than {MAX_CELLS:g}"
    return f"{' · '.join(map(str, sizes))} = {total}" if len(sizes) > 1 else str(total)


def number_of(token: str) -> float:
    """One number; `ValueError` when the token is none."""
    # Python's float takes 1_0 and ٣, the formats do not; and time grows with the square of the number of digits.
    if "_" in token or len(token) > _LONGEST or not token.isascii():
        raise ValueError(token)
    return float(token)


class _Floats(dict[str, float]):
    """Token → number, each spelling converted once: probabilities repeat, and a lookup is quicker than `float`."""

    def __missing__(self, token: str) -> float:
        value = self[token] = number_of(token)
        return value


def numbers_of(tokens: Sequence[str]) -> FloatArray:
    """The tokens as numbers; `ValueError` when one is none (`is_number` then tells which)."""
    return np.array(list(map(_Floats().__getitem__, tokens)), dtype=np.float64)


def numbers_in(text: str, start: int = 0) -> FloatArray:
    """All numbers of a text that holds nothing else but blanks; `ValueError` when a token is not a number.

    Works through pieces of the text, so that memory stays near that of the result. As long as spellings repeat they
    are looked up, which takes about a third of the time of converting.
    """
    pieces: list[FloatArray] = []
    known = _Floats()
    convert: Callable[[str], float] = known.__getitem__
    seen = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            blank = _BLANK.search(text, end)
            end = blank.start() if blank else len(text)
        tokens = text[start:end].split()
        if seen and len(known) > 0.4 * seen:
            convert = number_of  # mostly new spellings: remembering them costs more than it saves
            known.clear()
        pieces.append(np.array(list(map(convert, tokens)), dtype=np.float64))
        seen += len(tokens)
        start = end
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.empty(0)


def is_number(token: str) -> bool:
    """Whether a token is a number (also nan and inf, which the row checks refuse)."""
    return len(token) <= _LONGEST and _NUMBER.fullmatch(token) is not None
