"""Public is what is listed: every listed name resolves, is documented, and lists are sorted."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from pathlib import Path

import pytest

import gramgraph as gg

SNAPSHOT = Path(__file__).with_name("public_names.txt")
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(gg.__path__, "gramgraph.")
    if not m.name.endswith("__main__") and "._" not in m.name
)


@pytest.mark.parametrize("name", gg.__all__)
def test_top_level_names_resolve_and_are_documented(name):
    value = getattr(gg, name)
    assert inspect.getdoc(value), f"gg.{name} has no docstring"
    assert name in dir(gg)


def surface():
    """Every public name with its place, one a line: the flat ones, then package by package."""
    places = {"gg": gg._FLAT}
    for package in sorted((*gg._PACKAGES, *gg._UNLISTED)):
        places[f"gg.{package}"] = importlib.import_module(f"gramgraph.{package}").__all__
    return [f"{place}.{name}" for place, names in places.items() for name in sorted(names)]


def test_the_public_surface_changes_only_on_purpose():
    # After a change that is meant: python -m tests.surface.test_public_names
    written = SNAPSHOT.read_text(encoding="utf-8").split()
    now = surface()
    assert [name for name in written if name not in now] == [], "names that users call are gone"
    assert [name for name in now if name not in written] == [], "new names: write the snapshot anew"


def test_the_flat_names_are_those_of_a_first_hour():
    assert 60 <= len(gg._FLAT) <= len(dir(gg)) <= 120  # every promised name, and few others
    assert dir(gg) == gg.__all__
    assert not set(dir(gg)) & set(gg._NEW_HOMES)


def test_promised_names_are_flat_and_silent():
    # Names that others build on, for good; adding is free, taking away is not.
    promised = """read write plan describe BayesianNetwork MarkovNetwork FactorGraph learn_structure learn_tree kernels
    KernelRidge NadarayaWatson KernelPCA SVC SVR RVR RVC GaussianProcessRegressor GaussianProcessClassifier
    BayesianLinearRegression ConditionalEmbedding mmd_test hsic_test Gaussian BetaBernoulli Dirichlet CategoricalHMM
    GaussianHMM KalmanFilter LinearChainCRF embeddings estimators distributions GramGraphError ParseError StateError
    VariableError ModelError BudgetError ImpossibleEvidenceError Not OneOf Likelihood Soft Answer Belief Var"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [name for name in promised.split() if name not in dir(gg) or not getattr(gg, name)] == []


@pytest.mark.parametrize("name", sorted(gg._NEW_HOMES))
def test_a_name_that_moved_works_with_one_warning(name, monkeypatch):
    monkeypatch.delitem(vars(gg), name, raising=False)
    place = importlib.import_module(f"gramgraph.{gg._NEW_HOMES[name]}")
    assert name in place.__all__
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [getattr(gg, name) for _ in range(2)]
    assert all(value is getattr(place, name) for value in found)
    assert len(caught) == 1
    assert f"Use {place.__name__}.{name} instead" in str(caught[0].message)
    assert "until 0.4" in str(caught[0].message)
    assert (caught[0].category, caught[0].filename) == (DeprecationWarning, __file__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BayesNet'"):
        gg.BayesNet  # noqa: B018


def test_lists_are_sorted():
    assert list(gg.__all__) == sorted(gg.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_what_modules_offer_is_documented(name):
    module = importlib.import_module(name)
    own = [n for n, value in vars(module).items() if n[0] != "_" and getattr(value, "__module__", None) == name]
    for public in getattr(module, "__all__", own):
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


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(surface()) + "\n", encoding="utf-8")
