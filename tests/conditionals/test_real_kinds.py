"""Kinds of conditionals with real-valued variables: densities, draws, files, and what they refuse."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import expon, gamma, multivariate_normal, norm
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import gramgraph as gg
from gramgraph.conditionals import (
    ConditionalLinearGaussian,
    GaussianCopula,
    LinearGaussian,
    Margin,
    Predictor,
    Softmax,
    from_fields,
)
from gramgraph.io import native
from gramgraph.variables import binary, discrete, real


def test_linear_gaussian_density_and_draws(rng):
    x, y = real("x", 2), real("y", 2)
    c = LinearGaussian(
        y, (x, "u"), {"x": [[1.0, 2.0], [0.0, 1.0]], "u": [3.0, 0.0]}, [1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]]
    )
    u = c.parents[1]
    values = {x: rng.normal(size=(5, 2)), u: rng.normal(size=(5, 1)), y: rng.normal(size=(5, 2))}
    mean = [1, -1] + values[x] @ np.array([[1, 2], [0, 1]]).T + values[u] @ np.array([[3.0, 0.0]])
    truth = [multivariate_normal(m, c.covariance).logpdf(v) for m, v in zip(mean, values[y], strict=True)]
    np.testing.assert_allclose(c.log_density(values), truth, atol=1e-12)
    n = 50_000
    many = {x: np.tile(values[x][:1], (n, 1)), u: np.tile(values[u][:1], (n, 1))}
    draws = c.draw(many, n, rng)
    assert (np.abs(draws.mean(axis=0) - mean[0]) < 5 * np.sqrt(np.diag(c.covariance) / n)).all()
    np.testing.assert_allclose(np.cov(draws.T), c.covariance, atol=0.05)
    assert c.n_parameters == 2 * 3 + 2 + 3


def test_chosen_by_discrete_parents_in_any_order(rng):
    d, e, x = binary("d"), discrete("e", 3), real("x")
    c = ConditionalLinearGaussian(
        real("y"),
        (e, x, d),
        rng.normal(size=(3, 2, 1, 1)),
        rng.normal(size=(3, 2, 1)),
        rng.uniform(0.5, 2, size=(3, 2, 1, 1)),
    )
    values = {
        d: np.array([0, 1, 1]),
        e: np.array([2, 0, 1]),
        x: rng.normal(size=(3, 1)),
        c.child: rng.normal(size=(3, 1)),
    }
    for i in range(3):
        at = (values[e][i], values[d][i])
        mean = c.intercept[at][0] + c.coefficients[at][0, 0] * values[x][i, 0]
        truth = norm.logpdf(values[c.child][i, 0], mean, np.sqrt(c.covariance[at][0, 0]))
        assert c.log_density(values)[i] == pytest.approx(truth, abs=1e-12)


def test_softmax_is_a_distribution_and_logistic_its_special_case(rng):
    x, d = real("x", 2), binary("d")
    c = Softmax(discrete("s", 3), (x, d), rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3)))
    values = {x: rng.normal(size=(4, 2)), d: np.array([0, 1, 0, 1])}
    p = c.probabilities(values, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    scores = c.bias[1] + c.weights[1] @ values[x][1]
    np.testing.assert_allclose(p[1], np.exp(scores) / np.exp(scores).sum())
    np.testing.assert_allclose(c.log_density({**values, c.child: np.array([0, 1, 2, 0])})[0], np.log(p[0, 0]))
    one = Softmax.logistic(binary("b"), "z", [2.0], -1.0)
    z = one.parents[0]
    assert one.probabilities({z: np.array([[0.7]])}, 1)[0, 1] == pytest.approx(1 / (1 + np.exp(1 - 1.4)))


@pytest.mark.parametrize("margin", [Margin("gamma", {"a": 2.0}), Margin(values=[0.5, 3.0, 1.0, 2.0])])
def test_margins_are_distributions(margin):
    u = np.linspace(0.01, 0.99, 25)
    np.testing.assert_allclose(margin.cdf(margin.quantile(u)), u, atol=1e-10)
    x = np.linspace(margin.quantile(np.array([1e-9]))[0], margin.quantile(np.array([1 - 1e-9]))[0], 200_001)
    assert np.trapezoid(np.exp(margin.log_density(x)), x) == pytest.approx(1.0, abs=1e-3)


def test_copula_with_normal_margins_is_linear_gaussian(rng):
    margins = {"x": Margin("norm", {"loc": 1.0, "scale": 2.0}), "y": Margin("norm", {"loc": -1.0, "scale": 3.0})}
    c = GaussianCopula("y", ("x",), 0.6, margins)
    line = LinearGaussian("y", ("x",), [[0.6 * 3 / 2]], -1.0 - 0.9, sd=3.0 * 0.8)
    values = {c.parents[0]: rng.normal(size=(6, 1)), c.child: rng.normal(size=(6, 1))}
    np.testing.assert_allclose(c.log_density(values), line.log_density(values), atol=1e-9)


def test_copula_keeps_the_margin_and_finds_the_correlation(rng):
    margins = {"x": Margin("expon"), "y": Margin("gamma", {"a": 3.0})}
    net = gg.BayesianNetwork(cpds=[GaussianCopula("x", (), 1.0, margins), GaussianCopula("y", ("x",), -0.7, margins)])
    data = net.sample(4000, random_state=1)
    for name, law in (("x", expon()), ("y", gamma(3.0))):
        assert np.abs(np.sort(law.cdf(data[name])) - (np.arange(4000) + 0.5) / 4000).max() < 0.035  # Kolmogorov, 10⁻⁴
    again = net.fit(data).conditional("y")
    assert again.correlation[0, 1] == pytest.approx(-0.7, abs=0.04)
    answer = net.query("x", {"y": 5.0}, random_state=0)
    assert answer.engine == "nodes" and not answer.exact
    drawn = net.query("x", {"y": 5.0}, engine="likelihood_weighting", random_state=0)
    assert abs(drawn["x"].mean() - answer["x"].mean()) < 5 * drawn["x"].standard_error()
    assert answer["x"].mean() < net.query("x", {"y": 1.5}, random_state=0)["x"].mean()


# ---------------------------------------------------------------------------------------------- predictors


def _frame(rng, n=400):
    x = rng.uniform(-2, 2, n)
    g = np.where(rng.random(n) < 0.5, "a", "b")
    y = np.sin(x) + (g == "b") + 0.1 * rng.normal(size=n)
    s = np.where(y + 0.3 * rng.normal(size=n) > 0.5, "hot", "cold")
    return pd.DataFrame({"x": x, "g": g, "y": y, "s": s})


def test_any_regressor_and_classifier(rng):
    data = _frame(rng)
    g, s = discrete("g", ["a", "b"]), discrete("s", ["cold", "hot"])
    y = Predictor.fit("y", ("x", g), RandomForestRegressor(50, random_state=0), data, residuals="gaussian")
    assert 0.08 < np.sqrt(y.noise[0, 0]) < 0.3
    heat = Predictor.fit(s, ("y",), LogisticRegression(), data)
    net = gg.BayesianNetwork(cpds=[LinearGaussian("x", (), (), 0.0, 1.0), gg.Table(g, (), [0.5, 0.5]), y, heat])
    assert net.check_model()
    answer = net.query(["y", "s"], {"x": 1.0, "g": "b"}, random_state=0)
    assert not answer.exact and "stated error" in repr(answer)
    assert answer["y"].mean() == pytest.approx(np.sin(1.0) + 1.0, abs=0.15)
    assert answer["s"].prob("hot") > 0.9
    assert answer["y"].standard_error() < 0.01
    back = net.query("g", {"x": 1.0, "y": 1.8}, random_state=0)
    assert back["g"].prob("b") > 0.95 and back.exact
    raw = net.query("g", {"x": 1.0, "y": 1.8}, engine="likelihood_weighting", random_state=0)
    assert abs(raw["g"].prob("b") - back["g"].prob("b")) < 5 * raw.details["standard_error"]["g"][1] + 1e-12
    assert abs(raw.log_evidence - back.log_evidence) < 5 * raw.details["log_evidence_error"]
    rows = net.query(["g", "y"], data[["x", "y", "s"]].head(5))
    assert rows.exact and rows["g"].probabilities.shape == (5, 2) and rows["y"].var()[0] == 0.0
    fitted = net.fit(data)
    assert fitted.conditional("y").estimator is not y.estimator
    with pytest.raises(gg.ModelError, match="never pickled"):
        native.dumps(net)
    assert net.map_query({"x": 1.0}).exact is False
    draws = net.sample(50, {"s": "hot"}, random_state=0)
    assert not draws.attrs["exact"] and (draws["s"] == "hot").all()


def test_estimators_may_be_written_as_they_are(rng):
    data = _frame(rng)
    model = LogisticRegression().fit(data[["x", "y"]], data["s"])  # with names of columns
    net = gg.BayesianNetwork("x{real} -> s{cold|hot} <- y{real}", cpds={"x": (0.0, 1.0), "y": (0.0, 1.0), "s": model})
    truth = model.predict_proba(pd.DataFrame({"x": [0.3], "y": [0.7]}))[0]
    answer = net.query("s", {"x": 0.3, "y": 0.7})
    assert answer.exact  # the real parents are observed: what is left is a table
    np.testing.assert_allclose(answer["s"].probabilities, truth, atol=1e-12)
    drawn = net.query("s", {"x": 0.3, "y": 0.7}, engine="likelihood_weighting", random_state=0)
    assert not drawn.exact
    np.testing.assert_allclose(drawn["s"].probabilities, truth, atol=0.01)
    assert np.exp(net.log_evidence({"x": 0.3, "y": 0.7, "s": "hot"})) == pytest.approx(
        truth[1] * norm.pdf(0.3) * norm.pdf(0.7)
    )


def test_predictor_faults(rng):
    with pytest.raises(gg.ModelError, match="standard deviation of its errors"):
        Predictor("y", ("x",), LinearRegression())
    with pytest.raises(gg.ModelError, match="predict_proba"):
        Predictor(binary("y"), ("x",), LinearRegression())
    loose = Predictor("y", ("x",), LinearRegression(), noise=1.0)
    assert "not fitted" in loose.faults()[0]
    data = _frame(rng)
    wrong = Predictor(binary("s"), ("y",), LogisticRegression().fit(data[["y"]].to_numpy(), data["s"]))
    assert "no states of it" in wrong.faults()[0]


# ---------------------------------------------------------------------------------------------- files


def test_every_kind_is_written_and_read_bit_for_bit(rng):
    d, s = binary("d"), discrete("s", 3)
    x, y, z = real("x"), real("y", 2), real("z")
    margins = {"x": Margin("norm"), "z": Margin(values=[0.1, 0.7, 1.9])}
    cpds = [
        gg.Table(d, (), [0.3, 0.7]),
        ConditionalLinearGaussian(x, (d,), np.zeros((2, 1, 0)), [0.1, 1 / 3], sd=[1.0, np.pi]),
        LinearGaussian(y, (x,), rng.normal(size=(2, 1)), rng.normal(size=2), np.eye(2) / 3),
        GaussianCopula(z, (x,), 0.3, margins),
        Softmax(s, (y, d), rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3))),
    ]
    net = gg.BayesianNetwork(cpds=cpds, name="all kinds")
    again = native.loads(native.dumps(net))
    assert again == net and again.variables == net.variables
    variables = {v.name: v for v in (d, s, x, y, z)}
    for c in cpds:
        assert from_fields(c.to_fields(), variables).equals(c)
        assert c.faults() == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"real": 1', b'"real": 0', "dimension from 1"),
        (b'"real": 1', b'"real": "one"', "must be a number"),
        (b'"covariance": [[1.0]]', b'"covariance": [[-1.0]]', "variance is negative"),
        (b'"covariance": [[1.0]]', b'"covariance": [[1.0, 2.0]]', "must have shape"),
        (b'"coefficients": [[2.0]]', b'"coefficients": [["two"]]', "must be numbers"),
        (
            b'"kind": "linear_gaussian", "child": "y"',
            b'"kind": "predictor", "child": "y"',
            "cannot be read from a file",
        ),
        (b'"kind": "linear_gaussian", "child": "y"', b'"kind": "table", "values": [1], "child": "y"', "real-valued"),
    ],
)
def test_damaged_files_say_what_is_wrong(old, new, says):
    net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    data = native.dumps(net)
    assert old in data
    with pytest.raises(gg.ParseError, match=says):
        native.loads(data.replace(old, new))


def test_any_bytes_give_a_model_or_a_parse_error(shared_data):
    from tests.io.drawing import damaged

    net = gg.BayesianNetwork(
        "d -> x{real} -> y{real^2}",
        cpds={
            "d": 0.3,
            "x": {"no": {"intercept": 0.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 1.0}},
            "y": {"coefficients": [[1.0], [2.0]], "intercept": [0.0, 0.0], "sd": 1.0},
        },
    )
    markov = gg.MarkovNetwork.from_precision([[2.0, -1.0], [-1.0, 2.0]])
    studies = [
        shared_data / "bn_clg" / "bnrep-algorithms5.json",
        shared_data / "bn_gaussian" / "bnrep-algorithms1.json",
    ]
    texts = [native.dumps(net), native.dumps(markov), *(path.read_bytes() for path in studies)]
    texts.append(
        b'{"nodes": ["x", "y"], "arcs": [["x", "y"]], "cpds": {"x": {"coefficients": {"(Intercept)": [1.0]}, '
        b'"variance": [2.0], "parents": []}, "y": {"coefficients": {"(Intercept)": [0.0], "x": [1.5]}, '
        b'"variance": [1.0], "parents": ["x"]}}}'
    )
    assert native.loads(texts[-1]).conditional("y").coefficients.tolist() == [[1.5]]
    read = 0
    for data in damaged(texts, count=800, seed=5):
        try:
            native.loads(data)
            read += 1
        except gg.ParseError as error:
            assert str(error)
    assert 0 < read < 800


def test_observed_real_parents_close_a_softmax(rng):
    """Against enumeration over the discrete variables by hand."""
    d, s, x, y = binary("d"), discrete("s", 3), real("x"), real("y")
    soft = Softmax(s, (x, d), rng.normal(size=(2, 3, 1)), rng.normal(size=(2, 3)))
    cpds = [gg.Table(d, (), [0.3, 0.7]), LinearGaussian(x, (), (), 0.5, 1.0), soft]
    cpds.append(ConditionalLinearGaussian(y, (s,), np.zeros((3, 1, 0)), [0.0, 1.0, 3.0], sd=1.0))
    net = gg.BayesianNetwork(cpds=cpds)
    answer = net.query(["d", "s"], {"x": 0.4, "y": 2.0})
    assert answer.exact
    table = np.zeros((2, 3))
    for i in range(2):
        p = soft.probabilities({x: np.array([[0.4]]), d: np.array([i])}, 1)[0]
        table[i] = [0.3, 0.7][i] * p * norm.pdf(2.0, [0.0, 1.0, 3.0], 1.0)
    np.testing.assert_allclose(answer["d"].probabilities, table.sum(axis=1) / table.sum(), atol=1e-12)
    np.testing.assert_allclose(answer["s"].probabilities, table.sum(axis=0) / table.sum(), atol=1e-12)
    assert answer.log_evidence == pytest.approx(np.log(table.sum()) + norm.logpdf(0.4, 0.5, 1.0), abs=1e-12)
    assert not net.query("d", {"y": 2.0}, random_state=0).exact  # x is open
    batch = net.query(["d"], pd.DataFrame({"x": [0.4, 1.0], "y": [2.0, np.nan]}))
    assert batch.exact and batch["d"].probabilities[0, 1] == pytest.approx(answer["d"].prob("yes"), abs=1e-12)


def test_draws_of_a_copula_stay_finite_far_from_what_was_seen():
    """A parent below its margin has the score −37, and the child's level rounds to 1: not a draw of infinity."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    margins = {"x": Margin.of(x), "y": Margin("gumbel_r")}
    for correlation in (-0.8, 0.8):
        made = GaussianCopula("y", ("x",), correlation, margins)
        far = np.array([[-1e3], [1e3], [-8.0], [8.0]])
        drawn = made.draw({made.parents[0]: far}, 4, rng)
        assert np.isfinite(drawn).all()
        assert np.isfinite(made.log_density({made.parents[0]: far, made.child: drawn})).all()
