"""Answers do not depend on what the same model object was asked before: nothing kept serves another question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.variables import Var, discrete
from tests.portions import examples


def structured_network(rng: np.random.Generator) -> gg.BayesianNetwork:
    """Roots, and children that bring hidden variables of both kinds: summed ones, and functions of the parents."""
    roots = [discrete(f"r{i}", int(rng.integers(2, 4))) for i in range(int(rng.integers(4, 6)))]
    kinds = [str(kind) for kind in rng.permutation(["noisy", "gate", "table", rng.choice(["noisy", "gate"])])]
    conditionals: list[Any] = [gg.Table(v, (), rng.dirichlet(np.ones(v.size))) for v in roots]
    children: list[Var] = []
    for i, kind in enumerate(kinds):
        pool = roots + children
        k = 2 if kind == "table" else 4  # with four parents small factors are smaller than the table
        parents = tuple(pool[int(j)] for j in rng.choice(len(pool), size=k, replace=False))
        if kind == "gate":
            child = discrete(f"g{i}", 2)
            conditionals.append(gg.conditionals.Gate(child, parents, str(rng.choice(["xor", "or", "and"]))))
        elif kind == "noisy":
            child = discrete(f"n{i}", 2)
            conditionals.append(gg.NoisyOr(child, parents, rng.uniform(0.1, 0.9, k).tolist(), leak=0.1))
        else:
            child = discrete(f"t{i}", 2)
            shape = tuple(p.size for p in parents)
            conditionals.append(gg.Table(child, parents, rng.dirichlet(np.ones(2), size=shape)))
        children.append(child)
    return gg.BayesianNetwork.from_parts([*roots, *children], conditionals)


def question(net: gg.BayesianNetwork, rng: np.random.Generator) -> Callable[[gg.BayesianNetwork], list[float]]:
    """A random question as a function from a network to numbers."""
    seen = {v: net.states(v)[0] for v in net.variables if v[0] in "tn" and rng.random() < 0.4}
    kind, target = str(rng.choice(["log", "query", "joint", "best", "three", "frame"])), str(rng.choice(net.variables))

    def ask(model: gg.BayesianNetwork) -> list[float]:
        if kind == "log":
            return [float(model.log_evidence(seen))]
        if kind == "query":
            return model.query(target, seen)[target].probabilities.tolist()
        if kind == "joint":
            pair = (target, next(v for v in model.variables if v != target))
            return model.query(pair, seen)[pair].probabilities.ravel().tolist()
        if kind == "best":
            best = model.map_query(seen)
            return [best.log_prob, model.joint_log_prob({**seen, **best.assignment})]
        if kind == "three":
            return [best.log_prob for best in model.map_query(seen, k=3)]
        cases = [{**seen, "r0": state} for state in model.states("r0")] * 5
        return model.query(target, cases)[target].probabilities.ravel().tolist()

    return ask


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(15))
def test_answers_do_not_depend_on_earlier_questions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = structured_network(rng)
    copy = gg.BayesianNetwork.from_parts  # a fresh object has nothing kept
    for ask in [question(net, rng) for _ in range(10)]:
        fresh = copy(net.vars, net.conditionals)
        np.testing.assert_allclose(ask(net), ask(fresh), atol=1e-11)


def test_the_best_assignment_after_a_sum_and_the_sum_after_it() -> None:
    a, b, c, d, n, g = (discrete(v, 2) for v in "abcdng")
    tables = [gg.Table(v, (), [0.4, 0.6]) for v in (a, b, c, d)]
    gates = [gg.NoisyOr(n, (a, b, c, d), [0.5] * 4, leak=0.1), gg.conditionals.Gate(g, (a, b, c, d), "xor")]
    net = gg.BayesianNetwork.from_parts([a, b, c, d, n, g], [*tables, *gates])
    net.log_evidence({})
    best = net.map_query()
    assert best.log_prob == pytest.approx(net.joint_log_prob(best.assignment), abs=1e-12)
    assert best.log_prob == pytest.approx(net.map_query(engine="enumeration").log_prob, abs=1e-12)
    assert net.log_evidence({}) == pytest.approx(0.0, abs=1e-12)


def test_a_memory_limit_counts_also_where_the_tree_is_there_already() -> None:
    net = gg.datasets.asia()
    fresh = gg.datasets.asia()
    net.log_evidence({"xray": "yes"})
    for model in (net, fresh):
        with pytest.raises(gg.BudgetError):
            model.log_evidence({"xray": "yes"}, memory=100.0)


def test_what_one_gaussian_engine_keeps_does_not_hide_a_refusal_of_another() -> None:
    from gramgraph.engines.base import IllConditioned
    from gramgraph.engines.gaussian.dense import DenseGaussian

    text = "x{real} -> y{real}; x -> z{real}"
    noise = {"x": gg.LinearGaussian("x", (), [], 0.0, 1.0)}
    noise |= {v: gg.LinearGaussian(v, ("x",), [1.0], 0.0, 1e-18) for v in "yz"}
    net = gg.BayesianNetwork(text, cpds=noise)
    seen, want, X = np.array([1, 2]), np.array([0]), np.zeros((100, 2))
    with pytest.raises(IllConditioned):
        DenseGaussian(strict=True).posterior(net, seen, X, want, [])
    DenseGaussian().posterior(net, seen, X, want, [])
    with pytest.raises(IllConditioned):
        DenseGaussian(strict=True).posterior(net, seen, X, want, [])
