"""Contract checks that ship with the package: what every factor, engine and kernel must hold to.

They raise `AssertionError` with a sentence, and need no test framework.
"""

from gramgraph.testing.distributions import check_distribution
from gramgraph.testing.engines import check_engine
from gramgraph.testing.factors import check_factor
from gramgraph.testing.finding import find_classes
from gramgraph.testing.kernels import check_kernel
from gramgraph.testing.random_models import random_bayesian_network, random_markov_network, random_question

__all__ = [
    "check_distribution",
    "check_engine",
    "check_factor",
    "check_kernel",
    "find_classes",
    "random_bayesian_network",
    "random_markov_network",
    "random_question",
]
