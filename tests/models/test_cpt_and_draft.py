"""Reading tables by label, and drafts that write them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.conditionals import NoisyOr
from gramgraph.variables import binary


def test_reading_by_context() -> None:
    net = gg.datasets.sprinkler()
    wet = net.cpt["wet"]
    assert wet[{"sprinkler": "yes"}].tolist() == wet.values[1].tolist()
    assert wet[{"rain": "yes"}].tolist() == wet.values[:, 1].tolist()
    assert wet["sprinkler=yes, rain=no"].tolist() == wet[("yes", "no")].tolist() == [pytest.approx(0.1), 0.9]
    assert wet[("yes", "no", "yes")] == wet[{"sprinkler": "yes", "rain": "no", "wet": "yes"}] == 0.9
    assert wet[...].shape == wet[{}].shape == (2, 2, 2)
    assert net.cpt["rain"]["yes"].tolist() == [pytest.approx(0.2), 0.8]
    assert net.cpt["cloudy"]["yes"] == 0.5
    assert list(net.cpt) == list(net.variables)
    assert "wet" in net.cpt


def test_reading_mistakes() -> None:
    wet = gg.datasets.sprinkler().cpt["wet"]
    with pytest.raises(gg.VariableError, match="Did you mean 'rain'"):
        wet[{"rian": "yes"}]
    with pytest.raises(gg.StateError, match="not a state of rain"):
        wet[{"rain": "maybe"}]
    with pytest.raises(gg.VariableError, match="takes 3 labels"):
        wet["yes"]
    with pytest.raises(gg.VariableError, match="each name once"):
        wet["rain=yes, rain=no"]
    with pytest.raises(gg.VariableError, match="Did you mean 'wet'"):
        gg.datasets.sprinkler().cpt["wett"]


def test_a_network_cannot_be_assigned_to() -> None:
    net = gg.datasets.sprinkler()
    with pytest.raises(gg.ModelError, match=r"net\.draft\(\)"):
        net.cpt["wet"][{"rain": "yes"}] = [0.5, 0.5]
    with pytest.raises(gg.ModelError, match=r"net\.draft\(\)"):
        net.cpt["wet"] = [0.5, 0.5]  # type: ignore[index]


def test_tables_show_themselves() -> None:
    view = gg.datasets.fuel_gauge().cpt["gauge"]
    frame = view.to_frame()
    assert frame.loc[("charged", "full"), "full"] == 0.8
    assert frame.index.names == ["battery", "fuel"]
    assert gg.datasets.fuel_gauge().cpt["fuel"].to_frame().shape == (1, 2)
    text = str(view).splitlines()
    assert text[0].split() == ["battery", "fuel", "gauge=empty", "gauge=full"]
    assert len(text) == 5
    assert view._repr_html_().count("<tr>") == 5
    assert np.asarray(view).shape == (2, 2, 2)
    big = gg.BayesianNetwork("A[100] -> B").random_tables(0).cpt["B"]
    assert "60 more rows" in str(big)
    odd = gg.BayesianNetwork('"<b>" -> x').random_tables(0)
    assert "<b>" not in odd._repr_html_()
    assert "<b>" not in odd.cpt["x"]._repr_html_()


def test_draft_from_nothing() -> None:
    draft = gg.BayesianNetwork.draft("S -> W <- R")
    draft.cpt["S"] = 0.3
    draft.cpt["R"] = [0.8, 0.2]
    draft.cpt["W"][{"S": "yes"}] = [0.1, 0.9]
    draft.cpt["W"][{"S": "no", "R": "no"}] = [1, 0]
    assert np.isnan(draft.cpt["W"][{"S": "no", "R": "yes"}]).all()
    assert str(draft.cpt["W"]).count("?") == 2
    with pytest.raises(gg.ModelError, match=r"no numbers for p\(W \| S=no, R=yes\)"):
        draft.build()
    draft.cpt["W"]["S=no, R=yes"] = {"yes": 0.25, "no": 0.75}
    net = draft.build()
    assert net.cpt["W"].values.tolist() == [[[1, 0], [0.75, 0.25]], [[0.1, 0.9], [0.1, 0.9]]]
    draft.cpt["S"][...] = 0.9
    assert net.cpt["S"].values[1] == 0.3  # the network does not follow the draft


def test_draft_of_a_network_and_back() -> None:
    for name in gg.datasets.list():
        net = gg.datasets.load(name)
        again = net.draft().build()
        assert again == net
        assert [type(again.conditional(v)) for v in net.variables] == [type(net.conditional(v)) for v in net.variables]


def test_draft_changes_the_structure() -> None:
    draft = gg.datasets.sprinkler().draft()
    draft.add_variable("season", ["dry", "wet"]).add_edge("season", "rain")
    assert draft.parents("rain") == ("cloudy", "season")
    assert draft.cpt["rain"][{"season": "dry"}].tolist() == draft.cpt["rain"][{"season": "wet"}].tolist()
    draft.cpt["season"] = 0.5
    draft.cpt["rain"][{"season": "dry", "cloudy": "yes"}] = 0.1
    draft.remove_edge("cloudy", "sprinkler")
    with pytest.raises(gg.ModelError, match="for sprinkler: give it"):
        draft.build()
    draft.cpt["sprinkler"] = 0.4
    net = draft.build()
    assert net.parents("sprinkler") == ()
    assert net.cpt["rain"][("yes", "dry")].tolist() == [0.9, 0.1]
    kept = net.draft().add_edge("season", "wet").remove_edge("season", "wet").build()
    assert kept == net  # numbers that do not depend on a parent survive its removal


def test_draft_removes_variables_and_renames_states() -> None:
    draft = gg.datasets.asia().draft()
    draft.remove_variable("asia").remove_variable("dysp")
    draft.cpt["tub"] = 0.01
    draft.set_states("tub", ["absent", "present"])
    net = draft.build()
    assert net.variables == ("tub", "either", "smoke", "lung", "bronc", "xray")
    assert net.cpt["either"][{"tub": "present", "lung": "no"}].tolist() == [0, 1]
    draft.set_states("tub", 3)
    with pytest.raises(gg.ModelError, match="for tub, either"):
        draft.build()


def test_draft_mistakes() -> None:
    draft = gg.BayesianNetwork.draft("S -> W", states={"S": ["a", "b", "c"]})
    with pytest.raises(gg.VariableError, match="not a variable"):
        draft.add_edge("S", "Q")
    with pytest.raises(gg.ModelError, match="already a variable"):
        draft.add_variable("S")
    with pytest.raises(gg.ModelError, match="no edge"):
        draft.remove_edge("W", "S")
    with pytest.raises(gg.ModelError, match="2 numbers are expected"):
        draft.cpt["W"]["a"] = [0.1, 0.2, 0.7]
    with pytest.raises(gg.ModelError, match="p\\(last state\\)"):
        draft.cpt["S"] = 0.5
    with pytest.raises(gg.StateError):
        draft.cpt["W"]["d"] = 0.5
    with pytest.raises(gg.ModelError, match="parents"):
        draft.cpt["W"] = NoisyOr(binary("W"), (binary("Z"),), [0.5])
    draft.add_edge("W", "S")
    with pytest.raises(gg.ModelError, match="cycle"):
        draft.build()
    assert "2 variables" in repr(draft)


def test_draft_keeps_what_a_file_said() -> None:
    net = gg.datasets.asia()
    net.metadata["position"] = {"asia": (1, 2)}
    assert net.draft().build().metadata == net.metadata


def test_networks_are_pickled_without_their_plans() -> None:
    net = gg.datasets.alarm_radio()
    net.plans["x"] = object()
    again = pickle.loads(pickle.dumps(net))
    assert again == net
    assert again.plans == {}
    assert again.is_dconnected("B", "E", given="A")
