"""The studies of kernel graphical models run and say what they promise."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(text, start):
    line = next(line for line in text.splitlines() if line.strip().startswith(start))
    return [float(x) for x in re.findall(r"-?\d+\.\d+", line)]


def test_side_chain_torsions_without_the_tables(monkeypatch, tmp_path, capsys):
    module = load("side_chain_torsions")
    monkeypatch.setattr(module, "DATA", tmp_path)
    module.main()
    text = capsys.readouterr().out
    assert "synthetic angles" in text
    assert numbers(text, "kernels")[0] > numbers(text, "no edges")[0] + 0.5


def test_sensor_network(capsys):
    load("sensor_network").main(1500, 200)
    text = capsys.readouterr().out
    error, score, share = numbers(text, "kernel tree")
    other = numbers(text, "linear Gaussian")
    assert error < other[0] and score > other[1] + 0.2 and 86 < share < 94
    assert "it is ignored (('s0',))" in text


def test_many_grey_levels_without_the_image(monkeypatch, tmp_path, capsys):
    module = load("many_grey_levels")
    monkeypatch.setattr(module, "DATA", tmp_path)
    module.main(40, (50, 200))
    text = capsys.readouterr().out
    for levels in ("50", "200"):
        noisy, ours, _, discrete, _ = numbers(text, levels)
        assert ours < 0.7 * noisy and ours < 1.3 * discrete


@pytest.mark.slow
def test_pendulum_filter(capsys):
    load("pendulum_filter").main(2400, 3, 40)
    text = capsys.readouterr().out
    assert numbers(text, "kernel Bayes filter")[0] < numbers(text, "extended Kalman filter")[0]
