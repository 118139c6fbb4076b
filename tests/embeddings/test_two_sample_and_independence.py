"""MMD, HSIC and the conditional test: against brute force, level under the null, power under alternatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kstest

import gramgraph as gg
from gramgraph.embeddings import hsic_test, kci_test, mmd_test
from gramgraph.embeddings.permutation import Spread, gamma_tail, permutation_moments, permutation_p_value
from gramgraph.kernels import RBF, Delta, Linear, Polynomial, White

RNG = np.random.default_rng


def quadratic_features(X):
    """Features of (1 + xᵀx′)² in two dimensions."""
    a, b = X.T
    r = np.sqrt(2.0)
    return np.column_stack([np.ones(len(X)), r * a, r * b, a * a, b * b, r * a * b])


def test_mmd_is_the_distance_of_mean_features():
    rng = RNG(0)
    X, Y = rng.normal(size=(40, 2)), rng.normal(0.3, 1.2, size=(25, 2))
    gap = quadratic_features(X).mean(0) - quadratic_features(Y).mean(0)
    found = mmd_test(X, Y, kernel=Polynomial(2, offset=1.0), estimator="biased", n_permutations=5)
    assert found.statistic == pytest.approx(gap @ gap, rel=1e-9)


@pytest.mark.parametrize("d", [1, 12])  # low rank, and a Gram matrix that has none
def test_mmd_estimates_against_double_sums(d):
    rng = RNG(1)
    X, Y = rng.normal(size=(60, d)), rng.normal(0.2, 1.0, size=(45, d))
    k = RBF(1.5)
    K, L, M = k.gram(X), k.gram(Y), k.gram(X, Y)
    biased = K.mean() + L.mean() - 2 * M.mean()
    unbiased = (K.sum() - 60) / (60 * 59) + (L.sum() - 45) / (45 * 44) - 2 * M.mean()
    assert mmd_test(X, Y, kernel=k, estimator="biased", n_permutations=1).statistic == pytest.approx(biased, abs=2e-7)
    assert mmd_test(X, Y, kernel=k, n_permutations=1).statistic == pytest.approx(unbiased, abs=2e-7)


@pytest.mark.parametrize("d", [1, 12])
def test_mmd_null_is_that_of_divisions_of_the_pooled_sample(d):
    rng = RNG(2)
    X, Y = rng.normal(size=(4, d)), rng.normal(size=(3, d))
    k, Z = RBF(1.0), np.concatenate([X, Y])
    K = k.gram(Z)
    values = []
    for first in itertools.combinations(range(7), 4):
        s = np.full(7, -1 / 3)
        s[list(first)] = 1 / 4
        values.append(s @ K @ s)
    null = mmd_test(X, Y, kernel=k, estimator="biased", n_permutations=3000, random_state=0).null
    assert set(np.round(null, 5)) <= set(np.round(values, 5))
    assert null.mean() == pytest.approx(np.mean(values), rel=0.05)
    mean, variance = permutation_moments(
        Spread.of_gram(K - K.mean(0) - K.mean(1)[:, None] + K.mean()),
        Spread.of_features(np.array([[1 / 4]] * 4 + [[-1 / 3]] * 3)),
    )
    assert (mean, variance) == pytest.approx((np.mean(values), np.var(values)))


@pytest.mark.parametrize("d", [1, 15])
def test_hsic_is_the_trace_of_centered_grams_and_its_null_is_exact(d):
    rng = RNG(3)
    n = 60
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    kx, ky = RBF(1.0), RBF(2.0)
    H = np.eye(n) - 1 / n
    K, L = H @ kx.gram(X) @ H, H @ ky.gram(Y) @ H
    found = hsic_test(X, Y, kernel_x=kx, kernel_y=ky, n_permutations=50, random_state=5)
    assert found.statistic == pytest.approx(np.trace(K @ L) / n**2, abs=1e-7)
    from gramgraph._numerics.gram.permutations import random_orders

    orders = random_orders(n, 50, RNG(5))
    mirrored = [(K * L[np.ix_(p, p)]).sum() / n**2 for p in orders]
    other_way = [(L * K[np.ix_(p, p)]).sum() / n**2 for p in orders]  # features may change places
    assert np.allclose(found.null, mirrored, atol=1e-7) or np.allclose(found.null, other_way, atol=1e-7)


def test_moments_over_all_permutations_are_exact():
    rng = RNG(4)
    A, B = rng.normal(size=(6, 3)), rng.exponential(size=(6, 2))
    A, B = A - A.mean(0), B - B.mean(0)
    K, L = A @ A.T, B @ B.T
    every = [(K * L[np.ix_(p, p)]).sum() for p in itertools.permutations(range(6))]
    assert permutation_moments(Spread.of_gram(K), Spread.of_features(B)) == pytest.approx(
        (np.mean(every), np.var(every))
    )


def test_hsic_of_labels_is_the_chi_square_like_table_sum():
    x, y = np.array(list("aabbccab")), np.array(list("uvuvvuuu"))
    found = hsic_test(x, y, n_permutations=10)
    P = np.array([[np.mean((x == a) & (y == b)) for b in "uv"] for a in "abc"])
    gap = P - P.sum(1, keepdims=True) * P.sum(0)
    assert found.statistic == pytest.approx((gap**2).sum(), rel=1e-9)


NULL_RUNS = 300


def level_is_right(p_values):
    """No too small p-values, and uniform ones: false alarm of this check about 1 in 1,000."""
    assert np.mean(np.asarray(p_values) <= 0.05) <= 0.05 + 3.1 * np.sqrt(0.05 * 0.95 / len(p_values))
    assert kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("method", ["permutation", "gamma"])
def test_p_values_are_uniform_under_the_null(method):
    two, pairs = [], []
    for seed in range(NULL_RUNS):
        rng = RNG(seed)
        x, y, z = rng.normal(size=30), rng.normal(size=25), rng.exponential(size=30)
        estimator = "biased" if method == "gamma" else "unbiased"
        two.append(mmd_test(x, y, method=method, estimator=estimator, n_permutations=199, random_state=seed).p_value)
        pairs.append(hsic_test(x, z, method=method, n_permutations=199, random_state=seed).p_value)
    level_is_right(two)
    level_is_right(pairs)


def test_conditional_p_values_are_uniform_under_the_null():
    found = []
    for seed in range(80):
        rng = RNG(seed)
        z = rng.normal(size=120)
        x, y = np.sin(z) + 0.5 * rng.normal(size=120), z**2 + rng.normal(size=120)
        found.append(kci_test(x, y, z, n_permutations=199, random_state=seed).p_value)
    level_is_right(found)


def test_power():
    rng = RNG(7)
    x = rng.normal(size=200)
    assert mmd_test(x, rng.normal(0.6, 1.0, size=200), random_state=0).reject(0.01)
    assert mmd_test(x, rng.laplace(scale=1.6, size=200), estimator="biased", method="gamma").reject(0.01)
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = np.cos(angle) + 0.2 * rng.normal(size=300), np.sin(angle) + 0.2 * rng.normal(size=300)
    assert abs(np.corrcoef(*ring)[0, 1]) < 0.15
    assert hsic_test(*ring, random_state=0).reject(0.01) and hsic_test(*ring, method="gamma").reject(0.01)
    z = rng.normal(size=300)
    a = rng.normal(size=300)
    flipped = a * np.sign(z) + 0.5 * rng.normal(size=300)  # no dependence on average over z
    assert kci_test(a, flipped, z, random_state=0).reject(0.01)
    assert kci_test(a, flipped, z, method="gamma").reject(0.01)


def test_domains_and_other_kinds_of_points():
    rng = RNG(8)
    angle = rng.vonmises(0.0, 2.0, 200)
    turned = np.mod(angle, 2 * np.pi)  # the same directions, other numbers
    assert mmd_test(angle, turned, domain="circle", random_state=0).p_value > 0.5
    assert mmd_test(angle, angle + 1.5, domain="circle", random_state=0).reject()
    words, other = ["banana", "bandana", "ananas"] * 5, ["kiwi", "wiki", "kakiwi"] * 5
    assert mmd_test(words, other, domain="string", random_state=0).reject()
    assert hsic_test(["a", "b"] * 20, np.arange(40) % 2, random_state=0).reject()
    assert hsic_test(np.exp(angle), angle, domain_x="positive", random_state=0).reject()
    sets = [frozenset("ab"), frozenset("cd")] * 10
    assert hsic_test(sets, ["u", "v"] * 10, domain_x="set", random_state=0).reject()
    X = rng.normal(size=(50, 3))
    assert mmd_test(X, X[::-1], kernel=RBF(1.0) + White(0.5), n_permutations=20).statistic < 0.0  # noise takes no part
    z = np.array(["u", "v"] * 100)
    assert kci_test(angle, turned + (z == "u"), z, domain_x="circle", domain_y="circle", random_state=0).reject()


def test_results_do_not_depend_on_order_or_names():
    rng = RNG(9)
    x, y = rng.normal(size=80), rng.normal(size=80)
    order = rng.permutation(80)
    assert hsic_test(x, y).statistic == pytest.approx(hsic_test(x[order], y[order]).statistic, rel=1e-5)
    assert hsic_test(x, y).statistic == pytest.approx(hsic_test(y, x).statistic, rel=1e-9)
    labels, renamed = np.array(list("abc"))[rng.integers(0, 3, 80)], None
    renamed = np.array(["z" + v for v in labels])
    assert hsic_test(labels, y, random_state=1).p_value == hsic_test(renamed, y, random_state=1).p_value
    assert mmd_test(x, y, random_state=3).p_value == mmd_test(x, y, random_state=3).p_value


def test_large_samples_need_no_gram_matrix():
    rng = RNG(10)
    x, y = rng.normal(size=20_000), rng.normal(size=20_000)
    assert hsic_test(x, y, n_permutations=50, random_state=0).p_value > 0.01
    assert mmd_test(x, y + 0.1, n_permutations=50, random_state=0).reject()


def test_constants_and_duplicates_give_no_nan():
    x = RNG(11).normal(size=30)
    one = np.ones(30)
    for found in (hsic_test(x, one), hsic_test(one, one, method="gamma"), mmd_test(one, one), kci_test(x, one, x)):
        assert np.isfinite(found.statistic) and found.p_value == 1.0
    assert kci_test(x, x[::-1], one, random_state=0).p_value > 0.01
    assert mmd_test(np.repeat(x, 3), np.repeat(x, 3), estimator="biased").p_value > 0.5


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: mmd_test([1.0, np.nan], [1.0, 2.0]), "finite"),
        (lambda: mmd_test([1.0], [1.0, 2.0]), "X: expected at least 2 points, got 1"),
        (lambda: mmd_test([1.0, 2.0], []), "Y"),
        (lambda: mmd_test(np.ones((3, 2)), np.ones((3, 1))), "same number of columns"),
        (lambda: hsic_test([1.0, 2.0, 3.0], [1.0, 2.0]), "equally many points, got 3 and 2"),
        (lambda: mmd_test(["a", "b"], [1.0, 2.0]), "different kinds"),
        (lambda: mmd_test(None, [1.0, 2.0]), "X: expected a sample"),
        (lambda: hsic_test([1.0, 2.0], "ab"), "Y: expected a sample"),
        (lambda: hsic_test(3.0, [1.0]), "X: expected a sample"),
        (lambda: hsic_test([1.0, 2.0, np.inf], [1.0, 2.0, 3.0]), "X"),
        (lambda: hsic_test([1.0, 2.0], [1.0, 2.0], domain_x="cirle"), "Did you mean 'circle'"),
        (lambda: hsic_test([1.0, 2.0], [1.0, 2.0], kernel_x=RBF(), domain_x="real"), "not both"),
        (lambda: hsic_test([1.0, 2.0], [1.0, 2.0], kernel_x="rbf"), "gg.kernels.RBF"),
        (lambda: hsic_test([1.0, 2.0], [1.0, 2.0], method="gama"), "Did you mean 'gamma'"),
        (lambda: hsic_test([1.0, 2.0], [1.0, 2.0], n_permutations=0), "at least 1"),
        (lambda: hsic_test([-1.0, 2.0], [1.0, 2.0], domain_x="positive"), "above 0"),
        (lambda: mmd_test([1.0, 2.0], [1.0, 2.0], method="gamma"), "biased"),
        (lambda: kci_test(range(20), range(20), range(19)), "20, 20, 19"),
        (lambda: kci_test([1.0] * 5, [1.0] * 5, [1.0] * 5), "at least 10"),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(gg.GramGraphError, match=words):
        call()


def test_helpers():
    assert permutation_p_value(1.0, np.array([0.0, 1.0, 2.0, 0.5])) == pytest.approx(3 / 5)
    assert gamma_tail(1.0, 0.0, 0.0) == 1.0
    assert isinstance(gg.embeddings.default_kernel(["a"]), Delta)
    assert hsic_test([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], kernel_x=Linear(), kernel_y=Linear()).statistic > 0
