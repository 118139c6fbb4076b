"""Support vector machines for many problems and many points: whole matrices, blocks, features."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba import njit
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from gramgraph import kernels
from gramgraph._numerics.svm import batch_lanes as svm_lanes
from gramgraph._numerics.svm import exponents as svm_exp
from gramgraph._numerics.svm import smo
from gramgraph._numerics.svm import svm_batch as svm_whole
from gramgraph.estimators.svm import SVC, SVR, OneClassSVM, svc_path
from gramgraph.exceptions import ModelError
from gramgraph.machines.svm import blocks as _svm_blocks
from gramgraph.machines.svm import dual as _svm_dual
from gramgraph.machines.svm.approx import FeatureRows
from gramgraph.machines.svm.machine import Settings, fit_machine
from gramgraph.machines.svm.many import fit_apart, fit_together, pair_problems, rest_problems, solve_paths
from gramgraph.machines.svm.rows import GramRows, RBFRows

APPROXIMATE = [
    SVC(approx="nystrom", n_components=30, random_state=0, gamma=0.5, tol=1e-10),
    SVR(approx="features", n_components=40, random_state=0, gamma="auto", tol=1e-10),
    OneClassSVM(approx="nystrom", n_components=30, random_state=0),
]


def expected(estimator: Any) -> dict[str, str]:
    names = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]
    if isinstance(estimator, OneClassSVM):
        return dict.fromkeys(names, "two searches for one machine end apart by what `tol` allows")
    return {}


@parametrize_with_checks(APPROXIMATE, expected_failed_checks=expected)
def test_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def points(rng: np.random.Generator, n: int, d: int = 5) -> tuple[Any, Any]:
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)


def settings(C: float = 1.0, tol: float = 1e-6, **more: Any) -> Settings:
    return Settings(C, None, tol, 2e8, more.get("max_iter", -1), more.get("shrinking", True))


# --- many problems on one matrix ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_together_is_one_by_one(rng: np.random.Generator, shrinking: bool, kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    label = np.sort(y[:500])
    X = X[:500][np.argsort(y[:500], kind="stable")]
    weight = rng.uniform(0.2, 3.0, size=500)
    matrix = GramRows(RBFRows(X, 1e-3).full(kind))
    how = settings(5.0, 1e-4, shrinking=shrinking)
    for problems in (pair_problems(label, 10), rest_problems(label, 10)):
        a = fit_together(matrix, problems, weight, how)
        b = fit_apart(matrix, problems, weight, how, [("", "")] * len(problems))
        assert a.converged and b.converged and not a.curved
        np.testing.assert_allclose(a.objectives, b.objectives, rtol=1e-5)
        np.testing.assert_allclose(matrix.K @ a.weights + a.intercepts, matrix.K @ b.weights + b.intercepts, atol=2e-3)
        np.testing.assert_allclose(a.weights.sum(axis=0), 0.0, atol=1e-8)


def test_a_path_is_its_single_machines(rng: np.random.Generator) -> None:
    X, y = points(rng, 400)
    matrix, costs = GramRows(rbf_kernel(X, gamma=2.0)), np.array([0.05, 0.5, 5.0, 500.0, 5000.0])
    problems = rest_problems((y > 0).astype(np.int64), 2)
    beta, told = solve_paths(matrix, problems, np.ones(400), costs, settings())
    for c, C in enumerate(costs):
        alone = fit_machine(matrix, y, np.ones(400), settings(float(C)))
        assert told[0, c, 1] == pytest.approx(alone.objective, rel=1e-6)
        f = matrix.K @ beta[c] - y
        up, down = np.where(y > 0, beta[c] < C, beta[c] < 0), np.where(y > 0, beta[c] > 0, beta[c] > -C)
        assert f[down].max() - f[up].min() < 1.1e-6
        np.testing.assert_allclose(-told[0, c, 0], alone.intercept, atol=1e-4)
    assert told[0, -1, 2] == 0  # nothing stands at its bound any more: the last solution is this one


def test_shrunk_points_are_looked_at_again(rng: np.random.Generator) -> None:
    X, y = points(rng, 1500, 3)
    matrix = GramRows(rbf_kernel(X, gamma=1.0))
    problems = rest_problems((y > 0).astype(np.int64), 2)
    beta, told = solve_paths(matrix, problems, np.ones(1500), np.array([100.0]), settings(tol=1e-5))
    f = matrix.K @ beta[0] - y
    up, down = np.where(y > 0, beta[0] < 100, beta[0] < 0), np.where(y > 0, beta[0] > 0, beta[0] > -100)
    assert f[down].max() - f[up].min() < 1.1e-5
    assert told[0, 0, 2] > 3 * svm_whole.SHRINK_EVERY  # long enough to have shrunk


def test_steps_may_be_limited_and_curvature_is_seen(rng: np.random.Generator) -> None:
    X, y = points(rng, 200)
    matrix, problems = GramRows(rbf_kernel(X)), rest_problems((y > 0).astype(np.int64), 2)
    few = solve_paths(matrix, problems, np.ones(200), np.array([1.0]), settings(max_iter=7))[1][0, 0]
    assert few[2] == 7 and few[3] == 0.0
    odd = solve_paths(GramRows(-matrix.K), problems, np.ones(200), np.array([1.0]), settings())[1][0, 0]
    assert odd[4] == 1.0


def test_a_grid_of_many_classes_is_its_machines() -> None:
    X, y = load_iris(return_X_y=True)
    folds = [(np.setdiff1d(np.arange(150), np.arange(s, 150, 3)), np.arange(s, 150, 3)) for s in range(3)]
    path = svc_path(X, y, None, [10.0, 0.1], folds, gamma=[0.1, 1.0], tol=1e-6)
    for g, gamma in enumerate([0.1, 1.0]):
        for c, C in enumerate([10.0, 0.1]):
            for s, (train, test) in enumerate(folds):
                alone = SVC(C=C, gamma=gamma, tol=1e-6).fit(X[train], y[train])
                assert path.scores[g, c, s] == pytest.approx(alone.score(X[test], y[test]), abs=1 / 49)


# --- compiled and plain loops -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("m", [3, 8, 45])
def test_loops_are_their_definitions(rng: np.random.Generator, kind: Any, m: int) -> None:
    Ki, Kj = rng.random(m).astype(kind), rng.random(m).astype(kind)
    f, diag = rng.normal(size=m), np.full(m, 2.0, np.float32)
    up, lo = np.where(rng.random((2, m)) < 0.5, 0.0, 1e30).astype(np.float32)
    up[0] = lo[-1] = 0.0
    gains = np.where(lo == 0, np.maximum(f + 2.0, 0.0), 0.0) ** 2 / (4.0 - 2.0 * Ki)
    assert smo.best_partner(f, lo, Ki, diag, -2.0, 2.0)[1] == gains.argmax()
    fall = np.where(lo == 0, f, -1e30)
    assert svm_whole._partner(fall, Ki, diag, -2.0, 2.0) == gains.argmax()
    g = f + 0.3 * (Ki.astype(float) - Kj)
    bottom, top = g[up == 0].min(), g[lo == 0].max()
    moved = f.copy()
    found = smo.move_extremes(moved, up, lo, Ki, Kj, 0.3)
    np.testing.assert_allclose(found, (bottom, np.flatnonzero(g == bottom)[0], top), rtol=1e-6)
    np.testing.assert_allclose(moved, g, rtol=1e-6, atol=1e-7)
    assert smo.extremes(moved, up, lo) == found
    np.testing.assert_allclose(svm_whole._move(np.where(up == 0, f, 1e30), fall, Ki, Kj, 0.3), found, rtol=1e-6)


PLAIN = """
import numpy as np
from gramgraph.estimators import SVC, SVR
rng = np.random.default_rng(5)
X = rng.normal(size=(21, 2))
y = rng.integers(0, 3, size=21)
for machine in (SVC(tol=1e-6), SVR(tol=1e-6)):
    found = machine.fit(X, y)
    print(*(found.predict(X) if isinstance(machine, SVR) else found.decision_function(X)).ravel().tolist())
"""


def test_uncompiled_code_gives_the_same_numbers() -> None:
    found = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run(
            [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True, check=True
        )
        found.append(np.array([float(word) for word in done.stdout.split()]))
    assert len(found[0]) == 4 * 21
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)


def test_nobody_to_choose() -> None:
    nobody = np.full(20, -1e30)
    assert svm_whole._partner(nobody, np.ones(20), np.ones(20, np.float32), 0.0, 1.0) == -1
    assert smo.best_partner(np.zeros(20), np.full(20, 1e30), np.ones(20), np.ones(20, np.float32), 0.0, 1.0)[1] == -1
    assert svm_lanes.earliest8(np.ones(8, np.float32), np.zeros(8, np.float32), np.float32(2)) == svm_lanes.NOWHERE32


@pytest.mark.parametrize(("kind", "error"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_exponentials(rng: np.random.Generator, kind: Any, error: float) -> None:
    E = -rng.exponential(10.0, size=(37, 53)).astype(kind)
    v = rng.normal(size=53).astype(kind)
    exact = np.exp(E.astype(np.float64))
    K = E.copy()
    svm_exp.exp_rows(K, 1.0)
    np.testing.assert_allclose(K, exact, rtol=error)
    out = np.empty(37)
    svm_exp.exp_times(E.copy(), v, out)
    np.testing.assert_allclose(out, exact @ v, atol=100 * error)
    Z = rng.normal(size=(150, 4)).astype(kind)
    half = 0.5 * (Z * Z).sum(axis=1)
    K = Z @ Z.T
    K[np.triu_indices(150, 1)] = np.nan  # only the lower half is read
    svm_exp.finish_products(K, half, 0, len(K))
    np.testing.assert_allclose(K, rbf_kernel(Z.astype(float), gamma=0.5), atol=20 * error)
    np.testing.assert_array_equal(K, K.T)
    far = np.array([[-1e6, 0.5]], kind)  # nothing below exp(0) is lost, nothing above it appears
    svm_exp.exp_rows(far, 1.0)
    assert 0.0 <= far[0, 0] < 1e-37 and far[0, 1] == 1.0


def test_exponentials_survive_rearranging() -> None:
    # The rounding trick of the exponential must stay outside code in which sums may be rearranged.
    @njit(fastmath=True)
    def loose(K, v, out):
        svm_exp.exp_times(K, v, out)

    out = np.empty(1)
    loose(np.full((1, 100), -0.7), np.ones(100), out)
    assert out[0] == pytest.approx(100 * np.exp(-0.7), rel=1e-12)


def test_parts_of_a_kernel_and_threads(rng: np.random.Generator) -> None:
    X = rng.normal(size=(3000, 6))
    source, v = RBFRows(X, 0.2), rng.normal(size=900)
    rows, columns = rng.permutation(3000)[:2500], rng.permutation(3000)[:900]
    exact = rbf_kernel(X[rows], X[columns], gamma=0.2) @ v
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(source.times(rows, columns, v))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], exact, atol=1e-9)
    np.testing.assert_allclose(source.subset(rows).full(np.float64), rbf_kernel(X[rows], gamma=0.2), atol=1e-12)
    source.settle(np.float32)
    np.testing.assert_allclose(source.times(rows, columns, v), exact, atol=1e-3)


# --- blocks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [SVC(C=20.0), SVC(nu=0.3), SVC(kernel="linear", C=0.5), SVR(C=5.0), SVR(nu=0.4, C=3.0), OneClassSVM(nu=0.2)],
    ids=repr,
)
@pytest.mark.usefixtures("compiled_loops")
def test_blocks_find_the_same_machine(rng: np.random.Generator, monkeypatch: Any, machine: Any) -> None:
    X, y = points(rng, 300)
    target = np.sin(X[:, 0]) + 0.1 * y if isinstance(machine, SVR) else y
    machine.set_params(tol=1e-6)
    ask = "predict" if isinstance(machine, SVR) else "decision_function"
    reference = getattr(machine.fit(X, target), ask)(X)
    value = machine.dual_objective_
    monkeypatch.setattr(_svm_dual, "_LARGE", 100)
    monkeypatch.setattr(_svm_blocks, "_SIZE", 64)
    called = []
    run = _svm_blocks._Approach._solve
    monkeypatch.setattr(_svm_blocks._Approach, "_solve", lambda self, p, g: called.append(len(p)) or run(self, p, g))
    for size in (0.002, 0.1):  # room for nothing, and for a part of the points
        found = getattr(machine.set_params(cache_size=size).fit(X, target), ask)(X)
        assert machine.dual_objective_ == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(found, reference, atol=1e-4 * max(1.0, np.abs(reference).max()))
        again = getattr(machine.fit(X, target), ask)(X)
        np.testing.assert_array_equal(found, again)
    assert len(called) > 5


def test_blocks_alone_reach_the_tolerance(rng: np.random.Generator, monkeypatch: Any) -> None:
    X, y = points(rng, 600)
    monkeypatch.setattr(_svm_blocks, "_SIZE", 80)
    dual = _svm_dual.classification(y, np.full(600, 5.0))
    better, steps = _svm_blocks.approach(dual, RBFRows(X, 0.3), tol=1e-5, room=0, dtype=np.float64, max_iter=10**9)
    beta = y * better.start[0]
    f = rbf_kernel(X, gamma=0.3) @ beta - y
    up, down = np.where(y > 0, beta < 5, beta < 0), np.where(y > 0, beta > 0, beta > -5)
    assert f[down].max() - f[up].min() < 1.1e-5
    np.testing.assert_allclose(better.product, f + y, atol=1e-8)
    assert steps > 0 and abs(beta.sum()) < 1e-9


# --- features -----------------------------------------------------------------------------------------------------


def test_all_points_as_landmarks_are_exact(rng: np.random.Generator) -> None:
    X, y = points(rng, 120)
    target = X[:, 0] ** 2
    for exact, how in [(SVC(C=3.0), y), (SVC(nu=0.3), y), (SVR(C=2.0), target), (OneClassSVM(nu=0.3), None)]:
        exact.set_params(tol=1e-8, gamma=0.1)
        near = type(exact)(**exact.get_params()).set_params(approx="nystrom", n_components=120, random_state=1)
        ask = "predict" if isinstance(exact, SVR) else "decision_function"
        a, b = getattr(exact.fit(X, how), ask)(X), getattr(near.fit(X, how), ask)(X)
        np.testing.assert_allclose(a, b, atol=1e-4)
        assert near.approx_error() == pytest.approx(0.0, abs=1e-5)
        assert near.coef_.shape == (1, near.features_.rank)


def test_certificate_of_the_approximation(rng: np.random.Generator) -> None:
    X, y = points(rng, 400)
    least = SVC(tol=1e-6).fit(X, y).dual_objective_[0]
    errors = []
    for m in (20, 100, 300):
        machine = SVC(approx="nystrom", n_components=m, random_state=0, tol=1e-6).fit(X, y)
        beta, K = machine.dual_coef_[0], machine.kernel_.gram(machine.support_vectors_, machine.support_vectors_)
        here = 0.5 * beta @ K @ beta - np.abs(beta).sum()
        assert machine.dual_objective_[0] <= least + 1e-3
        assert least - 1e-3 <= here <= least + machine.approx_error()[0] + 1e-3
        assert here == pytest.approx(machine.dual_objective_[0] + machine.approx_error()[0], rel=1e-5)
        errors.append(machine.approx_error()[0])
    assert errors[0] > errors[1] > errors[2] > 0


@pytest.mark.parametrize("approx", ["nystrom", "features"])
def test_more_features_are_nearer(rng: np.random.Generator, approx: str) -> None:
    X, y = points(rng, 800, 3)
    exact = SVC(gamma=0.2).fit(X, y).decision_function(X)
    off = [
        np.abs(SVC(gamma=0.2, approx=approx, n_components=m, random_state=0).fit(X, y).decision_function(X) - exact)
        for m in (10, 400)
    ]
    assert off[1].mean() < 0.3 * off[0].mean()
    assert off[1].mean() < 0.15


def test_features_of_a_linear_kernel_are_the_columns(rng: np.random.Generator) -> None:
    X, y = points(rng, 200)
    exact = SVC("linear", tol=1e-6).fit(X, y)
    near = SVC("linear", approx="nystrom", n_components=20, random_state=0, tol=1e-6).fit(X, y)
    assert near.features_.rank == 5
    np.testing.assert_allclose(near.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_many_classes_with_features_and_probabilities() -> None:
    X, y = load_iris(return_X_y=True)
    for multiclass in ("ovo", "ovr", "dag"):
        machine = SVC(approx="nystrom", n_components=60, multiclass=multiclass, probability=True, random_state=0)
        assert machine.fit(X, y).score(X, y) > 0.94
        np.testing.assert_array_equal(machine.predict_proba(X).argmax(axis=1), machine.predict(X))
        assert machine.approx_error().shape == (3,)


def test_landmarks_are_named(rng: np.random.Generator) -> None:
    X, y = points(rng, 200)
    for landmarks in ("uniform", "leverage", "kmeans", "pivots"):
        machine = SVC(approx="nystrom", n_components=80, landmarks=landmarks, random_state=0).fit(X, y)
        assert machine.score(X, y) > 0.85


def test_rows_of_features(rng: np.random.Generator) -> None:
    Phi = rng.normal(size=(50, 4))
    source, K = FeatureRows(Phi), Phi @ Phi.T
    rows, columns, v = rng.permutation(50)[:20], rng.permutation(50)[:30], rng.normal(size=30)
    np.testing.assert_allclose(source.block(rows, columns), K[np.ix_(rows, columns)])
    for _ in range(2):
        np.testing.assert_allclose(source.times(rows, columns, v), K[np.ix_(rows, columns)] @ v)
    np.testing.assert_allclose(source.times(np.arange(50), columns, v), K[:, columns] @ v)
    source.arrange(columns)
    np.testing.assert_allclose(source.rows_of(rows, 10), K[np.ix_(rows, columns[10:])])
    np.testing.assert_allclose(source.subset(rows).full(np.float64), K[np.ix_(rows, rows)])
    np.testing.assert_allclose(source.diag, np.diag(K))


def test_blocks_of_data(rng: np.random.Generator) -> None:
    X, y = points(rng, 1200)
    whole = SVC(approx="nystrom", n_components=150, random_state=0).fit(X, y)
    parts = SVC(approx="nystrom", n_components=150, random_state=0)
    for start in range(0, 1200, 300):
        parts.partial_fit(X[start : start + 300], y[start : start + 300], classes=[-1.0, 1.0])
    assert np.mean(whole.predict(X) == parts.predict(X)) > 0.93
    np.testing.assert_array_equal(parts.support_vectors_, X[parts.support_])
    assert set(parts.margin_support_) | set(parts.bound_support_) == set(parts.support_)
    t = np.sin(X[:, 0]) + X[:, 1]
    whole = SVR(approx="features", n_components=200, random_state=0, C=5.0).fit(X, t)
    parts = SVR(approx="features", n_components=200, random_state=0, C=5.0)
    for start in range(0, 1200, 300):
        parts.partial_fit(X[start : start + 300], t[start : start + 300])
    assert parts.score(X, t) > whole.score(X, t) - 0.03
    region = OneClassSVM(nu=0.2, approx="nystrom", n_components=100, random_state=0)
    for start in range(0, 1200, 300):
        region.partial_fit(X[start : start + 300])
    assert np.mean(region.predict(X) == -1) == pytest.approx(0.2, abs=0.05)
    assert region.dual_coef_.sum() == pytest.approx(0.2 * 1200)


def test_one_block_is_one_fit(rng: np.random.Generator) -> None:
    X, y = points(rng, 200)
    one = SVC(approx="nystrom", n_components=50, random_state=0).fit(X, y)
    other = SVC(approx="nystrom", n_components=50, random_state=0).partial_fit(X, y)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    other.partial_fit(X[:10], y[:10])
    other.fit(X, y)  # a fit forgets the blocks
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_what_features_cannot_do_is_said(rng: np.random.Generator) -> None:
    X, y = points(rng, 60)
    with pytest.raises(ModelError, match="Did you mean 'nystrom'"):
        SVC(approx="nystroem").fit(X, y)
    with pytest.raises(ModelError, match="n_components"):
        SVR(approx="nystrom", n_components=0).fit(X, y)
    with pytest.raises(ModelError, match="precomputed matrix"):
        SVC("precomputed", approx="nystrom").fit(rbf_kernel(X), y)
    with pytest.raises(ModelError, match="a function"):
        OneClassSVM(lambda A, B: A @ B.T, approx="nystrom").fit(X)
    with pytest.raises(ValueError, match="random Fourier features"):
        SVC(kernels.Polynomial(), approx="features").fit(X, y)
    with pytest.raises(ModelError, match="partial_fit learns with C"):
        SVC(nu=0.3, approx="nystrom").partial_fit(X, y)
    machine = SVC(approx="features", random_state=0).partial_fit(X, y)
    with pytest.raises(ModelError, match=r"label 5\.0, which is not a class"):
        machine.partial_fit(X[:2], [1.0, 5.0])
    with pytest.raises(ModelError, match="approx='nystrom'"):
        machine.approx_error()
    with pytest.raises(ModelError, match="has no point"):
        SVC(approx="features").partial_fit(X, y, classes=[-1.0, 1.0, 2.0])
    for plain in (SVC(), SVR(), OneClassSVM()):
        assert not hasattr(plain, "partial_fit")
