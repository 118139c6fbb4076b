"""The oracle itself: known numbers, and numbers far outside the range of doubles."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.conditionals import Table
from gramgraph.engines import Run
from gramgraph.engines.exact.enumeration import MAX_CELLS, Enumeration
from gramgraph.exceptions import BudgetError
from gramgraph.factors import TableFactor
from gramgraph.models import BayesianNetwork, MarkovNetwork
from gramgraph.questions.question import Question
from gramgraph.variables import binary, discrete

NOTHING = np.zeros((1, 0), np.int64)


def alarm() -> BayesianNetwork:
    """Burglary, earthquake, alarm, John and Mary, with the usual numbers."""
    b, e, a, j, m = map(binary, "BEAJM")
    return BayesianNetwork.from_parts(
        [b, e, a, j, m],
        [
            Table(b, (), np.array([0.999, 0.001])),
            Table(e, (), np.array([0.998, 0.002])),
            Table(a, (b, e), np.array([[[0.999, 0.001], [0.71, 0.29]], [[0.06, 0.94], [0.05, 0.95]]])),
            Table(j, (a,), np.array([[0.95, 0.05], [0.1, 0.9]])),
            Table(m, (a,), np.array([[0.99, 0.01], [0.3, 0.7]])),
        ],
    )


def test_burglary_given_both_calls() -> None:
    answer = Enumeration().answer(alarm(), Question((0, 1), (), (3, 4), np.array([[1, 1]])))
    assert answer["B"].prob("yes") == pytest.approx(0.284171835, abs=1e-9)
    assert answer["E"].prob("yes") == pytest.approx(0.176066, abs=1e-6)
    assert np.exp(answer.log_evidence) == pytest.approx(0.002084100239)


def test_beliefs_far_below_the_range_of_doubles() -> None:
    a, b = discrete("a", 2), discrete("b", 2)
    f = TableFactor((a,), np.array([1e-300, 2e-300]), -5000.0)
    g = TableFactor((a, b), np.array([[1e-300, 3e-300], [1e-300, 1e-300]]), -5000.0)
    net = MarkovNetwork.from_parts([a, b], [f, g, f])
    answer = Enumeration().answer(net, Question((0, 1), (), (), NOTHING))
    assert answer["a"].probabilities.tolist() == pytest.approx([4 / 12, 8 / 12])
    assert answer["b"].probabilities.tolist() == pytest.approx([5 / 12, 7 / 12])
    assert answer.log_evidence == pytest.approx(np.log(12.0) + 3 * np.log(1e-300) - 15000.0)


def test_zero_and_tiny_are_different() -> None:
    a = discrete("a", 2)
    wide = MarkovNetwork.from_parts(
        [a], [TableFactor((a,), np.array([1.0, 1e-200]))] * 3 + [TableFactor((a,), np.array([0.0, 1.0]))]
    )
    answer = Enumeration().answer(wide, Question((0,), (), (), NOTHING))
    assert answer["a"].probabilities.tolist() == [0.0, 1.0]
    assert answer.log_evidence == pytest.approx(3 * np.log(1e-200))


def test_refuses_large_joints_at_once() -> None:
    variables = [discrete(f"x{i}", 2) for i in range(40)]
    net = MarkovNetwork.from_parts(variables, [TableFactor((v,), np.ones(2)) for v in variables])
    with pytest.raises(BudgetError) as caught:
        Enumeration().answer(net, Question((0,), (), (), NOTHING))
    assert "junction_tree" in str(caught.value)
    assert caught.value.bytes >= 2**40
    assert Enumeration().plan(net, Question((0,), (), (), NOTHING)).cells == 2**40
    # Observing enough of them brings it within reach.
    seen = tuple(range(30))
    answer = Enumeration().answer(net, Question((39,), (), seen, np.zeros((1, 30), np.int64)))
    assert answer.log_evidence == pytest.approx(10 * np.log(2.0))
    assert MAX_CELLS == 2**24


def test_more_single_state_variables_than_numpy_has_axes() -> None:
    ones = [discrete(f"x{i}", 1) for i in range(100)]
    last = discrete("y", 2)
    net = MarkovNetwork.from_parts([*ones, last], [TableFactor((last, ones[3]), np.array([[1.0], [3.0]]))])
    answer = Enumeration().answer(net, Question((100, 5), ((3, 100),), (), NOTHING))
    assert answer["y"].probabilities.tolist() == pytest.approx([0.25, 0.75])
    assert answer["x5"].probabilities.tolist() == [1.0]
    assert answer["x3", "y"].probabilities.shape == (1, 2)


def test_memory_is_checked() -> None:
    with pytest.raises(BudgetError):
        Enumeration().answer(alarm(), Question((0,), (), (), NOTHING), Run(memory=10.0))
