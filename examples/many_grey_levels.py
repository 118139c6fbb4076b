"""Images with many levels of gray: a field on cells costs the same for 50 and for 250 levels; tables do not.

Reads `kernel/images/camera.png` below `GRAMGRAPH_DATA` (or ../shared/data); without it a picture of hills stands in.
One part of the image is learned from, another one denoised. Beside it, loopy propagation on one state a level, with
tables counted and lightly smoothed, in the same schedule.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import gramgraph as gg
from gramgraph.embeddings.network.grid import _scans

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRAMGRAPH_DATA", ROOT.parent / "shared" / "data"))
NOISE = 25.0


def scenes(side: int) -> tuple[Any, Any]:
    """Two pictures with values from 0 to 1."""
    file = DATA / "kernel" / "images" / "camera.png"
    if not file.exists():
        x, y = np.meshgrid(np.arange(side), np.arange(side))
        parts = [np.sin(x / 9 + a) + np.cos(y / 11 + a) + 1.5 * (x + y > side + 9 * a) for a in (0.0, 1.5)]
        return tuple((part - part.min()) / np.ptp(part) for part in parts)  # type: ignore[return-value]
    from matplotlib.image import imread

    image = np.asarray(imread(file), dtype=np.float64)
    image = image if image.ndim == 2 else image[..., 0]
    step = 400 // side
    cut = [part.reshape(side, step, side, step).mean(axis=(1, 3)) for part in
           (image[: side * step, : side * step], image[-side * step :, -side * step :])]  # fmt: skip
    return cut[0] / image.max(), cut[1] / image.max()


def degraded(image: Any, levels: int, seed: int) -> tuple[Any, Any]:
    clean = np.rint(image * (levels - 1)) / (levels - 1) * 255.0
    return clean, clean + NOISE * np.random.default_rng(seed).normal(size=clean.shape)


def smoothed(counts: Any, width: float) -> Any:
    """Counts, spread over neighboring levels by a narrow bell."""
    at = np.arange(len(counts))
    K = np.exp(-0.5 * ((at[:, None] - at) / width) ** 2)
    K /= K.sum(axis=0)
    table = K @ counts @ K.T + 1e-6
    return table / table.sum()


def one_state_a_level(clean: Any, noisy: Any, image: Any, levels: int, power: float) -> tuple[Any, float]:
    """Posterior means by discrete propagation, and its seconds."""

    def level(x: Any) -> Any:
        return np.clip(np.rint(x / 255.0 * (levels - 1)), 0, levels - 1).astype(int)

    a, pairs, seen = level(clean), np.zeros((levels, levels)), np.zeros((levels, levels))
    for u, v in ((a[:, :-1], a[:, 1:]), (a[:-1], a[1:])):
        np.add.at(pairs, (u.ravel(), v.ravel()), 1.0)
        np.add.at(pairs, (v.ravel(), u.ravel()), 1.0)
    np.add.at(seen, (a.ravel(), level(noisy).ravel()), 1.0)
    width = 0.02 * levels
    P, O = smoothed(pairs, width), smoothed(seen, width)
    p = P.sum(axis=1)
    R = ((P / np.outer(p, p)) ** power).astype(np.float32)
    likelihood = (O / O.sum(axis=1, keepdims=True)).T[level(image)].astype(np.float32)
    start = time.process_time()
    found = _scans(SimpleNamespace(q=p), R, likelihood, 30, 1e-2, 0.2)  # type: ignore[arg-type]
    return found.weights @ (np.arange(levels) / (levels - 1) * 255.0), time.process_time() - start


def main(side: int = 100, levels: tuple[int, ...] = (50, 100, 150, 200, 250)) -> None:
    first, second = scenes(side)
    print(f"{side} × {side} pixels, noise {NOISE:g} of 255. Root mean squared errors, seconds of propagation:\n")
    print("levels   noisy  cells           one state a level (better of two tempers)")
    for number in levels:
        clean, noisy = degraded(first, number, 0)
        truth, image = degraded(second, number, 1)
        model = gg.learn_grid(clean, noisy)
        start = time.process_time()
        answer = model.query(image)
        took = time.process_time() - start

        def error(x: Any, truth: Any = truth) -> float:
            return float(np.sqrt(((x - truth) ** 2).mean()))

        tried = [one_state_a_level(clean, noisy, image, number, power) for power in (1.0, model.power)]
        best, seconds = min(tried, key=lambda pair: error(pair[0]))
        ours = f"{error(answer.mean()):5.2f} ({took:4.1f} s)"
        print(f"{number:6d}  {error(image):6.2f}  {ours}  {error(best):5.2f} ({seconds:5.1f} s)")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
