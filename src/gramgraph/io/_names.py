"""Names for formats that know only identifiers, and the bound on tables that are written out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gramgraph.conditionals import Conditional
from gramgraph.exceptions import ModelError

#: A structured conditional whose table would have more cells than this is not written out as one.
LARGEST_TABLE = 1 << 26

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


def identifiers(names: Iterable[str], prefix: str = "x_") -> dict[str, str]:
    """Name → an identifier like it (a letter, then letters, digits, underscores), all different; what is one stays."""
    names = list(names)
    taken = {name for name in names if _IDENTIFIER.fullmatch(name)}
    last: dict[str, int] = {}
    out: dict[str, str] = {}
    for name in names:
        word = name
        if name not in taken:
            stem = re.sub(r"[^A-Za-z0-9_]", "_", name, flags=re.ASCII)
            stem = word = stem if _IDENTIFIER.fullmatch(stem) else prefix + stem
            while word in taken:
                last[stem] = last.get(stem, 1) + 1
                word = f"{stem}_{last[stem]}"
            taken.add(word)
        out[name] = word
    return out


def check_dense(conditional: Conditional, format_name: str) -> None:
    """`ModelError` when a structured conditional would make a table that is too large to be written out."""
    if conditional.size > LARGEST_TABLE:
        raise ModelError(
            f"the table of {conditional.child.name} would have {conditional.size} numbers, too many for "
            f"{format_name}, which knows only tables; write .json, which keeps the conditional as it is"
        )


def dense_rows(conditional: Conditional, format_name: str) -> list[list[float]]:
    """The table as lists of numbers, one per row."""
    check_dense(conditional, format_name)
    return conditional.table().reshape(-1, conditional.child.size).tolist()
