"""Networks with discrete and real variables: exact engines against enumeration, sampling ones within their errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.engines.mixed.strong_tree import strong_plan
from gramgraph.questions.reading import read
from tests.engines.mixed.drawing import brute_force, compare, evidence_from, mixed_network

BODY = {
    "sex": 0.4,
    "diet": {"no": 0.3, "yes": 0.7},
    "height": {"no": {"intercept": 165.0, "sd": 7.0}, "yes": {"intercept": 178.0, "sd": 8.0}},
    "weight": {
        "no": {"intercept": -60.0, "coefficients": {"height": 0.8}, "sd": 8.0},
        "yes": {"intercept": -70.0, "coefficients": {"height": 0.8}, "sd": 6.0},
    },
}


def body():
    return gg.BayesianNetwork("sex -> height{real} -> weight{real} <- diet; sex -> diet", cpds=BODY)


@pytest.mark.parametrize("engine", ["mixture", "strong_tree", "auto"])
@pytest.mark.parametrize("seed", range(16))
def test_exact_engines_agree_with_enumeration(engine, seed):
    rng = np.random.default_rng(seed)
    net = mixed_network(rng, int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    evidence = evidence_from(net, rng)
    answer = net.query(None, evidence, engine=engine)
    assert answer.exact
    compare(answer, net, evidence, brute_force(net, evidence))
    assert net.log_evidence(evidence) == pytest.approx(answer.log_evidence, abs=1e-9)


@pytest.mark.parametrize("engine", ["mixture", "strong_tree"])
@pytest.mark.parametrize("seed", range(6))
def test_joints(engine, seed):
    rng = np.random.default_rng(100 + seed)
    net = mixed_network(rng, 3, 3, vectors=0.0)
    evidence = evidence_from(net, rng, 0.2)
    w, rows, means, covs = brute_force(net, evidence)[5]
    place = brute_force(net, evidence)[4]
    d = [n for n in net.variables if net.var(n).is_discrete and n not in evidence][:2]
    x = [n for n in net.variables if not net.var(n).is_discrete and n not in evidence][:2]
    asked = [tuple(scope) for scope in (d, x, [*d[:1], *x[:1]], [*x, *d]) if len(scope) > 1]
    answer = net.query(asked, evidence, engine=engine)
    for scope in asked:
        labelled, reals = [n for n in scope if n in d], [n for n in scope if n in x]
        belief = answer[scope]
        table = np.zeros(tuple(net.var(n).size for n in labelled))
        for weight, states in zip(w, rows, strict=True):
            table[tuple(states[n] for n in labelled)] += weight
        if not reals:
            np.testing.assert_allclose(belief.probabilities, table, atol=1e-9)
            continue
        at = np.concatenate([place[n] for n in reals])
        if labelled:
            np.testing.assert_allclose(belief.discrete.probabilities, table, atol=1e-9)
            state = np.unravel_index(int(table.argmax()), table.shape)
            hit = np.array([all(s[n] == c for n, c in zip(labelled, state, strict=True)) for s in rows])
            given = belief.given({n: net.states(n)[c] for n, c in zip(labelled, state, strict=True)})
            v = w * hit / (w * hit).sum()
            np.testing.assert_allclose(np.atleast_1d(given.mean()), v @ means[:, at], atol=1e-8)
        mean = w @ means[:, at]
        off = means[:, at] - mean
        cov = np.einsum("k,kde->de", w, covs[:, at[:, None], at]) + np.einsum("k,kd,ke->de", w, off, off)
        np.testing.assert_allclose(belief.cov(), cov, atol=1e-8 * (1 + np.abs(cov).max()))


@pytest.mark.parametrize("engine", ["mixture", "strong_tree"])
def test_table_of_cases_is_each_case_alone(engine):
    rng = np.random.default_rng(7)
    net = mixed_network(rng, 3, 4, vectors=0.0, zeros=0.0)
    frame = net.sample(30, random_state=1)
    for name in frame:
        frame.loc[rng.random(30) < 0.4, name] = None
    batch = net.query(list(net.variables), frame, engine=engine)
    for row in range(30):
        one = net.query(list(net.variables), frame.iloc[row], engine="mixture")
        assert batch.log_evidence[row] == pytest.approx(one.log_evidence, abs=1e-9)
        for name in net.variables:
            if net.var(name).is_discrete:
                np.testing.assert_allclose(batch[name].probabilities[row], one[name].probabilities, atol=1e-9)
            else:
                assert batch[name].mean()[row] == pytest.approx(one[name].mean(), abs=1e-8)
                assert batch[name].var()[row] == pytest.approx(one[name].var(), abs=1e-8)
    assert batch.to_frame().shape[0] == 30


def test_density_of_a_real_variable_is_the_mixture():
    net = body()
    evidence = {"weight": 75.0}
    w, rows, means, covs = brute_force(net, evidence)[5]
    place = brute_force(net, evidence)[4]["height"][0]
    x = np.linspace(140, 200, 7)
    sd = np.sqrt(covs[:, place, place])
    truth = (w * np.exp(-0.5 * ((x[:, None] - means[:, place]) / sd) ** 2) / sd / np.sqrt(2 * np.pi)).sum(axis=1)
    belief = net.query("height", evidence)["height"]
    np.testing.assert_allclose(belief.density(x), truth, rtol=1e-9)
    low, high = belief.interval(0.8)
    assert belief.cdf(high) - belief.cdf(low) == pytest.approx(0.8, abs=1e-9)
    peak = belief.mode()
    assert all(belief.density(peak) >= belief.density(peak + step) for step in (-1.0, -0.1, 0.1, 1.0))
    assert belief.expect(lambda h: h**2) == pytest.approx(belief.var() + belief.mean() ** 2, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_best_assignment(seed):
    rng = np.random.default_rng(seed)
    net = mixed_network(rng, 3, 3, zeros=0.0)
    evidence = evidence_from(net, rng, 0.3)
    best = net.map_query(evidence)
    w, rows, means, covs = brute_force(net, evidence)[5]
    place = brute_force(net, evidence)[4]
    top = -np.inf
    for states, mean in zip(rows, means, strict=True):
        full = {name: net.states(name)[code] for name, code in states.items()}
        full |= {name: mean[at] for name, at in place.items()}
        top = max(top, net.joint_log_prob(full))
    assert best.log_prob == pytest.approx(top, abs=1e-8)
    assert net.joint_log_prob({**best.assignment, **evidence}) == pytest.approx(top, abs=1e-8)


def test_best_states_with_the_rest_integrated_out():
    net = body()
    found = net.map_query({"weight": 90.0}, targets=["sex"])
    answer = net.query("sex", {"weight": 90.0})
    assert found.assignment == {"sex": answer["sex"].mode()}
    assert found.log_prob == pytest.approx(answer.log_evidence + np.log(answer["sex"].probabilities.max()), abs=1e-9)
    mode = net.query("height", {"weight": 90.0})["height"].mode()
    assert net.map_query({"weight": 90.0}, targets=["height"]).assignment["height"] == pytest.approx(mode)
    with pytest.raises(gg.VariableError, match="one case"):
        net.map_query([{"weight": 90.0}], targets=["sex"])


def test_samples_given_evidence():
    """Means within 5 standard errors (false alarm 10⁻⁶), probabilities too."""
    net = body()
    evidence, n = {"weight": 75.0}, 40_000
    draws = net.sample(n, evidence, random_state=3)
    assert draws.attrs["exact"] and (draws["weight"] == 75.0).all()
    answer = net.query(None, evidence)
    h = answer["height"]
    assert abs(draws["height"].mean() - h.mean()) < 5 * h.sd() / np.sqrt(n)
    p = answer["sex"].prob("yes")
    assert abs((draws["sex"] == "yes").mean() - p) < 5 * np.sqrt(p * (1 - p) / n)
    both = np.corrcoef(draws["height"], draws["sex"] == "yes")[0, 1]
    joint = net.query([("sex", "height")], evidence)[("sex", "height")]
    gap = joint.given({"sex": "yes"}).mean() - joint.given({"sex": "no"}).mean()
    assert both == pytest.approx(gap * np.sqrt(p * (1 - p)) / h.sd(), abs=0.03)


def test_weighted_draws_are_within_their_errors():
    """10⁶ weighted draws: every number within 5 of its standard errors."""
    net = body()
    evidence = {"weight": 80.0, "diet": "yes"}
    exact = net.query(None, evidence)
    found = net.query(None, evidence, engine="likelihood_weighting", random_state=0, budget=1_000_000)
    assert not found.exact and found.details["draws"] == 1_000_000
    assert abs(found["height"].mean() - exact["height"].mean()) < 5 * found["height"].standard_error()
    error = found.details["standard_error"]["sex"]
    assert (np.abs(found["sex"].probabilities - exact["sex"].probabilities) < 5 * error).all()
    assert abs(found.log_evidence - exact.log_evidence) < 5 * found.details["log_evidence_error"]
    assert found["height"].quantile(0.5) == pytest.approx(exact["height"].quantile(0.5), abs=0.2)
    assert found["height"].density(172.0) == pytest.approx(exact["height"].density(172.0), rel=0.1)


def test_rao_blackwell_is_within_its_errors_and_better():
    net = body()
    evidence = {"weight": 80.0}
    exact = net.query(None, evidence)
    found = net.query(None, evidence, engine="rao_blackwell", random_state=0, budget=20_000)
    assert not found.exact and found.details["configurations"] == 4
    error = found.details["standard_error"]["height"][0, 0]
    assert abs(found["height"].mean() - exact["height"].mean()) < 5 * error
    raw = net.query("height", evidence, engine="likelihood_weighting", random_state=0, budget=20_000)
    assert error < raw["height"].standard_error()
    p = found.details["standard_error"]["sex"][0]
    assert (np.abs(found["sex"].probabilities - exact["sex"].probabilities) < 5 * p).all()


def test_beyond_the_budget_draws_are_made_and_said():
    """A switching chain: the discrete variables of one real component form a clique of 3^16 cells."""
    n = 16
    cpds = {"x0": (0.0, 1.0)}
    text = "x0{real}"
    for i in range(1, n + 1):
        text += f"; x{i - 1} -> x{i}{{real}} <- d{i}[3]"
        cpds[f"d{i}"] = [0.5, 0.3, 0.2]
        rows = {str(k): {"intercept": float(k), "coefficients": {f"x{i - 1}": 0.5}, "sd": 1.0} for k in range(3)}
        cpds[f"x{i}"] = rows
    net = gg.BayesianNetwork(text, cpds=cpds)
    assert gg.plan(net, given=[f"x{n}"]).cells >= 3.0**n
    with pytest.raises(gg.BudgetError, match="Try:"):
        gg.plan(net, given=[f"x{n}"], memory=1e9)
    found = net.query(["x0", "d1"], {f"x{n}": 1.0}, random_state=0, budget=2000, memory=1e9)
    assert found.engine == "rao_blackwell" and not found.exact
    assert found.details["effective_draws"][0] > 100
    # without the evidence the far end is barren, and exact again
    assert net.query("x2").exact


def test_pruning_keeps_what_is_asked_small():
    n = 30
    text = "; ".join(f"d{i} -> y{i}{{real}} <- x{{real}}" for i in range(n))
    rows = {"no": {"coefficients": 1.0, "sd": 1.0}, "yes": {"coefficients": 2.0, "sd": 1.0}}
    cpds = {"x": (0.0, 1.0), **{f"d{i}": 0.5 for i in range(n)}, **{f"y{i}": rows for i in range(n)}}
    net = gg.BayesianNetwork(text, cpds=cpds)
    answer = net.query(["x", "d3"], {"y3": 2.0})
    small = gg.BayesianNetwork("d3 -> y3{real} <- x{real}", cpds={k: cpds[k] for k in ("x", "d3", "y3")})
    assert answer["x"].mean() == pytest.approx(small.query("x", {"y3": 2.0})["x"].mean(), abs=1e-12)


def test_no_noise_in_one_configuration():
    rows = {"no": {"intercept": 0.0, "coefficients": 1.0, "sd": 1.0}, "yes": {"coefficients": 2.0, "sd": 0.0}}
    net = gg.BayesianNetwork("d -> y{real} <- x{real}", cpds={"d": 0.5, "x": (0.0, 1.0), "y": rows})
    answer = net.query(["y", "d"], {"x": 1.0})
    assert answer["y"].mean() == pytest.approx(1.5) and answer["d"].prob("yes") == pytest.approx(0.5)
    with pytest.raises(gg.ModelError, match="no noise"):
        net.query("x", {"y": 1.0}, engine="strong_tree")


@pytest.mark.parametrize("engine", ["mixture", "strong_tree"])
def test_interventions_and_likelihoods(engine):
    net = body()
    done = net.do({"height": 180.0})
    assert done.query("sex", engine=engine)["sex"].prob("yes") == pytest.approx(0.4)
    seen = done.query(["weight", "height", "sex"], {"weight": 75.0}, engine=engine)
    assert seen["height"].mean() == pytest.approx(180.0) and seen["height"].var() == pytest.approx(0.0, abs=1e-12)
    assert net.do({"sex": "yes"}).query("height", engine=engine)["height"].mean() == pytest.approx(178.0)
    by_hand = net.query("sex", {"sex": gg.Likelihood({"yes": 3.0, "no": 1.0})}, engine=engine)["sex"]
    assert by_hand.prob("yes") == pytest.approx(1.2 / 1.8, abs=1e-12)
    virtual = net.query("sex", virtual_evidence={"sex": [1.0, 3.0], "height": (180.0, 5.0)}, engine=engine)
    h = {"no": (165.0, 7.0, 0.6), "yes": (178.0, 8.0, 1.2)}
    w = {}
    for state, (m, s, prior) in h.items():
        v = s * s + 25.0
        w[state] = prior * np.exp(-0.5 * (180.0 - m) ** 2 / v) / np.sqrt(2 * np.pi * v)
    assert virtual["sex"].prob("yes") == pytest.approx(w["yes"] / sum(w.values()), abs=1e-9)
    assert virtual.log_evidence == pytest.approx(np.log(sum(w.values())), abs=1e-9)


def test_impossible_rows_of_a_table():
    net = gg.BayesianNetwork(
        "a -> b; a -> x{real}",
        cpds={
            "a": 0.5,
            "b": {"no": 0.0, "yes": 1.0},
            "x": {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 5.0, "sd": 1.0}},
        },
    )
    frame = pd.DataFrame({"a": ["no", "yes"], "b": ["yes", "yes"]})
    answer = net.query(["x"], frame)
    assert answer.log_evidence[0] == -np.inf and np.isnan(answer["x"].mean()[0])
    assert answer["x"].mean()[1] == pytest.approx(5.0)
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query("x", {"a": "no", "b": "yes"})


def test_order_does_not_depend_on_names(rng):
    net = mixed_network(np.random.default_rng(3), 3, 3)
    question = read(net, None, {})
    plan = strong_plan(net, {}, np.zeros(0, np.int64))
    assert plan.bytes > 0 and plan.width >= 1 and question.keys(net) == net.variables
    reals = [v for clique in plan.tree.cliques for v in clique if not v.is_discrete]
    assert reals
    for clique, parent, separator in zip(plan.tree.cliques, plan.tree.parents, plan.tree.separators, strict=True):
        rest = [v for v in clique if v not in separator]
        if parent >= 0:  # strong: either only real variables go, or only discrete ones stay
            assert all(not v.is_discrete for v in rest) or all(v.is_discrete for v in separator)


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-8])
def test_nearly_deterministic_relations_stay_accurate(noise):
    """y = x up to a tiny noise, both observed with a difference of two noises: the density is known in closed form."""
    cpds = {"d": 0.5, "x": {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 1.0, "sd": 1.0}}}
    cpds["y"] = {"coefficients": 1.0, "sd": noise}
    cpds["z"] = {"coefficients": 1.0, "sd": 1.0}
    net = gg.BayesianNetwork("d -> x{real} -> y{real} -> z{real}", cpds=cpds)
    x, y = 0.25, 0.25 + 2.0 * noise
    answer = net.query(["z", "d"], {"x": x, "y": y})
    prior = np.array([np.exp(-0.5 * x * x), np.exp(-0.5 * (x - 1) ** 2)])
    np.testing.assert_allclose(answer["d"].probabilities, prior / prior.sum(), rtol=1e-6)
    step = (y - x) / noise
    log_p = np.log(0.5 * prior.sum()) - np.log(2 * np.pi) - np.log(noise) - 0.5 * step * step
    assert answer.log_evidence == pytest.approx(log_p, rel=1e-6)
    assert answer["z"].mean() == pytest.approx(y, abs=1e-9)
    alone = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": cpds["y"]})
    log_p = np.log(prior[0]) - np.log(2 * np.pi) - np.log(noise) - 0.5 * step * step
    assert alone.log_evidence({"x": x, "y": y}) == pytest.approx(log_p, rel=1e-6)
    chain = gg.BayesianNetwork("x{real} -> y{real} -> z{real}", cpds={"x": (0.0, 1.0), "y": cpds["y"], "z": cpds["z"]})
    assert chain.log_evidence({"x": x, "y": y}) == pytest.approx(log_p, rel=1e-6)
    assert chain.query("z", {"x": x, "y": y})["z"].mean() == pytest.approx(y, abs=1e-9)
    best = alone.map_query({"y": y})
    assert best.assignment["x"] == pytest.approx(y / (1 + noise**2), abs=1e-12)


@pytest.mark.filterwarnings("ignore:the chains disagree")
@pytest.mark.parametrize("engine", ["auto", "strong_tree", "likelihood_weighting", "gibbs", "laplace"])
def test_threads_change_nothing_and_progress_is_told(engine):
    """Tables of cases with several patterns: the same bits on one thread and on three; reports end at the last case."""
    rng = np.random.default_rng(3)
    net = mixed_network(rng, 2, 3, vectors=0.0)
    cases = net.sample(12, random_state=0)
    cases = cases.where(rng.random(cases.shape) < 0.6)
    told = []
    options = {"engine": engine, "random_state": 1}
    if engine in ("likelihood_weighting", "gibbs"):
        options["budget"] = 500
    one = net.query(None, cases, **options)
    many = net.query(None, cases, n_jobs=3, progress=lambda done, total: told.append((done, total)), **options)
    for key in one:
        if net.var(key).is_discrete:
            np.testing.assert_array_equal(one[key].probabilities, many[key].probabilities)
        else:
            np.testing.assert_array_equal(one[key].mean(), many[key].mean())
    assert told[-1] == (12, 12) and [done for done, _ in told] == sorted(done for done, _ in told)
    if engine == "auto":
        assert net.log_evidence(cases, n_jobs=2) == pytest.approx(net.log_evidence(cases))
        pd.testing.assert_frame_equal(net.map_query(cases, n_jobs=2), net.map_query(cases))
        with pytest.raises(gg.OptionError, match="n_jobs"):
            net.query(None, cases, n_jobs=0)
        with pytest.raises(gg.OptionError, match="gap and time_limit"):
            net.map_query(cases, time_limit=3.0)
