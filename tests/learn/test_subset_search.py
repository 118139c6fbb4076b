"""The best subset of features against all subsets, and what a limit of fits leaves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.learn import best_subset


def chain(n: int, coupling: float, rows: int, seed: int = 0):
    frame = gg.models.ising_grid(1, n, coupling=coupling).sample(rows, random_state=seed)
    every = {pair: np.ones((2, 2)) for pair in itertools.combinations(frame.columns, 2)}
    return gg.MarkovNetwork(every, states={v: ["-1", "+1"] for v in frame}), frame


def loss_of(frame, kept: tuple[int, ...]) -> float:
    """−2 log-likelihood of four spins with some of their couplings, by Newton's method over all 16 states."""
    grid = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    pairs = list(itertools.combinations(range(4), 2))
    F = np.column_stack([grid, *(grid[:, a] * grid[:, b] for i, (a, b) in enumerate(pairs) if i in kept)])
    at = (frame.astype(str).to_numpy() == "+1").astype(int) @ [8, 4, 2, 1]
    seen = np.bincount(at, minlength=16)
    w = np.zeros(F.shape[1])
    for _ in range(50):
        p = np.exp(F @ w - np.logaddexp.reduce(F @ w))
        mean = p @ F
        w = w + np.linalg.solve(F.T @ (p[:, None] * F) - np.outer(mean, mean), seen @ F / len(frame) - mean)
    return -2.0 * float(seen @ (F @ w - np.logaddexp.reduce(F @ w)))


@pytest.mark.parametrize(("gamma", "seed"), [(0.0, 0), (0.5, 1), (1.0, 2)])
def test_row_d3_no_subset_is_better(gamma: float, seed: int) -> None:
    net, frame = chain(4, 0.25, 200, seed)
    found = best_subset(net, frame, method="exact", gamma=gamma)
    assert found.exact and found.n_fits < 64
    names = [f"{a}·{b}" for a, b in itertools.combinations(frame.columns, 2)]
    price = np.log(200) + 2 * gamma * np.log(len(found.names))
    scores = {
        tuple(names[i] for i in kept): loss_of(frame, kept) + price * (len(kept) + 4)
        for k in range(7)
        for kept in itertools.combinations(range(6), k)
    }
    best = min(scores, key=lambda key: scores[key])
    assert tuple(name for name in found.selected if "·" in name) == best
    assert found.score == pytest.approx(scores[best], abs=1e-2)


def test_row_d3_the_ring_is_found_and_limits_are_told() -> None:
    net, frame = chain(5, 0.6, 1500)
    found = best_subset(net, frame)
    assert found.exact
    wanted = {f"x0_{i}·x0_{i + 1}" for i in range(4)}
    assert {name for name in found.selected if "·" in name} == wanted
    few = best_subset(net, frame, max_fits=3)
    assert not few.exact and few.bound < few.score and few.n_fits <= 6
