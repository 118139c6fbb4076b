"""Network classifiers with a graph of the user's, and with frames that cannot be learned from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gramgraph as gg

FRAME = gg.datasets.asia().sample(1500, random_state=0)
X, y = FRAME.drop(columns="dysp"), FRAME["dysp"]


@pytest.mark.parametrize("as_network", [True, False])
def test_the_given_graph_is_used(as_network: bool) -> None:
    edges = [("class", "smoke"), ("class", "bronc"), ("smoke", "bronc")]
    model = clone(gg.estimators.BayesianNetworkClassifier(gg.BayesianNetwork(edges) if as_network else edges)).fit(X, y)
    place = {name: f"x{j}" for j, name in enumerate(X.columns)} | {"class": "class"}
    assert set(model.network_.edges) == {(place[a], place[b]) for a, b in edges}
    # by hand: p(class) p(smoke | class) p(bronc | class, smoke) with one added to every cell
    counts = np.ones((2, 2, 2))
    kept = FRAME[["dysp", "smoke", "bronc"]].astype(str).to_numpy() == "yes"
    np.add.at(counts, tuple(kept.astype(int).T), 1)
    joint = counts / counts.sum(2, keepdims=True)
    pair = np.ones((2, 2))
    np.add.at(pair, tuple(kept[:, :2].astype(int).T), 1)
    single = np.ones(2)
    np.add.at(single, kept[:, 0].astype(int), 1)
    joint *= (pair / pair.sum(1, keepdims=True))[:, :, None] * (single / single.sum())[:, None, None]
    expected = (joint / joint.sum(0))[:, kept[:, 1].astype(int), kept[:, 2].astype(int)].T
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-10)


def test_a_graph_over_an_array() -> None:
    model = gg.estimators.BayesianNetworkClassifier([("class", "x1")]).fit(X.to_numpy(), y)
    assert model.network_.edges == (("class", "x1"),)


@pytest.mark.parametrize(
    ("structure", "error", "text"),
    [
        ([("class", "smok")], gg.VariableError, "Did you mean 'smoke'"),
        ([("class", "smoke"), ("smoke", "class")], gg.OptionError, "cycle"),
        (3, gg.OptionError, "edges"),
        ("tann", gg.OptionError, "Did you mean 'tan'"),
    ],
)
def test_a_graph_that_cannot_be(structure: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        gg.estimators.BayesianNetworkClassifier(structure).fit(X, y)


@pytest.mark.parametrize(
    "kind", [gg.estimators.NaiveBayesClassifier, gg.estimators.TANClassifier, gg.estimators.BayesianNetworkClassifier]
)
def test_names_twice_and_classes_missing(kind: type) -> None:
    with pytest.raises(gg.VariableError, match="more than one column 'smoke'"):
        kind().fit(pd.concat([X, X[["smoke"]]], axis=1), y)
    with pytest.raises(gg.ModelError, match="row 3"):
        kind().fit(X, y.astype(object).mask(np.arange(len(y)) == 3))
