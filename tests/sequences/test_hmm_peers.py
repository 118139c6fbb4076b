"""Numbers of hmmlearn: likelihoods, posteriors, paths and a step of Baum–Welch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from gramgraph.sequences import CategoricalHMM, GaussianHMM, GaussianMixtureHMM, PoissonHMM

peers = pytest.importorskip("hmmlearn.hmm")

K, D = 4, 3
LENGTHS = [300, 1, 40, 159]
OPTIONS = {"n_iter": 1, "tol": 0.0, "init_params": "", "implementation": "log"}


def chain(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(K)), 0.5 * np.eye(K) + 0.5 * rng.dirichlet(np.ones(K), K)


def pair(kind: str) -> tuple[Any, Any]:
    """The same model here and there."""
    rng = np.random.default_rng(1)
    start, A = chain(0)
    if kind == "symbols":
        table = rng.dirichlet(np.ones(6), K)
        ours: Any = CategoricalHMM.from_parameters(start, A, table)
        theirs: Any = peers.CategoricalHMM(K, **OPTIONS)
        theirs.emissionprob_, theirs.n_features = table, 6
    elif kind == "counts":
        rates = rng.uniform(0.5, 9.0, (K, D))
        ours = PoissonHMM.from_parameters(start, A, rates)
        theirs = peers.PoissonHMM(K, lambdas_prior=0.0, lambdas_weight=0.0, **OPTIONS)
        theirs.lambdas_ = rates
    elif kind == "mixture":
        means, weights = 3.0 * rng.normal(size=(K, 2, D)), rng.dirichlet(np.ones(2) * 3, K)
        variances = rng.uniform(0.5, 2.0, (K, 2, D))
        ours = GaussianMixtureHMM.from_parameters(start, A, means, variances, weights=weights, covariance_type="diag")
        theirs = peers.GMMHMM(K, n_mix=2, covariance_type="diag", **OPTIONS)
        theirs.means_, theirs.covars_, theirs.weights_ = means, variances, weights
    else:
        means, roots = 3.0 * rng.normal(size=(K, D)), rng.normal(size=(K, D, D))
        full = roots @ roots.transpose(0, 2, 1) + 0.5 * np.eye(D)
        covars = {"full": full, "tied": full[0], "diag": full.diagonal(axis1=1, axis2=2), "spherical": full[:, 0, 0]}
        ours = GaussianHMM.from_parameters(start, A, means, covars[kind], covariance_type=kind, covariance_prior=0.0)
        theirs = peers.GaussianHMM(K, covariance_type=kind, covars_prior=0.0, **OPTIONS)
        theirs.means_, theirs.covars_ = means, covars[kind]
    theirs.startprob_, theirs.transmat_ = start, A
    return ours, theirs


@pytest.mark.parametrize("kind", ["symbols", "counts", "mixture", "full", "tied", "diag", "spherical"])
def test_answers_are_those_of_hmmlearn(kind: str) -> None:
    ours, theirs = pair(kind)
    X = ours.sample(sum(LENGTHS), random_state=2)[0]
    given = X.astype(int) if kind in ("symbols", "counts") else X
    assert ours.score(X, LENGTHS) == pytest.approx(theirs.score(given, LENGTHS), abs=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X, LENGTHS), theirs.predict_proba(given, LENGTHS), rtol=0, atol=1e-8)
    best, path = ours.decode(X, LENGTHS)
    want, states = theirs.decode(given, LENGTHS)
    assert best == pytest.approx(want, abs=1e-8)
    assert (path == states).all()
    if kind == "mixture":  # other priors
        return
    step = clone(ours).set_params(init=ours, max_iter=1, tol=0.0).fit(X, LENGTHS)
    theirs.fit(given, LENGTHS)
    np.testing.assert_allclose(step.transmat_, theirs.transmat_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(step.startprob_, theirs.startprob_, rtol=0, atol=1e-8)
    if kind in ("full", "tied", "diag"):
        np.testing.assert_allclose(step.means_, theirs.means_, rtol=0, atol=1e-8)
    if kind == "diag":
        spread = [np.diagonal(C) for C in theirs.covars_]
        np.testing.assert_allclose(step.covars_, spread, rtol=1e-6)
    if kind == "counts":
        np.testing.assert_allclose(step.rates_, theirs.lambdas_, rtol=1e-8)
    if kind == "symbols":
        np.testing.assert_allclose(step.emissionprob_, theirs.emissionprob_, rtol=0, atol=1e-8)
