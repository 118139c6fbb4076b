"""Every family against the contract, against SciPy, and at the edges of its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import gramgraph as gg
from gramgraph import distributions as D
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.testing import check_distribution, find_classes

S2 = np.array([[2.0, 0.6], [0.6, 1.0]])
W3 = np.array([[0.0, 1.0, -0.5], [1.0, 0.0, 0.8], [-0.5, 0.8, 0.0]])
MEMBERS = [
    D.Bernoulli(0.3),
    D.Bernoulli(0.0),
    D.Bernoulli(1.0),
    D.Binomial(0.3, 7),
    D.Binomial(0.9, 1),
    D.Categorical([0.5, 0.2, 0.3]),
    D.Categorical([0.5, 0.0, 0.5]),
    D.Multinomial([0.5, 0.2, 0.3], 6),
    D.Poisson(3.5),
    D.Poisson(40.0),
    D.Geometric(0.3),
    D.Exponential(2.5),
    D.Laplace(1.5, center=-2.0),
    D.ChiSquared(3.0),
    D.ChiSquared(1.0),
    D.Gamma(2.5, 3.0),
    D.Gamma(0.4, 0.01),
    D.InverseGamma(5.0, 2.0),
    D.Beta(2.0, 3.5),
    D.Beta(0.6, 0.7),
    D.Dirichlet([1.5, 2.0, 4.0]),
    D.Normal(1.5, 0.7),
    D.Gaussian([1.0], [[2.0]]),
    D.Gaussian([1.0, -0.5], S2),
    D.Gaussian([1.0, -0.5, 0.2], [[2.0, 0.6, 0.1], [0.6, 1.0, 0.2], [0.1, 0.2, 0.5]]),
    D.Wishart(4.5, S2),
    D.Wishart(7.0, np.eye(3) + 0.2),
    D.InverseWishart(8.0, S2),
    D.VonMises(0.7, 2.0),
    D.VonMises(3.0, 0.3),
    D.VonMisesFisher([1.0, 2.0, -1.0], 3.0),
    D.VonMisesFisher([1.0, 2.0], 1.0),
    D.VonMisesFisher([1.0, 0.0, 0.0, 1.0, 0.0], 4.0),
    D.Boltzmann([0.2, -0.4, 0.1], W3),
]
IDS = [f"{type(p).__name__}-{i}" for i, p in enumerate(MEMBERS)]


@pytest.mark.parametrize("member", MEMBERS, ids=IDS)
def test_contract(member: Any) -> None:
    edge = isinstance(member, D.Bernoulli) and member.p in (0.0, 1.0)
    check_distribution(member, D.Bernoulli(0.4) if edge else None)


def test_the_contract_finds_every_family() -> None:
    families = set(find_classes(D.ExponentialFamily, "distributions"))
    assert families == {type(p) for p in MEMBERS}, "write a member of each family above"
    assert {family.__name__ for family in families} <= set(D.__all__), "add a line in distributions/__init__.py"


PEERS = [
    (D.Poisson(3.5), stats.poisson(3.5)),
    (D.Binomial(0.3, 7), stats.binom(7, 0.3)),
    (D.Geometric(0.3), stats.geom(0.3)),
    (D.Exponential(2.5), stats.expon(scale=1 / 2.5)),
    (D.Laplace(1.5, center=-2.0), stats.laplace(-2.0, 1.5)),
    (D.ChiSquared(3.0), stats.chi2(3.0)),
    (D.Gamma(2.5, 3.0), stats.gamma(2.5, scale=1 / 3.0)),
    (D.InverseGamma(5.0, 2.0), stats.invgamma(5.0, scale=2.0)),
    (D.Beta(2.0, 3.5), stats.beta(2.0, 3.5)),
    (D.Normal(1.5, 0.7), stats.norm(1.5, np.sqrt(0.7))),
    (D.VonMises(0.7, 2.0), stats.vonmises(2.0, loc=0.7)),
    (D.Dirichlet([1.5, 2.0, 4.0]), stats.dirichlet([1.5, 2.0, 4.0])),
    (D.Multinomial([0.5, 0.2, 0.3], 6), stats.multinomial(6, [0.5, 0.2, 0.3])),
    (D.Wishart(4.5, S2), stats.wishart(4.5, S2)),
    (D.InverseWishart(8.0, S2), stats.invwishart(8.0, S2)),
    (D.VonMisesFisher([1.0, 2.0, -1.0], 3.0), stats.vonmises_fisher(np.array([1, 2, -1]) / np.sqrt(6), 3.0)),
    (D.VonMisesFisher([1.0, 2.0], 1.0), stats.vonmises_fisher(np.array([1, 2]) / np.sqrt(5), 1.0)),
]


@pytest.mark.parametrize(("ours", "peer"), PEERS, ids=[type(p).__name__ for p, _ in PEERS])
def test_densities_and_entropies_are_scipys(ours: Any, peer: Any) -> None:
    x = ours.sample(20, random_state=3)
    if isinstance(ours, (D.Wishart, D.InverseWishart)):
        wanted = peer.logpdf(np.moveaxis(x, 0, -1))
    elif isinstance(ours, D.Dirichlet):
        wanted = peer.logpdf(x.T)
    else:
        wanted = (
            peer.logpmf
            if hasattr(peer, "logpmf") and ours.support in ("counts", "trials", "positive_integers", "composition")
            else peer.logpdf
        )(x)
    assert np.allclose(ours.log_density(x), wanted, rtol=1e-9, atol=1e-9)
    if not isinstance(ours, D.InverseWishart):  # SciPy's entropy there is not −E log of its own density
        assert np.allclose(ours.entropy(), float(peer.entropy()), rtol=1e-7, atol=1e-7)
    if hasattr(peer, "var") and hasattr(ours, "var"):
        assert np.allclose([ours.mean, ours.var], [peer.mean(), peer.var()])


# --- worked numbers -------------------------------------------------------------------------------------------------


@given(st.floats(0.05, 50.0), st.floats(0.05, 50.0))
def test_mean_and_variance_of_beta(a: float, b: float) -> None:
    p = D.Beta(a, b)
    assert p.mean == pytest.approx(a / (a + b))
    assert p.var == pytest.approx(a * b / ((a + b) ** 2 * (a + b + 1)))
    assert p.var == pytest.approx(stats.beta(a, b).var())


def test_two_units_of_a_boltzmann_machine() -> None:
    # The two-node model p(1, 1) = e^a / (2e^a + 2e^-a) in ±1 units, written in 0/1 units: s = 2x − 1.
    a = 0.7
    pair = D.Boltzmann([-2 * a, -2 * a], [[0, 4 * a], [4 * a, 0]])
    assert pair.density([1, 1]) == pytest.approx(np.exp(a) / (2 * np.exp(a) + 2 * np.exp(-a)))
    assert pair.density([1, 1]) == pytest.approx(pair.density([0, 0]))


def test_von_mises_is_a_gaussian_seen_by_its_angle() -> None:
    # An isotropic Gaussian in the plane, restricted to the unit circle, is von Mises with κ = |mean| / σ².
    mean, var = np.array([0.6, -0.3]), 0.5
    g = D.Gaussian(mean, var)
    p = D.VonMises(np.arctan2(mean[1], mean[0]), float(np.linalg.norm(mean)) / var)
    x = np.linspace(-3, 3, 7)
    ring = np.column_stack([np.cos(x), np.sin(x)])
    gap = g.log_density(ring) - p.log_density(x)
    assert np.allclose(gap, gap[0])


def test_both_parameterizations_of_the_normal() -> None:
    m, v = 1.5, 0.7
    p = D.Normal(m, v)
    assert p == D.Normal.from_precision(m / v, 1 / v) or np.allclose(p.variance, v)
    assert np.allclose(p.natural_parameters, [m / v, -0.5 / v])
    assert np.allclose(D.Gaussian(m, v).natural_parameters, p.natural_parameters)
    assert D.Gaussian(m, v).log_partition == pytest.approx(p.log_partition)
    assert np.allclose(D.Gaussian(m, v).log_partition_hessian, p.log_partition_hessian)


def test_wishart_of_one_is_gamma_and_vmf_of_two_is_von_mises() -> None:
    w, g = D.Wishart(5.0, 0.7), D.Gamma(2.5, 1 / 1.4)
    x = np.array([0.5, 2.0])
    assert np.allclose(w.log_density(x[:, None, None]), g.log_density(x))
    f, v = D.VonMisesFisher([np.cos(0.4), np.sin(0.4)], 2.0), D.VonMises(0.4, 2.0)
    assert np.allclose(f.log_density(np.column_stack([np.cos(x), np.sin(x)])), v.log_density(x))
    d, b = D.Dirichlet([2.0, 3.0]), D.Beta(2.0, 3.0)
    assert d.log_density([0.3, 0.7]) == pytest.approx(b.log_density(0.3))
    assert d.marginal(0) == b


# --- edges ----------------------------------------------------------------------------------------------------------


def test_boundaries_of_supports() -> None:
    assert D.Gamma(1.0, 2.0).log_density(0.0) == pytest.approx(np.log(2.0))
    assert D.Gamma(2.0, 2.0).log_density(0.0) == -np.inf and D.Gamma(0.5, 2.0).log_density(0.0) == np.inf
    assert D.Beta(1.0, 1.0).log_density([0.0, 1.0, 1.1]).tolist() == [0.0, 0.0, -np.inf]
    assert D.InverseGamma(1.0, 1.0).log_density([0.0, -1.0, np.inf]).tolist() == [-np.inf] * 3
    assert D.Poisson(0.0).log_density([0, 1, 0.5]).tolist() == [0.0, -np.inf, -np.inf]
    assert D.Geometric(1.0).log_density([1, 2, 0]).tolist() == [0.0, -np.inf, -np.inf]
    assert D.Categorical([1.0, 0.0]).log_density([0, 1, 2, -1]).tolist() == [0.0, -np.inf, -np.inf, -np.inf]
    assert D.Dirichlet([2.0, 2.0]).log_density([[0.5, 0.6], [-0.5, 1.5]]).tolist() == [-np.inf, -np.inf]
    assert D.VonMisesFisher([1, 0, 0], 1.0).log_density([1.0, 1.0, 0.0]) == -np.inf
    assert D.Wishart(4.0, np.eye(2)).log_density([[1.0, 2.0], [2.0, 1.0]]) == -np.inf
    assert D.Wishart(4.0, np.eye(2)).log_density([[1.0, 0.5], [0.2, 1.0]]) == -np.inf
    assert D.Multinomial([0.5, 0.5], 3).log_density([[1, 2], [2, 2], [1.5, 1.5]])[1:].tolist() == [-np.inf] * 2
    assert D.Boltzmann([0, 0], np.zeros((2, 2))).log_density([0.5, 1.0]) == -np.inf
    assert D.Poisson(0.0).entropy() == 0.0 and D.Categorical([1.0, 0.0]).entropy() == 0.0
    assert D.Categorical([0.5, 0.5]).kl(D.Categorical([1.0, 0.0])) == np.inf
    assert D.Categorical([1.0, 0.0]).kl(D.Categorical([0.5, 0.5])) == pytest.approx(np.log(2.0))


def test_quotients_of_impossible_states_stay_impossible() -> None:
    p, q = D.Categorical([0.5, 0.0, 0.5]), D.Categorical([0.2, 0.0, 0.8])
    assert np.allclose((p / q).probabilities, [0.8, 0.0, 0.2])
    assert p.log_overlap(q) == pytest.approx(np.log(0.5 * 0.2 + 0.5 * 0.8))


@pytest.mark.parametrize("kappa", [0.0, 1e-6, 1e-2, 0.9, 1.1, 30.0, 1e3, 1e5, 1e7])
@pytest.mark.parametrize("d", [2, 3, 10, 400])
def test_directions_from_nothing_to_certainty(d: int, kappa: float) -> None:
    p = D.VonMisesFisher(np.eye(d)[0], kappa)
    assert np.isfinite(p.log_partition) and 0.0 <= p.resultant < 1.0
    H = np.diagonal(p.log_partition_hessian)
    assert (H > 0.0).all()
    step = 1e-3 * max(kappa, 1e-3)
    up, down = (D.VonMisesFisher(np.eye(d)[0], max(0.0, kappa + s)) for s in (step, -step))
    width = up.concentration - down.concentration
    if kappa > 0.0:
        assert (up.log_partition - down.log_partition) / width == pytest.approx(p.resultant, rel=1e-4, abs=1e-6)
    if kappa >= 1e-2:
        assert (up.resultant - down.resultant) / width == pytest.approx(H[0], rel=2e-3, abs=1e-12)
        assert D.VonMisesFisher.from_mean(p.mean).concentration == pytest.approx(kappa, rel=1e-6)


@given(st.floats(-3, 5), st.floats(-3, 3))
def test_gamma_from_its_moments(log_shape: float, log_rate: float) -> None:
    p = D.Gamma(10.0**log_shape, 10.0**log_rate)
    q = D.Gamma.from_mean(p.mean_parameters)
    assert np.allclose([q.shape, q.rate], [p.shape, p.rate], rtol=1e-5)


@given(st.lists(st.floats(-2, 3), min_size=2, max_size=6))
def test_dirichlet_from_its_moments(logs: list[float]) -> None:
    p = D.Dirichlet(10.0 ** np.array(logs))
    assert np.allclose(D.Dirichlet.from_mean(p.mean_parameters).alpha, p.alpha, rtol=1e-4)


def test_normals_far_from_zero_keep_their_digits() -> None:
    x = 1e8 + np.array([-1.0, 0.0, 1.0])
    assert D.Normal.fit(x).variance == pytest.approx(2 / 3)
    assert D.Gaussian.fit(x).cov[0, 0] == pytest.approx(2 / 3)
    assert D.Normal(1e8, 1.0).kl(D.Normal(1e8 + 1, 1.0)) == pytest.approx(0.5)


def test_values_have_no_hidden_state() -> None:
    p = D.Dirichlet([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        p.alpha[0] = 3.0
    assert gg.distributions.Gamma is D.Gamma


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: D.Bernoulli(1.5), "p must be a number from 0 to 1, not 1.5"),
        (lambda: D.Bernoulli(None), "p must be a number"),  # a text is the name of a variable
        (lambda: D.Bernoulli(float("nan")), "p must be a number"),
        (lambda: D.Categorical([0.5, 0.6]), "they sum to 1.1"),
        (lambda: D.Categorical([1.5, -0.5]), "entry 1 is -0.5"),
        (lambda: D.Categorical.from_natural([np.inf, 0.0]), "−inf for what cannot happen"),
        (lambda: D.Categorical.fit([0, 5], n_states=3), "data point 1 is 5"),
        (lambda: D.Categorical.fit([0, -1]), "data point 1 is -1"),
        (lambda: D.Multinomial([0.5, 0.5], -1), "n_trials must be a whole number of at least 0"),
        (lambda: D.Multinomial.fit([[1, 2], [2, 2]]), "data point 1"),
        (lambda: D.Multinomial.fit([[0, 0]]), "n_trials must be at least 1"),
        (lambda: D.Poisson(-1.0), "rate must be a number of at least 0"),
        (lambda: D.Poisson.fit([1, 2.5]), "data point 1 is 2.5"),
        (lambda: D.Poisson.fit([]), "needs at least one"),
        (lambda: D.Poisson.fit([[1, 2]]), "first axis"),
        (lambda: D.Poisson.fit([1, np.nan]), r"x holds NaN at \[1\]"),
        (lambda: D.Poisson(1.0) * D.Poisson(2.0), "base measure is not constant.*tilt"),
        (lambda: D.Poisson(1.0).tilt([1.0, 2.0]), r"delta must have shape \(1,\)"),
        (lambda: D.Geometric(0.0), "p must be above 0"),
        (lambda: D.Geometric(0.9) / D.Geometric(0.1) / D.Geometric(0.99), "no finite integral"),
        (lambda: D.Exponential(0.0), "rate must be a number above 0"),
        (lambda: D.Exponential.fit([0.0, 0.0]), "mu must be a number above 0"),
        (lambda: D.Exponential.fit([1.0, -1.0]), "data point 1 is -1"),
        (lambda: D.Exponential(1.0) / D.Exponential(2.0), "no Exponential: it has no finite integral"),
        (lambda: D.Laplace(1.0) * D.Laplace(1.0, center=2.0), "these differ in center"),
        (lambda: D.Gamma(1.0, np.inf), "rate must be a number above 0"),
        (lambda: D.Gamma.fit([2.0, 2.0]), "no spread"),
        (lambda: D.Gamma.fit([2.0, 0.0]), "data point 1 is 0"),
        (lambda: D.Gamma(2.0, 1.0).kl(D.Beta(1.0, 1.0)), "needs two Gamma; got Beta"),
        (lambda: D.Beta(0.0, 1.0), "a must be a number above 0"),
        (lambda: D.Beta.fit([0.5, 0.5]), "no spread"),
        (lambda: D.Beta(0.3, 1.0) * D.Beta(0.3, 1.0), "no finite integral"),
        (lambda: D.Dirichlet([1.0]), "at least two positive numbers"),
        (lambda: D.Dirichlet([1.0, 0.0]), "at least two positive numbers"),
        (lambda: D.Dirichlet([1.0, 1.0]).log_density([0.2, 0.3, 0.5]), r"shape \(…, 2\)"),
        (lambda: D.Dirichlet([1.0, 1.0]) * D.Dirichlet([1.0, 1.0, 1.0]), "differ in size"),
        (lambda: D.Dirichlet([1.0, 1.0]).marginal(2), "k must be a whole number from 0 to 1"),
        (lambda: D.Normal(0.0, 0.0), "variance must be a number above 0"),
        (lambda: D.Normal.fit([1.0, 1.0]), "variance μ₂ − μ₁² must be positive"),
        (lambda: D.Wishart(0.5, np.eye(2)), "dof must be a number above 1"),
        (lambda: D.Wishart(3.0, [[1, 2], [2, 1]]), "positive semidefinite"),
        (lambda: D.Wishart(3.0, [[1, 1], [1, 1]]), "positive definite; its rank is 1 of 2"),
        (lambda: D.Wishart.from_natural([1.0, 2.0, 3.0]), r"1 \+ d\(d\+1\)/2 entries"),
        (lambda: D.VonMises(0.0, -1.0), "concentration must be a number of at least 0"),
        (lambda: D.VonMises.fit([1.0, 1.0]), "all the same"),
        (lambda: D.VonMisesFisher([0.0, 0.0], 1.0), "not zero"),
        (lambda: D.VonMisesFisher.fit([[1.0, 1.0]]), "data point 0"),
        (lambda: D.Boltzmann([0, 0], [[1, 0], [0, 0]]), "zero diagonal"),
        (lambda: D.Boltzmann.fit([[0, 0], [1, 1]]), "No finite parameters"),
        (lambda: D.Gaussian([0, 0], [1, 0]).natural_parameters, "no natural parameters"),
        (lambda: D.Gaussian.from_natural([1.0, 1.0, 1.0]), r"d \+ d\(d\+1\)/2 entries"),
        (lambda: D.Gamma(1.0, 1.0).sample(2.5), "n must be a whole number"),
        (lambda: D.Gamma(1.0, 1.0).sample(1, random_state=1.5), "random_state must be"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        call()


def test_a_boltzmann_machine_that_is_too_large() -> None:
    with pytest.raises(BudgetError, match="MarkovNetwork"):
        D.Boltzmann(np.zeros(25), np.zeros((25, 25)))


def test_the_check_can_fail() -> None:
    class Wrong(D.Gamma):
        @property
        def log_partition(self) -> float:
            return super().log_partition + 0.01

    class Biased(D.Gamma):
        def sample(self, n: int = 1, *, random_state: Any = None) -> Any:
            return 1.05 * super().sample(n, random_state=random_state)

    with pytest.raises(AssertionError, match="integrates to"):
        check_distribution(Wrong(2.0, 3.0))
    with pytest.raises(AssertionError, match="E φ is off"):
        check_distribution(Biased(2.0, 3.0))


@pytest.mark.parametrize("a", [1e-3, 0.5, 3.0, 249.0, 250.0, 1e4, 1e8, 1e15, 1e100, 1e300])
def test_entropies_do_not_cancel(a: float) -> None:
    """The entropy of a Gamma of large shape is that of a normal: ½ log 2πe var, to the order 1/a."""
    assert np.isclose(gg.distributions.Gamma(a, 2.0).entropy(), stats.gamma(a, scale=0.5).entropy(), rtol=1e-12)
    assert np.isclose(
        gg.distributions.ChiSquared(2.0 * a).entropy(), gg.distributions.Gamma(a, 0.5).entropy(), rtol=1e-12
    )
    twin = gg.distributions.Gamma(a, 2.0)  # 1/x of a Gamma: the entropy moves by −2 E log x
    shift = -2.0 * float(twin.mean_parameters[0])
    assert np.isclose(gg.distributions.InverseGamma(a, 2.0).entropy(), twin.entropy() + shift, rtol=1e-11, atol=1e-11)
    assert np.isclose(gg.distributions.Beta(a, a).entropy(), gg.Dirichlet([a, a]).entropy(), rtol=1e-12)
    if a >= 1e4:
        normal = 0.5 * (np.log(2.0 * np.pi * np.e) - np.log(8.0) - np.log(a))  # of variance 1/(8a)
        assert np.isclose(gg.distributions.Beta(a, a).entropy(), normal, atol=1e-3, rtol=1e-12)


def test_entropy_where_the_mean_overflows() -> None:
    found = gg.distributions.Gamma(1e200, 1e-200).entropy()
    assert np.isclose(found, 0.5 * np.log(2.0 * np.pi * np.e) + 300.0 * np.log(10.0), rtol=1e-12)
