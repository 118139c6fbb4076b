"""engine="auto" on models that no exact plan fits."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.engines.base import ApproximateWarning, Run
from gramgraph.engines.fallback import approximate_answer
from gramgraph.exceptions import BudgetError, OptionError
from gramgraph.factors import TableFactor
from gramgraph.models.builders import ising_grid
from gramgraph.questions.reading import read
from gramgraph.variables import discrete


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    shapes = (36, 35), (35, 36)
    return ising_grid(36, 36, coupling=tuple(0.3 * rng.normal(size=s) for s in shapes), field=0.1)


@pytest.fixture(scope="module")
def answered(wide):
    with pytest.warns(ApproximateWarning, match="an exact answer needs .*join graphs, converged.*log p.evidence. in "):
        return wide.query("x20_20", {"x0_0": "+1"}, budget="10min")


def test_a_model_too_wide_is_answered_and_says_how(answered):
    answer = answered
    assert not answer.exact and answer.engine == "join_graph" and answer.details["converged"]
    low, high = answer.details["log_evidence_interval"]
    assert low < answer.log_evidence < high
    assert answer.details["exact_bytes"] > 1e12
    assert answer["x20_20"].probabilities.sum() == pytest.approx(1.0)
    assert answer.details["tried"] == {"bp": "converged", "join_graph": "converged"}
    assert "join_graph, approximate" in repr(answer)


@pytest.mark.parametrize(("moved", "engine"), [(0.3, "bp"), (1e-4, "join_graph")])
def test_join_graphs_without_time_do_not_replace_messages_that_settled(monkeypatch, moved, engine):
    from gramgraph.engines.propagation.join_graph import JoinGraph

    whole = JoinGraph.answer

    def stopped(self, model, question, run):
        found = whole(self, model, question, run)
        return found.replace(details={**found.details, "converged": False, "stopped": "budget", "residual": moved})

    monkeypatch.setattr(JoinGraph, "answer", stopped)
    small = ising_grid(5, 5, coupling=0.2, field=0.1)
    question = read(small, ["x2_2"], {"x0_0": "+1"})
    with pytest.warns(ApproximateWarning, match="join graphs, NOT converged"):
        answer = approximate_answer(small, question, BudgetError("too large", clique=("x0_0",), bytes=1e12))
    assert answer.engine == engine and answer.details["tried"]["bp"] == "converged"


def test_tables_of_cases_fall_back_too(wide):
    with pytest.warns(ApproximateWarning):
        answer = wide.query(["x20_20"], [{"x0_0": "+1"}, {"x20_21": "-1"}], budget="10s")
    assert answer["x20_20"].probabilities.shape == (2, 2)
    assert list(answer["x20_20"].to_frame().index) == [0, 1]


def test_named_engines_and_budgets_are_kept(wide):
    for options in ({"engine": "junction_tree"}, {"memory": 1e6}, {"memory": 1e6, "budget": "10s"}):
        with pytest.raises(gg.BudgetError):
            wide.query("x20_20", **options)


@pytest.fixture(scope="module")
def frustrated():
    """Couplings of both signs so strong that messages do not settle."""
    rng = np.random.default_rng(1)
    couplings = tuple(rng.choice([-1.5, 1.5], size=s) for s in ((30, 29), (29, 30)))
    return ising_grid(30, 30, coupling=couplings, field=0.3 * rng.normal(size=(30, 30)))


def test_an_error_that_is_asked_for_is_reached_by_sampling(wide):
    with pytest.warns(ApproximateWarning, match="largest standard error.*; loopy belief propagation, converged"):
        answer = wide.query("x20_20", {"x0_0": "+1"}, error=0.01, random_state=0)
    assert answer.engine == "gibbs" and not answer.exact
    assert answer.details["standard_error"]["x20_20"].max() <= 0.01
    assert "repelling" in answer.details["tried"]["swendsen_wang"]
    assert np.isfinite(answer.details["log_evidence_interval"]).all()


def test_messages_that_do_not_settle_give_way_or_are_told(frustrated):
    with pytest.warns(ApproximateWarning, match="propagation.* NOT converged"):
        answer = frustrated.query("x3_3", random_state=0, budget="1s")
    tried = answer.details["tried"]  # how far the clusters come in a second depends on the machine
    assert tried["bp"] == "NOT converged"
    assert tried.get("join_graph") == "converged" or "gibbs" in tried
    assert np.isfinite(answer["x3_3"].probabilities).all()


def test_an_exact_answer_needs_no_error():
    assert gg.datasets.asia().query("lung", {"xray": "yes"}, error=0.01).exact
    with pytest.raises(gg.OptionError, match="error is a standard error between 0 and 1"):
        gg.datasets.asia().query("lung", error=2)


def test_the_evidence_of_a_wide_model_is_an_estimate_within_bounds(wide, answered, monkeypatch):
    monkeypatch.setattr("gramgraph.engines.fallback.FIRST_SECONDS", 600.0)  # however slow the machine is
    with pytest.warns(ApproximateWarning, match="log p.evidence. in"):
        value = wide.log_evidence({"x0_0": "+1"})
    low, high = answered.details["log_evidence_interval"]
    assert isinstance(value, float) and low <= value <= high
    assert value == pytest.approx(answered.log_evidence, abs=1e-3)
    with pytest.raises(gg.BudgetError):
        wide.log_evidence(memory=1e6)


def test_a_budget_is_looked_at_where_none_is_needed():
    with pytest.raises(OptionError, match="budget"):
        gg.datasets.asia().query("lung", budget="soon")


def test_zeros_are_followed_before_anything_is_approximated(monkeypatch):
    """Chains of copies across a grid of weak couplings: what is left has a node for each chain."""
    from gramgraph.engines import fallback
    from gramgraph.engines.exact import junction_tree, shrinking

    grid = ising_grid(6, 6, coupling=0.3, field=0.1)
    nodes = grid.vars
    copies = [discrete(f"copy of {var.name}", var.states) for var in nodes]
    equal = [TableFactor(pair, np.eye(2)) for pair in zip(nodes, copies, strict=True)]
    net = gg.MarkovNetwork(factors=[*grid.factors(), *equal])
    seen = {"copy of x0_0": "+1"}
    wanted = net.query(["x3_3", "copy of x3_3"], seen)
    sizes = []

    def noted(model, question, *args, **options):
        sizes.append(len(model.vars))
        return approximate(model, question, *args, **options)

    approximate = fallback.approximate_answer
    monkeypatch.setattr(fallback, "approximate_answer", noted)
    monkeypatch.setattr(junction_tree.TreePlan, "check_budget", _too_large)
    again = gg.MarkovNetwork(factors=[*grid.factors(), *equal])
    exact = again.query(["x3_3", "copy of x3_3"], seen)  # from the positive rows alone
    assert exact.engine == "sparse" and exact.exact and not sizes
    assert exact.log_evidence == pytest.approx(wanted.log_evidence, abs=1e-9)
    monkeypatch.setattr(shrinking, "may_help", lambda *_: False)
    with pytest.warns(ApproximateWarning):
        found = again.query(["x3_3", "copy of x3_3"], seen, budget="10min")
    assert sizes == [35] and not found.exact
    low, high = found.details["log_evidence_interval"]
    assert low - 1e-9 <= wanted.log_evidence <= high + 1e-9
    for name in wanted:
        np.testing.assert_allclose(found[name].probabilities, wanted[name].probabilities, atol=0.02)


def _too_large(plan, memory, lanes=1):
    raise BudgetError("too large", bytes=1e18)


def test_without_a_budget_the_first_answer_has_an_end(wide, monkeypatch):
    from gramgraph.engines import fallback

    seen = []
    share = fallback._Time.share

    def noted(time, step):
        seen.append(share(time, step))
        return seen[-1]

    monkeypatch.setattr(fallback, "FIRST_SECONDS", 1.0)
    monkeypatch.setattr(fallback._Time, "share", noted)
    with pytest.warns(ApproximateWarning, match="budget="):
        wide.query("x20_20", {"x0_0": "+1"})
    assert seen and all(run.seconds is not None and run.seconds <= 1.0 for run in seen)


def test_a_time_budget_is_kept(frustrated):
    with pytest.warns(ApproximateWarning):
        answer = frustrated.query("x3_3", random_state=0, budget="500ms")
    assert np.isfinite(answer["x3_3"].probabilities).all()


def test_beliefs_of_a_network_without_findings_come_from_draws():
    """Messages settle in one pass there, and log p = 0 is within all bounds: neither tells how far off beliefs are."""
    names = {"x": [0.5, 0.5], "a": [[1.0, 0.0], [0.0, 1.0]], "b": [[1.0, 0.0], [0.0, 1.0]]}
    both = {"c": np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])}  # a xor b: never, as both copy x
    net = gg.BayesianNetwork("x -> a -> c <- b; x -> b", cpds={**names, **both})
    over = BudgetError("too large", clique=("a",), bytes=1e12)
    with pytest.warns(ApproximateWarning):
        answer = approximate_answer(net, read(net, ["c"], None), over)
    assert answer.engine == "importance" and answer.quality == "checked"
    np.testing.assert_allclose(answer["c"].probabilities, [1.0, 0.0], atol=0.01)


def test_wide_tables_are_not_too_many_for_bounds():
    """Many states fill tables faster than they make a sweep longer."""
    rng = np.random.default_rng(0)
    states, n = 400, 16
    ring = [discrete(f"x{i}", states) for i in range(n)]
    tables = np.exp(rng.normal(size=(n, states, states)))
    net = gg.MarkovNetwork(factors=[TableFactor((ring[i], ring[(i + 1) % n]), tables[i]) for i in range(n)])
    truth = np.log(np.trace(np.linalg.multi_dot(tables / states))) + n * np.log(states)
    over, question = BudgetError("too large", clique=("x0",), bytes=1e12), read(net, ["x0"], None)
    with pytest.warns(ApproximateWarning):
        answer = approximate_answer(net, question, over, Run(seconds=1.0), draw=False)
    low, high = answer.details["log_evidence_interval"]
    assert low <= truth <= high


def test_exact_answers_stay_exact():
    assert gg.datasets.asia().query("lung", {"xray": "yes"}).exact


def test_engines_without_best_assignments_say_so():
    with pytest.raises(gg.OptionError, match="does not look for best assignments.*junction_tree"):
        gg.datasets.asia().map_query({"xray": "yes"}, engine="gibbs")


def test_a_graph_too_large_to_be_ordered_is_answered_by_propagation(monkeypatch):
    from gramgraph.compile import ordering, tree

    net = gg.models.ising_grid(6, 6, coupling=0.2, field=0.1)
    wanted = net.query("x1_1")["x1_1"].prob("+1")
    best = net.map_query()
    monkeypatch.setattr(tree, "FEW_NODES", 0)
    monkeypatch.setattr(ordering, "BYTES_PER_NODE", 1e15)
    again = gg.models.ising_grid(6, 6, coupling=0.2, field=0.1)
    with pytest.raises(BudgetError, match="36 variables"):
        again.query("x1_1", engine="junction_tree")
    with pytest.raises(BudgetError, match="order of elimination"):
        gg.plan(again)
    with pytest.warns(ApproximateWarning):
        found = again.query("x1_1")
    assert not found.exact
    assert abs(found["x1_1"].prob("+1") - wanted) < 0.02
    assert again.map_query().log_prob == pytest.approx(best.log_prob)
