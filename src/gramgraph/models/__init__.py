"""What the user writes."""

from gramgraph.models.base import GraphicalModel
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.markov_network import MarkovNetwork

__all__ = ["BayesianNetwork", "GraphicalModel", "MarkovNetwork"]
