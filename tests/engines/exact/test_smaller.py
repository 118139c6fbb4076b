"""What zeros leave of a model: the same answers from a smaller one, and trees that fit where they did not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.compile.lower import lower
from gramgraph.compile.ordering import Order
from gramgraph.compile.tree import plan_tree
from gramgraph.conditionals import Table
from gramgraph.engines.base import PLAIN
from gramgraph.engines.exact import junction_tree, smaller
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.exact.smaller import smaller_model
from gramgraph.factors import TableFactor
from gramgraph.io.uai_results import read_uai_evidence, read_uai_result
from gramgraph.questions.reading import read
from gramgraph.variables import discrete
from tests.portions import examples


def deterministic_network(rng: np.random.Generator, n: int) -> gg.BayesianNetwork:
    """Tables most of whose rows are certain; some are copies of a parent."""
    variables = [discrete(f"v{i}", int(rng.integers(2, 4))) for i in range(n)]
    tables = []
    for i, child in enumerate(variables):
        parents = tuple(variables[int(j)] for j in rng.choice(i, size=min(i, int(rng.integers(0, 3))), replace=False))
        shape = (*(p.size for p in parents), child.size)
        values = rng.random(shape) * (rng.random((*shape[:-1], 1)) < 0.3)
        chosen = rng.integers(0, child.size, shape[:-1])
        if parents and rng.random() < 0.4:
            chosen = np.broadcast_to(np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 2)) % child.size, shape[:-1])
            values = np.zeros(shape)
        np.put_along_axis(values, chosen[..., None], 1.0, axis=-1)
        tables.append(Table(child, parents, values / values.sum(-1, keepdims=True)))
    return gg.BayesianNetwork.from_parts(variables, tables)


def world(seed: int, n: int = 7) -> tuple[gg.BayesianNetwork, dict[str, str], dict[str, list[float]]]:
    """A network, evidence that is possible, and weights of states, some of them zero."""
    rng = np.random.default_rng(seed)
    net = deterministic_network(rng, n)
    row = net.sample(1, random_state=seed).iloc[0]
    evidence = {name: row[name] for name in net.variables if rng.random() < 0.3}
    weights = {}
    for var in net.vars:
        if var.name not in evidence and rng.random() < 0.2:
            weight = rng.random(var.size) * (rng.random(var.size) < 0.7)
            weight[list(var.states).index(row[var.name])] = 0.5
            weights[var.name] = weight.tolist()
    return net, evidence, weights


@pytest.mark.parametrize("seed", range(40))
def test_the_smaller_model_answers_as_the_whole_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net, evidence, weights = world(seed)
    pairs = list(itertools.combinations(net.variables, 2))[:6]
    question = read(net, [*net.variables, *pairs, net.variables[2:5]], evidence, weights)
    whole = JunctionTree()._answer(net, question, PLAIN)
    monkeypatch.setattr(junction_tree, "SHRINK_CELLS", 0)
    monkeypatch.setattr(junction_tree, "CELLS_AN_ENTRY", 0)
    monkeypatch.setattr(junction_tree, "SHRINK_GAIN", np.inf)
    found = JunctionTree().answer(net, question)
    assert found.log_evidence == pytest.approx(whole.log_evidence, abs=1e-12)
    for key in whole:
        np.testing.assert_allclose(found[key].probabilities, whole[key].probabilities, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_the_smaller_model_has_the_same_best_states(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net, evidence, weights = world(seed)
    question = read(net, [], evidence, weights)
    whole = JunctionTree()._best(net, question, PLAIN)
    monkeypatch.setattr(junction_tree, "SHRINK_CELLS", 0)
    monkeypatch.setattr(junction_tree, "CELLS_AN_ENTRY", 0)
    monkeypatch.setattr(junction_tree, "SHRINK_GAIN", np.inf)
    found = JunctionTree().best(net, question)
    assert found.log_prob[0] == pytest.approx(whole.log_prob[0], abs=1e-12)
    states = {var.name: var.states[code] for var, code in zip(net.vars, found.states[0], strict=True)}
    worth = net.log_evidence(states) + sum(np.log(w[int(states[name])]) for name, w in weights.items())
    assert worth == pytest.approx(found.log_prob[0] + question.log_scale, abs=1e-10)
    assert all(states[name] == value for name, value in evidence.items())


def test_copies_leave_the_model() -> None:
    net = equal_neighbors(5)
    small = smaller_model(lower(net), read(net, None, {}))
    assert small is not None
    assert len(small.model.vars) == 1


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


def test_a_tree_that_does_not_fit_fits_without_copies() -> None:
    net = equal_neighbors(12)
    answer = net.query("x5_5", memory=1e6)
    odds = 144 * np.log(1.5)
    assert answer["x5_5"].probabilities[1] == pytest.approx(1.0 / (1.0 + np.exp(-odds)))
    cases = net.query("x5_5", [{"x0_0": "1"}, {"x0_0": "0"}], memory=1e6)
    assert cases.exact
    np.testing.assert_array_equal(cases["x5_5"].probabilities, [[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(cases.log_evidence, 144 * np.log([0.6, 0.4]))
    assert np.isneginf(net.log_evidence({"x0_0": "1", "x9_9": "0"}, memory=1e6))
    best = net.map_query({"x3_3": "0"}, memory=1e6)
    assert set(best.assignment.values()) == {"0"}
    assert best.log_prob == pytest.approx(144 * np.log(0.4))


def test_few_zeros_are_followed_where_the_tree_does_not_fit() -> None:
    many = tuple(discrete(f"y{i}", 10) for i in range(5))
    large = TableFactor(many, np.random.default_rng(0).random((10,) * 5) + 0.1)
    net = gg.MarkovNetwork(factors=[*equal_neighbors(12).factors(), large])
    assert 0.0 < lower(net).zeros < smaller.FEW_ZEROS
    answer = net.query(["x5_5", "y0"], memory=8e6)
    odds = 144 * np.log(1.5)
    assert answer["x5_5"].probabilities[1] == pytest.approx(1.0 / (1.0 + np.exp(-odds)))
    np.testing.assert_allclose(answer["y0"].probabilities, large.marginalize(many[1:]).normalize()[0].values)
    assert net.map_query({"x0_0": "0"}, memory=8e6).assignment["x5_5"] == "0"


def test_a_time_limit_leaves_a_best_assignment_exact_where_zeros_do() -> None:
    net = equal_neighbors(40)
    found = net.map_query({"x3_3": "0"}, time_limit=5.0)
    assert found.exact
    assert found.log_prob == pytest.approx(1600 * np.log(0.4))
    with pytest.raises(gg.exceptions.ImpossibleEvidenceError):
        net.map_query({"x3_3": "0", "x9_9": "1"}, time_limit=5.0)


def test_states_that_are_ruled_out_make_a_tree_fit() -> None:
    net = noisy_grid(np.random.default_rng(1), 10, 6)
    some = dict.fromkeys(net.variables, gg.OneOf("1", "4"))
    chosen = np.ix_([1, 4], [1, 4])
    cut = gg.MarkovNetwork(factors=[TableFactor(_halved(f.scope), f.values[chosen]) for f in net.factors()])
    with pytest.raises(gg.exceptions.BudgetError):
        net.query("x5_5", memory=4e6)
    answer, expected = net.query("x5_5", some, memory=4e6), cut.query("x5_5", memory=4e6)
    np.testing.assert_allclose(answer["x5_5"].probabilities[[1, 4]], expected["x5_5"].probabilities)


def _halved(scope: tuple[gg.variables.Var, ...]) -> list[gg.variables.Var]:
    return [discrete(var.name, 2) for var in scope]


def noisy_grid(rng: np.random.Generator, side: int, states: int) -> gg.MarkovNetwork:
    """A grid with some edges left out."""
    at = [[discrete(f"x{i}_{j}", states) for j in range(side)] for i in range(side)]
    pairs = [pair for line in at for pair in itertools.pairwise(line)]
    pairs += [pair for up, low in itertools.pairwise(at) for pair in zip(up, low, strict=True)]
    kept = [pair for pair in pairs if rng.random() < 0.85]
    factors = [TableFactor(pair, rng.random((states, states)) + 0.1) for pair in kept]
    return gg.MarkovNetwork(factors=factors)


def tangle(rng: np.random.Generator, n: int) -> gg.MarkovNetwork:
    """A sparse graph without any pattern, of variables of different sizes."""
    variables = [discrete(f"x{i}", int(rng.integers(2, 5))) for i in range(n)]
    pairs = {(min(i, int(j)), max(i, int(j))) for i in range(n) for j in rng.choice(n, 2, replace=False) if i != j}
    scopes = [(variables[i], variables[j]) for i, j in sorted(pairs)]
    return gg.MarkovNetwork(factors=[TableFactor(s, rng.random((s[0].size, s[1].size)) + 0.1) for s in scopes])


def implied_by(net: gg.BayesianNetwork, evidence: dict[str, str]) -> list[str]:
    """The variables that evidence leaves one state, with those that it names."""
    small = smaller_model(lower(net), read(net, None, evidence))
    assert small is not None
    return [v for v, told in zip(net.variables, small.number.tolist(), strict=True) if told < 0]


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0.0, 0.3), deterministic=st.booleans())
def test_of_two_sets_of_observations_the_larger_one_has_no_larger_plan(
    seed: int, share: float, deterministic: bool
) -> None:
    """Whichever of the two was asked about first; trees of any size are compared here, not the large ones alone."""
    make = deterministic_network if deterministic else tangle
    net, again = make(np.random.default_rng(seed), 40), make(np.random.default_rng(seed), 40)
    rng = np.random.default_rng(seed + 1)
    seen = [name for name in net.variables if rng.random() < share]
    if deterministic:
        case = net.sample(1, random_state=seed % 1000).iloc[0]
        more = set(seen).union(implied_by(net, {name: case[name] for name in seen}))
    else:
        more = set(seen).union(rng.choice(net.variables, int(rng.integers(1, 6)), replace=False).tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gramgraph.compile.tree.UNSEEN_LOG_CELLS", -1.0)
        patch.setattr(junction_tree, "GENERAL_CELLS", 0)
        at_first = cells_of(net, more)
        fewer_seen = cells_of(net, seen)
        assert cells_of(net, more) <= min(at_first, fewer_seen)
        assert cells_of(again, seen) >= cells_of(again, more)


def cells_of(net: gg.BayesianNetwork | gg.MarkovNetwork, seen: Iterable[str]) -> float:
    return float(gg.plan(net, None, sorted(seen), engine="junction_tree").cells)


@settings(max_examples=examples(20), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_orders_of_trees_have_their_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = lower(noisy_grid(rng, 6, 2))
    tree = plan_tree(low).tree
    order = Order.of_tree(tree.clique_ptr, tree.clique_idx, tree.parent, tree.topo)
    n = len(low.sizes)
    assert sorted(order.order.tolist()) == list(range(n))
    assert order.log_cells(low.log_sizes) == pytest.approx(tree.log_cells)
    keep = (rng.random(n) < 0.6).astype(np.uint8)
    if keep.any():
        assert order.among(keep).log_cells(low.log_sizes) <= tree.log_cells + 1e-12


@pytest.mark.parametrize("name", ["BN_32", "BN_57"])
def test_deterministic_networks_are_answered_exactly(shared_data, name: str) -> None:
    base = shared_data / "uai" / "2006_pe" / f"{name}.uai"
    if not base.with_name(base.name + ".gz").is_file():
        pytest.skip(f"no instance {name} in the reference data")
    net = gg.read(base.with_name(base.name + ".gz"))
    evidence = read_uai_evidence(base.with_name(base.name + ".evid"), net)[0]
    answer = net.query(None, evidence)
    assert answer.exact
    assert answer.log_evidence == pytest.approx(read_uai_result(f"{base}.PR").log_z, rel=1e-6)
    official = read_uai_result(f"{base}.MAR.gz").marginals
    for v, p in zip(net.variables, official, strict=True):
        if v not in evidence:
            np.testing.assert_allclose(answer[v].probabilities, p, atol=1e-6)


def test_implied_findings_do_not_make_a_plan_larger(shared_data) -> None:
    base = shared_data / "uai" / "2006_pe" / "BN_76.uai"
    if not base.with_name(base.name + ".gz").is_file():
        pytest.skip("no instance BN_76 in the reference data")
    net = gg.read(base.with_name(base.name + ".gz"))
    evidence = read_uai_evidence(base.with_name(base.name + ".evid"), net)[0]
    implied = implied_by(net, evidence)
    assert set(implied) > set(evidence)
    assert gg.plan(net, None, implied).log_cells <= gg.plan(net, None, list(evidence)).log_cells
