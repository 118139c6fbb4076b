"""Small models written out from the texts that this library follows: for examples, demos and tests.

>>> import gramgraph as gg
>>> gg.datasets.list()[:3]
('alarm_radio', 'asia', 'burglary')
>>> gg.datasets.load("fuel_gauge").variables
('battery', 'gauge', 'fuel')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramgraph._lazy import lazy_name, names_of

if TYPE_CHECKING:
    from gramgraph.models import GraphicalModel

#: Module → its datasets; a new dataset is one function and one name here.
_HOMES = names_of(
    {
        "networks": "alarm_radio asia burglary card_trick door envelopes fuel_gauge sprinkler two_coins",
        "sequences": "casino hmm_small",
    }
)

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
    return lazy_name(__name__, _HOMES, name)


def __dir__() -> tuple[str, ...]:
    return tuple(__all__)
