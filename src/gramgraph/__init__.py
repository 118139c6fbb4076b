"""gramgraph: draw the graph, choose how each variable depends on its parents, ask p(Q | E)."""

from __future__ import annotations

import importlib
from typing import Any

from gramgraph._lazy import lazy_name

__version__ = "0.2.0"

#: Name → module that defines it: what a first hour needs. Loaded at first use, so that `import gramgraph` stays quick.
_FLAT: dict[str, str] = {
    "AdaBoostClassifier": "estimators",
    "Answer": "answers",
    "BayesianLinearRegression": "estimators",
    "BayesianLogisticRegression": "estimators",
    "BayesianNetwork": "models",
    "Belief": "answers",
    "BernoulliMixture": "estimators",
    "BetaBernoulli": "distributions",
    "Boosted": "conditionals",
    "BudgetError": "exceptions",
    "CategoricalHMM": "sequences",
    "CategoricalMixture": "estimators",
    "ConditionalEmbedding": "estimators",
    "ConditionalLinearGaussian": "conditionals",
    "ConvergenceWarning": "exceptions",
    "Deterministic": "conditionals",
    "Dirichlet": "distributions",
    "Dot": "distributions",
    "DynamicBayesianNetwork": "sequences",
    "Exp": "distributions",
    "FactorGraph": "models",
    "FisherDiscriminant": "estimators",
    "Gaussian": "distributions",
    "GaussianHMM": "sequences",
    "GaussianClassifier": "estimators",
    "GaussianMixture": "estimators",
    "GaussianProcessClassifier": "estimators",
    "GaussianProcessRegressor": "estimators",
    "GentleBoostClassifier": "estimators",
    "GradientBoostingClassifier": "estimators",
    "GradientBoostingRegressor": "estimators",
    "GramGraphError": "exceptions",
    "GraphicalLasso": "estimators",
    "ImpossibleEvidenceError": "exceptions",
    "Index": "distributions",
    "InfluenceDiagram": "models.influence_diagram",
    "KalmanFilter": "sequences",
    "KernelPCA": "estimators",
    "KernelRidge": "estimators",
    "LatentDirichletAllocation": "estimators",
    "Likelihood": "evidence",
    "LinearChainCRF": "sequences",
    "LinearGaussian": "conditionals",
    "Logistic": "distributions",
    "LogitBoostClassifier": "estimators",
    "MarkovNetwork": "models",
    "MixtureOf": "estimators",
    "ModelError": "exceptions",
    "ModelWarning": "exceptions",
    "MulticlassSVC": "estimators",
    "NadarayaWatson": "estimators",
    "NoisyMax": "conditionals",
    "NoisyOr": "conditionals",
    "Not": "evidence",
    "OneOf": "evidence",
    "OptionError": "exceptions",
    "ParseError": "exceptions",
    "RVC": "estimators",
    "RVR": "estimators",
    "SVC": "estimators",
    "SVR": "estimators",
    "Soft": "evidence",
    "KernelConditional": "conditionals",
    "Softmax": "conditionals",
    "StateError": "exceptions",
    "Table": "conditionals",
    "Var": "variables",
    "VariableError": "exceptions",
    "compare": "analysis",
    "cross_validate": "learn",
    "denoise": "engines.best.grid_labels",
    "describe": "data",
    "gibbs_kernel": "engines.sampling.gibbs_kernel",
    "hsic_test": "embeddings",
    "label_grid": "engines.best.grid_labels",
    "KernelPotential": "embeddings",
    "learn_dag": "embeddings",
    "learn_markov": "embeddings",
    "learn_grid": "embeddings",
    "learn_structure": "learn",
    "learn_tree": "embeddings",
    "mmd_test": "embeddings",
    "plan": "questions.planning",
    "read": "io",
    "real": "variables",
    "warmup": "_warmup",
    "write": "io",
}
#: Packages that hold the rest.
_PACKAGES = (
    "analysis",
    "answers",
    "conditionals",
    "data",
    "datasets",
    "distributions",
    "embeddings",
    "engines",
    "estimators",
    "exceptions",
    "factors",
    "gp",
    "graphs",
    "io",
    "kernels",
    "learn",
    "losses",
    "models",
    "plot",
    "sequences",
    "vision",
)
#: Packages for those who extend the library: reachable, not listed.
_UNLISTED = ("explorer", "linalg", "rkhs", "testing", "variables")
#: Place → names that stood at the top level in 0.1. They work until 0.4, with a warning that tells the place.
_MOVED: dict[str, str] = {
    "analysis": "kl_divergence",
    "answers": "RealAnswer RealBelief",
    "conditionals": "Gate GaussianCopula Margin Predictor TreeTable",
    "data": "Discretizer",
    "distributions": (
        "Bernoulli Beta Boltzmann Categorical ChiSquared ConjugatePrior DirichletCategorical Exponential "
        "Gamma GammaPoisson Geometric InverseGamma InverseWishart Laplace Multinomial Normal NormalGamma "
        "NormalInverseWishart NormalNormal Poisson StudentT VonMises VonMisesFisher VonMisesMean Wishart "
        "change_of_variables laplace_approximation"
    ),
    "embeddings": "KernelGrid KernelNetwork KernelTree MeanEmbedding SpectralHMM kci_test learn_spectral_hmm",
    "engines": "gibbs_rows",
    "estimators": (
        "BayesianNetworkClassifier GaussianProcessCounts KernelDensity KernelKMeans KernelNeighborsClassifier "
        "KernelNeighborsRegressor NaiveBayesClassifier OneClassSVM PCA SVCPath TANClassifier graphical_lasso_path "
        "partial_correlations svc_path"
    ),
    "factors": "GaussianFactor TableFactor",
    "io": "to_arviz",
    "kernels": "KernelError",
    "learn": "LinearGaussianPrior fit_margins learn_ising",
    "linalg": "NystromMap PositiveDefiniteError nystrom pivoted_cholesky",
    "models": "Draft LogLinear",
    "rkhs": "RKHSFunction fit_representer karhunen_loeve mercer",
    "sequences": (
        "BayesFilter CubatureKalmanFilter DistributionHMM DurationHMM ExtendedKalmanFilter GaussianMixtureHMM "
        "GraphCRF GridCRF InputHMM MultiCategoricalHMM ParticleFilter PoissonHMM StructuralModel "
        "SwitchingKalmanFilter UnscentedKalmanFilter choose_n_states"
    ),
    "variables": "Real",
}
_NEW_HOMES = {name: place for place, names in _MOVED.items() for name in names.split()}

__all__ = sorted([*_FLAT, *_PACKAGES])


def __getattr__(name: str) -> Any:
    if name in _PACKAGES or name in _UNLISTED:
        return importlib.import_module(f"gramgraph.{name}")
    if name not in _NEW_HOMES:
        return lazy_name(__name__, _FLAT, name)
    import warnings

    place = f"gramgraph.{_NEW_HOMES[name]}"
    text = f"gramgraph.{name} is now {place}.{name}. Use {place}.{name} instead; the old name works until 0.4"
    warnings.warn(text, DeprecationWarning, stacklevel=2)  # once: the name stays in the module from here on
    return lazy_name(__name__, _NEW_HOMES, name)


def __dir__() -> list[str]:
    return __all__
