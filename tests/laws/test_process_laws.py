"""Laws of Gaussian processes, whatever the kernel, the points and the noise."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.gp import LinearMean, Mean, exact_evidence, fit_exact
from gramgraph.gp.methods import Data
from gramgraph.gp.sparse import Sparse
from gramgraph.gp.state_space import StateSpaceMethod
from gramgraph.kernels import RBF, Constant, Linear, Matern, Periodic, RationalQuadratic, White
from tests.portions import examples

scales = st.floats(0.2, 5.0)


@st.composite
def kernels(draw, *, markov=False):
    """A sum or product of one to three kernels, scaled."""
    kinds = [lambda s: Matern(s, nu=0.5), lambda s: Matern(s, nu=1.5), lambda s: Matern(s, nu=2.5), Constant]
    if not markov:
        kinds += [RBF, lambda s: Periodic(1.0, s), lambda s: RationalQuadratic(s), lambda s: s * Linear()]
    found = draw(scales) * draw(st.sampled_from(kinds))(draw(scales))
    for _ in range(draw(st.integers(0, 2))):
        other = draw(scales) * draw(st.sampled_from(kinds))(draw(scales))
        found = found + other if draw(st.booleans()) else found * other
    return found


@st.composite
def data(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    size = draw(st.integers(2, 12))
    x = rng.uniform(-3, 3, size=(size, 1))
    return x, rng.normal(size=(size, 1)), rng.uniform(0.05, 1.0, size=size), rng


@settings(max_examples=examples(60), deadline=None)
@given(kernels(), data(), st.sampled_from([Mean(), LinearMean(prior=(0.2, 3.0))]))
def test_chain_rule_of_the_evidence(kernel, parts, mean):
    """log p(y) = log p(y_a) + log p(y_b | y_a), the second from the posterior given the first."""
    X, Y, noise, rng = parts
    k = int(rng.integers(1, len(X)))
    whole = exact_evidence(kernel, X, Y, noise=noise, mean=mean).value
    first = fit_exact(kernel, X[:k], Y[:k], noise=noise[:k], mean=mean)
    C = first.cov(X[k:]) + np.diag(noise[k:])
    gap = (Y[k:] - first.mean(X[k:]))[:, 0]
    second = -0.5 * (gap @ np.linalg.solve(C, gap) + np.linalg.slogdet(2 * np.pi * C)[1])
    np.testing.assert_allclose(first.log_evidence + second, whole, rtol=1e-7, atol=1e-7)


@settings(max_examples=examples(60), deadline=None)
@given(kernels(), data())
def test_data_never_add_doubt_and_order_does_not_matter(kernel, parts):
    X, Y, noise, rng = parts
    Z = rng.uniform(-4, 4, size=(5, 1))
    k = int(rng.integers(1, len(X)))
    some = fit_exact(kernel, X[:k], Y[:k], noise=noise[:k])
    every = some.condition(X[k:], Y[k:], noise=noise[k:])
    tol = 1e-8 * float(kernel.diag(Z).max())
    assert np.all(every.var(Z) <= some.var(Z) + tol)
    assert np.all(some.var(Z) <= kernel.diag(Z) + tol)
    order = rng.permutation(len(X))
    other = fit_exact(kernel, X[order], Y[order], noise=noise[order])
    np.testing.assert_allclose(other.mean(Z), every.mean(Z), atol=1e-6)
    np.testing.assert_allclose(other.cov(Z), every.cov(Z), atol=100 * tol)


@settings(max_examples=examples(40), deadline=None)
@given(kernels(), data())
def test_means_are_linear_and_variances_blind_to_y(kernel, parts):
    X, Y, noise, rng = parts
    Z, other = rng.uniform(-4, 4, size=(4, 1)), rng.normal(size=Y.shape)
    a, b, both = (fit_exact(kernel, X, y, noise=noise) for y in (Y, other, 2.0 * Y - 3.0 * other))
    np.testing.assert_allclose(both.mean(Z), 2.0 * a.mean(Z) - 3.0 * b.mean(Z), atol=1e-6)
    np.testing.assert_array_equal(a.var(Z), b.var(Z))


@settings(max_examples=examples(40), deadline=None)
@given(kernels(markov=True), data(), st.sampled_from([Mean(), LinearMean()]))
def test_filtering_is_conditioning(kernel, parts, mean):
    X, Y, noise, rng = parts
    method = StateSpaceMethod(Data(X, Y, noise, mean))
    kernel = kernel + White(0.1)
    dense = exact_evidence(kernel, X, Y, noise=noise, mean=mean, gradient=True)
    value, slope = method.evidence(kernel, True)
    np.testing.assert_allclose(value, dense.value, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(slope, dense.theta, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(dense.theta).max()))
    Z = rng.uniform(-4, 4, size=(4, 1))
    exact = fit_exact(kernel, X, Y, noise=noise, mean=mean)
    np.testing.assert_allclose(method.posterior(kernel).mean(Z), exact.mean(Z), atol=1e-6)
    scale = float(kernel.diag(Z).max()) + float(exact.var(Z).max())
    np.testing.assert_allclose(method.posterior(kernel).var(Z), exact.var(Z), atol=1e-7 * scale)


@settings(max_examples=examples(40), deadline=None)
@given(kernels(), data())
def test_titsias_bounds_the_evidence(kernel, parts):
    X, Y, noise, rng = parts
    Z = rng.uniform(-3, 3, size=(3, 1))
    bound = Sparse(Data(X, Y, noise, Mean()), Z, "titsias").evidence(kernel, False)[0]
    assert bound <= exact_evidence(kernel, X, Y, noise=noise).value + 1e-6
