"""Ising models: couplings of grids by pseudo-likelihood, graphs by sparse regressions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph._numerics.undirected.nodewise import node_fit
from gramgraph.engines.sampling.gibbs_rows import gibbs_rows
from gramgraph.learn import learn_ising


def random_grid(side: int, seed: int, least: float = 0.0) -> gg.MarkovNetwork:
    """Couplings of either sign, from `least` to 0.4 in size; fields up to 0.2."""
    rng = np.random.default_rng(seed)

    def some(shape):
        return rng.choice([-1, 1], shape) * rng.uniform(least, 0.4, shape)

    J = (some((side, side - 1)), some((side - 1, side)))
    return gg.models.ising_grid(side, side, J, rng.uniform(-0.2, 0.2, (side, side)))


def couplings(net: gg.MarkovNetwork) -> dict[tuple[str, ...], float]:
    J, _ = gg.models.ising_parameters(net)
    return {(a, b): J[net.index(a), net.index(b)] for a, b in net.edges}


def error(fitted: gg.MarkovNetwork, truth: gg.MarkovNetwork) -> float:
    J, known = couplings(fitted), couplings(truth)
    return float(np.mean([abs(J.get(pair, 0.0) - value) for pair, value in known.items()]))


# ------------------------------------------------------------------------------------------------- parameters


def test_fields_and_couplings_make_the_same_model() -> None:
    rng = np.random.default_rng(0)
    tables = {p: rng.uniform(0.2, 3, (2, 2)) for p in [("a", "b"), ("c", "b"), ("a", "c"), ("b", "a")]}
    net = gg.MarkovNetwork({**tables, "a": [1.0, 2.0]}, states={v: ["-1", "+1"] for v in "abcd"})
    J, h = gg.models.ising_parameters(net)
    same = gg.models.boltzmann_machine(J, h, names=net.variables, spins=True)
    np.testing.assert_allclose(
        net.query(tuple("abcd"))[tuple("abcd")].probabilities, same.query(tuple("abcd"))[tuple("abcd")].probabilities
    )
    with pytest.raises(gg.ModelError, match="two states"):
        gg.models.ising_parameters(gg.MarkovNetwork({"a": [1, 2, 3]}))
    with pytest.raises(gg.ModelError, match="has zeros"):
        gg.models.ising_parameters(gg.MarkovNetwork({("a", "b"): [[1, 0], [1, 1]]}))
    with pytest.raises(gg.ModelError, match="more than two"):
        gg.models.ising_parameters(gg.MarkovNetwork({("a", "b", "c"): np.ones((2, 2, 2))}))


# ------------------------------------------------------------------------------------------------- given the graph


def test_pseudo_likelihood_recovers_a_small_grid() -> None:
    truth = random_grid(6, 0)
    fitted = gg.models.ising_grid(6, 6).fit(truth.sample(5000, random_state=0), method="pseudo_likelihood")
    assert fitted.fit_report.converged
    assert error(fitted, truth) < 0.02


@pytest.mark.slow
def test_pseudo_likelihood_recovers_a_grid_of_900_spins() -> None:
    truth = random_grid(30, 1)
    frame = gibbs_rows(truth, 20_000, chains=500, burn_in=200, thin=5, random_state=0)
    fitted = gg.models.ising_grid(30, 30).fit(frame, method="pseudo_likelihood")
    assert error(fitted, truth) < 0.01


def test_gibbs_rows_are_like_exact_draws() -> None:
    # 4000 nearly independent rows: a pair's frequency has standard error < 0.008; 12 pairs at 5 errors
    truth = random_grid(3, 2)
    frame = gibbs_rows(truth, 4000, chains=1000, burn_in=30, thin=10, random_state=0)
    for pair in couplings(truth):
        exact = truth.query(pair)[pair].prob("+1", "+1")
        assert (frame[list(pair)] == "+1").all(axis=1).mean() == pytest.approx(exact, abs=0.04)
    again = gibbs_rows(truth, 10, chains=5, random_state=3)
    pd.testing.assert_frame_equal(again, gibbs_rows(truth, 10, chains=5, random_state=3))


def test_gibbs_rows_given_evidence() -> None:
    truth = random_grid(3, 4)
    frame = gibbs_rows(truth, 4000, {"x1_1": "+1"}, chains=1000, burn_in=50, thin=5, random_state=0)
    assert set(frame["x1_1"]) == {"+1"}
    exact = truth.query(evidence={"x1_1": "+1"})
    for v in truth.variables:
        if v != "x1_1":
            assert (frame[v] == "+1").mean() == pytest.approx(exact[v].prob("+1"), abs=0.04)
    with pytest.raises(gg.OptionError, match="evidence as states"):
        gibbs_rows(truth, 5, {"x1_1": gg.Likelihood([1, 2])})


def test_gibbs_rows_with_more_states_and_larger_factors() -> None:
    rng = np.random.default_rng(0)
    net = gg.MarkovNetwork({("a", "b", "c"): rng.uniform(0.5, 2, (3, 2, 3)), ("c", "d"): rng.uniform(0.5, 2, (3, 4))})
    frame = gibbs_rows(net, 20_000, chains=2000, burn_in=30, thin=3, random_state=0)
    for v in net.variables:
        shares = frame[v].value_counts(normalize=True).reindex(list(net.states(v))).to_numpy()
        np.testing.assert_allclose(shares, net.query(v)[v].probabilities, atol=0.02)
    with pytest.raises(gg.ModelError, match="zeros"):
        gibbs_rows(gg.MarkovNetwork({("a", "b"): [[1, 0], [0, 1]]}), 5)
    with pytest.raises(gg.OptionError, match="chains"):
        gibbs_rows(net, 5, chains=0)


# ------------------------------------------------------------------------------------------------- unknown graph


def test_the_graph_of_a_small_grid_is_found() -> None:
    truth = random_grid(5, 3, least=0.2)
    frame = truth.sample(5000, random_state=0)
    net = learn_ising(frame)
    assert set(net.edges) == set(truth.edges)
    assert error(net, truth) < 0.03
    path = net.fit_report.details["path"]
    assert (np.diff(path.penalties) < 0).all() and path.n_edges[0] <= 1
    assert len(path.to_frame()) == len(path.n_edges) == path.scores.shape[1]
    either = learn_ising(frame, rule="or")
    assert set(path.edges) <= set(either.fit_report.details["path"].edges)


@pytest.mark.slow
def test_the_graph_of_900_spins_is_found() -> None:
    truth = random_grid(30, 1, least=0.15)
    frame = gibbs_rows(truth, 20_000, chains=500, burn_in=200, thin=5, random_state=0)
    net = learn_ising(frame)
    found, known = set(net.edges), set(truth.edges)
    assert len(found ^ known) <= 10
    assert error(net, truth) < 0.01


def test_noise_has_no_edges() -> None:
    # an edge enters when a χ² with one degree of freedom exceeds log 2000 + 2 log 19: 0.05 false edges are expected
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"v{i}": rng.choice(["off", "on"], 2000) for i in range(20)})
    net = learn_ising(frame, gamma=1.0)
    assert net.edges == () and net.states("v0") == ("off", "on")
    assert net.query("v3")["v3"].prob("on") == pytest.approx((frame["v3"] == "on").mean(), abs=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("n_columns", [3, 16])
def test_regressions_are_those_of_scikit_learn(penalty, n_columns) -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(n_columns)
    n = 800
    X = rng.choice([-1, 1], (n, n_columns))
    eta = 0.3 + X @ (rng.normal(size=n_columns) * (rng.random(n_columns) < 0.5))
    y = rng.random(n) < 1 / (1 + np.exp(-eta))
    spins = np.vstack([2 * y.astype(int) - 1, X.T]).astype(np.int8)
    beta = np.zeros(n_columns + 1)
    loss = node_fit(spins, 0, np.arange(1, n_columns + 1), np.ones(1), penalty, 0.0, beta)
    C = np.inf if penalty == 0 else 1 / (n * penalty)
    lasso = {"penalty": "l1"} if "deprecated" not in str(LogisticRegression().penalty) else {"l1_ratio": 1.0}
    solver = {"solver": "lbfgs"} if penalty == 0 else {"solver": "saga", **lasso}
    peer = LogisticRegression(C=C, tol=1e-9, max_iter=20_000, random_state=0, **solver).fit(X, y)
    np.testing.assert_allclose(beta[0], peer.intercept_[0], atol=2e-4)
    np.testing.assert_allclose(beta[1:], peer.coef_[0], atol=2e-4)
    assert ((np.abs(beta[1:]) < 1e-12) == (np.abs(peer.coef_[0]) < 1e-6)).all()
    p = peer.predict_proba(X)[np.arange(n), y.astype(int)]
    assert loss == pytest.approx(-np.log(p).mean(), abs=1e-5)


def test_node_wise_regression_is_the_pseudo_likelihood_of_one_variable() -> None:
    # a star without couplings among the leaves, the leaves uniform: only the center's regression speaks of J
    rng = np.random.default_rng(0)
    n, J, h = 3000, np.array([0.5, -0.3, 0.2]), 0.1
    X = rng.choice([-1, 1], (n, 3))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * (h + X @ J))), 1, -1)
    spins = np.vstack([y, X.T]).astype(np.int8)
    beta = np.zeros(4)
    node_fit(spins, 0, np.arange(1, 4), np.ones(1), 0.0, 0.0, beta)
    np.testing.assert_allclose(beta / 2, [h, *J], atol=0.06)


def test_weights_count_rows_more_than_once() -> None:
    truth = random_grid(3, 5, least=0.2)
    frame = truth.sample(600, random_state=0)
    times = np.random.default_rng(0).integers(1, 4, 600)
    repeated = frame.loc[np.repeat(np.arange(600), times)].reset_index(drop=True)
    a, b = (
        learn_ising(frame, weights=times, penalties=[0.2, 0.1, 0.05]),
        learn_ising(repeated, penalties=[0.2, 0.1, 0.05]),
    )
    assert a.edges == b.edges and a.edges
    np.testing.assert_allclose(a.fit_report.weights, b.fit_report.weights, atol=1e-6)


def test_columns_that_cannot_be_spins_are_told() -> None:
    good = pd.DataFrame({"a": [0, 1, 0, 1], "b": [1, 1, 0, 0]})
    with pytest.raises(gg.ModelError, match=r"more are in c \(3\)"):
        learn_ising(good.assign(c=[0, 1, 2, 2]))
    with pytest.raises(gg.VariableError, match="never change say nothing of others: drop c"):
        learn_ising(good.assign(c=1))
    with pytest.raises(gg.VariableError, match="complete rows"):
        learn_ising(good.assign(c=[0, 1, None, 1]))
    with pytest.raises(gg.VariableError, match="at least two columns"):
        learn_ising(good[["a"]])
    with pytest.raises(gg.OptionError, match="rule is"):
        learn_ising(good, rule="xor")
    with pytest.raises(gg.OptionError, match="gamma"):
        learn_ising(good, gamma=-1)
    with pytest.raises(gg.OptionError, match="penalties are positive"):
        learn_ising(good, penalties=[0.0])


def test_separable_columns_stay_finite() -> None:
    rng = np.random.default_rng(0)
    a = rng.choice([0, 1], 200)
    frame = pd.DataFrame({"a": a, "copy": a, "noise": rng.choice([0, 1], 200)})
    net = learn_ising(frame, l2=0.01)
    assert ("a", "copy") in net.edges
    assert np.isfinite(net.fit_report.weights).all()
