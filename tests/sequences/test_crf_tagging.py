"""Tagging with linear chains: sentence by sentence, compiled or not, from everything that can be gone through once."""

from __future__ import annotations

import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from gramgraph._numerics.compiling import tier
from gramgraph.exceptions import ModelError
from gramgraph.sequences import LinearChainCRF
from gramgraph.sequences.crf.encoding import FeatureTable
from tests.sequences.crf_cases import drawn


def words(X):
    return [[[f"{name}:{value}" for name, value in sorted(token.items())] for token in x] for x in X]


def counted(X):
    """Values of every kind that compiled code knows: texts, truth values, numbers with and without a fraction."""
    return [
        [
            {**token, "place": t, "last": t == len(x) - 1, "back": t - len(x), "half": 0.5 * t}
            for t, token in enumerate(x)
        ]
        for x in X
    ]


@pytest.mark.parametrize("written", [lambda X: X, counted, words], ids=["dicts", "numbers", "strings"])
@pytest.mark.parametrize("constraints", [None, [("A", "B"), (None, "C")]])
def test_one_by_one_equals_all_at_once(rng, written, constraints):
    X, y = drawn(rng, S=60)
    X = written(X)
    labels = sorted({label for row in y for label in row})
    if constraints is not None:
        constraints = [(labels[0], labels[1]), (None, labels[-1])]
    crf = LinearChainCRF(c2=0.1, constraints=constraints).fit(X[:40], y[:40])
    given = [*X, [], X[0][:1]]
    wanted = crf.predict(given)
    assert [crf.predict_single(x) for x in given] == wanted
    assert [crf.predict_single(iter(x)) for x in given] == wanted
    assert len({tuple(row) for row in wanted}) > 10


@pytest.mark.parametrize("written", [counted, words], ids=["numbers", "strings"])
def test_compiled_lookups_equal_those_in_python(rng, monkeypatch, written):
    from gramgraph._numerics.crf import feature_dicts

    if not feature_dicts.usable():
        pytest.skip("this interpreter's objects are read by Python code only")
    X = written(drawn(rng, S=40, n_words=60)[0])
    table = FeatureTable()
    table.encode(X[:20], grow=True)
    names = table.renumbered(np.arange(table.size), table.size)
    with tier("compiled"):
        quick = names.encode(X)
    assert names.quick is not None
    monkeypatch.setattr(feature_dicts, "look_up" if written is counted else "look_up_words", None)  # must not be asked
    monkeypatch.setattr(feature_dicts, "usable", lambda: False)
    other = table.renumbered(np.arange(table.size), table.size)
    plain = other.encode(X)
    np.testing.assert_array_equal(quick.ptr, plain.ptr)
    np.testing.assert_array_equal(np.maximum(quick.ids, -1), np.maximum(plain.ids, -1))
    if written is counted:
        np.testing.assert_array_equal(quick.data[quick.ids >= 0], plain.data[plain.ids >= 0])
    else:
        assert len(quick.data) == len(plain.data) == 0
    assert (quick.ids >= 0).sum() > len(X) and (quick.ids < 0).any()


def test_what_compiled_code_does_not_know_is_left_to_python(rng):
    X, y = drawn(rng, S=30)
    crf = LinearChainCRF().fit(X, y)
    name = next(iter(X[0][0]))
    for token in ({name: 2**63}, {name: -(2**70)}, {name: np.int32(2)}, {"new": "x"}, {name: ("a", "b")}, {}):
        assert crf.predict_single([token]) == crf.predict([[token]])[0]
    for value in (float("nan"), 1e200, 10**400, None, b"w", 1j):
        for ask in (crf.predict_single, lambda x: crf.predict([x])):
            with pytest.raises(ModelError, match="position 1: feature"):
                ask([{}, {name: value}])
    texts = LinearChainCRF().fit(words(X), y)
    with pytest.raises(ModelError, match="must hold strings; got 3"):
        texts.predict_single([["a", 3]])
    assert texts.predict_single([("a", "b")]) == texts.predict_single([["a", "b"]])


def test_tuples_hold_features_as_lists_do(rng):
    X, y = drawn(rng, S=20)
    many = [[{**token, "set": ["p", "q"]} for token in x] for x in X]
    frozen = [[{**token, "set": ("p", "q")} for token in x] for x in X]
    a, b = (LinearChainCRF().fit(some, y) for some in (many, frozen))
    assert a.state_features_ == b.state_features_
    assert a.predict(frozen) == b.predict(many)
    new = [[{"set": ("p",)}]]
    assert a.predict_proba(new)[0].tolist() == a.predict_proba([[{"set": ["p"]}]])[0].tolist()


def test_iterators_are_sequences_too(rng):
    X, y = drawn(rng, S=20)
    crf = LinearChainCRF().fit(X, y)
    again = LinearChainCRF().fit((iter(x) for x in X), (iter(labels) for labels in y))
    assert again.state_features_ == crf.state_features_
    assert crf.predict(iter(x) for x in X) == crf.predict(X)
    assert crf.score((iter(x) for x in X), iter(y)) == crf.score(X, y)
    for wrong in (None, 3, "text", {"a": 1}):
        with pytest.raises(ModelError, match="expected a list of sequences"):
            crf.predict(wrong)
        with pytest.raises(ModelError, match="expected a list with one list of labels"):
            crf.fit(X, wrong)
    with pytest.raises(ModelError, match="some are lists"):
        crf.fit(X[:1], [[["a"]] * len(X[0])])


def test_constraints_count_as_they_are_now(rng):
    X, y = drawn(rng, S=30)
    crf = LinearChainCRF().fit(X, y)
    free = crf.predict(X)
    pair = list(free[0][:2]) if len(free[0]) > 1 else [free[0][0], free[0][0]]
    crf.set_params(constraints=[pair])
    held = crf.predict(X)
    assert all((a, b) != tuple(pair) for row in held for a, b in pairwise(row))
    pair.reverse()  # in place
    turned = [crf.predict_single(x) for x in X]
    assert all((a, b) != tuple(pair) for row in turned for a, b in pairwise(row))
    assert crf.set_params(constraints=None).predict(X) == free
    with pytest.raises(ModelError, match="constraints must be None"):
        crf.set_params(constraints=3).predict(X)


def test_an_estimator_for_notebooks_and_searches():
    crf = LinearChainCRF(c1=0.5, constraints=np.array([["A", "B"]]))
    assert repr(crf).startswith("LinearChainCRF(c1=0.5, constraints=array(")
    assert "LinearChainCRF" in LinearChainCRF(c1=0.5)._repr_html_()

    class Own(LinearChainCRF):
        def __init__(self, extra: int = 1, **others):
            super().__init__(**others)
            self.extra = extra

    assert Own(extra=3).get_params() == {"extra": 3}
    assert clone(Own(extra=3)).extra == 3
    with pytest.raises(ModelError, match="random_state must be"):
        LinearChainCRF("ap", random_state="x").fit([[["a"]]], [["A"]])


def test_allocators_other_than_glibc_are_left_alone(monkeypatch):
    import ctypes

    from gramgraph.sequences.crf import chain

    def refused(error):
        def library(name):
            raise error("no such library")

        return library

    for library in (refused(OSError), refused(TypeError), lambda name: object()):  # the second as Windows does it
        monkeypatch.setattr(ctypes, "CDLL", library)
        chain._give_back()


@pytest.mark.parametrize("kind", ["plain", "compiled"])
def test_one_call_gives_the_labels_themselves(kind):
    """Both tiers: labels are the model's own objects, counted rightly, and the sequence stays as it was."""
    X = [[{"word": f"w{i % 3}", "x": 0.5 * i} for i in range(n)] for n in (3, 4, 5)]
    y = [[f"label {i % 2}" for i in range(len(x))] for x in X]
    crf = LinearChainCRF(c2=0.1, max_iterations=10).fit(X, y)
    expected = crf.predict(X)
    with tier("compiled"):  # makes the table of lookups
        assert [crf.predict_single(x) for x in X] == expected
    if crf._chain.held is None:
        pytest.skip("this interpreter's objects are read by Python code only")
    with tier(kind):
        before = [dict(token) for token in X[2]]
        references = [sys.getrefcount(label) for label in crf._labels]
        for x, labels in zip(X * 20, expected * 20, strict=True):
            assert crf.predict_single(x) == labels
        assert X[2] == before
        found = crf.predict_single(X[2])
        assert all(any(label is own for own in crf._labels) for label in found)
        del found
        grown = [sys.getrefcount(label) - n for label, n in zip(crf._labels, references, strict=True)]
        assert max(grown) < 10  # of 240 that were made
        again = pickle.loads(pickle.dumps(crf._chain))
        assert again.held is None
        assert crf.predict_single([]) == []


def test_few_features_are_numbered_by_the_source_whatever_stands_in_its_place(monkeypatch):
    """What was loaded from disk has a source that knows none of its names, as long as nothing is compiled."""
    from types import SimpleNamespace

    from gramgraph._numerics.compiling import source_of
    from gramgraph._numerics.crf import recursions

    def numbered(way):
        ptr, ids = np.array([0, 2, 3]), np.array([1, -1, 0], np.int32)
        return way(ptr, ids, np.empty(0), ids[:0], 1, np.empty(2, np.int64)), ptr.tolist(), ids.tolist()

    def nameless(*_):
        raise NameError("np")

    written = source_of(recursions.part_features)
    loaded = SimpleNamespace(door=SimpleNamespace(py_func=written), py_func=nameless)
    monkeypatch.setattr(recursions, "part_features", loaded)
    assert numbered(recursions._part_with_numpy) == numbered(written)
