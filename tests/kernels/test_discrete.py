"""Kernels of labels and sets: contract, explicit feature maps."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.kernels import Categorical, Delta, Hamming, KernelError, SetKernel
from gramgraph.testing.kernels import check_kernel
from tests.portions import examples

RNG = np.random.default_rng(0)
LABELS, OTHERS = ["a", "b", "a", "c"], ["c", "a", "b"]
WORDS, MORE = ["abca", "abba", "cccc", "abca"], ["aaaa", "abcc"]
SETS = [frozenset("ab"), frozenset("bcd"), frozenset(), frozenset("abcd")]
ELEMENTS = tuple("abcd")


CASES = [
    (Delta(), LABELS, OTHERS),
    (Categorical(("a", "b", "c"), RNG.normal(size=(3, 2)), own=0.3), LABELS, OTHERS),
    (Categorical(("a", "b", "c"), RNG.normal(size=3)), LABELS, OTHERS),
    (Hamming(gamma=0.6), WORDS, MORE),
    (Hamming(gamma=[0.1, 0.5, 1.0, 2.0]), WORDS, MORE),
    (SetKernel(), SETS, SETS[:2]),
    (SetKernel(weight=0.3), SETS, SETS[:2]),
    (SetKernel(weight=[0.1, 0.5, 1.0, 2.0], elements=ELEMENTS), SETS, SETS[:2]),
]


@pytest.mark.parametrize("kernel, X, Y", CASES, ids=[str(case[0]) for case in CASES])
def test_contract(kernel, X, Y):
    check_kernel(kernel, X, Y, inputs=False)


def subsets(items):
    return list(chain.from_iterable(combinations(items, r) for r in range(len(items) + 1)))


@given(st.lists(st.frozensets(st.sampled_from("abcde")), min_size=1, max_size=6))
@settings(max_examples=examples(40), deadline=None)
def test_set_kernel_is_the_inner_product_of_subset_indicators(sets):
    every = subsets("abcde")
    phi = np.array([[float(set(s) <= item) for s in every] for item in sets])
    np.testing.assert_array_equal(SetKernel().gram(sets), phi @ phi.T)
    weight = np.array([0.2, 1.0, 3.0, 0.5, 0.7])
    root = np.array([np.prod([np.sqrt(weight["abcde".index(e)]) for e in s]) for s in every])
    np.testing.assert_allclose(SetKernel(weight, elements=tuple("abcde")).gram(sets), (phi * root) @ (phi * root).T)


def test_delta_takes_labels_of_any_kind():
    np.testing.assert_array_equal(Delta().gram([1, 2, 1], [2]), [[0], [1], [0]])
    np.testing.assert_array_equal(Delta().gram([("a", 1), ("a", 2), ("a", 1)])[0], [1, 0, 1])
    np.testing.assert_array_equal(Delta().gram(np.array([[1, 2], [1, 3], [1, 2]]))[0], [1, 0, 1])
    np.testing.assert_array_equal(Delta().gram([True, "x", "x"])[1], [0, 1, 1])
    with pytest.raises(KernelError, match="missing"):
        Delta().gram([1.0, np.nan])


def test_categorical_from_a_similarity():
    S = np.array([[1.0, 0.4, 0.1], [0.4, 2.0, 0.0], [0.1, 0.0, 0.5]])
    k = Categorical.from_similarity("abc", S)
    np.testing.assert_allclose(k.similarity, S, atol=1e-14)
    np.testing.assert_allclose(k.gram(LABELS, OTHERS), S[np.ix_([0, 1, 0, 2], [2, 0, 1])], atol=1e-14)
    np.testing.assert_allclose(
        Categorical.from_similarity("abc", np.eye(3)).gram(LABELS), Delta().gram(LABELS), atol=1e-15
    )
    with pytest.raises(KernelError, match="Did you mean 'high'"):
        Categorical(("low", "high"), np.eye(2)).gram(["hihg"])
    with pytest.raises(KernelError, match="positive semi-definite"):
        Categorical.from_similarity("ab", [[1.0, 2.0], [2.0, 1.0]])


def test_hamming_counts_differences():
    count = np.array([[sum(a != b for a, b in zip(s, t, strict=True)) for t in MORE] for s in WORDS])
    np.testing.assert_allclose(Hamming(gamma=0.6).gram(WORDS, MORE), np.exp(-0.6 * count))
    np.testing.assert_allclose(Hamming(gamma=0.6).gram([list(w) for w in WORDS], MORE), np.exp(-0.6 * count))
    with pytest.raises(KernelError, match="one length"):
        Hamming().gram(["ab", "abc"])


def test_faults_are_named():
    with pytest.raises(KernelError, match="needs `elements`"):
        SetKernel(weight=[1.0, 2.0])
    with pytest.raises(KernelError, match="'e' in set 0 has no weight"):
        SetKernel([1.0, 2.0], elements=("a", "b")).gram([{"e"}])
    with pytest.raises(KernelError, match="smaller weight"):
        SetKernel().gram([set(range(1100))])
    with pytest.raises(KernelError, match="one set"):
        SetKernel().gram({"a", "b"})
    with pytest.raises(KernelError, match="no gradient"):
        Delta().pullback(LABELS, inputs=True)
