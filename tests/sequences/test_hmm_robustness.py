"""Ragged, empty, short and broken sequences, for every kind of model: right answers or clear errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph.distributions as dist
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, StateError
from gramgraph.sequences import (
    BayesFilter,
    CategoricalHMM,
    DistributionHMM,
    DurationHMM,
    DynamicBayesianNetwork,
    GaussianHMM,
    GaussianMixtureHMM,
    InputHMM,
    KalmanFilter,
    MultiCategoricalHMM,
    ParticleFilter,
    PoissonHMM,
)

A = [[0.9, 0.1], [0.2, 0.8]]
PI = [0.3, 0.7]


def known() -> dict[str, Any]:
    symbols = CategoricalHMM.from_parameters(PI, A, [[0.9, 0.1], [0.3, 0.7]])
    return {
        "symbols": symbols,
        "several": MultiCategoricalHMM.from_parameters(PI, A, [[[0.9, 0.1], [0.3, 0.7]]] * 2),
        "gauss": GaussianHMM.from_parameters(PI, A, [[0.0], [3.0]], np.ones((2, 1, 1))),
        "diag": GaussianHMM.from_parameters(PI, A, [[0.0], [3.0]], np.ones((2, 1)), covariance_type="diag"),
        "mixture": GaussianMixtureHMM.from_parameters(
            PI, A, [[[0.0], [1.0]], [[3.0], [5.0]]], np.ones((2, 2)), covariance_type="spherical"
        ),
        "counts": PoissonHMM.from_parameters(PI, A, [[1.0], [6.0]]),
        "angles": DistributionHMM.from_parameters(PI, A, [dist.VonMises(0.0, 3.0), dist.VonMises(2.0, 3.0)]),
        "durations": DurationHMM.from_parameters(
            symbols, [[0.2, 0.5, 0.3], [0.6, 0.4, 0.0]], transmat=[[0, 1], [1, 0]]
        ),
    }


KINDS = tuple(known())


def rows_of(kind: str, n: int, seed: int = 0) -> Any:
    return known()[kind].sample(n, random_state=seed)[0]


def gap_of(kind: str, X: Any) -> Any:
    return -1 if X.dtype.kind in "iu" else np.nan


@pytest.mark.parametrize("kind", KINDS)
def test_ragged_sequences_are_asked_one_by_one(kind: str) -> None:
    model = known()[kind]
    parts = [rows_of(kind, n, seed) for seed, n in enumerate([5, 1, 9, 2])]
    lengths = [len(part) for part in parts]
    joined = np.concatenate(parts)
    np.testing.assert_allclose(
        model.predict_proba(joined, lengths), np.concatenate([model.predict_proba(part) for part in parts]), atol=1e-12
    )
    np.testing.assert_allclose(model.score_sequences(parts), [model.score(part) for part in parts], atol=1e-11)
    np.testing.assert_array_equal(model.predict(parts), np.concatenate([model.predict(part) for part in parts]))


@pytest.mark.parametrize("kind", KINDS)
def test_one_row(kind: str) -> None:
    """A sequence of one row: Bayes' rule at the start."""
    model = known()[kind]
    X = rows_of(kind, 1)
    inner = getattr(model, "model_", model)
    logs = inner._emission().logs(inner._read(X, None, reset=False)[0])[0]
    joint = np.array(PI) * np.exp(logs)
    np.testing.assert_allclose(model.predict_proba(X)[0], joint / joint.sum(), atol=1e-12)
    assert model.score(X) == pytest.approx(np.log(joint.sum()), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_sequences_are_refused(kind: str) -> None:
    model = known()[kind]
    X = rows_of(kind, 3)
    for bad, text in [([X, X[:0]], "sequence 1 is empty"), (X[:0], "0 rows|0 sample|shape")]:
        with pytest.raises(ValueError, match=text):
            model.score(bad)
    with pytest.raises(ModelError, match="has length 0"):
        model.score(X, [3, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_gaps_are_summed_out(kind: str) -> None:
    """A row that was not seen: the sum (or integral) over what it could have been, which has no weight."""
    model = known()[kind]
    X = rows_of(kind, 6)
    X[[0, 3]] = gap_of(kind, X)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    nothing = np.full_like(X, gap_of(kind, X))
    assert model.score(nothing) == pytest.approx(0.0, abs=1e-12)
    if kind != "durations":
        ahead = np.array(PI)
        for t in range(6):
            np.testing.assert_allclose(model.predict_proba(nothing)[t], ahead, atol=1e-12)
            ahead = ahead @ np.array(A)
    else:
        total = sum(np.exp(model.score(np.array([[a], [b]]))) for a in (0, 1) for b in (0, 1))
        assert total == pytest.approx(1.0, abs=1e-12)


def test_impossible_symbols() -> None:
    sure = CategoricalHMM.from_parameters([1.0, 0.0], np.eye(2), [[1.0, 0.0], [0.0, 1.0]])
    assert sure.score_sequences([[0, 0], [0, 1, 0]]).tolist() == [0.0, -np.inf]
    for ask in (sure.predict, sure.predict_proba, sure.filter_proba, sure.sample_states):
        with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
            ask([[0, 0], [0, 1, 0]])
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        sure.decode([[0, 0], [0, 1, 0]], k=2)
    with pytest.raises(StateError, match="row 1.*7"):
        sure.score([0, 7])
    counts = PoissonHMM.from_parameters([1.0], [[1.0]], [[0.0]])
    assert counts.score([[0.0]]) == 0.0
    assert counts.score([[3.0]]) < -1e3
    positive = DistributionHMM.from_parameters([1.0], [[1.0]], [dist.Gamma(2.0, 1.0)])
    assert positive.score([[1.0], [-1.0]]) == -np.inf
    with pytest.raises(ImpossibleEvidenceError):
        positive.predict_proba([[1.0], [-1.0]])


def test_degenerate_covariances() -> None:
    X = np.column_stack([np.arange(12.0), 2.0 * np.arange(12.0)])  # one column is twice the other
    model = GaussianHMM(2, random_state=0).fit(X)
    assert np.isfinite(model.score(X)) and np.linalg.eigvalsh(model.covars_)[:, 0].min() > 0.0
    with pytest.raises(ModelError, match="larger covariance_prior"):
        GaussianHMM(2, covariance_prior=0.0, random_state=0).fit(X)
    flat = GaussianHMM.from_parameters([1.0], [[1.0]], [[0.0, 0.0]], [[[1.0, 1.0], [1.0, 1.0]]])
    with pytest.raises(ModelError, match="not positive definite"):
        flat.score([[0.0, 0.0]])
    with pytest.raises(ModelError, match="positive variances"):
        GaussianHMM.from_parameters([1.0], [[1.0]], [[0.0]], [[0.0]], covariance_type="diag")
    same = DistributionHMM(2, families="VonMises", random_state=0).fit(np.r_[np.zeros(30), np.ones(30)][:, None])
    assert np.isfinite(same.history_).all()


def test_more_states_than_there_are_clusters() -> None:
    """States that no data need: EM goes on, and never falls."""
    X = np.repeat([0.0, 9.0], 30)[:, None] + np.random.default_rng(0).normal(size=(60, 1)) * 0.1
    for model in (
        GaussianHMM(6, random_state=0, tol=1e-4),
        GaussianHMM(6, random_state=0, learning="viterbi", tol=1e-4),
        GaussianMixtureHMM(3, 3, random_state=0, tol=1e-4),
        PoissonHMM(6, random_state=0, tol=1e-4),
        DistributionHMM(6, random_state=0, tol=1e-4),
        CategoricalHMM(6, random_state=0, tol=1e-4),
        DurationHMM(GaussianHMM(4, random_state=0, tol=1e-4), max_duration=5),
    ):
        found = model.fit(np.round(np.abs(X)) if isinstance(model, (PoissonHMM, CategoricalHMM)) else X)
        assert (np.diff(found.history_) >= -1e-7).all()
        np.testing.assert_allclose(found.transmat_.sum(axis=1), 1.0)


def test_inputs_of_ragged_sequences() -> None:
    base = known()["symbols"]
    model = InputHMM.from_parameters(base, [A, [[0.5, 0.5], [0.5, 0.5]]])
    parts, inputs = [np.array([0, 1, 1]), np.array([1])], [np.array([0, 1, 0]), np.array([1])]
    want = [model.score(part, u) for part, u in zip(parts, inputs, strict=True)]
    np.testing.assert_allclose(model.score_sequences(parts, inputs), want, atol=1e-12)


def test_large_numbers_as_symbols() -> None:
    """They are labels, not places in a table as long as they are large."""
    X = np.array([5, 10**12, 5, 5, 10**12, 10**12, 5, 5])
    model = CategoricalHMM(2, random_state=0).fit(X)
    assert model.symbols_.tolist() == [5, 10**12]
    assert np.isfinite(model.score(X)) and np.isfinite(model.filter().update(10**12)).all()
    with pytest.raises(ModelError, match="whole numbers"):
        CategoricalHMM(2).fit(np.array([1.0, 2.0, 1e300]))


def test_a_rate_of_zero_gives_no_counts() -> None:
    model = PoissonHMM.from_parameters(PI, A, [[0.0, 1.0], [0.0, 2.0]])
    assert np.isfinite(model.score([[0, 3], [0, 1]]))
    assert model.score([[0, 3], [1, 1]]) == -np.inf
    with pytest.raises(ImpossibleEvidenceError, match="row 1"):
        model.predict_proba([[0, 3], [1, 1]])
    stream = model.filter()
    np.testing.assert_allclose(stream.update([0, 3]), model.filter_proba([[0, 3]])[0], atol=1e-14)
    with pytest.raises(ImpossibleEvidenceError, match="observation 1"):
        stream.update([1, 1])
    with pytest.raises(ModelError, match="whole numbers of at least 0"):
        stream.update([0.5, 1])


@pytest.mark.parametrize("make", [GaussianHMM, GaussianMixtureHMM, lambda n: DistributionHMM(n, families="Normal")])
def test_numbers_whose_squares_overflow_are_refused(make: Any) -> None:
    with pytest.raises(ModelError, match="squares overflow"):
        make(2).fit(np.array([[1.0], [2.0], [1e160], [3.0]]))


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("K", [3, 8])
def test_densities_far_from_zero_and_with_gaps(shape: str, K: int) -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(K)
    d = 5 if K == 3 else 18
    means = 1e6 + 3.0 * rng.normal(size=(K, d))
    roots = rng.normal(size=(K, d, d))
    full = roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(d)
    covars = {"full": full, "tied": full[0], "diag": full.diagonal(axis1=1, axis2=2), "spherical": full[:, 0, 0]}[shape]
    dense = {
        "full": full, "tied": [full[0]] * K, "diag": [np.diag(v) for v in full.diagonal(axis1=1, axis2=2)],
        "spherical": [v * np.eye(d) for v in full[:, 0, 0]],
    }[shape]  # fmt: skip
    chain = np.full(K, 1 / K), np.full((K, K), 1 / K)
    emission = GaussianHMM.from_parameters(*chain, means, covars, covariance_type=shape)._emission()
    X = means[rng.integers(0, K, 3000)] + rng.normal(size=(3000, d))
    X[::7, 2] = np.nan
    X[::11, :2] = np.nan
    X[5] = np.nan
    found = emission.logs(X)
    for t in (0, 1, 5, 7, 11, 77, 2999):
        seen = ~np.isnan(X[t])
        for k in range(K):
            inner = np.ix_(seen, seen)
            want = multivariate_normal.logpdf(X[t, seen], means[k, seen], dense[k][inner]) if seen.any() else 0.0
            assert found[t, k] == pytest.approx(want, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("shape", ["full", "tied", "diag"])
def test_updates_at_once_are_those_in_turn(shape: str) -> None:
    """Products around one center; where digits would cancel, they say so and squares are taken around the means."""
    rng = np.random.default_rng(0)
    K, d = 3, 5
    gamma = rng.dirichlet(np.ones(K), 4000)
    X = rng.normal(size=(4000, d)) + 2.0 * gamma @ rng.normal(size=(K, d))
    wide = {"full": np.array([np.eye(d)] * K), "tied": np.eye(d), "diag": np.ones((K, d))}[shape]
    start = GaussianHMM.from_parameters(
        np.full(K, 1 / K), np.full((K, K), 1 / K), rng.normal(size=(K, d)), wide, covariance_type=shape
    )._emission()
    if shape == "diag":
        one, two = start._moments_at_once(X, gamma), start._moments_in_turn(X, gamma)
        assert one is not None
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    else:
        fast = start._update_at_once(X, gamma)
        assert fast is not None
        slow = start._update_dense(X, gamma)
        np.testing.assert_allclose(fast.means, slow.means, rtol=1e-10)
        np.testing.assert_allclose(fast.covariances, slow.covariances, rtol=1e-9, atol=1e-12)
    which = rng.integers(0, K, 4000)
    tight, hard = 1e6 * rng.normal(size=(K, d))[which] + 1e-1 * rng.normal(size=(4000, d)), np.eye(K)[which]
    assert (start._moments_at_once(tight, hard) if shape == "diag" else start._update_at_once(tight, hard)) is None
    assert np.isfinite(start.update(tight, hard).means).all()


def test_state_spaces_without_noise_or_with_numbers_too_large() -> None:
    y = np.random.default_rng(0).normal(size=(20, 2))
    gaps = y.copy()
    gaps[::2, 0] = np.nan
    exact = np.diag([1.0, 0.0])
    model = KalmanFilter(np.eye(2) * 0.9, np.eye(2), np.eye(2), exact, np.zeros(2), np.eye(2), learn=("Q", "R"))
    learned = model.fit(gaps)  # R is singular among what was observed
    assert np.isfinite(learned.R_).all() and np.isfinite(learned.log_likelihood(gaps))
    for form in ("covariance", "square_root", "information"):
        linear = KalmanFilter(0.9, 1.0, 1.0, 1.0, 0.0, 1.0, form=form)
        for bad, text in ((1e200, "square overflows at row 1"), (np.inf, "infinity at row 1")):
            with pytest.raises(ModelError, match=text):
                linear.filter([0.0, bad])
            with pytest.raises(ModelError, match="finite numbers"):
                linear.stream().update(bad)
        with pytest.raises(ModelError, match="must hold numbers"):
            linear.filter([1.0 + 1.0j])
    free = KalmanFilter(np.eye(2), np.eye(2), [[1.0, 0.0]], 1.0, np.zeros(2), "diffuse", form="information")
    with pytest.raises(ModelError, match="does not determine the state"):
        free.forecast([1.0, 2.0, 3.0])


def test_beliefs_and_rows_that_are_none() -> None:
    door = BayesFilter([0.5, 0.5])
    for bad in ("a", [1.0], [-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0]):
        with pytest.raises(ModelError, match="likelihood must"):
            door.sense(bad)
    for bad in ("a", [0.5, 0.5], [[0.5, 0.6], [0.5, 0.5]], [[np.nan, 1.0], [0.5, 0.5]], [[1.0]]):
        with pytest.raises(ModelError, match="transition"):
            door.act(bad)
    with pytest.raises(ImpossibleEvidenceError, match="observation 0"):
        door.sense([0.0, 0.0])
    assert door.belief.tolist() == [0.5, 0.5] and door.log_likelihood == 0.0
    rain = DynamicBayesianNetwork("rain' -> rain", cpds={"rain": A}, first={"rain": [0.5, 0.5]})
    for bad in (3, "ab", [1]):
        with pytest.raises(ModelError, match="a row is a dict"):
            rain.stream().update(bad)
    particles = ParticleFilter.gaussian(np.sin, np.cos, Q=0.1, R=0.1, m0=0.0, P0=1.0, n_particles=10, random_state=0)
    with pytest.raises(ModelError, match="must hold numbers"):
        particles.filter(["a"])
    with pytest.raises(ModelError, match="sequence of observations"):
        particles.filter(3.0)
    with pytest.raises(ImpossibleEvidenceError, match="all 10 particles"):
        particles.filter([1e200])
