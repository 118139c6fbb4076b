"""Weighted sums of joint tables over cases are those of the tables of the single cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.questions.question import Question


def _question(net: Any, hidden: float, never: tuple[int, ...], rows: int, seed: int = 0) -> tuple[Question, Any]:
    """Rows drawn from the network with gaps; the columns `never` have none."""
    rng = np.random.default_rng(seed)
    drawn = net.sample(rows, random_state=seed)
    codes = np.stack([drawn[var.name].cat.codes.to_numpy() for var in net.vars], axis=1).astype(np.int64)
    gaps = rng.random(codes.shape) < hidden
    gaps[:, list(never)] = False
    codes[gaps] = -1
    families = tuple((*net.parent_positions[v], v) for v in range(len(net.vars)))
    return Question((), families, tuple(range(len(net.vars))), codes, (), True), rng.random(rows)


def _by_cases(net: Any, question: Question, weights: Any) -> tuple[list[Any], Any]:
    answer = JunctionTree().answer(net, question)
    names = [tuple(net.vars[v].name for v in joint) for joint in question.joints]
    return [np.tensordot(weights, answer[name].probabilities, axes=1) for name in names], answer.log_evidence


@pytest.mark.parametrize("never", [(), (0, 3, 5), tuple(range(1, 8)), tuple(range(8))], ids=len)
@pytest.mark.parametrize("rows", [1, 5, 300])
def test_totals_are_sums_over_cases(never: tuple[int, ...], rows: int):
    net = gg.datasets.asia()
    question, weights = _question(net, 0.4, never, rows)
    found, log_z = JunctionTree().totals(net, question, weights)
    expected, expected_z = _by_cases(net, question, weights)
    np.testing.assert_allclose(log_z, expected_z, rtol=1e-12)
    for table, other in zip(found, expected, strict=True):
        assert table.shape == other.shape
        np.testing.assert_allclose(table, other, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(table.sum(), weights.sum(), rtol=1e-10)


def test_rows_beyond_the_range_of_doubles_count_too():
    """Tables so small that products underflow are summed by logarithms, row by row."""
    n = 12
    tiny = {f"x{i}": [[1.0 - 1e-60, 1e-60]] for i in range(n)}
    net = gg.BayesianNetwork("; ".join(tiny), cpds={name: np.array(rows[0]) for name, rows in tiny.items()})
    codes = np.array([[1] * n, [0] * n, [-1] * n], np.int64)
    question = Question((), tuple((v,) for v in range(n)), tuple(range(n)), codes, (), True)
    weights = np.array([1.0, 2.0, 4.0])
    found, log_z = JunctionTree().totals(net, question, weights)
    expected, expected_z = _by_cases(net, question, weights)
    np.testing.assert_allclose(log_z, expected_z)
    np.testing.assert_allclose(found, expected)


def test_an_impossible_row_is_told_by_its_log_probability():
    net = gg.datasets.asia()
    question, weights = _question(net, 0.0, (), 4)
    for name, state in (("tub", "yes"), ("either", "no")):
        question.codes[2, net.index(name)] = net.var(name).index(state)
    _, log_z = JunctionTree().totals(net, question, weights)
    assert np.isneginf(log_z).tolist() == [False, False, True, False]
