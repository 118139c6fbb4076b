"""A kind of conditional for every arrow: given, mixed or chosen; networks with kernels are asked, saved and drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import gramgraph as gg
from gramgraph.conditionals import Blend, GaussianCopula, GridDensity, Kind, LinearGaussian, Margin, Predictor, Softmax
from gramgraph.exceptions import ModelError, OptionError, StateError
from gramgraph.io import native
from gramgraph.variables import Circle, Positive, Real, Sphere, Var

TEXT = (
    "season{spring|summer|autumn|winter} -> wind{circle} -> power{real} <- site{open|wood}; power -> fault{no|yes}; "
    "power -> price{positive}"
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 900
    season = rng.integers(0, 4, n)
    wind = np.mod(rng.vonmises(1.5 * season, 2.0) + np.pi, 2.0 * np.pi) - np.pi
    site = rng.integers(0, 2, n)
    power = 2.0 + np.cos(wind) * np.where(site == 0, 1.5, 0.4) + 0.3 * rng.normal(size=n)
    fault = rng.random(n) < 1.0 / (1.0 + np.exp(-3.0 * (power - 3.0)))
    return pd.DataFrame(
        {
            "season": np.array(["spring", "summer", "autumn", "winter"])[season],
            "wind": wind,
            "site": np.array(["open", "wood"])[site],
            "power": power,
            "fault": np.where(fault, "yes", "no"),
            "price": np.exp(0.5 * power + 0.2 * rng.normal(size=n)),
        }
    )


@pytest.fixture(scope="module")
def net(frame):
    kinds = {"power": gg.KernelConditional(), "fault": gg.Softmax()}
    return gg.BayesianNetwork(TEXT, cpds=kinds).fit(frame)


def test_domains_in_edge_strings():
    net = gg.BayesianNetwork("a{circle} -> b{positive}; c{sphere}; d{real^3}; e{open|shut}; f{real}")
    domains = [type(net.var(name).domain) for name in "abcdf"]
    assert domains == [Circle, Positive, Sphere, Real, Real]
    assert net.var("d").dimension == 3 and net.var("c").dimension == 3
    assert gg.BayesianNetwork("a{circle|square}").states("a") == ("circle", "square")
    with pytest.raises(ModelError, match="single numbers"):
        gg.BayesianNetwork("a{circle^2}")
    with pytest.raises(StateError, match="above 0"):
        Positive().read(-1.0, "b")
    with pytest.raises(ModelError, match="whole line"):
        LinearGaussian(Var("a", Circle()))
    with pytest.raises(ModelError, match="angle a closes"):
        LinearGaussian("y", (Var("a", Circle()),), [1.0])


def test_kinds_stand_for_conditionals_to_be_fitted():
    assert repr(gg.Softmax()) == "Softmax()" and isinstance(gg.Table(prior="bdeu"), Kind)
    net = gg.BayesianNetwork(TEXT, cpds={"power": gg.KernelConditional(), "fault": gg.Softmax()})
    assert not net.has_tables and net.kinds["fault"] == gg.Softmax()
    with pytest.raises(ModelError, match=r"not fitted yet: power \(KernelConditional\(\)\)|no conditional yet"):
        net.query("wind")
    with pytest.raises(ModelError, match="not fitted yet: power"):
        net.conditional("power")
    with pytest.raises(ModelError, match="'powr' is not a variable"):
        gg.BayesianNetwork("power{real}", cpds={"powr": gg.KernelConditional()})


def test_one_network_of_many_arrows(net, frame):
    kinds = {name: net.conditional(name).kind for name in net.variables}
    assert kinds == {
        "season": "table",
        "wind": "kernel",
        "site": "table",
        "power": "kernel",
        "fault": "softmax",
        "price": "kernel",
    }
    evidence = {"fault": "yes", "season": "winter"}
    found = net.query(None, evidence)
    drawn = net.query(None, evidence, engine="likelihood_weighting", random_state=0)
    assert found.engine == "nodes" and found.quality == "checked"
    assert abs(found.log_evidence - drawn.log_evidence) < 5 * drawn.details["log_evidence_error"] + 0.02
    for name in ("power", "price"):
        error = drawn[name].standard_error() + 0.01 * drawn[name].sd()
        assert abs(found[name].mean() - drawn[name].mean()) < 5 * error
    turn = np.angle(np.exp(1j * (found["wind"].mean_direction() - drawn["wind"].mean_direction())))
    assert abs(turn) < 5 * drawn["wind"].standard_error() + 0.02
    assert abs(found["site"].prob("open") - drawn["site"].prob("open")) < 0.01
    angles = np.linspace(-np.pi, np.pi, 4001)[:-1]
    assert found["wind"].density(angles).mean() * 2.0 * np.pi == pytest.approx(1.0, abs=1e-6)
    assert 0.0 <= found["wind"].resultant_length() <= 1.0
    drawn = net.sample(2000, random_state=0)
    assert (drawn["price"] > 0.0).all() and abs(drawn["power"].mean() - frame["power"].mean()) < 0.1
    assert np.isfinite(net.log_likelihood(frame.head(20))).all()
    assert net.do("site", "open").parents("site") == ()


def test_far_evidence_is_flagged_by_every_engine(net):
    for engine in ("auto", "nodes", "likelihood_weighting"):
        found = net.query("wind", {"power": 60.0}, engine=engine, random_state=0)
        assert found.quality == "unreliable" and "power" in found.quality.reason
        assert np.isfinite(found["wind"].mean()) and np.isfinite(found.log_evidence)
    assert net.query("wind", {"power": 2.0}).quality == "checked"


@pytest.mark.parametrize("engine", ["laplace", "nodes", "likelihood_weighting"])
def test_far_values_of_copulas_are_flagged(engine):
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=300)
    data = pd.DataFrame({"x": x, "y": np.exp(0.5 * x + 0.3 * rng.normal(size=300))})
    net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": gg.LinearGaussian(), "y": GaussianCopula()}).fit(data)
    for y, near in ((float(data["y"].median()), True), (float(data["y"].max()), True), (1e4, False), (-50.0, False)):
        found = net.query("x", {"y": y}, engine=engine, random_state=0)
        assert (found.details["support"]["y"] > 0.9) == near and np.isfinite(found["x"].mean())
        assert near or found.quality == "unreliable"


def test_nearness_is_told_by_margins_of_data_alone():
    x = np.random.default_rng(0).normal(size=400)
    for margin in (Margin.of(x), Margin(values=x)):
        assert (margin.nearness(x) > 0.99).mean() > 0.99 and margin.nearness(np.array([9.0, -9.0])).max() < 1e-6
    assert Margin("norm").nearness(np.array([99.0])).tolist() == [1.0]


def test_angles_close(net):
    low, high = (net.query("power", {"wind": x}, engine="nodes")["power"].mean() for x in (-np.pi, np.pi))
    assert low == pytest.approx(high, abs=1e-9)
    chains = net.query("wind", {"power": 0.6, "site": "open"}, engine="gibbs", budget=4000, random_state=0)
    found = net.query("wind", {"power": 0.6, "site": "open"})
    assert chains.details["max_r_hat"] < 1.2
    assert abs(np.angle(np.exp(1j * (chains["wind"].mean() - found["wind"].mean())))) < 0.3


def test_saved_and_read_back_bit_for_bit(net):
    again = native.loads(native.dumps(net))
    assert again == net and native.dumps(again) == native.dumps(net)
    asked = {"fault": "yes"}
    assert again.query("power", asked)["power"].mean() == net.query("power", asked)["power"].mean()


def test_kernel_densities_integrate_and_draws_agree(net):
    rng = np.random.default_rng(1)
    c = net.conditional("power")
    wind, site = c.parents
    grid = np.linspace(-60.0, 60.0, 400_001)
    for at in (0.3, 2.9):
        values = {wind: np.full((len(grid), 1), at), site: np.zeros(len(grid), int), c.child: grid[:, None]}
        p = np.exp(c.log_density(values)) * (grid[1] - grid[0])
        assert p.sum() == pytest.approx(1.0, abs=2e-3)
        mean = p @ grid / p.sum()
        drawn = c.draw({wind: np.full((4000, 1), at), site: np.zeros(4000, int)}, 4000, rng)
        assert abs(drawn.mean() - mean) < 5.0 * drawn.std() / np.sqrt(4000) + 1e-3
        laws = c.laws({wind: np.array([[at]]), site: np.array([0])}, 1)
        some = grid[::1000]
        one = {wind: np.full((len(some), 1), at), site: np.zeros(len(some), int), c.child: some[:, None]}
        assert np.allclose(laws.log_density(some)[0], c.log_density(one), atol=1e-10)


def test_auto_mixes_and_choose_takes_the_simplest():
    rng = np.random.default_rng(0)
    n = 250
    x = rng.normal(size=n)
    data = pd.DataFrame(
        {"x": x, "y": 0.8 * x + 0.5 * rng.normal(size=n), "z": np.sin(3.0 * x) + 0.1 * rng.normal(size=n)}
    )
    graph = gg.BayesianNetwork("x{real} -> y{real}; x -> z{real}")
    chosen = graph.fit(data, conditional="choose")
    assert chosen.conditional("y").kind == "linear_gaussian"
    mixed = graph.fit(data, conditional="auto")
    scores = mixed.fit_report.left_out["z"]
    assert scores["mixture"] >= max(v for k, v in scores.items() if k != "mixture") - 1e-9
    assert scores["mixture"] > scores["linear_gaussian"] + 0.5
    assert set(mixed.fit_report.to_frame()["variable"]) == {"x", "y", "z"}
    held = pd.DataFrame({"x": rng.normal(size=300)})
    held["y"], held["z"] = 0.8 * held.x + 0.5 * rng.normal(size=300), np.sin(3.0 * held.x) + 0.1 * rng.normal(size=300)
    plain = graph.fit(data)
    assert mixed.log_likelihood(held).mean() > plain.log_likelihood(held).mean() + 0.5
    with pytest.raises(OptionError, match="Did you mean 'auto'"):
        graph.fit(data, conditional="aut")
    with pytest.raises(OptionError, match="a kind such as"):
        graph.fit(data, conditional={"y": 3})


def test_ties_and_margins_of_copulas():
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=500), 1)
    y = np.round(x + 0.5 * rng.normal(size=500), 1)
    c = GaussianCopula.fit("y", ("x",), pd.DataFrame({"x": x, "y": y}))
    values = {c.parents[0]: x[:, None], c.child: y[:, None]}
    assert -2.0 < c.log_density(values).mean() < 0.0
    margin = Margin.of(rng.gamma(2.0, size=500), "positive")
    u = np.linspace(0.001, 0.999, 50)
    assert np.allclose(margin.cdf(margin.quantile(u)), u, atol=1e-9)
    density = GridDensity.of(rng.normal(size=300))
    grid = np.linspace(-40.0, 40.0, 800_001)
    assert np.exp(density.log_density(grid)).sum() * 1e-4 == pytest.approx(1.0, abs=1e-5)
    back = GridDensity.from_fields(density.to_fields())
    assert np.array_equal(back.f, density.f)


def test_predictors_have_kernel_residuals():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    noise = np.where(rng.random(600) < 0.5, -1.0, 1.0) + 0.1 * rng.normal(size=600)
    data = pd.DataFrame({"x": x, "y": x + noise})
    kernel = Predictor.fit("y", ("x",), LinearRegression(), data)
    plain = Predictor.fit("y", ("x",), LinearRegression(), data, residuals="gaussian")
    values = {kernel.parents[0]: x[:, None], kernel.child: data.y.to_numpy()[:, None]}
    assert kernel.log_density(values).mean() > plain.log_density(values).mean() + 0.5
    net = gg.BayesianNetwork(cpds=[LinearGaussian("x"), kernel])
    found = net.query("x", {"y": 1.0})
    drawn = net.query("x", {"y": 1.0}, engine="likelihood_weighting", random_state=0)
    assert abs(found["x"].mean() - drawn["x"].mean()) < 5.0 * drawn["x"].standard_error() + 1e-2
    assert abs(found.log_evidence - drawn.log_evidence) < 5 * drawn.details["log_evidence_error"] + 1e-2


def test_a_blend_of_softmax_curves_keeps_tables_apart():
    y, x = gg.variables.binary("y"), gg.real("x")
    one, two = Softmax.logistic(y, (x,), [1.0]), Softmax.logistic(y, (x,), [-1.0])
    both = Blend(y, (x,), (one, two), [0.5, 0.5])
    values = {x: np.array([[2.0]]), y: np.array([1])}
    assert np.exp(both.log_density(values))[0] == pytest.approx(0.5)


def test_boosted_trees_are_a_kind_too(frame):
    net = gg.BayesianNetwork("wind{real} -> power{real}", cpds={"power": gg.Boosted(n_estimators=30)})
    assert not net.has_tables
    fitted = net.fit(frame[["wind", "power"]])
    assert fitted.conditional("power").kind == "boosted"
    found = fitted.query("wind", {"power": 3.2})
    drawn = fitted.query("wind", {"power": 3.2}, engine="likelihood_weighting", random_state=0)
    error = drawn["wind"].standard_error() + 0.02 * drawn["wind"].sd()
    assert found.engine == "steps" and found.exact and abs(found["wind"].mean() - drawn["wind"].mean()) < 5 * error


def test_parents_of_any_domain_stand_above_linear_gaussians_and_curves():
    """Only the family's own conditional is learned: no Gaussian of the parents, which angles and sizes do not take."""
    rng = np.random.default_rng(0)
    w = rng.uniform(-3.0, 3.0, 300)
    frame = pd.DataFrame({"w": w, "s": np.exp(0.5 * rng.normal(size=300))})
    frame["y"] = 2.0 * frame.s + 0.1 * rng.normal(size=300)
    frame["k"] = np.where(np.cos(w) + 0.5 * rng.normal(size=300) > 0.0, "yes", "no")
    text = "s{positive} -> y{real}; w{circle} -> k{no|yes}; s -> k"
    net = gg.BayesianNetwork(text, cpds={"y": gg.LinearGaussian(), "k": gg.Softmax()}).fit(frame)
    assert net.conditional("y").coefficients[0, 0] == pytest.approx(2.0, abs=0.05)
    ahead, behind = (net.query("k", {"w": angle, "s": 1.0})["k"].prob("yes") for angle in (0.0, 3.0))
    assert ahead > 0.9 and behind < 0.1


class _Counted(LinearRegression):
    """A regression that counts how often it is fitted."""

    fits = 0

    def fit(self, X, y, **options):
        type(self).fits += 1
        return super().fit(X, y, **options)


def test_one_fit_a_fold_judges_a_predictor_and_gives_it_its_noise(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    data = pd.DataFrame({"x": x, "y": 2.0 * x + rng.gamma(2.0, size=300)})
    child, parent, fold = Var("y", Real()), Var("x", Real()), np.arange(300) % 5
    made, logs = Predictor.fit_folds(child, (parent,), LinearRegression(), data, fold)
    error = np.empty(300)
    for k in range(5):
        rest = LinearRegression().fit(data.loc[fold != k, ["x"]].to_numpy(), data["y"][fold != k])
        error[fold == k] = data["y"][fold == k] - rest.predict(data.loc[fold == k, ["x"]].to_numpy())
    for k in range(5):
        np.testing.assert_allclose(logs[fold == k], GridDensity.of(error[fold != k]).log_density(error[fold == k]))
    whole = LinearRegression().fit(data[["x"]].to_numpy(), data["y"])
    assert np.allclose(made.estimator.coef_, whole.coef_) and np.allclose(made.noise, np.mean(error**2))
    rows = {var: data[[var.name]].to_numpy() for var in (child, parent)}
    assert np.allclose(
        made.log_density(rows), GridDensity.of(error).log_density(data["y"] - whole.predict(data[["x"]].to_numpy()))
    )
    monkeypatch.setattr("gramgraph.learn.families._default_estimator", lambda child: _Counted())
    net = gg.BayesianNetwork("x{real} -> y{real}").fit(data, conditional="auto")
    assert "predictor" in net.fit_report.left_out["y"] and _Counted.fits == 11  # ten folds and all rows
