"""Layers of least total span against a linear program."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from gramgraph.plot.layout import _components
from gramgraph.plot.spans import least_span_layers


def longest_paths(n, edges):
    layer = [0] * n
    for _ in range(n):
        for u, v in edges:
            layer[v] = max(layer[v], layer[u] + 1)
    return layer


@given(st.integers(0, 100_000))
def test_the_span_is_that_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    names = rng.permutation(n).tolist()
    edges = [(names[a], names[b]) for a, b in combinations(range(n), 2) if rng.random() < 0.3]
    edges += [(names[k], names[k + 1]) for k in range(n - 1) if len(_components(n, edges)) > 1]
    layer = least_span_layers(longest_paths(n, edges), edges)
    assert min(layer) == 0
    assert all(layer[v] > layer[u] for u, v in edges)
    A, c = np.zeros((len(edges), n)), np.zeros(n)
    unique = list(dict.fromkeys(edges))
    A = A[: len(unique)]
    for k, (u, v) in enumerate(unique):
        A[k, u], A[k, v] = 1.0, -1.0
        c[v] += 1.0
        c[u] -= 1.0
    best = linprog(c, A_ub=A, b_ub=-np.ones(len(unique)), bounds=(0, n))
    assert sum(layer[v] - layer[u] for u, v in unique) == round(best.fun)


def test_alarm_gets_the_published_span(shared_data):
    import gramgraph as gg

    net = gg.read(shared_data / "bn" / "alarm.bif.gz")
    edges = [(net.index(a), net.index(b)) for a, b in net.edges]
    layer = least_span_layers(longest_paths(len(net), edges), edges)
    assert sum(layer[v] - layer[u] for u, v in edges) == 56
