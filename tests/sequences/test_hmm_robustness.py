"""Ragged, empty, short and broken sequences, for every kind of model: right answers or clear errors."""

from __future__ import annotations

import tracemalloc
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
    GaussianHMM,
    GaussianMixtureHMM,
    InputHMM,
    KalmanFilter,
    MultiCategoricalHMM,
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


@pytest.mark.parametrize("n", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_streams_do_not_grow(n: int) -> None:
    """What is kept does not depend on how many updates there were."""
    door = BayesFilter([0.5, 0.5])
    streams = [
        known()["gauss"].filter().update,
        known()["symbols"].filter().update,
        KalmanFilter(1.0, 1.0, 1.0, 1.0, 0.0, 1.0).stream().update,
        lambda z: (door.sense([0.6, 0.4 + 0.1 * z]), door.act(A)),
    ]
    for update in streams:
        for z in range(200):
            update(z % 2)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for z in range(n):
            update(z % 2)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 16_384
