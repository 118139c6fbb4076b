"""The laws of the factor algebra for Gaussian factors, and agreement with dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import ModelError, StateError
from gramgraph.factors import Factor, GaussianFactor
from gramgraph.models import MarkovNetwork
from gramgraph.testing import check_factor
from gramgraph.variables import real
from tests.portions import examples

A, B, C = real("a"), real("b", 2), real("c")


def _draw(rng, scope):
    d = sum(var.dimension for var in scope)
    M = rng.normal(size=(d, d + 1))
    return GaussianFactor(scope, M @ M.T + 0.3 * np.eye(d), rng.normal(size=d), float(rng.normal()))


def _probes(rng, n=3):
    return [{A: rng.normal(size=1), B: rng.normal(size=2), C: rng.normal(size=1)} for _ in range(n)]


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_laws(seed):
    rng = np.random.default_rng(seed)
    scopes = [(A,), (B, A), (C, B), (A, B, C), (C,)]
    f, g, h = (_draw(rng, scopes[int(rng.integers(len(scopes)))]) for _ in range(3))
    assert isinstance(f, Factor)
    check_factor(f, g, h, probes=_probes(rng), rtol=1e-7)


@settings(max_examples=examples(20))
@given(st.integers(0, 10_000))
def test_laws_with_pinned_variables(seed):
    rng = np.random.default_rng(seed)
    value = rng.normal(size=1)
    pinned = GaussianFactor.at({A: value})
    probes = [{**p, A: value if i % 2 else rng.normal(size=1)} for i, p in enumerate(_probes(rng, 4))]
    check_factor(pinned, _draw(rng, (A, B)), _draw(rng, (C, A)), probes=probes, rtol=1e-7)
    check_factor(_draw(rng, (A, B)), pinned, _draw(rng, (C,)), probes=probes, rtol=1e-7)


def test_no_information_changes_nothing(rng):
    f = _draw(rng, (A, B))
    g = f.product(GaussianFactor.flat((B, C)))
    assert g.scope == (A, B, C)
    assert np.array_equal(g.condition({C: 3.0}).precision, f.precision)
    with pytest.raises(ModelError, match=r"does not determine \(c\)"):
        g.marginalize((C,))


def test_conflicting_pins_are_zero():
    f = GaussianFactor.at({A: 1.0}).product(GaussianFactor.at({A: 2.0}))
    assert f.log_scale == -np.inf and f.normalize()[1] == -np.inf
    assert GaussianFactor.at({A: 1.0}).product(GaussianFactor.at({A: 1.0})).log_scale == 0.0


def test_moments_are_those_of_the_density(rng):
    M = rng.normal(size=(3, 3))
    S, mu = M @ M.T + np.eye(3), rng.normal(size=3)
    f = GaussianFactor.from_moments((B, A), mu, S)
    assert abs(f.normalize()[1]) < 1e-12
    mean, cov = f.moments()
    np.testing.assert_allclose(mean, mu, atol=1e-12)
    np.testing.assert_allclose(cov, S, atol=1e-12)
    got = f.condition({A: 0.7})
    np.testing.assert_allclose(got.moments()[1], S[:2, :2] - np.outer(S[:2, 2], S[2, :2]) / S[2, 2], atol=1e-12)
    mean_a = f.marginalize((B,)).moments()[0]
    np.testing.assert_allclose(mean_a, mu[2:], atol=1e-12)
    assert got.log_scale != 0.0
    from scipy.stats import norm

    assert got.normalize()[1] == pytest.approx(norm.logpdf(0.7, mu[2], np.sqrt(S[2, 2])), abs=1e-12)


def test_bad_input():
    with pytest.raises(ModelError, match="not positive definite"):
        GaussianFactor.from_moments((B,), [0, 0], [[1, 2], [2, 1]])
    with pytest.raises(ModelError, match="shape"):
        GaussianFactor((A, B), np.eye(2), np.zeros(2))
    with pytest.raises(StateError, match="finite"):
        GaussianFactor.flat((A,)).condition({A: np.nan})
    with pytest.raises(StateError, match="2 numbers"):
        GaussianFactor.flat((B,)).condition({B: 1.0})


def test_a_markov_network_of_gaussian_factors():
    """The product of the factors, which need not be a density, is the model."""
    pair = GaussianFactor((A, B), [[2.0, 0.5, 0.0], [0.5, 3.0, 0.2], [0.0, 0.2, 1.0]], [1.0, 0.0, 0.0])
    net = MarkovNetwork([pair, GaussianFactor((A,), [[1.0]], [0.5])])
    P, h = pair.precision + np.diag([1.0, 0.0, 0.0]), np.array([1.5, 0.0, 0.0])
    answer = net.query(None, {"a": 1.0})
    assert np.allclose(answer["b"].mean(), np.linalg.solve(P[1:, 1:], -P[1:, 0]), atol=1e-12)
    assert np.allclose(answer["b"].cov(), np.linalg.inv(P[1:, 1:]), atol=1e-12)
    log_z = 0.5 * h @ np.linalg.solve(P, h) + 1.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(P)[1]
    assert net.log_evidence() == pytest.approx(log_z, abs=1e-12)


def test_conditioning_by_name():
    factor = GaussianFactor.from_moments((A, C), [0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])
    by_name, by_variable = factor.condition({"c": 2.0, "elsewhere": 1.0}), factor.condition({C: 2.0})
    assert by_name.scope == (A,) and np.array_equal(by_name.shift, by_variable.shift)
