"""The sparse factorization against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from gramgraph.engines.gaussian.factorized import Factorized
from gramgraph.exceptions import ModelError


@given(st.integers(0, 10_000))
def test_factor_solve_and_variances(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    M = np.where(rng.random((n, n)) < 0.2, rng.normal(size=(n, n)), 0.0)
    P = M @ M.T + 0.5 * np.eye(n)
    made = Factorized.of(sparse.csc_array(P))
    assert sorted(made.order.tolist()) == list(range(n))
    B = rng.normal(size=(n, 3))
    np.testing.assert_allclose(made.solve(B), np.linalg.solve(P, B), atol=1e-9)
    np.testing.assert_allclose(made.variances(), np.diag(np.linalg.inv(P)), atol=1e-9)
    assert made.log_det == pytest.approx(np.linalg.slogdet(P)[1], abs=1e-9)


def test_order_keeps_the_fill_of_a_star_and_a_tree_small():
    n = 50
    P = np.eye(n) * 3.0
    P[0, 1:] = P[1:, 0] = 0.1
    assert len(Factorized.of(sparse.csc_array(P)).l_val) == n - 1  # the hub goes last: no fill-in
    rng = np.random.default_rng(0)
    T = np.eye(n) * 9.0
    for i in range(1, n):
        j = int(rng.integers(i))
        T[i, j] = T[j, i] = 1.0
    assert len(Factorized.of(sparse.csc_array(T)).l_val) == n - 1


def test_draws_have_the_covariance():
    rng = np.random.default_rng(1)
    M = rng.normal(size=(6, 6))
    P = M @ M.T + np.eye(6)
    draws = Factorized.of(sparse.csc_array(P)).sample(200_000, rng)
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(P), atol=0.01)


def test_not_positive_definite():
    with pytest.raises(ModelError, match="not positive definite"):
        Factorized.of(sparse.csc_array(np.array([[1.0, 2.0], [2.0, 1.0]])))


@pytest.mark.slow
def test_same_numbers_without_compilation():
    import os
    import subprocess
    import sys

    code = (
        "import numpy as np, scipy.sparse as s; from gramgraph.engines.gaussian.sparse import Factorized;"
        "rng = np.random.default_rng(3); M = np.where(rng.random((15, 15)) < .2, rng.normal(size=(15, 15)), 0);"
        "f = Factorized.of(s.csc_array(M @ M.T + np.eye(15))); "
        "print(f.order.tolist(), f.variances().round(12).tolist())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": off, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for off in ("0", "1")
    ]
    assert runs[0] == runs[1]
