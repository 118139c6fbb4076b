"""Conjugate models: posteriors, predictives and evidences against quadrature, closed forms against the generic ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from gramgraph import distributions as D
from gramgraph.distributions.conjugate_numeric import ConjugatePrior
from gramgraph.exceptions import ModelError
from tests.portions import examples

S2 = np.array([[2.0, 0.6], [0.6, 1.0]])
MODELS = [
    D.BetaBernoulli(1.5, 2.5),
    D.DirichletCategorical([0.5, 1.0, 2.0]),
    D.GammaPoisson(2.0, 0.7),
    D.NormalNormal(0.3, 1.7, 0.4),
    D.NormalGamma(0.2, 1.5, 2.0, 1.0),
    D.NormalInverseWishart([0.1, -0.2], 1.5, 4.0, S2),
    D.VonMisesMean(0.4, 1.2, 2.0),
    ConjugatePrior(D.Poisson, 2.0, 0.7),
]
IDS = [type(m).__name__ for m in MODELS]


def data_for(model: Any, n: int = 6, seed: int = 0) -> Any:
    return model.predictive.sample(n, random_state=seed)


# --- quadrature -------------------------------------------------------------------------------------------------------


def integral(f: Any, low: float, high: float, points: Any = None) -> float:
    return float(integrate.quad(f, low, high, epsabs=0.0, epsrel=1e-12, limit=500, points=points)[0])


ONE_PARAMETER = [
    (D.BetaBernoulli(1.5, 2.5), lambda w, x: D.Bernoulli(w).density(x), (0.0, 1.0), [1, 0, 1, 1]),
    (D.GammaPoisson(2.0, 0.7), lambda w, x: D.Poisson(w).density(x), (1e-300, 60.0), [3, 5, 2]),
    (D.NormalNormal(0.3, 1.7, 0.4), lambda w, x: D.Normal(w, 0.4).density(x), (-15.0, 15.0), [0.7, 1.9]),
    (D.VonMisesMean(0.4, 1.2, 2.0), lambda w, x: D.VonMises(w, 2.0).density(x), (-np.pi, np.pi), [0.5, -1.0, 2.0]),
]


@pytest.mark.parametrize(("prior", "likelihood", "interval", "data"), ONE_PARAMETER, ids=lambda v: type(v).__name__)
def test_posterior_predictive_and_evidence_equal_quadrature(
    prior: Any, likelihood: Any, interval: Any, data: Any
) -> None:
    before, after = prior.posterior, prior.update(data).posterior

    def joint(w: float) -> float:
        return float(before.density(w) * np.prod(likelihood(w, np.array(data))))

    mode = getattr(after, "mean", 0.0)
    z = integral(joint, *interval, points=[mode])
    assert abs(prior.log_evidence(data) - np.log(z)) < 1e-8
    assert prior.evidence(data) == pytest.approx(z, rel=1e-8)
    for w in np.linspace(*(np.array(interval) * 0.9 if interval[0] < 0 else [0.05, 0.95]), 7):
        assert abs(after.density(w) - joint(w) / z) < 1e-8
    new = data[-1]
    wanted = integral(lambda w: joint(w) / z * float(likelihood(w, new)), *interval, points=[mode])
    assert abs(prior.update(data).predictive.density(new) - wanted) < 1e-8


def test_normal_gamma_equals_quadrature() -> None:
    prior, data = D.NormalGamma(0.2, 1.5, 2.0, 1.0), np.array([0.7, 1.9, -0.4])

    def joint(m: Any, lam: float) -> Any:
        squares = 0.5 * lam * (np.subtract.outer(data, m) ** 2).sum(axis=0)
        return np.exp(prior.log_density(m, lam) - squares + 1.5 * np.log(lam / (2 * np.pi)))

    def over_m(f: Any) -> float:
        # the Gaussian part in m decays as exp(−λ m²): integrate it on its own scale
        nodes, weights = np.polynomial.legendre.leggauss(200)

        def inner(lam: float) -> float:
            s = 10.0 / np.sqrt(lam)
            return float(s * weights @ f(0.6 + s * nodes, lam))

        return float(integrate.quad(inner, 0.0, 25.0, epsabs=1e-14, epsrel=1e-10, points=[0.5, 2.0])[0])

    z = over_m(joint)
    after = prior.update(data)
    assert abs(prior.log_evidence(data) - np.log(z)) < 1e-8
    for m, lam in [(0.5, 1.0), (1.0, 0.3), (-0.5, 2.0)]:
        assert abs(np.exp(after.log_density(m, lam)) - joint(m, lam) / z) < 1e-8
    wanted = over_m(lambda m, lam: joint(m, lam) / z * np.sqrt(lam / 2 / np.pi) * np.exp(-lam * (0.3 - m) ** 2 / 2))
    assert abs(after.predictive.density(0.3) - wanted) < 1e-8
    mean, precision = after.posterior
    assert abs(mean.density(0.4) - integral(lambda v: float(np.exp(after.log_density(0.4, v))), 0.0, 60.0)) < 1e-8
    assert (
        abs(precision.density(0.9) - integral(lambda v: float(np.exp(after.log_density(v, 0.9))), -30, 30, [0.7]))
        < 1e-8
    )


def test_dirichlet_equals_quadrature() -> None:
    prior, data = D.DirichletCategorical([0.5, 1.0, 2.0]), [0, 2, 2, 1, 2]
    after = prior.update(data)

    def joint(a: float, b: float) -> float:  # p = (a, (1 − a) b, …): the corner of the simplex made square
        p = np.array([a, (1 - a) * b, (1 - a) * (1 - b)])
        return float(prior.posterior.density(p) * np.prod(p[data]) * (1 - a))

    # a = s²: the density at 0 is a^-½ before the data
    z = integrate.dblquad(lambda b, s: 2 * s * joint(s * s, b), 0, 1, 0, 1, epsabs=1e-13, epsrel=1e-11)[0]
    assert abs(prior.log_evidence(data) - np.log(z)) < 1e-8
    p = np.array([0.3, 0.2, 0.5])
    assert abs(after.posterior.density(p) - prior.posterior.density(p) * np.prod(p[data]) / z) < 1e-8


def test_normal_inverse_wishart_in_one_dimension_is_normal_gamma() -> None:
    # Σ ~ IW(ν, Ψ) in one dimension: λ = 1/Σ ~ Gamma(ν/2, Ψ/2); NormalGamma was checked by quadrature above.
    wide = D.NormalInverseWishart([0.2], 1.5, 4.0, 2.0)
    flat = D.NormalGamma(0.2, 1.5, 2.0, 1.0)
    data = np.array([0.7, 1.9, -0.4])
    assert wide.log_evidence(data[:, None]) == pytest.approx(flat.log_evidence(data), abs=1e-10)
    a, b = wide.update(data[:, None]), flat.update(data)
    x = np.linspace(-3, 3, 7)
    assert np.allclose(a.predictive.log_density(x[:, None]), b.predictive.log_density(x))
    assert a.scale[0, 0] / 2 == pytest.approx(b.rate) and a.dof / 2 == pytest.approx(b.shape)


def test_normal_inverse_wishart_against_sampling_of_its_parameters() -> None:
    prior = D.NormalInverseWishart([0.1, -0.2], 1.5, 6.0, S2)
    rng = np.random.default_rng(0)
    Sigma = prior.covariance.sample(1500, random_state=1)
    m = np.array([rng.multivariate_normal(prior.mean, S / prior.count) for S in Sigma])
    data = np.array([[0.3, 0.5], [1.0, -1.0]])
    weights = [np.exp(stats.multivariate_normal(a, S).logpdf(data).sum()) for a, S in zip(m, Sigma, strict=True)]
    error = np.std(weights) / np.sqrt(len(weights))
    assert abs(np.mean(weights) - prior.evidence(data)) < 5.5 * error


# --- closed forms and generic ones ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_the_generic_predictive_is_the_closed_form(model: Any) -> None:
    x = data_for(model, 5, seed=1)
    assert np.allclose(model.log_predictive(x), model.predictive.log_density(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_evidence_is_the_product_of_predictives(model: Any) -> None:
    x = data_for(model)
    total, now = 0.0, model
    for i in range(len(x)):
        total += float(now.log_predictive(x[i]))
        now = now.update(x[i : i + 1])
    assert model.log_evidence(x) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_batches_order_and_weights_do_not_matter(model: Any) -> None:
    x = data_for(model)
    whole = model.update(x)
    *_, streamed = model.stream([x[:2], x[2:3], x[3:]])
    backwards = model.update(x[::-1])
    weights = np.array([1, 2, 1, 3, 1, 2])
    probe = data_for(model, 4, seed=5)
    for other in (streamed, backwards):
        assert np.allclose(
            other.predictive.log_density(probe), whole.predictive.log_density(probe), rtol=1e-8, atol=1e-9
        )
    weighted, repeated = model.update(x, weights=weights), model.update(np.repeat(x, weights, axis=0))
    assert np.allclose(weighted.predictive.log_density(probe), repeated.predictive.log_density(probe), rtol=1e-8)
    assert model.log_evidence(x, weights=weights) == pytest.approx(
        model.log_evidence(np.repeat(x, weights, axis=0)), abs=1e-8
    )
    assert model.update(x[:0]) is model and model.log_evidence(x[:0]) == 0.0


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_forgetting_widens(model: Any) -> None:
    x = data_for(model, 40)
    model = model.update(x)
    assert model.forget(1.0).log_normalizer == pytest.approx(model.log_normalizer)
    old = model.forget(0.1)
    probe = data_for(model, 12, seed=9)

    def moved(m: Any) -> float:  # how far three new observations move what is predicted
        return float(np.abs(m.update(probe[:3]).predictive.log_density(probe) - m.predictive.log_density(probe)).mean())

    assert moved(old) > 2.0 * moved(model)
    assert np.allclose(
        model.update(x[:3], forget=0.5).predictive.log_density(probe),
        model.forget(0.5).update(x[:3]).predictive.log_density(probe),
    )


def test_forgetting_follows_a_change() -> None:
    rng = np.random.default_rng(0)
    coins = np.concatenate([rng.random(500) < 0.9, rng.random(100) < 0.1]).astype(int)
    *_, steady = D.BetaBernoulli().stream(coins)
    *_, quick = D.BetaBernoulli().stream(coins, forget=0.95)
    assert steady.predictive.p > 0.6 and quick.predictive.p < 0.25
    assert quick.a + quick.b == pytest.approx(20.0, rel=0.01)  # 1 / (1 − 0.95) observations are remembered


def test_the_effective_number_of_observations() -> None:
    model = D.NormalInverseWishart(np.zeros(3), 10.0, 12.0, np.eye(3)).forget(0.5)
    assert model.count == 5.0 and model.dof == 7.0
    assert D.NormalNormal(1.0, 2.0, 3.0).forget(0.5) == D.NormalNormal(1.0, 4.0, 3.0)


def test_predictives_against_scipy() -> None:
    x = np.arange(6)
    assert np.allclose(D.BetaBinomial(5, 1.5, 2.5).log_density(x), stats.betabinom(5, 1.5, 2.5).logpmf(x))
    assert np.allclose(D.NegativeBinomial(2.5, 0.3).log_density(x), stats.nbinom(2.5, 0.3).logpmf(x))
    assert np.allclose(D.StudentT(4.0, 1.0, 2.0).log_density(x), stats.t(4.0, 1.0, 2.0).logpdf(x))
    assert np.allclose(D.StudentT(4.0, 1.0, 2.0).cdf(x), stats.t(4.0, 1.0, 2.0).cdf(x))
    y = np.random.default_rng(0).standard_normal((5, 2))
    assert np.allclose(D.MultivariateT(4.0, [0, 1], S2).log_density(y), stats.multivariate_t([0, 1], S2, 4.0).logpdf(y))
    counts = [[1, 2, 2], [5, 0, 0]]
    peer = stats.dirichlet_multinomial([0.5, 1.0, 2.0], 5)
    ours = D.DirichletMultinomial(5, [0.5, 1.0, 2.0])
    assert np.allclose(ours.log_density(counts), peer.logpmf(counts))
    assert np.allclose(ours.cov, peer.cov()) and np.allclose(ours.mean, peer.mean())
    assert D.BetaBinomial(5, 1.5, 2.5).var == pytest.approx(stats.betabinom(5, 1.5, 2.5).var())
    ring = np.linspace(-np.pi, np.pi, 4001)
    p = D.VonMisesPredictive(0.4, 3.0, 2.0)
    assert np.trapezoid(p.density(ring), ring) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(
    "p",
    [D.StudentT(6.0, 1.0, 2.0), D.NegativeBinomial(2.5, 0.3), D.BetaBinomial(5, 1.5, 2.5)],
    ids=lambda p: type(p).__name__,
)
def test_draws_have_the_moments(p: Any) -> None:
    x = p.sample(100_000, random_state=0)
    assert abs(x.mean() - p.mean) < 5.0 * np.sqrt(p.var / len(x))
    assert x.var() == pytest.approx(p.var, rel=0.1)


def test_draws_of_vectors_have_the_moments() -> None:
    t = D.MultivariateT(9.0, [0.0, 1.0], S2).sample(100_000, random_state=0)
    assert np.allclose(np.cov(t.T), S2 * 9 / 7, atol=0.1) and np.allclose(t.mean(axis=0), [0, 1], atol=0.03)
    d = D.DirichletMultinomial(5, [0.5, 1.0, 2.0])
    x = d.sample(100_000, random_state=0)
    assert np.allclose(np.cov(x.T), d.cov, atol=0.08)
    v = D.VonMisesPredictive(0.4, 3.0, 2.0)
    edges = np.linspace(-np.pi, np.pi, 9)
    found = np.histogram(v.sample(100_000, random_state=0), edges)[0] / 1e5
    wanted = [integral(lambda a: float(v.density(a)), lo, hi) for lo, hi in pairwise(edges)]
    assert np.abs(found - wanted).max() < 0.008


# --- any one-parameter family ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "alpha", "nu", "closed"),
    [
        (D.Bernoulli, 1.5, 4.0, D.Beta(1.5, 2.5)),
        (D.Poisson, 2.0, 0.7, D.Gamma(2.0, 0.7)),
        (D.Exponential, 3.0, 2.0, D.Gamma(3.0, 3.0)),
        (D.Laplace, 3.0, 2.0, D.Gamma(3.0, 3.0)),
        (D.Geometric, 1.5, 2.0, D.Beta(3.0, 1.5)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_quadrature_finds_the_closed_forms(family: Any, alpha: float, nu: float, closed: Any) -> None:
    model = ConjugatePrior(family, alpha, nu)
    extra = nu * np.log(2.0) if family is D.Laplace else 0.0  # A = log 2b carries a 2
    assert model.log_normalizer == pytest.approx(closed.log_partition - extra, abs=1e-9)


def test_a_prior_without_a_closed_form() -> None:
    model = ConjugatePrior(D.ChiSquared, 3.0, 2.0)
    x = np.linspace(0.01, 200, 4001)
    assert np.trapezoid(np.exp(model.predictive.log_density(x[::40])), x[::40]) == pytest.approx(1.0, abs=0.05)
    after = model.update([2.0, 3.5, 1.0])
    w = np.linspace(-0.99, 20, 2001)
    assert np.trapezoid(np.exp(after.posterior.log_density(w)), w) == pytest.approx(1.0, abs=1e-3)
    assert after.posterior.log_density(-2.0) == -np.inf


@given(st.integers(0, 100))
@settings(max_examples=examples(20))
def test_generic_and_closed_evidence_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.5, 5, size=2)
    data = rng.poisson(4.0, size=4)
    assert ConjugatePrior(D.Poisson, a, b).log_evidence(data) == pytest.approx(
        D.GammaPoisson(a, b).log_evidence(data), abs=1e-8
    )


def test_far_from_zero_digits_are_kept() -> None:
    near, far = D.NormalNormal(0.0, 2.0, 0.5), D.NormalNormal(1e7, 2.0, 0.5)
    x = np.array([1.0, -2.0])
    assert far.log_evidence(x + 1e7) == pytest.approx(near.log_evidence(x), abs=1e-7)
    assert D.NormalGamma(1e7, 1.0, 2.0, 1.0).log_evidence(x + 1e7) == pytest.approx(
        D.NormalGamma(0.0, 1.0, 2.0, 1.0).log_evidence(x), abs=1e-7
    )


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: D.BetaBernoulli(0.0, 1.0), "a must be a number above 0"),
        (lambda: D.BetaBernoulli().update([0, 2]), "0 and 1.*data point 1 is 2"),
        (lambda: D.BetaBernoulli().update([0, np.nan]), "data holds NaN"),
        (lambda: D.BetaBernoulli().update([[0, 1]]), r"must have shape \(n,\)"),
        (lambda: D.BetaBernoulli().update([1], weights=[1, 2]), "one entry a data point"),
        (lambda: D.BetaBernoulli().forget(0.0), "above 0"),
        (lambda: D.BetaBernoulli().forget(1.5), "forget must be a number from 0 to 1"),
        (lambda: D.BetaBernoulli().update_counts(-1, 2), "successes must be"),
        (lambda: D.BetaBernoulli().predictive_count(-1), "n_trials must be"),
        (lambda: D.DirichletCategorical([1.0]), "at least two positive"),
        (lambda: D.DirichletCategorical([1.0, 1.0]).update([0, 2]), "codes from 0 to 1.*data point 1 is 2"),
        (lambda: D.DirichletCategorical([1.0, 1.0]).update_counts([1, -1]), "must not be negative"),
        (lambda: D.DirichletCategorical([1.0, 1.0]).update_counts([1]), r"counts must have shape \(2,\)"),
        (lambda: D.GammaPoisson(1.0, 1.0).update([1.5]), "counts 0, 1, 2"),
        (lambda: D.GammaPoisson(1.0, 0.0), "rate must be"),
        (lambda: D.NormalNormal(0.0, 1.0, -1.0), "noise must be"),
        (lambda: D.NormalNormal(0.0, 1.0, 1.0).update([np.inf]), "must be finite"),
        (lambda: D.NormalGamma(0.0, 0.0, 1.0, 1.0), "count must be"),
        (lambda: D.NormalInverseWishart([0, 0], 1.0, 0.5, 1.0), "dof must be a number above 1"),
        (lambda: D.NormalInverseWishart([0, 0], 1.0, 3.0, [[1, 2], [2, 1]]), "positive semidefinite"),
        (lambda: D.NormalInverseWishart([0, 0], 1.0, 3.0, np.eye(3)), "scale must be a"),
        (lambda: D.NormalInverseWishart([0, 0], 1.0, 3.0, 1.0).update([[1, 2, 3]]), r"shape \(n, 2\)"),
        (lambda: D.VonMisesMean(0.0, -1.0, 1.0), "concentration must be"),
        (lambda: ConjugatePrior(D.Gamma, 1.0, 1.0), "one natural parameter"),
        (lambda: ConjugatePrior("Poisson", 1.0, 1.0), "one natural parameter"),
        (lambda: ConjugatePrior(D.Bernoulli, 2.0, 1.0), "p must be a number from 0 to 1"),
        (lambda: ConjugatePrior(D.Bernoulli, 1.0, 1.0), "at the edge"),
        (lambda: ConjugatePrior(D.Poisson, 1.0, 1.0).update([-1]), "data point 0 is -1"),
        (lambda: D.StudentT(0.0), "dof must be"),
        (lambda: D.MultivariateT(3.0, [0, 0], [[1, 1], [1, 1]]), "rank is 1 of 2"),
        (lambda: D.NegativeBinomial(1.0, 1.0), "p must be a number between 0 and 1"),
        (lambda: D.DirichletMultinomial(3, [1.0, 0.0]), "alpha must be positive"),
        (lambda: D.DirichletMultinomial(3, [1.0, 1.0]).log_density([1, 1, 1]), r"shape \(…, 2\)"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        call()


def test_row_a2_binomial_and_the_moments_of_beta() -> None:
    a, b = 3.0, 5.0
    beta = D.Beta(a, b)
    assert beta.mean == pytest.approx(a / (a + b), abs=1e-15)
    assert beta.var == pytest.approx(a * b / ((a + b) ** 2 * (a + b + 1.0)), abs=1e-15)
    counts = D.Binomial(0.3, 10)
    x = np.arange(11)
    np.testing.assert_allclose(counts.log_density(x), stats.binom(10, 0.3).logpmf(x), atol=1e-12)
    assert counts.mean == pytest.approx(3.0) and counts.var == pytest.approx(2.1)
    # The posterior of p after seven of ten is Beta(a + 7, b + 3), whose next ten have the mixed binomial's moments.
    coin = D.BetaBernoulli(a, b).update([1] * 7 + [0] * 3)
    assert coin.posterior == D.Beta(a + 7.0, b + 3.0)
    p = np.linspace(0.0, 1.0, 20_001)[1:-1]
    w = coin.posterior.density(p)
    mixed = [float(w @ np.exp(stats.binom(10, p).logpmf(k)) / w.sum()) for k in range(11)]
    np.testing.assert_allclose(np.exp(coin.predictive_count(10).log_density(x)), mixed, atol=1e-8)
