"""What models and conditionals call when they learn: one name for each of their methods."""

from __future__ import annotations

from gramgraph.embeddings.network.fitting import fit_kernel
from gramgraph.embeddings.network.pairwise import fit_potentials
from gramgraph.learn.boosted import fit_boosted
from gramgraph.learn.causal import evaluate_effect
from gramgraph.learn.fitting import fit_network
from gramgraph.learn.impute import impute
from gramgraph.learn.log_linear import fit_log_linear, fit_markov_network
from gramgraph.learn.posterior import fit_posterior
from gramgraph.learn.tree_table import fit_tree_table

__all__ = [
    "evaluate_effect",
    "fit_boosted",
    "fit_kernel",
    "fit_log_linear",
    "fit_markov_network",
    "fit_network",
    "fit_posterior",
    "fit_potentials",
    "fit_tree_table",
    "impute",
]
