"""Large trees, parts that do not touch, odd loops and zeros: clear reports, finite numbers, no recursion."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.models.builders import ising_grid
from gramgraph.variables import binary


def random_tree(n, seed=0):
    """Spins on a random tree, each hanging on an earlier one."""
    rng = np.random.default_rng(seed)
    spins = [binary(f"x{i}") for i in range(n)]
    tables = rng.uniform(0.2, 1.0, size=(n, 2, 2))
    hooks = (rng.random(n) * np.arange(n)).astype(int)
    factors = [TableFactor((spins[hooks[i]], spins[i]), tables[i]) for i in range(1, n)]
    return MarkovNetwork.from_parts(spins, factors)


def check_tree(n):
    model = random_tree(n)
    answer = model.query("x5", engine="bp")
    assert answer.details["sweeps"] <= 2 and answer.details["converged"]
    exact = model.query("x5")
    np.testing.assert_allclose(answer["x5"].probabilities, exact["x5"].probabilities, atol=1e-10)
    assert answer.log_evidence == pytest.approx(exact.log_evidence, rel=1e-10)
    truth = model.map_query()
    assert model.map_query(engine="bp").log_prob == pytest.approx(truth.log_prob, rel=1e-10)
    found = model.map_query(engine="trws", time_limit=60.0)
    assert found.log_prob == pytest.approx(truth.log_prob, rel=1e-9) and found.gap <= 1e-6 * abs(truth.log_prob)


def test_a_tree_of_3_000_variables():
    check_tree(3_000)


def test_the_evidence_of_many_equal_tables_does_not_drift():
    vs, rows = [binary(f"x{i}") for i in range(50_000)], np.array([[0.9, 0.1], [0.2, 0.8]])  # p(child | parent)
    model = MarkovNetwork.from_parts(vs, [TableFactor((vs[(i - 1) // 3], vs[i]), rows) for i in range(1, len(vs))])
    assert model.query([], engine="bp").log_evidence == pytest.approx(np.log(2), abs=1e-8)  # 8e-8 by plain sums


@pytest.mark.slow
def test_a_tree_of_100_000_variables():
    check_tree(100_000)


def test_parts_that_do_not_touch_and_single_variables():
    a, b, c, d, e = (binary(v) for v in "abcde")
    factors = [TableFactor((a, b), [[3.0, 1.0], [1.0, 2.0]]), TableFactor((c, d), [[1.0, 4.0], [2.0, 1.0]])]
    model = MarkovNetwork.from_parts([a, b, c, d, e], factors)
    exact = model.query()
    for engine in ("bp", "trw"):
        answer = model.query(engine=engine)
        assert answer.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
        for v in "abcde":
            np.testing.assert_allclose(answer[v].probabilities, exact[v].probabilities, atol=1e-9)
    for engine in ("bp", "search", "trws"):
        assert model.map_query(engine=engine, time_limit=0.5).log_prob == pytest.approx(np.log(12.0))


def test_odd_loops_at_low_temperature_stay_finite():
    rng = np.random.default_rng(2)
    pairs = tuple(rng.choice([-8.0, 8.0], size=s) for s in ((8, 7), (7, 8)))
    model = ising_grid(8, 8, coupling=pairs)
    answer = model.query(engine="bp", max_iter=40)
    assert all(np.isfinite(answer[v].probabilities).all() for v in answer)
    assert np.isfinite(answer.log_evidence) and len(answer.details["residuals"]) == answer.details["sweeps"]
    truth = model.map_query().log_prob
    found = model.map_query(engine="search", time_limit=1.0)
    assert truth - 1e-9 <= found.bound and found.log_prob <= truth + 1e-9
    above = model.query("x0_0", engine="trw").log_evidence
    assert model.log_evidence() <= above < np.inf


def test_a_lower_bound_where_only_a_search_meets_the_zeros():
    """Clauses with few solutions: mean field from soft starts rarely finds one."""
    rng = np.random.default_rng(4)
    names = [binary(f"x{i}") for i in range(30)]
    truth = rng.integers(0, 2, 30)
    factors = []
    for _ in range(110):
        chosen = rng.choice(30, 3, replace=False)
        wrong = rng.integers(0, 2, 3)
        if (wrong == truth[chosen]).all():
            wrong[0] = 1 - wrong[0]
        table = np.ones((2, 2, 2))
        table[tuple(wrong)] = 0.0
        factors.append(TableFactor(tuple(names[i] for i in chosen), table))
    model = MarkovNetwork.from_parts(names, factors)
    below = model.query("x0", engine="mean_field", random_state=0)
    assert below.details["feasible"] and 0.0 <= below.log_evidence <= model.log_evidence() + 1e-9


def test_impossible_evidence_is_an_error_everywhere():
    net = gg.datasets.asia()
    for engine in ("bp", "trw", "mean_field"):
        with pytest.raises(gg.ImpossibleEvidenceError):
            net.query(None, {"lung": "yes", "either": "no"}, engine=engine)
