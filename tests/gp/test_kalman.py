"""The recursions against the joint Gaussian written out: missing entries, vectors, uneven steps, batches."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gramgraph._numerics.state_space.kalman import filter_batch, kalman_filter, rts_smoother


def model(seed=0, s=3, o=2, T=6, u=2):
    rng = np.random.default_rng(seed)

    def spd(k, n):
        L = rng.normal(size=(n, k, k))
        return L @ np.swapaxes(L, 1, 2) + 0.1 * np.eye(k)

    A, Q = 0.5 * rng.normal(size=(u, s, s)), spd(s, u)
    H, R = rng.normal(size=(o, s)), spd(o, 2)
    y = rng.normal(size=(T, o))
    at, rt = rng.integers(0, u, T), rng.integers(0, 2, T)
    return A, Q, at, H, R, rt, y, rng.normal(size=s), spd(s, 1)[0]


def joint(A, Q, at, H, R, rt, y, m0, P0):
    """Mean and covariance of (x_0 … x_T−1) and of all observations."""
    T, o = y.shape
    s = len(m0)
    mean, C = np.zeros((T, s)), np.zeros((T, s, T, s))
    mean[0], C[0, :, 0, :] = m0, P0
    for t in range(1, T):
        F = A[at[t]]
        mean[t] = F @ mean[t - 1]
        for r in range(t):
            C[t, :, r, :] = F @ C[t - 1, :, r, :]
            C[r, :, t, :] = C[t, :, r, :].T
        C[t, :, t, :] = F @ C[t - 1, :, t - 1, :] @ F.T + Q[at[t]]
    C = C.reshape(T * s, T * s)
    G = np.kron(np.eye(T), H)
    S = G @ C @ G.T
    for t in range(T):
        S[t * o : (t + 1) * o, t * o : (t + 1) * o] += R[rt[t]]
    return mean, C, G, S


def run(parts):
    A, Q, at, H, R, rt, y, m0, P0 = parts
    T, s = len(y), len(m0)
    shapes = ((T, s), (T, s, s), (T, s), (T, s, s), (T,))
    out = [np.empty(shape) for shape in shapes]
    assert kalman_filter(*parts, *out) == T
    smooth = np.empty((T, s)), np.empty((T, s, s)), np.zeros((T, s, s))
    rts_smoother(A, at, *out[:4], *smooth)
    return out, smooth


@pytest.mark.parametrize("missing", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_filter_and_smoother_are_the_joint_gaussian(seed, missing):
    parts = model(seed)
    y = parts[6]
    y[np.random.default_rng(seed).uniform(size=y.shape) < missing] = np.nan
    mean, C, G, S = joint(*parts)
    (means, covs, _, _, logs), (smooth, smooth_covs, gains) = run(parts)
    T, s = means.shape
    for end, got_m, got_P in ((None, smooth, smooth_covs), (0, means, covs)):
        for t in range(T):
            upto = T if end is None else t + 1
            seen = np.flatnonzero(~np.isnan(y[:upto].ravel()))
            rows = slice(t * s, (t + 1) * s)
            gain = C[rows] @ G[seen].T @ np.linalg.inv(S[np.ix_(seen, seen)]) if len(seen) else np.zeros((s, 0))
            gap = y.ravel()[seen] - (G @ mean.ravel())[seen]
            np.testing.assert_allclose(got_m[t], mean[t] + gain @ gap, atol=1e-9)
            np.testing.assert_allclose(got_P[t], C[rows, rows] - gain @ G[seen] @ C[:, rows], atol=1e-9)
    seen = np.flatnonzero(~np.isnan(y.ravel()))
    if len(seen):
        expected = multivariate_normal((G @ mean.ravel())[seen], S[np.ix_(seen, seen)]).logpdf(y.ravel()[seen])
        assert logs.sum() == pytest.approx(expected, rel=1e-9)
        after = C - C @ G[seen].T @ np.linalg.solve(S[np.ix_(seen, seen)], G[seen] @ C)
        np.testing.assert_allclose(gains[0] @ smooth_covs[1], after[:s, s : 2 * s], atol=1e-9)


def test_a_batch_is_its_series():
    A, Q, at, H, R, rt, y, m0, P0 = model(1)
    Y = np.random.default_rng(0).normal(size=(4, *y.shape))
    T, s = len(y), len(m0)
    out = [np.empty((4, *shape)) for shape in ((T, s), (T, s, s), (T, s), (T, s, s), (T,))]
    done = np.zeros(4, dtype=np.int64)
    filter_batch(A, Q, at, H, R, rt, Y, m0, P0, *out, done)
    assert (done == T).all()
    for b in range(4):
        single, _ = run((A, Q, at, H, R, rt, Y[b], m0, P0))
        np.testing.assert_array_equal(out[4][b], single[4])
        np.testing.assert_array_equal(out[0][b], single[0])


def test_an_impossible_covariance_is_reported():
    A, Q, at, H, R, rt, y, m0, P0 = model(2)
    T, s = len(y), len(m0)
    out = [np.empty(shape) for shape in ((T, s), (T, s, s), (T, s), (T, s, s), (T,))]
    assert kalman_filter(A, Q, at, H, -100.0 * R, rt, y, m0, P0, *out) == 0


def test_the_same_numbers_without_compilation():
    code = """
import numpy as np
from gramgraph.gp.methods import Data
from gramgraph.gp.means import Mean
from gramgraph.gp.state_space import StateSpaceMethod
from gramgraph.kernels import Matern, White
t = np.linspace(0, 3, 20)[:, None] ** 2
for nu in (0.5, 1.5, 2.5):
    method = StateSpaceMethod(Data(t, np.sin(t), np.full(20, 0.1), Mean()))
    value, slope = method.evidence(2.0 * Matern(1.3, nu=nu) + White(0.1), True)
    plain = method.evidence(Matern(1.3, nu=nu), False)[0]
    print(*[repr(float(v)) for v in (value, *slope, plain)])
"""
    outputs = []
    for disable in ("0", "1"):
        env = {**os.environ, "NUMBA_DISABLE_JIT": disable, "PYTHONPATH": os.pathsep.join(sys.path)}
        found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        outputs.append(np.array([float(v) for v in found.stdout.split()]))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-12)
