"""Every file format that the package defines holds to the contract: modules are found, not listed."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

import gramgraph as gg
from gramgraph import io
from gramgraph.exceptions import GramGraphError, ParseError
from gramgraph.io.registry import FORMATS, SUFFIXES, load_format


def found() -> set[str]:
    """Modules of `gramgraph.io` that read and write whole files."""
    names = [f"gramgraph.io.{each.name}" for each in pkgutil.iter_modules(io.__path__)]
    modules = [(name, importlib.import_module(name)) for name in names]
    return {name for name, module in modules if hasattr(module, "loads") and hasattr(module, "dumps")}


def check(name: str) -> None:
    """The contract for a format: the same numbers come back, and broken bytes are a `ParseError`."""
    net = gg.BayesianNetwork("a -> b", cpds={"a": [0.25, 0.75], "b": [[0.5, 0.5], [0.125, 0.875]]})
    form = load_format(name)
    data = form.dumps(net)
    assert isinstance(data, bytes) and form.dumps(net) == data, f"{name}: the same model gives the same bytes"
    again = form.loads(data, source="file")
    at = {v: again.states(v)[1] for v in again.variables}
    assert again.joint_log_prob(at) == net.joint_log_prob({"a": "yes", "b": "yes"}), f"{name}: other numbers came back"
    for broken in (b"", data[: len(data) // 2], b"\xff" + data[1:], bytes(reversed(data))):
        try:
            form.loads(broken, source="file")
        except ParseError:
            continue
        except Exception as error:
            raise AssertionError(f"{name}: broken bytes gave {type(error).__name__}, not a ParseError") from error


def test_every_format_is_in_the_registry() -> None:
    missing = found() - set(FORMATS.values())
    assert not missing, f"add a line in io/registry.py for {missing}"
    assert set(FORMATS) == set(SUFFIXES.values()), "every format has a suffix"


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_contract(name: str) -> None:
    check(name)


def test_the_contract_finds_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = "def loads(data, *, source, normalize=True): return data.decode()"
    (tmp_path / "plain.py").write_text(f"{reads}\n\ndef dumps(model): return b'a'\n")
    monkeypatch.setattr(io, "__path__", [*io.__path__, str(tmp_path)])
    with pytest.raises(AssertionError, match=r"gramgraph\.io\.plain"):
        test_every_format_is_in_the_registry()
    monkeypatch.setitem(FORMATS, "plain", "gramgraph.io.plain")
    with pytest.raises((AssertionError, AttributeError, GramGraphError)):
        check("plain")
