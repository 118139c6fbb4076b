"""Mixtures of independent columns: EM by hand, families, gaps, the network, k-means as a limit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.cluster import KMeans as Peer

import gramgraph as gg
from gramgraph.distributions._columns import FAMILIES


def test_row_d5_bernoulli_mixture_is_em_by_hand() -> None:
    """γ ∝ π Π μ^x (1 − μ)^(1−x); μ = Σ γ x / N_k; π = N_k / N: at the end both hold together."""
    rng = np.random.default_rng(0)
    mu = np.array([[0.9, 0.8, 0.1, 0.2], [0.1, 0.3, 0.8, 0.9]])
    X = (rng.random((400, 4)) < mu[rng.integers(2, size=400)]).astype(int)
    model = gg.BernoulliMixture(2, pseudo_count=0.0, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    m, w = model.means_, model.weights_
    joint = w * np.prod(np.where(X[:, None] == 1, m, 1.0 - m), axis=2)
    gamma = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), gamma, atol=1e-10)
    np.testing.assert_allclose(gamma.T @ X / gamma.sum(axis=0)[:, None], m, atol=1e-5)
    np.testing.assert_allclose(gamma.mean(axis=0), w, atol=1e-5)
    np.testing.assert_allclose(model.score_samples(X), np.log(joint.sum(axis=1)))
    np.testing.assert_allclose(np.sort(m[:, 0]), [0.1, 0.9], atol=0.1)
    assert (np.diff(model.report_.trace) >= 0.0).all()


def test_the_network_of_labels_answers_exactly() -> None:
    frame = gg.datasets.asia().sample(500, random_state=0).drop(columns=["either"])
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)
    model = gg.CategoricalMixture(3, random_state=0).fit(frame)
    asked = model.query("z", evidence=frame)
    assert asked.exact
    np.testing.assert_allclose(asked["z"].probabilities, model.predict_proba(frame), atol=1e-9)
    np.testing.assert_allclose(model.network_.log_likelihood(frame), model.score_samples(frame), rtol=1e-9)
    assert set(model.sample(5, random_state=0)[0].columns) == set(frame.columns)
    unseen = frame.head(1).assign(smoke="maybe")
    np.testing.assert_allclose(model.predict_proba(unseen), model.predict_proba(frame.head(1).assign(smoke=None)))


TRUE = {
    "gaussian": (np.array([[0.0, 1.0], [6.0, 0.5]]), lambda x, t: stats.norm.logpdf(x, t[0], np.sqrt(t[1]))),
    "poisson": (np.array([[2.0], [14.0]]), lambda x, t: stats.poisson.logpmf(x, t[0])),
    "gamma": (np.array([[2.0, 4.0], [9.0, 1.5]]), lambda x, t: stats.gamma.logpdf(x, t[0], scale=1 / t[1])),
    "von_mises": (np.array([[0.0, 4.0], [3.0, 8.0]]), lambda x, t: stats.vonmises.logpdf(x, t[1], loc=t[0])),
}


@pytest.mark.parametrize("name", TRUE)
def test_families_find_their_numbers_and_densities(name: str) -> None:
    theta, log_density = TRUE[name]
    rng = np.random.default_rng(0)
    x = FAMILIES[name]().draw(np.repeat(theta, [1200, 800], axis=0), rng)
    model = gg.MixtureOf(2, families=name, random_state=0).fit(x[:, None])
    order = np.argsort(model.weights_)[::-1]
    found = model.parameters_[0][order]
    np.testing.assert_allclose(found, theta, rtol=0.25, atol=0.15)
    mixed = sum(w * np.exp(log_density(x, t)) for w, t in zip(model.weights_, model.parameters_[0], strict=True))
    np.testing.assert_allclose(model.score_samples(x[:, None]), np.log(mixed), rtol=1e-6)
    # the slope of the likelihood is 0 at the answer: no small change of a parameter gains
    best = model.score(x[:, None])
    for k in range(2):
        for p in range(theta.shape[1]):
            for factor in (0.99, 1.01):
                model.parameters_[0][k, p] *= factor
                assert model.score(x[:, None]) <= best + 1e-6
                model.parameters_[0][k, p] /= factor


def mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    z = rng.integers(2, size=n)
    frame = pd.DataFrame({
        "angle": rng.vonmises(np.where(z, 2.5, -1.0), 5.0),
        "calls": rng.poisson(np.where(z, 9.0, 2.0)),
        "wait": rng.gamma(3.0, np.where(z, 2.0, 0.5)),
        "size": rng.normal(np.where(z, 1.0, -1.0), 0.7),
        "kind": np.where(rng.random(n) < np.where(z, 0.8, 0.2), "a", "b"),
    })  # fmt: skip
    return frame.mask(rng.random(frame.shape) < 0.15)


FAMILY = {"angle": "von_mises", "calls": gg.distributions.Poisson, "wait": "gamma"}


def test_a_family_for_each_column_and_its_network() -> None:
    frame = mixed(np.random.default_rng(1), 400)
    model = gg.MixtureOf(2, families=FAMILY, random_state=0).fit(frame)
    assert model.families_ == ["von_mises", "poisson", "gamma", "gaussian", "categorical"]
    row = frame.dropna().iloc[0].to_dict()
    told = model.query("z", row, random_state=0)["z"].probabilities
    np.testing.assert_allclose(told, model.predict_proba(pd.DataFrame([row]))[0], atol=0.03)
    assert list(model.network_.sample(4, random_state=0).columns) == ["z", *frame.columns]
    again = gg.MixtureOf([1, 2, 3], families=FAMILY, choose="bic", random_state=0).fit(frame)
    assert again.n_components_ == 2


@pytest.mark.parametrize("seed", range(10))
def test_em_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = mixed(rng, 40)
    if seed % 2:
        frame = pd.concat([frame.iloc[:5]] * 6)
    if seed % 3 == 0:
        frame = frame.assign(calls=3, size=1.0, wait=2.0, angle=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", gg.ModelWarning)
        warnings.simplefilter("ignore", gg.ConvergenceWarning)
        model = gg.MixtureOf(3, families=FAMILY, tol=0.0, max_iter=40, init_params="random", random_state=seed)
        model.fit(frame)
    trace = model.report_.trace
    assert (np.diff(trace) >= 0.0).all() and np.isfinite(trace).all()


def test_row_d5_k_means() -> None:
    """Hard EM as σ → 0 is k-means: the same centers as scikit-learn from the same start."""
    rng = np.random.default_rng(0)
    X = np.concatenate([center + rng.normal(size=(80, 2)) for center in ([0, 0], [8, 0], [0, 8])])
    for init in ("k-means++", "subset"):
        found = gg.estimators.KMeans(3, init=init, random_state=0).fit(X)
        peer = Peer(3, init=found.cluster_centers_, n_init=1).fit(X)
        np.testing.assert_allclose(found.cluster_centers_, peer.cluster_centers_)
        assert found.inertia_ == pytest.approx(peer.inertia_)
    centers = X[[0, 80, 160]]
    for _ in range(20):  # γ of a mixture with a common σ² I, σ small, is an indicator of the nearest center
        d2 = ((X[:, None] - centers) ** 2).sum(axis=2)
        logs = -d2 / (2.0 * 1e-4**2)
        gamma = np.exp(logs - logs.max(axis=1, keepdims=True))
        gamma /= gamma.sum(axis=1, keepdims=True)
        centers = gamma.T @ X / gamma.sum(axis=0)[:, None]
    own = gg.estimators.KMeans(3, init=X[[0, 80, 160]], tol=0.0).fit(X)
    np.testing.assert_allclose(own.cluster_centers_, centers)


def test_bad_input_is_named() -> None:
    with pytest.raises(gg.ModelError, match="must hold counts"):
        gg.MixtureOf(1, families="poisson").fit([[1.5], [2.0]])
    with pytest.raises(gg.ModelError, match="must hold numbers above 0"):
        gg.MixtureOf(1, families="gamma").fit([[0.0], [2.0]])
    with pytest.raises(gg.OptionError, match="Did you mean 'poisson'"):
        gg.MixtureOf(1, families="poison").fit([[0.0], [2.0]])
    with pytest.raises(gg.ModelError, match="use gg.CategoricalMixture"):
        gg.BernoulliMixture(1).fit(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.raises(gg.VariableError, match="callz"):
        gg.MixtureOf(1, families={"callz": "poisson"}).fit(pd.DataFrame({"calls": [1, 2]}))
    with pytest.raises(gg.ModelError, match="n_clusters is 3"):
        gg.estimators.KMeans(3).fit([[0.0]])
    one = gg.MixtureOf(1, families="von_mises").fit([[0.5]])
    assert np.isfinite(one.score_samples([[0.5]])).all()


def test_blocks_of_rows_come_near_the_whole() -> None:
    rng = np.random.default_rng(0)
    n = 3000
    z = rng.integers(0, 2, n)
    frame = pd.DataFrame({
        "g": rng.normal(np.where(z, 3.0, -1.0), 1.0), "p": rng.poisson(np.where(z, 8, 2)).astype(float),
        "a": rng.vonmises(np.where(z, 2.0, -1.0), 3.0), "s": rng.gamma(np.where(z, 9.0, 2.0)),
        "c": np.where(rng.random(n) < np.where(z, 0.8, 0.2), "u", "v"),
    })  # fmt: skip
    frame.loc[::9, "g"] = np.nan
    families = {"p": "poisson", "a": "von_mises", "s": "gamma"}
    whole = gg.MixtureOf(2, families=families, random_state=0).fit(frame)
    blocks = gg.MixtureOf(2, families=families, random_state=0)
    for start in range(0, n, 500):
        blocks.partial_fit(frame.iloc[start : start + 500])
        assert blocks.network_.variables == ("z", *frame.columns)
    assert blocks.score(frame) > whole.score(frame) - 0.02
    assert blocks.score(frame) > gg.MixtureOf(2, families=families, random_state=0).fit(frame[:500]).score(frame) - 0.01
    bits = (rng.random((2000, 5)) < np.where(z[:2000, None], 0.8, 0.25)).astype(int)
    one, several = gg.BernoulliMixture(2, random_state=0).fit(bits), gg.BernoulliMixture(2, random_state=0)
    for start in range(0, 2000, 400):
        several.partial_fit(bits[start : start + 400])
    assert several.score(bits) > one.score(bits) - 0.02


@pytest.mark.parametrize("kind", [gg.GaussianMixture, gg.BernoulliMixture, gg.CategoricalMixture, gg.MixtureOf])
def test_dates_are_refused_by_name(kind: type) -> None:
    frame = pd.DataFrame({"day": pd.date_range("2020", periods=20), "b": np.arange(20.0)})
    with pytest.raises(gg.GramGraphError, match="'day' holds dates"):
        kind(2).fit(frame)
