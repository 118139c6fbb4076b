"""What zeros imply: the same beliefs with it observed, and trees that fit where they did not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.conditionals import Table
from gramgraph.engines.exact.implied import with_implied
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.factors import TableFactor
from gramgraph.questions.reading import read
from gramgraph.variables import discrete


def deterministic_network(rng: np.random.Generator, n: int) -> gg.BayesianNetwork:
    """Tables most of whose rows are certain."""
    variables = [discrete(f"v{i}", int(rng.integers(2, 4))) for i in range(n)]
    tables = []
    for i, child in enumerate(variables):
        parents = tuple(variables[int(j)] for j in rng.choice(i, size=min(i, int(rng.integers(0, 3))), replace=False))
        shape = (*(p.size for p in parents), child.size)
        values = rng.random(shape) * (rng.random((*shape[:-1], 1)) < 0.3)
        np.put_along_axis(values, rng.integers(0, child.size, shape[:-1])[..., None], 1.0, axis=-1)
        tables.append(Table(child, parents, values / values.sum(-1, keepdims=True)))
    return gg.BayesianNetwork.from_parts(variables, tables)


@pytest.mark.parametrize("seed", range(40))
def test_observing_what_is_implied_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = deterministic_network(rng, 7)
    row = net.sample(1, random_state=seed).iloc[0]
    evidence = {name: row[name] for name in net.variables if rng.random() < 0.3}
    question = read(net, None, evidence)
    larger = with_implied(net, question)
    before = JunctionTree().answer(net, question)
    if larger is None:
        return
    assert set(larger.observed) > set(question.observed)
    after = JunctionTree().answer(net, larger)
    assert after.log_evidence == pytest.approx(before.log_evidence, abs=1e-12)
    for name in net.variables:
        if name not in evidence:
            np.testing.assert_allclose(after[name].probabilities, before[name].probabilities, atol=1e-12)


def equal_neighbors(side: int) -> gg.MarkovNetwork:
    """A grid whose neighbors must be equal, and whose nodes weigh their states."""
    nodes = [[discrete(f"x{i}_{j}", 2) for j in range(side)] for i in range(side)]
    same = np.eye(2)
    factors = [TableFactor((v,), [0.4, 0.6]) for line in nodes for v in line]
    factors += [TableFactor((a, b), same) for line in nodes for a, b in itertools.pairwise(line)]
    factors += [
        TableFactor((a, b), same) for up, low in itertools.pairwise(nodes) for a, b in zip(up, low, strict=True)
    ]
    return gg.MarkovNetwork(factors=factors)


def test_a_tree_that_does_not_fit_fits_with_what_is_implied() -> None:
    net = equal_neighbors(12)
    with pytest.raises(gg.BudgetError):
        net.query("x5_5", memory=1e6)
    answer = net.query("x5_5", {"x0_0": "1"}, memory=1e6)
    assert answer.exact
    assert answer["x5_5"].probabilities.tolist() == [0.0, 1.0]
    assert answer.log_evidence == pytest.approx(144 * np.log(0.6))
