"""Estimators that follow scikit-learn's contract, one family per file; loaded at first use."""

from __future__ import annotations

from typing import Any

from gramgraph._lazy import lazy_name

#: Name → module that defines it; a new estimator is one class and one line here.
_HOMES: dict[str, str] = {
    "BayesianLinearRegression": "bayesian_linear",
    "BayesianNetworkClassifier": "network_classifiers",
    "ConditionalEmbedding": "conditional_embedding",
    "GraphicalLasso": "graphical_lasso",
    "GraphicalLassoPath": "graphical_lasso",
    "GaussianProcessClassifier": "gp_classifier",
    "GaussianProcessCounts": "gp_counts",
    "GaussianProcessRegressor": "gp_regressor",
    "KernelDensity": "smoothing",
    "KernelKMeans": "clustering",
    "KernelNeighborsClassifier": "neighbors",
    "KernelNeighborsRegressor": "neighbors",
    "KernelPCA": "pca",
    "KernelRidge": "ridge",
    "NadarayaWatson": "smoothing",
    "NaiveBayesClassifier": "network_classifiers",
    "OneClassSVM": "svm",
    "PCA": "pca",
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
