"""One rule for what columns are: in memory and in files, in `describe`, `fit`, structures and classifiers."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from tests.portions import examples


def taken(data) -> dict[str, str]:
    return dict(gg.describe(data)[["column", "taken as"]].itertuples(index=False))


def messy(seed: int, k: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, smoke = rng.integers(18, 90, k), rng.random(k) < 0.3
    sick = rng.random(k) < 1 / (1 + np.exp(-(age - 60) / 10 - smoke))
    frame = pd.DataFrame(
        {
            "id": range(1000, 1000 + k),
            "date": pd.date_range("2024-01-01", periods=k, freq="h"),
            "country": "FR",
            "age": age,
            "children": rng.integers(0, 5, k),
            "smoker": np.where(smoke, "yes", "no"),
            "bmi": (rng.normal(26, 4, k) + 2 * smoke).round(1),
            "sick": np.where(sick, "Y", "N"),
        }
    )
    for name in ("age", "smoker", "bmi", "sick", "children"):
        frame.loc[rng.random(k) < 0.05, name] = np.nan
    return frame


def learned(data, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        net = gg.learn_structure(data, **options)
    return net, [str(w.message) for w in told if "identifiers" in str(w.message) or "dates" in str(w.message)]


def test_dates_and_identifiers_are_left_out_with_one_warning(tmp_path: Path) -> None:
    frame = messy(0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    alone, told = learned(frame.drop(columns=["id", "date"]))
    assert not told and alone.edges
    texts = frame.assign(date=frame["date"].astype(str), id=[f"P-{i}" for i in frame["id"]])
    for data in (frame, tmp_path / "t.csv", tmp_path / "t.parquet", texts, frame.sample(frac=1.0, random_state=0)):
        net, told = learned(data)
        assert len(told) == 1 and "'id'" in told[0] and "'date'" in told[0] and "keep=" in told[0]
        assert sorted(net.edges) == sorted(alone.edges) and "id" not in net.variables
        assert net.report.score == pytest.approx(alone.report.score, rel=1e-9)
        assert set(net.states("children")) == {"0", "1", "2", "3", "4"}
    for data in (frame, tmp_path / "t.csv", tmp_path / "t.parquet"):
        kept, told = learned(data, keep=["id", "date"])
        assert not told and ("date", "id") in [tuple(sorted(edge)) for edge in kept.edges]
    with pytest.raises(gg.VariableError, match="no column is left"):
        gg.learn_structure(frame[["id", "date"]])
    with pytest.raises(gg.VariableError, match="Did you mean 'date'"):
        gg.learn_structure(frame, keep=["dates"])


def test_measurements_are_not_taken_for_identifiers() -> None:
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "income": np.sort(rng.lognormal(10, 1, n).astype(int))[::-1] * 7 + np.arange(n)[::-1],
            "weight": rng.normal(size=n),
            "city": rng.choice([f"c{i}" for i in range(150)], n),
            "count": rng.integers(0, 400, n),
            "time": np.linspace(0.0, 1.0, n),
        }
    )
    assert frame["income"].is_unique
    expected = {"income": "real", "weight": "real", "city": "category", "count": "real", "time": "real"}
    assert taken(frame) == expected
    few = pd.DataFrame({"who": list("abcdef"), "n": range(6), "x": rng.normal(size=6)})
    assert taken(few) == {"who": "category", "n": "category", "x": "real"}
    names = pd.DataFrame({"name": [f"n{i}" for i in range(60)], "x": rng.normal(size=60)})
    assert taken(names)["name"] == "identifier"
    net, told = learned(names.assign(y=names["x"] + 1.0))
    assert len(told) == 1 and "name" not in net.variables


@settings(max_examples=examples(12))
@given(
    columns=st.lists(
        st.sampled_from(["few", "many", "gaps", "real", "label", "zeros", "truth", "counter", "date", "mixed", "one"]),
        min_size=1, max_size=5, unique=True,
    ),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_memory_csv_and_parquet_agree(columns, seed, tmp_path_factory) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    made = {
        "few": rng.integers(-3, 5, n),
        "many": rng.integers(0, 30, n) * 3,
        "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 4, n)),
        "real": rng.normal(size=n),
        "label": rng.choice(["u", "v"], n),
        "zeros": [f"{i:03d}" for i in rng.integers(0, 40, n)],
        "truth": rng.random(n) < 0.5,
        "counter": range(n),
        "date": pd.date_range("2020-02-01", periods=n),
        "mixed": rng.choice(["1", "2", "n/a"], n),
        "one": np.full(n, 7),
    }
    frame = pd.DataFrame({name: made[name] for name in columns})
    folder = tmp_path_factory.mktemp("same")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    here = gg.describe(frame)
    for data in (folder / "t.csv", folder / "t.parquet", frame.to_dict("list")):
        pd.testing.assert_frame_equal(gg.describe(data), here, check_dtype=False)
    for name in columns:
        if made[name] is not made["date"]:
            bare = gg.BayesianNetwork(name)
            kinds = [bare.fit(data).var(name) for data in (frame[[name]], frame[[name]].to_dict("list"))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", gg.ModelWarning)  # the other columns are not used
                kinds += [bare.fit(folder / "t.csv").var(name), bare.fit(folder / "t.parquet").var(name)]
            assert len(set(kinds[:2] + kinds[3:])) == 1 and kinds[2].is_discrete == kinds[0].is_discrete


def test_whole_numbers_are_taken_alike_everywhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"n": rng.integers(0, 30, 800), "b": rng.choice(["u", "v"], 800)})
    frame.to_csv(tmp_path / "w.csv", index=False)
    frame.to_parquet(tmp_path / "w.parquet")
    for data in (frame, tmp_path / "w.csv", tmp_path / "w.parquet", frame.astype(str)):
        assert taken(data) == {"n": "real", "b": "category"}
        assert isinstance(gg.learn_structure(data).conditional("n"), gg.LinearGaussian)
        fitted = gg.BayesianNetwork("b -> n").fit(data)
        assert isinstance(fitted.conditional("n"), gg.ConditionalLinearGaussian)
        assert fitted.conditional("n").intercept.ravel() == pytest.approx(frame.groupby("b")["n"].mean().to_numpy())
        declared = gg.BayesianNetwork("b -> n", states={"n": [str(i) for i in range(30)]}).fit(data)
        assert declared.conditional("n").table().shape == (2, 30)
    frame["n"] = frame["n"].astype("category")
    assert taken(frame)["n"] == "category" and gg.learn_structure(frame).var("n").size == 30


def test_every_type_of_column_is_described() -> None:
    days = [datetime.date(2020, 1, i % 28 + 1) for i in range(30)]
    frame = pd.DataFrame(
        {
            "truth": [True, False] * 15,
            "size": pd.Categorical(["s", "l"] * 15, ["s", "l"], ordered=True),
            "price": [Decimal("1.25") * i for i in range(30)],
            "day": days,
            "span": pd.to_timedelta(np.arange(30), unit="h"),
            "text": [str(i % 3) for i in range(30)],
            "numbers": [f"{i / 7:.3f}" for i in range(30)],
            "nothing": [None] * 30,
            "year": pd.period_range("2000", periods=30, freq="Y"),
        }
    )
    assert taken(frame) == {
        "truth": "category", "size": "ordered", "price": "real", "day": "date", "span": "date", "text": "category",
        "numbers": "real", "nothing": "empty", "year": "date",
    }  # fmt: skip
    table = gg.describe(frame)
    assert list(table.columns[:3]) == ["column", "taken as", "why"] and (table["why"].str.len() > 5).all()
    assert gg.data.column_kinds(frame)["kind"]["text"] == "integer"
