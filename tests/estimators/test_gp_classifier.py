from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramgraph as gg
from gramgraph import kernels
from gramgraph.estimators import GaussianProcessClassifier, GaussianProcessCounts
from gramgraph.exceptions import ModelError
from gramgraph.gp.hyper import ascend
from gramgraph.gp.latent_fit import LatentProblem, _Warm, fit_latent
from gramgraph.gp.likelihoods import GammaSizes, GaussianNoise, Logistic

FREE = 1.0 * kernels.RBF(1.0)


CONTRACT = [
    GaussianProcessClassifier(),
    GaussianProcessClassifier(inference="ep", link="probit"),
    GaussianProcessCounts(),
]
#: Further options of the same classes, for `make test-all`.
OPTIONS = [
    GaussianProcessClassifier(FREE),
    GaussianProcessClassifier(multi_class="one_vs_one"),
    GaussianProcessClassifier(multi_class="softmax"),
    GaussianProcessCounts(FREE, likelihood="negative_binomial"),
]


@parametrize_with_checks(CONTRACT)
def test_contract(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OPTIONS)
def test_contract_with_options(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def two_classes(n=80, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = 2.0 * X[:, 0] + X[:, 1] ** 2 - 1.0
    return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(int)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    return X[order], y[order]


# --- beside scikit-learn --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_as_scikit_learn_at_fixed_parameters(seed):
    X, y = two_classes(60, seed)
    new = np.random.default_rng(9).normal(size=(40, 2)) * 2
    ours = GaussianProcessClassifier(3.0 * kernels.RBF([0.8, 1.5]), optimizer=None).fit(X, y)
    peer = Peer(sk.ConstantKernel(3.0) * sk.RBF([0.8, 1.5]), optimizer=None).fit(X, y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-8)
    theta = ours.kernel_.theta + 0.3
    value, slope = ours.log_marginal_likelihood(theta, eval_gradient=True)
    wanted, wanted_slope = peer.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(wanted, abs=1e-8)
    assert slope == pytest.approx(wanted_slope, abs=1e-6)
    assert ours.predict(new).tolist() == peer.predict(new).tolist()
    mean, var = ours.latent_mean_and_variance(new)
    if hasattr(peer.base_estimator_, "latent_mean_and_variance"):  # scikit-learn 1.7
        base = peer.base_estimator_.latent_mean_and_variance(new)
        assert mean == pytest.approx(base[0], abs=1e-6)
        assert var == pytest.approx(base[1], abs=1e-6)
    # the peer replaces the sigmoid by five error functions; ours is exact to 1e-12
    assert ours.predict_proba(new) == pytest.approx(peer.predict_proba(new), abs=2e-3)


def test_several_classes_as_scikit_learn(iris):
    X, y = iris
    ours = GaussianProcessClassifier(optimizer=None).fit(X[:90], y[:90])
    peer = Peer(optimizer=None).fit(X[:90], y[:90])
    assert ours.predict_proba(X[90:]) == pytest.approx(peer.predict_proba(X[90:]), abs=2e-3)
    assert ours.predict(X[90:]).tolist() == peer.predict(X[90:]).tolist()
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-8)


def test_learned_parameters_are_at_least_as_good():
    for seed in range(3):
        X, y = two_classes(300, seed, 3)
        train, test = slice(0, 150), slice(150, 300)
        ours = GaussianProcessClassifier(1.0 * sk.RBF(np.ones(3))).fit(X[train], y[train])  # their kernel in ours
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = Peer(1.0 * sk.RBF(np.ones(3))).fit(X[train], y[train])
        assert ours.log_marginal_likelihood_value_ > peer.log_marginal_likelihood_value_ - 1e-3
        losses = [log_loss(y[test], model.predict_proba(X[test])) for model in (ours, peer)]
        assert losses[0] < losses[1] + 2e-3


def test_bounds_and_fixed_parameters_of_their_kernels_hold():
    X, y = two_classes(60)
    kernel = sk.ConstantKernel(2.0, "fixed") * sk.RBF(1.0, (0.9, 1.1))
    found = GaussianProcessClassifier(kernel).fit(X, y).kernel_
    assert found.variance == 2.0
    assert 0.9 - 1e-9 <= found.base.length_scale <= 1.1 + 1e-9


# --- probabilities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_averaged_and_plug_in(inference, link):
    X, y = two_classes(60)
    model = GaussianProcessClassifier(9.0 * kernels.RBF(1.0), optimizer=None, inference=inference, link=link).fit(X, y)
    new = np.array([[1.0, 0.5], [2.5, -2.0], [40.0, 40.0]])
    averaged, plugged = model.predict_proba(new), model.predict_proba(new, average=False)
    assert averaged.sum(axis=1) == pytest.approx(1.0) and plugged.sum(axis=1) == pytest.approx(1.0)
    mean, var = model.latent_mean_and_variance(new)
    assert plugged[:, 1] == pytest.approx(model.posterior_.likelihood.response(mean))
    assert averaged[2] == pytest.approx([0.5, 0.5]) and var[2] == pytest.approx(9.0)
    assert (np.abs(averaged[:2, 1] - 0.5) < np.abs(plugged[:2, 1] - 0.5)).all()
    # the average is that of the draws: 20,000 of them, standard error below 4e-3
    draws = model.sample_latent(new, 20_000, random_state=0)
    assert draws.shape == (3, 20_000)
    assert model.posterior_.likelihood.response(draws).mean(axis=1) == pytest.approx(averaged[:, 1], abs=0.018)


def test_expectation_propagation_and_laplace_agree_roughly():
    X, y = two_classes(80)
    new = np.random.default_rng(1).normal(size=(50, 2))
    p = [
        GaussianProcessClassifier(FREE, inference=how, link="probit").fit(X, y).predict_proba(new)[:, 1]
        for how in ("laplace", "ep")
    ]
    assert np.abs(p[0] - p[1]).max() < 0.15 and np.corrcoef(*p)[0, 1] > 0.98


def test_log_probabilities_are_finite_where_probabilities_vanish():
    X = np.r_[np.full((5, 1), -1.0), np.full((5, 1), 1.0)] + np.linspace(0, 0.01, 10)[:, None]
    y = np.repeat(["no", "yes"], 5)
    model = GaussianProcessClassifier(1e4 * kernels.Linear(), optimizer=None).fit(X, y)
    far = np.array([[-1e6], [0.0], [1e6]])
    for average in (True, False):
        logs = model.predict_log_proba(far, average=average)
        assert np.isfinite(logs).all()
        assert np.logaddexp.reduce(logs, axis=1) == pytest.approx(0.0, abs=1e-9)
    assert model.predict_log_proba(far, average=False)[0, 1] < -1e6
    assert model.predict(far).tolist()[::2] == ["no", "yes"]


def test_probabilities_are_calibrated_on_data_of_the_model():
    # labels drawn from the prior itself: by expectation propagation the averaged log loss beats the plug-in one
    rng = np.random.default_rng(3)
    gains = []
    for _ in range(20):
        X = rng.uniform(-3, 3, size=(120, 1))
        K = 20.0 * np.exp(-0.5 * (X - X.T) ** 2)
        f = np.linalg.cholesky(K + 1e-8 * np.eye(120)) @ rng.standard_normal(120)
        y = (rng.uniform(size=120) < 1 / (1 + np.exp(-f))).astype(int)
        model = GaussianProcessClassifier(20.0 * kernels.RBF(1.0), optimizer=None, inference="ep")
        if len(np.unique(y[:15])) < 2:
            continue
        model.fit(X[:15], y[:15])
        losses = [-model.predict_log_proba(X[15:], average=a)[np.arange(105), y[15:]].mean() for a in (True, False)]
        gains.append(losses[1] - losses[0])
    assert len(gains) > 10 and np.mean(gains) > 0.0


# --- several classes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one", "softmax"])
def test_iris(iris, multi_class):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = GaussianProcessClassifier(FREE, multi_class=multi_class).fit(X[:100], names[:100])
    p = model.predict_proba(X[100:])
    assert p.shape == (50, 3) and p.sum(axis=1) == pytest.approx(1.0)
    assert model.classes_[p.argmax(axis=1)].tolist() == model.predict(X[100:]).tolist()
    assert model.score(X[100:], names[100:]) > 0.92
    assert log_loss(names[100:], p) < 0.4
    assert np.isfinite(model.predict_log_proba(X[100:] * 100)).all()
    plugged = model.predict_proba(X[100:], average=False)
    assert plugged.sum(axis=1) == pytest.approx(1.0)
    # plugged-in probabilities are the surer ones
    assert plugged.max(axis=1).mean() > p.max(axis=1).mean()
    assert model.sample_latent(X[:4], 7).shape == (4, 3, 7)
    mean, var = model.latent_mean_and_variance(X[:4])
    assert mean.shape == var.shape == (4, 3)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one", "softmax"])
def test_evidence_of_several_classes_and_its_gradient(iris, multi_class):
    X, y = iris
    model = GaussianProcessClassifier(FREE, optimizer=None, multi_class=multi_class).fit(X[:60], y[:60])
    base = np.array([0.4, 0.2])
    sizes = (2,) if multi_class == "softmax" else (2, 6)
    for size in sizes:
        theta = np.tile(base, size // 2)
        value, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood(theta), abs=1e-9)
        h = 1e-4 * np.eye(size)
        ends = [(model.log_marginal_likelihood(theta + s), model.log_marginal_likelihood(theta - s)) for s in h]
        assert slope == pytest.approx([(a - b) / 2e-4 for a, b in ends], abs=1e-5)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood(eval_gradient=True)[0] == pytest.approx(model.log_marginal_likelihood_value_)
    with pytest.raises(ModelError, match="theta must have shape"):
        model.log_marginal_likelihood(np.zeros(5))


def test_threads_change_nothing(iris):
    X, y = iris
    one, two = (GaussianProcessClassifier(FREE, n_jobs=n).fit(X[:60], y[:60]) for n in (None, 2))
    assert one.predict_proba(X[60:]).tolist() == two.predict_proba(X[60:]).tolist()


# --- search ---------------------------------------------------------------------------------------------------------


def test_restarts_find_the_better_hill_and_repeat():
    X, y = two_classes(70, 5)
    bad = 1e-4 * kernels.RBF(1e-4)  # a plateau: nothing to climb from here
    stuck = GaussianProcessClassifier(bad).fit(X, y)
    found = [GaussianProcessClassifier(bad, n_restarts_optimizer=6, random_state=1).fit(X, y) for _ in range(2)]
    assert found[0].log_marginal_likelihood_value_ > stuck.log_marginal_likelihood_value_ + 5.0
    assert found[0].kernel_ == found[1].kernel_


def test_own_optimizer_gets_what_scikit_learn_gives():
    X, y = two_classes(50)
    seen = []

    def optimizer(objective, theta, bounds):
        value, slope = objective(theta, eval_gradient=True)
        plain = objective(theta, eval_gradient=False)
        seen.append((value, plain, slope.shape, np.shape(bounds)))
        return theta + 0.1, value

    model = GaussianProcessClassifier(FREE, optimizer=optimizer).fit(X, y)
    assert model.kernel_.theta == pytest.approx([0.1, 0.1])
    assert seen[0][0] == pytest.approx(seen[0][1]) and seen[0][2:] == ((2,), (2, 2)) and seen[0][0] > 0


def test_warm_start_begins_where_the_last_fit_ended():
    X, y = two_classes(90)
    model = GaussianProcessClassifier(FREE, warm_start=True).fit(X, y)
    first = model.searches_[0].evaluations
    model.fit(X, y)
    assert model.searches_[0].evaluations < first


def test_many_points_search_on_a_part_first_and_reach_the_top():
    X, y = two_classes(600, 2)
    sign = np.where(y == 1, 1.0, -1.0)
    kernel = 1.0 * kernels.RBF(np.ones(2))
    problem = LatentProblem(X, sign, Logistic())
    plain = ascend(_Warm(problem, kernel), kernel.theta, kernel.bounds)
    quick = fit_latent(problem, kernel, kernel.bounds, rng=np.random.default_rng(0))
    assert quick.search is not None and quick.search.converged
    assert quick.log_evidence > plain.value - 1e-2
    assert quick.search.evaluations < plain.evaluations
    model = GaussianProcessClassifier(kernel).fit(X, y)
    assert clone(model).fit(X, y).kernel_ == model.kernel_  # no seed, and yet the same


@pytest.mark.parametrize(
    "multi_class, integrate, n_hyper",
    [
        ("one_vs_rest", "quadrature", None),
        ("softmax", "quadrature", None),
        ("softmax", "slice", 5),
        pytest.param("one_vs_rest", "slice", 5, marks=pytest.mark.slow),
    ],
)
def test_probabilities_averaged_over_kernel_parameters(iris, multi_class, integrate, n_hyper):
    X, y = iris
    options = {"multi_class": multi_class, "integrate": integrate, "n_hyper": n_hyper}
    model = GaussianProcessClassifier(FREE, **options).fit(X[:40], y[:40])
    p = model.predict_proba(X[40:])
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert model.classes_[p.argmax(axis=1)].tolist() == model.predict(X[40:]).tolist()
    fit = model.fits_[-1]
    assert len(fit.parts) == (n_hyper or 9) and sum(w for w, _ in fit.parts) == pytest.approx(1.0)
    if multi_class == "softmax":  # the mixture is what its parts say
        wanted = sum(w * part.likelihood.averaged(*part.latent(X[40:])) for w, part in fit.parts)
        assert p == pytest.approx(wanted, abs=1e-9)


def test_quadrature_over_parameters_against_a_grid():
    X, y = two_classes(25, 3)
    model = GaussianProcessClassifier(FREE, integrate="quadrature", n_hyper=5).fit(X, y)
    new = np.array([[0.5, 0.0], [-1.0, 1.0]])
    # a fine grid of both parameters around the top, weighted by the evidence; far tails of the flat prior are left out
    top = model.kernel_.theta
    p, total = np.zeros(2), 0.0
    for a in np.linspace(-3.0, 3.0, 13):
        for b in np.linspace(-1.5, 1.5, 9):
            one = GaussianProcessClassifier(FREE.with_theta(top + np.array([a, b])), optimizer=None).fit(X, y)
            w = np.exp(one.log_marginal_likelihood_value_ - model.log_marginal_likelihood_value_)
            p, total = p + w * one.predict_proba(new)[:, 1], total + w
    assert model.predict_proba(new)[:, 1] == pytest.approx(p / total, abs=0.05)
    assert model.predict(new).tolist() == (model.predict_proba(new)[:, 1] > 0.5).astype(int).tolist()


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_frames_of_pandas_and_polars():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = two_classes(50)
    labels = np.where(y == 1, "good", "bad")
    wanted = GaussianProcessClassifier().fit(X, labels).predict_proba(X)
    for frame, series in [
        (pd.DataFrame(X, columns=["a", "b"]), pd.Series(labels)),
        (pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}), pl.Series(labels.tolist())),
    ]:
        model = GaussianProcessClassifier().fit(frame, series)
        assert model.predict_proba(frame).tolist() == wanted.tolist()
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert set(model.predict(frame)) <= {"good", "bad"}


def test_points_that_are_words():
    words = ["aaab", "aaba", "abaa", "bbba", "bbab", "babb"] * 3
    y = np.array([0, 0, 0, 1, 1, 1] * 3)
    model = GaussianProcessClassifier(kernels.Spectrum(2).normalized(), optimizer=None).fit(words, y)
    assert model.predict(["aaaa", "bbbb"]).tolist() == [0, 1]


def test_kernel_parameters_by_name():
    X, y = two_classes(60)
    model = GaussianProcessClassifier(FREE, optimizer=None)
    search = GridSearchCV(model, {"kernel__base__length_scale": [1e-3, 1.0]}, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_ == {"kernel__base__length_scale": 1.0}
    assert clone(model).set_params(kernel__variance=5.0).kernel.variance == 5.0


@pytest.mark.parametrize(
    "inference, multi_class",
    [("laplace", "one_vs_rest"), ("laplace", "one_vs_one"), ("laplace", "softmax"), ("ep", "one_vs_rest")],
)
def test_never_nan(inference, multi_class):
    rng = np.random.default_rng(0)
    repeated = np.repeat(rng.normal(size=(4, 2)), 5, axis=0)
    cases = {
        "duplicates that contradict": (repeated, np.arange(20) % 3),
        "duplicates": (repeated, np.repeat([0, 1, 2, 1], 5)),
        "constant column": (np.c_[rng.normal(size=20), np.full(20, 7.0)], np.arange(20) % 2),
        "all constant": (np.full((6, 2), 3.0), np.arange(6) % 2),
        "separable": (np.linspace(-1, 1, 20)[:, None], (np.arange(20) > 9).astype(int)),
        "two points": (np.array([[0.0], [1.0]]), np.array([1, 0])),
        "huge inputs": (1e6 * rng.normal(size=(15, 2)), np.arange(15) % 3),
    }
    for name, (X, y) in cases.items():
        model = GaussianProcessClassifier(FREE, inference=inference, multi_class=multi_class)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "The optimal value found")
            p = model.fit(X, y).predict_proba(np.vstack([X, X + 1.0, X * 1e3]))
        assert np.isfinite(p).all() and p.sum(axis=1) == pytest.approx(1.0), name
        assert np.isfinite(model.log_marginal_likelihood_value_), name


# --- errors ---------------------------------------------------------------------------------------------------------


def test_one_class_is_named():
    with pytest.raises(ModelError, match="at least two classes; y holds one class, 'x', in n_samples = 3"):
        GaussianProcessClassifier().fit([[0.0], [1.0], [2.0]], ["x", "x", "x"])


@pytest.mark.parametrize(
    "options, text",
    [
        ({"link": "probt"}, "Did you mean 'probit'"),
        ({"inference": "vb"}, "must be one of 'laplace', 'ep'"),
        ({"multi_class": "ovr"}, "multi_class must be one of"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
        ({"n_restarts_optimizer": -1}, "whole number of at least 0"),
        ({"max_iter_predict": 0}, "whole number of at least 1"),
        ({"kernel": "precomputed"}, "evaluated at new points"),
        ({"kernel": 3}, "kernel must be a kernel value"),
        ({"multi_class": "softmax", "inference": "ep"}, "go with 'one_vs_rest'"),
    ],
)
def test_options_that_cannot_be(options, text):
    X = np.arange(6.0)[:, None]
    with pytest.raises(ModelError, match=text):
        GaussianProcessClassifier(**options).fit(X, [0, 1, 2, 0, 1, 2])


def test_too_few_rounds_warn():
    X, y = two_classes(60)
    with pytest.warns(ConvergenceWarning, match="max_iter_predict=1"):
        GaussianProcessClassifier(100.0 * kernels.RBF(1.0), optimizer=None, max_iter_predict=1).fit(X, y)


# --- counts ---------------------------------------------------------------------------------------------------------


def rates(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 6, n))[:, None]
    size = rng.uniform(0.5, 4.0, n)
    rate = np.exp(1.0 + np.sin(x[:, 0]))
    return x, rng.poisson(rate * size).astype(float), size, rate


def test_counts_recover_the_rate_through_the_exposure():
    x, y, size, rate = rates()
    model = GaussianProcessCounts(FREE).fit(x, y, exposure=size)
    assert np.abs(np.log(model.predict(x) / rate)).max() < 0.35
    assert model.predict(x, exposure=size) == pytest.approx(model.predict(x) * size)
    mean, var = model.latent_mean_and_variance(x)
    assert model.predict(x) == pytest.approx(np.exp(mean + var / 2))
    assert model.predict(x, average=False) == pytest.approx(np.exp(mean))
    inside = np.abs(mean - np.log(rate)) < 2.0 * np.sqrt(var)
    assert inside.mean() > 0.8
    expected, std = model.predict(x, return_std=True)
    assert (std**2 > expected).all()
    assert model.sample_latent(x[:5], 3).shape == (5, 3)


def test_counts_evidence_gradient_and_predictive():
    x, y, size, _ = rates(50)
    model = GaussianProcessCounts(FREE, optimizer=None).fit(x, y, exposure=size)
    theta = np.array([0.2, -0.3])
    value, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
    ends = [
        (model.log_marginal_likelihood(theta + s), model.log_marginal_likelihood(theta - s)) for s in 1e-4 * np.eye(2)
    ]
    assert slope == pytest.approx([(a - b) / 2e-4 for a, b in ends], abs=1e-5)
    counts = np.arange(200.0)
    total = np.logaddexp.reduce(model.log_predictive(np.repeat(x[:1], 200, axis=0), counts))
    assert total == pytest.approx(0.0, abs=1e-6)  # a distribution over all counts
    p = np.exp(model.log_predictive(np.repeat(x[:1], 200, axis=0), counts))
    expected, std = model.predict(x[:1], return_std=True)
    assert p @ counts == pytest.approx(expected[0], rel=1e-6)
    assert np.sqrt(p @ (counts - p @ counts) ** 2) == pytest.approx(std[0], rel=1e-6)


def test_counts_edges_and_errors():
    x, y, size, _ = rates(30)
    empty = GaussianProcessCounts(FREE).fit(x, np.zeros(30))
    assert np.isfinite(empty.predict(x)).all() and empty.predict(x).max() < 0.2
    one = GaussianProcessCounts(FREE).fit(x[:1], [1e6])
    assert one.predict(x[:1])[0] == pytest.approx(1e6, rel=1e-3)
    sizes = GaussianProcessCounts(FREE, likelihood=GammaSizes(4.0)).fit(x, y + 0.5)
    assert np.isfinite(sizes.log_marginal_likelihood_value_)
    with pytest.raises(ModelError, match="at least 0; y\\[0\\] is -1"):
        GaussianProcessCounts().fit(x, y - y[0] - 1)
    with pytest.raises(ModelError, match="exposure must hold 30 positive"):
        GaussianProcessCounts().fit(x, y, exposure=np.zeros(30))
    with pytest.raises(ModelError, match="log link"):
        GaussianProcessCounts(likelihood=GaussianNoise()).fit(x, y)
    with pytest.raises(ModelError, match="Did you mean 'poisson'"):
        GaussianProcessCounts(likelihood="poison").fit(x, y)


def _shifted(K: np.ndarray, y: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, float]:
    """Laplace's approximation for σ(y (f + m)) by plain Newton: the slope of log p at the mode, and the evidence."""
    from scipy.special import expit

    f, t = np.zeros(len(y)), (y + 1) / 2
    for _ in range(100):
        p = expit(f + m)
        W = p * (1 - p)
        root = np.sqrt(W)
        B = np.eye(len(y)) + root[:, None] * K * root
        b = W * f + t - p
        a = b - root * np.linalg.solve(B, root * (K @ b))
        f = K @ a
    return t - expit(f + m), float(-0.5 * a @ f + np.log(expit(y * (f + m))).sum() - 0.5 * np.linalg.slogdet(B)[1])


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_row_f8_a_mean_function_shifts_the_latent(inference: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 1))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=25) > 0.5, 1, -1)
    new = np.linspace(-3.0, 3.0, 7)[:, None]
    kernel = 2.0 * gg.kernels.RBF(0.8)

    def m(points: np.ndarray) -> np.ndarray:
        return 1.5 * np.asarray(points)[:, 0] - 0.7

    model = gg.GaussianProcessClassifier(kernel, optimizer=None, inference=inference, mean=m).fit(X, y)
    if inference == "laplace":
        slope, evidence = _shifted(kernel.gram(X), y.astype(float), m(X))
        assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, abs=1e-8)
        wanted = m(new) + kernel.gram(new, X) @ slope
        np.testing.assert_allclose(model.latent_mean_and_variance(new)[0], wanted, atol=1e-8)
    # The same line as a learned mean whose weights are known beforehand, and where they are not.
    known = gg.gp.LinearMean(prior=(np.array([-0.7, 1.5]), np.full(2, 1e-12)))
    same = gg.GaussianProcessClassifier(kernel, optimizer=None, inference=inference, mean=known).fit(X, y)
    np.testing.assert_allclose(same.predict_proba(new), model.predict_proba(new), atol=1e-6)
    np.testing.assert_allclose(same.beta_, [-0.7, 1.5], atol=1e-6)
    wide = gg.gp.LinearMean(prior=(0.0, 4.0))
    learned = gg.GaussianProcessClassifier(kernel, optimizer=None, inference=inference, mean=wide).fit(X, y)
    linear = gg.kernels.Linear()
    summed = gg.GaussianProcessClassifier(kernel + 4.0 * linear + 4.0, optimizer=None, inference=inference).fit(X, y)
    np.testing.assert_allclose(learned.predict_proba(new), summed.predict_proba(new), atol=1e-8)
    assert learned.kernel_.formula() == kernel.formula()


def test_means_of_several_classes_and_files(tmp_path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 1))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    kernel = 2.0 * gg.kernels.RBF(0.8)
    for kind in ("one_vs_rest", "one_vs_one", "softmax"):
        model = gg.GaussianProcessClassifier(kernel, optimizer=None, multi_class=kind, mean="linear").fit(X, y)
        assert model.score(X, y) > 0.9
    gg.write(model, tmp_path / "model.json")
    np.testing.assert_array_equal(gg.read(tmp_path / "model.json").predict_proba(X), model.predict_proba(X))

    def three(points: np.ndarray) -> np.ndarray:
        return np.column_stack([-points[:, 0], 0.0 * points[:, 0], points[:, 0]])

    assert gg.GaussianProcessClassifier(kernel, optimizer=None, mean=three).fit(X, y).score(X, y) > 0.9
    with pytest.raises(gg.GramGraphError, match="one_vs_rest"):
        gg.GaussianProcessClassifier(kernel, multi_class="softmax", mean=three).fit(X, y)
    with pytest.raises(gg.GramGraphError, match="integrated out"):
        gg.GaussianProcessClassifier(kernel, mean=gg.gp.LinearMean(prior="ml")).fit(X, y)
