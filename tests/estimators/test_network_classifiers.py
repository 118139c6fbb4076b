"""Bayesian networks as classifiers: the contract, Bayes' rule by hand, gaps and unseen labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramgraph as gg

KINDS = [gg.estimators.NaiveBayesClassifier, gg.estimators.TANClassifier, gg.estimators.BayesianNetworkClassifier]


CONTRACT = [
    gg.estimators.NaiveBayesClassifier(),
    gg.estimators.TANClassifier(),
    gg.estimators.BayesianNetworkClassifier(bins=3),
]


@parametrize_with_checks(CONTRACT)
def test_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def labels(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    frame = gg.datasets.asia().sample(n, random_state=seed).astype(str)
    return frame.drop(columns="dysp"), frame["dysp"]


def test_naive_bayes_equals_scikit_learn() -> None:
    X, y = labels()
    codes = OrdinalEncoder().fit_transform(X).astype(int)
    theirs = CategoricalNB(alpha=1.0).fit(codes, y)
    ours = gg.estimators.NaiveBayesClassifier().fit(X, y)
    prior = (np.unique(y, return_counts=True)[1] + 1) / (len(y) + 2)  # ours smooths the classes too
    expected = theirs.predict_proba(codes) / np.exp(theirs.class_log_prior_) * prior
    np.testing.assert_allclose(ours.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gaps_are_summed_out(kind) -> None:
    X, y = labels()
    model = kind().fit(X, y)
    row = X.iloc[[0]].astype(object)
    row["smoke"] = None
    at = list(X.columns)
    case = {f"x{at.index(c)}": row[c].iloc[0] for c in at if c != "smoke"}
    expected = model.network_.query("class", case)["class"].probabilities
    np.testing.assert_allclose(model.predict_proba(row)[0], expected, atol=1e-12)
    row["smoke"] = "a label from nowhere"
    np.testing.assert_allclose(model.predict_proba(row)[0], expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_trained_on_gaps_and_weights(kind) -> None:
    X, y = labels(2000)
    gaps = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.2)
    gaps["empty"] = None
    model = kind().fit(gaps, y)
    assert model.score(X.assign(empty=None), y) > 0.75
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    weighted = kind().fit(X, y, sample_weight=weights).predict_proba(X)
    repeated = kind().fit(X.loc[X.index.repeat(weights)], y.repeat(weights)).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-10)


def test_mixed_columns_in_frames_of_two_libraries() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = pd.DataFrame(
        {"real": y + 0.4 * rng.normal(size=600), "who": np.array(["a", "b", "c"])[y], "n": rng.integers(0, 4, 600)}
    )
    for kind in KINDS:
        model = kind().fit(X, y)
        assert model.score(X, y) > 0.9
        assert model.feature_names_in_.tolist() == ["real", "who", "n"]
    polars = pytest.importorskip("polars")
    there = gg.estimators.TANClassifier().fit(polars.from_pandas(X), y)
    np.testing.assert_array_equal(
        there.predict(polars.from_pandas(X)), gg.estimators.TANClassifier().fit(X, y).predict(X)
    )


def test_searches_and_grids() -> None:
    X, y = labels(600)
    found = GridSearchCV(
        gg.estimators.BayesianNetworkClassifier(), {"structure": ["naive_bayes", "tan", "hill_climb"]}, cv=3
    ).fit(X, y)
    assert found.best_score_ > 0.75
    assert cross_val_score(gg.estimators.TANClassifier(), X, y, cv=3).mean() > 0.75


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (gg.estimators.BayesianNetworkClassifier("tann"), "structure is one of"),
        (gg.estimators.BayesianNetworkClassifier(criterion="bicc"), "Did you mean 'bic'"),
        (gg.estimators.NaiveBayesClassifier(pseudo_count=-1), "pseudo_count"),
    ],
)
def test_wrong_options(model, words) -> None:
    X, y = labels(50)
    with pytest.raises(gg.OptionError, match=words):
        model.fit(X, y)


def test_one_class_is_named() -> None:
    with pytest.raises(ValueError, match="one class"):
        gg.estimators.NaiveBayesClassifier().fit([[1.0], [2.0]], ["a", "a"])
