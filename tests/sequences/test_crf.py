"""Linear-chain conditional random fields: answers against all labelings, and everything that a user may hand in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._numerics.compiling import tier
from gramgraph.sequences.crf.decoding import Chain, Rules
from gramgraph.sequences.crf.encoding import FeatureTable
from tests.sequences.crf_cases import LABELS, brute, choose_way, drawn, random_chain, tokens_of


@pytest.fixture(params=["products", "loop"])
def way(request, monkeypatch):
    choose_way(request.param, monkeypatch)


@pytest.mark.parametrize(
    ("K", "scale", "steps"),
    [(1, 1.0, 1.0), (2, 1.0, 1.0), (3, 3.0, 1.0), (9, 1.0, 1.0), (3, 400.0, 1.0), (3, 90.0, 400.0), (3, 250.0, 700.0)],
)
@pytest.mark.usefixtures("way")
def test_answers_equal_those_of_all_labelings(K, scale, steps):
    rng = np.random.default_rng(K)
    chain = random_chain(rng, K, steps)
    lengths = [3, 1, 0, 2, 4 if K < 9 else 2]
    scores = scale * rng.normal(size=(sum(lengths), K))
    free = np.empty((0, K), dtype=bool)
    labels, best = chain.viterbi(tokens_of(scores, lengths), free)
    marginals, log_z = chain.marginals(tokens_of(scores, lengths), free)
    k_best = chain.n_best(tokens_of(scores, lengths), free, 5)
    lo = 0
    for s, T in enumerate(lengths):
        rows = slice(lo, lo + T)
        lo += T
        if T == 0:
            assert log_z[s] == 0.0
            continue
        wanted = brute(scores[rows], chain.weights.transitions, np.zeros(K))
        assert log_z[s] == pytest.approx(wanted[0], rel=1e-12, abs=1e-10)
        np.testing.assert_allclose(marginals[rows], wanted[1], atol=1e-10)
        assert tuple(labels[rows]) == wanted[2][0]
        assert best[s] == pytest.approx(wanted[3][0], rel=1e-12)
        paths, values = k_best[s]
        n = min(5, K**T)
        assert [tuple(path) for path in paths] == wanted[2][:n]
        np.testing.assert_allclose(values, wanted[3][:n], rtol=1e-12)


@pytest.mark.usefixtures("way")
def test_constraints_leave_out_labelings():
    rng = np.random.default_rng(7)
    K, T = 3, 4
    chain = random_chain(rng, K)
    rules = Rules(np.array([True, False, True]), np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]], dtype=bool))
    chain = Chain(chain.weights, rules)
    scores = rng.normal(size=(T, K))
    allowed = np.ones((T, K), dtype=bool)
    allowed[2] = [False, True, True]
    A = np.where(rules.steps, chain.weights.transitions, -np.inf)
    start = np.where(rules.start, 0.0, -np.inf)
    wanted = brute(np.where(allowed, scores, -np.inf), A, start)
    marginals, log_z = chain.marginals(tokens_of(scores, [T]), allowed)
    np.testing.assert_allclose(marginals, wanted[1], atol=1e-12)
    assert log_z[0] == pytest.approx(wanted[0])
    assert tuple(chain.viterbi(tokens_of(scores, [T]), allowed)[0]) == wanted[2][0]
    paths, values = chain.n_best(tokens_of(scores, [T]), allowed, 100)[0]
    possible = int(np.isfinite(wanted[3]).sum())
    assert [tuple(path) for path in paths] == wanted[2][:possible]
    assert len(values) == possible


def test_network_gives_the_same_answers(rng):
    X, y = drawn(rng, S=30)
    crf = gg.LinearChainCRF(c2=0.1, constraints="BIO").fit(X, y)
    x = max(X, key=len)
    net = crf.to_network(x)
    answer = net.query()
    proba = crf.predict_proba([x])[0]
    for t in range(len(x)):
        np.testing.assert_allclose(answer[f"y{t}"].probabilities, proba[t], atol=1e-10)
    best = net.map_query()
    assert [best.assignment[f"y{t}"] for t in range(len(x))] == crf.predict_single(x)
    (path, p), *_ = crf.predict_nbest([x], 3)[0]
    assert path == crf.predict_single(x)
    assert np.log(p) == pytest.approx(crf.log_likelihood([x], [path])[0], abs=1e-10)


def test_bio_constraints_hold(rng):
    X, y = drawn(rng, S=30)
    crf = gg.LinearChainCRF(constraints="BIO").fit(X, y)
    found = crf.predict(X)
    free = gg.LinearChainCRF().fit(X, y).predict(X)
    bad = [(a, b) for labels in free for a, b in zip(["O", *labels], labels, strict=False) if (a, b) == ("O", "I-NP")]
    assert bad  # without them such labelings do occur
    assert not any(b == "I-NP" and a == "O" for labels in found for a, b in zip(["O", *labels], labels, strict=False))
    assert (crf.predict_proba([x for x in X if x])[0][0][1]) == 0.0
    pairs = gg.LinearChainCRF(constraints=[(None, "I-NP"), ("O", "I-NP")]).fit(X, y)
    assert pairs.predict(X) == found


def test_allowed_labels(rng):
    X, y = drawn(rng, S=30)
    crf = gg.LinearChainCRF().fit(X, y)
    x = max(X, key=len)
    limits = [["O"] if t == 1 else None for t in range(len(x))]
    assert crf.predict_single(x, allowed=limits)[1] == "O"
    assert crf.predict_proba([x], allowed=[limits])[0][1].tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(gg.StateError, match="'I-PN' is not a state of the labels.*Did you mean 'I-NP'"):
        crf.predict_single(x, allowed=[["I-PN"]] * len(x))
    with pytest.raises(gg.ModelError, match="no labeling of sequence 0 keeps the constraints"):
        crf.predict_single(x, allowed=[[]] * len(x))


def test_perceptron_learns_and_is_repeatable(rng):
    X, y = drawn(rng, S=60, longest=8)
    y = [[LABELS[int(token["w"][1:]) % 3] for token in x] for x in X]
    one = gg.LinearChainCRF("ap", random_state=3).fit(X, y)
    assert one.score(X, y) == 1.0
    again = gg.LinearChainCRF("ap", random_state=3).fit(X, y)
    assert one.state_features_ == again.state_features_
    assert one.converged_


def test_lbfgs_beats_the_perceptron_in_likelihood(rng):
    X, y = drawn(rng, S=60)
    smooth, ap = gg.LinearChainCRF(c2=1e-3).fit(X, y), gg.LinearChainCRF("ap", random_state=0).fit(X, y)
    assert smooth.log_likelihood(X, y).sum() > ap.log_likelihood(X, y).sum()


# --- what users hand in -------------------------------------------------------------------------------------------


def test_empty_short_and_unknown():
    X = [[], [{"a": "x"}], [{"a": "y"}, {"a": "x"}]]
    crf = gg.LinearChainCRF().fit(X, [[], ["p"], ["q", "p"]])
    assert crf.predict([[], [{"a": "never seen", "b": "nor this"}], [{}]]) == [
        [],
        *crf.predict([[{}]]),
        *crf.predict([[{}]]),
    ]
    assert crf.predict([]) == []
    assert [rows.shape for rows in crf.predict_proba([[], [{"a": "x"}]])] == [(0, 2), (1, 2)]
    assert crf.log_likelihood([[{"a": "x"}]], [["never seen"]])[0] == -np.inf
    assert crf.score([[{"a": "x"}]], [["never seen"]]) == 0.0
    assert crf.predict_nbest([[]], 2) == [[([], 1.0)]]


def test_one_label_and_whole_numbers_as_labels():
    assert gg.LinearChainCRF().fit([[["a"], ["b"]]], [["only", "only"]]).predict([[["c"]]]) == [["only"]]
    crf = gg.LinearChainCRF(c2=0.01).fit([[["a"], ["b"]]], [np.array([1, 2])])
    assert crf.classes_.tolist() == [1, 2]
    assert crf.predict([[["a"], ["b"]]]) == [[1, 2]]


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ({"a": float("nan")}, "sequence 1, position 1: feature 'a' is nan"),
        ({"a": None}, "feature 'a' is None"),
        ({"a": float("inf")}, "feature 'a' is inf"),
        ({3: "x"}, "names of features must be strings; got 3"),
        (3.5, "a token is a dict of features or a list of strings; got float"),
        (["x", 3], "must hold strings; got 3|got list"),
    ],
)
def test_features_that_are_none_are_refused_with_their_place(token, text):
    X = [[{"a": "x"}], [{"a": "x"}, token]]
    y = [["p"], ["p", "q"]]
    with pytest.raises(gg.ModelError, match=text):
        gg.LinearChainCRF().fit(X, y)
    crf = gg.LinearChainCRF().fit([[{"a": 1.0}]], [["p"]])
    with pytest.raises(gg.ModelError, match=text):
        crf.predict(X)


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        ([[["a"]]], [["p"], ["q"]], "X has 1 sequences, but y has 2"),
        ([[["a"]]], [["p", "q"]], "sequence 0 has 1 positions, but y\\[0\\] has 2 labels"),
        ([[["a"]]], ["p"], "y\\[0\\] is 'p'; expected a list"),
        ([[["a"], ["b"]]], [["p", 1]], "labels must all be strings"),
        ([], [], "X holds no position"),
        ([{"a": 1}], [["p"]], "sequence 0 of X is a dict"),
    ],
)
def test_data_that_do_not_fit(X, y, text):
    with pytest.raises(gg.ModelError, match=text):
        gg.LinearChainCRF().fit(X, y)


def test_parameters_are_checked():
    for options, text in [
        ({"algorithm": "lbfsg"}, "Did you mean 'lbfgs'"),
        ({"c2": -1.0}, "c2 must be a finite number"),
        ({"max_iterations": 0}, "max_iterations must be a whole number"),
        ({"constraints": "BOI"}, "constraints must be None"),
        ({"constraints": [("p", "zz")]}, "'zz' is not a state of the labels"),
    ]:
        with pytest.raises(gg.GramGraphError, match=text):
            gg.LinearChainCRF(**options).fit([[["a"]]], [["p"]])


def test_ways_to_write_the_same_features_give_the_same_model():
    """Text values, nested values, lists of strings and plain names make the same attributes as CRFsuite's."""
    ways = [
        [{"w": "x", "n": 2.0}, {"w": "y", "n": 0}],
        [{"w": ["x"], "n": 2}, {"w": {"y": True}, "n": False}],
        [{"w:x": True, "n": np.float64(2.0)}, {"w": {"y"}, "n": np.False_}],
    ]
    y = [["p", "q"]]
    models = [gg.LinearChainCRF(c2=0.1).fit([x], y) for x in ways]
    for crf in models:
        assert sorted(crf.attributes_) == ["n", "w:x", "w:y"]
        for key, weight in crf.state_features_.items():
            assert weight == pytest.approx(models[0].state_features_[key], abs=1e-12)
        for x in ways:
            np.testing.assert_allclose(crf.predict_proba([x])[0], models[0].predict_proba([ways[0]])[0], atol=1e-12)
    strings = gg.LinearChainCRF().fit([[["w:x"], ["w:y"]]], y)
    np.testing.assert_array_equal(
        strings.predict_proba([[{"w": "x"}, {"w:y": 1}]])[0], strings.predict_proba([[["w:x"], ("w:y",)]])[0]
    )


def test_a_value_of_zero_makes_a_feature_possible():
    # as in CRFsuite: 'up' stands with both labels, though it is true with one of them only
    X = [[{"up": True}, {"up": False}]]
    crf = gg.LinearChainCRF(c2=0.1).fit(X, [["p", "q"]])
    assert set(crf.state_features_) == {("up", "p"), ("up", "q")}


def test_min_freq_and_all_possible(rng):
    X = [[{"w": "a"}, {"w": "b"}], [{"w": "a"}, {"w": "c"}]]
    y = [["p", "q"], ["p", "p"]]
    assert {a for a, _ in gg.LinearChainCRF(min_freq=2).fit(X, y).state_features_} == {"w:a"}
    every = gg.LinearChainCRF(all_possible_states=True, all_possible_transitions=True).fit(X, y)
    assert len(every.state_features_) == 6
    assert set(every.transition_features_) == {("p", "p"), ("p", "q"), ("q", "p"), ("q", "q")}
    assert set(gg.LinearChainCRF().fit(X, y).transition_features_) == {("p", "p"), ("p", "q")}


def test_frames_of_weights(rng):
    X, y = drawn(rng, S=30)
    crf = gg.LinearChainCRF().fit(X, y)
    top = crf.top_state_features(4)
    assert list(top.columns) == ["attribute", "label", "weight"]
    assert top.weight.is_monotonic_decreasing
    assert top.weight[0] == max(crf.state_features_.values())
    assert (crf.top_state_features(3, label="O").label == "O").all()
    assert crf.top_transitions(1, largest=False).weight[0] == min(crf.transition_features_.values())


def test_file_keeps_every_bit(rng, tmp_path):
    X, y = drawn(rng, S=30, values=True)
    X[0] = [{"ключ": "ñ:x", "w": "w1"} for _ in X[0]]
    crf = gg.LinearChainCRF(c1=0.1, c2=0.1, constraints=[(None, "I-NP")], random_state=0).fit(X, y)
    crf.save(tmp_path / "model.npz")
    again = gg.LinearChainCRF.load(tmp_path / "model.npz")
    assert again.get_params() == crf.get_params()
    assert again.state_features_ == crf.state_features_
    assert again.predict(X) == crf.predict(X)
    for a, b in zip(again.predict_proba(X), crf.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_broken_files_are_refused(rng, tmp_path):
    X, y = drawn(rng)
    path = tmp_path / "model.npz"
    gg.LinearChainCRF().fit(X, y).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(gg.ParseError, match=r"model\.npz: the file should hold .* it was cut off"):
        gg.LinearChainCRF.load(path)
    np.savez(path, head=np.frombuffer(b"[]", np.uint8))
    with pytest.raises(gg.ParseError):
        gg.LinearChainCRF.load(path)


def test_clone_and_pickle(rng):
    import pickle

    from sklearn.base import clone

    X, y = drawn(rng)
    crf = gg.LinearChainCRF(c1=0.2, max_iterations=5).fit(X, y)
    assert clone(crf).get_params() == crf.get_params()
    assert pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)


def test_callback_ends_learning(rng):
    X, y = drawn(rng)
    seen = []
    crf = gg.LinearChainCRF().fit(X, y, callback=lambda i, value: seen.append(value) or i == 3)
    assert crf.n_iter_ == len(seen) == 3
    assert (np.diff(crf.history_) < 0).all()


@given(st.integers(0, 2**31))
def test_marginals_sum_to_one_and_do_not_depend_on_the_company(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 20))
    chain = random_chain(rng, K, 2.0)
    lengths = rng.integers(0, 7, 4)
    scores = 3.0 * rng.normal(size=(int(lengths.sum()), K))
    free = np.empty((0, K), dtype=bool)
    found, log_z = chain.marginals(tokens_of(scores, lengths), free)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    ends = np.cumsum(lengths)
    alone = chain.marginals(tokens_of(scores[ends[2] : ends[3]], lengths[3:]), free)
    np.testing.assert_allclose(found[ends[2] : ends[3]], alone[0], rtol=1e-12, atol=1e-14)  # the sums of products
    assert log_z[3] == pytest.approx(alone[1][0], rel=1e-13, abs=1e-13)


def test_compiled_lookups_equal_those_in_python(rng, monkeypatch):
    from gramgraph._numerics.crf import feature_dicts

    if not feature_dicts.usable():
        pytest.skip("this interpreter's dicts are read by Python code only")
    X, _ = drawn(rng, S=40, values=True)
    table = FeatureTable()
    table.encode(X[:20], grow=True)
    odd = [
        [{"w": "w1", "bias": 0.0, "x": -2.5}, {"w": "ñandú", "even": True}, {}],
        [{"new name": "w1", "w": "w1"}],
        [{"x": 3}],
    ]
    names = table.renumbered(np.arange(table.size), table.size)
    with tier("compiled"):
        quick = names.encode([*X, *odd])
    assert names.quick is not None
    monkeypatch.setattr(feature_dicts, "usable", lambda: False)
    other = table.renumbered(np.arange(table.size), table.size)
    plain = other.encode([*X, *odd])
    assert other.quick is None
    np.testing.assert_array_equal(quick.ptr, plain.ptr)
    np.testing.assert_array_equal(quick.data[quick.ids >= 0], plain.data[plain.ids >= 0])
    np.testing.assert_array_equal(np.maximum(quick.ids, -1), np.maximum(plain.ids, -1))
    assert (quick.ids >= 0).sum() > len(X)
