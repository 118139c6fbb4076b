"""Estimators that follow scikit-learn's contract, one family per file; loaded at first use."""

from __future__ import annotations

from typing import Any

from gramgraph._lazy import lazy_name

#: Name → module that defines it; a new estimator is one class and one line here.
_HOMES: dict[str, str] = {
    "AdaBoostClassifier": "boosting",
    "BasisRegression": "basis_regression",
    "BayesianLinearRegression": "bayesian_linear",
    "BayesianLogisticRegression": "logistic",
    "BayesianNetworkClassifier": "network_classifiers",
    "BernoulliMixture": "mixture_columns",
    "CategoricalMixture": "mixture_columns",
    "ConditionalEmbedding": "conditional_embedding",
    "FisherDiscriminant": "discriminant",
    "GaussianClassifier": "discriminant",
    "GentleBoostClassifier": "boosting",
    "GradientBoostingClassifier": "gradient_boosting",
    "GradientBoostingRegressor": "gradient_boosting",
    "GraphicalLasso": "graphical_lasso",
    "GraphicalLassoPath": "graphical_lasso",
    "GaussianMixture": "mixture",
    "GaussianProcessClassifier": "gp_classifier",
    "GaussianProcessCounts": "gp_counts",
    "GaussianProcessRegressor": "gp_regressor",
    "KMeans": "clustering",
    "KernelDensity": "smoothing",
    "KernelKMeans": "clustering",
    "KernelNeighborsClassifier": "neighbors",
    "KernelNeighborsRegressor": "neighbors",
    "KernelPCA": "pca",
    "KernelRidge": "ridge",
    "Lasso": "least_squares",
    "LatentDirichletAllocation": "topics",
    "LeastSquares": "least_squares",
    "MixtureOf": "mixture_columns",
    "MulticlassSVC": "multiclass_svm",
    "LogitBoostClassifier": "boosting",
    "NadarayaWatson": "smoothing",
    "NaiveBayesClassifier": "network_classifiers",
    "NystromFeatures": "feature_maps",
    "OneClassSVM": "svm",
    "PCA": "pca",
    "PrunedTree": "pruned_tree",
    "PrunedTreeRegressor": "pruned_tree",
    "RandomFeatures": "feature_maps",
    "RVC": "rvm",
    "RVR": "rvm",
    "SVC": "svm",
    "SVCPath": "svm",
    "SVR": "svm",
    "TANClassifier": "network_classifiers",
    "graphical_lasso_path": "graphical_lasso",
    "partial_correlations": "graphical_lasso",
    "svc_path": "svm",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
