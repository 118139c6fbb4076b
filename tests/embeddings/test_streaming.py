"""Feature covariances from parts: the same as from all rows at once, whatever the parts."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.embeddings import stream_covariance
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.kernels import RBF, Delta
from gramgraph.rkhs import SpaceError

RNG = np.random.default_rng


def data(n, seed=0):
    rng = RNG(seed)
    x = rng.uniform(-3, 3, n)
    return x, np.sin(x) + 0.1 * rng.normal(size=n)


def test_parts_do_not_matter():
    x, y = data(3000)
    first = stream_covariance([(x[:500], y[:500])], kernel_x=RBF(0.7))
    whole = first.empty().update(x, y)
    parts = first
    for cut in (slice(500, 501), slice(501, 1700), slice(1700, 3000)):
        parts = parts.update(x[cut], y[cut])
    merged = first.merge(first.empty().update(x[500:], y[500:]))
    for found in (parts, merged):
        assert found.n == whole.n == 3000
        for name in ("sum_x", "sum_y", "xx", "xy", "yy"):
            assert np.allclose(getattr(found, name), getattr(whole, name), atol=1e-9)
        assert np.allclose(found.predict(x[:20]), whole.predict(x[:20]), atol=1e-8)


def test_prediction_is_centered_ridge_regression():
    x, y = data(800)
    sums = stream_covariance([(x, y)], kernel_x=RBF(0.7), n_components=100)
    Phi = sums.x.transform(sums.kernel_x.prepare(x))
    Phi = Phi - Phi.mean(axis=0)
    coef = np.linalg.solve(Phi.T @ Phi + 800 * 1e-3 * np.eye(Phi.shape[1]), Phi.T @ (y - y.mean()))
    assert np.allclose(sums.predict(x, reg=1e-3)[:, 0], Phi @ coef + y.mean(), atol=1e-8)
    assert np.abs(sums.predict(x)[:, 0] - np.sin(x)).mean() < 0.03
    assert sums.predict([1e6], reg=1e-3)[0, 0] == pytest.approx(y.mean(), abs=0.3)


def test_labels_give_tables_and_dependence():
    rng = RNG(1)
    a = rng.integers(0, 3, 4000)
    b = (a + (rng.random(4000) < 0.3)) % 3
    letters = np.array(list("uvw"))
    parts = [(letters[a[i : i + 500]], letters[b[i : i + 500]]) for i in range(0, 4000, 500)]
    sums = stream_covariance(parts, kernel_x=Delta(), kernel_y=Delta(), approx="cholesky")
    P = np.zeros((3, 3))
    np.add.at(P, (a, b), 1 / 4000)
    expected = 0.5 * ((P**2 / np.outer(P.sum(1), P.sum(0))).sum() - 1.0)
    assert sums.smi(reg=1e-9) == pytest.approx(expected, abs=1e-6)
    assert sums.hsic() == pytest.approx(((P - np.outer(P.sum(1), P.sum(0))) ** 2).sum(), abs=1e-9)


def test_wrong_parts():
    x, y = data(100)
    sums = stream_covariance([(x, y)])
    for call, error, words in (
        (lambda: stream_covariance([]), ModelError, "no part"),
        (lambda: sums.update(x, y[:5]), ModelError, "row by row"),
        (lambda: sums.update(x, np.full(100, np.nan)), ModelError, "finite"),
        (lambda: sums.merge(stream_covariance([(x, y)])), SpaceError, "Try:"),
        (lambda: sums.empty().covariance(), ModelError, "no rows"),
        (lambda: sums.predict(x, reg=0.0), OptionError, "positive"),
    ):
        with pytest.raises(error, match=words):
            call()
