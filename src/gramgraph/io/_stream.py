"""Files that are one long list of numbers (UAI, libDAI factor graphs): converted all at once, then taken in turn."""

from __future__ import annotations

import re
from typing import NoReturn

import numpy as np

from gramgraph.io._numbers import is_number, numbers_in
from gramgraph.io._text import fault_at, shown
from gramgraph.typing import FloatArray

_TOKEN = re.compile(r"\S+")


class NumberStream:
    """The numbers of a text from `start` on, with a position; faults name the token where they stand."""

    __slots__ = ("_source", "_start", "_text", "pos", "values")

    def __init__(self, text: str, start: int, source: str) -> None:
        self._text, self._start, self._source = text, start, source
        self.pos = 0
        try:
            self.values: FloatArray = numbers_in(text, start)
        except ValueError:
            for token in _TOKEN.finditer(text, start):
                if not is_number(token.group()):
                    message = f"expected a number, got {shown(token.group())}"
                    raise fault_at(message, source=source, text=text, offset=token.start()) from None
            raise

    def fail(self, message: str, index: int | None = None) -> NoReturn:
        """A `ParseError` at the number of this index (from the start), or at the current one."""
        wanted = self.pos if index is None else index
        offset = len(self._text)
        for i, token in enumerate(_TOKEN.finditer(self._text, self._start)):
            if i == wanted:
                offset = token.start()
                break
        raise fault_at(message, source=self._source, text=self._text, offset=offset)

    @property
    def left(self) -> int:
        """How many numbers have not been taken."""
        return self.values.size - self.pos

    def take(self, n: int, what: str) -> FloatArray:
        """The next n numbers, a view."""
        if n > self.left:
            self.fail(f"expected {n} numbers for {what}, the file ends after {self.left}", self.values.size)
        self.pos += n
        return self.values[self.pos - n : self.pos]

    def count(self, what: str) -> int:
        """The next number, which must be a count."""
        if self.pos >= self.values.size:
            self.fail(f"expected {what}, the file ends here")
        value = float(self.values[self.pos])
        if not 0.0 <= value <= 2**53 or not value.is_integer():
            self.fail(f"expected {what}, got {value:g}")
        self.pos += 1
        return int(value)

    def counts(self, n: int, what: str) -> list[int]:
        """The next n numbers, which must be counts."""
        taken = self.take(n, what)
        with np.errstate(invalid="ignore"):  # nan and inf are found below
            out: list[int] = taken.astype(np.int64).tolist() if n else []
        if out != taken.tolist() or (n and min(out) < 0):
            bad = next(i for i, value in enumerate(taken.tolist()) if not 0.0 <= value <= 2**53 or value % 1)
            self.fail(f"expected {what}, got {taken[bad]:g}", self.pos - n + bad)
        return out
