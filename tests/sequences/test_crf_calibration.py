"""Segmentation must help: couplings that held-out labels choose, and a warning where a labeling is constant."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelWarning, OptionError


def squares(seed):
    rng = np.random.default_rng(seed)
    truth = np.zeros((16, 16), int)
    truth[4:12, 4:12] = 1
    return truth, [truth + rng.normal(scale=0.8, size=truth.shape) for _ in range(8)]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_row_b9_noisy_squares_are_found(seed):
    truth, X = squares(seed)
    alone = np.mean([((x > 0.5) == truth).mean() for x in X[6:]])
    crf = gg.sequences.GridCRF(method="pseudo", c2=0.01).fit(X[:6], [truth] * 6)
    assert 0 < crf.scale_ < 0.5
    assert crf.score(X[6:], [truth] * 2) >= 0.85 > alone


def test_a_constant_labeling_is_told():
    truth, X = squares(0)
    crf = gg.sequences.GridCRF(method="pseudo", c2=0.01, calibrate=False).fit(X[:6], [truth] * 6)
    with pytest.warns(ModelWarning, match="everywhere"):
        assert crf.score(X[6:], [truth] * 2) < 0.3


def test_the_penalty_can_be_chosen():
    truth, X = squares(1)
    crf = gg.sequences.GridCRF(method="pseudo", c2="auto").fit(X[:4], [truth] * 4)
    assert crf.c2_ in (0.1, 1.0, 10.0, 100.0)
    assert crf.score(X[6:], [truth] * 2) >= 0.75
    with pytest.raises(OptionError, match="c2"):
        gg.sequences.GridCRF(c2="car").fit(X[:2], [truth] * 2)
