"""Plates as one writes them, beside the edges of a structure.

    statement = "plate" name [ "[" number "]" ] [ "in" name ] ":" name { "," name }
    name "*"  = a hyper-parameter: a number that is given, drawn as a dot

These parts are taken out of the text; what is left is an ordinary structure, at the same lines and columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from gramgraph.distributions.by_name import ByName, Index
from gramgraph.exceptions import ModelError, ParseError

_PIECE = re.compile(r'"[^"\n]*"|#[^\n]*|[;\n]|[^";\n#]+|"')
_PLATE = re.compile(r'\s*plate\s+(?=[\w"])')
_HEAD = re.compile(
    r'(?P<name>"[^"]+"|[\w.\']+)\s*(?:\[(?P<size>[^\[\]]*)\])?\s*(?:\s+in\s+(?P<outer>"[^"]+"|[\w.\']+))?\s*\Z'
)
_STAR = re.compile(r"([\w.':@$%&*+/=!?~^·]+)\*(?![\w.':@$%&*+/=!?~^·])")


@dataclass(frozen=True)
class Plate:
    """What repeats: members, the plate in which this one stands, and its size where that is fixed.

    Parameters
    ----------
    name : of the plate.
    members : variables that it repeats.
    outer : the plate in which it stands, or None.
    size : number of members, where it is fixed.

    Examples
    --------
    >>> Plate("words", ("z", "w"), outer="documents")
    Plate(name='words', members=('z', 'w'), outer='documents', size=None)
    """

    name: str
    members: tuple[str, ...]
    outer: str | None = None
    size: int | None = None


def is_plated(structure: Any, cpds: Any, plates: Any, given: Mapping[str, Any]) -> bool:
    """Whether what a user wrote is a plate model: plates, hyper-parameters with values, or conditionals by name."""
    if plates is not None:
        return True
    if isinstance(structure, str):
        if any(_PLATE.match(text) for text, _, _ in _statements(structure)):
            return True
        if given and "*" in structure and set(given) & set(split_text(structure)[2]):
            return True
    return isinstance(cpds, Mapping) and any(isinstance(spec, (ByName, Index)) for spec in cpds.values())


def split_text(text: str) -> tuple[str, tuple[Plate, ...], tuple[str, ...]]:
    """The structure alone, the plates, and the names of hyper-parameters.

    >>> left, plates, stars = split_text("alpha* -> theta; plate days: theta")
    >>> left.split(), plates[0].members, stars
    (['alpha', '->', 'theta;'], ('theta',), ('alpha',))
    """
    plates: dict[str, Plate] = {}
    kept = list(text)
    for statement, start, stop in _statements(text):
        if not (match := _PLATE.match(statement)):
            continue
        made = _read_plate(text, statement, start, match.end())
        if made.name in plates:
            _fail(text, start + match.end(), f"the plate {made.name} is written twice")
        plates[made.name] = made
        kept[start:stop] = " " * (stop - start)
    left = "".join(kept)
    stars: dict[str, None] = {}
    pieces = []
    for piece in _PIECE.findall(left):
        if piece[0] not in '"#;\n':
            for match in _STAR.finditer(piece):
                stars.setdefault(match[1])
            piece = _STAR.sub(r"\1 ", piece)
        pieces.append(piece)
    return "".join(pieces), tuple(plates.values()), tuple(stars)


def _statements(text: str) -> Iterator[tuple[str, int, int]]:
    """(text without comments, start, stop) of each statement."""
    start = at = 0
    out = ""
    for piece in _PIECE.findall(text):
        if piece in (";", "\n"):
            yield out, start, at
            start, out = at + 1, ""
        else:
            out += " " * len(piece) if piece[0] == "#" else piece
        at += len(piece)
    yield out, start, at


def _read_plate(text: str, statement: str, start: int, begin: int) -> Plate:
    head, colon, members = statement[begin:].partition(":")
    at = start + begin
    found = _HEAD.match(head)
    if not colon or found is None:
        _fail(text, at, "a plate is written 'plate NAME: members' or 'plate NAME in OUTER: members'")
    name = found["name"].strip('"')
    names = [part.strip().strip('"') for part in members.split(",")]
    if names == [""]:
        _fail(text, at, f"the plate {name} has no members: write 'plate {name}: x, y'")
    if not all(names):
        _fail(text, at, f"an empty name among the members of the plate {name}")
    if twice := [n for i, n in enumerate(names) if n in names[:i]]:
        _fail(text, at, f"{twice[0]} is named twice among the members of the plate {name}")
    size = found["size"]
    if size is not None and not re.fullmatch(r"\s*[0-9]{1,9}\s*", size):
        _fail(text, at, f"the size of a plate is a whole number, as in plate {name}[3]: …")
    outer = found["outer"]
    return Plate(name, tuple(names), outer and outer.strip('"'), None if size is None else int(size))


def read_plates(given: Any) -> tuple[Plate, ...]:
    """Plates of the builder: `{"documents": ["theta"], "words in documents": ["z", "w"]}`, or `Plate` values.

    >>> read_plates({"words in documents": ["z", "w"], "topics[2]": "phi"})[0].outer
    'documents'
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        items: list[Any] = list(given) if not isinstance(given, (str, Plate)) else [given]
        if not all(isinstance(item, Plate) for item in items):
            raise ModelError(f"plates are a dict {{name: members}} or a list of Plate values; got {given!r:.80}")
        return tuple(items)
    out = []
    for head, members in given.items():
        if isinstance(members, Plate):
            out.append(members)
            continue
        names = [members] if isinstance(members, str) else list(members)
        out.append(_read_plate(f"plate {head}", f"{head}: {', '.join(map(str, names))}", 0, 0))
    return tuple(out)


def _fail(text: str, at: int, message: str) -> NoReturn:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1)
    shown = text.splitlines()[line - 1] if text else ""
    picture = f"{message}\n  {shown}\n  {' ' * column}^"
    raise ParseError(picture, source="<structure>", line=line, column=column + 1)
