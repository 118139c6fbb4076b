"""The wheel holds what it should and nothing else, and an installed one runs the README."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources that holds compiled code too, as a folder in use does."""
    pytest.importorskip("build", reason="the package `build` makes the wheel")
    pytest.importorskip("hatchling", reason="the package `hatchling` makes the wheel")
    folder = tmp_path_factory.mktemp("install")
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, source)
    caches = source / "src" / "gramgraph" / "_numerics" / "__pycache__"
    caches.mkdir()
    (caches / "copies.put-1.py311.nbi").write_bytes(b"compiled")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    [made] = folder.glob("*.whl")
    return made


def test_the_wheel_holds_sources_and_types_and_no_compiled_code(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    ours = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert ours <= set(names) and "gramgraph/py.typed" in names
    page = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/gramgraph/explorer/page").iterdir()}
    assert {name for name in names if name.startswith("gramgraph/")} == ours | page | {"gramgraph/py.typed"}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc", ".pyc", ".so"))]


@pytest.fixture(scope="module")
def installed(wheel: Path) -> dict[str, str]:
    """The environment of a process that finds the wheel's files, and nothing of this folder."""
    target = wheel.parent / "target"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(target), "NUMBA_CACHE_DIR": str(wheel.parent / "cache")}


def test_an_installed_wheel_runs_the_readme(installed: dict[str, str], tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    program += "\nprint(gg.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=installed, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1].startswith(installed["PYTHONPATH"])


def test_an_installed_wheel_answers_from_the_shell(installed: dict[str, str], tmp_path: Path) -> None:
    asked = ["query", "dataset:asia", "--evidence", "smoke=yes", "--target", "lung"]
    script = Path(installed["PYTHONPATH"]) / "bin" / "gramgraph"
    program = [sys.executable, str(script)] if script.exists() else [sys.executable, "-m", "gramgraph"]
    done = subprocess.run([*program, *asked], env=installed, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "lung" in done.stdout and "0.9" in done.stdout
