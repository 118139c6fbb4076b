"""Networks of very many variables: what they cost grows with their edges, and memory= covers planning."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.variables import binary

ROOT = Path(__file__).resolve().parents[3]
N = 21_000


def chain_tables(n):
    p = np.random.default_rng(0).uniform(0.1, 0.9, (n, 2))
    return np.stack([p, 1.0 - p], axis=-1)


@pytest.fixture(scope="module")
def chain():
    tables = chain_tables(N)
    nodes = [binary(f"x{i}") for i in range(N)]
    first = gg.Table(nodes[0], (), tables[0, 0])
    rest = [gg.Table(nodes[i], (nodes[i - 1],), tables[i]) for i in range(1, N)]
    return gg.BayesianNetwork.from_parts(nodes, [first, *rest])


def forward_backward(tables, seen):
    """Posteriors and log p(seen) of the chain, step by step."""
    n = len(tables)
    weight = np.ones((n, 2))
    for v, state in seen.items():
        weight[v] = np.eye(2)[state]
    ahead, back, log_p = np.empty((n, 2)), np.ones((n, 2)), 0.0
    for v in range(n):
        now = (tables[0, 0] if v == 0 else ahead[v - 1] @ tables[v]) * weight[v]
        log_p += np.log(now.sum())
        ahead[v] = now / now.sum()
    for v in range(n - 2, -1, -1):
        back[v] = tables[v + 1] @ (weight[v + 1] * back[v + 1])
        back[v] /= back[v].sum()
    belief = ahead * back
    return belief / belief.sum(axis=1, keepdims=True), log_p


def test_all_posteriors_of_a_long_chain_are_those_of_its_recursions(chain):
    seen = {0: 1, N // 3: 0, N - 1: 1}
    names = {f"x{v}": ("no", "yes")[state] for v, state in seen.items()}
    expected, log_p = forward_backward(chain_tables(N), seen)
    answer = chain.query(None, names)
    assert len(answer) == N - 3
    assert "x0" not in list(answer)
    assert answer.log_evidence == pytest.approx(log_p, rel=1e-10)
    found = np.array([answer[f"x{v}"].probabilities for v in range(N)])
    assert np.abs(found - expected).max() < 1e-12
    one = chain.query(f"x{N // 2}", names, engine="junction_tree")
    assert np.abs(one[f"x{N // 2}"].probabilities - expected[N // 2]).max() < 1e-12
    rows = chain.query(f"x{N // 2}", [names, {"x1": "no"}])
    assert np.abs(rows[f"x{N // 2}"].probabilities[0] - expected[N // 2]).max() < 1e-12
    assert rows.log_evidence[0] == pytest.approx(log_p, rel=1e-10)


def test_memory_covers_planning_and_the_error_says_what_helps(chain):
    with pytest.raises(gg.BudgetError, match="order of elimination") as error:
        chain.query(None, {"x5": "no"}, memory=3e6)
    assert error.value.bytes > 3e6
    assert "memory=" in str(error.value)
    with pytest.raises(gg.BudgetError, match="needs"):  # planned, but the program would not fit
        chain.query(None, {"x5": "no"}, memory=12e6)
    answer = chain.query(None, {"x5": "no"}, memory=40e6)
    assert answer.exact
    assert answer["x5"].prob("no") == 1.0


def test_draws_and_best_states_of_wide_models(chain):
    best = chain.map_query({"x0": "yes"})
    assert len(best.assignment) == N - 1
    full = {**best.assignment, "x0": "yes"}
    assert best.log_prob == pytest.approx(chain.joint_log_prob(full), rel=1e-10)
    frame = chain.sample(2, {"x7": "no"}, random_state=0)
    assert frame.shape == (2, N)
    assert set(frame["x7"]) == {"no"}
    assert set(frame.to_numpy().ravel()) == {"no", "yes"}


def test_variables_with_the_same_labels_share_their_domain():
    assert binary("a").domain is binary("b").domain
    assert gg.BayesianNetwork("a{u|v} -> b{u|v}").vars[0].domain is gg.BayesianNetwork("c{u|v}").vars[0].domain


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chain", "tree"])
@pytest.mark.parametrize("question", ["one", "all", "map_query", "sample"])
def test_a_million_variables(kind, question):
    call = [sys.executable, str(ROOT / "benchmarks/large_trees.py"), "--one", kind, "1000000", question, "1.5e9"]
    out = subprocess.run(call, capture_output=True, text=True, check=True, timeout=3000, cwd=ROOT)
    found = json.loads(out.stdout.splitlines()[-1])
    assert not found["refused"]
    assert found["peak"] <= 4000
    assert found["cpu"] <= 90
    assert found["above"] <= 1700
