"""Estimators that follow scikit-learn's contract, one family a file; loaded at first use."""

from __future__ import annotations

import importlib
from typing import Any

#: Name → module that defines it; a new estimator is one class and one line here.
_HOMES: dict[str, str] = {
    "KernelDensity": "smoothing",
    "KernelKMeans": "clustering",
    "KernelNeighborsClassifier": "neighbors",
    "KernelNeighborsRegressor": "neighbors",
    "KernelPCA": "pca",
    "KernelRidge": "ridge",
    "NadarayaWatson": "smoothing",
    "OneClassSVM": "svm",
    "PCA": "pca",
    "RVC": "rvm",
    "RVR": "rvm",
    "SVC": "svm",
    "SVCPath": "svm",
    "SVR": "svm",
    "svc_path": "svm",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gramgraph.estimators' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gramgraph.estimators.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
