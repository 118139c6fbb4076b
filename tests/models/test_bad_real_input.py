"""Mistakes get errors that say what was expected, what came, and what helps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.conditionals import ConditionalLinearGaussian, LinearGaussian, Softmax
from gramgraph.engines.registry import EngineError
from gramgraph.variables import Real, binary, real


@pytest.fixture
def net():
    cpds = {"g": 0.5, "x": {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 1.0}}}
    cpds["y"] = {"coefficients": [[1.0], [2.0]], "intercept": [0.0, 0.0], "sd": 1.0}
    return gg.BayesianNetwork("g -> x{real} -> y{real^2}", cpds=cpds)


def test_covariances_that_are_none():
    with pytest.raises(gg.ModelError, match=r"p\(y\): the noise covariance is not positive semidefinite"):
        gg.BayesianNetwork(cpds=[LinearGaussian(real("y", 2), (), (), [0, 0], [[1.0, 2.0], [2.0, 1.0]])])
    with pytest.raises(gg.ModelError, match="variance is negative"):
        gg.BayesianNetwork(cpds=[LinearGaussian("y", (), (), 0.0, -1.0)])
    with pytest.raises(gg.ModelError, match="not symmetric"):
        gg.BayesianNetwork(cpds=[LinearGaussian(real("y", 2), (), (), [0, 0], [[1.0, 0.5], [0.0, 1.0]])])
    with pytest.raises(gg.ModelError, match="not finite"):
        gg.BayesianNetwork(cpds=[LinearGaussian("y", (), (), np.nan, 1.0)])
    with pytest.raises(gg.ModelError, match="not positive definite"):
        gg.MarkovNetwork.from_precision([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(gg.ModelError, match="not symmetric"):
        gg.MarkovNetwork.from_precision([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(gg.ModelError, match="not positive semidefinite"):
        gg.BayesianNetwork.from_gaussian([0, 0], [[1.0, 2.0], [2.0, 1.0]])


def test_dimensions_that_are_mixed_up():
    with pytest.raises(gg.ModelError, match=r"coefficients of y must have shape \(1, 2\), not \(3,\)"):
        LinearGaussian("y", ("a", "b"), [1.0, 2.0, 3.0])
    with pytest.raises(gg.ModelError, match=r"covariance of y must have shape \(2, 2\)"):
        LinearGaussian(real("y", 2), (), (), [0.0, 0.0], np.eye(3))
    with pytest.raises(gg.VariableError, match="'c' is none of its real parents"):
        LinearGaussian("y", ("a",), {"c": 1.0})
    with pytest.raises(gg.ModelError, match="use ConditionalLinearGaussian"):
        LinearGaussian("y", (binary("d"),), 1.0)
    with pytest.raises(gg.ModelError, match="one label for each of"):
        ConditionalLinearGaussian.from_configurations("y", (binary("d"),), {("no", "yes"): {}})
    with pytest.raises(gg.ModelError, match=r"no numbers for p\(y \| d=yes\)"):
        ConditionalLinearGaussian.from_configurations("y", (binary("d"),), {"no": {"sd": 1.0}})
    with pytest.raises(gg.ModelError, match="weights of s must have shape"):
        Softmax(binary("s"), ("x",), [1.0, 2.0, 3.0])
    with pytest.raises(gg.ModelError, match="whole number from 1"):
        Real(0)
    with pytest.raises(gg.ModelError, match="2 finite numbers"):
        gg.MarkovNetwork.from_precision(np.eye(2), mean=[1.0])
    with pytest.raises(gg.VariableError, match="2 names are needed"):
        gg.MarkovNetwork.from_precision(np.eye(2), names=["a"])


def test_evidence_that_is_none(net):
    assert net.query("g", {"x": np.nan}).log_evidence == 0.0  # not observed, as for tables
    with pytest.raises(gg.StateError, match="finite"):
        net.query("g", {"x": np.inf})
    with pytest.raises(gg.StateError, match="x is real-valued: a number expected, not 'tall'"):
        net.query("g", {"x": "tall"})
    with pytest.raises(gg.StateError, match="y takes 2 numbers, got 1"):
        net.query("g", {"y": 1.0})
    with pytest.raises(gg.StateError, match="'maybe' is not a state of g"):
        net.query("x", {"g": "maybe"})
    with pytest.raises(gg.VariableError, match="Did you mean 'x'"):
        net.query("g", {"X": 1.0})
    with pytest.raises(gg.StateError, match="noisy reading"):
        net.query("g", {"x": gg.Likelihood([1.0, 2.0])})
    with pytest.raises(gg.StateError, match=r"\(value, sd\)"):
        net.query("g", virtual_evidence={"x": 1.0})
    with pytest.raises(gg.StateError, match="must be positive"):
        net.query("g", virtual_evidence={"x": (1.0, 0.0)})
    assert net.query("g", soft_evidence={"g": [0.2, 0.8]})["g"].probabilities == pytest.approx([0.2, 0.8])
    with pytest.raises(gg.StateError, match="soft evidence"):
        net.query("g", soft_evidence={"x": [0.5, 0.5]})
    assert net.query("g", {"x": None})["g"].prob("yes") == pytest.approx(0.5)


def test_tables_of_cases_that_are_none(net):
    with pytest.raises(gg.StateError, match="row 1: x is real-valued: a number expected, not 'tall'"):
        net.query("g", pd.DataFrame({"x": [1.0, "tall"]}))
    with pytest.raises(gg.StateError, match="row 1: x takes finite numbers, got inf"):
        net.query("g", pd.DataFrame({"x": [1.0, np.inf]}))
    with pytest.raises(gg.StateError, match="row 1: 'maybe' is not a state of g"):
        net.query("x", pd.DataFrame({"g": ["no", "maybe"]}))
    with pytest.raises(gg.StateError, match="observed as a whole"):
        net.query("g", pd.DataFrame({"y[0]": [1.0, 2.0], "y[1]": [1.0, np.nan]}))
    with pytest.raises(gg.VariableError, match="is not a variable"):
        net.query("g", pd.DataFrame({"z": [1.0]}))
    with pytest.raises(gg.VariableError, match="item 1 is 2.0"):
        net.query("g", [{"x": 1.0}, 2.0])
    empty = net.query(["x", "g"], pd.DataFrame({"y[0]": np.zeros(0), "y[1]": np.zeros(0)}))
    assert empty.log_evidence.shape == (0,)


def test_wrong_questions(net):
    with pytest.raises(EngineError, match="not an engine for conditional-Gaussian models. Engines: auto, enumeration"):
        net.query("g", engine="sparse")
    with pytest.raises(gg.VariableError, match="was not asked for"):
        net.query("g")["x"]
    with pytest.raises(gg.OptionError, match="whole number from 1"):
        net.map_query({}, k=0)
    with pytest.raises(gg.VariableError, match="leave targets out"):
        net.map_query({}, k=3, targets=["g"])
    (only,) = gg.BayesianNetwork("x{real}", cpds={"x": (0, 1)}).map_query(k=2)  # a Gaussian has one mode
    assert only.assignment == {"x": 0.0}
    with pytest.raises(gg.OptionError, match="'chains' is not an option of engine 'gibbs'. It takes n_chains, burn_in"):
        net.query("g", engine="gibbs", chains=3)
    with pytest.raises(gg.OptionError, match="n_chains is a whole number from 4"):
        net.query("g", engine="gibbs", n_chains=1)
    with pytest.raises(gg.OptionError, match="max_configurations"):
        net.query("g", engine="laplace", max_configurations=0)
    with pytest.raises(gg.OptionError, match="whole number from 0"):
        net.sample(-1)
    with pytest.raises(gg.OptionError, match="number of draws"):
        net.query("g", {"x": 1.0}, engine="likelihood_weighting", budget=0)
    with pytest.raises(gg.OptionError, match="between 0 and 1"):
        net.query("x")["x"].interval(1.5)
    with pytest.raises(gg.VariableError, match="scalar variable"):
        net.query("y")["y"].quantile(0.5)
    with pytest.raises(gg.ModelError, match="all real-valued"):
        net.to_gaussian()
    with pytest.raises(gg.ModelError, match="real-valued"):
        net.conditional("x").table()


def test_writing_mistakes():
    with pytest.raises(gg.ModelError, match="'intercept'"):
        gg.BayesianNetwork("x{real}", cpds={"x": "normal"})
    with pytest.raises(gg.ModelError, match="has real parents"):
        gg.BayesianNetwork("x{real} -> d", cpds={"x": (0, 1), "d": [[0.5, 0.5]]})
    with pytest.raises(gg.ModelError, match="elsewhere"):
        gg.BayesianNetwork("x{real}", states={"x": ["a", "b"]})
    with pytest.raises(gg.ModelError, match="real.3"):
        gg.BayesianNetwork("x{real^k}")
    with pytest.raises(gg.ModelError, match="a draft holds tables"):
        gg.BayesianNetwork.draft("x{real}")
    with pytest.raises(gg.ModelError, match="no conditional yet for x"):
        gg.BayesianNetwork("x{real}").query("x")
    with pytest.raises(gg.ModelError, match="real-valued"):
        gg.BayesianNetwork("x{real}").random_tables()
    with pytest.raises(gg.StateError, match="a number expected"):
        gg.BayesianNetwork("x{real}", cpds={"x": (0, 1)}).do({"x": "high"})
    with pytest.raises(gg.VariableError, match="full assignment"):
        gg.BayesianNetwork("x{real}; y{real}", cpds={"x": (0, 1), "y": (0, 1)}).joint_log_prob({"x": 1.0})


def test_learning_mistakes():
    net = gg.BayesianNetwork("x{real} -> y{real}")
    with pytest.raises(gg.VariableError, match="no column"):
        net.fit(pd.DataFrame({"z": [1.0, 2.0]}))
    with pytest.raises(gg.VariableError, match="no rows"):
        net.fit(pd.DataFrame({"x": np.zeros(0), "y": np.zeros(0)}))
    with pytest.raises(gg.OptionError, match="prior is None"):
        net.fit(pd.DataFrame({"x": [1.0, 2.5], "y": [1.0, 2.0]}), prior="strong")
    with pytest.raises(gg.StateError, match="a number expected"):
        net.fit(pd.DataFrame({"x": ["a", "b"], "y": [1.0, 2.0]}))
    with pytest.raises(gg.OptionError, match="weights are 2"):
        net.fit(pd.DataFrame({"x": [1.0, 2.5], "y": [1.0, 2.0]}), weights=[1.0])
    with pytest.raises(gg.OptionError, match="must be a positive number"):
        gg.learn.LinearGaussianPrior(scale=0.0)


def test_predictors_that_do_not_fit_their_parents():
    from sklearn.linear_model import LinearRegression

    x, y, z = real("x"), real("y"), real("z")
    data = np.random.default_rng(0).normal(size=(9, 2))
    fitted = LinearRegression().fit(data, data[:, 0])
    with pytest.raises(gg.ModelError, match=r"fitted to 2 columns; its parents \(x\{real\}\) make 1"):
        gg.conditionals.Predictor(y, (x,), fitted, noise=1.0)
    with pytest.raises(gg.ModelError, match="must be positive"):
        gg.conditionals.Predictor(y, (x, z), fitted, noise=-1.0)
    with pytest.raises(gg.ModelError, match="must be numbers"):
        gg.conditionals.Predictor(y, (x, z), fitted, noise={"sd": 1.0})
    with pytest.raises(gg.ModelError, match="1 standard deviations"):
        gg.conditionals.Predictor(y, (x, z), fitted, noise=[1.0, 2.0])


def test_belief_propagation_that_diverges_or_stops_early():
    tight = np.full((6, 6), 0.9) + 0.1 * np.eye(6)
    with pytest.raises(EngineError, match="diverged"):
        gg.MarkovNetwork.from_precision(tight).query("x0", {"x1": 1.0}, engine="bp")
    chain = np.diag(np.full(30, 2.0)) - 0.99 * (np.eye(30, k=1) + np.eye(30, k=-1))
    with pytest.warns(gg.ModelWarning, match="did not converge in 5 steps"):
        answer = gg.MarkovNetwork.from_precision(chain).query("x9", {"x0": 1.0}, engine="bp", max_iter=5)
    assert not answer.exact


def test_gaussian_factors_of_a_network():
    x, z = real("x"), real("z")
    with pytest.raises(gg.ModelError, match="not symmetric"):
        gg.MarkovNetwork([gg.factors.GaussianFactor((x, z), [[1.0, 0.5], [0.2, 1.0]], [0.0, 0.0])])
    with pytest.raises(gg.ModelError, match="not finite"):
        gg.MarkovNetwork([gg.factors.GaussianFactor((x,), [[np.nan]], [0.0])])
    with pytest.raises(gg.ModelError, match="pins x to one value: give that as evidence"):
        gg.MarkovNetwork([gg.factors.GaussianFactor.at({x: 2.0})])
    with pytest.raises(gg.ModelError, match="x is x.real. here, x.no.yes. there"):
        gg.MarkovNetwork(
            [gg.factors.TableFactor((binary("x"),), [1.0, 2.0]), gg.factors.GaussianFactor((x,), [[1.0]], [0.0])]
        )


def test_domains_are_said():
    assert gg.Var("d", ["a", "b"]).states == ("a", "b")
    with pytest.raises(gg.ModelError, match=r"x: expected a domain, got 3.5. Try: a list of labels, or Real"):
        gg.Var("x", 3.5)
