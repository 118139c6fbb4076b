"""gramgraph: draw the graph, choose how each variable depends on its parents, ask p(Q | E)."""

from __future__ import annotations

import importlib
from typing import Any

from gramgraph._lazy import lazy_name, names_of

__version__ = "0.2.0"

#: Module → its names that a first hour needs. Loaded at first use, so that `import gramgraph` stays quick.
_FLAT = names_of(
    {
        "_warmup": "warmup",
        "analysis": "compare",
        "answers": "Answer Belief",
        "conditionals": (
            "Boosted ConditionalLinearGaussian Deterministic KernelConditional LinearGaussian NoisyMax NoisyOr "
            "Softmax Table"
        ),
        "data": "describe",
        "distributions": "BetaBernoulli Dirichlet Dot Exp Gaussian Index Logistic",
        "embeddings": "hsic_test KernelPotential learn_dag learn_grid learn_markov learn_tree mmd_test",
        "engines.best.grid_labels": "denoise label_grid",
        "engines.sampling.gibbs_kernel": "gibbs_kernel",
        "estimators": (
            "AdaBoostClassifier BayesianLinearRegression BayesianLogisticRegression BernoulliMixture "
            "CategoricalMixture ConditionalEmbedding FisherDiscriminant GaussianClassifier GaussianMixture "
            "GaussianProcessClassifier GaussianProcessRegressor GentleBoostClassifier GradientBoostingClassifier "
            "GradientBoostingRegressor GraphicalLasso KernelPCA KernelRidge LatentDirichletAllocation "
            "LogitBoostClassifier MixtureOf MulticlassSVC NadarayaWatson RVC RVR SVC SVR"
        ),
        "evidence": "Likelihood Not OneOf Soft",
        "exceptions": (
            "BudgetError ConvergenceWarning GramGraphError ImpossibleEvidenceError ModelError ModelWarning "
            "OptionError ParseError StateError VariableError"
        ),
        "io": "read write",
        "learn": "cross_validate learn_structure",
        "models": "BayesianNetwork FactorGraph MarkovNetwork",
        "models.influence_diagram": "InfluenceDiagram",
        "questions.planning": "plan",
        "sequences": "CategoricalHMM DynamicBayesianNetwork GaussianHMM KalmanFilter LinearChainCRF",
        "variables": "real Var",
    }
)
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
_NEW_HOMES = names_of(
    {
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
)

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
