"""What the user writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramgraph._lazy import lazy_names
from gramgraph.models.plated.model import PlateModel as PlateModel  # what a text with plates makes

if TYPE_CHECKING:
    from gramgraph.models.base import *
    from gramgraph.models.bayesian_network import *
    from gramgraph.models.builders import *
    from gramgraph.models.draft import *
    from gramgraph.models.factor_graph import *
    from gramgraph.models.ising import *
    from gramgraph.models.log_linear import *
    from gramgraph.models.markov_network import *
    from gramgraph.models.named import *
    from gramgraph.models.plated.notation import *

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "base": "GraphicalModel",
        "bayesian_network": "BayesianNetwork",
        "builders": (
            "boltzmann_machine denoising_grid hidden_markov_chain ising_grid markov_chain naive_bayes potts_grid"
        ),
        "draft": "Draft",
        "factor_graph": "FactorGraph",
        "ising": "ising_parameters",
        "log_linear": "Feature LogLinear",
        "markov_network": "MarkovNetwork",
        "named": "NamedGraph NamedJunctionTree",
        "plated.notation": "Plate",
    },
    "PlateModel",
)
