"""Gaussian mixtures: scikit-learn's numbers, gaps, the network underneath, the number of components."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as Peer

import gramgraph as gg
from gramgraph.machines.mixtures.gaussian import SHAPES
from tests.portions import seeds

CONTRACT = [gg.GaussianMixture(1, covariance_type=shape) for shape in SHAPES]
IRIS = load_iris(as_frame=True).data.set_axis(["sl", "sw", "pl", "pw"], axis=1)


def three(rng: np.random.Generator, n: int, d: int = 3, k: int = 3, apart: float = 4.0) -> tuple[np.ndarray, ...]:
    means = apart * rng.normal(size=(k, d))
    A = rng.normal(size=(k, d, d))
    C = 0.3 * A @ A.swapaxes(1, 2) + 0.5 * np.eye(d)
    z = rng.integers(k, size=n)
    X = means[z] + np.einsum("nij,nj->ni", np.linalg.cholesky(C)[z], rng.normal(size=(n, d)))
    return X, means, C


@pytest.mark.parametrize("shape", SHAPES)
def test_row_d5_equals_scikit_learn(shape: str) -> None:
    X = IRIS.to_numpy()
    ours = gg.GaussianMixture(3, covariance_type=shape, tol=1e-9, random_state=0).fit(X)
    peer = Peer(3, covariance_type=shape, tol=1e-9, reg_covar=0.0, max_iter=500, random_state=0).fit(X)
    assert ours.n_iter_ == peer.n_iter_
    for name in ("weights_", "means_", "covariances_", "precisions_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-8)
    np.testing.assert_allclose(ours.score_samples(X), peer.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-9)
    assert ours.bic(X) == pytest.approx(peer.bic(X)) and ours.aic(X) == pytest.approx(peer.aic(X))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gaps", [False, True])
def test_row_d5_the_network_says_the_same(shape: str, gaps: bool) -> None:
    frame = IRIS.mask(np.random.default_rng(0).random(IRIS.shape) < 0.3) if gaps else IRIS
    model = gg.GaussianMixture(3, covariance_type=shape, random_state=0).fit(frame)
    asked = model.query("z", evidence=frame)
    assert asked.exact
    np.testing.assert_allclose(asked["z"].probabilities, model.predict_proba(frame), atol=1e-9)
    np.testing.assert_allclose(model.network_.log_likelihood(frame), model.score_samples(frame), rtol=1e-9)
    assert model.report_.trace[-1] == pytest.approx(model.score_samples(frame).sum(), rel=1e-9)


def test_a_vector_for_an_array_and_columns_for_a_frame() -> None:
    model = gg.GaussianMixture(2, random_state=0).fit(IRIS.to_numpy())
    assert model.network_.variables == ("z", "x")
    row = IRIS.to_numpy()[0]
    found = model.query("z", evidence={"x": row})["z"].probabilities
    np.testing.assert_allclose(found, model.predict_proba(row[None])[0], atol=1e-12)
    framed = gg.GaussianMixture(2, random_state=0).fit(IRIS.rename(columns={"sl": "z"}))
    assert framed.network_.variables[:2] == ("z_", "z")
    drawn, z = framed.sample(5, random_state=1)
    assert list(drawn.columns) == ["z", "sw", "pl", "pw"] and len(z) == 5


def nearest(found: np.ndarray, true: np.ndarray) -> float:
    return min(float(((found[list(order)] - true) ** 2).sum()) for order in permutations(range(len(true))))


@pytest.mark.parametrize("problems, least", [(6, 5), pytest.param(20, 18, marks=pytest.mark.slow)])
def test_gaps_are_integrated_out_and_not_filled(problems: int, least: int) -> None:
    """30 % of the cells missing: closer to the truth than filling with means first, on 18 of 20 problems or more."""
    better = 0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        X, means, _ = three(rng, 300)
        X[rng.random(X.shape) < 0.3] = np.nan
        ours = gg.GaussianMixture(3, n_init=2, tol=1e-4, random_state=0).fit(X)
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        first = gg.GaussianMixture(3, n_init=2, tol=1e-4, random_state=0).fit(filled)
        better += nearest(ours.means_, means) < nearest(first.means_, means)
    assert better >= least


@pytest.mark.parametrize("seed", seeds(15, 50))
def test_em_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, _, _ = three(rng, int(rng.integers(6, 80)), int(rng.integers(1, 5)))
    kind = seed % 5
    if kind == 1:
        X[: len(X) // 2] = X[0]  # duplicated rows
    elif kind == 2:
        X[:, 0] = 3.0  # a column that never changes
    elif kind == 3:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[0] = 0.0
    elif kind == 4:
        X = np.repeat(X[:3], 4, axis=0)  # three groups without any spread
    prior = None
    if seed % 3 == 0:
        d = X.shape[1]
        prior = gg.distributions.NormalInverseWishart(np.zeros(d), 0.5, d + 1.0, np.eye(d))
    with warnings.catch_warnings():
        warnings.simplefilter("error", gg.ModelWarning)
        warnings.simplefilter("ignore", gg.ConvergenceWarning)
        model = gg.GaussianMixture(
            3, covariance_type=SHAPES[seed % 4], prior=prior, concentration=1.0 + seed % 2, init_params="random",
            tol=0.0, max_iter=25, random_state=seed,
        ).fit(X)  # fmt: skip
    assert (np.diff(model.report_.trace) >= 0.0).all() and np.isfinite(model.report_.trace).all()
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("shape", ["full", "tied"])
@pytest.mark.parametrize("seed", seeds(4, 6))
def test_em_never_falls_at_the_floor(seed: int, shape: str) -> None:
    """A column that others give, and few different rows: variances at the floor, 1e-12 of the largest."""
    rng = np.random.default_rng(seed)
    d = 2 + seed % 4
    X, _, _ = three(rng, 10, d)
    if seed % 2:
        X[:, -1] = X[:, :-1].sum(axis=1)
        X[rng.random(X.shape) < 0.1] = np.nan
        X[0] = 0.0
    else:
        X = np.repeat(X[:d], 5, axis=0) @ rng.normal(size=(d, d))
    with warnings.catch_warnings():
        warnings.simplefilter("error", gg.ModelWarning)
        warnings.simplefilter("ignore", gg.ConvergenceWarning)
        gg.GaussianMixture(2, covariance_type=shape, init_params="random", tol=0.0, random_state=seed).fit(X)


def test_far_and_narrow_components_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([1e6 + 1e-3 * rng.normal(size=(60, 2)), 1e6 + 5.0 + 1e-3 * rng.normal(size=(40, 2))])
    model = gg.GaussianMixture(2, random_state=0).fit(X)
    order = np.argsort(model.means_[:, 0])
    np.testing.assert_allclose(model.weights_[order], [0.6, 0.4])
    off = X[:60] - X[:60].mean(axis=0)
    np.testing.assert_allclose(model.covariances_[order[0]], off.T @ off / 60, rtol=1e-6, atol=1e-9)


def test_weights_of_rows_count_them_several_times() -> None:
    rng = np.random.default_rng(1)
    X, _, _ = three(rng, 60)
    X[rng.random(X.shape) < 0.1] = np.nan
    w = rng.integers(0, 4, size=60)
    for shape in SHAPES:
        options = {"covariance_type": shape, "means_init": np.nan_to_num(X[[0, 1, 5]]), "tol": 1e-6}
        a = gg.GaussianMixture(3, **options).fit(X, sample_weight=w)
        b = gg.GaussianMixture(3, **options).fit(np.repeat(X, w, axis=0))
        np.testing.assert_allclose(a.means_, b.means_, rtol=1e-6, atol=1e-9)
        assert a.report_.log_likelihood == pytest.approx(b.report_.log_likelihood, rel=1e-9)


@pytest.mark.parametrize("choose", ["bic", "cv", "dirichlet"])
def test_the_number_of_components_is_found(choose: str) -> None:
    rng = np.random.default_rng(3)
    X = np.concatenate([center + rng.normal(size=(150, 2)) for center in ([0, 0], [7, 0], [0, 7])])
    model = gg.GaussianMixture(4 if choose == "cv" else 6, choose=choose, cv=3, tol=1e-4, random_state=0).fit(X)
    assert model.n_components_ == 3
    frame = model.selection_frame()
    assert frame.loc[frame[choose].idxmin(), "n_components"] == 3


def test_a_prior_gives_the_mode() -> None:
    """One component: the mode of the normal–inverse-Wishart posterior, Ψ_n / (ν_n + d + 2)."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    prior = gg.distributions.NormalInverseWishart([1.0, 1.0], 2.0, 5.0, 3.0 * np.eye(2))
    model = gg.GaussianMixture(1, prior=prior).fit(X)
    after = prior.update(X)
    np.testing.assert_allclose(model.means_[0], after.mean)
    np.testing.assert_allclose(model.covariances_[0], after.scale / (after.dof + 4.0))


def test_online_em_comes_near_the_whole() -> None:
    rng = np.random.default_rng(0)
    X, _, _ = three(rng, 6000, apart=9.0)
    whole = gg.GaussianMixture(3, random_state=0).fit(X)
    online = gg.GaussianMixture(3, random_state=0)
    for part in np.array_split(X[:5000], 25):
        online.partial_fit(part)
    assert online.score(X[5000:]) > whole.score(X[5000:]) - 0.03
    before = online.score(X)
    online.partial_fit(X[:200])
    assert online.score(X) != before


def test_bad_input_is_named() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "city": ["x", "y", "z"]})
    with pytest.raises(gg.ModelError, match="column 'city' holds text"):
        gg.GaussianMixture(1).fit(frame)
    dated = pd.DataFrame({"a": [1.0, 2.0], "day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(gg.ModelError, match="holds dates"):
        gg.GaussianMixture(1).fit(dated)
    with pytest.raises(gg.ModelError, match="no value in column b"):
        gg.GaussianMixture(1).fit(pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]}))
    with pytest.raises(gg.ModelError, match="n_components is 3, but"):
        gg.GaussianMixture(3).fit([[1.0], [2.0]])
    with pytest.raises(gg.OptionError, match="Did you mean 'full'"):
        gg.GaussianMixture(1, covariance_type="ful").fit([[1.0], [2.0]])
    with pytest.raises(gg.OptionError, match="choose must be one of"):
        gg.GaussianMixture(2, choose="guess").fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="non-zero"):
        gg.GaussianMixture(1).fit([[1.0], [2.0]], sample_weight=[0.0, 0.0])
    one = gg.GaussianMixture(1).fit([[2.0, 3.0]])
    np.testing.assert_allclose(one.means_, [[2.0, 3.0]])
    assert np.isfinite(one.score_samples([[2.0, 3.0]])).all()


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    gg.GaussianMixture(2, random_state=0, progress=lambda done, total: seen.append((done, total))).fit(IRIS)
    assert seen and seen[-1][0] == seen[-1][1]
