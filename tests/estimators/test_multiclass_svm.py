"""Row F5: one objective for all classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.svm import LinearSVC

import gramgraph as gg
from gramgraph._numerics.compiling import tier


def objective(W: np.ndarray, b: np.ndarray, X: np.ndarray, y: np.ndarray, C: float) -> float:
    F = X @ W.T + b
    margins = F + 1.0
    at = np.arange(len(y))
    margins[at, y] -= 1.0
    return 0.5 * float((W**2).sum() + (b**2).sum()) + C * float((margins.max(axis=1) - F[at, y]).sum())


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_row_f5_not_above_liblinear(load: object, C: float) -> None:
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = LinearSVC(C=C, multi_class="crammer_singer", tol=1e-6, max_iter=200000, random_state=0).fit(X, y)
    ours = gg.MulticlassSVC(kernel="linear", C=C, random_state=0).fit(X, y)
    W = ours.dual_coef_.T @ X[ours.support_]
    b = ours.dual_coef_.sum(axis=0)
    assert ours.objective_ == pytest.approx(objective(W, b, X, y, C), rel=1e-6)
    assert ours.objective_ <= 1.0001 * objective(peer.coef_, peer.intercept_, X, y, C)
    np.testing.assert_allclose(ours.decision_function(X), X @ W.T + b, atol=1e-9)
    assert 0.0 <= ours.gap_ <= 1e-5 * ours.objective_ + 1e-12


def test_kernels_and_two_classes() -> None:
    X, y = load_iris(return_X_y=True)
    model = gg.MulticlassSVC(kernel="rbf", C=10.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    K = model.kernel_.gram(X)
    same = gg.MulticlassSVC(kernel="precomputed", C=10.0, random_state=0).fit(K, y)
    np.testing.assert_allclose(same.decision_function(K), model.decision_function(X), atol=1e-6)
    # two classes: w₁ = −w₂ = w/2, the objective is that of a machine with half the penalty
    two = y < 2
    both = gg.MulticlassSVC(kernel="rbf", gamma=0.5, fit_intercept=False, tol=1e-8, random_state=0).fit(X[two], y[two])
    assert both.decision_function(X[two]).shape == (100,)
    with pytest.raises(gg.ModelError, match="one class only"):
        gg.MulticlassSVC().fit(X[:10], y[:10])


@pytest.mark.parametrize("C", [0.1, 1.0, 1e15])
def test_coefficients_that_rounding_leaves_are_no_support(C: float) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = []
    for name in ("plain", "compiled"):
        with tier(name):
            model = gg.MulticlassSVC(kernel="rbf", C=C, random_state=0).fit(X, y)
        size = np.abs(model.dual_coef_).max(axis=1)
        assert size.min() > 1e-6 * size.max() and model.score(X, y) == 1.0
        found.append(model.support_)
    np.testing.assert_array_equal(*found)
