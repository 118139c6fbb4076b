"""Work on several threads whose result does not depend on their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

    with _blas().limit(limits=1), ThreadPoolExecutor(min(n_jobs, len(tasks))) as pool:
        return list(pool.map(work, tasks))


@cache
def _blas() -> Any:
    """The libraries of matrix products; looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
