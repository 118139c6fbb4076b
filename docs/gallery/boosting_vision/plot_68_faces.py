"""
Faces: integral images, two good features, and a cascade
========================================================

Triebel, Machine learning for computer vision, section 5 (Face detection): differences of sums over rectangles, four
look-ups each in the integral image; stumps on them, chosen by AdaBoost; "the two first classifiers keep 100 % of the
faces, with 40 % of false positives"; a cascade that says no early. The text does not mention that windows are divided
by their standard deviation, which is needed.

We see the first features on a mean face, the cascade's stages on faces and backgrounds it has not seen, and
detections. Images: ``lfw_subset`` and ``camera.png`` below ``GRAMGRAPH_DATA``; without them, drawn blobs with two
eyes and a mouth. From some sixty faces this is a demonstration, not a detector; for real ones
``gg.vision.Cascade.read_opencv`` reads the files that ship with OpenCV.
"""

import gzip
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(0)
folder = Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "images"


def drawn_face():
    i, j = np.mgrid[-1:1:25j, -1:1:25j]
    dark = sum(np.exp(-((i - a) ** 2 + (j - b) ** 2) / 0.02) for a, b in ((-0.3, -0.4), (-0.3, 0.4)))
    face = 180 - 110 * dark - 60 * np.exp(-((i - 0.5) ** 2 / 0.01 + j**2 / 0.1)) + rng.normal(scale=12, size=i.shape)
    return np.clip(face, 0, 255).astype(np.uint8)


if (folder / "lfw_subset.npy.gz").exists():
    with gzip.open(folder / "lfw_subset.npy.gz") as stream:
        patches = np.load(stream)
    faces, others = patches[:100], patches[100:]
    scene = plt.imread(folder / "camera.png")
    backgrounds = [plt.imread(folder / name) for name in ("motorcycle_left.png", "horse.png")]
else:
    faces = np.array([drawn_face() for _ in range(100)])
    smooth = [np.cumsum(rng.normal(size=(260, 300)), axis=axis) for axis in (0, 1, 0)]
    backgrounds = [np.uint8(255 * (s - s.min()) / np.ptp(s)) for s in smooth]
    scene, others = (
        backgrounds.pop(),
        np.array([b[k : k + 25, k : k + 25] for b in backgrounds for k in range(0, 200, 4)]),
    )
    for k in range(3):
        scene[30 + 70 * k : 55 + 70 * k, 40 + 80 * k : 65 + 80 * k] = faces[90 + k]

# %%
# Four look-ups for any box.
image = rng.integers(0, 255, (60, 80))
I = gg.vision.integral_image(image)
y, x, h, w = 10, 20, 30, 25
box = I[y + h, x + w] + I[y, x] - I[y, x + w] - I[y + h, x]
print(f"sum of the box {box}, by adding {image[y : y + h, x : x + w].sum()}")
print(f"features in a window of 24 × 24: {len(gg.vision.HaarFeatures(24))}")

# %%
# A cascade of four stages from 65 faces; stages are judged on 35 other faces and on other patches.
order = rng.permutation(100)
window = 16  # coarser than the text's 24, so that the page is quick
cascade = gg.vision.Cascade(4, window=window, n_negatives=250, most_features=8, kinds=("A", "B", "C"), random_state=0)
cascade.fit(faces[order[:65]], [*backgrounds, *others[:70]])
print(cascade.stage_table(faces[order[65:]], [scene]).round(3).to_string())
mean = faces.mean(axis=0)
gg.plot.plot_features(cascade.stages_, 2, background=gg.vision.resize_image(255 * mean / mean.max(), window, window))

# %%
# Windows of all sizes that pass, merged where they overlap.
boxes = cascade.detect(scene, scale_factor=1.1, min_neighbors=1)
ax = gg.plot.plot_detections(scene, boxes[:8])
ax.set_title(f"the best of {len(boxes)} boxes")

# %%
# The numbers of the text
# -----------------------
# The integral image; a feature is one box minus another; a stage keeps nearly all faces and refuses most of the rest.
assert box == image[y : y + h, x : x + w].sum() and len(gg.vision.HaarFeatures(24)) == 162336
table = cascade.stage_table(faces[order[65:]], [scene])
first = table.iloc[0]
assert first["kept"] > 0.85 and table["kept"].iloc[-1] > 0.6
assert first["false windows"] < 0.4 and table["false windows"].iloc[-1] < 0.1
