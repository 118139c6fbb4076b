"""Variable elimination: what is pruned, what is planned, what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gramgraph.engines.exact.contraction import Contraction, components, elimination_order
from gramgraph.engines.exact.elimination import Elimination
from gramgraph.engines.exact.enumeration import Enumeration
from gramgraph.exceptions import BudgetError
from gramgraph.factors import TableFactor
from gramgraph.graphs.directed import Digraph
from gramgraph.graphs.separation import requisite
from gramgraph.models import BayesianNetwork, MarkovNetwork
from gramgraph.questions.question import Question
from gramgraph.testing import random_bayesian_network
from gramgraph.variables import discrete


def observe(net: BayesianNetwork, targets: tuple[int, ...], *seen: int) -> Question:
    return Question(targets, (), seen, np.zeros((1, len(seen)), np.int64))


@pytest.mark.parametrize("seed", range(20))
def test_only_requisite_tables_enter_the_belief(seed: int) -> None:
    """With d-separated evidence summed apart, the piece of the target holds what Bayes ball says it needs."""
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 12, max_parents=2, density=0.7)
    target, *seen = (int(i) for i in rng.permutation(12)[: int(rng.integers(1, 6))])
    plan = Elimination().plan(net, observe(net, (target,), *seen))
    needed = requisite(Digraph(net.parent_positions), target, seen)
    own = [part for part in plan.parts[0] if net.vars[target] in part.contraction.keep]
    touched = {net.index(var.name) for part in own for scope in part.contraction.scopes for var in scope}
    assert touched <= set(needed.tables)


def test_barren_nodes_are_left_out() -> None:
    net = random_tables(BayesianNetwork("a -> b -> c -> d; b -> e", check=False))
    assert len(net) == 5
    plan = Elimination().plan(net, observe(net, (net.index("b"),)))
    assert sorted(plan.variables) == ["a", "b"]


def random_tables(net: BayesianNetwork) -> BayesianNetwork:
    from gramgraph.conditionals import Table

    rng = np.random.default_rng(0)
    tables = []
    for name in net.variables:
        child, parents = net.var(name), tuple(net.var(p) for p in net.parents(name))
        values = rng.random((*(p.size for p in parents), child.size)) + 0.1
        tables.append(Table(child, parents, values / values.sum(axis=-1, keepdims=True)))
    return BayesianNetwork.from_parts(net.vars, tables)


def test_log_evidence_is_of_all_the_evidence() -> None:
    """Evidence that the target is separated from does not change the belief, but counts in log p(e)."""
    net = random_tables(BayesianNetwork("a -> b -> c; x -> y", check=False))
    a, b, c, x, y = (net.index(name) for name in "abcxy")
    few = Elimination().answer(net, observe(net, (c,), b))
    more = Elimination().answer(net, observe(net, (c,), b, y, a))
    np.testing.assert_allclose(few["c"].probabilities, more["c"].probabilities, rtol=1e-12)
    truth = Enumeration().answer(net, observe(net, (c,), b, y, a))
    assert more.log_evidence == pytest.approx(truth.log_evidence)
    assert more.log_evidence < few.log_evidence


def test_the_plan_tells_its_cost() -> None:
    net = random_bayesian_network(np.random.default_rng(3), 9, max_parents=3, density=0.9)
    plan = Elimination().plan(net, observe(net, (0, 4), 7))
    text = str(plan)
    assert f"width {plan.width}" in text
    assert all(name in text for name in plan.largest)
    assert plan.bytes >= 8 * np.prod([net.var(name).size for name in plan.largest])
    gone = {line.removeprefix("sum out ").split(" of ")[0] for line in plan.steps}
    assert set(plan.variables) - {"v0", "v4"} <= gone <= set(plan.variables)
    assert "v7" not in plan.variables


def grid(side: int, states: int = 2) -> MarkovNetwork:
    rng = np.random.default_rng(1)
    cells = {(i, j): discrete(f"x{i}_{j}", states) for i in range(side) for j in range(side)}
    factors = []
    for (i, j), var in cells.items():
        for near in ((i + 1, j), (i, j + 1)):
            if near in cells:
                factors.append(TableFactor((var, cells[near]), np.exp(rng.normal(size=(states, states)))))
    return MarkovNetwork.from_parts(cells.values(), factors)


def test_refuses_before_it_allocates() -> None:
    net = grid(24, 4)
    with pytest.raises(BudgetError) as caught:
        Elimination().answer(net, Question((0,), (), (), np.zeros((1, 0), np.int64)))
    assert len(caught.value.clique) > 15
    assert caught.value.bytes > 1e12
    assert caught.value.clique[0] in str(caught.value)


def test_evidence_cuts_a_grid_apart() -> None:
    """A grid that cannot be summed as a whole falls apart when every other column is observed."""
    side = 24
    net = grid(side, 4)
    seen = tuple(i * side + j for i in range(side) for j in range(1, side, 2))
    plan = Elimination().plan(net, Question((0,), (), seen, np.zeros((1, len(seen)), np.int64)))
    assert plan.width == 1
    answer = Elimination().answer(net, Question((0,), (), seen, np.zeros((1, len(seen)), np.int64)))
    assert np.isfinite(answer.log_evidence)


def test_greedy_orders_are_optimal_on_trees_and_stay_in_their_stages() -> None:
    star = [(discrete("hub", 5), discrete(f"leaf{i}", 2)) for i in range(30)]
    plan = Contraction.plan(star, (), ([var for scope in star for var in scope],))
    assert plan.width == 1
    assert plan.flops < 2000
    hub, leaf = star[0]
    order = elimination_order(star, ([hub], [pair[1] for pair in star]))
    assert order[0] == hub
    assert set(order[1:]) == {pair[1] for pair in star}
    assert leaf in order


def test_components() -> None:
    a, b, c, d = (discrete(name, 2) for name in "abcd")
    assert components([(a,), (b, c), (), (c, d), (a,)]) == [[0, 4], [1, 3]]


def test_log_space_is_right_where_linear_numbers_end() -> None:
    a, b = discrete("a", 2), discrete("b", 2)
    steep = TableFactor((a, b), np.array([[1.0, 1e-250], [1e-250, 1e-250]]))
    last = TableFactor((a,), np.array([0.0, 1.0]))
    net = MarkovNetwork.from_parts([a, b], [steep, steep, steep, last])
    question = Question((0, 1), (), (), np.zeros((1, 0), np.int64))
    truth = Enumeration().answer(net, question)
    found = Elimination(log_space=True).answer(net, question)
    assert truth.log_evidence == pytest.approx(np.log(2) + 3 * np.log(1e-250))
    assert found.log_evidence == pytest.approx(truth.log_evidence)
    np.testing.assert_allclose(found["b"].probabilities, [0.5, 0.5])


def test_a_chain_of_two_thousand_variables() -> None:
    """No recursion, no underflow: p(x_n) of a symmetric chain is uniform, and the MPE never flips."""
    n = 2000
    variables = [discrete(f"x{i}", 2) for i in range(n)]
    step = np.array([[0.9, 0.1], [0.1, 0.9]])
    factors = [TableFactor((a, b), step) for a, b in pairwise(variables)]
    net = MarkovNetwork.from_parts(variables, factors)
    question = Question((n - 1,), (), (0,), np.array([[1]]))
    answer = Elimination().answer(net, question)
    assert answer["x1999"].probabilities.tolist() == pytest.approx([0.5, 0.5])
    assert answer.log_evidence == pytest.approx(0.0, abs=1e-9)
    codes, value, *_ = Elimination().best(net, question)
    assert codes[0].tolist() == [1] * n
    assert value[0] == pytest.approx((n - 1) * np.log(0.9))
