"""Directed networks with several parents, fields of gray levels, and hidden Markov models without hidden states."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.cells.axes import StateAxis
from gramgraph.exceptions import ModelError, OptionError, StateError, VariableError

RNG = np.random.default_rng


# ---------------------------------------------------------------------------------------------- directed networks


def sensors(n: int, seed: int = 0) -> pd.DataFrame:
    rng = RNG(seed)
    a, b = rng.normal(size=n), rng.uniform(-2, 2, size=n)
    kind = rng.choice(["x", "y"], size=n)
    c = np.where(kind == "x", a * b, np.sin(2 * b)) + 0.2 * rng.normal(size=n)
    alarm = np.where(c + a + 0.3 * rng.normal(size=n) > 0, "on", "off")
    return pd.DataFrame({"a": a, "b": b, "kind": kind, "c": c, "alarm": alarm})


GRAPH = "a -> c <- b; kind -> c; c -> alarm <- a"


@pytest.fixture(scope="module")
def net() -> gg.embeddings.KernelNetwork:
    return gg.learn_dag(sensors(3000), GRAPH)


def test_products_and_switches_are_learned(net):
    for a, b, kind in ((1.0, 1.0, "x"), (-1.0, 1.5, "x"), (0.5, 0.8, "y"), (-0.5, -1.2, "y")):
        truth = a * b if kind == "x" else np.sin(2 * b)
        belief = net.query("c", {"a": a, "b": b, "kind": kind})["c"]
        assert belief.mean() == pytest.approx(truth, abs=0.12)
        assert 0.15 < belief.sd() < 0.32
    assert net.query("alarm", {"a": 1.0, "c": 1.0})["alarm"].prob("on") > 0.97


def test_likelihood_is_near_the_truth():
    rng = RNG(3)
    n = 3000
    a, b = rng.normal(size=(2, n))
    f = a * b + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": b, "f": f})
    fit, judge = frame.iloc[:2000], frame.iloc[2000:]
    tree = gg.learn_dag(fit, {"f": ["a", "b"]})
    found = tree.log_likelihood(judge) - tree.log_likelihood(judge[["a", "b"]])
    truth = -0.5 * ((judge["f"] - judge["a"] * judge["b"]) / 0.3) ** 2 - np.log(0.3 * np.sqrt(2 * np.pi))
    assert (truth - found).mean() < 0.05


def test_explaining_away_and_draws(net):
    both = net.query(["a", "b"], {"kind": "x", "c": 1.5})
    assert abs(both["a"].mean()) < 0.25  # either sign will do
    assert both["a"].expect(np.abs) > 1.0
    told = net.query("a", {"kind": "x", "c": 1.5, "b": 1.5})["a"]
    assert told.mean() == pytest.approx(1.0, abs=0.1)
    draws = net.sample(4000, {"kind": "x", "c": 1.5}, random_state=0)
    assert (draws["c"] == 1.5).all()
    assert np.corrcoef(draws["a"], draws["b"])[0, 1] > 0.7
    assert draws["a"].abs().mean() == pytest.approx(both["a"].expect(np.abs), abs=0.05)


def test_categories_alone_are_a_table_network():
    rng = RNG(0)
    n = 4000
    a, b = rng.integers(0, 2, n), rng.integers(0, 3, n)
    c = (a + b + (rng.random(n) < 0.2)) % 3
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype(str)
    found = gg.learn_dag(frame, "a -> c <- b")
    exact = gg.BayesianNetwork("a -> c <- b", states={"a": list("01"), "b": list("012"), "c": list("012")}).fit(frame)
    for evidence in ({"a": "0", "b": "1"}, {"c": "2"}, {"c": "0", "a": "1"}):
        ours, theirs = found.query("b", evidence), exact.query("b", evidence)
        assert np.allclose(ours["b"].probabilities, theirs["b"].probabilities, atol=0.02)
        assert ours.log_evidence == pytest.approx(theirs.log_evidence, abs=0.02)


def test_gaps_batches_and_far_evidence(net):
    cases = sensors(6, seed=9).astype(object)
    cases.iloc[0, 0], cases.iloc[1, 3], cases.iloc[2, 2] = None, np.nan, None
    answer = net.query("b", cases.drop(columns="b"))
    one = net.query("b", cases.drop(columns="b").iloc[4].to_dict())
    assert answer["b"].mean()[4] == pytest.approx(one["b"].mean(), abs=1e-9)
    assert np.isfinite(net.log_likelihood(cases)).all()
    far = net.query("a", {"c": 1e9})["a"]
    assert far.mean() == pytest.approx(net.query("a")["a"].mean(), abs=1e-9)
    assert far.diagnostics["outside"] == ("c",)


def test_bad_graphs_and_values(net):
    frame = sensors(60)
    cases = [
        (lambda: gg.learn_dag(frame, "a -> b -> a"), ModelError, "cycle"),
        (lambda: gg.learn_dag(frame, "a -> q"), VariableError, "not a variable"),
        (lambda: gg.learn_dag({c: np.arange(20.0) for c in "abcdef"}, {"f": list("abcde")}), ModelError, "parents"),
        (lambda: net.query("c", {"kind": "z"}), StateError, "not a state"),
        (lambda: net.parents("zz"), VariableError, "not a variable"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


# ---------------------------------------------------------------------------------------------- fields


def picture(levels: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Hills with an edge and some texture, rounded to so many levels of gray, and the same with noise."""
    rng = RNG(seed)
    x, y = np.meshgrid(np.arange(48), np.arange(48))
    shift = rng.uniform(0, 6, size=3)
    hills = np.sin(x / 7 + shift[0]) + np.cos(y / 9 + shift[1]) + 1.5 * (x + y > 40 + 4 * shift[2])
    hills = hills + 0.2 * rng.normal(size=x.shape)
    clean = np.rint((hills - hills.min()) / np.ptp(hills) * (levels - 1)) / (levels - 1) * 255
    return clean, clean + 25.0 * rng.normal(size=clean.shape)


def test_error_and_cost_do_not_depend_on_the_levels_of_gray():
    errors = []
    for levels in (50, 250):
        model = gg.learn_grid(*picture(levels, 0))
        clean, noisy = picture(levels, 1)
        answer = model.query(noisy)
        errors.append(np.sqrt(((answer.mean() - clean) ** 2).mean()))
        assert answer.weights.shape[2] <= 64
        assert np.allclose(answer.weights.sum(axis=2), 1.0, atol=1e-4)
        assert (answer.sd() > 0).all()
        assert np.sqrt(((answer.mode() - clean) ** 2).mean()) < 25.0
    assert errors[0] < 15.0  # the noise was 25
    assert abs(errors[1] / errors[0] - 1.0) < 0.1


def test_a_field_of_one_row_is_a_chain():
    """On a chain propagation is exact: compare with sum-product of the library on the same tables."""
    clean, noisy = picture(20, 0)
    model = gg.learn_grid(clean, noisy, cells=12, power=1.0)
    row = noisy[3, :6]
    answer = model.query(row[None, :], damping=0.0, max_iter=5)
    likelihood = model._likelihood(row[None, :])[0]
    names = [f"p{i}" for i in range(6)]
    m = model.pixel.m
    factors = {(names[i],): model.pixel.q * likelihood[i] for i in range(6)}
    factors.update({(names[i], names[i + 1]): np.asarray(model.edge.R) for i in range(5)})
    exact = gg.MarkovNetwork(factors, states={name: [str(k) for k in range(m)] for name in names}).query()
    for i, name in enumerate(names):
        assert np.allclose(answer.weights[0, i], exact[name].probabilities, atol=1e-4)


def test_missing_pixels_are_filled_in():
    clean, noisy = picture(100, 2)
    model = gg.learn_grid(clean, noisy)
    holes = noisy.copy()
    holes[20:23, 10:13] = np.nan
    filled = model.query(holes).mean()
    assert np.abs(filled - clean)[20:23, 10:13].mean() < 40.0
    assert np.isfinite(filled).all()


def test_bad_images():
    clean, noisy = picture(20, 0)
    for call, words in (
        (lambda: gg.learn_grid(clean, noisy[:10]), "equal shapes"),
        (lambda: gg.learn_grid(clean[0], noisy[0]), "two axes"),
        (lambda: gg.learn_grid(clean, np.where(noisy > 100, np.nan, noisy)), "missing"),
        (lambda: gg.learn_grid(clean, noisy, power=0.0, cells=8), "power"),
        (lambda: gg.learn_grid(clean, noisy, power=1.0, cells=8).query(noisy, damping=1.0), "damping"),
    ):
        with pytest.raises((ModelError, OptionError), match=words):
            call()


# ---------------------------------------------------------------------------------------------- spectral HMM


def exact_moments(pi, T, O):
    """Masses of one, two and three observations; T[i, j] = p(j | i), O[i, x] = p(x | i)."""
    first = pi @ O
    pairs = np.einsum("i,ia,ij,jb->ba", pi, O, T, O)
    triples = np.einsum("i,ia,ij,jx,jk,kb->xba", pi, O, T, O, T, O)
    return first, pairs, triples


@pytest.mark.parametrize("seed", range(4))
def test_delta_features_and_exact_moments_are_the_forward_algorithm(seed):
    rng = RNG(seed)
    states, symbols = 3, 6
    pi = rng.dirichlet(np.ones(states))
    T, O = rng.dirichlet(np.ones(states), states), rng.dirichlet(np.ones(symbols), states)
    first, pairs, triples = exact_moments(pi, T, O)
    axis = StateAxis("x", tuple("abcdef"), first)
    model = gg.embeddings.SpectralHMM.from_moments(axis, first, pairs, triples, states)
    sequence = rng.integers(0, symbols, 12)
    found = model.filter([axis.states[x] for x in sequence])
    alpha = pi
    for t in range(13):
        assert np.allclose(found[t], alpha @ O, atol=1e-11)
        if t < 12:
            alpha = alpha * O[:, sequence[t]]
            alpha = alpha / alpha.sum() @ T
    log_p = model.log_likelihood([axis.states[x] for x in sequence])
    assert log_p == pytest.approx(sum(np.log(found[t][sequence[t]]) for t in range(12)))


def test_learned_from_samples_it_comes_near_the_forward_algorithm():
    rng = RNG(0)
    T = np.array([[0.95, 0.05], [0.1, 0.9]])
    z = np.zeros(20_000, dtype=int)
    for t in range(1, len(z)):
        z[t] = rng.random() < T[z[t - 1], 1]
    means = np.array([-1.5, 1.5])
    x = means[z] + 0.7 * rng.normal(size=len(z))
    model = gg.embeddings.learn_spectral_hmm(x[:18_000], 2)
    test = x[18_000:18_400]
    alpha, errors, spread = np.array([2 / 3, 1 / 3]), [], []
    found = model.filter(test)
    mean = model.axis.moments(found)[0]
    for t, value in enumerate(test):
        errors.append(mean[t] - alpha @ means)
        spread.append(alpha @ means)
        alpha = alpha * np.exp(-0.5 * ((value - means) / 0.7) ** 2)
        alpha = alpha / alpha.sum() @ T
    assert np.sqrt(np.mean(np.square(errors))) < 0.25 * np.std(spread)
    assert model.predict(test).interval(0.9)[0] < model.predict(test).mean()
    gap = model.filter([test[0], None, 1e6, np.nan])
    assert np.isfinite(gap).all()
    symbols = gg.embeddings.learn_spectral_hmm([list("abab" * 30), list("baba" * 30)], 2)
    assert symbols.predict(list("aba")).prob("b") > 0.95


def test_bad_sequences():
    for call, words in (
        (lambda: gg.embeddings.learn_spectral_hmm([1.0, 2.0], 1), "three steps"),
        (lambda: gg.embeddings.learn_spectral_hmm(list("ab" * 20), 3), "n_states"),
        (lambda: gg.embeddings.learn_spectral_hmm(np.zeros((4, 4)), 1), "one observation"),
        (lambda: gg.embeddings.learn_spectral_hmm(np.arange(50.0), 1, domain="line"), "domain"),
    ):
        with pytest.raises((ModelError, OptionError), match=words):
            call()
