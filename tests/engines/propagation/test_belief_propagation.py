"""Loopy belief propagation: exact on trees, sound with zeros, clear where it does not converge."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.engines import get_engine
from gramgraph.engines.propagation.belief_propagation import BeliefPropagation
from gramgraph.exceptions import OptionError
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.testing.engines import compare_answers
from gramgraph.testing.random_models import random_bayesian_network, random_question
from gramgraph.variables import binary, discrete
from tests.portions import examples

SCHEDULES = ("flooding", "sequential", "residual", "tree", "auto")


def random_tree(rng, n, *, zeros=0.0, max_states=4):
    """A Markov network whose factor graph is a tree: each variable hangs on earlier ones by factors of 2 or 3."""
    variables = [discrete(f"x{i}", int(k)) for i, k in enumerate(rng.integers(1, max_states + 1, n))]
    factors, i = [], 1
    while i < n:
        new = variables[i : i + int(rng.integers(1, 3))]
        scope = [variables[int(rng.integers(i))], *new]
        i += len(new)
        scope = [scope[j] for j in rng.permutation(len(scope))]
        table = rng.gamma(0.7, size=[v.size for v in scope]) + 1e-3
        table[rng.random(table.shape) < zeros] = 0.0
        factors.append(TableFactor(tuple(scope), table))
    return MarkovNetwork.from_parts(variables, factors)


def grid(rng, rows, cols, coupling, field=0.5):
    """A binary grid with couplings and fields of random sign."""
    x = [[binary(f"s{i}_{j}") for j in range(cols)] for i in range(rows)]
    factors = []
    for i in range(rows):
        for j in range(cols):
            factors.append(TableFactor((x[i][j],), np.exp(field * rng.normal() * np.array([-1, 1]))))
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < rows and b < cols:
                    weight = coupling * rng.normal()
                    table = np.exp(weight * np.array([[1.0, -1.0], [-1.0, 1.0]]))
                    factors.append(TableFactor((x[i][j], x[a][b]), table))
    return MarkovNetwork(factors=factors)


@pytest.mark.parametrize("schedule", SCHEDULES)
@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), zeros=st.sampled_from([0.0, 0.3]))
def test_trees_are_exact(schedule, seed, zeros):
    rng = np.random.default_rng(seed)
    model = random_tree(rng, int(rng.integers(1, 8)), zeros=zeros, max_states=3)
    question = random_question(rng, model, cases=3)

    compare_answers(BeliefPropagation(schedule=schedule), model, question, atol=1e-10)


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_tree_shaped_networks_are_exact(seed):
    rng = np.random.default_rng(seed)
    model = random_bayesian_network(rng, 7, max_parents=1, density=0.9, zeros=0.2, single=0.2)
    compare_answers(get_engine("bp"), model, random_question(rng, model, cases=3), atol=1e-10)


def test_one_sweep_is_exact_on_a_tree_against_the_junction_tree():
    model = random_tree(np.random.default_rng(3), 200)
    evidence = {f"x{i}": model.states(f"x{i}")[0] for i in range(0, 200, 9)}
    found = model.query(None, evidence, engine="bp", max_iter=1)
    truth = model.query(None, evidence, engine="junction_tree")
    assert found.log_evidence == pytest.approx(truth.log_evidence, rel=1e-11)
    for name in truth:
        np.testing.assert_allclose(found[name].probabilities, truth[name].probabilities, atol=1e-10)
    # … and the second sweep finds nothing to do
    assert model.query(None, evidence, engine="bp").details["residuals"][-1] < 1e-12


def test_the_tree_schedule_is_exact_in_one_sweep_and_visits_every_factor_of_a_loop():
    model = random_tree(np.random.default_rng(5), 40)
    once = model.query(None, engine="bp", schedule="tree", max_iter=1)
    exact = model.query(None, engine="junction_tree")
    assert abs(once.log_evidence - exact.log_evidence) < 1e-10
    for name in exact:
        assert np.abs(once[name].probabilities - exact[name].probabilities).max() < 1e-10
    loopy = grid(np.random.default_rng(0), 5, 5, 0.4)
    trees, plain = (loopy.query(None, engine="bp", schedule=s) for s in ("tree", "sequential"))
    assert trees.details["converged"] and trees.details["schedule"] == "tree"
    assert abs(trees.log_evidence - plain.log_evidence) < 1e-6


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**6), schedule=st.sampled_from(SCHEDULES), temperature=st.sampled_from([1.0, 0.5, 0.0]))
def test_logarithms_give_the_same_messages(seed, schedule, temperature):
    model = random_tree(np.random.default_rng(seed), 9, zeros=0.15)
    options = {"engine": "bp", "schedule": schedule, "temperature": temperature}
    batch = [{}, {"x0": model.states("x0")[0]}]
    scaled, logs = (model.query(None, batch, domain=d, **options) for d in ("scaled", "log"))
    assert np.allclose(scaled.log_evidence, logs.log_evidence, atol=1e-9, equal_nan=True)
    for name in scaled:
        a, b = scaled[name].probabilities, logs[name].probabilities
        assert np.allclose(a, b, atol=1e-9, equal_nan=True)


def test_logarithms_and_loops():
    loopy = grid(np.random.default_rng(0), 5, 5, 0.4)
    for schedule in SCHEDULES:
        scaled, logs = (loopy.query(None, engine="bp", schedule=schedule, domain=d) for d in ("scaled", "log"))
        assert logs.details["converged"] and abs(scaled.log_evidence - logs.log_evidence) < 1e-6
    with pytest.raises(OptionError, match="domain is one of scaled, log"):
        loopy.query("s0_0", engine="bp", domain="logs")


def test_auto_takes_the_better_of_two_fixed_points():
    """Residual alone, or sequential alone, may settle in a bad place; auto is never below either."""
    for seed in range(30):
        model = grid(np.random.default_rng(seed), 4, 4, 1.5, field=0.2)
        runs = {s: model.query(None, engine="bp", schedule=s) for s in ("sequential", "residual", "auto")}
        auto = runs.pop("auto")
        assert auto.details["schedule"] in runs
        settled = [run.log_evidence for run in runs.values() if run.details["converged"]]
        assert auto.details["converged"] == bool(settled)
        if settled:
            assert auto.log_evidence == pytest.approx(max(settled), abs=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_hub_with_thousands_of_neighbors_does_not_underflow(schedule):
    rng = np.random.default_rng(0)
    hub = binary("hub")
    ratio = np.where(np.arange(4000) % 2, 0.01, 100.0)  # partial products leave the range of doubles
    factors = [
        TableFactor((hub, binary(f"l{i}")), np.array([[1.0, 1.0], [r, r]]) * rng.uniform(0.9, 1.1))
        for i, r in enumerate(ratio)
    ]
    order = np.argsort(ratio, kind="stable")
    model = MarkovNetwork(factors=[factors[i] for i in order])
    found = model.query("hub", engine="bp", schedule=schedule, max_iter=3)
    np.testing.assert_allclose(found["hub"].probabilities, [0.5, 0.5], atol=1e-8)
    assert found.log_evidence == pytest.approx(model.log_evidence(), rel=1e-10)


def test_a_long_chain_takes_two_sweeps():
    n = 20_000
    variables = [binary(f"x{i}") for i in range(n)]
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    factors = [TableFactor(pair, table) for pair in pairwise(variables)]
    model = MarkovNetwork(factors=factors)
    answer = model.query([f"x{n // 2}"], {"x0": "yes", f"x{n - 1}": "no"}, engine="bp")
    assert answer.details["converged"] and answer.details["sweeps"] == 2
    np.testing.assert_allclose(answer[f"x{n // 2}"].probabilities, [2 / 3, 1 / 3], atol=1e-12)


def test_batches_equal_single_cases_and_keep_their_index():
    pd = pytest.importorskip("pandas")
    net = gg.datasets.asia()
    frame = pd.DataFrame({"xray": ["yes", "no", None], "smoke": [None, "yes", "no"]}, index=["a", "b", "c"])
    many = net.query(None, frame, engine="bp")
    assert many["lung"].to_frame().index.tolist() == ["a", "b", "c"]
    assert many.details["converged"].all() and many.details["residual"].shape == (3,)
    for row, case in enumerate(frame.to_dict("records")):
        one = net.query(None, case, engine="bp")
        assert many.log_evidence[row] == one.log_evidence
        np.testing.assert_array_equal(many["lung"].probabilities[row], one["lung"].probabilities)


def test_schedules_agree_at_a_fixed_point_and_are_near_the_truth():
    model = grid(np.random.default_rng(1), 5, 5, 0.4)
    truth = model.query(None)
    for schedule in SCHEDULES:
        found = model.query(None, engine="bp", schedule=schedule)
        assert found.details["converged"], schedule
        assert not found.exact and found.engine == "bp"
        errors = [np.abs(found[v].probabilities - truth[v].probabilities).max() for v in truth]
        assert max(errors) < 0.05
        assert abs(found.log_evidence - truth.log_evidence) < 0.2


def test_frustrated_loops_are_reported_not_hidden():
    model = grid(np.random.default_rng(5), 6, 6, 4.0, field=0.1)
    answer = model.query(None, engine="bp", max_iter=30, damping=0.0)
    details = answer.details
    assert not details["converged"] and details["sweeps"] == 30 and len(details["residuals"]) == 30
    assert details["residual"] > 1e-3
    for name in answer:
        assert np.isfinite(answer[name].probabilities).all()
        assert answer[name].probabilities.sum() == pytest.approx(1.0)


def test_zeros_never_make_nan_and_are_never_wrong():
    """A state that propagation calls impossible is impossible, and impossible evidence is found out or survives."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        model = random_bayesian_network(rng, 7, zeros=0.4, max_parents=4, density=0.8)
        question = random_question(rng, model, cases=4)
        found, truth = get_engine("bp").answer(model, question), get_engine("enumeration").answer(model, question)
        for case in range(4):
            if truth.log_evidence[case] > -np.inf:
                assert np.isfinite(found.log_evidence[case])
            for key in truth:
                p, q = found[key].probabilities[case], truth[key].probabilities[case]
                if np.isfinite(q).all():
                    assert np.isfinite(p).all()
                    assert p.sum() == pytest.approx(1.0)
                    if isinstance(key, str):
                        assert (p[q > 0] > 0).all()


def test_impossible_evidence_is_named():
    with pytest.raises(gg.ImpossibleEvidenceError, match="cannot hold together"):
        gg.datasets.asia().query("smoke", {"lung": "yes", "either": "no"}, engine="bp")


def test_joints_across_the_graph():
    net = gg.datasets.asia()
    found = net.query([("tub", "either", "smoke")], {"xray": "yes"}, engine="bp")[("tub", "either", "smoke")]
    truth = net.query([("tub", "either", "smoke")], {"xray": "yes"})[("tub", "either", "smoke")]
    np.testing.assert_allclose(found.probabilities, truth.probabilities, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 1.0}, "damping is a number from 0 to below 1"),
        ({"damping": "much"}, "damping is a number"),
        ({"schedule": "resdual"}, "Did you mean 'residual'"),
        ({"max_iter": 0}, "max_iter is a whole number from 1"),
        ({"tol": -1.0}, "tol is a number"),
        ({"dampning": 0.1}, "Did you mean 'damping'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(OptionError, match=message):
        gg.datasets.asia().query("lung", engine="bp", **options)


def test_exact_engines_refuse_options_and_soft_evidence_needs_them():
    with pytest.raises(OptionError, match="takes no option 'damping'"):
        gg.datasets.asia().query("lung", damping=0.5)
    with pytest.raises(OptionError, match="soft evidence"):
        gg.datasets.asia().query("lung", soft_evidence={"smoke": {"yes": 0.3, "no": 0.7}}, engine="bp")


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), temperature=st.sampled_from([0.0, 0.3, 2.0]))
def test_temperatures_on_trees(seed, temperature):
    """Beliefs of p^(1/T), and at 0 max-marginals, against the whole joint."""
    rng = np.random.default_rng(seed)
    model = random_bayesian_network(rng, 5, max_parents=1, density=0.9)
    answer = model.query(None, engine="bp", temperature=temperature)
    joint = model.query([tuple(model.variables)])[tuple(model.variables)].probabilities
    power = joint if temperature == 0 else joint ** (1.0 / temperature)
    for axis, v in enumerate(model.variables):
        rest = tuple(a for a in range(joint.ndim) if a != axis)
        true = power.max(axis=rest) if temperature == 0 else power.sum(axis=rest)
        np.testing.assert_allclose(answer[v].probabilities, true / true.sum(), atol=1e-9)
    value = np.log(joint.max()) if temperature == 0 else temperature * np.log(power.sum())
    assert answer.log_evidence == pytest.approx(value, abs=1e-8)
