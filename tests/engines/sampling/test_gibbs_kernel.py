"""The matrix of a Gibbs sweep: it keeps the posterior, and does what single updates do."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.testing.random_models import random_bayesian_network


def test_the_burglary_in_the_order_of_its_text() -> None:
    seen = {"earthquake": "yes", "mary": "yes"}
    kernel = gg.gibbs_kernel(gg.datasets.burglary(), seen, order=["burglary", "alarm", "john"])
    assert kernel.variables == ("burglary", "alarm", "john") and kernel.matrix.shape == (8, 8)
    assert np.allclose(kernel.stationary @ kernel.matrix, kernel.stationary, atol=1e-15)
    assert kernel.marginal("burglary")["yes"] == pytest.approx(0.0031607, abs=5e-8)
    start = {"burglary": "yes", "alarm": "no", "john": "no"}
    assert kernel.marginal("burglary", kernel.after(start, 200))["yes"] == pytest.approx(0.0031607, abs=5e-8)


def test_the_first_update_forgets_its_own_state() -> None:
    """The order matters: what is drawn first depends on the others' old states alone."""
    seen = {"earthquake": "yes", "mary": "yes"}
    net = gg.datasets.burglary()
    kernel = gg.gibbs_kernel(net, seen, order=["burglary", "alarm", "john"])
    other = gg.gibbs_kernel(net, seen, order=["john", "alarm", "burglary"])
    first = kernel.matrix.reshape(2, 2, 2, 8)
    assert np.allclose(first[0], first[1]) and not np.allclose(first[:, 0], first[:, 1])
    given = net.query("burglary", {**seen, "alarm": "no", "john": "no"})["burglary"].prob("yes")
    drawn = kernel.after({"burglary": "yes", "alarm": "no", "john": "no"})
    assert kernel.marginal("burglary", drawn)["yes"] == pytest.approx(given, abs=1e-12)
    assert not np.allclose(np.sort(kernel.matrix.ravel()), np.sort(other.matrix.ravel()))


@pytest.mark.parametrize("seed", range(5))
def test_random_networks(seed: int) -> None:
    net = random_bayesian_network(np.random.default_rng(seed), 5, zeros=0.0)
    name = net.variables[-1]
    seen = {name: net.states(name)[0]}
    kernel = gg.gibbs_kernel(net, seen)
    assert np.allclose(kernel.matrix.sum(axis=1), 1.0) and (kernel.matrix >= 0).all()
    assert np.allclose(kernel.stationary @ kernel.matrix, kernel.stationary, atol=1e-12)
    for own in kernel.variables:
        assert np.allclose(list(kernel.marginal(own).values()), net.query(own, seen)[own].probabilities)
    assert len(kernel.states) == len(kernel.stationary) and 0.0 <= kernel.second_eigenvalue <= 1.0 + 1e-9


def test_zeros_may_lock_the_chain() -> None:
    copy = gg.BayesianNetwork("a -> b", cpds={"a": 0.5, "b": [[1.0, 0.0], [0.0, 1.0]]})
    kernel = gg.gibbs_kernel(copy)
    assert np.allclose(kernel.matrix[[0, 3]], np.eye(4)[[0, 3]]) and kernel.second_eigenvalue == pytest.approx(1.0)


def test_bad_input() -> None:
    net = gg.datasets.burglary()
    for order in (["burglary"], ["burglary", "burglary", "john", "mary", "alarm"]):
        with pytest.raises(gg.OptionError, match="every unobserved variable once"):
            gg.gibbs_kernel(net, {"earthquake": "yes"}, order=order)
    with pytest.raises(gg.BudgetError, match="states"):
        gg.gibbs_kernel(gg.models.ising_grid(4, 4, coupling=0.1))
    with pytest.raises(gg.ModelError, match="discrete"):
        gg.gibbs_kernel(gg.BayesianNetwork("x{real}", cpds={"x": (0.0, 1.0)}))
