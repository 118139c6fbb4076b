"""What learning takes: frames for trees, other words for methods, labels for predictors; one warning, clear errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg

ASIA = gg.datasets.asia().sample(400, random_state=0)


def test_trees_take_frames() -> None:
    tree = gg.learn.chow_liu(ASIA, root="smoke")
    assert tree == gg.learn_structure(ASIA, method="chow_liu", root="smoke") and len(tree.edges) == 7
    assert gg.learn.chow_liu(ASIA).parents(ASIA.columns[0]) == ()
    around = gg.learn.tan(ASIA, "dysp", prior=1.0)
    assert all("dysp" in around.parents(v) for v in around.variables if v != "dysp")
    assert around.query("dysp", {"smoke": "yes"})["dysp"].probabilities.sum() == pytest.approx(1.0)
    with pytest.raises(gg.VariableError, match="Did you mean 'dysp'"):
        gg.learn.tan(ASIA, "Dysp")


@pytest.mark.parametrize("word", ["hc", "hill-climbing", "HillClimb", "Hill Climb"])
def test_other_words_for_methods(word) -> None:
    assert gg.learn_structure(ASIA, method=word) == gg.learn_structure(ASIA)
    assert gg.learn_structure(ASIA, method=word).report.method == "hill_climb"
    with pytest.raises(gg.OptionError, match="no such method: 'hill_crimb'.*Did you mean 'hill_climb'"):
        gg.learn_structure(ASIA, method="hill_crimb")


def test_a_classifier_takes_the_same_words() -> None:
    X, y = ASIA.drop(columns="dysp"), ASIA["dysp"]
    a, b = (gg.estimators.BayesianNetworkClassifier(word).fit(X, y) for word in ("hc", "hill_climb"))
    assert a.network_ == b.network_


def test_a_bootstrap_warns_once_of_rows_with_gaps() -> None:
    gaps = ASIA.astype(object).mask(np.random.default_rng(0).random(ASIA.shape) < 0.02)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = gg.learn.bootstrap_edges(gaps, 5, random_state=0)
        found.calibrated(2, random_state=0)
    assert [str(w.message) for w in told] == [
        f"{int(gaps.isna().any(axis=1).sum())} of 400 rows have missing cells and are left out"
    ]
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gg.learn.bootstrap_edges(gaps, 2, random_state=0, missing="families")


def test_a_predictor_takes_labels_as_states() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "c": np.where(x > 0, "warm", "cold"), "s": rng.choice(["u", "v"], 200)})
    found = gg.conditionals.Predictor.fit("c", ("x", "s"), LogisticRegression(), frame)
    assert found.child.states == ("cold", "warm") and found.parents[1].states == ("u", "v")
    ordered = frame.assign(c=pd.Categorical(frame["c"], ["warm", "cold"]))
    assert gg.conditionals.Predictor.fit("c", "x", LogisticRegression(), ordered).child.states == ("warm", "cold")


def test_a_row_of_a_table_for_a_real_variable_shows_both_forms() -> None:
    with pytest.raises(gg.ModelError) as told:
        gg.BayesianNetwork("x{real}", cpds={"x": [0.1, 0.9]})
    assert "(mean, sd)" in str(told.value) and "'intercept'" in str(told.value) and "x{no|yes}" in str(told.value)
    assert gg.BayesianNetwork("x{real}", cpds={"x": (0.1, 0.9)}).query("x")["x"].mean() == pytest.approx(0.1)


@pytest.mark.parametrize("given", [([0.5, 0.5],), (["a", "b"],), (["a", "b"], [[1.0], [1.0]]), ([1.0], "table")])
def test_a_latent_variable_says_what_it_needs(given) -> None:
    with pytest.raises(gg.kernels.KernelError, match=r"p\(z\)|expected"):
        gg.kernels.LatentVariable(*given)
