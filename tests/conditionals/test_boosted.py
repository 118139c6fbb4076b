"""Boosted arrows: tables, densities, files, trees of other libraries, and answers in networks."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.conditionals import from_fields
from gramgraph.exceptions import ModelError, VariableError


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 1500
    d = rng.choice(["a", "b", "c"], n)
    x = rng.normal(size=n) + (d == "b")
    y = np.where((np.abs(x) > 1) ^ (d == "c"), "far", "near")
    y = np.where(rng.random(n) < 0.1, rng.choice(["far", "near"], n), y)
    z = np.sin(2 * x) + 0.2 * rng.normal(size=n)
    return pd.DataFrame({"d": d, "x": x, "y": y, "z": z})


def test_discrete_parents_make_a_table(frame):
    arrow = gg.Boosted(n_estimators=200, min_samples_leaf=1).fit("y", ("d",), frame)
    shares = pd.crosstab(frame["d"], frame["y"], normalize="index").to_numpy()
    np.testing.assert_allclose(arrow.table(), shares, atol=0.01)
    prior = gg.BayesianNetwork("d{a|b|c}", cpds={"d": [0.2, 0.3, 0.5]}).conditional("d")
    net = gg.BayesianNetwork(cpds=[gg.Table(arrow.parents[0], (), prior.table()), arrow])
    answer = net.query("y")
    assert answer.exact
    np.testing.assert_allclose(answer["y"].probabilities, np.array([0.2, 0.3, 0.5]) @ arrow.table(), atol=1e-12)


def test_real_parents(frame):
    arrow = gg.Boosted().fit("y", ("x", "d"), frame)
    values = {arrow.parents[0]: np.array([[0.0], [2.0], [0.0]]), arrow.parents[1]: np.array([0, 0, 2])}
    assert (arrow.probabilities(values, 3)[:, 0] > 0.5).tolist() == [False, True, True]
    assert len(arrow.breakpoints("x")) > 3
    number = gg.Boosted().fit("z", "x", frame)
    assert 0.18 < number.noise < 0.25


def test_fields_come_back_bit_for_bit(frame, tmp_path):
    arrow = gg.Boosted(n_estimators=30).fit("y", ("x", "d"), frame)
    names = {var.name: var for var in arrow.scope}
    again = from_fields(json.loads(json.dumps(arrow.to_fields())), names)
    assert again.equals(arrow)
    x, d = arrow.parents
    net = gg.BayesianNetwork(cpds=[gg.Table(d, (), [0.3, 0.3, 0.4]), gg.LinearGaussian(x), arrow])
    gg.write(net, tmp_path / "net.json")
    read = gg.read(tmp_path / "net.json")
    assert read.conditional("y").equals(arrow)
    point = {"d": "b", "x": 0.3, "y": "far"}
    assert read.joint_log_prob(point) == net.joint_log_prob(point)


def test_networks_with_boosted_arrows_answer(frame):
    arrow = gg.Boosted(n_estimators=30).fit("y", ("x", "d"), frame)
    x, d = arrow.parents
    net = gg.BayesianNetwork(cpds=[gg.Table(d, (), [0.3, 0.3, 0.4]), gg.LinearGaussian(x), arrow])
    seen = net.query("y", {"x": 0.2})  # real parents are observed: exact
    assert seen.exact
    table = arrow.probabilities({x: np.full((3, 1), 0.2), d: np.arange(3)}, 3)
    np.testing.assert_allclose(seen["y"].probabilities, [0.3, 0.3, 0.4] @ table, atol=1e-12)
    rng = np.random.default_rng(0)
    points, codes = rng.normal(size=(200_000, 1)), rng.choice(3, p=[0.3, 0.3, 0.4], size=200_000)
    p = arrow.probabilities({x: points, d: codes}, 200_000)
    wanted = np.bincount(codes, weights=p[:, 0]) / p[:, 0].sum()  # p(d | y = far)
    answer = net.query("d", {"y": "far"}, random_state=0)
    np.testing.assert_allclose(answer["d"].probabilities, wanted, atol=0.03)


def test_trees_of_scikit_learn_and_of_our_own():
    from sklearn.datasets import load_iris
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    X, y = load_iris(return_X_y=True)
    for model in (HistGradientBoostingClassifier(max_iter=5), GradientBoostingClassifier(n_estimators=5)):
        for target in (y, y == 1):
            model.fit(X, target)
            np.testing.assert_allclose(gg.Boosted.of(model).predict_proba(X), model.predict_proba(X), atol=1e-12)
    for model in (HistGradientBoostingRegressor(max_iter=5), RandomForestRegressor(5)):
        model.fit(X[:, :3], X[:, 3])
        np.testing.assert_allclose(gg.Boosted.of(model).predict(X[:, :3]), model.predict(X[:, :3]), atol=1e-12)
    for kind in (gg.AdaBoostClassifier, gg.LogitBoostClassifier, gg.GentleBoostClassifier):
        model = kind(5).fit(X, y == 1)
        np.testing.assert_allclose(gg.Boosted.of(model).predict_proba(X), model.predict_proba(X), atol=1e-12)
    with pytest.raises(ModelError, match="Predictor"):
        gg.Boosted.of(RandomForestClassifier(3).fit(X, y))


def test_splits_between_gaps_and_the_rest(rng):
    """Their threshold is infinite: every number goes to the left."""
    from sklearn.ensemble import RandomForestRegressor

    X = rng.normal(size=(80, 2))
    X[rng.random(X.shape) < 0.3] = np.nan
    model = RandomForestRegressor(4, random_state=0).fit(X, np.isnan(X[:, 0]) + 0.5 * np.isnan(X[:, 1]))
    assert any(np.isinf(tree.tree_.threshold).any() for tree in model.estimators_)
    np.testing.assert_allclose(gg.Boosted.of(model).predict(X), model.predict(X), atol=1e-12)


def xgboost_model(tree, base="[5E-1]", objective="reg:squarederror"):
    """What XGBoost saves, with one tree of a split at the root."""
    split = {"left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [1, 0, 0]}
    return {
        "learner": {
            "objective": {"name": objective},
            "learner_model_param": {"base_score": base, "num_class": "0", "num_feature": "2"},
            "gradient_booster": {"name": "gbtree", "model": {"trees": [split | tree], "tree_info": [0]}},
        }
    }


def test_the_log_odds_that_xgboost_begins_with():
    """−log(1/p − 1), all in singles but for the logarithm: what XGBoost 3.2 answers for p = 0.3."""
    tree = {"split_conditions": [0.0, 0.0, 0.0], "default_left": [0, 0, 0]}
    found = gg.Boosted.of(xgboost_model(tree, "[3E-1]", "binary:logistic")).predict([[0.0, 0.0]])
    assert np.float32(found[0]) == np.float32(-0.84729785) != np.float32(-0.8472978)


def test_linear_leaves_are_refused():
    leaf = {"leaf_value": 1.0, "leaf_const": 0.5, "leaf_features": [0], "leaf_coeff": [2.0]}
    dump = {"tree_info": [{"tree_structure": leaf}], "max_feature_idx": 1, "objective": "regression"}
    with pytest.raises(ModelError, match="linear_tree"):
        gg.Boosted.of(dump)
    assert gg.Boosted.of(dump | {"tree_info": [{"tree_structure": {"leaf_value": 1.0}}]}).predict([[0.0, 0.0]]) == 1.0


def test_lightgbm_sends_gaps_and_categories_beyond_a_set_to_the_right():
    split = {
        "split_feature": 0, "decision_type": "==", "threshold": "0||2", "missing_type": "None", "default_left": False,
        "left_child": {"leaf_value": 1.0}, "right_child": {"leaf_value": -1.0},
    }  # fmt: skip
    dump = {"tree_info": [{"tree_structure": split}], "max_feature_idx": 0, "objective": "regression"}
    found = gg.Boosted.of(dump).predict([[0.0], [1.0], [2.0], [3.0], [50.0], [np.nan]])
    assert found.tolist() == [1.0, -1.0, 1.0, -1.0, -1.0, -1.0]


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_trees_of_other_packages(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    module = importlib.import_module(package)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0]) > 0.2
    if package == "lightgbm":
        model = module.LGBMClassifier(n_estimators=8, verbose=-1).fit(X, y)
        dump = json.dumps(model.booster_.dump_model())
        for found in (gg.Boosted.of(model), gg.Boosted.of(dump)):
            np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-12)
    else:
        model = module.XGBClassifier(n_estimators=8).fit(X, y)
        found = gg.Boosted.of(model)
        np.testing.assert_allclose(found.predict(X), model.predict(X, output_margin=True), atol=1e-12)
        model = module.XGBClassifier(n_estimators=8, base_score=0.3).fit(X, y)
        found = gg.Boosted.of(model)
        np.testing.assert_allclose(found.predict(X), model.predict(X, output_margin=True), atol=1e-12)


def test_bad_input(frame):
    with pytest.raises(VariableError, match="no column"):
        gg.Boosted().fit("q", ("x",), frame)
    with pytest.raises(ModelError, match="not learned"):
        gg.Boosted().predict([[1.0]])
    with pytest.raises(ModelError, match="JSON"):
        gg.Boosted.of("{broken")
    with pytest.raises(ModelError, match="neither"):
        gg.Boosted.of({"a": 1})
    arrow = gg.Boosted(n_estimators=3).fit("y", ("x", "d"), frame)
    with pytest.raises(ModelError, match="features"):
        arrow.on(arrow.child, arrow.parents[:1])
    broken = arrow.to_fields()
    broken["trees"]["left"][0] = 0  # a walk that would never end
    with pytest.raises(ModelError, match="child stands before"):
        from_fields(broken, {var.name: var for var in arrow.scope})
