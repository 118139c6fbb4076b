"""Work that is mostly Python, on processes: threads would wait for each other, as Python runs on one at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from gramgraph._validation import check_jobs
from gramgraph.data.map_reduce import Found, in_order
from gramgraph.exceptions import ModelError

#: Seconds until new processes have imported what they need, and until those of an earlier call are told what to do.
BEGIN, GO_ON = 2.0, 0.3
#: Seconds of the first block that the next ones may not take, as it may compile its loops.
COMPILING = 10.0
#: Seconds without work after which processes may have ended (joblib's own number is 300).
KEPT = 240.0

#: Number of processes → when they had work last.
_SEEN: dict[int, float] = {}


def on_processes(
    function: Callable[..., Found],
    blocks: Sequence[Any],
    *,
    shared: tuple[Any, ...] = (),
    n_jobs: int = 1,
    client: Any = None,
) -> Generator[Found, None, None]:
    """function(block, *shared) for block after block; with a `client` on the workers of a Dask cluster.

    The first ones are worked on here, and timed. As soon as processes would save more time on the others than it takes
    to begin them, these go to processes, which joblib keeps for the next call.

    >>> list(on_processes(pow, [2, 3], shared=(2,)))
    [4, 9]
    """
    n_jobs = check_jobs(n_jobs)
    if client is not None:
        yield from in_order(function, blocks, shared=shared, client=client)
        return
    for done, block in enumerate(blocks, 1):
        start = time.perf_counter()
        found = function(block, *shared)
        took = time.perf_counter() - start - (COMPILING if done == 1 else 0.0)
        yield found
        if n_jobs > 1 and took * (len(blocks) - done) * (1.0 - 1.0 / n_jobs) > _price(n_jobs):
            yield from _by_joblib(function, blocks[done:], shared, n_jobs)
            return


def _price(n_jobs: int) -> float:
    there = time.monotonic() - _SEEN.get(n_jobs, -KEPT) < KEPT
    return GO_ON if there else BEGIN


def _by_joblib(
    function: Callable[..., Any], blocks: Sequence[Any], shared: tuple[Any, ...], n_jobs: int
) -> Iterator[Any]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    found = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(each, *shared) for each in blocks)
    try:
        for each in found:  # noqa: UP028
            yield each  # where nobody asks on, `found` is closed below, not here
        _SEEN[n_jobs] = time.monotonic()
    except TerminatedWorkerError:
        raise ModelError(
            "a process died in the middle of its work, most likely for want of memory: use fewer (n_jobs)"
        ) from None
    finally:
        with warnings.catch_warnings():  # that some tasks were begun in vain
            warnings.simplefilter("ignore", UserWarning)
            found.close()
