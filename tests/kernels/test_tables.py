"""Points with named columns, and what kernels ask of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gramgraph.data.frames import is_frame
from gramgraph.kernels import RBF, Delta, KernelError, Linear, Spectrum, Tensor, White
from gramgraph.kernels.tables import Table, columns_read, joined_tables, names_columns, reads_everything

COLUMNS: dict[str, Any] = {"a": [0.5, 1.5, 2.5], "b": ["x", "y", "x"], "n": [1, 2, 3]}
K = RBF().on("a") * Delta().on("b") + Linear().on(["a", "n"]) + White(0.1)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_tables_hold_what_frames_hold(make: Any) -> None:
    table = Table.of(make(COLUMNS))
    assert table.columns == ("a", "b", "n") and table.shape == (3, 3) and len(table) == 3
    assert {name: table.column(name).tolist() for name in table.columns} == COLUMNS
    assert table.column(1).tolist() == ["x", "y", "x"] and table.column(-1).tolist() == [1, 2, 3]
    assert table.iloc[[2, 0]].column("n").tolist() == [3, 1] and len(table.iloc[1:]) == 2
    np.testing.assert_allclose(K.gram(table), K.gram(pd.DataFrame(COLUMNS)))
    np.testing.assert_allclose(K.gram(table.iloc[:2], table), K.gram(table)[:2] - 0.1 * np.eye(3)[:2])
    np.testing.assert_allclose(K.diag(table), np.diagonal(K.gram(table)))
    np.testing.assert_allclose(np.vstack([block for _, block in K.blocks(table, rows=2)]), K.gram(table))
    assert joined_tables(table, table.iloc[:1]).column("b").tolist() == ["x", "y", "x", "x"]
    assert not is_frame(table) and is_frame(pd.DataFrame(COLUMNS)) and is_frame(pl.DataFrame(COLUMNS))


def test_numbers_with_gaps_stay_numbers() -> None:
    table = Table.of({"a": [1, None, 3], "b": ["x", None, "y"], "c": [1.0, np.inf, 2.0]})
    assert table.column("a").dtype == np.float64 and np.isnan(table.column("a")[1])
    for name in "abc":
        with pytest.raises(KernelError, match=f"column '{name}' holds .* in row 1. Try:"):
            table.check_present([name])
    table.iloc[[0, 2]].check_present(["a", "b", "c"])
    with pytest.raises(KernelError, match=r"'d' is not a column of the data. Columns: a, b, c"):
        table.check_present(["d"])


def test_names_in_another_order_and_absent_ones() -> None:
    table = Table.of(pd.DataFrame(COLUMNS)[["n", "a"]], ("a", "b", "n"))
    assert table.columns == ("a", "b", "n") and table.column(0).tolist() == COLUMNS["a"]
    with pytest.raises(KernelError, match="'b' is not a column"):
        table.column(1)
    with pytest.raises(KernelError, match="'b' is not a column"):
        table.to_numpy()
    np.testing.assert_array_equal(Linear().on(["a", "n"]).gram(table), Linear().gram(np.c_[COLUMNS["a"], COLUMNS["n"]]))
    with pytest.raises(KernelError, match="expected numbers"):
        RBF().gram(Table.of(COLUMNS))
    assert Delta().on(["b", "n"]).gram(Table.of(COLUMNS)).tolist() == np.eye(3).tolist()


def test_what_kernels_read() -> None:
    assert columns_read(K) == ("a", "b", "n") and names_columns(K) and not reads_everything(K)
    assert columns_read(RBF().on(0) + Delta().on(-1)) == (0, -1) and not names_columns(RBF().on(0))
    assert reads_everything(RBF() + Delta().on("b")) and columns_read(RBF() + Delta().on("b")) == ("b",)
    assert columns_read(Tensor((RBF(), Spectrum(1)), columns=(["a", "n"], "b"))) == ("a", "n", "b")
    assert columns_read((2 * RBF().on("a").normalized()) ** 2) == ("a",)
    assert columns_read(RBF()) == () and reads_everything(RBF().exp())


def test_kernels_read_arrow_tables_as_other_frames():
    pa = pytest.importorskip("pyarrow")
    kernel = RBF().on("age") * Delta().on("town")
    columns = {"age": [1.0, 2.5, 4.0], "town": ["Ulm", "Bern", "Ulm"]}
    np.testing.assert_array_equal(kernel.gram(pa.table(columns)), kernel.gram(pd.DataFrame(columns)))
