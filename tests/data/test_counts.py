"""Contingency tables by bits and by scan against a count by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.data import Counts, Discretizer, code_table, column_kinds
from gramgraph.data import counts as counting


def random_frame(seed: int, n: int, sizes: list[int], missing: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            f"c{j}": pd.Categorical.from_codes(
                np.where(rng.random(n) < missing, -1, rng.integers(0, k, n)), [f"s{i}" for i in range(k)]
            )
            for j, k in enumerate(sizes)
        }
    )


def by_hand(frame: pd.DataFrame, columns: list[str], weights: np.ndarray | None = None) -> np.ndarray:
    out = np.zeros([len(frame[c].cat.categories) for c in columns])
    for i, row in enumerate(zip(*(frame[c].cat.codes for c in columns), strict=True)):
        if min(row) >= 0:
            out[row] += 1 if weights is None else weights[i]
    return out


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 9999),
    n=st.integers(0, 300),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    missing=st.sampled_from([0.0, 0.3]),
    bits=st.booleans(),
)
def test_any_table_equals_a_count_by_hand(seed, n, sizes, missing, bits):
    frame = random_frame(seed, n, sizes, missing)
    counts = Counts(code_table(frame))
    columns = list(np.random.default_rng(seed).permutation(frame.columns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "BIT_CELLS", 10**9 if bits else 0)
        found = counts.table(columns)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, by_hand(frame, columns))


def test_all_pairs_at_once_equal_single_tables():
    frame = random_frame(1, 1000, [2, 3, 4, 2], 0.1)
    together, alone = Counts(code_table(frame)), Counts(code_table(frame))
    together.all_pairs()
    for i in range(4):
        for j in range(4):
            if i != j:
                np.testing.assert_array_equal(together.table((i, j)), alone.table((i, j)))


def test_weights_are_summed():
    frame = random_frame(2, 200, [2, 3], 0.2)
    weights = np.random.default_rng(0).random(200)
    np.testing.assert_allclose(
        Counts(code_table(frame, weights=weights)).table([0, 1]), by_hand(frame, ["c0", "c1"], weights)
    )
    named = code_table(frame.assign(w=weights), weights="w")
    assert named.names == ("c0", "c1")
    np.testing.assert_array_equal(named.weights, weights)


def test_many_states_need_wider_codes():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": pd.Categorical(rng.integers(0, 300, 5000)), "b": rng.integers(0, 2, 5000)})
    table = code_table(frame)
    assert table.columns[0].dtype == np.int16
    expected = pd.crosstab(frame["a"], frame["b"]).to_numpy()
    np.testing.assert_array_equal(Counts(table).table([0, 1]), expected)
    np.testing.assert_array_equal(Counts(table).table([0]), expected.sum(axis=1))


def test_tables_are_read_only_and_kept():
    counts = Counts(code_table(random_frame(0, 50, [2, 2], 0.0)))
    assert counts.table([0, 1]) is counts.table(["c0", "c1"])
    with pytest.raises(ValueError):
        counts.table([0, 1])[0, 0] = 5


def test_kinds_of_columns():
    frame = pd.DataFrame(
        {
            "label": ["b", "a", None],
            "truth": [True, False, True],
            "whole": [3, 1, 2],
            "number": [0.5, 1.0, 2.0],
            "size": pd.Categorical(["s", "l", "s"], ["s", "l"], ordered=True),
            "nothing": [None, None, None],
        }
    )
    kinds = column_kinds(frame)
    assert kinds["kind"].tolist() == ["category", "category", "integer", "real", "ordered", "empty"]
    assert kinds["missing"].tolist() == [1, 0, 0, 0, 0, 3]
    variables = code_table(frame[["label", "truth", "whole", "size"]]).variables
    assert [var.states for var in variables] == [("a", "b"), ("False", "True"), ("1", "2", "3"), ("s", "l")]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_other_frames_give_the_same_codes(kind):
    library = pytest.importorskip(kind)
    columns = {"a": ["x", None, "y"], "b": [1, 2, 2]}
    frame = library.DataFrame(columns) if kind == "polars" else library.table(columns)
    expected, found = code_table(pd.DataFrame(columns)), code_table(frame)
    assert found.variables == expected.variables
    for a, b in zip(found.columns, expected.columns, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"x": [0.1, 0.25]}), "real-valued"),
        (pd.DataFrame({"x": [None, None]}), "nothing but missing"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "more than one column 'x'"),
        (pd.DataFrame({"x": [[1], [2]]}), "cannot be states"),
        ([1, 2, 3], "a data frame"),
    ],
)
def test_frames_that_cannot_be_counted(frame, words):
    with pytest.raises(gg.VariableError, match=words):
        code_table(frame)


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 1.0], [np.nan, 1.0], "nobody"])
def test_weights_that_are_none(weights):
    with pytest.raises(gg.VariableError):
        code_table(pd.DataFrame({"x": ["a", "b"]}), weights=weights)


def test_cut_columns_keep_their_edges():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=1000), "who": "a"})
    frame.loc[3, "x"] = np.nan
    cutter = Discretizer(bins=4).fit(frame)
    cut = cutter.transform(frame)
    assert cut["x"].cat.ordered and cut["x"].isna().sum() == 1
    assert cut["x"].value_counts().between(245, 255).all()
    far = cutter.transform(pd.DataFrame({"x": [-1e9, 1e9]}))["x"].cat.codes.tolist()
    assert far == [0, 3]
    edges = cutter.edges_["x"]
    on_edge = cutter.transform(pd.DataFrame({"x": edges}))["x"].cat.codes.tolist()
    assert on_edge == [0, 1, 2], "an edge belongs to the interval that ends with it"
    uniform = Discretizer(bins=2, method="uniform").fit(pd.DataFrame({"x": [0.0, 1.0, 10.0]}))
    assert uniform.edges_["x"].tolist() == [5.0]
    with pytest.raises(gg.OptionError, match="increasing"):
        Discretizer(method={"x": [2.0, 1.0]}).fit(frame)
    constant = Discretizer(bins=3).fit_transform(pd.DataFrame({"x": [1.0, 1.0]}))
    assert constant["x"].tolist() == ["(-inf, inf)"] * 2
