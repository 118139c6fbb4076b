"""Strengths of edges on simulated networks: how often the edges are true."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg


def logistic_network(seed: int, n: int = 6) -> gg.BayesianNetwork:
    """Two states each, effects from none at all to strong."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for a, b in itertools.combinations(range(n), 2) if rng.random() < 0.4]
    parents = {f"v{b}": [f"v{a}" for a, c in edges if c == b][:3] for b in range(n)}
    cpds = {}
    for name, above in parents.items():
        weights = rng.choice([-1.0, 1.0], len(above)) * rng.uniform(0.0, 1.5, len(above))
        rows = np.array(list(itertools.product([-1, 1], repeat=len(above)))).reshape(2 ** len(above), len(above))
        p = 1 / (1 + np.exp(-(rows @ weights)))
        cpds[name] = np.stack([1 - p, p], axis=-1).reshape([2] * len(above) + [2])
    return gg.BayesianNetwork(parents, cpds=cpds)


@pytest.fixture(scope="module")
def bootstraps() -> tuple[list, list]:
    nets = [logistic_network(seed) for seed in range(24)]
    frames = [net.sample(300, random_state=i)[list(net.variables)] for i, net in enumerate(nets)]
    return [gg.learn.bootstrap_edges(f, 20, random_state=i) for i, f in enumerate(frames)], nets


def test_strengths_are_calibrated(bootstraps) -> None:
    """Shares within three standard errors of the strengths, and the 0.05 that a finite bootstrap may be off."""
    table = gg.learn.reliability(*bootstraps, bins=5)
    assert table["pairs"].sum() == 24 * 15
    error = np.sqrt(table["strength"] * (1 - table["strength"]) / table["pairs"])
    assert (np.abs(table["share"] - table["strength"]) <= 3 * error + 0.05).all(), table
    assert table["share"].iloc[-1] > 0.9


def test_the_frame_by_hand() -> None:
    from gramgraph.data import code_table
    from gramgraph.learn import EdgeStrengths

    coded = code_table(pd.DataFrame({"a": [0, 1], "b": [0, 1], "c": [0, 1]}))
    forward = np.array([[0, 0.5, 0.1], [0.45, 0, 0.2], [0, 0, 0]])
    table = gg.learn.reliability(
        EdgeStrengths(("a", "b", "c"), forward, 10, coded), gg.BayesianNetwork("a -> b; c"), bins=2
    )
    assert table["strength"].tolist() == pytest.approx([0.15, 0.95])
    assert table["share"].tolist() == [0.0, 1.0] and table["pairs"].tolist() == [2, 1]
    assert (table["low"] <= table["share"]).all() and (table["share"] <= table["high"]).all()


def test_the_picture_and_mistakes(bootstraps) -> None:
    from gramgraph.plot import plot_reliability

    ax = plot_reliability(*bootstraps, bins=5)
    assert ax.get_ylabel() == "share of true edges"
    with pytest.raises(gg.OptionError, match="bins"):
        gg.learn.reliability(*bootstraps, bins=0)
    with pytest.raises(gg.OptionError, match="its true network"):
        gg.learn.reliability(bootstraps[0], bootstraps[1][:3])
