"""Laws of sequence models: what must not matter does not, and what is learned belongs to the model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph.exceptions import ModelWarning
from gramgraph.sequences import (
    CategoricalHMM,
    DistributionHMM,
    DurationHMM,
    GaussianHMM,
    GaussianMixtureHMM,
    InputHMM,
    MultiCategoricalHMM,
    PoissonHMM,
)

SHORT: dict[str, Any] = {"max_iter": 4, "tol": 0.0, "random_state": 3}
KINDS: dict[str, Any] = {
    "categorical": lambda: CategoricalHMM(2, n_init=2, **SHORT),
    "distribution": lambda: DistributionHMM(2, families="Gamma", **SHORT),
    "duration": lambda: DurationHMM(GaussianHMM(2, **SHORT), max_duration=3),
    "gaussian": lambda: GaussianHMM(2, **SHORT),
    "gaussian random": lambda: GaussianHMM(2, init="random", **SHORT),
    "input": lambda: InputHMM(GaussianHMM(2, **SHORT), n_inputs=2),
    "mixture": lambda: GaussianMixtureHMM(2, 2, **SHORT),
    "multi": lambda: MultiCategoricalHMM(2, **SHORT),
    "poisson": lambda: PoissonHMM(2, **SHORT),
}


def sequences_for(kind: str, rng: np.random.Generator, sizes: list[int]) -> list[tuple[np.ndarray, ...]]:
    """Sequences with gaps, each with its inputs where the model takes them."""
    out: list[tuple[np.ndarray, ...]] = []
    for n in sizes:
        if kind in ("categorical", "multi"):
            x = rng.integers(-1, 3, (n, 2 if kind == "multi" else 1))
        elif kind == "poisson":
            x = rng.poisson(4.0, (n, 1)).astype(float)
        else:
            x = rng.gamma(2.0, 1.0, (n, 1 if kind == "distribution" else 2))
        if kind not in ("categorical", "multi"):
            x[rng.random(x.shape) < 0.1] = np.nan
        out.append((x, rng.integers(0, 2, n)) if kind == "input" else (x,))
    return out


def learned(kind: str, sequences: list[tuple[np.ndarray, ...]]) -> np.ndarray:
    lengths = [len(part[0]) for part in sequences]
    parts = [np.concatenate(part) for part in zip(*sequences, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = KINDS[kind]().fit(*parts, lengths)
    return np.concatenate([model.history_, model.startprob_, model.transmat_.ravel()])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=2)
@given(st.lists(st.integers(1, 9), min_size=3, max_size=6), st.randoms(use_true_random=False), st.integers(0, 999))
def test_the_order_of_sequences_does_not_matter(kind: str, sizes: list[int], shuffler: Any, seed: int) -> None:
    sequences = sequences_for(kind, np.random.default_rng(seed), [12, *sizes])
    shuffled = list(sequences)
    shuffler.shuffle(shuffled)
    np.testing.assert_allclose(learned(kind, shuffled), learned(kind, sequences), rtol=1e-9, atol=1e-12)


def test_batches_of_a_stream_have_no_order_either() -> None:
    sequences = [x for (x,) in sequences_for("mixture", np.random.default_rng(0), [30, 20, 25])]
    a, b = (
        GaussianMixtureHMM(2, 2, **SHORT).partial_fit(part).partial_fit(sequences)
        for part in (sequences, sequences[::-1])
    )
    np.testing.assert_allclose(a.means_, b.means_, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_more_numbers_than_data_is_said(kind: str) -> None:
    rng = np.random.default_rng(0)
    few, many = sequences_for(kind, rng, [3])[0], sequences_for(kind, rng, [200])[0]
    if kind in ("categorical", "multi"):
        few[0][:] = np.arange(3)[:, None]
    with pytest.warns(ModelWarning, match=r"free numbers, but X only \d+ observed ones.*degenerate solution"):
        KINDS[kind]().fit(*few)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        KINDS[kind]().fit(*many)


def test_what_is_fixed_is_not_counted() -> None:
    x = np.array([0.0, 0.1, 5.0, 5.1, 0.0, 5.0])[:, None]
    start = GaussianHMM.from_parameters([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[0.0], [5.0]], [[[1.0]], [[1.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        model = GaussianHMM(2, init=start, fixed=["emissions"]).fit(x)
    model.means_[:] = 99.0
    assert start.means_.ravel().tolist() == [0.0, 5.0]  # the model has arrays of its own
    with pytest.warns(ModelWarning, match="7 free numbers"):
        GaussianHMM(2, init=start).fit(x)


def test_models_keep_their_numbers_when_the_caller_writes_over_his() -> None:
    start, A, means = np.array([0.5, 0.5]), np.full((2, 2), 0.5), np.array([[[0.0], [1.0]], [[2.0], [3.0]]])
    covars, weights = np.ones((2, 2)), np.array([[0.5, 0.5], [0.25, 0.75]])
    model = GaussianMixtureHMM.from_parameters(start, A, means, covars, weights=weights, covariance_type="spherical")
    table, symbols = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array(["a", "b"])
    casino = CategoricalHMM.from_parameters(start, A, table, symbols=symbols)
    waits = DurationHMM.from_parameters(casino, [[0.5, 0.5], [1.0, 0.0]], transmat=[[0, 1], [1, 0]])
    x, y = np.array([[0.5], [2.5]]), list("abba")
    before = model.score(x), casino.score(y), waits.score(y)
    for part in (start, A, means, covars, weights, table):
        part[:] = 0.125
    symbols[:] = "z"
    casino_score = casino.score(y)
    casino.emissionprob_[:] = 0.5
    assert (model.score(x), casino_score, waits.score(y)) == before
