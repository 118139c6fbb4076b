"""What the user writes."""

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
from gramgraph.models.plated.model import PlateModel
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
