"""Long work that is interrupted, resumed, or has no room for its notes."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.learn import checkpoint as noting
from gramgraph.learn.checkpoint import Checkpoint

FRAME = gg.datasets.asia().sample(800, random_state=0)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(noting, "EVERY", 0.0)


def interrupt_after(steps: int):
    def tell(done: int, total: int) -> None:
        if done == steps:
            raise KeyboardInterrupt

    return tell


@pytest.mark.parametrize("method", ["hill_climb", "tabu"])
@pytest.mark.parametrize("steps", [1, 6, 12])
def test_a_search_goes_on_where_it_was_interrupted(tmp_path, method, steps) -> None:
    path = tmp_path / "search.json"
    whole = gg.learn_structure(FRAME, method=method)
    first = gg.learn_structure(FRAME, method=method, checkpoint=path, progress=interrupt_after(steps))
    assert first.report.interrupted and len(first.report.moves) == steps
    told: list[int] = []
    again = gg.learn_structure(FRAME, method=method, checkpoint=path, progress=lambda done, total: told.append(done))
    assert told[0] == steps + 1
    assert again == whole and again.report == whole.report
    done = gg.learn_structure(FRAME, method=method, checkpoint=path)
    assert done == whole


def test_ctrl_c_in_the_middle_of_a_step_keeps_the_last_whole_one(tmp_path, monkeypatch) -> None:
    from gramgraph.learn.search import Search

    path = tmp_path / "search.json"
    refresh, calls = Search._refresh, []

    def broken(self, child):
        calls.append(child)
        if len(calls) == len(FRAME.columns) + 5:
            raise KeyboardInterrupt
        refresh(self, child)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "_refresh", broken)
        first = gg.learn_structure(FRAME, checkpoint=path)
    assert first.report.interrupted
    assert gg.learn_structure(FRAME, checkpoint=path) == gg.learn_structure(FRAME)


def test_more_steps_from_a_checkpoint(tmp_path) -> None:
    path = tmp_path / "search.json"
    gg.learn_structure(FRAME, checkpoint=path, max_steps=3)
    assert gg.learn_structure(FRAME, checkpoint=path, max_steps=7) == gg.learn_structure(FRAME, max_steps=7)


def test_a_bootstrap_goes_on_and_grows(tmp_path) -> None:
    path = tmp_path / "boot.json"
    part = gg.learn.bootstrap_edges(FRAME, 8, random_state=1, checkpoint=path, progress=interrupt_after(3))
    assert part.n_graphs == 3
    np.testing.assert_array_equal(part.forward, gg.learn.bootstrap_edges(FRAME, 3, random_state=1).forward)
    told: list[int] = []
    full = gg.learn.bootstrap_edges(
        FRAME, 8, random_state=1, checkpoint=path, progress=lambda done, total: told.append(done)
    )
    assert told == [4, 5, 6, 7, 8]
    np.testing.assert_array_equal(full.forward, gg.learn.bootstrap_edges(FRAME, 8, random_state=1).forward)
    unseeded = tmp_path / "unseeded.json"
    gg.learn.bootstrap_edges(FRAME, 2, checkpoint=unseeded)
    assert gg.learn.bootstrap_edges(FRAME, 3, checkpoint=unseeded).n_graphs == 3


def test_ctrl_c_inside_one_graph_of_a_bootstrap_leaves_that_graph_out(monkeypatch) -> None:
    from gramgraph.learn.search import Search

    take, calls = Search.take, []

    def broken(self, step):
        calls.append(step)
        if len(calls) == 40:
            raise KeyboardInterrupt
        take(self, step)

    whole = gg.learn.bootstrap_edges(FRAME, 2, random_state=1)
    with monkeypatch.context() as patch:
        patch.setattr(Search, "take", broken)
        found = gg.learn.bootstrap_edges(FRAME, 50, random_state=1)
    assert found.n_graphs == 2 and len(calls) == 40
    np.testing.assert_array_equal(found.forward, whole.forward)


@pytest.mark.parametrize("work", ["search", "bootstrap"])
def test_a_disk_that_becomes_full_costs_only_the_notes(tmp_path, monkeypatch, work) -> None:
    path = tmp_path / "note.json"
    write, calls = noting.write_whole, []

    def full(file, text):
        calls.append(file)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(file, text)

    monkeypatch.setattr(noting, "write_whole", full)
    expected = gg.learn_structure(FRAME)

    def run() -> None:
        if work == "search":
            assert gg.learn_structure(FRAME, checkpoint=path) == expected
        else:
            assert gg.learn.bootstrap_edges(FRAME, 5, random_state=0, checkpoint=path).n_graphs == 5

    with pytest.warns(gg.ModelWarning, match="No space left on device.*the work goes on") as told:
        run()
    assert len(told) == 1 and len(calls) > 4
    kept = json.loads(path.read_text())["state"]
    assert kept["steps" if work == "search" else "done"] == 2
    monkeypatch.setattr(noting, "write_whole", write)
    run()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_named_before_anything_is_begun(tmp_path, monkeypatch) -> None:
    path = tmp_path / "note.json"

    def full(file, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(noting, "write_whole", full)
    with pytest.raises(gg.OptionError, match="No space left on device.*nothing was begun"):
        gg.learn_structure(FRAME, checkpoint=path)
    assert not path.exists()
    with pytest.raises(gg.OptionError, match="not a regular file"):
        gg.learn_structure(FRAME, checkpoint="/dev/full")


def test_notes_of_other_work_are_refused(tmp_path) -> None:
    path = tmp_path / "note.json"
    gg.learn_structure(FRAME, checkpoint=path)
    before = path.read_text()
    with pytest.raises(gg.OptionError, match="with other data"):
        gg.learn_structure(FRAME[:700], checkpoint=path)
    with pytest.raises(gg.OptionError, match="with other options"):
        gg.learn_structure(FRAME, score="k2", checkpoint=path)
    with pytest.raises(gg.OptionError, match="with other constraints"):
        gg.learn_structure(FRAME, forbidden=[("smoke", "lung")], checkpoint=path)
    with pytest.raises(gg.OptionError, match="another kind of work"):
        gg.learn.bootstrap_edges(FRAME, 2, checkpoint=path)
    with pytest.raises(gg.OptionError, match="keeps no checkpoint"):
        gg.learn_structure(FRAME, method="chow_liu", checkpoint=path)
    with pytest.raises(gg.OptionError, match="cannot be written"):
        gg.learn_structure(FRAME, checkpoint=tmp_path / "nowhere" / "note.json")
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda note: "", "damaged"),
        (lambda note: "[1, 2]", "not a checkpoint"),
        (lambda note: note[: len(note) // 2], "damaged"),
        (lambda note: note.replace('"best": [[]', '"best": [[99]'), "damaged"),
        (lambda note: note.replace('"idle"', '"idel"'), "damaged"),
        (lambda note: note[: note.index('"state"')] + '"state": 3}', "damaged"),
    ],
)
def test_damaged_notes_are_refused_and_kept(tmp_path, change, words) -> None:
    path = tmp_path / "note.json"
    gg.learn_structure(FRAME, checkpoint=path, max_steps=2)
    text = change(path.read_text())
    path.write_text(text)
    with pytest.raises(gg.ParseError, match=words):
        gg.learn_structure(FRAME, checkpoint=path)
    assert path.read_text() == text


def test_notes_are_not_written_all_the_time(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(noting, "EVERY", 1000.0)
    note = Checkpoint(tmp_path / "n.json", "count", {})
    assert note.begin() is None
    note.save(lambda: {"done": 1})
    assert Checkpoint(tmp_path / "n.json", "count", {}).begin() is None
    note.save(lambda: {"done": 2}, now=True)
    assert Checkpoint(tmp_path / "n.json", "count", {}).begin() == {"done": 2}
    with pytest.raises(gg.OptionError, match="path of a file"):
        Checkpoint(3, "count", {})  # type: ignore[arg-type]
