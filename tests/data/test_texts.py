"""Columns of texts and of objects as codes, against a dictionary and against pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph._numerics import compiling
from gramgraph.data import code_table
from gramgraph.data import texts as module
from gramgraph.data.columns import _distinct_objects, distinct_values, encode
from gramgraph.data.texts import distinct_texts
from gramgraph.variables import discrete

pa = pytest.importorskip("pyarrow")

LABELS = {
    "short": ["LOW", "NORMAL", "HIGH"],
    "empty": ["", "a", "\0", "a\0", "ab"],
    "long": ["a label of some length", "a label of some lengtH", "a label", "a label ", "ärger und Öl", "eightbyt"],
    "around eight": [
        "\0a",
        "a",
        "1234567",
        "12345678",
        "1234567\0",
        "\x0712345",
        "12345678 middle 12345678",
        "12345678 muddle 12345678",
    ],
    "many": [f"label {i}" for i in range(130)],
}


@pytest.mark.parametrize("tier", ["plain", "compiled"])
@pytest.mark.parametrize("kind", ["string", "large_string"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_texts_are_encoded_in_the_order_they_come(tier, kind, labels, monkeypatch) -> None:
    monkeypatch.setattr(module, "MANY", 1)
    rng = np.random.default_rng(0)
    cells = [labels[i] for i in rng.integers(len(labels), size=700)]
    whole = pa.array(cells, getattr(pa, kind)())
    gaps = pa.array([None if i % 7 == 0 else cell for i, cell in enumerate(cells)], getattr(pa, kind)())
    ending = pa.array([*cells[:50], "new at the end", "z"], getattr(pa, kind)())
    chunks = pa.chunked_array([whole[300:], ending, whole[:0], whole])
    columns = (whole, whole[100:533], gaps, ending, pa.chunked_array([whole, gaps]), chunks, whole[:0], whole[:1])
    for column in columns:
        with compiling.tier(tier):
            codes, found = distinct_texts(column)
        values = list(dict.fromkeys(cell for cell in column.to_pylist() if cell is not None))
        expected = [-1 if cell is None else values.index(cell) for cell in column.to_pylist()]
        assert found == values
        assert np.array_equal(codes, expected)


@pytest.mark.parametrize(
    "dtype",
    ["str", "string[pyarrow]", pd.ArrowDtype(pa.string()), pd.ArrowDtype(pa.large_string()), "category", object],
)
def test_every_kind_of_texts_gives_one_table(dtype) -> None:
    rng = np.random.default_rng(1)
    cells = np.array(["no", "yes", "perhaps"], object)[rng.integers(3, size=2000)]
    cells[::50] = None
    table = code_table({"x": pd.Series(cells, dtype=dtype)})
    assert table.variables[0].states == ("no", "perhaps", "yes")
    expected = [-1 if cell is None else ("no", "perhaps", "yes").index(cell) for cell in cells]
    assert table.columns[0].dtype == np.int8 and table.columns[0].tolist() == expected


@pytest.mark.parametrize("tier", ["plain", "compiled"])
def test_texts_become_the_codes_of_given_states(tier, monkeypatch) -> None:
    monkeypatch.setattr(module, "MANY", 1)
    cells = ["low", "high", "a state that is longer", "high", "low", "a state that is longest"] * 50
    states = ("high", "a state that is longest", "unseen", "a state that is longer", "low")
    column = pd.Series(cells, dtype="string[pyarrow]")
    with compiling.tier(tier):
        codes = encode(column, discrete("x", states))
        assert codes.dtype == np.int8
        assert codes.tolist() == [states.index(cell) for cell in cells]
        with pytest.raises(gg.StateError, match="row 2: .*a state that is longer"):
            encode(column, discrete("x", [state for state in states if state != "a state that is longer"]))


def test_objects_are_told_apart_by_value_not_by_address() -> None:
    rng = np.random.default_rng(2)
    copies = ["".join(["ye", "s"]), "".join(["y", "es"]), "no", None, float("nan"), pd.NA]
    assert copies[0] is not copies[1]
    cells = np.empty(3000, object)
    cells[:] = [copies[i] for i in rng.integers(len(copies), size=3000)]
    column = pd.Series(cells, dtype=object)
    for found in (column, column[::-1], column[::2]):  # in place, backwards, with steps
        codes, values = distinct_values(found)
        expected, known = pd.factorize(found)
        assert codes.tolist() == expected.tolist() and values == list(known)


def test_many_objects_are_left_to_pandas() -> None:
    cells = np.array([f"label {i % 300}" for i in range(3000)], object)
    codes, values = distinct_values(pd.Series(cells, dtype=object))
    assert len(values) == 300 and [values[i] for i in codes] == cells.tolist()


class Odd:
    """A value that equals nothing."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


@pytest.mark.parametrize("tier", ["plain", "compiled"])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(
    "kinds",
    [
        ["a", "b", "c"],
        ["a", None, "b", np.nan],
        ["a", pd.NA, 1.5, 2.0, True],
        [1.5, 2.5, float("inf")],
        ["a", pd.NaT, np.float64("nan")],
        [Odd(), "a"],
        [str(i) for i in range(120)],
    ],
)
def test_objects_are_told_apart_by_their_addresses(tier: str, step: int, kinds: list[Any]) -> None:
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(kinds), 3000)
    table = np.empty((3000, step), object)
    table[:] = "another column"
    table[:, 0] = [kinds[i] for i in chosen]
    for row in np.flatnonzero(rng.random(3000) < 0.3).tolist():
        table[row, 0] = float("nan")  # an object of its own each time
    column = pd.Series(table[:, 0], copy=False)
    expected, labels = pd.factorize(column)
    with compiling.tier(tier):
        codes, values = distinct_values(column)
    assert [None if code < 0 else values[code] for code in codes.tolist()] == [
        None if code < 0 else labels[code] for code in expected.tolist()
    ]


def test_gaps_that_are_objects_of_their_own_are_looked_into() -> None:
    cells = np.empty(2000, object)
    cells[:] = [float("nan") if i % 3 else "yes" for i in range(2000)]
    with compiling.tier("compiled"):
        codes, values = _distinct_objects(cells)
    assert values == ["yes"]
    np.testing.assert_array_equal(codes, np.where(np.arange(2000) % 3, -1, 0))


@pytest.mark.parametrize("name", ["plain", "compiled"])
def test_places_that_hold_no_object_are_gaps(name: str) -> None:
    from gramgraph._numerics.counts.objects import FEW, few_objects

    word = "a"
    addresses, found, out = np.array([id(word), 0, id(word), 0]), np.empty(FEW, np.int64), np.empty(4, np.int8)
    with compiling.tier(name):
        assert few_objects(addresses, 1, id(float), found, out) == 1
    assert out.tolist() == [0, -1, 0, -1] and found[0] == id(word)
