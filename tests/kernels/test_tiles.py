"""Gram matrices into given memory, in single precision, over threads, and of data frames."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from gramgraph.kernels import (
    RBF,
    ArcCosine,
    Centered,
    Delta,
    KernelError,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Spectrum,
    Tensor,
    White,
    Wiener,
    tiles,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 2.0, size=(1100, 3))  # several bands of rows
KERNELS = [
    RBF(0.7),
    Matern(nu=1.5),
    Matern(nu=1.2),
    2 * RBF([0.5, 1.0, 2.0]) + White(0.1),
    RationalQuadratic() * RBF(),
    Polynomial(2),
    Wiener(),
    Centered(RBF(), X[:5]),
    ArcCosine().normalized(),
]


@pytest.fixture(autouse=True)
def threads_for_small_matrices(monkeypatch) -> None:
    monkeypatch.setattr(tiles, "WORTH_THREADS", 0)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_memory_threads_and_precision_change_nothing(kernel):
    for other in (None, X[:70]):
        K = kernel.gram(X, other)
        whole = np.full((K.shape[0] + 2, K.shape[1] + 3), 7.0)
        part = whole[1:-1, 1:-2]
        assert kernel.gram(X, other, out=part) is part
        np.testing.assert_allclose(part, K, rtol=1e-12, atol=1e-13)
        assert (whole[[0, -1]] == 7).all() and (whole[:, [0, -2, -1]] == 7).all()  # nothing beside the part
        np.testing.assert_allclose(kernel.gram(X, other, n_jobs=2), K, rtol=1e-12, atol=1e-13)
        single = kernel.gram(X, other, dtype=np.float32, n_jobs=-1)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, K, rtol=2e-7, atol=1e-12)


def test_single_precision_takes_half_the_memory():
    kernel, n = 2 * RBF() + White(0.1), 2000
    points = RNG.normal(size=(n, 3))
    kernel.gram(points[:50], dtype="float32")
    tracemalloc.start()
    K = kernel.gram(points, dtype="float32")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert K.nbytes == 4 * n * n
    assert peak < 1.0 * 8 * n * n  # the double matrix alone would be more
    assert np.array_equal(K, K.T)


def test_small_matrices_stay_on_one_thread(monkeypatch):
    monkeypatch.setattr(tiles, "WORTH_THREADS", 100)
    asked = []
    monkeypatch.setattr(RBF, "_gram_into", lambda self, X, Y, out, n_jobs: asked.append(n_jobs))
    for n in (9, 10):
        RBF().gram(X[:n], n_jobs=2)
    assert asked == [1, 2]


def test_words_and_mixed_points():
    words = ["abab", "abb", "ba", "b", "aab"] * 3
    for kernel, points in (
        (Spectrum(2), words),
        (Tensor((Spectrum(1), RBF(), Delta())), (words, RNG.normal(size=15), list("ab" * 7 + "a"))),
    ):
        K = kernel.gram(points)
        np.testing.assert_allclose(kernel.gram(points, out=np.empty((15, 15)), n_jobs=3), K)
        np.testing.assert_allclose(kernel.gram(points, dtype="float32"), K, rtol=1e-6)


def test_what_cannot_be_is_refused():
    k = RBF()
    for bad, text in (
        ({"out": np.empty((3, 3))}, r"shape \(4, 4\)"),
        ({"out": np.empty((4, 4), dtype=int)}, "float64 or float32"),
        ({"out": np.empty((4, 4)), "dtype": "float32"}, "writable float32"),
        ({"out": [[0.0]]}, "list"),
        ({"dtype": "float16"}, "float64 or float32, got float16"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
    ):
        with pytest.raises(KernelError, match=text):
            k.gram(np.zeros((4, 2)), **bad)
    frozen = np.empty((4, 4))
    frozen.setflags(write=False)
    with pytest.raises(KernelError, match="writable"):
        k.gram(np.zeros((4, 2)), out=frozen)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "named, plain",
    [
        (RBF([0.5, 1.0, 2.0]), RBF([0.5, 1.0, 2.0])),
        (2 * Matern(nu=2.5) + White(0.1), 2 * Matern(nu=2.5) + White(0.1)),
        (RBF().on("a") * Linear().on(["b", "c"]) + 1, RBF().on(0) * Linear().on([1, 2]) + 1),
        (Tensor((RBF(), Delta()), columns=(["a", "b"], "c")), Tensor((RBF(), Delta()), columns=([0, 1], 2))),
        (RBF().normalized(), RBF().normalized()),
    ],
    ids=["vectors", "sum", "columns", "tensor", "normalized"],
)
def test_frames(library, named, plain):
    frames = pytest.importorskip(library)
    points = np.round(X[:20], 1)
    frame = frames.DataFrame({name: points[:, i].copy() for i, name in enumerate("abc")})
    K = plain.gram(points)
    np.testing.assert_allclose(named.gram(frame), K, atol=1e-14)
    np.testing.assert_allclose(named.gram(frame[:6], frame), plain.gram(points[:6], points), atol=1e-14)
    np.testing.assert_allclose(named.diag(frame), np.diag(K))
    np.testing.assert_allclose(np.concatenate([b for _, b in named.blocks(frame, rows=7)]), K, atol=1e-14)
    np.testing.assert_allclose(named.gram(frame, dtype="float32"), K, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(named.pullback(frame)[0], K, atol=1e-14)
