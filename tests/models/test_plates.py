"""Plates as they are written: text and builder, nested, ragged and crossed; what is wrong is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import distributions as D
from gramgraph.exceptions import GramGraphError, ModelError, ParseError, StateError, VariableError

TEXT = """
    alpha* -> theta{simplex 2};  beta* -> phi{simplex 3}
    theta -> z[2] -> w[3] <- phi      # draws; of topics and words
    plate documents: theta, z, w
    plate words in documents: z, w
    plate topics: phi
"""
CPDS = {"theta": gg.Dirichlet("alpha"), "phi": gg.Dirichlet("beta"), "w": gg.Index("phi", by="z")}


def topics(text: str = TEXT, **given: Any) -> Any:
    return gg.BayesianNetwork(text, **{"cpds": CPDS, "alpha": 0.5, "beta": 0.5, **given})


def test_a_text_with_plates_is_a_plate_model() -> None:
    model = topics()
    assert isinstance(model, gg.models.PlateModel) and isinstance(model, gg.BayesianNetwork)
    assert model.variables == ("alpha", "theta", "beta", "phi", "z", "w")
    assert model.parents("w") == ("z", "phi") and model.is_dconnected("theta", "w")
    assert model.plates_of("w") == ("documents", "words") and model.plates_of("alpha") == ()
    assert {name: plate.outer for name, plate in model.plates.items()} == {
        "documents": None,
        "words": "documents",
        "topics": None,
    }
    assert float(model.hyperparameters["alpha"]) == 0.5
    assert repr(model) == "PlateModel(6 variables, 5 edges; plates documents, words in documents, topics)"


def test_the_builder_makes_the_same() -> None:
    edges = [("alpha", "theta"), ("beta", "phi"), ("theta", "z"), ("z", "w"), ("phi", "w")]
    states = {"theta": "simplex 2", "phi": "simplex 3", "z": 2, "w": 3, "alpha": "real", "beta": "real"}
    plates = {"documents": ["theta", "z", "w"], "words in documents": ["z", "w"], "topics": "phi"}
    built = gg.BayesianNetwork(edges=edges, states=states, plates=plates, cpds=CPDS, alpha=0.5, beta=0.5)
    evidence = {"w": [[0, 0, 1], [2, 2, 1]]}
    assert built.log_evidence(evidence) == pytest.approx(topics().log_evidence(evidence), abs=1e-12)
    assert built.plates == topics().plates


def test_an_ordinary_text_stays_an_ordinary_network() -> None:
    net = gg.BayesianNetwork("a* -> plate; plate -> b # with a comment; c -> d")
    assert type(net) is gg.BayesianNetwork and net.variables == ("a*", "plate", "b")
    with pytest.raises(TypeError, match="cpd"):
        gg.BayesianNetwork("a -> b", cpd={})


def test_a_distribution_stays_a_distribution() -> None:
    assert gg.Dirichlet([1.0, 2.0]).mean.tolist() == pytest.approx([1 / 3, 2 / 3])
    assert isinstance(gg.Dirichlet("alpha"), D.ByName) and not isinstance(gg.Dirichlet("alpha"), D.Dirichlet)
    assert D.Normal("mu", precision="tau").names == ("mu", "tau")
    for bad in (lambda: D.Normal("mu"), lambda: D.Gamma("a", "b", "c"), lambda: D.Normal("m", 1.0, precision=2.0)):
        with pytest.raises(ModelError):
            bad()


def test_unrolling_nested_and_ragged_plates() -> None:
    net = topics().unroll(documents=2, words=[1, 2])
    assert net.variables[:4] == ("theta[0]", "theta[1]", "phi[0]", "phi[1]")
    assert [name for name in net.variables if name.startswith("z")] == ["z[0,0]", "z[1,0]", "z[1,1]"]
    assert net.parents("w[1,1]") == ("z[1,1]", "phi[0]", "phi[1]") and net.parents("z[1,1]") == ("theta[1]",)
    assert len(topics().unroll(documents=0, words=3)) == 2


def test_three_levels() -> None:
    text = "p{simplex 2} -> x[2]; plate books: p, x; plate chapters in books: x; plate words in chapters: x"
    model = gg.BayesianNetwork(text, cpds={"p": gg.Dirichlet([1.0, 1.0])})
    net = model.unroll(books=2, chapters=[2, 1], words=[[1, 2], [3]])
    assert [n for n in net.variables if n[0] == "x"] == [
        "x[0,0,0]", "x[0,1,0]", "x[0,1,1]", "x[1,0,0]", "x[1,0,1]", "x[1,0,2]",
    ]  # fmt: skip
    answer = model.query("p", {"x": [[[0], [0, 1]], [[1, 1, 1]]]})
    assert np.allclose(answer["p"].mean(), [[3 / 5, 2 / 5], [1 / 5, 4 / 5]])


def test_crossed_plates() -> None:
    """A rating stands in the plates of its user and of its item; the answer is the sum over all states."""
    text = "a[2] -> r[2] <- b[2]; plate users: a, r; plate items: b, r"
    table = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]])
    model = gg.BayesianNetwork(text, cpds={"a": [0.3, 0.7], "b": [0.6, 0.4], "r": table}, plates={})
    ratings = [[0, 1, 0], [1, 1, 0]]
    answer = model.query(["a", "b"], {"r": ratings})
    net = model.unroll(users=2, items=3)
    assert net.parents("r[1,2]") == ("a[1]", "b[2]") and net.is_discrete
    seen = {f"r[{i},{j}]": ratings[i][j] for i in range(2) for j in range(3)}
    plain = net.query(None, seen)
    assert answer.log_evidence == pytest.approx(plain.log_evidence, abs=1e-12)
    for name, shape in (("a", 2), ("b", 3)):
        for i in range(shape):
            assert np.allclose(answer[name].probabilities[i], plain[f"{name}[{i}]"].probabilities)


def test_members_and_joints_by_name() -> None:
    model = topics()
    answer = model.query(["z[0,0]", ("z[0,0]", "w[0,2]")], {"w": [[0, 0, None], [2, 2, 1]]})
    joint = answer[("z[0,0]", "w[0,2]")].probabilities
    assert joint.shape == (2, 3) and np.allclose(joint.sum(axis=1), answer["z[0,0]"].probabilities)
    same = model.query("z", {"w[0,0]": 0, "w[0,1]": 0, "w[1,0]": 2}, sizes={"documents": 2, "words": 2})
    assert same["z"].probabilities.shape == (2, 2, 2)
    ragged = model.query("z", {"w": [[0], [2, 1]]})["z"]
    assert [part.shape for part in ragged.probabilities] == [(1, 2), (2, 2)]
    assert ragged[1, 1].scope[0].name == "z[1,1]" and list(ragged.to_frame().index) == ["z[0,0]", "z[1,0]", "z[1,1]"]


def test_empty_documents_and_single_states_are_fine() -> None:
    model = topics()
    with_empty = model.query("theta", {"w": [[0, 0, 1], [], [2, 2, 1]]})
    assert with_empty.log_evidence == pytest.approx(-7.5795090602, abs=1e-9)
    assert np.allclose(with_empty["theta"].mean()[1], 0.5)  # the prior
    assert model.log_evidence({"w": [[], []]}) == pytest.approx(0.0)
    one = gg.BayesianNetwork(
        TEXT.replace("simplex 2", "simplex 1").replace("z[2]", "z[1]"), cpds=CPDS, alpha=1.0, beta=1.0
    )
    assert one.log_evidence({"w": [[0, 1]]}) == pytest.approx(np.log(1 / 3 * 1 / 4))


BAD_TEXTS = {
    "plate days:": (ParseError, "no members"),
    "plate days: x, x": (ParseError, "named twice"),
    "plate days x": (ParseError, "plate NAME: members"),
    "plate days: x, q": (ModelError, "'q' is not a variable"),
    "plate days: x; plate days: y": (ParseError, "written twice"),
    "plate days in weeks: x": (ModelError, "not a plate"),
    "plate a in b: x; plate b in a: x": (ModelError, "stands in itself"),
    "plate x: y": (ModelError, "name of a variable"),
    "plate days[two]: x": (ParseError, "whole number"),
}


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_bad_plates(text: str) -> None:
    error, match = BAD_TEXTS[text]
    with pytest.raises(error, match=match):
        gg.BayesianNetwork(f"x -> y; {text}", cpds={"x": 0.5, "y": [[0.5, 0.5], [0.5, 0.5]]})


def test_a_parse_error_shows_the_place() -> None:
    with pytest.raises(ParseError) as told:
        gg.BayesianNetwork("x -> y\n  plate days: x, x")
    assert told.value.line == 2 and "^" in str(told.value)


BAD_MODELS: list[tuple[dict[str, Any], str]] = [
    ({"cpds": {**CPDS, "w": gg.Index("phi", by="theta")}}, "uses"),
    ({"cpds": {k: v for k, v in CPDS.items() if k != "theta"}}, "no conditional for theta"),
    ({"cpds": {**CPDS, "alpha": 0.5}}, "hyper-parameter"),
    ({"gamma": 1.0}, "not a hyper-parameter"),
    ({"alpha": "much"}, "number"),
    ({"cpds": {**CPDS, "theta": D.Gamma("alpha", 1.0)}}, "family of"),
    ({"text": TEXT.replace("z[2]", "z[4]")}, "4 states, but its probabilities are 2"),
    ({"text": TEXT.replace("topics:", "topics[5]:")}, "5 members, but z has 2 states"),
    ({"cpds": {**CPDS, "w": gg.distributions.Categorical("phi")}}, "uses"),
]


@pytest.mark.parametrize("given, match", BAD_MODELS, ids=[match for _, match in BAD_MODELS])
def test_bad_models(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        topics(**given)


BAD_QUESTIONS: list[tuple[Any, Any, type[GramGraphError], str]] = [
    ("z", {"w": [[0, 3]]}, StateError, "not a state of w"),
    ("z", {"w": [0, 1]}, ModelError, "a list over words is expected"),
    ("z", {"w": 3}, ModelError, "a list over documents"),
    ("z", {"w": [[0]], "z": [[0, 1]]}, ModelError, "1 members in one variable, but 2"),
    ("z", {"w": [[0]], "theta": [[0.5, 0.5], [0.5, 0.5]]}, ModelError, "members"),
    ("q", {"w": [[0]]}, VariableError, "q"),
    ("z[5,0]", {"w": [[0]]}, VariableError, "not a member"),
    ("alpha", {"w": [[0]]}, VariableError, "hyper-parameter"),
    ("z", {}, ModelError, "how many members has the plate documents"),
    ("z", [[0]], ModelError, "dict"),
]


@pytest.mark.parametrize("target, evidence, error, match", BAD_QUESTIONS, ids=[q[3] for q in BAD_QUESTIONS])
def test_bad_questions(target: Any, evidence: Any, error: type[GramGraphError], match: str) -> None:
    with pytest.raises(error, match=match):
        topics().query(target, evidence)


BAD_SIZES: list[tuple[dict[str, Any], str]] = [
    ({"documents": 2, "words": [3]}, "needs 2 lengths"),
    ({"documents": 2, "words": [3, -1]}, "whole numbers from 0"),
    ({"documents": 2, "words": [3, "a"]}, "whole numbers from 0"),
    ({"documents": -1, "words": 2}, "at least 0"),
    ({"documents": [1, 2], "words": 2}, "whole number"),
    ({"documents": 2}, "how many members has the plate words"),
    ({"documents": 2, "words": 2, "topics": 3}, "2 members, not 3"),
    ({"documents": 2, "words": 2, "topic": 2}, "not a plate"),
]


@pytest.mark.parametrize("sizes, match", BAD_SIZES, ids=[match for _, match in BAD_SIZES])
def test_bad_sizes(sizes: dict[str, Any], match: str) -> None:
    with pytest.raises(GramGraphError, match=match):
        topics().unroll(**sizes)


def test_what_needs_a_network_or_a_value_says_so() -> None:
    model = topics()
    for ask in (model.factors, model.map_query, model.do, model.random_tables, lambda: model.n_parameters):
        with pytest.raises(ModelError, match="unroll"):
            ask()
    with pytest.raises(ModelError, match="ask for them"):
        model.fit({})
    unset = gg.BayesianNetwork(TEXT, cpds=CPDS, beta=0.5)
    with pytest.raises(ModelError, match="no value for the hyper-parameter alpha"):
        unset.query("z", {"w": [[0]]})
    with pytest.raises(ModelError, match="must be positive"):
        topics(alpha=-1.0).query("z", {"w": [[0]]})
    with pytest.raises(gg.GramGraphError, match="not an engine"):
        model.query("z", {"w": [[0]]}, engine="junction_tree")


def test_draws_of_all_members_follow_the_model() -> None:
    draws = topics().sample(4000, documents=1, words=2, random_state=0)
    theta = draws["theta[0][0]"].to_numpy()
    z = draws["z[0,0]"].astype(int).to_numpy()
    assert abs(np.mean((z == 0) - theta)) < 5 * 0.5 / np.sqrt(4000)
    assert abs(theta.var() - 1 / 8) < 0.01  # Beta(½, ½)


def test_an_unrolled_network_goes_to_a_file_and_back(tmp_path: Any) -> None:
    net = topics().unroll(documents=1, words=2)
    gg.write(net, tmp_path / "topics.json")
    again = gg.read(tmp_path / "topics.json")
    assert again == net and again.vars == net.vars


def test_full_tables_of_the_alarm_have_eight_parameters() -> None:
    """4 + 2 + 1 + 1: alarm given burglary and earthquake, radio given earthquake, and two causes."""
    structure = gg.BayesianNetwork(edges=gg.datasets.alarm_radio().edges)
    net = structure.random_tables(0)
    counts = {name: net.conditional(name).n_parameters for name in net.variables}
    assert structure.n_parameters == net.n_parameters == 8 and sorted(counts.values()) == [1, 1, 2, 4]
