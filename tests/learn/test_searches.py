"""Greedy equivalence search, orders, hybrids and exact search: against brute force, against each other, constraints."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data import Counts, code_table
from gramgraph.graphs import Digraph, cpdag
from gramgraph.learn.exact_search import best_graph
from gramgraph.learn.ges import _Search as Classes
from gramgraph.learn.ges import ges
from gramgraph.learn.scores import FamilyScores
from gramgraph.learn.search import Constraints
from gramgraph.testing.random_models import random_bayesian_network
from tests.portions import first, seeds

SEARCHES = ("hill_climb", "tabu", "ges", "order", "exact", "mmhc")


def strong_network(seed: int, n: int) -> gg.BayesianNetwork:
    """Binary variables whose parents matter a lot, so that moderate data show every edge."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for a, b in itertools.combinations(range(n), 2) if rng.random() < 2.2 / n]
    parents = {f"v{b}": [f"v{a}" for a, c in edges if c == b][:3] for b in range(n)}
    cpds = {}
    for name, above in parents.items():
        weights = rng.choice([-1.0, 1.0], len(above)) * rng.uniform(1.2, 2.0, len(above))
        rows = np.array(list(itertools.product([-1, 1], repeat=len(above)))).reshape(2 ** len(above), len(above))
        p = 1 / (1 + np.exp(-(rows @ weights + rng.uniform(-0.3, 0.3))))
        cpds[name] = np.stack([1 - p, p], axis=-1).reshape([2] * len(above) + [2])
    return gg.BayesianNetwork(parents, cpds=cpds)


def best_by_orders(scores: FamilyScores, n: int) -> float:
    best = {
        (v, inside): max(scores.family(v, s) for k in range(len(inside) + 1) for s in itertools.combinations(inside, k))
        for v in range(n)
        for size in range(n)
        for inside in itertools.combinations([u for u in range(n) if u != v], size)
    }
    return max(
        sum(best[v, tuple(sorted(order[:i]))] for i, v in enumerate(order))
        for order in itertools.permutations(range(n))
    )


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("score", ["bic", "aic", "bdeu", "k2", "fnml", "log_likelihood"])
def test_exact_search_is_the_best_of_all_graphs_on_five_variables(seed, score) -> None:
    frame = random_bayesian_network(np.random.default_rng(seed), 5).sample(150, random_state=seed)
    scores = FamilyScores(Counts(code_table(frame)), score, equivalent_sample_size=2.0)
    found = scores.total(best_graph(scores, 5, Constraints.none(5)).parents)
    assert found == pytest.approx(best_by_orders(scores, 5), abs=1e-8)


@pytest.mark.parametrize("score", ["bic", "bdeu", "k2", "fnml"])
def test_nothing_that_is_cut_off_would_have_been_better(score) -> None:
    frame = gg.datasets.asia().sample(400, random_state=3)[["smoke", "lung", "bronc", "either", "dysp", "xray"]]
    scores = FamilyScores(Counts(code_table(frame)), score)
    for child in range(6):
        others = [v for v in range(6) if v != child]
        sets = [s for k in range(6) for s in itertools.combinations(others, k)]
        for inside in sets:
            within = max(scores.family(child, s) for s in sets if set(s) <= set(inside))
            if scores.closed(child, inside, within):
                beyond = [scores.family(child, s) for s in sets if set(s) > set(inside)]
                assert max(beyond, default=-np.inf) <= within + 1e-9


def test_exact_search_in_layers_with_a_wide_group() -> None:
    rng = np.random.default_rng(1)
    x = rng.random((60, 16)) < 0.5
    x[:, 1:] ^= x[:, :-1] & (rng.random((60, 15)) < 0.7)
    frame = pd.DataFrame(x.astype(int), columns=[f"v{i}" for i in range(16)])
    net = gg.learn_structure(frame, method="exact", score="aic", max_parents=2)
    for method in ("hill_climb", "tabu", "order", "ges"):
        other = gg.learn_structure(frame, method=method, score="aic", max_parents=2)
        assert other.report.score <= net.report.score + 1e-9
    assert net.report.score == pytest.approx(gg.learn.score(net, frame, "aic"))


@pytest.mark.parametrize("seed", range(8))
def test_ges_finds_the_class_that_made_the_data(seed) -> None:
    truth = strong_network(seed, 8)
    frame = truth.sample(60_000, random_state=seed)
    found = gg.learn_structure(frame[list(truth.variables)], method="ges")
    assert found.is_equivalent(truth)
    assert found.report.equivalence_class == found.cpdag()
    assert found.report.trace[-1] == pytest.approx(found.report.score)


@pytest.mark.parametrize("seed", range(6))
def test_gains_of_steps_between_classes_are_differences_of_scores(seed) -> None:
    truth = random_bayesian_network(np.random.default_rng(seed), 6)
    scores = FamilyScores(Counts(code_table(truth.sample(300, random_state=seed))), "bdeu")
    search = Classes(
        scores, Constraints.none(6), cpdag(Digraph.from_edges(6, truth.graph.edges())), list(truth.parent_positions)
    )
    start = scores.total(search.parents)
    seen = 0
    for step in (*search.inserts(), *search.deletes(all_gains=True)):
        after = search.after(step)
        if after is not None:
            seen += 1
            assert scores.total(after[1]) - start == pytest.approx(step[0], abs=1e-7)
            edges = [(p, v) for v, found in enumerate(after[1]) for p in found]
            assert cpdag(Digraph.from_edges(6, edges)) == after[0]
    assert seen > 3


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_ges_and_orders_are_no_worse_than_hill_climbing(seed, score) -> None:
    frame = random_bayesian_network(np.random.default_rng(seed), 9).sample(500, random_state=seed)
    climbed = gg.learn_structure(frame, score=score).report.score
    for method in ("ges", "order"):
        assert gg.learn_structure(frame, method=method, score=score).report.score >= climbed - 1e-9


def test_alarm(shared_data) -> None:
    frame = gg.read(shared_data / "bn" / "alarm.bif.gz").sample(2000, random_state=0)
    climbed = gg.learn_structure(frame).report.score
    assert gg.learn_structure(frame, method="ges").report.score >= climbed - 1e-9


@pytest.mark.parametrize("methods", first(1, [("hill_climb", "tabu"), ("hill_climb", "ges", "order", "mmhc")]))
def test_sachs(shared_data, methods) -> None:
    from scipy.io import loadmat

    sachs = pd.DataFrame(loadmat(shared_data / "bn_data" / "sachs_discretized.mat")["X"])
    sachs.columns = [f"v{i}" for i in range(11)]
    best = gg.learn_structure(sachs, method="exact").report.score
    tried = {m: gg.learn_structure(sachs, method=m).report.score for m in methods}
    assert max(tried.values()) <= best + 1e-6
    assert tried.get("ges", np.inf) >= tried["hill_climb"] - 1e-9
    assert best == pytest.approx(-36943.41, abs=0.01)


def test_mmhc_finds_asia() -> None:
    frame = gg.datasets.asia().sample(20_000, random_state=1)
    found = gg.learn_structure(frame, method="mmhc", alpha=0.01)
    best = gg.learn_structure(frame, method="exact")
    assert found.report.score == pytest.approx(best.report.score, abs=1e-6)


@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_every_search_keeps_every_constraint(method, seed) -> None:
    frame = gg.datasets.asia().sample(1500, random_state=seed)
    order = list(np.random.default_rng(seed).permutation(frame.columns))
    required = [(order[0], order[4]), (order[1], order[5])]
    forbidden = [(order[2], order[3]), (order[3], order[2]), (order[6], order[7])]
    tiers = [order[:3], order[3:5], order[5:]]
    net = gg.learn_structure(frame, method=method, required=required, forbidden=forbidden, tiers=tiers, max_parents=2)
    rank = {name: level for level, names in enumerate(tiers) for name in names}
    assert set(required) <= set(net.edges)
    assert not set(forbidden) & set(net.edges)
    assert all(rank[a] <= rank[b] for a, b in net.edges)
    assert max(len(net.parents(v)) for v in net.variables) <= 2


def test_searches_do_not_depend_on_the_order_of_columns() -> None:
    frame = strong_network(3, 7).sample(5000, random_state=0)
    for method in ("ges", "exact"):
        first = gg.learn_structure(frame, method=method)
        again = gg.learn_structure(frame[list(frame.columns)[::-1]], method=method)
        assert first.report.score == pytest.approx(again.report.score, abs=1e-8)


def test_steps_can_be_bounded_and_are_told() -> None:
    frame = gg.datasets.asia().sample(2000, random_state=0)
    told: list[int] = []
    net = gg.learn_structure(frame, method="ges", max_steps=3, progress=lambda done, total: told.append(done))
    assert len(net.report.moves) == 3 and told == [1, 2, 3]
    assert {move[0] for move in net.report.moves} == {"insert"}
    swaps = gg.learn_structure(frame, method="order", restarts=2, random_state=1)
    assert swaps == gg.learn_structure(frame, method="order", restarts=2, random_state=1)
    with pytest.raises(gg.OptionError, match="restarts"):
        gg.learn_structure(frame, method="order", restarts=-1)
    with pytest.raises(gg.OptionError, match="structural_em"):
        gg.learn_structure(frame, hidden={"h": 2})


def test_too_many_sets_of_parents_are_refused_with_a_remedy(monkeypatch) -> None:
    monkeypatch.setattr("gramgraph.learn.parent_sets.MAX_SETS", 50)
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 10)), columns=list("abcdefghij"))
    with pytest.raises(gg.OptionError, match="max_parents"):
        gg.learn_structure(frame, method="exact", score="log_likelihood")
    few_sets(monkeypatch, 2)
    with pytest.raises(gg.OptionError, match=r"max_parents.*time_limit"):
        gg.learn_structure(frame, method="exact", score="log_likelihood", max_parents=1)
    net = gg.learn_structure(frame, method="exact", score="log_likelihood", max_parents=1, time_limit=60)
    assert net.report.gap > 0 and not net.report.interrupted


def few_sets(monkeypatch, width: int, pattern: int = 2) -> None:
    """As if there were memory for so many sets of variables of one size, and for small tables of the bound."""
    monkeypatch.setattr("gramgraph.learn.exact_search.MAX_STATES", width)
    monkeypatch.setattr("gramgraph.learn.order_layers.PATTERN", pattern)


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("width", [1, 3, 1000])
def test_the_bound_holds_however_few_sets_are_kept(seed, width, monkeypatch) -> None:
    frame = random_bayesian_network(np.random.default_rng(seed), 6).sample(100, random_state=seed)
    scores = FamilyScores(Counts(code_table(frame)), "aic")
    best = best_by_orders(scores, 6)
    few_sets(monkeypatch, width)
    found = best_graph(scores, 6, Constraints.none(6), time_limit=60)
    total = scores.total(found.parents)
    assert total <= best + 1e-8 <= found.bound + 2e-8
    assert width < 1000 or total == found.bound == pytest.approx(best, abs=1e-8)


def test_a_full_table_of_sets_is_cut_to_the_best(monkeypatch) -> None:
    frame = random_bayesian_network(np.random.default_rng(3), 12).sample(80, random_state=3)
    scores = FamilyScores(Counts(code_table(frame)), "aic")
    constraints = Constraints(np.zeros((12, 12), bool), np.eye(12, dtype=bool), 2)
    best = best_graph(scores, 12, constraints)
    assert best.bound == pytest.approx(scores.total(best.parents))
    few_sets(monkeypatch, 40)
    monkeypatch.setattr("gramgraph.learn.order_layers._places", lambda items: 128)
    found = best_graph(scores, 12, constraints, time_limit=60)
    assert scores.total(found.parents) <= best.bound + 1e-8 <= found.bound + 2e-8


def test_when_the_time_is_over_the_gap_is_told() -> None:
    frame = random_bayesian_network(np.random.default_rng(0), 24).sample(150, random_state=0)
    net = gg.learn_structure(frame, method="exact", score="aic", max_parents=2, time_limit=1e-9)
    assert net.report.interrupted and net.report.gap > 0
    assert net.report.bound == net.report.score + net.report.gap
    assert net.report.score >= gg.learn_structure(frame, score="aic", max_parents=2).report.score
    small = gg.learn_structure(frame[list(frame.columns[:6])], method="exact", time_limit=60)
    assert small.report.gap == 0 and not small.report.interrupted
    with pytest.raises(gg.OptionError, match="time_limit"):
        gg.learn_structure(frame, method="exact", time_limit=-1)
    with pytest.raises(gg.OptionError, match="time_limit"):
        gg.learn_structure(frame, time_limit=5)


def test_ctrl_c_in_exact_search_keeps_the_best_graph(monkeypatch) -> None:
    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gramgraph.learn.order_layers._next_layer", stop)
    net = gg.learn_structure(gg.datasets.asia().sample(500, random_state=0), method="exact")
    assert net.report.interrupted and net.edges and net.report.gap is not None


@pytest.mark.slow
def test_insurance_with_27_variables_is_solved(shared_data) -> None:
    net = gg.read(shared_data / "bn" / "insurance.bif.gz")
    learned = gg.learn_structure(net.sample(2000, random_state=0), method="exact", max_parents=3)
    assert learned.report.gap == 0 and not learned.report.interrupted
    assert learned.report.score == pytest.approx(-27860.627, abs=1e-3)


def test_ctrl_c_keeps_the_best_class(monkeypatch) -> None:
    frame = gg.datasets.asia().sample(2000, random_state=0)
    scores = FamilyScores(Counts(code_table(frame)), "bic")

    def tell(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    parents, moves = ges(scores, Constraints.none(8), [()] * 8, tell=tell)
    assert len(moves) == 2 and sum(map(len, parents)) == 2
