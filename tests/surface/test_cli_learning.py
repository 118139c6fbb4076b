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


def test_without_out_the_network_goes_to_standard_output(run, cases, tmp_path):
    code, said, err = run("fit", "dataset:asia", cases)
    assert code == 0 and "tables of 8 variables" in err
    (tmp_path / "fitted.bif").write_text(said)
    assert gg.read(tmp_path / "fitted.bif") == gg.datasets.asia().fit(cases)
    code, said, err = run("learn", cases, "--to", "json")
    assert code == 0 and "8 variables" in err
    (tmp_path / "net.json").write_text(said)
    assert gg.read(tmp_path / "net.json") == gg.learn_structure(cases)


def test_learn_by_samples_with_a_checkpoint(run, cases, tmp_path):
    pd = pytest.importorskip("pandas")
    out, shares, note = tmp_path / "net.bif", tmp_path / "shares.csv", tmp_path / "note.json"
    args = (
        "learn",
        cases,
        "--bootstrap",
        "5",
        "--out",
        out,
        "--strengths",
        shares,
        "--checkpoint",
        note,
        "--seed",
        "3",
    )
    code, said, _ = run(*args)
    assert code == 0 and "of 5 samples" in said
    expected = gg.learn.bootstrap_edges(cases, 5, random_state=3)
    pd.testing.assert_frame_equal(pd.read_csv(shares), expected.to_frame())
    assert gg.read(out) == expected.average_network()
    assert run(*args) == (0, said, ""), "the checkpoint holds them all"
    code, _, err = run("learn", cases, "--checkpoint", note, "--out", out)
    assert code == 2 and "another kind of work" in err


def test_tiers_weights_and_cuts_by_classes(run, tmp_path):
    np = pytest.importorskip("numpy")
    import pandas as pd

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    frame = pd.DataFrame(
        {"x": rng.normal(size=500) + 4 * y, "y": np.array(["a", "b"])[y], "w": rng.integers(1, 3, 500)}
    )
    path, out = tmp_path / "d.csv", tmp_path / "net.json"
    frame.to_csv(path, index=False)
    options = ("--weights", "w", "--bins", "5", "--cut", "mdlp", "--target", "y")
    code, said, err = run("learn", path, "--out", out, "--tiers", "y;x", *options)
    assert (code, err) == (0, "")
    net = gg.read(out)
    assert net.edges == (("y", "x"),) and len(net.states("x")) == 2
    weighted = gg.data.Discretizer(method="mdlp", target="y", columns=["x"]).fit_transform(frame)
    assert net == gg.learn_structure(weighted, weights="w", tiers=[["y"], ["x"]])
    assert run("learn", path, "--weights", "v")[0] == 2
    real = tmp_path / "real.json"
    assert run("learn", path, "--out", real, "--weights", "w")[0] == 0
    assert not gg.read(real).conditional("x").child.is_discrete
