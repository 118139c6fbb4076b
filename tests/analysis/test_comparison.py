"""Graphs side by side."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.testing.random_models import random_bayesian_network
from tests.portions import examples

matplotlib.use("Agg")


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_distance_by_the_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (random_bayesian_network(rng, 6, density=0.5) for _ in range(2))
    found, back = gg.compare(a, b), gg.compare(b, a)
    A, B = (np.array([[(p, q) in set(net.edges) for q in a.variables] for p in a.variables]) for net in (a, b))
    joined = (A | A.T) ^ (B | B.T)
    turned = (A | A.T) & (B | B.T) & ((A != B) | (A.T != B.T))
    assert found.shd == (joined.sum() + turned.sum()) // 2 == back.shd
    assert (found.precision, found.recall) == (back.recall, back.precision)
    assert (found.cpdag_shd == 0) == a.is_equivalent(b)
    assert set(found.added) == set(back.missing)


def test_what_is_shown_and_refused() -> None:
    found = gg.compare("a -> b -> c", "c -> b -> a")
    assert (found.shd, found.cpdag_shd) == (2, 0)
    assert "reversed" in repr(found)
    assert found.plot() is not None
    assert gg.compare("a -> b", "a -> b").precision == 1.0
    with pytest.raises(gg.VariableError, match="only one of them has c"):
        gg.compare("a -> b", "a -> b -> c")
