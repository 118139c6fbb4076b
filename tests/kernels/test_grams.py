import os
import subprocess
import sys

import numpy as np
import pytest

from gramgraph._numerics.compiling import tier
from gramgraph._numerics.gram import grams
from gramgraph._numerics.svm.exponents import exp_rows

PROFILES = {
    grams.SQUARED: lambda s: s,
    grams.RBF: lambda s: np.exp(-s / 2),
    grams.MATERN12: lambda s: np.exp(-np.sqrt(s)),
    grams.MATERN32: lambda s: (1 + np.sqrt(3 * s)) * np.exp(-np.sqrt(3 * s)),
    grams.MATERN52: lambda s: (1 + np.sqrt(5 * s) + 5 * s / 3) * np.exp(-np.sqrt(5 * s)),
}


def test_fast_exp_is_exact_to_rounding():
    x = np.concatenate([-np.geomspace(1e-300, 708, 20_001), np.linspace(-40, 40, 20_001), [0.0]])
    out = np.empty_like(x)
    grams.exp_into(x, out)
    assert np.abs(out / np.exp(x) - 1).max() < 1e-15
    assert out[-1] == 1.0
    with tier("compiled"):
        grams.exp_into(np.array([-708.7, -708.8, -1e6, -np.inf]), out[:4])
    assert out[0] == pytest.approx(np.exp(-708.7), rel=1e-14, abs=0.0) and (out[1:4] == 0.0).all()
    single = np.array([[-87.6, -87.8, -1e6]], dtype=np.float32)
    with tier("compiled"):
        exp_rows(single, 1.0)
    assert single[0, 0] == pytest.approx(np.exp(-87.6), rel=1e-5, abs=0.0) and 0.0 <= single[0, 1] < 1e-38
    assert single[0, 2] == 0.0


@pytest.mark.parametrize("profile", sorted(PROFILES)[1:])
@pytest.mark.parametrize("rows", [2, 8])  # rows as they stand, and blocks of eight
def test_values_of_far_points_fall_to_zero_in_both_tiers(profile, rows):
    scale = {grams.RBF: 0.5, **grams._SCALE}[profile]
    t = np.concatenate([[0.0, 5.0, 690.0, 700.0, 707.0, 708.5, 709.0, 740.0, 1000.0, 1e10], np.full(6, 1e200)])
    far = (np.sqrt(t / scale) if profile == grams.RBF else t / np.sqrt(scale))[:, None]
    near = np.zeros((rows, 1))
    found = []
    for name in ("plain", "compiled"):
        with tier(name), np.errstate(over="ignore"):
            found.append(grams.distance_gram(near, far, profile))
    for K in found:
        assert (np.diff(K[:, :10]) <= 0.0).all()  # also below the smallest numbers of all digits
        assert (K[:, :6] > 0.0).all() and (K[:, 6:] == 0.0).all()
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("d", [1, 4, 6, 15, 16, 40])
@pytest.mark.parametrize("n, m", [(1, 1), (7, 130), (129, 64), (200, 65)])
def test_tiles_agree_with_differences(d, n, m):
    rng = np.random.default_rng(d)
    A, B = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    for other in (None, B):
        S = ((A[:, None] - (A if other is None else other)) ** 2).sum(-1)
        for profile, function in PROFILES.items():
            K = grams.distance_gram(A, other, profile)
            assert np.allclose(K, function(S), rtol=1e-12, atol=1e-12)
            if other is None:
                assert np.array_equal(K, K.T)


def test_threads_and_out_give_the_same_numbers():
    rng = np.random.default_rng(0)
    for d in (3, 20):
        A, B = rng.normal(size=(300, d)), rng.normal(size=(150, d))
        for other in (None, B):
            K = grams.rbf_gram(A, other)
            assert np.array_equal(K, grams.rbf_gram(A, other, n_jobs=3))
            whole = np.full((K.shape[0] + 2, K.shape[1] + 3), 7.0)
            part = whole[1:-1, 1:-2]
            assert grams.rbf_gram(A, other, out=part) is part
            assert np.allclose(part, K, atol=1e-14)
            assert (whole[0] == 7).all() and (whole[:, 0] == 7).all() and (whole[:, -2:] == 7).all()


def test_far_from_the_origin_distances_keep_their_digits():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 30))
    assert np.allclose(grams.rbf_gram(A + 1e6), grams.rbf_gram(A), atol=1e-8)


def test_no_points():
    assert grams.rbf_gram(np.zeros((0, 3))).shape == (0, 0)
    assert grams.rbf_gram(np.zeros((2, 3)), np.zeros((0, 3))).shape == (2, 0)


def test_uncompiled_code_gives_the_same_numbers():
    code = (
        "import numpy as np; from gramgraph._numerics.gram import grams; A = np.linspace(-2, 3, 36).reshape(12, 3);"
        "A[8:] *= 1e3;"
        "print(','.join(float(v).hex() for p in range(5) for v in grams.distance_gram(A, None, p).ravel()))"
    )
    found = []
    for flag in ("0", "1"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": flag, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        found.append([float.fromhex(v) for v in run.stdout.strip().split(",")])
    assert np.allclose(found[0], found[1], rtol=1e-13, atol=0)  # fused multiply-add rounds once less
