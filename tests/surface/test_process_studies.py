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


@pytest.mark.slow
def test_row_f10_credit_scoring(monkeypatch, tmp_path, capsys, shared_data):
    if not (shared_data / "kernel" / "german.data.gz").exists():
        pytest.skip("the German credit data are not there")
    monkeypatch.setenv("GRAMGRAPH_DATA", str(shared_data.resolve()))
    text = run("credit_scoring", monkeypatch, tmp_path, capsys)
    found = {line[:30].strip(): [float(word) for word in line[30:].split()] for line in text.splitlines()[3:6]}
    averaged, plugged = found["averaged over the posterior"], found["plugged in at its mean"]
    assert averaged[0] <= 0.535 and averaged[1] >= 0.75 and averaged[0] <= plugged[0]
    assert (tmp_path / "demo" / "credit_scoring.png").stat().st_size > 10_000
