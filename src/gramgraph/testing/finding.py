"""Find what a contract must cover: the classes that a package defines, whether or not anybody listed them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any


def find_classes(base: type[Any], *packages: str) -> list[type[Any]]:
    """Every public concrete class under `base` that a module of these packages of gramgraph defines.

    All modules of the packages are imported. A class counts where it is defined, not where it is imported; names that
    begin with "_", classes with abstract methods and `base` itself are left out.

    Parameters
    ----------
    base : the class that they inherit.
    *packages : names of packages of gramgraph.

    Examples
    --------
    >>> from gramgraph.conditionals import Conditional
    >>> [kind.__name__ for kind in find_classes(Conditional, "conditionals") if "Noisy" in kind.__name__]
    ['NoisyMax', 'NoisyOr']
    """
    found = {}
    for package in packages:
        for module in _modules(f"gramgraph.{package}"):
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__:
                    if value is not base and not value.__name__.startswith("_") and not inspect.isabstract(value):
                        found[value.__module__, value.__name__] = value
    return [found[key] for key in sorted(found)]


def _modules(name: str) -> list[Any]:
    top = importlib.import_module(name)
    below = pkgutil.walk_packages(getattr(top, "__path__", ()), f"{name}.")
    return [top, *(importlib.import_module(each.name) for each in below)]
