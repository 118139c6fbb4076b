"""The file of answers: never over the cases, written by one process at a time, and nothing is left of one that died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.cli import main

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def net():
    return gg.datasets.asia()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def cases(path, n=10):
    frame = pd.DataFrame({"id": range(n), "smoke": ["yes", "no"] * (n // 2)})
    frame.to_csv(path, index=False) if ".csv" in path else frame.to_parquet(path)


# ------------------------------------------------------------------------------------------------ out and the cases


@pytest.mark.parametrize("name", ["c.parquet", "c.csv"])
def test_out_does_not_replace_the_cases(net, name):
    cases(name)
    os.symlink(name, f"link.{name}")
    os.link(name, f"hard.{name}")
    before = Path(name).read_bytes()
    for source, out in (
        (name, name),
        (os.path.abspath(name), name),
        (f"link.{name}", name),
        (name, f"link.{name}"),
        (name, f"hard.{name}"),
        (f"c*{os.path.splitext(name)[1]}", name),
        (f"c*{os.path.splitext(name)[1]}", f"c2{os.path.splitext(name)[1]}"),
        (".", "o.csv"),
        (".", os.path.abspath(name)),
    ):
        with pytest.raises(gg.OptionError, match="give another"):
            net.query("lung", source, keep="id", out=out)
        assert Path(name).read_bytes() == before
    assert sorted(os.listdir()) == sorted([name, f"link.{name}", f"hard.{name}"])


@pytest.mark.parametrize("command", ["query", "map"])
def test_out_does_not_replace_the_cases_from_the_shell(command, capsys):
    cases("c.csv")
    before = Path("c.csv").read_bytes()
    assert main([command, "dataset:asia", "--cases", "c.csv", "--keep", "id", "-t", "lung", "--out", "./c.csv"]) == 2
    assert "would replace" in capsys.readouterr().err
    assert Path("c.csv").read_bytes() == before


def test_out_does_not_replace_files_of_a_dataset(net):
    dataset = pytest.importorskip("pyarrow.dataset")
    cases("c.parquet")
    with pytest.raises(gg.OptionError, match="would replace"):
        net.query("lung", dataset.dataset("c.parquet"), keep="id", out="c.parquet")


@pytest.mark.parametrize("command", ["query", "map"])
def test_a_suffix_that_is_not_known_is_refused_from_the_shell(command, capsys):
    cases("c.csv")
    assert main([command, "dataset:asia", "--cases", "c.csv", "--keep", "id", "-t", "lung", "--out", "o.feather"]) == 2
    assert "ends in .parquet, .pq, .csv, .csv.gz, not 'o.feather'" in capsys.readouterr().err
    assert os.listdir() == ["c.csv"]


# ------------------------------------------------------------------------------------------------ one process at a time


def test_a_second_call_with_the_same_file_is_told_at_once(net):
    pytest.importorskip("fcntl")
    cases("c.parquet")
    answering, told = threading.Event(), threading.Event()

    def wait(done, total):
        answering.set()
        told.wait(60)

    first = threading.Thread(
        target=net.query, args=("lung", "c.parquet"), kwargs={"keep": "id", "out": "o.parquet", "progress": wait}
    )
    first.start()
    assert answering.wait(60)
    os.symlink("o.parquet", "other.parquet")
    for out in ("o.parquet", "other.parquet"):
        with pytest.raises(gg.OptionError, match="another process is writing"):
            net.query("tub", "c.parquet", keep="id", out=out)
    told.set()
    first.join()
    assert "lung=yes" in pd.read_parquet("o.parquet").columns
    assert "tub=yes" in net.query("tub", "c.parquet", keep="id", out="o.parquet").columns
    assert sorted(os.listdir()) == ["c.parquet", "o.parquet", "other.parquet"]


KILLED = """
    import os, signal, gramgraph as gg
    from gramgraph.questions import file_parts, files
    files.BLOCK = 256
    def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
    if {late}:
        write = file_parts._write_parquet
        file_parts._write_parquet = lambda stream, schema, tables, **more: die() if len(schema) > 1 else None
    net = gg.datasets.asia()
    net.query("lung", "c.parquet", keep="id", out="o.parquet", progress=lambda done, _: {late} or done < 600 or die())
"""


@pytest.mark.parametrize("late", [False, True])
def test_a_killed_process_holds_nothing_and_leaves_nothing(net, late, monkeypatch):
    monkeypatch.setattr("gramgraph.questions.files.BLOCK", 256)
    cases("c.parquet", 1000)
    script = textwrap.dedent(KILLED).format(late=late)
    ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert sorted(os.listdir()) == [".o.parquet.parts", "c.parquet"]
    assert bool(list(Path(".o.parquet.parts").glob(".*.part"))) == late
    written = net.query("lung", "c.parquet", keep="id", out="o.parquet")
    assert written.resumed == (1000 if late else 512 + 256) and written.rows == 1000
    assert written.to_frame()["id"].tolist() == list(range(1000))
    assert sorted(os.listdir()) == ["c.parquet", "o.parquet"]


def test_processes_that_race_for_one_file_never_mix_their_answers(net):
    """Some are refused; whichever writes last, the file holds the answers of one question."""
    cases("c.parquet", 100)
    faults = []

    def ask(target):
        for _ in range(10):
            try:
                net.query(target, "c.parquet", keep="id", out="o.parquet")
            except gg.OptionError as error:
                if "another process is writing" not in str(error):
                    faults.append(error)
                time.sleep(0.002)
            except BaseException as error:
                faults.append(error)

    threads = [threading.Thread(target=ask, args=(target,)) for target in ("lung", "tub", "bronc")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    table = pd.read_parquet("o.parquet")
    assert table["id"].tolist() == list(range(100)) and len(table.columns) == 4
    assert sorted(os.listdir()) == ["c.parquet", "o.parquet"]


def test_an_interruption_before_the_first_answer_leaves_nothing(net, monkeypatch):
    cases("c.parquet")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gramgraph.questions.files._answered", stop)
    with pytest.raises(KeyboardInterrupt):
        net.query("lung", "c.parquet", keep="id", out="o.parquet")
    assert os.listdir() == ["c.parquet"]
