"""XML without surprises: bytes to a small tree of elements that know their place, and strings back to XML.

Files come from anywhere, so nothing in them may make work out of proportion: entity declarations are refused (an
internal DTD with other declarations is read over), nothing outside the file is looked at, and depth and number of
elements are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.parsers import expat

from gramgraph.exceptions import ModelError, ParseError
from gramgraph.io._numbers import is_number, numbers_of
from gramgraph.io._text import shown
from gramgraph.typing import FloatArray

#: More than any network needs, and less than would fill the memory.
MAX_DEPTH = 200
MAX_ELEMENTS = 1_000_000

_BLANK = " \t\r\n"  # what XML calls white space
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOTHING: Mapping[str, str] = {}


@dataclass(slots=True, eq=False)
class Element:
    """An element with its attributes, its children and the text that stands directly in it."""

    tag: str
    at: tuple[int, int]  # line and column, from 1
    attributes: Mapping[str, str]
    # Lists once they hold something: most elements have only one of them.
    children: list[Element] | tuple[()] = ()
    parts: list[str] | tuple[()] = ()
    marks: list[tuple[int, int, int]] | tuple[()] = ()  # (index of a part, its line, its column)

    @property
    def text(self) -> str:
        """The text directly in the element, as written."""
        return "".join(self.parts)

    @property
    def word(self) -> str:
        """The text without white space around it, unless the element says that it matters."""
        text = self.text
        return text if self.attributes.get("xml:space") == "preserve" else text.strip(_BLANK)

    def all(self, *tags: str) -> Iterator[Element]:
        """Children with one of these tags."""
        return (child for child in self.children if child.tag in tags)

    def first(self, *tags: str) -> Element | None:
        """The first child with one of these tags."""
        return next(self.all(*tags), None)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a position in the text."""
        part, start = 0, 0
        for part, piece in enumerate(self.parts):  # noqa: B007
            if offset < start + len(piece):
                break
            start += len(piece)
        index, line, column = next(mark for mark in reversed(self.marks) if mark[0] <= part)
        before = "".join(self.parts[index:part]) + self.parts[part][: offset - start]
        ahead = before.count("\n")
        return line + ahead, len(before) - before.rfind("\n") if ahead else column + len(before)


class _Builder:
    """The handlers that expat calls."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.root: Element | None = None
        self.stack: list[Element] = []
        self.count = 0
        self.fresh = True  # the next piece of text does not follow the last one directly
        self.parser = parser = expat.ParserCreate()
        parser.specified_attributes = True  # defaults of a DTD could repeat a long text at every element
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.CommentHandler = parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = self.interrupt
        parser.ProcessingInstructionHandler = self.interrupt
        parser.EntityDeclHandler = self.refuse_entity
        parser.SkippedEntityHandler = self.refuse_entity
        parser.ExternalEntityRefHandler = self.refuse_entity

    @property
    def at(self) -> tuple[int, int]:
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1

    def fail(self, message: str) -> ParseError:
        line, column = self.at
        return ParseError(message, source=self.source, line=line, column=column)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise self.fail(f"more than {MAX_ELEMENTS} elements")
        if len(self.stack) >= MAX_DEPTH:
            raise self.fail(f"elements are nested deeper than {MAX_DEPTH}")
        element = Element(tag, self.at, attributes or _NOTHING)
        if not self.stack:
            self.root = element
        else:
            outer = self.stack[-1]
            if isinstance(outer.children, list):
                outer.children.append(element)
            else:
                outer.children = [element]
        self.stack.append(element)
        self.fresh = True

    def end(self, tag: str) -> None:
        self.stack.pop()
        self.fresh = True

    def characters(self, text: str) -> None:
        element = self.stack[-1]
        if element.children and text.isspace():  # indentation between elements
            return
        if not isinstance(element.parts, list):
            element.parts = [text]
            element.marks = [(0, *self.at)]
        else:
            if self.fresh and isinstance(element.marks, list):
                element.marks.append((len(element.parts), *self.at))
            element.parts.append(text)
        self.fresh = False

    def interrupt(self, *ignored: object) -> None:
        self.fresh = True

    def refuse_entity(self, *ignored: object) -> int:
        raise self.fail("the document declares or uses an XML entity of its own; entities are not expanded")


def parse(data: bytes, *, source: str, root: str) -> Element:
    """The root element, which must be called `root` (in any case); a `ParseError` for anything else. O(len(data))."""
    builder = _Builder(source)
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "no sound XML"
        raise ParseError(f"XML: {reason}", source=source, line=error.lineno, column=error.offset + 1) from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know, or of several bytes a letter
        if isinstance(error, ParseError):
            raise
        raise ParseError(f"XML: the encoding cannot be read: {error}", source=source, line=1, column=1) from None
    element = builder.root
    if element is None or element.tag.upper() != root.upper():
        found = "nothing" if element is None else f"<{shown(element.tag)[1:-1]}>"
        line, column = (1, 1) if element is None else element.at
        raise ParseError(f"expected a document <{root}>, found {found}", source=source, line=line, column=column)
    return element


def numbers(element: Element, *, source: str) -> FloatArray:
    """The numbers in an element's text, separated by white space."""
    text = element.text
    try:
        return numbers_of(text.split())
    except ValueError:
        bad = next((m for m in re.finditer(r"\S+", text) if not is_number(m.group())), None)
    line, column = element.at if bad is None else element.place(bad.start())
    token = "what stands here" if bad is None else shown(bad.group())
    raise ParseError(f"{token} in <{element.tag}> is not a number", source=source, line=line, column=column)


def clean(text: str, what: str) -> str:
    """The text, if XML can hold it; `ModelError` with the character that it cannot hold."""
    bad = _FORBIDDEN.search(text)
    if bad:
        raise ModelError(f"{what} {text!r} has the character U+{ord(bad.group()):04X}, which no XML file can hold")
    return text


def content(tag: str, text: str, what: str = "the text") -> str:
    """`<tag>text</tag>`, escaped; white space around the text is marked as meant."""
    space = ' xml:space="preserve"' if text != text.strip(_BLANK) else ""
    return f"<{tag}{space}>{_escaped(clean(text, what))}</{tag}>"


def attribute(name: str, text: str, what: str = "the text") -> str:
    """` name="text"`, escaped; line ends and tabs as references, which attributes would lose otherwise."""
    value = _escaped(clean(text, what)).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return f' {name}="{value}"'


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")
