"""The Gram algebra on the library's own kernels: grids, lines, noise, exact decompositions."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.kernels import RBF, Spectrum, White, Wiener
from gramgraph.linalg import (
    Dense,
    Kronecker,
    LowRank,
    Toeplitz,
    kernel_matvec,
    nystrom,
    pivoted_cholesky,
)
from gramgraph.rkhs import RKHSFunction, fit_representer, karhunen_loeve, mercer


def test_grid_and_line_give_the_same_solution_as_the_dense_matrix(rng: np.random.Generator) -> None:
    a, b = np.linspace(0.0, 1.0, 6), np.linspace(0.0, 3.0, 5)
    grid = np.stack([g.ravel() for g in np.meshgrid(a, b, indexing="ij")], axis=1)
    dense = Dense((RBF(0.5) + White(0.1)).gram(grid)).factor()
    kron = Kronecker((RBF(0.5).gram(a), RBF(0.5).gram(b)), noise=0.1).factor()
    y = rng.standard_normal(30)
    np.testing.assert_allclose(kron.solve(y), dense.solve(y), rtol=1e-8)
    assert kron.logdet == pytest.approx(dense.logdet)
    line = Dense((RBF(0.5) + White(0.1)).gram(b)).factor()
    toeplitz = Toeplitz((RBF(0.5) + White(0.1)).gram(b)[:, 0]).factor()
    np.testing.assert_allclose(toeplitz.solve(y[:5]), line.solve(y[:5]), rtol=1e-8)
    np.testing.assert_allclose(toeplitz.half(y[:5]), line.half(y[:5]), rtol=1e-8)


def test_noise_counts_on_the_diagonal_only(rng: np.random.Generator) -> None:
    X = np.repeat(rng.standard_normal((10, 2)), 2, axis=0)
    kernel = RBF() + White(0.3)
    v = rng.standard_normal(20)
    np.testing.assert_allclose(kernel_matvec(kernel, X, None, v, block=7), kernel.gram(X) @ v, atol=1e-12)
    found = pivoted_cholesky(kernel, X, tol=0.0)
    assert found.rank == 20
    np.testing.assert_allclose(found.L @ found.L.T, kernel.gram(X), atol=1e-10)


def test_low_rank_solution_approaches_the_dense_one(rng: np.random.Generator) -> None:
    X, y = rng.uniform(0.0, 4.0, (120, 1)), rng.standard_normal(120)
    exact = Dense((RBF() + White(0.1)).gram(X)).factor().solve(y)
    part = pivoted_cholesky(RBF(), X, tol=1e-12)
    assert part.rank < 25
    np.testing.assert_allclose(LowRank(part.L, 0.1).factor().solve(y), exact, atol=1e-6)
    Phi = nystrom(RBF(), X, 30, method="kmeans", random_state=0).transform(X)
    np.testing.assert_allclose(LowRank(Phi, 0.1).factor().solve(y), exact, atol=1e-3)


def test_words_have_functions_and_nystrom_features_too() -> None:
    words = ["kernel", "kennel", "tunnel", "gram", "graph", "kernel"]
    K = Spectrum(2).gram(words)
    Phi = nystrom(Spectrum(2), words, 6, method="pivots").transform(words)
    np.testing.assert_allclose(Phi @ Phi.T, K, atol=1e-9)
    f = RKHSFunction(Spectrum(2), words, np.ones(6))
    assert f.norm() ** 2 == pytest.approx(K.sum())
    assert len(f.simplify()) == 5


def test_mercer_of_the_wiener_kernel_has_the_known_spectrum() -> None:
    """min(s, t) on [0, 1]: eigenvalues 4 / ((2i − 1)² π²), eigenfunctions √2 sin((i − ½) π t)."""
    n = 600
    t = (np.arange(n) + 0.5) / n
    pairs = mercer(Wiener(), t, 4)
    i = np.arange(1, 5)
    np.testing.assert_allclose(pairs.values, 4.0 / ((2 * i - 1) ** 2 * np.pi**2), rtol=1e-3)
    s = np.array([0.11, 0.37, 0.83])
    expected = np.sqrt(2.0) * np.sin((i - 0.5) * np.pi * s[:, None])
    np.testing.assert_allclose(np.abs(pairs(s)), np.abs(expected), atol=5e-3)
    (f,) = karhunen_loeve(Wiener(), t, 50, random_state=0)
    assert abs(float(f(np.array([1e-9]))[0])) < 1e-6  # Brownian motion starts at zero


def test_gradient_of_a_fit_through_the_kernels_own_pullback() -> None:
    X = np.linspace(0.0, 3.0, 25)[:, None]
    f = fit_representer(RBF(1.3), X, np.sin(X[:, 0]), reg=1e-8)
    np.testing.assert_allclose(f.gradient(X[5:20])[:, 0], np.cos(X[5:20, 0]), atol=1e-3)
