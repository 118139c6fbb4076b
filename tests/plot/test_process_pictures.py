"""Pictures of Gaussian processes hold what they claim to show."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph import BayesianLinearRegression, GaussianProcessRegressor
from gramgraph.exceptions import ModelError
from gramgraph.gp.components import components
from gramgraph.kernels import RBF, Periodic, White

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from gramgraph.plot.gp import plot_components, plot_evidence, plot_process  # noqa: E402

T = np.linspace(0, 4, 40)[:, None]
Y = 3.0 + np.sin(2 * np.pi * T[:, 0]) + 0.5 * T[:, 0]


@pytest.fixture(autouse=True)
def close():
    yield
    matplotlib.pyplot.close("all")


def model(**options):
    kernel = 1.0 * RBF(3.0) + Periodic(1.0, 1.0) + White(0.01)
    return GaussianProcessRegressor(kernel, optimizer=None, **options).fit(T, Y)


def test_the_band_is_the_predicted_one():
    gp = model(normalize_y=True)
    ax = plot_process(gp, span=(0.0, 5.0), draws=4, points=50)
    assert len(ax.lines) == 5
    x, mean = ax.lines[-1].get_data()
    np.testing.assert_allclose(mean, gp.predict(x[:, None]))
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 1], Y)
    band = ax.collections[0].get_paths()[0].vertices
    std = gp.predict(x[:, None], return_std=True)[1]
    assert band[:, 1].max() == pytest.approx((mean + 2 * std).max())
    with pytest.raises(ModelError, match="on the line"):
        plot_process(GaussianProcessRegressor(RBF(), alpha=0.1).fit(np.zeros((3, 2)), np.zeros(3)))


def test_linear_models_too():
    ax = plot_process(BayesianLinearRegression("gaussian").fit(T, Y), span=(0, 4), data=False)
    assert len(ax.lines) == 4


def test_terms_add_up():
    gp = model(mean="linear")
    found = components(gp.posterior_, T)
    np.testing.assert_allclose(sum(part.mean for part in found), gp.posterior_.mean(T), atol=1e-8)
    assert found[0].name == "mean" and len(found) == 3
    panels = plot_components(gp, points=60)
    assert len(panels) == 3
    curve = panels[2].lines[0].get_ydata()
    assert np.ptp(curve) > 1.0  # the wave is in the periodic term
    with pytest.raises(ModelError, match="exact posterior"):
        components(GaussianProcessRegressor(RBF() + White(0.1), approx="titsias", n_inducing=5).fit(T, Y).posterior_, T)


def test_the_profile_has_its_top_at_the_learned_parameter():
    gp = GaussianProcessRegressor(1.0 * RBF() + White(0.1), mean="constant").fit(T, Y)
    ax = plot_evidence(gp, "length_scale", points=21)
    x, values = ax.lines[0].get_data()
    assert np.argmax(values) == 10
    assert values[10] == pytest.approx(gp.log_marginal_likelihood_value_)
    both = plot_evidence(gp, ("terms[0].variance", "length_scale"), points=6, width=0.5)
    assert "length_scale" in both.get_ylabel()
    with pytest.raises(ModelError, match="not a free parameter"):
        plot_evidence(gp, "lenght")
