"""Influence diagrams against the enumeration of all policies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from tests.portions import examples

UMBRELLA = "weather{sun|rain} -> forecast{good|bad} -> [umbrella{leave|take}]; weather -> <comfort> <- umbrella"
CPDS = {"weather": [0.7, 0.3], "forecast": [[0.8, 0.2], [0.1, 0.9]]}
COMFORT = {"comfort": [[100, 60], [0, 80]]}


def umbrella() -> gg.InfluenceDiagram:
    return gg.InfluenceDiagram(UMBRELLA, cpds=CPDS, utilities=COMFORT)


def policies(diagram: gg.InfluenceDiagram) -> Iterator[dict[str, dict[tuple[str, ...], str]]]:
    """All ways to decide, each decision by everything that is known before it."""
    every = []
    for d in diagram.decisions:
        seen = list(itertools.product(*(diagram.states(n) for n in diagram.known_before(d))))
        choices = itertools.product(diagram.states(d), repeat=len(seen))
        every.append([dict(zip(seen, chosen, strict=True)) for chosen in choices])
    for row in itertools.product(*every):
        yield dict(zip(diagram.decisions, row, strict=True))


def worth(diagram: gg.InfluenceDiagram, policy: dict[str, dict[tuple[str, ...], str]]) -> float:
    """The expected utility of one way to decide, by summing over all worlds."""
    net, total = diagram.network, 0.0
    for world in itertools.product(*(net.states(n) for n in net.variables)):
        case = dict(zip(net.variables, world, strict=True))
        if any(policy[d][tuple(case[n] for n in diagram.known_before(d))] != case[d] for d in diagram.decisions):
            continue
        chance = [v for v in net.variables if v not in diagram.decisions]
        p = np.prod(
            [net.conditional(v).table()[tuple(net.var(n).index(case[n]) for n in (*net.parents(v), v))] for v in chance]
        )
        total += p * sum(
            float(u.values[tuple(x.index(case[x.name]) for x in u.scope)]) for u in diagram.utilities.values()
        )
    return float(total)


def random_diagram(rng: np.random.Generator) -> gg.InfluenceDiagram:
    """Two decisions between three variables, with arrows at random."""
    order = ["a", "x", "b", "y", "c"]
    edges = [("x", "y")]
    for i, j in itertools.combinations(range(5), 2):
        if (order[i], order[j]) != ("x", "y") and rng.random() < 0.45:
            edges.append((order[i], order[j]))
    edges = [(a, b) for a, b in edges if (a, b) not in {("a", "y"), ("b", "y")} or rng.random() < 0.5]
    for u in ("u", "v"):
        edges += [(n, u) for n in order if rng.random() < 0.5] or [("x", u)]
    shape = lambda u: [2] * sum(b == u for _, b in edges)  # noqa: E731
    cpds = {}
    for n in "abc":
        parents = sum(b == n for _, b in edges)
        cpds[n] = rng.dirichlet([0.7, 0.7], size=[2] * parents)
    utilities = {u: rng.normal(size=shape(u)) for u in ("u", "v")}
    names = dict.fromkeys(name for edge in edges for name in edge)
    cpds = {n: p for n, p in cpds.items() if n in names}
    return gg.InfluenceDiagram(edges=edges, decisions=["x", "y"], cpds=cpds, utilities=utilities)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_best_of_all_policies_is_found(seed: int) -> None:
    diagram = random_diagram(np.random.default_rng(seed))
    best = diagram.solve()
    known = [len(diagram.known_before(d)) for d in diagram.decisions]
    found = {
        d: {
            seen: best.policy[d](dict(zip(diagram.known_before(d), seen, strict=True)))
            for seen in itertools.product(*(diagram.states(n) for n in diagram.known_before(d)))
        }
        for d in diagram.decisions
    }
    assert worth(diagram, found) == pytest.approx(best.expected_utility, abs=1e-9), (
        "the policies are worth what is said"
    )
    if sum(2**k for k in known) <= 10:
        assert max(worth(diagram, p) for p in policies(diagram)) == pytest.approx(best.expected_utility, abs=1e-9)
    else:  # too many to list: none of the policies that differ in one situation is better
        for d in diagram.decisions:
            for seen, chosen in found[d].items():
                other = next(s for s in diagram.states(d) if s != chosen)
                changed = {**found, d: {**found[d], seen: other}}
                assert worth(diagram, changed) <= best.expected_utility + 1e-9


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_seeing_more_is_never_worse(seed: int) -> None:
    diagram = random_diagram(np.random.default_rng(seed))
    for name in set("abc") & set(diagram.network.variables):
        for d in diagram.decisions:
            try:
                assert diagram.value_of_information(name, before=d) >= -1e-9
            except gg.VariableError as error:
                assert "cannot be seen before" in str(error)


def test_the_umbrella_by_hand() -> None:
    best = umbrella().solve()
    # good: p(sun, good) = .56, p(rain, good) = .03: leave 56, take 36; bad: leave 14, take 8.4 + 21.6
    assert best.expected_utility == pytest.approx(86.0)
    assert [best.policy["umbrella"]({"forecast": f}) for f in ("good", "bad")] == ["leave", "take"]
    frame = best.policy["umbrella"].to_frame()
    assert frame["umbrella"].tolist() == ["leave", "take"]
    assert frame.loc[0, "umbrella=leave"] == pytest.approx(56 / 0.59)
    assert umbrella().value_of_information("forecast", before="umbrella") == pytest.approx(86 - 70)
    assert umbrella().value_of_information("weather", before="umbrella", cost=5) == pytest.approx(
        0.7 * 100 + 24 - 86 - 5 + 16 - 16 + 2 - 2 + 86 - 86
    )
    assert "expected utility 86" in repr(best) and "forecast=bad" in repr(best)
    assert best.network.query("umbrella")["umbrella"].prob("take") == pytest.approx(0.41)


def test_evidence_comes_before_all_decisions() -> None:
    assert umbrella().solve({"weather": "rain"}).expected_utility == pytest.approx(80.0)
    with pytest.raises(gg.VariableError, match="a decision"):
        umbrella().solve({"umbrella": "take"})


def test_what_is_not_a_diagram_says_so() -> None:
    with pytest.raises(gg.ModelError, match="no utility"):
        gg.InfluenceDiagram("a -> [d]", cpds={"a": 0.5})
    with pytest.raises(gg.ModelError, match="decided first"):
        gg.InfluenceDiagram("[d] -> <u> <- [e]", utilities={"u": [[0, 1], [1, 0]]})
    with pytest.raises(gg.ModelError, match="no number for d=yes"):
        gg.InfluenceDiagram("[d] -> <u>", utilities={"u": {"no": 1}})
    with pytest.raises(gg.ModelError, match="takes no table"):
        gg.InfluenceDiagram("[d] -> <u>", cpds={"d": 0.5}, utilities={"u": [0, 1]})
    with pytest.raises(gg.ModelError, match="cycle"):
        gg.InfluenceDiagram("[d] -> a -> d; a -> <u>", cpds={"a": [[0.5, 0.5]] * 2}, utilities={"u": [0, 1]})
    with pytest.raises(gg.BudgetError, match="let fewer variables"):
        umbrella().solve(memory=10)


def test_the_oil_drillers_problem() -> None:
    """A problem of the textbooks: 22.5 with the test, 20 without, 55 for who knows the ground."""
    ground = {
        "test=no": {"untested": 1},
        ("dry", "yes"): {"flat": 0.6, "open": 0.3, "closed": 0.1},
        ("wet", "yes"): {"flat": 0.3, "open": 0.4, "closed": 0.3},
        ("soaking", "yes"): {"flat": 0.1, "open": 0.4, "closed": 0.5},
    }
    gain = {"drill=no": 0, ("dry", "yes"): -70, ("wet", "yes"): 50, ("soaking", "yes"): 200}
    diagram = gg.InfluenceDiagram(
        "oil{dry|wet|soaking} -> seismic{untested|flat|open|closed} <- [test]; seismic -> [drill] <- test"
        "; oil -> <gain> <- drill; test -> <fee>",
        cpds={"oil": [0.5, 0.3, 0.2], "seismic": ground},
        utilities={"gain": gain, "fee": {"no": 0, "yes": -10}},
    )
    best = diagram.solve()
    assert best.expected_utility == pytest.approx(22.5)
    assert best.policy["test"]() == "yes"
    frame = best.policy["drill"].to_frame()
    assert frame["seismic"].tolist() == ["untested", "flat", "open", "closed"], "what cannot occur is not listed"
    assert frame["drill"].tolist() == ["yes", "no", "yes", "yes"]
    assert diagram.value_of_information("oil", before="drill") == pytest.approx(32.5)
    assert diagram.value_of_information("oil", before="test") == pytest.approx(32.5)


def test_labels_come_from_the_utilities() -> None:
    diagram = gg.InfluenceDiagram(
        "oil -> <pay> <- [drill]",
        cpds={"oil": 0.2},
        utilities={"pay": {("no", "go"): -70, ("yes", "go"): 270, "drill=stop": 0}},
    )
    assert diagram.states("drill") == ("go", "stop")
    assert diagram.solve().expected_utility == pytest.approx(0.0)
    assert diagram.value_of_information("oil", before="drill") == pytest.approx(54.0)
