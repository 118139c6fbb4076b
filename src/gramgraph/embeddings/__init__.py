"""Distributions as points of a function space: mean maps, covariance and conditional operators, their rules, and tests.

Two samples are compared by the distance of their mean maps (`mmd_test`), two variables by the norm of their covariance
operator (`hsic_test`), given a third one by that of its residual (`kci_test`). `conditional_operator` learns
x ↦ E[ψ(Y) | x]; `sum_rule`, `chain_rule` and `bayes_rule` compute with it as with tables, and with the delta kernel
they are tables. `CovarianceOperator` and `ConditionalOperator` compose with `.T` and `@` as in C_AA C_{B|A}ᵀ C_{C|B}ᵀ;
`TensorOperator` has more than two modes, and `OperatorTree` passes messages with them.
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
    "DOMAINS": "gramgraph.kernels.domains",
    "FeatureCovariance": "streaming",
    "GridAnswer": "network.grid",
    "JointBelief": "gramgraph.answers.joint_belief",
    "KernelGrid": "network.grid",
    "KernelFactorGraph": "gramgraph.models.of_potentials",
    "KernelMarkovNetwork": "gramgraph.models.of_potentials",
    "KernelNetwork": "network.dag",
    "KernelPotential": "gramgraph.conditionals.potential",
    "KernelTest": "permutation",
    "KernelTree": "network.tree",
    "LineBelief": "gramgraph.answers.line_belief",
    "MeanEmbedding": "mean",
    "Operator": "composition",
    "OperatorTree": "tensors",
    "SpectralHMM": "network.spectral",
    "TensorOperator": "tensors",
    "anchor_points": "anchors",
    "bayes_rule": "rules",
    "chain_rule": "rules",
    "conditional_operator": "conditional",
    "default_kernel": "gramgraph.kernels.domains",
    "density_ratio": "ratio",
    "diagonal_tensor": "tensors",
    "hsic_test": "independence",
    "kci_test": "conditional_independence",
    "kernel_filter": "rules",
    "learn_dag": "network.dag",
    "learn_grid": "network.grid",
    "learn_markov": "network.pairwise",
    "learn_spectral_hmm": "network.spectral",
    "learn_tree": "network.learn",
    "median_distance": "gramgraph.kernels.domains",
    "mmd_test": "two_sample",
    "one_point": "composition",
    "pairwise_dependence": "dependence",
    "partly_diagonal_tensor": "tensors",
    "reparameterize": "composition",
    "stream_covariance": "streaming",
    "sum_rule": "rules",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return __all__
