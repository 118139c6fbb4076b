"""Data that go wrong: each is a clear error or a correct answer, in memory, in files and on a cluster."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data import Counts, code_table, stream_counts


@cache
def cases() -> pd.DataFrame:
    """400 cases of asia; drawn when a test asks, as drawing may have to compile."""
    return gg.datasets.asia().sample(400, random_state=0).astype(str)


@pytest.mark.parametrize("kind", ["naive Bayes", "TAN", "network"])
def test_a_category_that_was_never_seen(kind) -> None:
    made = {
        "naive Bayes": gg.estimators.NaiveBayesClassifier,
        "TAN": gg.estimators.TANClassifier,
        "network": gg.estimators.BayesianNetworkClassifier,
    }
    X, y = cases().drop(columns="dysp"), cases()["dysp"]
    model = made[kind]().fit(X, y)
    new = X[:3].copy()
    new.loc[1, "smoke"] = "sometimes"
    try:
        shares = model.predict_proba(new)
    except gg.GramGraphError as error:
        assert "sometimes" in str(error) and "smoke" in str(error)
    else:  # then as if it were not known
        gap = new.assign(smoke=new["smoke"].replace("sometimes", None))
        np.testing.assert_allclose(shares, model.predict_proba(gap))


def test_a_state_that_was_never_seen_in_a_question_or_a_second_sample() -> None:
    net = gg.datasets.asia().fit(cases())
    with pytest.raises(gg.StateError, match=r"'ye' is not a state of smoke.*Did you mean 'yes'"):
        net.query("lung", {"smoke": "ye"})
    with pytest.raises(gg.StateError, match="row 2: 'ye' is not a state of smoke"):
        net.query("lung", cases().assign(smoke=["no", "yes", "ye", *["no"] * 397]))
    with pytest.raises(gg.StateError, match="row 2: 'ye' is not a state of smoke"):
        net.fit(cases().assign(smoke=["no", "yes", "ye", *["no"] * 397]))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_unknown_state_in_a_file(tmp_path, suffix) -> None:
    path = tmp_path / f"d.{suffix}"
    bad = cases().assign(smoke=["ye", *["no"] * 399])
    bad.to_csv(path, index=False) if suffix == "csv" else bad.to_parquet(path)
    with pytest.raises(gg.StateError, match="'ye' is not a state of smoke.*Did you mean"):
        gg.datasets.asia().fit(path)


def test_a_constant_column_is_an_isolated_variable() -> None:
    frame = cases().assign(place="here")
    net = gg.learn_structure(frame)
    assert net.states("place") == ("here",) and not net.parents("place")
    assert not any("place" in edge for edge in net.edges)
    assert net.query("place")["place"].prob("here") == 1.0
    rest = gg.learn_structure(cases())
    assert net.edges == rest.edges
    strengths = gg.learn.bootstrap_edges(frame, 3, random_state=0).to_frame()
    assert "place" not in strengths[["from", "to"]].to_numpy()
    for method in ("tabu", "chow_liu", "pc"):
        gg.learn_structure(frame, method=method)
    X = frame.drop(columns="dysp")
    assert gg.estimators.NaiveBayesClassifier().fit(X, frame["dysp"]).predict(X)[0]


def test_an_all_missing_column() -> None:
    frame = cases().assign(place=None)
    with pytest.raises(gg.VariableError, match="'place' has nothing but missing cells"):
        gg.learn_structure(frame)
    fitted = gg.datasets.asia().fit(cases().assign(lung=None), max_iter=3, random_state=0)
    assert fitted.fit_report is not None, "a variable that is never seen is hidden"
    assert fitted == gg.datasets.asia().fit(cases().drop(columns="lung"), max_iter=3, random_state=0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_all_missing_column_of_a_file(tmp_path, suffix) -> None:
    path = tmp_path / f"d.{suffix}"
    frame = cases().assign(place=None)
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    with pytest.raises(gg.VariableError, match="'place' has nothing but missing cells"):
        gg.learn_structure(path)
    assert gg.datasets.asia().fit(path) == gg.datasets.asia().fit(cases()), "columns beside the network do not matter"


def test_duplicate_column_names(tmp_path) -> None:
    frame = pd.concat([cases(), cases()[["smoke"]]], axis=1)
    path = tmp_path / "d.csv"
    frame.to_csv(path, index=False)
    net = gg.datasets.asia()
    for call in (gg.learn_structure, net.fit, net.log_likelihood, code_table):
        with pytest.raises(gg.VariableError, match="more than one column 'smoke'"):
            call(frame)
    for call in (gg.learn_structure, net.fit, stream_counts):
        with pytest.raises(gg.VariableError, match="more than one column 'smoke'"):
            call(path)


@pytest.mark.parametrize("rows", [3, 30_000])
def test_a_csv_row_with_too_many_fields(tmp_path, rows) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n" + "x,y\n" * rows + "x,y,z\n" + "x,y\n")
    for call in (stream_counts, gg.learn_structure, gg.BayesianNetwork("a -> b").fit):
        with pytest.raises(gg.VariableError, match=rf"Row #{rows + 2}: Expected 2 columns, got 3"):
            call(path)
    path.write_text("a,b\n" + "x,y\n" * rows + "x\n")
    with pytest.raises(gg.VariableError, match="Expected 2 columns, got 1"):
        stream_counts(path)


def test_no_rows_and_no_columns() -> None:
    for data in (cases()[:0], cases()[[]], {}):
        with pytest.raises(gg.VariableError):
            gg.learn_structure(data)


def test_rows_of_nothing_count_for_nothing() -> None:
    holes = pd.concat([cases(), pd.DataFrame([[None] * 8] * 5, columns=cases().columns)], ignore_index=True)
    net = gg.datasets.asia()
    fitted = net.fit(holes, tol=1e-9)
    for name in net.variables:
        np.testing.assert_allclose(
            fitted.conditional(name).table(), net.fit(cases()).conditional(name).table(), atol=1e-4
        )
    counts = Counts(code_table(holes))
    assert counts.complete().rows == 400
