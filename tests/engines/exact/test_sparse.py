"""Exact answers on the positive rows of tables: as the whole joint has them, in one run or state by state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.compile.relations import plan_relations
from gramgraph.conditionals import Table
from gramgraph.engines.base import Run
from gramgraph.engines.exact import sparse
from gramgraph.engines.exact.sparse import SparseTables
from gramgraph.io.uai_results import read_uai_evidence, read_uai_result
from gramgraph.questions.reading import read
from gramgraph.variables import discrete


def field(seed: int, n: int = 7) -> gg.MarkovNetwork:
    """Tables over three variables of two to four states, most of whose entries are zero; one assignment is possible."""
    rng = np.random.default_rng(seed)
    variables = [discrete(f"v{i}", int(rng.integers(2, 5))) for i in range(n)]
    sure = [int(rng.integers(v.size)) for v in variables]
    tables = {}
    for scope in itertools.combinations(range(n), 3):
        if rng.random() < 0.4:
            values = rng.random([variables[i].size for i in scope]) * (
                rng.random([variables[i].size for i in scope]) < 0.6
            )
            values[tuple(sure[i] for i in scope)] = rng.random() + 0.1
            tables[tuple(variables[i] for i in scope)] = values
    return gg.MarkovNetwork(tables)


def circuit(seed: int, inputs: int, gates: int) -> tuple[gg.BayesianNetwork, np.ndarray, np.ndarray]:
    """Gates of three inputs each, wired at random; all rows of states that are possible, and their logarithms."""
    rng = np.random.default_rng(seed)
    variables = [discrete(f"w{i}", 2) for i in range(inputs + gates)]
    p = rng.uniform(0.2, 0.8, inputs)
    tables = [Table(variables[i], (), [1 - p[i], p[i]]) for i in range(inputs)]
    rows = np.array(list(itertools.product((0, 1), repeat=inputs)))
    logs = np.where(rows == 1, np.log(p), np.log1p(-p)).sum(axis=1)
    for g in range(gates):
        chosen = np.sort(rng.choice(inputs + g, 3, replace=False))
        out = rng.permutation([0, 0, 0, 0, 1, 1, 1, 1]).reshape(2, 2, 2)
        table = np.stack([1.0 - out, out], axis=-1)
        tables.append(Table(variables[inputs + g], tuple(variables[i] for i in chosen), table))
        rows = np.column_stack([rows, out[tuple(rows[:, chosen].T)]])
    return gg.BayesianNetwork.from_parts(variables, tables), rows, logs


@pytest.mark.parametrize("way", ["one run", "state by state", "little room"])
@pytest.mark.parametrize("seed", range(10))
def test_rows_answer_as_the_joint(seed: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = field(seed)
    names = list(net.variables)
    pairs = [(names[0], names[2]), (names[3], names[1], names[2]), (names[4], names[-1])]
    run = Run()
    if way == "state by state":
        monkeypatch.setattr(sparse, "TRUST", 0.0)
    if way == "little room":
        pairs, run = [], Run(memory=1500.0)
    evidence = {names[-1]: net.map_query(engine="enumeration").assignment[names[-1]]}
    found = SparseTables().answer(net, read(net, [*names[:-1], *pairs], evidence), run)
    truth = net.query([*names[:-1], *pairs], evidence, engine="enumeration")
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-10)
    for key in [*names[:-1], *pairs]:
        np.testing.assert_allclose(found[key].probabilities, truth[key].probabilities, atol=1e-11)
    best = SparseTables().best(net, read(net, None, evidence), run)
    states = {v.name: v.states[s] for v, s in zip(net.vars, best.states[0], strict=True)}
    right = net.map_query(evidence, engine="enumeration")
    assert float(best.log_prob[0]) == pytest.approx(right.log_prob, abs=1e-10)
    assert net.joint_log_prob(states) == pytest.approx(right.log_prob, abs=1e-10)


def test_little_room_is_made_up_for_state_by_state(monkeypatch: pytest.MonkeyPatch) -> None:
    split = []
    inner = sparse._Solver._state_by_state
    monkeypatch.setattr(sparse._Solver, "_state_by_state", lambda self, *a: split.append(1) or inner(self, *a))
    net = field(2)
    question = read(net, None, {})
    whole = SparseTables().answer(net, question, Run()).log_evidence
    assert not split
    assert SparseTables().answer(net, question, Run(memory=1000.0)).log_evidence == pytest.approx(whole, abs=1e-12)
    assert split


@pytest.mark.parametrize("seed", [2, 3])
def test_rows_of_a_circuit_that_fits_no_tree(seed: int) -> None:
    net, rows, logs = circuit(seed, 8, 90)
    seen = {f"w{i}": str(rows[123, i]) for i in (49, 73, 97)}
    assert gg.plan(net, None, list(seen)).bytes > 3e10
    good = (rows[:, [49, 73, 97]] == rows[123, [49, 73, 97]]).all(axis=1)
    weights = np.exp(logs[good])
    found = net.query(None, seen, engine="sparse")
    assert found.exact
    assert found.log_evidence == pytest.approx(np.log(weights.sum()), abs=1e-10)
    expected = weights @ rows[good] / weights.sum()
    for i in range(98):
        if f"w{i}" not in seen:
            assert found[f"w{i}"].probabilities[1] == pytest.approx(expected[i], abs=1e-10)
    best = net.map_query(seen)
    assert best.exact
    assert best.log_prob == pytest.approx(float(logs[good].max()), abs=1e-10)


def test_what_is_impossible_and_what_does_not_fit() -> None:
    net, rows, _ = circuit(0, 6, 20)
    never = next(i for i in range(6, 26) if len(np.unique(rows[:, i])) == 2)
    twice = {f"w{i}": str(rows[5, i]) for i in range(6)} | {f"w{never}": str(1 - rows[5, never])}
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query("w25", twice, engine="sparse")
    with pytest.raises(gg.BudgetError, match="positive rows"):
        gg.models.ising_grid(40, 40).query("x0_0", engine="sparse")


def test_who_has_no_time_is_told_so() -> None:
    net = field(2)
    with pytest.raises(gg.BudgetError, match="rows"):
        SparseTables().answer(net, read(net, None, {}), Run(seconds=1e-7))


def test_the_order_follows_the_rows_not_the_cells() -> None:
    """A star of copies: rows never become more than the states of one variable."""
    scopes = [(0, i) for i in range(1, 30)]
    plan = plan_relations(scopes, [np.log(5.0)] * 29, [np.log(5.0)] * 30, 1e12)
    assert sorted(plan.order) == list(range(30))
    assert plan.rows == pytest.approx(30 * 5.0, rel=0.1)


@pytest.mark.parametrize("name", ["2006_pe/BN_57", "2006_pe/BN_38"])
def test_reference_marginals(name: str, shared_data) -> None:  # type: ignore[no-untyped-def]
    base = shared_data / "uai" / f"{name}.uai"
    net = gg.read(f"{base}.gz")
    evidence = read_uai_evidence(f"{base}.evid", net)[0]
    found = net.query(None, evidence, engine="sparse")
    assert found.log_evidence == pytest.approx(read_uai_result(f"{base}.PR").log_z, rel=1e-5)
    for v, p in zip(net.variables, read_uai_result(f"{base}.MAR.gz").marginals, strict=True):
        if v not in evidence:
            np.testing.assert_allclose(found[v].probabilities, p, atol=1e-5)
