"""Boosting against the textbook's pseudo-code, written down in a few lines each, and against scikit-learn."""

from __future__ import annotations

import bz2
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file

import gramgraph as gg
from gramgraph.estimators import (
    AdaBoostClassifier,
    BasisRegression,
    GentleBoostClassifier,
    LogitBoostClassifier,
)
from gramgraph.exceptions import ModelError, OptionError


def stumps(X):
    """Every (column, threshold) between neighboring values."""
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for a, b in pairwise(values.tolist()):
            yield j, (a + b) / 2


def reference_ada(X, t, rounds):
    """AdaBoost as the text writes it; the stump (feature, θ, sign) with the smallest weighted error."""
    v, F = np.full(len(t), 1 / len(t)), np.zeros(len(t))
    made = []
    for _ in range(rounds):
        best = min(
            ((v * (np.where(X[:, j] > th, s, -s) != t)).sum() / v.sum(), j, th, s)
            for j, th in stumps(X)
            for s in (-1, 1)
        )
        err, j, th, s = best
        phi = np.where(X[:, j] > th, s, -s)
        alpha = np.log((1 - err) / err)
        v = v * np.exp(alpha * (phi != t))
        F += alpha * phi
        made.append((err, alpha, F.copy()))
    return made


def least_squares_stump(X, z, v):
    best = (np.inf, None)
    for j, th in stumps(X):
        right = X[:, j] > th
        phi = np.where(right, np.average(z[right], weights=v[right]), np.average(z[~right], weights=v[~right]))
        loss = (v * (z - phi) ** 2).sum()
        if loss < best[0] - 1e-13:
            best = (loss, phi)
    return best[1]


def reference_logit(X, t, rounds):
    y, pi, made = np.zeros(len(t)), np.full(len(t), 0.5), []
    for _ in range(rounds):
        v = pi * (1 - pi)
        z = np.clip((t - pi) / v, -4, 4)
        y = y + least_squares_stump(X, z, v) / 2
        pi = 1 / (1 + np.exp(-2 * y))
        made.append(2 * y)
    return made


def reference_gentle(X, t, rounds):
    w, F, made = np.full(len(t), 1 / len(t)), np.zeros(len(t)), []
    for _ in range(rounds):
        f = least_squares_stump(X, t, w)
        F = F + f
        w = w * np.exp(-t * f)
        w /= w.sum()
        made.append(F)
    return made


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4)).round(2)
    t = np.where(X[:, 0] + X[:, 1] ** 2 + 0.8 * rng.normal(size=60) > 0.5, 1, -1)
    return X, t


def test_row_h2_ada_boost_is_the_pseudo_code_step_by_step(noisy):
    X, t = noisy
    model = AdaBoostClassifier(12, criterion="error").fit(X, t)
    wanted = reference_ada(X, t, 12)
    for found, (_, _, F) in zip(model.staged_decision_function(X), wanted, strict=True):
        np.testing.assert_allclose(found, F, atol=1e-10)
    np.testing.assert_allclose(model.estimator_errors_, [err for err, _, _ in wanted], atol=1e-12)
    np.testing.assert_allclose(model.estimator_weights_, [alpha for _, alpha, _ in wanted], atol=1e-10)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-wanted[-1][2])), atol=1e-12)


def test_row_h2_logit_boost_is_the_pseudo_code_step_by_step(noisy):
    X, t = noisy
    model = LogitBoostClassifier(12).fit(X, t)
    for found, F in zip(model.staged_decision_function(X), reference_logit(X, t > 0, 12), strict=True):
        np.testing.assert_allclose(found, F, atol=1e-9)


def test_row_h2_gentle_boost_is_the_pseudo_code_step_by_step(noisy):
    X, t = noisy
    model = GentleBoostClassifier(12).fit(X, t)
    for found, F in zip(model.staged_decision_function(X), reference_gentle(X, t, 12), strict=True):
        np.testing.assert_allclose(found, F, atol=1e-9)


# -------------------------------------------------------------------------------------------------- scikit-learn


def sets(shared_data: Path, name: str):
    kernel = shared_data / "kernel"
    if name == "spam":
        table = pd.read_csv(kernel / "esl" / "spam.csv.gz")
        y = table.iloc[:, -1].astype(str).isin(["1", "spam"])
        return table.iloc[:, :57].to_numpy(float), y.to_numpy()
    if name == "breast cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "pima":
        table = pd.read_csv(kernel / "pimatr.csv")
        return table.iloc[:, 1:-1].to_numpy(float), table.iloc[:, -1].to_numpy()
    if name == "a9a":
        with bz2.open(kernel / "libsvm" / "a9a.bz2") as stream:
            X, y = load_svmlight_file(stream)
        return X[:2000].toarray(), y[:2000]
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (3, 8))
    return X[kept], y[kept]


@pytest.mark.parametrize("name", ["spam", "breast cancer", "pima", "a9a", "digits"])
def test_decisions_are_those_of_scikit_learn(shared_data, name):
    from sklearn.ensemble import AdaBoostClassifier as Peer

    X, y = sets(shared_data, name)
    rounds = 60
    ours = AdaBoostClassifier(rounds).fit(X, y)
    peer = Peer(n_estimators=rounds, random_state=0).fit(X, y)
    # Columns that mirror each other give stumps of equal gain: which of them is taken does not change a decision.
    np.testing.assert_allclose(ours.estimator_errors_, peer.estimator_errors_, atol=1e-9)
    assert (ours.predict(X) == peer.predict(X)).all()


def test_row_h2_probabilities_mean_something(shared_data):
    from sklearn.ensemble import AdaBoostClassifier as Peer
    from sklearn.metrics import log_loss

    X, y = sets(shared_data, "spam")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:3065], order[3065:]
    ours = AdaBoostClassifier(200).fit(X[train], y[train])
    found = log_loss(y[test], ours.predict_proba(X[test]))
    assert found < 0.2  # 0.55 from the peer's predict_proba at the same error
    peer = Peer(n_estimators=200, random_state=0).fit(X[train], y[train])
    assert log_loss(y[test], peer.predict_proba(X[test])) > 0.5
    assert abs((ours.predict(X[test]) != y[test]).mean() - (peer.predict(X[test]) != y[test]).mean()) < 0.003


# ------------------------------------------------------------------------------------------------- capabilities


def test_gaps_go_where_they_help():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = (x > 0).astype(int)
    gap = rng.random(300) < 0.3
    y[gap] = 1
    X = np.where(gap, np.nan, x)[:, None]
    for model in (AdaBoostClassifier(5), LogitBoostClassifier(5), GentleBoostClassifier(5)):
        model.fit(X, y)
        assert model.score(X, y) == 1.0
        assert model.predict([[np.nan], [-1.0]]).tolist() == [1, 0]
    only = np.where(gap, np.nan, 1.0)[:, None]  # the gap itself is all there is to know
    assert AdaBoostClassifier(1, criterion="error").fit(only, gap).score(only, gap) == 1.0


def test_categories_are_split_into_sets():
    rng = np.random.default_rng(1)
    labels = rng.choice(list("abcdef"), size=400)
    frame = pd.DataFrame({"letter": labels, "noise": rng.normal(size=400)})
    y = np.isin(labels, ["a", "d", "f"])
    models = [
        AdaBoostClassifier(1),
        LogitBoostClassifier(1),
        GentleBoostClassifier(1),
        LogitBoostClassifier(1, max_depth=2),
    ]
    for model in [*models, gg.GradientBoostingClassifier(1)]:
        model.fit(frame, y)
        assert model.score(frame, y) == 1.0
        assert model.feature_importances_.argmax() == 0
    unseen = pd.DataFrame({"letter": ["z", None], "noise": [0.0, 0.0]})
    assert len(models[0].predict(unseen)) == 2


@pytest.mark.parametrize("kind", [AdaBoostClassifier, LogitBoostClassifier, GentleBoostClassifier])
def test_many_classes(kind):
    X, y = load_digits(return_X_y=True)
    model = kind(40).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > (0.6 if kind is AdaBoostClassifier else 0.88)
    p = model.predict_proba(X[1::2])
    assert p.shape == (len(X[1::2]), 10) and np.allclose(p.sum(axis=1), 1)
    *_, last = model.staged_predict(X[1::2])
    assert (last == model.predict(X[1::2])).all()
    assert len(list(model.staged_decision_function(X[:3]))) == 40


def test_samme_is_scikit_learns():
    from sklearn.ensemble import AdaBoostClassifier as Peer

    X, y = load_digits(n_class=4, return_X_y=True)
    X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape)  # no ties
    ours, peer = AdaBoostClassifier(25).fit(X, y), Peer(n_estimators=25, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.estimator_weights_, peer.estimator_weights_, rtol=1e-6)
    assert (ours.predict(X) == peer.predict(X)).all()


def test_other_weak_learners(noisy):
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    X, t = noisy
    trees = AdaBoostClassifier(10, estimator=DecisionTreeClassifier(max_depth=2)).fit(X, t)
    assert trees.score(X, t) > 0.9 and len(list(trees.staged_predict(X))) == 10
    exact = LogitBoostClassifier(8).fit(X, t)
    by_peer = LogitBoostClassifier(8, estimator=DecisionTreeRegressor(max_depth=1)).fit(X, t)
    np.testing.assert_allclose(exact.decision_function(X), by_peer.decision_function(X), atol=1e-6)
    curves = GentleBoostClassifier(10, estimator=BasisRegression("quadratic")).fit(X, t)
    assert curves.score(X, t) > 0.8
    with pytest.raises(OptionError, match="sample_weight"):
        AdaBoostClassifier(estimator=KNeighborsClassifier()).fit(X, t)


def test_the_ends_of_rounds():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    perfect = AdaBoostClassifier(20).fit(X, [0, 0, 1, 1])
    assert len(perfect.estimator_weights_) == 1 and perfect.estimator_errors_.tolist() == [0.0]
    assert perfect.estimator_weights_[0] == pytest.approx(np.log(7))  # half a wrong case of four
    idle = AdaBoostClassifier(20).fit(np.zeros((4, 1)), [0, 1, 0, 1])  # no column tells anything
    assert len(idle.estimator_weights_) == 0
    assert idle.predict_proba(X).tolist() == [[0.5, 0.5]] * 4


def test_early_stopping_and_progress():
    X, y = load_breast_cancer(return_X_y=True)
    seen = []
    for kind in (AdaBoostClassifier, LogitBoostClassifier, GentleBoostClassifier, gg.GradientBoostingClassifier):
        model = kind(400, n_iter_no_change=5, random_state=0, progress=lambda done, total: seen.append((done, total)))
        model.fit(X, y)
        assert model.ensemble_.n_trees < 400
        assert model.score(X, y) > 0.9
    assert seen[0] == (1, 400)


def test_calibration_helps_where_scores_are_bold(shared_data):
    from sklearn.metrics import log_loss

    X, y = sets(shared_data, "pima")
    bold = AdaBoostClassifier(300, criterion="error").fit(X[:120], y[:120])
    for kind in ("sigmoid", "isotonic"):
        tame = AdaBoostClassifier(300, criterion="error", calibration=kind).fit(X[:120], y[:120])
        assert log_loss(y[120:], tame.predict_proba(X[120:])) < log_loss(y[120:], bold.predict_proba(X[120:]))


def test_weights_count_rows():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    w = np.random.default_rng(0).integers(0, 4, 200)
    for kind in (AdaBoostClassifier, LogitBoostClassifier, GentleBoostClassifier):
        a = kind(10).fit(X, y, sample_weight=w)
        b = kind(10).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-8)


def test_partial_dependence_matches_scikit_learn():
    from sklearn.inspection import partial_dependence

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = LogitBoostClassifier(20).fit(X, y)
    wanted = partial_dependence(model, X, ["mean radius"], grid_resolution=5, response_method="predict_proba")
    ours = model.partial_dependence(X, "mean radius", grid=wanted["grid_values"][0])
    np.testing.assert_allclose(ours["1"], wanted["average"][0], atol=1e-12)


@pytest.mark.parametrize("kind", [AdaBoostClassifier, LogitBoostClassifier, GentleBoostClassifier])
def test_saved_and_read_back(tmp_path, kind):
    X, y = load_breast_cancer(return_X_y=True)
    model = kind(10).fit(X, y)
    gg.write(model, tmp_path / "model.gg")
    again = gg.read(tmp_path / "model.gg")
    assert (again.decision_function(X) == model.decision_function(X)).all()


def test_bad_input():
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    with pytest.raises(ModelError, match="one class only"):
        AdaBoostClassifier().fit(X, np.zeros(4))
    with pytest.raises(OptionError, match="criterion"):
        AdaBoostClassifier(criterion="giny").fit(X, y)
    with pytest.raises(OptionError, match="n_estimators"):
        LogitBoostClassifier(0).fit(X, y)
    with pytest.raises(ModelError, match="NaN"):
        GentleBoostClassifier().fit(X, [0.0, 1.0, np.nan, 1.0])
    with pytest.raises(OptionError, match="not a column"):
        AdaBoostClassifier(categorical_features=[7]).fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        AdaBoostClassifier().fit(np.array([[np.inf], [1.0]]), [0, 1])
