"""Progress: a bar on a terminal and in a notebook, silence elsewhere."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest

from gramgraph._progress import in_notebook, progress_bar, reporting

try:
    from rich.console import Console as QUIET
except ImportError:
    QUIET = None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_silent_when_nobody_looks(capsys) -> None:
    with reporting(True, 3) as report:
        report(1)
    with reporting(False, 3) as report:
        assert report is None
    said = capsys.readouterr()
    assert said.out == said.err == ""


@pytest.mark.parametrize("size", [3, -1])
def test_a_bar_on_a_terminal(monkeypatch, size) -> None:
    pytest.importorskip("rich")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with reporting(True, size, "graphs") as report:
        for i in range(3):
            report(i + 1)
    assert "3 graphs" in screen.getvalue()
    assert ("100 %" in screen.getvalue()) == (size > 0)


@pytest.mark.parametrize("size", [3, -1])
def test_a_plain_line_without_rich(monkeypatch, size) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with reporting(True, size, "graphs") as report:
        report(3)
    assert screen.getvalue().startswith("\r3 graphs" + (" (100 %)" if size > 0 else ""))


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_shows_it(monkeypatch, capsys, widgets) -> None:
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook()
    monkeypatch.setitem(sys.modules, "ipywidgets", ModuleType("ipywidgets") if widgets else None)
    consoles: list[dict[str, object]] = []
    if widgets:
        rich = pytest.importorskip("rich.console")
        monkeypatch.setattr(rich, "Console", lambda **kwargs: consoles.append(kwargs) or QUIET(file=io.StringIO()))
    with progress_bar(2, "graphs") as move:
        move(1, 1)
        move(2, 2)
    said = capsys.readouterr().err
    assert consoles == ([{"force_jupyter": True}] if widgets else [])
    assert said == "" if widgets else said.endswith("\r2 graphs (100 %)\n")
    shell.kernel = None
    assert not in_notebook(), "the shell of a terminal is no notebook"


def test_a_function_of_the_caller() -> None:
    told: list[tuple[int, int]] = []
    with reporting(lambda done, total: told.append((done, total)), 5) as report:
        report(2)
    assert told == [(2, 5)]
