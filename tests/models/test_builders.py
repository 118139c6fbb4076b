from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.models import (
    boltzmann_machine,
    denoising_grid,
    hidden_markov_chain,
    ising_grid,
    markov_chain,
    naive_bayes,
    potts_grid,
)


def weights(model: gg.MarkovNetwork | gg.BayesianNetwork) -> dict[tuple[str, ...], float]:
    out = {}
    for at in np.ndindex(*(var.size for var in model.vars)):
        x = {var.name: var.states[i] for var, i in zip(model.vars, at, strict=True)}
        out[tuple(x.values())] = np.exp(model.joint_log_prob(x))
    return out


@pytest.mark.parametrize("a", [-1.3, 0.0, 0.4, 2.0])
def test_two_node_ising(a: float) -> None:
    """p(1, 1) = e^a / (2 e^a + 2 e^-a)."""
    w = weights(ising_grid(1, 2, coupling=a))
    total = sum(w.values())
    assert w["+1", "+1"] / total == pytest.approx(np.exp(a) / (2 * np.exp(a) + 2 * np.exp(-a)))
    assert w["-1", "-1"] / total == pytest.approx(np.exp(a) / (2 * np.exp(a) + 2 * np.exp(-a)))
    assert w["-1", "+1"] / total == pytest.approx(np.exp(-a) / (2 * np.exp(a) + 2 * np.exp(-a)))


def test_ising_grid_against_its_formula() -> None:
    rng = np.random.default_rng(0)
    along, down, h = rng.normal(size=(2, 2)), rng.normal(size=(1, 3)), rng.normal(size=(2, 3))
    net = ising_grid(2, 3, coupling=(along, down), field=h)
    assert net.variables == ("x0_0", "x0_1", "x0_2", "x1_0", "x1_1", "x1_2")
    assert len(net.edges) == 2 * 2 + 3
    assert net.markov_blanket("x0_1") == ("x0_0", "x0_2", "x1_1")
    for key, w in weights(net).items():
        x = np.array([float(label) for label in key]).reshape(2, 3)
        energy = (along * x[:, 1:] * x[:, :-1]).sum() + (down * x[1:] * x[:-1]).sum() + (h * x).sum()
        assert np.log(w) == pytest.approx(energy)
    with pytest.raises(gg.ModelError, match="coupling along rows"):
        ising_grid(2, 3, coupling=(np.ones((5, 5)), 1.0))
    with pytest.raises(gg.ModelError, match="at least one row"):
        ising_grid(0, 3)


def test_potts_grid_against_its_formula() -> None:
    h = np.array([0.1, -0.2, 0.3])
    net = potts_grid(2, 2, 3, coupling=0.7, field=h)
    for key, w in weights(net).items():
        x = np.array(list(map(int, key))).reshape(2, 2)
        same = (x[:, 1:] == x[:, :-1]).sum() + (x[1:] == x[:-1]).sum()
        assert np.log(w) == pytest.approx(0.7 * same + h[x].sum())
    with pytest.raises(gg.ModelError, match="n_states"):
        potts_grid(2, 2, 0)


def test_two_state_potts_is_an_ising_grid() -> None:
    ising, potts = weights(ising_grid(2, 2, coupling=0.5)), weights(potts_grid(2, 2, 2, coupling=1.0))
    a, b = np.array(list(ising.values())), np.array(list(potts.values()))
    assert np.allclose(a / a.sum(), b / b.sum())


@pytest.mark.parametrize("spins", [False, True])
def test_boltzmann_machine_against_its_formula(spins: bool) -> None:
    rng = np.random.default_rng(2)
    W = np.triu(rng.normal(size=(4, 4)), 1)
    W[0, 2] = 0.0
    W, b = W + W.T, rng.normal(size=4)
    net = boltzmann_machine(W, b, spins=spins)
    assert ("x0", "x2") not in net.edges
    for key, w in weights(net).items():
        x = np.array(list(map(float, key)))
        assert np.log(w) == pytest.approx(0.5 * x @ W @ x + b @ x)
    for wrong in (np.ones((2, 2)), [[0, 1], [2, 0]], [1, 2]):
        with pytest.raises(gg.ModelError, match="symmetric"):
            boltzmann_machine(wrong)
    with pytest.raises(gg.ModelError, match="names"):
        boltzmann_machine(W, names=["a"])


def test_denoising_grid_is_prior_times_likelihood() -> None:
    y = np.array([[1, 0], [1, 1]])
    net, prior = denoising_grid(y, coupling=0.8, flip_probability=0.2), ising_grid(2, 2, coupling=0.8)
    w, p = weights(net), weights(prior)
    likelihood = {
        key: np.prod(
            [0.8 if (label == "+1") == bool(pixel) else 0.2 for label, pixel in zip(key, y.ravel(), strict=True)]
        )
        for key in w
    }
    ratios = np.array([w[key] / (p[key] * likelihood[key]) for key in w])
    assert np.allclose(ratios, ratios[0])
    assert denoising_grid(y.astype(bool)) == denoising_grid(np.where(y, 1, -1)) == denoising_grid(y)
    with pytest.raises(gg.ModelError, match="binary image"):
        denoising_grid([[0, 1], [2, 1]])
    with pytest.raises(gg.ModelError, match="binary image"):
        denoising_grid([[0, 1], [-1, 1]])
    with pytest.raises(gg.ModelError, match="between 0 and 1"):
        denoising_grid(y, flip_probability=0.0)


def test_naive_bayes() -> None:
    tables = {"a": {"0": 0.1, "1": 0.7}, "b": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]}
    net = naive_bayes("y", 2, {"a": 2, "b": 3}, prior=0.4, tables=tables)
    assert net.edges == (("y", "a"), ("y", "b"))
    assert np.exp(net.joint_log_prob({"y": 1, "a": 1, "b": 2})) == pytest.approx(0.4 * 0.7 * 0.1)
    assert not naive_bayes("y", 2, ["a"]).has_tables
    with pytest.raises(gg.ModelError, match="no conditional yet"):
        naive_bayes("y", 2, ["a"], prior=0.5)
    assert net.is_dseparated("a", "b", given="y")


def test_markov_chain() -> None:
    T = np.array([[0.9, 0.1], [0.4, 0.6]])
    net = markov_chain(4, initial=[0.2, 0.8], transition=T)
    assert net.edges == (("x0", "x1"), ("x1", "x2"), ("x2", "x3"))
    p = np.array([0.2, 0.8]) @ np.linalg.matrix_power(T, 3)
    last = sum(w for key, w in weights(net).items() if key[-1] == "yes")
    assert last == pytest.approx(p[1])
    by_step = markov_chain(3, initial=0.5, transition=[T, np.eye(2)])
    assert by_step.cpt["x2"].values.tolist() == np.eye(2).tolist()
    assert markov_chain(1, initial=[0.5, 0.5]).variables == ("x0",)
    with pytest.raises(gg.ModelError, match="belong together"):
        markov_chain(3, initial=[0.5, 0.5])
    with pytest.raises(gg.ModelError, match="transition must be"):
        markov_chain(3, 3, initial=[0.2, 0.3, 0.5], transition=T)
    with pytest.raises(gg.ModelError, match="at least one"):
        markov_chain(0)
    with pytest.raises(gg.ModelError, match="sums to"):
        markov_chain(3, initial=[0.5, 0.5], transition=2 * T)


def test_hidden_markov_chain_by_the_forward_recursion() -> None:
    rng = np.random.default_rng(5)
    pi, A, E = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(2), 3)
    net = hidden_markov_chain(3, 3, 2, initial=pi, transition=A, emission=E)
    seen = [0, 1, 1]
    alpha = pi * E[:, seen[0]]
    for x in seen[1:]:
        alpha = (alpha @ A) * E[:, x]
    total = sum(w for key, w in weights(net).items() if key[3:] == tuple(map(str, seen)))
    assert total == pytest.approx(alpha.sum())
