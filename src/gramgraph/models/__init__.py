"""What the user writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramgraph._lazy import lazy_name
from gramgraph.models.plated.model import PlateModel  # what a text with plates makes: known as soon as a network is

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel
    from gramgraph.models.bayesian_network import BayesianNetwork
    from gramgraph.models.builders import (
        boltzmann_machine,
        denoising_grid,
        hidden_markov_chain,
        ising_grid,
        markov_chain,
        naive_bayes,
        potts_grid,
    )
    from gramgraph.models.draft import Draft
    from gramgraph.models.factor_graph import FactorGraph
    from gramgraph.models.ising import ising_parameters
    from gramgraph.models.log_linear import Feature, LogLinear
    from gramgraph.models.markov_network import MarkovNetwork
    from gramgraph.models.named import NamedGraph, NamedJunctionTree
    from gramgraph.models.plated.notation import Plate

__all__ = [
    "BayesianNetwork",
    "Draft",
    "FactorGraph",
    "Feature",
    "GraphicalModel",
    "LogLinear",
    "MarkovNetwork",
    "NamedGraph",
    "NamedJunctionTree",
    "Plate",
    "PlateModel",
    "boltzmann_machine",
    "denoising_grid",
    "hidden_markov_chain",
    "ising_grid",
    "ising_parameters",
    "markov_chain",
    "naive_bayes",
    "potts_grid",
]

#: Public name → module that defines it; loaded on first use.
_HOMES: dict[str, str] = {
    "GraphicalModel": "base",
    "BayesianNetwork": "bayesian_network",
    "boltzmann_machine": "builders",
    "denoising_grid": "builders",
    "hidden_markov_chain": "builders",
    "ising_grid": "builders",
    "markov_chain": "builders",
    "naive_bayes": "builders",
    "potts_grid": "builders",
    "Draft": "draft",
    "FactorGraph": "factor_graph",
    "ising_parameters": "ising",
    "Feature": "log_linear",
    "LogLinear": "log_linear",
    "MarkovNetwork": "markov_network",
    "NamedGraph": "named",
    "NamedJunctionTree": "named",
    "Plate": "plated.notation",
}


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
