"""Learning of linear-chain conditional random fields: objective and gradient, optimum, what it loads, its contract."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import gramgraph as gg
from gramgraph._numerics import descent
from gramgraph._numerics.compiling import source_of, tier
from gramgraph._numerics.crf import recursions
from gramgraph.exceptions import ModelWarning
from gramgraph.sequences import LinearChainCRF
from gramgraph.sequences.crf import expectations, packing
from gramgraph.sequences.crf.encoding import FeatureTable
from gramgraph.sequences.crf.optimize import minimize
from tests.sequences.crf_cases import LABELS, drawn, objective_of


def take(way, monkeypatch):
    """Let the sums be computed in one of their two ways."""
    monkeypatch.setattr(expectations, "pays", lambda loop, seconds: way == "loop")


@pytest.fixture(params=["products", "loop"])
def way(request, monkeypatch):
    take(request.param, monkeypatch)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("all_states", [False, True])
@pytest.mark.usefixtures("way")
def test_gradient_equals_differences(rng, values, all_states):
    X, y = drawn(rng, values=values)
    f = objective_of(X, y, c2=0.3, all_states=all_states, all_transitions=all_states)
    w = rng.normal(size=f.layout.size)
    value, g = f(w)
    for k in range(f.layout.size):
        e = np.zeros(len(w))
        e[k] = 1e-5
        assert (f(w + e)[0] - f(w - e)[0]) / 2e-5 == pytest.approx(g[k], abs=2e-6)
    assert f(w)[0] == value


@pytest.mark.usefixtures("way")
def test_scores_beyond_the_range_of_exp_are_learned_with_logarithms(rng):
    X, y = drawn(rng, values=True)
    f = objective_of(X, y)
    w = 600.0 * rng.normal(size=f.layout.size)
    value, g = f(w)
    assert np.isfinite(value)
    assert value > 0
    d = rng.normal(size=len(w))
    assert (f(w + 1e-4 * d)[0] - f(w - 1e-4 * d)[0]) / 2e-4 == pytest.approx(g @ d, rel=1e-4)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("size", [1.0, 120.0])
def test_both_ways_give_the_same_sums(rng, monkeypatch, values, size):
    X, y = drawn(rng, S=20, values=values)
    take("products", monkeypatch)
    products = objective_of(X, y, c2=0.1)
    take("loop", monkeypatch)
    loop, threads = objective_of(X, y, c2=0.1), objective_of(X, y, c2=0.1, n_jobs=3)
    w = size * rng.normal(size=products.layout.size)  # large weights: some sequences pass through logarithms
    for other in (loop, threads):
        assert other(w)[0] == pytest.approx(products(w)[0], rel=1e-11)
        np.testing.assert_allclose(other(w)[1], products(w)[1], rtol=1e-9, atol=1e-9)


def test_products_are_too_slow_for_one_long_sequence(monkeypatch):
    seconds = []
    monkeypatch.setattr(expectations, "pays", lambda loop, more: bool(seconds.append(more)))
    objective_of([[{"w": "a"}] * 4000], [["O"] * 4000])
    objective_of([[{"w": "a"}] * 4] * 1000, [["O"] * 4] * 1000)
    assert seconds[0] > 3.0  # that is worth compiling
    assert seconds[1] < 0.2


@pytest.mark.usefixtures("way")
def test_threads_give_the_same_objective(rng):
    X, y = drawn(rng, S=40)
    one, two = objective_of(X, y), objective_of(X, y, n_jobs=2)
    w = rng.normal(size=one.layout.size)
    assert one(w)[0] == pytest.approx(two(w)[0], rel=1e-13)
    np.testing.assert_allclose(one(w)[1], two(w)[1], atol=1e-12)


def test_objective_is_the_negative_log_likelihood(rng):
    X, y = drawn(rng)
    crf = gg.LinearChainCRF(c2=0.5, epsilon=1e-8, delta=0.0).fit(X, y)
    weights = np.array([*crf.state_features_.values(), *crf.transition_features_.values()])
    assert crf.objective_ == pytest.approx(-crf.log_likelihood(X, y).sum() + 0.5 * weights @ weights, rel=1e-10)


def test_l1_gives_zeros_and_meets_the_conditions_of_an_optimum(rng):
    X, y = drawn(rng, S=60)
    c1, c2 = 1.5, 0.1
    f = objective_of(X, y, c2=c2)
    found = minimize(f, np.zeros(f.layout.size), c1=c1, epsilon=1e-7, delta=0.0)
    g = f(found.w)[1]
    zero = found.w == 0.0
    assert 0 < zero.sum() < len(zero)
    assert (np.abs(g[zero]) <= c1 + 1e-5).all()
    np.testing.assert_allclose(g[~zero], -c1 * np.sign(found.w[~zero]), atol=1e-4)
    crf = gg.LinearChainCRF(c1=c1, c2=c2, epsilon=1e-7, delta=0.0).fit(X, y)
    assert len(crf.state_features_) + len(crf.transition_features_) == (~zero).sum()


@pytest.mark.parametrize("values", [False, True])
def test_groups_blocks_and_batches_do_not_change_the_objective(rng, monkeypatch, values):
    X, y = drawn(rng, S=150, longest=9, values=values)
    take("products", monkeypatch)
    whole = objective_of(X, y, c2=0.1)
    assert len(whole.expectations.data.members) > 1
    monkeypatch.setattr(packing, "_CELLS", 60)
    monkeypatch.setattr(packing, "_BATCH", 200)
    monkeypatch.setattr(packing, "_ENTRIES", 50)
    parts = objective_of(X, y, c2=0.1)
    assert len(parts.expectations.data.batches) > 5
    assert any(len(batch.blocks) > 1 for batch in parts.expectations.data.batches)
    monkeypatch.setattr(packing, "_GROUPED", 0)
    plain = objective_of(X, y, c2=0.1)
    assert len(plain.expectations.data.members) == 0
    w = rng.normal(size=whole.layout.size)
    for other in (parts, plain):
        assert other(w)[0] == pytest.approx(whole(w)[0], rel=1e-13)
        np.testing.assert_allclose(other(w)[1], whole(w)[1], atol=1e-11)


def test_an_attribute_that_stands_twice_counts_twice(rng):
    y = [[LABELS[int(k)] for k in rng.integers(0, 3, 4)] for _ in range(30)]
    words = [[f"w{k}" for k in rng.integers(0, 3, 4)] for _ in range(30)]
    twice = objective_of([[[w, w] for w in x] for x in words], y)
    double = objective_of([[{w: 2.0} for w in x] for x in words], y)
    w = rng.normal(size=twice.layout.size)
    assert twice(w)[0] == pytest.approx(double(w)[0], rel=1e-13)
    np.testing.assert_allclose(twice(w)[1], double(w)[1], atol=1e-11)


def test_features_get_their_numbers_in_the_order_of_first_sight():
    table = FeatureTable()
    token = {"x": 2.5, "word": "a", "on": True, "off": False, "z": 0.0}
    found = table.encode([[token] * 300, [{"word": "b", "x": 1, "parts": ["p", "q"]}]], grow=True)
    assert table.names() == ["x", "word:a", "on", "off", "z", "word:b", "parts:p", "parts:q"]
    assert found.ids[:5].tolist() == found.ids[1490:1495].tolist() == [0, 1, 2, -6, -7]
    assert found.ids[1500:].tolist() == [5, 0, 6, 7]
    assert found.data[1490:].tolist() == [2.5, 1, 1, 1, 1] * 2 + [1, 1, 1, 1]


def test_names_that_write_the_same_attribute_share_its_number():
    table = FeatureTable()
    found = table.encode([[{"a": "b:c", "n": "x"}, {"a:b": "c"}, {"a": {"b": "c"}}, {"n:x": 1.0}]], grow=True)
    assert table.names() == ["a:b:c", "n:x"]
    assert found.ids.tolist() == [0, 1, 0, 0, 1]
    assert table.encode([[["n:x", "a:b:c", "new"]]], grow=True).ids.tolist() == [1, 0, 2]


def test_learning_and_its_answers_keep_scikit_learns_contract(rng):
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.utils import get_tags

    X, y = drawn(rng, S=30)
    crf = gg.LinearChainCRF(c1=0.1, constraints="BIO")
    assert repr(crf) == "LinearChainCRF(c1=0.1, constraints='BIO')"
    assert clone(crf).get_params() == crf.get_params()
    assert crf.set_params(c1=0.2).c1 == 0.2
    with pytest.raises(gg.ModelError, match="'epsilom' is not a parameter of LinearChainCRF.*Did you mean 'epsilon'"):
        crf.set_params(epsilom=1.0)
    with pytest.raises(NotFittedError, match="Call fit first"):
        crf.predict(X)
    assert get_tags(crf).target_tags.required
    assert not get_tags(crf).input_tags.two_d_array
    search = GridSearchCV(gg.LinearChainCRF(), {"c2": [1e-3, 1e3]}, cv=2).fit(X, y)
    assert search.best_params_ == {"c2": 1e-3}
    assert make_pipeline(gg.LinearChainCRF(c2=1e-3)).fit(X, y).score(X, y) > 0.5


def test_learning_loads_neither_the_compiler_nor_scikit_learn():
    code = (
        "import sys\nfrom gramgraph import LinearChainCRF\n"
        "LinearChainCRF().fit([[{'a': 'x'}, {'a': 'y'}]] * 50, [['p', 'q']] * 50)\n"
        "print([name for name in ('numba', 'llvmlite', 'sklearn', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_vectors_of_a_descent_are_the_same_in_both_tiers(rng):
    w, moved, g, observed = rng.normal(size=(4, 30))
    new = g + 0.5 * (moved - w) + 0.01 * rng.normal(size=30)

    def run() -> tuple:
        S, Y, products = np.ones((3, 30)), np.ones((3, 30)), np.full(3, 30.0)
        kept = [
            descent.remember(w, moved, g, new, S, Y, products, 1),
            descent.remember(w, moved, new, g, S, Y, products, 2),
        ]
        direction, down = descent.quasi_newton(new, S, Y, products, 1, 2)
        gradient = g.copy()
        value = descent.penalize(w, observed, 0.3, gradient)
        return kept, S, Y, products, direction, down, value, gradient

    with tier("plain"):
        plain = run()
    with tier("compiled"):
        compiled = run()
    assert plain[0] == compiled[0] == [True, False]
    for a, b in zip(plain[1:], compiled[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(plain[1][1], moved - w)
    assert (plain[1][2] == 1.0).all()  # the slope fell: not remembered
    assert plain[5] == pytest.approx(plain[4] @ new) and plain[6] == pytest.approx(0.3 * w @ w - observed @ w)
    np.testing.assert_allclose(plain[7], g + 0.6 * w - observed)


def test_many_moves_give_the_same_direction_in_both_tiers_and_as_matrices(rng):
    n, rows, newest, count = 30, 15, 4, 13
    root = rng.normal(size=(n, n))
    curved = root @ root.T + np.eye(n)
    S = rng.normal(size=(rows, n))
    Y = S @ curved + 0.01 * rng.normal(size=(rows, n))
    products, slope = (S * Y).sum(axis=1), rng.normal(size=n)
    found = []
    for name in ("plain", "compiled"):
        with tier(name):
            found.append(descent.quasi_newton(slope, S, Y, products, newest, count))
    H = (products[newest] / (Y[newest] @ Y[newest])) * np.eye(n)  # the updates of BFGS, written out
    for k in range(count - 1, -1, -1):
        i = (newest - k) % rows
        turn = np.eye(n) - np.outer(S[i], Y[i]) / products[i]
        H = turn @ H @ turn.T + np.outer(S[i], S[i]) / products[i]
    for direction, down in found:
        np.testing.assert_allclose(direction, -H @ slope, rtol=1e-7, atol=1e-9)
        assert down == pytest.approx(-slope @ H @ slope, rel=1e-7)


def test_features_are_parted_by_numpy_as_by_the_loop(rng, monkeypatch):
    monkeypatch.setattr(recursions, "_STRETCH", 7)
    for trial in range(12):
        N, F = int(rng.integers(30, 60)), 12
        ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 6, N))]).astype(np.int64)
        ids = rng.integers(-4, F, ptr[-1]).astype(np.int32)
        data = rng.normal(size=ptr[-1]) if trial % 2 else np.empty(0)
        new_id = np.where(rng.random(F) < 0.2, -1, rng.permutation(F)).astype(np.int32)[: F if trial % 3 else 0]
        found = []
        for way in (recursions._part_with_numpy, source_of(recursions.part_features)):
            given = ptr.copy(), ids.copy(), data.copy(), np.empty(N, np.int64)
            left = way(*given[:3], new_id, trial % 6, given[3])
            found.append((given[0], given[1][:left], given[2][:left], given[3]))
        assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_a_descent_remembers_more_where_that_is_cheap(rng):
    X = [[{"word": f"w{rng.integers(9)}", "bias": 1.0} for _ in range(30)] for _ in range(60)]
    y = [[f"L{int(token['word'][1]) % 3 if rng.random() < 0.8 else rng.integers(3)}" for token in x] for x in X]
    few, free = gg.LinearChainCRF(c2=0.1, num_memories=2).fit(X, y), gg.LinearChainCRF(c2=0.1).fit(X, y)
    assert free.n_iter_ < few.n_iter_ and free.objective_ <= few.objective_ * (1.0 + 1e-5)
    with pytest.raises(ValueError, match="num_memories"):
        gg.LinearChainCRF(num_memories=0).fit(X, y)


@pytest.mark.parametrize("way", ["plain", "compiled"])
def test_a_feature_of_very_large_values_is_told(way: str) -> None:
    """The search ends before the weights of other features have moved."""
    rng = np.random.default_rng(0)
    X = [[{"word": "ab"[int(rng.integers(2))], "big": float(x)} for x in rng.normal(size=5)] for _ in range(8)]
    y = [["N" if token["word"] == "a" else "V" for token in row] for row in X]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = LinearChainCRF().fit(X, y)
    assert small.predict(X) == y
    huge = [[{**token, "big": 1e8 * token["big"]} for token in row] for row in X]
    told = r"feature 'big' reaches \d.*e\+08.* Try: scale it to values near 1"
    with pytest.warns(ModelWarning, match=told), tier(way):
        LinearChainCRF().fit(huge, y)
