"""Estimators that follow scikit-learn's contract, one family per file; loaded at first use."""

from __future__ import annotations

from gramgraph._lazy import lazy_names

#: Module → its names; a new estimator is one class and one name here.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "basis_regression": "BasisRegression",
        "bayesian_linear": "BayesianLinearRegression",
        "boosting": "AdaBoostClassifier GentleBoostClassifier LogitBoostClassifier",
        "clustering": "KernelKMeans KMeans",
        "conditional_embedding": "ConditionalEmbedding",
        "discriminant": "FisherDiscriminant GaussianClassifier",
        "feature_maps": "NystromFeatures RandomFeatures",
        "gp_classifier": "GaussianProcessClassifier",
        "gp_counts": "GaussianProcessCounts",
        "gp_regressor": "GaussianProcessRegressor",
        "gradient_boosting": "GradientBoostingClassifier GradientBoostingRegressor",
        "graphical_lasso": "graphical_lasso_path GraphicalLasso GraphicalLassoPath partial_correlations",
        "least_squares": "Lasso LeastSquares",
        "logistic": "BayesianLogisticRegression",
        "mixture": "GaussianMixture",
        "mixture_columns": "BernoulliMixture CategoricalMixture MixtureOf",
        "multiclass_svm": "MulticlassSVC",
        "neighbors": "KernelNeighborsClassifier KernelNeighborsRegressor",
        "network_classifiers": "BayesianNetworkClassifier NaiveBayesClassifier TANClassifier",
        "pca": "KernelPCA PCA",
        "pruned_tree": "PrunedTree PrunedTreeRegressor",
        "ridge": "KernelRidge",
        "rvm": "RVC RVR",
        "smoothing": "KernelDensity NadarayaWatson",
        "svm": "OneClassSVM SVC svc_path SVCPath SVR",
        "topics": "LatentDirichletAllocation",
    },
)
