"""Distributions as points of a function space: mean maps, covariance and conditional operators, their rules, and tests.

Two samples are compared by the distance of their mean maps (`mmd_test`), two variables by the norm of their covariance
operator (`hsic_test`), given a third one by that of its residual (`kci_test`). `conditional_operator` learns
x ↦ E[ψ(Y) | x]; `sum_rule`, `chain_rule` and `bayes_rule` compute with it as with tables, and with the delta kernel
they are tables. `CovarianceOperator` and `ConditionalOperator` compose with `.T` and `@` as in C_AA C_{B|A}ᵀ C_{C|B}ᵀ;
`TensorOperator` has more than two modes, and `OperatorTree` passes messages with them.
"""

from __future__ import annotations

from gramgraph._lazy import lazy_names

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "anchors": "anchor_points Anchors",
        "composition": "one_point Operator reparameterize",
        "conditional": "conditional_operator ConditionalOperator",
        "conditional_independence": "kci_test",
        "dependence": "Dependence pairwise_dependence",
        "gramgraph.answers.joint_belief": "JointBelief",
        "gramgraph.answers.line_belief": "LineBelief",
        "gramgraph.conditionals.potential": "KernelPotential",
        "gramgraph.kernels.domains": "default_kernel DOMAINS median_distance",
        "gramgraph.models.of_potentials": "KernelFactorGraph KernelMarkovNetwork",
        "independence": "hsic_test",
        "mean": "MeanEmbedding",
        "network.dag": "KernelNetwork learn_dag",
        "network.grid": "GridAnswer KernelGrid learn_grid",
        "network.learn": "learn_tree",
        "network.pairwise": "learn_markov",
        "network.spectral": "learn_spectral_hmm SpectralHMM",
        "network.tree": "KernelTree",
        "operators": "CovarianceOperator",
        "permutation": "KernelTest",
        "ratio": "density_ratio DensityRatio",
        "rules": "bayes_rule chain_rule kernel_filter sum_rule",
        "streaming": "FeatureCovariance stream_covariance",
        "tensors": "diagonal_tensor OperatorTree partly_diagonal_tensor TensorOperator",
        "two_sample": "mmd_test",
    },
)
