"""The estimator: scikit-learn's contract, regression, distributions, large n, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramgraph as gg
from gramgraph.kernels import RBF, Delta

RNG = np.random.default_rng


CONTRACT = [
    gg.ConditionalEmbedding(),
    gg.ConditionalEmbedding(approx="nystrom", n_components=20, random_state=0),
]
#: Further options of the same classes, for `make test-all`.
OPTIONS = [
    gg.ConditionalEmbedding(reg=1e-3, centered=False),
    gg.ConditionalEmbedding(RBF(5.0), approx="features", n_components=50, random_state=0),
]


@parametrize_with_checks(CONTRACT)
def test_contract(estimator, check):
    with np.errstate(all="ignore"):
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OPTIONS)
def test_contract_with_options(estimator, check):
    with np.errstate(all="ignore"):
        check(estimator)


def sine(n, seed=0):
    rng = RNG(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.3 * (1 + (X[:, 0] > 0)) * rng.normal(size=n)


def test_conditional_distribution():
    X, y = sine(2000)
    model = gg.ConditionalEmbedding().fit(X, y)
    new = np.array([[-1.5], [0.8], [1.5]])
    truth, spread = np.sin(2 * new[:, 0]), 0.3 * (1 + (new[:, 0] > 0))
    assert np.abs(model.predict(new) - truth).max() < 0.12
    second = model.predict_expectation(lambda v: v**2, new)
    assert np.allclose(np.sqrt(second - model.predict(new) ** 2), spread, atol=0.12)
    assert np.allclose(model.predict_expectation(lambda v: v < truth[1], new[[1]]), 0.5, atol=0.08)
    q = model.predict_quantile([0.1, 0.5, 0.9], new)
    assert q.shape == (3, 3) and (np.diff(q, axis=1) > 0).all()
    assert np.allclose(q[:, 1], truth, atol=0.25)
    assert np.allclose(q[:, 2] - q[:, 0], 2 * 1.2816 * spread, atol=0.35)
    assert np.allclose(model.weights(new).sum(1), 1.0)
    belief = model.embedding([[1.5]])
    assert belief.mean()[0] == pytest.approx(model.predict([[1.5]])[0], abs=1e-9)


def test_approximations_come_close_to_the_exact_form():
    X, y = sine(900)
    new = np.linspace(-3, 3, 50)[:, None]
    exact = gg.ConditionalEmbedding(RBF(0.5), reg=1e-3, approx="exact").fit(X, y).predict(new)
    for approx, tol in (("auto", 1e-5), ("nystrom", 1e-3), ("features", 0.15)):
        found = gg.ConditionalEmbedding(RBF(0.5), reg=1e-3, approx=approx, random_state=0).fit(X, y)
        assert np.abs(found.predict(new) - exact).max() < tol


def test_large_samples():
    X, y = sine(30_000)
    model = gg.ConditionalEmbedding(approx="nystrom", n_components=100, random_state=0).fit(X, y)
    new = np.linspace(-2.8, 2.8, 50)[:, None]
    assert np.abs(model.predict(new) - np.sin(2 * new[:, 0])).max() < 0.07


def test_loo_chooses_bandwidth_and_penalty():
    X, y = sine(300)
    model = gg.ConditionalEmbedding().fit(X, y)
    fixed = [gg.ConditionalEmbedding(RBF(s)).fit(X, y).loo_error_ for s in (0.02, 50.0)]
    assert model.loo_error_ < min(fixed)
    assert 0.0 < model.reg_ < 1.0
    assert gg.ConditionalEmbedding(reg=0.01).fit(X, y).loo_error_ is None


def test_scale_of_columns_does_not_matter():
    rng = RNG(2)
    X = rng.normal(size=(200, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    a = gg.ConditionalEmbedding().fit(X, y).predict(X[:5])
    b = gg.ConditionalEmbedding().fit(X * [1e4, 1e-3], y).predict(X[:5] * [1e4, 1e-3])
    assert np.allclose(a, b, atol=1e-6)


def test_labels_on_either_side():
    x, y = ["a", "a", "b", "b"] * 5, ["u", "v", "v", "v"] * 5
    model = gg.ConditionalEmbedding(Delta(), Delta(), reg=0.0).fit(x, y)
    assert np.allclose(model.predict_expectation(lambda v: np.asarray(v) == "u", ["a", "b"]), [0.5, 0.0])
    with pytest.raises(gg.ModelError, match="predict averages numbers"):
        model.predict(["a"])
    numbers = gg.ConditionalEmbedding(domain_x="category", reg=0.0).fit(x, np.arange(20.0))
    assert np.allclose(numbers.predict(["a"]), np.arange(20.0)[np.array(x) == "a"].mean())
    assert set(gg.ConditionalEmbedding().fit(np.arange(20.0)[:, None], y).embedding([[3.0]]).points) == {"u", "v"}


def test_frames_with_columns_of_several_kinds():
    import pandas as pd

    rng = RNG(3)
    frame = pd.DataFrame({"kind": ["a", "b"] * 50, "x": rng.normal(size=100)})
    y = frame["x"].to_numpy() + 3.0 * (frame["kind"] == "b")
    kernel = Delta().on("kind") * RBF(1.0).on("x")
    model = gg.ConditionalEmbedding(kernel).fit(frame, y)
    assert np.abs(model.predict(frame) - y).max() < 0.7


def test_grid_search_reaches_into_the_kernel():
    X, y = sine(120)
    search = GridSearchCV(gg.ConditionalEmbedding(RBF(1.0)), {"kernel_x__length_scale": [0.5, 40.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel_x__length_scale": 0.5}


def test_constant_columns_and_duplicates_give_no_nan():
    X, y = np.ones((30, 2)), np.arange(30.0)
    assert np.allclose(gg.ConditionalEmbedding().fit(X, y).predict(X[:2]), y.mean())
    assert np.allclose(gg.ConditionalEmbedding().fit(y[:, None], np.ones(30)).predict([[3.0], [1e9]]), 1.0)
    X = np.repeat(np.arange(10.0), 5)[:, None]
    assert np.isfinite(gg.ConditionalEmbedding().fit(X, X[:, 0] ** 2).predict(X)).all()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: gg.ConditionalEmbedding(approx="nystroem"), "Did you mean 'nystrom'"),
        (lambda: gg.ConditionalEmbedding(reg="cv"), "'loo'"),
        (lambda: gg.ConditionalEmbedding(domain_y="cirle"), "Did you mean 'circle'"),
        (lambda: gg.ConditionalEmbedding(kernel_x="rbf"), "gg.kernels.RBF"),
    ],
)
def test_bad_options_are_refused_in_words(make, words):
    with pytest.raises(ValueError, match=words):
        make().fit(*sine(20))


def test_bad_data_and_questions():
    X, y = sine(20)
    model = gg.ConditionalEmbedding(reg=0.1).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        gg.ConditionalEmbedding().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent"):
        gg.ConditionalEmbedding().fit(X, y[:-1])
    with pytest.raises(gg.OptionError, match="function"):
        model.predict_expectation("y", X)
    with pytest.raises(gg.ModelError, match="one value or row"):
        model.predict_expectation(lambda v: 1.0, X)
