"""Pictures of topics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def model() -> Any:
    texts = [["river", "water", "fish"], ["bank", "money", "$loan$"]] * 5
    return gg.LatentDirichletAllocation(2, max_iter=20, random_state=0).fit(texts)


def test_bars_are_the_most_probable_words(model: Any) -> None:
    grid = gg.plot.plot_topics(model, n_words=4)
    assert len(grid) == 2
    for t, ax in enumerate(grid):
        assert [label.get_text().replace("\\", "") for label in ax.get_yticklabels()] == model.top_words(4)[t]
        lengths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(lengths, np.sort(model.topic_word_[t])[::-1][:4])
        assert ax.get_title() == f"topic {t}"
    grid[0].figure.canvas.draw()


def test_one_topic_on_given_axes(model: Any) -> None:
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    [same] = gg.plot.plot_topics(model, topics=[1], n_words=2, ax=ax)
    assert same is ax and len(ax.patches) == 2


def test_what_cannot_be_drawn(model: Any) -> None:
    with pytest.raises(ModelError, match="LatentDirichletAllocation"):
        gg.plot.plot_topics(gg.estimators.PCA(1))
    with pytest.raises(ModelError, match="2 topics were named"):
        gg.plot.plot_topics(model, ax=object())
    with pytest.raises(ModelError, match="from 0 to 1"):
        gg.plot.plot_topics(model, topics=[2])
