"""Hidden Markov models: against the unrolled network, monotone learning, gaps, bad input."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramgraph as gg
from gramgraph._numerics import compiling
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, StateError
from gramgraph.sequences import CategoricalHMM, GaussianHMM, GaussianMixtureHMM, PoissonHMM, choose_n_states
from gramgraph.sequences._labels import moments_of
from gramgraph.sequences.recursions import _TINY, _in_threads


def small() -> CategoricalHMM:
    return CategoricalHMM.from_parameters(
        [0.5, 0.5], [[0.25, 0.75], [0.5, 0.5]], [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], symbols=["R", "G", "B"]
    )


def rolls_model() -> CategoricalHMM:
    return CategoricalHMM.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[1 / 6] * 6, [0.1] * 5 + [0.5]], symbols=range(1, 7)
    )


# --- agreement with the unrolled network ----------------------------------------------------------------------------


def test_two_steps_of_the_text() -> None:
    model = small()
    np.testing.assert_allclose(model.predict_proba(["R", "G"]), [[0.7, 0.3], [0.2, 0.8]], rtol=0, atol=1e-14)
    net = model.to_network(2)
    assert model.score(["R", "G"]) == pytest.approx(net.log_evidence({"x1": "R", "x2": "G"}), abs=1e-12)


def test_answers_are_those_of_the_unrolled_network(rng: np.random.Generator) -> None:
    K, M, T = 4, 5, 9
    model = CategoricalHMM.from_parameters(
        rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K), rng.dirichlet(np.ones(M), K)
    )
    X = rng.integers(0, M, T)
    X[[2, 5]] = -1
    net = model.to_network(T)
    seen = {f"x{t + 1}": str(x) for t, x in enumerate(X) if x >= 0}
    ans = net.query([f"z{t + 1}" for t in range(T)], evidence=seen)
    want = np.array([ans[f"z{t + 1}"].probabilities for t in range(T)])
    np.testing.assert_allclose(model.predict_proba(X), want, rtol=0, atol=1e-12)
    assert model.score(X) == pytest.approx(ans.log_evidence, abs=1e-11)
    full = np.where(X < 0, 0, X)
    best = net.map_query(evidence={f"x{t + 1}": str(x) for t, x in enumerate(full)})
    value, states = model.decode(full)
    assert [best.assignment[f"z{t + 1}"] for t in range(T)] == [str(k) for k in states]
    assert value == pytest.approx(best.log_prob, abs=1e-11)
    pairs = np.zeros((K, K))
    for t in range(1, T):
        both = net.query([(f"z{t}", f"z{t + 1}")], evidence=seen)[(f"z{t}", f"z{t + 1}")]
        pairs += both.probabilities.reshape(K, K)
    np.testing.assert_allclose(model.posteriors(X).transition_counts, pairs, rtol=0, atol=1e-11)


def test_casino_of_the_datasets() -> None:
    net, model = gg.datasets.casino(12), rolls_model()
    X = [6, 6, 1, 6, 3, 2, 5, 4, 6, 6, 6, 1]
    ans = net.query([f"die{t}" for t in range(1, 13)], evidence={f"roll{t + 1}": str(x) for t, x in enumerate(X)})
    want = [ans[f"die{t}"].prob("loaded") for t in range(1, 13)]
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], want, rtol=0, atol=1e-12)


def test_casino_of_the_book(shared_data: Path) -> None:
    path = shared_data / "seq" / "casino.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    book = json.loads(path.read_text())
    X = [int(c) for c in book["rolls"]]
    model = rolls_model()
    found = "".join("FL"[k] for k in model.predict(X))
    assert found == book["published_viterbi"]
    reference = book["reference"]["uniform"]
    assert model.score(X) == pytest.approx(reference["loglik"], abs=1e-9)
    assert model.decode(X)[0] == pytest.approx(reference["viterbi_logprob"], abs=1e-9)
    right = np.mean([a == b for a, b in zip(found, book["true_die"], strict=True)])
    assert right > 0.75
    fitted = CategoricalHMM(2, symbols=range(1, 7), n_init=10, max_iter=500, random_state=0).fit(X)
    assert fitted.score(X) > model.score(X)  # the maximum of the likelihood is above the truth
    loaded = int(fitted.emissionprob_[:, 5].argmax())
    assert 0.4 < fitted.emissionprob_[loaded, 5] < 0.7
    assert fitted.emissionprob_[1 - loaded, 5] == pytest.approx(1 / 6, abs=0.05)


# --- learning -------------------------------------------------------------------------------------------------------


def made(kind: str, K: int, **options: Any) -> Any:
    options = {"tol": 0.0, "max_iter": 15, "random_state": 0, **options}
    if kind == "categorical":
        return CategoricalHMM(K, **options)
    if kind.startswith("mixture "):
        return GaussianMixtureHMM(K, 2, covariance_type=kind.split()[1], **options)
    return PoissonHMM(K, **options) if kind == "poisson" else GaussianHMM(K, covariance_type=kind, **options)


def data_of(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    if kind == "categorical":
        return rng.integers(0, 4, (n, 1)).astype(float)
    if kind == "poisson":
        return rng.poisson(rng.choice([1.0, 8.0], (n, 2))).astype(float)
    return rng.normal(size=(n, 2)) * [1.0, 30.0] + rng.choice([0.0, 4.0], (n, 1))


KINDS = ["categorical", "poisson", "full", "diag", "spherical", "tied"]


MIXTURES = ["mixture full", "mixture diag", "mixture tied"]


@pytest.mark.parametrize("kind", KINDS + MIXTURES)
@settings(max_examples=8)
@given(st.integers(1, 4), st.booleans(), st.booleans(), st.integers(0, 1000))
def test_the_objective_never_falls(kind: str, K: int, gaps: bool, prior: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = data_of(kind, rng, 60)
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    options: dict[str, Any] = {"transition_prior": 1.5, "start_prior": 2.0} if prior else {}
    if prior:
        options |= {"categorical": {"emission_prior": 1.2}, "poisson": {"rate_prior": (2.0, 0.5)}}.get(kind, {})
    model = made(kind, K, **options).fit(X, [10, 30, 20])
    assert (np.diff(model.history_) >= -1e-8 * np.abs(model.history_[:-1])).all()
    assert model.startprob_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)
    assert model.score(X, [10, 30, 20]) >= model.log_likelihood_ - (1.0 if prior or kind not in KINDS[:2] else 1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_found_again(kind: str) -> None:
    A = np.array([[0.95, 0.05], [0.1, 0.9]])
    truth = {
        "categorical": lambda: CategoricalHMM.from_parameters([0.5, 0.5], A, [[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]),
        "poisson": lambda: PoissonHMM.from_parameters([0.5, 0.5], A, [[1.0], [6.0]]),
        "full": lambda: GaussianHMM.from_parameters(
            [0.5, 0.5], A, [[0, 0], [3, 1]], [[[1, 0.5], [0.5, 1]], [[1, -0.3], [-0.3, 0.5]]]
        ),
        "diag": lambda: GaussianHMM.from_parameters(
            [0.5, 0.5], A, [[0, 0], [3, 1]], [[1, 2], [0.5, 1]], covariance_type="diag"
        ),
        "spherical": lambda: GaussianHMM.from_parameters(
            [0.5, 0.5], A, [[0, 0], [3, 1]], [1, 0.5], covariance_type="spherical"
        ),
        "tied": lambda: GaussianHMM.from_parameters(
            [0.5, 0.5], A, [[0, 0], [3, 1]], [[1, 0.4], [0.4, 1]], covariance_type="tied"
        ),
    }[kind]()
    X, states = truth.sample(500, n_sequences=10, random_state=3)
    X = X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    lengths = [500] * 10
    model = made(kind, 2, max_iter=200, tol=1e-3, n_init=3).fit(X, lengths)
    assert model.score(X, lengths) >= truth.score(X, lengths) - 1.0
    first = {"categorical": "emissionprob_", "poisson": "rates_"}.get(kind, "means_")
    order = np.argsort(getattr(model, first)[:, 0]), np.argsort(getattr(truth, first)[:, 0])
    np.testing.assert_allclose(getattr(model, first)[order[0]], getattr(truth, first)[order[1]], atol=0.3, rtol=0.1)
    np.testing.assert_allclose(
        model.transmat_[np.ix_(order[0], order[0])], truth.transmat_[np.ix_(order[1], order[1])], atol=0.04
    )
    right = (np.argsort(order[0])[model.predict(X, lengths)] == np.argsort(order[1])[states]).mean()
    assert right > 0.85
    if kind == "full":
        np.testing.assert_allclose(model.covars_[order[0]], truth.covars_[order[1]], atol=0.15)
    if kind == "tied":
        np.testing.assert_allclose(model.covars_, truth.covars_, atol=0.15)


def test_mixtures_are_sums_of_their_components() -> None:
    rng = np.random.default_rng(0)
    A = [[0.9, 0.1], [0.2, 0.8]]
    means, weights = rng.normal(size=(2, 3, 2)), rng.dirichlet(np.ones(3), 2)
    B = rng.normal(size=(2, 3, 2, 2))
    covs = B @ B.transpose(0, 1, 3, 2) + np.eye(2)
    model = GaussianMixtureHMM.from_parameters([0.5, 0.5], A, means, covs, weights=weights)
    # the same as a plain model with a state for every component
    flat_A = np.repeat(np.repeat(np.array(A), 3, axis=0), 3, axis=1) * weights.ravel()
    start = np.repeat([0.5, 0.5], 3) * weights.ravel()
    plain = GaussianHMM.from_parameters(start, flat_A, means.reshape(6, 2), covs.reshape(6, 2, 2))
    X = model.sample(80, random_state=0)[0]
    X[3, 0] = np.nan
    assert model.score(X) == pytest.approx(plain.score(X), abs=1e-10)
    want = plain.predict_proba(X).reshape(-1, 2, 3).sum(axis=2)
    np.testing.assert_allclose(model.predict_proba(X), want, rtol=0, atol=1e-11)
    assert model.filter().update(X[0]).sum() == pytest.approx(1.0)
    truth = GaussianMixtureHMM.from_parameters(
        [0.5, 0.5], A, [[[-5.0], [5.0]], [[0.0], [0.0]]], np.ones((2, 2)), covariance_type="spherical"
    )
    Y, _ = truth.sample(3000, random_state=1)
    found = GaussianMixtureHMM(2, 2, covariance_type="spherical", n_init=6, random_state=0).fit(Y)
    assert found.score(Y) > truth.score(Y) - 1.0
    with pytest.raises(ModelError, match="must have shapes"):
        GaussianMixtureHMM.from_parameters([1.0], [[1.0]], [[[0.0], [1.0]]], [[1.0]], covariance_type="spherical")


def test_gaps_of_full_covariances_are_integrated_out() -> None:
    cov = np.array([[[2.0, 0.8], [0.8, 1.0]], [[1.0, -0.5], [-0.5, 1.5]]])
    A = [[0.7, 0.3], [0.4, 0.6]]
    model = GaussianHMM.from_parameters([0.3, 0.7], A, [[0.0, 1.0], [2.0, -1.0]], cov)
    X = np.array([[0.3, np.nan], [np.nan, np.nan], [np.nan, 0.2], [1.0, -1.0]])
    grid = np.linspace(-14, 14, 281)
    total = 0.0
    step = grid[1] - grid[0]
    # a value that is summed over a grid instead
    filled = np.tile(X, (len(grid), 1, 1))
    filled[:, 0, 1] = grid
    scores = model.score_sequences(list(filled))
    total = np.logaddexp.reduce(scores) + np.log(step)
    assert model.score(X) == pytest.approx(float(total), abs=1e-8)


def test_zeros_and_masks_stay() -> None:
    rng = np.random.default_rng(1)
    X = [np.sort(rng.integers(0, 3, 20)) for _ in range(15)]
    model = CategoricalHMM(3, transition_mask="left-right", transition_prior=2.0, random_state=0).fit(X)
    assert model.startprob_.tolist() == [1.0, 0.0, 0.0]
    assert (model.transmat_[~np.triu(np.ones((3, 3), bool))] == 0).all() and model.transmat_[0, 2] == 0
    assert model.transmat_[2].tolist() == [0.0, 0.0, 1.0]
    ring = np.roll(np.eye(3), 1, axis=1) + np.eye(3)
    free = GaussianHMM(3, transition_mask=ring, random_state=0, transition_prior=1.5).fit(rng.normal(size=(80, 1)))
    assert (free.transmat_[ring == 0] == 0).all() and (free.transmat_[ring == 1] > 0).all()
    assert (np.diff(model.predict(X[0])) >= 0).all()
    assert free.n_parameters_ == 2 + 3 + 3 + 3
    signal = np.repeat([0.0, 5.0, 2.0], 30)[:, None] + rng.normal(size=(90, 1)) * 0.5
    lr = GaussianHMM(3, transition_mask="left-right").fit([signal, signal[10:80]])
    np.testing.assert_allclose(lr.means_[:, 0], [0, 5, 2], atol=0.4)


def test_start_from_a_model_and_fixed_parts() -> None:
    X, _ = rolls_model().sample(400, random_state=0)
    start = rolls_model()
    model = CategoricalHMM(2, symbols=range(1, 7), init=start, fixed=("emissions", "startprob"), max_iter=30).fit(X)
    assert (model.emissionprob_ == start.emissionprob_).all() and (model.startprob_ == start.startprob_).all()
    assert model.history_[0] == pytest.approx(start.score(X), rel=1e-12)
    assert not (model.transmat_ == start.transmat_).all()


def test_lengths_and_lists_are_the_same_and_threads_too(rng: np.random.Generator) -> None:
    parts = [rng.normal(size=(n, 2)) for n in (5, 1, 30, 12)]
    lengths = [len(part) for part in parts]
    a = GaussianHMM(2, random_state=0).fit(parts)
    b = GaussianHMM(2, random_state=0, n_jobs=2).fit(np.concatenate(parts), lengths)
    np.testing.assert_allclose(a.means_, b.means_, rtol=1e-9)  # threads add in another order
    assert a.score(parts) == pytest.approx(b.score(np.concatenate(parts), lengths), rel=1e-9)
    np.testing.assert_allclose(a.score_sequences(parts), [a.score(part) for part in parts], rtol=1e-12)
    frame = __import__("pandas").DataFrame(np.concatenate(parts), columns=["u", "v"])
    assert GaussianHMM(2, random_state=0).fit(frame, lengths).score(frame, lengths) == a.score(parts)


def test_posterior_decoding_and_sampling() -> None:
    model = rolls_model()
    X, _ = model.sample(50, random_state=2)
    value, states = model.decode(X, algorithm="posterior")
    p = model.predict_proba(X)
    assert (states == p.argmax(axis=1)).all()
    assert value == pytest.approx(np.log(p.max(axis=1)).sum())
    assert model.decode(X)[0] < model.score(X)
    drawn = model.sample_states(X, n_samples=4000, random_state=0)
    assert np.abs((drawn == 1).mean(axis=0) - p[:, 1]).max() < 0.05
    a, b = model.sample(30, n_sequences=2, random_state=5), model.sample(30, n_sequences=2, random_state=5)
    assert (a[0] == b[0]).all() and a[0].shape == (60, 1)


def test_number_of_states() -> None:
    X, _ = GaussianHMM.from_parameters(
        np.ones(3) / 3, 0.9 * np.eye(3) + 0.1 / 3, [[0.0], [5.0], [10.0]], [[[1.0]]] * 3
    ).sample(400, random_state=0)
    found = choose_n_states(GaussianHMM(n_init=3, random_state=0), X, candidates=range(1, 6))
    assert found.n_states == 3
    assert found.model.bic(X) == found.values[3]
    with pytest.raises(ModelError, match="Did you mean 'bic'"):
        choose_n_states(GaussianHMM(), X, criterion="bicc")


# --- scikit-learn's contract ----------------------------------------------------------------------------------------


class PlainFit(GaussianHMM):
    """`fit(X, y)` as scikit-learn's checks call it: the second argument of ours is `lengths`, as in the field."""

    def fit(self, X: Any, y: Any = None) -> Any:
        return super().fit(X)

    def partial_fit(self, X: Any, y: Any = None, **options: Any) -> Any:
        return super().partial_fit(X)

    def score(self, X: Any, y: Any = None) -> float:
        return super().score(X)


ROWS = "rows of a sequence depend on each other: another order or a part of them is another sequence"


@parametrize_with_checks(
    [PlainFit(2, random_state=0), PlainFit(2, covariance_type="diag", random_state=0)],
    expected_failed_checks=lambda estimator: {
        "check_methods_sample_order_invariance": ROWS,
        "check_methods_subset_invariance": ROWS,
    },
)
def test_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_clone_and_parameters(kind: str) -> None:
    model = made(kind, 3, n_init=2)
    again = clone(model)
    assert again.get_params() == model.get_params()
    X = data_of(kind, np.random.default_rng(0), 50)
    np.testing.assert_array_equal(model.fit(X).transmat_, again.fit(X).transmat_)  # one seed, one answer
    with pytest.raises(Exception, match="not fitted"):
        clone(model).predict(X)


# --- bad input ------------------------------------------------------------------------------------------------------


def test_symbols() -> None:
    model = small()
    with pytest.raises(StateError, match="row 1: 'X' is not a state of the symbols"):
        model.score(["R", "X"])
    assert model.score(["R", None, "G"]) < 0
    assert model.score(np.array(["R", None, "G"], dtype=object)) == model.score(["R", None, "G"])
    with pytest.raises(StateError, match="7 is not a state"):
        rolls_model().predict([1, 7])
    with pytest.raises(ModelError, match="whole numbers or labels, but X holds 1.5"):
        rolls_model().predict([1.0, 1.5])
    with pytest.raises(ModelError, match="column of symbols"):
        CategoricalHMM(2).fit(np.zeros((4, 2), int))
    with pytest.raises(StateError, match="row 0: -2"):
        CategoricalHMM(2).fit([-2, 0, 1])
    assert CategoricalHMM(2, random_state=0).fit("abcabcabcaab").symbols_.tolist() == ["a", "b", "c"]
    sure = CategoricalHMM.from_parameters([1.0], [[1.0]], [[1.0, 0.0]])
    assert sure.score([0, 1]) == -np.inf
    with pytest.raises(ImpossibleEvidenceError, match="its row 1"):
        sure.predict_proba([0, 1])


@pytest.mark.parametrize(
    "model, X, lengths, text",
    [
        (GaussianHMM(5), np.zeros((3, 1)), None, "only n_samples=3"),
        (CategoricalHMM(5), [0, 1, 0], None, "only 3 symbols"),
        (PoissonHMM(5), np.zeros((3, 1)), None, "only n_samples=3"),
        (GaussianHMM(0), np.zeros((3, 1)), None, "n_states must be a whole number of at least 1"),
        (GaussianHMM(2.0), np.zeros((3, 1)), None, "n_states must be a whole number"),
        (GaussianHMM(2), np.zeros((3, 1)), [1, 1], "add up to 2, but X has 3"),
        (GaussianHMM(2), [np.zeros((3, 1)), np.zeros((0, 1))], None, "sequence 1 is empty"),
        (GaussianHMM(2), [np.zeros((3, 1)), np.zeros((3, 2))], None, "sequence 1 has rows of shape (2,)"),
        (GaussianHMM(2), [np.zeros((3, 1)), np.zeros((3, 1))], [3, 3], "leave lengths out"),
        (GaussianHMM(2), np.full((3, 1), np.inf), None, "infinity"),
        (GaussianHMM(2), np.full((3, 1), np.nan), None, "no observed value"),
        (GaussianHMM(2, covariance_type="dig"), np.zeros((3, 1)), None, "Did you mean 'diag'"),
        (GaussianHMM(2, init="kmean"), np.zeros((3, 1)), None, "Did you mean 'kmeans'"),
        (GaussianHMM(2, fixed="startprob"), np.zeros((3, 1)), None, "list of names"),
        (GaussianHMM(2, transition_prior=0.5), np.zeros((3, 1)), None, "at least 1 everywhere"),
        (GaussianHMM(2, transition_mask=np.zeros((2, 2))), np.zeros((3, 1)), None, "no step leave state 0"),
        (GaussianHMM(2, transition_mask="right"), np.zeros((3, 1)), None, "'left-right'"),
        (GaussianHMM(2, covariance_prior=-1), np.zeros((3, 1)), None, "covariance_prior"),
        (GaussianHMM(2, covariance_prior=0), np.zeros((3, 1)), None, "larger covariance_prior"),
        (PoissonHMM(2), [[1.0], [-1.0], [2.0]], None, "row 1, column 0 of X is -1"),
        (PoissonHMM(2), [[1.0], [0.5], [2.0]], None, "row 1, column 0 of X is 0.5"),
        (PoissonHMM(2, rate_prior=3), [[1.0], [0.0], [2.0]], None, "(shape, rate)"),
        (CategoricalHMM(2), [np.nan, -1, np.nan], None, "every row is missing"),
    ],
)  # fmt: skip
def test_bad_input(model: Any, X: Any, lengths: Any, text: str) -> None:
    import re

    with pytest.raises(ValueError, match=re.escape(text)):
        model.fit(X, lengths)


def test_degenerate_data_is_fitted() -> None:
    """Constant columns, more states than different points, one row a sequence: the prior keeps it all finite."""
    for kind in ("full", "diag", "spherical", "tied"):
        model = GaussianHMM(3, covariance_type=kind, random_state=0).fit(np.ones((6, 2)))
        assert np.isfinite(model.score(np.ones((6, 2))))
        one = GaussianHMM(2, covariance_type=kind, random_state=0).fit([[[0.0]], [[1.0]], [[5.0]]])
        np.testing.assert_allclose(one.transmat_.sum(axis=1), 1.0)
    far = GaussianHMM(2, random_state=0).fit(np.concatenate([np.zeros((20, 1)), np.full((20, 1), 1e12)]))
    assert np.isfinite(far.history_).all()
    outlier = far.score([[1e15]])
    assert np.isfinite(outlier) and outlier < -1e3


@pytest.mark.parametrize("kind", ["full", "diag", "spherical", "tied"])
def test_questions_see_numbers_that_were_changed_in_place(kind) -> None:
    """What was checked for one question is used for the next only while every number is the same."""
    covars = {
        "full": np.tile(np.eye(2), (2, 1, 1)),
        "diag": np.ones((2, 2)),
        "spherical": np.ones(2),
        "tied": np.eye(2),
    }
    X = np.random.default_rng(0).normal(size=(30, 2))

    def made(start, transition, means, covs):
        return GaussianHMM.from_parameters(start, transition, means, covs, covariance_type=kind)

    model = made([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.0, 0.0], [1.0, 1.0]], covars[kind])
    for change in ("startprob_", "transmat_", "means_", "covars_"):
        before = model.score(X), model.predict_proba(X)
        part = getattr(model, change)
        part[...] = part[::-1].copy() if change in ("startprob_", "transmat_") else part * 1.7
        if change == "startprob_":
            part[:] = [0.9, 0.1]
        fresh = made(model.startprob_, model.transmat_, model.means_.copy(), model.covars_.copy())
        assert model.score(X) == fresh.score(X) != before[0]
        np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
    model.transmat_[0, 0] = 2.0
    with pytest.raises(ModelError, match="row 0 of transmat sums to"):
        model.predict(X)


@pytest.mark.parametrize("K", [4, 32])
def test_threads_change_no_bit(K) -> None:
    rng = np.random.default_rng(K)
    lengths = rng.integers(1, 400, size=400 if K == 4 else 40)
    X = rng.normal(size=(int(lengths.sum()), 2))
    parts = np.full(K, 1.0 / K), rng.dirichlet(np.ones(K), K), rng.normal(size=(K, 2)), np.tile(np.eye(2), (K, 1, 1))
    assert len(X) * K * K > _TINY  # else all of it would be done by one thread
    one, two = (GaussianHMM.from_parameters(*parts, n_jobs=jobs) for jobs in (1, 2))
    with compiling.tier("compiled"):  # bits are compared: all by the same loops
        _same_bits(one, two, X, lengths)


def _same_bits(one: GaussianHMM, two: GaussianHMM, X: np.ndarray, lengths: np.ndarray) -> None:
    np.testing.assert_array_equal(one.predict(X, lengths), two.predict(X, lengths))
    np.testing.assert_array_equal(one.score_sequences(X, lengths), two.score_sequences(X, lengths))
    a, b = one.posteriors(X, lengths), two.posteriors(X, lengths)
    np.testing.assert_array_equal(a.probabilities, b.probabilities)
    np.testing.assert_array_equal(a.transition_counts, b.transition_counts)
    alone = np.concatenate([one.predict(part) for part in np.split(X, np.cumsum(lengths)[:-1])[:20]])
    np.testing.assert_array_equal(one.predict(X, lengths)[: len(alone)], alone)
    np.testing.assert_allclose(a.transition_counts.sum(), len(X) - len(lengths), rtol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_symbols_of_many_parts_are_those_of_each_sequence(n_jobs) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 400, size=360)
    X = rng.integers(0, 5, size=int(lengths.sum()))
    parts = np.full(4, 0.25), rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(5), 4)
    model = CategoricalHMM.from_parameters(*parts, n_jobs=n_jobs)
    assert len(X) * 16 > _TINY
    with compiling.tier("compiled"):
        found, scores = model.posteriors(X, lengths), model.score_sequences(X, lengths)
        alone = [model.posteriors(part) for part in np.split(X, np.cumsum(lengths)[:-1])]
    np.testing.assert_allclose(scores, [one.log_likelihood for one in alone], rtol=1e-12)
    np.testing.assert_allclose(found.probabilities, np.concatenate([one.probabilities for one in alone]), atol=1e-12)
    np.testing.assert_allclose(found.transition_counts, sum(one.transition_counts for one in alone), rtol=1e-9)


def test_an_error_of_one_thread_is_told_and_none_is_left_behind() -> None:
    def work(lo: int, hi: int) -> None:
        if lo == 3:
            raise ValueError("part 3")

    before = threading.active_count()
    with pytest.raises(ValueError, match="part 3"):
        _in_threads(np.arange(9), 3, work)
    assert threading.active_count() == before


@pytest.mark.parametrize("tier", ["plain", "compiled"])
def test_moments_of_columns_with_gaps(tier: str) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 5.0, 0.1] + 2.0
    X[::3, 1] = X[::7] = np.nan
    with compiling.tier(tier):
        rows, (counts, means, variances) = moments_of(X)
    assert rows == np.count_nonzero(~np.isnan(X).all(axis=1))
    np.testing.assert_array_equal(counts, (~np.isnan(X)).sum(axis=0))
    np.testing.assert_allclose(means, np.nanmean(X, axis=0))
    np.testing.assert_allclose(variances, np.nanvar(X, axis=0))


def test_sequences_are_ordered_by_length_and_content():
    """As bytes say: also where the first rows of several are the same."""
    from gramgraph.sequences._training import in_own_order

    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 2, (n, 1)).astype(float) for n in rng.integers(1, 14, 40)]
    parts += [np.concatenate([np.zeros((12, 1)), tail]) for tail in rng.integers(0, 3, (9, 3, 1)).astype(float)]
    data, offsets = np.concatenate(parts), np.cumsum([0, *map(len, parts)])
    found, ends, rows = in_own_order(data, offsets)
    wanted = sorted(parts, key=lambda part: (len(part), part.tobytes()))
    assert np.array_equal(found, np.concatenate(wanted)) and np.array_equal(found, data[rows])
    assert np.diff(ends).tolist() == list(map(len, wanted))
    assert in_own_order(found, ends)[2] is None
