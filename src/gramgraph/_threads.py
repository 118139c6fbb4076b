"""Threads beside BLAS: work whose result does not depend on their number, and matrices too small for several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Thread, local
from typing import Any, TypeVar

_Task = TypeVar("_Task")
_Found = TypeVar("_Found")


def in_threads(work: Callable[[_Task], _Found], tasks: Sequence[_Task], n_jobs: int) -> list[_Found]:
    """`work` of every task, in their order; BLAS uses one thread in each while several run.

    Meant for compiled loops and LAPACK, which let other threads run. The caller's thread works as well: it is there
    already, and so is its memory. After an error nothing new is begun, and the first task's error is raised.

    >>> in_threads(lambda x: x * x, [1, 2, 3], 2)
    [1, 4, 9]
    """
    if n_jobs <= 1 or len(tasks) <= 1:
        return [work(task) for task in tasks]
    found: list[Any] = [None] * len(tasks)
    todo, errors = iter(range(len(tasks))), dict[int, BaseException]()

    def take() -> None:
        at = -1
        try:
            for at in todo:  # shared by all threads
                found[at] = work(tasks[at])
        except BaseException as error:
            errors[at] = error
            list(todo)

    helpers = [Thread(target=take) for _ in range(min(n_jobs, len(tasks)) - 1)]
    with one_thread():
        for helper in helpers:
            helper.start()
        try:
            take()
            for helper in helpers:
                helper.join()
        finally:  # an interrupt while waiting: nothing new is begun, and nothing goes on behind the caller's back
            list(todo)
            for helper in helpers:
                helper.join()
    if errors:
        raise errors[min(errors)]
    return found


class _Spare(local):
    """Threads that wait for parts of what this thread does."""

    pool: ThreadPoolExecutor | None = None


_SPARE = _Spare()


@contextmanager
def spare_threads(n_jobs: int) -> Iterator[None]:
    """Inside, `at_once` of this thread uses so many threads, and BLAS one in each."""
    if n_jobs <= 1:
        yield
        return
    before = _SPARE.pool
    with one_thread(), ThreadPoolExecutor(n_jobs - 1) as _SPARE.pool:
        try:
            yield
        finally:
            _SPARE.pool = before


def at_once(*parts: Callable[[], object]) -> None:
    """Do all parts, on the spare threads of this one (`spare_threads`) if it has any: long calls that let others run.

    >>> made = []
    >>> with spare_threads(2):
    ...     at_once(lambda: made.append("a"), lambda: made.append("b"))
    >>> sorted(made)
    ['a', 'b']
    """
    if _SPARE.pool is None:
        for part in parts:
            part()
        return
    others = [(_SPARE.pool.submit(part), part) for part in parts[1:]]
    try:
        parts[0]()
        for other, part in reversed(others):
            if other.cancel():  # nobody has begun it: all are busy with parts of something larger
                part()
    finally:
        for other, _ in others:
            if not other.cancel():
                other.result()


def one_thread() -> AbstractContextManager[Any]:
    """BLAS on one thread: for small matrices several threads are slower, and much slower on a busy machine."""
    return blas_libraries().limit(limits=1)  # type: ignore[no-any-return]


@cache
def blas_libraries() -> Any:
    """The libraries of matrix products; looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
