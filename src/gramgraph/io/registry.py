"""Which module reads and writes which suffix.

A new format is one module with `loads(data, *, source, normalize)` and `dumps(model)`, and one line in `SUFFIXES`.
"""

from __future__ import annotations

import importlib
import zlib
from os.path import splitext
from typing import Any, Protocol, cast

from gramgraph.exceptions import ParseError, did_you_mean

__all__ = ["FORMATS", "SUFFIXES", "FormatModule", "find_format", "inflate", "load_format"]

#: Suffix → name of the format.
SUFFIXES: dict[str, str] = {
    ".bif": "bif",
    ".bifxml": "xmlbif",
    ".fg": "fg",
    ".hugin": "net",
    ".json": "json",
    ".net": "net",
    ".oobn": "net",
    ".uai": "uai",
    ".xdsl": "xdsl",
    ".xml": "xmlbif",
    ".xmlbif": "xmlbif",
}

#: Name of the format → module that reads and writes it; loaded at the first use.
FORMATS: dict[str, str] = {
    "bif": "gramgraph.io.bif",
    "fg": "gramgraph.io.fg",
    "json": "gramgraph.io.native",
    "net": "gramgraph.io.net",
    "uai": "gramgraph.io.uai",
    "xdsl": "gramgraph.io.xdsl",
    "xmlbif": "gramgraph.io.xmlbif",
}

#: A compressed file may grow to this many bytes, and by this factor once it is larger than `_SMALL`.
_LARGEST = 2 << 30
_RATIO = 200
_SMALL = 64 << 20
_STEP = 16 << 20


class FormatModule(Protocol):
    """What a module of a format offers."""

    def loads(self, data: bytes, *, source: str = "<text>", normalize: bool = True) -> Any:
        """A model from the bytes of a file, or a `ParseError`."""
        ...

    def dumps(self, model: Any) -> bytes:
        """The bytes of a file."""
        ...


def find_format(path: str, name: str | None = None) -> tuple[str, bool]:
    """(format, whether the file is compressed), from the suffix or from the format's name if one is given."""
    stem, suffix = splitext(path.lower())
    packed = suffix == ".gz"
    if name is None:
        if packed:
            suffix = splitext(stem)[1]
        if suffix not in SUFFIXES:
            known = ", ".join(sorted(SUFFIXES))
            raise ParseError(
                f"no format is known for the suffix {suffix!r}. Known: {known}, each also with .gz."
                f"{did_you_mean(suffix, SUFFIXES)} Name one with format=… if the file is called otherwise",
                source=path,
            )
        return SUFFIXES[suffix], packed
    wanted = name.lower().lstrip(".")
    if wanted not in FORMATS:
        wanted = SUFFIXES.get("." + wanted, wanted)
    if wanted not in FORMATS:
        raise ParseError(
            f"format {name!r} is not known. Known: {', '.join(sorted(FORMATS))}.{did_you_mean(name, FORMATS)}",
            source=path,
        )
    return wanted, packed


def load_format(name: str) -> FormatModule:
    """The module of a format, imported when it is first needed."""
    return cast(FormatModule, importlib.import_module(FORMATS[name]))


def inflate(data: bytes, *, source: str) -> bytes:
    """The content of gzip bytes (all members); a `ParseError` when they are broken or grow beyond reason."""
    parts: list[bytes] = []
    total, rest = 0, data
    while rest:
        stream = zlib.decompressobj(wbits=31)
        try:
            while not stream.eof:
                part = stream.decompress(rest, _STEP)
                rest = stream.unconsumed_tail
                if not part and not rest and not stream.eof:
                    raise ParseError("the gzip stream ends before its end mark (a cut-off download?)", source=source)
                parts.append(part)
                total += len(part)
                if total > _LARGEST or (total > _SMALL and total > _RATIO * len(data)):
                    raise ParseError(
                        f"{len(data)} compressed bytes inflate to more than {total} bytes; unpack the file yourself "
                        "if you trust it",
                        source=source,
                    )
        except zlib.error as error:
            raise ParseError(f"not a sound gzip stream: {error}", source=source) from None
        rest = stream.unused_data.lstrip(b"\0")  # padding after the last member is allowed
    return parts[0] if len(parts) == 1 else b"".join(parts)
