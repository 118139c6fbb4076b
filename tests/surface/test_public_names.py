"""Public is what is listed: every listed name resolves, is documented, and lists are sorted."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import gramgraph as gg

MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(gg.__path__, "gramgraph.")
    if not m.name.endswith("__main__") and "._" not in m.name and "explorer" not in m.name
)


@pytest.mark.parametrize("name", gg.__all__)
def test_top_level_names_resolve_and_are_documented(name):
    value = getattr(gg, name)
    assert inspect.getdoc(value), f"gg.{name} has no docstring"
    assert name in dir(gg)


def test_promised_names_are_there():
    # The names of this stage that others build on; adding is free, taking away is not.
    promised = """Answer BayesianNetwork Belief BudgetError FactorGraph GramGraphError ImpossibleEvidenceError
    MarkovNetwork ModelError Not ParseError StateError TableFactor Var VariableError datasets plan read write"""
    assert [name for name in promised.split() if not hasattr(gg, name)] == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BayesNet'"):
        gg.BayesNet  # noqa: B018


def test_lists_are_sorted():
    assert list(gg.__all__) == sorted(gg.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_what_they_offer(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"
            if inspect.isclass(value):
                _check_methods(name, value)


def _check_methods(module, cls):
    for method, value in vars(cls).items():
        plain = inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))
        if plain and not method.startswith("_") and cls.__module__.startswith("gramgraph"):
            assert inspect.getdoc(getattr(cls, method)), f"{module}.{cls.__name__}.{method} has no docstring"


def test_errors_inherit_from_ours_and_from_the_standard_ones():
    pairs = {
        "VariableError": KeyError,
        "StateError": ValueError,
        "ModelError": ValueError,
        "ParseError": ValueError,
        "BudgetError": MemoryError,
        "ImpossibleEvidenceError": ValueError,
    }
    for name, standard in pairs.items():
        assert issubclass(getattr(gg, name), (gg.GramGraphError,))
        assert issubclass(getattr(gg, name), standard)
