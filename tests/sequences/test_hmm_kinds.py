"""Hidden Markov models of all emissions, durations and inputs: against sums over paths and unrolled networks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import gramgraph.distributions as dist
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, StateError
from gramgraph.sequences import (
    CategoricalHMM,
    DistributionHMM,
    DurationHMM,
    GaussianHMM,
    GaussianMixtureHMM,
    InputHMM,
    KalmanFilter,
    MultiCategoricalHMM,
    PoissonHMM,
    choose_n_states,
    recursions,
)


def chain(rng: np.random.Generator, K: int) -> tuple[Any, Any]:
    return rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K)


def paths_of(start: Any, A: Any, logs: Any) -> list[tuple[float, tuple[int, ...]]]:
    """(log p(path, x), path) of all paths, best first."""
    T, K = logs.shape
    out = []
    for path in itertools.product(range(K), repeat=T):
        p = start[path[0]] * np.prod([A[a, b] for a, b in itertools.pairwise(path)])
        with np.errstate(divide="ignore"):
            out.append((float(np.log(p) + sum(logs[t, k] for t, k in enumerate(path))), path))
    return sorted(out, key=lambda pair: -pair[0])


# --- several best paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 5, 300])
def test_best_paths_are_those_of_all_paths(k: int) -> None:
    rng = np.random.default_rng(k)
    start, A = chain(rng, 3)
    A[0, 2] = 0.0
    A /= A.sum(axis=1, keepdims=True)
    model = CategoricalHMM.from_parameters(start, A, rng.dirichlet(np.ones(4), 3))
    X = rng.integers(0, 4, 9)
    values, states = model.decode(X, [5, 4], k=k)
    assert values.shape == (k, 2) and states.shape == (k, 9)
    for s, rows in enumerate([slice(0, 5), slice(5, 9)]):
        want = [pair for pair in paths_of(start, A, np.log(model.emissionprob_.T[X[rows]])) if np.isfinite(pair[0])]
        n = min(k, len(want))
        np.testing.assert_allclose(values[:n, s], [value for value, _ in want[:n]], rtol=0, atol=1e-11)
        of = {path: value for value, path in want}
        found = [tuple(path[rows]) for path in states[:n].tolist()]
        assert len(set(found)) == n
        np.testing.assert_allclose([of[path] for path in found], values[:n, s], rtol=0, atol=1e-11)
        assert (values[n:, s] == -np.inf).all() and (states[n:, rows] == -1).all()
    assert values[0].sum() == pytest.approx(model.decode(X, [5, 4])[0], abs=1e-12)


def test_best_paths_want_a_count() -> None:
    model = CategoricalHMM.from_parameters([1.0], [[1.0]], [[0.5, 0.5]])
    with pytest.raises(ModelError, match="k must be a whole number"):
        model.decode([0, 1], k=0)
    with pytest.raises(ModelError, match="viterbi"):
        model.decode([0, 1], k=2, algorithm="posterior")


@pytest.mark.parametrize("K", [1, 2, 3, 5, 7, 8, 9, 12])
def test_the_best_path_for_few_states(K: int) -> None:
    """Up to eight states have loops of their own, and eight with symbols another one; zeros and ties included."""
    rng = np.random.default_rng(K)
    start, A = chain(rng, K)
    A[0, -1] = 0.0 if K > 1 else 1.0
    A[K // 2] = 1.0 / K  # equal steps
    A /= A.sum(axis=1, keepdims=True)
    model = CategoricalHMM.from_parameters(start, A, rng.dirichlet(np.ones(4), K))
    X = rng.integers(-1, 4, 40)
    with np.errstate(divide="ignore"):
        log_A, columns = np.log(A), np.log(np.vstack([model.emissionprob_.T, np.ones(K)]))
    logs = columns[X]
    value = np.log(start) + logs[0]
    for row in logs[1:20]:
        value = (value[:, None] + log_A).max(axis=0) + row
    again = np.log(start) + logs[20]
    for row in logs[21:]:
        again = (again[:, None] + log_A).max(axis=0) + row
    found, path = model.decode(X, [20, 20])
    assert found == pytest.approx(value.max() + again.max(), abs=1e-11)
    states, best = recursions.viterbi(start, A, logs, [20, 20])
    np.testing.assert_array_equal(states, path)
    of = sum(np.log(start[p[0]]) + log_A[p[:-1], p[1:]].sum() for p in (path[:20], path[20:]))
    assert of + logs[np.arange(40), path].sum() == pytest.approx(found, abs=1e-11)
    assert best.sum() == pytest.approx(found, abs=1e-11)


# --- networks -------------------------------------------------------------------------------------------------------


def agree(model: Any, X: Any, evidence: dict[str, Any], net: Any, atol: float) -> None:
    T = len(X)
    ans = net.query([f"z{t + 1}" for t in range(T)], evidence=evidence)
    want = np.array([ans[f"z{t + 1}"].probabilities for t in range(T)])
    np.testing.assert_allclose(model.predict_proba(X), want, rtol=0, atol=atol)
    assert model.score(X) == pytest.approx(float(ans.log_evidence), abs=10 * atol)


@pytest.mark.parametrize("shape", ["full", "diag", "spherical", "tied"])
def test_gaussian_networks(shape: str) -> None:
    rng = np.random.default_rng(1)
    K, d, T = 3, 2, 5
    roots = rng.normal(size=(K, d, d))
    full = roots @ roots.transpose(0, 2, 1) + np.eye(d)
    covars = {"full": full, "diag": np.array([np.diag(c) for c in full]), "spherical": full[:, 0, 0], "tied": full[0]}
    model = GaussianHMM.from_parameters(*chain(rng, K), rng.normal(size=(K, d)), covars[shape], covariance_type=shape)
    X = model.sample(T, random_state=0)[0]
    X[2] = np.nan
    seen = {f"x{t + 1}": x for t, x in enumerate(X) if not np.isnan(x).any()}
    agree(model, X, seen, model.to_network(T), 1e-9)


def test_mixture_network() -> None:
    rng = np.random.default_rng(2)
    model = GaussianMixtureHMM.from_parameters(
        *chain(rng, 2), rng.normal(size=(2, 2, 1)), np.ones((2, 2)), covariance_type="spherical"
    )
    X = model.sample(4, random_state=0)[0]
    agree(model, X, {f"x{t + 1}": float(x) for t, x in enumerate(X[:, 0])}, model.to_network(4), 1e-9)


def test_count_and_symbol_networks() -> None:
    rng = np.random.default_rng(3)
    model = PoissonHMM.from_parameters(*chain(rng, 2), [[1.0, 4.0], [3.0, 0.5]])
    X = model.sample(4, random_state=0)[0]
    net = model.to_network(4)
    seen = {f"x{t + 1}_{c}": str(int(X[t, c])) for t in range(4) for c in range(2)}
    agree(model, X, seen, net, 1e-10)
    assert net.states("x1_0")[-1].endswith("+")
    multi = MultiCategoricalHMM.from_parameters(
        *chain(rng, 3), [rng.dirichlet(np.ones(2), 3), rng.dirichlet(np.ones(3), 3)], symbols=[["a", "b"], None]
    )
    X = multi.sample(5, random_state=0)[0]
    agree(multi, X, {f"x{t + 1}_{c}": str(X[t, c]) for t in range(5) for c in range(2)}, multi.to_network(5), 1e-10)


def test_distribution_networks() -> None:
    rng = np.random.default_rng(4)
    members = [
        (dist.Normal(m, v), dist.Bernoulli(p), dist.Categorical(q))
        for m, v, p, q in [(0.0, 1.0, 0.2, [0.5, 0.3, 0.2]), (2.0, 0.5, 0.7, [0.1, 0.1, 0.8])]
    ]
    model = DistributionHMM.from_parameters(*chain(rng, 2), members)
    X = model.sample(4, random_state=0)[0]
    net = model.to_network(4)
    seen: dict[str, Any] = {f"x{t + 1}_0": X[t, 0] for t in range(4)}
    for c in (1, 2):
        seen |= {f"x{t + 1}_{c}": net.states(f"x1_{c}")[int(X[t, c])] for t in range(4)}
    agree(model, X, seen, net, 1e-9)
    vectors = DistributionHMM.from_parameters(
        *chain(rng, 2), [dist.Gaussian([0.0, 1.0], [[1.0, 0.3], [0.3, 2.0]]), dist.Gaussian([1.0, 0.0], np.eye(2))]
    )
    X = vectors.sample(4, random_state=0)[0]
    agree(vectors, X, {f"x{t + 1}": x for t, x in enumerate(X)}, vectors.to_network(4), 1e-9)
    with pytest.raises(ModelError, match="VonMises"):
        DistributionHMM.from_parameters([1.0], [[1.0]], [dist.VonMises(0.0, 1.0)]).to_network(2)


@pytest.mark.parametrize("o", [1, 2])
def test_kalman_network(o: int) -> None:
    rng = np.random.default_rng(o)
    model = KalmanFilter(
        0.5 * rng.normal(size=(2, 2)), np.diag([0.5, 1.0]), rng.normal(size=(o, 2)), np.eye(o), [1.0, -1.0], np.eye(2)
    )
    y = model.sample(5, random_state=0)[0]
    y[3] = np.nan
    net = model.to_network(5)
    seen = {f"y{t + 1}": y[t] if o > 1 else float(y[t, 0]) for t in range(5) if t != 3}
    smooth = model.smooth(y)
    ans = net.query([f"x{t}" for t in range(1, 6)], evidence=seen)
    for t in range(5):
        found = ans[f"x{t + 1}"]
        np.testing.assert_allclose(found.mean(), smooth.means[t], rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.cov(), smooth.covariances[t], rtol=0, atol=1e-9)
    assert model.log_likelihood(y) == pytest.approx(float(ans.log_evidence), abs=1e-9)


# --- any distribution -----------------------------------------------------------------------------------------------

FAMILIES: list[tuple[Any, list[Any], list[Any]]] = [
    ("VonMises", [dist.VonMises(-2.0, 6.0)], [dist.VonMises(1.5, 3.0)]),
    ("Gamma", [dist.Gamma(2.0, 4.0)], [dist.Gamma(9.0, 1.0)]),
    ("Exponential", [dist.Exponential(5.0)], [dist.Exponential(0.1)]),
    ("Poisson", [dist.Poisson(1.0)], [dist.Poisson(12.0)]),
    ("Geometric", [dist.Geometric(0.8)], [dist.Geometric(0.05)]),
    ("Beta", [dist.Beta(2.0, 8.0)], [dist.Beta(9.0, 2.0)]),
    ("Normal", [dist.Normal(0.0, 1.0)], [dist.Normal(5.0, 2.0)]),
    ("Laplace", [dist.Laplace(1.0)], [dist.Laplace(20.0)]),
    ("Bernoulli", [dist.Bernoulli(0.05)], [dist.Bernoulli(0.9)]),
    ("Categorical", [dist.Categorical([0.8, 0.1, 0.1])], [dist.Categorical([0.05, 0.05, 0.9])]),
    ("Gaussian", [dist.Gaussian([0.0, 0.0], np.eye(2))], [dist.Gaussian([4.0, 0.0], np.eye(2))]),
    ("Dirichlet", [dist.Dirichlet([8.0, 2.0, 2.0])], [dist.Dirichlet([1.0, 5.0, 9.0])]),
    (("Normal", "VonMises"), [dist.Normal(0.0, 1.0), dist.VonMises(0.0, 4.0)],
     [dist.Normal(3.0, 1.0), dist.VonMises(2.5, 4.0)]),
]  # fmt: skip


@pytest.mark.parametrize("families, one, two", FAMILIES, ids=lambda value: str(value)[:24])
def test_families_are_learned(families: Any, one: list[Any], two: list[Any]) -> None:
    truth = DistributionHMM.from_parameters([0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [one, two])
    X, states = truth.sample(600, random_state=0)
    model = DistributionHMM(2, families=families, random_state=0, tol=1e-4).fit(X)
    assert (np.diff(model.history_) >= -1e-7).all()
    right = (model.predict(X) == states).mean()
    assert max(right, 1.0 - right) > 0.85
    assert model.log_likelihood_ > truth.score(X) - 5.0
    np.testing.assert_allclose(model.log_likelihood_, model.score(X), rtol=1e-3)
    again = clone(model).fit(X)
    np.testing.assert_allclose(again.transmat_, model.transmat_, rtol=1e-6)  # loops may be compiled meanwhile


def test_densities_are_products_over_seen_columns() -> None:
    members = [[dist.Normal(0.0, 1.0), dist.VonMises(0.5, 2.0)], [dist.Normal(1.0, 4.0), dist.VonMises(-2.0, 1.0)]]
    model = DistributionHMM.from_parameters([0.4, 0.6], [[0.7, 0.3], [0.2, 0.8]], members)
    X = np.array([[0.3, 1.0], [np.nan, 2.0], [np.nan, np.nan], [1.0, np.nan]])
    logs = np.zeros((4, 2))
    for k, row in enumerate(members):
        logs[:, k] = [
            row[0].log_density(0.3) + row[1].log_density(1.0), row[1].log_density(2.0), 0.0, row[0].log_density(1.0)
        ]  # fmt: skip
    want = recursions.posteriors(model.startprob_, model.transmat_, logs)
    np.testing.assert_allclose(model.predict_proba(X), want.probabilities, atol=1e-13)
    assert model.score(X) == pytest.approx(want.log_likelihood, abs=1e-12)


@pytest.mark.parametrize(
    "families, X, text",
    [
        ("VonMise", np.zeros((5, 1)), "Did you mean 'VonMises'"),
        ("Wishart", np.zeros((5, 1)), "not a family of emissions"),
        (3, np.zeros((5, 1)), "names or classes"),
        (["Normal", "Gaussian"], np.ones((5, 2)), "stands alone"),
        (["Normal", "Normal", "Gamma"], np.ones((5, 2)), "3 entries, but X has 2 columns"),
        ("Gamma", [[1.0], [-1.0], [2.0]], "column 0 of X does not suit Gamma"),
        ("Normal", np.ones((5, 1)), "column 0 of X does not suit Normal"),
        ("Normal", [[1.0], [np.nan], [np.nan]], "only n_samples=1 observed"),
    ],
)
def test_bad_families(families: Any, X: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        DistributionHMM(2, families=families).fit(X)


# --- several symbols at a time --------------------------------------------------------------------------------------


def test_several_symbols_are_found_again() -> None:
    rng = np.random.default_rng(0)
    truth = MultiCategoricalHMM.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.05, 0.95]], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]]
    )
    X, states = truth.sample(1500, random_state=1)
    X[rng.random(X.shape) < 0.1] = -1
    model = MultiCategoricalHMM(2, n_init=3, random_state=0, tol=1e-5, max_iter=200).fit(X)
    assert (np.diff(model.history_) >= -1e-8).all()
    order = np.argsort(model.emissionprob_[0][:, 1])
    np.testing.assert_allclose(model.emissionprob_[1][order], truth.emissionprob_[1], atol=0.08)
    right = (order.argsort()[model.predict(X)] == states).mean()
    assert right > 0.9


def test_symbols_of_mixed_kinds_and_frames() -> None:
    import pandas as pd

    rows = [[0, "a"], [1, "b"], [None, "a"], [1, None]]
    model = MultiCategoricalHMM(2, random_state=0).fit(rows)
    assert model.symbols_[0].tolist() == [0, 1] and model.symbols_[1].tolist() == ["a", "b"]
    frame = pd.DataFrame(rows, columns=["n", "s"])
    np.testing.assert_allclose(model.predict_proba(frame), model.predict_proba(rows))
    assert model.filter().update([1, "b"]).shape == (2,)
    with pytest.raises(StateError, match="column 1, row 0.*'c'"):
        model.score([[0, "c"]])
    with pytest.raises(ModelError, match="3 columns, but the model 2"):
        model.score([[0, "a", 1]])


def test_nested_lists() -> None:
    model = CategoricalHMM(2, random_state=0)
    ragged = model.fit([[0, 1, 2], [1, 2]])
    same = clone(model).fit([0, 1, 2, 1, 2], [3, 2])
    np.testing.assert_array_equal(ragged.transmat_, same.transmat_)
    with pytest.raises(ModelError, match="MultiCategoricalHMM"):
        model.fit([[0, 1, 2], [1, 2, 0]])
    with pytest.raises(ModelError, match="unequal"):
        model.fit([[0, [1, 2]], [1, [2, 3]]])
    with pytest.raises(ModelError, match="sequence 1 is empty"):
        model.fit([[0, 1, 2], []])


# --- other ways to learn --------------------------------------------------------------------------------------------


def test_hard_learning_never_falls_and_finds_the_states() -> None:
    truth = GaussianHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.0], [4.0]], np.ones((2, 1, 1)))
    X, states = truth.sample(400, n_sequences=3, random_state=0)
    model = GaussianHMM(2, learning="viterbi", random_state=0, tol=1e-6).fit(X, [400] * 3)
    assert (np.diff(model.history_) >= -1e-8).all() and model.converged_
    assert model.log_likelihood_ == pytest.approx(model.decode(X, [400] * 3)[0], abs=1e-8)
    right = (model.predict(X, [400] * 3) == states).mean()
    assert max(right, 1 - right) > 0.95
    with pytest.raises(ModelError, match="Did you mean 'viterbi'"):
        GaussianHMM(2, learning="viterbe").fit(X)


def test_tied_transitions() -> None:
    K = 4
    turn = (np.arange(K)[None] - np.arange(K)[:, None]) % K  # the same for every rotation
    truth = CategoricalHMM.from_parameters(
        np.full(K, 0.25), np.choose(turn, [0.7, 0.2, 0.06, 0.04]), 0.9 * np.eye(K) + 0.025
    )
    X = truth.sample(3000, random_state=0)[0]
    model = CategoricalHMM(K, transition_ties=turn, init=truth, tol=1e-6).fit(X)
    assert (np.diff(model.history_) >= -1e-8).all()
    for label in range(4):
        found = model.transmat_[turn == label]
        np.testing.assert_allclose(found, found[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.transmat_[0], truth.transmat_[0], atol=0.04)
    assert model.n_parameters_ == 3 + 3 + K * (K - 1)
    free = CategoricalHMM(K, init=truth, tol=1e-6).fit(X)
    assert free.log_likelihood_ > model.log_likelihood_
    with pytest.raises(ModelError, match="rows 0 and 1 share a label"):
        CategoricalHMM(2, transition_ties=[[0, 1], [1, 2]]).fit([0, 1, 0, 1])
    with pytest.raises(ModelError, match="allows with steps that it forbids"):
        CategoricalHMM(2, transition_ties=[[0, 0], [0, 0]], transition_mask="left-right").fit([0, 1, 0, 1])


@pytest.mark.parametrize("make", [GaussianHMM, GaussianMixtureHMM, PoissonHMM, DistributionHMM])
@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_tied_emissions(make: Any, prior: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat([1.0, 9.0, 1.0, 9.0], 60))[:, None].astype(float)
    extra = {
        GaussianHMM: {"covariance_prior": prior + 0.01},
        GaussianMixtureHMM: {"weight_prior": 1.0 + prior, "covariance_prior": prior + 0.01},
        PoissonHMM: {"rate_prior": (1.0 + prior, prior)},
        DistributionHMM: {"prior": prior},
    }[make]
    model = make(3, emission_ties=["a", "b", "a"], random_state=0, tol=1e-5, **extra).fit(X)
    assert (np.diff(model.history_) >= -1e-8).all()
    logs = model._emission().logs(model._read(X, None, reset=False)[0])
    np.testing.assert_allclose(logs[:, 0], logs[:, 2], rtol=0, atol=1e-9)
    assert not np.allclose(logs[:, 0], logs[:, 1])
    assert model.n_parameters_ < clone(model).set_params(emission_ties=None).fit(X).n_parameters_


@pytest.mark.parametrize("kind", ["symbols", "several", "gauss", "diag", "tied", "mixture", "counts", "angles"])
def test_a_stream_of_batches_is_learned(kind: str) -> None:
    A = [[0.95, 0.05], [0.1, 0.9]]
    two = np.array([[0.0], [5.0]])
    made: dict[str, Any] = {
        "symbols": CategoricalHMM.from_parameters([0.5, 0.5], A, [[0.9, 0.1], [0.1, 0.9]]),
        "several": MultiCategoricalHMM.from_parameters([0.5, 0.5], A, [[[0.9, 0.1], [0.1, 0.9]]] * 2),
        "gauss": GaussianHMM.from_parameters([0.5, 0.5], A, two, np.ones((2, 1, 1))),
        "diag": GaussianHMM.from_parameters([0.5, 0.5], A, two, np.ones((2, 1)), covariance_type="diag"),
        "tied": GaussianHMM.from_parameters([0.5, 0.5], A, two, np.ones((1, 1)), covariance_type="tied"),
        "mixture": GaussianMixtureHMM.from_parameters(
            [0.5, 0.5], A, [[[0.0], [1.0]], [[6.0], [8.0]]], np.ones((2, 2)), covariance_type="spherical"
        ),
        "counts": PoissonHMM.from_parameters([0.5, 0.5], A, [[1.0], [9.0]]),
        "angles": DistributionHMM.from_parameters([0.5, 0.5], A, [dist.VonMises(0.0, 5.0), dist.VonMises(2.5, 5.0)]),
    }
    truth = made[kind]
    model = clone(truth).set_params(random_state=1)  # one start, drawn: not all lead there
    sizes = set()
    for batch in range(60):
        X = truth.sample(50, n_sequences=4, random_state=batch)[0]
        if X.dtype.kind == "f":
            X[::17] = np.nan
        model.partial_fit(X, [50] * 4)
        sizes.add(sum(part.size for part in model.statistics_))
    assert len(sizes) == 1 and model.n_batches_ == 60 and model.n_seen_ == 12_000
    X = truth.sample(2000, random_state=99)[0]
    assert model.score(X) > truth.score(X) - (0.03 if kind == "mixture" else 0.01) * len(X)


def test_one_batch_of_a_stream_is_one_step_of_em() -> None:
    truth = GaussianHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.0], [2.0]], np.ones((2, 1, 1)))
    X = truth.sample(200, random_state=0)[0]
    X[5] = np.nan
    online = GaussianHMM(2, init=truth).partial_fit(X)
    batch = GaussianHMM(2, init=truth, max_iter=1).fit(X)
    np.testing.assert_allclose(online.transmat_, batch.transmat_, atol=1e-12)
    np.testing.assert_allclose(online.means_, batch.means_, atol=1e-10)
    np.testing.assert_allclose(online.covars_, batch.covars_, atol=1e-10)
    with pytest.raises(ModelError, match="step must lie above 0"):
        online.partial_fit(X, step=0.0)


def test_states_that_die_keep_their_numbers() -> None:
    """A state that nothing reaches has no expected counts: its parameters stay, everything stays finite."""
    X = np.repeat([0.0, 5.0], 40)[:, None] + np.random.default_rng(0).normal(size=(80, 1))
    for kind in ("full", "diag", "spherical"):
        first = GaussianHMM.from_parameters(
            [0.5, 0.5, 0.0], [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.2, 0.3, 0.5]], [[0.0], [5.0], [77.0]],
            {"full": np.ones((3, 1, 1)), "diag": np.ones((3, 1)), "spherical": np.ones(3)}[kind],
            covariance_type=kind,
        )  # fmt: skip
        model = GaussianHMM(3, covariance_type=kind, init=first, tol=1e-6).fit(X)
        assert model.means_[2, 0] == 77.0 and (model.transmat_[:2, 2] == 0.0).all()
        np.testing.assert_array_equal(model.transmat_[2], [0.2, 0.3, 0.5])
        assert (np.diff(model.history_) >= -1e-8).all()
    one = dist.VonMises(0.0, 2.0), dist.VonMises(1.0, 2.0), dist.VonMises(2.0, 2.0)
    angles = DistributionHMM.from_parameters(first.startprob_, first.transmat_, one)
    again = DistributionHMM(3, families="VonMises", prior=0.0, init=angles).fit(angles.sample(100, random_state=0)[0])
    assert again.distributions_[2][0] == one[2]
    counts = PoissonHMM.from_parameters(first.startprob_, first.transmat_, [[1.0], [5.0], [77.0]])
    assert PoissonHMM(3, init=counts).fit([[1.0], [4.0], [0.0], [6.0]]).rates_[2, 0] == 77.0


def test_the_number_of_states_by_cross_validation() -> None:
    truth = GaussianHMM.from_parameters(
        np.full(3, 1 / 3), 0.85 * np.eye(3) + 0.05, [[0.0], [4.0], [8.0]], np.ones((3, 1, 1))
    )
    X = [truth.sample(60, random_state=seed)[0] for seed in range(8)]
    found = choose_n_states(GaussianHMM(random_state=0, n_init=2), X, candidates=(1, 2, 3), criterion="cv")
    assert found.n_states == 3 and found.model.n_states == 3
    assert found.values[3] < found.values[2] < found.values[1]
    with pytest.raises(ModelError, match="several sequences"):
        choose_n_states(GaussianHMM(), X[0], criterion="cv")


# --- durations ------------------------------------------------------------------------------------------------------


def stays_of(model: DurationHMM, logs: Any) -> dict[tuple[tuple[int, int], ...], float]:
    """log p(stays, x) of all ways to fill the sequence with (state, length)."""
    T, K = logs.shape
    D = model.durations_.shape[1]
    out: dict[tuple[tuple[int, int], ...], float] = {}

    def grow(done: tuple[tuple[int, int], ...], t: int, log: float) -> None:
        if t == T:
            out[done] = log
            return
        for k in range(K):
            enter = model.startprob_[k] if not done else model.transmat_[done[-1][0], k]
            for d in range(1, min(D, T - t) + 1):
                last = t + d == T and model.cut
                p = model.durations_[k, d - 1 :].sum() if last else model.durations_[k, d - 1]
                if enter * p > 0.0:
                    grow((*done, (k, d)), t + d, log + np.log(enter * p) + logs[t : t + d, k].sum())

    grow((), 0, 0.0)
    return out


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("T, D", [(1, 2), (4, 3), (7, 3), (6, 9)])
def test_durations_equal_the_sum_over_stays(cut: bool, T: int, D: int) -> None:
    rng = np.random.default_rng(T * D)
    K = 3
    A = rng.dirichlet(np.ones(K), K) * (1.0 - np.eye(K))
    base = CategoricalHMM.from_parameters(rng.dirichlet(np.ones(K)), np.eye(K), rng.dirichlet(np.ones(4), K))
    durations = rng.dirichlet(np.ones(D), K)
    durations[0, 0] = 0.0 if D > 2 and cut else durations[0, 0]
    durations /= durations.sum(axis=1, keepdims=True)
    model = DurationHMM.from_parameters(base, durations, transmat=A / A.sum(axis=1, keepdims=True), cut=cut)
    X = rng.integers(0, 4, T)
    ways = stays_of(model, np.log(base.emissionprob_.T[X]))
    logs = np.array(list(ways.values()))
    total = np.logaddexp.reduce(logs)
    assert model.score(X) == pytest.approx(total, abs=1e-11)
    gamma, pairs = np.zeros((T, K)), np.zeros((K, K))
    for way, log in ways.items():
        path = [k for k, d in way for _ in range(d)]
        gamma[np.arange(T), path] += np.exp(log - total)
        for (a, _), (b, _) in itertools.pairwise(way):
            pairs[a, b] += np.exp(log - total)
    found = model.posteriors(X)
    np.testing.assert_allclose(found.probabilities, gamma, atol=1e-11)
    np.testing.assert_allclose(found.transition_counts, pairs, atol=1e-11)
    value, path = model.decode(X)
    best = max(ways, key=lambda way: ways[way])
    assert value == pytest.approx(ways[best], abs=1e-11)
    assert path.tolist() == [k for k, d in best for _ in range(d)]
    net = model.to_network(T)
    seen = {f"x{t + 1}": str(x) for t, x in enumerate(X)} | ({} if cut else {f"r{T}": "1"})
    ans = net.query([f"z{t + 1}" for t in range(T)], evidence=seen)
    np.testing.assert_allclose([ans[f"z{t + 1}"].probabilities for t in range(T)], gamma, atol=1e-10)
    assert float(ans.log_evidence) == pytest.approx(total, abs=1e-10)


def test_geometric_durations_are_a_markov_chain() -> None:
    """With p(d) = (1 − a) a^(d − 1) and a long D the model is the plain one with a on the diagonal."""
    rng = np.random.default_rng(0)
    plain = CategoricalHMM.from_parameters([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], [[0.7, 0.3], [0.1, 0.9]])
    stay = np.array([[0.8], [0.6]])
    table = (1.0 - stay) * stay ** np.arange(200)
    model = DurationHMM.from_parameters(plain, table / table.sum(axis=1, keepdims=True), transmat=[[0, 1], [1, 0]])
    X = rng.integers(0, 2, 40)
    assert model.score(X) == pytest.approx(plain.score(X), abs=1e-10)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("cut", [True, False])
def test_durations_are_learned(cut: bool) -> None:
    base = GaussianHMM.from_parameters([0.5, 0.5], [[0.5, 0.5]] * 2, [[0.0], [3.0]], np.ones((2, 1, 1)))
    table = np.zeros((2, 8))
    table[0, 2:5], table[1, 6:] = [0.2, 0.6, 0.2], [0.5, 0.5]
    truth = DurationHMM.from_parameters(base, table, transmat=[[0, 1], [1, 0]])
    X = truth.sample(1500, random_state=0)[0]
    model = DurationHMM(GaussianHMM(2, random_state=0, tol=1e-4), max_duration=8, cut=cut).fit(X)
    assert (np.diff(model.history_) >= -1e-7).all() and model.converged_
    order = np.argsort(model.model_.means_[:, 0])
    np.testing.assert_allclose(model.durations_[order], table, atol=0.1)
    np.testing.assert_allclose(model.model_.means_[order], [[0.0], [3.0]], atol=0.2)
    assert (np.diag(model.transmat_) == 0.0).all()
    assert clone(model).fit(X, [700, 800]).score(X, [700, 800]) < 0.0
    plain = GaussianHMM(2, random_state=0, tol=1e-4).fit(X)
    assert model.score(X) > plain.score(X) + 50.0


def test_impossible_durations() -> None:
    base = CategoricalHMM.from_parameters([1.0, 0.0], np.eye(2), [[1.0, 0.0], [0.0, 1.0]])
    model = DurationHMM.from_parameters(base, [[0.0, 1.0], [1.0, 0.0]], transmat=[[0, 1], [1, 0]])
    assert model.score([0, 1, 0]) == -np.inf
    for ask in (model.predict_proba, model.predict):
        with pytest.raises(ImpossibleEvidenceError, match="sequence 0"):
            ask([0, 1, 0])
    with pytest.raises(ModelError, match="must be a hidden Markov model"):
        DurationHMM(3).fit([0, 1])
    with pytest.raises(ModelError, match="2 rows, one per state"):
        DurationHMM.from_parameters(base, [[1.0]])


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_inputs_equal_the_sum_over_paths_and_the_network() -> None:
    rng = np.random.default_rng(0)
    K, T = 3, 6
    base = CategoricalHMM.from_parameters(*chain(rng, K), rng.dirichlet(np.ones(4), K))
    stack = rng.dirichlet(np.ones(K), (2, K))
    stack[1, 0] = [0.0, 0.5, 0.5]
    model = InputHMM.from_parameters(base, stack)
    u, X = rng.integers(0, 2, T), rng.integers(0, 4, T)
    logs = np.log(base.emissionprob_.T[X])
    ways = []
    for path in itertools.product(range(K), repeat=T):
        p = base.startprob_[path[0]] * np.prod([stack[u[t], path[t - 1], path[t]] for t in range(1, T)])
        if p > 0.0:
            ways.append((np.log(p) + sum(logs[t, k] for t, k in enumerate(path)), path))
    total = np.logaddexp.reduce([log for log, _ in ways])
    gamma = np.zeros((T, K))
    for log, path in ways:
        gamma[np.arange(T), path] += np.exp(log - total)
    assert model.score(X, u) == pytest.approx(total, abs=1e-12)
    np.testing.assert_allclose(model.predict_proba(X, u), gamma, atol=1e-12)
    value, path = model.decode(X, u)
    assert (value, tuple(path)) == (pytest.approx(max(ways)[0]), max(ways)[1])
    np.testing.assert_allclose(model.filter_proba(X, u)[-1], gamma[-1], atol=1e-12)
    net = model.to_network(u)
    ans = net.query([f"z{t + 1}" for t in range(T)], evidence={f"x{t + 1}": str(x) for t, x in enumerate(X)})
    np.testing.assert_allclose([ans[f"z{t + 1}"].probabilities for t in range(T)], gamma, atol=1e-10)
    same = InputHMM.from_parameters(base, base.transmat_[None])
    np.testing.assert_allclose(same.predict_proba(X, [0] * T), base.predict_proba(X), atol=1e-12)


def test_inputs_are_learned() -> None:
    base = GaussianHMM.from_parameters([0.5, 0.5], [[0.5, 0.5]] * 2, [[0.0], [3.0]], np.ones((2, 1, 1)))
    stack = np.array([[[0.95, 0.05], [0.05, 0.95]], [[0.1, 0.9], [0.9, 0.1]]])
    truth = InputHMM.from_parameters(base, stack)
    u = np.random.default_rng(0).integers(0, 2, 2000)
    X = truth.sample(u, random_state=0)[0]
    model = InputHMM(GaussianHMM(2, random_state=0, tol=1e-5)).fit(X, u, [1500, 500])
    assert (np.diff(model.history_) >= -1e-8).all()
    order = np.argsort(model.model_.means_[:, 0])
    np.testing.assert_allclose(model.transmat_[:, order][:, :, order], stack, atol=0.06)
    for bad, text in [(u[:5], "5 entries"), (u + 1, "between 0 and 1"), (u * 0.5, "whole numbers")]:
        with pytest.raises(ModelError, match=text):
            model.score(X, bad)


def test_impossible_inputs() -> None:
    base = CategoricalHMM.from_parameters([1.0, 0.0], np.eye(2), np.eye(2))
    model = InputHMM.from_parameters(base, [np.eye(2), [[0.0, 1.0], [1.0, 0.0]]])
    assert model.score([0, 1], [0, 1]) == 0.0
    assert model.score([0, 1], [0, 0]) == -np.inf
    for ask in (model.predict_proba, model.filter_proba, model.predict):
        with pytest.raises(ImpossibleEvidenceError, match="sequence 0"):
            ask([0, 1], [0, 0])
