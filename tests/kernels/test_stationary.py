import tracemalloc

import numpy as np
import pytest

from gramgraph.kernels import (
    RBF,
    Constant,
    KernelError,
    Matern,
    Periodic,
    RationalQuadratic,
    RBFOver,
    SpectralMixture,
    White,
)
from gramgraph.testing.kernels import check_kernel

RNG = np.random.default_rng(7)
X = RNG.normal(size=(7, 2))
Y = RNG.normal(size=(4, 2))

KERNELS = [
    RBF(0.7),
    RBF([0.5, 2.0]),
    Matern(0.8, nu=0.5),
    Matern([0.8, 1.5], nu=1.5),
    Matern(1.3, nu=2.5),
    Matern(1.3, nu=0.8),
    Matern([0.9, 2.0], nu=2.2).free("nu"),
    Matern(nu=1.5).free("nu"),
    RationalQuadratic([0.7, 1.1], alpha=0.6),
    Periodic(0.9, period=1.7),
    SpectralMixture([0.6, 1.2], [[0.1, 0.3], [-0.2, 0.05]], [[0.1, 0.2], [0.3, 0.05]]),
    White(0.3),
    Constant(2.0),
    RBFOver(2 * RBF([1.0, 2.0]), 0.8),
    RBFOver(RBF() + White(0.2)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_stationary_kernel_holds_to_the_contract(kernel):
    check_kernel(kernel, X, Y)


def test_bessel_form_agrees_with_the_closed_forms():
    from gramgraph.kernels._matern import matern, matern_slope

    S = np.concatenate([[0.0, 1e-20], np.geomspace(1e-10, 400, 60)])
    for nu in (0.5, 1.5, 2.5):
        closed = Matern(nu=nu)
        K = closed.gram(np.zeros(1), np.sqrt(S))[0]
        assert np.allclose(matern(S, nu), K, rtol=1e-11, atol=1e-300)
        inner = S > 1e-9
        assert np.allclose(matern_slope(S, nu)[inner], closed._slope(K, S)[inner], rtol=1e-9, atol=1e-300)


def test_limits_are_the_gaussian():
    t = np.linspace(-2, 2, 9)
    wanted = RBF(0.7).gram(t)
    assert np.abs(Matern(0.7, nu=50.0).gram(t) - wanted).max() < 0.01
    assert np.abs(RationalQuadratic(0.7, alpha=1e5).gram(t) - wanted).max() < 1e-4


def test_gaussian_is_the_limit_of_many_bumps():
    # Features exp(−(x − c)²/ℓ²) with centers c on a fine grid: their inner product is an RBF of width ℓ.
    x, ell, step = np.array([0.0, 0.4, 1.3]), 0.6, 1e-3
    centers = np.arange(-6, 8, step)
    phi = np.exp(-((x[:, None] - centers) ** 2) / ell**2) * np.sqrt(step / (ell * np.sqrt(np.pi / 2)))
    assert np.allclose(phi @ phi.T, RBF(ell).gram(x), atol=1e-10)


def test_kernel_distance_identity():
    k, points = RBF(0.8), X
    K = k.gram(points)
    distance = np.diag(K)[:, None] + np.diag(K) - 2 * K
    assert np.allclose(RBFOver(k, 0.7).gram(points), np.exp(-distance / (2 * 0.7**2)))


def test_white_belongs_to_a_point_not_to_a_place():
    assert np.array_equal(White(0.1).gram(X), 0.1 * np.eye(len(X)))
    assert not White(0.1).gram(X, X).any()


@pytest.mark.parametrize(
    "kernel",
    [
        RBF([0.5, 1.5]),
        Matern(0.8, nu=1.5),
        RationalQuadratic(alpha=2.0),
        SpectralMixture([1.0, 0.5], [[0.1, 0.3], [0.2, 0.1]], [[0.1, 0.2], [0.3, 0.1]]),
        2 * RBF() + Constant(0.5),
        1.5 * Matern(nu=2.5) * RBF(2.0),
        (RBF() + Constant(1.0)) * RBF([0.7, 2.0]),
    ],
    ids=str,
)
def test_random_features_approach_the_kernel(kernel):
    features = kernel.spectral_sample(20_000, 2, random_state=1)
    Z = features.transform(X)
    # each entry is an average of 20,000 numbers of size ≤ 4: five standard errors are below 0.15
    assert np.abs(Z @ Z.T - kernel.gram(X)).max() < 0.15
    assert np.array_equal(Z, kernel.spectral_sample(20_000, 2, random_state=1).transform(X))


def test_periodic_features_and_refusals():
    k, t = Periodic(0.8, period=1.3), np.linspace(0, 3, 8)
    Z = k.spectral_sample(20_000, 1, random_state=0).transform(t)
    assert np.abs(Z @ Z.T - k.gram(t)).max() < 0.06
    with pytest.raises(KernelError, match="d = 1"):
        k.spectral_sample(10, 2)
    with pytest.raises(KernelError, match="Nyström"):
        White().spectral_sample(10, 2)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(0.7, nu=0.5),
        Matern(0.7, nu=1.5),
        Matern(1.3, nu=2.5),
        2 * Matern(nu=1.5) + 0.5 * Matern(nu=0.5) + 1,
        3 * Matern(0.7, nu=1.5) * Matern(2.0, nu=2.5),
        (Matern(nu=0.5) + 2 * Matern(0.3, nu=1.5)) * Matern(2.0, nu=2.5) + 0.1,
    ],
    ids=str,
)
def test_state_space_has_the_kernel_as_covariance(kernel):
    from scipy.linalg import expm

    model = kernel.state_space()
    F, L, H, P, q, origin = model
    assert origin is None
    times = np.array([0.0, 0.1, 0.5, 2.0, 2.0, -1.0])
    assert np.allclose(model.gram(times), kernel.gram(times), rtol=1e-10)
    assert np.allclose(model.gram(times, [0.3]), kernel.gram(times, [0.3]), rtol=1e-10)
    assert np.allclose(F @ P + P @ F.T + L @ q @ L.T, 0, atol=1e-10 * max(1.0, np.abs(P).max()))
    assert np.linalg.eigvalsh(q)[0] > -1e-9
    lags = np.array([0.0, 0.1, 0.5, 2.0])
    found = [(H @ expm(F * t) @ P @ H.T).item() for t in lags]
    assert np.allclose(found, kernel.gram([0.0], lags)[0], rtol=1e-9)


def test_state_space_refuses_what_it_cannot_write():
    with pytest.raises(KernelError, match="1/2, 3/2 or 5/2"):
        Matern(nu=2.0).state_space()
    with pytest.raises(KernelError, match="one length scale"):
        Matern([1.0, 2.0]).state_space()
    with pytest.raises(KernelError, match="state-space"):
        RBF().state_space()


@pytest.mark.parametrize(
    "kernel", [RBF(np.ones(20)), Matern(np.ones(20), nu=1.5), 2 * RBF(np.ones(20)) + White(0.1)], ids=repr
)
@pytest.mark.parametrize("n", [700, pytest.param(3000, marks=pytest.mark.slow)])
def test_gradient_memory_is_a_few_matrices(kernel, n):
    points = np.random.default_rng(0).normal(size=(n, 20))
    bar = np.ones((n, n))  # made outside the count: one more
    kernel.pullback(points[:80])[1](bar[:80, :80])
    tracemalloc.start()
    _, pull = kernel.pullback(points)
    pull(bar)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / (8 * n * n) + 1 <= 6


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: RBF(-1.0), "RBF.length_scale: expected positive"),
        (lambda: RBF([[1.0]]), "expected a number or a vector"),
        (lambda: RBF("long"), "expected a number, got 'long'"),
        (lambda: Matern(nu=99.0), "RBF, its limit"),
        (lambda: RBF([1.0, 2.0, 3.0]).gram(X), "one per column of X"),
        (lambda: SpectralMixture([1.0], [[0.1]], [[0.1, 0.2]]), r"expected shapes \(q,\)"),
    ],
)
def test_parameters_that_cannot_be_are_refused(make, text):
    with pytest.raises(KernelError, match=text):
        make()


@pytest.mark.parametrize("kernel", [Matern(np.full(5, 3.0), nu=1.7), Matern(np.full(5, 3.0), nu=1.7).free("nu")])
def test_memory_of_a_gradient_for_any_nu(kernel):
    """No more than six matrices: Bessel functions are evaluated in parts."""
    n = 700
    X = np.random.default_rng(0).normal(size=(n, 5))
    kernel.pullback(X[:9])[1](np.ones((9, 9)))
    bar = np.ones((n, n))
    tracemalloc.start()
    kernel.pullback(X)[1](bar)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 6 * n * n * 8


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("length", [1e-5, 0.3, [0.5, 2.0, 1e4]])
def test_prepared_columns_keep_their_digits(length: object, shift: float) -> None:
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(50, 3)) + shift
    X = np.concatenate([Y[:2], Y[2:5] + 1e-5 * rng.normal(size=(3, 3))])  # at columns, and near them
    kernel = 2.0 * RBF(length) + Matern(length)
    columns = kernel.prepare_columns(Y)
    for rows in (X, np.tile(X, (4, 1))):
        np.testing.assert_allclose(kernel.gram_columns(rows, columns), kernel.gram(rows, Y), rtol=1e-8, atol=1e-11)
