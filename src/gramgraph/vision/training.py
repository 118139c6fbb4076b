"""Training of a cascade: boosted choice among all features, stage targets, negatives that the stages so far accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray
from gramgraph.vision.haar import HaarFeatures, PatchBank
from gramgraph.vision.images import resize_image
from gramgraph.vision.stages import Stages

_BLOCK = 4096


@dataclass(frozen=True)
class StageTargets:
    """What a stage must reach: the share of faces it keeps, the share of negatives it lets pass, features at most."""

    keep: float = 0.995
    false: float = 0.4
    least_features: int = 2
    most_features: int = 40


@dataclass(frozen=True)
class StageReport:
    """What a stage reached on the patches it was trained on, and what mining had to look at."""

    features: int
    kept: float
    false: float
    negatives: int
    windows: int
    accepted: int


class FeatureTable:
    """Values of all features in some patches, in 256 steps, by blocks.

    Blocks are kept as bytes up to a bound of memory; those beyond it are made anew in every round.
    """

    def __init__(self, features: HaarFeatures, patches: Array, *, memory: float) -> None:
        from gramgraph._numerics.vision.windows import place_corners

        self.features = features
        self.bank = PatchBank(patches, features.window, tilted=bool(features.tilted.any()))
        self.corners = np.empty((len(features), 12), dtype=np.uint32)
        place_corners(features.rects, features.tilted, features.window[0] + 1, 1, self.corners)
        room = int(memory // max(self.bank.n * _BLOCK, 1))
        starts = range(0, len(features), _BLOCK)
        self.kept = {start: self._codes(start) for start in starts[:room]}

    def values(self, first: int, stop: int) -> Any:
        """Exact values (stop − first, n) of some features."""
        from gramgraph._numerics.vision.windows import patch_values

        out = np.empty((stop - first, self.bank.n), dtype=np.float32)
        patch_values(
            *self.bank.arrays(), self.corners, self.features.weights, self.features.tilted, self.bank.inner,
            self.bank.area, first, stop, out,
        )  # fmt: skip
        return out

    def _codes(self, start: int) -> Array:
        from gramgraph._numerics.vision.windows import bin_values

        values = self.values(start, min(start + _BLOCK, len(self.features)))
        out = np.empty(values.shape, dtype=np.uint8)
        bin_values(values, out)
        return out

    def best(self, signed: FloatArray) -> int:
        """The feature whose best cut has the smallest weighted error, up to the width of a bin."""
        from gramgraph._numerics.vision.windows import best_binned

        hist = np.empty(256)
        feature, edge = -1, -np.inf
        for start in range(0, len(self.features), _BLOCK):
            codes = self.kept.get(start)
            row, found = best_binned(self._codes(start) if codes is None else codes, signed, hist)
            if found > edge:
                feature, edge = start + int(row), float(found)
        return feature


def best_cut(x: FloatArray, signed: FloatArray) -> tuple[float, float]:
    """(threshold, sign on its right side) with the smallest weighted error on one feature."""
    order = np.argsort(x, kind="stable")
    ranked = x[order]
    sums = np.cumsum(signed[order])
    edge = sums[-1] - 2.0 * sums[:-1]  # S right − S left
    edge = np.where(ranked[1:] > ranked[:-1], np.abs(edge), -1.0)
    if not len(edge) or edge.max() < 0:
        return float(ranked[0]), 1.0
    k = int(np.argmax(edge))
    return float(0.5 * (ranked[k] + ranked[k + 1])), float(np.sign(sums[-1] - 2.0 * sums[k]) or 1.0)


def train_stage(
    features: HaarFeatures, faces: Array, negatives: Array, targets: StageTargets, *, memory: float
) -> tuple[list[tuple[int, float, float, float]], float, float, float]:
    """(stumps, threshold, share of faces kept, share of negatives kept): AdaBoost until the targets are met.

    Of all thresholds that meet the target for negatives the one is taken that keeps most faces: training faces that
    are kept with room to spare are what new faces need.
    """
    table = FeatureTable(features, np.concatenate([faces, negatives]), memory=memory)
    t = np.r_[np.ones(len(faces)), -np.ones(len(negatives))]
    v = np.where(t > 0, 0.5 / len(faces), 0.5 / len(negatives))
    scores = np.zeros(len(t))
    stumps: list[tuple[int, float, float, float]] = []
    while True:
        j = table.best(v * t)
        x = table.values(j, j + 1)[0]
        cut, sign = best_cut(x.astype(np.float64), v * t)
        phi = np.where(x < np.float32(cut), -sign, sign)
        wrong = phi != t
        error = float(np.clip(v[wrong].sum() / v.sum(), 0.25 / len(t), 0.5 - 1e-9))
        alpha = float(np.log((1.0 - error) / error))
        stumps.append((j, cut, -sign * alpha, sign * alpha))
        scores += alpha * phi
        v = v * np.exp(alpha * wrong)
        v /= v.sum()
        threshold = stage_threshold(scores[t > 0], scores[t < 0], targets)
        kept, false = float((scores[t > 0] >= threshold).mean()), float((scores[t < 0] >= threshold).mean())
        if len(stumps) >= targets.least_features and (false <= targets.false or len(stumps) >= targets.most_features):
            return stumps, threshold, kept, false


def stage_threshold(faces: FloatArray, negatives: FloatArray, targets: StageTargets) -> float:
    """The lowest threshold whose share of negatives is within the target, but never one that loses too many faces."""
    keep = float(np.quantile(faces, 1.0 - targets.keep, method="lower"))
    levels = np.unique(np.concatenate([faces, negatives]))
    ranked = np.sort(negatives)
    share = 1.0 - np.searchsorted(ranked, levels - 1e-9, side="left") / max(len(ranked), 1)
    within = levels[share <= targets.false]
    low = float(within[0]) if len(within) else np.inf
    return min(keep, low) - 1e-6


class Quarry:
    """Background images at all scales: where negatives are cut from, windows that the stages so far accept first."""

    def __init__(self, images: Sequence[Array], window: tuple[int, int], rng: np.random.Generator) -> None:
        stages = Stages.empty(window)
        self.rng = rng
        self.pages: list[Array] = []
        for image in images:
            for _, size in stages.pages(image.shape, 1.25):
                if size[0] >= window[0] and size[1] >= window[1]:
                    self.pages.append(resize_image(image, *size))
        if not self.pages:
            raise ModelError(f"every background image is smaller than the window of {window[0]} × {window[1]} pixels")

    def mine(self, stages: Stages, n: int) -> tuple[Array, int, int]:
        """(at most n patches that pass all stages, windows looked at, windows that passed)."""
        w, h = stages.window
        areas = np.array([float((p.shape[0] - h + 1) * (p.shape[1] - w + 1)) for p in self.pages])
        found: list[Array] = []
        have = looked = passed = 0
        share = np.maximum(4, np.ceil(2.0 * n * np.sqrt(areas) / np.sqrt(areas).sum())).astype(int)
        order = self.rng.permutation(len(self.pages))
        spare: list[tuple[int, Array]] = []
        for k in order.tolist():
            places, _ = stages.slide(self.pages[k], step=1, skip=False)
            looked += int(areas[k])
            passed += len(places)
            places = self.rng.permutation(places, axis=0)
            found.append(stages.cut(self.pages[k], places[: share[k]]))
            spare.append((k, places[share[k] :]))
            have += len(found[-1])
            if have >= n:
                break
        for k, places in spare:  # few pages accept anything: all of theirs
            if have >= n:
                break
            found.append(stages.cut(self.pages[k], places[: n - have]))
            have += len(found[-1])
        patches = np.concatenate(found)
        return patches[self.rng.permutation(len(patches))[:n]], looked, passed

    def false_rates(self, stages: Stages) -> FloatArray:
        """The share of all windows that passes one stage, two stages, …"""
        w, h = stages.window
        total = sum((p.shape[0] - h + 1) * (p.shape[1] - w + 1) for p in self.pages)
        counts = [
            sum(len(stages.first(s).slide(p, step=1, skip=False)[0]) for p in self.pages)
            for s in range(1, stages.n_stages + 1)
        ]
        return np.array(counts) / total
