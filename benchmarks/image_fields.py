"""Labels of noisy pixels: a field over a classifier of single pixels, against that classifier.

`python -m benchmarks image_fields [--tasks ROW …]`. Needs the images of GRAMGRAPH_DATA. Half of an image is learned
from and the other half labeled, at noise of 0.5 and 1 standard deviations of the image, from the noisy value of a pixel
alone and with the means around it (`context`). Columns: the share of right pixels by the classifier and by the field,
the pixels gained and their standard error as if pixels were independent, the share of the couplings that was taken
(0: the classifier itself) and the CPU time of fitting. A row with fewer right pixels than the classifier is a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Cell, Failure, Measurement, Runner, versions
from benchmarks.tables import Result, failures, markdown
from benchmarks.vision import folder

__all__ = ["report", "run_cell"]

Image = NDArray[np.float64]
Scene = tuple[Image, NDArray[Any]]


def gray(name: str, step: int = 1) -> Image:
    """A file of the folder as means over squares of step × step pixels and over its colors."""
    from PIL import Image as files

    with files.open(folder() / name) as file:
        pixels = np.asarray(file).astype(np.float64)
    if pixels.ndim == 3:
        pixels = pixels[:, :, :3].mean(axis=2)
    h, w = pixels.shape[0] // step, pixels.shape[1] // step
    return pixels[: h * step, : w * step].reshape(h, step, w, step).mean(axis=(1, 3))


def disparity(step: int) -> Image:
    """How near things are in the picture of a motorcycle; what is not known counts as the middle."""
    with np.load(folder() / "motorcycle_disp.npz") as file:
        depth = file["arr_0"][::step, ::step].astype(np.float64)
    known = np.isfinite(depth)
    return np.where(known, depth, np.median(depth[known]))


#: Images with the classes into which their values are cut: by a threshold, or into so many of equal size.
IMAGES: dict[str, tuple[Callable[[], Image], float | int]] = {
    "horse": (lambda: gray("horse.png", 4), 128.0),
    "bw_text": (lambda: gray("bw_text.png", 2), 128.0),
    "text": (lambda: gray("text.png", 2), 3),
    "digits": (lambda: gray("digits.png")[:250, :500], 100.0),
    "letterA": (lambda: gray("letterA.bmp"), 128.0),
    "camera2": (lambda: gray("camera.png", 2), 2),
    "camera3": (lambda: gray("camera.png", 2), 3),
    "camera4": (lambda: gray("camera.png", 2), 4),
    "disparity": (lambda: disparity(3), 3),
    "motorcycle": (lambda: gray("motorcycle_left.png", 3), 3),
}
NOISE, FEATURES = (0.5, 1.0), ("pixel", "context")
ROWS = tuple(f"{image}-{noise}-{features}" for image in IMAGES for noise in NOISE for features in FEATURES)


def labels_of(image: Image, classes: float | int) -> NDArray[np.int64]:
    """The class of every pixel."""
    cuts = [classes] if isinstance(classes, float) else np.unique(np.quantile(image, np.arange(1, classes) / classes))
    return np.searchsorted(cuts, image)


def with_context(x: Image) -> Image:
    """A pixel, and the means of 3 × 3 and 5 × 5 around it."""
    padded, (h, w) = np.pad(x, 2, mode="edge"), x.shape

    def mean(reach: int) -> Image:
        around = range(2 - reach, 3 + reach)
        return np.mean([padded[i : i + h, j : j + w] for i in around for j in around], axis=0)

    return np.dstack([x, mean(1), mean(2)])


def halves(values: NDArray[Any], split: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """(what is learned from, what is labeled) of a picture."""
    axis, turned = {"left": (1, 1), "right": (1, -1), "top": (0, 1), "bottom": (0, -1)}[split]
    first, second = np.split(values, [values.shape[axis] // 2], axis=axis)
    return (first, second) if turned == 1 else (second, first)


def compare(
    row: str,
    *,
    seed: int,
    split: str = "left",
    classifier: str = "gentle",
    scene: Scene | None = None,
) -> dict[str, float]:
    """Learn from one half of a row's picture (or of a given scene) and label the other, with and without the field."""
    from sklearn.linear_model import LogisticRegression

    import gramgraph as gg

    name, noise, features = row.split("-")
    if scene is None:
        make, classes = IMAGES[name]
        clean = make()
        scene = (clean - clean.mean()) / clean.std(), labels_of(clean, classes)
    clean, y = scene
    x = clean + np.random.default_rng(seed).normal(scale=float(noise), size=clean.shape)
    (X, X_new), (y, y_new) = (
        halves(with_context(x) if features == "context" else x[:, :, None], split),
        halves(y, split),
    )
    nodes = gg.GentleBoostClassifier(n_estimators=50) if classifier == "gentle" else LogisticRegression()
    start = time.process_time()
    crf = gg.sequences.GridCRF(node_classifier=nodes).fit([X], [y])
    cpu = time.process_time() - start
    alone = crf.classes_[crf.node_classifier_.predict(X_new.reshape(-1, X.shape[2]))] == y_new.ravel()
    field = (crf.predict([X_new])[0] == y_new).ravel()
    won, lost = int((field & ~alone).sum()), int((alone & ~field).sum())
    return {
        "alone": alone.mean(), "field": field.mean(), "gain": won - lost, "error": (won + lost) ** 0.5,
        "scale": crf.scale_, "cpu": cpu,
    }  # fmt: skip


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One row."""
    found = compare(cell.row, seed=int(cell.options["seed"]))
    return Measurement(found["cpu"], found["cpu"], 1, 1, values=found)


def report(
    runner: Runner,
    *,
    tasks: Sequence[str] | None = None,
    quick: bool = False,
    limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and the rows in which the field is below its classifier."""
    title = "# Labels of noisy pixels\n\n"
    rows = [row for row in ROWS if row in tasks] if tasks else list(ROWS[:4] if quick else ROWS)
    if not folder().exists():
        return f"{title}The images are not there: nothing was measured.\n", []
    results: dict[tuple[str, str, str], Result] = {}
    lines = []
    for seed, row in enumerate(rows):
        cell = Cell("image_fields", row, "label", "gramgraph", 0.0, limit or 300.0, options={"seed": seed})
        found = results[row, "label", "gramgraph"] = runner.run(cell)
        if not isinstance(found, Failure):
            v = found.values
            lines.append([
                row, f"{v['alone']:.2%}", f"{v['field']:.2%}", f"{v['gain']:+.0f}", f"{v['error']:.0f}",
                f"{v['scale']:.2f}", f"{v['cpu']:.1f} s",
            ])  # fmt: skip
    table = markdown(["row", "classifier", "field", "pixels gained", "error", "scale", "time"], lines)
    below = [
        f"{row}: {-r.values['gain']:.0f} pixels below the classifier"
        for (row, _, _), r in results.items()
        if not isinstance(r, Failure) and r.values["gain"] < 0
    ]
    return f"{title}{versions(['gramgraph', 'numpy', 'numba'])}\n\n{table}\n", failures(results) + below
