"""Quadrature on nodes against weighted draws, on random networks of seven variables with every kind of arrow."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.engines.nodes import engine as nodes
from gramgraph.exceptions import BudgetError
from gramgraph.variables import Circle
from tests.reference.mixed_networks import random_network

#: log p(e) may be off by this beside errors.
_LOG_P = 0.02


def asked(seed, **options):
    """A network and evidence of none to three of its variables."""
    net, point = random_network(seed, **options)
    rng = np.random.default_rng(seed + 1000)
    names = rng.choice(list(point), size=int(rng.integers(0, 4)), replace=False)
    return net, {str(name): point[name] for name in names}


def gaps(seed, draws):
    """Differences of beliefs in standard errors, beyond the stated error; and of log p(e) beyond both."""
    net, evidence = asked(seed)
    found = net.query(None, evidence, engine="nodes")
    drawn = net.query(None, evidence, engine="likelihood_weighting", budget=draws, random_state=0)
    out = []
    for key in found:
        stated, error = found.details["standard_error"][key], drawn.details["standard_error"][key]
        if net.var(key).is_discrete:
            gap = np.abs(found[key].probabilities - drawn[key].probabilities)
        else:
            gap = abs(found[key].mean() - drawn[key].mean())
            gap = abs(np.angle(np.exp(1j * gap))) if isinstance(net.var(key).domain, Circle) else gap
        out.append(float(np.max((gap - stated) / (np.asarray(error) + 1e-9))))
    log_gap = abs(found.log_evidence - drawn.log_evidence)
    return out, log_gap - 3.0 * drawn.details["log_evidence_error"] - found.details["log_evidence_error"]


@pytest.mark.parametrize("seed", [4, 8])
def test_nodes_agree_with_weighted_draws(seed):
    z, log_p = gaps(seed, 50_000)
    assert max(z) < 5.0 and log_p < _LOG_P


@pytest.mark.slow
def test_fifty_networks_against_a_million_draws():
    found, logs = [], []
    for seed in range(50):
        try:
            z, log_p = gaps(seed, 1_000_000)
        except BudgetError:  # cliques that are left to draws
            continue
        found += z
        logs.append(log_p)
    assert np.mean(np.array(found) <= 3.0) >= 0.98 and max(found) <= 5.0
    assert max(logs) < _LOG_P


def errors_of_nodes(seed, monkeypatch, **options):
    """What the usual number of nodes is off by: (largest of means and deviations in posterior standard deviations and
    of probabilities, of log p(e)), against more nodes than are ever taken by themselves."""
    net, evidence = asked(seed, **options)
    try:
        found = net.query(None, evidence, engine="nodes")
    except BudgetError:
        return 0.0, 0.0
    with monkeypatch.context() as more:
        for name, value in {"LARGEST": 4e6, "MOST_ENTRIES": 4e6, "MOST": 512, "GOAL": 1e-5}.items():
            more.setattr(nodes, name, value)
        fine = net.query(None, evidence, engine="nodes", n_nodes=128)
    out = []
    for key in found:
        if net.var(key).is_discrete:
            out.append(np.abs(found[key].probabilities - fine[key].probabilities).max())
            continue
        gap, sd = found[key].mean() - fine[key].mean(), float(fine[key].sd())
        gap = np.angle(np.exp(1j * gap)) if isinstance(net.var(key).domain, Circle) else gap
        out += [abs(float(gap)) / sd, abs(float(found[key].sd()) - sd) / sd]
    return max(out), abs(found.log_evidence - fine.log_evidence)


@pytest.mark.parametrize("seed", [1, 8, 42])
def test_the_usual_nodes_are_within_a_hundredth_of_a_deviation(seed, monkeypatch):
    off, log_p = errors_of_nodes(seed, monkeypatch)
    assert off <= 0.01 and log_p <= _LOG_P


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_fifty_networks_are_within_a_hundredth_of_a_deviation(seed, monkeypatch):
    off, log_p = errors_of_nodes(seed, monkeypatch)
    assert off <= 0.01 and log_p <= _LOG_P


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_networks_with_boosted_trees_are_within_a_fiftieth_of_a_deviation(seed, monkeypatch):
    off, log_p = errors_of_nodes(seed, monkeypatch, boosted=True)
    assert off <= 0.02 and log_p <= _LOG_P
