"""Pictures of kernels hold what they claim to show."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph import kernels
from gramgraph.estimators import KernelPCA
from gramgraph.exceptions import ModelError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from gramgraph.plot.kernels import plot_kernel, plot_kernel_draws, plot_kernel_pca  # noqa: E402


def test_kernel_functions_are_drawn_with_their_values() -> None:
    ax = plot_kernel([kernels.RBF(0.5), 2 * kernels.RBF(1.0)], at=1.0, span=(-2.0, 2.0))
    x, y = ax.lines[1].get_data()
    np.testing.assert_allclose(y, 2 * np.exp(-0.5 * (x - 1.0) ** 2), rtol=1e-10)
    assert len(ax.get_legend().get_texts()) == 2
    matplotlib.pyplot.close(ax.figure)


def test_draws_are_seeded_and_have_the_spread_of_the_kernel() -> None:
    ax = plot_kernel_draws(4 * kernels.RBF(0.2), n_draws=30, points=60, random_state=0)
    again = plot_kernel_draws(4 * kernels.RBF(0.2), n_draws=30, points=60, random_state=0)
    values = np.array([line.get_ydata() for line in ax.lines])
    assert values.shape == (30, 60)
    assert values.std() == pytest.approx(2.0, rel=0.15)
    np.testing.assert_array_equal(values, [line.get_ydata() for line in again.lines])
    for made in (ax, again):
        matplotlib.pyplot.close(made.figure)


def test_projections_are_those_of_the_model(rng: np.random.Generator) -> None:
    X = rng.normal(size=(20, 3))
    model = KernelPCA(3).fit(X)
    ax = plot_kernel_pca(model, X, labels=["a"] * 12 + ["b"] * 8, components=(0, 2))
    np.testing.assert_allclose(ax.collections[0].get_offsets(), model.transform(X)[:12][:, [0, 2]])
    assert "component 3" in ax.get_ylabel()
    with pytest.raises(ModelError, match="below 3"):
        plot_kernel_pca(model, components=(0, 3))
    with pytest.raises(ModelError, match="one entry per point"):
        plot_kernel_pca(model, X, labels=["a"])
    matplotlib.pyplot.close(ax.figure)
