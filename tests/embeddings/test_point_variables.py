"""Vectors, directions, sets and strings as variables of a tree."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.exceptions import OptionError, StateError, VariableError

LETTERS = "abcdef"


def sample(n: int, seed: int) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    turn = rng.uniform(-np.pi, np.pi, n)
    place = np.stack([np.cos(turn), np.sin(turn)], axis=1) * 1.5 + 0.1 * rng.normal(size=(n, 2))
    y = np.sin(2 * turn) + 0.2 * rng.normal(size=n)
    arrow = rng.normal(size=(n, 3))
    arrow /= np.linalg.norm(arrow, axis=1, keepdims=True)
    kind = np.where(y > 0, "up", "down")
    chance = {"up": (0.8, 0.8, 0.5, 0.2, 0.1, 0.1), "down": (0.1, 0.2, 0.5, 0.6, 0.8, 0.8)}
    tags = [frozenset(c for c, p in zip(LETTERS, chance[k], strict=True) if rng.random() < p) for k in kind]
    word = ["".join(rng.choice(list("abc" if k == "up" else "xyz"), size=6)) for k in kind]
    height = arrow[:, 2] + 0.1 * rng.normal(size=n)
    return {"place": place, "y": y, "arrow": list(arrow), "height": height, "kind": kind, "tags": tags, "word": word}


DOMAINS = {"arrow": "sphere", "word": "string"}
EDGES = [("place", "y"), ("y", "kind"), ("kind", "word"), ("kind", "tags"), ("arrow", "height")]


@pytest.fixture(scope="module")
def net() -> gg.embeddings.KernelTree:
    return gg.learn_tree(sample(1200, 0), domains=DOMAINS, edges=EDGES)


def test_domains_are_guessed_or_given(net):
    kinds = {"place": "vector", "arrow": "sphere", "tags": "set", "word": "string", "kind": "category", "y": "real"}
    assert {name: net.domains[name] for name in kinds} == kinds


def test_points_tell_about_numbers_and_categories(net):
    belief = net.query("y", {"place": [1.06, 1.06]})["y"]
    assert belief.mean() == pytest.approx(1.0, abs=0.12)
    assert belief.sd() < 0.35
    assert net.query("height", {"arrow": (0.0, 0.0, 1.0)})["height"].mean() == pytest.approx(1.0, abs=0.12)
    assert net.query("kind", {"word": "abccba"})["kind"].prob("up") > 0.97
    assert net.query("kind", {"tags": {"e", "f"}})["kind"].prob("down") > 0.9


def test_numbers_and_categories_tell_about_points(net):
    word = net.query("word", {"kind": "down"})["word"]
    assert set(word.mode()) <= set("xyz")
    assert word.expect(lambda w: float(set(w) <= set("xyz"))) > 0.97
    arrow = net.query("arrow", {"height": 0.9})["arrow"].mean()
    assert arrow[2] > 0.95
    assert np.linalg.norm(arrow) == pytest.approx(1.0)
    tags = net.query("tags", {"kind": "up"})["tags"]
    assert tags.expect(lambda s: "a" in s) > tags.expect(lambda s: "f" in s) + 0.3
    place = net.query("place", {"y": 1.0})["place"]
    assert place.expect(lambda p: p[0] * p[1]) > 0.5  # on the diagonal, on either side
    assert len(place.sample(5, random_state=0)) == 5
    both = net.query("word", [{"kind": "up"}, {"kind": "down"}])["word"]
    assert [set(w) <= set("abc") for w in both.mode()] == [True, False]
    with pytest.raises(VariableError, match="needs numbers"):
        word.mean()


def test_the_tree_is_found(net):
    found = gg.learn_tree(sample(1200, 0), domains=DOMAINS)
    strong = {frozenset(edge) for edge in EDGES}
    assert strong <= {frozenset(edge) for edge in found.edges}


def test_likelihood_draws_best_files(net, tmp_path):
    test = sample(200, 5)
    logs = net.log_likelihood(test)
    assert np.isfinite(logs).all()
    apart = gg.learn_tree(sample(1200, 0), domains=DOMAINS, edges=[])
    assert logs.mean() > apart.log_likelihood(test).mean() + 2.0
    draws = net.sample(300, {"kind": "up"}, random_state=0)
    assert np.mean([set(w) <= set("abc") for w in draws["word"]]) > 0.97
    best = net.map_query({"y": 1.0}).assignment
    assert best["kind"] == "up" and set(best["word"]) <= set("abc")
    net.save(tmp_path / "tree.npz")
    gg.write(net, tmp_path / "tree.json")
    for read in (gg.embeddings.KernelTree.load(tmp_path / "tree.npz"), gg.read(tmp_path / "tree.json")):
        assert np.array_equal(read.log_likelihood(test), logs)


def test_far_points_and_wrong_ones(net):
    far = net.query("y", {"place": [100.0, -100.0]})["y"]
    assert far.mean() == pytest.approx(net.query("y")["y"].mean(), abs=1e-6)
    assert far.diagnostics["outside"] == ("place",)
    assert net.query("kind", {"word": "0123456"})["kind"].prob("up") == pytest.approx(net.axis("kind").q[1], abs=1e-3)
    with pytest.raises(StateError, match="place takes"):
        net.query("y", {"place": ["a", "b"]})
    with pytest.raises(StateError, match="vectors"):
        gg.learn_tree({"v": [[1.0, 2.0], [1.0]] * 10, "y": np.arange(20.0)}, domains={"v": "vector"})
    with pytest.raises(OptionError, match="Did you mean 'sphere'"):
        gg.learn_tree(sample(20, 0), domains={"arrow": "spere"})
