"""Bayesian linear regression: the worked line, the two views, sequential updates, evidence maximization."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramgraph import BayesianLinearRegression as BLR
from gramgraph import GaussianProcessRegressor as GP
from gramgraph import KernelRidge, ModelError
from gramgraph.gp.bases import BASES, GaussianBasis, as_basis
from gramgraph.gp.linear import LinearEvidence, maximize_evidence, spectrum

CONTRACT = [BLR(), BLR("polynomial", n_basis=2, learn="em")]
#: Further options of the same classes, for `make test-all`.
OPTIONS = [BLR(learn=None)]


@parametrize_with_checks(CONTRACT)
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OPTIONS)
def test_contract_with_options(estimator, check):
    check(estimator)


def wave(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, n)
    return x[:, None], np.sin(x) + 0.1 * rng.normal(size=n)


def test_the_line_is_recovered_point_by_point():
    # prior variance 0.5, noise 0.2², f(x) = −0.3 + 0.5 x
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    y = -0.3 + 0.5 * x + 0.2 * rng.normal(size=400)
    whole = BLR(alpha=2.0, beta=25.0, learn=None).fit(x[:, None], y)
    steps = BLR(alpha=2.0, beta=25.0, learn=None)
    spread = []
    for i in range(400):
        steps.partial_fit(x[i : i + 1, None], y[i : i + 1])
        spread.append(np.trace(steps.sigma_))
    np.testing.assert_allclose(steps.coef_, whole.coef_, rtol=1e-8)
    np.testing.assert_allclose(steps.sigma_, whole.sigma_, rtol=1e-8)
    assert steps.log_evidence_ == pytest.approx(whole.log_evidence_)
    np.testing.assert_allclose(whole.coef_, [-0.3, 0.5], atol=0.05)  # 3 standard deviations are 0.03 and 0.06
    assert all(b < a for a, b in pairwise(spread))


@pytest.mark.parametrize("name", [None, *BASES])
def test_weights_functions_and_kernel_ridge_are_one(name):
    x, y = wave()
    model = BLR(name, n_basis=5, alpha=0.7, beta=9.0, learn=None).fit(x, y)
    Z = np.linspace(0, 6, 9)[:, None]
    gp = GP(model.kernel_, alpha=1 / 9.0, optimizer=None).fit(x, y)
    mean, std = model.predict(Z, return_std=True)
    g_mean, g_cov = gp.predict(Z, return_cov=True)
    scale = np.abs(mean).max()
    np.testing.assert_allclose(g_mean, mean, atol=1e-8 * scale, rtol=1e-6 if name == "polynomial" else 1e-8)
    np.testing.assert_allclose(g_cov.diagonal(), std**2 - 1 / 9.0, atol=3e-7)
    assert gp.log_marginal_likelihood_value_ == pytest.approx(model.log_evidence_, rel=1e-7)
    ridge = KernelRidge(1 / 9.0, kernel=model.kernel_).fit(x, y)
    np.testing.assert_allclose(ridge.predict(Z), mean, atol=1e-8 * scale, rtol=1e-6 if name == "polynomial" else 1e-8)


def test_evidence_is_the_gaussian_of_y():
    x, y = wave(12)
    model = BLR("gaussian", n_basis=4, prior=(0.3, 2.0), beta=5.0, learn=None).fit(x, y)
    Phi = model.basis_.transform(x)
    expected = multivariate_normal(Phi @ np.full(5, 0.3), 2.0 * Phi @ Phi.T + np.eye(12) / 5.0).logpdf(y)
    assert model.log_evidence_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("learn", ["mackay", "em"])
def test_learned_precisions_are_a_maximum(learn):
    x, y = wave(60)
    model = BLR("gaussian", n_basis=8, learn=learn, max_iter=20000, tol=1e-16).fit(x, y)
    s = spectrum(model.basis_.transform(x), y[:, None])
    best = LinearEvidence.at(s, model.alpha_, model.beta_)
    assert best.log_evidence == pytest.approx(model.log_evidence_, rel=1e-8)
    for a, b in [(1.02, 1), (0.98, 1), (1, 1.02), (1, 0.98)]:
        assert LinearEvidence.at(s, a * model.alpha_, b * model.beta_).log_evidence < best.log_evidence
    assert 0 < model.gamma_ < 9


def test_em_never_steps_down_and_meets_mackay():
    x, y = wave(60)
    s = spectrum(as_basis("gaussian", x, 8).transform(x), y[:, None])
    values = [maximize_evidence(s, 1.0, 1.0, method="em", max_iter=k).log_evidence for k in range(1, 30)]
    assert all(b >= a - 1e-9 for a, b in pairwise(values))
    em = maximize_evidence(s, 1.0, 1.0, method="em", max_iter=20000)
    mackay = maximize_evidence(s, 1.0, 1.0)
    assert em.log_evidence == pytest.approx(mackay.log_evidence, abs=1e-4)


def test_agrees_with_scikit_learns_bayesian_ridge():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    X -= X.mean(0)
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 * rng.normal(size=80)
    y -= y.mean()
    tiny = {"alpha_1": 1e-20, "alpha_2": 1e-20, "lambda_1": 1e-20, "lambda_2": 1e-20}
    peer = BayesianRidge(max_iter=5000, tol=1e-12, fit_intercept=False, **tiny).fit(X, y)
    ours = BLR(lambda Z: Z).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-6)
    assert ours.beta_ == pytest.approx(peer.alpha_, rel=1e-5) and ours.alpha_ == pytest.approx(peer.lambda_, rel=1e-5)


def test_learned_features_beat_given_ones():
    x, y = wave(80)
    basis = GaussianBasis.spread(0, 6, 4, width=0.4)
    plain = BLR(basis).fit(x, y)
    learned = BLR(basis, learn="features").fit(x, y)
    assert learned.log_evidence_ > plain.log_evidence_ + 10
    assert learned.basis_.width > 0.6
    grid = np.linspace(0.5, 5.5, 30)[:, None]
    assert np.abs(learned.predict(grid) - np.sin(grid[:, 0])).max() < 0.15


@pytest.mark.parametrize("name", BASES)
def test_pullbacks_of_bases(name):
    X = np.random.default_rng(0).uniform(0.1, 4.9, size=(7, 2))
    basis = as_basis(name, X, 3).free() if name not in ("pixel", "switch", "v") else as_basis(name, X, 3)
    Phi, pull = basis.pullback(X)
    np.testing.assert_allclose(Phi, basis.transform(X))
    bar, h, theta = np.random.default_rng(1).normal(size=Phi.shape), 1e-6, basis.theta
    numeric = [
        np.vdot(bar, basis.with_theta(theta + h * e).transform(X) - basis.with_theta(theta - h * e).transform(X))
        / (2 * h)
        for e in np.eye(len(theta))
    ]
    np.testing.assert_allclose(pull(bar), numeric, rtol=1e-5, atol=1e-6)


def test_several_outputs_and_draws():
    x, y = wave(60)
    both = BLR("gaussian", n_basis=6, alpha=1.0, beta=50.0, learn=None).fit(x, np.c_[y, 2 * y])
    one = BLR("gaussian", n_basis=6, alpha=1.0, beta=50.0, learn=None).fit(x, y)
    np.testing.assert_allclose(both.predict(x)[:, 0], one.predict(x))
    draws = one.sample_y(x[:4], 4000)
    np.testing.assert_allclose(draws.mean(1), one.predict(x[:4]), atol=0.02)
    std = np.sqrt(one.predict(x[:4], return_std=True)[1] ** 2 - 1 / 50.0)
    np.testing.assert_allclose(draws.std(1), std, rtol=0.1)


def test_degenerate_data_stay_finite():
    for X, y in [
        (np.zeros((5, 1)), np.arange(5.0)),
        (np.arange(5.0)[:, None], np.zeros(5)),
        (np.ones((1, 1)), np.ones(1)),
    ]:
        for learn in ("mackay", "em", "features"):
            model = BLR("gaussian", n_basis=3, learn=learn, max_iter=200).fit(X, y)
            mean, std = model.predict(X, return_std=True)
            assert np.isfinite(mean).all() and np.isfinite(std).all() and np.isfinite(model.log_evidence_)
    with pytest.raises(ModelError, match="Did you mean 'gaussian'"):
        BLR("gausian").fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ModelError, match="leaves nothing to learn"):
        BLR(prior=(0.0, 1.0)).fit([[0.0], [1.0]], [0.0, 1.0])


def test_row_e1_each_sigmoid_has_a_position_and_a_width() -> None:
    from gramgraph.gp.bases import SigmoidBasis

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    for kind in (SigmoidBasis, GaussianBasis):
        basis = kind([-1.0, 0.5, 2.0], width=[0.4, 1.0, 3.0])
        bar = rng.normal(size=basis.transform(X).shape)
        _, pull = basis.pullback(X)
        theta, h = basis.theta, 1e-6
        assert len(theta) == 6
        slopes = [
            float(np.vdot(bar, basis.with_theta(theta + e).transform(X) - basis.with_theta(theta - e).transform(X)))
            / (2.0 * h)
            for e in h * np.eye(6)
        ]
        np.testing.assert_allclose(pull(bar), slopes, rtol=1e-6, atol=1e-8)
    wide = SigmoidBasis([0.0, 1.0], width=[1.0, 2.0]).transform([[3.0]])[0, 1:]
    np.testing.assert_allclose(wide, 1.0 / (1.0 + np.exp([-3.0, -1.0])), atol=1e-15)
    x = np.linspace(-4.0, 4.0, 120)
    y = 1.0 / (1.0 + np.exp(-(x + 2.0) / 0.2)) - 0.7 / (1.0 + np.exp(-(x - 1.0) / 1.0)) + 0.01 * rng.normal(size=120)
    one, two = (
        BLR(SigmoidBasis([-1.5, 0.5], width=width), learn="features").fit(x[:, None], y) for width in (0.5, [0.5, 0.5])
    )
    assert two.log_evidence_ > one.log_evidence_ + 5.0
    with pytest.raises(ModelError, match="one for each"):
        SigmoidBasis([0.0, 1.0], width=[1.0, 2.0, 3.0])
