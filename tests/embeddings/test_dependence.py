"""Dependence of all pairs of columns and the tree that follows from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.embeddings import pairwise_dependence

RNG = np.random.default_rng


def undirected(edges):
    return {tuple(sorted(edge)) for edge in edges}


def nonlinear_tree(n, v, seed):
    """Node i hangs on node (i − 1) // 2; links alternate between forms that correlation does not see."""
    rng = RNG(seed)
    forms = (lambda x: x**2 - 1.0, lambda x: 1.5 * np.sin(2 * x), np.tanh, lambda x: np.abs(x) - 0.8)
    X = np.empty((n, v))
    X[:, 0] = rng.normal(size=n)
    for i in range(1, v):
        y = forms[i % 4](X[:, (i - 1) // 2]) + 0.4 * rng.normal(size=n)
        X[:, i] = (y - y.mean()) / y.std()
    names = [f"v{i}" for i in range(v)]
    return pd.DataFrame(X, columns=names), undirected((names[(i - 1) // 2], names[i]) for i in range(1, v))


def test_a_nonlinear_tree_is_found():
    frame, truth = nonlinear_tree(1500, 15, 0)
    assert undirected(pairwise_dependence(frame).tree()) == truth


def test_edges_point_away_from_the_root_and_names_follow_their_columns():
    frame, truth = nonlinear_tree(1500, 7, 1)
    found = pairwise_dependence(frame)
    edges = found.tree(root="v5")
    reached = ["v5"]
    for parent, child in edges:
        assert parent in reached and child not in reached
        reached.append(child)
    shuffled = pairwise_dependence(frame[["v3", "v1", "v6", "v0", "v5", "v2", "v4"]])
    assert shuffled["v1", "v3"] == pytest.approx(found["v1", "v3"], rel=1e-9)
    assert undirected(shuffled.tree()) == truth


def test_independent_columns_scatter_around_zero():
    rng = RNG(2)
    found = pairwise_dependence({f"x{i}": rng.normal(size=800) for i in range(12)})
    values = found.smi[np.triu_indices(12, 1)]
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(len(values)) and np.abs(values).max() < 0.05
    assert np.array_equal(found.smi, found.smi.T) and not found.smi.diagonal().any()


def test_gaussian_value():
    rng = RNG(3)
    x = rng.normal(size=8000)
    y = 0.6 * x + 0.8 * rng.normal(size=8000)
    assert pairwise_dependence({"x": x, "y": y})["x", "y"] == pytest.approx(0.5 * 0.36 / 0.64, rel=0.15)


def test_columns_of_several_kinds():
    rng = RNG(4)
    angle = rng.uniform(-np.pi, np.pi, 900)
    frame = pd.DataFrame(
        {
            "angle": angle,
            "north": np.where(np.cos(angle) > 0, "yes", "no"),
            "height": np.exp(np.sin(angle) + 0.3 * rng.normal(size=900)),
            "noise": rng.normal(size=900),
        }
    )
    found = pairwise_dependence(frame, domains={"angle": "circle", "height": "positive"})
    assert {("angle", "north"), ("angle", "height")} <= set(found.tree(root="angle"))
    assert max(found["noise", other] for other in ("angle", "north", "height")) < 0.05
    labels = {"a": list("xxyyzz") * 50, "b": list("uuvvuu") * 50}
    joint = np.array([[1 / 3, 0], [0, 1 / 3], [1 / 3, 0]])
    exact = 0.5 * ((joint**2 / (joint.sum(1, keepdims=True) * joint.sum(0))).sum() - 1.0)
    assert pairwise_dependence(labels, reg=1e-9)["a", "b"] == pytest.approx(exact, rel=0.1)


def test_constant_columns_are_no_trouble():
    found = pairwise_dependence({"one": np.ones(50), "x": np.arange(50.0), "y": np.arange(50.0) ** 2})
    assert found["one", "x"] == 0.0 and np.isfinite(found.smi).all() and found["x", "y"] > 0.5


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: pairwise_dependence(np.ones((3, 2))), "data frame"),
        (lambda: pairwise_dependence({"a": np.arange(9.0)}), "at least 2 columns"),
        (lambda: pairwise_dependence({"a": np.arange(9.0), "b": np.arange(8.0)}), "equally many rows"),
        (lambda: pairwise_dependence({"a": np.arange(3.0), "b": np.arange(3.0)}), "a: expected at least 4"),
        (lambda: pairwise_dependence({"a": [1.0, np.nan, 2.0, 3.0], "b": np.arange(4.0)}), "a: expected finite"),
        (lambda: pairwise_dependence({"phi": np.arange(9.0), "b": np.arange(9.0)}, domains={"phy": "circle"}), "'phi'"),
        (lambda: pairwise_dependence({"a": np.arange(9.0), "b": np.arange(9.0)}, domains={"a": "ring"}), "Domains:"),
        (lambda: pairwise_dependence({"a": np.arange(9.0), "b": np.arange(9.0)}, reg=0.0), "positive"),
        (lambda: pairwise_dependence({"a": np.arange(9.0), "b": np.arange(9.0)})["a", "c"], "not a variable"),
        (lambda: pairwise_dependence({"a": np.arange(9.0), "b": np.arange(9.0)}).tree("c"), "not a variable"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(gg.GramGraphError, match=words):
        call()
