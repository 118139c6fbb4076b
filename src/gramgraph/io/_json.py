"""JSON as far as files need it: text to plain values without surprises, and errors that say where."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, ParseError
from gramgraph.io._numbers import number_of
from gramgraph.io._text import decode, fault_at, shown
from gramgraph.typing import FloatArray


def load(data: bytes, source: str) -> dict[str, Any]:
    """The object in the bytes of a JSON file; a repeated key in one object is a fault."""
    text = decode(data)
    try:
        value = json.loads(text, object_pairs_hook=_pairs, parse_float=number_of)
    except json.JSONDecodeError as error:
        raise ParseError(f"not JSON: {error.msg}", source=source, line=error.lineno, column=error.colno) from None
    except _Twice as error:
        found = [match.start() for match in re.finditer(re.escape(json.dumps(error.key)) + r"\s*:", text)]
        at = text if len(found) == 2 else None  # else another object has such a key too
        message = f"the key {shown(error.key)} stands twice in one object"
        raise fault_at(message, source=source, text=at, offset=found[-1] if at else 0) from None
    except RecursionError:
        raise ParseError("the brackets are nested too deeply", source=source) from None
    except ValueError:
        raise ParseError("a number has thousands of digits, which is too many", source=source) from None
    if not isinstance(value, dict):
        raise ParseError(f"expected an object {{…}}, got {_kind(value)}", source=source, line=1, column=1)
    return value


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)
    return out


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def get(where: dict[str, Any], key: str, kind: type | tuple[type, ...], path: str, source: str) -> Any:
    """The value of a key that must be there and of this kind; `path` says where in the file we are."""
    if key not in where:
        raise ParseError(f"{path or 'the file'} lacks {key!r}", source=source)
    value = where[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = _kind(kind[0]() if isinstance(kind, tuple) else kind())
        raise ParseError(f"{_at(path, key)} must be {wanted}, not {_kind(value)}", source=source)
    return value


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def strings(where: dict[str, Any], key: str, path: str, source: str) -> tuple[str, ...]:
    """A list of texts."""
    value = get(where, key, list, path, source)
    if not all(isinstance(item, str) for item in value):
        wrong = next(item for item in value if not isinstance(item, str))
        raise ParseError(f"{_at(path, key)} must be a list of texts; it holds {_kind(wrong)}", source=source)
    return tuple(value)


def numbers(where: dict[str, Any], key: str, path: str, source: str) -> FloatArray:
    """A list of numbers, perhaps of lists of equal length, as an array."""
    value = get(where, key, list, path, source)
    try:
        array = np.asarray(value)
        if array.dtype.kind in "iuf" or array.size == 0:
            return array.astype(np.float64)
    except (ValueError, OverflowError, RecursionError):
        pass
    raise ParseError(f"{_at(path, key)} must be a list of numbers, or of lists of equal length", source=source)


def number(where: dict[str, Any], key: str, path: str, source: str) -> float:
    """A finite number."""
    value = get(where, key, (int, float), path, source)
    try:
        if isfinite(value):
            return float(value)
    except OverflowError:  # an integer beyond all floats
        pass
    raise ParseError(f"{_at(path, key)} must be a finite number", source=source)


def dump(value: Any) -> str:
    """One line of JSON; floats are exact, NumPy values become plain ones."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=_plain)
        text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates have no UTF-8
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"the model's metadata cannot be written as JSON: {error}") from None
    return text


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in JSON")
