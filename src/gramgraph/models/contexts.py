"""Contexts: which rows of a table are meant by `{"S": "yes"}`, `("yes", "no")` or `"S=yes, R=no"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gramgraph.exceptions import ModelError, StateError, VariableError, did_you_mean, listing
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

Index: TypeAlias = tuple[int | slice, ...]
_ALL = slice(None)


def name_labels(key: Any, names: Sequence[str], owner: str) -> dict[str, Any]:
    """A written context as {name: label}; names that it leaves out are free.

    A context is a dict, a text `"S=yes, R=no"`, one label per name in order, or, where there is only one name,
    just its label. `...` and the empty tuple leave everything free.
    """
    if isinstance(key, Mapping):
        found = dict(key)
    elif key is Ellipsis or (isinstance(key, slice) and key == _ALL):
        found = {}
    elif isinstance(key, str) and "=" in key:
        found = _from_text(key, owner)
    else:
        labels = tuple(key) if isinstance(key, tuple | list) else (key,)
        if labels and len(labels) != len(names):
            wanted = f"{len(names)} labels ({', '.join(names)})" if names else "no labels: it has no parents"
            raise VariableError(f"a context of {owner} takes {wanted}; got {key!r}. A dict may name only some of them.")
        found = dict(zip(names, labels, strict=False))
    for name in found:
        if name not in names:
            known = f"Names: {listing(names)}.{did_you_mean(name, names)}" if names else f"{owner} has no parents."
            raise VariableError(f"{name!r} cannot stand in a context of {owner}. {known}")
    return found


def _from_text(text: str, owner: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for piece in text.split(","):
        name, equals, label = (part.strip() for part in piece.partition("="))
        if not equals or not name or not label or name in found:
            raise VariableError(f"a context of {owner} is written 'A=yes, B=no', each name once; got {text!r}")
        found[name] = label
    return found


def find_context(key: Any, scope: Sequence[Var], owner: str) -> Index:
    """Positions in a table with one axis per variable of `scope`; a free variable gives a slice."""
    labels = name_labels(key, [var.name for var in scope], owner)
    return tuple(var.index(labels[var.name]) if var.name in labels else _ALL for var in scope)


def row_values(row: Any, child: Var, what: str) -> FloatArray:
    """p over the child's states from numbers, a dict {state: p}, or, for two states, one number = p(last state).

    States that a dict leaves out have probability zero. An array may have further axes in front.
    """
    if isinstance(row, Mapping):
        out = np.zeros(child.size)
        for label, p in row.items():
            state = child.discrete.find(label)
            if state < 0:
                raise StateError.unknown(label, child.name, child.states)
            out[state] = p
        return out
    try:
        values = np.array(row, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: numbers are expected, not {row!r}") from None
    if values.ndim == 0:
        if child.size != 2:
            raise ModelError(f"{what}: one number stands for p(last state) of a child with 2 states, not {child.size}")
        return np.array([1.0 - float(values), float(values)])
    if values.shape[-1] != child.size:
        raise ModelError(f"{what}: {child.size} numbers are expected ({listing(child.states)}), not {values.shape[-1]}")
    return values
