"""Features written as text become numbers: dicts {name: value} or lists of strings, as CRFsuite's users write them.

A text value makes the attribute `name:value` with weight 1, a number or a truth value the attribute `name` with that
weight, a list, set or dict inside a dict the attributes `name:part`. Looking up text is most of the work of tagging,
so whole stretches of tokens pass through functions that loop in C (`map`, `chain`, `numpy.fromiter`), and Python code
sees only what they do not know.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, TypeAlias

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.sequences._reading import LARGEST
from gramgraph.typing import Array, FloatArray, IntArray

_STRETCH = 256  # tokens at a time: their dicts stay in the cache between the looks at names and at values
_UNKNOWN, _NOTHING = -2, -1  # not in the table; in the table, and without weight
_ONES: FloatArray = np.empty(0)  # values that are all 1
_Found: TypeAlias = tuple[Array, Array, FloatArray]
_TOKEN = 1e-5  # seconds that a token costs without compiled lookups
_SIMPLE = {str, bool, int, float}  # values that hold no others
_ZERO = -3  # −3 − i: attribute i with the value 0, which says that it can stand there


@dataclass(frozen=True)
class Tokens:
    """The features of many sequences as one sparse matrix: position t has ids[ptr[t]:ptr[t + 1]].

    `data` holds their values, or nothing when all are 1. Negative ids are features that a model does not have or (while
    a table grows, as −3 − id) features of value 0.
    """

    offsets: IntArray  # (S + 1,)
    ptr: IntArray  # (N + 1,)
    ids: Array  # (E,) int32
    data: FloatArray  # (E,) or (0,)


class FeatureTable:
    """Attributes and their numbers, in the order of first sight.

    >>> table = FeatureTable()
    >>> found = table.encode([[{"word": "the", "title": True}, {"word": "end", "length": 3}]], grow=True)
    >>> table.names(), found.ids.tolist(), found.data.tolist()
    (['word:the', 'title', 'word:end', 'length'], [0, 1, 2, 3], [1.0, 1.0, 1.0, 3.0])
    """

    def __init__(self) -> None:
        self.levels: dict[str, dict[Any, int]] = {}  # name → value → number; for numbers as values the entries 1 and 0
        self.plain: dict[str, int] = {}  # features that are one string
        self.size = 0
        self._known: dict[str, int] | None = None  # attribute → number; made when two names could write the same one
        self._stems: set[str] = set()  # what stands before the colons of names
        self._twins: frozenset[str] = frozenset()  # names whose attributes another name could write as well
        self.quick: tuple[Array, ...] | None = None  # for compiled lookups, made at the first

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "quick": None}  # hashes of strings differ in another process

    # ------------------------------------------------------------------------------------------- encoding

    def encode(self, X: Sequence[Any], *, grow: bool = False) -> Tokens:
        """The numbers of all features of X (of `read_sequences`); unknown attributes get new ones (`grow`) or < 0."""
        lengths = np.fromiter(map(len, X), np.int64, len(X))
        if not grow:
            self.prepare(int(lengths.sum()))
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        ids = np.empty(max(1024, 16 * int(offsets[-1])), dtype=np.int32)
        counts: list[Array] = []
        parts: list[tuple[int, FloatArray]] = []  # where values that are not all 1 begin
        place = 0
        for first, tokens in _stretches(X):
            found, sizes, values = self._stretch(tokens, first, offsets, grow)
            if len(values):
                parts.append((place, values))
            if place + len(found) > len(ids):
                ids.resize(place + len(found) + len(ids) // 4, refcheck=False)  # in place where the system can
            ids[place : place + len(found)] = found
            place += len(found)
            counts.append(sizes)
        ids.resize(place, refcheck=False)
        ptr = np.zeros(int(offsets[-1]) + 1, dtype=np.int64)
        np.cumsum(np.concatenate(counts) if counts else [], out=ptr[1:])
        data = np.ones(place if parts else 0)
        for at, values in parts:
            data[at : at + len(values)] = values
        return Tokens(offsets, ptr, ids, data)

    def _stretch(self, tokens: list[Any], first: int, offsets: IntArray, grow: bool) -> _Found:
        """(numbers, how many a token, values or nothing when all are 1) of a few hundred tokens."""
        kinds = set(map(type, tokens))
        if kinds != {dict}:
            if kinds <= {list, tuple}:
                return self._strings(tokens, first, offsets, grow)
            tokens = [_as_dict(token, first + i, offsets) for i, token in enumerate(tokens)]
        if self.quick and not self.plain and not grow and (quick := self._looked_up(tokens)) is not None:
            return quick
        levels = self.levels
        keys = list(chain.from_iterable(tokens))
        values = list(chain.from_iterable(map(dict.values, tokens)))
        try:
            found = np.fromiter(
                map(dict.get, map(levels.__getitem__, keys), values, repeat(_UNKNOWN)), np.int32, len(keys)
            )
        except (KeyError, TypeError):  # a name that is new, or a list, set or dict as a value
            if not (set(map(type, keys)) <= {str} and set(map(type, values)) <= _SIMPLE):
                tokens = _flattened(tokens, first, offsets)
                keys = list(chain.from_iterable(tokens))
                values = list(chain.from_iterable(map(dict.values, tokens)))
            if grow:
                self._add_names(keys)
            found = self._numbers(keys, values)
        sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
        missing = np.flatnonzero(found == _UNKNOWN).tolist()
        kinds = {type(values[at]) for at in missing}
        if not missing or (not grow and not self._twins and kinds == {str}):
            return found, sizes, _ONES
        if any(issubclass(kind, (tuple, frozenset)) for kind in kinds):  # they can be looked up, and hold features
            return self._stretch(_flattened(tokens, first, offsets), first, offsets, grow)
        if grow:
            names, new = [keys[at] for at in missing], [values[at] for at in missing]
            self._add_values(dict.fromkeys(zip(names, new, strict=True)))
            found[missing] = self._numbers(names, new)
            missing = np.flatnonzero(found == _UNKNOWN).tolist()
        data = np.ones(len(found) if missing else 0)
        for at in missing:
            value = values[at]
            if isinstance(value, str):
                found[at] = self._text(keys[at], value)
            else:
                found[at], data[at] = self._number(keys[at], value, at, sizes, first, offsets)
        return found, sizes, data if (data != 1.0).any() else _ONES

    def _numbers(self, keys: list[str], values: list[Any]) -> Array:
        """What the table holds of these names and values."""
        empty: dict[Any, int] = {}
        level = map(self.levels.get, keys, repeat(empty))
        return np.fromiter(map(dict.get, level, values, repeat(_UNKNOWN)), np.int32, len(keys))

    def _add_values(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Numbers for what is new of these names with values."""
        for key, value in pairs:
            level = self.levels[key]
            if isinstance(value, str):
                if value not in level:
                    level[str(value)] = self._next() if self._known is None else self._attribute(f"{key}:{value}", True)
            elif 1.0 not in level:
                level[1.0] = self._next() if self._known is None else self._attribute(key, True)
                level[0.0] = _ZERO - level[1.0]

    def _add_names(self, keys: list[str]) -> None:
        for key in dict.fromkeys(keys):
            if key not in self.levels:
                stems = _stems(key)
                if self._known is None and (key in self._stems or not self.levels.keys().isdisjoint(stems)):
                    self._by_full_name()
                self.levels[key] = {}
                self._stems.update(stems)

    def _by_full_name(self) -> dict[str, int]:
        if self._known is None:
            self._known = {found: i for i, found in enumerate(self.names())}
        return self._known

    def _looked_up(self, tokens: list[Any]) -> _Found | None:
        """What `_stretch` gives, by a compiled loop; None where Python code has to look."""
        from gramgraph._numerics.crf import feature_dicts as _loops

        assert self.quick is not None
        sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
        size = int(sizes.sum())
        found, data = np.empty(size, dtype=np.int32), np.empty(size)
        loop = _loops.look_up_words if self.plain else _loops.look_up
        n, ones = loop(_addresses(tokens), *self.quick, found, data)
        return (found, sizes, _ONES if ones else data) if n == size else None

    def prepare(self, tokens: int) -> None:
        """Make the table of compiled lookups, once: every name, and every name with a value, by their hashes.

        That is left for later while so few tokens have been looked up that compiling costs more. Where features are
        strings, it holds these. There is none where two ways of writing a feature overlap.
        """
        if self.quick is not None or self._twins:
            return
        from gramgraph._numerics.compiling import pays
        from gramgraph._numerics.crf import feature_dicts as _loops

        loop = _loops.look_up_words if self.plain else _loops.look_up
        if not _loops.usable() or not pays(loop, tokens * _TOKEN):
            return
        if self.plain:
            names = np.fromiter(map(hash, self.plain), np.int64, len(self.plain))
            values = np.full(len(names), _loops.WORD, dtype=np.int64)
            numbers = np.fromiter(self.plain.values(), np.int32, len(names))
        else:
            names, values, numbers = self._hashes(_loops.NAME, _loops.NUMBER)
        marks = _loops.mixed(names.view(np.uint64), values.view(np.uint64))
        size = 1 << max(4, (2 * len(marks)).bit_length())
        places, table = np.zeros(size, dtype=np.uint64), np.empty(size, dtype=np.int32)
        if _loops.make_table(marks, numbers, places, table):
            self.quick = (_loops.kinds(), places, table)

    def _hashes(self, name: int, number: int) -> tuple[IntArray, IntArray, Array]:
        """(hashes of names, of values, numbers) of all entries; the names alone come first, with `name` as a value."""
        levels = self.levels.values()  # their entries 0 are left out; nothing is copied, because they are many
        sizes = [len(level) - (0.0 in level) for level in levels]
        n, size = len(levels), sum(sizes)
        names = np.fromiter(map(hash, self.levels), np.int64, n)
        values, numbers = np.full(n + size, name, dtype=np.int64), np.full(n + size, -1, dtype=np.int32)
        flat = (v for level in levels for v in level if v != 0.0)
        values[n:] = np.fromiter((hash(v) if isinstance(v, str) else number for v in flat), np.int64, size)
        numbers[n:] = np.fromiter((i for level in levels for v, i in level.items() if v != 0.0), np.int32, size)
        return np.concatenate([names, np.repeat(names, sizes)]), values, numbers

    def _strings(self, tokens: list[Any], first: int, offsets: IntArray, grow: bool) -> _Found:
        if self.quick and self.plain and not grow and set(map(type, tokens)) == {list}:
            if (quick := self._looked_up(tokens)) is not None:
                return quick
        sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
        words = list(chain.from_iterable(tokens))
        if not {type(word) for word in words} <= {str, np.str_}:
            at = next(i for i, word in enumerate(words) if not isinstance(word, str))
            t = int(np.searchsorted(np.cumsum(sizes), at, side="right"))
            raise ModelError(f"{_where(first + t, offsets)}: a list of features must hold strings; got {words[at]!r}.")
        found = np.fromiter(map(self.plain.get, words, repeat(_UNKNOWN)), np.int32, len(words))
        if grow or self.levels:
            for at in np.flatnonzero(found == _UNKNOWN).tolist():
                found[at] = self._attribute(words[at], grow)
                if grow:
                    self.plain[words[at]] = int(found[at])
        return found, sizes, _ONES

    def _text(self, key: str, value: str) -> int:
        if key in self._twins or key not in self.levels:
            return self._attribute(f"{key}:{value}", False)
        return _UNKNOWN

    def _number(self, key: str, value: Any, at: int, sizes: Array, first: int, offsets: IntArray) -> tuple[int, float]:
        try:
            weight = float(value)
        except (TypeError, ValueError, OverflowError):
            weight = math.nan
        if not abs(weight) < LARGEST:
            t = first + int(np.searchsorted(np.cumsum(sizes), at, side="right"))
            raise ModelError(
                f"{_where(t, offsets)}: feature {key!r} is {reprlib.repr(value)}; a value must be a text, a truth "
                f"value or a finite number, none beyond {LARGEST:g}. Leave a feature out where it has no value."
            )
        level = self.levels.get(key)
        if level is None:
            return self._attribute(key, False), weight
        if not weight:
            return level.get(0.0, _NOTHING), 1.0
        return level[1.0] if 1.0 in level else self._attribute(key, False), weight

    def _attribute(self, name: str, grow: bool) -> int:
        """The number of an attribute by its full name."""
        known = self._by_full_name()
        found = known.get(name)
        if found is not None:
            return found
        if not grow:
            return _UNKNOWN
        known[name] = self._next()
        return self.size - 1

    def _next(self) -> int:
        self.size += 1
        return self.size - 1

    # ---------------------------------------------------------------------------------------------- names

    def pairs(self) -> Iterator[tuple[str | None, Any, int]]:
        """(name, value, number) of all entries that have a number; name None for features that are one string."""
        for key, level in self.levels.items():
            for value, number in level.items():
                if number >= 0:
                    yield key, value, number
        for word, number in self.plain.items():
            if number >= 0:
                yield None, word, number

    def names(self) -> list[str]:
        """Attributes in the order of their numbers, as CRFsuite writes them."""
        found = [""] * self.size
        for key, value, number in self.pairs():
            found[number] = value if key is None else f"{key}:{value}" if isinstance(value, str) else key
        return found

    def renumbered(self, new: Array, size: int) -> FeatureTable:
        """A table in which attribute i has the number new[i]; those of −1 are no longer known."""
        table = FeatureTable()
        numbers = [int(i) for i in new]
        for key, level in self.levels.items():
            made: dict[Any, int] = {}
            for value, number in level.items():
                other = numbers[number] if number >= 0 else _NOTHING
                if other >= 0 or not isinstance(value, str):  # numbers stay known, so that they need no second look
                    made[value] = other
            table.levels[key] = made
        table.plain = {word: numbers[number] for word, number in self.plain.items() if numbers[number] >= 0}
        table.size = size
        return table.closed()

    def closed(self) -> FeatureTable:
        """This table, done with growing: the full names are forgotten, and names that overlap are marked."""
        self._known = None
        self._stems = set()
        twins = {name for key in self.levels for stem in _stems(key) if stem in self.levels for name in (key, stem)}
        self._twins = frozenset(self.levels) if self.plain else frozenset(twins)
        return self


def _stems(name: str) -> list[str]:
    """What stands before the colons of a name: such a name could write the same attribute, `a: "b:c"` as `a:b: "c"`."""
    return [name[:i] for i, letter in enumerate(name) if letter == ":"]


def read_sequences(X: Any) -> list[Any]:
    """A list of sequences that know their lengths: what is an iterator is read, what is not a sequence is refused."""
    if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
        raise ModelError(f"X is a {type(X).__name__}; expected a list of sequences.")
    found = list(X)
    if not set(map(type, found)) <= {list, tuple}:
        found = [_tokens(x, s) for s, x in enumerate(found)]
    return found


def _tokens(x: Any, s: int) -> Any:
    if isinstance(x, (str, bytes, Mapping)) or not isinstance(x, Iterable):
        raise ModelError(
            f"sequence {s} of X is a {type(x).__name__}; expected a list with one dict of features (or list of "
            "strings) a position."
        )
    return x if hasattr(x, "__len__") else list(x)


def _addresses(tokens: list[Any]) -> IntArray:
    return np.fromiter(map(id, tokens), np.int64, len(tokens))


def _stretches(X: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """(number of the first token, tokens) for a few sequences, or a part of a long one, at a time."""
    held: list[Any] = []
    first = 0
    for x in X:
        held.extend(x)
        if len(held) >= _STRETCH:
            for at in range(0, len(held), _STRETCH):
                yield first + at, held[at : at + _STRETCH]
            first += len(held)
            held = []
    if held:
        yield first, held


def _where(t: int, offsets: IntArray) -> str:
    s = int(np.searchsorted(offsets, t, side="right")) - 1
    return f"sequence {s}, position {t - int(offsets[s])}"


def _as_dict(token: Any, t: int, offsets: IntArray) -> dict[str, Any]:
    """A token of another kind as a dict; a list of strings has the features {string: 1}, added up."""
    if isinstance(token, Mapping):
        return dict(token)
    if isinstance(token, (list, tuple, set, frozenset)) and all(isinstance(word, str) for word in token):
        made: dict[str, Any] = {}
        for word in token:
            made[word] = made.get(word, 0) + 1
        return made
    raise ModelError(
        f"{_where(t, offsets)}: a token is a dict of features or a list of strings; got {type(token).__name__}."
    )


def _flattened(tokens: list[dict[str, Any]], first: int, offsets: IntArray) -> list[dict[str, Any]]:
    return [_flat(token, first + i, offsets) for i, token in enumerate(tokens)]


def _flat(token: dict[str, Any], t: int, offsets: IntArray) -> dict[str, Any]:
    """The dict without lists, sets and dicts inside; itself when it has none."""
    wrong = next((key for key in token if not isinstance(key, str)), None)
    if wrong is not None:
        raise ModelError(f"{_where(t, offsets)}: names of features must be strings; got {wrong!r}.")
    if not any(isinstance(value, (Mapping, list, tuple, set, frozenset)) for value in token.values()):
        return token
    made: dict[str, Any] = {}
    for key, value in token.items():
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            inner = _as_dict(value, t, offsets)
            for name, part in _flat(inner, t, offsets).items():
                if isinstance(part, str):
                    made[f"{key}:{name}:{part}"] = 1
                else:
                    made[f"{key}:{name}"] = part
        else:
            made[key] = value
    return made
