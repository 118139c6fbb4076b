"""Write files whole or not at all: beside the old one, then in its place in one step.

Every writer of the library goes through here. A full disk, a signal or a crash leaves the old file as it was and
nothing else behind.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, Any

__all__ = ["replacing", "write_whole"]

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_FLAGS |= getattr(os, "O_CLOEXEC", 0)


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file of these bytes (or of this text, in UTF-8), whole or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/note.txt", "first")
    ...     write_whole(f"{folder}/note.txt", "second")
    ...     open(f"{folder}/note.txt").read(), os.listdir(folder)
    ('second', ['note.txt'])
    """
    with replacing(path) as stream:
        stream.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, within: str | os.PathLike[str] | None = None) -> Iterator[IO[bytes]]:
    """A stream of bytes whose content takes the place of the file when the block ends without an error.

    The content is on the disk before the name changes hands; permissions of an existing file are kept, and a link
    stays a link to the file that is replaced. The file beside has a name that cannot be guessed and is opened
    exclusively, so that nothing planted there is followed. Pipes and devices are written to directly. `within` is a
    folder on the same disk for the file beside, where somebody clears up after a crash that leaves it.
    """
    target = os.path.realpath(os.fspath(path))
    there = _status(target)
    if there is not None and not stat.S_ISREG(there.st_mode):
        with open(target, "wb") as stream:  # a directory fails here, with the system's own words
            yield stream
        return
    folder = os.path.dirname(target)
    part = os.path.join(folder if within is None else os.fspath(within), f".{secrets.token_hex(12)}.part")
    try:
        descriptor = os.open(part, _FLAGS, 0o666)
    except OSError as error:  # the caller knows the file by its own name only
        error.filename = os.fspath(path)
        raise
    try:
        with open(descriptor, "wb") as stream:
            if there is not None:
                _keep_permissions(stream.fileno(), there)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    _settle(folder)


def _status(target: str) -> os.stat_result | None:
    try:
        return os.stat(target)
    except FileNotFoundError:
        return None


def _keep_permissions(descriptor: int, there: os.stat_result) -> None:
    """Owner and mode of the old file, as far as the system lets us."""
    call: Any = getattr(os, "fchown", None)
    own = os.fstat(descriptor)
    if call is not None and (own.st_uid, own.st_gid) != (there.st_uid, there.st_gid):
        with contextlib.suppress(OSError):
            call(descriptor, there.st_uid, there.st_gid)
    call = getattr(os, "fchmod", None)
    if call is not None:
        with contextlib.suppress(OSError):
            call(descriptor, stat.S_IMODE(there.st_mode))


def _settle(folder: str) -> None:
    """Ask for the folder's entry to be on the disk too, where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
