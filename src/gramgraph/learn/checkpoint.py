"""Files in which long work notes how far it is, written whole or not at all."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from gramgraph._container import pack, unpack
from gramgraph._replace import write_whole
from gramgraph.exceptions import ModelWarning, OptionError, ParseError

#: Seconds between two notes.
EVERY = 5.0
FORMAT = "gramgraph checkpoint"
_KIND = "checkpoint"


def digest(value: Any) -> str:
    """A short text that tells values apart."""
    return sha256(repr(value).encode()).hexdigest()[:32]


class Checkpoint:
    """The progress of one task on given data and options, kept as JSON and replaced atomically.

    `begin` reads what is noted (None: nothing yet) and makes sure that the file can be written; a file about another
    work is an error that says what differs. `save` writes at most every five seconds; where that fails (a full disk)
    it warns once and keeps the last good file, and the work goes on.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "work.json")
    ...     note = Checkpoint(path, "count", {"data": "d1"})
    ...     first = note.begin()
    ...     note.save(lambda: {"done": 3}, now=True)
    ...     again = Checkpoint(path, "count", {"data": "d1"}).begin()
    >>> first, again
    (None, {'done': 3})
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, about: Mapping[str, Any]) -> None:
        try:
            self.path = Path(path)
        except TypeError:
            raise OptionError(f"checkpoint is the path of a file, not {path!r}") from None
        self._kind, self._about = kind, dict(about)
        self._last = -float("inf")
        self._warned = False

    def begin(self) -> dict[str, Any] | None:
        """What was noted for this work, or None."""
        if self.path.exists() and not self.path.is_file():
            raise OptionError(f"the checkpoint {self.path} is not a regular file")
        state = self._read() if self.path.exists() else None
        try:
            self._write(state)
        except OSError as error:
            raise OptionError(
                f"the checkpoint {self.path} cannot be written ({error.strerror or error}): nothing was begun; make "
                "room, or name another file"
            ) from None
        self._last = time.monotonic()
        return state

    def save(self, state: Callable[[], Mapping[str, Any]], *, now: bool = False) -> None:
        """Note the state, unless the last note is younger than five seconds."""
        if not now and time.monotonic() - self._last < EVERY:
            return
        self._last = time.monotonic()
        try:
            self._write(state())
        except OSError as error:
            if not self._warned:
                self._warned = True
                text = f"the checkpoint {self.path} cannot be written ({error.strerror or error})"
                warnings.warn(
                    f"{text}; the work goes on, and the file keeps its last good state", ModelWarning, stacklevel=3
                )

    def damaged(self) -> ParseError:
        """The error for a state that this work cannot have written."""
        return ParseError("the checkpoint is damaged: remove it, or name another file", source=str(self.path))

    def _load(self) -> Any:
        """What the file holds, as it was written."""
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise self.damaged() from None

    def _read(self) -> dict[str, Any] | None:
        found = self._load()
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ParseError("this is not a checkpoint; it is not written over", source=str(self.path))
        about = found.get("about")
        if found.get("kind") != self._kind or not isinstance(about, dict):
            raise OptionError(f"the checkpoint {self.path} is of another kind of work ({found.get('kind')})")
        other = sorted(key for key in {*about, *self._about} if about.get(key) != self._about.get(key))
        if other:
            raise OptionError(
                f"the checkpoint {self.path} was made with other {', '.join(other)}: remove it to begin anew, or name "
                "another file"
            )
        state = found.get("state")
        if state is not None and not isinstance(state, dict):
            raise self.damaged()
        return state

    def _write(self, state: Mapping[str, Any] | None) -> None:
        text = json.dumps({"format": FORMAT, "kind": self._kind, "about": self._about, "state": state})
        write_whole(self.path, text)


class ArrayCheckpoint(Checkpoint):
    """A checkpoint whose state holds arrays beside plain values: a container with a checksum, as models have it.

    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "work.gg")
    ...     note = ArrayCheckpoint(path, "draw", {"data": "d1"})
    ...     _ = note.begin()
    ...     note.save(lambda: {"done": 3, "z": np.arange(2)}, now=True)
    ...     again = ArrayCheckpoint(path, "draw", {"data": "d1"}).begin()
    >>> again["done"], again["z"].tolist()
    (3, [0, 1])
    """

    def _load(self) -> Any:
        try:
            content = unpack(self.path.read_bytes(), source=str(self.path))
        except ParseError:
            raise self.damaged() from None
        found = content.value
        if content.kind == _KIND and isinstance(found, dict) and isinstance(found.get("state"), dict):
            found["state"].update(content.arrays)
        return found

    def _write(self, state: Mapping[str, Any] | None) -> None:
        arrays = {name: value for name, value in (state or {}).items() if isinstance(value, np.ndarray)}
        plain = None if state is None else {name: value for name, value in state.items() if name not in arrays}
        value = {"format": FORMAT, "kind": self._kind, "about": self._about, "state": plain}
        write_whole(self.path, pack(_KIND, value, arrays))
