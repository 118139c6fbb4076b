"""Labels on a grid, three times: a binary image, a gray one, and the disparities of a stereo pair.

Reads `kernel/images/camera.png` below `GRAMGRAPH_DATA` (or ../shared/data); without it a picture of hills stands in.
`python examples/stereo.py PREFIX` writes the pictures PREFIX-binary.png, PREFIX-gray.png and PREFIX-stereo.png.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import gramgraph as gg

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRAMGRAPH_DATA", ROOT.parent / "shared" / "data"))


def scene() -> Any:
    """A picture with values from 0 to 1."""
    file = DATA / "kernel" / "images" / "camera.png"
    if file.exists():
        from matplotlib.image import imread

        image = np.asarray(imread(file), dtype=np.float64)
        image = image if image.ndim == 2 else image[..., 0]
        return image / image.max()
    x, y = np.meshgrid(np.arange(512), np.arange(512))
    hills = np.sin(x / 40) + np.cos(y / 50) + 1.5 * (x + y > 512)
    return (hills - hills.min()) / np.ptp(hills)


def binary(image: Any, rng: Any) -> dict[str, Any]:
    """Black and white, a tenth of the pixels flipped."""
    clean = image > 0.5
    noisy = clean ^ (rng.random(clean.shape) < 0.1)
    start = time.process_time()
    found = gg.denoise(noisy, coupling=0.8, flip_probability=0.1)
    took = time.process_time() - start
    print(f"binary {clean.shape}: {(noisy != clean).mean():.1%} wrong pixels, {(found.image != clean).mean():.1%} "
          f"after {found.sweeps} sweeps, {took:.2f} s")  # fmt: skip
    return {"noisy": noisy, "denoised": found.image, "clean": clean}


def gray(image: Any, rng: Any, levels: int = 32) -> dict[str, Any]:
    """Gray levels under noise: truncated linear costs keep the edges."""
    clean = image[::2, ::2] * (levels - 1)
    noisy = np.clip(clean + 0.1 * levels * rng.normal(size=clean.shape), 0, levels - 1)
    costs = (noisy[..., None] - np.arange(levels)) ** 2 / (2 * (0.1 * levels) ** 2)
    start = time.process_time()
    found = gg.label_grid(costs, 0.45, kind="linear", truncation=6, max_iter=20)
    took = time.process_time() - start
    before, after = (np.sqrt(((a - clean) ** 2).mean()) for a in (noisy, found.labels))
    print(f"gray {clean.shape}, {levels} levels: error {before:.2f} before, {after:.2f} after; cost {found.cost:,.0f}, "
          f"bound {found.bound:,.0f}, {took:.2f} s")  # fmt: skip
    return {"noisy": noisy, "denoised": found.labels, "clean": clean}


def stereo(rng: Any, side: int = 160, depth: int = 12) -> dict[str, Any]:
    """Two views of boxes at several depths: how far each pixel moved."""
    true = np.full((side, side), 2)
    for top, left, size, d in ((20, 25, 70, 6), (70, 80, 60, 10), (110, 20, 35, 8)):
        true[top : top + size, left : left + size] = d
    texture = rng.random((side, side + depth))
    at = np.arange(side) + depth
    left_view = texture[:, depth:]
    right_view = np.take_along_axis(texture, at - true, axis=1) + 0.1 * rng.normal(size=true.shape)
    costs = np.stack([np.minimum(np.abs(right_view - texture[:, at - d]), 0.3) for d in range(depth)], axis=2)
    alone = costs.argmin(axis=2)
    found = gg.label_grid(costs, 0.12, kind="linear", truncation=2, max_iter=30)
    print(f"stereo {true.shape}, {depth} disparities: {(alone != true).mean():.1%} wrong pixel by pixel, "
          f"{(found.labels != true).mean():.1%} together; gap {found.gap / found.cost:.2%}")  # fmt: skip
    return {"left view": left_view * depth, "pixel by pixel": alone, "together": found.labels, "true": true}


def main(prefix: str = "") -> None:
    rng, image = np.random.default_rng(0), scene()
    pictures = {"binary": binary(image, rng), "gray": gray(image, rng), "stereo": stereo(rng)}
    if prefix:
        from gramgraph.plot import plot_images

        for name, images in pictures.items():
            plot_images(images)[0].figure.savefig(f"{prefix}-{name}.png", dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:2])
