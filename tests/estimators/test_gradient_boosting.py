"""Gradient boosting: against a plain reference, against scikit-learn, and over every loss."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import gramgraph as gg
from gramgraph import losses
from gramgraph.estimators import GradientBoostingClassifier, GradientBoostingRegressor
from gramgraph.exceptions import ModelError, OptionError


def reference_stump_boost(X, t, rounds, rate):
    """f ← f + ν φ for the squared loss, φ the best stump for the residuals, as the textbook writes it."""
    f = np.full(len(t), t.mean())
    for _ in range(rounds):
        r = t - f
        best, step = np.inf, None
        for j in range(X.shape[1]):
            values = np.unique(X[:, j])
            for th in (values[:-1] + values[1:]) / 2:
                right = X[:, j] > th
                phi = np.where(right, r[right].mean(), r[~right].mean())
                loss = ((r - phi) ** 2).sum()
                if loss < best - 1e-10:
                    best, step = loss, phi
        f = f + rate * step
        yield f


def test_row_h2_the_squared_loss_is_the_pseudo_code_step_by_step():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).round(1)
    t = X[:, 0] ** 2 + X[:, 1] + 0.2 * rng.normal(size=80)
    model = GradientBoostingRegressor(10, learning_rate=0.3, max_depth=1, min_samples_leaf=1).fit(X, t)
    for found, wanted in zip(model.staged_predict(X), reference_stump_boost(X, t, 10, 0.3), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_trees_are_those_of_histogram_boosting():
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, size=(3000, 6)).astype(float)  # few values: bins are the same
    X[rng.random(X.shape) < 0.05] = np.nan
    logits = np.nan_to_num(X[:, 0]) / 10 - 2 + np.sin(np.nan_to_num(X[:, 1])) - np.isnan(X[:, 2])
    y = (rng.random(3000) < 1 / (1 + np.exp(-logits))).astype(int)
    peer = HistGradientBoostingClassifier(
        max_iter=20, max_depth=3, min_samples_leaf=20, early_stopping=False, validation_fraction=None
    ).fit(X, y)
    ours = GradientBoostingClassifier(20, max_depth=3, min_samples_leaf=20).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)  # the peer adds singles


@pytest.mark.parametrize(
    "loss", [losses.Squared(), losses.Huber(20.0), losses.EpsilonInsensitive(5.0), losses.Quantile(0.5)]
)
def test_every_loss_of_numbers_falls(loss):
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(60, loss=loss).fit(X, y)
    path = [loss(y, f).mean() for f in model.staged_predict(X)]
    assert (np.diff(path) < 1e-9 * path[0]).all()  # each step is the best constant of its leaf: never uphill
    assert path[-1] < 0.6 * loss(y, loss.best_constant(y)).mean()


def test_quantiles_cover():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 3, size=(4000, 1))
    y = np.sin(X[:, 0]) + (0.2 + 0.3 * X[:, 0]) * rng.normal(size=4000)
    for alpha in (0.1, 0.9):
        model = GradientBoostingRegressor(80, loss=losses.Quantile(alpha), min_samples_leaf=50).fit(X[:2000], y[:2000])
        assert abs((y[2000:] <= model.predict(X[2000:])).mean() - alpha) < 0.04


@pytest.mark.parametrize("loss", ["log", "exponential", "hinge"])
def test_every_loss_of_classes_learns(loss):
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(60, loss=loss, min_samples_leaf=5).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    if loss == "hinge":
        with pytest.raises(ModelError, match="not probabilities"):
            model.predict_proba(X)
        calibrated = GradientBoostingClassifier(30, loss=loss, min_samples_leaf=5, calibration="sigmoid").fit(
            X[::2], y[::2]
        )
        assert ((calibrated.predict_proba(X[1::2])[:, 1] > 0.5) == y[1::2]).mean() > 0.9


@pytest.mark.parametrize("loss", ["log", "exponential"])
def test_many_classes(loss):
    X, y = load_digits(return_X_y=True)
    model = GradientBoostingClassifier(25, loss=loss, learning_rate=0.3).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93
    p = model.predict_proba(X[1::2])
    assert np.allclose(p.sum(axis=1), 1)
    *_, last = model.staged_decision_function(X[1::2])
    np.testing.assert_allclose(last, model.decision_function(X[1::2]))


def test_samples_of_rows_and_columns():
    X, y = load_breast_cancer(return_X_y=True)
    options = {"subsample": 0.5, "max_features": 0.3, "random_state": 0}
    a, b = (GradientBoostingClassifier(40, **options).fit(X[::2], y[::2]) for _ in range(2))
    assert (a.decision_function(X) == b.decision_function(X)).all()
    assert a.score(X[1::2], y[1::2]) > 0.93


def test_other_learners_and_files(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    lines = GradientBoostingRegressor(50, estimator=gg.estimators.BasisRegression(), learning_rate=0.5).fit(X, y)
    assert lines.score(X, y) > 0.4
    model = GradientBoostingRegressor(20, loss=losses.Huber(10.0)).fit(X, y)
    gg.write(model, tmp_path / "model.gg")
    assert (gg.read(tmp_path / "model.gg").predict(X) == model.predict(X)).all()


def test_bad_options():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(OptionError, match="Did you mean 'huber'"):
        GradientBoostingRegressor(loss="hubert").fit(X, y)
    with pytest.raises(OptionError, match="not a loss of numbers"):
        GradientBoostingRegressor(loss=losses.Log()).fit(X, y)
    with pytest.raises(ModelError, match="no gradient"):
        GradientBoostingClassifier(loss=losses.ZeroOne()).fit(X, y > 100)
    with pytest.raises(OptionError, match="subsample"):
        GradientBoostingRegressor(subsample=0.0).fit(X, y)
    with pytest.raises(ValueError, match="one number per row"):
        GradientBoostingRegressor().fit(X, np.stack([y, y], axis=1))
