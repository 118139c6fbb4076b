"""Whatever the data: finite answers or errors of the library, never NaN, never an error of LAPACK."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from gramgraph import kernels as k
from gramgraph.estimators import GaussianProcessClassifier, GaussianProcessCounts, GaussianProcessRegressor
from gramgraph.exceptions import GramGraphError

KERNELS: dict[str, Any] = {
    "rbf": 1.0 * k.RBF(1.0),
    "matern": 1.0 * k.Matern(1.0, nu=1.5),
    "rational": 1.0 * k.RationalQuadratic(1.0, 0.5),
    "sum": 1.0 * k.RBF(1.0) + 0.5 * k.Matern(2.0, nu=2.5) + k.White(1e-3),
    "linear": k.Linear() + 1.0,
    "default": None,
}
#: Half of the kernels say what the others say; they run with the slow tests.
NAMES = [name if name in ("rbf", "sum") else pytest.param(name, marks=pytest.mark.slow) for name in KERNELS]
METHODS = ("exact", "state_space", "kronecker", "toeplitz", "titsias", "fitc", "sor", "rff", "cg")
CASES = ("duplicates", "agreeing duplicates", "zero noise", "short scale", "long scale", "constant y", "one point")


def data(case: str, method: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Points, targets and noise variance of a case; grids where the method asks for one."""
    rng = np.random.default_rng(3)
    if method == "kronecker":
        a = np.arange(4.0)
        X = np.stack(np.meshgrid(a, a, indexing="ij"), -1).reshape(-1, 2)
    else:
        X = np.linspace(0.0, 4.0, 17)[:, None]
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X)) + 3.0
    alpha = 1e-2
    if case in ("duplicates", "agreeing duplicates"):
        X, y, alpha = np.concatenate([X, X]), np.concatenate([y, y + (case == "duplicates")]), 0.0
    elif case == "zero noise":
        alpha = 0.0
    elif case == "constant y":
        y, alpha = np.full(len(X), 7.0), 0.0
    elif case == "one point":
        X, y = X[:1], y[:1]
    return X, y, alpha


def scaled(kernel: Any, case: str) -> Any:
    if kernel is None or case not in ("short scale", "long scale"):
        return kernel
    ends = kernel.bounds[:, 0 if case == "short scale" else 1]
    lengths = np.array(["length_scale" in name for name in kernel.parameter_names])
    return kernel.with_theta(np.where(lengths, ends, kernel.theta))


def finite(*arrays: Any) -> bool:
    return all(np.isfinite(np.asarray(a)).all() for a in arrays)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("learn", [False, True])
def test_regression(kernel: str, method: str, case: str, learn: bool) -> None:
    X, y, alpha = data(case, method)
    model = GaussianProcessRegressor(
        scaled(KERNELS[kernel], case),
        alpha=alpha,
        approx=method,
        n_inducing=8,
        random_state=0,
        optimizer="fmin_l_bfgs_b" if learn else None,
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except GramGraphError as error:
            assert len(str(error)) > 20
            return
        mean, std = model.predict(X, return_std=True)
        far, cov = model.predict(X[:3] + 100.0, return_cov=True)
    assert finite(mean, std, far, cov, model.log_marginal_likelihood_value_, model.jitter_)
    prior = float(model.kernel_.diag(X[:3] + 100.0).max())
    assert (std >= 0.0).all() and (np.diagonal(cov) >= -1e-9 * prior).all()
    assert np.abs(mean).max() < 100.0  # not a number of the right kind by chance: targets lie within 0 … 8
    assert model.predict(X[:0]).shape == (0,)
    assert model.predict(X[:0], return_std=True)[1].shape == (0,)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("inference", ["laplace", "ep", "probit", "softmax"])
@pytest.mark.parametrize("kernel", NAMES)
def test_classification(kernel: str, inference: str, case: str) -> None:
    X, _, _ = data(case, "exact")
    y = (np.arange(len(X)) * 7) % (3 if inference == "softmax" else 2)
    options: dict[str, Any] = {
        "ep": {"inference": "ep"},
        "probit": {"link": "probit"},
        "softmax": {"multi_class": "softmax"},
    }
    model = GaussianProcessClassifier(scaled(KERNELS[kernel], case), random_state=0, **options.get(inference, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except GramGraphError as error:
            assert case == "one point" and "two classes" in str(error)
            return
    p = model.predict_proba(np.concatenate([X, X[:3] + 100.0]))
    assert finite(p, model.log_marginal_likelihood_value_)
    np.testing.assert_allclose(p.sum(1), 1.0, rtol=1e-9)
    assert model.predict_proba(X[:0]).shape == (0, len(np.unique(y)))
    assert model.predict(X[:0]).shape == (0,)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("kernel", NAMES)
def test_counts(kernel: str, likelihood: str, case: str) -> None:
    X, y, _ = data(case, "exact")
    counts = np.zeros(len(X)) if case == "constant y" else np.round(5.0 * y)
    model = GaussianProcessCounts(scaled(KERNELS[kernel], case), likelihood=likelihood, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, counts)
    mean, std = model.predict(X, return_std=True)
    assert finite(mean, std, model.log_marginal_likelihood_value_) and (mean >= 0.0).all()
    assert model.predict(X[:0]).shape == (0,)
