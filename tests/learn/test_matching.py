"""Columns against variables: misspelt names, hidden variables, columns that nobody uses."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import gramgraph as gg

ASIA = gg.datasets.asia()
FRAME = ASIA.sample(200, random_state=0).astype(str)


@pytest.mark.parametrize("name", ["Lung", "lungs", "LUNG", "lung_"])
@pytest.mark.parametrize("kind", ["frame", "csv", "dict"])
def test_a_misspelt_column_is_an_error(name, kind, tmp_path) -> None:
    frame = FRAME.rename(columns={"lung": name})
    data = frame
    if kind == "csv":
        data = tmp_path / "d.csv"
        frame.to_csv(data, index=False)
    elif kind == "dict":
        data = frame.to_dict("list")
    with pytest.raises(gg.VariableError, match=f"no column 'lung'.*{name}.*Did you mean 'lung'.*hidden="):
        ASIA.fit(data)
    with pytest.raises(gg.VariableError, match="Did you mean 'lung'"):
        ASIA.fit_posterior(data)
    with pytest.warns(gg.ModelWarning, match=f"not used: {name}"):
        fitted = ASIA.fit(data, hidden=["lung"], max_iter=2, random_state=0)
    assert fitted.fit_report is not None


def test_real_variables_too(tmp_path) -> None:
    frame = pd.DataFrame({"Dose": [0.5, 1.5, 2.5, 3.0], "gain": [1.0, 2.0, 3.5, 3.0]})
    net = gg.BayesianNetwork("dose{real} -> gain{real}")
    with pytest.raises(gg.VariableError, match="Did you mean 'dose'"):
        net.fit(frame)
    frame.to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(gg.VariableError, match="Did you mean 'dose'"):
        net.fit(tmp_path / "d.csv")


def test_columns_that_are_not_used_are_named_once() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert ASIA.fit(FRAME.assign(place="here", w=1.0), weights="w") == ASIA.fit(FRAME)
    assert [str(w.message) for w in told] == ["columns that are not variables of the network are not used: place"]
    assert told[0].filename == __file__ and told[0].category is gg.ModelWarning


def test_variables_that_look_like_no_column_are_hidden() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gg.BayesianNetwork("z{1|2} -> x").fit(FRAME[["xray"]].rename(columns={"xray": "x"}), max_iter=2, random_state=0)
        ASIA.fit(FRAME.drop(columns="lung"), max_iter=2, random_state=0)
    frame = pd.DataFrame({"x1": ["a", "b"] * 10, "x3": ["u", "v"] * 10})
    with pytest.warns(gg.ModelWarning, match="not used: x3.*hidden: x2"):
        gg.BayesianNetwork("x2 -> x1").fit(frame, max_iter=2, random_state=0)
    with pytest.raises(gg.OptionError, match="is a column of the data"):
        ASIA.fit(FRAME, hidden=["lung"])
    with pytest.raises(gg.VariableError, match="Did you mean 'lung'"):
        ASIA.fit(FRAME.drop(columns="lung"), hidden="lungg")
