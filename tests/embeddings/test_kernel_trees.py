"""Trees of numbers, angles and categories: identities that never change, agreement with engines, and quality."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.cells.density import line_density
from gramgraph.exceptions import (
    BudgetError,
    ImpossibleEvidenceError,
    ModelError,
    OptionError,
    ParseError,
    StateError,
    VariableError,
)
from tests.portions import examples

RNG = np.random.default_rng


def mixed_frame(n: int, seed: int = 0) -> pd.DataFrame:
    """A number, a two-branched one, an angle, a positive number and a category on a tree."""
    rng = RNG(seed)
    a = rng.normal(size=n)
    b = np.where(rng.random(n) < 0.5, a, -a) + 0.3 * rng.normal(size=n)
    angle = np.angle(np.exp(1j * (2.0 * b + 0.3 * rng.normal(size=n))))
    size = np.exp(a + 0.2 * rng.normal(size=n))
    kind = np.where(b > 0.3, "hi", np.where(b > -0.5, "mid", "lo"))
    return pd.DataFrame({"a": a, "b": b, "angle": angle, "size": size, "kind": kind})


DOMAINS = {"angle": "circle", "size": "positive"}
EDGES = [("a", "b"), ("b", "angle"), ("a", "size"), ("b", "kind")]


@pytest.fixture(scope="module")
def net() -> gg.embeddings.KernelTree:
    return gg.learn_tree(mixed_frame(2000), edges=EDGES, domains=DOMAINS)


# ---------------------------------------------------------------------------------------------- identities


@st.composite
def tables(draw):
    v = draw(st.integers(2, 5))
    parent = [draw(st.integers(0, i - 1)) for i in range(1, v)]
    sizes = [draw(st.integers(1, 3)) for _ in range(v)]
    rows = draw(st.lists(st.tuples(*(st.integers(0, k - 1) for k in sizes)), min_size=5, max_size=30))
    return parent, np.array(rows)


def brute_force(parent, rows, sizes):
    """The joint of the tree with the empirical pair tables."""
    v = rows.shape[1]
    shape = tuple(sizes)
    joint = np.ones(shape)
    for index in np.ndindex(*shape):
        p = 1.0
        for i in range(v):
            at = rows[:, i] == index[i]
            if i == 0:
                p *= at.mean()
            else:
                above = rows[:, parent[i - 1]] == index[parent[i - 1]]
                p *= (at & above).sum() / max(above.sum(), 1)
        joint[index] = p
    return joint


@settings(max_examples=examples(25), deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_delta_kernel_is_the_table_network(case, random):
    parent, rows = case
    v = rows.shape[1]
    names = [f"v{i}" for i in range(v)]
    frame = pd.DataFrame(rows.astype(str), columns=names)
    edges = [(names[p], names[i + 1]) for i, p in enumerate(parent)]
    tree = gg.learn_tree(frame, "table", edges=edges, floor=0.0)
    labels = [tree.states(name) for name in names]
    codes = np.stack([frame[n].map({s: k for k, s in enumerate(ls)}) for n, ls in zip(names, labels, strict=True)], 1)
    joint = brute_force(parent, codes, [len(ls) for ls in labels])
    seen = random.sample(range(v), random.randint(0, v - 1))
    row = random.randrange(len(rows))
    index = tuple(codes[row, i] if i in seen else slice(None) for i in range(v))
    part = joint[index]
    answer = tree.query(None, {names[i]: labels[i][codes[row, i]] for i in seen})
    assert answer.log_evidence == pytest.approx(np.log(part.sum()), abs=1e-10)
    free = [i for i in range(v) if i not in seen]
    for axis, i in enumerate(free):
        marginal = part.sum(axis=tuple(k for k in range(len(free)) if k != axis)) / part.sum()
        assert np.allclose(answer[names[i]].probabilities, marginal, atol=1e-10)


def test_no_evidence_is_the_marginal(net):
    answer = net.query()
    assert answer.log_evidence == pytest.approx(0.0, abs=1e-6)
    for name in net.variables:
        axis = net.axis(name)
        found = answer[name].probabilities if name == "kind" else answer[name].weights[0]
        assert np.allclose(found, axis.q, atol=1e-7)  # single precision
    shares = mixed_frame(2000)["kind"].value_counts(normalize=True)
    exact = gg.learn_tree(mixed_frame(2000)[["kind"]]).query()["kind"].to_dict()
    assert exact == pytest.approx(shares.to_dict(), abs=1e-12)


def test_tables_are_proper(net):
    for edge in net.edge_list:
        p, q = net.axis(edge.x).q, net.axis(edge.y).q
        R = np.asarray(edge.R, dtype=np.float64)
        assert (R > 0.0).all()
        assert np.abs(R @ q - 1.0).max() < 1e-6
        assert np.abs(p @ R - 1.0).max() < 1e-6
        assert sum(edge.parts.values()) == pytest.approx(1.0)
        assert edge.gain > 0.1


def test_conditional_densities_are_normalized(net):
    x = np.linspace(-12.0, 12.0, 60001)
    for evidence in ({"a": 0.37}, {"angle": 3.1, "size": 0.2}, {"kind": "mid"}):
        belief = net.query("b", evidence)["b"]
        assert np.trapezoid(belief.density(x), x) == pytest.approx(1.0, abs=2e-3)
        assert belief.cdf(belief.quantile(0.3)) == pytest.approx(0.3, abs=1e-9)
        assert belief.expect(lambda t: t) == pytest.approx(belief.mean(), abs=1e-5)
        assert belief.expect(lambda t: t**2) - belief.mean() ** 2 == pytest.approx(belief.var(), abs=1e-4)
    turn = np.linspace(-np.pi, np.pi, 20001)
    assert np.trapezoid(net.query("angle", {"a": 1.0})["angle"].density(turn), turn) == pytest.approx(1.0, abs=1e-3)


def test_order_and_names_do_not_matter(net):
    frame = mixed_frame(2000)
    shuffled = frame.iloc[RNG(1).permutation(len(frame))][["kind", "size", "b", "angle", "a"]]
    renamed = shuffled.rename(columns={"a": "z", "b": "y"})
    edges = [("kind", "y"), ("angle", "y"), ("z", "size"), ("y", "z")]
    other = gg.learn_tree(renamed, edges=edges, domains=DOMAINS)
    one, two = net.query("b", {"size": 1.4})["b"], other.query("y", {"size": 1.4})["y"]
    assert one.mean() == pytest.approx(two.mean(), abs=1e-4)
    assert one.sd() == pytest.approx(two.sd(), abs=1e-4)
    rows = frame.iloc[:50]
    there = other.log_likelihood(rows.rename(columns={"a": "z", "b": "y"}))
    assert np.allclose(net.log_likelihood(rows), there, atol=5e-3)


def gram_messages(frame, edges, target, evidence, lam=1e-9):
    """The literal form: messages are weights on the samples, (K_s + λN)⁻¹ of products; delta kernels. O(N³)."""
    n = len(frame)
    K = {c: (frame[c].to_numpy()[:, None] == frame[c].to_numpy()).astype(float) for c in frame}
    inverse = {c: np.linalg.inv(K[c] + lam * n * np.eye(n)) for c in frame}
    near = {c: [b if a == c else a for a, b in edges if c in (a, b)] for c in frame}

    def message(t, s):
        if t in evidence:
            column = (frame[t].to_numpy() == evidence[t]).astype(float)
            return n * inverse[s] @ (inverse[t] @ column)
        product = np.ones(n)
        for u in near[t]:
            if u != s:
                product = product * (K[t] @ message(u, t))
        return inverse[s] @ product

    w = np.ones(n) / n
    for t in near[target]:
        w = w * (K[target] @ message(t, target))
    total = pd.Series(w).groupby(frame[target].to_numpy()).sum()
    return (total / total.sum()).to_dict()


def test_literal_gram_messages_are_the_reference():
    rng = RNG(3)
    n = 120
    a = rng.integers(0, 3, n)
    b = (a + rng.integers(0, 2, n)) % 3
    c = (b * 2 + rng.integers(0, 2, n)) % 4
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": (a + rng.integers(0, 2, n)) % 2}).astype(str)
    edges = [("a", "b"), ("b", "c"), ("a", "d")]
    tree = gg.learn_tree(frame, "table", edges=edges, floor=0.0)
    for evidence in ({"c": "1"}, {"d": "0", "c": "3"}, {"a": "2"}):
        expected = gram_messages(frame, edges, "b", evidence)
        assert tree.query("b", evidence)["b"].to_dict() == pytest.approx(expected, abs=1e-6)


def test_gaussian_edges_are_the_linear_gaussian_network():
    rng = RNG(0)
    x = rng.normal(1.0, 2.0, size=4000)
    y = 0.8 * x + rng.normal(size=4000)
    z = -0.5 * y + 0.5 * rng.normal(size=4000)
    frame = pd.DataFrame({"x": x, "y": y, "z": z})
    tree = gg.learn_tree(frame, "gaussian", edges=[("x", "y"), ("y", "z")])
    exact = gg.BayesianNetwork("x{real} -> y{real} -> z{real}").fit(frame)
    for evidence in ({"z": -1.5}, {"x": 4.0}, {"x": -2.0, "z": 1.0}):
        ours, theirs = tree.query("y", evidence)["y"], exact.query("y", evidence)["y"]
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.02)
        assert ours.sd() == pytest.approx(theirs.sd(), rel=0.02)
        assert tree.log_evidence(evidence) == pytest.approx(exact.log_evidence(evidence), abs=0.03)


# ---------------------------------------------------------------------------------------------- agreement


def test_cells_are_a_discrete_network_for_every_engine(net):
    cells = net.to_markov_network()
    at = {"kind": "hi"}
    belief = net.query("size", at)["size"].weights[0]
    for engine in ("junction_tree", "bp"):
        assert np.allclose(cells.query("size", at, engine=engine)["size"].probabilities, belief, atol=1e-6)
    assert cells.log_evidence(at) == pytest.approx(net.log_evidence(at), abs=1e-5)


def test_batches_with_any_pattern_are_single_cases(net):
    rng = RNG(2)
    cases = mixed_frame(40, seed=5).astype(object)
    cases = cases.mask(rng.random(cases.shape) < 0.6)
    answer = net.query(None, cases)
    for i in range(0, 40, 7):
        known = {k: v for k, v in cases.iloc[i].items() if not pd.isna(v)}
        one = net.query(None, known)
        assert one.log_evidence == pytest.approx(answer.log_evidence[i], abs=1e-4)
        for name in one:
            many = answer[name].probabilities[i] if name == "kind" else answer[name].weights[i]
            single = one[name].probabilities if name == "kind" else one[name].weights[0]
            assert np.allclose(many, single, atol=1e-5)
    listed = net.query("b", [dict(row.dropna()) for _, row in cases.iterrows()])
    assert np.allclose(listed["b"].mean(), answer["b"].mean(), atol=1e-6)


@pytest.mark.parametrize("engine", ["junction_tree", "bp", "elimination"])
def test_discrete_engines_answer_off_anchor_evidence(net, engine):
    for evidence in ({"a": 0.4321}, {"size": 2.2, "angle": -0.4}):
        ours, other = net.query("b", evidence)["b"], net.query("b", evidence, engine=engine)["b"]
        assert ours.mean() == pytest.approx(other.mean(), abs=2e-3)
        assert ours.sd() == pytest.approx(other.sd(), abs=2e-3)
    with pytest.raises(OptionError, match="engine="):
        net.query("b", damping=0.5)


def test_what_was_observed_can_be_read(net):
    answer = net.query("a", {"b": 0.7, "kind": "hi"})
    assert list(answer) == ["a"]
    assert answer["b"].mean() == 0.7
    assert answer["b"].var() == 0.0
    assert answer["b"].interval(0.9) == (0.7, 0.7)
    assert answer["kind"].prob("hi") == 1.0
    assert answer["kind"].diagnostics["support"]["b"] == 1.0
    with pytest.raises(VariableError, match="was not asked for"):
        answer["size"]


def test_frames_of_other_kinds():
    polars = pytest.importorskip("polars")
    frame = mixed_frame(400)
    rows = mixed_frame(20, seed=1)
    usual = gg.learn_tree(frame, domains=DOMAINS).log_likelihood(rows)
    same = gg.learn_tree(polars.from_pandas(frame), domains=DOMAINS).log_likelihood(rows)
    assert np.allclose(same, usual, rtol=1e-12, atol=1e-12)  # loops may have been compiled in between: to rounding
    nullable = frame.convert_dtypes()
    nullable.loc[3, ["a", "kind"]] = pd.NA
    tree = gg.learn_tree(nullable.astype({"kind": "category"}), domains=DOMAINS)
    assert tree.domains == gg.learn_tree(frame, domains=DOMAINS).domains
    assert np.allclose(tree.log_likelihood(rows), usual, atol=0.5)
    cases = rows.convert_dtypes().drop(columns="b")
    cases.loc[0, "a"] = pd.NA
    assert np.isfinite(tree.query("b", cases)["b"].mean()).all()


def test_log_likelihood_of_full_rows_is_the_chain_of_conditionals(net):
    rows = mixed_frame(20, seed=8)
    direct = net.log_likelihood(rows)
    chained = net.log_evidence(rows[["a"]])
    for k in range(1, 5):
        names = list(rows.columns[: k + 1])
        chained = chained + net.log_evidence(rows[names]) - net.log_evidence(rows[names[:-1]])
    assert np.allclose(direct, chained, atol=1e-4)
    assert net.log_likelihood(rows[["a", "kind"]]).shape == (20,)


def test_draws_follow_the_beliefs(net):
    evidence = {"kind": "hi", "size": 2.0}
    draws = net.sample(20_000, evidence, random_state=0)
    assert set(draws["kind"]) == {"hi"}
    assert list(draws.columns) == list(net.variables)
    answer = net.query(None, evidence)
    for name in ("a", "b"):
        se = answer[name].sd() / np.sqrt(20_000)
        assert abs(draws[name].mean() - answer[name].mean()) < 5 * se
    turn = np.angle(np.exp(1j * draws["angle"]).mean())
    assert turn == pytest.approx(answer["angle"].mean_direction(), abs=0.03)
    assert np.corrcoef(np.abs(draws["a"]), draws["b"])[0, 1] > 0.1  # joint, not product
    again = net.sample(20_000, evidence, random_state=0)
    assert draws.equals(again)


def test_best_assignment_beats_draws_and_neighbors(net):
    evidence = {"a": 1.2}
    best = net.map_query(evidence)
    assert set(best.assignment) == {"b", "angle", "size", "kind"}
    full = {**evidence, **best.assignment}
    assert net.log_likelihood([full])[0] == pytest.approx(best.log_prob)
    draws = net.sample(3000, evidence, random_state=1)
    assert best.log_prob > net.log_likelihood(draws).max() - 0.05
    frame = net.map_query(pd.DataFrame({"a": [1.2, -0.4]}))
    assert frame["log_prob"][0] == pytest.approx(best.log_prob)
    assert frame["b"][0] == pytest.approx(best.assignment["b"])


def test_files_keep_every_bit(net, tmp_path):
    net.save(tmp_path / "tree.npz")
    gg.write(net, tmp_path / "tree.json")
    gg.write(net, tmp_path / "tree.json.gz")
    rows = mixed_frame(30, seed=4)
    expected = net.log_likelihood(rows)
    for read in (
        gg.embeddings.KernelTree.load(tmp_path / "tree.npz"),
        gg.read(tmp_path / "tree.json"),
        gg.read(tmp_path / "tree.json.gz"),
    ):
        assert np.array_equal(read.log_likelihood(rows), expected)
        assert read.edges == net.edges
        assert read.domains == net.domains
        assert read.edge("a", "b").parts == dict(net.edge("a", "b").parts)
    data = (tmp_path / "tree.npz").read_bytes()
    for broken in (b"", b"PK\x03\x04", data[: len(data) // 2], data.replace(b"edges", b"egdes")):
        (tmp_path / "broken.npz").write_bytes(broken)
        with pytest.raises(ParseError):
            gg.embeddings.KernelTree.load(tmp_path / "broken.npz")
    text = (tmp_path / "tree.json").read_text()
    for old, new in (('"kind": "line"', '"kind": "wavy"'), ('"<f8"', '"|O"'), ('"x": "a"', '"x": "nobody"')):
        (tmp_path / "broken.json").write_text(text.replace(old, new))
        with pytest.raises(ParseError):
            gg.read(tmp_path / "broken.json")


# ---------------------------------------------------------------------------------------------- never NaN


def all_finite(tree, evidence=None):
    answer = tree.query(None, evidence)
    for name in answer:
        belief = answer[name]
        if hasattr(belief, "weights"):
            values = [belief.mean(), belief.sd(), *belief.interval(0.9), belief.mode(), belief.density(belief.mean())]
            assert np.isfinite(values).all(), (name, values)
        else:
            assert np.isfinite(belief.probabilities).all()
    assert np.isfinite(answer.log_evidence)


@pytest.mark.parametrize("edge", ["auto", "kernel", "copula", "gaussian", "table"])
def test_degenerate_columns_give_no_nan(edge):
    frame = mixed_frame(300)
    frame["constant"], frame["zero"], frame["one"] = 3.0, 0.0, "only"
    frame["spike"] = np.where(RNG(0).random(300) < 0.9, 0.0, frame["a"])
    frame["copy"] = frame["a"]
    frame["huge"] = frame["a"] * 1e12
    frame = pd.concat([frame, *[frame.iloc[:1]] * 200, frame], ignore_index=True)
    tree = gg.learn_tree(frame, edge, domains=DOMAINS)
    assert np.isfinite(tree.log_likelihood(frame)).all()
    for evidence in (None, {"constant": 3.0}, {"constant": 5.0, "zero": -1.0}, {"copy": 0.1, "spike": 0.0}):
        all_finite(tree, evidence)
    assert tree.query("constant")["constant"].mean() == pytest.approx(3.0, abs=0.01)


@pytest.mark.parametrize("n", [2, 3, 5, 20])
@pytest.mark.parametrize("edge", ["auto", "copula", "table"])
def test_few_rows_give_no_nan(n, edge):
    frame = mixed_frame(n)
    tree = gg.learn_tree(frame, edge, edges=EDGES, domains=DOMAINS)
    assert np.isfinite(tree.log_likelihood(mixed_frame(50, seed=3)[["a", "b", "angle", "size"]])).all()
    all_finite(tree, {"a": 0.0})


def test_evidence_far_outside_falls_back_to_the_marginal(net):
    plain = net.query("a")["a"]
    for value in (1e3, -1e6, 1e300):
        far = net.query("a", {"b": value})["a"]
        assert far.mean() == pytest.approx(plain.mean(), abs=1e-6)
        assert far.sd() == pytest.approx(plain.sd(), abs=1e-6)
        assert far.diagnostics["outside"] == ("b",)
        assert far.diagnostics["support"]["b"] < 1e-6
        assert np.isfinite(far.diagnostics["log_evidence"])
    inside = net.query("a", {"b": 1.0})["a"].diagnostics
    assert inside["outside"] == ()
    assert inside["support"]["b"] == pytest.approx(1.0)
    assert 10 < inside["effective_sample_size"] < 2000
    many = net.query("a", pd.DataFrame({"b": [1.0, 1e6, np.nan]}))["a"]
    assert many.diagnostics["outside"] == [(), ("b",), ()]
    all_finite(net, {"b": 1e9, "a": -1e9, "angle": 1e5, "size": 1e-9})


def test_gaps_in_the_sample():
    frame = mixed_frame(1500)
    holes = frame.copy()
    rng = RNG(1)
    for name in holes.columns:
        holes.loc[rng.random(len(holes)) < 0.2, name] = None if name == "kind" else np.nan
    tree = gg.learn_tree(holes, edges=EDGES, domains=DOMAINS)
    full = gg.learn_tree(frame, edges=EDGES, domains=DOMAINS)
    test = mixed_frame(800, seed=9)
    assert tree.log_likelihood(test).mean() == pytest.approx(full.log_likelihood(test).mean(), abs=0.15)


def test_errors_say_what_helps(net):
    frame = mixed_frame(50)
    cases = [
        (lambda: net.query("b", {"kind": "hih"}), StateError, r"'hih' is not a state of kind.*Did you mean 'hi'"),
        (lambda: net.query("bb"), VariableError, "not a variable"),
        (lambda: net.query("b", {"a": "x"}), StateError, "a number expected"),
        (lambda: net.query("b", {"size": -1.0}), StateError, "above 0"),
        (lambda: net.query("b", {"a": np.inf}), StateError, "finite"),
        (lambda: net.query("b", {"a": [1.0, 2.0]}), StateError, "takes a number"),
        (lambda: net.query([("a", "a")]), VariableError, "each variable once"),
        (lambda: net.query(None, pd.DataFrame({"a": [0.0] * 100}), memory=1e3), BudgetError, "Try:"),
        (lambda: net.sample(-1), OptionError, "whole number"),
        (lambda: net.edge("a", "kind"), VariableError, "no edge"),
        (lambda: net.query("a")["a"].mean_direction(), VariableError, "not an angle"),
        (lambda: gg.learn_tree(frame, "kernal"), OptionError, "Did you mean 'kernel'"),
        (lambda: gg.learn_tree(frame, domains={"a": "cirle"}), OptionError, "Did you mean 'circle'"),
        (lambda: gg.learn_tree(frame, domains={"x": "circle"}), VariableError, "not a variable"),
        (lambda: gg.learn_tree(frame, edges=[("a", "b"), ("b", "a")]), ModelError, "cycle"),
        (lambda: gg.learn_tree(frame, edges=["ab"]), OptionError, "pairs"),
        (lambda: gg.learn_tree(frame, domains={"a": "positive"}), StateError, "above 0"),
        (lambda: gg.learn_tree(frame.iloc[:1]), ModelError, "rows"),
        (lambda: gg.learn_tree([1, 2]), ModelError, "data frame"),
        (lambda: gg.learn_tree(frame, validation=2.0), OptionError, "share"),
        (lambda: gg.learn_tree(frame, cells=1), OptionError, "cells"),
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


def test_impossible_states_in_plain_tables():
    frame = pd.DataFrame({"a": list("xxyy"), "b": list("uuvv")})
    tree = gg.learn_tree(frame, "table", floor=0.0, edges=[("a", "b")])
    with pytest.raises(ImpossibleEvidenceError):
        tree.query(None, {"a": "x", "b": "v"})
    assert tree.query("a", [{"b": "u"}]).log_evidence[0] == pytest.approx(np.log(0.5))


# ---------------------------------------------------------------------------------------------- quality


def test_circle_has_no_seam():
    rng = RNG(0)
    x = np.angle(np.exp(1j * (np.pi + 0.5 * rng.normal(size=3000))))
    y = np.angle(np.exp(1j * (x + 0.2 * rng.normal(size=3000))))
    tree = gg.learn_tree({"x": x, "y": y}, "kernel", domains={"x": "circle", "y": "circle"})
    belief = tree.query("y", {"x": np.pi})["y"]
    assert abs(belief.mean_direction()) == pytest.approx(np.pi, abs=0.05)
    assert belief.sd() == pytest.approx(0.2, abs=0.04)
    low, high = belief.interval(0.9)
    assert high - low == pytest.approx(2 * 1.645 * 0.2, rel=0.15)
    assert np.mod(0.5 * (low + high), 2 * np.pi) == pytest.approx(np.pi, abs=0.05)
    assert belief.density(np.pi) == pytest.approx(belief.density(-np.pi), rel=1e-6)
    shifted = tree.query("y", {"x": -np.pi})["y"]
    assert np.allclose(shifted.weights, belief.weights, atol=1e-6)


def test_tree_is_found_and_answers_are_calibrated():
    rng = RNG(5)
    parents, n = [-1, 0, 0, 1, 1, 2, 5], 4000
    functions = [np.sin, np.abs, np.tanh, lambda t: 0.5 * t**2, lambda t: -t]

    def draw(n):
        X = np.zeros((n, len(parents)))
        X[:, 0] = rng.normal(size=n)
        for i, p in enumerate(parents[1:], 1):
            X[:, i] = functions[i % 5](1.5 * X[:, p]) + 0.4 * rng.normal(size=n)
        return pd.DataFrame(X, columns=list("abcdefg"))

    tree = gg.learn_tree(draw(n))
    truth = {frozenset(("abcdefg"[p], "abcdefg"[i])) for i, p in enumerate(parents) if p >= 0}
    assert {frozenset(edge) for edge in tree.edges} == truth
    test = draw(800)
    cases = test.mask(rng.random(test.shape) < 0.5)
    answer = tree.query(None, cases)
    inside, levels = [], []
    for name in tree.variables:
        hidden = cases[name].isna().to_numpy()
        ends = answer[name].interval(0.9)
        x = test[name].to_numpy()
        inside.append(((ends[:, 0] <= x) & (x <= ends[:, 1]))[hidden])
        levels.append(answer[name].cdf(x)[hidden])
    inside, levels = np.concatenate(inside), np.concatenate(levels)
    assert 0.87 < inside.mean() < 0.93
    assert np.abs(np.quantile(levels, [0.25, 0.5, 0.75]) - [0.25, 0.5, 0.75]).max() < 0.04


def test_auto_is_about_the_better_of_copula_and_kernel():
    rng = RNG(0)
    x = np.exp(rng.normal(size=600))
    monotone = pd.DataFrame({"x": x, "y": np.log(x) ** 3 + x + 0.3 * rng.normal(size=600)})
    folded = pd.DataFrame({"x": x, "y": np.abs(np.log(x)) + 0.2 * rng.normal(size=600)})
    for frame in (monotone, folded):
        fit, judge = frame.iloc[:400], frame.iloc[400:]
        found = {edge: gg.learn_tree(fit, edge).log_likelihood(judge).mean() for edge in ("auto", "kernel", "copula")}
        assert found["auto"] > max(found["kernel"], found["copula"]) - 0.05
    assert found["kernel"] > found["copula"] + 0.2


def test_rows_that_choose_help_and_shares_are_seeded():
    frame = mixed_frame(600)
    more = mixed_frame(1000, seed=2)
    tree = gg.learn_tree(frame, edges=EDGES, domains=DOMAINS, validation=more)
    assert tree.rows == 600
    part = gg.learn_tree(frame, edges=EDGES, domains=DOMAINS, validation=0.25, random_state=1)
    assert part.rows == 450
    again = gg.learn_tree(frame, edges=EDGES, domains=DOMAINS, validation=0.25, random_state=1)
    assert np.array_equal(part.log_likelihood(more), again.log_likelihood(more))
    threads = gg.learn_tree(frame, edges=EDGES, domains=DOMAINS, validation=0.25, random_state=1, n_jobs=2)
    assert np.array_equal(part.log_likelihood(more), threads.log_likelihood(more))


@pytest.mark.parametrize("draw", ["normal", "exponential", "bimodal", "cauchy"])
def test_marginal_densities_are_near_the_truth(draw):
    from scipy import stats

    rng = RNG(0)
    x, p = {
        "normal": (rng.normal(size=4000), stats.norm.pdf),
        "exponential": (rng.exponential(size=4000), None),
        "bimodal": (
            np.where(rng.random(4000) < 0.3, -4.0, 2.0) + 0.5 * rng.normal(size=4000),
            lambda t: 0.3 * stats.norm.pdf(t, -4, 0.5) + 0.7 * stats.norm.pdf(t, 2, 0.5),
        ),
        "cauchy": (rng.standard_cauchy(size=4000), stats.cauchy.pdf),
    }[draw]
    found = line_density(x, "positive" if draw == "exponential" else "real")
    fresh = {
        "normal": lambda: rng.normal(size=4000),
        "exponential": lambda: rng.exponential(size=4000),
        "bimodal": lambda: np.where(rng.random(4000) < 0.3, -4.0, 2.0) + 0.5 * rng.normal(size=4000),
        "cauchy": lambda: rng.standard_cauchy(size=4000),
    }[draw]()
    truth = stats.expon.logpdf(fresh) if p is None else np.log(p(fresh))
    assert (truth - found.log_density(fresh)).mean() < 0.02
    assert found.masses.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("which", "chis", "n", "least"), [("met", 3, 2000, -1.97), ("lys", 4, 2000, -1.96)])
def test_torsions(shared_data, which, chis, n, least):
    file = shared_data / "kernel" / "circular" / f"top8000_{which}.csv.gz"
    if not file.exists():
        pytest.skip(f"no torsion table {file.name}")
    names = ["phi", "psi", *(f"chi{i + 1}" for i in range(chis))]
    frame = pd.read_csv(file).dropna(subset=names)
    angles = pd.DataFrame(np.deg2rad(frame[names]).to_numpy(), columns=names)
    proteins = frame["pdb"].to_numpy().astype(str)
    rng = RNG(0)
    ids = np.unique(proteins)
    rng.shuffle(ids)
    inside = np.isin(proteins, ids[: int(0.7 * len(ids))])
    fit = angles[inside].iloc[rng.permutation(int(inside.sum()))]
    judge = angles[~inside].iloc[rng.permutation(int((~inside).sum()))[:3000]]
    edges = [("psi", "phi"), ("phi", "chi1"), *itertools.pairwise(names[2:])]
    tree = gg.learn_tree(fit.iloc[:n], edge="kernel", edges=edges, domains=dict.fromkeys(names, "circle"))
    assert tree.log_likelihood(judge).mean() >= least
