"""Every exact way equals Cholesky; every approximation equals it in its limit; bounds hold."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph import GaussianProcessRegressor as GP
from gramgraph.exceptions import ModelError
from gramgraph.gp.grids import KroneckerMethod, ToeplitzMethod, find_grid
from gramgraph.gp.iterative import ConjugateGradient
from gramgraph.gp.means import LinearMean, Mean
from gramgraph.gp.methods import Data, Exact
from gramgraph.gp.sparse import RandomFeatures, Sparse
from gramgraph.gp.state_space import StateSpaceMethod
from gramgraph.kernels import RBF, Constant, Linear, Matern, Periodic, White

MEANS = [Mean(), LinearMean(), LinearMean(prior=(0.3, 2.0)), LinearMean(prior="ml")]
MEAN_IDS = ["zero", "vague", "gaussian", "ml"]
LINE_KERNELS = [
    Matern(1.3, nu=0.5) + White(0.1),
    2.0 * Matern(1.3, nu=1.5) + White(0.1),
    2.0 * Matern(1.3, nu=2.5) + White(0.1),
    1.5 * Matern(1.0, nu=1.5) + 0.5 * Matern(3.0, nu=2.5) + Constant(2.0) + 0.5 * White(0.2),
    1.5 * Matern(1.0, nu=1.5) * Matern(3.0, nu=0.5) + White(0.3),
]


def agree(method, kernel, data, Z, tol=1e-8, gradient=True):
    dense = Exact(data)
    value, slope = dense.evidence(kernel, True)
    mine, my_slope = method.evidence(kernel, gradient)
    assert mine == pytest.approx(value, rel=tol)
    assert method.evidence(kernel, False)[0] == pytest.approx(value, rel=tol)
    if gradient:
        np.testing.assert_allclose(my_slope, slope, rtol=tol, atol=tol * np.abs(slope).max())
    a, b = dense.posterior(kernel), method.posterior(kernel)
    np.testing.assert_allclose(b.mean(Z), a.mean(Z), atol=tol * 10)
    np.testing.assert_allclose(b.var(Z), a.var(Z), atol=tol * 10)
    np.testing.assert_allclose(b.var(Z, latent=True), a.var(Z, latent=True), atol=tol * 10)
    np.testing.assert_allclose(b.cov(Z), a.cov(Z), atol=tol * 10)
    assert b.log_evidence == pytest.approx(value, rel=tol)


def line_data(n, mean, seed=0):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 20, n))
    Y = np.c_[np.sin(t), np.cos(t)] + 0.1 * rng.normal(size=(n, 2))
    return Data(t[:, None], Y, rng.uniform(1e-3, 1e-1, n), mean)


@pytest.mark.parametrize("mean", MEANS, ids=MEAN_IDS)
@pytest.mark.parametrize("kernel", LINE_KERNELS, ids=str)
def test_state_space_is_cholesky(kernel, mean):
    data = line_data(120, mean)
    Z = np.r_[np.linspace(-1, 22, 9), data.X[3, 0]][:, None]
    agree(StateSpaceMethod(data), kernel, data, Z)


def test_state_space_is_cholesky_at_500_points_in_any_order():
    data = line_data(500, Mean()).rows(np.random.default_rng(0).permutation(500))
    for kernel in LINE_KERNELS:
        agree(StateSpaceMethod(data), kernel, data, np.linspace(0, 20, 5)[:, None], tol=1e-7)
        one = Data(data.X, data.Y[:, :1], data.noise, data.mean)  # the closed form for one column
        assert StateSpaceMethod(one).evidence(kernel, False)[0] == pytest.approx(
            Exact(one).evidence(kernel, False)[0], rel=1e-9
        )


def test_state_space_with_even_steps_equal_times_and_one_point():
    t = np.repeat(np.arange(30.0), 2)[:, None]
    data = Data(t, np.sin(t), np.full(60, 0.1), Mean())
    agree(StateSpaceMethod(data), LINE_KERNELS[1], data, np.array([[0.0], [2.5], [40.0]]))
    one = Data(t[:1], np.ones((1, 1)), np.full(1, 0.1), Mean())
    agree(StateSpaceMethod(one), LINE_KERNELS[2], one, np.array([[0.0], [2.5]]))


def test_state_space_without_noise_stays_finite():
    t = np.repeat(np.arange(10.0), 2)[:, None]
    data = Data(t, np.sin(t), np.zeros(20), Mean())
    for nu in (0.5, 1.5, 2.5):
        method = StateSpaceMethod(data)
        value, slope = method.evidence(Matern(1.0, nu=nu), True)
        assert np.isfinite(value) and np.isfinite(slope).all()
        process = method.posterior(Matern(1.0, nu=nu))
        assert process.jitter > 0
        assert np.isfinite(process.mean([[0.5]])).all() and np.isfinite(process.var([[0.5]])).all()


@pytest.mark.parametrize("mean", MEANS, ids=MEAN_IDS)
def test_state_space_draws_have_the_posterior_moments(mean):
    # 3,000 draws, 5 standard errors
    data = line_data(15, mean)
    kernel = LINE_KERNELS[1]
    process = StateSpaceMethod(data).posterior(kernel)
    Z = np.array([[1.0], [7.3], [30.0]])
    draws = process.sample(Z, 3000, random_state=0)
    C = process.cov(Z)
    for j in range(2):
        assert np.all(np.abs(draws[:, j].mean(1) - process.mean(Z)[:, j]) < 5 * np.sqrt(np.diag(C) / 3000) + 1e-6)
        scale = np.sqrt(np.outer(np.diag(C), np.diag(C)))
        assert np.all(np.abs(np.cov(draws[:, j]) - C) < 8 * scale / np.sqrt(3000))


@pytest.mark.parametrize("mean", MEANS, ids=MEAN_IDS)
def test_toeplitz_is_cholesky(mean):
    t = np.linspace(0, 10, 90)[:, None]
    rng = np.random.default_rng(0)
    data = Data(t, np.c_[np.sin(t), np.cos(t)] + 0.1 * rng.normal(size=(90, 2)), np.full(90, 0.01), mean)
    kernel = 1.5 * RBF(1.2) + 0.5 * Periodic() * Matern(2.0) + White(0.2)
    agree(ToeplitzMethod(data), kernel, data, np.array([[-1.0], [3.3], [12.0]]))


KRONECKER = [
    1.5 * RBF([1.0, 2.0, 3.0]) + White(0.2),
    1.5 * RBF(1.3) + White(0.2),
    2.0 * (RBF(1.0).on(0) * Matern(2.0).on(1) * Periodic().on(2) * RBF(2.0)) + White(0.3),
    RBF(1.0).on(1) * Constant(2.0) + White(0.1),
    (1.5 * RBF([1.0, 2.0, 3.0])).fix("variance") + White(0.2),
]


@pytest.mark.parametrize("mean", MEANS, ids=MEAN_IDS)
@pytest.mark.parametrize("kernel", KRONECKER, ids=str)
def test_kronecker_is_cholesky(kernel, mean):
    rng = np.random.default_rng(0)
    axes = np.sort(rng.normal(size=5)), np.sort(rng.normal(size=6)), np.arange(4.0)
    X = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)[rng.permutation(120)]
    data = Data(X, rng.normal(size=(120, 2)) + 3.0, np.full(120, 0.01), mean)
    agree(KroneckerMethod(data, find_grid(X)), kernel, data, rng.normal(size=(4, 3)))


def test_points_that_are_no_grid():
    assert find_grid(np.array([[0.0, 0], [0, 1], [1, 0], [2, 1]])) is None
    assert find_grid(np.array([[0.0, 0], [0, 0], [1, 0], [1, 1]])) is None


def scattered(mean, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return Data(X, rng.normal(size=(n, 2)) + X[:, :1], np.linspace(0.01, 0.1, n), mean)


SPARSE_KERNEL = 1.5 * RBF([1.0, 2.0]) + 0.4 * Matern(1.0) + White(0.3)


@pytest.mark.parametrize("mean", MEANS, ids=MEAN_IDS)
@pytest.mark.parametrize("name", ["titsias", "fitc", "sor"])
def test_inducing_points_everywhere_are_exact_and_gradients_are_slopes(name, mean):
    data = scattered(mean)
    agree(Sparse(data, data.X, name), SPARSE_KERNEL, data, np.random.default_rng(1).normal(size=(4, 2)), gradient=False)
    method = Sparse(data, data.X[:9], name)
    theta, h = SPARSE_KERNEL.theta, 1e-6
    slope = method.evidence(SPARSE_KERNEL, True)[1]

    def at(t):
        return method.evidence(SPARSE_KERNEL.with_theta(t), False)[0]

    numeric = [(at(theta + h * e) - at(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-5 * np.abs(slope).max())


def test_titsias_is_a_lower_bound_that_grows():
    data = scattered(Mean())
    exact = Exact(data).evidence(SPARSE_KERNEL, False)[0]
    bounds = [Sparse(data, data.X[:m], "titsias").evidence(SPARSE_KERNEL, False)[0] for m in (3, 10, 25, 60)]
    assert all(a <= b + 1e-9 for a, b in zip(bounds, [*bounds[1:], exact], strict=True))


def test_random_features_come_near():
    data = scattered(Mean())
    kernel = 1.5 * RBF([1.0, 2.0]) + White(0.3)
    method = RandomFeatures(data, 1500, 0)
    exact, Z = Exact(data).posterior(kernel), np.random.default_rng(1).normal(size=(6, 2))
    found = method.posterior(kernel)
    np.testing.assert_allclose(found.mean(Z), exact.mean(Z), atol=0.15)
    np.testing.assert_allclose(found.var(Z), exact.var(Z), atol=0.04)
    assert method.evidence(kernel, False)[0] == pytest.approx(exact.log_evidence, abs=4.0)


@pytest.mark.parametrize("mean", MEANS[:2], ids=MEAN_IDS[:2])
def test_conjugate_gradients_solve(mean):
    data = scattered(mean, n=150)
    kernel = 1.5 * RBF([1.0, 2.0]) + White(0.3)
    method = ConjugateGradient(data, rank=20, probes=60)
    exact, found = Exact(data).posterior(kernel), method.posterior(kernel)
    Z = np.random.default_rng(1).normal(size=(6, 2))
    np.testing.assert_allclose(found.mean(Z), exact.mean(Z), atol=1e-6)
    np.testing.assert_allclose(found.cov(Z), exact.cov(Z), atol=1e-6)
    # the random error of log |Σ| of 60 probes: about 0.2 here
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=2.0)


# --- the choice -----------------------------------------------------------------------------------------------------


def even(n):
    return np.linspace(0, 1, n)[:, None]


CHOICES = [
    (even(400), Matern(), "exact"),
    (np.random.default_rng(0).uniform(size=(600, 1)), Matern(0.3) + White(0.1), "state_space"),
    (even(1100), RBF(0.3) + White(0.1), "toeplitz"),
    (
        np.stack(np.meshgrid(np.arange(30.0), np.arange(20.0)), -1).reshape(-1, 2),
        RBF([3.0, 3.0]) + White(0.1),
        "kronecker",
    ),
    (np.random.default_rng(0).uniform(size=(600, 2)), RBF(0.3) + White(0.1), "exact"),
    (np.random.default_rng(0).uniform(size=(8500, 2)), RBF(0.3) + White(0.1), "titsias"),
]


@pytest.mark.parametrize("case", CHOICES, ids=[c[2] + str(len(c[0])) for c in CHOICES])
def test_auto_explains_itself(case):
    X, kernel, name = case
    y = np.sin(5 * X.sum(1)) + 0.1 * np.random.default_rng(0).normal(size=len(X))
    gp = GP(kernel, optimizer=None, n_inducing=30, random_state=0).fit(X, y)
    assert gp.approx_ == name
    assert gp.explanation_.startswith(f"{name}, chosen because") and gp.explanation_.endswith(".")
    mean, std = gp.predict(X[:5], return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    assert gp.sample_y(X[:5], 2).shape == (5, 2)
    if name not in ("exact", "titsias"):
        dense = GP(kernel, optimizer=None, approx="exact").fit(X, y)
        np.testing.assert_allclose(mean, dense.predict(X[:5]), atol=1e-6)
        assert gp.log_marginal_likelihood_value_ == pytest.approx(dense.log_marginal_likelihood_value_, rel=1e-7)


@pytest.mark.parametrize("approx", ["state_space", "toeplitz", "titsias", "fitc", "sor", "rff", "cg"])
def test_learning_by_every_way(approx):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 10, 300)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=300)
    kernel = (Matern(1.0, nu=2.5) if approx == "state_space" else RBF(1.0)) + White(0.5)
    gp = GP(kernel, approx=approx, n_inducing=40 if approx != "rff" else 300, random_state=0).fit(x, y)
    mean, std = gp.predict(x, return_std=True)
    assert np.sqrt(np.mean((mean - np.sin(x[:, 0])) ** 2)) < 0.06
    assert 0.08 < std.mean() < 0.13
    before = gp.predict(x[:3])
    gp.partial_fit(x[-1:] + x[1:2], np.sin(x[-1] + x[1]))
    assert len(gp.X_train_) == 301 and np.abs(gp.predict(x[:3]) - before).max() < 0.1


@pytest.mark.parametrize(
    "approx", ["exact", "state_space", "toeplitz", "titsias", "fitc", "sor", "rff", "cg", "kronecker"]
)
def test_every_way_can_be_saved_and_cloned(approx):
    import pickle

    from sklearn.base import clone

    X = (
        np.stack(np.meshgrid(np.arange(8.0), np.arange(5.0)), -1).reshape(-1, 2)
        if approx == "kronecker"
        else 40 * even(40)
    )
    y = np.sin(X.sum(1))
    kernel = (Matern(1.0) if approx == "state_space" else RBF(1.0)) + White(0.1)
    gp = GP(kernel, approx=approx, n_inducing=12, random_state=0).fit(X, y)
    mean, std = gp.predict(X[:7] + 0.3, return_std=True)
    again = pickle.loads(pickle.dumps(gp))
    for a, b in zip(again.predict(X[:7] + 0.3, return_std=True), (mean, std), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    np.testing.assert_allclose(clone(gp).fit(X, y).predict(X), gp.predict(X), rtol=1e-6, atol=1e-8)


def test_what_does_not_fit_says_so():
    X, y = np.random.default_rng(0).uniform(size=(20, 2)), np.zeros(20)
    with pytest.raises(ModelError, match="one column"):
        GP(Matern(), approx="state_space").fit(X, y)
    with pytest.raises(ValueError, match="no finite state-space form"):
        GP(RBF(), approx="state_space").fit(X[:, :1], y)
    with pytest.raises(ModelError, match="full grid"):
        GP(RBF(), approx="kronecker").fit(X, y)
    with pytest.raises(ModelError, match="evenly spaced"):
        GP(Linear(), approx="toeplitz").fit(even(20), y)


LINE = np.linspace(0, 1, 30)[:, None]
HARD = {
    "duplicates": (np.repeat([[0.0], [1.0]], 10, axis=0), np.arange(20.0)),
    "smooth": (LINE, np.sin(LINE[:, 0])),
    "constant": (LINE, np.full(30, 3.0)),
    "one point": (np.zeros((1, 1)), np.ones(1)),
    "huge inputs": (1e12 * LINE, LINE[:, 0]),
    "huge y": (LINE, 1e12 * LINE[:, 0]),
    "all equal": (np.ones((8, 1)), np.arange(8.0)),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("approx", ["state_space", "titsias", "fitc", "sor", "rff", "cg"])
@pytest.mark.parametrize("case", HARD)
def test_no_way_gives_nan_without_noise(approx, case):
    X, y = HARD[case]
    for kernel in [Matern(nu=0.5), Matern(nu=1.5), Matern(nu=2.5)] if approx == "state_space" else [RBF(), RBF(1e5)]:
        for optimizer in (None, "fmin_l_bfgs_b"):
            gp = GP(kernel, alpha=0.0, approx=approx, optimizer=optimizer, n_inducing=10, random_state=0).fit(X, y)
            mean, std = gp.predict(X, return_std=True)
            assert np.isfinite(mean).all() and np.isfinite(std).all() and np.isfinite(gp.sample_y(X, 2)).all()
            assert np.isfinite(gp.log_marginal_likelihood_value_) and gp.jitter_ >= 0
            assert gp.predict(X[:0]).shape == (0,)
