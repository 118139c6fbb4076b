"""Machines whose kernel is a function of inner products: rows computed on demand, sparse points, linear descent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse

from gramgraph._numerics.compiling import tier
from gramgraph._numerics.svm import batch_rows, free
from gramgraph.estimators import SVC, SVR, OneClassSVM
from gramgraph.machines.svm.linear import descend
from gramgraph.machines.svm.machine import Settings
from gramgraph.machines.svm.many import fit_apart, fit_together, pair_problems
from gramgraph.machines.svm.products import PowerRows, raised


@pytest.fixture(autouse=True)
def small_matrices_stay_sparse_too(monkeypatch: Any) -> None:
    for room in ("_ROOM", "_ROOM_OF_FEW"):
        monkeypatch.setattr(f"gramgraph.estimators._svm_base.{room}", 0)


def blobs(rng: np.random.Generator, n: int, d: int, k: int) -> tuple[Any, Any]:
    label = np.sort(rng.integers(k, size=n))
    return 1.3 * rng.normal(size=(k, d))[label] + rng.normal(size=(n, d)), label


def words(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any]:
    X = sparse.random(n, d, density=12 / d, format="csr", random_state=0)
    return X, np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0.2, "yes", "no")


@pytest.mark.parametrize("power", range(8))
def test_powers_by_products(rng: np.random.Generator, power: int) -> None:
    S = rng.normal(size=(3, 5))
    np.testing.assert_allclose(raised(S.copy(), power), S**power, rtol=1e-13)


@pytest.mark.parametrize(
    ("power", "scale", "offset"), [(1, 1.0, 0.0), (1, 0.5, 2.0), (2, 0.3, 1.0), (3, 0.2, 0.0), (5, 0.1, 1.0)]
)
def test_rows_on_demand_are_those_of_the_matrix(
    rng: np.random.Generator, power: int, scale: float, offset: float
) -> None:
    X, label = blobs(rng, 240, 6, 3)
    source, how = PowerRows(X, power, scale, offset), Settings(2.0, None, 1e-6, 2e8, -1, True)
    K = (scale * X @ X.T + offset) ** power
    np.testing.assert_allclose(source.full(np.float64), K, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(source.diag, np.diagonal(K), rtol=1e-12)
    problems = pair_problems(label, 3)
    found = fit_together(source, problems, np.ones(240), how)
    exact = fit_apart(source, problems, np.ones(240), how, [("", "")] * 3)
    assert found.converged
    np.testing.assert_allclose(found.objectives, exact.objectives, rtol=1e-7)
    np.testing.assert_allclose(K @ found.weights + found.intercepts, K @ exact.weights + exact.intercepts, atol=1e-4)


def marks(rng: np.random.Generator, n: int, kinds: int, columns: int) -> Any:
    """One of several kinds marked in each of some columns, and a number beside."""
    X = [np.eye(kinds)[rng.integers(kinds, size=n)] for _ in range(columns)]
    return np.hstack([*X, rng.normal(size=(n, 1))])


@pytest.mark.parametrize("way", ["plain", "compiled"])
@pytest.mark.parametrize(("power", "dtype"), [(1, np.float32), (2, np.float64), (3, np.float32), (5, np.float64)])
def test_rows_of_points_with_many_zeros(rng: np.random.Generator, way: str, power: int, dtype: Any) -> None:
    X = marks(rng, 600, 9, 5)
    X[7] = 0.0
    source, K = PowerRows(X, power, 0.4, 0.7), (0.4 * X @ X.T + 0.7) ** power
    assert source._lists is not None and PowerRows(X[:, :9], power, 0.4, 0.7)._lists is None
    close: dict[str, Any] = dict.fromkeys(("rtol", "atol"), 1e-12 if dtype == np.float64 else 1e-5)
    with tier(way):
        whole = source.full(dtype)
        np.testing.assert_allclose(whole, K, **close)
        np.testing.assert_array_equal(whole, whole.T)
        some, rows = rng.permutation(600)[:500], rng.integers(500, size=20)
        part = source.subset(some)
        np.testing.assert_allclose(part.diag, np.diagonal(K)[some], rtol=1e-12)
        np.testing.assert_allclose(part.full(dtype), K[np.ix_(some, some)], **close)
        part.arrange(np.arange(3, 400))
        np.testing.assert_allclose(part.rows_of(rows, 11), K[np.ix_(some[rows], some[14:400])], **close)
        np.testing.assert_allclose(part.block(rows, rows), K[np.ix_(some[rows], some[rows])], **close)
        v = rng.normal(size=20)
        np.testing.assert_allclose(
            part.times(rows, rows, v), K[np.ix_(some[rows], some[rows])] @ v, rtol=1e-4, atol=1e-3
        )


@pytest.mark.parametrize("cache_size", [200, 0.5])
def test_a_machine_of_points_with_many_zeros_as_in_libsvm(rng: np.random.Generator, cache_size: float) -> None:
    X = marks(rng, 700, 8, 6)
    y = (X @ rng.normal(size=X.shape[1]) + 0.3 * rng.normal(size=700)) > 0.0
    options: dict[str, Any] = {"kernel": "poly", "coef0": 1.0, "tol": 1e-5}
    ours = SVC(**options, cache_size=cache_size).fit(X, y).decision_function(X)
    np.testing.assert_allclose(ours, sklearn.svm.SVC(**options).fit(X, y).decision_function(X), atol=1e-3)


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"kernel": "poly", "degree": 3, "coef0": 1.0}], ids=str)
def test_many_points_in_few_columns_as_in_libsvm(rng: np.random.Generator, options: dict[str, Any]) -> None:
    X, label = blobs(rng, 1500, 5, 4)
    ours, peer = SVC(**options, tol=1e-4).fit(X, label), sklearn.svm.SVC(**options, tol=1e-4).fit(X, label)
    for machine in (ours, peer):
        machine.decision_function_shape = "ovo"
    a, b = ours.decision_function(X), peer.decision_function(X)
    np.testing.assert_allclose(a, b, atol=1e-3 * np.abs(b).max())


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_a_linear_machine_of_sparse_rows(rng: np.random.Generator, C: float) -> None:
    X, y = words(rng, 300, 1000)
    ours = SVC(kernel="linear", C=C, tol=1e-5).fit(X, y)
    peer = sklearn.svm.SVC(kernel="linear", C=C, tol=1e-5).fit(X.toarray(), y)
    assert sparse.issparse(ours.support_vectors_) and ours.coef_.shape == (1, 1000)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X.toarray()), atol=2e-4)
    np.testing.assert_allclose(ours.dual_coef_.sum(), 0.0, atol=1e-12)
    w = ours.coef_[0]
    assert ours.dual_objective_[0] == pytest.approx(0.5 * w @ w - np.abs(ours.dual_coef_).sum(), rel=1e-9)
    np.testing.assert_allclose(ours.decision_function(X.toarray()), ours.decision_function(X), atol=1e-12)


def test_sweeps_that_do_not_end_are_finished_by_pairs(rng: np.random.Generator, monkeypatch: Any) -> None:
    X, y = words(rng, 200, 60)
    monkeypatch.setattr("gramgraph.machines.svm.linear._SWEEPS", 2)
    ours = SVC(kernel="linear", C=10.0, tol=1e-5).fit(X, y)
    dense = SVC(kernel="linear", C=10.0, tol=1e-5).fit(X.toarray(), y)
    assert ours.dual_objective_[0] == pytest.approx(dense.dual_objective_[0], rel=1e-6)


def test_weights_classes_and_columns_without_entries(rng: np.random.Generator) -> None:
    X, _ = words(rng, 240, 400)
    X = sparse.vstack([X[:3], sparse.csr_matrix((1, 400)), X[4:]]).tocsr()  # a document without words
    y, weight = rng.integers(3, size=240), rng.integers(0, 3, size=240).astype(float)
    ours = SVC(kernel="linear", tol=1e-6, decision_function_shape="ovo", class_weight="balanced")
    a = ours.fit(X, y, weight).decision_function(X)
    b = ours.fit(X.toarray(), y, weight).decision_function(X.toarray())
    np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
@pytest.mark.parametrize("machine", [SVC(), SVC(nu=0.2), SVR(), OneClassSVM(nu=0.3)], ids=repr)
def test_sparse_points_stay_sparse_for_every_kernel_with_a_name(
    rng: np.random.Generator, machine: Any, kernel: str
) -> None:
    X, y = words(rng, 60, 80)
    target = np.asarray(X.sum(axis=1)).ravel() if isinstance(machine, SVR) else y
    ask = "predict" if isinstance(machine, SVR) else "decision_function"
    machine.set_params(kernel=kernel, tol=1e-6, coef0=0.5)
    b = getattr(machine.fit(X.toarray(), target), ask)(X.toarray())
    a = getattr(machine.fit(X, target), ask)(X)
    assert sparse.issparse(machine.support_vectors_)
    np.testing.assert_allclose(a, b, atol=1e-4)


def test_tiers_of_a_descent_agree(rng: np.random.Generator) -> None:
    X, y = words(rng, 80, 50)
    side, squares = np.where(y == "yes", 1.0, -1.0), np.asarray(X.multiply(X).sum(axis=1)).ravel()
    found = []
    for name in ("plain", "compiled"):
        with tier(name):
            found.append(descend(X, squares, side, np.ones(80), 1e-9, -1))
    np.testing.assert_allclose(found[0].alpha, found[1].alpha, atol=1e-9)
    assert found[0].gap <= 1e-9 and found[0].sweeps == found[1].sweeps


@pytest.mark.parametrize("bound", [0.05, 1.0, 50.0])
def test_free_points_go_to_their_minimum_together(rng: np.random.Generator, bound: float) -> None:
    n, d = 40, 4
    X = rng.normal(size=(n, d)) * [1.0, 5.0, 30.0, 100.0]
    K, y = X @ X.T, np.where(X[:, 0] > 0, 1.0, -1.0)
    low, high = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    beta = np.where(rng.random(n) < 0.7, low, 0.5 * (low + high))
    beta[:3] = high[:3]
    f = K @ beta - y

    def objective(b: np.ndarray) -> float:
        return float(0.5 * b @ K @ b - y @ b)

    before, total = objective(beta), beta.sum()
    rise, fall = np.where(beta < high, f, batch_rows.BIG), np.where(beta > low, f, -batch_rows.BIG)
    places = free.free_points(beta, low, high, n)
    assert places.tolist() == np.flatnonzero((beta > low) & (beta < high)).tolist()
    free.minimize_free(places, beta, low, high, K, rise, fall)
    assert objective(beta) < before
    assert beta.sum() == pytest.approx(total, abs=1e-9)
    assert (beta >= low).all()
    assert (beta <= high).all()
    f = K @ beta - y
    grows, falls = beta < high, beta > low
    np.testing.assert_allclose(rise[grows], f[grows], atol=1e-6)
    np.testing.assert_allclose(fall[falls], f[falls], atol=1e-6)
    assert (rise[~grows] > batch_rows.HALF_BIG).all()
    assert (fall[~falls] < -batch_rows.HALF_BIG).all()
    for _ in range(10):  # one call goes through a few bounds only
        free.minimize_free(free.free_points(beta, low, high, n), beta, low, high, K, rise, fall)
    f, inside = K @ beta - y, (beta > low) & (beta < high)
    assert inside.sum() < 2 or np.ptp(f[inside]) < 1e-5


def test_a_narrow_margin_in_few_columns_is_that_of_libsvm(rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 3)) * [1.0, 20.0, 100.0]
    y = np.digitize(X @ [1.0, 0.05, 0.01] + 0.05 * rng.normal(size=300), [-0.7, 0.7])
    ours, theirs = SVC(kernel="linear", tol=1e-5).fit(X, y), sklearn.svm.SVC(kernel="linear", tol=1e-5).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)
