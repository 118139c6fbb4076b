"""The native JSON format and the JSON of published studies."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import gramgraph as gg
from gramgraph.conditionals import Deterministic, NoisyMax, NoisyOr, Table
from gramgraph.exceptions import ModelError, ModelWarning, ParseError
from gramgraph.factors import TableFactor
from gramgraph.io import native, study_json
from gramgraph.models import LogLinear
from gramgraph.variables import binary, discrete
from tests.io.drawing import damaged, networks

STUDY = b"""{"network": "wet", "kind": "discrete", "note": "axes", "nodes": {
  "wet": {"states": ["no", "yes"], "parents": ["rain", "hose"], "cpt": [[[1, 0], [0.2, 0.8]], [[0.1, 0.9], [0, 1]],
    [[0.5, 0.5], [0.25, 0.75]]]},
  "rain": {"states": ["none", "some", "lots"], "parents": [], "cpt": [0.5, 0.3, 0.2]},
  "hose": {"states": ["off", "on"], "parents": [], "cpt": [0.75, 0.25]}}}"""


def structured() -> gg.BayesianNetwork:
    a, b, c = binary("a"), binary("b"), discrete("c", ["none", "mild", "strong"])
    d, e = discrete("d", 2), binary("e")
    parts: list[Any] = [
        Table(a, (), np.array([0.1, 0.9])),
        NoisyOr(b, (a,), [0.3], leak=0.05),
        NoisyMax(c, (a, b), [[[1, 0, 0], [0.2, 0.5, 0.3]], [[1, 0, 0], [0.1, 0.3, 0.6]]]),
        Deterministic(d, (a, b), np.array([0, 1, 1, 0])),
        None,
    ]
    index = [[], [0], [0, 1], [0, 1], [3, 2]]
    return gg.BayesianNetwork.from_parts([a, b, c, d, e], parts, parents=index, name="mixed", check=False)


@given(networks())
def test_round_trip_is_exact(net: gg.BayesianNetwork) -> None:
    again = native.loads(native.dumps(net))
    assert again == net and again.name == net.name


def test_kinds_of_conditionals_stay_what_they_are() -> None:
    net = structured()
    again = native.loads(native.dumps(net))
    assert again == net and again.name == "mixed" and again.parents("e") == ("d", "c")
    kinds = [type(c).__name__ if c else None for c in again.conditionals]
    assert kinds == ["Table", "NoisyOr", "NoisyMax", "Deterministic", None]


def test_undirected_models() -> None:
    x, y, z = binary("x"), discrete("y", ["lo w", "é"]), discrete("z", 3)
    factors = [
        TableFactor((y, x), np.array([[1e300, 5e-324], [0.1, 1 / 3]]), -1234.5),
        TableFactor((), np.array(2.0)),
        TableFactor((y, x), np.ones((2, 2))),
    ]
    net = gg.MarkovNetwork.from_parts([x, y, z], factors, name="m", metadata={"properties": ["p"], "n": [1, 2.5, None]})
    again = native.loads(native.dumps(net))
    assert type(again) is gg.MarkovNetwork and again == net
    assert again.name == "m" and again.metadata == net.metadata and again.factors()[0].log_scale == -1234.5
    drawn = gg.MarkovNetwork(edges="A - B - C - A", potentials={("A", "B"): [[2, 1], [1, 2]]})
    assert native.loads(native.dumps(drawn)).edges == drawn.edges
    graph = gg.FactorGraph.from_parts([x, y, z], factors, names=["first", "second", "third"])
    twin = native.loads(native.dumps(graph))
    assert type(twin) is gg.FactorGraph and twin == graph and twin.factor_names == graph.factor_names
    loglin = LogLinear([(("a", "b"), [[1, 0], [0, 1]], "agree"), ("a", [0, 1])], weights=[0.5, -0.2])
    same = native.loads(native.dumps(loglin))
    assert isinstance(same, LogLinear) and same.weights.tolist() == [0.5, -0.2] and same.features[0].name == "agree"
    at = {"a": "yes", "b": "yes"}
    assert same.joint_log_prob(at) == loglin.joint_log_prob(at)


def test_metadata_of_arrays_and_what_json_cannot_hold() -> None:
    net = gg.BayesianNetwork("a").random_tables(random_state=1)
    net.metadata.update(position=np.array([1.5, 2.0]), n=np.int64(3))
    assert native.loads(native.dumps(net)).metadata == {"position": [1.5, 2.0], "n": 3}
    net.metadata["what"] = object()
    with pytest.raises(ModelError, match="metadata cannot be written as JSON: object has no place"):
        native.dumps(net)
    with pytest.raises(ModelError, match="a dict has no place in a file. Files hold networks"):
        native.dumps({})


def edited(**changes: Any) -> bytes:
    """A sound file with the values at some dotted paths replaced."""
    net = gg.BayesianNetwork("a -> b", cpds={"a": [0.25, 0.75], "b": [[0.5, 0.5], [0.125, 0.875]]})
    top = json.loads(native.dumps(net))
    for path, value in changes.items():
        *way, last = path.split("__")
        where = top
        for key in way:
            where = where[int(key) if isinstance(where, list) else key]
        where[int(last) if isinstance(where, list) else last] = value
    return json.dumps(top).encode()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": "other"}, 'expected "format": "gramgraph"'),
        ({"version": 2}, "version '2' of the format is not known; this library reads 1"),
        ({"kind": "bayesian_netwok"}, "Did you mean 'bayesian_network'"),
        ({"kind": 3}, "kind must be a text, not a number"),
        ({"name": 3}, "name must be a text, not a number"),
        ({"variables": {}}, "variables must be a list, not an object"),
        ({"variables__0": 1}, r"variables\[0\] must be an object"),
        ({"variables__0__name": "b"}, "'b' is declared twice"),
        ({"variables__0__states": ["x", "x"]}, "'a' has the state 'x' twice"),
        ({"variables__0__states": []}, "'a' has no states"),
        ({"variables__0__states": [1]}, "list of texts; it holds a number"),
        ({"conditionals": []}, "2 variables need as many conditionals"),
        ({"conditionals__0": 7}, r"conditionals\[0\] must be an object or null"),
        ({"conditionals__0__child": "b"}, "must be that of 'a', not of 'b'"),
        ({"conditionals__0__parents": ["c"]}, "parent 'c' is not declared"),
        ({"conditionals__0__parents": ["a"]}, "is its own parent"),
        ({"conditionals__0__parents": ["b"], "conditionals__0__values": [1, 0, 1, 0]}, "the arcs form a cycle"),
        ({"conditionals__1__values": [1, 0, 1]}, "needs 2 · 2 = 4 numbers, 3 came"),
        ({"conditionals__1__values": [1, 0, "1", 0]}, "must be a list of numbers"),
        ({"conditionals__1__values": [1, 0, 10**400, 0]}, "must be a list of numbers"),
        ({"conditionals__1__values": [[1, 0], [1]]}, "must be a list of numbers"),
        ({"conditionals__1__values": [1, 0, 0, 0]}, r"p\(b \| a=yes\) has only zeros"),
        ({"conditionals__1__values": [1, 0, -1, 2]}, r"p\(b \| a=yes\) has the entry -1"),
        ({"conditionals__1__kind": "tabel"}, "'tabel' is not a kind of conditional.*Did you mean 'table'"),
        ({"conditionals__1__kind": ["table"]}, r"conditionals\[1\]"),
        ({"conditionals__1__kind": "noisy_or"}, r"conditionals\[1\]"),
        ({"kind": "markov_network", "factors": [{"scope": [], "values": [1], "log_scale": 10**400}]}, "finite number"),
        ({"kind": "markov_network", "factors": [{"scope": [], "values": [1], "log_scale": "1"}]}, "must be a number"),
        ({"kind": "markov_network", "factors": [{"scope": [], "values": [-1]}]}, "finite and not negative"),
        ({"metadata": []}, "metadata must be an object, not a list"),
    ],
)
def test_faults_say_where(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ParseError, match=says):
        native.loads(edited(**changes), source="n.json")


@pytest.mark.parametrize(
    ("data", "line", "column", "says"),
    [
        (b'{"format": "gramgraph",\n "version": }', 2, 13, "not JSON: Expecting value"),
        (b'{"a": 1,\n "a": 2}', 2, 2, "the key 'a' stands twice"),
        (b"[1]", 1, 1, "expected an object"),
        (b"", 1, 1, "not JSON"),
        (b"[" * 100_000, None, None, "nested too deeply"),
        (b'{"format": ' + b"9" * 10_000 + b"}", None, None, "thousands of digits"),
        (b'{"format": 0.' + b"9" * 10_000 + b"}", None, None, "thousands of digits"),
    ],
)
def test_text_that_is_no_json(data: bytes, line: int | None, column: int | None, says: str) -> None:
    with pytest.raises(ParseError, match=says) as caught:
        native.loads(data)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_numbers_as_they_are_or_normalized() -> None:
    data = edited(conditionals__0__values=[0.5, 1.5])
    with pytest.warns(ModelWarning, match=r"p\(a\), sums to 2"):
        assert native.loads(data).conditional("a").table().tolist() == [0.25, 0.75]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native.loads(data, normalize=False).conditional("a").table().tolist() == [0.5, 1.5]


def test_study_networks_keep_the_order_of_the_file() -> None:
    net = native.loads(STUDY)
    assert isinstance(net, gg.BayesianNetwork) and net.name == "wet" and net.metadata == {"note": "axes"}
    assert net.variables == ("wet", "rain", "hose") and net.parents("wet") == ("rain", "hose")
    assert net.conditional("wet").table()[2, 1].tolist() == [0.25, 0.75]
    assert native.loads(native.dumps(net)) == net == study_json.loads(STUDY)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"kind": "discrete"', b'"kind": "gaussian"', "nodes.wet lacks 'type'"),
        (b'"kind": "discrete", ', b"", "not stated.*expected 'discrete', 'gaussian' or 'clg'"),
        (b'"parents": ["rain", "hose"]', b'"parents": ["hose", "rain"]', r"axes \[2, 3, 2\] .* not \[3, 2, 2\]"),
        (b'"parents": ["rain", "hose"]', b'"parents": ["rain", "house"]', "'house' of 'wet' is not declared.*'hose'"),
        (b'"parents": ["rain", "hose"], ', b"", "nodes.wet lacks 'parents'"),
        (b"[0.5, 0.3, 0.2]", b"[0.5, 0.5]", "needs 3 numbers, 2 came"),
        (b"[0.5, 0.3, 0.2]", b"[0.5, 0.3, null]", "nodes.rain.cpt must be a list of numbers"),
        (b'"hose": {', b'"rain": {', "the key 'rain' stands twice"),
    ],
)
def test_study_faults(old: bytes, new: bytes, says: str) -> None:
    assert old in STUDY
    with pytest.raises(ParseError, match=says):
        native.loads(STUDY.replace(old, new))


def test_any_bytes_give_a_model_or_a_parse_error() -> None:
    drawn = gg.MarkovNetwork(edges="A - B - C", potentials={("A", "B"): [[2, 1], [1, 2]]})
    loglin = LogLinear([(("a", "b"), [[1, 0], [0, 1]], "agree"), ("a", [0, 1])], weights=[0.5, -0.2])
    models = (structured(), drawn, drawn.to_factor_graph(), loglin)
    n_read = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        for data in damaged([STUDY, *map(native.dumps, models)], count=1500, seed=11):
            try:
                native.loads(data)
                n_read += 1
            except ParseError as error:
                assert str(error)
    assert 0 < n_read < 1500


def test_all_shared_studies(shared_data: Path) -> None:
    files = sorted((shared_data / "bn_bnrep").glob("*.json.gz"))
    assert len(files) >= 100
    for file in files:
        net = gg.read(file)
        assert net.check_model() and native.loads(native.dumps(net)) == net
    for file in sorted((shared_data / "bn_gaussian").glob("*.json"))[:2]:
        assert gg.read(file).check_model()
