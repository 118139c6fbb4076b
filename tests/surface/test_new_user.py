"""What a new user tries in the first hour: mistakes are named in words, and near misses do what was meant."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import OptionError, did_you_mean


@pytest.fixture(scope="module")
def net():
    return gg.datasets.asia()


# ------------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize("targets", [3, [3], [None]])
def test_targets_that_are_no_names(net, targets):
    with pytest.raises(gg.VariableError, match=r"targets are a name|is not a variable"):
        net.query(targets)


def test_joint_may_be_asked_and_read_by_a_list(net):
    answer = net.query([["lung", "bronc"]])
    assert answer[["lung", "bronc"]] == answer[("lung", "bronc")]


def test_answer_says_what_was_asked_for(net):
    answer = net.query(["lung", ("lung", "bronc")])
    with pytest.raises(gg.VariableError, match=r"'bronc' was not asked for\. Answers: 'lung', \('lung', 'bronc'\)"):
        answer["bronc"]
    with pytest.raises(gg.VariableError, match="Did you mean 'lung'"):
        answer["lugn"]
    with pytest.raises(gg.VariableError, match="was not asked for"):
        answer[("bronc", "lung")]


# ------------------------------------------------------------------------------------------------ evidence


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_missing_values_of_every_kind_are_not_observed(net, missing):
    found, expected = (net.query("lung", case) for case in ({"smoke": missing, "xray": "yes"}, {"xray": "yes"}))
    assert list(found) == list(expected)
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-14)
    assert found["lung"].probabilities == pytest.approx(expected["lung"].probabilities, abs=1e-14)


@pytest.mark.parametrize("kind", [gg.OneOf, gg.Not])
def test_states_may_be_listed(net, kind):
    assert net.query("lung", {"smoke": kind(["yes"])}) == net.query("lung", {"smoke": kind("yes")})


@pytest.mark.parametrize("weights", [{"yes": 0.5, "no": 0.5}, np.array([0.5, 0.5])])
def test_weights_in_place_of_a_state_name_the_two_kinds(net, weights):
    with pytest.raises(gg.StateError, match=r"gg\.Likelihood.*gg\.Soft"):
        net.query("lung", {"smoke": weights})


@pytest.mark.parametrize("weights", ["yes", ["a", "b"], {"yes": "a"}, gg.Not("yes")])
def test_weights_that_are_no_numbers(net, weights):
    with pytest.raises(gg.StateError, match=r"likelihood of smoke is \{state: number\} or 2 numbers"):
        net.query("lung", virtual_evidence={"smoke": weights})


@pytest.mark.parametrize("name", ["virtual_evidence", "soft_evidence"])
def test_further_evidence_is_a_dict(net, name):
    with pytest.raises(gg.VariableError, match=f"{name} is a dict"):
        net.query("lung", **{name: [1, 2]})


def test_empty_dicts_are_cases_too(net):
    answer = net.query("lung", [{}, {}])
    assert answer["lung"].probabilities.shape == (2, 2)
    assert answer["lung"].probabilities[0] == pytest.approx(net.query("lung")["lung"].probabilities)
    assert net.query("lung", [])["lung"].probabilities.shape == (0, 2)


@pytest.mark.parametrize("cases", [[1], [None], ["smoke"], [("smoke", "yes")]])
def test_lists_of_something_else(net, cases):
    with pytest.raises(gg.VariableError, match="a list of dicts; item 0"):
        net.query("lung", cases)
    with pytest.raises(gg.VariableError, match="a list of dicts; item 0"):
        net.map_query(cases)


@pytest.mark.parametrize("cell", [gg.Not("yes"), {"yes"}, frozenset({"yes"}), gg.OneOf("no"), gg.Likelihood([1, 2])])
def test_cells_of_a_table_hold_any_finding(net, cell):
    frame = pd.DataFrame({"smoke": ["yes", cell]})
    answer = net.query("lung", frame)
    for row, finding in enumerate(frame["smoke"]):
        alone = net.query("lung", {"smoke": finding})
        assert answer["lung"].probabilities[row] == pytest.approx(alone["lung"].probabilities, abs=1e-12)
        assert answer.log_evidence[row] == pytest.approx(alone.log_evidence, abs=1e-12)


def test_a_list_is_not_a_cell_of_a_table(net):
    with pytest.raises(gg.StateError, match=r"row 1: .*smoke"):
        net.query("lung", pd.DataFrame({"smoke": ["yes", ["yes"]]}))


def test_numbers_are_shown_plainly():
    die = gg.BayesianNetwork("d[6]", cpds={"d": [1 / 6] * 6})
    with pytest.raises(gg.StateError, match=r"^row 1: 1\.5 is not a state of d"):
        die.query("d", pd.DataFrame({"d": [0.0, 1.5]}))


def test_a_name_in_another_case_is_suggested():
    assert did_you_mean("b", ["A", "B"]) == " Did you mean 'B'?"
    assert did_you_mean("YES", ["no", "yes"]) == " Did you mean 'yes'?"


# ------------------------------------------------------------------------------------------------- answers


def test_an_impossible_case_has_no_mode(net):
    cases = pd.DataFrame({"lung": ["yes", None], "either": ["no", "no"]})
    assert net.query("smoke", cases)["smoke"].mode() == [None, "no"]


def test_belief_is_an_array(net):
    belief = net.query("lung")["lung"]
    assert np.asarray(belief).tolist() == belief.probabilities.tolist()


def test_rounding_is_not_shown_as_evidence():
    die = gg.BayesianNetwork("d[6] -> s", cpds={"d": [1 / 6] * 6, "s": [[0.5, 0.5]] * 6})
    assert repr(die.query("s")).startswith("log p(evidence) = 0 (")


def test_nothing_left_to_assign(net):
    best = net.map_query(dict.fromkeys(net.variables, "no"))
    assert best.assignment == {}
    assert repr(best).startswith("Assignment(nothing unobserved; log p = ")


# ------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_k_is_a_count(net, k):
    with pytest.raises(OptionError, match="whole number from 1"):
        net.map_query(k=k)


@pytest.mark.parametrize("n", [-1, 2.0, "3"])
def test_n_is_a_count(net, n):
    with pytest.raises(OptionError, match="whole number from 0"):
        net.sample(n)


@pytest.mark.parametrize("base", [0, 1, -2])
def test_base_of_a_logarithm(net, base):
    with pytest.raises(OptionError, match="greater than 1"):
        net.entropy("lung", base=base)


def test_do_takes_a_dict(net):
    with pytest.raises(gg.ModelError, match=r"do takes \{name: state\}"):
        net.do(["smoke"])


def test_plan_given_nothing(net):
    assert gg.plan(net, given=None).bytes == gg.plan(net).bytes


# ---------------------------------------------------------------------------------------- sessions, drafts


def test_session_forgets_with_none_and_shows_itself(net):
    case = net.session()
    assert "nothing observed" in repr(case)
    case.observe(smoke="yes", xray="yes")
    assert "smoke=yes, xray=yes" in repr(case)
    case.observe(smoke=None)
    assert case.evidence == {"xray": "yes"}
    want = net.query("lung", {"xray": "yes"})["lung"].prob("yes")
    assert case.query("lung")["lung"].prob("yes") == pytest.approx(want)
    with pytest.raises(gg.VariableError, match="a session observes one case"):
        case.observe(pd.DataFrame({"smoke": ["yes"]}))


def test_reading_a_draft_does_not_change_it():
    a, d = (gg.variables.binary(name) for name in "AD")
    built = gg.BayesianNetwork("A -> D", cpds={"A": 0.1, "D": gg.NoisyOr(d, (a,), [0.9])})
    draft = built.draft()
    assert draft.cpt["D"].values[1].tolist() == pytest.approx([0.1, 0.9])
    assert "p(D | A)" in repr(draft.cpt["D"])
    assert str(draft.cpt["D"])
    assert isinstance(draft.build().conditional("D"), gg.NoisyOr)
    fresh = gg.BayesianNetwork.draft("A -> D")
    assert np.isnan(fresh.cpt["D"].values).all()
    assert "0 tables" in repr(fresh)


def test_errors_survive_another_process() -> None:
    error = gg.ParseError("no number", source="a.bif", line=3, column=7)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a.bif:3:7: no number"
    assert (again.source, again.line, again.column) == ("a.bif", 3, 7)
    over = gg.BudgetError("too large", clique=["A"], bytes=8.0, remedies=["wait"])
    assert str(pickle.loads(pickle.dumps(over))) == str(over)


def test_a_row_of_a_frame_is_one_case() -> None:
    net = gg.datasets.asia()
    frame = pd.DataFrame({"smoke": ["yes", "no"], "xray": ["no", None]})
    row, case = net.query("lung", frame.iloc[1]), net.query("lung", {"smoke": "no"})
    assert row["lung"].probabilities == pytest.approx(case["lung"].probabilities, abs=1e-14)


@pytest.mark.parametrize("memory", ["2GB", -1, 0])
def test_memory_is_a_number_of_bytes(memory: object) -> None:
    with pytest.raises(gg.OptionError, match="bytes"):
        gg.datasets.asia().query("lung", {"smoke": "yes"}, memory=memory)


@pytest.mark.parametrize("n_jobs", ["2", 0, 1.5, None, -2])
def test_n_jobs_is_a_number_of_threads(net, n_jobs) -> None:
    for ask in (net.query, net.map_query, net.log_evidence):
        arguments = (None, pd.DataFrame({"smoke": ["yes", "no"]})) if ask == net.query else ({"smoke": "yes"},)
        with pytest.raises(gg.OptionError, match="n_jobs is a number of threads"):
            ask(*arguments, n_jobs=n_jobs)


def test_arguments_in_the_wrong_place(net, tmp_path) -> None:
    with pytest.raises(gg.OptionError, match="the model first"):
        gg.write(tmp_path / "a.bif", net)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(gg.OptionError, match="plan takes a model"):
        gg.plan("asia")
    with pytest.raises(gg.ModelError, match="a grid needs at least one row"):
        gg.models.ising_grid("a", 3)


def test_beliefs_keep_the_index_of_the_table(net) -> None:
    cases = pd.DataFrame({"smoke": ["yes", "no"]}, index=["ann", "bob"])
    answer = net.query("lung", cases)
    assert answer["lung"].to_frame().index.tolist() == answer.to_frame().index.tolist() == ["ann", "bob"]
    with pytest.raises(gg.StateError, match="row bob"):
        net.query("lung", cases.replace("no", "nein"))


@pytest.mark.parametrize("engine", ["junction_tree", "elimination", "enumeration"])
def test_plans_read_as_text(net, engine) -> None:
    plan = gg.plan(net, engine=engine)
    assert repr(plan) == str(plan)
    assert "width" in repr(plan) or "table" in repr(plan)


def test_messages_say_what_they_are() -> None:
    assert "messages between 2 variables and 3 factors" in repr(gg.models.ising_grid(1, 2, field=0.1).sum_product())
