"""gramgraph: draw the graph, choose how each variable depends on its parents, ask p(Q | E)."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

#: Public name → module that defines it; loaded on first use, so that `import gramgraph` stays quick.
_PUBLIC: dict[str, str] = {
    "Answer": "answers",
    "BayesianNetwork": "models",
    "Belief": "answers",
    "BudgetError": "exceptions",
    "Deterministic": "conditionals",
    "Draft": "models",
    "FactorGraph": "models",
    "GramGraphError": "exceptions",
    "ImpossibleEvidenceError": "exceptions",
    "KernelDensity": "estimators",
    "KernelError": "kernels",
    "KernelKMeans": "estimators",
    "KernelNeighborsClassifier": "estimators",
    "KernelNeighborsRegressor": "estimators",
    "KernelPCA": "estimators",
    "KernelRidge": "estimators",
    "Likelihood": "evidence",
    "LogLinear": "models",
    "MarkovNetwork": "models",
    "ModelError": "exceptions",
    "ModelWarning": "exceptions",
    "NadarayaWatson": "estimators",
    "NoisyMax": "conditionals",
    "NoisyOr": "conditionals",
    "Not": "evidence",
    "NystromMap": "linalg",
    "OneClassSVM": "estimators",
    "OneOf": "evidence",
    "OptionError": "exceptions",
    "PCA": "estimators",
    "ParseError": "exceptions",
    "PositiveDefiniteError": "linalg",
    "RKHSFunction": "rkhs",
    "RVC": "estimators",
    "RVR": "estimators",
    "SVC": "estimators",
    "SVCPath": "estimators",
    "SVR": "estimators",
    "Soft": "evidence",
    "StateError": "exceptions",
    "Table": "conditionals",
    "TableFactor": "factors",
    "TreeTable": "conditionals",
    "Var": "variables",
    "VariableError": "exceptions",
    "fit_representer": "rkhs",
    "karhunen_loeve": "rkhs",
    "kl_divergence": "engines.information",
    "mercer": "rkhs",
    "nystrom": "linalg",
    "pivoted_cholesky": "linalg",
    "plan": "engines",
    "read": "io",
    "svc_path": "estimators",
    "write": "io",
}
_MODULES = (
    "conditionals",
    "datasets",
    "engines",
    "estimators",
    "exceptions",
    "factors",
    "graphs",
    "io",
    "kernels",
    "linalg",
    "models",
    "plot",
    "rkhs",
    "testing",
    "variables",
)

__all__ = sorted([*_PUBLIC, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f"gramgraph.{_PUBLIC[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"gramgraph.{name}")
    else:
        raise AttributeError(f"module 'gramgraph' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
