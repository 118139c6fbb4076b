"""Contingency tables by bits and by scan against a count by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.data import Counts, Discretizer, code_table, column_kinds
from gramgraph.data import counts as counting
from tests.portions import examples


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


@settings(max_examples=examples(40), deadline=None)
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


def test_cuts_by_description_length_equal_the_published_ones_of_iris():
    datasets = pytest.importorskip("sklearn.datasets")
    iris = datasets.load_iris(as_frame=True).frame
    cutter = Discretizer(method="mdlp", target="target").fit(iris)
    # Fayyad and Irani's cuts of Fisher's irises, as the R package discretization gives them
    expected = [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]
    for edges, cuts in zip(cutter.edges_.values(), expected, strict=True):
        np.testing.assert_allclose(edges, cuts)
    again = Discretizer(method=cutter.edges_).fit_transform(iris)
    assert again.equals(cutter.transform(iris))
    assert cutter.transform(iris)["target"].equals(iris["target"]), "the classes stay"


def by_hand_mdlp(x: np.ndarray, y: np.ndarray) -> list[float]:
    """The recursion as it is written down, one cut at a time."""

    def entropy(y: np.ndarray) -> float:
        p = np.unique(y, return_counts=True)[1] / len(y)
        return float(-(p * np.log2(p)).sum())

    best = None
    values = np.unique(x)
    for a, b in pairwise(values):
        left, right = y[x <= a], y[x > a]
        e = (len(left) * entropy(left) + len(right) * entropy(right)) / len(y)
        if best is None or e < best[0] - 1e-12:
            best = (e, (a + b) / 2, left, right)
    if best is None:
        return []
    e, cut, left, right = best
    k, k1, k2 = (len(np.unique(part)) for part in (y, left, right))
    delta = np.log2(3**k - 2) - (k * entropy(y) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(y) - e <= (np.log2(len(y) - 1) + delta) / len(y):
        return []
    return [*by_hand_mdlp(x[x < cut], left), cut, *by_hand_mdlp(x[x > cut], right)]


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 9999), n=st.integers(1, 120), k=st.integers(1, 4), digits=st.integers(0, 2))
def test_cuts_by_description_length_equal_the_recursion(seed, n, k, digits):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = np.round(rng.normal(size=n) + 1.5 * y, digits)
    frame = pd.DataFrame({"x": x, "y": y.astype(str)})
    cutter = Discretizer(bins=10**6, method="mdlp", target="y").fit(frame)
    np.testing.assert_allclose(cutter.edges_["x"], by_hand_mdlp(x, y))
    doubled = Discretizer(bins=10**6, method="mdlp", target="y").fit(frame, weights=np.full(n, 2.0))
    repeated = Discretizer(bins=10**6, method="mdlp", target="y").fit(pd.concat([frame, frame]))
    np.testing.assert_array_equal(doubled.edges_["x"], repeated.edges_["x"])


def test_at_most_so_many_cuts_and_rows_without_a_class():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], 100)
    frame = pd.DataFrame({"x": rng.normal(size=400) + 5 * y, "y": pd.Categorical(y)})
    assert len(Discretizer(method="mdlp", target="y").fit(frame).edges_["x"]) == 3
    assert len(Discretizer(bins=2, method="mdlp", target="y").fit(frame).edges_["x"]) == 1
    holes = pd.concat([frame, pd.DataFrame({"x": [100.0, np.nan], "y": [None, 1]})], ignore_index=True)
    holes["y"] = pd.Categorical(holes["y"])
    np.testing.assert_array_equal(
        Discretizer(method="mdlp", target="y").fit(holes).edges_["x"],
        Discretizer(method="mdlp", target="y").fit(frame).edges_["x"],
    )
    for options, error, words in (
        ({"method": "mdlp"}, gg.OptionError, "needs target"),
        ({"target": "y"}, gg.OptionError, "take none"),
        ({"method": "mdpl"}, gg.OptionError, "Did you mean 'mdlp'"),
        ({"method": "mdlp", "target": "Y"}, gg.VariableError, "Did you mean 'y'"),
        ({"method": "mdlp", "target": "x"}, gg.VariableError, "needs classes"),
    ):
        with pytest.raises(error, match=words):
            Discretizer(**options).fit(frame)
