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
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(codes), atol=1e-12)


def test_naive_bayes_has_a_density_for_every_column() -> None:
    from sklearn.datasets import load_wine
    from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB

    X, y = load_wine(return_X_y=True)
    ours = gg.estimators.NaiveBayesClassifier(columns="gaussian").fit(X, y)
    np.testing.assert_allclose(
        ours.predict_proba(X), GaussianNB(var_smoothing=0.0).fit(X, y).predict_proba(X), atol=1e-6
    )
    rng = np.random.default_rng(0)
    z, counts = rng.integers(0, 3, 200), rng.poisson(3.0, size=(200, 4))
    bits = (counts > 2).astype(int)
    np.testing.assert_allclose(
        gg.estimators.NaiveBayesClassifier().fit(bits, z).predict_proba(bits),
        BernoulliNB().fit(bits, z).predict_proba(bits),
        atol=1e-12,
    )
    words = gg.estimators.NaiveBayesClassifier(columns="multinomial").fit(counts, z)
    np.testing.assert_allclose(
        words.predict_proba(counts), MultinomialNB().fit(counts, z).predict_proba(counts), atol=1e-12
    )


@pytest.mark.parametrize("way", ["gaussian", "kernel", "counts", "bins"])
def test_the_network_of_naive_bayes_says_the_same(way: str) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 120)
    frame = pd.DataFrame({"n": rng.poisson(2.0 + 3.0 * y).astype(float), "g": rng.choice(list("uv"), 120)})
    model = gg.estimators.NaiveBayesClassifier(columns={"n": way}).fit(frame, y)
    row = frame.iloc[[3]]
    seen: dict[str, object] = {"x1": row["g"].iloc[0]}
    if way == "bins":
        states = model.network_.states("x0")
        found = model.predict_proba(row)[0]
        odds = [model.network_.query("class", {**seen, "x0": s})["class"].probabilities for s in states]
        assert min(np.abs(found - o).max() for o in odds) < 1e-12
        return
    wanted = model.network_.query("class", {**seen, "x0": float(row["n"].iloc[0])})["class"].probabilities
    np.testing.assert_allclose(model.predict_proba(row)[0], wanted, atol=1e-9)
    gap = row.assign(n=np.nan)
    np.testing.assert_allclose(
        model.predict_proba(gap)[0], model.network_.query("class", seen)["class"].probabilities, atol=1e-9
    )


def test_columns_that_naive_bayes_cannot_take_are_named() -> None:
    frame, y = pd.DataFrame({"a": [-1.0, 2.5, 3.0, 0.5], "t": list("uvuv")}), [0, 1, 0, 1]
    for columns, words in [
        ({"a": "gausian"}, "Did you mean 'gaussian'"),
        ({"b": "kernel"}, "'b'"),
        ({"t": "gaussian"}, "'t' does not hold numbers"),
        ({"a": "counts"}, "'a' does not hold counts"),
        (3, "a word or a dict"),
    ]:
        with pytest.raises((ValueError, KeyError), match=words):
            gg.estimators.NaiveBayesClassifier(columns=columns).fit(frame, y)
    with pytest.raises(ValueError, match="no weights"):
        gg.estimators.NaiveBayesClassifier(columns={"a": "kernel"}).fit(frame, y, sample_weight=[1, 2, 1, 1])


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
