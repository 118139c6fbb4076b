"""Learning from data: tables, hidden and missing values, structure."""

from __future__ import annotations

from gramgraph._lazy import lazy_names

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "bootstrap": "bootstrap_edges EdgeStrengths",
        "calibration": "reliability",
        "causal": "average_effect Effect Identification identify",
        "cross_validation": "cross_validate CrossValidation",
        "hidden_causes": "fci PAG",
        "independence": "independence_test",
        "ising": "IsingPath learn_ising",
        "l1_path": "feature_path FeaturePath",
        "linear": "LinearGaussianPrior",
        "pairwise_trees": "chow_liu tan",
        "posterior": "CredibleAnswer ParameterPosterior",
        "proportional_fitting": "fit_margins",
        "structure": "learn_structure LearnedNetwork score",
        "subset_search": "best_subset FeatureSubset",
    },
)
