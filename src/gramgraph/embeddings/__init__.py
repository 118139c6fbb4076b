"""Distributions as points of a function space: mean maps, covariance and conditional operators, their rules, and tests.

Two samples are compared by the distance of their mean maps (`mmd_test`), two variables by the norm of their covariance
operator (`hsic_test`), given a third one by that of its residual (`kci_test`). `conditional_operator` learns
x ↦ E[ψ(Y) | x]; `sum_rule`, `chain_rule` and `bayes_rule` compute with it as with tables, and with the delta kernel
they are tables.
"""

from __future__ import annotations

from typing import Any

from gramgraph._lazy import lazy_name

#: Public name → module that defines it; loaded on first use.
_PUBLIC: dict[str, str] = {
    "Anchors": "anchors",
    "ConditionalOperator": "conditional",
    "CovarianceOperator": "operators",
    "Dependence": "dependence",
    "DensityRatio": "ratio",
    "DOMAINS": "domains",
    "FeatureCovariance": "streaming",
    "GridAnswer": "network.grid",
    "JointBelief": "network.joint",
    "KernelGrid": "network.grid",
    "KernelNetwork": "network.dag",
    "KernelTest": "permutation",
    "KernelTree": "network.tree",
    "LineBelief": "network.beliefs",
    "MeanEmbedding": "mean",
    "SpectralHMM": "network.spectral",
    "anchor_points": "anchors",
    "bayes_rule": "rules",
    "chain_rule": "rules",
    "conditional_operator": "conditional",
    "default_kernel": "domains",
    "density_ratio": "ratio",
    "hsic_test": "independence",
    "kci_test": "conditional_independence",
    "kernel_filter": "rules",
    "learn_dag": "network.dag",
    "learn_grid": "network.grid",
    "learn_spectral_hmm": "network.spectral",
    "learn_tree": "network.learn",
    "median_distance": "domains",
    "mmd_test": "two_sample",
    "pairwise_dependence": "dependence",
    "stream_covariance": "streaming",
    "sum_rule": "rules",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return __all__
