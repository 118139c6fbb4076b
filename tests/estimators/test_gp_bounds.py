"""Bounds of the search for a kernel's parameters: kept, and reported where the search ended at one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as peer

from gramgraph import kernels
from gramgraph.estimators import GaussianProcessClassifier, GaussianProcessCounts, GaussianProcessRegressor
from gramgraph.exceptions import ModelError
from gramgraph.kernels import RBF, KernelError, White


def data(n: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 6, n))[:, None]
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def warned(work: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        work()
    assert all(issubclass(one.category, ConvergenceWarning) for one in record)
    return [str(one.message) for one in record]


def test_bounds_of_a_kernel_are_a_part_of_it() -> None:
    k = (2.0 * RBF([1.0, 2.0]) + White(0.1)).with_bounds({"terms[1].variance": (1e-6, 1.0)}, length_scale=(0.1, 50.0))
    np.testing.assert_allclose(np.exp(k.bounds[1:]), [[0.1, 50.0], [0.1, 50.0], [1e-6, 1.0]])
    np.testing.assert_allclose(np.exp(k.bounds[0]), [1e-5, 1e5])
    for same in (k.with_theta(k.theta), k.fix("variance").free("variance"), k.with_params(terms__1__variance=0.2)):
        np.testing.assert_array_equal(same.bounds, k.bounds)
    assert k != 2.0 * RBF([1.0, 2.0]) + White(0.1)
    end = k.with_theta(k.bounds[:, 1])
    np.testing.assert_array_equal(end.theta, k.bounds[:, 1])  # to the last digit
    each = RBF([1.0, 2.0]).with_bounds(length_scale=((0.1, 0.2), (10.0, 20.0)))
    np.testing.assert_allclose(np.exp(each.bounds), [[0.1, 10.0], [0.2, 20.0]])


@pytest.mark.parametrize("ends", [(2.0, 1.0), (-1.0, 1.0), (1.0,), "wide", ("a", "b"), (np.nan, 1.0)])
def test_bounds_that_are_none(ends: Any) -> None:
    with pytest.raises(KernelError, match="bounds"):
        RBF().with_bounds(length_scale=ends)
    with pytest.raises(KernelError, match="Did you mean 'length_scale'"):
        RBF().with_bounds(length_scal=(1.0, 2.0))


def test_the_learned_kernel_keeps_the_bounds_of_the_given_one() -> None:
    X, y = data()
    theirs = peer.ConstantKernel(1.0, (1e-2, 1e2)) * peer.RBF(1.0, (0.5, 5.0)) + peer.WhiteKernel(0.1, (1e-4, 1.0))
    model = GaussianProcessRegressor(theirs).fit(X, y)
    np.testing.assert_allclose(model.kernel_.bounds, theirs.bounds)
    ours = (RBF() + White(0.1)).with_bounds(length_scale=(0.2, 4.0))
    np.testing.assert_array_equal(GaussianProcessRegressor(ours).fit(X, y).kernel_.bounds, ours.bounds)
    np.testing.assert_array_equal(GaussianProcessClassifier(ours).fit(X, y > 0).kernel_.bounds, ours.bounds)


def test_a_parameter_that_ends_at_its_bound_is_named() -> None:
    X, y = data()
    narrow = (RBF() + White(0.01)).with_bounds(length_scale=(1e-2, 0.1))
    for model, t in (
        (GaussianProcessRegressor(narrow), y),
        (GaussianProcessClassifier(narrow), y > 0),
        (GaussianProcessCounts(narrow), np.round(np.exp(2 * y))),
    ):
        (text, *_) = [text for text in warned(lambda m=model, t=t: m.fit(X, t)) if "length_scale" in text]
        assert "terms[0].length_scale" in text and "upper bound 0.1" in text and "with_bounds" in text
        assert not warned(lambda m=model, t=t: m.set_params(optimizer=None).fit(X, t))
    theirs = peer.RBF(1.0, (1e-2, 0.1)) + peer.WhiteKernel(0.01)
    assert any("k1__length_scale" in text for text in warned(lambda: GaussianProcessRegressor(theirs).fit(X, y)))
    assert not warned(lambda: GaussianProcessRegressor(RBF() + White(0.01)).fit(X, y))


def test_noisy_data_and_no_noise_term() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 5, (40, 1)), rng.normal(size=40)
    texts = warned(lambda: GaussianProcessRegressor().fit(X, y))
    assert any("White" in text and "alpha" in text for text in texts)
    for good in (GaussianProcessRegressor(RBF() + White(0.1)), GaussianProcessRegressor(alpha=1.0)):
        assert not any("noise term" in text for text in warned(lambda m=good: m.fit(X, y)))
    smooth = warned(lambda: GaussianProcessRegressor().fit(X, np.sin(X[:, 0])))
    assert not any("noise term" in text for text in smooth)


def test_further_starts_need_finite_bounds() -> None:
    X, y = data()
    for kernel in (peer.RBF(1.0, (1e-3, np.inf)), RBF().with_bounds(length_scale=(1e-3, np.inf))):
        for model, t in ((GaussianProcessRegressor(kernel, alpha=0.1), y), (GaussianProcessClassifier(kernel), y > 0)):
            with pytest.raises(ModelError, match="all bounds are finite"):
                model.set_params(n_restarts_optimizer=2).fit(X, t)
            assert np.isfinite(model.set_params(n_restarts_optimizer=0).fit(X, t).predict(X)).all()
    with pytest.raises(ModelError, match="all bounds are finite"):
        GaussianProcessRegressor(peer.RBF(1.0, (-np.inf, np.inf))).fit(X, y)
    assert kernels.RBF().limits == ()
