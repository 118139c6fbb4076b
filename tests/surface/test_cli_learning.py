"""`gramgraph learn` and `gramgraph fit`."""

import pytest

import gramgraph as gg
from gramgraph.cli import main


@pytest.fixture
def run(capsys):
    def call(*argv):
        code = main([str(arg) for arg in argv])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "asia.csv"
    gg.datasets.asia().sample(3000, random_state=0).to_csv(path, index=False)
    return path


def test_learn_writes_a_network(run, cases, tmp_path):
    out = tmp_path / "net.bif"
    code, said, err = run("learn", cases, "--out", out, "--require", "smoke,lung", "--forbid", "lung,asia")
    assert (code, err) == (0, "")
    net = gg.read(out)
    assert ("smoke", "lung") in net.edges and ("lung", "asia") not in net.edges
    assert f"{len(net.edges)} edges, bic -" in said


def test_fit_keeps_the_graph_and_fills_the_gaps(run, cases, tmp_path):
    out = tmp_path / "net.bif"
    assert run("fit", "dataset:asia", cases, "--out", out, "--prior", "k2")[0] == 0
    net = gg.read(out)
    assert set(net.edges) == set(gg.datasets.asia().edges)
    assert net.query("lung", {"smoke": "yes"})["lung"].prob("yes") == pytest.approx(0.1, abs=0.03)
    lines = cases.read_text().splitlines()
    lines[1:200] = [line.replace("yes", "?", 1) for line in lines[1:200]]
    cases.write_text("\n".join(lines))
    code, said, _ = run("fit", "dataset:asia", cases, "--out", out, "--prior", "0.5")
    assert code == 0 and "EM: " in said and "log-likelihood" in said


def test_parquet_and_real_columns(run, tmp_path):
    pytest.importorskip("pyarrow")
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    path, out = tmp_path / "d.parquet", tmp_path / "net.json"
    pd.DataFrame({"x": x, "y": x + 0.3 * rng.normal(size=2000), "z": rng.normal(size=2000)}).to_parquet(path)
    assert run("learn", path, "--bins", "4", "--out", out)[0] == 0
    assert [set(edge) for edge in gg.read(out).edges] == [{"x", "y"}]
    code, _, err = run("learn", path, "--out", tmp_path / "other.bif")
    assert code == 2 and "real-valued" in err
    assert not (tmp_path / "other.bif").exists()


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b\nx,y\nx,y,z\n", (), "d.csv"),
        ("", (), "d.csv"),
        ("a,b\nx,y\n", ("--score", "bicc"), "Did you mean 'bic'"),
        ("a,b\nx,y\n", ("--require", "a"), "PARENT,CHILD"),
        ("a,a\nx,y\n", ("--require", "a,c"), "c"),
        ("a,b\nx,\ny,\n", (), "nothing but missing"),
        ("a,b\nx,0.5\ny,1.25\n", (), "real-valued"),
    ],
)
def test_bad_data_is_named_and_leaves_no_file(run, tmp_path, text, options, words):
    path, out = tmp_path / "d.csv", tmp_path / "net.bif"
    path.write_text(text)
    code, _, err = run("learn", path, "--out", out, *options)
    assert code == 2
    assert words in err
    assert not out.exists()
