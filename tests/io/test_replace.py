"""Writers leave the old file or the new one, never a part of it."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import _replace
from gramgraph._replace import replacing, write_whole
from gramgraph.learn.checkpoint import Checkpoint

NET = gg.BayesianNetwork("a -> b", cpds={"a": [0.25, 0.75], "b": [[0.5, 0.5], [0.125, 0.875]]})


def _note(path: Path) -> None:
    Checkpoint(path, "count", {}).save(lambda: {"done": 3}, now=True)


#: Everything that writes a file.
WRITERS: dict[str, Callable[[Path], Any]] = {
    "model.bif": lambda path: gg.write(NET, path),
    "model.json.gz": lambda path: gg.write(NET, path),
    "gamma.json": lambda path: gg.distributions.save(gg.distributions.Gamma(2.0, 0.5), path),
    "result.uai.PR": lambda path: gg.io.write_uai_result(gg.io.UaiResult("PR", log10=-1.5), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_failing_disk_leaves_the_old_file_and_no_debris(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_replace.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        WRITERS[name](path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == [name]
    monkeypatch.undo()
    WRITERS[name](path)
    assert path.read_bytes() != b"old" and os.listdir(tmp_path) == [name]


def test_a_limit_of_the_system_leaves_the_old_file(tmp_path: Path) -> None:
    """A file that may not grow beyond 1,000 bytes: the write fails half-way, as on a full disk."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_whole(path, bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import os, sys; from gramgraph._replace import replacing\n"
        "with replacing(sys.argv[1]) as stream:\n    stream.write(b'new'); stream.flush(); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(gg.__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=False, timeout=60)
    assert path.read_bytes() == b"old"


def test_an_interrupt_inside_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(path) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_nothing_planted_is_followed(tmp_path: Path) -> None:
    """Links where a file beside might be expected point to a victim that stays as it is."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("model.bif.part", ".model.bif.part", "model.bif.tmp", "note.json.part"):
        (folder / name).symlink_to(victim)
    gg.write(NET, folder / "model.bif")
    _note(folder / "note.json")
    assert victim.read_bytes() == b"precious"
    assert gg.read(folder / "model.bif") == NET and Checkpoint(folder / "note.json", "count", {}).begin() == {"done": 3}


def test_a_name_that_is_taken_is_never_opened(tmp_path: Path, monkeypatch: Any) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".ab.part").symlink_to(victim)
    monkeypatch.setattr(_replace.secrets, "token_hex", lambda n: "ab")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"precious" and not (tmp_path / "file").exists()


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"new")
    assert path.read_bytes() == b"new" and (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    mask = os.umask(0o077)
    try:
        write_whole(tmp_path / "private", b"new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


def test_devices_and_folders(tmp_path: Path) -> None:
    write_whole(os.devnull, b"gone")
    with pytest.raises(OSError):
        write_whole(tmp_path, b"a folder")
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "nowhere" / "file", b"new")
    write_whole(tmp_path / ("n" * 250), np.arange(3).tobytes())  # as long as names may be


def test_a_folder_that_is_missing_is_told_by_the_name_that_was_given(tmp_path):
    wanted = tmp_path / "nowhere" / "model.gg"
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(wanted, b"")
    assert caught.value.filename == str(wanted)
