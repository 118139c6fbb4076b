"""Blocks on threads: in order, a few ahead, and given up when nobody wants the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from gramgraph.data.map_reduce import in_order


def test_results_keep_their_order_and_blocks_are_read_late() -> None:
    read = []

    def blocks() -> Iterator[int]:
        for i in range(100):
            read.append(i)
            yield i

    found = in_order(lambda i, more: i + more, blocks(), shared=(5,), n_jobs=2)
    assert next(found) == 5
    assert len(read) <= 4
    assert list(found) == list(range(6, 105))


def test_errors_come_out_and_the_rest_is_given_up() -> None:
    done: list[int] = []

    def work(i: int) -> int:
        done.append(i)
        return 1 // (i - 3)

    with pytest.raises(ZeroDivisionError):
        list(in_order(work, range(1000), n_jobs=2))
    assert len(done) < 20


def test_whoever_closes_it_leaves_no_threads() -> None:
    before = threading.active_count()
    found = in_order(abs, range(1000), n_jobs=2)
    next(found)
    found.close()
    assert threading.active_count() == before
