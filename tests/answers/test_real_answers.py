"""Beliefs about real variables: numbers, frames, texts and pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import gramgraph as gg
from gramgraph.answers import MixtureBelief, SampledBelief
from gramgraph.exceptions import VariableError
from gramgraph.variables import Circle, Var, real


@pytest.fixture
def mixture():
    w, m, s = [0.3, 0.7], [-2.0, 1.0], [0.5, 1.5]
    belief = MixtureBelief((real("x"),), np.array([w]), np.array(m).reshape(1, 2, 1), np.square(s).reshape(1, 2, 1, 1))
    return belief, np.array(w), np.array(m), np.array(s)


def test_numbers_of_a_mixture(mixture):
    belief, w, m, s = mixture
    mean = w @ m
    assert belief.mean() == pytest.approx(mean)
    assert belief.var() == pytest.approx(w @ (s**2 + (m - mean) ** 2))
    x = np.linspace(-4, 5, 9)
    np.testing.assert_allclose(belief.density(x), norm.pdf(x[:, None], m, s) @ w)
    np.testing.assert_allclose(belief.cdf(x), norm.cdf(x[:, None], m, s) @ w)
    q = np.array([0.01, 0.3, 0.5, 0.99])
    np.testing.assert_allclose(belief.cdf(belief.quantile(q)), q, atol=1e-12)
    assert isinstance(belief.density(0.0), float) and isinstance(belief.quantile(0.5), float)
    assert belief.expect(np.sin) == pytest.approx(float(w @ (np.sin(m) * np.exp(-(s**2) / 2))), abs=1e-9)
    draws = belief.sample(50_000, random_state=0)
    assert abs(draws.mean() - mean) < 5 * belief.sd() / np.sqrt(50_000)
    grid = np.linspace(-4, 5, 20_001)
    assert belief.mode() == pytest.approx(grid[np.argmax(belief.density(grid))], abs=1e-3)


def test_draws_of_angles_have_directions(rng):
    x = np.angle(np.exp(1j * (3.0 + 0.5 * rng.normal(size=(20_000, 1)))))
    belief = SampledBelief((Var("a", Circle()),), x, np.full(20_000, 1 / 20_000))
    assert belief.mean_direction() == pytest.approx(3.0, abs=0.02)
    assert belief.resultant_length() == pytest.approx(np.exp(-0.125), abs=0.01)
    assert belief.sd() == pytest.approx(np.sqrt(-2.0 * np.log(belief.resultant_length())))
    with pytest.raises(VariableError, match="resultant_length"):
        SampledBelief((real("x"),), x, np.full(20_000, 1 / 20_000)).resultant_length()


def test_weighted_draws(rng):
    x = rng.normal(size=(4000, 1))
    weights = np.exp(0.5 * x[:, 0])  # tilts N(0, 1) to N(0.5, 1)
    belief = SampledBelief((real("x"),), x, weights / weights.sum())
    assert abs(belief.mean() - 0.5) < 5 * belief.standard_error()
    assert belief.cdf(0.5) == pytest.approx(0.5, abs=0.05)
    assert belief.quantile(0.5) == pytest.approx(0.5, abs=0.1)
    assert belief.density(0.5) == pytest.approx(norm.pdf(0.0), abs=0.05)
    assert belief.expect(lambda v: v > 0.5) == pytest.approx(0.5, abs=0.05)
    assert belief.mode() == pytest.approx(0.5, abs=0.3)
    assert belief.sample(5, random_state=0).shape == (5,)
    low, high = belief.interval(0.9)
    assert low < belief.mean() < high


def _net():
    cpds = {"g": 0.5, "x": {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 3.0, "sd": 1.0}}}
    cpds["y"] = {"coefficients": [[1.0], [2.0]], "intercept": [0.0, 0.0], "sd": 1.0}
    return gg.BayesianNetwork("g -> x{real} -> y{real^2}", cpds=cpds)


def test_frames_and_texts():
    net = _net()
    answer = net.query(None, {"y": [1.0, 2.0]})
    frame = answer.to_frame()
    assert list(frame) == ["variable", "state", "probability", "mean", "sd"] and len(frame) == 3
    assert "mean" in repr(answer) and "log p(evidence)" in repr(answer) and "<table" in answer._repr_html_()
    assert "x" in repr(answer["x"]) and "<table" in answer["x"]._repr_html_()
    real_only = net.query(["x"], {"g": "yes"}).to_frame()
    assert list(real_only) == ["variable", "mean", "sd"]
    batch = net.query(["x", "g"], pd.DataFrame({"y[0]": [1.0, 2.0], "y[1]": [1.0, 2.0]}, index=["a", "b"]))
    assert batch.to_frame().index.tolist() == ["a", "b"]
    assert ("x", "mean") in batch.to_frame().columns and ("g", "yes") in batch.to_frame().columns
    assert "2 cases" in repr(batch) and "2 cases" in repr(batch["x"])
    assert batch["x"].interval(0.5).shape == (2, 2) and batch["x"].density(1.0).shape == (2,)
    assert answer["y"].mean().tolist() == [1.0, 2.0]  # observed: not listed, but there
    assert "y" not in list(answer)
    best = net.map_query({"y": [1.0, 2.0]})
    assert "x=" in repr(best)


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from gramgraph.plot import network_svg, plot_density

    net = _net()
    answer = net.query(None, {"y": [1.0, 2.0]})
    ax = answer["x"].plot()
    x = ax.lines[0].get_xdata()
    assert x[0] < answer["x"].mean() < x[-1] and ax.get_xlabel() == "x"
    assert answer.plot().shape == (1, 2)
    pair = net.query(["y", ("x", "g")], {})
    assert len(pair["y"].plot().collections) >= 1
    cases = net.query("x", pd.DataFrame({"g": ["no", "yes"]}))["x"]
    assert len(plot_density(cases).collections) == 1
    drawn = net.query("x", {"y": [1.0, 2.0]}, engine="likelihood_weighting", random_state=0, budget=2000)
    assert drawn["x"].plot().get_ylabel() == "density"
    point = net.do({"x": 1.0}).query("x")["x"]
    assert point.plot().lines
    assert "±" in network_svg(net, answer)
    with pytest.raises(gg.VariableError, match="fewer together"):
        net.query([("x", "y")])[("x", "y")].plot()
    plt.close("all")


def test_worked_example_of_a_precision_matrix():
    """A 4 × 4 covariance whose inverse has zeros: x1 and x4 are apart from what they are not linked to."""
    S = np.array([[14.0, -16, 4, -2], [-16, 32, -8, 4], [4, -8, 8, -4], [-2, 4, -4, 5]])
    P = np.linalg.inv(S)
    printed = [[0.1667, 0.0833, 0, 0], [0.0833, 0.0833, 0.0417, 0], [0, 0.0417, 0.25, 0.1667], [0, 0, 0.1667, 0.3333]]
    np.testing.assert_allclose(P, printed, atol=5e-5)
    net = gg.MarkovNetwork.from_precision(P, tolerance=1e-9)
    assert net.edges == (("x0", "x1"), ("x1", "x2"), ("x2", "x3"))
    chain = gg.BayesianNetwork.from_gaussian(np.zeros(4), S, "x0 -> x1 -> x2 -> x3", names=["x0", "x1", "x2", "x3"])
    np.testing.assert_allclose(chain.to_gaussian().cov, S, atol=1e-8)  # the graph has all that is needed
    assert abs(chain.partial_correlations().loc["x0", "x2"]) < 1e-9
    assert chain.query("x0", {"x1": 1.0, "x3": 5.0})["x0"].mean() == pytest.approx(
        chain.query("x0", {"x1": 1.0})["x0"].mean()
    )


def test_a_joint_of_both_kinds_shows_both():
    """Text and frame of p(d, x | e): a row for each state, whose numbers add up to the marginals."""
    rows = {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 0.5}}
    cpds = {"d": 0.3, "x": rows, "y": {"coefficients": 1.5, "sd": 1.0}}
    net = gg.BayesianNetwork("d -> x{real} -> y{real}", cpds=cpds)
    answer = net.query(["d", "x", ("d", "x")], {"y": 2.0})
    text = repr(answer)
    assert "x mean" in text and "yes" in text.splitlines()[-1] and "0.4537" in text.splitlines()[-1]
    assert repr(answer["d", "x"]) in text
    frame = answer["d", "x"].to_frame()
    assert list(frame["state"]) == ["no", "yes"]
    np.testing.assert_allclose(frame["probability"], answer["d"].probabilities, atol=1e-12)
    np.testing.assert_allclose((frame["probability"] * frame["mean"]).sum(), answer["x"].mean(), atol=1e-12)
    for state, part in frame.groupby("state"):
        alone = net.query("x", {"y": 2.0, "d": state})["x"]
        assert part["mean"].item() == pytest.approx(alone.mean()) and part["sd"].item() == pytest.approx(alone.sd())


def test_log_evidence_of_a_gaussian_markov_network_is_a_log_density(rng):
    from scipy.stats import multivariate_normal

    M = rng.normal(size=(5, 5))
    P, mean = M @ M.T + np.eye(5), rng.normal(size=5)
    S = np.linalg.inv(P)
    net = gg.MarkovNetwork.from_precision(P, mean=mean)
    assert net.log_evidence() == pytest.approx(0.0, abs=1e-12)
    at = [1, 3]
    want = multivariate_normal(mean[at], S[np.ix_(at, at)]).logpdf([0.3, -1.0])
    for engine in ("dense", "sparse", "junction_tree"):
        found = net.query("x0", {"x1": 0.3, "x3": -1.0}, engine=engine)
        assert found.log_evidence == pytest.approx(want, abs=1e-9)
    x = rng.normal(size=5)
    full = multivariate_normal(mean, S).logpdf(x)
    assert net.joint_log_prob({f"x{i}": x[i] for i in range(5)}) == pytest.approx(full, abs=1e-10)


def test_divergence_of_distributions_and_of_gaussian_networks(rng):
    assert gg.analysis.kl_divergence(
        gg.distributions.Gamma(2.0, 1.0), gg.distributions.Gamma(3.0, 2.0)
    ) == gg.distributions.Gamma(2.0, 1.0).kl(gg.distributions.Gamma(3.0, 2.0))
    assert gg.analysis.kl_divergence(
        gg.distributions.Normal(0, 1), gg.distributions.Normal(1, 1), base=2
    ) == pytest.approx(0.5 / np.log(2))
    cpds = {"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}}
    p = gg.BayesianNetwork("x{real} -> y{real}", cpds=cpds)
    q = gg.BayesianNetwork("y{real} -> x{real}", cpds={"y": (1.0, 3.0), "x": {"coefficients": 0.3, "sd": 1.0}})
    draws = p.sample(200_000, random_state=0)
    logs = p.log_likelihood(draws) - q.log_likelihood(draws)
    gap = float(np.mean(logs)) / (len(draws) if np.ndim(logs) == 0 else 1)
    assert gg.analysis.kl_divergence(p, q) == pytest.approx(gap, abs=0.02)
    assert gg.analysis.kl_divergence(p, p) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(gg.ModelError, match="two models, or of two distributions"):
        gg.analysis.kl_divergence(p, 3.0)
    with pytest.raises(gg.ModelError, match="same variables"):
        gg.analysis.kl_divergence(p, gg.BayesianNetwork("x{real}", cpds={"x": (0, 1)}))


@pytest.mark.parametrize("gap", [False, True])
def test_an_answer_keeps_what_was_observed_and_frames_of_it_are_their_own(gap: bool) -> None:
    net = gg.BayesianNetwork(
        "x{real} -> y{real} -> z{real}",
        cpds={"x": (0, 1), "y": {"coefficients": 2.0, "sd": 1.0}, "z": {"coefficients": 1.0, "sd": 1.0}},
    )
    values = np.random.default_rng(0).normal(size=(12, 2))
    values[3, 1] = np.nan if gap else 0.5
    names = ["y", "z"]
    wanted = net.query("x", pd.DataFrame(values.copy(), columns=names))
    mean, log_p = wanted["x"].mean(), wanted.log_evidence
    shared = pd.DataFrame(values, columns=names, copy=False)
    answer = net.query("x", shared)
    values[:] = -7.0  # before anything was asked of the answer
    first = answer.means()
    np.testing.assert_allclose(first["x"], mean, rtol=1e-12)
    np.testing.assert_allclose(answer.log_evidence, log_p, rtol=1e-12)
    first.iloc[:] = 99.0
    np.testing.assert_allclose(answer.means()["x"], mean, rtol=1e-12)
    np.testing.assert_allclose(answer["x"].mean(), mean, rtol=1e-12)
