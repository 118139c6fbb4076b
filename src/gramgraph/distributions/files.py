"""Distributions as JSON: the name of the family and its parameters, bit for bit; nothing in a file is executed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gramgraph._replace import write_whole
from gramgraph.exceptions import GramGraphError, ModelError, ParseError, did_you_mean

_VERSION = 1
#: Fields that are matrices beside a vector. One number may stand for a matrix with up to this many rows.
_MATRICES = ("cov", "scale", "shape")
_LONGEST = 1000
_DEEPEST = 20
#: What a family or a model may raise when its fields are not what it wrote.
_UNFIT = (GramGraphError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def _families() -> dict[str, type[Any]]:
    """Name → class of everything that has parameters and nothing else."""
    from gramgraph import distributions

    found = {name: getattr(distributions, name) for name in distributions.__all__}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, type) and dataclasses.is_dataclass(value) and name not in ("Transformed",)
    }


def is_distribution(value: Any) -> bool:
    """Whether a value is of a family that can be saved."""
    return type(value) in _families().values()


def save(value: Any, path: str | PathLike[str]) -> None:
    """Write a distribution, a conjugate model or a predictive distribution to a JSON file.

    Parameters
    ----------
    value : what is saved.
    path : the file.

    Examples
    --------
    >>> import tempfile, gramgraph as gg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.distributions.save(gg.distributions.Gamma(2.0, 0.5), f"{folder}/gamma.json")
    ...     gg.distributions.load(f"{folder}/gamma.json")
    Gamma(shape=2.0, rate=0.5)
    """
    write_whole(path, dumps(value) + "\n")


def load(path: str | PathLike[str]) -> Any:
    """The distribution in a file that `save` wrote; `ParseError` for any other.

    Parameters
    ----------
    path : the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from gramgraph.distributions import Normal, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "normal.json")
    ...     save(Normal(1.0, 2.0), file)
    ...     load(file)
    Normal(mean=1.0, variance=2.0)
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ParseError("not a text in UTF-8", source=str(path)) from None
    return loads(text, source=str(path))


def dumps(value: Any) -> str:
    """The text of a JSON file.

    >>> from gramgraph.distributions import Beta
    >>> print(dumps(Beta(1.0, 2.5)))
    {"format": "gramgraph", "version": 1, "kind": "distribution", "family": "Beta", "fields": {"a": 1.0, "b": 2.5}}
    """
    return json.dumps(to_object(value), allow_nan=False)


def to_object(value: Any) -> dict[str, Any]:
    """The same as plain values."""
    return {"format": "gramgraph", "version": _VERSION, "kind": "distribution", **_written(value, "the distribution")}


def loads(text: str, *, source: str = "<text>") -> Any:
    """The distribution in a text that `dumps` made.

    >>> from gramgraph.distributions import Normal
    >>> loads(dumps(Normal(0.5, 2.0))) == Normal(0.5, 2.0)
    True
    """
    try:
        top = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(f"not JSON: {error.msg}", source=source, line=error.lineno, column=error.colno) from None
    except (RecursionError, ValueError):
        raise ParseError("the text is nested too deeply, or a number too long", source=source) from None
    return from_object(top, source=source)


def from_object(top: Any, *, source: str = "<text>") -> Any:
    """The distribution in plain values."""
    if not isinstance(top, Mapping) or top.get("format") != "gramgraph" or top.get("kind") != "distribution":
        raise ParseError('expected "format": "gramgraph" and "kind": "distribution"', source=source)
    if top.get("version") != _VERSION:
        raise ParseError(f"version {top.get('version')!r} is not known; this library reads {_VERSION}", source=source)
    return _read(top, source)


def _written(value: Any, what: str) -> dict[str, Any]:
    name = type(value).__name__
    if not is_distribution(value):
        raise ModelError(f"{what} is a {name}, which has no file; families: {', '.join(_families())}")
    made = {}
    for field in dataclasses.fields(value):
        if field.init:
            made[field.name] = _plain(getattr(value, field.name), f"{field.name} of {name}")
    return {"family": name, "fields": made}


def _plain(value: Any, what: str) -> Any:
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float, np.number, np.ndarray)):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise ModelError(f"{what} must be finite numbers to be saved, not {value!r:.60}")
        return array.tolist()
    if isinstance(value, type) and value in _families().values():
        return {"class": value.__name__}
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _plain(item, what) for key, item in value.items()}}
    if isinstance(value, (tuple, list)):
        return {"items": [_plain(item, what) for item in value]}
    return _written(value, what)


def _read(found: Any, source: str, depth: int = 0) -> Any:
    families = _families()
    if depth > _DEEPEST:
        raise ParseError("the objects are nested too deeply", source=source)
    name = found.get("family")
    if not isinstance(name, str) or name not in families:
        hint = did_you_mean(str(name), families)
        raise ParseError(f"{name!r:.40} is not a family of distributions.{hint}", source=source)
    fields = found.get("fields")
    known = {field.name for field in dataclasses.fields(families[name]) if field.init}
    if not isinstance(fields, Mapping) or not set(fields) <= known:
        raise ParseError(f"{name} has the fields {', '.join(sorted(known))}", source=source)
    if any(isinstance(item, list) and len(item) > _LONGEST for item in fields.values()) and any(
        key in _MATRICES and not isinstance(item, list) for key, item in fields.items()
    ):
        raise ParseError(f"{name}: one number stands for a large matrix; write it in full", source=source)
    try:
        made = families[name](**{key: _value(item, source, depth) for key, item in fields.items()})
        if not isinstance(made, families[name]):  # names of variables make a conditional
            raise ParseError(f"{name}: a text in the place of a number", source=source)
        return made
    except ParseError:
        raise
    except _UNFIT as error:
        raise ParseError(f"{name}: {error}", source=source) from None


def _value(item: Any, source: str, depth: int) -> Any:
    if isinstance(item, Mapping):
        if "family" in item:
            return _read(item, source, depth + 1)
        if "class" in item:
            found = _families().get(str(item["class"]))
            if found is None:
                raise ParseError(f"{item['class']!r:.40} is not a family of distributions", source=source)
            return found
        if isinstance(item.get("mapping"), Mapping):
            return {key: _value(value, source, depth + 1) for key, value in item["mapping"].items()}
        if isinstance(item.get("items"), list):
            return tuple(_value(value, source, depth + 1) for value in item["items"])
        raise ParseError("an object in the place of a number", source=source)
    if isinstance(item, list):
        array = np.array(item)
        if array.dtype.kind not in "biuf":
            raise ParseError("a list holds something else than numbers", source=source)
        return array
    return item
