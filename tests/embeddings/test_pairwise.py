"""Undirected kernel networks with loops: potentials by pseudo-likelihood against sums over a fine grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelError, VariableError

GRID = np.linspace(-2.6, 2.6, 53)


def triangle_joint(J):
    """p(a, b, c) ∝ exp(Σ (x² − x⁴) + J (ab + bc + ca)) on a grid."""
    own = GRID**2 - GRID**4
    pair = J * np.multiply.outer(GRID, GRID)
    logs = own[:, None, None] + own[None, :, None] + own + pair[:, :, None] + pair[:, None, :] + pair[None]
    p = np.exp(logs - logs.max())
    return p / p.sum()


@pytest.fixture(scope="module")
def learned():
    p, rng = triangle_joint(0.9), np.random.default_rng(0)
    at = np.unravel_index(rng.choice(p.size, size=2000, p=p.ravel()), p.shape)
    step = GRID[1] - GRID[0]
    data = {name: GRID[i] + step * (rng.random(2000) - 0.5) for name, i in zip("abc", at, strict=True)}
    return gg.learn_markov(data, "a - b - c - a", cells=32, rank=6, penalty=1e-2), data, p


def test_posterior_means_on_a_loop(learned):
    net, _, p = learned
    off = []
    for i in range(14, 40, 4):
        given = p[i].sum(axis=1) / p[i].sum()
        found = net.query("b", {"a": GRID[i]})
        assert found.engine == "junction_tree"
        both = p[i, :, 30] / p[i, :, 30].sum()
        pair = net.query("b", {"a": GRID[i], "c": GRID[30]})["b"].mean()
        off += [found["b"].mean() - given @ GRID, pair - both @ GRID]
    assert np.sqrt(np.mean(np.square(off))) < 0.1, off


def test_densities_draws_and_best_values(learned):
    net, data, p = learned
    x = np.linspace(-8.0, 8.0, 160_001)
    assert net.query("a", {"b": 1.0})["a"].density(x).sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-4)
    best = net.map_query({"a": 0.9}).assignment
    assert best["b"] > 0.4 and best["c"] > 0.4
    drawn = net.sample(500, {"a": 0.9}, random_state=0)
    assert list(drawn.columns) == ["a", "b", "c"] and drawn["b"].mean() > 0.2 and (drawn["a"] == 0.9).all()
    other = gg.learn_markov(data, "a - b; c", cells=32, rank=4, penalty=1e-3)
    assert net.pseudo_log_likelihood(data) > other.pseudo_log_likelihood(data) + 0.05
    far = net.query("b", {"a": 50.0})
    assert far.quality == "unreliable" and np.isfinite(far["b"].mean())


def test_without_edges_it_is_the_kernel_density(learned):
    _, data, _ = learned
    alone = gg.learn_markov(data, "a; b; c", cells=32, rank=2, penalty=1e-2)
    x = np.linspace(-2.0, 2.0, 41)
    axis = alone.cell_axes[0]
    assert np.allclose(alone.query("a")["a"].density(x), np.exp(axis.log_base(x)), rtol=1e-9)


def test_it_is_a_markov_network_like_any_other(learned):
    net, data, p = learned
    assert isinstance(net, gg.MarkovNetwork) and net.markov_blanket("a") == ("b", "c")
    cases = pd.DataFrame({"a": [0.9, np.nan, -0.4], "c": [0.5, 1.0, np.nan]})
    many = net.query("b", cases)
    for i, row in enumerate(cases.to_dict("records")):
        one = net.query("b", row)
        assert many["b"].mean()[i] == pytest.approx(one["b"].mean(), abs=1e-9)
        assert many.log_evidence[i] == pytest.approx(one.log_evidence, abs=1e-9)
    grid = np.linspace(-3.5, 3.5, 1401)
    density = np.exp(net.log_likelihood(pd.DataFrame({"a": grid})))
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=5e-3)
    both = net.query([("a", "b")], {"c": 0.5})[("a", "b")]
    assert both.mean()[0] == pytest.approx(net.query("a", {"c": 0.5})["a"].mean(), abs=1e-2)
    noisy = net.query("b", {"a": gg.Likelihood((0.9, 1e-3))})["b"].mean()
    assert noisy == pytest.approx(net.query("b", {"a": 0.9})["b"].mean(), abs=0.02)
    assert gg.plan(net).width == 2 and "junction" in str(gg.plan(net))


def test_potentials_stand_in_networks_graphs_and_files(learned, tmp_path):
    net, data, _ = learned
    pieces = list(net.potentials)
    again, graph = gg.MarkovNetwork(factors=pieces), gg.FactorGraph(pieces)
    asked = net.query("b", {"a": 0.7})["b"].mean()
    for model in (again, graph, net.to_factor_graph(), graph.to_markov_network()):
        assert model.query("b", {"a": 0.7})["b"].mean() == pytest.approx(asked, abs=1e-9)
    assert graph.neighbors("f0") == pieces[0].names
    for model, name in ((net, "net.json"), (net, "net.gg"), (graph, "graph.json")):
        gg.write(model, tmp_path / name)
        back = gg.read(tmp_path / name)
        assert back == model and back.query("b", {"a": 0.7})["b"].mean() == pytest.approx(asked, abs=1e-12)
    other = gg.learn_markov({name: x[:500] for name, x in data.items()}, "a - b", cells=16, rank=2, penalty=0.1)
    with pytest.raises(ModelError, match="different cells"):
        gg.MarkovNetwork(factors=[*pieces, *other.potentials])
    with_table = gg.MarkovNetwork(factors=[net.potential("a"), (("s", "t"), [[2.0, 1.0], [1.0, 2.0]])])
    assert with_table.query("s", {"t": "yes"})["s"].prob("yes") == pytest.approx(2.0 / 3.0)


def test_kinds_of_potentials_are_fitted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    data = pd.DataFrame({"a": x, "b": np.tanh(x) + 0.2 * rng.normal(size=300)})
    net = gg.MarkovNetwork(edges="a{real} - b{real}", potentials={("a", "b"): gg.KernelPotential(rank=3)})
    assert "not fitted" in repr(net) and net.edges == (("a", "b"),)
    with pytest.raises(ModelError, match="not fitted yet"):
        net.query("a")
    fitted = net.fit(data, penalty=0.01, cells=16)
    assert fitted.report["rank"] == 3 and fitted.query("b", {"a": 1.0})["b"].mean() > 0.4


def test_neighbors_by_group_lasso():
    rng = np.random.default_rng(1)
    a = rng.normal(size=500)
    b = np.sin(2.0 * a) + 0.3 * rng.normal(size=500)
    d = rng.normal(size=500)
    data = {"a": a, "b": b, "d": d, "e": d**2 + 0.3 * rng.normal(size=500)}
    net = gg.learn_markov(data, cells=24, rank=3, penalty=0.01)
    assert net.edges == (("a", "b"), ("d", "e"))


@pytest.mark.parametrize("only", [1.0, "a"])
@pytest.mark.parametrize("structure", [None, "x - y - c - x", "x - c"])
@pytest.mark.parametrize("penalty", [None, 0.01])
def test_a_column_of_one_value_has_no_neighbors(only, structure, penalty):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    data = {"x": x, "y": x + 0.5 * rng.normal(size=80), "c": [only] * 80}
    net = gg.learn_markov(data, structure, penalty=penalty, rank=2, cells=16)
    if structure is None:
        assert [set(edge) for edge in net.edges] == [{"x", "y"}]
    elif "y" in structure:
        pair = gg.learn_markov({"x": x, "y": data["y"]}, "x - y", penalty=penalty, rank=2, cells=16)
        by_pair, found = (n.query("y", {"x": 1.0})["y"].mean() for n in (pair, net))
        assert found == pytest.approx(by_pair, abs=1e-6)
    given = net.query("x", {"c": only})["x"].mean()
    assert given == pytest.approx(net.query("x")["x"].mean(), abs=1e-9)


def test_columns_of_one_value_alone():
    for shared in (False, True):
        net = gg.learn_markov({"a": [2.0] * 30, "b": [2.0] * 30}, "a - b", shared=shared)
        assert net.query("a")["a"].mean() == pytest.approx(2.0)
    assert not gg.learn_markov({"a": [2.0] * 30, "b": [2.0] * 30}).edges


def test_directions_have_densities():
    rng = np.random.default_rng(0)
    S = rng.normal(size=(300, 3))
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    data = {"s": list(S), "t": list(S + 0.2 * rng.normal(size=S.shape))}
    kinds = {"s": "sphere", "t": "sphere"}
    z, w = np.polynomial.legendre.leggauss(40)
    angle = np.arange(80) * 2.0 * np.pi / 80
    flat = np.sqrt(1.0 - z**2)[:, None]
    X = np.stack([flat * np.cos(angle), flat * np.sin(angle), np.repeat(z[:, None], 80, axis=1)], axis=2).reshape(-1, 3)
    W = np.repeat(w, 80) * 2.0 * np.pi / 80
    belief = gg.learn_markov(data, "s - t", domains=kinds, rank=4, penalty=0.01).query("s", {"t": [1.0, 0.0, 0.0]})["s"]
    assert belief.density(X) @ W == pytest.approx(1.0, abs=1e-6) and belief.mean()[0] > 0.8
    alone = gg.learn_markov(data, "s; t", domains=kinds, rank=2, penalty=0.01)
    kde = np.exp(alone.cell_axes[0].density.log_kernels(X[:50])).mean(axis=1)
    assert np.allclose(alone.query("s")["s"].density(X[:50]), kde, rtol=1e-10)


def test_errors_speak(learned):
    _, data, _ = learned
    few = {name: values[:300] for name, values in data.items()}
    net = gg.learn_markov(few, "a - b - c - a", cells=16, shared=True)
    assert net.report["rank"] == 6 and np.shape(net.report["penalty"]) == (6, 6)
    with pytest.raises(VariableError):
        gg.learn_markov(data, "a - d")
    with pytest.raises(ModelError, match="at least 20 rows"):
        gg.learn_markov({name: values[:5] for name, values in data.items()}, "a - b")
    assert net.query("a", {"a": 0.25})["a"].mean() == 0.25


def test_best_values_are_where_the_density_is_largest():
    """Two peaks each: 60 % of the rows are in both first ones; the ratio p(x, y) / p(x) p(y) is larger in the last."""
    rng = np.random.default_rng(0)
    peak = rng.choice(4, size=2000, p=[0.6, 0.1, 0.1, 0.2])
    x, y = (np.where(at, 1.0, -1.0) + 0.15 * rng.normal(size=2000) for at in (peak // 2, peak % 2))
    net = gg.learn_markov({"x": x, "y": y}, "x - y", cells=32, rank=4, penalty=1e-3)
    assert dict(net.map_query().assignment) == pytest.approx({"x": -1.0, "y": -1.0}, abs=0.25)


def test_a_node_is_at_its_optimum_whatever_the_penalties():
    from gramgraph.embeddings.network.node_problem import solve_node

    rng = np.random.default_rng(0)
    X = np.hstack([np.ones((200, 1)), rng.normal(size=(200, 3))])
    F, q = rng.normal(size=(9, 2)), np.full(9, 1.0 / 9.0)
    U = F[rng.integers(0, 9, 200)] + 0.3 * X[:, 1:3]
    penalty = 10.0 ** rng.uniform(-6.0, 4.0, size=(4, 2))

    def cost(B):
        theta = X @ B
        logs = np.log(np.exp(theta @ F.T) @ q)
        return float((logs - (theta * U).sum(axis=1)).mean() + 0.5 * (penalty * B**2).sum())

    B = solve_node([(X, U, F, q)], penalty)
    for i in range(B.size):
        step = np.zeros(B.size)
        step[i] = 1e-5 / np.sqrt(1.0 + penalty.flat[i])
        step = step.reshape(B.shape)
        assert cost(B) <= min(cost(B + step), cost(B - step)) + 1e-12


def test_newton_and_quasi_newton_meet_and_spreads_are_inverse_curvatures():
    from gramgraph.embeddings.network.node_problem import _cost, _newton, _quasi_newton, spread_of

    rng = np.random.default_rng(2)
    X = np.hstack([np.ones((300, 1)), rng.normal(size=(300, 2))])
    F, q = rng.normal(size=(7, 2)), rng.dirichlet(np.ones(7))
    part, penalty = [(X, F[rng.integers(0, 7, 300)], F, q)], 10.0 ** rng.uniform(-3.0, 1.0, size=(3, 2))
    B = _newton(part, penalty, np.zeros((3, 2)))
    assert np.allclose(B, _quasi_newton(part, penalty, np.ones((3, 2))), atol=1e-5)
    H = np.empty((6, 6))
    for k, step in enumerate(1e-5 * np.eye(6).reshape(6, 3, 2)):
        H[k] = ((_cost(part, B + step, penalty)[1] - _cost(part, B - step, penalty)[1]) / 2e-5).ravel()
    assert np.allclose(spread_of(part, B, penalty).ravel(), np.diag(np.linalg.inv(H)), rtol=1e-6)


def test_penalties_are_the_variances_of_their_orders():
    """Nodes of a model whose coefficients are drawn: the learned penalty is 1 / (rows × variance) of each order."""
    from gramgraph.embeddings.network.shrinkage import Penalties, learn_penalties

    rng, n = np.random.default_rng(0), 400
    F = np.linalg.qr(np.hstack([np.ones((9, 1)), rng.normal(size=(9, 2))]))[0][:, 1:] * 3.0
    sd, nodes = np.array([[0.8, 0.05], [0.05, 0.3]]), []
    for _ in range(16):
        X = np.hstack([np.ones((n, 1)), rng.normal(size=(n, 6))])
        B = np.vstack([0.5 * rng.normal(size=(1, 2)), *(sd * rng.normal(size=(2, 2)) for _ in range(3))])
        logs = X @ B @ F.T + rng.gumbel(size=(n, 9))  # the largest is a draw
        nodes.append(([(X, F[logs.argmax(axis=1)], F, np.full(9, 1.0 / 9.0))], [2, 2, 2]))
    found = learn_penalties(nodes, Penalties(np.full(2, 1.0), np.full((2, 2), 1.0)))
    assert np.allclose(1.0 / np.sqrt(n * found.pairs), sd, rtol=0.35)
    assert np.allclose(1.0 / np.sqrt(n * found.fields), 0.5, rtol=0.5)


def test_learned_penalties_press_orders_without_signal(learned):
    _, data, p = learned
    rng = np.random.default_rng(3)
    noise = rng.normal(size=300)
    few = {**{name: values[:300] for name, values in data.items()}, "d": noise}
    net = gg.learn_markov(few, "a - b - c - a; c - d", cells=32)
    weak = gg.learn_markov(few, "a - b - c - a; c - d", cells=32, penalty=1e-6)
    test = {name: values[1000:] for name, values in data.items()} | {"d": rng.normal(size=1000)}
    assert net.pseudo_log_likelihood(test) > weak.pseudo_log_likelihood(test) + 0.02
    assert np.ptp(net.potential("c", "d").log_table) < 0.5 * np.ptp(weak.potential("c", "d").log_table)
    assert gg.learn_markov(few, "a; b", cells=16).report["rank"] == 6
