"""Joints, likelihoods, orders of states, and columns that once gave wrong or unclear answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelError, OptionError, StateError, VariableError

RNG = np.random.default_rng


def chain(n: int, seed: int = 0) -> pd.DataFrame:
    rng = RNG(seed)
    a = rng.normal(size=n)
    b = np.sin(2.0 * a) + 0.3 * rng.normal(size=n)
    kind = np.where(b + 0.2 * rng.normal(size=n) > 0.0, "up", "down")
    turn = np.angle(np.exp(1j * (2.0 * a + 0.4 * rng.normal(size=n))))
    return pd.DataFrame({"a": a, "b": b, "kind": kind, "turn": turn})


EDGES = [("a", "b"), ("b", "kind"), ("a", "turn")]


@pytest.fixture(scope="module")
def net() -> gg.embeddings.KernelTree:
    return gg.learn_tree(chain(1500), edges=EDGES, domains={"turn": "circle"}, cells=40)


# ---------------------------------------------------------------------------------------------- joints


def test_joint_of_a_tree_of_tables_is_that_of_the_discrete_network():
    rng = RNG(1)
    a = rng.integers(0, 3, 200)
    frame = pd.DataFrame({"a": a, "b": (a + rng.integers(0, 2, 200)) % 3, "c": (a * 2 + rng.integers(0, 2, 200)) % 4})
    frame = frame.astype(str)
    tree = gg.learn_tree(frame, "table", edges=[("a", "b"), ("a", "c")], floor=0.0)
    exact = gg.BayesianNetwork("a -> b; a -> c").fit(frame)
    for group, evidence in (
        (("b", "c"), {}),
        (("b", "c"), {"a": "1"}),
        (("a", "b", "c"), {}),
        (("c", "a"), {"b": "2"}),
    ):
        ours = tree.query([group], evidence)[group].probabilities
        assert np.allclose(ours, exact.query([group], evidence)[group].probabilities, atol=1e-12)


def test_joint_belief_agrees_with_its_parts_and_with_draws(net):
    evidence = {"kind": "up"}
    answer = net.query(["a", "b", ("a", "b")], evidence)
    both = answer["a", "b"]
    assert list(answer) == ["a", "b", ("a", "b")]
    for k, name in enumerate(("a", "b")):
        assert np.allclose(both.marginal(k), answer[name].weights, atol=1e-6)
        assert both.mean()[k] == pytest.approx(answer[name].mean(), abs=1e-5)
        assert both.sd()[k] == pytest.approx(answer[name].sd(), abs=1e-5)
    draws = net.sample(40_000, evidence, random_state=0)
    assert both.cov() == pytest.approx(np.cov(draws["a"], draws["b"]), abs=0.02)
    assert both.expect(lambda a, b: a * b) == pytest.approx((draws["a"] * draws["b"]).mean(), abs=0.02)
    own = both.sample(40_000, random_state=1)
    assert np.corrcoef(own["a"], own["b"])[0, 1] == pytest.approx(np.corrcoef(draws["a"], draws["b"])[0, 1], abs=0.03)
    assert "effective_sample_size" in both.diagnostics


def test_joint_density_is_the_chain_of_conditionals(net):
    points = [(0.3, 0.5), (-1.0, -0.7), (2.0, 0.0)]
    found = net.query([("a", "b")])["a", "b"].density(points)
    chained = np.exp(net.log_evidence(pd.DataFrame(points, columns=["a", "b"])))
    assert found == pytest.approx(chained, rel=1e-4)
    mode = net.query([("a", "b")])["a", "b"].mode()
    assert net.query([("a", "b")])["a", "b"].density(mode) >= found.max()
    mixed = net.query([("kind", "a")])["kind", "a"]
    at = mixed.density(("up", 0.7))
    assert at == pytest.approx(np.exp(net.log_evidence({"kind": "up", "a": 0.7})), rel=1e-4)
    assert mixed.expect(lambda kind, a: kind == "up") == pytest.approx(net.query("kind")["kind"].prob("up"), abs=1e-6)


def test_joints_of_many_cases_and_of_angles(net):
    cases = pd.DataFrame({"b": [0.1, np.nan, 5e3], "kind": ["up", None, "down"]})
    many = net.query([("a", "turn")], cases)["a", "turn"]
    for i, evidence in enumerate(({"b": 0.1, "kind": "up"}, {}, {"kind": "down"})):
        one = net.query([("a", "turn")], evidence)["a", "turn"]
        assert np.allclose(many.weights[i], one.weights[0], atol=1e-6)
    assert many.mean().shape == (3, 2)
    assert np.isfinite(many.sd()).all()
    with pytest.raises(VariableError, match="angle"):
        many.cov()
    with pytest.raises(VariableError, match="scalar"):
        many.quantile(0.5)
    assert "a" in repr(net.query([("a", "kind")]))
    assert net.query(["b", ("a", "turn")], cases).to_frame().shape == (3, 6)


def test_directed_networks_have_joints_and_hear_likelihoods():
    frame = chain(800)
    tree = gg.learn_tree(frame, edges=EDGES[:2], cells=30)
    dag = gg.learn_dag(frame, "a -> b; b -> kind", cells=30)
    heard = {"kind": {"up": 0.9, "down": 0.3}}
    one, two = tree.query(("a", "kind"), {"b": 0.4}), dag.query(("a", "kind"), {"b": 0.4})
    assert list(one) == list(two) == [("a", "kind")]
    assert one["a", "kind"].weights == pytest.approx(two["a", "kind"].weights, abs=0.01)
    first, second = tree.query("a", virtual_evidence=heard), dag.query("a", virtual_evidence=heard)
    assert first["a"].mean() == pytest.approx(second["a"].mean(), abs=0.02)
    assert first.log_evidence == pytest.approx(second.log_evidence, abs=1e-3)
    rows = frame.head(5).drop(columns="turn")
    assert dag.log_evidence(rows) == pytest.approx(dag.log_likelihood(rows))
    assert isinstance(dag.log_evidence({"a": 0.3}), float)


def test_joints_with_points():
    rng = RNG(0)
    a = rng.normal(size=300)
    frame = {"a": a, "v": [np.array([x, x**2]) + 0.1 * rng.normal(size=2) for x in a]}
    tree = gg.learn_tree(frame, edges=[("a", "v")], cells=20)
    both = tree.query(("v", "a"))["v", "a"]
    assert both.density(((1.0, 1.0), 1.0)) > 5.0 * both.density(((1.0, 1.0), -1.0))
    assert both.sample(20, random_state=0).shape == (20, 2)
    assert len(both.mode()[0]) == 2
    with pytest.raises(OptionError, match="one value for each"):
        both.density((1.0,))
    heard = tree.query("a", virtual_evidence={"v": lambda p: float(p[0] > 0.0)})["a"]
    assert heard.mean() > 0.4


# ---------------------------------------------------------------------------------------------- likelihoods


def test_certain_likelihoods_are_observations(net):
    usual, heard = net.query("a", {"kind": "up"}), net.query("a", virtual_evidence={"kind": {"up": 3.0}})
    assert heard["a"].mean() == pytest.approx(usual["a"].mean(), abs=1e-6)
    assert heard.log_evidence == pytest.approx(usual.log_evidence + np.log(3.0), abs=1e-6)
    sharp = net.query("a", virtual_evidence={"b": lambda x: np.exp(-0.5 * ((x - 0.5) / 0.02) ** 2)})
    assert sharp["a"].mean() == pytest.approx(net.query("a", {"b": 0.5})["a"].mean(), abs=0.03)


def test_likelihoods_follow_bayes_rule(net):
    weights = [0.3, 0.9]
    prior = net.query("kind", {"a": 0.4})["kind"].probabilities
    found = net.query("kind", {"a": 0.4}, virtual_evidence={"kind": weights})
    assert found["kind"].probabilities == pytest.approx(prior * weights / (prior @ weights), abs=1e-6)
    evidence = found.log_evidence - net.log_evidence({"a": 0.4})
    assert evidence == pytest.approx(np.log(prior @ weights), abs=1e-5)
    flat = net.query(None, virtual_evidence={"b": lambda x: 1.0})
    assert flat.log_evidence == pytest.approx(0.0, abs=1e-5)
    assert flat["a"].mean() == pytest.approx(net.query("a")["a"].mean(), abs=1e-5)


@pytest.mark.parametrize("engine", ["bp", "junction_tree"])
def test_engines_hear_likelihoods(net, engine):
    cases = pd.DataFrame({"turn": [0.5, np.nan]})
    heard = {"b": lambda x: 1.0 / (1.0 + np.exp(-4.0 * x)), "kind": {"up": 0.9, "down": 0.2}}
    ours = net.query("a", cases, virtual_evidence=heard)
    other = net.query("a", cases, virtual_evidence=heard, engine=engine)
    assert np.allclose(ours["a"].mean(), other["a"].mean(), atol=1e-4)
    assert np.allclose(ours.log_evidence, other.log_evidence, atol=1e-4)


def test_unfit_likelihoods_are_told(net):
    for given, error, words in (
        ({"b": [1.0]}, OptionError, "function of x"),
        ({"b": lambda x: -1.0}, OptionError, "not negative"),
        ({"kind": [0.0, 0.0]}, StateError, "not all zero"),
        ({"kind": [1.0]}, StateError, r"2 numbers \(down, up\)"),
        ({"kind": {"upp": 1.0}}, StateError, "Did you mean"),
        ({"bb": [1.0]}, VariableError, "not a variable"),
        (["b"], VariableError, "dict"),
    ):
        with pytest.raises(error, match=words):
            net.query("a", virtual_evidence=given)


# ---------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(("offset", "scale"), [(1e9, 1.0), (-1e12, 1.0), (0.0, 1e200), (0.0, 1e-200), (2000.0, 0.1)])
def test_moments_do_not_lose_digits(offset, scale):
    rng = RNG(0)
    x = rng.normal(size=600)
    y = x + 0.5 * rng.normal(size=600)
    plain = gg.learn_tree({"x": x, "y": y}).query("x", {"y": 1.0})["x"]
    moved = gg.learn_tree({"x": offset + scale * x, "y": y}).query("x", {"y": 1.0})["x"]
    assert (moved.mean() - offset) / scale == pytest.approx(plain.mean(), abs=0.02)
    assert moved.sd() / scale == pytest.approx(plain.sd(), rel=0.02)


def test_states_keep_the_order_of_categories_and_of_numbers():
    rng = RNG(0)
    level = pd.Categorical(rng.choice(["low", "mid", "high"], 100), ["low", "mid", "high", "never"], ordered=True)
    frame = pd.DataFrame({"level": level, "count": rng.choice([1, 2, 10, -3], 100)})
    for tree in (gg.learn_tree(frame), gg.learn_dag(frame, "count -> level")):
        assert tree.states("level") == ("low", "mid", "high")
        assert tree.states("count") == ("-3", "1", "2", "10")
        with pytest.raises(StateError, match="never"):
            tree.query("count", {"level": "never"})
    polars = pytest.importorskip("polars")
    enum = polars.Enum(["low", "mid", "high"])
    other = polars.DataFrame({"level": polars.Series(level.tolist(), dtype=enum), "count": [*frame["count"][1:], None]})
    assert gg.learn_tree(other).states("level") == ("low", "mid", "high")
    assert gg.learn_tree(other).states("count") == ("-3", "1", "2", "10")
    gaps = frame.astype({"count": "Int64"})
    gaps.loc[3, "count"] = pd.NA
    assert gg.learn_tree(gaps).domains["count"] == "category"


def test_rare_states_are_learned_from_whatever_chooses():
    frame = pd.DataFrame({"a": RNG(0).normal(size=200), "k": ["x"] * 197 + ["y", "z", "w"]})
    for seed in range(6):
        tree = gg.learn_tree(frame, validation=0.5, random_state=seed)
        assert tree.states("k") == ("w", "x", "y", "z")
        assert np.isfinite(tree.log_likelihood(frame)).all()


def test_density_and_expectation_at_odd_points():
    rng = RNG(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "size": rng.lognormal(size=400), "k": rng.choice(["u", "v"], 400)})
    tree = gg.learn_tree(frame, domains={"size": "positive"}, edges=[("a", "size"), ("a", "k")])
    answer = tree.query()
    assert answer["size"].density([-1.0, 0.0, np.inf]).tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(answer["a"].density(np.nan))
    assert answer["a"].density(-np.inf) == 0.0
    assert answer["a"].expect(lambda x: 1.0) == pytest.approx(1.0)
    step = answer["a"].expect(lambda x: 1.0 if x > 0.3 else 0.0)
    assert step == pytest.approx(1.0 - answer["a"].cdf(0.3), abs=0.01)
    assert answer["k"].expect(lambda s: s == "u") == pytest.approx(answer["k"].prob("u"))
    drawn = answer["k"].sample(2000, random_state=0)
    assert (drawn == "u").mean() == pytest.approx(answer["k"].prob("u"), abs=0.05)
    assert (answer["k"].sample(9, random_state=3) == answer["k"].sample(9, random_state=3)).all()
    assert tree.query("a", pd.DataFrame(index=[4, 5]))["a"].mean().shape == (2,)


def test_unclear_frames_and_options_are_told():
    x = RNG(0).normal(size=50)
    frame = pd.DataFrame({"a": x, "b": x})
    for call, error, words in (
        (lambda: gg.learn_tree(pd.DataFrame(np.c_[x, x], columns=["a", "a"])), ModelError, "twice: a"),
        (lambda: gg.learn_tree(frame.assign(d=pd.date_range("2020", periods=50))), ModelError, "dates"),
        (lambda: gg.learn_tree(frame, domains=["circle"]), OptionError, "dict"),
        (lambda: gg.learn_tree(frame, edges=[3]), OptionError, "pairs of names"),
        (lambda: gg.learn_tree(frame, edges=3), OptionError, "pairs of names"),
        (lambda: gg.learn_dag(frame, "a -> b", edge="kernal"), OptionError, "Did you mean 'kernel'"),
        (lambda: gg.learn_dag(frame, "a -> b", cells=0), OptionError, "cells"),
        (lambda: gg.learn_dag(frame, "a -> b", domains={"c": "circle"}), VariableError, "not a variable"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_dependence_with_a_jump_is_found():
    """What is sharp along one side and smooth along the other needs kernels of two widths."""
    rng = RNG(3)

    def draw(n):
        phi = np.where(rng.random(n) < 0.6, -1.1, -2.1) + rng.vonmises(0.0, 12.0, n)
        psi = np.where(phi > -1.6, -0.7, 2.3) + rng.vonmises(0.0, 9.0, n)
        return pd.DataFrame({"phi": np.angle(np.exp(1j * phi)), "psi": np.angle(np.exp(1j * psi))})

    frame, test = draw(800), draw(4000)
    tree = gg.learn_tree(frame, "kernel", edges=[("psi", "phi")], domains={"phi": "circle", "psi": "circle"})
    gain = tree.log_likelihood(test) - tree.log_evidence(test[["phi"]]) - tree.log_evidence(test[["psi"]])
    assert gain.mean() > 0.638  # 0.628 with one width for both sides; the true ratio has 0.677


@pytest.mark.parametrize("far", [5e3, -40.0, 1e300])
def test_an_observation_far_away_does_not_hide_what_others_say(net, far):
    told, usual = net.query("a", {"b": far, "kind": "up"}), net.query("a", {"kind": "up"})
    assert told["a"].mean() == pytest.approx(usual["a"].mean(), abs=1e-5)
    assert told["a"].mean() != pytest.approx(net.query("a")["a"].mean(), abs=0.05)
    assert told["a"].diagnostics["outside"] == ("b",)
    assert net.query("a", {"b": far, "kind": "up"}, engine="bp")["a"].mean() == pytest.approx(
        usual["a"].mean(), abs=1e-4
    )
    row = pd.DataFrame({"a": [0.2], "b": [far], "kind": ["up"], "turn": [0.1]})
    alone = net.log_evidence(row[["a", "kind", "turn"]]) + net.log_evidence(row[["b"]])
    assert net.log_likelihood(row) == pytest.approx(alone, abs=1e-4)
    draws = net.sample(20_000, {"b": far, "kind": "up"}, random_state=0)
    assert draws["a"].mean() == pytest.approx(usual["a"].mean(), abs=5 * usual["a"].sd() / np.sqrt(20_000))
    best = net.map_query({"b": far, "kind": "up"}).assignment
    assert set(best) == {"a", "turn"}


def test_observations_at_the_edge_are_mixed_alike_by_all_engines(net):
    top = float(chain(1500)["b"].max())
    for beyond in (0.05, 0.15, 0.25, 0.4):
        evidence = {"b": top + beyond, "kind": "down", "turn": 0.3}
        ours, other = (net.query("a", evidence, engine=engine) for engine in ("auto", "junction_tree"))
        assert ours["a"].mean() == pytest.approx(other["a"].mean(), abs=2e-3)
        assert ours.log_evidence == pytest.approx(other.log_evidence, abs=2e-2)


def test_best_assignments_of_directed_networks_beat_draws():
    rng = RNG(0)
    a, b = rng.normal(size=(2, 800))
    frame = pd.DataFrame({"a": a, "b": b, "c": a * b + 0.3 * rng.normal(size=800), "k": np.where(a > 0, "u", "v")})
    dag = gg.learn_dag(frame, "a -> c <- b; a -> k", cells=24)
    best = dag.map_query({"c": 1.0, "k": "u"})
    assert set(best.assignment) == {"a", "b"}
    draws = dag.sample(2000, {"c": 1.0, "k": "u"}, random_state=0)
    assert best.log_prob > dag.log_likelihood(draws).max() - 0.3
    many = dag.map_query(pd.DataFrame({"c": [1.0, np.nan], "k": ["u", "v"]}, index=[7, 8]))
    assert many.index.tolist() == [7, 8]
    assert many["a"][7] == best.assignment["a"]
    assert many["log_prob"][7] == pytest.approx(best.log_prob)
    assert many["k"].tolist() == ["u", "v"]
