"""Kernels of words and graphs: contract, explicit feature maps, the dense product graph."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.kernels import EditDistance, KernelError, RandomWalk, Spectrum, Subsequence
from gramgraph.testing.kernels import check_kernel
from tests.portions import examples

WORDS, OTHERS = ["banana", "bandana", "cabana", "xyz", "an"], ["ananas", "ban"]
RNG = np.random.default_rng(0)


def random_graph(v, rng, directed=False):
    A = np.triu(rng.random((v, v)) < 0.6, 1).astype(float)
    return A if directed else A + A.T


GRAPHS = [random_graph(v, RNG) for v in (3, 5, 4)]
DIRECTED = [random_graph(v, RNG, directed=True) + 0.1 for v in (3, 4, 5)]
LABELED = [(A, [int(c) for c in RNG.integers(0, 2, len(A))]) for A in GRAPHS]

CASES = {
    "spectrum": (Spectrum(length=2), WORDS, OTHERS),
    "blended": (Spectrum(length=3, blended=True), WORDS, OTHERS),
    "subsequence": (Subsequence(length=2, decay=0.6), WORDS, OTHERS),
    "subsequence of 4": (Subsequence(length=4, decay=0.8), WORDS, OTHERS),
    "edit distance": (EditDistance(gamma=0.4), WORDS, OTHERS),
    "graphs": (RandomWalk(decay=0.05), GRAPHS, GRAPHS[:2]),
    "directed graphs": (RandomWalk(decay=0.05), DIRECTED, DIRECTED[:2]),
    "labeled graphs": (RandomWalk(decay=0.05), LABELED, LABELED[1:]),
}


@pytest.mark.parametrize("case", CASES)
def test_contract(case):
    kernel, X, Y = CASES[case]
    check_kernel(kernel, X, Y, inputs=False)


words = st.lists(st.text("abc", max_size=6), min_size=1, max_size=4)


@given(words, st.integers(1, 3))
@settings(max_examples=examples(40), deadline=None)
def test_spectrum_counts_pieces(X, length):
    counts = [Counter(w[i : i + length] for i in range(len(w) - length + 1)) for w in X]
    expected = [[sum(a[u] * b[u] for u in a) for b in counts] for a in counts]
    np.testing.assert_array_equal(Spectrum(length).gram(X), expected)


def places(word, length, decay):
    """Feature map of the gap-weighted kernel: Σ decay^span over the places of every subsequence."""
    found = defaultdict(float)
    for at in combinations(range(len(word)), length):
        found["".join(word[i] for i in at)] += decay ** (at[-1] - at[0] + 1)
    return found


@given(words, st.integers(1, 4), st.floats(0.1, 0.95))
@settings(max_examples=examples(40), deadline=None)
def test_subsequence_is_its_feature_map(X, length, decay):
    maps = [places(w, length, decay) for w in X]
    expected = [[sum(a[u] * b.get(u, 0.0) for u in a) for b in maps] for a in maps]
    k = Subsequence(length, decay)
    np.testing.assert_allclose(k.gram(X), expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(k.diag(X), np.diag(expected), rtol=1e-12, atol=1e-300)


def test_subsequence_of_two_words_by_hand():
    # cat and car share "ca" only: λ⁴; cat with itself: 2λ⁴ + λ⁶, so the normalized value is 1 / (2 + λ²)
    decay = 0.7
    k = Subsequence(length=2, decay=decay)
    assert k.gram(["cat"], ["car"])[0, 0] == pytest.approx(decay**4)
    assert k.normalized().gram(["cat"], ["car"])[0, 0] == pytest.approx(1 / (2 + decay**2))


def slow_edit_distance(s, t):
    if not s or not t:
        return len(s) + len(t)
    rest = slow_edit_distance(s[:-1], t[:-1]) + (s[-1] != t[-1])
    return min(rest, slow_edit_distance(s[:-1], t) + 1, slow_edit_distance(s, t[:-1]) + 1)


@given(words, words)
@settings(max_examples=examples(20), deadline=None)
def test_edit_distance_is_the_recursion(X, Y):
    np.testing.assert_array_equal(EditDistance().distances(X, Y), [[slow_edit_distance(s, t) for t in Y] for s in X])


def test_edit_distance_says_that_it_need_not_be_positive_definite():
    assert not EditDistance().positive_definite
    X = ["a", "b", "c", "ab", "ba", "ac", "ca", "bc", "cb", ""]
    assert np.linalg.eigvalsh(EditDistance(gamma=0.1).gram(X))[0] < -1e-6
    assert np.linalg.eigvalsh(EditDistance(gamma=5.0).gram(X))[0] > 0


def test_words_may_be_sequences_of_anything():
    tokens = [("the", "cat", "sat"), ["the", "cat", "ran"]]
    np.testing.assert_array_equal(Spectrum(length=2).gram(tokens), [[2, 1], [1, 2]])
    assert EditDistance().distances(tokens)[0, 1] == 1
    assert EditDistance().distances([(1, 2, 3)], [(1, 3)])[0, 0] == 1


def dense_random_walk(g, h, decay):
    """pᵀ(I − decay·W)⁻¹p on the product graph, built."""
    (A, a), (B, b) = (g, h) if isinstance(g, tuple) else ((g, None), (h, None))
    keep = np.ones(len(A) * len(B)) if a is None else np.equal.outer(a, b).ravel().astype(float)
    W = np.kron(A, B) * np.outer(keep, keep)
    p = keep / len(keep)
    return p @ np.linalg.solve(np.eye(len(p)) - decay * W, p)


@pytest.mark.parametrize("graphs", [GRAPHS, DIRECTED, LABELED], ids=["plain", "directed", "labeled"])
def test_random_walk_is_the_sum_on_the_product_graph(graphs):
    expected = [[dense_random_walk(g, h, 0.06) for h in graphs] for g in graphs]
    np.testing.assert_allclose(RandomWalk(decay=0.06).gram(graphs), expected, rtol=1e-9)


def test_random_walk_does_not_see_the_order_of_nodes():
    A, labels = LABELED[1]
    p = np.random.default_rng(1).permutation(len(A))
    shuffled = (A[np.ix_(p, p)], [labels[i] for i in p])
    K = RandomWalk(decay=0.05).gram([LABELED[1], shuffled])
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-10)


def test_a_divergent_sum_is_refused_with_a_decay_that_works():
    complete = np.ones((5, 5)) - np.eye(5)  # ρ = 4
    with pytest.raises(KernelError, match=r"1/ρ² = 0.0625.*decay=0.0563"):
        RandomWalk(decay=0.0625).gram([complete])
    RandomWalk(decay=0.0563).gram([complete])


def test_faults_are_named():
    with pytest.raises(KernelError, match="one string"):
        Spectrum().gram("banana")
    with pytest.raises(KernelError, match="entry 1 is 3"):
        Subsequence().gram(["a", 3])
    with pytest.raises(KernelError, match="all graphs or for none"):
        RandomWalk().gram([GRAPHS[0], LABELED[0]])
    with pytest.raises(KernelError, match="square"):
        RandomWalk().gram([np.ones((2, 3))])
    with pytest.raises(KernelError, match="whole number"):
        Spectrum(length=0)
    with pytest.raises(KernelError, match="between 0 and 1"):
        Subsequence(decay=1.5)


def test_contract_without_a_word_on_inputs():
    """Graphs of several sizes make no array, and are no numbers that could be moved."""
    check_kernel(RandomWalk(decay=0.05), GRAPHS)


@pytest.mark.parametrize("length", ["a", None, np.nan, True])
def test_lengths_are_whole_numbers(length):
    with pytest.raises(KernelError, match="whole number"):
        Spectrum(length=length)
