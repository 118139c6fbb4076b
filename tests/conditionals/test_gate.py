"""Gates: many inputs without the table of all their states."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.conditionals import Gate, NoisyOr, Table
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.variables import binary, discrete


def network(gates, priors):
    """Bits with these p(yes), and gates over them."""
    bits = {var: p for gate in gates for var, p in zip(gate.parents, priors, strict=False)}
    tables = [Table(var, (), np.array([1 - p, p])) for var, p in bits.items()]
    return gg.BayesianNetwork.from_parts([*bits, *(gate.child for gate in gates)], [*tables, *gates])


def bits(n):
    return [binary(f"b{i}") for i in range(n)]


@pytest.mark.parametrize("rule", ["xor", "or", "and"])
@pytest.mark.parametrize("engine", ["bp", "junction_tree"])
def test_messages_agree_with_the_dense_table(rule, engine):
    priors = np.random.default_rng(0).uniform(0.1, 0.9, 9)
    gate = Gate(binary("y"), bits(9), rule)
    dense = network([Table(gate.child, gate.parents, gate.table())], priors)
    for state in ("no", "yes"):
        found = network([gate], priors).query(None, {"y": state}, engine=engine)
        exact = dense.query(None, {"y": state}, engine="enumeration")
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-10)
        for name in exact:
            assert np.abs(found[name].probabilities - exact[name].probabilities).max() < 1e-10


@pytest.mark.parametrize("size", [2, 4, 9])
def test_counts(size):
    priors = np.random.default_rng(1).uniform(0.1, 0.9, 8)
    net = network([Gate(discrete("k", size), bits(8), "count")], priors)
    exact = np.array([1.0])
    for p in priors:
        exact = np.convolve(exact, [1 - p, p])
    exact = np.append(exact[: size - 1], exact[size - 1 :].sum())
    assert np.abs(net.query("k", engine="bp")["k"].probabilities - exact).max() < 1e-12


def test_a_parity_check_of_thirty_bits_and_exactly_five_of_forty():
    """tanh rule: p(b0 odd | the others) = (1 - Π (1 - 2 p_i)) / 2; and a hypergeometric symmetry."""
    priors = np.random.default_rng(2).uniform(0.01, 0.2, 30)
    net = network([Gate(binary("odd"), bits(30), "xor")], [0.5, *priors[1:]])
    found = net.query("b0", {"odd": "no"}, engine="bp")["b0"].prob("yes")
    assert found == pytest.approx((1 - np.prod(1 - 2 * priors[1:])) / 2, abs=1e-12)
    few = network([Gate(discrete("k", 7), bits(40), "count")], [0.3] * 40)
    assert few.query("b7", {"k": "5"}, engine="bp")["b7"].prob("yes") == pytest.approx(5 / 40, abs=1e-12)


def test_a_low_density_code_is_decoded():
    """60 bits, 30 checks of 6 bits each; the all-zero word with 4 flipped bits comes back."""
    rng = np.random.default_rng(3)
    columns = np.concatenate([rng.permutation(60) for _ in range(3)]).reshape(30, 6)
    word = bits(60)
    flipped = rng.choice(60, size=4, replace=False)
    priors = np.full(60, 0.06)
    priors[flipped] = 0.94
    checks = [Gate(binary(f"c{j}"), [word[i] for i in dict.fromkeys(row)], "xor") for j, row in enumerate(columns)]
    tables = [Table(var, (), np.array([1 - p, p])) for var, p in zip(word, priors, strict=True)]
    code = gg.BayesianNetwork.from_parts([*word, *(c.child for c in checks)], [*tables, *checks])
    answer = code.query([f"b{i}" for i in range(60)], {f"c{j}": "no" for j in range(30)}, engine="bp")
    assert answer.details["converged"]
    assert max(answer[f"b{i}"].prob("yes") for i in range(60)) < 0.5


def test_noisy_or_of_forty_parents():
    parents, child = bits(40), binary("y")
    net = network([NoisyOr(child, parents, [0.3] * 40, leak=0.01)], [0.1] * 40)
    assert net.query("y", engine="bp")["y"].prob("no") == pytest.approx(0.99 * 0.97**40, abs=1e-12)


@pytest.mark.parametrize("rule, on", [("xor", 1), ("or", 1), ("and", 40)])
@pytest.mark.parametrize("engine", ["auto", "elimination", "factor_tree", "search", "bp"])
def test_best_assignments_of_forty_inputs(rule, on, engine):
    priors = np.linspace(0.1, 0.4, 40)
    net = network([Gate(binary("y"), bits(40), rule)], priors)
    best = net.map_query({"y": "yes"}, engine=engine)
    odds = np.sort(np.log(priors / (1 - priors)))[::-1]  # the most probable inputs are on, as many as needed
    assert best.log_prob == pytest.approx(np.log1p(-priors).sum() + odds[:on].sum())
    assert set(best.assignment) == {f"b{i}" for i in range(40)}


@pytest.mark.parametrize("engine", ["auto", "elimination", "factor_tree", "search"])
def test_best_assignments_beside_a_noisy_or(engine):
    """Its hidden variables are no functions: a maximum takes its dense table, and the gates' small ones."""
    rng = np.random.default_rng(1)
    inputs = [discrete(f"b{i}", 2 + i % 2) for i in range(6)]
    parts = [Table(var, (), rng.dirichlet(np.ones(var.size))) for var in inputs]
    gates = [Gate(binary("y"), inputs, "xor"), Gate(discrete("n", 3), inputs[:5], "count")]
    noisy = NoisyOr(binary("z"), inputs[1:], [0.4] * 5, leak=0.02)
    net = gg.BayesianNetwork.from_parts([*inputs, *(c.child for c in (*gates, noisy))], [*parts, *gates, noisy])
    net.query("b0", {"y": "yes"})  # the tree of sums is another one
    for seen in ({"n": "2"}, {"y": "yes", "z": "no"}, {}):
        truth = net.map_query(seen, engine="enumeration")
        assert net.map_query(seen, engine=engine).log_prob == pytest.approx(truth.log_prob)


@pytest.mark.parametrize("engine", ["likelihood_weighting", "importance", "rejection"])
def test_weighted_draws_go_through_forty_inputs(engine):
    parents = bits(40)
    for conditional in (NoisyOr(binary("y"), parents, [0.3] * 40, leak=0.01), Gate(binary("y"), parents, "or")):
        net = network([conditional], [0.05] * 40)
        found = net.query("b0", {"y": "yes"}, engine=engine, random_state=0, budget=40_000)
        exact, error = net.query("b0", {"y": "yes"}), found.details["standard_error"]["b0"]
        assert (abs(found["b0"].probabilities - exact["b0"].probabilities) < 4 * error).all()
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=4 * found.details["log_evidence_error"])


def test_engines_of_dense_tables_say_that_there_is_none():
    net = network([NoisyOr(binary("y"), bits(40), [0.3] * 40)], [0.1] * 40)
    for engine in ("gibbs", "annealed"):
        with pytest.raises(BudgetError, match="40 parents has 2.2e.12 cells") as caught:
            net.query("b0", {"y": "yes"}, engine=engine)
        assert "small factors" in str(caught.value)


def test_what_is_wrong_is_said():
    with pytest.raises(ModelError, match="Did you mean 'xor'"):
        Gate(binary("y"), bits(2), "xorr")
    with pytest.raises(ModelError, match="two states"):
        Gate(discrete("y", 3), bits(2), "and")
    with pytest.raises(BudgetError, match="y given its 40 parents"):
        Gate(binary("y"), bits(40), "or").table()
