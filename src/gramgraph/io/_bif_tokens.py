"""Tokens of BIF: words, names in quotes, punctuation, runs of numbers; comments count as blanks."""

from __future__ import annotations

import re
from typing import NoReturn

from gramgraph.io._numbers import is_number, numbers_of
from gramgraph.io._text import Lines, fault_at, shown
from gramgraph.typing import FloatArray

WORD = re.compile(r'[^\s{}()\[\]|,;"]+')
QUOTED = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SPACE = re.compile(r"\s*")
_COMMENT_OR_QUOTE = re.compile(r'"|//|/\*')
_ESCAPE = re.compile(r'\\(["\\])')


def without_comments(text: str, source: str) -> str:
    """The text with comments blanked, so that every position stays where it was."""
    parts: list[str] = []
    done = pos = 0
    while (match := _COMMENT_OR_QUOTE.search(text, pos)) is not None:
        start = match.start()
        if match.group() == '"':
            quoted = QUOTED.match(text, start)
            if quoted is None:
                raise fault_at("the quote is not closed", source=source, text=text, offset=start)
            pos = quoted.end()
            continue
        if match.group() == "//":
            pos = text.find("\n", start)
            pos = len(text) if pos < 0 else pos
            blank = " " * (pos - start)
        else:
            pos = text.find("*/", start + 2) + 2
            if pos < 2:
                raise fault_at("the comment is not closed: no '*/' follows", source=source, text=text, offset=start)
            blank = re.sub(r"[^\n]", " ", text[start:pos])
        parts += (text[done:start], blank)
        done = pos
    return "".join(parts) + text[done:] if parts else text


class Cursor:
    """The text, a position, and the token there: `kind` is "word", "quoted", a punctuation mark or "end"."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source = text, source
        self.lines = Lines(text)
        self.pos = self.start = 0
        self.kind = self.value = ""
        self.advance()

    def fail(self, message: str, offset: int) -> NoReturn:
        raise fault_at(message, source=self.source, text=self.text, offset=offset)

    def advance(self) -> None:
        text = self.text
        match = _SPACE.match(text, self.pos)
        start = self.start = match.end() if match else self.pos
        word = WORD.match(text, start)
        if word is not None:
            self.kind, self.value, self.pos = "word", word.group(), word.end()
        elif start == len(text):
            self.kind, self.value, self.pos = "end", "", start
        elif text[start] == '"':
            quoted = QUOTED.match(text, start)
            if quoted is None:
                self.fail("the quote is not closed", start)
            self.kind, self.value, self.pos = "quoted", _ESCAPE.sub(r"\1", quoted.group()[1:-1]), quoted.end()
        else:
            self.kind = self.value = text[start]
            self.pos = start + 1

    def shown(self) -> str:
        return "the end of the file" if self.kind == "end" else shown(self.value)

    def expect(self, kind: str, where: str) -> None:
        if self.kind != kind:
            self.fail(f"expected {kind!r} {where}, got {self.shown()}", self.start)
        self.advance()

    def name(self, what: str) -> str:
        if self.kind not in ("word", "quoted"):
            self.fail(f"expected {what}, got {self.shown()}", self.start)
        value = self.value
        self.advance()
        return value

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.value.lower() == word

    def property(self) -> str:
        """The raw text of a property, from after the keyword to the semicolon."""
        begin = self.pos
        while self.kind not in (";", "end"):
            self.advance()
        if self.kind == "end":
            self.fail("expected ';' after the property", self.start)
        value = self.text[begin : self.start].strip()
        self.advance()
        return value

    def numbers(self, what: str) -> FloatArray:
        """Numbers up to the semicolon, starting at the current token."""
        begin = self.start
        end = self.text.find(";", begin)
        if end < 0:
            self.fail(f"expected ';' after {what}", len(self.text))
        chunk = self.text[begin:end]
        try:
            values = numbers_of(chunk.replace(",", " ").split())
        except ValueError:
            for token in re.finditer(r"[^\s,]+", chunk):
                if not is_number(token.group()):
                    self.fail(
                        f"expected a number in {what}, got {shown(token.group())} (is a ';' missing before it?)",
                        begin + token.start(),
                    )
            raise
        self.pos = end + 1
        self.advance()
        return values
