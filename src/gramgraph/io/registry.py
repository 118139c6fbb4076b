"""Which module reads and writes which suffix.

A new format is one module with `loads(data, *, source, normalize)` and `dumps(model)`, and one line in `SUFFIXES`.
"""

from __future__ import annotations

import importlib
import zlib
from os.path import splitext
from typing import Any, Protocol, cast

from gramgraph.exceptions import ParseError, did_you_mean

#: Suffix → name of the format.
SUFFIXES: dict[str, str] = {
    ".bif": "bif",
    ".bifxml": "xmlbif",
    ".fg": "fg",
    ".gg": "container",
    ".hugin": "net",
    ".json": "json",
    ".net": "net",
    ".npz": "archive",
    ".oobn": "net",
    ".uai": "uai",
    ".xdsl": "xdsl",
    ".xml": "xmlbif",
    ".xmlbif": "xmlbif",
}

#: Name of the format → module that reads and writes it; loaded at the first use.
FORMATS: dict[str, str] = {
    "archive": "gramgraph.io.archive",
    "bif": "gramgraph.io.bif",
    "container": "gramgraph.io.container",
    "fg": "gramgraph.io.fg",
    "json": "gramgraph.io.native",
    "net": "gramgraph.io.net",
    "uai": "gramgraph.io.uai",
    "xdsl": "gramgraph.io.xdsl",
    "xmlbif": "gramgraph.io.xmlbif",
}

#: A compressed file may grow to `_SMALL` bytes, and beyond that by this factor: what a file claims is limited by what
#: it contains. (Tables of zeros and ones shrink to a two-hundredth; those that do so are smaller than this.)
_SMALL = 48 << 20
_RATIO = 20
_STEP = 4 << 20


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
    out = bytearray()
    at, most = 0, max(_SMALL, _RATIO * len(data))
    view = memoryview(data)
    while at < len(data):
        at = _member(view, at, out, most, source)
        while at < len(data) and view[at] == 0:  # padding between and after members is allowed
            at += 1
    return bytes(out)


def _member(data: memoryview, at: int, out: bytearray, most: int, source: str) -> int:
    """Append one gzip member to `out`; where the next one begins.

    Bytes are fed in growing pieces: handing over all that is left would copy it once a member, which takes quadratic
    time for a file of many small ones.
    """
    stream = zlib.decompressobj(wbits=31)
    size, piece = 256, b""
    while not stream.eof:
        if not piece:
            if at >= len(data):
                raise ParseError("the gzip stream ends before its end mark (a cut-off download?)", source=source)
            piece = bytes(data[at : at + size])
            at += len(piece)
            size = min(4 * size, _STEP)
        try:
            out += stream.decompress(piece, _STEP)
        except zlib.error as error:
            raise ParseError(f"not a sound gzip stream: {error}", source=source) from None
        piece = stream.unconsumed_tail
        if len(out) > most:
            raise ParseError(
                f"{len(data)} compressed bytes inflate to more than {most} bytes; unpack the file yourself if you "
                "trust it",
                source=source,
            )
    return at - len(stream.unused_data)
