"""Small models written out from the texts that this library follows: for examples, demos and tests.

>>> import gramgraph as gg
>>> gg.datasets.list()[:3]
('alarm_radio', 'asia', 'burglary')
>>> gg.datasets.load("fuel_gauge").variables
('battery', 'gauge', 'fuel')
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramgraph.models import GraphicalModel

#: Name → module that defines it; a new dataset is one function and one line here.
_HOMES: dict[str, str] = {
    "alarm_radio": "networks",
    "asia": "networks",
    "burglary": "networks",
    "card_trick": "networks",
    "casino": "sequences",
    "door": "networks",
    "envelopes": "networks",
    "fuel_gauge": "networks",
    "hmm_small": "sequences",
    "sprinkler": "networks",
    "two_coins": "networks",
}

__all__ = sorted([*_HOMES, "list", "load"])


def list() -> tuple[str, ...]:
    """Names of all datasets.

    Examples
    --------
    >>> import gramgraph as gg
    >>> "asia" in gg.datasets.list()
    True
    """
    return tuple(sorted(_HOMES))


def load(name: str, **options: Any) -> GraphicalModel:
    """The dataset of this name; options go to its function.

    Parameters
    ----------
    name : one of `list()`.
    **options : of its function, such as `n_rolls` of "casino".

    Examples
    --------
    >>> load("asia")
    BayesianNetwork('asia', 8 variables, 8 edges, 18 parameters)
    """
    if name not in _HOMES:
        from gramgraph.exceptions import VariableError, did_you_mean, listing

        raise VariableError(f"{name!r} is not a dataset. Datasets: {listing(_HOMES, 30)}.{did_you_mean(name, _HOMES)}")
    return __getattr__(name)(**options)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gramgraph.datasets' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gramgraph.datasets.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> tuple[str, ...]:
    return tuple(__all__)
