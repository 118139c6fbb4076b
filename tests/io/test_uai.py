"""UAI and libDAI models, evidence and results."""

from __future__ import annotations

import warnings
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph import io
from gramgraph.exceptions import ModelError, ModelWarning, ParseError
from gramgraph.factors import TableFactor
from gramgraph.io import fg, uai
from gramgraph.variables import discrete
from tests.io.drawing import damaged, networks
from tests.portions import examples

MARKOV = b"""MARKOV
3
2 2 3
5
2 0 1
3 2 1 0
1 2
1 2
0

4
 0.1 0.2
 0.3 0.4
12
 1 2 3 4 5 6
 7 8 9 10 11 12e0
3
 1 1 0
3
 1 2 3
1
 0.5
"""
BAYES = b"BAYES\n3\n2 2 2\n3\n1 2\n3 1 2 0\n2 2 1\n\n2\n 0.25 0.75\n8\n 1 0 .5 .5 .25 .75 0 1\n4\n .5 .5 .125 .875\n"
SPARSE = b"""# made for a test
2

2
7 3
2 3
3
0 0.5   # all others are zero
1 2
5 1e-1

1
3
3
3
0 1
1 2
2 3
"""


def test_factors_in_the_order_and_shape_of_their_scopes() -> None:
    net = uai.loads(MARKOV)
    assert isinstance(net, gg.MarkovNetwork) and net.variables == ("x0", "x1", "x2")
    assert net.states("x2") == ("0", "1", "2")
    scopes = [tuple(var.name for var in f.scope) for f in net.factors()]
    assert scopes == [("x0", "x1"), ("x2", "x1", "x0"), ("x2",), ("x2",), ()]
    assert net.factors()[1].values[2, 0, 1] == 10.0 and net.factors()[4].values == 0.5
    assert net.joint_log_prob({"x0": 1, "x1": 0, "x2": 1}) == pytest.approx(log(0.3 * 6 * 1 * 2 * 0.5), abs=1e-12)


def test_bayes_becomes_a_network_only_when_it_is_one() -> None:
    net = uai.loads(BAYES)
    assert isinstance(net, gg.BayesianNetwork) and net.parents("x0") == ("x1", "x2") and net.parents("x2") == ()
    assert net.conditional("x0").table()[0, 1].tolist() == [0.5, 0.5]
    rounded = uai.loads(BAYES.replace(b".125 .875", b".125 .875001"))
    assert isinstance(rounded, gg.MarkovNetwork), "log Z of the numbers as they stand is not 0"
    assert rounded.factors()[2].values[1, 1] == 0.875001
    in_rounding = uai.loads(BAYES.replace(b".125 .875", b".125 .8750000000001"))
    assert isinstance(in_rounding, gg.BayesianNetwork)
    assert in_rounding.conditional("x1").table()[1].sum() == 1.0
    cyclic = b"BAYES 2 2 2 2 2 0 1 2 1 0 4 1 0 .5 .5 4 .25 .75 0 1"
    assert isinstance(uai.loads(cyclic), gg.MarkovNetwork)
    assert isinstance(uai.loads(BAYES.replace(b"2 2 1\n", b"2 1 2\n")), gg.MarkovNetwork), "x2 has two families"


def test_comments_and_what_follows_the_last_table() -> None:
    assert uai.loads(b"c a comment\nc\n" + MARKOV.replace(b"3\n2 2 3", b"3\nc cards\n2 2 3", 1)) == uai.loads(MARKOV)
    with pytest.warns(ModelWarning, match="3 numbers after the last table were left out"):
        assert uai.loads(MARKOV + b"1 2 3") == uai.loads(MARKOV)


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "says"),
    [
        (b"MARKOV", b"MARKOFF", 1, 1, "expected MARKOV or BAYES, got 'MARKOFF'"),
        (b"2 2 3\n", b"2 x 3\n", 3, 3, "expected a number, got 'x'"),
        (b"2 2 3\n", b"2 1_0 3\n", 3, 3, "expected a number, got '1_0'"),
        (b"2 2 3\n", b"2 2.5 3\n", 3, 3, "expected a number of states, got 2.5"),
        (b"2 2 3\n", b"2 0 3\n", 3, 3, "at least one state"),
        (b"2 2 3\n", b"2 2000000000 3\n", 3, 1, "x1 has 2000000000 states, far more than the file has numbers"),
        (b"5\n2 0 1", b"5000\n2 0 1", 4, 1, "5000 factors are announced"),
        (b"2 0 1\n", b"2 0 3\n", 5, 5, "factor 0 names variable 3; there are 3, counted from 0"),
        (b"2 0 1\n", b"2 1 1\n", 5, 5, "factor 0 names variable 1 twice"),
        (b"3 2 1 0", b"-3 2 1 0", 6, 1, "expected the number of variables of factor 1, got -3"),
        (b"4\n 0.1", b"5\n 0.1", 11, 1, "factor 0 has 4 entries by its scope; its table announces 5"),
        (b" 7 8 9", b" 7 -8 9", 16, 4, "finite and not negative; this one is -8"),
        (b" 7 8 9", b" 7 " + b"8" * 3000 + b" 9", 16, 4, "expected a number, got '8888"),
        (b" 7 8 9", b" 7 nan 9", 16, 4, "finite and not negative; this one is nan"),
        (b" 7 8 9", b" 7 9", 18, 2, "factor 2 has 3 entries by its scope; its table announces 1"),
        (b" 1 1 0", b" 0 0 0", 18, 2, "factor 2 has no entry but zeros"),
        (b"1\n 0.5\n", b"1\n", 22, 1, "expected 1 numbers for the table of factor 4, the file ends after 0"),
    ],
)
def test_faults_have_a_place(old: bytes, new: bytes, line: int, column: int, says: str) -> None:
    assert old in MARKOV
    with pytest.raises(ParseError) as caught:
        uai.loads(MARKOV.replace(old, new, 1), source="m.uai")
    assert says in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_tables_larger_than_the_file_are_refused_before_they_are_made() -> None:
    scope = " ".join(map(str, range(60)))
    with pytest.raises(ParseError, match="an absurd number of entries"):
        uai.loads(f"MARKOV 60 {'2 ' * 60} 1 60 {scope} 4 1 1 1 1".encode())
    with pytest.raises(ParseError, match="at most 64"):
        uai.loads(f"MARKOV 70 {'1 ' * 70} 1 70 {' '.join(map(str, range(70)))} 1 1".encode())
    with pytest.raises(ParseError, match="far more than are listed"):
        fg.loads(b"1\n3\n0 1 2\n2000 2000 2000\n1\n0 1\n")
    with pytest.raises(ParseError, match="expected a number of states from 1 to"):
        fg.loads(b"1\n1\n0\n4000000\n1\n0 1\n")


@given(networks())
def test_round_trip_of_networks(net: gg.BayesianNetwork) -> None:
    again = uai.loads(uai.dumps(net))
    assert isinstance(again, gg.BayesianNetwork)
    for i, name in enumerate(net.variables):
        assert again.parents(f"x{i}") == tuple(f"x{net.index(p)}" for p in net.parents(name))
        assert np.array_equal(again.conditional(f"x{i}").table(), net.conditional(name).table())


@settings(max_examples=examples(50))
@given(st.data())
def test_round_trip_of_factors(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    variables = [discrete(f"x{i}", k) for i, k in enumerate(sizes)]
    numbers = st.floats(0, 1e300, exclude_min=True)
    factors = []
    for _ in range(data.draw(st.integers(0, 4))):
        scope = tuple(data.draw(st.lists(st.sampled_from(variables), max_size=3, unique=True)))
        n = int(np.prod([v.size for v in scope], dtype=int))
        values = np.array(data.draw(st.lists(numbers, min_size=n, max_size=n)))
        factors.append(TableFactor(scope, values.reshape([v.size for v in scope])))
    net = gg.MarkovNetwork.from_parts(variables, factors)
    assert uai.loads(uai.dumps(net)) == net
    used = gg.MarkovNetwork.from_parts([v for v in variables if any(v in f.scope for f in factors)], factors)
    assert fg.loads(fg.dumps(used)) == used


def test_scales_are_multiplied_in_or_refused() -> None:
    x = discrete("x0", 2)
    net = gg.MarkovNetwork.from_parts([x], [TableFactor((x,), np.array([1.0, 0.5]), log(8.0))])
    np.testing.assert_allclose(uai.loads(uai.dumps(net)).factors()[0].values, [8.0, 4.0], rtol=1e-15)
    for scale in (1e3, -1e3):
        far = gg.MarkovNetwork.from_parts([x], [TableFactor((x,), np.array([1.0, 0.5]), scale)])
        with pytest.raises(ModelError, match=r"beyond the range of floats; write the model as \.json"):
            uai.dumps(far)


def test_factor_graphs_of_libdai() -> None:
    net = fg.loads(SPARSE)
    assert net.variables == ("x3", "x7") and net.states("x3") == ("0", "1", "2")
    first = net.factors()[0]
    assert [var.name for var in first.scope] == ["x7", "x3"]
    assert first.values.tolist() == [[0.5, 0.0, 0.0], [2.0, 0.0, 0.1]]  # the first variable varies fastest
    assert fg.loads(fg.dumps(net)) == net
    for old, new, place, says in [
        (b"5 1e-1", b"6 1e-1", (10, 1), r"2 · 3 = 6 cells; 6 is not an index of one"),
        (b"5 1e-1", b"5 -1", (10, 3), "not negative"),
        (b"\n1\n3\n3\n3\n", b"\n1\n3\n2\n3\n", (14, 1), "variable 3 has 2 states here and 3 before"),
        (b"2 3\n", b"", (22, 1), "expected 6 numbers for the 3 entries of factor 1, the file ends after 4"),
        (b"7 3\n", b"7 7\n", (5, 1), "names a variable twice"),
        (b"7 3\n", b"7 3000000000\n", (5, 1), "expected labels up to 999999999, got 3000000000"),
    ]:
        with pytest.raises(ParseError, match=says) as caught:
            fg.loads(SPARSE.replace(old, new, 1) if old != b"2 3\n" else SPARSE[:-4])
        if old != b"2 3\n":
            assert (caught.value.line, caught.value.column) == place


def test_any_bytes_give_a_model_or_a_parse_error() -> None:
    n_read = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        for reader, seeds in ((uai, [MARKOV, BAYES]), (fg, [SPARSE])):
            for data in damaged(seeds, count=800, seed=3):
                try:
                    reader.loads(data)
                    n_read += 1
                except ParseError as error:
                    assert str(error)
    assert 0 < n_read < 1600


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("2 1 0 2 1", [{"x1": "0", "x2": "1"}]),
        ("2\n1 0\n2 1\n", [{"x1": "0", "x2": "1"}]),
        ("0", [{}]),
        ("", [{}]),
        ("0\n2 0\n", [{}]),
        ("1\n2 1 0 2 1", [{"x1": "0", "x2": "1"}]),
        ("2\n1 0 1\n2 1 0 2 2\n", [{"x0": "1"}, {"x1": "0", "x2": "2"}]),
        ("1\n0\n", [{}]),
        ("2 0 1 1 1", [{"x0": "1", "x1": "1"}]),  # fits both readings: one set of two observations,
        ("2\n0\n1 1 1", [{}, {"x1": "1"}]),  # unless the lines say that it is two sets
    ],
)
def test_evidence_of_all_years(tmp_path: Path, text: str, sets: list[dict[str, str]]) -> None:
    file = tmp_path / "m.uai.evid"
    file.write_text(text)
    assert io.read_uai_evidence(file) == sets
    assert io.read_uai_evidence(file, uai.loads(MARKOV)) == sets


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("2 1 0 2", (1, 1), "4 numbers are neither 2 observations"),
        ("1 3 0", (1, 3), "variable 3 is observed; the model has 3"),
        ("1 2 3", (1, 5), "x2 has 3 states, counted from 0; 3 is none"),
        ("2 1 0\n1 1", (2, 1), "x1 is observed as 0 and as 1"),
        ("1 1.5 0", (1, 3), "expected a variable, got 1.5"),
        ("1 a 0", (1, 3), "expected a number, got 'a'"),
    ],
)
def test_evidence_that_does_not_fit(tmp_path: Path, text: str, place: tuple[int, int], says: str) -> None:
    file = tmp_path / "m.evid"
    file.write_text(text)
    with pytest.raises(ParseError, match=says) as caught:
        io.read_uai_evidence(file, uai.loads(MARKOV))
    assert (caught.value.line, caught.value.column) == place


def test_evidence_round_trip_with_names(tmp_path: Path) -> None:
    net = gg.BayesianNetwork("rain -> wet{dry|damp|soaked}").random_tables(random_state=0)
    one, several = {"wet": "soaked"}, [{"rain": "yes"}, {}, {"wet": "damp", "rain": "no"}]
    io.write_uai_evidence(one, tmp_path / "one.evid", net)
    io.write_uai_evidence(several, tmp_path / "several.evid.gz", net)
    assert (tmp_path / "one.evid").read_text() == "1 1 2\n"
    assert io.read_uai_evidence(tmp_path / "one.evid", net) == [one]
    assert io.read_uai_evidence(tmp_path / "several.evid.gz", net) == several
    with pytest.raises(gg.StateError):
        io.write_uai_evidence({"wet": "moist"}, tmp_path / "no.evid", net)
    (tmp_path / "q.query").write_text("2 1 0\n")
    assert io.read_uai_query(tmp_path / "q.query", net) == ["wet", "rain"]
    assert io.read_uai_query(tmp_path / "q.query") == ["x1", "x0"]


def test_results(tmp_path: Path) -> None:
    def result(text: str, name: str = "m.uai.out") -> io.UaiResult:
        (tmp_path / name).write_text(text)
        return io.read_uai_result(tmp_path / name)

    assert result("PR\n-2.5\n").log_z == pytest.approx(-2.5 * log(10.0))
    assert result("PR\n1\n-3\n-BEGIN-\n-2.5\n").log10 == -2.5 and result("PR\n1\n-3").log10 == -3.0
    assert result("-7.25", "m.uai.PR").kind == "PR"
    for text in ("MAR\n2 2 0.25 0.75 3 1 0 0", "MAR\n1\n2 2 0.25 0.75 3 1 0 0\n"):
        assert [m.tolist() for m in result(text).marginals] == [[0.25, 0.75], [1.0, 0.0, 0.0]]
    assert [m.tolist() for m in result("MAR\n1 2 0.5 0.5").marginals] == [[0.5, 0.5]]
    assert result("MPE\n3 0 1 2\n").states == (0, 1, 2) == result("MAP\n1\n3 0 1 2").states
    assert result("MMAP\n2 0 1").variables is None
    pairs = result("MMAP\n2 5 0 7 1")
    assert pairs.variables == (5, 7) and pairs.states == (0, 1)
    for text in ("SUM\n1", "PR\nx", "PR\n1 2 3", "MAR\n2 2 0.5 0.5", "MPE\n3 0 1", "MPE\n2 0 1 1", ""):
        with pytest.raises(ParseError):
            result(text)


def test_results_round_trip(tmp_path: Path) -> None:
    given = [
        io.UaiResult("PR", log10=-0.1),
        io.UaiResult("MAR", marginals=(np.array([0.1, 0.9]), np.array([1 / 3, 2 / 3]))),
        io.UaiResult("MPE", states=(3, 0)),
        io.UaiResult("MMAP", states=(3, 0), variables=(8, 2)),
    ]
    for one in given:
        io.write_uai_result(one, tmp_path / "r.gz")
        again = io.read_uai_result(tmp_path / "r.gz")
        assert (again.kind, again.log10, again.states, again.variables) == (
            one.kind,
            one.log10,
            one.states,
            one.variables,
        )
        assert all(np.array_equal(a, b) for a, b in zip(again.marginals, one.marginals, strict=True))


def test_all_small_shared_models(shared_data: Path) -> None:
    """Every valid model of at most 6 kB packed, with its evidence; the larger ones are in the slow test."""
    assert _read_all(shared_data, 0, 6_000) > 80


@pytest.mark.slow
def test_all_large_shared_models(shared_data: Path) -> None:
    assert _read_all(shared_data, 6_000, 1 << 40) > 150


def _read_all(shared_data: Path, least: int, most: int) -> int:
    n = 0
    for file in sorted((shared_data / "uai").glob("*/*")):
        stem = file.name.removesuffix(".gz")
        if not stem.endswith((".uai", ".fg")) or not least <= file.stat().st_size < most:
            continue
        if file.parent.name == "malformed":
            with pytest.raises(ParseError, match="factor 73 has no entry but zeros") as caught:
                gg.read(file)
            assert caught.value.line == 343
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            net = gg.read(file)
        assert len(net) > 0
        evidence = file.with_name(stem + ".evid")
        if evidence.exists():
            assert len(io.read_uai_evidence(evidence, net)) == 1
        n += 1
    return n


def test_all_shared_results(shared_data: Path) -> None:
    kinds: dict[str, int] = {}
    for file in sorted((shared_data / "uai").glob("*/*")):
        kind = file.name.removesuffix(".gz").rpartition(".")[2]
        if kind in ("PR", "MAR", "MPE", "MAP", "MMAP"):
            result = io.read_uai_result(file)
            assert result.kind == kind
            assert all(abs(m.sum() - 1) < 1e-4 for m in result.marginals)
            kinds[kind] = kinds.get(kind, 0) + 1
        elif kind == "query":
            assert io.read_uai_query(file)
    assert len(kinds) == 5 and min(kinds.values()) > 30
