"""Kernel models are graphical models: the same evidence and the same questions as of discrete ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import BudgetError, ModelError, OptionError, StateError, VariableError
from gramgraph.models.base import GraphicalModel
from gramgraph.variables import Circle, Points, Positive

RNG = np.random.default_rng
EDGES = [("a", "c"), ("kind", "c"), ("c", "d")]


def rows(n: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = RNG(seed)
    a, kind = rng.normal(size=n), rng.choice(["x", "y", "z"], size=n)
    c = a + 2.0 * (kind == "x") + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "kind": kind, "c": c, "d": np.where(c + 0.5 * rng.normal(size=n) > 1, "hi", "lo")})


@pytest.fixture(scope="module")
def dag() -> gg.embeddings.KernelNetwork:
    return gg.learn_dag(rows(), "a -> c <- kind; c -> d", cells=10)


@pytest.fixture(scope="module")
def tree() -> gg.embeddings.KernelTree:
    return gg.learn_tree(rows(), edges=EDGES, cells=10)


@pytest.fixture(params=["dag", "tree"])
def net(request: pytest.FixtureRequest) -> GraphicalModel:
    return request.getfixturevalue(request.param)


def test_kinds(dag, tree):
    assert isinstance(dag, gg.BayesianNetwork) and isinstance(tree, gg.MarkovNetwork)
    assert dag.kind == tree.kind == "cells"
    assert [repr(var) for var in dag.vars] == ["a{real}", "kind{x|y|z}", "c{real}", "d{hi|lo}"]
    assert dag.check_model() and tree.check_model()
    domains = {"t": "circle", "p": "positive", "w": "string"}
    other = gg.learn_tree(
        {"t": [0.1, 2.0, 3.0] * 9, "p": [1.0, 2.0, 3.0] * 9, "w": ["ab", "ba", "cc"] * 9}, domains=domains
    )
    assert [type(var.domain) for var in other.vars] == [Circle, Positive, Points]


def test_what_is_not_observed_can_be_left_out_or_missing(net):
    plain = net.query("c", {"a": 1.0})
    for missing in (None, float("nan"), pd.NA, pd.NaT, np.nan):
        answer = net.query("c", {"a": 1.0, "kind": missing, "d": missing})
        assert answer["c"].mean() == plain["c"].mean() and answer.log_evidence == plain.log_evidence
    assert net.query("c", pd.Series({"a": 1.0, "kind": None}))["c"].mean() == plain["c"].mean()


def test_several_states_weights_and_soft_evidence(net):
    plain = net.query("c", {"kind": "x"})["c"].mean()
    for value in ({"x"}, ["x"], gg.OneOf("x"), gg.Not("y", "z"), gg.Likelihood({"x": 2.0}), gg.Soft({"x": 1.0})):
        assert net.query("c", {"kind": value})["c"].mean() == pytest.approx(plain, abs=1e-6)
    either = net.query("kind", {"kind": {"x", "y"}, "a": 0.5})["kind"].probabilities
    assert either[2] == pytest.approx(0.0, abs=1e-12) and either.sum() == pytest.approx(1.0)
    assert net.query("kind", {"c": 1.0}, soft_evidence={"kind": {"x": 0.2, "z": 0.8}})["kind"].prob(
        "z"
    ) == pytest.approx(0.8)
    with pytest.raises(StateError, match="soft evidence"):
        net.log_evidence({"kind": gg.Soft({"x": 1.0})})
    with pytest.raises(StateError, match="real-valued"):
        net.query("c", {"a": {1.0, 2.0}})
    with pytest.raises(StateError, match="real-valued"):
        net.query("c", soft_evidence={"a": [1.0]})


def test_noisy_readings_of_numbers(net):
    sharp = net.query("c", {"a": gg.Likelihood((1.0, 0.2))})
    by_hand = net.query("c", virtual_evidence={"a": lambda a: np.exp(-0.5 * ((a - 1.0) / 0.2) ** 2)})
    assert sharp["c"].mean() == pytest.approx(by_hand["c"].mean(), abs=1e-9)
    assert net.log_evidence({"a": gg.Likelihood((1.0, 0.2))}) == pytest.approx(sharp.log_evidence)
    with pytest.raises(StateError, match="positive"):
        net.query("c", {"a": gg.Likelihood((1.0, -1.0))})


def test_joints_with_observed_members_and_of_one(net):
    answer = net.query([("a", "c"), ("kind", "c"), ("c",)], {"a": 0.7, "kind": "y"})
    alone = net.query("c", {"a": 0.7, "kind": "y"})["c"]
    assert answer["a", "c"].mean() == pytest.approx([0.7, alone.mean()], abs=1e-5)
    assert answer["a", "c"].cov()[0].tolist() == [0.0, 0.0]
    assert answer["kind", "c"].marginal(0)[0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)
    assert answer["c",].mean() == pytest.approx(alone.mean(), abs=1e-6)
    four = net.query([("a", "kind", "c", "d")])["a", "kind", "c", "d"]
    assert four.marginal(3)[0] == pytest.approx(net.query("d")["d"].probabilities, abs=1e-5)
    with pytest.raises(BudgetError):
        net.query([("a", "kind", "c", "d")], memory=1000)


def test_tables_of_cases(net):
    cases = rows(7, seed=3)[["a", "kind"]]
    cases["kind"] = cases["kind"].where(cases.index != 2)
    one = [net.query("c", row)["c"].mean() for row in cases.to_dict("records")]
    assert net.query("c", cases, n_jobs=2)["c"].mean() == pytest.approx(one, abs=1e-6)
    empty = net.query(None, cases.head(0))
    assert set(empty) == set(net.variables) and empty["c"].mean().shape == (0,)
    more = cases.assign(id=range(7))
    with pytest.raises(VariableError, match="id"):
        net.query("c", more)
    assert net.query("c", more, keep=["id"])["c"].mean() == pytest.approx(one, abs=1e-6)
    with pytest.raises(VariableError, match="Did you mean 'kind'"):
        net.query("c", {"kin": "x"})


def test_information(net):
    a, c, both = net.entropy("a"), net.entropy("c"), net.entropy(["a", "c"])
    assert net.mutual_information("a", "c") == pytest.approx(a + c - both, abs=1e-5)
    told = net.most_informative("d", {"kind": "x"})
    assert told["variable"][0] == "c" and set(told["variable"]) == {"a", "c"}
    assert told["reduction"][1] == pytest.approx(net.mutual_information("d", "a", {"kind": "x"}), abs=1e-9)
    assert told["expected_entropy"][0] == pytest.approx(net.entropy("d", {"kind": "x"}) - told["reduction"][0])
    assert net.entropy("d", base=2) == pytest.approx(net.entropy("d") / np.log(2))
    with pytest.raises(VariableError, match="observed"):
        net.entropy("a", {"a": 1.0})


def test_entropy_of_a_normal_variable():
    x = RNG(0).normal(2.0, 3.0, size=4000)
    assert gg.learn_tree({"x": x}).entropy("x") == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 9.0), abs=0.05)


def test_best_assignments(net):
    given = {"kind": "x", "d": "hi"}
    first, second, third = net.map_query(given, k=3)
    assert first.log_prob >= second.log_prob >= third.log_prob
    assert first.log_prob == pytest.approx(net.joint_log_prob({**given, **first.assignment}))
    assert len({tuple(one.assignment.values()) for one in (first, second, third)}) == 3
    alone = net.map_query(given, targets="c")
    assert list(alone.assignment) == ["c"]
    assert alone.log_prob == pytest.approx(net.log_evidence({**given, **alone.assignment}))
    cells = [{**given, "c": net.axis("c").value(i)} for i in range(net.axis("c").m)]
    assert alone.log_prob == pytest.approx(max(net.log_evidence(one) for one in cells), abs=1e-6)
    heard = net.map_query(given, targets="c", virtual_evidence={"a": (0.5, 0.3)})
    said = {**given, **heard.assignment, "a": gg.Likelihood((0.5, 0.3))}
    assert heard.log_prob == pytest.approx(net.log_evidence(said), abs=1e-9)
    with pytest.raises(OptionError, match="k is"):
        net.map_query(given, k=0)


def test_draws_follow_likelihoods(net):
    draws = net.sample(3000, {"a": 0.0}, virtual_evidence={"kind": [1, 0, 0]}, random_state=0)
    belief = net.query("c", {"a": 0.0}, virtual_evidence={"kind": [1, 0, 0]})["c"]
    assert set(draws["kind"]) == {"x"} and draws["c"].mean() == pytest.approx(belief.mean(), abs=0.1)
    with pytest.raises(VariableError, match="one case"):
        net.sample(3, rows(2)[["a"]])


def test_sessions_and_plans(net):
    case = net.session()
    case.observe(a=1.0, kind="x")
    assert case.query("c")["c"].mean() == net.query("c", {"a": 1.0, "kind": "x"})["c"].mean()
    case.observe(kind=None)
    assert case.evidence == {"a": 1.0} and case.log_evidence == net.log_evidence({"a": 1.0})
    case.retract()
    assert case.evidence == {}
    assert gg.plan(net, "c", ["a"]).bytes > 0


def test_interventions_cut_the_arrows_above(dag):
    done = dag.do({"c": 2.0})
    assert done.parents("c") == () and done.query("c")["c"].mean() == 2.0 and done.query("c")["c"].sd() == 0.0
    assert done.query("a")["a"].mean() == pytest.approx(dag.query("a")["a"].mean(), abs=1e-9)
    told = dag.query("d", {"c": 2.0})["d"].prob("hi")  # its two cells are weighed by their marginals too
    assert done.query("d")["d"].prob("hi") == pytest.approx(told, abs=0.02)
    assert (done.sample(5, random_state=0)["c"] == 2.0).all()
    assert done.log_evidence({"c": 2.0}) == pytest.approx(0.0, abs=1e-12) and done.log_evidence({"c": 1.0}) == -np.inf
    both = dag.do({"kind": "x", "a": 0.5})
    assert both.query("c")["c"].mean() == pytest.approx(dag.query("c", {"kind": "x", "a": 0.5})["c"].mean(), abs=1e-9)
    spread = dag.do("a", (1.0, 0.4)).query("a")["a"]
    assert spread.mean() == pytest.approx(1.0, abs=0.1) and spread.sd() == pytest.approx(0.4, abs=0.15)
    assert dag.do("kind", {"x": 0.3, "y": 0.7}).query("kind")["kind"].prob("y") == pytest.approx(0.7)
    with pytest.raises(ModelError, match="needs a value"):
        dag.do("a")


def test_graph_questions(dag, tree):
    assert not dag.is_dconnected("a", "kind") and dag.is_dconnected("a", "kind", given="d")
    assert dag.active_trail("a", "kind", given="c") == ("a", "c", "kind")
    assert dag.markov_blanket("a") == ("kind", "c") and dag.topological_order()[-1] == "d"
    assert tree.is_separated("a", "d", given="c") and tree.neighbors("c") == ("a", "kind", "d")
    assert set(tree.to_junction_tree().cliques) == set(tree.cliques())


def test_sensitivity_is_that_of_the_tables_on_cells(dag):
    found = dag.sensitivity("d", "hi", {"a": 0.5}, parameters=["kind"])
    row = found.iloc[0]
    f = dag.sensitivity_function("d", "hi", {"a": 0.5}, variable="kind", value=row["state"])
    assert f(row["value"]) == pytest.approx(dag.query("d", {"a": 0.5})["d"].prob("hi"), abs=1e-9)
    assert f.derivative() == pytest.approx(row["derivative"], abs=1e-9)


def test_conditionals_are_densities(dag):
    values = {var: np.array([1]) if var.is_discrete else np.array([[0.4]]) for var in dag.vars}
    total = sum(float(dag.conditional(name).log_density(values)[0]) for name in dag.variables)
    full = {var.name: var.states[1] if var.is_discrete else 0.4 for var in dag.vars}
    assert total == pytest.approx(dag.joint_log_prob(full))
    c = dag.conditional("c")
    drawn = c.draw({var: np.repeat(value, 4000, axis=0) for var, value in values.items()}, 4000, RNG(0))
    belief = dag.query("c", {"a": 0.4, "kind": "y"})["c"]
    assert drawn.mean() == pytest.approx(belief.mean(), abs=0.05)
    assert c.equals(type(c).from_fields(c.to_fields(), {}))


def test_engines_of_discrete_models_answer_on_the_cells(net):
    ours = net.query("c", {"d": "hi"})
    theirs = net.query("c", {"d": "hi"}, engine="elimination")
    assert theirs.engine == "elimination"
    assert theirs["c"].mean() == pytest.approx(ours["c"].mean(), abs=1e-4)
    with pytest.raises(OptionError, match="exact"):
        net.query("c", engine="elimination", damping=0.5)


def test_fields_are_markov_networks():
    rng = RNG(0)
    clean = np.add.outer(np.arange(12.0), np.arange(12.0))
    field = gg.learn_grid(clean, clean + rng.normal(size=clean.shape), cells=6, power=1.0).on(1, 3)
    assert isinstance(field, gg.MarkovNetwork) and field.variables[0] == "x0_0" and len(field) == 6
    assert field.edges == (("x0_0", "x0_1"), ("x0_0", "y0_0"), ("x0_1", "x0_2"), ("x0_1", "y0_1"), ("x0_2", "y0_2"))
    noisy = np.array([[3.0, 9.0, 14.0]])
    scans = field.query(noisy, damping=0.0, max_iter=5)  # exact on a chain
    answer = field.query(["x0_0", "x0_2"], {f"y0_{j}": y for j, y in enumerate(noisy[0])})
    assert answer["x0_2"].mean() == pytest.approx(scans.mean()[0, 2], abs=1e-3)
    assert answer["x0_0"].sd() == pytest.approx(scans.sd()[0, 0], abs=1e-3)


def test_gaps_are_filled_from_the_rest(dag):
    frame = rows(6, seed=4)
    holes = frame.copy()
    holes.loc[1, "c"], holes.loc[2, "kind"] = np.nan, None
    filled = dag.impute(holes)
    assert filled.drop(index=[1, 2]).equals(frame.drop(index=[1, 2]))
    assert filled["c"][1] == pytest.approx(dag.map_query(holes.loc[1].dropna().to_dict()).assignment["c"])
    drawn = dag.impute(holes, method="draw", random_state=0)
    assert drawn["kind"][2] in ("x", "y", "z") and np.isfinite(drawn["c"][1])
    assert drawn.equals(dag.impute(holes, method="draw", random_state=0))
