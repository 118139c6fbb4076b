"""Pictures of Gaussians and densities hold what they claim to show."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.distributions import BetaBernoulli, Dirichlet, Gaussian, Normal, Poisson
from gramgraph.estimators.graphical_lasso import GraphicalLasso
from gramgraph.exceptions import ModelError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from gramgraph.plot import plot_densities, plot_gaussian, plot_precision_graph  # noqa: E402


def close(ax: object) -> None:
    matplotlib.pyplot.close(ax.figure)  # type: ignore[attr-defined]


def test_ellipses_are_points_of_equal_density() -> None:
    g = Gaussian([1.0, -1.0, 0.5], [[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
    ax = plot_gaussian(g, coordinates=(2, 0), deviations=[2.0, 1.0], points=[[0.0, 0.0]])
    pair = g.marginal([2, 0])
    for line, r in zip(ax.lines[:2], (1.0, 2.0), strict=True):
        drop = pair.log_density(pair.mean) - pair.log_density(np.column_stack(line.get_data()))
        np.testing.assert_allclose(drop, 0.5 * r * r, rtol=1e-9)
    assert ax.get_xlabel() == "x2"
    close(ax)


def test_singular_gaussians_are_drawn_as_lines() -> None:
    ax = plot_gaussian([Gaussian([0.0, 0.0], [1.0, 0.0]), Gaussian([1.0, 1.0], 0.0)], labels=["line", "dot$"])
    assert np.ptp(ax.lines[0].get_ydata()) == 0.0 and np.ptp(ax.lines[0].get_xdata()) == pytest.approx(2.0, abs=1e-3)
    assert len(ax.get_legend().get_texts()) == 2
    close(ax)


def test_densities_integrate_to_one_over_what_is_shown() -> None:
    coin = BetaBernoulli(2.0, 2.0)
    ax = plot_densities({"prior": coin.posterior, "posterior": coin.update([1, 1, 0, 1]).posterior})
    for line in ax.lines:
        assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(1.0, abs=0.02)
        assert line.get_xdata().min() >= 0.0 and line.get_xdata().max() <= 1.0
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["prior", "posterior"]
    close(ax)
    ax = plot_densities([Normal(0.0, 1.0), Normal(5.0, 4.0)])
    assert np.trapezoid(ax.lines[1].get_ydata(), ax.lines[1].get_xdata()) == pytest.approx(1.0, abs=0.01)
    close(ax)
    ax = plot_densities(Poisson(3.0))
    heights = [path.vertices[1, 1] for path in ax.collections[0].get_paths()]
    assert sum(heights) == pytest.approx(1.0, abs=0.01)
    close(ax)


def test_the_graph_has_the_edges_of_the_precision() -> None:
    P = np.array([[2.0, -1.0, 0.0, 0.0], [-1.0, 2.0, 0.3, 0.0], [0.0, 0.3, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    ax = plot_precision_graph(P, names=["a", "b", "c$", "d"])
    assert len(ax.lines) == 2
    assert ax.lines[0].get_linewidth() > ax.lines[1].get_linewidth()
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    assert [text.get_text() for text in ax.texts] == ["a", "b", r"c\$", "d"]
    close(ax)
    for source in (Gaussian.from_precision(np.zeros(4), P), P):
        ax = plot_precision_graph(source, threshold=0.4)
        assert len(ax.lines) == 1
        close(ax)


def test_a_fitted_graphical_lasso_can_be_drawn() -> None:
    X = np.random.default_rng(0).multivariate_normal([0, 0, 0], [[1, 0.7, 0], [0.7, 1, 0], [0, 0, 1]], size=300)
    fitted = GraphicalLasso().fit(X)
    for source in (fitted, fitted.to_markov_network()):
        ax = plot_precision_graph(source)
        assert len(ax.lines) == 1 and [text.get_text() for text in ax.texts] == ["x0", "x1", "x2"]
        close(ax)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: plot_gaussian(Gaussian(0.0, 1.0)), "at least two coordinates"),
        (lambda: plot_gaussian(Gaussian([0, 0], 1.0), deviations=[0.0]), "deviations must be positive"),
        (lambda: plot_gaussian(Gaussian([0, 0], 1.0), points=[1.0]), r"shape \(n, 2\)"),
        (lambda: plot_gaussian(Gaussian([0, 0], 1.0), labels=["a", "b"]), "labels must be 1"),
        (lambda: plot_gaussian(Gaussian([0, 0], 1.0), coordinates=(0, 5)), "no coordinate 5"),
        (lambda: plot_densities("x"), "density and sample"),
        (lambda: plot_densities(Dirichlet([1.0, 1.0])), "not a distribution of numbers"),
        (lambda: plot_densities(Normal(0.0, 1.0), span=(1.0, 0.0)), "two rising numbers"),
        (lambda: plot_precision_graph([[1.0, 2.0]]), "square matrix"),
        (lambda: plot_precision_graph(np.eye(2), names=["a"]), "names must be 2"),
    ],
)
def test_bad_input(call: object, match: str) -> None:
    with pytest.raises(ModelError, match=match):
        call()  # type: ignore[operator]
