"""What a file can claim is limited by what it contains: hostile files end in a ParseError, in little memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import gramgraph as gg
from gramgraph._archive import read_archive
from gramgraph.exceptions import ParseError
from gramgraph.io import native
from gramgraph.io.registry import load_format

HEAD = {"format": "gramgraph", "version": 1}


def _linear(dimension: int, copies: int = 1) -> bytes:
    names = [f"a{i}" for i in range(copies)]
    variables = [{"name": name, "real": dimension} for name in names]
    parts = [
        {"kind": "linear_gaussian", "child": name, "parents": [], "coefficients": [], "intercept": 0, "covariance": 1}
        for name in names
    ]
    return json.dumps({**HEAD, "kind": "bayesian_network", "variables": variables, "conditionals": parts}).encode()


def _distribution(family: str, **fields: object) -> bytes:
    return json.dumps({**HEAD, "kind": "distribution", "family": family, "fields": fields}).encode()


def _with_states(kind: str, n: int) -> bytes:
    return f"{kind} 1 {n} 0".encode()


def _zip(claimed: tuple[int, ...], content: bytes = b"") -> bytes:
    """An archive whose header speaks of another shape than it has bytes for."""
    raw = io.BytesIO()
    np.lib.format.write_array_header_1_0(raw, {"descr": "<f8", "fortran_order": False, "shape": claimed})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", raw.getvalue() + content)
    return out.getvalue()


def _blown_size() -> bytes:
    """The central directory claims that a member has four gigabytes."""
    data = bytearray(_zip((1,), bytes(8)))
    at = data.index(b"PK\1\2")
    data[at + 24 : at + 28] = struct.pack("<I", 0xFFFFFFF0)
    return bytes(data)


#: Name of the format → files that claim more than they hold.
HOSTILE: dict[str, list[bytes]] = {
    "json": [
        _linear(15_000),
        _linear(1_000, copies=50),
        _linear(100_000),
        _distribution("NormalInverseWishart", mean=[0] * 20_000, count=1, dof=30_000, scale=1),
        _distribution("Gaussian", mean=[0] * 20_000, cov=1),
    ],
    "uai": [_with_states("MARKOV", 10**9), _with_states("BAYES", 10**7), b"MARKOV 99999999 2", b"MARKOV 1 2 99999999"],
    "fg": [b"1\n\n2\n0 1\n100000 100000\n1\n0 1\n", b"1000000000\n", b"1\n\n3\n0 1 2\n5000 5000 5000\n0\n"],
    "bif": [
        ("".join(f"variable x{i} {{ type discrete [2] {{ a b }}; }}" for i in range(31))
         + "probability ( x0 | " + ", ".join(f"x{i}" for i in range(1, 31)) + " ) { default 0.5 0.5; }").encode(),
        b"variable a { type discrete [999999999] { a b }; } probability ( a ) { table 0.5 0.5; }",
    ],
    "archive": [_zip((10**12,)), _zip((2**40, 2**40)), _zip((200_000_000,), bytes(1_600_000_000 // 64)), _blown_size()],
    "container": [b"gramgraph-container 1 value 8 99999999999999 " + b"0" * 64 + b"\n12345678"],
}  # fmt: skip
CASES = [(name, i) for name, files in HOSTILE.items() for i in range(len(files))]

_SCRIPT = """
import sys
from pathlib import Path
import numpy
from gramgraph.exceptions import ParseError
from gramgraph.io.registry import inflate, load_format
for path in sorted(Path(sys.argv[1]).iterdir()):
    name = path.name.split("-")[0]
    data = path.read_bytes()
    try:
        (inflate(data, source="<t>") if name == "gzip" else load_format(name).loads(data, source="<t>"))
        print(path.name, "read")
    except ParseError:
        pass
# ru_maxrss would count the process that started this one
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the peak")
def test_hostile_files_take_little_memory(tmp_path: Path) -> None:
    """All of them in one process: its peak is the largest of theirs."""
    for name, i in CASES:
        (tmp_path / f"{name}-{i}").write_bytes(HOSTILE[name][i])
    (tmp_path / "gzip-0").write_bytes(gzip.compress(bytes(60 << 20), 1))  # 260 kB
    (tmp_path / "json-bomb").write_bytes(b"[" * 100_000)
    environment = {**os.environ, "PYTHONPATH": str(Path(gg.__file__).parent.parent)}
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *read, peak = done.stdout.split("\n")[:-1]
    assert read == []
    largest = max(path.stat().st_size for path in tmp_path.iterdir())
    assert int(peak) * 1024 < 200e6 + 20 * largest


@pytest.mark.parametrize("name, i", CASES)
def test_hostile_files_are_parse_errors(name: str, i: int) -> None:
    with pytest.raises(ParseError):
        load_format(name).loads(HOSTILE[name][i], source="<test>", normalize=True)


def test_one_number_may_stand_for_a_matrix_of_moderate_size() -> None:
    assert load_format("json").loads(_linear(200)).conditional("a0").covariance.shape == (200, 200)


def test_a_large_matrix_in_full_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_MOST_SPREAD", 100)
    d = 40
    x = gg.real("x", d)
    net = gg.BayesianNetwork.from_parts([x], [gg.LinearGaussian(x, (), {}, np.zeros(d), np.eye(d))])
    gg.write(net, tmp_path / "net.json")
    assert gg.read(tmp_path / "net.json") == net
    with pytest.raises(ParseError, match="claims far more numbers"):
        native.loads(_linear(d))


def test_archives_are_read_as_numpy_writes_them(tmp_path: Path) -> None:
    arrays = {"a": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "b": np.array(["x", "yz"]), "c": np.empty((0, 2))}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        found = read_archive((tmp_path / "a.npz").read_bytes(), source="<test>")
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
    np.savez(tmp_path / "o.npz", o=np.array([None], dtype=object), allow_pickle=True)
    with pytest.raises(ParseError, match="not a sound archive"):
        read_archive((tmp_path / "o.npz").read_bytes(), source="<test>")
