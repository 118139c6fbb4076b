"""Docstrings of public names pass numpydoc's checks: sections, parameters, examples (numpydoc: extra `docs`)."""

from __future__ import annotations

import importlib
import inspect

import pytest

import gramgraph as gg
from tests.surface.test_public_names import surface

validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is part of gramgraph[docs]").validate

CHECKS = ("GL01", "GL02", "SS03", "PR01", "PR02", "RT03", "EX01")
#: How many public names below the top level have no parameter list (PR01) or no example (EX01) yet. It only falls.
OPEN = {"PR01": 290, "EX01": 126}


def documented():
    """Every public class and function, by the place of its definition."""
    found = {}
    for name in surface():
        place, _, last = name.replace("gg", "gramgraph", 1).rpartition(".")
        value = getattr(importlib.import_module(place), last)
        if inspect.isclass(value) or inspect.isfunction(value):
            found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


@pytest.fixture(scope="module")
def findings():
    return {path: {code for code, _ in validate(path)["errors"]} & set(CHECKS) for path in documented()}


def test_flat_names_pass_all_checks(findings):
    flat = [getattr(gg, name) for name in gg._FLAT]
    paths = [f"{value.__module__}.{value.__qualname__}" for value in flat]
    assert {path: findings[path] for path in paths if findings.get(path)} == {}


@pytest.mark.parametrize("code", [code for code in CHECKS if code not in OPEN])
def test_all_public_names_pass(code, findings):
    assert [path for path, found in findings.items() if code in found] == []


@pytest.mark.parametrize("code", OPEN)
def test_what_is_open_only_falls(code, findings):
    assert sum(code in found for found in findings.values()) <= OPEN[code]
