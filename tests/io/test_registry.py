"""Suffixes, compressed files, and the two doors `gg.read` and `gg.write`."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import gramgraph as gg
from gramgraph.exceptions import ParseError
from gramgraph.io import registry
from gramgraph.io.registry import FORMATS, SUFFIXES, find_format, inflate, load_format


@pytest.fixture
def net() -> gg.BayesianNetwork:
    return gg.BayesianNetwork("a -> b", cpds={"a": [0.25, 0.75], "b": [[0.5, 0.5], [0.125, 0.875]]})


@pytest.mark.parametrize("suffix", sorted(SUFFIXES))
@pytest.mark.parametrize("packed", ["", ".gz", ".GZ"])
def test_every_suffix_reads_what_it_writes(net: gg.BayesianNetwork, tmp_path: Path, suffix: str, packed: str) -> None:
    file = tmp_path / f"model.v1{suffix}{packed}"
    gg.write(net, file)
    assert file.read_bytes().startswith(b"\x1f\x8b") == bool(packed)
    again = gg.read(str(file))
    assert len(again) == 2
    at = dict(zip(again.variables, (again.states(v)[1] for v in again.variables), strict=True))
    assert again.joint_log_prob(at) == pytest.approx(net.joint_log_prob({"a": "yes", "b": "yes"}), abs=1e-12)
    first = file.read_bytes()
    gg.write(net, file)
    assert file.read_bytes() == first, "the same model gives the same bytes"


def test_format_by_name(net: gg.BayesianNetwork, tmp_path: Path) -> None:
    file = tmp_path / "model.txt"
    gg.write(net, file, format="bif")
    assert gg.read(file, format=".BIF") == net
    assert find_format("x.dat.gz", "hugin") == ("net", True)
    assert {SUFFIXES[s] for s in SUFFIXES} == set(FORMATS)
    for name in FORMATS:
        assert callable(load_format(name).loads) and callable(load_format(name).dumps)


def test_unknown_suffixes_and_names_list_what_there_is(net: gg.BayesianNetwork, tmp_path: Path) -> None:
    for call in (lambda: gg.read("model.biff"), lambda: gg.write(net, tmp_path / "model.biff")):
        with pytest.raises(ParseError, match=r"suffix '\.biff'\. Known: \.bif, .*\.xmlbif.*Did you mean '\.bif'"):
            call()
    with pytest.raises(ParseError, match="format 'uay' is not known. Known: archive, bif, .*Did you mean 'uai'"):
        gg.read("model", format="uay")
    with pytest.raises(ParseError, match="no format is known for the suffix ''"):
        gg.read("model")
    with pytest.raises(FileNotFoundError):
        gg.read(tmp_path / "absent.bif")


def test_nothing_is_written_when_the_format_cannot_hold_the_model(tmp_path: Path) -> None:
    file = tmp_path / "keep.bif"
    file.write_bytes(b"old")
    with pytest.raises(gg.ModelError):
        gg.write(gg.MarkovNetwork({("a", "b"): [[1, 2], [3, 4]]}), file)
    assert file.read_bytes() == b"old"


def test_broken_gzip_is_a_parse_error(tmp_path: Path) -> None:
    sound = gzip.compress(b"some text " * 400)
    assert inflate(sound + sound, source="f") == b"some text " * 800
    assert inflate(sound + b"\0" * 9, source="f") == b"some text " * 400
    for broken in (sound[:20], sound[:-4], b"plain", sound + b"junk", sound[:30] + b"\xff\xff\xff" + sound[33:]):
        with pytest.raises(ParseError, match="gzip"):
            inflate(broken, source="f")
    file = tmp_path / "net.bif.gz"
    file.write_bytes(sound[:20])
    with pytest.raises(ParseError, match=r"net\.bif\.gz: "):
        gg.read(file)


def test_a_file_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_SMALL", 1 << 20)
    monkeypatch.setattr(registry, "_STEP", 1 << 18)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    data = b"".join(packer.compress(zeros) for _ in range(20)) + packer.flush()
    with pytest.raises(ParseError, match="compressed bytes inflate to more than"):
        inflate(data, source="bomb")


def test_reading_loads_no_heavy_library(net: gg.BayesianNetwork, tmp_path: Path) -> None:
    file = tmp_path / "model.bif"
    gg.write(net, file)
    code = (
        "import sys, gramgraph as gg; gg.read(sys.argv[1]); "
        "print([m for m in ('numba', 'scipy', 'pandas', 'networkx', 'gramgraph.io.xdsl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_many_gzip_members_are_read_in_one_pass() -> None:
    """200,000 empty members: the bytes handed to zlib grow with the file, not with its square."""
    member = gzip.compress(b"", mtime=0)
    fed = 0

    class Counting:
        def __init__(self, wbits: int) -> None:
            self.inner = decompressor(wbits=wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal fed
            fed += len(data)
            return self.inner.decompress(data, most)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    decompressor = zlib.decompressobj
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zlib, "decompressobj", Counting)
        assert inflate(member * 2_000, source="<test>") == b""
        assert fed < 2_000 * 300
    assert inflate(member * 200_000, source="<test>") == b""
    parts = [gzip.compress(bytes([i % 7]) * (i % 50), mtime=0) + b"\0" * (i % 3) for i in range(300)]
    assert inflate(b"".join(parts), source="<test>") == b"".join(bytes([i % 7]) * (i % 50) for i in range(300))
