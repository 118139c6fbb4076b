"""Entries down to 1e-300, likelihoods from 1e-300 to 1e300: exact engines against the joint in logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.conditionals import Gate
from gramgraph.factors import TableFactor
from gramgraph.variables import Var, discrete
from tests.portions import examples

EXACT = ("auto", "junction_tree", "elimination", "enumeration", "factor_tree")


def extreme_network(rng: np.random.Generator, n: int) -> gg.BayesianNetwork:
    """Tables some of whose entries are as small as 1e-300, or zero, and noisy-ors with such links."""
    variables = [discrete(f"v{i}", int(rng.choice([1, 2, 2, 2, 3]))) for i in range(n)]
    conditionals: list[Any] = []
    for i, child in enumerate(variables):
        k = min(i, int(rng.integers(0, 4)))
        parents = tuple(variables[int(j)] for j in rng.choice(i, size=k, replace=False)) if k else ()
        if parents and child.size == 2 and rng.random() < 0.2:
            links = (10.0 ** -(300 * rng.random(k))).tolist()
            conditionals.append(gg.NoisyOr(child, parents, links, leak=float(rng.choice([0.0, 1e-250, 0.1]))))
            continue
        shape = (*(p.size for p in parents), child.size)
        values = 10.0 ** -(300 * rng.random(shape) * (rng.random(shape) < 0.5))
        values[rng.random(shape) < 0.1] = 0.0
        np.put_along_axis(values, rng.integers(0, child.size, shape[:-1])[..., None], 1.0, axis=-1)
        conditionals.append(gg.Table(child, parents, values / values.sum(-1, keepdims=True)))
    return gg.BayesianNetwork.from_parts(variables, conditionals)


def log_joint(net: Any) -> np.ndarray:
    """log p(x) of all assignments, an axis for each variable."""
    variables: tuple[Var, ...] = net.vars
    out = np.zeros([v.size for v in variables])
    for factor in net.factors(structured=False):
        at = [variables.index(v) for v in factor.scope]
        logs = factor.log_values().transpose(np.argsort(at))
        out = out + logs.reshape([v.size if i in at else 1 for i, v in enumerate(variables)])
    return out


def log_sum(logs: np.ndarray, keep: tuple[int, ...] = ()) -> np.ndarray:
    """log Σ exp over all axes but `keep`."""
    axes = tuple(i for i in range(logs.ndim) if i not in keep)
    top = logs.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=axes)) + top.squeeze(axes)


def possible_evidence(
    net: Any, logs: np.ndarray, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
    """Evidence and virtual evidence that one possible assignment agrees with, and log p(x, evidence)."""
    pick = np.unravel_index(rng.choice(np.flatnonzero(np.isfinite(logs).ravel())), logs.shape)
    seen: dict[str, Any] = {}
    virtual: dict[str, Any] = {}
    for i, var in enumerate(net.vars):
        shape = [-1 if j == i else 1 for j in range(logs.ndim)]
        kind = rng.random()
        if kind < 0.3:
            seen[var.name] = var.states[pick[i]]
            logs = logs + np.where(np.arange(var.size) == pick[i], 0.0, -np.inf).reshape(shape)
        elif kind < 0.6:
            for given in (seen, virtual) if kind < 0.4 else (seen,):
                weights = 10.0 ** rng.uniform(-300, 300, var.size)
                weights[(rng.random(var.size) < 0.2) & (np.arange(var.size) != pick[i])] = 0.0
                given[var.name] = gg.Likelihood(weights) if given is seen else weights
                with np.errstate(divide="ignore"):
                    logs = logs + np.log(weights).reshape(shape)
    return seen, virtual, logs


def check_beliefs(net: Any, seen: Any, virtual: Any, logs: np.ndarray, log_z: float, engine: str) -> None:
    answer = net.query(None, seen, virtual_evidence=virtual, engine=engine)
    assert answer.exact
    assert answer.log_evidence == pytest.approx(log_z, rel=1e-9, abs=1e-9)
    for i, var in enumerate(net.vars):
        if isinstance(seen.get(var.name), str):
            continue
        truth, p = np.exp(log_sum(logs, (i,)) - log_z), answer[var.name].probabilities
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p[truth > 1e-290], truth[truth > 1e-290], rtol=1e-6)
        assert (p[truth <= 1e-290] < 2e-290).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(25))
def test_exact_answers_hold_for_numbers_of_any_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = extreme_network(rng, int(rng.integers(2, 6)))
    seen, virtual, logs = possible_evidence(net, log_joint(net), rng)
    log_z = float(log_sum(logs))
    ordered = np.sort(logs.ravel())[::-1]
    ordered = ordered[np.isfinite(ordered)][:4]
    for engine in EXACT:
        check_beliefs(net, seen, virtual, logs, log_z, engine)
        best = net.map_query(seen, virtual_evidence=virtual, engine=engine)
        assert best.log_prob == pytest.approx(ordered[0], rel=1e-9, abs=1e-9)
    assert net.log_evidence(seen, virtual_evidence=virtual) == pytest.approx(log_z, rel=1e-9, abs=1e-9)
    several = [best.log_prob for best in net.map_query(seen, k=4, virtual_evidence=virtual)]
    np.testing.assert_allclose(several, ordered, rtol=1e-9, atol=1e-9)
    drawn = net.sample(5, seen, virtual_evidence=virtual, random_state=0)
    codes = [tuple(net.vars[i].states.index(s) for i, s in enumerate(row)) for row in drawn.itertuples(index=False)]
    assert min(logs[at] for at in codes) > log_z - 60.0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(15))
def test_sessions_frames_and_partial_maxima_hold_for_numbers_of_any_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = extreme_network(rng, int(rng.integers(2, 6)))
    seen, virtual, logs = possible_evidence(net, log_joint(net), rng)
    if any(not isinstance(value, str) for value in seen.values()):
        case = net.session()
        case.observe(seen)
        assert case.log_evidence == pytest.approx(net.log_evidence(seen), rel=1e-9, abs=1e-9)
        p = case.query("v0")["v0"].probabilities
        np.testing.assert_allclose(p, net.query("v0", seen)["v0"].probabilities, rtol=1e-6, atol=1e-290)
    free = [v for v in net.variables if not isinstance(seen.get(v), str)]
    if free:
        best = net.map_query(seen, targets=free[:1], virtual_evidence=virtual)
        assert best.log_prob == pytest.approx(float(log_sum(logs, (net.index(free[0]),)).max()), rel=1e-9, abs=1e-9)
    whole = log_joint(net)
    rows = [np.unravel_index(i, whole.shape) for i in np.flatnonzero(np.isfinite(whole).ravel())[:40]]
    cases = [{v.name: v.states[row[i]] for i, v in enumerate(net.vars)} for row in rows]
    np.testing.assert_allclose(net.log_evidence(cases), [whole[row] for row in rows], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(net.map_query(cases)["log_prob"], [whole[row] for row in rows], rtol=1e-9, atol=1e-9)


def test_likelihoods_are_defined_up_to_a_factor() -> None:
    tables = {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]], "c": [[0.7, 0.3], [0.4, 0.6]]}
    net = gg.BayesianNetwork("a -> b -> c", cpds=tables)
    weak = {"a": gg.Likelihood([1.0, 2.0]), "b": gg.Likelihood([0.5, 0.5])}
    for scale in (1e300, 1e-300):
        strong = {"a": gg.Likelihood([scale, 2 * scale]), "b": gg.Likelihood([0.5 * scale, 0.5 * scale])}
        shift = 2 * np.log(scale)
        for engine in (*EXACT, "bp"):
            p = net.query("c", strong, engine=engine)
            np.testing.assert_allclose(p["c"].probabilities, net.query("c", weak)["c"].probabilities, rtol=1e-12)
            assert p.log_evidence == pytest.approx(net.log_evidence(weak) + shift, rel=1e-12)
        assert net.map_query(strong).log_prob == pytest.approx(net.map_query(weak).log_prob + shift, rel=1e-12)
        case = net.session()
        case.observe(strong)
        assert case.log_evidence == pytest.approx(net.log_evidence(weak) + shift, rel=1e-12)
        case.observe(a="no")  # the scale of a likelihood goes with it
        case.retract("b")
        assert case.log_evidence == pytest.approx(np.log(0.5), rel=1e-12)
    both = net.query("a", {"a": gg.Likelihood([1e300, 1e-300])}, virtual_evidence={"a": [1e-300, 1e300]})
    assert both["a"].probabilities.tolist() == pytest.approx([0.5, 0.5])
    assert both.log_evidence == pytest.approx(0.0, abs=1e-9)


def test_a_small_number_squared_is_not_impossible() -> None:
    net = gg.BayesianNetwork("a -> b", cpds={"a": [1e-200, 1], "b": [[1e-200, 1], [0.5, 0.5]]})
    seen, log_p = {"a": "no", "b": "no"}, 2 * np.log(1e-200)
    assert net.map_query(seen).log_prob == pytest.approx(log_p, rel=1e-12)
    assert [round(best.log_prob) for best in net.map_query(k=4)] == [-1, -1, -461, -921]
    assert net.sample(3, seen, random_state=0).to_numpy().tolist() == [["no", "no"]] * 3
    case = net.session()
    case.observe(seen)
    assert case.log_evidence == pytest.approx(log_p, rel=1e-12)
    chain = gg.BayesianNetwork("a -> b", cpds={"a": [5e-286, 1], "b": [[0.5, 0.5], [0.5, 0.5]]})
    assert chain.query("a", {"b": "yes"})["a"].probabilities[0] == pytest.approx(5e-286, rel=1e-9)


def test_potentials_may_reach_from_the_smallest_number_to_the_largest() -> None:
    net = gg.MarkovNetwork({("a", "b"): [[1e300, 1e-300], [1.0, 1e-300]], ("b", "c"): [[1e-300, 0.0], [1e300, 1e300]]})
    logs = log_joint(net)
    assert net.log_evidence({"a": "no", "b": "yes"}) == pytest.approx(float(log_sum(logs[0, 1])), abs=1e-9)
    assert net.map_query({"b": "yes"}).log_prob == pytest.approx(float(logs[:, 1].max()), abs=1e-9)
    assert net.query("a", {"b": "yes"})["a"].probabilities.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("engine", ["search", "trws", "icm", "bp"])
def test_searches_take_products_of_tiny_numbers(engine):
    """Tables inside larger ones are merged before a search: their products must not become zeros."""
    first = [[1.0, 1e-200], [1e-210, 1e-190], [0.0, 0.0]]
    second = [[0.0, 1e-200], [1e-200, 1e-180], [1.0, 1.0]]
    net = gg.MarkovNetwork([(("a", "b"), first), (("c", "a", "b"), [second, second]), (("b",), [1e-250, 1.0])])
    best = net.map_query(engine=engine)
    with np.errstate(divide="ignore"):
        logs = np.log(first) + np.log(second) + np.log([1e-250, 1.0])
    at = tuple(net.states(name).index(best.assignment[name]) for name in "ab")
    assert best.log_prob == pytest.approx(float(logs[at]), rel=1e-12)
    assert best.bound >= logs.max() - 1e-8


@pytest.mark.parametrize("engine", ["search", "trws", "icm", "bp"])
def test_searches_tell_what_their_assignment_is_worth_under_wide_likelihoods(engine):
    net = gg.BayesianNetwork("a -> b", cpds={"a": [0.0, 1.0], "b": [[0.5, 0.5], [1.0, 0.0]]})
    best = net.map_query(virtual_evidence={"b": [1e-300, 1e300]}, engine=engine)
    assert best.log_prob == pytest.approx(float(np.log(1e-300)), rel=1e-12)


def test_information_about_improbable_states_is_finite():
    net = gg.BayesianNetwork("a -> b", cpds={"a": [1e-200, 1.0], "b": [[1e-90, 1.0], [1e-200, 1.0]]})
    with np.errstate(all="raise", under="ignore"):
        found = net.mutual_information("a", "b")
    assert 0.0 <= found < 1e-150


def test_approximations_do_not_call_lost_products_impossible():
    first = [[1.0, 1e-200], [1e-210, 1e-190], [0.0, 0.0]]
    second = [[0.0, 1e-200], [1e-200, 1e-180], [1.0, 1.0]]
    net = gg.MarkovNetwork([(("a", "b"), first), (("c", "a", "b"), [second, second])])
    with pytest.raises(gg.ModelError, match="smaller than the least double"):
        net.query("a", engine="join_graph")
    assert net.query("a")["a"].prob("1") == pytest.approx(1.0)


def test_approximations_say_that_likelihoods_are_wider_than_doubles():
    net = gg.BayesianNetwork("a -> b", cpds={"a": [0.5, 0.5], "b": [[0.5, 0.5], [1.0, 0.0]]})
    with pytest.warns(UserWarning, match="likelihoods of b reach over more than doubles hold"):
        answer = net.query("a", {"b": gg.Likelihood([1e-300, 1e300])}, engine="bp")
    assert answer.details["raised_likelihoods"] == ("b",)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(25))
def test_messages_hold_for_numbers_of_any_size(seed: int) -> None:
    """Two small tables on one edge: their product is below the least double, the belief it gives is not."""
    rng = np.random.default_rng(seed)
    a, b = discrete("a", 3), discrete("b", 2)
    factors = [TableFactor(scope, 10.0 ** -(200 * rng.random(shape))) for scope, shape in [((a, b), (3, 2)), ((a,), 3)]]
    factors.append(TableFactor((a,), 10.0 ** -(200 * rng.random(3))))
    net = gg.MarkovNetwork(factors=factors)
    logs = log_joint(net)
    for i, var in enumerate(net.vars):
        truth = np.exp(log_sum(logs, (i,)) - log_sum(logs))
        found = net.sum_product().belief(var.name).probabilities
        np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-290)


def test_nothing_is_drawn_where_a_small_number_hides_that_the_evidence_is_impossible() -> None:
    a, b, c, d = discrete("a", 2), discrete("b", 2), discrete("c", 2), discrete("d", 2)
    net = gg.BayesianNetwork.from_parts(
        [d, c, a, b],
        [
            Gate(d, (c, a), "or"),
            gg.Table(c, (b,), [[0, 1], [0, 1]]),
            gg.Table(a, (), [1.0, 0.0]),
            gg.Table(b, (a,), [[0, 1], [1.6e-172, 1]]),
        ],
    )
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.sample(5, virtual_evidence={"b": [5e15, 0.0]}, random_state=0)
