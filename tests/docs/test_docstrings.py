"""Docstrings of public names pass numpydoc's checks: sections, parameters, examples (numpydoc: extra `docs`)."""

from __future__ import annotations

import importlib
import inspect

import pytest

from tests.surface.test_public_names import surface

validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is part of gramgraph[docs]").validate

CHECKS = ("GL01", "GL02", "SS03", "PR01", "PR02", "RT03", "EX01")


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


@pytest.mark.parametrize("code", CHECKS)
def test_all_public_names_pass(code, findings):
    assert [path for path, found in findings.items() if code in found] == []
