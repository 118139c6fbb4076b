"""NumPy stands in for some loops until they are compiled: it gives the numbers of the compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gramgraph._numerics.cells import shares
from gramgraph._numerics.compiling import tier
from gramgraph._numerics.gram import packed_gram
from gramgraph._numerics.hmm import emissions, recursions
from gramgraph._numerics.mixtures import statistics
from gramgraph._numerics.svm import exponents, smo

K, D, N = 3, 2, 41


def in_both_tiers(function: Callable[..., Any], arguments: Callable[[], list[Any]]) -> None:
    """The same results and the same changed arguments, interpreted and compiled."""
    found = []
    for name in ("plain", "compiled"):
        given = arguments()
        with tier(name):
            result = function(*given)
        found.append([result, *given])
    for plain, compiled in zip(*found, strict=True):
        if isinstance(plain, np.ndarray):
            np.testing.assert_allclose(plain, compiled, rtol=1e-11, atol=1e-13)
        else:
            assert plain == compiled


def rows_with_gaps(rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(N, D))
    X[3, 0] = X[7] = X[N - 1, 1] = np.nan
    return X


EMISSIONS: dict[str, Callable[[np.random.Generator, np.ndarray], list[Any]]] = {
    "diagonal_gaussian_logs": lambda r, X: [X, *(r.random((D, K)) + 0.5 for _ in range(3)), np.empty((N, K))],
    "squared_lengths": lambda r, X: [r.normal(size=(N, D * K)), r.random(D * K), r.random(K), np.empty((N, K))],
    "pair_products": lambda r, X: [X, r.random(D), np.empty((N, D + D * (D + 1) // 2))],
    "squares": lambda r, X: [X, r.random(D), np.empty((N, 2 * D))],
    "weighted_moments": lambda r, X: [X, r.random((N, K)), r.random((D, K)), r.random((D, K))],
    "weighted_squares": lambda r, X: [X, r.random((N, K)), r.random((D, K)), r.random((D, K))],
    "column_moments": lambda r, X: [X, *(np.empty(D) for _ in range(3))],
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("name", EMISSIONS)
def test_emissions(name: str, gaps: bool) -> None:
    def arguments() -> list[Any]:
        rng = np.random.default_rng(5)
        X = rows_with_gaps(rng)
        return EMISSIONS[name](rng, X if gaps else np.nan_to_num(X))

    in_both_tiers(getattr(emissions, name), arguments)


def test_likelihoods_of_logs_that_cannot_be_written() -> None:
    logs = np.array([[-1.0, -2.0], [-1e4, -1e4 - 1.0], [-np.inf, -np.inf], [3.0, -np.inf], [0.0, -800.0]])
    in_both_tiers(emissions.likelihood_rows, lambda: [logs.copy(), np.empty(len(logs))])


def test_counts_of_symbols() -> None:
    rng = np.random.default_rng(1)
    symbols, gamma = rng.integers(-1, 4, size=N), rng.random((N, K))
    in_both_tiers(emissions.symbol_counts, lambda: [symbols, gamma, np.ones((5, K))])


def chain(rng: np.random.Generator) -> dict[str, Any]:
    """Five sequences: the second is empty, the third has an impossible row, the fourth states of probability zero."""
    offsets = np.array([0, 10, 10, 20, 30, N])
    b = rng.random((N, K))
    b[14] = 0.0
    b[22, 1] = b[25, 0] = 0.0
    A = rng.dirichlet(np.ones(K), size=K)
    A[0, 1] = 0.0
    start = np.array([0.7, 0.3, 0.0])
    alpha, scale, failed = np.zeros((N, K)), np.ones(N), np.zeros(5, np.int64)
    return {
        "start": start, "A": A, "AT": np.ascontiguousarray(A.T), "b": b, "offsets": offsets,
        "alpha": alpha, "scale": scale, "failed": failed,
    }  # fmt: skip


def test_forward() -> None:
    def arguments() -> list[Any]:
        c = chain(np.random.default_rng(2))
        return [c["start"], c["A"], c["b"], c["offsets"], 0, 5, c["alpha"], c["scale"], c["failed"]]

    in_both_tiers(recursions.forward, arguments)
    given = arguments()
    recursions.forward(*given)
    assert given[-1].tolist() == [-1, -1, 14, -1, -1]


@pytest.mark.parametrize("form", ["apart", "in place", "in place, with pairs"])
def test_backward(form: str) -> None:
    def arguments() -> list[Any]:
        c = chain(np.random.default_rng(2))
        recursions.forward(c["start"], c["A"], c["b"], c["offsets"], 0, 5, c["alpha"], c["scale"], c["failed"])
        shared = [c["AT"], c["b"], c["scale"], c["offsets"], 0, 5, c["alpha"], c["failed"]]
        if form == "apart":
            return [*shared, np.zeros((N, K))]
        return [*shared, np.ones((K, K)), form.endswith("pairs")]

    in_both_tiers(recursions.backward if form == "apart" else recursions.backward_in_place, arguments)


def test_shares() -> None:
    rng = np.random.default_rng(3)
    m, n = 6, 200
    a, c = rng.integers(0, m - 1, size=(2, n)).astype(np.int32)
    f, g = rng.random((2, n))
    ends = [a, a + np.int32(1), f, c, c + np.int32(1), g]
    R = rng.random((m, m))
    in_both_tiers(shares.pair_mass, lambda: [*ends, np.ones((m, m))])
    in_both_tiers(shares.pair_values, lambda: [R, *ends, np.empty(n)])
    in_both_tiers(shares.own_shares, lambda: [R, *ends[:3], np.empty(n)])


def test_spread_masses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "_BLOCK", 100)  # several blocks, the last one shorter
    rng = np.random.default_rng(4)
    grid = np.linspace(-3.0, 3.0, 50)
    points = np.sort(rng.normal(size=30) * 3.0)  # some of them far outside the density
    low = np.sort(rng.integers(0, 7, size=30))
    values, centers, scales = np.exp(-0.5 * grid**2), rng.normal(size=10), 0.5 + rng.random(10)
    share, widths = rng.random(30), np.gradient(points)
    given = [values, grid[0], grid[1] - grid[0], centers, scales, low, low + 1, share, points, widths]
    in_both_tiers(shares.spread_masses, lambda: [*given, np.ones((10, 8))])


def test_products_of_rows() -> None:
    x = np.random.default_rng(7).normal(size=(4, 9))
    in_both_tiers(statistics.quadratic_statistics, lambda: [x, np.full((4 * 5 // 2 + 4 + 1, 9), 2.0)])


@pytest.mark.parametrize("n", [1, 3, 4, 21])
def test_packed_rows_and_products(n: int) -> None:
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-8, 9, size=(n, n))
    A += A.T
    size, diag, x = n * (n + 1) // 2, rng.normal(size=n), rng.normal(size=n)
    start = n // 2
    in_both_tiers(
        packed_gram.put_rows,
        lambda: [A[start:].copy(), diag, start, np.zeros(size, np.uint32), np.zeros(size, np.uint16)],
    )
    high, low = np.zeros(size, np.uint32), np.zeros(size, np.uint16)
    packed_gram.put_rows(A.copy(), np.diag(A).copy(), 0, high, low)
    y = np.empty(n)
    with tier("plain"):
        packed_gram.product(high, low, x, y)
    assert y == pytest.approx(A @ x, rel=1e-9, abs=1e-9 * np.abs(A).max())
    in_both_tiers(packed_gram.product, lambda: [high, low, x, np.empty(n)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_matrices_and_their_exponentials(dtype: type) -> None:
    rng = np.random.default_rng(6)
    K = rng.normal(size=(7, 600)).astype(dtype)
    rows, columns = np.array([5, 0, 3]), np.flatnonzero(rng.random(600) > 0.4)
    in_both_tiers(smo.gather, lambda: [K, np.zeros((4, len(columns) + 2), dtype), rows, columns])
    v = rng.random(600).astype(dtype)
    found = []
    for name in ("plain", "compiled"):
        given, out = K.copy(), np.empty(7)
        with tier(name):
            exponents.exp_times(given, v, out)
        found.append((given, out))
    precision = 1e-5 if dtype is np.float32 else 1e-12
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=precision)
