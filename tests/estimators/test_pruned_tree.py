"""Trees that are pruned by left-out rows, their leaves as tables of contexts, and their pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

import gramgraph as gg
from gramgraph.estimators import PrunedTree, PrunedTreeRegressor
from gramgraph.exceptions import GramGraphError


def noisy(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = ((X[:, 0] > 0.2) & (X[:, 1] < 0.5)).astype(int)
    return X, np.where(rng.random(n) < 0.15, 1 - y, y)


def test_row_h1_pruning_beats_the_full_tree_on_new_rows() -> None:
    X, y = noisy()
    new, wanted = noisy(4000, 1)
    full = DecisionTreeClassifier(random_state=0).fit(X, y)
    for rule in ("best", "one_se"):
        model = PrunedTree(rule=rule).fit(X, y)
        assert model.n_leaves_ < full.get_n_leaves() / 5
        assert model.score(new, wanted) > full.score(new, wanted) + 0.05
    assert PrunedTree(rule="none").fit(X, y).n_leaves_ == full.get_n_leaves()


def test_row_h1_pruning_is_scikit_learns_at_the_chosen_strength() -> None:
    X, y = noisy()
    model = PrunedTree(rule="best", criterion="entropy").fit(X, y)
    same = DecisionTreeClassifier(criterion="entropy", ccp_alpha=model.alpha_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    found = model.pruning_
    assert found.losses[found.chosen] == found.losses.min()
    simple = PrunedTree(criterion="entropy").fit(X, y)
    assert simple.alpha_ >= model.alpha_ and simple.n_leaves_ <= model.n_leaves_


def test_row_h1_stopping_rules() -> None:
    X, y = noisy()
    assert PrunedTree(max_depth=1, rule="none").fit(X, y).n_leaves_ == 2
    few = PrunedTree(min_samples_leaf=50, rule="none").fit(X, y)
    assert np.bincount(few.tree_.apply(X)).max() >= 50 and few.n_leaves_ <= len(y) // 50
    assert PrunedTree(min_gain=0.01, rule="none").fit(X, y).n_leaves_ < 10
    assert PrunedTree(min_samples_split=401, rule="none").fit(X, y).n_leaves_ == 1


def test_row_h1_regression_trees_find_steps() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(300, 1))
    truth = np.select([x[:, 0] < 0.3, x[:, 0] < 0.7], [1.0, -1.0], 2.0)
    model = PrunedTreeRegressor().fit(x, truth + 0.3 * rng.normal(size=300))
    assert model.n_leaves_ == 3
    assert np.abs(model.predict([[0.1], [0.5], [0.9]]) - [1.0, -1.0, 2.0]).max() < 0.1


def test_row_h1_leaves_are_a_table_of_contexts() -> None:
    net = gg.BayesianNetwork(
        "a -> c <- b; d -> c",
        cpds={"a": [0.5, 0.5], "b": [0.4, 0.6], "d": [0.5, 0.5],
              "c": [[[[0.9, 0.1], [0.9, 0.1]], [[0.9, 0.1], [0.9, 0.1]]],
                    [[[0.2, 0.8], [0.2, 0.8]], [[0.6, 0.4], [0.6, 0.4]]]]},
    )  # fmt: skip
    assert net.parents("c") == ("a", "b", "d")
    frame = net.sample(6000, random_state=0)
    tree = gg.conditionals.TreeTable.fit("c", tuple(net.var(name) for name in "abd"), frame)
    assert tree.n_parameters == 3  # a decides; b only where a holds; d never
    np.testing.assert_allclose(tree.table(), net.conditional("c").table(), atol=0.03)
    parts = [net.conditional(name) for name in "abd"]
    made = gg.BayesianNetwork(cpds=[*parts, tree])
    assert made.query("a", {"c": "yes"} if "yes" in made.states("c") else {"c": made.states("c")[1]}).exact


@pytest.mark.parametrize("seed", range(5))
def test_tables_of_contexts_are_the_trees_they_come_from(seed: int, tmp_path: Any) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "u": rng.choice(list("abcd"), 500), "v": rng.choice(list("xyz"), 500), "w": rng.choice(["no", "yes"], 500),
    })  # fmt: skip
    p = rng.random((4, 3, 2))
    at = [frame["u"].map("abcd".index), frame["v"].map("xyz".index), (frame["w"] == "yes").astype(int)]
    frame["t"] = np.where(rng.random(500) < p[tuple(at)], "up", "down")
    tree = gg.conditionals.TreeTable.fit("t", ("u", "v", "w"), frame, rule="none", min_samples_leaf=1, pseudo_count=0.0)
    shares = frame.assign(up=frame["t"] == "up").groupby(["u", "v", "w"])["up"].mean()
    for (u, v, w), share in shares.items():
        at = ["abcd".index(u), "xyz".index(v), ["no", "yes"].index(w)]
        assert tree.prob_at([*at, 1]) == pytest.approx(share, abs=1e-12)
    np.testing.assert_allclose(tree.table().sum(axis=-1), 1.0)
    parts = [gg.Table(var, (), np.full(var.size, 1.0 / var.size)) for var in tree.parents]
    gg.write(gg.BayesianNetwork(cpds=[*parts, tree]), tmp_path / "net.json")
    np.testing.assert_array_equal(gg.read(tmp_path / "net.json").conditional("t").table(), tree.table())


def test_row_h1_forests_stand_on_arrows() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=600)})
    frame["y"] = np.where(np.abs(frame["a"]) + 0.2 * rng.normal(size=600) > 1.0, "far", "near")
    frame["w"] = frame["a"] ** 2 + 0.1 * rng.normal(size=600)
    label = gg.conditionals.Predictor.fit(
        "y", ("a",), RandomForestClassifier(20, min_samples_leaf=5, random_state=0), frame
    )
    number = gg.conditionals.Predictor.fit(
        "w", ("a",), RandomForestRegressor(20, min_samples_leaf=5, random_state=0), frame
    )
    net = gg.BayesianNetwork(cpds=[gg.LinearGaussian("a"), label, number])
    far = net.query("y", {"w": 3.0})["y"].prob("far")
    assert far > 0.9 > 0.1 > net.query("y", {"w": 0.05})["y"].prob("far")
    tree = gg.conditionals.Predictor.fit("y", ("a",), PrunedTree(), frame)
    assert gg.BayesianNetwork(cpds=[gg.LinearGaussian("a"), tree]).query("y", {"a": 2.0})["y"].prob("far") > 0.9


def test_bad_input_is_named() -> None:
    X, y = noisy(60)
    with pytest.raises(GramGraphError, match="one class"):
        PrunedTree().fit(X, np.zeros(60))
    with pytest.raises(GramGraphError, match="rule"):
        PrunedTree(rule="two_se").fit(X, y)
    with pytest.raises(GramGraphError, match="real-valued"):
        gg.conditionals.TreeTable.fit("t", "x", {"t": ["a", "b"], "x": [0.5, 1.5]})
    with pytest.raises(GramGraphError, match="no column"):
        gg.conditionals.TreeTable.fit("t", "u", {"t": ["a", "b"]})
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    assert PrunedTree().fit(gaps, y).predict_proba(gaps).shape == (60, 2)


def test_pictures_of_trees() -> None:
    pytest.importorskip("matplotlib")
    X, y = noisy()
    model = PrunedTree().fit(X, y)
    ax = gg.plot.plot_tree(model, feature_names=["one", "two", "three", "four"])
    shown = " ".join(text.get_text() for text in ax.texts)
    assert "one ≤" in shown and "yes" in shown and len(ax.texts) == 2 * (2 * model.n_leaves_ - 1) - 1
    assert len(gg.plot.plot_tree(PrunedTreeRegressor(max_depth=1).fit(X, X[:, 0])).texts) == 5
    with pytest.raises(GramGraphError, match="no fitted decision tree"):
        gg.plot.plot_tree(PrunedTree())


def test_reliability_of_a_classifier_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < p
    ax = gg.plot.plot_reliability(p, y, bins=8)
    line = ax.containers[0].lines[0]
    said, happened = line.get_data()
    assert len(said) == 8 and np.abs(said - happened).max() < 0.08 and ax.get_xlabel() == "said"
    with pytest.raises(GramGraphError, match="True or False"):
        gg.plot.plot_reliability(p, y[:5])
