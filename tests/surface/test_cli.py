"""The command line: what it prints, what it writes, and its exit codes (0 done, 1 no, 2 usage)."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.cli import main
from gramgraph.cli.common import parse_evidence, parse_size
from gramgraph.conditionals import Table
from gramgraph.evidence import Not, OneOf
from gramgraph.variables import discrete

SRC = Path(gg.__file__).parents[1]


@pytest.fixture
def run(capsys):
    """(exit code, stdout, stderr) of a command."""

    def call(*argv):
        code = main([str(word) for word in argv])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture(scope="module")
def asia():
    return gg.datasets.asia()


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


# ------------------------------------------------------------------------------------------------- query


def test_query_prints_a_table(run, asia):
    code, out, err = run("query", "dataset:asia", "--evidence", "smoke=yes", "--target", "lung")
    assert (code, err) == (0, "")
    p = asia.query("lung", evidence={"smoke": "yes"})["lung"].prob("yes")
    assert f"{p:.4f}" in out
    assert "exact" in out


def test_query_json_has_all_digits(run, asia):
    code, out, _ = run("query", "dataset:asia", "-e", "smoke=yes", "-e", "xray!=no", "--joint", "lung,bronc", "--json")
    said = json.loads(out)
    want = asia.query([("lung", "bronc")], evidence={"smoke": "yes", "xray": "yes"})
    assert code == 0
    assert said["exact"] is True
    assert said["log_evidence"] == pytest.approx(want.log_evidence, abs=1e-12)
    assert said["joints"][0]["variables"] == ["lung", "bronc"]
    found = {tuple(row["states"]): row["p"] for row in said["joints"][0]["table"]}
    assert found == pytest.approx(want[("lung", "bronc")].to_dict(), abs=1e-12)


def test_query_without_target_answers_everything_unobserved(run, asia):
    _, out, _ = run("query", "dataset:asia", "-e", "smoke=yes", "--json")
    assert list(json.loads(out)["beliefs"]) == [name for name in asia.variables if name != "smoke"]


def test_virtual_evidence_and_engine(run, asia):
    for engine in ("junction_tree", "elimination"):
        code, out, _ = run(
            "query", "dataset:asia", "--virtual", "xray=yes:3,no:1", "-t", "lung", "--json", "--engine", engine
        )
        want = asia.query("lung", virtual_evidence={"xray": {"yes": 3, "no": 1}})["lung"].to_dict()
        assert code == 0
        assert json.loads(out)["beliefs"]["lung"] == pytest.approx(want, abs=1e-12)


def test_picture(run, tmp_path):
    code, _, _ = run("query", "dataset:asia", "-e", "smoke=yes", "--svg", tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert code == 0
    assert text.startswith("<svg")
    assert text.count('class="node seen"') == 1


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["query", "dataset:asia", "-e", "smoke=yess"], ["Did you mean 'yes'"]),
        (["query", "dataset:asia", "-e", "smokes=yes"], ["Did you mean 'smoke'"]),
        (["query", "dataset:asia", "-e", "smoke"], ["VARIABLE=STATE"]),
        (["query", "dataset:asia", "-e", "smoke=yes", "-e", "smoke=no"], ["twice"]),
        (["query", "dataset:asia", "-e", "smoke=yes", "-e", "smoke!=no"], ["both"]),
        (["query", "dataset:asia", "--virtual", "smoke=yes:x"], ["not a weight"]),
        (["query", "dataset:asia", "--virtual", "smoke=yes:-1"], ["not a weight"]),
        (["query", "dataset:asia", "-t", "lungs"], ["Did you mean 'lung'"]),
        (["query", "dataset:asia", "--engine", "junction_trees"], ["Did you mean 'junction_tree'"]),
        (["query", "dataset:asia", "--out", "x.csv"], ["--cases"]),
        (["query", "dataset:aisa"], ["Did you mean 'asia'"]),
        (["query", "nowhere.bif"], ["nowhere.bif", "No such file"]),
        (["query", "model.docx"], ["suffix", ".bif"]),
        (["query", "dataset:asia", "--cases", "nowhere.csv"], ["nowhere.csv"]),
        (["convert", "dataset:asia", "x.docx"], ["suffix"]),
        (["sample", "dataset:asia", "-n", "0"], ["positive"]),
        (["plan", "dataset:asia", "--memory", "lots"], ["not a size"]),
        (["frobnicate"], ["invalid choice"]),
        ([], ["COMMAND"]),
    ],
)
def test_usage_errors_are_readable_and_end_with_2(run, argv, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*argv)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_impossible_evidence_ends_with_1(run):
    code, out, err = run("query", "dataset:asia", "-e", "tub=yes", "-e", "either=no")
    assert (code, out) == (1, "")
    assert err.startswith("gramgraph: ")
    assert run("map", "dataset:asia", "-e", "tub=yes", "-e", "either=no")[0] == 1


def test_over_budget_ends_with_1(run):
    code, _, err = run("query", "dataset:asia", "--memory", "10")
    assert code == 1
    assert "Try:" in err


# ------------------------------------------------------------------------------------------------- cases


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("id,smoke,xray\n7,yes,yes\n8,no,\n9,NA,?\n10,,no\n11,yes,no\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_cases_in_posteriors_out(run, asia, cases, tmp_path, chunk):
    out = tmp_path / "out.csv"
    code, said, err = run(
        "query", "dataset:asia", "--cases", cases, "--out", out, "--keep", "id", "-t", "lung", "--chunk", chunk
    )
    assert (code, said, err) == (0, "", "")
    frame = pd.read_csv(out)
    assert list(frame.columns) == ["id", "log_evidence", "lung=no", "lung=yes"]
    assert frame["id"].tolist() == [7, 8, 9, 10, 11]
    evidence = [{"smoke": "yes", "xray": "yes"}, {"smoke": "no"}, {}, {"xray": "no"}, {"smoke": "yes", "xray": "no"}]
    for row, e in zip(frame.itertuples(), evidence, strict=True):
        want = asia.query("lung", evidence=e)
        assert row.log_evidence == pytest.approx(want.log_evidence, abs=1e-12)
        assert row[4] == pytest.approx(want["lung"].prob("yes"), abs=1e-12)
    assert not list(tmp_path.glob("*.part"))


def test_cases_to_standard_output_and_from_gzip(run, cases, tmp_path):
    packed = tmp_path / "cases.csv.gz"
    packed.write_bytes(gzip.compress(cases.read_bytes()))
    argv = ["query", "dataset:asia", "--keep", "id", "-t", "lung", "--cases"]
    plain = run(*argv, cases)
    assert plain == run(*argv, packed)
    assert len(read_csv(plain[1])) == 5
    out = tmp_path / "out.csv.gz"
    assert run(*argv, cases, "--out", out)[0] == 0
    assert gzip.decompress(out.read_bytes()).decode() == plain[1]


def test_fixed_evidence_joins_every_case(run, asia, cases):
    argv = ["query", "dataset:asia", "--keep", "id", "-t", "lung", "--cases", cases]
    _, out, _ = run(*argv, "-e", "asia=yes", "-e", "dysp!=no", "--virtual", "bronc=yes:1,no:4")
    want = asia.query(
        "lung",
        evidence={"smoke": "no", "asia": "yes", "dysp": "yes"},
        virtual_evidence={"bronc": {"yes": 1, "no": 4}},
    )
    assert float(read_csv(out)[1]["lung=yes"]) == pytest.approx(want["lung"].prob("yes"), abs=1e-12)


def test_impossible_cases_are_empty_and_told(run, tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("tub,either\nyes,no\nyes,yes\n", encoding="utf-8")
    code, out, err = run("query", "dataset:asia", "--cases", path, "-t", "lung")
    rows = read_csv(out)
    assert code == 0
    assert rows[0] == {"log_evidence": "-inf", "lung=no": "", "lung=yes": ""}
    assert float(rows[1]["lung=no"]) > 0
    assert "1 of 2 cases have probability zero" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("smok\nyes\n", ["column 'smok'", "Did you mean 'smoke'", "--keep smok"]),
        ("smoke\nyes\nyess\n", ["c.csv: row 2", "'yess' is not a state of smoke"]),
        ("", ["c.csv"]),
        ('smoke,xray\n"yes\n', ["c.csv"]),
        ("smoke,xray\nyes,no,yes\n", ["c.csv"]),
        ("smoke,xray\nyes,no\nyes,no,yes\n", ["c.csv", "line 3"]),
    ],
)
def test_bad_cases_end_with_2_and_leave_no_file(run, tmp_path, text, words):
    path, out = tmp_path / "c.csv", tmp_path / "out.csv"
    path.write_text(text, encoding="utf-8")
    code, _, err = run("query", "dataset:asia", "--cases", path, "--out", out)
    assert code == 2
    for word in words:
        assert word in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.csv"]


def test_a_state_may_be_called_na(run, tmp_path):
    v, w = discrete("V", ["NA", "b"]), discrete("W", ["0", "1"])
    net = gg.BayesianNetwork.from_parts(
        (v, w), (Table(v, (), np.array([0.5, 0.5])), Table(w, (v,), np.array([[1, 0], [0.25, 0.75]])))
    )
    gg.write(net, tmp_path / "net.json")
    (tmp_path / "c.csv").write_text("V\nNA\nb\n\n", encoding="utf-8")
    _, out, err = run("query", tmp_path / "net.json", "--cases", tmp_path / "c.csv", "-t", "W")
    assert err == ""
    assert [float(row["W=0"]) for row in read_csv(out)] == pytest.approx([1.0, 0.25, 0.625])  # an empty line is a case


def test_header_without_cases(run, tmp_path):
    (tmp_path / "c.csv").write_text("smoke\n", encoding="utf-8")
    code, out, _ = run("query", "dataset:asia", "--cases", tmp_path / "c.csv", "-t", "lung")
    assert (code, out) == (0, "log_evidence,lung=no,lung=yes\n")


def test_map_of_cases(run, asia, cases):
    code, out, _ = run("map", "dataset:asia", "--cases", cases, "--keep", "id")
    rows = read_csv(out)
    best = asia.map_query({"smoke": "yes", "xray": "yes"})
    assert code == 0
    assert len(rows) == 5
    assert {name: rows[0][name] for name in best.assignment} == best.assignment
    assert float(rows[0]["log_prob"]) == pytest.approx(best.log_prob)


# ----------------------------------------------------------------------------------------- other commands


def test_map(run, asia):
    code, out, _ = run("map", "dataset:asia", "-e", "dysp=yes", "-k", "3", "--json")
    said = json.loads(out)
    best = asia.map_query({"dysp": "yes"})
    assert code == 0
    assert len(said) == 3
    assert said[0]["assignment"] == best.assignment
    assert [b["log_prob"] for b in said] == sorted((b["log_prob"] for b in said), reverse=True)
    assert "lung" in run("map", "dataset:asia", "-t", "lung")[1]


def test_sample_is_seeded(run, tmp_path):
    argv = ["sample", "dataset:asia", "-n", "20", "-e", "smoke=yes", "--seed", "3"]
    first, second = run(*argv), run(*argv)
    assert first == second
    rows = read_csv(first[1])
    assert len(rows) == 20
    assert {row["smoke"] for row in rows} == {"yes"}
    assert run(*argv, "--out", tmp_path / "s.csv")[1] == ""
    assert (tmp_path / "s.csv").read_text(encoding="utf-8") == first[1]
    assert json.loads(run(*argv, "--json")[1]) == rows


def test_info(run):
    said = json.loads(run("info", "dataset:asia", "--json")[1])
    assert (said["n_variables"], said["n_edges"], said["kind"]) == (8, 8, "BayesianNetwork")
    text = run("info", "dataset:asia", "--variables")[1]
    assert "tub, lung" in text or "lung, tub" in text


def test_convert_keeps_the_numbers(run, asia, tmp_path):
    for name in ("a.bif", "a.json", "a.xmlbif", "a.net", "a.bif.gz"):
        code, out, _ = run("convert", "dataset:asia", tmp_path / name)
        assert code == 0
        assert name in out
        again = gg.read(tmp_path / name)
        np.testing.assert_array_equal(again.conditional("dysp").table(), asia.conditional("dysp").table())


def test_check_names_every_fault(run, tmp_path):
    assert run("check", "dataset:asia")[0] == 0
    path = tmp_path / "bad.bif"
    path.write_text(
        """network bad {}
variable A { type discrete [ 2 ] { a, b }; }
variable B { type discrete [ 2 ] { c, d }; }
probability ( A ) { table 0.5, 0.6; }
probability ( B | A ) { (a) 0.5, 0.5; (b) 0.1, 0.2; }
""",
        encoding="utf-8",
    )
    code, out, _ = run("check", path)
    assert code == 1
    assert "1.1" in out
    assert "0.3" in out
    code, out, _ = run("check", path, "--json")
    assert code == 1
    assert json.loads(out)["valid"] is False
    assert len(json.loads(out)["faults"]) == 2


def test_unreadable_file_ends_with_2(run, tmp_path):
    path = tmp_path / "broken.bif"
    path.write_bytes(b"network x {\nvariable \xff\x00 {")
    for command in ("check", "info", "query"):
        code, _, err = run(command, path)
        assert code == 2
        assert f"{path}:2" in err


def test_plan(run, asia):
    plan = gg.plan(asia, given=["smoke"])
    code, out, _ = run("plan", "dataset:asia", "--given", "smoke", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["width"] == plan.width
    assert said["bytes"] == pytest.approx(plan.bytes)
    code, out, _ = run("plan", "dataset:asia", "--memory", "1")
    assert code == 1
    assert "does not fit" in out


def test_warmup(run, monkeypatch):
    def compiled(names, tell, *, n_jobs):
        assert names == ["hmm", "crf"] and n_jobs == 1
        tell("hmm", 7, None, "")
        tell("hmm", 30, 2.5, "")
        tell("crf", 12, 1.0, "")

    monkeypatch.setattr("gramgraph.cli.files.run", compiled)
    code, out, _ = run("warmup", "hmm", "crf", "--jobs", "1")
    assert code == 0
    assert out.splitlines()[0].split() == ["hmm", "30", "compiled", "2.5", "s"] and "ready after" in out
    for jobs in ("0", "-3"):
        code, out, said = run("warmup", "hmm", "--jobs", jobs)
        assert (code, out) == (2, "") and "--jobs must be a whole number of at least 1" in said
    monkeypatch.undo()
    code, _, said = run("warmup", "hnm")
    assert code == 2 and "'hnm' is not a capability" in said


def test_version(run):
    assert run("--version") == (0, f"gramgraph {gg.__version__}\n", "")


# ---------------------------------------------------------------------------------------------- parsing


def test_sizes():
    assert [parse_size(text) for text in ("10", "2GB", "1.5 MiB", "1e9", "3k")] == [10, 2e9, 1.5 * 2**20, 1e9, 3000]


def test_names_with_equals_signs():
    v, w = discrete("x=1", ["a=b", "c|d", "e"]), discrete("x", ["1=a"])
    net = gg.BayesianNetwork.from_parts(
        (v, w), (Table(v, (), np.array([0.5, 0.25, 0.25])), Table(w, (), np.array([1.0])))
    )
    assert parse_evidence(net, ["x=1=a=b"]) == {"x=1": "a=b"}
    assert parse_evidence(net, ["x=1=a"]) == {"x": "1=a"}
    one = gg.BayesianNetwork.from_parts((v,), (Table(v, (), np.array([0.5, 0.25, 0.25])),))
    assert parse_evidence(one, ["x=1=a=b"]) == {"x=1": "a=b"}
    assert parse_evidence(one, ["x=1=c|d"]) == {"x=1": "c|d"}
    several = parse_evidence(one, ["x=1=e|a=b"])["x=1"]
    assert isinstance(several, OneOf)
    assert several.states == ("e", "a=b")
    excluded = parse_evidence(one, ["x=1!=e", "x=1 != a=b"])["x=1"]
    assert isinstance(excluded, Not)
    assert excluded.states == ("e", "a=b")


# ------------------------------------------------------------------------------------- as a real process


def start(*argv, **options):
    env = {**os.environ, "PYTHONPATH": str(SRC), **options.pop("env", {})}
    command = [sys.executable, "-m", "gramgraph", *argv]
    return subprocess.run(command, capture_output=True, env=env, check=False, **options)


def test_as_a_process_without_unicode():
    done = start("info", "dataset:asia", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert done.returncode == 0
    assert b"8" in done.stdout
    done = start("info", "nowhere.bif")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m gramgraph info dataset:asia --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=env, check=False)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


def test_approximate_answers(run):
    ask = ("query", "dataset:asia", "-t", "lung", "-e", "smoke=yes", "--engine", "likelihood_weighting", "--seed", "1")
    code, out, _ = run(*ask, "--budget", "2000", "--json")
    assert code == 0
    record = json.loads(out)
    assert record["engine"] == "likelihood_weighting" and not record["exact"]
    assert record["details"]["draws"] == 2000 and len(record["details"]["standard_error"]["lung"]) == 2
    assert abs(record["beliefs"]["lung"]["yes"] - 0.1) < 0.05
    _, out, _ = run(*ask, "--error", "0.01")
    assert "approximate" in out and "largest standard error 0.00" in out


# ------------------------------------------------------------------------------- labels that spreadsheets would run


@pytest.fixture
def formulas(tmp_path):
    """A network whose names and labels are formulas, in a file as somebody else may have sent it."""
    labels = ("=cmd|' /C calc'!A0", "@SUM(1)", "-1+2", "-3", "'=x", "plain")
    net = gg.BayesianNetwork.from_parts(
        [a := discrete("=HYPERLINK(1)", labels), b := discrete("b", ("+x", "\ty"))],
        [gg.Table(a, (), [1 / 6] * 6), gg.Table(b, (a,), [[0.5, 0.5]] * 6)],
    )
    gg.write(net, path := tmp_path / "net.json")
    return net, str(path)


RISKY = ("=", "+", "-", "@", "\t", "\r", "\n")


@pytest.mark.parametrize("command", ["sample", "query", "map"])
def test_no_cell_is_a_formula(formulas, tmp_path, run, command):
    net, path = formulas
    cases = tmp_path / "cases.csv"
    net.sample(50, random_state=0)[["=HYPERLINK(1)"]].assign(id="=1").to_csv(cases, index=False)
    more = ["-n", "50", "--seed", "0"] if command == "sample" else ["--cases", str(cases), "--keep", "id"]
    code, out, _ = run(command, path, *more)
    assert code == 0
    rows = list(csv.reader(io.StringIO(out)))
    cells = {cell for row in rows for cell in row}
    assert not [c for c in cells if c.startswith(RISKY) and not c.removeprefix("-").replace(".", "").isdigit()]
    assert command == "query" or "-3" in cells  # a number is a number
    _, raw, _ = run(command, path, *more, "--raw")
    assert {row[0] for row in csv.reader(io.StringIO(raw))} - cells  # as they are


def test_what_was_made_harmless_is_read_back(formulas, tmp_path, run):
    net, path = formulas
    files = [tmp_path / "safe.csv", tmp_path / "raw.csv"]
    for file, more in zip(files, ([], ["--raw"]), strict=True):
        assert run("sample", path, "-n", "60", "--seed", "1", "--out", str(file), *more)[0] == 0
    assert files[0].read_text() != files[1].read_text()
    safe, raw = (run("query", path, "--cases", str(file)) for file in files)
    assert safe[0] == 0 and safe[1] == raw[1]
    code, out, _ = run("sample", path, "-n", "60", "--seed", "1", "--json")
    assert code == 0 and "@SUM(1)" in out and "'@SUM(1)" not in out  # JSON is for programs


@pytest.mark.parametrize("name", ["network", "sequence", "explorer"])
def test_demo_prints_and_leaves_a_picture(name, tmp_path, capsys):
    assert main(["demo", name, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"--- {name}: ")
    (picture,) = tmp_path.iterdir()
    assert f"picture: {picture}" in said
    assert picture.stat().st_size > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernel", "process"])
def test_longer_demos(name, tmp_path, capsys):
    assert main(["demo", name, "--out", str(tmp_path)]) == 0
    assert "picture: " in capsys.readouterr().out


def test_demo_lists_its_tours_and_refuses_others(capsys):
    assert main(["demo"]) == 0
    listed = capsys.readouterr().out
    assert all(f"gramgraph demo {name}" in listed for name in ("network", "kernel", "sequence", "process", "explorer"))
    assert main(["demo", "netwrok"]) == 2
    assert "Did you mean 'network'" in capsys.readouterr().err


def test_a_setting_of_the_environment_that_says_nothing_is_told_in_a_line():
    program = "import sys; from gramgraph.cli import main; sys.exit(main(['info', 'dataset:asia']))"
    env = {**os.environ, "GRAMGRAPH_TIER": "fast"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "gramgraph: GRAMGRAPH_TIER is 'fast'; use one of auto, plain, compiled.\n"
