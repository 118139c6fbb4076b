"""Sliding a cascade over images, against OpenCV: the same cascade, the same windows, one thread.

`python -m benchmarks vision`. Needs `opencv-python-headless<5`, whose wheel ships the cascade files, and the images of
GRAMGRAPH_DATA. Columns: CPU time of one image at scale factor 1.1, ratio, boxes, and the share of OpenCV's windows
(min_neighbors=0) that ours overlap by 0.95 or more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, installed, measure, versions
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS, PEER = "gramgraph", "cv2"  # a peer goes by the name of its module
ROWS = ("camera", "motorcycle_left", "motorcycle_right", "text", "bw_text", "horse")


def folder() -> Path:
    """Where the images lie."""
    return Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "images"


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Merged boxes for the time, all windows for the agreement."""
    import cv2

    from gramgraph.vision import Cascade

    cv2.setNumThreads(1)
    image = cv2.imread(str(folder() / f"{cell.row}.png"), 0)
    path = Path(cv2.__file__).parent / "data" / "haarcascade_frontalface_default.xml"
    ours, peer = Cascade.read_opencv(path), cv2.CascadeClassifier(str(path))
    run = ours.detect if cell.contestant == OURS else peer.detectMultiScale
    cpu, wall, repeats = measure(lambda: run(image, 1.1, 3), budget=cell.budget)
    windows = np.asarray(run(image, 1.1, 0), dtype=np.float64).reshape(-1, 5 if cell.contestant == OURS else 4)
    return Measurement(
        cpu, wall, repeats, 1, answers=(windows[:, :4],), values={"boxes": float(len(run(image, 1.1, 3)))}
    )


def agreement(mine: Result, peer: Result) -> str:
    """The share of the peer's windows that one of ours covers."""
    from gramgraph.vision import overlap

    if isinstance(mine, Failure) or isinstance(peer, Failure):
        return ""
    a, b = peer.answers[0], mine.answers[0]
    return "1" if not len(a) and not len(b) else f"{(overlap(a, b).max(axis=1, initial=0) >= 0.95).mean():.4f}"


def report(
    runner: Runner,
    *,
    tasks: Sequence[str] | None = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    rows = [row for row in ROWS if row in tasks] if tasks else list(ROWS[:1] if quick else ROWS)
    if not installed("cv2") or not folder().exists():
        return "# Sliding windows\n\nOpenCV or the images are not there: nothing was measured.\n", []
    results: dict[tuple[str, str, str], Result] = {}
    lines, ratios = [], []
    for row in rows:
        for name in (OURS, PEER):
            results[row, "detect", name] = runner.run(
                Cell("vision", row, "detect", name, budget or 0.5, limit or 300.0)
            )
        mine = results[row, "detect", OURS]
        for name in (OURS, PEER):
            found = results[row, "detect", name]
            ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
            ratios += [ratio] if ratio else []
            boxes = "" if isinstance(found, Failure) else f"{found.values['boxes']:.0f}"
            lines.append([row, name, shown(found), ratio or "", boxes, agreement(mine, found)])
    table = markdown(["image", "who", "time", "ratio", "boxes", "same windows"], lines)
    head = versions(["gramgraph", "opencv-python-headless", "numpy", "numba"])
    return f"# Sliding windows\n\n{head}\n\n{table}\n\n{summary(ratios, Target(each=0.5))}\n", failures(results)
