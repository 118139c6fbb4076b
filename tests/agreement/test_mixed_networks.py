"""Quadrature on nodes against weighted draws, on random networks of seven variables with every kind of arrow."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.exceptions import BudgetError
from gramgraph.variables import Circle
from tests.reference.mixed_networks import random_network

#: log p(e) may be off by this beside errors.
_LOG_P = 0.02


def gaps(seed, draws):
    """Differences of beliefs in standard errors, beyond the stated error; and of log p(e) beyond both."""
    net, point = random_network(seed)
    rng = np.random.default_rng(seed + 1000)
    names = rng.choice(list(point), size=int(rng.integers(0, 4)), replace=False)
    evidence = {str(name): point[name] for name in names}
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
