"""Engines by name. One new engine = one file + one line."""

from __future__ import annotations

import importlib
from typing import Any

from gramgraph.exceptions import GramGraphError, did_you_mean

__all__ = ["ENGINES", "EngineError", "get_engine"]

#: Name → module and class, loaded on first use.
ENGINES: dict[str, str] = {
    "bp": "gramgraph.engines.propagation.belief_propagation:BeliefPropagation",
    "annealed": "gramgraph.engines.sampling.annealed:Annealed",
    "block_gibbs": "gramgraph.engines.sampling.block_gibbs:BlockGibbs",
    "colored_gibbs": "gramgraph.engines.sampling.gibbs:ColoredGibbs",
    "elimination": "gramgraph.engines.exact.elimination:Elimination",
    "enumeration": "gramgraph.engines.exact.enumeration:Enumeration",
    "factor_tree": "gramgraph.engines.exact.factor_tree:FactorTree",
    "gibbs": "gramgraph.engines.sampling.gibbs:Gibbs",
    "importance": "gramgraph.engines.sampling.adaptive:AdaptiveImportance",
    "join_graph": "gramgraph.engines.propagation.join_graph:JoinGraph",
    "junction_tree": "gramgraph.engines.exact.junction_tree:JunctionTree",
    "likelihood_weighting": "gramgraph.engines.sampling.importance:DiscreteWeighting",
    "mean_field": "gramgraph.engines.propagation.mean_field:MeanField",
    "metropolis": "gramgraph.engines.sampling.metropolis:Metropolis",
    "rejection": "gramgraph.engines.sampling.importance:Rejection",
    "structured_mean_field": "gramgraph.engines.propagation.structured_mean_field:StructuredMeanField",
    "swendsen_wang": "gramgraph.engines.sampling.swendsen_wang:SwendsenWang",
    "tempering": "gramgraph.engines.sampling.tempering:Tempering",
    "trw": "gramgraph.engines.propagation.tree_reweighted:TreeReweighted",
}
_made: dict[str, Any] = {}


class EngineError(GramGraphError, ValueError):
    """A name that is no engine."""


def get_engine(name: str) -> Any:
    """The engine of this name; "auto" is the compiled junction tree."""
    if name == "auto":
        name = "junction_tree"
    found = _made.get(name)
    if found is None:
        if name not in ENGINES:
            raise EngineError(
                f"{name!r} is no engine. Engines: auto, {', '.join(ENGINES)}.{did_you_mean(name, ENGINES)}"
            )
        module, _, cls = ENGINES[name].partition(":")
        found = _made[name] = getattr(importlib.import_module(module), cls)()
    return found
