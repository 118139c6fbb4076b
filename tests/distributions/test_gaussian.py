"""The algebra of Gaussians against brute force, against each other's forms, and against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import gramgraph as gg
from gramgraph.distributions import Gaussian
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError

seeds = st.integers(0, 10_000)
sizes = st.integers(1, 6)


def draw(seed: int, d: int, rank: int | None = None) -> Gaussian:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((d, d + 1 if rank is None else rank)) * np.exp(rng.normal(0, 2, size=(d, 1)))
    return Gaussian(3.0 * rng.standard_normal(d), B @ B.T)


def wide(seed: int, d: int) -> Gaussian:
    rng = np.random.default_rng(seed + 1)
    B = rng.standard_normal((d, d + 2))
    return Gaussian(rng.standard_normal(d), B @ B.T + np.eye(d))


# --- laws -----------------------------------------------------------------------------------------------------------


@given(seeds, sizes)
def test_product_adds_precisions_and_its_scale_is_the_integral(seed: int, d: int) -> None:
    p, q = wide(seed, d), wide(seed + 5, d)
    r = p * q
    assert np.allclose(r.precision, p.precision + q.precision, rtol=1e-8)
    assert np.allclose(r.shift, p.shift + q.shift, rtol=1e-8, atol=1e-8)
    x = np.random.default_rng(seed).standard_normal((4, d))
    assert np.allclose(p.log_density(x) + q.log_density(x), r.log_density(x) + p.log_overlap(q), rtol=1e-8)
    assert (q * p).allclose(r, rtol=1e-8)
    assert (r / q).allclose(p, rtol=1e-6, atol=1e-8)


@given(seeds, st.integers(2, 6), st.data())
def test_conditional_times_marginal_is_the_joint(seed: int, d: int, data: Any) -> None:
    g = draw(seed, d)
    k = data.draw(st.integers(1, d - 1))
    order = np.random.default_rng(seed).permutation(d)
    seen, rest = [int(i) for i in order[:k]], sorted(int(i) for i in order[k:])
    x = g.sample(1, random_state=seed)[0]
    gain = g.condition(seen, x[seen])
    assert gain.allclose(g.condition(seen, x[seen], form="precision"), rtol=1e-5, atol=1e-8)
    assert gain.allclose(g.condition(dict(zip(seen, x[seen], strict=True))))
    total = gain.log_density(x[rest]) + g.marginal(seen).log_density(x[seen])
    assert np.allclose(total if d - k > 1 or np.ndim(total) == 0 else total[0], g.log_density(x if d > 1 else x[0]))


@given(seeds, sizes, sizes)
def test_bayes_is_conditioning_of_the_joint_and_both_forms_agree(seed: int, d: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    prior = wide(seed, d)
    A, b, R = rng.standard_normal((k, d)), rng.standard_normal(k), wide(seed + 9, k).cov
    y = rng.standard_normal(k)
    gain = prior.bayes(A, b, R, y)
    assert gain.allclose(prior.bayes(A, b, R, y, form="precision"), rtol=1e-7, atol=1e-9)
    joint = prior.joint(A, b, R)
    assert gain.allclose(joint.condition(range(d, d + k), y), rtol=1e-7, atol=1e-9)
    assert joint.marginal(range(d, d + k)).allclose(prior.affine(A, b, R))


@given(seeds, sizes)
def test_canonical_form_and_back(seed: int, d: int) -> None:
    g = wide(seed, d)
    again = Gaussian.from_precision(g.shift, g.precision)
    assert again.allclose(g, rtol=1e-8)
    assert np.array_equal(again.precision, g.precision)


@given(seeds, sizes)
def test_tower_rules(seed: int, d: int) -> None:
    # E[y] = E[E[y | x]] and Var y = E[Var(y | x)] + Var(E[y | x]).
    rng = np.random.default_rng(seed)
    g = draw(seed, d)
    A, R = rng.standard_normal((2, d)), wide(seed, 2).cov
    y = g.affine(A, noise=R)
    assert np.allclose(y.mean, A @ g.mean)
    assert np.allclose(y.cov, R + g.affine(A).cov)


@given(seeds, sizes)
def test_against_scipy(seed: int, d: int) -> None:
    g, q = wide(seed, d), wide(seed + 3, d)
    peer = stats.multivariate_normal(g.mean, g.cov)
    x = np.random.default_rng(seed).standard_normal((5, d))
    assert np.allclose(g.log_density(x), peer.logpdf(x))
    assert np.allclose(g.entropy(), peer.entropy())
    monte = g.sample(20_000, random_state=seed)
    gaps = g.log_density(monte) - q.log_density(monte)
    assert abs(gaps.mean() - g.kl(q)) <= 6.0 * gaps.std() / np.sqrt(len(gaps)) + 1e-12


@given(seeds, st.integers(2, 5), st.data())
def test_singular_covariances_agree_with_coordinates_on_the_support(seed: int, d: int, data: Any) -> None:
    r = data.draw(st.integers(1, d - 1))
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :r]  # isometric: densities on the support are those below
    low, other = wide(seed, r), wide(seed + 1, r)
    m = rng.standard_normal(d)
    g, q = low.affine(Q, m), other.affine(Q, m)
    assert g.rank == r and g.is_degenerate
    z = rng.standard_normal((4, r))
    x = z @ Q.T + m
    assert np.allclose(g.log_density(x), low.log_density(z), rtol=1e-7, atol=1e-7)
    assert np.allclose(g.entropy(), low.entropy()) and np.allclose(g.kl(q), low.kl(other), rtol=1e-6, atol=1e-7)
    assert np.allclose(g.precision, np.linalg.pinv(g.cov), rtol=1e-6, atol=1e-8)
    assert np.isneginf(g.log_density(x + np.linalg.qr(np.column_stack([Q, rng.standard_normal(d)]))[0][:, r])).all()
    assert (g * q).allclose((low * other).affine(Q, m), rtol=1e-6, atol=1e-7)
    assert np.isfinite(g.log_density(g.sample(20, random_state=0))).all()
    assert np.isfinite(g.log_density(g.sample(20, random_state=0, method="eigen"))).all()
    assert g.kl(wide(seed, d)) == np.inf


# --- numbers --------------------------------------------------------------------------------------------------------


def test_the_precision_of_the_worked_example_has_three_missing_edges() -> None:
    cov = [[14, -16, 4, -2], [-16, 32, -8, 4], [4, -8, 8, -4], [-2, 4, -4, 5]]
    printed = [[0.1667, 0.0833, 0, 0], [0.0833, 0.0833, 0.0417, 0], [0, 0.0417, 0.25, 0.1667], [0, 0, 0.1667, 0.3333]]
    g = Gaussian(np.zeros(4), cov)
    assert np.abs(g.precision - printed).max() < 5.1e-5
    assert np.abs(g.precision[[0, 0, 1], [2, 3, 3]]).max() < 1e-15
    # A zero in the precision is a conditional independence: x0 tells nothing about x2 once x1 and x3 are known.
    one, two = g.condition({0: 1.0, 1: 0.5, 3: 0.2}), g.condition({0: -7.0, 1: 0.5, 3: 0.2})
    assert one.allclose(two)


def test_posterior_of_a_number_seen_with_noise() -> None:
    sigma2, nu2, mu, y = 2.0, 0.5, 1.0, 4.0
    post = Gaussian(mu, sigma2).bayes(1.0, 0.0, nu2, y)
    assert post.mean[0] == pytest.approx((mu / sigma2 + y / nu2) / (1 / sigma2 + 1 / nu2))
    assert post.cov[0, 0] == pytest.approx(1 / (1 / sigma2 + 1 / nu2))


def test_bayes_equals_quadrature() -> None:
    prior, R = Gaussian(0.3, 1.7), 0.4

    def weight(x: float) -> float:
        return float(prior.density(x) * Gaussian(2 * x + 1, R).density(0.5))

    z, _ = integrate.quad(weight, -12, 12, epsabs=0, epsrel=1e-12, points=[-0.25])
    m, _ = integrate.quad(lambda x: x * weight(x) / z, -12, 12, epsabs=1e-13, points=[-0.25])
    v, _ = integrate.quad(lambda x: (x - m) ** 2 * weight(x) / z, -12, 12, epsabs=1e-13, points=[-0.25])
    post = prior.bayes(2.0, 1.0, R, 0.5)
    assert abs(post.mean[0] - m) < 1e-8 and abs(post.cov[0, 0] - v) < 1e-8
    assert abs(prior.affine(2.0, 1.0, R).log_density(0.5) - np.log(z)) < 1e-8


@pytest.mark.parametrize("method", ["cholesky", "eigen"])
def test_draws_have_the_moments(method: str) -> None:
    g = draw(3, 3)
    X = g.sample(200_000, random_state=1, method=method)
    z = (X.mean(axis=0) - g.mean) / (g.std / np.sqrt(len(X)))
    assert np.abs(z).max() < 4.5  # fails by chance once in 50,000 seeds
    assert np.abs(np.cov(X.T) / np.outer(g.std, g.std) - g.correlation).max() < 0.02
    assert np.array_equal(X, g.sample(200_000, random_state=1, method=method))


def test_draws_by_both_methods_differ_but_have_one_distribution() -> None:
    g = draw(4, 2)
    a, b = g.sample(5, random_state=0), g.sample(5, random_state=0, method="eigen")
    assert not np.allclose(a, b)


def test_samples_and_weights() -> None:
    X = np.random.default_rng(0).standard_normal((6, 2))
    repeated = Gaussian.from_samples(np.repeat(X, [1, 2, 1, 3, 1, 1], axis=0))
    assert Gaussian.from_samples(X, weights=[1, 2, 1, 3, 1, 1]).allclose(repeated)
    assert np.allclose(Gaussian.from_samples(X).cov, np.cov(X.T, bias=True))


def test_units_do_not_matter() -> None:
    g = Gaussian([0.0, 0.0], [[1.0, 0.5e-12], [0.5e-12, 1e-24]])
    assert not g.is_degenerate
    assert g.condition({1: 1e-12}).mean[0] == pytest.approx(0.5)


def test_exact_observations_leave_no_variance_behind() -> None:
    g = wide(0, 3)
    known = g.joint([[1.0, 2.0, 0.0]]).condition({3: 1.5})
    assert known.rank == 2
    assert known.affine([1.0, 2.0, 0.0]).cov[0, 0] < 1e-14
    again = known.joint([[1.0, 2.0, 0.0]])
    assert again.condition({3: 1.5}).allclose(known, rtol=1e-7, atol=1e-9)
    with pytest.raises(ImpossibleEvidenceError, match="off its support"):
        again.condition({3: 2.5})


def test_a_precise_observation_keeps_its_precision() -> None:
    post = Gaussian(0.0, 1e8).bayes(1.0, 0.0, 1e-8, 1.0)
    assert post.cov[0, 0] == pytest.approx(1e-8, rel=1e-9)


def test_values_are_frozen_and_copied() -> None:
    cov = np.eye(2)
    g = Gaussian([0.0, 0.0], cov)
    cov[0, 0] = 9.0
    assert g.cov[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        g.cov[0, 0] = 2.0
    with pytest.raises(AttributeError):
        g.mean = np.zeros(2)  # type: ignore[misc]


def test_shapes_of_results() -> None:
    one, two = Gaussian(0.0, 1.0), Gaussian([0.0, 0.0], 1.0)
    assert isinstance(one.log_density(0.0), float) and one.log_density([0.0]).shape == (1,)
    assert one.log_density([[0.0], [1.0]]).shape == (2,) and isinstance(two.log_density([0.0, 0.0]), float)
    assert two.log_density(np.zeros((0, 2))).shape == (0,)
    assert one.log_density(np.inf) == -np.inf
    assert two.sample(0).shape == (0, 2)
    assert gg.Gaussian is Gaussian


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda g: Gaussian([0, 0], [[1, 2], [2, 1]]), "positive semidefinite; its smallest eigenvalue is -1"),
        (lambda g: Gaussian([0, 0], [[-1, 0], [0, 1]]), "positive semidefinite"),
        (lambda g: Gaussian([0, 0], [[1, 0.5], [0.2, 1]]), r"symmetric; its entries \[0, 1\] and \[1, 0\]"),
        (lambda g: Gaussian([0, np.nan], 1.0), r"mean holds NaN at \[1\]"),
        (lambda g: Gaussian([0, 0], np.full((2, 2), np.nan)), "cov holds NaN"),
        (lambda g: Gaussian([0, np.inf], 1.0), "must be finite"),
        (lambda g: Gaussian([0, 0], np.eye(3)), r"cov must be a \(2, 2\) matrix"),
        (lambda g: Gaussian([[0, 0]], 1.0), r"mean must have shape"),
        (lambda g: Gaussian(["a", "b"], 1.0), "mean must hold numbers"),
        (lambda g: Gaussian.from_precision([0, 0], [[1, 1], [1, 1]]), "positive definite; its rank is 1 of 2"),
        (lambda g: g.condition({0: np.nan}), "values holds NaN"),
        (lambda g: g.condition({5: 1.0}), "no coordinate 5"),
        (lambda g: g.condition({0: 1.0, 1: 1.0}), "nothing is left"),
        (lambda g: g.condition([0, 0], [1.0, 1.0]), "named once"),
        (lambda g: g.condition([0]), "Values are missing"),
        (lambda g: g.condition({0: 1.0}, [1.0]), "either a mapping"),
        (lambda g: g.condition([0], [1.0, 2.0]), r"values must have shape \(1,\)"),
        (lambda g: g.condition({0: 1.0}, form="gian"), "Did you mean 'gain'"),
        (lambda g: g.condition({"a": 1.0}), "Coordinates are integers"),
        (lambda g: g.marginal([]), "At least one"),
        (lambda g: g.affine(np.eye(3)), r"A must have shape \(any, 2\)"),
        (lambda g: g.affine(np.eye(2), [1.0]), r"b must have shape \(2,\)"),
        (lambda g: g.affine(np.eye(2), noise=[[1, 2], [2, 1]]), "noise must be positive semidefinite"),
        (lambda g: g.affine(np.eye(2), noise=-1.0), "noise must be positive semidefinite"),
        (lambda g: g * Gaussian(0.0, 1.0), "same space; these have 2 and 1"),
        (lambda g: g.kl("x"), "needs another Gaussian"),
        (lambda g: g / g, "not a Gaussian"),
        (lambda g: g / Gaussian([0, 0], 0.5), "not a Gaussian"),
        (lambda g: g / Gaussian([0, 0], [1.0, 0.0]), "singular"),
        (lambda g: g.log_density([1.0, 2.0, 3.0]), r"one point of shape \(2,\)"),
        (lambda g: g.log_density([np.nan, 0.0]), "X holds NaN"),
        (lambda g: g.sample(-1), "n must be a whole number of at least 0"),
        (lambda g: g.sample(1, method="eigne"), "Did you mean 'eigen'"),
        (lambda g: g.sample(1, random_state="x"), "random_state must be"),
        (lambda g: g.bayes(np.eye(2), None, 1.0, [1.0]), r"observed must have shape \(2,\)"),
        (lambda g: g.bayes(np.eye(2), None, None, [1.0, 1.0], form="precision"), "positive definite noise"),
        (lambda g: Gaussian([0, 0], [1, 0]).condition({0: 1.0}, form="precision"), "form='gain'"),
        (lambda g: Gaussian.from_samples(np.zeros((0, 2))), "at least one row"),
        (lambda g: Gaussian.from_samples([[1.0]], weights=[-1.0]), "weights must not be negative"),
        (lambda g: Gaussian.from_samples([[1.0]], weights=[1.0, 1.0]), "one entry a data point"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        call(Gaussian([0.0, 0.0], 1.0))


def test_impossible_evidence() -> None:
    g = Gaussian([0.0, 1.0, 0.0], [1.0, 0.0, 1.0])
    assert g.condition({1: 1.0}).allclose(Gaussian([0.0, 0.0], 1.0))
    with pytest.raises(ImpossibleEvidenceError, match="cannot occur"):
        g.condition({1: 1.1})
    with pytest.raises(ImpossibleEvidenceError, match="cannot occur"):
        Gaussian([0.0], [0.0]) * Gaussian([1.0], [0.0])
