"""Searches for best assignments: attained values, true bounds, proofs where they are due."""

from __future__ import annotations

import itertools
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._numerics.best.mini_buckets import mini_bucket_bound
from gramgraph.engines import Run, get_engine
from gramgraph.engines.best import feasible as map_feasible
from gramgraph.engines.best import moves as map_moves
from gramgraph.engines.best import reduction as map_reduction
from gramgraph.engines.best import search as map_search
from gramgraph.engines.best.blocks import Blocks, block_move, elimination_order, whole_order
from gramgraph.engines.best.feasible import allowed_state
from gramgraph.engines.best.max_product import run_once
from gramgraph.engines.best.problem import MapProblem, cases_of
from gramgraph.engines.best.reduction import reduced
from gramgraph.engines.best.search import Climber, Dual, Walker, search
from gramgraph.engines.slices import RESIDUAL, SEQUENTIAL
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.factors import TableFactor
from gramgraph.io.uai_results import read_uai_evidence, read_uai_result
from gramgraph.models import MarkovNetwork
from gramgraph.models.builders import denoising_grid, ising_grid, potts_grid
from gramgraph.questions.reading import read
from gramgraph.testing.random_models import random_bayesian_network, random_markov_network, random_question
from gramgraph.variables import binary, discrete
from tests.portions import examples

SEARCHES = ("icm", "search", "trws")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """What the search needs is compiled before its time is measured."""
    glass(3, 12, 12).map_query(engine="search", time_limit=0.1)


@pytest.fixture(autouse=True)
def own_time(monkeypatch):
    """Limits count the time of this thread alone: how far a search gets does not depend on what else is running."""
    for module in (map_search, map_moves, map_feasible):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.thread_time))


def glass(seed, rows=5, cols=5, field=0.5):
    rng = np.random.default_rng(seed)
    pairs = tuple(rng.normal(size=s) for s in ((rows, cols - 1), (rows - 1, cols)))
    return ising_grid(rows, cols, coupling=pairs, field=field * rng.normal(size=(rows, cols)))


def problem_of(model, evidence=None):
    question = read(model, [], evidence or {})
    found = MapProblem.of(cases_of(model, question), 0)
    assert found is not None
    return found


@pytest.mark.parametrize("engine", SEARCHES)
@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_values_are_attained_and_bounds_hold(engine, seed):
    rng = np.random.default_rng(seed)
    model = random_markov_network(rng, 7) if seed % 2 else random_bayesian_network(rng, 7, max_parents=3, density=0.6)
    question = random_question(rng, model, cases=2, joints=0)
    truth = get_engine("enumeration").best(model, question).log_prob
    states, log_p, bound, _ = get_engine(engine).best(model, question, Run(seconds=0.3))
    for case in np.flatnonzero(np.isfinite(truth)):
        assert log_p[case] <= truth[case] + 1e-9 <= bound[case] + 2e-9
        named = {v: model.states(v)[int(x)] for v, x in zip(model.variables, states[case], strict=True)}
        if not question.likelihoods:
            assert log_p[case] == pytest.approx(model.joint_log_prob(named), abs=1e-8)


def test_the_search_finds_the_best_of_small_glasses_and_beats_the_baseline():
    better = 0
    for seed in range(6):
        model = glass(seed)
        truth, found, first = (model.map_query(engine=e, time_limit=t) for e, t in
                               (("auto", None), ("search", 1.0), ("icm", None)))  # fmt: skip
        assert found.log_prob == pytest.approx(truth.log_prob, abs=1e-9)
        assert found.bound >= truth.log_prob - 1e-9 and found.gap >= 0
        assert first.log_prob <= truth.log_prob + 1e-9 and first.bound == np.inf and not first.exact
        better += found.log_prob > first.log_prob + 1e-9
    assert better >= 4


def test_trees_are_proved_by_their_messages():
    rng = np.random.default_rng(3)
    net = random_bayesian_network(rng, 40, max_parents=1, density=0.9)
    found, truth = net.map_query(engine="trws"), net.map_query()
    assert found.exact and found.log_prob == pytest.approx(truth.log_prob, abs=1e-9)
    assert found.bound == pytest.approx(truth.log_prob, abs=1e-6)


@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_bound_never_rises(seed):
    dual = Dual(problem_of(random_markov_network(np.random.default_rng(seed), 8)))
    bounds = []
    for _ in range(6):
        dual.sweep()
        bounds.append(dual._value())
    assert np.all(np.diff(bounds) <= 1e-8)


@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_moves_never_lose_and_forests_and_blocks_are_exact(seed):
    rng = np.random.default_rng(seed)
    model = random_markov_network(rng, 7)
    problem, sizes = problem_of(model), [len(model.states(v)) for v in model.variables]
    state = np.array([rng.integers(s) for s in sizes])
    climber, value = Climber(problem, rng), problem.value(state)
    for out in (climber.kicks(state, 20, 3), climber.forests(state, 1)):
        assert problem.value(out) >= value - 1e-9
    order = Blocks(problem, rng).choose(4.0, loose=0.2)
    best, trial = -np.inf, state.copy()
    for codes in itertools.product(*(range(sizes[v]) for v in order)):
        trial[order] = codes
        best = max(best, problem.value(trial))
    assert problem.value(block_move(problem, order, state)) == pytest.approx(best, abs=1e-9)


def sparse_network(rng, n, zeros, states=3, hidden=True):
    """A Markov network in which this share of the cells is zero; with `hidden` one assignment at least is allowed."""
    variables = [discrete(f"x{i}", states) for i in range(n)]
    fine = rng.integers(states, size=n)
    factors = []
    for _ in range(n):
        scope = sorted(rng.choice(n, size=3, replace=False).tolist())
        table = np.exp(rng.normal(size=(states,) * 3)) * (rng.random((states,) * 3) >= zeros)
        if hidden:
            table[tuple(fine[scope])] = 0.01
        elif not table.any():
            table[0, 0, 0] = 1.0
        factors.append(TableFactor([variables[v] for v in scope], table))
    return MarkovNetwork(factors=[TableFactor([v], np.ones(states)) for v in variables] + factors)


def brute_force(problem):
    """The best sum of terms of all assignments of a small problem, with its constant."""
    best, trial = -np.inf, problem.start.copy()
    for codes in itertools.product(*(range(problem.sizes[v]) for v in problem.free)):
        trial[problem.free] = codes
        best = max(best, problem.log_prob(trial))
    return best


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), zeros=st.sampled_from([0.0, 0.5, 0.8]))
def test_smaller_problems_have_the_same_best_and_lead_back_to_it(seed, zeros):
    rng = np.random.default_rng(seed)
    problem = problem_of(sparse_network(rng, 6, zeros))
    truth = brute_force(problem)
    small, steps = reduced(problem)
    assert len(small.free) <= len(problem.free)
    order = whole_order(small, 1e6)
    state = block_move(small, order, small.start)
    assert small.log_prob(state) == pytest.approx(truth, abs=1e-9)
    for step in reversed(steps):
        state = step.lift(state)
    assert problem.log_prob(state) == pytest.approx(truth, abs=1e-9)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), zeros=st.sampled_from([0.0, 0.6]), limit=st.sampled_from([1.0, 4.0, 30.0]))
def test_mini_buckets_bound_the_best_and_are_exact_when_whole(seed, zeros, limit):
    rng = np.random.default_rng(seed)
    problem = problem_of(sparse_network(rng, 6, zeros))
    truth = brute_force(problem)
    message = rng.normal(size=int(problem.part.msg_ptr[-1]))  # any messages leave every sum as it is
    order = elimination_order(problem)
    bound = mini_bucket_bound(*problem.tables, *problem.graph, message, order, limit, 10**9) + problem.constant
    assert bound >= truth - 1e-8
    if limit == 30.0:
        assert bound == pytest.approx(truth, abs=1e-8)
    assert mini_bucket_bound(*problem.tables, *problem.graph, message, order, limit, 1) == np.inf


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6), zeros=st.sampled_from([0.5, 0.8, 0.95]), possible=st.booleans())
def test_backtracking_finds_what_is_allowed_or_proves_that_nothing_is(seed, zeros, possible):
    rng = np.random.default_rng(seed)
    model = sparse_network(rng, 7, zeros, hidden=possible)
    question = read(model, [], {})
    problem = MapProblem.of(cases_of(model, question), 0)
    if problem is None:  # propagation alone sees it
        assert not possible
        return
    liked = rng.normal(size=len(problem.log_unary))
    state, impossible = allowed_state(problem, liked, 60.0, rng)
    assert impossible == np.isneginf(brute_force(problem))
    assert impossible or np.isfinite(problem.log_prob(state))


@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_walks_leave_the_sums_as_they_are(seed):
    """Penalties move an assignment about; the best on the way is worth what it says, and not less than the first."""
    rng = np.random.default_rng(seed)
    problem = problem_of(sparse_network(rng, 8, 0.5))
    state = np.array([rng.integers(s) for s in problem.sizes])
    walker = Walker(problem, state, rng)
    for _ in range(5):
        walker.walk(0.01)
    assert problem.value(walker.best) >= problem.value(state)
    assert problem.value(walker.best) + problem.constant <= brute_force(problem) + 1e-9


@pytest.mark.parametrize("whole", [True, False])
def test_models_of_zeros_are_searched_with_bounds(whole, monkeypatch):
    """Four in five cells forbidden: the value is allowed, attained and not above the bound; nearly always the best."""
    if not whole:  # neither exact elimination nor a smaller problem: moves alone
        monkeypatch.setattr(map_search, "MOST_CELLS", 1.0)
        monkeypatch.setattr(map_reduction, "CELLS", 0)
    best = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        problem = problem_of(sparse_network(rng, 8, 0.8))
        truth = brute_force(problem)
        found = search(problem, time_limit=0.3, gap=0.0, rng=rng)
        assert np.isfinite(found.log_prob) and found.log_prob == pytest.approx(problem.log_prob(found.state), abs=1e-12)
        assert found.log_prob <= truth + 1e-9 <= found.bound + 2e-9
        best += found.log_prob >= truth - 1e-9
    assert best == 10


def test_impossible_networks_are_told():
    x, y, z = (binary(v) for v in "xyz")
    odd = MarkovNetwork(factors=[TableFactor(pair, 1.0 - np.eye(2)) for pair in ((x, y), (y, z), (x, z))])
    with pytest.raises(gg.ImpossibleEvidenceError):
        odd.map_query(engine="search", time_limit=0.2)


def test_a_forest_that_is_everything_is_solved():
    net = random_bayesian_network(np.random.default_rng(5), 12, max_parents=1, density=1.0)
    problem = problem_of(net)
    out = Climber(problem, np.random.default_rng(0)).forests(problem.start, 1)
    assert problem.log_prob(out) == pytest.approx(net.map_query().log_prob, abs=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cuts_are_exact(sign):
    """With couplings of one sign a grid has no odd loop, whichever the sign."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        pairs = tuple(sign * rng.uniform(0, 1, size=s) for s in ((6, 5), (5, 6)))
        model = ising_grid(6, 6, coupling=pairs, field=rng.normal(size=(6, 6)))
        found, truth = model.map_query(engine="graph_cut"), model.map_query()
        assert found.log_prob == pytest.approx(truth.log_prob, abs=1e-9)
        assert found.gap < 1e-6
        assert model.map_query(engine="search").exact
    observed = model.map_query({"x0_0": "+1", "x2_2": "-1"}, engine="graph_cut")
    assert observed.log_prob == pytest.approx(model.map_query({"x0_0": "+1", "x2_2": "-1"}).log_prob)


def test_cuts_refuse_other_models():
    with pytest.raises(ModelError, match="odd number of times"):
        glass(1).map_query(engine="graph_cut")
    with pytest.raises(ModelError, match="two states"):
        potts_grid(2, 2, 3).map_query(engine="graph_cut")


@pytest.mark.parametrize("schedule", [SEQUENTIAL, RESIDUAL])
def test_propagation_in_pieces_decides_as_in_one_call(schedule):
    problem = problem_of(sparse_network(np.random.default_rng(4), 8, 0.0))
    given = (problem.cases, problem.part, problem.observed, schedule)
    assert run_once(*given, seconds=60.0).tolist() == run_once(*given).tolist()
    assert run_once(*given, seconds=0.0) is not None


def test_auto_searches_when_too_wide():
    rng = np.random.default_rng(0)
    attractive = denoising_grid(rng.random((36, 36)) < 0.5, coupling=0.6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one cut proves it best: there is nothing to warn of
        assert attractive.map_query().exact and attractive.map_query(time_limit=2.0).exact
    with pytest.warns(UserWarning, match="searched for.*time_limit"):
        found = glass(5, 36, 36).map_query(time_limit=0.5)
    assert not found.exact and found.log_prob < found.bound < np.inf
    for options in ({"memory": 1e6}, {"engine": "junction_tree"}):
        with pytest.raises(gg.BudgetError):
            attractive.map_query(**options)


@pytest.mark.parametrize("engine", ["auto", "search"])
@pytest.mark.parametrize("limits", [{"time_limit": -1}, {"time_limit": "5s"}, {"gap": -0.1}, {"gap": None}])
def test_limits_are_looked_at(engine, limits):
    with pytest.raises(OptionError, match=next(iter(limits))):
        glass(1).map_query(engine=engine, **limits)


def test_tables_of_cases_and_impossible_evidence():
    net = gg.datasets.asia()
    cases = [{"xray": "yes"}, {"smoke": "no"}, {}]
    for engine in ("search", "trws"):
        found, truth = net.map_query(cases, engine=engine, time_limit=0.5), net.map_query(cases)
        np.testing.assert_allclose(found["log_prob"], truth["log_prob"])
    for engine in ("graph_cut", "icm", "search", "trws"):
        if engine != "graph_cut":
            with pytest.raises(gg.ImpossibleEvidenceError):
                net.map_query({"lung": "yes", "either": "no"}, engine=engine)
    x, y, z = (binary(v) for v in "xyz")
    odd = MarkovNetwork(factors=[TableFactor(pair, 1.0 - np.eye(2)) for pair in ((x, y), (y, z), (x, z))])
    with pytest.raises(ModelError, match="no assignment"):
        odd.map_query(engine="trws", time_limit=0.1)


def test_the_same_numbers_every_time():
    model = glass(7, 8, 8)
    assert model.map_query(engine="trws") == model.map_query(engine="trws")


@pytest.mark.parametrize("name", ["Grids_29", "ImageAlignment_12", "Promedas_34"])
def test_instances_of_the_competition(shared_data, name):
    base = shared_data / "uai" / "2014_map" / f"{name}.uai"
    if not base.with_name(base.name + ".gz").is_file():
        pytest.skip(f"no instance {name} in the reference data")
    net = gg.read(base.with_name(base.name + ".gz"))
    evidence = (read_uai_evidence(base.with_name(base.name + ".evid"), net) or [{}])[0]
    states = read_uai_result(base.with_name(base.name + ".MAP")).states
    reference = net.joint_log_prob({v: net.states(v)[x] for v, x in zip(net.variables, states, strict=True)})
    found = net.map_query(evidence, engine="search", time_limit=6.0)
    slack = 0.02 if name.startswith("Grids") else 1e-3  # a glass takes longer; how far it gets depends on the machine
    assert found.log_prob >= reference - slack * abs(reference)
    assert found.bound >= reference - 1e-9


def test_an_interrupt_before_the_search_leaves_the_baseline(monkeypatch):
    def interrupted(problem):
        raise KeyboardInterrupt

    monkeypatch.setattr(map_search, "reduced", interrupted)
    found, baseline = (glass(2).map_query(engine=engine) for engine in ("search", "icm"))
    assert found.log_prob == baseline.log_prob and not found.exact


def test_the_best_so_far_at_an_interrupt(press_ctrl_c, monkeypatch):
    rounds, plain = [], map_search._round

    def third(*args):
        rounds.append(args)
        if len(rounds) == 3:
            press_ctrl_c()
        return plain(*args)

    monkeypatch.setattr(map_search, "_round", third)
    monkeypatch.setattr(map_search, "time", SimpleNamespace(monotonic=lambda: 0.0))  # time will not end it
    model = glass(3, 25, 25)
    found = model.map_query(engine="search", time_limit=2.0)
    assert len(rounds) == 3 and not found.exact
    assert np.isfinite(found.log_prob) and found.log_prob <= found.bound
    assert found.log_prob == pytest.approx(model.joint_log_prob(found.assignment), abs=1e-8)


def test_a_time_limit_is_kept(monkeypatch):
    ticks = itertools.count()

    def watch():  # a hundredth of a second between two looks
        return 0.01 * next(ticks)

    monkeypatch.setattr(map_search, "time", SimpleNamespace(monotonic=watch))
    model = glass(4, 30, 30)
    found = model.map_query(engine="search", time_limit=1.0)
    assert watch() < 1.2  # with what begins and ends it
    assert not found.exact and found.bound > found.log_prob
