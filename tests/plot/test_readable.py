"""Texts in pictures can be read: their size and their contrast."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg

pytest.importorskip("matplotlib")


def contrast(color, ground=(1.0, 1.0, 1.0)):
    """As WCAG 2 has it: (lighter + 0.05) / (darker + 0.05) of the relative luminances."""
    from matplotlib.colors import to_rgb

    def luminance(rgb):
        rgb = np.asarray(rgb)
        return np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(to_rgb(color)), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


def test_the_measure():
    assert contrast("black") == pytest.approx(21.0) and contrast("white") == 1.0


@pytest.mark.parametrize("draw", [gg.plot.plot_junction_tree, gg.plot.plot_network])
def test_texts_have_contrast(draw):
    import matplotlib.pyplot as plt

    ax = draw(gg.datasets.asia())
    assert len(ax.texts) > 3
    assert min(contrast(text.get_color()) for text in ax.texts) >= 4.5
    plt.close(ax.figure)
