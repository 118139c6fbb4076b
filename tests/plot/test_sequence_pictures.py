"""Pictures of sequences show the numbers of the models."""

from __future__ import annotations

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from gramgraph import CategoricalHMM, GaussianHMM, KalmanFilter  # noqa: E402
from gramgraph.exceptions import ModelError  # noqa: E402
from gramgraph.plot import plot_casino, plot_forecast, plot_particles, plot_posteriors, plot_states  # noqa: E402
from gramgraph.sequences import ParticleFilter  # noqa: E402


@pytest.fixture(autouse=True)
def close():
    yield
    matplotlib.pyplot.close("all")


def casino():
    return CategoricalHMM.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[1 / 6] * 6, [0.1] * 5 + [0.5]], symbols=range(1, 7)
    )


def test_ribbons_are_the_stays():
    model = GaussianHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.0], [5.0]], np.ones((2, 1, 1)))
    X = np.repeat([0.0, 5.0, 0.0], [4, 3, 5])[:, None]
    ax = model.plot(X, truth=np.repeat([0, 1, 0], [4, 4, 4]), labels=["low", "high"])
    assert len(ax.patches) == 3 + 3
    assert ax.patches[1].get_x() == 3.5 and ax.patches[1].get_width() == 3.0
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["low", "high"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), X[:, 0])
    with pytest.raises(ModelError, match="3 names"):
        plot_states(model, X, labels="abc")
    with pytest.raises(ModelError, match="truth has 2"):
        plot_states(model, X, truth=[0, 1])


def test_symbols_have_ribbons_too():
    model = CategoricalHMM.from_parameters([1.0], [[1.0]], [[0.5, 0.5]], symbols=["a", "b"])
    ax = plot_states(model, "abba")
    assert len(ax.patches) == 1 and len(ax.lines) == 1


def test_the_heat_map_is_the_posterior():
    model = casino()
    rolls = model.sample(50, random_state=0)[0]
    ax = plot_posteriors(model, rolls, labels=["fair", "loaded"])
    np.testing.assert_allclose(ax.images[0].get_array(), model.predict_proba(rolls).T)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["fair", "loaded"]


def test_the_casino():
    model = casino()
    rolls, dice = model.sample(100, random_state=0)
    ax = plot_casino(model, rolls, truth=dice)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), model.predict_proba(rolls)[:, 1])
    assert len(ax.collections) == 2
    with pytest.raises(ModelError, match="one of the 2 states"):
        plot_casino(model, rolls, state=2)


def test_forecasts():
    walk = KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0)
    y = walk.sample(50, random_state=0)[0]
    ax = walk.plot(y, 10, last=20)
    want = walk.forecast(y, 10)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), want.means[:, 0])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(want.upper.max()) and band.min() == pytest.approx(want.lower.min())
    assert len(ax.lines[0].get_xdata()) == 20
    with pytest.raises(ModelError, match="column of y"):
        plot_forecast(walk, y, output=1)


def test_clouds():
    model = ParticleFilter.gaussian(
        lambda x: x, lambda x: x, [[1.0]], [[1.0]], [0.0], [[1.0]], n_particles=300, random_state=0
    )
    found = model.filter([0.5, 1.0, 0.8], keep=True)
    ax = plot_particles(found, truth=[0.4, 0.9, 0.9])
    assert len(ax.collections[0].get_offsets()) == 3 * 200
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.means[:, 0])
    with pytest.raises(ModelError, match="keep=True"):
        plot_particles(model.filter([0.5]))
    with pytest.raises(ModelError, match="1 numbers"):
        plot_particles(found, component=1)
