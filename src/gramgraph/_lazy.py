"""Public names of a package that load their module at first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["lazy_name"]


def lazy_name(package: str, homes: Mapping[str, str], name: str) -> Any:
    """The value of `name`, from the module of `package` that `homes` gives; kept in the package for the next time.

    A home that begins with "gramgraph." is a module of another package.

    It is what the `__getattr__` of a package calls: `def __getattr__(name): return lazy_name(__name__, _HOMES, name)`.

    >>> lazy_name("gramgraph.kernels", {"RBF": "stationary"}, "RBF")
    <class 'gramgraph.kernels.stationary.RBF'>
    """
    if name not in homes:
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
