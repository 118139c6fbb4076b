"""The script that counts lines of code finds again what stood in an earlier commit, each definition once."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "code_lines.py"

OLD = '''
"""A module."""
import os


def near(a, b):
    # why
    gap = a - b
    return gap < 1


def read(path):
    """Text."""
    with open(path) as file:
        return file.read()
'''


@pytest.fixture(scope="module")
def script() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("the script stands in the repository only")
    spec = importlib.util.spec_from_file_location("code_lines", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_blank_lines_comments_and_docstrings_do_not_count(script: ModuleType) -> None:
    assert len(script.code_lines(OLD)) == 7


def test_a_module_that_moved_is_found_with_all_its_lines(script: ModuleType) -> None:
    assert script.since({"elsewhere.py": OLD}, [OLD]) == {"elsewhere.py": (7, 7)}


def test_a_new_function_with_an_old_name_is_not_an_old_one(script: ModuleType) -> None:
    other = "def read(stream):\n    rows = list(stream)\n    rows.sort()\n    return rows\n"
    found = script.since({"a.py": OLD, "b.py": other}, [OLD])
    assert found == {"a.py": (7, 7), "b.py": (0, 0)}
    assert script.since({"b.py": other}, [OLD]) == {"b.py": (4, 4)}  # where it stands alone it is taken for the old one


def test_additions_count_with_modules_that_are_mostly_old(script: ModuleType) -> None:
    more = "\n\ndef write(path, text):\n    path.write_text(text)\n"
    assert script.since({"a.py": OLD + more}, [OLD]) == {"a.py": (7, 9)}
    only = "def near(a, b):\n    return a - b < 1\n\n\ndef far(a, b):\n    x = a\n    y = b\n    return x - y > 9\n"
    assert script.since({"a.py": only}, [OLD]) == {"a.py": (2, 2)}
