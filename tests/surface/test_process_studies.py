"""The studies of Gaussian processes run and say what they promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    return capsys.readouterr().out


@pytest.mark.slow
def test_body_weight(monkeypatch, tmp_path, capsys):
    text = run("body_weight", monkeypatch, tmp_path, capsys)
    assert "diet -" in text and "g a day (true: -20)" in text
    assert (tmp_path / "demo" / "body_weight.png").stat().st_size > 10_000


@pytest.mark.slow
def test_carbon_dioxide(monkeypatch, tmp_path, capsys):
    text = run("carbon_dioxide", monkeypatch, tmp_path, capsys)
    assert "forecast of 10 years" in text
    assert (tmp_path / "demo" / "carbon_dioxide_terms.png").stat().st_size > 10_000
