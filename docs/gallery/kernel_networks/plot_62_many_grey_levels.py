"""
An image with many levels of gray
=================================

Parikh, Kernel graphical models, runs belief propagation with kernels also where the graph has cycles: messages are
functions, so that the cost does not depend on how many values a variable can take. An image is the standard case:
every pixel is a number, and neighbors depend on each other in a way that no Gaussian describes (edges).

We see a field learned from one image and its noisy version, and another noisy image restored by it. (The picture is
``camera.png`` below ``GRAMGRAPH_DATA``; without it, hills that are made here.) The field is the same for 16 and for
250 levels.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

side, noise = 50, 25.0
file = Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "images" / "camera.png"
if file.exists():
    image = plt.imread(file)
    image = 255 * (image if image.ndim == 2 else image[..., 0])
    image = image[: 8 * side, : 8 * side].reshape(2 * side, 4, 2 * side, 4).mean(axis=(1, 3))
    learn_from, other = image[:side, side // 2 : side // 2 + side], image[side:, side:]
else:
    i, j = np.meshgrid(np.arange(side), np.arange(side))
    hills = [np.sin(i / 9 + a) + np.cos(j / 11 + a) + 1.5 * (i + j > side + 9 * a) for a in (0.0, 1.5)]
    learn_from, other = (255 * (h - h.min()) / np.ptp(h) for h in hills)

# %%
# Both pictures with 16 and with 250 levels of gray, and Gaussian noise of 25 on a scale of 255.
rng = np.random.default_rng(0)
dirt = rng.normal(size=(2, side, side)) * noise
results = {}
for levels in (16, 250):
    clean, truth = (np.rint(x / 255 * (levels - 1)) * 255 / (levels - 1) for x in (learn_from, other))
    field = gg.learn_grid(clean, clean + dirt[0])
    results[levels] = truth, truth + dirt[1], field.query(truth + dirt[1]).mean(), field
rmse = {
    n: [np.sqrt(np.mean((x - truth) ** 2)) for x in (noisy, back)] for n, (truth, noisy, back, _) in results.items()
}

# %%
# Truth, noisy image, and the means of the posterior.
figure, axes = plt.subplots(2, 3, figsize=(7, 4.8), layout="constrained")
for row, (levels, (truth, noisy, back, _)) in zip(axes, results.items(), strict=True):
    pictures = (
        (truth, noisy, back),
        (f"{levels} levels", f"noisy, error {rmse[levels][0]:.1f}", f"restored, error {rmse[levels][1]:.1f}"),
    )
    for ax, picture, title in zip(row, *pictures, strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=255)
        ax.set_title(title, fontsize=10)
        ax.axis("off")

# %%
# The numbers of the text
# -----------------------
# The text has none here. What it promises holds: restored images are far better than noisy ones, whatever the number
# of levels, and messages stand on 64 cells at most.
assert all(back < 0.75 * noisy for noisy, back in rmse.values())
assert abs(rmse[16][1] - rmse[250][1]) < 3
assert all(len(result[3].on(1, 1).cells.states("x0_0")) <= 64 for result in results.values())
