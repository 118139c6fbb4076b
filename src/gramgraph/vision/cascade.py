"""The detector: a cascade of boosted stages that slides over images at all scales."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph._replace import write_whole
from gramgraph._validation import check_choice, check_count, check_fraction, check_positive, generator, is_number
from gramgraph.exceptions import ModelError, OptionError, ParseError
from gramgraph.typing import Array, FloatArray
from gramgraph.vision.haar import HaarFeatures
from gramgraph.vision.images import grey_image, integral_tables, resize_image
from gramgraph.vision.merging import merge_boxes
from gramgraph.vision.stages import Stages
from gramgraph.vision.training import Quarry, StageReport, StageTargets, train_stage

_SUFFICIENT = 30  # negatives below which no further stage is trained


@dataclass(eq=False, repr=False)
class Cascade:
    """An attentional cascade of boosted Haar-like features: `fit(faces, backgrounds)`, or `read_opencv(xml)`, `detect`.

    Every stage is an AdaBoost of stumps whose threshold is lowered until it keeps nearly all faces; a window is refused
    by the first stage that says no. Each stage is trained on negatives that the stages before it accept.

    Parameters
    ----------
    n_stages : stages, at most; training ends earlier when too few windows are accepted that are not faces.
    window : pixels, or (width, height).
    keep, false : targets of a stage: share of the faces it keeps, share of the negatives it lets pass.
    most_features : stumps in a stage, at most.
    n_negatives : negatives of each stage.
    kinds : kinds of features (`HaarFeatures`).
    memory : bytes for tables of features; what does not fit is made anew in every round.
    random_state : seed for the choice of negatives.

    Notes
    -----
    What a few dozen faces can teach is a demonstration: expect hundreds of false windows per image. For real detection
    read one of the cascades that ship with OpenCV.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ramp = np.linspace(0, 200, 12)[None, :] + np.zeros((12, 1))
    >>> faces = np.clip(ramp + rng.normal(scale=9, size=(40, 12, 12)), 0, 255).astype(np.uint8)
    >>> scene = rng.integers(0, 255, (80, 90)).astype(np.uint8)
    >>> cascade = Cascade(2, window=12, n_negatives=200, random_state=0).fit(faces, [scene])
    >>> scene[30:42, 50:62] = faces[0]
    >>> [50.0, 30.0, 12.0, 12.0] in cascade.detect(scene, min_neighbors=0)[:, :4].tolist()
    True
    """

    n_stages: int = 8
    _: KW_ONLY
    window: Any = 24
    keep: float = 0.995
    false: float = 0.4
    most_features: int = 40
    n_negatives: int = 1000
    kinds: Sequence[str] = ("A", "B", "C", "D", "E")
    memory: float = 4e8
    random_state: Any = None

    def __repr__(self) -> str:
        held = getattr(self, "stages_", None)
        what = "not trained" if held is None else f"{held.n_stages} stages, {len(held.root)} trees"
        return f"Cascade({what})"

    # ------------------------------------------------------------------------------------------------ training

    def fit(
        self,
        faces: Any,
        backgrounds: Any,
        *,
        progress: Progress = False,
        checkpoint: Any = None,
        jitter: bool = True,
    ) -> Self:
        """Train on patches with faces and on images without any.

        Patches of another size than the window are resized; with `jitter`, mirrored ones are added, and patches up to
        two pixels larger are cut at every shift. `checkpoint` is a file that is written after each stage and that a
        later call with the same parameters goes on from.
        """
        targets = self._targets()
        features = HaarFeatures(self.window, tuple(self.kinds))
        patches = _face_patches(faces, features.window, jitter)
        images = _images(backgrounds, "background")
        rng = generator(self.random_state)
        quarry = Quarry(images, features.window, rng)
        stages, self.reports_ = self._begin(features.window, checkpoint)
        with reporting(progress, self.n_stages, "stages") as report:
            while stages.n_stages < self.n_stages:
                negatives, looked, passed = quarry.mine(stages, self.n_negatives)
                if len(negatives) < _SUFFICIENT:
                    break
                alive = patches[stages.passes(patches) == stages.n_stages]
                if len(alive) < 2:
                    raise ModelError("the stages so far keep fewer than two faces: raise keep, or give more faces")
                stumps, threshold, kept, false = train_stage(features, alive, negatives, targets, memory=self.memory)
                stages = _with(stages, features, stumps, threshold)
                self.reports_.append(StageReport(len(stumps), kept, false, len(negatives), looked, passed))
                if checkpoint is not None:
                    self._save(checkpoint, stages)
                if report is not None:
                    report(stages.n_stages)
        self.stages_ = stages
        return self

    def _targets(self) -> StageTargets:
        check_count("n_stages", self.n_stages)
        check_count("n_negatives", self.n_negatives, 2)
        check_positive("memory", self.memory, zero=True)
        return StageTargets(
            check_fraction("keep", self.keep, ends=True),
            check_fraction("false", self.false),
            2,
            check_count("most_features", self.most_features, 2),
        )

    def _begin(self, window: tuple[int, int], checkpoint: Any) -> tuple[Stages, list[StageReport]]:
        if checkpoint is None or not Path(checkpoint).exists():
            return Stages.empty(window), []
        held = _read_json(checkpoint)
        stages = Stages.from_fields(held["stages"])
        if stages.window != window:
            raise ModelError(f"{checkpoint} holds a cascade with a window of {stages.window}, not {window}")
        try:
            return stages, [StageReport(**one) for one in held.get("reports", [])]
        except TypeError as error:
            raise ParseError(f"not a cascade: {error}", source=str(checkpoint)) from None

    def _save(self, path: Any, stages: Stages) -> None:
        reports = [vars(report) for report in getattr(self, "reports_", [])]
        write_whole(path, json.dumps({"kind": "cascade", "stages": stages.to_fields(), "reports": reports}))

    def save(self, path: Any) -> None:
        """Write the cascade as JSON; `Cascade.load` reads it back bit for bit."""
        self._save(path, self._stages())

    @classmethod
    def load(cls, path: Any) -> Self:
        """The cascade that `save`, or a checkpoint, wrote."""
        held = _read_json(path)
        found = cls(window=tuple(held["stages"]["window"]))
        found.stages_, found.reports_ = found._begin(tuple(held["stages"]["window"]), path)
        return found

    def stage_table(self, faces: Any = None, backgrounds: Any = None) -> Any:
        """One row per stage: features, and on training patches, or on faces and backgrounds that were held out, the
        share of faces that all stages up to here keep, and of all windows that they let pass."""
        import pandas as pd

        stages = self._stages()
        reports = getattr(self, "reports_", [])
        counts = np.diff(stages.stage_start)
        table = pd.DataFrame({"features": counts}, index=pd.RangeIndex(1, stages.n_stages + 1, name="stage"))
        if len(reports) == stages.n_stages:
            table["kept in training"] = [report.kept for report in reports]
            table["false in training"] = [report.false for report in reports]
        if faces is not None:
            passed = stages.passes(_face_patches(faces, stages.window, False))
            table["kept"] = [(passed >= s).mean() for s in table.index]
        if backgrounds is not None:
            quarry = Quarry(_images(backgrounds, "background"), stages.window, generator(0))
            table["false windows"] = quarry.false_rates(stages)
        return table

    # ----------------------------------------------------------------------------------------------- detection

    def _stages(self) -> Stages:
        if not hasattr(self, "stages_"):
            raise ModelError("this cascade has not learned anything yet: call fit, or Cascade.read_opencv")
        return self.stages_

    def detect(
        self,
        image: Any,
        scale_factor: float = 1.25,
        min_neighbors: int = 3,
        *,
        min_size: Any = None,
        max_size: Any = None,
        scaling: str = "image",
    ) -> FloatArray:
        """Boxes (n, 5): x, y, w, h and a score, the most certain first.

        The window slides over the image at sizes that grow by `scale_factor`; scaling="image" makes the image smaller,
        as OpenCV does (with its steps and rounding), "feature" enlarges the features. Boxes
        that overlap are merged into their mean where more than `min_neighbors` agree; 0 gives all windows. The score is
        the margin of the last stage, the largest of a group. An image smaller than the window has no boxes.
        """
        stages = self._stages()
        check_choice("scaling", scaling, ("image", "feature"))
        if not is_number(scale_factor) or not 1.0 < scale_factor < 100.0:
            raise OptionError(f"scale_factor must be a number above 1, not {scale_factor!r}")
        check_count("min_neighbors", min_neighbors, 0)
        grey = grey_image(image)
        low, high = _size(min_size, "min_size"), _size(max_size, "max_size")
        found = [np.zeros((0, 5))]
        tables = integral_tables(grey.shape, 2)  # room for all sizes, in steps of 1 and 2
        for scale, size in stages.pages(grey.shape, float(scale_factor)):
            w, h = round(stages.window[0] * scale), round(stages.window[1] * scale)
            if (low and (w < low[0] or h < low[1])) or (high and (w > high[0] or h > high[1])):
                continue
            found.append(self._at_scale(stages, grey, scale, None if scaling == "feature" else size, tables))
        boxes = merge_boxes(np.concatenate(found), min_neighbors=min_neighbors)
        boxes[:, 2] = np.minimum(boxes[:, 2], grey.shape[1] - boxes[:, 0])  # rounding may lead over the border
        boxes[:, 3] = np.minimum(boxes[:, 3], grey.shape[0] - boxes[:, 1])
        return boxes[np.argsort(-boxes[:, 4], kind="stable")]

    @staticmethod
    def _at_scale(
        stages: Stages, grey: Array, scale: float, size: tuple[int, int] | None, tables: tuple[Array, Array]
    ) -> FloatArray:
        """Boxes of one scale, where the image is made smaller to `size`; without one the features are enlarged."""
        single = np.float32(scale)
        box = [float(np.rint(np.float32(side) * single)) for side in stages.window]
        if size is None:
            places, margins = stages.slide(grey, step=max(1, round(1.5 * scale)), skip=False, scale=scale)
            corners = places.astype(np.float64)
        else:
            small = resize_image(grey, *size)
            places, margins = stages.slide(small, step=1 if scale >= 2.0 else 2, skip=True, tables=tables)
            corners = np.rint(places.astype(np.float32) * single).astype(np.float64)
        found = np.empty((len(places), 5))
        found[:, :2], found[:, 2:4], found[:, 4] = corners, box, margins
        return found

    # ------------------------------------------------------------------------------------------------- OpenCV

    @classmethod
    def read_opencv(cls, path: Any) -> Self:
        """The cascade in an XML file of OpenCV's (Haar-like features, stumps or trees), or in its bytes."""
        from gramgraph.vision.opencv import load, loads

        stages = loads(path) if isinstance(path, bytes) else load(path)
        found = cls(max(stages.n_stages, 1), window=stages.window)
        found.stages_ = stages
        return found

    def write_opencv(self, path: Any) -> None:
        """Write an XML file that OpenCV's CascadeClassifier runs."""
        from gramgraph.vision.opencv import dumps

        write_whole(path, dumps(self._stages()))


def _with(stages: Stages, features: HaarFeatures, stumps: Any, threshold: float) -> Stages:
    which = [j for j, *_ in stumps]
    renamed = [(k, cut, a, b) for k, (_, cut, a, b) in enumerate(stumps)]
    return stages.with_stage(features.rects[which], features.weights[which], features.tilted[which], renamed, threshold)


def _images(given: Any, what: str) -> list[Array]:
    images = [grey_image(image, f"{what} {i}") for i, image in enumerate(given)]
    if not images:
        raise ModelError(f"the list of {what}s is empty: at least one image is needed")
    return images


def _face_patches(faces: Any, window: tuple[int, int], jitter: bool) -> Array:
    """Patches of the size of the window, (n, h, w) bytes."""
    w, h = window
    found = []
    for image in _images(faces, "face"):
        near = 0 <= image.shape[0] - h <= 2 and 0 <= image.shape[1] - w <= 2
        if near and jitter:
            shifts = [(y, x) for y in range(image.shape[0] - h + 1) for x in range(image.shape[1] - w + 1)]
            cut = [np.ascontiguousarray(image[y : y + h, x : x + w]) for y, x in shifts]
        elif near:
            y, x = (image.shape[0] - h) // 2, (image.shape[1] - w) // 2
            cut = [np.ascontiguousarray(image[y : y + h, x : x + w])]
        else:
            cut = [resize_image(image, w, h)]
        found += cut + ([np.ascontiguousarray(one[:, ::-1]) for one in cut] if jitter else [])
    return np.array(found, dtype=np.uint8)


def _size(given: Any, what: str) -> tuple[int, int] | None:
    if given is None:
        return None
    pair = (given, given) if np.ndim(given) == 0 else tuple(given)
    if len(pair) != 2:
        raise OptionError(f"{what} must be a number of pixels or (width, height), not {given!r}")
    return check_count(what, pair[0], 1), check_count(what, pair[1], 1)


def _read_json(path: Any) -> Any:
    try:
        held = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {error}", source=str(path)) from None
    stages = held.get("stages") if isinstance(held, dict) else None
    if not isinstance(stages, dict) or not isinstance(stages.get("window"), list):
        raise ParseError("no cascade in this file", source=str(path))
    return held
