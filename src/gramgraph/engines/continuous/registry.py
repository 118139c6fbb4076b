"""Engines for models with real-valued variables, by name and by what they can answer."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gramgraph.engines.gaussian.lower import DENSE_LIMIT
from gramgraph.engines.registry import EngineError
from gramgraph.exceptions import OptionError, did_you_mean

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

__all__ = ["ENGINES", "gaussian_engine", "get_engine"]

_HERE = "gramgraph.engines.continuous"

#: Kind of model → name → module and class; "auto" takes the first that fits.
ENGINES: dict[str, dict[str, str]] = {
    "gaussian": {
        "dense": f"{_HERE}.posterior:DenseGaussian",
        "sparse": f"{_HERE}.sparse:SparseGaussian",
        "junction_tree": f"{_HERE}.gaussian_tree:GaussianTree",
        "strong_tree": f"{_HERE}.mixture:StrongEngine",
        "bp": f"{_HERE}.gaussian_bp:GaussianBP",
        "likelihood_weighting": f"{_HERE}.weighting:LikelihoodWeighting",
        "gibbs": f"{_HERE}.gibbs:RealGibbs",
        "laplace": f"{_HERE}.laplace:Laplace",
    },
    "mixed": {
        "mixture": f"{_HERE}.mixture:MixtureEngine",
        "strong_tree": f"{_HERE}.mixture:StrongEngine",
        "junction_tree": f"{_HERE}.mixture:StrongEngine",  # the same: mixed models need a strong one
        "enumeration": f"{_HERE}.mixture:MixtureEngine",
        "rao_blackwell": f"{_HERE}.rao_blackwell:RaoBlackwell",
        "likelihood_weighting": f"{_HERE}.weighting:LikelihoodWeighting",
        "gibbs": f"{_HERE}.gibbs:RealGibbs",
        "laplace": f"{_HERE}.laplace:Laplace",
    },
    "general": {
        "likelihood_weighting": f"{_HERE}.weighting:LikelihoodWeighting",
        "gibbs": f"{_HERE}.gibbs:RealGibbs",
        "laplace": f"{_HERE}.laplace:Laplace",
    },
}


def get_engine(kind: str, name: str, options: Mapping[str, Any] | None = None) -> Any:
    """The engine of this name for a kind of model ("gaussian", "mixed", "general"); `options` are those of its own."""
    known = ENGINES.get(kind, {})
    if name not in known:
        what = {"gaussian": "all-Gaussian", "mixed": "conditional-Gaussian"}.get(kind, "general mixed")
        text = f"{name!r} is no engine for {what} models. Engines: auto, {', '.join(known)}."
        raise EngineError(f"{text}{did_you_mean(name, known)}")
    module, _, cls = known[name].partition(":")
    made = getattr(importlib.import_module(module), cls)
    if options:
        own = [p for p in inspect.signature(made).parameters if p != "strict"]
        for option in options:
            if option not in own:
                takes = f"the options {', '.join(own)}" if own else "no options"
                raise OptionError(f"engine {name!r} takes {takes}, not {option!r}.{did_you_mean(option, own)}")
    return made(**(options or {}))


def gaussian_engine(model: GraphicalModel, name: str, size: int, options: Mapping[str, Any] | None = None) -> Any:
    """The named engine; "auto" is the dense one for small models and the sparse one for large ones."""
    if name == "auto" and size <= DENSE_LIMIT:
        from gramgraph.engines.gaussian.posterior import DenseGaussian

        return DenseGaussian(strict=True)
    return get_engine("gaussian", "sparse" if name == "auto" else name, options)
