"""Integral images, features and reading of images against plain sums."""

from __future__ import annotations

import numpy as np
import pytest

from gramgraph.exceptions import ModelError, OptionError
from gramgraph.vision import HaarFeatures, grey_image, integral_image, merge_boxes, overlap, resize_image


def test_row_h3_any_box_in_four_look_ups(rng):
    image = rng.integers(0, 256, (13, 17))
    I, S = integral_image(image), integral_image(image, squared=True)
    for _ in range(20):
        x, y = rng.integers(0, 10, 2)
        w, h = rng.integers(1, 4, 2)
        box = image[y : y + h, x : x + w]
        assert I[y + h, x + w] - I[y, x + w] - I[y + h, x] + I[y, x] == box.sum()
        assert S[y + h, x + w] - S[y, x + w] - S[y + h, x] + S[y, x] == (box**2).sum()


def test_tilted_sums_are_triangles(rng):
    image = rng.integers(0, 256, (9, 12))
    T = integral_image(image, tilted=True)
    ys, xs = np.mgrid[:9, :12]
    for Y in range(10):
        for X in range(13):
            inside = (ys < Y) & (np.abs(xs - X + 1) <= Y - ys - 1)
            assert T[Y, X] == image[inside].sum()


def test_features_are_differences_of_boxes(rng):
    patches = rng.integers(0, 256, (5, 12, 12)).astype(np.uint8)
    features = HaarFeatures(12, ("A", "B", "C", "D", "E"))
    which = rng.choice(len(features), 300, replace=False)
    found = features.values(patches, which)
    for k, f in enumerate(which):
        for i, patch in enumerate(patches):
            total = 0.0
            for (x, y, w, h), weight in zip(features.rects[f], features.weights[f], strict=True):
                total += weight * patch[y : y + h, x : x + w].astype(float).sum()
            inner = patch[1:-1, 1:-1].astype(float)
            wanted = total / (inner.size * inner.std())
            assert found[k, i] == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_turned_features_are_sums_of_turned_boxes(rng):
    patch = rng.integers(0, 256, (12, 12)).astype(np.uint8)
    features = HaarFeatures(12, ("A45", "C45"))
    found = features.values([patch])[:, 0]
    T = integral_image(patch, tilted=True)
    inner = patch[1:-1, 1:-1].astype(float)
    for f in rng.choice(len(features), 100, replace=False):
        total = 0.0
        for (x, y, w, h), weight in zip(features.rects[f], features.weights[f], strict=True):
            total += weight * float(T[y, x] - T[y + h, x - h] - T[y + w, x + w] + T[y + w + h, x + w - h])
        assert found[f] == pytest.approx(total / (inner.size * inner.std()), rel=1e-5, abs=1e-6)


def test_row_h3_the_number_of_features_is_the_textbooks():
    assert len(HaarFeatures(24)) == 162336
    features = HaarFeatures((8, 6))
    flat = features.values(np.full((1, 6, 8), 77, dtype=np.uint8))
    assert (flat == 0).all()  # a flat patch has no features
    assert np.allclose((features.weights * np.prod(features.rects[..., 2:], axis=-1)).sum(axis=1), 0)


def test_images_of_every_kind():
    levels = np.array([[0, 128], [255, 64]], dtype=np.uint8)
    assert (grey_image(levels) == levels).all()
    assert (grey_image(levels / 255.0) == levels).all()
    assert (grey_image(levels.astype(np.uint16) * 257) == levels).all()
    assert (grey_image(np.stack([levels] * 3, axis=2)) == levels).all()
    assert (grey_image(levels > 100) == np.where(levels > 100, 255, 0)).all()
    for bad in ([[np.nan, 1.0]], np.zeros((0, 4)), np.zeros(5), np.zeros((2, 2, 2)), [["a"]], [[-1.0, 2.0]]):
        with pytest.raises(ModelError):
            grey_image(bad)


def test_resizing_keeps_flat_images_and_means(rng):
    assert (resize_image(np.full((30, 40), 99, dtype=np.uint8), 17, 11) == 99).all()
    image = rng.integers(0, 256, (40, 40)).astype(np.uint8)
    assert abs(resize_image(image, 20, 20).mean() - image.mean()) < 1
    assert (resize_image(image, 40, 40) == image).all()


def test_merging():
    boxes = np.array([[10, 10, 20, 20, 1.0]] * 3 + [[11, 11, 20, 20, 5.0]] + [[70, 70, 20, 20, 9.0]])
    merged = merge_boxes(boxes, min_neighbors=3)
    assert merged.tolist() == [[10.0, 10.0, 20.0, 20.0, 5.0]]
    assert len(merge_boxes(boxes, min_neighbors=0)) == 5
    assert merge_boxes(np.zeros((0, 5))).shape == (0, 5)
    assert overlap([[0, 0, 2, 2]], [[0, 0, 2, 2]])[0, 0] == 1.0
    with pytest.raises(OptionError, match="kinds"):
        HaarFeatures(24, ("Z",))
