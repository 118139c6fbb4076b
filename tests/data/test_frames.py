"""One reader of frames: every kind of table gives the same columns, and what is not a table is named."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data.frames import Frame, is_missing, missing_cells, read_frame

COLUMNS = {"sky": ["sun", None, "rain"], "wind": [2.0, 3.5, None], "n": [1, 2, 3]}


def _made(kind):
    if kind == "pandas":
        return pd.DataFrame(COLUMNS)
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(COLUMNS)
    if kind == "arrow":
        return pytest.importorskip("pyarrow").table(COLUMNS)
    if kind == "columns":
        return COLUMNS
    if kind == "columns of arrow":
        pa = pytest.importorskip("pyarrow")
        return {name: pa.array(cells) for name, cells in COLUMNS.items()}
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "columns", "columns of arrow", "records"])
def test_every_kind_of_table_gives_the_same_columns(kind):
    frame = read_frame(_made(kind))
    assert frame.names == ("sky", "wind", "n") and frame.n_rows == 3
    assert list(frame.index) == [0, 1, 2]
    assert [c for c in frame.column("sky") if not is_missing(c)] == ["sun", "rain"]
    assert missing_cells(frame.column("sky")).tolist() == [False, True, False]
    X = frame.numbers(["wind", "n"])
    np.testing.assert_array_equal(X, [[2.0, 1.0], [3.5, 2.0], [math.nan, 3.0]])
    assert X.dtype == np.float64
    assert frame.numbers() is None  # sky holds labels


@pytest.mark.parametrize("rows", [3, 60_000])
def test_a_block_of_floats_is_not_copied(rows):
    table = pd.DataFrame(np.arange(rows * 2.0).reshape(rows, 2), columns=["a", "b"])
    assert np.shares_memory(read_frame(table).numbers(), table.to_numpy())


@pytest.mark.parametrize("kind", ["Int64", "Float64", "int8", "float32", "bool", "str"])
def test_plain_numbers_are_told_by_the_type_of_the_column(kind):
    table = pd.DataFrame({"a": pd.Series([1, 0, 1]).astype(kind), "b": [0.5, 1.5, 2.5]})
    X = read_frame(table).numbers()
    assert (X is None) == (kind in ("bool", "str"))
    if X is not None:
        np.testing.assert_array_equal(X, [[1, 0.5], [0, 1.5], [1, 2.5]])


def test_a_series_is_one_row():
    frame = read_frame(pd.Series({"sky": "sun", "wind": 2.0}))
    assert frame.names == ("sky", "wind") and frame.n_rows == 1 and frame.column("wind")[0] == 2.0


def test_rows_with_nothing_in_them_count():
    assert read_frame([{}, {}]).n_rows == 2 and read_frame([]).n_rows == 0 and read_frame({}).names == ()
    assert read_frame(pd.DataFrame(index=[4, 5])).n_rows == 2


def test_a_frame_is_read_once():
    frame = read_frame(COLUMNS)
    assert read_frame(frame) is frame and isinstance(frame, Frame)


def test_categories_keep_their_order():
    pl = pytest.importorskip("polars")
    column = pl.Series("a", ["high", "low"], dtype=pl.Enum(["low", "mid", "high"]))
    for data in (pl.DataFrame([column]), {"a": column}):
        assert read_frame(data).column("a").cat.categories.tolist() == ["low", "mid", "high"]


def test_a_missing_column_names_the_nearest():
    with pytest.raises(gg.VariableError, match=r"no column 'skye'; it has 'sky', 'wind', 'n'\. Did you mean 'sky'"):
        read_frame(COLUMNS).column("skye")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, "cases must be a data frame, a dict or a list of dicts, not int"),
        ("sky", "not str"),
        (None, "not NoneType"),
        (np.zeros((2, 2)), "not ndarray"),
        ([1], "list of dicts; item 0 is 1"),
        ({"a": [1, 2], "b": [1]}, "differ in length: a has 2 rows, b has 1"),
        ({"a": 1.0, "b": [1]}, "a is 1.0. Write one row as a list of one dict"),
        ({"a": "text"}, "a is 'text'"),
        ({"a": pd.Series([1, 2]), "b": pd.Series([1, 2], index=[7, 8])}, "different row labels"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "more than one column 'x'"),
        (pd.Series([1, 2], index=["x", "x"]), "more than one column 'x'"),
    ],
)
def test_what_is_not_a_frame_is_named(data, text):
    with pytest.raises(gg.VariableError) as caught:
        read_frame(data, what="cases")
    assert text in str(caught.value)


def test_lazy_frames_are_told_what_helps():
    pl = pytest.importorskip("polars")
    with pytest.raises(gg.VariableError, match=r"LazyFrame. Use its collect\(\)"):
        read_frame(pl.LazyFrame({"a": [1]}))


def test_every_way_to_write_not_observed():
    gaps = [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT")]
    assert all(map(is_missing, gaps)) and missing_cells(gaps).all()
    shown = [0, 0.0, "", "nan", False, (1, 2), {"a"}, math.inf]
    assert not any(map(is_missing, shown)) and not missing_cells(shown).any()
    assert is_missing(np.array([math.nan])) is False  # a vector is a value; its reader looks inside
