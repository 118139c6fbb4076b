"""Gaussian process regression: agreement with scikit-learn, kernel ridge and weights; nothing turns into NaN."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process import kernels as sk
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramgraph as gg
from gramgraph import GaussianProcessRegressor as GP
from gramgraph.estimators._gp_kernels import from_scikit_learn
from gramgraph.kernels import RBF, Constant, Linear, Matern, Periodic, White

CONTRACT = [
    GP(),
    GP(RBF() + White(0.1), normalize_y=True, alpha=1e-6),
]
#: Further options of the same classes, for `make test-all`.
OPTIONS = [GP(Matern(nu=1.5) + White(0.1), mean="linear")]


@parametrize_with_checks(CONTRACT)
def test_contract(estimator, check):
    with np.errstate(all="ignore"):
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OPTIONS)
def test_contract_with_options(estimator, check):
    with np.errstate(all="ignore"):
        check(estimator)


def peer_problem(seed):
    """A random problem with a random kernel of scikit-learn at random parameters."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 60)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    y = np.sin(X.sum(1)) + 0.1 * rng.normal(size=n)
    scale = rng.uniform(0.5, 2.0, size=d)
    bases = [
        sk.RBF(scale),
        sk.RBF(float(scale[0])),
        sk.Matern(scale, nu=1.5),
        sk.Matern(float(scale[0]), nu=2.5),
        sk.Matern(scale, nu=0.5),
    ]
    kernel = float(rng.uniform(0.5, 3.0)) * bases[seed % 5] + sk.WhiteKernel(float(rng.uniform(0.05, 0.5)))
    if seed % 3 == 0:
        kernel = kernel + 0.7 * sk.RBF(3.0) * sk.DotProduct(1.3, sigma_0_bounds="fixed")
    return X, y, kernel


@pytest.mark.parametrize("seed", range(20))
def test_evidence_gradient_and_predictions_equal_scikit_learn(seed):
    X, y, kernel = peer_problem(seed)
    peer = Peer(kernel, optimizer=None, alpha=1e-3).fit(X, y)
    ours = GP(kernel, optimizer=None, alpha=1e-3).fit(X, y)
    theta = peer.kernel_.theta
    np.testing.assert_allclose(ours.kernel_.theta, theta, rtol=1e-12)
    value, slope = peer.log_marginal_likelihood(theta, eval_gradient=True)
    mine, my_slope = ours.log_marginal_likelihood(theta, eval_gradient=True)
    assert mine == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(my_slope, slope, rtol=1e-8, atol=1e-8 * np.abs(slope).max())
    assert ours.log_marginal_likelihood() == pytest.approx(value, rel=1e-8)
    Z = np.random.default_rng(seed).normal(size=(7, X.shape[1]))
    for mine_, theirs in zip(ours.predict(Z, return_cov=True), peer.predict(Z, return_cov=True), strict=True):
        np.testing.assert_allclose(mine_, theirs, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.predict(Z, return_std=True)[1], peer.predict(Z, return_std=True)[1], rtol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_fit_is_as_good_as_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=60)
    peer = Peer(1.0 * sk.RBF([1.0, 1.0]) + sk.WhiteKernel(0.1), n_restarts_optimizer=2, random_state=0).fit(X, y)
    ours = GP(1.0 * RBF([1.0, 1.0]) + White(0.1), n_restarts_optimizer=2, random_state=0).fit(X, y)
    assert ours.log_marginal_likelihood_value_ >= peer.log_marginal_likelihood_value_ - 1e-3
    assert ours.search_.evaluations > 3


@pytest.mark.filterwarnings("ignore:The optimal value")
def test_normalized_and_several_outputs_equal_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(30, 1))
    Y = np.c_[10 + np.sin(X[:, 0]), 100 * np.cos(X[:, 0])] + 0.01 * rng.normal(size=(30, 2))
    Z = np.linspace(-3, 3, 9)[:, None]
    peer = Peer(sk.RBF(0.7), alpha=0.01, optimizer=None, normalize_y=True).fit(X, Y)
    ours = GP(RBF(0.7), alpha=0.01, optimizer=None, normalize_y=True).fit(X, Y)
    for a, b in zip(ours.predict(Z, return_std=True), peer.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(Z, return_cov=True)[1], peer.predict(Z, return_cov=True)[1], atol=1e-7)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_)
    assert ours.sample_y(Z, 4).shape == peer.sample_y(Z, 4).shape == (9, 2, 4)


def test_prior_before_fit_as_scikit_learn():
    Z = np.linspace(0, 1, 5)[:, None]
    for a, b in zip(
        GP(RBF(0.3)).predict(Z, return_cov=True), Peer(sk.RBF(0.3)).predict(Z, return_cov=True), strict=True
    ):
        np.testing.assert_allclose(a, b)
    assert GP(RBF(0.3)).sample_y(Z, 3).shape == (5, 3)


def test_kernel_ridge_and_weight_space_give_the_same_numbers():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(10, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=40)
    gp = GP(RBF(1.3), alpha=0.2, optimizer=None).fit(X, y)
    ridge = gg.KernelRidge(0.2, kernel=RBF(1.3)).fit(X, y)
    np.testing.assert_allclose(gp.predict(Z), ridge.predict(Z), rtol=1e-8)
    np.testing.assert_allclose(gp.alpha_, ridge.dual_coef_, rtol=1e-8)
    # f(x) = wᵀφ(x), w ~ N(0, I), φ = (1, x): k(x, x′) = xᵀx′ + 1
    gp = GP(Linear() + Constant(1.0), alpha=0.2, optimizer=None).fit(X, y)
    Phi, Phi_z = np.c_[np.ones(40), X], np.c_[np.ones(10), Z]
    A = Phi.T @ Phi / 0.2 + np.eye(4)
    mean, cov = gp.predict(Z, return_cov=True)
    np.testing.assert_allclose(mean, Phi_z @ np.linalg.solve(A, Phi.T @ y / 0.2), rtol=1e-8)
    np.testing.assert_allclose(cov, Phi_z @ np.linalg.solve(A, Phi_z.T), rtol=1e-8, atol=1e-10)


NASTY = {
    "duplicated inputs, no noise": (np.repeat([[0.0], [1.0]], 10, axis=0), np.arange(20.0), RBF(), 0.0),
    "duplicated inputs, equal y, no noise": (
        np.repeat([[0.0], [1.0]], 5, axis=0),
        np.repeat([1.0, 2.0], 5),
        RBF(),
        0.0,
    ),
    "no noise, smooth": (np.linspace(0, 1, 80)[:, None], np.sin(np.linspace(0, 1, 80)), RBF(1.0), 0.0),
    "short length scale": (np.linspace(0, 1, 30)[:, None], np.ones(30), RBF(1e-5), 1e-10),
    "long length scale": (np.linspace(0, 1, 30)[:, None], np.linspace(0, 1, 30), RBF(1e5), 1e-10),
    "tiny variance": (np.linspace(0, 1, 30)[:, None], np.linspace(0, 1, 30), 1e-5 * RBF() + White(1e-5), 1e-10),
    "constant y": (np.linspace(0, 1, 30)[:, None], np.full(30, 3.0), RBF() + White(0.1), 1e-10),
    "zero y": (np.linspace(0, 1, 30)[:, None], np.zeros(30), 1.0 * RBF() + White(0.1), 1e-10),
    "one point": (np.zeros((1, 1)), np.ones(1), RBF() + White(0.1), 1e-10),
    "one point, no noise": (np.zeros((1, 1)), np.ones(1), RBF(), 0.0),
    "huge inputs": (1e12 * np.linspace(0, 1, 30)[:, None], np.linspace(0, 1, 30), RBF(), 1e-10),
    "huge y": (np.linspace(0, 1, 30)[:, None], 1e12 * np.linspace(0, 1, 30), 1.0 * RBF() + White(), 1e-10),
    "all inputs equal": (np.ones((8, 2)), np.arange(8.0), RBF([1.0, 1.0]), 0.0),
}


@pytest.mark.parametrize("case", NASTY, ids=list(NASTY))
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("optimize", [False, True])
def test_never_nan(case, normalize, optimize):
    X, y, kernel, alpha = NASTY[case]
    gp = GP(
        kernel,
        alpha=alpha,
        normalize_y=normalize,
        optimizer="fmin_l_bfgs_b" if optimize else None,
        n_restarts_optimizer=1,
        random_state=0,
    ).fit(X, y)
    mean, std = gp.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0).all()
    assert np.isfinite(gp.predict(X, return_cov=True)[1]).all()
    assert np.isfinite(gp.log_marginal_likelihood_value_)
    assert np.isfinite(gp.jitter_) and gp.jitter_ >= 0
    assert np.isfinite(gp.sample_y(X[:3], 2)).all()
    assert np.isfinite(gp.loo_.mean).all()
    if "no noise" in case and "duplicated" in case and not optimize:
        assert gp.jitter_ > 0


def test_no_predictions():
    gp = GP(RBF(), alpha=0.1).fit([[0.0], [1.0]], [0.0, 1.0])
    mean, std = gp.predict(np.zeros((0, 1)), return_std=True)
    assert mean.shape == std.shape == (0,)
    assert gp.predict(np.zeros((0, 1)), return_cov=True)[1].shape == (0, 0)


def test_errors_say_what_helps():
    X, y = np.zeros((3, 1)), np.zeros(3)
    with pytest.raises(gg.ModelError, match="approx must be one of"):
        GP(RBF(), approx="exakt").fit(X, y)
    with pytest.raises(gg.ModelError, match="kernel must be a kernel value"):
        GP(3.0).fit(X, y)
    with pytest.raises(ValueError, match="one entry per point"):
        GP(RBF(), alpha=np.ones(2)).fit(X, y)
    with pytest.raises(gg.ModelError, match="not be negative"):
        GP(RBF(), alpha=-1.0).fit(X, y)
    with pytest.raises(RuntimeError, match="At most one"):
        GP(RBF()).fit(X, y).predict(X, return_std=True, return_cov=True)
    with pytest.raises(gg.ModelError, match="not a free parameter"):
        GP(RBF(), hyper_prior={"lenght_scale": gg.gp.LogNormal(1.0)}).fit(X, y)


def test_kernels_of_scikit_learn_are_translated():
    kernel = sk.ConstantKernel(2.0, "fixed") * sk.ExpSineSquared(0.7, 1.4, (1e-2, 1e2)) + sk.RationalQuadratic(0.5, 0.3)
    ours, bounds = from_scikit_learn(kernel)
    X = np.random.default_rng(0).normal(size=(8, 1))
    np.testing.assert_allclose(ours.gram(X), kernel(X), atol=1e-12)
    assert len(ours.theta) == len(kernel.theta) == len(bounds)
    np.testing.assert_allclose(bounds[0], np.log([1e-2, 1e2]))
    assert isinstance(from_scikit_learn(sk.ExpSineSquared(), 1)[0], Periodic)
    with pytest.raises(gg.ModelError, match="no counterpart"):
        from_scikit_learn(sk.PairwiseKernel())


def test_bounds_of_scikit_learn_kernels_hold():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(40, 1))
    y = np.sin(3 * X[:, 0])
    gp = GP(sk.RBF(1.5, (1.2, 2.0)) + sk.WhiteKernel(0.1)).fit(X, y)
    assert 1.2 - 1e-9 <= gp.kernel_.terms[0].length_scale <= 2.0 + 1e-9


def test_own_optimizer_is_called():
    calls = []

    def optimizer(objective, theta, bounds):
        calls.append(objective(theta, eval_gradient=False))
        value, slope = objective(theta)
        assert slope.shape == theta.shape and value == pytest.approx(calls[-1])
        return theta, value

    GP(RBF() + White(0.1), optimizer=optimizer, n_restarts_optimizer=2).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    assert len(calls) == 3


def test_fit_on_a_subset_first_reaches_the_same_optimum():
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, size=(500, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=500)
    plain = GP(1.0 * RBF() + White(0.1), approx="exact").fit(X, y)
    warm = GP(1.0 * RBF() + White(0.1), approx="exact", n_restarts_optimizer=3, random_state=0).fit(X, y)
    assert warm.log_marginal_likelihood_value_ >= plain.log_marginal_likelihood_value_ - 1e-3


# --- beyond scikit-learn ----------------------------------------------------------------------------------------------


def wave(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, size=(n, 1))
    return X, 5.0 + np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("normalize", [False, True])
def test_streaming_is_fitting_at_once(normalize):
    X, y = wave()
    noise = np.linspace(0.01, 0.1, 40)
    stream = GP(1.0 * RBF(), alpha=noise[:10], optimizer=None, normalize_y=normalize, mean="constant").fit(
        X[:10], y[:10]
    )
    for i in range(10, 40, 7):
        stream.partial_fit(X[i : i + 7], y[i : i + 7], alpha=noise[i : i + 7])
    center, scale = stream._y_mean[0], stream._y_scale[0]
    whole = GP(1.0 * RBF(), alpha=noise, optimizer=None, mean="constant").fit(X, (y - center) / scale)
    Z = np.linspace(0, 7, 9)[:, None]
    mean, std = whole.predict(Z, return_std=True)
    np.testing.assert_allclose(stream.predict(Z), mean * scale + center, atol=1e-9)
    np.testing.assert_allclose(stream.predict(Z, return_std=True)[1], std * scale, atol=1e-9)
    assert stream.log_marginal_likelihood_value_ == pytest.approx(whole.log_marginal_likelihood_value_)
    assert stream.log_marginal_likelihood(stream.kernel_.theta) == pytest.approx(whole.log_marginal_likelihood_value_)
    assert len(stream.X_train_) == 40


def test_noisy_points_count_less():
    X = np.array([[0.0], [0.0], [0.0]])
    gp = GP(RBF(), alpha=np.array([0.01, 1.0, 1.0]), optimizer=None).fit(X, [1.0, 5.0, 5.0])
    assert gp.predict([[0.0]])[0] < 1.2


def test_leave_one_out_in_units_of_y():
    X, y = wave(15)
    gp = GP(RBF() + White(0.1), optimizer=None, normalize_y=True).fit(X, y)
    found = gp.loo_
    assert found.mean.shape == found.var.shape == (15,)
    i = 3
    keep = np.arange(15) != i
    rest = GP(RBF() + White(0.1), optimizer=None).fit(X[keep], ((y - y.mean()) / y.std())[keep])
    mean, std = rest.predict(X[i : i + 1], return_std=True)
    assert found.mean[i] == pytest.approx(mean[0] * y.std() + y.mean())
    assert found.var[i] == pytest.approx((std[0] * y.std()) ** 2, rel=1e-6)


def test_draws_pathwise_and_by_cholesky_agree():
    X, y = wave(30)
    gp = GP(1.0 * RBF() + White(0.01), optimizer=None, normalize_y=True).fit(X, y)
    Z = np.linspace(0, 9, 5)[:, None]
    path, plain = gp.sample_y(Z, 3000, random_state=0, method="pathwise"), gp.sample_y(Z, 3000, random_state=0)
    np.testing.assert_allclose(path.mean(1), plain.mean(1), atol=0.08)
    np.testing.assert_allclose(path.std(1), plain.std(1), atol=0.12)
    big = gp.sample_y(np.linspace(0, 6, 4000)[:, None], 2)
    assert big.shape == (4000, 2) and np.isfinite(big).all()


def test_posterior_is_a_gaussian():
    X, y = wave(20)
    gp = GP(1.0 * RBF() + White(0.1), optimizer=None).fit(X, y)
    Z = np.linspace(0, 7, 4)[:, None]
    mean, cov = gp.predict(Z, return_cov=True)
    found = gp.posterior(Z)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.cov, cov, atol=1e-10)
    np.testing.assert_allclose(np.diag(gp.posterior(Z, latent=True).cov), np.diag(cov) - 0.1, atol=1e-9)


def test_points_that_are_no_vectors():
    words = ["kernel", "kernels", "graph", "graphs", "gram", "grams"]
    y = np.array([1.0, 1.1, -1.0, -1.1, 0.0, 0.1])
    gp = GP(gg.kernels.Spectrum(2), alpha=0.1).fit(words, y)
    assert gp.predict(["kernel"])[0] > 0.5 > gp.predict(["graph"])[0]
    gp.partial_fit(["kernell"], [1.2])
    assert len(gp.X_train_) == 7


def test_grid_search_over_kernel_parameters():
    from sklearn.model_selection import GridSearchCV

    X, y = wave(30)
    search = GridSearchCV(GP(RBF(0.01), alpha=0.1, optimizer=None), {"kernel__length_scale": [0.01, 1.0]}, cv=3).fit(
        X, y - 5
    )
    assert search.best_params_["kernel__length_scale"] == 1.0


def test_frames_with_columns_of_several_kinds():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"hour": rng.uniform(0, 24, 60), "day": rng.choice(["work", "free"], 60)})
    y = np.where(frame["day"] == "work", np.sin(frame["hour"] / 4), 0.0) + 0.05 * rng.normal(size=60)
    kernel = gg.kernels.RBF(4.0).on("hour") * gg.kernels.Delta().on("day") + White(0.1)
    gp = GP(kernel).fit(frame[:50], y[:50])
    mean, std = gp.predict(frame[50:], return_std=True)
    assert np.abs(mean - y[50:]).max() < 0.3 and (std > 0).all()
    gp.partial_fit(frame[50:], y[50:])
    assert len(gp.X_train_) == 60 and gp.sample_y(frame[:4], 3).shape == (4, 3)
    with pytest.raises(ValueError, match="'day' is not a column of the data"):
        gp.predict(frame.rename(columns={"day": "tag"}))


def test_a_column_of_targets_is_a_vector_as_scikit_learn_has_it():
    X, y = wave(10)
    for make in (lambda: GP(RBF(), alpha=0.1, optimizer=None), lambda: Peer(sk.RBF(), alpha=0.1, optimizer=None)):
        mean, std = make().fit(X, y[:, None]).predict(X, return_std=True)
        assert mean.shape == std.shape == (10,)
        assert make().fit(X, y[:, None]).sample_y(X, 3).shape == (10, 3)


def test_the_default_kernel_is_learned_as_scikit_learn_does() -> None:
    X = np.linspace(0, 50, 30)[:, None]
    y = np.sin(X[:, 0] / 10)
    ours, peer = gg.GaussianProcessRegressor(random_state=0).fit(X, y), Peer(random_state=0).fit(X, y)
    assert ours.log_marginal_likelihood_value_ >= peer.log_marginal_likelihood_value_ - 1e-2
    new = np.array([[3.3], [41.7]])
    np.testing.assert_allclose(ours.predict(new), np.sin(new[:, 0] / 10), atol=1e-3)


@pytest.mark.parametrize("exponent", [0.5, 1.5])
def test_fractional_powers_are_refused(exponent) -> None:
    with pytest.raises(ValueError, match="whole number"):
        gg.GaussianProcessRegressor(sk.RBF() ** exponent).fit([[0.0], [1.0]], [0.0, 1.0])


def test_row_f7_the_noise_may_have_a_full_covariance() -> None:
    """Λ = diag equals the vector form; a block Λ equals the dense formulas of mean, variance and evidence."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 20))[:, None]
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=20)
    at = np.linspace(0, 6, 7)[:, None]
    own = rng.uniform(0.01, 0.1, 20)
    for optimizer in (None, "fmin_l_bfgs_b"):
        a, b = (GP(alpha=alpha, optimizer=optimizer).fit(X, y) for alpha in (own, np.diag(own)))
        for one, two in zip(a.predict(at, return_std=True), b.predict(at, return_std=True), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12)
    A = rng.normal(size=(20, 20)) * np.kron(np.eye(4), np.ones((5, 5)))
    Lam = 0.02 * A @ A.T + 0.01 * np.eye(20)
    model = GP(alpha=Lam).fit(X, y)
    k = model.kernel_
    S = k.gram(X) + Lam
    mean, std = model.predict(at, return_std=True)
    cross = k.gram(at, X)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(S, y), rtol=1e-8)
    np.testing.assert_allclose(
        std**2, k.diag(at) - np.einsum("ij,ji->i", cross, np.linalg.solve(S, cross.T)), rtol=1e-6
    )
    evidence = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + 20 * np.log(2 * np.pi))
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, rel=1e-9)
    value, slope = model.log_marginal_likelihood(k.theta, eval_gradient=True)
    step = np.array([1e-5, 0.0])
    higher, lower = model.log_marginal_likelihood(k.theta + step), model.log_marginal_likelihood(k.theta - step)
    assert slope[0] == pytest.approx((higher - lower) / 2e-5, abs=1e-5)
    more = GP(alpha=Lam, optimizer=None).fit(X, y)
    more.partial_fit(at, np.sin(at[:, 0]), alpha=0.05)
    whole = np.block([[Lam, np.zeros((20, 7))], [np.zeros((7, 20)), 0.05 * np.eye(7)]])
    both = np.concatenate([X, at]), np.concatenate([y, np.sin(at[:, 0])])
    again = GP(alpha=whole, optimizer=None).fit(*both)
    np.testing.assert_allclose(more.predict(at), again.predict(at), rtol=1e-8)
    for bad, word in ((-Lam, "smallest eigenvalue"), (np.triu(Lam), "symmetric"), (Lam[:5], "alpha must be")):
        with pytest.raises(gg.ModelError, match=word):
            GP(alpha=bad).fit(X, y)
    with pytest.raises(gg.ModelError, match="has one way"):
        GP(alpha=Lam, approx="titsias").fit(X, y)
