"""Graphs whose every tree is too wide are told before any order is looked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._numerics.compiling import tier
from gramgraph.compile import width
from gramgraph.compile.lower import lower
from gramgraph.compile.tree import plan_tree
from gramgraph.engines.exact import junction_tree, smaller
from gramgraph.exceptions import BudgetError
from gramgraph.variables import discrete
from tests.portions import examples


def exclusive(n: int, pairs: list[tuple[int, int]]) -> gg.MarkovNetwork:
    """Variables of two states, of which no linked pair may both hold."""
    variables = [discrete(f"v{i}", 2) for i in range(n)]
    tables = {(variables[a], variables[b]): [[1.0, 0.5], [2.0, 0.0]] for a, b in pairs}
    return gg.MarkovNetwork(tables | {(v,): [1.0, 3.0] for v in variables})


def links(n: int, pairs: list[tuple[int, int]]) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(n)]
    for a, b in pairs:
        found[a].add(b)
        found[b].add(a)
    return found


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(2, 12), st.floats(0.1, 1.0), st.integers(0, 10_000))
def test_no_tree_is_narrower(n: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < share]
    with tier("plain"):
        plan = plan_tree(lower(exclusive(n, pairs)), cases=0)
    assert width._least_degree(links(n, pairs)) <= plan.width


def test_the_bound_of_a_clique_and_of_a_grid() -> None:
    clique = list(itertools.combinations(range(9), 2))
    assert width._least_degree(links(9, clique)) == 8
    side = 6
    grid = [(side * r + c, side * r + c + 1) for r in range(side) for c in range(side - 1)]
    grid += [(side * r + c, side * (r + 1) + c) for r in range(side - 1) for c in range(side)]
    assert 3 <= width._least_degree(links(side * side, grid)) <= side


def test_observed_variables_do_not_count() -> None:
    n = width.MOST_VARIABLES + 10
    net = exclusive(n, list(itertools.combinations(range(n), 2)))
    low = lower(net)
    assert width.is_too_wide(low)
    assert not width.is_too_wide(low, np.arange(n) >= 20)
    assert not width.is_too_wide(lower(gg.datasets.asia()))


def test_where_no_tree_fits_none_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    n = width.MOST_VARIABLES + 10
    net = exclusive(n, list(itertools.combinations(range(n), 2)))

    def never(*_: object, **__: object) -> None:
        raise AssertionError("an order was looked for")

    for module in (junction_tree, smaller):
        monkeypatch.setattr(module, "plan_tree", never)
    answer = net.query()
    assert answer.exact and answer.engine == "counting"
    # at most one of them holds: each has the weight of 3 · 0.5^(those before it) · 2^(those after it)
    weights = np.array([3.0 * 0.5**i * 2.0 ** (n - 1 - i) for i in range(n)])
    assert answer.log_evidence == pytest.approx(np.log1p(weights.sum()), rel=1e-10)
    assert answer[net.variables[5]].probabilities[1] == pytest.approx(weights[5] / (1.0 + weights.sum()), rel=1e-9)
    with pytest.raises(BudgetError, match="more than 47 variables"):
        net.query(engine="junction_tree")
