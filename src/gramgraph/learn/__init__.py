"""Learning from data: tables, hidden and missing values, structure."""

from typing import Any

from gramgraph._lazy import lazy_name

_LAZY = {
    "CredibleAnswer": "posterior",
    "CrossValidation": "cross_validation",
    "EdgeStrengths": "bootstrap",
    "Effect": "causal",
    "FeaturePath": "l1_path",
    "FeatureSubset": "best_subset",
    "Identification": "causal",
    "IsingPath": "ising",
    "LearnedNetwork": "structure",
    "LinearGaussianPrior": "linear",
    "ParameterPosterior": "posterior",
    "PAG": "hidden_causes",
    "average_effect": "causal",
    "best_subset": "best_subset",
    "bootstrap_edges": "bootstrap",
    "chow_liu": "chow_liu",
    "cross_validate": "cross_validation",
    "feature_path": "l1_path",
    "fit_margins": "proportional_fitting",
    "fci": "hidden_causes",
    "identify": "causal",
    "independence_test": "independence",
    "learn_ising": "ising",
    "learn_structure": "structure",
    "reliability": "calibration",
    "score": "structure",
    "tan": "chow_liu",
}

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _LAZY, name)


def __dir__() -> list[str]:
    return __all__
