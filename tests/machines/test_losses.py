"""Losses: values of the text, gradients against differences, best constants against a fine grid."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph import losses
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.plot import plot_losses

KINDS = [kind for kind in vars(losses).values() if isinstance(kind, type) and issubclass(kind, losses.Loss)]
EXAMPLES = {kind: kind() for kind in KINDS if kind is not losses.Loss}


def targets(loss, rng, n=40):
    return rng.choice([-1.0, 1.0], n) if loss.of_margin else rng.normal(size=n).round(2)


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_gradients_and_curvatures_are_differences(kind, rng):
    loss = EXAMPLES[kind]
    if kind is losses.ZeroOne:
        pytest.skip("the 0-1 loss has no gradient")
    t = targets(loss, rng, 200)
    y = rng.normal(size=200) + 0.003123  # away from corners
    h = 1e-6
    slope = (loss(t, y + h) - loss(t, y - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(t, y), slope, atol=1e-6)
    bend = (loss.gradient(t, y + h) - loss.gradient(t, y - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(t, y), bend, atol=1e-5)


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_best_constants_are_best(kind, rng):
    loss = EXAMPLES[kind]
    for _ in range(10):
        t, y, w = targets(loss, rng, 15), rng.normal(size=15), rng.integers(0, 3, 15) + 0.0
        w[0] = 1.0
        t[:2] = (-1.0, 1.0)
        w[1] = 1.0
        c = loss.best_constant(t, y, w)
        grid = np.linspace(-6, 6, 4001)
        least = min((w * loss(t, y + g)).sum() for g in grid)
        assert (w * loss(t, y + c)).sum() <= least + 1e-9


def test_row_h2_values_of_the_text():
    assert losses.Log()(1.0, 0.0) == pytest.approx(1.0)  # log₂ 2
    assert losses.Log()(1.0, -1.0) == pytest.approx(np.log2(1 + np.exp(2)))
    assert losses.Exponential()(-1.0, 2.0) == pytest.approx(np.exp(2))
    assert losses.Squared()(1.0, -1.0) == 4.0
    for kind in (losses.Log, losses.Exponential):
        t = np.r_[np.ones(30), -np.ones(10)]
        assert kind().probability(kind().best_constant(t)) == pytest.approx(0.75)


def test_wrong_targets_and_options():
    with pytest.raises(ModelError, match="-1 or 1"):
        losses.Hinge()([0.0, 1.0], 0.0)
    with pytest.raises(OptionError, match="alpha"):
        losses.Quantile(1.5)
    with pytest.raises(ModelError, match="no cases"):
        losses.Squared().best_constant([])


def test_a_picture():
    pytest.importorskip("matplotlib")
    ax = plot_losses({"log": losses.Log(), "exponential": losses.Exponential(), "0-1": losses.ZeroOne()})
    assert len(ax.lines) == 3 and "margin" in ax.get_xlabel()
