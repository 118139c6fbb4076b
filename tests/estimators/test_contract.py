"""Every estimator that the package defines is under scikit-learn's contract: classes are found, not listed.

Families with options worth a check of their own keep them in a list `CONTRACT` of their test file. Whatever is found
beside those is checked here as its constructor makes it. Models of sequences are in tests/sequences/test_contract.py.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator

from gramgraph import estimators
from gramgraph.testing import find_classes
from tests.embeddings import test_conditional_embedding
from tests.estimators import (
    test_bayesian_linear,
    test_contract_kernel_machines,
    test_discriminant,
    test_gp_classifier,
    test_gp_regressor,
    test_graphical_lasso,
    test_logistic,
    test_mixture,
    test_network_classifiers,
    test_rvm,
    test_svm,
    test_topics,
)

LISTS = (
    test_bayesian_linear,
    test_conditional_embedding,
    test_contract_kernel_machines,
    test_discriminant,
    test_gp_classifier,
    test_gp_regressor,
    test_graphical_lasso,
    test_logistic,
    test_mixture,
    test_network_classifiers,
    test_rvm,
    test_svm,
    test_topics,
)
BASES = {
    "BoostedClassifier",
    "BoostedEstimator",
    "KernelEstimator",
    "LatentEstimator",
    "MixtureEstimator",
    "NamedKernelEstimator",
    "ProcessPoints",
    "RelevanceMachine",
    "_ColumnMixture",
    "_Features",
    "_Pruned",
    "SupportVectors",
}
#: Few rounds of the same code, where a fit takes long. `make test-all` checks these as their constructors make them.
FEW_ROUNDS: dict[str, dict[str, Any]] = {
    "AdaBoostClassifier": {"n_estimators": 8},
    "GentleBoostClassifier": {"n_estimators": 8},
    "PrunedTree": {"cv": 2, "max_depth": 4},
    "PrunedTreeRegressor": {"cv": 2, "max_depth": 4},
}


def found() -> set[type]:
    """Public estimators anywhere but in `sequences`; bases that no user makes are left out."""
    kinds = find_classes(BaseEstimator, "data", "embeddings", "estimators", "gp", "learn")
    return {kind for kind in kinds if kind.__name__ not in BASES}


def check(kind: type, options: dict[str, Any] | None = None) -> None:
    """The contract for a class of estimators, whoever wrote it."""
    try:
        estimator = kind().set_params(**options or {})
    except TypeError as error:
        raise AssertionError(f"{kind.__name__} needs arguments: give each parameter a default.") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(estimator, on_skip=None)


@pytest.mark.parametrize("options", [FEW_ROUNDS, pytest.param({}, marks=pytest.mark.slow)], ids=["few", "whole"])
def test_every_estimator_is_checked(options: dict[str, dict[str, Any]]) -> None:
    covered = {type(estimator) for module in LISTS for estimator in module.CONTRACT}
    for kind in found() - covered:
        check(kind, options.get(kind.__name__))


def test_every_estimator_is_public() -> None:
    here = {kind for kind in found() if kind.__module__.startswith("gramgraph.estimators")}
    hidden = {kind.__name__ for kind in here} - set(estimators.__all__)
    assert not hidden, f"add a line in estimators/__init__.py for {hidden}"


BAD = """
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

class {name}(RegressorMixin, BaseEstimator):
    def __init__(self, shift{default}):
        self.shift = shift

    def fit(self, X, y):
        self.mean_ = np.mean(y) + self.shift
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)
"""


@pytest.mark.parametrize("name, default, wrong", [("Careless", "=0.0", None), ("Bare", "", "give each parameter")])
def test_the_contract_finds_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, default: str, wrong: str | None
) -> None:
    before = found()
    (tmp_path / f"{name.lower()}.py").write_text(BAD.format(name=name, default=default))
    monkeypatch.setattr(estimators, "__path__", [*estimators.__path__, str(tmp_path)])
    [kind] = found() - before
    assert kind.__name__ == name
    with pytest.raises(AssertionError if wrong else Exception, match=wrong):  # scikit-learn raises errors of many kinds
        check(kind)
    with pytest.raises(AssertionError, match=name):
        test_every_estimator_is_public()
