"""`import gramgraph` is quick and loads nothing heavy; what is heavy is loaded by what needs it."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import gramgraph as gg

SRC = Path(gg.__file__).parents[1]
HEAVY = ("numba", "llvmlite", "pandas", "scipy", "sklearn", "matplotlib", "networkx", "rich", "narwhals", "pyarrow")


def run(code: str, **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(SRC), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded_by(statement: str) -> list[str]:
    return run(f"import sys\n{statement}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])").split()


def test_import_loads_nothing_heavy():
    assert loaded_by("import gramgraph") == []


def test_import_prints_nothing_and_changes_no_warnings():
    code = "import warnings; before = list(warnings.filters); import gramgraph; print(warnings.filters == before)"
    assert run(code) == "True"


@pytest.mark.parametrize(
    "statement",
    [
        "import gramgraph as gg; gg.BayesianNetwork; gg.MarkovNetwork; gg.factors.TableFactor; gg.Var; gg.Answer",
        "import gramgraph as gg; gg.read; gg.write",
        "import gramgraph as gg; gg.exceptions; gg.variables; gg.factors; gg.conditionals; gg.models",
        "import gramgraph as gg; gg.plot.network_svg(gg.datasets.asia())",
        "from gramgraph.cli import main; main(['info', 'dataset:asia', '--json'])",
    ],
)
def test_models_and_files_need_numpy_only(statement):
    quiet = f"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    {statement}"
    assert loaded_by(quiet) == []


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_every_module_can_be_imported_first(every):
    # An import cycle shows only when its members are imported in an unlucky order; each module goes first once. Where
    # cycles can be at all, `test_architecture` reads from the sources; this runs what it read.
    optional = ("gramgraph.explorer",)
    names = [m.name for m in pkgutil.walk_packages(gg.__path__, "gramgraph.") if not m.name.endswith("__main__")]
    names = [name for name in names if not name.startswith((*optional, "gramgraph._numerics"))]
    assert "gramgraph.answers" in names
    code = f"""
import importlib, sys
for name in {names[::every]!r}:
    for old in [m for m in sys.modules if m.split('.')[0] == 'gramgraph']:
        del sys.modules[old]
    importlib.import_module(name)
"""
    run(code)
