"""How many members each plate has, and which member of a parent belongs to which member of a child."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, VariableError, did_you_mean, listing
from gramgraph.models.plated.template import Node, Ref, Template
from gramgraph.typing import IntArray

#: Members of one variable, at most.
MOST_MEMBERS = 200_000_000


class PlateLayout:
    """Members of all variables, numbered: those of a variable in (outer, inner) order of its plates.

    `sizes` gives a number for each plate, or one for each member of the plate around it (nested lists for more).
    """

    def __init__(self, template: Template, sizes: Mapping[str, Any]) -> None:
        self.template = template
        for name in sizes:
            if name not in template.plates:
                hint = did_you_mean(name, template.plates)
                raise VariableError(f"{name!r} is not a plate. Plates: {listing(template.plates)}.{hint}")
        known = {**{n: p.size for n, p in template.plates.items() if p.size is not None}, **template.chosen_sizes()}
        for name, size in known.items():
            if name in sizes and not _agrees(sizes[name], size):
                raise ModelError(f"the plate {name} has {size} members, not {sizes[name]!r}")
        given = {**sizes, **known}
        if missing := [name for name in template.plates if name not in given]:
            raise ModelError(
                f"how many members has the plate {missing[0]}? Give it as {missing[0]}=3"
                + (" or a list of lengths" if template.plates[missing[0]].outer else "")
                + ", or observe a variable that stands in it"
            )
        self.lengths: dict[str, IntArray] = {}  # of each plate, one for each member of the plates around it
        for name in sorted(template.plates, key=lambda name: len(template.chain(name))):
            self.lengths[name] = self._lengths(name, given[name])
        self._rows: dict[tuple[str, ...], IntArray] = {}

    def _lengths(self, plate: str, given: Any) -> IntArray:
        outer = self.template.plates[plate].outer
        n_outer = 1 if outer is None else int(self.lengths[outer].sum())
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if given < 0:
                raise ModelError(f"the plate {plate} has at least 0 members, not {given}")
            return np.full(n_outer, int(given))
        if isinstance(given, np.ndarray) and given.shape == (n_outer,) and given.dtype.kind in "iu":
            return given.astype(np.int64)
        if outer is None:
            raise ModelError(f"the size of the plate {plate} is a whole number, not {given!r:.60}")
        flat = self._flat(plate, self.template.chain(outer), given, 0)
        if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in flat):
            raise ModelError(f"lengths of the plate {plate} are whole numbers from 0; got {given!r:.80}")
        return np.asarray(flat, dtype=np.int64)

    def _flat(self, plate: str, chain: tuple[str, ...], given: Any, at: int) -> list[Any]:
        """The nested lists of lengths, one level for each plate around."""
        lists: list[Any] = [given]
        for level in chain:
            wanted = self.lengths[level]
            out: list[Any] = []
            for part, n in zip(lists, wanted, strict=True):
                if isinstance(part, (int, np.integer)):
                    out += [part] * int(n)
                    continue
                listed = list(part) if isinstance(part, (Sequence, np.ndarray)) and not isinstance(part, str) else None
                if listed is None or len(listed) != n:
                    found = f"{len(listed)} lengths" if listed is not None else repr(part)
                    raise ModelError(f"the plate {plate} needs {n} lengths, one for each of {level}; got {found}")
                out += listed
            lists = out
        return lists

    # ------------------------------------------------------------------------------------------ members

    def rows(self, plates: tuple[str, ...]) -> IntArray:
        """Positions in each plate of all members of a variable in these plates, (members, plates)."""
        if plates not in self._rows:
            self._rows[plates] = self._members(plates)
        return self._rows[plates]

    def _members(self, plates: tuple[str, ...]) -> IntArray:
        rows = np.zeros((1, 0), dtype=np.int64)
        for k, plate in enumerate(plates):
            outer = self.template.plates[plate].outer
            around = self.template.chain(outer) if outer else ()
            at = self.numbers(around, rows[:, [plates.index(p) for p in around]]) if around else 0
            lengths = np.broadcast_to(self.lengths[plate][at], (len(rows),))
            total = int(lengths.sum())
            if total > MOST_MEMBERS:
                raise ModelError(f"{total:,} members in the plates {listing(plates[: k + 1])} are too many")
            starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
            inner = np.arange(total) - starts
            rows = np.column_stack([np.repeat(rows, lengths, axis=0), inner])
        return rows

    def count(self, name: str) -> int:
        """Number of members of a variable."""
        return len(self.rows(self.template.nodes[name].plates))

    def numbers(self, plates: tuple[str, ...], at: IntArray) -> IntArray:
        """Numbers of members from their positions in each plate; they must be there."""
        rows = self.rows(plates)
        if not plates:
            return np.zeros(len(at), dtype=np.int64)
        top = np.maximum(rows.max(axis=0, initial=0), at.max(axis=0, initial=0)) + 1
        strides = np.append(np.cumprod(top[:0:-1])[::-1], 1)
        return np.searchsorted(rows @ strides, at @ strides)

    def parent(self, node: Node, ref: Ref) -> IntArray:
        """The member of a parent for each member of the child, (n,); one axis more for each choice."""
        own, parent = node.plates, self.template.nodes[ref.name]
        rows = self.rows(own)
        extra = self.template.extra(node, ref)
        shape = [int(self.lengths[p].max(initial=0)) for p in extra]
        grids = np.indices(shape).reshape(len(shape), int(np.prod(shape)))
        columns = []
        for plate in parent.plates:
            if plate in own:
                columns.append(np.repeat(rows[:, own.index(plate)], grids.shape[1]))
            else:
                columns.append(np.tile(grids[extra.index(plate)], len(rows)))
        at = np.column_stack(columns) if columns else np.zeros((len(rows) * grids.shape[1], 0), dtype=np.int64)
        return self.numbers(parent.plates, at).reshape([len(rows), *shape])

    # ------------------------------------------------------------------------------------------ names and shapes

    def labels(self, name: str) -> list[str]:
        """Names of the members: `z[0,2]`; of a variable outside all plates its own."""
        plates = self.template.nodes[name].plates
        if not plates:
            return [name]
        return [f"{name}[{','.join(map(str, row))}]" for row in self.rows(plates).tolist()]

    def nested(self, name: str, values: Any) -> Any:
        """Values of all members (first axis) as an array by plate, or as nested lists where lengths differ."""
        plates = self.template.nodes[name].plates
        rows = self.rows(plates)
        if not plates:
            return values[0]
        shape = tuple((rows.max(axis=0) + 1).tolist()) if len(rows) else (0,) * len(plates)
        full = all(len(np.unique(self.lengths[p])) <= 1 for p in plates)
        if full and int(np.prod(shape)) == len(rows):
            return np.asarray(values).reshape((*shape, *np.shape(values)[1:]))
        return _nest(rows, np.asarray(values), int(self.lengths[plates[0]].sum()))

    @cached_property
    def sizes(self) -> dict[str, Any]:
        """The sizes as they would be written."""
        out: dict[str, Any] = {}
        for name, lengths in self.lengths.items():
            same = len(np.unique(lengths)) == 1
            out[name] = int(lengths[0]) if same else lengths.tolist()
        return out


def _nest(rows: IntArray, values: Any, n: int) -> list[Any]:
    """Nested lists by the columns of `rows`; the innermost are arrays."""
    if rows.shape[1] == 1:
        return values  # type: ignore[no-any-return]
    bounds = np.searchsorted(rows[:, 0], np.arange(n + 1))
    out = []
    for a, b in pairwise(bounds.tolist()):
        inner = rows[a:b, 1:]
        size = int(inner[:, 0].max(initial=-1)) + 1
        out.append(_nest(inner, values[a:b], size))
    return out


def _agrees(given: Any, size: int) -> bool:
    return np.ndim(given) == 0 and given == size
