"""Orders restricted to some of their variables: every kept variable and factor still has a clique."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.compile.ordering import Order, _with_rest
from tests.portions import examples


def hopeless(n: int, first: int) -> Order:
    """The order of a complete graph whose search was given up after `first` variables."""
    cliques = [np.arange(i, n) for i in range(first)]
    ptr = np.cumsum([0, *map(len, cliques)])
    idx = np.concatenate(cliques) if cliques else np.zeros(0, np.int64)
    return _with_rest(Order(np.arange(first), ptr, idx, 0, False), n)


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(2, 8), st.data())
def test_an_order_that_was_given_up_loses_no_variable(n: int, data: st.DataObject) -> None:
    order = hopeless(n, data.draw(st.integers(0, n - 1)))
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), np.uint8)
    some = order.among(keep)
    cliques = [set(some.idx[a:b].tolist()) for a, b in itertools.pairwise(some.ptr.tolist())]
    kept = np.flatnonzero(keep).tolist()
    assert len(cliques) == len(some.order)
    assert set().union(*cliques) == set(kept)
    assert all(any({a, b} <= clique for clique in cliques) for a, b in itertools.combinations(kept, 2))
    assert all(v in clique for v, clique in zip(some.order.tolist(), cliques, strict=True))
