"""The library's own container: a line that says what is there, a JSON tree, and raw arrays, under one checksum.

    gramgraph-container 1 <kind> <bytes of the tree> <bytes of the arrays> <SHA-256 of everything else>
    {"arrays": [{"name": …, "dtype": "<f8", "shape": [3, 2], "order": "C"}, …], "value": …}
    <the arrays, little-endian, one after the other, each from a multiple of eight bytes on>

Sizes are compared with the bytes that are there before anything is made of them, and the checksum before anything is
read: a file that was cut off or changed is a `ParseError`, and what reading takes is a small multiple of the file.
Nothing in a file is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gramgraph.exceptions import ModelError, ParseError
from gramgraph.typing import Array

__all__ = ["MAGIC", "Content", "is_container", "pack", "unpack"]

MAGIC = b"gramgraph-container "
_VERSION = 1
_LINE = re.compile(rb"gramgraph-container (\d{1,4}) ([a-z][a-z0-9_]{0,40}) (\d{1,15}) (\d{1,15}) ([0-9a-f]{64})\n")
_LONGEST_LINE = 200
_STEP = 8
#: Types of arrays; texts are `<U` with their length.
_DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
_TEXT = re.compile(r"<U([1-9]\d{0,6})")
_AXES = 8


class Content(NamedTuple):
    """What a container holds."""

    kind: str
    value: Any  # plain values, as JSON has them
    arrays: dict[str, Array]


def is_container(data: bytes) -> bool:
    """Whether bytes claim to be a container."""
    return data.startswith(MAGIC)


def pack(kind: str, value: Any, arrays: Mapping[str, Array]) -> bytes:
    """The bytes of a file.

    >>> content = unpack(pack("example", {"n": 2}, {"x": np.arange(2.0)}))
    >>> content.kind, content.value, content.arrays["x"].tolist()
    ('example', {'n': 2}, [0.0, 1.0])
    """
    told, blocks = [], []
    for name, array in arrays.items():
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        dtype = array.dtype.newbyteorder("<")
        if dtype.str not in _DTYPES and not _TEXT.fullmatch(dtype.str):
            raise ModelError(f"an array of type {array.dtype} has no place in a file.")
        raw = np.asarray(array, dtype=dtype).tobytes(order=order)  # type: ignore[arg-type]
        told.append({"name": name, "dtype": dtype.str, "shape": list(array.shape), "order": order})
        blocks.append(raw + bytes(-len(raw) % _STEP))
    try:
        tree = json.dumps({"arrays": told, "value": value}, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"the model cannot be written: {error}") from None
    tree += b" " * (-len(tree) % _STEP)
    data = b"".join(blocks)
    start = f"{MAGIC.decode()}{_VERSION} {kind} {len(tree)} {len(data)} "
    return b"".join((start.encode("ascii"), _checksum(start.encode("ascii"), tree, data), b"\n", tree, data))


def _checksum(*parts: bytes | memoryview) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest().encode("ascii")


def unpack(data: bytes, *, source: str = "<bytes>") -> Content:
    """The content of a file, or a `ParseError`."""
    line = _LINE.match(data[:_LONGEST_LINE])
    if line is None:
        raise ParseError("this is not a model of gramgraph: its first line is not that of a container", source=source)
    if int(line[1]) != _VERSION:
        message = f"version {int(line[1])} of the container is not known; this library reads {_VERSION}"
        raise ParseError(message, source=source)
    n_tree, n_data, start = int(line[3]), int(line[4]), line.end()
    there = len(data) - start
    if there != n_tree + n_data:
        cut = "it was cut off" if there < n_tree + n_data else "something was added"
        raise ParseError(
            f"the file should hold {n_tree + n_data} bytes after its first line, not {there}: {cut}", source=source
        )
    view = memoryview(data)
    if _checksum(view[: line.start(5)], view[start:]) != line[5]:
        raise ParseError("the checksum does not fit the content: the file was changed or damaged", source=source)
    top = _tree(bytes(view[start : start + n_tree]), source)
    return Content(line[2].decode("ascii"), top["value"], _arrays(top["arrays"], view[start + n_tree :], source))


def _tree(raw: bytes, source: str) -> dict[str, Any]:
    try:
        top = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the tree of the container cannot be read: {error}", source=source) from None
    if not isinstance(top, dict) or not isinstance(top.get("arrays"), list) or "value" not in top:
        raise ParseError("the tree of the container lacks 'arrays' or 'value'", source=source)
    return top


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _arrays(told: list[Any], data: memoryview, source: str) -> dict[str, Array]:
    found: dict[str, Array] = {}
    at = 0
    for entry in told:
        name, dtype, shape, order = _told(entry, source)
        size = prod(shape) * dtype.itemsize
        if size > len(data) - at:
            raise ParseError(f"the array {name!r:.40} claims {size} bytes, {len(data) - at} are left", source=source)
        raw = np.frombuffer(data[at : at + size], dtype=dtype)
        if dtype.kind == "U" and (raw.view(np.uint32) > 0x10FFFF).any():
            raise ParseError(f"the array {name!r:.40} holds something else than text", source=source)
        if name in found:
            raise ParseError(f"the array {name!r:.40} stands twice", source=source)
        found[name] = raw.reshape(shape, order=order).copy(order=order)
        at += size + -size % _STEP
    if at != len(data):
        raise ParseError(f"the arrays take {at} bytes, but the file has {len(data)}", source=source)
    return found


def _told(entry: Any, source: str) -> tuple[str, np.dtype[Any], tuple[int, ...], Any]:
    fields = entry if isinstance(entry, dict) else {}
    name, dtype, shape, order = (fields.get(key) for key in ("name", "dtype", "shape", "order"))
    sound = isinstance(name, str) and isinstance(dtype, str) and isinstance(shape, list) and order in ("C", "F")
    sound = sound and len(shape) <= _AXES and all(type(n) is int and 0 <= n < 2**48 for n in shape)  # type: ignore[arg-type,union-attr]
    if not sound or not (dtype in _DTYPES or _TEXT.fullmatch(str(dtype))):
        raise ParseError("an array of the container is not described as it should be", source=source)
    return str(name), np.dtype(dtype), tuple(shape), order  # type: ignore[arg-type]
