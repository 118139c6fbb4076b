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


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.6, 1.2])
def test_row_b9_the_field_is_never_below_its_boosted_pixels(shared_data, noise):
    """Tiles of a photographed silhouette behind noise: boosted stumps of single pixels, and the field on top."""
    image = pytest.importorskip("matplotlib.image")
    path = shared_data / "kernel" / "images" / "horse.png"
    if not path.exists():
        pytest.skip("the images are not there")
    picture = image.imread(path)
    truth = ((picture[..., :3].mean(axis=-1) if picture.ndim == 3 else picture) > 0.5).astype(int)
    tiles = [truth[r : r + 24, c : c + 24] for r in range(0, 300, 24) for c in range(0, 370, 24)]
    tiles = [tile for tile in tiles if 0.2 < tile.mean() < 0.8][:12]
    rng = np.random.default_rng(0)
    X = [(tile + noise * rng.normal(size=tile.shape))[..., None] for tile in tiles]
    local = gg.GradientBoostingClassifier(30, max_depth=2)
    crf = gg.sequences.GridCRF(node_classifier=local, c2=1.0, max_iterations=15).fit(X[:8], tiles[:8])
    alone = [
        crf.node_classifier_.predict(x.reshape(-1, 1)).reshape(t.shape) == t for x, t in zip(X, tiles, strict=True)
    ]
    assert crf.score(X[8:], tiles[8:]) >= np.mean(alone[8:])
