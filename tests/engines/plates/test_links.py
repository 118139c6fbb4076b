"""Gaussian factors where a family is not conjugate: links against integrals, bounds that never fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, gammaln

import gramgraph as gg
from gramgraph import distributions as D
from gramgraph.exceptions import ModelError
from gramgraph.io import native

GRID = np.linspace(-9.0, 9.0, 6001)


def normal(x: Any, mean: float = 0.0, variance: float = 1.0) -> Any:
    return -0.5 * (x - mean) ** 2 / variance - 0.5 * np.log(2.0 * np.pi * variance)


def integrals(logs: Any) -> tuple[float, float, float]:
    """log ∫, mean and deviation of a density on the grid."""
    p = np.exp(logs - logs.max())
    total = np.trapezoid(p, GRID)
    mean = np.trapezoid(GRID * p, GRID) / total
    return logs.max() + np.log(total), mean, float(np.sqrt(np.trapezoid((GRID - mean) ** 2 * p, GRID) / total))


def one_number(kind: str, data: list[float]) -> tuple[Any, Any]:
    """A model of one real number that enters through a link, and log p(number, data) on the grid."""
    logs = normal(GRID, 0.5, 2.0)
    child, cpd = {
        "poisson": ("x{count}", D.Poisson(gg.Exp("eta"))),
        "logistic": ("x{no|yes}", D.Bernoulli(gg.Logistic("eta"))),
        "precision": ("x{real}", D.Normal(1.0, precision=gg.Exp("eta"))),
        "gamma": ("x{positive}", D.Gamma(2.0, gg.Exp("eta"))),
    }[kind]
    for x in data:
        logs = logs + {
            "poisson": lambda x: x * GRID - np.exp(GRID) - gammaln(x + 1.0),
            "logistic": lambda x: -np.logaddexp(0.0, -(2.0 * x - 1.0) * GRID),
            "precision": lambda x: 0.5 * GRID - 0.5 * np.exp(GRID) * (x - 1.0) ** 2 - 0.5 * np.log(2.0 * np.pi),
            "gamma": lambda x: 2.0 * GRID + np.log(x) - np.exp(GRID) * x,
        }[kind](x)
    text = f"eta{{real}} -> {child}; plate cases: x"
    return gg.BayesianNetwork(text, cpds={"eta": D.Normal(0.5, 2.0), "x": cpd}), logs


DATA = {
    "poisson": [3, 1, 4, 0],
    "logistic": [1, 1, 0, 1, 1],
    "precision": [0.2, 2.5, 1.4, -0.3],
    "gamma": [0.5, 1.2, 0.1],
}


@pytest.mark.parametrize("kind", DATA)
def test_a_number_inside_a_link(kind: str) -> None:
    """Below the evidence by little; mean and deviation near those of the posterior, which is nearly Gaussian."""
    model, logs = one_number(kind, DATA[kind])
    seen = [("no", "yes")[x] for x in DATA[kind]] if kind == "logistic" else DATA[kind]
    answer = model.query("eta", {"x": seen})
    log_p, mean, sd = integrals(logs)
    assert answer.engine == "mean_field" and not answer.exact
    assert log_p - 0.03 < answer.log_evidence < log_p
    assert abs(float(answer["eta"].mean()) - mean) < 0.03 * sd
    assert abs(float(answer["eta"].sd()) / sd - 1.0) < 0.06


def test_logistic_regression_against_weighted_draws() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    y = (rng.random(60) < expit(X @ [0.3, 1.5, -1.0])).astype(int)
    model = gg.BayesianNetwork(
        "w{real^3} -> y{no|yes} <- x{real^3}; plate cases: x, y",
        cpds={"w": D.Gaussian(np.zeros(3), 4.0 * np.eye(3)), "y": D.Bernoulli(gg.Logistic(gg.Dot("w", "x")))},
    )
    answer = model.query("w", {"x": X.tolist(), "y": np.array(["no", "yes"])[y].tolist()})
    draws = 2.0 * rng.normal(size=(100_000, 3))
    logs = -np.logaddexp(0.0, -(2 * y - 1) * (draws @ X.T)).sum(axis=1)
    weights = np.exp(logs - logs.max())
    mean = weights @ draws / weights.sum()
    np.testing.assert_allclose(answer["w"].mean(), mean, atol=0.05)
    log_p = logs.max() + np.log(weights.mean())
    assert log_p - 0.15 < answer.log_evidence < log_p + 0.02  # the draws' own error is about 0.01


def test_both_mean_and_log_precision_are_hidden() -> None:
    """A field of two: log p by a grid over both."""
    data = [1.0, 2.0, 2.5, 0.3]
    model = gg.BayesianNetwork(
        "s -> x{real} <- mu; plate cases: x",
        cpds={"s": D.Normal(0.0, 1.0), "mu": D.Normal(0.0, 4.0), "x": D.Normal("mu", precision=gg.Exp("s"))},
    )
    answer = model.query(["s", "mu"], {"x": data})
    g = np.linspace(-6.0, 6.0, 801)
    mu, s = np.meshgrid(g, g)
    logs = normal(s) + normal(mu, 0.0, 4.0)
    for x in data:
        logs = logs + 0.5 * s - 0.5 * np.log(2.0 * np.pi) - 0.5 * np.exp(s) * (x - mu) ** 2
    log_p = float(np.log(np.exp(logs).sum() * (g[1] - g[0]) ** 2))
    assert log_p - 0.15 < answer.log_evidence < log_p
    gap = np.diff(answer.details["bounds"])
    assert (gap > -1e-9).all()


def random_problem(seed: int) -> tuple[Any, dict[str, Any]]:
    """Counts of groups with effects of their own, regressions, volatile series."""
    rng = np.random.default_rng(seed)
    n, kind = 12, seed % 3
    if kind == 0:
        text = "m -> b{real} -> x{count} <- g[3]; tau -> b; plate groups: b; plate cases: g, x"
        cpds = {"m": D.Normal(0.0, 4.0), "tau": D.Gamma(2.0, 1.0), "b": D.Normal("m", precision="tau"),
                "g": [0.3, 0.3, 0.4], "x": D.Poisson(gg.Exp(gg.Index("b", by="g")))}  # fmt: skip
        seen = {"g": rng.integers(3, size=n).tolist(), "x": rng.poisson(rng.gamma(2.0, 3.0, n)).tolist()}
    elif kind == 1:
        text = "w{real^2} -> x{count} <- z{real^2}; plate cases: z, x"
        cpds = {"w": D.Gaussian(np.zeros(2), np.eye(2)), "x": D.Poisson(gg.Exp(gg.Dot("w", "z")))}
        seen = {"z": rng.normal(size=(n, 2)).tolist(), "x": rng.poisson(4.0, n).tolist()}
    else:
        text = "mu -> h{real} -> x{real}; plate cases: h, x"
        cpds = {"mu": D.Normal(0.0, 9.0), "h": D.Normal("mu", 0.5), "x": D.Normal(0.0, precision=gg.Exp("h"))}
        seen = {"x": (10.0 ** rng.uniform(-2.0, 2.0, n)).tolist()}
    return gg.BayesianNetwork(text, cpds=cpds), seen


@pytest.mark.parametrize("seed", range(18))
def test_the_bound_never_falls(seed: int) -> None:
    model, seen = random_problem(seed)
    options = {"engine": "mean_field", "random_state": seed, "restarts": 1, "max_iter": 40}
    bounds = model.query([], seen, **options).details["bounds"]
    assert np.isfinite(bounds).all() and (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    assert bounds[-1] > bounds[0]


def test_what_is_expected_of_members_that_nobody_saw() -> None:
    """E exp η and its variance for a count, E σ(η) for a coin, under the prior."""
    model, _ = one_number("poisson", [])
    found = model.query("x", {}, engine="mean_field", sizes={"cases": 2})["x"]
    rate, square = np.exp(0.5 + 1.0), np.exp(1.0 + 4.0)
    np.testing.assert_allclose(found.mean(), rate)
    np.testing.assert_allclose(np.square(found.sd()), rate + square - rate**2)
    coin, logs = one_number("logistic", [])
    p = np.trapezoid(np.exp(logs) * expit(GRID), GRID)
    found = coin.query("x", {}, engine="mean_field", sizes={"cases": 2})["x"]
    np.testing.assert_allclose(found.prob("yes"), p, atol=1e-9)


def test_unrolled_densities_are_those_of_the_link() -> None:
    model, _ = one_number("logistic", [])
    net = model.unroll(cases=1)
    found = net.joint_log_prob({"eta": 0.7, "x[0]": "yes"})
    assert found == pytest.approx(normal(0.7, 0.5, 2.0) + np.log(expit(0.7)))
    assert native.loads(native.dumps(net)).joint_log_prob({"eta": 0.7, "x[0]": "yes"}) == found


@pytest.mark.parametrize(
    "text, cpds, told",
    [
        ("eta{real} -> x{count}", {"x": D.Poisson(gg.Logistic("eta"))}, r"takes gg.Exp\(…\), not gg.Logistic"),
        ("eta{real} -> x{real}", {"x": D.Normal(gg.Exp("eta"), 1.0)}, "takes no link"),
        ("eta{real^2} -> x{count}", {"x": D.Poisson(gg.Exp("eta"))}, "is a vector"),
    ],
)
def test_links_that_do_not_fit_are_refused(text: str, cpds: dict[str, Any], told: str) -> None:
    prior = D.Gaussian(np.zeros(2), np.eye(2)) if "^" in text else D.Normal(0.0, 1.0)
    model = gg.BayesianNetwork(f"{text}; plate cases: x", cpds={"eta": prior, **cpds})
    with pytest.raises(ModelError, match=told):
        model.query("eta", {"x": [1, 2]})


def test_two_hidden_sides_of_a_product_are_refused() -> None:
    model = gg.BayesianNetwork(
        "w{real^2} -> x{count} <- z{real^2}; plate cases: z, x",
        cpds={"w": D.Gaussian(np.zeros(2), np.eye(2)), "z": D.Gaussian(np.zeros(2), np.eye(2)),
              "x": D.Poisson(gg.Exp(gg.Dot("w", "z")))},
    )  # fmt: skip
    with pytest.raises(ModelError, match="one side of a product"):
        model.query("w", {"x": [1, 2]})
    with pytest.raises(ModelError, match="name of a variable"):
        gg.Exp(3.0)
