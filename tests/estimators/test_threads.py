"""Machines on two threads: the numbers of one."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from gramgraph._numerics.compiling import tier
from gramgraph._threads import at_once, in_threads, spare_threads
from gramgraph.estimators import SVC, GaussianProcessRegressor, KernelPCA, svc_path
from gramgraph.exceptions import GramGraphError
from gramgraph.kernels import RBF, White
from gramgraph.machines.svm import many
from gramgraph.machines.svm.many import _shares, pair_problems


@pytest.fixture
def blobs(rng: np.random.Generator) -> tuple[Any, Any]:
    label = rng.integers(5, size=300)
    return rng.normal(size=(5, 3))[label] + rng.normal(size=(300, 3)), label


def test_tasks_keep_their_order_and_errors_come_out() -> None:
    assert in_threads(lambda x: x * x, range(50), 2) == [x * x for x in range(50)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda x: 1 // x, [1, 0], 2)


def test_the_caller_works_too_and_nothing_is_begun_after_an_error() -> None:
    both = threading.Barrier(2)  # two tasks are under way at the same time, or it breaks

    def name(_: int) -> str:
        both.wait(timeout=60)
        return threading.current_thread().name

    assert threading.current_thread().name in in_threads(name, range(2), 2)
    begun = []

    def fail(x: int) -> None:
        begun.append(x)
        both.wait(timeout=60)
        raise ValueError(f"task {x}")

    before = threading.active_count()
    with pytest.raises(ValueError, match="task 0"):
        in_threads(fail, range(100), 2)
    assert sorted(begun) == [0, 1] and threading.active_count() == before


def test_a_part_waits_for_no_thread_that_is_busy_with_a_larger_one() -> None:
    done, parts = threading.Event(), []

    def larger() -> None:
        assert done.wait(30.0)  # would wait for the smaller parts, which would wait for it

    def smaller() -> None:
        at_once(*(partial(parts.append, i) for i in range(3)))
        done.set()

    with spare_threads(2):
        at_once(smaller, larger)
    assert sorted(parts) == [0, 1, 2]


def test_the_error_of_a_part_is_raised() -> None:
    with spare_threads(2):
        for order in (1, -1):
            with pytest.raises(ZeroDivisionError):
                at_once(*[lambda: 1 // 0, lambda: None][::order])


def test_shares_are_all_problems_once_and_little_work_stays_together(
    rng: np.random.Generator, monkeypatch: Any
) -> None:
    problems = pair_problems(np.sort(rng.integers(7, size=100)), 7)
    assert _shares(problems, 2) == [slice(0, 21)]
    monkeypatch.setattr(many, "_LARGE", 0.0)
    for n_jobs in (2, 3, 50):
        shares = _shares(problems, n_jobs)
        assert [q for share in shares for q in range(share.start, share.stop)] == list(range(21))
        assert len(shares) > 4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"multiclass": "ovr"},
        {"cache_size": 0.1},
        {"kernel": "poly"},
        {"nu": 0.1},
        {"cache_size": 0.1, "multiclass": "ovr"},
    ],
    ids=str,
)
def test_classes_on_two_threads(blobs: Any, monkeypatch: Any, options: dict[str, Any]) -> None:
    monkeypatch.setattr(many, "_LARGE", 0.0)
    with tier("compiled"):  # digits are compared: all by the same loops
        one, two = (SVC(**options, n_jobs=n_jobs).fit(*blobs) for n_jobs in (1, 2))
    np.testing.assert_allclose(one.dual_coef_, two.dual_coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.intercept_, two.intercept_, rtol=1e-9)
    np.testing.assert_array_equal(one.n_iter_, two.n_iter_)


def test_a_grid_on_two_threads(blobs: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(many, "_LARGE", 0.0)
    one, two = (svc_path(*blobs, Cs=[0.1, 1.0], cv=3, gamma=[0.1, 1.0], n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores, two.scores)


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_components_on_two_threads(rng: np.random.Generator, solver: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("gramgraph.machines.kernels._ROWS", 10)
    monkeypatch.setattr("gramgraph.machines.spectrum._MANY", 10)
    X = rng.normal(size=(300, 4))
    one, two = (KernelPCA(3, solver=solver, random_state=0, n_jobs=n_jobs).fit_transform(X) for n_jobs in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-10)


def test_restarts_on_two_threads(rng: np.random.Generator) -> None:
    X = rng.uniform(-3.0, 3.0, size=(60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    kernel = 1.0 * RBF(1.0) + White(0.1)
    found = [
        GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    ]
    assert found[0].log_marginal_likelihood_value_ == pytest.approx(found[1].log_marginal_likelihood_value_, abs=1e-6)
    with pytest.raises(GramGraphError, match="n_jobs"):
        GaussianProcessRegressor(kernel, n_jobs=0).fit(X, y)
