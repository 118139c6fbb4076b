"""Gibbs sampling and Laplace's approximation on networks with real-valued variables."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit

import gramgraph as gg
from gramgraph.conditionals import (
    ConditionalLinearGaussian,
    GaussianCopula,
    LinearGaussian,
    Margin,
    Predictor,
    Softmax,
    Table,
)
from gramgraph.engines.mixed.blankets import slice_move
from gramgraph.engines.sampling.gibbs import MixingWarning
from gramgraph.exceptions import ModelError
from gramgraph.variables import binary, real
from tests.engines.mixed.drawing import brute_force, compare, evidence_from, mixed_network


def normal(x, m=0.0, s=1.0):
    return np.exp(-0.5 * ((x - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))


@pytest.fixture(scope="module")
def clinic():
    """severity → pain (softmax), severity → fever (linear), drug chooses the intercept of fever."""
    severity, fever = real("severity"), real("fever")
    pain, drug = binary("pain"), binary("drug")
    return gg.BayesianNetwork(
        cpds=[
            LinearGaussian(severity, (), [], 0.5, sd=1.2),
            gg.Table(drug, (), [0.6, 0.4]),
            Softmax.logistic(pain, (severity,), [1.5], -0.5),
            gg.ConditionalLinearGaussian(fever, (severity, drug), {"severity": [0.8, 0.4]}, [37.0, 36.0], sd=0.7),
        ]
    )


def truth(pain: int, fever: float) -> dict[str, float]:
    """By quadrature over severity and a sum over drug."""

    def joint(x: float, d: int) -> float:
        like = expit(1.5 * x - 0.5) if pain else 1 - expit(1.5 * x - 0.5)
        mean = 37.0 + 0.8 * x if d == 0 else 36.0 + 0.4 * x
        return normal(x, 0.5, 1.2) * like * normal(fever, mean, 0.7) * (0.6, 0.4)[d]

    def moment(k: int, d: int) -> float:
        return quad(lambda x: x**k * joint(x, d), -12, 12, epsabs=1e-14, limit=200)[0]

    p = [moment(0, 0), moment(0, 1)]
    z = sum(p)
    mean = (moment(1, 0) + moment(1, 1)) / z
    return {"z": z, "drug": p[1] / z, "mean": mean, "var": (moment(2, 0) + moment(2, 1)) / z - mean**2}


@pytest.mark.parametrize("pain, fever", [(1, 38.5), (0, 36.2)])
def test_gibbs_agrees_with_quadrature(clinic, pain, fever):
    """Five standard errors: a false alarm once in a million runs, and the seed is fixed."""
    evidence = {"pain": ("no", "yes")[pain], "fever": fever}
    found = clinic.query(["severity", "drug"], evidence, engine="gibbs", random_state=1)
    want = truth(pain, fever)
    assert not found.exact and found.engine == "gibbs"
    assert found.details["max_r_hat"] < 1.05 and found.details["effective_draws"] > 1000
    assert found.details["steps"] == {"severity": "SliceStep"}
    error = found["severity"].standard_error()
    assert abs(found["severity"].mean() - want["mean"]) < 5 * error < 0.1
    assert found["severity"].var() == pytest.approx(want["var"], rel=0.08)
    gap = found["drug"].prob("yes") - want["drug"]
    assert abs(gap) < 5 * found.details["standard_error"]["drug"][1]
    assert found.log_evidence == pytest.approx(np.log(want["z"]), abs=5 * found.details["log_evidence_error"])


@pytest.mark.parametrize("pain, fever", [(1, 38.5), (0, 36.2)])
def test_laplace_is_near_quadrature_and_says_how_near(clinic, pain, fever):
    evidence = {"pain": ("no", "yes")[pain], "fever": fever}
    found = clinic.query(["severity", "drug"], evidence, engine="laplace", random_state=0)
    want = truth(pain, fever)
    assert not found.exact and found.details["configurations"] == 2
    assert found.log_evidence == pytest.approx(np.log(want["z"]), abs=0.05)
    assert found["severity"].mean() == pytest.approx(want["mean"], abs=0.08)
    assert found["drug"].prob("yes") == pytest.approx(want["drug"], abs=0.02)
    check = found.details
    assert check["effective_draws"] > 0.9 * check["draws"]
    assert check["log_evidence_check"] == pytest.approx(np.log(want["z"]), abs=5 * check["log_evidence_error"])


@pytest.mark.parametrize("seed", range(6))
def test_laplace_is_exact_where_everything_is_conditional_gaussian(seed):
    """Beliefs and log p(e) against brute force, with vectors, zeros and discrete choosers; the k best add up."""
    rng = np.random.default_rng(seed)
    net = mixed_network(rng, 3, 4)
    evidence = evidence_from(net, rng)
    compare(net.query(None, evidence, engine="laplace"), net, evidence, brute_force(net, evidence), atol=1e-8)
    best, few = net.map_query(evidence), net.map_query(evidence, k=3)
    assert few[0].log_prob == pytest.approx(best.log_prob, abs=1e-8)
    assert [a.log_prob for a in few] == sorted((a.log_prob for a in few), reverse=True)
    for a in few:
        assert a.exact and net.joint_log_prob({**evidence, **a.assignment}) == pytest.approx(a.log_prob, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_gibbs_agrees_with_brute_force(seed):
    """Means and probabilities within five standard errors (seeded)."""
    rng = np.random.default_rng(100 + seed)
    net = mixed_network(rng, 2, 3, zeros=0.0)
    evidence = evidence_from(net, rng)
    _, tables, mean, _, place, _ = brute_force(net, evidence)
    found = net.query(None, evidence, engine="gibbs", random_state=seed, burn_in=300)
    for key in found:
        error = np.asarray(found.details["standard_error"][key])
        real_one = not net.var(key).is_discrete
        have = np.atleast_1d(found[key].mean()) if real_one else found[key].probabilities
        want = mean[place[key]] if real_one else tables[key]
        assert (np.abs(have - want) <= 5 * error + 1e-4).all(), (key, have, want, error)


def test_gibbs_on_an_undirected_gaussian():
    P = np.array([[2.0, -0.8, 0.0], [-0.8, 2.0, -0.8], [0.0, -0.8, 1.5]])
    net = gg.MarkovNetwork.from_precision(P, mean=[1.0, 2.0, 3.0])
    exact = net.query(None, {"x1": 0.5})
    found = net.query(None, {"x1": 0.5}, engine="gibbs", random_state=0)
    for key in exact:
        assert abs(found[key].mean() - exact[key].mean()) < 5 * found[key].standard_error()
    assert np.isnan(found.log_evidence) and found.details["max_r_hat"] < 1.05


def test_many_cases_and_joints(clinic):
    cases = pd.DataFrame({"fever": [38.5, 36.2, np.nan], "pain": ["yes", None, "no"]}, index=["a", "b", "c"])
    for engine in ("gibbs", "laplace"):
        many = clinic.query(["severity", "drug", ("drug", "severity")], cases, engine=engine, random_state=0)
        for row, one in enumerate(cases.to_dict("records")):
            evidence = {k: v for k, v in one.items() if isinstance(v, str) or (v is not None and not np.isnan(v))}
            alone = clinic.query(["severity", "drug"], evidence, engine="likelihood_weighting", random_state=3)
            assert many["severity"].mean()[row] == pytest.approx(alone["severity"].mean(), abs=0.12)
            assert many["drug"].probabilities[row, 1] == pytest.approx(alone["drug"].prob("yes"), abs=0.06)
        joint = many["drug", "severity"]
        np.testing.assert_allclose(joint.discrete.probabilities, many["drug"].probabilities, atol=1e-9)
        np.testing.assert_allclose(joint.mean(), many["severity"].mean(), atol=1e-9)
        assert many.details["effective_draws"].shape == (3,) and (many.details["effective_draws"] > 100).all()


def test_auto_turns_to_chains_where_weighting_fails(monkeypatch):
    """Evidence far out: hardly any weighted draw counts, and the answer says what was done instead."""
    x = [real(f"x{i}") for i in range(6)]
    s = [binary(f"s{i}") for i in range(6)]
    y = [real(f"y{i}") for i in range(6)]
    parts = [LinearGaussian(x[0])] + [LinearGaussian(b, (a,), [0.9], sd=0.5) for a, b in pairwise(x)]
    parts += [Softmax.logistic(b, (a,), [2.0]) for a, b in zip(x, s, strict=True)]
    parts += [LinearGaussian(b, (a,), [1.0], sd=0.02) for a, b in zip(x, y, strict=True)]
    net = gg.BayesianNetwork(cpds=parts)
    evidence = {f"y{i}": 0.4 * i for i in range(6)} | {"s0": "yes", "s5": "no"}
    nodes = net.query("x3", evidence)
    assert nodes.engine == "nodes" and nodes.quality == "checked"
    monkeypatch.setattr("gramgraph.engines.registry.NODE_CASES", 0)  # as where cliques are too large for nodes
    found = net.query("x3", evidence, random_state=0)
    assert abs(found["x3"].mean() - nodes["x3"].mean()) < 5 * found["x3"].standard_error() + 1e-6
    assert found.engine == "gibbs" and "weighted draws only" in found.details["note"]
    laplace = net.query("x3", evidence, engine="laplace", random_state=0)
    assert abs(found["x3"].mean() - laplace["x3"].mean()) < 5 * found["x3"].standard_error() + 1e-3
    assert laplace.details["effective_draws"] > 0.9 * laplace.details["draws"]


def test_copulas_and_predictors_by_differences():
    """Two dimensions against quadrature: a copula edge and a regressor have no closed form."""

    class Square:
        def predict(self, X):
            return 0.3 * np.asarray(X)[:, 0] ** 2

    margins = {"x": Margin("norm"), "w": Margin("gamma", parameters={"a": 4.0})}
    x, w, y = real("x"), real("w"), real("y")
    net = gg.BayesianNetwork(
        cpds=[LinearGaussian(x), GaussianCopula(w, (x,), 0.6, margins), Predictor(y, (w,), Square(), 0.8)]
    )
    values = net.conditional("w"), net.conditional("y")

    a, b = np.meshgrid(np.linspace(-6, 6, 241), np.linspace(1e-3, 25, 601))  # smooth and zero at the edge
    point = {x: a.reshape(-1, 1), w: b.reshape(-1, 1), y: np.full((a.size, 1), 3.0)}
    density = normal(a.reshape(-1)) * np.exp(sum(c.log_density(point) for c in values))
    cell = 12 / 240 * (25 - 1e-3) / 600
    z = density.sum() * cell
    mean = (b.reshape(-1) * density).sum() * cell / z
    laplace = net.query(["w", "x"], {"y": 3.0}, engine="laplace", random_state=0)
    assert laplace.log_evidence == pytest.approx(np.log(z), abs=0.05)
    assert laplace["w"].mean() == pytest.approx(mean, abs=0.1)
    gibbs = net.query(["w", "x"], {"y": 3.0}, engine="gibbs", random_state=0, budget=4000)
    assert abs(gibbs["w"].mean() - mean) < 5 * gibbs["w"].standard_error()
    best = net.map_query({"y": 3.0})
    near = [
        net.joint_log_prob({"y": 3.0, **{k: v + d for (k, v), d in zip(best.assignment.items(), off, strict=True)}})
        for off in ((0.01, 0.0), (-0.01, 0.0), (0.0, 0.01), (0.0, -0.01))
    ]
    assert best.log_prob > max(near) and not best.exact


def test_variables_without_noise_are_refused_with_a_way_out():
    net = gg.BayesianNetwork(
        "x{real} -> y{real} -> z{real}",
        cpds={
            "x": (0, 1),
            "y": {"coefficients": 2.0, "sd": 0.0},
            "z": {"coefficients": 1.0, "sd": 1.0},
        },
    )
    for engine in ("gibbs", "laplace"):
        with pytest.raises(gg.ModelError, match="y is a function of its parents without noise"):
            net.query("x", {"z": 1.0}, engine=engine)


def test_chains_that_are_stuck_are_reported():
    """Two modes far apart that single moves do not connect."""
    d = binary("d")
    parts = [
        gg.Table(d, (), [0.5, 0.5]),
        gg.ConditionalLinearGaussian("x", (d,), intercept=[-30.0, 30.0], sd=[0.5, 0.5]),
    ]
    net = gg.BayesianNetwork(cpds=parts)
    with pytest.warns(MixingWarning, match="chains disagree"):
        found = net.query("x", engine="gibbs", random_state=0)
    assert found.details["max_r_hat"] > 2 and found["x"].standard_error() > 1.0


def test_laplace_with_more_configurations_than_are_listed():
    """Only the probable configurations are worked on; the missing mass shows in log p(e), which is a little low."""
    ds = [binary(f"d{i}") for i in range(8)]
    parts = [gg.Table(d, (), [0.99, 0.01]) for d in ds]
    parts.append(
        gg.ConditionalLinearGaussian("x", tuple(ds), intercept=np.random.default_rng(0).normal(size=(2,) * 8 + (1,)))
    )
    net = gg.BayesianNetwork(cpds=parts)
    exact = net.query("d0", {"x": 0.3})
    found = net.query("d0", {"x": 0.3}, engine="laplace", max_configurations=40, random_state=0)
    assert found.details["configurations"] <= 40
    assert exact.log_evidence - 0.02 < found.log_evidence <= exact.log_evidence + 1e-9
    np.testing.assert_allclose(found["d0"].probabilities, exact["d0"].probabilities, atol=0.01)
    with pytest.raises(gg.OptionError, match="look at all"):
        gg.BayesianNetwork(
            cpds=[gg.Table(binary(f"d{i}"), (), [0.5, 0.5]) for i in range(13)] + [LinearGaussian("x")]
        ).map_query(k=2)


def test_a_slice_move_keeps_a_skewed_density():
    """Exponential draws stay exponential: mean and P(x > 2) within five standard errors of 20,000 draws."""
    rng = np.random.default_rng(0)
    x = rng.exponential(size=20_000)
    for _ in range(6):
        x = slice_move(lambda at: np.where(at > 0, -at, -np.inf), x, 1.5, rng)
    assert abs(x.mean() - 1.0) < 5 / np.sqrt(20_000)
    assert abs((x > 2).mean() - np.exp(-2)) < 5 * np.sqrt(np.exp(-2) / 20_000)


def test_marginal_modes_of_mixed_targets(clinic):
    """The best (drug, severity) with the rest integrated out, against a grid."""
    rows = {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 0.5}}
    cpds = {"d": 0.3, "x": rows, "y": {"coefficients": 1.5, "sd": 1.0}}
    net = gg.BayesianNetwork("d -> x{real} -> y{real}", cpds=cpds)
    grid = np.linspace(-3, 5, 8001)
    density = net.query("x", {"y": 2.0})["x"].density(grid)
    found = net.map_query({"y": 2.0}, targets=["x"])
    assert found.assignment["x"] == pytest.approx(grid[density.argmax()], abs=2e-3)
    assert found.log_prob == pytest.approx(np.log(density.max()) + net.log_evidence({"y": 2.0}), abs=1e-6)
    both = net.map_query({"y": 2.0}, targets=["d", "x"])
    assert both.assignment["d"] == "yes" and both.assignment["x"] == pytest.approx(1.76, abs=1e-9)
    assert both.log_prob == pytest.approx(net.joint_log_prob({"y": 2.0, **both.assignment}), abs=1e-9)
    assert clinic.map_query({"fever": 38.0}, targets=["severity"]).exact is False


def test_weighted_draws_tell_the_errors_of_means_and_of_probabilities(clinic):
    answer = clinic.query(["severity", "drug"], {"pain": "yes"}, engine="likelihood_weighting", random_state=0)
    errors = answer.details["standard_error"]
    assert errors["drug"].shape == (2,)
    assert errors["severity"].tolist() == [answer["severity"].standard_error()]


def test_draws_refuse_an_observed_function_of_what_they_draw():
    """No draw meets the observed number: where another state has noise, the answer was that of this state alone."""
    d, x, y = binary("d"), real("x"), real("y")
    parts = [Table(d, (), [0.5, 0.5]), LinearGaussian(x)]
    parts.append(ConditionalLinearGaussian(y, (d, x), [[[2.0]], [[0.0]]], [[0.0], [5.0]], sd=[[0.0], [1.0]]))
    net = gg.BayesianNetwork(cpds=parts)
    with pytest.raises(ModelError, match="y is observed, and a function of x without noise: draws of x"):
        net.query("d", {"y": 1.0}, engine="likelihood_weighting", random_state=0)
    assert net.query("d", {"y": 1.0})["d"].prob(d.states[0]) > 0.99  # all configurations, exactly
    for given, asked in ((net, {"y": 2.0, "x": 1.0}), (net.do({"x": 1.0}), {"y": 2.0})):  # what is known is met
        found = given.query("d", asked, engine="likelihood_weighting", random_state=0)
        assert found["d"].prob(d.states[0]) > 0.99
