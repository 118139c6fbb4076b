"""Labels for the pixels of noisy pictures: a classifier of single pixels, and a grid field on top of it.

The pictures are made here: shapes of two kinds on a background, seen through noise so strong that single pixels say
little. The field takes the log-probabilities of a scikit-learn classifier as its features and learns how neighbors go
together. A figure goes to demo/image_labels.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

import gramgraph as gg

FOLDER = Path("demo")
SIZE = 20


def pictures(n: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(images, labels): 0 is background, 1 a disk, 2 a bar."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    images, labels = [], []
    for _ in range(n):
        truth = np.zeros((SIZE, SIZE), dtype=int)
        r, c = rng.integers(5, 15, 2)
        truth[(rows - r) ** 2 + (columns - c) ** 2 < 18] = 1
        top = int(rng.integers(0, 16))
        truth[top : top + 4, 2:18] = 2
        color = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 1.0]])[truth]
        images.append(color + rng.normal(scale=0.7, size=color.shape))
        labels.append(truth)
    return images, labels


def main(folder: Path = FOLDER) -> dict[str, float]:
    """Learn, label, draw; the shares of right pixels without and with the field."""
    X, y = pictures(8)
    crf = gg.sequences.GridCRF(node_classifier=GaussianNB()).fit(X[:5], y[:5])
    alone = [crf.node_classifier_.predict(image.reshape(-1, 2)).reshape(SIZE, SIZE) for image in X[5:]]
    found = crf.predict(X[5:])
    scores = {
        "pixels alone": float(np.mean([(a == b).mean() for a, b in zip(alone, y[5:], strict=True)])),
        "field": float(np.mean([(a == b).mean() for a, b in zip(found, y[5:], strict=True)])),
    }
    _draw(X[5:], y[5:], alone, found, scores, folder)
    return scores


def _draw(X: list, y: list, alone: list, found: list, scores: dict[str, float], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(X), 4, figsize=(9, 2.3 * len(X)))
    titles = [
        "first channel",
        f"pixels alone ({scores['pixels alone']:.0%})",
        f"field ({scores['field']:.0%})",
        "truth",
    ]
    for row, parts in zip(axes, zip(X, alone, found, y, strict=True), strict=True):
        for k, (ax, picture) in enumerate(zip(row, parts, strict=True)):
            if k == 0:
                ax.imshow(picture[:, :, 0], cmap="gray")
            else:
                ax.imshow(picture, vmin=0, vmax=2, cmap="viridis", interpolation="nearest")
            ax.set_axis_off()
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=9)
    folder.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(folder / "image_labels.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    for name, share in main().items():
        print(f"{name}: {share:.1%} of the pixels right")
