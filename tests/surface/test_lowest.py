"""`make test-lowest` pins what pyproject.toml declares, and every need of the package and its tests has a bound."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "lowest.py"


@pytest.fixture
def pins():
    if not SCRIPT.is_file():
        pytest.skip("an sdist has no .ci")
    spec = importlib.util.spec_from_file_location("lowest", SCRIPT)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module.pins


def test_every_bound_becomes_a_pin(pins):
    found = dict(pin.split("==") for pin in pins((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    assert {"numpy", "scipy", "numba", "scikit-learn", "pandas", "narwhals", "dask", "pytest"} <= set(found)


def test_a_need_without_a_bound_is_refused(pins):
    text = '[project]\ndependencies = ["a>=1.0", "b[x]>=2"]\noptional-dependencies.dev = [{}]'
    assert pins(text.format('"c >= 3, < 4"')) == ["a==1.0", "b==2", "c==3"]
    with pytest.raises(SystemExit, match="no lower bound is declared: c"):
        pins(text.format('"c"'))
