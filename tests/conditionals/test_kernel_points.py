"""Kernels on arrows between vectors, directions, sets and strings: densities, draws, networks, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.variables import Points, Real, Sphere, Var, discrete


@pytest.fixture(scope="module")
def directions():
    rng = np.random.default_rng(0)
    S = rng.normal(size=(200, 3))
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    T = S + 0.2 * rng.normal(size=S.shape)
    return {
        "s": list(S),
        "t": list(T / np.linalg.norm(T, axis=1, keepdims=True)),
        "y": S[:, 0] + 0.2 * rng.normal(size=200),
    }


def sphere_nodes(n=40):
    z, w = np.polynomial.legendre.leggauss(n)
    angle = np.arange(2 * n) * np.pi / n
    flat = np.sqrt(1.0 - z**2)[:, None]
    parts = [flat * np.cos(angle), flat * np.sin(angle), np.repeat(z[:, None], 2 * n, axis=1)]
    return np.stack(parts, axis=2).reshape(-1, 3), np.repeat(w, 2 * n) * np.pi / n


def test_a_direction_given_a_direction(directions):
    s, t = Var("s", Sphere()), Var("t", Sphere())
    c = gg.KernelConditional.fit(t, (s,), directions)
    X, W = sphere_nodes()
    given = np.tile([[0.0, 1.0, 0.0]], (len(X), 1))
    p = np.exp(c.log_density({s: given, t: X}))
    assert p @ W == pytest.approx(1.0, abs=1e-6) and c.faults() == []
    mean = (p * W) @ X
    assert mean[1] > 0.75
    drawn = c.draw({s: given[:1].repeat(3000, 0)}, 3000, np.random.default_rng(0))
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1.0) and np.abs(drawn.mean(axis=0) - mean).max() < 0.05


def test_networks_of_directions_and_vectors(directions, tmp_path):
    frame = pd.DataFrame({"s": directions["s"], "t": directions["t"], "y": directions["y"]})
    net = gg.BayesianNetwork("s{sphere} -> t{sphere}; s -> y{real}").fit(frame)
    found = net.query("t", {"s": [1.0, 0.0, 0.0]}, budget=5000, random_state=0)
    assert found.engine == "likelihood_weighting" and found["t"].mean()[0] > 0.7
    assert net.query("y", {"s": [1.0, 0.0, 0.0]})["y"].mean() == pytest.approx(1.0, abs=0.2)
    gg.write(net, tmp_path / "net.json")
    back = gg.read(tmp_path / "net.json")
    assert back == net and np.array_equal(back.log_likelihood(frame.head(5)), net.log_likelihood(frame.head(5)))


def test_a_vector_given_a_number():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(400, 2)) @ [[1.0, 0.6], [0.0, 0.8]]
    data = {"v": list(V), "y": V[:, 0] + 0.3 * rng.normal(size=400)}
    v, y = Var("v", Real(2)), Var("y", Real())
    c = gg.KernelConditional.fit(v, (y,), data)
    grid = np.linspace(-6.0, 6.0, 121)
    X = np.stack(np.meshgrid(grid, grid), axis=2).reshape(-1, 2)
    p = np.exp(c.log_density({y: np.ones((len(X), 1)), v: X})) * 0.1**2
    assert p.sum() == pytest.approx(1.0, abs=1e-3) and (p @ X)[0] == pytest.approx(0.9, abs=0.25)


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(0)
    w = rng.choice(["abc", "abd", "xyz", "xyw", "abcd"], 200)
    sets = [frozenset(rng.choice(list("pqrs"), 2, replace=False).tolist()) for _ in range(200)]
    z = np.where([word[0] == "a" for word in w], 1.0, -1.0) + 0.3 * rng.normal(size=200)
    u = np.array([float("p" in x) for x in sets]) + 0.2 * rng.normal(size=200)
    return pd.DataFrame({"w": w, "z": z, "u": u, "s": sets, "k": np.where(z + u > 0.5, "hi", "lo")})


@pytest.fixture(scope="module")
def word_net(words):
    return gg.BayesianNetwork("w{string} -> z{real} -> k{lo|hi}; s{set} -> u{real} -> k").fit(words)


def test_sets_and_strings_in_networks(words, word_net):
    assert word_net.var("w").domain == Points("string")
    found = word_net.query(["w", "s"], {"k": "lo"})
    drawn = word_net.query(["w", "s"], {"k": "lo"}, engine="likelihood_weighting", budget=20_000, random_state=0)
    assert found.engine == "nodes"
    for name in ("w", "s"):
        p, q = found[name].to_dict(), drawn[name].to_dict()
        assert all(abs(p[key] - q[key]) < 0.02 for key in p) and sum(p.values()) == pytest.approx(1.0)
    assert found["w"].prob("xyz") > 5 * found["w"].prob("abc")
    near = word_net.query("z", {"w": "abe"})
    assert near["z"].mean() > 0.0 and word_net.query("z", {"w": "qqqqqq"}).quality == "unreliable"
    rows = word_net.query("z", words[["w"]].head(3))
    assert rows["z"].mean()[0] == pytest.approx(word_net.query("z", {"w": words.w[0]})["z"].mean(), abs=1e-6)


def test_draws_best_values_and_files_of_strings(words, word_net, tmp_path):
    drawn = word_net.sample(200, random_state=0)
    assert set(drawn["w"]) <= set(words["w"]) and all(isinstance(x, frozenset) for x in drawn["s"])
    assert np.isfinite(word_net.log_likelihood(words.head(10))).all()
    gg.write(word_net, tmp_path / "net.json")
    assert gg.read(tmp_path / "net.json") == word_net
    assert gg.read(tmp_path / "net.json").var("s") == word_net.var("s")


def test_rows_with_gaps_of_every_kind_are_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    frame = pd.DataFrame({"y": x + 0.3 * rng.normal(size=40), "k": pd.array(["a", "b"] * 20, dtype="string")})
    frame["v"] = [np.array([a, -a]) for a in x]
    frame.loc[3, "k"], frame.at[5, "v"] = pd.NA, np.array([np.nan, 1.0])
    y, k, v = Var("y", Real()), discrete("k", ["a", "b"]), Var("v", Real(2))
    for parent, row in ((k, 3), (v, 5)):
        whole = frame.drop(index=row)
        got, expected = (gg.KernelConditional.fit(y, (parent,), data, cells=8) for data in (frame, whole))
        assert np.array_equal(got.on_cells, expected.on_cells) and np.isfinite(got.on_cells).all()


def test_columns_of_different_lengths_are_refused_in_words():
    x, y = Var("x", Real()), Var("y", Real())
    with pytest.raises(gg.VariableError, match="y has 3 rows, x has 2"):
        gg.KernelConditional.fit(y, (x,), {"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]})
