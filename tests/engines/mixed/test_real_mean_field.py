"""Mean field on Gaussian and conditional-Gaussian networks: a bound below the exact evidence that never falls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import conditionals as C
from gramgraph.exceptions import ModelError
from gramgraph.variables import discrete, real


def rises(bounds: np.ndarray) -> bool:
    return bool(np.all(np.diff(bounds) >= -1e-9 * (1.0 + np.abs(bounds[1:]))))


def random_gaussian(rng: np.random.Generator, n: int = 5) -> Any:
    xs = [real(f"x{i}", 2 if i == 1 else 1) for i in range(n)]
    parts: list[Any] = []
    for i, x in enumerate(xs):
        parents = tuple(p for p in xs[:i] if rng.random() < 0.6)
        m = sum(p.dimension for p in parents)
        root = rng.normal(size=(x.dimension, x.dimension))
        S = root @ root.T + 0.3 * np.eye(x.dimension)
        parts.append(C.LinearGaussian(x, parents, rng.normal(size=(x.dimension, m)), rng.normal(size=x.dimension), S))
    return gg.BayesianNetwork.from_parts(xs, parts)


def random_mixed(rng: np.random.Generator) -> Any:
    d, e = discrete("d", 2), discrete("e", 3)
    x, y, z = real("x"), real("y"), real("z")
    parts = [
        C.Table(d, (), rng.dirichlet([1.0, 1.0])),
        C.Table(e, (d,), rng.dirichlet(np.ones(3), size=2)),
        C.ConditionalLinearGaussian(x, (d,), {}, rng.normal(size=2) * 2, sd=rng.uniform(0.5, 1.5, size=2)),
        C.ConditionalLinearGaussian(
            y, (e, x), {"x": rng.normal(size=3)}, rng.normal(size=3), sd=rng.uniform(0.5, 1.5, size=3)
        ),
        C.LinearGaussian(z, (x, y), rng.normal(size=(1, 2)), 0.3, sd=0.8),
    ]
    return gg.BayesianNetwork.from_parts([p.child for p in parts], parts)


@pytest.mark.parametrize("seed", range(10))
def test_gaussian_means_are_exact_and_the_bound_is_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_gaussian(rng)
    seen = {"x4": float(rng.normal()), "x2": float(rng.normal())}
    exact = net.query(["x0", "x1", "x3"], seen)
    field = net.query(["x0", "x1", "x3"], seen, engine="mean_field", tol=1e-14, max_iter=20000)
    assert not field.exact and field.quality == "checked" and rises(field.details["bounds"])
    assert field.log_evidence <= exact.log_evidence + 1e-9
    for name in ("x0", "x1", "x3"):
        assert np.allclose(field[name].mean(), exact[name].mean(), atol=1e-5)
        assert (np.asarray(field[name].var()) <= np.asarray(exact[name].var()) + 1e-9).all()


@pytest.mark.parametrize("seed", range(20))
def test_mixed_networks_are_bounded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_mixed(rng)
    seen = {"z": float(rng.normal())} if seed % 2 else {"z": float(rng.normal()), "e": "1"}
    exact = net.query(["d", "x", "y"], seen)
    field = net.query(["d", "x", "y", ("d", "x")], seen, engine="mean_field", random_state=seed)
    assert field.log_evidence <= exact.log_evidence + 1e-9 and rises(field.details["bounds"])
    assert field.log_evidence > exact.log_evidence - 5.0
    assert field["d"].probabilities.sum() == pytest.approx(1.0)
    assert field[("d", "x")].mean() == pytest.approx(field["x"].mean())


def test_one_hidden_variable_is_exact() -> None:
    net = random_mixed(np.random.default_rng(1))
    seen = {"z": 0.4, "d": "0", "e": "2", "y": -0.3}
    exact, field = net.query("x", seen), net.query("x", seen, engine="mean_field")
    assert field.log_evidence == pytest.approx(exact.log_evidence, abs=1e-10)
    assert field["x"].mean() == pytest.approx(exact["x"].mean()) and field["x"].var() == pytest.approx(exact["x"].var())


def test_a_table_of_cases_and_a_markov_network() -> None:
    net = random_gaussian(np.random.default_rng(0))
    rows = [{"x4": 0.1, "x2": 0.2}, {"x4": -1.0, "x2": 0.5}]  # others would leave other variables out
    field = net.query("x0", rows, engine="mean_field")
    single = [net.query("x0", row, engine="mean_field") for row in rows]
    assert np.allclose(field["x0"].mean(), [one["x0"].mean() for one in single], atol=1e-4)
    assert np.allclose(field.log_evidence, [one.log_evidence for one in single], atol=1e-4)
    chain = gg.MarkovNetwork.from_precision([[2.0, -0.8, 0.0], [-0.8, 2.0, -0.5], [0.0, -0.5, 1.0]])
    found, exact = chain.query("x0", {"x2": 1.0}, engine="mean_field"), chain.query("x0", {"x2": 1.0})
    assert found["x0"].mean() == pytest.approx(exact["x0"].mean(), abs=1e-4)
    assert found.log_evidence <= exact.log_evidence + 1e-9


def test_zeros_and_missing_noise() -> None:
    d, e, x = discrete("d", 2), discrete("e", 2), real("x")
    parts = [
        C.Table(d, (), [0.5, 0.5]),
        C.Table(e, (d,), [[1.0, 0.0], [0.3, 0.7]]),
        C.ConditionalLinearGaussian(x, (e,), {}, [0.0, 3.0], sd=[1.0, 1.0]),
    ]
    net = gg.BayesianNetwork.from_parts([p.child for p in parts], parts)
    exact, field = net.log_evidence({"x": 3.0}), net.query("e", {"x": 3.0}, engine="mean_field", random_state=0)
    assert np.isnan(field.log_evidence) or field.log_evidence <= exact + 1e-9
    still = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 1.0, "sd": 0.0}})
    with pytest.raises(ModelError, match="no noise"):
        still.query("x", {"y": 1.0}, engine="mean_field")
    with pytest.raises(gg.OptionError, match="n_starts"):
        net.query("e", {"x": 3.0}, engine="mean_field", n_starts=0)
