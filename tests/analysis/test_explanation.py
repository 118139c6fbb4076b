"""What findings add, and whether they disagree: against the definitions, for every kind of model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph.testing import random_bayesian_network


def odds(p):
    return np.log(p) - np.log1p(-p)


def cases(net, rng, k):
    names = rng.permutation(net.variables)[: k + 1]
    return names[0], {str(v): str(rng.choice(net.states(v))) for v in names[1:]}


@given(st.integers(0, 10_000))
def test_contributions_and_conflict_follow_their_definitions(seed):
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 6)
    target, evidence = cases(net, rng, 3)
    full = net.query(target, evidence)
    found = net.explain(target, evidence)
    state = found.attrs["state"]
    assert full[target].prob(state) == max(full[target].probabilities)
    assert found["contribution"].abs().is_monotonic_decreasing
    for row in found.itertuples():
        less = {k: v for k, v in evidence.items() if k != row.finding}
        p = net.query(target, less)[target].prob(state)
        assert row.without == pytest.approx(p, abs=1e-12)
        assert row.contribution == pytest.approx(odds(full[target].prob(state)) - odds(p), abs=1e-9)
    clash = net.conflict(evidence)
    alone = {k: net.log_evidence({k: v}) for k, v in evidence.items()}
    assert clash == pytest.approx(sum(alone.values()) - full.log_evidence, abs=1e-9)
    for name, pull in clash.pulls.items():
        rest = net.log_evidence({k: v for k, v in evidence.items() if k != name})
        assert pull == pytest.approx(alone[name] + rest - full.log_evidence, abs=1e-9)


def test_uncertain_findings_count_like_others():
    net = gg.datasets.asia()
    evidence = {"asia": gg.Likelihood([1, 4]), "xray": "yes", "smoke": gg.Not("no")}
    found = net.explain("lung", evidence, state="yes").set_index("finding")["contribution"]
    p = net.query("lung", evidence)["lung"].prob("yes")
    q = net.query("lung", {"xray": "yes", "smoke": "yes"})["lung"].prob("yes")
    assert found["asia"] == pytest.approx(odds(p) - odds(q))
    assert net.conflict(evidence) == pytest.approx(
        sum(net.log_evidence({k: v}) for k, v in evidence.items()) - net.log_evidence(evidence)
    )


def test_a_number_moves_its_mean_and_an_angle_its_direction(rng):
    cpds = {"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}, "z": {"coefficients": -1.0, "sd": 0.5}}
    net = gg.BayesianNetwork("x{real} -> y{real}; x -> z{real}", cpds=cpds)
    found = net.explain("x", {"y": 2.0, "z": 1.0}).set_index("finding")
    both = net.query("x", {"y": 2.0, "z": 1.0})["x"].mean()
    assert found.loc["y", "contribution"] == pytest.approx(both - net.query("x", {"z": 1.0})["x"].mean())
    assert found.loc["z", "without"] == pytest.approx(net.query("x", {"y": 2.0})["x"].mean())
    assert net.conflict({"y": 2.0, "z": 1.0}) > 0.0
    phi = rng.vonmises(np.pi, 4.0, 400)
    tree = gg.learn_tree({"phi": phi, "w": np.cos(phi) + 0.2 * rng.normal(size=400)}, domains={"phi": "circle"})
    turned = tree.explain("phi", {"w": -0.5})
    assert turned.attrs["measure"] == "direction"
    assert abs(turned["contribution"][0]) <= np.pi


def test_impossible_findings_and_wrong_targets_are_named():
    net = gg.datasets.asia()
    with pytest.raises(gg.ImpossibleEvidenceError, match="either"):
        net.conflict({"either": "no", "lung": "yes"})
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.explain("smoke", {"either": "no", "lung": "yes"})
    with pytest.raises(gg.VariableError, match="observed"):
        net.explain("lung", {"lung": "yes"})
    assert net.conflict({}) == 0.0
    assert net.conflict({"lung": "yes"}).against is None


def test_a_limit_of_time_gives_the_nearest_first_and_the_rest_on_request():
    net = gg.datasets.asia()
    whole = net.most_informative("lung", {"xray": "yes"}).set_index("variable")["reduction"]
    part = net.most_informative("lung", {"xray": "yes"}, time_limit=1e-9)
    assert 0 < len(part) < len(whole)
    assert set(part["variable"]) | set(part.attrs["left"]) == set(whole.index)
    assert set(part["variable"]) >= {"smoke", "either"}
    rest = net.most_informative("lung", {"xray": "yes"}, candidates=part.attrs["left"], time_limit=60.0)
    assert rest.attrs["left"] == ()
    for frame in (part, rest):
        for row in frame.itertuples():
            assert row.reduction == pytest.approx(whole[row.variable], abs=1e-12)
