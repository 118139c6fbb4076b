"""Where numbers get extreme: thousands of observations, tiny probabilities, zeros, long chains; and outside
influences that must not change an answer: the hash seed, the compiler, other threads."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.conditionals import Table
from gramgraph.variables import Var, discrete

SRC = Path(__file__).resolve().parents[2] / "src"


def network(variables: list[Var], tables: list[tuple[tuple[Var, ...], Any]]) -> Any:
    cpds = [
        Table(v, parents, np.asarray(values, float)) for v, (parents, values) in zip(variables, tables, strict=True)
    ]
    return gg.BayesianNetwork.from_parts(variables, cpds)


# --- naive Bayes with 5,000 observed leaves ------------------------------------------------------------------------

N_LEAVES = 5000
TEN_TO_ONE = np.array([[10 / 11, 1 / 11], [1 / 11, 10 / 11]])


def star(tables: Any, prior: Any) -> Any:
    center = discrete("c", len(prior))
    leaves = [discrete(f"x{i}", 2) for i in range(len(tables))]
    return network([center, *leaves], [((), prior), *(((center,), t) for t in tables)])


def closed_form(tables: Any, prior: Any, states: Any) -> tuple[Any, float]:
    """log p(c, x) for every c by summation of logarithms; posterior and log p(x)."""
    logs = np.log(prior)
    logs = logs + [math.fsum(math.log(t[c][s]) for t, s in zip(tables, states, strict=True)) for c in range(len(prior))]
    top = logs.max()
    log_z = float(top + np.log(np.exp(logs - top).sum()))
    return np.exp(logs - log_z), log_z


@pytest.fixture(scope="module")
def adversarial() -> tuple[Any, Any, Any]:
    """The first half of the leaves favors state 0 by 10:1, the second half state 1; all leaves observed as 0."""
    tables = [TEN_TO_ONE if i < N_LEAVES // 2 else TEN_TO_ONE[::-1] for i in range(N_LEAVES)]
    prior = np.array([0.3, 0.7])
    return star(tables, prior), tables, prior


def test_star_that_leans_one_way_then_the_other(adversarial: Any) -> None:
    net, tables, prior = adversarial
    answer = net.query("c", evidence={f"x{i}": "0" for i in range(N_LEAVES)})
    np.testing.assert_allclose(answer["c"].probabilities, prior, rtol=0, atol=1e-8)
    _, log_z = closed_form(tables, prior, [0] * N_LEAVES)
    assert log_z < -6000  # far below the smallest double
    assert answer.log_evidence == pytest.approx(log_z, abs=1e-6)


@pytest.mark.parametrize("more", [1, 2, 7])
def test_star_with_a_slight_majority(adversarial: Any, more: int) -> None:
    """A few leaves of the second half flipped: odds of 100 to 1 for each, on top of 2,500 against 2,500."""
    net, tables, prior = adversarial
    states = [0] * (N_LEAVES - more) + [1] * more
    answer = net.query("c", evidence={f"x{i}": str(s) for i, s in enumerate(states)})
    expected, log_z = closed_form(tables, prior, states)
    np.testing.assert_allclose(answer["c"].probabilities, expected, rtol=1e-8, atol=1e-8)
    assert answer.log_evidence == pytest.approx(log_z, abs=1e-6)


def test_star_as_a_table_of_cases(adversarial: Any) -> None:
    net, tables, prior = adversarial
    rng = np.random.default_rng(7)
    states = rng.integers(0, 2, (9, N_LEAVES))
    states[0] = 0
    states[1] = 1
    states[2, : N_LEAVES // 2], states[2, N_LEAVES // 2 :] = 0, 1  # every leaf speaks for state 0
    frame = pd.DataFrame(states.astype(str), columns=[f"x{i}" for i in range(N_LEAVES)])
    answer = net.query(["c"], evidence=frame)
    for row, observed in enumerate(states):
        expected, log_z = closed_form(tables, prior, observed)
        np.testing.assert_allclose(answer["c"].probabilities[row], expected, rtol=0, atol=1e-8)
        assert answer.log_evidence[row] == pytest.approx(log_z, abs=1e-6)


@pytest.mark.parametrize("engine", ["junction_tree", "elimination", "factor_tree", "counting", "bp"])
def test_every_engine_notices_what_leaves_the_range_of_doubles(engine: str) -> None:
    """Half the leaves speak for one state, half for the other: products leave the range on the way, and come back."""
    n = 800
    tables = [TEN_TO_ONE if i < n // 2 else TEN_TO_ONE[::-1] for i in range(n)]
    net = star(tables, [0.3, 0.7])
    frame = pd.DataFrame(np.zeros((2, n), int).astype(str), columns=[f"x{i}" for i in range(n)])
    frame.iloc[1, -1] = "1"
    for row, case in enumerate(frame.astype(int).to_numpy()):
        expected, log_z = closed_form(tables, [0.3, 0.7], case)
        answer = net.query("c", frame.iloc[row].to_dict(), engine=engine)
        np.testing.assert_allclose(answer["c"].probabilities, expected, atol=1e-8)
        assert answer.log_evidence == pytest.approx(log_z, abs=1e-6)
    both = net.query("c", frame, engine=engine)
    np.testing.assert_allclose(both["c"].probabilities[1], expected, atol=1e-8)


def test_messages_notice_what_leaves_the_range_of_doubles() -> None:
    n = 800
    tables = [TEN_TO_ONE if i < n // 2 else TEN_TO_ONE[::-1] for i in range(n)]
    messages = star(tables, [0.3, 0.7]).sum_product({f"x{i}": "0" for i in range(n)})
    np.testing.assert_allclose(messages.belief("c").probabilities, [0.3, 0.7], atol=1e-8)
    assert messages.log_evidence == pytest.approx(closed_form(tables, [0.3, 0.7], [0] * n)[1], abs=1e-6)


def test_star_with_random_tables_and_missing_cells() -> None:
    rng = np.random.default_rng(11)
    n = 5000
    prior = rng.dirichlet(np.ones(4))
    tables = rng.dirichlet([0.3, 0.3, 0.3], (n, 4)) + 1e-12
    tables /= tables.sum(axis=-1, keepdims=True)
    center = discrete("c", 4)
    leaves = [discrete(f"x{i}", 3) for i in range(n)]
    net = network([center, *leaves], [((), prior), *(((center,), t) for t in tables)])
    states = rng.integers(0, 3, (4, n))
    seen = rng.random((4, n)) < [[0.0], [0.01], [0.5], [1.0]]
    cells = np.where(seen, states.astype(str).astype(object), None)
    answer = net.query(["c"], evidence=pd.DataFrame(cells, columns=[f"x{i}" for i in range(n)]))
    for row in range(4):
        at = np.flatnonzero(seen[row])
        expected, log_z = closed_form(tables[at], prior, states[row, at])
        np.testing.assert_allclose(answer["c"].probabilities[row], expected, rtol=0, atol=1e-8)
        assert answer.log_evidence[row] == pytest.approx(log_z, abs=1e-6)
        single = net.query("c", evidence={f"x{i}": str(states[row, i]) for i in at})
        np.testing.assert_allclose(single["c"].probabilities, expected, rtol=0, atol=1e-8)


def test_explanation_of_the_star(adversarial: Any) -> None:
    net, tables, prior = adversarial
    best = net.map_query(evidence={f"x{i}": "0" for i in range(N_LEAVES)})
    assert best.assignment["c"] == "1"
    assert best.log_prob == pytest.approx(math.log(0.7) + 2500 * (math.log(10 / 11) + math.log(1 / 11)), rel=1e-9)


# --- tiny probabilities --------------------------------------------------------------------------------------------


def test_probabilities_of_1e_minus_300_multiply() -> None:
    """Three independent events of 1e-300 under one cause: p = 1e-900, and the odds of the cause stay right."""
    cause = discrete("c", 2)
    effects = [discrete(f"e{i}", 2) for i in range(3)]
    tables = [[[1.0, 1e-300], [1.0, 3e-300]]] * 3
    net = network([cause, *effects], [((), [0.5, 0.5]), *(((cause,), t) for t in tables)])
    evidence = {f"e{i}": "1" for i in range(3)}
    answer = net.query("c", evidence=evidence)
    np.testing.assert_allclose(answer["c"].probabilities, [1 / 28, 27 / 28], rtol=0, atol=1e-12)
    assert answer.log_evidence == pytest.approx(math.log(14) - 900 * math.log(10), abs=1e-6)
    batch = net.query(["c"], evidence=pd.DataFrame([evidence, {"e0": "1", "e1": "1", "e2": "0"}]))
    np.testing.assert_allclose(batch["c"].probabilities, [[1 / 28, 27 / 28], [1 / 10, 9 / 10]], rtol=0, atol=1e-12)


def test_tiny_is_not_impossible_along_a_chain() -> None:
    """Every step of the chain has probability 1e-200."""
    n = 40
    nodes = [discrete(f"z{i}", 2) for i in range(n)]
    step = [[1.0, 1e-200], [1e-200, 1.0]]
    net = network(nodes, [((), [0.5, 0.5]), *(((nodes[i],), step) for i in range(n - 1))])
    alternating = {f"z{i}": str(i % 2) for i in range(n)}
    assert net.log_evidence(alternating) == pytest.approx(math.log(0.5) - 200 * (n - 1) * math.log(10), rel=1e-9)
    every_other = {f"z{i}": str(i // 2 % 2) for i in range(0, n, 2)}
    answer = net.query(["z1", "z3"], evidence=every_other)
    np.testing.assert_allclose(answer["z1"].probabilities, [0.5, 0.5], rtol=0, atol=1e-9)


def test_unlikely_state_of_the_unobserved() -> None:
    """A posterior of 1e-250 is not rounded to zero."""
    a, b = discrete("a", 2), discrete("b", 2)
    net = network([a, b], [((), [1.0, 1e-250]), ((a,), [[0.5, 0.5], [0.25, 0.75]])])
    assert net.query("a", evidence={"b": "1"})["a"].prob("1") == pytest.approx(1.5e-250, rel=1e-9)


# --- long chains ---------------------------------------------------------------------------------------------------


def test_chain_of_ten_thousand() -> None:
    n, rng = 10_000, np.random.default_rng(3)
    nodes = [discrete(f"z{i}", 3) for i in range(n)]
    steps = rng.dirichlet(np.ones(3), (n - 1, 3))
    prior = rng.dirichlet(np.ones(3))
    net = network(nodes, [((), prior), *(((nodes[i],), steps[i]) for i in range(n - 1))])
    evidence = {i: int(rng.integers(0, 3)) for i in range(5, n, 11)}
    answer = net.query(None, evidence={f"z{i}": str(s) for i, s in evidence.items()})
    forward, backward, log_z = forward_backward(prior, steps, evidence)
    assert answer.log_evidence == pytest.approx(log_z, abs=1e-6)
    for i in range(0, n, 97):
        if i not in evidence:
            expected = forward[i] * backward[i]
            np.testing.assert_allclose(
                answer[f"z{i}"].probabilities, expected / expected.sum(), rtol=0, atol=1e-8, err_msg=f"z{i}"
            )


def forward_backward(prior: Any, steps: Any, evidence: dict[int, int]) -> tuple[Any, Any, float]:
    """The textbook recursion with scaling."""
    n = len(steps) + 1
    mask = np.ones((n, len(prior)))
    for i, s in evidence.items():
        mask[i] = np.arange(len(prior)) == s
    forward, backward, log_z = np.zeros(mask.shape), np.ones(mask.shape), 0.0
    for i in range(n):
        forward[i] = (prior if i == 0 else forward[i - 1] @ steps[i - 1]) * mask[i]
        log_z += math.log(forward[i].sum())
        forward[i] /= forward[i].sum()
    for i in range(n - 2, -1, -1):
        backward[i] = steps[i] @ (mask[i + 1] * backward[i + 1])
        backward[i] /= backward[i].sum()
    return forward, backward, log_z


# --- zeros ---------------------------------------------------------------------------------------------------------


def parity(n: int) -> Any:
    """n fair bits, and s_i = s_{i-1} xor b_i: tables of zeros and ones only."""
    bits = [discrete(f"b{i}", 2) for i in range(n)]
    sums = [discrete(f"s{i}", 2) for i in range(n)]
    xor = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    tables = [((), [0.5, 0.5])] * n
    tables += [((bits[0],), [[1, 0], [0, 1]])]
    tables += [((sums[i - 1], bits[i]), xor) for i in range(1, n)]
    return network([*bits, *sums], tables)


def test_deterministic_network() -> None:
    net = parity(12)
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2, 12)
    evidence = {f"b{i}": str(bits[i]) for i in range(12) if i != 4} | {"s11": str(bits.sum() % 2)}
    answer = net.query(None, evidence=evidence)
    assert answer["b4"].prob(str(bits[4])) == 1.0
    assert answer["s7"].prob(str(bits[:8].sum() % 2)) == 1.0
    assert answer.log_evidence == pytest.approx(12 * math.log(0.5), abs=1e-9)
    best = net.map_query(evidence=evidence)
    assert best.assignment["b4"] == str(bits[4])
    assert best.log_prob == pytest.approx(12 * math.log(0.5), abs=1e-9)


def test_impossible_evidence_is_named() -> None:
    net = parity(6)
    with pytest.raises(gg.ImpossibleEvidenceError) as error:
        net.query("b0", evidence={"s3": "0", "s4": "0", "b4": "1", "b1": "0"})
    assert "b4" in str(error.value)
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.map_query(evidence={"s3": "0", "s4": "0", "b4": "1"})
    assert net.log_evidence({"s3": "0", "s4": "0", "b4": "1"}) == -math.inf


def test_impossible_row_of_a_table_of_cases() -> None:
    """Its row is NaN with log p = -inf; the rows beside it do not suffer."""
    net = parity(6)
    rows = [{"s3": "0", "s4": "0", "b4": b} for b in "0110"]
    answer = net.query(["b0", "s5", "b5"], evidence=pd.DataFrame(rows))
    wrong = np.array([False, True, True, False])
    assert np.array_equal(np.isneginf(answer.log_evidence), wrong)
    np.testing.assert_allclose(answer.log_evidence[~wrong], 2 * math.log(0.5), atol=1e-12)
    for name in ("b0", "s5", "b5"):
        p = answer[name].probabilities
        assert np.isnan(p[wrong]).all()
        np.testing.assert_allclose(p[~wrong], 0.5, atol=1e-12)


def test_impossible_by_a_zero_in_the_prior() -> None:
    a, b = discrete("a", 2), discrete("b", 2)
    net = network([a, b], [((), [1.0, 0.0]), ((a,), [[0.5, 0.5], [0.1, 0.9]])])
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query("b", evidence={"a": "1"})
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query("b", evidence={"a": "1", "b": "0"})


# --- outside influences --------------------------------------------------------------------------------------------

PROBE = r"""
import json
import numpy as np
import gramgraph as gg
from gramgraph.conditionals import Table
from gramgraph.variables import discrete

rng = np.random.default_rng(17)
n = 9
nodes = [discrete(name, int(rng.integers(2, 4))) for name in "zebra apple mango kiwi plum fig date lime pear".split()]
cpds = []
for i, v in enumerate(nodes):
    parents = tuple(nodes[j] for j in sorted(rng.choice(i, min(i, 2), replace=False)))
    shape = tuple(p.size for p in parents)
    cpds.append(Table(v, parents, rng.dirichlet(np.ones(v.size), shape)))
net = gg.BayesianNetwork.from_parts(nodes, cpds)
out = {}
for e in ({}, {"plum": "0", "zebra": "1"}, {"pear": "1", "fig": "0", "apple": "0"}):
    ans = net.query(None, evidence=e)
    best = net.map_query(evidence=e)
    out[json.dumps(e)] = [
        {v: [x.hex() for x in ans[v].probabilities.tolist()] for v in ans},
        float(ans.log_evidence).hex(), best.assignment, float(best.log_prob).hex(),
    ]
joint = net.query(("kiwi", "date", "zebra"), evidence={"lime": "0"})
out["joint"] = [x.hex() for x in joint[("kiwi", "date", "zebra")].probabilities.ravel().tolist()]
import pandas as pd
frame = pd.DataFrame({"plum": ["0", None, "1"], "fig": [None, "1", "0"]})
ans = net.query(["zebra", "pear"], evidence=frame)
out["batch"] = [x.hex() for v in ans for x in ans[v].probabilities.ravel().tolist()]
out["batch_log"] = [x.hex() for x in ans.log_evidence.tolist()]
print(json.dumps(out))
"""


def probe(**environment: str) -> dict[str, Any]:
    paths = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return probe(PYTHONHASHSEED="0")


@pytest.mark.parametrize("seed", ["1", "42", "123456"])
def test_same_bits_under_another_hash_seed(plain: dict[str, Any], seed: str) -> None:
    assert probe(PYTHONHASHSEED=seed) == plain


def test_same_answers_without_the_compiler(plain: dict[str, Any]) -> None:
    """The compiler may fuse a multiplication and an addition: equal up to the last bits."""
    assert flat(probe(NUMBA_DISABLE_JIT="1")) == pytest.approx(flat(plain), rel=1e-12, abs=1e-14)


def flat(found: Any) -> list[float]:
    """All numbers of a probe's answer, in order; states of an assignment count as numbers too."""
    if isinstance(found, dict):
        return [x for key in sorted(found) for x in flat(found[key])]
    if isinstance(found, list):
        return [x for item in found for x in flat(item)]
    return [float.fromhex(found)]


def test_threads_do_not_disturb_each_other() -> None:
    """Different questions to one network from several threads: the same numbers as one after the other."""
    rng = np.random.default_rng(23)
    nodes = [discrete(f"v{i}", 3) for i in range(30)]
    cpds = []
    for i, v in enumerate(nodes):
        parents = tuple(nodes[j] for j in sorted(rng.choice(np.arange(max(0, i - 6), i), min(i, 2), replace=False)))
        cpds.append(Table(v, parents, rng.dirichlet(np.ones(3), tuple(p.size for p in parents))))
    questions = [
        {f"v{int(i)}": str(int(rng.integers(0, 3))) for i in rng.choice(30, int(rng.integers(0, 6)), replace=False)}
        for _ in range(60)
    ]
    frame = pd.DataFrame(rng.integers(0, 3, (40, 5)).astype(str), columns=[f"v{i}" for i in (2, 8, 15, 21, 29)])

    def ask(net: Any, evidence: dict[str, str]) -> tuple[Any, float, float]:
        answer = net.query(None, evidence=evidence)
        batch = net.query(["v0", "v12"], evidence=frame)
        numbers = np.concatenate([answer[v].probabilities for v in answer] + [batch["v12"].probabilities.ravel()])
        return numbers, float(answer.log_evidence), float(net.map_query(evidence=evidence).log_prob)

    alone = gg.BayesianNetwork.from_parts(nodes, cpds)
    expected = [ask(alone, evidence) for evidence in questions]
    shared = gg.BayesianNetwork.from_parts(nodes, cpds)  # nothing compiled yet: the threads compile it together
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda evidence: ask(shared, evidence), questions))
    for (ours, log_z, best), (numbers, log_z_0, best_0) in zip(found, expected, strict=True):
        assert np.array_equal(ours, numbers)
        assert (log_z, best) == (log_z_0, best_0)
