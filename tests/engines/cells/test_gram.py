"""Messages between samples: with delta kernels they are those between tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelError, OptionError


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(0)
    n = 150
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 3, n))
    c, d = (np.where(rng.random(n) < 0.6, b, rng.integers(0, k, n)) for k in (3, 2))
    e = np.where(rng.random(n) < 0.8, d, rng.integers(0, 3, n))
    frame = pd.DataFrame({k: np.array(list("uvw"))[x] for k, x in zip("abcde", (a, b, c, d, e), strict=True)})
    edges = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
    return gg.learn_tree(frame, "table", edges=edges, floor=0.0)


@pytest.mark.parametrize(
    "evidence",
    [{}, {"c": "u"}, {"b": "v"}, {"a": "u", "e": "w"}, {"b": "u", "e": "v"}, {"b": "u", "d": "v", "c": "w"}],
)
def test_delta_kernels_are_tables(tree, evidence):
    table = tree.query(None, evidence, engine="cells")
    gram = tree.query(None, evidence, engine="gram", reg=0.0)
    assert gram.log_evidence == pytest.approx(table.log_evidence, abs=1e-10)
    for name in table:
        assert np.abs(table[name].probabilities - gram[name].probabilities).max() < 1e-10


def test_complete_rows_and_tables_of_cases(tree):
    full = dict.fromkeys("abcde", "u")
    exact = tree.query("a", full, engine="cells").log_evidence
    assert tree.query("a", full, engine="gram", reg=0.0).log_evidence == pytest.approx(exact, abs=1e-10)
    many = tree.query("a", [{"c": "u"}, {"e": "w"}], engine="gram", reg=0.0)
    assert many["a"].probabilities[1] == pytest.approx(tree.query("a", {"e": "w"})["a"].probabilities, abs=1e-10)


def test_numbers_and_refusals():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    net = gg.learn_tree({"x": x, "y": 0.8 * x + 0.3 * rng.normal(size=300)})
    gram = net.query("x", {"y": 0.8}, engine="gram", reg=1e-4)
    assert gram["x"].mean() == pytest.approx(net.query("x", {"y": 0.8})["x"].mean(), abs=0.25)
    assert gram.details["negative_mass"]["x"] >= 0.0 and not gram.exact
    with pytest.raises(OptionError, match="single variables"):
        net.query(("x", "y"), engine="gram")
    large = gg.learn_tree({"x": list("ab") * 1500, "y": list("uvu") * 1000})
    with pytest.raises(ModelError, match="up to 2,000 rows"):
        large.query("x", engine="gram")
