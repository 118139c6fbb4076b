"""Figures that cannot be read are refused when the gallery is built."""

from __future__ import annotations

import pytest
from sitetools import figures

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_contrast_is_that_of_the_wcag():
    assert figures.contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert figures.contrast((1, 1, 1), (1, 1, 1)) == 1
    assert figures.contrast((0x76 / 255,) * 3, (1, 1, 1)) == pytest.approx(4.54, abs=0.01)


def test_a_plain_figure_can_be_read(axes):
    axes.plot([1, 2, 3], [3, 2, 1], "o", label="points")
    axes.set(title="a title", xlabel="x")
    axes.legend(loc="upper right")
    assert figures.faults(axes.figure) == []


def test_small_and_pale_texts_are_told(axes):
    axes.plot([0, 1])
    axes.text(0.1, 0.8, "tiny", fontsize=7)
    axes.text(0.1, 0.6, "pale", color="#aaaaaa")
    axes.text(0.1, 0.4, "thin", alpha=0.3)
    assert figures.faults(axes.figure) == ["'tiny' has 9.7 pixels", *figures.faults(axes.figure)[1:]]
    assert [fault.split("'")[1] for fault in figures.faults(axes.figure)] == ["tiny", "pale", "thin"]


def test_texts_stand_on_what_is_drawn_below_them(axes):
    axes.imshow([[0, 1]], cmap="gray", extent=(0, 2, 0, 1))
    axes.text(0.5, 0.5, "on black", color="white", ha="center")
    axes.text(1.5, 0.5, "on white", color="white", ha="center")
    assert figures.faults(axes.figure) == ["'on white' has contrast 1.0"]


def test_legends_over_points_and_empty_axes_are_told():
    figure, (left, right) = plt.subplots(1, 2)
    left.scatter([1, 2, 3], [1, 2, 3], label="points")
    left.legend(loc="upper right")
    assert figures.faults(figure) == ["nothing is drawn in axes 1", "the legend of axes 0 covers points"]
    plt.close(figure)
