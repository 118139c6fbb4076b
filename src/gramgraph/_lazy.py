"""Public names of a package that load their module at first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_name", "lazy_names", "names_of"]


def names_of(modules: Mapping[str, str]) -> dict[str, str]:
    """Name → module, from module → names with spaces between them.

    >>> names_of({"line": "Laplace Normal", "simplex": "Beta"})
    {'Laplace': 'line', 'Normal': 'line', 'Beta': 'simplex'}
    """
    return {name: module for module, names in modules.items() for name in names.split()}


def lazy_names(
    package: str, modules: Mapping[str, str], *own: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package, from one table: module → its public names.

    `own` are names that the package defines itself. A module that begins with "gramgraph." is one of another package.

    >>> __getattr__, __dir__, __all__ = lazy_names("gramgraph.kernels", {"stationary": "Matern RBF"})
    >>> __getattr__("RBF")
    <class 'gramgraph.kernels.stationary.RBF'>
    """
    homes = names_of(modules)
    listed = sorted([*homes, *own])
    return lambda name: lazy_name(package, homes, name), lambda: listed, listed


def lazy_name(package: str, homes: Mapping[str, str], name: str) -> Any:
    """The value of `name`, from the module of `package` that `homes` gives; kept in the package for the next time.

    >>> lazy_name("gramgraph.kernels", {"RBF": "stationary"}, "RBF")
    <class 'gramgraph.kernels.stationary.RBF'>
    """
    if name not in homes:
        if name.startswith("_"):  # asked for by tools that look whether it is there, and often
            raise AttributeError(f"module {package!r} has no attribute {name!r}.")
        from gramgraph.exceptions import did_you_mean

        if package == "gramgraph":
            from gramgraph._other_words import NAMES

            if name in NAMES:
                raise AttributeError(f"module {package!r} has no attribute {name!r}. Here it is {NAMES[name]}.")
        raise AttributeError(f"module {package!r} has no attribute {name!r}.{did_you_mean(name, homes)}")
    home = homes[name]
    module = home if home.startswith("gramgraph.") else f"{package}.{home}"
    value = getattr(importlib.import_module(module), name)
    setattr(sys.modules[package], name, value)
    return value
