"""Threads beside BLAS: work whose result does not depend on their number, and matrices too small for several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

_Task = TypeVar("_Task")
_Found = TypeVar("_Found")


def in_threads(work: Callable[[_Task], _Found], tasks: Sequence[_Task], n_jobs: int) -> list[_Found]:
    """`work` of every task, in their order; BLAS uses one thread in each while several run.

    Meant for compiled loops and LAPACK, which let other threads run.

    >>> in_threads(lambda x: x * x, [1, 2, 3], 2)
    [1, 4, 9]
    """
    if n_jobs <= 1 or len(tasks) <= 1:
        return [work(task) for task in tasks]
    from concurrent.futures import ThreadPoolExecutor

    with one_thread(), ThreadPoolExecutor(min(n_jobs, len(tasks))) as pool:
        return list(pool.map(work, tasks))


def one_thread() -> AbstractContextManager[Any]:
    """BLAS on one thread: for small matrices several threads are slower, and much slower on a busy machine."""
    return blas_libraries().limit(limits=1)  # type: ignore[no-any-return]


@cache
def blas_libraries() -> Any:
    """The libraries of matrix products; looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
