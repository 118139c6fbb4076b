"""NumPy archives (.npz) from hands that need not be trusted: what they claim is limited by what they contain."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from math import prod
from typing import Any

import numpy as np

from gramgraph.exceptions import ParseError
from gramgraph.typing import Array

__all__ = ["is_archive", "read_archive"]

#: An archive may grow to this many bytes, and beyond that by this factor.
_SMALL = 48 << 20
_RATIO = 10
_MEMBERS = 100_000
#: What the standard library and NumPy raise for damaged archives.
_UNFIT = (
    EOFError, LookupError, NotImplementedError, OSError, OverflowError, RuntimeError, SyntaxError, TypeError,
    ValueError, struct.error, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error,
)  # fmt: skip


def is_archive(data: bytes) -> bool:
    """Whether bytes claim to be a zip archive."""
    return data.startswith(b"PK")


def read_archive(data: bytes, *, source: str) -> dict[str, Array]:
    """Name → array of a .npz file, or a `ParseError`. Arrays of objects are refused: nothing is executed.

    >>> stream = io.BytesIO()
    >>> np.savez_compressed(stream, x=np.arange(3))
    >>> read_archive(stream.getvalue(), source="<test>")["x"].tolist()
    [0, 1, 2]
    """
    most = max(_SMALL, _RATIO * len(data))
    found: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > _MEMBERS:
                raise ValueError(f"{len(members)} members")
            for member in members:
                most -= member.file_size
                if most < 0:
                    raise ValueError(f"{len(data)} bytes claim to hold far more than they can")
                name = member.filename.removesuffix(".npy")
                if name in found:
                    raise ValueError(f"{name!r:.40} stands twice")
                found[name] = _array(_member(archive, member))
    except _UNFIT as error:
        raise ParseError(f"not a sound archive: {error or type(error).__name__}", source=source) from None
    return found


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
        raise ValueError(f"{member.filename!r:.40} is packed in a way that is not read here")
    with archive.open(member) as stream:
        raw = stream.read(member.file_size + 1)  # one more than claimed: then the end and its checksum are looked at
    if len(raw) != member.file_size:
        raise ValueError(f"{member.filename!r:.40} does not hold what it claims")
    return raw


def _array(raw: bytes) -> Array:
    stream = io.BytesIO(raw)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version} of .npy")
    left = len(raw) - stream.tell()
    if dtype.hasobject or dtype.kind not in "biufU" or any(n < 0 for n in shape):
        raise ValueError(f"arrays of type {dtype} are not read")
    if prod(shape) * dtype.itemsize != left:
        raise ValueError(f"an array of shape {shape} needs {prod(shape) * dtype.itemsize} bytes, not {left}")
    order: Any = "F" if fortran else "C"
    return np.frombuffer(raw, dtype=dtype, offset=stream.tell()).reshape(shape, order=order).copy(order=order)
