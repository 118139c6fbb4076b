"""Structure with families of any kind, and dynamic networks whose conditionals are kinds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import OptionError


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 220
    angle = rng.uniform(-np.pi, np.pi, n)
    x = np.cos(angle) + 0.2 * rng.normal(size=n)
    y = x**2 + 0.1 * rng.normal(size=n)
    fault = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-6.0 * (x**2 - 0.6))), "yes", "no")
    return pd.DataFrame({"angle": angle, "x": x, "y": y, "fault": fault, "alone": rng.normal(size=n)})


def test_a_tree_of_families_without_a_form(frame):
    columns = frame[["angle", "x", "fault", "alone"]]
    net = gg.learn_structure(columns, conditional="choose", method="chow_liu", domains={"angle": "circle"})
    assert {frozenset(edge) for edge in net.edges} == {frozenset(("angle", "x")), frozenset(("x", "fault"))}
    assert repr(net.var("angle").domain) == "circle" and net.report.score_name == "left out"
    assert net.query("angle", {"fault": "yes"}).engine == "nodes"
    assert net.fit_report.weights["angle"] == {"kernel": 1.0}


def test_hill_climbing_and_refusals(frame):
    few = frame[["x", "y", "alone"]].head(120)
    net = gg.learn_structure(few, conditional="choose")
    assert {frozenset(edge) for edge in net.edges} == {frozenset(("x", "y"))}
    tiered = gg.learn_structure(few[["x", "y"]], conditional="choose", forbidden=[("x", "y")])
    assert tiered.edges == (("y", "x"),)
    for wrong, options in {
        "conditional is": {"conditional": "aut"},
        "works with the methods": {"conditional": "auto", "method": "ges"},
        "domains belong": {"domains": {"x": "circle"}},
        "for a column of numbers": {"conditional": "auto", "domains": {"x": "red"}},
    }.items():
        with pytest.raises(OptionError, match=wrong):
            gg.learn_structure(few, **options)


def test_dynamic_networks_of_kernels():
    rng = np.random.default_rng(0)
    x = np.zeros(300)
    for t in range(1, 300):
        x[t] = 2.0 * np.sin(1.5 * x[t - 1]) + 0.3 * rng.normal()
    rows = pd.DataFrame({"x": x, "y": x + 0.3 * rng.normal(size=300)})
    kinds = {"x": gg.KernelConditional(), "y": gg.LinearGaussian()}
    net = gg.DynamicBayesianNetwork("x' -> x{real} -> y{real}", cpds=kinds).fit(rows)
    assert net.step.conditional("x").kind == "kernel" and net.step.conditional("y").kind == "linear_gaussian"
    chain = net.unroll(3)
    seen = {f"y_{t}": float(rows.y[100 + t]) for t in range(3)}
    found = chain.query(None, seen)
    drawn = chain.query(None, seen, engine="likelihood_weighting", random_state=0)
    assert found.engine == "nodes"
    for t in range(3):
        assert abs(found[f"x_{t}"].mean() - rows.x[100 + t]) < 0.6
        assert abs(found[f"x_{t}"].mean() - drawn[f"x_{t}"].mean()) < 0.03
    assert len(net.sample(4, random_state=0)) == 4
