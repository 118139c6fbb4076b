"""Frames of states: a column of categories for each variable.

pandas looks at every column that it puts into a frame. Where there are few rows, that takes longer than finding the
states; so the frame is put together from the parts that pandas itself makes it of. They are no public ones: the first
frame of a process is compared with one that was made in the open, and where this pandas has others, all are made so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gramgraph.typing import FloatArray
from gramgraph.variables import Var

#: pandas holds the codes of so many states in bytes.
FEW_STATES = 126


class _Parts(NamedTuple):
    """What pandas makes a frame of: all of them take their arguments as they are."""

    category: Any  # codes and their dtype → an array of categories
    category_block: Any  # the block of such a column
    number_block: Any  # and of numbers, (1, rows)
    place: Any  # where the column of a block stands
    manager: Any  # blocks and labels together
    frame: Any  # the frame of a manager

    def put_together(self, columns: Sequence[Any], blocks: Sequence[tuple[Any, Any]], labels: list[Any]) -> Any:
        """The frame of columns whose kinds of blocks and places are known."""
        made = [kind(column, placement=place, ndim=2) for column, (kind, place) in zip(columns, blocks, strict=False)]
        manager = self.manager(tuple(made), labels, verify_integrity=False)
        return self.frame(manager, axes=labels)


class StateFrames:
    """Makes frames of the states of some variables; names and categories are made once.

    Parameters
    ----------
    variables : discrete ones, a column for each.
    """

    __slots__ = ("_blocks", "_kinds", "_names", "_names_and_log", "_parts")

    def __init__(self, variables: Sequence[Var]) -> None:
        import pandas as pd

        each = {states: pd.CategoricalDtype(list(states)) for states in dict.fromkeys(var.states for var in variables)}
        self._kinds = [each[var.states] for var in variables]
        self._names = pd.Index([var.name for var in variables])
        self._names_and_log = self._names.append(pd.Index(["log_prob"]))
        self._parts = parts = _parts() if all(var.size <= FEW_STATES for var in variables) else None
        self._blocks: list[tuple[Any, Any]] = []
        if parts is not None:
            self._blocks = [(parts.category_block, parts.place(v)) for v in range(len(variables))]
            self._blocks.append((parts.number_block, parts.place(len(variables))))

    def make(
        self,
        states: Any,  # (rows, variables) of state numbers; negative = missing
        index: Any,
        log_prob: FloatArray | None,
    ) -> Any:
        """The frame; the numbers of `log_prob` become its own."""
        names = (self._names if log_prob is None else self._names_and_log).view()  # views: the user may name them
        parts = self._parts
        if parts is None:
            return self._in_the_open(states, names, index, log_prob)
        category = parts.category
        codes = states.T.astype(np.int8, "C")
        columns = [category(column, kind) for column, kind in zip(codes, self._kinds, strict=True)]
        if log_prob is not None:
            columns.append(log_prob[None])
        rows = _numbered(len(states)) if index is None else index.view()
        return parts.put_together(columns, self._blocks, [names, rows])

    def _in_the_open(self, states: Any, names: Any, index: Any, log_prob: FloatArray | None) -> Any:
        import pandas as pd

        columns = [pd.Categorical.from_codes(states[:, v], dtype=kind) for v, kind in enumerate(self._kinds)]
        if log_prob is not None:
            columns.append(log_prob)
        frame = pd.DataFrame(dict(enumerate(columns)), index=index, copy=False)
        frame.columns = names
        return frame


def _numbered(rows: int) -> Any:
    import pandas as pd

    return pd.RangeIndex(rows)


@cache
def _parts() -> _Parts | None:
    """The parts of this pandas; None where a frame of them is not the one that it should be."""
    import pandas as pd

    labels = pd.Categorical.from_codes([1, 0, -1], ["a", "b"])
    asked = pd.DataFrame({"label": labels, "number": [0.5, 1.0, 2.0]})
    try:
        manager = asked._mgr
        category, number = (type(manager.blocks[manager.blknos[column]]) for column in range(2))
        place = type(manager.blocks[0].mgr_locs)
        inherited = super(pd.Categorical, pd.Categorical)._simple_new  # takes bytes as they are
        found = _Parts(inherited, category, number, place, type(manager), pd.DataFrame._from_mgr)
        columns = [inherited(np.array([1, 0, -1], np.int8), labels.dtype), np.array([[0.5, 1.0, 2.0]])]
        made = found.put_together(
            columns, [(category, place(0)), (number, place(1))], [asked.columns.view(), asked.index.view()]
        )
        same = made.equals(asked) and made[::-1].equals(asked[::-1])
    except (AssertionError, AttributeError, TypeError, ValueError):
        return None
    return found if same else None
