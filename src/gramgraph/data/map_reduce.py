"""One way to work through blocks: one after the other, on threads, or on a Dask cluster, with the same result."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from gramgraph._validation import check_jobs
from gramgraph.exceptions import ModelError, OptionError

Block = TypeVar("Block")
Found = TypeVar("Found")
Total = TypeVar("Total")

#: How often a task that failed with its worker is given to another one.
RETRIES = 5


def map_reduce(
    function: Callable[[Block], Found],
    blocks: Iterable[Block],
    combine: Callable[[Total, Found], Total],
    initial: Total,
    *,
    n_jobs: int = 1,
    client: Any = None,
) -> Total:
    """combine(… combine(initial, f(block 1)) …, f(block n)), always in the order of the blocks.

    Serial; with `n_jobs` on threads; with a `client` (`distributed.Client`) on its workers, where a block that is lost
    with its worker is worked on again. Sums of floats therefore do not depend on where the blocks were.

    Parameters
    ----------
    function : of one block.
    blocks : what it is called with.
    combine : (total, found) to the new total.
    initial : the total before the first block.
    n_jobs : number of threads; -1 for one per processor.
    client : a `distributed.Client` on whose workers the blocks are worked on, or None.

    Examples
    --------
    >>> map_reduce(len, ["a", "bcd", "ef"], int.__add__, 0)
    6
    """
    total = initial
    for found in in_order(function, blocks, n_jobs=n_jobs, client=client):
        total = combine(total, found)
    return total


def in_order(
    function: Callable[..., Found],
    blocks: Iterable[Any],
    *,
    shared: tuple[Any, ...] = (),
    n_jobs: int = 1,
    client: Any = None,
) -> Generator[Found, None, None]:
    """function(block, *shared) for block after block; a few blocks ahead are worked on, the others are not read yet.

    What all tasks share is sent to a cluster once, and sent again when it is lost with a worker.
    """
    n_jobs = check_jobs(n_jobs)
    if client is not None:
        yield from _on_cluster(function, blocks, shared, find_client(client))
    elif n_jobs == 1:
        for block in blocks:
            yield function(block, *shared)
    else:
        yield from _on_threads(function, blocks, shared, n_jobs)


def _on_threads(
    function: Callable[..., Any], blocks: Iterable[Any], shared: tuple[Any, ...], n_jobs: int
) -> Iterator[Any]:
    """As many blocks wait for a thread as are worked on: no thread is idle while the next block is read."""
    waiting: deque[Any] = deque()
    pool = ThreadPoolExecutor(n_jobs)
    try:
        for block in blocks:
            waiting.append(pool.submit(function, block, *shared))
            if len(waiting) >= 2 * n_jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # after Ctrl-C or an error nobody waits for the rest
        pool.shutdown(cancel_futures=True)


def find_client(client: Any) -> Any:
    """The `distributed.Client`: itself, or the one for the address of a scheduler."""
    if isinstance(client, str):
        found = _connected(client)
        if found.status != "running":  # closed since: connect again
            _connected.cache_clear()
            found = _connected(client)
        return found
    if not all(hasattr(client, name) for name in ("submit", "compute", "nthreads")):
        raise OptionError(f"client is a distributed.Client or the address of a scheduler, not {type(client).__name__}")
    return client


@lru_cache(maxsize=4)
def _connected(address: str) -> Any:
    """One connection for all calls with the same address; it does not become Dask's default."""
    try:
        from distributed import Client
    except ImportError:
        raise OptionError("client needs Dask: pip install 'gramgraph[scale]'") from None
    try:
        return Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"no Dask scheduler answers at {address!r}: {error}") from None


def _on_cluster(
    function: Callable[..., Any], blocks: Iterable[Any], shared: tuple[Any, ...], client: Any
) -> Iterator[Any]:
    """A window of tasks slides over the blocks, so that neither the scheduler nor we hold all of them."""
    with warnings.catch_warnings():  # a large value in a task, unlike one that is scattered, survives its worker
        warnings.filterwarnings("ignore", "Sending large graph")
        shared = tuple(client.submit(_itself, value, pure=False, retries=RETRIES) for value in shared)
    width = 2 * max(sum(client.nthreads().values()), 2)
    waiting: deque[Any] = deque()
    try:
        for block in blocks:
            waiting.append(client.submit(function, block, *shared, pure=False, retries=RETRIES))
            if len(waiting) >= width:
                yield result_of(waiting.popleft())
        while waiting:
            yield result_of(waiting.popleft())
    finally:  # after Ctrl-C or an error nobody waits for the rest
        if waiting:
            client.cancel(list(waiting))


def _itself(value: Any) -> Any:
    return value


def result_of(future: Any) -> Any:
    """What a task found; a sentence where its workers died of it again and again."""
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise ModelError(
            f"the workers of the cluster died {getattr(error, 'allowed_failures', 'several')} times in the middle of "
            "the same task, most likely for want of memory: use smaller partitions or larger workers"
        ) from None
    except CancelledError as error:
        raise ModelError(f"the cluster gave the work up ({error}): is its scheduler still alive?") from None
