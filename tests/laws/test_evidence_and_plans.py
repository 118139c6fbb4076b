"""More evidence never gives a larger plan: in cells and in bytes, for findings that come one after the other."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.compile.lower import lower
from gramgraph.compile.seen_orders import Part, Size
from gramgraph.compile.tree import TreePlan
from gramgraph.conditionals import Table
from gramgraph.factors import TableFactor
from gramgraph.variables import discrete
from tests.portions import examples

GENERAL = "gramgraph.engines.exact.junction_tree.GENERAL_CELLS"


def grid(seed: int, side: int, states: int) -> gg.MarkovNetwork:
    """A grid with some edges left out."""
    rng = np.random.default_rng(seed)
    at = [[discrete(f"x{i}_{j}", states) for j in range(side)] for i in range(side)]
    pairs = [pair for line in at for pair in itertools.pairwise(line)]
    pairs += [pair for up, low in itertools.pairwise(at) for pair in zip(up, low, strict=True)]
    kept = [pair for pair in pairs if rng.random() < 0.85]
    return gg.MarkovNetwork(factors=[TableFactor(pair, rng.random((states, states)) + 0.1) for pair in kept])


def network(seed: int, n: int) -> gg.BayesianNetwork:
    """A random network of variables with two to four states and up to three parents."""
    rng = np.random.default_rng(seed)
    variables = [discrete(f"v{i}", int(rng.integers(2, 5))) for i in range(n)]
    tables = []
    for i, child in enumerate(variables):
        chosen = rng.choice(i, min(i, int(rng.integers(0, 4))), replace=False) if i else []
        parents = tuple(variables[int(j)] for j in chosen)
        values = rng.random((*(p.size for p in parents), child.size)) + 0.05
        tables.append(Table(child, parents, values / values.sum(-1, keepdims=True)))
    return gg.BayesianNetwork.from_parts(variables, tables)


def clauses(seed: int, n: int) -> gg.MarkovNetwork:
    """Random clauses of three variables, all of which one assignment satisfies."""
    rng = np.random.default_rng(seed)
    variables, truth = [discrete(f"x{i}", 2) for i in range(n)], rng.integers(0, 2, n)
    factors = []
    for _ in range(n + 7):
        chosen, table = rng.choice(n, 3, replace=False), np.ones((2, 2, 2))
        table[tuple(1 - truth[chosen])] = 0.0
        factors.append(TableFactor(tuple(variables[i] for i in chosen), table))
    return gg.MarkovNetwork(factors=factors)


def growing(names: tuple[str, ...], seed: int, steps: int) -> list[list[str]]:
    """Nested sets of observed variables, the empty one first."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(names).tolist()
    ends = np.sort(rng.integers(0, len(names) + 1, steps))
    return [[], *(sorted(order[:end]) for end in ends)]


def tree_of(plan: gg.compile.plan.Plan) -> TreePlan:
    made = plan.structure
    assert isinstance(made, TreePlan)
    return made


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["grid", "network", "small trees", "clauses"]))
def test_findings_one_after_the_other_never_make_a_plan_larger(seed: int, kind: str) -> None:
    """In small trees, too, where observed variables are cut out of them."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "small trees":
            patch.setattr(GENERAL, 0)
        makers = {"grid": partial(grid, side=7, states=3), "clauses": partial(clauses, n=45)}
        net = makers.get(kind, partial(network, n=24))(seed)
        sets = growing(net.variables, seed + 1, 7)
        plans = [gg.plan(net, None, seen, engine="junction_tree") for seen in sets]
        again = [gg.plan(net, None, seen, engine="junction_tree") for seen in reversed(sets)][::-1]
    for made in (plans, again):
        cells, needed = [plan.cells for plan in made], [plan.bytes for plan in made]
        assert cells == sorted(cells, reverse=True)
        assert needed == sorted(needed, reverse=True)
        assert all(told >= tree_of(plan).bytes_for(1) for told, plan in zip(needed, made, strict=True))


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0.02, 0.5))
def test_no_plan_is_larger_than_the_one_with_nothing_observed(seed: int, share: float) -> None:
    """Whichever comes first, also in two models that know nothing of each other."""
    net, again = grid(seed, 7, 3), grid(seed, 7, 3)
    rng = np.random.default_rng(seed)
    seen = [name for name in net.variables if rng.random() < share]
    assert gg.plan(net, None, seen).cells <= gg.plan(again, None).cells


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), wants_all=st.booleans())
def test_one_tree_is_the_plan_of_a_small_model_whatever_is_observed(seed: int, wants_all: bool) -> None:
    names = network(seed, 10).variables
    told = set()
    for seen in growing(names, seed, 4):
        plan = gg.plan(network(seed, 10), None if wants_all else names[-1], seen)
        told.add((plan.cells, plan.bytes, plan.flops, plan.width))
    assert len(told) == 1


@pytest.mark.parametrize("engine", [None, "junction_tree"])
def test_a_tree_of_fewer_cells_and_more_bytes_is_not_taken(engine: str | None) -> None:
    """Its messages and maps may be larger than those of a tree with less observed: then that one's order is taken."""
    options = {} if engine is None else {"engine": engine}
    net = clauses(351, 45)
    sets: list[dict[str, str]] = [{}, {"x26": "0"}, {"x26": "0", "x3": "1"}, {"x26": "0", "x3": "1", "x9": "0"}]
    for _ in range(2):
        plans = [gg.plan(net, None, seen, **options) for seen in sets]
        for told in ([plan.cells for plan in plans], [plan.bytes for plan in plans]):
            assert told == sorted(told, reverse=True)
        assert all(plan.bytes >= tree_of(plan).bytes_for(1) for plan in plans)


def test_a_plan_keeps_to_the_memory_that_one_with_less_observed_has_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables multiplied in beforehand are left out where they would take more; answers stay what they are."""
    monkeypatch.setattr(GENERAL, 0)
    net, seen = grid(3, 8, 3), {"x1_1": "0", "x4_5": "1", "x6_2": "2"}
    freely = tree_of(gg.plan(net, None, seen))
    assert freely.tree.is_static.any()
    net = grid(3, 8, 3)
    low = lower(net)
    whole = Part((low.sizes > 1).view(np.uint8), np.ones(low.n_factors, np.uint8))
    told = freely.bytes_for(1) - 500.0
    low.seen_orders.tell(whole, freely.wants, Size(freely.log_cells, told))
    plan = gg.plan(net, None, seen)
    assert tree_of(plan).bytes_for(1) <= plan.bytes <= told
    assert plan.cells == freely.cells
    assert 0 < tree_of(plan).tree.is_static.sum() < freely.tree.is_static.sum()
    answer, expected = net.query(None, seen, engine="junction_tree"), net.query(None, seen, engine="elimination")
    assert answer.log_evidence == pytest.approx(expected.log_evidence)
    for name in net.variables:
        np.testing.assert_allclose(answer[name].probabilities, expected[name].probabilities, atol=1e-12)
