"""Loops in registers against NumPy: products of tall matrices, half a matrix in six bytes an entry."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph._numerics.gram.packed_gram import product, put_rows
from gramgraph._numerics.gram.products import add_products, lower_blocks, unfold
from gramgraph.exceptions import ModelError
from gramgraph.linalg.blocks import FeatureSums, RunningSums
from gramgraph.linalg.tridiagonal import Tridiagonal
from tests.portions import examples


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    r=st.integers(1, 70),
    t=st.integers(0, 3),
    weighted=st.booleans(),
)
def test_products_of_tall_matrices(seed: int, n: int, r: int, t: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    Phi, Y = rng.normal(size=(n, r)), rng.normal(size=(n, t))
    scale = rng.uniform(0.0, 2.0, size=n) if weighted else np.empty(0)
    C, out = lower_blocks(r + t), np.empty((r + t, r + t))
    for _ in range(2):
        add_products(Phi.reshape(-1), r, Y.reshape(-1), t, scale, C)
    unfold(C, out)
    both = np.hstack([Phi, Y]) * (scale[:, None] if weighted else 1.0)
    np.testing.assert_allclose(out, 2.0 * both.T @ both, atol=1e-10)
    assert np.array_equal(out, out.T)


@pytest.mark.parametrize("r", [3, 80])
def test_running_sums_of_narrow_and_wide_features(rng: np.random.Generator, r: int) -> None:
    Phi, Y, w = rng.normal(size=(500, r)), rng.normal(size=(500, 2)), rng.uniform(0.0, 2.0, size=500)
    total = RunningSums()
    for i in range(0, 500, 130):
        total.add(Phi[i : i + 130], Y[i : i + 130], w[i : i + 130])
    found = total.finish()
    np.testing.assert_allclose(found.G, Phi.T @ (w[:, None] * Phi), atol=1e-10)
    np.testing.assert_allclose(found.c, Phi.T @ (w[:, None] * Y), atol=1e-10)
    np.testing.assert_allclose(found.yy, w @ Y**2)
    assert found.n == 500
    flat = FeatureSums.of(Phi, Y[:, 0], w)
    assert flat.c.shape == (r,) and flat.yy == pytest.approx(found.yy[0])  # type: ignore[index]
    with pytest.raises(ModelError, match=f"those before it have {r} and 2"):
        total.add(Phi[:, :-1], Y)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40))
def test_six_bytes_an_entry_keep_eleven_digits(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-30, 30, size=(n, n))
    A = np.tril(A) + np.tril(A, -1).T
    size = n * (n + 1) // 2
    high, low = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint16)
    for start in range(0, n, 7):
        put_rows(A[start : start + 7].copy(), A.diagonal().copy(), start, high, low)
    for i in range(n):  # columns, one by one: no sum hides an entry
        unit, y = np.zeros(n), np.empty(n)
        unit[i] = 1.0
        product(high, low, unit, y)
        np.testing.assert_allclose(y, A[i], rtol=2.0**-37, atol=0.0)


@settings(max_examples=examples(30))
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), q=st.integers(1, 3), rank=st.integers(0, 40))
def test_tridiagonal_reduction_solves_for_every_shift(seed: int, n: int, q: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, rank))
    A, B, alphas = U @ U.T, rng.normal(size=(n, q)), np.array([0.01, 1.0, 30.0])
    reduced = Tridiagonal.of(A)
    T = np.diag(reduced.diagonal) + np.diag(reduced.side, 1) + np.diag(reduced.side, -1)
    np.testing.assert_allclose(reduced.Q @ T @ reduced.Q.T, A, atol=1e-10 * max(1, rank))
    np.testing.assert_allclose(reduced.Q.T @ reduced.Q, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(reduced.eigenvalues(), np.linalg.eigvalsh(A), atol=1e-10 * max(1, rank))
    X, diagonals = reduced.solve_shifted(B, alphas)
    for i, alpha in enumerate(alphas):
        G = np.linalg.inv(A + alpha * np.eye(n))
        np.testing.assert_allclose(X[:, :, i], G @ B, atol=1e-8)
        np.testing.assert_allclose(diagonals[:, i], G.diagonal(), atol=1e-8)


def test_tridiagonal_reduction_of_more_than_one_block(rng: np.random.Generator) -> None:
    A = rng.normal(size=(300, 300))
    A = A @ A.T
    kept = A.copy()
    reduced = Tridiagonal.of(A)
    np.testing.assert_array_equal(A, kept)
    np.testing.assert_allclose(reduced.Q.T @ reduced.Q, np.eye(300), atol=1e-12)
    X, diagonals = reduced.solve_shifted(np.ones((300, 1)), np.array([2.0]))
    G = np.linalg.inv(A + 2.0 * np.eye(300))
    np.testing.assert_allclose(X[:, 0, 0], G.sum(axis=1), atol=1e-8)
    np.testing.assert_allclose(diagonals[:, 0], G.diagonal(), atol=1e-10)


def test_uncompiled_code_gives_the_same_numbers() -> None:
    code = (
        "import numpy as np; from gramgraph._numerics.gram import packed_gram as h, products as p;"
        "A = np.linspace(-2, 3, 60).reshape(6, 10); C = p.lower_blocks(10); out = np.empty((10, 10));"
        "p.add_products(A.reshape(-1), 10, np.empty(0), 0, np.empty(0), C); p.unfold(C, out);"
        "u, l = np.empty(55, np.uint32), np.empty(55, np.uint16); y = np.empty(10);"
        "h.put_rows(out.copy(), out.diagonal().copy(), 0, u, l); h.product(u, l, np.arange(10.0), y);"
        "print(','.join(float(v).hex() for v in [*out.ravel(), *y]))"
    )
    found = []
    for flag in ("0", "1"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": flag, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        found.append([float.fromhex(v) for v in run.stdout.strip().split(",")])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-11)
