"""Which variables of a network have a column, which are hidden, and which columns are unused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from gramgraph.data.frames import read_frame
from gramgraph.data.stream import is_stream, stream_names
from gramgraph.exceptions import ModelWarning, OptionError, VariableError, listing
from gramgraph.models import BayesianNetwork

#: How alike a column and a variable must be for one to be taken as the other misspelt (of 1).
ALIKE = 0.75


def owner_of(net: BayesianNetwork, column: Any) -> Any:
    """The variable of a column: of its name, or of `x` where it is called `x[1]`."""
    return column if column in net else str(column).rpartition("[")[0]


def check_columns(
    net: BayesianNetwork, data: Any, *, hidden: Iterable[str] = (), weights: Any = None, stacklevel: int = 3
) -> None:
    """`VariableError` where a variable has no column, and an unused column looks like its name; a warning
    names the columns that are not used. `hidden` are variables that are meant to have no column."""
    columns = _names(data)
    own = weights if isinstance(weights, str) else None
    owners = {owner_of(net, column) for column in columns}
    unused = [str(c) for c in columns if owner_of(net, c) not in net and c != own]
    known = _hidden(net, hidden, owners)
    missing = [name for name in net.variables if name not in owners and name not in known]
    for name in missing:
        near = _near(name, unused)
        if near is not None:
            raise VariableError(
                f"there is no column {name!r}, and the column {near!r} is not a variable of the network. Did you mean "
                f"{name!r}? Rename the column, or say that the variable is not observed: hidden=[{name!r}]"
            )
    if unused and len(unused) < len(columns) - (own in columns):  # no column in use at all is an error, told elsewhere
        text = f"columns that are not variables of the network are not used: {listing(unused)}"
        if missing:
            text += f". Without a column, and therefore hidden: {listing(missing)}; hidden=[…] says that this is meant"
        warnings.warn(text, ModelWarning, stacklevel=stacklevel)


def _names(data: Any) -> list[Any]:
    if is_stream(data):
        return list(stream_names(data))
    return list(read_frame(data).names)


def _hidden(net: BayesianNetwork, hidden: Iterable[str], owners: set[Any]) -> set[str]:
    names = [hidden] if isinstance(hidden, str) else list(hidden)
    for name in names:
        net.index(name)
        if name in owners:
            raise OptionError(f"{name!r} is a column of the data, so it is not hidden: drop the column")
    return set(names)


def _near(name: str, columns: Sequence[str]) -> str | None:
    """A column whose name may be this one misspelt; x1 and x2 are two names, not one misspelt."""
    plain = {column: _plain(column) for column in columns if len(column) <= 100}
    own = _plain(name)
    for column, text in plain.items():
        if text == own:
            return column
    digits = re.sub(r"\D", "", own)
    same = [text for text in plain.values() if re.sub(r"\D", "", text) == digits]
    found = get_close_matches(own, same, n=1, cutoff=ALIKE) if len(own) <= 100 else []
    return next((column for column, text in plain.items() if text == found[0]), None) if found else None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold()) or name.casefold()
