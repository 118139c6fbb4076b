"""Exact answers by search with cached components: as the whole joint has them, whatever the tables forbid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._numerics.clauses import search as numerics
from gramgraph._numerics.clauses.arrays import room_for
from gramgraph._numerics.clauses.memory import beliefs
from gramgraph._numerics.compiling import tier
from gramgraph.compile.clauses import boxes, encode, leading
from gramgraph.compile.lower import lower
from gramgraph.compile.tree import TreePlan, plan_tree
from gramgraph.engines import registry
from gramgraph.engines.base import Run
from gramgraph.engines.exact import counting, sparse
from gramgraph.engines.exact.counting import ModelCounting
from gramgraph.engines.fallback import first_choice
from gramgraph.factors import TableFactor
from gramgraph.io.uai_results import read_uai_evidence, read_uai_result
from gramgraph.questions.reading import read
from gramgraph.variables import discrete
from tests.engines.exact.test_sparse import circuit
from tests.portions import examples


@pytest.fixture
def interpreted() -> Iterator[None]:
    """These models are too small for compiled code to pay."""
    with tier("plain"):
        yield


small = pytest.mark.usefixtures("interpreted")


def model(seed: int, n: int, most_states: int, positive: float, kinds: int) -> gg.MarkovNetwork:
    """Tables over two or three variables with many zeros and few different entries; one assignment is possible."""
    rng = np.random.default_rng(seed)
    variables = [discrete(f"v{i}", int(rng.integers(2, most_states + 1))) for i in range(n)]
    sure = [int(rng.integers(v.size)) for v in variables]
    tables = {}
    for scope in [*itertools.combinations(range(n), 3), *itertools.combinations(range(n), 2)]:
        if rng.random() < 2.0 / n:
            shape = [variables[i].size for i in scope]
            values = rng.choice(rng.uniform(0.1, 3.0, kinds), shape) * (rng.random(shape) < positive)
            values[tuple(sure[i] for i in scope)] = 1.0
            tables[tuple(variables[i] for i in scope)] = values
    for i in range(n):
        tables[(variables[i],)] = rng.uniform(0.1, 2.0, variables[i].size)
    return gg.MarkovNetwork(tables)


@small
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 8),
    most_states=st.integers(2, 4),
    positive=st.sampled_from([0.15, 0.4, 0.7, 1.0]),
    kinds=st.integers(1, 3),
)
def test_search_answers_as_the_joint(seed: int, n: int, most_states: int, positive: float, kinds: int) -> None:
    net = model(seed, n, most_states, positive, kinds)
    names = list(net.variables)
    asked = [*names, (names[0], names[-1])]
    found, truth = (net.query(asked, engine=name) for name in ("counting", "enumeration"))
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-10)
    for key in asked:
        np.testing.assert_allclose(found[key].probabilities, truth[key].probabilities, atol=1e-11)


def clause_sum(net: gg.MarkovNetwork, *, keep: bool = True, nodes: int = 5000, steps: float = np.inf):  # type: ignore[no-untyped-def]
    """A search in clauses that nothing was taken out of before: conflicts and impossible parts are met."""
    low = lower(net)
    encoded = encode(low)
    clauses = counting._with_room(encoded, np.zeros(encoded.n), nodes)
    arrays = room_for(clauses, encoded.n_clauses, encoded.n_all, nodes)
    ended, log_z = numerics.search(
        encoded.n_clauses, encoded.n_all, steps, keep, np.zeros(1, np.uint8), arrays[0], clauses, *arrays[1:]
    )
    return encoded, ended, log_z + encoded.log_scale, arrays, clauses


def puzzle(seed: int) -> gg.MarkovNetwork:
    """Random clauses of three literals each, about as many as leave something possible; one assignment surely is."""
    rng = np.random.default_rng(seed)
    variables = [discrete(f"v{i}", 2) for i in range(14)]
    tables = {(v,): rng.uniform(0.2, 1.0, 2) for v in variables}
    for _ in range(45):
        scope = tuple(np.sort(rng.choice(14, 3, replace=False)))
        states = tuple(rng.integers(2, size=3))
        if any(states):  # all in their first state is possible
            key = tuple(variables[i] for i in scope)
            tables.setdefault(key, np.ones((2, 2, 2)))[states] = 0.0
    return gg.MarkovNetwork(tables)


@small
def test_conflicts_are_learned_from_and_impossible_parts_forgotten() -> None:
    met = 0
    for seed in range(12):
        net = puzzle(seed)
        encoded, ended, log_z, (at, _, _, depths, sums), clauses = clause_sum(net)
        truth = net.query(None, engine="junction_tree")
        assert ended == numerics.DONE
        assert log_z == pytest.approx(truth.log_evidence, abs=1e-10)
        tape = sums.share, sums.branches, sums.items, sums.links
        p = beliefs(at, depths.branch[0], clauses.log_literal, *tape)
        for v, name in enumerate(net.variables):
            np.testing.assert_allclose(encoded.belief(v, p), truth[name].probabilities, atol=1e-11)
        met += int(at[numerics.CLAUSES]) > encoded.n_all
    assert met >= 6


@small
def test_clauses_that_contradict_each_other_have_no_sum() -> None:
    """Five pigeons, four holes: nothing is possible, and only a search says so."""
    birds = [discrete(f"p{i}", 4) for i in range(5)]
    net = gg.MarkovNetwork({(a, b): 1.0 - np.eye(4) for a, b in itertools.combinations(birds, 2)})
    assert clause_sum(net)[1] == numerics.IMPOSSIBLE
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query(None, engine="counting")
    fits = gg.MarkovNetwork({(a, b): 1.0 - np.eye(4) for a, b in itertools.combinations(birds[:4], 2)})
    assert fits.query(None, engine="counting").log_evidence == pytest.approx(np.log(24.0))


@small
@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3, 2), (1, 1)])
def test_tables_of_zeros_leave_nothing_possible(sizes: tuple[int, ...]) -> None:
    """Each of two tables allows what the other one forbids; together they are a table of zeros."""
    variables = tuple(discrete(f"x{i}", size) for i, size in enumerate(sizes))
    odd = np.indices(sizes).sum(axis=0) % 2
    net = gg.MarkovNetwork(factors=[TableFactor(variables, 1.0 * (odd == k)) for k in (0, 1)])
    for asked in (None, [("x0", "x1")]):
        with pytest.raises(gg.ImpossibleEvidenceError):
            net.query(asked, engine="counting")
    zeros = gg.MarkovNetwork(factors=[TableFactor(variables, np.zeros(sizes))])
    encoded = encode(lower(zeros))
    assert encoded.log_scale == -np.inf and np.diff(encoded.first).all()  # no clause is empty
    if encoded.n:
        assert clause_sum(zeros)[1] == numerics.IMPOSSIBLE


@small
def test_limits_of_steps_and_of_room() -> None:
    net = model(3, 10, 3, 0.8, 2)
    assert clause_sum(net, steps=50.0)[1] == numerics.OUT_OF_STEPS
    assert clause_sum(net, nodes=3)[1] == numerics.OUT_OF_ROOM
    with pytest.raises(gg.BudgetError, match="clauses of the tables alone"):
        ModelCounting().answer(net, read(net, None, {}), Run(memory=1000.0))
    with pytest.raises(gg.BudgetError, match="search"):
        ModelCounting().answer(net, read(net, None, {}), Run(seconds=1e-6))


@small
def test_room_grows_where_it_was_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model(3, 10, 3, 0.8, 2)
    whole = net.query(None, engine="counting")
    monkeypatch.setattr(counting, "FIRST_NODES", 2)
    again = net.query(None, engine="counting")
    assert again.log_evidence == pytest.approx(whole.log_evidence, abs=1e-12)
    for name in net.variables:
        np.testing.assert_allclose(again[name].probabilities, whole[name].probabilities, atol=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(2, 4), min_size=2, max_size=4), st.floats(0.1, 1.0))
def test_boxes_cover_a_table(seed: int, shape: list[int], positive: float) -> None:
    """Each entry is the usual one times the weights of the boxes around it."""
    rng = np.random.default_rng(seed)
    table = rng.choice([1.0, 0.25, 3.0], shape) * (rng.random(shape) < positive)
    table.flat[int(rng.integers(table.size))] = 0.5
    for each in (table, np.zeros(shape)):
        found, usual = boxes(each)
        made = np.full(shape, np.exp(usual))
        for box, weight in found:
            made[np.ix_(*box)] *= np.exp(weight)
        np.testing.assert_allclose(made, each, rtol=1e-12)


def test_a_gate_is_four_clauses_and_its_rows_that_matter() -> None:
    """x = a and b forbids x with a false, x with b false, and not-x with both: three boxes."""
    gate = np.zeros((2, 2, 2))
    for a, b in itertools.product((0, 1), repeat=2):
        gate[a, b, a & b] = 1.0
    assert {box for box, _ in boxes(gate)[0]} == {((0,), (0, 1), (1,)), ((0, 1), (0,), (1,)), ((1,), (1,), (0,))}


def test_the_middle_of_a_tree_leads() -> None:
    chain = gg.MarkovNetwork(
        {(discrete(f"x{i}", 2), discrete(f"x{i + 1}", 2)): np.array([[0.5, 0.2], [0.1, 0.9]]) for i in range(30)}
    )
    low = lower(chain)
    first = int(leading(plan_tree(low).tree, 31).argmax())
    assert 10 <= first <= 20


def test_auto_counts_where_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a random circuit, all of whose gates hang on six inputs: the tree is far too wide."""
    monkeypatch.setattr(registry, "QUICK_ROWS", 0.0)
    net, rows, logs = circuit(0, 6, 80)
    watched = [30, 50, 70]
    seen = {f"w{i}": str(rows[23, i]) for i in watched}
    plan = gg.plan(net, None, list(seen))
    assert plan.engine == "counting" and plan.bytes > 1e9 and "exact search" in plan.reason
    weights = np.exp(logs) * (rows[:, watched] == rows[23, watched]).all(axis=1)
    found = net.query(None, seen)
    assert found.exact and found.engine == "counting"
    assert found.log_evidence == pytest.approx(np.log(weights.sum()), abs=1e-10)
    expected = weights @ rows / weights.sum()
    for i in set(range(86)) - set(watched):
        assert found[f"w{i}"].probabilities[1] == pytest.approx(expected[i], abs=1e-10)


def test_what_does_not_end_is_as_large_as_its_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither search nor rows nor a tree within their limits: all are tried, and the tree tells what it would take."""
    net, rows, _ = circuit(0, 6, 80)
    monkeypatch.setattr(TreePlan, "check_budget", _too_large)
    monkeypatch.setattr(counting, "MOST_STEPS", 10.0)
    monkeypatch.setattr(sparse, "MOST_ROWS", 10.0)
    asked = read(net, None, {"w70": str(rows[23, 70])})
    for quick in (0.0, 1e12):  # the search goes first, or the rows do
        monkeypatch.setattr(registry, "QUICK_ROWS", quick)
        with pytest.raises(gg.BudgetError, match="too large"):
            first_choice(net, asked, Run())


def _too_large(plan: TreePlan, memory: float | None, lanes: int = 1) -> None:
    raise gg.BudgetError("too large", bytes=1e18)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2006_pe/BN_57", "2014_mar_pr/log-1.cnf", "2014_mar_pr/2bitmax_6.cnf"])
def test_reference_results(name: str, shared_data) -> None:  # type: ignore[no-untyped-def]
    base = shared_data / "uai" / f"{name}.uai"
    net = gg.read(f"{base}.gz")
    evidence = (read_uai_evidence(f"{base}.evid", net) or [{}])[0]
    with tier("compiled"):
        found = net.query(None, evidence, engine="counting")
    assert found.log_evidence == pytest.approx(read_uai_result(f"{base}.PR").log_z, rel=1e-5)
    if (marginals := base.with_name(f"{base.name}.MAR.gz")).is_file():
        for v, p in zip(net.variables, read_uai_result(marginals).marginals, strict=True):
            if v not in evidence:
                np.testing.assert_allclose(found[v].probabilities, p, atol=1e-5)
